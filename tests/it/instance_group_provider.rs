//! The provider `instance-group` against a stand-in that answers as it is told: what is asked, what is made of the
//! answers, what becomes of machines that cannot be had.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use yarn_autoscaler::{
    cloud::{GroupAddress, InstanceGroupProvider, WorkerNames},
    google::{Api, Tokens},
    model::{Capabilities, GroupName, InstanceState, Readiness, Resources, WorkerTemplate},
    ports::{ErrorKind, OperationState, PortError, Provider},
};

use crate::{
    compute_script::{ComputeScript, Request},
    fake_http::{FakeHttp, Reply},
};

const PRIMARY: GroupName = GroupName::Primary;

fn fixture(name: &str) -> Value {
    let path = format!("{}/tests/fixtures/google/compute/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))).unwrap()
}

fn provider_of(api: Api, group: &str) -> InstanceGroupProvider {
    let groups = BTreeMap::from([(PRIMARY, GroupAddress::parse(group).unwrap())]);
    InstanceGroupProvider::new(api, "p".into(), groups, WorkerNames::new(Some("{zone}.c.p.internal")).unwrap())
}

/// One zonal group whose answers a test may change.
struct Scene {
    service: ComputeScript,
    provider: InstanceGroupProvider,
    answers: Arc<Mutex<BTreeMap<&'static str, (u16, Value)>>>,
}

impl Scene {
    async fn new() -> Self {
        let answers = Arc::new(Mutex::new(BTreeMap::from([
            ("workers", (200, fixture("group.json"))),
            ("listManagedInstances", (200, fixture("list.json"))),
            ("gpu-workers", (200, fixture("template.json"))),
            ("createInstances", (200, fixture("operation.json"))),
            ("deleteInstances", (200, fixture("operation.json"))),
            ("operation-1", (200, fixture("operation.json"))),
        ])));
        let told = answers.clone();
        let service = ComputeScript::start(move |request| {
            let not_found = (404, json!({"error": {"code": 404, "message": "was not found"}}));
            told.lock().unwrap().get(request.last()).cloned().unwrap_or(not_found)
        })
        .await;
        let provider = provider_of(service.api.clone(), "us-central1-a/workers");
        Self { service, provider, answers }
    }

    fn answer(&self, to: &'static str, status: u16, body: Value) {
        self.answers.lock().unwrap().insert(to, (status, body));
    }

    /// The group lists these machines, and is to have as many.
    fn list(&self, machines: &[Value]) {
        self.answer("listManagedInstances", 200, json!({"managedInstances": machines}));
        self.change("workers", |group| group["targetSize"] = json!(machines.len()));
    }

    fn change(&self, answer: &'static str, change: impl FnOnce(&mut Value)) {
        change(&mut self.answers.lock().unwrap().get_mut(answer).unwrap().1);
    }

    /// The operation has ended, with these errors or none.
    fn operation_ended(&self, errors: &[Value]) {
        self.change("operation-1", |operation| {
            operation["status"] = json!("DONE");
            if !errors.is_empty() {
                operation["error"] = json!({"errors": errors});
            }
        });
    }

    /// What was asked, by the last words of the paths.
    fn asked(&self) -> Vec<String> {
        self.service.take().iter().map(|request| format!("{} {}", request.method, request.last())).collect()
    }

    /// An order of three, and the names that it asked for.
    async fn order_three(&self) -> (String, Vec<String>) {
        let id = self.provider.create("ya-1-1", PRIMARY, 3).await.unwrap();
        let order = self.service.take().pop().unwrap();
        let names = order.body["instances"].as_array().unwrap().iter();
        (id, names.map(|instance| instance["name"].as_str().unwrap().to_owned()).collect())
    }

    async fn failure(&self, id: &str) -> PortError {
        match self.provider.poll(id).await.unwrap() {
            OperationState::Failed(error) => error,
            other => panic!("{other:?}"),
        }
    }
}

fn machine(name: &str, action: &str, status: &str) -> Value {
    let instance = format!("https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instances/{name}");
    json!({"name": name, "instance": instance, "currentAction": action, "instanceStatus": status})
}

/// A machine that the group tries to make, and why its last attempt failed.
fn attempted(name: &str, code: &str) -> Value {
    let mut machine = machine(name, "CREATING", "");
    machine["lastAttempt"] = json!({"errors": {"errors": [{"code": code, "message": "why it failed"}]}});
    machine
}

fn golden(name: &str, request: &Request) {
    let path = format!("{}/tests/fixtures/google/compute/request-{name}.json", env!("CARGO_MANIFEST_DIR"));
    if std::env::var("GOLDEN_UPDATE").is_ok() {
        std::fs::write(&path, request.golden()).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(request.golden(), kept, "GOLDEN_UPDATE=1 writes {path} anew");
}

#[tokio::test]
async fn instance_group_every_request_is_as_it_was_written_down() {
    let scene = Scene::new().await;
    scene.provider.describe().await.unwrap();
    let create = scene.provider.create("ya-19a-7", PRIMARY, 2).await.unwrap();
    let delete = scene.provider.delete("ya-19a-8", PRIMARY, &["gpu-a".into(), "gpu-gone".into()]).await.unwrap();
    assert_eq!(scene.provider.poll(&create).await.unwrap(), OperationState::Running);
    assert_eq!(scene.provider.poll(&delete).await.unwrap(), OperationState::Running);
    insta::assert_snapshot!(format!("{create}\n{delete}"));
    let requests = scene.service.take();
    for (name, last) in [
        ("group", "workers"),
        ("list", "listManagedInstances"),
        ("template", "gpu-workers"),
        ("create", "createInstances"),
        ("delete", "deleteInstances"),
        ("operation", "operation-1"),
    ] {
        let request = requests.iter().find(|request| request.last() == last);
        golden(name, request.unwrap_or_else(|| panic!("{last}: {requests:?}")));
    }
    // A POST without a body says so: Google's front ends refuse it else.
    assert!(requests.iter().filter(|request| request.method == "POST").all(|request| !request.length.is_empty()));
}

#[tokio::test]
async fn instance_group_describes_machines_by_name_with_host_and_template() {
    let scene = Scene::new().await;
    let capacity = scene.provider.describe().await.unwrap();
    assert_eq!(capacity.capabilities, Capabilities { deletes_named: true, overlaps: true, resizes: false });
    assert_eq!(capacity.readiness, Readiness::Ready);
    let group = &capacity.groups[&PRIMARY];
    let hosts: Vec<_> =
        group.instances.iter().map(|instance| (instance.name.as_str(), instance.host.as_str())).collect();
    let (a, b) = ("gpu-a.us-central1-a.c.p.internal", "gpu-b.us-central1-a.c.p.internal");
    assert_eq!(hosts, [("gpu-a", a), ("gpu-b", b)]);
    // n1-standard-8 has 30,720 MB; two T4 were added.
    let expected = WorkerTemplate { resources: Resources::new(24_576, 8, 2), boot_time: None };
    assert_eq!(group.template, Some(expected));
    assert_eq!(scene.asked(), ["GET workers", "POST listManagedInstances", "GET gpu-workers"]);
    let again = scene.provider.describe().await.unwrap();
    assert!(Arc::ptr_eq(&capacity, &again), "nothing has changed");
    assert_eq!(scene.asked(), ["GET workers", "POST listManagedInstances"], "a template never changes");
    scene.list(&[machine("gpu-a", "DELETING", "RUNNING")]);
    assert!(!Arc::ptr_eq(&capacity, &scene.provider.describe().await.unwrap()));
}

#[tokio::test]
async fn instance_group_takes_the_operator_at_his_word_on_what_a_worker_declares() {
    let scene = Scene::new().await;
    let declared =
        WorkerTemplate { resources: Resources::new(20_000, 7, 2), boot_time: Some(Duration::from_secs(240)) };
    let provider = provider_of(scene.service.api.clone(), "us-central1-a/workers")
        .declaring(BTreeMap::from([(PRIMARY, declared.clone())]));
    assert_eq!(provider.describe().await.unwrap().groups[&PRIMARY].template, Some(declared));
    assert_eq!(scene.asked(), ["GET workers", "POST listManagedInstances"]);
}

#[tokio::test]
async fn instance_group_knows_no_template_where_machines_may_be_of_several_kinds() {
    let scene = Scene::new().await;
    scene.change("workers", |group| {
        group["instanceFlexibilityPolicy"] = json!({"instanceSelections": {"a": {"machineTypes": ["n1-standard-8"]}}});
    });
    assert_eq!(scene.provider.describe().await.unwrap().groups[&PRIMARY].template, None);
    let scene = Scene::new().await;
    scene.change("gpu-workers", |template| template["properties"]["machineType"] = json!("x9-odd-8"));
    assert_eq!(scene.provider.describe().await.unwrap().groups[&PRIMARY].template, None);
}

#[tokio::test]
async fn instance_group_states_follow_from_action_and_status() {
    use InstanceState::{Failed, Provisioning, Running, Stopping};
    let scene = Scene::new().await;
    for (action, status, expected) in [
        ("NONE", "RUNNING", Running),
        ("VERIFYING", "RUNNING", Running),
        ("REFRESHING", "RUNNING", Running),
        ("SOMETHING_NEW", "RUNNING", Running),
        ("CREATING", "", Provisioning),
        ("CREATING", "STAGING", Provisioning),
        ("CREATING_WITHOUT_RETRIES", "", Provisioning),
        ("NONE", "STAGING", Provisioning),
        ("RECREATING", "RUNNING", Provisioning),
        ("RESTARTING", "STOPPING", Provisioning),
        ("DELETING", "RUNNING", Stopping),
        ("ABANDONING", "RUNNING", Stopping),
        ("NONE", "STOPPING", Failed),
        ("NONE", "TERMINATED", Failed),
        ("NONE", "SUSPENDED", Failed),
        ("NONE", "REPAIRING", Failed),
        ("NONE", "", Failed),
    ] {
        scene.list(&[machine("gpu-a", action, status)]);
        let capacity = scene.provider.describe().await.unwrap();
        assert_eq!(capacity.groups[&PRIMARY].instances[0].state, expected, "{action} {status}");
    }
    for (code, expected) in [("QUOTA_EXCEEDED", Failed), ("INTERNAL_ERROR", Provisioning)] {
        scene.list(&[attempted("gpu-a", code)]);
        let capacity = scene.provider.describe().await.unwrap();
        assert_eq!(capacity.groups[&PRIMARY].instances[0].state, expected, "{code}");
    }
}

#[tokio::test]
async fn instance_group_reads_a_regional_groups_list_to_its_last_page() {
    let service = ComputeScript::start(|request| match request.last() {
        "workers" => (200, json!({"baseInstanceName": "w", "targetSize": 3})),
        "listManagedInstances" => {
            let in_zone = |name: &str, zone: &str| {
                let instance = format!("https://x/compute/v1/projects/p/zones/{zone}/instances/{name}");
                json!({"instance": instance, "instanceStatus": "RUNNING", "currentAction": "NONE"})
            };
            match request.query.as_str() {
                "maxResults=500" => {
                    (200, json!({"managedInstances": [in_zone("w-1", "z-a-b")], "nextPageToken": "t1"}))
                }
                "maxResults=500&pageToken=t1" => (200, json!({"nextPageToken": "t 2"})),
                "maxResults=500&pageToken=t+2" => (200, json!({"managedInstances": [in_zone("w-0", "z-a-c")]})),
                other => panic!("{other}"),
            }
        }
        _ => (200, fixture("operation.json")),
    })
    .await;
    let provider = provider_of(service.api.clone(), "regions/us-central1/instanceGroupManagers/workers");
    let capacity = provider.describe().await.unwrap();
    let shown: Vec<_> = capacity.instances().map(|(_, instance)| (instance.host.as_str(), instance.state)).collect();
    let promised = ("(primary, promised 1)", InstanceState::Promised);
    let running = InstanceState::Running;
    assert_eq!(shown, [("w-0.z-a-c.c.p.internal", running), ("w-1.z-a-b.c.p.internal", running), promised]);
    provider.delete("d", PRIMARY, &["w-0".into(), "w-1".into()]).await.unwrap();
    let order = service.take().pop().unwrap();
    assert_eq!(order.path, "/compute/v1/projects/p/regions/us-central1/instanceGroupManagers/workers/deleteInstances");
    assert_eq!(order.body["instances"], json!(["zones/z-a-c/instances/w-0", "zones/z-a-b/instances/w-1"]));
}

#[tokio::test]
async fn instance_group_a_list_without_end_or_sense_is_an_error() {
    let scene = Scene::new().await;
    for (list, says) in [
        (json!({"managedInstances": [], "nextPageToken": "again"}), "has no end"),
        (json!({}), "is to have 2 machines, and its list is empty"),
        (json!({"managedInstances": [{"currentAction": "NONE"}]}), "has no name"),
        (json!({"managedInstances": [{"name": "gpu-a"}]}), "has no currentAction (`gpu-a`)"),
        (json!({"managedInstances": "none"}), "its answer is not understood"),
    ] {
        scene.answer("listManagedInstances", 200, list);
        let error = scene.provider.describe().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Transient, "{error}");
        assert!(error.text.contains(says), "{error}");
    }
    scene.list(&[]);
    assert_eq!(scene.provider.describe().await.unwrap().groups[&PRIMARY].instances, []);
}

#[tokio::test]
async fn instance_group_is_held_where_somebody_else_moves_its_machines() {
    let scene = Scene::new().await;
    scene.change("workers", |group| {
        group["status"]["autoscaler"] = json!("https://x/compute/v1/projects/p/zones/us-central1-a/autoscalers/by-cpu");
    });
    insta::assert_debug_snapshot!(scene.provider.describe().await.unwrap().readiness);
    let scene = Scene::new().await;
    scene.change("workers", |group| group["updatePolicy"]["instanceRedistributionType"] = json!("PROACTIVE"));
    insta::assert_debug_snapshot!(scene.provider.describe().await.unwrap().readiness);
}

#[tokio::test]
async fn instance_group_an_order_runs_until_its_machines_are_made() {
    let scene = Scene::new().await;
    let (id, names) = scene.order_three().await;
    assert!(names.iter().all(|name| name.starts_with("gpu-")), "{names:?}");
    assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Running, "it is not taken yet");
    scene.operation_ended(&[]);
    let mut machines: Vec<_> = names.iter().map(|name| machine(name, "CREATING", "")).collect();
    scene.list(&machines);
    assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Running, "they are being made");
    machines[0] = attempted(&names[0], "RESOURCE_OPERATION_RATE_EXCEEDED");
    machines[1] = machine(&names[1], "VERIFYING", "RUNNING");
    machines[2] = machine(&names[2], "NONE", "RUNNING");
    scene.list(&machines);
    assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Running, "what passes by itself is waited for");
    machines[0] = machine(&names[0], "NONE", "STAGING");
    scene.list(&machines);
    assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Done);
    assert!(scene.asked().iter().all(|asked| asked != "POST deleteInstances"));
    scene.list(&machines[1..]);
    let error = scene.failure(&id).await;
    assert_eq!(
        (error.kind, error.text.contains("1 of 3 machines are not in")),
        (ErrorKind::Transient, true),
        "{error}"
    );
}

