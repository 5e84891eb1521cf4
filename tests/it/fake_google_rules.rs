//! What the stand-in for Google's services does and refuses: the rules that the services keep.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::fake_google::{
    ClusterHandle, ClusterSpec, FakeGoogle, FakeOptions, Gpus, GroupHandle, GroupSpec, Machines, Misbehaviour,
    Recorded, Rule, until,
};

const CLUSTER: &str = "v1/projects/p/regions/us-central1/clusters/gpu1";
const SECONDARIES: &str = "updateMask=config.secondary_worker_config.num_instances";

/// Status and JSON of an answer; a body that is none is null.
async fn call(fake: &FakeGoogle, method: &str, path: &str, body: Value) -> (u16, Value) {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    let mut request = Client::new().request(method, format!("{}{path}", fake.url()));
    if !body.is_null() {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap_or(Value::Null))
}

async fn get(fake: &FakeGoogle, path: &str) -> Value {
    let (status, body) = call(fake, "GET", path, Value::Null).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

fn resize(count: u32) -> Value {
    json!({"config": {"secondaryWorkerConfig": {"numInstances": count}}})
}

/// States that are over, in order.
fn past_states(cluster: &ClusterHandle) -> Vec<String> {
    let history = cluster.json()["statusHistory"].clone();
    let states = history.as_array().into_iter().flatten().map(|past| past["state"].as_str().unwrap_or_default().into());
    states.collect()
}

async fn finished(fake: &FakeGoogle, operation: &Value) -> Value {
    let path = format!("v1/{}", operation["name"].as_str().expect("a name"));
    let look = async || Some(get(fake, &path).await).filter(|body| body["done"] == true);
    until("the operation's end", look).await
}

#[tokio::test]
async fn a_cluster_grows_and_its_secondaries_come_after_the_operation() {
    let fake =
        FakeGoogle::start(FakeOptions { secondaries_take: Duration::from_millis(300), ..FakeOptions::default() });
    let before = get(&fake, CLUSTER).await;
    assert_eq!(before["config"]["workerConfig"]["instanceNames"], json!(["gpu1-w-0", "gpu1-w-1"]));
    assert_eq!(before["config"]["secondaryWorkerConfig"].get("numInstances"), None, "zero is left out");
    let (status, operation) = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}&requestId=r1"), resize(3)).await;
    assert_eq!(status, 200, "{operation}");
    assert_eq!(operation["metadata"]["operationType"], "UPDATE");
    let (_, again) = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}&requestId=r1"), resize(3)).await;
    assert_eq!(again["name"], operation["name"], "the same request, the same operation");
    let done = finished(&fake, &operation).await;
    assert_eq!(done["response"].get("status"), None);
    assert_eq!(done["response"]["config"]["secondaryWorkerConfig"].get("instanceNames"), None);
    let after = get(&fake, CLUSTER).await;
    assert_eq!(after["status"]["state"], "RUNNING");
    assert_eq!(past_states(&fake.cluster("gpu1")), ["RUNNING", "UPDATING"]);
    assert_eq!(after["config"]["secondaryWorkerConfig"]["numInstances"], 3);
    let names =
        until("the machines", async || Some(fake.cluster("gpu1").secondaries()).filter(|names| names.len() == 3)).await;
    assert!(names.iter().all(|name| name.starts_with("gpu1-sw-") && name.len() == "gpu1-sw-".len() + 4), "{names:?}");
}

#[tokio::test]
async fn what_is_wrong_with_an_order_to_a_cluster_is_refused() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let long = "x".repeat(41);
    for (query, says) in [
        (format!("{SECONDARIES}&requestId={long}"), "Invalid request ID"),
        (format!("{SECONDARIES}&requestId=a.b"), "Invalid request ID"),
        (format!("{SECONDARIES}&gracefulDecommissionTimeout=86401s"), "not between"),
        (format!("{SECONDARIES}&gracefulDecommissionTimeout=5m"), "Invalid duration"),
        ("updateMask=config.master_config.num_instances".into(), "cannot be updated"),
        (String::new(), "update mask"),
        ("updateMask=config.workerConfig.numInstances".into(), "at least 2"),
    ] {
        let (status, body) = call(&fake, "PATCH", &format!("{CLUSTER}?{query}"), resize(1)).await;
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(says), "{query}: {status} {message}");
    }
    fake.cluster("gpu1").enter("ERROR_DUE_TO_UPDATE", "an init action failed");
    let (status, body) = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(1)).await;
    assert_eq!((status, &body["error"]["status"]), (400, &json!("FAILED_PRECONDITION")));
}

