//! `record` on a real YARN: gangs followed while they run, and told from totals afterwards.

use std::{
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use yarn_autoscaler::model::WorkloadRow;

use crate::lab::{Gangs, Lab, LabOptions, eventually};

const ENOUGH: Duration = Duration::from_secs(180);
/// What the members work, once they are all there.
const WORK: Duration = Duration::from_secs(20);
/// What an end takes: the members' last second of waiting, the master's round, YARN's word. On a busy machine.
const AROUND_S: f64 = 10.0;

fn record(lab: &Lab, output: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
    command.env("NO_COLOR", "1").env("YARN_LAB_DIR", &lab.dir).args(["record", "--resource-manager", &lab.rm_url]);
    command.arg("--output").arg(output).args(options).stderr(Stdio::inherit());
    command
}

fn rows(path: &Path) -> Vec<WorkloadRow> {
    let mut lines = csv::Reader::from_path(path).unwrap();
    lines.deserialize().collect::<Result<_, _>>().unwrap()
}

/// Two gangs of which the second one waits for the GPUs of the first.
fn gangs() -> (Gangs, Gangs) {
    let first = Gangs {
        name: "first",
        worker_memory_mb: 2048,
        ps_memory_mb: 1024,
        am_memory_mb: 1024,
        duration: WORK,
        ..Gangs::default()
    };
    let second = Gangs { name: "second", workers: 3, ps: 0, ..first.clone() };
    (first, second)
}

#[test]
fn real_record_of_two_gangs() {
    let lab = Lab::up(LabOptions { node_gpus: 2, ..LabOptions::default() });
    let followed = lab.dir.join("followed.csv");
    let mut recording = record(&lab, &followed, &["--follow", "--interval", "2s"]).spawn().unwrap();
    let (first, second) = gangs();
    let ids = [lab.submit_gangs(&first).remove(0), lab.submit_gangs(&second).remove(0)];
    assert!(lab.wait_apps(ENOUGH).iter().all(|one| one.final_status == "SUCCEEDED"));
    eventually("both are written", ENOUGH, || {
        let written = std::fs::read_to_string(&followed).unwrap_or_default();
        ids.iter().all(|id| written.contains(id))
    });
    rustix::process::kill_process(rustix::process::Pid::from_child(&recording), rustix::process::Signal::INT).unwrap();
    assert!(recording.wait().unwrap().success());

    let exact = rows(&followed);
    let of = |id: &str| -> Vec<(String, u64, u64, u64)> {
        let rows = exact.iter().filter(|row| row.job == id);
        rows.map(|row| (row.group.clone(), row.containers, row.memory_mb, row.gpus)).collect()
    };
    let row = |group: &str, containers, memory_mb, gpus| (group.to_owned(), containers, memory_mb, gpus);
    assert_eq!(of(&ids[0]), [row("master", 1, 1024, 0), row("p0", 1, 1024, 0), row("p1", 2, 2048, 1)]);
    assert_eq!(of(&ids[1]), [row("master", 1, 1024, 0), row("p0", 3, 2048, 1)]);
    for row in &exact {
        let more_s = row.duration_s - WORK.as_secs_f64();
        assert!((0.0..AROUND_S).contains(&more_s), "the second one's waiting is not in it: {row:?}");
    }
    totals_agree(&lab, &ids);
}

/// Afterwards only totals are left; what they are taken apart to is what was used.
fn totals_agree(lab: &Lab, ids: &[String]) {
    let path = lab.dir.join("once.csv");
    let options = ["--master-memory-mb", "1024", "--since", "1h"];
    assert!(record(lab, &path, &options).status().unwrap().success());
    let rows = rows(&path);
    for id in ids {
        let app = lab.get(&format!("/ws/v1/cluster/apps/{id}"));
        let app = &app["app"];
        let seconds = (app["finishedTime"].as_f64().unwrap() - app["launchTime"].as_f64().unwrap()) / 1000.0;
        let of: Vec<_> = rows.iter().filter(|row| row.job == *id).collect();
        let [master, others] = of.as_slice() else { panic!("{of:?}") };
        assert_eq!((master.group.as_str(), others.group.as_str(), others.gpus), ("master", "containers", 1));
        assert!(others.duration_s <= seconds);
        #[expect(clippy::cast_precision_loss, reason = "some thousand")]
        let memory = (others.containers * others.memory_mb) as f64 * others.duration_s + 1024.0 * seconds;
        let told = app["memorySeconds"].as_f64().unwrap();
        assert!((memory / told - 1.0).abs() < 0.02, "{memory} of {told}: {of:?}");
    }
    let (code, added) = {
        let output = record(lab, &path, &["--append"]).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert!(code == Some(0) && added.contains("applications written: 0"), "{added}");
}
