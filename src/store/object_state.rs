//! The state in an object: one JSON document, one holder, compare-and-swap. Knows nothing of what the state means.
//!
//! The document is `{"holder":{…},"lease":{…},"state":{…}}`. Nothing locks a bucket, so the holder says in the document
//! that it lives: it renews the lease, and one that has not been renewed for [`STALE_AFTER`] may be taken. Clocks decide
//! only who may try. What keeps two controllers from both giving orders is the object's generation: each write demands
//! the one before it, an order is given only after its intent was written, and the one that was overtaken finds that out
//! at that very write and ends. A clock that is wrong, or a holder that stood still, costs a restart and nothing else.

use std::{fs, time::Duration};

use chrono::{DateTime, Utc};
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    document::{self, Holder, Place, STATE_BYTES_MAX, Stated},
    objects::{Generation, Objects, Precondition, Upload},
};
use crate::{
    model::State,
    ports::{ErrorKind, PortError, StateStore},
};

/// A lease that was not renewed for so long may be taken: two renewals have failed, and half a minute is left for clocks
/// that differ.
pub const STALE_AFTER: Duration = Duration::from_secs(90);

/// How old the lease may become before [`StateStore::keep`] renews it. Looks are 30 s apart at most, so that it is renewed
/// every 30 s even then; with shorter ones four times a minute, which a bucket takes easily.
pub const RENEW_AFTER: Duration = Duration::from_secs(15);

/// How long a call may take with all that it makes anew. Cut off anywhere it is a write without an answer, which the next
/// one finds out about.
const CALL_LIMIT: Duration = Duration::from_secs(20);

/// How often a write is made anew where the document turns out to be our own earlier one, or a free one that somebody
/// else was quicker to take and left again.
const ATTEMPTS_MAX: usize = 3;

/// That the holder lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    /// Drawn by each process: tells our own writes from those of anybody else, whatever their host and pid.
    nonce: String,
    /// Of the holder's writes, from 1. Tells our last write from the one before.
    sequence: u64,
    /// By the holder's clock.
    renewed_at: DateTime<Utc>,
    /// The running system and the name space in which the holder's pid means something; empty where that is not known.
    machine: String,
}

impl Lease {
    /// By `now`; negative where the holder's clock is ahead of ours.
    fn age(&self, now: DateTime<Utc>) -> chrono::TimeDelta {
        now - self.renewed_at
    }

    fn is_stale(&self, now: DateTime<Utc>) -> bool {
        self.age(now).to_std().is_ok_and(|age| age >= STALE_AFTER)
    }
}

/// The document as written.
#[derive(Serialize)]
struct Written<'a> {
    holder: &'a Holder,
    /// None: the holder has let go.
    lease: Option<&'a Lease>,
    state: &'a State,
}

/// The document as read. Unknown fields are refused by [`document::parse`].
#[derive(Deserialize)]
struct Document {
    holder: Holder,
    // Without this, a lease that is missing would be one that was let go.
    #[serde(deserialize_with = "Option::deserialize")]
    lease: Option<Lease>,
    state: State,
}

impl Stated for Document {
    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

/// The state in an object that this process alone holds, until it lets go of it or stops renewing.
#[derive(Debug)]
pub struct ObjectStateStore<O> {
    objects: O,
    name: String,
    holder: Holder,
    lease: Lease,
    /// The last `now` that we were handed.
    now: DateTime<Utc>,
    /// Of the document that was written last; `None`: we do not hold it.
    generation: Option<Generation>,
}

impl<O: Objects> ObjectStateStore<O> {
    /// The state in the object of this name. Nothing is asked yet: [`StateStore::load`] takes hold of it, by `now`.
    pub fn new(objects: O, name: impl Into<String>, now: DateTime<Utc>) -> Self {
        let lease = Lease { nonce: Uuid::new_v4().to_string(), sequence: 0, renewed_at: now, machine: machine() };
        Self { objects, name: name.into(), holder: Holder::this_process(now), lease, now, generation: None }
    }

