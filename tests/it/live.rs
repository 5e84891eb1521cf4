//! The live display: what it shows, and how it redraws.

use std::io::{self, Write};

use yarn_autoscaler::{
    cli::live::{Live, Screen, render},
    model::{Outage, Resources},
    ports::Journal,
};

use crate::ticks::{Scene, steady};

fn busy() -> Scene {
    Scene::new(4, 2, 1).pending(Resources::new(24_576, 6, 4), 6).scale_up(6, 9)
}

fn block(scene: &Scene, width: usize) -> String {
    let lines = render(&scene.tick(), width);
    assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
    lines.join("\n")
}

#[test]
fn a_busy_cluster() {
    insta::assert_snapshot!(block(&busy(), 100));
}

#[test]
fn a_narrow_terminal() {
    insta::assert_snapshot!(block(&busy(), 56));
    insta::assert_snapshot!(block(&busy(), 20));
}

#[test]
fn more_workers_than_cells() {
    let mut scene = Scene::new(300, 60, 30);
    scene.policy.primary.max_instances = 600;
    insta::assert_snapshot!(block(&scene, 100));
}

#[test]
fn what_is_not_known_is_not_zero() {
    let mut scene = Scene::new(2, 0, 0).without_yarn();
    insta::assert_snapshot!(block(&scene, 100));
    scene.situation.capacity = Err(Outage { text: "no answer within 30 s\x1b[2J\nsecond line".into() });
    insta::assert_snapshot!(block(&scene, 100));
}

/// All that was written for these scenes, its escape codes readable.
fn shown(scenes: &[Scene], screen: Screen) -> String {
    let mut out = Vec::new();
    let mut live = Live::new(&mut out, screen);
    scenes.iter().for_each(|scene| live.tick(&scene.tick()));
    String::from_utf8(out).unwrap().replace('\x1b', "^[")
}

fn scenes() -> Vec<Scene> {
    vec![
        Scene::new(2, 0, 0),
        Scene::new(2, 0, 0).because(vec![steady(2, 7)]).later(5),
        Scene::new(2, 0, 0).scale_up(2, 3).noting("a slow answer").later(10),
        Scene::new(2, 1, 0).later(15),
    ]
}

#[test]
fn without_a_terminal_a_line_when_something_changes() {
    insta::assert_snapshot!(shown(&scenes(), Screen::Plain));
}

#[test]
fn on_a_terminal_the_block_is_redrawn_below_the_news() {
    let text = shown(&scenes(), Screen::Terminal { width: || 80, colour: false });
    insta::assert_snapshot!(text);
}

#[test]
fn a_terminal_that_became_narrower_is_redrawn_from_the_wrapped_block() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static WIDTH: AtomicUsize = AtomicUsize::new(80);
    let mut out = Vec::new();
    let mut live = Live::new(&mut out, Screen::Terminal { width: || WIDTH.load(Relaxed), colour: false });
    live.tick(&Scene::new(2, 0, 0).tick());
    WIDTH.store(40, Relaxed);
    live.tick(&Scene::new(2, 0, 0).later(5).tick());
    let text = String::from_utf8(out).unwrap();
    let rows: usize =
        render(&Scene::new(2, 0, 0).tick(), 80).iter().map(|line| line.chars().count().div_ceil(40)).sum();
    assert!(rows > 5 && text.contains(&format!("\x1b[{rows}A")), "{text:?}");
}

#[test]
fn colours_only_where_they_are_wanted() {
    let screen = |colour| Screen::Terminal { width: || 80, colour };
    assert!(shown(&[busy()], screen(true)).contains("^[[32m████^[[0m^[[33m▒▒^[[0m^[[35m▓^[[0m^[[2m░░░^[[0m"));
    assert!(!shown(&[busy()], screen(false)).contains("^[[32m"));
}

/// Nobody reads any more.
struct Closed(usize);

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        self.0 += 1;
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_is_not_written_again() {
    let mut closed = Closed(0);
    let mut live = Live::new(&mut closed, Screen::Plain);
    for scene in scenes() {
        live.tick(&scene.tick());
    }
    drop(live);
    assert_eq!(closed.0, 1);
}
