//! Where the state and the decision log are kept.

mod autoscaler_entry;
pub mod autoscaler_log;
pub mod decision_log;
mod decision_reader;
mod document;
mod file;
mod line_file;
mod object_policy;
mod object_state;
pub mod objects;
pub mod publish;

pub use autoscaler_log::AutoscalerLog;
pub use decision_log::DecisionLog;
pub use file::FileStore;
pub use object_policy::ObjectPolicy;
pub use object_state::{ObjectStateStore, RENEW_AFTER, STALE_AFTER};
