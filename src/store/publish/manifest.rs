//! The manifest: which objects belong together.

use std::collections::BTreeMap;

use chrono::{DateTime, SubsecRound, Utc};
use serde::{Deserialize, Serialize};

use crate::ports::{ErrorKind, PortError};

/// Largest manifest: some ten thousand files.
pub(super) const BYTES_MAX: u64 = 8 << 20;

/// Of the manifest as written here.
const VERSION: u32 = 1;

/// What was published last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Manifest {
    /// Of this document's form.
    pub version: u32,
    /// When.
    pub published_at: DateTime<Utc>,
    /// By which version of this program.
    pub publisher: String,
    /// By the path that each had on the publisher's side.
    pub files: BTreeMap<String, Published>,
}

/// A file that was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Published {
    /// Its object's address: `gs://bucket/name`, or a path.
    pub uri: String,
    /// Its object's name.
    pub object: String,
    /// In bytes.
    pub size: u64,
    /// Of its bytes, in hexadecimal digits.
    pub sha256: String,
    /// Of its bytes, as Cloud Storage writes it.
    pub crc32c: String,
    /// Its media type.
    pub content_type: String,
}

#[derive(Deserialize)]
struct AnyVersion {
    version: u32,
}

impl Manifest {
    pub(super) fn new(now: DateTime<Utc>, files: BTreeMap<String, Published>) -> Self {
        let publisher = concat!("yarn-autoscaler ", env!("CARGO_PKG_VERSION")).into();
        Self { version: VERSION, published_at: now.trunc_subsecs(0), publisher, files }
    }

    pub(super) fn text(&self) -> Result<Vec<u8>, PortError> {
        let mut text = serde_json::to_vec_pretty(self).map_err(|error| {
            PortError::new(ErrorKind::Permanent, format!("the manifest cannot be written: {error}"))
        })?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads the manifest at `address`.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: it is none, or one of a newer form.
    pub fn parse(address: &str, text: &[u8]) -> Result<Self, PortError> {
        let refused = |what: String| {
            let text = format!("{address} {what}: it is left as it is; publish elsewhere, or delete it");
            PortError::new(ErrorKind::Permanent, text)
        };
        let not_ours = |error| refused(format!("is no manifest of yarn-autoscaler ({error})"));
        let AnyVersion { version } = serde_json::from_slice(text).map_err(not_ours)?;
        if version != VERSION {
            return Err(refused(format!("is a manifest of version {version}, this binary knows {VERSION}")));
        }
        serde_json::from_slice(text).map_err(not_ours)
    }
}
