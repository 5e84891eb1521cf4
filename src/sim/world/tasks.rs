//! Applications of independent tasks: MapReduce's stages, and Spark with dynamic allocation.

use super::{
    AppId, ContainerId, Event, World,
    applications::{Container, Working},
    losses::worked,
};
use crate::{
    model::Resources,
    sim::{
        Ms,
        workload::{Executors, Stage, Work},
    },
};

/// Spark asks for more executors so often while tasks wait (`sustainedSchedulerBacklogTimeout`).
const RAMP_MS: Ms = 1_000;

impl World {
    fn stages(&self, id: AppId) -> &[Stage] {
        match &self.job(id).work {
            Work::Stages(stages) => stages,
            _ => &[],
        }
    }

    pub(super) fn begin_stages(&mut self, id: AppId) {
        self.withdraw(id);
        self.next_stages(id);
        self.end_if_done(id);
    }

    /// Asks for the stages whose turn it is.
    fn next_stages(&mut self, id: AppId) {
        for index in 0..self.stages(id).len() {
            let Working::Stages(progress) = &self.apps[id as usize].work else { return };
            let before = index.checked_sub(1).map(|before| (self.stages(id)[before].tasks, progress[before].done));
            let stage = &self.stages(id)[index];
            let due = before.is_none_or(|(tasks, done)| f64::from(done) >= f64::from(tasks) * stage.starts_after);
            if progress[index].asked || !due {
                continue;
            }
            let (tasks, resources) = (stage.tasks, stage.resources);
            if let Working::Stages(progress) = &mut self.app(id).work {
                progress[index].asked = true;
            }
            self.ask_more(id, i32::try_from(index).unwrap_or(i32::MAX), resources, tasks);
            if self.apps[id as usize].ended_at.is_some() {
                return;
            }
        }
    }

    /// Whether all of the stages before have been done: then a container works at once.
    fn stage_may_work(&self, id: AppId, stage: u32) -> bool {
        let Working::Stages(progress) = &self.apps[id as usize].work else { return false };
        let mut before = progress.iter().zip(self.stages(id)).take(stage as usize);
        before.all(|(progress, stage)| progress.done >= stage.tasks)
    }

    pub(super) fn stage_granted(&mut self, id: AppId, container: ContainerId, starts_at: Ms) {
        self.starts(id, starts_at);
        let stage = self.containers.get(container).map_or(0, |container| container.stage);
        if self.stage_may_work(id, stage) {
            self.task_begins(id, container, starts_at);
        }
    }

    fn task_begins(&mut self, id: AppId, container: ContainerId, at: Ms) {
        let Some(stage) = self.containers.get(container).map(|container| container.stage as usize) else { return };
        let Some(task_ms) = self.stages(id).get(stage).map(|stage| stage.task_ms) else { return };
        if let Some(container) = self.containers.get_mut(container) {
            (container.works_since, container.tasks) = (Some(at), 1);
        }
        self.events.push(at + task_ms, Event::TasksEnd(container));
    }

    /// The tasks of a container are done.
    pub(super) fn tasks_end(&mut self, id: ContainerId) {
        let Some(container) = self.containers.get(id).copied() else { return };
        // A dead machine's tasks never end; its node is declared lost later.
        if container.stopped_at.is_some() {
            return;
        }
        let now = self.now;
        if let Some(container) = self.containers.get_mut(id) {
            container.useful_ms += worked(container, now);
            container.works_since = None;
            container.tasks = 0;
        }
        match &mut self.app(container.app).work {
            Working::Stages(progress) => {
                progress[container.stage as usize].done += 1;
                self.let_go(container.app, id);
                self.stage_goes_on(container.app, container.stage);
            }
            Working::Executors(progress) => {
                progress.done += container.tasks;
                self.executor_goes_on(container.app, id, now);
                self.ask_less(container.app);
            }
            Working::Gang { .. } => {}
        }
    }

    /// After a task: stages whose turn it is ask; after the last of its stage, reducers that waited for it begin.
    fn stage_goes_on(&mut self, id: AppId, stage: u32) {
        self.next_stages(id);
        if !self.stage_may_work(id, stage + 1) {
            return;
        }
        for container in self.apps[id as usize].held.clone() {
            let waits = self.containers.get(container).filter(|container| container.works_since.is_none());
            let Some(stage) = waits.map(|container| container.stage) else { continue };
            if self.stage_may_work(id, stage) {
                self.task_begins(id, container, self.now);
            }
        }
        self.end_if_done(id);
    }

    fn end_if_done(&mut self, id: AppId) {
        let app = &self.apps[id as usize];
        let is_done = match &app.work {
            Working::Stages(progress) => {
                progress.iter().zip(self.stages(id)).all(|(progress, stage)| progress.done >= stage.tasks)
            }
            Working::Executors(progress) => self.executors(id).is_some_and(|all| progress.done >= all.tasks),
            Working::Gang { .. } => false,
        };
        if is_done && app.ended_at.is_none() {
            self.finish(id, true);
        }
    }

    /// A lost task is done again.
    pub(super) fn stage_loses(&mut self, id: AppId, container: ContainerId) {
        let Some(lost) = self.give_up(id, container) else { return };
        self.ask_more(id, i32::try_from(lost.0).unwrap_or(0), lost.1, 1);
    }

    /// Books a lost container's unfinished work; returns its stage and size.
    fn give_up(&mut self, id: AppId, container: ContainerId) -> Option<(u32, Resources)> {
        let now = self.now;
        let lost = self.containers.get_mut(container)?;
        lost.lost_ms += worked(lost, now);
        let lost = self.let_go(id, container)?;
        Some((lost.stage, lost.resources))
    }

