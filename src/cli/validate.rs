//! `validate`: checks policy and scenario files and says everything that is wrong with them.
//!
//! Diagnostics go to standard error, one verdict a file to standard output; with `--json`, one document to standard
//! output and nothing else.

use std::{
    fs::File,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use serde::Serialize;

use super::{exit, terminal};
use crate::{
    policy::{Diagnostic, DiagnosticJson, LoadOptions, Severity, diagnostic, document::MAX_BYTES, load},
    sim::scenario,
};

/// Arguments of `validate`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Policy or scenario files; `-` is standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Print one JSON document to standard output instead of text
    #[arg(long)]
    pub json: bool,
    /// Treat warnings as errors: end with code 3
    #[arg(long)]
    pub deny_warnings: bool,
    /// All files are scenarios; without it, those that have `workload` at their top level are
    #[arg(long)]
    pub scenario: bool,
    /// Where the cluster keeps Spark's shuffle data, as in `dataproc:efm.spark.shuffle`; with primary-worker, only a
    /// graceful decommission time-out of 0s is allowed
    #[arg(long, value_name = "WHERE")]
    pub spark_shuffle: Option<SparkShuffle>,
}

/// Values of Dataproc's `efm.spark.shuffle` property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SparkShuffle {
    /// On primary workers (Enhanced Flexibility Mode).
    PrimaryWorker,
}

/// What came of one file.
struct Report {
    file: String,
    text: String,
    diagnostics: Vec<Diagnostic>,
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct Document {
    valid: bool,
    files: Vec<FileJson>,
}

#[derive(Serialize)]
struct FileJson {
    file: String,
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    unreadable: Option<String>,
    diagnostics: Vec<DiagnosticJson>,
}

/// Checks every file. Ends with 0 if all are valid, 3 if one is not, 2 if one cannot be read.
pub fn run(args: &Args) -> ExitCode {
    let outcomes: Vec<_> = args.files.iter().map(|file| check(file, args)).collect();
    // A reader that went away (`| head`) changes no verdict.
    let _ = if args.json { print_json(&outcomes, args) } else { print_text(&outcomes, args) };
    exit::code(if outcomes.iter().any(Result::is_err) {
        exit::USAGE
    } else if outcomes.iter().flatten().all(|report| report.passes(args)) {
        exit::OK
    } else {
        exit::INVALID_POLICY
    })
}

/// The name and the reason of a file that cannot be read.
type Unreadable = (String, io::Error);

fn check(file: &Path, args: &Args) -> Result<Report, Unreadable> {
    let stdin = file == Path::new("-");
    let name = if stdin { "<stdin>".into() } else { file.display().to_string() };
    let bytes = if stdin { read(io::stdin()) } else { File::open(file).and_then(read) };
    let bytes = bytes.map_err(|error| (name.clone(), error))?;
    Ok(match diagnostic::decode(&bytes) {
        Err(bad) => {
            let (text, diagnostic) = *bad;
            Report { file: name, text, diagnostics: vec![diagnostic] }
        }
        Ok(text) => {
            let diagnostics = diagnostics(text, args);
            Report { file: name, text: text.into(), diagnostics }
        }
    })
}

/// Everything that is to be said of a policy or a scenario.
fn diagnostics(text: &str, args: &Args) -> Vec<Diagnostic> {
    if args.scenario || scenario::looks_like_one(text) {
        return scenario::load(text).map_or_else(|errors| errors, |(_, warnings)| warnings);
    }
    let options = LoadOptions { primary_worker_shuffle: args.spark_shuffle == Some(SparkShuffle::PrimaryWorker) };
    load(text, &options).map_or_else(|errors| errors, |loaded| loaded.warnings)
}

/// One byte more than is allowed is enough to say that there are too many.
fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl Report {
    fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }

    fn passes(&self, args: &Args) -> bool {
        self.count(Severity::Error) == 0 && !(args.deny_warnings && self.count(Severity::Warning) > 0)
    }

    /// `valid`, `valid, 1 warning`, `invalid, 2 errors`.
    fn verdict(&self, args: &Args) -> String {
        let counts = [(Severity::Error, "error"), (Severity::Warning, "warning")].map(|(severity, word)| {
            match self.count(severity) {
                0 => String::new(),
                1 => format!(", 1 {word}"),
                n => format!(", {n} {word}s"),
            }
        });
        format!("{}{}", if self.passes(args) { "valid" } else { "invalid" }, counts.concat())
    }
}

fn print_text(outcomes: &[Result<Report, Unreadable>], args: &Args) -> io::Result<()> {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let color = terminal::wants_colour(&err);
    for outcome in outcomes {
        match outcome {
            Err((file, error)) => writeln!(err, "error: {file} cannot be read: {error}")?,
            Ok(report) => {
                for diagnostic in &report.diagnostics {
                    writeln!(err, "{}\n", diagnostic.render(&report.file, &report.text, color))?;
                }
                writeln!(out, "{}: {}", report.file, report.verdict(args))?;
            }
        }
    }
    Ok(())
}

fn print_json(outcomes: &[Result<Report, Unreadable>], args: &Args) -> io::Result<()> {
    let files: Vec<_> = outcomes.iter().map(|outcome| FileJson::new(outcome, args)).collect();
    let document = Document { valid: files.iter().all(|file| file.valid), files };
    let mut out = io::stdout();
    serde_json::to_writer_pretty(&mut out, &document)?;
    writeln!(out)
}

impl FileJson {
    fn new(outcome: &Result<Report, Unreadable>, args: &Args) -> Self {
        match outcome {
            Err((file, error)) => {
                Self { file: file.clone(), valid: false, unreadable: Some(error.to_string()), diagnostics: Vec::new() }
            }
            Ok(report) => {
                let json = |diagnostic: &Diagnostic| diagnostic.to_json(&report.file, &report.text);
                let diagnostics = report.diagnostics.iter().map(json).collect();
                Self { file: report.file.clone(), valid: report.passes(args), unreadable: None, diagnostics }
            }
        }
    }
}
