//! Jobs drawn at random: bursts that arrive as a non-homogeneous Poisson process, with gang sizes and working times.

use chrono::{DateTime, Datelike, Timelike, Utc};

use super::{Generator, Job, Work};
use crate::sim::{
    Ms,
    random::{Rng, to_ms},
};

const HOUR: f64 = 3_600_000.0;
const DAY: f64 = 24.0 * HOUR;

/// The jobs of a generator, by submission; numbered in that order. The same seed gives the same jobs. When jobs come,
/// how many containers they have and how long they work are streams of their own: another distribution of one leaves
/// the others as they were.
pub fn jobs(generator: &Generator, start: DateTime<Utc>, seed: u64) -> Vec<Job> {
    let stream = |purpose: &str| Rng::new(seed, &format!("workload/{}/{purpose}", generator.name));
    let (mut sizes, mut durations) = (stream("sizes"), stream("durations"));
    let times = arrivals(generator, start, &mut stream("arrivals"));
    let jobs = times.into_iter().enumerate().map(|(index, submit_ms)| {
        let mut work = generator.job.work.clone();
        if let (Some(size), Work::Gang { groups, .. }) = (sizes.weighted(&generator.sizes), &mut work)
            && let Some(group) = groups.first_mut()
        {
            group.containers = *size;
        }
        set_time(&mut work, durations.draw(&generator.duration).max(1));
        let name = format!("{}-{}", generator.name, index + 1).into();
        Job { name, submit_ms, work, ..generator.job.clone() }
    });
    jobs.collect()
}

/// When jobs come, sorted. Bursts are a Poisson process whose rate follows hours and weekdays, by thinning (Lewis and
/// Shedler, 1979): candidates at the highest rate, each kept with the share that its hour has of that rate.
fn arrivals(generator: &Generator, start: DateTime<Utc>, rng: &mut Rng) -> Vec<Ms> {
    let Generator { from_ms, until_ms, jobs_per_day, burst, burst_spread_ms, .. } = *generator;
    let mean = |weights: &[f64]| weights.iter().sum::<f64>() / weights.len() as f64;
    let most = |weights: &[f64]| weights.iter().copied().fold(0.0, f64::max);
    let (hours, weekdays) = (&generator.hours, &generator.weekdays);
    // Weights of the busiest hour of the busiest day, relative to the mean of the week.
    let peak = most(hours) / mean(hours) * (most(weekdays) / mean(weekdays));
    let bursts_per_ms = jobs_per_day / burst.max(1.0) / DAY * peak;
    let mut times = Vec::new();
    if !(bursts_per_ms > 0.0 && bursts_per_ms.is_finite()) {
        return times;
    }
    // The scenario's first instant, in milliseconds since a Monday's midnight.
    let monday = f64::from(start.weekday().num_days_from_monday()) * DAY;
    let since_monday = monday + f64::from(start.num_seconds_from_midnight()) * 1000.0;
    let mut at = from_ms as f64;
    loop {
        at += rng.exponential(1.0 / bursts_per_ms);
        if at > until_ms as f64 {
            break;
        }
        let hour = whole((since_monday + at) / HOUR);
        let busy = hours[hour % 24] / most(hours) * (weekdays[hour / 24 % 7] / most(weekdays));
        if !rng.happens(busy) {
            continue;
        }
        for _ in 0..rng.geometric(burst) {
            let submit_ms = to_ms(at + rng.uniform() * burst_spread_ms as f64);
            times.extend((submit_ms <= until_ms).then_some(submit_ms));
        }
    }
    times.sort_unstable();
    times
}

/// The whole part of a number that is not negative.
fn whole(number: f64) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours of some years")]
    let whole = number as usize;
    whole
}

/// Sets how long a job works: of stages the first, and the others in proportion.
fn set_time(work: &mut Work, drawn: Ms) {
    match work {
        Work::Gang { duration_ms, .. } => *duration_ms = drawn,
        Work::Executors(executors) => executors.task_ms = drawn,
        Work::Stages(stages) => {
            let first = stages.first().map_or(1, |stage| stage.task_ms).max(1);
            for stage in stages {
                let scaled = u128::from(stage.task_ms) * u128::from(drawn) / u128::from(first);
                stage.task_ms = Ms::try_from(scaled).unwrap_or(Ms::MAX).max(1);
            }
        }
    }
}
