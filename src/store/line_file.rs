//! A file that lines are appended to: rotated when it is full, and whole again after a torn line. Knows nothing of what
//! is in a line.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::decision_reader::rotated;

/// Logs are read by the operator and by the group that keeps the cluster.
const MODE: u32 = 0o640;

/// Appends lines to a file; rotates it once (`<path>.1`) when it is full. Lines are not synced: a log explains, and
/// what must survive a power cut is in the state.
#[derive(Debug)]
pub(super) struct LineFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    bytes_max: u64,
    /// The file ends in the middle of a line: a crash, or a disk that was full.
    torn: bool,
    failing: bool,
}

impl LineFile {
    /// Opens the file for appending; makes it where there is none. It is rotated before it is larger than `bytes_max`.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub(super) fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let mut file = open_append(&path)?;
        let bytes = file.seek(SeekFrom::End(0))?;
        let torn = bytes > 0 && !ends_a_line(&mut file)?;
        Ok(Self { path, file, bytes, bytes_max, torn, failing: false })
    }

    /// Appends a line, which ends with a newline.
    ///
    /// # Errors
    /// The file cannot be written; the next line is tried anew, on a line of its own.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.bytes > 0 && self.bytes + line.len() as u64 > self.bytes_max {
            self.rotate()?;
        }
        if self.torn {
            self.file.write_all(b"\n")?;
            self.bytes += 1;
        }
        // Until the whole line is out, it counts as torn: a disk may fill up in its middle.
        self.torn = true;
        self.file.write_all(line)?;
        self.torn = false;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Tells in the log, once, that this file cannot be written, and once that it is written again. `written`: whether a
    /// line was, `Ok(false)`: none was due. A log that cannot be written does not stop the loop.
    pub(super) fn report(&mut self, what: &str, written: io::Result<bool>) {
        let path = self.path.display();
        match written {
            Ok(false) => {}
            Ok(true) => {
                if self.failing {
                    tracing::info!("the {what} {path} is written again");
                }
                self.failing = false;
            }
            Err(error) => {
                if !self.failing {
                    tracing::error!("cannot write the {what} {path}: {error}");
                }
                self.failing = true;
            }
        }
    }

    fn rotate(&mut self) -> io::Result<()> {
        fs::rename(&self.path, rotated(&self.path))?;
        self.file = open_append(&self.path)?;
        (self.bytes, self.torn) = (0, false);
        Ok(())
    }
}

fn open_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).mode(MODE).open(path)
}

fn ends_a_line(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
