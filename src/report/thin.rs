//! Thins out long step functions for drawing without losing a peak: of each column the lowest and the highest value.

use crate::sim::Ms;

/// A step function with at most two values in each of so many columns of equal width, from 0 to `end_ms`. One that has
/// no more than that already comes back as it is. In each column the extremes stand in the order in which they came.
pub fn thin(steps: &[(Ms, f64)], end_ms: Ms, columns: u64) -> Vec<(Ms, f64)> {
    let columns = columns.max(1);
    if steps.len() as u64 <= 2 * columns || end_ms < 2 * columns {
        return steps.to_vec();
    }
    // In integers: the same on any machine.
    let edge =
        |half: u64| Ms::try_from(u128::from(end_ms) * u128::from(half) / u128::from(2 * columns)).unwrap_or(end_ms);
    let mut thinned: Vec<(Ms, f64)> = Vec::new();
    let (mut next, mut current) = (0, None);
    for column in 0..columns {
        let (from, until) = (edge(2 * column), edge(2 * column + 2));
        let first = next;
        while steps.get(next).is_some_and(|step| step.0 < until) {
            next += 1;
        }
        let inside = &steps[first..next];
        // What held before counts, unless it changes at the very beginning.
        let held = current.filter(|_| inside.first().is_none_or(|step| step.0 > from));
        let values = held.into_iter().chain(inside.iter().map(|step| step.1));
        let Some((low, high, low_first)) = extremes(values) else { continue };
        let (one, other) = if low_first { (low, high) } else { (high, low) };
        push(&mut thinned, from, one);
        push(&mut thinned, edge(2 * column + 1), other);
        current = inside.last().map(|step| step.1).or(current);
    }
    thinned
}

fn push(steps: &mut Vec<(Ms, f64)>, at: Ms, value: f64) {
    if steps.last().is_none_or(|last| last.1 != value) {
        steps.push((at, value));
    }
}

/// The lowest, the highest, and whether the lowest came first.
fn extremes(values: impl Iterator<Item = f64>) -> Option<(f64, f64, bool)> {
    values.fold(None, |found, value| match found {
        None => Some((value, value, true)),
        Some((low, high, _)) if value > high => Some((low, value, true)),
        Some((low, high, _)) if value < low => Some((value, high, false)),
        found => found,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_steps_stay_as_they_are() {
        let steps = [(0, 1.0), (10, 2.0)];
        assert_eq!(thin(&steps, 100, 1), steps);
        assert_eq!(thin(&[], 100, 1), []);
    }

    #[test]
    fn many_steps_keep_their_peaks() {
        let mut steps: Vec<(Ms, f64)> = (0..10_000).map(|at| (at, f64::from(u32::from(at % 7 == 0)))).collect();
        (steps[4_444].1, steps[7_000].1) = (99.0, -5.0);
        let thinned = thin(&steps, 10_000, 100);
        assert!(thinned.len() <= 200, "{}", thinned.len());
        assert!(thinned.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let near = |value, at: Ms| thinned.iter().any(|step| step.1 == value && step.0.abs_diff(at) <= 100);
        assert!(near(99.0, 4_444) && near(-5.0, 7_000), "{thinned:?}");
        assert_eq!(thinned[0], (0, 0.0));
    }

    #[test]
    fn a_value_that_holds_for_long_is_kept_through_empty_columns() {
        let mut steps: Vec<(Ms, f64)> = (0..500).map(|at| (at, f64::from(u32::from(at % 2 == 0)))).collect();
        steps.push((500, 7.0));
        let thinned = thin(&steps, 10_000, 10);
        assert_eq!(thinned.last().map(|step| step.1), Some(7.0));
    }
}
