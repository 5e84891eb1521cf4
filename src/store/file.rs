//! The state in a local file: one JSON document, one holder, compare-and-swap. Knows nothing of what the state means.
//!
//! The document is `{"generation":7,"holder":{…},"state":{…}}`. The generation grows by one with every save, so a writer
//! that has not seen the last save is refused. Next to it, `<path>.lock` is locked for as long as the holder lives (the
//! kernel lets go of it when the process dies, however it dies) and names the holder; it is never deleted, because
//! two processes could then hold two files of one name.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::document::{self, Holder, Place, STATE_BYTES_MAX, Stated};
use crate::{
    model::State,
    ports::{ErrorKind, PortError, StateStore},
};

/// Longest note of a holder in the lock file.
const HOLDER_BYTES_MAX: u64 = 4 << 10;

/// Only the holder reads it: it tells which machines are about to go.
const MODE: u32 = 0o600;

/// The file as written.
#[derive(Serialize)]
struct Written<'a> {
    generation: u64,
    holder: &'a Holder,
    state: &'a State,
}

/// The file as read. Unknown fields are refused by [`document::parse`].
#[derive(Deserialize)]
struct Document {
    generation: u64,
    #[serde(rename = "holder")]
    _holder: Holder,
    state: State,
}

impl Stated for Document {
    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

/// The state in a file that this process alone holds, until it is dropped or the process ends.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    holder: Holder,
    lock: File,
    /// Of the document that was loaded or saved last; 0: there was none. `None`: not yet loaded.
    generation: Option<u64>,
}

impl FileStore {
    /// Takes hold of the state at `path`, whose folder must exist; the file need not. `now` is noted as the time since
    /// when it is held.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: another process holds it; the text says which. [`ErrorKind::NotFound`]: no such folder.
    /// [`ErrorKind::Denied`]: the folder may not be written.
    pub fn open(path: impl Into<PathBuf>, now: DateTime<Utc>) -> Result<Self, PortError> {
        let path = path.into();
        let holder = Holder::this_process(now);
        let lock = take_lock(&path, &holder)?;
        remove_leftovers(&path);
        Ok(Self { path, holder, lock, generation: None })
    }

    /// The state at `path` without taking hold of it, for a look from outside (`plan`): whole and as last saved, also
    /// while another process holds it. A fresh state where none is kept.
    ///
    /// # Errors
    /// As [`StateStore::load`], less the conflict.
    pub fn peek(path: impl AsRef<Path>) -> Result<State, PortError> {
        Ok(read(path.as_ref())?.map_or_else(State::default, |document| document.state))
    }

    /// Refuses when the file is not the one that we know. The lock keeps our own kind away; this notices everybody
    /// else: an editor, a restored backup, a file system on which locks do nothing.
    fn check_generation(&self, known: u64) -> Result<(), PortError> {
        let stored = read(&self.path)?.map_or(0, |document| document.generation);
        if stored == known {
            return Ok(());
        }
        let text = format!(
            "state file {} has changed under us: generation {known} was expected, it is {stored} (0: no file)",
            self.path.display()
        );
        Err(PortError::new(ErrorKind::Conflict, text))
    }

    /// A new file takes the old one's place in one step; until then the old one is as it was.
    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let mut new = tempfile::Builder::new()
            .prefix(&leftover_prefix(&self.path))
            .suffix(LEFTOVER_SUFFIX)
            .tempfile_in(folder(&self.path))?;
        new.write_all(text)?;
        new.as_file().sync_all()?;
        new.persist(&self.path)?;
        Ok(())
    }
}

impl StateStore for FileStore {
    async fn load(&mut self) -> Result<State, PortError> {
        let (generation, state) = match read(&self.path)? {
            Some(document) => (document.generation, document.state),
            None => (0, State::default()),
        };
        self.generation = Some(generation);
        Ok(state)
    }

    async fn save(&mut self, state: &State) -> Result<(), PortError> {
        let Some(known) = self.generation else {
            return Err(PortError::new(ErrorKind::Permanent, "the state was not loaded before it was saved"));
        };
        let text = document::written(&Written { generation: known + 1, holder: &self.holder, state })?;
        self.check_generation(known)?;
        self.replace(&text).map_err(|error| io_error("write", &self.path, &error))?;
        // From here on the new document is the one that others see, even if it is not yet safe from a power cut.
        self.generation = Some(known + 1);
        File::open(folder(&self.path))
            .and_then(|folder| folder.sync_all())
            .map_err(|error| io_error("sync the folder of", &self.path, &error))
    }
}

impl Drop for FileStore {
    /// Closing would do, but for a child that is just being started: it has a copy of the file until its `exec`.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

fn take_lock(path: &Path, holder: &Holder) -> Result<File, PortError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock_path = PathBuf::from(name);
    let mut lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .open(&lock_path)
        .map_err(|error| io_error("open", &lock_path, &error))?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(held(path, &lock)),
        Err(TryLockError::Error(error)) => return Err(io_error("lock", &lock_path, &error)),
    }
    lock.set_len(0)
        .and_then(|()| lock.write_all(format!("{}\n", serde_json::json!(holder)).as_bytes()))
        .map_err(|error| io_error("write", &lock_path, &error))?;
    Ok(lock)
}

fn held(path: &Path, lock: &File) -> PortError {
    let mut note = String::new();
    let read = lock.take(HOLDER_BYTES_MAX).read_to_string(&mut note);
    let by = match read.ok().and_then(|_| serde_json::from_str::<Holder>(&note).ok()) {
        Some(holder) => holder.to_string(),
        None => "another process that has not left its name yet".into(),
    };
    PortError::new(ErrorKind::Conflict, format!("state file {} is held by {by}", path.display()))
}

/// Reads and checks the document; `None` where there is none.
fn read(path: &Path) -> Result<Option<Document>, PortError> {
    let mut text = Vec::new();
    match File::open(path).and_then(|file| file.take(STATE_BYTES_MAX + 1).read_to_end(&mut text)) {
        Ok(_) if text.len() as u64 > STATE_BYTES_MAX => {
            Err(place(path).malformed(&format!("longer than {STATE_BYTES_MAX} bytes")))
        }
        Ok(_) => document::parse(&place(path), &text).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("read", path, &error)),
    }
}

fn place(path: &Path) -> Place {
    Place { kind: "file", name: path.display().to_string() }
}

pub(super) fn io_error(verb: &str, path: &Path, error: &io::Error) -> PortError {
    let kind = match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::IsADirectory | io::ErrorKind::NotADirectory => ErrorKind::Permanent,
        // A full disk among them: somebody frees space, and the old document is still there.
        _ => ErrorKind::Transient,
    };
    PortError::new(kind, format!("cannot {verb} {}: {error}", path.display()))
}

pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Ends the name of a file that is being written.
const LEFTOVER_SUFFIX: &str = ".tmp";

fn leftover_prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

/// What a process left that died in the middle of a save. Only the holder of the lock may do this.
fn remove_leftovers(path: &Path) {
    let prefix = leftover_prefix(path);
    for entry in fs::read_dir(folder(path)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&prefix) && name.ends_with(LEFTOVER_SUFFIX) {
            // It takes a little room and does no harm otherwise.
            let _ = fs::remove_file(entry.path());
        }
    }
}
