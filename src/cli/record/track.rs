//! One application from the first look at its containers to its end.
//! Must not know where looks come from, nor what becomes of the rows.

use std::collections::BTreeMap;

use super::guess::{float, whole};
use crate::{
    model::{Ask, Resources},
    yarn::applications::{AppRecord, ContainerRecord, Launch},
};

/// Containers are of one group where they were asked with the same priority and have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    /// YARN's priority.
    pub priority: i32,
    memory_mb: u64,
    vcores: u64,
    gpus: u64,
}

impl GroupKey {
    fn new(priority: i32, size: Resources) -> Self {
        let Resources { memory_mb, vcores, gpus } = size;
        Self { priority, memory_mb, vcores, gpus }
    }

    /// The group that an ask is of.
    pub fn of(ask: &Ask) -> Self {
        Self::new(ask.priority, ask.resources)
    }

    /// The size of its containers.
    pub fn size(self) -> Resources {
        Resources::new(self.memory_mb, self.vcores, self.gpus)
    }
}

/// The containers of an application that live, and which of them is the master.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The master's container id.
    pub master: String,
    /// All of them.
    pub containers: Vec<ContainerRecord>,
}

/// What is known of an application.
#[derive(Clone, Debug)]
pub struct Track {
    /// As it was told last.
    pub app: AppRecord,
    /// Its (last) master.
    pub master: Option<ContainerRecord>,
    /// The gang when it was complete, and most so: members that were there at two looks in a row.
    twice: Option<Complete>,
    /// The same at one look.
    once: Option<Complete>,
    /// The most that a gang had and asked for at once.
    pub peak: BTreeMap<GroupKey, u64>,
    /// For how long it asked and had nothing but its master, in ms.
    pub waited_ms: i64,
    /// Looks in a row at which it was not there.
    pub absent: u32,
    groups: BTreeMap<GroupKey, Group>,
    live: BTreeMap<String, ContainerRecord>,
    /// Those that the last look lacked, and when that was between. A ResourceManager that has just restarted may not
    /// know of all: they may come back.
    gone: BTreeMap<String, (ContainerRecord, i64, i64)>,
    /// Whether it asked for anything at the last look.
    asked: bool,
    /// Whether it did, and had nothing but its master.
    is_hungry: bool,
    heard_ms: i64,
}

/// A gang of which all members were there.
#[derive(Clone, Debug)]
pub struct Complete {
    /// When the last of them came.
    pub since_ms: i64,
    /// How many of each group.
    pub sizes: BTreeMap<GroupKey, u64>,
}

impl Complete {
    /// Takes these members for the gang if they are more than were there before.
    fn improve<'a>(best: &mut Option<Self>, members: impl Iterator<Item = &'a ContainerRecord> + Clone) {
        let sizes = sizes(members.clone());
        if total(&sizes) > best.as_ref().map_or(0, |best| total(&best.sizes)) {
            let since_ms = members.map(|one| one.started_ms).max().unwrap_or(0);
            *best = Some(Self { since_ms, sizes });
        }
    }
}

fn sizes<'a>(containers: impl Iterator<Item = &'a ContainerRecord>) -> BTreeMap<GroupKey, u64> {
    let mut sizes = BTreeMap::new();
    for one in containers {
        *sizes.entry(GroupKey::new(one.priority, one.resources)).or_insert(0) += 1;
    }
    sizes
}

fn total(sizes: &BTreeMap<GroupKey, u64>) -> u64 {
    sizes.values().sum()
}

/// Containers that have ended.
#[derive(Clone, Copy, Debug)]
struct Group {
    first_ms: i64,
    ended: u64,
    worked_ms: u64,
}

/// Tasks of one group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tasks {
    /// The group.
    pub key: GroupKey,
    /// How many.
    pub containers: u64,
    /// How long one worked, on average.
    pub duration_s: f64,
}

