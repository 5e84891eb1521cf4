//! Where objects are to be, as an operator writes it: `gs://bucket/path`, `file:///folder`, or a folder.

use std::{path::PathBuf, str::FromStr};

use super::{BucketObjects, FolderObjects, Generation, Object, ObjectInfo, Objects, Precondition, Upload, check_name};
use crate::ports::PortError;

/// A place for objects, and the part of their names that is said there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// `gs://bucket[/path]`.
    Bucket {
        /// Its name.
        bucket: String,
        /// What stands after it, without slashes around; may be empty.
        path: String,
    },
    /// `file:///folder`, or a folder's path.
    Folder(PathBuf),
}

impl FromStr for Destination {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix("gs://") {
            let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
            let path = path.strip_suffix('/').unwrap_or(path);
            if !is_bucket(bucket) {
                return Err(format!("`{text}` names no bucket: gs://BUCKET[/PATH] would be right"));
            }
            if !path.is_empty() {
                check_name(path)?;
            }
            return Ok(Self::Bucket { bucket: bucket.into(), path: path.into() });
        }
        let folder = match text.strip_prefix("file://") {
            Some(path) if path.starts_with('/') => path,
            None if !text.contains("://") && !text.is_empty() => text,
            _ => return Err(format!("`{text}` is neither gs://BUCKET[/PATH] nor file:///FOLDER nor a folder")),
        };
        Ok(Self::Folder(folder.into()))
    }
}

/// What Cloud Storage takes for a bucket's name, the finer rules aside.
fn is_bucket(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    (3..=222).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with(['-', '_', '.'])
}

/// Objects of either kind, for whoever has been told which only at run time.
#[derive(Debug)]
pub enum AnyObjects {
    /// In Cloud Storage.
    Bucket(BucketObjects),
    /// On this machine.
    Folder(FolderObjects),
}

impl Objects for AnyObjects {
    fn address(&self, name: &str) -> String {
        match self {
            Self::Bucket(objects) => objects.address(name),
            Self::Folder(objects) => objects.address(name),
        }
    }

    async fn get(&self, name: &str, limit: u64) -> Result<Option<Object>, PortError> {
        match self {
            Self::Bucket(objects) => objects.get(name, limit).await,
            Self::Folder(objects) => objects.get(name, limit).await,
        }
    }

    async fn put(&self, name: &str, upload: Upload, when: Precondition) -> Result<Generation, PortError> {
        match self {
            Self::Bucket(objects) => objects.put(name, upload, when).await,
            Self::Folder(objects) => objects.put(name, upload, when).await,
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, PortError> {
        match self {
            Self::Bucket(objects) => objects.list(prefix).await,
            Self::Folder(objects) => objects.list(prefix).await,
        }
    }

    async fn delete(&self, name: &str, when: Precondition) -> Result<(), PortError> {
        match self {
            Self::Bucket(objects) => objects.delete(name, when).await,
            Self::Folder(objects) => objects.delete(name, when).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_told_from_a_folder() {
        let bucket = |bucket: &str, path: &str| Some(Destination::Bucket { bucket: bucket.into(), path: path.into() });
        let folder = |path: &str| Some(Destination::Folder(path.into()));
        for (text, right) in [
            ("gs://my-bucket", bucket("my-bucket", "")),
            ("gs://my-bucket/", bucket("my-bucket", "")),
            ("gs://my-bucket/a/b/", bucket("my-bucket", "a/b")),
            ("gs://my.bucket_1/state.json", bucket("my.bucket_1", "state.json")),
            ("gs://", None),
            ("gs://My-Bucket", None),
            ("gs://my-bucket//a", None),
            ("gs://my-bucket/a/../b", None),
            ("file:///srv/objects", folder("/srv/objects")),
            ("file://host/srv", None),
            ("out", folder("out")),
            ("s3://bucket", None),
            ("", None),
        ] {
            assert_eq!(text.parse().ok(), right, "{text}");
        }
    }
}
