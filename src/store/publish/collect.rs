//! Which files are meant by the paths that somebody names.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::ports::{ErrorKind, PortError};

/// Largest file. It is read into memory, and this is many times what is meant to be published.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Most files.
const FILES_MAX: usize = 10_000;

/// A file to publish.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalFile {
    /// What the manifest calls it: the name of what was named on the command line, and the way from there.
    pub path: String,
    /// Where it is.
    pub source: PathBuf,
    /// In bytes, when it was looked for.
    pub size: u64,
}

/// The files that are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// By their paths.
    pub files: Vec<LocalFile>,
    /// What was left out in folders: names that begin with a dot.
    pub hidden: Vec<PathBuf>,
}

impl LocalFile {
    /// Its own name, without the way to it.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// By its name: what a browser or a reader of the bucket is told.
    pub fn content_type(&self) -> &'static str {
        let extension = self.name().rsplit_once('.').map_or("", |(_, extension)| extension);
        match extension {
            "sh" => "text/x-shellscript",
            "py" => "text/x-python",
            "yaml" | "yml" => "application/yaml",
            "json" => "application/json",
            "xml" => "application/xml",
            "md" => "text/markdown",
            "txt" | "conf" | "properties" | "service" => "text/plain",
            _ => "application/octet-stream",
        }
    }

    pub(super) fn read(&self) -> Result<Vec<u8>, PortError> {
        let mut bytes = Vec::new();
        File::open(&self.source)
            .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
            .map_err(|error| PortError::new(ErrorKind::Permanent, cannot_read(&self.source, &error)))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(PortError::new(ErrorKind::Permanent, too_large(&self.source)));
        }
        Ok(bytes)
    }
}

/// The files at these paths: a file as it is, a folder with all below it. Links are followed.
///
/// # Errors
/// A sentence that names the path: it is not there, is neither file nor folder, leads to itself, has a name that does not
/// fit into an address, or two files would be called the same.
pub fn collect(paths: &[PathBuf]) -> Result<Collected, String> {
    let mut search = Search::default();
    for path in paths {
        search.visit(path, &name_of(path)?, &mut Vec::new())?;
    }
    let Search { files, hidden } = search;
    Ok(Collected { files: files.into_values().collect(), hidden })
}

#[derive(Default)]
struct Search {
    files: BTreeMap<String, LocalFile>,
    hidden: Vec<PathBuf>,
}

impl Search {
    /// `above` are the folders on the way, by device and number.
    fn visit(&mut self, source: &Path, path: &str, above: &mut Vec<(u64, u64)>) -> Result<(), String> {
        let about = fs::metadata(source).map_err(|error| cannot_read(source, &error))?;
        if about.is_dir() {
            let here = (about.dev(), about.ino());
            if above.contains(&here) {
                return Err(format!("{} leads back to a folder that it is in: remove that link", source.display()));
            }
            above.push(here);
            self.folder(source, path, above)?;
            above.pop();
            return Ok(());
        }
        if !about.is_file() {
            return Err(format!("{} is neither a file nor a folder", source.display()));
        }
        if about.len() > FILE_BYTES_MAX {
            return Err(too_large(source));
        }
        // A file that may not be read is told before anything is uploaded.
        File::open(source).map_err(|error| cannot_read(source, &error))?;
        let file = LocalFile { path: path.into(), source: source.into(), size: about.len() };
        match self.files.insert(path.into(), file) {
            Some(other) if other.source != source => {
                let (one, two) = (other.source.display(), source.display());
                Err(format!("{one} and {two} would both be called {path}: rename one, or name the folder above it"))
            }
            _ if self.files.len() > FILES_MAX => Err(format!("more than {FILES_MAX} files: name fewer")),
            _ => Ok(()),
        }
    }

    fn folder(&mut self, source: &Path, path: &str, above: &mut Vec<(u64, u64)>) -> Result<(), String> {
        let entries = fs::read_dir(source).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries: Vec<_> = entries.map_err(|error| cannot_read(source, &error))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            // Version control, editors, keys: nobody means them by naming the folder.
            if entry.file_name().to_string_lossy().starts_with('.') {
                self.hidden.push(entry.path());
                continue;
            }
            let name = plain(&entry.path(), entry.file_name().to_str())?;
            self.visit(&entry.path(), &format!("{path}/{name}"), above)?;
        }
        Ok(())
    }
}

/// The last part of a path as named; of `.` and `..`, the folder's real name.
fn name_of(path: &Path) -> Result<String, String> {
    let real = path.canonicalize().map_err(|error| cannot_read(path, &error))?;
    let name = path.file_name().or_else(|| real.file_name());
    plain(path, name.and_then(|name| name.to_str()))
}

/// A name that needs no quoting in an address, in a shell, and in a list of init actions.
fn plain(path: &Path, name: Option<&str>) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+=@".contains(c);
    match name {
        Some(name) if !name.is_empty() && name.chars().all(is_plain) => Ok(name.into()),
        _ => Err(format!("{:?} cannot be published: a name has letters, digits and any of . _ - + = @", path)),
    }
}

fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}

fn too_large(path: &Path) -> String {
    format!("{} is larger than {FILE_BYTES_MAX} bytes", path.display())
}
