//! Who is who, and what follows from it: all that a decision needs of what was observed, described and remembered, and
//! that stays the same for as long as these do. Worked out once, and kept from tick to tick.

use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::{balance::Sizes, basic::PerWorker, leave, matching::Matching};
use crate::{
    model::{
        Capacity, GroupName, Instance, InstanceState, Intent, Node, NodeState, Observation, Resources, Sample,
        Situation, State, Workers,
    },
    policy::Policy,
};

/// What a worker is worth just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Takes containers.
    Ready,
    /// Not registered yet, and not late.
    Booting,
    /// Of no use: lost, unhealthy, failed, or late.
    NotReady,
    /// Cordoned, draining, drained, or being deleted.
    Leaving,
}

/// One worker: a machine of the provider, and its NodeManager where YARN knows one.
#[derive(Clone, Copy, Debug)]
pub struct Worker<'a> {
    /// Its group.
    pub group: GroupName,
    /// The machine.
    pub instance: &'a Instance,
    /// The NodeManager.
    pub node: Option<&'a Node>,
    /// What it is worth.
    pub standing: Standing,
}

/// What follows from policy, observation, capacity and state, and from the time of day only as long as no worker
/// becomes late. Owns what it was made of: as long as it is kept, no other observation, capacity or state can be at
/// the same address.
#[derive(Debug)]
pub struct Survey {
    matching: Matching,
    state: Arc<State>,
    made_at: DateTime<Utc>,
    /// When the first of the workers that boot becomes late.
    holds_until: Option<DateTime<Utc>>,
    /// What each worker is worth, in the provider's order.
    standings: Vec<Standing>,
    /// How many workers there are of each standing.
    counts: [u32; 4],
    /// The same for people: without machines that are being deleted.
    counted: Workers,
    /// Of each group that exists: workers that are not on their way out.
    sizes: Sizes,
    /// Of each group that exists: workers that do or will serve, ready and booting.
    serving_sizes: Sizes,
    /// What the ready workers may hand out in all.
    capacity: Resources,
    /// What their containers hold, and what is reserved.
    allocated: Resources,
    per_worker: Option<PerWorker>,
    /// Hosts of active nodes that belong to no group: neither counted nor touched.
    foreign: Vec<String>,
    /// Hosts of workers that YARN may know under other names: see [`leave::misnamed`].
    misnamed: BTreeSet<String>,
    /// See [`Self::drains_wait_until`].
    drains_wait_until: Option<DateTime<Utc>>,
    /// See [`Self::remembers_what_is_there`].
    remembers_what_is_there: OnceLock<bool>,
}

impl Survey {
    /// Surveys a situation; `None` where YARN or the provider did not answer.
    pub fn of(policy: &Policy, situation: &Situation) -> Option<Self> {
        let (Ok(observation), Ok(capacity)) = (&situation.observation, &situation.capacity) else { return None };
        let matching = Matching::of(observation, capacity);
        Some(Self::of_matched(policy, matching, &situation.state, situation.now, situation.ready_deadline))
    }

    /// The same of what is matched already. A worker that boots is late after `ready_deadline`, or later where the
    /// provider says that its group boots slowly, or the policy does for a provider that does not say.
    pub fn of_matched(
        policy: &Policy,
        matching: Matching,
        state: &Arc<State>,
        now: DateTime<Utc>,
        ready_deadline: Duration,
    ) -> Self {
        let no_workers = || matching.capacity().groups.keys().map(|name| (*name, 0)).collect();
        let mut survey = Self {
            state: Arc::clone(state),
            made_at: now,
            holds_until: None,
            standings: Vec::new(),
            counts: [0; 4],
            counted: Workers::default(),
            sizes: no_workers(),
            serving_sizes: no_workers(),
            capacity: Resources::default(),
            allocated: Resources::default(),
            per_worker: None,
            foreign: Vec::new(),
            misnamed: BTreeSet::new(),
            drains_wait_until: None,
            remembers_what_is_there: OnceLock::new(),
            matching,
        };
        survey.count(policy, now, ready_deadline);
        survey.per_worker = survey.per_worker_by(policy);
        let strangers = survey.matching.others().filter(|node| node.state.is_active());
        let strangers = strangers.filter(|node| !state.drains.contains_key(&node.id.host));
        survey.foreign = strangers.map(|node| node.id.host.clone()).collect();
        survey.misnamed = leave::misnamed(&survey);
        survey.drains_wait_until = leave::wait_until(&survey);
        survey
    }

