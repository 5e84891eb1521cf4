//! What the ResourceManager and the cloud tell of the world: the same shapes as a real cluster's.

use std::{collections::BTreeSet, sync::Arc};

use super::{AppId, SlotId, World, applications::Phase, machines::RmNode};
use crate::{
    model::{
        Application, Ask, Capabilities, Capacity, ClusterMetrics, Group, Instance, InstanceState, Node, NodeId,
        NodeState, Observation, Readiness, Resources, WorkerTemplate,
    },
    sim::{
        Ms,
        scenario::{Delay, Fault, Scenario},
    },
};

/// The port of every NodeManager.
const PORT: i32 = 8041;

/// The version that the simulated ResourceManager gives as its own.
const VERSION: &str = "simulated";

/// The ResourceManager's own state.
#[derive(Debug)]
pub(super) struct ResourceManager {
    pub(super) is_up: bool,
    pub(super) started_on_ms: i64,
    /// After a start it hands out nothing before this.
    pub(super) grants_from: Ms,
    /// NodeManagers that came while it was down.
    pub(super) at_the_door: Vec<(SlotId, u32)>,
    /// The scenario's first instant, in ms since 1970.
    pub(super) epoch_ms: i64,
    /// What it shows; `None` once that has changed.
    pub(super) shown: Option<Arc<Observation>>,
    /// What it goes on to show while its answers are stale.
    pub(super) frozen: Option<Arc<Observation>>,
    /// Nodes that fail their health check, by the fault that has them fail.
    pub(super) unhealthy: BTreeSet<(usize, SlotId)>,
}

impl ResourceManager {
    /// One that has been up for an hour.
    pub(super) fn started(scenario: &Scenario) -> Self {
        let epoch_ms = scenario.start.timestamp_millis();
        Self {
            is_up: true,
            started_on_ms: epoch_ms - 3_600_000,
            grants_from: 0,
            at_the_door: Vec::new(),
            epoch_ms,
            shown: None,
            frozen: None,
            unhealthy: BTreeSet::new(),
        }
    }
}

impl World {
    /// What a look at YARN shows; the same `Arc` until something changes.
    pub fn observation(&mut self) -> Arc<Observation> {
        if let Some(frozen) = &self.rm.frozen {
            return Arc::clone(frozen);
        }
        if let Some(shown) = &self.rm.shown {
            return Arc::clone(shown);
        }
        let mut observation = self.observe_anew();
        if self.faults().any(|fault| *fault == Fault::ResourceManagerPartial) {
            cut(&mut observation);
        }
        let shown = Arc::new(observation);
        self.rm.shown = Some(Arc::clone(&shown));
        shown
    }

    fn observe_anew(&mut self) -> Observation {
        let mut nodes = Vec::with_capacity(self.slots.len());
        let mut available = Resources::default();
        for entry in &mut self.slots {
            let Some(node) = &mut entry.node else { continue };
            if node.state == NodeState::Running {
                available += node.free();
            }
            let figures = node.figures();
            let view = node.view.get_or_insert_with(|| Arc::new(node_view(&entry.host, &figures)));
            nodes.push(Arc::clone(view));
        }
        let live: Vec<_> = self.live.iter().copied().collect();
        let applications = live.into_iter().map(|app| self.application(app)).collect();
        let metrics = ClusterMetrics {
            pending: self.pending,
            available,
            allocated: self.allocated,
            reserved: Resources::default(),
            containers_pending: self.pending_containers,
            containers_allocated: self.allocated_containers,
        };
        Observation { started_on_ms: self.rm.started_on_ms, version: VERSION.into(), metrics, nodes, applications }
    }

    fn application(&mut self, id: AppId) -> Arc<Application> {
        if let Some(view) = &self.apps[id as usize].view {
            return Arc::clone(view);
        }
        let (app, job) = (&self.apps[id as usize], &self.workload.jobs[id as usize]);
        let master = app.master.and_then(|master| self.containers.get(master));
        let asked = app.asks.iter().filter(|ask| ask.containers > 0);
        let view = Arc::new(Application {
            id: format!("application_{}_{:04}", self.rm.epoch_ms, id + 1),
            name: job.name.to_string(),
            application_type: job.application_type.to_string(),
            queue: job.queue.to_string(),
            running: app.phase == Phase::Running,
            master_host: master.map(|master| self.slots[master.slot as usize].host.clone()),
            running_containers: u32::try_from(app.held.len() + usize::from(app.master.is_some())).ok(),
            asks: asked
                .map(|ask| Ask { containers: ask.containers, resources: ask.resources, priority: ask.priority })
                .collect(),
        });
        self.app(id).view = Some(Arc::clone(&view));
        view
    }

