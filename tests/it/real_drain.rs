//! Workers leave a real cluster: at the time-out and not before, not at all when demand returns, never from under work
//! that has just come, and the idle ones first.
#![expect(clippy::disallowed_methods, reason = "work is aimed at an instant inside a tick")]

use std::time::Duration;

use serde_json::Value;

use crate::{
    daemon::{Daemon, Trial, decisions, state},
    lab::{Gangs, Lab, LabOptions, eventually},
    onlooker::{
        Recorder, SOON, actions, application, await_working, end, events, excluded, host, is_cordoned, master_host,
        node, notes, submit_sleeper, total, was_said,
    },
};

/// What the lab's nodes declare: memory in MB, cores, GPUs.
const FULL: (u64, u64, u64) = (12_288, 8, 1);

/// Three workers with a GPU each, so that each is on a node of its own; with little memory, so that one node would do.
fn on_three_nodes() -> Gangs {
    let duration = Duration::from_secs(600);
    Gangs { workers: 3, worker_memory_mb: 1024, ps: 0, am_memory_mb: 512, duration, ..Gangs::default() }
}

/// Two workers are to stay, the fewest that a policy may say.
fn quick(max: u32) -> Trial {
    Trial { min: 2, max, cooldown: "4s", options: vec!["--poll-interval=4s".to_owned()], ..Trial::default() }
}

/// The first host that was chosen to leave.
fn first_chosen(lab: &Lab) -> String {
    eventually("a worker is chosen to leave", SOON, || !actions(lab, "cordon").is_empty());
    actions(lab, "cordon")[0]["node"]["host"].as_str().unwrap().to_owned()
}

#[test]
fn a_drain_ends_at_its_time_out_and_not_before_and_what_was_ended_is_told() {
    let lab = Lab::up(LabOptions { nodes: 3, ..LabOptions::default() });
    lab.submit_gangs(&on_three_nodes());
    await_working(&lab, 1);
    let _daemon = Daemon::start(&lab, &Trial { graceful_timeout: "10s", ..quick(3) });

    let leaving = first_chosen(&lab);
    eventually("YARN ends what still runs there", SOON, || !events(&lab, "lost").is_empty());
    let decommission = decisions(&lab).into_iter().find(|one| one["actions"][0]["action"] == "decommission").unwrap();
    let began = chrono::DateTime::parse_from_rfc3339(decommission["at"].as_str().unwrap()).unwrap();
    let lost = events(&lab, "lost");
    assert_eq!((lost.len(), &lost[0]["node"]), (1, &Value::from(leaving.clone())), "{lost:?}");
    let after_ms = lost[0]["at"].as_i64().unwrap() - began.timestamp_millis();
    // YARN looks at its deadlines every 20 s, and at each heartbeat.
    assert!((10_000..35_000).contains(&after_ms), "ended after {after_ms} ms");

    eventually("the worker is deleted", SOON, || lab.instances("primary").len() == 2);
    eventually("the exclude file is as before", SOON, || !excluded(&lab).contains(&leaving));
    eventually("nothing is remembered of it", SOON, || state(&lab)["drains"].as_object().unwrap().is_empty());
    let told: Vec<_> = notes(&lab).into_iter().filter(|note| note.contains("graceful decommission time-out")).collect();
    assert!(told.len() == 1 && told[0].contains(&leaving) && told[0].contains("1 container"), "{told:?}");
}

#[test]
fn returning_demand_takes_leaving_workers_back_on_hadoop_3_3() {
    returning_demand_takes_leaving_workers_back("3.3.6");
}

#[test]
fn returning_demand_takes_leaving_workers_back_on_hadoop_3_4() {
    returning_demand_takes_leaving_workers_back("3.4.3");
}

fn returning_demand_takes_leaving_workers_back(hadoop_version: &'static str) {
    let lab = Lab::up(LabOptions { hadoop_version, nodes: 3, ..LabOptions::default() });
    let _daemon = Daemon::start(&lab, &quick(3));

    // While it is cordoned: nothing runs anywhere, so that it will not be long.
    let leaving = first_chosen(&lab);
    let sleepers = three_large_sleepers(&lab);
    eventually("all run", SOON, || sleepers.iter().all(|id| master_host(&lab, id).is_some()));
    assert_eq!(total(&node(&lab, &leaving)), FULL);
    assert_eq!((actions(&lab, "uncordon").len(), actions(&lab, "decommission").len()), (1, 0));

    // While it is decommissioning, with a container on it.
    lab.submit_gangs(&on_three_nodes());
    await_working(&lab, 1);
    sleepers.iter().for_each(|id| end(&lab, id));
    eventually("a worker with a container drains", SOON, || !lab.hosts("DECOMMISSIONING").is_empty());
    let leaving = lab.hosts("DECOMMISSIONING").remove(0);
    assert!(excluded(&lab).contains(&leaving));
    let sleepers = three_large_sleepers(&lab);
    eventually("all run again", SOON, || sleepers.iter().all(|id| master_host(&lab, id).is_some()));

    let back = node(&lab, &leaving);
    assert_eq!((&back["state"], total(&back)), (&Value::from("RUNNING"), FULL));
    assert_eq!(back["numContainers"], 2, "the gang's worker that was there, and a sleeper");
    assert_eq!(actions(&lab, "recommission").len(), 1);
    assert!(!excluded(&lab).contains(&leaving));
    eventually("nothing leaves", SOON, || state(&lab)["drains"].as_object().unwrap().is_empty());
    assert_eq!(actions(&lab, "create"), Vec::<Value>::new(), "taken back, not replaced");
    assert_eq!(events(&lab, "lost"), Vec::<Value>::new());
}

