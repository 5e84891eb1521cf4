//! The four places where the controller meets the world, as small traits. An adapter implements one of them; the
//! simulator implements all of them. Their errors have a kind, which the controller acts on, and a text for people.

use chrono::{DateTime, Utc};
use std::{fmt, sync::Arc, time::Duration};

use crate::{
    model::{
        Capacity, Decision, GroupName, Node, NodeId, Observation, Resources, Situation, SizeChange, State, Workers,
    },
    policy::Policy,
};

/// What kind of failure: decides when and whether to try again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// May pass by itself: time-outs, lost connections, 5xx, answers that make no sense.
    Transient,
    /// Too many requests; the other side may say when to come back.
    Throttled {
        /// How long to wait, where it was said.
        retry_after: Option<Duration>,
    },
    /// A quota forbids it: more of the same will fail until somebody raises it.
    Quota,
    /// The provider has no such machines just now.
    StockOut,
    /// What was asked for does not exist.
    NotFound,
    /// We may not.
    Denied,
    /// Another controller is at work, or the thing has changed under us.
    Conflict,
    /// Will fail the same way again.
    Permanent,
}

/// A port's failure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct PortError {
    /// For the controller.
    pub kind: ErrorKind,
    /// For people: what was tried, and what came back. Holds no secret.
    pub text: String,
}

impl PortError {
    /// A failure of this kind with this text.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// A failure that may pass by itself.
    pub fn transient(text: impl Into<String>) -> Self {
        Self::new(ErrorKind::Transient, text)
    }
}

/// Why the loop woke up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// The time has come, or something asks for a look before it.
    Tick,
    /// The time has come, and looks before it were left out, each as long after the one before: the last look had
    /// settled or foreseen that they would say the same ([`Tick::settled_until`], [`Tick::foresight`]), and nothing has
    /// happened since. Only a clock that knows that may say so: the simulator's.
    Skipped {
        /// How many.
        looks: u64,
        /// From one to the next.
        pace: Duration,
    },
    /// The loop is to end.
    Stop,
}

/// Time. Used by the loop only; everything under it is handed `now`.
#[expect(async_fn_in_trait, reason = "the loop is generic and runs on one thread: no Send bound is needed")]
pub trait Clock {
    /// The wall clock.
    fn now(&self) -> DateTime<Utc>;
    /// Returns at `at`, or earlier when there is a reason to look (a signal) or to stop.
    async fn sleep_until(&self, at: DateTime<Utc>) -> Wake;
}

/// YARN, where work runs. Every call ends within a time limit of the adapter's.
#[expect(async_fn_in_trait, reason = "the loop is generic and runs on one thread: no Send bound is needed")]
pub trait Cluster {
    /// One look at the active ResourceManager. A standby's answer is an error, never data. `now` is the tick's.
    ///
    /// The same `Arc` again says that nothing has changed since it was handed out, and spares the caller all work on
    /// it; an equal observation in another `Arc` is as good, and only slower. What was handed out never changes.
    async fn observe(&self, now: DateTime<Utc>) -> Result<Arc<Observation>, PortError>;
    /// The nodes alone, quickly: the look right before a drain.
    async fn nodes(&self) -> Result<Vec<Arc<Node>>, PortError>;
    /// Place nothing new on this node: shrink what it may hand out to `leave`, or to the least that YARN takes where
    /// that is more. What runs there runs on.
    async fn cordon(&self, node: &NodeId, leave: Resources) -> Result<(), PortError>;
    /// Give a cordoned node its resources back.
    async fn uncordon(&self, node: &NodeId, full: Resources) -> Result<(), PortError>;
    /// Drain these hosts; YARN ends what still runs there after `timeout`.
    async fn decommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError>;
    /// Take these hosts off the exclude file: a draining node serves again, a machine that is gone is forgotten.
    async fn recommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError>;
}

/// How an operation stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationState {
    /// Under way.
    Running,
    /// Ended well.
    Done,
    /// Ended badly, in whole or in part; `describe` tells what is there.
    Failed(PortError),
}

