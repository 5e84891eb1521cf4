//! Brings what we remember in line with what is there: reality wins over memory. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::retry;
use crate::model::{
    Capacity, Drain, DrainPhase, InstanceState, NodeState, Observation, SeenResourceManager, State, WorkerRecord,
};

/// Corrects `state` by what YARN and the provider say; returns what is worth telling people.
pub fn reconcile(
    state: &mut State,
    observation: Option<&Observation>,
    capacity: Option<&Capacity>,
    now: DateTime<Utc>,
    timeout: Duration,
) -> Vec<String> {
    let mut notes = Vec::new();
    forget_the_future(state, now, timeout);
    if let Some(observation) = observation {
        // Workers that YARN knew before we knew anything have booted, whatever has become of them; one that comes later
        // boots, though YARN may remember another machine by its name.
        let first_look = state.resource_manager.is_none();
        if let Some(capacity) = capacity {
            note_workers(state, observation, capacity, first_look, now);
        }
        if note_resource_manager(state, observation, now) {
            notes.push("another ResourceManager has taken over, or the same one has restarted".to_owned());
        }
        let taken_over_at = state.resource_manager.filter(|seen| seen.replaced_another).map(|seen| seen.since);
        let lost = Lost { taken_over_at, now };
        for (host, drain) in &mut state.drains {
            notes.extend(follow_drain(host, drain, observation, &lost, timeout));
            notes.extend(capacity.and_then(|capacity| note_death(host, drain, observation, capacity, now)));
        }
    }
    notes
}

/// Instants that lie ahead of a clock that was set back become now: else a cooldown would last as long as the step.
fn forget_the_future(state: &mut State, now: DateTime<Utc>, timeout: Duration) {
    let clamp = |at: &mut DateTime<Utc>| *at = (*at).min(now);
    state.last_scaling_at.iter_mut().for_each(clamp);
    state.last_operation_ended_at.iter_mut().for_each(clamp);
    state.resource_manager.iter_mut().for_each(|seen| clamp(&mut seen.since));
    state.operations.iter_mut().for_each(|operation| clamp(&mut operation.at));
    state.provider_retry_at.iter_mut().for_each(|at| *at = (*at).min(now + retry::WAIT_MAX));
    for record in state.workers.values_mut() {
        clamp(&mut record.first_seen_at);
        record.not_ready_since.iter_mut().for_each(clamp);
    }
    for drain in state.drains.values_mut() {
        clamp(&mut drain.since);
        match &mut drain.phase {
            DrainPhase::Cordoned { seen_at } => seen_at.iter_mut().for_each(clamp),
            DrainPhase::Decommissioning { since, deadline, .. } => {
                clamp(since);
                *deadline = (*deadline).min(now + timeout);
            }
            DrainPhase::Decommissioned { since } => clamp(since),
        }
    }
}

/// Remembers which ResourceManager answers; returns whether it is another than before.
fn note_resource_manager(state: &mut State, observation: &Observation, now: DateTime<Utc>) -> bool {
    let started_on_ms = observation.started_on_ms;
    let replaced_another = match state.resource_manager {
        Some(seen) if seen.started_on_ms == started_on_ms => return false,
        before => before.is_some(),
    };
    state.resource_manager = Some(SeenResourceManager { started_on_ms, since: now, replaced_another });
    replaced_another
}

/// Moves a drain on to where its node is; returns what was lost on the way.
fn follow_drain(
    host: &str,
    drain: &mut Drain,
    observation: &Observation,
    lost: &Lost,
    timeout: Duration,
) -> Option<String> {
    let (node, now) = (observation.node(host), lost.now);
    match (drain.phase, node.map(|node| node.state)) {
        (DrainPhase::Cordoned { seen_at }, Some(NodeState::Running | NodeState::Unhealthy)) => {
            let closed = node.is_some_and(|node| drain.is_closed(node));
            drain.phase = DrainPhase::Cordoned { seen_at: closed.then(|| seen_at.unwrap_or(now)) };
            None
        }
        // The order to decommission was taken although its answer never came.
        (DrainPhase::Cordoned { .. }, Some(NodeState::Decommissioning)) => {
            let containers = node.map_or(0, |node| node.containers);
            drain.phase = DrainPhase::Decommissioning { since: now, deadline: now + timeout, containers };
            None
        }
        (DrainPhase::Decommissioning { since, deadline, .. }, Some(NodeState::Decommissioning)) => {
            let containers = node.map_or(0, |node| node.containers);
            drain.phase = DrainPhase::Decommissioning { since, deadline, containers };
            None
        }
        // Somebody put a drained node back: containers may come to it. It leaves once more, from the start.
        (DrainPhase::Decommissioned { .. }, Some(NodeState::Running | NodeState::Unhealthy)) => {
            drain.phase = DrainPhase::Cordoned { seen_at: None };
            Some(format!("{host} was let go by YARN and is back: somebody took it off the exclude file"))
        }
        (DrainPhase::Decommissioned { .. }, _) => None,
        (before, Some(state)) if state.is_gone() => {
            drain.phase = DrainPhase::Decommissioned { since: now };
            lost.told(host, before, state)
        }
        _ => None,
    }
}

