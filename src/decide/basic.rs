//! Dataproc's basic algorithm: from averages over the cooldown period to a change in workers.
//!
//! By the published formulas: with something pending the estimate is the average of
//! (pending + available + allocated + reserved), with nothing pending that of (allocated + reserved), over what one
//! worker holds, rounded up; the change is the estimate less the present workers, times a factor, rounded away from
//! zero when growing and towards zero when shrinking; a change below a fraction of the cluster is not made.

use crate::{
    model::{Amounts, Reason, Resources, Window},
    policy::{BasicAlgorithm, MetricType},
};

/// Keeps 0.07 × 100 from being rounded up to 8.
const ROUNDING_SLACK: f64 = 1e-9;

/// What the workers that are there hold: the formula's "per worker" is `capacity / workers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerWorker {
    /// What `workers` of them hold together.
    pub capacity: Resources,
    /// How many.
    pub workers: u32,
}

/// What the averages ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The resource that asks for most workers.
    pub metric: MetricType,
    /// Its average pending, in MB or cores.
    pub pending: u64,
    /// Its average use (allocated + reserved), in MB or cores.
    pub allocated: u64,
    /// Workers needed.
    pub workers: u32,
}

/// The estimate of each metric of the policy; the largest decides. `None` without samples, or where a worker holds
/// nothing of any metric.
pub fn estimate(basic: &BasicAlgorithm, window: &Window, per_worker: PerWorker) -> Option<Estimate> {
    let estimates = basic.metrics.iter().filter_map(|metric| estimate_one(*metric, window, per_worker));
    // `max_by_key` takes the last of equals; memory comes first in a policy and is to win a tie.
    estimates.rev().max_by_key(|estimate| estimate.workers)
}

fn estimate_one(metric: MetricType, window: &Window, per_worker: PerWorker) -> Option<Estimate> {
    let count = u128::try_from(window.samples).ok().filter(|count| *count > 0)?;
    let sum = |of: Amounts| match metric {
        MetricType::YarnMemory => of.memory_mb,
        MetricType::YarnCores => of.vcores,
    };
    let mean = |sum: u128| u64::try_from(sum.div_ceil(count)).unwrap_or(u64::MAX);
    let (pending, allocated) = (sum(window.pending), sum(window.allocated));
    let needed = if pending > 0 { pending + sum(window.capacity) } else { allocated };
    // ceil(needed / count / (capacity / workers)) in whole numbers: no rounding error can add a worker.
    let share = count * u128::from(amount(metric, per_worker.capacity));
    if share == 0 {
        return None;
    }
    let workers = needed.saturating_mul(u128::from(per_worker.workers)).div_ceil(share);
    let workers = u32::try_from(workers).unwrap_or(u32::MAX);
    Some(Estimate { metric, pending: mean(pending), allocated: mean(allocated), workers })
}

/// How many workers to add (above zero) or to take away (below zero), or why none.
///
/// `delta` is the estimate less the present workers, `size` the present workers that the fraction is taken of.
pub fn change(basic: &BasicAlgorithm, delta: i64, size: u32) -> Result<i64, Reason> {
    let (factor, fraction) = if delta > 0 {
        (basic.scale_up_factor, basic.scale_up_min_worker_fraction)
    } else {
        (basic.scale_down_factor, basic.scale_down_min_worker_fraction)
    };
    let change = round(delta as f64 * factor);
    if change == 0 {
        return Err(Reason::FactorRoundedToZero { delta, factor });
    }
    let threshold = fraction * f64::from(size);
    if change.unsigned_abs() as f64 + ROUNDING_SLACK < threshold {
        return Err(Reason::BelowThreshold { delta: change, threshold });
    }
    Ok(change)
}

/// Up when growing, towards zero when shrinking.
pub fn round(change: f64) -> i64 {
    let rounded = if change > 0.0 { (change - ROUNDING_SLACK).ceil() } else { (change - ROUNDING_SLACK).trunc() };
    #[expect(clippy::cast_possible_truncation, reason = "a number of workers, far inside i64")]
    let whole = rounded as i64;
    whole
}

/// The figure of one metric.
pub fn amount(metric: MetricType, resources: Resources) -> u64 {
    match metric {
        MetricType::YarnMemory => resources.memory_mb,
        MetricType::YarnCores => resources.vcores,
    }
}
