//! A bounded window of samples drawn from observations: the basic algorithm averages over it.

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use super::Resources;

mod ahead;

pub use ahead::Ahead;

/// Two looks at pending that are nearer than this tell nothing new: applications send their asks anew with every
/// heartbeat, and for a second or two YARN counts some of them twice.
pub const CONFIRM_AFTER: Duration = Duration::from_secs(2);

/// Nanoseconds since 1970, or a length of time in nanoseconds: sums of instants are made at every look, for each sample,
/// and calendar time is slow at that.
type Nanos = i128;

/// [`CONFIRM_AFTER`].
const CONFIRM: Nanos = 2_000_000_000;

fn nanos(at: DateTime<Utc>) -> Nanos {
    Nanos::from(at.timestamp()) * 1_000_000_000 + Nanos::from(at.timestamp_subsec_nanos())
}

fn length(of: Duration) -> Nanos {
    Nanos::from(of.as_secs()) * 1_000_000_000 + Nanos::from(of.subsec_nanos())
}

/// Most samples that are kept: a day's cooldown at the default pace, and a bound on memory.
const SAMPLES_MAX: u32 = 40_000;

/// Cluster figures at one instant, of the workers that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub at: DateTime<Utc>,
    /// Pending as YARN said it.
    pub pending: Resources,
    /// What the counted workers may hand out in all (available + allocated + reserved).
    pub capacity: Resources,
    /// What their containers hold, and what is reserved.
    pub allocated: Resources,
}

impl Sample {
    /// Whether the other one shows the same, at whatever instant.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.pending, self.capacity, self.allocated) == (other.pending, other.capacity, other.allocated)
    }
}

/// Memory in MB and cores, added up. Whole numbers with room for 2^64 samples: sums are exact in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Memory in MB.
    pub memory_mb: u128,
    /// Virtual cores.
    pub vcores: u128,
}

impl Amounts {
    fn plus(self, more: Resources) -> Self {
        Self { memory_mb: self.memory_mb + u128::from(more.memory_mb), vcores: self.vcores + u128::from(more.vcores) }
    }

    fn minus(self, less: Self) -> Self {
        Self { memory_mb: self.memory_mb - less.memory_mb, vcores: self.vcores - less.vcores }
    }
}

/// Confirmed samples, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// How many.
    pub samples: usize,
    /// What was pending, confirmed.
    pub pending: Amounts,
    /// What the counted workers could hand out.
    pub capacity: Amounts,
    /// What their containers held.
    pub allocated: Amounts,
    /// Confirmed pending of the newest one; nothing where there is none.
    pub latest: Resources,
}

/// Samples, oldest first.
///
/// A tick asks for averages over a window, and whether samples cover it. So that neither goes through all of them each
/// time, sums and pauses are kept beside the samples as they come and go.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Samples", into = "Samples")]
pub struct History {
    entries: VecDeque<Entry>,
    /// The longest pause between two samples, then the longest after that one, and so on to the last.
    pauses: VecDeque<Pause>,
}

/// At a fast pace a long window is thinned rather than cut short, to samples so far apart: one that is never full would
/// never shrink.
fn spacing(keep: Duration) -> Duration {
    keep * 2 / SAMPLES_MAX
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sample: Sample,
    /// When it came.
    at: Nanos,
    /// The first of the samples, up to this one, that are all alike.
    alike_since: Nanos,
    /// Sums of all confirmed samples from some instant in the past up to this one: only differences mean anything.
    pending: Amounts,
    capacity: Amounts,
    allocated: Amounts,
}

#[derive(Clone, Copy, Debug)]
struct Pause {
    /// When the sample came that ended it.
    until: Nanos,
    length: Nanos,
}

