//! One scene on a real YARN and in the simulator: job order, sizes and times, side by side.

use std::{
    net::TcpStream,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::Value;
use yarn_autoscaler::sim::workload::{Job, Work, Workload};

use crate::{
    at_rest::await_rest,
    daemon::{Daemon, Trial, decisions},
    lab::{Gangs, Lab, LabOptions, eventually},
    onlooker::{SOON, events, host},
    side_by_side::{Played, PlayedJob, Resize},
    sim_side_by_side::{Pace, Reality, WORKERS_MAX, compare, median, millis, scene, trial},
};

/// The launcher sends its asks with its first heartbeat, so long after it has written that it asks.
const FIRST_HEARTBEAT_MS: f64 = 500.0;

#[test]
fn the_simulator_plays_a_scene_as_a_real_yarn_does() {
    let real = play(&trial(), &scene().1);
    // To keep a play: its file's name in this variable.
    if let Some(file) = std::env::var_os("KEEP_REAL_PLAY") {
        std::fs::write(file, serde_json::to_string_pretty(&real).unwrap()).unwrap();
    }
    compare(&real);
}

/// Plays the scene on a real YARN, from the daemon's first look to rest.
fn play(trial: &Trial, workload: &Workload) -> Reality {
    let lab = Lab::up(LabOptions::default());
    let daemon = Daemon::start(&lab, trial);
    eventually("the daemon looks", SOON, || !decisions(&lab).is_empty());
    let first_look = at(&decisions(&lab)[0]["at"]);
    let looks = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    let apps = thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                looks.lock().unwrap().push(Look {
                    at: now(),
                    running: lab.hosts("RUNNING").len(),
                    listening: listening(&lab),
                });
                thread::sleep(Duration::from_millis(100));
            }
        });
        // A client takes seconds to start on a busy machine; the next one does not wait for it.
        let clients: Vec<_> = workload.jobs.iter().map(|job| scope.spawn(|| submit(&lab, job, first_look))).collect();
        clients.into_iter().for_each(|client| client.join().unwrap());
        lab.wait_apps(SOON * 3);
        await_rest(&lab, 2);
        over.store(true, Ordering::Relaxed);
        lab.get("/ws/v1/cluster/apps")["apps"]["app"].as_array().unwrap().clone()
    });
    let reality = told(&lab, first_look, &apps, &looks.into_inner().unwrap());
    assert!(daemon.terminate().0.success());
    reality
}

fn submit(lab: &Lab, job: &Job, first_look: f64) {
    let Work::Gang { duration_ms, .. } = job.work else { panic!("{} is no gang", job.name) };
    thread::sleep(Duration::from_millis(millis(first_look + job.submit_ms as f64 - now())));
    lab.submit_gangs(&Gangs { workers: 3, duration: Duration::from_millis(duration_ms), ..Gangs::default() });
}

/// What is seen of the workers at an instant.
struct Look {
    at: f64,
    /// In YARN.
    running: usize,
    /// NodeManagers that serve.
    listening: usize,
}

fn listening(lab: &Lab) -> usize {
    (0..WORKERS_MAX).filter(|n| TcpStream::connect((host(lab, *n), 8041)).is_ok()).count()
}

/// What YARN, the masters and the decision log tell of the play.
fn told(lab: &Lab, first_look: f64, apps: &[Value], looks: &[Look]) -> Reality {
    let (asked, working) = (events(lab, "asked"), events(lab, "working"));
    let moment = |events: &[Value], app: &Value| {
        let event = events.iter().find(|event| event["application"] == app["id"]);
        event.map_or(f64::INFINITY, |event| event["at"].as_f64().unwrap())
    };
    let number = |app: &Value, field: &str| app[field].as_f64().unwrap();
    let first = apps.iter().map(|app| number(app, "startedTime")).fold(f64::INFINITY, f64::min);
    let since = |at: f64| (at - first) / 1000.0;
    let mut apps: Vec<_> = apps.iter().collect();
    apps.sort_by(|a, b| number(a, "startedTime").total_cmp(&number(b, "startedTime")));
    let first_ask = |app: &Value| moment(&asked, app) + FIRST_HEARTBEAT_MS;
    let job = |(index, app): (usize, &&Value)| PlayedJob {
        name: format!("gang-{}", index + 1),
        submit: since(number(app, "startedTime")),
        start: since(moment(&working, app)),
        end: since(number(app, "finishedTime")),
        succeeded: app["finalStatus"] == "SUCCEEDED",
    };
    let jobs = apps.iter().enumerate().map(job).collect();
    let resizes: Vec<_> = decisions(lab).iter().flat_map(|decision| resizes(decision, since)).collect();
    let masters = apps.iter().map(|app| first_ask(app) - number(app, "launchTime"));
    let asked = apps.iter().map(|app| since(first_ask(app))).collect();
    // From each order until there are so many.
    let until = |count: fn(&Look) -> usize| {
        let grows = resizes.iter().filter(|resize| resize.to > resize.from);
        let waits = grows.filter_map(|resize| {
            let came = looks.iter().find(|look| since(look.at) > resize.at && count(look) >= resize.to as usize)?;
            Some((since(came.at) - resize.at) * 1000.0)
        });
        median(waits.collect())
    };
    let (boot, create) = (until(|look| look.running), until(|look| look.listening));
    let pace = Pace { boot, create, master: median(masters.collect()) };
    let mut nodes: Vec<_> = looks.iter().map(|look| (since(look.at), u32::try_from(look.running).unwrap())).collect();
    nodes.dedup_by_key(|(_, count)| *count);
    let killed = u64::try_from(events(lab, "lost").len()).unwrap();
    Reality { played: Played { jobs, resizes, nodes, killed }, pace, asked, first_submit: first - first_look }
}

fn resizes(decision: &Value, since: impl Fn(f64) -> f64) -> Vec<Resize> {
    let at = since(at(&decision["at"]));
    let reasons = decision["reasons"].as_array().unwrap().iter();
    let ours = reasons.filter(|reason| reason["reason"] == "scaleUp" || reason["reason"] == "scaleDown");
    let size = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    ours.map(|reason| Resize { at, from: size(&reason["from"]), to: size(&reason["to"]) }).collect()
}

/// An instant of the decision log, in ms since 1970.
fn at(value: &Value) -> f64 {
    let at: DateTime<Utc> = value.as_str().unwrap().parse().unwrap();
    at.timestamp_millis() as f64
}

fn now() -> f64 {
    Utc::now().timestamp_millis() as f64
}