#[tokio::test]
async fn named_workers_of_the_pool_and_no_others_are_repaired_away() {
    let mut options = FakeOptions::default();
    (options.clusters[0].primaries, options.clusters[0].secondaries) = (3, 4);
    let fake = FakeGoogle::start(options);
    let names = fake.cluster("gpu1").secondaries();
    let pool = |id: &str, names: &[String]| {
        json!({"requestId": "r2", "gracefulDecommissionTimeout": "0s", "nodePools":
        [{"id": id, "instanceNames": names, "repairAction": "DELETE"}]})
    };
    let repair = format!("{CLUSTER}:repair");
    let (status, body) = call(&fake, "POST", &repair, pool("PRIMARY_WORKER_POOL", &names[..1])).await;
    assert_eq!(status, 400, "{body}");
    let (status, operation) = call(&fake, "POST", &repair, pool("SECONDARY_WORKER_POOL", &names[1..3])).await;
    assert_eq!((status, &operation["metadata"]["operationType"]), (200, &json!("REPAIR")));
    finished(&fake, &operation).await;
    assert_eq!(past_states(&fake.cluster("gpu1")), ["RUNNING", "REPAIRING"]);
    until("their end", async || {
        (fake.cluster("gpu1").secondaries() == [names[0].clone(), names[3].clone()]).then_some(())
    })
    .await;
    assert_eq!(fake.cluster("gpu1").secondaries_wanted(), 2);
}

#[tokio::test]
async fn objects_have_generations_and_their_preconditions_hold_for_all_verbs() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let put = "upload/storage/v1/b/b/o?uploadType=media&name=a%2Fstate";
    let (_, first) = call(&fake, "POST", &format!("{put}&ifGenerationMatch=0"), json!({"n": 1})).await;
    let generation = first["generation"].as_str().expect("a generation").to_owned();
    let (status, body) = call(&fake, "POST", &format!("{put}&ifGenerationMatch=0"), json!({"n": 2})).await;
    assert_eq!((status, &body["error"]["errors"][0]["reason"]), (412, &json!("conditionNotMet")));
    let object = "storage/v1/b/b/o/a%2Fstate";
    assert_eq!(get(&fake, &format!("{object}?alt=media")).await, json!({"n": 1}));
    for (method, query, wanted) in [
        ("GET", "ifGenerationMatch=1".to_owned(), 412),
        ("GET", format!("ifGenerationNotMatch={generation}"), 304),
        ("DELETE", "ifGenerationMatch=1".to_owned(), 412),
        ("DELETE", format!("ifGenerationMatch={generation}"), 204),
        ("DELETE", String::new(), 404),
    ] {
        assert_eq!(call(&fake, method, &format!("{object}?{query}"), Value::Null).await.0, wanted, "{method} {query}");
    }
}

#[tokio::test]
async fn it_misbehaves_as_told() {
    let fake = FakeGoogle::start(FakeOptions::default());
    fake.misbehave(Rule::once("GET", "/clusters/*1", Misbehaviour::Throttled(7)).times(2));
    for wanted in [429, 429, 200] {
        assert_eq!(call(&fake, "GET", CLUSTER, Value::Null).await.0, wanted);
    }
    for (what, is_done) in [(Misbehaviour::DroppedBefore, false), (Misbehaviour::DroppedAfter, true)] {
        fake.misbehave(Rule::once("PATCH", "/clusters/", what));
        let request = Client::new().patch(format!("{}{CLUSTER}?{SECONDARIES}", fake.url())).body(resize(1).to_string());
        assert!(request.send().await.is_err());
        assert_eq!(
            fake.cluster("gpu1").state() != "RUNNING" || fake.cluster("gpu1").secondaries_wanted() == 1,
            is_done
        );
    }
    fake.misbehave(Rule::once("GET", "/clusters", Misbehaviour::Truncated));
    let answer = Client::new().get(format!("{}{CLUSTER}", fake.url())).send().await;
    assert!(answer.expect("a head").bytes().await.is_err(), "the body ends before its length");
}

