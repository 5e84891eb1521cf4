//! The shipped scenarios, run as their reader would: each does what it expects of itself, and each is told of.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const BINARY: &str = env!("CARGO_BIN_EXE_yarn-autoscaler");

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios")
}

fn scenarios() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "yaml")).collect();
    files.sort();
    files
}

fn simulate(arguments: &[&str]) -> Output {
    Command::new(BINARY).arg("simulate").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_scenario_does_what_it_expects_and_is_told_of() {
    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    let files = scenarios();
    assert!(files.len() >= 5);
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(readme.contains(&format!("[{name}]({name})")), "examples/scenarios/README.md says nothing of {name}");
        let output = simulate(&[file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
        assert!(
            !yarn_autoscaler::sim::scenario::load(&fs::read_to_string(&file).unwrap()).unwrap().0.expect.is_empty()
        );
    }
}

#[test]
fn an_expectation_that_is_not_met_is_told_and_ends_with_code_4() {
    let policy = "examples/scenarios/policies/patient.yaml";
    let output = simulate(&["examples/scenarios/long-jobs.yaml", "--policy", policy]);
    assert_eq!(output.status.code(), Some(4));
    let told = text(&output.stderr);
    assert!(told.contains("containersKilled"), "{told}");
}

#[test]
fn the_same_run_gives_the_same_bytes_on_one_thread_and_on_many() {
    let week = "examples/scenarios/busy-week.yaml";
    let other = "policies/shared_spark.yaml";
    let own = "examples/scenarios/policies/up-fast-down-slow.yaml";
    let arguments = [week, "--policy", own, "--policy", other, "--seeds", "2", "--json", "--threads"];
    let on = |threads: &'static str| simulate(&[&arguments[..], &[threads]].concat()).stdout;
    let one = on("1");
    assert!(one.len() > 1000);
    assert!(one == on("4"), "threads make a difference");
}

#[test]
fn several_policies_stand_side_by_side_as_table_csv_and_json() {
    let policies = ["--policy", "policies/autoscale_tony.yaml", "--policy", "examples/scenarios/policies/patient.yaml"];
    let scene = ["examples/scenarios/conference.yaml"];
    let table = text(&simulate(&[&scene[..], &policies[..]].concat()).stdout);
    assert!(table.contains("autoscale-tony") && table.contains("patient"), "{table}");
    let means = text(&simulate(&[&scene[..], &policies[..], &["--seeds", "3"]].concat()).stdout);
    assert!(means.contains("±") && means.contains("Means over 3 seeds"), "{means}");
    let csv = text(&simulate(&[&scene[..], &policies[..], &["--csv"]].concat()).stdout);
    assert_eq!(csv.trim().lines().count(), 3, "{csv}");
    let json = simulate(&[&scene[..], &policies[..], &["--json"]].concat()).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json.as_array().or_else(|| json["runs"].as_array()).map(Vec::len), Some(2), "{json}");
}

#[test]
fn what_cannot_be_used_is_said_with_its_code() {
    let cases = [
        (&["no-such.yaml"][..], 2, "no-such.yaml cannot be read"),
        (&[], 2, "SCENARIO"),
        (&["--trace", "Cargo.toml", "--policy", "policies/shared_spark.yaml"], 2, "--trace-format"),
        (&["policies/shared_spark.yaml"], 3, "workload"),
        (&["examples/scenarios/conference.yaml", "--poll-interval", "1s"], 2, "between 4s and 60s"),
        (&["examples/scenarios/conference.yaml", "--seeds", "0"], 2, "0 is not in"),
        (&["examples/scenarios/conference.yaml", "--initial-workers", "11"], 2, "quota is 10"),
        (&["examples/scenarios/conference.yaml", "--price-per-hour", "1e308"], 2, "between 0 and"),
        (&["examples/scenarios/conference.yaml", "--duration", "0s"], 2, "between 1s and 3650d"),
        (&["examples/scenarios/conference.yaml", "--report", "examples/scenarios/conference.yaml"], 2, "overwrite"),
        (&["examples/scenarios/conference.yaml", "--trace-cluster", "x"], 2, "--trace"),
        (&["--faults", "--json"], 2, "cannot be used with"),
        (&["--faults", "--worker-gpus", "3"], 2, "cannot be used with"),
    ];
    for (arguments, code, says) in cases {
        let output = simulate(arguments);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        assert!(told.contains(says), "{arguments:?}: {told}");
    }
}

#[test]
fn figures_that_cannot_be_written_are_an_error() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(BINARY);
    command.args(["simulate", "examples/scenarios/conference.yaml", "--json"]).stdout(full);
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn policies_of_one_name_are_told_apart() {
    let policy = ["--policy", "policies/autoscale_tony.yaml"];
    let scene = ["examples/scenarios/conference.yaml", "--csv"];
    let csv = text(&simulate(&[&scene[..], &policy[..], &policy[..]].concat()).stdout);
    assert!(csv.contains("autoscale-tony (policies/autoscale_tony.yaml)"), "{csv}");
}

#[test]
fn trials_at_random_keep_their_promises() {
    let output = simulate(&["--faults", "--seeds", "20", "--seed", "1000"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).starts_with("20 trials"), "{}", text(&output.stdout));
}

#[test]
fn the_demo_ends_with_a_report_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(BINARY).args(["demo", "--speed", "0"]).current_dir(folder.path()).output().unwrap();
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{told}{}", text(&output.stderr));
    assert!(told.contains("11 of 11 jobs succeeded"), "{told}");
    let page = fs::read_to_string(folder.path().join("yarn-autoscaler-demo.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    assert!(told.contains("file://") && told.contains("yarn-autoscaler-demo.html"), "{told}");
}
