//! What the operator allows: the autoscaling policy file, Dataproc's `AutoscalingPolicy` as it is.
//!
//! A policy is typed twice: [`spec`] is the file as written, [`Policy`] is the file as meant.
//! Holding a [`Policy`] means that it is valid. Knows nothing of clusters, clouds or the clock; text comes in, values
//! go out.
//!
//! | file | what it does |
//! |---|---|
//! | [`spans`] | where each value of a YAML text is written |
//! | [`field`] | one field as written: absent, right, or wrong and why |
//! | [`document`], [`checker`], [`spelling`] | what every kind of file needs: values and unknown fields, bounds, "did you mean" |
//! | [`spec`] | the file as written; its comments are what an editor shows |
//! | [`check`] | from the file as written to the file as meant: defaults, bounds, what hangs together |
//! | [`lint`] | warnings: valid, but it will hurt |
//! | [`load`](mod@load) | all of these in order |
//! | [`schema`](mod@schema) | the JSON Schema |
//! | [`diagnostic`] | how all this is told |

pub mod check;
pub mod checker;
pub mod diagnostic;
pub mod document;
pub mod duration;
pub mod field;
pub mod lint;
pub mod load;
#[expect(clippy::module_inception, reason = "the file is named after the one type that it holds")]
mod policy;
pub mod schema;
pub mod spans;
pub mod spec;
pub mod spelling;

pub use diagnostic::{Diagnostic, DiagnosticJson, Severity};
pub use load::{LoadOptions, Loaded, load};
pub use policy::{Algorithm, BasicAlgorithm, GroupPolicy, MetricType, Policy};
pub use schema::schema;
