//! What the operator allows: the autoscaling policy file, Dataproc's `AutoscalingPolicy` as it is.
//!
//! A policy is typed twice: [`spec`] is the file as written, [`Policy`] is the file as meant.
//! Holding a [`Policy`] means that it is valid. Knows nothing of clusters, clouds or the clock.

#[expect(clippy::module_inception, reason = "the file is named after the one type that it holds")]
mod policy;

pub use policy::{Algorithm, BasicAlgorithm, GroupPolicy, MetricType, Policy};
