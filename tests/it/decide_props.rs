//! What holds for every situation, whatever it is: bounds, one order a group, no scaling in the dark, the same
//! decision for the same situation.

use std::{collections::BTreeMap, sync::Arc};

use proptest::{collection::vec, option, prelude::*, sample::select};
use yarn_autoscaler::{
    decide::{self, Standing, Survey},
    model::{
        Action, Application, Capabilities, Capacity, ClusterMetrics, Decision, Drain, DrainPhase, Group, GroupName,
        History, Instance, InstanceState, Intent, Node, NodeId, NodeState, Observation, Operation, Outage, Readiness,
        Resources, Sample, SeenResourceManager, Situation, State, WorkerRecord, WorkerTemplate,
    },
    policy::{MetricType, Policy},
};

use crate::fixtures::{self, at, basic, group, noon, secs};

/// A machine with all that may be known of it.
#[derive(Clone, Debug)]
struct Seen {
    machine: Option<InstanceState>,
    node: Option<(NodeState, u64, u64, u32)>,
    drain: Option<DrainPhase>,
    record: Option<WorkerRecord>,
    master: bool,
}

fn amount() -> impl Strategy<Value = Resources> {
    (0..100_000_u64, 0..100_u64, 0..8_u64).prop_map(|(memory, cores, gpus)| Resources::new(memory, cores, gpus))
}

/// An instant around now; some at the edges of the deadlines.
fn instant() -> impl Strategy<Value = f64> {
    prop_oneof![select(vec![-900.0, -120.0, -119.0, -60.0, -3.0, -2.9, 0.0, 5.0]), -2000.0..60.0_f64]
}

fn node() -> impl Strategy<Value = (NodeState, u64, u64, u32)> {
    use NodeState::{Decommissioned, Decommissioning, Lost, New, Rebooted, Running, Shutdown, Unhealthy, Unknown};
    let states = vec![
        Running,
        Running,
        Running,
        Running,
        Running,
        Running,
        Decommissioning,
        Decommissioned,
        Unhealthy,
        Lost,
        New,
        Rebooted,
        Shutdown,
        Unknown,
    ];
    (select(states), select(vec![0, 1, 4096, 8192, 8192]), 0..9000_u64, 0..5_u32)
}

fn phase() -> impl Strategy<Value = DrainPhase> {
    prop_oneof![
        option::of(instant()).prop_map(|seen| DrainPhase::Cordoned { seen_at: seen.map(at) }),
        (instant(), instant()).prop_map(|(since, deadline)| DrainPhase::Decommissioning {
            since: at(since),
            deadline: at(deadline),
            containers: 1
        }),
        instant().prop_map(|since| DrainPhase::Decommissioned { since: at(since) }),
    ]
}

fn record() -> impl Strategy<Value = WorkerRecord> {
    let maybe = || option::of(instant());
    (instant(), maybe(), maybe(), maybe()).prop_map(|(first, ready, not_ready, unlisted)| WorkerRecord {
        first_seen_at: at(first),
        ready_at: ready.map(at),
        not_ready_since: not_ready.map(at),
        unlisted_since: unlisted.map(at),
    })
}

fn seen() -> impl Strategy<Value = Seen> {
    use InstanceState::{Failed, Provisioning, Running, Stopping};
    let machine =
        option::weighted(0.9, select(vec![Running, Running, Running, Running, Provisioning, Stopping, Failed]));
    let (node, drain) = (option::weighted(0.8, node()), option::weighted(0.15, phase()));
    (machine, node, drain, option::weighted(0.9, record()), any::<bool>())
        .prop_map(|(machine, node, drain, record, master)| Seen { machine, node, drain, record, master })
}

