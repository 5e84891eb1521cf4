//! From pending to the order sent, measured on a real cluster: at most one poll interval and the round trips.
#![expect(clippy::disallowed_methods, clippy::print_stderr, reason = "it is measured, and the figures are the result")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::{
    daemon::{Daemon, Trial, state},
    lab::{Lab, LabOptions, eventually},
    onlooker::{Recorder, SOON, master_host, submit_sleeper},
};

/// The default.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// One look at YARN, and the start of the provider's process, with much patience for a busy machine.
const ROUND_TRIPS: Duration = Duration::from_secs(3);

#[test]
fn an_order_follows_what_is_pending_within_one_poll_interval() {
    let lab = Lab::up(LabOptions::default());
    let recorder = Recorder::of(&lab);
    for _ in 0..2 {
        submit_sleeper(&lab, 10_240, 600);
    }
    let trial = Trial { max: 5, cooldown: "4s", provider_command: recorder.command(), ..Trial::default() };
    let _daemon = Daemon::start(&lab, &trial);
    let mut latencies = Vec::new();
    for round in 0..3 {
        await_readiness(&lab, &recorder);
        let sleeper = submit_sleeper(&lab, 10_240, 600);
        let pending_at = first_pending(&lab);
        eventually("workers are ordered", SOON, || recorder.requests("create").len() > round);
        latencies.push(recorder.requests("create")[round].0 - pending_at);
        eventually("the worker takes it", SOON, || master_host(&lab, &sleeper).is_some());
    }
    eprintln!("from pending to the order sent, in ms: {latencies:?}");
    let limit = u64::try_from((POLL_INTERVAL + ROUND_TRIPS).as_millis()).unwrap();
    assert!(latencies.iter().all(|latency| *latency < limit), "{latencies:?}");
}

/// Two quiet looks with no order open and the cooldown over: what is measured next is nothing but the poll.
fn await_readiness(lab: &Lab, recorder: &Recorder) {
    eventually("no order is open", SOON, || state(lab)["operations"] == json!([]));
    recorder.await_ticks(3);
}

/// The instant at which YARN first tells of something pending, in ms since 1970.
fn first_pending(lab: &Lab) -> u64 {
    let began = Instant::now();
    while lab.get("/ws/v1/cluster/metrics")["clusterMetrics"]["pendingMB"] == 0 {
        assert!(began.elapsed() < SOON, "nothing is pending");
        std::thread::sleep(Duration::from_millis(5));
    }
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}
