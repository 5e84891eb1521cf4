//! What the live display shows of one tick, as plain lines of text: pure. Knows no terminal.

use chrono::{DateTime, Utc};

use crate::{
    model::{GroupName, Situation, Workers},
    ports::Tick,
    store::decision_log::Record,
};

/// Widest bar in cells: more is not read, and the words need room.
const BAR_CELLS_MAX: usize = 40;

/// A shorter bar says nothing.
const BAR_CELLS_MIN: usize = 5;

/// Narrower terminals get lines of this width, which then wrap.
const WIDTH_MIN: usize = 20;

/// One cell of the bar: a worker that takes containers, drains, boots, is of no use; room up to the policy's maximum.
pub(super) const READY: char = '█';
pub(super) const LEAVING: char = '▓';
pub(super) const BOOTING: char = '▒';
pub(super) const NOT_READY: char = '×';
pub(super) const ROOM: char = '░';

/// The status block: pending, workers, applications, decision; no line longer than `width` columns (20 at least).
pub fn render(tick: &Tick<'_>, width: usize) -> Vec<String> {
    let width = width.max(WIDTH_MIN);
    let record = Record::of(tick);
    let lines = [
        format!("time      {} UTC, next look {}", clock(tick.situation.now), clock(tick.decision.next_at)),
        format!("pending   {}", pending(&record, tick.situation)),
        format!("workers   {}", workers(tick, &record, width.saturating_sub(LABEL_WIDTH))),
        format!("apps      {}", applications(tick.situation)),
        format!("decision  {}: {}", record.decision.word(), record.reason()),
    ];
    lines.iter().map(|line| fit(line, width)).collect()
}

/// How far the labels of the block reach.
const LABEL_WIDTH: usize = 10;

/// What is told once, above the block: the decision and what was noted.
pub(super) fn news(record: &Record, width: usize) -> Vec<String> {
    let at = clock(record.at);
    let decision = format!("{at} {:<10} {}", record.decision.word(), record.text.join("; "));
    let notes = record.notes.iter().map(|note| format!("{at} {:<10} {note}", "note"));
    std::iter::once(decision).chain(notes).map(|line| fit(&line, width.max(WIDTH_MIN))).collect()
}

/// A tick on one line, for a log file.
pub(super) fn plain(record: &Record, situation: &Situation) -> String {
    let workers = record.workers.map_or("workers not known".into(), |workers| in_words(&workers));
    let notes: String = record.notes.iter().map(|note| format!("; note: {note}")).collect();
    let (at, word, reasons) = (clock(record.at), record.decision.word(), record.text.join("; "));
    printable(&format!("{at} {word} | pending {} | {workers} | {reasons}{notes}", pending(record, situation)))
}

fn clock(at: DateTime<Utc>) -> String {
    at.format("%H:%M:%S").to_string()
}

fn pending(record: &Record, situation: &Situation) -> String {
    match (&situation.observation, record.pending_mb) {
        (Ok(_), Some(memory_mb)) => format!(
            "{memory_mb} MB, {} containers, {} GPUs",
            record.containers_pending.unwrap_or(0),
            record.pending_gpus.unwrap_or(0)
        ),
        (Err(outage), _) => format!("not known: {}", outage.text),
        _ => "not known".into(),
    }
}

fn workers(tick: &Tick<'_>, record: &Record, width: usize) -> String {
    let Some(workers) = record.workers else {
        return match &tick.situation.capacity {
            Err(outage) => format!("not known: {}", outage.text),
            Ok(_) => "not known".into(),
        };
    };
    let max: u32 =
        GroupName::ALL.into_iter().map(|group| tick.policy.group(group).max_instances).fold(0, u32::saturating_add);
    let words = format!("{}, max {max}", in_words(&workers));
    let room = width.saturating_sub(words.chars().count() + 1).min(BAR_CELLS_MAX);
    if room < BAR_CELLS_MIN { words } else { format!("{} {words}", bar(&workers, max, room)) }
}

fn in_words(workers: &Workers) -> String {
    let mut text = format!("{} ready", workers.ready);
    for (number, what) in [(workers.booting, "booting"), (workers.leaving, "leaving"), (workers.not_ready, "not ready")]
    {
        if number > 0 {
            text += &format!(" {number} {what}");
        }
    }
    text
}

/// One cell a worker, up to `cells_max`; of more workers, evenly spaced ones are shown.
fn bar(workers: &Workers, max: u32, cells_max: usize) -> String {
    let parts = [
        (READY, workers.ready),
        (BOOTING, workers.booting),
        (LEAVING, workers.leaving),
        (NOT_READY, workers.not_ready),
        (ROOM, max.saturating_sub(workers.size)),
    ];
    let total: u64 = parts.iter().map(|(_, number)| u64::from(*number)).sum();
    let cells = total.min(cells_max as u64);
    (0..cells).map(|cell| glyph(&parts, cell * total / cells)).collect()
}

fn glyph(parts: &[(char, u32)], worker: u64) -> char {
    let mut end = 0;
    for (glyph, number) in parts {
        end += u64::from(*number);
        if worker < end {
            return *glyph;
        }
    }
    ROOM
}

/// An application with unmet asks waits, whether or not its application master runs already.
fn applications(situation: &Situation) -> String {
    let Ok(observation) = &situation.observation else { return "not known".into() };
    let waiting = observation.applications.iter().filter(|app| !app.running || !app.asks.is_empty()).count();
    format!("{} running, {waiting} waiting for containers", observation.applications.len() - waiting)
}

/// Cuts a line to `width` columns (of the narrow characters that we write).
fn fit(line: &str, width: usize) -> String {
    let line = printable(line);
    if line.chars().count() <= width {
        return line;
    }
    let cut: String = line.chars().take(width - 1).collect();
    format!("{}…", cut.trim_end())
}

/// Texts of errors come from other programs: nothing in them may steer the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