#[tokio::test]
async fn tokens_are_demanded_where_told_and_the_machine_hands_them_out() {
    let fake = FakeGoogle::start(FakeOptions { tokens_demanded: true, ..FakeOptions::default() });
    assert_eq!(call(&fake, "GET", CLUSTER, Value::Null).await.0, 401);
    let path = format!("{}computeMetadata/v1/instance/service-accounts/default/token", fake.url());
    assert_eq!(Client::new().get(&path).send().await.unwrap().status(), 403, "without Metadata-Flavor");
    let answer = Client::new().get(&path).header("Metadata-Flavor", "Google").send().await.unwrap();
    let token: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    let bearer = format!("Bearer {}", token["access_token"].as_str().expect("a token"));
    let answer = Client::new().get(format!("{}{CLUSTER}", fake.url())).header("Authorization", bearer).send().await;
    assert_eq!(answer.unwrap().status(), 200);
    let all: Vec<Recorded> = fake.requests();
    let seen = format!("{all:?}");
    assert!(!seen.contains("ya29") && seen.contains("Bearer <token>"), "{seen}");
}

fn t4_quota(limit: u32) -> FakeOptions {
    let quotas = [("PREEMPTIBLE_NVIDIA_T4_GPUS".to_owned(), limit)].into();
    let gpus = Some(Gpus { kind: "nvidia-tesla-t4".into(), count: 1 });
    let clusters = vec![ClusterSpec { secondary_gpus: gpus, ..ClusterSpec::new("gpu1") }];
    FakeOptions { quotas, clusters, ..FakeOptions::default() }
}

#[tokio::test]
async fn quotas_stock_outs_and_failures_show_where_the_services_show_them() {
    let fake = FakeGoogle::start(t4_quota(3));
    let (status, body) = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(4)).await;
    let text = "Insufficient 'PREEMPTIBLE_NVIDIA_T4_GPUS' quota. Requested 4.0, available 3.0.";
    assert_eq!((status, &body["error"]["message"]), (400, &json!(text)));

    // A stock-out does not fail the order of secondaries: the group goes on trying.
    fake.alter(|options| options.stock_outs.extend(["us-central1-a".to_owned()]));
    let (_, operation) = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(2)).await;
    assert_eq!(finished(&fake, &operation).await.get("error"), None);
    let cluster = get(&fake, CLUSTER).await;
    let group = cluster["config"]["secondaryWorkerConfig"]["managedGroupConfig"]["instanceGroupManagerUri"].clone();
    let group = group.as_str().and_then(|uri| uri.split_once(".com/")).expect("an address").1;
    let errors =
        async || Some(get(&fake, &format!("{group}/listErrors")).await).filter(|body| body["items"][1].is_object());
    let errors = until("two attempts", errors).await;
    assert_eq!(errors["items"][0]["error"]["code"], "ZONE_RESOURCE_POOL_EXHAUSTED");
    assert_eq!(fake.cluster("gpu1").secondaries().len(), 0);
    fake.alter(|options| options.stock_outs.clear());
    until("the machines", async || (fake.cluster("gpu1").secondaries().len() == 2).then_some(())).await;

    // A stock-out of primaries does, and the cluster takes no orders until it is repaired.
    fake.alter(|options| options.stock_outs.extend(["us-central1-a".to_owned()]));
    let more = json!({"config": {"workerConfig": {"numInstances": 3}}});
    let path = format!("{CLUSTER}?updateMask=config.worker_config.num_instances");
    let (_, operation) = call(&fake, "PATCH", &path, more).await;
    let message = finished(&fake, &operation).await["error"]["message"].to_string();
    assert!(message.contains("ZONE_RESOURCE_POOL_EXHAUSTED"), "{message}");
    assert_eq!(fake.cluster("gpu1").state(), "ERROR_DUE_TO_UPDATE");
    let cure = json!({"cluster": {"clusterRepairAction": "REPAIR_ERROR_DUE_TO_UPDATE_CLUSTER"}});
    let (status, operation) = call(&fake, "POST", &format!("{CLUSTER}:repair"), cure).await;
    assert_eq!(status, 200, "{operation}");
    finished(&fake, &operation).await;
    assert_eq!(fake.cluster("gpu1").state(), "RUNNING");
}

