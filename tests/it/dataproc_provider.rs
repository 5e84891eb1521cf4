//! The provider `dataproc` against canned answers: what it describes, what it sends to the byte, what it refuses.

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use yarn_autoscaler::{
    cloud::{
        WorkerNames,
        dataproc::{DataprocProvider, ScaleDown, Target},
    },
    model::{GroupName, Readiness, SizeChange},
    ports::{ErrorKind, OperationState, Provider},
};

use crate::dataproc_server::{Asked, Server, refusal};

const OPERATION: &str = "projects/p/regions/us-central1/operations/op-1";
const HOUR: Duration = Duration::from_secs(3_600);
const ZONE: &str = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a";

fn target() -> Target {
    Target { project: "p".into(), region: "us-central1".into(), cluster: "gpu1".into() }
}

fn provider(server: &Server, scale_down: ScaleDown) -> DataprocProvider {
    let names = WorkerNames::new(Some("{zone}.c.p.internal")).unwrap();
    DataprocProvider::new(server.api(), target(), scale_down, names)
}

/// Two primary workers with a GPU each, three secondary ones.
fn cluster() -> Value {
    let machine = format!("{ZONE}/machineTypes/n1-standard-8");
    let accelerators =
        json!([{ "acceleratorTypeUri": format!("{ZONE}/acceleratorTypes/nvidia-tesla-t4"), "acceleratorCount": 1 }]);
    json!({
        "projectId": "p",
        "clusterName": "gpu1",
        "clusterUuid": "11111111-2222-3333-4444-555555555555",
        "status": { "state": "RUNNING", "stateStartTime": "2026-11-21T00:00:00Z" },
        "config": {
            "gceClusterConfig": { "zoneUri": ZONE },
            "masterConfig": { "numInstances": 1, "instanceNames": ["gpu1-m"] },
            "workerConfig": {
                "numInstances": 2,
                "instanceNames": ["gpu1-w-0", "gpu1-w-1"],
                "machineTypeUri": machine,
                "accelerators": accelerators,
            },
            "secondaryWorkerConfig": {
                "numInstances": "3",
                "instanceNames": ["gpu1-sw-0q2x", "gpu1-sw-7d1k", "gpu1-sw-9zzz"],
                "machineTypeUri": machine,
                "preemptibility": "SPOT",
            },
            "softwareConfig": {
                "imageVersion": "2.2-debian12",
                "properties": { "yarn:yarn.nodemanager.resource.memory-mb": "24576" },
            },
        },
        "metrics": { "yarnMetrics": { "yarn-memory-mb-total": "122880" } },
    })
}

/// The cluster with these changes: paths and values.
fn with(changes: &[(&str, Value)]) -> Value {
    let mut cluster = cluster();
    for (path, value) in changes {
        let (parent, field) = path.rsplit_once('/').unwrap();
        let parent = cluster.pointer_mut(parent).unwrap().as_object_mut().unwrap();
        match value {
            Value::Null => parent.remove(field),
            value => parent.insert(field.to_owned(), value.clone()),
        };
    }
    cluster
}

