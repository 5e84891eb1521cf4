//! The policy in a local file: notices that it has changed and hands its text to the loader. Knows nothing of what a
//! policy says.

use std::{
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use chrono::{DateTime, Utc};

use crate::{
    policy::Policy,
    ports::{PolicyChange, PolicySource},
};

/// Largest policy file: a hundred times the largest sensible one, and the wrong file is not read whole.
const POLICY_BYTES_MAX: u64 = 1 << 20;

/// What tells one writing of a file from another without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    /// Follows symbolic links: configuration is often swapped by pointing a link elsewhere.
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        // Reading a pipe would wait for its writer, and the loop with it.
        if !file.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            changed: (file.ctime(), file.ctime_nsec()),
            modified: (file.mtime(), file.mtime_nsec()),
        })
    }
}

/// A policy file that is looked at again and again.
#[derive(Debug)]
pub struct PolicyFile<F> {
    path: PathBuf,
    parse: F,
    force: Arc<AtomicBool>,
    stamp: Option<Stamp>,
    /// The text, or why there is none, that was last reported.
    last: Option<Result<String, String>>,
}

impl<F: Fn(&str, &str) -> Result<Policy, String>> PolicyFile<F> {
    /// The file at `path`; `parse` makes a policy of its text and its name (for messages). Nothing is read yet: the
    /// first `check` does, and reports `New` or `Invalid`. While `force` is true, the next `check` reads the file
    /// however unchanged it looks, reports what it finds and sets `force` back to false.
    pub fn new(path: impl Into<PathBuf>, force: Arc<AtomicBool>, parse: F) -> Self {
        Self { path: path.into(), parse, force, stamp: None, last: None }
    }

    /// Makes the next `check` read the file and report what it finds.
    pub fn force(&self) {
        self.force.store(true, Ordering::Relaxed);
    }

    fn read(&self) -> Result<String, String> {
        let mut text = Vec::new();
        File::open(&self.path)
            .and_then(|file| file.take(POLICY_BYTES_MAX + 1).read_to_end(&mut text))
            .map_err(|error| self.unreadable(&error))?;
        if text.len() as u64 > POLICY_BYTES_MAX {
            return Err(format!("policy file {} is larger than {POLICY_BYTES_MAX} bytes", self.path.display()));
        }
        String::from_utf8(text).map_err(|_| format!("policy file {} is not UTF-8 text", self.path.display()))
    }

    fn unreadable(&self, error: &io::Error) -> String {
        format!("policy file {} cannot be read: {error}", self.path.display())
    }
}

impl<F: Fn(&str, &str) -> Result<Policy, String>> PolicySource for PolicyFile<F> {
    async fn check(&mut self, _now: DateTime<Utc>) -> PolicyChange {
        let forced = self.force.swap(false, Ordering::Relaxed);
        // The stamp is taken before the text: a change in between shows at the next look.
        let stamp = Stamp::of(&self.path);
        let looks_same = stamp.as_ref().is_ok_and(|stamp| self.stamp == Some(*stamp));
        if looks_same && !forced {
            return PolicyChange::Unchanged;
        }
        let text = match &stamp {
            Ok(_) => self.read(),
            Err(error) => Err(self.unreadable(error)),
        };
        // A file that could not be read is read again next time, whatever its stamp.
        self.stamp = stamp.ok().filter(|_| text.is_ok());
        let same = self.last.as_ref() == Some(&text);
        let found = match &text {
            _ if same && !forced => PolicyChange::Unchanged,
            Ok(text) => match (self.parse)(text, &self.path.display().to_string()) {
                Ok(policy) => PolicyChange::New(policy),
                Err(problems) => PolicyChange::Invalid(problems),
            },
            Err(problem) => PolicyChange::Invalid(problem.clone()),
        };
        self.last = Some(text);
        found
    }
}
