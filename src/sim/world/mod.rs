//! The simulated world: one YARN cluster and its cloud, as a discrete-event model. Must not know the controller nor its
//! ports: those are laid over it by `sim::ports`.
//!
//! | file | what it does |
//! |---|---|
//! | `events` | what will happen, in order |
//! | `machines`, `applications` | hosts, machines, nodes; applications, containers: as they are |
//! | `scheduler` | who is served next |
//! | `granting` | heartbeats: containers are handed out |
//! | `jobs`, `tasks` | how applications ask, work and end |
//! | `losses` | what the loss of a container does |
//! | `nodes` | registration, cordon, drain, recommission, death |
//! | `cloud` | orders, operations, quotas, bills |
//! | `mishaps` | faults that begin and end |
//! | `view` | what the ResourceManager and the cloud tell of all this |
//! | `packing` | how many workers a set of containers fills |
//! | `recorder` | what is written down as it goes |
//! | `audit` | the running figures, counted anew: for tests |
//! | `incidents` | what a checker of promises must know |

mod applications;
mod audit;
mod cloud;
mod events;
mod granting;
mod incidents;
mod jobs;
mod losses;
mod machines;
mod mishaps;
mod nodes;
mod packing;
mod recorder;
mod scheduler;
mod tasks;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use self::{
    applications::{App, Containers},
    cloud::Cloud,
    events::{AppId, ContainerId, Event, Events, SlotId},
    machines::{RmNode, Slot, counter},
    packing::SizeKey,
    recorder::Recorder,
    scheduler::Scheduler,
    view::ResourceManager,
};
use super::{
    Ms, ms,
    random::Rng,
    scenario::{CloudGroup, GangGranting, Placement, Scenario},
    workload::{Job, Workload},
};
use crate::model::{GroupName, Resources};

pub use self::{
    cloud::Refusal,
    incidents::{Killed, KilledBy},
    recorder::Closed,
};

/// A cluster and its cloud at one instant, and what will happen to them.
#[derive(Debug)]
pub struct World {
    now: Ms,
    events: Events,
    scenario: Arc<Scenario>,
    rules: Rules,
    workload: Arc<Workload>,
    /// The first job that has not been submitted.
    next_arrival: usize,
    slots: Vec<Slot>,
    slot_of: BTreeMap<String, SlotId>,
    apps: Vec<App>,
    /// Applications that have not ended.
    live: BTreeSet<AppId>,
    containers: Containers,
    scheduler: Scheduler,
    /// What the nodes offer that take containers: the cluster's resources, to the scheduler.
    offered: Resources,
    /// What is asked for and not granted.
    pending: Resources,
    pending_containers: u64,
    allocated: Resources,
    allocated_containers: u64,
    /// Containers held and asked for, by size.
    demand: BTreeMap<SizeKey, u32>,
    round_armed: bool,
    cloud: Cloud,
    rm: ResourceManager,
    /// Which of the scenario's events are in force.
    active: BTreeSet<usize>,
    clock_offset_ms: i64,
    record: Recorder,
    /// Containers that our orders have ended; `None`: nobody asks.
    kills: Option<Vec<Killed>>,
    boots: Rng,
    lives: Rng,
}

/// The scenario's lengths of time in milliseconds.
#[derive(Debug)]
struct Rules {
    heartbeat: Ms,
    per_heartbeat: u32,
    placement: Placement,
    atomic: bool,
    master_start: Ms,
    container_start: Ms,
    minimum_allocation: Resources,
    node_expiry: Ms,
    machine_start: Ms,
    create_time: Option<Ms>,
    delete_time: Ms,
    list_lag: Ms,
    minimum_billed: Ms,
}

