//! Where the state and the decision log are kept.

pub mod decision_log;
mod decision_reader;
mod file;

pub use decision_log::DecisionLog;
pub use file::FileStore;
