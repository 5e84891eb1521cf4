//! The scenario as meant: every default filled, every bound checked. Holding a [`Scenario`] means that it is valid.
//!
//! | file | what it does |
//! |---|---|
//! | [`spec`], [`shapes`] | the file as written; its comments are what an editor shows |
//! | [`check`], [`queue_check`], [`cloud_check`], [`event_check`] | from as written to as meant |
//! | [`expect`] | the figures of a report, and what is expected of them |
//! | [`load`](mod@load) | all of these in order; the JSON Schema |
//!
//! Jobs, generators and traces are in `workload`.

pub mod check;
pub mod cloud_check;
pub mod event_check;
pub mod expect;
pub mod load;
pub mod queue_check;
pub mod shapes;
pub mod spec;

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, Utc};

pub use expect::{FIGURES, Unit};
pub use load::{load, looks_like_one, schema};

use super::workload::Job;
use crate::{
    controller::Settings,
    model::{GroupName, Resources},
};

/// A cluster, its cloud, its load, what goes wrong, and what is expected to come of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// A short name for tables and titles.
    pub name: String,
    /// What it shows, for people.
    pub description: String,
    /// Where all chance begins.
    pub seed: u64,
    /// The calendar time of its first instant.
    pub start: DateTime<Utc>,
    /// How long it goes on; `None`: until all jobs have ended, and `settle` after that.
    pub duration: Option<Duration>,
    /// How long it goes on after the last job where no duration is set: the cluster is to be seen shrinking.
    pub settle: Duration,
    /// The daemon's settings, its poll interval among them.
    pub settings: Settings,
    /// The policy file, as written: relative to the scenario file. `None`: one must be named on the command line.
    pub policy: Option<String>,
    /// YARN.
    pub cluster: ClusterModel,
    /// Where machines come from.
    pub cloud: CloudModel,
    /// What is submitted.
    pub workload: WorkloadPlan,
    /// What goes wrong, in the order of time.
    pub events: Vec<FaultEvent>,
    /// What must have come of it; a run that disagrees ends with its own exit code.
    pub expect: Vec<Expectation>,
}

/// How YARN behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterModel {
    /// How often a NodeManager reports and is given containers.
    pub heartbeat: Duration,
    /// Most containers that one heartbeat hands out on one node (CapacityScheduler: one, where there is no locality).
    pub containers_per_heartbeat: u32,
    /// Which node gets a container.
    pub placement: Placement,
    /// Whether a gang is granted container by container, or whole.
    pub gang_granting: GangGranting,
    /// From the start of the application master's container, `container_start` after its grant, to its first ask.
    pub master_start: Duration,
    /// From a container's grant to its work.
    pub container_start: Duration,
    /// The smallest container that YARN takes, and the least that a registering node must offer.
    pub minimum_allocation: Resources,
    /// After how long without a heartbeat a node is lost (`nm.liveness-monitor.expiry-interval-ms`).
    pub node_expiry: Duration,
    /// Leaf queues; never empty. Capacities add up to 1.
    pub queues: Vec<Queue>,
}

/// Which node gets a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The one whose heartbeat comes next: stock YARN. Containers spread.
    Spread,
    /// The fullest one on which it fits.
    Pack,
}

/// How gangs are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GangGranting {
    /// Container by container: a half-served gang holds what it has. Two such gangs can wait for each other for ever.
    ContainerByContainer,
    /// All or nothing.
    Atomic,
}

/// A leaf queue of the CapacityScheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name, without `root.`.
    pub name: String,
    /// Its share of the cluster, 0 to 1.
    pub capacity: f64,
    /// The most it may hold, 0 to 1 of the cluster.
    pub max_capacity: f64,
    /// The share of the queue's most that application masters may hold (`maximum-am-resource-percent`), 0 to 1.
    pub max_master_share: f64,
    /// Which application is served first.
    pub ordering: QueueOrdering,
}

/// Which application of a queue is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOrdering {
    /// The one that was submitted first; later ones are served where it does not fit.
    Fifo,
    /// The one that holds least.
    Fair,
}

