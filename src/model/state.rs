//! What only we know and must survive a restart. One JSON document with a version.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{GroupName, NodeId, Resources, reason::listed};

/// The version of the document that this binary writes. A newer one is refused, never truncated.
pub const STATE_VERSION: u32 = 1;

/// The controller's memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// [`STATE_VERSION`] of the writer.
    pub version: u32,
    /// When the last scaling began: an order, a drain, a recommission.
    pub last_scaling_at: Option<DateTime<Utc>>,
    /// When the last operation at the provider ended, well or badly: the cooldown counts from here.
    pub last_operation_ended_at: Option<DateTime<Utc>>,
    /// The ResourceManager that was last seen, and when this one was first seen.
    pub resource_manager: Option<SeenResourceManager>,
    /// Orders that have been intended or given and have not ended.
    pub operations: Vec<Operation>,
    /// Workers on their way out, by host.
    pub drains: BTreeMap<String, Drain>,
    /// What is remembered of each worker that the provider has, by host.
    pub workers: BTreeMap<String, WorkerRecord>,
    /// Orders ever given: makes request ids that are never used twice.
    pub orders: u64,
    /// No order to the provider before this instant: it said so, or a failed order is being waited out.
    pub provider_retry_at: Option<DateTime<Utc>>,
    /// Failed orders in a row; the wait grows with it.
    pub provider_failures: u32,
}

/// Which ResourceManager answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeenResourceManager {
    /// Its `startedOn`.
    pub started_on_ms: i64,
    /// Since when we know of it.
    pub since: DateTime<Utc>,
    /// Whether another one was known before: then scaling holds for a while.
    pub replaced_another: bool,
}

/// What is remembered of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerRecord {
    /// When the provider first showed it.
    pub first_seen_at: DateTime<Utc>,
    /// When YARN first had it running; `None` while it boots.
    pub ready_at: Option<DateTime<Utc>>,
    /// Since when it has been of no use; `None` while it is ready.
    pub not_ready_since: Option<DateTime<Utc>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            version: STATE_VERSION,
            last_scaling_at: None,
            last_operation_ended_at: None,
            resource_manager: None,
            operations: Vec::new(),
            drains: BTreeMap::new(),
            workers: BTreeMap::new(),
            orders: 0,
            provider_retry_at: None,
            provider_failures: 0,
        }
    }
}

impl State {
    /// The instant from which the cooldown counts: the end of the last operation, or a later scaling.
    pub fn cooldown_from(&self) -> Option<DateTime<Utc>> {
        self.last_scaling_at.max(self.last_operation_ended_at)
    }

    /// Workers of this group that are on their way out.
    pub fn drains_of(&self, group: GroupName) -> impl Iterator<Item = (&String, &Drain)> {
        self.drains.iter().filter(move |(_, drain)| drain.group == group)
    }
}

/// An order to the provider, from the intent to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// Ours, made before the order: the provider takes an order with the same id once.
    pub request_id: String,
    /// What was ordered.
    pub intent: Intent,
    /// When it was intended.
    pub at: DateTime<Utc>,
    /// The provider's name for it; `None` until the order was acknowledged.
    pub operation_id: Option<String>,
}

/// What an order asks of the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Intent {
    /// Make workers.
    Create {
        /// Where.
        group: GroupName,
        /// How many.
        count: u32,
    },
    /// Delete workers, which YARN has let go.
    Delete {
        /// Where.
        group: GroupName,
        /// Which, by the provider's names.
        instances: Vec<String>,
    },
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Create { group, count: 1 } => write!(f, "create 1 {group} worker"),
            Self::Create { group, count } => write!(f, "create {count} {group} workers"),
            Self::Delete { instances, .. } => write!(f, "delete {}", listed(instances)),
        }
    }
}

/// A worker on its way out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drain {
    /// Its NodeManager.
    pub node: NodeId,
    /// Its group.
    pub group: GroupName,
    /// The provider's name for it.
    pub instance: String,
    /// What it declared before it was cordoned: YARN forgets it.
    pub full: Resources,
    /// How far it is.
    pub phase: DrainPhase,
    /// When it was chosen.
    pub since: DateTime<Utc>,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "phase")]
pub enum DrainPhase {
    /// YARN was told to place nothing new on it. What came at the last moment shows before the next phase.
    Cordoned {
        /// The first look after the order that showed it: from here on nothing new can have come. `None` until then.
        seen_at: Option<DateTime<Utc>>,
    },
    /// YARN lets it go once its applications are done, or at the deadline.
    Decommissioning {
        /// Since when.
        since: DateTime<Utc>,
        /// When YARN ends what still runs there.
        deadline: DateTime<Utc>,
        /// Containers at the last look: a node that goes before they end has lost them.
        containers: u32,
    },
    /// YARN has let it go; the machine may be deleted. Its exclude entry stays until the machine is gone.
    Decommissioned {
        /// Since when.
        since: DateTime<Utc>,
    },
}
