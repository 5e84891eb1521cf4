//! The policy as meant: every default filled, every bound checked. Built by `policy::load` only.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::{GroupName, WorkerTemplate};

/// A valid autoscaling policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The policy's own name, where the file gives one.
    pub id: Option<String>,
    /// How sizes are chosen.
    pub algorithm: Algorithm,
    /// Bounds and weight of the primary workers.
    pub primary: GroupPolicy,
    /// Bounds and weight of the secondary workers; absent means that the policy leaves none.
    pub secondary: Option<GroupPolicy>,
    /// What one primary worker is, where the file says it; used where the provider does not tell.
    #[serde(default)]
    pub primary_template: Option<WorkerTemplate>,
    /// What one secondary worker is, where the file says it; used where the provider does not tell.
    #[serde(default)]
    pub secondary_template: Option<WorkerTemplate>,
}

impl Policy {
    /// Bounds and weight of one group; a secondary group that the policy does not name may have no worker.
    pub fn group(&self, name: GroupName) -> GroupPolicy {
        match name {
            GroupName::Primary => self.primary,
            GroupName::Secondary => {
                self.secondary.unwrap_or(GroupPolicy { min_instances: 0, max_instances: 0, weight: 0 })
            }
        }
    }

    /// What one worker of a group is, where the file says it.
    pub fn template(&self, name: GroupName) -> Option<&WorkerTemplate> {
        match name {
            GroupName::Primary => self.primary_template.as_ref(),
            GroupName::Secondary => self.secondary_template.as_ref(),
        }
    }

    /// Dataproc's algorithm with its parameters.
    pub fn basic(&self) -> &BasicAlgorithm {
        match &self.algorithm {
            Algorithm::Basic(basic) => basic,
        }
    }
}

/// How sizes are chosen. One variant a field of the policy file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Algorithm {
    /// `basicAlgorithm`: Dataproc's, by its published formulas.
    Basic(BasicAlgorithm),
}

/// `basicAlgorithm` with its `yarnConfig`, as meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BasicAlgorithm {
    /// Time between two scaling events, and the length of the window that is averaged over; 2 minutes to 1 day.
    pub cooldown_period: Duration,
    /// Share of the missing workers that one scale up adds, 0 to 1.
    pub scale_up_factor: f64,
    /// Share of the surplus workers that one scale down takes away, 0 to 1; 0 never takes any.
    pub scale_down_factor: f64,
    /// Least scale up worth doing, as a fraction of the present workers, 0 to 1.
    pub scale_up_min_worker_fraction: f64,
    /// Least scale down worth doing, as a fraction of the present workers, 0 to 1.
    pub scale_down_min_worker_fraction: f64,
    /// How long a draining worker may wait for its applications before it is taken away; 0 to 1 day.
    pub graceful_decommission_timeout: Duration,
    /// The resources that are counted; the one that wants most workers decides. Never empty.
    pub metrics: Vec<MetricType>,
}

/// What the basic algorithm counts, in the words of Dataproc's autoscaler log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum MetricType {
    /// YARN memory, in MB.
    YarnMemory,
    /// YARN virtual cores.
    YarnCores,
}

/// Bounds and weight of one worker group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPolicy {
    /// Fewest workers.
    pub min_instances: u32,
    /// Most workers; never less than `min_instances`.
    pub max_instances: u32,
    /// Share of this group in the balance between groups; 0 takes no part in it.
    pub weight: u32,
}
