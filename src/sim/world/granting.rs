//! Containers are handed out: by NodeManagers' heartbeats, or in rounds over all nodes at once.

use super::{
    AppId, ContainerId, Event, SlotId, World,
    applications::{AppAsk, Container},
    packing,
    scheduler::Chosen,
};
use crate::{model::NodeState, model::Resources, sim::Ms, sim::scenario::Placement};

/// Heartbeats of neighbouring nodes are so far apart: a number that shares no factor with a second.
const PHASE_MS: Ms = 137;

impl World {
    /// The next heartbeat of a node, after now.
    pub(super) fn next_beat(&self, slot: SlotId) -> Ms {
        let every = self.rules.heartbeat;
        let phase = Ms::from(slot) * PHASE_MS % every;
        (self.now + every - phase) / every * every + phase
    }

    /// Whether YARN would place a container on this node.
    fn takes_containers(&self, slot: SlotId) -> bool {
        let entry = self.slot(slot);
        let up = entry.machine.as_ref().is_some_and(|machine| machine.manager_up && machine.dead_at.is_none());
        up && self.rm.is_up && entry.node.as_ref().is_some_and(|node| node.state == NodeState::Running)
    }

    /// Has the scheduler look at this node soon: it has room, or has got some.
    pub(super) fn arm(&mut self, slot: SlotId) {
        let waits = self.scheduler.has_waiting();
        if self.scheduler.has_atomic() || (waits && self.rules.placement == Placement::Pack) {
            self.arm_round();
        }
        if !waits || self.rules.placement == Placement::Pack || !self.takes_containers(slot) {
            return;
        }
        let at = self.next_beat(slot);
        if let Some(node) = &mut self.slots[slot as usize].node
            && !node.armed
        {
            node.armed = true;
            self.events.push(at, Event::Heartbeat(slot));
        }
    }

    /// Has the scheduler look at all nodes with room for this size.
    pub(super) fn arm_for(&mut self, size: Resources) {
        if self.rules.placement == Placement::Pack {
            return self.arm_round();
        }
        for index in 0..self.slots.len() {
            let has_room = self.slots[index].node.as_ref().is_some_and(|node| !node.armed && size.fits(node.free()));
            if has_room {
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
            self.events.push((self.now / every + 1) * every, Event::Round);
        }
    }

    /// A NodeManager reports.
    pub(super) fn heartbeat(&mut self, slot: SlotId) {
        if let Some(node) = &mut self.slots[slot as usize].node {
            node.armed = false;
        }
        if !self.takes_containers(slot) {
            return;
        }
        for _ in 0..self.rules.per_heartbeat {
            let Some(room) = self.slot(slot).node.as_ref().map(|node| node.free()) else { return };
            let Some(chosen) = self.scheduler.choose(room, self.offered, |_| false) else { return };
            self.grant(chosen, slot);
        }
        let room = self.slot(slot).node.as_ref().map(|node| node.free()).unwrap_or_default();
        if self.scheduler.wants(room) {
            self.arm(slot);
        }
    }

    /// The scheduler looks at all nodes: gangs that are granted whole, and, where containers are packed, all the rest.
    pub(super) fn round(&mut self) {
        self.round_armed = false;
        if !self.rm.is_up {
            return;
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
            match self.fullest_with_room(chosen.size, |slot| self.slots[slot].node.as_ref().map(|node| node.free())) {
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
            self.slots.iter().map(|slot| slot.node.as_ref().map(|node| node.free()).unwrap_or_default()).collect();
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
            works_since: None,
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
