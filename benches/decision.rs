//! How long one decision takes on a large cluster: 1,000 nodes, 10,000 pending containers; and what grows with what.
//! `cargo bench --bench decision`. The budget is 5 ms a decision (release, one core).

use std::{
    cell::Cell,
    collections::BTreeMap,
    future::Future,
    hint::black_box,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use yarn_autoscaler::{
    controller::{Controller, Settings},
    decide,
    model::{
        Application, Ask, Capabilities, Capacity, ClusterMetrics, Group, GroupName, History, Instance, InstanceState,
        Node, NodeId, NodeState, Observation, Readiness, Resources, Sample, Situation, SizeChange, State, WorkerRecord,
    },
    policy::{Algorithm, BasicAlgorithm, GroupPolicy, MetricType, Policy},
    ports::{Cluster, Journal, OperationState, PolicyChange, PolicySource, PortError, Provider, StateStore, Tick},
};

const WORKER: Resources = Resources::new(65_536, 16, 4);
const DAY_S: u64 = 86_400;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).unwrap_or_default()
}

fn policy(cooldown_s: u64) -> Policy {
    let bounds = |max_instances| GroupPolicy { min_instances: 2, max_instances, weight: 1 };
    Policy {
        id: None,
        algorithm: Algorithm::Basic(BasicAlgorithm {
            cooldown_period: Duration::from_secs(cooldown_s),
            scale_up_factor: 1.0,
            scale_down_factor: 1.0,
            scale_up_min_worker_fraction: 0.0,
            scale_down_min_worker_fraction: 0.0,
            graceful_decommission_timeout: Duration::from_secs(3600),
            metrics: vec![MetricType::YarnMemory, MetricType::YarnCores],
        }),
        primary: bounds(1000),
        secondary: Some(bounds(2000)),
        primary_template: None,
        secondary_template: None,
    }
}

/// A cluster of so many workers in two groups, one application for each five, ten pending containers for each worker
/// (none where `busy` is false), and a history over the whole cooldown.
fn situation(workers: usize, busy: bool, cooldown_s: u64) -> Situation {
    let pending = if busy { Resources::new(4096, 1, 0).times(10 * workers as u64) } else { Resources::default() };
    let mut nodes = Vec::new();
    let mut groups = BTreeMap::new();
    let mut state = State::default();
    for (name, letter) in [(GroupName::Primary, "w"), (GroupName::Secondary, "sw")] {
        let count = if name == GroupName::Primary { workers.div_ceil(2) } else { workers / 2 };
        let hosts = (0..count).map(|index| format!("cluster-{letter}-{index}.c.project.internal"));
        let instances = hosts.map(|host| {
            nodes.push(Arc::new(node(&host, nodes.len())));
            let record = WorkerRecord {
                first_seen_at: now(),
                ready_at: Some(now()),
                not_ready_since: None,
                unlisted_since: None,
            };
            state.workers.insert(host.clone(), record);
            Instance { name: host.clone(), host, state: InstanceState::Running }
        });
        groups.insert(name, Group { instances: instances.collect(), template: None });
    }
    let applications =
        (0..workers / 5).map(|index| Arc::new(application(index, nodes[index].id.host.clone(), busy))).collect();
    let metrics = ClusterMetrics { pending, containers_pending: 10 * workers as u64, ..ClusterMetrics::default() };
    let version = "3.4.1".to_owned();
    let observation = Observation { started_on_ms: 1, version, metrics, nodes, applications };
    let mut situation = Situation {
        now: now(),
        poll_interval: Duration::from_secs(5),
        observation: Ok(Arc::new(observation)),
        capacity: Ok(Arc::new(Capacity {
            capabilities: Capabilities { deletes_named: true, overlaps: true, resizes: false },
            groups,
            identity: None,
            readiness: Readiness::Ready,
        })),
        history: History::default(),
        state: Arc::new(state),
        restart_hold: Duration::from_secs(60),
        ready_deadline: Duration::from_secs(900),
    };
    if let Some(sample) = decide::sample(&policy(cooldown_s), &situation) {
        situation.history = history(sample, cooldown_s);
    }
    situation
}