/// A service with this cluster, where every order begins an operation that ends at once.
fn service(cluster: Value) -> impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static {
    move |asked| match asked.method.as_str() {
        "GET" if asked.path.contains("/operations/") => (200, json!({ "name": OPERATION, "done": true })),
        "GET" => (200, cluster.clone()),
        _ => (200, json!({ "name": OPERATION, "metadata": { "status": { "state": "PENDING" } } })),
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Compares with the file of this name; with UPDATE_GOLDEN set it is written anew.
fn golden(name: &str, asked: &[Asked]) {
    let text: Vec<_> = asked.iter().map(Asked::golden).collect();
    let text = text.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/google/dataproc").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, kept, "{name}: with UPDATE_GOLDEN=1 it is written anew");
}

#[tokio::test]
async fn a_cluster_is_described() {
    let server = Server::start(service(cluster())).await;
    let capacity = provider(&server, ScaleDown::Repair).describe().await.unwrap();
    insta::assert_json_snapshot!(*capacity);
    golden("describe.txt", &server.asked());
}

#[tokio::test]
async fn the_same_cluster_is_the_same_capacity() {
    let server = Server::start(service(cluster())).await;
    let provider = provider(&server, ScaleDown::Repair);
    let first = provider.describe().await.unwrap();
    server.answers(service(with(&[("/metrics", json!({ "hdfsMetrics": {} }))])));
    assert!(std::sync::Arc::ptr_eq(&first, &provider.describe().await.unwrap()));
    server.answers(service(with(&[("/config/secondaryWorkerConfig/numInstances", json!(4))])));
    assert!(!std::sync::Arc::ptr_eq(&first, &provider.describe().await.unwrap()));
}

/// What is described of a cluster: readiness, then each worker with its state, in a line a group.
async fn described(cluster: Value) -> String {
    let server = Server::start(service(cluster)).await;
    let capacity = match provider(&server, ScaleDown::Repair).describe().await {
        Ok(capacity) => capacity,
        Err(error) => return format!("{:?}: {error}", error.kind),
    };
    let mut lines = vec![match &capacity.readiness {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Busy { what } => format!("busy: {what}"),
        Readiness::Held { why } => format!("held: {why}"),
    }];
    for (name, group) in &capacity.groups {
        let workers: Vec<_> = group.instances.iter().map(|i| format!("{} {:?}", i.name, i.state)).collect();
        let template = group.template.as_ref().map(|t| (t.resources.memory_mb, t.resources.vcores, t.resources.gpus));
        lines.push(format!("{name}: {template:?} {}", workers.join(", ")));
    }
    lines.join("\n")
}

/// Secondary workers of whichever of these types there are machines of.
fn flexible(types: &[&str]) -> Value {
    let selections: Vec<_> = types.iter().map(|one| json!({ "machineTypes": [one] })).collect();
    json!({ "instanceFlexibilityPolicy": { "instanceSelectionList": selections } })
}

#[tokio::test]
async fn what_dataproc_may_say_of_a_cluster() {
    let secondary = "/config/secondaryWorkerConfig";
    let properties = "/config/softwareConfig/properties";
    let state = |state: &str, detail: &str| with(&[("/status", json!({ "state": state, "detail": detail }))]);
    let cases = [
        ("no secondary workers are mentioned", with(&[(secondary, Value::Null)])),
        ("their size is left out", with(&[(secondary, json!({ "isPreemptible": true }))])),
        ("they are of another type", with(&[(secondary, json!({ "machineTypeUri": "g2-standard-24" }))])),
        ("they are of one of two types", with(&[(secondary, flexible(&["n2-standard-8", "n1-standard-8"]))])),
        ("they are of a type of their own", with(&[(secondary, flexible(&["g2-standard-24"]))])),
        ("two of them are promised", with(&[("/config/secondaryWorkerConfig/numInstances", json!(5))])),
        ("one of them is about to go", with(&[("/config/secondaryWorkerConfig/numInstances", json!(2))])),
        (
            "names are in references alone",
            with(&[(secondary, json!({ "numInstances": 1, "instanceReferences": [{ "instanceName": "gpu1-sw-a" }] }))]),
        ),
        (
            "no property says the memory",
            with(&[(properties, Value::Null), ("/config/workerConfig/machineTypeUri", json!("n2-standard-4"))]),
        ),
        (
            "the type is not known",
            with(&[(properties, Value::Null), ("/config/workerConfig/machineTypeUri", json!("z9-mega-4"))]),
        ),
        ("one node", with(&[("/config/workerConfig", Value::Null), (secondary, Value::Null)])),
        (
            "secondary workers alone",
            with(&[("/config/workerConfig", Value::Null), ("/config/clusterType", json!("ZERO_SCALE"))]),
        ),
        ("unhealthy", with(&[("/status", json!({ "state": "RUNNING", "substate": "UNHEALTHY" }))])),
        ("updating", state("UPDATING", "")),
        ("repairing", state("REPAIRING", "")),
        ("creating", state("CREATING", "")),
        ("stopping", state("STOPPING", "")),
        ("starting", state("STARTING", "")),
        ("an update failed", state("ERROR_DUE_TO_UPDATE", "the init action\nfailed")),
        ("an error", state("ERROR", "out of luck")),
        ("stopped", state("STOPPED", "")),
        ("a word of tomorrow", state("PONDERING", "")),
        (
            "Dataproc's own autoscaler",
            with(&[(
                "/config/autoscalingConfig",
                json!({ "policyUri": "projects/p/regions/r/autoscalingPolicies/x" }),
            )]),
        ),
        ("no state", with(&[("/status", json!({}))])),
        ("another cluster", with(&[("/clusterName", json!("gpu2"))])),
        ("no config", with(&[("/config", Value::Null)])),
        ("no zone", with(&[("/config/gceClusterConfig", Value::Null)])),
        ("a name that is none", with(&[("/config/workerConfig/instanceNames", json!(["gpu1-w-0", "a b"]))])),
        ("a size that is none", with(&[("/config/workerConfig/numInstances", json!("4000000000"))])),
        ("a size that is no number", with(&[("/config/workerConfig/numInstances", json!("many"))])),
    ];
    let mut text = String::new();
    for (what, cluster) in cases {
        text += &format!("# {what}\n{}\n\n", described(cluster).await);
    }
    insta::assert_snapshot!(without_port(&text));
}

/// The server's port differs from run to run.
fn without_port(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("127.0.0.1:") {
        let end = at + "127.0.0.1:".len();
        plain.push_str(&rest[..end]);
        plain.push_str("PORT");
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    plain + rest
}

#[tokio::test]
async fn workers_are_ordered_by_absolute_sizes() {
    let server = Server::start(service(cluster())).await;
    let provider = provider(&server, ScaleDown::Repair);
    let operation = provider.create("ya-1", GroupName::Secondary, 2).await.unwrap();
    assert_eq!(operation, OPERATION);
    golden("create.txt", &server.asked());
}

#[tokio::test]
async fn both_groups_change_in_one_order() {
    let server = Server::start(service(cluster())).await;
    let change = SizeChange { primary: 1, secondary: 4 };
    provider(&server, ScaleDown::Update).resize("ya-2", change, HOUR).await.unwrap();
    golden("grow-both.txt", &server.orders());
}

#[tokio::test]
async fn a_group_that_shrinks_is_drained_by_dataproc() {
    let server = Server::start(service(cluster())).await;
    let change = SizeChange { primary: 0, secondary: -3 };
    provider(&server, ScaleDown::Update).resize("ya-3", change, HOUR).await.unwrap();
    golden("shrink.txt", &server.orders());
}

#[tokio::test]
async fn named_workers_are_deleted_by_repair() {
    let server = Server::start(service(cluster())).await;
    let provider = provider(&server, ScaleDown::Repair);
    let instances = names(&["gpu1-sw-7d1k", "gpu1-sw-gone", "gpu1-sw-0q2x"]);
    provider.delete("ya-4", GroupName::Secondary, &instances).await.unwrap();
    golden("delete.txt", &server.orders());
}

#[tokio::test]
async fn workers_that_are_gone_need_no_order() {
    let server = Server::start(service(with(&[("/status/state", json!("UPDATING"))]))).await;
    let provider = provider(&server, ScaleDown::Repair);
    let operation = provider.delete("ya-5", GroupName::Secondary, &names(&["gpu1-sw-gone"])).await.unwrap();
    assert_eq!(provider.poll(&operation).await, Ok(OperationState::Done));
    assert!(server.orders().is_empty());
}

#[tokio::test]
async fn what_cannot_be_deleted_is_refused() {
    let server = Server::start(service(with(&[("/config/secondaryWorkerConfig/numInstances", json!(5))]))).await;
    let promised = names(&["gpu1-sw-promised-1"]);
    let refused = provider(&server, ScaleDown::Repair).delete("ya-6", GroupName::Secondary, &promised).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Permanent);
    let named = names(&["gpu1-sw-7d1k"]);
    let refused = provider(&server, ScaleDown::Update).delete("ya-7", GroupName::Secondary, &named).await;
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Permanent);
    assert!(server.orders().is_empty());
}

#[tokio::test]
async fn no_order_is_sent_to_a_cluster_that_takes_none() {
    for state in ["UPDATING", "ERROR_DUE_TO_UPDATE", "STOPPED"] {
        let server = Server::start(service(with(&[("/status/state", json!(state))]))).await;
        let provider = provider(&server, ScaleDown::Repair);
        let refused = provider.create("ya-8", GroupName::Primary, 1).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused}");
        assert!(refused.text.contains(state), "{refused}");
        let refused = provider.delete("ya-9", GroupName::Primary, &names(&["gpu1-w-1"])).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Conflict, "{refused}");
        assert!(server.orders().is_empty());
    }
}

