//! The figures for programs: CSV and JSON, always in the same order.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    elasticity::Speedup,
    figures::Figures,
    names::{self, CONVENTIONS},
};

/// A header and a row for each run: scenario, policy, seed, then every named figure; empty where a run has none. Times
/// are in seconds.
pub fn csv(runs: &[Figures]) -> String {
    let mut text = String::from("scenario,policy,seed");
    for named in names::all() {
        text.push(',');
        text += named.name;
    }
    text.push('\n');
    for run in runs {
        text += &format!("{},{},{}", field(&run.scenario), field(&run.policy), run.seed);
        for named in names::all() {
            text.push(',');
            text += &(named.value)(run).map(|value| value.to_string()).unwrap_or_default();
        }
        text.push('\n');
    }
    text
}

/// As RFC 4180 has it.
fn field(text: &str) -> String {
    let quoted = text.contains(['"', ',', '\n', '\r']);
    if quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into() }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    runs: Vec<OneRun<'a>>,
    /// Of each run but the first, over the first.
    speedups: Vec<Speedup>,
    conventions: Vec<&'a str>,
}

#[derive(Serialize)]
struct OneRun<'a> {
    /// By the names that scenarios use; those that this run has.
    figures: BTreeMap<&'static str, f64>,
    details: &'a Figures,
}

/// Everything that was computed, with the conventions; and the elastic speedup of each further run over the first.
///
/// # Errors
/// None that data like this can cause.
pub fn json(runs: &[Figures]) -> serde_json::Result<String> {
    let speedups = runs.split_first().map(|(first, others)| others.iter().map(|run| run.speedup_over(first)).collect());
    let conventions = CONVENTIONS.iter().map(|convention| convention.text).collect();
    let named = |run| names::all().filter_map(move |named| Some((named.name, (named.value)(run)?))).collect();
    let runs = runs.iter().map(|details| OneRun { figures: named(details), details }).collect();
    let document = Document { runs, speedups: speedups.unwrap_or_default(), conventions };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}
