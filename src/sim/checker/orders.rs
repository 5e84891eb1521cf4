//! Orders to the cloud: saved before they are given, given once, remembered until they end; and sizes that they lead to.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};

use super::{NO_DOUBLE, NO_FORGET};
use crate::{
    model::{Action, GroupName, Intent, Operation, State},
    policy::Policy,
    sim::Ms,
};

/// The controller may give up an order that was never acknowledged after so long by its clock.
const UNACKNOWLEDGED_MAX: Duration = Duration::from_secs(10 * 60);
/// It may wait no longer for an operation that has been under way for so long by its clock.
const OPERATION_MAX: Duration = Duration::from_secs(60 * 60);

/// An order as it reached the cloud.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// When.
    pub at_ms: Ms,
    /// The controller's name for it.
    pub request_id: &'a str,
    /// What was ordered.
    pub intent: &'a Intent,
    /// How many machines came of it.
    pub machines: u64,
    /// The operation's number, where it was taken.
    pub operation: Option<usize>,
}

/// What has been ordered so far.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// Every order by its request id: what it asked for, how many machines came of it, its operation at the cloud.
    given: BTreeMap<String, (Intent, u64, Option<usize>)>,
    /// First given since the last tick ended.
    fresh: Vec<Intent>,
    /// Operations as they were saved last.
    saved: Vec<Operation>,
    /// Machines that stayed when they were counted last.
    staying: Option<BTreeMap<GroupName, u32>>,
}

impl Orders {
    pub(super) fn given(&mut self, order: &Order<'_>, saved: &State) -> Vec<(&'static str, String)> {
        let Order { request_id, intent, machines, operation, .. } = *order;
        let mut found = Vec::new();
        if !saved.operations.iter().any(|kept| kept.request_id == request_id && kept.intent == *intent) {
            found.push((NO_FORGET, format!("{request_id} was ordered and is not in the saved state: {intent}")));
        }
        let wanted: u64 = GroupName::ALL.into_iter().map(|group| u64::from(intent.adds(group))).sum();
        let is_first = !self.given.contains_key(request_id);
        let known = self.given.entry(request_id.to_owned()).or_insert_with(|| (intent.clone(), 0, None));
        if known.0 != *intent {
            found.push((NO_DOUBLE, format!("{request_id} names two orders: {} and {intent}", known.0)));
        }
        known.1 += machines;
        known.2 = known.2.or(operation);
        if known.1 > wanted {
            found.push((NO_DOUBLE, format!("{request_id} has made {} machines: {intent}", known.1)));
        }
        if is_first {
            self.fresh.push(intent.clone());
        }
        found
    }

    /// A tick has ended: each of its new orders is one of its decision.
    pub(super) fn tick(&mut self, actions: &[Action], found: &mut Vec<(&'static str, String)>) {
        let mut decided: Vec<_> = actions.iter().filter_map(intent_of).collect();
        for intent in self.fresh.drain(..) {
            match decided.iter().position(|other| *other == intent) {
                Some(index) => drop(decided.swap_remove(index)),
                None => found.push((NO_DOUBLE, format!("ordered, and not decided, or twice: {intent}"))),
            }
        }
    }

    /// The controller was killed. What it had saved and not given yet is given by the next one, and is no new order.
    pub(super) fn died(&mut self) {
        self.fresh.clear();
        for Operation { request_id, intent, .. } in &self.saved {
            self.given.entry(request_id.clone()).or_insert_with(|| (intent.clone(), 0, None));
        }
    }

    /// What the cloud is at work on is remembered; an order may be given up by its age, as the controller's clock has it.
    pub(super) fn saved(&mut self, state: &State, clock: DateTime<Utc>, runs: impl Fn(usize) -> bool) -> Vec<String> {
        let kept = |id: &str| state.operations.iter().any(|operation| operation.request_id == id);
        let mut found = Vec::new();
        for before in self.saved.iter().filter(|before| !kept(&before.request_id)) {
            let limit = if before.operation_id.is_some() { OPERATION_MAX } else { UNACKNOWLEDGED_MAX };
            let order = self.given.get(&before.request_id).and_then(|(_, _, operation)| *operation);
            if before.at + limit >= clock && order.is_some_and(&runs) {
                found
                    .push(format!("{} is under way and not remembered any more: {}", before.request_id, before.intent));
            }
        }
        self.saved.clone_from(&state.operations);
        found
    }

    /// Groups that have more workers than they may, and more than before, with their sizes and maxima. A group that
    /// began above its maximum, or whose maximum was lowered, only may not grow.
    pub(super) fn outgrown(
        &mut self,
        staying: &BTreeMap<GroupName, u32>,
        policy: &Policy,
    ) -> Vec<(GroupName, u32, u32)> {
        let before = self.staying.get_or_insert_with(|| staying.clone());
        let outgrown = staying.iter().map(|(group, size)| (*group, *size, policy.group(*group).max_instances));
        let outgrown = outgrown
            .filter(|(group, size, max)| size > max && before.get(group).is_some_and(|before| size > before))
            .collect();
        before.clone_from(staying);
        outgrown
    }
}

fn intent_of(action: &Action) -> Option<Intent> {
    match action {
        Action::Create { group, count } => Some(Intent::Create { group: *group, count: *count }),
        Action::Delete { group, instances } => Some(Intent::Delete { group: *group, instances: instances.clone() }),
        Action::Resize { change, timeout } => Some(Intent::Resize { change: *change, timeout: *timeout }),
        _ => None,
    }
}
