//! From the ResourceManager's answers to one [`Observation`]: pure, so that every recorded answer is a test.
//! Must not know how the answers were fetched.

use std::sync::Arc;

use super::wire::{HeardNode, Info, Metrics, WireError};
use crate::model::{Application, ClusterMetrics, Node, NodeState, Observation, Resources};

/// The answers of one ResourceManager that make up one observation.
#[derive(Clone, Debug)]
pub struct Answers {
    /// `/info`.
    pub info: Info,
    /// `/metrics`.
    pub metrics: Metrics,
    /// `/nodes`.
    pub nodes: Vec<HeardNode>,
    /// `/apps`.
    pub applications: Vec<Application>,
    /// `/scheduler`, where it was asked because [`asks_are_hidden`].
    pub scheduler_pending: Option<Resources>,
}

/// Whether more containers are pending than the applications show asks for. On a cluster with access control lists
/// `/apps` hides the asks of other users' applications; `/metrics` and `/scheduler` still count them, and only
/// `/scheduler` knows their GPUs. (A moment may lie between the two answers: then `/scheduler` is read in vain.)
pub fn asks_are_hidden(metrics: &Metrics, applications: &[Application]) -> bool {
    metrics.containers_pending > asked(applications).1
}

/// Puts the answers together.
///
/// * One node a host: the active id, and among several the one heard of last.
/// * What is pending: memory and cores as `/metrics` says (from the asks before 3.3.0, which does not say); GPUs from
///   the asks, or from `/scheduler` where it knows of more.
/// * What is available: the free room of every running node, less what is reserved. That is what `/metrics` says, too,
///   as long as no node has more in use than it may hand out; but beside a node that was cordoned with containers on
///   it, `/metrics` takes the deficit from what the others have free, and says zero outright where it is the scarcest
///   resource that is overdrawn (GPUs, with the DominantResourceCalculator).
///
/// # Errors
/// `/nodes` lists no active node while `/metrics` counts some: one of the two answers is not to be believed.
pub fn observation(answers: Answers) -> Result<Observation, WireError> {
    let nodes = one_node_a_host(answers.nodes);
    if answers.metrics.active_nodes > 0 && !nodes.iter().any(|node| node.state.is_active()) {
        let count = answers.metrics.active_nodes;
        return Err(WireError(format!("/metrics counts {count} active nodes and /nodes lists none")));
    }
    let metrics = cluster_metrics(&answers.metrics, &nodes, &answers.applications, answers.scheduler_pending);
    Ok(Observation {
        started_on_ms: answers.info.started_on_ms,
        version: answers.info.version,
        metrics,
        nodes,
        applications: answers.applications.into_iter().map(Arc::new).collect(),
    })
}

/// The node of each host, sorted by host. A NodeManager that was restarted on another port leaves its old id behind.
pub fn one_node_a_host(mut heard: Vec<HeardNode>) -> Vec<Arc<Node>> {
    let rank = |heard: &HeardNode| (heard.node.state.is_active(), heard.heard_ms, heard.node.id.port);
    heard.sort_by(|a, b| a.node.id.host.cmp(&b.node.id.host).then_with(|| rank(b).cmp(&rank(a))));
    heard.dedup_by(|later, kept| later.node.id.host == kept.node.id.host);
    heard.into_iter().map(|heard| Arc::new(heard.node)).collect()
}

fn cluster_metrics(
    told: &Metrics,
    nodes: &[Arc<Node>],
    applications: &[Application],
    scheduler_pending: Option<Resources>,
) -> ClusterMetrics {
    let (asks, _) = asked(applications);
    let mut pending = told.pending.unwrap_or(asks);
    pending.gpus = asks.gpus.max(scheduler_pending.map_or(0, |pending| pending.gpus));
    let running = nodes.iter().filter(|node| node.state == NodeState::Running);
    let available = running.map(|node| node.available()).sum::<Resources>().saturating_sub(told.reserved);
    let active = nodes.iter().filter(|node| node.state.is_active());
    let allocated = Resources { gpus: active.map(|node| node.used.gpus).sum(), ..told.allocated };
    ClusterMetrics {
        pending,
        available,
        allocated,
        reserved: told.reserved,
        containers_pending: told.containers_pending,
        containers_allocated: told.containers_allocated,
    }
}

/// What applications ask for: resources and containers.
fn asked(applications: &[Application]) -> (Resources, u64) {
    let asks = applications.iter().flat_map(|application| &application.asks);
    asks.fold((Resources::default(), 0), |(resources, containers), ask| {
        (resources + ask.resources.times(ask.containers.into()), containers + u64::from(ask.containers))
    })
}
