//! What was paid for, and what it was good for.

use std::collections::BTreeMap;

use serde::Serialize;

use super::round;
use crate::{
    model::GroupName,
    sim::outcome::{Account, GroupFacts, Outcome},
};

const MS_PER_HOUR: f64 = 3_600_000.0;

/// What was paid for, in machine-hours, by what it was good for. Their sum is what was billed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Parts {
    /// Work that counted.
    pub useful: f64,
    /// Work that was thrown away.
    pub lost: f64,
    /// Held by containers that could not work yet.
    pub held: f64,
    /// Between a machine's start and its registration with YARN.
    pub boot: f64,
    /// Registered, without any container; and the rounding up to the least that is billed.
    pub idle: f64,
    /// Left over beside containers.
    pub fragmentation: f64,
}

impl Parts {
    /// The parts' names and values, in the order in which they are shown.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        let Self { useful, lost, held, boot, idle, fragmentation } = *self;
        [
            ("useful", useful),
            ("lost", lost),
            ("held", held),
            ("boot", boot),
            ("idle", idle),
            ("fragmentation", fragmentation),
        ]
    }

    fn map(self, other: Self, f: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            useful: f(self.useful, other.useful),
            lost: f(self.lost, other.lost),
            held: f(self.held, other.held),
            boot: f(self.boot, other.boot),
            idle: f(self.idle, other.idle),
            fragmentation: f(self.fragmentation, other.fragmentation),
        }
    }
}

/// What one group cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupCost {
    /// In the scenario's currency.
    pub cost: f64,
    /// Machines times hours, as billed.
    pub machine_hours: f64,
    /// GPUs times hours, as billed; 0 for machines without GPUs.
    pub gpu_hours: f64,
    /// GPU-hours of work that was thrown away.
    pub gpu_hours_lost: f64,
    /// What it was good for.
    pub parts: Parts,
}

/// What everything cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Costs {
    /// All groups. Where some group has no price, `cost` is what the others cost.
    pub total: GroupCost,
    /// The share of what was paid for that was useful, 0 to 1: by price, or by machine-hours where a group has no price.
    pub useful_share: Option<f64>,
    /// Whether every group has a price: if not, whatever weighs groups weighs machine-hours.
    pub priced: bool,
    /// Each group by itself.
    pub groups: BTreeMap<GroupName, GroupCost>,
    /// Groups whose parts do not add up to what was billed, as sentences: always empty, or a bug of the simulator.
    pub broken: Vec<String>,
}

impl Costs {
    /// What a run cost.
    pub fn of(outcome: &Outcome) -> Self {
        let priced = !outcome.groups.is_empty() && outcome.groups.values().all(|group| group.price_per_hour > 0.0);
        let mut costs = Self { priced, ..Self::default() };
        let (mut useful, mut paid) = (0.0, 0.0);
        for (name, account) in &outcome.accounts {
            costs.broken.extend(broken(*name, account));
            let facts = outcome.groups.get(name);
            let group = group_cost(account, facts);
            let weight = facts.filter(|_| priced).map_or(1.0, |facts| facts.price_per_hour);
            useful += weight * group.parts.useful;
            paid += weight * group.machine_hours;
            costs.total = sum(costs.total, group);
            costs.groups.insert(*name, rounded(group));
        }
        costs.useful_share = (paid > 0.0).then(|| round(useful / paid));
        costs.total = rounded(costs.total);
        costs
    }
}

fn broken(name: GroupName, account: &Account) -> Option<String> {
    let Account { billed, useful, lost, held, boot, idle, fragmentation, .. } = *account;
    let parts = useful + lost + held + boot + idle + fragmentation;
    (parts != billed)
        .then(|| format!("the {name} group was billed {billed} units times ms, but its parts add up to {parts}"))
}

fn group_cost(account: &Account, facts: Option<&GroupFacts>) -> GroupCost {
    let hours = |units: u128| units as f64 / account.units_per_machine.max(1) as f64 / MS_PER_HOUR;
    let has_gpus = facts.is_some_and(|facts| facts.worker.gpus > 0);
    let gpu_hours = |units: u128| if has_gpus { units as f64 / MS_PER_HOUR } else { 0.0 };
    let machine_hours = hours(account.billed);
    GroupCost {
        cost: machine_hours * facts.map_or(0.0, |facts| facts.price_per_hour),
        machine_hours,
        gpu_hours: gpu_hours(account.billed),
        gpu_hours_lost: gpu_hours(account.lost),
        parts: Parts {
            useful: hours(account.useful),
            lost: hours(account.lost),
            held: hours(account.held),
            boot: hours(account.boot),
            idle: hours(account.idle),
            fragmentation: hours(account.fragmentation),
        },
    }
}

fn sum(a: GroupCost, b: GroupCost) -> GroupCost {
    combined(a, b, |a, b| a + b)
}

fn rounded(group: GroupCost) -> GroupCost {
    combined(group, GroupCost::default(), |value, _| round(value))
}

fn combined(a: GroupCost, b: GroupCost, f: impl Fn(f64, f64) -> f64) -> GroupCost {
    GroupCost {
        cost: f(a.cost, b.cost),
        machine_hours: f(a.machine_hours, b.machine_hours),
        gpu_hours: f(a.gpu_hours, b.gpu_hours),
        gpu_hours_lost: f(a.gpu_hours_lost, b.gpu_hours_lost),
        parts: a.parts.map(b.parts, f),
    }
}
