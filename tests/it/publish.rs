//! `publish`: what is uploaded and what not, the manifest, interruptions, words and exit codes.

use std::{
    cell::RefCell,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use chrono::{DateTime, Utc};
use tempfile::TempDir;
use yarn_autoscaler::{
    ports::{ErrorKind, PortError},
    store::{
        objects::{FolderObjects, Generation, Object, ObjectInfo, Objects, Precondition, Sent, Upload},
        publish::{Fate, LocalFile, Manifest, Outcome, Target, Watcher, collect},
    },
};

use crate::{
    fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule},
    objects::{bucket, folder, wait},
};

fn now() -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse().unwrap()
}

/// Files to publish: two init actions, a policy, and what nobody means.
fn files() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let init = dir.path().join("init-actions");
    fs::create_dir_all(init.join(".git")).unwrap();
    fs::write(init.join(".git/config"), "secret").unwrap();
    fs::write(init.join("gpu.sh"), "#!/bin/bash\necho gpu\n").unwrap();
    fs::write(init.join("autoscaler.sh"), "#!/bin/bash\necho autoscaler\n").unwrap();
    fs::write(dir.path().join("policy.yaml"), "workerConfig: {maxInstances: 4}\n").unwrap();
    dir
}

fn paths(dir: &Path) -> Vec<PathBuf> {
    vec![dir.join("init-actions"), dir.join("policy.yaml")]
}

#[derive(Default)]
struct Seen(RefCell<Vec<String>>);

impl Watcher for Seen {
    fn uploading(&self, file: &LocalFile) -> Option<Sent> {
        self.0.borrow_mut().push(format!("uploading {}", file.path));
        None
    }

    fn done(&self, file: &LocalFile, fate: Fate) {
        self.0.borrow_mut().push(format!("{fate:?} {}", file.path));
    }
}

async fn publish(objects: &impl Objects, dir: &Path, dry_run: bool) -> Result<Outcome, PortError> {
    let files = collect(&paths(dir)).unwrap().files;
    Target { objects, prefix: "lib", dry_run }.publish(&files, now(), &Seen::default()).await
}

fn fates(outcome: &Outcome) -> Vec<Fate> {
    outcome.fates.values().copied().collect()
}

/// What every kind of objects makes of it.
async fn is_published(objects: &impl Objects) {
    let dir = files();
    let planned = publish(objects, dir.path(), true).await.unwrap();
    assert_eq!(objects.list("").await.unwrap(), [], "a dry run writes nothing");
    assert_eq!(fates(&planned), [Fate::Missing; 3]);
    let first = publish(objects, dir.path(), false).await.unwrap();
    assert_eq!((fates(&first), first.is_new), (vec![Fate::Uploaded; 3], true));
    assert_eq!(first.manifest, planned.manifest);
    for published in first.manifest.files.values() {
        let object = objects.get(&published.object, 1 << 20).await.unwrap().unwrap();
        assert_eq!(object.bytes.len() as u64, published.size);
        assert!(published.object.starts_with(&format!("lib/sha256/{}/", published.sha256)));
    }
    let stored = objects.get("lib/manifest.json", 1 << 20).await.unwrap().unwrap();
    assert_eq!(Manifest::parse("m", &stored.bytes).unwrap(), first.manifest);

    let again = publish(objects, dir.path(), false).await.unwrap();
    assert_eq!((fates(&again), again.is_new), (vec![Fate::Unchanged; 3], false));
    let unmoved = objects.get("lib/manifest.json", 1 << 20).await.unwrap().unwrap();
    assert_eq!(unmoved.generation, stored.generation, "nothing to say, nothing written");

    fs::write(dir.path().join("policy.yaml"), "workerConfig: {maxInstances: 5}\n").unwrap();
    let changed = publish(objects, dir.path(), false).await.unwrap();
    assert_eq!((fates(&changed), changed.is_new), (vec![Fate::Unchanged, Fate::Unchanged, Fate::Uploaded], true));
    let old = &first.manifest.files["policy.yaml"].object;
    assert!(objects.get(old, 1 << 20).await.unwrap().is_some(), "what was published stays");
}

#[test]
fn to_a_folder() {
    let (_dir, objects) = folder();
    wait(is_published(&objects));
}

#[test]
fn to_a_bucket() {
    let fake = FakeGoogle::start(FakeOptions::default());
    wait(async { is_published(&bucket(&fake).await).await });
}

