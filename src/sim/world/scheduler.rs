//! Who is served next: the CapacityScheduler's order over queues, applications and priorities. Knows no nodes but the
//! room that it is asked for.

use std::collections::BTreeSet;

use super::events::AppId;
use crate::{
    model::Resources,
    sim::scenario::{Queue, QueueOrdering},
};

/// An ask in a queue: the place in the order, then the application, its priority (the smaller, the earlier), and which of
/// its asks.
pub(super) type Entry = (u64, AppId, i32, u32);

/// What waits, by queue.
#[derive(Debug)]
pub(super) struct Scheduler {
    pub(super) queues: Vec<QueueState>,
    /// Something was not served for a limit of its queue: what ends elsewhere may make room for it.
    pub(super) limited: bool,
    /// Entries in all classes.
    waiting: usize,
}

/// A leaf queue.
#[derive(Debug)]
pub(super) struct QueueState {
    pub(super) rules: Queue,
    pub(super) used: Resources,
    /// What the masters of activated applications hold or ask for.
    pub(super) masters: Resources,
    pub(super) active: u32,
    classes: Vec<Class>,
    /// Applications that have not been activated: their masters would be too many.
    pub(super) inactive: BTreeSet<AppId>,
    /// Gangs that are granted as a whole.
    pub(super) atomic: BTreeSet<AppId>,
}

/// Asks of one size.
#[derive(Debug)]
struct Class {
    size: Resources,
    waiting: BTreeSet<Entry>,
}

/// An ask that may be served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chosen {
    pub(super) app: AppId,
    pub(super) ask: usize,
    pub(super) size: Resources,
}

impl Scheduler {
    pub(super) fn new(queues: &[Queue]) -> Self {
        let queues = queues.iter().map(|rules| QueueState {
            rules: rules.clone(),
            used: Resources::default(),
            masters: Resources::default(),
            active: 0,
            classes: Vec::new(),
            inactive: BTreeSet::new(),
            atomic: BTreeSet::new(),
        });
        Self { queues: queues.collect(), limited: false, waiting: 0 }
    }

    /// Whether anything waits that is granted container by container.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether a gang waits that is granted as a whole.
    pub(super) fn has_atomic(&self) -> bool {
        self.queues.iter().any(|queue| !queue.atomic.is_empty())
    }

    /// Whether anything of one of the waiting sizes fits into the room.
    pub(super) fn wants(&self, room: Resources) -> bool {
        self.queues
            .iter()
            .any(|queue| queue.classes.iter().any(|class| !class.waiting.is_empty() && class.size.fits(room)))
    }

    pub(super) fn add(&mut self, queue: usize, size: Resources, entry: Entry) {
        let classes = &mut self.queues[queue].classes;
        let index = classes.iter().position(|class| class.size == size).unwrap_or_else(|| {
            classes.push(Class { size, waiting: BTreeSet::new() });
            classes.len() - 1
        });
        if classes[index].waiting.insert(entry) {
            self.waiting += 1;
        }
    }

    pub(super) fn remove(&mut self, queue: usize, size: Resources, entry: Entry) {
        let class = self.queues[queue].classes.iter_mut().find(|class| class.size == size);
        if class.is_some_and(|class| class.waiting.remove(&entry)) {
            self.waiting -= 1;
        }
    }

    /// The place of an application in its queue's order.
    pub(super) fn order(&self, queue: usize, used: Resources) -> u64 {
        match self.queues[queue].rules.ordering {
            QueueOrdering::Fifo => 0,
            QueueOrdering::Fair => used.memory_mb,
        }
    }

    /// What is served next of what fits into `room`: of the queue that has least of its share, its first application.
    /// `passed` says which sizes are out of the question for now.
    pub(super) fn choose(
        &mut self,
        room: Resources,
        cluster: Resources,
        passed: impl Fn(Resources) -> bool,
    ) -> Option<Chosen> {
        if self.waiting == 0 {
            return None;
        }
        if let [queue] = &mut self.queues[..] {
            return queue.first_that_fits(room, cluster, &passed, &mut self.limited);
        }
        let mut order: Vec<_> = (0..self.queues.len()).collect();
        let ratio = |queue: &QueueState| share(queue.used, cluster) / queue.rules.capacity.max(f64::MIN_POSITIVE);
        order.sort_by(|a, b| ratio(&self.queues[*a]).total_cmp(&ratio(&self.queues[*b])));
        order
            .into_iter()
            .find_map(|index| self.queues[index].first_that_fits(room, cluster, &passed, &mut self.limited))
    }
}

impl QueueState {
    fn first_that_fits(
        &self,
        room: Resources,
        cluster: Resources,
        passed: &impl Fn(Resources) -> bool,
        limited: &mut bool,
    ) -> Option<Chosen> {
        let mut best: Option<(&Entry, Resources)> = None;
        for class in &self.classes {
            if !class.size.fits(room) || passed(class.size) {
                continue;
            }
            let Some(first) = class.waiting.first() else { continue };
            if !self.may_hold(class.size, cluster) {
                *limited = true;
            } else if best.is_none_or(|(entry, _)| first < entry) {
                best = Some((first, class.size));
            }
        }
        best.map(|(&(_, app, _, ask), size)| Chosen { app, ask: ask as usize, size })
    }

    /// What waits, with its size.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Resources, Entry)> {
        self.classes.iter().flat_map(|class| class.waiting.iter().map(|entry| (class.size, *entry)))
    }

    /// Whether it may hold so much more of the cluster.
    pub(super) fn may_hold(&self, more: Resources, cluster: Resources) -> bool {
        let limit = self.rules.max_capacity;
        limit >= 1.0 || share(self.used + more, cluster) <= limit
    }

    /// Whether another application may be activated, whose master is so large. One always may.
    pub(super) fn may_activate(&self, master: Resources, cluster: Resources) -> bool {
        let limit = self.rules.max_capacity * self.rules.max_master_share;
        self.active == 0 || limit >= 1.0 || share(self.masters + master, cluster) <= limit
    }
}

/// The dominant share of the cluster: the largest over the resources (DominantResourceCalculator).
fn share(used: Resources, cluster: Resources) -> f64 {
    let part = |used: u64, all: u64| if used == 0 { 0.0 } else { used as f64 / all.max(1) as f64 };
    part(used.memory_mb, cluster.memory_mb).max(part(used.vcores, cluster.vcores)).max(part(used.gpus, cluster.gpus))
}
