//! Applications of independent tasks: MapReduce's stages, and Spark with dynamic allocation.

use super::{
    AppId, ContainerId, Event, World,
    applications::{AppAsk, Working},
    losses::worked,
};
use crate::sim::{
    Ms,
    workload::{Executors, Stage, Work},
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
            let ask = AppAsk { resources, priority: 0, containers: tasks, is_master: false };
            if !self.may_ever_be_granted(&[ask]) {
                return self.reject(id);
            }
            if let Working::Stages(progress) = &mut self.app(id).work {
                progress[index].asked = true;
            }
            self.ask_more(id, i32::try_from(index).unwrap_or(i32::MAX), resources, tasks);
        }
    }

    /// Whether all of the stages before have been done: then a container works at once.
    fn stage_may_work(&self, id: AppId, stage: u32) -> bool {
        let Working::Stages(progress) = &self.apps[id as usize].work else { return false };
        let before = progress.iter().zip(self.stages(id)).take(stage as usize);
        // Stages that wait for nothing run beside each other.
        let waits = self.stages(id).get(stage as usize).is_some_and(|stage| stage.starts_after > 0.0);
        !waits || before.into_iter().all(|(progress, stage)| progress.done >= stage.tasks)
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
        if self.slot(container.slot).machine.as_ref().is_some_and(|machine| machine.dead_at.is_some()) {
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
                self.app(container.app).held.retain(|other| *other != id);
                self.release(id);
                self.stage_goes_on(container.app);
            }
            Working::Executors(progress) => {
                progress.done += container.tasks;
                self.executor_goes_on(container.app, id, now);
            }
            Working::Gang { .. } => {}
        }
    }

    /// After a task: reducers that waited for it begin, stages whose turn it is ask.
    fn stage_goes_on(&mut self, id: AppId) {
        self.next_stages(id);
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
    fn give_up(&mut self, id: AppId, container: ContainerId) -> Option<(u32, crate::model::Resources)> {
        let now = self.now;
        self.app(id).held.retain(|other| *other != container);
        let lost = self.containers.get_mut(container)?;
        lost.lost_ms += worked(lost, now);
        let lost = self.release(container)?;
        Some((lost.stage, lost.resources))
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
        let ask = AppAsk { resources: executors.resources, priority: 0, containers: 1, is_master: false };
        if !self.may_ever_be_granted(&[ask]) {
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
        let asked: u32 = app.asks.iter().map(|ask| ask.containers).sum();
        let there = u32::try_from(app.held.len()).unwrap_or(u32::MAX).saturating_add(asked);
        let Working::Executors(progress) = &mut self.app(id).work else { return };
        progress.ramping = false;
        let tasks = executors.tasks - progress.done;
        let wanted = tasks.div_ceil(executors.slots.max(1)).min(executors.max);
        if progress.waiting == 0 || there >= wanted {
            progress.next_ramp = 1;
            return;
        }
        let more = progress.next_ramp.min(wanted - there);
        progress.next_ramp = progress.next_ramp.saturating_mul(2);
        self.ask_more(id, 0, executors.resources, more);
        self.backlog(id);
    }

    pub(super) fn executor_granted(&mut self, id: AppId, container: ContainerId, starts_at: Ms) {
        self.starts(id, starts_at);
        self.executor_goes_on(id, container, starts_at);
    }

    /// An executor takes as many tasks as it has slots; one that finds none waits for its time-out.
    fn executor_goes_on(&mut self, id: AppId, container: ContainerId, at: Ms) {
        let Some(executors) = self.executors(id) else { return };
        let Working::Executors(progress) = &mut self.app(id).work else { return };
        let tasks = progress.waiting.min(executors.slots);
        progress.waiting -= tasks;
        let Some(place) = self.containers.get_mut(container) else { return };
        if tasks > 0 {
            (place.works_since, place.tasks) = (Some(at), tasks);
            self.events.push(at + executors.task_ms, Event::TasksEnd(container));
        } else {
            self.events.push(at + executors.idle_timeout_ms, Event::ExecutorIdle(container));
        }
        self.end_if_done(id);
    }

    /// An executor that is still idle is given back, unless it is one of those that are kept.
    pub(super) fn executor_idle(&mut self, container: ContainerId) {
        let Some(app) = self.containers.get(container).filter(|place| place.tasks == 0).map(|place| place.app) else {
            return;
        };
        let kept = self.executors(app).map_or(0, |executors| executors.min);
        if self.apps[app as usize].held.len() > kept as usize {
            self.app(app).held.retain(|other| *other != container);
            self.release(container);
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
            let is_idle = self.containers.get(container).is_some_and(|place| place.tasks == 0);
            let waiting = matches!(&self.apps[id as usize].work, Working::Executors(progress) if progress.waiting > 0);
            if is_idle && waiting {
                self.executor_goes_on(id, container, self.now);
            }
        }
    }
}
