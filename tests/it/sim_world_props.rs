//! The simulated world under random clusters, jobs, faults and orders: after every event its running figures are what a
//! recount says, the bill is the sum of its parts, and no job is forgotten.

use std::{sync::Arc, time::Duration};

use yarn_autoscaler::{
    model::{GroupName, Resources},
    sim::{
        Ms,
        outcome::Account,
        random::Rng,
        scenario::{CloudGroup, Delay, Fault, FaultEvent, GangGranting, Placement, QueueOrdering, Scenario},
        workload::{Executors, Job, OnLoss, Stage, Work, Workload},
        world::{Closed, World},
    },
};

use crate::sim_build::{HOUR, MINUTE, SECOND, group, job, queue, scenario, tasks};

/// Random scenarios that are tried.
const SCENARIOS: u64 = 400;

/// Dice with a few faces.
pub struct Dice(pub Rng);

impl Dice {
    pub fn new(seed: u64, what: &str) -> Self {
        Self(Rng::new(seed, what))
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.0.below(of.len() as u64)).unwrap()].clone()
    }

    pub fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.0.below(to - from + 1)
    }

    pub fn small(&mut self, from: u64, to: u64) -> u32 {
        u32::try_from(self.between(from, to)).unwrap()
    }

    fn secs(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_secs(self.between(from, to))
    }
}

/// A cluster and its cloud with everything drawn; jobs of at most half a worker's size, so that all fit.
pub fn any_scenario(dice: &mut Dice) -> Scenario {
    let mut scenario = scenario();
    let cluster = &mut scenario.cluster;
    cluster.heartbeat = Duration::from_millis(dice.pick(&[100, 1000, 1000, 3000]));
    cluster.containers_per_heartbeat = dice.small(1, 3);
    cluster.placement = dice.pick(&[Placement::Spread, Placement::Spread, Placement::Pack]);
    cluster.gang_granting =
        dice.pick(&[GangGranting::ContainerByContainer, GangGranting::ContainerByContainer, GangGranting::Atomic]);
    cluster.node_expiry = dice.secs(20, 600);
    cluster.queues = match dice.between(0, 2) {
        0 => vec![queue("default", 1.0, 1.0)],
        _ => vec![queue("default", 0.7, 1.0), queue("other", 0.3, dice.pick(&[0.5, 1.0]))],
    };
    for queue in &mut cluster.queues {
        queue.ordering = dice.pick(&[QueueOrdering::Fifo, QueueOrdering::Fair]);
        queue.max_master_share = dice.pick(&[0.1, 0.5, 1.0]);
    }
    let cloud = &mut scenario.cloud;
    cloud.overlaps = dice.0.happens(0.7);
    cloud.create_time = dice.pick(&[None, Some(Duration::from_secs(5))]);
    cloud.delete_time = dice.secs(0, 120);
    cloud.list_lag = dice.pick(&[Duration::ZERO, Duration::from_secs(20)]);
    cloud.minimum_billed = dice.pick(&[Duration::ZERO, Duration::from_secs(600)]);
    let initial = dice.small(0, 3);
    cloud.groups.insert(GroupName::Primary, any_group(dice, Resources::new(16_384, 8, 4), initial));
    if dice.0.happens(0.5) {
        let worker = dice.pick(&[Resources::new(16_384, 8, 4), Resources::new(8192, 8, 0)]);
        cloud.groups.insert(GroupName::Secondary, any_group(dice, worker, initial));
    }
    scenario.events = (0..dice.between(0, 5)).map(|_| any_fault(dice)).collect();
    scenario.events.sort_by_key(|event| event.at);
    scenario
}

fn any_group(dice: &mut Dice, worker: Resources, initial: u32) -> CloudGroup {
    let boots = [
        Delay::Fixed(Duration::from_secs(60)),
        Delay::Tail { median: Duration::from_secs(80), p95: Duration::from_secs(200) },
        Delay::List(vec![Duration::from_secs(30), Duration::from_secs(10), Duration::from_secs(300)]),
    ];
    let mean_lifetime = dice.0.happens(0.3).then(|| Duration::from_secs(4 * 3600));
    CloudGroup { boot: dice.pick(&boots), mean_lifetime, ..group(worker, initial) }
}

