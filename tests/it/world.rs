//! A little deterministic world behind the controller's ports: a YARN cluster whose nodes boot, drain and run
//! containers, a provider with idempotent orders, a compare-and-swap store, a clock that plays the world while the
//! controller sleeps. Faults are levers; a crash is a future that never comes back. A full simulator comes later.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, VecDeque},
    future::Future,
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use chrono::{DateTime, TimeDelta, Utc};
use yarn_autoscaler::{
    model::{
        Capabilities, Capacity, ClusterMetrics, Decision, Group, GroupName, Instance, InstanceState, Intent, Node,
        NodeId, NodeState, Observation, Readiness, Resources, State, WorkerTemplate,
    },
    ports::{ErrorKind, PolicyChange, PortError},
};

use crate::fixtures::{at, noon};

/// What a worker holds.
pub const FULL: Resources = Resources::new(8192, 8, 1);
/// From the order to the registration with YARN.
const BOOT: TimeDelta = TimeDelta::seconds(30);
/// How long an operation at the provider takes.
const OPERATION: TimeDelta = TimeDelta::seconds(10);
/// By how much the list of a provider that lags behind does so.
const LIST_LAG: TimeDelta = TimeDelta::seconds(15);
/// How finely the world is played.
const STEP: TimeDelta = TimeDelta::milliseconds(500);

/// Something that happens at an instant.
type Event = (DateTime<Utc>, Box<dyn FnOnce(&mut World)>);

/// A container: its memory, how long it runs once placed, when it ends.
#[derive(Clone, Copy, Debug)]
pub struct Container {
    pub memory_mb: u64,
    pub runs: TimeDelta,
    pub ends_at: Option<DateTime<Utc>>,
}

/// A NodeManager.
#[derive(Clone, Debug)]
pub struct Nodemanager {
    pub state: NodeState,
    pub cordoned: bool,
    /// What the cordon has left it.
    pub left: Resources,
    pub containers: Vec<Container>,
    pub deadline: Option<DateTime<Utc>>,
}

/// A machine of the provider.
#[derive(Clone, Debug)]
pub struct Machine {
    pub state: InstanceState,
    pub registers_at: Option<DateTime<Utc>>,
    /// From when the provider's list shows it.
    pub shown_at: DateTime<Utc>,
}

/// An order that the provider has taken.
#[derive(Clone, Debug)]
pub struct Taken {
    pub intent: Intent,
    pub done_at: DateTime<Utc>,
    pub ended: bool,
    pub fails: Option<ErrorKind>,
}

/// What happens to an order.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// It is refused, and not taken.
    Refused(ErrorKind),
    /// It is taken, and the answer is lost.
    AnswerLost,
    /// It is taken, and ends with this failure and without effect.
    Fails(ErrorKind),
}

/// One tick as the journal was told of it.
#[derive(Clone, Debug)]
pub struct Told {
    pub at: DateTime<Utc>,
    pub decision: Decision,
    pub notes: Vec<String>,
    pub settled_until: Option<DateTime<Utc>>,
    /// What YARN and the provider have shown.
    pub seen: Option<(Arc<Observation>, Arc<Capacity>)>,
}

/// Everything outside the controller.
#[derive(Default)]
pub struct World {
    pub now: DateTime<Utc>,
    pub end: DateTime<Utc>,
    pub started_on_ms: i64,
    pub nodes: BTreeMap<String, Nodemanager>,
    pub excluded: BTreeSet<String>,
    pub waiting: VecDeque<Container>,
    pub killed: usize,
    pub machines: BTreeMap<String, Machine>,
    pub taken: BTreeMap<String, Taken>,
    pub made: u32,
    pub orders: Vec<(DateTime<Utc>, String)>,
    pub faults: VecDeque<Fault>,
    pub boot_fails: bool,
    /// New machines show in the provider's list only a while after their operation has ended.
    pub shows_late: bool,
    /// How long the provider takes to show its list.
    pub describe_takes: TimeDelta,
    /// This many machines are missing in the provider's next list.
    pub list_is_short_by: usize,
    pub never_done: bool,
    pub polls_fail: bool,
    pub yarn_fault: Option<ErrorKind>,
    /// Looks that show nothing new are handed out again, not made anew.
    pub same_looks: bool,
    pub last_observation: Option<Arc<Observation>>,
    pub last_capacity: Option<Arc<Capacity>>,
    /// Somebody gives all nodes their resources back between the look of a tick and the one before a drain.
    pub meddled_with: bool,
    /// On this many nodes one container gives way to a larger one right after they were given what they use.
    pub swaps_when_let_go: u32,
    /// This cordoned node cannot be given what it uses.
    pub never_let_go: Option<String>,
    /// Calls of the admin port go wrong like this.
    pub admin_fault: Option<ErrorKind>,
    /// When the admin port was called.
    pub admin_calls: Vec<DateTime<Utc>>,
    pub stored: State,
    pub generation: u64,
    pub save_faults: VecDeque<ErrorKind>,
    pub policies: VecDeque<PolicyChange>,
    pub journal: Vec<Told>,
    pub crash_at: Option<usize>,
    pub boundaries: usize,
    pub most_at_once: u32,
    events: Vec<Event>,
}

