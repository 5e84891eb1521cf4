//! Providers: where machines come from.

pub mod command;
mod command_wire;
pub mod worker_names;

pub use command::{CommandProvider, TIME_LIMIT_DEFAULT};
pub use worker_names::WorkerNames;
