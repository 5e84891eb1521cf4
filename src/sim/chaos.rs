//! Trials at random: a cluster, its cloud, a policy, a load and faults, all drawn from one seed, each from a stream of its
//! own. A trial is small and ends after its last fault, so that recovery is seen. What a seed breaks, it breaks again.

use std::{collections::BTreeMap, fmt::Write, sync::Arc, time::Duration};

use chrono::DateTime;

use super::{
    Ms, Unwatched,
    checker::{Checker, rest},
    outcome::Outcome,
    random::Rng,
    run::{Run, checked},
    scenario::{
        CloudGroup, CloudModel, ClusterModel, Delay, Fault, FaultEvent, GangGranting, Placement, Queue, QueueOrdering,
        Scenario, WorkloadPlan,
    },
    workload::{Executors, Job, OnLoss, Stage, TaskGroup, Work, Workload},
};
use crate::{
    controller::Settings,
    model::{GroupName, Resources},
    policy::{Algorithm, BasicAlgorithm, GroupPolicy, MetricType, Policy},
};

/// Noon of a Monday in January.
const START_S: i64 = 1_768_219_200;
/// Jobs are submitted, and faults begin, within so long.
const ACTIVE_S: u64 = 50 * 60;
/// Time for jobs to end after the last fault, before the cluster is watched coming to rest.
const WORK_S: u64 = 90 * 60;
/// Most faults of one trial.
const FAULTS_MAX: u64 = 12;
/// Decisions that a report shows before a violation.
const SHOWN: usize = 6;

/// The trial of this seed.
pub fn trial(seed: u64) -> Run {
    let policy = policy(&mut Rng::new(seed, "chaos policy"));
    let mut scenario = scenario(seed, &policy);
    let jobs = jobs(&mut Rng::new(seed, "chaos load"), &scenario);
    scenario.events = plan(seed, &scenario);
    let last = jobs.last().map_or(0, |job| job.submit_ms).max(rest::faults_end(&scenario));
    let length = last + WORK_S * 1000 + rest::settle_ms(&scenario, &policy);
    scenario.duration = Some(Duration::from_millis(length));
    Run {
        scenario: Arc::new(scenario),
        workload: Arc::new(Workload { jobs }),
        policy,
        policy_name: "chaos".into(),
        seed,
    }
}

/// Runs the trial of this seed under the eyes of the checker.
pub fn run_trial(seed: u64) -> Outcome {
    let run = trial(seed);
    let checker = Checker::new(&run.scenario, &run.policy);
    checked(&run, checker, &mut Unwatched)
}

/// What was broken in a run, for people: the seed, when, which promise, the last decisions before it, and how to see it
/// again. Empty where nothing was.
pub fn describe(outcome: &Outcome) -> String {
    let mut text = String::new();
    for violation in &outcome.violations {
        let at_s = violation.at_ms as f64 / 1000.0;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "seed {}: at {at_s} s: {}: {}", outcome.seed, violation.promise, violation.text);
        let before = outcome.decisions.iter().take_while(|told| told.from_ms <= violation.at_ms).count();
        for told in &outcome.decisions[before.saturating_sub(SHOWN)..before] {
            let actions: Vec<_> = told.actions.iter().map(ToString::to_string).collect();
            let reasons: Vec<_> = told.reasons.iter().map(ToString::to_string).collect();
            let (from_s, to_s) = (told.from_ms as f64 / 1000.0, told.to_ms as f64 / 1000.0);
            let _ = writeln!(
                text,
                "  {from_s} to {to_s} s: {}",
                if actions.is_empty() { "nothing".into() } else { actions.join("; ") }
            );
            let _ = writeln!(text, "    because {}", reasons.join("; "));
            if !told.notes.is_empty() {
                let _ = writeln!(text, "    noticed {}", told.notes.join("; "));
            }
        }
    }
    if !text.is_empty() {
        let _ = writeln!(text, "again: yarn-autoscaler simulate --faults --seed {}", outcome.seed);
    }
    text
}

