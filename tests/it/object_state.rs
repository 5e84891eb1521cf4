//! The state in an object: one holder among many, leases, lost answers, take-overs, foreign documents.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    path::Path,
    process::Command,
    rc::Rc,
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use yarn_autoscaler::{
    model::State,
    ports::{ErrorKind, PortError, StateStore},
    store::{
        ObjectStateStore,
        objects::{FolderObjects, Generation, Object, ObjectInfo, Objects, Precondition, Upload},
    },
};

use crate::{
    fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule},
    objects::{bucket, folder, opened, wait},
};

const NAME: &str = "state.json";

fn at(seconds: i64) -> DateTime<Utc> {
    "2026-11-21T12:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(seconds)
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Nothing is done, and no answer comes.
    Refused,
    /// It is done, and no answer comes.
    AnswerLost,
    /// It is done, the answer is lost, and the second attempt meets the first one's work.
    DoneTwice,
}

/// Objects in memory, with faults to come; clones share them.
#[derive(Clone, Debug, Default)]
struct Memory {
    objects: Rc<RefCell<BTreeMap<String, Object>>>,
    writes: Rc<RefCell<i64>>,
    faults: Rc<RefCell<VecDeque<Fault>>>,
}

impl Memory {
    fn text(&self) -> String {
        String::from_utf8(self.objects.borrow()[NAME].bytes.to_vec()).unwrap()
    }

    fn set(&self, text: &str) {
        let generation = Generation(self.writes.replace_with(|n| *n + 1) + 1);
        let object = Object { bytes: text.to_owned().into(), generation };
        self.objects.borrow_mut().insert(NAME.into(), object);
    }

    fn fail(&self, fault: Fault) {
        self.faults.borrow_mut().push_back(fault);
    }
}

impl Objects for Memory {
    fn address(&self, name: &str) -> String {
        format!("memory://{name}")
    }

    async fn get(&self, name: &str, _limit: u64) -> Result<Option<Object>, PortError> {
        Ok(self.objects.borrow().get(name).cloned())
    }

    async fn put(&self, name: &str, upload: Upload, when: Precondition) -> Result<Generation, PortError> {
        let fault = self.faults.borrow_mut().pop_front();
        if let Some(Fault::Refused) = fault {
            return Err(PortError::transient("no answer"));
        }
        let stored = self.objects.borrow().get(name).map(|object| object.generation);
        let holds = match when {
            Precondition::None => true,
            Precondition::Absent => stored.is_none(),
            Precondition::Generation(generation) => stored == Some(generation),
        };
        if !holds {
            return Err(PortError::new(ErrorKind::Conflict, "412"));
        }
        let generation = Generation(self.writes.replace_with(|n| *n + 1) + 1);
        self.objects.borrow_mut().insert(name.into(), Object { bytes: upload.bytes, generation });
        match fault {
            Some(Fault::AnswerLost) => Err(PortError::transient("no answer")),
            Some(Fault::DoneTwice) => Err(PortError::new(ErrorKind::Conflict, "412")),
            _ => Ok(generation),
        }
    }

    async fn list(&self, _prefix: &str) -> Result<Vec<ObjectInfo>, PortError> {
        unreachable!("a state is not looked for")
    }

    async fn delete(&self, _name: &str, _when: Precondition) -> Result<(), PortError> {
        unreachable!("a state is not deleted")
    }
}

fn store(memory: &Memory, now: i64) -> ObjectStateStore<Memory> {
    ObjectStateStore::new(memory.clone(), NAME, at(now))
}

fn state(failures: u32) -> State {
    State { provider_failures: failures, ..State::default() }
}

/// A store that holds a state with this many failures.
fn holding(memory: &Memory, now: i64, failures: u32) -> ObjectStateStore<Memory> {
    let mut store = store(memory, now);
    wait(store.load()).unwrap();
    wait(store.save(&state(failures))).unwrap();
    store
}

fn peek(memory: &Memory) -> u32 {
    wait(ObjectStateStore::peek(memory, NAME)).unwrap().provider_failures
}

#[test]
fn starts_fresh_remembers_and_is_let_go() {
    let memory = Memory::default();
    let mut first = store(&memory, 0);
    assert_eq!(wait(first.load()).unwrap(), State::default());
    wait(first.save(&state(3))).unwrap();
    assert_eq!(peek(&memory), 3);
    wait(first.release()).unwrap();
    let mut next = store(&memory, 1);
    assert_eq!(wait(next.load()).unwrap(), state(3), "nobody need wait");
    wait(first.release()).unwrap();
    assert!(memory.text().contains("\"nonce\""), "what is not held is not let go");
    assert_eq!(wait(first.save(&state(4))).unwrap_err().kind, ErrorKind::Permanent);
}

