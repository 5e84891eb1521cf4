//! Our own traces: `job,submit_s,type,queue,group,containers,memory_mb,vcores,gpus,duration_s,shape`, with a header and
//! commas; one row a task group, the rows of a job together.
//!
//! * `shape` is `GANG` (all groups work together, for the longest `duration_s` among them) or `TASKS` (each row a stage,
//!   `duration_s` the time of one task; a stage is asked for when the one before is done).
//! * The group `master` is the application master's container; its duration and count are of no meaning.
//! * A queue that the scenario does not have becomes the first one, counted.
//! * Time counts from the first submission. A job with a bad row is left out as a whole. A job without containers but
//!   its master, or that works for no time, is left out and counted.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    Job, Stage, TaskGroup, TraceError, TraceNote, TraceSource, Work,
    table::{BadRow, Row, Table},
};
use crate::{
    model::{MASTER_GROUP, Resources, WorkloadRow},
    policy::checker::MAX_COUNT,
    sim::{Ms, random::to_ms, scenario::Queue},
};

/// One row.
#[derive(Clone, Debug)]
struct Part {
    group: String,
    containers: u32,
    resources: Resources,
    duration_ms: Ms,
}

/// What all rows of a job say alike.
#[derive(Clone, Debug, PartialEq)]
struct Head {
    job: String,
    submit_ms: Ms,
    application_type: String,
    queue: String,
    is_gang: bool,
}

/// The rows of one job, as far as they have been read.
struct Open {
    head: Head,
    parts: Vec<Part>,
    is_bad: bool,
}

/// The jobs, in the order of the file.
///
/// # Errors
/// A wrong header, no rows, too many bad ones.
pub fn read(source: &TraceSource, queues: &[Queue], text: &str) -> Result<(Vec<Job>, TraceNote), TraceError> {
    let mut table = Table::with_header(&source.file, text, &WorkloadRow::COLUMNS)?;
    let mut reader = Reader { source, queues, jobs: Vec::new(), names: BTreeSet::new(), note: TraceNote::default() };
    let mut open: Option<Open> = None;
    while let Some(row) = table.next_row() {
        let name = row.text("job").unwrap_or("").to_string();
        let begins = open.as_ref().is_none_or(|open| open.head.job != name);
        if begins {
            reader.close(open.take());
        }
        let known = reader.names.contains(&name);
        match read_row(&row) {
            Ok((head, part)) => {
                let open = open.get_or_insert_with(|| Open { head: head.clone(), parts: Vec::new(), is_bad: known });
                if begins && known {
                    table.bad(&row.wrong(format!("the rows of job `{name}` must stand together")));
                } else if open.head != head {
                    open.is_bad = true;
                    let fields = "submit_s, type, queue and shape";
                    table.bad(&row.wrong(format!("{fields} must be the same in all rows of job `{name}`")));
                }
                open.parts.push(part);
            }
            Err(bad) => {
                table.bad(&bad);
                let head = Head {
                    job: name,
                    submit_ms: 0,
                    application_type: String::new(),
                    queue: String::new(),
                    is_gang: true,
                };
                open.get_or_insert(Open { head, parts: Vec::new(), is_bad: true }).is_bad = true;
            }
        }
    }
    reader.close(open);
    let Reader { mut jobs, note, .. } = reader;
    table.note.left_out = note.left_out;
    table.note.changed = note.changed;
    let note = table.finish()?;
    let first = jobs.iter().map(|job| job.submit_ms).min().unwrap_or(0);
    for job in &mut jobs {
        job.submit_ms -= first;
    }
    Ok((jobs, note))
}

struct Reader<'a> {
    source: &'a TraceSource,
    queues: &'a [Queue],
    jobs: Vec<Job>,
    names: BTreeSet<String>,
    note: TraceNote,
}

impl Reader<'_> {
    /// All rows of a job have been read.
    fn close(&mut self, open: Option<Open>) {
        let Some(Open { head, parts, is_bad }) = open else { return };
        self.names.insert(head.job.clone());
        if is_bad {
            self.note.leave_out(1, "had a bad row");
            return;
        }
        let (masters, parts): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| part.group == MASTER_GROUP);
        let parts: Vec<_> = parts.into_iter().filter(|part| part.containers > 0).collect();
        let work = work(&parts, head.is_gang);
        if parts.is_empty() || works_for_no_time(&work) {
            self.note.leave_out(1, if parts.is_empty() { "asked for nothing" } else { "worked for no time" });
            return;
        }
        let job = Job {
            name: head.job.into(),
            application_type: head.application_type.into(),
            queue: self.queue(&head.queue),
            submit_ms: head.submit_ms,
            master: masters.first().map(|master| master.resources),
            work,
            on_loss: self.source.on_loss,
        };
        self.jobs.push(job);
    }

    fn queue(&mut self, written: &str) -> Arc<str> {
        let Some(first) = self.queues.first() else { return written.into() };
        let leaf = written.rsplit('.').next().unwrap_or(written);
        let found = self.queues.iter().find(|queue| queue.name == leaf);
        if found.is_none() {
            let what = format!("jobs of queues that the scenario does not have are in `{}`", first.name);
            self.note.change(1, &what);
        }
        found.unwrap_or(first).name.as_str().into()
    }
}

fn work(parts: &[Part], is_gang: bool) -> Work {
    if is_gang {
        let groups = parts.iter().map(|part| TaskGroup {
            name: part.group.as_str().into(),
            containers: part.containers,
            resources: part.resources,
        });
        let duration_ms = parts.iter().map(|part| part.duration_ms).max().unwrap_or(0);
        return Work::Gang { groups: groups.collect(), duration_ms };
    }
    let stages = parts.iter().map(|part| Stage {
        name: part.group.as_str().into(),
        tasks: part.containers,
        resources: part.resources,
        task_ms: part.duration_ms,
        starts_after: 1.0,
    });
    Work::Stages(stages.collect())
}

fn works_for_no_time(work: &Work) -> bool {
    match work {
        Work::Gang { duration_ms, .. } => *duration_ms == 0,
        Work::Stages(stages) => stages.iter().all(|stage| stage.task_ms == 0),
        Work::Executors(_) => false,
    }
}

fn read_row(row: &Row) -> Result<(Head, Part), BadRow> {
    let amount = |name: &'static str| {
        let wanted = "a whole number up to 2147483647";
        let amount = row.field::<u32>(name, wanted)?;
        if amount > MAX_COUNT { Err(row.not(name, wanted)) } else { Ok(amount.into()) }
    };
    let is_gang = match row.text("shape")? {
        "GANG" => true,
        "TASKS" => false,
        _ => return Err(row.not("shape", "`GANG` or `TASKS`")),
    };
    let head = Head {
        job: row.text("job")?.into(),
        submit_ms: to_ms(row.number("submit_s")? * 1000.0),
        application_type: row.text("type")?.into(),
        queue: row.text("queue")?.into(),
        is_gang,
    };
    let part = Part {
        group: row.text("group")?.into(),
        containers: row.count("containers")?,
        resources: Resources::new(amount("memory_mb")?, amount("vcores")?, amount("gpus")?),
        duration_ms: to_ms(row.number("duration_s")? * 1000.0),
    };
    Ok((head, part))
}
