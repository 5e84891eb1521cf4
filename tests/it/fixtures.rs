//! The instants and the policy from which tests start; each test changes what it is about.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use yarn_autoscaler::policy::{Algorithm, BasicAlgorithm, GroupPolicy, MetricType, Policy};

/// Noon: the instant that tests call now.
pub fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).expect("a date")
}

/// `seconds` after noon; before it where negative.
pub fn at(seconds: f64) -> DateTime<Utc> {
    #[expect(clippy::cast_possible_truncation, reason = "a few days in milliseconds")]
    let ms = (seconds * 1000.0).round() as i64;
    noon() + TimeDelta::milliseconds(ms)
}

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Two to ten primary workers, no secondary ones; factors 1, no fractions, cooldown 2 min, graceful time-out 10 min.
pub fn policy() -> Policy {
    Policy {
        id: None,
        algorithm: Algorithm::Basic(BasicAlgorithm {
            cooldown_period: secs(120),
            scale_up_factor: 1.0,
            scale_down_factor: 1.0,
            scale_up_min_worker_fraction: 0.0,
            scale_down_min_worker_fraction: 0.0,
            graceful_decommission_timeout: secs(600),
            metrics: vec![MetricType::YarnMemory],
        }),
        primary: group(2, 10, 1),
        secondary: None,
        primary_template: None,
        secondary_template: None,
    }
}

/// The algorithm's parameters, to change one.
pub fn basic(policy: &mut Policy) -> &mut BasicAlgorithm {
    let Algorithm::Basic(basic) = &mut policy.algorithm;
    basic
}

pub const fn group(min_instances: u32, max_instances: u32, weight: u32) -> GroupPolicy {
    GroupPolicy { min_instances, max_instances, weight }
}
