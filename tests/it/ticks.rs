//! Ticks to show and to log: a cluster of workers in all their states, built from one sentence.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use yarn_autoscaler::{
    decide,
    model::{
        Action, Application, Ask, Capabilities, Capacity, ClusterMetrics, Decision, Drain, DrainPhase, Group,
        GroupName, History, Instance, InstanceState, Node, NodeId, NodeState, Observation, Outage, Readiness, Reason,
        Resources, Situation, State, WorkerRecord,
    },
    policy::{Algorithm, BasicAlgorithm, GroupPolicy, MetricType, Policy},
    ports::Tick,
};

/// All that a tick borrows.
pub struct Scene {
    pub situation: Situation,
    pub policy: Policy,
    pub decision: Decision,
    pub notes: Vec<String>,
}

const FULL: Resources = Resources::new(12_288, 8, 1);

impl Scene {
    /// A cluster with so many workers ready, booting and draining; nothing pending and nothing to do.
    pub fn new(ready: u32, booting: u32, draining: u32) -> Self {
        let now: DateTime<Utc> = "2026-11-21T12:00:05Z".parse().unwrap();
        let total = ready + booting + draining;
        let is_draining = |n: &u32| *n >= ready + booting;
        let situation = Situation {
            now,
            poll_interval: Duration::from_secs(5),
            observation: Ok(Arc::new(observation((0..ready).chain(ready + booting..total).map(node).collect()))),
            capacity: Ok(Arc::new(capacity(
                (0..total).map(|n| instance(n, n >= ready && n < ready + booting)).collect(),
            ))),
            history: History::default(),
            state: Arc::new(State {
                workers: (0..total).map(|n| (host(n), record(now, n >= ready && n < ready + booting))).collect(),
                drains: (0..total).filter(is_draining).map(|n| (host(n), drain(n, now))).collect(),
                ..State::default()
            }),
            restart_hold: Duration::from_secs(60),
            ready_deadline: Duration::from_secs(600),
        };
        let reasons = vec![steady(ready, 0)];
        let decision = Decision { actions: Vec::new(), reasons, next_at: now + TimeDelta::seconds(5) };
        Self { situation, policy: policy(10), decision, notes: Vec::new() }
    }

    /// So much waits for containers.
    pub fn pending(mut self, pending: Resources, containers: u64) -> Self {
        let observation = Arc::make_mut(self.situation.observation.as_mut().unwrap());
        observation.metrics.pending = pending;
        observation.metrics.containers_pending = containers;
        let waiting = Ask { containers: 2, resources: Resources::new(4_096, 1, 1), priority: 1 };
        observation.applications.push(Arc::new(application(2, vec![waiting])));
        self
    }

    /// A scale up to so many workers is ordered.
    pub fn scale_up(mut self, from: u32, to: u32) -> Self {
        self.decision.actions = vec![Action::Create { group: GroupName::Primary, count: to - from }];
        let metric = MetricType::YarnMemory;
        let up = Reason::ScaleUp { from, to, metric, pending: 24_576, estimated: to };
        self.decision.reasons = vec![up, Reason::ReachedMaximum { wanted: to + 2, max: to }];
        self
    }

    /// The last worker is chosen to go.
    pub fn cordon(mut self, from: u32) -> Self {
        let node = NodeId { host: host(from - 1), port: 8041 };
        let instance = format!("worker-{}", from - 1);
        self.decision.actions = vec![Action::Cordon { node, group: GroupName::Primary, instance, full: FULL }];
        let metric = MetricType::YarnMemory;
        self.decision.reasons =
            vec![Reason::ScaleDown { from, to: from - 1, metric, allocated: 4_096, estimated: from - 1 }];
        self
    }

    /// YARN does not answer.
    pub fn without_yarn(mut self) -> Self {
        let error = "connection refused".to_owned();
        self.situation.observation = Err(Outage { text: error.clone() });
        self.decision.reasons = vec![Reason::NoObservation { error }];
        self
    }

