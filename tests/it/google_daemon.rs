//! `run` and `plan` on a Dataproc cluster, as processes, without a Hadoop: what they order, how they hold, how they end.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Recorded, Rule},
    fake_yarn::{FakeYarn, NODE_MB},
    lab::eventually,
};

/// Longer than anything takes on a busy machine.
const SOON: Duration = Duration::from_secs(40);

const POLICY: &str = "workerConfig: {minInstances: 2, maxInstances: 10}\nbasicAlgorithm:\n  yarnConfig:\n    \
                      scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    gracefulDecommissionTimeout: 60s\n";
const BOTH: &str = "workerConfig: {minInstances: 2, maxInstances: 10}\nsecondaryWorkerConfig: {maxInstances: 10}\n\
                    basicAlgorithm:\n  yarnConfig:\n    scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    \
                    gracefulDecommissionTimeout: 60s\n";

/// A cloud, the YARN of its cluster, and a folder.
struct Site {
    cloud: FakeGoogle,
    yarn: FakeYarn,
    dir: TempDir,
}

impl Site {
    fn new(options: FakeOptions) -> Self {
        let (yarn, dir) = (FakeYarn::start(), TempDir::new().unwrap());
        let exclude = dir.path().join("exclude.xml");
        fs::write(&exclude, "").unwrap();
        yarn.told().exclude_path = exclude.display().to_string();
        let options = FakeOptions { tokens_demanded: true, buckets: vec!["bucket".into()], ..options };
        let cloud = FakeGoogle::start_with(options, yarn.clone());
        let site = Self { cloud, yarn, dir };
        site.policy(POLICY);
        site.until("the workers run", || site.yarn.told().nodes.len() == 2);
        site
    }

    fn policy(&self, text: &str) {
        fs::write(self.dir.path().join("policy.yaml"), text).unwrap();
    }

    fn command(&self, name: &str, options: &[&str]) -> Command {
        let (cloud, dir) = (&self.cloud, self.dir.path());
        let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
        command.env("NO_COLOR", "1").env_remove("RUST_LOG").env("NOTIFY_SOCKET", dir.join("notify")).arg(name);
        command.args(["--provider=dataproc", "--google-credentials=metadata", "--admin-address=127.0.0.1:1"]);
        command.arg(format!("--metadata-host={}", cloud.host())).args(["--poll-interval=4s", "--trial-cooldown=4s"]);
        command.arg(format!("--dataproc-endpoint={}", cloud.url()));
        command.arg(format!("--storage-endpoint={}", cloud.url()));
        let says = |option: &str| options.iter().any(|said| said.starts_with(option));
        if !says("--policy") {
            command.arg("--policy").arg(dir.join("policy.yaml"));
        }
        if !says("--state") {
            command.arg("--state").arg(dir.join("state.json"));
        }
        if !says("--resource-manager") {
            command.arg("--resource-manager").arg(self.yarn.url());
        }
        if name == "run" {
            command.arg("--decision-log").arg(dir.join("decisions.jsonl"));
        }
        command.args(options).stdout(Stdio::piped());
        command
    }

    fn run(&self, options: &[&str]) -> Daemon {
        self.run_as("daemon.log", options)
    }

    fn run_as(&self, log: &str, options: &[&str]) -> Daemon {
        let log = self.dir.path().join(log);
        let file = fs::File::options().create(true).append(true).open(&log).unwrap();
        let child = self.command("run", options).stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Daemon { child, log }
    }

    /// A command that ends by itself: its code and its words.
    fn ended(&self, name: &str, options: &[&str]) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.command(name, options).stderr(Stdio::piped()).output().unwrap();
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// Each node is almost full and so much waits; or nothing runs and nothing waits.
    fn load(&self, pending_mb: u64) {
        let mut told = self.yarn.told();
        told.pending_mb = pending_mb;
        told.nodes.values_mut().for_each(|used| *used = if pending_mb > 0 { NODE_MB - 1000 } else { 0 });
    }

    fn notes(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("decisions.jsonl")).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let notes = lines.flat_map(|line| line["notes"].as_array().cloned().unwrap_or_default());
        notes.filter_map(|note| Some(note.as_str()?.to_owned())).collect()
    }

    fn state(&self) -> Value {
        let text = fs::read_to_string(self.dir.path().join("state.json")).unwrap_or_default();
        serde_json::from_str::<Value>(&text).map_or(Value::Null, |document| document["state"].clone())
    }

    /// Orders that were sent.
    fn patches(&self) -> Vec<Recorded> {
        self.cloud.requests().into_iter().filter(|request| request.method == "PATCH").collect()
    }

    #[track_caller]
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        eventually(what, SOON, is_so);
    }
}

