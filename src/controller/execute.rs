//! Carries a decision out: each action once, its intent saved before, its outcome after.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use super::{Controller, Halt, retry};
use crate::{
    model::{
        Action, Capacity, Decision, Drain, DrainPhase, GroupName, InstanceState, Intent, Node, NodeId, NodeState,
        Observation, Operation, Resources, Situation,
    },
    ports::{Cluster, ErrorKind, Journal, OperationState, PolicySource, PortError, Provider, StateStore},
};

/// An order that nobody has acknowledged for so long is given up: what it was for may have passed.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10 * 60);

/// An operation that runs for so long is not waited for any longer; `describe` tells what has become of it.
const OPERATION_MAX: Duration = Duration::from_secs(60 * 60);

/// When an operation is not waited for any longer: later where workers are drained in it.
fn given_up_at(operation: &Operation) -> DateTime<Utc> {
    let drains = match &operation.intent {
        Intent::Resize { change, timeout } if GroupName::ALL.into_iter().any(|group| change.shrinks(group)) => *timeout,
        _ => Duration::ZERO,
    };
    operation.at + drains + OPERATION_MAX
}

impl<C: Cluster, P: Provider, S: StateStore, J: Journal, R: PolicySource> Controller<C, P, S, J, R> {
    /// Polls what is under way, and gives again what was intended and never acknowledged.
    pub(super) async fn follow_operations(&mut self, now: DateTime<Utc>, notes: &mut Vec<String>) -> Result<(), Halt> {
        for operation in self.state.operations.clone() {
            match &operation.operation_id {
                Some(id) => self.poll(&operation, id, now, notes).await,
                None if operation.at + UNACKNOWLEDGED_MAX < now => {
                    notes.push(format!("gave up on an order that was never acknowledged: {}", operation.intent));
                    self.end(&operation.request_id, now);
                }
                None if self.state.provider_retry_at.is_some_and(|at| now < at) => {}
                // Given again only after a look: see below.
                None if matches!(operation.intent, Intent::Delete { .. }) => {}
                None => self.order(operation.clone(), true, now, notes).await,
            }
        }
        self.save(notes).await.map(drop)
    }

    /// Gives deletions again that were intended and never acknowledged, if what they are for is still true: a worker that
    /// was given up may have come since, however long that was, and may run containers.
    pub(super) async fn delete_again(
        &mut self,
        now: DateTime<Utc>,
        observation: &Observation,
        capacity: &Capacity,
        notes: &mut Vec<String>,
    ) -> Result<(), Halt> {
        // The first look of a controller's life is not enough: YARN's list may be short by mistake, and whoever had looked
        // before is not there to tell.
        if self.last_tick_at.is_none() || self.state.provider_retry_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        for operation in self.state.operations.clone() {
            let Intent::Delete { instances, .. } = &operation.intent else { continue };
            let serves = |host: &str| observation.node(host).is_some_and(|node| node.state.is_active());
            let mut ours = capacity.instances().filter(|(_, instance)| instances.contains(&instance.name));
            if operation.operation_id.is_some() {
                continue;
            }
            if ours.any(|(_, instance)| instance.state != InstanceState::Stopping && serves(&instance.host)) {
                notes.push(format!("not ordered again, since YARN has a node there: {}", operation.intent));
                self.end(&operation.request_id, now);
            } else {
                self.order(operation, true, now, notes).await;
            }
        }
        self.save(notes).await.map(drop)
    }

    async fn poll(&mut self, operation: &Operation, id: &str, now: DateTime<Utc>, notes: &mut Vec<String>) {
        match self.provider.poll(id).await {
            Ok(OperationState::Running) | Err(_) if given_up_at(operation) < now => {
                notes.push(format!(
                    "an operation runs for too long and is not waited for any more: {}",
                    operation.intent
                ));
                self.end(&operation.request_id, now);
            }
            Ok(OperationState::Running) => {}
            Ok(OperationState::Done) => {
                self.state_mut().provider_failures = 0;
                self.end(&operation.request_id, now);
            }
            Ok(OperationState::Failed(error)) => {
                notes.push(format!("failed: {}: {error}", operation.intent));
                self.wait_out(error.kind, now);
                self.end(&operation.request_id, now);
            }
            Err(PortError { kind: ErrorKind::NotFound, .. }) => {
                notes.push(format!(
                    "the provider has forgotten an operation, so it counts as ended: {}",
                    operation.intent
                ));
                self.end(&operation.request_id, now);
            }
            Err(error) => notes.push(format!("cannot poll an operation ({}): {error}", operation.intent)),
        }
    }