#[tokio::test]
async fn instance_group_machines_that_cannot_be_had_are_withdrawn() {
    for (code, kind) in [
        ("ZONE_RESOURCE_POOL_EXHAUSTED", ErrorKind::StockOut),
        ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ErrorKind::StockOut),
        ("QUOTA_EXCEEDED", ErrorKind::Quota),
        ("RESOURCE_NOT_FOUND", ErrorKind::NotFound),
    ] {
        let scene = Scene::new().await;
        let (id, names) = scene.order_three().await;
        scene.operation_ended(&[]);
        let in_vain = [attempted(&names[0], code), attempted(&names[2], code)];
        let others = [machine("gpu-a", "NONE", "RUNNING"), attempted("gpu-theirs", code)];
        let making = [machine(&names[1], "CREATING", "")];
        scene.list(&[&in_vain[..], &making, &others].concat());
        assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Running, "one may still come");
        scene.service.take();
        let made = [machine(&names[1], "NONE", "RUNNING")];
        scene.list(&[&in_vain[..], &made, &others].concat());
        let error = scene.failure(&id).await;
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.text.starts_with("2 of 3 machines of zones/us-central1-a/"), "{error}");
        assert!(error.text.ends_with(&format!("{code}: why it failed")), "{error}");
        let order = scene.service.take().pop().unwrap();
        let urls = [&names[0], &names[2]].map(|name| format!("zones/us-central1-a/instances/{name}"));
        assert_eq!((order.last(), &order.body["instances"]), ("deleteInstances", &json!(urls)));
        // Polled again, since the controller died before it had noted the end: nothing is ordered any more.
        let leaving = in_vain.map(|mut machine| {
            machine["currentAction"] = json!("DELETING");
            machine
        });
        scene.list(&[&leaving[..], &made, &others].concat());
        assert_eq!(scene.failure(&id).await.kind, kind);
        assert!(!scene.asked().contains(&"POST deleteInstances".to_owned()));
    }
}

