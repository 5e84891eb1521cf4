//! Each promise of the checker, broken on purpose: a watcher that never barks is of no use.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use yarn_autoscaler::{
    decide,
    model::{
        Action, Decision, Drain, DrainPhase, GroupName, Intent, NodeId, Operation, Outage, Resources, Situation, State,
    },
    policy::{Algorithm, BasicAlgorithm, Policy},
    ports::Tick,
    sim::{
        Ms, Unwatched, Watch, chaos,
        checker::{self, Checker, orders::Order, rest},
        outcome::{Outcome, Violation},
        run::{Run, checked},
        world::{Killed, KilledBy},
    },
};

const SEED: u64 = 7;

fn checker_of(run: &Run) -> Checker {
    Checker::new(&run.scenario, &run.policy)
}

/// The situations of a trial, as the journal was told of them.
#[derive(Default)]
struct Seen(Vec<(Ms, Situation, Decision)>);

impl Watch for Seen {
    fn tick(&mut self, now: Ms, tick: &Tick<'_>) {
        self.0.push((now, tick.situation.clone(), tick.decision.clone()));
    }

    fn slept(&mut self, _: Ms, _: Ms) {}
}

/// A trial's looks at which both sides answered.
fn looks(run: &Run) -> Vec<(Ms, Situation, Decision)> {
    let mut seen = Seen::default();
    let outcome = checked(run, checker_of(run), &mut seen);
    assert_eq!(outcome.violations, []);
    seen.0.retain(|(_, situation, _)| situation.observation.is_ok() && situation.capacity.is_ok());
    seen.0
}

/// What the checker says of this decision in the first situation of a trial, as the change leaves it.
fn said(change: impl FnOnce(&mut Situation, &mut Decision)) -> Vec<&'static str> {
    let run = chaos::trial(SEED);
    let (now, mut situation, _) = looks(&run).swap_remove(0);
    let mut decision = decide::decide(&run.policy, &situation);
    change(&mut situation, &mut decision);
    let mut checker = checker_of(&run);
    tell(&mut checker, &run, now, (&situation, &decision));
    promises(checker.violations())
}

/// Tells the checker of a look.
fn tell(checker: &mut Checker, run: &Run, now: Ms, (situation, decision): (&Situation, &Decision)) {
    let (policy, workers, notes) = (&run.policy, None, &[][..]);
    let (settled_until, foresight) = (None, None);
    checker.tick(now, &Tick { situation, policy, workers, decision, settled_until, foresight, notes });
}

fn promises(violations: &[Violation]) -> Vec<&'static str> {
    violations.iter().map(|violation| violation.promise).collect()
}

const CREATE: Action = Action::Create { group: GroupName::Primary, count: 1 };

fn delete() -> Action {
    Action::Delete { group: GroupName::Primary, instances: vec!["w-0".into()] }
}

#[test]
fn sim_checker_sees_a_decision_that_is_not_the_one() {
    assert_eq!(said(|_, _| ()), [""; 0]);
    assert!(said(|_, decision| decision.actions.push(CREATE)).contains(&checker::SAME_DECISION));
}

#[test]
fn sim_checker_sees_orders_on_missing_data() {
    for break_off in [
        |situation: &mut Situation| situation.observation = Err(Outage { text: "gone".into() }),
        |situation: &mut Situation| situation.capacity = Err(Outage { text: "gone".into() }),
    ] {
        let said = said(|situation, decision| {
            break_off(situation);
            decision.actions.push(delete());
        });
        assert!(said.contains(&checker::MISSING_DATA), "{said:?}");
    }
}

#[test]
fn sim_checker_sees_workers_made_and_deleted_in_one_tick() {
    assert!(said(|_, decision| decision.actions.extend([CREATE, delete()])).contains(&checker::NO_CHURN));
}

#[test]
fn sim_checker_sees_a_look_that_is_never_made_again() {
    let said = said(|situation, decision| decision.next_at = situation.now + Duration::from_secs(86_400));
    assert!(said.contains(&checker::PACE), "{said:?}");
}

