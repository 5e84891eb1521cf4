//! The policy in an object: notices that it has changed and hands its text to the loader. Knows nothing of what a policy
//! says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::objects::{Generation, Object, Objects};
use crate::{
    policy::Policy,
    ports::{ErrorKind, PolicyChange, PolicySource, PortError},
};

/// Largest policy: as for files, a hundred times the largest sensible one.
const POLICY_BYTES_MAX: u64 = 1 << 20;

/// How long a look at the object is good for.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What the last look showed.
#[derive(Debug)]
enum Seen {
    /// This writing of it.
    Text(Generation),
    /// It could not be read.
    Unreadable,
}

/// A policy object that is looked at again and again.
#[derive(Debug)]
pub struct ObjectPolicy<O, F> {
    objects: O,
    name: String,
    parse: F,
    force: Arc<AtomicBool>,
    looked_at: Option<DateTime<Utc>>,
    last: Option<Seen>,
    /// The text that was read last, or why it was none: the same again is no change, also after a time without any.
    read: Option<Result<String, String>>,
}

impl<O: Objects, F: Fn(&str, &str) -> Result<Policy, String>> ObjectPolicy<O, F> {
    /// The object of this name; `parse` makes a policy of its text and its address (for messages). Nothing is read yet:
    /// the first `check` does, and reports `New` or `Invalid`. Later ones look every half minute. While `force` is true,
    /// the next `check` looks at once, reports what it finds and sets `force` back to false.
    pub fn new(objects: O, name: impl Into<String>, force: Arc<AtomicBool>, parse: F) -> Self {
        Self { objects, name: name.into(), parse, force, looked_at: None, last: None, read: None }
    }

    /// Makes the next `check` read the object and report what it finds.
    pub fn force(&self) {
        self.force.store(true, Ordering::Relaxed);
    }

    /// Whether it can be read at all: before the first `check`, which knows no kinds of failure.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: there is none. Otherwise what the storage, or the lack of it, said.
    pub async fn probe(&self) -> Result<(), PortError> {
        self.object().await.map(drop)
    }

    async fn object(&self) -> Result<Object, PortError> {
        let address = self.objects.address(&self.name);
        let found = self.objects.get(&self.name, POLICY_BYTES_MAX).await.map_err(|error| {
            PortError::new(error.kind, format!("the policy {address} cannot be read: {}", error.text))
        })?;
        let missing = || PortError::new(ErrorKind::NotFound, format!("there is no policy {address}"));
        found.ok_or_else(missing)
    }

    fn is_due(&self, now: DateTime<Utc>) -> bool {
        // A clock that was set back looks at once.
        let waits = |at: DateTime<Utc>| (now - at).to_std().is_ok_and(|since| since < LOOK_EVERY);
        !self.looked_at.is_some_and(waits)
    }

    /// What is said of a text.
    fn judged(&self, text: &Result<String, String>) -> PolicyChange {
        match text {
            Ok(text) => match (self.parse)(text, &self.objects.address(&self.name)) {
                Ok(policy) => PolicyChange::New(policy),
                Err(problems) => PolicyChange::Invalid(problems),
            },
            Err(problem) => PolicyChange::Invalid(problem.clone()),
        }
    }
}

impl<O: Objects, F: Fn(&str, &str) -> Result<Policy, String>> PolicySource for ObjectPolicy<O, F> {
    async fn check(&mut self, now: DateTime<Utc>) -> PolicyChange {
        let forced = self.force.swap(false, Ordering::Relaxed);
        if !forced && !self.is_due(now) {
            return PolicyChange::Unchanged;
        }
        self.looked_at = Some(now);
        let object = match self.object().await {
            Ok(object) => object,
            Err(error) => {
                // Told once: the texts of two failures differ in what does not matter.
                let is_told = matches!(self.last, Some(Seen::Unreadable));
                self.last = Some(Seen::Unreadable);
                return if is_told && !forced { PolicyChange::Unchanged } else { PolicyChange::Invalid(error.text) };
            }
        };
        let looks_same = matches!(&self.last, Some(Seen::Text(generation)) if *generation == object.generation);
        if looks_same && !forced {
            return PolicyChange::Unchanged;
        }
        let address = self.objects.address(&self.name);
        let text =
            String::from_utf8(object.bytes.to_vec()).map_err(|_| format!("the policy {address} is not UTF-8 text"));
        let is_same = self.read.as_ref() == Some(&text);
        let found = if is_same && !forced { PolicyChange::Unchanged } else { self.judged(&text) };
        self.last = Some(Seen::Text(object.generation));
        self.read = Some(text);
        found
    }
}
