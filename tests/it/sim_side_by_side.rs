//! The scene that a real YARN and the simulator play: how the simulator is told of it, and what both are held to. Plays
//! of the real YARN that were kept are held against the simulator here, without any YARN.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};
use yarn_autoscaler::{
    model::GroupName,
    policy::{self, Algorithm, LoadOptions, Policy},
    sim::{
        Unwatched,
        run::{Run, run},
        scenario::{self, Delay, Fault, FaultEvent, Scenario},
        workload::{self, Workload},
    },
};

use crate::{
    daemon::Trial,
    side_by_side::{Played, differences, table},
};

/// The scene, in the simulator's words.
const SCENE: &str = include_str!("../scenarios/side-by-side.yaml");

/// Two workers grow to so many.
pub const WORKERS_MAX: u32 = 6;

/// What depends on the machine that plays the real scene, in ms.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Pace {
    /// From an order to the registration of its last worker.
    pub boot: f64,
    /// From an order to its end: the provider takes a machine for up as soon as its NodeManager listens.
    pub create: f64,
    /// From the launch of a master to its first ask.
    pub master: f64,
}

/// A play on the real YARN.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Reality {
    pub played: Played,
    pub pace: Pace,
    /// When each job's master asked for its gang, in seconds since the first submission.
    pub asked: Vec<f64>,
    /// From the daemon's first look to the first submission, in ms.
    pub first_submit: f64,
}

pub fn trial() -> Trial {
    Trial { max: WORKERS_MAX, cooldown: "8s", options: vec!["--poll-interval=4s".into()], ..Trial::default() }
}

#[test]
fn plays_of_a_real_yarn_that_were_kept_are_played_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/side-by-side");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        println!("\n{}", file.file_name().unwrap().display());
        compare(&serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap());
    }
}

/// Plays it in the simulator, says what was the same and what not, and fails where that is too much.
#[track_caller]
pub fn compare(real: &Reality) {
    let policy = policy_of(&trial());
    let (scenario, workload) = scene();
    let workload = as_submitted(workload, real);
    let scenario = at_the_pace(scenario, real);
    let simulate = |scenario: Scenario| {
        let plan = Run {
            scenario: Arc::new(scenario),
            workload: Arc::new(workload.clone()),
            policy: policy.clone(),
            policy_name: "trial".into(),
            seed: 1,
        };
        let outcome = run(&plan, &mut Unwatched);
        assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
        Played::of(&outcome, real.first_submit)
    };
    let simulated = simulate(scenario.clone());
    println!("measured, in ms: {:?}", real.pace);
    println!("{}", table(&real.played, &simulated));
    let found = differences(&real.played, &simulated);
    assert!(found.is_empty(), "{}", found.join("\n"));

    // The comparison sees a model that is wrong.
    for (wrong, scenario) in wrong_models(&scenario) {
        let found = differences(&real.played, &simulate(scenario));
        println!("with {wrong}: {} differences, the first: {}", found.len(), found.first().map_or("", String::as_str));
        assert!(!found.is_empty(), "nobody would see {wrong}");
    }
}

/// Scenes in which one thing is not as it is on the real YARN.
fn wrong_models(right: &Scenario) -> Vec<(&'static str, Scenario)> {
    let wrong = |change: fn(&mut Scenario)| {
        let mut scenario = right.clone();
        change(&mut scenario);
        scenario
    };
    vec![
        ("boots of 30 s", wrong(|scene| set_boot(scene, Duration::from_secs(30)))),
        ("masters that start in 20 s", wrong(|scene| scene.cluster.master_start = Duration::from_secs(20))),
        ("containers that start in 10 s", wrong(|scene| scene.cluster.container_start = Duration::from_secs(10))),
        ("heartbeats of 10 s", wrong(|scene| scene.cluster.heartbeat = Duration::from_secs(10))),
        ("a quota of four machines", wrong(|scene| scene.cloud.quota = Some(4))),
    ]
}

fn set_boot(scenario: &mut Scenario, boot: Duration) {
    if let Some(group) = scenario.cloud.groups.get_mut(&GroupName::Primary) {
        group.boot = Delay::Fixed(boot);
    }
    scenario.events.clear();
}

fn policy_of(trial: &Trial) -> Policy {
    let mut policy = policy::load(&trial.policy(), &LoadOptions::default()).unwrap().policy;
    let Algorithm::Basic(basic) = &mut policy.algorithm;
    basic.cooldown_period = policy::duration::parse(trial.cooldown).unwrap();
    policy
}

pub fn scene() -> (Scenario, Workload) {
    let (scenario, warnings) = scenario::load(SCENE).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let queues = &scenario.cluster.queues;
    let built =
        workload::build(&scenario.workload, queues, scenario.start, scenario.seed, None, &BTreeMap::new()).unwrap();
    (scenario, built.0)
}

/// The jobs, as they came to the real YARN: what a master took longer than most, its job is submitted later. The daemon's
/// first look is the scenario's first instant.
fn as_submitted(mut workload: Workload, real: &Reality) -> Workload {
    let jobs = &real.played.jobs;
    let took: Vec<_> = jobs.iter().zip(&real.asked).map(|(job, asked)| asked - job.submit).collect();
    let usual = median(took);
    let mut earliest = 0;
    for (job, asked) in workload.jobs.iter_mut().zip(&real.asked) {
        job.submit_ms = millis(real.first_submit + (asked - usual) * 1000.0).max(earliest);
        earliest = job.submit_ms;
    }
    workload
}

/// The scenario on a machine that is as fast or as slow as the real one was: for each order its own boot time.
fn at_the_pace(mut scenario: Scenario, real: &Reality) -> Scenario {
    let (pace, boots) = (real.pace, real.played.boots());
    set_boot(&mut scenario, Duration::from_millis(millis(pace.boot)));
    let after_zero = |at: f64| Duration::from_millis(millis(real.first_submit + at * 1000.0));
    for (index, (at, boot)) in boots.iter().enumerate() {
        // From half-way since the order before to half-way to the next one, in which the simulator gives the same order.
        let earlier = if index == 0 { 0.0 } else { f64::midpoint(boots[index - 1].0, *at) };
        let later = boots.get(index + 1).map_or(*at + 60.0, |(next, _)| f64::midpoint(*at, *next));
        let (at, until) = (after_zero(earlier), after_zero(later));
        let fault = Fault::SlowBoots(boot * 1000.0 / pace.boot);
        scenario.events.push(FaultEvent { at, lasts: until - at, fault });
    }
    scenario.cloud.create_time = Some(Duration::from_millis(millis(pace.create)));
    let cluster = &mut scenario.cluster;
    cluster.master_start = Duration::from_millis(millis(pace.master)).saturating_sub(cluster.container_start);
    scenario
}

pub fn millis(ms: f64) -> u64 {
    format!("{:.0}", ms.max(0.0)).parse().unwrap()
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