#[test]
fn a_save_before_a_load_is_refused() {
    let error = wait(store(&Memory::default(), 0).save(&State::default())).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Permanent);
}

#[test]
fn of_two_one_holds_it_and_the_other_is_told_who() {
    let memory = Memory::default();
    let _holder = holding(&memory, 0, 1);
    let error = wait(store(&memory, 60).load()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    let says = format!("state object memory://state.json is held by pid {} on host ", std::process::id());
    assert!(error.text.starts_with(&says), "{error}");
    assert!(error.text.contains(" since 2026-11-21T12:00:00Z (yarn-autoscaler "), "{error}");
    assert!(error.text.ends_with("renewed 60 s ago; it may be taken once it has not been renewed for 90 s"), "{error}");
    assert_eq!(peek(&memory), 1, "looking is allowed");
}

#[test]
fn a_lease_that_is_not_renewed_is_taken_and_the_old_holder_ends() {
    let memory = Memory::default();
    let mut old = holding(&memory, 0, 1);
    assert_eq!(wait(store(&memory, 89).load()).unwrap_err().kind, ErrorKind::Conflict);
    let mut new = store(&memory, 90);
    assert_eq!(wait(new.load()).unwrap(), state(1));
    let error = wait(old.save(&state(2))).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.text.contains("was taken from us by pid "), "{error}");
    assert_eq!(wait(old.keep(&state(1), at(91))).unwrap_err().kind, ErrorKind::Conflict);
    wait(new.save(&state(5))).unwrap();
    assert_eq!(peek(&memory), 5);
    wait(old.release()).unwrap();
    assert_eq!(wait(store(&memory, 92).load()).unwrap_err().kind, ErrorKind::Conflict, "the new one holds it still");
}

#[test]
fn keeping_renews_and_no_more_often_than_needed() {
    let memory = Memory::default();
    let mut holder = holding(&memory, 0, 1);
    let writes = *memory.writes.borrow();
    for now in 1..15 {
        wait(holder.keep(&state(1), at(now))).unwrap();
    }
    assert_eq!(*memory.writes.borrow(), writes);
    wait(holder.keep(&state(1), at(15))).unwrap();
    assert_eq!(*memory.writes.borrow(), writes + 1);
    assert!(memory.text().contains("\"renewedAt\": \"2026-11-21T12:00:15Z\""), "{}", memory.text());
    assert_eq!(wait(store(&memory, 104).load()).unwrap_err().kind, ErrorKind::Conflict);
    memory.fail(Fault::Refused);
    assert_eq!(wait(holder.keep(&state(1), at(30))).unwrap_err().kind, ErrorKind::Transient);
    wait(holder.keep(&state(1), at(31))).unwrap();
    assert!(memory.text().contains("12:00:31Z"), "what failed is tried again at the next look");
    wait(holder.keep(&state(1), at(-3600))).unwrap();
    assert!(memory.text().contains("11:00:00Z"), "a clock that was set back shows");
}

#[test]
fn a_clock_that_is_ahead_does_not_give_the_state_away() {
    let memory = Memory::default();
    let _ahead = holding(&memory, 7200, 1);
    let error = wait(store(&memory, 0).load()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Conflict);
    assert!(error.text.contains("renewed 7200 s ahead of our clock: one of the two clocks is wrong"), "{error}");
}

#[test]
fn a_holder_of_this_machine_that_has_ended_is_not_waited_for() {
    let memory = Memory::default();
    let _holder = holding(&memory, 0, 1);
    let mut child = Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    let text = memory.text();
    let ended = text.replace(&format!("\"pid\": {}", std::process::id()), &format!("\"pid\": {}", child.id()));
    assert_ne!(text, ended);
    let elsewhere = ended.replace("pid:[", "pid:[1");
    memory.set(&elsewhere);
    assert_eq!(wait(store(&memory, 1).load()).unwrap_err().kind, ErrorKind::Conflict, "its pid says nothing here");
    memory.set(&ended);
    assert_eq!(wait(store(&memory, 1).load()).unwrap(), state(1));
}

