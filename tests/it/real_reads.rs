//! Reads and orders on the Hadoop lines that are supported, both really started, by each way that an order can go, with
//! either form of the exclude file; and a pair of ResourceManagers through a failover.

use std::{os::unix::fs::PermissionsExt as _, path::Path};

use chrono::TimeDelta;
use serde_json::json;
use yarn_autoscaler::{
    model::{NodeState, Observation, Resources},
    ports::PortError,
    yarn::rest::{Options, ResourceManager},
};

use crate::{
    daemon::{Daemon, Trial, decisions, state},
    lab::{Gangs, Lab, LabOptions, eventually},
    onlooker::{SOON, actions, end, excluded, has_reason, notes},
};

const GPUS: u64 = 2;

/// One look by our own client.
fn look(urls: &[String]) -> Result<Observation, PortError> {
    let urls = urls.iter().map(|url| url.parse().unwrap()).collect();
    let manager = ResourceManager::new(urls, Options::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(manager.observe())
}

fn trial(options: &[String]) -> Trial {
    let mut all = vec!["--poll-interval=4s".to_owned()];
    all.extend_from_slice(options);
    Trial { max: 3, cooldown: "4s", options: all, ..Trial::default() }
}

#[test]
fn hadoop_3_3_by_rmadmin_and_an_xml_file() {
    let lab = lab("3.3.6", "xml");
    let foreign =
        "<?xml version=\"1.0\"?>\n<hosts>\n  <!-- by hand -->\n  <host><name>10.9.9.9</name></host>\n</hosts>\n";
    std::fs::write(&lab.exclude_file, foreign).unwrap();
    let command = rmadmin_script(&lab.dir);
    is_read_and_obeys(&lab, &["--admin=rmadmin".into(), format!("--rmadmin-command={command}")]);
}

#[test]
fn hadoop_3_4_by_rpc_and_a_plain_file() {
    let lab = lab("3.4.3", "txt");
    std::fs::write(&lab.exclude_file, "# by hand\n10.9.9.9  # its disk is broken\n\n10.9.9.8 10.9.9.7\n").unwrap();
    is_read_and_obeys(&lab, &[]);
}

fn lab(hadoop_version: &'static str, exclude_format: &'static str) -> Lab {
    Lab::up(LabOptions { hadoop_version, exclude_format, nodes: 3, node_gpus: 2, ..LabOptions::default() })
}

/// A script that takes the arguments of `yarn rmadmin`, around the lab's own RMAdminCLI.
fn rmadmin_script(dir: &Path) -> String {
    let path = dir.join("rmadmin");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/local-yarn");
    let text = format!(
        "#!/usr/bin/env python3\nimport sys\nsys.path.insert(0, {example:?})\n\
         from lab_yarn import manager\nfrom lab_yarn.lab import Lab\nlab = Lab({dir:?})\n\
         print(*sys.argv[1:], file=open(lab.path('rmadmin.log'), 'a'))\n\
         manager.admin(lab, lab.settings, *sys.argv[1:])\n"
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Everything that is read is right, and a whole drain leaves the exclude file as it was.
fn is_read_and_obeys(lab: &Lab, options: &[String]) {
    is_read(lab);
    let before = excluded(lab);
    let _daemon = Daemon::start(lab, &trial(options));
    eventually("a worker is let go and deleted", SOON, || lab.instances("primary").len() == 2);
    eventually("nothing is remembered of it", SOON, || state(lab)["drains"].as_object().unwrap().is_empty());
    assert_eq!(excluded(lab), before, "the entries of others are as they were");
    assert_eq!((actions(lab, "cordon").len(), actions(lab, "decommission").len()), (1, 1));
    assert_eq!(notes(lab), Vec::<String>::new(), "nothing went wrong");
    assert_eq!(look(&lab.rm_urls).unwrap().nodes.iter().filter(|node| node.state.is_active()).count(), 2);
}

fn is_read(lab: &Lab) {
    let version = lab.get("/ws/v1/cluster/info")["clusterInfo"]["resourceManagerVersion"].as_str().unwrap().to_owned();
    let ids =
        lab.submit_gangs(&Gangs { workers: 4, worker_gpus: 2, ps: 0, worker_memory_mb: 1024, ..Gangs::default() });
    let ask = Resources::new(1024, 1, GPUS);
    let mut seen = look(&lab.rm_urls).unwrap();
    eventually("three members have come and one is asked for", SOON, || {
        seen = look(&lab.rm_urls).unwrap();
        seen.metrics.pending == ask && seen.metrics.containers_pending == 1
    });
    assert_eq!(seen.version, version);
    assert_eq!(seen.nodes.len(), 3);
    for node in &seen.nodes {
        assert_eq!((node.state, node.id.port), (NodeState::Running, 8041));
        assert_eq!((node.total, node.used.gpus), (Resources::new(12_288, 8, GPUS), GPUS), "{}", node.id.host);
    }
    let [gang] = seen.applications.as_slice() else { panic!("{:?}", seen.applications) };
    assert_eq!((&gang.id, gang.application_type.as_str()), (&ids[0], "TONY"));
    assert!(matches!(gang.queue.as_str(), "default" | "root.default"), "from 3.4 on with its path: {}", gang.queue);
    assert_eq!(gang.asks.iter().map(|ask| (ask.containers, ask.resources)).collect::<Vec<_>>(), [(1, ask)]);
    assert_eq!(gang.master_host.as_deref().map(|host| seen.application_masters(host)), Some(1));
    end(lab, &ids[0]);
    eventually("it is over", SOON, || look(&lab.rm_urls).unwrap().applications.is_empty());
}

#[test]
fn a_failover_is_followed_and_held_for_and_a_standby_is_never_believed() {
    let lab = Lab::up(LabOptions { ha: true, nodes: 3, ..LabOptions::default() });
    let [first, second] = [&lab.rm_urls[0..1], &lab.rm_urls[1..2]];
    assert!(look(second).unwrap_err().text.contains("STANDBY"));
    let started = look(&lab.rm_urls).unwrap().started_on_ms;
    assert_eq!(look(first).unwrap().started_on_ms, started);

    let _daemon = Daemon::start(&lab, &trial(&["--restart-hold=10s".into()]));
    eventually("the daemon has looked", SOON, || !decisions(&lab).is_empty());
    lab.failover("rm2");
    assert!(look(first).unwrap_err().text.contains("STANDBY"));
    assert!(look(&lab.rm_urls).unwrap().started_on_ms > started);
    eventually("the daemon has noticed", SOON, || is_told(&lab, "another ResourceManager has taken over"));

    eventually("a worker is let go and deleted", SOON, || lab.instances("primary").len() == 2);
    let all = decisions(&lab);
    let at = |index: usize| chrono::DateTime::parse_from_rfc3339(all[index]["at"].as_str().unwrap()).unwrap();
    let held = all.iter().position(|one| has_reason(one, "resourceManagerRestarted")).expect("it was held");
    let acted = all.iter().position(|one| one["actions"] != json!([])).unwrap();
    assert!(at(acted) - at(held) >= TimeDelta::seconds(10), "{all:#?}");
    eventually("nothing is remembered of it", SOON, || state(&lab)["drains"] == json!({}));
    assert_eq!(
        (actions(&lab, "decommission").len(), notes(&lab).len()),
        (1, 1),
        "by the second one, and without fault"
    );
}

/// A NodeManager that knows of its cordon registers with it, and a ResourceManager turns away what offers less than its
/// smallest container. What ran there goes with it.
#[test]
fn a_worker_that_a_failover_ends_while_it_is_cordoned_is_told_of_and_deleted() {
    let lab = Lab::up(LabOptions { ha: true, nodes: 3, ..LabOptions::default() });
    let _daemon = Daemon::start(&lab, &trial(&["--restart-hold=10s".into()]));
    eventually("a worker is cordoned", SOON, || !actions(&lab, "cordon").is_empty());
    let log = lab.dir.join("logs").join(format!("{}.log", actions(&lab, "cordon")[0]["instance"].as_str().unwrap()));
    let knows = || std::fs::read_to_string(&log).unwrap().contains("allocated to containers to <memory:1,");
    eventually("its NodeManager knows", SOON, knows);
    lab.failover("rm2");
    eventually("the worker is deleted", SOON, || lab.instances("primary").len() == 2);
    assert!(is_told(&lab, "what still ran there is lost"), "{:?}", notes(&lab));
    eventually("nothing is remembered of it", SOON, || state(&lab)["drains"] == json!({}));
}

fn is_told(lab: &Lab, what: &str) -> bool {
    notes(lab).iter().any(|note| note.contains(what))
}