/// A sample every 2.5 s over the cooldown.
fn history(sample: Sample, cooldown_s: u64) -> History {
    let mut history = History::default();
    for step in (0..=cooldown_s * 2 / 5).rev() {
        let at = now() - TimeDelta::milliseconds(2500) * i32::try_from(step).unwrap_or(i32::MAX);
        history.push(Sample { at, ..sample }, Duration::from_secs(DAY_S + 60));
    }
    history
}

fn node(host: &str, index: usize) -> Node {
    let used = Resources::new(4096, 1, 0).times(index as u64 % 3);
    Node {
        id: NodeId { host: host.into(), port: 8041 },
        state: NodeState::Running,
        total: WORKER,
        used,
        containers: u32::try_from(index % 3).unwrap_or(0),
        health_report: String::new(),
    }
}

fn application(index: usize, master_host: String, busy: bool) -> Application {
    let asks =
        if busy { vec![Ask { containers: 50, resources: Resources::new(4096, 1, 0), priority: 1 }] } else { vec![] };
    Application {
        id: format!("application_1700000000000_{index:04}"),
        name: "training".into(),
        application_type: "TONY".into(),
        queue: "root.default".into(),
        running: true,
        master_host: Some(master_host),
        running_containers: Some(3),
        asks,
    }
}

fn decisions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("decide");
    for (name, busy) in [("grow", true), ("shrink", false)] {
        for workers in [100, 1000] {
            let (policy, situation) = (policy(120), situation(workers, busy, 120));
            assert!(!decide::decide(&policy, &situation).actions.is_empty(), "{name}: there is something to do");
            group.bench_function(format!("{name}, {workers} nodes, 2 min of history"), |bencher| {
                bencher.iter(|| decide::decide(black_box(&policy), black_box(&situation)));
            });
        }
        let (policy, situation) = (policy(DAY_S), situation(1000, busy, DAY_S));
        assert!(!decide::decide(&policy, &situation).actions.is_empty(), "{name}: there is something to do");
        group.bench_function(format!("{name}, 1000 nodes, 1 day of history"), |bencher| {
            bencher.iter(|| decide::decide(black_box(&policy), black_box(&situation)));
        });
    }
    group.finish();
}

fn samples(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("sample");
    for workers in [100, 1000] {
        let (policy, situation) = (policy(120), situation(workers, true, 120));
        group.bench_function(format!("{workers} nodes"), |bencher| {
            bencher.iter(|| decide::sample(black_box(&policy), black_box(&situation)));
        });
    }
    let (one, history) =
        (decide::sample(&policy(120), &situation(100, true, 120)), situation(100, true, DAY_S).history);
    group.bench_function("pushed onto a day of history", |bencher| {
        let fresh = || (history.clone(), one);
        let push = |(mut history, one): (History, Option<Sample>)| {
            one.into_iter().for_each(|s| history.push(s, Duration::from_secs(DAY_S)));
            history
        };
        bencher.iter_batched(fresh, push, BatchSize::LargeInput);
    });
    group.finish();
}

/// Ports over a small world: what they show goes round and round.
#[derive(Clone)]
struct Shown {
    looks: Vec<(Arc<Observation>, Arc<Capacity>)>,
    at: Cell<usize>,
    state: Arc<State>,
}

impl Shown {
    /// The look that is shown now.
    fn look(&self) -> &(Arc<Observation>, Arc<Capacity>) {
        &self.looks[self.at.get() % self.looks.len()]
    }
}

impl Cluster for Shown {
    async fn observe(&self, _now: DateTime<Utc>) -> Result<Arc<Observation>, PortError> {
        self.at.set(self.at.get() + 1);
        Ok(Arc::clone(&self.look().0))
    }
    async fn nodes(&self) -> Result<Vec<Arc<Node>>, PortError> {
        Ok(Vec::new())
    }
    async fn cordon(&self, _node: &NodeId, _leave: Resources) -> Result<(), PortError> {
        Ok(())
    }
    async fn uncordon(&self, _node: &NodeId, _full: Resources) -> Result<(), PortError> {
        Ok(())
    }
    async fn decommission(&self, _hosts: &[String], _timeout: Duration) -> Result<(), PortError> {
        Ok(())
    }
    async fn recommission(&self, _hosts: &[String], _timeout: Duration) -> Result<(), PortError> {
        Ok(())
    }
}

