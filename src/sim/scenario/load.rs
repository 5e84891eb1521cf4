//! From the text of a scenario file to a [`Scenario`], or to everything that is wrong with it at once. Reads no file.

use schemars::Schema;

use super::{Scenario, check, spec::ScenarioSpec};
use crate::policy::{
    Diagnostic,
    checker::Checker,
    document::{self, Kind, in_order},
    schema::schema_of,
    spans::Path,
};

/// A scenario file.
const KIND: Kind =
    Kind { empty: "the file holds no scenario", needs: "it needs `cloud` and `workload`", schema, known_elsewhere };

/// The JSON Schema (draft 7, which every YAML editor knows) of a scenario file. An editor that follows it writes a file
/// that is at least well-formed; what hangs together across fields only `validate` sees.
pub fn schema() -> Schema {
    schema_of::<ScenarioSpec>("yarn-autoscaler scenario")
}

/// Reads a scenario file's text: the scenario, and warnings in the order of the file.
///
/// # Errors
/// All errors of the file (the first hundred), in its order. Where the text is no YAML that we read, only those of its
/// syntax.
pub fn load(text: &str) -> Result<(Scenario, Vec<Diagnostic>), Vec<Diagnostic>> {
    let spans = document::spans(text)?;
    let mut errors = Vec::new();
    let spec = document::read::<ScenarioSpec>(text, &spans, &KIND, &mut errors);
    let mut checker = Checker::new(&spans);
    let scenario = spec.and_then(|spec| check::check(&mut checker, &spec));
    errors.extend(checker.errors);
    match scenario {
        Some(scenario) if errors.is_empty() => Ok((scenario, in_order(checker.warnings))),
        _ => Err(in_order(errors)),
    }
}

/// Whether a text looks like a scenario rather than like a policy: it has `workload` at its top level.
pub fn looks_like_one(text: &str) -> bool {
    document::spans(text).is_ok_and(|spans| spans.get(&Path::of(&["workload"])).is_some())
}

/// Fields of a policy, which somebody may look for here.
fn known_elsewhere(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "workerConfig" | "secondaryWorkerConfig" | "basicAlgorithm" => {
            Some(("a scenario names its policy file and holds no policy", "write `policy: file.yaml`"))
        }
        _ => None,
    }
}
