//! Brings what we remember in line with what is there: reality wins over memory. Pure.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use super::retry;
use crate::{
    decide::Matching,
    model::{
        Capacity, Drain, DrainPhase, InstanceState, Node, NodeState, Observation, SeenResourceManager, State,
        WorkerRecord,
    },
};

/// Corrects `state` by what YARN and the provider say; returns what is worth telling people. `matching` is of what both
/// say, where both have answered. A state that needs no correction is not touched: it stays the same `Arc`.
pub fn reconcile(
    state: &mut Arc<State>,
    observation: Option<&Observation>,
    matching: Option<&Matching>,
    now: DateTime<Utc>,
    timeout: Duration,
) -> Vec<String> {
    forget_the_future(Arc::make_mut(state), now, timeout);
    follow(state, observation, matching, now, timeout)
}

/// The same of a state that holds no instant that lies ahead.
pub(super) fn follow(
    state: &mut Arc<State>,
    observation: Option<&Observation>,
    matching: Option<&Matching>,
    now: DateTime<Utc>,
    timeout: Duration,
) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(matching.and_then(|matching| forget_another_cluster(state, matching.capacity())));
    let Some(observation) = observation else { return notes };
    // Workers that YARN knew before we knew anything have booted, whatever has become of them; one that comes later
    // boots, though YARN may remember another machine by its name.
    let first_look = state.resource_manager.is_none();
    let records = matching.map(|matching| new_records(state, matching, first_look, now)).unwrap_or_default();
    if !records.is_empty() {
        Arc::make_mut(state).workers.extend(records);
    }
    if let Some(seen) = new_resource_manager(state, observation, now) {
        Arc::make_mut(state).resource_manager = Some(seen);
        if seen.replaced_another {
            notes.push("another ResourceManager has taken over, or the same one has restarted".to_owned());
        }
    }
    let taken_over_at = state.resource_manager.filter(|seen| seen.replaced_another).map(|seen| seen.since);
    let lost = Lost { taken_over_at, now };
    let mut phases = Vec::new();
    for (host, drain) in &state.drains {
        let (followed, note) = follow_drain(host, drain, observation, &lost, timeout);
        notes.extend(note);
        let capacity = matching.map(|matching| matching.capacity().as_ref());
        let dead = capacity.and_then(|capacity| note_death(host, followed, observation, capacity, now));
        let (phase, note) = dead.unzip();
        notes.extend(note);
        let phase = phase.unwrap_or(followed);
        if phase != drain.phase {
            phases.push((host.clone(), phase));
        }
    }
    for (host, phase) in phases {
        Arc::make_mut(state).drains.entry(host).and_modify(|drain| drain.phase = phase);
    }
    notes
}

/// A cluster that was made anew under the same name has machines of the same names: what was drained there is not drained
/// here, and its orders are not ours.
fn forget_another_cluster(state: &mut Arc<State>, capacity: &Capacity) -> Option<String> {
    let identity = capacity.identity.as_ref()?;
    if state.provider_identity.as_ref() == Some(identity) {
        return None;
    }
    let state = Arc::make_mut(state);
    state.provider_identity.replace(identity.clone())?;
    state.drains.clear();
    state.operations.clear();
    state.workers.clear();
    Some("this is another cluster under the same name: what was remembered of the one before is forgotten".to_owned())
}

/// Whether there is a worker, a drain or an operation against which time counts.
pub(super) fn counts_time(state: &State) -> bool {
    let is_not_ready = |record: &WorkerRecord| record.ready_at.is_none() || record.not_ready_since.is_some();
    let drains = |drain: &Drain| matches!(drain.phase, DrainPhase::Decommissioning { .. });
    state.workers.values().any(is_not_ready) || state.drains.values().any(drains) || !state.operations.is_empty()
}

/// Time in which nobody looked does not count for what may be done to workers: neither as time in which a worker was of
/// no use, nor as time in which a drain went on beyond its deadline or an operation for too long. Either the clock was set forward by so much, or the
/// daemon stood still, and knows nothing of what was meanwhile.
pub(super) fn forgive(state: &mut State, unseen: TimeDelta) {
    let later = |at: &mut DateTime<Utc>| *at += unseen;
    state.operations.iter_mut().for_each(|operation| later(&mut operation.at));
    for record in state.workers.values_mut().filter(|record| record.ready_at.is_none()) {
        later(&mut record.first_seen_at);
    }
    for record in state.workers.values_mut() {
        record.not_ready_since.iter_mut().for_each(later);
        record.unlisted_since.iter_mut().for_each(later);
    }
    for drain in state.drains.values_mut() {
        if let DrainPhase::Decommissioning { deadline, .. } = &mut drain.phase {
            later(deadline);
        }
    }
}

