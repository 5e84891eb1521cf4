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
    decide::{self, Matching, Survey},
    model::{Capacity, Decision, DrainPhase, History, Observation, Outage, Resources, Situation, State},
    policy::Policy,
    ports::{
        Clock, Cluster, ErrorKind, Foresight, Journal, PolicyChange, PolicySource, PortError, Provider, StateStore,
        Tick, Wake,
    },
};

/// The shortest pause between two ticks, however long the last one took.
const PAUSE_MIN: Duration = Duration::from_millis(500);

/// A tick that lasts longer than this, with all time limits of its calls, is none: the daemon stood still, or its clock
/// was set forward. Less than YARN is given to end a drain after its deadline.
const TICK_MAX: Duration = Duration::from_secs(60);

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
    /// Where the state is kept cannot be reached just now: that may pass by itself.
    #[error("{0}")]
    Unreachable(String),
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
    /// What follows from the last looks, the state and the policy, for as long as they are the same.
    survey: Option<Arc<Survey>>,
    /// When the last tick was under this policy: no instant in the state lies ahead of it.
    last_tick_at: Option<DateTime<Utc>>,
    /// What ran on each cordoned node at the last look. Not remembered across a restart: the nodes settle anew.
    ran: BTreeMap<String, (u32, Resources)>,
}

impl<C: Cluster, P: Provider, S: StateStore, J: Journal, R: PolicySource> Controller<C, P, S, J, R> {
    /// A controller over these ports, with the state that the store holds.
    ///
    /// # Errors
    /// [`Halt::Conflict`] where another controller holds the state, [`Halt::State`] where it cannot be read,
    /// [`Halt::Unreachable`] where that may pass.
    pub async fn new(
        (cluster, provider, mut store, journal, policies): (C, P, S, J, R),
        policy: Policy,
        settings: Settings,
    ) -> Result<Self, Halt> {
        let state = store.load().await.map_err(|error| match error.kind {
            ErrorKind::Conflict => Halt::Conflict(error.text),
            ErrorKind::Transient | ErrorKind::Throttled { .. } => Halt::Unreachable(error.text),
            _ => Halt::State(error.text),
        })?;
        let state = Arc::new(state);
        let (saved, history) = (Arc::clone(&state), History::default());
        let (survey, last_tick_at, ran) = (None, None, BTreeMap::new());
        Ok(Self {
            cluster,
            provider,
            store,
            journal,
            policies,
            policy,
            settings,
            state,
            saved,
            history,
            survey,
            last_tick_at,
            ran,
        })
    }

    /// Ticks until the clock says stop.
    ///
    /// # Errors
    /// [`Halt::Conflict`] where another controller has changed the state.
    pub async fn run(&mut self, clock: &impl Clock) -> Result<(), Halt> {
        loop {
            let decision = self.tick(clock.now()).await?;
            let next_at = decision.next_at.max(clock.now() + PAUSE_MIN);
            match clock.sleep_until(next_at).await {
                Wake::Tick => {}
                Wake::Skipped { looks, pace } => {
                    let keep = decide::keep_samples(&self.policy, self.settings.poll_interval);
                    self.history.repeat(looks, pace, keep);
                    self.last_tick_at = self.history.latest().map(|sample| sample.at).or(self.last_tick_at);
                }
                Wake::Stop => return Ok(()),
            }
        }
    }

    /// Lets go of the state: for a clean end, between two ticks or in the middle of one.
    ///
    /// # Errors
    /// It stays held, as after a crash.
    pub async fn let_go_of_state(&mut self) -> Result<(), PortError> {
        self.store.release().await
    }

