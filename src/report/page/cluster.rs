//! Demand and capacity over time: what runs and what waits before what is paid for, the policy's bounds, and below the
//! decisions, where they were taken.

use super::{Run, legend, policy_name, section, tagged};
use crate::{
    model::Resources,
    report::{
        axis::{TimeAxis, count_label, count_ticks},
        page::decisions,
        svg::{Markup, Number, Percent, STRETCHED, area, open_stretched, steps},
        thin::{Column, columns},
        words::Unit,
    },
    sim::{
        Ms,
        outcome::{Outcome, Step},
    },
};

/// Changes that are drawn one by one; of longer runs so many columns.
const CHANGES_MAX: usize = 1200;
const COLUMNS: u64 = 270;

/// Steps that the script can name one by one; of longer runs one of each column.
const READABLE_STEPS: usize = 1500;

/// What capacity is made of, from the bottom: class, name, machines.
type Layer = (&'static str, &'static str, fn(&Step) -> u32);
const LAYERS: [Layer; 5] = [
    ("ready", "ready", |step| step.machines.ready),
    ("cordoned", "cordoned", |step| step.machines.cordoned),
    ("draining", "draining", |step| step.machines.draining),
    ("broken", "leaving or of no use", |step| step.machines.leaving + step.machines.broken),
    ("booting", "ordered or booting", |step| step.machines.ordered + step.machines.booting),
];

/// The part of a step's demand that waits, in workers of the first group: what the scarcest resource asks for.
pub fn pending_workers(outcome: &Outcome, step: &Step) -> u32 {
    let worker = outcome.groups.values().next().map(|group| group.worker).unwrap_or_default();
    let amounts = |r: Resources| [r.memory_mb, r.vcores, r.gpus];
    let needed = amounts(step.pending).into_iter().zip(amounts(worker));
    let most = needed.filter(|(_, offered)| *offered > 0).map(|(asked, offered)| asked.div_ceil(offered)).max();
    u32::try_from(most.unwrap_or(0)).unwrap_or(u32::MAX).min(step.demand_workers)
}

/// What all charts of a page share: their axes.
struct Frame {
    end_ms: Ms,
    top: f64,
    height: f64,
    /// Demand is cut off; this is its highest value.
    cut: Option<u32>,
    /// Too many changes to be drawn one by one.
    is_long: bool,
}

/// What a line shows of a column of a long run.
#[derive(Clone, Copy)]
enum Of {
    Mean,
    High,
}

