//! What holds for the figures of every run: the bounds against every plan, distributions, shares.

use proptest::prelude::*;
use yarn_autoscaler::{
    model::Resources,
    report::{
        self,
        bounds::{Hold, Yardstick, bounds_of},
        waiting,
    },
};

use crate::outcomes::{CORDONING, IDLING, Play, SLUGGISH, job_outcome, outcome, play};

const GPUS: u64 = 4;

fn yardstick(boot_ms: u64, initial: u64, minimum: u64) -> Yardstick {
    let worker = Resources::new(GPUS * 100, GPUS, GPUS);
    Yardstick { worker, boot_ms, initial, minimum, maximum: 0, end_ms: 12 }
}

fn a_hold() -> impl Strategy<Value = Hold> {
    (0..12_u64, 1..6_u64, 1..7_u64, any::<bool>()).prop_map(|(from_ms, length, amount, gpus)| Hold {
        from_ms,
        until_ms: from_ms + length,
        size: Resources::new(amount * 100, amount, if gpus { amount } else { 0 }),
    })
}

/// How many machines are needed in each of the 12 ms.
fn needed(holds: &[Hold], minimum: u64) -> Vec<u64> {
    let at = |now| holds.iter().filter(move |hold| hold.from_ms <= now && now < hold.until_ms).map(|hold| hold.size);
    let machines = |sum: Resources| sum.gpus.max(sum.vcores).max(sum.memory_mb / 100).div_ceil(GPUS);
    (0..12).map(|now| machines(at(now).sum()).max(minimum)).collect()
}

/// The cheapest of all plans, by trying every number of machines at every ms: a machine that comes pays a boot.
fn cheapest(needed: &[u64], boot: u64, initial: u64) -> u64 {
    let most = needed.iter().copied().max().unwrap_or(0).max(initial);
    let came = |from: u64, to: u64| to.saturating_sub(from) * boot;
    let mut cost: Vec<Option<u64>> = (0..=most).map(|count| (count == initial).then_some(0)).collect();
    for need in needed {
        let next = |count: u64| {
            let from = cost.iter().zip(0..).filter_map(|(cost, before)| Some((*cost)? + came(before, count) + count));
            (count >= *need).then(|| from.min()).flatten()
        };
        cost = (0..=most).map(next).collect();
    }
    cost.into_iter().flatten().min().unwrap()
}

proptest! {
    #[test]
    fn opt0_is_the_cheapest_of_all_plans(
        holds in prop::collection::vec(a_hold(), 0..8), boot in 0..6_u64, initial in 0..4_u64, minimum in 0..3_u64,
    ) {
        let at = yardstick(boot, initial, minimum);
        let bounds = bounds_of(&holds, &at);
        let cheapest = |minimum| u128::from(cheapest(&needed(&holds, minimum), boot, initial) * GPUS);
        prop_assert_eq!(bounds.opt0, cheapest(0));
        prop_assert_eq!(bounds.opt0_with_minimum, cheapest(minimum));
        prop_assert!(bounds.work <= bounds.opt0 && bounds.opt0 <= bounds.opt0_with_minimum);
    }

    #[test]
    fn opt0_is_below_every_run_in_which_nobody_waits(
        holds in prop::collection::vec(a_hold(), 0..8), boot in 0..6_u64, idle in 0..9_u64,
    ) {
        // Machines come in time by magic, and go when they have not been needed for `idle` ms.
        let mut last_needed = [None; 64];
        let mut cost = 0;
        for (now, need) in needed(&holds, 0).into_iter().enumerate() {
            for (level, last) in last_needed.iter_mut().enumerate() {
                if (level as u64) < need {
                    cost += if last.is_none() { boot } else { 0 } + 1;
                    *last = Some(now);
                } else if last.is_some_and(|last: usize| (now - last) as u64 <= idle) {
                    cost += 1;
                } else {
                    *last = None;
                }
            }
        }
        prop_assert!(bounds_of(&holds, &yardstick(boot, 0, 0)).opt0 <= u128::from(cost * GPUS));
    }

    #[test]
    fn distributions_rise_to_one(mut waits in prop::collection::vec(0..50_u64, 1..60)) {
        waits.sort_unstable();
        let points = waiting::distribution(&waits);
        prop_assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        prop_assert_eq!(points.last().map(|point| point.1), Some(1.0));
        let ranked: Vec<_> = [1, 50, 95, 99, 100].map(|p| waiting::percentile(&waits, p).unwrap()).to_vec();
        prop_assert!(ranked.is_sorted());
        let at_most = |wait| waits.iter().filter(|other| **other <= wait).count() * 100 >= 95 * waits.len();
        prop_assert!(at_most(ranked[2]));
    }

    #[test]
    fn waits_are_ranked_and_every_job_is_counted_once(
        jobs in prop::collection::vec((0..3000_u64, prop::option::of(0..500_u64), any::<bool>(), 1..9_u32), 0..40),
    ) {
        let mut out = outcome("p");
        out.jobs = jobs
            .iter()
            .map(|(submit, wait, ends, gpus)| {
                let start = wait.map(|wait| submit + wait);
                job_outcome("job", *gpus, *submit, start, start.filter(|_| *ends).map(|start| start + 10))
            })
            .collect();
        let figures = report::figures(&out, &yarn_autoscaler::sim::workload::Workload::default());
        prop_assert_eq!(figures.jobs.succeeded + figures.jobs.failed + figures.jobs.unfinished, jobs.len());
        let waits = figures.waiting;
        prop_assert!(waits.p50_s <= waits.p95_s && waits.p95_s <= waits.p99_s && waits.p99_s <= waits.max_s);
        prop_assert!(waits.mean_s <= waits.max_s);
    }
}

#[test]
fn a_played_run_adds_up_and_costs_more_than_the_bounds() {
    for how in [Play { idle: 0, ..CORDONING }, CORDONING, IDLING, SLUGGISH] {
        let (out, workload) = play(how);
        let figures = report::figures(&out, &workload);
        assert!(figures.violations.is_empty(), "{:?}", figures.violations);
        let parts: f64 = figures.costs.total.parts.named().iter().map(|(_, hours)| hours).sum();
        assert!((parts - figures.costs.total.machine_hours).abs() < 1e-4);
        assert!(figures.bounds.ratio_to_work > Some(1.0), "{:?}", figures.bounds);
        assert!(figures.bounds.work_machine_hours <= figures.bounds.opt0_machine_hours);
        assert!(figures.bounds.opt0_machine_hours <= figures.bounds.opt0_with_minimum_machine_hours);
    }
}
