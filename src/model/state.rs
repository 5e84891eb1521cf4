//! What only we know and must survive a restart. One JSON document with a version.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{GroupName, Node, NodeId, NodeState, Resources, SizeChange, reason::listed};

/// The version of the document that this binary writes. A newer one is refused, never truncated.
pub const STATE_VERSION: u32 = 2;

/// The oldest version that this binary reads. (Version 2 has orders that change the sizes of groups; all else is the same.)
pub const STATE_VERSION_OLDEST: u32 = 1;

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
    /// Which machines these are, where the provider says so: see [`Capacity::identity`](super::Capacity).
    #[serde(default)]
    pub provider_identity: Option<String>,
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
    /// Since when YARN has not listed it at all; `None` while it does.
    #[serde(default)]
    pub unlisted_since: Option<DateTime<Utc>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            version: STATE_VERSION,
            last_scaling_at: None,
            last_operation_ended_at: None,
            resource_manager: None,
            provider_identity: None,
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
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "kind")]
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
    /// Change the sizes of groups; workers that are too many are chosen, drained and deleted by the provider.
    Resize {
        /// By how much.
        change: SizeChange,
        /// How long applications are given on the workers that go.
        timeout: Duration,
    },
}

impl Intent {
    /// How many workers of this group it asks for.
    pub fn adds(&self, of: GroupName) -> u32 {
        match self {
            Self::Create { group, count } if *group == of => *count,
            Self::Resize { change, .. } => change.added(of),
            Self::Create { .. } | Self::Delete { .. } => 0,
        }
    }

    /// Whether it asks for workers of any group.
    pub fn is_growth(&self) -> bool {
        GroupName::ALL.into_iter().any(|group| self.adds(group) > 0)
    }
}

impl std::fmt::Display for Intent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Create { group, count: 1 } => write!(f, "create 1 {group} worker"),
            Self::Create { group, count } => write!(f, "create {count} {group} workers"),
            Self::Delete { instances, .. } => write!(f, "delete {}", listed(instances)),
            Self::Resize { change, .. } => write!(f, "resize by {change}"),
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

impl Drain {
    /// Whether YARN gives this node nothing new: cordoned, with no room left beside what it has handed out, or
    /// unhealthy.
    pub fn is_closed(&self, node: &Node) -> bool {
        let (total, used) = (node.total.memory_mb, node.used.memory_mb);
        match node.state {
            NodeState::Unhealthy => true,
            NodeState::Running => total < self.full.memory_mb && total <= used.max(1),
            _ => false,
        }
    }
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "phase")]
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

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Resources = Resources::new(12_288, 8, 1);

    fn node(total: Resources, used: Resources, containers: u32) -> Node {
        let id = NodeId { host: "w".into(), port: 8041 };
        Node { id, state: NodeState::Running, total, used, containers, health_report: String::new() }
    }

    fn drain() -> Drain {
        let node = NodeId { host: "w".into(), port: 8041 };
        let (group, phase) = (GroupName::Primary, DrainPhase::Cordoned { seen_at: None });
        Drain { node, group, instance: "w".into(), full: FULL, phase, since: DateTime::default() }
    }

    #[test]
    fn a_cordon_closes_a_busy_node_and_leaves_it_no_less_than_its_smallest_container() {
        // Memory, cores, containers in use; what is left.
        let cases = [
            ((0, 0, 0), (0, 0)),
            ((1024, 1, 1), (1024, 1)),
            ((9216, 3, 5), (1843, 0)),
            ((8192, 4, 1), (6144, 4)),
            ((12_288, 8, 1), (6144, 4)),
            ((12_288, 12, 12), (1024, 1)),
        ];
        for ((memory_mb, vcores, containers), (left_mb, left_vcores)) in cases {
            let used = Resources::new(memory_mb, vcores, 0);
            let before = node(FULL, used, containers);
            let left = before.cordon_leaves(FULL);
            assert_eq!(left, Resources::new(left_mb, left_vcores, 0), "{containers} with {used:?}");
            assert!(!drain().is_closed(&before), "it may be full, but is not closed");
            assert!(drain().is_closed(&Node { total: left, ..before }), "{containers} with {used:?}");
        }
    }

    #[test]
    fn a_cordoned_node_whose_containers_have_ended_has_room_and_is_closed_no_more() {
        let left = node(FULL, Resources::new(4096, 2, 0), 2).cordon_leaves(FULL);
        assert!(drain().is_closed(&node(left, Resources::new(2048, 1, 0), 1)));
        assert!(!drain().is_closed(&node(left, Resources::default(), 0)));
    }
}