/// Each needs a node of its own.
fn three_large_sleepers(lab: &Lab) -> Vec<String> {
    (0..3).map(|_| submit_sleeper(lab, 8192, 600)).collect()
}

#[test]
fn work_that_comes_at_the_moment_of_a_scale_down_is_not_lost() {
    let lab = Lab::up(LabOptions { nodes: 5, ..LabOptions::default() });
    let recorder = Recorder::of(&lab);
    let _daemon = Daemon::start(&lab, &Trial { provider_command: recorder.command(), ..quick(5) });
    let mut sleepers = Vec::new();
    for round in 1..=2 {
        sleepers.extend(fire_before_each_third_look(&lab, &recorder, actions(&lab, "cordon").len()));
        // And some that come between the cordon and the decommission.
        sleepers.extend((0..2).map(|_| submit_sleeper(&lab, 512, 3)));
        eventually("the chosen ones are gone", SOON, || lab.instances("primary").len() == 2);
        if round == 1 {
            let large: Vec<_> = (0..5).map(|_| submit_sleeper(&lab, 10_240, 600)).collect();
            eventually("the cluster has grown", SOON, || large.iter().all(|id| master_host(&lab, id).is_some()));
            large.iter().for_each(|id| end(&lab, id));
        }
    }
    eventually("all sleepers wake", SOON, || sleepers.iter().all(|id| application(&lab, id)["state"] == "FAILED"));
    let ends = sleepers.iter().map(|id| application(&lab, id)["diagnostics"].as_str().unwrap().to_owned());
    let lost: Vec<_> = ends.filter(|end| !end.contains("exitCode: 0")).collect();
    assert!(lost.is_empty(), "{} of {} were lost: {lost:#?}", lost.len(), sleepers.len());
    assert!(!notes(&lab).iter().any(|note| note.contains("lost")), "{:?}", notes(&lab));
}

/// Before every third look at YARN each node is given an application of its own, until workers are chosen to leave: then
/// their first containers are less than a second old, and that is what YARN-11421 kills. (Decommissioned without a cordon
/// before, they are: this test then fails.)
fn fire_before_each_third_look(lab: &Lab, recorder: &Recorder, cordons: usize) -> Vec<String> {
    let mut sleepers = Vec::new();
    // From a look, two seconds before the one that is aimed at. YARN places within a second of it.
    for offset_ms in [1000, 800, 1200, 600, 1400, 900, 1100].into_iter().cycle() {
        recorder.await_ticks(1);
        std::thread::sleep(Duration::from_millis(offset_ms));
        sleepers.extend((0..5).map(|_| submit_sleeper(lab, 6_200, 2)));
        recorder.await_ticks(2);
        if actions(lab, "cordon").len() > cordons {
            break;
        }
        assert!(sleepers.len() < 100, "the cluster does not shrink");
    }
    sleepers
}

#[test]
fn idle_workers_leave_before_busy_ones_and_the_one_with_the_master_stays() {
    let lab = Lab::up(LabOptions { nodes: 5, ..LabOptions::default() });
    // The master and a worker on the last node, others on the two before it: by their names these would be chosen.
    let blockers = one_blocker_on_each_node(&lab);
    end(&lab, &blockers[4]);
    lab.submit_gangs(&on_three_nodes());
    eventually("the first worker has come", SOON, || node(&lab, &host(&lab, 4))["numContainers"] == 2);
    end(&lab, &blockers[3]);
    end(&lab, &blockers[2]);
    await_working(&lab, 1);
    end(&lab, &blockers[1]);
    end(&lab, &blockers[0]);

    let _daemon = Daemon::start(&lab, &quick(5));
    eventually("the idle ones are gone", SOON, || lab.instances("primary").len() == 3);
    let chosen = actions(&lab, "cordon");
    let chosen: Vec<_> = chosen.iter().map(|one| one["node"]["host"].as_str().unwrap()).collect();
    assert_eq!(chosen, [host(&lab, 1), host(&lab, 0), host(&lab, 3)], "idle, idle, busy");
    assert_eq!(lab.hosts("DECOMMISSIONING"), [host(&lab, 3)]);
    assert_eq!(lab.hosts("RUNNING"), [host(&lab, 2), host(&lab, 4)]);
    assert!(was_said(&lab, "draining") && !is_cordoned(&node(&lab, &host(&lab, 4))));
    assert_eq!(events(&lab, "lost"), Vec::<Value>::new());
}

/// An application on each node that leaves no room there; in the order of the nodes.
fn one_blocker_on_each_node(lab: &Lab) -> Vec<String> {
    let mut blockers: Vec<_> = lab.nodes().iter().map(|_| submit_sleeper(lab, FULL.0, 600)).collect();
    eventually("every node is full", SOON, || blockers.iter().all(|id| master_host(lab, id).is_some()));
    blockers.sort_by_key(|id| master_host(lab, id));
    blockers
}
