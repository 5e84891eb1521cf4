//! `explain`: why it did, or did not do, something, as a table from the decision log. Reads the log and nothing else;
//! asks no cluster and no clock.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::Context;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use super::{connect::Failure, exit, live_view::printable, terminal};
use crate::{
    model::{Action, GroupName, Workers},
    store::decision_log::{BadLine, Log, Record},
};

/// Narrower than this, a table has no room for words.
const WIDTH_MIN: u16 = 60;

/// Explain decisions from the decision log: time, pending, workers, decision, reason.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The decision log; its older half (`FILE.1`) is read, too
    #[arg(long, value_name = "FILE", env = "YARN_AUTOSCALER_DECISION_LOG")]
    pub decision_log: PathBuf,
    /// Print the records and the summary as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show every record, also those where nothing was done and no worker came or went
    #[arg(long)]
    pub all: bool,
    /// Leave out what is older: `2026-11-21T14:05:00Z`, `2026-11-21 14:05`, or `14:05` on the log's last day (UTC)
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

/// Prints the table (or JSON) to stdout, lines of the log that are no records to stderr. Ends with 0, or with 2 where
/// the log cannot be read or `--since` is no time.
pub fn run(args: &Args) -> ExitCode {
    exit::of(explain(args))
}

fn explain(args: &Args) -> Result<(), Failure> {
    let path = &args.decision_log;
    let mut log = Log::read(path).with_context(|| format!("cannot read the decision log {}", path.display()))?;
    if let Some(text) = &args.since {
        let last_day = log.records.last().map(|record| record.at.date_naive());
        let since = parse_since(text, last_day).with_context(|| {
            format!("--since {text}: write `2026-11-21T14:05:00Z`, `2026-11-21 14:05` or `14:05` (UTC)")
        })?;
        log.records.retain(|record| record.at >= since);
    }
    let text = if args.json { json(&log)? } else { people(&log, args.all, terminal::columns()) };
    if !args.json {
        let named: String = log.bad_lines.iter().map(|bad| format!("{}\n", bad_line(bad))).collect();
        let _ = io::stderr().write_all(named.as_bytes());
    }
    // Whoever reads may have seen enough: a closed pipe is no error.
    let _ = io::stdout().write_all(text.as_bytes());
    Ok(())
}

/// An instant as people write it; a time of day is one of `last_day`.
fn parse_since(text: &str, last_day: Option<NaiveDate>) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.to_utc());
    }
    let day_and_time = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"];
    let time_of_day = ["%H:%M:%S", "%H:%M"];
    let exact = day_and_time.iter().find_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
    let on_day = || Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_time(NaiveTime::MIN));
    let today = || {
        let time = time_of_day.iter().find_map(|form| NaiveTime::parse_from_str(text, form).ok())?;
        Some(last_day.unwrap_or_default().and_time(time))
    };
    exact.or_else(on_day).or_else(today).map(|at| at.and_utc())
}

/// Counts over the records that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Decisions that ordered workers.
    pub scale_ups: usize,
    /// Decisions that began to take workers away: a cordon is the first step of every drain.
    pub scale_downs: usize,
    /// Decisions that took workers back that were on their way out.
    pub cancels: usize,
    /// Most workers there were at once.
    pub peak_workers: u32,
}

impl Summary {
    /// Counts these records.
    pub fn of(records: &[Record]) -> Self {
        let with =
            |wanted: fn(&Action) -> bool| records.iter().filter(|record| record.actions.iter().any(wanted)).count();
        Self {
            scale_ups: with(|action| GroupName::ALL.into_iter().any(|group| action.adds(group) > 0)),
            scale_downs: with(|action| matches!(action, Action::Cordon { .. })),
            cancels: with(|action| matches!(action, Action::Recommission { .. } | Action::Uncordon { .. })),
            peak_workers: records.iter().filter_map(|record| record.workers).map(|w| w.size).max().unwrap_or(0),
        }
    }

    fn sentence(&self) -> String {
        let cancels = if self.cancels > 0 { format!(", {}", count(self.cancels, "cancel")) } else { String::new() };
        format!(
            "{}, {}{cancels}; at most {} workers",
            count(self.scale_ups, "scale up"),
            count(self.scale_downs, "scale down"),
            self.peak_workers
        )
    }
}

fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    records: &'a [Record],
    summary: Summary,
    bad_lines: Vec<String>,
}

fn json(log: &Log) -> serde_json::Result<String> {
    let bad_lines = log.bad_lines.iter().map(bad_line).collect();
    let json = Json { records: &log.records, summary: Summary::of(&log.records), bad_lines };
    Ok(serde_json::to_string_pretty(&json)? + "\n")
}

