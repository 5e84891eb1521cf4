//! What Google's services say when they refuse.

use std::{fmt, time::Duration};

use serde::Deserialize;

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
}

/// `{"error":{"code":400,"message":"…","status":"…","errors":[{"reason":"…"}],"details":[{"reason":"…"}]}}`
#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: Inner,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Inner {
    message: String,
    status: String,
    errors: Vec<Detail>,
    details: Vec<Detail>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Detail {
    reason: String,
}

impl ApiError {
    /// A request to which no answer came.
    pub fn unanswered(request: &str, why: impl fmt::Display) -> Self {
        let message = why.to_string();
        Self {
            request: request.into(),
            status: None,
            code: String::new(),
            reason: String::new(),
            message,
            retry_after: None,
        }
    }

    /// A refusal as it came.
    pub fn refused(request: &str, status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let Inner { message, status: code, errors, details } =
            serde_json::from_slice::<Body>(body).unwrap_or_default().error;
        let reason = errors.into_iter().chain(details).map(|detail| detail.reason).find(|reason| !reason.is_empty());
        let message = if message.is_empty() { String::from_utf8_lossy(body).into_owned() } else { message };
        Self {
            request: request.into(),
            status: Some(status),
            code,
            reason: reason.unwrap_or_default(),
            message: shown(&message),
            retry_after,
        }
    }

    /// The same for the controller, of this kind.
    pub fn of_kind(&self, kind: ErrorKind) -> PortError {
        PortError::new(kind, self.to_string())
    }

    /// Its kind by status, code and reason alone; what a service means by its texts is the caller's to know.
    pub fn kind(&self) -> ErrorKind {
        let throttled = ErrorKind::Throttled { retry_after: self.retry_after };
        match (self.status, self.reason.as_str(), self.code.as_str()) {
            (_, "rateLimitExceeded" | "userRateLimitExceeded" | "RATE_LIMIT_EXCEEDED", _) | (Some(429), ..) => {
                throttled
            }
            (_, "quotaExceeded" | "QUOTA_EXCEEDED", _) => ErrorKind::Quota,
            (None | Some(408), ..) => ErrorKind::Transient,
            (Some(401 | 403), ..) => ErrorKind::Denied,
            (Some(404), ..) => ErrorKind::NotFound,
            (Some(409 | 412), ..) | (_, _, "FAILED_PRECONDITION") => ErrorKind::Conflict,
            (Some(500..), ..) => ErrorKind::Transient,
            _ => ErrorKind::Permanent,
        }
    }
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
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// Text of somebody else's, for logs and terminals: one line, of bounded length, without control characters.
fn shown(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MESSAGE_MAX).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
