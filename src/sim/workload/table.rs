//! Rows of a trace: fields by name, what is said of bad ones, and when there are too many of them.
//!
//! A bad row is left out, named by file, line and field with what would be right, and counted. Where more than one in
//! a hundred is bad, or all of them, the file is not what it is taken for, and that is an error.

use std::{fmt, str::FromStr};

use csv::StringRecord;

use crate::policy::field::shorten;

/// Bad rows that are named; the rest is counted.
pub const SHOWN: usize = 10;

/// The most characters of a text that a message shows: the library's own, on one line.
fn found(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    shorten(&plain).into_owned()
}

/// What was read of a trace, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceNote {
    /// The file, as the scenario names it.
    pub file: String,
    /// Jobs that are played.
    pub jobs: usize,
    /// Jobs that were left out, and what they did that others do not.
    pub left_out: Vec<(usize, String)>,
    /// Things that were changed, and how often.
    pub changed: Vec<(usize, String)>,
    /// How many rows were bad.
    pub bad: usize,
    /// The first ten bad rows.
    pub bad_rows: Vec<String>,
}

impl TraceNote {
    /// Notes jobs that were left out; none of them is no note.
    pub fn leave_out(&mut self, jobs: usize, why: &str) {
        add(&mut self.left_out, jobs, why);
    }

    /// Notes something that was changed; nothing is no note.
    pub fn change(&mut self, times: usize, what: &str) {
        add(&mut self.changed, times, what);
    }
}

fn add(notes: &mut Vec<(usize, String)>, count: usize, what: &str) {
    match notes.iter_mut().find(|(_, known)| known == what) {
        Some((known, _)) => *known += count,
        None if count > 0 => notes.push((count, what.into())),
        None => {}
    }
}

impl fmt::Display for TraceNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} jobs", self.file, self.jobs)?;
        for (count, why) in &self.left_out {
            write!(f, "; {count} left out that {why}")?;
        }
        for (count, what) in &self.changed {
            write!(f, "; {count} {what}")?;
        }
        if self.bad > 0 {
            write!(f, "; {} bad rows left out", self.bad)?;
        }
        Ok(())
    }
}

/// Why a trace cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TraceError {
    /// Nobody has read the file.
    #[error("{file} has not been read")]
    NoText {
        /// The file.
        file: String,
    },
    /// The first line does not name the fields.
    #[error("{file}: the first line must name the fields {expected}, found `{found}`")]
    Header {
        /// The file.
        file: String,
        /// The fields.
        expected: String,
        /// The first line.
        found: String,
    },
    /// There are several virtual clusters, and none is chosen, or one that is not there.
    #[error("{file}: {problem}; choose one with `cluster`: {clusters}")]
    Cluster {
        /// The file.
        file: String,
        /// What is wrong.
        problem: String,
        /// Those that there are.
        clusters: String,
    },
    /// Too many bad rows.
    #[error("{file}: {bad} of {rows} rows are bad, more than one in a hundred:\n{}", first.join("\n"))]
    BadRows {
        /// The file.
        file: String,
        /// How many.
        bad: usize,
        /// Of how many.
        rows: usize,
        /// The first ten.
        first: Vec<String>,
    },
    /// No row at all.
    #[error("{file} has no rows")]
    Empty {
        /// The file.
        file: String,
    },
}

/// The rows of a text.
pub struct Table<'a> {
    file: &'a str,
    columns: Vec<(&'static str, usize)>,
    rows: csv::StringRecordsIntoIter<&'a [u8]>,
    /// What has been noted so far.
    pub note: TraceNote,
    /// Rows that belong to what is read, bad ones included.
    seen: usize,
}

/// One row.
pub struct Row {
    line: u64,
    /// Lines that it takes beyond its first: a quote that is not closed takes the rest of the file.
    more_lines: usize,
    fields: StringRecord,
    columns: Vec<(&'static str, usize)>,
}

/// What is wrong with a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRow {
    line: u64,
    rows: usize,
    message: String,
}

