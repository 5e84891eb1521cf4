//! The conference scene in the simulator: the daemon's own loop over the simulated cluster.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::DateTime;
use yarn_autoscaler::{
    controller::Settings,
    model::{GroupName, Resources},
    policy,
    sim::{
        Unwatched,
        outcome::Outcome,
        run::{Run, run},
        scenario::{
            CloudGroup, CloudModel, ClusterModel, Delay, GangGranting, Placement, Queue, QueueOrdering, Scenario,
            WorkloadPlan,
        },
        workload::{Job, OnLoss, TaskGroup, Work, Workload},
    },
};

const MINUTE: u64 = 60_000;

pub fn scenario() -> Scenario {
    let worker = Resources::new(12_288, 8, 1);
    let primary = CloudGroup {
        worker,
        initial: 2,
        boot: Delay::Fixed(Duration::from_secs(90)),
        price_per_hour: 2.95,
        quota: None,
        mean_lifetime: None,
    };
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
            queues: vec![Queue {
                name: "default".into(),
                capacity: 1.0,
                max_capacity: 1.0,
                max_master_share: 1.0,
                ordering: QueueOrdering::Fifo,
            }],
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
            groups: BTreeMap::from([(GroupName::Primary, primary)]),
        },
        workload: WorkloadPlan::default(),
        events: Vec::new(),
        expect: Vec::new(),
    }
}

pub fn gang(name: &str, submit_ms: u64, workers: u32, ps: u32, duration_ms: u64) -> Job {
    let group = |name: &str, containers, resources| TaskGroup { name: name.into(), containers, resources };
    Job {
        name: name.into(),
        application_type: "TONY".into(),
        queue: "default".into(),
        submit_ms,
        master: Some(Resources::new(2048, 1, 0)),
        work: Work::Gang {
            groups: vec![
                group("ps", ps, Resources::new(2048, 1, 0)),
                group("worker", workers, Resources::new(4096, 1, 1)),
            ],
            duration_ms,
        },
        on_loss: OnLoss::Restart,
    }
}

pub fn conference() -> Outcome {
    let policy = policy::load(include_str!("../../policies/autoscale_tony.yaml"), &policy::LoadOptions::default()).unwrap().policy;
    let mut jobs: Vec<_> = (0..10).map(|n| gang(&format!("tensorflow-{n}"), 30_000, 2, 1, 4 * MINUTE)).collect();
    jobs.push(gang("pytorch", 30_000, 2, 0, 4 * MINUTE));
    let run_it = Run {
        scenario: Arc::new(scenario()),
        workload: Arc::new(Workload { jobs }),
        policy,
        policy_name: "autoscale_tony".into(),
        seed: 1,
    };
    run(&run_it, &mut Unwatched)
}

#[test]
fn the_conference_scene_grows_to_ten_workers_ends_every_job_and_goes_back_to_two() {
    let outcome = conference();
    for told in &outcome.decisions {
        println!("{:>7} {:>4} {:?}", told.from_ms / 1000, told.looks, told.actions);
        for reason in &told.reasons {
            println!("              {reason}");
        }
    }
    println!("{:?}\n{:?}\n{:?}", outcome.counts, outcome.accounts, outcome.end_ms);
    for job in &outcome.jobs {
        println!("{} {:?} {:?}", job.name, job.start_ms, job.end_ms);
    }
    assert_eq!(outcome.jobs.iter().filter(|job| job.succeeded).count(), 11);
    assert_eq!(outcome.counts.peak_machines, 10);
    assert_eq!(outcome.counts.killed_by_drain, 0);
    assert_eq!(outcome.steps.last().unwrap().machines.ready, 2);
    for account in outcome.accounts.values() {
        let parts =
            account.useful + account.lost + account.held + account.boot + account.idle + account.fragmentation;
        assert_eq!(parts, account.billed);
    }
}
