//! What a reader sees first: the lead, what went wrong, the tiles; and last, the table of all figures.

use super::{Run, badge, policy_name, section, tagged};
use crate::report::{
    figures::{Figures, Jobs},
    names::{self, Better, SECTIONS, Section},
    svg::Markup,
    words::{NONE, Unit, count, grouped, printable},
};

/// The outcome in a few sentences.
pub fn lead(runs: &[Run<'_>]) -> String {
    let figures: Vec<&Figures> = runs.iter().map(|run| run.figures).collect();
    let cheapest = least(&figures, |f| Some(f.costs.total.machine_hours));
    let quickest = least(&figures, |f| f.waiting.mean_s);
    match (figures.as_slice(), cheapest, quickest) {
        ([one], ..) => about_one(one),
        ([_, ..], Some(cheapest), Some(quickest)) if cheapest == quickest => {
            let name = printable(&figures[cheapest].policy);
            format!(
                "Of {} policies, {name} used the fewest machine-hours and let jobs wait the least. {}",
                runs.len(),
                about_one(figures[cheapest])
            )
        }
        ([_, ..], Some(cheapest), Some(quickest)) => {
            let (paid, waited) = (figures[cheapest], figures[quickest]);
            format!(
                "Of {} policies, {} used the fewest machine-hours ({}{}); with {} jobs waited the least ({} on average, against {}).",
                runs.len(),
                printable(&paid.policy),
                Unit::Hours.show(paid.costs.total.machine_hours),
                times_bound(paid),
                printable(&waited.policy),
                Unit::Seconds.show(waited.waiting.mean_s.unwrap_or(0.0)),
                Unit::Seconds.show(paid.waiting.mean_s.unwrap_or(0.0)),
            )
        }
        _ => String::new(),
    }
}

fn times_bound(figures: &Figures) -> String {
    figures.bounds.ratio_to_opt0.map(|ratio| format!(", {ratio:.2} times the clairvoyant bound")).unwrap_or_default()
}

fn about_one(figures: &Figures) -> String {
    let jobs = figures.jobs;
    let mut text = format!("{} of {} ended well", grouped(jobs.succeeded as f64, 0), count(jobs.total, "job"));
    if let (Some(half), Some(most)) = (figures.waiting.p50_s, figures.waiting.p95_s) {
        text += &format!(
            "; half of them waited at most {}, 95 % at most {}",
            Unit::Seconds.show(half),
            Unit::Seconds.show(most)
        );
    }
    text += &format!(
        ". {} of machines were paid for{}",
        Unit::Hours.show(figures.costs.total.machine_hours),
        times_bound(figures)
    );
    if let Some(share) = figures.costs.useful_share {
        text += &format!("; {} of them did useful work", Unit::Share.show(share));
    }
    text + "."
}

fn least(figures: &[&Figures], of: fn(&Figures) -> Option<f64>) -> Option<usize> {
    let values = figures.iter().enumerate().filter_map(|(index, figures)| Some((index, of(figures)?)));
    values.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(index, _)| index)
}

/// Broken promises, and remarks; nothing where there are none.
pub fn troubles(out: &mut Markup, runs: &[Run<'_>]) {
    /// More are a flood: the JSON has them all.
    const SHOWN: usize = 20;
    let of = |lines: fn(&Figures) -> &Vec<String>| -> Vec<String> {
        let named = |run: &Run<'_>| {
            lines(run.figures).iter().map(|line| format!("{}: {line}", run.policy())).collect::<Vec<_>>()
        };
        runs.iter().flat_map(named).collect()
    };
    for (class, heading, lines) in [
        ("trouble", "Promises were broken", of(|figures| &figures.violations)),
        ("remarks", "To be known", of(|figures| &figures.remarks)),
    ] {
        if lines.is_empty() {
            continue;
        }
        out.open("aside", &[("class", &class)]).leaf("h2", &[], heading).open("ul", &[]);
        for line in lines.iter().take(SHOWN) {
            out.leaf("li", &[], &printable(line));
        }
        if lines.len() > SHOWN {
            out.leaf("li", &[], &format!("and {} more", lines.len() - SHOWN));
        }
        out.close("ul").close("aside");
    }
}

