//! The decision log: what was decided, and why, one JSON object a line, for people, `explain` and whoever reads JSON.
//! Writes records and nothing else; reading them back is [`Log`]'s.

use std::{
    io,
    mem::{Discriminant, discriminant},
    path::PathBuf,
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};

use super::line_file::LineFile;
use crate::{
    model::{Action, Reason, Workers},
    ports::{Journal, Tick},
};

pub use super::decision_reader::{BadLine, Log, rotated};

/// A quiet loop leaves a line this often all the same: whoever reads the log sees that it was alive.
const HEARTBEAT: Duration = Duration::from_secs(600);

/// When the log is rotated, in bytes: with the one old file, some 200,000 records are kept.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Most notes of one record, and the longest of them: notes carry what other programs say.
const NOTES_MAX: usize = 20;
const NOTE_CHARS_MAX: usize = 1_000;

/// What a decision comes to, in the words of Dataproc's autoscaler log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Workers are ordered.
    ScaleUp,
    /// Workers are on their way out: cordon, decommission or delete.
    ScaleDown,
    /// Nothing, or housekeeping.
    NoScale,
    /// Workers on their way out are taken back.
    Cancel,
    /// More than one of these at once.
    Mixed,
}

impl Verdict {
    /// What these actions come to.
    pub fn of(actions: &[Action]) -> Self {
        let kinds = actions.iter().filter_map(|action| match action {
            Action::Create { .. } => Some(Self::ScaleUp),
            Action::Resize { change, .. } => {
                Some(if change.iter().any(|(_, change)| change < 0) { Self::ScaleDown } else { Self::ScaleUp })
            }
            Action::Cordon { .. } | Action::Decommission { .. } | Action::Delete { .. } => Some(Self::ScaleDown),
            Action::Recommission { .. } | Action::Uncordon { .. } => Some(Self::Cancel),
            Action::Release { .. } => None,
        });
        let one = |before: Self, kind| if before == kind { kind } else { Self::Mixed };
        kinds.reduce(one).unwrap_or(Self::NoScale)
    }

    /// As in the log: `SCALE_UP`, …
    pub fn word(self) -> &'static str {
        match self {
            Self::ScaleUp => "SCALE_UP",
            Self::ScaleDown => "SCALE_DOWN",
            Self::NoScale => "NO_SCALE",
            Self::Cancel => "CANCEL",
            Self::Mixed => "MIXED",
        }
    }
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The tick's time.
    pub at: DateTime<Utc>,
    /// What it came to.
    pub decision: Verdict,
    /// Memory that applications wait for, in MB. This and the other figures are absent when YARN did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_mb: Option<u64>,
    /// Cores that applications wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_vcores: Option<u64>,
    /// GPUs that applications wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_gpus: Option<u64>,
    /// Containers that applications wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containers_pending: Option<u64>,
    /// Free memory in MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_mb: Option<u64>,
    /// Memory in use in MB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_mb: Option<u64>,
    /// Absent when YARN or the provider did not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<Workers>,
    /// The orders. Those that this version does not know are left out when an old log is read.
    #[serde(default, deserialize_with = "known")]
    pub actions: Vec<Action>,
    /// The reasons, the headline first. Read as leniently as the actions; `text` has them all.
    #[serde(default, deserialize_with = "known")]
    pub reasons: Vec<Reason>,
    /// The reasons as sentences.
    #[serde(default)]
    pub text: Vec<String>,
    /// What went wrong or was noticed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Record {
    /// The line for one tick.
    pub fn of(tick: &Tick<'_>) -> Self {
        let metrics = tick.situation.observation.as_ref().ok().map(|observation| observation.metrics);
        Self {
            at: tick.situation.now,
            decision: Verdict::of(&tick.decision.actions),
            pending_mb: metrics.map(|metrics| metrics.pending.memory_mb),
            pending_vcores: metrics.map(|metrics| metrics.pending.vcores),
            pending_gpus: metrics.map(|metrics| metrics.pending.gpus),
            containers_pending: metrics.map(|metrics| metrics.containers_pending),
            available_mb: metrics.map(|metrics| metrics.available.memory_mb),
            allocated_mb: metrics.map(|metrics| metrics.allocated.memory_mb),
            workers: tick.workers,
            actions: tick.decision.actions.clone(),
            reasons: tick.decision.reasons.clone(),
            text: tick.decision.reasons.iter().map(ToString::to_string).collect(),
            notes: tick.notes.iter().take(NOTES_MAX).map(|note| note.chars().take(NOTE_CHARS_MAX).collect()).collect(),
        }
    }

    /// What makes this record news. Figures inside the reasons are not: they move with every look.
    pub fn headline(&self) -> Headline {
        Headline {
            decision: self.decision,
            reasons: self.reasons.iter().map(discriminant).collect(),
            outage: self.reasons.iter().find_map(outage).map(str::to_owned),
            waiting: self.pending_mb.map(|pending| pending > 0),
            workers: self.workers,
            notes: self.notes.clone(),
        }
    }

    /// Whether anything was ordered.
    pub fn acted(&self) -> bool {
        !self.actions.is_empty()
    }

    /// The first reason's sentence.
    pub fn reason(&self) -> &str {
        self.text.first().map_or("", String::as_str)
    }
}

