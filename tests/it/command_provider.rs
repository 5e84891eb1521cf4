//! The provider `command`, against small scripts that behave well, badly or not at all.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use yarn_autoscaler::{
    cloud::CommandProvider,
    model::{Capabilities, GroupName, InstanceState, Resources},
    ports::{ErrorKind, OperationState, PortError, Provider},
};

/// A script of `sh` in a folder of its own, as a provider.
struct Script {
    folder: TempDir,
    provider: CommandProvider,
}

impl Script {
    fn new(text: &str) -> Self {
        Self::within(text, Duration::from_secs(20))
    }

    fn within(text: &str, limit: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("provider.sh");
        fs::write(&path, format!("cd '{}'\n{text}\n", folder.path().display())).unwrap();
        let argv = vec!["sh".into(), path.display().to_string()];
        Self { provider: CommandProvider::new(argv, limit), folder }
    }

    /// A script that replies this, whatever was asked.
    fn replying(reply: &str) -> Self {
        let script = Self::new("cat > request; cat reply");
        fs::write(script.file("reply"), reply).unwrap();
        script
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// The process whose id the script wrote into `child`, once it has.
    async fn child(&self) -> u32 {
        for _ in 0..500 {
            if let Some(id) = fs::read_to_string(self.file("child")).ok().and_then(|id| id.trim().parse().ok()) {
                return id;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the script did not start its child");
    }
}

/// Whether a process runs; one that has ended and that nobody has waited for does not.
fn runs(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn ends(pid: u32) -> bool {
    for _ in 0..300 {
        if !runs(pid) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

async fn describe_error(reply: &str) -> PortError {
    Script::replying(reply).provider.describe().await.unwrap_err()
}

/// The reply is refused as nonsense that may pass, and the text says what is wrong with it.
async fn garbage(reply: &str, says: &str) {
    let error = describe_error(reply).await;
    assert_eq!(error.kind, ErrorKind::Transient, "{reply}: {error}");
    assert!(error.text.contains(says), "{reply}: {error}");
    assert!(error.text.starts_with("provider command `sh`, describe: "), "{error}");
}

#[tokio::test]
async fn describes_groups_and_instances() {
    let script = Script::replying(
        r#"{"capabilities":{"deletesNamed":true,"overlaps":true},"groups":{"primary":{
            "template":{"memoryMb":12288,"vcores":8,"gpus":1,"bootTime":"10s"},
            "instances":[{"name":"worker-0","host":"127.0.1.11","state":"RUNNING"},
                         {"name":"worker-1","state":"PROVISIONING"}]}}}"#,
    );
    let capacity = script.provider.describe().await.unwrap();
    assert_eq!(script.read("request"), "{\"version\":1,\"method\":\"describe\"}\n");
    assert_eq!(capacity.capabilities, Capabilities { deletes_named: true, overlaps: true, resizes: false });
    let primary = &capacity.groups[&GroupName::Primary];
    let template = primary.template.as_ref().unwrap();
    assert_eq!(template.resources, Resources::new(12_288, 8, 1));
    assert_eq!(template.boot_time, Some(Duration::from_secs(10)));
    let seen: Vec<_> = primary.instances.iter().map(|i| (i.name.as_str(), i.host.as_str(), i.state)).collect();
    let expected =
        [("worker-0", "127.0.1.11", InstanceState::Running), ("worker-1", "worker-1", InstanceState::Provisioning)];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn what_is_optional_may_be_left_out() {
    let script = Script::replying(r#"{"groups":{"secondary":{"instances":[]}}}"#);
    let capacity = script.provider.describe().await.unwrap();
    assert_eq!(capacity.capabilities, Capabilities { deletes_named: true, overlaps: false, resizes: false });
    assert_eq!(capacity.groups[&GroupName::Secondary].template, None);
}

#[tokio::test]
async fn boot_times_are_seconds_or_texts() {
    for (written, seconds) in [("90", 90.0), ("1.5", 1.5), ("\"10s\"", 10.0), ("\"2m\"", 120.0), ("\"1h\"", 3600.0)] {
        let reply = format!(
            r#"{{"groups":{{"primary":{{"instances":[],"template":{{"memoryMb":1,"vcores":1,"bootTime":{written}}}}}}}}}"#
        );
        let capacity = Script::replying(&reply).provider.describe().await.unwrap();
        let template = capacity.groups[&GroupName::Primary].template.clone().unwrap();
        assert_eq!(template.boot_time, Some(Duration::from_secs_f64(seconds)), "{written}");
    }
}

#[tokio::test]
async fn orders_are_sent_as_documented() {
    let script = Script::replying(r#"{"operationId":"op-7"}"#);
    assert_eq!(script.provider.create("id-1", GroupName::Primary, 3).await.unwrap(), "op-7");
    let create = r#"{"version":1,"method":"create","requestId":"id-1","group":"primary","count":3}"#;
    assert_eq!(script.read("request").trim(), create);
    let instances = ["worker-3".to_owned()];
    assert_eq!(script.provider.delete("id-2", GroupName::Secondary, &instances).await.unwrap(), "op-7");
    let delete = r#"{"version":1,"method":"delete","requestId":"id-2","group":"secondary","instances":["worker-3"]}"#;
    assert_eq!(script.read("request").trim(), delete);
}

#[tokio::test]
async fn operations_run_end_and_fail() {
    let script = Script::replying(r#"{"state":"RUNNING"}"#);
    assert_eq!(script.provider.poll("op-7").await.unwrap(), OperationState::Running);
    assert_eq!(script.read("request").trim(), r#"{"version":1,"method":"poll","operationId":"op-7"}"#);
    let done = Script::replying(r#"{"state":"DONE","instances":[{"name":"w","state":"RUNNING"}]}"#);
    assert_eq!(done.provider.poll("op-7").await.unwrap(), OperationState::Done);
    let failed = Script::replying(r#"{"state":"FAILED","error":{"kind":"STOCK_OUT","message":"no T4 in zone b"}}"#);
    let OperationState::Failed(error) = failed.provider.poll("op-7").await.unwrap() else { panic!("it has failed") };
    assert_eq!((error.kind, error.text.as_str()), (ErrorKind::StockOut, "STOCK_OUT: no T4 in zone b"));
}

#[tokio::test]
async fn errors_have_the_kind_that_the_command_gives_them() {
    let wait = Some(Duration::from_secs(30));
    let table = [
        ("STOCK_OUT", ErrorKind::StockOut),
        ("QUOTA", ErrorKind::Quota),
        ("THROTTLED", ErrorKind::Throttled { retry_after: wait }),
        ("NOT_FOUND", ErrorKind::NotFound),
        ("DENIED", ErrorKind::Denied),
        ("CONFLICT", ErrorKind::Conflict),
        ("TRANSIENT", ErrorKind::Transient),
        ("PERMANENT", ErrorKind::Permanent),
    ];
    for (word, kind) in table {
        let reply = format!(r#"{{"error":{{"kind":"{word}","message":"because","retryAfter":"30s"}}}}"#);
        let error = describe_error(&reply).await;
        assert_eq!(error.kind, kind, "{word}");
        assert_eq!(error.text, format!("provider command `sh`, describe: {word}: because"));
    }
    let odd = describe_error(r#"{"error":{"kind":"TIRED","message":"because"}}"#).await;
    assert_eq!(odd.kind, ErrorKind::Permanent);
    assert!(odd.text.ends_with("because (error kind `TIRED` is not known)"), "{odd}");
}

#[tokio::test]
async fn nonsense_is_refused_and_named() {
    garbage("", "its reply is empty").await;
    garbage("oops \x1b[31m", "its reply is not JSON").await;
    garbage("[]", "its reply is not a JSON object: `[]`").await;
    garbage("{}", "missing field `groups`").await;
    garbage(r#"{"groups":{"primary":{"instances":{}}}}"#, "groups.primary.instances: invalid type").await;
    let template = |fields: &str| format!(r#"{{"groups":{{"primary":{{"instances":[],"template":{{{fields}}}}}}}}}"#);
    garbage(&template(r#""memoryMb":"12288","vcores":8"#), "groups.primary.template.memoryMb: invalid type").await;
    garbage(&template(r#""memoryMb":0,"vcores":8"#), "groups.primary.template.memoryMb is 0").await;
    garbage(&template(r#""memoryMb":1,"vcores":8,"gpu":1"#), "unknown field `gpu`").await;
    garbage(&template(r#""memoryMb":1,"vcores":8,"bootTime":"soon""#), "template.bootTime: invalid value").await;
    garbage(&template(r#""memoryMb":1,"vcores":8,"bootTime":-1"#), "template.bootTime: invalid").await;
    garbage(r#"{"groups":{"tertiary":{"instances":[]}}}"#, "groups has `tertiary`").await;
    garbage(r#"{"error":"no"}"#, "error: invalid type").await;
}

#[tokio::test]
async fn instances_are_checked_one_by_one() {
    let instances = |list: &str| format!(r#"{{"groups":{{"primary":{{"instances":[{list}]}}}}}}"#);
    garbage(&instances(r#"{"name":"","state":"RUNNING"}"#), "groups.primary.instances[0].name is empty").await;
    let two_lines = instances(r#"{"name":"a","host":"a\nb","state":"RUNNING"}"#);
    garbage(&two_lines, "groups.primary.instances[0].host `a b` has a blank").await;
    garbage(&instances(r#"{"name":"a","host":"<a>","state":"RUNNING"}"#), "host `<a>` has a `<`").await;
    garbage(&instances(r#"{"name":"a","state":"ASLEEP"}"#), "groups.primary.instances[0].state").await;
    let same_name = instances(r#"{"name":"a","state":"RUNNING"},{"name":"a","host":"b","state":"RUNNING"}"#);
    garbage(&same_name, "groups.primary.instances[0] and groups.primary.instances[1] have the same name `a`").await;
    let same_host = instances(r#"{"name":"a","state":"RUNNING"},{"name":"b","host":"a","state":"RUNNING"}"#);
    garbage(&same_host, "have the same host `a`").await;
}

#[tokio::test]
async fn a_crash_tells_its_status_and_its_last_words() {
    let script = Script::new("echo first >&2; echo 'Traceback: no such zone' >&2; exit 3");
    let error = script.provider.describe().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.text.ends_with("it ended with exit status: 3; stderr: Traceback: no such zone"), "{error}");
    let killed = Script::new("kill -9 $$").provider.describe().await.unwrap_err();
    assert!(killed.text.contains("signal: 9"), "{killed}");
}

#[tokio::test]
async fn a_command_that_cannot_be_started_is_told_at_once() {
    let missing = CommandProvider::new(vec!["/nowhere/provider".into()], Duration::from_secs(1));
    let error = missing.describe().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert!(error.text.contains("`/nowhere/provider`, describe: cannot be started"), "{error}");
    let none = CommandProvider::new(Vec::new(), Duration::from_secs(1));
    assert_eq!(none.describe().await.unwrap_err().kind, ErrorKind::Permanent);
}

/// The child ignores SIGTERM and the script waits for it.
const HANGS: &str = "sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 1; done' & wait";

#[tokio::test]
async fn a_hanging_command_ends_with_everything_it_started() {
    let limit = Duration::from_millis(500);
    let script = Script::within(HANGS, limit);
    let began = Instant::now();
    let error = script.provider.describe().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.text.contains("no answer within 0.5 s"), "{error}");
    assert!(began.elapsed() < limit * 6, "{:?}", began.elapsed());
    assert!(ends(script.child().await).await);
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_with_everything_it_started() {
    let script = Script::new(HANGS);
    let child = tokio::select! {
        _ = script.provider.describe() => panic!("it hangs"),
        child = script.child() => child,
    };
    assert!(ends(child).await);
}

#[tokio::test]
async fn a_process_left_behind_neither_delays_the_reply_nor_dies() {
    // It keeps stdout and stderr open, as a careless script's background processes do.
    let script = Script::new("sleep 60 & echo $! > child; echo '{\"operationId\":\"op-1\"}'");
    let began = Instant::now();
    assert_eq!(script.provider.create("id", GroupName::Primary, 1).await.unwrap(), "op-1");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let child = script.child().await;
    assert!(runs(child));
    let pid = rustix::process::Pid::from_raw(i32::try_from(child).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn an_endless_reply_is_cut_off() {
    let error = Script::new("exec yes").provider.describe().await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Transient);
    assert!(error.text.ends_with("its reply is longer than 16 MiB"), "{error}");
}

#[tokio::test]
async fn a_slow_command_is_waited_for() {
    let script = Script::new("sleep 0.3; printf '{\"groups\"'; sleep 0.3; printf ':{}}'");
    assert!(script.provider.describe().await.unwrap().groups.is_empty());
}

/// Where the log of one test goes.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_flood_on_stderr_neither_blocks_the_command_nor_fills_the_log() {
    let captured = Captured::default();
    let writer = captured.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    let script = Script::new("yes warning | head -n 200000 >&2; echo '{\"groups\":{}}'");
    // With one subscriber alone, a test on another thread, which has none, may switch the same line off for all.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let guard = tracing::subscriber::set_default(log);
    assert!(script.provider.describe().await.is_ok());
    drop(guard);
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("provider command: warning")).count(), 100);
    assert!(text.contains("wrote 200000 lines to stderr"), "{}", text.lines().last().unwrap_or_default());
}

#[tokio::test]
async fn requests_larger_than_a_pipe_reach_a_command_that_replies_first() {
    let names: Vec<String> = (0..20_000).map(|n| format!("worker-{n}")).collect();
    let script = Script::new("echo '{\"operationId\":\"op-1\"}'; cat > request");
    assert_eq!(script.provider.delete("id", GroupName::Primary, &names).await.unwrap(), "op-1");
    assert!(script.read("request").contains("worker-19999"));
    let deaf = Script::new("echo '{\"operationId\":\"op-2\"}'");
    assert_eq!(deaf.provider.delete("id", GroupName::Primary, &names).await.unwrap(), "op-2");
}
