//! The policy file: when a change is noticed, and how often it is reported.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::AtomicBool},
};

use yarn_autoscaler::{
    cli::policy_file::PolicyFile,
    policy::Policy,
    ports::{PolicyChange, PolicySource},
};

use crate::{ticks::Scene, world::poll_once};

/// A loader that takes a text for the policy's name, and refuses `bad`.
fn load(text: &str, name: &str) -> Result<Policy, String> {
    if text.contains("bad") {
        return Err(format!("{}: not a policy", name.rsplit('/').next().unwrap_or(name)));
    }
    Ok(Policy { id: Some(text.trim().into()), ..Scene::new(1, 0, 0).policy })
}

/// What a look found, in a word.
fn look(source: &mut impl PolicySource) -> String {
    match poll_once(source.check(Scene::new(1, 0, 0).situation.now)).unwrap() {
        PolicyChange::Unchanged => "unchanged".into(),
        PolicyChange::New(policy) => format!("new {}", policy.id.unwrap()),
        PolicyChange::Invalid(text) => format!("invalid {text}"),
    }
}

/// Written beside and renamed, as editors do: another file each time.
fn write(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

#[test]
fn changes_are_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let force = Arc::new(AtomicBool::new(false));
    let mut source = PolicyFile::new(&path, Arc::clone(&force), load);

    assert!(look(&mut source).starts_with("invalid policy file"), "there is none yet");
    assert_eq!(look(&mut source), "unchanged");
    write(&path, "one");
    assert_eq!(look(&mut source), "new one");
    assert_eq!(look(&mut source), "unchanged");
    write(&path, "one");
    assert_eq!(look(&mut source), "unchanged", "another file with the same text");
    write(&path, "bad");
    assert_eq!(look(&mut source), "invalid policy.yaml: not a policy");
    assert_eq!(look(&mut source), "unchanged");
    write(&path, "one");
    assert_eq!(look(&mut source), "new one", "mended");
    fs::remove_file(&path).unwrap();
    assert!(look(&mut source).contains("cannot be read: No such file"));
    assert_eq!(look(&mut source), "unchanged");
    write(&path, "one");
    assert_eq!(look(&mut source), "new one", "it is back");
    source.force();
    assert_eq!(look(&mut source), "new one");
    assert_eq!(look(&mut source), "unchanged");
    assert!(!force.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn a_swapped_link_is_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b, link) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("policy.yaml"));
    fs::write(&a, "aa").unwrap();
    fs::write(&b, "bb").unwrap();
    std::os::unix::fs::symlink(&a, &link).unwrap();
    let mut source = PolicyFile::new(&link, Arc::default(), load);
    assert_eq!(look(&mut source), "new aa");
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(&b, &link).unwrap();
    assert_eq!(look(&mut source), "new bb");
}

#[test]
fn what_is_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy.yaml");
    let mut source = PolicyFile::new(&path, Arc::default(), load);
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(look(&mut source).ends_with("is not UTF-8 text"));
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(look(&mut source).ends_with("is larger than 1048576 bytes"));
    assert_eq!(look(&mut source), "unchanged");
    let mut folder = PolicyFile::new(folder.path(), Arc::default(), load);
    assert!(look(&mut folder).ends_with("cannot be read: it is not a regular file"));
}
