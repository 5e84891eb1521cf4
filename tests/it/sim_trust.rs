//! Why the simulator's figures may be believed: queueing theory, a reference of twenty lines, the bounds, and the same
//! outcome from the same seed, with and without skipping.

use std::{collections::BinaryHeap, thread, time::Duration};

use yarn_autoscaler::{
    ports::Tick,
    report::bounds::bounds,
    sim::{
        Ms, Unwatched, Watch,
        outcome::Outcome,
        random::{Rng, to_ms},
        run::{Run, run, run_every_look},
        scenario::Scenario,
        workload::Job,
    },
};

use crate::{
    sim_build::{
        GPU, HOUR, MINUTE, SECOND, WORKER, bare, cluster, fault, gang, mapreduce, plan, policy, scenario, spark, tony,
    },
    sim_world_props::{Dice, any_jobs, any_scenario, assert_adds_up},
};

/// Student's t for 19 degrees of freedom: 99.9 % of means of 20 batches lie within so many standard errors.
const T19: f64 = 3.883;

/// One-slot workers that look for work every millisecond and start it at once; nobody adds or takes away any.
fn servers(count: u32) -> Scenario {
    let mut scenario = cluster(count, WORKER);
    scenario.cluster.heartbeat = Duration::from_millis(1);
    scenario.cluster.container_start = Duration::ZERO;
    scenario.settings.poll_interval = Duration::from_secs(100_000);
    scenario.settle = Duration::ZERO;
    scenario
}

/// Jobs of one container: Poisson arrivals, exponential durations.
fn poisson(seed: u64, count: usize, mean_between: f64, mean_duration: f64) -> Vec<Job> {
    let (mut arrivals, mut durations) = (Rng::new(seed, "arrivals"), Rng::new(seed, "durations"));
    let mut at = 0.0;
    let job = |number| {
        at += arrivals.exponential(mean_between);
        bare(&format!("job-{number}"), to_ms(at), 1, GPU, to_ms(durations.exponential(mean_duration)))
    };
    (0..count).map(job).collect()
}

fn fixed(scenario: Scenario, jobs: Vec<Job>, workers: u32) -> Outcome {
    run(&plan(scenario, jobs, policy(workers, workers, "2m")), &mut Unwatched)
}