impl History {
    /// Adds a sample and forgets those older than `keep` before it. A sample that is not newer than the last one
    /// (a clock set back) starts the history anew.
    pub fn push(&mut self, sample: Sample, keep: Duration) {
        if self.latest().is_some_and(|last| last.at >= sample.at) {
            *self = Self::default();
        }
        let (at, spacing) = (nanos(sample.at), length(spacing(keep)));
        let before = self.entries.len().checked_sub(2).and_then(|index| self.entries.get(index));
        if before.is_some_and(|before| at < before.at + spacing) {
            self.forget_newest();
        }
        self.append(sample);
        let begins = at - length(keep);
        while self.entries.len() > SAMPLES_MAX as usize || self.entries.front().is_some_and(|first| first.at < begins) {
            self.forget_oldest();
        }
    }

    /// Adds the newest sample again, so many times, each one `pace` after the one before: what looks would have shown that
    /// were not made. The same history as if each had been pushed, without adding those that are forgotten at once.
    pub fn repeat(&mut self, times: u64, pace: Duration, keep: Duration) {
        let Some(newest) = self.latest().copied() else { return };
        // Which samples a thinned window keeps depends on all that came before.
        let is_thinned = pace < spacing(keep);
        let in_window = u64::try_from(keep.as_nanos() / pace.as_nanos().max(1)).unwrap_or(u64::MAX).saturating_add(2);
        let first = if is_thinned { 0 } else { times.saturating_sub(in_window) };
        for time in first..times {
            // Far beyond what a history holds: the longest time that a look can be away.
            let after = TimeDelta::from_std(pace).unwrap_or_default() * i32::try_from(time + 1).unwrap_or(i32::MAX);
            self.push(Sample { at: newest.at + after, ..newest }, keep);
        }
    }

    fn append(&mut self, sample: Sample) {
        let at = nanos(sample.at);
        let mut entry = Entry {
            sample,
            at,
            alike_since: at,
            pending: Amounts::default(),
            capacity: Amounts::default(),
            allocated: Amounts::default(),
        };
        if let Some(last) = self.entries.back() {
            if last.sample.is_like(&sample) {
                entry.alike_since = last.alike_since;
            }
            (entry.pending, entry.capacity, entry.allocated) = (last.pending, last.capacity, last.allocated);
            let length = at - last.at;
            while self.pauses.back().is_some_and(|pause| pause.length <= length) {
                self.pauses.pop_back();
            }
            self.pauses.push_back(Pause { until: at, length });
        }
        self.entries.push_back(entry);
        if let (Some(pending), Some(entry)) = (self.confirmed_now(), self.entries.back_mut()) {
            entry.pending = entry.pending.plus(pending);
            entry.capacity = entry.capacity.plus(sample.capacity);
            entry.allocated = entry.allocated.plus(sample.allocated);
        }
    }

    /// Takes the newest sample away, right before another takes its place. The pauses that it had pushed aside stay
    /// away: the new one ends a pause that is longer still.
    fn forget_newest(&mut self) {
        let gone = self.entries.pop_back();
        if gone.is_some_and(|gone| self.pauses.back().is_some_and(|pause| pause.until == gone.at)) {
            self.pauses.pop_back();
        }
    }

    fn forget_oldest(&mut self) {
        self.entries.pop_front();
        let first = self.entries.front().map(|first| first.at);
        if self.pauses.front().is_some_and(|pause| Some(pause.until) <= first) {
            self.pauses.pop_front();
        }
    }

    /// The oldest sample.
    pub fn oldest(&self) -> Option<&Sample> {
        self.entries.front().map(|entry| &entry.sample)
    }

    /// The newest sample.
    pub fn latest(&self) -> Option<&Sample> {
        self.entries.back().map(|entry| &entry.sample)
    }

    /// Whether there was a look before the newest one that can confirm what it shows.
    pub fn is_confirmed(&self) -> bool {
        let (oldest, newest) = (self.entries.front(), self.entries.back());
        oldest.zip(newest).is_some_and(|(oldest, newest)| oldest.at <= newest.at - CONFIRM)
    }

