//! How applications come, ask, begin to work and end. Gangs here; stages and executors in `tasks`.

use super::{
    AppId, ContainerId, Event, World,
    applications::{App, AppAsk, ExecutorProgress, Phase, StageProgress, Working},
    losses::worked,
    packing,
};
use crate::{
    model::{NodeState, Resources},
    sim::{Ms, workload::Work},
};

/// YARN shows an application master's own ask with this priority.
const MASTER_PRIORITY: i32 = -1;

impl World {
    /// An application is submitted.
    pub(super) fn submit(&mut self, id: AppId) {
        let job = self.job(id);
        let queue = self.scenario.cluster.queues.iter().position(|queue| *queue.name == *job.queue).unwrap_or(0);
        let (master, work) = (job.master, fresh(&job.work));
        self.apps.push(App {
            queue,
            phase: Phase::Accepted,
            is_active: false,
            generation: 0,
            master: None,
            held: Vec::new(),
            asks: Vec::new(),
            used: Resources::default(),
            touched: Vec::new(),
            work,
            earned: [0; 2],
            started_at: None,
            ended_at: None,
            succeeded: false,
            restarts: 0,
            containers_lost: 0,
            view: None,
        });
        self.live.insert(id);
        self.record.waiting += 1;
        self.seen_change();
        self.accept(id, master);
    }

    /// The application waits for its master; one without a master asks at once.
    pub(super) fn accept(&mut self, id: AppId, master: Option<Resources>) {
        let Some(resources) = master else {
            self.app(id).phase = Phase::Running;
            return self.begin(id);
        };
        self.app(id).phase = Phase::Accepted;
        let ask = AppAsk { resources, priority: MASTER_PRIORITY, containers: 1, is_master: true };
        // YARN measures a master as the application is submitted; one of a later attempt waits.
        if self.apps[id as usize].restarts == 0 && !self.may_ever_be_granted(resources) {
            return self.reject(id);
        }
        self.app(id).asks = vec![ask];
        self.count_asked(resources, 1);
        let queue = self.apps[id as usize].queue;
        self.scheduler.queues[queue].inactive.insert(id);
        self.activate(queue);
    }

    /// Activates applications of a queue, as many as their masters' share allows.
    pub(super) fn activate(&mut self, queue: usize) {
        while let Some(id) = self.scheduler.queues[queue].inactive.first().copied() {
            let master = self.job(id).master.unwrap_or_default();
            let state = &mut self.scheduler.queues[queue];
            if !state.may_activate(master, self.offered) {
                return;
            }
            state.inactive.remove(&id);
            state.active += 1;
            state.masters += master;
            self.app(id).is_active = true;
            let order = self.scheduler.order(queue, self.apps[id as usize].used);
            self.scheduler.add(queue, master, (order, id, MASTER_PRIORITY, 0));
            self.arm_for(master);
        }
    }

    pub(super) fn activate_all(&mut self) {
        for queue in 0..self.scheduler.queues.len() {
            self.activate(queue);
        }
    }

    /// YARN refuses an ask that is larger than the largest registered node, resource by resource. Where none is
    /// registered, and right after a start, its configured maximum holds, which is beyond any ask.
    pub(super) fn may_ever_be_granted(&self, size: Resources) -> bool {
        let registered = self.slots.iter().filter_map(|slot| slot.node.as_ref()?.registered());
        let largest = registered.reduce(largest_parts);
        self.now < self.rm.grants_from || largest.is_none_or(|largest| size.fits(largest))
    }

    /// An application whose ask was refused fails.
    pub(super) fn reject(&mut self, id: AppId) {
        self.record.rejected += 1;
        self.finish(id, false);
    }

    pub(super) fn master_ready(&mut self, id: AppId, generation: u32) {
        let app = &self.apps[id as usize];
        let lives = app.master.and_then(|id| self.containers.get(id)).is_some_and(|master| master.stopped_at.is_none());
        if lives && app.generation == generation && app.phase == Phase::MasterStarts {
            self.app(id).phase = Phase::Running;
            self.begin(id);
        }
    }

    /// The application asks for what it begins with.
    pub(super) fn begin(&mut self, id: AppId) {
        self.shown_change(id);
        match &self.job(id).work {
            Work::Gang { groups, .. } => {
                // TonY gives each job type a priority of its own, in their order.
                let asks = (0..).zip(groups).map(|(priority, group)| AppAsk {
                    resources: group.resources,
                    priority,
                    containers: group.containers,
                    is_master: false,
                });
                let asks: Vec<_> = asks.filter(|ask| ask.containers > 0).collect();
                self.ask(id, asks);
            }
            Work::Stages(_) => self.begin_stages(id),
            Work::Executors(_) => self.begin_executors(id),
        }
    }

