//! What a scenario expects of a run, held against its figures.

use std::fmt;

use super::{figures::Figures, names};
use crate::sim::scenario::Expectation;

/// An expectation that a run did not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Which figure.
    pub figure: String,
    /// What it was; `None`: the run has none, or there is no such figure.
    pub value: Option<f64>,
    /// What is wrong, as a sentence.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The expectations that were not met, in their order.
pub fn check_expectations(expectations: &[Expectation], figures: &Figures) -> Vec<Failure> {
    expectations.iter().filter_map(|expectation| check(expectation, figures)).collect()
}

fn check(expectation: &Expectation, figures: &Figures) -> Option<Failure> {
    let Expectation { figure, min, max } = expectation;
    let failed = |value, text| Some(Failure { figure: figure.clone(), value, text });
    let Some(named) = names::all().find(|named| named.name == figure.as_str()) else {
        let known: Vec<_> = names::all().map(|named| named.name).collect();
        let close = known.iter().max_by(|a, b| strsim::jaro(a, figure).total_cmp(&strsim::jaro(b, figure)));
        let hint = close.map(|name| format!(": did you mean `{name}`?")).unwrap_or_default();
        return failed(None, format!("there is no figure `{figure}`{hint}"));
    };
    let policy = &figures.policy;
    let Some(value) = (named.value)(figures) else {
        return failed(None, format!("under {policy} there is no `{figure}` to hold against what is expected"));
    };
    let show = |value: f64| match named.unit.word() {
        "s" => format!("{value} s"),
        _ => value.to_string(),
    };
    let wrong = match (min, max) {
        (Some(min), _) if value < *min => format!("at least {}", show(*min)),
        (_, Some(max)) if value > *max => format!("at most {}", show(*max)),
        _ => return None,
    };
    failed(Some(value), format!("under {policy} `{figure}` is {}, expected {wrong}", show(value)))
}
