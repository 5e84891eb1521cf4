//! What a recording wrote, left out and guessed, in numbers and for people.
//! Must not know how rows come about.

use std::{collections::BTreeMap, fmt};

use crate::yarn::applications::AppRecord;

/// Why an application is not in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// It ended before its master was launched.
    NeverStarted,
    /// At the end its master had not been launched yet.
    NotYetStarted,
    /// It ended in the moment of its start.
    NoRunTime,
    /// It was not over, and only those that are were wanted.
    NotOver,
    /// A gang that ended, or still waited, without all its members.
    NeverComplete,
}

/// What is not exact about an application in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// Containers, sizes and durations come from totals.
    FromTotals,
    /// Some tasks came and went between two looks.
    Unseen,
    /// A gang that was seen complete at one look only.
    SeenOnce,
    /// It was not over.
    Unfinished,
    /// The ResourceManager forgot it.
    Vanished,
    /// The launch of its master is not told.
    LaunchNotTold,
}

impl Skip {
    fn words(self) -> &'static str {
        match self {
            Self::NeverStarted => "ended before they were started",
            Self::NotYetStarted => "were not started yet",
            Self::NoRunTime => "ended in the moment of their start",
            Self::NotOver => "were not over",
            Self::NeverComplete => {
                "were gangs that never had all their members: how long they would have worked is not known"
            }
        }
    }
}

impl Doubt {
    fn words(self) -> &'static str {
        match self {
            Self::FromTotals => "containers, sizes and durations are guessed from totals",
            Self::Unseen => {
                "some tasks came and went between two looks: as many were added as the totals ask for (look more often)"
            }
            Self::SeenOnce => "gangs were seen complete once only: a container that was given back may be among theirs",
            Self::Unfinished => "were not over: their durations are what they had worked by then",
            Self::Vanished => "were forgotten by the ResourceManager: their ends are when they were last seen",
            Self::LaunchNotTold => {
                "this ResourceManager does not tell when they started: they seem to run from their submission on"
            }
        }
    }
}

/// Counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Applications written, by how they ended.
    pub written: BTreeMap<String, u64>,
    /// Their rows.
    pub rows: usize,
    /// Applications of which all figures are known.
    pub exact: u64,
    /// Applications in the file, by what is not exact; one may have several doubts.
    pub doubts: BTreeMap<Doubt, u64>,
    /// Applications left out, by reason.
    pub skipped: BTreeMap<Skip, u64>,
    /// How often the containers of an application could not be seen.
    pub unseen: u64,
    /// Looks that failed.
    pub failed_looks: u64,
}

impl Summary {
    pub(super) fn skipped(&mut self, skip: Skip) {
        *self.skipped.entry(skip).or_default() += 1;
    }

    pub(super) fn written(&mut self, app: &AppRecord, rows: usize, doubts: &[Doubt]) {
        let how = if app.state == "FINISHED" { &app.final_status } else { &app.state };
        *self.written.entry(how.clone()).or_default() += 1;
        self.rows += rows;
        self.exact += u64::from(doubts.is_empty());
        for doubt in doubts {
            *self.doubts.entry(*doubt).or_default() += 1;
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how: Vec<_> = self.written.iter().map(|(how, count)| format!("{count} {how}")).collect();
        let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
        let applications: u64 = self.written.values().sum();
        writeln!(f, "applications written: {applications}{how}, {} rows", self.rows)?;
        writeln!(f, "  exact: {}", self.exact)?;
        for (doubt, count) in &self.doubts {
            writeln!(f, "  not exact: {count}: {}", doubt.words())?;
        }
        if self.skipped.is_empty() {
            writeln!(f, "left out: none")?;
        }
        for (skip, count) in &self.skipped {
            writeln!(f, "left out: {count}: {}", skip.words())?;
        }
        if self.unseen > 0 {
            writeln!(f, "containers of an application that could not be seen: {} times", self.unseen)?;
        }
        if self.failed_looks > 0 {
            writeln!(f, "looks that failed: {}: what came and went meanwhile is known from totals", self.failed_looks)?;
        }
        Ok(())
    }
}