/// Instants that lie ahead of a clock that was set back become now: else a cooldown would last as long as the step.
/// What a tick writes down lies ahead of it no further than this allows, so a tick that is not earlier than the one
/// before, under the same policy, has nothing to do here.
pub(super) fn forget_the_future(state: &mut State, now: DateTime<Utc>, timeout: Duration) {
    let clamp = |at: &mut DateTime<Utc>| *at = (*at).min(now);
    state.last_scaling_at.iter_mut().for_each(clamp);
    state.last_operation_ended_at.iter_mut().for_each(clamp);
    state.resource_manager.iter_mut().for_each(|seen| clamp(&mut seen.since));
    state.operations.iter_mut().for_each(|operation| clamp(&mut operation.at));
    state.provider_retry_at.iter_mut().for_each(|at| *at = (*at).min(now + retry::WAIT_MAX));
    for record in state.workers.values_mut() {
        clamp(&mut record.first_seen_at);
        record.not_ready_since.iter_mut().for_each(clamp);
        record.unlisted_since.iter_mut().for_each(clamp);
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

/// What is to be remembered of the ResourceManager that answers, where it is another than before.
fn new_resource_manager(state: &State, observation: &Observation, now: DateTime<Utc>) -> Option<SeenResourceManager> {
    let started_on_ms = observation.started_on_ms;
    let replaced_another = match state.resource_manager {
        Some(seen) if seen.started_on_ms == started_on_ms => return None,
        before => before.is_some(),
    };
    Some(SeenResourceManager { started_on_ms, since: now, replaced_another })
}

/// How far a drain is, by where its node is, and what was lost on the way.
fn follow_drain(
    host: &str,
    drain: &Drain,
    observation: &Observation,
    lost: &Lost,
    timeout: Duration,
) -> (DrainPhase, Option<String>) {
    let (node, now) = (observation.node(host), lost.now);
    let phase = match (drain.phase, node.map(|node| node.state)) {
        (DrainPhase::Cordoned { seen_at }, Some(NodeState::Running | NodeState::Unhealthy)) => {
            let closed = node.is_some_and(|node| drain.is_closed(node));
            DrainPhase::Cordoned { seen_at: closed.then(|| seen_at.unwrap_or(now)) }
        }
        // The order to decommission was taken although its answer never came.
        (DrainPhase::Cordoned { .. }, Some(NodeState::Decommissioning)) => {
            let containers = node.map_or(0, |node| node.containers);
            DrainPhase::Decommissioning { since: now, deadline: now + timeout, containers }
        }
        (DrainPhase::Decommissioning { since, deadline, .. }, Some(NodeState::Decommissioning)) => {
            let containers = node.map_or(0, |node| node.containers);
            DrainPhase::Decommissioning { since, deadline, containers }
        }
        // Somebody put a drained node back: containers may come to it. It leaves once more, from the start.
        (DrainPhase::Decommissioned { .. }, Some(NodeState::Running | NodeState::Unhealthy)) => {
            let note = format!("{host} was let go by YARN and is back: somebody took it off the exclude file");
            return (DrainPhase::Cordoned { seen_at: None }, Some(note));
        }
        (before @ DrainPhase::Decommissioned { .. }, _) => before,
        (before, Some(state)) if state.is_gone() => {
            return (DrainPhase::Decommissioned { since: now }, lost.told(host, before, state));
        }
        (before, _) => before,
    };
    (phase, None)
}

/// A leaving worker that YARN does not list and that the provider has given up leaves no further by itself. So ends a
/// NodeManager that is cordoned when another ResourceManager takes over: it registers with what it was cordoned to, less
/// than the smallest container, and is told to shut down (seen on 3.3.6).
fn note_death(
    host: &str,
    phase: DrainPhase,
    observation: &Observation,
    capacity: &Capacity,
    now: DateTime<Utc>,
) -> Option<(DrainPhase, String)> {
    if matches!(phase, DrainPhase::Decommissioned { .. }) || observation.node(host).is_some() {
        return None;
    }
    let (_, instance) = capacity.instance_of_host(host)?;
    (instance.state == InstanceState::Failed).then(|| {
        let note = format!(
            "{host} went from YARN while it was leaving, its NodeManager is dead: what still ran there is lost"
        );
        (DrainPhase::Decommissioned { since: now }, note)
    })
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

/// Since when each worker is there, ready, or not: the records that are new.
fn new_records(
    state: &State,
    matching: &Matching,
    first_look: bool,
    now: DateTime<Utc>,
) -> Vec<(String, WorkerRecord)> {
    let record_now = |host: &str, node: Option<&Node>| {
        let ready = node.is_some_and(|node| node.state == NodeState::Running);
        let before = state.workers.get(host).copied();
        let mut record = before.unwrap_or(WorkerRecord {
            first_seen_at: now,
            ready_at: (first_look && node.is_some()).then_some(now),
            not_ready_since: None,
            unlisted_since: None,
        });
        record.unlisted_since = if node.is_some() { None } else { record.unlisted_since.or(Some(now)) };
        record.not_ready_since = if ready { None } else { record.not_ready_since.or(Some(now)) };
        if ready && record.ready_at.is_none() {
            record.ready_at = Some(now);
        }
        (before != Some(record)).then_some(record)
    };
    let records = matching.pairs().map(|(_, instance, node)| (&instance.host, record_now(&instance.host, node)));
    records.filter_map(|(host, record)| Some((host.clone(), record?))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::{Capabilities, Readiness};

    fn capacity(identity: Option<&str>) -> Capacity {
        let capabilities = Capabilities { deletes_named: true, overlaps: false, resizes: true };
        let identity = identity.map(str::to_owned);
        Capacity { capabilities, groups: BTreeMap::new(), identity, readiness: Readiness::Ready }
    }

    #[test]
    fn what_was_remembered_of_another_cluster_of_the_same_name_is_forgotten() {
        let record = WorkerRecord {
            first_seen_at: DateTime::UNIX_EPOCH,
            ready_at: None,
            not_ready_since: None,
            unlisted_since: None,
        };
        // Known before, told now; whether the worker is remembered.
        for (before, now, remembered) in [
            (None, None, true),
            (None, Some("a"), true),
            (Some("a"), Some("a"), true),
            (Some("a"), None, true),
            (Some("a"), Some("b"), false),
        ] {
            let workers = BTreeMap::from([("w-0".to_owned(), record)]);
            let provider_identity = before.map(str::to_owned);
            let mut state = Arc::new(State { workers, provider_identity, ..State::default() });
            let note = forget_another_cluster(&mut state, &capacity(now));
            assert_eq!((state.workers.is_empty(), note.is_some()), (!remembered, !remembered), "{before:?} {now:?}");
            assert_eq!(state.provider_identity.as_deref(), now.or(before));
        }
    }
}
