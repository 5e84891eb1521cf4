//! How well supply followed demand: the measures of Ilyushkin et al. (ICPE 2017) and of Herbst et al. ("Ready for
//! Rain?", SPEC-RG-2016-01), integrated exactly over step functions, and the conventions that those papers leave open.
//!
//! * `d(t)`, demand: workers that all containers, held and asked for, would fill. Both as it is and capped at the
//!   policy's maximum.
//! * `s(t)`, supply, at two points. For under-provisioning: workers that are registered with all their GPUs, the
//!   cordoned and draining ones included, for they still serve what is counted as demand. For over-provisioning:
//!   machines that are up and paid for.
//! * Where `d = 0` a share of demand has no meaning: those times are left out of theta, numerator and denominator, and
//!   reported as `idleDemandTimeS`.
//! * Instability: a change weighs as much as the time since the change before it; changes of nothing but other figures
//!   are no changes.

use serde::Serialize;

use super::round;
use crate::sim::{
    Ms,
    outcome::{Outcome, Step},
};

/// Both views of demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Elasticity {
    /// Demand no higher than the policy's maximum: what the policy could have served.
    pub capped: Measures,
    /// Demand as it is.
    pub uncapped: Measures,
}

/// The measures; 0 is best for all of them but jitter, where it is balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measures {
    /// BUNGEE's accuracy_U: workers that were missing, on average: `1/T * integral of (d - s)+`.
    pub under_workers: f64,
    /// BUNGEE's accuracy_O: workers too many, on average: `1/T * integral of (s - d)+`.
    pub over_workers: f64,
    /// Ilyushkin's a_U, the same as a share of the policy's maximum, 0 to 1; `None` where that is not known.
    pub accuracy_under: Option<f64>,
    /// Ilyushkin's a_O.
    pub accuracy_over: Option<f64>,
    /// theta_U in percent of demand: `100/T' * integral of (d - s)+ / d`, `T'` being the time with demand. `None`
    /// without any.
    pub theta_under: Option<f64>,
    /// theta_O.
    pub theta_over: Option<f64>,
    /// tau_U: percent of the time with too few.
    pub tau_under: f64,
    /// tau_O: percent of the time with too many.
    pub tau_over: f64,
    /// k: percent of the time that led to a change at which supply rose relative to demand, the signs of the two
    /// changes being compared.
    pub instability_supply: f64,
    /// k': … at which demand rose relative to supply.
    pub instability_demand: f64,
    /// Changes of supply less changes of demand, in workers per minute: below zero sluggish, above it restless.
    pub jitter_per_minute: f64,
    /// Seconds without any demand.
    pub idle_demand_time_s: f64,
}

impl Elasticity {
    /// Of a run.
    pub fn of(outcome: &Outcome) -> Self {
        let cap = if outcome.max_workers == 0 { u32::MAX } else { outcome.max_workers };
        Self { capped: measures(outcome, cap), uncapped: measures(outcome, u32::MAX) }
    }
}

/// Demand and supply for a while.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Span {
    length: Ms,
    demand: u64,
    serving: u64,
    paid: u64,
}

/// How long each step holds.
pub fn lengths(outcome: &Outcome) -> impl Iterator<Item = (&Step, Ms)> {
    let ends = outcome.steps.iter().skip(1).map(|step| step.at_ms).chain([outcome.end_ms]);
    outcome.steps.iter().zip(ends).map(|(step, end)| (step, end.saturating_sub(step.at_ms)))
}

fn spans(outcome: &Outcome, cap: u32) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (step, length) in lengths(outcome) {
        let machines = step.machines;
        let span = Span {
            length,
            demand: step.demand_workers.min(cap).into(),
            serving: u64::from(machines.ready) + u64::from(machines.cordoned) + u64::from(machines.draining),
            paid: machines.up().into(),
        };
        match spans.last_mut() {
            Some(last) if Span { length: 0, ..*last } == Span { length: 0, ..span } => last.length += length,
            _ => spans.push(span),
        }
    }
    spans
}

#[derive(Default)]
struct Sums {
    total: u128,
    idle: u128,
    under: u128,
    over: u128,
    under_time: u128,
    over_time: u128,
    under_share: f64,
    over_share: f64,
}

