//! How looks at applications become rows, where no recording has the case: tasks, gangs that lose and give back
//! members, applications that vanish.

use std::collections::BTreeSet;

use yarn_autoscaler::{
    cli::record::{
        guess::Assumed,
        recorder::{Look, Recorder, Rules},
        summary::{Doubt, Skip},
        track::Seen,
    },
    model::{Ask, JobShape, Resources, WorkloadRow},
    yarn::applications::{AppRecord, ContainerRecord, Launch},
};

const MASTER: Resources = Resources::new(1024, 1, 0);
const TASK: Resources = Resources::new(2048, 2, 0);
const WORKER: Resources = Resources::new(4096, 1, 1);

fn recorder() -> Recorder {
    let assumed = Assumed { master: Resources::new(2048, 1, 0), container_memory_mb: 2048 };
    Recorder::new(Rules { gang_types: vec!["tony".into()], assumed, ended_only: false }, BTreeSet::new())
}

/// An application submitted at 0 and launched at 1 s, `at` seconds later.
fn app(application_type: &str, at: i64) -> AppRecord {
    AppRecord {
        id: "application_1_0001".into(),
        application_type: application_type.into(),
        queue: "root.a".into(),
        state: "RUNNING".into(),
        final_status: "UNDEFINED".into(),
        submitted_ms: 0,
        launched: Launch::At(1000),
        finished_ms: None,
        heard_ms: at * 1000,
        used_seconds: Resources::default(),
        asks: Vec::new(),
        master_log: String::new(),
    }
}

fn over(application_type: &str, at: i64, status: &str, used_seconds: Resources) -> AppRecord {
    let app = app(application_type, at);
    AppRecord {
        state: "FINISHED".into(),
        final_status: status.into(),
        finished_ms: Some(at * 1000),
        used_seconds,
        ..app
    }
}

fn asking(app: AppRecord, containers: u32, resources: Resources) -> AppRecord {
    AppRecord { asks: vec![Ask { containers, resources, priority: 1 }], ..app }
}

/// The master since 1 s, and containers of this size by number and start.
fn seen(size: Resources, containers: &[(u32, i64)]) -> Option<Seen> {
    let record = |id: String, resources, started: i64| ContainerRecord {
        id,
        priority: 1,
        resources,
        started_ms: started * 1000,
    };
    let mut all = vec![record("master".into(), MASTER, 1)];
    all.extend(containers.iter().map(|(number, started)| record(number.to_string(), size, *started)));
    Some(Seen { master: "master".into(), containers: all })
}

fn alive(app: AppRecord, seen: Option<Seen>) -> Look {
    Look { alive: vec![(app, seen)], over: Vec::new() }
}

fn ended(app: AppRecord) -> Look {
    Look { alive: Vec::new(), over: vec![app] }
}

/// Group, containers, memory, GPUs, duration.
fn short(rows: &[Vec<WorkloadRow>]) -> Vec<(&str, u64, u64, u64, f64)> {
    let rows = rows.iter().flatten();
    rows.map(|row| (row.group.as_str(), row.containers, row.memory_mb, row.gpus, row.duration_s)).collect()
}

#[test]
fn tasks_are_counted_and_last_as_long_as_they_worked_on_average() {
    let mut recorder = recorder();
    let mut take = |look| recorder.take(look);
    take(alive(asking(app("SPARK", 5), 2, TASK), seen(TASK, &[])));
    take(alive(app("SPARK", 10), seen(TASK, &[(1, 6), (2, 7)])));
    take(alive(app("SPARK", 20), seen(TASK, &[(2, 7), (3, 15)])));
    // 1: from 6 to 15; 2: from 7 to 25; 3: from 15 to 25.
    let used = MASTER.times(29) + TASK.times(37);
    let rows = take(ended(over("SPARK", 30, "SUCCEEDED", used)));
    // It is known to have waited from the first look on, to the first container's start.
    let waited = 1.0;
    assert_eq!(short(&rows), [("master", 1, 1024, 0, 29.0 - waited), ("p1", 3, 2048, 0, 12.333)]);
    assert!(rows[0].iter().all(|row| row.shape == JobShape::Tasks && row.queue == "root.a"));
    assert_eq!(recorder.summary.exact, 1);
}

