//! The loop: look, reconcile, decide, act, sleep. Knows the ports, never what is behind them.
//!
//! Nothing waits inside a tick. Orders to the provider are operations: intended (and saved), given, remembered, and
//! polled at later ticks. A controller that is killed anywhere finds in its state what it had begun.

mod execute;
mod reconcile;
mod retry;

pub use reconcile::reconcile;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use crate::{
    decide,
    model::{Capacity, Decision, DrainPhase, History, Observation, Outage, Resources, Situation, State},
    policy::Policy,
    ports::{
        Clock, Cluster, ErrorKind, Journal, PolicyChange, PolicySource, PortError, Provider, StateStore, Tick, Wake,
    },
};

/// The shortest pause between two ticks, however long the last one took.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// What an operator may set about the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The longest time from a change in YARN to the decision on it; YARN is looked at twice in it.
    pub poll_interval: Duration,
    /// How long to hold after another ResourceManager has taken over.
    pub restart_hold: Duration,
    /// How long a worker may be not ready before it is replaced.
    pub ready_deadline: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_secs(5),
            // Applications send their asks anew for some 10 s, new containers wait as long (work-preserving recovery).
            restart_hold: Duration::from_secs(60),
            ready_deadline: Duration::from_secs(15 * 60),
        }
    }
}

/// Why the loop ended before it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halt {
    /// Another controller holds the state, or has changed it.
    #[error("{0}")]
    Conflict(String),
    /// The state cannot be read.
    #[error("{0}")]
    State(String),
}

/// The controller and its world.
#[derive(Debug)]
pub struct Controller<C, P, S, J, R> {
    cluster: C,
    provider: P,
    store: S,
    journal: J,
    policies: R,
    policy: Policy,
    settings: Settings,
    /// Copied when it changes, and only then: situations and `saved` share it.
    state: Arc<State>,
    saved: Arc<State>,
    history: History,
    /// What ran on each cordoned node at the last look. Not remembered across a restart: the nodes settle anew.
    ran: BTreeMap<String, (u32, Resources)>,
}

impl<C: Cluster, P: Provider, S: StateStore, J: Journal, R: PolicySource> Controller<C, P, S, J, R> {
    /// A controller over these ports, with the state that the store holds.
    ///
    /// # Errors
    /// [`Halt::Conflict`] where another controller holds the state, [`Halt::State`] where it cannot be read.
    pub fn new(
        (cluster, provider, mut store, journal, policies): (C, P, S, J, R),
        policy: Policy,
        settings: Settings,
    ) -> Result<Self, Halt> {
        let state = store.load().map_err(|error| match error.kind {
            ErrorKind::Conflict => Halt::Conflict(error.text),
            _ => Halt::State(error.text),
        })?;
        let state = Arc::new(state);
        let (saved, history) = (Arc::clone(&state), History::default());
        let ran = BTreeMap::new();
        Ok(Self { cluster, provider, store, journal, policies, policy, settings, state, saved, history, ran })
    }

    /// Ticks until the clock says stop.
    ///
    /// # Errors
    /// [`Halt::Conflict`] where another controller has changed the state.
    pub async fn run(&mut self, clock: &impl Clock) -> Result<(), Halt> {
        loop {
            let decision = self.tick(clock.now()).await?;
            let next_at = decision.next_at.max(clock.now() + PAUSE_MIN);
            if clock.sleep_until(next_at).await == Wake::Stop {
                return Ok(());
            }
        }
    }

