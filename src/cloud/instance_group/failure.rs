//! What Compute Engine's error codes mean: of operations, and of attempts to make a machine.

use serde::Deserialize;

use crate::{
    google::{ApiError, printable},
    ports::{ErrorKind, PortError},
};

/// `{"errors":[{"code":"ZONE_RESOURCE_POOL_EXHAUSTED","message":"…"}]}`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireErrors {
    errors: Vec<WireError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct WireError {
    code: String,
    message: String,
}

/// Longest text of somebody else's that is shown.
const MESSAGE_MAX: usize = 300;

impl WireErrors {
    /// The failure that keeps it from happening longest; `None` where there is none.
    pub(super) fn failure(&self) -> Option<PortError> {
        let worst = self.errors.iter().max_by_key(|error| weight(kind(&error.code)))?;
        let message: String = printable(&worst.message).chars().take(MESSAGE_MAX).collect();
        Some(PortError::new(kind(&worst.code), format!("{}: {message}", worst.code)))
    }
}

/// The kind of failure that a code stands for.
fn kind(code: &str) -> ErrorKind {
    match code {
        // ZONE_…, ZONE_…_WITH_DETAILS, REGION_….
        _ if code.contains("RESOURCE_POOL_EXHAUSTED") => ErrorKind::StockOut,
        "STOCKOUT" | "VM_MIN_COUNT_NOT_REACHED" => ErrorKind::StockOut,
        _ if code.contains("QUOTA") => ErrorKind::Quota,
        "LIMIT_EXCEEDED" => ErrorKind::Quota,
        _ if code.contains("RATE_LIMIT") || code.contains("RATE_EXCEEDED") => {
            ErrorKind::Throttled { retry_after: None }
        }
        "RESOURCE_NOT_FOUND" | "NOT_FOUND" => ErrorKind::NotFound,
        "PERMISSIONS_ERROR" | "PERMISSION_DENIED" | "FORBIDDEN" => ErrorKind::Denied,
        "RESOURCE_NOT_READY" | "RESOURCE_ALREADY_EXISTS" | "CONDITION_NOT_MET" => ErrorKind::Conflict,
        _ if code.starts_with("RESOURCE_IN_USE") => ErrorKind::Conflict,
        "INTERNAL_ERROR" | "BACKEND_ERROR" | "SERVICE_UNAVAILABLE" | "TIMEOUT" | "ABORTED" | "" => ErrorKind::Transient,
        _ => ErrorKind::Permanent,
    }
}

/// Of several errors the one that lasts longest says what to do.
fn weight(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Transient => 0,
        ErrorKind::Throttled { .. } => 1,
        ErrorKind::Conflict => 2,
        ErrorKind::StockOut => 3,
        ErrorKind::Quota => 4,
        ErrorKind::NotFound | ErrorKind::Denied | ErrorKind::Permanent => 5,
    }
}

/// Whether the group's own next attempt may succeed, soon: then the machine is waited for.
pub(super) fn passes_soon(kind: ErrorKind) -> bool {
    weight(kind) <= weight(ErrorKind::Conflict)
}

/// The worst of several failures.
pub(super) fn worst(failures: impl IntoIterator<Item = PortError>) -> Option<PortError> {
    failures.into_iter().max_by_key(|failure| weight(failure.kind))
}

/// A refusal as the controller knows it. Compute Engine says some of it by the reason alone, under status 400.
pub(super) fn refusal(error: &ApiError) -> PortError {
    let said = |words: &[&str]| words.iter().any(|word| error.reason.eq_ignore_ascii_case(word));
    if said(&["resourceNotReady", "resourceInUseByAnotherResource"]) {
        error.of_kind(ErrorKind::Conflict)
    } else {
        error.of_kind(error.kind())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_their_kinds() {
        for (code, expected) in [
            ("ZONE_RESOURCE_POOL_EXHAUSTED", ErrorKind::StockOut),
            ("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ErrorKind::StockOut),
            ("QUOTA_EXCEEDED", ErrorKind::Quota),
            ("RATE_LIMIT_EXCEEDED", ErrorKind::Throttled { retry_after: None }),
            ("RESOURCE_OPERATION_RATE_EXCEEDED", ErrorKind::Throttled { retry_after: None }),
            ("RESOURCE_NOT_FOUND", ErrorKind::NotFound),
            ("PERMISSIONS_ERROR", ErrorKind::Denied),
            ("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", ErrorKind::Conflict),
            ("INTERNAL_ERROR", ErrorKind::Transient),
            ("INVALID_FIELD_VALUE", ErrorKind::Permanent),
        ] {
            assert_eq!(kind(code), expected, "{code}");
        }
    }

    #[test]
    fn of_several_errors_the_one_that_lasts_longest_counts() {
        let errors = r#"{"errors":[{"code":"INTERNAL_ERROR"},{"code":"QUOTA_EXCEEDED","message":"GPUS\u001b_ALL_REGIONS"},{"code":"STOCKOUT"}]}"#;
        let failure = serde_json::from_str::<WireErrors>(errors).unwrap().failure().unwrap();
        assert_eq!((failure.kind, failure.text.as_str()), (ErrorKind::Quota, "QUOTA_EXCEEDED: GPUS _ALL_REGIONS"));
        assert_eq!(WireErrors::default().failure(), None);
    }
}
