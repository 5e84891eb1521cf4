//! The JSON of one entry of the autoscaler log: `LogEntry` of Cloud Logging around Dataproc's `AutoscalerLog`. Knows no
//! tick.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{autoscaler_log::ClusterLabels, decision_log::Verdict};
use crate::{model::GroupName, policy::MetricType};

/// `AutoscalerState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Phase {
    Initializing,
    Recommending,
    Scaling,
    Cooldown,
    Stopped,
    Failed,
}

impl Phase {
    fn severity(self) -> &'static str {
        match self {
            Self::Initializing | Self::Recommending | Self::Scaling | Self::Cooldown => "INFO",
            Self::Stopped => "WARNING",
            Self::Failed => "ERROR",
        }
    }
}

/// `LogEntry`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry<'a> {
    insert_id: String,
    json_payload: Payload,
    log_name: String,
    resource: Resource<'a>,
    severity: &'static str,
    timestamp: DateTime<Utc>,
}

#[derive(Serialize)]
struct Payload {
    #[serde(rename = "@type")]
    of: &'static str,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    recommendation: Option<Recommendation>,
}

#[derive(Serialize)]
struct Resource<'a> {
    #[serde(rename = "type")]
    of: &'static str,
    labels: &'a ClusterLabels,
}

impl<'a> Entry<'a> {
    pub(super) fn new(
        labels: &'a ClusterLabels,
        at: DateTime<Utc>,
        id: String,
        status: Status,
        recommendation: Option<Recommendation>,
    ) -> Self {
        let severity = status.state.severity();
        let of = "type.googleapis.com/google.cloud.dataproc.logging.AutoscalerLog";
        Self {
            insert_id: id,
            json_payload: Payload { of, status, recommendation },
            log_name: format!("projects/{}/logs/dataproc.googleapis.com%2Fautoscaler", labels.project),
            resource: Resource { of: "cloud_dataproc_cluster", labels },
            severity,
            timestamp: at,
        }
    }
}

/// `AutoscalerStatus`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) state: Phase,
    pub(super) details: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) update_cluster_operation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Status {
    pub(super) fn new(state: Phase, details: String) -> Self {
        Self { state, details, update_cluster_operation_id: None, error: None }
    }
}

/// `AutoscalerRecommendation`.
#[derive(Serialize)]
pub(super) struct Recommendation {
    pub(super) inputs: Inputs,
    pub(super) outputs: Outputs,
}

/// What was seen.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inputs {
    /// Averages with their units: `1040 MB`.
    pub(super) cluster_metrics: BTreeMap<&'static str, String>,
    pub(super) current_cluster_size: ClusterSize,
    pub(super) min_worker_counts: ClusterSize,
    pub(super) max_worker_counts: ClusterSize,
}

/// What was decided.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outputs {
    pub(super) decision: Verdict,
    pub(super) recommended_cluster_size: ClusterSize,
    /// Seconds: `3600s`.
    pub(super) graceful_decommission_timeout: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) constraints_reached: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) additional_recommendation_details: Vec<String>,
    pub(super) decision_metric: MetricType,
    pub(super) recommendation_id: String,
}

/// `ClusterSize`: a count of zero is left out, as in all of Dataproc's JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterSize {
    #[serde(skip_serializing_if = "is_zero")]
    primary_worker_count: i64,
    #[serde(skip_serializing_if = "is_zero")]
    secondary_worker_count: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(count: &i64) -> bool {
    *count == 0
}

impl ClusterSize {
    pub(super) fn add(&mut self, group: GroupName, count: i64) {
        match group {
            GroupName::Primary => self.primary_worker_count += count,
            GroupName::Secondary => self.secondary_worker_count += count,
        }
    }

    pub(super) fn total(self) -> i64 {
        self.primary_worker_count + self.secondary_worker_count
    }
}
