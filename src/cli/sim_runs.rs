//! Many runs on all cores, with a progress bar: each of them on one thread, with the same outcome on any number of them.

use std::{
    io::{self, Write},
    time::{Duration, Instant},
};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rayon::{ThreadPool, ThreadPoolBuilder, prelude::*};

use super::connect::Failure;
use crate::{
    ports::Tick,
    report::{Figures, figures},
    sim::{
        Ms, Watch, ms,
        outcome::Outcome,
        run::{Run, run},
    },
};

/// Parts into which the progress of one run is divided.
const PARTS: u64 = 200;

/// A run that has ended.
#[derive(Debug)]
pub struct Ran {
    /// What it comes to.
    pub figures: Figures,
    /// What happened; kept only where a report is to be drawn.
    pub outcome: Option<Outcome>,
    /// How long it took, on its thread.
    pub took: Duration,
}

/// Runs all of them; what came of each, in their order. Of every `keep`-th one the outcome is kept.
///
/// # Errors
/// No threads can be had.
pub fn all(runs: &[Run], threads: Option<u16>, keep: Option<usize>) -> Result<Vec<Ran>, Failure> {
    let bar = bar(runs.len() as u64 * PARTS, "{bar:40} {percent:>3} %, {eta} to go");
    let ran = pool(threads)?.install(|| {
        let is_kept = |index: usize| keep.is_some_and(|every| index.is_multiple_of(every));
        runs.par_iter().enumerate().map(|(index, run)| one(run, is_kept(index), &bar)).collect()
    });
    bar.finish_and_clear();
    Ok(ran)
}

/// Threads to run on.
///
/// # Errors
/// None can be had.
pub fn pool(threads: Option<u16>) -> Result<ThreadPool, Failure> {
    // 0: one a core.
    let threads = threads.map_or(0, usize::from);
    Ok(ThreadPoolBuilder::new().num_threads(threads).build().context("no threads can be started")?)
}

/// A progress bar on stderr; nothing is drawn where that is no terminal.
pub fn bar(length: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10));
    // The template is a constant of ours: were it wrong, the bar would look plainer.
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[expect(clippy::disallowed_methods, reason = "how long a run takes is told; nothing is decided by it")]
fn one(to_run: &Run, keep: bool, bar: &ProgressBar) -> Ran {
    let began = Instant::now();
    let until =
        to_run.scenario.duration.map_or_else(|| to_run.workload.jobs.last().map_or(1, |job| job.submit_ms.max(1)), ms);
    let mut progress = Progress { bar, until, parts: 0 };
    let outcome = run(to_run, &mut progress);
    progress.reach(PARTS);
    let took = began.elapsed();
    let figures = figures(&outcome, &to_run.workload);
    Ran { figures, outcome: keep.then_some(outcome), took }
}

/// How far a run is, by the simulated time.
struct Progress<'a> {
    bar: &'a ProgressBar,
    until: Ms,
    parts: u64,
}

impl Progress<'_> {
    fn reach(&mut self, parts: u64) {
        if parts > self.parts {
            self.bar.inc(parts - self.parts);
            self.parts = parts;
        }
    }
}

impl Watch for Progress<'_> {
    fn tick(&mut self, _: Ms, _: &Tick<'_>) {}

    fn slept(&mut self, _: Ms, to: Ms) {
        self.reach((to.min(self.until).saturating_mul(PARTS) / self.until.max(1)).min(PARTS));
    }
}

/// How long each run took, and what it did in that time.
pub fn tell_timings(ran: &[Ran], out: &mut impl Write) -> io::Result<()> {
    for Ran { figures, took, .. } in ran {
        let (counts, days) = (&figures.counts, figures.length_s / 86_400.0);
        writeln!(
            out,
            "{} {} seed {}: {days:.1} days, {} jobs, {} looks, {} events in {:.3} s",
            figures.scenario,
            figures.policy,
            figures.seed,
            figures.jobs.total,
            counts.looks,
            counts.events,
            took.as_secs_f64(),
        )?;
    }
    Ok(())
}
