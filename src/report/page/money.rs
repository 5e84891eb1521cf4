//! What was paid for, as stacked bars, with the bounds across.

use super::{Run, legend, open_plot, policy_name, section, tagged};
use crate::report::{
    svg::{Markup, Number, Percent},
    words::{Unit, grouped},
};

/// Parts of less than this share of the widest bar carry no label.
const LABEL_SHARE: f64 = 0.12;

const BAR_HEIGHT: f64 = 34.0;
const HEAD_HEIGHT: f64 = 6.0;
const FOOT_HEIGHT: f64 = 40.0;

/// A bar for each run.
pub fn bars(out: &mut Markup, runs: &[Run<'_>]) {
    let caption = "Machine-hours by what they were good for. Lines: the work alone (W), and the least with which nobody \
                   waits (OPT0).";
    section(out, "cost", "What was paid for", caption);
    let names = ["useful", "lost", "held", "boot", "idle", "fragmentation"];
    let words = ["useful", "lost", "held by what could not work", "booting", "idle", "left over beside containers"];
    let is_there = |index: usize| runs.iter().any(|run| run.figures.costs.total.parts.named()[index].1 > 0.0);
    let classes: Vec<String> = names.iter().map(|name| format!("part-{name}")).collect();
    let entries: Vec<(&str, &str)> = (0..names.len())
        .filter(|index| is_there(*index))
        .map(|index| (classes[index].as_str(), words[index]))
        .collect();
    legend(out, &entries);
    let widest = |hours: fn(&Run<'_>) -> f64| runs.iter().map(hours).fold(0.0, f64::max);
    let top =
        widest(|run| run.figures.costs.total.machine_hours).max(widest(|run| run.figures.bounds.opt0_machine_hours));
    let top = if top > 0.0 { top * 1.02 } else { 1.0 };
    for (tag, run) in tagged(runs) {
        out.open("figure", &[("class", &"money")]).open("figcaption", &[]);
        if runs.len() > 1 {
            policy_name(out, tag, run);
        }
        let total = &run.figures.costs.total;
        let cost =
            if run.figures.costs.priced { format!(", cost {}", Unit::Money.show(total.cost)) } else { String::new() };
        let line = format!(" {} of machines{cost}", Unit::Hours.show(total.machine_hours));
        out.leaf("span", &[("class", &"amount")], &line).close("figcaption");
        bar(out, run, top);
        out.close("figure");
    }
    if let [run] = runs {
        parts(out, run, &words);
    }
    out.close("section").raw("\n");
}

/// The parts of a single run in figures: there is room for them.
fn parts(out: &mut Markup, run: &Run<'_>, words: &[&str; 6]) {
    let total = run.figures.costs.total;
    out.raw("<table class=\"parts\"><thead><tr><th scope=\"col\">Part</th><th scope=\"col\" class=\"number\">Machine-hours</th>");
    out.raw("<th scope=\"col\" class=\"number\">Share</th></tr></thead><tbody>");
    for ((name, hours), word) in total.parts.named().iter().zip(words) {
        let class = format!("swatch part-{name}");
        out.raw("<tr><th scope=\"row\">").leaf("i", &[("class", &class)], "").text(word).raw("</th>");
        out.leaf("td", &[("class", &"number")], &Unit::Hours.show(*hours));
        let share = Unit::Share.show(hours / total.machine_hours.max(f64::MIN_POSITIVE));
        out.leaf("td", &[("class", &"number")], &share).raw("</tr>");
    }
    out.raw("</tbody></table>");
}

fn bar(out: &mut Markup, run: &Run<'_>, top: f64) {
    let parts = run.figures.costs.total.parts.named();
    let said: Vec<_> = parts.iter().map(|(name, hours)| format!("{name} {}", Unit::Hours.show(*hours))).collect();
    let label = format!("Paid for under {}: {}", run.policy(), said.join(", "));
    open_plot(out, HEAD_HEIGHT + BAR_HEIGHT + FOOT_HEIGHT, &label);
    let mut x = 0.0;
    for (name, hours) in parts.iter().filter(|(_, hours)| *hours > 0.0) {
        let share = hours / top;
        out.open("g", &[("class", &format!("part part-{name}"))]);
        let of_all = hours / run.figures.costs.total.machine_hours.max(f64::MIN_POSITIVE) * 100.0;
        out.leaf("title", &[], &format!("{name}: {} ({of_all:.1} %)", Unit::Hours.show(*hours)));
        let (at, width, y) = (Percent(x), Percent(share), Number(HEAD_HEIGHT));
        out.empty("rect", &[("x", &at), ("width", &width), ("y", &y), ("height", &Number(BAR_HEIGHT))]);
        if share >= LABEL_SHARE {
            let middle = Percent(x + share / 2.0);
            let y = Number(HEAD_HEIGHT + BAR_HEIGHT / 2.0 + 4.5);
            out.leaf(
                "text",
                &[("x", &middle), ("y", &y), ("text-anchor", &"middle")],
                &format!("{} %", grouped(of_all, 0)),
            );
        }
        out.close("g");
        x += share;
    }
    let bounds = run.figures.bounds;
    // The two may be close: one is named below the other, the lower one to the left of its line.
    let lines = [("W", bounds.work_machine_hours, "end", 13.0), ("OPT0", bounds.opt0_machine_hours, "start", 13.0)];
    for (name, hours, anchor, below) in lines {
        let at = hours / top;
        let bottom = HEAD_HEIGHT + BAR_HEIGHT + 6.0;
        out.empty(
            "line",
            &[("class", &"limit"), ("x1", &Percent(at)), ("x2", &Percent(at)), ("y1", &0), ("y2", &Number(bottom))],
        );
        let (anchor, below) = match at {
            at if at < 0.2 && anchor == "end" => ("start", below + 14.0),
            at if at > 0.75 && anchor == "start" => ("end", below + 14.0),
            _ => (anchor, below),
        };
        let text = format!("{name} {}", Unit::Hours.show(hours));
        out.leaf(
            "text",
            &[("class", &"tick"), ("x", &Percent(at)), ("y", &Number(bottom + below - 3.0)), ("text-anchor", &anchor)],
            &text,
        );
    }
    out.close("svg");
}
