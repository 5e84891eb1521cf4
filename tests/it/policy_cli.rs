//! `validate` and `schema` as processes.

use std::{
    io::Write,
    process::{Command, Output, Stdio},
};

fn run(args: &[&str], stdin: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR"));
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // A process that ends before it has read all is not this test's business.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// Exit code, standard output and standard error, as one text.
fn shown(args: &[&str], stdin: &str) -> String {
    let output = run(args, stdin);
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let code = output.status.code().unwrap();
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(&output.stdout), text(&output.stderr))
}

const VALID: &str = "policies/autoscale_tony.yaml";
const WARNS: &str = "tests/fixtures/policies/lints/never-scales.yaml";
const INVALID: &str = "tests/fixtures/policies/invalid/min-default-above-max.yaml";

#[test]
fn a_valid_policy_is_said_to_be_so() {
    insta::assert_snapshot!(shown(&["validate", VALID], ""));
}

#[test]
fn several_files_are_checked_and_the_worst_decides() {
    insta::assert_snapshot!(shown(&["validate", VALID, WARNS, INVALID], ""));
}

#[test]
fn warnings_are_errors_where_they_are_denied() {
    assert_eq!(run(&["validate", WARNS], "").status.code(), Some(0));
    insta::assert_snapshot!(shown(&["validate", "--deny-warnings", WARNS], ""));
}

#[test]
fn a_file_that_cannot_be_read_is_a_usage_error_and_the_others_are_checked() {
    insta::assert_snapshot!(shown(&["validate", "no/such.yaml", INVALID], ""));
}

#[test]
fn standard_input_is_a_file() {
    insta::assert_snapshot!(shown(&["validate", "-"], "workerConfig: {maxInstances: 3}\n"));
}

#[test]
fn the_shuffle_mode_is_an_option() {
    assert_eq!(run(&["validate", VALID], "").status.code(), Some(0));
    insta::assert_snapshot!(shown(&["validate", "--spark-shuffle", "primary-worker", VALID], ""));
}

#[test]
fn machines_get_one_document() {
    insta::assert_snapshot!(shown(&["validate", "--json", VALID, WARNS, INVALID, "no/such.yaml"], ""));
}

#[test]
fn no_file_is_a_usage_error() {
    assert_eq!(run(&["validate"], "").status.code(), Some(2));
    assert_eq!(run(&["validate", "--spark-shuffle", "hdfs", VALID], "").status.code(), Some(2));
}

/// Not a terminal: no colour, whatever the environment.
#[test]
fn piped_output_is_plain() {
    assert!(!run(&["validate", INVALID], "").stderr.contains(&0x1b));
}

#[test]
fn the_schema_is_printed() {
    let output = run(&["schema"], "");
    assert_eq!(output.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema, *yarn_autoscaler::policy::schema().as_value());
}

const SCENARIO: &str = "examples/scenarios/conference.yaml";

/// A file with `workload` is a scenario; one without it is if we say so.
#[test]
fn scenarios_are_checked_beside_policies() {
    let bad = "tests/fixtures/scenarios/invalid/unknown-queue.yaml";
    insta::assert_snapshot!(shown(&["validate", VALID, SCENARIO, bad], ""));
    assert_eq!(run(&["validate", "--scenario", SCENARIO], "").status.code(), Some(0));
    insta::assert_snapshot!(shown(&["validate", "--scenario", "-"], "cloud: {}\n"));
}

#[test]
fn the_schema_of_scenarios_is_printed() {
    let output = run(&["schema", "--scenario"], "");
    assert_eq!(output.status.code(), Some(0));
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema, *yarn_autoscaler::sim::scenario::schema().as_value());
}
