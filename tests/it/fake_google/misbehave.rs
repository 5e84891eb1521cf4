//! How the fake misbehaves, as a test tells it: which requests, how often, and what is done to them.

use std::time::Duration;

use super::http::{Answer, Request, refusal};

/// What is done to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// 429 that says when to come back, in seconds; nothing is done.
    Throttled(u64),
    /// 503; nothing is done.
    Unavailable,
    /// 503, though the order was taken.
    UnavailableAfter,
    /// 403 with the text of a missing permission; nothing is done.
    Denied(&'static str),
    /// 412; nothing is done.
    PreconditionFailed,
    /// Any refusal: status, canonical code, reason, message; nothing is done.
    Refused(u16, &'static str, &'static str, &'static str),
    /// The connection ends without an answer; nothing is done.
    DroppedBefore,
    /// The connection ends without an answer, though the order was taken.
    DroppedAfter,
    /// The answer comes this much later.
    Delayed(Duration),
    /// No answer, ever; nothing is done.
    Silence,
    /// No answer, ever, though the order was taken.
    SilenceAfter,
    /// 200, and a body that is no JSON; nothing is done.
    Malformed,
    /// Half of the answer's body, then the end of the connection; the order was taken.
    Truncated,
    /// 200 and this body instead of the right one; nothing is done.
    Instead(String),
}

/// Which requests, how often.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `None`: any.
    pub method: Option<&'static str>,
    /// Of the path as sent; `*` stands for anything. It need not match the whole path.
    pub path: String,
    /// How many requests; the rule is gone afterwards.
    pub times: usize,
    pub what: Misbehaviour,
}

impl Rule {
    /// The next request of this method with this in its path.
    pub fn once(method: &'static str, path: &str, what: Misbehaviour) -> Self {
        Self { method: Some(method), path: path.into(), times: 1, what }
    }

    /// The same for so many requests.
    pub fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    fn is_for(&self, request: &Request) -> bool {
        let mut rest = request.path.as_str();
        self.method.is_none_or(|method| method == request.method)
            && self.path.split('*').all(|part| match rest.find(part) {
                Some(at) => {
                    rest = &rest[at + part.len()..];
                    true
                }
                None => false,
            })
    }
}

/// What is to be done to this request; a rule that is used up goes.
pub fn taken(rules: &mut Vec<Rule>, request: &Request) -> Option<Misbehaviour> {
    let at = rules.iter().position(|rule| rule.times > 0 && rule.is_for(request))?;
    rules[at].times -= 1;
    let what = rules[at].what.clone();
    rules.retain(|rule| rule.times > 0);
    Some(what)
}

impl Misbehaviour {
    /// The answer that comes instead of the right one, before anything is done.
    pub fn instead(&self) -> Option<Answer> {
        Some(match self {
            Self::Throttled(seconds) => {
                refusal(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", "Quota exceeded for requests per minute.")
                    .with("retry-after", seconds)
            }
            Self::Unavailable => unavailable(),
            Self::Denied(permission) => {
                let text = format!("Permission '{permission}' denied on resource (or it may not exist).");
                refusal(403, "PERMISSION_DENIED", "forbidden", &text)
            }
            Self::PreconditionFailed => precondition_failed(),
            Self::Refused(status, code, reason, message) => refusal(*status, code, reason, message),
            Self::Malformed => Answer::text("<html>upstream is having a moment</html>"),
            Self::Instead(body) => Answer { body: body.clone().into_bytes(), ..Answer::text("") },
            _ => return None,
        })
    }
}

pub fn unavailable() -> Answer {
    refusal(503, "UNAVAILABLE", "backendError", "The service is currently unavailable.")
}

/// As Cloud Storage says it.
pub fn precondition_failed() -> Answer {
    let text = "At least one of the pre-conditions you specified did not hold.";
    let errors = serde_json::json!([{
        "message": text, "domain": "global", "reason": "conditionNotMet",
        "locationType": "header", "location": "If-Match"
    }]);
    let body = serde_json::json!({"error": {"code": 412, "message": text, "errors": errors}});
    Answer { status: 412, ..Answer::json(&body) }
}