    /// What the cloud's list shows; the same `Arc` until something changes.
    pub fn capacity(&mut self) -> Arc<Capacity> {
        self.keep_list();
        self.cloud.lists.front().map(|(_, list)| Arc::clone(list)).unwrap_or_else(|| Arc::new(self.describe_anew()))
    }

    /// Keeps the list as it is now, where it has changed, and forgets those that are older than any that is shown. A
    /// list that lags is kept at every change, looked at or not.
    pub(super) fn keep_list(&mut self) {
        if std::mem::take(&mut self.cloud.list_is_stale) {
            let list = Arc::new(self.describe_anew());
            self.cloud.lists.push_back((self.now, list));
        }
        let seen = self.now.saturating_sub(self.rules.list_lag);
        while self.cloud.lists.get(1).is_some_and(|(since, _)| *since <= seen) {
            self.cloud.lists.pop_front();
        }
    }

    fn describe_anew(&self) -> Capacity {
        let cloud = &self.scenario.cloud;
        let groups = cloud.groups.iter().map(|(name, model)| {
            let slots = self.slots.iter().filter(|slot| slot.group == *name);
            let boot_time = Some(typical(&model.boot));
            let template = Some(WorkerTemplate { resources: model.worker, boot_time });
            (*name, Group { template, instances: slots.filter_map(instance).collect() })
        });
        let capabilities =
            Capabilities { deletes_named: cloud.deletes_named, overlaps: cloud.overlaps, resizes: false };
        Capacity { capabilities, groups: groups.collect(), identity: None, readiness: Readiness::Ready }
    }
}

fn instance(slot: &super::Slot) -> Option<Instance> {
    let machine = slot.machine.as_ref()?;
    let state = match machine {
        _ if machine.stopping => InstanceState::Stopping,
        _ if machine.dead_at.is_some() => InstanceState::Failed,
        _ if machine.up_at.is_none() => InstanceState::Provisioning,
        _ => InstanceState::Running,
    };
    Some(Instance { name: slot.host.clone(), host: slot.host.clone(), state })
}

/// The figures of a node that are shown.
struct Figures {
    state: NodeState,
    total: Resources,
    used: Resources,
    containers: usize,
    health_report: &'static str,
}

impl RmNode {
    fn figures(&self) -> Figures {
        // A draining node offers just what is in use.
        let total = if self.state == NodeState::Decommissioning { self.used } else { self.total };
        let Self { state, used, containers, health_report, .. } = self;
        Figures { state: *state, total, used: *used, containers: containers.len(), health_report }
    }
}

fn node_view(host: &str, figures: &Figures) -> Node {
    Node {
        id: NodeId { host: host.to_owned(), port: PORT },
        state: figures.state,
        total: figures.total,
        used: figures.used,
        containers: u32::try_from(figures.containers).unwrap_or(u32::MAX),
        health_report: figures.health_report.to_owned(),
    }
}

/// Half an answer: every other node is missing, and all asks.
fn cut(observation: &mut Observation) {
    let mut keep = false;
    observation.nodes.retain(|_| {
        keep = !keep;
        keep
    });
    for application in &mut observation.applications {
        let asks = Vec::new();
        *application = Arc::new(Application { asks, ..Application::clone(application) });
    }
}

/// What a group's boots take as a rule: a fixed time, the median.
pub(super) fn typical(delay: &Delay) -> std::time::Duration {
    match delay {
        Delay::Fixed(time) => *time,
        Delay::Tail { median, .. } => *median,
        Delay::List(times) => {
            let mut times = times.clone();
            times.sort_unstable();
            times.get(times.len() / 2).copied().unwrap_or_default()
        }
    }
}