#[tokio::test]
async fn instance_group_a_withdrawal_that_fails_is_tried_again_at_the_next_poll() {
    let scene = Scene::new().await;
    let (id, names) = scene.order_three().await;
    scene.operation_ended(&[]);
    scene.list(&names.iter().map(|name| attempted(name, "QUOTA_EXCEEDED")).collect::<Vec<_>>());
    scene.answer("deleteInstances", 503, json!({"error": {"code": 503, "message": "come back"}}));
    assert_eq!(scene.provider.poll(&id).await.unwrap_err().kind, ErrorKind::Transient);
    scene.answer("deleteInstances", 200, fixture("operation.json"));
    assert_eq!(scene.failure(&id).await.kind, ErrorKind::Quota);
    let orders: Vec<_> = scene.service.take().into_iter().filter(|asked| asked.last() == "deleteInstances").collect();
    assert_eq!((orders.len(), &orders[0].query), (2, &orders[1].query), "the same request id");
}

#[tokio::test]
async fn instance_group_an_operation_that_ends_badly_says_why_and_leaves_nothing() {
    let scene = Scene::new().await;
    let (id, names) = scene.order_three().await;
    scene.operation_ended(&[
        json!({"code": "QUOTA_EXCEEDED", "message": "Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 4.0"}),
    ]);
    scene.list(&[machine(&names[0], "CREATING", "")]);
    let error = scene.failure(&id).await;
    assert_eq!(error.kind, ErrorKind::Quota);
    assert!(error.text.contains("Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 4.0"), "{error}");
    assert!(scene.asked().contains(&"POST deleteInstances".to_owned()));
    let delete = scene.provider.delete("d", PRIMARY, &[names[0].clone()]).await.unwrap();
    assert_eq!(scene.failure(&delete).await.kind, ErrorKind::Quota);
}

