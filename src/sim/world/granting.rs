//! Containers are handed out: by NodeManagers' heartbeats, or in rounds over all nodes at once.

use super::{
    AppId, ContainerId, Event, SlotId, World,
    applications::{AppAsk, Container},
    machines::RmNode,
    packing,
    scheduler::Chosen,
};
use crate::{model::NodeState, model::Resources, sim::Ms, sim::scenario::Placement};

/// Heartbeats of neighbouring initial nodes are so far apart: a number that shares no factor with a second.
const PHASE_MS: Ms = 137;

/// A NodeManager's first heartbeat follows its registration at once, and the first container with it (measured on 3.3.6:
/// 10 to 50 ms).
const FIRST_BEAT_MS: Ms = 20;

impl World {
    /// The next heartbeat of a node after an instant.
    pub(super) fn next_beat(&self, slot: SlotId, after: Ms) -> Ms {
        let every = self.rules.heartbeat;
        let phase = self.slot(slot).node.as_ref().map_or(0, |node| node.beats_from);
        (after + every - phase) / every * every + phase
    }

    /// When a node that has been there from the start reports first.
    pub(super) fn initial_beat(&self, slot: SlotId) -> Ms {
        Ms::from(slot) * PHASE_MS % self.rules.heartbeat
    }

    /// When a node that registers now reports first.
    pub(super) fn first_beat(&self) -> Ms {
        self.now + FIRST_BEAT_MS.min(self.rules.heartbeat - 1)
    }

    /// The next instant after which the scheduler may hand something out.
    fn grants_after(&self) -> Ms {
        self.now.max(self.rm.grants_from)
    }

    /// Whether YARN would place a container on this node.
    pub(super) fn takes_containers(&self, slot: SlotId) -> bool {
        let entry = self.slot(slot);
        let may = self.rm.is_up && self.now >= self.rm.grants_from && entry.is_alive();
        may && entry.own_node().is_some_and(|node| node.state == NodeState::Running)
    }

    /// Has the scheduler look at this node soon: it has room, or has got some.
    pub(super) fn arm(&mut self, slot: SlotId) {
        let waits = self.scheduler.has_waiting();
        let packs = self.rules.placement == Placement::Pack;
        if self.scheduler.has_atomic() || (waits && packs) {
            self.arm_round();
        }
        let entry = self.slot(slot);
        if !waits || packs || entry.armed || !self.rm.is_up || !entry.is_alive() {
            return;
        }
        let room = entry.own_node().filter(|node| node.state == NodeState::Running).map(RmNode::free);
        if room.is_some_and(|room| self.scheduler.wants(room)) {
            let at = self.next_beat(slot, self.grants_after());
            self.slots[slot as usize].armed = true;
            self.events.push(at, Event::Heartbeat(slot));
        }
    }

    /// Has the scheduler look at all nodes with room for this size.
    pub(super) fn arm_for(&mut self, size: Resources) {
        if self.rules.placement == Placement::Pack {
            return self.arm_round();
        }
        for index in 0..self.slots.len() {
            let entry = &self.slots[index];
            if !entry.armed && entry.node.as_ref().is_some_and(|node| size.fits(node.free())) {
                self.arm(u32::try_from(index).unwrap_or(u32::MAX));
            }
        }
    }

    /// Has the scheduler look at all nodes.
    pub(super) fn arm_all(&mut self) {
        self.arm_for(Resources::default());
        if self.scheduler.has_atomic() {
            self.arm_round();
        }
    }

    pub(super) fn arm_round(&mut self) {
        if !self.round_armed {
            self.round_armed = true;
            let every = self.rules.heartbeat;
            self.events.push((self.grants_after() / every + 1) * every, Event::Round);
        }
    }

    /// A NodeManager reports.
    pub(super) fn heartbeat(&mut self, slot: SlotId) {
        self.slots[slot as usize].armed = false;
        if !self.takes_containers(slot) {
            return;
        }
        for _ in 0..self.rules.per_heartbeat {
            let Some(room) = self.slot(slot).node.as_ref().map(RmNode::free) else { return };
            // What stays for a limit of its queue waits for an end elsewhere, not for the next heartbeat.
            let Some(chosen) = self.scheduler.choose(room, self.offered, |_| false) else { return };
            self.grant(chosen, slot);
        }
        self.arm(slot);
    }

