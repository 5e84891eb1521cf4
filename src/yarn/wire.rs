//! The ResourceManager's JSON (`/info`, `/metrics`, `/nodes`, `/apps`), read into the vocabulary.
//! Must not know where an answer came from, nor join one with another: that is [`super::observation`].
//!
//! Only what is used is modelled; everything else is skipped unread. That is not thrift alone: maps such as
//! `resourceSecondsMap` repeat their keys, which no map of ours would survive.

use serde::Deserialize;

pub use super::queues::scheduler_pending;
use super::{
    lenient::{List, Maybe, Num, Text},
    resource_row::{ResourceRow, figure},
};
use crate::model::{Application, Ask, Node, NodeId, NodeState, Resources};

/// Containers of one ask, at most. No application asks for more; it keeps sums over garbage from overflowing.
const MAX_CONTAINERS: u64 = 1 << 20;
/// Characters kept of a node's health report: a few failed directories, for people.
const MAX_HEALTH_REPORT: usize = 500;

/// An answer that is JSON and yet not what was asked for, or not JSON at all; the text says what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WireError(pub String);

/// `/ws/v1/cluster/info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// When this ResourceManager started or last became active, in ms since 1970.
    pub started_on_ms: i64,
    /// `ACTIVE`, `STANDBY`, `INITIALIZING`, …; empty where it is not told (no high availability).
    pub ha_state: String,
    /// Hadoop's version.
    pub version: String,
}

impl Info {
    /// Whether the answers of this ResourceManager may be believed. `INITIALIZING` may not: it has no nodes yet.
    pub fn is_active(&self) -> bool {
        self.ha_state.is_empty() || self.ha_state == "ACTIVE"
    }
}

/// `/ws/v1/cluster/metrics`, as far as it is used. Figures in MB, cores and containers; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Asked for and not given, without GPUs; `None` before 3.3.0, which does not tell.
    pub pending: Option<Resources>,
    /// In use, without GPUs.
    pub allocated: Resources,
    /// Held back, GPUs included where they are told.
    pub reserved: Resources,
    /// Containers asked for and not placed.
    pub containers_pending: u64,
    /// Containers that run.
    pub containers_allocated: u64,
    /// Nodes that take containers.
    pub active_nodes: u64,
}

/// A node of `/ws/v1/cluster/nodes`, and when YARN last heard of its health.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardNode {
    /// The node.
    pub node: Node,
    /// `lastHealthUpdate`, in ms since 1970.
    pub heard_ms: i64,
}

/// Reads `/info`.
pub fn info(body: &[u8]) -> Result<Info, WireError> {
    let answer: InfoAnswer = parse("/info", body)?;
    let info = answer.cluster_info.get().ok_or_else(|| WireError("/info without clusterInfo".into()))?;
    let started_on_ms = info.started_on.0.ok_or_else(|| WireError("/info without startedOn".into()))?;
    let version = if info.hadoop_version.0.is_empty() { info.resource_manager_version } else { info.hadoop_version };
    Ok(Info { started_on_ms, ha_state: info.ha_state.0.into_owned(), version: version.0.into_owned() })
}

/// Reads `/conf?name=…`: the property's value.
pub fn property(body: &[u8]) -> Result<String, WireError> {
    #[derive(Deserialize)]
    struct Answer {
        property: Property,
    }
    #[derive(Deserialize)]
    struct Property {
        value: String,
    }
    parse("/conf", body).map(|Answer { property: Property { value } }| value)
}

/// Reads `/metrics`. What is allocated and what is pending must be there: missing is not zero. What is available is not
/// taken from here ([`super::observation::observation`] says why).
pub fn metrics(body: &[u8]) -> Result<Metrics, WireError> {
    let answer: MetricsAnswer = parse("/metrics", body)?;
    let row = answer.cluster_metrics.get().ok_or_else(|| WireError("/metrics without clusterMetrics".into()))?;
    let needed = |figure: Num, name: &str| figure.0.ok_or_else(|| WireError(format!("/metrics without {name}")));
    needed(row.allocated_mb, "allocatedMB")?;
    needed(row.containers_pending, "containersPending")?;
    let pending_is_told = row.pending_mb.0.is_some();
    let reserved_gpus = row.total_reserved_resources_across_partition.get().map_or(0, |all| all.amounts().gpus);
    Ok(Metrics {
        pending: pending_is_told.then(|| Resources::new(figure(row.pending_mb), figure(row.pending_virtual_cores), 0)),
        allocated: Resources::new(figure(row.allocated_mb), figure(row.allocated_virtual_cores), 0),
        reserved: Resources::new(figure(row.reserved_mb), figure(row.reserved_virtual_cores), reserved_gpus),
        containers_pending: figure(row.containers_pending),
        containers_allocated: figure(row.containers_allocated),
        active_nodes: figure(row.active_nodes),
    })
}

