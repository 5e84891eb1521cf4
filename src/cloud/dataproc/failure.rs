//! What Dataproc means when it refuses an order, or ends one badly: by its texts where they say more than the code.

use crate::{google::ApiError, ports::ErrorKind};

/// What a text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// Too many requests.
    Rate,
    /// A quota of Compute Engine's is used up.
    Quota,
    /// Compute Engine has no such machines now.
    StockOut,
    /// The cluster is in no state for it.
    State,
}

/// Words that a text has, all of them, and what it then means; the first row that fits decides. Codes do not tell: one
/// of quota and stock-out comes as 400 or 429, or in an operation that began well.
const TEXTS: &[(&[&str], Meaning)] = &[
    (&["Quota exceeded for quota metric"], Meaning::Rate),
    (&["RATE_LIMIT_EXCEEDED"], Meaning::Rate),
    (&["Insufficient '", "' quota"], Meaning::Quota),
    (&["QUOTA_EXCEEDED"], Meaning::Quota),
    (&["Quota '", "' exceeded"], Meaning::Quota),
    (&["ZONE_RESOURCE_POOL_EXHAUSTED"], Meaning::StockOut),
    (&["does not have enough resources available"], Meaning::StockOut),
    // A service that "is currently unavailable" is another matter.
    (&["VM instance", "is currently unavailable"], Meaning::StockOut),
    (&["must be in", "RUNNING state"], Meaning::State),
];

fn meaning(text: &str) -> Option<Meaning> {
    TEXTS.iter().find(|(words, _)| words.iter().all(|word| text.contains(word))).map(|(_, meaning)| *meaning)
}

fn of_meaning(meaning: Meaning, error: Option<&ApiError>) -> ErrorKind {
    match meaning {
        Meaning::Rate => ErrorKind::Throttled { retry_after: error.and_then(|error| error.retry_after) },
        Meaning::Quota => ErrorKind::Quota,
        Meaning::StockOut => ErrorKind::StockOut,
        Meaning::State => ErrorKind::Conflict,
    }
}

/// Of a request that was refused, or not answered.
pub(super) fn kind(error: &ApiError) -> ErrorKind {
    // A text that comes with no status is our own.
    let said = error.status.and_then(|_| meaning(&error.message));
    said.map_or_else(|| error.kind(), |meaning| of_meaning(meaning, Some(error)))
}