impl Rules {
    fn of(scenario: &Scenario) -> Self {
        let (cluster, cloud) = (&scenario.cluster, &scenario.cloud);
        Self {
            heartbeat: ms(cluster.heartbeat).max(1),
            per_heartbeat: cluster.containers_per_heartbeat.max(1),
            placement: cluster.placement,
            atomic: cluster.gang_granting == GangGranting::Atomic,
            master_start: ms(cluster.master_start),
            container_start: ms(cluster.container_start),
            minimum_allocation: cluster.minimum_allocation,
            node_expiry: ms(cluster.node_expiry),
            machine_start: ms(cloud.machine_start),
            create_time: cloud.create_time.map(ms),
            delete_time: ms(cloud.delete_time),
            list_lag: ms(cloud.list_lag),
            minimum_billed: ms(cloud.minimum_billed),
        }
    }
}

impl World {
    /// The world at its first instant: the initial workers are registered and idle, nothing is submitted.
    pub fn new(scenario: Arc<Scenario>, workload: Arc<Workload>, seed: u64) -> Self {
        let mut world = Self {
            now: 0,
            events: Events::default(),
            rules: Rules::of(&scenario),
            next_arrival: 0,
            slots: Vec::new(),
            slot_of: BTreeMap::new(),
            apps: Vec::with_capacity(workload.jobs.len()),
            live: BTreeSet::new(),
            containers: Containers::default(),
            scheduler: Scheduler::new(&scenario.cluster.queues),
            offered: Resources::default(),
            pending: Resources::default(),
            pending_containers: 0,
            allocated: Resources::default(),
            allocated_containers: 0,
            demand: BTreeMap::new(),
            round_armed: false,
            cloud: Cloud::default(),
            rm: ResourceManager::started(&scenario),
            active: BTreeSet::new(),
            clock_offset_ms: 0,
            record: Recorder::new(&scenario),
            kills: None,
            boots: Rng::new(seed, "boots"),
            lives: Rng::new(seed, "lives"),
            scenario,
            workload,
        };
        world.found();
        world
    }

    /// The initial workers, and the faults to come.
    fn found(&mut self) {
        let scenario = Arc::clone(&self.scenario);
        for (group, model) in &scenario.cloud.groups {
            for _ in 0..model.initial {
                self.found_worker(*group, model);
            }
        }
        for (index, event) in scenario.events.iter().enumerate() {
            self.events.push(ms(event.at), Event::FaultBegins(u32::try_from(index).unwrap_or(u32::MAX)));
        }
        self.record.changed = true;
        self.list_changed();
    }

    fn found_worker(&mut self, group: GroupName, model: &CloudGroup) {
        let slot = self.free_slot(group);
        let machine = machines::Machine {
            up_at: Some(0),
            registered_at: Some(0),
            has_come: true,
            manager_up: true,
            ..machines::Machine::ordered()
        };
        let beats_from = self.initial_beat(slot);
        let entry = &mut self.slots[slot as usize];
        entry.generation += 1;
        entry.machine = Some(machine);
        entry.node = Some(RmNode::running(entry.generation, model.worker, beats_from));
        self.offered += model.worker;
        self.recount(slot);
        self.draw_life(slot);
    }

    /// The present instant.
    pub fn now(&self) -> Ms {
        self.now
    }

    /// By how much the controller's clock is wrong.
    pub fn clock_offset_ms(&self) -> i64 {
        self.clock_offset_ms
    }

    /// When something happens next; `None`: nothing ever does.
    pub fn next_at(&self) -> Option<Ms> {
        let arrival = self.workload.jobs.get(self.next_arrival).map(|job| job.submit_ms);
        match (arrival, self.events.next_at()) {
            (Some(arrival), Some(event)) => Some(arrival.min(event)),
            (arrival, event) => arrival.or(event),
        }
    }

    /// Whether all jobs have been submitted and have ended.
    pub fn is_done(&self) -> bool {
        self.next_arrival == self.workload.jobs.len() && self.live.is_empty()
    }

    /// When the last job that has ended did.
    pub fn last_end(&self) -> Ms {
        self.record.last_end
    }

    /// Lets everything happen up to and at `to`.
    pub fn advance(&mut self, to: Ms) {
        while self.step(to) {}
        self.pass_to(to);
    }

