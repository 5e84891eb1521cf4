//! Providers: where machines come from.

pub mod command;
mod command_wire;
pub mod dataproc;
pub mod instance_group;
mod machine_type;
pub mod worker_names;

pub use command::{CommandProvider, TIME_LIMIT_DEFAULT};
pub use dataproc::DataprocProvider;
pub use instance_group::{GroupAddress, InstanceGroupProvider};
pub use worker_names::WorkerNames;
