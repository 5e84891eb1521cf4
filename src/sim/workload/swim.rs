//! Traces of SWIM, of Facebook's Hadoop: job, submission and gap in seconds, bytes that maps read, bytes that are
//! shuffled, bytes that are written; tabs, no header (Chen et al., VLDB 2012).
//!
//! The traces tell bytes and no times. Tasks and their times are derived by this rule, whose rates are round figures of
//! what one task of a busy node gets, not measurements; a comparison of policies needs the shape of the load, which the
//! bytes give, more than its scale:
//!
//! * maps: one for each 128 MB of input (HDFS's block), at least one; each reads its share at [`MAP_RATE`] and writes
//!   its share of the shuffle at [`SPILL_RATE`];
//! * reduces: one for each 1 GB of shuffle, at least one where there is shuffle; each fetches its share at
//!   [`SHUFFLE_RATE`] and writes its share of the output at [`WRITE_RATE`];
//! * without shuffle there are maps only, and they write the output;
//! * each task takes [`TASK_START`] more;
//! * at most [`MAX_TASKS`] tasks a stage: the largest jobs have larger tasks instead.
//!
//! Time counts from the first row. A job that moves no byte still has its one map.

use std::sync::Arc;

use super::{
    Job, Stage, TraceError, TraceNote, TraceSource, Work,
    table::{BadRow, Row, Table},
};
use crate::{
    model::Resources,
    sim::{Ms, random::to_ms},
};

/// Bytes of a map's input: HDFS's default block.
pub const SPLIT: f64 = 128.0 * MB;
/// Bytes of a reducer's input: Hive's rule of thumb of its first years (`hive.exec.reducers.bytes.per.reducer`).
pub const REDUCE: f64 = 1024.0 * MB;
/// Bytes a second that a map reads and works on: a disk of 100 MB/s between eight tasks, twice over for the cache. A
/// full block takes 6 s at this rate.
pub const MAP_RATE: f64 = 20.0 * MB;
/// Bytes a second that a map sorts and writes to its own disk.
pub const SPILL_RATE: f64 = 20.0 * MB;
/// Bytes a second that a reducer fetches and merges: a link of 1 Gbit/s between eight tasks.
pub const SHUFFLE_RATE: f64 = 15.0 * MB;
/// Bytes a second that a task writes to HDFS: three copies, two of them over the same link.
pub const WRITE_RATE: f64 = 7.5 * MB;
/// Seconds that a task takes beside its bytes: commit and reports; a JVM's start is the cluster's `containerStart`.
pub const TASK_START: f64 = 2.0;
/// Most tasks of a stage.
pub const MAX_TASKS: f64 = 100_000.0;

const MB: f64 = 1_048_576.0;
const FIELDS: [&str; 6] = ["job", "submit", "gap", "map input bytes", "shuffle bytes", "reduce output bytes"];
/// As MapReduce's own default: `mapreduce.job.reduce.slowstart.completedmaps`.
const SLOW_START: f64 = 0.05;
/// MapReduce's own master: `yarn.app.mapreduce.am.resource.mb`.
const MASTER: Resources = Resources::new(1536, 1, 0);

/// The jobs, in the order of the file.
///
/// # Errors
/// No rows, too many bad ones.
pub fn read(source: &TraceSource, text: &str) -> Result<(Vec<Job>, TraceNote), TraceError> {
    let mut table = Table::with_tabs(&source.file, text, &FIELDS);
    let application_type: Arc<str> = "MAPREDUCE".into();
    let names: [Arc<str>; 2] = ["map".into(), "reduce".into()];
    let (mut jobs, mut largest) = (Vec::new(), 0);
    while let Some(row) = table.next_row() {
        match read_row(&row) {
            Err(bad) => table.bad(&bad),
            Ok((name, submit_ms, bytes)) => {
                largest += usize::from(bytes[0] > MAX_TASKS * SPLIT || bytes[1] > MAX_TASKS * REDUCE);
                jobs.push(Job {
                    name: name.into(),
                    application_type: application_type.clone(),
                    queue: source.queue.clone(),
                    submit_ms,
                    master: Some(MASTER),
                    work: Work::Stages(stages(bytes, source.container, &names)),
                    on_loss: source.on_loss,
                });
            }
        }
    }
    table.note.change(largest, "have larger tasks, so that a stage has at most 100000");
    let note = table.finish()?;
    let first = jobs.iter().map(|job| job.submit_ms).min().unwrap_or(0);
    for job in &mut jobs {
        job.submit_ms -= first;
    }
    Ok((jobs, note))
}

fn read_row(row: &Row) -> Result<(String, Ms, [f64; 3]), BadRow> {
    let bytes = [row.number("map input bytes")?, row.number("shuffle bytes")?, row.number("reduce output bytes")?];
    Ok((row.text("job")?.to_string(), to_ms(row.number("submit")? * 1000.0), bytes))
}

fn stages([input, shuffle, output]: [f64; 3], container: Resources, names: &[Arc<str>; 2]) -> Vec<Stage> {
    let stage = |name: &Arc<str>, tasks: f64, bytes_at: [(f64, f64); 2], starts_after: f64| {
        let seconds: f64 = bytes_at.iter().map(|(bytes, rate)| bytes / tasks / rate).sum();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole, 1 to MAX_TASKS")]
        let tasks = tasks as u32;
        let task_ms = to_ms((TASK_START + seconds) * 1000.0);
        Stage { name: name.clone(), tasks, resources: container, task_ms, starts_after }
    };
    let count = |bytes: f64, each: f64| libm::ceil(bytes / each).clamp(1.0, MAX_TASKS);
    let maps = count(input, SPLIT);
    if shuffle == 0.0 {
        return vec![stage(&names[0], maps, [(input, MAP_RATE), (output, WRITE_RATE)], 1.0)];
    }
    let reduces = count(shuffle, REDUCE);
    vec![
        stage(&names[0], maps, [(input, MAP_RATE), (shuffle, SPILL_RATE)], 1.0),
        stage(&names[1], reduces, [(shuffle, SHUFFLE_RATE), (output, WRITE_RATE)], SLOW_START),
    ]
}
