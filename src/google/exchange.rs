//! One HTTP exchange within limits of size: what [`Api`](super::Api) and [`Metadata`](super::Metadata) do alike.

use std::time::Duration;

use chrono::DateTime;
use reqwest::{
    Client, ClientBuilder, Response, Url,
    header::{DATE, HeaderMap, RETRY_AFTER},
    redirect,
};
use tokio::time::timeout;

use super::{endpoint::is_loopback, error::causes};
use crate::ports::{ErrorKind, PortError};

/// How long a connection is kept for the next request. Google's front ends keep theirs for minutes.
const KEEP: Duration = Duration::from_secs(30);

/// How long a refusal's words may take after its status, which is known by then.
const WORDS_LIMIT: Duration = Duration::from_secs(1);

/// Most bytes of a refusal's words: what is shown of them is less.
const WORDS_BYTES_MAX: usize = 64 << 10;

/// A client for this address: through the environment's proxy to Google's services, never to this machine.
pub(super) fn client(base: &Url, connect_limit: Duration) -> Result<Client, PortError> {
    let client = direct_or_not(base);
    // A redirect would carry the token elsewhere.
    let client = client.redirect(redirect::Policy::none()).connect_timeout(connect_limit).pool_idle_timeout(KEEP);
    let client = client.user_agent(concat!("yarn-autoscaler/", env!("CARGO_PKG_VERSION")));
    client.build().map_err(|error| PortError::new(ErrorKind::Permanent, format!("no HTTP client: {}", causes(&error))))
}

/// Plain http goes to this machine and to its metadata server: neither is reached through a proxy.
fn direct_or_not(base: &Url) -> ClientBuilder {
    let builder = Client::builder();
    if base.scheme() == "http" || is_loopback(base) { builder.no_proxy() } else { builder }
}

/// The whole body, or why not.
pub(super) async fn body(answer: &mut Response, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| causes(&error.without_url()))? {
        if bytes.len() + chunk.len() > most {
            return Err(format!("its answer is longer than {most} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The beginning of a refusal's body, as far as it comes soon: the status tells more than the rest of the words.
pub(super) async fn words(answer: &mut Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = answer.chunk().await {
            bytes.extend_from_slice(&chunk[..chunk.len().min(WORDS_BYTES_MAX - bytes.len())]);
            if bytes.len() == WORDS_BYTES_MAX {
                break;
            }
        }
    };
    // What has come by then is what is shown.
    let _ = timeout(WORDS_LIMIT, read).await;
    bytes
}

/// Seconds, or a date: against the answer's own date, so that no clock of ours has to be right.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let said = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = said.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let sent = DateTime::parse_from_rfc2822(headers.get(DATE)?.to_str().ok()?).ok()?;
    let wait = DateTime::parse_from_rfc2822(said).ok()? - sent;
    Some(wait.to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_to_come_back_is_told_in_seconds_or_by_a_date() {
        let date = "Sat, 21 Nov 2026 12:00:00 GMT";
        for (said, date, wait) in [
            ("7", "", Some(7)),
            (" 0 ", "", Some(0)),
            ("Sat, 21 Nov 2026 12:01:30 GMT", date, Some(90)),
            ("Sat, 21 Nov 2026 11:00:00 GMT", date, Some(0)),
            ("Sat, 21 Nov 2026 12:01:30 GMT", "", None),
            ("soon", date, None),
            ("-3", date, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, said.parse().unwrap());
            if !date.is_empty() {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers), wait.map(Duration::from_secs), "{said}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
