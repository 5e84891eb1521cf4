//! The world's own books, counted anew: what is kept as a running figure must be what a recount says. For tests, which
//! call it after every event; it changes nothing and costs a look at everything.

use std::{collections::BTreeMap, fmt::Debug};

use super::{
    AppId, SlotId, World,
    applications::{App, AppAsk, Phase},
    machines::counter,
    packing,
    scheduler::Entry,
};
use crate::{
    model::Resources,
    sim::{outcome::Machines, scenario::Placement},
};

/// What does not agree.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn equal<T: PartialEq + Debug>(&mut self, what: &str, kept: &T, counted: &T) {
        if kept != counted {
            self.0.push(format!("{what}: kept {kept:?}, counted {counted:?}"));
        }
    }

    fn holds(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.0.push(what());
        }
    }
}

impl World {
    /// What of the world's running figures a recount does not confirm, and what must never be; empty where all is well.
    pub fn audit(&self) -> Vec<String> {
        let mut findings = Findings::default();
        self.audit_jobs(&mut findings);
        self.audit_sums(&mut findings);
        self.audit_containers(&mut findings);
        self.audit_nodes(&mut findings);
        self.audit_scheduler(&mut findings);
        self.audit_heartbeats(&mut findings);
        self.audit_cloud(&mut findings);
        findings.0
    }

    fn live_apps(&self) -> impl Iterator<Item = (AppId, &App)> {
        self.live.iter().map(|id| (*id, &self.apps[*id as usize]))
    }

    fn audit_jobs(&self, findings: &mut Findings) {
        let ended = self.apps.iter().filter(|app| app.ended_at.is_some()).count();
        findings.equal("jobs that have not ended", &self.live.len(), &(self.apps.len() - ended));
        let works = |working: bool| {
            let count = self.live_apps().filter(|(_, app)| app.started_at.is_some() == working).count();
            u32::try_from(count).unwrap_or(u32::MAX)
        };
        findings.equal("jobs that wait", &self.record.waiting, &works(false));
        findings.equal("jobs that work", &self.record.running, &works(true));
        for app in self.apps.iter().filter(|app| app.ended_at.is_some()) {
            let is_bare = app.held.is_empty() && app.master.is_none() && app.asks.is_empty();
            findings.holds(is_bare && app.used == Resources::default(), || format!("an ended job holds on: {app:?}"));
        }
    }

    fn audit_sums(&self, findings: &mut Findings) {
        let asks = || self.live_apps().flat_map(|(_, app)| &app.asks);
        let asked: Resources = asks().map(|ask| ask.resources.times(ask.containers.into())).sum();
        findings.equal("pending", &self.pending, &asked);
        let asked: u64 = asks().map(|ask| u64::from(ask.containers)).sum();
        findings.equal("pending containers", &self.pending_containers, &asked);
        let held: Resources = self.containers.iter().map(|(_, container)| container.resources).sum();
        findings.equal("allocated", &self.allocated, &held);
        findings.equal("allocated containers", &self.allocated_containers, &(self.containers.iter().count() as u64));
        let mut demand = BTreeMap::new();
        let sizes = asks().map(|ask| (ask.resources, ask.containers));
        for (size, count) in sizes.chain(self.containers.iter().map(|(_, container)| (container.resources, 1))) {
            *demand.entry(packing::key(size)).or_insert(0) += count;
        }
        demand.retain(|_, count| *count > 0);
        findings.equal("demand", &self.demand, &demand);
        for (index, queue) in self.scheduler.queues.iter().enumerate() {
            let ours = || self.live_apps().filter(|(_, app)| app.queue == index);
            findings.equal("used by a queue", &queue.used, &ours().map(|(_, app)| app.used).sum());
            let active = || ours().filter(|(_, app)| app.is_active);
            findings.equal("active in a queue", &(queue.active as usize), &active().count());
            let masters = active().map(|(id, _)| self.job(id).master.unwrap_or_default()).sum();
            findings.equal("masters of a queue", &queue.masters, &masters);
        }
    }

    fn audit_containers(&self, findings: &mut Findings) {
        for (id, app) in self.live_apps() {
            let ours = || app.held.iter().chain(&app.master);
            let found: Vec<_> = ours().filter_map(|container| self.containers.get(*container)).collect();
            findings.equal("containers of a job", &ours().count(), &found.len());
            findings.equal("used by a job", &app.used, &found.iter().map(|container| container.resources).sum());
            findings.holds(found.iter().all(|container| container.app == id), || format!("{id} holds another's"));
        }
        let of_apps: usize = self.live_apps().map(|(_, app)| app.held.len() + usize::from(app.master.is_some())).sum();
        findings.equal("containers that somebody holds", &of_apps, &self.containers.iter().count());
        for (id, container) in self.containers.iter() {
            let node = self.slot(container.slot).node.as_ref();
            let is_there = node.is_some_and(|node| node.state.is_active() && node.containers.contains(&id));
            findings.holds(is_there, || format!("{container:?} is on no node that is active"));
            let until = container.paid_until.unwrap_or(self.now);
            let fits = container.useful_ms + container.lost_ms <= until - container.granted_at;
            findings.holds(fits, || format!("{container:?} worked longer than it was there"));
        }
    }

