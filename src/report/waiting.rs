//! How long jobs waited: means, percentiles, the whole distribution.

use serde::Serialize;

use super::round;
use crate::sim::{
    Ms,
    outcome::{JobOutcome, Outcome},
};

/// The waiting times of some jobs, in seconds. `None` where there are no jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Waits {
    /// How many jobs.
    pub jobs: usize,
    /// How many of them never began to work: their wait counts up to their end, or the run's, and would have been longer.
    pub never_started: usize,
    /// On average.
    pub mean_s: Option<f64>,
    /// Half of the jobs waited no longer. Percentiles are by nearest rank: a wait that some job had.
    pub p50_s: Option<f64>,
    /// 95 % waited no longer.
    pub p95_s: Option<f64>,
    /// 99 % waited no longer.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
    /// On average over GPUs instead of jobs: `sum(wait * GPUs) / sum(GPUs)`; `None` where none asks for GPUs.
    pub gpu_weighted_mean_s: Option<f64>,
}

/// How long a job waited: from its submission to the beginning of its work, for a gang that of the last start, so that
/// work which was lost is waiting. A job that never began has waited until its end, or the run's.
pub fn wait_ms(job: &JobOutcome, end_ms: Ms) -> Ms {
    job.start_ms.or(job.end_ms).unwrap_or(end_ms).saturating_sub(job.submit_ms)
}

impl Waits {
    /// Of all jobs, or of gangs alone.
    pub fn of(outcome: &Outcome, gangs_only: bool) -> Self {
        let jobs: Vec<&JobOutcome> = outcome.jobs.iter().filter(|job| job.is_gang || !gangs_only).collect();
        let waits = sorted_waits(&jobs, outcome.end_ms);
        let total: u128 = waits.iter().map(|wait| u128::from(*wait)).sum();
        let gpus: u128 = jobs.iter().map(|job| u128::from(job.size.gpus)).sum();
        let weighted: u128 =
            jobs.iter().map(|job| u128::from(wait_ms(job, outcome.end_ms)) * u128::from(job.size.gpus)).sum();
        let at = |percent| percentile(&waits, percent).map(seconds);
        Self {
            jobs: jobs.len(),
            never_started: jobs.iter().filter(|job| job.start_ms.is_none()).count(),
            mean_s: mean_s(total, waits.len() as u128),
            p50_s: at(50),
            p95_s: at(95),
            p99_s: at(99),
            max_s: at(100),
            gpu_weighted_mean_s: mean_s(weighted, gpus),
        }
    }
}

/// The waits of these jobs in ms, the shortest first.
pub fn sorted_waits(jobs: &[&JobOutcome], end_ms: Ms) -> Vec<Ms> {
    let mut waits: Vec<Ms> = jobs.iter().map(|job| wait_ms(job, end_ms)).collect();
    waits.sort_unstable();
    waits
}

/// The smallest of the sorted values that at least `percent` of all do not exceed (nearest rank).
pub fn percentile(sorted: &[Ms], percent: usize) -> Option<Ms> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

/// The distribution: for each wait that occurs, in ms, the share of jobs (0 to 1) that waited no longer. Both rise.
pub fn distribution(sorted: &[Ms]) -> Vec<(Ms, f64)> {
    let mut points: Vec<(Ms, f64)> = Vec::new();
    for (index, wait) in sorted.iter().enumerate() {
        let share = (index + 1) as f64 / sorted.len() as f64;
        match points.last_mut() {
            Some(last) if last.0 == *wait => last.1 = share,
            _ => points.push((*wait, share)),
        }
    }
    points
}

fn seconds(ms: Ms) -> f64 {
    ms as f64 / 1000.0
}

fn mean_s(total_ms: u128, count: u128) -> Option<f64> {
    (count > 0).then(|| round(total_ms as f64 / count as f64 / 1000.0))
}