    /// One turn: looks at everything, decides, acts, tells the journal.
    ///
    /// # Errors
    /// [`Halt::Conflict`] where another controller has changed the state.
    pub async fn tick(&mut self, now: DateTime<Utc>) -> Result<Decision, Halt> {
        let mut notes = self.reload_policy(now).await;
        // First of all: what is late by the clock alone must not be given up.
        self.forgive_unseen(now, &mut notes);
        let only_polls = self.only_polls_until();
        self.follow_operations(now, &mut notes).await?;
        let capacity = self.provider.describe().await;
        let observation = self.cluster.observe(now).await;
        if let (Ok(observation), Ok(capacity)) = (&observation, &capacity) {
            self.delete_again(now, observation, capacity, &mut notes).await?;
        }
        let survey = self.survey(observation.as_ref().ok(), capacity.as_ref().ok(), now, &mut notes);
        let survey = survey.as_deref();
        let situation = self.situation(now, observation.map_err(outage), capacity.map_err(outage), survey);
        let decision = match survey {
            Some(survey) => decide::decide_on(&self.policy, &situation, survey),
            None => decide::decide(&self.policy, &situation),
        };
        self.execute(&decision, &situation, &mut notes).await?;
        if let Some(survey) = survey {
            self.forget_workers(survey.matching());
        }
        let is_saved = self.save(&mut notes).await?;
        self.keep(now, &mut notes).await?;
        // What could not be saved is to be tried again.
        let saved = survey.filter(|_| is_saved);
        let settled_until =
            saved.and_then(|survey| decide::settled_until_on(&self.policy, &situation, survey, &decision));
        // The next tick begins with the state that this one was decided on.
        let kept = saved.filter(|survey| survey.is_of(&self.state)).zip(only_polls);
        let (policy, situation_now, decided) = (&self.policy, &situation, &decision);
        let looks_alike = kept.map(|(survey, until)| {
            let foresight = decide::Foresight { policy, situation: situation_now, survey, decision: decided, until };
            move |most| foresight.looks_alike(most)
        });
        let foresight = looks_alike.as_ref().map(|looks_alike| Foresight(looks_alike));
        self.journal.tick(&Tick {
            situation: &situation,
            policy: &self.policy,
            workers: survey.map(Survey::counted),
            decision: &decision,
            settled_until,
            foresight,
            notes: &notes,
        });
        self.history = situation.history;
        Ok(decision)
    }

    /// Between this tick and the last one may lie time in which nobody looked: it does not count against workers.
    fn forgive_unseen(&mut self, now: DateTime<Utc>, notes: &mut Vec<String>) {
        let Some(last) = self.last_tick_at else { return };
        let unseen = now - (last + self.settings.poll_interval);
        if now > last + self.settings.poll_interval + TICK_MAX && reconcile::counts_time(&self.state) {
            reconcile::forgive(self.state_mut(), unseen);
            notes.push(format!(
                "nobody looked for {} s, or the clock was set forward: that does not count against workers",
                unseen.num_seconds()
            ));
        }
    }

    /// Brings the state in line with what was seen, and surveys the two; `None` where YARN or the provider did not
    /// answer.
    fn survey(
        &mut self,
        observation: Option<&Arc<Observation>>,
        capacity: Option<&Arc<Capacity>>,
        now: DateTime<Utc>,
        notes: &mut Vec<String>,
    ) -> Option<Arc<Survey>> {
        let (seen, last) = (observation.zip(capacity), self.survey.clone());
        let last = last.as_deref();
        let holds = |survey: &Survey, state: &Arc<State>| {
            seen.is_some_and(|(observation, capacity)| survey.still_holds(observation, capacity, state, now))
        };
        let held = last.filter(|last| holds(last, &self.state));
        // Where the survey holds, this very state was brought in line with this very observation and this very capacity
        // before, no earlier than the survey was made and so no later than now. To do it again changes nothing: no
        // instant in the state lies ahead, since all were written down by then; each machine has its record, and a
        // record once made for a node is as it would be made again; the ResourceManager is the same. Only drains go on
        // with time, and those that do nothing but wait go on with what is seen of their nodes alone.
        if held.is_none_or(|held| !held.drains_wait(now)) {
            let fresh = seen.filter(|_| held.is_none()).map(|(observation, capacity)| match last {
                Some(last) => last.matching().of_later(observation, capacity),
                None => Matching::of(observation, capacity),
            });
            let matching = held.map(Survey::matching).or(fresh.as_ref());
            self.reconcile(observation.map(Arc::as_ref), matching, now, notes);
            if held.is_none_or(|held| !holds(held, &self.state))
                && let Some(matching) = fresh.or_else(|| held.map(Survey::matching).cloned())
            {
                let (policy, state, ready_deadline) = (&self.policy, &self.state, self.settings.ready_deadline);
                self.survey = Some(Arc::new(Survey::of_matched(policy, matching, state, now, ready_deadline)));
            }
        }
        self.last_tick_at = Some(now);
        seen.and(self.survey.clone())
    }

