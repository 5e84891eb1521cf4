//! The history as later looks would find it that show what the newest one has shown; found without adding their samples.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{CONFIRM_AFTER, History, Nanos, SAMPLES_MAX, Sample, Window, length, nanos, spacing};

/// A history to which the newest sample is added again and again, at one pace, and its windows: they are those of the
/// history that [`History::repeat`] makes.
#[derive(Clone, Debug)]
pub struct Ahead<'a> {
    history: &'a History,
    newest: Sample,
    pace: Nanos,
    keep: Nanos,
    /// How long the window is.
    window: Nanos,
    /// It reaches back no further than to here.
    begun: Nanos,
    /// The instant of the last look that was added.
    now: Nanos,
    /// Where its window begins.
    from: Nanos,
    /// How many were added.
    added: u32,
    /// The first sample that is not forgotten by now.
    oldest: usize,
    /// The first sample of the window.
    first: usize,
}

impl History {
    /// The looks to come, one every `pace`, with samples kept for so long, and their windows: so long, but not back
    /// beyond `begun`. `None` where it would not be simple to tell what they find: looks that are too near to confirm
    /// each other, or so many that samples are thinned out.
    pub fn ahead(
        &self,
        pace: Duration,
        keep: Duration,
        window: Duration,
        begun: Option<DateTime<Utc>>,
    ) -> Option<Ahead<'_>> {
        let newest = *self.latest()?;
        let is_simple = pace >= CONFIRM_AFTER && pace >= spacing(keep) && self.entries.len() < SAMPLES_MAX as usize / 2;
        is_simple.then(|| Ahead {
            history: self,
            newest,
            pace: length(pace),
            keep: length(keep),
            window: length(window),
            begun: begun.map_or(Nanos::MIN, nanos),
            now: nanos(newest.at),
            from: Nanos::MIN,
            added: 0,
            oldest: 0,
            first: 0,
        })
    }
}

impl Ahead<'_> {
    /// One more look: what [`History::window`] would say at it. `None` where no sample of today's is in the window any
    /// more.
    pub fn look(&mut self) -> Option<Window> {
        let entries = &self.history.entries;
        self.now += self.pace;
        self.added = self.added.checked_add(1)?;
        self.from = (self.now - self.window).max(self.begun);
        while entries.get(self.oldest)?.at < self.now - self.keep {
            self.oldest += 1;
        }
        let from = self.from.max(entries.get(self.oldest)?.at + length(CONFIRM_AFTER));
        while entries.get(self.first)?.at < from {
            self.first += 1;
        }
        let (before, last) = (entries.get(self.first.checked_sub(1)?)?, entries.back()?);
        // Each of the new ones is confirmed by the one before, which shows the same.
        let Sample { pending, capacity, allocated, .. } = self.newest;
        let added = u64::from(self.added);
        Some(Window {
            samples: entries.len() - self.first + self.added as usize,
            pending: last.pending.minus(before.pending).plus(pending.times(added)),
            capacity: last.capacity.minus(before.capacity).plus(capacity.times(added)),
            allocated: last.allocated.minus(before.allocated).plus(allocated.times(added)),
            latest: pending,
        })
    }

    /// Whether all samples of the last look's window show the same as the newest one, confirmed: so do those of all
    /// later windows.
    pub fn is_steady(&self) -> bool {
        self.history.entries.back().is_some_and(|last| self.from >= last.alike_since + length(CONFIRM_AFTER))
    }
}
