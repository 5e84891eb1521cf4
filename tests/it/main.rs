//! All integration tests, in one binary. One commented line a file.

/// Helper: a large cluster's answers, shared with the benchmarks.
#[path = "../../benches/support/big_cluster.rs"]
mod big_cluster;
mod command_provider; // the provider `command`, against small scripts: good, garbage, crashing, hanging, flooding
mod decision_log; // what is written and what not, rotation, torn lines; `explain` over it
/// The exclude file, plain and XML: foreign entries survive everything.
mod exclude_file;
/// Helper: a web server that misbehaves as told.
mod fake_http;
mod live; // the live display: what it shows, and how it redraws
mod policy; // what a policy file means: Dataproc's corpus, defaults, durations, weights, schema
mod policy_cli; // `validate` and `schema` as processes: output, exit codes
mod policy_diagnostics; // what is said about bad and doubtful policy files, in full
mod policy_file; // when a changed policy file is noticed, and how often it is reported
mod policy_properties; // round trips, and texts at random
mod state_file; // one holder, compare-and-swap, crashes, foreign documents
mod ticks; // ticks to show and log, written out once
/// The REST client against a web server that misbehaves.
mod yarn_rest;
/// Hadoop's RPC to the byte, and against a server that misbehaves.
mod yarn_rpc;
/// Recorded answers of real ResourceManagers, and answers as other versions would give them.
mod yarn_wire;
mod lab; // a real YARN, for whoever needs one
mod lab_smoke; // that YARN itself: up, killed in parts, down, nothing left
// The text of one case, as the situation that `decide` gets.
mod case_reader;
// Crashes, lost answers and changes of mind through the real loop, in the little world.
mod controller;
// The table of decisions in `tests/cases/`: observation in, decision and reasons out.
mod decide_cases;
// What holds for every situation, whatever it is.
mod decide_props;
// The instants and the policy from which tests start.
mod fixtures;
// What the window of samples keeps, confirms and covers.
mod history;
// The rules of the house that a machine can check.
mod tidy;
// A little deterministic world: a cluster, a provider, a store, a clock.
mod world;
