//! Recorded answers of real ResourceManagers, and answers as other versions would give them.

use std::{fmt::Write, fs, path::PathBuf};

use yarn_autoscaler::{
    model::{NodeState, Observation, Resources},
    yarn::{
        observation::{Answers, asks_are_hidden, observation},
        wire,
    },
};

use crate::big_cluster;

fn fixtures(version: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/yarn").join(version)
}

/// The states of which all five answers were recorded, by name.
fn states(version: &str) -> Vec<String> {
    let files = fs::read_dir(fixtures(version)).expect("fixtures");
    let names = files.map(|file| file.expect("fixture").file_name().into_string().expect("UTF-8"));
    let mut states: Vec<_> = names.filter_map(|name| Some(name.strip_suffix("-nodes.json")?.to_owned())).collect();
    states.sort();
    states
}

fn recorded(version: &str, state: &str) -> Answers {
    let body = |endpoint: &str| fs::read(fixtures(version).join(format!("{state}-{endpoint}.json"))).expect(endpoint);
    Answers {
        info: wire::info(&body("info")).expect("info"),
        metrics: wire::metrics(&body("metrics")).expect("metrics"),
        nodes: wire::nodes(&body("nodes")).expect("nodes"),
        applications: wire::applications(&body("apps")).expect("apps"),
        scheduler_pending: Some(wire::scheduler_pending(&body("scheduler")).expect("scheduler")),
    }
}

fn amount(amount: Resources) -> String {
    format!("{} MB {} vcores {} gpus", amount.memory_mb, amount.vcores, amount.gpus)
}

/// An observation as a person would note it down.
fn rendered(observation: &Observation) -> String {
    let m = &observation.metrics;
    let mut out = format!("Hadoop {}, started on {}\n", observation.version, observation.started_on_ms);
    for (name, value) in
        [("pending", m.pending), ("available", m.available), ("allocated", m.allocated), ("reserved", m.reserved)]
    {
        writeln!(out, "{name:>9}: {}", amount(value)).expect("string");
    }
    writeln!(out, "containers: {} pending, {} allocated", m.containers_pending, m.containers_allocated)
        .expect("string");
    for node in &observation.nodes {
        let (id, state) = (&node.id, format!("{:?}", node.state));
        let (used, total) = (amount(node.used), amount(node.total));
        writeln!(out, "node {id} {state}: {} containers use {used} of {total}", node.containers).expect("string");
    }
    for app in &observation.applications {
        let master = app.master_host.as_deref().unwrap_or("nowhere");
        let state = if app.running { "RUNNING" } else { "ACCEPTED" };
        let holds = app.running_containers.map_or("?".into(), |n| n.to_string());
        let number = &app.id[app.id.len() - 4..];
        let kind = &app.application_type;
        writeln!(out, "app {number} {kind} {} {state}: master on {master}, holds {holds}", app.queue).expect("string");
        for ask in &app.asks {
            let (n, priority) = (ask.containers, ask.priority);
            writeln!(out, "    asks {n} x {} (priority {priority})", amount(ask.resources)).expect("string");
        }
    }
    out
}

fn all_states(version: &str) -> String {
    let mut out = String::new();
    for state in states(version) {
        let answers = recorded(version, &state);
        let hidden = asks_are_hidden(&answers.metrics, &answers.applications);
        let observation = observation(answers).expect(&state);
        let note = if hidden { " (asks hidden)" } else { "" };
        writeln!(out, "== {state}{note}\n{}", rendered(&observation)).expect("string");
    }
    out
}

#[test]
fn every_recorded_state_of_3_3_6_reads_into_an_observation() {
    insta::assert_snapshot!(all_states("3.3.6"));
}

#[test]
fn every_recorded_state_of_3_4_3_reads_into_an_observation() {
    insta::assert_snapshot!(all_states("3.4.3"));
}

#[test]
fn the_asks_and_the_scheduler_agree_on_pending_gpus() {
    for version in ["3.3.6", "3.4.3"] {
        for state in states(version) {
            let mut answers = recorded(version, &state);
            let told = answers.scheduler_pending.take().expect("recorded").gpus;
            let seen = observation(answers).expect("observation");
            assert_eq!(seen.metrics.pending.gpus, told, "{version} {state}");
        }
    }
}

