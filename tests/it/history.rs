//! What the window of samples keeps, confirms and covers, through its public functions.

use std::time::Duration;

use proptest::{collection::vec, prelude::*, sample::select};
use yarn_autoscaler::model::{CONFIRM_AFTER, History, Resources, Sample};

use crate::fixtures::{at, noon, secs};

const DAY: Duration = secs(86_400);

fn sample(second: f64, pending_mb: u64) -> Sample {
    let (pending, capacity) = (Resources::new(pending_mb, pending_mb / 1024, 0), Resources::new(8192, 8, 1));
    Sample { at: at(second), pending, capacity, allocated: Resources::default() }
}

fn history(samples: &[(f64, u64)]) -> History {
    let mut history = History::default();
    samples.iter().for_each(|(second, pending_mb)| history.push(sample(*second, *pending_mb), secs(1000)));
    history
}

/// Pending of each confirmed sample, in MB: by itself as it comes, and in the sum of all.
fn confirmed(samples: &[(f64, u64)]) -> Vec<u64> {
    let mut pending = Vec::new();
    for end in 1..=samples.len() {
        let (all, before) = (history(&samples[..end]).window(at(-1e6)), history(&samples[..end - 1]).window(at(-1e6)));
        assert_eq!(all.pending.memory_mb, u128::from(pending.iter().sum::<u64>() + all.latest.memory_mb));
        assert_eq!(all.capacity.memory_mb, 8192 * all.samples as u128);
        if all.samples > before.samples {
            pending.push(all.latest.memory_mb);
        }
    }
    pending
}

#[test]
fn pending_is_the_least_of_two_looks_two_seconds_apart() {
    assert_eq!(confirmed(&[(0.0, 0), (2.5, 100), (5.0, 100), (7.5, 50)]), [0, 100, 50]);
}

#[test]
fn looks_nearer_than_two_seconds_confirm_nothing_but_can_deny() {
    assert_eq!(confirmed(&[(0.0, 100), (1.9, 100)]), [0_u64; 0], "too near");
    assert_eq!(confirmed(&[(0.0, 100), (2.0, 100)]), [100], "just far enough");
    assert_eq!(confirmed(&[(0.0, 100), (1.0, 30), (2.0, 100)]), [30], "the look between counts");
    assert_eq!(confirmed(&[(0.0, 100), (0.5, 100), (1.0, 100), (1.5, 100), (2.0, 100), (2.5, 100)]), [100, 100]);
}

#[test]
fn each_resource_is_confirmed_by_itself() {
    let mut history = History::default();
    for (second, pending) in [(0.0, Resources::new(100, 1, 2)), (3.0, Resources::new(50, 2, 1))] {
        history.push(Sample { pending, ..sample(second, 0) }, DAY);
    }
    assert_eq!(history.window(at(-1.0)).latest, Resources::new(50, 1, 1));
}

#[test]
fn the_first_sample_tells_nothing_of_what_is_pending() {
    assert_eq!(confirmed(&[(0.0, 100)]), [0_u64; 0]);
}

#[test]
fn a_sample_of_before_the_window_confirms_one_in_it() {
    let history = history(&[(-2.5, 100), (0.0, 100)]);
    let window = history.window(noon());
    assert_eq!((window.samples, window.latest.memory_mb), (1, 100));
}

#[test]
fn the_window_begins_at_its_first_instant() {
    let history = history(&[(-5.0, 1), (-2.5, 1), (0.0, 1), (2.5, 1)]);
    assert_eq!(history.window(at(0.0)).samples, 2);
    assert_eq!(history.window(at(0.001)).samples, 1);
    assert_eq!(history.window(at(3.0)).samples, 0);
}

#[test]
fn covers_a_window_without_gaps() {
    let full: Vec<_> = (0..=48).map(|i| (f64::from(i) * 2.5, 0)).collect();
    let covers = |samples: &[(f64, u64)], from: f64, now: f64| history(samples).covers(at(from), at(now), secs(10));
    assert!(covers(&full, 0.0, 120.0));
    assert!(covers(&full, -10.0, 120.0), "a first sample within one gap of the beginning");
    assert!(!covers(&full, -10.1, 120.0), "a first sample that is later");
    assert!(covers(&full, 0.0, 130.0), "a last sample one gap ago");
    assert!(!covers(&full, 0.0, 130.1), "an outage that goes on");
    assert!(covers(&[(0.0, 0), (10.0, 0), (20.0, 0)], 0.0, 20.0), "gaps of just the allowed length");
    assert!(!covers(&[(0.0, 0), (10.1, 0), (20.0, 0)], 0.0, 20.0), "a gap that is longer");
    assert!(!covers(&[], 0.0, 120.0), "no sample at all");
    assert!(history(&full).reaches_back_to(at(0.0)) && !history(&full).reaches_back_to(at(-0.1)));
    let but_some: Vec<_> = full.iter().copied().filter(|(second, _)| !(40.0..60.0).contains(second)).collect();
    assert!(!covers(&but_some, 0.0, 120.0), "an outage in the middle");
}

