//! The daemon killed between any two steps, signalled, and started twice, on a real Hadoop.

use std::{
    process::{Output, Stdio},
    time::{Duration, Instant, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    at_rest::{SOON, await_rest, leave_nothing, orders_taken, up},
    daemon::{Daemon, Trial, await_ticks, command, decisions, state},
    lab::{Gangs, Lab, LabOptions, eventually, processes_of},
};

/// How long an end may take.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Bounds that leave the daemon no choice: it makes the cluster this large.
fn exactly(workers: u32) -> Trial {
    let options = vec!["--poll-interval=4s".to_owned()];
    Trial { min: workers, max: workers, cooldown: "1s", options, ..Trial::default() }
}

/// Kills the daemon when `begun`, with the provider's process that hangs then, and starts it on what they left.
#[track_caller]
fn crash(lab: &Lab, daemon: Daemon, trial: &Trial, begun: impl Fn() -> bool) -> Daemon {
    eventually("the provider hangs", SOON, || begun() && hung_provider(lab).is_some());
    let hung = hung_provider(lab).unwrap();
    daemon.kill();
    kill_process(hung, Signal::KILL).unwrap();
    eventually("the provider is gone", SOON, || hung_provider(lab).is_none());
    lab.set_provider_faults(&json!({}));
    Daemon::start(lab, trial)
}

/// A process of the provider's. (Those of a daemon that is not in the middle of an order are gone in a moment.)
fn hung_provider(lab: &Lab) -> Option<Pid> {
    let is_provider = |line: &String| line.contains("local-yarn/provider --dir") && !line.contains("--policy");
    let line = processes_of(&lab.dir).into_iter().find(is_provider)?;
    Pid::from_raw(line.strip_prefix("/proc/")?.split_once(' ')?.0.parse().ok()?)
}

/// Whether an order of this kind is intended, and nobody has acknowledged it.
fn is_intended(lab: &Lab, kind: &str) -> bool {
    let state = state(lab);
    let mut operations = state["operations"].as_array().into_iter().flatten();
    operations.any(|operation| operation["intent"]["kind"] == kind && operation["operationId"].is_null())
}

/// Whether the provider has carried out so many orders of this kind.
fn are_carried_out(lab: &Lab, method: &str, orders: usize) -> bool {
    orders_taken(lab, method).iter().filter(|order| order["accepted"] == true).count() == orders
}

fn names(lab: &Lab) -> Vec<String> {
    lab.instances("primary").into_iter().map(|(name, _, _)| name).collect()
}

#[test]
fn a_daemon_killed_around_an_order_forgets_nothing_and_orders_nothing_twice() {
    let lab = Lab::up(LabOptions::default());

    // Between intent and order.
    lab.set_provider_faults(&json!({"hang": {"create": true}}));
    let daemon = Daemon::start(&lab, &exactly(3));
    let daemon = crash(&lab, daemon, &exactly(3), || is_intended(&lab, "create"));
    await_rest(&lab, 3);
    assert_eq!((orders_taken(&lab, "create").len(), &state(&lab)["orders"]), (1, &json!(1)));
    daemon.kill();

    // Between order and save.
    lab.set_provider_faults(&json!({"hangAfterOrder": {"create": true}}));
    let daemon = Daemon::start(&lab, &exactly(4));
    let daemon = crash(&lab, daemon, &exactly(4), || are_carried_out(&lab, "create", 2));
    await_rest(&lab, 4);
    assert_eq!((orders_taken(&lab, "create").len(), &state(&lab)["orders"]), (2, &json!(2)));
    daemon.kill();

    // Between intent and order of a delete, then between order and save.
    lab.set_provider_faults(&json!({"hang": {"delete": true}}));
    let daemon = Daemon::start(&lab, &exactly(3));
    let daemon = crash(&lab, daemon, &exactly(3), || is_intended(&lab, "delete"));
    await_rest(&lab, 3);
    daemon.kill();
    lab.set_provider_faults(&json!({"hangAfterOrder": {"delete": true}}));
    let daemon = Daemon::start(&lab, &exactly(2));
    let daemon = crash(&lab, daemon, &exactly(2), || are_carried_out(&lab, "delete", 2));
    await_rest(&lab, 2);
    assert_eq!((names(&lab), &state(&lab)["orders"]), (vec!["worker-0".to_owned(), "worker-1".into()], &json!(4)));
    assert_eq!((orders_taken(&lab, "create").len(), orders_taken(&lab, "delete").len()), (2, 2));

    // The provider's process outlives the daemon and takes the order late: after the next daemon has given it again.
    daemon.kill();
    lab.set_provider_faults(&json!({"slow": {"create": 4}}));
    let daemon = Daemon::start(&lab, &exactly(3));
    eventually("the provider is slow", SOON, || is_intended(&lab, "create") && hung_provider(&lab).is_some());
    let late = hung_provider(&lab);
    daemon.kill();
    lab.set_provider_faults(&json!({}));
    let daemon = Daemon::start(&lab, &exactly(3));
    eventually("the late one has answered nobody", SOON, || hung_provider(&lab) != late);
    await_rest(&lab, 3);
    assert_eq!((orders_taken(&lab, "create").len(), &state(&lab)["orders"]), (3, &json!(5)));
    leave_nothing(&lab, daemon);
}

/// Some moment in a daemon's first seconds. What it does there depends on the moment, so any may be the one that hurts.
fn some_moment(random: &mut u64) -> Duration {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    Duration::from_millis(50 + (*random >> 33) % 3000)
}

/// Kills a daemon at some moments, a new one in its place each time; returns the last one.
fn crash_at_some_moments(lab: &Lab, trial: &Trial, random: &mut u64, times: u32) -> Daemon {
    let mut daemon = Daemon::start(lab, trial);
    for _ in 0..times {
        // No condition to wait for: that the moment is any is the point.
        std::thread::sleep(some_moment(random));
        daemon.kill();
        daemon = Daemon::start(lab, trial);
    }
    daemon
}

#[test]
fn a_daemon_killed_at_any_moment_ends_at_the_right_size_and_loses_no_container() {
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().subsec_nanos();
    eprintln!("random moments from {seed}");
    let mut random = u64::from(seed);
    let lab = Lab::up(LabOptions { nodes: 1, node_memory_mb: 4096, ..LabOptions::default() });
    let daemon = crash_at_some_moments(&lab, &exactly(4), &mut random, 4);
    await_rest(&lab, 4);
    daemon.kill();
    // A member on each worker: those that leave have something to lose, and wait for it.
    lab.submit_gangs(&Gangs {
        workers: 4,
        worker_memory_mb: 2048,
        ps: 0,
        am_memory_mb: 1024,
        duration: Duration::from_secs(15),
        ..Gangs::default()
    });
    eventually("the gang runs", SOON, || lab.nodes().iter().all(|node| node["numContainers"].as_u64() > Some(0)));
    let daemon = crash_at_some_moments(&lab, &exactly(2), &mut random, 8);
    await_rest(&lab, 2);
    let ended: Vec<_> = lab.wait_apps(SOON).into_iter().map(|app| (app.final_status, app.lost)).collect();
    assert_eq!(ended, [("SUCCEEDED".to_owned(), 0)]);
    let created: u64 = orders_taken(&lab, "create").iter().map(names_in).sum();
    let deleted: u64 = orders_taken(&lab, "delete").iter().map(names_in).sum();
    assert_eq!((created, deleted), (3, 2), "nothing was ordered that was not needed");
    leave_nothing(&lab, daemon);
}

fn names_in(order: &Value) -> u64 {
    order["names"].as_array().unwrap().len() as u64
}

#[test]
fn signals_end_the_daemon_within_a_second_and_a_second_daemon_is_refused() {
    let lab = Lab::up(LabOptions::default());
    let trial = exactly(2);
    let first = Daemon::start(&lab, &trial);
    await_ticks(&lab, 1);

    let refused: Output = command(&lab, &trial, "run").stdout(Stdio::null()).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    assert!(said.contains(&format!("is held by pid {}", first.pid())), "{said}");
    await_ticks(&lab, 1);
    first.kill();

    for signal in [Signal::TERM, Signal::INT] {
        let daemon = Daemon::start(&lab, &trial);
        await_ticks(&lab, 1);
        ends_at_once(daemon, signal);
    }
    lab.set_provider_faults(&json!({"hang": {"describe": true}}));
    for signal in [Signal::TERM, Signal::INT] {
        let daemon = Daemon::start(&lab, &trial);
        eventually("the provider hangs", SOON, || hung_provider(&lab).is_some());
        ends_at_once(daemon, signal);
        // It would hang for a day; the kernel needs a moment to end what is killed.
        eventually("it takes its provider's process along", AT_ONCE, || hung_provider(&lab).is_none());
    }
    lab.set_provider_faults(&json!({}));
    let daemon = Daemon::start(&lab, &trial);
    await_ticks(&lab, 1);
    leave_nothing(&lab, daemon);
}

#[track_caller]
fn ends_at_once(mut daemon: Daemon, signal: Signal) {
    let began = Instant::now();
    daemon.signal(signal);
    while daemon.is_alive() {
        assert!(began.elapsed() < AT_ONCE, "it has not ended within a second after {signal:?}");
        std::thread::yield_now();
    }
    assert_eq!(daemon.await_end(Duration::ZERO).code(), Some(0), "{}", daemon.log());
}

#[test]
fn a_changed_policy_is_taken_and_an_invalid_one_is_told_while_evaluation_goes_on() {
    let lab = Lab::up(LabOptions::default());
    let trial = exactly(2);
    let policy = lab.dir.join("policy.yaml");
    let mut daemon = Daemon::start(&lab, &trial);
    lab.submit_gangs(&Gangs {
        workers: 3,
        worker_memory_mb: 8192,
        duration: Duration::from_secs(4),
        ..Gangs::default()
    });
    eventually("it wants more than the maximum", SOON, || has_reason(&lab, "reachedMaximum"));

    std::fs::write(&policy, Trial { max: 0, ..trial.clone() }.policy()).unwrap();
    let old_stays = "the old one stays in force";
    eventually("the invalid policy is told", SOON, || daemon.log().contains(old_stays));
    assert!(daemon.log().contains(&format!("{}:1:", policy.display())), "{}", daemon.log());
    await_ticks(&lab, 2);
    assert_eq!((up(&lab).0, daemon.is_alive()), (2, true));
    assert_eq!(daemon.log().matches(old_stays).count(), 1, "told once\n{}", daemon.log());

    // The same file again, as SIGHUP asks for it; then, without a signal, one that lets it grow.
    daemon.signal(Signal::HUP);
    eventually("SIGHUP is obeyed", SOON, || daemon.log().contains("SIGHUP: reading the policy again"));
    await_ticks(&lab, 2);
    std::fs::write(&policy, Trial { max: 3, ..trial.clone() }.policy()).unwrap();
    eventually("it grows", SOON, || up(&lab) == (3, 3));
    assert!(daemon.log().contains("the new one is in force"), "{}", daemon.log());
    let ended = lab.wait_apps(SOON);
    assert_eq!((ended[0].final_status.as_str(), ended[0].lost), ("SUCCEEDED", 0));

    std::fs::write(&policy, trial.policy()).unwrap();
    daemon.signal(Signal::HUP);
    await_rest(&lab, 2);
    leave_nothing(&lab, daemon);
}

fn has_reason(lab: &Lab, reason: &str) -> bool {
    decisions(lab).last().is_some_and(|record| record.to_string().contains(&format!("\"{reason}\"")))
}
