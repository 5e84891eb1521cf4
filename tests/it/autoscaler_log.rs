//! The autoscaler log: which ticks leave an entry, what is in it, and that scripts made for Dataproc's own log read it.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use chrono::TimeDelta;
use serde_json::Value;
use tempfile::TempDir;
use yarn_autoscaler::{
    model::{Action, GroupName, Intent, Operation, Reason, Resources, Sample, SizeChange},
    policy::GroupPolicy,
    ports::Journal,
    store::{AutoscalerLog, autoscaler_log::ClusterLabels},
};

use crate::ticks::{Scene, steady};

fn labels() -> ClusterLabels {
    ClusterLabels {
        project: "p".into(),
        region: "us-central1".into(),
        cluster: "gpu1".into(),
        uuid: "11111111-2222-3333-4444-555555555555".into(),
    }
}

fn fresh() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("autoscaler.jsonl");
    (folder, path)
}

/// The log of these scenes, as text.
fn logged(scenes: &[Scene]) -> String {
    let (_folder, path) = fresh();
    let mut log = AutoscalerLog::open(&path, labels()).unwrap();
    scenes.iter().for_each(|scene| log.tick(&scene.tick()));
    fs::read_to_string(&path).unwrap()
}

fn entries(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The state of each entry.
fn states(text: &str) -> Vec<String> {
    entries(text).iter().map(|entry| entry["jsonPayload"]["status"]["state"].as_str().unwrap().to_owned()).collect()
}

fn operating(mut scene: Scene, operation_id: &str) -> Scene {
    let intent = Intent::Create { group: GroupName::Primary, count: 3 };
    let (request_id, operation_id) = ("ya-1".into(), Some(operation_id.to_owned()));
    let operation = Operation { request_id, intent, at: scene.situation.now, operation_id };
    Arc::make_mut(&mut scene.situation.state).operations.push(operation);
    scene.because(vec![Reason::OperationUnderWay { what: "create 3 primary workers".into() }])
}

/// The last operation has just ended.
fn cooling(mut scene: Scene) -> Scene {
    let now = scene.situation.now;
    Arc::make_mut(&mut scene.situation.state).last_operation_ended_at = Some(now);
    scene.because(vec![Reason::Cooldown { until: now + TimeDelta::seconds(120) }])
}

fn held(scene: Scene) -> Scene {
    scene.because(vec![Reason::ProviderHeld { why: "cluster gpu1 is ERROR".into() }])
}

/// Samples of the last minute: so much memory pending and free.
fn sampled(mut scene: Scene, pending_mb: u64, available_mb: u64) -> Scene {
    let now = scene.situation.now;
    for seconds in (0..=60).rev().step_by(5) {
        let sample = Sample {
            at: now - TimeDelta::seconds(seconds),
            pending: Resources::new(pending_mb, 6, 0),
            capacity: Resources::new(8_192 + available_mb, 16, 2),
            allocated: Resources::new(8_192, 2, 2),
        };
        scene.situation.history.push(sample, Duration::from_secs(600));
    }
    scene
}

/// From the start to a scale up, a scale down and an end that needs somebody.
fn story() -> Vec<Scene> {
    let demand = Resources::new(24_576, 6, 4);
    vec![
        Scene::new(2, 0, 0).because(vec![Reason::WindowNotFull { window_s: 120 }]),
        Scene::new(2, 0, 0).because(vec![Reason::WindowNotFull { window_s: 120 }]).later(5),
        Scene::new(2, 0, 0).later(120),
        Scene::new(2, 0, 0).later(125),
        sampled(Scene::new(2, 0, 0).pending(demand, 6).scale_up(2, 5).later(130), 24_000, 1_040),
        operating(Scene::new(2, 3, 0).later(135), "projects/p/regions/us-central1/operations/5b1d"),
        operating(Scene::new(2, 3, 0).later(140), "projects/p/regions/us-central1/operations/5b1d"),
        cooling(Scene::new(5, 0, 0).later(200)),
        cooling(Scene::new(5, 0, 0).later(205)),
        Scene::new(5, 0, 0).without_yarn().later(210),
        Scene::new(5, 0, 0).later(400),
        Scene::new(5, 0, 0).later(515),
        Scene::new(5, 0, 0).later(520),
        Scene::new(5, 0, 0).cordon(5).later(640),
        Scene::new(4, 0, 1).because(vec![Reason::Draining { hosts: vec!["10.0.0.4".into()] }]).later(645),
        held(Scene::new(4, 0, 0).later(900)),
    ]
}

#[test]
fn entries_are_of_what_is_decided_and_of_what_changes() {
    let text = logged(&story());
    let expected = [
        "INITIALIZING",
        "RECOMMENDING",
        "RECOMMENDING",
        "SCALING",
        "COOLDOWN",
        "FAILED",
        "RECOMMENDING",
        "RECOMMENDING",
        "RECOMMENDING",
        "SCALING",
        "STOPPED",
    ];
    assert_eq!(states(&text), expected);
    insta::assert_snapshot!(text);
}

#[test]
fn scripts_made_for_dataprocs_log_find_what_they_look_for() {
    let digits = |text: &Value| {
        let text = text.as_str().expect("a text");
        text.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>().expect("a figure")
    };
    let mut found = Vec::new();
    for entry in entries(&logged(&story())) {
        let payload = &entry["jsonPayload"];
        if payload["status"]["state"] == "RECOMMENDING" {
            let metrics = &payload["recommendation"]["inputs"]["clusterMetrics"];
            let decision = payload["recommendation"]["outputs"]["decision"].as_str().unwrap().to_owned();
            found.push((
                decision,
                digits(&metrics["avg-yarn-pending-memory"]),
                digits(&metrics["avg-yarn-available-memory"]),
            ));
        }
    }
    let [first, scale_up, .., scale_down] = &found[..] else { panic!("{found:?}") };
    assert_eq!(*first, ("NO_SCALE".to_owned(), 0, 16_384));
    assert_eq!(*scale_up, ("SCALE_UP".to_owned(), 24_576, 1_040), "pending as decided on, the rest of the same window");
    assert_eq!((scale_down.0.as_str(), scale_down.1), ("SCALE_DOWN", 0));
}

#[test]
fn sizes_by_group_follow_the_orders() {
    let change = SizeChange { primary: 1, secondary: -1_200 };
    let mut scene = Scene::new(3, 0, 1);
    scene.policy.secondary = Some(GroupPolicy { min_instances: 0, max_instances: 2_000, weight: 1 });
    scene.decision.actions = vec![Action::Resize { change, timeout: Duration::from_secs(60) }];
    let entry = entries(&logged(&[scene])).remove(0);
    let recommendation = &entry["jsonPayload"]["recommendation"];
    let (inputs, outputs) = (&recommendation["inputs"], &recommendation["outputs"]);
    assert_eq!(inputs["currentClusterSize"], serde_json::json!({ "primaryWorkerCount": 3 }));
    assert_eq!(inputs["minWorkerCounts"], serde_json::json!({ "primaryWorkerCount": 2 }));
    assert_eq!(outputs["recommendedClusterSize"]["primaryWorkerCount"], 4);
    assert_eq!(outputs["decision"], "MIXED");
    assert_eq!(outputs["constraintsReached"][0], "SECONDARY_SCALEDOWN_SINGLE_REQUEST_LIMIT_REACHED");
    assert_eq!(outputs["gracefulDecommissionTimeout"], "3600s");
}

#[test]
fn workers_that_are_taken_back_cancel_a_scale_down() {
    let mut scene = Scene::new(4, 0, 1);
    scene.decision.actions = vec![Action::Recommission { hosts: vec!["10.0.0.4".into()] }];
    let entry = entries(&logged(&[scene])).remove(0);
    assert_eq!(entry["jsonPayload"]["status"]["details"], "Recommending CANCEL from 4 to 5 workers");
}

#[test]
fn a_log_that_cannot_be_written_does_not_stop_the_loop() {
    let mut log = AutoscalerLog::open("/dev/full", labels()).unwrap();
    let scenes = [Scene::new(2, 0, 0), Scene::new(2, 0, 0).because(vec![steady(2, 1)]).later(300)];
    scenes.iter().for_each(|scene| log.tick(&scene.tick()));
}
