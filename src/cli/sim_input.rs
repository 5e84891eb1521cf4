//! What a simulation reads: the scenario or the trace, the policies, the traces that the scenario names. Files become
//! values here; nothing is run.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::{connect::Failure, exit};
use crate::{
    policy::{self, Diagnostic, Policy, diagnostic, document::MAX_BYTES},
    sim::{
        ms,
        scenario::{self, Scenario},
        workload::{TraceNote, Workload, build, philly},
    },
};

/// Largest trace file: a year of a large cluster has a tenth of it.
const TRACE_BYTES_MAX: u64 = 1 << 30;

/// How a trace is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TraceKind {
    /// `timestamp,duration,num_gpus,gpu_time,cluster`: each row a gang.
    Philly,
    /// `arrival_time,length,cpus`.
    Gaia,
    /// MapReduce by bytes.
    Swim,
    /// Our own, as `record` writes it.
    Rows,
}

impl TraceKind {
    /// The word in a scenario file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Philly => "PHILLY",
            Self::Gaia => "GAIA",
            Self::Swim => "SWIM",
            Self::Rows => "ROWS",
        }
    }

    /// What a trace with this first line is.
    fn of_first_line(line: &str) -> Option<Self> {
        let fields: Vec<_> = line.split(',').map(str::trim).collect();
        match fields[..] {
            ["job", "submit_s", ..] => Some(Self::Rows),
            ["timestamp", "duration", ..] => Some(Self::Philly),
            ["arrival_time", ..] => Some(Self::Gaia),
            _ if line.split('\t').count() >= 6 => Some(Self::Swim),
            _ => None,
        }
    }
}

/// A policy with the name that it goes by in tables.
#[derive(Clone, Debug)]
pub struct NamedPolicy {
    /// Its id, or its file's name.
    pub name: String,
    /// The policy.
    pub policy: Policy,
}

/// Reads a scenario file.
///
/// # Errors
/// Code 2 where it cannot be read, 3 where it is not valid; the diagnostics are part of the text.
pub fn scenario(file: &Path) -> Result<Scenario, Failure> {
    let text = text(file, MAX_BYTES as u64)?;
    of_text(&file.display().to_string(), &text)
}

/// A scenario from its text; `name` is what diagnostics call it.
///
/// # Errors
/// As [`scenario()`].
pub fn of_text(name: &str, text: &str) -> Result<Scenario, Failure> {
    let (scenario, warnings) = scenario::load(text).map_err(|errors| invalid(name, text, &errors))?;
    warn(name, text, &warnings);
    Ok(scenario)
}

/// Reads a policy file.
///
/// # Errors
/// As [`scenario()`].
pub fn policy(file: &Path) -> Result<NamedPolicy, Failure> {
    let text = text(file, MAX_BYTES as u64)?;
    let name = file.display().to_string();
    let loaded =
        policy::load(&text, &policy::LoadOptions::default()).map_err(|errors| invalid(&name, &text, &errors))?;
    let stem = file.file_stem().map_or(name, |stem| stem.to_string_lossy().into_owned());
    Ok(NamedPolicy { name: loaded.policy.id.clone().unwrap_or(stem), policy: loaded.policy })
}

fn invalid(name: &str, text: &str, errors: &[Diagnostic]) -> Failure {
    let shown: Vec<_> = errors.iter().map(|error| error.render(name, text, false)).collect();
    Failure::new(exit::INVALID_POLICY, anyhow!("{name} is not valid\n{}", shown.join("\n")))
}

fn warn(name: &str, text: &str, warnings: &[Diagnostic]) {
    for warning in warnings {
        tracing::warn!("{}", warning.render(name, text, false));
    }
}

/// Puts the workload of a scenario together; the files that it names are looked for beside `home`.
///
/// # Errors
/// A trace that cannot be read or used.
pub fn workload(scenario: &Scenario, home: &Path, seed: u64) -> Result<(Workload, Vec<TraceNote>), Failure> {
    let mut texts = BTreeMap::new();
    for source in &scenario.workload.traces {
        texts.insert(source.file.clone(), text(&home.join(&source.file), TRACE_BYTES_MAX)?);
    }
    let end = scenario.duration.map(ms);
    let built = build(&scenario.workload, &scenario.cluster.queues, scenario.start, seed, end, &texts)
        .map_err(anyhow::Error::from)?;
    if built.0.jobs.is_empty() {
        return Err(anyhow!("there is not one job to simulate").into());
    }
    Ok(built)
}

/// How a trace file is written, by its first line.
///
/// # Errors
/// It cannot be read, or is none that is known.
pub fn trace_kind(file: &Path) -> Result<TraceKind, Failure> {
    let text = text(file, TRACE_BYTES_MAX)?;
    let first = text.trim_start_matches('\u{feff}').lines().next().unwrap_or("");
    TraceKind::of_first_line(first).ok_or_else(|| {
        anyhow!("{}: the first line is that of no trace which is known: say --trace-format", file.display()).into()
    })
}

/// The virtual clusters of a Philly trace.
///
/// # Errors
/// It cannot be read.
pub fn clusters(file: &Path) -> Result<Vec<String>, Failure> {
    let clusters = philly::clusters(&file.display().to_string(), &text(file, TRACE_BYTES_MAX)?);
    Ok(clusters.map_err(anyhow::Error::from)?.into_keys().collect())
}

/// A file's text.
///
/// # Errors
/// It cannot be read, is larger than `bytes_max`, or is not UTF-8.
pub fn text(file: &Path, bytes_max: u64) -> Result<String, Failure> {
    let name = file.display();
    let mut bytes = Vec::new();
    File::open(file)
        .and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes))
        .with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > bytes_max {
        return Err(anyhow!("{name} is larger than {bytes_max} bytes").into());
    }
    match diagnostic::decode(&bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(bad) => Err(invalid(&name.to_string(), &bad.0, std::slice::from_ref(&bad.1))),
    }
}

/// Where the files lie that a scenario file names.
pub fn home(file: &Path) -> PathBuf {
    file.parent().map(Path::to_path_buf).unwrap_or_default()
}

/// What people should know of the traces: what was left out and changed, and the first bad rows.
pub fn tell(notes: &[TraceNote], out: &mut impl io::Write) -> io::Result<()> {
    for note in notes {
        writeln!(out, "{}: {} jobs", note.file, note.jobs)?;
        for (count, what) in note.left_out.iter().chain(&note.changed) {
            writeln!(out, "  {count}: {what}")?;
        }
        if note.bad > 0 {
            writeln!(out, "  {} rows are bad and were left out; the first of them:", note.bad)?;
            note.bad_rows.iter().try_for_each(|row| writeln!(out, "    {row}"))?;
        }
    }
    Ok(())
}
