//! A scenario's workload as written: jobs, generators, traces. Everything optional, nothing checked but shapes.
//!
//! The comments here are what an editor shows (by way of the JSON Schema), so they speak to the writer of a scenario.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, de::MapAccess};

use super::{OnLoss, TraceFormat};
use crate::policy::{
    field::{Field, Scalar, Shape, Wrong, mapping_shapes, words},
    spec::DurationSpec,
    spelling,
};

/// What is submitted; all parts are put together. At least one of them.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
#[schemars(extend("anyOf" = [{"required": ["jobs"]}, {"required": ["generate"]}, {"required": ["traces"]}]))]
pub struct WorkloadSpec {
    /// Jobs, written out.
    pub jobs: Field<Vec<Field<JobSpec>>>,
    /// Jobs drawn at random, from the scenario's seed.
    pub generate: Field<Vec<Field<GeneratorSpec>>>,
    /// Jobs read from files.
    pub traces: Field<Vec<Field<TraceSpec>>>,
}

/// A job, or several of a kind. One of `gang`, `stages` and `executors` says how it works.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["name"]))]
#[schemars(extend("oneOf" = [{"required": ["gang"]}, {"required": ["stages"]}, {"required": ["executors"]}]))]
pub struct JobSpec {
    /// Its name; of several, with a number.
    #[schemars(example = &"tensorflow")]
    pub name: Field<String>,
    /// YARN's application type. Default: TONY for a gang, MAPREDUCE for stages, SPARK for executors.
    #[serde(rename = "type")]
    #[schemars(example = &"TONY", example = &"MAPREDUCE", example = &"SPARK")]
    pub application_type: Field<String>,
    /// When it is submitted, since the start.
    #[schemars(extend("default" = "0s"))]
    pub at: Field<DurationSpec>,
    /// How many of them.
    #[schemars(range(min = 1, max = 100_000), extend("default" = 1))]
    pub count: Field<i64>,
    /// The time between one of them and the next.
    #[schemars(extend("default" = "0s"))]
    pub every: Field<DurationSpec>,
    /// Its leaf queue. Default: the first one.
    pub queue: Field<String>,
    /// The application master's container. Default: as the framework has it: TonY 2048 MB, MapReduce 1536 MB, Spark
    /// 1408 MB, and one core.
    pub master: Field<ResourcesSpec>,
    /// TonY and the like: asks for everything at once, and works only while it has all of it.
    pub gang: Field<GangSpec>,
    /// MapReduce and the like: stages of independent tasks, a container each.
    #[schemars(length(min = 1))]
    pub stages: Field<Vec<Field<StageSpec>>>,
    /// Spark with dynamic allocation.
    pub executors: Field<ExecutorsSpec>,
    /// What the loss of a container means: RESTART, a gang starts over and tasks are done again; CONTINUE, a gang goes
    /// on without it; `{checkpoint: 30m}`, a gang goes on from its last checkpoint.
    #[schemars(extend("default" = "RESTART"))]
    pub on_loss: Field<OnLossSpec>,
}

/// An amount of memory, cores and GPUs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["memoryMb"]))]
pub struct ResourcesSpec {
    /// Memory in MB.
    #[schemars(range(min = 1, max = 2_147_483_647), example = 4096)]
    pub memory_mb: Field<i64>,
    /// Virtual cores.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 1))]
    pub vcores: Field<i64>,
    /// GPUs (yarn.io/gpu).
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 0))]
    pub gpus: Field<i64>,
}

/// A job that works only while it has all of its containers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["groups"]))]
pub struct GangSpec {
    /// How long the whole gang works. Required, but where a generator draws it.
    #[schemars(example = "4m")]
    pub duration: Field<DurationSpec>,
    /// Its task groups.
    #[schemars(length(min = 1))]
    pub groups: Field<Vec<Field<TaskGroupSpec>>>,
}

/// Containers of one kind of a gang.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["memoryMb"]))]
pub struct TaskGroupSpec {
    /// `worker`, `ps`, …
    #[schemars(extend("default" = "worker"))]
    pub name: Field<String>,
    /// How many.
    #[schemars(range(min = 1, max = 1_000_000), extend("default" = 1))]
    pub containers: Field<i64>,
    /// Memory of each, in MB.
    #[schemars(range(min = 1, max = 2_147_483_647), example = 4096)]
    pub memory_mb: Field<i64>,
    /// Virtual cores of each.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 1))]
    pub vcores: Field<i64>,
    /// GPUs of each.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 0))]
    pub gpus: Field<i64>,
}

/// Independent tasks, a container each.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["tasks", "memoryMb"]))]
pub struct StageSpec {
    /// `map`, `reduce`, … Default: `stage` and its number.
    pub name: Field<String>,
    /// How many.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub tasks: Field<i64>,
    /// Memory of each one's container, in MB.
    #[schemars(range(min = 1, max = 2_147_483_647), example = 1024)]
    pub memory_mb: Field<i64>,
    /// Virtual cores of each.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 1))]
    pub vcores: Field<i64>,
    /// GPUs of each.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 0))]
    pub gpus: Field<i64>,
    /// How long one works. Required, but where a generator draws it.
    #[schemars(example = "1m")]
    pub task_time: Field<DurationSpec>,
    /// The share of the stage before, 0 to 1, that must be done before containers are asked for
    /// (mapreduce.job.reduce.slowstart.completedmaps). Work begins when all of the stage before is done.
    #[schemars(range(min = 0, max = 1), extend("default" = 0.05))]
    pub starts_after: Field<f64>,
}

