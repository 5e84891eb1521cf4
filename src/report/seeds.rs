//! Several runs of the same with other seeds: means and how far they scatter.

use comfy_table::{Cell, CellAlignment, Table, presets};

use super::{
    figures::Figures,
    names::SECTIONS,
    words::{NONE, Unit, printable},
};

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
    let mut table = Table::new();
    table.force_no_tty().load_style(presets::NOTHING);
    let name = |runs: &Vec<Figures>| right(runs.first().map_or_else(String::new, |run| printable(&run.policy)));
    table.set_header(std::iter::once(Cell::new("")).chain(policies.iter().map(name)));
    for section in SECTIONS {
        table.add_row([Cell::new(section.title.to_uppercase())]);
        for named in section.figures {
            let means: Vec<_> = policies.iter().map(|runs| mean(runs, named.name)).collect();
            if means.iter().any(Option::is_some) {
                let label = Cell::new(format!("  {}", named.label));
                table.add_row(std::iter::once(label).chain(means.into_iter().map(|mean| shown(named.unit, mean))));
            }
        }
    }
    let runs = policies.iter().map(Vec::len).max().unwrap_or(0);
    let lines: String = table.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    format!("{lines}\nMeans over {runs} seeds, and half of their 95 % confidence intervals.")
}

fn shown(unit: Unit, mean: Option<(f64, f64)>) -> Cell {
    let unit = if matches!(unit, Unit::Count) { Unit::Amount } else { unit };
    right(mean.map_or_else(
        || NONE.to_owned(),
        |(mean, half)| format!("{} ± {}", unit.show(mean), unit.show(half)).replace('\u{202f}', " "),
    ))
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}
