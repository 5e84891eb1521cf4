//! Who is who: each machine of the provider matched with its NodeManager, by host.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use chrono::{DateTime, Utc};

use crate::{
    model::{
        Capacity, GroupName, Instance, InstanceState, Node, NodeState, Observation, Resources, Sample, Situation,
        State, Workers,
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

/// All workers, in the provider's order, and the nodes that are no workers.
#[derive(Debug)]
pub struct Roster<'a> {
    /// One for each instance.
    pub workers: Vec<Worker<'a>>,
    /// Active nodes that belong to no group: neither counted nor touched.
    pub foreign: Vec<&'a Node>,
}

impl<'a> Roster<'a> {
    /// Matches instances and nodes. A worker that boots is late after `ready_deadline`, or later where the provider says
    /// that its group boots slowly.
    pub fn of(
        observation: &'a Observation,
        capacity: &'a Capacity,
        state: &State,
        now: DateTime<Utc>,
        ready_deadline: Duration,
    ) -> Self {
        let late_after = |group| late_after(ready_deadline, boot_time(capacity, group));
        Self::with_lateness(observation, capacity, state, now, late_after)
    }

    /// The same, where what the policy says of boot times fills in for a provider that does not say.
    pub fn of_policy(
        policy: &Policy,
        situation: &Situation,
        observation: &'a Observation,
        capacity: &'a Capacity,
    ) -> Self {
        let said = |group| policy.template(group).and_then(|template| template.boot_time);
        let late_after =
            |group| late_after(situation.ready_deadline, boot_time(capacity, group).or_else(|| said(group)));
        Self::with_lateness(observation, capacity, &situation.state, situation.now, late_after)
    }

    fn with_lateness(
        observation: &'a Observation,
        capacity: &'a Capacity,
        state: &State,
        now: DateTime<Utc>,
        late_after: impl Fn(GroupName) -> Duration,
    ) -> Self {
        let nodes = observation.nodes.iter().map(Arc::as_ref);
        let by_host: BTreeMap<&str, &Node> = nodes.clone().map(|node| (node.id.host.as_str(), node)).collect();
        let workers: Vec<_> = capacity
            .instances()
            .map(|(group, instance)| {
                let node = by_host.get(instance.host.as_str()).copied();
                let standing = standing(instance, node, state, now, late_after(group));
                Worker { group, instance, node, standing }
            })
            .collect();
        let hosts: BTreeSet<&str> = workers.iter().map(|worker| worker.instance.host.as_str()).collect();
        let foreign = nodes
            .filter(|node| node.state.is_active() && !hosts.contains(node.id.host.as_str()))
            .filter(|node| !state.drains.contains_key(&node.id.host))
            .collect();
        Self { workers, foreign }
    }

    /// Workers of this standing.
    pub fn with(&self, standing: Standing) -> impl Iterator<Item = &Worker<'a>> {
        self.workers.iter().filter(move |worker| worker.standing == standing)
    }

    /// How many workers are of this standing.
    pub fn count(&self, standing: Standing) -> u32 {
        u32::try_from(self.with(standing).count()).unwrap_or(u32::MAX)
    }

    /// All of them, by what they are worth.
    pub fn counted(&self) -> Workers {
        let is_kept = |worker: &&Worker<'_>| worker.instance.state != InstanceState::Stopping;
        let count = |standing| u32::try_from(self.with(standing).filter(is_kept).count()).unwrap_or(u32::MAX);
        let [ready, booting, not_ready, leaving] =
            [Standing::Ready, Standing::Booting, Standing::NotReady, Standing::Leaving].map(count);
        Workers { ready, booting, not_ready, leaving, size: ready + booting + not_ready + leaving }
    }

    /// Workers of a group that are not on their way out.
    pub fn size(&self, group: GroupName) -> u32 {
        let staying = self.workers.iter().filter(|w| w.group == group && w.standing != Standing::Leaving).count();
        u32::try_from(staying).unwrap_or(u32::MAX)
    }

    /// What the ready workers may hand out in all.
    pub fn capacity(&self) -> Resources {
        self.ready_nodes().map(|node| node.total).sum()
    }

    /// The sample that this look adds to the history: pending of the cluster, capacity and use of the ready workers.
    pub fn sample(&self, observation: &Observation, at: DateTime<Utc>) -> Sample {
        let capacity = self.capacity();
        let used: Resources = self.ready_nodes().map(|node| node.used).sum();
        // What is reserved is free by the node's own account; more than is free cannot be reserved here.
        let allocated = (used + observation.metrics.reserved).min(capacity);
        Sample { at, pending: observation.metrics.pending, capacity, allocated }
    }

    fn ready_nodes(&self) -> impl Iterator<Item = &'a Node> {
        self.with(Standing::Ready).filter_map(|worker| worker.node)
    }
}

/// A boot that takes longer than this is no boot time, but a mistake.
const BOOT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A worker may take twice as long as it takes on average before it counts as late.
fn late_after(ready_deadline: Duration, boot_time: Option<Duration>) -> Duration {
    boot_time.map_or(ready_deadline, |boot_time| ready_deadline.max(boot_time.min(BOOT_MAX) * 2))
}

fn boot_time(capacity: &Capacity, group: GroupName) -> Option<Duration> {
    capacity.groups.get(&group)?.template.as_ref()?.boot_time
}

fn standing(
    instance: &Instance,
    node: Option<&Node>,
    state: &State,
    now: DateTime<Utc>,
    late_after: Duration,
) -> Standing {
    if instance.state == InstanceState::Stopping || state.drains.contains_key(&instance.host) {
        return Standing::Leaving;
    }
    if instance.state == InstanceState::Failed {
        return Standing::NotReady;
    }
    match node.map(|node| (node.state, node.is_cordoned())) {
        Some((NodeState::Running, false)) => Standing::Ready,
        // Cordoned or drained by somebody else: theirs to decide, and no capacity of ours.
        Some((NodeState::Running, true) | (NodeState::Decommissioning | NodeState::Unhealthy, _)) => Standing::NotReady,
        _ if is_booting(instance, state, now, late_after) => Standing::Booting,
        _ => Standing::NotReady,
    }
}

/// A machine that YARN has never had running boots, until it is late. (YARN may still list the host as lost or
/// decommissioned: from the machine that had the name before.)
fn is_booting(instance: &Instance, state: &State, now: DateTime<Utc>, late_after: Duration) -> bool {
    match state.workers.get(&instance.host) {
        Some(record) => record.ready_at.is_none() && now < record.first_seen_at + late_after,
        None => true,
    }
}
