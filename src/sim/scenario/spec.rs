//! The scenario file as written: everything optional, nothing checked but shapes.
//!
//! The comments here are what an editor shows (by way of the JSON Schema), so they speak to the writer of a scenario.
//! What the values mean together is `check`'s business. Jobs are in `workload::spec`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    GangGranting, Placement, QueueOrdering,
    expect::ExpectSpec,
    shapes::{DelaySpec, InstantSpec, StepSpec},
};
use crate::{
    model::GroupName,
    policy::{
        field::{Field, mapping_shapes, words},
        spec::DurationSpec,
    },
    sim::workload::spec::{ResourcesSpec, WorkloadSpec},
};

/// A scenario: a simulated YARN cluster, its cloud, its load, what goes wrong, and what is expected to come of it.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["cloud", "workload"]))]
pub struct ScenarioSpec {
    /// A short name for tables and titles. Default: `scenario`.
    #[schemars(example = &"conference")]
    pub name: Field<String>,
    /// What it shows, for people.
    pub description: Field<String>,
    /// Where all chance begins: the same seed gives the same run. Default 1.
    #[schemars(range(min = 0), extend("default" = 1))]
    pub seed: Field<i64>,
    /// The calendar time of the first instant, in UTC. The default is a Monday.
    #[schemars(extend("default" = "2026-01-05T00:00:00Z"))]
    pub start: Field<InstantSpec>,
    /// How long it goes on. Absent: until all jobs have ended, and `settle` after that.
    #[schemars(example = "2h", example = "7d")]
    pub duration: Field<DurationSpec>,
    /// How long it goes on after the last job where no duration is set: the cluster is to be seen shrinking.
    #[schemars(extend("default" = "30m"))]
    pub settle: Field<DurationSpec>,
    /// The daemon's --poll-interval: the longest time from a change in YARN to the decision on it.
    #[schemars(extend("default" = "5s"))]
    pub poll_interval: Field<DurationSpec>,
    /// The daemon's --ready-deadline: how long a worker may be not ready before it is replaced.
    #[schemars(extend("default" = "15m"))]
    pub ready_deadline: Field<DurationSpec>,
    /// The daemon's --restart-hold: how long to hold after another ResourceManager has taken over.
    #[schemars(extend("default" = "60s"))]
    pub restart_hold: Field<DurationSpec>,
    /// The policy file, relative to this file. Absent: one must be named on the command line.
    #[schemars(example = "../../policies/autoscale_tony.yaml")]
    pub policy: Field<String>,
    /// How YARN behaves.
    pub cluster: Field<ClusterSpec>,
    /// Where machines come from.
    pub cloud: Field<CloudSpec>,
    /// What is submitted.
    pub workload: Field<WorkloadSpec>,
    /// What goes wrong, and when.
    pub events: Field<Vec<Field<EventSpec>>>,
    /// What must have come of it: a figure, and the value or the bounds that it must have. A run that disagrees ends
    /// with its own exit code.
    pub expect: Field<ExpectSpec>,
}

/// How YARN behaves.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct ClusterSpec {
    /// How often a NodeManager reports and is given containers.
    #[schemars(extend("default" = "1s"))]
    pub heartbeat: Field<DurationSpec>,
    /// Most containers that one heartbeat hands out on one node. YARN's CapacityScheduler gives one where an
    /// application does not care which node it gets.
    #[schemars(range(min = 1), extend("default" = 1))]
    pub containers_per_heartbeat: Field<i64>,
    /// Which node gets a container. SPREAD: the one whose heartbeat comes next, as stock YARN does. PACK: the fullest
    /// one on which it fits.
    #[schemars(extend("default" = "SPREAD"))]
    pub placement: Field<Placement>,
    /// How gangs are granted. CONTAINER_BY_CONTAINER: as YARN does; a half-served gang holds what it has, and two of
    /// them can wait for each other for ever. ATOMIC: all or nothing.
    #[schemars(extend("default" = "CONTAINER_BY_CONTAINER"))]
    pub gang_granting: Field<GangGranting>,
    /// From the start of the application master's container to its first ask.
    #[schemars(extend("default" = "2s"))]
    pub master_start: Field<DurationSpec>,
    /// From a container's grant to its work.
    #[schemars(extend("default" = "1s"))]
    pub container_start: Field<DurationSpec>,
    /// The smallest container that YARN takes (yarn.scheduler.minimum-allocation-*). Default: 128 MB and 1 core.
    pub minimum_allocation: Field<ResourcesSpec>,
    /// After how long without a heartbeat a node is lost (yarn.nm.liveness-monitor.expiry-interval-ms).
    #[schemars(extend("default" = "10m"))]
    pub node_expiry: Field<DurationSpec>,
    /// Leaf queues of the CapacityScheduler. Default: one, `default`, with everything.
    #[schemars(length(min = 1))]
    pub queues: Field<Vec<Field<QueueSpec>>>,
}

