//! From a workload as written to one as meant: defaults, bounds, and what must fit together with queues and workers.

use std::{sync::Arc, time::Duration};

use super::{
    Executors, Job, OnLoss, Stage, TaskGroup, Work,
    generator_check::{generator, same_names},
    spec::{
        CheckpointSpec, ExecutorsSpec, GangSpec, GeneratorSpec, JobSpec, OnLossSpec, ResourcesSpec, StageSpec,
        TaskGroupSpec, TraceSpec, WorkloadSpec,
    },
    trace_check::trace,
};
use crate::{
    model::Resources,
    policy::{
        checker::Checker,
        field::Field,
        spans::Path,
        spec::DurationSpec,
        spelling::{self, quoted},
    },
    sim::{
        ms,
        scenario::{Queue, WorkloadPlan},
    },
};

/// Longest length of time that a scenario may name.
pub const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Most jobs that are written out: more are better drawn, or read from a trace.
const MOST_WRITTEN: u32 = 100_000;

/// Most tasks of a stage, most containers of a group: more is a slip of the fingers.
pub const MANY: u32 = 1_000_000;

/// The share of maps that are done before reducers are asked for (`mapreduce.job.reduce.slowstart.completedmaps`).
const SLOW_START: f64 = 0.05;

/// What a workload must fit together with, as far as it could be read.
pub struct Surroundings<'a> {
    /// The leaf queues; empty where they are wrong themselves.
    pub queues: &'a [Queue],
    /// What a worker of each group offers; empty where one is wrong itself.
    pub workers: &'a [Resources],
    /// What a primary worker offers.
    pub primary: Option<Resources>,
    /// What all workers that the cloud's quotas allow offer; `None`: no quota.
    pub most: Option<Resources>,
    /// When the scenario ends, where it says so.
    pub end: Option<Duration>,
}

/// What a job is, whether it is written out or drawn.
pub struct Body<'a> {
    /// YARN's type.
    pub application_type: &'a Field<String>,
    /// The leaf queue.
    pub queue: &'a Field<String>,
    /// The application master.
    pub master: &'a Field<ResourcesSpec>,
    /// A gang.
    pub gang: &'a Field<GangSpec>,
    /// Stages of tasks.
    pub stages: &'a Field<Vec<Field<StageSpec>>>,
    /// Spark.
    pub executors: &'a Field<ExecutorsSpec>,
    /// What a loss means.
    pub on_loss: &'a Field<OnLossSpec>,
    /// How long it works is drawn, and need not be written.
    pub is_drawn: bool,
}

/// What is submitted.
pub fn check(c: &mut Checker<'_>, path: &Path, spec: &WorkloadSpec, around: &Surroundings<'_>) -> Option<WorkloadPlan> {
    let lists = [
        matches!(&spec.jobs, Field::Value(jobs) if jobs.is_empty()) || matches!(spec.jobs, Field::Absent),
        matches!(&spec.generate, Field::Value(items) if items.is_empty()) || matches!(spec.generate, Field::Absent),
        matches!(&spec.traces, Field::Value(items) if items.is_empty()) || matches!(spec.traces, Field::Absent),
    ];
    if lists == [true; 3] {
        let message = format!("`{path}` is empty: nothing would be submitted");
        c.error("no-jobs", path, message, |error| error.help("write `jobs`, `generate` or `traces`"));
    }
    let mut total = 0;
    let jobs =
        each(c, &path.key("jobs"), &spec.jobs, |c, path, job: &JobSpec| written(c, path, job, around, &mut total));
    let mut drawn = 0.0;
    let generators = each(c, &path.key("generate"), &spec.generate, |c, path, spec: &GeneratorSpec| {
        generator(c, path, spec, around, &mut drawn)
    });
    same_names(c, &path.key("generate"), &spec.generate);
    let traces = each(c, &path.key("traces"), &spec.traces, |c, path, spec: &TraceSpec| trace(c, path, spec, around));
    Some(WorkloadPlan { jobs: jobs.into_iter().flatten().collect(), generators, traces })
}

