//! One HTML page that shows runs of one scenario: nothing is fetched, nothing is needed but the file itself; readable
//! without script, in light and dark, on a phone and on paper.
//!
//! | file | what it draws |
//! |---|---|
//! | [`summary`] | the lead, the tiles, the table of all figures |
//! | [`cluster`] | demand and capacity over time, with the decisions below |
//! | [`money`] | what was paid for |
//! | [`waits`] | the distribution of waiting; cost against waiting |
//! | [`jobs`] | each job, waiting and working |
//! | [`decisions`] | the decisions as a table; how often each reason was given |

pub mod cluster;
pub mod decisions;
pub mod jobs;
pub mod money;
pub mod summary;
pub mod waits;

use super::{
    figures::Figures,
    names::CONVENTIONS,
    svg::{Attribute, Markup, Number},
    words::{Unit, printable},
};
use crate::sim::outcome::Outcome;

/// One run, and what was computed of it.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// What it yielded.
    pub outcome: &'a Outcome,
    /// Its figures.
    pub figures: &'a Figures,
}

/// What a page shows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// Runs of one scenario, one for each policy; the first is what others are compared with.
    pub runs: &'a [Run<'a>],
    /// What the scenario shows, for people; may be empty.
    pub description: &'a str,
    /// The command that makes this page again.
    pub command: Option<&'a str>,
    /// Files that went in, with what they are known by: their SHA-256.
    pub inputs: &'a [(String, String)],
}

/// A run's place among the others: a letter and a colour.
#[derive(Clone, Copy)]
struct Tag {
    letter: char,
    class: &'static str,
}

const TAGS: [Tag; 8] = [
    Tag { letter: 'A', class: "p0" },
    Tag { letter: 'B', class: "p1" },
    Tag { letter: 'C', class: "p2" },
    Tag { letter: 'D', class: "p3" },
    Tag { letter: 'E', class: "p4" },
    Tag { letter: 'F', class: "p5" },
    Tag { letter: 'G', class: "p6" },
    Tag { letter: 'H', class: "p7" },
];

impl Run<'_> {
    fn policy(&self) -> String {
        printable(&self.outcome.policy)
    }
}

/// Runs with their tags; beyond eight, tags come again.
fn tagged<'a>(runs: &'a [Run<'a>]) -> impl Iterator<Item = (Tag, &'a Run<'a>)> {
    TAGS.iter().copied().cycle().zip(runs)
}

/// A letter on the run's colour; the name stands beside it, so that readers aloud skip it.
fn badge(out: &mut Markup, tag: Tag) {
    let class = format!("badge {}", tag.class);
    out.leaf("span", &[("class", &class), ("aria-hidden", &"true")], &tag.letter.to_string());
}

/// A badge and the policy's name.
fn policy_name(out: &mut Markup, tag: Tag, run: &Run<'_>) {
    badge(out, tag);
    out.text(" ").leaf("span", &[("class", &"name")], &run.policy());
}

/// Opens a drawing as wide as the page; those who do not see it are told what it shows.
fn open_plot(out: &mut Markup, height: f64, label: &str) {
    let attributes: [Attribute<'_>; 5] =
        [("class", &"plot"), ("width", &"100%"), ("height", &Number(height)), ("role", &"img"), ("aria-label", &label)];
    out.open("svg", &attributes);
}

/// A key to colours: class of the swatch, and what it means.
fn legend(out: &mut Markup, entries: &[(&str, &str)]) {
    out.open("ul", &[("class", &"legend")]);
    for (class, text) in entries {
        let class = format!("swatch {class}");
        out.open("li", &[]).leaf("i", &[("class", &class)], "").text(text).close("li");
    }
    out.close("ul");
}

/// A section with its heading and, below it, how to read it.
fn section(out: &mut Markup, id: &str, heading: &str, caption: &str) {
    out.open("section", &[("id", &id)]).leaf("h2", &[], heading);
    if !caption.is_empty() {
        out.leaf("p", &[("class", &"caption")], caption);
    }
}

/// The page. The same runs give the same bytes.
pub fn html(page: &Page<'_>) -> String {
    let mut out = Markup::default();
    let title = page.runs.first().map_or_else(|| "No run".into(), |run| printable(&run.outcome.scenario));
    out.raw("<!DOCTYPE html>\n").open("html", &[("lang", &"en")]);
    head(&mut out, &title);
    out.open("body", &[]);
    masthead(&mut out, page, &title);
    out.open("main", &[]);
    if page.runs.is_empty() {
        out.leaf("p", &[], "There is nothing to show.");
    } else {
        body(&mut out, page.runs);
    }
    conventions(&mut out);
    out.close("main");
    out.raw("<div id=\"tip\" role=\"tooltip\" hidden></div><script>").raw(include_str!("page.js")).raw("</script>");
    out.close("body").close("html").raw("\n");
    out.finish()
}

fn body(out: &mut Markup, runs: &[Run<'_>]) {
    summary::troubles(out, runs);
    summary::tiles(out, runs);
    cluster::charts(out, runs);
    out.open("div", &[("class", &"pair")]);
    money::bars(out, runs);
    if runs.len() > 1 {
        waits::scatter(out, runs);
    } else {
        waits::distribution(out, runs);
    }
    out.close("div");
    if runs.len() > 1 {
        waits::distribution(out, runs);
    }
    jobs::gantt(out, runs);
    decisions::reasons(out, runs);
    decisions::tables(out, runs);
    summary::all_figures(out, runs);
}

fn head(out: &mut Markup, title: &str) {
    out.raw("<head><meta charset=\"utf-8\">");
    out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    out.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    out.leaf("title", &[], &format!("{title}: simulation report"));
    // An empty icon: a browser asks for none.
    out.raw("<link rel=\"icon\" href=\"data:,\"><style>").raw(include_str!("page.css")).raw("</style></head>\n");
}

fn masthead(out: &mut Markup, page: &Page<'_>, title: &str) {
    out.open("header", &[("class", &"masthead")]);
    out.raw("<p class=\"kicker\">yarn-autoscaler simulate</p>").leaf("h1", &[], title);
    if !page.description.is_empty() {
        out.leaf("p", &[("class", &"description")], &printable(page.description));
    }
    if let Some(first) = page.runs.first() {
        out.leaf("p", &[("class", &"lead")], &summary::lead(page.runs));
        out.open("dl", &[("class", &"facts")]);
        let start = first.outcome.start.format("%a %d %b %Y, %H:%M UTC").to_string();
        let length = Unit::Seconds.show(first.figures.length_s);
        let seed = first.outcome.seed.to_string();
        for (what, value) in [("starts", start), ("simulated", length), ("seed", seed)] {
            out.open("div", &[]).leaf("dt", &[], what).leaf("dd", &[], &value).close("div");
        }
        for (name, sum) in page.inputs {
            out.open("div", &[]).leaf("dt", &[], &printable(name));
            out.open("dd", &[]).leaf("code", &[], &printable(sum)).close("dd").close("div");
        }
        if let Some(command) = page.command {
            out.open("div", &[("class", &"command")]).leaf("dt", &[], "made again by");
            out.open("dd", &[]).leaf("code", &[], &printable(command)).close("dd").close("div");
        }
        out.close("dl");
    }
    out.close("header").raw("\n");
}

fn conventions(out: &mut Markup) {
    section(out, "conventions", "How it is counted", "");
    out.open("ul", &[("class", &"conventions")]);
    for convention in CONVENTIONS {
        out.leaf("li", &[], convention.text);
    }
    out.close("ul").close("section");
}