    /// Only these reasons.
    pub fn because(mut self, reasons: Vec<Reason>) -> Self {
        self.decision.reasons = reasons;
        self
    }

    /// This was noticed.
    pub fn noting(mut self, note: &str) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same, so many seconds later.
    pub fn later(mut self, seconds: i64) -> Self {
        self.situation.now += TimeDelta::seconds(seconds);
        self.decision.next_at += TimeDelta::seconds(seconds);
        self
    }

    pub fn tick(&self) -> Tick<'_> {
        let Self { situation, policy, decision, notes } = self;
        Tick {
            situation,
            policy,
            workers: decide::workers(policy, situation),
            decision,
            settled_until: None,
            foresight: None,
            notes,
        }
    }
}

/// Nothing to do, with so much memory pending on average.
pub fn steady(workers: u32, pending: u64) -> Reason {
    Reason::Steady { workers, metric: MetricType::YarnMemory, pending, allocated: 4_096 }
}

fn host(n: u32) -> String {
    format!("10.0.0.{n}")
}

fn node(n: u32) -> Node {
    let id = NodeId { host: host(n), port: 8041 };
    let used = Resources::new(4_096, 1, 1);
    Node { id, state: NodeState::Running, total: FULL, used, containers: 1, health_report: String::new() }
}

fn instance(n: u32, booting: bool) -> Instance {
    let state = if booting { InstanceState::Provisioning } else { InstanceState::Running };
    Instance { name: format!("worker-{n}"), host: host(n), state }
}

fn record(first_seen_at: DateTime<Utc>, booting: bool) -> WorkerRecord {
    let ready_at = (!booting).then_some(first_seen_at);
    WorkerRecord { first_seen_at, ready_at, not_ready_since: None, unlisted_since: None }
}

fn drain(n: u32, since: DateTime<Utc>) -> Drain {
    Drain {
        node: NodeId { host: host(n), port: 8041 },
        group: GroupName::Primary,
        instance: format!("worker-{n}"),
        full: FULL,
        phase: DrainPhase::Cordoned { seen_at: None },
        since,
    }
}

fn application(n: u32, asks: Vec<Ask>) -> Application {
    Application {
        id: format!("application_1700000000000_{n:04}"),
        name: "TensorFlow".into(),
        application_type: "TONY".into(),
        queue: "default".into(),
        running: true,
        master_host: Some(host(0)),
        running_containers: Some(4),
        asks,
    }
}

fn observation(nodes: Vec<Node>) -> Observation {
    let metrics = ClusterMetrics {
        available: Resources::new(16_384, 14, 0),
        allocated: Resources::new(8_192, 2, 2),
        containers_allocated: 2,
        ..ClusterMetrics::default()
    };
    let nodes = nodes.into_iter().map(Arc::new).collect();
    let applications = vec![Arc::new(application(1, Vec::new()))];
    Observation { started_on_ms: 1_700_000_000_000, version: "3.3.6".into(), metrics, nodes, applications }
}

fn capacity(instances: Vec<Instance>) -> Capacity {
    let groups = BTreeMap::from([(GroupName::Primary, Group { template: None, instances })]);
    Capacity {
        capabilities: Capabilities { deletes_named: true, overlaps: true, resizes: false },
        groups,
        identity: None,
        readiness: Readiness::Ready,
    }
}

fn policy(max_instances: u32) -> Policy {
    Policy {
        id: None,
        algorithm: Algorithm::Basic(BasicAlgorithm {
            cooldown_period: Duration::from_secs(120),
            scale_up_factor: 1.0,
            scale_down_factor: 1.0,
            scale_up_min_worker_fraction: 0.0,
            scale_down_min_worker_fraction: 0.0,
            graceful_decommission_timeout: Duration::from_secs(3_600),
            metrics: vec![MetricType::YarnMemory],
        }),
        primary: GroupPolicy { min_instances: 2, max_instances, weight: 1 },
        secondary: None,
        primary_template: None,
        secondary_template: None,
    }
}