fn any_fault(dice: &mut Dice) -> FaultEvent {
    let many = dice.small(1, 3);
    let faults = [
        Fault::ResourceManagerTimeout,
        Fault::ResourceManagerStale,
        Fault::ResourceManagerPartial,
        Fault::ResourceManagerRestart,
        Fault::ResourceManagerRestart,
        Fault::SlowBoots(4.0),
        Fault::DriverFailure(0.5),
        Fault::BootFailure(0.5),
        Fault::StockOut(GroupName::Primary),
        Fault::MachinesDie(many),
        Fault::MachinesDie(many),
        Fault::NodesUnhealthy(many),
        Fault::NodesUnhealthy(many),
        Fault::Throttled(None),
        Fault::CloudErrors,
        Fault::LostAcknowledgements,
        Fault::ClockStep(90_000),
        Fault::ClockStep(-90_000),
        Fault::ControllerCrash(many),
        Fault::ControllerCrash(many),
    ];
    FaultEvent { at: dice.secs(0, 3000), lasts: dice.secs(0, 900), fault: dice.pick(&faults) }
}

/// Jobs of all kinds within the first hour.
pub fn any_jobs(dice: &mut Dice, count: u64) -> Vec<Job> {
    let mut jobs: Vec<_> = (0..count).map(|number| any_job(dice, number)).collect();
    jobs.sort_by_key(|job| job.submit_ms);
    jobs
}

fn any_job(dice: &mut Dice, number: u64) -> Job {
    let sizes = [Resources::new(1024, 1, 0), Resources::new(4096, 1, 1), Resources::new(8192, 4, 2)];
    let task_ms = dice.between(1, 10 * MINUTE);
    let work = match dice.between(0, 3) {
        0 | 1 => Work::Gang {
            groups: vec![tasks("ps", dice.small(0, 1), sizes[0]), tasks("worker", dice.small(0, 4), dice.pick(&sizes))],
            duration_ms: dice.between(0, 20 * MINUTE),
        },
        2 => {
            let stages = (0..dice.between(1, 3)).map(|_| Stage {
                name: "stage".into(),
                tasks: dice.small(0, 6),
                resources: dice.pick(&sizes),
                task_ms,
                starts_after: dice.pick(&[0.0, 0.05, 1.0]),
            });
            Work::Stages(stages.collect())
        }
        _ => Work::Executors(Executors {
            resources: dice.pick(&sizes),
            slots: dice.small(1, 3),
            tasks: dice.small(0, 20),
            task_ms,
            min: dice.small(0, 1),
            max: dice.small(1, 4),
            idle_timeout_ms: dice.between(1, 2 * MINUTE),
        }),
    };
    let master = dice.pick(&[None, Some(Resources::new(1024, 1, 0)), Some(Resources::new(2048, 1, 0))]);
    let queue = dice.pick(&["default", "other"]).into();
    let on_loss = dice.pick(&[OnLoss::Restart, OnLoss::Checkpoint { every_ms: MINUTE }, OnLoss::Continue]);
    let submit_ms = dice.between(0, 3600) * SECOND;
    Job { master, queue, on_loss, ..job(&format!("job-{number}"), submit_ms, work) }
}

/// Orders as a controller, and people beside it, would give them: sensible or not.
fn any_order(dice: &mut Dice, world: &mut World, number: u64) {
    let host = format!("{}-{}", dice.pick(&["w", "w", "sw"]), dice.between(0, 5));
    let group = dice.pick(&[GroupName::Primary, GroupName::Primary, GroupName::Secondary]);
    match dice.between(0, 9) {
        0..=2 => drop(world.create(&format!("create-{number}"), group, dice.small(1, 3))),
        3 => drop(world.delete(&format!("delete-{number}"), &[host])),
        4 | 5 => world.exclude(&[host], dice.secs(0, 600)),
        6 | 7 => world.include(&[host]),
        8 => drop(world.set_total(&host, Resources::new(dice.pick(&[0, 512, 4096]), 1, 0))),
        _ => {
            let full = full_of(world, &host);
            drop(world.set_total(&host, full));
        }
    }
    world.observation();
    world.capacity();
}

