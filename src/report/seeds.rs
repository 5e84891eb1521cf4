//! Several runs of the same with other seeds: means and how far they scatter.

use super::{figures::Figures, names};

/// The normal distribution's 97.5th percentile: 95 % of means lie so many standard errors around the true one.
const Z: f64 = 1.96;

/// The mean of a figure over runs, and the half-width of its 95 % confidence interval; `None` where no run has it.
pub fn mean(runs: &[Figures], figure: &str) -> Option<(f64, f64)> {
    let values: Vec<f64> = runs.iter().filter_map(|run| run.figure(figure)).collect();
    let count = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let error = if values.len() > 1 { (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
    Some((mean, Z * error))
}

/// A table of means: a row for each figure that any run has, a column for each policy (`policies` holds the runs of
/// each).
pub fn table_of_means(policies: &[Vec<Figures>]) -> String {
    let mut table = comfy_table::Table::new();
    table.force_no_tty().load_style(comfy_table::presets::NOTHING);
    let name = |runs: &Vec<Figures>| runs.first().map_or(String::new(), |run| run.policy.clone());
    table.set_header(std::iter::once(String::new()).chain(policies.iter().map(name)));
    for named in names::all() {
        let means: Vec<_> = policies.iter().map(|runs| mean(runs, named.name)).collect();
        if means.iter().any(Option::is_some) {
            let cells =
                means.iter().map(|mean| mean.map_or("-".into(), |(mean, half)| format!("{mean:.2} ± {half:.2}")));
            table.add_row(std::iter::once(named.label.to_owned()).chain(cells));
        }
    }
    let runs = policies.iter().map(Vec::len).max().unwrap_or(0);
    format!(
        "{}\n\nMeans over {runs} seeds, and half of their 95 % confidence intervals; times in seconds.",
        table.trim_fmt()
    )
}