#[tokio::test]
async fn an_order_that_was_lost_is_sent_again_just_as_it_was() {
    let server = Server::start(|asked: &Asked| match asked.is_order() {
        true => refusal(503, "UNAVAILABLE", "try again"),
        false => (200, cluster()),
    });
    let server = server.await;
    let provider = provider(&server, ScaleDown::Update);
    let lost = provider.create("ya-10", GroupName::Secondary, 2).await.unwrap_err();
    assert_eq!(lost.kind, ErrorKind::Transient);
    // It was taken all the same: the cluster is updating, and has the new size.
    server.answers(service(with(&[
        ("/status/state", json!("UPDATING")),
        ("/config/secondaryWorkerConfig/numInstances", json!(5)),
    ])));
    assert_eq!(provider.create("ya-10", GroupName::Secondary, 2).await.unwrap(), OPERATION);
    let orders = server.orders();
    assert_eq!(orders.len(), 2);
    assert_eq!(orders[0].golden(), orders[1].golden());
}

#[tokio::test]
async fn there_is_never_a_second_order_beside_one_under_way() {
    let server = Server::start(|asked: &Asked| match asked.path.contains("/operations/") {
        true => (200, json!({ "name": OPERATION })),
        false => service(cluster())(asked),
    });
    let server = server.await;
    let provider = provider(&server, ScaleDown::Repair);
    provider.create("ya-11", GroupName::Secondary, 2).await.unwrap();
    let refused = provider.create("ya-12", GroupName::Secondary, 2).await.unwrap_err();
    assert_eq!((refused.kind, server.orders().len()), (ErrorKind::Conflict, 1), "{refused}");
    let (one, other) =
        tokio::join!(provider.create("ya-13", GroupName::Primary, 1), provider.create("ya-14", GroupName::Primary, 1));
    assert!(one.is_err() && other.is_err());
    server.answers(service(cluster()));
    assert_eq!(provider.poll(OPERATION).await, Ok(OperationState::Done));
    let (one, other) =
        tokio::join!(provider.create("ya-15", GroupName::Primary, 1), provider.create("ya-16", GroupName::Primary, 1));
    assert!(one.is_ok() && other.is_err_and(|error| error.kind == ErrorKind::Conflict));
    assert_eq!(server.orders().len(), 2);
}

