//! The decisions: marks below a chart, a table with their sentences, how often each reason was given.

use std::collections::{BTreeMap, BTreeSet};

use super::{Run, badge, policy_name, section, tagged};
use crate::{
    report::{
        axis::TimeAxis,
        svg::{Markup, Number, Percent},
        words::{count, grouped, printable, spaced},
    },
    sim::outcome::{Outcome, Told},
    store::decision_log::Verdict,
};

/// Heights of the lanes of marks, together, in pixels.
pub const LANES_HEIGHT: f64 = 48.0;

/// Marks closer than this, as parts of the width, are one.
const MARK_COLUMNS: u128 = 150;

/// Sentences of one mark; of more decisions the number is told.
const MARK_SENTENCES: usize = 4;

/// Rows of a table that stand open, and rows of all tables of a page.
const ROWS_OPEN: usize = 12;
const ROWS_MAX: usize = 3000;

/// Bytes of one row's text.
const ROW_CHARS_MAX: usize = 600;

fn sentences(told: &Told) -> String {
    let actions = told.actions.iter().map(ToString::to_string);
    let reasons = told.reasons.iter().map(ToString::to_string);
    printable(&actions.chain(reasons).collect::<Vec<_>>().join("; "))
}

/// The lane of a verdict: class, its height's middle, its shape.
fn lane(verdict: Verdict) -> Option<(&'static str, f64, &'static str)> {
    match verdict {
        Verdict::ScaleUp => Some(("mark-up", 12.0, "M0-6 5.5 4H-5.5Z")),
        Verdict::Cancel | Verdict::Mixed => Some(("mark-cancel", 25.0, "M0-5.5 5.5 0 0 5.5-5.5 0Z")),
        Verdict::ScaleDown => Some(("mark-down", 38.0, "M0 6 5.5-4H-5.5Z")),
        Verdict::NoScale => None,
    }
}

/// Marks where something was ordered; those that would cover each other are one. Of a long run bars, as high as there
/// were decisions.
pub fn marks(out: &mut Markup, outcome: &Outcome, axis: &TimeAxis, top: f64, is_long: bool) {
    let mut columns: BTreeMap<(u128, &str), Vec<&Told>> = BTreeMap::new();
    for told in &outcome.decisions {
        if let Some((class, ..)) = lane(Verdict::of(&told.actions)) {
            let column = u128::from(told.from_ms) * MARK_COLUMNS / u128::from(axis.end_ms.max(1));
            columns.entry((column, class)).or_default().push(told);
        }
    }
    let most = columns.values().map(Vec::len).max().unwrap_or(1) as f64;
    for ((column, _), together) in columns {
        let Some((class, middle, shape)) = lane(Verdict::of(&together[0].actions)) else { continue };
        let number = together.len();
        let many = if number > 1 && !is_long { " many" } else { "" };
        let class = format!("mark {class}{many}");
        if is_long {
            let (width, height) = (1.0 / MARK_COLUMNS as f64, 11.0 * number as f64 / most + 1.0);
            let (x, y) = (Percent(column as f64 * width), Number(top + middle + 6.0 - height));
            out.open("g", &[("class", &class), ("data-decisions", &number)]);
            out.empty("rect", &[("x", &x), ("width", &Percent(width * 0.8)), ("y", &y), ("height", &Number(height))]);
            out.leaf("title", &[], &told_together(&together, axis)).close("g");
        } else {
            let (x, y) = (Percent(axis.place(together[0].from_ms)), Number(top + middle));
            out.open(
                "svg",
                &[("x", &x), ("y", &y), ("overflow", &"visible"), ("class", &class), ("data-decisions", &number)],
            );
            out.empty("path", &[("d", &shape)]).leaf("title", &[], &told_together(&together, axis)).close("svg");
        }
    }
}

fn told_together(together: &[&Told], axis: &TimeAxis) -> String {
    let line = |told: &&Told| format!("{}  {}", axis.clock(told.from_ms), shortened(&sentences(told), 260));
    let mut lines: Vec<String> = together.iter().take(MARK_SENTENCES).map(line).collect();
    if together.len() > MARK_SENTENCES {
        lines.push(format!("and {} more here", together.len() - MARK_SENTENCES));
    }
    lines.join("\n")
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.into(),
    }
}