/// A running daemon; killed when dropped.
struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    fn terminate(mut self) -> (Option<i32>, Duration) {
        let begun = Instant::now();
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        (self.child.wait().unwrap().code(), begun.elapsed())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("--- {}\n{}", self.log.display(), self.log());
        }
    }
}

#[test]
fn what_cannot_be_reached_at_the_start_is_told_from_what_is_wrong() {
    let site = Site::new(FakeOptions::default());
    site.yarn.told().is_down = true;
    let (code, words) = site.ended("run", &[]);
    assert_eq!(code, Some(6), "{words}");
    site.yarn.told().is_down = false;
    site.cloud.misbehave(Rule::once("GET", "state.json", Misbehaviour::Unavailable).times(20));
    let (code, words) = site.ended("run", &["--state=gs://bucket/x/state.json"]);
    assert_eq!(code, Some(6), "{words}");
    for policy in ["dataproc:", "dataproc:some-policy"] {
        let (code, words) = site.ended("run", &[&format!("--policy={policy}"), "--state=gs://bucket/a/b.json"]);
        assert_eq!(code, Some(2), "{words}");
    }
    site.cloud.misbehave(Rule::once("GET", "clusters/gpu1", Misbehaviour::Unavailable).times(20));
    let (code, words) = site.ended("plan", &["--policy=dataproc:"]);
    assert_eq!(code, Some(6), "{words}");
}

#[test]
fn a_machine_that_cannot_find_out_its_part_does_not_act_whatever_the_flags_say() {
    let site = Site::new(FakeOptions::default());
    site.cloud.misbehave(Rule::once("GET", "computeMetadata/*", Misbehaviour::Silence).times(1_000));
    let (code, words) = site.ended("run", &["--project=p", "--region=us-central1", "--cluster=gpu1"]);
    assert_eq!(code, Some(6), "{words}");
    assert!(words.contains("whether this machine is the master that acts is not known"), "{words}");
}

#[test]
fn the_next_master_takes_over_once_the_last_one_has_stepped_back() {
    let options = FakeOptions { other_masters: "gpu1-m-1,gpu1-m-2".into(), ..FakeOptions::default() };
    let site = Site::new(options);
    let second = FakeYarn::start();
    {
        let mut told = second.told();
        told.ha_state = "STANDBY";
        told.nodes = site.yarn.told().nodes.clone();
        told.exclude_path = site.yarn.told().exclude_path.clone();
    }
    let state = "--state=gs://bucket/gpu1/state.json";
    let mut first = site.run(&[state]);
    site.until("the first one acts", || first.log().contains("started"));
    let mut other = site.run_as("other.log", &[state, &format!("--resource-manager={}", second.url())]);
    site.until("the other one waits", || other.log().contains("STANDBY"));
    site.yarn.told().ha_state = "STANDBY";
    second.told().ha_state = "ACTIVE";
    site.until("the other one acts", || other.log().contains("started"));
    assert!(first.is_alive() && other.is_alive());
    assert!(other.log().contains("waiting for the state"), "{}", other.log());
    assert!(first.log().contains("a standby now"), "{}", first.log());
    assert_eq!((first.terminate().0, other.terminate().0), (Some(0), Some(0)));
}

const NEVER: Duration = Duration::from_secs(3_600);

/// The sizes of a group that were ordered, one an order, the same order given again left out.
fn ordered(site: &Site, group: &str) -> Vec<u64> {
    let mut seen = BTreeSet::new();
    let first = |order: &Recorded| seen.insert(order.query.clone());
    let orders: Vec<_> = site.patches().into_iter().filter(first).collect();
    orders.iter().filter_map(|order| order.body["config"][group]["numInstances"].as_u64()).collect()
}

#[test]
fn secondary_workers_that_never_come_are_not_ordered_again_and_again() {
    let site = Site::new(FakeOptions { secondaries_take: NEVER, ..FakeOptions::default() });
    site.policy(&BOTH.replace("{minInstances: 2, maxInstances: 10}", "{minInstances: 2, maxInstances: 3}"));
    site.load(60_000);
    let daemon = site.run(&["--ready-deadline=6s"]);
    let primaries = || site.cloud.cluster("gpu1").primaries().len();
    site.until("the workers that can be had", || primaries() == 3);
    site.until("the others are named", || daemon.log().contains("has long owed"));
    let before = ordered(&site, "secondaryWorkerConfig");
    // As long again as it took to give them up.
    thread::sleep(Duration::from_secs(14));
    assert_eq!((ordered(&site, "secondaryWorkerConfig"), primaries()), (before, 3), "{}", daemon.log());
}

