//! The state file: one holder among processes, compare-and-swap, crashes, foreign documents.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use chrono::{DateTime, Utc};
use proptest::prelude::*;
use tempfile::TempDir;
use yarn_autoscaler::{
    model::{
        Drain, DrainPhase, GroupName, Intent, NodeId, Operation, Resources, STATE_VERSION, SeenResourceManager, State,
        WorkerRecord,
    },
    ports::{ErrorKind, PortError, StateStore},
    store::FileStore,
};

use crate::world::poll_once;

/// Tells a copy of this test binary which state file to work on.
const PATH_VARIABLE: &str = "STATE_FILE_TEST_PATH";

/// A file is read and written at once: nothing is waited for.
trait AtOnce: Future + Sized {
    fn at_once(self) -> Self::Output {
        poll_once(self).expect("it waits")
    }
}

impl<F: Future> AtOnce for F {}

fn noon() -> DateTime<Utc> {
    "2026-11-21T12:00:03Z".parse().unwrap()
}

fn fresh() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    (folder, path)
}

fn open(path: &Path) -> FileStore {
    FileStore::open(path, noon()).unwrap()
}

/// A store that holds a state with this many failures, loaded and saved.
fn saved(path: &Path, failures: u32) -> FileStore {
    let mut store = open(path);
    let mut state = store.load().at_once().unwrap();
    state.provider_failures = failures;
    store.save(&state).at_once().unwrap();
    store
}

fn load_error(path: &Path, document: &str) -> PortError {
    fs::write(path, document).unwrap();
    let error = open(path).load().at_once().unwrap_err();
    assert_eq!(fs::read_to_string(path).unwrap(), document, "a document that is refused is left as it is");
    error
}

#[test]
fn starts_fresh_and_remembers() {
    let (_folder, path) = fresh();
    let mut store = open(&path);
    assert_eq!(store.load().at_once().unwrap(), State::default());
    let state = State { provider_failures: 3, provider_retry_at: Some(noon()), ..State::default() };
    store.save(&state).at_once().unwrap();
    assert_eq!(FileStore::peek(&path).unwrap(), state);
    drop(store);
    assert_eq!(open(&path).load().at_once().unwrap(), state);
}

#[test]
fn only_the_owner_may_read_it() {
    let (folder, path) = fresh();
    let _store = saved(&path, 1);
    for name in ["state.json", "state.json.lock"] {
        assert_eq!(fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_save_before_a_load_is_refused() {
    let (_folder, path) = fresh();
    assert_eq!(open(&path).save(&State::default()).at_once().unwrap_err().kind, ErrorKind::Permanent);
}

/// Not a test: holds the state file until it is killed. Run by the next one in a process of its own.
#[test]
#[ignore = "the second process of a test below, which runs it"]
fn holder_process() {
    let Some(path) = env::var_os(PATH_VARIABLE) else { return };
    let mut store = saved(Path::new(&path), 1);
    println!("holding");
    // Until the other side goes away, or it is killed.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    store.save(&State::default()).at_once().unwrap();
}

/// Runs one of the ignored functions of this file in a process of its own.
fn second_process(function: &str, path: &Path) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("state_file::{function}"), "--ignored", "--nocapture"]);
    command.env(PATH_VARIABLE, path).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

fn start_holder(path: &Path) -> Child {
    let mut child = second_process("holder_process", path).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("holding")), "the other process did not get hold of the file");
    child
}

#[test]
fn of_two_processes_one_holds_it_until_it_is_killed() {
    let (_folder, path) = fresh();
    let mut holder = start_holder(&path);
    let error = FileStore::open(&path, noon()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.text.contains(&format!("is held by pid {} on host ", holder.id())), "{error}");
    assert!(error.text.contains(" since 2026-11-21T12:00:03Z (yarn-autoscaler "), "{error}");
    assert_eq!(FileStore::peek(&path).unwrap().provider_failures, 1, "looking is allowed");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(open(&path).load().at_once().unwrap().provider_failures, 1);
}