/// Spark with dynamic allocation: executors are asked for while tasks wait, and given back when idle.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["memoryMb", "tasks"]))]
pub struct ExecutorsSpec {
    /// Memory of an executor's container, in MB, with its overhead.
    #[schemars(range(min = 1, max = 2_147_483_647), example = 4505)]
    pub memory_mb: Field<i64>,
    /// Virtual cores of an executor.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 1))]
    pub vcores: Field<i64>,
    /// GPUs of an executor.
    #[schemars(range(min = 0, max = 2_147_483_647), extend("default" = 0))]
    pub gpus: Field<i64>,
    /// Tasks that an executor works on at once (spark.executor.cores). Default: its cores.
    #[schemars(range(min = 1))]
    pub slots: Field<i64>,
    /// Tasks in all.
    #[schemars(range(min = 1))]
    pub tasks: Field<i64>,
    /// How long one task works. Required, but where a generator draws it.
    #[schemars(example = "20s")]
    pub task_time: Field<DurationSpec>,
    /// Executors that are kept (spark.dynamicAllocation.minExecutors).
    #[schemars(range(min = 0), extend("default" = 0))]
    pub min_executors: Field<i64>,
    /// Most executors (spark.dynamicAllocation.maxExecutors). Default: as many as there are tasks for.
    #[schemars(range(min = 1))]
    pub max_executors: Field<i64>,
    /// An executor with nothing to do for so long is given back (spark.dynamicAllocation.executorIdleTimeout).
    #[schemars(extend("default" = "60s"))]
    pub idle_timeout: Field<DurationSpec>,
}

/// What the loss of a container means, as written.
#[derive(Clone, Debug)]
pub enum OnLossSpec {
    /// A word.
    Word(OnLoss),
    /// From the last checkpoint.
    Checkpoint(CheckpointSpec),
}

/// A gang that goes on from its last checkpoint.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["checkpoint"]))]
pub struct CheckpointSpec {
    /// How often one is written while the gang works.
    pub checkpoint: Field<DurationSpec>,
}

/// Jobs drawn at random: bursts that arrive as a Poisson process, busier at some hours. The job's shape is written as
/// that of a job.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["name", "jobsPerDay"]))]
#[schemars(extend("oneOf" = [{"required": ["gang"]}, {"required": ["stages"]}, {"required": ["executors"]}]))]
pub struct GeneratorSpec {
    /// Names its jobs, with a number.
    #[schemars(example = &"training")]
    pub name: Field<String>,
    /// Jobs a day, on average over a whole week.
    #[schemars(range(min = 0))]
    pub jobs_per_day: Field<f64>,
    /// How busy each of the 24 hours of the day is (UTC), relative to the others. Default: all the same.
    #[schemars(length(equal = 24))]
    pub hours: Field<Vec<Field<f64>>>,
    /// How busy each day of the week is, Monday first, relative to the others. Default: all the same.
    #[schemars(length(equal = 7))]
    pub weekdays: Field<Vec<Field<f64>>>,
    /// How many jobs come together on average (geometric); 1 is a plain Poisson process.
    #[schemars(range(min = 1), extend("default" = 1))]
    pub burst: Field<f64>,
    /// The time over which the jobs of a burst are spread, evenly at random.
    #[schemars(extend("default" = "0s"))]
    pub burst_spread: Field<DurationSpec>,
    /// From when jobs come, since the start.
    #[schemars(extend("default" = "0s"))]
    pub from: Field<DurationSpec>,
    /// Until when. Default: the scenario's duration; where it has none, one day after `from`.
    pub until: Field<DurationSpec>,
    /// How long a job works: a gang's duration, the time of a task; of several stages, the first one's, and the others'
    /// in proportion. A duration, or a draw. Default: as in the job's shape.
    pub duration: Field<DrawSpec>,
    /// Gangs: how many containers the first group has, with weights. Default: as in the job's shape.
    pub sizes: Field<SizesSpec>,
    /// YARN's application type, as in a job.
    #[serde(rename = "type")]
    pub application_type: Field<String>,
    /// Its leaf queue. Default: the first one.
    pub queue: Field<String>,
    /// The application master's container, as in a job.
    pub master: Field<ResourcesSpec>,
    /// A gang.
    pub gang: Field<GangSpec>,
    /// Stages of independent tasks.
    #[schemars(length(min = 1))]
    pub stages: Field<Vec<Field<StageSpec>>>,
    /// Spark with dynamic allocation.
    pub executors: Field<ExecutorsSpec>,
    /// What the loss of a container means, as in a job.
    #[schemars(extend("default" = "RESTART"))]
    pub on_loss: Field<OnLossSpec>,
}