    /// The state without taking hold of it, for a look from outside (`plan`): whole and as last saved, whoever holds it.
    /// A fresh state where none is kept.
    ///
    /// # Errors
    /// As [`StateStore::load`], less the conflict.
    pub async fn peek(objects: &O, name: &str) -> Result<State, PortError> {
        Ok(read(objects, name).await?.map_or_else(State::default, |(document, _)| document.state))
    }

    fn place(&self) -> Place {
        place(&self.objects, &self.name)
    }

    /// Why we may not take what is there; `None`: we may.
    fn held(&self, document: &Document) -> Option<PortError> {
        let Document { holder, lease: Some(lease), .. } = document else { return None };
        let is_ours = lease.nonce == self.lease.nonce;
        if is_ours || lease.is_stale(self.now) || self.has_ended(holder, lease) {
            return None;
        }
        let age = lease.age(self.now).num_seconds();
        let limit = STALE_AFTER.as_secs();
        let since = if age >= 0 {
            format!("renewed {age} s ago; it may be taken once it has not been renewed for {limit} s")
        } else {
            format!(
                "renewed {} s ahead of our clock: one of the two clocks is wrong; where that process has ended, \
                 remove the object's lease (set it to null)",
                -age
            )
        };
        Some(PortError::new(ErrorKind::Conflict, format!("{} is held by {holder}, {since}", self.place())))
    }

    /// Whether the holder was a process of this very machine that is no more: then nobody need wait.
    fn has_ended(&self, holder: &Holder, lease: &Lease) -> bool {
        let is_here =
            holder.host == self.holder.host && !lease.machine.is_empty() && lease.machine == self.lease.machine;
        let pid = i32::try_from(holder.pid).ok().and_then(Pid::from_raw);
        is_here && pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
    }

    /// The next document of ours.
    fn next(&mut self, state: &State) -> Result<Upload, PortError> {
        self.lease.sequence += 1;
        self.lease.renewed_at = self.now;
        document::written(&Written { holder: &self.holder, lease: Some(&self.lease), state }).map(Upload::json)
    }

    /// One try to take hold of the state; `None`: somebody was quicker, or it was us and the answer was lost. The next
    /// look shows.
    async fn take(&mut self) -> Result<Option<State>, PortError> {
        let (state, when) = match read(&self.objects, &self.name).await? {
            None => (State::default(), Precondition::Absent),
            Some((document, generation)) => {
                if let Some(held) = self.held(&document) {
                    return Err(held);
                }
                if document.lease.is_some_and(|lease| lease.nonce != self.lease.nonce) {
                    tracing::warn!("{} is taken over from {}", self.place(), document.holder);
                }
                (document.state, Precondition::Generation(generation))
            }
        };
        let upload = self.next(&state)?;
        match self.within_limit(self.objects.put(&self.name, upload, when)).await {
            Ok(generation) => {
                self.generation = Some(generation);
                Ok(Some(state))
            }
            Err(error) if error.kind == ErrorKind::Conflict => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes over our own last document.
    async fn write(&mut self, state: &State) -> Result<(), PortError> {
        let Some(known) = self.generation else {
            return Err(PortError::new(ErrorKind::Permanent, "the state was not loaded before it was saved"));
        };
        let renewed_before = self.lease.renewed_at;
        let upload = self.next(state)?;
        match self.within_limit(self.replace(upload, known)).await {
            Ok(generation) => self.generation = Some(generation),
            Err(error) => {
                // Not known to be renewed: the next tick tries again.
                self.lease.renewed_at = renewed_before;
                return Err(error);
            }
        }
        Ok(())
    }

    async fn within_limit<T>(&self, call: impl Future<Output = Result<T, PortError>>) -> Result<T, PortError> {
        let limit = CALL_LIMIT.as_secs();
        let too_late = |_| PortError::transient(format!("{} could not be written within {limit} s", self.place()));
        timeout(CALL_LIMIT, call).await.map_err(too_late)?
    }

    async fn replace(&self, upload: Upload, mut known: Generation) -> Result<Generation, PortError> {
        for _ in 0..ATTEMPTS_MAX {
            match self.objects.put(&self.name, upload.clone(), Precondition::Generation(known)).await {
                Err(error) if error.kind == ErrorKind::Conflict => {}
                result => return result,
            }
            known = match self.own_document().await? {
                Own::This(generation) => return Ok(generation),
                Own::Earlier(generation) => generation,
            };
        }
        Err(PortError::transient(format!("{} keeps changing while it is written", self.place())))
    }

    /// After a refused write: the document may be our own, whose acknowledgement was lost.
    async fn own_document(&self) -> Result<Own, PortError> {
        let conflict = |text: String| PortError::new(ErrorKind::Conflict, text);
        match read(&self.objects, &self.name).await? {
            Some((Document { lease: Some(lease), .. }, generation)) if lease.nonce == self.lease.nonce => {
                let is_this = lease.sequence == self.lease.sequence;
                Ok(if is_this { Own::This(generation) } else { Own::Earlier(generation) })
            }
            Some((Document { holder, .. }, _)) => {
                Err(conflict(format!("{} was taken from us by {holder}", self.place())))
            }
            None => Err(conflict(format!("{} was deleted under us", self.place()))),
        }
    }
}

/// A document of ours that was found.
enum Own {
    /// The one that was to be written.
    This(Generation),
    /// One before it.
    Earlier(Generation),
}

impl<O: Objects> StateStore for ObjectStateStore<O> {
    async fn load(&mut self) -> Result<State, PortError> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(state) = self.take().await? {
                return Ok(state);
            }
        }
        let text = format!("{} changes faster than it can be taken hold of: others are at work", self.place());
        Err(PortError::new(ErrorKind::Conflict, text))
    }