#[test]
fn a_standby_and_a_beginner_are_not_active() {
    let standby = fs::read(fixtures("3.3.6").join("ha-standby-info.json")).expect("fixture");
    assert!(!wire::info(&standby).expect("info").is_active());
    let active = fs::read(fixtures("3.3.6").join("ha-active-info.json")).expect("fixture");
    assert!(wire::info(&active).expect("info").is_active());
    let beginner = br#"{"clusterInfo":{"startedOn":1,"haState":"INITIALIZING","state":"STARTED"}}"#;
    assert!(!wire::info(beginner).expect("info").is_active());
    let single = br#"{"clusterInfo":{"startedOn":"1"}}"#;
    assert!(wire::info(single).expect("info").is_active());
}

#[test]
fn empty_lists_come_in_every_shape() {
    for empty in [r#"null"#, "{}", r#""""#, "[]", r#"{"node":null}"#, r#"{"node":[]}"#, r#"{"node":{}}"#] {
        assert_eq!(wire::nodes(format!(r#"{{"nodes":{empty}}}"#).as_bytes()), Ok(vec![]), "{empty}");
        let apps = format!(r#"{{"apps":{}}}"#, empty.replace("node", "app"));
        assert_eq!(wire::applications(apps.as_bytes()), Ok(vec![]), "{empty}");
    }
    assert_eq!(wire::nodes(b" {} \n"), Ok(vec![]), "3.5 leaves empty collections out");
}

#[test]
fn an_answer_to_something_else_is_not_an_empty_list() {
    for other in [r#"{"RemoteException":{"exception":"WebApplicationException"}}"#, "null", "17", "", "{", "<html>"] {
        assert!(wire::nodes(other.as_bytes()).is_err(), "{other}");
        assert!(wire::applications(other.as_bytes()).is_err(), "{other}");
        assert!(wire::metrics(other.as_bytes()).is_err(), "{other}");
        assert!(wire::info(other.as_bytes()).is_err(), "{other}");
        assert!(wire::scheduler_pending(other.as_bytes()).is_err(), "{other}");
    }
}

#[test]
fn one_node_may_stand_where_a_list_is_meant_and_numbers_may_be_quoted() {
    let body = br#"{"nodes":{"node":{"id":"w-1:8041","nodeHostName":"w-1","state":"RUNNING","numContainers":"2",
        "lastHealthUpdate":"5","usedMemoryMB":"512","availMemoryMB":7680.0,"usedVirtualCores":1,"availableVirtualCores":7,
        "someday":{"a":1,"a":2}}}}"#;
    let node = &wire::nodes(body).expect("nodes")[0].node;
    assert_eq!((node.used, node.total), (Resources::new(512, 1, 0), Resources::new(8192, 8, 0)), "3.2 has no total");
    assert_eq!(node.containers, 2);
}

#[test]
fn an_overdrawn_node_without_a_total_is_what_it_may_hand_out() {
    let body = br#"{"nodes":{"node":[{"id":"w-1:8041","state":"RUNNING","usedMemoryMB":512,"availMemoryMB":-511}]}}"#;
    let node = &wire::nodes(body).expect("nodes")[0].node;
    assert_eq!((node.id.host.as_str(), node.total.memory_mb), ("w-1", 1));
    assert!(node.is_cordoned());
}

#[test]
fn a_state_of_the_future_is_unknown_and_no_capacity() {
    let body = br#"{"nodes":{"node":[{"id":"w-1:8041","nodeHostName":"w-1","state":"HIBERNATING"}]}}"#;
    assert_eq!(wire::nodes(body).expect("nodes")[0].node.state, NodeState::Unknown);
}

#[test]
fn a_host_that_registered_again_on_another_port_is_one_node() {
    let body = br#"{"nodes":{"node":[
        {"id":"w-1:40001","nodeHostName":"w-1","state":"LOST","lastHealthUpdate":90},
        {"id":"w-1:40002","nodeHostName":"w-1","state":"RUNNING","lastHealthUpdate":10},
        {"id":"w-1:40003","nodeHostName":"w-1","state":"RUNNING","lastHealthUpdate":20},
        {"id":"w-2:40001","nodeHostName":"w-2","state":"SHUTDOWN","lastHealthUpdate":10},
        {"id":"w-2:40002","nodeHostName":"w-2","state":"LOST","lastHealthUpdate":20}]}}"#;
    let mut answers = recorded("3.3.6", "idle");
    answers.nodes = wire::nodes(body).expect("nodes");
    let seen = observation(answers).expect("observation");
    let ids: Vec<_> = seen.nodes.iter().map(|node| node.id.to_string()).collect();
    assert_eq!(ids, ["w-1:40003", "w-2:40002"]);
}

