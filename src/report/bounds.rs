//! What the same jobs would cost at the least: the work alone (W), and a cluster that foresees everything and lets
//! nobody wait (OPT0). Integers throughout: the bounds are exact.
//!
//! # The model
//! A job holds its full size from its submission on (a gang its containers; a stage its tasks, as many at once as the
//! largest cluster holds; executors likewise). Masters, start-up times, the least that is billed and the time that a
//! deletion takes are left out: each of them only adds to a real bill. Jobs of which a container fits no worker, or
//! whose gang is larger than the largest cluster, are left out, too. Everything is cut off at the run's end.
//!
//! The yardstick is one machine that is at least as good as any group's: the largest worker, resource by resource, and
//! the shortest boot. With one group, or alike ones, it is that worker. So many are needed as the scarcest resource
//! asks for: `n(t) = max over resources of ceil(D(t) / G)`, whoever might be moved for free.
//!
//! A policy that lets jobs wait may go below OPT0, never below W; a run that leaves jobs unfinished may go below both.

use crate::{
    model::Resources,
    sim::{
        Ms,
        outcome::Outcome,
        workload::{Job, Work, Workload},
    },
};

/// The bounds of a workload, in the yardstick machine's units times ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// Units of the yardstick machine: its GPUs, or its MB of memory where it has none.
    pub units_per_machine: u64,
    /// W: the work alone, on machines that are always full: `G * max over resources of (work / G of that resource)`,
    /// rounded down.
    pub work: u128,
    /// OPT0: nobody waits, everything is foreseen, containers move for free.
    pub opt0: u128,
    /// OPT0 where the policy's minimum is always paid for.
    pub opt0_with_minimum: u128,
    /// Jobs that are not in the bounds, because they could never run.
    pub left_out: usize,
}

/// What a job holds for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Since when.
    pub from_ms: Ms,
    /// Until when; not at that instant any more.
    pub until_ms: Ms,
    /// What.
    pub size: Resources,
}

/// The machine by which the bounds count, and what the run started from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Yardstick {
    /// What it offers.
    pub worker: Resources,
    /// What bringing one up costs, as a time for which it is paid.
    pub boot_ms: Ms,
    /// Machines that were up at the first instant: their boot is not paid for.
    pub initial: u64,
    /// Machines that are always paid for.
    pub minimum: u64,
    /// Most machines; bounds only how wide one job can spread. 0: no limit.
    pub maximum: u64,
    /// How long it is counted.
    pub end_ms: Ms,
}

impl Yardstick {
    /// The yardstick of a run. Without any group: a machine that offers nothing.
    pub fn of(outcome: &Outcome) -> Self {
        let groups = || outcome.groups.values();
        let most = |amount: fn(&Resources) -> u64| groups().map(|group| amount(&group.worker)).max().unwrap_or(0);
        Self {
            worker: Resources::new(most(|r| r.memory_mb), most(|r| r.vcores), most(|r| r.gpus)),
            boot_ms: groups().map(|group| group.boot_ms).min().unwrap_or(0),
            initial: outcome.steps.first().map_or(0, |step| step.machines.up().into()),
            minimum: outcome.min_workers.into(),
            maximum: outcome.max_workers.into(),
            end_ms: outcome.end_ms,
        }
    }

    /// Its units: GPUs, or MB of memory where it has none.
    pub fn units(&self) -> u64 {
        if self.worker.gpus > 0 { self.worker.gpus } else { self.worker.memory_mb }
    }

    /// How many containers of this size run at once on all machines that there may be; at least 1.
    fn most_at_once(&self, container: Resources) -> u64 {
        if self.maximum == 0 {
            return u64::MAX;
        }
        let on_one = [
            (container.memory_mb, self.worker.memory_mb),
            (container.vcores, self.worker.vcores),
            (container.gpus, self.worker.gpus),
        ];
        let on_one = on_one.iter().filter_map(|(asked, offered)| offered.checked_div(*asked)).min();
        on_one.map_or(u64::MAX, |containers| containers.saturating_mul(self.maximum)).max(1)
    }