#[test]
fn the_manifest_to_the_letter() {
    let (out, objects) = folder();
    let dir = files();
    wait(publish(&objects, dir.path(), false)).unwrap();
    let text = fs::read_to_string(out.path().join("lib/manifest.json")).unwrap();
    insta::assert_snapshot!(text.replace(&out.path().display().to_string(), "FOLDER"));
}

#[test]
fn an_interrupted_publication_goes_on_where_it_ended() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let dir = files();
    wait(async {
        let objects = bucket(&fake).await;
        publish(&objects, dir.path(), false).await.unwrap();
        let manifest = fake.generation("b", "lib/manifest.json");
        fs::write(dir.path().join("init-actions/autoscaler.sh"), "echo 2").unwrap();
        fs::write(dir.path().join("init-actions/gpu.sh"), "echo 2 gpu").unwrap();
        fake.misbehave(Rule::once("POST", "upload", Misbehaviour::Delayed(std::time::Duration::ZERO)));
        fake.misbehave(Rule::once("POST", "upload", Misbehaviour::Denied("storage.objects.create")));
        let error = publish(&objects, dir.path(), false).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error}");
        assert_eq!(fake.generation("b", "lib/manifest.json"), manifest, "the old set is still the one that is named");
        let resumed = publish(&objects, dir.path(), false).await.unwrap();
        assert_eq!(fates(&resumed), [Fate::Unchanged, Fate::Uploaded, Fate::Unchanged]);
    });
}

/// Objects beside which somebody else is at work.
struct Meddled<'a>(&'a FolderObjects, &'static str);

impl Objects for Meddled<'_> {
    fn address(&self, name: &str) -> String {
        self.0.address(name)
    }

    async fn get(&self, name: &str, limit: u64) -> Result<Option<Object>, PortError> {
        self.0.get(name, limit).await
    }

    async fn put(&self, name: &str, upload: Upload, when: Precondition) -> Result<Generation, PortError> {
        if name.contains(self.1) {
            // The same bytes: as our own first attempt would have left them, or somebody who publishes the same.
            let first = if self.1 == "manifest" { Upload::json("{}") } else { upload.clone() };
            self.0.put(name, first, Precondition::None).await?;
        }
        self.0.put(name, upload, when).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, PortError> {
        self.0.list(prefix).await
    }

    async fn delete(&self, name: &str, when: Precondition) -> Result<(), PortError> {
        self.0.delete(name, when).await
    }
}

#[test]
fn of_two_that_publish_at_once_one_is_told() {
    let (_out, objects) = folder();
    let dir = files();
    let error = wait(publish(&Meddled(&objects, "manifest"), dir.path(), false)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(
        error.text.ends_with("was replaced meanwhile: somebody else publishes there, too. Run it again"),
        "{error}"
    );
    let outcome = wait(publish(&Meddled(&objects, "gpu.sh"), dir.path(), false));
    let error = outcome.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Permanent, "the other one's manifest is none: {error}");
    assert!(error.text.contains("is no manifest of yarn-autoscaler"), "{error}");
    wait(objects.delete("lib/manifest.json", Precondition::None)).unwrap();
    fs::write(dir.path().join("init-actions/gpu.sh"), "new").unwrap();
    let outcome = wait(publish(&Meddled(&objects, "gpu.sh"), dir.path(), false)).unwrap();
    assert_eq!(outcome.fates["init-actions/gpu.sh"], Fate::Uploaded, "the same bytes are no conflict");
}

#[test]
fn an_object_with_other_bytes_than_its_name_says_is_told() {
    let (out, objects) = folder();
    let dir = files();
    let first = wait(publish(&objects, dir.path(), false)).unwrap();
    fs::write(out.path().join(&first.manifest.files["policy.yaml"].object), "something else").unwrap();
    let error = wait(publish(&objects, dir.path(), false)).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert!(error.text.ends_with("holds other bytes than its name says: delete it and publish again"), "{error}");
}

