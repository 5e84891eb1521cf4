//! How a run ends: a cluster that is left alone comes to rest, at its minimum where nothing is asked for.

use std::{collections::BTreeMap, time::Duration};

use super::{JOBS_END, REST};
use crate::{
    decide::basic,
    model::{Action, GroupName, Intent, Reason, State},
    policy::Policy,
    ports::Tick,
    sim::{
        Ms, ms,
        scenario::{Delay, Fault, Scenario},
    },
};

/// The longest that the controller waits after a failed order.
const BACKOFF_MAX: Ms = 15 * 60_000;

/// What is asked for and held at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// Containers asked for and not granted.
    pub pending: u64,
    /// Containers that run.
    pub running: u64,
    /// Whether all jobs have been submitted and have ended.
    pub is_done: bool,
    /// Orders that the cloud is at work on. The controller may have given one up that takes longer than it waits.
    pub orders: usize,
}

/// What is there when the run ends.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// What is asked for and held.
    pub demand: Demand,
    /// Machines that stay, by group.
    pub sizes: BTreeMap<GroupName, u32>,
    /// Machines that are not what a worker should be.
    pub odd: Vec<String>,
    /// Hosts on the exclude file.
    pub excluded: Vec<String>,
    /// The controller's memory.
    pub state: State,
}

/// What has been seen of a run's end so far.
#[derive(Debug)]
pub(super) struct Rest {
    settle_ms: Ms,
    /// The last change of demand, or the end of the last fault.
    quiet_since: Ms,
    demand: Demand,
    last_order: Option<(Ms, String)>,
    /// The cloud has refused the last order.
    is_refused: bool,
    reasons: Vec<Reason>,
    /// Machines are taken away all the time, or never given back: there is no rest.
    never_rests: bool,
    deletes_named: bool,
}

/// When the last fault has ended, and what came of it.
pub fn faults_end(scenario: &Scenario) -> Ms {
    let expiry = ms(scenario.cluster.node_expiry);
    let end = scenario.events.iter().map(|event| {
        let noticed = if matches!(event.fault, Fault::MachinesDie(_)) { expiry } else { 0 };
        ms(event.at + event.lasts) + noticed
    });
    end.max().unwrap_or(0)
}

/// How long a cluster may take to come to rest after the last change of demand and the last fault: it waits out failed
/// orders, replaces what is of no use, drains to the time-out, and shrinks by so much once a cooldown.
pub fn settle_ms(scenario: &Scenario, policy: &Policy) -> Ms {
    let basic = policy.basic();
    let rounds = if basic.scale_down_factor < 1.0 { 10 } else { 4 };
    let looks = 4 * ms(scenario.settings.poll_interval) + ms(scenario.cloud.delete_time + scenario.cloud.list_lag);
    let round = 2 * ms(basic.cooldown_period) + looks + 60_000;
    let boots = scenario.cloud.groups.values().map(|group| ms(longest(&group.boot)));
    let late = 2 * ms(scenario.settings.ready_deadline).max(2 * boots.max().unwrap_or(0));
    rounds * round + 2 * late + 2 * BACKOFF_MAX + ms(basic.graceful_decommission_timeout)
}

fn longest(delay: &Delay) -> Duration {
    match delay {
        Delay::Fixed(time) | Delay::Tail { p95: time, .. } => *time,
        Delay::List(times) => times.iter().max().copied().unwrap_or_default(),
    }
}

impl Rest {
    pub(super) fn new(scenario: &Scenario, policy: &Policy) -> Self {
        Self {
            settle_ms: settle_ms(scenario, policy),
            quiet_since: faults_end(scenario),
            demand: Demand::default(),
            last_order: None,
            is_refused: false,
            reasons: Vec::new(),
            never_rests: scenario.cloud.groups.values().any(|group| group.mean_lifetime.is_some()),
            deletes_named: scenario.cloud.deletes_named,
        }
    }

    pub(super) fn passed(&mut self, now: Ms, demand: Demand) {
        if demand != self.demand {
            (self.demand, self.quiet_since) = (demand, self.quiet_since.max(now));
        }
    }

