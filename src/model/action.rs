//! What is decided.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{GroupName, NodeId, Reason, Resources, SizeChange, reason::listed};

/// Actions and reasons, and when to ask again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[must_use = "a decision that nobody executes or reports is a bug"]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// What to do, in this order; empty: nothing.
    pub actions: Vec<Action>,
    /// Why, and why not more; the first one is the headline. Never empty.
    pub reasons: Vec<Reason>,
    /// When to look again.
    pub next_at: DateTime<Utc>,
}

/// One order, to YARN or to the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "action")]
pub enum Action {
    /// Provider: make workers.
    Create {
        /// Where.
        group: GroupName,
        /// How many.
        count: u32,
    },
    /// Provider: change the sizes of groups in one order. Which workers go where a group shrinks is its choice, and so is
    /// how they are drained.
    Resize {
        /// By how much.
        change: SizeChange,
        /// How long applications are given on the workers that go.
        timeout: Duration,
    },
    /// YARN: place nothing new on the node.
    Cordon {
        /// Which NodeManager.
        node: NodeId,
        /// Its group.
        group: GroupName,
        /// The provider's name for the machine.
        instance: String,
        /// What it declares now, to be given back by `Uncordon`.
        full: Resources,
    },
    /// YARN: the node may take containers again.
    Uncordon {
        /// Which NodeManager.
        node: NodeId,
        /// What it declared.
        full: Resources,
    },
    /// YARN: let cordoned nodes go when their applications are done.
    Decommission {
        /// Which hosts.
        hosts: Vec<String>,
        /// How long they may take.
        timeout: Duration,
    },
    /// YARN: take draining nodes back.
    Recommission {
        /// Which hosts.
        hosts: Vec<String>,
    },
    /// Provider: delete the machines of nodes that YARN has let go.
    Delete {
        /// Where.
        group: GroupName,
        /// Which, by the provider's names.
        instances: Vec<String>,
    },
    /// YARN: take hosts whose machine is gone off the exclude file.
    Release {
        /// Which hosts.
        hosts: Vec<String>,
    },
}

impl Action {
    /// How many workers of this group it asks for.
    pub fn adds(&self, of: GroupName) -> u32 {
        match self {
            Self::Create { group, count } if *group == of => *count,
            Self::Resize { change, .. } => change.added(of),
            _ => 0,
        }
    }

    /// Whether it makes or deletes machines.
    pub fn is_for_provider(&self) -> bool {
        matches!(self, Self::Create { .. } | Self::Resize { .. } | Self::Delete { .. })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create { group, count: 1 } => write!(f, "create 1 {group} worker"),
            Self::Create { group, count } => write!(f, "create {count} {group} workers"),
            Self::Resize { change, .. } => write!(f, "resize by {change}"),
            Self::Cordon { instance, node, .. } => write!(f, "cordon {instance} ({node})"),
            Self::Uncordon { node, .. } => write!(f, "uncordon {node}"),
            Self::Decommission { hosts, timeout } => {
                write!(f, "decommission {} gracefully, within {} s", listed(hosts), timeout.as_secs())
            }
            Self::Recommission { hosts } => write!(f, "recommission {}", listed(hosts)),
            Self::Delete { group, instances } => write!(f, "delete {group} workers {}", listed(instances)),
            Self::Release { hosts } => write!(f, "take {} off the exclude file", listed(hosts)),
        }
    }
}