/// A leaf queue of the CapacityScheduler.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["name"]))]
pub struct QueueSpec {
    /// Its name, without `root.`.
    #[schemars(example = &"default")]
    pub name: Field<String>,
    /// Its share of the cluster in percent. All of them add up to 100. Default: what the others leave, in equal parts.
    #[schemars(range(min = 0, max = 100))]
    pub capacity: Field<f64>,
    /// The most of the cluster that it may hold, in percent.
    #[schemars(range(min = 0, max = 100), extend("default" = 100))]
    pub maximum_capacity: Field<f64>,
    /// The part of the queue's most that application masters may hold. As in YARN's maximum-am-resource-percent, a
    /// fraction in spite of its name: 0.1, YARN's default, is 10 %. A small cluster with many gangs needs more.
    #[schemars(range(min = 0, max = 1), extend("default" = 0.1))]
    pub maximum_am_resource_percent: Field<f64>,
    /// Which application is served first. FIFO: the one that came first. FAIR: the one that holds least.
    #[schemars(extend("default" = "FIFO"))]
    pub ordering_policy: Field<QueueOrdering>,
}

/// Where machines come from.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["primary"]))]
pub struct CloudSpec {
    /// Whether a second order may be given while one is under way, as instance groups allow. Dataproc does not.
    #[schemars(extend("default" = false))]
    pub overlapping_operations: Field<bool>,
    /// Whether it deletes the workers that are named.
    #[schemars(extend("default" = true))]
    pub deletes_named: Field<bool>,
    /// From an order to its machines being up and billed; the rest of the boot time comes after it. Default: 20s, or
    /// the shortest boot time.
    pub machine_start: Field<DurationSpec>,
    /// How long an operation that creates is under way. Absent: until its machines have registered with YARN.
    pub create_time: Field<DurationSpec>,
    /// How long an operation that deletes is under way; machines are billed until its end.
    #[schemars(extend("default" = "30s"))]
    pub delete_time: Field<DurationSpec>,
    /// How much older than the truth the cloud's own description is.
    #[schemars(extend("default" = "0s"))]
    pub list_lag: Field<DurationSpec>,
    /// The shortest time that is billed for a machine.
    #[schemars(extend("default" = "60s"))]
    pub minimum_billed: Field<DurationSpec>,
    /// Most machines in all; orders for more are refused for quota. Absent: no limit.
    #[schemars(range(min = 0))]
    pub quota: Field<i64>,
    /// The primary workers.
    pub primary: Field<CloudGroupSpec>,
    /// The secondary workers. Absent: there are none.
    pub secondary: Field<CloudGroupSpec>,
}

/// One worker group.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["worker"]))]
pub struct CloudGroupSpec {
    /// What one worker's NodeManager offers.
    pub worker: Field<ResourcesSpec>,
    /// Workers at the start, registered and idle. Default: 2 primary ones, no secondary ones.
    #[schemars(range(min = 0))]
    pub initial: Field<i64>,
    /// From an order to the worker's registration with YARN: a duration, a median with a 95th percentile (log-normal),
    /// or a list of which each is as likely as the others.
    #[schemars(extend("default" = "3m"))]
    pub boot_time: Field<DelaySpec>,
    /// The price of one worker for an hour, in any currency. With the default, costs are machine hours.
    #[schemars(range(min = 0), extend("default" = 1))]
    pub price_per_hour: Field<f64>,
    /// Most machines of this group; orders for more are refused for quota. Absent: no limit.
    #[schemars(range(min = 0))]
    pub quota: Field<i64>,
    /// Mean time until the cloud takes a machine of the group away (exponential), as with spot machines. Absent: never.
    #[schemars(example = "6h")]
    pub mean_lifetime: Field<DurationSpec>,
}

