//! The table of decisions: reads `tests/cases/*.txt`, decides, and compares what is decided and why, word by word.
//! `UPDATE_CASES=1 cargo test decide_cases` writes the `then` and `because` lines anew; read the difference.
//! The words of a case are explained at the top of `tests/cases/sizes.txt`.

use std::{fmt::Write as _, fs, path::Path};

use yarn_autoscaler::{
    decide::{self, basic},
    model::{Action, Decision, Resources, Situation},
};

use crate::case_reader::read;

#[test]
#[expect(clippy::disallowed_methods, reason = "a test is told by the environment to write its golden lines anew")]
fn every_case_decides_as_written() {
    let mut wrong = String::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for entry in fs::read_dir(&folder).expect("tests/cases is there") {
        let path = entry.expect("an entry").path();
        let text = fs::read_to_string(&path).expect("a case file is text");
        let decided: Vec<_> = text.trim_end().split("\n\n").map(decided).collect();
        let decided = decided.join("\n\n") + "\n";
        if std::env::var_os("UPDATE_CASES").is_some() {
            fs::write(&path, &decided).expect("a case file can be written");
        }
        for (case, decided) in text.trim_end().split("\n\n").zip(decided.trim_end().split("\n\n")) {
            if case != decided {
                let _ = writeln!(wrong, "{}:\n--- written\n{case}\n--- decided\n{decided}\n", path.display());
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}UPDATE_CASES=1 writes the files anew");
}

#[test]
fn changes_are_rounded_as_the_documentation_shows() {
    let examples =
        [(5.0 * 0.5, 3), (0.8 * 0.5, 1), (-5.0 * 0.5, -2), (-0.8 * 0.5, 0), (-1.5 * 0.5, 0), (100.0 * 0.07, 7)];
    for (change, rounded) in examples {
        assert_eq!(basic::round(change), rounded, "round({change})");
    }
}

/// The case with its golden lines as they are decided.
fn decided(case: &str) -> String {
    let is_golden = |line: &&str| ["then", "because", "sample"].contains(&line.split(' ').next().unwrap_or(""));
    let mut text: Vec<_> = case.lines().filter(|line| !is_golden(line)).map(str::to_owned).collect();
    if text.iter().all(|line| line.starts_with('#') || line.is_empty()) {
        return case.to_owned();
    }
    let (policy, situation) = read(case);
    let decision = decide::decide(&policy, &situation);
    let json = serde_json::to_string(&situation).expect("a situation is serialised");
    let again: Situation = serde_json::from_str(&json).expect("and read again");
    assert_eq!(decide::decide(&policy, &again), decision, "the same situation, the same decision:\n{case}");
    if case.contains("\nshow ") {
        let sample = decide::sample(&policy, &situation).expect("a sample");
        let (pending, capacity, used) = (show(sample.pending), show(sample.capacity), show(sample.allocated));
        text.push(format!("sample    pending={pending} capacity={capacity} allocated={used}"));
    }
    text.extend(golden(&decision));
    text.join("\n")
}

fn show(amount: Resources) -> String {
    format!("{}MB/{}c/{}g", amount.memory_mb, amount.vcores, amount.gpus)
}

fn golden(decision: &Decision) -> Vec<String> {
    let mut lines: Vec<_> = decision.actions.iter().map(|action| format!("then      {}", say(action))).collect();
    if lines.is_empty() {
        lines.push("then      nothing".into());
    }
    lines.extend(decision.reasons.iter().map(|reason| format!("because   {reason}")));
    lines
}

fn say(action: &Action) -> String {
    match action {
        Action::Create { group, count } => format!("create {count} {group}"),
        Action::Resize { change, timeout } => format!("resize by {change} in {timeout:?}"),
        Action::Cordon { node, full, .. } => format!("cordon {} ({})", node.host, show(*full)),
        Action::Uncordon { node, full } => format!("uncordon {} ({})", node.host, show(*full)),
        Action::Decommission { hosts, timeout } => format!("decommission {} in {timeout:?}", hosts.join(" ")),
        Action::Recommission { hosts } => format!("recommission {}", hosts.join(" ")),
        Action::Delete { group, instances } => format!("delete {group} {}", instances.join(" ")),
        Action::Release { hosts } => format!("release {}", hosts.join(" ")),
    }
}