/// Asks as the documentation writes them, with wishes for hosts and racks, an empty one, and one with constraints.
#[test]
fn an_ask_counts_once_however_often_it_is_written() {
    let body = br#"{"apps":{"app":{"id":"application_1_0001","state":"RUNNING","masterNodeId":"","runningContainers":-1,
        "amHostHttpAddress":"w-9:8042","resourceRequests":[
        {"priority":{"priority":20},"resourceName":"*","numContainers":3,"capability":{"memory":1024,"virtualCores":2}},
        {"priority":{"priority":20},"resourceName":"/rack","numContainers":3,"capability":{"memory":1024,"virtualCores":2}},
        {"priority":{"priority":20},"resourceName":"w-1","numContainers":3,"capability":{"memory":1024,"virtualCores":2}},
        {"priority":1,"resourceName":"*","numContainers":0,"capability":{"memory":1024,"vCores":2}},
        {"priority":2,"numContainers":"1","capability":{"memory":"64","vCores":"1","resourceInformations":
            {"resourceInformation":{"name":"yarn.io/gpu","value":"4"}}}}]}}}"#;
    let app = &wire::applications(body).expect("apps")[0];
    let asks: Vec<_> = app.asks.iter().map(|ask| (ask.containers, ask.priority, ask.resources)).collect();
    assert_eq!(asks, [(3, 20, Resources::new(1024, 2, 0)), (1, 2, Resources::new(64, 1, 4))]);
    assert_eq!((app.master_host.as_deref(), app.running_containers), (Some("w-9"), None));
}

