//! Scenarios, jobs and policies for the simulator's tests, built from a few figures.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::DateTime;
use yarn_autoscaler::{
    controller::Settings,
    model::{GroupName, Resources},
    policy::{self, Policy},
    sim::{
        Ms,
        run::Run,
        scenario::{
            CloudGroup, CloudModel, ClusterModel, Delay, Fault, FaultEvent, GangGranting, Placement, Queue,
            QueueOrdering, Scenario, WorkloadPlan,
        },
        workload::{Executors, Job, OnLoss, Stage, TaskGroup, Work, Workload},
        world::World,
    },
};

pub const SECOND: Ms = 1_000;
pub const MINUTE: Ms = 60_000;
pub const HOUR: Ms = 3_600_000;

/// The worker of the conference scene: one GPU.
pub const WORKER: Resources = Resources::new(12_288, 8, 1);
/// Its executor with a GPU.
pub const GPU: Resources = Resources::new(4096, 1, 1);
/// One of its containers without.
pub const SMALL: Resources = Resources::new(2048, 1, 0);

/// The conference scene: two one-GPU workers that boot in 90 s, one FIFO queue, stock YARN.
pub fn scenario() -> Scenario {
    Scenario {
        name: "conference".into(),
        description: String::new(),
        seed: 1,
        start: DateTime::from_timestamp(1_767_571_200, 0).unwrap(),
        duration: None,
        settle: Duration::from_secs(1800),
        settings: Settings::default(),
        policy: None,
        cluster: ClusterModel {
            heartbeat: Duration::from_secs(1),
            containers_per_heartbeat: 1,
            placement: Placement::Spread,
            gang_granting: GangGranting::ContainerByContainer,
            master_start: Duration::from_secs(4),
            container_start: Duration::from_secs(1),
            minimum_allocation: Resources::new(128, 1, 0),
            node_expiry: Duration::from_secs(600),
            queues: vec![queue("default", 1.0, 1.0)],
        },
        cloud: CloudModel {
            overlaps: false,
            deletes_named: true,
            machine_start: Duration::from_secs(20),
            create_time: None,
            delete_time: Duration::from_secs(30),
            list_lag: Duration::ZERO,
            minimum_billed: Duration::from_secs(60),
            quota: None,
            groups: BTreeMap::from([(GroupName::Primary, group(WORKER, 2))]),
        },
        workload: WorkloadPlan::default(),
        events: Vec::new(),
        expect: Vec::new(),
    }
}

/// A cluster of so many of these workers, idle.
pub fn cluster(initial: u32, worker: Resources) -> Scenario {
    let mut scenario = scenario();
    scenario.cloud.groups.insert(GroupName::Primary, group(worker, initial));
    scenario
}

pub fn group(worker: Resources, initial: u32) -> CloudGroup {
    CloudGroup {
        worker,
        initial,
        boot: Delay::Fixed(Duration::from_secs(90)),
        price_per_hour: 2.95,
        quota: None,
        mean_lifetime: None,
    }
}

pub fn queue(name: &str, capacity: f64, max_capacity: f64) -> Queue {
    Queue { name: name.into(), capacity, max_capacity, max_master_share: 1.0, ordering: QueueOrdering::Fifo }
}

/// Something that goes wrong at this second for so many seconds.
pub fn fault(at: u64, lasts: u64, fault: Fault) -> FaultEvent {
    FaultEvent { at: Duration::from_secs(at), lasts: Duration::from_secs(lasts), fault }
}

pub fn world(scenario: Scenario, mut jobs: Vec<Job>) -> World {
    jobs.sort_by_key(|job| job.submit_ms);
    World::new(Arc::new(scenario), Arc::new(Workload { jobs }), 1)
}

pub fn job(name: &str, submit_ms: Ms, work: Work) -> Job {
    Job {
        name: name.into(),
        application_type: "TONY".into(),
        queue: "default".into(),
        submit_ms,
        master: None,
        work,
        on_loss: OnLoss::Restart,
    }
}

/// A TonY job: a master, parameter servers, workers with a GPU each.
pub fn gang(name: &str, submit_ms: Ms, workers: u32, ps: u32, duration_ms: Ms) -> Job {
    let groups = vec![tasks("ps", ps, SMALL), tasks("worker", workers, GPU)];
    Job { master: Some(SMALL), ..job(name, submit_ms, Work::Gang { groups, duration_ms }) }
}

/// A gang without a master, all of one size.
pub fn bare(name: &str, submit_ms: Ms, containers: u32, size: Resources, duration_ms: Ms) -> Job {
    job(name, submit_ms, Work::Gang { groups: vec![tasks("worker", containers, size)], duration_ms })
}

pub fn tasks(name: &str, containers: u32, resources: Resources) -> TaskGroup {
    TaskGroup { name: name.into(), containers, resources }
}

/// Maps, then reducers that are asked for after this share of them.
pub fn mapreduce(name: &str, submit_ms: Ms, maps: u32, reducers: u32, slow_start: f64, task_ms: Ms) -> Job {
    let stage =
        |name: &str, tasks, starts_after| Stage { name: name.into(), tasks, resources: SMALL, task_ms, starts_after };
    let work = Work::Stages(vec![stage("map", maps, 0.0), stage("reduce", reducers, slow_start)]);
    Job { application_type: "MAPREDUCE".into(), master: Some(SMALL), ..job(name, submit_ms, work) }
}

/// Spark with dynamic allocation: so many tasks, two at once an executor.
pub fn spark(name: &str, submit_ms: Ms, tasks: u32, (min, max): (u32, u32), task_ms: Ms) -> Job {
    let executors = Executors { resources: SMALL, slots: 2, tasks, task_ms, min, max, idle_timeout_ms: MINUTE };
    Job { application_type: "SPARK".into(), master: Some(SMALL), ..job(name, submit_ms, Work::Executors(executors)) }
}

/// The policy of the conference.
pub fn tony() -> Policy {
    load(include_str!("../../policies/autoscale_tony.yaml"))
}

/// A policy for one group: between these sizes, with this cooldown.
pub fn policy(min: u32, max: u32, cooldown: &str) -> Policy {
    load(&format!(
        "workerConfig: {{minInstances: {min}, maxInstances: {max}}}\nbasicAlgorithm:\n  cooldownPeriod: {cooldown}\n  \
         yarnConfig:\n    scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    gracefulDecommissionTimeout: 15m\n"
    ))
}

fn load(text: &str) -> Policy {
    policy::load(text, &policy::LoadOptions::default()).unwrap().policy
}

/// A run of these jobs.
pub fn plan(scenario: Scenario, mut jobs: Vec<Job>, policy: Policy) -> Run {
    jobs.sort_by_key(|job| job.submit_ms);
    let seed = scenario.seed;
    let (scenario, workload) = (Arc::new(scenario), Arc::new(Workload { jobs }));
    Run { scenario, workload, policy, policy_name: "a policy".into(), seed }
}
