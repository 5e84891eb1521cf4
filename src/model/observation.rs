//! What the ResourceManager said at one instant.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::Resources;

/// Nodes, applications and cluster metrics of one look at the ResourceManager. When that was, the situation says that
/// it is part of: a look that shows nothing new is the same observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Observation {
    /// When the active ResourceManager started or became active, in ms since 1970 (`/info` `startedOn`):
    /// another value means a restart or a failover.
    pub started_on_ms: i64,
    /// Hadoop's version, as the ResourceManager tells it.
    pub version: String,
    /// Cluster-wide figures.
    pub metrics: ClusterMetrics,
    /// One entry a host: where a host has several NodeManager ids, the active one, else the newest.
    pub nodes: Vec<Arc<Node>>,
    /// Applications that are accepted or running.
    pub applications: Vec<Arc<Application>>,
}

impl Observation {
    /// The node of this host.
    pub fn node(&self, host: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.id.host == host).map(Arc::as_ref)
    }

    /// How many application masters run on this host.
    pub fn application_masters(&self, host: &str) -> usize {
        self.applications.iter().filter(|app| app.master_host.as_deref() == Some(host)).count()
    }
}

/// `/metrics`, and the pending GPUs that it does not tell (from the applications' asks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterMetrics {
    /// What applications ask for and have not got: memory and cores from `/metrics`, GPUs from the asks.
    /// A negative figure of YARN's is zero here.
    pub pending: Resources,
    /// Free on all nodes that are up.
    pub available: Resources,
    /// In use on all nodes.
    pub allocated: Resources,
    /// Held back for containers that are too large for what is free.
    pub reserved: Resources,
    /// Containers asked for and not placed.
    pub containers_pending: u64,
    /// Containers that run.
    pub containers_allocated: u64,
}

/// A NodeManager's identity, `host:port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId {
    /// What YARN calls the host (`nodeHostName`): the word in the exclude file.
    pub host: String,
    /// The NodeManager's port; -1 for a host that was excluded before the ResourceManager ever saw it.
    pub port: i32,
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// One NodeManager as the ResourceManager sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Node {
    /// Its identity.
    pub id: NodeId,
    /// Its state.
    pub state: NodeState,
    /// What it may hand out. Shrinks to what is used while it drains, to almost nothing while it is cordoned.
    pub total: Resources,
    /// What its containers hold.
    pub used: Resources,
    /// Containers on it.
    pub containers: u32,
    /// Why it is unhealthy, where YARN says so.
    #[serde(default)]
    pub health_report: String,
}

impl Node {
    /// What is free, never negative.
    pub fn available(&self) -> Resources {
        self.total.saturating_sub(self.used)
    }

    /// Whether `cordon` has shrunk it: it may hand out next to nothing, or less than it has handed out.
    pub fn is_cordoned(&self) -> bool {
        self.state == NodeState::Running && (self.total.memory_mb <= 1 || self.total.memory_mb < self.used.memory_mb)
    }

    /// What a cordon leaves a node that offers `full` in health: nothing where it is idle; else what one of its
    /// containers holds on average, which is less than what all of them hold and not less than the smallest.
    ///
    /// A NodeManager keeps what it was cut down to. A ResourceManager that it registers with anew, after a restart or
    /// a failover, has it shut down where that is less than a container must have, and all its containers die
    /// (`yarn.scheduler.minimum-allocation-mb` and `-vcores`; measured on 3.3.6). Half the node is its bound, so that
    /// a cordon can be told from a node that one large container fills.
    pub fn cordon_leaves(&self, full: Resources) -> Resources {
        let share = |used: u64, full: u64| used.checked_div(u64::from(self.containers)).unwrap_or(0).min(full / 2);
        Resources::new(share(self.used.memory_mb, full.memory_mb), share(self.used.vcores, full.vcores), 0)
    }
}

/// YARN's node states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NodeState {
    /// Registered, not yet heard of again.
    New,
    /// Takes containers.
    Running,
    /// Up, but its health check fails: takes no containers.
    Unhealthy,
    /// Draining.
    Decommissioning,
    /// Drained or excluded; its NodeManager is told to stop.
    Decommissioned,
    /// Not heard of for the expiry interval.
    Lost,
    /// Registered again under the same id.
    Rebooted,
    /// Its NodeManager said goodbye.
    Shutdown,
    /// A word that this version of ours does not know: never counted as capacity.
    Unknown,
}

impl NodeState {
    /// Whether the ResourceManager still hears of the node (its containers may run).
    pub fn is_active(self) -> bool {
        match self {
            Self::New | Self::Running | Self::Unhealthy | Self::Decommissioning => true,
            Self::Decommissioned | Self::Lost | Self::Rebooted | Self::Shutdown | Self::Unknown => false,
        }
    }

    /// Whether the ResourceManager has given the node up: nothing that YARN would wait for runs there. A word that we
    /// do not know says neither that nor that the node is active.
    pub fn is_gone(self) -> bool {
        match self {
            Self::Decommissioned | Self::Lost | Self::Rebooted | Self::Shutdown => true,
            Self::New | Self::Running | Self::Unhealthy | Self::Decommissioning | Self::Unknown => false,
        }
    }
}

/// An application that is accepted or running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Application {
    /// `application_…`.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// `TONY`, `SPARK`, `MAPREDUCE`, …
    pub application_type: String,
    /// Its queue, with or without the leading `root.`, as this Hadoop writes it.
    pub queue: String,
    /// Whether its application master has registered (`RUNNING`) or not yet (`ACCEPTED`).
    pub running: bool,
    /// The host of its application master, once placed.
    pub master_host: Option<String>,
    /// Containers that it holds; `None` where YARN does not say.
    pub running_containers: Option<u32>,
    /// Its unmet asks.
    pub asks: Vec<Ask>,
}

/// An unmet resource request: how many containers of which size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// How many containers.
    pub containers: u32,
    /// The size of each.
    pub resources: Resources,
    /// YARN's priority of the request; TonY gives each job type its own.
    pub priority: i32,
}
