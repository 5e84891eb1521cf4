//! Everything that a decision may depend on.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Capacity, History, Observation, State};

/// All inputs of a decision at one instant. Can be serialised: a decision can be computed again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Situation {
    /// The tick's one reading of the clock.
    pub now: DateTime<Utc>,
    /// The longest time from a change in YARN to the decision on it. YARN is looked at twice in it, because pending
    /// that one look alone shows is not yet demand.
    pub poll_interval: Duration,
    /// What YARN said, or why it did not.
    pub observation: Result<Arc<Observation>, Outage>,
    /// What the provider said, or why it did not.
    pub capacity: Result<Arc<Capacity>, Outage>,
    /// Samples of the cooldown window.
    pub history: History,
    /// What we remember.
    pub state: Arc<State>,
    /// How long to hold after another ResourceManager has taken over.
    pub restart_hold: Duration,
    /// How long a worker may be not ready before it is replaced.
    pub ready_deadline: Duration,
}

/// Why a look failed. Missing data is not zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// For people.
    pub text: String,
}
