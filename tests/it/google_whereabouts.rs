//! Where we are on Google Cloud, and whether this node acts: flags, a metadata server that lacks things, ResourceManagers
//! in waiting.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use clap::Parser;
use tokio::time::timeout;
use yarn_autoscaler::{
    cli::{
        google::Args,
        standing::{Standby, Standing, by_part, leads, standing, stands_back},
    },
    google::{ClusterPlacement, Metadata, MetadataError, Placement},
    ports::ErrorKind,
    yarn::rest::{Options, ResourceManager},
};

use crate::{
    fake_http::{FakeHttp, Reply},
    fake_service::FakeService,
};

const LIMIT: Duration = Duration::from_secs(30);
/// Nobody listens there.
const NOWHERE: &str = "127.0.0.1:1";

/// A master of a highly available cluster.
const MASTER: &[(&str, &str)] = &[
    ("project/project-id", "a-project"),
    ("instance/hostname", "gpu1-m-0.us-central1-a.c.a-project.internal"),
    ("instance/zone", "projects/123456/zones/us-central1-a"),
    ("instance/attributes/dataproc-region", "us-central1"),
    ("instance/attributes/dataproc-cluster-name", "gpu1"),
    ("instance/attributes/dataproc-cluster-uuid", "6d4c"),
    ("instance/attributes/dataproc-role", "Master"),
    ("instance/attributes/dataproc-master", "gpu1-m-0"),
    ("instance/attributes/dataproc-master-additional", "gpu1-m-1,gpu1-m-2"),
];

async fn metadata_server(without: &[&str], with: &[(&str, &str)]) -> FakeService {
    let values = MASTER.iter().filter(|(path, _)| !without.iter().any(|name| path.ends_with(name))).chain(with);
    let own = |(path, value): &(&str, &str)| (format!("/computeMetadata/v1/{path}"), (*value).to_owned());
    let values: BTreeMap<_, _> = values.map(own).collect();
    FakeService::start(move |heard, _| {
        assert_eq!(heard.headers["metadata-flavor"], "Google");
        Some(values.get(&heard.path).map_or((404, "no such thing".into()), |value| (200, format!("{value}\n"))))
    })
    .await
}

async fn placement(server: &FakeService) -> Result<Placement, MetadataError> {
    Metadata::new(&server.host(), LIMIT).unwrap().placement().await
}

#[tokio::test]
async fn a_master_knows_its_cluster_and_the_other_masters() {
    let found = placement(&metadata_server(&[], &[]).await).await.unwrap();
    let masters: Vec<String> = ["gpu1-m-0", "gpu1-m-1", "gpu1-m-2"].map(String::from).into();
    let cluster = ClusterPlacement {
        name: "gpu1".into(),
        uuid: "6d4c".into(),
        role: "Master".into(),
        master: "gpu1-m-0".into(),
        masters,
    };
    assert_eq!(
        found,
        Placement {
            project: "a-project".into(),
            region: "us-central1".into(),
            zone: "us-central1-a".into(),
            hostname: "gpu1-m-0.us-central1-a.c.a-project.internal".into(),
            cluster: Some(cluster),
        }
    );
    // A machine without Dataproc: the region is the zone's.
    let dataproc = ["-region", "-name", "-uuid", "-role", "-master", "-additional"];
    let found = placement(&metadata_server(&dataproc, &[]).await).await.unwrap();
    assert_eq!((found.region.as_str(), found.cluster), ("us-central1", None));
}

#[tokio::test]
async fn what_must_be_there_and_is_not_is_an_error() {
    for missing in ["project-id", "hostname", "instance/zone", "-role", "-master"] {
        let error = placement(&metadata_server(&[missing], &[]).await).await.unwrap_err();
        assert!(matches!(&error, MetadataError::Silent(text) if text.contains(missing)), "{missing}: {error}");
        let empty = MASTER.iter().find(|(path, _)| path.ends_with(missing)).map(|(path, _)| (*path, "")).unwrap();
        assert!(placement(&metadata_server(&[], &[empty]).await).await.is_err(), "{missing}");
    }
    let strange = placement(&metadata_server(&["-region"], &[("instance/zone", "nowhere")]).await).await;
    assert!(matches!(strange, Err(MetadataError::Silent(_))), "{strange:?}");
}

