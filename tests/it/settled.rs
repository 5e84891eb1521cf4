//! A tick that is settled says that all later ones decide the same until something new is seen: no date is forgotten.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use proptest::{collection::vec, option, prelude::*, sample::select};
use yarn_autoscaler::{
    decide::{self, Survey},
    model::{
        Capabilities, Capacity, ClusterMetrics, Drain, DrainPhase, Group, GroupName, History, Instance, InstanceState,
        Intent, Node, NodeId, NodeState, Observation, Operation, Readiness, Resources, Sample, SeenResourceManager,
        Situation, State, WorkerRecord,
    },
    policy::Policy,
};

use crate::fixtures::{self, at, basic, group, noon, secs};

const FULL: Resources = Resources::new(8192, 8, 1);

/// What is not as it is in a cluster at rest.
#[derive(Clone, Copy, Debug)]
pub enum Unrest {
    None,
    NodeIs(NodeState),
    NodeIsAway,
    MachineIs(InstanceState),
    NeverReady,
    NotRemembered,
    AnotherIsRemembered,
    Drains(DrainPhase),
    /// It is in YARN's hands, with so many seconds until its deadline.
    Waits(f64),
    Orders,
    Stranger,
    FewerSamples(u64),
    OneSampleDiffers(usize),
}

fn unrest() -> impl Strategy<Value = Unrest> {
    use NodeState::{Decommissioned, Decommissioning, Lost, Running, Unhealthy};
    let date = || select(vec![-3600.0, -900.0, -121.0, -3.0, 0.0]).prop_map(at);
    prop_oneof![
        6 => Just(Unrest::None),
        2 => select(vec![Decommissioned, Decommissioning, Lost, Running, Unhealthy]).prop_map(Unrest::NodeIs),
        1 => Just(Unrest::NodeIsAway),
        1 => select(vec![InstanceState::Failed, InstanceState::Stopping, InstanceState::Provisioning])
            .prop_map(Unrest::MachineIs),
        1 => Just(Unrest::NeverReady),
        1 => Just(Unrest::NotRemembered),
        1 => Just(Unrest::AnotherIsRemembered),
        1 => option::of(date()).prop_map(|seen_at| Unrest::Drains(DrainPhase::Cordoned { seen_at })),
        1 => date().prop_map(|since| Unrest::Drains(DrainPhase::Decommissioned { since })),
        2 => select(vec![-200.0, -121.0, -120.0, -100.0, 0.0, 60.0, 3600.0]).prop_map(Unrest::Waits),
        1 => Just(Unrest::Orders),
        2 => Just(Unrest::Stranger),
        1 => (0..200_u64).prop_map(Unrest::FewerSamples),
        1 => (0..80_usize).prop_map(Unrest::OneSampleDiffers),
    ]
}

/// An instant in the past, or not quite: most at the edges of what may depend on it.
fn date() -> impl Strategy<Value = DateTime<Utc>> {
    let edges = vec![-3600.0, -181.0, -180.0, -179.0, -121.0, -120.0, -119.0, -61.0, -60.0, -59.0, -1.0, 0.0, 30.0];
    select(edges).prop_map(at)
}

prop_compose! {
    pub fn policy()(
        (min, more) in (0..9_u32, 0..9_u32),
        secondary in option::of((0..3_u32, 0..3_u32)),
        (up, down) in (select(vec![0.0, 0.5, 1.0]), select(vec![0.0, 0.5, 1.0])),
        fraction in select(vec![0.0, 0.5]),
        cooldown_s in select(vec![120_u64, 600]),
    ) -> Policy {
        let mut policy = fixtures::policy();
        policy.primary = group(min, min + more, 1);
        policy.secondary = secondary.map(|(min, more)| group(min, min + more, 1));
        let basic = basic(&mut policy);
        (basic.scale_up_factor, basic.scale_down_factor, basic.cooldown_period) = (up, down, secs(cooldown_s));
        (basic.scale_up_min_worker_fraction, basic.scale_down_min_worker_fraction) = (fraction, fraction);
        policy
    }
}