    /// Until when this tick and later ones do the same with the operations that are under way now: they poll them. `None`:
    /// one is to be ordered again, and may have ended before it is polled for the first time.
    pub(super) fn only_polls_until(&self) -> Option<Option<DateTime<Utc>>> {
        let operations = &self.state.operations;
        let all_given = operations.iter().all(|operation| operation.operation_id.is_some());
        all_given.then(|| operations.iter().map(given_up_at).min())
    }

    /// Takes an operation off the list: the cooldown counts from its end.
    fn end(&mut self, request_id: &str, now: DateTime<Utc>) {
        self.state_mut().operations.retain(|operation| operation.request_id != request_id);
        self.state_mut().last_operation_ended_at = Some(now);
    }

    fn wait_out(&mut self, kind: ErrorKind, now: DateTime<Utc>) {
        // Orders that fail together count once: what takes turns while orders fail would else skip its turn for ever.
        let waits_until = self.state.provider_retry_at.filter(|until| now < *until);
        let failures = self.state.provider_failures.saturating_add(u32::from(waits_until.is_none()));
        let state = self.state_mut();
        state.provider_failures = failures;
        state.provider_retry_at = Some(now + retry::wait(kind, failures)).max(waits_until);
    }

    /// Carries out each action in turn. One that fails does not keep the others from being tried.
    pub(super) async fn execute(
        &mut self,
        decision: &Decision,
        seen: &Situation,
        notes: &mut Vec<String>,
    ) -> Result<(), Halt> {
        let now = seen.now;
        let mut hangs = false;
        for action in &decision.actions {
            match action {
                Action::Create { group, count } => {
                    self.intend(Intent::Create { group: *group, count: *count }, now, notes).await?;
                }
                Action::Delete { group, instances } => {
                    let intent = Intent::Delete { group: *group, instances: instances.clone() };
                    self.intend(intent, now, notes).await?;
                }
                Action::Resize { change, timeout } => {
                    self.intend(Intent::Resize { change: *change, timeout: *timeout }, now, notes).await?;
                }
                // Together, below.
                Action::Cordon { .. } => {}
                Action::Uncordon { .. } if hangs => {}
                Action::Uncordon { node, full } => hangs = !self.uncordon(node, *full, now, notes).await,
                Action::Decommission { hosts, timeout } => self.decommission(hosts, *timeout, now, notes).await?,
                Action::Recommission { hosts } => self.recommission(hosts, now, notes).await?,
                Action::Release { hosts } => self.release(hosts, notes).await?,
            }
        }
        let cordons = decision.actions.iter().filter_map(|action| match action {
            Action::Cordon { node, group, instance, full } => Some(self.drain_of(node, *group, instance, *full, now)),
            _ => None,
        });
        let cordons: Vec<_> = cordons.collect();
        if cordons.is_empty() { Ok(()) } else { self.cordon(cordons, seen, notes).await }
    }

    /// Saves the intent, then gives the order.
    async fn intend(&mut self, intent: Intent, now: DateTime<Utc>, notes: &mut Vec<String>) -> Result<(), Halt> {
        self.state_mut().orders += 1;
        // Unique even when the state was lost: no other order was begun in this millisecond with this number.
        let request_id = format!("ya-{:x}-{}", now.timestamp_millis(), self.state.orders);
        let operation = Operation { request_id, intent, at: now, operation_id: None };
        self.state_mut().operations.push(operation.clone());
        if !self.save(notes).await? {
            self.state_mut().operations.pop();
            return Ok(());
        }
        self.order(operation, false, now, notes).await;
        self.save(notes).await.map(drop)
    }

    /// Gives an order whose intent is saved, for the first time or again.
    async fn order(&mut self, operation: Operation, again: bool, now: DateTime<Utc>, notes: &mut Vec<String>) {
        let request_id = &operation.request_id;
        let answer = match &operation.intent {
            Intent::Create { group, count } => self.provider.create(request_id, *group, *count).await,
            Intent::Delete { group, instances } => self.provider.delete(request_id, *group, instances).await,
            Intent::Resize { change, timeout } => self.provider.resize(request_id, *change, *timeout).await,
        };
        match answer {
            Ok(id) => {
                let ours = self.state_mut().operations.iter_mut().find(|other| other.request_id == *request_id);
                if let Some(ours) = ours {
                    ours.operation_id = Some(id);
                }
            }
            Err(error) => {
                notes.push(format!("refused: {}: {error}", operation.intent));
                self.wait_out(error.kind, now);
                if retry::was_not_taken(error.kind, again) {
                    self.state_mut().operations.retain(|other| other.request_id != *request_id);
                }
            }
        }
    }

