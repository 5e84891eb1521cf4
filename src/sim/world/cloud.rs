//! The cloud: orders, operations, machines that boot and are billed, quotas, and the list that lags behind.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use super::{
    Event, SlotId, World,
    losses::Cause,
    machines::{Machine, Slot},
    ms,
};
use crate::{
    model::{Capacity, GroupName, NodeState, Resources},
    sim::{
        Ms,
        random::{Rng, to_ms},
        scenario::Delay,
    },
};

/// An operation that ended so long ago is forgotten.
const REMEMBERED_FOR: Ms = 86_400_000;

/// An operation that waits for machines which never come ends after so long.
const GIVES_UP_AFTER: Ms = 15 * 60_000;

/// Orders and operations.
#[derive(Debug, Default)]
pub(super) struct Cloud {
    /// Those that it still knows of, the oldest first.
    operations: VecDeque<Operation>,
    /// How many it has forgotten: the number of the first one that it knows of.
    forgotten: usize,
    under_way: usize,
    /// Orders by their request id: the same id again names the same operation.
    requests: BTreeMap<String, usize>,
    pub(super) excluded: BTreeSet<SlotId>,
    /// What the list showed, and since when; the oldest first.
    pub(super) lists: VecDeque<(Ms, Arc<Capacity>)>,
    /// The list as it is has not been made yet.
    pub(super) list_is_stale: bool,
}

/// An order that was taken.
#[derive(Debug)]
struct Operation {
    request_id: String,
    /// Since when it is over.
    ended_at: Option<Ms>,
    /// How it ends.
    outcome: Result<(), Refusal>,
}

/// Why the cloud does not do what was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// More machines than the quota allows.
    Quota,
    /// It has no such machines just now.
    StockOut,
    /// Another order is under way.
    Busy,
    /// There is no such group.
    NoGroup,
    /// It deletes no workers by name.
    CannotName,
}

impl Cloud {
    /// How many operations and how many requests it knows of, and how many operations have not ended: counted anew.
    pub(super) fn books(&self) -> (usize, usize, usize) {
        let under_way = self.operations.iter().filter(|operation| operation.ended_at.is_none()).count();
        (self.operations.len(), self.requests.len(), under_way)
    }

    pub(super) fn is_excluded(&self, slot: SlotId) -> bool {
        self.excluded.contains(&slot)
    }
}

