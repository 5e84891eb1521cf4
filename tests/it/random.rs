//! Chance: draws against closed forms, streams that have nothing to do with each other, and the very numbers.

use yarn_autoscaler::sim::{random::Rng, workload::Draw};

const N: u32 = 200_000;

fn rng(stream: &str) -> Rng {
    Rng::new(1, stream)
}

fn sample(stream: &str, mut draw: impl FnMut(&mut Rng) -> f64) -> Vec<f64> {
    let mut rng = rng(stream);
    let mut values: Vec<_> = (0..N).map(|_| draw(&mut rng)).collect();
    values.sort_by(f64::total_cmp);
    values
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &[f64], q: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index, 0 or more")]
    let index = (q * values.len() as f64) as usize;
    values[index]
}

/// Within so many parts of a hundred.
#[track_caller]
fn close(found: f64, expected: f64, percent: f64) {
    assert!((found - expected).abs() <= expected.abs() * percent / 100.0, "{found} is not about {expected}");
}

#[test]
fn uniform_is_even() {
    let values = sample("uniform", Rng::uniform);
    assert!(values[0] >= 0.0 && values[values.len() - 1] < 1.0);
    // The largest distance from the diagonal (Kolmogorov and Smirnov; 1.63 / sqrt(n) at 1 %).
    let n = values.len() as f64;
    let distance = values.iter().enumerate().map(|(i, value)| (value - i as f64 / n).abs()).fold(0.0, f64::max);
    assert!(distance < 1.63 / n.sqrt(), "{distance}");
}

#[test]
fn whole_numbers_are_even() {
    let mut counts = [0_u32; 7];
    let mut rng = rng("below");
    for _ in 0..N {
        counts[usize::try_from(rng.below(7)).unwrap()] += 1;
    }
    counts.iter().for_each(|count| close(f64::from(*count), f64::from(N) / 7.0, 2.0));
    assert_eq!((rng.below(0), rng.below(1)), (0, 0));
}

#[test]
fn exponential_has_its_mean_and_median() {
    let values = sample("exponential", |rng| rng.exponential(600.0));
    close(mean(&values), 600.0, 1.0);
    close(quantile(&values, 0.5), 600.0 * 2_f64.ln(), 1.0);
    close(quantile(&values, 0.99), 600.0 * 100_f64.ln(), 2.0);
}

#[test]
fn normal_has_its_moments() {
    let values = sample("normal", Rng::normal);
    assert!(mean(&values).abs() < 0.01);
    close(values.iter().map(|value| value * value).sum::<f64>() / f64::from(N), 1.0, 1.0);
    close(quantile(&values, 0.95), 1.644_853_6, 1.0);
}

#[test]
fn log_normal_has_its_median_and_percentile() {
    let values = sample("log-normal", |rng| rng.log_normal(180.0, 360.0));
    close(quantile(&values, 0.5), 180.0, 1.0);
    close(quantile(&values, 0.95), 360.0, 1.0);
    let sigma = 2_f64.ln() / 1.644_853_6;
    close(mean(&values), 180.0 * (sigma * sigma / 2.0).exp(), 1.0);
    // A percentile that equals the median is no spread.
    assert_eq!(rng("x").log_normal(5.0, 5.0), 5.0);
}

#[test]
fn pareto_has_its_quantiles_and_bounds() {
    let (min, max, alpha) = (60.0, 86_400.0, 0.9);
    let values = sample("pareto", |rng| rng.pareto(min, max, alpha));
    assert!(values[0] >= min && values[values.len() - 1] <= max);
    let rest = 1.0 - (min / max).powf(alpha);
    for q in [0.1, 0.5, 0.9, 0.99] {
        close(quantile(&values, q), min * (1.0 - q * rest).powf(-1.0 / alpha), 3.0);
    }
    // The truncated mean, for alpha other than 1.
    let expected = alpha / (1.0 - alpha) * min.powf(alpha) * (max.powf(1.0 - alpha) - min.powf(1.0 - alpha)) / rest;
    close(mean(&values), expected, 5.0);
    assert_eq!(rng("x").pareto(5.0, 5.0, 1.0), 5.0);
}

#[test]
fn geometric_has_its_mean_and_begins_at_one() {
    let values = sample("geometric", |rng| rng.geometric(2.5).into());
    close(mean(&values), 2.5, 1.0);
    let ones = values.iter().filter(|value| **value == 1.0).count();
    close(ones as f64, f64::from(N) / 2.5, 1.0);
    assert_eq!((rng("x").geometric(1.0), rng("x").geometric(0.0)), (1, 1));
}

#[test]
fn weights_are_shares() {
    let weights = [(1, 8.0), (2, 0.0), (8, 2.0)];
    let values = sample("weighted", |rng| f64::from(*rng.weighted(&weights).unwrap()));
    close(values.iter().filter(|value| **value == 8.0).count() as f64, f64::from(N) / 5.0, 2.0);
    assert!(!values.contains(&2.0));
    assert_eq!(rng("x").weighted(&[(1, 0.0)]), None);
    assert_eq!(rng("x").weighted::<u32>(&[]), None);
}

#[test]
fn lengths_of_time_are_drawn_by_their_law() {
    let draw = |draw: Draw| sample("draw", |rng| rng.draw(&draw) as f64);
    assert_eq!(quantile(&draw(Draw::Fixed(7)), 0.9), 7.0);
    close(mean(&draw(Draw::Exponential(60_000))), 60_000.0, 1.0);
    close(quantile(&draw(Draw::LogNormal { median_ms: 1000, p95_ms: 9000 }), 0.95), 9000.0, 2.0);
    close(quantile(&draw(Draw::Pareto { min_ms: 1000, max_ms: 1_000_000, alpha: 1.0 }), 0.5), 1998.0, 2.0);
}

#[test]
fn streams_differ_by_seed_and_by_name() {
    let first = |seed, stream| Rng::new(seed, stream).below(u64::MAX);
    let all = [first(1, "a"), first(2, "a"), first(1, "b"), first(2, "b"), first(0, ""), first(1, "ab")];
    let distinct: std::collections::BTreeSet<_> = all.into_iter().collect();
    assert_eq!(distinct.len(), all.len());
    // Neighbours are not correlated.
    let (mut a, mut b) = (rng("boot"), rng("bopt"));
    let product: f64 = (0..N).map(|_| (a.uniform() - 0.5) * (b.uniform() - 0.5)).sum();
    assert!((product / f64::from(N) * 12.0).abs() < 0.01);
}

/// The same numbers on every machine and with every version: an outcome can be repeated years later.
#[test]
fn the_numbers_are_these() {
    let mut rng = Rng::new(42, "golden");
    let whole: Vec<_> = (0..3).map(|_| rng.below(1_000_000)).collect();
    let real = [rng.uniform(), rng.exponential(1.0), rng.normal(), rng.log_normal(1.0, 2.0), rng.pareto(1.0, 9.0, 1.1)];
    insta::assert_debug_snapshot!((whole, real.map(f64::to_bits), rng.geometric(3.0)));
}
