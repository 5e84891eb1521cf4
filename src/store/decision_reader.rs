//! Reads a decision log back: line by line, naming the lines that are no records and going on. Knows no tick.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::decision_log::Record;

/// Longest line that is looked at: records are some 500 bytes, and a file that is no log at all may have no line end.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Most bad lines that are named: a file that is no log has nothing else.
const BAD_LINES_MAX: usize = 100;

/// A decision log as read.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The records, oldest first.
    pub records: Vec<Record>,
    /// The first hundred lines that are no records. The last line of a log may be torn by a crash.
    pub bad_lines: Vec<BadLine>,
}

/// A line that is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLine {
    /// Its file.
    pub file: PathBuf,
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

/// Where the older half of the log at `path` is.
pub fn rotated(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

impl Log {
    /// Reads the log at `path`, its older half first where there is one.
    ///
    /// # Errors
    /// A file cannot be read, or there is none at `path`.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut log = Self::default();
        let newest = File::open(path)?;
        match File::open(rotated(path)) {
            Ok(older) => log.read_file(&rotated(path), older)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        log.read_file(path, newest)?;
        Ok(log)
    }

    fn read_file(&mut self, path: &Path, file: File) -> io::Result<()> {
        let mut reader = BufReader::new(file);
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            if reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut text)? == 0 {
                break;
            }
            if text.len() as u64 == LINE_BYTES_MAX && !text.ends_with(b"\n") {
                reader.skip_until(b'\n')?;
                self.bad(path, line, format!("longer than {LINE_BYTES_MAX} bytes"));
            } else if !text.trim_ascii().is_empty() {
                self.take(path, line, &text);
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &Path, line: usize, text: &[u8]) {
        match serde_json::from_slice(text) {
            Ok(record) => self.records.push(record),
            Err(error) => {
                // The reader of one line calls every line the first.
                let what = error.to_string().replace(" at line 1 column", " at column");
                let torn = if text.ends_with(b"\n") { "" } else { "torn off: " };
                self.bad(path, line, format!("{torn}{what}"));
            }
        }
    }

    fn bad(&mut self, path: &Path, line: usize, problem: String) {
        if self.bad_lines.len() < BAD_LINES_MAX {
            self.bad_lines.push(BadLine { file: path.to_owned(), line, problem });
        }
    }
}
