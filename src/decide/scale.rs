//! From what the algorithm wants to actions: taken back before made, within bounds, by weight, after the cooldown.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::{
    Draft, View,
    balance::{self, Sizes},
    basic::{self, Estimate},
    gates, leave, select,
    survey::Standing,
};
use crate::{
    model::{
        Action, Capabilities, Drain, DrainPhase, GroupName, InstanceState, NodeState, Reason, Situation, SizeChange,
        Window,
    },
    policy::Policy,
};

/// Adds what is to be done about the size of the cluster, and why.
pub(super) fn scale(view: &View<'_>, draft: &mut Draft) {
    let mut stood_back = Sizes::default();
    if enforce_minimum(view, draft, &mut stood_back) || enforce_maximum(view, draft) {
        return;
    }
    follow_load(view, draft);
    if draft.actions.is_empty() {
        create(view, draft, stood_back);
    }
}

fn follow_load(view: &View<'_>, draft: &mut Draft) {
    let from = window_from(view.policy, view.situation);
    let samples = view.situation.history.window(from);
    let Some(estimate) = estimate(view, &samples, draft) else { return };
    let delta = i64::from(estimate.workers) - i64::from(view.survey.serving());
    match delta {
        // More in use on average than the workers hold that are left: nothing waits for the rest.
        1.. if estimate.pending == 0 => steady(view, draft, &estimate, &samples),
        1.. => scale_up(view, draft, &estimate, delta, &samples),
        // With anything pending in the window the estimate counts all room: it can only fall short of the present
        // workers where some of them came within the window. That is no reason to take any away.
        ..=0 if delta == 0 || estimate.pending > 0 => steady(view, draft, &estimate, &samples),
        _ => scale_down(view, draft, &estimate, delta, from),
    }
}

/// Where the window that is averaged over begins: as long ago as the cooldown lasts, or later.
pub(super) fn window_from(policy: &Policy, situation: &Situation) -> DateTime<Utc> {
    let window = situation.now - policy.basic().cooldown_period;
    period_begun(situation).map_or(window, |begun| begun.max(window))
}

/// When the scaling period began; no window reaches back beyond that.
pub(super) fn period_begun(situation: &Situation) -> Option<DateTime<Utc>> {
    // A scaling period starts when the last one has ended; before, and in averages, its samples do not count. So does
    // one after a ResourceManager has taken over: what it said while applications registered was not whole.
    situation.state.cooldown_from().max(gates::restart_over(situation))
}

fn estimate(view: &View<'_>, samples: &Window, draft: &mut Draft) -> Option<Estimate> {
    let Some(per_worker) = view.survey.per_worker() else {
        let group = view.survey.growing_group(view.policy).unwrap_or(GroupName::Primary);
        draft.because(Reason::UnknownTemplate { group });
        return None;
    };
    let estimate = basic::estimate(view.policy.basic(), samples, per_worker);
    if estimate.is_none() {
        draft.because(still_pending(view).unwrap_or_else(|| window_not_full(view)));
    }
    estimate
}

fn steady(view: &View<'_>, draft: &mut Draft, estimate: &Estimate, samples: &Window) {
    if let Some(reason) = unconfirmed(view, samples) {
        draft.because(reason);
    }
    draft.because(Reason::Steady {
        workers: view.survey.serving(),
        metric: estimate.metric,
        pending: estimate.pending,
        allocated: estimate.allocated,
    });
}

