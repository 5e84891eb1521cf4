//! The simulator: a YARN cluster, its cloud and its clock behind the controller's own ports, so that the daemon's loop
//! runs unchanged through hours or years of simulated time. Pure: text comes in, values go out; no files, no network,
//! no wall clock. The same scenario, policy and seed give the same outcome, bit for bit, on any machine.
//!
//! | folder or file | what it does |
//! |---|---|
//! | [`scenario`] | the scenario file: as written, checked, as meant |
//! | [`workload`] | jobs: written out, generated, or read from a trace |
//! | [`random`] | chance, by seed and purpose |
//! | [`world`] | the cluster and its cloud: events, scheduler, machines, bills, faults |
//! | `ports`, `journal` | the controller's ports over the world; what it decided |
//! | [`lone_provider`] | the simulated provider by itself |
//! | [`mod@run`] | one run from beginning to end |
//! | [`checker`] | watches what must always hold |
//! | [`mod@rivals`] | a run with two controllers |
//! | [`chaos`] | scenarios, loads and faults at random, by seed |
//! | [`outcome`] | what a run yields: jobs, steps, accounts, decisions |
//!
//! Time is integer milliseconds since the scenario's start ([`Ms`]); calendar time is made of it for the controller.

pub mod chaos;
pub mod checker;
mod journal;
pub mod lone_provider;
pub mod outcome;
mod ports;
pub mod random;
pub mod rivals;
pub mod run;
pub mod scenario;
pub mod workload;
pub mod world;

use std::time::Duration;

use crate::ports::Tick;

/// Milliseconds since the scenario's start, or a length of time in milliseconds.
pub type Ms = u64;

/// A length of time in whole milliseconds, what is finer dropped; one that does not fit is longer than any run.
pub fn ms(time: Duration) -> Ms {
    // A quarter of the range: it may be added to an instant.
    Ms::try_from(time.as_millis()).unwrap_or(Ms::MAX / 4)
}

/// Whoever looks on while a run goes on: a live display, a progress bar. It changes nothing.
pub trait Watch {
    /// The controller has looked and decided.
    fn tick(&mut self, now: Ms, tick: &Tick<'_>);
    /// The controller has slept, and the world gone on, from one instant to another.
    fn slept(&mut self, from: Ms, to: Ms);
}

/// Nobody looks on.
#[derive(Clone, Copy, Debug)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn tick(&mut self, _: Ms, _: &Tick<'_>) {}
    fn slept(&mut self, _: Ms, _: Ms) {}
}
