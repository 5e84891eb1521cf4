//! `record` as a process, against a fake ResourceManager that gives the answers that a real one gave.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::process::Command;
use yarn_autoscaler::{
    cli::record::sheet::jobs,
    model::Resources,
    sim::workload::{OnLoss, TraceFormat, TraceSource, Work, rows},
    yarn::applications::{Launch, applications, containers, newest_attempt},
};

use crate::fake_http::{FakeHttp, Reply};

const LOOKS: usize = 6;

fn fixture(path: &str) -> Option<String> {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/yarn").join(path)).ok()
}

fn json(path: &str) -> Reply {
    fixture(path).map_or(Reply::new("404 Not Found", "", "no such application"), |body| Reply::json(&body))
}

/// `apps/{id}/…` as the last words of a path: the application and what is asked of it.
fn of_application(path: &str) -> (&str, &str) {
    let words: Vec<_> = path.split('/').collect();
    (words[5], words[words.len() - 1])
}

/// The life of two gangs: each `/apps` of those that are not over is the next look, up to the `last`.
async fn two_gangs(last: usize) -> (FakeHttp, Arc<AtomicUsize>) {
    let looks = Arc::new(AtomicUsize::new(0));
    let now = looks.clone();
    let reply = move |path: &str| {
        let look = now.load(Ordering::SeqCst).clamp(1, last);
        match path {
            "/ws/v1/cluster/info" => json("record/info.json"),
            path if path.contains("states=NEW") => {
                let look = (now.fetch_add(1, Ordering::SeqCst) + 1).min(last);
                json(&format!("record/look-{look}/alive.json"))
            }
            path if path.contains("states=FINISHED") => json(&format!("record/look-{look}/over.json")),
            path => {
                let (application, what) = of_application(path);
                json(&format!("record/look-{look}/{application}-{what}.json"))
            }
        }
    };
    (FakeHttp::start(reply).await, looks)
}