impl Provider for Shown {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        self.at.set(self.at.get() + 1);
        Ok(Arc::clone(&self.look().1))
    }
    async fn create(&self, _request_id: &str, _group: GroupName, _count: u32) -> Result<String, PortError> {
        Ok("op".into())
    }
    async fn resize(&self, _: &str, _: SizeChange, _: Duration) -> Result<String, PortError> {
        Ok("op".into())
    }
    async fn delete(&self, _request_id: &str, _group: GroupName, _names: &[String]) -> Result<String, PortError> {
        Ok("op".into())
    }
    async fn poll(&self, _operation_id: &str) -> Result<OperationState, PortError> {
        Ok(OperationState::Running)
    }
}

impl StateStore for Shown {
    async fn load(&mut self) -> Result<State, PortError> {
        Ok(State::clone(&self.state))
    }
    async fn save(&mut self, _state: &State) -> Result<(), PortError> {
        Ok(())
    }
}

impl PolicySource for Shown {
    async fn check(&mut self, _now: DateTime<Utc>) -> PolicyChange {
        PolicyChange::Unchanged
    }
}

impl Journal for Shown {
    fn tick(&mut self, tick: &Tick<'_>) {
        black_box(tick.settled_until);
    }
}

/// What changes from one look to the next.
#[derive(Clone, Copy)]
enum Changes {
    Nothing,
    /// One more container on one node; all else is equal.
    OneNode,
    /// The same in a wholly new answer, of YARN and of the provider.
    EveryArc,
}

/// Idle workers at the minimum, so that the load wants them away at every tick and the bounds keep them.
fn shown(workers: usize, changes: Changes) -> Shown {
    let Situation { observation, capacity, state, .. } = situation(workers, false, 120);
    let (Ok(first), Ok(capacity)) = (observation, capacity) else { unreachable!("both are there") };
    let mut second = Observation::clone(&first);
    Arc::make_mut(&mut second.nodes[0]).containers += 1;
    let looks = match changes {
        Changes::Nothing => vec![(first, capacity)],
        Changes::OneNode => vec![(first, Arc::clone(&capacity)), (Arc::new(second), capacity)],
        Changes::EveryArc => {
            second.nodes.iter_mut().for_each(|node| *node = Arc::new(Node::clone(node)));
            let again = Arc::new(Capacity::clone(&capacity));
            vec![(first, capacity), (Arc::new(second), again)]
        }
    };
    // Each port counts for itself: in one tick, both show the same look.
    Shown { looks, at: Cell::new(0), state }
}

/// A whole turn of the loop over ports that cost nothing: look, reconcile, decide, act, tell.
fn ticks(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("tick");
    for workers in [15, 1000] {
        let kinds = [
            ("nothing has changed", Changes::Nothing),
            ("one node has changed", Changes::OneNode),
            ("all is new, one node has changed", Changes::EveryArc),
        ];
        for (name, changes) in kinds {
            let shown = shown(workers, changes);
            let ports = (shown.clone(), shown.clone(), shown.clone(), shown.clone(), shown);
            let at_minimum = u32::try_from(workers / 2).unwrap_or(u32::MAX);
            let mut policy = policy(120);
            policy.primary.min_instances = at_minimum + u32::from(workers % 2 == 1);
            policy.secondary = policy.secondary.map(|group| GroupPolicy { min_instances: at_minimum, ..group });
            let started = pin!(Controller::new(ports, policy, Settings::default()));
            let Poll::Ready(Ok(mut controller)) = started.poll(&mut Context::from_waker(Waker::noop())) else {
                continue;
            };
            let mut at = now();
            let mut tick = || {
                at += TimeDelta::milliseconds(2500);
                let tick = pin!(controller.tick(at));
                let ticked = tick.poll(&mut Context::from_waker(Waker::noop()));
                assert!(matches!(&ticked, Poll::Ready(Ok(decision)) if decision.actions.is_empty()), "{ticked:?}");
            };
            (0..100).for_each(|_| tick());
            group.bench_function(format!("{workers} workers, {name}"), |bencher| bencher.iter(&mut tick));
        }
    }
    group.finish();
}

criterion_group!(benches, decisions, samples, ticks);
criterion_main!(benches);
