//! What the documents of all state stores have in common: who holds one, how it is written, how one of any version is
//! read. Knows nothing of where it is kept.

use std::fmt;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    model::{STATE_VERSION, STATE_VERSION_OLDEST, State},
    ports::{ErrorKind, PortError},
};

/// Largest document: a thousand workers that drain at once need a thirtieth of it, and a wrong file is not read whole.
pub(super) const STATE_BYTES_MAX: u64 = 16 << 20;

/// Who holds the state, for the one that cannot have it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) host: String,
    pub(super) since: DateTime<Utc>,
    /// The binary's version.
    pub(super) version: String,
}

impl Holder {
    /// This process, from `since` on.
    pub(super) fn this_process(since: DateTime<Utc>) -> Self {
        Self {
            pid: std::process::id(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            since,
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, host, since, version } = self;
        let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
        write!(f, "pid {pid} on host {host} since {since} (yarn-autoscaler {version})")
    }
}

/// Where a document is, for people.
pub(super) struct Place {
    /// `file` or `object`.
    pub(super) kind: &'static str,
    pub(super) name: String,
}

impl Place {
    /// What is there is no state.
    pub(super) fn malformed(&self, what: &str) -> PortError {
        let Self { kind, .. } = self;
        let text = format!(
            "{self}: {what}. Move the {kind} away to start anew: nodes and machines are described afresh; \
             the cooldown, orders under way and drains under way are forgotten"
        );
        PortError::new(ErrorKind::Permanent, text)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "state {} {}", self.kind, self.name)
    }
}

/// A document that holds a state.
pub(super) trait Stated: DeserializeOwned {
    fn state_mut(&mut self) -> &mut State;
}

/// The one thing that is read from a document of any version.
#[derive(Deserialize)]
struct AnyVersion {
    state: AnyVersionState,
}

#[derive(Deserialize)]
struct AnyVersionState {
    version: u32,
}

/// A document's text.
pub(super) fn written(document: &impl Serialize) -> Result<Vec<u8>, PortError> {
    let mut text = serde_json::to_vec_pretty(document)
        .map_err(|error| PortError::new(ErrorKind::Permanent, format!("the state cannot be written: {error}")))?;
    text.push(b'\n');
    if text.len() as u64 > STATE_BYTES_MAX {
        let text = format!("the state is {} bytes long, {STATE_BYTES_MAX} are the limit", text.len());
        return Err(PortError::new(ErrorKind::Permanent, text));
    }
    Ok(text)
}

/// The version is looked at before anything else, so that a newer document is called newer and not malformed. Every
/// change of the document raises the version: an unknown field in a known version is no state of ours, and reading on
/// would lose it with the next save.
pub(super) fn parse<D: Stated>(place: &Place, text: &[u8]) -> Result<D, PortError> {
    let malformed = |error: serde_json::Error| place.malformed(&error.to_string());
    let AnyVersion { state: AnyVersionState { version } } = serde_json::from_slice(text).map_err(malformed)?;
    if version > STATE_VERSION {
        let text = format!(
            "{place} was written by a newer yarn-autoscaler (state version {version}, this binary knows \
             {STATE_VERSION}): run that one, or move the {} away",
            place.kind
        );
        return Err(PortError::new(ErrorKind::Permanent, text));
    }
    if version < STATE_VERSION_OLDEST {
        let known = format!("{STATE_VERSION_OLDEST} to {STATE_VERSION}");
        return Err(place.malformed(&format!("state version {version}; this binary knows {known}")));
    }
    let mut unknown = None;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut document: D =
        serde_ignored::deserialize(&mut deserializer, |field| unknown = Some(field.to_string())).map_err(malformed)?;
    document.state_mut().version = STATE_VERSION;
    match unknown {
        Some(field) => Err(place.malformed(&format!("unknown field `{field}`"))),
        None => Ok(document),
    }
}
