//! How workers leave: cordoned, then decommissioned, then deleted, then forgotten. Each tick moves each of them on by
//! one step at most.

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};

use super::{
    Draft, View, gates,
    survey::{Standing, Survey, Worker},
};
use crate::model::{Action, Drain, DrainPhase, GroupName, InstanceState, Intent, Node, NodeState, Reason, Resources};

/// How long nothing new may have come to a node before it is decommissioned: a container that was given to it in the
/// moment before is killed (YARN-11421; measured on three Hadoop lines, never after 3 s).
pub const SETTLE: Duration = Duration::from_secs(3);

/// Adds the next step of each leaving worker.
pub(super) fn advance(view: &View<'_>, draft: &mut Draft) {
    if view.survey.count_of(Standing::NotReady) == 0 && view.survey.drains_wait(view.now) {
        return;
    }
    settle(view, draft);
    decommission(view, draft);
    replace(view, draft);
    for group in GroupName::ALL {
        delete(view, group, draft);
    }
    release(view, draft);
}

/// Until when all drains do nothing but wait: each is in YARN's hands, and YARN says so. `None`: one has a step to take.
pub(super) fn wait_until(survey: &Survey) -> Option<DateTime<Utc>> {
    let (mut until, mut waiting) = (DateTime::<Utc>::MAX_UTC, 0);
    let drains = &survey.state().drains;
    let leaving = survey.with(Standing::Leaving).map(|worker| (drains.get(&worker.instance.host), worker.node));
    for (drain, node) in leaving.filter_map(|(drain, node)| Some((drain?, node))) {
        let DrainPhase::Decommissioning { deadline, .. } = drain.phase else { return None };
        if node?.state != NodeState::Decommissioning {
            return None;
        }
        waiting += 1;
        until = until.min(deadline + FORCE_AFTER);
    }
    // A drain without its machine has a step to take.
    (waiting == drains.len()).then_some(until)
}

/// Cordons again what is not cordoned any more: a ResourceManager that restarted has forgotten it, or somebody else's
/// refresh has put a draining node back into service.
fn settle(view: &View<'_>, draft: &mut Draft) {
    let restarted = gates::restarted(view).is_some();
    for (host, drain) in drains(view, draft) {
        let Some(node) = view.observation.node(host) else { continue };
        let undone = match drain.phase {
            // A decommission that was undone leaves an unhealthy node as it leaves a running one: in service.
            DrainPhase::Decommissioning { since, .. } => {
                matches!(node.state, NodeState::Running | NodeState::Unhealthy) && since < view.now
            }
            _ if node.state != NodeState::Running => false,
            // While containers are made known to another ResourceManager, a node that has them may look idle.
            DrainPhase::Cordoned { .. } if restarted && node.total.memory_mb < drain.full.memory_mb => false,
            DrainPhase::Cordoned { .. } => !drain.is_closed(node),
            DrainPhase::Decommissioned { .. } => false,
        };
        if undone {
            draft.actions.push(cordon(node, drain.group, &drain.instance, drain.full));
        }
    }
}

/// How long YARN may take to end a drain after its deadline (it looks every 20 s) before it is told again.
pub(super) const FORCE_AFTER: Duration = Duration::from_secs(120);

fn decommission(view: &View<'_>, draft: &mut Draft) {
    // While applications register anew with another ResourceManager, what runs where is not known.
    if gates::restarted(view).is_some() {
        return;
    }
    let settled = drains(view, draft).into_iter().filter(|(host, drain)| {
        let long_enough =
            matches!(drain.phase, DrainPhase::Cordoned { seen_at: Some(seen) } if seen + SETTLE <= view.now);
        let node = view.observation.node(host);
        long_enough && node.is_some_and(|node| drain.is_closed(node))
    });
    let hosts: Vec<_> = settled.map(|(host, _)| host.clone()).collect();
    if !hosts.is_empty() {
        let timeout = view.policy.basic().graceful_decommission_timeout;
        draft.because(Reason::Decommission { hosts: hosts.clone(), timeout_s: timeout.as_secs() });
        draft.actions.push(Action::Decommission { hosts, timeout });
    }
    // A time-out that YARN has forgotten: a drain that never ends would keep all others from leaving.
    let hung = drains(view, draft).into_iter().filter(|(host, drain)| {
        let overdue =
            matches!(drain.phase, DrainPhase::Decommissioning { deadline, .. } if deadline + FORCE_AFTER <= view.now);
        overdue && view.node_state(host) == Some(NodeState::Decommissioning)
    });
    let hosts: Vec<_> = hung.map(|(host, _)| host.clone()).collect();
    if !hosts.is_empty() {
        draft.because(Reason::Decommission { hosts: hosts.clone(), timeout_s: 0 });
        draft.actions.push(Action::Decommission { hosts, timeout: Duration::ZERO });
    }
}

