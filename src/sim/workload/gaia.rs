//! Traces as GAIA samples them from Alibaba's PAI: `arrival_time,length,cpus` in seconds (Weng et al., NSDI 2022;
//! Hanafy et al., ASPLOS 2024).
//!
//! A row is a gang of `cpus` containers of one core each and no application master: GAIA's jobs keep their cores from
//! their start to their end. A part of a core is a whole one, counted. Time counts from the first row. Rows without cores
//! or without length are left out and counted. Jobs are named after their lines.

use std::sync::Arc;

use super::{
    Job, TaskGroup, TraceError, TraceNote, TraceSource, Work,
    table::{BadRow, Row, Table},
};
use crate::sim::{Ms, random::to_ms};

const FIELDS: [&str; 3] = ["arrival_time", "length", "cpus"];

/// The jobs, in the order of the file.
///
/// # Errors
/// A wrong header, too many bad rows.
pub fn read(source: &TraceSource, text: &str) -> Result<(Vec<Job>, TraceNote), TraceError> {
    let mut table = Table::with_header(&source.file, text, &FIELDS)?;
    let mut found: Vec<(Ms, u32, Ms, u64)> = Vec::new();
    let (mut idle, mut short, mut rounded) = (0, 0, 0);
    while let Some(row) = table.next_row() {
        match read_row(&row) {
            Err(bad) => table.bad(&bad),
            Ok((_, 0.0, _)) => idle += 1,
            Ok((_, _, 0)) => short += 1,
            Ok((at, cpus, length)) => {
                rounded += usize::from(cpus.fract() > 0.0);
                found.push((at, whole(cpus), length, row.line()));
            }
        }
    }
    table.note.leave_out(idle, "asked for no core");
    table.note.leave_out(short, "worked for no time");
    table.note.change(rounded, "ask for a part of a core and get a whole one");
    let note = table.finish()?;
    let first = found.iter().map(|(at, ..)| *at).min().unwrap_or(0);
    let worker: Arc<str> = "worker".into();
    let application_type: Arc<str> = "PAI".into();
    let jobs = found.into_iter().map(|(at, containers, duration_ms, line)| Job {
        name: format!("pai-{line}").into(),
        application_type: application_type.clone(),
        queue: source.queue.clone(),
        submit_ms: at - first,
        master: None,
        work: Work::Gang {
            groups: vec![TaskGroup { name: worker.clone(), containers, resources: source.container }],
            duration_ms,
        },
        on_loss: source.on_loss,
    });
    Ok((jobs.collect(), note))
}

/// So many whole cores.
fn whole(cpus: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a million")]
    let cores = libm::ceil(cpus) as u32;
    cores
}

fn read_row(row: &Row) -> Result<(Ms, f64, Ms), BadRow> {
    let (at, length, cpus) = (row.number("arrival_time")?, row.number("length")?, row.number("cpus")?);
    if cpus > 1e6 {
        return Err(row.not("cpus", "a number up to 1000000"));
    }
    Ok((to_ms(at * 1000.0), cpus, to_ms(length * 1000.0)))
}
