//! The simulator: a YARN cluster, its cloud and its clock behind the controller's own ports, so that the daemon's loop
//! runs unchanged through hours or years of simulated time. Pure: text comes in, values go out; no files, no network,
//! no wall clock. The same scenario, policy and seed give the same outcome, bit for bit, on any machine.
//!
//! | folder or file | what it does |
//! |---|---|
//! | [`scenario`] | the scenario file: as written, checked, as meant |
//! | [`workload`] | jobs: written out, generated, or read from a trace |
//! | [`random`] | chance: one generator, a stream for each purpose |
//! | [`outcome`] | what a run yields: jobs, steps, accounts, decisions |
//!
//! Time is integer milliseconds since the scenario's start ([`Ms`]); calendar time is made of it for the controller.

pub mod outcome;
pub mod random;
pub mod scenario;
pub mod workload;

/// Milliseconds since the scenario's start, or a length of time in milliseconds.
pub type Ms = u64;