/// What had ended on that cluster, and nothing else.
async fn all_over() -> FakeHttp {
    FakeHttp::start(|path| match path {
        "/ws/v1/cluster/info" => json("record/info.json"),
        path if path.contains("states=FINISHED") => json("record/over-all.json"),
        _ => Reply::json(r#"{"apps":{}}"#),
    })
    .await
}

fn record(server: &FakeHttp, output: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
    command.env("NO_COLOR", "1").env_remove("RUST_LOG").env_remove("YARN_AUTOSCALER_RESOURCE_MANAGER").arg("record");
    command.arg("--resource-manager").arg(server.url().as_str()).arg("--output").arg(output).args(options);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Its code and its words.
async fn ended(command: &mut Command) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command.output().await.unwrap();
    (status.code(), String::from_utf8_lossy(&stderr).into_owned())
}

fn fresh() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.csv");
    (folder, path)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Follows for so many looks, then Ctrl-C.
async fn followed(looks: usize, path: &Path, options: &[&str]) -> String {
    let (server, done) = two_gangs(looks).await;
    let options: Vec<_> = ["--follow", "--interval", "1s"].iter().chain(options).copied().collect();
    let child = record(&server, path, &options).spawn().unwrap();
    // Only with the request after it is a look surely taken in.
    while done.load(Ordering::SeqCst) <= looks {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    kill_process(Pid::from_raw(child.id().unwrap().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    let Output { status, stderr, .. } = child.wait_with_output().await.unwrap();
    let words = String::from_utf8_lossy(&stderr).into_owned();
    assert_eq!(status.code(), Some(0), "{words}");
    words
}

#[tokio::test]
async fn followed_gangs_have_the_containers_they_had_and_no_waiting() {
    let (_folder, path) = fresh();
    let summary = followed(LOOKS, &path, &[]).await;
    insta::assert_snapshot!(format!("{}---\n{summary}", text(&path)));
}

#[tokio::test]
async fn an_interrupt_writes_what_runs_and_not_what_still_waits() {
    let (_folder, path) = fresh();
    let summary = followed(3, &path, &[]).await;
    insta::assert_snapshot!(format!("{}---\n{summary}", text(&path)));
}

#[tokio::test]
async fn what_is_not_over_is_left_to_the_next_time() {
    let (_folder, path) = fresh();
    let summary = followed(3, &path, &["--ended-only"]).await;
    assert!(text(&path).lines().count() == 1 && summary.contains("left out: 2: were not over"), "{summary}");
    followed(LOOKS, &path, &["--ended-only", "--append"]).await;
    assert_eq!(text(&path).lines().count(), 6, "{}", text(&path));
}

#[tokio::test]
async fn what_is_over_is_taken_apart_from_its_totals() {
    let (_folder, path) = fresh();
    let server = all_over().await;
    let (code, summary) = ended(&mut record(&server, &path, &[])).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(format!("{}---\n{summary}", text(&path)));
    let requests = server.requests();
    let asked = "/ws/v1/cluster/apps?states=FINISHED,FAILED,KILLED&deSelects=resourceInfo,timeouts,\
                 appNodeLabelExpression,amNodeLabelExpression,resourceRequests HTTP/1.1";
    assert!(requests.iter().any(|head| head.contains(asked)), "{requests:?}");
}

#[tokio::test]
async fn assumptions_types_and_the_window_are_the_users() {
    let (_folder, path) = fresh();
    let server = all_over().await;
    let options = ["--master-memory-mb", "1024", "--gang-types", "SPARK", "--since", "7d"];
    let (code, _) = ended(&mut record(&server, &path, &options)).await;
    assert_eq!(code, Some(0));
    let first = "application_1795260834139_0001,1795260863.587,TONY,default,containers,2,3761,2,1,13.0,TASKS\n";
    assert!(text(&path).contains(first), "{}", text(&path));
    assert!(
        server.requests().iter().filter(|head| head.contains("/apps?")).all(|head| head.contains("&startedTimeBegin="))
    );
}

/// An application that runs is seen with its containers by one look, too; what is asked for is to come.
#[tokio::test]
async fn one_look_at_running_tasks() {
    let server = FakeHttp::start(|path| match path {
        path if path.contains("/info") => json("3.3.6/ds-gpu-pending-info.json"),
        path if path.contains("/apps?") => json("3.3.6/ds-gpu-pending-apps.json"),
        path => json(&format!("3.3.6/ds-gpu-pending-{}.json", of_application(path).1)),
    })
    .await;
    let output = record(&server, Path::new("-"), &[]).output().await.unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    insta::assert_snapshot!(format!("{out}---\n{err}"));
}

/// Where YARN's access lists hide containers, there are still totals; of a gang, what it asked for is hidden, too.
#[tokio::test]
async fn containers_that_are_hidden_are_told_once_and_counted() {
    let (_folder, path) = fresh();
    let server = FakeHttp::start(|path| match path {
        "/ws/v1/cluster/info" => json("record/info.json"),
        path if path.contains("states=NEW") => json("record/look-3/alive.json"),
        path if path.contains("states=FINISHED") => json("record/look-3/over.json"),
        _ => Reply::new("403 Forbidden", "", "not yours"),
    })
    .await;
    let (code, words) = ended(&mut record(&server, &path, &[])).await;
    assert_eq!(code, Some(0));
    assert_eq!(words.matches("not yours").count(), 1, "{words}");
    assert!(words.contains("could not be seen: 2 times") && words.contains("not exact: 2: containers"), "{words}");
}

#[tokio::test]
async fn a_file_is_never_lost_nor_doubled() {
    let (folder, path) = fresh();
    let server = all_over().await;
    let first = ended(&mut record(&server, &path, &[])).await;
    let whole = text(&path);
    assert_eq!(first.0, Some(0));

    let (code, words) = ended(&mut record(&server, &path, &[])).await;
    assert_eq!(code, Some(2));
    assert!(words.contains("--append adds to it, --force overwrites it"), "{words}");
    assert_eq!(text(&path), whole);

    let (code, words) = ended(&mut record(&server, &path, &["--append"])).await;
    assert_eq!((code, text(&path)), (Some(0), whole.clone()), "none twice");
    assert!(words.contains("applications written: 0, 0 rows"), "{words}");

    // What was in the file before the recording stays, and only what it lacks is added.
    let lines: Vec<_> = whole.lines().collect();
    std::fs::write(&path, format!("{}\n", lines[..3].join("\n"))).unwrap();
    assert_eq!(ended(&mut record(&server, &path, &["--append"])).await.0, Some(0));
    assert_eq!(text(&path), whole);

    std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
    let (code, words) = ended(&mut record(&server, &path, &["--append"])).await;
    assert_eq!(code, Some(2));
    assert!(words.contains("line"), "{words}");
    assert_eq!(ended(&mut record(&server, &path, &["--force"])).await.0, Some(0));
    assert_eq!(text(&path), whole);

    std::fs::write(&path, "a,b\n1,2\n").unwrap();
    let (code, words) = ended(&mut record(&server, &path, &["--append"])).await;
    assert_eq!(code, Some(2));
    assert!(words.contains("its first line is not job,submit_s,type"), "{words}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_resource_manager_that_is_not_there_leaves_no_file() {
    let (_folder, path) = fresh();
    let gone = all_over().await;
    let mut command = record(&gone, &path, &["--follow"]);
    drop(gone);
    let (code, words) = ended(&mut command).await;
    assert_eq!(code, Some(6), "{words}");
    assert!(!path.exists());
    let server = all_over().await;
    let (code, words) = ended(&mut record(&server, Path::new("/nowhere/load.csv"), &[])).await;
    assert_eq!(code, Some(2));
    assert!(words.contains("cannot write /nowhere/load.csv"), "{words}");
    let (code, _) = ended(&mut record(&server, Path::new("-"), &["--interval", "5s"])).await;
    assert_eq!(code, Some(2), "an interval is for --follow");
}

/// What is written here is what the simulator reads.
#[tokio::test]
async fn the_simulator_plays_all_that_was_recorded() {
    let (_folder, path) = fresh();
    followed(LOOKS, &path, &[]).await;
    let server = all_over().await;
    assert_eq!(ended(&mut record(&server, &path, &["--append"])).await.0, Some(0));
    let source = TraceSource {
        format: TraceFormat::Rows,
        file: "load.csv".into(),
        cluster: None,
        skip_ms: 0,
        queue: "default".into(),
        container: Resources::default(),
        on_loss: OnLoss::Restart,
    };
    let (jobs, note) = rows::read(&source, &[], &text(&path)).unwrap();
    assert_eq!(
        (jobs.len(), note.bad, note.left_out),
        (11, 0, Vec::new()),
        "two followed, nine more of eleven from totals"
    );
    let followed = jobs.iter().find(|job| &*job.name == "application_1795260834139_0012").unwrap();
    let Work::Gang { groups, duration_ms } = &followed.work else { panic!("{followed:?}") };
    assert_eq!((groups[0].containers, groups[0].resources, *duration_ms), (3, Resources::new(2048, 1, 1), 12_998));
}

#[tokio::test]
async fn a_reader_that_has_seen_enough_is_no_error() {
    let server = all_over().await;
    let mut child = record(&server, Path::new("-"), &[]).spawn().unwrap();
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().await.unwrap();
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
}

#[test]
fn a_torn_last_line_is_told() {
    let (_folder, path) = fresh();
    assert!(jobs(&path).unwrap().is_empty(), "not there yet");
    let header = "job,submit_s,type,queue,group,containers,memory_mb,vcores,gpus,duration_s,shape\n";
    std::fs::write(&path, format!("{header}a,0,TONY,default,master,1,1024,1,0,5,GANG\nb,1,X,q,p0,1,1,1,0,5,TASKS"))
        .unwrap();
    assert!(jobs(&path).unwrap_err().to_string().contains("not whole"));
}

#[test]
fn other_versions_are_read() {
    let of_34 = containers(fixture("3.4.3/ds-gpu-pending-containers.json").unwrap().as_bytes()).unwrap();
    assert_eq!(of_34.iter().filter(|one| one.resources.gpus == 1).count(), 6);
    assert_eq!(of_34.iter().filter(|one| one.resources.gpus == 0).count(), 1);
    // 3.5 writes numbers, 3.2 does not tell when an application was launched, 2.x knows an attempt by its number.
    let numbers =
        br#"{"container":[{"containerId":"c","allocatedMB":512,"allocatedVCores":2,"priority":20,"startedTime":7,
        "allocatedResources":{"entry":[{"key":"yarn.io/gpu","value":3}]}}]}"#;
    let [one] = containers(numbers).unwrap().try_into().unwrap();
    assert_eq!((one.priority, one.resources.vcores, one.resources.gpus, one.started_ms), (20, 2, 3, 7));
    let apps =
        applications(br#"{"apps":{"app":[{"id":"a","state":"RUNNING","startedTime":5,"elapsedTime":3}]}}"#).unwrap();
    assert_eq!((apps[0].launched, apps[0].heard_ms), (Launch::NotTold, 8));
    let attempt = newest_attempt(
        "application_1_0002",
        br#"{"appAttempts":{"appAttempt":[{"id":1,"containerId":"c"},{"id":2}]}}"#,
    );
    assert_eq!(attempt.unwrap().unwrap().id, "appattempt_1_0002_000002");
    assert_eq!(newest_attempt("application_1_0002", b"{}").unwrap(), None);
    assert!(containers(b"{}").unwrap().is_empty());
    assert!(applications(b"[]").is_err() && applications(br#"{"error":1}"#).is_err());
}
