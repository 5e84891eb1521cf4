//! Where the state and the decision log are kept.

mod autoscaler_entry;
pub mod autoscaler_log;
pub mod decision_log;
mod decision_reader;
mod file;
mod line_file;

pub use autoscaler_log::AutoscalerLog;
pub use decision_log::DecisionLog;
pub use file::FileStore;
