//! What a scenario file means.

use std::{collections::BTreeMap, fs, path::PathBuf};

use yarn_autoscaler::{
    controller::Settings,
    model::{GroupName, Resources},
    sim::{
        scenario::{
            self, Delay, FIGURES, Fault, FaultEvent, GangGranting, Placement, Queue, QueueOrdering, Scenario, Unit,
        },
        workload::{self, Draw, Job, OnLoss, TraceFormat, Work, Workload},
    },
};

use crate::fixtures::secs;

/// The files of a folder below `tests/fixtures/scenarios`, with their texts, in order.
pub fn fixtures(folder: &str) -> Vec<(PathBuf, String)> {
    files_of(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scenarios").join(folder))
}

/// The scenarios that the product ships.
pub fn shipped() -> Vec<(PathBuf, String)> {
    files_of(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios"))
}

fn files_of(folder: PathBuf) -> Vec<(PathBuf, String)> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

/// The scenario of a text that has one.
pub fn valid(text: &str) -> Scenario {
    let show = |errors: Vec<yarn_autoscaler::policy::Diagnostic>| {
        errors.iter().map(|error| error.render("scenario.yaml", text, false)).collect::<Vec<_>>().join("\n")
    };
    scenario::load(text).unwrap_or_else(|errors| panic!("{}", show(errors))).0
}

/// Its jobs, without traces.
pub fn jobs(scenario: &Scenario) -> Workload {
    let Scenario { workload, cluster, start, seed, .. } = scenario;
    workload::build(workload, &cluster.queues, *start, *seed, None, &BTreeMap::new()).unwrap().0
}

/// A cloud of one group, and nothing else.
pub const CLOUD: &str = "cloud: {primary: {worker: {memoryMb: 12288, vcores: 8, gpus: 1}}}\n";

/// The shortest workload.
const JOB: &str = "workload: {jobs: [{name: a, stages: [{tasks: 1, memoryMb: 512, taskTime: 1s}]}]}\n";

fn default_queue() -> Queue {
    Queue {
        name: "default".into(),
        capacity: 1.0,
        max_capacity: 1.0,
        max_master_share: 0.1,
        ordering: QueueOrdering::Fifo,
    }
}

#[test]
fn a_short_scenario_has_defaults_everywhere() {
    let meant = valid(&format!("{CLOUD}{JOB}"));
    assert_eq!((meant.name.as_str(), meant.seed, meant.duration), ("scenario", 1, None));
    assert_eq!(meant.start.to_rfc3339(), "2026-01-05T00:00:00+00:00");
    assert_eq!((meant.settle, meant.settings, meant.policy), (secs(1800), Settings::default(), None));
    let cluster = &meant.cluster;
    assert_eq!((cluster.heartbeat, cluster.containers_per_heartbeat), (secs(1), 1));
    assert_eq!((cluster.placement, cluster.gang_granting), (Placement::Spread, GangGranting::ContainerByContainer));
    assert_eq!((cluster.master_start, cluster.container_start, cluster.node_expiry), (secs(2), secs(1), secs(600)));
    assert_eq!((cluster.minimum_allocation, &cluster.queues), (Resources::new(128, 1, 0), &vec![default_queue()]));
    let cloud = &meant.cloud;
    assert_eq!((cloud.overlaps, cloud.deletes_named, cloud.quota, cloud.create_time), (false, true, None, None));
    assert_eq!((cloud.machine_start, cloud.delete_time), (secs(20), secs(30)));
    assert_eq!((cloud.list_lag, cloud.minimum_billed), (secs(0), secs(60)));
    let group = &cloud.groups[&GroupName::Primary];
    assert_eq!((cloud.groups.len(), group.worker, group.initial), (1, Resources::new(12288, 8, 1), 2));
    assert_eq!((&group.boot, group.price_per_hour), (&Delay::Fixed(secs(180)), 1.0));
    assert_eq!((group.quota, group.mean_lifetime), (None, None));
    assert_eq!((meant.events, meant.expect), (vec![], vec![]));
}

#[test]
fn everything_may_be_written() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scenarios/full.yaml");
    let (meant, warnings) = scenario::load(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(warnings, []);
    insta::assert_debug_snapshot!(meant);
}

#[test]
fn the_conference_is_eleven_jobs() {
    let (_, text) = shipped().into_iter().find(|(path, _)| path.ends_with("conference.yaml")).unwrap();
    let meant = valid(&text);
    let built = jobs(&meant);
    assert_eq!(built.jobs.len(), 11);
    assert_eq!(&*built.jobs[9].name, "tensorflow-10");
    // As examples/local-yarn asks for: a master and a server of 2 GB, two workers of 4 GB with a GPU.
    let asked = built.jobs.iter().map(|job| job.full_size() + job.master.unwrap());
    assert_eq!(asked.sum::<Resources>(), Resources::new(11 * 12_288, 11 * 4, 22));
    assert_eq!(meant.policy.as_deref(), Some("../../policies/autoscale_tony.yaml"));
}

#[test]
fn frameworks_bring_their_own_defaults() {
    let text = "workload:\n  jobs:\n    - {name: g, gang: {duration: 1m, groups: [{memoryMb: 512}]}}\n    \
                - {name: s, stages: [{tasks: 2, memoryMb: 512, taskTime: 1s}, {tasks: 1, memoryMb: 512, taskTime: 1s}]}\n    \
                - {name: e, executors: {memoryMb: 512, vcores: 4, tasks: 10, taskTime: 1s}}\n";
    let built = jobs(&valid(&format!("{CLOUD}{text}")));
    let row = |job: &Job| (job.application_type.to_string(), job.master.unwrap().memory_mb, job.on_loss);
    assert_eq!(
        built.jobs.iter().map(row).collect::<Vec<_>>(),
        [
            ("TONY".into(), 2048, OnLoss::Restart),
            ("MAPREDUCE".into(), 1536, OnLoss::Restart),
            ("SPARK".into(), 1408, OnLoss::Restart)
        ]
    );
    let Work::Stages(stages) = &built.jobs[1].work else { panic!() };
    assert_eq!((&*stages[1].name, stages[1].starts_after), ("stage2", 0.05));
    let Work::Executors(executors) = &built.jobs[2].work else { panic!() };
    // Four slots an executor, as it has cores; three executors for ten tasks.
    assert_eq!((executors.slots, executors.min, executors.max, executors.idle_timeout_ms), (4, 0, 3, 60_000));
}

#[test]
fn jobs_are_numbered_and_sorted() {
    let text = "workload:\n  jobs:\n    - {name: late, at: 25s, gang: {duration: 1m, groups: [{memoryMb: 512}]}}\n    \
                - {name: a, at: 5s, count: 3, every: 10s, gang: {duration: 1m, groups: [{memoryMb: 512}]}}\n";
    let meant = valid(&format!("{CLOUD}{text}"));
    let row = |job: &Job| (job.name.to_string(), job.submit_ms);
    let rows = |built: Workload| built.jobs.iter().map(row).collect::<Vec<_>>();
    let [a1, a2, a3, late] =
        [("a-1", 5_000), ("a-2", 15_000), ("a-3", 25_000), ("late", 25_000)].map(|(name, at)| (name.to_string(), at));
    assert_eq!(rows(jobs(&meant)), [a1.clone(), a2.clone(), late, a3]);
    let queues = &meant.cluster.queues;
    let built = workload::build(&meant.workload, queues, meant.start, 1, Some(25_000), &BTreeMap::new());
    assert_eq!(rows(built.unwrap().0), [a1, a2]);
}

#[test]
fn queues_share_what_is_left() {
    let text = "cluster: {queues: [{name: a, capacity: 40, maximumCapacity: 60, orderingPolicy: FAIR}, {name: b}, {name: c}]}\n";
    let queues = valid(&format!("{CLOUD}{JOB}{text}")).cluster.queues;
    let row = |queue: &Queue| (queue.name.clone(), queue.capacity, queue.max_capacity);
    let rows: Vec<_> = queues.iter().map(row).collect();
    assert_eq!(rows, [("a".into(), 0.4, 0.6), ("b".into(), 0.3, 1.0), ("c".into(), 0.3, 1.0)]);
    assert_eq!(queues[0].ordering, QueueOrdering::Fair);
}

#[test]
fn events_come_in_the_order_of_time() {
    let text = "events:\n  - {at: 5m, kind: CLOCK_STEP, by: -90s}\n  - {at: 1m, kind: CONTROLLER_CRASH, lasts: 2s}\n";
    let events = valid(&format!("{CLOUD}{JOB}{text}")).events;
    let meant = [(60, 2, Fault::ControllerCrash(1)), (300, 0, Fault::ClockStep(-90_000))];
    let meant = meant.map(|(at, lasts, fault)| FaultEvent { at: secs(at), lasts: secs(lasts), fault });
    assert_eq!(events, meant);
}

#[test]
fn a_machine_is_up_before_its_boot_ends() {
    let text = "cloud: {primary: {worker: {memoryMb: 1024}, bootTime: [9s, 7s]}}\n";
    assert_eq!(valid(&format!("{text}{JOB}")).cloud.machine_start, secs(7));
}

#[test]
fn traces_have_containers_of_a_workers_share() {
    let text = "cloud: {primary: {worker: {memoryMb: 98304, vcores: 32, gpus: 4}}}\nworkload:\n  traces:\n    \
                - {format: PHILLY, file: p}\n    - {format: GAIA, file: g}\n    - {format: SWIM, file: s}\n    \
                - {format: PHILLY, file: q, container: {memoryMb: 100, vcores: 2}, onLoss: {checkpoint: 30m}, skip: 1d}\n";
    let traces = valid(text).workload.traces;
    let sizes: Vec<_> = traces.iter().map(|trace| trace.container).collect();
    let [philly, gaia, swim, own] = [(24_576, 8, 1), (3072, 1, 0), (1024, 1, 0), (100, 2, 1)];
    assert_eq!(sizes, [philly, gaia, swim, own].map(|(memory, vcores, gpus)| Resources::new(memory, vcores, gpus)));
    assert_eq!((traces[3].on_loss, traces[3].skip_ms), (OnLoss::Checkpoint { every_ms: 1_800_000 }, 86_400_000));
    assert_eq!((traces[2].format, &*traces[2].queue), (TraceFormat::Swim, "default"));
}

#[test]
fn a_drawn_length_needs_none_in_the_shape() {
    let text = "workload:\n  generate:\n    - name: g\n      jobsPerDay: 24\n      duration: {median: 10m, p95: 1h}\n      \
                gang: {groups: [{memoryMb: 512}]}\n    - {name: h, jobsPerDay: 1, gang: {duration: 3m, groups: [{memoryMb: 512}]}}\n";
    let generators = valid(&format!("{CLOUD}{text}")).workload.generators;
    assert_eq!(generators[0].duration, Draw::LogNormal { median_ms: 600_000, p95_ms: 3_600_000 });
    assert_eq!(generators[1].duration, Draw::Fixed(180_000));
    // Without an end, a day.
    assert_eq!((generators[0].from_ms, generators[0].until_ms), (0, 86_400_000));
    let ends = valid(&format!("duration: 2h\n{CLOUD}{text}")).workload.generators;
    assert_eq!(ends[0].until_ms, 7_200_000);
}

#[test]
fn expectations_are_in_the_figures_units() {
    let text = "expect: {waitP95: {max: 10m}, waitMean: {max: 90, min: 1.5}, jobsSucceeded: 11}\n";
    let expect = valid(&format!("{CLOUD}{JOB}{text}")).expect;
    let rows: Vec<_> = expect.iter().map(|it| (it.figure.as_str(), it.min, it.max)).collect();
    assert_eq!(
        rows,
        [
            ("jobsSucceeded", Some(11.0), Some(11.0)),
            ("waitMean", Some(1.5), Some(90.0)),
            ("waitP95", None, Some(600.0))
        ]
    );
    let of = |unit: Unit| FIGURES.iter().filter(|(_, known, _)| *known == unit).count();
    assert_eq!((FIGURES.len(), of(Unit::Seconds), of(Unit::Money)), (27, 7, 1));
}

#[test]
fn shipped_scenarios_are_valid_without_a_warning() {
    for (path, text) in shipped() {
        let (meant, warnings) =
            scenario::load(&text).unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()));
        assert_eq!(warnings, [], "{}", path.display());
        assert!(text.starts_with("# yaml-language-server: $schema=scenario.schema.json\n"), "{}", path.display());
        let policy = path.parent().unwrap().join(meant.policy.unwrap());
        assert!(policy.exists(), "{}", policy.display());
    }
}

