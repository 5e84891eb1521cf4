//! When a lab is at rest: the right workers, nothing begun that has not ended, nothing left in the exclude file.

use std::{path::Path, time::Duration};

use serde_json::Value;

use crate::{
    daemon::{Daemon, await_ticks, state},
    lab::{Lab, eventually, processes_of},
};

/// Patience with a busy machine.
pub const SOON: Duration = Duration::from_secs(90);

/// Waits until there are so many workers, all in YARN, and the daemon has nothing under way; then looks twice more.
#[track_caller]
pub fn await_rest(lab: &Lab, workers: usize) {
    eventually(&format!("{workers} workers, at rest"), SOON, || is_at_rest(lab, workers));
    await_ticks(lab, 2);
    assert!(is_at_rest(lab, workers), "it did not stay at rest: {:?}\n{}", lab.instances("primary"), state(lab));
}

fn is_at_rest(lab: &Lab, workers: usize) -> bool {
    let state = state(lab);
    let is_empty = |field: &str| match &state[field] {
        Value::Array(items) => items.is_empty(),
        Value::Object(items) => items.is_empty(),
        _ => false,
    };
    is_empty("operations")
        && is_empty("drains")
        && lab.hosts("RUNNING").len() == workers
        && lab.hosts("DECOMMISSIONING").is_empty()
        && is_exclude_file_clean(lab)
        && up(lab) == (workers, workers)
}

/// How many machines there are, and how many of them are up.
pub fn up(lab: &Lab) -> (usize, usize) {
    let instances = lab.instances("primary");
    (instances.len(), instances.iter().filter(|(_, _, state)| state == "RUNNING").count())
}

/// Whether the exclude file names none of the lab's hosts.
pub fn is_exclude_file_clean(lab: &Lab) -> bool {
    !std::fs::read_to_string(&lab.exclude_file).unwrap().contains(&format!("{}.", lab.subnet))
}

/// The orders that the provider has ever taken from a daemon, as it wrote them down.
pub fn orders_taken(lab: &Lab, method: &str) -> Vec<Value> {
    let entries = std::fs::read_dir(lab.dir.join("operations")).unwrap().map(|entry| entry.unwrap().path());
    let is_order = |path: &Path| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{method}-ya-"));
    let texts = entries.filter(|path| is_order(path) && path.extension().is_some_and(|end| end == "json"));
    // One that is being replaced this very moment shows at the next look.
    texts.filter_map(|path| serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()).collect()
}

/// Ends the daemon, which leaves no process behind, and takes the lab down, which leaves none either.
#[track_caller]
pub fn leave_nothing(lab: &Lab, daemon: Daemon) {
    assert!(daemon.terminate().0.success());
    let are_ours = |line: &String| line.contains("/provider --dir") || line.contains("yarn-autoscaler ");
    eventually("nothing of the daemon's is left", SOON, || !processes_of(&lab.dir).iter().any(are_ours));
    lab.down();
    assert_eq!(processes_of(&lab.dir), Vec::<String>::new());
}