#[test]
fn a_lost_answer_is_no_lost_state() {
    let memory = Memory::default();
    let mut holder = holding(&memory, 0, 1);
    memory.fail(Fault::DoneTwice);
    wait(holder.save(&state(2))).unwrap();
    assert_eq!(peek(&memory), 2);
    memory.fail(Fault::AnswerLost);
    assert_eq!(wait(holder.save(&state(3))).unwrap_err().kind, ErrorKind::Transient);
    assert_eq!(peek(&memory), 3, "it was done");
    wait(holder.save(&state(4))).unwrap();
    assert_eq!(peek(&memory), 4);
    memory.fail(Fault::AnswerLost);
    assert_eq!(wait(holder.save(&state(5))).unwrap_err().kind, ErrorKind::Transient);
    wait(holder.release()).unwrap();
    memory.fail(Fault::DoneTwice);
    assert_eq!(wait(store(&memory, 1).load()).unwrap(), state(5));
}

#[test]
fn a_state_that_was_deleted_under_us_is_not_written_again() {
    let memory = Memory::default();
    let mut holder = holding(&memory, 0, 1);
    memory.objects.borrow_mut().clear();
    let error = wait(holder.save(&state(2))).unwrap_err();
    assert_eq!(
        (error.kind, &*error.text),
        (ErrorKind::Conflict, "state object memory://state.json was deleted under us")
    );
}

#[test]
fn documents_that_are_not_ours_are_refused_and_left() {
    let memory = Memory::default();
    let mut holder = holding(&memory, 0, 1);
    wait(holder.release()).unwrap();
    let good = memory.text();
    let table = [
        (r#"{"epoch":"7","state":{"version":3,"plans":[]}}"#.to_owned(), "was written by a newer yarn-autoscaler"),
        (String::new(), "EOF while parsing"),
        (good[..good.len() / 2].to_owned(), "EOF while parsing"),
        (good.replace("\"lease\": null,", ""), "missing field `lease`"),
        (good.replace("\"lease\": null,", "\"lease\": null, \"more\": 1,"), "unknown field `more`"),
        (good.replace("\"version\": 2", "\"version\": 0"), "state version 0; this binary knows 1 to 2"),
    ];
    for (text, says) in table {
        memory.set(&text);
        let error = wait(store(&memory, 1).load()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Permanent);
        assert!(error.text.starts_with("state object memory://state.json"), "{error}");
        assert!(error.text.contains(says), "{text}: {error}");
        assert_eq!(memory.text(), text, "a document that is refused is left as it is");
    }
}

/// Eight at once: one gets it, seven are told so, and it says who it is.
pub fn one_of_eight<O: Objects>(open: impl Fn() -> O + Sync) {
    let (start, end, winners) = (Barrier::new(8), Barrier::new(8), AtomicU32::new(0));
    thread::scope(|scope| {
        for number in 0..8 {
            let (open, start, end, winners) = (&open, &start, &end, &winners);
            scope.spawn(move || {
                wait(async {
                    let mut store = ObjectStateStore::new(open(), NAME, at(0));
                    start.wait();
                    let loaded = store.load().await;
                    end.wait();
                    match loaded {
                        Ok(mut state) => {
                            winners.fetch_add(1, Ordering::SeqCst);
                            for _ in 0..20 {
                                state.provider_failures += 1;
                                store.save(&state).await.unwrap();
                            }
                        }
                        Err(error) => assert_eq!(error.kind, ErrorKind::Conflict, "{number}: {error}"),
                    }
                });
            });
        }
    });
    assert_eq!(winners.into_inner(), 1);
    assert_eq!(wait(async { ObjectStateStore::peek(&open(), NAME).await }).unwrap().provider_failures, 20);
}

#[test]
fn of_eight_at_a_folder_one_holds_the_state() {
    let (folder, _) = folder();
    let path: &Path = folder.path();
    one_of_eight(|| FolderObjects::open(path).unwrap());
    assert_eq!(fs::read_dir(path).unwrap().count(), 2, "the state and the lock");
}

#[test]
fn of_eight_at_a_bucket_one_holds_the_state() {
    let fake = FakeGoogle::start(FakeOptions::default());
    one_of_eight(|| opened(&fake));
}

#[test]
fn a_bucket_that_loses_answers_loses_no_state() {
    let fake = FakeGoogle::start(FakeOptions::default());
    wait(async {
        let mut holder = ObjectStateStore::new(bucket(&fake).await, NAME, at(0));
        holder.load().await.unwrap();
        for (figure, once) in [
            (1, Misbehaviour::DroppedAfter),
            (2, Misbehaviour::UnavailableAfter),
            (3, Misbehaviour::PreconditionFailed),
            (4, Misbehaviour::Truncated),
        ] {
            fake.misbehave(Rule::once("POST", "upload", once));
            holder.save(&state(figure)).await.unwrap();
            let stored = ObjectStateStore::peek(&bucket(&fake).await, NAME).await.unwrap();
            assert_eq!(stored.provider_failures, figure);
        }
        let other = ObjectStateStore::new(bucket(&fake).await, NAME, at(60)).load().await.unwrap_err();
        assert!(other.text.starts_with("state object gs://b/state.json is held by pid "), "{other}");
        holder.release().await.unwrap();
        ObjectStateStore::new(bucket(&fake).await, NAME, at(61)).load().await.unwrap();
    });
}

/// What somebody does.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// This one starts anew.
    Load(usize),
    Save(usize),
    Keep(usize),
    Release(usize),
    /// Time passes.
    Wait(i64),
    /// The next write goes wrong.
    Fail(Fault),
}

