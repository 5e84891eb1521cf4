//! All integration tests, in one binary. One commented line a file.

mod policy; // what a policy file means: Dataproc's corpus, defaults, durations, weights, schema
mod policy_cli; // `validate` and `schema` as processes: output, exit codes
mod policy_diagnostics; // what is said about bad and doubtful policy files, in full
mod policy_properties; // round trips, and texts at random
mod command_provider; // the provider `command`, against small scripts: good, garbage, crashing, hanging, flooding
mod decision_log; // what is written and what not, rotation, torn lines; `explain` over it
mod live; // the live display: what it shows, and how it redraws
mod policy_file; // when a changed policy file is noticed, and how often it is reported
mod state_file; // one holder, compare-and-swap, crashes, foreign documents
mod ticks; // ticks to show and log, written out once