/// Maps (priority 20) come before reduces (10), whatever the numbers.
#[test]
fn stages_stand_in_the_order_in_which_they_started() {
    let mut recorder = recorder();
    let mut both = seen(TASK, &[(1, 5), (2, 8)]).unwrap();
    both.containers[1].priority = 20;
    both.containers[2].priority = 10;
    recorder.take(alive(app("MAPREDUCE", 10), Some(both)));
    let rows = recorder.finish();
    assert_eq!(short(&rows).iter().map(|row| row.0).collect::<Vec<_>>(), ["master", "p20", "p10"]);
}

/// A ResourceManager that has just restarted hears of containers one machine after the other.
#[test]
fn a_task_that_comes_back_is_one_task() {
    let mut recorder = recorder();
    recorder.take(alive(app("SPARK", 10), seen(TASK, &[(1, 5), (2, 5)])));
    recorder.take(alive(app("SPARK", 20), seen(TASK, &[(2, 5)])));
    recorder.take(alive(app("SPARK", 30), seen(TASK, &[(1, 5), (2, 5)])));
    recorder.take(alive(app("SPARK", 40), seen(TASK, &[(2, 5)])));
    recorder.take(alive(app("SPARK", 50), seen(TASK, &[])));
    // 1 until 35, 2 until 45.
    let rows = recorder.take(ended(over("SPARK", 55, "SUCCEEDED", MASTER.times(54) + TASK.times(70))));
    assert_eq!(short(&rows)[1], ("p1", 2, 2048, 0, 35.0));
}

#[test]
fn tasks_that_nobody_saw_are_added_from_the_totals() {
    let mut recorder = recorder();
    recorder.take(alive(app("MAPREDUCE", 10), seen(TASK, &[(1, 5)])));
    recorder.take(alive(app("MAPREDUCE", 20), seen(TASK, &[])));
    let used = MASTER.times(29) + TASK.times(100);
    let rows = recorder.take(ended(over("MAPREDUCE", 30, "FAILED", used)));
    assert_eq!(short(&rows)[1], ("p1", 10, 2048, 0, 10.0));
    assert_eq!(recorder.summary.doubts.get(&Doubt::Unseen), Some(&1));
    assert_eq!(recorder.summary.written.get("FAILED"), Some(&1));
}

/// YARN may hand out one container more than was asked for, and asks flicker upwards.
#[test]
fn a_gang_is_what_it_was_at_two_looks_in_a_row() {
    let mut recorder = recorder();
    recorder.take(alive(asking(app("TONY", 5), 3, WORKER), seen(WORKER, &[(1, 4)])));
    recorder.take(alive(app("TONY", 10), seen(WORKER, &[(1, 4), (2, 8), (3, 9)])));
    recorder.take(alive(app("TONY", 20), seen(WORKER, &[(1, 4), (2, 8)])));
    recorder.take(alive(app("TONY", 30), seen(WORKER, &[(1, 4)])));
    let rows = recorder.take(ended(over("TONY", 38, "SUCCEEDED", MASTER.times(37))));
    assert_eq!(short(&rows), [("master", 1, 1024, 0, 30.0), ("p1", 2, 4096, 1, 30.0)]);
    assert_eq!((recorder.summary.exact, recorder.summary.rows), (1, 2));
}

#[test]
fn a_gang_seen_complete_once_is_taken_and_doubted() {
    let mut recorder = recorder();
    recorder.take(alive(asking(app("TONY", 5), 1, WORKER), seen(WORKER, &[(1, 4), (2, 4)])));
    recorder.take(alive(app("TONY", 10), seen(WORKER, &[(1, 4), (2, 4), (3, 8)])));
    let rows = recorder.take(ended(over("TONY", 18, "KILLED", MASTER.times(17))));
    assert_eq!(short(&rows)[1], ("p1", 3, 4096, 1, 10.0));
    assert_eq!(recorder.summary.doubts.keys().collect::<Vec<_>>(), [&Doubt::SeenOnce]);
}