fn policy() -> impl Strategy<Value = Policy> {
    let factor = || select(vec![0.0, 0.05, 0.3, 0.5, 1.0]);
    let bounds = || (0..6_u32, 0..8_u32, 0..3_u32).prop_map(|(min, more, weight)| group(min, min + more, weight));
    let metrics = select(vec![
        vec![MetricType::YarnMemory],
        vec![MetricType::YarnCores],
        vec![MetricType::YarnMemory, MetricType::YarnCores],
    ]);
    (factor(), factor(), factor(), factor(), metrics, bounds(), option::of(bounds())).prop_map(
        |(up, down, up_min, down_min, metrics, primary, secondary)| {
            let mut policy = Policy { primary, secondary, ..fixtures::policy() };
            let basic = basic(&mut policy);
            (basic.scale_up_factor, basic.scale_down_factor, basic.metrics) = (up, down, metrics);
            (basic.scale_up_min_worker_fraction, basic.scale_down_min_worker_fraction) = (up_min, down_min);
            policy
        },
    )
}

/// Samples every 2.5 s with now and then a gap; many windows are full, idle, or busy throughout.
fn history() -> impl Strategy<Value = History> {
    let sample = (amount(), amount(), amount(), prop_oneof![49 => Just(2.5), 1 => Just(30.0)]);
    (vec(sample, 0..70), select(vec![0_u64, 0, 1]), select(vec![0_u64, 1])).prop_map(|(samples, pending, used)| {
        let mut history = History::default();
        let length: f64 = samples.iter().map(|sample| sample.3).sum();
        let mut second = -length;
        for (waiting, capacity, allocated, pause) in samples {
            second += pause;
            let (waiting, allocated) = (waiting.times(pending), allocated.min(capacity).times(used));
            history.push(Sample { at: at(second), pending: waiting, capacity, allocated }, secs(1000));
        }
        history
    })
}

fn state() -> impl Strategy<Value = State> {
    let order = (any::<bool>(), any::<bool>(), 0..6_u32).prop_map(|(create, primary, n)| {
        let group = if primary { GroupName::Primary } else { GroupName::Secondary };
        let intent = if create {
            Intent::Create { group, count: n + 1 }
        } else {
            Intent::Delete { group, instances: vec![format!("m/p-{n}")] }
        };
        Operation { request_id: format!("r-{n}"), intent, at: at(-30.0), operation_id: None }
    });
    let times = (option::of(instant()), option::of(instant()), option::weighted(0.2, instant()), option::of(instant()));
    (times, vec(order, 0..2), any::<bool>()).prop_map(|((scaling, ended, retry, restart), operations, replaced)| {
        State {
            last_scaling_at: scaling.map(at),
            last_operation_ended_at: ended.map(at),
            provider_retry_at: retry.map(at),
            operations,
            resource_manager: restart.map(|since| SeenResourceManager {
                started_on_ms: 1,
                since: at(since),
                replaced_another: replaced,
            }),
            ..State::default()
        }
    })
}

prop_compose! {
    fn situation()(
        primary in vec(seen(), 0..10),
        secondary in option::of(vec(seen(), 0..6)),
        capabilities in (prop::bool::weighted(0.8), any::<bool>()),
        template in option::of(amount()),
        metrics in (amount(), amount()),
        history in history(),
        state in state(),
        outages in (prop::bool::weighted(0.05), prop::bool::weighted(0.05)),
    ) -> Situation {
        let mut made = Made { state, ..Made::default() };
        made.group(GroupName::Primary, primary, template);
        if let Some(secondary) = secondary {
            made.group(GroupName::Secondary, secondary, template);
        }
        let (pending, reserved) = metrics;
        let observation = Observation {
            started_on_ms: 1,
            version: String::new(),
            metrics: ClusterMetrics { pending, reserved, ..ClusterMetrics::default() },
            nodes: made.nodes.into_iter().map(Arc::new).collect(),
            applications: made.applications.into_iter().map(Arc::new).collect(),
        };
        let capabilities = Capabilities { deletes_named: capabilities.0, overlaps: capabilities.1, resizes: false };
        let outage = || Outage { text: "out".into() };
        Situation {
            now: noon(),
            poll_interval: secs(5),
            observation: if outages.0 { Err(outage()) } else { Ok(Arc::new(observation)) },
            capacity: if outages.1 { Err(outage()) } else { Ok(Arc::new(Capacity { capabilities, groups: made.groups, identity: None, readiness: Readiness::Ready })) },
            history,
            state: Arc::new(made.state),
            restart_hold: secs(60),
            ready_deadline: secs(900),
        }
    }
}