/// Of an operation that ended badly: its `google.rpc` code and text.
pub(super) fn kind_of_status(code: i64, text: &str) -> ErrorKind {
    if let Some(meaning) = meaning(text) {
        return of_meaning(meaning, None);
    }
    match code {
        // INVALID_ARGUMENT, OUT_OF_RANGE, UNIMPLEMENTED, DATA_LOSS
        3 | 11 | 12 | 15 => ErrorKind::Permanent,
        // NOT_FOUND
        5 => ErrorKind::NotFound,
        // PERMISSION_DENIED, UNAUTHENTICATED
        7 | 16 => ErrorKind::Denied,
        // RESOURCE_EXHAUSTED
        8 => ErrorKind::Throttled { retry_after: None },
        // ALREADY_EXISTS, FAILED_PRECONDITION, ABORTED
        6 | 9 | 10 => ErrorKind::Conflict,
        // CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE, and what is not known
        _ => ErrorKind::Transient,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const THROTTLED: ErrorKind = ErrorKind::Throttled { retry_after: None };

    fn refused(status: u16, code: &str, message: &str) -> ApiError {
        let body = serde_json::json!({"error": {"code": status, "status": code, "message": message}});
        ApiError::refused("PATCH x", status, None, body.to_string().as_bytes())
    }

    #[test]
    fn a_refusal_has_the_kind_that_its_text_means() {
        let quota = "Insufficient 'NVIDIA_V100_GPUS' quota. Requested 4.0, available 1.0.";
        let many = "Multiple validation errors: - Insufficient 'CPUS' quota. Requested 12.0, available 7.0. - \
                    Insufficient 'CPUS_ALL_REGIONS' quota. Requested 12.0, available 7.0.";
        let rate = "Quota exceeded for quota metric 'Cluster operation requests' and limit 'ClusterOperationRequests \
                    per minute per region' of service 'dataproc.googleapis.com'";
        let gone = "Not found: Cluster projects/p/regions/r/clusters/c";
        let state = "Cluster must be in a RUNNING state to update attributes.";
        for (status, code, message, expected) in [
            (400, "INVALID_ARGUMENT", quota, ErrorKind::Quota),
            (400, "INVALID_ARGUMENT", many, ErrorKind::Quota),
            (429, "RESOURCE_EXHAUSTED", quota, ErrorKind::Quota),
            (403, "PERMISSION_DENIED", "QUOTA_EXCEEDED", ErrorKind::Quota),
            (429, "RESOURCE_EXHAUSTED", rate, THROTTLED),
            (429, "", "", THROTTLED),
            (503, "UNAVAILABLE", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", ErrorKind::StockOut),
            (503, "UNAVAILABLE", "The service is currently unavailable.", ErrorKind::Transient),
            (500, "INTERNAL", "", ErrorKind::Transient),
            (400, "FAILED_PRECONDITION", "not now", ErrorKind::Conflict),
            (400, "INVALID_ARGUMENT", state, ErrorKind::Conflict),
            (409, "ABORTED", "another operation", ErrorKind::Conflict),
            (403, "PERMISSION_DENIED", "not authorized", ErrorKind::Denied),
            (401, "UNAUTHENTICATED", "no credentials", ErrorKind::Denied),
            (404, "NOT_FOUND", gone, ErrorKind::NotFound),
            (400, "INVALID_ARGUMENT", "the number is odd", ErrorKind::Permanent),
            (501, "UNIMPLEMENTED", "", ErrorKind::Transient),
        ] {
            assert_eq!(kind(&refused(status, code, message)), expected, "{status} {code} {message}");
        }
    }

    #[test]
    fn a_rate_limit_says_when_to_come_back() {
        let retry_after = Some(Duration::from_secs(7));
        let body = br#"{"error":{"message":"Quota exceeded for quota metric 'x'"}}"#;
        let error = ApiError::refused("PATCH x", 429, retry_after, body);
        assert_eq!(kind(&error), ErrorKind::Throttled { retry_after });
    }

    #[test]
    fn no_answer_may_pass_whatever_it_says() {
        assert_eq!(kind(&ApiError::unanswered("PATCH x", "QUOTA_EXCEEDED")), ErrorKind::Transient);
    }

    #[test]
    fn an_operation_that_ended_badly_has_the_kind_that_its_text_means() {
        let stock_out =
            "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request.";
        let no_gpu = "A n1-standard-8 VM instance with 1 nvidia-tesla-t4 accelerator(s) is currently unavailable";
        for (code, text, expected) in [
            (13, stock_out, ErrorKind::StockOut),
            (8, no_gpu, ErrorKind::StockOut),
            (3, "ZONE_RESOURCE_POOL_EXHAUSTED", ErrorKind::StockOut),
            (9, "Quota 'NVIDIA_T4_GPUS' exceeded. Limit: 1.0 in region r.", ErrorKind::Quota),
            (3, "Insufficient 'CPUS' quota. Requested 12.0, available 7.0.", ErrorKind::Quota),
            (3, "the number is odd", ErrorKind::Permanent),
            (5, "gone", ErrorKind::NotFound),
            (7, "may not", ErrorKind::Denied),
            (8, "too many", THROTTLED),
            (9, "not now", ErrorKind::Conflict),
            (1, "cancelled", ErrorKind::Transient),
            (4, "an init action took too long", ErrorKind::Transient),
            (99, "", ErrorKind::Transient),
        ] {
            assert_eq!(kind_of_status(code, text), expected, "{code} {text}");
        }
    }
}