    /// An application gives one of its containers back.
    fn let_go(&mut self, id: AppId, container: ContainerId) -> Option<Container> {
        let held = &mut self.app(id).held;
        if let Some(place) = held.iter().position(|other| *other == container) {
            held.remove(place);
        }
        self.release(container)
    }

    fn executors(&self, id: AppId) -> Option<Executors> {
        match &self.job(id).work {
            Work::Executors(executors) => Some(executors.clone()),
            _ => None,
        }
    }

    pub(super) fn begin_executors(&mut self, id: AppId) {
        self.withdraw(id);
        let Some(executors) = self.executors(id) else { return };
        if !self.may_ever_be_granted(executors.resources) {
            return self.reject(id);
        }
        if let Working::Executors(progress) = &mut self.app(id).work {
            progress.next_ramp = 1;
        }
        self.ask_more(id, 0, executors.resources, executors.min);
        self.backlog(id);
        self.end_if_done(id);
    }

    /// While tasks wait, more executors are asked for each second, twice as many as the time before.
    fn backlog(&mut self, id: AppId) {
        let (now, generation) = (self.now, self.apps[id as usize].generation);
        if let Working::Executors(progress) = &mut self.app(id).work
            && progress.waiting > 0
            && !progress.ramping
        {
            progress.ramping = true;
            self.events.push(now + RAMP_MS, Event::Ramp(id, generation));
        }
    }

    pub(super) fn ramp(&mut self, id: AppId, generation: u32) {
        let app = &self.apps[id as usize];
        let (Some(executors), true) = (self.executors(id), app.generation == generation && app.ended_at.is_none())
        else {
            return;
        };
        let there = app.held_and_asked();
        let Working::Executors(progress) = &mut self.app(id).work else { return };
        progress.ramping = false;
        let wanted = wanted(&executors, progress.done).min(executors.max);
        if progress.waiting == 0 || there >= wanted {
            progress.next_ramp = 1;
            return;
        }
        let more = progress.next_ramp.min(wanted - there);
        progress.next_ramp = progress.next_ramp.saturating_mul(2);
        self.ask_more(id, 0, executors.resources, more);
        self.backlog(id);
    }

    /// Executors that have been asked for and are of no use any more are asked for no more.
    fn ask_less(&mut self, id: AppId) {
        let Some(executors) = self.executors(id) else { return };
        let app = &self.apps[id as usize];
        let Working::Executors(progress) = &app.work else { return };
        let kept = wanted(&executors, progress.done).max(executors.min);
        let excess = app.held_and_asked().saturating_sub(kept);
        let index = app.asks.iter().position(|ask| !ask.is_master && ask.containers > 0);
        let Some(index) = index.filter(|_| excess > 0 && app.ended_at.is_none()) else { return };
        for _ in 0..excess.min(app.asks[index].containers) {
            self.take_from_ask(id, index);
            self.count_demand(executors.resources, 1, false);
        }
        self.shown_change(id);
    }

    pub(super) fn executor_granted(&mut self, id: AppId, container: ContainerId, starts_at: Ms) {
        self.starts(id, starts_at);
        self.executor_goes_on(id, container, starts_at);
    }

    /// An executor takes as many tasks as it has slots; one that finds none waits for its time-out.
    fn executor_goes_on(&mut self, id: AppId, container: ContainerId, at: Ms) {
        let Some(executors) = self.executors(id) else { return };
        let Some(place) = self.containers.get_mut(container) else { return };
        let Working::Executors(progress) = &mut self.apps[id as usize].work else { return };
        let tasks = progress.waiting.min(executors.slots.max(1));
        progress.waiting -= tasks;
        if tasks > 0 {
            (place.works_since, place.tasks) = (Some(at), tasks);
            self.events.push(at + executors.task_ms, Event::TasksEnd(container));
        } else {
            place.idle_since = at;
            self.events.push(at + executors.idle_timeout_ms, Event::ExecutorIdle(container));
        }
        self.end_if_done(id);
    }

    /// An executor that is still idle is given back, unless it is one of those that are kept.
    pub(super) fn executor_idle(&mut self, container: ContainerId) {
        let Some(place) = self.containers.get(container).filter(|place| place.tasks == 0) else { return };
        let (app, idle_since) = (place.app, place.idle_since);
        let Some(executors) = self.executors(app) else { return };
        // It may have worked meanwhile.
        let is_due = idle_since + executors.idle_timeout_ms <= self.now;
        if is_due && self.apps[app as usize].held.len() > executors.min as usize {
            self.let_go(app, container);
        }
    }

    /// The tasks of a lost executor are done again.
    pub(super) fn executor_lost(&mut self, id: AppId, container: ContainerId) {
        let tasks = self.containers.get(container).map_or(0, |place| place.tasks);
        self.give_up(id, container);
        if let Working::Executors(progress) = &mut self.app(id).work {
            progress.waiting += tasks;
        }
        self.wake_idle(id);
        self.backlog(id);
    }

    /// Idle executors take up what waits.
    fn wake_idle(&mut self, id: AppId) {
        for container in self.apps[id as usize].held.clone() {
            let place = self.containers.get(container);
            let is_idle = place.is_some_and(|place| place.tasks == 0 && place.stopped_at.is_none());
            let waiting = matches!(&self.apps[id as usize].work, Working::Executors(progress) if progress.waiting > 0);
            if is_idle && waiting {
                self.executor_goes_on(id, container, self.now);
            }
        }
    }
}

/// Executors that what is left to do would fill.
fn wanted(executors: &Executors, done: u32) -> u32 {
    (executors.tasks - done).div_ceil(executors.slots.max(1))
}