/// A length of time drawn at random, as written.
#[derive(Clone, Debug)]
pub enum DrawSpec {
    /// Always the same.
    Fixed(DurationSpec),
    /// A distribution.
    Law(Box<LawSpec>),
}

/// A distribution: exponential; or log-normal, by its median and 95th percentile; or a bounded Pareto.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{"required": ["exponential"]}, {"required": ["median", "p95"]}, {"required": ["pareto"]}]))]
pub struct LawSpec {
    /// Exponential, with this mean.
    pub exponential: Field<DurationSpec>,
    /// Log-normal: half are shorter.
    pub median: Field<DurationSpec>,
    /// Log-normal: one in twenty is longer.
    pub p95: Field<DurationSpec>,
    /// A heavy tail between bounds.
    pub pareto: Field<ParetoSpec>,
}

/// A heavy tail between bounds.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["min", "max", "alpha"]))]
pub struct ParetoSpec {
    /// The shortest.
    pub min: Field<DurationSpec>,
    /// The longest.
    pub max: Field<DurationSpec>,
    /// The tail's exponent; the smaller, the heavier.
    #[schemars(range(min = 0), example = 0.9)]
    pub alpha: Field<f64>,
}

/// Weights by the number of containers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SizesSpec(pub BTreeMap<String, Field<f64>>);

/// Jobs read from a file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["format", "file"]))]
pub struct TraceSpec {
    /// How it is written. PHILLY: a row a gang of GPUs. GAIA: a row a job of cores. SWIM: a row a MapReduce job, by its
    /// bytes. ROWS: our own, a row a task group.
    pub format: Field<TraceFormat>,
    /// The file, relative to this one.
    #[schemars(example = "philly.csv")]
    pub file: Field<String>,
    /// The virtual cluster, where the trace has several.
    #[schemars(example = "6c71a0")]
    pub cluster: Field<String>,
    /// What comes before this time of the trace is left out, and the scenario begins there.
    #[schemars(extend("default" = "0s"))]
    pub skip: Field<DurationSpec>,
    /// The leaf queue of its jobs. Default: the first one. ROWS names queues itself.
    pub queue: Field<String>,
    /// The size of a container, which these traces do not know (ROWS does). Default: a primary worker's share for one
    /// GPU (PHILLY) or one core (GAIA); 1024 MB and one core (SWIM).
    pub container: Field<ResourcesSpec>,
    /// What the loss of a container means, as in a job.
    #[schemars(extend("default" = "RESTART"))]
    pub on_loss: Field<OnLossSpec>,
}

words!(TraceFormat, "PHILLY" => Self::Philly, "GAIA" => Self::Gaia, "SWIM" => Self::Swim, "ROWS" => Self::Rows);
mapping_shapes!(
    WorkloadSpec,
    JobSpec,
    ResourcesSpec,
    GangSpec,
    TaskGroupSpec,
    StageSpec,
    ExecutorsSpec,
    CheckpointSpec,
    GeneratorSpec,
    LawSpec,
    ParetoSpec,
    SizesSpec,
    TraceSpec,
);

impl Shape for OnLossSpec {
    const EXPECTED: &'static str = "`RESTART`, `CONTINUE` or `{checkpoint: …}`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        match value {
            Scalar::Text("RESTART") => Ok(Self::Word(OnLoss::Restart)),
            Scalar::Text("CONTINUE") => Ok(Self::Word(OnLoss::Continue)),
            Scalar::Text(text) => {
                let help = match spelling::meant(text, &["RESTART", "CONTINUE", "CHECKPOINT"]) {
                    Some("RESTART") => Some("did you mean `RESTART`?"),
                    Some("CONTINUE") => Some("did you mean `CONTINUE`?"),
                    Some(_) => Some("say how often one is written: `{checkpoint: 30m}`"),
                    None => None,
                };
                Err(Wrong { help, ..Wrong::found::<Self>(value) })
            }
            Scalar::Bool(_) | Scalar::Integer(_) | Scalar::Float(_) => Err(Wrong::found::<Self>(value)),
        }
    }

    fn mapping<'de, A: MapAccess<'de>>(map: A) -> Result<Result<Self, Wrong>, A::Error> {
        CheckpointSpec::mapping(map).map(|checkpoint| checkpoint.map(Self::Checkpoint))
    }
}

impl JsonSchema for OnLossSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "OnLoss".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let checkpoint = CheckpointSpec::json_schema(generator);
        json_schema!({ "anyOf": [{ "enum": ["RESTART", "CONTINUE"] }, checkpoint] })
    }
}

impl Shape for DrawSpec {
    const EXPECTED: &'static str = "a duration, `{exponential: …}`, `{median: …, p95: …}` or `{pareto: …}`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        DurationSpec::scalar(value).map(Self::Fixed)
    }

    fn mapping<'de, A: MapAccess<'de>>(map: A) -> Result<Result<Self, Wrong>, A::Error> {
        LawSpec::mapping(map).map(|law| law.map(|law| Self::Law(law.into())))
    }
}

impl JsonSchema for DrawSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Draw".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [DurationSpec::json_schema(generator), LawSpec::json_schema(generator)] })
    }
}
