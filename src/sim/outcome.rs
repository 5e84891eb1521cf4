//! What a run yields: everything that a report is made of, as it happened. Computes nothing of it.

use std::{collections::BTreeMap, sync::Arc};

use chrono::{DateTime, Utc};

use super::Ms;
use crate::model::{Action, GroupName, Reason, Resources, Workers};

/// One run of one scenario under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The scenario's name.
    pub scenario: String,
    /// The policy's name: its id, or its file.
    pub policy: String,
    /// Where all chance began.
    pub seed: u64,
    /// The calendar time of the first instant.
    pub start: DateTime<Utc>,
    /// How long it went on.
    pub end_ms: Ms,
    /// What a worker of each group is, and what it costs.
    pub groups: BTreeMap<GroupName, GroupFacts>,
    /// Fewest workers that the policy in force at the end asks for, over all groups.
    pub min_workers: u32,
    /// Most workers that it allows, over all groups.
    pub max_workers: u32,
    /// One for each job, in the order of submission.
    pub jobs: Vec<JobOutcome>,
    /// The cluster as it changed; each holds until the next one. The first is at 0, times increase strictly.
    pub steps: Vec<Step>,
    /// What was paid for, by group.
    pub accounts: BTreeMap<GroupName, Account>,
    /// The controller's decisions, in the order of time; looks that said the same are one.
    pub decisions: Vec<Told>,
    /// How often each reason was given, by its code, over all looks.
    pub reasons: BTreeMap<&'static str, u64>,
    /// What was counted.
    pub counts: Counts,
    /// Promises that were broken; empty, or a bug.
    pub violations: Vec<Violation>,
    /// Things that a reader of the figures must know: jobs that could never run, decisions left out for their number.
    pub remarks: Vec<String>,
}

/// What a worker of a group is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroupFacts {
    /// What it offers.
    pub worker: Resources,
    /// What it costs an hour.
    pub price_per_hour: f64,
    /// The middle of its boot time: the cost of bringing one up, for the bounds.
    pub boot_ms: Ms,
    /// The least that is billed for one.
    pub minimum_billed_ms: Ms,
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// Its name.
    pub name: Arc<str>,
    /// YARN's application type.
    pub application_type: Arc<str>,
    /// Its queue.
    pub queue: Arc<str>,
    /// Whether it is of no use before it has all its containers.
    pub is_gang: bool,
    /// All containers of a gang, the most of others; without the master.
    pub size: Resources,
    /// How many containers that is.
    pub containers: u32,
    /// When it was submitted.
    pub submit_ms: Ms,
    /// When it began to work: a gang as a whole, after its last restart; others with their first container.
    pub start_ms: Option<Ms>,
    /// When it ended; `None`: it still waited or ran at the end.
    pub end_ms: Option<Ms>,
    /// Whether it ended well.
    pub succeeded: bool,
    /// How often it had to start over.
    pub restarts: u32,
    /// Containers of it that were ended by others, its master included.
    pub containers_lost: u32,
    /// The work it is made of, at its full size without waiting: for the bounds. GPUs times ms, or MB times ms where it
    /// asks for no GPU.
    pub work: u128,
}

/// The cluster between two changes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// Since when.
    pub at_ms: Ms,
    /// What applications ask for and have not got.
    pub pending: Resources,
    /// Workers that all containers, held and asked for, would fill: packed first fit, largest first, on empty workers of
    /// the first group. An ask that fits none is not counted.
    pub demand_workers: u32,
    /// Machines, by what they are worth.
    pub machines: Machines,
    /// Jobs that have been submitted and do not work yet.
    pub jobs_waiting: u32,
    /// Jobs that work.
    pub jobs_running: u32,
}

/// Machines by what they are worth. Their sum is what exists or is ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machines {
    /// Ordered, not up: not billed yet.
    pub ordered: u32,
    /// Up, not registered with YARN.
    pub booting: u32,
    /// Take containers, with all their GPUs.
    pub ready: u32,
    /// Registered without their GPUs, unhealthy, lost, or never to register.
    pub broken: u32,
    /// Cordoned.
    pub cordoned: u32,
    /// Decommissioning.
    pub draining: u32,
    /// Decommissioned or being deleted.
    pub leaving: u32,
}

impl Machines {
    /// All that exist or are ordered.
    pub fn total(self) -> u32 {
        let Self { ordered, booting, ready, broken, cordoned, draining, leaving } = self;
        ordered + booting + ready + broken + cordoned + draining + leaving
    }

    /// Those that are paid for.
    pub fn up(self) -> u32 {
        self.total() - self.ordered
    }
}

/// What was paid for, in units times ms: a machine with GPUs counts its GPUs, one without its MB of memory.
/// `useful + lost + held + boot + idle + fragmentation = billed`, exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Units of one machine: its GPUs, or its MB where it has none.
    pub units_per_machine: u64,
    /// Everything that was paid for, with the rounding up to the least that is billed.
    pub billed: u128,
    /// Containers' work that counted (of jobs that still run at the end, too).
    pub useful: u128,
    /// Containers' work that was thrown away: killed, or done again.
    pub lost: u128,
    /// Held by containers that did not work: gangs that were not complete, reducers that waited for maps, idle executors,
    /// and what a machine that had died went on to hold until YARN noticed.
    pub held: u128,
    /// From a machine's being up to its registration with all its GPUs; whole lives of machines that never did.
    pub boot: u128,
    /// Registered, without any container; what a machine was billed for after its last use; the rounding up.
    pub idle: u128,
    /// Free beside containers: units that were left over on machines that worked.
    pub fragmentation: u128,
}

/// One decision, or looks in a row that said the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The first look.
    pub from_ms: Ms,
    /// The last one.
    pub to_ms: Ms,
    /// How many.
    pub looks: u64,
    /// What was ordered.
    pub actions: Vec<Action>,
    /// Why, and why not more; as the first look said it.
    pub reasons: Vec<Reason>,
    /// What went wrong or was noticed.
    pub notes: Vec<String>,
    /// How many workers the controller saw.
    pub workers: Option<Workers>,
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Looks of the controller, those that were skipped because nothing could change included.
    pub looks: u64,
    /// Events of the simulated world.
    pub events: u64,
    /// Machines that were ordered.
    pub ordered: u64,
    /// Machines that registered with YARN after an order.
    pub boots: u64,
    /// Machines that were deleted by order.
    pub deleted: u64,
    /// Nodes that were uncordoned or recommissioned instead of others being made.
    pub recommissions: u64,
    /// Containers that a decommission ended, in time or at its time-out.
    pub killed_by_drain: u64,
    /// Containers that were lost to faults: machines that died or were taken away, restarts of the ResourceManager.
    pub killed_by_fault: u64,
    /// Orders that the cloud refused or that failed.
    pub orders_failed: u64,
    /// How often the controller was killed and started again.
    pub controller_crashes: u64,
    /// Most machines at once, ordered ones included.
    pub peak_machines: u32,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When.
    pub at_ms: Ms,
    /// Which promise.
    pub promise: &'static str,
    /// What happened, for people.
    pub text: String,
}
