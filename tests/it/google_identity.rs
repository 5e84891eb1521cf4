//! Tokens for Google's services: each kind of credentials against stand-ins, renewal, failures, and that none is shown.

use std::{
    collections::BTreeMap,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
};
use base64::{Engine, engine::general_purpose};
use http::Extensions;
use serde_json::{Value, json};
use tempfile::TempDir;
use yarn_autoscaler::{
    google::{Api, Credentials, Defaults, Metadata, Timing, Tokens, credentials},
    ports::ErrorKind,
};

use crate::fake_service::{FakeService, Said};

/// What no text of ours may hold.
const SECRET: &str = "ya29.secret-of-the-house";
const LIMIT: Duration = Duration::from_secs(30);
/// Nobody listens there.
const NOWHERE: &str = "127.0.0.1:1";

/// Waits for an answer as long as a busy machine needs; asks again at once.
const AT_ONCE: Timing = Timing { limit: LIMIT, early: Duration::from_secs(240), pause: Duration::ZERO };

fn token(token: &str, life: u64) -> Said {
    Some((200, json!({"access_token": token, "expires_in": life, "token_type": "Bearer"}).to_string()))
}

/// A fresh private key in PEM form, made once.
fn private_key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let key = KeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: Pkcs8V1Der = key.as_der().unwrap();
        let text = general_purpose::STANDARD.encode(der.as_ref());
        format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n")
    })
}

/// A service account's key that gets its tokens from this server.
fn key_file(dir: &TempDir, server: &FakeService) -> PathBuf {
    let key = json!({
        "type": "service_account", "project_id": "p", "private_key_id": "1", "private_key": private_key(),
        "client_email": "scaler@p.iam.gserviceaccount.com", "token_uri": format!("{}token", server.url()),
    });
    let path = dir.path().join("key.json");
    std::fs::write(&path, key.to_string()).unwrap();
    path
}

fn by_key(dir: &TempDir, server: &FakeService, timing: Timing) -> Tokens {
    Tokens::new(Credentials::ServiceAccountFile(key_file(dir, server)), timing)
}

fn by_metadata(host: &str, timing: Timing) -> Tokens {
    Tokens::new(Credentials::Metadata(Metadata::new(host, timing.limit).unwrap()), timing)
}

async fn header(tokens: &Tokens) -> String {
    tokens.header().await.unwrap().unwrap().to_str().unwrap().to_owned()
}

/// What is logged on this thread, by us and by all libraries, down to the least.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_env_filter("trace").with_ansi(false);
        let guard = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
        (log, guard)
    }

    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

#[tokio::test]
async fn a_service_accounts_key_is_good_for_tokens() {
    let (dir, server) = (TempDir::new().unwrap(), FakeService::start(|_, _| token("t1", 3599)).await);
    let tokens = by_key(&dir, &server, Timing { limit: LIMIT, ..Timing::default() });
    assert!(tokens.header().await.unwrap().unwrap().is_sensitive());
    assert_eq!(header(&tokens).await, "Bearer t1");
    let heard = server.heard();
    assert_eq!((heard.len(), heard[0].method.as_str(), heard[0].path.as_str()), (1, "POST", "/token"));
    let form: BTreeMap<_, _> = heard[0].body.split('&').filter_map(|pair| pair.split_once('=')).collect();
    assert_eq!(form["grant_type"], "urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer");
    let claims = form["assertion"].split('.').nth(1).unwrap().replace("%3D", "=");
    let claims: Value = serde_json::from_slice(&general_purpose::URL_SAFE.decode(claims).unwrap()).unwrap();
    assert_eq!(claims["iss"], "scaler@p.iam.gserviceaccount.com");
    assert_eq!(claims["aud"], format!("{}token", server.url()));
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
}

#[tokio::test]
async fn fifty_tasks_on_an_expired_token_make_one_refresh() {
    let dir = TempDir::new().unwrap();
    let server = FakeService::start(|_, before| token("t", if before == 0 { 1 } else { 3599 })).await;
    let tokens = Arc::new(by_key(&dir, &server, Timing { limit: LIMIT, ..Timing::default() }));
    header(&tokens).await;
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            tokio::spawn({
                let tokens = tokens.clone();
                async move { header(&tokens).await }
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), "Bearer t");
    }
    assert_eq!(server.heard().len(), 2);
}