    fn count(&mut self, policy: &Policy, now: DateTime<Utc>, ready_deadline: Duration) {
        let mut used = Resources::default();
        self.standings.reserve_exact(self.matching.instances());
        for (group, instance, node) in self.matching.pairs() {
            let drained_by_provider = is_shrinking(&self.state, group)
                && node.is_some_and(|node| !matches!(node.state, NodeState::Running | NodeState::Unhealthy));
            let standing = match standing(instance, node, &self.state).filter(|_| !drained_by_provider) {
                None if drained_by_provider => Standing::Leaving,
                Some(standing) => standing,
                None => match late_at(policy, &self.matching, &self.state, group, instance, ready_deadline) {
                    Lateness::At(at) if now < at => {
                        self.holds_until = Some(self.holds_until.map_or(at, |until| until.min(at)));
                        Standing::Booting
                    }
                    Lateness::Never => Standing::Booting,
                    Lateness::At(_) | Lateness::Already => Standing::NotReady,
                },
            };
            self.standings.push(standing);
            self.counts[standing as usize] += 1;
            if standing != Standing::Leaving {
                self.sizes.add(group, 1);
            }
            if matches!(standing, Standing::Ready | Standing::Booting) {
                self.serving_sizes.add(group, 1);
            }
            if let (Standing::Ready, Some(node)) = (standing, node) {
                self.capacity += node.total;
                used += node.used;
            }
            if instance.state != InstanceState::Stopping {
                self.counted.size += 1;
                *match standing {
                    Standing::Ready => &mut self.counted.ready,
                    Standing::Booting => &mut self.counted.booting,
                    Standing::NotReady => &mut self.counted.not_ready,
                    Standing::Leaving => &mut self.counted.leaving,
                } += 1;
            }
        }
        // What is reserved is free by the node's own account; more than is free cannot be reserved here.
        self.allocated = (used + self.observation().metrics.reserved).min(self.capacity);
    }

    /// What one worker holds: the mean of those that are ready, else the template of the first group that may grow.
    fn per_worker_by(&self, policy: &Policy) -> Option<PerWorker> {
        let workers = self.count_of(Standing::Ready);
        if workers > 0 {
            return Some(PerWorker { capacity: self.capacity, workers });
        }
        let group = self.growing_group(policy)?;
        let template = self.matching.capacity().groups.get(&group)?.template.as_ref();
        let template = template.or_else(|| policy.template(group))?;
        Some(PerWorker { capacity: template.resources, workers: 1 })
    }

    /// The first group that exists and may have workers.
    pub(super) fn growing_group(&self, policy: &Policy) -> Option<GroupName> {
        self.matching.capacity().groups.keys().copied().find(|name| policy.group(*name).max_instances > 0)
    }

    /// Whether a survey of these would come out the same: they are the very same, no worker has become late, and the
    /// clock was not set back to before this one was made. (The policy and the settings are the caller's to know of.)
    pub fn still_holds(
        &self,
        observation: &Arc<Observation>,
        capacity: &Arc<Capacity>,
        state: &Arc<State>,
        now: DateTime<Utc>,
    ) -> bool {
        Arc::ptr_eq(self.observation(), observation)
            && Arc::ptr_eq(self.matching.capacity(), capacity)
            && Arc::ptr_eq(&self.state, state)
            && self.made_at <= now
            && self.holds_until.is_none_or(|until| now < until)
    }

    /// When the first of the workers that boot becomes late: from then on it does not hold.
    pub(super) fn holds_until(&self) -> Option<DateTime<Utc>> {
        self.holds_until
    }

    /// Whether this is the very state that it was made of.
    pub fn is_of(&self, state: &Arc<State>) -> bool {
        Arc::ptr_eq(&self.state, state)
    }

    /// Until when the drains do nothing but wait for YARN, if nothing else is seen; the end of time where there is none.
    /// `None`: one of them has a step to take.
    pub fn drains_wait_until(&self) -> Option<DateTime<Utc>> {
        self.drains_wait_until
    }

    /// Whether the drains do nothing but wait just now.
    pub fn drains_wait(&self, now: DateTime<Utc>) -> bool {
        self.drains_wait_until.is_some_and(|until| now < until)
    }

    /// Who is who.
    pub fn matching(&self) -> &Matching {
        &self.matching
    }

    fn observation(&self) -> &Arc<Observation> {
        self.matching.observation()
    }

