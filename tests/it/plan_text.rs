//! The text of `plan`, as its user reads it: aligned columns, long lists shortened, `-` for nothing.

use yarn_autoscaler::{
    cli::plan_view::Plan,
    decide::Survey,
    model::{Action, Reason, Resources},
};

use crate::ticks::Scene;

fn text(scene: &Scene) -> String {
    let survey = Survey::of(&scene.policy, &scene.situation);
    let text = Plan::of(&scene.policy, &scene.situation, survey.as_ref(), &scene.decision).text();
    assert!(text.lines().all(|line| line == line.trim_end()), "trailing blanks in\n{text}");
    text
}

#[test]
fn a_busy_cluster_of_workers_in_every_state() {
    insta::assert_snapshot!(text(&Scene::new(4, 2, 1).pending(Resources::new(24_576, 6, 4), 6).scale_up(6, 9)));
}

#[test]
fn long_lists_are_shortened_and_what_is_not_simply_ready_is_kept() {
    let mut scene = Scene::new(300, 1, 60);
    let hosts: Vec<_> = scene.situation.state.drains.keys().cloned().collect();
    scene.decision.actions = vec![Action::Recommission { hosts: hosts.clone() }];
    let text = text(&scene.because(vec![Reason::Recommission { hosts }]));
    assert!(text.lines().count() < 60 && text.lines().all(|line| line.chars().count() < 160), "{text}");
    assert!(text.contains(" and 55 more") && text.contains(" 331 more; --json has them all"), "{text}");
    assert!(text.contains("booting") && !text.contains("worker-0 "), "the notable ones are shown:\n{text}");
}

#[test]
fn without_an_answer_of_yarn_only_the_reason_is_shown() {
    insta::assert_snapshot!(text(&Scene::new(2, 0, 0).without_yarn()));
}
