//! Publishing files: what is in a file names its object, and one manifest, written last, says what belongs together.
//! Knows nothing of what the files are for.
//!
//! Below the destination, `sha256/<sum>/<name>` holds a file's bytes and never changes; `manifest.json` names the objects
//! of the last publication. Whoever reads the manifest finds either the old set or the new one, whole.

mod collect;
mod manifest;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

pub use collect::{Collected, LocalFile, collect};
pub use manifest::{Manifest, Published};

use super::objects::{ObjectInfo, Objects, Precondition, Sent, Upload, check_name, crc32c, crc32c_text};
use crate::ports::{ErrorKind, PortError};

/// What happens to a file, for whoever shows it.
pub trait Watcher {
    /// The file's bytes are about to be uploaded; the answer is told how far it is.
    fn uploading(&self, file: &LocalFile) -> Option<Sent>;
    /// The file is done: uploaded, or there already.
    fn done(&self, file: &LocalFile, fate: Fate);
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its bytes were not there.
    Uploaded,
    /// Its bytes were there already.
    Unchanged,
    /// A dry run: its bytes are not there.
    Missing,
}

/// A publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was published, or would be.
    pub manifest: Manifest,
    /// The manifest's object.
    pub manifest_object: String,
    /// What became of each file, by its path.
    pub fates: BTreeMap<String, Fate>,
    /// Whether the manifest was written, or would be: the last one said something else.
    pub is_new: bool,
}

/// Where to publish.
#[derive(Debug)]
pub struct Target<'a, O> {
    /// The objects.
    pub objects: &'a O,
    /// How the names begin, without a slash at the end; may be empty.
    pub prefix: &'a str,
    /// Nothing is written.
    pub dry_run: bool,
}

impl<O: Objects> Target<'_, O> {
    /// Publishes these files: uploads what is not there, then writes the manifest. Interrupted anywhere, it leaves the old
    /// manifest and whole objects, which the next run skips.
    ///
    /// # Errors
    /// A file cannot be read any more ([`ErrorKind::Permanent`]), or what the storage said. [`ErrorKind::Conflict`]:
    /// somebody else published at the same time; the manifest is theirs.
    pub async fn publish(
        &self,
        files: &[LocalFile],
        now: DateTime<Utc>,
        watcher: &impl Watcher,
    ) -> Result<Outcome, PortError> {
        let there = self.there().await?;
        let (mut published, mut fates) = (BTreeMap::new(), BTreeMap::new());
        for file in files {
            let (entry, fate) = self.file(file, &there, watcher).await?;
            watcher.done(file, fate);
            published.insert(file.path.clone(), entry);
            fates.insert(file.path.clone(), fate);
        }
        let manifest = Manifest::new(now, published);
        let manifest_object = self.name("manifest.json");
        let is_new = self.replace_manifest(&manifest_object, &manifest).await?;
        Ok(Outcome { manifest, manifest_object, fates, is_new })
    }

    fn name(&self, name: &str) -> String {
        if self.prefix.is_empty() { name.into() } else { format!("{}/{name}", self.prefix) }
    }

    /// The objects that are there, by name.
    async fn there(&self) -> Result<BTreeMap<String, ObjectInfo>, PortError> {
        let listed = self.objects.list(&self.name("sha256/")).await?;
        Ok(listed.into_iter().map(|info| (info.name.clone(), info)).collect())
    }

    async fn file(
        &self,
        file: &LocalFile,
        there: &BTreeMap<String, ObjectInfo>,
        watcher: &impl Watcher,
    ) -> Result<(Published, Fate), PortError> {
        // Read once: what is uploaded is what was summed, whoever writes the file meanwhile.
        let bytes = file.read()?;
        let sum = hex(&Sha256::digest(&bytes));
        let object = self.name(&format!("sha256/{sum}/{}", file.name()));
        check_name(&object).map_err(|text| PortError::new(ErrorKind::Permanent, text))?;
        let (size, crc) = (bytes.len() as u64, crc32c(&bytes));
        let entry = Published {
            uri: self.objects.address(&object),
            object: object.clone(),
            size,
            sha256: sum,
            crc32c: crc32c_text(crc),
            content_type: file.content_type().into(),
        };
        if let Some(info) = there.get(&object) {
            return as_named(info, &entry, crc).map(|()| (entry, Fate::Unchanged));
        }
        if self.dry_run {
            return Ok((entry, Fate::Missing));
        }
        let sent = watcher.uploading(file);
        let upload = Upload { bytes: bytes.into(), content_type: file.content_type(), sent };
        match self.objects.put(&object, upload, Precondition::Absent).await {
            Ok(_) => Ok((entry, Fate::Uploaded)),
            // Somebody else's upload of the same bytes, or ours, whose answer was lost.
            Err(error) if error.kind == ErrorKind::Conflict => self.as_expected(&entry, crc).await,
            Err(error) => Err(error),
        }
    }

    async fn as_expected(&self, entry: &Published, crc: u32) -> Result<(Published, Fate), PortError> {
        let listed = self.objects.list(&entry.object).await?;
        let Some(info) = listed.into_iter().find(|info| info.name == entry.object) else {
            return Err(PortError::transient(format!("{} came and went while it was uploaded", entry.uri)));
        };
        as_named(&info, entry, crc).map(|()| (entry.clone(), Fate::Uploaded))
    }

    /// Writes the manifest where it says something new; whether it does.
    async fn replace_manifest(&self, object: &str, manifest: &Manifest) -> Result<bool, PortError> {
        let address = self.objects.address(object);
        let when = match self.objects.get(object, manifest::BYTES_MAX).await? {
            None => Precondition::Absent,
            Some(old) if Manifest::parse(&address, &old.bytes)?.files == manifest.files => return Ok(false),
            Some(old) => Precondition::Generation(old.generation),
        };
        if self.dry_run {
            return Ok(true);
        }
        let text = manifest.text()?;
        match self.objects.put(object, Upload::json(text.clone()), when).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind == ErrorKind::Conflict => {
                // Our own write, whose answer was lost, is none.
                let is_ours = self.objects.get(object, manifest::BYTES_MAX).await?.is_some_and(|now| now.bytes == text);
                let text =
                    format!("{address} was replaced meanwhile: somebody else publishes there, too. Run it again");
                if is_ours { Ok(true) } else { Err(PortError::new(ErrorKind::Conflict, text)) }
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether an object holds what its name says, as far as that shows without reading it.
fn as_named(info: &ObjectInfo, entry: &Published, crc: u32) -> Result<(), PortError> {
    if info.size == entry.size && info.crc32c.is_none_or(|stored| stored == crc) {
        return Ok(());
    }
    let text = format!("{} holds other bytes than its name says: delete it and publish again", entry.uri);
    Err(PortError::new(ErrorKind::Permanent, text))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