fn measures(outcome: &Outcome, cap: u32) -> Measures {
    let spans = spans(outcome, cap);
    let mut sums = Sums::default();
    for span in &spans {
        let length = u128::from(span.length);
        let under = span.demand.saturating_sub(span.serving);
        let over = span.paid.saturating_sub(span.demand);
        sums.total += length;
        sums.under += u128::from(under) * length;
        sums.over += u128::from(over) * length;
        sums.under_time += if under > 0 { length } else { 0 };
        sums.over_time += if over > 0 { length } else { 0 };
        if span.demand == 0 {
            sums.idle += length;
        } else {
            sums.under_share += under as f64 / span.demand as f64 * length as f64;
            sums.over_share += over as f64 / span.demand as f64 * length as f64;
        }
    }
    let over_all = |sum: u128| round(sum as f64 / sums.total.max(1) as f64);
    let busy = sums.total - sums.idle;
    let of_demand = |sum: f64| (busy > 0).then(|| round(100.0 * sum / busy as f64));
    let of_maximum = |sum: u128| {
        let maximum = f64::from(outcome.max_workers);
        (outcome.max_workers > 0).then(|| round(sum as f64 / sums.total.max(1) as f64 / maximum))
    };
    let (instability_supply, instability_demand, jitter_per_minute) = movement(&spans, sums.total);
    Measures {
        under_workers: over_all(sums.under),
        over_workers: over_all(sums.over),
        accuracy_under: of_maximum(sums.under),
        accuracy_over: of_maximum(sums.over),
        theta_under: of_demand(sums.under_share),
        theta_over: of_demand(sums.over_share),
        tau_under: over_all(100 * sums.under_time),
        tau_over: over_all(100 * sums.over_time),
        instability_supply,
        instability_demand,
        jitter_per_minute,
        idle_demand_time_s: round(sums.idle as f64 / 1000.0),
    }
}

/// k, k' (percent) and jitter (per minute), with the serving supply.
fn movement(spans: &[Span], total: u128) -> (f64, f64, f64) {
    let (mut supply_rose, mut demand_rose) = (0_u128, 0_u128);
    let (mut supply_moves, mut demand_moves) = (0_u128, 0_u128);
    // Only demand and the serving supply count here: steps of the paid one alone belong to the time before.
    let mut since = 0_u128;
    for pair in spans.windows(2) {
        since += u128::from(pair[0].length);
        let supply = pair[1].serving.cmp(&pair[0].serving);
        let demand = pair[1].demand.cmp(&pair[0].demand);
        if supply.is_eq() && demand.is_eq() {
            continue;
        }
        supply_rose += if supply > demand { since } else { 0 };
        demand_rose += if demand > supply { since } else { 0 };
        supply_moves += u128::from(pair[1].serving.abs_diff(pair[0].serving));
        demand_moves += u128::from(pair[1].demand.abs_diff(pair[0].demand));
        since = 0;
    }
    let total = total.max(1) as f64;
    let jitter = (supply_moves as f64 - demand_moves as f64) / (total / 60_000.0);
    (round(100.0 * supply_rose as f64 / total), round(100.0 * demand_rose as f64 / total), round(jitter))
}

/// The elastic speedup of a run over a baseline, and what it is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Speedup {
    /// The baseline's theta_U by the run's; above 1 the run is better.
    pub theta_under: f64,
    /// … theta_O.
    pub theta_over: f64,
    /// … tau_U.
    pub tau_under: f64,
    /// … tau_O.
    pub tau_over: f64,
    /// The geometric mean of the four.
    pub epsilon: f64,
    /// Some figure was below [`EPSILON_0`] and was taken as that.
    pub clamped: bool,
}

/// Percent; figures below it are taken as it, so that no ratio is infinite.
pub const EPSILON_0: f64 = 0.01;

/// The elastic speedup (Herbst et al.) of `run` over `baseline`, from the measures with capped demand.
pub fn speedup(run: &Measures, baseline: &Measures) -> Speedup {
    let figures = |m: &Measures| [m.theta_under.unwrap_or(0.0), m.theta_over.unwrap_or(0.0), m.tau_under, m.tau_over];
    let (ours, theirs) = (figures(run), figures(baseline));
    let ratio = |index: usize| theirs[index].max(EPSILON_0) / ours[index].max(EPSILON_0);
    let [theta_under, theta_over, tau_under, tau_over] = [ratio(0), ratio(1), ratio(2), ratio(3)];
    Speedup {
        theta_under: round(theta_under),
        theta_over: round(theta_over),
        tau_under: round(tau_under),
        tau_over: round(tau_over),
        epsilon: round((theta_under * theta_over * tau_under * tau_over).sqrt().sqrt()),
        clamped: ours.iter().chain(&theirs).any(|figure| *figure < EPSILON_0),
    }
}
