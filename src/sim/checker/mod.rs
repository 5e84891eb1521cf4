//! Watches what must always hold, after every event and every look, and writes down what does not. It knows the truth of
//! the simulated world, which the controller does not, and changes nothing.
//!
//! | promise | where |
//! |---|---|
//! | sizes stay within bounds; orders are saved first, given once, forgotten never | [`mod@orders`] |
//! | no container is lost to us before its time; leaving workers are taken back before others are made; nothing shrinks on missing data; one order at a time; same situation, same decision; each look ends | here |
//! | a cluster left alone comes to rest at its minimum, with nothing left over; jobs that can run do end | [`rest`] |
//!
//! # What is no promise
//! The exceptions are as narrow as they could be made, and each is told where it is made. What YARN does by itself when
//! it restarts (excluded nodes go, cordoned ones may be shut down) is the environment's doing, and counted as a fault by
//! the world.

pub mod orders;
pub mod rest;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use chrono::{DateTime, Utc};

use self::orders::Orders;
use super::{
    Ms, ms,
    outcome::Violation,
    scenario::Scenario,
    world::{Killed, KilledBy},
};
use crate::{
    decide,
    model::{Action, Drain, DrainPhase, GroupName, Intent, NodeState, Situation, State},
    policy::Policy,
    ports::Tick,
};

/// Of one promise so many violations are kept: the first ones tell.
const KEPT_OF_EACH: usize = 3;

/// Every so many looks, and at each one that orders something, the decision is computed again.
const COMPUTED_AGAIN_EVERY: u64 = 50;

/// Sizes stay within what the policy allows.
pub const BOUNDS: &str = "sizes stay within bounds";
/// No container is lost to us before its graceful decommission time-out.
pub const TIMEOUT: &str = "no container is lost to us before its time-out";
/// Leaving workers are taken back before others are made.
pub const TAKE_BACK: &str = "nothing is booted while a leaving worker could serve";
/// No group has workers created and deleted in one tick.
pub const NO_CHURN: &str = "no group has workers created and deleted in one tick";
/// Nothing is taken away on missing data.
pub const MISSING_DATA: &str = "missing data never shrinks the cluster";
/// The same situation gives the same decision.
pub const SAME_DECISION: &str = "same situation, same decision";
/// One order at a time, where the provider cannot do more.
pub const ONE_ORDER: &str = "one order at a time where the provider does not overlap";
/// Orders are saved before they are given, and given once.
pub const NO_DOUBLE: &str = "no order is doubled";
/// Orders are remembered until they end.
pub const NO_FORGET: &str = "no order is forgotten";
/// Decisions stop where nothing changes, at the minimum where nothing is asked for.
pub const REST: &str = "a cluster left alone comes to rest";
/// What waits, waits for a reason.
pub const JOBS_END: &str = "jobs that can run do end";
/// Looks are made at the pace that was set.
pub const PACE: &str = "every tick ends";
/// What was paid for is accounted for.
pub const ACCOUNTS: &str = "the accounts add up";

/// Watches one run.
#[derive(Debug)]
pub struct Checker {
    policy: Policy,
    overlaps: bool,
    violations: Vec<Violation>,
    orders: Orders,
    rest: rest::Rest,
    looks: u64,
    /// Hosts (and machines: in the simulator both have one name) that were given up by false answers.
    misled: BTreeSet<String>,
    ready_deadline: Duration,
}

impl Checker {
    /// One that holds a run of this scenario to this policy.
    pub fn new(scenario: &Scenario, policy: &Policy) -> Self {
        Self {
            policy: policy.clone(),
            overlaps: scenario.cloud.overlaps,
            violations: Vec::new(),
            orders: Orders::default(),
            rest: rest::Rest::new(scenario, policy),
            looks: 0,
            misled: BTreeSet::new(),
            ready_deadline: scenario.settings.ready_deadline,
        }
    }