    /// The scheduler looks at all nodes: gangs that are granted whole, and, where containers are packed, all the rest.
    pub(super) fn round(&mut self) {
        self.round_armed = false;
        if !self.rm.is_up {
            return;
        }
        if self.now < self.rm.grants_from {
            return self.arm_round();
        }
        for queue in 0..self.scheduler.queues.len() {
            let gangs: Vec<_> = self.scheduler.queues[queue].atomic.iter().copied().collect();
            for app in gangs {
                self.grant_whole(queue, app);
            }
        }
        if self.rules.placement == Placement::Pack {
            self.grant_packed();
        }
    }

    fn grant_packed(&mut self) {
        let everything = Resources::new(u64::MAX, u64::MAX, u64::MAX);
        let mut fits_nowhere = Vec::new();
        while let Some(chosen) = self.scheduler.choose(everything, self.offered, |size| fits_nowhere.contains(&size)) {
            match self.fullest_with_room(chosen.size, |slot| self.slots[slot].node.as_ref().map(RmNode::free)) {
                Some(slot) => self.grant(chosen, slot),
                None => fits_nowhere.push(chosen.size),
            }
        }
    }

    /// The fullest node on which a container of this size fits, by the rooms given.
    fn fullest_with_room(&self, size: Resources, room: impl Fn(usize) -> Option<Resources>) -> Option<SlotId> {
        let slots = (0..self.slots.len()).filter_map(|index| {
            let slot = u32::try_from(index).ok()?;
            let room = room(index).filter(|room| size.fits(*room) && self.takes_containers(slot))?;
            Some((packing::key(room), slot))
        });
        slots.min().map(|(_, slot)| slot)
    }

    /// Grants all that a gang asks for, or nothing.
    fn grant_whole(&mut self, queue: usize, app: AppId) {
        let mut rooms: Vec<_> =
            self.slots.iter().map(|slot| slot.node.as_ref().map(RmNode::free).unwrap_or_default()).collect();
        let asks: Vec<AppAsk> = self.apps[app as usize].asks.clone();
        let whole = asks.iter().map(|ask| ask.resources.times(ask.containers.into())).sum();
        if !self.scheduler.queues[queue].may_hold(whole, self.offered) {
            self.scheduler.limited = true;
            return;
        }
        let mut places = Vec::new();
        for (index, ask) in asks.iter().enumerate() {
            for _ in 0..ask.containers {
                let Some(slot) = self.fullest_with_room(ask.resources, |slot| Some(rooms[slot])) else { return };
                rooms[slot as usize] = rooms[slot as usize].saturating_sub(ask.resources);
                places.push((Chosen { app, ask: index, size: ask.resources }, slot));
            }
        }
        self.scheduler.queues[queue].atomic.remove(&app);
        for (chosen, slot) in places {
            self.grant(chosen, slot);
        }
    }

    /// Gives an application one of the containers that it asks for.
    fn grant(&mut self, chosen: Chosen, slot: SlotId) {
        let Chosen { app, ask, size } = chosen;
        let is_master = self.apps[app as usize].asks[ask].is_master;
        let stage = u32::try_from(self.apps[app as usize].asks[ask].priority.max(0)).unwrap_or(0);
        self.take_from_ask(app, ask);
        let container = Container {
            app,
            slot,
            resources: size,
            is_master,
            stage,
            granted_at: self.now,
            counts: self.slot(slot).machine.as_ref().is_some_and(|machine| machine.registered_at.is_some()),
            works_since: None,
            idle_since: self.now,
            stopped_at: None,
            paid_until: None,
            tasks: 0,
            useful_ms: 0,
            lost_ms: 0,
        };
        let id = self.containers.add(container);
        self.put_on_node(id, app, slot, size);
        self.change_used(app, |used| used + size);
        self.allocated += size;
        self.allocated_containers += 1;
        self.granted(app, id, is_master);
    }

    fn put_on_node(&mut self, id: ContainerId, app: AppId, slot: SlotId, size: Resources) {
        let now = self.now;
        let entry = &mut self.slots[slot as usize];
        let (Some(node), Some(machine)) = (&mut entry.node, &mut entry.machine) else { return };
        if node.containers.is_empty() {
            machine.busy_since = Some(now);
        }
        node.containers.push(id);
        node.used += size;
        node.view = None;
        if !node.apps.iter().any(|(other, _)| *other == app) {
            node.apps.push((app, now));
            self.apps[app as usize].touched.push(slot);
        }
        self.seen_change();
    }
}