#[tokio::test]
async fn orders_to_clusters_have_a_limit_a_minute() {
    let options =
        FakeOptions { cluster_orders_per_minute: 2, operation_takes: Duration::ZERO, ..FakeOptions::default() };
    let fake = FakeGoogle::start(options);
    let mut seen = Vec::new();
    for count in [1, 2, 3] {
        seen.push(call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(count)).await.0);
        until("the end", async || (fake.cluster("gpu1").state() == "RUNNING").then_some(())).await;
    }
    assert_eq!(seen, [200, 200, 429]);
    let busy = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}&requestId=x"), resize(3)).await.1;
    assert_eq!(busy["error"]["errors"][0]["reason"], "rateLimitExceeded");
}

#[tokio::test]
async fn a_drain_takes_its_time_and_no_more_than_its_timeout() {
    let mut options = FakeOptions { drain_takes: Duration::from_secs(3600), ..FakeOptions::default() };
    options.clusters[0].secondaries = 2;
    let fake = FakeGoogle::start(options);
    let path = format!("{CLUSTER}?{SECONDARIES}&gracefulDecommissionTimeout=0.2s");
    let begin = Instant::now();
    let (_, operation) = call(&fake, "PATCH", &path, resize(1)).await;
    finished(&fake, &operation).await;
    assert!(begin.elapsed() >= Duration::from_millis(200));
    assert_eq!(fake.cluster("gpu1").secondaries_wanted(), 1);
}

/// Writes down what it is told.
struct Told(Arc<Mutex<Vec<String>>>);

impl Machines for Told {
    fn start(&mut self, names: &[String]) {
        self.0.lock().unwrap().extend(names.iter().map(|name| format!("+{name}")));
    }

    fn stop(&mut self, names: &[String]) {
        self.0.lock().unwrap().extend(names.iter().map(|name| format!("-{name}")));
    }
}

#[tokio::test]
async fn machines_are_told_when_they_come_and_go() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let fake = FakeGoogle::start_with(FakeOptions::default(), Told(told.clone()));
    let heard = async |wanted: usize| {
        let look = async || Some(told.lock().unwrap().clone()).filter(|told| told.len() == wanted);
        until("what machines are told", look).await
    };
    assert_eq!(heard(2).await, ["+gpu1-w-0", "+gpu1-w-1"]);
    call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(1)).await;
    let fresh = heard(3).await[2].clone();
    call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(0)).await;
    assert_eq!(heard(4).await[3], fresh.replace('+', "-"));
    // The same seed, the same names.
    let again = FakeGoogle::start(FakeOptions::default());
    call(&again, "PATCH", &format!("{CLUSTER}?{SECONDARIES}"), resize(1)).await;
    let name = until("the machine", async || again.cluster("gpu1").secondaries().first().cloned()).await;
    assert_eq!(name, fresh[1..]);
}

#[tokio::test]
async fn a_write_that_is_repeated_with_its_token_is_done_once() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let url = format!("{}upload/storage/v1/b/b/o?uploadType=media&name=lease&ifGenerationMatch=0", fake.url());
    fake.misbehave(Rule::once("POST", "/upload/", Misbehaviour::UnavailableAfter));
    let mut seen = Vec::new();
    for token in ["a", "a", "b"] {
        let request = Client::new().post(&url).header("x-goog-gcs-idempotency-token", token).body("mine");
        seen.push(request.send().await.unwrap().status().as_u16());
    }
    assert_eq!(seen, [503, 200, 412]);
    assert_eq!(fake.object("b", "lease").as_deref(), Some(&b"mine"[..]));
}

