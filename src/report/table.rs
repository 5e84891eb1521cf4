//! The figures as a table for a terminal: a row for each figure, a column for each policy.

use std::{cmp::Reverse, collections::BTreeMap};

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets};

use super::{
    figures::Figures,
    names::{CONVENTIONS, SECTIONS},
    words::{Unit, printable, spaced},
};

/// Columns that one policy takes, its border included.
const POLICY_WIDTH: u16 = 17;

/// Columns that the labels take.
const LABEL_WIDTH: u16 = 26;

/// What is shown where not everything is asked for.
const BRIEF: &[&str] = &[
    "jobs",
    "jobsSucceeded",
    "jobsFailed",
    "jobsUnfinished",
    "restarts",
    "makespan",
    "waitMean",
    "waitP50",
    "waitP95",
    "waitP99",
    "gangWaitMean",
    "gangWaitP95",
    "cost",
    "machineHours",
    "gpuHours",
    "ratioToOpt0",
    "usefulShare",
    "gpuHoursLost",
    "peakWorkers",
    "finalWorkers",
    "boots",
    "recommissions",
    "flaps",
    "containersKilled",
    "containersLost",
    "violations",
];

/// The table, below it what went wrong and the conventions: `width` columns wide, or plain and unwrapped without a
/// terminal. Policies that do not fit side by side follow below. Without `all`, the figures that most ask for.
pub fn table(runs: &[Figures], width: Option<u16>, all: bool) -> String {
    tables(&[runs], width, all)
}

/// One table for each scenario, whose runs stand together; the conventions below the last one.
pub fn tables(scenarios: &[&[Figures]], width: Option<u16>, all: bool) -> String {
    let is_shown = |name: &str| all || BRIEF.contains(&name);
    let mut text = String::new();
    for runs in scenarios {
        if let ([_, _, ..], Some(first)) = (scenarios, runs.first()) {
            text += &format!("{}\n", printable(&first.scenario));
        }
        text += &table_of_one(runs, width, all, &is_shown);
    }
    for convention in CONVENTIONS.iter().filter(|convention| convention.of.iter().any(|name| is_shown(name))) {
        text += &wrapped(&format!("* {}", convention.text), width);
    }
    text
}

fn table_of_one(runs: &[Figures], width: Option<u16>, all: bool, is_shown: &dyn Fn(&str) -> bool) -> String {
    let side_by_side =
        width.map_or(runs.len(), |width| (width.saturating_sub(LABEL_WIDTH) / POLICY_WIDTH).max(1).into());
    let mut text = String::new();
    for runs in runs.chunks(side_by_side.max(1)) {
        text += &block(runs, width.is_some(), is_shown);
        text.push('\n');
    }
    if all {
        speedups(runs).iter().for_each(|line| text += &wrapped(line, width));
    }
    for run in runs {
        let named = |line: &String| printable(&format!("{}: {line}", run.policy));
        let remarks = run.remarks.iter().map(|line| ("remark", named(line)));
        for (kind, line) in run.violations.iter().map(|line| ("BROKEN", named(line))).chain(remarks) {
            text += &wrapped(&format!("{kind}: {line}"), width);
        }
    }
    text
}

fn block(runs: &[Figures], on_terminal: bool, is_shown: &dyn Fn(&str) -> bool) -> String {
    let mut table = Table::new();
    table.force_no_tty();
    if on_terminal {
        table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        let widths = runs.iter().map(|_| POLICY_WIDTH - 1).fold(LABEL_WIDTH + 1, |sum, width| sum + width + 1);
        table.set_width(widths);
    } else {
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    }
    let policies = runs.iter().map(|run| right(printable(&run.policy)));
    table.set_header([Cell::new("")].into_iter().chain(policies));
    for section in SECTIONS {
        let shown: Vec<_> = section.figures.iter().filter(|named| is_shown(named.name)).collect();
        if !shown.is_empty() {
            table.add_row([Cell::new(section.title.to_uppercase())]);
        }
        for named in shown {
            let values = runs.iter().map(|run| right(named.show(run).replace('\u{202f}', " ")));
            table.add_row([Cell::new(format!("  {}", named.label))].into_iter().chain(values));
        }
    }
    if is_shown("looks") {
        table.add_row([Cell::new("LOOKS THAT SAID")]);
        for code in reasons(runs) {
            let said = runs.iter().map(|run| {
                right(Unit::Count.show(run.reasons.get(code).copied().unwrap_or(0) as f64).replace('\u{202f}', " "))
            });
            table.add_row([Cell::new(format!("  {}", spaced(code)))].into_iter().chain(said));
        }
    }
    if on_terminal {
        let fixed = |width| ColumnConstraint::Absolute(Width::Fixed(width));
        let constraints = runs.iter().map(|_| fixed(POLICY_WIDTH - 1));
        table.set_constraints([fixed(LABEL_WIDTH - 1)].into_iter().chain(constraints));
    }
    table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The reasons that were given in any run, those that were given most often first.
fn reasons(runs: &[Figures]) -> Vec<&'static str> {
    let mut looks = BTreeMap::<&str, u64>::new();
    for (code, count) in runs.iter().flat_map(|run| &run.reasons) {
        *looks.entry(code).or_insert(0) += count;
    }
    let mut codes: Vec<_> = looks.into_iter().collect();
    codes.sort_by_key(|(_, count)| Reverse(*count));
    codes.into_iter().map(|(code, _)| code).collect()
}

fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// The elastic speedup of each further run over the first.
fn speedups(runs: &[Figures]) -> Vec<String> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let line = |run: &Figures| {
        let speedup = run.speedup_over(first);
        let clamped = if speedup.clamped { "; figures below 0.01 % count as that" } else { "" };
        format!(
            "elastic speedup of {} over {}: {:.2} (too few {:.2}, too many {:.2}, time with too few {:.2}, with too many {:.2}{clamped})",
            printable(&run.policy),
            printable(&first.policy),
            speedup.epsilon,
            speedup.theta_under,
            speedup.theta_over,
            speedup.tau_under,
            speedup.tau_over,
        )
    };
    others.iter().map(line).collect()
}

/// Broken at spaces, later lines set in by two.
fn wrapped(text: &str, width: Option<u16>) -> String {
    let Some(width) = width else { return format!("{text}\n") };
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > usize::from(width) {
            out += "\n  ";
            column = 2;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out + "\n"
}
