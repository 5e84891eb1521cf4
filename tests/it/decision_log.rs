//! The decision log: what is news, rotation, torn lines; and the table that `explain` makes of it.

use std::{fs, io::Write, path::PathBuf, sync::Arc};

use tempfile::TempDir;
use yarn_autoscaler::{
    cli::explain::{Summary, people},
    model::{Action, GroupName, NodeId, NodeState, Reason, Resources, Workers},
    ports::Journal,
    store::{
        DecisionLog,
        decision_log::{Log, Record, Verdict, rotated},
    },
};

use crate::ticks::{Scene, steady};

fn fresh() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("decisions.jsonl");
    (folder, path)
}

/// A log of these scenes, read back.
fn logged(scenes: &[Scene]) -> Log {
    let (_folder, path) = fresh();
    let mut log = DecisionLog::open(&path).unwrap();
    scenes.iter().for_each(|scene| log.tick(&scene.tick()));
    Log::read(&path).unwrap()
}

/// Demand comes, workers are ordered, boot, serve, and go again.
fn story() -> Vec<Scene> {
    let demand = Resources::new(24_576, 6, 4);
    vec![
        Scene::new(2, 0, 0),
        Scene::new(2, 0, 0).later(5),
        Scene::new(2, 0, 0).pending(demand, 6).scale_up(2, 5).later(10),
        Scene::new(2, 3, 0).pending(demand, 6).because(vec![operation()]).later(15),
        Scene::new(4, 1, 0).pending(demand, 6).because(vec![operation()]).later(20),
        Scene::new(4, 1, 0).without_yarn().later(25),
        Scene::new(5, 0, 0).noting("a container of worker-4 was lost").later(30),
        Scene::new(5, 0, 0).cordon(5).later(200),
        Scene::new(4, 0, 1).because(vec![Reason::Draining { hosts: vec!["10.0.0.4".into()] }]).later(205),
        Scene::new(4, 0, 0).later(300),
    ]
}

fn operation() -> Reason {
    Reason::OperationUnderWay { what: "create 3 primary workers".into() }
}

#[test]
fn verdicts_are_dataprocs_words() {
    let node = NodeId { host: "h".into(), port: 1 };
    let group = GroupName::Primary;
    let create = Action::Create { group, count: 1 };
    let delete = Action::Delete { group, instances: vec!["w".into()] };
    let uncordon = Action::Uncordon { node, full: Resources::default() };
    let release = Action::Release { hosts: vec!["h".into()] };
    let table = [
        (vec![], Verdict::NoScale, "NO_SCALE"),
        (vec![release.clone()], Verdict::NoScale, "NO_SCALE"),
        (vec![create.clone()], Verdict::ScaleUp, "SCALE_UP"),
        (vec![release, delete.clone()], Verdict::ScaleDown, "SCALE_DOWN"),
        (vec![uncordon], Verdict::Cancel, "CANCEL"),
        (vec![create, delete], Verdict::Mixed, "MIXED"),
    ];
    for (actions, verdict, word) in table {
        assert_eq!(Verdict::of(&actions), verdict);
        assert_eq!(serde_json::to_value(verdict).unwrap(), word);
        assert_eq!(verdict.word(), word);
    }
}

#[test]
fn a_record_says_it_all_on_one_line() {
    let scene = Scene::new(2, 1, 1).pending(Resources::new(24_576, 6, 4), 6).scale_up(4, 6).noting("slow answer");
    insta::assert_json_snapshot!(Record::of(&scene.tick()));
}

fn counted(scene: &Scene) -> Option<Workers> {
    scene.tick().workers
}

#[test]
fn workers_are_counted_once_each() {
    assert_eq!(
        counted(&Scene::new(4, 2, 1)).unwrap(),
        Workers { ready: 4, booting: 2, leaving: 1, not_ready: 0, size: 7 }
    );
    assert_eq!(counted(&Scene::new(4, 2, 1).without_yarn()), None, "missing is not zero");
    let mut scene = Scene::new(4, 2, 1);
    let nodes = &mut Arc::make_mut(scene.situation.observation.as_mut().unwrap()).nodes;
    Arc::make_mut(&mut nodes[0]).state = NodeState::Unhealthy;
    nodes.remove(1); // Its NodeManager has gone, though it has served before.
    assert_eq!(counted(&scene).unwrap(), Workers { ready: 2, booting: 2, leaving: 1, not_ready: 2, size: 7 });
}

#[test]
fn quiet_ticks_leave_a_line_in_ten_minutes() {
    let scenes: Vec<Scene> = (0..=240).map(|tick| Scene::new(2, 0, 0).later(5 * tick)).collect();
    assert_eq!(logged(&scenes).records.len(), 3, "at 0, 10 and 20 minutes");
}

