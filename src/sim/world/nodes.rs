//! Nodes: they register, are cordoned, drained and taken back, die and are lost. YARN's rules as they were measured.

use std::time::Duration;

use super::{ContainerId, Event, KilledBy, SlotId, World, losses::Cause, machines::RmNode, ms};
use crate::{
    model::{NodeState, Resources},
    sim::{Ms, workload::OnLoss},
};

/// YARN takes no update to less than this.
const LEAST: Resources = Resources::new(1, 1, 0);

/// A ResourceManager that has started hands out nothing for so long, and measures asks by its configured maximum
/// (`work-preserving-recovery.scheduling-wait-ms`).
pub(super) const SCHEDULING_WAIT_MS: Ms = 10_000;

impl World {
    /// Whether a NodeManager could come from this machine now: it is there, alive and not being deleted.
    fn may_come(&self, slot: SlotId, generation: u32) -> bool {
        let entry = self.slot(slot);
        let lives = entry.machine.as_ref().is_some_and(|machine| !machine.stopping && machine.dead_at.is_none());
        entry.generation == generation && lives
    }

    /// A NodeManager comes to register with the ResourceManager; where that is down, it tries until it is up.
    pub(super) fn registers(&mut self, slot: SlotId, generation: u32) {
        if !self.may_come(slot, generation) {
            return;
        }
        if !self.rm.is_up {
            self.rm.at_the_door.push((slot, generation));
            return;
        }
        // An earlier machine of this name, of which YARN still thinks that it runs: its containers are not there.
        if self.slot(slot).node.as_ref().is_some_and(|node| node.state.is_active()) {
            self.leaves(slot, NodeState::Rebooted, Cause::Fault);
        }
        let (full, now, excluded) = (self.full(slot), self.now, self.cloud.is_excluded(slot));
        let beats_from = self.first_beat();
        let entry = &mut self.slots[slot as usize];
        let Some(machine) = entry.machine.as_mut() else { return };
        machine.has_come = true;
        machine.manager_up = !excluded;
        entry.node = Some(RmNode::running(generation, Resources::default(), beats_from));
        if excluded {
            // It is told to go as it comes.
            self.alter(slot, |node| node.state = NodeState::Decommissioned);
            return;
        }
        machine.registered_at = (!machine.without_gpus).then_some(now);
        let offers = if machine.without_gpus { Resources { gpus: 0, ..full } } else { full };
        self.record.counts.boots += 1;
        self.alter(slot, |node| (node.total, node.before_drain) = (offers, offers));
        self.arm(slot);
    }

