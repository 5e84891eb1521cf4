//! What a checker of promises must know and no port tells: containers that our orders have ended, and the plain truth
//! about machines and the exclude file. Written down only where somebody asked for it.

use std::collections::BTreeMap;

use super::{Ms, SlotId, World, losses::Cause};
use crate::model::{Drain, GroupName, NodeState};

/// Containers of a node that ended by an order of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    /// When.
    pub at_ms: Ms,
    /// Where.
    pub host: String,
    /// How many.
    pub containers: usize,
    /// By which order.
    pub by: KilledBy,
}

/// Which order has ended containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KilledBy {
    /// A decommission that began at this instant.
    Decommission {
        /// When it began.
        since_ms: Ms,
    },
    /// A recommission: the node got back less than its containers hold.
    Recommission,
    /// The deletion of a machine whose node was in this state.
    Deletion {
        /// The node's state in truth.
        state: NodeState,
    },
}

impl World {
    /// From here on, containers that our orders end are written down.
    pub fn write_kills_down(&mut self) {
        self.kills = Some(Vec::new());
    }

    /// Those that were written down since the last call.
    pub fn take_kills(&mut self) -> Vec<Killed> {
        self.kills.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A node is about to go with all its containers.
    pub(super) fn note_leaving(&mut self, slot: SlotId, cause: Cause) {
        let Some(node) = &self.slot(slot).node else { return };
        let by = match node.state {
            NodeState::Decommissioning if node.deadline.is_some() && !self.is_stopping(slot) => {
                KilledBy::Decommission { since_ms: node.drains_since }
            }
            state => KilledBy::Deletion { state },
        };
        let containers = node.containers.len();
        if cause == Cause::Drain {
            self.note_kill(slot, containers, by);
        }
    }

    pub(super) fn note_kill(&mut self, slot: SlotId, containers: usize, by: KilledBy) {
        let (at_ms, host) = (self.now, self.slot(slot).host.clone());
        if let Some(kills) = self.kills.as_mut().filter(|_| containers > 0) {
            kills.push(Killed { at_ms, host, containers, by });
        }
    }

    fn is_stopping(&self, slot: SlotId) -> bool {
        self.slot(slot).machine.as_ref().is_some_and(|machine| machine.stopping)
    }

    /// Machines of each group that exist, are not being deleted and are on no way out.
    pub fn staying(&self, drains: &BTreeMap<String, Drain>) -> BTreeMap<GroupName, u32> {
        let mut staying: BTreeMap<_, _> = self.scenario.cloud.groups.keys().map(|group| (*group, 0)).collect();
        for slot in &self.slots {
            if slot.machine.as_ref().is_some_and(|machine| !machine.stopping) && !drains.contains_key(&slot.host) {
                *staying.entry(slot.group).or_insert(0) += 1;
            }
        }
        staying
    }

    /// Hosts on the exclude file.
    pub fn excluded(&self) -> Vec<String> {
        self.cloud.excluded.iter().map(|slot| self.slot(*slot).host.clone()).collect()
    }

    /// Machines that are not what a worker should be, with what is wrong; those that registered without their GPUs are
    /// left out, since nobody but their users can tell.
    pub fn odd_machines(&self) -> Vec<String> {
        let odd = self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let machine = slot.machine.as_ref()?;
            let full = self.full(SlotId::try_from(index).ok()?);
            let offers = slot.node.as_ref().filter(|node| node.state == NodeState::Running).map(|node| node.total);
            let whole = offers.is_some_and(|total| (total.memory_mb, total.vcores) == (full.memory_mb, full.vcores));
            let is_well = whole && machine.manager_up && machine.dead_at.is_none() && !machine.stopping;
            let state = slot.node.as_ref().map(|node| (node.state, node.total));
            (!is_well).then(|| format!("{} {:?}, YARN: {state:?}", slot.host, slot.counted))
        });
        odd.collect()
    }

    /// Containers that are asked for, and that run: whether these change tells whether demand stands still.
    pub fn demand(&self) -> (u64, u64) {
        (self.pending_containers, self.allocated_containers)
    }
}