    /// Lets the next thing happen, if that is due up to and at `to`; whether it was.
    pub fn step(&mut self, to: Ms) -> bool {
        let Some(at) = self.next_at().filter(|at| *at <= to) else { return false };
        self.pass_to(at);
        self.record.counts.events += 1;
        let arrival = self.workload.jobs.get(self.next_arrival).map(|job| job.submit_ms);
        if arrival.is_some_and(|at| at <= self.now) {
            let app = self.next_arrival;
            self.next_arrival += 1;
            self.submit(u32::try_from(app).unwrap_or(u32::MAX));
        } else if let Some((_, event)) = self.events.pop() {
            self.handle(event);
        }
        true
    }

    /// Time goes on; what has changed until then is written down.
    fn pass_to(&mut self, at: Ms) {
        if at > self.now {
            self.write_step();
            if self.rules.list_lag > 0 && self.cloud.list_is_stale {
                self.keep_list();
            }
            self.now = at;
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Heartbeat(slot) => self.heartbeat(slot),
            Event::Round => self.round(),
            Event::MasterReady(app, generation) => self.master_ready(app, generation),
            Event::GangEnds(app, generation) => self.gang_ends(app, generation),
            Event::TasksEnd(container) => self.tasks_end(container),
            Event::ExecutorIdle(container) => self.executor_idle(container),
            Event::Ramp(app, generation) => self.ramp(app, generation),
            Event::MachineUp(slot, generation) => self.machine_up(slot, generation),
            Event::Registers(slot, generation) => self.registers(slot, generation),
            Event::DrainCheck(slot, generation) => self.drain_check(slot, generation),
            Event::Expires(slot, generation) => self.expires(slot, generation),
            Event::Preempted(slot, generation) => self.preempted(slot, generation),
            Event::Gone(slot, generation) => self.gone(slot, generation),
            Event::OperationEnds(operation) => self.operation_ends(operation),
            Event::ListCatchesUp => {}
            Event::FaultBegins(index) => self.fault_begins(index as usize),
            Event::FaultEnds(index) => self.fault_ends(index as usize),
        }
    }

    fn job(&self, app: AppId) -> &Job {
        &self.workload.jobs[app as usize]
    }

    fn app(&mut self, app: AppId) -> &mut App {
        &mut self.apps[app as usize]
    }

    fn slot(&self, slot: SlotId) -> &Slot {
        &self.slots[slot as usize]
    }

    fn group(&self, group: GroupName) -> Option<&CloudGroup> {
        self.scenario.cloud.groups.get(&group)
    }

    /// What a worker of this slot's group offers.
    fn full(&self, slot: SlotId) -> Resources {
        self.group(self.slot(slot).group).map(|group| group.worker).unwrap_or_default()
    }

    /// Changes a node, and all that hangs on it: what the cluster offers, what is shown, how it is counted.
    fn alter(&mut self, slot: SlotId, change: impl FnOnce(&mut RmNode)) {
        let Some(node) = &mut self.slots[slot as usize].node else { return };
        let before = node.offers();
        change(node);
        node.view = None;
        let after = node.offers();
        self.offered = self.offered.saturating_sub(before) + after;
        self.recount(slot);
        self.seen_change();
        // Of a larger cluster a queue's share, and its masters' share, is more.
        if !after.fits(before) {
            self.activate_all();
            if std::mem::take(&mut self.scheduler.limited) {
                self.arm_all();
            }
        }
    }

    /// Counts a machine anew by what it is worth.
    fn recount(&mut self, slot: SlotId) {
        let full = self.full(slot);
        let entry = &mut self.slots[slot as usize];
        let (before, after) = (entry.counted, entry.standing(full));
        if before == after {
            return;
        }
        entry.counted = after;
        let machines = &mut self.record.machines;
        if let Some(before) = before {
            *counter(machines, before) -= 1;
        }
        if let Some(after) = after {
            *counter(machines, after) += 1;
        }
        self.record.changed = true;
    }

    /// What YARN shows has changed.
    fn seen_change(&mut self) {
        self.rm.shown = None;
        self.record.changed = true;
    }
}