/// A situation in the making.
#[derive(Default)]
struct Made {
    groups: BTreeMap<GroupName, Group>,
    nodes: Vec<Node>,
    applications: Vec<Application>,
    state: State,
}

impl Made {
    fn group(&mut self, name: GroupName, workers: Vec<Seen>, template: Option<Resources>) {
        let mut instances = Vec::new();
        for (index, worker) in workers.into_iter().enumerate() {
            let host = format!("{}-{index}", &name.to_string()[..1]);
            let id = NodeId { host: host.clone(), port: 8041 };
            let instance = format!("m/{host}");
            if let Some(state) = worker.machine {
                instances.push(Instance { name: instance.clone(), host: host.clone(), state });
            }
            if let Some((state, total, used, containers)) = worker.node {
                let (total, used) = (Resources::new(total, 4, 1), Resources::new(used, 2, 0));
                self.nodes.push(Node { id: id.clone(), state, total, used, containers, health_report: String::new() });
            }
            if let Some(phase) = worker.drain {
                let full = Resources::new(8192, 4, 1);
                let drain = Drain { node: id, group: name, instance, full, phase, since: at(-100.0) };
                self.state.drains.insert(host.clone(), drain);
            }
            if let Some(record) = worker.record {
                self.state.workers.insert(host.clone(), record);
            }
            if worker.master {
                self.applications.push(application(host));
            }
        }
        let template = template.map(|resources| WorkerTemplate { resources, boot_time: None });
        self.groups.insert(name, Group { template, instances });
    }
}

fn application(host: String) -> Application {
    Application {
        id: "application_1_0001".into(),
        name: String::new(),
        application_type: "TONY".into(),
        queue: "root.default".into(),
        running: true,
        master_host: Some(host),
        running_containers: None,
        asks: Vec::new(),
    }
}

/// What a decision does, by group.
struct Effect<'a> {
    situation: &'a Situation,
    observation: &'a Observation,
    decision: &'a Decision,
}

impl Effect<'_> {
    fn created(&self, name: GroupName) -> u32 {
        let of = |action: &Action| {
            if let Action::Create { group, count } = action { (*group == name).then_some(*count) } else { None }
        };
        self.decision.actions.iter().filter_map(of).sum()
    }

    fn deletes(&self, name: GroupName) -> bool {
        self.decision.actions.iter().any(|action| matches!(action, Action::Delete { group, .. } if *group == name))
    }

    /// Hosts of a group that are taken back.
    fn taken_back(&self, name: GroupName) -> Vec<&str> {
        let hosts = self.decision.actions.iter().flat_map(|action| match action {
            Action::Uncordon { node, .. } => vec![node.host.as_str()],
            Action::Recommission { hosts } => hosts.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        });
        hosts.filter(|host| self.situation.state.drains.get(*host).is_some_and(|drain| drain.group == name)).collect()
    }

    /// Hosts of a group that begin to leave, without those that leave already.
    fn chosen(&self, name: GroupName) -> Vec<&str> {
        let of = |action| match action {
            &Action::Cordon { ref node, group, .. } if group == name => Some(node.host.as_str()),
            _ => None,
        };
        let cordoned = self.decision.actions.iter().filter_map(of);
        cordoned.filter(|host| !self.situation.state.drains.contains_key(*host)).collect()
    }

    /// Leaving workers of a group that could serve and are not taken back.
    fn left_out(&self, name: GroupName) -> usize {
        let taken = self.taken_back(name);
        let could = |host: &String, drain: &Drain| {
            let record = self.situation.state.workers.get(host);
            if record.and_then(|record| record.not_ready_since).is_some_and(|since| since < drain.since) {
                return false;
            }
            let state = self.observation.node(host).map(|node| node.state);
            match drain.phase {
                DrainPhase::Cordoned { .. } => state == Some(NodeState::Running),
                DrainPhase::Decommissioning { .. } => {
                    matches!(state, Some(NodeState::Running | NodeState::Decommissioning))
                }
                DrainPhase::Decommissioned { .. } => false,
            }
        };
        let drains = self.situation.state.drains.iter().filter(|(_, drain)| drain.group == name);
        drains.filter(|(host, drain)| could(host, drain) && !taken.contains(&host.as_str())).count()
    }
}

