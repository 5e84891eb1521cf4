//! A bounded window of samples drawn from observations: the basic algorithm averages over it.

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Resources;

/// Two looks at pending that are nearer than this tell nothing new: applications send their asks anew with every
/// heartbeat, and for a second or two YARN counts some of them twice.
pub const CONFIRM_AFTER: Duration = Duration::from_secs(2);

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

/// Samples, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl History {
    /// Adds a sample and forgets those older than `keep` before it. A sample that is not newer than the last one
    /// (a clock set back) starts the history anew.
    pub fn push(&mut self, sample: Sample, keep: Duration) {
        if self.samples.back().is_some_and(|last| last.at >= sample.at) {
            self.samples.clear();
        }
        // At a fast pace a long window is thinned rather than cut short: one that is never full would never shrink.
        let spacing = keep * 2 / SAMPLES_MAX;
        let before = self.samples.len().checked_sub(2).and_then(|index| self.samples.get(index));
        if before.is_some_and(|before| sample.at < before.at + spacing) {
            self.samples.pop_back();
        }
        self.samples.push_back(sample);
        let too_many = |samples: &VecDeque<Sample>| samples.len() > SAMPLES_MAX as usize;
        while too_many(&self.samples) || self.samples.front().is_some_and(|first| first.at + keep < sample.at) {
            self.samples.pop_front();
        }
    }

    /// The newest sample.
    pub fn latest(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// Whether there was a look before the newest one that can confirm what it shows.
    pub fn is_confirmed(&self) -> bool {
        self.samples.len().checked_sub(1).and_then(|newest| self.confirmed(newest)).is_some()
    }

    /// Samples at or after `from`, oldest first, their pending confirmed: the least of what was seen in this sample
    /// and in those back to the nearest one at least `CONFIRM_AFTER` older. Pending that only one look has shown
    /// is not yet demand; a sample with nothing before it to confirm it tells nothing, and is left out.
    pub fn confirmed_since(&self, from: DateTime<Utc>) -> Vec<Sample> {
        let first = self.samples.partition_point(|sample| sample.at < from);
        (first..self.samples.len()).filter_map(|index| self.confirmed(index)).collect()
    }

    /// Whether there is a sample of this instant or of before.
    pub fn reaches_back_to(&self, at: DateTime<Utc>) -> bool {
        self.samples.front().is_some_and(|first| first.at <= at)
    }

    /// Whether samples reach back to `from`, with no gap longer than `gap`.
    pub fn covers(&self, from: DateTime<Utc>, now: DateTime<Utc>, gap: Duration) -> bool {
        let times = self.samples.iter().map(|sample| sample.at).filter(|at| *at + gap >= from);
        let mut reached = None;
        for at in times.chain([now]) {
            match reached {
                None if at > from + gap => return false,
                Some(before) if at > before + gap => return false,
                _ => reached = Some(at),
            }
        }
        reached.is_some()
    }

    fn confirmed(&self, index: usize) -> Option<Sample> {
        let mut sample = self.samples[index];
        for earlier in self.samples.range(..index).rev() {
            sample.pending = sample.pending.min(earlier.pending);
            if earlier.at + CONFIRM_AFTER <= sample.at {
                return Some(sample);
            }
        }
        None
    }
}