#[test]
fn a_manifest_of_a_newer_form_is_left() {
    let (_out, objects) = folder();
    wait(objects.put("lib/manifest.json", Upload::json(r#"{"version":2}"#), Precondition::None)).unwrap();
    let error = wait(publish(&objects, files().path(), false)).unwrap_err();
    assert!(error.text.contains("is a manifest of version 2, this binary knows 1: it is left as it is"), "{error}");
}

#[test]
fn what_cannot_be_published_is_named() {
    let dir = files();
    let at = |name: &str| dir.path().join(name);
    symlink("..", at("init-actions/up")).unwrap();
    fs::create_dir_all(at("odd")).unwrap();
    fs::write(at("odd/a b.sh"), "").unwrap();
    fs::create_dir_all(at("other")).unwrap();
    fs::write(at("other/policy.yaml"), "").unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    for (paths, says) in [
        (vec![at("nowhere")], "nowhere: No such file or directory"),
        (vec![at("init-actions")], "init-actions/up/init-actions leads back to a folder that it is in"),
        (vec![at("odd")], "a name has letters, digits and any of . _ - + = @"),
        (vec![at("socket")], "socket is neither a file nor a folder"),
        (vec![at("policy.yaml"), at("other/policy.yaml")], "would both be called policy.yaml: rename one"),
    ] {
        let error = collect(&paths).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    drop(socket);
    let same = collect(&[at("policy.yaml"), at("policy.yaml")]).unwrap();
    assert_eq!(same.files.len(), 1, "the same file twice is no contradiction");
    symlink(at("policy.yaml"), at("other/link.yaml")).unwrap();
    let linked = collect(&[at("other/link.yaml"), at("other/.")]).unwrap();
    let paths: Vec<_> = linked.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["link.yaml", "other/link.yaml", "other/policy.yaml"]);
}

/// The command, from the folder with the files: its code and its words, the fake's address left out.
fn command(dir: &Path, fake: Option<&FakeGoogle>, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_yarn-autoscaler"));
    command.current_dir(dir).env("NO_COLOR", "1").env_remove("RUST_LOG").arg("publish").args(arguments);
    if let Some(fake) = fake {
        command.args(["--google-credentials", "none", "--storage-endpoint", &fake.url()]);
    }
    let output = command.output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), fake.map_or(words.clone(), |fake| words.replace(&fake.url(), "http://fake/")))
}

#[test]
fn the_command_says_what_it_did_and_what_to_do_with_it() {
    let fake = FakeGoogle::start(FakeOptions { buckets: vec!["my-bucket".into()], ..FakeOptions::default() });
    let dir = files();
    let arguments = ["gs://my-bucket/lib", "init-actions", "policy.yaml"];
    let (code, words) = command(dir.path(), Some(&fake), &arguments);
    assert_eq!(code, Some(0), "{words}");
    insta::assert_snapshot!(words);
    let (code, words) = command(dir.path(), Some(&fake), &[&arguments[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(0), "{words}");
    assert!(words.starts_with("unchanged"), "{words}");

    fs::create_dir(dir.path().join("out")).unwrap();
    let (code, words) = command(dir.path(), None, &["out", "--binary"]);
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains("  yarn-autoscaler\n"), "{words}");
}

#[test]
fn the_command_ends_with_the_code_of_what_went_wrong() {
    let fake = FakeGoogle::start(FakeOptions { buckets: vec!["my-bucket".into()], ..FakeOptions::default() });
    let dir = files();
    let run = |arguments: &[&str]| command(dir.path(), Some(&fake), arguments);
    let expect = |arguments: &[&str], code: i32, says: &str| {
        let (is, words) = run(arguments);
        assert!(is == Some(code) && words.contains(says), "{is:?}: {words}");
    };
    expect(&["gs://nowhere", "policy.yaml"], 2, "is there a bucket gs://nowhere?");
    expect(&["gs://my-bucket", "no.yaml"], 2, "cannot read no.yaml: No such file or directory");
    expect(&["s3://my-bucket", "policy.yaml"], 2, "is neither gs://BUCKET[/PATH] nor file:///FOLDER nor a folder");
    expect(&["no-folder", "policy.yaml"], 2, "cannot open the folder no-folder");
    expect(&["gs://my-bucket"], 2, "<PATH>...");
    fake.misbehave(Rule::once("POST", "upload", Misbehaviour::Denied("storage.objects.create")));
    expect(&["gs://my-bucket", "policy.yaml"], 2, "roles/storage.objectUser on gs://my-bucket");
    fake.misbehave(Rule::once("GET", "/o", Misbehaviour::Unavailable));
    expect(&["gs://my-bucket", "policy.yaml"], 6, "503");
}