#[tokio::test]
async fn instance_group_an_order_given_again_makes_nothing_twice() {
    let scene = Scene::new().await;
    let (id, names) = scene.order_three().await;
    assert_eq!(scene.order_three().await, (id, names.clone()), "the same request id asks for the same");
    // Compute Engine has forgotten the request id: the names are taken.
    scene.answer("createInstances", 400, json!({"error": {"code": 400, "message": "Instance already exists"}}));
    assert_eq!(scene.provider.create("ya-1-1", PRIMARY, 3).await.unwrap_err().kind, ErrorKind::Permanent);
    scene.list(&names.iter().map(|name| machine(name, "NONE", "RUNNING")).collect::<Vec<_>>());
    let id = scene.provider.create("ya-1-1", PRIMARY, 3).await.unwrap();
    assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Done);
    assert_eq!(
        scene.provider.create("ya-1-2", PRIMARY, 3).await.unwrap_err().kind,
        ErrorKind::Permanent,
        "not that one"
    );
}

#[tokio::test]
async fn instance_group_deletes_what_the_group_shows_and_nothing_else() {
    let scene = Scene::new().await;
    scene.list(&[machine("gpu-a", "NONE", "RUNNING"), machine("gpu-b", "DELETING", "STOPPING")]);
    let gone = ["gpu-b".to_owned(), "gpu-z".to_owned(), "../x".to_owned()];
    let nothing = scene.provider.delete("d-1", PRIMARY, &gone).await.unwrap();
    assert_eq!(scene.asked(), ["POST listManagedInstances"], "nothing is left to delete");
    assert_eq!(scene.provider.poll(&nothing).await.unwrap(), OperationState::Done);
    let id = scene.provider.delete("d-2", PRIMARY, &[&["gpu-a".to_owned()][..], &gone].concat()).await.unwrap();
    let order = scene.service.take().pop().unwrap();
    assert_eq!(order.body["instances"], json!(["zones/us-central1-a/instances/gpu-a"]));
    scene.operation_ended(&[]);
    assert_eq!(scene.provider.poll(&id).await.unwrap(), OperationState::Done);
    let many: Vec<_> = (0..1100).map(|n| machine(&format!("gpu-{n:04}"), "NONE", "RUNNING")).collect();
    scene.list(&many);
    let names: Vec<_> = (0..1100).map(|n| format!("gpu-{n:04}")).collect();
    scene.provider.delete("d-3", PRIMARY, &names).await.unwrap();
    let order = scene.service.take().pop().unwrap();
    assert_eq!(order.body["instances"].as_array().unwrap().len(), 1000);
}