#[test]
fn applications_come_by_age_and_only_those_that_live() {
    let app = |number: &str, state: &str| format!(r#"{{"id":"application_7_{number}","state":"{state}"}}"#);
    let apps = [app("10000", "RUNNING"), app("9999", "ACCEPTED"), app("0001", "KILLED"), app("0002", "NEW_SAVING")];
    let body = format!(r#"{{"apps":{{"app":[{}]}}}}"#, apps.join(","));
    let read = wire::applications(body.as_bytes()).expect("apps");
    assert_eq!(
        read.iter().map(|app| app.id.as_str()).collect::<Vec<_>>(),
        ["application_7_9999", "application_7_10000"]
    );
}

#[test]
fn pending_below_zero_is_zero_and_pending_untold_comes_from_the_asks() {
    let told =
        br#"{"clusterMetrics":{"pendingMB":-1024,"pendingVirtualCores":-1,"allocatedMB":-5,"containersPending":-1}}"#;
    let mut answers = recorded("3.3.6", "ds-gpu-pending");
    answers.metrics = wire::metrics(told).expect("metrics");
    let seen = observation(answers.clone()).expect("observation").metrics;
    assert_eq!((seen.pending, seen.allocated.memory_mb, seen.containers_pending), (Resources::new(0, 0, 4), 0, 0));

    let untold = br#"{"clusterMetrics":{"allocatedMB":1,"containersPending":4}}"#;
    answers.metrics = wire::metrics(untold).expect("metrics");
    let seen = observation(answers).expect("observation").metrics;
    assert_eq!(seen.pending, Resources::new(2048, 4, 4));
}

#[test]
fn missing_is_not_zero() {
    for metrics in [r#"{"clusterMetrics":{"availableMB":1}}"#, r#"{"clusterMetrics":null}"#, "{}"] {
        assert!(wire::metrics(metrics.as_bytes()).is_err(), "{metrics}");
    }
    let mut answers = recorded("3.3.6", "idle");
    answers.nodes.clear();
    let error = observation(answers).expect_err("three active nodes are counted");
    assert_eq!(error.to_string(), "/metrics counts 3 active nodes and /nodes lists none");
}

/// As measured: with GPU containers on a cordoned node, `/metrics` says that nothing at all is available.
#[test]
fn a_cordoned_node_with_containers_takes_nothing_from_what_others_have_free() {
    let mut answers = recorded("3.3.6", "idle");
    answers.nodes.truncate(2);
    answers.nodes[0].node.total = Resources::new(1, 1, 0);
    answers.nodes[0].node.used = Resources::new(512, 2, 1);
    let seen = observation(answers).expect("observation").metrics;
    assert_eq!(seen.available, Resources::new(8192, 8, 2));
}

#[test]
fn the_nodes_and_the_metrics_agree_on_what_is_available() {
    for version in ["3.3.6", "3.4.3"] {
        for state in states(version) {
            let raw = fs::read(fixtures(version).join(format!("{state}-metrics.json"))).expect("metrics");
            let raw: serde_json::Value = serde_json::from_slice(&raw).expect("JSON");
            let told = &raw["clusterMetrics"];
            let seen = observation(recorded(version, &state)).expect("observation").metrics;
            assert_eq!(told["availableMB"], seen.available.memory_mb, "{version} {state}");
            assert_eq!(told["availableVirtualCores"], seen.available.vcores, "{version} {state}");
        }
    }
}

#[test]
fn hidden_asks_are_made_up_for_by_the_scheduler() {
    let mut answers = recorded("3.3.6", "ds-gpu-pending");
    assert!(!asks_are_hidden(&answers.metrics, &answers.applications));
    answers.applications.iter_mut().for_each(|app| app.asks.clear());
    assert!(asks_are_hidden(&answers.metrics, &answers.applications));
    let seen = observation(answers).expect("observation").metrics;
    assert_eq!(seen.pending, Resources::new(2048, 4, 4));
}

#[test]
fn a_partition_named_star_repeats_the_others() {
    let row = |name: &str, gpus: u64| {
        format!(
            r#"{{"partitionName":"{name}","pending":{{"memory":0,"vCores":0,"resourceInformations":{{"resourceInformation":[{{"name":"yarn.io/gpu","value":{gpus}}}]}}}}}}"#
        )
    };
    let leaf = format!(r#"{{"resources":{{"resourceUsagesByPartition":[{},{}]}}}}"#, row("", 4), row("*", 4));
    let parent = format!(
        r#"{{"queues":{{"queue":[{leaf},{leaf}]}},"resources":{{"resourceUsagesByPartition":{}}}}}"#,
        row("", 8)
    );
    let body =
        format!(r#"{{"scheduler":{{"schedulerInfo":{{"type":"capacityScheduler","queues":{{"queue":{parent}}}}}}}}}"#);
    assert_eq!(wire::scheduler_pending(body.as_bytes()).expect("scheduler").gpus, 8);
    let fair = br#"{"scheduler":{"schedulerInfo":{"type":"fairScheduler","rootQueue":{"childQueues":{"queue":[]}}}}}"#;
    assert_eq!(wire::scheduler_pending(fair), Ok(Resources::default()));
}

#[test]
fn a_large_cluster_is_read_whole() {
    let size = big_cluster::BIG;
    let answers = Answers {
        info: wire::info(big_cluster::info().as_bytes()).expect("info"),
        metrics: wire::metrics(big_cluster::metrics(size).as_bytes()).expect("metrics"),
        nodes: wire::nodes(big_cluster::nodes(size).as_bytes()).expect("nodes"),
        applications: wire::applications(big_cluster::apps(size).as_bytes()).expect("apps"),
        scheduler_pending: None,
    };
    assert!(!asks_are_hidden(&answers.metrics, &answers.applications));
    let seen = observation(answers).expect("observation");
    assert_eq!((seen.nodes.len(), seen.applications.len(), seen.metrics.containers_pending), (1_000, 1_000, 10_000));
    assert_eq!(seen.metrics.pending, Resources::new(36_864_000, 10_000, 8_000));
    assert_eq!(seen.metrics.allocated.gpus, 4_000);
}

mod garbage {
    use proptest::prelude::*;
    use yarn_autoscaler::yarn::wire;

    proptest! {
        /// Whatever is cut off or put in: an error or an answer, never a panic.
        #[test]
        fn never_panics(cut in 0usize..7000, at in 0usize..7000, byte: u8) {
            let mut body = include_bytes!("../fixtures/yarn/3.3.6/idle-nodes.json").to_vec();
            let index = at % body.len();
            body[index] = byte;
            body.truncate(cut);
            let _ = wire::nodes(&body);
            let _ = wire::applications(&body);
        }
    }
}
