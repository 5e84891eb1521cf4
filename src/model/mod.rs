//! The vocabulary: what is observed, described, remembered, decided and why. Plain data with serde;
//! no I/O, no clock, no decision.

mod action;
mod capacity;
mod history;
mod observation;
mod reason;
mod resources;
mod situation;
mod size_change;
mod state;
mod workers;
mod workload_row;

pub use action::{Action, Decision};
pub use capacity::{Capabilities, Capacity, Group, GroupName, Instance, InstanceState, Readiness, WorkerTemplate};
pub use history::{Ahead, Amounts, CONFIRM_AFTER, History, Sample, Window};
pub use observation::{Application, Ask, ClusterMetrics, Node, NodeId, NodeState, Observation};
pub use reason::Reason;
pub use resources::Resources;
pub use situation::{Outage, Situation};
pub use size_change::SizeChange;
pub use state::{
    Drain, DrainPhase, Intent, Operation, STATE_VERSION, STATE_VERSION_OLDEST, SeenResourceManager, State, WorkerRecord,
};
pub use workers::Workers;
pub use workload_row::{JobShape, MASTER_GROUP, WorkloadRow};
