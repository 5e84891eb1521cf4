//! `run` as a process, without a cluster: what it refuses and with which code, what it tells systemd, how it ends.

use std::{
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const SOON: Duration = Duration::from_secs(20);
const POLICY: &str = "workerConfig: {minInstances: 2, maxInstances: 4}\nbasicAlgorithm:\n  yarnConfig:\n    \
                      scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    gracefulDecommissionTimeout: 1h\n";

/// `run` on a port where nobody listens, with a provider that has nothing.
fn run(dir: &Path) -> Command {
    std::fs::write(dir.join("policy.yaml"), POLICY).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
    command.env("NO_COLOR", "1").env_remove("RUST_LOG").args(["run", "--resource-manager", "http://127.0.0.1:1"]);
    command.args(["--provider-command", r#"echo '{"groups":{}}'"#]);
    command.arg("--policy").arg(dir.join("policy.yaml")).arg("--state").arg(dir.join("state.json"));
    command.arg("--exclude-file").arg(dir.join("exclude.xml")).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A command that ends by itself: its code and its words.
#[track_caller]
fn refused(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

/// Ends it with SIGTERM; its code and how long that took.
fn terminate(mut child: Child) -> (Option<i32>, Duration) {
    let began = Instant::now();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    (child.wait().unwrap().code(), began.elapsed())
}

/// The same command without this option and its value.
fn without_option(command: &Command, option: &str) -> Command {
    let arguments: Vec<_> = command.get_args().collect();
    let at = arguments.iter().position(|argument| *argument == option).unwrap();
    let mut other = Command::new(command.get_program());
    other.args(&arguments[..at]).args(&arguments[at + 2..]);
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other
}

#[test]
fn what_cannot_be_used_is_refused_with_its_code() {
    let dir = TempDir::new().unwrap();
    // The ResourceManager would say it, once it is there.
    let (code, words) = refused(&mut without_option(&run(dir.path()), "--exclude-file"));
    assert_eq!(code, Some(6), "{words}");
    assert!(words.contains("--exclude-file"), "{words}");

    let mut no_such_policy = run(dir.path());
    std::fs::remove_file(dir.path().join("policy.yaml")).unwrap();
    let (code, words) = refused(&mut no_such_policy);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("cannot read the policy"), "{words}");

    let mut bad_policy = run(dir.path());
    let bad = POLICY.replace("maxInstances: 4", "maxInstances: 1");
    std::fs::write(dir.path().join("policy.yaml"), bad).unwrap();
    let (code, words) = refused(&mut bad_policy);
    assert_eq!(code, Some(3), "{words}");
    assert!(words.contains("maxInstances: 1") && words.contains("^"), "{words}");

    let mut no_folder = run(dir.path());
    no_folder.env("YARN_AUTOSCALER_STATE", dir.path().join("nowhere/state.json"));
    let (code, words) = refused(&mut without_option(&no_folder, "--state"));
    assert_eq!(code, Some(2), "{words}");
    assert!(words.contains("nowhere"), "{words}");
}

#[test]
fn systemd_is_told_and_the_state_has_one_holder() {
    let dir = TempDir::new().unwrap();
    let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(SOON)).unwrap();
    let child = run(dir.path()).env("NOTIFY_SOCKET", dir.path().join("notify")).spawn().unwrap();
    let heard = || {
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).expect("a message within the limit");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    };
    let first = heard();
    assert!(
        first.contains("READY=1") && first.contains("WATCHDOG=1") && first.contains("STATUS=YARN does not"),
        "{first}"
    );
    let second = heard();
    assert!(second.contains("WATCHDOG=1") && !second.contains("READY"), "{second}");

    let (code, words) = refused(&mut run(dir.path()));
    assert_eq!(code, Some(5), "{words}");
    assert!(words.contains(&format!("pid {}", child.id())), "{words}");

    let (code, took) = terminate(child);
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(3), "{took:?}");
    let mut last = heard();
    while !last.contains("STOPPING=1") {
        last = heard();
    }
}