#[tokio::test]
async fn orders_are_within_dataprocs_limits() {
    let many: Vec<_> = (0..1_500).map(|n| format!("gpu1-sw-{n:04}")).collect();
    let crowd = json!({ "numInstances": 1_500, "instanceNames": many });
    let server = Server::start(service(with(&[("/config/secondaryWorkerConfig", crowd)]))).await;
    let repairs = provider(&server, ScaleDown::Repair);
    repairs.delete("ya-17", GroupName::Secondary, &many).await.unwrap();
    repairs.resize("ya-18", SizeChange { primary: 0, secondary: -1_200 }, HOUR * 48).await.unwrap();
    let too_many = repairs.resize("ya-19", SizeChange { primary: -3, secondary: 0 }, HOUR).await.unwrap_err();
    assert_eq!(too_many.kind, ErrorKind::Conflict, "{too_many}");
    // Absolute sizes: what is meant to add must not take away, whatever the answer left out.
    let odd = with(&[("/config/workerConfig/numInstances", Value::Null)]);
    server.answers(service(odd));
    let fewer = repairs.resize("ya-23", SizeChange { primary: 1, secondary: 0 }, HOUR).await.unwrap_err();
    assert_eq!(fewer.kind, ErrorKind::Conflict, "{fewer}");
    let no_id = repairs.create("ya 20", GroupName::Primary, 1).await.unwrap_err();
    assert_eq!(no_id.kind, ErrorKind::Permanent);
    let orders = server.orders();
    let body = orders[0].body.as_ref().unwrap();
    assert_eq!(body["nodePools"][0]["instanceNames"].as_array().unwrap().len(), 1_000);
    assert_eq!(orders[1].body.as_ref().unwrap()["config"]["secondaryWorkerConfig"]["numInstances"], 500);
    assert!(orders[1].query.contains(&"gracefulDecommissionTimeout=86400s".to_owned()));
    assert_eq!(orders.len(), 2);
}

