//! Objects in a folder and in a bucket: whole or not there, one winner, and what is said when it goes wrong.

use std::{
    fs,
    os::unix::fs::symlink,
    sync::{Arc, Barrier},
    thread,
};

use tempfile::TempDir;
use yarn_autoscaler::{
    ports::{ErrorKind, PortError},
    store::objects::{FolderObjects, Generation, Object, Objects, Precondition, Upload},
};

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
    let ahead = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
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
