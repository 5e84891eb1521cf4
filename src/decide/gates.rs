//! What holds all scaling back, and what is worth a remark whatever is decided.

use chrono::{DateTime, Utc};

use super::{
    Draft, View, leave,
    survey::{Standing, Worker},
};
use crate::model::{GroupName, InstanceState, Readiness, Reason, Situation};

/// A cluster with more not-ready workers than this, and a larger share than [`UNHEALTHY_SHARE_PERCENT`], is left
/// alone: the fault lies elsewhere (Kubernetes' cluster autoscaler draws the same line).
const UNHEALTHY_WORKERS: u32 = 3;
/// See [`UNHEALTHY_WORKERS`].
const UNHEALTHY_SHARE_PERCENT: u32 = 45;

/// The reason for which nothing is scaled just now.
pub(super) fn hold(view: &View<'_>) -> Option<Reason> {
    restarted(view).or_else(|| unhealthy(view))
}

/// Whether the provider takes no orders until somebody has seen to it. Draining workers are taken back all the same: that
/// is YARN's business, and what drains meanwhile could be neither deleted nor replaced.
pub(super) fn held(view: &View<'_>) -> Option<Reason> {
    match &view.capacity.readiness {
        Readiness::Held { why } => Some(Reason::ProviderHeld { why: why.clone() }),
        Readiness::Ready | Readiness::Busy { .. } => None,
    }
}

/// Whether another ResourceManager has just taken over: its figures are not yet whole.
pub(super) fn restarted(view: &View<'_>) -> Option<Reason> {
    let until = restart_over(view.situation)?;
    (view.now < until).then_some(Reason::ResourceManagerRestarted { until })
}

/// When the figures of a ResourceManager that has taken over are whole; `None` where none has.
pub(super) fn restart_over(situation: &Situation) -> Option<DateTime<Utc>> {
    let seen = situation.state.resource_manager.filter(|seen| seen.replaced_another)?;
    Some(seen.since + situation.restart_hold)
}

pub(super) fn unhealthy(view: &View<'_>) -> Option<Reason> {
    // What the provider has not made is no fault of the cluster.
    let is_made = |worker: &Worker<'_>| worker.instance.state != InstanceState::Promised;
    let not_ready = view.survey.with(Standing::NotReady).filter(is_made).count();
    let not_ready = u32::try_from(not_ready).unwrap_or(u32::MAX);
    let workers = not_ready + view.survey.serving();
    let unhealthy = not_ready > UNHEALTHY_WORKERS && not_ready * 100 > workers * UNHEALTHY_SHARE_PERCENT;
    unhealthy.then_some(Reason::UnhealthyCluster { not_ready, workers })
}

/// Adds what an operator should know beside the decision.
pub(super) fn remark(view: &View<'_>, draft: &mut Draft) {
    let not_ready: Vec<_> = view.survey.with(Standing::NotReady).map(|worker| worker.instance.host.clone()).collect();
    if !not_ready.is_empty() {
        draft.because(Reason::NotReady { hosts: not_ready });
    }
    let gone: Vec<_> = leave::unreleased(view).collect();
    let leaving = view.situation.state.drains.keys().filter(|host| !draft.taken_back.contains(*host));
    let leaving: Vec<_> = leaving.filter(|host| !gone.contains(host)).cloned().collect();
    if !leaving.is_empty() {
        draft.because(Reason::Draining { hosts: leaving });
    }
    let foreign = view.survey.foreign();
    if !foreign.is_empty() {
        draft.because(Reason::ForeignNodes { hosts: foreign.to_vec() });
    }
    if !view.survey.misnamed().is_empty() {
        let hosts = view.survey.misnamed().iter().cloned().collect();
        let nodes = u32::try_from(foreign.len()).unwrap_or(u32::MAX);
        draft.because(Reason::NamesDiffer { hosts, nodes });
    }
    for group in GroupName::ALL {
        if view.policy.group(group).max_instances > 0 && !view.capacity.groups.contains_key(&group) {
            draft.because(Reason::NoSuchGroup { group });
        }
    }
}
