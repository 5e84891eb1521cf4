//! YARN killed in parts, or answering nonsense, under a running daemon, on a real Hadoop.

use std::time::Duration;

use serde_json::Value;

use crate::{
    at_rest::{SOON, await_rest, leave_nothing, orders_taken, up},
    daemon::{Daemon, Trial, await_ticks, decisions, state},
    lab::{Gangs, Lab, LabOptions, eventually},
    proxy::{Mood, Proxy},
};

/// How long the daemon may take to look at a ResourceManager that hangs: the read's limit, not the whole tick's.
const LOOK_MAX: Duration = Duration::from_secs(15);

fn trial(min: u32, max: u32, options: &[&str]) -> Trial {
    let options = ["--poll-interval=4s"].iter().chain(options).map(|word| (*word).to_owned()).collect();
    Trial { min, max, cooldown: "1s", options, ..Trial::default() }
}

/// A member of 8 GB on each of so many nodes, which have no room for a second one.
fn one_on_each(workers: u32, seconds: u64) -> Gangs {
    let duration = Duration::from_secs(seconds);
    Gangs { workers, worker_memory_mb: 8192, ps: 0, am_memory_mb: 1024, duration, ..Gangs::default() }
}

/// Submits a gang and waits until all its members work: until then some are YARN's to forget.
#[track_caller]
fn await_gang(lab: &Lab, gang: &Gangs) {
    let ids = lab.submit_gangs(gang);
    let told = lab.dir.join("launcher").join(format!("{}.jsonl", ids[0]));
    let works = || std::fs::read_to_string(&told).unwrap_or_default().contains("\"working\"");
    eventually("all members of the gang work", SOON, works);
}

/// Waits until a worker that leaves is in this phase.
#[track_caller]
fn await_drain(lab: &Lab, phase: &str) {
    let is_there =
        || state(lab)["drains"].as_object().is_some_and(|drains| drains.values().any(|d| d["phase"]["phase"] == phase));
    eventually(&format!("a worker is {phase}"), SOON, is_there);
}

/// Waits until all applications are over; how the last one ended, and what it lost.
#[track_caller]
fn last_ended(lab: &Lab) -> (String, u64) {
    let last = lab.wait_apps(SOON).pop().unwrap();
    (last.final_status, last.lost)
}

/// What the NodeManager at this address would register with.
fn offers_mb(lab: &Lab, address: u32) -> u64 {
    let document = lab.get_from(&format!("{}.{address}:8042", lab.subnet), "/ws/v1/node/info");
    document["nodeInfo"]["totalPmemAllocatedContainersMB"].as_u64().unwrap()
}

fn restart_resource_manager(lab: &Lab) {
    lab.rm_kill();
    lab.rm_start();
}

#[test]
fn a_resource_manager_restarted_while_a_node_leaves_is_told_where_it_costs_and_ends_at_the_right_size() {
    let lab = Lab::up(LabOptions { nodes: 4, recovery: true, ..LabOptions::default() });
    let hold = ["--restart-hold=5s"];

    // Cordoned only: the new ResourceManager knows nothing of it, and nothing is lost.
    await_gang(&lab, &one_on_each(4, 20));
    let daemon = Daemon::start(&lab, &trial(3, 3, &hold));
    await_drain(&lab, "cordoned");
    // Its NodeManager has been told, too: that is what it registers with at the new ResourceManager.
    eventually("a NodeManager is cut down", SOON, || (11..15).any(|host| offers_mb(&lab, host) < 12_288));
    restart_resource_manager(&lab);
    await_rest(&lab, 3);
    assert_eq!(last_ended(&lab), ("SUCCEEDED".to_owned(), 0), "{}", daemon.log());
    assert!(daemon.log().contains("another ResourceManager has taken over"), "{}", daemon.log());
    assert!(!daemon.log().contains("is lost"), "{}", daemon.log());
    daemon.kill();

    // Decommissioning: the new one reads the exclude file and lets the node go with all that runs there.
    await_gang(&lab, &one_on_each(3, 300));
    let daemon = Daemon::start(&lab, &trial(2, 2, &hold));
    await_drain(&lab, "decommissioning");
    let told = daemon.log().matches("containers lost").count();
    restart_resource_manager(&lab);
    eventually("the loss is told", SOON, || daemon.log().matches("containers lost").count() > told);
    await_rest(&lab, 2);
    // The gang never ends: its master does not hear of the member that is gone. What ran elsewhere runs on.
    let running = lab.get("/ws/v1/cluster/apps?states=RUNNING")["apps"]["app"][0]["runningContainers"].clone();
    assert_eq!(running, 3, "a master and two of its three members\n{}", daemon.log());
    leave_nothing(&lab, daemon);
}

