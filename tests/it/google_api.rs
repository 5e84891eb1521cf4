//! Requests to Google's services: what refusals mean, and answers that are late, broken, huge or none.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use reqwest::Url;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use yarn_autoscaler::{
    google::{Api, ApiError, Tokens, path_part},
    ports::{ErrorKind, PortError},
};

use crate::{
    fake_http::{FakeHttp, Reply},
    fake_service::FakeService,
};

/// Where no limit is to be met, so that a busy machine spoils no test.
const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(300);

fn api(url: Url, limit: Duration) -> Api {
    Api::new(url, Arc::new(Tokens::anonymous()), limit).unwrap()
}

async fn answered(reply: Reply, limit: Duration) -> Result<Value, ApiError> {
    let server = FakeHttp::start(move |_| reply.clone()).await;
    api(server.url(), limit).get("v1/projects/p", &[]).await
}

/// `errors[].reason`, the canonical code, `details`.
fn body(status: u16, reason: &str, code: &str, details: &Value) -> String {
    let errors = json!([{"message": "words", "domain": "global", "reason": reason}]);
    json!({"error": {"code": status, "message": "words", "status": code, "errors": errors, "details": details}})
        .to_string()
}

const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

fn throttled(seconds: u64) -> ErrorKind {
    ErrorKind::Throttled { retry_after: Some(Duration::from_secs(seconds)) }
}

#[test]
fn each_refusal_is_of_a_kind() {
    let info = |reason: &str| json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}]);
    let delay = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"}]);
    let none = json!([]);
    for (status, reason, code, details, kind) in [
        (429, "", "RESOURCE_EXHAUSTED", info("RATE_LIMIT_EXCEEDED"), THROTTLED),
        (429, "", "RESOURCE_EXHAUSTED", none.clone(), THROTTLED),
        (429, "", "RESOURCE_EXHAUSTED", delay, throttled(30)),
        (429, "rateLimitExceeded", "", none.clone(), THROTTLED),
        (403, "rateLimitExceeded", "", none.clone(), THROTTLED),
        (403, "userRateLimitExceeded", "", none.clone(), THROTTLED),
        (403, "quotaExceeded", "", none.clone(), ErrorKind::Quota),
        (403, "dailyLimitExceeded", "", none.clone(), ErrorKind::Quota),
        (403, "accessNotConfigured", "PERMISSION_DENIED", info("SERVICE_DISABLED"), ErrorKind::Denied),
        (403, "forbidden", "PERMISSION_DENIED", info("IAM_PERMISSION_DENIED"), ErrorKind::Denied),
        (401, "authError", "UNAUTHENTICATED", info("ACCESS_TOKEN_EXPIRED"), ErrorKind::Denied),
        (404, "notFound", "NOT_FOUND", none.clone(), ErrorKind::NotFound),
        (409, "alreadyExists", "ALREADY_EXISTS", none.clone(), ErrorKind::Conflict),
        (412, "conditionNotMet", "", none.clone(), ErrorKind::Conflict),
        (400, "failedPrecondition", "FAILED_PRECONDITION", none.clone(), ErrorKind::Conflict),
        (400, "invalid", "INVALID_ARGUMENT", none.clone(), ErrorKind::Permanent),
        (408, "", "", none.clone(), ErrorKind::Transient),
        (500, "backendError", "INTERNAL", none.clone(), ErrorKind::Transient),
        (503, "", "UNAVAILABLE", none.clone(), ErrorKind::Transient),
        (503, "", "", info("ZONE_RESOURCE_POOL_EXHAUSTED"), ErrorKind::StockOut),
        (307, "", "", none.clone(), ErrorKind::Transient),
        (407, "", "", none.clone(), ErrorKind::Denied),
    ] {
        let error = ApiError::refused("GET x", status, None, body(status, reason, code, &details).as_bytes());
        assert_eq!((error.kind(), error.message.as_str()), (kind, "words"), "{status} {reason} {code} {details}");
    }
}