prop_compose! {
    pub fn situation()(
        workers in 1..8_u32,
        (pending, used) in (select(vec![0_u64, 0, 0, 1024, 50_000]), 0..8192_u64),
        (unrest, deletes_named) in (unrest(), prop::bool::weighted(0.9)),
        (scaled, ended, retry, restart) in (option::of(date()), option::of(date()), option::weighted(0.2, date()), option::of(date())),
        (failures, replaced_another, overlaps) in (0..3_u32, any::<bool>(), any::<bool>()),
        poll_s in select(vec![1_u64, 5, 30]),
    ) -> (Situation, Unrest) {
        let mut state = State {
            last_scaling_at: scaled,
            last_operation_ended_at: ended,
            provider_retry_at: retry,
            provider_failures: failures,
            resource_manager: restart.map(|since| SeenResourceManager { started_on_ms: 1, since, replaced_another }),
            ..State::default()
        };
        let (mut nodes, mut instances) = (Vec::new(), Vec::new());
        for n in 0..workers {
            let host = format!("w-{n}");
            nodes.push(node(&host, used));
            instances.push(Instance { name: format!("m/{host}"), host: host.clone(), state: InstanceState::Running });
            let record = ready();
            state.workers.insert(host, record);
        }
        disturb(unrest, &mut nodes, &mut instances, &mut state);
        let metrics = ClusterMetrics { pending: Resources::new(pending, pending / 1024, 0), ..Default::default() };
        let nodes = nodes.into_iter().map(Arc::new).collect();
        let (version, applications) = (String::new(), Vec::new());
        let observation = Observation { started_on_ms: 1, version, metrics, nodes, applications };
        let groups = BTreeMap::from([(GroupName::Primary, Group { template: None, instances })]);
        let situation = Situation {
            now: noon(),
            poll_interval: secs(poll_s),
            observation: Ok(Arc::new(observation)),
            capacity: Ok(Arc::new(Capacity { capabilities: Capabilities { deletes_named, overlaps, resizes: false }, groups, identity: None, readiness: Readiness::Ready })),
            history: History::default(),
            state: Arc::new(state),
            restart_hold: secs(60),
            ready_deadline: secs(900),
        };
        (situation, unrest)
    }
}

fn node(host: &str, used_mb: u64) -> Node {
    let (id, used) = (NodeId { host: host.into(), port: 8041 }, Resources::new(used_mb, used_mb / 1024, 0));
    Node { id, state: NodeState::Running, total: FULL, used, containers: 1, health_report: String::new() }
}

fn disturb(unrest: Unrest, nodes: &mut Vec<Node>, instances: &mut [Instance], state: &mut State) {
    let first = "w-0".to_owned();
    match unrest {
        Unrest::NodeIs(state) => nodes[0].state = state,
        Unrest::NodeIsAway => drop(nodes.remove(0)),
        Unrest::MachineIs(state) => instances[0].state = state,
        Unrest::NeverReady => {
            nodes.remove(0);
            state.workers.values_mut().take(1).for_each(|record| record.ready_at = None);
        }
        Unrest::NotRemembered => drop(state.workers.remove(&first)),
        Unrest::AnotherIsRemembered => {
            let record = state.workers[&first];
            state.workers.insert("w-99".into(), record);
        }
        Unrest::Waits(deadline_s) => {
            let phase = DrainPhase::Decommissioning { since: at(-90.0), deadline: at(deadline_s), containers: 1 };
            nodes[0].state = NodeState::Decommissioning;
            disturb(Unrest::Drains(phase), nodes, instances, state);
        }
        Unrest::Drains(phase) => {
            let (node, instance, group) = (nodes[0].id.clone(), "m/w-0".to_owned(), GroupName::Primary);
            let drain = Drain { node, group, instance, full: FULL, phase, since: at(-100.0) };
            state.drains.insert(first, drain);
        }
        Unrest::Orders => state.operations.push(Operation {
            request_id: "r-1".into(),
            intent: Intent::Create { group: GroupName::Primary, count: 1 },
            at: at(-30.0),
            operation_id: None,
        }),
        Unrest::Stranger => nodes.push(node("stranger", 0)),
        Unrest::None | Unrest::FewerSamples(_) | Unrest::OneSampleDiffers(_) => {}
    }
}

/// What the loop does before it decides: the sample of this look is added.
pub fn look(policy: &Policy, situation: &mut Situation) {
    let sample = decide::sample(policy, situation).expect("both have answered");
    push(policy, situation, sample);
}

pub fn push(policy: &Policy, situation: &mut Situation, sample: Sample) {
    situation.history.push(sample, decide::keep_samples(policy, situation.poll_interval));
}

/// The present has lasted for this long, at this pace; but one sample was another where that is asked for.
fn has_lasted(policy: &Policy, situation: &mut Situation, unrest: Unrest, lasted: Duration, pace: TimeDelta) {
    let sample = decide::sample(policy, situation).expect("both have answered");
    let lasted = if let Unrest::FewerSamples(seconds) = unrest { secs(seconds) } else { lasted };
    let mut times: Vec<_> = (1..).map(|step| noon() - pace * step).take_while(|at| *at >= noon() - lasted).collect();
    times.reverse();
    let differs = if let Unrest::OneSampleDiffers(n) = unrest { times.len().checked_sub(n) } else { None };
    for (index, at) in times.into_iter().enumerate() {
        let allocated = if differs == Some(index) { FULL } else { sample.allocated };
        push(policy, situation, Sample { at, allocated, ..sample });
    }
    look(policy, situation);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_settled_is_decided_the_same_however_far_ahead(
        policy in policy(),
        (mut situation, unrest) in situation(),
        leaps in vec(1..200_u32, 1..5),
    ) {
        let pace = TimeDelta::from_std(situation.poll_interval)? / 2;
        let lasted = decide::keep_samples(&policy, situation.poll_interval) * 2;
        has_lasted(&policy, &mut situation, unrest, lasted, pace);
        let settled_until = decide::settled_until(&policy, &situation);
        let now = decide::decide(&policy, &situation);
        let survey = Survey::of(&policy, &situation).expect("both have answered");
        prop_assert_eq!(decide::settled_until_on(&policy, &situation, &survey, &now), settled_until);
        let Some(settled_until) = settled_until else { return Ok(()) };
        prop_assert!(now.actions.is_empty());
        prop_assert!(situation.now < settled_until);
        for leap in leaps {
            for _ in 0..leap {
                situation.now += pace;
                look(&policy, &mut situation);
            }
            if situation.now >= settled_until {
                break;
            }
            let later = decide::decide(&policy, &situation);
            prop_assert_eq!((&later.actions, &later.reasons), (&now.actions, &now.reasons), "{} s on", (situation.now - noon()).num_seconds());
            prop_assert_eq!(decide::settled_until(&policy, &situation), Some(settled_until));
        }
    }
}