    /// The drain that this cordon begins, or goes on with: what the node declared at first is kept.
    fn drain_of(&self, node: &NodeId, group: GroupName, instance: &str, full: Resources, now: DateTime<Utc>) -> Drain {
        let before = self.state.drains.get(&node.host);
        Drain {
            node: node.clone(),
            group,
            instance: instance.to_owned(),
            full: before.map_or(full, |drain| drain.full),
            phase: DrainPhase::Cordoned { seen_at: None },
            since: before.map_or(now, |drain| drain.since),
        }
    }

    /// Cordons these, saved once before and once after: a store in a bucket takes about one document a second.
    async fn cordon(&mut self, drains: Vec<Drain>, seen: &Situation, notes: &mut Vec<String>) -> Result<(), Halt> {
        let before = self.state.drains.clone();
        // A cordon that is made again is no new scaling: else one that keeps failing would never let the cooldown end.
        if drains.iter().any(|drain| !before.contains_key(&drain.node.host)) {
            self.state_mut().last_scaling_at = Some(seen.now);
        }
        self.state_mut().drains.extend(drains.iter().map(|drain| (drain.node.host.clone(), drain.clone())));
        if !self.save(notes).await? {
            // YARN forgets what the node declared: without the saved figure it could not be given back.
            self.state_mut().drains = before;
            return Ok(());
        }
        for Drain { node, full, .. } in drains {
            let shown = seen.observation.as_ref().ok().and_then(|observation| observation.node(&node.host));
            let leave = shown.map(|shown| shown.cordon_leaves(full)).unwrap_or_default();
            let Err(error) = self.cluster.cordon(&node, leave).await else { continue };
            notes.push(format!("cannot cordon {node}: {error}"));
            // A port that hangs would cost a time-out for each: the rest is cordoned at the next tick.
            if retry::may_have_been_taken(error.kind) {
                break;
            }
            match before.get(&node.host) {
                Some(drain) => self.state_mut().drains.insert(node.host, drain.clone()),
                None => self.state_mut().drains.remove(&node.host),
            };
        }
        self.save(notes).await.map(drop)
    }

    /// Gives a node its resources back; returns whether it is worth while to try another. Saved with all else at the
    /// end of the tick: done twice, it is the same.
    async fn uncordon(&mut self, node: &NodeId, full: Resources, now: DateTime<Utc>, notes: &mut Vec<String>) -> bool {
        match self.cluster.uncordon(node, full).await {
            Ok(()) => {
                self.state_mut().drains.remove(&node.host);
                self.state_mut().last_scaling_at = Some(now);
                true
            }
            Err(error) => {
                notes.push(format!("cannot uncordon {node}: {error}"));
                !retry::may_have_been_taken(error.kind)
            }
        }
    }

    /// Looks at the nodes again, and decommissions those on which nothing new can have come.
    async fn decommission(
        &mut self,
        hosts: &[String],
        timeout: Duration,
        now: DateTime<Utc>,
        notes: &mut Vec<String>,
    ) -> Result<(), Halt> {
        let going = match self.let_go(hosts, notes).await {
            Ok(going) => going,
            Err(error) => {
                notes.push(format!("not decommissioned, since the nodes could not be looked at again: {error}"));
                return Ok(());
            }
        };
        let before = self.state.drains.clone();
        for node in &going {
            if let Some(drain) = self.state_mut().drains.get_mut(&node.id.host) {
                let containers = node.containers;
                let since = match drain.phase {
                    DrainPhase::Decommissioning { since, .. } => since,
                    DrainPhase::Cordoned { .. } | DrainPhase::Decommissioned { .. } => now,
                };
                drain.phase = DrainPhase::Decommissioning { since, deadline: now + timeout, containers };
            }
        }
        if going.is_empty() || !self.save(notes).await? {
            self.state_mut().drains = before;
            return Ok(());
        }
        let hosts: Vec<_> = going.into_iter().map(|node| node.id.host.clone()).collect();
        if let Err(error) = self.cluster.decommission(&hosts, timeout).await {
            notes.push(format!("cannot decommission {}: {error}", hosts.join(", ")));
            // Where it may have been taken the next look tells: a node that runs on is cordoned and drained anew.
            if !retry::may_have_been_taken(error.kind) {
                self.state_mut().drains = before;
            }
        }
        self.save(notes).await.map(drop)
    }