/// Each item of a list that could be read.
pub fn each<T: Clone, U>(
    c: &mut Checker<'_>,
    path: &Path,
    field: &Field<Vec<Field<T>>>,
    mut meant: impl FnMut(&mut Checker<'_>, &Path, &T) -> Option<U>,
) -> Vec<U> {
    let Some(items) = c.read(path, field) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = path.index(index);
        match item {
            Field::Absent => c.error("wrong-type", &path, format!("`{path}` is empty"), |error| error),
            _ => found.extend(c.read(&path, item).and_then(|item| meant(c, &path, &item))),
        }
    }
    found
}

/// A job, as often as it comes; `total` counts all of them.
fn written(
    c: &mut Checker<'_>,
    path: &Path,
    spec: &JobSpec,
    around: &Surroundings<'_>,
    total: &mut u32,
) -> Option<Vec<Job>> {
    let name = name(c, &path.key("name"), &spec.name);
    let at = time(c, &path.key("at"), &spec.at, Duration::ZERO).unwrap_or_default();
    let every = time(c, &path.key("every"), &spec.every, Duration::ZERO).unwrap_or_default();
    let count = number(c, &path.key("count"), &spec.count, 1, 1);
    let body = Body {
        application_type: &spec.application_type,
        queue: &spec.queue,
        master: &spec.master,
        gang: &spec.gang,
        stages: &spec.stages,
        executors: &spec.executors,
        on_loss: &spec.on_loss,
        is_drawn: false,
    };
    let job = job(c, path, &body, around);
    let (name, count, job) = (name?, count?, job?);
    *total = total.saturating_add(count);
    if *total > MOST_WRITTEN {
        let message = format!("there are more than {MOST_WRITTEN} jobs up to `{path}`");
        c.error("too-many-jobs", &path.key("count"), message, |error| error.help("see `generate` and `traces`"));
        return None;
    }
    never_fits(c, &path.key("name"), &job, around);
    let last = ms(at).saturating_add(ms(every).saturating_mul((count - 1).into()));
    if around.end.is_some_and(|end| last >= ms(end)) {
        let what = if count > 1 { "jobs of " } else { "" };
        let message = format!("{what}`{path}` would come after the end of the scenario, and are left out");
        c.warn("after-the-end", &path.key("at"), message, |warning| warning.help("see `duration`"));
    }
    let jobs = (0..count).map(|n| Job {
        name: if count == 1 { name.clone() } else { format!("{name}-{}", n + 1).into() },
        submit_ms: ms(at).saturating_add(ms(every).saturating_mul(n.into())),
        ..job.clone()
    });
    Some(jobs.collect())
}

/// A job, not submitted yet and without a name.
pub fn job(c: &mut Checker<'_>, path: &Path, body: &Body<'_>, around: &Surroundings<'_>) -> Option<Job> {
    let application_type = c.read(&path.key("type"), body.application_type);
    let queue = queue(c, &path.key("queue"), body.queue, around);
    let on_loss = on_loss(c, &path.key("onLoss"), body.on_loss);
    let master = container(c, &path.key("master"), body.master);
    let work = work(c, path, body);
    let (work, default_type, default_master) = work?;
    let master = match body.master {
        Field::Absent => Resources::new(default_master, 1, 0),
        _ => master?,
    };
    Some(Job {
        name: "".into(),
        application_type: application_type.map_or_else(|| default_type.into(), Arc::from),
        queue: queue?,
        submit_ms: 0,
        master: Some(master),
        work,
        on_loss: on_loss?,
    })
}

