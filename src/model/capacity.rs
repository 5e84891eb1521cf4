//! What the provider says exists.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Serialize};

use super::Resources;

/// Worker groups and their instances, as the provider describes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capacity {
    /// What the provider can do.
    pub capabilities: Capabilities,
    /// The groups that exist; a group that is not here cannot be grown.
    pub groups: BTreeMap<GroupName, Group>,
    /// What tells these machines from others that were there before under the same names: a cluster's uuid. `None` where
    /// the provider has nothing of the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// Whether orders are taken just now.
    #[serde(default, skip_serializing_if = "Readiness::is_ready")]
    pub readiness: Readiness,
}

/// Whether a provider takes orders just now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "readiness")]
pub enum Readiness {
    /// It does.
    #[default]
    Ready,
    /// It is at work and will take orders again by itself.
    Busy {
        /// At what, for people.
        what: String,
    },
    /// It takes none until somebody has seen to it.
    Held {
        /// Why, and what would help, for people.
        why: String,
    },
}

impl Readiness {
    /// Whether orders are taken.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

impl Capacity {
    /// Every instance with its group.
    pub fn instances(&self) -> impl Iterator<Item = (GroupName, &Instance)> {
        self.groups.iter().flat_map(|(name, group)| group.instances.iter().map(|instance| (*name, instance)))
    }

    /// The instance that YARN calls by this host name.
    pub fn instance_of_host(&self, host: &str) -> Option<(GroupName, &Instance)> {
        self.instances().find(|(_, instance)| instance.host == host)
    }
}

/// What a provider can do, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// It can delete the workers that we name.
    pub deletes_named: bool,
    /// A second order may be given while one is under way.
    pub overlaps: bool,
    /// It takes sizes: one order changes those of both groups, and of a group that shrinks it chooses the workers,
    /// drains them and deletes them by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resizes: bool,
}

/// The two worker groups of Dataproc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupName {
    /// `workerConfig`.
    Primary,
    /// `secondaryWorkerConfig`.
    Secondary,
}

impl GroupName {
    /// Both, primary first.
    pub const ALL: [Self; 2] = [Self::Primary, Self::Secondary];
}

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Primary => "primary",
            Self::Secondary => "secondary",
        })
    }
}

/// One worker group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// What one worker of it is; `None` where the provider does not know and no worker has shown it yet.
    pub template: Option<WorkerTemplate>,
    /// Its machines.
    pub instances: Vec<Instance>,
}

impl Group {
    /// Machines that exist or are being made, without those that are being deleted.
    pub fn size(&self) -> u32 {
        let kept = self.instances.iter().filter(|instance| instance.state != InstanceState::Stopping).count();
        u32::try_from(kept).unwrap_or(u32::MAX)
    }
}

/// Memory, cores, GPUs and boot time of one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkerTemplate {
    /// What its NodeManager will declare.
    pub resources: Resources,
    /// From order to registration with YARN, where known.
    pub boot_time: Option<Duration>,
}

/// One machine of a worker group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// The provider's name for it.
    pub name: String,
    /// What YARN calls it (`nodeHostName`).
    pub host: String,
    /// Its state.
    pub state: InstanceState,
}

/// A machine's state at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum InstanceState {
    /// Promised by the provider, which does not show it yet. It has no name of its own, and cannot be deleted.
    Promised,
    /// Being made.
    Provisioning,
    /// Up, says the provider; whether YARN knows it is another question.
    Running,
    /// Being deleted.
    Stopping,
    /// There, but of no use.
    Failed,
}
