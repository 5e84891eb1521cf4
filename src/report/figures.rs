//! Everything that is computed of a run. What each figure means stands with it; how it is shown, in [`super::names`].

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{
    bounds::{Bounds, bounds},
    costs::Costs,
    elasticity::{Elasticity, Speedup, speedup},
    round,
    waiting::Waits,
};
use crate::{
    model::{Action, GroupName},
    sim::{
        Ms,
        outcome::{Counts, Outcome},
        workload::Workload,
    },
};

/// The figures of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// The scenario's name.
    pub scenario: String,
    /// The policy's name.
    pub policy: String,
    /// Where all chance began.
    pub seed: u64,
    /// The calendar time of the first instant.
    pub start: DateTime<Utc>,
    /// How long the run went on.
    pub length_s: f64,
    /// What became of the jobs.
    pub jobs: Jobs,
    /// How long all jobs waited.
    pub waiting: Waits,
    /// How long gangs waited.
    pub gang_waiting: Waits,
    /// From the first submission to the last job's end, or to the run's where jobs are unfinished; `None` without jobs.
    pub makespan_s: Option<f64>,
    /// What was paid for.
    pub costs: Costs,
    /// The least that the same jobs would cost.
    pub bounds: BoundFigures,
    /// What was counted.
    pub counts: CountFigures,
    /// How well supply followed demand.
    pub elasticity: Elasticity,
    /// How often each reason was given, over all looks.
    pub reasons: BTreeMap<&'static str, u64>,
    /// Promises that were broken, as sentences; and accounts that do not add up.
    pub violations: Vec<String>,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

/// What became of the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Jobs {
    /// All.
    pub total: usize,
    /// Ended well.
    pub succeeded: usize,
    /// Ended otherwise.
    pub failed: usize,
    /// Waited or ran at the end.
    pub unfinished: usize,
    /// Of no use before they have all their containers.
    pub gangs: usize,
    /// How often jobs had to start over.
    pub restarts: u64,
}

/// The bounds ([`super::bounds`]) in hours, and how far the run was from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BoundFigures {
    /// W in machine-hours of the yardstick machine.
    pub work_machine_hours: f64,
    /// OPT0.
    pub opt0_machine_hours: f64,
    /// OPT0 with the policy's minimum always paid for.
    pub opt0_with_minimum_machine_hours: f64,
    /// What was paid by W, at the least price of any group. By machine-hours where a group has no price. `None` where
    /// the bound is 0.
    pub ratio_to_work: Option<f64>,
    /// … by OPT0.
    pub ratio_to_opt0: Option<f64>,
    /// … by OPT0 with the minimum.
    pub ratio_to_opt0_with_minimum: Option<f64>,
    /// Jobs that are not in the bounds, because they could never run.
    pub left_out: usize,
}

/// What was counted in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CountFigures {
    /// Looks of the controller.
    pub looks: u64,
    /// Looks at which something was ordered; looks that said the same are one.
    pub decisions_with_orders: u64,
    /// Machines that were ordered.
    pub machines_ordered: u64,
    /// Machines that registered with YARN after an order.
    pub boots: u64,
    /// Machines that were deleted by order.
    pub machines_deleted: u64,
    /// Nodes that were taken back instead of others being made.
    pub recommissions: u64,
    /// Machines that were deleted and ordered anew in the same group within its boot time: keeping them would have cost
    /// less.
    pub flaps: u64,
    /// Containers that a decommission ended.
    pub containers_killed: u64,
    /// Containers that were lost to faults.
    pub containers_lost: u64,
    /// Orders that the cloud refused or that failed.
    pub orders_failed: u64,
    /// How often the controller was killed.
    pub controller_crashes: u64,
    /// Most machines at once, ordered ones included.
    pub peak_workers: u32,
    /// Machines at the end, less those that were being deleted.
    pub final_workers: u32,
    /// Events of the simulated world.
    pub events: u64,
}

/// Computes the figures of a run; `workload` is what it was given to do.
pub fn figures(outcome: &Outcome, workload: &Workload) -> Figures {
    let costs = Costs::of(outcome);
    let told = outcome.violations.iter().map(|broken| format!("{}: {}", broken.promise, broken.text));
    let violations = told.chain(costs.broken.iter().cloned()).collect();
    Figures {
        scenario: outcome.scenario.clone(),
        policy: outcome.policy.clone(),
        seed: outcome.seed,
        start: outcome.start,
        length_s: seconds(outcome.end_ms),
        jobs: jobs(outcome),
        waiting: Waits::of(outcome, false),
        gang_waiting: Waits::of(outcome, true),
        makespan_s: makespan_ms(outcome).map(seconds),
        bounds: bound_figures(outcome, &bounds(outcome, workload), &costs),
        costs,
        counts: counts(outcome),
        elasticity: Elasticity::of(outcome),
        reasons: outcome.reasons.clone(),
        violations,
        remarks: outcome.remarks.clone(),
    }
}

