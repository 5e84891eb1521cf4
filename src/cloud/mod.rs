//! Providers: where machines come from.

pub mod command;
mod command_wire;

pub use command::{CommandProvider, TIME_LIMIT_DEFAULT};
