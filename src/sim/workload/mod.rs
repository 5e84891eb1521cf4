//! Jobs: what is submitted, when, and how it behaves. Says nothing of clusters.
//!
//! | file | what it does |
//! |---|---|
//! | [`spec`] | the workload as written |
//! | [`check`], [`generator_check`], [`draw_check`], [`trace_check`] | from as written to as meant |
//! | [`build`](mod@build) | all parts put together, in the order of submission |
//! | [`generate`] | jobs drawn at random |
//! | [`table`] | rows of a trace, and what is said of bad ones |
//! | [`philly`], [`gaia`], [`swim`], [`rows`] | a format of traces each |

pub mod build;
pub mod check;
pub mod draw_check;
pub mod gaia;
pub mod generate;
pub mod generator_check;
pub mod philly;
pub mod rows;
pub mod spec;
pub mod swim;
pub mod table;
pub mod trace_check;

use std::sync::Arc;

pub use build::build;
pub use table::{TraceError, TraceNote};

use super::Ms;
use crate::model::Resources;

/// Jobs in the order of their submission.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Sorted by `submit_ms`; equals keep the order in which they were written.
    pub jobs: Vec<Job>,
}

/// One application.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name, unique within the workload or not.
    pub name: Arc<str>,
    /// `TONY`, `SPARK`, `MAPREDUCE`, …: YARN's application type.
    pub application_type: Arc<str>,
    /// The leaf queue, without `root.`.
    pub queue: Arc<str>,
    /// When it is submitted.
    pub submit_ms: Ms,
    /// The application master's container; `None`: the job has none to speak of (traces that know only of GPUs), and
    /// asks at once.
    pub master: Option<Resources>,
    /// What it does.
    pub work: Work,
    /// What the loss of a container means to it.
    pub on_loss: OnLoss,
}

/// How a job asks and works.
#[derive(Clone, Debug, PartialEq)]
pub enum Work {
    /// TonY and the like: asks for everything at once, holds what it gets, works only while it has all of it, and ends
    /// as a whole.
    Gang {
        /// Its task groups.
        groups: Vec<TaskGroup>,
        /// How long the whole gang works.
        duration_ms: Ms,
    },
    /// MapReduce and the like: stages of independent tasks, a container each.
    Stages(Vec<Stage>),
    /// Spark with dynamic allocation.
    Executors(Executors),
}

/// Containers of one kind of a gang.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskGroup {
    /// `worker`, `ps`, …
    pub name: Arc<str>,
    /// How many.
    pub containers: u32,
    /// The size of each.
    pub resources: Resources,
}

/// Independent tasks, a container each.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// `map`, `reduce`, …
    pub name: Arc<str>,
    /// How many.
    pub tasks: u32,
    /// The size of each one's container.
    pub resources: Resources,
    /// How long one works.
    pub task_ms: Ms,
    /// The share of the stage before, 0 to 1, that must be done before containers are asked for (MapReduce's
    /// `slowstart.completedmaps`). Work begins when all of the stage before is done; until then a container waits.
    /// No meaning in the first stage.
    pub starts_after: f64,
}

/// Spark's dynamic allocation: executors are asked for while tasks wait, doubling each second, and given back when idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Executors {
    /// The size of an executor's container.
    pub resources: Resources,
    /// Tasks that an executor works on at once.
    pub slots: u32,
    /// Tasks in all.
    pub tasks: u32,
    /// How long one works.
    pub task_ms: Ms,
    /// Executors that are kept, and asked for at the start (`minExecutors`).
    pub min: u32,
    /// Most executors (`maxExecutors`).
    pub max: u32,
    /// An executor with nothing to do for so long is given back (`executorIdleTimeout`).
    pub idle_timeout_ms: Ms,
}

