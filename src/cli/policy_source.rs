//! Where the policy comes from: the adapter for the place that the command line names.

use chrono::{DateTime, Utc};

use super::policy_file::PolicyFile;
use crate::{
    cloud::dataproc::policy::DataprocPolicy,
    policy::Policy,
    ports::{PolicyChange, PolicySource},
    store::{ObjectPolicy, objects::BucketObjects},
};

/// A file, an object in a bucket, or a resource of Dataproc's. `F` makes a policy of its text and its name.
#[derive(Debug)]
pub enum AnyPolicy<F> {
    /// On this machine.
    File(PolicyFile<F>),
    /// In a bucket.
    Object(Box<ObjectPolicy<BucketObjects, F>>),
    /// In Dataproc.
    Dataproc(Box<DataprocPolicy<F>>),
}

impl<F: Fn(&str, &str) -> Result<Policy, String>> PolicySource for AnyPolicy<F> {
    async fn check(&mut self, now: DateTime<Utc>) -> PolicyChange {
        match self {
            Self::File(source) => source.check(now).await,
            Self::Object(source) => source.check(now).await,
            Self::Dataproc(source) => source.check(now).await,
        }
    }
}