#[tokio::test]
async fn the_metadata_server_knows_the_master_of_its_cluster() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let ask = async |path: &str| {
        let url = format!("{}computeMetadata/v1/{path}", fake.url());
        let answer = Client::new().get(url).header("Metadata-Flavor", "Google").send().await.unwrap();
        assert_eq!(answer.headers()["metadata-flavor"], "Google");
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    for (path, wanted) in [
        ("project/project-id", "p"),
        ("instance/zone", "projects/123456789/zones/us-central1-a"),
        ("instance/hostname", "gpu1-m.us-central1-a.c.p.internal"),
        ("instance/attributes/dataproc-cluster-name", "gpu1"),
        ("instance/attributes/dataproc-role", "Master"),
        ("instance/attributes/dataproc-region", "us-central1"),
    ] {
        assert_eq!(ask(path).await, (200, wanted.to_owned()), "{path}");
    }
    assert_eq!(ask("instance/attributes/nothing").await.0, 404);
}

#[tokio::test]
async fn tokens_are_granted_for_what_looks_like_a_grant() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let jwt = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    for (form, wanted) in [
        (format!("{jwt}e30.e30.c2ln"), 200),
        (format!("{jwt}e30"), 400),
        ("grant_type=refresh_token&refresh_token=r&client_id=i&client_secret=s".into(), 200),
        ("grant_type=password".into(), 400),
    ] {
        let answer = Client::new().post(format!("{}token", fake.url())).body(form.clone()).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), wanted, "{form}");
    }
    let path = "v1/projects/-/serviceAccounts/scaler@p.iam.gserviceaccount.com:generateAccessToken";
    let (status, body) = call(&fake, "POST", path, json!({"scope": ["cloud"], "lifetime": "3600s"})).await;
    assert!(status == 200 && body["accessToken"].is_string() && body["expireTime"].is_string(), "{body}");
}

#[tokio::test]
async fn a_group_makes_and_deletes_the_machines_that_are_named() {
    let groups = vec![GroupSpec { is_paginated: true, ..GroupSpec::new("m1", 2) }];
    let fake = FakeGoogle::start(FakeOptions { groups, ..FakeOptions::default() });
    let group: GroupHandle = fake.group("m1");
    let path = "compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers/m1";
    let id = "requestId=0b8f7f52-61c4-4c7e-9a55-000000000001";
    let body = json!({"instances": [{"name": "w-1"}]});
    let (_, first) = call(&fake, "POST", &format!("{path}/createInstances?{id}"), body.clone()).await;
    let (_, again) = call(&fake, "POST", &format!("{path}/createInstances?{id}"), body.clone()).await;
    assert_eq!(first["name"], again["name"]);
    let wait = format!("compute/v1/projects/p/zones/us-central1-a/operations/{}/wait", first["name"].as_str().unwrap());
    assert_eq!(call(&fake, "POST", &wait, json!({})).await.1["status"], "DONE");
    assert_eq!((group.target_size(), group.members().contains(&"w-1".to_owned())), (3, true));
    assert_eq!(call(&fake, "POST", &format!("{path}/createInstances"), body).await.0, 400, "it is there already");
    let (_, page) = call(&fake, "POST", &format!("{path}/listManagedInstances?maxResults=2"), Value::Null).await;
    assert_eq!(page["managedInstances"].as_array().map(Vec::len), Some(2));
    let next =
        format!("{path}/listManagedInstances?maxResults=2&pageToken={}", page["nextPageToken"].as_str().unwrap());
    let (_, page) = call(&fake, "POST", &next, Value::Null).await;
    assert_eq!((page["managedInstances"].as_array().map(Vec::len), page.get("nextPageToken")), (Some(1), None));
    let both = json!({"instances": ["w-1", "zones/us-central1-a/instances/w-2"]});
    assert_eq!(call(&fake, "POST", &format!("{path}/deleteInstances"), both).await.0, 400);
    let body = json!({"instances": ["zones/us-central1-a/instances/w-1"]});
    assert_eq!(call(&fake, "POST", &format!("{path}/deleteInstances"), body).await.0, 200);
    until("its end", async || (group.members().len() == 2 && group.running().len() == 2).then_some(())).await;
    assert_eq!(group.target_size(), 2);
}
