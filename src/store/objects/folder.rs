//! Objects in a local folder: the twin of a bucket, for labs, tests and machines without a cloud.
//!
//! An object's generation is the time at which its file was written, in nanoseconds, raised where the file system's clock
//! has not moved on since the last write. It belongs to the file and changes with it in one step, however the writer
//! dies; and a file that somebody else edits has another generation, too.

use std::{
    fs::{self, File, FileTimes, OpenOptions, Permissions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tokio::{task::spawn_blocking, time::timeout};

use super::{Generation, Object, ObjectInfo, Objects, Precondition, Upload, named, too_long};
use crate::{
    ports::{ErrorKind, PortError},
    store::file::{folder, io_error},
};

/// How the names of our own files in the folder begin; no object is called so.
pub(super) const OUR_FILES: &str = ".objects.";

/// How long to wait for another process that writes: it writes one file.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// Most objects in a listing.
const LISTED_MAX: usize = 100_000;

/// Deepest folder in a listing: a loop of links ends.
const DEPTH_MAX: usize = 64;

/// Who may read an object is the operator's umask's to say, as it is the bucket's elsewhere.
const MODE: u32 = 0o666;

/// The objects of a folder.
#[derive(Clone, Debug)]
pub struct FolderObjects {
    root: PathBuf,
}

impl FolderObjects {
    /// The objects of this folder, which must exist.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: no such folder. [`ErrorKind::Permanent`]: it is none.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, PortError> {
        let root = root.into();
        let about = fs::metadata(&root).map_err(|error| io_error("open the folder", &root, &error))?;
        if !about.is_dir() {
            return Err(PortError::new(ErrorKind::Permanent, format!("{} is not a folder", root.display())));
        }
        Ok(Self { root })
    }

    fn path(&self, name: &str) -> Result<PathBuf, PortError> {
        named(name)?;
        Ok(self.root.join(name))
    }

    /// Nobody else writes until this is dropped. Writers of other processes wait, as we do, for a limited time: one may
    /// have been stopped in the middle.
    async fn lock(&self) -> Result<File, PortError> {
        let path = self.root.join(format!("{OUR_FILES}lock"));
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = file.map_err(|error| io_error("open", &path, &error))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(io_error("lock", &path, &error)),
        }
        // Given up, the thread waits on; once it has the lock, nobody takes the file, which is closed and so unlocked.
        let waiting = spawn_blocking(move || file.lock().map(|()| file));
        match timeout(LOCK_LIMIT, waiting).await {
            Ok(Ok(locked)) => locked.map_err(|error| io_error("lock", &path, &error)),
            Ok(Err(error)) => Err(PortError::transient(format!("cannot lock {}: {error}", path.display()))),
            Err(_) => {
                let limit = LOCK_LIMIT.as_secs();
                Err(PortError::transient(format!(
                    "{} has been locked by another process for {limit} s",
                    path.display()
                )))
            }
        }
    }

    fn check(&self, name: &str, path: &Path, when: Precondition) -> Result<Option<Generation>, PortError> {
        let stored = generation_at(path)?;
        let holds = match when {
            Precondition::None => true,
            Precondition::Absent => stored.is_none(),
            Precondition::Generation(wanted) => stored == Some(wanted),
        };
        if holds {
            return Ok(stored);
        }
        let text = format!("{} is not as expected: {when:?} was demanded, there is {stored:?}", self.address(name));
        Err(PortError::new(ErrorKind::Conflict, text))
    }

    /// A new file takes the old one's place in one step. Under the lock.
    fn replace(&self, path: &Path, bytes: &[u8], old: Option<Generation>) -> io::Result<Generation> {
        self.clear();
        let parent = folder(path);
        let made = !parent.exists();
        fs::create_dir_all(parent)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(OUR_FILES).permissions(Permissions::from_mode(MODE));
        let mut new = builder.tempfile_in(&self.root)?;
        new.write_all(bytes)?;
        let generation = stamp(new.as_file(), old)?;
        new.as_file().sync_all()?;
        new.persist(path)?;
        File::open(parent)?.sync_all()?;
        if made {
            for above in parent.ancestors().skip(1).take_while(|above| above.starts_with(&self.root)) {
                File::open(above)?.sync_all()?;
            }
        }
        Ok(generation)
    }

    /// What a process left that died in the middle of a write. Under the lock.
    fn clear(&self) {
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with(OUR_FILES) && !name.ends_with("lock") {
                // It takes a little room and does no harm otherwise.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    fn walk(&self, at: &Path, prefix: &str, depth: usize, found: &mut Vec<ObjectInfo>) -> Result<(), PortError> {
        let failed = |error: io::Error| io_error("list", at, &error);
        for entry in fs::read_dir(at).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let Some(name) = path.strip_prefix(&self.root).ok().and_then(Path::to_str) else { continue };
            if named(name).is_err() || !(name.starts_with(prefix) || prefix.starts_with(name)) {
                continue;
            }
            match fs::metadata(&path) {
                Ok(about) if about.is_dir() && depth < DEPTH_MAX => self.walk(&path, prefix, depth + 1, found)?,
                Ok(about) if about.is_file() && name.starts_with(prefix) => {
                    let generation = generation_of(&about).map_err(failed)?;
                    found.push(ObjectInfo { name: name.into(), size: about.len(), crc32c: None, generation });
                }
                Ok(_) => {}
                // Gone since the folder was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
            if found.len() > LISTED_MAX {
                let text = format!("{} holds more than {LISTED_MAX} objects", self.address(prefix));
                return Err(PortError::new(ErrorKind::Permanent, text));
            }
        }
        Ok(())
    }
}

impl Objects for FolderObjects {
    fn address(&self, name: &str) -> String {
        self.root.join(name).display().to_string()
    }

    async fn get(&self, name: &str, limit: u64) -> Result<Option<Object>, PortError> {
        let path = self.path(name)?;
        let failed = |error: io::Error| io_error("read", &path, &error);
        // A pipe would wait for its writer.
        match fs::metadata(&path) {
            Ok(about) if !about.is_file() => return Err(failed(io::Error::other("it is not a regular file"))),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // Of the file that is open, which nobody changes any more: writers put another one in its place.
        let generation = file.metadata().and_then(|about| generation_of(&about)).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > limit {
            return Err(too_long(&self.address(name), limit));
        }
        Ok(Some(Object { bytes: bytes.into(), generation }))
    }

    async fn put(&self, name: &str, upload: Upload, when: Precondition) -> Result<Generation, PortError> {
        let path = self.path(name)?;
        let _lock = self.lock().await?;
        let old = self.check(name, &path, when)?;
        let new = self.replace(&path, &upload.bytes, old).map_err(|error| io_error("write", &path, &error))?;
        if let Some(sent) = upload.sent {
            sent(upload.bytes.len() as u64);
        }
        Ok(new)
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, PortError> {
        let mut found = Vec::new();
        self.walk(&self.root, prefix, 0, &mut found)?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    async fn delete(&self, name: &str, when: Precondition) -> Result<(), PortError> {
        let path = self.path(name)?;
        let _lock = self.lock().await?;
        if self.check(name, &path, when)?.is_none() {
            return Ok(());
        }
        fs::remove_file(&path)
            .and_then(|()| File::open(folder(&path))?.sync_all())
            .map_err(|error| io_error("delete", &path, &error))
    }
}

/// `None`: no such file.
fn generation_at(path: &Path) -> Result<Option<Generation>, PortError> {
    match fs::metadata(path).and_then(|about| generation_of(&about)) {
        Ok(generation) => Ok(Some(generation)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("look at", path, &error)),
    }
}

fn generation_of(about: &fs::Metadata) -> io::Result<Generation> {
    let since = about.modified()?.duration_since(SystemTime::UNIX_EPOCH).map_err(io::Error::other)?;
    i64::try_from(since.as_nanos()).map(Generation).map_err(io::Error::other)
}

/// Gives the new file a time after the old one's.
fn stamp(new: &File, old: Option<Generation>) -> io::Result<Generation> {
    let generation = generation_of(&new.metadata()?)?;
    let Some(old) = old.filter(|old| generation <= *old) else { return Ok(generation) };
    let next = u64::try_from(old.0 + 1).map_err(io::Error::other)?;
    new.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(next)))?;
    let generation = generation_of(&new.metadata()?)?;
    if generation <= old {
        return Err(io::Error::other("the file system keeps no times to the nanosecond, which tell writes apart"));
    }
    Ok(generation)
}