/// The world, shared by the ports.
pub type Shared = Rc<RefCell<World>>;

/// Runs a future that is always ready at once; `None` where it is not: the controller has died there.
pub fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

impl World {
    /// So many ready primary workers at noon, nothing waiting.
    pub fn with_workers(count: u32) -> Self {
        let mut world = Self { now: noon(), end: noon(), started_on_ms: 1, ..Self::default() };
        for _ in 0..count {
            let host = world.make(noon());
            world.nodes.insert(host.clone(), Nodemanager::new());
            if let Some(machine) = world.machines.get_mut(&host) {
                (machine.state, machine.registers_at) = (InstanceState::Running, None);
            }
        }
        world
    }

    pub fn share(self) -> Shared {
        Rc::new(RefCell::new(self))
    }

    /// At this second after noon, this happens.
    pub fn plan(&mut self, second: f64, event: impl FnOnce(&mut World) + 'static) {
        self.events.push((at(second), Box::new(event)));
        self.events.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    }

    /// Containers are asked for.
    pub fn ask(&mut self, count: usize, memory_mb: u64, runs_s: f64) {
        let runs = at(runs_s) - at(0.0);
        self.waiting.extend(std::iter::repeat_n(Container { memory_mb, runs, ends_at: None }, count));
    }

    /// Machines that exist and are not being deleted.
    pub fn size(&self) -> usize {
        self.machines.values().filter(|machine| machine.state != InstanceState::Stopping).count()
    }

    /// Plays the world until this instant.
    pub fn advance(&mut self, until: DateTime<Utc>) {
        while self.now < until {
            self.now = (self.now + STEP).min(until);
            while self.events.last().is_some_and(|(at, _)| *at <= self.now) {
                if let Some((_, event)) = self.events.pop() {
                    event(self);
                }
            }
            self.end_operations();
            self.boot();
            self.run_containers();
        }
    }

    fn make(&mut self, now: DateTime<Utc>) -> String {
        let host = format!("w-{}", self.made);
        self.made += 1;
        let shown_at = if self.shows_late { now + OPERATION + LIST_LAG } else { now };
        let registers_at = (!self.boot_fails).then_some(now + BOOT);
        self.machines.insert(host.clone(), Machine { state: InstanceState::Provisioning, registers_at, shown_at });
        self.most_at_once = self.most_at_once.max(u32::try_from(self.machines.len()).unwrap_or(u32::MAX));
        host
    }

    fn end_operations(&mut self) {
        let due: Vec<_> = self.taken.values_mut().filter(|order| !order.ended && order.done_at <= self.now).collect();
        let mut gone = Vec::new();
        for order in due {
            order.ended = true;
            if let Intent::Delete { instances, .. } = &order.intent {
                gone.extend(instances.clone());
            }
        }
        for host in gone {
            self.lose_machine(&host);
        }
    }

    /// A machine goes; what ran there is killed.
    pub fn lose_machine(&mut self, host: &str) {
        self.machines.remove(host);
        if let Some(node) = self.nodes.get_mut(host) {
            self.killed += node.containers.len();
            node.containers.clear();
            if node.state.is_active() {
                node.state = NodeState::Lost;
            }
        }
    }

    fn boot(&mut self) {
        for (host, machine) in &mut self.machines {
            if machine.registers_at.is_some_and(|at| at <= self.now) && !self.excluded.contains(host) {
                (machine.state, machine.registers_at) = (InstanceState::Running, None);
                self.nodes.insert(host.clone(), Nodemanager::new());
            }
        }
    }

    fn run_containers(&mut self) {
        for node in self.nodes.values_mut() {
            node.containers.retain(|container| container.ends_at.is_none_or(|end| end > self.now));
            if node.state == NodeState::Decommissioning {
                if node.deadline.is_some_and(|deadline| deadline <= self.now) {
                    self.killed += node.containers.len();
                    node.containers.clear();
                }
                if node.containers.is_empty() {
                    node.state = NodeState::Decommissioned;
                }
            }
        }
        while let Some(next) = self.waiting.front() {
            let free = |node: &&mut Nodemanager| node.total().memory_mb >= node.used() + next.memory_mb;
            let open = |node: &&mut Nodemanager| node.state == NodeState::Running;
            let Some(node) = self.nodes.values_mut().filter(open).find(free) else { break };
            let ends_at = self.now + next.runs;
            node.containers.push(Container { ends_at: Some(ends_at), ..*next });
            self.waiting.pop_front();
        }
    }

    /// The ResourceManager restarts: it forgets cordons, and lets excluded nodes go without mercy.
    pub fn restart_resource_manager(&mut self) {
        self.started_on_ms += 1000;
        for (host, node) in &mut self.nodes {
            node.cordoned = false;
            if self.excluded.contains(host) {
                self.killed += node.containers.len();
                node.containers.clear();
                node.state = NodeState::Decommissioned;
            }
        }
    }