#[test]
fn a_clock_set_back_starts_anew() {
    let mut history = history(&[(0.0, 1), (2.5, 1), (5.0, 1)]);
    history.push(sample(1.0, 7), DAY);
    assert_eq!(history, self::history(&[(1.0, 7)]));
    assert_eq!(history.latest().map(|sample| sample.pending.memory_mb), Some(7));
}

#[test]
fn what_is_older_than_asked_for_is_forgotten() {
    let mut history = History::default();
    (0..100).for_each(|i| history.push(sample(f64::from(i), 1), secs(10)));
    assert_eq!(history.window(at(-1.0)).samples, 11 - 2, "eleven samples, of which two confirm others only");
}

#[test]
fn memory_is_bounded_however_long_the_window_and_however_fast_the_pace() {
    let mut history = History::default();
    (0..50_000).for_each(|i| history.push(sample(f64::from(i), 1), secs(10_000_000)));
    assert!(history.window(at(-1.0)).samples <= 40_000);
    assert!(history.latest().is_some_and(|sample| sample.at == at(49_999.0)));
}

#[test]
fn a_day_is_covered_at_a_fast_pace_too() {
    let mut history = History::default();
    (0..=86_400).for_each(|i| history.push(sample(f64::from(i), 1), DAY + secs(4)));
    assert!(history.covers(at(0.0), at(86_400.0), secs(4)), "a window that is never full would never shrink");
    assert!(history.window(at(0.0)).samples <= 40_000);
}

/// What the sums and pauses that are kept stand for, from the samples themselves.
fn spelt_out(samples: &[Sample], from: f64) -> (usize, u128, u64) {
    let confirmed = |index: usize| {
        let mut pending = samples[index].pending.memory_mb;
        for earlier in samples[..index].iter().rev() {
            pending = pending.min(earlier.pending.memory_mb);
            if earlier.at + CONFIRM_AFTER <= samples[index].at {
                return Some(pending);
            }
        }
        None
    };
    let in_window = (0..samples.len()).filter(|index| samples[*index].at >= at(from));
    let pending: Vec<_> = in_window.filter_map(confirmed).collect();
    (pending.len(), pending.iter().copied().map(u128::from).sum(), pending.last().copied().unwrap_or(0))
}

fn covers_spelt_out(samples: &[Sample], from: f64, now: f64, gap: Duration) -> bool {
    let near = samples.iter().map(|sample| sample.at).filter(|time| *time + gap >= at(from));
    let times: Vec<_> = near.chain([at(now)]).collect();
    times[0] <= at(from) + gap && times.windows(2).all(|pair| pair[1] <= pair[0] + gap)
}

proptest! {
    #[test]
    fn what_is_kept_beside_the_samples_says_what_they_say(
        pauses in vec((prop_oneof![8 => Just(2.5), 1 => 0.1..3.0_f64, 1 => 3.0..40.0_f64], 0..3_u64), 1..80),
        keep in select(vec![10_u64, 60, 1_000, 100_000]),
        (back, gap) in (0.0..200.0_f64, 1..30_u64),
    ) {
        let (mut history, mut second) = (History::default(), 0.0);
        for (pause, pending) in pauses {
            second += pause;
            history.push(sample(second, pending * 100), secs(keep));
            let written = serde_json::to_value(&history)?;
            let samples: Vec<Sample> = serde_json::from_value(written["samples"].clone())?;
            let again: History = serde_json::from_value(written)?;
            prop_assert_eq!(&again, &history);
            for from in [second - back, second - 2.5, second - 120.0] {
                let window = history.window(at(from));
                prop_assert_eq!(again.window(at(from)), window);
                let kept = (window.samples, window.pending.memory_mb, window.latest.memory_mb);
                prop_assert_eq!(kept, spelt_out(&samples, from));
                for now in [second, second + 5.0] {
                    let covers = history.covers(at(from), at(now), secs(gap));
                    prop_assert_eq!(covers, covers_spelt_out(&samples, from, now, secs(gap)));
                }
            }
            let uniform = samples.iter().all(|sample| sample.is_like(&samples[0]));
            prop_assert_eq!(history.is_uniform(), uniform);
            prop_assert_eq!(history.is_confirmed(), spelt_out(&samples, second).0 == 1);
        }
    }
}