fn between_ms(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

/// Seconds between two instants in ms; none where the second is not the later one.
pub fn seconds(from_ms: i64, to_ms: i64) -> f64 {
    float(between_ms(from_ms, to_ms)) / 1000.0
}

impl Track {
    /// An application of which nothing was seen yet.
    pub fn new(app: AppRecord) -> Self {
        Self {
            heard_ms: app.heard_ms,
            app,
            master: None,
            twice: None,
            once: None,
            asked: true,
            is_hungry: false,
            peak: BTreeMap::new(),
            waited_ms: 0,
            absent: 0,
            groups: BTreeMap::new(),
            live: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    /// A look at it while it is alive.
    pub fn look(&mut self, app: AppRecord, seen: Option<Seen>) {
        let before_ms = self.heard_ms;
        self.heard_ms = before_ms.max(app.heard_ms);
        (self.app, self.absent) = (app, 0);
        let Some(seen) = seen else { return };
        let (masters, others): (Vec<_>, Vec<_>) = seen.containers.into_iter().partition(|one| one.id == seen.master);
        let others: BTreeMap<_, _> = others.into_iter().map(|one| (one.id.clone(), one)).collect();
        self.gone.retain(|id, _| !others.contains_key(id));
        self.settle();
        let heard_ms = self.heard_ms;
        let lacking = self.live.iter().filter(|(id, _)| !others.contains_key(*id));
        self.gone = lacking.map(|(id, one)| (id.clone(), (one.clone(), before_ms, heard_ms))).collect();
        self.master = masters.into_iter().next().or(self.master.take());
        let before = std::mem::replace(&mut self.live, others);
        self.note_gang(&before);
        if self.is_hungry {
            let first_ms = self.live.values().map(|one| one.started_ms).min().unwrap_or(self.heard_ms);
            self.waited_ms += (first_ms.min(self.heard_ms) - before_ms).max(0);
        }
        self.is_hungry = self.live.is_empty() && self.asked && self.master.is_some();
    }

    /// A gang that asks for nothing and has members is complete. YARN may hand out one container more than was asked
    /// for, which goes back at once: so what counts is who was there at two looks in a row.
    ///
    /// Asks are told a moment before the containers: one that came in between would count twice, and is left to the
    /// next look. Asks flicker upwards, too, which is why they count only for a gang that never was complete.
    fn note_gang(&mut self, before: &BTreeMap<String, ContainerRecord>) {
        let heard_ms = self.heard_ms;
        let there = || self.live.values().filter(|one| one.started_ms <= heard_ms);
        let asked = std::mem::replace(&mut self.asked, !self.app.asks.is_empty());
        if self.app.asks.is_empty() {
            Complete::improve(&mut self.once, there());
            if !asked {
                Complete::improve(&mut self.twice, there().filter(|one| before.contains_key(&one.id)));
            }
        }
        let mut wanted = sizes(there());
        for ask in &self.app.asks {
            *wanted.entry(GroupKey::of(ask)).or_insert(0) += u64::from(ask.containers);
        }
        if self.master.is_some() && total(&wanted) > total(&self.peak) {
            self.peak = wanted;
        }
    }

    /// The gang that was complete, and whether that is sure: what one look saw more than two looks in a row is a
    /// container that was given back, if it is not more than one of a group; else members had ended by the second look.
    pub fn gang(&self) -> Option<(&Complete, bool)> {
        let once = self.once.as_ref()?;
        let left = |twice: &Complete, key: &GroupKey| twice.sizes.get(key).copied();
        let is_all = |twice: &&Complete| {
            once.sizes.iter().all(|(key, count)| left(twice, key).is_some_and(|left| left + 1 >= *count))
        };
        Some(self.twice.as_ref().filter(is_all).map_or((once, false), |twice| (twice, true)))
    }

    /// Those that did not come back have ended.
    fn settle(&mut self) {
        for (one, before_ms, after_ms) in std::mem::take(&mut self.gone).into_values() {
            self.ended(&one, before_ms, after_ms);
        }
    }

    /// A container that was there at one look and not at the next one ended halfway between them.
    fn ended(&mut self, one: &ContainerRecord, before_ms: i64, after_ms: i64) {
        let last_ms = before_ms.max(one.started_ms);
        let end_ms = last_ms + after_ms.saturating_sub(last_ms).max(0) / 2;
        self.worked(one, end_ms);
    }

    fn worked(&mut self, one: &ContainerRecord, end_ms: i64) {
        let none = Group { first_ms: one.started_ms, ended: 0, worked_ms: 0 };
        let group = self.groups.entry(GroupKey::new(one.priority, one.resources)).or_insert(none);
        group.first_ms = group.first_ms.min(one.started_ms);
        group.ended += 1;
        group.worked_ms += between_ms(one.started_ms, end_ms);
    }

    /// It is over, as `app` tells.
    pub fn close(&mut self, app: AppRecord) {
        self.settle();
        let end_ms = app.finished_ms.unwrap_or(self.heard_ms);
        for one in std::mem::take(&mut self.live).into_values() {
            self.ended(&one, self.heard_ms, end_ms);
        }
        (self.app, self.heard_ms) = (app, self.heard_ms.max(end_ms));
    }

    /// Nobody looks any more: what lives has worked until now.
    pub fn cut(&mut self) {
        self.settle();
        for one in std::mem::take(&mut self.live).into_values() {
            self.worked(&one, self.heard_ms);
        }
    }

    /// When it ended, or was last heard of.
    pub fn end_ms(&self) -> i64 {
        self.app.finished_ms.unwrap_or(self.heard_ms)
    }

    /// From the launch of its first master (or, where that is not told, its submission) to its end; `None` where it was
    /// never launched.
    pub fn run_s(&self) -> Option<f64> {
        let from_ms = match self.app.launched {
            Launch::At(at) => at,
            Launch::NotTold => self.app.submitted_ms,
            // Told as not launched, and yet its master was seen.
            Launch::Never => self.master.as_ref()?.started_ms,
        };
        Some(seconds(from_ms, self.end_ms()))
    }

    /// Its tasks, after [`Self::close`] or [`Self::cut`]; the group that started first comes first.
    pub fn tasks(&self) -> Vec<Tasks> {
        let tasks = |(key, group): (&GroupKey, &Group)| Tasks {
            key: *key,
            containers: group.ended,
            duration_s: float(group.worked_ms) / 1000.0 / float(group.ended.max(1)),
        };
        let mut groups: Vec<_> = self.groups.iter().collect();
        groups.sort_by_key(|(key, group)| (group.first_ms, **key));
        groups.into_iter().map(tasks).collect()
    }
}

/// As many more tasks, in each group, as it takes to have used what was used in all: those that came and went between
/// two looks were not seen.
pub fn scaled(tasks: &mut [Tasks], used_mb_s: f64) -> bool {
    /// What the figures differ by where all was seen.
    const ALLOWED: f64 = 1.1;
    let seen: f64 =
        tasks.iter().map(|one| float(one.containers) * one.duration_s * float(one.key.size().memory_mb)).sum();
    let factor = if seen > 0.0 { used_mb_s / seen } else { 1.0 };
    if factor > ALLOWED {
        tasks.iter_mut().for_each(|one| one.containers = whole(float(one.containers) * factor));
    }
    factor > ALLOWED
}