#[test]
fn sim_checker_sees_a_worker_that_was_not_taken_back() {
    let said = said(|situation, decision| {
        let node = situation.observation.as_ref().unwrap().nodes[0].id.clone();
        let drain = Drain {
            node: NodeId { ..node.clone() },
            group: GroupName::Primary,
            instance: node.host.clone(),
            full: Resources::new(8192, 8, 0),
            phase: DrainPhase::Cordoned { seen_at: None },
            since: situation.now,
        };
        Arc::make_mut(&mut situation.state).drains.insert(node.host, drain);
        decision.actions.push(CREATE);
    });
    assert!(said.contains(&checker::TAKE_BACK), "{said:?}");
}

fn operation(request_id: &str, intent: &Intent, run: &Run) -> Operation {
    let operation_id = Some("operation-0".into());
    Operation { request_id: request_id.into(), intent: intent.clone(), at: run.scenario.start, operation_id }
}

#[test]
fn sim_checker_sees_a_second_order_where_the_provider_takes_one() {
    let mut run = chaos::trial(SEED);
    let (now, mut situation, mut decision) = looks(&run).swap_remove(0);
    Arc::make_mut(&mut run.scenario).cloud.overlaps = false;
    let intent = Intent::Create { group: GroupName::Primary, count: 1 };
    Arc::make_mut(&mut situation.state).operations.push(operation("a", &intent, &run));
    decision.actions.push(CREATE);
    let mut checker = checker_of(&run);
    tell(&mut checker, &run, now, (&situation, &decision));
    assert!(promises(checker.violations()).contains(&checker::ONE_ORDER));
}

#[test]
fn sim_checker_sees_orders_that_are_not_saved_or_doubled_or_forgotten() {
    let run = chaos::trial(SEED);
    let intent = Intent::Create { group: GroupName::Primary, count: 2 };
    let saved = State { operations: vec![operation("a", &intent, &run)], ..State::default() };
    let order = Order { at_ms: 0, request_id: "a", intent: &intent, machines: 2, operation: Some(0) };

    let mut checker = checker_of(&run);
    checker.order(&order, &State::default());
    assert_eq!(promises(checker.violations()), [checker::NO_FORGET], "given before it was saved");

    let mut checker = checker_of(&run);
    checker.order(&order, &saved);
    assert_eq!(checker.violations(), []);
    checker.order(&order, &saved);
    assert_eq!(promises(checker.violations()), [checker::NO_DOUBLE], "the same request has made machines twice");

    let mut checker = checker_of(&run);
    checker.order(&order, &saved);
    checker.saved(1, run.scenario.start, &saved, |_| true);
    assert_eq!(checker.violations(), []);
    checker.saved(2, run.scenario.start, &State::default(), |_| true);
    assert_eq!(promises(checker.violations()), [checker::NO_FORGET], "it is still under way");
}

#[test]
fn sim_checker_sees_a_group_that_outgrows_its_maximum() {
    let run = chaos::trial(SEED);
    let max = run.policy.primary.max_instances;
    let mut checker = checker_of(&run);
    for size in [max + 2, max + 1, max] {
        checker.sizes(0, &BTreeMap::from([(GroupName::Primary, size)]));
        assert_eq!(checker.violations(), [], "above the maximum from the beginning, and shrinking");
    }
    checker.sizes(1, &BTreeMap::from([(GroupName::Primary, max + 1)]));
    assert_eq!(promises(checker.violations()), [checker::BOUNDS]);
}

/// The run of a seed whose controller is given another policy than the one that the checker holds it to.
fn under(seed: u64, change: impl FnOnce(&mut Policy)) -> Outcome {
    let mut run = chaos::trial(seed);
    let checker = checker_of(&run);
    change(&mut run.policy);
    checked(&run, checker, &mut Unwatched)
}