#[test]
fn a_state_that_changed_under_us_is_not_overwritten() {
    let (_folder, path) = fresh();
    let mut store = saved(&path, 1);
    let other = fs::read_to_string(&path).unwrap().replace("\"generation\": 1", "\"generation\": 9");
    fs::write(&path, &other).unwrap();
    let error = store.save(&State::default()).at_once().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.text.contains("generation 1 was expected, it is 9"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
    fs::remove_file(&path).unwrap();
    assert_eq!(store.save(&State::default()).at_once().unwrap_err().kind, ErrorKind::Conflict);
}

#[test]
fn a_crash_in_the_middle_of_a_save_leaves_the_old_state() {
    let (folder, path) = fresh();
    drop(saved(&path, 1));
    let leftover = folder.path().join(".state.json.Xy12Ab.tmp");
    fs::write(&leftover, "{\"generation\": 2, \"hol").unwrap();
    let foreign = folder.path().join(".other.json.Xy12Ab.tmp");
    fs::write(&foreign, "").unwrap();
    assert_eq!(open(&path).load().at_once().unwrap().provider_failures, 1);
    assert!(!leftover.exists(), "what the crash left is cleared away");
    assert!(foreign.exists(), "what is not ours is left");
}

#[test]
fn a_newer_document_is_refused_and_kept() {
    let (_folder, path) = fresh();
    let error = load_error(&path, r#"{"epoch":"7","state":{"version":3,"plans":[]}}"#);
    assert_eq!(error.kind, ErrorKind::Permanent);
    let says = "was written by a newer yarn-autoscaler (state version 3, this binary knows 2)";
    assert!(error.text.contains(says), "{error}");
}

#[test]
fn what_is_no_state_is_named_with_its_place_and_the_way_out() {
    let (_folder, path) = fresh();
    drop(saved(&path, 1));
    let good = fs::read_to_string(&path).unwrap();
    let wrong_type = good.replace("\"providerFailures\": 1", "\"providerFailures\": \"one\"");
    let unknown = good.replace("\"providerFailures\"", "\"surprise\": 1, \"providerFailures\"");
    let old = good.replace(&format!("\"version\": {STATE_VERSION},\n    \"last"), "\"version\": 0,\n    \"last");
    let table = [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("{\"generation\": 1,\n oops", "key must be a string at line 2 column 2"),
        (&good[..good.len() / 2], "EOF while parsing"),
        (&wrong_type, "invalid type: string \"one\", expected u32 at line "),
        (&unknown, "unknown field `state.surprise`"),
        (&old, "state version 0; this binary knows 1 to 2"),
    ];
    for (document, says) in table {
        let error = load_error(&path, document);
        assert_eq!(error.kind, ErrorKind::Permanent);
        assert!(error.text.contains(says), "{document}: {error}");
        assert!(error.text.contains("state.json: ") && error.text.contains("Move the file away"), "{error}");
    }
}

#[test]
fn a_file_that_is_far_too_large_is_not_read() {
    let (_folder, path) = fresh();
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let error = open(&path).load().at_once().unwrap_err();
    assert!(error.text.contains("longer than 16777216 bytes"), "{error}");
}

#[test]
fn a_missing_folder_is_named() {
    let (folder, _) = fresh();
    let error = FileStore::open(folder.path().join("nowhere/state.json"), noon()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    assert!(error.text.contains("nowhere/state.json.lock"), "{error}");
}

#[test]
fn a_folder_that_may_not_be_written_is_an_error_and_the_old_state_stays() {
    let (folder, path) = fresh();
    let mut store = saved(&path, 1);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o500)).unwrap();
    let powerless = fs::write(folder.path().join("probe"), "").is_err();
    let result = store.save(&State { provider_failures: 2, ..State::default() }).at_once();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    // The superuser may write everywhere.
    if powerless {
        assert_eq!(result.unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(FileStore::peek(&path).unwrap().provider_failures, 1);
    }
}

/// Not a test: saves a state that is larger than the process may write. Run by the next one.
#[test]
#[ignore = "the second process of a test below, which runs it"]
fn full_disk_process() {
    let Some(path) = env::var_os(PATH_VARIABLE) else { return };
    let mut store = open(Path::new(&path));
    let mut state = store.load().at_once().unwrap();
    let worker = WorkerRecord { first_seen_at: noon(), ready_at: None, not_ready_since: None, unlisted_since: None };
    state.workers = (0..5_000).map(|n| (format!("worker-{n}"), worker)).collect();
    let error = store.save(&state).at_once().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient, "{error}");
    state.workers.clear();
    store.save(&state).at_once().unwrap();
    println!("refused, then saved");
}

#[test]
fn a_full_disk_is_an_error_that_may_pass_and_the_old_state_stays() {
    let (folder, path) = fresh();
    drop(saved(&path, 7));
    let test = second_process("full_disk_process", &path);
    // A limit on the size of files stands in for the full disk; its signal is ignored, so that writing fails instead.
    let mut limited = Command::new("sh");
    limited.args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""]).arg(test.get_program());
    let output = limited.args(test.get_args()).env(PATH_VARIABLE, &path).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused, then saved"), "{output:?}");
    assert_eq!(FileStore::peek(&path).unwrap().provider_failures, 7);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "only the state and its lock: {names:?}");
}

