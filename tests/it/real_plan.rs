//! `plan` on a real cluster: what people read, what programs read, its exit codes, and that it changes nothing.

use std::{path::Path, process::Output};

use serde_json::{Value, json};

use crate::{
    daemon::{Trial, command},
    lab::{Lab, LabOptions, eventually},
    onlooker::{SOON, excluded, master_host, submit_sleeper, total},
};

fn plan(lab: &Lab, trial: &Trial, words: &[&str]) -> Output {
    std::fs::write(lab.dir.join("policy.yaml"), trial.policy()).unwrap();
    command(lab, trial, "plan").args(words).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn code_and_errors(output: &Output) -> (i32, String) {
    (output.status.code().unwrap(), String::from_utf8(output.stderr.clone()).unwrap())
}

/// The text without what differs from run to run.
fn at_rest(lab: &Lab, text: &str) -> String {
    let (_, after) = text.split_once(" UTC").unwrap();
    let words = after.replace(&lab.subnet, "127.x.y");
    // How wide the column of hosts is depends on the network's number.
    let line =
        |line: &str| line.split("  ").filter(|part| !part.is_empty()).map(str::trim).collect::<Vec<_>>().join(" | ");
    let of_workers = |one: &str| one.contains("127.x.y") || one.contains("  host");
    words.lines().map(|one| if of_workers(one) { line(one) } else { one.to_owned() } + "\n").collect()
}

/// All of the cluster that a plan could have changed.
fn traces(lab: &Lab) -> Value {
    let nodes: Vec<_> = lab.nodes().iter().map(|node| json!([node["id"], node["state"], total(node).0])).collect();
    let files = ["state.json", "state.json.lock", "decisions.jsonl"].map(|name| lab.dir.join(name).exists());
    json!({"nodes": nodes, "excluded": excluded(lab), "files": files, "instances": lab.instances("primary").len()})
}

#[test]
fn a_plan_shows_what_is_seen_and_what_would_be_done_and_changes_nothing() {
    let lab = Lab::up(LabOptions::default());
    let (trial, before) = (Trial::default(), traces(&lab));

    let idle = plan(&lab, &trial, &["--detailed-exitcode"]);
    assert_eq!(idle.status.code(), Some(0), "nothing to do at the minimum");
    insta::assert_snapshot!("plan_of_an_idle_cluster", at_rest(&lab, &out(&idle)));

    let sleepers: Vec<_> = (0..3).map(|_| submit_sleeper(&lab, 10_240, 600)).collect();
    eventually("two run, one waits", SOON, || {
        sleepers.iter().filter(|id| master_host(&lab, id).is_some()).count() == 2
    });
    let busy = plan(&lab, &trial, &["--detailed-exitcode"]);
    assert_eq!(busy.status.code(), Some(2), "something to do");
    assert!(out(&busy).lines().all(|line| line == line.trim_end()), "no trailing blanks");
    insta::assert_snapshot!("plan_of_a_busy_cluster", at_rest(&lab, &out(&busy)));

    let json = plan(&lab, &trial, &["--json"]);
    assert_eq!(code_and_errors(&json).0, 0, "2 is said only where it is asked for");
    let json: Value = serde_json::from_str(&out(&json)).unwrap();
    assert_eq!(json["actions"], json!([{"action": "create", "group": "primary", "count": 1}]));
    assert_eq!((&json["reasons"][0]["reason"], &json["hadoopVersion"]), (&json!("scaleUp"), &json!("3.3.6")));
    assert_eq!((&json["groups"]["primary"]["ready"], json["workers"].as_array().unwrap().len()), (&json!(2), 2));
    assert_eq!(traces(&lab), before, "a plan changes nothing");

    its_failures_have_codes(&lab, &trial);
}

fn its_failures_have_codes(lab: &Lab, trial: &Trial) {
    let nowhere = Trial { resource_managers: Some(vec!["http://127.0.0.1:9".into()]), ..trial.clone() };
    let (code, errors) = code_and_errors(&plan(lab, &nowhere, &[]));
    assert!(code == 6 && errors.contains("http://127.0.0.1:9"), "{code}: {errors}");

    for broken in ["false", "/no/such/program"] {
        let broken = Trial { provider_command: Some(broken.into()), ..trial.clone() };
        let (code, errors) = code_and_errors(&plan(lab, &broken, &["--json"]));
        assert!(code == 6 && errors.contains("provider command"), "{code}: {errors}");
    }

    let invalid = Trial { min: 5, max: 3, ..trial.clone() };
    let (code, errors) = code_and_errors(&plan(lab, &invalid, &[]));
    assert!(code == 3 && errors.contains("maxInstances"), "{code}: {errors}");

    std::fs::write(lab.dir.join("state.json"), "{").unwrap();
    let state = lab.dir.join("state.json");
    let (code, errors) = code_and_errors(&plan(lab, trial, &[]));
    assert!(code == 2 && errors.contains(&*state.to_string_lossy()), "{code}: {errors}");
    assert_eq!(std::fs::read_to_string(&state).unwrap(), "{", "and it is left as it is");
    assert!(!Path::exists(&lab.dir.join("state.json.lock")));
}
