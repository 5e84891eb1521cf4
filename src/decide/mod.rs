//! The decision: pure, from a situation to actions and reasons. No I/O, no clock, no async.
//!
//! The pipeline: who is who ([`Matching`], [`Survey`]) → what holds everything back (`gates`) → what the algorithm wants
//! ([`basic`], `scale`) within bounds and by weight ([`balance`]), of the workers that cost least (`select`) →
//! how far the leaving workers are (`leave`).

pub mod balance;
pub mod basic;
mod foresight;
mod gates;
mod leave;
mod matching;
mod scale;
mod select;
mod settled;
mod survey;

pub use foresight::Foresight;
pub use matching::Matching;
pub use settled::{settled_until, settled_until_on};
pub use survey::{Standing, Survey, Worker};

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, Utc};

use crate::{
    model::{
        Action, Capacity, Decision, GroupName, Intent, NodeState, Observation, Readiness, Reason, Sample, Situation,
        Workers,
    },
    policy::Policy,
};

/// What to do now, why (and why not more), and when to ask again. The same situation gives the same decision.
pub fn decide(policy: &Policy, situation: &Situation) -> Decision {
    match Survey::of(policy, situation) {
        Some(survey) => decide_on(policy, situation, &survey),
        None => decided(situation, in_the_dark(situation)),
    }
}

/// The same, of a situation of which this is a survey that [still holds](Survey::still_holds), made by this policy.
pub fn decide_on(policy: &Policy, situation: &Situation, survey: &Survey) -> Decision {
    let (observation, capacity) = (survey.matching().observation(), survey.matching().capacity());
    let view = View { policy, situation, survey, observation, capacity, now: situation.now };
    let mut draft = Draft::default();
    if let Some(reason) = gates::held(&view) {
        draft.because(reason);
    }
    match gates::hold(&view) {
        Some(reason) => draft.because(reason),
        None => scale::scale(&view, &mut draft),
    }
    leave::advance(&view, &mut draft);
    gates::remark(&view, &mut draft);
    decided(situation, draft)
}

/// Nothing is done where YARN or the provider does not answer.
fn in_the_dark(situation: &Situation) -> Draft {
    let mut draft = Draft::default();
    match (&situation.observation, &situation.capacity) {
        (Err(outage), _) => draft.because(Reason::NoObservation { error: outage.text.clone() }),
        (_, Err(outage)) => draft.because(Reason::NoCapacity { error: outage.text.clone() }),
        (Ok(_), Ok(_)) => {}
    }
    draft
}

fn decided(situation: &Situation, mut draft: Draft) -> Decision {
    // The first reason is the headline: what is done comes before what is not.
    draft.reasons.sort_by_key(|reason| !reason.is_of_action());
    // Twice in a poll interval: a change that the first look shows is confirmed by the second within it.
    Decision { actions: draft.actions, reasons: draft.reasons, next_at: situation.now + situation.poll_interval / 2 }
}

/// The sample that this look adds to the history.
pub fn sample(policy: &Policy, situation: &Situation) -> Option<Sample> {
    Survey::of(policy, situation).map(|survey| survey.sample(situation.now))
}

/// How many workers there are, by what they are worth; `None` where YARN or the provider did not answer.
pub fn workers(policy: &Policy, situation: &Situation) -> Option<Workers> {
    Survey::of(policy, situation).map(|survey| survey.counted())
}

/// How long samples are kept: over the cooldown, and back to the one before it.
pub fn keep_samples(policy: &Policy, poll_interval: Duration) -> Duration {
    let cooldown = policy.basic().cooldown_period;
    cooldown + scale::longest_pause(cooldown, poll_interval)
}

/// What the decision looks at.
struct View<'a> {
    policy: &'a Policy,
    situation: &'a Situation,
    survey: &'a Survey,
    observation: &'a Observation,
    capacity: &'a Capacity,
    now: DateTime<Utc>,
}

impl View<'_> {
    /// When the cooldown is over; `None` when it is.
    fn cooldown_until(&self) -> Option<DateTime<Utc>> {
        let until = self.situation.state.cooldown_from()? + self.policy.basic().cooldown_period;
        (self.now < until).then_some(until)
    }

    /// Whether the provider may be given an order that makes or deletes machines, or why not.
    fn provider_is_free(&self, to_delete: bool) -> Result<(), Reason> {
        let state = &self.situation.state;
        if let Readiness::Held { why } = &self.capacity.readiness {
            return Err(Reason::ProviderHeld { why: why.clone() });
        }
        if let Some(until) = state.provider_retry_at.filter(|until| self.now < *until) {
            return Err(Reason::ProviderWait { until });
        }
        let overlaps = self.capacity.capabilities.overlaps;
        let in_the_way = state.operations.iter().find(|operation| match operation.intent {
            Intent::Create { .. } => !(overlaps && to_delete),
            Intent::Delete { .. } => !overlaps,
            Intent::Resize { .. } => true,
        });
        if let Some(operation) = in_the_way {
            return Err(Reason::OperationUnderWay { what: operation.intent.to_string() });
        }
        match &self.capacity.readiness {
            Readiness::Busy { what } => Err(Reason::ProviderBusy { what: what.clone() }),
            Readiness::Ready | Readiness::Held { .. } => Ok(()),
        }
    }

    /// Whether an order that makes workers of this group is under way.
    fn creates_in(&self, group: GroupName) -> bool {
        self.situation.state.operations.iter().any(|operation| operation.intent.adds(group) > 0)
    }

    /// Workers of this group that are ordered and that the provider's list has not shown yet: so many as came into it
    /// since the order was given are those.
    fn ordered_and_not_seen(&self, group: GroupName) -> u32 {
        let state = &self.situation.state;
        let ordered = state.operations.iter().map(|operation| (operation.at, operation.intent.adds(group)));
        let ordered = ordered.filter(|(_, count)| *count > 0);
        let came_since = |at| {
            let is_new = |host: &str| state.workers.get(host).is_some_and(|record| record.first_seen_at >= at);
            let of_group = self.survey.workers().filter(|worker| worker.group == group);
            u32::try_from(of_group.filter(|worker| is_new(&worker.instance.host)).count()).unwrap_or(u32::MAX)
        };
        ordered.map(|(at, count)| count.saturating_sub(came_since(at))).sum()
    }

    /// Whether an order to the provider may stand beside those of this decision.
    fn may_order_beside(&self, draft: &Draft) -> bool {
        let ordered = draft.actions.iter().any(Action::is_for_provider);
        self.capacity.capabilities.overlaps || !ordered
    }

    fn node_state(&self, host: &str) -> Option<NodeState> {
        self.observation.node(host).map(|node| node.state)
    }
}

/// A decision in the making.
#[derive(Default)]
struct Draft {
    actions: Vec<Action>,
    reasons: Vec<Reason>,
    /// Hosts that are taken back in this decision: they do not leave any further.
    taken_back: BTreeSet<String>,
    /// Groups below their minimum while orders fail: the load is not served by them.
    failing: BTreeSet<GroupName>,
}

impl Draft {
    /// Adds a reason, once.
    fn because(&mut self, reason: Reason) {
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Whether workers leave by it: by our own choice, or by the provider's.
    fn shrinks(&self) -> bool {
        self.actions.iter().any(|action| match action {
            Action::Cordon { .. } => true,
            Action::Resize { change, .. } => change.iter().any(|(_, change)| change < 0),
            _ => false,
        })
    }

    fn creates_in(&self, group: GroupName) -> bool {
        self.actions.iter().any(|action| action.adds(group) > 0)
    }
}