/// Whether a worker that is of no use can be deleted, and another one made.
fn may_replace(view: &View<'_>) -> bool {
    let holds = gates::hold(view).is_some() || gates::held(view).is_some();
    !holds && view.capacity.capabilities.deletes_named
}

/// Workers that have been of no use for too long leave, so that others can take their place within the bounds.
fn replace(view: &View<'_>, draft: &mut Draft) {
    if !may_replace(view) {
        return;
    }
    let overdue = view.survey.with(Standing::NotReady).filter(|worker| is_overdue(view, worker));
    for worker in overdue.filter(|worker| !is_being_deleted(view, &worker.instance.name)) {
        let host = worker.instance.host.clone();
        match worker.node.filter(|node| node.state == NodeState::Unhealthy) {
            Some(node) => {
                draft.actions.push(cordon(node, worker.group, &worker.instance.name, node.total));
                draft.because(Reason::Replace { host, why: format!("unhealthy: {}", node.health_report) });
            }
            None => draft.because(Reason::Replace { host, why: "YARN has lost it, or never saw it".into() }),
        }
    }
}

/// Late workers of groups none of whose workers was ever ready, where YARN has at least as many nodes of no group: most
/// likely they are these workers under other names, with work on them. They are never given up.
///
/// Nor is a late worker that has a namesake among those nodes, the same machine in another domain: in whatever group, and
/// however many others there are. One such pair shows that the names of a group none of whose workers was ready differ.
pub(super) fn misnamed(survey: &Survey) -> BTreeSet<String> {
    if survey.foreign().is_empty() {
        return BTreeSet::new();
    }
    let strangers: BTreeSet<_> = survey.foreign().iter().filter_map(|host| first_label(host)).collect();
    let has_namesake = |host: &str| first_label(host).is_some_and(|label| strangers.contains(label));
    let was_ready = |host| survey.state().workers.get(host).is_some_and(|record| record.ready_at.is_some());
    let proven = survey.workers().filter(|worker| was_ready(&worker.instance.host));
    let proven: BTreeSet<_> = proven.map(|worker| worker.group).collect();
    let late = survey.with(Standing::NotReady).filter(|worker| {
        let is_there = !matches!(worker.instance.state, InstanceState::Failed | InstanceState::Promised);
        worker.node.is_none() && is_there
    });
    let (mut misnamed, mut doubtful) = (BTreeSet::new(), BTreeSet::new());
    for worker in late {
        let host = &worker.instance.host;
        if has_namesake(host) {
            misnamed.insert(host.clone());
        }
        if !proven.contains(&worker.group) {
            doubtful.insert(host.clone());
        }
    }
    if doubtful.len() <= survey.foreign().len() || !misnamed.is_disjoint(&doubtful) {
        misnamed.append(&mut doubtful);
    }
    misnamed
}

/// What a machine is called whatever its domain; `None` of an address in figures.
fn first_label(host: &str) -> Option<&str> {
    host.split('.').next().filter(|label| label.bytes().any(|b| !b.is_ascii_digit()))
}

fn is_overdue(view: &View<'_>, worker: &Worker<'_>) -> bool {
    // What is only promised cannot be deleted, nor replaced: it may yet come.
    let is_promised = worker.instance.state == InstanceState::Promised;
    if is_promised || view.survey.misnamed().contains(worker.instance.host.as_str()) {
        return false;
    }
    let Some(record) = view.situation.state.workers.get(&worker.instance.host) else { return false };
    let ours_to_replace = match worker.node.map(|node| node.state) {
        // Somebody else cordoned or drains it: theirs to decide. A state that we do not know tells nothing.
        Some(NodeState::Running | NodeState::Decommissioning | NodeState::New | NodeState::Unknown) => false,
        // Somebody else took it out of service; unless it never was in service, and YARN speaks of the machine that
        // had the name before.
        Some(NodeState::Decommissioned) => record.ready_at.is_none() || is_leaving(view, worker),
        None | Some(NodeState::Unhealthy | NodeState::Lost | NodeState::Rebooted | NodeState::Shutdown) => true,
    };
    // Missing is not lost: an answer that leaves out a node, which is unhealthy or drains, gives it up no sooner.
    let since = if worker.node.is_none() { record.unlisted_since } else { record.not_ready_since };
    ours_to_replace && since.is_some_and(|since| since + view.situation.ready_deadline <= view.now)
}