/// How it works; and the type and the master's memory where the file gives none, as the frameworks have them
/// (`tony.am.memory`, `yarn.app.mapreduce.am.resource.mb`, Spark's driver of 1 GB with its overhead of 384 MB).
fn work(c: &mut Checker<'_>, path: &Path, body: &Body<'_>) -> Option<(Work, &'static str, u64)> {
    let shapes = [
        ("gang", matches!(body.gang, Field::Absent)),
        ("stages", matches!(body.stages, Field::Absent)),
        ("executors", matches!(body.executors, Field::Absent)),
    ];
    let given: Vec<_> = shapes.iter().filter(|(_, is_absent)| !is_absent).map(|(name, _)| *name).collect();
    match given[..] {
        [] => {
            c.lacks(&path.key("gang"), format!("`{path}` does not say how it works"), |error| {
                error.help("write one of `gang`, `stages` and `executors`")
            });
            return None;
        }
        [_] => {}
        [first, second, ..] => {
            let message = format!("`{path}` has both `{first}` and `{second}`");
            c.error("two-shapes", &path.key(second), message, |error| error.help("write two jobs"));
            return None;
        }
    }
    let is_drawn = body.is_drawn;
    let gang = c.read(&path.key("gang"), body.gang).map(|spec| gang(c, &path.key("gang"), &spec, is_drawn));
    let executors = c.read(&path.key("executors"), body.executors);
    let executors = executors.map(|spec| self::executors(c, &path.key("executors"), &spec, is_drawn));
    if !matches!(body.stages, Field::Absent) {
        return Some((stages(c, &path.key("stages"), body.stages, is_drawn)?, "MAPREDUCE", 1536));
    }
    match (gang, executors) {
        (Some(gang), _) => Some((gang?, "TONY", 2048)),
        (_, executors) => Some((executors??, "SPARK", 1408)),
    }
}

fn gang(c: &mut Checker<'_>, path: &Path, spec: &GangSpec, is_drawn: bool) -> Option<Work> {
    let duration = working_time(c, &path.key("duration"), &spec.duration, is_drawn);
    let path = path.key("groups");
    c.missing(&path, &spec.groups);
    if matches!(&spec.groups, Field::Value(groups) if groups.is_empty()) {
        c.out_of_range(&path, "a list of at least one group", "none");
    }
    let groups = each(c, &path, &spec.groups, |c, path, spec: &TaskGroupSpec| {
        let containers = number(c, &path.key("containers"), &spec.containers, 1, 1);
        let resources = amounts(c, path, &spec.memory_mb, &spec.vcores, &spec.gpus);
        let name = c.read(&path.key("name"), &spec.name).unwrap_or_else(|| "worker".into());
        Some(TaskGroup { name: name.into(), containers: containers?, resources: resources? })
    });
    Some(Work::Gang { groups, duration_ms: ms(duration?) })
}

fn stages(c: &mut Checker<'_>, path: &Path, field: &Field<Vec<Field<StageSpec>>>, is_drawn: bool) -> Option<Work> {
    if matches!(field, Field::Value(stages) if stages.is_empty()) {
        c.out_of_range(path, "a list of at least one stage", "none");
    }
    let mut stages: Vec<Stage> = Vec::new();
    let mut number_of = 0;
    let found = each(c, path, field, |c, path, spec: &StageSpec| {
        number_of += 1;
        c.missing(&path.key("tasks"), &spec.tasks);
        let tasks = number(c, &path.key("tasks"), &spec.tasks, 1, 1);
        let resources = amounts(c, path, &spec.memory_mb, &spec.vcores, &spec.gpus);
        let task_time = working_time(c, &path.key("taskTime"), &spec.task_time, is_drawn);
        let starts_after = c.number(&path.key("startsAfter"), &spec.starts_after, 0.0..=1.0);
        let name = c.read(&path.key("name"), &spec.name).unwrap_or_else(|| format!("stage{number_of}"));
        Some(Stage {
            name: name.into(),
            tasks: tasks?,
            resources: resources?,
            task_ms: ms(task_time?),
            starts_after: starts_after.unwrap_or(SLOW_START),
        })
    });
    stages.extend(found);
    Some(Work::Stages(stages))
}

