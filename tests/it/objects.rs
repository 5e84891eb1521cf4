//! Objects in a folder and in a bucket: whole or not there, one winner, and what is said when it goes wrong.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::atomic::{AtomicU64, Ordering},
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use tempfile::TempDir;
use yarn_autoscaler::{
    google::{Credentials, METADATA_TIME_LIMIT, Metadata, Timing, Tokens},
    ports::{ErrorKind, PortError},
    store::objects::{BucketObjects, FolderObjects, Generation, Object, Objects, Precondition, Upload, crc32c},
};

use crate::fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule};

const LIMIT: u64 = 1 << 20;

/// Runs it to its end on this thread.
pub fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub fn folder() -> (TempDir, FolderObjects) {
    let folder = tempfile::tempdir().unwrap();
    let objects = FolderObjects::open(folder.path()).unwrap();
    (folder, objects)
}

async fn put(objects: &impl Objects, name: &str, text: &str, when: Precondition) -> Result<Generation, PortError> {
    objects.put(name, Upload::json(text.to_owned()), when).await
}

/// What every kind of objects keeps to.
pub async fn keeps_the_contract(objects: &impl Objects) {
    assert_eq!(objects.get("a/x.json", LIMIT).await.unwrap(), None);
    assert_eq!(objects.list("").await.unwrap(), []);
    let first = put(objects, "a/x.json", "one", Precondition::Absent).await.unwrap();
    let again = put(objects, "a/x.json", "two", Precondition::Absent).await.unwrap_err();
    assert_eq!(again.kind, ErrorKind::Conflict, "{again}");
    assert!(again.text.contains("a/x.json"), "{again}");
    let second = put(objects, "a/x.json", "two", Precondition::Generation(first)).await.unwrap();
    assert_ne!(first, second);
    let stale = put(objects, "a/x.json", "three", Precondition::Generation(first)).await.unwrap_err();
    assert_eq!(stale.kind, ErrorKind::Conflict, "{stale}");
    let nobody = put(objects, "a/y.json", "three", Precondition::Generation(first)).await.unwrap_err();
    assert_eq!(nobody.kind, ErrorKind::Conflict, "{nobody}");
    let read = objects.get("a/x.json", LIMIT).await.unwrap().unwrap();
    assert_eq!(read, Object { bytes: "two".into(), generation: second });
    assert_eq!(objects.get("a/x.json", 2).await.unwrap_err().kind, ErrorKind::Permanent, "longer than the limit");

    put(objects, "a/ü b+c%.txt", "odd", Precondition::None).await.unwrap();
    put(objects, "b.txt", "", Precondition::None).await.unwrap();
    let listed = objects.list("a/").await.unwrap();
    assert_eq!(
        listed.iter().map(|info| (&*info.name, info.size)).collect::<Vec<_>>(),
        [("a/x.json", 3), ("a/ü b+c%.txt", 3)]
    );
    assert_eq!(listed[0].generation, second);
    assert_eq!(objects.list("a/x").await.unwrap().len(), 1);
    assert_eq!(objects.list("").await.unwrap().len(), 3);
    assert_eq!(objects.get("a/ü b+c%.txt", LIMIT).await.unwrap().unwrap().bytes, "odd");
    assert_eq!(objects.get("b.txt", 0).await.unwrap().unwrap().bytes, "");

    let stale = objects.delete("a/x.json", Precondition::Generation(first)).await.unwrap_err();
    assert_eq!(stale.kind, ErrorKind::Conflict, "{stale}");
    assert!(objects.get("a/x.json", LIMIT).await.unwrap().is_some(), "a refused deletion deletes nothing");
    objects.delete("a/x.json", Precondition::Generation(second)).await.unwrap();
    assert_eq!(objects.get("a/x.json", LIMIT).await.unwrap(), None);
    objects.delete("a/x.json", Precondition::None).await.unwrap();
    let gone = objects.delete("a/x.json", Precondition::Generation(second)).await.unwrap_err();
    assert_eq!(gone.kind, ErrorKind::Conflict, "{gone}");
    let third = put(objects, "a/x.json", "new", Precondition::Absent).await.unwrap();
    assert!(third != first && third != second, "an object that is made anew is another one");

    for name in ["", "/a", "a//b", "../a", "a/./b", "a\nb"] {
        assert_eq!(put(objects, name, "x", Precondition::None).await.unwrap_err().kind, ErrorKind::Permanent, "{name}");
    }
}