    pub(super) fn tick(&mut self, now: Ms, tick: &Tick<'_>) {
        let is_told = |action: &&Action| !action.is_for_provider();
        if let Some(action) = tick.decision.actions.iter().find(is_told) {
            self.last_order = Some((now, action.to_string()));
        }
        self.reasons.clone_from(&tick.decision.reasons);
    }

    /// The cloud was given an order. One that it refuses changes nothing, and may be given again for ever: a quota may be
    /// raised any time.
    pub(super) fn ordered(&mut self, now: Ms, intent: &Intent, is_taken: bool) {
        if is_taken {
            self.last_order = Some((now, intent.to_string()));
        }
        self.is_refused = !is_taken;
    }

    /// Whether nothing has changed for so long that all must be at rest.
    pub(super) fn is_over(&self, now: Ms) -> bool {
        !self.never_rests && self.demand.orders == 0 && now >= self.quiet_since.saturating_add(self.settle_ms)
    }

    pub(super) fn judge(&self, now: Ms, left: &Left, policy: &Policy) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let still_since = now.saturating_sub(self.settle_ms / 4);
        if let Some((at, what)) = self.last_order.as_ref().filter(|(at, _)| *at >= still_since) {
            let quiet = (now - self.quiet_since) / 1000;
            found.push((REST, format!("{what} at {at} ms, although nothing has changed for {quiet} s")));
        }
        if left.demand.pending > 0 {
            found.extend(self.waits_for_nothing(left, policy).map(|text| (JOBS_END, text)));
        }
        // A cluster of which nearly half is not ready is left alone until somebody has looked, as it is: the controller
        // says so.
        let is_held = self.reasons.iter().any(|reason| matches!(reason, Reason::UnhealthyCluster { .. }));
        if !is_held {
            let sizes = self.not_at_minimum(left, policy).filter(|_| left.demand.is_done);
            found.extend(self.left_over(left).into_iter().chain(sizes).map(|text| (REST, text)));
        }
        found
    }

    /// Something waits although the cluster could grow for it. It may wait where the policy's factor or fraction leaves
    /// nothing of the change, where the cloud refuses, and where the cluster is held for its health.
    fn waits_for_nothing(&self, left: &Left, policy: &Policy) -> Option<String> {
        let told = self.reasons.iter().any(|reason| {
            matches!(
                reason,
                Reason::FactorRoundedToZero { .. } | Reason::BelowThreshold { .. } | Reason::UnhealthyCluster { .. }
            )
        });
        let grows = left.sizes.iter().find(|(group, size)| {
            let bounds = policy.group(**group);
            bounds.weight > 0 && **size < bounds.max_instances
        });
        let (group, size) = grows.filter(|_| !told && !self.is_refused)?;
        let reasons: Vec<_> = self.reasons.iter().map(ToString::to_string).collect();
        let pending = left.demand.pending;
        Some(format!("{pending} containers wait, the {group} group has {size} workers; {}", reasons.join("; ")))
    }

    fn left_over(&self, left: &Left) -> Vec<String> {
        let mut found = Vec::new();
        // Where the provider cannot delete what is named, what is of no use stays.
        if !left.odd.is_empty() && self.deletes_named {
            found.push(format!("machines are left over: {}", left.odd.join("; ")));
        }
        if !left.excluded.is_empty() {
            found.push(format!("the exclude file still names {}", left.excluded.join(", ")));
        }
        if !left.state.drains.is_empty() {
            found.push(format!("still leaving: {:?}", left.state.drains));
        }
        if !left.state.operations.is_empty() {
            found.push(format!("still under way: {:?}", left.state.operations));
        }
        found
    }

    /// A group that is not at its minimum; above it a group may stay where the factor or the fraction leaves nothing of
    /// the change, or nothing can be deleted.
    fn not_at_minimum(&self, left: &Left, policy: &Policy) -> Option<String> {
        let wrong = left.sizes.iter().find(|(group, size)| **size != policy.group(**group).min_instances);
        let (group, size) = wrong?;
        let min = policy.group(*group).min_instances;
        let all: u32 = left.sizes.values().sum();
        let change = basic::change(policy.basic(), -i64::from(all), all);
        let is_kept = *size > min && (change.is_err() || !self.deletes_named);
        (!is_kept).then(|| format!("the {group} group has {size} workers of {all}, its minimum is {min}"))
    }
}