    /// What was found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    fn broken(&mut self, at_ms: Ms, promise: &'static str, text: String) {
        if self.violations.iter().filter(|violation| violation.promise == promise).count() < KEPT_OF_EACH {
            self.violations.push(Violation { at_ms, promise, text });
        }
    }

    /// The controller has looked and decided.
    pub fn tick(&mut self, now: Ms, tick: &Tick<'_>) {
        self.looks += 1;
        let mut found = Vec::new();
        self.orders.tick(&tick.decision.actions, &mut found);
        found.extend(overtaken(tick).map(|text| (TAKE_BACK, text)));
        found.extend(churned(&tick.decision.actions).map(|text| (NO_CHURN, text)));
        found.extend(blind(tick).map(|text| (MISSING_DATA, text)));
        found.extend(self.beside_each_other(tick).map(|text| (ONE_ORDER, text)));
        found.extend(too_late(tick).map(|text| (PACE, text)));
        if !tick.decision.actions.is_empty() || self.looks.is_multiple_of(COMPUTED_AGAIN_EVERY) {
            found.extend(differs(tick).map(|text| (SAME_DECISION, text)));
        }
        for (promise, text) in found {
            self.broken(now, promise, text);
        }
        self.rest.tick(now, tick);
    }

    /// Containers have ended by orders of ours.
    ///
    /// A worker that YARN's answers have left out for the whole time that a worker may be not ready is given up, and what
    /// it runs in truth dies with it: only the environment could have known better.
    pub fn killed(&mut self, killed: Vec<Killed>) {
        let promised = ms(self.policy.basic().graceful_decommission_timeout);
        for Killed { at_ms, host, containers, by } in killed {
            let how = match by {
                KilledBy::Decommission { since_ms } if at_ms >= since_ms.saturating_add(promised) => continue,
                KilledBy::Decommission { since_ms } => {
                    format!(
                        "{} s after its decommission began; {} s were promised",
                        secs(at_ms - since_ms),
                        secs(promised)
                    )
                }
                KilledBy::Deletion { .. } if self.misled.contains(&host) => continue,
                KilledBy::Recommission => "by a recommission that gave the node less than they hold".to_owned(),
                KilledBy::Deletion { state } => format!("by the deletion of its machine while the node was {state:?}"),
            };
            self.broken(at_ms, TIMEOUT, format!("{host} lost {containers} containers {how}"));
        }
    }

    /// So many machines of each group stay; `since` tells those that stayed at the last call.
    pub fn sizes(&mut self, now: Ms, staying: &BTreeMap<GroupName, u32>) {
        for (group, size, max) in self.orders.outgrown(staying, &self.policy) {
            self.broken(
                now,
                BOUNDS,
                format!("the {group} group has grown to {size} workers, maxInstances allows {max}"),
            );
        }
    }

    /// An order is given to the cloud, while YARN's answers are not the truth.
    pub fn misled(&mut self, intent: &Intent, saved: &State, clock: DateTime<Utc>) {
        let Intent::Delete { instances, .. } = intent else { return };
        let is_late = |host: &&String| {
            let Some(record) = saved.workers.get(*host) else { return false };
            // Of one that was never ready YARN may list the machine that had the name before.
            let since = if record.ready_at.is_none() { record.not_ready_since } else { record.unlisted_since };
            since.is_some_and(|since| since + self.ready_deadline <= clock)
        };
        self.misled.extend(instances.iter().filter(is_late).cloned());
    }

    /// An order was given to the cloud; `saved` is the state that the store holds.
    pub fn order(&mut self, order: &orders::Order<'_>, saved: &State) {
        for (promise, text) in self.orders.given(order, saved) {
            self.broken(order.at_ms, promise, text);
        }
        self.rest.ordered(order.at_ms, order.intent, order.operation.is_some());
    }

    /// The state was saved; `clock` is the controller's, `runs` tells whether the cloud is still at work on an order.
    pub fn saved(&mut self, now: Ms, clock: DateTime<Utc>, state: &State, runs: impl Fn(usize) -> bool) {
        for text in self.orders.saved(state, clock, runs) {
            self.broken(now, NO_FORGET, text);
        }
    }

    /// The controller was killed: what its last tick decided is known to nobody.
    pub fn died(&mut self) {
        self.orders.died();
    }

    /// Time has gone on until `now`; this is how the world is.
    pub fn passed(&mut self, now: Ms, still: rest::Demand) {
        self.rest.passed(now, still);
    }

    /// Whether there is nothing more to be seen: all has been quiet for long enough.
    pub fn is_satisfied(&self, now: Ms) -> bool {
        self.rest.is_over(now)
    }

    /// The run has ended; returns what was found, and whether the end could be judged.
    pub fn close(mut self, now: Ms, left: &rest::Left) -> (Vec<Violation>, bool) {
        let is_over = self.rest.is_over(now);
        if is_over {
            for (promise, text) in self.rest.judge(now, left, &self.policy) {
                self.broken(now, promise, text);
            }
        }
        (self.violations, is_over)
    }

    /// More than one order, or one beside another that is under way, where the provider takes one at a time.
    fn beside_each_other(&self, tick: &Tick<'_>) -> Option<String> {
        let is_order = |action: &&Action| action.is_for_provider();
        let orders = tick.decision.actions.iter().filter(is_order).count();
        let under_way = tick.situation.state.operations.len();
        (!self.overlaps && orders > 0 && orders + under_way > 1)
            .then(|| format!("{orders} orders decided beside {under_way} that are under way"))
    }
}

