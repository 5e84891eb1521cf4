//! Distributions and weights of a generator, from as written to as meant.

use std::time::Duration;

use super::{
    Draw, Job, Work,
    check::LONGEST,
    spec::{DrawSpec, LawSpec, ParetoSpec, SizesSpec},
};
use crate::{
    policy::{checker::Checker, duration, field::Field, spans::Path, spec::DurationSpec},
    sim::{Ms, ms},
};

/// How many weights; each must be a number of 0 or more, and one of them more than 0. All 1 where none are written.
pub fn weights<const N: usize>(c: &mut Checker<'_>, path: &Path, field: &Field<Vec<Field<f64>>>) -> Option<[f64; N]> {
    if matches!(field, Field::Absent) {
        return Some([1.0; N]);
    }
    let items = c.read(path, field)?;
    let weights: Vec<_> = items.iter().enumerate().map(|(n, item)| weight(c, &path.index(n), item)).collect();
    let found = weights.len();
    let Ok(weights) = <[Option<f64>; N]>::try_from(weights) else {
        c.out_of_range(path, &format!("a list of {N} weights"), format!("{found} of them"));
        return None;
    };
    let weights: Vec<f64> = weights.into_iter().collect::<Option<_>>()?;
    any_weight(c, path, &weights)?;
    weights.try_into().ok()
}

fn weight(c: &mut Checker<'_>, path: &Path, field: &Field<f64>) -> Option<f64> {
    if matches!(field, Field::Absent) {
        c.error("wrong-type", path, format!("`{path}` is empty"), |error| error.help("write 0 for no weight"));
    }
    let weight = c.read(path, field)?;
    if !(0.0..=1e12).contains(&weight) {
        c.out_of_range(path, "0 or more", weight);
        return None;
    }
    Some(weight)
}

fn any_weight(c: &mut Checker<'_>, path: &Path, weights: &[f64]) -> Option<()> {
    if weights.iter().any(|weight| *weight > 0.0) {
        return Some(());
    }
    c.error("no-weight", path, format!("`{path}` has no weight above 0"), |error| {
        error.help("at least one must be more than 0")
    });
    None
}

/// Sizes of a gang's first group, with weights.
pub fn sizes(c: &mut Checker<'_>, path: &Path, field: &Field<SizesSpec>, job: Option<&Job>) -> Option<Vec<(u32, f64)>> {
    if matches!(field, Field::Absent) {
        return Some(Vec::new());
    }
    let SizesSpec(written) = c.read(path, field)?;
    if job.is_some_and(|job| !matches!(job.work, Work::Gang { .. })) {
        c.error("not-of-this-kind", path, format!("`{path}` is for gangs only"), |error| error.help("remove it"));
        return None;
    }
    let mut sizes = Vec::new();
    for (size, field) in &written {
        let path = path.key(size);
        let weight = weight(c, &path, field);
        match size.parse::<u32>() {
            Ok(size) if (1..=1_000_000).contains(&size) => sizes.extend(weight.map(|weight| (size, weight))),
            _ => {
                let message = format!("`{size}` is no number of containers");
                let span = c.spans.place(&path).key;
                c.error("wrong-type", &path, message, |error| crate::policy::Diagnostic { span, ..error });
            }
        }
    }
    // What is wrong has been told.
    if sizes.len() != written.len() {
        return None;
    }
    // As numbers, not as text: 2 before 10.
    sizes.sort_by_key(|(size, _)| *size);
    any_weight(c, path, &sizes.iter().map(|(_, weight)| *weight).collect::<Vec<_>>())?;
    Some(sizes)
}

/// A distribution; `None` also where none is written.
pub fn draw(c: &mut Checker<'_>, path: &Path, field: &Field<DrawSpec>) -> Option<Draw> {
    match c.read(path, field)? {
        DrawSpec::Fixed(time) => Some(Draw::Fixed(length(c, path, &Field::Value(time))?)),
        DrawSpec::Law(law) => self::law(c, path, &law),
    }
}

fn law(c: &mut Checker<'_>, path: &Path, law: &LawSpec) -> Option<Draw> {
    let is_log_normal = !matches!((&law.median, &law.p95), (Field::Absent, Field::Absent));
    let given = [!matches!(law.exponential, Field::Absent), is_log_normal, !matches!(law.pareto, Field::Absent)];
    if given.iter().filter(|given| **given).count() != 1 {
        let message = format!("`{path}` must be one distribution");
        c.error("one-distribution", path, message, |error| {
            error.help(
                "write `{exponential: 10m}`, `{median: 10m, p95: 2h}` or `{pareto: {min: 1m, max: 1d, alpha: 1}}`",
            )
        });
        return None;
    }
    if is_log_normal {
        let (median_ms, p95_ms) = tail(c, path, &law.median, &law.p95)?;
        return Some(Draw::LogNormal { median_ms, p95_ms });
    }
    if let Some(pareto) = c.read(&path.key("pareto"), &law.pareto) {
        return self::pareto(c, &path.key("pareto"), &pareto);
    }
    Some(Draw::Exponential(length(c, &path.key("exponential"), &law.exponential)?))
}

/// A median and a 95th percentile that is not below it, in milliseconds.
pub fn tail(
    c: &mut Checker<'_>,
    path: &Path,
    median: &Field<DurationSpec>,
    p95: &Field<DurationSpec>,
) -> Option<(Ms, Ms)> {
    c.missing(&path.key("median"), median);
    c.missing(&path.key("p95"), p95);
    let median = length(c, &path.key("median"), median);
    let p95 = length(c, &path.key("p95"), p95);
    in_order(c, path, ("median", median?), ("p95", p95?))
}

fn pareto(c: &mut Checker<'_>, path: &Path, spec: &ParetoSpec) -> Option<Draw> {
    let ParetoSpec { min, max, alpha } = spec;
    c.missing(&path.key("min"), min);
    c.missing(&path.key("max"), max);
    c.missing(&path.key("alpha"), alpha);
    let (min, max) = (length(c, &path.key("min"), min), length(c, &path.key("max"), max));
    let alpha = c.number(&path.key("alpha"), alpha, 0.01..=100.0);
    let (min_ms, max_ms) = in_order(c, path, ("min", min?), ("max", max?))?;
    Some(Draw::Pareto { min_ms, max_ms, alpha: alpha? })
}

fn in_order(c: &mut Checker<'_>, path: &Path, low: (&str, Ms), high: (&str, Ms)) -> Option<(Ms, Ms)> {
    if low.1 <= high.1 {
        return Some((low.1, high.1));
    }
    let text = |ms| duration::format(Duration::from_millis(ms));
    let (low_path, high_path) = (path.key(low.0), path.key(high.0));
    let message = format!("`{low_path}` ({}) is longer than `{high_path}` ({})", text(low.1), text(high.1));
    c.error("min-above-max", &low_path, message, |error| error);
    None
}

fn length(c: &mut Checker<'_>, path: &Path, field: &Field<DurationSpec>) -> Option<Ms> {
    c.duration(path, field, Duration::from_millis(1)..=LONGEST).map(ms)
}