#[test]
fn an_order_that_was_taken_unheard_is_given_once() {
    let site = Site::new(FakeOptions { operation_takes: Duration::from_secs(3), ..FakeOptions::default() });
    site.load(60_000);
    site.cloud.misbehave(Rule::once("PATCH", "clusters/gpu1", Misbehaviour::SilenceAfter));
    let daemon = site.run(&[]);
    site.until("an order", || !site.patches().is_empty());
    drop(daemon);
    let operation = site.state()["operations"][0].clone();
    assert_eq!((&operation["operationId"], &operation["intent"]["count"]), (&Value::Null, &json!(3)));
    // The cluster is UPDATING when the next one starts.
    let daemon = site.run(&[]);
    site.until("it is known", || site.state()["operations"][0]["operationId"].is_string());
    site.load(0);
    drop(daemon);
    let daemon = site.run(&[]);
    site.until("it has ended", || site.state()["operations"] == json!([]));
    assert_eq!(site.cloud.cluster("gpu1").primaries().len(), 5);
    let ids: BTreeSet<_> = site.patches().into_iter().map(|order| order.query).collect();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(daemon.terminate().0, Some(0));
}

#[test]
fn dataproc_drains_and_the_daemon_waits_and_grows_both_groups_at_once() {
    let options = FakeOptions {
        drain_takes: Duration::from_secs(8),
        operation_takes: Duration::from_secs(1),
        ..FakeOptions::default()
    };
    let site = Site::new(options);
    site.policy(BOTH);
    site.load(60_000);
    let daemon = site.run(&["--scale-down-by=update"]);
    site.until("an order", || site.patches().len() == 1);
    site.load(0);
    site.until("both groups shrink", || site.patches().iter().any(|order| order.query.contains("Timeout=60s")));
    let grown = site.patches().len();
    site.load(60_000);
    site.until("growth waits", || daemon.log().contains("an operation is under way: resize by -"));
    site.until("it grows again", || site.patches().len() > grown);
    assert!(site.cloud.cluster("gpu1").secondaries().len() <= 3);
    assert_eq!(site.notes(), Vec::<String>::new());
    for group in ["workerConfig", "secondaryWorkerConfig"] {
        let sizes = ordered(&site, group);
        let least = sizes.iter().min().copied();
        assert_eq!(least, Some(if group == "workerConfig" { 2 } else { 0 }), "{sizes:?}");
    }
    assert_eq!(daemon.terminate().0, Some(0));
}

#[test]
fn refusals_broken_answers_and_silence_double_nothing_and_show_no_token() {
    let site = Site::new(FakeOptions { operation_takes: Duration::from_secs(1), ..FakeOptions::default() });
    site.load(60_000);
    site.cloud.misbehave(Rule::once("PATCH", "clusters/gpu1", Misbehaviour::Throttled(3)));
    site.cloud.misbehave(Rule::once("PATCH", "clusters/gpu1", Misbehaviour::Truncated));
    site.cloud.misbehave(Rule::once("GET", "operations", Misbehaviour::Malformed));
    let log = site.dir.path().join("daemon.log");
    let file = fs::File::create(&log).unwrap();
    let mut command = site.command("run", &["--state=gs://bucket/gpu1/state.json"]);
    let child = command.env("RUST_LOG", "trace").stdout(Stdio::null()).stderr(file).spawn().unwrap();
    let daemon = Daemon { child, log };
    site.until("it has grown", || site.cloud.cluster("gpu1").primaries().len() == 5);
    site.load(0);
    site.until("what was not understood is told", || {
        site.notes().iter().any(|note| note.contains("its answer is not understood"))
    });
    let told = |what: &str| site.notes().iter().any(|note| note.contains(what));
    assert!(told("429 RESOURCE_EXHAUSTED") && told("error reading a body"), "{:?}", site.notes());
    // A policy of Dataproc's own is attached: nothing is scaled until it is detached.
    let attached =
        json!({"autoscalingConfig": {"policyUri": "projects/p/regions/us-central1/autoscalingPolicies/own"}});
    site.cloud.cluster("gpu1").set_config(&attached);
    site.until("the rival is named", || daemon.log().contains("--disable-autoscaling"));
    site.cloud.cluster("gpu1").enter("SOMETHING_NEW", "");
    let orders = site.patches().len();
    site.load(200_000);
    site.cloud.misbehave(Rule::once("GET", "", Misbehaviour::Silence).times(1_000));
    thread::sleep(Duration::from_secs(5));
    let (code, took) = {
        let shown: Vec<_> = daemon.log().lines().filter(|line| line.contains("ya29.")).map(str::to_owned).collect();
        assert_eq!(shown, Vec::<String>::new());
        daemon.terminate()
    };
    assert!(code == Some(0) && took < Duration::from_secs(6), "{code:?} {took:?}");
    assert_eq!(site.patches().len(), orders);
}