    /// Whether all samples show the same.
    pub fn is_uniform(&self) -> bool {
        let (oldest, newest) = (self.entries.front(), self.entries.back());
        oldest.zip(newest).is_some_and(|(oldest, newest)| oldest.at >= newest.alike_since)
    }

    /// Samples at or after `from`, their pending confirmed: the least of what was seen in this sample and in those
    /// back to the nearest one at least `CONFIRM_AFTER` older. Pending that only one look has shown is not yet demand;
    /// a sample with nothing before it to confirm it tells nothing, and is left out.
    pub fn window(&self, from: DateTime<Utc>) -> Window {
        // All that is so much younger than the oldest one is confirmed, by samples that are all still there: as it was
        // when it came.
        let Some(confirmed) = self.entries.front().map(|first| first.at + CONFIRM) else { return Window::default() };
        let from = nanos(from).max(confirmed);
        let first = self.entries.partition_point(|entry| entry.at < from);
        let before = first.checked_sub(1).and_then(|before| self.entries.get(before));
        let (Some(last), Some(before), true) = (self.entries.back(), before, first < self.entries.len()) else {
            return Window::default();
        };
        Window {
            samples: self.entries.len() - first,
            pending: last.pending.minus(before.pending),
            capacity: last.capacity.minus(before.capacity),
            allocated: last.allocated.minus(before.allocated),
            latest: self.confirmed_now().unwrap_or_default(),
        }
    }

    /// Whether there is a sample of this instant or of before.
    pub fn reaches_back_to(&self, at: DateTime<Utc>) -> bool {
        self.oldest().is_some_and(|first| first.at <= at)
    }

    /// Whether samples reach back to `from`, with no gap longer than `gap`.
    pub fn covers(&self, from: DateTime<Utc>, now: DateTime<Utc>, gap: Duration) -> bool {
        let (from, now, gap) = (nanos(from), nanos(now), length(gap));
        let (earliest, latest) = (from - gap, from + gap);
        if let (Some(oldest), Some(last)) = (self.entries.front(), self.entries.back()) {
            // Most often no pause is too long, wherever it is: then there is nothing to look up.
            let evenly = self.pauses.front().is_none_or(|longest| longest.length <= gap);
            if evenly && oldest.at <= latest && earliest <= last.at && now - last.at <= gap {
                return true;
            }
        }
        let first = self.entries.partition_point(|entry| entry.at < earliest);
        let (Some(first), Some(last)) = (self.entries.get(first), self.entries.back()) else { return now <= latest };
        let after = self.pauses.partition_point(|pause| pause.until <= first.at);
        let longest = self.pauses.get(after).map_or(0, |pause| pause.length);
        let longest = longest.max(now - last.at);
        first.at <= latest && longest <= gap
    }

    /// Pending of the newest sample, confirmed.
    fn confirmed_now(&self) -> Option<Resources> {
        let newest = self.entries.back()?;
        let (mut pending, by) = (newest.sample.pending, newest.at - CONFIRM);
        for earlier in self.entries.iter().rev().skip(1) {
            pending = pending.min(earlier.sample.pending);
            if earlier.at <= by {
                return Some(pending);
            }
        }
        None
    }
}

impl PartialEq for History {
    /// By the samples: what was pushed out of one and never was in the other makes no difference to either.
    fn eq(&self, other: &Self) -> bool {
        let samples = |history: &Self| history.entries.len();
        samples(self) == samples(other) && self.entries.iter().zip(&other.entries).all(|(a, b)| a.sample == b.sample)
    }
}

/// The history as it is written down.
#[derive(Serialize, Deserialize)]
struct Samples {
    samples: VecDeque<Sample>,
}

impl From<History> for Samples {
    fn from(history: History) -> Self {
        Self { samples: history.entries.iter().map(|entry| entry.sample).collect() }
    }
}

impl From<Samples> for History {
    fn from(written: Samples) -> Self {
        let mut history = Self::default();
        written.samples.into_iter().for_each(|sample| history.append(sample));
        history
    }
}