/// A group below its minimum grows as soon as that is certain: the operator asked for it, whatever the load. Returns
/// whether anything is ordered or under way for it; until then nothing else is scaled.
///
/// A group that cannot be had must not keep the other one from scaling for ever: while orders fail, minimum and load take
/// turns. What is due for the minimum and lets the load go first is added to `stood_back`.
fn enforce_minimum(view: &View<'_>, draft: &mut Draft, stood_back: &mut Sizes) -> bool {
    let failures = if view.capacity.groups.len() > 1 { view.situation.state.provider_failures } else { 0 };
    let mut under_way = false;
    for (group, size) in view.survey.sizes().iter() {
        let min = view.policy.group(group).min_instances;
        if size >= min {
            continue;
        }
        draft.because(Reason::BelowMinimum { group, size, min });
        if let Err(reason) = list_may_lag(view) {
            // Not even taken back: what is ordered and not shown yet may fill the group.
            draft.because(reason);
            under_way = true;
            continue;
        }
        let taken = take_back(view, draft, min - size, |drain| drain.group == group);
        let missing = (min - size).saturating_sub(taken);
        under_way |= taken > 0 || failures == 0 || view.creates_in(group);
        if missing == 0 {
            continue;
        }
        if failures > 0 {
            draft.failing.insert(group);
        }
        if let Err(reason) = size_is_certain(view, group) {
            draft.because(reason);
            under_way = true;
        } else if failures.is_multiple_of(2) {
            under_way |= create(view, draft, Sizes::from_iter([(group, missing)])) > 0;
        } else {
            stood_back.set(group, missing);
        }
    }
    under_way
}

/// How long a provider's list may lag behind an operation that it calls done: lists are eventually consistent, by
/// seconds. The minimum waits for no cooldown, and would be ordered anew at each look until the list shows what came.
pub(super) const LIST_LAG: Duration = Duration::from_secs(60);

/// Whether the provider's list lags behind no operation any more, or until when it may.
fn list_may_lag(view: &View<'_>) -> Result<(), Reason> {
    let until = view.situation.state.last_operation_ended_at.map(|ended| ended + LIST_LAG);
    until.filter(|until| view.now < *until).map_or(Ok(()), |until| Err(Reason::ListMayLag { until }))
}

/// Whether what the provider's list shows of a group is confirmed, or why not yet.
fn size_is_certain(view: &View<'_>, group: GroupName) -> Result<(), Reason> {
    let state = &view.situation.state;
    // One list that is short by mistake orders nothing. Workers that the last look showed are remembered at this one.
    let hosts: BTreeSet<_> = view.capacity.instances().map(|(_, instance)| instance.host.as_str()).collect();
    let as_before = state.workers.keys().all(|host| hosts.contains(host.as_str()));
    if as_before && view.situation.history.is_confirmed() { Ok(()) } else { Err(Reason::SizeUnconfirmed { group }) }
}

/// A group above its maximum shrinks by graceful decommission, after the cooldown. Of those that serve the minimum
/// stays, however many others do not. Returns whether workers leave for it; until then the other group may scale.
fn enforce_maximum(view: &View<'_>, draft: &mut Draft) -> bool {
    let mut above = Sizes::default();
    let serving = view.survey.serving_sizes();
    for (group, size) in view.survey.sizes().iter() {
        let bounds = view.policy.group(group);
        if size > bounds.max_instances {
            draft.because(Reason::AboveMaximum { group, size, max: bounds.max_instances });
            let spare = serving.get(group).map_or(0, |serving| serving.saturating_sub(bounds.min_instances));
            // Workers that exist do not go for those that were promised in vain: they could not be had again.
            let made = size.saturating_sub(promised_in_vain(view, group));
            above.set(group, spare.min(made.saturating_sub(bounds.max_instances)));
        }
    }
    if above.total() == 0 {
        return false;
    }
    match may_shrink(view) {
        Ok(()) => drain(view, draft, &above),
        Err(reason) => draft.because(reason),
    }
    draft.shrinks()
}

/// Workers that the provider has promised for longer than one takes to come.
fn promised_in_vain(view: &View<'_>, group: GroupName) -> u32 {
    let late = view.survey.with(Standing::NotReady).filter(|worker| worker.group == group);
    u32::try_from(late.filter(|worker| worker.instance.state == InstanceState::Promised).count()).unwrap_or(u32::MAX)
}

