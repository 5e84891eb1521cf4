//! Applications and containers as they are. Data and its plain arithmetic.

use std::sync::Arc;

use super::events::{AppId, ContainerId, SlotId};
use crate::{
    model::{Application, Resources},
    sim::Ms,
};

/// An application that has been submitted.
#[derive(Debug)]
pub(super) struct App {
    pub(super) queue: usize,
    pub(super) phase: Phase,
    /// Its queue has let its master ask.
    pub(super) is_active: bool,
    /// Counts its attempts: an event of an earlier one is void.
    pub(super) generation: u32,
    pub(super) master: Option<ContainerId>,
    /// Its containers, the master's apart.
    pub(super) held: Vec<ContainerId>,
    /// What it asks for; entries of no container are left in place until it asks anew.
    pub(super) asks: Vec<AppAsk>,
    /// What all its containers hold.
    pub(super) used: Resources,
    /// Nodes on which it has had containers.
    pub(super) touched: Vec<SlotId>,
    pub(super) work: Working,
    /// Work that has counted so far, by group (see `losses`), in units times ms: lost where an attempt fails.
    pub(super) earned: [u128; 2],
    /// When it began to work; of a gang its last beginning.
    pub(super) started_at: Option<Ms>,
    pub(super) ended_at: Option<Ms>,
    pub(super) succeeded: bool,
    pub(super) restarts: u32,
    pub(super) containers_lost: u32,
    /// As it was shown last; `None` once it has changed.
    pub(super) view: Option<Arc<Application>>,
}

impl App {
    /// Containers that it has or asks for, its master apart.
    pub(super) fn held_and_asked(&self) -> u32 {
        let asked: u32 = self.asks.iter().filter(|ask| !ask.is_master).map(|ask| ask.containers).sum();
        u32::try_from(self.held.len()).unwrap_or(u32::MAX).saturating_add(asked)
    }
}

/// How far an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It waits for its master's container.
    Accepted,
    /// The master's container is there and starts.
    MasterStarts,
    /// It asks and works.
    Running,
    /// It has ended.
    Ended,
}

/// Containers of one size that an application waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppAsk {
    pub(super) resources: Resources,
    pub(super) priority: i32,
    pub(super) containers: u32,
    /// The master's own.
    pub(super) is_master: bool,
}

/// How far an application's work is.
#[derive(Clone, Debug)]
pub(super) enum Working {
    /// A gang: work done before the last loss, kept by a checkpoint.
    Gang { saved_ms: Ms },
    /// Stages: for each one, tasks that ask or run, and tasks that are done.
    Stages(Vec<StageProgress>),
    /// Spark.
    Executors(ExecutorProgress),
}

/// How far a stage is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StageProgress {
    pub(super) asked: bool,
    pub(super) done: u32,
}

/// How far a Spark application is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ExecutorProgress {
    /// Tasks that nobody works on.
    pub(super) waiting: u32,
    pub(super) done: u32,
    /// How many executors the next ramp asks for.
    pub(super) next_ramp: u32,
    /// A ramp is on its way.
    pub(super) ramping: bool,
}

/// A container that holds its resources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Container {
    pub(super) app: AppId,
    pub(super) slot: SlotId,
    pub(super) resources: Resources,
    pub(super) is_master: bool,
    /// Stages: which one it works on. Gangs: of no meaning.
    pub(super) stage: u32,
    pub(super) granted_at: Ms,
    /// Its machine registered with all its GPUs: what it does is booked.
    pub(super) counts: bool,
    /// When its work began; `None`: it cannot work yet.
    pub(super) works_since: Option<Ms>,
    /// Executors: since when it has nothing to do.
    pub(super) idle_since: Ms,
    /// When its machine died under it.
    pub(super) stopped_at: Option<Ms>,
    /// When its machine was gone, YARN not knowing: it is paid for until then.
    pub(super) paid_until: Option<Ms>,
    /// Tasks that it works on.
    pub(super) tasks: u32,
    /// Its work that counted, and that was thrown away, before the work it does now, in ms.
    pub(super) useful_ms: Ms,
    pub(super) lost_ms: Ms,
}

/// All containers, by place; freed places are used again.
#[derive(Debug, Default)]
pub(super) struct Containers {
    places: Vec<(u32, Option<Container>)>,
    free: Vec<u32>,
}

impl Containers {
    pub(super) fn add(&mut self, container: Container) -> ContainerId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        });
        let place = &mut self.places[index as usize];
        place.1 = Some(container);
        ContainerId { index, generation: place.0 }
    }

    /// `None`: it has ended.
    pub(super) fn get(&self, id: ContainerId) -> Option<&Container> {
        let (generation, container) = self.places.get(id.index as usize)?;
        container.as_ref().filter(|_| *generation == id.generation)
    }

    pub(super) fn get_mut(&mut self, id: ContainerId) -> Option<&mut Container> {
        let (generation, container) = self.places.get_mut(id.index as usize)?;
        container.as_mut().filter(|_| *generation == id.generation)
    }

    /// All that there are.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ContainerId, &Container)> {
        (0..).zip(&self.places).filter_map(|(index, place)| {
            let (generation, container) = place;
            Some((ContainerId { index, generation: *generation }, container.as_ref()?))
        })
    }

    pub(super) fn remove(&mut self, id: ContainerId) -> Option<Container> {
        let (generation, container) = self.places.get_mut(id.index as usize)?;
        if *generation != id.generation {
            return None;
        }
        let container = container.take()?;
        *generation += 1;
        self.free.push(id.index);
        Some(container)
    }
}
