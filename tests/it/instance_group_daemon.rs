//! `run` on a managed instance group, as a process: the workers' domain is found out from YARN, what waits is ordered by
//! `createInstances`, and what comes is counted.

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    fake_google::{FakeGoogle, FakeOptions, GroupSpec},
    fake_yarn::{FakeYarn, NODE_MB},
    lab::eventually,
};

/// Longer than anything takes on a busy machine.
const SOON: Duration = Duration::from_secs(40);

const POLICY: &str = "workerConfig: {minInstances: 2, maxInstances: 4}\nbasicAlgorithm:\n  yarnConfig:\n    \
                      scaleUpFactor: 1.0\n    scaleDownFactor: 1.0\n    gracefulDecommissionTimeout: 60s\n";

#[test]
fn a_group_grows_by_machines_of_our_own_names() {
    let (yarn, dir) = (FakeYarn::start(), TempDir::new().unwrap());
    let exclude = dir.path().join("exclude.xml");
    fs::write(&exclude, "").unwrap();
    fs::write(dir.path().join("policy.yaml"), POLICY).unwrap();
    yarn.told().exclude_path = exclude.display().to_string();
    let group = GroupSpec { base_name: "gpu-w".into(), ..GroupSpec::new("workers", 2) };
    let options = FakeOptions { clusters: Vec::new(), groups: vec![group], ..FakeOptions::default() };
    let cloud = FakeGoogle::start_with(options, yarn.clone());
    eventually("the workers run", SOON, || yarn.told().nodes.len() == 2);
    {
        let mut told = yarn.told();
        told.pending_mb = 2 * NODE_MB;
        told.nodes.values_mut().for_each(|used| *used = NODE_MB - 1000);
    }

    let log = dir.path().join("daemon.log");
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"))
        .arg("run")
        .args(["--provider=instance-group", "--project=p", "--primary-group=us-central1-a/workers"])
        .args(["--google-credentials=none", "--poll-interval=4s", "--trial-cooldown=4s", "--admin-address=127.0.0.1:1"])
        .args(["compute", "dataproc", "storage"].map(|service| format!("--{service}-endpoint={}", cloud.url())))
        .arg(format!("--resource-manager={}", yarn.url()))
        .arg("--policy")
        .arg(dir.path().join("policy.yaml"))
        .arg("--state")
        .arg(dir.path().join("state.json"))
        .env_remove("RUST_LOG")
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    eventually("four workers run", SOON, || yarn.told().nodes.len() == 4);
    daemon.kill().unwrap();
    daemon.wait().unwrap();

    let orders = cloud.requests().into_iter().filter(|request| request.path.ends_with("/createInstances"));
    let made: usize = orders.map(|order| order.body["instances"].as_array().unwrap().len()).sum();
    assert_eq!(made, 2);
    let told = fs::read_to_string(&log).unwrap();
    assert!(told.contains("found out from YARN's nodes"), "{told}");
    assert!(told.contains("scale up from 2 to"), "{told}");
}