fn scale_up(view: &View<'_>, draft: &mut Draft, estimate: &Estimate, delta: i64, samples: &Window) {
    if let Some(reason) = unconfirmed(view, samples).or_else(|| demand_gone(samples, estimate)) {
        return draft.because(reason);
    }
    let change = match basic::change(view.policy.basic(), delta, view.survey.serving()) {
        Ok(change) => u32::try_from(change).unwrap_or(u32::MAX),
        Err(reason) => return draft.because(reason),
    };
    let taken = take_back(view, draft, change, |_| true);
    if change > taken {
        add(view, draft, estimate, change - taken, taken);
    }
}

/// Makes `missing` workers, as far as cooldown and bounds let us.
fn add(view: &View<'_>, draft: &mut Draft, estimate: &Estimate, missing: u32, taken: u32) {
    if let Some(until) = view.cooldown_until() {
        return draft.because(Reason::Cooldown { until });
    }
    let mut sizes = view.survey.sizes();
    let taken_back = draft.taken_back.iter().filter_map(|host| view.situation.state.drains.get(host));
    taken_back.for_each(|drain| sizes.add(drain.group, 1));
    let owing = owing(view);
    let mut open = sizes;
    open.retain(|group| !draft.failing.contains(&group) && !owing.contains_key(&group));
    let additions = balance::grow(view.policy, &open, missing);
    let (size, added) = (sizes.total(), additions.total());
    let created = create(view, draft, additions);
    if created > 0 {
        let Estimate { metric, pending, workers, .. } = *estimate;
        let from = view.survey.serving();
        let reason = Reason::ScaleUp { from, to: from + taken + created, metric, pending, estimated: workers };
        draft.because(reason);
    }
    // Where orders are held back for another reason, that is the reason.
    let is_held_back = !draft.failing.is_empty() || !owing.is_empty();
    if added < missing {
        owing.into_iter().for_each(|(group, workers)| draft.because(Reason::Owed { group, workers }));
    }
    if added < missing && (created + taken > 0 || added == 0) && !is_held_back {
        draft.because(Reason::ReachedMaximum { wanted: size.saturating_add(missing), max: size + added });
    }
}

/// Groups of which the provider owes workers, promised for longer than one takes to come. More of the same would be
/// promised just so, time and again up to the maximum, and all would come together in the end.
fn owing(view: &View<'_>) -> BTreeMap<GroupName, u32> {
    let owed = GroupName::ALL.into_iter().map(|group| (group, promised_in_vain(view, group)));
    owed.filter(|(_, workers)| *workers > 0).collect()
}

/// Orders workers, unless the provider is not to be asked just now; returns how many.
fn create(view: &View<'_>, draft: &mut Draft, additions: Sizes) -> u32 {
    if additions.is_empty() {
        return 0;
    }
    if let Err(reason) = view.provider_is_free(false) {
        draft.because(reason);
        return 0;
    }
    // A new machine may get the name of one that is gone: first that name leaves the exclude file.
    let hosts: Vec<_> = leave::without_machine(view).map(|(host, _)| host.clone()).collect();
    if !hosts.is_empty() {
        draft.because(Reason::NameNotFree { hosts });
        return 0;
    }
    if deletion_goes_first(view) {
        return 0;
    }
    if view.capacity.capabilities.resizes && additions.iter().count() > 1 && view.may_order_beside(draft) {
        let timeout = view.policy.basic().graceful_decommission_timeout;
        draft.actions.push(Action::Resize { change: SizeChange::growth(additions.iter()), timeout });
        return additions.total();
    }
    let mut created = 0;
    // Those that need most come first: where orders may not overlap, the others wait for the next one.
    let mut additions: Vec<_> = additions.iter().collect();
    additions.sort_by_key(|(_, count)| Reverse(*count));
    for (group, count) in additions {
        if view.may_order_beside(draft) {
            draft.actions.push(Action::Create { group, count });
            created += count;
        }
    }
    created
}

/// Whether machines are deleted now, and none is made beside it. Where a quota is used up, what is of no use any more
/// holds what the refused order needs: were that one always tried first, each refusal would be waited out for both, and
/// neither would ever be done. So while orders fail they take turns.
fn deletion_goes_first(view: &View<'_>) -> bool {
    let failures = view.situation.state.provider_failures;
    !failures.is_multiple_of(2) && GroupName::ALL.into_iter().any(|group| !leave::to_delete(view, group).is_empty())
}