fn step() -> impl Strategy<Value = Step> {
    let fault = prop_oneof![Just(Fault::Refused), Just(Fault::AnswerLost), Just(Fault::DoneTwice)];
    prop_oneof![
        2 => (0..3_usize).prop_map(Step::Load),
        6 => (0..3_usize).prop_map(Step::Save),
        2 => (0..3_usize).prop_map(Step::Keep),
        1 => (0..3_usize).prop_map(Step::Release),
        2 => prop_oneof![1..20_i64, 80..200_i64].prop_map(Step::Wait),
        2 => fault.prop_map(Step::Fail),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Three controllers, in any order, with any of their writes going wrong: a save that is acknowledged is what the next
    /// one loads, and whoever was overtaken saves nothing any more.
    #[test]
    fn no_acknowledged_save_is_lost(steps in proptest::collection::vec(step(), 1..60)) {
        let memory = Memory::default();
        let mut stores: [Option<(ObjectStateStore<Memory>, u32)>; 3] = [None, None, None];
        // What may be stored: more than one figure after a write without an answer.
        let mut possible = BTreeSet::from([0]);
        // Who loaded last.
        let (mut last, mut now, mut figure) = (None, 0, 0);
        for step in steps {
            match step {
                Step::Wait(seconds) => now += seconds,
                Step::Fail(fault) => memory.fail(fault),
                Step::Load(who) => {
                    let mut opened = store(&memory, now);
                    // A start whose answer is lost may have taken hold: the figure stays, the holder is somebody new.
                    match wait(opened.load()) {
                        Ok(state) => {
                            prop_assert!(possible.contains(&state.provider_failures));
                            possible = BTreeSet::from([state.provider_failures]);
                            stores[who] = Some((opened, state.provider_failures));
                            last = Some(who);
                        }
                        Err(error) if error.kind == ErrorKind::Transient => last = None,
                        Err(error) => prop_assert_eq!(error.kind, ErrorKind::Conflict),
                    }
                }
                Step::Save(who) => {
                    let Some((store, saved)) = &mut stores[who] else { continue };
                    figure += 1;
                    match wait(store.save(&state(figure))) {
                        Ok(()) => {
                            prop_assert!(last.is_none_or(|last| last == who), "{} saved, {:?} holds it", who, last);
                            (*saved, possible) = (figure, BTreeSet::from([figure]));
                        }
                        Err(error) if error.kind == ErrorKind::Transient => drop(possible.insert(figure)),
                        Err(error) => {
                            prop_assert!(matches!(error.kind, ErrorKind::Conflict | ErrorKind::Permanent));
                            stores[who] = None;
                        }
                    }
                }
                Step::Keep(who) => {
                    let Some((store, saved)) = &mut stores[who] else { continue };
                    match wait(store.keep(&state(*saved), at(now))) {
                        Err(error) if error.kind != ErrorKind::Transient => stores[who] = None,
                        _ => drop(possible.insert(*saved)),
                    }
                }
                Step::Release(who) => {
                    if let Some((mut store, _)) = stores[who].take() {
                        drop(wait(store.release()));
                    }
                }
            }
            if !memory.objects.borrow().is_empty() {
                prop_assert!(possible.contains(&peek(&memory)));
            }
        }
    }
}
