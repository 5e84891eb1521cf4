//! Objects: named bytes with a generation, in a bucket or in a folder. Knows nothing of what is in them.
//!
//! An object is whole or not there. Its generation changes with every write, and a write may demand the generation that
//! its writer has seen: that is all it takes for compare-and-swap between processes and machines.

mod bucket;
mod crc32c;
mod folder;
mod place;

use std::{fmt, sync::Arc};

use bytes::Bytes;

use crate::ports::{ErrorKind, PortError};

pub use bucket::BucketObjects;
pub use crc32c::{crc32c, crc32c_text};
pub use folder::FolderObjects;
pub use place::{AnyObjects, Destination};

/// Most bytes of an object's name, Cloud Storage's limit.
const NAME_BYTES_MAX: usize = 1024;

/// Which writing of an object: another number after every write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub i64);

/// What must be there for a write or a deletion to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing in particular.
    None,
    /// No object of this name.
    Absent,
    /// The object, of this generation.
    Generation(Generation),
}

/// An object as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// All of it.
    pub bytes: Bytes,
    /// Of these bytes.
    pub generation: Generation,
}

/// An object as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Its whole name.
    pub name: String,
    /// In bytes.
    pub size: u64,
    /// Checksum of its bytes; `None` where none is kept (a folder keeps none).
    pub crc32c: Option<u32>,
    /// Its generation.
    pub generation: Generation,
}

/// Told how many bytes of an upload have been handed to the network. After a lost connection the figure goes back.
pub type Sent = Arc<dyn Fn(u64) + Send + Sync>;

/// What is to be written.
#[derive(Clone)]
pub struct Upload {
    /// All of it.
    pub bytes: Bytes,
    /// Its media type.
    pub content_type: &'static str,
    /// Who is told of progress.
    pub sent: Option<Sent>,
}

impl Upload {
    /// A JSON document.
    pub fn json(text: impl Into<Bytes>) -> Self {
        Self { bytes: text.into(), content_type: "application/json", sent: None }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({} bytes, {})", self.bytes.len(), self.content_type)
    }
}

/// Where objects are. Every call ends within a time limit of the implementation's.
///
/// A call that ended without an answer (kind `Transient`) may have been done: whoever must know reads back.
#[expect(async_fn_in_trait, reason = "its users run on one thread: no Send bound is needed")]
pub trait Objects {
    /// An object's address, for people and for manifests: `gs://bucket/name`, or a path.
    fn address(&self, name: &str) -> String;

    /// The object; `None` where there is none.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: it is longer than `limit` bytes. Otherwise what the storage, or the lack of it, said.
    async fn get(&self, name: &str, limit: u64) -> Result<Option<Object>, PortError>;

    /// Writes the object, whole or not at all.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: the precondition does not hold. It may have held for an earlier attempt of this very
    /// call, whose answer was lost: whoever must know reads back.
    async fn put(&self, name: &str, upload: Upload, when: Precondition) -> Result<Generation, PortError>;

    /// The objects whose names begin with `prefix`, by name.
    ///
    /// # Errors
    /// What the storage, or the lack of it, said. [`ErrorKind::Permanent`]: there are too many.
    async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, PortError>;

    /// Deletes the object; one that is not there is no error, unless a generation of it is demanded.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`]: the precondition does not hold.
    async fn delete(&self, name: &str, when: Precondition) -> Result<(), PortError>;
}

/// Whether this may be an object's name, in a bucket and in a folder alike: parts between single slashes, none of them
/// `.` or `..`, without control characters.
///
/// # Errors
/// A sentence that says what would be right.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_odd = |part: &str| part.is_empty() || part == "." || part == ".." || part.starts_with(folder::OUR_FILES);
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!("an object's name has 1 to {NAME_BYTES_MAX} bytes, `{}` has {}", shown(name), name.len()));
    }
    if name.chars().any(char::is_control) {
        return Err(format!("the name `{}` has control characters in it", shown(name)));
    }
    if name.split('/').any(is_odd) {
        return Err(format!("the name `{}` has a part that is empty, `.`, `..` or ours", shown(name)));
    }
    Ok(())
}

fn named(name: &str) -> Result<(), PortError> {
    check_name(name).map_err(|text| PortError::new(ErrorKind::Permanent, text))
}

/// A name for a terminal.
fn shown(name: &str) -> String {
    name.chars().take(80).flat_map(char::escape_debug).collect()
}

fn too_long(address: &str, limit: u64) -> PortError {
    PortError::new(ErrorKind::Permanent, format!("{address} is longer than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn names_are_parts_between_slashes() {
        for (name, right) in [
            ("state.json", true),
            ("a/b c/ü.sh", true),
            ("a..b/...", true),
            ("", false),
            ("/a", false),
            ("a//b", false),
            ("a/", false),
            ("a/../b", false),
            (".", false),
            ("a\nb", false),
            (".objects.lock", false),
        ] {
            assert_eq!(check_name(name).is_ok(), right, "{name}");
        }
        assert!(check_name(&"x".repeat(1025)).is_err());
    }
}