#[test]
fn figures_that_move_are_no_news_but_new_reasons_are() {
    let scenes = [
        Scene::new(2, 0, 0).because(vec![steady(2, 1)]),
        Scene::new(2, 0, 0).because(vec![steady(2, 2)]).later(5),
        Scene::new(2, 0, 0).because(vec![operation()]).later(10),
        Scene::new(2, 0, 0).because(vec![operation()]).noting("something").later(15),
        Scene::new(2, 0, 0).because(vec![operation()]).noting("something").later(20),
    ];
    let seconds: Vec<_> = logged(&scenes).records.iter().map(|r| r.at.format("%S").to_string()).collect();
    assert_eq!(seconds, ["05", "15", "20"]);
}

#[test]
fn every_decision_that_acts_is_kept() {
    let scenes: Vec<Scene> = (0..3).map(|tick| Scene::new(2, 0, 0).scale_up(2, 3).later(tick)).collect();
    let log = logged(&scenes);
    let written: Vec<Record> = scenes.iter().map(|scene| Record::of(&scene.tick())).collect();
    assert_eq!(log.records, written);
}

#[test]
fn a_torn_line_is_named_and_the_next_record_is_whole() {
    let (_folder, path) = fresh();
    let scene = Scene::new(2, 0, 0);
    DecisionLog::open(&path).unwrap().tick(&scene.tick());
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"at\":\"2026-11-21T12:0").unwrap();
    let torn = Log::read(&path).unwrap();
    assert_eq!((torn.records.len(), torn.bad_lines[0].line), (1, 2));
    assert!(torn.bad_lines[0].problem.starts_with("torn off: EOF while parsing a string"), "{torn:?}");
    DecisionLog::open(&path).unwrap().tick(&scene.tick());
    let log = Log::read(&path).unwrap();
    assert_eq!((log.records.len(), log.bad_lines.len()), (2, 1));
}

#[test]
fn bad_lines_are_named_up_to_a_limit() {
    let (_folder, path) = fresh();
    fs::write(&path, format!("{{}}\n\n{}{}", "x\n".repeat(500), "y".repeat(3 << 20))).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!((log.records.len(), log.bad_lines.len()), (0, 100));
    assert_eq!(log.bad_lines[0].problem, "missing field `at` at column 2");
    assert_eq!(log.bad_lines[1].line, 3);
}

#[test]
fn reasons_of_a_newer_version_are_read_as_text() {
    let (_folder, path) = fresh();
    let line = r#"{"at":"2026-11-21T12:00:05Z","decision":"NO_SCALE","actions":[{"action":"dance"}],"reasons":[{"reason":"moonPhase"}],"text":["the moon is full"],"mood":1}"#;
    fs::write(&path, line).unwrap();
    let log = Log::read(&path).unwrap();
    assert_eq!(log.bad_lines, []);
    assert_eq!((log.records[0].reason(), log.records[0].acted()), ("the moon is full", false));
}

#[test]
fn a_full_log_is_rotated_once_and_read_as_one() {
    let (folder, path) = fresh();
    let mut log = DecisionLog::with_limit(&path, 2_000).unwrap();
    for tick in 0..20 {
        log.tick(&Scene::new(2, 0, 0).scale_up(2, 3).later(tick).tick());
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    assert!(fs::metadata(&path).unwrap().len() <= 2_000 && fs::metadata(rotated(&path)).unwrap().len() <= 2_000);
    let times: Vec<_> = Log::read(&path).unwrap().records.iter().map(|record| record.at).collect();
    assert!(times.is_sorted() && times.len() > 3, "{times:?}");
    assert_eq!(times.last(), Some(&Scene::new(2, 0, 0).later(19).situation.now));
}

#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_loop() {
    let mut log = DecisionLog::open("/dev/full").unwrap();
    for tick in 0..3 {
        log.tick(&Scene::new(2, 0, 0).later(tick).tick());
    }
    assert!(log.record(&Record::of(&Scene::new(2, 0, 0).tick())).is_err());
}

#[test]
fn explain_tells_the_story() {
    insta::assert_snapshot!(people(&logged(&story()), false, Some(110)));
}

#[test]
fn explain_is_plain_without_a_terminal() {
    insta::assert_snapshot!(people(&logged(&story()), true, None));
}

#[test]
fn explain_fits_a_narrow_terminal() {
    let text = people(&logged(&story()), false, Some(70));
    // The last line is the summary, which the terminal wraps.
    let table: Vec<_> = text.lines().filter(|line| !line.contains("scale up,")).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 70), "{text}");
}

#[test]
fn the_summary_counts_beginnings() {
    let summary = Summary::of(&logged(&story()).records);
    assert_eq!(summary, Summary { scale_ups: 1, scale_downs: 1, cancels: 0, peak_workers: 5 });
    assert_eq!(people(&Log::default(), true, None), "no decisions\n");
}