/// Faults at random for a scenario: several at once, of every kind, all over before it ends.
pub fn plan(seed: u64, scenario: &Scenario) -> Vec<FaultEvent> {
    let rng = &mut Rng::new(seed, "chaos faults");
    let count = rng.below(FAULTS_MAX + 1);
    let active_s = scenario.duration.map_or(ACTIVE_S, |duration| duration.as_secs() / 3).max(120);
    let mut events: Vec<_> = (0..count).map(|_| event(rng, scenario, active_s)).collect();
    events.sort_by_key(|event| event.at);
    events
}

fn event(rng: &mut Rng, scenario: &Scenario, active_s: u64) -> FaultEvent {
    let at = Duration::from_millis(10_000 + rng.below(active_s * 1000));
    let groups: Vec<_> = scenario.cloud.groups.keys().copied().collect();
    let share = |rng: &mut Rng| one_of(rng, &[0.2, 0.5, 1.0]);
    let (fault, longest_s) = match rng.below(16) {
        0 => (Fault::ResourceManagerTimeout, 600),
        1 => (Fault::ResourceManagerStale, 240),
        2 => (Fault::ResourceManagerPartial, 120),
        3 => (Fault::ResourceManagerRestart, 120),
        4 => (Fault::SlowBoots(one_of(rng, &[2.0, 5.0, 10.0])), 900),
        5 => (Fault::DriverFailure(share(rng)), 900),
        6 => (Fault::BootFailure(share(rng)), 900),
        7 => (Fault::StockOut(one_of(rng, &groups)), 1200),
        8 => (Fault::Throttled(if rng.happens(0.5) { Some(seconds(between(rng, 1, 120))) } else { None }), 600),
        9 => (Fault::CloudErrors, 900),
        10 => (Fault::LostAcknowledgements, 600),
        11 => (Fault::MachinesDie(between_u32(rng, 1, 2)), 1),
        12 => (Fault::NodesUnhealthy(between_u32(rng, 1, 2)), 1800),
        13 => (Fault::ClockStep(clock_step(rng)), 1),
        _ => (Fault::ControllerCrash(between_u32(rng, 1, 12)), 600),
    };
    FaultEvent { at, lasts: Duration::from_millis(1000 + rng.below(longest_s * 1000)), fault }
}

/// Mostly seconds, sometimes an hour; to and fro.
fn clock_step(rng: &mut Rng) -> i64 {
    let most = one_of(rng, &[5_000, 90_000, 3_600_000]);
    let by = i64::try_from(1 + rng.below(most)).unwrap_or(1);
    if rng.happens(0.5) { by } else { -by }
}

/// A valid policy: every field within the bounds that `policy::load` holds a file to.
fn policy(rng: &mut Rng) -> Policy {
    let fraction = |rng: &mut Rng| if rng.happens(0.8) { 0.0 } else { one_of(rng, &[0.1, 0.3]) };
    let factor = |rng: &mut Rng| if rng.happens(0.7) { 1.0 } else { one_of(rng, &[0.5, 0.25]) };
    let metrics = [
        vec![MetricType::YarnMemory],
        vec![MetricType::YarnMemory],
        vec![MetricType::YarnMemory, MetricType::YarnCores],
        vec![MetricType::YarnCores],
    ];
    let basic = BasicAlgorithm {
        cooldown_period: seconds(one_of(rng, &[120, 120, 180, 300, 600])),
        scale_up_factor: factor(rng),
        scale_down_factor: factor(rng),
        scale_up_min_worker_fraction: fraction(rng),
        scale_down_min_worker_fraction: fraction(rng),
        graceful_decommission_timeout: seconds(one_of(rng, &[0, 60, 300, 900, 1800])),
        metrics: one_of(rng, &metrics),
    };
    let group = |rng: &mut Rng, least: u32, room: u32| {
        let min_instances = between_u32(rng, least, least + 2);
        let max_instances = min_instances + between_u32(rng, 0, room);
        GroupPolicy { min_instances, max_instances, weight: between_u32(rng, 1, 3) }
    };
    let primary = group(rng, 1, 10);
    let secondary = rng.happens(0.5).then(|| {
        let secondary = group(rng, 0, 6);
        GroupPolicy { weight: between_u32(rng, 0, 2), ..secondary }
    });
    Policy {
        id: Some("chaos".into()),
        algorithm: Algorithm::Basic(basic),
        primary,
        secondary,
        primary_template: None,
        secondary_template: None,
    }
}

