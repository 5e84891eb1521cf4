//! How containers end: released by their application, or lost; and what a loss does to the application.

use super::{
    AppId, ContainerId, World,
    applications::{Container, Phase, Working},
    jobs::fresh,
};
use crate::sim::{
    Ms,
    workload::{OnLoss, Work},
};

/// Who ended a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A decommission, a recommission or a deletion: our doing.
    Drain,
    /// A machine that died or was taken away, a ResourceManager that restarted.
    Fault,
}

impl World {
    /// A container ends; what it held and did is written to its machine's account.
    pub(super) fn release(&mut self, id: ContainerId) -> Option<Container> {
        let container = self.containers.remove(id)?;
        let Container { app, slot, resources, .. } = container;
        self.take_off_node(id, &container);
        self.allocated = self.allocated.saturating_sub(resources);
        self.allocated_containers -= 1;
        self.count_demand(resources, 1, false);
        self.change_used(app, |used| used.saturating_sub(resources));
        self.arm(slot);
        if std::mem::take(&mut self.scheduler.limited) {
            self.arm_all();
        }
        self.seen_change();
        Some(container)
    }

    fn take_off_node(&mut self, id: ContainerId, container: &Container) {
        let now = self.now;
        let entry = &mut self.slots[container.slot as usize];
        if let Some(node) = &mut entry.node {
            node.containers.retain(|other| *other != id);
            node.used = node.used.saturating_sub(container.resources);
            node.view = None;
            if let Some(machine) = &mut entry.machine
                && node.containers.is_empty()
                && let Some(since) = machine.busy_since.take()
            {
                machine.busy_ms += now - since;
            }
        }
        self.book(container);
    }

    /// Writes what a container held, up to now, to the account of its group.
    fn book(&mut self, container: &Container) {
        let now = self.now;
        let entry = &mut self.slots[container.slot as usize];
        let Some(account) = self.record.accounts.get_mut(&entry.group) else { return };
        let counts_gpus = self.scenario.cloud.groups.get(&entry.group).is_some_and(|group| group.worker.gpus > 0);
        let units = u128::from(if counts_gpus { container.resources.gpus } else { container.resources.memory_mb });
        let held_ms = now - container.granted_at;
        // Of a machine that registered without its GPUs everything is booked as its boot.
        let Some(machine) = entry.machine.as_mut().filter(|machine| machine.registered_at.is_some()) else { return };
        machine.container_units += u128::from(held_ms) * units;
        account.useful += u128::from(container.useful_ms) * units;
        account.lost += u128::from(container.lost_ms) * units;
        account.held += u128::from(held_ms - container.useful_ms - container.lost_ms) * units;
    }

    /// An application's master ends with it: its time counted where the application ended well.
    pub(super) fn release_master(&mut self, id: ContainerId, succeeded: bool) {
        let now = self.now;
        if let Some(master) = self.containers.get_mut(id) {
            let spent = now - master.granted_at;
            if succeeded { master.useful_ms = spent } else { master.lost_ms = spent }
        }
        self.release(id);
    }

    /// At the end of the run: what containers have done until now counts.
    pub(super) fn close_containers(&mut self) {
        let live: Vec<_> = self.live.iter().copied().collect();
        for app in live {
            let app = &self.apps[app as usize];
            let (held, master) = (app.held.clone(), app.master);
            for id in held {
                let now = self.now;
                let Some(container) = self.containers.get_mut(id) else { continue };
                container.useful_ms += worked(container, now);
                container.works_since = None;
                let container = *container;
                self.book(&container);
            }
            if let Some(mut master) = master.and_then(|id| self.containers.get(id).copied()) {
                master.useful_ms = self.now - master.granted_at;
                self.book(&master);
            }
        }
    }

    /// A container is ended by others.
    pub(super) fn lose(&mut self, id: ContainerId, cause: Cause) {
        let Some(container) = self.containers.get(id).copied() else { return };
        match cause {
            Cause::Drain => self.record.counts.killed_by_drain += 1,
            Cause::Fault => self.record.counts.killed_by_fault += 1,
        }
        let app = container.app;
        self.app(app).containers_lost += 1;
        if container.is_master {
            return self.attempt_fails(app);
        }
        match &self.job(app).work {
            Work::Gang { .. } => self.gang_loses(app, id),
            Work::Stages(_) => self.stage_loses(app, id),
            Work::Executors(_) => self.executor_lost(app, id),
        }
    }

