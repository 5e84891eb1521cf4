//! Texts at random, as scenarios and as traces: nothing panics, and what is said can be shown.

use std::{collections::BTreeMap, fs};

use proptest::prelude::*;
use yarn_autoscaler::sim::{
    scenario,
    workload::{self, TraceFormat, TraceSource},
};

/// Words of a scenario, right and wrong, and bits of YAML.
const WORDS: &[&str] = &[
    "cloud:",
    "workload:",
    "jobs:",
    "generate:",
    "traces:",
    "gang:",
    "groups:",
    "bootTime:",
    "median:",
    "expect:",
    "events:",
    "queues:",
    "sizes:",
    "\n",
    "\n  ",
    "\n    ",
    " ",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "<<: ",
    "!t ",
    "---",
    "\"",
    "'",
    "#",
    "|",
    "5",
    "-1",
    "1.5",
    ".nan",
    "1e999",
    "null",
    "é",
    "\u{feff}",
    "3m",
    "-5m",
    "PACK",
    "primary",
    "\u{0}",
    "\u{1b}[31m",
    "9223372036854775807",
];

/// Loads, renders whatever is said, and builds the jobs of what is valid and small.
fn show(text: &str) {
    let diagnostics = match scenario::load(text) {
        Err(errors) => errors,
        Ok((meant, warnings)) => {
            let few = meant.workload.generators.iter().all(|it| it.jobs_per_day < 1e4 && it.until_ms < 1 << 33);
            if few {
                let queues = &meant.cluster.queues;
                let _ = workload::build(&meant.workload, queues, meant.start, 1, None, &BTreeMap::new());
            }
            warnings
        }
    };
    for diagnostic in diagnostics {
        assert!(!diagnostic.render("scenario.yaml", text, false).is_empty());
        let json = diagnostic.to_json("scenario.yaml", text);
        assert!(json.line >= 1 && json.column >= 1 && json.end_column >= json.column);
    }
}

fn full() -> String {
    fs::read_to_string("tests/fixtures/scenarios/full.yaml").unwrap()
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*") {
        show(&text);
    }

    #[test]
    fn no_yaml_like_text_panics(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        show(&words.concat());
    }

    #[test]
    fn no_damaged_scenario_panics(at in any::<prop::sample::Index>(), word in prop::sample::select(WORDS)) {
        let mut text = full();
        let at = at.index(text.len());
        text.replace_range(at..=at, word);
        show(&text);
    }

    /// A value replaced by another one of the file: what fits there, where it does not belong.
    #[test]
    fn no_mixed_up_scenario_panics(from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let text = full();
        let lines: Vec<_> = text.lines().collect();
        let value = |line: &str| line.split_once(": ").map(|(_, value)| value.to_string());
        let (from, to) = (lines[from.index(lines.len())], to.index(lines.len()));
        let (Some(new), Some((key, _))) = (value(from), lines[to].split_once(": ")) else { return Ok(()) };
        let changed = format!("{key}: {new}");
        let mixed: Vec<_> = lines.iter().enumerate().map(|(n, line)| if n == to { &changed[..] } else { line }).collect();
        show(&mixed.join("\n"));
    }

    #[test]
    fn no_trace_panics(
        format in prop::sample::select(&[TraceFormat::Philly, TraceFormat::Gaia, TraceFormat::Swim, TraceFormat::Rows][..]),
        rows in prop::collection::vec(prop::collection::vec(prop::sample::select(CELLS), 0..13), 0..30),
    ) {
        let (header, comma) = match format {
            TraceFormat::Philly => ("timestamp,duration,num_gpus,gpu_time,cluster\n", ","),
            TraceFormat::Gaia => ("arrival_time,length,cpus\n", ","),
            TraceFormat::Swim => ("", "\t"),
            TraceFormat::Rows => {
                ("job,submit_s,type,queue,group,containers,memory_mb,vcores,gpus,duration_s,shape\n", ",")
            }
        };
        let rows: Vec<_> = rows.iter().map(|row| row.join(comma)).collect();
        let source = TraceSource {
            format,
            file: "t".into(),
            cluster: None,
            skip_ms: 0,
            queue: "default".into(),
            container: Default::default(),
            on_loss: Default::default(),
        };
        let plan = scenario::WorkloadPlan { traces: vec![source], ..Default::default() };
        let texts = BTreeMap::from([("t".to_string(), format!("{header}{}", rows.join("\n")))]);
        match workload::build(&plan, &[], Default::default(), 1, None, &texts) {
            Ok((built, notes)) => {
                prop_assert!(built.jobs.is_sorted_by_key(|job| job.submit_ms));
                prop_assert_eq!(notes[0].jobs, built.jobs.len());
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

/// Fields of a trace, right, wrong and absurd.
const CELLS: &[&str] = &[
    "",
    "a",
    "b",
    "0",
    "1",
    "2.5",
    "-1",
    "1e300",
    "1e999",
    "NaN",
    "inf",
    "18446744073709551615",
    "GANG",
    "TASKS",
    "master",
    "2020-02-30 00:00:00",
    "2020-02-29 23:59:59",
    "9999-12-31 23:59:59",
    "\"",
    "\"\"",
    "é",
    "\u{0}",
];