fn scenario(seed: u64, policy: &Policy) -> Scenario {
    let rng = &mut Rng::new(seed, "chaos cluster");
    let poll_interval = seconds(one_of(rng, &[10, 20, 30, 60]));
    Scenario {
        name: format!("chaos {seed}"),
        description: "drawn at random".into(),
        seed,
        start: DateTime::from_timestamp(START_S, 0).unwrap_or_default(),
        duration: None,
        settle: Duration::ZERO,
        settings: Settings {
            poll_interval,
            restart_hold: seconds(one_of(rng, &[30, 60])),
            ready_deadline: seconds(one_of(rng, &[300, 600, 900])),
        },
        policy: None,
        cluster: cluster(rng),
        cloud: cloud(rng, policy),
        workload: WorkloadPlan::default(),
        events: Vec::new(),
        expect: Vec::new(),
    }
}

fn cluster(rng: &mut Rng) -> ClusterModel {
    let queue = |name: &str, capacity: f64, rng: &mut Rng| Queue {
        name: name.into(),
        capacity,
        max_capacity: one_of(rng, &[1.0, 1.0, 0.8]),
        max_master_share: one_of(rng, &[1.0, 0.5]),
        ordering: one_of(rng, &[QueueOrdering::Fifo, QueueOrdering::Fair]),
    };
    let queues = if rng.happens(0.7) {
        vec![queue("default", 1.0, rng)]
    } else {
        vec![queue("default", 0.5, rng), queue("research", 0.5, rng)]
    };
    ClusterModel {
        heartbeat: seconds(1),
        containers_per_heartbeat: between_u32(rng, 1, 3),
        placement: one_of(rng, &[Placement::Spread, Placement::Spread, Placement::Pack]),
        gang_granting: one_of(rng, &[GangGranting::ContainerByContainer, GangGranting::Atomic]),
        master_start: seconds(between(rng, 1, 10)),
        container_start: seconds(1),
        minimum_allocation: one_of(rng, &[Resources::new(128, 1, 0), Resources::new(1024, 1, 0)]),
        node_expiry: seconds(one_of(rng, &[30, 120, 600])),
        queues,
    }
}

fn cloud(rng: &mut Rng, policy: &Policy) -> CloudModel {
    let worker = Resources::new(one_of(rng, &[8192, 12_288, 16_384]), one_of(rng, &[4, 8]), rng.below(3));
    let bounds = |name: GroupName| policy.group(name);
    let names =
        if policy.secondary.is_some() || rng.happens(0.1) { &GroupName::ALL[..] } else { &[GroupName::Primary] };
    let all: u32 = names.iter().map(|name| bounds(*name).max_instances).sum();
    let mut groups = BTreeMap::new();
    for name in names {
        let GroupPolicy { min_instances, max_instances, .. } = bounds(*name);
        let initial = if rng.happens(0.8) { min_instances } else { between_u32(rng, 0, max_instances + 2) };
        let quota = rng.happens(0.1).then(|| max_instances.saturating_sub(1).max(min_instances).max(initial));
        let boot = boot(rng);
        let mean_lifetime = rng.happens(0.03).then(|| seconds(3600));
        groups.insert(*name, CloudGroup { worker, initial, boot, price_per_hour: 1.0, quota, mean_lifetime });
    }
    CloudModel {
        overlaps: rng.happens(0.5),
        deletes_named: rng.happens(0.97),
        machine_start: seconds(between(rng, 5, 40)),
        create_time: rng.happens(0.5).then(|| seconds(between(rng, 5, 60))),
        delete_time: seconds(between(rng, 5, 90)),
        list_lag: if rng.happens(0.5) { Duration::ZERO } else { seconds(between(rng, 1, 30)) },
        minimum_billed: seconds(60),
        quota: rng.happens(0.1).then(|| all + between_u32(rng, 0, 2)),
        groups,
    }
}