/// The figures that most ask for: large for one run, a row of cards for several.
pub fn tiles(out: &mut Markup, runs: &[Run<'_>]) {
    let is_single = runs.len() == 1;
    for (tag, run) in tagged(runs) {
        out.open("section", &[("class", &(if is_single { "tiles" } else { "tiles several" }))]);
        if !is_single {
            out.open("h2", &[("class", &"run")]);
            policy_name(out, tag, run);
            out.close("h2");
        }
        out.open("dl", &[]);
        // Side by side there is no room for what differs least.
        for (what, value, more) in tile_texts(run.figures).into_iter().filter(|tile| is_single || tile.0 != "Makespan")
        {
            out.open("div", &[("class", &"tile")]).leaf("dt", &[], what);
            out.leaf("dd", &[("class", &"value")], &value).leaf("dd", &[("class", &"more")], &more).close("div");
        }
        out.close("dl").close("section");
    }
}

fn tile_texts(figures: &Figures) -> Vec<(&'static str, String, String)> {
    let show = |unit: Unit, value: Option<f64>| value.map_or_else(|| NONE.into(), |value| unit.show(value));
    let costs = &figures.costs.total;
    let hours = Unit::Hours.show(costs.machine_hours);
    let (cost, below) = if figures.costs.priced {
        (("Cost", Unit::Money.show(costs.cost)), format!("{hours} of machines"))
    } else {
        (("Machine-hours", hours), format!("{} of GPUs", Unit::Hours.show(costs.gpu_hours)))
    };
    let (jobs, counts, waiting) = (figures.jobs, figures.counts, figures.waiting);
    let whole = |number: u64| Unit::Count.show(number as f64);
    let work = format!("{} of the work alone", show(Unit::Ratio, figures.bounds.ratio_to_work));
    let killed = format!("{} lost to faults", whole(counts.containers_lost));
    let boots = format!("{} boots, {} taken back", whole(counts.boots), whole(counts.recommissions));
    let ended = format!("{} / {}", whole(jobs.succeeded as u64), whole(jobs.total as u64));
    vec![
        (cost.0, cost.1, below),
        ("Paid / OPT0", show(Unit::Ratio, figures.bounds.ratio_to_opt0), work),
        ("Mean wait", show(Unit::Seconds, waiting.mean_s), format!("95 %: {}", show(Unit::Seconds, waiting.p95_s))),
        ("Useful", show(Unit::Share, figures.costs.useful_share), "of what was paid for".into()),
        ("Jobs", ended, others(jobs)),
        ("Makespan", show(Unit::Seconds, figures.makespan_s), format!("{} restarts", whole(jobs.restarts))),
        ("Containers killed", whole(counts.containers_killed), killed),
        ("Most machines", whole(counts.peak_workers.into()), boots),
    ]
}

/// What became of the jobs that did not end well.
fn others(jobs: Jobs) -> String {
    let kinds = [(jobs.failed, "failed"), (jobs.unfinished, "unfinished")];
    let kinds: Vec<_> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    match jobs.total {
        0 => "none was submitted".into(),
        _ if kinds.is_empty() => "all ended well".into(),
        _ => kinds.join(", "),
    }
}

/// Every figure of every run; of several the best is marked. One run's stand in columns, a table for each subject.
pub fn all_figures(out: &mut Markup, runs: &[Run<'_>]) {
    let is_single = runs.len() == 1;
    section(out, "figures", "All figures", if is_single { "" } else { "The best of each row is bold." });
    if is_single {
        out.raw("<div class=\"columns\">");
        for section in SECTIONS {
            out.open("table", &[("class", &"figures")]).raw("<thead><tr>");
            out.leaf("th", &[("scope", &"col")], section.title);
            out.raw("<th scope=\"col\"><span class=\"hidden\">Value</span></th></tr></thead><tbody>");
            rows(out, runs, section);
            out.raw("</tbody></table>");
        }
    } else {
        out.raw("<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"All figures\">");
        out.open("table", &[("class", &"figures")]).raw("<thead><tr><th scope=\"col\">Figure</th>");
        for (tag, run) in tagged(runs) {
            out.open("th", &[("scope", &"col"), ("class", &"number")]);
            badge(out, tag);
            out.text(" ").text(&run.policy()).close("th");
        }
        out.raw("</tr></thead>");
        for section in SECTIONS {
            out.raw("<tbody><tr class=\"group\">");
            out.leaf("th", &[("colspan", &(runs.len() + 1)), ("scope", &"rowgroup")], section.title).raw("</tr>");
            rows(out, runs, section);
            out.raw("</tbody>");
        }
        out.raw("</table>");
    }
    out.raw("</div></section>\n");
}

fn rows(out: &mut Markup, runs: &[Run<'_>], section: &Section) {
    for named in section.figures {
        out.raw("<tr>").leaf("th", &[("scope", &"row"), ("title", &named.name)], named.label);
        let best = best(runs, named);
        for run in runs {
            let is_best = best.is_some() && (named.value)(run.figures) == best;
            let class = if is_best { "number best" } else { "number" };
            out.leaf("td", &[("class", &class)], &named.show(run.figures));
        }
        out.raw("</tr>");
    }
}

/// The best value where the runs differ.
fn best(runs: &[Run<'_>], named: &names::Named) -> Option<f64> {
    let values = || runs.iter().filter_map(|run| (named.value)(run.figures));
    let (low, high) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
    match named.better? {
        _ if low == high => None,
        Better::Less => Some(low),
        Better::More => Some(high),
    }
}