    /// What was remembered.
    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// All workers, in the provider's order.
    pub fn workers(&self) -> impl Iterator<Item = Worker<'_>> {
        let pairs = self.matching.pairs().zip(&self.standings);
        pairs.map(|((group, instance, node), standing)| Worker { group, instance, node, standing: *standing })
    }

    /// Workers of this standing.
    pub fn with(&self, standing: Standing) -> impl Iterator<Item = Worker<'_>> {
        // Most often there is none: then none is looked at.
        let some = (self.count_of(standing) > 0).then(|| self.workers());
        some.into_iter().flatten().filter(move |worker| worker.standing == standing)
    }

    /// How many workers are of this standing.
    pub fn count_of(&self, standing: Standing) -> u32 {
        self.counts[standing as usize]
    }

    /// All of them, by what they are worth.
    pub fn counted(&self) -> Workers {
        self.counted
    }

    /// Workers of each group that exists that are not on their way out.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// Workers of each group that exists that do or will serve: ready and booting.
    pub fn serving_sizes(&self) -> Sizes {
        self.serving_sizes
    }

    /// Workers that do or will serve.
    pub fn serving(&self) -> u32 {
        self.count_of(Standing::Ready) + self.count_of(Standing::Booting)
    }

    /// What one worker holds, where that is known.
    pub fn per_worker(&self) -> Option<PerWorker> {
        self.per_worker
    }

    /// Hosts of active nodes that belong to no group: neither counted nor touched.
    pub fn foreign(&self) -> &[String] {
        &self.foreign
    }

    /// Hosts of workers that YARN may know under other names.
    pub fn misnamed(&self) -> &BTreeSet<String> {
        &self.misnamed
    }

    /// Whether just those workers are remembered that are there. Asked rarely, and worked out when it is.
    pub(super) fn remembers_what_is_there(&self) -> bool {
        let (state, matching) = (&self.state, &self.matching);
        let known = || matching.pairs().all(|(_, instance, _)| state.workers.contains_key(&instance.host));
        *self.remembers_what_is_there.get_or_init(|| state.workers.len() == matching.hosts() && known())
    }

    /// The sample that this look adds to the history: pending of the cluster, capacity and use of the ready workers.
    pub fn sample(&self, at: DateTime<Utc>) -> Sample {
        let pending = self.observation().metrics.pending;
        Sample { at, pending, capacity: self.capacity, allocated: self.allocated }
    }
}

/// A boot that takes longer than this is no boot time, but a mistake.
const BOOT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A worker may take twice as long as it takes on average before it counts as late.
fn late_after(ready_deadline: Duration, boot_time: Option<Duration>) -> Duration {
    boot_time.map_or(ready_deadline, |boot_time| ready_deadline.max(boot_time.min(BOOT_MAX) * 2))
}

fn boot_time(policy: &Policy, capacity: &Capacity, group: GroupName) -> Option<Duration> {
    let template = capacity.groups.get(&group).and_then(|group| group.template.as_ref());
    let said = || policy.template(group).and_then(|template| template.boot_time);
    template.and_then(|template| template.boot_time).or_else(said)
}

/// What a worker is worth whatever the time is; `None` where that depends on how long it has been booting.
fn standing(instance: &Instance, node: Option<&Node>, state: &State) -> Option<Standing> {
    if instance.state == InstanceState::Stopping || state.drains.contains_key(&instance.host) {
        return Some(Standing::Leaving);
    }
    if instance.state == InstanceState::Failed {
        return Some(Standing::NotReady);
    }
    match node.map(|node| (node.state, node.is_cordoned())) {
        Some((NodeState::Running, false)) => Some(Standing::Ready),
        // Cordoned or drained by somebody else: theirs to decide, and no capacity of ours.
        Some((NodeState::Running, true) | (NodeState::Decommissioning | NodeState::Unhealthy, _)) => {
            Some(Standing::NotReady)
        }
        _ => None,
    }
}

/// Whether the provider is making a group smaller, and so drains workers of its own choice.
fn is_shrinking(state: &State, group: GroupName) -> bool {
    let mut intents = state.operations.iter().map(|operation| &operation.intent);
    intents.any(|intent| matches!(intent, Intent::Resize { change, .. } if change.shrinks(group)))
}

/// When a worker that YARN does not have running counts as late.
enum Lateness {
    Already,
    At(DateTime<Utc>),
    Never,
}

/// A machine that YARN has never had running boots, until it is late. (YARN may still list the host as lost or
/// decommissioned: from the machine that had the name before.)
fn late_at(
    policy: &Policy,
    matching: &Matching,
    state: &State,
    group: GroupName,
    instance: &Instance,
    ready_deadline: Duration,
) -> Lateness {
    match state.workers.get(&instance.host) {
        Some(record) if record.ready_at.is_some() => Lateness::Already,
        Some(record) => {
            let after = late_after(ready_deadline, boot_time(policy, matching.capacity(), group));
            Lateness::At(record.first_seen_at + after)
        }
        None => Lateness::Never,
    }
}