    /// Makes cordoned nodes fit for YARN's graceful decommission; returns those that are.
    ///
    /// Each is given back just what its containers use. A node that is recommissioned gets what it had when it was
    /// decommissioned; were that the cordon's 1 MB, YARN would kill containers until they fit (measured on 3.3.6:
    /// recommission comes with an over-commit time-out of 0). With what is used, nothing fits and nothing is killed.
    /// Unless a container ends in that moment: another may come in its room, and what comes right before a decommission
    /// is killed. So only nodes on which nothing has changed meanwhile go; the others settle anew.
    async fn let_go(&mut self, hosts: &[String], notes: &mut Vec<String>) -> Result<Vec<Arc<Node>>, PortError> {
        let mut going = self.cluster.nodes().await?;
        going.retain(|node| hosts.contains(&node.id.host) && self.is_closed_or_drains(node));
        let is_busy = |node: &Node| node.containers > 0 && node.state != NodeState::Decommissioning;
        if !going.iter().any(|node| is_busy(node)) {
            return Ok(going);
        }
        let mut ready = Vec::new();
        let mut hangs = false;
        for node in going {
            if !is_busy(&node) {
                ready.push(node);
            } else if !hangs {
                match self.cluster.cordon(&node.id, node.used).await {
                    Ok(()) => ready.push(node),
                    Err(error) => {
                        hangs = retry::may_have_been_taken(error.kind);
                        notes.push(format!("not decommissioned: cannot give {} what it uses: {error}", node.id));
                        // It may have room now: what comes into it must settle, too.
                        self.settles_anew(&node.id.host);
                    }
                }
            }
        }
        let now = self.cluster.nodes().await?;
        let now: BTreeMap<_, _> = now.iter().map(|node| (&node.id.host, node)).collect();
        ready.retain(|node| {
            let same = node.state == NodeState::Decommissioning
                || now.get(&node.id.host).is_some_and(|now| {
                    (now.state, now.used, now.containers) == (node.state, node.used, node.containers)
                });
            if !same {
                self.settles_anew(&node.id.host);
            }
            same
        });
        Ok(ready)
    }

    pub(super) fn settles_anew(&mut self, host: &str) {
        if let Some(drain) = self.state_mut().drains.get_mut(host) {
            drain.phase = DrainPhase::Cordoned { seen_at: None };
        }
    }

    fn is_closed_or_drains(&self, node: &Node) -> bool {
        let drain = self.state.drains.get(&node.id.host);
        drain.is_some_and(|drain| drain.is_closed(node)) || node.state == NodeState::Decommissioning
    }

    /// Takes draining nodes back, and gives them the resources that the cordon took.
    async fn recommission(
        &mut self,
        hosts: &[String],
        now: DateTime<Utc>,
        notes: &mut Vec<String>,
    ) -> Result<(), Halt> {
        let timeout = self.policy.basic().graceful_decommission_timeout;
        if let Err(error) = self.cluster.recommission(hosts, timeout).await {
            notes.push(format!("cannot recommission {}: {error}", hosts.join(", ")));
            return Ok(());
        }
        let mut hangs = false;
        for host in hosts {
            // Until it has its resources again it is a cordoned node, and is taken back as such.
            let Some(drain) = self.state_mut().drains.get_mut(host) else { continue };
            drain.phase = DrainPhase::Cordoned { seen_at: None };
            let (node, full) = (drain.node.clone(), drain.full);
            hangs = hangs || !self.uncordon(&node, full, now, notes).await;
        }
        self.save(notes).await.map(drop)
    }

    async fn release(&mut self, hosts: &[String], notes: &mut Vec<String>) -> Result<(), Halt> {
        let timeout = self.policy.basic().graceful_decommission_timeout;
        match self.cluster.recommission(hosts, timeout).await {
            Ok(()) => self.state_mut().drains.retain(|host, _| !hosts.contains(host)),
            Err(error) => notes.push(format!("cannot take {} off the exclude file: {error}", hosts.join(", "))),
        }
        self.save(notes).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SizeChange;

    #[test]
    fn an_operation_in_which_workers_drain_is_given_up_later_and_no_other() {
        let at = DateTime::UNIX_EPOCH;
        let waited = |change| {
            let intent = Intent::Resize { change, timeout: Duration::from_secs(86_400) };
            let operation = Operation { request_id: "r".into(), intent, at, operation_id: Some("o".into()) };
            (given_up_at(&operation) - at).num_hours()
        };
        assert_eq!(waited(SizeChange::growth([(GroupName::Primary, 1), (GroupName::Secondary, 1)])), 1);
        assert_eq!(waited(SizeChange { primary: 1, secondary: -1 }), 25);
    }
}
