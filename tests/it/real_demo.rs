//! `examples/local-yarn/run`, the README's first command: it plays to its end, and an interrupt leaves nothing behind.

use std::{
    fs::File,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::lab::{eventually, processes_of};

/// The scene with two gangs and one takes a minute and a half on an idle machine.
const SCENE_MAX: Duration = Duration::from_secs(300);
const END_MAX: Duration = Duration::from_secs(30);

/// The example as a shell would start it: in a process group of its own, its output in files.
fn start(folder: &Path, options: &[&str]) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/local-yarn/run");
    // Whoever runs the tests in the background has SIGINT ignored, and what is ignored stays so: as in a terminal.
    let mut command = Command::new("env");
    command.arg("--default-signal=INT").arg(script);
    command.args(["--binary", env!("CARGO_BIN_EXE_yarn-autoscaler"), "--gangs", "2", "--duration", "10"]).args(options);
    command.args(["--", "--trial-cooldown", "10s"]).env("TMPDIR", folder.join("tmp")).process_group(0);
    std::fs::create_dir(folder.join("tmp")).unwrap();
    let file = |name: &str| File::create(folder.join(name)).unwrap();
    command.stdout(file("stdout")).stderr(file("stderr")).spawn().unwrap()
}

fn await_end(child: &mut Child, limit: Duration) -> ExitStatus {
    let mut status = None;
    eventually("the example ends", limit, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status.unwrap()
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn the_scene_plays_to_its_end_and_nothing_that_ran_is_killed() {
    let folder = tempfile::Builder::new().prefix("demo.").tempdir().unwrap();
    let folder = folder.path();
    let status = await_end(&mut start(folder, &[]), SCENE_MAX);
    let (out, err) = (text(folder, "stdout"), text(folder, "stderr"));
    assert!(status.success(), "{out}\n{err}");
    assert!(out.contains("3 of 3 jobs succeeded, containers killed: 0\n"), "{out}");
    for word in ["SCALE_UP", "SCALE_DOWN", "pending", "workers", "decision"] {
        assert!(out.contains(word), "no {word} in\n{out}");
    }
    assert_eq!(processes_of(folder), Vec::<String>::new());
    let left = std::fs::read_dir(folder.join("tmp")).unwrap().map(|entry| entry.unwrap().file_name());
    // The list of subnets in use is kept for other labs.
    let left: Vec<_> = left.filter(|name| !name.to_string_lossy().starts_with("yarn-lab-subnets")).collect();
    assert!(left.is_empty(), "its folder is gone, too: {left:?}");
}

#[test]
fn an_interrupt_while_the_cluster_starts_leaves_no_process_behind() {
    interrupted_when("the first JVM runs", |dir| processes_of(dir).iter().any(|one| one.contains("ResourceManager")));
}

#[test]
fn an_interrupt_while_the_scene_plays_leaves_no_process_behind() {
    interrupted_when("gangs run", |dir| processes_of(dir).iter().any(|one| one.contains("GangLauncher master")));
}

/// Ctrl-C goes to the whole foreground group.
fn interrupted_when(what: &str, mut moment: impl FnMut(&Path) -> bool) {
    let folder = tempfile::Builder::new().prefix("demo.").tempdir().unwrap();
    let dir = folder.path().join("lab");
    let mut child = start(folder.path(), &["--dir", dir.to_str().unwrap()]);
    eventually(what, SCENE_MAX, || moment(&dir));
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    let status = await_end(&mut child, END_MAX);
    assert_eq!(status.code(), Some(130), "{}", text(folder.path(), "stderr"));
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
}