/// A cluster of three at its minimum, idle for an hour, whose last scaling began so long ago.
pub fn at_rest(scaled_ago_s: f64) -> (Policy, Situation) {
    let mut policy = fixtures::policy();
    policy.primary = group(3, 9, 1);
    let instance = |n| Instance { name: format!("m/w-{n}"), host: format!("w-{n}"), state: InstanceState::Running };
    let instances: Vec<_> = (0..3).map(instance).collect();
    let record = ready();
    let workers = instances.iter().map(|instance| (instance.host.clone(), record)).collect();
    let observation = Observation {
        started_on_ms: 1,
        version: String::new(),
        metrics: ClusterMetrics::default(),
        nodes: instances.iter().map(|instance| Arc::new(node(&instance.host, 0))).collect(),
        applications: Vec::new(),
    };
    let groups = BTreeMap::from([(GroupName::Primary, Group { template: None, instances })]);
    let capabilities = Capabilities { deletes_named: true, overlaps: true, resizes: false };
    let mut situation = Situation {
        now: noon(),
        poll_interval: secs(5),
        observation: Ok(Arc::new(observation)),
        capacity: Ok(Arc::new(Capacity { capabilities, groups, identity: None, readiness: Readiness::Ready })),
        history: History::default(),
        state: Arc::new(State { last_scaling_at: Some(at(-scaled_ago_s)), workers, ..State::default() }),
        restart_hold: secs(60),
        ready_deadline: secs(900),
    };
    has_lasted(&policy, &mut situation, Unrest::None, secs(3600), TimeDelta::milliseconds(2500));
    (policy, situation)
}

#[test]
fn an_idle_cluster_at_its_minimum_is_settled_once_the_cooldown_is_over() {
    let until = |(policy, situation): (Policy, Situation)| decide::settled_until(&policy, &situation);
    assert_eq!(until(at_rest(120.0)), Some(DateTime::<Utc>::MAX_UTC));
    assert_eq!(until(at_rest(119.9)), None);
}

#[test]
fn a_worker_that_boots_or_is_of_no_use_or_leaves_has_a_deadline_ahead() {
    for state in [NodeState::Lost, NodeState::Unhealthy, NodeState::Decommissioning] {
        let (policy, mut situation) = at_rest(3600.0);
        let observation = Arc::make_mut(situation.observation.as_mut().expect("an observation"));
        Arc::make_mut(&mut observation.nodes[0]).state = state;
        assert_eq!(decide::settled_until(&policy, &situation), None, "{state:?}");
    }
}

#[test]
fn a_drain_that_waits_for_yarn_is_settled_until_yarn_is_told_again() {
    let (mut policy, mut situation) = at_rest(3600.0);
    let observation = Arc::make_mut(situation.observation.as_mut().expect("an observation"));
    Arc::make_mut(&mut observation.nodes[0]).state = NodeState::Decommissioning;
    let node = observation.nodes[0].id.clone();
    let phase = DrainPhase::Decommissioning { since: at(-600.0), deadline: at(300.0), containers: 1 };
    let (instance, since) = ("m/w-0".to_owned(), at(-600.0));
    let drain = Drain { node, group: GroupName::Primary, instance, full: FULL, phase, since };
    Arc::make_mut(&mut situation.state).drains.insert("w-0".into(), drain);
    situation.history = History::default();
    // Two are left, as many as there must be: nothing is to be done.
    policy.primary = group(2, 9, 1);
    has_lasted(&policy, &mut situation, Unrest::None, secs(3600), TimeDelta::milliseconds(2500));
    assert_eq!(decide::settled_until(&policy, &situation), Some(at(420.0)));
}

fn ready() -> WorkerRecord {
    let ready_at = Some(at(-700.0));
    WorkerRecord { first_seen_at: at(-800.0), ready_at, not_ready_since: None, unlisted_since: None }
}