#[test]
fn a_refusal_in_any_form_is_told_in_one_bounded_line() {
    let long = "x".repeat(100_000);
    let (oauth, text) =
        (r#"{"error":"invalid_grant","error_description":"gone"}"#, r#"{"error":{"message":"\u001b[2Jm\n2"}}"#);
    for (status, body, want) in [
        (502, "<html>\n<title>502</title>\n</html>", "GET x: 502 <html> <title>502</title> </html>"),
        (503, "", "GET x: 503 (no words)"),
        (400, oauth, &format!("GET x: 400 {oauth}")),
        (403, text, "GET x: 403 [2Jm 2"),
        (403, "null", "GET x: 403 null"),
        (
            500,
            r#"{"error":{"code":500,"message":7,"status":[],"errors":{},"details":[1,{"reason":2}]}}"#,
            "GET x: 500 ",
        ),
        (500, &long, &format!("GET x: 500 {}", &long[..600])),
    ] {
        let error = ApiError::refused("GET x", status, None, body.as_bytes()).to_string();
        assert!(error.starts_with(want) && error.len() < 700 && !error.contains(char::is_control), "{error}");
    }
    let error = ApiError::refused("GET x", 500, None, b"\xff\x00");
    assert_eq!(error.kind(), ErrorKind::Transient);
}

#[test]
fn a_request_that_was_not_sent_is_of_its_causes_kind() {
    let waits = throttled(9);
    let plain = [ErrorKind::Transient, ErrorKind::Quota, ErrorKind::StockOut, ErrorKind::NotFound, ErrorKind::Denied];
    for kind in plain.into_iter().chain([ErrorKind::Conflict, ErrorKind::Permanent, waits, THROTTLED]) {
        assert_eq!(ApiError::unsent("GET x", &PortError::new(kind, "no token")).kind(), kind);
        let without_token = ApiError::without_token("GET x", &PortError::new(kind, "no token")).kind();
        let may_pass = matches!(kind, ErrorKind::Transient | ErrorKind::Throttled { .. });
        // Any other kind would say of an order that was given before that nothing came of it.
        assert_eq!(without_token, if may_pass { kind } else { ErrorKind::Denied });
    }
}

#[tokio::test]
async fn when_to_come_back_is_read_from_the_answer() {
    let refusal = |headers: &str| Reply::new("429 Too Many Requests", headers, "{}");
    let error = answered(refusal("Retry-After: 7\r\n"), LONG).await.unwrap_err();
    assert_eq!(error.kind(), throttled(7));
    let dates = "Date: Sat, 21 Nov 2026 12:00:00 GMT\r\nRetry-After: Sat, 21 Nov 2026 12:01:00 GMT\r\n";
    assert_eq!(answered(refusal(dates), LONG).await.unwrap_err().kind(), throttled(60));
}

#[tokio::test]
async fn silence_and_drips_end_in_time() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n";
    for reply in [Reply::Silence, Reply::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec()), Reply::Drip(head.into())] {
        let began = Instant::now();
        let error = answered(reply, SHORT).await.unwrap_err();
        assert!(began.elapsed() < LONG);
        assert_eq!(error.kind(), ErrorKind::Transient);
        assert!(error.to_string().contains("/v1/projects/p: no answer within 0.3 s"), "{error}");
    }
    // The status is known; the rest of the words is not waited for.
    let head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 1000000\r\n\r\nbecause";
    let error = answered(Reply::Drip(head.into()), LONG).await.unwrap_err();
    assert_eq!((error.kind(), error.message.trim()), (ErrorKind::Denied, "because"));
}