fn bad_line(bad: &BadLine) -> String {
    format!("{}:{}: not a record: {}", bad.file.display(), bad.line, bad.problem)
}

/// The table and the summary for people: `width` columns wide, or plain and unwrapped without a terminal.
pub fn people(log: &Log, all: bool, width: Option<u16>) -> String {
    let records = &log.records;
    if records.is_empty() {
        return "no decisions\n".into();
    }
    let shown: Vec<&Record> = if all { records.iter().collect() } else { turning_points(records) };
    let hidden = records.len() - shown.len();
    let more = if hidden > 0 { format!("; {hidden} quiet records left out (--all)") } else { String::new() };
    format!("{}\n{}{more}\n", table(&shown, width), Summary::of(records).sentence())
}

/// Where something was done, something was noted, or a worker came or went; and the last record: how it stands.
fn turning_points(records: &[Record]) -> Vec<&Record> {
    let mut shown: Vec<&Record> = Vec::new();
    for (index, record) in records.iter().enumerate() {
        let moved = shown.last().is_none_or(|before| before.workers != record.workers || before.notes != record.notes);
        if record.acted() || moved || index + 1 == records.len() {
            shown.push(record);
        }
    }
    shown
}

fn table(records: &[&Record], width: Option<u16>) -> String {
    let mut table = Table::new();
    table.force_no_tty();
    match width {
        Some(width) => {
            table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(width.max(WIDTH_MIN));
        }
        None => {
            table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    let one_day = records.windows(2).all(|pair| pair[0].at.date_naive() == pair[1].at.date_naive());
    let time = if one_day { "%H:%M:%S" } else { "%m-%d %H:%M:%S" };
    table.set_header(["time (UTC)", "pending", "workers", "decision", "reason"]);
    for record in records {
        table.add_row([
            record.at.format(time).to_string(),
            pending(record),
            record.workers.as_ref().map_or("?".into(), workers),
            record.decision.word().into(),
            why(record),
        ]);
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// `24576 MB, 6 containers, 4 GPUs`; `-` for nothing, `?` for not known.
fn pending(record: &Record) -> String {
    let Some(memory_mb) = record.pending_mb else { return "?".into() };
    let others = [(record.containers_pending, "container"), (record.pending_gpus, "GPU")];
    let mut parts = vec![format!("{memory_mb} MB")];
    for (amount, what) in others {
        match amount.and_then(|amount| usize::try_from(amount).ok()) {
            None | Some(0) => {}
            Some(amount) => parts.push(count(amount, what)),
        }
    }
    if parts.len() == 1 && memory_mb == 0 { "-".into() } else { parts.join(", ") }
}

/// `4/7, 2 booting, 1 leaving`: ready of all, and what the others do.
fn workers(workers: &Workers) -> String {
    let mut text = format!("{}/{}", workers.ready, workers.size);
    for (number, what) in [(workers.booting, "booting"), (workers.leaving, "leaving"), (workers.not_ready, "not ready")]
    {
        if number > 0 {
            text += &format!(", {number} {what}");
        }
    }
    text
}

fn why(record: &Record) -> String {
    let notes = record.notes.iter().map(|note| format!("note: {note}"));
    let sentences: Vec<String> = record.text.iter().cloned().chain(notes).collect();
    // One record is one row: line ends inside a sentence (of an error's text) would break the plain form.
    printable(&sentences.join("; ")).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_read_as_people_write_it() {
        let day = NaiveDate::from_ymd_opt(2026, 11, 21);
        let table = [
            ("2026-11-21T15:05:00+01:00", Some("2026-11-21T14:05:00Z")),
            ("2026-11-20T14:05", Some("2026-11-20T14:05:00Z")),
            ("2026-11-20 14:05:06", Some("2026-11-20T14:05:06Z")),
            ("2026-11-20", Some("2026-11-20T00:00:00Z")),
            (" 14:05 ", Some("2026-11-21T14:05:00Z")),
            ("14:05:06", Some("2026-11-21T14:05:06Z")),
            ("yesterday", None),
            ("25:00", None),
        ];
        for (text, at) in table {
            let expected = at.map(|at| at.parse::<DateTime<Utc>>().unwrap());
            assert_eq!(parse_since(text, day), expected, "{text}");
        }
    }

    #[test]
    fn json_has_records_summary_and_bad_lines() {
        let bad = BadLine { file: "log".into(), line: 2, problem: "torn off".into() };
        let value: serde_json::Value =
            serde_json::from_str(&json(&Log { records: Vec::new(), bad_lines: vec![bad] }).unwrap()).unwrap();
        assert_eq!(value["summary"]["peakWorkers"], 0);
        assert_eq!(value["records"], serde_json::json!([]));
        assert_eq!(value["badLines"], serde_json::json!(["log:2: not a record: torn off"]));
    }
}
