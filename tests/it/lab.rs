//! A real YARN for tests: Apache Hadoop's own ResourceManager and NodeManagers.
//!
//! Everything is done by `examples/local-yarn/lab`; this is its handle in Rust.
//! Each [`Lab`] has a loopback network and a folder of its own, so tests run side
//! by side, and dropping it ends every process that belongs to it. A machine
//! without Java or Maven fails the test with a sentence that names the package.
#![expect(dead_code, reason = "each test uses a part of it")]

use std::ffi::OsStr;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What a cluster looks like at its start.
#[derive(Debug, Clone)]
pub struct LabOptions {
    pub hadoop_version: &'static str,
    pub nodes: u32,
    pub node_memory_mb: u64,
    pub node_vcores: u32,
    pub node_gpus: u32,
    /// `xml` or `txt`.
    pub exclude_format: &'static str,
    /// Applications survive a restart of the ResourceManager.
    pub recovery: bool,
    /// Two ResourceManagers; the first one is active.
    pub ha: bool,
    /// The provider's quota.
    pub max_workers: u32,
    /// The quota of a secondary group; no such group when 0.
    pub secondary_max: u32,
    /// How long machines of the provider boot.
    pub boot_delay: Duration,
    /// What YARN calls primary worker `{}`; by its address where it is `None`.
    pub worker_hosts: Option<&'static str>,
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            hadoop_version: "3.3.6",
            nodes: 2,
            node_memory_mb: 12_288,
            node_vcores: 8,
            node_gpus: 1,
            exclude_format: "xml",
            recovery: false,
            ha: false,
            max_workers: 100,
            secondary_max: 0,
            boot_delay: Duration::ZERO,
            worker_hosts: None,
        }
    }
}

/// Gang jobs to submit; the default is one of the conference scene's.
#[derive(Debug, Clone)]
pub struct Gangs {
    pub name: &'static str,
    /// `TensorFlow` or `PyTorch`.
    pub kind: &'static str,
    pub gangs: u32,
    pub workers: u32,
    pub worker_memory_mb: u64,
    pub worker_gpus: u32,
    pub ps: u32,
    pub ps_memory_mb: u64,
    pub am_memory_mb: u64,
    /// Whole seconds that the workers run once all members have come.
    pub duration: Duration,
}

impl Default for Gangs {
    fn default() -> Self {
        Self {
            name: "gang",
            kind: "TensorFlow",
            gangs: 1,
            workers: 2,
            worker_memory_mb: 4096,
            worker_gpus: 1,
            ps: 1,
            ps_memory_mb: 2048,
            am_memory_mb: 2048,
            duration: Duration::from_secs(45),
        }
    }
}

/// An application that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub id: String,
    /// YARN's word: `SUCCEEDED`, `FAILED`, `KILLED`; `FORGOTTEN` if a restart lost it.
    pub final_status: String,
    /// Containers that did not end by themselves.
    pub lost: u64,
    pub diagnostics: String,
}

/// A running cluster. Dropping it takes it down.
#[derive(Debug)]
pub struct Lab {
    pub rm_url: String,
    /// All ResourceManagers: more than one with [`LabOptions::ha`].
    pub rm_urls: Vec<String>,
    pub admin_address: String,
    pub admin_addresses: Vec<String>,
    pub exclude_file: PathBuf,
    /// The network, `127.x.y`. Worker `n` is at `127.x.y.(11 + n)`.
    pub subnet: String,
    folder: Option<tempfile::TempDir>,
    /// The lab's folder: state files and logs of tests may go there.
    pub dir: PathBuf,
}

impl Lab {
    /// Starts a cluster and returns when all its nodes are RUNNING.
    pub fn up(options: LabOptions) -> Self {
        let folder = tempfile::Builder::new().prefix("yarn-lab.").tempdir().unwrap();
        let dir = folder.path().canonicalize().unwrap();
        let output = script("lab").arg("up").arg("--dir").arg(&dir).args(options.words()).output().unwrap();
        let settings: Value = serde_json::from_str(&stdout_of(output)).unwrap();
        let of_managers = |field: &str| -> Vec<String> {
            let managers = settings["resourceManagers"].as_array().unwrap();
            managers.iter().map(|manager| text(&manager[field])).collect()
        };
        Self {
            rm_url: text(&settings["rmUrl"]),
            rm_urls: of_managers("url"),
            admin_address: text(&settings["rmAdmin"]),
            admin_addresses: of_managers("admin"),
            exclude_file: PathBuf::from(text(&settings["excludeFile"])),
            subnet: text(&settings["subnet"]),
            folder: Some(folder),
            dir,
        }
    }