    /// All containers of these nodes' lists are ended by others.
    pub(super) fn lose_all(&mut self, containers: Vec<ContainerId>, cause: Cause) {
        // One that restarts its application ends others of the list with it: they are not there any more.
        for id in containers {
            self.lose(id, cause);
        }
    }

    /// The application master is gone: another attempt begins from nothing.
    fn attempt_fails(&mut self, id: AppId) {
        self.throw_away(id);
        if let Some(master) = self.app(id).master.take() {
            self.release_master(master, false);
        }
        self.withdraw(id);
        self.deactivate(id);
        self.app(id).generation += 1;
        self.app(id).work = fresh(&self.job(id).work);
        self.starts_over(id);
        let master = self.job(id).master;
        self.accept(id, master);
    }

    /// Its work so far is lost, its containers are given back.
    fn throw_away(&mut self, id: AppId) {
        for container in std::mem::take(&mut self.app(id).held) {
            let until = self.worked_until(container);
            if let Some(container) = self.containers.get_mut(container) {
                container.lost_ms += worked(container, until) + container.useful_ms;
                container.useful_ms = 0;
            }
            self.release(container);
        }
    }

    /// The job waits once more.
    fn starts_over(&mut self, id: AppId) {
        let app = self.app(id);
        app.restarts += 1;
        if app.started_at.take().is_some() {
            self.record.running -= 1;
            self.record.waiting += 1;
        }
    }

    fn gang_loses(&mut self, id: AppId, container: ContainerId) {
        let app = &self.apps[id as usize];
        let began = app.started_at.filter(|_| app.asks.iter().all(|ask| ask.containers == 0));
        match (began, self.job(id).on_loss) {
            (None, _) => self.replace(id, container),
            (Some(_), OnLoss::Continue) => self.go_on_without(id, container),
            (Some(began), OnLoss::Restart) => self.restart_gang(id, began, None),
            (Some(began), OnLoss::Checkpoint { every_ms }) => self.restart_gang(id, began, Some(every_ms)),
        }
    }

    /// A gang that is not complete asks for another container.
    fn replace(&mut self, id: AppId, container: ContainerId) {
        self.app(id).held.retain(|other| *other != container);
        let Some(lost) = self.release(container) else { return };
        let priority = i32::try_from(lost.stage).unwrap_or(0);
        if self.rules.atomic {
            // Granted whole, it never lacks a part: what it still has goes back, and all is asked for anew.
            return self.restart_gang(id, self.now, None);
        }
        self.ask_more(id, priority, lost.resources, 1);
    }

    /// TonY's way: the others go on, and end as if nothing had happened.
    fn go_on_without(&mut self, id: AppId, container: ContainerId) {
        let until = self.worked_until(container);
        self.app(id).held.retain(|other| *other != container);
        if let Some(lost) = self.containers.get_mut(container) {
            lost.lost_ms += worked(lost, until);
        }
        self.release(container);
        if self.apps[id as usize].held.is_empty() {
            self.finish(id, true);
        }
    }

    /// The whole gang is given back and asked for anew; what a checkpoint has kept counts.
    fn restart_gang(&mut self, id: AppId, began: Ms, every_ms: Option<Ms>) {
        let Working::Gang { saved_ms } = self.apps[id as usize].work else { return };
        let held = std::mem::take(&mut self.app(id).held);
        let until = held.iter().map(|container| self.worked_until(*container)).min().unwrap_or(self.now);
        let done = saved_ms + until.saturating_sub(began);
        let kept = every_ms.map_or(saved_ms, |every| (done - done % every.max(1)).max(saved_ms));
        for container in held {
            let now = self.now;
            if let Some(container) = self.containers.get_mut(container) {
                let spent = worked(container, now);
                let counted = (kept - saved_ms).min(spent);
                container.useful_ms += counted;
                container.lost_ms += spent - counted;
            }
            self.release(container);
        }
        let app = self.app(id);
        app.work = Working::Gang { saved_ms: kept };
        app.generation += 1;
        self.starts_over(id);
        if self.apps[id as usize].phase == Phase::Running {
            self.begin(id);
        }
    }

    /// Until when a container's machine worked: it may be dead for a while before YARN notices.
    pub(super) fn worked_until(&self, id: ContainerId) -> Ms {
        let container = self.containers.get(id);
        let machine = container.and_then(|container| self.slot(container.slot).machine.as_ref());
        machine.and_then(|machine| machine.dead_at).unwrap_or(self.now).min(self.now)
    }
}

/// How long a container has worked on what it does now.
pub(super) fn worked(container: &Container, until: Ms) -> Ms {
    container.works_since.map_or(0, |since| until.saturating_sub(since))
}
