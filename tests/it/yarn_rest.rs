//! The REST client against a web server that misbehaves.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use yarn_autoscaler::{
    model::Observation,
    ports::{ErrorKind, PortError},
    yarn::rest::{Options, ResourceManager},
};

use crate::fake_http::{FakeHttp, Reply};

/// The limit where one is to be met; all else has the default one, so that a busy machine spoils no test.
const TOTAL: Duration = Duration::from_millis(800);

fn short() -> Options {
    Options { connect: TOTAL * 2, read: TOTAL * 2, total: TOTAL, body: 1 << 20 }
}

fn options() -> Options {
    Options::default()
}

fn client(servers: &[&FakeHttp]) -> ResourceManager {
    ResourceManager::new(servers.iter().map(|server| server.url()).collect(), options()).expect("client")
}

async fn observe(servers: &[&FakeHttp]) -> Result<Observation, PortError> {
    client(servers).observe().await
}

/// The cluster with pending GPUs, as it was recorded.
fn well(path: &str) -> Reply {
    let path = path.trim_start_matches("/ws/v1/cluster/");
    Reply::json(match path.split('?').next().unwrap_or_default() {
        "info" => include_str!("../fixtures/yarn/3.3.6/ds-gpu-pending-info.json"),
        "metrics" => include_str!("../fixtures/yarn/3.3.6/ds-gpu-pending-metrics.json"),
        "nodes" => include_str!("../fixtures/yarn/3.3.6/ds-gpu-pending-nodes.json"),
        "apps" => include_str!("../fixtures/yarn/3.3.6/ds-gpu-pending-apps.json"),
        "scheduler" => include_str!("../fixtures/yarn/3.3.6/ds-gpu-pending-scheduler.json"),
        _ => return Reply::new("404 Not Found", "", "no such path"),
    })
}