#[tokio::test]
async fn no_metadata_server_is_told_from_one_that_does_not_answer() {
    let at = |host: &str, limit| Metadata::new(host, limit).unwrap();
    let nobody = at(NOWHERE, LIMIT).placement().await.unwrap_err();
    assert!(
        matches!(&nobody, MetadataError::Absent(text) if text.contains("not on Google Compute Engine")),
        "{nobody}"
    );
    let another = FakeHttp::start(|_| Reply::json("{}")).await;
    let another = at(another.url().authority(), LIMIT).placement().await.unwrap_err();
    assert!(matches!(&another, MetadataError::Absent(text) if text.contains("Metadata-Flavor")), "{another}");
    let mute = FakeService::start(|_, _| None).await;
    let mute = at(&mute.host(), Duration::from_millis(100)).placement().await.unwrap_err();
    assert!(matches!(&mute, MetadataError::Silent(text) if text.contains("within 0.1 s")), "{mute}");
    let broken = FakeService::start(|_, _| Some((503, "soon".into()))).await;
    let broken = at(&broken.host(), LIMIT).placement().await.unwrap_err();
    assert_eq!(broken.port_error().kind, ErrorKind::Transient);
    for host in ["http://h", "h/x", "", "a b", "u@h", "h?x"] {
        assert_eq!(Metadata::new(host, LIMIT).unwrap_err().kind, ErrorKind::Permanent, "{host}");
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    google: Args,
}

fn args(words: &str) -> Args {
    Line::try_parse_from(std::iter::once("x").chain(words.split_whitespace()))
        .map_err(|error| error.to_string())
        .unwrap()
        .google
}

#[tokio::test]
async fn flags_come_before_what_the_machine_tells() {
    let server = metadata_server(&[], &[]).await;
    let host = server.host();
    let found = args(&format!("--metadata-host {host}")).whereabouts().await.unwrap();
    assert_eq!((found.project().unwrap(), found.region().unwrap()), ("a-project", "us-central1"));
    assert_eq!(found.cluster().unwrap(), "gpu1");
    assert_eq!(found.worker_domain.as_deref(), Some("{zone}.c.a-project.internal"));
    let flags = "--project q --region r --cluster c --worker-domain d.example";
    let found = args(&format!("{flags} --metadata-host {host}")).whereabouts().await.unwrap();
    assert_eq!((found.project().unwrap(), found.region().unwrap(), found.cluster().unwrap()), ("q", "r", "c"));
    assert_eq!(found.worker_domain.as_deref(), Some("d.example"));
    assert_eq!(found.placement.unwrap().project, "a-project");
}

#[tokio::test]
async fn what_is_missing_is_named_with_why() {
    let alone = args(&format!("--project q --metadata-host {NOWHERE}")).whereabouts().await.unwrap();
    assert_eq!(alone.project().unwrap(), "q");
    let error = alone.region().unwrap_err();
    let words = error.error.to_string();
    assert!(error.code == 2 && words.starts_with("--region is needed") && words.contains("not on Google"), "{words}");
    let broken = FakeService::start(|_, _| Some((503, "soon".into()))).await;
    let broken = args(&format!("--metadata-host {}", broken.host())).whereabouts().await.unwrap();
    assert_eq!(broken.cluster().unwrap_err().code, 6);
    let plain = metadata_server(&["-name"], &[]).await;
    let plain = args(&format!("--metadata-host {}", plain.host())).whereabouts().await.unwrap();
    assert!(plain.cluster().unwrap_err().error.to_string().contains("not a node of a Dataproc cluster"));
    let emulated = args("--google-credentials none").whereabouts().await.unwrap();
    assert!(emulated.project().unwrap_err().error.to_string().contains("--metadata-host"));
}

#[test]
fn nobody_in_particular_asks_emulators_only() {
    let here = "--dataproc-endpoint http://127.0.0.1:1 --compute-endpoint http://localhost:1";
    let error = args(&format!("--google-credentials none {here}")).tokens().unwrap_err();
    assert!(error.code == 2 && error.error.to_string().contains("--storage-endpoint"), "{:?}", error.error);
    let all = args(&format!("--google-credentials none {here} --storage-endpoint http://[::1]:1"));
    assert!(all.tokens().unwrap().is_anonymous());
    assert_eq!(all.endpoints().unwrap().compute.as_str(), "http://localhost:1/");
    let both = format!("{here} --storage-endpoint http://[::1]:1 --impersonate-service-account a@b");
    assert_eq!(args(&format!("--google-credentials none {both}")).tokens().unwrap_err().code, 2);
    assert_eq!(args("--google-credentials /nonexistent/key.json").tokens().unwrap_err().code, 2);
    assert!(!args("--google-credentials metadata --impersonate-service-account a@b").tokens().unwrap().is_anonymous());
    for wrong in ["--dataproc-endpoint http://example.com", "--google-credentials="] {
        assert!(Line::try_parse_from(std::iter::once("x").chain(wrong.split(' '))).is_err(), "{wrong}");
    }
}

fn node(role: &str, masters: usize) -> Placement {
    let masters: Vec<_> = (0..masters).map(|n| format!("c-m-{n}")).collect();
    let cluster = ClusterPlacement {
        name: "c".into(),
        uuid: String::new(),
        role: role.into(),
        master: masters[0].clone(),
        masters,
    };
    let (region, zone) = ("r".into(), "r-a".into());
    Placement { project: "p".into(), region, zone, hostname: "h".into(), cluster: Some(cluster) }
}

#[test]
fn the_master_acts_and_a_worker_says_where_it_is() {
    assert_eq!(by_part(None), Some(Standing::Acts));
    assert_eq!(by_part(Some(&node("Master", 1))), Some(Standing::Acts));
    assert_eq!(by_part(Some(&Placement { cluster: None, ..node("Worker", 1) })), Some(Standing::Acts));
    assert_eq!(by_part(Some(&node("Master", 3))), None);
    for masters in [1, 3] {
        let rests = by_part(Some(&node("Worker", masters)));
        assert!(
            matches!(&rests, Some(Standing::Rests(why)) if why.contains("Worker") && why.contains("c-m-0")),
            "{rests:?}"
        );
    }
}

/// A ResourceManager that is in these states, look by look; the last one stays. An empty one: 500.
async fn resource_manager(states: &'static [&'static str]) -> (FakeHttp, ResourceManager) {
    let looks = AtomicUsize::new(0);
    let server = FakeHttp::start(move |path| {
        assert_eq!(path, "/ws/v1/cluster/info");
        let look = looks.fetch_add(1, Ordering::SeqCst).min(states.len() - 1);
        match states[look] {
            "" => Reply::new("500 Internal Server Error", "", "starting"),
            state => Reply::json(&format!(r#"{{"clusterInfo":{{"startedOn":5,"haState":"{state}"}}}}"#)),
        }
    })
    .await;
    let rm = ResourceManager::new(vec![server.url()], Options::default()).unwrap();
    (server, rm)
}

#[tokio::test]
async fn of_several_masters_the_one_with_the_active_resource_manager_acts() {
    let master = node("Master", 3);
    for standby in [Standby::Exit, Standby::Wait] {
        let (_server, rm) = resource_manager(&["ACTIVE"]).await;
        assert_eq!(standing(Some(&master), &rm, standby).await.unwrap(), Standing::Acts);
    }
    let (_server, rm) = resource_manager(&["STANDBY"]).await;
    assert_eq!(rm.ha_state().await.unwrap(), "STANDBY");
    let rests = standing(Some(&master), &rm, Standby::Exit).await.unwrap();
    assert!(matches!(&rests, Standing::Rests(why) if why.contains("STANDBY")), "{rests:?}");
    // What may pass is no end for good.
    for states in [&["INITIALIZING"], &[""]] {
        let (_server, rm) = resource_manager(states).await;
        assert_eq!(standing(Some(&master), &rm, Standby::Exit).await.unwrap_err().code, 6);
    }
    let (server, rm) = resource_manager(&["", "INITIALIZING", "STANDBY", "STANDBY", "ACTIVE"]).await;
    assert_eq!(leads(&rm, Standby::Wait, Duration::from_millis(1)).await.unwrap(), Standing::Acts);
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn a_master_steps_back_when_its_resource_manager_waits_or_is_down() {
    let pace = Duration::from_millis(1);
    let (server, rm) = resource_manager(&["ACTIVE", "STANDBY", "ACTIVE", "", "STANDBY", "STANDBY"]).await;
    timeout(LIMIT, stands_back(&rm, pace)).await.unwrap();
    assert_eq!(server.requests().len(), 6, "a restart and one failed look are none");
    let (server, rm) = resource_manager(&["", "", "ACTIVE", ""]).await;
    timeout(LIMIT, stands_back(&rm, pace)).await.unwrap();
    assert_eq!(server.requests().len(), 3 + 12, "one that is down would hold the state for ever");
}