/// A group for which workers are made, although a leaving one of it could be taken back.
///
/// A worker that was not ready when it was chosen leaves because it is of no use: it is no reason not to make another.
fn overtaken(tick: &Tick<'_>) -> Option<String> {
    let (decision, situation) = (tick.decision, tick.situation);
    let is_made = |group: &GroupName| decision.actions.iter().any(|action| action.adds(*group) > 0);
    let made: BTreeSet<_> = GroupName::ALL.into_iter().filter(is_made).collect();
    let taken: BTreeSet<&str> = decision.actions.iter().flat_map(taken_back).collect();
    let left = situation.state.drains.iter().find(|(host, drain)| {
        made.contains(&drain.group) && !taken.contains(host.as_str()) && could_serve(situation, host, drain)
    });
    left.map(|(host, drain)| format!("{} workers are made although {host} could be taken back: {drain:?}", drain.group))
}

fn taken_back(action: &Action) -> Vec<&str> {
    match action {
        Action::Uncordon { node, .. } => vec![&node.host],
        Action::Recommission { hosts } => hosts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

fn could_serve(situation: &Situation, host: &str, drain: &Drain) -> bool {
    let was_ready = situation.state.workers.get(host).and_then(|record| record.not_ready_since);
    let was_ready = was_ready.is_none_or(|since| since >= drain.since);
    let state = situation.observation.as_ref().ok().and_then(|seen| seen.node(host)).map(|node| node.state);
    let is_there = match drain.phase {
        DrainPhase::Cordoned { .. } => state == Some(NodeState::Running),
        DrainPhase::Decommissioning { .. } => matches!(state, Some(NodeState::Running | NodeState::Decommissioning)),
        DrainPhase::Decommissioned { .. } => false,
    };
    was_ready && is_there
}

fn churned(actions: &[Action]) -> Option<String> {
    let is_made = |group: &GroupName| actions.iter().any(|action| action.adds(*group) > 0);
    let deleted = actions.iter().find_map(|action| match action {
        Action::Delete { group, instances } if is_made(group) => Some((group, instances)),
        _ => None,
    });
    deleted.map(|(group, instances)| format!("{group} workers are made while {} are deleted", instances.join(", ")))
}

/// Anything decided without an answer of YARN and one of the provider: missing is not zero.
fn blind(tick: &Tick<'_>) -> Option<String> {
    let (yarn, cloud) = (tick.situation.observation.is_ok(), tick.situation.capacity.is_ok());
    let told = tick.decision.actions.first().filter(|_| !yarn || !cloud)?;
    Some(format!("{told}, although YARN answered: {yarn}, the provider answered: {cloud}"))
}

fn too_late(tick: &Tick<'_>) -> Option<String> {
    let (now, next) = (tick.situation.now, tick.decision.next_at);
    let is_due = next > now && next <= now + tick.situation.poll_interval;
    (!is_due).then(|| format!("at {now} the next look was set to {next}"))
}

/// The decision computed again, from the situation itself and from its text.
fn differs(tick: &Tick<'_>) -> Option<String> {
    let again = decide::decide(tick.policy, tick.situation);
    if again != *tick.decision {
        return Some(format!("decided {:?}, and again {:?}", tick.decision, again));
    }
    let read = serde_json::to_string(tick.situation).and_then(|text| serde_json::from_str::<Situation>(&text));
    match read {
        Err(error) => Some(format!("the situation cannot be written and read: {error}")),
        Ok(read) => {
            let again = decide::decide(tick.policy, &read);
            (again != *tick.decision).then(|| format!("decided {:?}, and {again:?} as read", tick.decision))
        }
    }
}

fn secs(ms: Ms) -> f64 {
    ms as f64 / 1000.0
}