    pub fn observation(&self) -> Result<Observation, PortError> {
        if let Some(kind) = self.yarn_fault {
            return Err(PortError::new(kind, "YARN is not to be had"));
        }
        let pending = Resources::new(self.waiting.iter().map(|c| c.memory_mb).sum(), self.waiting.len() as u64, 0);
        Ok(Observation {
            started_on_ms: self.started_on_ms,
            version: "3.4.1".into(),
            metrics: ClusterMetrics { pending, ..ClusterMetrics::default() },
            nodes: self.nodes.iter().map(|(host, node)| Arc::new(node.shown(host))).collect(),
            applications: Vec::new(),
        })
    }

    pub fn capacity(&self) -> Capacity {
        let instance = |(host, machine): (&String, &Machine)| Instance {
            name: format!("m/{host}"),
            host: host.clone(),
            state: machine.state,
        };
        let shown = self.machines.iter().filter(|(_, machine)| machine.shown_at <= self.now);
        let template = Some(WorkerTemplate { resources: FULL, boot_time: None });
        let group = Group { template, instances: shown.map(instance).collect() };
        Capacity {
            capabilities: Capabilities { deletes_named: true, overlaps: true, resizes: false },
            groups: BTreeMap::from([(GroupName::Primary, group)]),
            identity: None,
            readiness: Readiness::Ready,
        }
    }

    /// Takes an order, once for each request id.
    pub fn order(&mut self, request_id: &str, intent: Intent) -> Result<String, PortError> {
        let operation_id = format!("op/{request_id}");
        self.orders.push((self.now, format!("{request_id}: {intent}")));
        let fault = self.faults.pop_front();
        if let Some(Fault::Refused(kind)) = fault {
            return Err(PortError::new(kind, "refused"));
        }
        if !self.taken.contains_key(&operation_id) {
            let done_at = if self.never_done { DateTime::<Utc>::MAX_UTC } else { self.now + OPERATION };
            match &intent {
                _ if matches!(fault, Some(Fault::Fails(_))) => {}
                Intent::Create { count, .. } => (0..*count).for_each(|_| drop(self.make(self.now))),
                Intent::Delete { instances, .. } => self.stop(instances),
                Intent::Resize { .. } => panic!("this provider takes no sizes"),
            }
            let fails = if let Some(Fault::Fails(kind)) = fault { Some(kind) } else { None };
            let intent = with_hosts(intent);
            self.taken.insert(operation_id.clone(), Taken { intent, done_at, ended: false, fails });
        }
        match fault {
            Some(Fault::AnswerLost) => Err(PortError::transient("the answer was lost")),
            Some(Fault::Fails(_)) | Some(Fault::Refused(_)) | None => Ok(operation_id),
        }
    }

    fn stop(&mut self, instances: &[String]) {
        for name in instances {
            if let Some(machine) = name.strip_prefix("m/").and_then(|host| self.machines.get_mut(host)) {
                machine.state = InstanceState::Stopping;
            }
        }
    }

    /// Counts a place where the controller may die; whether it dies here.
    pub fn dies_here(&mut self) -> bool {
        self.boundaries += 1;
        self.crash_at == Some(self.boundaries)
    }
}

/// The last one again where that is asked for and it is equal, else the new one.
pub fn look<T: PartialEq>(same_looks: bool, last: &mut Option<Arc<T>>, new: T) -> Arc<T> {
    match last {
        Some(last) if same_looks && **last == new => Arc::clone(last),
        _ => Arc::clone(last.insert(Arc::new(new))),
    }
}

/// The provider's names as hosts.
fn with_hosts(intent: Intent) -> Intent {
    match intent {
        Intent::Delete { group, instances } => {
            let instances = instances.iter().filter_map(|name| name.strip_prefix("m/")).map(str::to_owned).collect();
            Intent::Delete { group, instances }
        }
        other => other,
    }
}

impl Nodemanager {
    fn new() -> Self {
        Self {
            state: NodeState::Running,
            cordoned: false,
            left: Resources::default(),
            containers: Vec::new(),
            deadline: None,
        }
    }

    fn used(&self) -> u64 {
        self.containers.iter().map(|container| container.memory_mb).sum()
    }

    fn total(&self) -> Resources {
        if self.cordoned { Resources::new(self.left.memory_mb.max(1), self.left.vcores.max(1), 0) } else { FULL }
    }

    /// As the ResourceManager shows it.
    pub fn shown(&self, host: &str) -> Node {
        let used = Resources::new(self.used(), self.containers.len() as u64, 0);
        let total = if self.state == NodeState::Decommissioning { used } else { self.total() };
        let id = NodeId { host: host.into(), port: 8041 };
        let containers = u32::try_from(self.containers.len()).unwrap_or(u32::MAX);
        Node { id, state: self.state, total, used, containers, health_report: String::new() }
    }

    /// The exclude file names it, and nodes are refreshed.
    pub fn exclude(&mut self, deadline: DateTime<Utc>) {
        if matches!(self.state, NodeState::Running | NodeState::Unhealthy | NodeState::Decommissioning) {
            (self.state, self.deadline) = (NodeState::Decommissioning, Some(deadline));
        }
    }
}