/// Two records with equal headlines tell a person the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headline {
    decision: Verdict,
    reasons: Vec<Discriminant<Reason>>,
    outage: Option<String>,
    waiting: Option<bool>,
    workers: Option<Workers>,
    notes: Vec<String>,
}

/// What YARN or the provider said instead of an answer, or why it takes no orders: another word of it is news.
fn outage(reason: &Reason) -> Option<&str> {
    match reason {
        Reason::NoObservation { error } | Reason::NoCapacity { error } => Some(error),
        Reason::ProviderHeld { why } => Some(why),
        _ => None,
    }
}

fn known<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Vec<T>, D::Error> {
    let values = Vec::<serde_json::Value>::deserialize(deserializer)?;
    Ok(values.into_iter().filter_map(|value| serde_json::from_value(value).ok()).collect())
}

/// Appends records to a file; rotates it once (`<path>.1`) when it is full.
#[derive(Debug)]
pub struct DecisionLog {
    file: LineFile,
    last: Option<(DateTime<Utc>, Headline)>,
}

impl DecisionLog {
    /// Opens the log for appending; makes it where there is none.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        Self::with_limit(path, LOG_BYTES_MAX)
    }

    /// As [`DecisionLog::open`], with another size in bytes at which the file is rotated.
    ///
    /// # Errors
    /// As [`DecisionLog::open`].
    pub fn with_limit(path: impl Into<PathBuf>, bytes_max: u64) -> io::Result<Self> {
        Ok(Self { file: LineFile::open(path.into(), bytes_max)?, last: None })
    }

    /// Appends this record if it is news, or the first for ten minutes; says whether it did.
    ///
    /// # Errors
    /// The file cannot be written; the next record is tried anew, on a line of its own.
    pub fn record(&mut self, record: &Record) -> io::Result<bool> {
        let headline = record.headline();
        if !record.acted() && !self.is_news(record.at, &headline) {
            return Ok(false);
        }
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file.append(&line)?;
        self.last = Some((record.at, headline));
        Ok(true)
    }

    fn is_news(&self, at: DateTime<Utc>, headline: &Headline) -> bool {
        match &self.last {
            // A clock set back is news, too.
            Some((last_at, last)) => last != headline || at >= *last_at + HEARTBEAT || at < *last_at,
            None => true,
        }
    }
}

impl Journal for DecisionLog {
    fn tick(&mut self, tick: &Tick<'_>) {
        let written = self.record(&Record::of(tick));
        self.file.report("decision log", written);
    }
}