    async fn save(&mut self, state: &State) -> Result<(), PortError> {
        self.write(state).await
    }

    async fn keep(&mut self, state: &State, now: DateTime<Utc>) -> Result<(), PortError> {
        self.now = now;
        // A clock that was set back renews at once: its old time would look fresh for too long.
        let is_fresh = self.lease.age(now).to_std().is_ok_and(|age| age < RENEW_AFTER);
        if is_fresh { Ok(()) } else { self.write(state).await }
    }

    async fn release(&mut self) -> Result<(), PortError> {
        if self.generation.take().is_none() {
            return Ok(());
        }
        // Read, since the last write may have been done without our knowing.
        let Some((document, generation)) = read(&self.objects, &self.name).await? else { return Ok(()) };
        if document.lease.is_none_or(|lease| lease.nonce != self.lease.nonce) {
            return Ok(());
        }
        let text = document::written(&Written { holder: &self.holder, lease: None, state: &document.state })?;
        self.objects.put(&self.name, Upload::json(text), Precondition::Generation(generation)).await.map(drop)
    }
}

async fn read(objects: &impl Objects, name: &str) -> Result<Option<(Document, Generation)>, PortError> {
    let Some(object) = objects.get(name, STATE_BYTES_MAX).await? else { return Ok(None) };
    Ok(Some((document::parse(&place(objects, name), &object.bytes)?, object.generation)))
}

fn place(objects: &impl Objects, name: &str) -> Place {
    Place { kind: "object", name: objects.address(name) }
}

/// The boot of this system and the name space of its processes: a pid means the same only where both are the same, and
/// host names repeat among containers.
fn machine() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let space = fs::read_link("/proc/self/ns/pid");
    match (boot, space) {
        (Ok(boot), Ok(space)) => format!("{} {}", boot.trim(), space.display()),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_stale_after_its_time_and_never_before() {
        let now: DateTime<Utc> = DateTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        for (age, stale) in [(0, false), (89, false), (90, true), (3600, true), (-3600, false)] {
            let renewed_at = now - chrono::TimeDelta::seconds(age);
            let lease = Lease { nonce: "n".into(), sequence: 1, renewed_at, machine: String::new() };
            assert_eq!(lease.is_stale(now), stale, "{age}");
        }
    }
}