    /// One turn: looks at everything, decides, acts, tells the journal.
    ///
    /// # Errors
    /// [`Halt::Conflict`] where another controller has changed the state.
    pub async fn tick(&mut self, now: DateTime<Utc>) -> Result<Decision, Halt> {
        let mut notes = self.reload_policy();
        self.follow_operations(now, &mut notes).await?;
        let capacity = self.provider.describe().await;
        let observation = self.cluster.observe(now).await;
        if let Ok(observation) = &observation {
            self.settle_anew(observation);
        }
        let timeout = self.policy.basic().graceful_decommission_timeout;
        let seen = (observation.as_deref().ok(), capacity.as_deref().ok());
        notes.extend(reconcile(self.state_mut(), seen.0, seen.1, now, timeout));
        let situation = self.situation(now, observation.map_err(outage), capacity.map_err(outage));
        let decision = decide::decide(&self.policy, &situation);
        self.execute(&decision, &situation, &mut notes).await?;
        if let (Ok(_), Ok(capacity)) = (&situation.observation, &situation.capacity) {
            reconcile::forget_workers(self.state_mut(), capacity);
        }
        self.save(&mut notes)?;
        let workers = decide::workers(&self.policy, &situation);
        let (policy, decision_of, notes) = (&self.policy, &decision, &notes[..]);
        let settled = false;
        self.journal.tick(&Tick { situation: &situation, policy, workers, decision: decision_of, settled, notes });
        self.history = situation.history;
        Ok(decision)
    }

    /// A cordoned node on which more runs than at the last look was given something meanwhile, in the room of what has
    /// ended: it has not settled.
    fn settle_anew(&mut self, observation: &Observation) {
        let mut runs = BTreeMap::new();
        for (host, drain) in &mut Arc::make_mut(&mut self.state).drains {
            let (Some(node), DrainPhase::Cordoned { seen_at }) = (observation.node(host), &mut drain.phase) else {
                continue;
            };
            let ran = self.ran.get(host);
            if !ran.is_some_and(|(containers, used)| node.containers <= *containers && node.used.fits(*used)) {
                *seen_at = None;
            }
            runs.insert(host.clone(), (node.containers, node.used));
        }
        self.ran = runs;
    }

    /// All that the decision may depend on; the history moves into it, and back after the tick.
    fn situation(
        &mut self,
        now: DateTime<Utc>,
        observation: Result<Arc<Observation>, Outage>,
        capacity: Result<Arc<Capacity>, Outage>,
    ) -> Situation {
        let Settings { poll_interval, restart_hold, ready_deadline } = self.settings;
        let (history, state) = (std::mem::take(&mut self.history), Arc::clone(&self.state));
        let mut situation =
            Situation { now, poll_interval, observation, capacity, history, state, restart_hold, ready_deadline };
        if let Some(sample) = decide::sample(&situation) {
            situation.history.push(sample, decide::keep_samples(&self.policy, poll_interval));
        }
        situation
    }

    fn state_mut(&mut self) -> &mut State {
        Arc::make_mut(&mut self.state)
    }

    fn reload_policy(&mut self) -> Vec<String> {
        match self.policies.check() {
            PolicyChange::Unchanged => Vec::new(),
            PolicyChange::New(policy) => {
                self.policy = policy;
                vec!["the policy has changed: the new one is in force".into()]
            }
            PolicyChange::Invalid(text) => {
                vec![format!("the policy has changed and is not valid; the old one stays in force: {text}")]
            }
        }
    }

    /// Saves the state where it has changed. A disk that is full is told and tried again; nothing is ordered that was
    /// not saved before. Returns whether the store holds what we hold.
    fn save(&mut self, notes: &mut Vec<String>) -> Result<bool, Halt> {
        if Arc::ptr_eq(&self.state, &self.saved) || self.state == self.saved {
            return Ok(true);
        }
        match self.store.save(&self.state) {
            Ok(()) => {
                self.saved = Arc::clone(&self.state);
                Ok(true)
            }
            Err(PortError { kind: ErrorKind::Conflict, text }) => Err(Halt::Conflict(text)),
            Err(error) => {
                notes.push(format!("the state could not be saved: {error}"));
                Ok(false)
            }
        }
    }
}

fn outage(error: PortError) -> Outage {
    Outage { text: error.text }
}