impl<'a> Table<'a> {
    /// A table with commas whose first line names its fields, in any order, among others or not.
    ///
    /// # Errors
    /// A field that is missing in the first line.
    pub fn with_header(file: &'a str, text: &'a str, names: &[&'static str]) -> Result<Self, TraceError> {
        let text = text.trim_start_matches('\u{feff}');
        let mut builder = csv::ReaderBuilder::new();
        let mut reader = builder.flexible(true).trim(csv::Trim::All).from_reader(text.as_bytes());
        let header = reader.headers().cloned().unwrap_or_default();
        let columns = names.iter().map(|name| Some((*name, header.iter().position(|field| field == *name)?)));
        let Some(columns) = columns.collect() else {
            let first = found(text.lines().next().unwrap_or(""));
            return Err(TraceError::Header { file: file.into(), expected: names.join(","), found: first });
        };
        Ok(Self::new(file, columns, reader))
    }

    /// A table with tabs and without a header: these fields, in this order.
    pub fn with_tabs(file: &'a str, text: &'a str, names: &[&'static str]) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        let mut builder = csv::ReaderBuilder::new();
        let builder = builder.flexible(true).has_headers(false).delimiter(b'\t').quoting(false).trim(csv::Trim::All);
        let columns = names.iter().enumerate().map(|(index, name)| (*name, index)).collect();
        Self::new(file, columns, builder.from_reader(text.as_bytes()))
    }

    fn new(file: &'a str, columns: Vec<(&'static str, usize)>, reader: csv::Reader<&'a [u8]>) -> Self {
        let note = TraceNote { file: file.into(), ..TraceNote::default() };
        Self { file, columns, rows: reader.into_records(), note, seen: 0 }
    }

    /// The next row; `None` at the end.
    pub fn next_row(&mut self) -> Option<Row> {
        loop {
            let fields = self.rows.next()?;
            // Bytes come from a text, and lengths are free: nothing is left that could be wrong.
            let Ok(fields) = fields else { continue };
            let line = fields.position().map_or(0, csv::Position::line);
            let more_lines = fields.iter().map(|field| field.matches('\n').count()).sum();
            self.seen += 1 + more_lines;
            return Some(Row { line, more_lines, fields, columns: self.columns.clone() });
        }
    }

    /// Says that the row that came last is not of what is read.
    pub fn skip(&mut self) {
        self.seen -= 1;
    }

    /// Notes a bad row.
    pub fn bad(&mut self, row: &BadRow) {
        self.note.bad += row.rows;
        if self.note.bad_rows.len() < SHOWN {
            self.note.bad_rows.push(format!("{}:{}: {}", self.file, row.line, row.message));
        }
    }

    /// What was noted, at the end.
    ///
    /// # Errors
    /// No rows, or too many bad ones.
    pub fn finish(self) -> Result<TraceNote, TraceError> {
        let TraceNote { bad, .. } = self.note;
        if self.seen == 0 {
            return Err(TraceError::Empty { file: self.file.into() });
        }
        if bad == self.seen || bad * 100 > self.seen {
            let first = self.note.bad_rows;
            return Err(TraceError::BadRows { file: self.file.into(), bad, rows: self.seen, first });
        }
        Ok(self.note)
    }
}

impl Row {
    /// A field's text.
    ///
    /// # Errors
    /// The row is too short, or the field empty.
    pub fn text(&self, name: &'static str) -> Result<&str, BadRow> {
        if self.more_lines > 0 {
            return Err(self.wrong("a quote is not closed on its line".into()));
        }
        let index = self.columns.iter().find(|(column, _)| *column == name).map(|(_, index)| *index);
        let field = index.and_then(|index| self.fields.get(index)).unwrap_or("");
        if field.is_empty() { Err(self.wrong(format!("`{name}` is missing"))) } else { Ok(field) }
    }

    /// A field that must be of some kind.
    ///
    /// # Errors
    /// It is missing, or something else.
    pub fn field<T: FromStr>(&self, name: &'static str, wanted: &str) -> Result<T, BadRow> {
        let text = self.text(name)?;
        text.parse().map_err(|_| self.not(name, wanted))
    }

    /// A number that is not negative.
    ///
    /// # Errors
    /// It is missing, or something else.
    pub fn number(&self, name: &'static str) -> Result<f64, BadRow> {
        let wanted = "a number, 0 or more";
        let number: f64 = self.field(name, wanted)?;
        if number.is_finite() && number >= 0.0 { Ok(number) } else { Err(self.not(name, wanted)) }
    }

    /// A count; `3.0` is one too.
    ///
    /// # Errors
    /// It is missing, or something else.
    pub fn count(&self, name: &'static str) -> Result<u32, BadRow> {
        let wanted = "a whole number up to 1000000";
        let number =
            self.number(name).map_err(|_| self.text(name).map_or_else(|bad| bad, |_| self.not(name, wanted)))?;
        if number.fract() != 0.0 || number > 1e6 {
            return Err(self.not(name, wanted));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
        let count = number as u32;
        Ok(count)
    }

    /// Says that a field is not what it must be.
    pub fn not(&self, name: &'static str, wanted: &str) -> BadRow {
        let text = self.text(name).unwrap_or("");
        self.wrong(format!("`{name}` must be {wanted}, found `{}`", found(text)))
    }

    /// Says what is wrong with the row.
    pub fn wrong(&self, message: String) -> BadRow {
        BadRow { line: self.line, rows: 1 + self.more_lines, message }
    }

    /// Its line in the file, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }
}