fn is_leaving(view: &View<'_>, worker: &Worker<'_>) -> bool {
    view.situation.state.drains.contains_key(&worker.instance.host)
}

/// Deletes the machines that YARN has let go of. Never beside a create in the same group.
fn delete(view: &View<'_>, group: GroupName, draft: &mut Draft) {
    if draft.creates_in(group) || !view.may_order_beside(draft) || view.provider_is_free(true).is_err() {
        return;
    }
    let instances = to_delete(view, group);
    if !instances.is_empty() {
        draft.because(Reason::Delete { instances: instances.clone() });
        draft.actions.push(Action::Delete { group, instances });
    }
}

/// Machines of a group that nobody has any use for.
pub(super) fn to_delete(view: &View<'_>, group: GroupName) -> Vec<String> {
    let is_drained = |host: &String| {
        let drain = view.situation.state.drains.get(host);
        drain.is_some_and(|drain| matches!(drain.phase, DrainPhase::Decommissioned { .. }))
    };
    let has_no_node = |worker: &Worker<'_>| worker.node.is_none_or(|node| node.state.is_gone());
    let may_replace = may_replace(view);
    let gone = view.survey.workers().filter(|worker| {
        // A leaving worker that YARN does not know any more cannot leave by itself.
        // Its NodeManager may yet come back, unless its machine says that it is dead.
        let dead = worker.standing == Standing::Leaving && worker.instance.state == InstanceState::Failed;
        let useless =
            dead || (matches!(worker.standing, Standing::NotReady | Standing::Leaving) && is_overdue(view, worker));
        worker.group == group
            && worker.instance.state != InstanceState::Stopping
            // Somebody may have put a drained node back: then containers may run there.
            && has_no_node(worker)
            && (is_drained(&worker.instance.host) || (useless && may_replace))
            && !is_being_deleted(view, &worker.instance.name)
    });
    gone.map(|worker| worker.instance.name.clone()).collect()
}

fn is_being_deleted(view: &View<'_>, name: &String) -> bool {
    view.situation.state.operations.iter().any(|operation| match &operation.intent {
        Intent::Delete { instances, .. } => instances.contains(name),
        Intent::Create { .. } | Intent::Resize { .. } => false,
    })
}

/// Takes hosts off the exclude file whose machines are gone, so that their names may serve again.
fn release(view: &View<'_>, draft: &mut Draft) {
    let hosts: Vec<_> = unreleased(view).cloned().collect();
    if !hosts.is_empty() {
        draft.because(Reason::Release { hosts: hosts.clone() });
        draft.actions.push(Action::Release { hosts });
    }
}

/// Leaving hosts whose machine is gone, and whose names may be freed.
pub(super) fn unreleased<'a>(view: &View<'a>) -> impl Iterator<Item = &'a String> {
    without_machine(view).filter(|(_, drain)| !is_being_deleted(view, &drain.instance)).map(|(host, _)| host)
}

/// Leaving hosts whose machine is gone, though the operation that deletes it may not have ended yet.
pub(super) fn without_machine<'a>(view: &View<'a>) -> impl Iterator<Item = (&'a String, &'a Drain)> {
    view.situation.state.drains.iter().filter(|(host, _)| {
        let may_run = view.node_state(host).is_some_and(|state| !state.is_gone());
        view.capacity.instance_of_host(host).is_none() && !may_run
    })
}

/// The order that keeps new containers off a node.
pub(super) fn cordon(node: &Node, group: GroupName, instance: &str, full: Resources) -> Action {
    Action::Cordon { node: node.id.clone(), group, instance: instance.to_owned(), full }
}

fn drains<'a>(view: &View<'a>, draft: &Draft) -> Vec<(&'a String, &'a Drain)> {
    view.situation.state.drains.iter().filter(|(host, _)| !draft.taken_back.contains(*host)).collect()
}
