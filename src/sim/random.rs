//! Chance: one named generator, one stream for each purpose, and the few distributions that the simulator draws from.
//!
//! The same seed gives the same draws on every machine: the generator is PCG XSL RR 128/64 (`Pcg64`, a fixed algorithm),
//! numbers are made of its bits here, and logarithms and powers come from `libm` in Rust, never from the platform's own
//! library, whose last bits differ.

use rand_pcg::{
    Pcg64,
    rand_core::{Rng as _, SeedableRng},
};

use super::{Ms, workload::Draw};

/// The standard normal distribution's 95th percentile.
const Z95: f64 = 1.644_853_626_951_472_2;

/// Longest length of time that is drawn: 100 years.
const MAX_MS: f64 = 100.0 * 365.0 * 86_400_000.0;

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64);

impl Rng {
    /// The stream of this name. Streams of other names, or seeds, have nothing to do with it, so that a purpose that
    /// draws more or less changes no other one.
    pub fn new(seed: u64, stream: &str) -> Self {
        // FNV-1a of the name, then SplitMix64 fills the generator's 256 bits: near seeds must not give near states.
        let name = stream
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        let mut state = seed ^ mix(name);
        let mut bytes = [0; 32];
        for part in bytes.chunks_exact_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            part.copy_from_slice(&mix(state).to_le_bytes());
        }
        Self(Pcg64::from_seed(bytes))
    }

    /// Even in [0, 1): 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Even in (0, 1]: for logarithms.
    fn above_zero(&mut self) -> f64 {
        1.0 - self.uniform()
    }

    /// Even in 0..`n`; 0 where `n` is. Each number as likely as any other, to one part in 2^64 / n.
    pub fn below(&mut self, n: u64) -> u64 {
        let product = u128::from(self.0.next_u64()) * u128::from(n);
        u64::try_from(product >> 64).unwrap_or(0)
    }

    /// Whether something happens that happens with this probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Exponential, by its mean (inverse of the distribution function).
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(self.above_zero())
    }

    /// Standard normal (Box and Muller, 1958; one of the two that it yields).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.above_zero()));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }

    /// Log-normal, by its median and its 95th percentile; where one is not above 0, the median itself.
    pub fn log_normal(&mut self, median: f64, p95: f64) -> f64 {
        let normal = self.normal();
        if median <= 0.0 || p95 <= 0.0 {
            return median;
        }
        median * libm::exp(libm::log(p95 / median) / Z95 * normal)
    }

    /// Pareto between bounds, by its tail's exponent (inverse of the truncated distribution function).
    pub fn pareto(&mut self, min: f64, max: f64, alpha: f64) -> f64 {
        let uniform = self.uniform();
        if min <= 0.0 || max <= min || alpha <= 0.0 {
            return min;
        }
        let rest = 1.0 - libm::pow(min / max, alpha);
        (min * libm::pow(1.0 - uniform * rest, -1.0 / alpha)).min(max)
    }

    /// How many trials until the first success, by their mean; at least 1.
    pub fn geometric(&mut self, mean: f64) -> u32 {
        let draw = self.above_zero();
        if mean <= 1.0 {
            return 1;
        }
        let trials = libm::ceil(libm::log(draw) / libm::log1p(-1.0 / mean)).clamp(1.0, f64::from(u32::MAX));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
        let trials = trials as u32;
        trials
    }

    /// One of these, by their weights; `None` where no weight is above 0.
    pub fn weighted<'a, T>(&mut self, items: &'a [(T, f64)]) -> Option<&'a T> {
        let total: f64 = items.iter().map(|(_, weight)| weight).sum();
        let mut left = self.uniform() * total;
        let mut last = None;
        for (item, weight) in items.iter().filter(|(_, weight)| *weight > 0.0) {
            last = Some(item);
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
        last
    }

    /// A length of time.
    pub fn draw(&mut self, draw: &Draw) -> Ms {
        match *draw {
            Draw::Fixed(ms) => ms,
            Draw::Exponential(mean) => to_ms(self.exponential(mean as f64)),
            Draw::LogNormal { median_ms, p95_ms } => to_ms(self.log_normal(median_ms as f64, p95_ms as f64)),
            Draw::Pareto { min_ms, max_ms, alpha } => to_ms(self.pareto(min_ms as f64, max_ms as f64, alpha)),
        }
    }
}

/// Whole milliseconds, never negative, at most 100 years.
pub fn to_ms(ms: f64) -> Ms {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
    let ms = libm::round(ms.clamp(0.0, MAX_MS)) as Ms;
    ms
}

/// SplitMix64's output function (Steele, Lea and Flood, 2014).
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