/// Where machines come from. Orders are idempotent by their request id: the same id again names the same operation.
/// Every call ends within a time limit of the adapter's.
#[expect(async_fn_in_trait, reason = "the loop is generic and runs on one thread: no Send bound is needed")]
pub trait Provider {
    /// What exists: groups, instances, and what the provider can do. The same `Arc` again says that nothing has
    /// changed, as [`Cluster::observe`] has it.
    async fn describe(&self) -> Result<Arc<Capacity>, PortError>;
    /// Orders `count` more workers; returns the operation's id.
    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError>;
    /// Orders these workers deleted; one that does not exist (any more) is no error. Returns the operation's id.
    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError>;
    /// Orders groups of other sizes, where [`Capabilities::resizes`](crate::model::Capabilities): one order for both.
    /// Workers of a group that shrinks are chosen, drained within `timeout` and deleted by the provider. Returns the
    /// operation's id.
    async fn resize(&self, request_id: &str, change: SizeChange, timeout: Duration) -> Result<String, PortError>;
    /// How an operation stands. `NotFound`: the provider has forgotten it.
    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError>;
}

/// Where the state is kept: whole documents, compare-and-swap. Every call ends within a time limit of the adapter's.
#[expect(async_fn_in_trait, reason = "the loop is generic and runs on one thread: no Send bound is needed")]
pub trait StateStore {
    /// The state and its generation; a fresh state where none is kept yet. [`ErrorKind::Conflict`]: somebody else
    /// holds it, and the text says who.
    async fn load(&mut self) -> Result<State, PortError>;
    /// Replaces the state if it is still the one that was loaded or saved last. [`ErrorKind::Conflict`]: it is not.
    async fn save(&mut self, state: &State) -> Result<(), PortError>;
    /// Keeps hold of the state that was loaded or saved last, once a tick: others see that its holder lives.
    /// [`ErrorKind::Conflict`]: somebody else has taken it.
    async fn keep(&mut self, _state: &State, _now: DateTime<Utc>) -> Result<(), PortError> {
        Ok(())
    }
    /// Lets go of the state, so that the next controller may have it at once: the last thing
    /// before a clean end.
    async fn release(&mut self) -> Result<(), PortError> {
        Ok(())
    }
}

/// What a look at the policy's source found.
#[derive(Debug)]
pub enum PolicyChange {
    /// As before.
    Unchanged,
    /// A new valid policy.
    New(Policy),
    /// It changed and is not valid (the text says why): the one in force stays.
    Invalid(String),
}

/// Where the policy comes from.
#[expect(async_fn_in_trait, reason = "the loop is generic and runs on one thread: no Send bound is needed")]
pub trait PolicySource {
    /// Looks whether it changed since the last call; `now` is the tick's. Ends within a time limit of the adapter's.
    async fn check(&mut self, now: DateTime<Utc>) -> PolicyChange;
}

/// How many of the next ticks, so many at most, order nothing, for reasons of the same kinds, unless YARN, the provider or
/// the policy has something new to say: see `decide::Foresight`. Found out when it is asked.
#[derive(Clone, Copy)]
pub struct Foresight<'a>(pub &'a dyn Fn(u64) -> u64);

impl fmt::Debug for Foresight<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Foresight")
    }
}

/// One tick, for whoever wants to know of it.
#[derive(Debug)]
pub struct Tick<'a> {
    /// All that the decision saw.
    pub situation: &'a Situation,
    /// The policy in force.
    pub policy: &'a Policy,
    /// How many workers there were, by what they were worth; `None` where YARN or the provider did not answer.
    pub workers: Option<Workers>,
    /// What was decided.
    pub decision: &'a Decision,
    /// Before this instant every later tick decides the same, unless YARN, the provider or the policy has something new
    /// to say: see `decide::settled_until`. `None`: the next one may decide otherwise.
    pub settled_until: Option<DateTime<Utc>>,
    /// What can be told of the ticks to come; `None` where the next one may find another state than this one.
    pub foresight: Option<Foresight<'a>>,
    /// What went wrong, or was noticed, while looking and acting; for people.
    pub notes: &'a [String],
}

/// Told of every tick: decision log, live display, watchdog.
pub trait Journal {
    /// A tick is over.
    fn tick(&mut self, tick: &Tick<'_>);
}