/// How the cloud behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudModel {
    /// Whether a second order may be given while one is under way (instance groups) or not (Dataproc).
    pub overlaps: bool,
    /// Whether it deletes the workers that are named.
    pub deletes_named: bool,
    /// From an order to its machines being up, and billed; the rest of a boot comes after it.
    pub machine_start: Duration,
    /// How long an operation that creates is under way; `None`: until its machines have registered with YARN or failed.
    pub create_time: Option<Duration>,
    /// How long an operation that deletes is under way; machines are billed until its end.
    pub delete_time: Duration,
    /// How much older than the truth a description is.
    pub list_lag: Duration,
    /// The shortest time that is billed for a machine.
    pub minimum_billed: Duration,
    /// Most machines in all; more are refused for quota.
    pub quota: Option<u32>,
    /// The worker groups.
    pub groups: BTreeMap<GroupName, CloudGroup>,
}

/// One worker group.
#[derive(Clone, Debug, PartialEq)]
pub struct CloudGroup {
    /// What one worker offers.
    pub worker: Resources,
    /// Workers at the start, registered and idle.
    pub initial: u32,
    /// From an order to a worker's registration with YARN.
    pub boot: Delay,
    /// The price of one worker for an hour, in any currency.
    pub price_per_hour: f64,
    /// Most machines of this group; more are refused for quota.
    pub quota: Option<u32>,
    /// Mean time until a machine of the group is taken away by the cloud (exponential); `None`: never.
    pub mean_lifetime: Option<Duration>,
}

/// How long something takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Fixed(Duration),
    /// Log-normal, by its median and its 95th percentile.
    Tail {
        /// Half are faster.
        median: Duration,
        /// One in twenty is slower.
        p95: Duration,
    },
    /// One of these, each as likely as the others. Never empty.
    List(Vec<Duration>),
}

/// Where the jobs come from; all parts are put together and sorted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkloadPlan {
    /// Written out.
    pub jobs: Vec<Job>,
    /// Drawn at random, from the scenario's seed.
    pub generators: Vec<super::workload::Generator>,
    /// Read from files.
    pub traces: Vec<super::workload::TraceSource>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultEvent {
    /// When, since the start.
    pub at: Duration,
    /// For how long; of no meaning where a fault is an instant.
    pub lasts: Duration,
    /// What.
    pub fault: Fault,
}

/// What goes wrong.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// YARN answers nothing, orders included.
    ResourceManagerTimeout,
    /// YARN's answers are those of the moment when this began.
    ResourceManagerStale,
    /// YARN's answers lack every other node and all applications' asks.
    ResourceManagerPartial,
    /// The ResourceManager is down, then another one takes over: its start is another, nodes register anew.
    ResourceManagerRestart,
    /// Boots ordered meanwhile take so many times as long.
    SlowBoots(f64),
    /// Workers ordered meanwhile register without their GPUs, this share of them.
    DriverFailure(f64),
    /// Workers ordered meanwhile never register, this share of them.
    BootFailure(f64),
    /// The cloud has no machines for this group: its creations fail.
    StockOut(GroupName),
    /// Orders are answered 429; the answer says when to come back, or does not.
    Throttled(Option<Duration>),
    /// Everything asked of the cloud is answered 5xx.
    CloudErrors,
    /// Orders are taken, and their answers lost.
    LostAcknowledgements,
    /// So many machines die at once, those with most containers first.
    MachinesDie(u32),
    /// So many nodes fail their health check.
    NodesUnhealthy(u32),
    /// The controller's clock jumps by so many milliseconds, and stays there.
    ClockStep(i64),
    /// The controller is killed at the n-th store write or order after this instant (counted from 1; before or after it
    /// takes effect, in turns), and started again when the fault ends.
    ControllerCrash(u32),
}

/// What must have come of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// Which figure, by its name in the report: `jobsSucceeded`, `waitP95`, …
    pub figure: String,
    /// Not less.
    pub min: Option<f64>,
    /// Not more.
    pub max: Option<f64>,
}
