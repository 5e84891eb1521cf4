//! YARN's exclude file on disk: which hosts are ours in it, and its atomic replacement.
//! Must not know when YARN reads it, nor why a host is excluded.
//!
//! The file belongs to the operator: other people and tools exclude hosts in it, too. Our entries carry a mark, and
//! only what carries it is ever changed or removed. Two formats, told apart as Hadoop does, by the name:
//! `exclude_plain.rs` and, where it ends in `.xml`, `exclude_xml.rs`, which alone can give each host a
//! time-out of its own.

use std::{
    fs::{self, File, Permissions},
    io::{ErrorKind as IoErrorKind, Read, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{exclude_plain, exclude_xml};
use crate::ports::{ErrorKind, PortError};

/// The largest file that is read: a hundred thousand hosts.
const MAX_SIZE: u64 = 16 << 20;
/// How often a change is made anew because somebody else changed the file meanwhile.
const MAX_ATTEMPTS: usize = 3;
/// The mode of a file that we create: YARN runs as another user and must be able to read it.
const NEW_MODE: u32 = 0o644;
/// The word by which an entry is known as ours.
pub(super) const MARK: &str = "yarn-autoscaler";

/// A host that the file excludes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The host, as YARN must call it for the entry to take effect.
    pub host: String,
    /// Whether the entry carries our mark.
    pub ours: bool,
    /// The graceful decommission time-out in seconds that is written beside it (negative: none). YARN honours it in
    /// XML files; in plain files only we know it.
    pub timeout: Option<i64>,
}

/// What became of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Whether the file was written.
    pub changed: bool,
    /// Hosts among those named that somebody else excluded: left as they were.
    pub foreign: Vec<String>,
    /// The longest time-out of all our entries, as the file now stands.
    pub longest: Option<Duration>,
}

/// A file that is not what its name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub text: String,
}

/// What is to change: entries of ours to write (host, seconds), hosts whose entries of ours are to go.
pub(super) struct Edit<'a> {
    pub set: &'a [(&'a str, i64)],
    pub remove: &'a [&'a str],
}

/// The exclude file of a ResourceManager (`yarn.resourcemanager.nodes.exclude-path`).
#[derive(Clone, Debug)]
pub struct ExcludeFile {
    path: PathBuf,
}

impl ExcludeFile {
    /// The file at `path`; it need not exist yet, its directory must.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the format has room for a time-out of each host: only XML has.
    pub fn has_timeouts(&self) -> bool {
        self.path.to_string_lossy().to_lowercase().ends_with(".xml")
    }

    /// Every host that the file excludes, in its order; none where there is no file.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: the file cannot be read, or is malformed (the text names the line).
    pub fn entries(&self) -> Result<Vec<Entry>, PortError> {
        self.parse(&self.read()?.unwrap_or_default())
    }

    /// Excludes these hosts with these time-outs (whole seconds, rounded up). A host that somebody else excluded
    /// already stays theirs.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: as [`Self::entries`], or the file cannot be written (it is as it was then), or a host
    /// is no host name. [`ErrorKind::Conflict`]: somebody else keeps changing it.
    pub fn set(&self, hosts: &[(&str, Duration)]) -> Result<Change, PortError> {
        let set: Vec<_> = hosts.iter().map(|(host, timeout)| (*host, seconds(*timeout))).collect();
        if let Some((host, _)) = hosts.iter().find(|(host, _)| !is_host(host)) {
            return Err(self.failed(&format!("{host:?} is not a host name")));
        }
        self.change(&Edit { set: &set, remove: &[] })
    }

    /// Takes our entries of these hosts out. The file is created where it is missing: YARN refuses to refresh without.
    ///
    /// # Errors
    /// As [`Self::set`].
    pub fn remove(&self, hosts: &[&str]) -> Result<Change, PortError> {
        self.change(&Edit { set: &[], remove: hosts })
    }

    fn change(&self, edit: &Edit<'_>) -> Result<Change, PortError> {
        for _ in 0..MAX_ATTEMPTS {
            let old = self.read()?;
            let before = old.as_deref().unwrap_or_default();
            let named = || edit.set.iter().map(|(host, _)| *host).chain(edit.remove.iter().copied());
            let entries = self.parse(before)?;
            let is_foreign = |host: &str| entries.iter().any(|entry| !entry.ours && entry.host == host);
            let foreign = named().filter(|host| is_foreign(host)).map(str::to_owned).collect();
            let after = self.edited(before, edit)?;
            let entries_after = self.parse(&after)?;
            let theirs = |entries: &[Entry]| entries.iter().filter(|entry| !entry.ours).cloned().collect::<Vec<_>>();
            if theirs(&entries) != theirs(&entries_after) {
                // Cannot be; and if it is, a wrong file costs other people's nodes.
                return Err(
                    self.failed("the change would touch somebody else's entries; this is a bug, nothing is written")
                );
            }
            let longest = longest(&entries_after);
            let changed = old.as_deref() != Some(after.as_str());
            if !changed || self.replace(old.as_deref(), &after)? {
                return Ok(Change { changed, foreign, longest });
            }
        }
        Err(PortError::new(ErrorKind::Conflict, format!("{}: somebody else keeps changing it", self.path.display())))
    }