fn executors(c: &mut Checker<'_>, path: &Path, spec: &ExecutorsSpec, is_drawn: bool) -> Option<Work> {
    let resources = amounts(c, path, &spec.memory_mb, &spec.vcores, &spec.gpus);
    c.missing(&path.key("tasks"), &spec.tasks);
    let tasks = number(c, &path.key("tasks"), &spec.tasks, 1, 1);
    let task_time = working_time(c, &path.key("taskTime"), &spec.task_time, is_drawn);
    let idle_timeout = time(c, &path.key("idleTimeout"), &spec.idle_timeout, Duration::from_secs(60));
    let min_path = path.key("minExecutors");
    let min = number(c, &min_path, &spec.min_executors, 0, 0);
    let cores = resources.map_or(1, |resources| u32::try_from(resources.vcores).unwrap_or(1).max(1));
    let slots = number(c, &path.key("slots"), &spec.slots, 1, cores);
    let (tasks, min, slots) = (tasks?, min?, slots?);
    let max = number(c, &path.key("maxExecutors"), &spec.max_executors, 1, tasks.div_ceil(slots).max(min))?;
    if min > max {
        let span = c.spans.place(&path.key("maxExecutors")).value;
        let message = format!("`{min_path}` ({min}) is greater than `{}` ({max})", path.key("maxExecutors"));
        c.error("min-above-max", &min_path, message, |error| error.also(span, "the maximum is set here"));
    }
    Some(Work::Executors(Executors {
        resources: resources?,
        slots,
        tasks,
        task_ms: ms(task_time?),
        min,
        max,
        idle_timeout_ms: ms(idle_timeout?),
    }))
}

/// Memory, cores and GPUs; a whole amount in a mapping of its own.
pub fn container(c: &mut Checker<'_>, path: &Path, field: &Field<ResourcesSpec>) -> Option<Resources> {
    let spec = c.read(path, field)?;
    amounts(c, path, &spec.memory_mb, &spec.vcores, &spec.gpus)
}

fn amounts(
    c: &mut Checker<'_>,
    path: &Path,
    memory_mb: &Field<i64>,
    vcores: &Field<i64>,
    gpus: &Field<i64>,
) -> Option<Resources> {
    c.missing(&path.key("memoryMb"), memory_mb);
    let memory_mb = c.count(&path.key("memoryMb"), memory_mb, 1);
    let mut or = |name: &str, field: &Field<i64>, default: u32| match field {
        Field::Absent => Some(default),
        _ => c.count(&path.key(name), field, 0),
    };
    let (vcores, gpus) = (or("vcores", vcores, 1), or("gpus", gpus, 0));
    Some(Resources::new(memory_mb?.into(), vcores?.into(), gpus?.into()))
}

/// A name that is not empty.
pub fn name(c: &mut Checker<'_>, path: &Path, field: &Field<String>) -> Option<Arc<str>> {
    let name = c.require(path, field)?;
    if name.trim().is_empty() {
        c.error("empty-name", path, format!("`{path}` is empty"), |error| error);
    }
    Some(name.into())
}

/// A leaf queue that exists; the first one where none is written.
pub fn queue(c: &mut Checker<'_>, path: &Path, field: &Field<String>, around: &Surroundings<'_>) -> Option<Arc<str>> {
    let first = around.queues.first().map_or("default", |queue| &queue.name);
    let written = match field {
        Field::Absent => return Some(first.into()),
        _ => c.read(path, field)?,
    };
    // Queues that are wrong themselves have been told of.
    let names: Vec<_> = around.queues.iter().map(|queue| queue.name.as_str()).collect();
    if !names.is_empty() && !names.contains(&written.as_str()) {
        let leaf = written.trim_start_matches("root.");
        let help = match spelling::meant(leaf, &names) {
            Some(queue) => format!("did you mean `{queue}`?"),
            None => format!("leaf queues are {}", quoted(&names)),
        };
        c.error("unknown-queue", path, format!("`{path}`: there is no queue `{written}`"), |error| error.help(help));
        return None;
    }
    Some(written.into())
}

