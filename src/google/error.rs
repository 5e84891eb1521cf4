//! What Google's services say when they refuse.

use std::{fmt, time::Duration};

use serde_json::Value;

use crate::ports::{ErrorKind, PortError};

/// Longest text of somebody else's that is shown.
const MESSAGE_MAX: usize = 600;

/// A request that failed. Holds no token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The request, for people: method and address without its query.
    pub request: String,
    /// The HTTP status; `None`: there was no answer.
    pub status: Option<u16>,
    /// The canonical code, `FAILED_PRECONDITION` …; empty where none was said.
    pub code: String,
    /// The reason of the first detail, `quotaExceeded`, `rateLimitExceeded`, `SERVICE_DISABLED` …; empty where none was
    /// said.
    pub reason: String,
    /// What was said, for people.
    pub message: String,
    /// When to come back, where that was said.
    pub retry_after: Option<Duration>,
    /// The kind where it was known before anything was sent: its place in [`KNOWN`], after its end for a throttled
    /// one. A place and not the kind itself keeps the error below the size from which results should be boxed.
    known: Option<u8>,
}

/// The kinds without a wait.
const KNOWN: [ErrorKind; 7] = [
    ErrorKind::Transient,
    ErrorKind::Quota,
    ErrorKind::StockOut,
    ErrorKind::NotFound,
    ErrorKind::Denied,
    ErrorKind::Conflict,
    ErrorKind::Permanent,
];

impl ApiError {
    /// A request to which no answer came.
    pub fn unanswered(request: &str, why: impl fmt::Display) -> Self {
        Self {
            request: request.into(),
            status: None,
            code: String::new(),
            reason: String::new(),
            message: why.to_string(),
            retry_after: None,
            known: None,
        }
    }

    /// A request that was not sent, as no token was to be had. Of the kinds, only those are kept that say nothing about
    /// the request: it may have been sent before, with a token, and then "there is no such thing" would be understood
    /// as the service's word that nothing came of it.
    pub fn without_token(request: &str, why: &PortError) -> Self {
        let kind = match why.kind {
            ErrorKind::Transient | ErrorKind::Throttled { .. } => why.kind,
            _ => ErrorKind::Denied,
        };
        Self::unsent(request, &PortError { kind, ..why.clone() })
    }

    /// A request that was not sent; its kind is the cause's.
    pub fn unsent(request: &str, why: &PortError) -> Self {
        let retry_after = if let ErrorKind::Throttled { retry_after } = why.kind { retry_after } else { None };
        let known = (0..).zip(KNOWN).find(|(_, kind)| *kind == why.kind).map_or(u8::MAX, |(place, _)| place);
        Self { known: Some(known), retry_after, ..Self::unanswered(request, why) }
    }

    /// A refusal as it came: `{"error":{"code":400,"message":"…","status":"…","errors":[{"reason":"…"}],
    /// "details":[{"reason":"…"},{"retryDelay":"5s"}]}}`, or whatever else the body is.
    pub fn refused(request: &str, status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let body_said = serde_json::from_slice::<Value>(body).unwrap_or_default();
        let error = &body_said["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = |name: &str| error[name].as_array().map(Vec::as_slice).unwrap_or_default();
        let (errors, details) = (items("errors"), items("details"));
        let reason = errors.iter().chain(details).map(|item| text(&item["reason"])).find(|reason| !reason.is_empty());
        let delay = details.iter().find_map(|item| seconds(item["retryDelay"].as_str()?));
        let message = text(&error["message"]);
        let message = if message.is_empty() { String::from_utf8_lossy(body).into_owned() } else { message };
        Self {
            request: request.into(),
            status: Some(status),
            code: text(&error["status"]),
            reason: reason.unwrap_or_default(),
            message: printable(&message),
            retry_after: retry_after.or(delay),
            known: None,
        }
    }

    /// The same for the controller, of this kind.
    pub fn of_kind(&self, kind: ErrorKind) -> PortError {
        PortError::new(kind, self.to_string())
    }

    /// Its kind by status, code and reason alone; what a service means by its texts is the caller's to know.
    pub fn kind(&self) -> ErrorKind {
        let throttled = ErrorKind::Throttled { retry_after: self.retry_after };
        if let Some(known) = self.known {
            return KNOWN.get(usize::from(known)).copied().unwrap_or(throttled);
        }
        match (self.status, self.reason.as_str(), self.code.as_str()) {
            (_, "rateLimitExceeded" | "userRateLimitExceeded" | "RATE_LIMIT_EXCEEDED", _) => throttled,
            // A day's or a project's share: more of the same fails until somebody raises it.
            (_, "quotaExceeded" | "QUOTA_EXCEEDED" | "dailyLimitExceeded", _) => ErrorKind::Quota,
            (_, "ZONE_RESOURCE_POOL_EXHAUSTED" | "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", _) => ErrorKind::StockOut,
            (Some(429), ..) => throttled,
            // A redirect is not the service's: something on the way wants to be asked first.
            (None | Some(300..=399 | 408), ..) => ErrorKind::Transient,
            // 407: the proxy wants to know who we are.
            (Some(401 | 403 | 407), ..) => ErrorKind::Denied,
            (Some(404), ..) => ErrorKind::NotFound,
            (Some(409 | 412), ..) | (_, _, "FAILED_PRECONDITION") => ErrorKind::Conflict,
            (Some(500..), ..) => ErrorKind::Transient,
            _ => ErrorKind::Permanent,
        }
    }
}

/// `5s`, `0.500s`: a duration as Google's JSON has it.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.request)?;
        if let Some(status) = self.status {
            write!(f, "{status} ")?;
        }
        if !self.code.is_empty() {
            write!(f, "{} ", self.code)?;
        }
        f.write_str(if self.message.is_empty() { "(no words)" } else { &self.message })
    }
}

impl std::error::Error for ApiError {}

/// Text of somebody else's, for logs and terminals: one line, of bounded length, without control characters.
pub fn printable(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_MAX).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The error with all that lies under it: reqwest's own text stops at "error sending request".
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(under) = cause {
        text = format!("{text}: {under}");
        cause = under.source();
    }
    text
}