    fn parse(&self, text: &str) -> Result<Vec<Entry>, PortError> {
        let entries = if self.has_timeouts() { exclude_xml::entries(text) } else { Ok(exclude_plain::entries(text)) };
        entries.map_err(|error| self.malformed(&error))
    }

    fn edited(&self, text: &str, edit: &Edit<'_>) -> Result<String, PortError> {
        let edited =
            if self.has_timeouts() { exclude_xml::edit(text, edit) } else { Ok(exclude_plain::edit(text, edit)) };
        edited.map_err(|error| self.malformed(&error))
    }

    fn read(&self) -> Result<Option<String>, PortError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == IoErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.failed(&format!("cannot be read: {error}"))),
        };
        let mut bytes = Vec::new();
        let read = file.take(MAX_SIZE + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(&format!("cannot be read: {error}")))?;
        if bytes.len() as u64 > MAX_SIZE {
            return Err(self.failed(&format!("larger than {MAX_SIZE} bytes")));
        }
        String::from_utf8(bytes).map(Some).map_err(|error| {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
            self.malformed(&Malformed { line, text: "not UTF-8".into() })
        })
    }

    /// Replaces the file if it is still as it was read; `false` if it is not.
    fn replace(&self, old: Option<&str>, new: &str) -> Result<bool, PortError> {
        // Through a link to what it names: a rename over the link would cut it.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let directory = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if !directory.is_dir() {
            return Err(self.failed(&format!("there is no directory {}", directory.display())));
        }
        let temporary = temporary(directory, &target, new);
        let temporary = temporary.map_err(|error| self.failed(&format!("cannot be written: {error}")))?;
        if self.read()?.as_deref() != old {
            return Ok(false);
        }
        let renamed = temporary.persist(&target).map_err(|error| error.error);
        // The directory as well, or a crash may undo the rename.
        let synced = renamed.and_then(|_| File::open(directory)).and_then(|directory| directory.sync_all());
        synced.map(|()| true).map_err(|error| self.failed(&format!("cannot be written: {error}")))
    }

    fn failed(&self, what: &str) -> PortError {
        PortError::new(ErrorKind::Permanent, format!("exclude file {}: {what}", self.path.display()))
    }

    fn malformed(&self, error: &Malformed) -> PortError {
        let text = format!("exclude file {}:{}: {}; it is left as it is", self.path.display(), error.line, error.text);
        PortError::new(ErrorKind::Permanent, text)
    }
}

/// A file beside the target, on disk, with the target's mode and (where we may) owner.
fn temporary(directory: &Path, target: &Path, text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(".yarn-autoscaler-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    let like = fs::metadata(target).ok();
    let mode = like.as_ref().map_or(NEW_MODE, |like| like.mode() & 0o7777);
    let ours = fs::metadata(file.path())?;
    if let Some(like) = like.filter(|like| (like.uid(), like.gid()) != (ours.uid(), ours.gid())) {
        let given = std::os::unix::fs::chown(file.path(), Some(like.uid()), Some(like.gid()));
        // Only root may give files away. Without that YARN can still read what everybody may read.
        if given.is_err() && mode & 0o004 == 0 {
            return Err(std::io::Error::other("its owner cannot be kept, and YARN could not read it any more"));
        }
    }
    fs::set_permissions(file.path(), Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn longest(entries: &[Entry]) -> Option<Duration> {
    let ours = entries.iter().filter(|entry| entry.ours).filter_map(|entry| entry.timeout);
    ours.max().map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Whole seconds, rounded up; what Java's `int` cannot hold is as long as it can.
pub(super) fn seconds(timeout: Duration) -> i64 {
    let up = timeout.as_secs().saturating_add(u64::from(timeout.subsec_nanos() > 0));
    i32::try_from(up).unwrap_or(i32::MAX).into()
}

/// What may stand in the file: a name, an IPv4 or an IPv6 address, and nothing that either format gives a meaning.
fn is_host(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte))
}
