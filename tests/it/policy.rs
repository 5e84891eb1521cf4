//! What a policy file means.

use std::{fmt::Write as _, fs, path::PathBuf, time::Duration};

use yarn_autoscaler::{
    model::{GroupName, Resources},
    policy::{self, GroupPolicy, LoadOptions, Loaded, MetricType, Policy, duration},
};

/// The files of a folder below `tests/fixtures/policies`, with their texts, in order.
pub fn fixtures(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/policies").join(folder);
    files_of(folder)
}

/// The policies that the product ships.
pub fn shipped() -> Vec<(PathBuf, String)> {
    let mut files = files_of(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies"));
    files.retain(|(path, _)| path.extension().is_some_and(|extension| extension == "yaml"));
    files
}

fn files_of(folder: PathBuf) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The file name without its ending.
pub fn stem(path: &std::path::Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

fn load(text: &str) -> Result<Loaded, Vec<policy::Diagnostic>> {
    policy::load(text, &LoadOptions::default())
}

/// The policy of a text that has one.
pub fn valid(text: &str) -> Policy {
    load(text).unwrap_or_else(|errors| panic!("{text}\n{errors:#?}")).policy
}

fn codes(text: &str) -> Vec<&'static str> {
    load(text).map_or_else(|errors| errors, |loaded| loaded.warnings).iter().map(|d| d.code).collect()
}

fn row(policy: &Policy) -> String {
    let basic = policy.basic();
    let group = |group: GroupPolicy| format!("{}..{} ({})", group.min_instances, group.max_instances, group.weight);
    format!(
        "{:5} {:4} {:4} {:4} {:4} {:4} | {:10} | {}",
        duration::format(basic.cooldown_period),
        basic.scale_up_factor,
        basic.scale_down_factor,
        basic.scale_up_min_worker_fraction,
        basic.scale_down_min_worker_fraction,
        duration::format(basic.graceful_decommission_timeout),
        group(policy.primary),
        policy.secondary.map_or_else(|| "none".into(), group),
    )
}

/// Policies found in public repositories and Dataproc's own tests and samples: values, not texts. Numbers are those of
/// the collection they come from; the written `0.0`, an exported file's missing zero and JSON all mean the same.
#[test]
fn the_corpus_means_what_dataproc_means() {
    let mut table = String::from("            cd    U    D    Um   Dm   G    | primary    | secondary\n");
    for (path, text) in fixtures("dataproc") {
        writeln!(table, "{:11} {}", stem(&path), row(&valid(&text))).unwrap();
    }
    insta::assert_snapshot!(table);
}

#[test]
fn defaults_are_filled_as_the_service_fills_them() {
    let policy = valid("workerConfig: {maxInstances: 5}\nbasicAlgorithm: {yarnConfig: {}}");
    let basic = policy.basic();
    assert_eq!(policy.id, None);
    assert_eq!(policy.primary, GroupPolicy { min_instances: 2, max_instances: 5, weight: 1 });
    assert_eq!(policy.secondary, None);
    assert_eq!(basic.cooldown_period, Duration::from_secs(120));
    assert_eq!(basic.graceful_decommission_timeout, Duration::ZERO);
    assert_eq!(basic.metrics, [MetricType::YarnMemory]);
    let numbers = [
        basic.scale_up_factor,
        basic.scale_down_factor,
        basic.scale_up_min_worker_fraction,
        basic.scale_down_min_worker_fraction,
    ];
    assert_eq!(numbers, [0.0; 4]);
}

#[test]
fn a_null_is_absent() {
    let text = "id: null\nworkerConfig: {maxInstances: 5, minInstances: ~}\nsecondaryWorkerConfig:\n\
                basicAlgorithm: {cooldownPeriod: , yarnConfig: {scaleUpFactor: null}}";
    let policy = valid(text);
    assert_eq!((policy.primary.min_instances, policy.secondary), (2, None));
    assert_eq!(policy.basic().cooldown_period, Duration::from_secs(120));
}

#[test]
fn weights_follow_what_is_given() {
    // (primary, secondary as written) -> as meant. A zero on the wire is as good as none.
    let cases = [
        (None, None, (1, 1)),
        (Some(2), Some(1), (2, 1)),
        (Some(3), None, (3, 0)),
        (None, Some(4), (0, 4)),
        (Some(0), None, (1, 1)),
        (Some(0), Some(2), (0, 2)),
        (Some(0), Some(0), (1, 1)),
    ];
    for (primary, secondary, meant) in cases {
        let written = |weight: Option<u32>| weight.map_or(String::new(), |weight| format!(", weight: {weight}"));
        let policy = valid(&format!(
            "workerConfig: {{maxInstances: 5{}}}\nsecondaryWorkerConfig: {{maxInstances: 5{}}}\n\
             basicAlgorithm: {{yarnConfig: {{scaleUpFactor: 1}}}}",
            written(primary),
            written(secondary)
        ));
        let weights = GroupName::ALL.map(|name| policy.group(name).weight);
        assert_eq!(weights, [meant.0, meant.1], "{primary:?} {secondary:?}");
    }
}

#[test]
fn a_secondary_group_without_maximum_has_no_workers() {
    let policy =
        valid("workerConfig: {maxInstances: 5}\nsecondaryWorkerConfig: {weight: 1}\nbasicAlgorithm: {yarnConfig: {}}");
    assert_eq!(policy.group(GroupName::Secondary), GroupPolicy { min_instances: 0, max_instances: 0, weight: 1 });
}

#[test]
fn a_zero_scale_cluster_may_shrink_to_nothing() {
    let algorithm = "basicAlgorithm: {yarnConfig: {scaleUpFactor: 1, gracefulDecommissionTimeout: 1h}}";
    let secondary = "secondaryWorkerConfig: {maxInstances: 8}";
    let none = GroupPolicy { min_instances: 0, max_instances: 0, weight: 1 };
    let bare = valid(&format!("clusterType: ZERO_SCALE\n{secondary}\n{algorithm}"));
    assert_eq!(bare.primary, none);
    let zero = "workerConfig: {minInstances: 0, maxInstances: 0}";
    assert_eq!(valid(&format!("clusterType: ZERO_SCALE\n{zero}\n{secondary}\n{algorithm}")).primary, none);
    // What a zero-scale cluster may, a standard one may not: there a minimum of 0 is none, and means 2.
    for standard in ["clusterType: STANDARD\n", "clusterType: CLUSTER_TYPE_UNSPECIFIED\n", ""] {
        assert_eq!(codes(&format!("{standard}{zero}\n{algorithm}")), ["min-above-max"], "{standard}");
        let room = "workerConfig: {minInstances: 0, maxInstances: 5}";
        assert_eq!(valid(&format!("{standard}{room}\n{algorithm}")).primary.min_instances, 2, "{standard}");
    }
}

#[test]
fn extensions_are_read() {
    let policy = valid(
        "workerConfig: {maxInstances: 2}\n\
         secondaryWorkerConfig:\n  maxInstances: 8\n  template: {memoryMb: 24576, vcores: 8, gpus: 2, bootTime: 3m}\n\
         basicAlgorithm: {yarnConfig: {scaleUpFactor: 1, metrics: [YARN_CORES, YARN_MEMORY]}}",
    );
    assert_eq!(policy.basic().metrics, [MetricType::YarnCores, MetricType::YarnMemory]);
    assert_eq!(policy.primary_template, None);
    let template = policy.template(GroupName::Secondary).unwrap();
    assert_eq!(template.resources, Resources::new(24_576, 8, 2));
    assert_eq!(template.boot_time, Some(Duration::from_secs(180)));
}

#[test]
fn numbers_are_read_as_protobuf_reads_them() {
    let policy = valid(
        "workerConfig: {maxInstances: \"10\", minInstances: 2.0}\n\
         basicAlgorithm: {yarnConfig: {scaleUpFactor: 1, scaleDownFactor: \"0.5\", scaleUpMinWorkerFraction: -0.0}}",
    );
    assert_eq!((policy.primary.min_instances, policy.primary.max_instances), (2, 10));
    let basic = policy.basic();
    assert_eq!((basic.scale_up_factor, basic.scale_down_factor), (1.0, 0.5));
    assert!(basic.scale_up_min_worker_fraction.is_sign_positive());
}

#[test]
fn an_anchor_may_be_used_again() {
    let policy = valid(
        "workerConfig: &group {minInstances: 3, maxInstances: 3}\nsecondaryWorkerConfig: *group\n\
         basicAlgorithm: {yarnConfig: {scaleUpFactor: 1}}",
    );
    assert_eq!(policy.secondary, Some(policy.primary));
}

#[test]
fn ids_follow_dataprocs_rule() {
    let codes_of = |id: &str| {
        let text = format!(
            "id: \"{id}\"\nworkerConfig: {{maxInstances: 3}}\nbasicAlgorithm: {{yarnConfig: {{scaleUpFactor: 1}}}}"
        );
        codes(&text)
    };
    for good in ["abc", "a_b", "A-9", "007", &"a".repeat(50)] {
        assert!(codes_of(good).is_empty(), "{good}");
    }
    for bad in ["", "ab", "-ab", "ab-", "_ab", "ab_", "a.b", "a b", "äbc", &"a".repeat(51)] {
        assert_eq!(codes_of(bad), ["invalid-id"], "{bad}");
    }
}

/// The texts and results of gcloud's own tests, then the other forms of its grammar.
#[test]
fn durations_are_read_in_every_form() {
    let cases = [
        ("200", 200.0),
        ("400s", 400.0),
        ("2m", 120.0),
        ("1h", 3_600.0),
        ("1d", 86_400.0),
        ("0.5d", 43_200.0),
        ("200.5s", 200.5),
        ("0", 0.0),
        ("0s", 0.0),
        ("1w", 604_800.0),
        ("1h30m", 5_400.0),
        ("1D2H3M4S", 93_784.0),
        ("PT15M", 900.0),
        ("pt15m", 900.0),
        ("T15M", 900.0),
        ("P1D", 86_400.0),
        ("P1DT12H", 129_600.0),
        ("1dT12h", 129_600.0),
        ("P2W", 1_209_600.0),
        (" 2m ", 120.0),
        ("0.000000001s", 1e-9),
        ("0.0000000019s", 1e-9),
        ("36500d", 3_153_600_000.0),
    ];
    for (text, seconds) in cases {
        assert_eq!(duration::parse(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
    }
}

#[test]
fn what_is_no_duration_is_refused_with_a_reason() {
    let texts = [
        "",
        "-10m",
        "+5s",
        "4k",
        "4",
        "m",
        "P",
        "PT",
        "T",
        "1h1h",
        "1m1h",
        "1.5",
        ".5d",
        "1.s",
        "1h30",
        "1 h",
        "P15M",
        "P1H",
        "PT1D",
        "1hT",
        "TT1h",
        "1y",
        "1µs",
        "1:30",
        "36501d",
        "99999999999999999999s",
        "99999999999999999999",
        "soon",
    ];
    let mut table = String::new();
    for text in texts.iter().filter(|text| **text != "4") {
        let reason = duration::parse(text).expect_err(text);
        writeln!(table, "{text:22} {reason}").unwrap();
    }
    insta::assert_snapshot!(table);
}

/// gcloud's own accept and reject lists for both fields.
#[test]
fn durations_are_held_within_their_bounds() {
    let codes_of = |cooldown: &str, timeout: &str| {
        codes(&format!(
            "workerConfig: {{maxInstances: 3}}\nbasicAlgorithm:\n  cooldownPeriod: {cooldown}\n  yarnConfig:\n    \
             scaleUpFactor: 1\n    gracefulDecommissionTimeout: {timeout}\n"
        ))
    };
    for good in ["200", "400s", "2m", "1h", "1d", "0.5d", "200.5s"] {
        assert!(codes_of(good, good).is_empty(), "{good}");
    }
    for timeout in ["0", "0s", "1s", "119s", "1m"] {
        assert!(codes_of("2m", timeout).is_empty(), "{timeout}");
    }
    for (cooldown, code) in [
        ("-10m", "invalid-duration"),
        ("-10", "invalid-duration"),
        ("0s", "out-of-range"),
        ("4k", "invalid-duration"),
        ("2d", "out-of-range"),
        ("1m", "out-of-range"),
        ("119s", "out-of-range"),
        ("86400.1s", "out-of-range"),
    ] {
        assert_eq!(codes_of(cooldown, "0s"), [code], "{cooldown}");
    }
    for (timeout, code) in [("-1s", "invalid-duration"), ("4k", "invalid-duration"), ("2d", "out-of-range")] {
        assert_eq!(codes_of("2m", timeout), [code], "{timeout}");
    }
}

#[test]
fn the_shuffle_mode_forbids_a_graceful_timeout() {
    let text = |timeout: &str| {
        format!(
            "workerConfig: {{maxInstances: 3}}\nbasicAlgorithm: {{yarnConfig: {{scaleUpFactor: 1, scaleDownFactor: 1, \
             gracefulDecommissionTimeout: {timeout}}}}}"
        )
    };
    let codes_of = |timeout: &str| {
        let loaded = policy::load(&text(timeout), &LoadOptions { primary_worker_shuffle: true });
        loaded.map_or_else(|errors| errors, |loaded| loaded.warnings).iter().map(|d| d.code).collect::<Vec<_>>()
    };
    assert_eq!(codes_of("1h"), ["shuffle-needs-zero-timeout"]);
    // And where 0s is the rule, nobody is told that it kills.
    assert!(codes_of("0s").is_empty());
    assert_eq!(codes(&text("0s")), ["scale-down-kills"]);
}

#[test]
fn shipped_policies_are_valid_without_a_warning() {
    let files = shipped();
    assert!(files.len() >= 4, "{files:?}");
    for (path, text) in files {
        let loaded = load(&text).unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()));
        assert_eq!(loaded.warnings, [], "{}", path.display());
        assert_eq!(loaded.policy.id.map(|id| id.replace('-', "_")), Some(stem(&path)));
        assert!(text.starts_with("# yaml-language-server: $schema=policy.schema.json\n"), "{}", path.display());
    }
}

#[test]
fn the_committed_schema_is_the_printed_one() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("policies/policy.schema.json");
    let committed = fs::read_to_string(path).unwrap();
    let printed = format!("{:#}\n", policy::schema().as_value());
    assert_eq!(committed, printed, "run: yarn-autoscaler schema > policies/policy.schema.json");
}

#[test]
fn the_schema_knows_valid_files_from_invalid_ones() {
    let validator = jsonschema::draft7::new(policy::schema().as_value()).unwrap();
    let json = |text: &str| serde_yaml::from_str::<serde_json::Value>(text);
    for (path, text) in shipped().into_iter().chain(fixtures("dataproc")).chain(fixtures("lints")) {
        let json = json(&text).unwrap();
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
    // What only a look across fields can tell, the schema lets pass.
    let across =
        ["durations", "labels", "merge-key", "min-above-max", "min-default-above-max", "secondary-max-missing"];
    let unseen = fixtures("invalid").into_iter().filter(|(path, text)| {
        !across.contains(&stem(path).as_str()) && json(text).is_ok_and(|json| validator.is_valid(&json))
    });
    assert_eq!(unseen.map(|(path, _)| stem(&path)).collect::<Vec<_>>(), [] as [&str; 0]);
}
