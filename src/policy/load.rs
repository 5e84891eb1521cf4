//! From the text of a policy file to a [`Policy`], or to everything that is wrong with it at once.
//!
//! In order: what every kind of file needs (`document`), then `check`, then `lint`. Reads no file.
//!
//! # Where we are stricter than Dataproc
//! * Unknown fields are errors; gcloud's importer drops them silently.
//! * Duplicate keys, merge keys, tags and a second document are errors.
//! * A primary `minInstances` of 0 is an error; on the wire it is the same as none, and the service fills in 2.
//! * `sparkStandaloneConfig` is an error: nothing here could obey it.
//! * Durations: `P15M` (months, by ISO 8601) and a number with decimals but no unit are errors.

use super::{
    Policy, check,
    diagnostic::Diagnostic,
    document::{self, Kind, in_order},
    lint,
    schema::schema,
    spec::PolicySpec,
};

/// A policy file.
const KIND: Kind = Kind {
    empty: "the file holds no policy",
    needs: "it needs `basicAlgorithm` and `workerConfig`",
    schema,
    known_elsewhere,
};

/// What is known beside the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The cluster keeps Spark's shuffle data on primary workers (`dataproc:efm.spark.shuffle=primary-worker`).
    /// Dataproc then refuses every graceful decommission time-out but 0 (SPARK-30873), and so do we.
    pub primary_worker_shuffle: bool,
}

/// A valid policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The policy.
    pub policy: Policy,
    /// What will probably not do what its writer wants, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a policy file's text.
///
/// # Errors
/// All errors of the file (the first hundred), in its order. Where the text is no YAML that we read, only those of its syntax.
pub fn load(text: &str, options: &LoadOptions) -> Result<Loaded, Vec<Diagnostic>> {
    let spans = document::spans(text)?;
    let mut errors = Vec::new();
    let spec = document::read::<PolicySpec>(text, &spans, &KIND, &mut errors);
    let checked = spec.as_ref().map(|spec| check::check(spec, &spans, *options));
    let policy = checked.and_then(|checked| checked.map_err(|found| errors.extend(found)).ok());
    match policy {
        Some(policy) if errors.is_empty() => {
            let zero = spec.as_ref().and_then(|spec| check::zero_minimum(spec, &policy, &spans));
            let warnings = in_order(lint::lint(&policy, &spans, *options).into_iter().chain(zero));
            Ok(Loaded { policy, warnings })
        }
        _ => Err(in_order(errors)),
    }
}

/// Fields that are no mistake of spelling, but that this program does not serve.
fn known_elsewhere(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "gangAlgorithm" => Some((
            "`gangAlgorithm` is not supported by this version",
            "use `basicAlgorithm`; with `scaleUpFactor: 1.0` it adds all that is pending at once",
        )),
        "sparkStandaloneConfig" => Some((
            "`sparkStandaloneConfig` is for the serverless side of Dataproc, not for YARN clusters",
            "write `yarnConfig` instead",
        )),
        _ => None,
    }
}
