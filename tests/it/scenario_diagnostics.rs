//! What is said about bad and doubtful scenario files, word for word.

use yarn_autoscaler::{
    policy::document::MAX_DIAGNOSTICS,
    sim::scenario::{self, Scenario},
};

use crate::{policy::stem, scenario::fixtures};

fn render(name: &str, text: &str) -> String {
    let said = scenario::load(text).map_or_else(|errors| errors, |(_, warnings)| warnings);
    let said: Vec<_> = said.iter().map(|diagnostic| diagnostic.render(&format!("{name}.yaml"), text, false)).collect();
    said.join("\n\n")
}

/// Each file of `invalid` is refused, and what is said about it is this.
#[test]
fn errors_in_full() {
    for (path, text) in fixtures("invalid") {
        let name = stem(&path);
        assert!(scenario::load(&text).is_err(), "{name} is valid");
        insta::with_settings!({ description => "tests/fixtures/scenarios/invalid", omit_expression => true }, {
            insta::assert_snapshot!(format!("invalid_{name}"), render(&name, &text));
        });
    }
}

/// Each file of `warnings` draws the one warning that it is named after; `none` draws none.
#[test]
fn warnings_in_full() {
    for (path, text) in fixtures("warnings") {
        let name = stem(&path);
        let (_, warnings): (Scenario, _) = scenario::load(&text).unwrap();
        let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
        if name == "none" {
            assert!(codes.is_empty(), "{codes:?}");
            continue;
        }
        assert!(matches!(codes[..], [code] if name.starts_with(code)), "{name}: {codes:?}");
        insta::with_settings!({ description => "tests/fixtures/scenarios/warnings", omit_expression => true }, {
            insta::assert_snapshot!(format!("warning_{name}"), render(&name, &text));
        });
    }
}

/// Alias bombs, thousands of mistakes and millions of jobs end at once, with errors.
#[test]
fn attacks_cost_no_time() {
    let started = std::time::Instant::now();
    let head = "cloud: {primary: {worker: {memoryMb: 1024, vcores: 1}}}\nworkload:\n";
    let many = |item: &str, n: usize| format!("{head}  jobs:\n{}", item.repeat(n));
    let jobs = many("  - {name: a, count: 1000000, gang: {duration: 1s, groups: [{memoryMb: 1}]}}\n", 10_000);
    let empty = many("  - {}\n", 100_000);
    let unknown = many("  - {nmae: a, gang: {durations: 1}}\n", 20_000);
    let drawn = "  - {name: a, jobsPerDay: 1000000, until: 3650d, gang: {duration: 1s, groups: [{memoryMb: 1}]}}\n";
    let drawn = format!("{head}  generate:\n{}", drawn.repeat(5_000));
    let mut bomb = String::from("a0: &a0 {name: x, stages: [{tasks: 1, memoryMb: 1, taskTime: 1s}]}\n");
    for level in 1..12 {
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", "));
    }
    let bomb = format!("{bomb}{head}  jobs: *a11\n");
    for text in [&jobs, &empty, &unknown, &drawn, &bomb] {
        let errors = scenario::load(text).unwrap_err();
        assert!((1..=MAX_DIAGNOSTICS + 1).contains(&errors.len()));
        assert!(!errors[0].render("attack.yaml", text, false).is_empty());
    }
    assert!(started.elapsed().as_secs() < 40, "{:?}", started.elapsed());
}