#[test]
fn a_folder_keeps_the_contract() {
    let (_folder, objects) = folder();
    wait(keeps_the_contract(&objects));
}

/// Eight at once, each with objects of its own, raise a counter until all have done so ten times.
pub fn counted_by_eight<O: Objects>(open: impl Fn() -> O + Send + Sync) {
    const EACH: u32 = 10;
    let start = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let count_up = async {
                    let objects = open();
                    start.wait();
                    let mut done = 0;
                    while done < EACH {
                        let (count, when) = match objects.get("count", LIMIT).await.unwrap() {
                            None => (0, Precondition::Absent),
                            Some(object) => {
                                let count: u32 = String::from_utf8(object.bytes.to_vec()).unwrap().parse().unwrap();
                                (count, Precondition::Generation(object.generation))
                            }
                        };
                        match put(&objects, "count", &(count + 1).to_string(), when).await {
                            Ok(_) => done += 1,
                            Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{error}"),
                        }
                    }
                };
                wait(count_up);
            });
        }
    });
    let counted = wait(async { open().get("count", LIMIT).await }).unwrap().unwrap();
    assert_eq!(counted.bytes, "80");
}

#[test]
fn no_write_to_a_folder_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    counted_by_eight(|| FolderObjects::open(folder.path()).unwrap());
}

#[test]
fn writes_in_the_same_instant_have_different_generations() {
    let (folder, objects) = folder();
    let mut last = wait(put(&objects, "x", "0", Precondition::Absent)).unwrap();
    // The file's time lies ahead, as after a clock that was set back.
    let ahead = std::time::SystemTime::now() + Duration::from_secs(3600);
    fs::File::options().write(true).open(folder.path().join("x")).unwrap().set_modified(ahead).unwrap();
    assert_eq!(wait(put(&objects, "x", "1", Precondition::Generation(last))).unwrap_err().kind, ErrorKind::Conflict);
    last = wait(objects.get("x", LIMIT)).unwrap().unwrap().generation;
    for n in 0..20 {
        let next = wait(put(&objects, "x", &n.to_string(), Precondition::Generation(last))).unwrap();
        assert!(next > last);
        last = next;
    }
}

#[test]
fn what_a_crash_left_is_cleared_away_and_never_listed() {
    let (folder, objects) = folder();
    fs::write(folder.path().join(".objects.Xy12Ab"), "half a fi").unwrap();
    assert_eq!(wait(objects.list("")).unwrap(), []);
    wait(put(&objects, "x", "whole", Precondition::None)).unwrap();
    assert!(!folder.path().join(".objects.Xy12Ab").exists());
    let names: Vec<_> = wait(objects.list("")).unwrap().into_iter().map(|info| info.name).collect();
    assert_eq!(names, ["x"]);
}

#[test]
fn what_is_no_object_is_refused() {
    let (folder, objects) = folder();
    let error = FolderObjects::open(folder.path().join("nowhere")).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    fs::write(folder.path().join("file"), "").unwrap();
    assert_eq!(FolderObjects::open(folder.path().join("file")).unwrap_err().kind, ErrorKind::Permanent);
    fs::create_dir(folder.path().join("inner")).unwrap();
    let error = wait(objects.get("inner", LIMIT)).unwrap_err();
    assert!(error.text.ends_with("it is not a regular file"), "{error}");
    assert!(wait(put(&objects, "inner", "x", Precondition::None)).is_err());
    assert!(wait(put(&objects, "file/x", "x", Precondition::None)).is_err(), "a file is no folder");
    symlink(folder.path(), folder.path().join("inner/loop")).unwrap();
    assert_eq!(wait(objects.list("file")).unwrap().len(), 1, "a loop of links ends");
}