/// Mean and half-width of its confidence interval, from 20 batches in a row.
fn batch_means(values: &[f64]) -> (f64, f64) {
    let means: Vec<_> = values.chunks_exact(values.len() / 20).map(mean).collect();
    let middle = mean(&means);
    let spread = means.iter().map(|mean| (mean - middle).powi(2)).sum::<f64>() / 19.0;
    (middle, T19 * (spread / 20.0).sqrt())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Erlang's C: the probability of waiting for one of `k` servers at this offered load.
fn erlang_c(k: u32, load: f64) -> f64 {
    let blocked = (1..=k).fold(1.0, |blocked, n| load * blocked / (f64::from(n) + load * blocked));
    blocked / (1.0 - load / f64::from(k) * (1.0 - blocked))
}

#[test]
fn sim_waits_are_those_of_erlang_c() {
    const SERVICE: f64 = 60_000.0;
    for (k, busy) in [(2, 0.6), (4, 0.8), (16, 0.75)] {
        let load = f64::from(k) * busy;
        let outcome = fixed(servers(k), poisson(7, 40_000, SERVICE / load, SERVICE), k);
        let waits: Vec<_> = outcome.jobs.iter().map(|job| (job.start_ms.unwrap() - job.submit_ms) as f64).collect();
        let (waited, within) = batch_means(&waits[1000..]);
        let theory = erlang_c(k, load) * SERVICE / (f64::from(k) - load);
        assert!((waited - theory).abs() <= within, "{k} servers: {waited} ms, in theory {theory}, within {within}");
        assert!(within < 0.5 * theory, "{k} servers: {within} of {theory} says little");
        let waited = waits.iter().filter(|wait| **wait > 1.0).count() as f64 / waits.len() as f64;
        assert!((waited - erlang_c(k, load)).abs() < 0.03, "{k} servers: {waited} waited, not {}", erlang_c(k, load));
    }
}

#[test]
fn sim_as_many_run_as_in_a_system_of_endless_servers() {
    // Offered 12 of 40: nobody waits. The number that runs is Poisson distributed: its mean is its variance.
    let outcome = fixed(servers(40), poisson(11, 20_000, 5_000.0, 60_000.0), 40);
    let last = outcome.jobs.last().unwrap().submit_ms;
    let mut steps = outcome.steps.iter().peekable();
    let mut running = 0.0;
    let counts = (600_000..last).step_by(60_000).map(|at| {
        while let Some(step) = steps.next_if(|step| step.at_ms <= at) {
            running = f64::from(step.jobs_running);
        }
        running
    });
    let counts: Vec<_> = counts.collect();
    let (average, within) = batch_means(&counts);
    assert!((average - 12.0).abs() <= within && within < 1.0, "{average} run, within {within}, in theory 12");
    let variance = mean(&counts.iter().map(|count| (count - average).powi(2)).collect::<Vec<_>>());
    assert!((variance - 12.0).abs() < 2.5, "their number varies by {variance}, in theory 12");
}

#[test]
fn sim_first_come_is_first_served_to_the_millisecond() {
    const WORKERS: u32 = 7;
    let jobs = poisson(3, 5_000, 9_000.0, 60_000.0);
    let mut free_at: BinaryHeap<_> = (0..WORKERS).map(|_| std::cmp::Reverse(0)).collect();
    let starts: Vec<Ms> = jobs
        .iter()
        .map(|job| {
            let std::cmp::Reverse(free) = free_at.pop().unwrap();
            // A worker that has become free takes the next job with its next heartbeat, a millisecond later.
            let start = free.max(job.submit_ms) + 1;
            let yarn_autoscaler::sim::workload::Work::Gang { duration_ms, .. } = job.work else { unreachable!() };
            free_at.push(std::cmp::Reverse(start + duration_ms));
            start
        })
        .collect();
    let outcome = fixed(servers(WORKERS), jobs, WORKERS);
    for (job, start) in outcome.jobs.iter().zip(starts) {
        assert_eq!(job.start_ms, Some(start), "{job:?}");
    }
}

#[test]
fn sim_nobody_beats_the_bounds() {
    for seed in 0..4 {
        // All at once on a cluster large enough: nobody waits but for heartbeats and starts.
        let jobs = poisson(seed, 300, 40_000.0, 600_000.0);
        let run_it = plan(servers(60), jobs, policy(60, 60, "2m"));
        let outcome = run(&run_it, &mut Unwatched);
        assert!(outcome.jobs.iter().all(|job| job.start_ms.unwrap() <= job.submit_ms + 1));
        let billed: u128 = outcome.accounts.values().map(|account| account.billed).sum();
        let bounds = bounds(&outcome, &run_it.workload);
        let work: u128 = outcome.jobs.iter().map(|job| job.work).sum();
        assert!(bounds.opt0 <= billed, "{bounds:?} {billed}");
        assert!(work <= bounds.opt0, "{bounds:?} {work}");
        let useful: u128 = outcome.accounts.values().map(|account| account.useful).sum();
        assert_eq!(useful, work, "all work counts once");
    }
}

fn mixed() -> Run {
    let mut scenario = scenario();
    scenario.events = vec![
        fault(2000, 0, yarn_autoscaler::sim::scenario::Fault::MachinesDie(1)),
        fault(4000, 120, yarn_autoscaler::sim::scenario::Fault::ResourceManagerRestart),
    ];
    let mut jobs: Vec<_> = (0..20).map(|n| gang(&format!("gang-{n}"), n * 5 * MINUTE, 3, 1, 7 * MINUTE)).collect();
    jobs.extend((0..10).map(|n| spark(&format!("spark-{n}"), n * 9 * MINUTE, 40, (1, 6), 40 * SECOND)));
    jobs.extend((0..10).map(|n| mapreduce(&format!("mr-{n}"), n * 8 * MINUTE, 20, 4, 0.05, MINUTE)));
    plan(scenario, jobs, tony())
}

/// FNV-1a of everything that the outcome says.
fn hash(outcome: &Outcome) -> u64 {
    let text = format!("{outcome:?}");
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[test]
fn sim_the_same_seed_gives_the_same_outcome_on_any_thread() {
    let first = hash(&run(&mixed(), &mut Unwatched));
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(|| hash(&run(&mixed(), &mut Unwatched)))).collect();
    for other in threads {
        assert_eq!(other.join().unwrap(), first);
    }
    let mut slow = scenario();
    slow.cloud.groups.values_mut().for_each(|group| {
        group.boot = yarn_autoscaler::sim::scenario::Delay::Tail {
            median: Duration::from_secs(90),
            p95: Duration::from_secs(200),
        };
    });
    let drawn = |seed| Run { seed, ..plan(slow.clone(), mixed().workload.jobs.clone(), tony()) };
    let outcome = |seed| hash(&Outcome { seed: 0, ..run(&drawn(seed), &mut Unwatched) });
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2), "chance has another beginning");
}

