//! The workload CSV that grows: whole jobs are appended, each in one write.
//! Must not know where rows come from.

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use crate::model::WorkloadRow;

/// What is done with a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfThere {
    /// It is left alone: an error.
    Refuse,
    /// It is written anew.
    Overwrite,
    /// Rows are added to it.
    Append,
}

/// The file, or stdout.
#[derive(Debug)]
pub struct Sheet {
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout,
    File { file: File, path: PathBuf, length: u64 },
}

/// The jobs in a file to which rows are to be added: none where it is not there.
///
/// # Errors
/// It cannot be read, or is no workload CSV to the last byte.
pub fn jobs(path: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut text = String::new();
    match File::open(path).and_then(|mut file| file.read_to_string(&mut text)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(BTreeSet::new()),
        result => result.with_context(|| format!("cannot read {}", path.display()))?,
    };
    if text.is_empty() {
        return Ok(BTreeSet::new());
    }
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    if reader.headers().is_ok_and(|headers| headers != WorkloadRow::COLUMNS.as_slice()) {
        bail!("{} is no workload file: its first line is not {}", path.display(), WorkloadRow::COLUMNS.join(","));
    }
    let mut jobs = BTreeSet::new();
    for row in reader.deserialize() {
        let row: WorkloadRow = row.with_context(|| format!("{}: mend or remove that line", path.display()))?;
        jobs.insert(row.job);
    }
    if !text.ends_with('\n') {
        bail!("{}: the last line is not whole: end it with a line feed, or remove it", path.display());
    }
    Ok(jobs)
}

impl Sheet {
    /// Opens it and writes the header line where there is none; `-` is stdout.
    ///
    /// # Errors
    /// It is there and is to be left alone; it cannot be written.
    pub fn open(path: &Path, if_there: IfThere) -> anyhow::Result<Self> {
        let mut sheet = if path == Path::new("-") {
            Self { to: To::Stdout }
        } else {
            let mut options = OpenOptions::new();
            match if_there {
                IfThere::Refuse => options.write(true).create_new(true),
                IfThere::Overwrite => options.write(true).create(true).truncate(true),
                IfThere::Append => options.append(true).create(true),
            };
            let hint =
                if if_there == IfThere::Refuse { " (--append adds to a file, --force overwrites it)" } else { "" };
            let file = options.open(path).with_context(|| format!("cannot write {}{hint}", path.display()))?;
            let length = file.metadata()?.len();
            Self { to: To::File { file, path: path.into(), length } }
        };
        if !matches!(sheet.to, To::File { length, .. } if length > 0) {
            sheet.append(|writer| writer.write_record(WorkloadRow::COLUMNS))?;
        }
        Ok(sheet)
    }

    /// Appends a job. Where that fails, nothing of it is left in the file.
    ///
    /// # Errors
    /// As of writing; [`is_closed`] knows the one that is none.
    pub fn write(&mut self, job: &[WorkloadRow]) -> anyhow::Result<()> {
        self.append(|writer| job.iter().try_for_each(|row| writer.serialize(row)))
    }

    fn append(&mut self, fill: impl FnOnce(&mut csv::Writer<Vec<u8>>) -> csv::Result<()>) -> anyhow::Result<()> {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        fill(&mut writer)?;
        let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        match &mut self.to {
            To::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(&bytes).and_then(|()| stdout.flush())?;
            }
            To::File { file, path, length } => {
                if let Err(error) = file.write_all(&bytes) {
                    // Half a row would spoil the file for whoever reads it; if this fails, too, nothing can help.
                    let _ = file.set_len(*length);
                    return Err(error).with_context(|| format!("cannot write {}", path.display()));
                }
                *length += u64::try_from(bytes.len()).unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Has the file outlive a loss of power.
    ///
    /// # Errors
    /// The disk's.
    pub fn sync(&self) -> anyhow::Result<()> {
        match &self.to {
            To::Stdout => Ok(()),
            To::File { file, path, .. } => file.sync_all().with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

/// Whether whoever read our stdout has seen enough and gone.
pub fn is_closed(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
}
