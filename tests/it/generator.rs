//! Jobs drawn at random: rates, hours, bursts, sizes; and that a seed gives the same jobs everywhere.

use std::{collections::BTreeMap, fmt::Write as _};

use yarn_autoscaler::sim::{
    Ms,
    workload::{Job, Work},
};

use crate::scenario::{CLOUD, jobs, valid};

const HOUR: Ms = 3_600_000;

fn drawn(seed: u64, days: u32, fields: &str) -> Vec<Job> {
    drawn_from("2026-01-05T00:00:00Z", seed, days, fields)
}

fn drawn_from(start: &str, seed: u64, days: u32, fields: &str) -> Vec<Job> {
    let text = format!(
        "start: {start}\nseed: {seed}\nduration: {days}d\n{CLOUD}workload:\n  generate:\n    - name: g\n      {fields}\n      \
         gang: {{groups: [{{memoryMb: 512, gpus: 1}}, {{name: ps, memoryMb: 512}}]}}\n"
    );
    jobs(&valid(&text)).jobs
}

fn containers(job: &Job) -> u32 {
    let Work::Gang { groups, .. } = &job.work else { panic!("{job:?}") };
    groups[0].containers
}

fn duration(job: &Job) -> Ms {
    let Work::Gang { duration_ms, .. } = job.work else { panic!("{job:?}") };
    duration_ms
}

#[track_caller]
fn close(found: f64, expected: f64, percent: f64) {
    assert!((found - expected).abs() <= expected * percent / 100.0, "{found} is not about {expected}");
}