/// Counts the looks that are made.
#[derive(Default)]
struct Looks(u64);

impl Watch for Looks {
    fn tick(&mut self, _: Ms, _: &Tick<'_>) {
        self.0 += 1;
    }
    fn slept(&mut self, _: Ms, _: Ms) {}
}

/// Runs with and without skipping; returns how many looks were made and how many there were.
fn assert_same(run_it: &Run, what: &str) -> (u64, u64) {
    let (mut made, mut all) = (Looks::default(), Looks::default());
    let (skipping, looking) = (run(run_it, &mut made), run_every_look(run_it, &mut all));
    assert_eq!(skipping.end_ms, looking.end_ms, "{what}");
    assert_eq!(skipping.jobs, looking.jobs, "{what}");
    for (index, (ours, theirs)) in skipping.decisions.iter().zip(&looking.decisions).enumerate() {
        let around = |outcome: &Outcome| outcome.decisions[index..].iter().take(3).cloned().collect::<Vec<_>>();
        assert_eq!(ours, theirs, "{what}: {:#?}\nnot {:#?}", around(&skipping), around(&looking));
    }
    assert_eq!(skipping.steps, looking.steps, "{what}");
    assert_eq!(skipping, looking, "{what}");
    for account in skipping.accounts.values() {
        assert_adds_up(account, what);
    }
    assert_eq!(all.0, looking.counts.looks, "{what}");
    (made.0, all.0)
}

#[test]
fn sim_looks_that_are_skipped_change_nothing() {
    let (mut made, mut all) = (0, 0);
    for seed in 0..40 {
        let mut dice = Dice::new(seed, "skips");
        let mut scenario = any_scenario(&mut dice);
        scenario.settings.poll_interval = Duration::from_secs(dice.pick(&[5, 10, 30]));
        // A cluster of which all machines have died is left to people: without an end the daemon would look on for weeks.
        scenario.duration = Some(Duration::from_secs(dice.pick(&[1, 5, 10]) * 3600 + dice.between(0, 99)));
        let mut jobs = any_jobs(&mut dice, 8);
        for job in &mut jobs {
            job.submit_ms += if dice.0.happens(0.3) { dice.between(0, 6 * HOUR) } else { 0 };
        }
        let cooldown = dice.pick(&["2m", "2m", "2m", "10m", "1h"]);
        let (min, max) = (dice.small(2, 3), dice.small(4, 12));
        let run_it = plan(scenario, jobs, policy(min, max, cooldown));
        let run_it = Run { seed, ..run_it };
        let looks = assert_same(&run_it, &format!("seed {seed}, cooldown {cooldown}"));
        // A cluster of which too much is broken is held until somebody has looked: for weeks, look by look.
        if looks.1 < 50_000 {
            (made, all) = (made + looks.0, all + looks.1);
        }
    }
    assert!(made * 3 < all * 2, "{made} looks of {all}: next to nothing was skipped");
}