fn info(ha_state: &str, started_on: u64) -> Reply {
    Reply::json(&format!(r#"{{"clusterInfo":{{"startedOn":{started_on},"haState":"{ha_state}"}}}}"#))
}

/// A standby as it behaves while `active` is the active one.
fn standby(active: String) -> impl Fn(&str) -> Reply + Send + Sync {
    move |path| match path {
        "/ws/v1/cluster/info" => info("STANDBY", 5),
        path => Reply::redirect(&format!("{}{path}", active.trim_end_matches('/'))),
    }
}

#[tokio::test]
async fn a_healthy_resource_manager_is_read() {
    let server = FakeHttp::start(well).await;
    let seen = observe(&[&server]).await.expect("observation");
    assert_eq!((seen.nodes.len(), seen.applications.len(), seen.metrics.pending.gpus), (3, 1, 4));
    let requests = server.requests();
    assert!(requests.iter().all(|head| head.contains("user-agent: yarn-autoscaler/")), "{requests:?}");
    assert!(requests.iter().any(|head| head.starts_with("GET /ws/v1/cluster/apps?states=ACCEPTED,RUNNING&deSelects=")));
    assert!(!requests.iter().any(|head| head.contains("/scheduler")), "nothing is hidden: it is not needed");
}

#[tokio::test]
async fn the_scheduler_is_asked_where_asks_are_hidden() {
    let server =
        FakeHttp::start(|path| if path.contains("/apps") { Reply::json(r#"{"apps":{}}"#) } else { well(path) }).await;
    let seen = observe(&[&server]).await.expect("observation");
    assert_eq!((seen.applications.len(), seen.metrics.pending.gpus), (0, 4));
}

#[tokio::test]
async fn a_path_before_ours_is_kept() {
    let server = FakeHttp::start(|path| path.strip_prefix("/gateway/yarn").map_or(Reply::Silence, well)).await;
    let url = server.url().join("gateway/yarn").expect("URL");
    let client = ResourceManager::new(vec![url], options()).expect("client");
    assert_eq!(client.info().await.expect("info").version, "3.3.6");
}

/// Each misbehaviour, on `/nodes` of an otherwise healthy ResourceManager: the kind, and what people are told.
#[tokio::test]
async fn every_misbehaviour_is_an_error_that_says_so() {
    let plain = "Content-Type: text/plain\r\n";
    let truncated = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{\"nodes\":";
    let cases: Vec<(Reply, ErrorKind, &str)> = vec![
        (Reply::new("500 Internal Server Error", plain, "boom\nat java"), ErrorKind::Transient, "\"boom at java\""),
        (Reply::new("503 Service Unavailable", plain, ""), ErrorKind::Transient, "503"),
        (Reply::new("401 Unauthorized", plain, "Negotiate"), ErrorKind::Denied, "401"),
        (Reply::new("403 Forbidden", plain, ""), ErrorKind::Denied, "403"),
        (Reply::new("404 Not Found", plain, ""), ErrorKind::NotFound, "404"),
        (Reply::new("400 Bad Request", plain, "Invalid state"), ErrorKind::Permanent, "Invalid state"),
        (
            Reply::new("429 Too Many Requests", "Retry-After: 7\r\n", ""),
            ErrorKind::Throttled { retry_after: Some(Duration::from_secs(7)) },
            "429",
        ),
        (Reply::json("{\"nodes\":{\"node\":[{]"), ErrorKind::Transient, "the answer is no /nodes"),
        (Reply::json(""), ErrorKind::Transient, "the answer is no /nodes"),
        (Reply::json(r#"{"RemoteException":{}}"#), ErrorKind::Transient, "/nodes without nodes"),
        (Reply::Bytes(truncated.into()), ErrorKind::Transient, "failed"),
        (Reply::Bytes(b"\x00\x01\x02 not HTTP \r\n\r\n".to_vec()), ErrorKind::Transient, "failed"),
        (Reply::Bytes(vec![]), ErrorKind::Transient, "failed"),
        (
            Reply::new("200 OK", plain, "There is no active RM right now."),
            ErrorKind::Transient,
            "There is no active RM",
        ),
        (Reply::new("200 OK", "", "{}"), ErrorKind::Transient, "no JSON"),
        (
            Reply::new("307 Temporary Redirect", "Refresh: 5;url=/x?next.refresh.interval=2\r\n", "no active RM"),
            ErrorKind::Transient,
            "without an address",
        ),
        (Reply::redirect("/ws/v1/cluster/nodes"), ErrorKind::Transient, "a redirect loop"),
        (Reply::redirect("ftp://somewhere/"), ErrorKind::Transient, "to nowhere"),
        (Reply::Silence, ErrorKind::Transient, "within 800ms"),
        (
            Reply::Drip(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec()),
            ErrorKind::Transient,
            "within 800ms",
        ),
        (
            Reply::Drip(
                [&b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"[..], &[b' '; (1 << 20) + 1]].concat(),
            ),
            ErrorKind::Transient,
            "over 1048576 bytes",
        ),
    ];
    for (reply, kind, told) in cases {
        let shown = format!("{reply:.200?}");
        let server =
            FakeHttp::start(move |path| if path.contains("/nodes") { reply.clone() } else { well(path) }).await;
        let began = Instant::now();
        let client = ResourceManager::new(vec![server.url()], short()).expect("client");
        let error = client.observe().await.expect_err(&shown);
        assert!(began.elapsed() < TOTAL * 5, "{shown}: in time");
        assert_eq!(error.kind, kind, "{shown}: {error}");
        assert!(error.text.contains(told), "{shown}: {error}");
        assert!(error.text.contains(server.url().authority()), "{shown}: {error}");
    }
}

#[tokio::test]
async fn a_silence_is_named_before_all_the_time_is_gone() {
    let server = FakeHttp::start(|path| if path.contains("/nodes") { Reply::Silence } else { well(path) }).await;
    let options = Options { read: TOTAL / 8, ..options() };
    let client = ResourceManager::new(vec![server.url()], options).expect("client");
    let error = client.observe().await.expect_err("silence");
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.text.contains("/ws/v1/cluster/nodes: no answer in time"), "{error}");
}

#[tokio::test]
async fn redirects_end_after_a_few() {
    let next = AtomicUsize::new(0);
    let server = FakeHttp::start(move |_| Reply::redirect(&format!("/{}", next.fetch_add(1, Ordering::Relaxed)))).await;
    let error = observe(&[&server]).await.expect_err("endless");
    assert!(error.text.contains("too many redirects"), "{error}");
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn a_password_in_the_address_is_never_shown() {
    let server = FakeHttp::start(|_| Reply::new("500 Oops", "", "")).await;
    let url = server.url().as_str().replace("http://", "http://me:secret@").parse().expect("URL");
    let error = ResourceManager::new(vec![url], options()).expect("client").nodes().await.expect_err("500");
    assert!(!error.text.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_standby_is_never_believed() {
    for state in ["STANDBY", "INITIALIZING", "STOPPED", "SOMETHING_NEW"] {
        let server =
            FakeHttp::start(move |path| if path.ends_with("/info") { info(state, 5) } else { well(path) }).await;
        let error = observe(&[&server]).await.expect_err(state);
        assert_eq!(error.kind, ErrorKind::Transient);
        assert!(error.text.contains(&format!("is {state}, not ACTIVE")), "{error}");
    }
}

#[tokio::test]
async fn of_a_pair_the_active_one_is_read() {
    let active = FakeHttp::start(well).await;
    let other = FakeHttp::start(standby(active.url().to_string())).await;
    let seen = observe(&[&other, &active]).await.expect("observation");
    assert_eq!(seen.nodes.len(), 3);
    assert!(other.requests().iter().all(|head| head.contains("/info")), "a standby is asked who it is, nothing else");
}

#[tokio::test]
async fn a_dead_and_a_silent_one_do_not_stand_in_the_way() {
    let active = FakeHttp::start(well).await;
    let silent = FakeHttp::start(|_| Reply::Silence).await;
    let dead = {
        let server = FakeHttp::start(well).await;
        server.url()
    };
    let urls = vec![dead, silent.url(), active.url()];
    let client = ResourceManager::new(urls, options()).expect("client");
    let began = Instant::now();
    client.observe().await.expect("observation");
    assert!(began.elapsed() < options().total / 2, "nobody waits for the silent one");
}

#[tokio::test]
async fn a_failover_is_followed() {
    let is_active = [true, false].map(|active| Arc::new(Mutex::new(active)));
    let mut servers = Vec::new();
    for (number, active) in is_active.iter().enumerate() {
        let active = active.clone();
        let reply = move |path: &str| match (path, *active.lock().expect("lock")) {
            ("/ws/v1/cluster/info", true) => info("ACTIVE", number as u64),
            ("/ws/v1/cluster/info", false) => info("STANDBY", number as u64),
            (path, true) => well(path),
            (_, false) => Reply::new("307 Temporary Redirect", "", "This is standby RM."),
        };
        servers.push(FakeHttp::start(reply).await);
    }
    let client = client(&[&servers[0], &servers[1]]);
    let started = async || client.observe().await.map(|seen| seen.started_on_ms);
    assert_eq!(started().await, Ok(0));
    *is_active[0].lock().expect("lock") = false;
    assert!(started().await.is_err(), "nobody is active");
    *is_active[1].lock().expect("lock") = true;
    assert_eq!(started().await, Ok(1));
}

/// Active when asked, standby when read: the redirect leads to another ResourceManager's answer, which is true, and
/// yet must not be joined with what was read before.
#[tokio::test]
async fn a_failover_in_the_middle_spoils_the_look() {
    let other = FakeHttp::start(well).await;
    let there = other.url().to_string();
    let first = FakeHttp::start(move |path| match path {
        "/ws/v1/cluster/nodes" => Reply::redirect(&format!("{}{path}", there.trim_end_matches('/'))),
        path => well(path),
    })
    .await;
    let error = observe(&[&first]).await.expect_err("two sources");
    assert!(error.text.contains("which is active no more"), "{error}");
}

#[tokio::test]
async fn a_restart_in_the_middle_spoils_the_look() {
    let looks = AtomicUsize::new(0);
    let server = FakeHttp::start(move |path| match path {
        "/ws/v1/cluster/info" => info("ACTIVE", looks.fetch_add(1, Ordering::Relaxed) as u64),
        path => well(path),
    })
    .await;
    let error = observe(&[&server]).await.expect_err("restarted");
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.text.contains("restarted or failed over"), "{error}");
}

#[test]
fn addresses_are_checked() {
    for urls in [vec![], vec!["file:///etc/passwd"], vec!["ftp://rm:21"]] {
        let urls = urls.into_iter().map(|url| url.parse().expect("URL")).collect();
        assert_eq!(ResourceManager::new(urls, options()).expect_err("no such client").kind, ErrorKind::Permanent);
    }
}

#[tokio::test]
async fn a_property_is_read_where_there_is_one() {
    let exclude_path = r#"{"property":{"key":"k","value":"/etc/hadoop/conf/nodes_exclude","isFinal":false}}"#;
    let manager = FakeHttp::start(move |path| match path {
        "/ws/v1/cluster/info" => info("ACTIVE", 5),
        "/conf?name=yarn.resourcemanager.nodes.exclude-path" => Reply::json(exclude_path),
        "/conf?name=odd+%26+name" => Reply::json("{}"),
        _ => Reply::new("404 Not Found", "Content-Type: application/json;charset=utf-8\r\n", ""),
    })
    .await;
    let client = client(&[&manager]);
    let read = client.property("yarn.resourcemanager.nodes.exclude-path").await.unwrap();
    assert_eq!(read.as_deref(), Some("/etc/hadoop/conf/nodes_exclude"));
    assert_eq!(client.property("no.such").await.unwrap(), None);
    assert_eq!(client.property("odd & name").await.unwrap_err().kind, ErrorKind::Transient);
}
