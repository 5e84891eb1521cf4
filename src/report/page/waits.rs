//! How long jobs waited, as a distribution; and cost against waiting, one mark for each policy.

use super::{Run, Tag, open_plot, policy_name, section, tagged};
use crate::report::{
    axis::{LogTimeAxis, round_ticks},
    svg::{Markup, Number, Percent, STRETCHED, open_stretched, steps},
    waiting::{distribution as shares, sorted_waits},
    words::Unit,
};

const HEIGHT: f64 = 260.0;

/// Room at the top, so that marks and labels are not cut.
const HEAD: f64 = 18.0;

/// Places along a line; more are not seen.
const PLACES: f64 = 400.0;

/// The key to the runs' colours.
fn key(out: &mut Markup, runs: &[Run<'_>]) {
    out.open("ul", &[("class", &"legend")]);
    for (tag, run) in tagged(runs) {
        out.open("li", &[]);
        policy_name(out, tag, run);
        out.close("li");
    }
    out.close("ul");
}

/// The share of jobs that waited no longer than so long.
pub fn distribution(out: &mut Markup, runs: &[Run<'_>]) {
    let caption = "The share of jobs that waited no longer than the time below (logarithmic). The dashed line is one \
                   boot: who waits longer waits for more than a new machine.";
    section(out, "waiting", "How long jobs waited", caption);
    if runs.len() > 1 {
        key(out, runs);
    }
    let longest = runs.iter().filter_map(|run| run.figures.waiting.max_s).fold(0.0, f64::max);
    let boot_s = runs
        .iter()
        .flat_map(|run| run.outcome.groups.values())
        .map(|group| group.boot_ms as f64 / 1000.0)
        .fold(f64::INFINITY, f64::min);
    let axis = LogTimeAxis::new(0.0, if boot_s.is_finite() { longest.max(boot_s * 2.0) } else { longest });
    let label = format!("Distribution of waiting. {}", said(runs));
    out.open("figure", &[("class", &"waits")]);
    open_plot(out, HEAD + HEIGHT + 22.0, &label);
    for share in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = HEAD + HEIGHT * (1.0 - share);
        out.empty("line", &[("class", &"grid"), ("x2", &"100%"), ("y1", &Number(y)), ("y2", &Number(y))]);
        if share > 0.0 {
            out.leaf(
                "text",
                &[("class", &"tick"), ("x", &3), ("y", &Number(y + 12.0))],
                &format!("{} %", share * 100.0),
            );
        }
    }
    for tick in axis.ticks() {
        time_tick(out, tick.at, &tick.label, tick.is_major);
    }
    out.open("svg", &[("y", &Number(HEAD)), ("overflow", &"visible"), ("width", &"100%"), ("height", &Number(HEIGHT))]);
    open_stretched(out, HEIGHT);
    for (tag, run) in tagged(runs) {
        line(out, tag, run, &axis);
    }
    out.close("svg").close("svg");
    if boot_s.is_finite() && boot_s > 0.0 {
        let x = axis.place(boot_s);
        out.empty(
            "line",
            &[
                ("class", &"limit"),
                ("x1", &Percent(x)),
                ("x2", &Percent(x)),
                ("y1", &Number(HEAD)),
                ("y2", &Number(HEAD + HEIGHT)),
            ],
        );
        let anchor = if x > 0.6 { "end" } else { "start" };
        let text = format!("one boot, {}", Unit::Seconds.show(boot_s));
        out.leaf("text", &[("class", &"tick strong"), ("x", &Percent(x)), ("y", &12), ("text-anchor", &anchor)], &text);
    }
    out.close("svg").close("figure").close("section").raw("\n");
}

fn time_tick(out: &mut Markup, at: f64, label: &str, is_major: bool) {
    let minor = if is_major { "" } else { " minor" };
    let (line, class) = (format!("grid{minor}"), format!("tick{minor}"));
    let (x, bottom) = (Percent(at), HEAD + HEIGHT);
    out.empty("line", &[("class", &line), ("x1", &x), ("x2", &x), ("y1", &Number(HEAD)), ("y2", &Number(bottom))]);
    let anchor = match at {
        at if at < 0.03 => "start",
        at if at > 0.96 => "end",
        _ => "middle",
    };
    out.leaf("text", &[("class", &class), ("x", &x), ("y", &Number(bottom + 16.0)), ("text-anchor", &anchor)], label);
}

fn said(runs: &[Run<'_>]) -> String {
    let one = |run: &Run<'_>| {
        let waiting = run.figures.waiting;
        let show = |seconds: Option<f64>| seconds.map_or_else(|| "nothing".into(), |s| Unit::Seconds.show(s));
        format!(
            "{}: half of the jobs waited at most {}, 95 % at most {}.",
            run.policy(),
            show(waiting.p50_s),
            show(waiting.p95_s)
        )
    };
    runs.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn line(out: &mut Markup, tag: Tag, run: &Run<'_>, axis: &LogTimeAxis) {
    let jobs: Vec<_> = run.outcome.jobs.iter().collect();
    let points = shares(&sorted_waits(&jobs, run.outcome.end_ms));
    let mut places = vec![(0.0, HEIGHT)];
    let mut column = -1.0;
    for (wait_ms, share) in points {
        let (at, y) = (axis.place(wait_ms as f64 / 1000.0), HEIGHT * (1.0 - share));
        // Of one place the highest share is drawn: the line still rises.
        match places.last_mut() {
            Some(last) if (at * PLACES).floor() == column => last.1 = y,
            _ => places.push((at * STRETCHED, y)),
        }
        column = (at * PLACES).floor();
    }
    if places.len() > 1 {
        let class = format!("line curve {}", tag.class);
        out.empty("path", &[("class", &class), ("d", &steps(&places, STRETCHED))]);
    }
}

/// Cost against waiting: how far from the bound, and for how much waiting.
pub fn scatter(out: &mut Markup, runs: &[Run<'_>]) {
    let by_bound = runs.iter().all(|run| run.figures.bounds.ratio_to_opt0.is_some());
    let unit = if by_bound { "paid / OPT0" } else { "machine-hours" };
    let caption = format!(
        "To the right: {unit}. Upwards: waiting (logarithmic); full marks are the mean, hollow ones 95 %. Down and left \
         is better; the star is the clairvoyant bound, where nobody waits."
    );
    section(out, "trade", "Cost against waiting", &caption);
    key(out, runs);
    let x_of = |run: &Run<'_>| {
        if by_bound { run.figures.bounds.ratio_to_opt0.unwrap_or(1.0) } else { run.figures.costs.total.machine_hours }
    };
    let values = || runs.iter().map(x_of);
    let low = if by_bound { values().fold(1.0, f64::min) } else { values().fold(f64::INFINITY, f64::min) };
    let high = values().fold(low, f64::max);
    let spread = (high - low).max(low.abs() * 0.05).max(1e-9);
    let (from, to) = (low - spread * 0.28, high + spread * 0.14);
    let place = |value: f64| (value - from) / (to - from);
    let longest = runs.iter().filter_map(|run| run.figures.waiting.p95_s).fold(60.0, f64::max);
    let shortest = runs.iter().filter_map(|run| run.figures.waiting.mean_s).fold(longest, f64::min);
    let waits = LogTimeAxis::new(shortest / 2.0, longest);
    // The star stands on the lowest line, clear of the labels below.
    let y = |seconds: f64| HEAD + HEIGHT * (0.93 - waits.place(seconds) * 0.9);
    let label = format!("Cost against waiting. {}", said(runs));
    out.open("figure", &[("class", &"scatter")]);
    open_plot(out, HEAD + HEIGHT + 22.0, &label);
    for tick in waits.ticks() {
        let line_y = HEAD + HEIGHT * (0.93 - tick.at * 0.9);
        out.empty("line", &[("class", &"grid"), ("x2", &"100%"), ("y1", &Number(line_y)), ("y2", &Number(line_y))]);
        out.leaf("text", &[("class", &"tick"), ("x", &3), ("y", &Number(line_y - 3.0))], &tick.label);
    }
    let ticks: Vec<f64> = round_ticks(to - from)
        .into_iter()
        .map(|step| step + (from / step_of(to - from)).ceil() * step_of(to - from))
        .collect();
    for tick in ticks.into_iter().filter(|tick| *tick < to) {
        let text = if by_bound { format!("{tick:.2}") } else { Unit::Hours.show(tick) };
        time_tick(out, place(tick), &text, true);
    }
    if by_bound {
        let (x, y) = (Percent(place(1.0)), Number(y(0.0)));
        out.open("svg", &[("x", &x), ("y", &y), ("overflow", &"visible"), ("class", &"star")]);
        out.leaf("title", &[], "OPT0: nobody waits, everything is foreseen");
        out.empty("path", &[("d", &"M0-10 2.6-3.4 9.5-3.1 4.1 1.3 5.9 8.1 0 4.3-5.9 8.1-4.1 1.3-9.5-3.1-2.6-3.4Z")])
            .close("svg");
    }
    for (tag, run) in tagged(runs) {
        marks(out, tag, run, place(x_of(run)), &y);
    }
    out.close("svg").close("figure").close("section").raw("\n");
}

fn step_of(spread: f64) -> f64 {
    round_ticks(spread).get(1).copied().unwrap_or(1.0)
}

fn marks(out: &mut Markup, tag: Tag, run: &Run<'_>, x: f64, y: &dyn Fn(f64) -> f64) {
    let waiting = run.figures.waiting;
    let (Some(mean), Some(most)) = (waiting.mean_s, waiting.p95_s) else { return };
    let x = Percent(x);
    out.open("g", &[("class", &format!("dot {}", tag.class))]);
    let ratio = run.figures.bounds.ratio_to_opt0.map(|ratio| format!("{ratio:.3} of OPT0, ")).unwrap_or_default();
    let title =
        format!("{}: {ratio}mean wait {}, 95 % {}", run.policy(), Unit::Seconds.show(mean), Unit::Seconds.show(most));
    out.leaf("title", &[], &title);
    out.empty("line", &[("x1", &x), ("x2", &x), ("y1", &Number(y(mean))), ("y2", &Number(y(most)))]);
    out.empty("circle", &[("class", &"hollow"), ("cx", &x), ("cy", &Number(y(most))), ("r", &5)]);
    out.empty("circle", &[("class", &"full"), ("cx", &x), ("cy", &Number(y(mean))), ("r", &9)]);
    out.leaf("text", &[("x", &x), ("y", &Number(y(mean) + 4.0)), ("text-anchor", &"middle")], &tag.letter.to_string());
    out.close("g");
}