/// What the worker of this host has: nobody gives a node more than that.
fn full_of(world: &mut World, host: &str) -> Resources {
    let capacity = world.capacity();
    let group = if host.starts_with('s') { GroupName::Secondary } else { GroupName::Primary };
    let template = capacity.groups.get(&group).and_then(|group| group.template.clone());
    template.map(|template| template.resources).unwrap_or_default()
}

fn audit(world: &World, seed: u64) {
    let findings = world.audit();
    assert!(findings.is_empty(), "seed {seed} at {} ms:\n{}", world.now(), findings.join("\n"));
}

/// Events one by one, each looked at, with orders now and then.
fn play(world: &mut World, dice: &mut Dice, until: Ms, seed: u64) {
    for number in 0.. {
        let pause = dice.between(1, 200) * SECOND;
        let to = (world.now() + pause).min(until);
        while world.step(to) {
            audit(world, seed);
        }
        world.advance(to);
        if to >= until {
            return;
        }
        any_order(dice, world, number);
        audit(world, seed);
    }
}

/// All is repaired, and there is room for everything.
fn make_room(world: &mut World, scenario: &Scenario) {
    let hosts: Vec<_> = world.capacity().groups.values().flat_map(|group| group.instances.clone()).collect();
    let hosts: Vec<_> = hosts.into_iter().map(|instance| instance.host).collect();
    world.include(&hosts);
    for host in &hosts {
        let full = full_of(world, host);
        drop(world.set_total(host, full));
    }
    for group in scenario.cloud.groups.keys() {
        while world.create(&format!("last-{group}-{}", world.now()), *group, 40).is_err() {
            world.advance(world.now() + MINUTE);
        }
    }
}

pub fn assert_adds_up(account: &Account, what: &str) {
    let Account { billed, useful, lost, held, boot, idle, fragmentation, .. } = *account;
    assert_eq!(useful + lost + held + boot + idle + fragmentation, billed, "{what}: {account:?}");
}

fn assert_bill(closed: &Closed, seed: u64) {
    for account in closed.accounts.values() {
        assert_adds_up(account, &format!("seed {seed}"));
    }
}

#[test]
fn sim_the_books_are_right_after_every_event_and_the_bill_adds_up_whenever_it_is_closed() {
    for seed in 0..SCENARIOS {
        let mut dice = Dice::new(seed, "books");
        let scenario = Arc::new(any_scenario(&mut dice));
        let jobs = any_jobs(&mut dice, 12);
        let mut world = World::new(Arc::clone(&scenario), Arc::new(Workload { jobs }), seed);
        audit(&world, seed);
        let until = dice.between(0, 2 * HOUR);
        play(&mut world, &mut dice, until, seed);
        assert_bill(&world.close(), seed);
    }
}

#[test]
fn sim_every_job_ends_once_there_is_room() {
    for seed in 0..SCENARIOS {
        let mut dice = Dice::new(seed, "ends");
        let scenario = Arc::new(any_scenario(&mut dice));
        let jobs = any_jobs(&mut dice, 12);
        let mut world = World::new(Arc::clone(&scenario), Arc::new(Workload { jobs }), seed);
        play(&mut world, &mut dice, HOUR + 10 * MINUTE, seed);
        make_room(&mut world, &scenario);
        while world.now() < 48 * HOUR && !world.is_done() && world.next_at().is_some() {
            world.advance(world.next_at().unwrap().max(world.now() + MINUTE));
        }
        audit(&world, seed);
        assert!(world.is_done(), "seed {seed}: a job waits for ever: {:#?}\n{scenario:#?}", world.observation());
        let closed = world.close();
        assert_bill(&closed, seed);
        let ended = closed.jobs.iter().filter(|job| job.end_ms.is_some()).count();
        assert_eq!(ended, closed.jobs.len(), "seed {seed}");
    }
}