impl World {
    /// Orders machines; returns the operation's number.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn create(&mut self, request_id: &str, group: GroupName, count: u32) -> Result<usize, Refusal> {
        if let Some(operation) = self.cloud.requests.get(request_id) {
            return Ok(*operation);
        }
        self.may_order()?;
        let model = self.group(group).ok_or(Refusal::NoGroup)?;
        let (of_group, all) = (self.machines_of(Some(group)), self.machines_of(None));
        let over = |quota: Option<u32>, there: u32| quota.is_some_and(|quota| there.saturating_add(count) > quota);
        if over(model.quota, of_group) || over(self.scenario.cloud.quota, all) {
            return Err(Refusal::Quota);
        }
        if self.is_out_of_stock(group) {
            return Ok(self.take_order(request_id, self.now + self.rules.machine_start, Err(Refusal::StockOut)));
        }
        let mut ready_at = self.now;
        for _ in 0..count {
            ready_at = ready_at.max(self.order_machine(group));
        }
        self.record.counts.ordered += u64::from(count);
        // Where boots are slow, the operation that brings the machines up is slow in the same measure.
        let slowed = |time: Ms| self.now + to_ms(time as f64 * self.boot_factor());
        let ends_at = self.rules.create_time.map_or(ready_at, slowed);
        self.list_changed();
        Ok(self.take_order(request_id, ends_at, Ok(())))
    }

    /// Orders machines deleted, by the names of their hosts; one that does not exist is no error.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn delete(&mut self, request_id: &str, instances: &[String]) -> Result<usize, Refusal> {
        if let Some(operation) = self.cloud.requests.get(request_id) {
            return Ok(*operation);
        }
        self.may_order()?;
        if !self.scenario.cloud.deletes_named {
            return Err(Refusal::CannotName);
        }
        for slot in instances.iter().filter_map(|name| self.slot_of.get(name).copied()).collect::<Vec<_>>() {
            self.delete_machine(slot);
        }
        self.list_changed();
        Ok(self.take_order(request_id, self.now + self.rules.delete_time, Ok(())))
    }

    /// How an operation stands: `None` while it is under way; `Err(None)`: there is no such operation.
    ///
    /// # Errors
    /// How it failed.
    pub fn operation(&self, number: usize) -> Result<Option<()>, Option<Refusal>> {
        let index = number.checked_sub(self.cloud.forgotten).ok_or(None)?;
        let operation = self.cloud.operations.get(index).ok_or(None)?;
        match (operation.ended_at, operation.outcome) {
            (None, _) => Ok(None),
            (Some(_), Ok(())) => Ok(Some(())),
            (Some(_), Err(refusal)) => Err(Some(refusal)),
        }
    }

    /// How many orders are under way.
    pub fn orders_under_way(&self) -> usize {
        self.cloud.under_way
    }

    fn may_order(&self) -> Result<(), Refusal> {
        if !self.scenario.cloud.overlaps && self.orders_under_way() > 0 { Err(Refusal::Busy) } else { Ok(()) }
    }

    fn take_order(&mut self, request_id: &str, ends_at: Ms, outcome: Result<(), Refusal>) -> usize {
        self.forget_operations();
        let number = self.cloud.forgotten + self.cloud.operations.len();
        self.cloud.operations.push_back(Operation { request_id: request_id.to_owned(), ended_at: None, outcome });
        self.cloud.requests.insert(request_id.to_owned(), number);
        self.cloud.under_way += 1;
        self.events.push(ends_at, Event::OperationEnds(u32::try_from(number).unwrap_or(u32::MAX)));
        number
    }

    pub(super) fn operation_ends(&mut self, number: u32) {
        let index = (number as usize).checked_sub(self.cloud.forgotten);
        if let Some(operation) = index.and_then(|index| self.cloud.operations.get_mut(index)) {
            operation.ended_at = Some(self.now);
            self.cloud.under_way -= 1;
            self.record.counts.orders_failed += u64::from(operation.outcome.is_err());
        }
    }

    fn forget_operations(&mut self) {
        let now = self.now;
        let is_old = |operation: &Operation| operation.ended_at.is_some_and(|ended| ended + REMEMBERED_FOR < now);
        while self.cloud.operations.front().is_some_and(is_old) {
            if let Some(operation) = self.cloud.operations.pop_front() {
                self.cloud.requests.remove(&operation.request_id);
                self.cloud.forgotten += 1;
            }
        }
    }

    /// Machines of a group, or of all, that exist; those that are being deleted count until they are gone.
    pub fn machines_of(&self, group: Option<GroupName>) -> u32 {
        let ours = self.slots.iter().filter(|slot| group.is_none_or(|group| slot.group == group));
        u32::try_from(ours.filter(|slot| slot.machine.is_some()).count()).unwrap_or(u32::MAX)
    }

    /// The first host name of a group that no machine has.
    pub(super) fn free_slot(&mut self, group: GroupName) -> SlotId {
        let free = self.slots.iter().position(|slot| slot.group == group && slot.machine.is_none());
        let index = free.unwrap_or_else(|| {
            let number = self.slots.iter().filter(|slot| slot.group == group).count();
            let letter = if group == GroupName::Primary { "w" } else { "sw" };
            let host = format!("{letter}-{number}");
            let id = SlotId::try_from(self.slots.len()).unwrap_or(SlotId::MAX);
            self.slot_of.insert(host.clone(), id);
            self.slots.push(Slot::new(host, group));
            self.slots.len() - 1
        });
        SlotId::try_from(index).unwrap_or(SlotId::MAX)
    }

    /// Orders one machine; returns when it has registered, or is given up.
    fn order_machine(&mut self, group: GroupName) -> Ms {
        let slot = self.free_slot(group);
        let boot = self.draw_boot(group);
        let (without_gpus, never_registers) = self.draw_failures();
        let now = self.now;
        let up_at = now + self.rules.machine_start.min(boot);
        let entry = &mut self.slots[slot as usize];
        entry.generation += 1;
        let generation = entry.generation;
        entry.machine = Some(Machine { without_gpus, never_registers, ..Machine::ordered() });
        self.events.push(up_at, Event::MachineUp(slot, generation));
        self.recount(slot);
        if never_registers {
            return now + GIVES_UP_AFTER;
        }
        self.events.push(now + boot, Event::Registers(slot, generation));
        now + boot
    }

    fn draw_boot(&mut self, group: GroupName) -> Ms {
        let scenario = Arc::clone(&self.scenario);
        let drawn = scenario.cloud.groups.get(&group).map_or(0, |model| delay(&mut self.boots, &model.boot));
        to_ms(drawn as f64 * self.boot_factor())
    }

    pub(super) fn machine_up(&mut self, slot: SlotId, generation: u32) {
        let now = self.now;
        let entry = &mut self.slots[slot as usize];
        if let Some(machine) = entry.machine.as_mut().filter(|_| entry.generation == generation) {
            machine.up_at = Some(now);
            self.recount(slot);
            self.list_changed();
            self.draw_life(slot);
        }
    }

    /// When the cloud takes this machine away, if it does.
    pub(super) fn draw_life(&mut self, slot: SlotId) {
        let mean = self.group(self.slot(slot).group).and_then(|model| model.mean_lifetime);
        if let Some(mean) = mean {
            let at = self.now + to_ms(self.lives.exponential(mean.as_secs_f64() * 1000.0));
            self.events.push(at, Event::Preempted(slot, self.slot(slot).generation));
        }
    }

    /// The cloud takes a machine away: its NodeManager says goodbye, and it is gone.
    pub(super) fn preempted(&mut self, slot: SlotId, generation: u32) {
        let entry = self.slot(slot);
        if entry.generation == generation && entry.machine.as_ref().is_some_and(|machine| !machine.stopping) {
            self.manager_stops(slot, Cause::Fault);
            self.remove_machine(slot);
        }
    }

    fn delete_machine(&mut self, slot: SlotId) {
        let Some(machine) = self.slots[slot as usize].machine.as_mut().filter(|machine| !machine.stopping) else {
            return;
        };
        machine.stopping = true;
        self.record.counts.deleted += 1;
        self.manager_stops(slot, Cause::Drain);
        self.recount(slot);
        let generation = self.slot(slot).generation;
        self.events.push(self.now + self.rules.delete_time, Event::Gone(slot, generation));
    }

    /// A NodeManager that lives is stopped with its machine, and says goodbye.
    fn manager_stops(&mut self, slot: SlotId, cause: Cause) {
        let entry = self.slot(slot);
        if entry.is_alive() && entry.own_node().is_some_and(|node| node.state.is_active()) {
            self.leaves(slot, NodeState::Shutdown, cause);
        }
    }

    pub(super) fn gone(&mut self, slot: SlotId, generation: u32) {
        if self.slot(slot).generation == generation {
            self.remove_machine(slot);
        }
    }

    fn remove_machine(&mut self, slot: SlotId) {
        let (now, minimum) = (self.now, self.rules.minimum_billed);
        self.pay_off(slot);
        self.rm.unhealthy.retain(|(_, other)| *other != slot);
        let entry = &mut self.slots[slot as usize];
        if let (Some(machine), Some(account)) = (entry.machine.take(), self.record.accounts.get_mut(&entry.group)) {
            machine.settle(now, minimum, account);
        }
        self.recount(slot);
        self.list_changed();
    }

    /// At the end of the run: all machines are billed up to now.
    pub(super) fn close_machines(&mut self) {
        let (now, minimum) = (self.now, self.rules.minimum_billed);
        for entry in &self.slots {
            if let (Some(machine), Some(account)) = (&entry.machine, self.record.accounts.get_mut(&entry.group)) {
                machine.settle(now, minimum, account);
            }
        }
    }

    /// The cloud's list will show that something has changed.
    pub(super) fn list_changed(&mut self) {
        if !std::mem::replace(&mut self.cloud.list_is_stale, true) && self.rules.list_lag > 0 {
            // Nobody who skips idle stretches may skip this.
            self.events.push(self.now + self.rules.list_lag, Event::ListCatchesUp);
        }
    }

    /// What one worker of the first group offers: demand is counted in these.
    pub(super) fn first_worker(&self) -> Resources {
        self.scenario.cloud.groups.values().next().map(|model| model.worker).unwrap_or_default()
    }
}

/// A length of time drawn.
fn delay(rng: &mut Rng, delay: &Delay) -> Ms {
    let in_ms = |duration: Duration| ms(duration) as f64;
    match delay {
        Delay::Fixed(time) => ms(*time),
        Delay::Tail { median, p95 } => to_ms(rng.log_normal(in_ms(*median), in_ms(*p95))),
        Delay::List(times) => {
            let index = rng.below(times.len() as u64);
            usize::try_from(index).ok().and_then(|index| times.get(index)).map_or(0, |time| ms(*time))
        }
    }
}