#[tokio::test]
async fn fifty_tasks_share_one_failure_and_nobody_is_asked_again_at_once() {
    let server = FakeService::start(|_, _| Some((503, "later".into()))).await;
    let tokens = Arc::new(by_metadata(&server.host(), Timing { limit: LIMIT, pause: LIMIT, ..AT_ONCE }));
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            tokio::spawn({
                let tokens = tokens.clone();
                async move { tokens.header().await }
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap_err().kind, ErrorKind::Transient);
    }
    let error = tokens.header().await.unwrap_err();
    assert!(
        error.text.contains(&server.host()) && error.text.contains("503") && error.text.contains("later"),
        "{error}"
    );
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up_in_time() {
    let (dir, server) = (TempDir::new().unwrap(), FakeService::start(|_, _| None).await);
    let timing = Timing { limit: Duration::from_millis(200), ..Timing::default() };
    let metadata = by_metadata(&server.host(), timing);
    let narrower = by_key(&dir, &server, timing).impersonating("a@p.iam.gserviceaccount.com", server.url()).unwrap();
    for tokens in [by_key(&dir, &server, timing), metadata, narrower] {
        let began = Instant::now();
        let error = tokens.header().await.unwrap_err();
        assert!(began.elapsed() < LIMIT, "{:?}", began.elapsed());
        assert_eq!(error.kind, ErrorKind::Transient, "{error}");
        assert!(error.text.contains("within 0.2 s"), "{error}");
    }
}

#[tokio::test]
async fn a_key_that_is_refused_is_denied_and_not_tried_again_at_once() {
    let dir = TempDir::new().unwrap();
    let server = FakeService::start(|_, _| Some((400, r#"{"error":"invalid_grant"}"#.into()))).await;
    let tokens = by_key(&dir, &server, Timing { limit: LIMIT, pause: LIMIT, ..AT_ONCE });
    let error = tokens.header().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    for part in ["key.json", "/token", "scaler@p.iam.gserviceaccount.com", "deleted"] {
        assert!(error.text.contains(part), "{part}: {error}");
    }
    let asked = server.heard().len();
    assert_eq!(tokens.header().await.unwrap_err(), error);
    assert_eq!(server.heard().len(), asked);

    // Inside a request it is still what it is, and the request is not sent.
    let api = Api::new(server.url(), Arc::new(tokens), LIMIT).unwrap();
    let error = api.get::<Value>("v1/x", &[]).await.unwrap_err();
    assert_eq!((error.kind(), error.status), (ErrorKind::Denied, None));
    assert!(error.to_string().contains("key.json"), "{error}");
    assert_eq!(server.heard().len(), asked);
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_the_old_one_serves_while_that_fails() {
    let server = FakeService::start(|_, before| match before {
        0 => token("old", 200),
        1 | 2 => Some((500, String::new())),
        _ => token("new", 3599),
    })
    .await;
    let (log, _guard) = Log::start();
    let tokens = by_metadata(&server.host(), AT_ONCE);
    for (asked, want) in [(1, "old"), (2, "old"), (3, "old"), (4, "new"), (4, "new")] {
        assert_eq!(header(&tokens).await, format!("Bearer {want}"));
        assert_eq!(server.heard().len(), asked);
    }
    assert_eq!(log.text().matches("cannot be renewed").count(), 1, "{}", log.text());
}

#[tokio::test]
async fn early_renewals_leave_a_pause_between_them() {
    let server = FakeService::start(|_, before| token(&before.to_string(), 100)).await;
    let tokens = by_metadata(&server.host(), Timing { pause: LIMIT, ..AT_ONCE });
    for _ in 0..3 {
        assert_eq!(header(&tokens).await, "Bearer 0");
    }
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn a_token_that_a_service_refuses_is_replaced() {
    let server = FakeService::start(|heard, before| match heard.path.as_str() {
        "/v1/x" if heard.headers["authorization"] == "Bearer 0" => Some((401, "{}".into())),
        "/v1/x" => Some((200, "{}".into())),
        _ => token(&before.to_string(), 3599),
    })
    .await;
    let api = Api::new(server.url(), Arc::new(by_metadata(&server.host(), AT_ONCE)), LIMIT).unwrap();
    assert_eq!(api.get::<Value>("v1/x", &[]).await.unwrap_err().kind(), ErrorKind::Denied);
    api.get::<Value>("v1/x", &[]).await.unwrap();
}

#[tokio::test]
async fn files_that_are_not_read_are_named_with_what_to_use_instead() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("file.json");
    let mut texts = String::new();
    for (name, content) in [
        ("missing", None),
        ("not JSON", Some("gibberish".to_owned())),
        ("a JSON text", Some(format!("{SECRET:?}"))),
        ("no type", Some("{}".into())),
        ("external_account", Some(r#"{"type":"external_account"}"#.into())),
        ("external_account_authorized_user", Some(r#"{"type":"external_account_authorized_user"}"#.into())),
        ("impersonated_service_account", Some(r#"{"type":"impersonated_service_account"}"#.into())),
        ("authorized_user", Some(format!(r#"{{"type":"authorized_user","refresh_token":"{SECRET}"}}"#))),
        (
            "half a key",
            Some(format!(r#"{{"type":"service_account","client_email":"e","token_uri":"u","x":"{SECRET}"}}"#)),
        ),
        (
            "a wrong key",
            Some(format!(
                r#"{{"type":"service_account","client_email":"e","token_uri":"https://h/t","private_key":"{SECRET}"}}"#
            )),
        ),
        (
            "sent in clear",
            Some(
                r#"{"type":"service_account","client_email":"e","token_uri":"http://example.com/t","private_key":"k"}"#
                    .into(),
            ),
        ),
    ] {
        let _ = std::fs::remove_file(&path);
        if let Some(content) = content {
            std::fs::write(&path, content).unwrap();
        }
        let credentials = Credentials::ServiceAccountFile(path.clone());
        let early = credentials.check().unwrap_err();
        let late = Tokens::new(credentials, AT_ONCE).header().await.unwrap_err();
        assert_eq!(early, late);
        assert_eq!(early.kind, ErrorKind::Permanent, "{early}");
        texts += &format!("{name}:\n  {}\n", early.text.replace(&dir.path().display().to_string(), ""));
    }
    assert!(!texts.contains(SECRET), "{texts}");
    insta::assert_snapshot!(texts);
}

#[tokio::test]
async fn a_machine_has_tokens_of_its_own() {
    let server = FakeService::start(|_, _| token("m", 3599)).await;
    assert_eq!(header(&by_metadata(&server.host(), AT_ONCE)).await, "Bearer m");
    let heard = server.heard();
    assert_eq!(heard[0].path, "/computeMetadata/v1/instance/service-accounts/default/token");
    assert_eq!(heard[0].headers["metadata-flavor"], "Google");
    for (status, body, kind) in [
        (404, "", ErrorKind::Denied),
        (403, "no", ErrorKind::Denied),
        (503, "", ErrorKind::Transient),
        (200, "{}", ErrorKind::Transient),
        (200, r#"{"access_token":"","expires_in":5}"#, ErrorKind::Transient),
        (200, "{\"access_token\":\"a\\nb\",\"expires_in\":5}", ErrorKind::Transient),
        (200, r#"{"access_token":"x"}"#, ErrorKind::Transient),
    ] {
        let server = FakeService::start(move |_, _| Some((status, body.into()))).await;
        let error = by_metadata(&server.host(), AT_ONCE).header().await.unwrap_err();
        assert_eq!(error.kind, kind, "{status} {body}: {error}");
        assert!(error.text.contains(&server.host()), "{error}");
    }
}

#[tokio::test]
async fn a_narrower_account_acts_where_one_is_named() {
    const EMAIL: &str = "narrow@p.iam.gserviceaccount.com";
    let server = FakeService::start(|heard, _| match heard.method.as_str() {
        "GET" => token("wide", 3599),
        _ => Some((200, r#"{"accessToken":"narrow","expireTime":"2026-11-21T12:00:00Z"}"#.into())),
    })
    .await;
    let tokens = by_metadata(&server.host(), AT_ONCE).impersonating(EMAIL, server.url()).unwrap();
    assert_eq!(header(&tokens).await, "Bearer narrow");
    assert_eq!(header(&tokens).await, "Bearer narrow");
    let heard = server.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[1].path, "/v1/projects/-/serviceAccounts/narrow%40p.iam.gserviceaccount.com:generateAccessToken");
    assert_eq!(heard[1].headers["authorization"], "Bearer wide");
    let body: Value = serde_json::from_str(&heard[1].body).unwrap();
    assert_eq!(body, json!({"scope": ["https://www.googleapis.com/auth/cloud-platform"], "lifetime": "3600s"}));

    let denied = FakeService::start(|heard, _| match heard.method.as_str() {
        "GET" => token("wide", 3599),
        _ => Some((403, json!({"error": {"message": "iam.serviceAccounts.getAccessToken denied"}}).to_string())),
    })
    .await;
    let tokens = by_metadata(&denied.host(), AT_ONCE).impersonating(EMAIL, denied.url()).unwrap();
    let error = tokens.header().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(error.text.contains("serviceAccountTokenCreator") && error.text.contains(EMAIL), "{error}");

    assert!(Tokens::anonymous().impersonating(EMAIL, server.url()).is_err());
    for wrong in ["narrow", "@p", "a@b@c", "a/b@c", "a b@c", ""] {
        assert!(by_metadata(NOWHERE, AT_ONCE).impersonating(wrong, server.url()).is_err(), "{wrong}");
    }
}

#[tokio::test]
async fn what_goes_wrong_under_a_narrower_account_keeps_its_kind() {
    let email = "narrow@p.iam.gserviceaccount.com";
    let server = FakeService::start(|_, _| Some((404, String::new()))).await;
    let tokens = by_metadata(&server.host(), AT_ONCE).impersonating(email, server.url()).unwrap();
    let error = tokens.header().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(error.text.contains("no service account"), "{error}");
}

/// What a child is told to do by this variable is done by the same test.
const CHILD: &str = "YARN_AUTOSCALER_TEST_GCLOUD";

#[tokio::test]
async fn the_gcloud_command_is_asked_last() {
    let defaults = |file: Option<PathBuf>| {
        let metadata = Metadata::new(NOWHERE, LIMIT).unwrap();
        Credentials::ApplicationDefault(Defaults { named: None, gcloud_file: file, metadata })
    };
    if std::env::var_os(CHILD).is_some() {
        let tokens = Tokens::new(defaults(None), Timing { limit: Duration::from_millis(300), ..AT_ONCE });
        for _ in 0..60 {
            match tokens.header().await {
                Ok(header) => return println!("header: {}", header.unwrap().to_str().unwrap()),
                Err(error) => println!("error: {:?} {error}", error.kind),
            }
        }
        return;
    }
    let dir = TempDir::new().unwrap();
    gcloud(dir.path(), "case \"$*\" in 'auth print-access-token'*) echo from-gcloud;; *) echo a-project;; esac");
    assert!(child(dir.path()).contains("header: Bearer from-gcloud"), "{}", child(dir.path()));
    gcloud(dir.path(), "exit 1");
    let words = child(dir.path());
    for part in ["error: Denied", "GOOGLE_APPLICATION_CREDENTIALS", NOWHERE, "gcloud auth print-access-token"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    // A run that is slow is not begun again: who asks later gets what came of it.
    let slow =
        "case \"$*\" in 'auth print-access-token'*) echo run >> runs; /bin/sleep 1; echo slow;; *) echo p;; esac";
    gcloud(dir.path(), slow);
    let words = child(dir.path());
    assert!(words.contains("error: Transient") && words.contains("header: Bearer slow"), "{words}");
    assert_eq!(std::fs::read_to_string(dir.path().join("runs")).unwrap(), "run\n");
    // A file that is there is taken, and told of, before any of that.
    let path = dir.path().join("adc.json");
    std::fs::write(&path, r#"{"type":"service_account"}"#).unwrap();
    let error = Tokens::new(defaults(Some(path)), AT_ONCE).header().await.unwrap_err();
    assert!(error.kind == ErrorKind::Permanent && error.text.contains("adc.json"), "{error}");
}

fn gcloud(dir: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = dir.join("gcloud");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// This very test in a process whose `gcloud` is in this folder.
fn child(dir: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "google_identity::the_gcloud_command_is_asked_last", "--nocapture"]);
    command.current_dir(dir).env(CHILD, "1").env("HOME", dir).env("PATH", dir).env_remove("RUST_LOG");
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

#[tokio::test]
async fn the_named_key_is_the_first_default() {
    let (dir, server) = (TempDir::new().unwrap(), FakeService::start(|_, _| token("named", 3599)).await);
    let metadata = Metadata::new(NOWHERE, LIMIT).unwrap();
    let defaults = Defaults { named: Some(key_file(&dir, &server)), gcloud_file: None, metadata };
    assert_eq!(header(&Tokens::new(Credentials::ApplicationDefault(defaults), AT_ONCE)).await, "Bearer named");

    let (none, metadata) = (dir.path().join("none.json"), Metadata::new(&server.host(), LIMIT).unwrap());
    let defaults = Defaults { named: None, gcloud_file: Some(none), metadata };
    assert_eq!(header(&Tokens::new(Credentials::ApplicationDefault(defaults), AT_ONCE)).await, "Bearer named");
    assert!(server.heard().last().unwrap().path.contains("computeMetadata"));
}

#[tokio::test]
async fn googles_own_storage_client_gets_the_same_tokens() {
    let server =
        FakeService::start(|_, before| token(&format!("t{before}"), if before == 0 { 100 } else { 3599 })).await;
    let bridge = credentials(Arc::new(by_metadata(&server.host(), AT_ONCE)));
    let parts = |answer| match answer {
        google_cloud_auth::credentials::CacheableResource::New { entity_tag, data } => Some((entity_tag, data)),
        google_cloud_auth::credentials::CacheableResource::NotModified => None,
    };
    let ask = |tag: Option<google_cloud_auth::credentials::EntityTag>| {
        let mut extensions = Extensions::new();
        if let Some(tag) = tag {
            extensions.insert(tag);
        }
        bridge.headers(extensions)
    };
    let (first, headers) = parts(ask(None).await.unwrap()).unwrap();
    assert!(headers["authorization"] == "Bearer t0" && headers["authorization"].is_sensitive());
    let (second, headers) = parts(ask(Some(first)).await.unwrap()).unwrap();
    assert_eq!(headers["authorization"], "Bearer t1");
    assert!(parts(ask(Some(second)).await.unwrap()).is_none());

    let nobody = credentials(Arc::new(Tokens::anonymous())).headers(Extensions::new()).await.unwrap();
    assert!(parts(nobody).unwrap().1.is_empty());
    let denied = Credentials::ServiceAccountFile("/nonexistent/key.json".into());
    let error = credentials(Arc::new(Tokens::new(denied, AT_ONCE))).headers(Extensions::new()).await.unwrap_err();
    assert!(!error.is_transient(), "{error}");
}

#[tokio::test]
async fn no_token_and_no_key_is_shown_anywhere() {
    let dir = TempDir::new().unwrap();
    let (log, _guard) = Log::start();
    let mut texts = String::new();
    // The service repeats what it was sent, with every kind of answer.
    let statuses = [200, 204, 301, 400, 401, 403, 404, 409, 412, 429, 500, 503];
    let server = FakeService::start(move |heard, _| {
        if heard.path == "/token" {
            return token(SECRET, 3599);
        }
        let sent = heard.headers["authorization"].to_str().unwrap();
        let status = heard.path.trim_start_matches("/v1/").parse().unwrap();
        Some((status, json!({"error": {"message": sent, "status": sent, "details": [{"reason": sent}]}}).to_string()))
    })
    .await;
    let tokens = Arc::new(by_key(&dir, &server, AT_ONCE));
    let api = Api::new(server.url(), tokens.clone(), LIMIT).unwrap();
    for status in statuses {
        let answer = api.post::<u8>(&format!("v1/{status}"), &[("a", "b")], &json!({})).await;
        let error = answer.unwrap_err();
        texts += &format!("{error} {error:?} {:?}\n", error.of_kind(error.kind()));
    }
    texts += &format!("{tokens:?} {api:?} {:?} {:?}", tokens.header().await, credentials(tokens.clone()));

    // Answers that are no tokens, or not quite.
    for body in [
        format!("{SECRET:?}"),
        format!(r#"{{"access_token":"{SECRET}\n","expires_in":9}}"#),
        format!(r#"{{"access_token":"{SECRET}","expires_in":"{SECRET}"}}"#),
    ] {
        let server = FakeService::start(move |_, _| Some((200, body.clone()))).await;
        for tokens in [by_key(&dir, &server, AT_ONCE), by_metadata(&server.host(), AT_ONCE)] {
            texts += &format!("{:?} {tokens:?}\n", tokens.header().await.unwrap_err());
        }
    }
    texts += &log.text();
    let key = private_key().lines().nth(1).unwrap();
    assert!(!texts.contains(SECRET) && !texts.contains(&key[..40]), "{texts}");
    assert!(log.text().contains("a new token from"), "{}", log.text());
}
