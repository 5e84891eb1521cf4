//! The conference scene on a Dataproc cluster whose workers are NodeManagers of a real YARN: Dataproc is the stand-in, all
//! else is what it is. Project, region, cluster, the workers' domain and the token come from the metadata server, the
//! exclude file from the ResourceManager.

use std::{path::PathBuf, time::Duration};

use serde_json::Value;

use crate::{
    daemon::{Daemon, Trial, decisions, state},
    fake_google::{FakeGoogle, FakeOptions, Machines, Recorded},
    lab::{Gangs, Lab, LabOptions, eventually, lab},
    onlooker::{excluded, notes},
};

/// Longer than the scene takes on a busy machine.
const SCENE_MAX: Duration = Duration::from_secs(600);

/// Dataproc's machines: worker `gpu1-w-N` is the lab's worker N.
struct NodeManagers {
    dir: PathBuf,
}

impl NodeManagers {
    fn tell(&self, command: &str, names: &[String]) {
        let number = |name: &String| name.rsplit('-').next().unwrap_or_default().to_owned();
        let workers = names.iter().filter(|name| name.contains("-w-"));
        let numbers: Vec<_> = workers.map(number).collect();
        if !numbers.is_empty() {
            lab(&self.dir, command, &numbers.iter().map(String::as_str).collect::<Vec<_>>());
        }
    }
}

impl Machines for NodeManagers {
    fn start(&mut self, names: &[String]) {
        self.tell("worker-start", names);
    }

    fn stop(&mut self, names: &[String]) {
        self.tell("worker-stop", names);
    }
}

/// A lab whose workers are those of the cloud's cluster: two at first.
pub fn up() -> (Lab, FakeGoogle) {
    let hosts = Some("gpu1-w-{}.us-central1-a.c.p.internal");
    let lab = Lab::up(LabOptions { nodes: 0, worker_hosts: hosts, exclude_format: "txt", ..LabOptions::default() });
    let options = FakeOptions {
        tokens_demanded: true,
        operation_takes: Duration::from_secs(2),
        boot_takes: Duration::from_secs(1),
        buckets: vec!["bucket".into()],
        ..FakeOptions::default()
    };
    let cloud = FakeGoogle::start_with(options, NodeManagers { dir: lab.dir.clone() });
    eventually("two workers run", SCENE_MAX, || lab.hosts("RUNNING").len() == 2);
    (lab, cloud)
}

/// The daemon on that cluster.
pub fn trial(cloud: &FakeGoogle, max: u32, options: &[&str]) -> Trial {
    let mut provider = vec![
        "--provider=dataproc".to_owned(),
        format!("--metadata-host={}", cloud.host()),
        "--google-credentials=metadata".into(),
        format!("--dataproc-endpoint={}", cloud.url()),
        format!("--storage-endpoint={}", cloud.url()),
        "--poll-interval=4s".into(),
    ];
    provider.extend(options.iter().map(|option| (*option).to_owned()));
    Trial { max, cooldown: "10s", graceful_timeout: "15m", provider_options: Some(provider), ..Trial::default() }
}

/// The orders that were given: PATCH and repair.
pub fn orders(cloud: &FakeGoogle) -> Vec<Recorded> {
    let is_order = |request: &Recorded| request.method == "PATCH" || request.path.ends_with(":repair");
    cloud.requests().into_iter().filter(is_order).collect()
}

fn submit(lab: &Lab, tensorflow: u32) {
    let duration = Duration::from_secs(10);
    lab.submit_gangs(&Gangs { name: "tensorflow", gangs: tensorflow, duration, ..Gangs::default() });
    lab.submit_gangs(&Gangs { name: "pytorch", kind: "PyTorch", duration, ..Gangs::default() });
}

#[test]
fn the_scene_grows_by_patch_and_shrinks_by_repair_and_nothing_is_killed() {
    let (lab, cloud) = up();
    let log = lab.dir.join("autoscaler-log.jsonl");
    let daemon = Daemon::start(&lab, &trial(&cloud, 10, &[&format!("--autoscaler-log={}", log.display())]));
    submit(&lab, 4);
    let ended = lab.wait_apps(SCENE_MAX);
    assert_eq!(ended.len(), 5);
    for one in &ended {
        assert_eq!((one.final_status.as_str(), one.lost), ("SUCCEEDED", 0), "{one:?}");
    }
    eventually("two workers are left", SCENE_MAX, || cloud.cluster("gpu1").primaries().len() == 2);
    eventually("no order is open", SCENE_MAX, || state(&lab)["operations"] == Value::Array(Vec::new()));
    eventually("all exclude entries are taken back", SCENE_MAX, || excluded(&lab).trim().is_empty());

    let sizes: Vec<_> = decisions(&lab).iter().filter_map(|told| told["workers"]["size"].as_u64()).collect();
    let most = sizes.iter().max().copied().unwrap_or(0);
    assert!((5..=10).contains(&most), "{sizes:?}");
    let orders = orders(&cloud);
    let (patches, repairs): (Vec<_>, Vec<_>) = orders.iter().partition(|order| order.method == "PATCH");
    let grown = patches.iter().map(|order| order.body["config"]["workerConfig"]["numInstances"].as_u64().unwrap());
    let grown: Vec<_> = grown.collect();
    assert!(grown.is_sorted() && !grown.is_empty(), "{grown:?}");
    assert!(!repairs.is_empty());
    let pool = |order: &&&Recorded| order.body["nodePools"][0]["id"] == "PRIMARY_WORKER_POOL";
    assert!(repairs.iter().all(|order| pool(&order)));
    let killed: Vec<_> =
        notes(&lab).into_iter().filter(|note| note.contains("lost") || note.contains("ended")).collect();
    assert_eq!(killed, Vec::<String>::new());
    let told = std::fs::read_to_string(&log).unwrap();
    assert!(told.contains("SCALE_UP") && told.contains("SCALE_DOWN"), "{told}");
    println!("sizes ordered {grown:?}, most workers {most}, resident {} kB", daemon.resident_kb());
    assert_eq!(daemon.terminate().0.code(), Some(0));
}