#[test]
fn a_gang_whose_members_end_by_the_second_look_keeps_them() {
    let mut recorder = recorder();
    recorder.take(alive(app("TONY", 10), seen(WORKER, &[(1, 4), (2, 4), (3, 5)])));
    recorder.take(alive(app("TONY", 20), seen(WORKER, &[(1, 4)])));
    let rows = recorder.take(ended(over("TONY", 21, "SUCCEEDED", MASTER.times(20))));
    assert_eq!(short(&rows)[1], ("p1", 3, 4096, 1, 16.0));
    assert_eq!(recorder.summary.doubts.keys().collect::<Vec<_>>(), [&Doubt::SeenOnce]);
}

/// Its asks were not told yet when its first containers came: that is not all of it.
#[test]
fn containers_that_came_after_the_asks_were_told_wait_for_the_next_look() {
    let mut recorder = recorder();
    recorder.take(alive(app("TONY", 5), seen(WORKER, &[(1, 6), (2, 6)])));
    recorder.take(alive(asking(app("TONY", 10), 2, WORKER), seen(WORKER, &[(1, 6), (2, 6)])));
    assert!(recorder.take(ended(over("TONY", 20, "FAILED", MASTER.times(19)))).is_empty());
    assert_eq!(recorder.summary.skipped.get(&Skip::NeverComplete), Some(&1));
}

#[test]
fn a_gang_complete_between_two_looks_is_told_from_totals() {
    let mut recorder = recorder();
    recorder.take(alive(asking(app("TONY", 5), 2, WORKER), seen(WORKER, &[])));
    let used = MASTER.times(29) + WORKER.times(40);
    let rows = recorder.take(ended(over("TONY", 30, "SUCCEEDED", used)));
    assert_eq!(short(&rows), [("master", 1, 1024, 0, 20.0), ("containers", 2, 4096, 1, 20.0)]);
    assert_eq!(recorder.summary.doubts.keys().collect::<Vec<_>>(), [&Doubt::FromTotals]);
}

#[test]
fn one_that_the_resource_manager_forgets_ends_where_it_was_last_seen() {
    let mut recorder = recorder();
    recorder.take(alive(app("SPARK", 10), seen(TASK, &[(1, 5)])));
    assert!(recorder.take(Look::default()).is_empty(), "it may have restarted a moment ago");
    let rows = recorder.take(Look::default());
    assert_eq!(short(&rows), [("master", 1, 1024, 0, 9.0), ("p1", 1, 2048, 0, 5.0)]);
    assert_eq!(recorder.summary.doubts.keys().collect::<Vec<_>>(), [&Doubt::Vanished]);
    assert!(recorder.take(alive(app("SPARK", 40), seen(TASK, &[(1, 5)]))).is_empty());
    assert!(recorder.finish().is_empty(), "it is written once");
}

#[test]
fn each_that_cannot_be_used_is_counted_by_its_reason() {
    let used = MASTER.times(5);
    let table = [
        (AppRecord { launched: Launch::Never, ..over("YARN", 5, "KILLED", Resources::default()) }, Skip::NeverStarted),
        (AppRecord { launched: Launch::At(5000), ..over("YARN", 5, "KILLED", used) }, Skip::NoRunTime),
    ];
    for (app, skip) in table {
        let mut recorder = recorder();
        assert!(recorder.take(ended(app)).is_empty());
        assert_eq!(recorder.summary.skipped.into_iter().collect::<Vec<_>>(), [(skip, 1)]);
    }
    let mut recorder = recorder();
    let waiting = AppRecord { state: "ACCEPTED".into(), launched: Launch::Never, ..app("YARN", 5) };
    recorder.take(alive(waiting, Some(Seen::default())));
    assert!(recorder.finish().is_empty());
    assert_eq!(recorder.summary.skipped.into_iter().collect::<Vec<_>>(), [(Skip::NotYetStarted, 1)]);
}

/// Before 3.3 only the submission is told.
#[test]
fn without_a_launch_the_run_time_is_doubted() {
    let mut recorder = recorder();
    let app = AppRecord { launched: Launch::NotTold, ..over("YARN", 10, "SUCCEEDED", MASTER.times(10)) };
    assert_eq!(short(&recorder.take(ended(app))), [("alone", 1, 1024, 0, 10.0)]);
    assert_eq!(recorder.summary.doubts.len(), 2);
}
