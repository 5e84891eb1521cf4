//! The daemon as a process, on a real YARN: started, signalled, killed, and read from outside.

use std::{
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::lab::{Lab, eventually};

/// How long a signal may take to end the daemon: within a second, by its promise, and some patience for a busy machine.
const END_MAX: Duration = Duration::from_secs(5);

/// From one tick to the next at most: a look at YARN that takes all its time, the provider's time, the pause.
const TICK_MAX: Duration = Duration::from_secs(30);

/// What a trial's policy says; the cooldown is the trial option's.
#[derive(Clone, Debug)]
pub struct Trial {
    pub min: u32,
    pub max: u32,
    pub graceful_timeout: &'static str,
    pub cooldown: &'static str,
    /// More options of `run`.
    pub options: Vec<String>,
    /// Instead of the lab's own ResourceManager, for a proxy that misbehaves.
    pub resource_managers: Option<Vec<String>>,
    /// Instead of the lab's own provider, for a script around it.
    pub provider_command: Option<String>,
    /// Instead of the provider command and the exclude file: the options of another provider.
    pub provider_options: Option<Vec<String>>,
    /// Instead of a file in the lab's folder.
    pub state: Option<&'static str>,
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            min: 2,
            max: 4,
            graceful_timeout: "5m",
            cooldown: "8s",
            options: Vec::new(),
            resource_managers: None,
            provider_command: None,
            provider_options: None,
            state: None,
        }
    }
}

impl Trial {
    /// The policy file's text.
    pub fn policy(&self) -> String {
        let Self { min, max, graceful_timeout, .. } = self;
        format!(
            "workerConfig: {{minInstances: {min}, maxInstances: {max}}}\n\
             basicAlgorithm:\n  cooldownPeriod: 2m\n  yarnConfig:\n    scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    \
             gracefulDecommissionTimeout: {graceful_timeout}\n"
        )
    }
}

/// A running daemon. Dropping it kills it; its files are the lab's.
#[derive(Debug)]
pub struct Daemon {
    child: Child,
    dir: PathBuf,
}

impl Daemon {
    /// Starts the daemon on this lab, or again on the state that an earlier one left.
    pub fn start(lab: &Lab, trial: &Trial) -> Self {
        std::fs::write(lab.dir.join("policy.yaml"), trial.policy()).unwrap();
        let log = std::fs::File::options().create(true).append(true).open(lab.dir.join("daemon.log")).unwrap();
        let child = command(lab, trial, "run").stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { child, dir: lab.dir.clone() }
    }

    /// Ends it as a crash would, at this very moment.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends SIGTERM; how it ended, and after how long.
    pub fn terminate(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        let status = self.await_end(END_MAX);
        (status, began.elapsed())
    }

    /// Waits for an end that nobody asked for.
    #[track_caller]
    pub fn await_end(&mut self, limit: Duration) -> ExitStatus {
        let mut ended = None;
        eventually("the daemon ends", limit, || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        ended.unwrap()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Resident memory in kB.
    pub fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Its log so far, of all daemons on this lab.
    pub fn log(&self) -> String {
        log(&self.dir)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the daemon's log\n{}", log(&self.dir));
        }
    }
}

/// A command of ours with the options that name this lab.
pub fn command(lab: &Lab, trial: &Trial, name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
    let managers = trial.resource_managers.as_ref().unwrap_or(&lab.rm_urls).join(",");
    command.env("NO_COLOR", "1").env_remove("RUST_LOG").env("NOTIFY_SOCKET", notify_socket(lab)).arg(name);
    // By this `lab down` finds what a test that fails leaves: the daemon, and a provider that hangs without one.
    command.env("YARN_LAB_DIR", &lab.dir);
    let state = trial.state.map_or_else(|| lab.dir.join("state.json"), PathBuf::from);
    command.arg("--policy").arg(lab.dir.join("policy.yaml")).arg("--state").arg(state);
    command.arg("--resource-manager").arg(managers).arg("--admin-address").arg(lab.admin_addresses.join(","));
    if let Some(options) = &trial.provider_options {
        command.args(options);
    } else {
        let provider = trial.provider_command.clone().unwrap_or_else(|| lab.provider_command());
        command.arg("--exclude-file").arg(&lab.exclude_file).arg("--provider-command").arg(provider);
    }
    command.arg("--trial-cooldown").arg(trial.cooldown).args(&trial.options);
    if name == "run" {
        command.arg("--decision-log").arg(lab.dir.join("decisions.jsonl"));
    }
    command
}

/// Waits for so many more ticks, as systemd would hear of them: a quiet tick leaves no other trace.
#[track_caller]
pub fn await_ticks(lab: &Lab, more: usize) {
    let path = notify_socket(lab);
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(TICK_MAX)).unwrap();
    for tick in 0..more {
        let mut message = [0; 1 << 16];
        let length = socket.recv(&mut message);
        let length = length.unwrap_or_else(|error| panic!("no tick within {TICK_MAX:?} after {tick}: {error}"));
        assert!(String::from_utf8_lossy(&message[..length]).contains("WATCHDOG=1"));
    }
}

/// Where the daemon would find systemd. Nobody listens there most of the time, which is nothing to the daemon.
fn notify_socket(lab: &Lab) -> PathBuf {
    lab.dir.join("notify")
}

/// The decisions that were logged so far.
pub fn decisions(lab: &Lab) -> Vec<Value> {
    let text = std::fs::read_to_string(lab.dir.join("decisions.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The state that was saved last.
pub fn state(lab: &Lab) -> Value {
    let text = std::fs::read_to_string(lab.dir.join("state.json")).unwrap_or_default();
    serde_json::from_str::<Value>(&text).map_or(Value::Null, |document| document["state"].clone())
}

fn log(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("daemon.log")).unwrap_or_default()
}