/// Takes up to `wanted` leaving workers back, those with most room first. That needs no cooldown: it costs nothing,
/// boots nothing, and can be undone. Returns how many.
fn take_back(view: &View<'_>, draft: &mut Draft, wanted: u32, of: impl Fn(&Drain) -> bool) -> u32 {
    let mut sizes = view.survey.sizes();
    // Machines that are ordered and that the provider's list does not show yet count: with them the group may be full.
    GroupName::ALL.into_iter().for_each(|group| sizes.add(group, view.ordered_and_not_seen(group)));
    let mut able: Vec<_> =
        view.situation.state.drains.iter().filter(|(host, drain)| of(drain) && can_serve(view, host, drain)).collect();
    able.sort_by_cached_key(|(host, _)| view.observation.node(host).map(|node| node.used.memory_mb));
    let mut decommissioning = Vec::new();
    let mut taken = Vec::new();
    for (host, drain) in able {
        let size = sizes.get(drain.group).unwrap_or(0);
        if u32::try_from(taken.len()).is_ok_and(|count| count >= wanted)
            || size >= view.policy.group(drain.group).max_instances
        {
            continue;
        }
        sizes.set(drain.group, size + 1);
        taken.push(host.clone());
        match drain.phase {
            DrainPhase::Cordoned { .. } => {
                draft.actions.push(Action::Uncordon { node: drain.node.clone(), full: drain.full });
            }
            _ => decommissioning.push(host.clone()),
        }
    }
    if !decommissioning.is_empty() {
        draft.actions.push(Action::Recommission { hosts: decommissioning });
    }
    if !taken.is_empty() {
        draft.because(Reason::Recommission { hosts: taken.clone() });
    }
    draft.taken_back.extend(taken.iter().cloned());
    u32::try_from(taken.len()).unwrap_or(u32::MAX)
}

/// Whether a leaving worker can be had back: it was ready when it was chosen, and its NodeManager is still there.
fn can_serve(view: &View<'_>, host: &str, drain: &Drain) -> bool {
    let record = view.situation.state.workers.get(host);
    if record.and_then(|record| record.not_ready_since).is_some_and(|since| since < drain.since) {
        // It leaves because it was of no use.
        return false;
    }
    let state = view.node_state(host);
    match drain.phase {
        DrainPhase::Cordoned { .. } => state == Some(NodeState::Running),
        DrainPhase::Decommissioning { .. } => matches!(state, Some(NodeState::Decommissioning | NodeState::Running)),
        DrainPhase::Decommissioned { .. } => false,
    }
}

fn scale_down(view: &View<'_>, draft: &mut Draft, estimate: &Estimate, delta: i64, from: DateTime<Utc>) {
    if let Some(reason) = still_pending(view).or_else(|| may_shrink(view).err()).or_else(|| half_knowledge(view, from))
    {
        return draft.because(reason);
    }
    // Of workers that serve: were those counted that do not, all that do could be taken away.
    let sizes = view.survey.serving_sizes();
    let size = sizes.total();
    let change = match basic::change(view.policy.basic(), delta, size) {
        Ok(change) => u32::try_from(-change).unwrap_or(0),
        Err(reason) => return draft.because(reason),
    };
    let removals = balance::shrink(view.policy, &sizes, change);
    let removed = removals.total();
    if removed > 0 {
        let Estimate { metric, allocated, workers, .. } = *estimate;
        draft.because(Reason::ScaleDown { from: size, to: size - removed, metric, allocated, estimated: workers });
        drain(view, draft, &removals);
    }
    if removed < change {
        draft.because(Reason::ReachedMinimum { wanted: size.saturating_sub(change), min: size - removed });
    }
}