/// How often each reason was given.
pub fn reasons(out: &mut Markup, runs: &[Run<'_>]) {
    let codes: BTreeSet<&str> = runs.iter().flat_map(|run| run.figures.reasons.keys().copied()).collect();
    if codes.is_empty() {
        return;
    }
    let given = |run: &Run<'_>, code: &str| run.figures.reasons.get(code).copied().unwrap_or(0);
    let total = |code: &str| runs.iter().map(|run| given(run, code)).sum::<u64>();
    let most = codes.iter().flat_map(|code| runs.iter().map(|run| given(run, code))).max().unwrap_or(0).max(1);
    let mut codes: Vec<&str> = codes.into_iter().collect();
    codes.sort_by_key(|code| std::cmp::Reverse(total(code)));
    section(out, "reasons", "Decisions by reason", "How many looks gave each reason; one look may give several.");
    out.raw("<table class=\"reasons\"><thead><tr><th scope=\"col\">Reason</th>");
    out.raw("<th scope=\"col\"><span class=\"hidden\">Bar</span></th><th scope=\"col\" class=\"number\">Looks</th></tr></thead>");
    for code in codes {
        out.raw("<tbody>");
        for (index, (tag, run)) in tagged(runs).enumerate() {
            out.raw("<tr>");
            if index == 0 {
                out.leaf("th", &[("scope", &"rowgroup"), ("rowspan", &runs.len())], &spaced(code));
            }
            let looks = given(run, code);
            out.raw("<td class=\"bars\">");
            if looks > 0 {
                let (class, width) = (format!("bar {}", tag.class), Percent(looks as f64 / most as f64));
                out.leaf("span", &[("class", &class), ("style", &format!("width:{width}"))], "");
            }
            out.raw("</td><td class=\"number\">");
            if runs.len() > 1 {
                badge(out, tag);
                out.text(" ");
            }
            out.text(&grouped(looks as f64, 0)).raw("</td></tr>");
        }
        out.raw("</tbody>");
    }
    out.raw("</table></section>\n");
}

/// A table of decisions for each run.
pub fn tables(out: &mut Markup, runs: &[Run<'_>]) {
    section(out, "decisions", "Decisions", "What was ordered and why, in the controller's own sentences.");
    out.raw("<p><label class=\"only\"><input type=\"checkbox\" id=\"only-orders\"> only where something was ordered</label></p>");
    for (tag, run) in tagged(runs) {
        if runs.len() > 1 {
            out.open("h3", &[]);
            policy_name(out, tag, run);
            out.close("h3");
        }
        table(out, run.outcome, ROWS_MAX / runs.len());
    }
    out.close("section").raw("\n");
}

fn table(out: &mut Markup, outcome: &Outcome, rows_max: usize) {
    let all = &outcome.decisions;
    // Where there are too many, those that ordered nothing go first.
    let shown: Vec<&Told> = match all.len() {
        number if number <= rows_max => all.iter().collect(),
        _ => all.iter().filter(|told| !told.actions.is_empty()).take(rows_max).collect(),
    };
    if shown.is_empty() {
        out.leaf("p", &[("class", &"note")], "No decision was recorded.");
        return;
    }
    let axis = TimeAxis { start: outcome.start, end_ms: outcome.end_ms };
    let (open, folded) = shown.split_at(shown.len().min(ROWS_OPEN));
    rows(out, open, &axis);
    if !folded.is_empty() {
        out.open("details", &[]).leaf("summary", &[], &count(folded.len(), "more decision"));
        rows(out, folded, &axis);
        out.close("details");
    }
    if shown.len() < all.len() {
        let left_out = all.len() - shown.len();
        let note = format!(
            "{} are left out, for there are too many: those without orders first.",
            count(left_out, "decision")
        );
        out.leaf("p", &[("class", &"note")], &note);
    }
}

fn rows(out: &mut Markup, decisions: &[&Told], axis: &TimeAxis) {
    out.raw("<table class=\"decisions\"><thead><tr><th scope=\"col\">Time (UTC)</th><th scope=\"col\">Decision</th>");
    out.raw("<th scope=\"col\">What and why</th></tr></thead><tbody>\n");
    for told in decisions {
        let verdict = Verdict::of(&told.actions);
        let class = if told.actions.is_empty() { "hold" } else { "order" };
        out.open("tr", &[("class", &class)]).open("td", &[("class", &"time")]).text(&axis.clock(told.from_ms));
        if told.looks > 1 {
            let looks = count(usize::try_from(told.looks).unwrap_or(usize::MAX), "look");
            out.leaf("small", &[], &format!(" {looks}, until {}", axis.clock(told.to_ms)));
        }
        out.close("td").open("td", &[]);
        let word = lane(verdict).map_or("mark-none", |(class, ..)| class);
        out.leaf("span", &[("class", &format!("verdict {word}"))], &spaced(verdict.word())).close("td").raw("<td>");
        if !told.actions.is_empty() {
            let actions = told.actions.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            out.leaf("strong", &[], &shortened(&printable(&actions), ROW_CHARS_MAX)).raw("<br>");
        }
        let reasons = told.reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        out.text(&shortened(&printable(&reasons), ROW_CHARS_MAX));
        for note in &told.notes {
            out.leaf("em", &[], &shortened(&printable(note), ROW_CHARS_MAX));
        }
        out.raw("</td></tr>\n");
    }
    out.raw("</tbody></table>");
}
