//! The figures by name: one list for the table, the page, CSV, and what scenarios expect.

use super::{
    figures::Figures,
    words::{NONE, Unit},
};

/// One figure: how it is called, by machines and by people, and where it is found.
pub struct Named {
    /// For machines and scenarios.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Whether less or more of it is better; `None`: neither.
    pub better: Option<Better>,
    /// Its value; `None`: there is none in this run.
    pub value: fn(&Figures) -> Option<f64>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// The smallest is the best.
    Less,
    /// The largest is the best.
    More,
}

/// Figures of one subject.
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// Its figures, in the order in which they are shown.
    pub figures: &'static [Named],
}

impl Named {
    /// The value for people.
    pub fn show(&self, figures: &Figures) -> String {
        (self.value)(figures).map_or_else(|| NONE.into(), |value| self.unit.show(value))
    }
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Named> {
    SECTIONS.iter().flat_map(|section| section.figures)
}

impl Figures {
    /// A figure by its name for machines; times in seconds. `None`: there is no such figure, or none in this run.
    pub fn figure(&self, name: &str) -> Option<f64> {
        all().find(|named| named.name == name).and_then(|named| (named.value)(self))
    }
}

/// Figures far below 2^53: exact.
fn exact(count: u64) -> Option<f64> {
    Some(count as f64)
}

const fn named(
    name: &'static str,
    label: &'static str,
    unit: Unit,
    better: Option<Better>,
    value: fn(&Figures) -> Option<f64>,
) -> Named {
    Named { name, label, unit, better, value }
}

const LESS: Option<Better> = Some(Better::Less);
const MORE: Option<Better> = Some(Better::More);

/// The figures, by subject.
pub const SECTIONS: &[Section] = &[
    Section {
        title: "Jobs",
        figures: &[
            named("jobs", "jobs", Unit::Count, None, |f| exact(f.jobs.total as u64)),
            named("jobsSucceeded", "succeeded", Unit::Count, MORE, |f| exact(f.jobs.succeeded as u64)),
            named("jobsFailed", "failed", Unit::Count, LESS, |f| exact(f.jobs.failed as u64)),
            named("jobsUnfinished", "unfinished", Unit::Count, LESS, |f| exact(f.jobs.unfinished as u64)),
            named("jobsNeverStarted", "never started", Unit::Count, LESS, |f| exact(f.waiting.never_started as u64)),
            named("restarts", "restarts", Unit::Count, LESS, |f| exact(f.jobs.restarts)),
            named("makespan", "makespan", Unit::Seconds, LESS, |f| f.makespan_s),
        ],
    },
    Section {
        title: "Waiting",
        figures: &[
            named("waitMean", "mean", Unit::Seconds, LESS, |f| f.waiting.mean_s),
            named("waitP50", "half of the jobs", Unit::Seconds, LESS, |f| f.waiting.p50_s),
            named("waitP95", "95 %", Unit::Seconds, LESS, |f| f.waiting.p95_s),
            named("waitP99", "99 %", Unit::Seconds, LESS, |f| f.waiting.p99_s),
            named("waitMax", "longest", Unit::Seconds, LESS, |f| f.waiting.max_s),
            named("waitGpuMean", "mean over GPUs", Unit::Seconds, LESS, |f| f.waiting.gpu_weighted_mean_s),
            named("gangs", "gangs", Unit::Count, None, |f| exact(f.jobs.gangs as u64)),
            named("gangWaitMean", "gangs, mean", Unit::Seconds, LESS, |f| f.gang_waiting.mean_s),
            named("gangWaitP50", "gangs, half", Unit::Seconds, LESS, |f| f.gang_waiting.p50_s),
            named("gangWaitP95", "gangs, 95 %", Unit::Seconds, LESS, |f| f.gang_waiting.p95_s),
        ],
    },
    Section {
        title: "Cost",
        figures: &[
            named("cost", "cost", Unit::Money, LESS, |f| f.costs.priced.then_some(f.costs.total.cost)),
            named("machineHours", "machine-hours", Unit::Hours, LESS, |f| Some(f.costs.total.machine_hours)),
            named("gpuHours", "GPU-hours", Unit::Hours, LESS, |f| Some(f.costs.total.gpu_hours)),
            named("ratioToOpt0", "paid / OPT0", Unit::Ratio, LESS, |f| f.bounds.ratio_to_opt0),
            named("ratioToOpt0Min", "paid / OPT0 with min", Unit::Ratio, LESS, |f| f.bounds.ratio_to_opt0_with_minimum),
            named("ratioToWork", "paid / work", Unit::Ratio, LESS, |f| f.bounds.ratio_to_work),
            named("usefulShare", "useful share", Unit::Share, MORE, |f| f.costs.useful_share),
            named("usefulHours", "useful", Unit::Hours, None, |f| Some(f.costs.total.parts.useful)),
            named("lostHours", "lost", Unit::Hours, LESS, |f| Some(f.costs.total.parts.lost)),
            named("heldHours", "held", Unit::Hours, LESS, |f| Some(f.costs.total.parts.held)),
            named("bootHours", "booting", Unit::Hours, LESS, |f| Some(f.costs.total.parts.boot)),
            named("idleHours", "idle", Unit::Hours, LESS, |f| Some(f.costs.total.parts.idle)),
            named("fragmentationHours", "fragmentation", Unit::Hours, LESS, |f| {
                Some(f.costs.total.parts.fragmentation)
            }),
            named("gpuHoursLost", "GPU-hours lost", Unit::Hours, LESS, |f| Some(f.costs.total.gpu_hours_lost)),
        ],
    },
    Section {
        title: "Cluster",
        figures: &[
            named("peakWorkers", "most machines", Unit::Count, None, |f| exact(f.counts.peak_workers.into())),
            named("finalWorkers", "at the end", Unit::Count, None, |f| exact(f.counts.final_workers.into())),
            named("machinesOrdered", "ordered", Unit::Count, None, |f| exact(f.counts.machines_ordered)),
            named("boots", "boots", Unit::Count, LESS, |f| exact(f.counts.boots)),
            named("machinesDeleted", "deleted", Unit::Count, None, |f| exact(f.counts.machines_deleted)),
            named("recommissions", "taken back", Unit::Count, None, |f| exact(f.counts.recommissions)),
            named("flaps", "flaps", Unit::Count, LESS, |f| exact(f.counts.flaps)),
            named("containersKilled", "containers killed", Unit::Count, LESS, |f| exact(f.counts.containers_killed)),
            named("containersLost", "lost to faults", Unit::Count, LESS, |f| exact(f.counts.containers_lost)),
            named("ordersFailed", "orders that failed", Unit::Count, LESS, |f| exact(f.counts.orders_failed)),
        ],
    },
    Section {
        title: "Elasticity",
        figures: &[
            named("thetaUnder", "too few, of demand", Unit::Percent, LESS, |f| f.elasticity.capped.theta_under),
            named("thetaOver", "too many, of demand", Unit::Percent, LESS, |f| f.elasticity.capped.theta_over),
            named("tauUnder", "time with too few", Unit::Percent, LESS, |f| Some(f.elasticity.capped.tau_under)),
            named("tauOver", "time with too many", Unit::Percent, LESS, |f| Some(f.elasticity.capped.tau_over)),
            named("underWorkers", "missing on average", Unit::Amount, LESS, |f| {
                Some(f.elasticity.capped.under_workers)
            }),
            named("overWorkers", "too many on average", Unit::Amount, LESS, |f| Some(f.elasticity.capped.over_workers)),
            named("accuracyUnder", "a_U, of maximum", Unit::Share, LESS, |f| f.elasticity.capped.accuracy_under),
            named("accuracyOver", "a_O, of maximum", Unit::Share, LESS, |f| f.elasticity.capped.accuracy_over),
            named("thetaUnderUncapped", "too few, uncapped", Unit::Percent, LESS, |f| {
                f.elasticity.uncapped.theta_under
            }),
            named("tauUnderUncapped", "time, uncapped", Unit::Percent, LESS, |f| Some(f.elasticity.uncapped.tau_under)),
            named("instability", "instability k", Unit::Percent, LESS, |f| {
                Some(f.elasticity.capped.instability_supply)
            }),
            named("instabilityDemand", "instability k'", Unit::Percent, LESS, |f| {
                Some(f.elasticity.capped.instability_demand)
            }),
            named("jitter", "jitter a minute", Unit::Amount, None, |f| Some(f.elasticity.capped.jitter_per_minute)),
            named("idleDemandTime", "without demand", Unit::Seconds, None, |f| {
                Some(f.elasticity.capped.idle_demand_time_s)
            }),
        ],
    },
    Section {
        title: "Control",
        figures: &[
            named("looks", "looks", Unit::Count, None, |f| exact(f.counts.looks)),
            named("decisions", "decisions with orders", Unit::Count, None, |f| exact(f.counts.decisions_with_orders)),
            named("controllerCrashes", "controller crashes", Unit::Count, None, |f| exact(f.counts.controller_crashes)),
            named("violations", "promises broken", Unit::Count, LESS, |f| exact(f.violations.len() as u64)),
        ],
    },
];

/// A convention behind some figures.
pub struct Convention {
    /// Those it is about, by name; empty: all.
    pub of: &'static [&'static str],
    /// The footnote.
    pub text: &'static str,
}

