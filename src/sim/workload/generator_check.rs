//! A generator of a workload, from as written to as meant.

use std::time::Duration;

use super::{
    Draw, Generator, Job, Work,
    check::{Body, MANY, Surroundings, job, name, never_fits, time},
    draw_check::{draw, sizes, weights},
    spec::GeneratorSpec,
};
use crate::{
    policy::{checker::Checker, duration, field::Field, spans::Path, spec::DurationSpec},
    sim::{Ms, ms},
};

/// Most jobs that all generators draw.
const MOST_DRAWN: f64 = 1e7;

/// Reports names that come twice: a generator's name is its stream of random numbers, and its jobs' name.
pub fn same_names(c: &mut Checker<'_>, path: &Path, field: &Field<Vec<Field<GeneratorSpec>>>) {
    let mut seen: Vec<&String> = Vec::new();
    let items = field.value().map_or(&[][..], Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        let Some(name) = item.value().and_then(|spec| spec.name.value()) else { continue };
        if seen.contains(&name) {
            let path = path.index(index).key("name");
            let message = format!("`{path}`: another generator is called `{name}` too");
            c.error("duplicate-name", &path, message, |error| error);
        }
        seen.push(name);
    }
}

/// A generator; `drawn` counts the jobs that all of them draw, on average.
pub fn generator(
    c: &mut Checker<'_>,
    path: &Path,
    spec: &GeneratorSpec,
    around: &Surroundings<'_>,
    drawn: &mut f64,
) -> Option<Generator> {
    let name = name(c, &path.key("name"), &spec.name);
    c.missing(&path.key("jobsPerDay"), &spec.jobs_per_day);
    let jobs_per_day = c.number(&path.key("jobsPerDay"), &spec.jobs_per_day, 0.0..=10_000_000.0);
    let hours = weights::<24>(c, &path.key("hours"), &spec.hours);
    let weekdays = weights::<7>(c, &path.key("weekdays"), &spec.weekdays);
    let burst = c.number(&path.key("burst"), &spec.burst, 1.0..=f64::from(MANY)).unwrap_or(1.0);
    let burst_spread = time(c, &path.key("burstSpread"), &spec.burst_spread, Duration::ZERO);
    let from = time(c, &path.key("from"), &spec.from, Duration::ZERO).unwrap_or_default();
    let until = until(c, &path.key("until"), &spec.until, from, around);
    let duration = draw(c, &path.key("duration"), &spec.duration);
    let body = Body {
        application_type: &spec.application_type,
        queue: &spec.queue,
        master: &spec.master,
        gang: &spec.gang,
        stages: &spec.stages,
        executors: &spec.executors,
        on_loss: &spec.on_loss,
        is_drawn: !matches!(spec.duration, Field::Absent),
    };
    let job = job(c, path, &body, around);
    let sizes = sizes(c, &path.key("sizes"), &spec.sizes, job.as_ref());
    let (job, until, jobs_per_day) = (job?, until?, jobs_per_day?);
    never_fits(c, &path.key("name"), &largest(&job, sizes.as_deref().unwrap_or_default()), around);
    let days = until.saturating_sub(from).as_secs_f64() / 86_400.0;
    *drawn += jobs_per_day * days;
    if *drawn > MOST_DRAWN {
        let message = format!("the generators up to `{path}` would draw {drawn:.0} jobs");
        c.error("too-many-jobs", &path.key("jobsPerDay"), message, |error| error.help("ten million are allowed"));
    }
    let duration = match duration {
        Some(draw) => draw,
        None if body.is_drawn => return None,
        None => Draw::Fixed(own_time(&job.work)),
    };
    Some(Generator {
        name: name?,
        from_ms: ms(from),
        until_ms: ms(until),
        jobs_per_day,
        hours: hours?,
        weekdays: weekdays?,
        burst,
        burst_spread_ms: ms(burst_spread?),
        job,
        duration,
        sizes: sizes?,
    })
}

/// The largest job that may be drawn.
fn largest(job: &Job, sizes: &[(u32, f64)]) -> Job {
    let mut job = job.clone();
    let most = sizes.iter().filter(|(_, weight)| *weight > 0.0).map(|(size, _)| *size).max();
    if let (Some(most), Work::Gang { groups, .. }) = (most, &mut job.work)
        && let Some(group) = groups.first_mut()
    {
        group.containers = most;
    }
    job
}

/// How long a job's shape says that it works.
fn own_time(work: &Work) -> Ms {
    match work {
        Work::Gang { duration_ms, .. } => *duration_ms,
        Work::Stages(stages) => stages.first().map_or(0, |stage| stage.task_ms),
        Work::Executors(executors) => executors.task_ms,
    }
}

fn until(
    c: &mut Checker<'_>,
    path: &Path,
    field: &Field<DurationSpec>,
    from: Duration,
    around: &Surroundings<'_>,
) -> Option<Duration> {
    let until = time(c, path, field, around.end.unwrap_or(from + duration::DAY))?;
    if until <= from {
        let message =
            format!("`{path}` ({}) is not after `from` ({})", duration::format(until), duration::format(from));
        c.error("until-before-from", path, message, |error| error);
    }
    Some(until)
}