fn boot(rng: &mut Rng) -> Delay {
    let median = between(rng, 30, 240);
    match rng.below(3) {
        0 => Delay::Fixed(seconds(median)),
        1 => Delay::Tail { median: seconds(median), p95: seconds(median * between(rng, 1, 4)) },
        _ => Delay::List(vec![seconds(median), seconds(median * 2), seconds(median / 2)]),
    }
}

fn jobs(rng: &mut Rng, scenario: &Scenario) -> Vec<Job> {
    let worker = scenario.cloud.groups.values().next().map(|group| group.worker).unwrap_or_default();
    let queues: Vec<_> = scenario.cluster.queues.iter().map(|queue| queue.name.as_str()).collect();
    let count = between(rng, 0, 16);
    let mut jobs: Vec<_> = (0..count).map(|number| job(rng, number, worker, &queues)).collect();
    jobs.sort_by_key(|job| job.submit_ms);
    jobs
}

fn job(rng: &mut Rng, number: u64, worker: Resources, queues: &[&str]) -> Job {
    let (kind, work) = match rng.below(3) {
        0 => ("TONY", gang(rng, worker)),
        1 => ("MAPREDUCE", Work::Stages(stages(rng, worker))),
        _ => ("SPARK", Work::Executors(executors(rng, worker))),
    };
    let on_loss = [OnLoss::Restart, OnLoss::Continue, OnLoss::Checkpoint { every_ms: 60_000 }];
    Job {
        name: format!("job-{number}").into(),
        application_type: kind.into(),
        queue: one_of(rng, queues).into(),
        submit_ms: rng.below(ACTIVE_S * 1000),
        master: rng.happens(0.9).then(|| Resources::new(one_of(rng, &[512, 1024, 2048]), 1, 0)),
        work,
        on_loss: one_of(rng, &on_loss),
    }
}

fn container(rng: &mut Rng, worker: Resources) -> Resources {
    let memory_mb = one_of(rng, &[1024, 2048, 4096, worker.memory_mb]);
    let gpus = if rng.happens(0.5) { worker.gpus.min(1) } else { 0 };
    Resources::new(memory_mb, between(rng, 1, 2), gpus)
}

fn work_ms(rng: &mut Rng) -> Ms {
    1000 * if rng.happens(0.1) { between(rng, 600, 2400) } else { between(rng, 10, 600) }
}

fn gang(rng: &mut Rng, worker: Resources) -> Work {
    let group = |name: &str, containers: u32, resources| TaskGroup { name: name.into(), containers, resources };
    let groups = vec![
        group("ps", between_u32(rng, 0, 2), Resources::new(1024, 1, 0)),
        group("worker", between_u32(rng, 1, 6), container(rng, worker)),
    ];
    Work::Gang { groups, duration_ms: work_ms(rng) }
}

fn stages(rng: &mut Rng, worker: Resources) -> Vec<Stage> {
    let count = between(rng, 1, 3);
    let mut stage = |number: u64| Stage {
        name: format!("stage-{number}").into(),
        tasks: between_u32(rng, 1, 20),
        resources: container(rng, worker),
        task_ms: work_ms(rng) / 2,
        starts_after: one_of(rng, &[0.0, 0.05, 0.5, 1.0]),
    };
    (0..count).map(&mut stage).collect()
}

fn executors(rng: &mut Rng, worker: Resources) -> Executors {
    let min = between_u32(rng, 0, 2);
    Executors {
        resources: container(rng, worker),
        slots: between_u32(rng, 1, 4),
        tasks: between_u32(rng, 1, 60),
        task_ms: work_ms(rng) / 4,
        min,
        max: min + between_u32(rng, 1, 10),
        idle_timeout_ms: 1000 * between(rng, 10, 60),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Even in `least..=most`.
fn between(rng: &mut Rng, least: u64, most: u64) -> u64 {
    least + rng.below(most.saturating_sub(least) + 1)
}

fn between_u32(rng: &mut Rng, least: u32, most: u32) -> u32 {
    u32::try_from(between(rng, least.into(), most.into())).unwrap_or(most)
}

/// One of these, each as likely as the others. There is at least one.
fn one_of<T: Clone>(rng: &mut Rng, items: &[T]) -> T {
    let index = usize::try_from(rng.below(items.len() as u64)).unwrap_or(0);
    items[index].clone()
}