fn basic(policy: &mut Policy) -> &mut BasicAlgorithm {
    let Algorithm::Basic(basic) = &mut policy.algorithm;
    basic
}

#[test]
fn sim_a_controller_with_another_policy_is_found_out() {
    let found = |promise: &str, change: fn(&mut Policy)| {
        (0..200).any(|seed| promises(&under(seed, change).violations).contains(&promise))
    };
    assert!(found(checker::TIMEOUT, |policy| basic(policy).graceful_decommission_timeout = Duration::ZERO));
    assert!(found(checker::BOUNDS, |policy| policy.primary.max_instances += 5));
    assert!(found(checker::REST, |policy| policy.primary.min_instances = policy.primary.max_instances));
    assert!(found(checker::JOBS_END, |policy| policy.primary.max_instances = policy.primary.min_instances));
}

#[test]
fn sim_checker_sees_containers_that_were_lost_too_early() {
    let mut run = chaos::trial(SEED);
    basic(&mut run.policy).graceful_decommission_timeout = Duration::from_secs(60);
    let killed = |at_ms, by| vec![Killed { at_ms, host: "w-0".into(), containers: 1, by }];
    let mut checker = checker_of(&run);
    checker.killed(killed(61_000, KilledBy::Decommission { since_ms: 1_000 }));
    assert_eq!(checker.violations(), [], "in its own time");
    checker.killed(killed(60_999, KilledBy::Decommission { since_ms: 1_000 }));
    checker.killed(killed(60_999, KilledBy::Recommission));
    assert_eq!(promises(checker.violations()), [checker::TIMEOUT; 2]);
}

#[test]
fn sim_checker_sees_what_is_left_over() {
    let mut run = chaos::trial(SEED);
    let scenario = Arc::make_mut(&mut run.scenario);
    scenario.events.clear();
    scenario.cloud.deletes_named = true;
    scenario.cloud.groups.values_mut().for_each(|group| group.mean_lifetime = None);
    let end = 10 * rest::settle_ms(&run.scenario, &run.policy);
    let at_rest = rest::Left {
        demand: rest::Demand { is_done: true, ..rest::Demand::default() },
        sizes: BTreeMap::from([(GroupName::Primary, run.policy.primary.min_instances)]),
        ..rest::Left::default()
    };
    let judged = |change: fn(&mut rest::Left)| {
        let mut left = at_rest.clone();
        change(&mut left);
        let (violations, is_judged) = checker_of(&run).close(end, &left);
        assert!(is_judged);
        promises(&violations)
    };
    assert_eq!(judged(|_| ()), [""; 0]);
    assert_eq!(judged(|left| left.odd.push("w-7 is Lost".into())), [checker::REST]);
    assert_eq!(judged(|left| left.excluded.push("w-7".into())), [checker::REST]);
    assert_eq!(judged(|left| *left.sizes.get_mut(&GroupName::Primary).unwrap() = 0), [checker::REST]);
    assert_eq!(
        judged(|left| left.state.operations.push(operation(
            "a",
            &Intent::Create { group: GroupName::Primary, count: 1 },
            &chaos::trial(SEED)
        ))),
        [checker::REST]
    );
}

#[test]
fn sim_a_violation_is_told_with_its_seed_and_the_decisions_before_it() {
    let outcome = under(3, |policy| basic(policy).cooldown_period = Duration::from_secs(0));
    assert_eq!(chaos::describe(&Outcome { violations: Vec::new(), ..outcome.clone() }), "");
    let violation = Violation { at_ms: 1_800_000, promise: checker::REST, text: "it does not".into() };
    let text = chaos::describe(&Outcome { violations: vec![violation], ..outcome });
    assert!(text.starts_with("seed 3: at 1800 s: a cluster left alone comes to rest: it does not\n"), "{text}");
    assert!(text.contains("    because "), "{text}");
    assert!(text.ends_with("again: yarn-autoscaler simulate --faults --seed 3\n"), "{text}");
}
