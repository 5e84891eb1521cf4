//! Policies from Dataproc: the text that is made of an answer, which policy is read, when it is looked at, and what is
//! told of it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use yarn_autoscaler::{
    cloud::dataproc::{
        Target,
        policy::{DataprocPolicy, policy_yaml},
    },
    policy::{LoadOptions, Policy, load},
    ports::{ErrorKind, PolicyChange, PolicySource},
};

use crate::{
    dataproc_server::{Asked, Server, refusal},
    ticks::Scene,
};

/// As the service gives it back: zeros are left out, and what it keeps of its own is beside it.
fn policy(max_instances: u32) -> Value {
    json!({
        "id": "small",
        "name": "projects/p/regions/us-central1/autoscalingPolicies/small",
        "basicAlgorithm": {
            "cooldownPeriod": "240s",
            "yarnConfig": { "gracefulDecommissionTimeout": "3600s", "scaleUpFactor": 0.05, "scaleDownFactor": 1 },
        },
        "workerConfig": { "minInstances": 2, "maxInstances": max_instances, "weight": 1 },
        "secondaryWorkerConfig": { "maxInstances": 50, "weight": 1 },
        "etag": "of the service's own",
    })
}

fn now() -> DateTime<Utc> {
    Scene::new(1, 0, 0).situation.now
}

fn target() -> Target {
    Target { project: "p".into(), region: "us-central1".into(), cluster: "gpu1".into() }
}

fn parse(text: &str, name: &str) -> Result<Policy, String> {
    load(text, &LoadOptions::default())
        .map(|loaded| loaded.policy)
        .map_err(|problems| format!("{name}: {} problems", problems.len()))
}

fn told(change: PolicyChange) -> String {
    match change {
        PolicyChange::Unchanged => "unchanged".into(),
        PolicyChange::New(policy) => format!("new, max {}", policy.primary.max_instances),
        PolicyChange::Invalid(text) => format!("invalid: {text}"),
    }
}

#[tokio::test]
async fn a_policy_becomes_a_text_that_loads() {
    let server = Server::start(|_| (200, policy(10))).await;
    let text = policy_yaml(&server.api(), "p", "us-central1", "small").await.unwrap();
    insta::assert_snapshot!(text);
    let policy = parse(&text, "small").unwrap();
    assert_eq!((policy.id.as_deref(), policy.primary.max_instances), (Some("small"), 10));
    assert_eq!(policy.basic().scale_up_min_worker_fraction, 0.0, "absent is zero");
    let asked = server.asked().remove(0);
    let kept = include_str!("../fixtures/google/dataproc/policy.txt");
    assert_eq!(asked.golden(), kept);
}

#[tokio::test]
async fn a_policy_may_be_named_by_where_it_is() {
    let server = Server::start(|_| (200, policy(10))).await;
    let uri = "https://www.googleapis.com/compute/v1/projects/q/locations/r/autoscalingPolicies/x";
    policy_yaml(&server.api(), "p", "us-central1", uri).await.unwrap();
    assert_eq!(server.asked()[0].path, "/v1/projects/q/locations/r/autoscalingPolicies/x");
    let wrong = policy_yaml(&server.api(), "p", "us-central1", "x/../y").await.unwrap_err();
    assert_eq!((wrong.kind, server.asked().len()), (ErrorKind::Permanent, 1), "{wrong}");
}

#[tokio::test]
async fn an_answer_that_is_no_policy_is_none() {
    let server = Server::start(|_| (200, json!({ "id": "small", "workerConfig": {} }))).await;
    let error = policy_yaml(&server.api(), "p", "us-central1", "small").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.text.contains("lacks `basicAlgorithm`"), "{error}");
    server.answers(|_| refusal(404, "NOT_FOUND", "Not found: Autoscaling Policy small"));
    let error = policy_yaml(&server.api(), "p", "us-central1", "small").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn changes_are_noticed_within_half_a_minute_and_told_once() {
    let server = Server::start(|_| (200, policy(10))).await;
    let force = Arc::new(AtomicBool::new(false));
    let id = Some("small".to_owned());
    let mut source = DataprocPolicy::new(server.api(), target(), id, Arc::clone(&force), parse);
    let at = |seconds| now() + TimeDelta::seconds(seconds);
    assert_eq!(told(source.check(at(0)).await), "new, max 10");
    server.answers(|_| (200, policy(12)));
    assert_eq!(told(source.check(at(29)).await), "unchanged");
    assert_eq!(server.asked().len(), 1, "not even looked at");
    assert_eq!(told(source.check(at(30)).await), "new, max 12");
    server.answers(|_| refusal(503, "UNAVAILABLE", "try again"));
    assert!(told(source.check(at(60)).await).starts_with("invalid: the policy in Dataproc cannot be read: GET"));
    assert_eq!(told(source.check(at(90)).await), "unchanged", "told once");
    server.answers(|_| (200, policy(12)));
    assert_eq!(told(source.check(at(120)).await), "unchanged", "as before the outage");
    server.answers(|_| (200, policy(1)));
    assert_eq!(told(source.check(at(150)).await), "invalid: small: 1 problems");
    assert_eq!(told(source.check(at(180)).await), "unchanged", "told once");
    server.answers(|_| (200, policy(12)));
    force.store(true, Ordering::Relaxed);
    assert_eq!(told(source.check(at(181)).await), "new, max 12");
    force.store(true, Ordering::Relaxed);
    assert_eq!(told(source.check(at(182)).await), "new, max 12", "asked for");
    assert!(!force.load(Ordering::Relaxed));
    assert_eq!(told(source.check(at(0)).await), "unchanged", "a clock set back");
}

#[tokio::test]
async fn the_attached_policy_is_found_by_its_cluster() {
    let cluster = |auto: Value| json!({ "clusterName": "gpu1", "status": { "state": "RUNNING" }, "config": { "autoscalingConfig": auto } });
    let uri = "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1/autoscalingPolicies/small";
    let attached = cluster(json!({ "policyUri": uri }));
    let server = Server::start(move |asked: &Asked| match asked.path.contains("/clusters/") {
        true => (200, attached.clone()),
        false => (200, policy(10)),
    });
    let server = server.await;
    let mut source = DataprocPolicy::new(server.api(), target(), None, Arc::default(), parse);
    assert_eq!(told(source.check(now()).await), "new, max 10");
    assert_eq!(server.asked()[1].path, "/v1/projects/p/regions/us-central1/autoscalingPolicies/small");
    let detached = cluster(json!({}));
    server.answers(move |_| (200, detached.clone()));
    let said = told(source.check(now() + TimeDelta::seconds(30)).await);
    assert!(said.contains("has no autoscaling policy attached: name one, dataproc:ID"), "{said}");
}
