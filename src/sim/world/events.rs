//! What will happen, in order: a heap of events by time and sequence. Knows nothing of what they mean.

use std::{cmp::Reverse, collections::BinaryHeap};

use crate::sim::Ms;

/// A host: the index of its slot.
pub(super) type SlotId = u32;
/// An application: the index of its job.
pub(super) type AppId = u32;
/// A container: its place in the container store, and which of those that had this place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContainerId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// Something that will happen. A generation tells an event that has become void meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A NodeManager reports and may be given containers.
    Heartbeat(SlotId),
    /// The scheduler looks at all nodes at once.
    Round,
    /// An application master registers and asks.
    MasterReady(AppId, u32),
    /// A gang has done its work.
    GangEnds(AppId, u32),
    /// The tasks of a container are done.
    TasksEnd(ContainerId),
    /// An executor has been idle for its time-out.
    ExecutorIdle(ContainerId),
    /// A Spark application asks for more executors.
    Ramp(AppId, u32),
    /// A machine is up: it is billed from here.
    MachineUp(SlotId, u32),
    /// A NodeManager registers.
    Registers(SlotId, u32),
    /// Whether a draining node may go.
    DrainCheck(SlotId, u32),
    /// A node that has died is declared lost.
    Expires(SlotId, u32),
    /// The cloud takes a machine away.
    Preempted(SlotId, u32),
    /// A deleted machine is gone.
    Gone(SlotId, u32),
    /// An operation of the cloud ends.
    OperationEnds(u32),
    /// The cloud's list shows what has changed.
    ListCatchesUp,
    /// A fault begins.
    FaultBegins(u32),
    /// A fault ends.
    FaultEnds(u32),
}

/// Events to come: those at the same time in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Events {
    heap: BinaryHeap<Reverse<(Ms, u64, Event)>>,
    sequence: u64,
}

impl Events {
    /// Adds one.
    pub(super) fn push(&mut self, at: Ms, event: Event) {
        self.sequence += 1;
        self.heap.push(Reverse((at, self.sequence, event)));
    }

    /// When the next one is due.
    pub(super) fn next_at(&self) -> Option<Ms> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Takes the next one.
    pub(super) fn pop(&mut self) -> Option<(Ms, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
