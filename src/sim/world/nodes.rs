//! Nodes: they register, are cordoned, drained and taken back, die and are lost. YARN's rules as they were measured.

use std::time::Duration;

use super::{AppId, ContainerId, Event, KilledBy, SlotId, World, losses::Cause, machines::RmNode, ms};
use crate::{
    model::{NodeState, Resources},
    sim::workload::OnLoss,
};

/// YARN takes no update to less than this.
const LEAST: Resources = Resources::new(1, 1, 0);

impl World {
    /// The slot of a host, where its machine is still the one that the event is about.
    fn is_current(&self, slot: SlotId, generation: u32) -> bool {
        let entry = self.slot(slot);
        entry.generation == generation && entry.machine.is_some()
    }

    /// A NodeManager registers with the ResourceManager.
    pub(super) fn registers(&mut self, slot: SlotId, generation: u32) {
        if !self.is_current(slot, generation) {
            return;
        }
        let (full, now) = (self.full(slot), self.now);
        let excluded = self.cloud.is_excluded(slot);
        let entry = &mut self.slots[slot as usize];
        let Some(machine) = entry.machine.as_mut().filter(|machine| !machine.stopping && machine.dead_at.is_none())
        else {
            return;
        };
        let offers = if machine.without_gpus { Resources { gpus: 0, ..full } } else { full };
        machine.registered_at = (!machine.without_gpus).then_some(now);
        machine.manager_up = !excluded;
        entry.node = Some(RmNode::running(Resources::default()));
        self.record.counts.boots += 1;
        // An excluded host is told to go as it comes.
        let state = if excluded { NodeState::Decommissioned } else { NodeState::Running };
        self.alter(slot, |node| (node.state, node.total, node.before_drain) = (state, offers, offers));
        self.arm(slot);
        self.activate_all();
    }

    /// YARN is told what a node may hand out.
    ///
    /// # Errors
    /// There is no such node, or it is not active.
    pub fn set_total(&mut self, host: &str, total: Resources) -> Result<(), String> {
        let slot = self.active_slot(host)?;
        let total = Resources { memory_mb: total.memory_mb.max(LEAST.memory_mb), vcores: total.vcores.max(LEAST.vcores), ..total };
        // A node that registered without its GPUs has none to give.
        let without = self.slot(slot).machine.as_ref().is_some_and(|machine| machine.without_gpus);
        let total = if without { Resources { gpus: 0, ..total } } else { total };
        self.alter(slot, |node| node.total = total);
        self.arm(slot);
        Ok(())
    }

    fn active_slot(&self, host: &str) -> Result<SlotId, String> {
        let slot = self.slot_of.get(host).copied();
        let is_active = |slot: &SlotId| self.slot(*slot).node.as_ref().is_some_and(|node| node.state.is_active());
        slot.filter(is_active).ok_or_else(|| format!("no such node: {host}"))
    }

    /// Hosts are put on the exclude file, and nodes are refreshed gracefully.
    pub fn exclude(&mut self, hosts: &[String], timeout: Duration) {
        for host in hosts {
            let Some(slot) = self.slot_of.get(host).copied() else { continue };
            self.cloud.excluded.insert(slot);
            let (now, beat) = (self.now, self.next_beat(slot));
            let Some(node) = self.slot(slot).node.as_ref() else { continue };
            let since = match (node.state, node.deadline) {
                (NodeState::Running | NodeState::Unhealthy, _) => now,
                // Another time-out does not set the clock back.
                (NodeState::Decommissioning, Some(_)) => node.drains_since,
                _ => continue,
            };
            let deadline = since.saturating_add(ms(timeout));
            self.alter(slot, |node| {
                if node.state != NodeState::Decommissioning {
                    (node.before_drain, node.drains_since) = (node.total, now);
                }
                (node.state, node.deadline) = (NodeState::Decommissioning, Some(deadline));
            });
            let generation = self.slot(slot).generation;
            self.events.push(beat, Event::DrainCheck(slot, generation));
            self.events.push(deadline.max(beat), Event::DrainCheck(slot, generation));
        }
    }

    /// A draining node reports: it may go when no application that it knows of has had a container on it, or at its
    /// time-out. What came with its last heartbeat it does not know of, and takes with it (YARN-11421).
    pub(super) fn drain_check(&mut self, slot: SlotId, generation: u32) {
        let (now, heartbeat) = (self.now, self.rules.heartbeat);
        if !self.is_current(slot, generation) || !self.rm.is_up {
            return;
        }
        let entry = self.slot(slot);
        let is_up = entry.machine.as_ref().is_some_and(|machine| machine.manager_up && machine.dead_at.is_none());
        let Some(node) = entry.node.as_ref().filter(|node| is_up && node.state == NodeState::Decommissioning) else {
            return;
        };
        let overdue = node.deadline.is_some_and(|deadline| deadline <= now);
        let known = node.apps.iter().any(|(_, since)| since + heartbeat <= now);
        if !known || overdue {
            self.leaves(slot, NodeState::Decommissioned, Cause::Drain);
        }
    }

