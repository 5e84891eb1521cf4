//! Thins out long step functions for drawing: of each column of equal width the average and the highest value, so that
//! no peak is lost.

use crate::sim::Ms;

/// What a step function did in one column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Column {
    /// Where it begins.
    pub at: Ms,
    /// Its average over time.
    pub mean: f64,
    /// Its highest value, however short.
    pub high: f64,
}

/// So many columns of equal width from 0 to `end_ms`. Each step holds until the next one; before the first one there is
/// nothing: 0.
pub fn columns(steps: &[(Ms, f64)], end_ms: Ms, number: u64) -> Vec<Column> {
    // In integers: the same on any machine.
    let edge =
        |index: u64| Ms::try_from(u128::from(end_ms) * u128::from(index) / u128::from(number.max(1))).unwrap_or(end_ms);
    let (mut next, mut held) = (0, 0.0);
    let mut columns = Vec::new();
    for index in 0..number {
        let (from, until) = (edge(index), edge(index + 1));
        if from == until {
            continue;
        }
        let (mut at, mut sum, mut high) = (from, 0.0, f64::NEG_INFINITY);
        while let Some((change, value)) = steps.get(next).copied().filter(|step| step.0 < until) {
            if change > at {
                sum += held * (change - at) as f64;
                high = high.max(held);
                at = change;
            }
            (held, next) = (value, next + 1);
        }
        let mean = (sum + held * (until - at) as f64) / (until - from) as f64;
        columns.push(Column { at: from, mean, high: high.max(held) });
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_over_time_and_no_peak_is_lost() {
        let steps = [(0, 2.0), (10, 4.0), (15, 0.0), (16, 99.0), (17, 0.0), (35, 7.0)];
        let found = columns(&steps, 40, 4);
        let expected = [(0, 2.0, 2.0), (10, 11.9, 99.0), (20, 0.0, 0.0), (30, 3.5, 7.0)];
        assert_eq!(found, expected.map(|(at, mean, high)| Column { at, mean, high }));
        assert_eq!(columns(&[], 10, 1), [Column { at: 0, mean: 0.0, high: 0.0 }]);
        assert_eq!(columns(&steps, 0, 4), []);
        assert_eq!(columns(&steps, 2, 4).len(), 2, "a column has a length");
    }

    #[test]
    fn thousands_of_steps_keep_their_area_and_their_peak() {
        let steps: Vec<(Ms, f64)> =
            (0..10_000).map(|at| (at, if at == 4444 { 500.0 } else { (at % 7) as f64 })).collect();
        let found = columns(&steps, 10_000, 100);
        let area: f64 = steps.iter().map(|step| step.1).sum();
        assert!((found.iter().map(|column| column.mean * 100.0).sum::<f64>() - area).abs() < 1e-6);
        assert_eq!((found.len(), found[44].high), (100, 500.0));
    }
}
