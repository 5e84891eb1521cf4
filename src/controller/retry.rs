//! When a failed order may be tried again. The one place that turns kinds of errors into waits.

use std::time::Duration;

use crate::ports::ErrorKind;

/// Most that any failure makes us wait: capacity that ran out once is not gone for ever.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(15 * 60);

/// How long to wait after this kind of failure, the `failures`-th in a row (from 1).
pub(super) fn wait(kind: ErrorKind, failures: u32) -> Duration {
    let first = match kind {
        ErrorKind::Throttled { retry_after: Some(wait) } => return wait.min(WAIT_MAX),
        ErrorKind::Transient | ErrorKind::Throttled { retry_after: None } => Duration::from_secs(5),
        ErrorKind::Conflict => Duration::from_secs(15),
        ErrorKind::StockOut => Duration::from_secs(60),
        ErrorKind::Quota | ErrorKind::Denied | ErrorKind::NotFound | ErrorKind::Permanent => Duration::from_secs(120),
    };
    (first * 2_u32.saturating_pow(failures.saturating_sub(1).min(10))).min(WAIT_MAX)
}

/// Whether the order may have been taken although it failed: then it is given again under the same request id.
pub(super) fn may_have_been_taken(kind: ErrorKind) -> bool {
    match kind {
        ErrorKind::Transient => true,
        ErrorKind::Throttled { .. }
        | ErrorKind::Quota
        | ErrorKind::StockOut
        | ErrorKind::NotFound
        | ErrorKind::Denied
        | ErrorKind::Conflict
        | ErrorKind::Permanent => false,
    }
}

/// Whether this refusal tells that the order is not under way. Of an order that was given before (`again`), whose
/// first answer never came, some refusals speak of the second request only: the first may have been taken.
pub(super) fn was_not_taken(kind: ErrorKind, again: bool) -> bool {
    match kind {
        ErrorKind::Throttled { .. } | ErrorKind::Denied | ErrorKind::Conflict => !again,
        kind => !may_have_been_taken(kind),
    }
}
