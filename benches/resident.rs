//! Resident memory of the daemon on a cluster of 1,000 nodes with 10,000 pending containers; the bar is 64 MB.
//! Not criterion's: it starts the real binary against a web server of ours and reads the kernel's figures.

#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "it watches a real process, and prints")]

#[path = "support/big_cluster.rs"]
mod big_cluster;
#[expect(dead_code, reason = "the tests use the rest of it")]
#[path = "../tests/it/fake_http.rs"]
mod fake_http;

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use big_cluster::BIG;
use fake_http::{FakeHttp, Reply};

const LOOKS: usize = 12;
const POLICY: &str = "workerConfig: {minInstances: 2, maxInstances: 1000}\nbasicAlgorithm:\n  yarnConfig:\n    \
                      scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    gracefulDecommissionTimeout: 1h\n";

fn main() {
    // `cargo test --benches` only wants to know that it builds and runs; one look is enough.
    let looks = if std::env::args().any(|argument| argument == "--bench") { LOOKS } else { 1 };
    let server = serve();
    let dir = tempfile::tempdir().expect("a folder");
    let mut daemon = start(dir.path(), server.url().as_str());
    while server.requests().iter().filter(|head| head.contains("/apps")).count() < looks {
        assert!(daemon.try_wait().expect("wait").is_none(), "the daemon has ended");
        std::thread::sleep(Duration::from_millis(200));
    }
    println!("after {looks} looks: {}", memory(daemon.id()));
    daemon.kill().expect("kill");
    daemon.wait().expect("wait");
}

/// The web server on a thread of its own.
fn serve() -> FakeHttp {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
        runtime.block_on(async {
            sender.send(FakeHttp::start(answer).await).expect("somebody waits");
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().expect("a server")
}

fn answer(path: &str) -> Reply {
    let body = match path {
        path if path.contains("/info") => big_cluster::info(),
        path if path.contains("/metrics") => big_cluster::metrics(BIG),
        path if path.contains("/nodes") => big_cluster::nodes(BIG),
        _ => big_cluster::apps(BIG),
    };
    Reply::json(&body)
}

fn start(dir: &Path, url: &str) -> Child {
    std::fs::write(dir.join("policy.yaml"), POLICY).expect("policy");
    std::fs::write(dir.join("describe.json"), describe()).expect("describe");
    Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"))
        .args(["run", "--poll-interval", "4s", "--resource-manager", url])
        .args(["--provider-command", &format!("cat {}", dir.join("describe.json").display())])
        .arg("--policy")
        .arg(dir.join("policy.yaml"))
        .arg("--state")
        .arg(dir.join("state.json"))
        .arg("--exclude-file")
        .arg(dir.join("exclude.xml"))
        .arg("--decision-log")
        .arg(dir.join("decisions.jsonl"))
        .stderr(Stdio::null())
        .spawn()
        .expect("the daemon")
}

/// The provider's answer: a machine for each node.
fn describe() -> String {
    let instance = |n| format!(r#"{{"name":"gpu-w-{n}","host":"gpu-w-{n}.c.project.internal","state":"RUNNING"}}"#);
    let instances: Vec<_> = (0..BIG.nodes).map(instance).collect();
    format!(r#"{{"groups":{{"primary":{{"instances":[{}]}}}}}}"#, instances.join(","))
}

fn memory(pid: u32) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("status");
    let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
}