#[tokio::test]
async fn answers_that_make_no_sense_are_errors_that_may_pass() {
    let huge = format!("\"{}\"", "x".repeat(17 << 20));
    for (reply, words) in [
        (Reply::json(""), "its answer is not understood"),
        (Reply::json("<html>"), "its answer is not understood"),
        (Reply::json("{\"a\":"), "its answer is not understood"),
        (Reply::json(&huge), "longer than 16777216 bytes"),
        (Reply::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{".to_vec()), "v1/projects/p: "),
        (Reply::Bytes(Vec::new()), "v1/projects/p: "),
        (Reply::Bytes(b"gibberish\r\n\r\n".to_vec()), "v1/projects/p: "),
    ] {
        let error = answered(reply, LONG).await.unwrap_err();
        assert_eq!((error.kind(), error.status), (ErrorKind::Transient, None), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
    let error = answered(Reply::new("500 Internal Server Error", "", &huge), LONG).await.unwrap_err();
    assert!(error.status == Some(500) && error.message.len() == 600, "{error}");
    let nobody = api("http://127.0.0.1:1/".parse().unwrap(), LONG).get::<Value>("v1/x", &[]).await.unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::Transient, "{nobody}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = FakeHttp::start(|_| Reply::json("{}")).await;
    let error = answered(Reply::redirect(elsewhere.url().as_str()), LONG).await.unwrap_err();
    assert_eq!((error.status, elsewhere.requests().len()), (Some(307), 0));
}

#[tokio::test]
async fn requests_are_sent_as_they_are_meant() {
    let server = FakeService::start(|_, _| Some((200, r#"{"a":1}"#.into()))).await;
    let api = api(server.url().join("prefix/").unwrap(), LONG);
    api.get::<Value>("v1/c", &[("filter", "a = b&c"), ("x", "y")]).await.unwrap();
    api.post::<Value>("v1/c:repair", &[], &json!({"n": 1})).await.unwrap();
    api.patch::<Value>("v1/c", &[("updateMask", "a.b,c")], &json!({})).await.unwrap();
    let heard = server.heard();
    let line = |n: usize| (heard[n].method.as_str(), heard[n].path.as_str(), heard[n].body.as_str());
    assert_eq!(line(0), ("GET", "/prefix/v1/c?filter=a+%3D+b%26c&x=y", ""));
    assert_eq!(line(1), ("POST", "/prefix/v1/c:repair", r#"{"n":1}"#));
    assert_eq!(line(2), ("PATCH", "/prefix/v1/c?updateMask=a.b%2Cc", "{}"));
    assert_eq!(heard[1].headers["content-type"], "application/json");
    assert!(heard[0].headers["user-agent"].to_str().unwrap().starts_with("yarn-autoscaler/"));
    assert!(heard.iter().all(|heard| !heard.headers.contains_key("authorization")));
}

#[tokio::test]
async fn no_path_leads_away_from_the_service() {
    let server = FakeService::start(|_, _| Some((200, "{}".into()))).await;
    let api = api(server.url().join("prefix/").unwrap(), LONG);
    for path in
        ["/v1/x", "//evil.example/x", "https://evil.example/x", "../x", "v1/../x", "v1/%2e%2E/x", "v1/x?a", "v1/x#a"]
    {
        let error = api.get::<Value>(path, &[]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Permanent, "{path}: {error}");
    }
    assert!(server.heard().is_empty());
    for (text, part) in [
        ("gpu1-m.x_y~z", "gpu1-m.x_y~z"),
        ("a/b?c#d e%", "a%2Fb%3Fc%23d%20e%25"),
        ("é", "%C3%A9"),
        ("a@b:c+", "a%40b%3Ac%2B"),
    ] {
        assert_eq!(path_part(text), part);
        api.get::<Value>(&format!("v1/{}", path_part(text)), &[]).await.unwrap();
        assert_eq!(server.heard().last().unwrap().path, format!("/prefix/v1/{part}"));
    }
}

/// The first connection answers once, and closes in the moment of its reuse; the others answer. Counts requests.
async fn closes_at_reuse() -> (Url, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        let mut is_first = true;
        while let Ok((stream, _)) = listener.accept().await {
            let answers = if std::mem::take(&mut is_first) { 1 } else { usize::MAX };
            tokio::spawn(keep_alive(stream, answers, counted.clone()));
        }
    });
    (url, count)
}

async fn keep_alive(mut stream: TcpStream, answers: usize, count: Arc<AtomicUsize>) {
    for answered in 0.. {
        let mut head = Vec::new();
        // The body of these requests, where there is one, is `{}`.
        while !head.ends_with(b"\r\n\r\n") && !head.ends_with(b"\r\n\r\n{}") {
            let Ok(byte) = stream.read_u8().await else { return };
            head.push(byte);
        }
        count.fetch_add(1, Ordering::SeqCst);
        if answered == answers {
            return;
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
    }
}

#[tokio::test]
async fn a_connection_that_closes_in_the_moment_of_its_reuse_fails_no_read() {
    let (url, count) = closes_at_reuse().await;
    let reads = api(url, LONG);
    reads.get::<Value>("v1/x", &[]).await.unwrap();
    reads.get::<Value>("v1/x", &[]).await.unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 3);

    // What is no read may have been carried out: whoever sent it decides.
    let (url, count) = closes_at_reuse().await;
    let writes = api(url, LONG);
    writes.get::<Value>("v1/x", &[]).await.unwrap();
    let error = writes.post::<Value>("v1/x", &[], &json!({})).await.unwrap_err();
    assert_eq!((error.kind(), count.load(Ordering::SeqCst)), (ErrorKind::Transient, 2), "{error}");
}

/// What a child is told to ask by this variable is asked by the same test.
const CHILD: &str = "YARN_AUTOSCALER_TEST_ADDRESS";

#[tokio::test]
async fn this_machine_is_not_reached_through_a_proxy() {
    if let Ok(address) = std::env::var(CHILD) {
        api(address.parse().unwrap(), LONG).get::<Value>("v1/x", &[]).await.unwrap();
        return;
    }
    let server = FakeHttp::start(|_| Reply::json("{}")).await;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "google_api::this_machine_is_not_reached_through_a_proxy"]);
    command.env(CHILD, server.url().as_str()).env_remove("NO_PROXY").env_remove("no_proxy");
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, "http://127.0.0.1:1");
    }
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(server.requests().len(), 1);
}
