//! All parts of a workload put together, in the order of submission. Pure: the texts of the traces are handed in.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{Job, TraceError, TraceFormat, TraceNote, TraceSource, Workload, gaia, generate, philly, rows, swim};
use crate::sim::{
    Ms,
    scenario::{Queue, WorkloadPlan},
};

/// The jobs of a plan: those written out, then those of each generator, then those of each trace; sorted by submission,
/// equals in that order. Jobs that would come at `end` or later are left out (of traces, with a note).
///
/// `start` is the calendar time of the first instant, which says where the hours of a day are; `texts` are the traces'
/// texts, by the file as the plan names it.
///
/// # Errors
/// A trace whose text is not there or cannot be used: no such virtual cluster, a wrong header, too many bad rows.
pub fn build(
    plan: &WorkloadPlan,
    queues: &[Queue],
    start: DateTime<Utc>,
    seed: u64,
    end: Option<Ms>,
    texts: &BTreeMap<String, String>,
) -> Result<(Workload, Vec<TraceNote>), TraceError> {
    let is_in_time = |job: &Job| end.is_none_or(|end| job.submit_ms < end);
    let mut jobs: Vec<Job> = plan.jobs.iter().filter(|job| is_in_time(job)).cloned().collect();
    for generator in &plan.generators {
        jobs.extend(generate::jobs(generator, start, seed).into_iter().filter(is_in_time));
    }
    let mut notes = Vec::new();
    for source in &plan.traces {
        let text = texts.get(&source.file).ok_or_else(|| TraceError::NoText { file: source.file.clone() })?;
        let (all, mut note) = read(source, queues, text)?;
        let read = all.len();
        let played = all.into_iter().filter_map(|job| {
            let submit_ms = job.submit_ms.checked_sub(source.skip_ms)?;
            Some(Job { submit_ms, ..job })
        });
        let mut played: Vec<_> = played.collect();
        note.leave_out(read - played.len(), "came before the part that is played");
        let begun = played.len();
        played.retain(is_in_time);
        note.leave_out(begun - played.len(), "would come after the end of the scenario");
        note.jobs = played.len();
        jobs.extend(played);
        notes.push(note);
    }
    jobs.sort_by_key(|job| job.submit_ms);
    Ok((Workload { jobs }, notes))
}

fn read(source: &TraceSource, queues: &[Queue], text: &str) -> Result<(Vec<Job>, TraceNote), TraceError> {
    match source.format {
        TraceFormat::Philly => philly::read(source, text),
        TraceFormat::Gaia => gaia::read(source, text),
        TraceFormat::Swim => swim::read(source, text),
        TraceFormat::Rows => rows::read(source, queues, text),
    }
}
