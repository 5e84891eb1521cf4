//! All integration tests, in one binary. One commented line a file.

mod policy; // what a policy file means: Dataproc's corpus, defaults, durations, weights, schema
mod policy_cli; // `validate` and `schema` as processes: output, exit codes
mod policy_diagnostics; // what is said about bad and doubtful policy files, in full
mod policy_properties; // round trips, and texts at random
