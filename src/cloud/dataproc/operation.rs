//! Dataproc's long-running operations: what an order is answered with, and how it stands later.

use serde::Deserialize;

use super::failure;
use crate::{
    google::printable,
    ports::{OperationState, PortError},
};

/// Longest name of an operation that is believed.
const NAME_MAX: usize = 512;

/// `google.longrunning.Operation`, as far as it matters here. The cluster in its `response` lacks state and workers.
#[derive(Deserialize)]
pub(super) struct WireOperation {
    name: Option<String>,
    #[serde(default)]
    done: bool,
    error: Option<WireStatus>,
    metadata: Option<WireMetadata>,
}

#[derive(Deserialize)]
struct WireStatus {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct WireMetadata {
    #[serde(default)]
    warnings: Vec<String>,
}

impl WireOperation {
    /// The operation's name, whole: by it is polled.
    ///
    /// # Errors
    /// It has none, so that whether the order was taken is not known.
    pub(super) fn into_name(self) -> Result<String, PortError> {
        let name = self.name.unwrap_or_default();
        if is_name(&name) {
            return Ok(name);
        }
        Err(PortError::transient(format!(
            "Dataproc took an order and named no operation for it: `{}`",
            printable(&name)
        )))
    }

    /// How it stands.
    pub(super) fn state(self, name: &str) -> OperationState {
        let Self { done, error, metadata, .. } = self;
        if !done {
            return OperationState::Running;
        }
        for warning in metadata.map(|metadata| metadata.warnings).unwrap_or_default() {
            tracing::warn!(operation = name, "Dataproc warns: {}", printable(&warning));
        }
        let Some(WireStatus { code, message }) = error else { return OperationState::Done };
        let said = if message.is_empty() { "and does not say why".into() } else { printable(&message) };
        let kind = failure::kind_of_status(code, &message);
        OperationState::Failed(PortError::new(
            kind,
            format!("Dataproc's operation {name} failed (code {code}): {said}"),
        ))
    }
}

/// Whether this may stand in a path.
pub(super) fn is_name(name: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty()
            && !word.starts_with('.')
            && word.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_:".contains(&b))
    };
    name.len() <= NAME_MAX && name.starts_with("projects/") && name.split('/').all(is_word)
}
