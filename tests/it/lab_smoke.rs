//! The lab itself: it comes up, its parts do what other tests rely on, and nothing stays.

use std::time::Duration;

use serde_json::json;

use crate::lab::{Gangs, Lab, LabOptions, eventually, processes_of};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_cluster_grows_runs_a_gang_shrinks_and_leaves_nothing_behind() {
    let lab = Lab::up(LabOptions::default());
    assert_eq!(lab.hosts("RUNNING").len(), 2);

    let create = json!({"version": 1, "method": "create", "requestId": "one-more", "group": "primary", "count": 1});
    let operation = lab.provider(&create);
    assert_eq!(lab.provider(&create), operation, "the same request again orders nothing");
    let created = lab.await_operation(&operation, SOON);
    assert_eq!(created, json!({"state": "DONE", "instances": ["worker-2"]}));
    let third = format!("{}.13", lab.subnet);
    eventually("YARN lists the new worker", SOON, || lab.hosts("RUNNING").contains(&third));

    let ids = lab.submit_gangs(&Gangs { duration: Duration::from_secs(2), ..Gangs::default() });
    let ended = lab.wait_apps(SOON);
    assert_eq!(ended.len(), 1);
    assert_eq!((&ended[0].id, ended[0].final_status.as_str(), ended[0].lost), (&ids[0], "SUCCEEDED", 0));

    let delete =
        json!({"version": 1, "method": "delete", "requestId": "away", "group": "primary", "instances": ["worker-2"]});
    let deleted = lab.await_operation(&lab.provider(&delete), SOON);
    assert_eq!(deleted["state"], "DONE");
    assert_eq!(lab.instances("primary").len(), 2);

    assert!(!processes_of(&lab.dir).is_empty());
    lab.down();
    assert_eq!(processes_of(&lab.dir), Vec::<String>::new());
}

#[test]
fn killed_parts_are_seen_and_an_order_survives_the_death_of_its_provider() {
    let options = LabOptions { nodes: 1, hadoop_version: "3.4.3", recovery: true, ..LabOptions::default() };
    let lab = Lab::up(options);
    let first = format!("{}.11", lab.subnet);

    lab.set_provider_faults(&json!({"stockOut": {"create": 1}}));
    let create = json!({"version": 1, "method": "create", "requestId": "again", "group": "primary", "count": 1});
    assert_eq!(lab.provider(&create)["error"]["kind"], "STOCK_OUT");
    lab.set_provider_faults(&json!({"crashAfterOrder": {"create": 1}}));
    assert!(!lab.call_provider(&create).status.success());
    lab.await_operation(&lab.provider(&create), SOON);
    assert_eq!(lab.instances("primary").len(), 2);

    lab.rm_kill();
    lab.rm_start();
    eventually("both workers come back", SOON, || lab.hosts("RUNNING").len() == 2);

    lab.nm_kill(&first);
    assert_eq!(lab.instances("primary")[0], ("worker-0".to_owned(), first.clone(), "FAILED".to_owned()));
    eventually("YARN misses the killed one", SOON, || lab.hosts("LOST") == [first.clone()]);
}
