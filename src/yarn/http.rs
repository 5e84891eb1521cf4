//! One GET of JSON from a ResourceManager's web port, with limits on time, size and redirects.
//! Must not know what the answer means, nor which ResourceManager is active.

use std::{error::Error as _, time::Duration};

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER},
    redirect::Policy,
};

use crate::ports::{ErrorKind, PortError};

/// Redirects that are followed: a proxy's or a load balancer's, and a standby's to the active one.
const MAX_REDIRECTS: usize = 3;
/// Characters of an unwelcome answer that are quoted.
const MAX_QUOTE: usize = 200;
/// Bytes of an unwelcome answer that are read.
const MAX_QUOTED_BODY: usize = 4096;

/// How long a connection is kept for the next request: within one look, not until the next. One that the other side
/// closes in the moment of its reuse would fail a request for nothing.
const KEEP: Duration = Duration::from_secs(1);

/// Limits of the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// For a connection to come about.
    pub connect: Duration,
    /// Between two pieces of an answer.
    pub read: Duration,
    /// For one call of the port: an observation takes several requests, and all must be done by then.
    pub total: Duration,
    /// For one answer, in bytes. A cluster of 1,000 nodes and 10,000 pending containers stays below 16 MiB.
    pub body: usize,
}

impl Default for Options {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(3), read: seconds(5), total: seconds(10), body: 64 << 20 }
    }
}

/// A body, and who gave it in the end: `scheme://host:port` after all redirects.
#[derive(Debug)]
pub(super) struct Answer {
    pub body: Vec<u8>,
    pub from: String,
    /// The address in words that may be shown.
    pub shown: String,
}

/// A client that follows no redirect unseen and uses no proxy.
#[derive(Clone, Debug)]
pub(super) struct Http {
    client: Client,
    body_limit: usize,
}

impl Http {
    pub fn new(options: &Options) -> Result<Self, PortError> {
        let client = Client::builder()
            .user_agent(concat!("yarn-autoscaler/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(options.connect)
            // The whole is limited by the caller, for all requests of one look together.
            .read_timeout(options.read)
            .pool_idle_timeout(KEEP)
            // The ResourceManager is a neighbour: a proxy meant for the internet must not come between.
            .no_proxy()
            .redirect(Policy::none())
            .build();
        let client =
            client.map_err(|error| PortError::new(ErrorKind::Permanent, format!("no HTTP client: {error}")))?;
        Ok(Self { client, body_limit: options.body })
    }

    /// Gets this JSON document.
    pub async fn get(&self, mut url: Url) -> Result<Answer, PortError> {
        let mut been = Vec::new();
        loop {
            let request = self.client.get(url.clone()).header(ACCEPT, "application/json");
            let response = request.send().await.map_err(|error| broken(&url, &error))?;
            if !response.status().is_redirection() {
                return self.answer(&url, response).await;
            }
            let next = redirected(&url, response).await?;
            been.push(url);
            if been.contains(&next) || been.len() > MAX_REDIRECTS {
                let what = if been.contains(&next) { "a redirect loop" } else { "too many redirects" };
                return Err(PortError::transient(format!("GET {}: {what}, last to {}", shown(&been[0]), shown(&next))));
            }
            url = next;
        }
    }

    async fn answer(&self, url: &Url, response: Response) -> Result<Answer, PortError> {
        if response.status() != StatusCode::OK {
            return Err(refused(url, response).await);
        }
        // A ResourceManager that finds no active one says so in plain text, with status 200.
        if !is_json(response.headers()) {
            let quote = quote(response).await;
            return Err(PortError::transient(format!("GET {}: an answer that is no JSON: {quote}", shown(url))));
        }
        let body = self.body(url, response).await?;
        Ok(Answer { body, from: url.origin().ascii_serialization(), shown: shown(url) })
    }

    async fn body(&self, url: &Url, mut response: Response) -> Result<Vec<u8>, PortError> {
        let limit = self.body_limit;
        let expected = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let mut body = Vec::with_capacity(expected.min(limit));
        while let Some(piece) = response.chunk().await.map_err(|error| broken(url, &error))? {
            if body.len() + piece.len() > limit {
                return Err(PortError::transient(format!("GET {}: an answer of over {limit} bytes", shown(url))));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }
}

/// The address without a user's name and password.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail for addresses that cannot have either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.to_string()
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.to_ascii_lowercase().contains("json")
}

/// Where a redirect leads. A standby that knows no active one says 307 and does not say where to.
async fn redirected(url: &Url, response: Response) -> Result<Url, PortError> {
    let status = response.status();
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    match location.map(|location| url.join(location)) {
        Some(Ok(next)) if matches!(next.scheme(), "http" | "https") => Ok(next),
        Some(_) => Err(PortError::transient(format!("GET {}: {status} to nowhere", shown(url)))),
        None => {
            let quote = quote(response).await;
            Err(PortError::transient(format!("GET {}: {status} without an address: {quote}", shown(url))))
        }
    }
}

async fn refused(url: &Url, response: Response) -> PortError {
    let status = response.status();
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ErrorKind::Denied,
        StatusCode::NOT_FOUND => ErrorKind::NotFound,
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::Throttled { retry_after: retry_after(response.headers()) },
        status if status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT => ErrorKind::Permanent,
        _ => ErrorKind::Transient,
    };
    let quote = quote(response).await;
    PortError::new(kind, format!("GET {}: {status}: {quote}", shown(url)))
}

/// In seconds; the other form, a date, would need a clock and is not used by any server in question.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The beginning of an unwelcome answer, on one line.
async fn quote(mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece[..piece.len().min(MAX_QUOTED_BODY)]);
        if body.len() >= MAX_QUOTED_BODY {
            break;
        }
    }
    let text = String::from_utf8_lossy(&body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).take(MAX_QUOTE).collect();
    if line.is_empty() { "(empty)".into() } else { format!("{line:?}") }
}

/// What went wrong, down to the cause: reqwest's own text says only that something did.
fn broken(url: &Url, error: &reqwest::Error) -> PortError {
    let mut text = format!("GET {}: {}", shown(url), if error.is_timeout() { "no answer in time" } else { "failed" });
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    PortError::transient(text)
}
