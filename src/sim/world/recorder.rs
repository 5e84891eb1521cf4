//! What is written down of a run as it goes.

use std::collections::BTreeMap;

use super::{World, packing, view::typical};
use crate::{
    model::{GroupName, Resources},
    sim::{
        Ms,
        outcome::{Account, Counts, GroupFacts, JobOutcome, Machines, Step},
        scenario::Scenario,
        workload::{Job, Work},
    },
};

/// The run's record so far.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) steps: Vec<Step>,
    pub(super) machines: Machines,
    pub(super) waiting: u32,
    pub(super) running: u32,
    /// Jobs whose asks YARN refused.
    pub(super) rejected: u32,
    /// When a job last ended.
    pub(super) last_end: Ms,
    pub(super) accounts: BTreeMap<GroupName, Account>,
    pub(super) counts: Counts,
    /// Something has changed since the last step.
    pub(super) changed: bool,
    /// What is held and asked for has changed since it was last packed, and how many workers it filled then.
    pub(super) demand_changed: bool,
    pub(super) demand_workers: u32,
}

impl Recorder {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let account = |worker: Resources| {
            let units_per_machine = if worker.gpus > 0 { worker.gpus } else { worker.memory_mb };
            Account { units_per_machine, ..Account::default() }
        };
        let accounts = scenario.cloud.groups.iter().map(|(name, group)| (*name, account(group.worker)));
        Self {
            steps: Vec::new(),
            machines: Machines::default(),
            waiting: 0,
            running: 0,
            rejected: 0,
            last_end: 0,
            accounts: accounts.collect(),
            counts: Counts::default(),
            changed: false,
            demand_changed: false,
            demand_workers: 0,
        }
    }
}

/// What the world hands over at the end.
#[derive(Debug)]
pub struct Closed {
    /// One for each job.
    pub jobs: Vec<JobOutcome>,
    /// The cluster as it changed.
    pub steps: Vec<Step>,
    /// What was paid for.
    pub accounts: BTreeMap<GroupName, Account>,
    /// What a worker of each group is.
    pub groups: BTreeMap<GroupName, GroupFacts>,
    /// What was counted.
    pub counts: Counts,
    /// Jobs whose asks YARN refused.
    pub rejected: u32,
}

impl World {
    /// Writes the cluster down as it is now, where it has changed.
    pub(super) fn write_step(&mut self) {
        if !std::mem::take(&mut self.record.changed) {
            return;
        }
        if std::mem::take(&mut self.record.demand_changed) {
            let sizes = self.demand.iter().rev().map(|(size, count)| (*size, *count));
            self.record.demand_workers = packing::workers_needed(sizes, self.first_worker());
        }
        let record = &mut self.record;
        let step = Step {
            at_ms: self.now,
            pending: self.pending,
            demand_workers: record.demand_workers,
            machines: record.machines,
            jobs_waiting: record.waiting,
            jobs_running: record.running,
        };
        record.counts.peak_machines = record.counts.peak_machines.max(record.machines.total());
        match record.steps.last_mut() {
            Some(last) if Step { at_ms: step.at_ms, ..*last } == step => {}
            Some(last) if last.at_ms == step.at_ms => *last = step,
            _ => record.steps.push(step),
        }
    }

    /// What was counted so far.
    pub fn counts(&mut self) -> &mut Counts {
        &mut self.record.counts
    }

    /// Ends the run: what still runs is booked up to now.
    pub fn close(mut self) -> Closed {
        self.write_step();
        self.close_containers();
        self.close_machines();
        let jobs = self.workload.jobs.iter().enumerate().map(|(index, job)| self.job_outcome(index, job)).collect();
        let groups = self.scenario.cloud.groups.iter().map(|(name, model)| {
            let facts = GroupFacts {
                worker: model.worker,
                price_per_hour: model.price_per_hour,
                boot_ms: super::ms(typical(&model.boot)),
                minimum_billed_ms: self.rules.minimum_billed,
            };
            (*name, facts)
        });
        let groups = groups.collect();
        let Recorder { steps, accounts, counts, rejected, .. } = self.record;
        Closed { jobs, steps, accounts, groups, counts, rejected }
    }

    fn job_outcome(&self, index: usize, job: &Job) -> JobOutcome {
        let app = self.apps.get(index);
        JobOutcome {
            name: job.name.clone(),
            application_type: job.application_type.clone(),
            queue: job.queue.clone(),
            is_gang: job.is_gang(),
            size: job.full_size(),
            containers: containers(&job.work),
            submit_ms: job.submit_ms,
            start_ms: app.and_then(|app| app.started_at),
            end_ms: app.and_then(|app| app.ended_at),
            succeeded: app.is_some_and(|app| app.succeeded),
            restarts: app.map_or(0, |app| app.restarts),
            containers_lost: app.map_or(0, |app| app.containers_lost),
            work: work(&job.work),
        }
    }
}

/// How many containers a job has at its largest, its master apart.
fn containers(work: &Work) -> u32 {
    match work {
        Work::Gang { groups, .. } => groups.iter().map(|group| group.containers).sum(),
        Work::Stages(stages) => stages.iter().map(|stage| stage.tasks).max().unwrap_or(0),
        Work::Executors(executors) => executors.max,
    }
}

/// GPUs times ms, or MB times ms where a job asks for no GPU.
fn work(work: &Work) -> u128 {
    let parts: Vec<(Resources, u64, u64)> = match work {
        Work::Gang { groups, duration_ms } => {
            groups.iter().map(|group| (group.resources, u64::from(group.containers), *duration_ms)).collect()
        }
        Work::Stages(stages) => {
            stages.iter().map(|stage| (stage.resources, u64::from(stage.tasks), stage.task_ms)).collect()
        }
        Work::Executors(executors) => {
            let waves = u64::from(executors.tasks.div_ceil(executors.slots.max(1)));
            vec![(executors.resources, waves, executors.task_ms)]
        }
    };
    let sum = |units: fn(Resources) -> u64| -> u128 {
        parts.iter().map(|(size, count, ms)| u128::from(units(*size)) * u128::from(*count) * u128::from(*ms)).sum()
    };
    match sum(|size| size.gpus) {
        0 => sum(|size| size.memory_mb),
        gpus => gpus,
    }
}