    fn audit_nodes(&self, findings: &mut Findings) {
        let (mut offered, mut machines) = (Resources::default(), Machines::default());
        let mut on_nodes = 0;
        for (index, entry) in self.slots.iter().enumerate() {
            let slot = SlotId::try_from(index).unwrap_or(SlotId::MAX);
            let full = self.full(slot);
            if let Some(standing) = entry.standing(full) {
                *counter(&mut machines, standing) += 1;
            }
            let Some(node) = &entry.node else { continue };
            offered += node.offers();
            on_nodes += node.containers.len();
            let held = node.containers.iter().filter_map(|id| self.containers.get(*id));
            findings.equal("used on a node", &node.used, &held.map(|container| container.resources).sum());
            findings.holds(node.used.fits(full), || format!("{} holds more than its machine has", entry.host));
            let is_busy = entry.machine.as_ref().is_some_and(|machine| machine.busy_since.is_some());
            let has = entry.machine.is_some() && entry.own_node().is_some_and(|node| !node.containers.is_empty());
            findings.equal("whether a machine is busy", &is_busy, &has);
            for (app, _) in &node.apps {
                let app = &self.apps[*app as usize];
                let knows = app.phase != Phase::Ended && app.touched.contains(&slot);
                findings.holds(knows, || format!("{} waits for a job in vain: {app:?}", entry.host));
            }
        }
        findings.equal("offered", &self.offered, &offered);
        findings.equal("machines", &self.record.machines, &machines);
        findings.equal("containers on nodes", &on_nodes, &self.containers.iter().count());
    }

    fn audit_scheduler(&self, findings: &mut Findings) {
        for (queue, state) in self.scheduler.queues.iter().enumerate() {
            let mut waiting: Vec<(Resources, Entry)> = Vec::new();
            let (mut inactive, mut atomic) = (Vec::new(), Vec::new());
            for (id, app) in self.live_apps().filter(|(_, app)| app.queue == queue) {
                let is_whole = |ask: &AppAsk| self.rules.atomic && !ask.is_master && self.job(id).is_gang();
                let order = self.scheduler.order(queue, app.used);
                for (index, ask) in (0..).zip(&app.asks).filter(|(_, ask)| ask.containers > 0) {
                    match ask.is_master {
                        true if !app.is_active => inactive.push(id),
                        false if is_whole(ask) => atomic.push(id),
                        _ => waiting.push((ask.resources, (order, id, ask.priority, index))),
                    }
                }
            }
            let next = state.inactive.first().map(|id| self.job(*id).master.unwrap_or_default());
            let waits = next.is_none_or(|master| !state.may_activate(master, self.offered));
            findings.holds(waits, || format!("an application could be activated: {state:?}"));
            atomic.dedup();
            let sort = |entries: &mut Vec<(Resources, Entry)>| {
                entries.sort_by_key(|(size, entry)| (*entry, packing::key(*size)));
            };
            let mut listed: Vec<_> = state.waiting().collect();
            sort(&mut listed);
            sort(&mut waiting);
            findings.equal("the scheduler's order", &listed, &waiting);
            findings.equal("not activated", &state.inactive.iter().copied().collect(), &inactive);
            findings.equal("whole gangs", &state.atomic.iter().copied().collect(), &atomic);
        }
        let all: usize = self.scheduler.queues.iter().map(|queue| queue.waiting().count()).sum();
        findings.equal("whether anything waits", &self.scheduler.has_waiting(), &(all > 0));
    }

    /// What could be served has somebody who will look at it.
    fn audit_heartbeats(&self, findings: &mut Findings) {
        let waits = self.scheduler.has_atomic() || self.scheduler.has_waiting();
        if self.rules.placement == Placement::Pack || !self.rm.is_up || !waits || self.scheduler.limited {
            return;
        }
        for (index, entry) in self.slots.iter().enumerate().filter(|(_, entry)| !entry.armed) {
            let serves = self.takes_containers(SlotId::try_from(index).unwrap_or(SlotId::MAX));
            let room = entry.node.as_ref().map(super::RmNode::free).filter(|_| serves);
            findings.holds(!room.is_some_and(|room| self.scheduler.wants(room)), || {
                format!("{} could serve what waits, and will not be asked", entry.host)
            });
        }
    }

    fn audit_cloud(&self, findings: &mut Findings) {
        let (known, requests, under_way) = self.cloud.books();
        findings.equal("requests of operations", &requests, &known);
        findings.equal("operations under way", &self.orders_under_way(), &under_way);
    }
}