    /// A NodeManager goes, and its containers with it.
    pub(super) fn leaves(&mut self, slot: SlotId, state: NodeState, cause: Cause) {
        self.note_leaving(slot, cause);
        let Some(node) = &mut self.slots[slot as usize].node else { return };
        let containers = node.containers.clone();
        self.alter(slot, |node| (node.state, node.total, node.deadline) = (state, Resources::default(), None));
        self.lose_all(containers, cause);
        if let Some(machine) = &mut self.slots[slot as usize].machine {
            machine.manager_up = false;
        }
        if let Some(node) = &mut self.slots[slot as usize].node {
            node.apps.clear();
        }
        self.recount(slot);
    }

    /// Hosts are taken off the exclude file, and nodes are refreshed gracefully. A draining node gets back what it
    /// declared when its drain began; what does not fit is killed at once (over-commit time-out 0).
    pub fn include(&mut self, hosts: &[String]) {
        for host in hosts {
            let Some(slot) = self.slot_of.get(host).copied() else { continue };
            self.cloud.excluded.remove(&slot);
            let draining = |node: &&RmNode| node.state == NodeState::Decommissioning;
            if self.slot(slot).node.as_ref().filter(draining).is_none() {
                continue;
            }
            self.record.counts.recommissions += 1;
            self.alter(slot, |node| {
                (node.state, node.total, node.deadline) = (NodeState::Running, node.before_drain, None);
            });
            while let Some(last) = self.overcommitted(slot) {
                self.note_kill(slot, 1, KilledBy::Recommission);
                self.lose(last, Cause::Drain);
            }
            self.arm(slot);
        }
    }

    /// The newest container of a node that holds more than it may.
    fn overcommitted(&self, slot: SlotId) -> Option<ContainerId> {
        let node = self.slot(slot).node.as_ref()?;
        if node.used.fits(node.total) { None } else { node.containers.last().copied() }
    }

    /// A machine dies: YARN does not know it yet.
    pub(super) fn dies(&mut self, slot: SlotId) {
        let (now, expiry) = (self.now, self.rules.node_expiry);
        let entry = &mut self.slots[slot as usize];
        let generation = entry.generation;
        let Some(machine) = &mut entry.machine else { return };
        machine.dead_at = Some(now);
        // What runs there does nothing any more: ends that were foreseen do not come.
        let containers = entry.node.as_ref().map(|node| node.containers.clone()).unwrap_or_default();
        for container in containers {
            if let Some(app) = self.containers.get(container).map(|container| container.app) {
                self.app(app).generation += u32::from(self.stalls_without(app));
            }
        }
        self.events.push(now + expiry, Event::Expires(slot, generation));
        self.recount(slot);
        self.seen_change();
        self.list_changed();
    }

    fn stalls_without(&self, app: AppId) -> bool {
        self.job(app).is_gang() && self.job(app).on_loss != OnLoss::Continue
    }

    /// Nothing was heard of a node for too long: YARN gives it up.
    pub(super) fn expires(&mut self, slot: SlotId, generation: u32) {
        let is_active = self.slot(slot).node.as_ref().is_some_and(|node| node.state.is_active());
        if self.is_current(slot, generation) && is_active {
            self.leaves(slot, NodeState::Lost, Cause::Fault);
        }
    }

    /// The ResourceManager that is up again hears of its nodes: what drains is excluded and told to go, what a cordon
    /// cut down below the smallest container is refused. Nodes that are gone are forgotten.
    pub(super) fn nodes_register_anew(&mut self) {
        for index in 0..self.slots.len() {
            let slot = SlotId::try_from(index).unwrap_or(SlotId::MAX);
            let least = self.rules.minimum_allocation;
            let entry = &self.slots[index];
            let Some(node) = &entry.node else { continue };
            if !node.state.is_active() {
                self.slots[index].node = None;
            } else if self.cloud.is_excluded(slot) {
                self.leaves(slot, NodeState::Decommissioned, Cause::Fault);
            } else if node.total.memory_mb < least.memory_mb || node.total.vcores < least.vcores {
                self.leaves(slot, NodeState::Shutdown, Cause::Fault);
            } else if node.state == NodeState::Decommissioning {
                self.alter(slot, |node| (node.state, node.deadline) = (NodeState::Running, None));
            }
            self.recount(slot);
        }
        self.seen_change();
        self.activate_all();
        self.arm_all();
    }
}