/// Something that goes wrong.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["at", "kind"]))]
pub struct EventSpec {
    /// When, since the start.
    pub at: Field<DurationSpec>,
    /// What.
    pub kind: Field<EventKind>,
    /// For how long. Not for MACHINES_DIE and CLOCK_STEP, which are instants.
    pub lasts: Field<DurationSpec>,
    /// STOCK_OUT: the group that the cloud has no machines for. Default: primary.
    pub group: Field<GroupName>,
    /// SLOW_BOOTS: how many times as long boots take.
    #[schemars(range(min = 0))]
    pub factor: Field<f64>,
    /// DRIVER_FAILURE, BOOT_FAILURE: the share of the workers ordered meanwhile that fail, 0 to 1. Default: 1, all.
    #[schemars(range(min = 0, max = 1))]
    pub share: Field<f64>,
    /// MACHINES_DIE, NODES_UNHEALTHY: how many.
    #[schemars(range(min = 1))]
    pub count: Field<i64>,
    /// THROTTLED: what the cloud says of when to come back. Absent: nothing.
    pub retry_after: Field<DurationSpec>,
    /// CLOCK_STEP: by how much the controller's clock jumps; with a minus, back.
    #[schemars(example = "-5m")]
    pub by: Field<StepSpec>,
    /// CONTROLLER_CRASH: at which write or order after the instant, counted from 1, the controller is killed. Default 1.
    #[schemars(range(min = 1))]
    pub step: Field<i64>,
}

/// What goes wrong, by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// YARN answers nothing.
    ResourceManagerTimeout,
    /// YARN's answers are old.
    ResourceManagerStale,
    /// YARN's answers lack half.
    ResourceManagerPartial,
    /// The ResourceManager is replaced.
    ResourceManagerRestart,
    /// Boots take longer.
    SlowBoots,
    /// Workers come without GPUs.
    DriverFailure,
    /// Workers never come.
    BootFailure,
    /// No machines.
    StockOut,
    /// 429.
    Throttled,
    /// 5xx.
    CloudErrors,
    /// Answers to orders are lost.
    LostAcknowledgements,
    /// Machines die.
    MachinesDie,
    /// Nodes fail their health check.
    NodesUnhealthy,
    /// The clock jumps.
    ClockStep,
    /// The controller is killed.
    ControllerCrash,
}

words!(EventKind,
    "RESOURCE_MANAGER_TIMEOUT" => Self::ResourceManagerTimeout,
    "RESOURCE_MANAGER_STALE" => Self::ResourceManagerStale,
    "RESOURCE_MANAGER_PARTIAL" => Self::ResourceManagerPartial,
    "RESOURCE_MANAGER_RESTART" => Self::ResourceManagerRestart,
    "SLOW_BOOTS" => Self::SlowBoots,
    "DRIVER_FAILURE" => Self::DriverFailure,
    "BOOT_FAILURE" => Self::BootFailure,
    "STOCK_OUT" => Self::StockOut,
    "THROTTLED" => Self::Throttled,
    "CLOUD_ERRORS" => Self::CloudErrors,
    "LOST_ACKNOWLEDGEMENTS" => Self::LostAcknowledgements,
    "MACHINES_DIE" => Self::MachinesDie,
    "NODES_UNHEALTHY" => Self::NodesUnhealthy,
    "CLOCK_STEP" => Self::ClockStep,
    "CONTROLLER_CRASH" => Self::ControllerCrash,
);
words!(Placement, "SPREAD" => Self::Spread, "PACK" => Self::Pack);
words!(GangGranting, "CONTAINER_BY_CONTAINER" => Self::ContainerByContainer, "ATOMIC" => Self::Atomic);
words!(QueueOrdering, "FIFO" => Self::Fifo, "FAIR" => Self::Fair);
words!(GroupName, "primary" => Self::Primary, "secondary" => Self::Secondary);
mapping_shapes!(ScenarioSpec, ClusterSpec, QueueSpec, CloudSpec, CloudGroupSpec, EventSpec,);