/// Whether workers may be taken away at all just now, or why not.
fn may_shrink(view: &View<'_>) -> Result<(), Reason> {
    let draining = &view.situation.state.drains;
    if !draining.is_empty() {
        return Err(Reason::Draining { hosts: draining.keys().cloned().collect() });
    }
    if let Some(until) = view.cooldown_until() {
        return Err(Reason::Cooldown { until });
    }
    if view.survey.count_of(Standing::Booting) > 0 {
        let hosts = view.survey.with(Standing::Booting).map(|worker| worker.instance.host.clone()).collect();
        return Err(Reason::Booting { hosts });
    }
    let Capabilities { deletes_named, resizes, .. } = view.capacity.capabilities;
    if !deletes_named && !resizes {
        return Err(Reason::CannotDeleteNamed);
    }
    view.provider_is_free(true)
}

/// Nothing is taken away on samples that do not fill the window.
fn half_knowledge(view: &View<'_>, from: DateTime<Utc>) -> Option<Reason> {
    (!window_is_full(view.policy, view.situation, from)).then(|| window_not_full(view))
}

/// Whether samples fill the window that begins `from` here, all of it. Then they go on to do so while ticks go on.
pub(super) fn window_is_full(policy: &Policy, situation: &Situation, from: DateTime<Utc>) -> bool {
    let (cooldown, poll_interval) = (policy.basic().cooldown_period, situation.poll_interval);
    let (now, history) = (situation.now, &situation.history);
    let window = now - cooldown;
    let begins = history.reaches_back_to(window + tolerated(poll_interval));
    from <= window && begins && history.covers(from, now, longest_pause(cooldown, poll_interval))
}

/// Two poll intervals without a sample are an outage, not a pause …
const OUTAGE_POLLS: u32 = 2;
/// … unless they are less than a quarter of the window: a provider that takes long to answer is slow at each look, and
/// a window that is never full would never shrink.
const OUTAGE_SHARE: u32 = 4;

/// The longest pause between two samples that is no outage.
pub(super) fn longest_pause(cooldown: Duration, poll_interval: Duration) -> Duration {
    tolerated(poll_interval).max(cooldown / OUTAGE_SHARE)
}

/// So much may be missing at the beginning of a window.
pub(super) fn tolerated(poll_interval: Duration) -> Duration {
    poll_interval * OUTAGE_POLLS
}

fn window_not_full(view: &View<'_>) -> Reason {
    Reason::WindowNotFull { window_s: view.policy.basic().cooldown_period.as_secs() }
}

/// What one look alone shows is neither demand nor idleness.
fn still_pending(view: &View<'_>) -> Option<Reason> {
    let pending = view.situation.history.latest()?.pending;
    (pending.memory_mb > 0 || pending.vcores > 0)
        .then_some(Reason::Unconfirmed { pending_mb: pending.memory_mb, pending_vcores: pending.vcores })
}

fn unconfirmed(view: &View<'_>, samples: &Window) -> Option<Reason> {
    let confirmed = samples.latest;
    if confirmed.memory_mb > 0 || confirmed.vcores > 0 { None } else { still_pending(view) }
}

/// Machines are not made for demand that has passed, whatever the average says.
fn demand_gone(samples: &Window, estimate: &Estimate) -> Option<Reason> {
    let now = basic::amount(estimate.metric, samples.latest);
    (now == 0).then_some(Reason::DemandGone { metric: estimate.metric, pending: estimate.pending })
}

/// Cordons the cheapest workers of each group; or leaves the choice to a provider that deletes none by name.
fn drain(view: &View<'_>, draft: &mut Draft, removals: &Sizes) {
    if !view.capacity.capabilities.deletes_named {
        let timeout = view.policy.basic().graceful_decommission_timeout;
        draft.actions.push(Action::Resize { change: SizeChange::shrinkage(removals.iter()), timeout });
        return;
    }
    for (group, count) in removals.iter() {
        let ready = view.survey.with(Standing::Ready).filter(|worker| worker.group == group).collect();
        let leaving = select::cheapest_first(view.observation, ready).into_iter().take(count as usize);
        for (worker, node) in leaving.filter_map(|worker| worker.node.map(|node| (worker, node))) {
            draft.actions.push(leave::cordon(node, group, &worker.instance.name, node.total));
        }
    }
}