#[tokio::test]
async fn an_operation_is_polled_by_its_whole_name() {
    let server = Server::start(service(cluster())).await;
    let provider = provider(&server, ScaleDown::Repair);
    assert_eq!(provider.poll(OPERATION).await, Ok(OperationState::Done));
    golden("poll.txt", &server.asked());
    server.answers(|_| {
        (
            200,
            json!({
                "name": OPERATION,
                "done": true,
                "metadata": { "warnings": ["slow disks"] },
                "error": { "code": 9, "message": "Insufficient 'NVIDIA_T4_GPUS' quota. Requested 2.0, available 0.0." },
            }),
        )
    });
    let Ok(OperationState::Failed(error)) = provider.poll(OPERATION).await else { panic!("it failed") };
    assert_eq!(error.kind, ErrorKind::Quota);
    assert!(error.text.contains(OPERATION) && error.text.contains("NVIDIA_T4_GPUS"), "{error}");
    server.answers(|_| (200, json!({ "name": OPERATION, "metadata": { "status": { "state": "RUNNING" } } })));
    assert_eq!(provider.poll(OPERATION).await, Ok(OperationState::Running));
    server.answers(|_| refusal(404, "NOT_FOUND", "Not found: Operation"));
    assert_eq!(provider.poll(OPERATION).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(provider.poll("projects/../x").await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn refusals_have_their_kinds() {
    let quota = "Multiple validation errors: - Insufficient 'CPUS' quota. Requested 12.0, available 7.0.";
    for (answer, kind) in [
        (refusal(400, "INVALID_ARGUMENT", quota), ErrorKind::Quota),
        (refusal(403, "PERMISSION_DENIED", "Not authorized"), ErrorKind::Denied),
        (refusal(409, "ABORTED", "busy"), ErrorKind::Conflict),
        ((200, json!({})), ErrorKind::Transient),
        ((200, json!({ "name": "../secret?x" })), ErrorKind::Transient),
    ] {
        let refused = answer.clone();
        let server = Server::start(move |asked: &Asked| match asked.is_order() {
            true => refused.clone(),
            false => (200, cluster()),
        });
        let server = server.await;
        let error = provider(&server, ScaleDown::Repair).create("ya-21", GroupName::Primary, 1).await.unwrap_err();
        assert_eq!(error.kind, kind, "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn an_attached_policy_is_told() {
    let uri = "projects/p/regions/us-central1/autoscalingPolicies/native";
    let server = Server::start(service(with(&[("/config/autoscalingConfig", json!({ "policyUri": uri }))]))).await;
    let attached = provider(&server, ScaleDown::Repair);
    assert_eq!(attached.attached_policy().await.unwrap().as_deref(), Some(uri));
    assert!(attached.create("ya-22", GroupName::Primary, 1).await.is_err_and(|e| e.kind == ErrorKind::Conflict));
    server.answers(service(cluster()));
    assert_eq!(attached.attached_policy().await.unwrap(), None);
    let capacity = attached.describe().await.unwrap();
    assert_eq!(capacity.identity.as_deref(), Some("11111111-2222-3333-4444-555555555555"));
}