fn ready(survey: &Survey, name: GroupName, host: &str) -> bool {
    survey.with(Standing::Ready).any(|worker| worker.group == name && worker.instance.host == host)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_decision_keeps_the_rules(policy in policy(), situation in situation()) {
        let decision = decide::decide(&policy, &situation);
        prop_assert!(!decision.reasons.is_empty(), "a decision says why");
        prop_assert!(decision.reasons.iter().all(|reason| reason.to_string().len() > 5));
        prop_assert!(decision.next_at > situation.now);
        let (Ok(observation), Ok(capacity)) = (&situation.observation, &situation.capacity) else {
            prop_assert!(decision.actions.is_empty(), "nothing is done in the dark: {decision:?}");
            return Ok(());
        };
        let effect = Effect { situation: &situation, observation, decision: &decision };
        let survey = Survey::of(&policy, &situation).expect("both have answered");
        for name in GroupName::ALL {
            let (bounds, created) = (policy.group(name), effect.created(name));
            let back = u32::try_from(effect.taken_back(name).len())?;
            let size = survey.sizes().get(name).unwrap_or(0) + back + created;
            prop_assert!(created + back == 0 || size <= bounds.max_instances, "{name}: {size} beyond {bounds:?}: {decision:?}");
            prop_assert!(created == 0 || !effect.deletes(name), "{name}: created and deleted: {decision:?}");
            prop_assert!(created == 0 || effect.left_out(name) == 0, "{name}: made while one could be had back: {decision:?}");
            let chosen = effect.chosen(name);
            let healthy = chosen.iter().filter(|host| ready(&survey, name, host)).count();
            let serving = survey.with(Standing::Ready).chain(survey.with(Standing::Booting));
            let serving = serving.filter(|worker| worker.group == name).count();
            let min = bounds.min_instances as usize;
            prop_assert!(healthy == 0 || serving - healthy >= min, "{name}: below {min}: {decision:?}");
            prop_assert!(healthy == 0 || situation.state.drains.is_empty(), "{name}: others leave: {decision:?}");
            prop_assert!(chosen.iter().all(|host| survey.workers().any(|w| w.instance.host == **host)));
            prop_assert!(healthy == 0 || created + back == 0, "{name}: grown and shrunk: {decision:?}");
        }
        let orders = decision.actions.iter().filter(|a| matches!(a, Action::Create { .. } | Action::Delete { .. })).count();
        prop_assert!(orders <= 1 || capacity.capabilities.overlaps, "one order at a time: {decision:?}");
    }

    #[test]
    fn nothing_is_deleted_where_containers_may_run(policy in policy(), situation in situation()) {
        let decision = decide::decide(&policy, &situation);
        let Ok(observation) = &situation.observation else { return Ok(()) };
        for action in &decision.actions {
            let Action::Delete { instances, .. } = action else { continue };
            for name in instances {
                let node = observation.node(name.trim_start_matches("m/"));
                let gone = [NodeState::Decommissioned, NodeState::Lost, NodeState::Rebooted, NodeState::Shutdown];
                prop_assert!(node.is_none_or(|node| gone.contains(&node.state)), "{name}: {node:?}");
            }
        }
    }

    #[test]
    fn the_same_situation_gives_the_same_decision(policy in policy(), situation in situation()) {
        let json = serde_json::to_string(&situation)?;
        let again: Situation = serde_json::from_str(&json)?;
        prop_assert_eq!(&again, &situation);
        prop_assert_eq!(decide::decide(&policy, &again), decide::decide(&policy, &situation));
        prop_assert_eq!(decide::sample(&policy, &again), decide::sample(&policy, &situation));
    }

    #[test]
    fn a_change_is_never_larger_than_the_estimate_asks_and_never_the_other_way(
        delta in -10_000_i64..10_000,
        policy in policy(),
        size in 0..1000_u32,
    ) {
        let change = decide::basic::change(policy.basic(), delta, size).unwrap_or(0);
        prop_assert!(change.abs() <= delta.abs(), "{change} for {delta}");
        prop_assert!(change == 0 || change.signum() == delta.signum(), "{change} for {delta}");
    }
}