    /// Ends every process of the lab; returns when none is left. Twice is fine.
    pub fn down(&self) {
        self.lab("down", &[]);
    }

    /// Kills the ResourceManager as a crash would.
    pub fn rm_kill(&self) {
        self.lab("rm-stop", &[]);
    }

    /// Starts the ResourceManager again and waits until it answers.
    pub fn rm_start(&self) {
        self.lab("rm-start", &[]);
    }

    /// With [`LabOptions::ha`]: kills one ResourceManager, `rm1` or `rm2`.
    pub fn rm_kill_one(&self, id: &str) {
        self.lab("rm-stop", &["--id", id]);
    }

    /// With [`LabOptions::ha`]: starts one ResourceManager again, as a standby.
    pub fn rm_start_one(&self, id: &str) {
        self.lab("rm-start", &["--id", id]);
    }

    /// With [`LabOptions::ha`]: makes one ResourceManager the active one.
    pub fn failover(&self, id: &str) {
        self.lab("failover", &["--id", id]);
    }

    /// Kills the NodeManager of a host; its machine and its containers stay.
    pub fn nm_kill(&self, host: &str) {
        self.lab("nm-kill", &[host]);
    }

    /// Submits gangs and returns the ids of their applications.
    pub fn submit_gangs(&self, gangs: &Gangs) -> Vec<String> {
        let words = gangs.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.lab("submit", &words).split_whitespace().map(str::to_owned).collect()
    }

    /// Waits until all that was submitted is over, in the order of its end.
    pub fn wait_apps(&self, timeout: Duration) -> Vec<Ended> {
        let seconds = timeout.as_secs_f64().to_string();
        let lines = self.lab("wait", &["--json", "--timeout", &seconds]);
        lines.lines().map(|line| ended(&serde_json::from_str(line).unwrap())).collect()
    }

    /// The value of `--provider-command`, quoted as a shell wants it.
    pub fn provider_command(&self) -> String {
        format!("'{}' --dir '{}'", script_path("provider").display(), self.dir.display())
    }

    /// One request to the provider, outside of any daemon.
    pub fn provider(&self, request: &Value) -> Value {
        serde_json::from_str(&stdout_of(self.call_provider(request))).unwrap()
    }