#[test]
fn a_writer_that_stands_still_is_waited_for() {
    let (folder, objects) = folder();
    let lock = fs::File::create(folder.path().join(".objects.lock")).unwrap();
    lock.lock().unwrap();
    let release = Arc::new(Barrier::new(2));
    let other = release.clone();
    let writer = thread::spawn(move || {
        other.wait();
        lock.unlock().unwrap();
    });
    wait(async {
        let write = put(&objects, "x", "late", Precondition::Absent);
        let unlock = async { release.wait() };
        // The write is polled first and finds the lock taken.
        let (written, _) = tokio::join!(write, unlock);
        written.unwrap();
    });
    writer.join().unwrap();
}

/// The fake's bucket `b`, asked by nobody in particular.
pub async fn bucket(fake: &FakeGoogle) -> BucketObjects {
    bucket_called("b", fake, Tokens::anonymous(), Duration::from_secs(10)).await
}

async fn bucket_called(name: &str, fake: &FakeGoogle, tokens: Tokens, limit: Duration) -> BucketObjects {
    BucketObjects::new(name, &fake.url().parse().unwrap(), Arc::new(tokens), limit).await.unwrap()
}

/// How many requests of this method had this in their path.
fn count(fake: &FakeGoogle, method: &str, path: &str) -> usize {
    fake.requests().iter().filter(|request| request.method == method && request.path.contains(path)).count()
}

#[test]
fn a_bucket_keeps_the_contract() {
    let fake = FakeGoogle::start(FakeOptions::default());
    wait(async { keeps_the_contract(&bucket(&fake).await).await });
}

#[test]
fn no_write_to_a_bucket_is_lost() {
    let fake = FakeGoogle::start(FakeOptions::default());
    counted_by_eight(|| opened(&fake));
}

/// A bucket where there is a runtime already.
pub fn opened(fake: &FakeGoogle) -> BucketObjects {
    thread::scope(|scope| scope.spawn(|| wait(bucket(fake))).join().unwrap())
}

#[test]
fn a_listing_has_all_its_pages() {
    let fake = FakeGoogle::start(FakeOptions::default());
    for number in 0..2100 {
        fake.put_object("b", &format!("many/{number:04}"), "x");
    }
    let listed = wait(async { bucket(&fake).await.list("many/").await }).unwrap();
    assert_eq!(listed.len(), 2100);
    assert_eq!(listed[2099].name, "many/2099");
    assert_eq!(listed[0].crc32c, Some(crc32c(b"x")));
    assert_eq!(count(&fake, "GET", "/o"), 3);
}

#[test]
fn what_a_bucket_refuses_is_told_with_what_would_be_right() {
    let fake = FakeGoogle::start(FakeOptions::default());
    wait(async {
        let nowhere = bucket_called("nowhere", &fake, Tokens::anonymous(), Duration::from_secs(10)).await;
        for error in [
            nowhere.get("x", LIMIT).await.unwrap_err(),
            nowhere.list("").await.unwrap_err(),
            put(&nowhere, "x", "", Precondition::None).await.unwrap_err(),
            nowhere.delete("x", Precondition::None).await.unwrap_err(),
        ] {
            assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
            assert!(
                error.text.contains("The specified bucket does not exist. (is there a bucket gs://nowhere?)"),
                "{error}"
            );
        }
        let objects = bucket(&fake).await;
        fake.misbehave(Rule::once("POST", "upload", Misbehaviour::Denied("storage.objects.create")));
        let error = put(&objects, "x", "", Precondition::None).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(error.text.starts_with("writing gs://b/x: 403 "), "{error}");
        assert!(error.text.contains("'storage.objects.create' denied"), "{error}");
        assert!(error.text.contains("roles/storage.objectUser on gs://b"), "{error}");
        for strange in [Misbehaviour::Malformed, Misbehaviour::Instead("{}".into())] {
            fake.misbehave(Rule::once("GET", "/b/b/o", strange));
            let error = objects.list("").await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Transient, "an answer that is no listing is no empty one: {error}");
        }
    });
}