impl Figures {
    /// How much better this run's elasticity is than a baseline's.
    pub fn speedup_over(&self, baseline: &Self) -> Speedup {
        speedup(&self.elasticity.capped, &baseline.elasticity.capped)
    }
}

fn seconds(ms: Ms) -> f64 {
    ms as f64 / 1000.0
}

fn jobs(outcome: &Outcome) -> Jobs {
    let count = |wanted: fn(&(bool, bool)) -> bool| {
        outcome.jobs.iter().map(|job| (job.end_ms.is_some(), job.succeeded)).filter(wanted).count()
    };
    Jobs {
        total: outcome.jobs.len(),
        succeeded: count(|(ended, well)| *ended && *well),
        failed: count(|(ended, well)| *ended && !*well),
        unfinished: count(|(ended, _)| !*ended),
        gangs: outcome.jobs.iter().filter(|job| job.is_gang).count(),
        restarts: outcome.jobs.iter().map(|job| u64::from(job.restarts)).sum(),
    }
}

fn makespan_ms(outcome: &Outcome) -> Option<Ms> {
    let first = outcome.jobs.iter().map(|job| job.submit_ms).min()?;
    let last = outcome.jobs.iter().map(|job| job.end_ms.unwrap_or(outcome.end_ms)).max()?;
    Some(last.saturating_sub(first))
}

fn bound_figures(outcome: &Outcome, bounds: &Bounds, costs: &Costs) -> BoundFigures {
    let hours = |units: u128| units as f64 / bounds.units_per_machine.max(1) as f64 / 3_600_000.0;
    let price = outcome.groups.values().map(|group| group.price_per_hour).fold(f64::INFINITY, f64::min);
    let (paid, price) = if costs.priced { (costs.total.cost, price) } else { (costs.total.machine_hours, 1.0) };
    let ratio = |units: u128| (units > 0).then(|| round(paid / (hours(units) * price)));
    BoundFigures {
        work_machine_hours: round(hours(bounds.work)),
        opt0_machine_hours: round(hours(bounds.opt0)),
        opt0_with_minimum_machine_hours: round(hours(bounds.opt0_with_minimum)),
        ratio_to_work: ratio(bounds.work),
        ratio_to_opt0: ratio(bounds.opt0),
        ratio_to_opt0_with_minimum: ratio(bounds.opt0_with_minimum),
        left_out: bounds.left_out,
    }
}

fn counts(outcome: &Outcome) -> CountFigures {
    let Counts { looks, events, ordered, boots, deleted, recommissions, killed_by_drain, killed_by_fault, .. } =
        outcome.counts;
    CountFigures {
        looks,
        decisions_with_orders: outcome.decisions.iter().filter(|told| !told.actions.is_empty()).count() as u64,
        machines_ordered: ordered,
        boots,
        machines_deleted: deleted,
        recommissions,
        flaps: outcome.groups.iter().map(|(name, facts)| flaps(outcome, *name, facts.boot_ms)).sum(),
        containers_killed: killed_by_drain,
        containers_lost: killed_by_fault,
        orders_failed: outcome.counts.orders_failed,
        controller_crashes: outcome.counts.controller_crashes,
        peak_workers: outcome.counts.peak_machines,
        final_workers: outcome.steps.last().map_or(0, |step| step.machines.total() - step.machines.leaving),
        events,
    }
}

/// Deletions that an order of the same group followed within `window_ms`; each machine is matched once, the latest
/// deletion first.
fn flaps(outcome: &Outcome, group: GroupName, window_ms: Ms) -> u64 {
    let mut deleted: Vec<(Ms, u64)> = Vec::new();
    let mut flaps = 0;
    for told in &outcome.decisions {
        for action in &told.actions {
            match action {
                Action::Delete { group: of, instances } if *of == group => {
                    deleted.push((told.from_ms, instances.len() as u64));
                }
                action if action.adds(group) > 0 => {
                    deleted.retain(|(at, _)| told.from_ms.saturating_sub(*at) <= window_ms);
                    let mut made = u64::from(action.adds(group));
                    while let (true, Some(last)) = (made > 0, deleted.last_mut()) {
                        let matched = made.min(last.1);
                        (made, last.1, flaps) = (made - matched, last.1 - matched, flaps + matched);
                        if last.1 == 0 {
                            deleted.pop();
                        }
                    }
                }
                _ => {}
            }
        }
    }
    flaps
}
