//! The page in a real browser: nothing missing, nothing beyond the edge, no script error, readable in light and dark.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;
use yarn_autoscaler::{
    report::{self, Figures, Page, Run},
    sim::{
        outcome::{Outcome, Violation},
        workload::Workload,
    },
};

use crate::outcomes::{CORDONING, IDLING, Play, SLUGGISH, again_and_again, nasty, outcome, play};

/// A browser that shows a page and ends; longer means that it hangs.
const PATIENCE: Duration = Duration::from_secs(90);

fn chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|file| file.is_file());
    found.expect("chromium is missing: install it with: apt-get install chromium")
}

/// Runs the browser on a file, with more arguments; what it wrote to stdout.
fn browse(file: &Path, more: &[String]) -> String {
    let profile = tempfile::tempdir().unwrap();
    let said = tempfile::NamedTempFile::new().unwrap();
    let mut browser = Command::new(chromium())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--virtual-time-budget=10000", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(more)
        .arg(format!("file://{}", file.display()))
        .stdin(Stdio::null())
        .stdout(said.reopen().unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = browser.try_wait().unwrap() {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            let _ = browser.kill();
            panic!("chromium shows no page within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(status.success(), "{status}");
    fs::read_to_string(said.path()).unwrap()
}

/// Looks at a page in a frame of this width, with this theme: what `report_probe.js` found.
fn probe(html: &str, width: u32, theme: &str) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("probe.html");
    let page = html.replace('&', "&amp;").replace('"', "&quot;");
    let script = include_str!("report_probe.js");
    let frame = format!(
        "<!DOCTYPE html><meta charset=utf-8><iframe id=page data-theme={theme} style=\"width:{width}px;height:900px;border:0\" \
         srcdoc=\"{page}\"></iframe><pre id=found></pre><script>{script}</script>"
    );
    fs::write(&file, frame).unwrap();
    let dom = browse(&file, &["--window-size=1400,1000".into(), "--dump-dom".into()]);
    let found = dom.rsplit_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let text = found.expect("the probe's answer").0.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn computed(played: &[(Outcome, Workload)]) -> Vec<Figures> {
    played.iter().map(|(outcome, workload)| report::figures(outcome, workload)).collect()
}

fn page_of(outcomes: &[&Outcome], figures: &[Figures]) -> String {
    let runs: Vec<_> = outcomes.iter().zip(figures).map(|(outcome, figures)| Run { outcome, figures }).collect();
    let inputs = [("policy.yaml".to_owned(), "sha256 9f86d081884c7d659a2feaa0c55ad015".to_owned())];
    report::html(&Page {
        runs: &runs,
        description: "A small team trains by day, and leaves long jobs over night.",
        command: Some(
            "yarn-autoscaler simulate two-busy-days.yaml --policy cordon-first.yaml --seed 7 --html report.html",
        ),
        inputs: &inputs,
    })
}

/// Played runs as a page; kept in the target folder, for people.
fn played(name: &str, plays: &[Play]) -> (Vec<Outcome>, String) {
    let played: Vec<_> = plays.iter().map(|how| play(*how)).collect();
    let figures = computed(&played);
    let outcomes: Vec<_> = played.into_iter().map(|(outcome, _)| outcome).collect();
    let html = page_of(&outcomes.iter().collect::<Vec<_>>(), &figures);
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}.html")), &html).unwrap();
    (outcomes, html)
}

fn small(play: Play) -> Play {
    Play { days: 1, jobs_a_day: 30, ..play }
}

fn unharmed(found: &Value) {
    assert_eq!(found["errors"], "", "{found:#}");
    assert_eq!(found["scrollWidth"], found["clientWidth"], "wider than the window: {found:#}");
    assert_eq!(found["beyond"], Value::Array(Vec::new()), "{found:#}");
    assert_eq!(found["clipped"], Value::Array(Vec::new()), "{found:#}");
    assert_eq!(found["pale"], Value::Array(Vec::new()), "{found:#}");
    assert_eq!(found["fetched"], 0, "{found:#}");
}

#[test]
fn one_run_shows_everything_that_it_has() {
    let (outcomes, html) = played("one", &[small(CORDONING)]);
    let outcome = &outcomes[0];
    let found = probe(&html, 1280, "light");
    unharmed(&found);
    let orders = outcome.decisions.iter().filter(|told| !told.actions.is_empty()).count();
    assert_eq!(found["decisionsMarked"], orders, "every order is in a mark");
    assert_eq!(found["decisionRows"], outcome.decisions.len());
    assert_eq!(found["orderRows"], orders);
    assert_eq!(found["jobs"], outcome.jobs.len());
    assert_eq!(found["charts"], 1);
    assert_eq!(found["reasonRows"], outcome.reasons.len());
    assert_eq!(found["bars"], 1);
    assert_eq!(found["curves"], 1);
    assert_eq!(found["dots"], 0, "one run has nothing to be compared with");
    assert_eq!(found["figureRows"], report::names::all().count());
    assert_eq!(found["tables"], found["tablesWithHeaders"]);
    assert_eq!(found["images"], found["namedImages"], "every picture has a name");
    let changes = outcome.steps.windows(2).filter(|pair| pair[0].machines.ready != pair[1].machines.ready).count();
    assert_eq!(found["readySteps"], changes, "each change of the ready line is drawn");
    assert!(found["tip"].as_str().is_some_and(|tip| tip.contains("demand: ")), "{found:#}");
}

#[test]
fn several_runs_stand_side_by_side() {
    let (outcomes, html) = played("three", &[small(CORDONING), small(IDLING), small(SLUGGISH)]);
    let found = probe(&html, 1280, "dark");
    unharmed(&found);
    assert_eq!(
        (&found["charts"], &found["bars"], &found["curves"], &found["dots"]),
        (&3.into(), &3.into(), &3.into(), &3.into())
    );
    assert_eq!(found["jobs"], outcomes.iter().map(|outcome| outcome.jobs.len()).sum::<usize>());
    assert_eq!(found["figureColumns"], 4);
    assert_eq!(found["stars"], 1);
}

#[test]
fn a_phone_scrolls_down_only() {
    for (name, plays) in
        [("one", vec![small(CORDONING)]), ("three", vec![small(CORDONING), small(IDLING), small(SLUGGISH)])]
    {
        let (_, html) = played(name, &plays);
        for theme in ["light", "dark"] {
            unharmed(&probe(&html, 360, theme));
        }
    }
}

#[test]
fn what_others_wrote_is_text() {
    let (mut out, workload) = play(small(CORDONING));
    let name = nasty();
    (out.policy, out.scenario) = (name.to_string(), name.to_string());
    out.jobs.iter_mut().for_each(|job| job.name = name.clone());
    out.decisions.iter_mut().for_each(|told| told.notes.push(name.to_string()));
    out.violations = vec![Violation { at_ms: 0, promise: "whole gangs", text: name.to_string() }; 30];
    out.remarks = vec![name.to_string()];
    let figures = report::figures(&out, &workload);
    let html = page_of(&[&out], &[figures]);
    assert!(!html.contains("<script>alert"), "not escaped");
    let found = probe(&html, 360, "light");
    unharmed(&found);
    assert_eq!(found["scripts"], 2, "ours, and the readings");
    assert_eq!(found["troubles"], 21, "twenty, and the number of the others");
}

#[test]
fn next_to_nothing_is_no_error() {
    let empty = outcome("nothing");
    let figures = [report::figures(&empty, &Workload::default())];
    unharmed(&probe(&page_of(&[&empty], &figures), 360, "light"));
    let mut bare = empty.clone();
    (bare.end_ms, bare.steps) = (0, Vec::new());
    bare.groups.clear();
    bare.accounts.clear();
    let figures = [report::figures(&bare, &Workload::default()), figures[0].clone()];
    unharmed(&probe(&page_of(&[&bare, &empty], &figures), 1280, "dark"));
    unharmed(&probe(&report::html(&Page::default()), 360, "dark"));
}

#[test]
fn the_same_runs_give_the_same_bytes_and_a_long_one_stays_small() {
    let (out, workload) = again_and_again(Play { days: 5, jobs_a_day: 60, ..CORDONING }, 73);
    assert!(out.steps.len() > 30_000 && out.decisions.len() > 10_000, "long enough to matter");
    let page = || page_of(&[&out], &[report::figures(&out, &workload)]);
    let html = page();
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert_eq!(html, page());
    fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-long.html"), &html).unwrap();
    let found = probe(&html, 1280, "light");
    unharmed(&found);
    assert_eq!(found["points"].as_u64().map(|points| points <= 2000), Some(true), "{found:#}");
    let orders = out.decisions.iter().filter(|told| !told.actions.is_empty()).count();
    assert_eq!(found["decisionsMarked"], orders);
    let highest = out.steps.iter().map(|step| step.machines.total()).max().unwrap();
    assert_eq!(found["highestMachines"], highest, "a peak is lost");
}

#[test]
fn it_prints() {
    let (_, html) = played("print", &[small(CORDONING)]);
    let folder = tempfile::tempdir().unwrap();
    let (page, pdf) = (folder.path().join("page.html"), folder.path().join("page.pdf"));
    fs::write(&page, html).unwrap();
    browse(&page, &[format!("--print-to-pdf={}", pdf.display())]);
    let bytes = fs::read(pdf).unwrap();
    assert!(bytes.starts_with(b"%PDF") && bytes.len() > 20_000, "{} bytes", bytes.len());
}