/// What the loss of a container means to a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// A gang starts over; a task or an executor's tasks are done again.
    #[default]
    Restart,
    /// A gang goes on from its last checkpoint, written so often while it works.
    Checkpoint {
        /// How often.
        every_ms: Ms,
    },
    /// A gang goes on without it and ends well all the same, as TonY was seen to do; what the container had done counts
    /// as lost.
    Continue,
}

impl Job {
    /// Everything it holds when it runs as a whole, without the application master: of stages the largest, of executors
    /// the most.
    pub fn full_size(&self) -> Resources {
        match &self.work {
            Work::Gang { groups, .. } => groups.iter().map(|g| g.resources.times(g.containers.into())).sum(),
            Work::Stages(stages) => stages
                .iter()
                .map(|stage| stage.resources.times(stage.tasks.into()))
                .max_by_key(|size| (size.gpus, size.memory_mb))
                .unwrap_or_default(),
            Work::Executors(executors) => executors.resources.times(executors.max.into()),
        }
    }

    /// Whether it is of no use before it has all its containers.
    pub fn is_gang(&self) -> bool {
        matches!(self.work, Work::Gang { .. })
    }
}

/// Jobs drawn at random: a non-homogeneous Poisson process of bursts.
#[derive(Clone, Debug, PartialEq)]
pub struct Generator {
    /// Names its jobs, with a number.
    pub name: Arc<str>,
    /// First instant at which jobs may come.
    pub from_ms: Ms,
    /// Last one.
    pub until_ms: Ms,
    /// Jobs a day, on average over a week whose hours and weekdays are weighted as below.
    pub jobs_per_day: f64,
    /// How busy each hour of the day is (UTC), relative to the others.
    pub hours: [f64; 24],
    /// How busy each day of the week is, Monday first.
    pub weekdays: [f64; 7],
    /// How many jobs come together on average (geometric, at least 1); 1 is a plain Poisson process.
    pub burst: f64,
    /// The time over which the jobs of a burst are spread evenly at random.
    pub burst_spread_ms: Ms,
    /// What each job is like: its submission is drawn, and what follows.
    pub job: Job,
    /// How long it works: a gang's duration, a task's time.
    pub duration: Draw,
    /// Gangs: how many containers the first group has, with weights; empty: as in `job`.
    pub sizes: Vec<(u32, f64)>,
}

/// A length of time drawn at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Draw {
    /// Always the same.
    Fixed(Ms),
    /// Exponential, by its mean.
    Exponential(Ms),
    /// Log-normal, by its median and 95th percentile.
    LogNormal {
        /// Half are shorter.
        median_ms: Ms,
        /// One in twenty is longer.
        p95_ms: Ms,
    },
    /// Pareto, bounded: a heavy tail.
    Pareto {
        /// The shortest.
        min_ms: Ms,
        /// The longest.
        max_ms: Ms,
        /// The tail's exponent; the smaller, the heavier.
        alpha: f64,
    },
}

/// A trace in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSource {
    /// How it is written.
    pub format: TraceFormat,
    /// Where, as written: relative to the scenario file.
    pub file: String,
    /// The virtual cluster, where the trace has several.
    pub cluster: Option<String>,
    /// What comes before this time of the trace is left out, and time begins there.
    pub skip_ms: Ms,
    /// The leaf queue of its jobs, without `root.`; of no meaning where rows name queues themselves.
    pub queue: Arc<str>,
    /// What a container asks for: of one GPU, of one core, of one map or reduce; of no meaning where rows say it
    /// themselves.
    pub container: Resources,
    /// What the loss of a container means to its jobs.
    pub on_loss: OnLoss,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// `timestamp,duration,num_gpus,gpu_time,cluster`: each row a gang.
    Philly,
    /// `arrival_time,length,cpus`: each row a job of so many cores.
    Gaia,
    /// Job, submit, gap, map-input, shuffle and reduce-output bytes: MapReduce, durations by a stated rule.
    Swim,
    /// Our own, as `record` writes it.
    Rows,
}
