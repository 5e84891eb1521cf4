//! Which workers go: those whose going costs the applications least.

use super::roster::Worker;
use crate::model::Observation;

/// Orders candidates for leaving: first the idle, then those without an application master, then those with fewest
/// containers and least memory in use; among equals the highest name, so that the first workers stay.
pub fn cheapest_first<'a>(observation: &Observation, mut candidates: Vec<Worker<'a>>) -> Vec<Worker<'a>> {
    candidates.sort_by(|a, b| {
        let cost = |worker: &Worker<'_>| {
            let (containers, memory_mb) = worker.node.map_or((0, 0), |node| (node.containers, node.used.memory_mb));
            (observation.application_masters(&worker.instance.host), containers, memory_mb)
        };
        cost(a).cmp(&cost(b)).then_with(|| natural(&b.instance.name).cmp(&natural(&a.instance.name)))
    });
    candidates
}

/// A name with its trailing number apart, so that `worker-10` comes after `worker-9`.
fn natural(name: &str) -> (&str, u64, &str) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem, number.parse().unwrap_or(0), name)
}
