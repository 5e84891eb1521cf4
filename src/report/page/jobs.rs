//! Each job as a bar, waiting and working; only where they are few enough to be read.

use super::{Run, legend, open_plot, policy_name, section, tagged};
use crate::{
    report::{
        axis::TimeAxis,
        svg::{Markup, Number, Percent},
        waiting::wait_ms,
        words::{Unit, count, printable},
    },
    sim::outcome::{JobOutcome, Outcome},
};

/// More jobs than this are no picture.
const JOBS_MAX: usize = 100;

const ROW: f64 = 17.0;

/// A chart for each run with few jobs; folded away where there are several runs.
pub fn gantt(out: &mut Markup, runs: &[Run<'_>]) {
    let is_readable = |run: &&Run<'_>| (1..=JOBS_MAX).contains(&run.outcome.jobs.len());
    if runs.iter().filter(is_readable).count() == 0 {
        return;
    }
    section(
        out,
        "jobs",
        "Each job",
        "Red waits, blue works, grey ended otherwise; the name says how many GPUs it asked for.",
    );
    legend(
        out,
        &[
            ("pending", "waits"),
            ("running", "works"),
            ("failed", "ended otherwise"),
            ("open", "still at it at the end"),
        ],
    );
    let end_ms = runs.iter().map(|run| run.outcome.end_ms).max().unwrap_or(0);
    for (index, (tag, run)) in tagged(runs).enumerate().filter(|(_, (_, run))| is_readable(run)) {
        if runs.len() > 1 {
            out.raw(if index == 0 { "<details open><summary>" } else { "<details><summary>" });
            policy_name(out, tag, run);
            out.raw("</summary>");
        }
        let axis = TimeAxis { start: run.outcome.start, end_ms };
        chart(out, run, &axis);
        if runs.len() > 1 {
            out.raw("</details>");
        }
    }
    out.close("section").raw("\n");
}

fn chart(out: &mut Markup, run: &Run<'_>, axis: &TimeAxis) {
    let jobs = &run.outcome.jobs;
    out.open("div", &[("class", &"gantt")]).open("div", &[("class", &"names"), ("aria-hidden", &"true")]);
    for job in jobs {
        out.open("div", &[]).leaf("span", &[], &printable(&job.name)).leaf("b", &[], &size(job)).close("div");
    }
    out.close("div");
    let height = jobs.len() as f64 * ROW;
    let label = format!("{} under {}, waiting and working", count(jobs.len(), "job"), run.policy());
    open_plot(out, height + 22.0, &label);
    for tick in axis.ticks() {
        let minor = if tick.is_major { "" } else { " minor" };
        let (line, text) = (format!("grid{minor}"), format!("tick{minor}"));
        let x = Percent(tick.at);
        out.empty("line", &[("class", &line), ("x1", &x), ("x2", &x), ("y1", &0), ("y2", &Number(height))]);
        let anchor = if tick.at < 0.05 {
            "start"
        } else if tick.at > 0.95 {
            "end"
        } else {
            "middle"
        };
        out.leaf(
            "text",
            &[("class", &text), ("x", &x), ("y", &Number(height + 16.0)), ("text-anchor", &anchor)],
            &tick.label,
        );
    }
    for (row, job) in jobs.iter().enumerate() {
        bar(out, run.outcome, job, axis, row as f64 * ROW);
    }
    out.close("svg").close("div");
}

fn size(job: &JobOutcome) -> String {
    if job.size.gpus > 0 { format!("{} GPU", job.size.gpus) } else { format!("{} c", job.containers) }
}

fn bar(out: &mut Markup, outcome: &Outcome, job: &JobOutcome, axis: &TimeAxis, y: f64) {
    let started = job.submit_ms + wait_ms(job, outcome.end_ms);
    let ended = job.end_ms.unwrap_or(outcome.end_ms).max(started);
    out.open("g", &[("class", &"job")]);
    out.leaf("title", &[], &told(outcome, job, axis));
    let mut rect = |class: &str, from: u64, until: u64| {
        if until > from {
            let (x, width) = (Percent(axis.place(from)), Percent(axis.place(until - from)));
            out.empty(
                "rect",
                &[
                    ("class", &class),
                    ("x", &x),
                    ("width", &width),
                    ("y", &Number(y + 3.0)),
                    ("height", &Number(ROW - 6.0)),
                ],
            );
        }
    };
    rect("pending", job.submit_ms, started);
    let class = match (job.end_ms, job.succeeded) {
        (None, _) => "running open",
        (Some(_), true) => "running",
        (Some(_), false) => "failed",
    };
    rect(class, started, ended);
    // A job too short to be seen still has a mark.
    if ended == job.submit_ms {
        out.empty(
            "circle",
            &[("class", &class), ("cx", &Percent(axis.place(ended))), ("cy", &Number(y + ROW / 2.0)), ("r", &2)],
        );
    }
    out.close("g");
}

fn told(outcome: &Outcome, job: &JobOutcome, axis: &TimeAxis) -> String {
    let seconds = |ms: u64| Unit::Seconds.show(ms as f64 / 1000.0);
    let mut text = format!("{}: {}, submitted {}", printable(&job.name), size(job), axis.clock(job.submit_ms));
    let waited = seconds(wait_ms(job, outcome.end_ms));
    text += &match (job.start_ms, job.end_ms) {
        (Some(start), Some(end)) => format!(", waited {waited}, worked {}", seconds(end.saturating_sub(start))),
        (Some(_), None) => format!(", waited {waited}, still works at the end"),
        (None, _) => format!(", waited {waited} and never started"),
    };
    if job.end_ms.is_some() && !job.succeeded {
        text += ", failed";
    }
    if job.restarts > 0 {
        text += &format!(", restarted {} times", job.restarts);
    }
    text
}