/// Reads `/nodes`: every NodeManager id that YARN remembers, in its order; one host may come more than once.
pub fn nodes(body: &[u8]) -> Result<Vec<HeardNode>, WireError> {
    let answer: NodesAnswer = parse("/nodes", body)?;
    if matches!(answer.nodes, Maybe::Missing) && !is_empty_object(body) {
        return Err(WireError("/nodes without nodes".into()));
    }
    let rows = answer.nodes.get().map_or_else(Vec::new, |nodes| nodes.node.0);
    Ok(rows.into_iter().filter_map(NodeRow::into_node).collect())
}

/// Reads `/apps`: the accepted and the running ones, oldest first.
pub fn applications(body: &[u8]) -> Result<Vec<Application>, WireError> {
    let mut applications: Vec<Application> =
        app_rows::<AppRow>(body)?.into_iter().filter_map(AppRow::into_application).collect();
    // YARN lists them in no order; decisions must not depend on which one it is.
    applications.sort_by(|a, b| age(&a.id).cmp(&age(&b.id)));
    Ok(applications)
}

/// The rows of `/apps`, each read as far as the caller wants them.
pub(super) fn app_rows<'a, Row: Deserialize<'a>>(body: &'a [u8]) -> Result<Vec<Row>, WireError> {
    let answer: AppsAnswer<Row> = parse("/apps", body)?;
    if matches!(answer.apps, Maybe::Missing) && !is_empty_object(body) {
        return Err(WireError("/apps without apps".into()));
    }
    Ok(answer.apps.get().map_or_else(Vec::new, |apps| apps.app.0))
}

pub(super) fn parse<'a, T: Deserialize<'a>>(what: &str, body: &'a [u8]) -> Result<T, WireError> {
    serde_json::from_slice(body).map_err(|error| WireError(format!("the answer is no {what}: {error}")))
}

/// An empty list's wrapper may be left out altogether; any other object without it is an answer to something else.
pub(super) fn is_empty_object(body: &[u8]) -> bool {
    body.iter().filter(|byte| !byte.is_ascii_whitespace()).eq(b"{}")
}

/// Sorts `application_<start of the ResourceManager>_<number>` by age: the number is padded to four digits only.
fn age(id: &str) -> (u64, u64, &str) {
    let mut parts = id.split('_').skip(1).map(|part| part.parse().unwrap_or(u64::MAX));
    (parts.next().unwrap_or(u64::MAX), parts.next().unwrap_or(u64::MAX), id)
}