/// A leaving worker that YARN does not list and that the provider has given up leaves no further by itself. So ends a
/// NodeManager that is cordoned when another ResourceManager takes over: it registers with what it was cordoned to, less
/// than the smallest container, and is told to shut down (seen on 3.3.6).
fn note_death(
    host: &str,
    drain: &mut Drain,
    observation: &Observation,
    capacity: &Capacity,
    now: DateTime<Utc>,
) -> Option<String> {
    let (_, instance) = capacity.instance_of_host(host)?;
    let is_over = matches!(drain.phase, DrainPhase::Decommissioned { .. });
    if is_over || instance.state != InstanceState::Failed || observation.node(host).is_some() {
        return None;
    }
    drain.phase = DrainPhase::Decommissioned { since: now };
    Some(format!("{host} went from YARN while it was leaving, its NodeManager is dead: what still ran there is lost"))
}

/// How soon after the order a node that goes is one that went too early: YARN takes it at the next heartbeat for idle
/// (YARN-11421). Later it lets go only of a node whose containers have ended.
const TOO_EARLY: Duration = Duration::from_secs(5);

/// What is known when a node has gone.
struct Lost {
    /// When another ResourceManager took over: it lets excluded nodes go whatever runs there.
    taken_over_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

impl Lost {
    /// Whether a node that went had containers that YARN has ended, for people.
    fn told(&self, host: &str, before: DrainPhase, state: NodeState) -> Option<String> {
        let DrainPhase::Decommissioning { since, deadline, containers } = before else {
            return Some(format!(
                "{host} went from YARN ({state:?}) before it was decommissioned: what still ran there is lost"
            ));
        };
        let after_s = (self.now - since).num_seconds();
        if containers == 0 {
            None
        } else if self.now >= deadline {
            Some(format!(
                "{host} reached its graceful decommission time-out after {after_s} s: YARN has ended {}",
                counted(containers)
            ))
        } else if self.taken_over_at >= Some(since) || state != NodeState::Decommissioned {
            Some(format!(
                "{host} went from YARN ({state:?}) {after_s} s after its decommission began, before its time-out; containers lost: {containers}"
            ))
        } else if self.now < since + TOO_EARLY {
            Some(format!(
                "{host} went {after_s} s after its decommission began, and had containers at the last look ({containers}): if they had not ended by then, YARN has killed them"
            ))
        } else {
            None
        }
    }
}

fn counted(containers: u32) -> String {
    if containers == 1 { "1 container".into() } else { format!("{containers} containers") }
}

/// Forgets workers that the provider does not show any more. After the decision, not before: it waits for a second
/// look where a worker that the last one showed is not there.
pub(super) fn forget_workers(state: &mut State, capacity: &Capacity) {
    let hosts: BTreeSet<_> = capacity.instances().map(|(_, instance)| instance.host.as_str()).collect();
    state.workers.retain(|host, _| hosts.contains(host.as_str()));
}

/// Remembers since when each worker is there, ready, or not.
fn note_workers(
    state: &mut State,
    observation: &Observation,
    capacity: &Capacity,
    first_look: bool,
    now: DateTime<Utc>,
) {
    // By host, once: looked up one by one, a thousand nodes cost a million comparisons a tick.
    let nodes: BTreeMap<_, _> = observation.nodes.iter().map(|node| (node.id.host.as_str(), node)).collect();
    for (_, instance) in capacity.instances() {
        let node = nodes.get(instance.host.as_str());
        let ready = node.is_some_and(|node| node.state == NodeState::Running);
        let record = state.workers.entry(instance.host.clone()).or_insert(WorkerRecord {
            first_seen_at: now,
            ready_at: (first_look && node.is_some()).then_some(now),
            not_ready_since: None,
        });
        record.not_ready_since = if ready { None } else { record.not_ready_since.or(Some(now)) };
        if ready && record.ready_at.is_none() {
            record.ready_at = Some(now);
        }
    }
}