    /// Replaces all that an application asks for.
    pub(super) fn ask(&mut self, id: AppId, asks: Vec<AppAsk>) {
        if !asks.iter().all(|ask| self.may_ever_be_granted(ask.resources)) {
            return self.reject(id);
        }
        self.withdraw(id);
        if asks.is_empty() {
            return self.gang_granted(id, self.now);
        }
        self.app(id).asks = asks;
        let is_whole = self.rules.atomic && self.job(id).is_gang();
        let queue = self.apps[id as usize].queue;
        for index in 0..self.apps[id as usize].asks.len() {
            let AppAsk { resources, containers, .. } = self.apps[id as usize].asks[index];
            self.count_asked(resources, containers);
            self.enlist(id, index);
            self.arm_for(resources);
        }
        if is_whole {
            self.scheduler.queues[queue].atomic.insert(id);
            self.arm_round();
        }
        self.shown_change(id);
    }

    /// Puts an ask into its queue's order.
    pub(super) fn enlist(&mut self, id: AppId, index: usize) {
        let app = &self.apps[id as usize];
        let AppAsk { resources, priority, containers, is_master } = app.asks[index];
        let is_whole = self.rules.atomic && !is_master && self.job(id).is_gang();
        if containers > 0 && !is_whole {
            let order = self.scheduler.order(app.queue, app.used);
            let entry = (order, id, priority, u32::try_from(index).unwrap_or(u32::MAX));
            self.scheduler.add(app.queue, resources, entry);
        }
    }

    fn delist(&mut self, id: AppId, index: usize) {
        let app = &self.apps[id as usize];
        let AppAsk { resources, priority, .. } = app.asks[index];
        let order = self.scheduler.order(app.queue, app.used);
        let entry = (order, id, priority, u32::try_from(index).unwrap_or(u32::MAX));
        self.scheduler.remove(app.queue, resources, entry);
    }

    /// Takes back all that an application asks for.
    pub(super) fn withdraw(&mut self, id: AppId) {
        let queue = self.apps[id as usize].queue;
        for index in 0..self.apps[id as usize].asks.len() {
            self.delist(id, index);
            let AppAsk { resources, containers, .. } = self.apps[id as usize].asks[index];
            self.count_unasked(resources, containers);
            self.count_demand(resources, containers, false);
        }
        self.app(id).asks.clear();
        self.scheduler.queues[queue].inactive.remove(&id);
        self.scheduler.queues[queue].atomic.remove(&id);
    }

    /// One container of an ask is granted: it is asked for no more, and still wanted.
    pub(super) fn take_from_ask(&mut self, id: AppId, index: usize) {
        let ask = &mut self.app(id).asks[index];
        ask.containers -= 1;
        let (size, left) = (ask.resources, ask.containers);
        if left == 0 {
            self.delist(id, index);
        }
        self.count_unasked(size, 1);
    }

    fn count_asked(&mut self, size: Resources, containers: u32) {
        self.pending += size.times(containers.into());
        self.pending_containers += u64::from(containers);
        self.count_demand(size, containers, true);
        self.seen_change();
    }

    fn count_unasked(&mut self, size: Resources, containers: u32) {
        self.pending = self.pending.saturating_sub(size.times(containers.into()));
        self.pending_containers -= u64::from(containers);
        self.seen_change();
    }

    /// Containers held and asked for.
    pub(super) fn count_demand(&mut self, size: Resources, containers: u32, more: bool) {
        self.record.demand_changed = true;
        let key = packing::key(size);
        let count = self.demand.entry(key).or_insert(0);
        *count = if more { *count + containers } else { count.saturating_sub(containers) };
        if *count == 0 {
            self.demand.remove(&key);
        }
    }

    /// Asks for more containers of an ask that exists, or for the first ones of a new one.
    pub(super) fn ask_more(&mut self, id: AppId, priority: i32, resources: Resources, containers: u32) {
        if containers == 0 {
            return;
        }
        if !self.may_ever_be_granted(resources) {
            return self.reject(id);
        }
        let asks = &mut self.app(id).asks;
        let known =
            asks.iter().position(|ask| !ask.is_master && ask.priority == priority && ask.resources == resources);
        let index = known.unwrap_or_else(|| {
            asks.push(AppAsk { resources, priority, containers: 0, is_master: false });
            asks.len() - 1
        });
        asks[index].containers += containers;
        self.count_asked(resources, containers);
        self.enlist(id, index);
        self.arm_for(resources);
        self.shown_change(id);
    }

    /// What an application holds has changed: in a queue that serves who holds least, its asks move.
    pub(super) fn change_used(&mut self, id: AppId, change: impl Fn(Resources) -> Resources) {
        let app = &self.apps[id as usize];
        let (queue, before) = (app.queue, app.used);
        let after = change(before);
        let moves = self.scheduler.order(queue, before) != self.scheduler.order(queue, after);
        let indices = 0..app.asks.len();
        if moves {
            indices.clone().for_each(|index| self.delist(id, index));
        }
        self.app(id).used = after;
        if moves {
            indices.for_each(|index| self.enlist(id, index));
        }
        let used = &mut self.scheduler.queues[queue].used;
        *used = (*used + after).saturating_sub(before);
        self.shown_change(id);
    }