#[test]
fn a_dead_node_manager_is_no_capacity_and_its_machine_is_replaced_after_the_deadline() {
    let lab = Lab::up(LabOptions { nodes: 3, ..LabOptions::default() });
    let daemon = Daemon::start(&lab, &trial(3, 4, &["--ready-deadline=15s"]));
    await_ticks(&lab, 1);
    let dead = format!("{}.13", lab.subnet);
    lab.nm_kill(&dead);
    lab.submit_gangs(&one_on_each(3, 20));
    eventually("one is made for the one that is missing", SOON, || up(&lab) == (4, 3));
    eventually("YARN has lost the dead one", SOON, || lab.hosts("LOST") == [dead.clone()]);
    eventually("its machine is deleted", SOON, || lab.instances("primary").iter().all(|(_, host, _)| *host != dead));
    assert!(daemon.log().contains(&format!("replace {dead}")), "{}", daemon.log());
    await_rest(&lab, 3);
    assert_eq!(last_ended(&lab), ("SUCCEEDED".to_owned(), 0));
    assert_eq!((counts(&lab, "create"), counts(&lab, "delete")), (vec![1], vec![1]), "{}", daemon.log());
    leave_nothing(&lab, daemon);
}

/// How many machines each order that the provider has taken was for.
fn counts(lab: &Lab, method: &str) -> Vec<usize> {
    orders_taken(lab, method).iter().map(|order| order["names"].as_array().unwrap().len()).collect()
}

/// Every mood with what the log says of it: that the daemon knows what is wrong, and that it looks again each time.
const MOODS: [(Mood, &str); 8] = [
    (Mood::Error, "500"),
    (Mood::Garbage, "expected value"),
    (Mood::Truncated, "EOF"),
    (Mood::RedirectLoop, "redirect"),
    (Mood::Standby, "not ACTIVE"),
    (Mood::HangsUp, "connection"),
    (Mood::Silent, "no answer in time"),
    (Mood::Empty, "/metrics"),
];

#[test]
fn a_resource_manager_that_talks_nonsense_moves_nothing_and_is_believed_again_when_it_has_recovered() {
    let lab = Lab::up(LabOptions::default());
    let proxy = Proxy::before(&lab.rm_url);
    let trial = Trial { resource_managers: Some(vec![proxy.url()]), ..trial(2, 3, &[]) };
    proxy.set(Mood::HangsUp);
    let daemon = Daemon::start(&lab, &trial);

    lab.submit_gangs(&one_on_each(3, 2));
    eventually("the gang waits", SOON, || {
        lab.get("/ws/v1/cluster/metrics")["clusterMetrics"]["containersPending"] == 1
    });
    for (mood, word) in MOODS {
        misbehaves(&daemon, &proxy, mood, word);
    }
    assert_eq!((up(&lab), actions(&lab)), ((2, 2), vec![]), "nothing grows on nonsense\n{}", daemon.log());
    proxy.set(Mood::Honest);
    eventually("it grows", SOON, || up(&lab) == (3, 3));

    assert_eq!(last_ended(&lab), ("SUCCEEDED".to_owned(), 0));
    let before = actions(&lab);
    for (mood, word) in MOODS.into_iter().filter(|(mood, _)| matches!(mood, Mood::Error | Mood::Empty)) {
        misbehaves(&daemon, &proxy, mood, word);
    }
    assert_eq!((up(&lab), actions(&lab)), ((3, 3), before), "nothing shrinks on nonsense\n{}", daemon.log());
    proxy.set(Mood::Honest);
    await_rest(&lab, 2);
    leave_nothing(&lab, daemon);
}

/// Has the proxy misbehave until the daemon has looked and told of it.
#[track_caller]
fn misbehaves(daemon: &Daemon, proxy: &Proxy, mood: Mood, word: &str) {
    let before = daemon.log().len();
    proxy.set(mood);
    let is_told = |line: &str| line.contains("YARN does not answer") && line.contains(word);
    let told = || daemon.log()[before..].lines().any(is_told);
    eventually(&format!("{mood:?} is told with the word {word:?}"), LOOK_MAX, told);
}

/// All that was ever decided to be done.
fn actions(lab: &Lab) -> Vec<Value> {
    decisions(lab).iter().flat_map(|record| record["actions"].as_array().cloned().unwrap_or_default()).collect()
}
