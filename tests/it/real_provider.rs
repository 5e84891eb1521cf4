//! A provider that misbehaves, beside a real cluster with real demand: the ticks go on, nothing is ordered twice, and
//! once it is well again the story ends as it should.

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, Trial, state},
    lab::{Lab, LabOptions, eventually, processes_of},
    onlooker::{Recorder, SOON, actions, host, master_host, node, notes, submit_sleeper, was_said},
};

fn start(lab: &Lab, recorder: &Recorder) -> Daemon {
    let options =
        ["--poll-interval=4s", "--provider-time-limit=2s", "--ready-deadline=15s"].map(str::to_owned).to_vec();
    Daemon::start(
        lab,
        &Trial { max: 5, cooldown: "4s", options, provider_command: recorder.command(), ..Trial::default() },
    )
}

/// Each needs a node of its own.
fn large_sleepers(lab: &Lab, count: usize) -> Vec<String> {
    (0..count).map(|_| submit_sleeper(lab, 10_240, 600)).collect()
}

/// The cluster is as large as it must be, all that was asked for runs, and no order is open.
#[track_caller]
fn await_the_right_end(lab: &Lab, sleepers: &[String], workers: usize) {
    eventually("all that was asked for runs", SOON, || sleepers.iter().all(|id| master_host(lab, id).is_some()));
    eventually("no order is open", SOON, || state(lab)["operations"] == json!([]));
    assert_eq!(lab.instances("primary").len(), workers);
}

/// A note with this word has come.
#[track_caller]
fn await_note(lab: &Lab, word: &str) {
    eventually(&format!("a note tells of {word:?}"), SOON, || notes(lab).iter().any(|note| note.contains(word)));
}

#[test]
fn a_provider_that_hangs_stops_no_tick_and_doubles_no_order() {
    let lab = Lab::up(LabOptions::default());
    let recorder = Recorder::of(&lab);
    lab.set_provider_faults(&json!({"hang": {"describe": true}}));
    let _daemon = start(&lab, &recorder);
    recorder.await_ticks(2);
    eventually("what hangs is told", SOON, || was_said(&lab, "noCapacity"));

    lab.set_provider_faults(&json!({"hang": {"create": true, "poll": true}}));
    let sleepers = large_sleepers(&lab, 3);
    eventually("the order is given again", SOON, || recorder.requests("create").len() >= 2);
    recorder.await_ticks(1);
    lab.set_provider_faults(&json!({"hang": {"poll": true}}));
    eventually("the order is taken", SOON, || recorder.requests("poll").len() >= 2);
    recorder.await_ticks(1);
    await_note(&lab, "cannot poll");
    lab.set_provider_faults(&json!({}));

    await_the_right_end(&lab, &sleepers, 3);
    assert_eq!((recorder.orders("create"), actions(&lab, "create").len()), (1, 1));
    eventually("what hung was ended", SOON, || {
        !processes_of(&lab.dir).iter().any(|one| one.contains("local-yarn/provider"))
    });
}

#[test]
fn garbage_and_crashes_of_the_provider_are_told_and_waited_out() {
    let lab = Lab::up(LabOptions::default());
    let recorder = Recorder::of(&lab);
    lab.set_provider_faults(&json!({"garbage": {"describe": 1}, "crash": {"describe": 1}}));
    let _daemon = start(&lab, &recorder);
    recorder.await_ticks(3);
    assert!(was_said(&lab, "noCapacity"));

    // Not taken and unanswered, then taken and unanswered.
    lab.set_provider_faults(&json!({
        "garbage": {"create": 1, "poll": 1}, "crashAfterOrder": {"create": 1}, "crash": {"poll": 1},
    }));
    let sleepers = large_sleepers(&lab, 3);
    await_the_right_end(&lab, &sleepers, 3);
    assert!(recorder.requests("create").len() >= 3);
    assert_eq!((recorder.orders("create"), actions(&lab, "create").len()), (1, 1));
    await_note(&lab, "502 Bad Gateway");
    await_note(&lab, "refused: create 1 primary worker");
}

#[test]
fn a_stock_out_is_told_waited_out_and_tried_anew() {
    let lab = Lab::up(LabOptions::default());
    let recorder = Recorder::of(&lab);
    lab.set_provider_faults(&json!({"stockOut": {"create": 1}}));
    let _daemon = start(&lab, &recorder);
    let sleepers = large_sleepers(&lab, 3);
    await_note(&lab, "STOCK_OUT");
    eventually("the wait is told", SOON, || was_said(&lab, "providerWait"));
    assert_eq!(recorder.orders("create"), 1, "not at once again");
    let refused_at = recorder.requests("create")[0].0;
    eventually("it is tried anew", SOON * 2, || recorder.orders("create") == 2);
    let waited_ms = recorder.requests("create")[1].0 - refused_at;
    assert!(waited_ms >= 30_000, "the provider asked for 30 s, it was left alone for {waited_ms} ms");
    await_the_right_end(&lab, &sleepers, 3);
}

#[test]
fn an_operation_that_fails_is_made_good_and_a_quota_is_held_to() {
    let lab =
        Lab::up(LabOptions { max_workers: 4, boot_delay: std::time::Duration::from_secs(4), ..LabOptions::default() });
    let recorder = Recorder::of(&lab);
    let _daemon = start(&lab, &recorder);
    let mut sleepers = large_sleepers(&lab, 3);
    eventually("a machine boots", SOON, || lab.dir.join("workers/worker-2.json").exists());
    lab.nm_kill(&host(&lab, 2));
    await_note(&lab, "failed: create 1 primary worker");
    await_the_right_end(&lab, &sleepers, 4);
    eventually("the machine that failed is deleted", SOON, || lab.instances("primary").len() == 3);
    assert_eq!(node(&lab, &host(&lab, 2)), Value::Null, "YARN never saw it");
    assert_eq!(recorder.orders("create"), 2);

    sleepers.extend(large_sleepers(&lab, 2));
    await_note(&lab, "QUOTA");
    eventually("the wait is told", SOON, || was_said(&lab, "providerWait"));
    recorder.await_ticks(3);
    assert_eq!(recorder.orders("create"), 3, "what a quota forbids is not tried again and again");
    assert_eq!(lab.instances("primary").len(), 3);
}
