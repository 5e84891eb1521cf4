//! The daemon on a Dataproc cluster of real NodeManagers, its state in a bucket, killed where the answer to an order is
//! still on its way: what runs runs on, and each order is given once.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};

use crate::{
    daemon::{Daemon, Trial},
    fake_google::{FakeGoogle, Misbehaviour, Recorded, Rule},
    lab::eventually,
    onlooker::{application, end, excluded, master_host, notes, submit_sleeper},
    real_dataproc::{orders, trial, up},
};

/// Longer than anything takes on a busy machine.
const SOON: Duration = Duration::from_secs(120);
const STATE: &str = "gpu1/state.json";

/// Almost all of a worker.
const MOST_MB: u64 = 10_240;

fn state(cloud: &FakeGoogle) -> Value {
    let text = cloud.object("bucket", STATE).unwrap_or_default();
    serde_json::from_slice::<Value>(&text).map_or(Value::Null, |document| document["state"].clone())
}

fn request_id(order: &Recorded) -> String {
    let in_body = order.body["requestId"].as_str().map(str::to_owned);
    in_body.unwrap_or_else(|| order.query.split('&').find(|part| part.starts_with("requestId")).unwrap().to_owned())
}

#[test]
fn killed_while_orders_are_on_their_way_it_doubles_nothing_and_no_work_is_lost() {
    let (lab, cloud) = up();
    let trial = Trial { state: Some("gs://bucket/gpu1/state.json"), graceful_timeout: "5m", ..trial(&cloud, 3, &[]) };
    let sleepers: Vec<_> = (0..3).map(|_| submit_sleeper(&lab, MOST_MB, 600)).collect();
    cloud.misbehave(Rule::once("PATCH", "clusters/gpu1", Misbehaviour::SilenceAfter));
    let daemon = Daemon::start(&lab, &trial);
    eventually("it grows", SOON, || !orders(&cloud).is_empty());
    daemon.kill();
    assert_eq!(state(&cloud)["operations"][0]["operationId"], Value::Null);

    let daemon = Daemon::start(&lab, &trial);
    eventually("all run", SOON, || sleepers.iter().all(|id| master_host(&lab, id).is_some()));
    let hosts = || sleepers[1..].iter().map(|id| master_host(&lab, id)).collect::<Vec<_>>();
    let before = hosts();
    let mut rival = Daemon::start(&lab, &trial);
    assert_eq!(rival.await_end(SOON).code(), Some(5));
    eventually("the order has ended", SOON, || state(&cloud)["operations"] == json!([]));

    cloud.misbehave(Rule::once("POST", ":repair", Misbehaviour::SilenceAfter));
    end(&lab, &sleepers[0]);
    let repairs = || orders(&cloud).into_iter().filter(|order| order.method == "POST").count();
    eventually("the idle worker is deleted", SOON, || repairs() > 0);
    daemon.kill();

    let daemon = Daemon::start(&lab, &trial);
    let primaries = || cloud.cluster("gpu1").primaries().len();
    eventually("nothing is open", SOON, || primaries() == 2 && state(&cloud)["operations"] == json!([]));
    eventually("all exclude entries are taken back", SOON, || excluded(&lab).trim().is_empty());
    // One that never registers stays accepted for as long as its master runs.
    assert!(sleepers[1..].iter().all(|id| application(&lab, id)["state"] == "ACCEPTED"));
    assert_eq!(hosts(), before);
    let ids: BTreeSet<_> = orders(&cloud).iter().map(request_id).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(!notes(&lab).iter().any(|note| note.contains("lost")), "{:?}", notes(&lab));
    assert!(!daemon.log().contains("ya29."));
    println!("resident {} kB", daemon.resident_kb());
    assert_eq!(daemon.terminate().0.code(), Some(0));
    let held: Value = serde_json::from_slice(&cloud.object("bucket", STATE).unwrap()).unwrap();
    assert_eq!(held["lease"], Value::Null, "it is let go of");
}
