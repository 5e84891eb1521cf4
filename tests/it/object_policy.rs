//! The policy in an object: when a change is noticed, and how often it is reported.

use std::{
    fs,
    sync::{Arc, atomic::AtomicBool},
};

use chrono::{DateTime, TimeDelta, Utc};
use yarn_autoscaler::{
    policy::Policy,
    ports::{ErrorKind, PolicyChange, PolicySource},
    store::{
        ObjectPolicy,
        objects::{Objects, Precondition, Upload},
    },
};

use crate::{
    fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule},
    objects::{bucket, folder, wait},
    ticks::Scene,
};

const NAME: &str = "policy.yaml";

fn at(seconds: i64) -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(seconds)
}

/// A loader that takes a text for the policy's name, and refuses `bad`.
fn load(text: &str, name: &str) -> Result<Policy, String> {
    if text.contains("bad") {
        return Err(format!("{}: not a policy", name.rsplit('/').next().unwrap_or(name)));
    }
    Ok(Policy { id: Some(text.trim().into()), ..Scene::new(1, 0, 0).policy })
}

/// What a look found, in a word.
async fn look(source: &mut impl PolicySource, seconds: i64) -> String {
    match source.check(at(seconds)).await {
        PolicyChange::Unchanged => "unchanged".into(),
        PolicyChange::New(policy) => format!("new {}", policy.id.unwrap()),
        PolicyChange::Invalid(text) => format!("invalid {text}"),
    }
}

async fn write(objects: &impl Objects, text: &str) {
    objects.put(NAME, Upload::json(text.to_owned()), Precondition::None).await.unwrap();
}

#[test]
fn changes_are_reported_once_and_looked_for_every_half_minute() {
    let (dir, objects) = folder();
    wait(async {
        let mut source = ObjectPolicy::new(objects.clone(), NAME, Arc::default(), load);
        assert_eq!(source.probe().await.unwrap_err().kind, ErrorKind::NotFound);
        let none = look(&mut source, 0).await;
        assert!(none.starts_with("invalid there is no policy ") && none.ends_with("policy.yaml"), "{none}");
        assert_eq!(look(&mut source, 30).await, "unchanged", "told once");
        write(&objects, "one").await;
        source.probe().await.unwrap();
        assert_eq!(look(&mut source, 59).await, "unchanged", "not yet");
        assert_eq!(look(&mut source, 60).await, "new one");
        assert_eq!(look(&mut source, 90).await, "unchanged");
        write(&objects, "one").await;
        assert_eq!(look(&mut source, 120).await, "unchanged", "another object with the same text");
        write(&objects, "bad").await;
        assert_eq!(look(&mut source, 150).await, "invalid policy.yaml: not a policy");
        assert_eq!(look(&mut source, 180).await, "unchanged");
        write(&objects, "one").await;
        assert_eq!(look(&mut source, 0).await, "new one", "a clock that was set back looks at once");
        fs::write(dir.path().join(NAME), [0xff, 0xfe]).unwrap();
        assert!(look(&mut source, 30).await.ends_with("policy.yaml is not UTF-8 text"));
        fs::write(dir.path().join(NAME), vec![b'#'; (1 << 20) + 1]).unwrap();
        assert!(look(&mut source, 60).await.ends_with("is longer than 1048576 bytes"));
    });
}

#[test]
fn a_bucket_that_does_not_answer_for_a_while_changes_nothing() {
    let fake = FakeGoogle::start(FakeOptions::default());
    fake.put_object("b", NAME, "one");
    wait(async {
        let force = Arc::new(AtomicBool::new(false));
        let mut source = ObjectPolicy::new(bucket(&fake).await, NAME, Arc::clone(&force), load);
        assert_eq!(look(&mut source, 0).await, "new one");
        fake.misbehave(Rule::once("GET", "/o/", Misbehaviour::Denied("storage.objects.get")).times(3));
        let denied = look(&mut source, 30).await;
        assert!(denied.starts_with("invalid the policy gs://b/policy.yaml cannot be read: "), "{denied}");
        assert!(denied.contains("'storage.objects.get' denied"), "{denied}");
        assert_eq!(look(&mut source, 60).await, "unchanged", "told once");
        source.force();
        assert!(look(&mut source, 61).await.contains("denied"), "asked for, told again");
        assert_eq!(look(&mut source, 91).await, "unchanged", "it is the one in force");
        source.force();
        assert_eq!(look(&mut source, 92).await, "new one");
        assert!(!force.load(std::sync::atomic::Ordering::Relaxed));
        fake.put_object("b", NAME, "two");
        assert_eq!(look(&mut source, 122).await, "new two");
    });
}
