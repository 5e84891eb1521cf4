//! Providers: where machines come from.

pub mod command;
mod command_wire;
pub mod worker_names;
pub mod dataproc;

pub use command::{CommandProvider, TIME_LIMIT_DEFAULT};
pub use dataproc::DataprocProvider;
pub use worker_names::WorkerNames;
