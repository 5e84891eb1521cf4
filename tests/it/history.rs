//! What the window of samples keeps, confirms and covers, through its public functions.

use std::time::Duration;

use yarn_autoscaler::model::{History, Resources, Sample};

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

/// Pending of each confirmed sample, in MB.
fn confirmed(samples: &[(f64, u64)]) -> Vec<u64> {
    history(samples).confirmed_since(at(-1e6)).iter().map(|sample| sample.pending.memory_mb).collect()
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
    let confirmed: Vec<_> = history.confirmed_since(at(-1.0)).iter().map(|sample| sample.pending).collect();
    assert_eq!(confirmed, [Resources::new(50, 1, 1)]);
}

#[test]
fn the_first_sample_tells_nothing_of_what_is_pending() {
    assert_eq!(confirmed(&[(0.0, 100)]), [0_u64; 0]);
}

#[test]
fn a_sample_of_before_the_window_confirms_one_in_it() {
    let history = history(&[(-2.5, 100), (0.0, 100)]);
    let confirmed: Vec<_> = history.confirmed_since(noon()).iter().map(|sample| sample.pending.memory_mb).collect();
    assert_eq!(confirmed, [100]);
}

#[test]
fn the_window_begins_at_its_first_instant() {
    let history = history(&[(-5.0, 1), (-2.5, 1), (0.0, 1), (2.5, 1)]);
    assert_eq!(history.confirmed_since(at(0.0)).len(), 2);
    assert_eq!(history.confirmed_since(at(0.001)).len(), 1);
    assert_eq!(history.confirmed_since(at(3.0)).len(), 0);
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
    assert_eq!(history.confirmed_since(at(-1.0)).len(), 11 - 2, "eleven samples, of which two confirm others only");
}

#[test]
fn memory_is_bounded_however_long_the_window_and_however_fast_the_pace() {
    let mut history = History::default();
    (0..50_000).for_each(|i| history.push(sample(f64::from(i), 1), secs(10_000_000)));
    assert!(history.confirmed_since(at(-1.0)).len() <= 40_000);
    assert!(history.latest().is_some_and(|sample| sample.at == at(49_999.0)));
}

#[test]
fn a_day_is_covered_at_a_fast_pace_too() {
    let mut history = History::default();
    (0..=86_400).for_each(|i| history.push(sample(f64::from(i), 1), DAY + secs(4)));
    assert!(history.covers(at(0.0), at(86_400.0), secs(4)), "a window that is never full would never shrink");
    assert!(history.confirmed_since(at(0.0)).len() <= 40_000);
}