    /// The same, for requests that it may not survive or not answer in JSON.
    pub fn call_provider(&self, request: &Value) -> Output {
        let mut command = script("provider");
        command.arg("--dir").arg(&self.dir).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// The machines of a group as the provider sees them: name, host, state.
    pub fn instances(&self, group: &str) -> Vec<(String, String, String)> {
        let answer = self.provider(&json!({"version": 1, "method": "describe"}));
        let instances = answer["groups"][group]["instances"].as_array().unwrap();
        instances.iter().map(|one| (text(&one["name"]), text(&one["host"]), text(&one["state"]))).collect()
    }

    /// Polls an operation of the provider until it is no longer running.
    pub fn await_operation(&self, operation: &Value, timeout: Duration) -> Value {
        let request = json!({"version": 1, "method": "poll", "operationId": operation["operationId"]});
        let mut answer = Value::Null;
        eventually("the operation ends", timeout, || {
            answer = self.provider(&request);
            answer["state"] != "RUNNING"
        });
        answer
    }

    /// Makes the provider misbehave: see `examples/local-yarn/lab_yarn/faults.py`.
    pub fn set_provider_faults(&self, faults: &Value) {
        std::fs::write(self.dir.join("provider-faults.json"), faults.to_string()).unwrap();
    }

    /// The nodes as YARN lists them.
    pub fn nodes(&self) -> Vec<Value> {
        let document = self.get("/ws/v1/cluster/nodes");
        document["nodes"]["node"].as_array().cloned().unwrap_or_default()
    }

    /// The hosts of the nodes in a state, sorted.
    pub fn hosts(&self, state: &str) -> Vec<String> {
        let nodes = self.nodes().into_iter().filter(|node| node["state"] == state);
        let mut hosts: Vec<String> = nodes.map(|node| text(&node["nodeHostName"])).collect();
        hosts.sort();
        hosts
    }

    /// A document of the first ResourceManager's REST.
    pub fn get(&self, path: &str) -> Value {
        self.get_from(self.rm_url.trim_start_matches("http://"), path)
    }

    /// A document of any REST, of a NodeManager's at `host:8042` for one.
    pub fn get_from(&self, authority: &str, path: &str) -> Value {
        let mut stream = TcpStream::connect(authority).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        // 1.0, so that the answer is not chunked and ends with the connection.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: application/json\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap()
    }

    fn lab(&self, command: &str, arguments: &[&str]) -> String {
        lab(&self.dir, command, arguments)
    }
}

/// A command on the lab in this folder.
pub fn lab(dir: &Path, command: &str, arguments: &[&str]) -> String {
    stdout_of(script("lab").arg(command).arg("--dir").arg(dir).args(arguments).output().unwrap())
}

impl Drop for Lab {
    fn drop(&mut self) {
        let ended = script("lab").arg("down").arg("--dir").arg(&self.dir).status();
        if std::thread::panicking() {
            let kept = self.folder.take().map(tempfile::TempDir::keep);
            eprintln!("the lab's logs are kept in {}", kept.unwrap_or_default().display());
        } else {
            assert!(ended.unwrap().success(), "`lab down` failed");
        }
    }
}

impl LabOptions {
    fn words(&self) -> Vec<String> {
        let mut words = options(&[
            ("hadoop-version", &self.hadoop_version),
            ("nodes", &self.nodes),
            ("node-memory-mb", &self.node_memory_mb),
            ("node-vcores", &self.node_vcores),
            ("node-gpus", &self.node_gpus),
            ("exclude-format", &self.exclude_format),
            ("max-workers", &self.max_workers),
            ("secondary-max", &self.secondary_max),
            ("boot-delay", &self.boot_delay.as_secs_f64()),
        ]);
        words.extend(self.worker_hosts.map(|pattern| format!("--worker-hosts={pattern}")));
        let flags = [("--recovery", self.recovery), ("--ha", self.ha)];
        words.extend(flags.iter().filter(|(_, on)| *on).map(|(flag, _)| (*flag).to_owned()));
        words
    }
}

impl Gangs {
    fn words(&self) -> Vec<String> {
        options(&[
            ("name", &self.name),
            ("kind", &self.kind),
            ("gangs", &self.gangs),
            ("workers", &self.workers),
            ("worker-memory-mb", &self.worker_memory_mb),
            ("worker-gpus", &self.worker_gpus),
            ("ps", &self.ps),
            ("ps-memory-mb", &self.ps_memory_mb),
            ("am-memory-mb", &self.am_memory_mb),
            ("duration", &self.duration.as_secs()),
        ])
    }
}

fn options(pairs: &[(&str, &dyn std::fmt::Display)]) -> Vec<String> {
    pairs.iter().map(|(name, value)| format!("--{name}={value}")).collect()
}

fn ended(line: &Value) -> Ended {
    Ended {
        id: text(&line["id"]),
        final_status: text(&line["finalStatus"]),
        lost: line["lost"].as_u64().unwrap(),
        diagnostics: text(&line["diagnostics"]),
    }
}

/// Polls a condition on real processes; what it waits for is named when it fails.
#[track_caller]
pub fn eventually(what: &str, timeout: Duration, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < timeout, "not within {timeout:?}: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Every living process whose environment, folder or command line names this folder.
pub fn processes_of(dir: &Path) -> Vec<String> {
    let needle = dir.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let processes = entries.filter(|path| is_number(path.file_name()) && names(path, needle));
    processes.map(|path| format!("{} {}", path.display(), content(&path, "cmdline"))).collect()
}

fn is_number(name: Option<&OsStr>) -> bool {
    name.and_then(OsStr::to_str).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

fn names(process: &Path, needle: &str) -> bool {
    let folder = std::fs::read_link(process.join("cwd")).unwrap_or_default();
    folder.to_string_lossy().contains(needle)
        || ["environ", "cmdline"].iter().any(|file| content(process, file).contains(needle))
}

fn content(process: &Path, file: &str) -> String {
    String::from_utf8_lossy(&std::fs::read(process.join(file)).unwrap_or_default()).replace('\0', " ")
}

fn script_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/local-yarn").join(name)
}

fn script(name: &str) -> Command {
    Command::new(script_path(name))
}

#[track_caller]
fn stdout_of(output: Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}", errors.trim());
    String::from_utf8(output.stdout).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
