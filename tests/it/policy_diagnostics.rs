//! What is said about bad and doubtful policy files, word for word.

use yarn_autoscaler::policy::{
    self, LoadOptions, diagnostic,
    document::{MAX_BYTES, MAX_DIAGNOSTICS},
};

use crate::policy::{fixtures, stem};

fn render(name: &str, text: &str) -> String {
    let said = policy::load(text, &LoadOptions::default()).map_or_else(|errors| errors, |loaded| loaded.warnings);
    let said: Vec<_> = said.iter().map(|diagnostic| diagnostic.render(&format!("{name}.yaml"), text, false)).collect();
    said.join("\n\n")
}

/// Each file of `invalid` is refused, and what is said about it is this.
#[test]
fn errors_in_full() {
    for (path, text) in fixtures("invalid") {
        let name = stem(&path);
        assert!(policy::load(&text, &LoadOptions::default()).is_err(), "{name} is valid");
        insta::with_settings!({ description => "tests/fixtures/policies/invalid", omit_expression => true }, {
            insta::assert_snapshot!(format!("invalid_{name}"), render(&name, &text));
        });
    }
}

/// Each file of `lints` draws the one warning that it is named after; `none` draws none.
#[test]
fn warnings_in_full() {
    for (path, text) in fixtures("lints") {
        let name = stem(&path);
        let warnings = policy::load(&text, &LoadOptions::default()).unwrap().warnings;
        let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
        if name == "none" {
            assert!(codes.is_empty(), "{codes:?}");
        } else {
            assert!(matches!(codes[..], [code] if name.starts_with(code)), "{name}: {codes:?}");
            insta::with_settings!({ description => "tests/fixtures/policies/lints", omit_expression => true }, {
                insta::assert_snapshot!(format!("lint_{name}"), render(&name, &text));
            });
        }
    }
}

/// Which of the public policies draw a warning: a lint that most of them draw would be noise.
#[test]
fn warnings_of_the_corpus() {
    let lines = fixtures("dataproc").into_iter().map(|(path, text)| {
        let warnings = policy::load(&text, &LoadOptions::default()).unwrap().warnings;
        let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
        format!("{:11} {}", stem(&path), codes.join(" "))
    });
    let table = lines.map(|line| line.trim_end().to_string()).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(table);
}

#[test]
fn a_file_is_limited_in_size() {
    let policy = "workerConfig: {maxInstances: 3}\nbasicAlgorithm: {yarnConfig: {scaleUpFactor: 1}}\n#";
    let padded = |bytes: usize| policy.to_string() + &"x".repeat(bytes - policy.len());
    assert!(policy::load(&padded(MAX_BYTES), &LoadOptions::default()).is_ok());
    let errors = policy::load(&padded(MAX_BYTES + 1), &LoadOptions::default()).unwrap_err();
    assert_eq!(errors.iter().map(|error| error.code).collect::<Vec<_>>(), ["too-large"]);
}

/// Deep nesting, alias bombs, long keys and thousands of mistakes end at once, with errors.
#[test]
fn attacks_cost_no_time() {
    let started = std::time::Instant::now();
    let nested = "[".repeat(200_000);
    let nested_maps = "{a: ".repeat(100_000);
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 9].join(", "));
    }
    let labels = format!("labels: *a11\n{bomb}");
    let long_key = format!("{}: [{}]", "k".repeat(400_000), "0,".repeat(200_000));
    let unknown: String = (0..80_000).map(|n| format!("f{n}: 1\n")).collect();
    let twice = "id: abc\n".repeat(100_000);
    for text in [&nested, &nested_maps, &bomb, &labels, &long_key, &unknown, &twice] {
        let errors = policy::load(text, &LoadOptions::default()).unwrap_err();
        assert!((1..=MAX_DIAGNOSTICS + 1).contains(&errors.len()));
        assert!(!errors[0].render("attack.yaml", text, false).is_empty());
    }
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn bytes_that_are_no_text_are_pointed_at() {
    assert_eq!(diagnostic::decode("é: 1".as_bytes()).unwrap(), "é: 1");
    let (text, error) = *diagnostic::decode(b"id: abc\nname: \xff\xfe\n").unwrap_err();
    insta::assert_snapshot!(error.render("policy.yaml", &text, false));
}

#[test]
fn positions_for_machines_count_characters() {
    let text = "# é\n{labels: {team: é}, workerConfig: {maxInstances: 10}, basicAlgorithm: {yarnConfig: {\"scaleUpFactor\": 7}}}\n";
    let errors = policy::load(text, &LoadOptions::default()).unwrap_err();
    insta::assert_json_snapshot!(errors[0].to_json("policies/a.yaml", text));
}
