//! The policy file as written: Dataproc's field names, everything optional, nothing checked but shapes.
//!
//! The comments here are what an editor shows (by way of the JSON Schema), so they speak to the writer of a policy.
//! Sources of fields, bounds and defaults: Dataproc's `autoscaling_policies.proto`, the REST discovery document and
//! recorded answers of the service. What the values mean together is `check`'s business.

use std::{borrow::Cow, collections::BTreeMap, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::{
    MetricType, duration,
    field::{Field, Scalar, Shape, Wrong, mapping_shapes},
};

/// Text of the durations' schema: what `duration::parse` takes, but for the order of units and overflow.
const DURATION_PATTERN: &str = concat!(
    r"^[0-9]+$|^[Pp]?([0-9]+(\.[0-9]+)?[Ww])?([0-9]+(\.[0-9]+)?[Dd])?[Tt]?",
    r"([0-9]+(\.[0-9]+)?[Hh])?([0-9]+(\.[0-9]+)?[Mm])?([0-9]+(\.[0-9]+)?[Ss])?$"
);

/// An autoscaling policy for a YARN cluster: Dataproc's AutoscalingPolicy, with a few optional extensions.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
#[schemars(extend("required" = ["basicAlgorithm"]))]
#[schemars(extend("if" = {"required": ["clusterType"], "properties": {"clusterType": {"const": "ZERO_SCALE"}}}))]
#[schemars(extend("else" = {
    "required": ["workerConfig"],
    "properties": {
        "workerConfig": {"required": ["maxInstances"], "properties": {"minInstances": {"anyOf": [{"const": 0}, {"minimum": 2}]}}}
    },
}))]
pub struct PolicySpec {
    /// The policy's name: 3 to 50 letters, digits, `_` and `-`; begins and ends with a letter or digit.
    #[schemars(regex(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{1,48}[A-Za-z0-9]$"), example = "shared-spark")]
    pub id: Field<String>,
    /// Dataproc's resource name. Output only: accepted in an exported policy, and ignored.
    #[schemars(example = "projects/p/regions/us-central1/autoscalingPolicies/shared-spark")]
    pub name: Field<String>,
    /// How sizes are chosen: Dataproc's basic algorithm.
    pub basic_algorithm: Field<BasicAlgorithmSpec>,
    /// The primary workers. Required, but for ZERO_SCALE.
    pub worker_config: Field<GroupSpec>,
    /// The secondary workers. Absent: there are none.
    pub secondary_worker_config: Field<GroupSpec>,
    /// Labels for your own bookkeeping, 32 at most. They change nothing here.
    pub labels: Field<LabelsSpec>,
    /// ZERO_SCALE lets a cluster shrink to no worker at all; STANDARD, the default, keeps two primary workers.
    #[schemars(extend("default" = "STANDARD"))]
    pub cluster_type: Field<ClusterType>,
}

/// Dataproc's basic algorithm: averages of pending and allocated resources over the cooldown period.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["yarnConfig"]))]
pub struct BasicAlgorithmSpec {
    /// How a YARN cluster is scaled.
    pub yarn_config: Field<YarnSpec>,
    /// Time between two scaling events, from the end of the last operation; demand is averaged over it. 2m to 1d.
    #[schemars(extend("default" = "120s"), example = "2m", example = "10m")]
    pub cooldown_period: Field<DurationSpec>,
}

/// How a YARN cluster is scaled.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct YarnSpec {
    /// Share of the missing workers that one scale up adds. 1.0 adds all that is pending; 0.05 is a calm start for
    /// Spark with dynamic allocation and MapReduce. Absent is 0: never scales up.
    #[schemars(range(min = 0.0, max = 1.0), example = 1.0, example = 0.05)]
    pub scale_up_factor: Field<f64>,
    /// Share of the surplus workers that one scale down takes away. Absent or 0: never scales down.
    #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.0), example = 1.0)]
    pub scale_down_factor: Field<f64>,
    /// Least scale up worth doing, as a fraction of the present workers: with 0.1, 20 workers grow by 2 or not at all.
    #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.0), example = 0.1)]
    pub scale_up_min_worker_fraction: Field<f64>,
    /// Least scale down worth doing, as a fraction of the present workers.
    #[schemars(range(min = 0.0, max = 1.0), extend("default" = 0.0), example = 0.1)]
    pub scale_down_min_worker_fraction: Field<f64>,
    /// How long a worker that is to go may wait for its containers; what still runs then is killed. Longer than the
    /// longest job is good. 0s to 1d; absent is 0s: kills at once.
    #[schemars(extend("default" = "0s"), example = "1h", example = "15m")]
    pub graceful_decommission_timeout: Field<DurationSpec>,
    /// What is counted; of several, the one that wants most workers decides. (Our extension.)
    #[schemars(length(min = 1), extend("default" = ["YARN_MEMORY"]), extend("uniqueItems" = true))]
    pub metrics: Field<Vec<Field<MetricType>>>,
}

