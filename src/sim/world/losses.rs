//! How containers end: released by their application, or lost; and what a loss does to the application.

use super::{
    AppId, ContainerId, SlotId, World,
    applications::{Container, Phase, Working},
    jobs::fresh,
};
use crate::{
    model::GroupName,
    sim::{
        Ms,
        workload::{OnLoss, Work},
    },
};

/// Who ended a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// A decommission, a recommission or a deletion: our doing.
    Drain,
    /// A machine that died or was taken away, a node that is not well, a ResourceManager that restarted.
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
        if std::mem::take(&mut self.scheduler.limited) {
            self.arm_all();
        } else {
            self.arm(slot);
        }
        self.seen_change();
        Some(container)
    }

    fn take_off_node(&mut self, id: ContainerId, container: &Container) {
        let now = self.now;
        let entry = &mut self.slots[container.slot as usize];
        if let Some(node) = &mut entry.node {
            // Mostly one of the last that came.
            if let Some(place) = node.containers.iter().rposition(|other| *other == id) {
                node.containers.remove(place);
            }
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

    /// GPUs, or MB of memory in a group whose machines have none.
    fn units(&self, slot: SlotId, container: &Container) -> u128 {
        let group = self.group(self.slot(slot).group);
        let counts_gpus = group.is_some_and(|group| group.worker.gpus > 0);
        u128::from(if counts_gpus { container.resources.gpus } else { container.resources.memory_mb })
    }

    /// Writes what a container held, up to now, to the account of its group.
    fn book(&mut self, container: &Container) {
        // Of a machine that registered without its GPUs everything is booked as its boot.
        if !container.counts {
            return;
        }
        let units = self.units(container.slot, container);
        let held_ms = container.paid_until.unwrap_or(self.now) - container.granted_at;
        let entry = &mut self.slots[container.slot as usize];
        if let (None, Some(machine)) = (container.paid_until, &mut entry.machine) {
            machine.container_units += u128::from(held_ms) * units;
        }
        let Some(account) = self.record.accounts.get_mut(&entry.group) else { return };
        let useful = u128::from(container.useful_ms) * units;
        account.useful += useful;
        account.lost += u128::from(container.lost_ms) * units;
        account.held += u128::from(held_ms - container.useful_ms - container.lost_ms) * units;
        let place = usize::from(entry.group == GroupName::Secondary);
        self.apps[container.app as usize].earned[place] += useful;
    }

    /// A machine is gone, and YARN does not know: its containers are paid for until now, whatever becomes of them.
    pub(super) fn pay_off(&mut self, slot: SlotId) {
        if self.slot(slot).own_node().is_none() {
            return;
        }
        let now = self.now;
        for id in self.containers_on(slot) {
            let Some(container) = self.containers.get_mut(id) else { continue };
            container.paid_until = Some(now);
            let container = *container;
            let units = if container.counts { self.units(slot, &container) } else { 0 };
            if let Some(machine) = &mut self.slots[slot as usize].machine {
                machine.container_units += u128::from(now - container.granted_at) * units;
            }
        }
    }

    /// An application's master ends with it: its time counted where the application ended well.
    pub(super) fn release_master(&mut self, id: ContainerId, succeeded: bool) {
        let now = self.now;
        if let Some(master) = self.containers.get_mut(id) {
            let spent = master.stopped_at.unwrap_or(now) - master.granted_at;
            if succeeded { master.useful_ms = spent } else { master.lost_ms = spent }
        }
        self.release(id);
    }

    /// At the end of the run: what containers have done until now counts.
    pub(super) fn close_containers(&mut self) {
        let now = self.now;
        let live: Vec<_> = self.live.iter().copied().collect();
        for app in live {
            let app = &self.apps[app as usize];
            for id in app.held.iter().chain(&app.master).copied().collect::<Vec<_>>() {
                let Some(mut container) = self.containers.get(id).copied() else { continue };
                container.useful_ms += if container.is_master {
                    container.stopped_at.unwrap_or(now) - container.granted_at
                } else {
                    worked(&container, now)
                };
                self.book(&container);
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

    /// All containers of a node's list are ended by others.
    pub(super) fn lose_all(&mut self, containers: &[ContainerId], cause: Cause) {
        // One that restarts its application ends others of the list with it: they are not there any more.
        for id in containers {
            self.lose(*id, cause);
        }
    }

    pub(super) fn lose_all_of(&mut self, slot: SlotId, cause: Cause) {
        let containers = self.containers_on(slot);
        self.lose_all(&containers, cause);
    }

    /// The application master is gone: another attempt begins, from nothing or from the last checkpoint.
    fn attempt_fails(&mut self, id: AppId) {
        let work = if let (Working::Gang { .. }, OnLoss::Checkpoint { .. }) =
            (&self.apps[id as usize].work, self.job(id).on_loss)
        {
            Working::Gang { saved_ms: self.give_back_gang(id) }
        } else {
            self.throw_away(id);
            self.forfeit(id);
            fresh(&self.job(id).work)
        };
        if let Some(master) = self.app(id).master.take() {
            self.release_master(master, false);
        }
        self.withdraw(id);
        self.deactivate(id);
        self.app(id).generation += 1;
        self.app(id).work = work;
        self.starts_over(id);
        self.accept(id, self.job(id).master);
        self.activate(self.apps[id as usize].queue);
    }

    /// Its work so far is lost, its containers are given back.
    pub(super) fn throw_away(&mut self, id: AppId) {
        let now = self.now;
        for id in std::mem::take(&mut self.app(id).held) {
            if let Some(container) = self.containers.get_mut(id) {
                container.lost_ms += worked(container, now) + container.useful_ms;
                container.useful_ms = 0;
            }
            self.release(id);
        }
    }

    /// What has counted so far is to be done again.
    pub(super) fn forfeit(&mut self, id: AppId) {
        for (group, units) in GroupName::ALL.iter().zip(std::mem::take(&mut self.app(id).earned)) {
            if let Some(account) = self.record.accounts.get_mut(group) {
                account.useful -= units;
                account.lost += units;
            }
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
        match (app.started_at, self.job(id).on_loss) {
            (None, _) => self.replace(id, container),
            (Some(_), OnLoss::Continue) => self.go_on_without(id, container),
            (Some(_), OnLoss::Restart | OnLoss::Checkpoint { .. }) => self.restart_gang(id),
        }
    }

    /// A gang that does not work yet asks for another container.
    fn replace(&mut self, id: AppId, container: ContainerId) {
        self.app(id).held.retain(|other| *other != container);
        let Some(lost) = self.release(container) else { return };
        let priority = i32::try_from(lost.stage).unwrap_or(0);
        if self.rules.atomic {
            // Granted whole, it never lacks a part: what it still has goes back, and all is asked for anew.
            return self.restart_gang(id);
        }
        self.ask_more(id, priority, lost.resources, 1);
    }

    /// TonY's way: the others go on, and end as if nothing had happened.
    fn go_on_without(&mut self, id: AppId, container: ContainerId) {
        let now = self.now;
        self.app(id).held.retain(|other| *other != container);
        if let Some(lost) = self.containers.get_mut(container) {
            lost.lost_ms += worked(lost, now);
        }
        self.release(container);
        if self.apps[id as usize].held.is_empty() {
            self.finish(id, true);
        }
    }

    /// The whole gang is given back and asked for anew.
    fn restart_gang(&mut self, id: AppId) {
        let kept = self.give_back_gang(id);
        let app = self.app(id);
        app.work = Working::Gang { saved_ms: kept };
        app.generation += 1;
        self.starts_over(id);
        if self.apps[id as usize].phase == Phase::Running {
            self.begin(id);
        }
    }

    /// All containers of a gang but its master are given back; returns the work that its checkpoints keep.
    fn give_back_gang(&mut self, id: AppId) -> Ms {
        let now = self.now;
        let Working::Gang { saved_ms } = self.apps[id as usize].work else { return 0 };
        let held = std::mem::take(&mut self.app(id).held);
        // It stood still from the moment when the first of its machines had died.
        let stopped = held.iter().filter_map(|id| self.containers.get(*id)?.stopped_at).min().unwrap_or(now);
        let began = self.apps[id as usize].started_at.unwrap_or(now);
        let done = saved_ms + stopped.saturating_sub(began);
        let kept = match self.job(id).on_loss {
            OnLoss::Checkpoint { every_ms } => (done - done % every_ms.max(1)).max(saved_ms),
            OnLoss::Restart | OnLoss::Continue => saved_ms,
        };
        for container in held {
            if let Some(container) = self.containers.get_mut(container) {
                let spent = worked(container, now);
                let counted = (kept - saved_ms).min(spent);
                container.useful_ms += counted;
                container.lost_ms += spent - counted;
            }
            self.release(container);
        }
        kept
    }
}

/// How long a container has worked on what it does now; on a machine that has died, until then.
pub(super) fn worked(container: &Container, now: Ms) -> Ms {
    let until = container.stopped_at.unwrap_or(now);
    container.works_since.map_or(0, |since| until.saturating_sub(since))
}