#[test]
fn the_committed_schema_is_the_printed_one() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/scenarios/scenario.schema.json");
    let printed = format!("{:#}\n", scenario::schema().as_value());
    let how = "run: yarn-autoscaler schema --scenario > examples/scenarios/scenario.schema.json";
    assert!(fs::read_to_string(path).unwrap() == printed, "{how}");
}

#[test]
fn the_schema_knows_valid_files_from_invalid_ones() {
    let validator = jsonschema::draft7::new(scenario::schema().as_value()).unwrap();
    let json = |text: &str| serde_yaml::from_str::<serde_json::Value>(text);
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scenarios/full.yaml");
    let full = (full.clone(), fs::read_to_string(full).unwrap());
    for (path, text) in shipped().into_iter().chain(fixtures("warnings")).chain([full]) {
        let json = json(&text).unwrap();
        let errors: Vec<_> = validator.iter_errors(&json).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    }
    // What only a look across fields can tell, the schema lets pass.
    let across = ["boot-times", "machine-start", "queue-capacities", "quotas", "unknown-queue"];
    let unseen = fixtures("invalid").into_iter().filter(|(path, text)| {
        !across.contains(&crate::policy::stem(path).as_str()) && json(text).is_ok_and(|json| validator.is_valid(&json))
    });
    assert_eq!(unseen.map(|(path, _)| crate::policy::stem(&path)).collect::<Vec<_>>(), [] as [&str; 0]);
}

#[test]
fn a_scenario_is_told_from_a_policy_by_its_workload() {
    assert!(scenario::looks_like_one(&format!("{CLOUD}{JOB}")));
    assert!(scenario::looks_like_one("workload:"));
    assert!(!scenario::looks_like_one("workerConfig: {maxInstances: 3}\nlabels: {workload: x}"));
    assert!(!scenario::looks_like_one("workload: ["));
}