    fn reconcile(
        &mut self,
        observation: Option<&Observation>,
        matching: Option<&Matching>,
        now: DateTime<Utc>,
        notes: &mut Vec<String>,
    ) {
        if let Some(observation) = observation {
            self.settle_anew(observation);
        }
        let timeout = self.policy.basic().graceful_decommission_timeout;
        if self.last_tick_at.is_none_or(|last| now < last) {
            reconcile::forget_the_future(self.state_mut(), now, timeout);
        }
        notes.extend(reconcile::follow(&mut self.state, observation, matching, now, timeout));
    }

    /// A cordoned node on which more runs than at the last look was given something meanwhile, in the room of what has
    /// ended: it has not settled.
    fn settle_anew(&mut self, observation: &Observation) {
        let mut runs = BTreeMap::new();
        let mut unsettled = Vec::new();
        for (host, drain) in &self.state.drains {
            let (Some(node), DrainPhase::Cordoned { seen_at }) = (observation.node(host), drain.phase) else {
                continue;
            };
            let ran = self.ran.get(host);
            let settles = ran.is_some_and(|(containers, used)| node.containers <= *containers && node.used.fits(*used));
            if !settles && seen_at.is_some() {
                unsettled.push(host.clone());
            }
            runs.insert(host.clone(), (node.containers, node.used));
        }
        unsettled.iter().for_each(|host| self.settles_anew(host));
        self.ran = runs;
    }

    /// Forgets workers that the provider does not show any more. After the decision, not before: it waits for a second
    /// look where a worker that the last one showed is not there.
    fn forget_workers(&mut self, shown: &Matching) {
        // Each host that is shown has its record: with as many records as hosts, there is none of another.
        if self.state.workers.len() != shown.hosts() {
            reconcile::forget_workers(self.state_mut(), shown.capacity());
        }
    }

    /// All that the decision may depend on; the history moves into it, and back after the tick.
    fn situation(
        &mut self,
        now: DateTime<Utc>,
        observation: Result<Arc<Observation>, Outage>,
        capacity: Result<Arc<Capacity>, Outage>,
        survey: Option<&Survey>,
    ) -> Situation {
        let Settings { poll_interval, restart_hold, ready_deadline } = self.settings;
        let (mut history, state) = (std::mem::take(&mut self.history), Arc::clone(&self.state));
        if let Some(survey) = survey {
            history.push(survey.sample(now), decide::keep_samples(&self.policy, poll_interval));
        }
        Situation { now, poll_interval, observation, capacity, history, state, restart_hold, ready_deadline }
    }

    fn state_mut(&mut self) -> &mut State {
        Arc::make_mut(&mut self.state)
    }

    async fn reload_policy(&mut self, now: DateTime<Utc>) -> Vec<String> {
        match self.policies.check(now).await {
            PolicyChange::Unchanged => Vec::new(),
            PolicyChange::New(policy) => {
                self.policy = policy;
                // Nothing that followed from the old one is kept; and drains may now be given less time.
                (self.survey, self.last_tick_at) = (None, None);
                vec!["the policy has changed: the new one is in force".into()]
            }
            PolicyChange::Invalid(text) => {
                vec![format!("the policy has changed and is not valid; the old one stays in force: {text}")]
            }
        }
    }

    /// Keeps hold of the state. That this cannot be done just now is told; what is ordered is saved before, and shows there
    /// whether somebody else has taken it.
    async fn keep(&mut self, now: DateTime<Utc>, notes: &mut Vec<String>) -> Result<(), Halt> {
        match self.store.keep(&self.saved, now).await {
            Ok(()) => Ok(()),
            Err(PortError { kind: ErrorKind::Conflict, text }) => Err(Halt::Conflict(text)),
            Err(error) => {
                notes.push(format!("could not keep hold of the state: {error}"));
                Ok(())
            }
        }
    }

    /// Saves the state where it has changed. A disk that is full is told and tried again; nothing is ordered that was
    /// not saved before. Returns whether the store holds what we hold.
    async fn save(&mut self, notes: &mut Vec<String>) -> Result<bool, Halt> {
        if Arc::ptr_eq(&self.state, &self.saved) {
            return Ok(true);
        }
        if self.state == self.saved {
            // The next tick sees at a glance that it is.
            self.saved = Arc::clone(&self.state);
            return Ok(true);
        }
        match self.store.save(&self.state).await {
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