impl Frame {
    fn of(runs: &[Run<'_>]) -> Self {
        let every = || runs.iter().flat_map(|run| run.outcome.steps.iter());
        let capacity = every().map(|step| step.machines.total()).max().unwrap_or(0);
        let demand = every().map(|step| step.demand_workers).max().unwrap_or(0);
        let allowed = runs.iter().map(|run| run.outcome.max_workers).max().unwrap_or(0);
        // A thousand tasks at once must not press everything else flat.
        let most = capacity.max(demand.min(capacity.max(allowed) / 5 * 8 + 1));
        Self {
            end_ms: runs.iter().map(|run| run.outcome.end_ms).max().unwrap_or(0),
            top: f64::from(most.max(1)) * 1.08,
            height: if runs.len() == 1 { 320.0 } else { 210.0 },
            cut: (demand > most).then_some(demand),
            is_long: runs.iter().any(|run| run.outcome.steps.len() > CHANGES_MAX),
        }
    }

    fn x(&self, at: Ms) -> f64 {
        at as f64 / self.end_ms.max(1) as f64 * STRETCHED
    }

    fn y(&self, workers: f64) -> f64 {
        self.height * (1.0 - (workers / self.top).min(1.0))
    }

    /// The places of a figure of each step, or of each column of a long run.
    fn places(&self, outcome: &Outcome, of: Of, figure: &dyn Fn(&Step) -> u32) -> Vec<(f64, f64)> {
        let mut values: Vec<(Ms, f64)> = Vec::with_capacity(outcome.steps.len());
        for step in &outcome.steps {
            let value = f64::from(figure(step));
            if values.last().is_none_or(|last| last.1 != value) {
                values.push((step.at_ms, value));
            }
        }
        if self.is_long {
            let number =
                Ms::try_from(u128::from(COLUMNS) * u128::from(outcome.end_ms) / u128::from(self.end_ms.max(1)));
            let column = |column: &Column| match of {
                Of::Mean => (column.at, column.mean),
                Of::High => (column.at, column.high),
            };
            values = columns(&values, outcome.end_ms, number.unwrap_or(COLUMNS).max(1)).iter().map(column).collect();
        }
        values.into_iter().map(|(at, value)| (self.x(at), self.y(value))).collect()
    }
}

/// The charts: one large one, or several on the same axes.
pub fn charts(out: &mut Markup, runs: &[Run<'_>]) {
    let caption = "Workers over time. Colour in front is demand: blue runs, red waits. Behind it is what is paid for; \
                   what shows above the blue is not used. Below: decisions, where they were taken.";
    section(out, "cluster", "Demand and capacity", caption);
    let mut entries = vec![("running", "demand that runs"), ("pending", "demand that waits")];
    entries.extend(LAYERS.iter().map(|(class, name, _)| (*class, *name)));
    entries.push(("bound", "minimum and maximum"));
    legend(out, &entries);
    let frame = Frame::of(runs);
    for (index, (tag, run)) in tagged(runs).enumerate() {
        out.open("figure", &[("class", &"cluster")]);
        if runs.len() > 1 {
            out.open("figcaption", &[]);
            policy_name(out, tag, run);
            out.close("figcaption");
        }
        chart(out, &frame, run, index);
        out.close("figure");
    }
    legend(
        out,
        &[
            ("mark-up", "workers ordered"),
            ("mark-cancel", "taken back, or several at once"),
            ("mark-down", "cordoned, decommissioned, deleted"),
        ],
    );
    if frame.is_long {
        let column = Unit::Seconds.show(frame.end_ms as f64 / 1000.0 / COLUMNS as f64);
        let note = format!(
            "A long run: areas are averages over {column} each; thin lines are the highest demand (red) and the most machines (brown) of each; the bars below count decisions."
        );
        out.leaf("p", &[("class", &"note")], &note);
    }
    if let Some(demand) = frame.cut {
        let note =
            format!("Demand is cut off at the top of the chart; it went up to {} workers.", count_label(demand.into()));
        out.leaf("p", &[("class", &"note")], &note);
    }
    out.close("section").raw("\n");
}

fn chart(out: &mut Markup, frame: &Frame, run: &Run<'_>, index: usize) {
    let axis = TimeAxis { start: run.outcome.start, end_ms: frame.end_ms };
    let label = format!("Demand and capacity under {}", run.policy());
    let total = frame.height + decisions::LANES_HEIGHT + 22.0;
    let id = format!("cluster-{index}");
    out.open(
        "svg",
        &[
            ("class", &"plot"),
            ("width", &"100%"),
            ("height", &Number(total)),
            ("role", &"img"),
            ("aria-label", &label),
            ("aria-describedby", &id),
            ("data-height", &Number(frame.height)),
        ],
    );
    out.leaf("desc", &[("id", &id)], &description(run));
    open_stretched(out, frame.height);
    areas(out, frame, run.outcome);
    out.close("svg");
    grid(out, frame, &axis);
    bounds(out, frame, run.outcome);
    decisions::marks(out, run.outcome, &axis, frame.height, frame.is_long);
    out.leaf("line", &[("class", &"cursor"), ("y1", &0), ("y2", &Number(frame.height))], "");
    out.close("svg");
    readings(out, run.outcome, frame);
}

fn description(run: &Run<'_>) -> String {
    let most = |figure: &dyn Fn(&Step) -> u32| run.outcome.steps.iter().map(figure).max().unwrap_or(0);
    format!(
        "Demand of up to {} workers, of which up to {} waited at once; up to {} machines. The table of decisions says why.",
        most(&|step| step.demand_workers),
        most(&|step| pending_workers(run.outcome, step)),
        most(&|step| step.machines.total()),
    )
}

fn areas(out: &mut Markup, frame: &Frame, outcome: &Outcome) {
    let end = frame.x(outcome.end_ms);
    let mut fill = |class: &str, figure: &dyn Fn(&Step) -> u32| {
        let places = frame.places(outcome, Of::Mean, figure);
        out.empty("path", &[("class", &format!("area {class}")), ("d", &area(&places, end, frame.height))]);
    };
    // The highest first: each one covers the lower part of those before it.
    for top in (0..LAYERS.len()).rev() {
        let (class, _, of_layer) = LAYERS[top];
        if outcome.steps.iter().any(|step| of_layer(step) > 0) {
            fill(class, &|step| LAYERS[..=top].iter().map(|(_, _, figure)| figure(step)).sum());
        }
    }
    fill("pending", &|step| step.demand_workers);
    fill("running", &|step| step.demand_workers - pending_workers(outcome, step));
    let mut line = |class: &str, figure: &dyn Fn(&Step) -> u32| {
        let places = frame.places(outcome, Of::High, figure);
        let class = format!("line {class}{}", if frame.is_long { " peaks" } else { "" });
        out.empty("path", &[("class", &class), ("d", &steps(&places, end))]);
    };
    line("total", &|step| step.machines.total());
    // The peaks of a long run cover each other: of them only the two that are asked for.
    if frame.is_long {
        line("pending", &|step| step.demand_workers);
    } else {
        line("ready", &|step| step.machines.ready);
    }
}

fn grid(out: &mut Markup, frame: &Frame, axis: &TimeAxis) {
    for tick in count_ticks(frame.top) {
        let y = Number(frame.y(tick));
        out.empty("line", &[("class", &"grid"), ("x2", &"100%"), ("y1", &y), ("y2", &y)]);
        // The lowest label would stand on the axis, and says nothing.
        if tick > 0.0 {
            out.leaf(
                "text",
                &[("class", &"tick"), ("x", &3), ("y", &Number(frame.y(tick) + 12.0))],
                &count_label(tick),
            );
        }
    }
    let base = frame.height + decisions::LANES_HEIGHT;
    for tick in axis.ticks() {
        let (x, minor) = (Percent(tick.at), if tick.is_major { "" } else { " minor" });
        let line = format!("grid{minor}");
        out.empty("line", &[("class", &line), ("x1", &x), ("x2", &x), ("y1", &0), ("y2", &Number(base))]);
        let anchor = match tick.at {
            at if at < 0.03 => "start",
            at if at > 0.97 => "end",
            _ => "middle",
        };
        let class = format!("tick{minor}");
        out.leaf(
            "text",
            &[("class", &class), ("x", &x), ("y", &Number(base + 16.0)), ("text-anchor", &anchor)],
            &tick.label,
        );
    }
}

fn bounds(out: &mut Markup, frame: &Frame, outcome: &Outcome) {
    for (what, workers) in [("min", outcome.min_workers), ("max", outcome.max_workers)] {
        if workers == 0 || f64::from(workers) > frame.top {
            continue;
        }
        let y = frame.y(workers.into());
        out.empty("line", &[("class", &"bound"), ("x2", &"100%"), ("y1", &Number(y)), ("y2", &Number(y))]);
        // Above the line, or below where the chart ends.
        let text_y = if y < 16.0 { y + 13.0 } else { y - 4.0 };
        let label = format!("{what} {workers}");
        out.leaf(
            "text",
            &[("class", &"tick bound-label"), ("x", &"99.5%"), ("y", &Number(text_y)), ("text-anchor", &"end")],
            &label,
        );
    }
}

/// What the script reads out under the pointer: seconds, then demand, pending and each layer.
fn readings(out: &mut Markup, outcome: &Outcome, frame: &Frame) {
    let every = outcome.steps.len().div_ceil(READABLE_STEPS).max(1);
    let mut rows = String::new();
    for step in outcome.steps.iter().step_by(every) {
        let pending = pending_workers(outcome, step);
        let layers = LAYERS.iter().map(|(_, _, figure)| format!(",{}", figure(step))).collect::<String>();
        let comma = if rows.is_empty() { "" } else { "," };
        rows += &format!("{comma}[{},{},{pending}{layers}]", Number(step.at_ms as f64 / 1000.0), step.demand_workers);
    }
    let names = LAYERS.map(|(_, name, _)| format!("\"{name}\"")).join(",");
    let json = format!(
        "{{\"start\":{},\"length\":{},\"names\":[\"demand\",\"waiting\",{names}],\"rows\":[{rows}]}}",
        outcome.start.timestamp(),
        Number(frame.end_ms as f64 / 1000.0),
    );
    out.raw("<script type=\"application/json\" class=\"readings\">").raw(&json).raw("</script>");
}