    /// Machines for so much, whoever might be moved for free.
    fn machines(&self, demand: &[u128; 3]) -> u64 {
        let offered = amounts(self.worker);
        let needed =
            demand.iter().zip(offered).map(|(asked, offered)| if offered == 0 { 0 } else { asked.div_ceil(offered) });
        u64::try_from(needed.max().unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

/// The bounds for a run's jobs. `O(n log n)` in the number of jobs and stages.
pub fn bounds(outcome: &Outcome, workload: &Workload) -> Bounds {
    let yardstick = Yardstick::of(outcome);
    let able: Vec<&Job> = workload.jobs.iter().filter(|job| could_run(job, outcome, &yardstick)).collect();
    let holds: Vec<Hold> = able.iter().flat_map(|job| holds(job, &yardstick)).collect();
    Bounds { left_out: workload.jobs.len() - able.len(), ..bounds_of(&holds, &yardstick) }
}

/// The bounds for what is held.
pub fn bounds_of(holds: &[Hold], yardstick: &Yardstick) -> Bounds {
    let units = yardstick.units();
    let needed = needed_machines(holds, yardstick);
    let paid = |minimum| machine_ms(&needed, minimum, yardstick) * u128::from(units);
    Bounds {
        units_per_machine: units,
        work: work(holds, yardstick),
        opt0: paid(0),
        opt0_with_minimum: paid(yardstick.minimum),
        left_out: 0,
    }
}

fn amounts(resources: Resources) -> [u128; 3] {
    [resources.memory_mb.into(), resources.vcores.into(), resources.gpus.into()]
}

/// Whether each container fits a worker of some group, and a gang the largest cluster.
fn could_run(job: &Job, outcome: &Outcome, yardstick: &Yardstick) -> bool {
    let fits = |container: &Resources| outcome.groups.values().any(|group| container.fits(group.worker));
    match &job.work {
        Work::Gang { groups, .. } => {
            let largest = yardstick.worker.times(if yardstick.maximum == 0 { u64::MAX } else { yardstick.maximum });
            groups.iter().all(|group| fits(&group.resources)) && job.full_size().fits(largest)
        }
        Work::Stages(stages) => stages.iter().all(|stage| fits(&stage.resources)),
        Work::Executors(executors) => fits(&executors.resources),
    }
}

/// What a job holds when nothing makes it wait: without its master, at its full size, from its submission on.
pub fn holds(job: &Job, yardstick: &Yardstick) -> Vec<Hold> {
    let mut holds = Vec::new();
    let mut at = job.submit_ms;
    let mut hold = |size: Resources, length: Ms| {
        let until = at.saturating_add(length);
        holds.push(Hold { from_ms: at, until_ms: until, size });
        at = until;
    };
    match &job.work {
        Work::Gang { duration_ms, .. } => hold(job.full_size(), *duration_ms),
        Work::Stages(stages) => {
            for stage in stages {
                let width = yardstick.most_at_once(stage.resources).min(stage.tasks.into());
                waves(stage.tasks.into(), width, |count, rounds| {
                    hold(stage.resources.times(count), stage.task_ms.saturating_mul(rounds));
                });
            }
        }
        Work::Executors(executors) => {
            let slots = u64::from(executors.slots.max(1));
            let width = yardstick.most_at_once(executors.resources).min(executors.max.max(1).into());
            waves(executors.tasks.into(), width * slots, |tasks, rounds| {
                hold(executors.resources.times(tasks.div_ceil(slots)), executors.task_ms.saturating_mul(rounds));
            });
        }
    }
    holds
}

/// So many tasks, `width` at once: full waves, then the rest.
fn waves(tasks: u64, width: u64, mut hold: impl FnMut(u64, u64)) {
    let width = width.max(1);
    if tasks >= width {
        hold(width, tasks / width);
    }
    if !tasks.is_multiple_of(width) {
        hold(tasks % width, 1);
    }
}

/// W: as if every machine were always full of what is scarcest.
fn work(holds: &[Hold], yardstick: &Yardstick) -> u128 {
    let mut total = [0_u128; 3];
    for hold in holds {
        let length = u128::from(hold.until_ms.min(yardstick.end_ms).saturating_sub(hold.from_ms));
        for (sum, amount) in total.iter_mut().zip(amounts(hold.size)) {
            *sum += amount * length;
        }
    }
    let units = u128::from(yardstick.units());
    let in_units = total.iter().zip(amounts(yardstick.worker)).map(|(work, offered)| match offered {
        0 => 0,
        offered => work * units / offered,
    });
    in_units.max().unwrap_or(0)
}

/// `n(t)`: since when how many machines are needed; times increase strictly, neighbours differ.
fn needed_machines(holds: &[Hold], yardstick: &Yardstick) -> Vec<(Ms, u64)> {
    let mut changes: Vec<(Ms, bool, Resources)> = Vec::with_capacity(2 * holds.len());
    for hold in holds {
        let until = hold.until_ms.min(yardstick.end_ms);
        if hold.from_ms < until {
            changes.push((hold.from_ms, true, hold.size));
            changes.push((until, false, hold.size));
        }
    }
    changes.sort_by_key(|(at, ..)| *at);
    let mut demand = [0_u128; 3];
    let mut needed = vec![(0, 0)];
    for together in changes.chunk_by(|a, b| a.0 == b.0) {
        // What comes is added before what goes is taken: the sums never fall below zero.
        for comes in [true, false] {
            for (_, _, size) in together.iter().filter(|(_, kind, _)| *kind == comes) {
                for (sum, amount) in demand.iter_mut().zip(amounts(*size)) {
                    *sum = if comes { *sum + amount } else { *sum - amount };
                }
            }
        }
        push_step(&mut needed, together[0].0, yardstick.machines(&demand));
    }
    needed
}

fn push_step(steps: &mut Vec<(Ms, u64)>, at: Ms, value: u64) {
    match steps.last_mut() {
        Some(last) if last.1 == value => {}
        Some(last) if last.0 == at => last.1 = value,
        _ => steps.push((at, value)),
    }
}

/// Levels of the cluster that are off, and since when; `None`: they have never been on.
struct Off {
    /// The lowest, counted from 0.
    from: u64,
    /// One above the highest.
    to: u64,
    since: Option<Ms>,
}

/// The least machine time for these needs: each level by itself is on when it is needed, boots when it is needed for
/// the first time (those that were up at the start do not), and bridges a gap or boots again, whichever is cheaper:
/// `sum over levels of [on + boot + sum over gaps of min(gap, boot)]`. Splitting a right-sizing problem into levels is
/// Lu and Chen's, "Simple and effective dynamic provisioning".
fn machine_ms(needed: &[(Ms, u64)], minimum: u64, yardstick: &Yardstick) -> u128 {
    let boot = yardstick.boot_ms;
    let mut off = vec![Off { from: yardstick.initial, to: u64::MAX, since: None }];
    if yardstick.initial > 0 {
        off.push(Off { from: 0, to: yardstick.initial, since: Some(0) });
    }
    let (mut total, mut on) = (0_u128, 0_u64);
    for (index, (at, count)) in needed.iter().enumerate() {
        let count = (*count).max(minimum);
        let until = needed.get(index + 1).map_or(yardstick.end_ms, |next| next.0);
        total += u128::from(count) * u128::from(until.saturating_sub(*at));
        if count < on {
            off.push(Off { from: count, to: on, since: Some(*at) });
        }
        let mut low = on;
        while low < count {
            let Some(range) = off.last_mut() else { break };
            let high = range.to.min(count);
            let each = range.since.map_or(boot, |since| boot.min(at - since));
            total += u128::from(high - low) * u128::from(each);
            low = high;
            range.from = high;
            if range.from == range.to {
                off.pop();
            }
        }
        on = count;
    }
    total
}
