//! Traces of Microsoft's Philly cluster, whose jobs ran under YARN: `timestamp,duration,num_gpus,gpu_time,cluster`, of
//! several virtual clusters (Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training
//! Workloads", USENIX ATC 2019).
//!
//! A row is a gang of `num_gpus` containers with a GPU each and no application master, which works for `duration`
//! seconds, and is named after its line; `gpu_time` is their product and is not read. Time counts from the cluster's first row. Rows without GPUs or
//! without duration did no work that could be played: they are left out and counted.

use std::{collections::BTreeMap, sync::Arc};

use chrono::NaiveDateTime;

use super::{
    Job, TaskGroup, TraceError, TraceNote, TraceSource, Work,
    table::{BadRow, Row, Table},
};
use crate::{
    policy::spelling,
    sim::{Ms, random::to_ms},
};

const FIELDS: [&str; 4] = ["timestamp", "duration", "num_gpus", "cluster"];

/// YARN's application type of these jobs; Philly's own framework was called so by nobody but its users.
const APPLICATION_TYPE: &str = "PHILLY";

/// The virtual clusters of a text, with their rows, by name.
///
/// # Errors
/// A wrong header.
pub fn clusters(file: &str, text: &str) -> Result<BTreeMap<String, usize>, TraceError> {
    let mut table = Table::with_header(file, text, &FIELDS)?;
    let mut clusters = BTreeMap::new();
    while let Some(row) = table.next_row() {
        if let Ok(name) = row.text("cluster") {
            *clusters.entry(name.to_string()).or_default() += 1;
        }
    }
    Ok(clusters)
}

/// The jobs of one virtual cluster, in the order of the file.
///
/// # Errors
/// A wrong header, no choice among several virtual clusters, too many bad rows.
pub fn read(source: &TraceSource, text: &str) -> Result<(Vec<Job>, TraceNote), TraceError> {
    let cluster = cluster(source, text)?;
    let mut table = Table::with_header(&source.file, text, &FIELDS)?;
    let mut found: Vec<(i64, u32, Ms, u64)> = Vec::new();
    let (mut idle, mut short) = (0, 0);
    while let Some(row) = table.next_row() {
        if row.text("cluster").is_ok_and(|name| name != cluster) {
            table.skip();
            continue;
        }
        match read_row(&row) {
            Err(bad) => table.bad(&bad),
            Ok((_, 0, _)) => idle += 1,
            Ok((_, _, 0)) => short += 1,
            Ok((at, gpus, duration_ms)) => found.push((at, gpus, duration_ms, row.line())),
        }
    }
    table.note.leave_out(idle, "asked for no GPU");
    table.note.leave_out(short, "worked for no time");
    let note = table.finish()?;
    let first = found.iter().map(|(at, ..)| *at).min().unwrap_or(0);
    let worker: Arc<str> = "worker".into();
    let application_type: Arc<str> = APPLICATION_TYPE.into();
    let jobs = found.into_iter().map(|(at, containers, duration_ms, line)| Job {
        name: format!("{cluster}-{line}").into(),
        application_type: application_type.clone(),
        queue: source.queue.clone(),
        submit_ms: Ms::try_from(at - first).unwrap_or(0),
        master: None,
        work: Work::Gang {
            groups: vec![TaskGroup { name: worker.clone(), containers, resources: source.container }],
            duration_ms,
        },
        on_loss: source.on_loss,
    });
    Ok((jobs.collect(), note))
}

/// Which virtual cluster is read.
fn cluster(source: &TraceSource, text: &str) -> Result<String, TraceError> {
    let clusters = clusters(&source.file, text)?;
    let names: Vec<_> = clusters.keys().map(String::as_str).collect();
    let listed = clusters.iter().map(|(name, rows)| format!("{name} ({rows} rows)")).collect::<Vec<_>>().join(", ");
    let wrong = |problem: String| TraceError::Cluster { file: source.file.clone(), problem, clusters: listed.clone() };
    match &source.cluster {
        Some(wanted) if clusters.contains_key(wanted) => Ok(wanted.clone()),
        Some(wanted) => {
            let hint = spelling::meant(wanted, &names).map(|name| format!(", did you mean `{name}`?"));
            Err(wrong(format!("there is no virtual cluster `{wanted}`{}", hint.unwrap_or_default())))
        }
        None => match names[..] {
            [] => Err(TraceError::Empty { file: source.file.clone() }),
            [only] => Ok(only.into()),
            _ => Err(wrong("there are several virtual clusters".into())),
        },
    }
}

/// Milliseconds since 1970, GPUs, milliseconds of work.
fn read_row(row: &Row) -> Result<(i64, u32, Ms), BadRow> {
    let at = row.text("timestamp")?;
    let at = NaiveDateTime::parse_from_str(at, "%Y-%m-%d %H:%M:%S");
    let at = at.map_err(|_| row.not("timestamp", "an instant such as `2017-10-09 07:01:55`"))?;
    row.text("cluster")?;
    Ok((at.and_utc().timestamp_millis(), row.count("num_gpus")?, to_ms(row.number("duration")? * 1000.0)))
}
