//! Which workers go: those whose going costs the applications least.

use std::{cmp::Reverse, collections::BTreeMap};

use super::survey::Worker;
use crate::model::Observation;

/// Orders candidates for leaving: first the idle, then those without an application master, then those with fewest
/// containers and least memory in use; among equals the highest name, so that the first workers stay.
pub fn cheapest_first<'a>(observation: &Observation, mut candidates: Vec<Worker<'a>>) -> Vec<Worker<'a>> {
    // Counted once, not at each comparison: a thousand workers and some hundred applications are not rare.
    let mut masters = BTreeMap::<&str, usize>::new();
    for host in observation.applications.iter().filter_map(|app| app.master_host.as_deref()) {
        *masters.entry(host).or_insert(0) += 1;
    }
    candidates.sort_by_cached_key(|worker| {
        let (containers, memory_mb) = worker.node.map_or((0, 0), |node| (node.containers, node.used.memory_mb));
        let masters = masters.get(worker.instance.host.as_str()).copied().unwrap_or(0);
        (masters, containers, memory_mb, Reverse(natural(&worker.instance.name)))
    });
    candidates
}

/// A name with its trailing number apart, so that `worker-10` comes after `worker-9`.
fn natural(name: &str) -> (&str, u64, &str) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem, number.parse().unwrap_or(0), name)
}
