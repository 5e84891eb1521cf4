//! Where a policy or the state is, as written on the command line: a file, an object, or Dataproc.

use std::{fmt, path::PathBuf, str::FromStr};

use crate::store::objects::Destination;

/// A file, or an object in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// A file on this machine.
    File(PathBuf),
    /// `gs://bucket/name`.
    Object(ObjectName),
}

/// A file, an object in a bucket, or a resource of Dataproc's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyPlace {
    /// A file on this machine.
    File(PathBuf),
    /// `gs://bucket/name`.
    Object(ObjectName),
    /// `dataproc:ID`, or `dataproc:` for the one that is attached to the cluster.
    Dataproc(Option<String>),
}

/// An object's name, and its bucket's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// The bucket.
    pub bucket: String,
    /// The whole name within it.
    pub name: String,
}

impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(Destination::Bucket { bucket, path }) if !path.is_empty() && !text.ends_with('/') => {
                Ok(Self { bucket, name: path })
            }
            _ => Err(format!("`{text}` names no object: gs://bucket/path/to/object")),
        }
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gs://{}/{}", self.bucket, self.name)
    }
}

impl FromStr for StatePlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            _ if text.starts_with("gs://") => text.parse().map(Self::Object),
            _ => file(text).map(Self::File),
        }
    }
}

impl FromStr for PolicyPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix("dataproc:") {
            Some("") => Ok(Self::Dataproc(None)),
            Some(id) => Ok(Self::Dataproc(Some(id.into()))),
            None if text.starts_with("gs://") => text.parse().map(Self::Object),
            None => file(text).map(Self::File),
        }
    }
}

/// Another scheme's address is a mistake, and no file's name.
fn file(text: &str) -> Result<PathBuf, String> {
    match text.split_once("://") {
        Some((scheme, _)) => Err(format!("`{scheme}://` is not known here: a file's path, or gs://bucket/name")),
        None if text.is_empty() => Err("the name is empty".into()),
        None => Ok(text.into()),
    }
}

impl fmt::Display for StatePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Object(object) => object.fmt(f),
        }
    }
}

impl fmt::Display for PolicyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Object(object) => object.fmt(f),
            Self::Dataproc(id) => write!(f, "dataproc:{}", id.as_deref().unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_told_by_how_it_begins() {
        let object = || ObjectName { bucket: "my-bucket".into(), name: "a/policy.yaml".into() };
        for (text, right) in [
            ("policy.yaml", Some(PolicyPlace::File("policy.yaml".into()))),
            ("/etc/policy.yaml", Some(PolicyPlace::File("/etc/policy.yaml".into()))),
            ("gs://my-bucket/a/policy.yaml", Some(PolicyPlace::Object(object()))),
            ("dataproc:autoscale_tony", Some(PolicyPlace::Dataproc(Some("autoscale_tony".into())))),
            ("dataproc:", Some(PolicyPlace::Dataproc(None))),
            ("gs://my-bucket", None),
            ("gs://my-bucket/", None),
            ("gs://My-Bucket/a", None),
            ("gs:///a", None),
            ("s3://my-bucket/a", None),
            ("", None),
        ] {
            let place = text.parse::<PolicyPlace>().ok();
            assert_eq!(place, right, "{text}");
            assert!(place.is_none_or(|place| place.to_string() == text));
        }
        assert_eq!("gs://my-bucket/a/policy.yaml".parse(), Ok(StatePlace::Object(object())));
        assert_eq!("state.json".parse(), Ok(StatePlace::File("state.json".into())));
        assert!("file:///state.json".parse::<StatePlace>().is_err());
    }
}
