//! Where the state and the decision log are kept.

mod any_state;
pub mod decision_log;
mod decision_reader;
mod document;
mod file;
mod object_policy;
mod object_state;
pub mod objects;
pub mod publish;

pub use any_state::AnyStateStore;
pub use decision_log::DecisionLog;
pub use file::FileStore;
pub use object_policy::ObjectPolicy;
pub use object_state::{ObjectStateStore, RENEW_AFTER, STALE_AFTER};