    /// YARN is told what a node may hand out. Nothing is ended for it: a node may hold more than that.
    ///
    /// # Errors
    /// There is no such node, or it is not active.
    pub fn set_total(&mut self, host: &str, total: Resources) -> Result<(), String> {
        let slot = self.active_slot(host)?;
        let vcores = total.vcores.max(LEAST.vcores);
        let mut total = Resources { memory_mb: total.memory_mb.max(LEAST.memory_mb), vcores, ..total };
        // A node that registered without its GPUs has none to give.
        if self.slot(slot).machine.as_ref().is_some_and(|machine| machine.without_gpus) {
            total.gpus = 0;
        }
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
            let (now, beat) = (self.now, self.next_beat(slot, self.now));
            let Some(node) = self.slot(slot).node.as_ref() else { continue };
            let since = match node.state {
                NodeState::Running | NodeState::New | NodeState::Unhealthy => now,
                // Another time-out does not set the clock back.
                NodeState::Decommissioning => node.drains_since,
                _ => continue,
            };
            let (generation, deadline) = (node.generation, since.saturating_add(ms(timeout)));
            self.alter(slot, |node| {
                if node.state != NodeState::Decommissioning {
                    (node.before_drain, node.drains_since) = (node.total, now);
                }
                (node.state, node.deadline) = (NodeState::Decommissioning, Some(deadline));
            });
            self.events.push(beat, Event::DrainCheck(slot, generation));
            self.events.push(deadline.max(beat), Event::DrainCheck(slot, generation));
        }
    }

    /// A draining node reports: it may go when no application that it knows of has had a container on it, or at its
    /// time-out. What came with its last heartbeat it does not know of, and takes with it (YARN-11421).
    pub(super) fn drain_check(&mut self, slot: SlotId, generation: u32) {
        let (now, heartbeat) = (self.now, self.rules.heartbeat);
        let entry = self.slot(slot);
        let drains = |node: &&RmNode| node.generation == generation && node.state == NodeState::Decommissioning;
        let Some(node) = entry.own_node().filter(drains).filter(|_| entry.is_alive() && self.rm.is_up) else { return };
        let overdue = node.deadline.is_some_and(|deadline| deadline <= now);
        // A container is told of by the heartbeat after the one that brought it, at the earliest: its master has to
        // fetch and launch it in between.
        let known = node.apps.iter().any(|(_, since)| since + heartbeat < now);
        if !known || overdue {
            self.leaves(slot, NodeState::Decommissioned, Cause::Drain);
        }
    }

    /// A NodeManager goes, and its containers with it.
    pub(super) fn leaves(&mut self, slot: SlotId, state: NodeState, cause: Cause) {
        self.note_leaving(slot, cause);
        self.alter(slot, |node| (node.state, node.total, node.deadline) = (state, Resources::default(), None));
        let entry = &mut self.slots[slot as usize];
        let Some(node) = &mut entry.node else { return };
        node.apps.clear();
        let (containers, generation) = (node.containers.clone(), node.generation);
        if let Some(machine) = entry.machine.as_mut().filter(|_| entry.generation == generation) {
            machine.manager_up = false;
        }
        self.lose_all(&containers, cause);
        self.recount(slot);
    }

    /// Hosts are taken off the exclude file, and nodes are refreshed gracefully. A draining node gets back what it
    /// declared when its drain began; what does not fit is killed at once (over-commit time-out 0).
    pub fn include(&mut self, hosts: &[String]) {
        for host in hosts {
            let Some(slot) = self.slot_of.get(host).copied() else { continue };
            self.cloud.excluded.remove(&slot);
            if self.slot(slot).node.as_ref().is_none_or(|node| node.state != NodeState::Decommissioning) {
                continue;
            }
            self.record.counts.recommissions += 1;
            let state = if self.is_unhealthy(slot) { NodeState::Unhealthy } else { NodeState::Running };
            self.alter(slot, |node| (node.state, node.total, node.deadline) = (state, node.before_drain, None));
            if state == NodeState::Unhealthy {
                self.lose_all_of(slot, Cause::Fault);
            }
            while let Some(last) = self.overcommitted(slot) {
                self.note_kill(slot, 1, KilledBy::Recommission);
                self.lose(last, Cause::Drain);
            }
            self.arm(slot);
        }
    }

    /// Of a node that holds more than it may: the newest container, application masters last.
    fn overcommitted(&self, slot: SlotId) -> Option<ContainerId> {
        let node = self.slot(slot).node.as_ref().filter(|node| !node.used.fits(node.total))?;
        let is_task = |id: &&ContainerId| self.containers.get(**id).is_some_and(|container| !container.is_master);
        node.containers.iter().rev().find(is_task).or(node.containers.last()).copied()
    }

    /// A machine dies: YARN does not know it yet.
    pub(super) fn dies(&mut self, slot: SlotId) {
        let (now, expiry) = (self.now, self.rules.node_expiry);
        let entry = &mut self.slots[slot as usize];
        let generation = entry.generation;
        let Some(machine) = entry.machine.as_mut().filter(|machine| machine.dead_at.is_none()) else { return };
        machine.dead_at = Some(now);
        // What runs there does nothing any more, and a gang that lacks one of its own stands still: ends that were
        // foreseen do not come.
        for id in self.containers_on(slot) {
            let Some(container) = self.containers.get_mut(id) else { continue };
            container.stopped_at = Some(now);
            let app = container.app;
            let job = self.job(app);
            if job.is_gang() && job.on_loss != OnLoss::Continue {
                self.app(app).generation += 1;
            }
        }
        self.events.push(now + expiry, Event::Expires(slot, generation));
        self.recount(slot);
        self.seen_change();
        self.list_changed();
    }

    pub(super) fn containers_on(&self, slot: SlotId) -> Vec<ContainerId> {
        self.slot(slot).node.as_ref().map(|node| node.containers.clone()).unwrap_or_default()
    }

    /// Nothing was heard of a node for too long: YARN gives it up. A ResourceManager that is down does so as it starts.
    pub(super) fn expires(&mut self, slot: SlotId, generation: u32) {
        let silent = |node: &&RmNode| node.generation == generation && node.state.is_active();
        if self.rm.is_up && self.slot(slot).node.as_ref().filter(silent).is_some() {
            self.leaves(slot, NodeState::Lost, Cause::Fault);
        }
    }

    /// The ResourceManager that is up again hears of its nodes: what drains is excluded and told to go, what a cordon
    /// cut down below the smallest container is refused, and what died meanwhile is not heard of. Nodes that are gone
    /// are forgotten, unless they are excluded.
    pub(super) fn nodes_register_anew(&mut self) {
        self.rm.grants_from = self.now + SCHEDULING_WAIT_MS;
        for index in 0..self.slots.len() {
            let slot = SlotId::try_from(index).unwrap_or(SlotId::MAX);
            let least = self.rules.minimum_allocation;
            let entry = &self.slots[index];
            let Some(node) = &entry.node else { continue };
            let is_heard_of = entry.is_alive() && node.generation == entry.generation;
            if !node.state.is_active() || !is_heard_of {
                self.leaves(slot, NodeState::Lost, Cause::Fault);
                self.forget(slot);
            } else if self.cloud.is_excluded(slot) {
                self.leaves(slot, NodeState::Decommissioned, Cause::Fault);
            } else if node.total.memory_mb < least.memory_mb || node.total.vcores < least.vcores {
                self.leaves(slot, NodeState::Shutdown, Cause::Fault);
            }
            self.recount(slot);
        }
        for (slot, generation) in std::mem::take(&mut self.rm.at_the_door) {
            self.registers(slot, generation);
        }
        self.seen_change();
        self.activate_all();
        self.arm_all();
    }

    /// A new ResourceManager knows of a node that is gone only what its exclude file says.
    fn forget(&mut self, slot: SlotId) {
        let excluded = self.cloud.is_excluded(slot);
        let Some(node) = &mut self.slots[slot as usize].node else { return };
        if excluded {
            (node.state, node.view) = (NodeState::Decommissioned, None);
        } else {
            self.slots[slot as usize].node = None;
        }
    }
}