    /// An application has got a container.
    pub(super) fn granted(&mut self, id: AppId, container: ContainerId, is_master: bool) {
        let starts_at = self.now + self.rules.container_start;
        let app = self.app(id);
        if is_master {
            app.master = Some(container);
            app.phase = Phase::MasterStarts;
            let ready = Event::MasterReady(id, app.generation);
            self.events.push(starts_at + self.rules.master_start, ready);
            return;
        }
        app.held.push(container);
        match &self.job(id).work {
            Work::Gang { .. } => self.gang_granted(id, starts_at),
            Work::Stages(_) => self.stage_granted(id, container, starts_at),
            Work::Executors(_) => self.executor_granted(id, container, starts_at),
        }
    }

    /// A gang that has all its containers, and its master, begins to work; not where one is on a machine that has died.
    fn gang_granted(&mut self, id: AppId, starts_at: Ms) {
        let app = &self.apps[id as usize];
        let lives = |id: &ContainerId| self.containers.get(*id).is_some_and(|container| container.stopped_at.is_none());
        if app.asks.iter().any(|ask| ask.containers > 0) || !app.held.iter().chain(&app.master).all(lives) {
            return;
        }
        let Work::Gang { duration_ms, .. } = self.job(id).work else { return };
        let Working::Gang { saved_ms } = self.apps[id as usize].work else { return };
        self.starts(id, starts_at);
        for container in &self.apps[id as usize].held {
            if let Some(container) = self.containers.get_mut(*container) {
                container.works_since = Some(starts_at);
            }
        }
        let ends = Event::GangEnds(id, self.apps[id as usize].generation);
        self.events.push(starts_at + duration_ms.saturating_sub(saved_ms), ends);
    }

    /// The application begins to work.
    pub(super) fn starts(&mut self, id: AppId, at: Ms) {
        if self.app(id).started_at.is_none() {
            self.app(id).started_at = Some(at);
            self.record.waiting -= 1;
            self.record.running += 1;
            self.record.changed = true;
        }
    }

    pub(super) fn gang_ends(&mut self, id: AppId, generation: u32) {
        let app = &self.apps[id as usize];
        if app.generation != generation || app.phase != Phase::Running {
            return;
        }
        for container in &app.held {
            let Some(container) = self.containers.get_mut(*container) else { continue };
            // One that died is not missed by those that go on without it; what it had done is lost all the same.
            let spent = worked(container, self.now);
            *(if container.stopped_at.is_some() { &mut container.lost_ms } else { &mut container.useful_ms }) += spent;
        }
        self.finish(id, true);
    }

    /// The application ends, and gives all back.
    pub(super) fn finish(&mut self, id: AppId, succeeded: bool) {
        self.withdraw(id);
        if succeeded {
            for container in std::mem::take(&mut self.app(id).held) {
                self.release(container);
            }
        } else {
            self.throw_away(id);
            self.forfeit(id);
        }
        if let Some(master) = self.app(id).master.take() {
            self.release_master(master, succeeded);
        }
        self.deactivate(id);
        let now = self.now;
        let app = self.app(id);
        (app.phase, app.ended_at, app.succeeded, app.view) = (Phase::Ended, Some(now), succeeded, None);
        let counter = if app.started_at.is_some() { &mut self.record.running } else { &mut self.record.waiting };
        *counter -= 1;
        self.record.last_end = now;
        self.live.remove(&id);
        // Of a hundred thousand jobs that have ended, empty lists are what most memory would go to.
        self.app(id).asks = Vec::new();
        self.leave_nodes(id);
        let queue = self.apps[id as usize].queue;
        self.activate(queue);
        self.seen_change();
    }

    /// Its master counts no more among those that its queue allows.
    pub(super) fn deactivate(&mut self, id: AppId) {
        if std::mem::take(&mut self.app(id).is_active) {
            let master = self.job(id).master.unwrap_or_default();
            let state = &mut self.scheduler.queues[self.apps[id as usize].queue];
            state.active -= 1;
            state.masters = state.masters.saturating_sub(master);
        }
    }

    /// Nodes that drain wait for the application no more.
    fn leave_nodes(&mut self, id: AppId) {
        for slot in std::mem::take(&mut self.app(id).touched) {
            let at = self.next_beat(slot, self.now);
            let Some(node) = &mut self.slots[slot as usize].node else { continue };
            let Some(place) = node.apps.iter().position(|(app, _)| *app == id) else { continue };
            node.apps.remove(place);
            if node.state == NodeState::Decommissioning {
                self.events.push(at, Event::DrainCheck(slot, node.generation));
            }
        }
    }

    /// What is shown of an application has changed.
    pub(super) fn shown_change(&mut self, id: AppId) {
        self.app(id).view = None;
        self.seen_change();
    }
}

/// The work of an application that has done nothing yet.
pub(super) fn fresh(work: &Work) -> Working {
    match work {
        Work::Gang { .. } => Working::Gang { saved_ms: 0 },
        Work::Stages(stages) => Working::Stages(vec![StageProgress::default(); stages.len()]),
        Work::Executors(executors) => {
            Working::Executors(ExecutorProgress { waiting: executors.tasks, ..ExecutorProgress::default() })
        }
    }
}

fn largest_parts(a: Resources, b: Resources) -> Resources {
    Resources::new(a.memory_mb.max(b.memory_mb), a.vcores.max(b.vcores), a.gpus.max(b.gpus))
}