const fn convention(of: &'static [&'static str], text: &'static str) -> Convention {
    Convention { of, text }
}

/// The conventions behind the figures.
pub const CONVENTIONS: &[Convention] = &[
    convention(
        &["waitMean", "waitP95"],
        "Waiting is from submission to the start of work, for a gang its last start. A job that never started counts \
         until its end or the run's, so its wait is too short. Percentiles are by nearest rank.",
    ),
    convention(&["makespan"], "Makespan: first submission to last end, or the run's end where jobs are unfinished."),
    convention(
        &["ratioToOpt0", "ratioToWork"],
        "Work: what jobs do at full size, on machines that are always full. OPT0: the least that would let no job \
         wait, with perfect foresight and free moves; machines that were up at the start need no boot. Masters, \
         start-up and rounding of bills are in neither. A policy that lets jobs wait may go below OPT0; unfinished \
         jobs flatter both ratios.",
    ),
    convention(&["ratioToOpt0Min"], "OPT0 with min: the policy's minimum is always paid for."),
    convention(&["usefulHours"], "useful + lost + held + booting + idle + fragmentation = billed, in machine-hours."),
    convention(&["flaps"], "Flaps: machines deleted and ordered anew in the same group within one boot time."),
    convention(
        &["thetaUnder"],
        "Elasticity: demand is the workers that all containers, held and asked for, would fill, at most the policy's \
         maximum (uncapped: as it is). Too few: against workers registered with all their GPUs; too many: against \
         machines that are paid for. Times without demand are left out of the shares of demand.",
    ),
    convention(
        &["instability"],
        "Instability: percent of the time that led to a change at which supply rose relative to demand (k), or demand \
         relative to supply (k'). Jitter: changes of supply less changes of demand.",
    ),
];
