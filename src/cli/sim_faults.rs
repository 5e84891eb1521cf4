//! `simulate --faults`: random clusters, loads and faults, watched for broken promises, on all cores.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, Ordering},
};

use anyhow::anyhow;
use rayon::prelude::*;

use super::{
    connect::Failure,
    exit,
    sim_runs::{bar, pool},
    terminal,
};
use crate::sim::{chaos, outcome::Outcome};

/// Broken trials that are told in full; the others are told by their seeds.
const TOLD_MAX: usize = 3;

/// Runs trials of `seeds` seeds, from the first one on.
///
/// # Errors
/// Code 4 where a promise was broken.
pub fn run(first: u64, seeds: u64, threads: Option<u16>) -> Result<(), Failure> {
    let bar = bar(seeds, "{bar:40} {pos} of {len} trials, {per_sec}, {eta} to go");
    let broken = Mutex::new(Vec::<(u64, String)>::new());
    let (looks, events, crashes) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    pool(threads)?.install(|| {
        (0..seeds).into_par_iter().for_each(|index| {
            let seed = first.wrapping_add(index);
            let outcome = chaos::run_trial(seed);
            let Outcome { counts, .. } = &outcome;
            looks.fetch_add(counts.looks, Ordering::Relaxed);
            events.fetch_add(counts.events, Ordering::Relaxed);
            crashes.fetch_add(counts.controller_crashes, Ordering::Relaxed);
            if !outcome.violations.is_empty()
                && let Ok(mut broken) = broken.lock()
            {
                broken.push((seed, chaos::describe(&outcome)));
            }
            bar.inc(1);
        });
    });
    bar.finish_and_clear();
    let mut broken = broken.into_inner().unwrap_or_default();
    broken.sort();
    let (looks, events, crashes) = (looks.into_inner(), events.into_inner(), crashes.into_inner());
    terminal::tell(&format!(
        "{seeds} trials, {looks} looks, {events} events, the controller killed {crashes} times; promises broken in {}\n",
        broken.len()
    ))?;
    if broken.is_empty() { Ok(()) } else { Err(told(&broken)) }
}

fn told(broken: &[(u64, String)]) -> Failure {
    let mut text: Vec<_> = broken.iter().take(TOLD_MAX).map(|(_, told)| told.clone()).collect();
    let more: Vec<_> = broken.iter().skip(TOLD_MAX).map(|(seed, _)| seed.to_string()).collect();
    if !more.is_empty() {
        text.push(format!("also with --seed {}", more.join(", ")));
    }
    Failure::new(exit::EXPECTATION_FAILED, anyhow!("promises were broken\n{}", text.join("\n")))
}
