//! Autoscaling policies that are kept in Dataproc: fetched, and looked at again and again. Knows nothing of what a
//! policy says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{Target, attached_policy, meant, operation};
use crate::{
    google::{Api, printable},
    policy::Policy,
    ports::{ErrorKind, PolicyChange, PolicySource, PortError},
};

/// How often the policy is looked at: an edit counts within half a minute, and the project's quota is not felt.
const LOOK_INTERVAL: Duration = Duration::from_secs(30);

/// What a policy consists of. Whatever else an answer has beside it is Dataproc's own record of the resource.
const FIELDS: &[&str] =
    &["basicAlgorithm", "clusterType", "id", "labels", "name", "secondaryWorkerConfig", "workerConfig"];

/// The policy's text as `policy::load` takes it: YAML with sorted fields, one a line, as `gcloud … export` writes it.
/// Where Dataproc leaves a figure out, it is zero, and so it is left out here. `id` is a policy's id, its resource name
/// (`projects/P/regions/R/autoscalingPolicies/ID`, also with `locations`), or a URL that ends in it.
///
/// # Errors
/// `Permanent`: that is no policy's name. Else what the service, or the lack of it, said.
pub async fn policy_yaml(api: &Api, project: &str, region: &str, id: &str) -> Result<String, PortError> {
    let name = resource_name(project, region, id)?;
    let answer: Map<String, Value> = api.get(&format!("v1/{name}"), &[]).await.map_err(|error| meant(&error))?;
    let lacks = |field: &&str| !answer.get(*field).is_some_and(Value::is_object);
    if let Some(field) = ["basicAlgorithm", "workerConfig"].iter().find(|field| lacks(field)) {
        return Err(PortError::transient(format!("what Dataproc says of {name} lacks `{field}`")));
    }
    let (policy, record): (Map<_, _>, Map<_, _>) =
        answer.into_iter().partition(|(field, _)| FIELDS.contains(&field.as_str()));
    if !record.is_empty() {
        let fields: Vec<_> = record.keys().map(|field| printable(field)).collect();
        tracing::debug!(policy = name, "fields of Dataproc's own are left out: {}", fields.join(", "));
    }
    serde_yaml::to_string(&policy)
        .map_err(|error| PortError::transient(format!("what Dataproc says of {name} cannot be written: {error}")))
}

/// `projects/P/regions/R/autoscalingPolicies/ID`.
fn resource_name(project: &str, region: &str, id: &str) -> Result<String, PortError> {
    let whole = match id.find("projects/") {
        Some(at) => id[at..].to_owned(),
        None => format!("projects/{project}/regions/{region}/autoscalingPolicies/{id}"),
    };
    let words: Vec<_> = whole.split('/').collect();
    match words[..] {
        ["projects", _, "regions" | "locations", _, "autoscalingPolicies", _] if operation::is_name(&whole) => {
            Ok(whole)
        }
        _ => {
            let text = format!(
                "`{}` names no autoscaling policy: write its id, or projects/P/regions/R/autoscalingPolicies/ID",
                printable(id)
            );
            Err(PortError::new(ErrorKind::Permanent, text))
        }
    }
}

/// A policy in Dataproc that is looked at again and again.
#[derive(Debug)]
pub struct DataprocPolicy<F> {
    api: Api,
    target: Target,
    /// `None`: the one that is attached to the cluster.
    id: Option<String>,
    parse: F,
    force: Arc<AtomicBool>,
    looked_at: Option<DateTime<Utc>>,
    /// The text that was last reported.
    last: Option<String>,
    /// The last look found no text, and that was reported.
    failing: bool,
}

impl<F: Fn(&str, &str) -> Result<Policy, String>> DataprocPolicy<F> {
    /// The policy of this id or resource name, `None`: the one that is attached to the cluster. `parse` makes a policy of
    /// its text and its name (for messages). Nothing is read yet: the first `check` does, and reports `New` or `Invalid`.
    /// While `force` is true, the next `check` reads the policy however short ago the last look was, reports what it
    /// finds and sets `force` back to false.
    pub fn new(api: Api, target: Target, id: Option<String>, force: Arc<AtomicBool>, parse: F) -> Self {
        Self { api, target, id, parse, force, looked_at: None, last: None, failing: false }
    }

    /// Whether it can be read at all: before the first `check`, which knows no kinds of failure.
    ///
    /// # Errors
    /// As [`policy_yaml`]; [`ErrorKind::NotFound`] also where no policy is attached.
    pub async fn probe(&self) -> Result<(), PortError> {
        self.read().await.map(drop)
    }

    /// The policy's name and its text.
    async fn read(&self) -> Result<(String, String), PortError> {
        let Target { project, region, cluster } = &self.target;
        let name = match &self.id {
            Some(id) => id.clone(),
            None => attached_policy(&self.api, &self.target).await?.ok_or_else(|| {
                let text = format!("cluster {cluster} has no autoscaling policy attached: name one, dataproc:ID");
                PortError::new(ErrorKind::NotFound, text)
            })?,
        };
        let text = policy_yaml(&self.api, project, region, &name).await?;
        Ok((name, text))
    }

    fn is_due(&self, now: DateTime<Utc>) -> bool {
        // A clock set back makes it due, too.
        self.looked_at.is_none_or(|looked_at| now < looked_at || looked_at + LOOK_INTERVAL <= now)
    }
}

impl<F: Fn(&str, &str) -> Result<Policy, String>> PolicySource for DataprocPolicy<F> {
    async fn check(&mut self, now: DateTime<Utc>) -> PolicyChange {
        let forced = self.force.swap(false, Ordering::Relaxed);
        if !forced && !self.is_due(now) {
            return PolicyChange::Unchanged;
        }
        self.looked_at = Some(now);
        let (name, text) = match self.read().await {
            Ok(read) => read,
            Err(_) if self.failing && !forced => return PolicyChange::Unchanged,
            Err(error) => {
                self.failing = true;
                return PolicyChange::Invalid(format!("the policy in Dataproc cannot be read: {error}"));
            }
        };
        self.failing = false;
        if self.last.as_ref() == Some(&text) && !forced {
            return PolicyChange::Unchanged;
        }
        let found = (self.parse)(&text, &name);
        self.last = Some(text);
        found.map_or_else(PolicyChange::Invalid, PolicyChange::New)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_named_in_many_ways() {
        let here = "projects/p/regions/r/autoscalingPolicies/x-1";
        let there = "projects/q/locations/s/autoscalingPolicies/x-1";
        for (id, expected) in [
            ("x-1", Some(here)),
            (here, Some(here)),
            (there, Some(there)),
            ("https://www.googleapis.com/compute/v1/projects/p/regions/r/autoscalingPolicies/x-1", Some(here)),
            ("//dataproc.googleapis.com/projects/p/regions/r/autoscalingPolicies/x-1", Some(here)),
            ("", None),
            ("a/b", None),
            ("..", None),
            ("x?y", None),
            ("projects/p/regions/r/clusters/x-1", None),
            ("projects/p/regions/r/autoscalingPolicies/", None),
        ] {
            assert_eq!(resource_name("p", "r", id).ok().as_deref(), expected, "{id}");
        }
    }
}