fn instant() -> impl Strategy<Value = DateTime<Utc>> {
    (0_i64..4_000_000_000, 0_u32..1_000_000_000).prop_map(|(s, ns)| DateTime::from_timestamp(s, ns).unwrap())
}

fn group() -> impl Strategy<Value = GroupName> {
    prop_oneof![Just(GroupName::Primary), Just(GroupName::Secondary)]
}

fn operation() -> impl Strategy<Value = Operation> {
    let intent = prop_oneof![
        (group(), any::<u32>()).prop_map(|(group, count)| Intent::Create { group, count }),
        (group(), proptest::collection::vec(".*", 0..4))
            .prop_map(|(group, instances)| Intent::Delete { group, instances }),
    ];
    (".*", intent, instant(), proptest::option::of(".*")).prop_map(|(request_id, intent, at, operation_id)| Operation {
        request_id,
        intent,
        at,
        operation_id,
    })
}

fn drain() -> impl Strategy<Value = Drain> {
    let phase = (instant(), instant(), any::<u32>()).prop_flat_map(|(since, deadline, containers)| {
        prop_oneof![
            Just(DrainPhase::Cordoned { seen_at: None }),
            Just(DrainPhase::Cordoned { seen_at: Some(since) }),
            Just(DrainPhase::Decommissioning { since, deadline, containers }),
            Just(DrainPhase::Decommissioned { since }),
        ]
    });
    (".*", any::<i32>(), group(), any::<(u64, u64, u64)>(), phase, instant()).prop_map(
        |(host, port, group, (memory_mb, vcores, gpus), phase, since)| Drain {
            node: NodeId { host: host.clone(), port },
            group,
            instance: host,
            full: Resources::new(memory_mb, vcores, gpus),
            phase,
            since,
        },
    )
}

fn worker() -> impl Strategy<Value = WorkerRecord> {
    let maybe = || proptest::option::of(instant());
    let parts = (instant(), maybe(), maybe(), maybe());
    parts.prop_map(|(first_seen_at, ready_at, not_ready_since, unlisted_since)| WorkerRecord {
        first_seen_at,
        ready_at,
        not_ready_since,
        unlisted_since,
    })
}

fn resource_manager() -> impl Strategy<Value = SeenResourceManager> {
    (any::<i64>(), instant(), any::<bool>()).prop_map(|(started_on_ms, since, replaced_another)| SeenResourceManager {
        started_on_ms,
        since,
        replaced_another,
    })
}

fn state() -> impl Strategy<Value = State> {
    let maybe = || proptest::option::of(instant());
    let times = (maybe(), maybe(), maybe(), proptest::option::of(resource_manager()));
    let operations = proptest::collection::vec(operation(), 0..4);
    let drains = proptest::collection::btree_map(".*", drain(), 0..4);
    let workers = proptest::collection::btree_map(".*", worker(), 0..4);
    (times, operations, drains, workers, any::<(u64, u32)>(), any::<Option<String>>()).prop_map(
        |(times, operations, drains, workers, (orders, provider_failures), provider_identity)| State {
            version: STATE_VERSION,
            last_scaling_at: times.0,
            last_operation_ended_at: times.1,
            resource_manager: times.3,
            provider_identity,
            operations,
            drains,
            workers,
            orders,
            provider_retry_at: times.2,
            provider_failures,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_state_survives_a_save_and_a_load(state in state()) {
        let (_folder, path) = fresh();
        let mut store = open(&path);
        store.load().at_once().unwrap();
        store.save(&state).at_once().unwrap();
        drop(store);
        prop_assert_eq!(open(&path).load().at_once().unwrap(), state);
    }
}
