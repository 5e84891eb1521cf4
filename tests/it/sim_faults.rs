//! Trials at random under the eyes of the checker: thousands of clusters, policies and loads, with faults of every kind.

use std::{
    panic::catch_unwind,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use yarn_autoscaler::{
    controller::Halt,
    sim::{
        chaos,
        checker::Checker,
        rivals::rivals,
        run::{NOT_JUDGED, Run},
        scenario::{Fault, Scenario},
    },
};

/// So many seeds are tried with each run of the tests; tens of thousands were before a change of the decision landed.
const SEEDS: u64 = 2_000;
/// Threads that try them.
const THREADS: usize = 2;

/// Does this with each seed, on all threads; returns what it says of those of which it says anything, by seed.
fn each_seed(seeds: u64, tell: impl Fn(u64) -> Option<String> + Sync) -> Vec<(u64, String)> {
    let (next, told) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            told.lock().unwrap().extend(tell(seed).map(|text| (seed, text)));
        }
    };
    thread::scope(|scope| (0..THREADS).for_each(|_| drop(scope.spawn(work))));
    let mut told = told.into_inner().unwrap();
    told.sort();
    told
}

fn all(told: &[(u64, String)]) -> String {
    told.iter().map(|(_, text)| text.as_str()).collect()
}

#[test]
fn sim_no_promise_is_broken_by_any_seed() {
    let not_judged = AtomicU64::new(0);
    let broken = each_seed(SEEDS, |seed| {
        let Ok(outcome) = catch_unwind(|| chaos::run_trial(seed)) else {
            return Some(format!("seed {seed} panicked: yarn-autoscaler simulate --faults --seed {seed}\n"));
        };
        not_judged.fetch_add(outcome.remarks.iter().any(|remark| remark == NOT_JUDGED).into(), Ordering::Relaxed);
        Some(chaos::describe(&outcome)).filter(|text| !text.is_empty())
    });
    assert!(broken.is_empty(), "{} of {SEEDS} seeds:\n{}", broken.len(), all(&broken));
    let not_judged = not_judged.into_inner();
    assert!(not_judged * 5 < SEEDS, "of {not_judged} of {SEEDS} it could not be told whether they came to rest");
}

/// What the checker has found, and what was wrong: in the controller, not in the trial.
const FOUND: &[(u64, &str)] = &[
    (35, "a dead machine held the quota that the refused order needed, and was never deleted"),
    (138, "the same of a drained one, and its name stayed on the exclude file"),
    (5743, "two orders that failed in one tick counted twice: what takes turns never got its own"),
    (15_948, "a worker was taken back beside one that was ordered and not listed yet: above the maximum"),
    (16_178, "the same after the order had ended, while the list lagged"),
    (124, "the clock was set forward: a drain was ended by force, a booting worker given up"),
    (743, "one answer without the node was enough to delete a worker that had been unhealthy for long"),
    (16_490, "a deletion was given again after a crash although the worker had come meanwhile and ran containers"),
    (22_436, "the same while nobody answered"),
    (62_449, "the same at the first look after a crash, while YARN's list was short by mistake"),
];

#[test]
fn sim_what_was_found_once_stays_found() {
    let broken = FOUND.iter().map(|(seed, what)| (what, chaos::describe(&chaos::run_trial(*seed))));
    let broken: Vec<_> = broken.filter(|(_, text)| !text.is_empty()).collect();
    assert!(broken.is_empty(), "{broken:?}");
}

#[test]
fn sim_a_seed_says_the_same_again() {
    for seed in 0..20 {
        assert_eq!(chaos::run_trial(seed), chaos::run_trial(seed), "seed {seed}");
    }
}

#[test]
fn sim_every_kind_of_fault_is_drawn_and_is_over_before_the_end() {
    let mut seen = [0_u32; 15];
    for seed in 0..300 {
        let run = chaos::trial(seed);
        for event in &run.scenario.events {
            assert!(Some(event.at + event.lasts) < run.scenario.duration, "seed {seed}: {event:?}");
            seen[kind(&event.fault)] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

fn kind(fault: &Fault) -> usize {
    match fault {
        Fault::ResourceManagerTimeout => 0,
        Fault::ResourceManagerStale => 1,
        Fault::ResourceManagerPartial => 2,
        Fault::ResourceManagerRestart => 3,
        Fault::SlowBoots(_) => 4,
        Fault::DriverFailure(_) => 5,
        Fault::BootFailure(_) => 6,
        Fault::StockOut(_) => 7,
        Fault::Throttled(_) => 8,
        Fault::CloudErrors => 9,
        Fault::LostAcknowledgements => 10,
        Fault::MachinesDie(_) => 11,
        Fault::NodesUnhealthy(_) => 12,
        Fault::ClockStep(_) => 13,
        Fault::ControllerCrash(_) => 14,
    }
}

/// A trial in which no controller is killed.
fn without_crashes(seed: u64) -> Run {
    let run = chaos::trial(seed);
    let mut scenario = Scenario::clone(&run.scenario);
    scenario.events.retain(|event| !matches!(event.fault, Fault::ControllerCrash(_)));
    Run { scenario: Arc::new(scenario), ..run }
}

/// Two that both hold the state: the one that saves first goes on, the other ends before it orders anything, and no
/// promise is broken.
#[test]
fn sim_of_two_controllers_one_ends_and_says_why() {
    let ended = AtomicU64::new(0);
    let wrong = each_seed(SEEDS / 40, |seed| {
        let run = without_crashes(seed);
        let joins_at = u64::try_from(Duration::from_secs(600 + seed).as_millis()).unwrap();
        let (outcome, halts) = rivals(&run, joins_at, Checker::new(&run.scenario, &run.policy));
        let found = chaos::describe(&outcome);
        ended.fetch_add(halts.len() as u64, Ordering::Relaxed);
        match &halts[..] {
            [] | [(_, Halt::Conflict(_))] if found.is_empty() => None,
            _ => Some(format!("seed {seed}: {halts:?}\n{found}")),
        }
    });
    assert!(wrong.is_empty(), "{}", all(&wrong));
    // Where nothing was left to be saved after the second one had joined, neither could notice the other.
    let ended = ended.into_inner();
    assert!(ended * 2 > SEEDS / 40, "only {ended} noticed the other");
}