#[test]
fn what_may_pass_is_tried_again_and_not_for_ever() {
    let fake = FakeGoogle::start(FakeOptions::default());
    wait(async {
        let objects = bucket(&fake).await;
        for once in [
            Misbehaviour::Unavailable,
            Misbehaviour::UnavailableAfter,
            Misbehaviour::DroppedBefore,
            Misbehaviour::DroppedAfter,
        ] {
            let name = format!("{once:?}");
            fake.misbehave(Rule::once("POST", "upload", once));
            put(&objects, &name, "x", Precondition::Absent).await.unwrap();
        }
        fake.misbehave(Rule::once("POST", "upload", Misbehaviour::Unavailable).times(4));
        let error = put(&objects, "never", "x", Precondition::Absent).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Transient, "{error}");
        assert!(error.text.contains("writing gs://b/never: 503 "), "{error}");
        put(&objects, "never", "x", Precondition::Absent).await.unwrap();
    });
}

#[test]
fn a_call_that_hangs_ends_within_its_limit() {
    let fake = FakeGoogle::start(FakeOptions::default());
    wait(async {
        let objects = bucket_called("b", &fake, Tokens::anonymous(), Duration::from_millis(300)).await;
        fake.misbehave(Rule::once("POST", "upload", Misbehaviour::SilenceAfter));
        let error = put(&objects, "x", "done", Precondition::Absent).await.unwrap_err();
        assert_eq!((error.kind, &*error.text), (ErrorKind::Transient, "writing gs://b/x: no answer within 0.3 s"));
        fake.misbehave(Rule::once("GET", "/o/x", Misbehaviour::Silence));
        assert_eq!(objects.get("x", LIMIT).await.unwrap_err().kind, ErrorKind::Transient);
        fake.misbehave(Rule::once("GET", "/b/b/o", Misbehaviour::Silence));
        assert_eq!(objects.list("").await.unwrap_err().kind, ErrorKind::Transient);
    });
    assert_eq!(fake.object("b", "x").unwrap(), b"done", "it was done all the same");
}

#[test]
fn a_large_upload_is_resumed_and_tells_how_far_it_is() {
    const SIZE: usize = 17 << 20;
    let fake = FakeGoogle::start(FakeOptions::default());
    fake.misbehave(Rule::once("PUT", "upload", Misbehaviour::DroppedBefore));
    let bytes: Vec<u8> = (0..SIZE).map(|index| u8::try_from(index % 251).unwrap()).collect();
    let sent = Arc::new(AtomicU64::new(0));
    let told = sent.clone();
    wait(async {
        let upload = Upload {
            bytes: bytes.clone().into(),
            content_type: "application/octet-stream",
            sent: Some(Arc::new(move |sent| told.store(sent, Ordering::SeqCst))),
        };
        bucket(&fake).await.put("bin/large", upload, Precondition::Absent).await.unwrap();
    });
    assert_eq!(sent.load(Ordering::SeqCst), SIZE as u64);
    assert!(fake.object("b", "bin/large").unwrap() == bytes, "what arrived is what was sent");
    assert_eq!(count(&fake, "POST", "upload"), 1, "one session");
    assert!(count(&fake, "PUT", "upload") >= 2, "which was taken up again");
}

#[test]
fn the_token_is_sent_and_shown_nowhere() {
    let fake = FakeGoogle::start(FakeOptions { tokens_demanded: true, ..FakeOptions::default() });
    wait(async {
        let error = put(&bucket(&fake).await, "x", "", Precondition::None).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error}");
        let metadata = Metadata::new(&fake.host(), METADATA_TIME_LIMIT).unwrap();
        let tokens = Tokens::new(Credentials::Metadata(metadata), Timing::default());
        let objects = bucket_called("b", &fake, tokens, Duration::from_secs(10)).await;
        put(&objects, "x", "", Precondition::None).await.unwrap();
        assert_eq!(objects.list("").await.unwrap().len(), 1);
        objects.delete("x", Precondition::None).await.unwrap();
        assert_eq!(format!("{objects:?}"), "BucketObjects(gs://b)");
    });
}
