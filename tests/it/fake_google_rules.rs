//! What the stand-in for Google's services does and refuses: the rules that the services keep.

use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};

use crate::fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule};

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

/// Waits for what is bound to come.
async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{what} did not come within 30 s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
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
    assert_eq!(fake.cluster("gpu1").state(), "UPDATING");
    let (_, again) = call(&fake, "PATCH", &format!("{CLUSTER}?{SECONDARIES}&requestId=r1"), resize(3)).await;
    assert_eq!(again["name"], operation["name"], "the same request, the same operation");
    let done = finished(&fake, &operation).await;
    assert_eq!(done["response"].get("status"), None);
    assert_eq!(done["response"]["config"]["secondaryWorkerConfig"].get("instanceNames"), None);
    let after = get(&fake, CLUSTER).await;
    assert_eq!(after["status"]["state"], "RUNNING");
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
    assert_eq!(fake.cluster("gpu1").state(), "REPAIRING");
    finished(&fake, &operation).await;
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
    let seen = format!("{:?}", fake.requests());
    assert!(!seen.contains("ya29") && seen.contains("Bearer <token>"), "{seen}");
}