/// What the loss of a container means.
pub fn on_loss(c: &mut Checker<'_>, path: &Path, field: &Field<OnLossSpec>) -> Option<OnLoss> {
    match field {
        Field::Absent => Some(OnLoss::Restart),
        _ => match c.read(path, field)? {
            OnLossSpec::Word(word) => Some(word),
            OnLossSpec::Checkpoint(CheckpointSpec { checkpoint }) => {
                let path = path.key("checkpoint");
                c.missing(&path, &checkpoint);
                let every = c.duration(&path, &checkpoint, Duration::from_secs(1)..=LONGEST)?;
                Some(OnLoss::Checkpoint { every_ms: ms(every) })
            }
        },
    }
}

/// A length of time; the default where none is written.
pub fn time(c: &mut Checker<'_>, path: &Path, field: &Field<DurationSpec>, default: Duration) -> Option<Duration> {
    match field {
        Field::Absent => Some(default),
        _ => c.duration(path, field, Duration::ZERO..=LONGEST),
    }
}

/// How long something works: at least a millisecond. One that is drawn need not be written; the second stands for it
/// where stages are in proportion.
fn working_time(c: &mut Checker<'_>, path: &Path, field: &Field<DurationSpec>, is_drawn: bool) -> Option<Duration> {
    match field {
        Field::Absent if is_drawn => Some(Duration::from_secs(1)),
        _ => {
            c.missing(path, field);
            c.duration(path, field, Duration::from_millis(1)..=LONGEST)
        }
    }
}

/// A count; the default where none is written.
fn number(c: &mut Checker<'_>, path: &Path, field: &Field<i64>, least: u32, default: u32) -> Option<u32> {
    let Field::Absent = field else {
        let count = c.count(path, field, least)?;
        if count > MANY {
            c.out_of_range(path, &format!("at most {MANY}"), count);
        }
        return Some(count);
    };
    Some(default)
}

/// Whether a worker has room for a container; where workers are not known, nothing is said.
pub fn fits_somewhere(size: Resources, around: &Surroundings<'_>) -> bool {
    around.workers.is_empty() || around.workers.iter().any(|worker| size.fits(*worker))
}

/// Warns of a job with a container that fits no worker, and of a gang that is larger than the quotas allow.
pub fn never_fits(c: &mut Checker<'_>, path: &Path, job: &Job, around: &Surroundings<'_>) {
    let named = |name: &str, size: Resources| (format!("a container of `{name}`"), size);
    let master = job.master.into_iter().map(|size| ("the application master".to_string(), size));
    let containers: Vec<_> = match &job.work {
        Work::Gang { groups, .. } => groups.iter().map(|group| named(&group.name, group.resources)).collect(),
        Work::Stages(stages) => stages.iter().map(|stage| named(&stage.name, stage.resources)).collect(),
        Work::Executors(executors) => vec![("an executor".into(), executors.resources)],
    };
    if let Some((what, size)) = master.chain(containers).find(|(_, size)| !fits_somewhere(*size, around)) {
        let message = format!("no worker has room for {what}: the job would wait for ever");
        c.warn("never-fits", path, message, |warning| warning.help(room(size, around)));
        return;
    }
    let whole = job.full_size() + job.master.unwrap_or_default();
    if let Some(most) = around.most.filter(|most| job.is_gang() && !whole.fits(*most)) {
        let message = "the quotas allow no cluster that holds this gang: it would wait for ever";
        let help = format!("it asks for {}; all workers offer {}", words(whole), words(most));
        c.warn("never-whole", path, message, |warning| warning.help(help));
    }
}

/// What a container asks for, and what there is.
pub fn room(size: Resources, around: &Surroundings<'_>) -> String {
    let workers: Vec<_> = around.workers.iter().map(|worker| words(*worker)).collect();
    format!("it asks for {}; a worker offers {}", words(size), workers.join(" or "))
}

fn words(amount: Resources) -> String {
    format!("{} MB, {} cores, {} GPUs", amount.memory_mb, amount.vcores, amount.gpus)
}