#[tokio::test]
async fn instance_group_refusals_have_their_kinds() {
    let scene = Scene::new().await;
    let refusal = |code: u16, reason: &str| json!({"error": {"code": code, "message": "no", "errors": [{"message": "no", "domain": "global", "reason": reason}]}});
    for (status, reason, kind) in [
        (403, "quotaExceeded", ErrorKind::Quota),
        (403, "rateLimitExceeded", ErrorKind::Throttled { retry_after: None }),
        (403, "forbidden", ErrorKind::Denied),
        (404, "notFound", ErrorKind::NotFound),
        (400, "resourceNotReady", ErrorKind::Conflict),
        (400, "invalid", ErrorKind::Permanent),
        (503, "backendError", ErrorKind::Transient),
    ] {
        scene.answer("createInstances", status, refusal(status, reason));
        let error = scene.provider.create("r", PRIMARY, 1).await.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.text.contains("createInstances") && !error.text.contains("requestId"), "{error}");
    }
    scene.answer("workers", 404, refusal(404, "notFound"));
    insta::assert_snapshot!(
        scene.provider.describe().await.unwrap_err().text.replace(&scene.service.address, "http://HOST/")
    );
    assert_eq!(scene.provider.create("r", GroupName::Secondary, 1).await.unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(
        scene.provider.resize("r", Default::default(), Duration::ZERO).await.unwrap_err().kind,
        ErrorKind::Permanent
    );
}

#[tokio::test]
async fn instance_group_an_operation_that_nobody_knows_is_not_found() {
    let scene = Scene::new().await;
    let path = "zones/us-central1-a/operations/operation-9";
    for id in ["", "operation-1", "delete:primary:../x", &format!("delete:primary:{path}"), "delete:secondary:"] {
        assert_eq!(scene.provider.poll(id).await.unwrap_err().kind, ErrorKind::NotFound, "{id}");
    }
}

#[tokio::test]
async fn instance_group_a_service_that_hangs_is_an_error_within_the_limit() {
    for reply in [Reply::Silence, Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n".to_vec())] {
        let service = FakeHttp::start(move |_| reply.clone()).await;
        let api = Api::new(service.url(), Arc::new(Tokens::anonymous()), Duration::from_millis(200)).unwrap();
        let provider = provider_of(api, "us-central1-a/workers");
        assert_eq!(provider.describe().await.unwrap_err().kind, ErrorKind::Transient);
        assert_eq!(provider.create("r", PRIMARY, 1).await.unwrap_err().kind, ErrorKind::Transient);
        assert_eq!(provider.poll("delete:primary:zones/z/operations/o").await.unwrap_err().kind, ErrorKind::Transient);
    }
}