#[test]
fn jobs_come_at_their_rate() {
    let plain = drawn(1, 70, "jobsPerDay: 240\n      duration: 5m");
    close(plain.len() as f64, 240.0 * 70.0, 3.0);
    // Gaps of a Poisson process are exponential: their variance is their mean's square.
    let gaps: Vec<_> = plain.windows(2).map(|pair| (pair[1].submit_ms - pair[0].submit_ms) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
    close(variance / (mean * mean), 1.0, 6.0);
    // Weighted hours and weekdays leave a whole week's number as it is.
    let weighted = "jobsPerDay: 240\n      duration: 5m\n      weekdays: [3, 3, 3, 3, 3, 0, 0]\n      \
                    hours: [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 0, 0, 0, 0, 0, 0]";
    let weighted = drawn(1, 70, weighted);
    close(weighted.len() as f64, 240.0 * 70.0, 3.0);
    let mut hours = BTreeMap::<Ms, f64>::new();
    for job in &weighted {
        *hours.entry(job.submit_ms / HOUR % 24).or_default() += 1.0;
        // The scenario begins on a Monday.
        assert!(job.submit_ms / HOUR / 24 % 7 < 5);
    }
    assert_eq!(hours.keys().copied().collect::<Vec<_>>(), (8..18).collect::<Vec<_>>());
    close(hours[&12] / hours[&8], 2.0, 8.0);
}

#[test]
fn the_start_says_which_hour_it_is() {
    let only_nine = "jobsPerDay: 24\n      duration: 5m\n      weekdays: [0, 1, 0, 0, 0, 0, 0]\n      \
                     hours: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]";
    // A Monday, 20:00: nine o'clock on Tuesday comes 13 hours later.
    let found = drawn_from("2026-01-05T20:00:00Z", 1, 3, only_nine);
    assert!(!found.is_empty() && found.iter().all(|job| job.submit_ms / HOUR == 13));
}

#[test]
fn bursts_come_together() {
    let found = drawn(1, 70, "jobsPerDay: 240\n      burst: 5\n      burstSpread: 1m\n      duration: 5m");
    close(found.len() as f64, 240.0 * 70.0, 6.0);
    let near = found.windows(2).filter(|pair| pair[1].submit_ms - pair[0].submit_ms < 60_000).count();
    // Four of five jobs of a burst are within a minute of another one.
    assert!(near as f64 > 0.75 * found.len() as f64, "{near} of {}", found.len());
    let at_once = drawn(1, 10, "jobsPerDay: 240\n      burst: 5\n      duration: 5m");
    assert!(at_once.windows(2).filter(|pair| pair[1].submit_ms == pair[0].submit_ms).count() > at_once.len() / 2);
}

#[test]
fn sizes_and_lengths_are_drawn_each_from_a_stream_of_its_own() {
    let sized = "jobsPerDay: 240\n      sizes: {1: 8, 2: 1, 16: 1}\n      duration: {median: 10m, p95: 5h}";
    let found = drawn(1, 70, sized);
    let share = |n: u32| found.iter().filter(|job| containers(job) == n).count() as f64 / found.len() as f64;
    close(share(1), 0.8, 3.0);
    close(share(16), 0.1, 10.0);
    let mut lengths: Vec<_> = found.iter().map(duration).collect();
    lengths.sort_unstable();
    close(lengths[lengths.len() / 2] as f64, 600_000.0, 6.0);
    // Other lengths: the same arrivals, the same sizes.
    let other = drawn(1, 70, "jobsPerDay: 240\n      sizes: {1: 8, 2: 1, 16: 1}\n      duration: 1m");
    let row = |job: &Job| (job.submit_ms, containers(job), job.name.clone());
    assert!(found.iter().map(row).eq(other.iter().map(row)));
    assert!(other.iter().all(|job| duration(job) == 60_000));
    let again = drawn(2, 70, sized);
    assert!(!found.iter().map(|job| job.submit_ms).eq(again.iter().map(|job| job.submit_ms)));
}

#[test]
fn bounds_in_time_hold() {
    let found = drawn(
        3,
        10,
        "jobsPerDay: 500\n      from: 2d\n      until: 3d\n      burst: 3\n      burstSpread: 2h\n      duration: 1m",
    );
    assert!(found.len() > 300);
    assert!(found.iter().all(|job| (48 * HOUR..=72 * HOUR).contains(&job.submit_ms)));
    assert!(found.is_sorted_by_key(|job| job.submit_ms));
    assert!(drawn(3, 10, "jobsPerDay: 0\n      duration: 1m").is_empty());
}

#[test]
fn stages_keep_their_proportions() {
    let text = format!(
        "duration: 1d\n{CLOUD}workload:\n  generate:\n    - name: g\n      jobsPerDay: 50\n      duration: {{exponential: 2m}}\n      \
         stages: [{{tasks: 4, memoryMb: 512, taskTime: 10s}}, {{tasks: 1, memoryMb: 512, taskTime: 25s}}]\n"
    );
    for job in jobs(&valid(&text)).jobs {
        let Work::Stages(stages) = job.work else { panic!() };
        assert_eq!(stages[1].task_ms, (stages[0].task_ms * 5 / 2).max(1));
    }
}

/// The first thousand jobs of a seed, as a number: the same on every machine and in every version.
#[test]
fn a_seed_is_a_promise() {
    let fields = "jobsPerDay: 300\n      burst: 2\n      burstSpread: 10m\n      sizes: {1: 0.7, 2: 0.2, 8: 0.1}\n      \
                  weekdays: [5, 5, 5, 5, 4, 1, 1]\n      duration: {pareto: {min: 1m, max: 2d, alpha: 0.9}}";
    let jobs = drawn(42, 7, fields);
    let mut text = String::new();
    for job in &jobs[..1000] {
        writeln!(text, "{} {} {} {}", job.name, job.submit_ms, containers(job), duration(job)).unwrap();
    }
    // FNV-1a, 64 bits.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    let first: Vec<_> = text.lines().take(3).collect();
    insta::assert_snapshot!(format!("{hash:016x}\n{}", first.join("\n")));
}

/// A million jobs are drawn while one waits; a slow machine may take its time.
#[test]
fn a_million_jobs_are_drawn_at_once() {
    let started = std::time::Instant::now();
    let found = drawn(1, 365, "jobsPerDay: 2740\n      sizes: {1: 8, 2: 1}\n      duration: {median: 10m, p95: 5h}");
    close(found.len() as f64, 1_000_000.0, 1.0);
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}