fn count(number: Num) -> u32 {
    u32::try_from(number.or_zero().min(MAX_CONTAINERS)).unwrap_or(u32::MAX)
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InfoAnswer<'a> {
    #[serde(borrow)]
    cluster_info: Maybe<ClusterInfo<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClusterInfo<'a> {
    started_on: Num,
    #[serde(borrow)]
    ha_state: Text<'a>,
    hadoop_version: Text<'a>,
    resource_manager_version: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetricsAnswer {
    cluster_metrics: Maybe<MetricsRow>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MetricsRow {
    #[serde(rename = "pendingMB")]
    pending_mb: Num,
    pending_virtual_cores: Num,
    #[serde(rename = "allocatedMB")]
    allocated_mb: Num,
    allocated_virtual_cores: Num,
    #[serde(rename = "reservedMB")]
    reserved_mb: Num,
    reserved_virtual_cores: Num,
    containers_pending: Num,
    containers_allocated: Num,
    active_nodes: Num,
    total_reserved_resources_across_partition: Maybe<ResourceRow>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodesAnswer<'a> {
    #[serde(borrow)]
    nodes: Maybe<NodeRows<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeRows<'a> {
    #[serde(borrow)]
    node: List<NodeRow<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeRow<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    node_host_name: Text<'a>,
    state: Text<'a>,
    last_health_update: Num,
    health_report: Text<'a>,
    num_containers: Num,
    #[serde(rename = "usedMemoryMB")]
    used_memory_mb: Num,
    #[serde(rename = "availMemoryMB")]
    avail_memory_mb: Num,
    used_virtual_cores: Num,
    available_virtual_cores: Num,
    used_resource: Maybe<ResourceRow>,
    available_resource: Maybe<ResourceRow>,
    total_resource: Maybe<ResourceRow>,
}

impl NodeRow<'_> {
    fn into_node(self) -> Option<HeardNode> {
        let (id_host, port) = self.id.0.rsplit_once(':').unwrap_or((&self.id.0, ""));
        let host = if self.node_host_name.0.is_empty() { id_host } else { &self.node_host_name.0 };
        if host.is_empty() {
            return None;
        }
        let id = NodeId { host: host.to_owned(), port: port.parse().unwrap_or(-1) };
        let state = node_state(&self.state.0);
        let health_report = match state {
            NodeState::Unhealthy => self.health_report.0.chars().take(MAX_HEALTH_REPORT).collect(),
            _ => String::new(),
        };
        let (containers, heard_ms) = (count(self.num_containers), self.last_health_update.0.unwrap_or(0));
        let (used, total) = self.amounts();
        Some(HeardNode { node: Node { id, state, total, used, containers, health_report }, heard_ms })
    }

    /// Used and total. Before 3.3.0 there is no total: it is what is used and what is free, which may be negative.
    fn amounts(self) -> (Resources, Resources) {
        let used = self.used_resource.get().unwrap_or(ResourceRow::of(self.used_memory_mb, self.used_virtual_cores));
        if let Maybe::There(total) = self.total_resource {
            return (used.amounts(), total.amounts());
        }
        let free = ResourceRow::of(self.avail_memory_mb, self.available_virtual_cores);
        let free = self.available_resource.get().unwrap_or(free);
        (used.amounts(), used.plus(free).amounts())
    }
}

fn node_state(word: &str) -> NodeState {
    match word {
        "NEW" => NodeState::New,
        "RUNNING" => NodeState::Running,
        "UNHEALTHY" => NodeState::Unhealthy,
        "DECOMMISSIONING" => NodeState::Decommissioning,
        "DECOMMISSIONED" => NodeState::Decommissioned,
        "LOST" => NodeState::Lost,
        "REBOOTED" => NodeState::Rebooted,
        "SHUTDOWN" => NodeState::Shutdown,
        _ => NodeState::Unknown,
    }
}

#[derive(Deserialize)]
#[serde(default, bound = "Row: Deserialize<'de>")]
struct AppsAnswer<Row> {
    apps: Maybe<AppRows<Row>>,
}

#[derive(Deserialize)]
#[serde(default, bound = "Row: Deserialize<'de>")]
struct AppRows<Row> {
    app: List<Row>,
}

impl<Row> Default for AppsAnswer<Row> {
    fn default() -> Self {
        Self { apps: Maybe::default() }
    }
}

impl<Row> Default for AppRows<Row> {
    fn default() -> Self {
        Self { app: List::default() }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AppRow<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    name: Text<'a>,
    application_type: Text<'a>,
    queue: Text<'a>,
    state: Text<'a>,
    master_node_id: Text<'a>,
    am_host_http_address: Text<'a>,
    running_containers: Num,
    resource_requests: List<AskRow<'a>>,
}

impl AppRow<'_> {
    fn into_application(self) -> Option<Application> {
        let running = match self.state.0.as_ref() {
            "RUNNING" => true,
            "ACCEPTED" => false,
            _ => return None,
        };
        // `masterNodeId` since 3.2; the web address of the same node before.
        let master = [&self.master_node_id.0, &self.am_host_http_address.0].into_iter().find(|at| !at.is_empty());
        let master_host = master.map(|at| at.rsplit_once(':').map_or(at.as_ref(), |(host, _)| host).to_owned());
        // -1: not told, or not yet.
        let running_containers = self.running_containers.0.and_then(|n| u32::try_from(n).ok());
        Some(Application {
            id: self.id.0.into_owned(),
            name: self.name.0.into_owned(),
            application_type: self.application_type.0.into_owned(),
            queue: self.queue.0.into_owned(),
            running,
            master_host,
            running_containers,
            asks: self.resource_requests.0.iter().filter_map(AskRow::ask).collect(),
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct AskRow<'a> {
    priority: Num,
    #[serde(borrow)]
    resource_name: Text<'a>,
    capability: Maybe<ResourceRow>,
    num_containers: Num,
}

impl AskRow<'_> {
    /// The ask, unless it is empty or repeats another one: an ask with a wish for hosts comes once for each host,
    /// once for each rack and once as `*`. One with placement constraints comes once, without a name.
    pub fn ask(&self) -> Option<Ask> {
        let containers = count(self.num_containers);
        let once = matches!(self.resource_name.0.as_ref(), "*" | "");
        let Maybe::There(capability) = &self.capability else { return None };
        let priority = self.priority.0.and_then(|n| i32::try_from(n).ok()).unwrap_or(0);
        (once && containers > 0).then(|| Ask { containers, resources: capability.amounts(), priority })
    }
}