/// Bounds and weight of a worker group.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct GroupSpec {
    /// Fewest workers. Primary: 2 or more, default 2 (0 and more with ZERO_SCALE). Secondary: default 0.
    #[schemars(range(min = 0, max = 2_147_483_647), example = 2)]
    pub min_instances: Field<i64>,
    /// Most workers, not less than minInstances. Required for the primary workers, and where minInstances is given.
    #[schemars(range(min = 0, max = 2_147_483_647), example = 10)]
    pub max_instances: Field<i64>,
    /// Share of this group in the balance between both. Neither group has one: equal. Only one has: the other's is 0.
    #[schemars(range(min = 0, max = 2_147_483_647), example = 1)]
    pub weight: Field<i64>,
    /// What one worker of the group is, where the provider does not tell. (Our extension.)
    pub template: Field<TemplateSpec>,
}

/// What one worker of a group is. (Our extension.)
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["memoryMb", "vcores"]))]
pub struct TemplateSpec {
    /// Memory that its NodeManager offers, in MB (yarn.nodemanager.resource.memory-mb).
    #[schemars(range(min = 1, max = 2_147_483_647), example = 24_576)]
    pub memory_mb: Field<i64>,
    /// Virtual cores that its NodeManager offers (yarn.nodemanager.resource.cpu-vcores).
    #[schemars(range(min = 1, max = 2_147_483_647), example = 8)]
    pub vcores: Field<i64>,
    /// GPUs that its NodeManager offers (yarn.io/gpu).
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 0), example = 1)]
    pub gpus: Field<i64>,
    /// Time from the order of a worker to its registration with YARN, up to 1d.
    #[schemars(example = "3m")]
    pub boot_time: Field<DurationSpec>,
}

/// Labels by key.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("maxProperties" = 32))]
pub struct LabelsSpec(pub BTreeMap<String, Field<String>>);

/// A duration that has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationSpec(pub Duration);

/// Which kind of cluster the policy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "SCREAMING_SNAKE_CASE", inline)]
pub enum ClusterType {
    /// Primary workers, and secondary ones if the policy allows them.
    #[default]
    Standard,
    /// Secondary workers only, down to none.
    ZeroScale,
}

mapping_shapes!(PolicySpec, BasicAlgorithmSpec, YarnSpec, GroupSpec, TemplateSpec, LabelsSpec);

impl Shape for DurationSpec {
    const EXPECTED: &'static str = "a duration";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        let read = match value {
            Scalar::Text(text) => duration::parse(text),
            Scalar::Integer(seconds) if seconds < 0 => Err(format!("a duration has no sign, found `{seconds}`")),
            Scalar::Integer(seconds) => u64::try_from(seconds)
                .ok()
                .and_then(duration::from_seconds)
                .ok_or_else(|| format!("`{seconds}` seconds are longer than 100 years")),
            Scalar::Float(number) => Err(format!("`{number}` has no unit")),
            Scalar::Bool(_) => return Err(Wrong::found::<Self>(value)),
        };
        read.map(Self).map_err(|message| Wrong { message, code: "invalid-duration", help: Some(duration::FORMS) })
    }
}

impl JsonSchema for DurationSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"], "pattern": DURATION_PATTERN, "minLength": 1, "minimum": 0 })
    }
}

impl Shape for MetricType {
    const EXPECTED: &'static str = "`YARN_MEMORY` or `YARN_CORES`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        match value {
            Scalar::Text("YARN_MEMORY") => Ok(Self::YarnMemory),
            Scalar::Text("YARN_CORES") => Ok(Self::YarnCores),
            _ => Err(Wrong::found::<Self>(value)),
        }
    }
}

impl JsonSchema for MetricType {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "MetricType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": ["YARN_MEMORY", "YARN_CORES"] })
    }
}

impl Shape for ClusterType {
    const EXPECTED: &'static str = "`STANDARD` or `ZERO_SCALE`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        match value {
            // The proto's zero value is what a client that says nothing sends.
            Scalar::Text("STANDARD" | "CLUSTER_TYPE_UNSPECIFIED") => Ok(Self::Standard),
            Scalar::Text("ZERO_SCALE") => Ok(Self::ZeroScale),
            _ => Err(Wrong::found::<Self>(value)),
        }
    }
}
