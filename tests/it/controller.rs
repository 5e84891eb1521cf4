//! The real loop in the little world: growth and shrinking, crashes at every place, lost answers, refusals, restarts.

mod unreliable;

use yarn_autoscaler::{
    controller::{Controller, Halt, Settings},
    model::{Action, InstanceState, NodeState, Reason},
    policy::Policy,
    ports::{ErrorKind, PolicyChange},
};

use crate::{
    fake_ports::Port,
    fixtures::{self, at, basic, secs},
    world::{Fault, Shared, World, poll_once},
};

/// Runs a controller in this world until this second after noon. `None`: it died on the way.
fn run(world: &Shared, policy: &Policy, until: f64) -> Option<Result<(), Halt>> {
    world.borrow_mut().end = at(until);
    let ports = || Port::new(world);
    let ports = (ports(), ports(), ports(), ports(), ports());
    poll_once(async {
        let mut controller = Controller::new(ports, policy.clone(), Settings::default()).await?;
        controller.run(&Port::new(world)).await
    })
}

/// Two workers, and at 60 s twelve containers of 4 GB that run for 5 min: five workers' worth in all, with what the
/// two can take.
fn wave() -> World {
    let mut world = World::with_workers(2);
    world.plan(60.0, |world| world.ask(12, 4096, 300.0));
    world
}

fn policy() -> Policy {
    fixtures::policy()
}

/// All that was told: actions, reasons, notes, by second.
fn story(world: &Shared) -> String {
    let world = world.borrow();
    let mut lines = Vec::new();
    for told in world.journal.iter().filter(|told| !told.decision.actions.is_empty() || !told.notes.is_empty()) {
        let second = (told.at - at(0.0)).num_seconds();
        let reasons: Vec<_> = told.decision.reasons.iter().map(ToString::to_string).collect();
        lines.push(format!("{second:>5} {:?}\n      {reasons:?} {:?}", told.decision.actions, told.notes));
    }
    lines.join("\n")
}

/// Nothing doubled, nothing forgotten, nothing killed: at rest, at the minimum.
fn assert_at_rest(world: &Shared, size: usize, what: &str) {
    let story = story(world);
    let world = world.borrow();
    assert_eq!(world.size(), size, "{what}: size\n{story}");
    assert_eq!(world.machines.len(), size, "{what}: no machine is left over\n{story}");
    assert!(world.waiting.is_empty(), "{what}: nothing waits\n{story}");
    assert_eq!(world.killed, 0, "{what}: nothing was killed\n{story}");
    assert!(world.stored.operations.is_empty(), "{what}: no order is left: {:?}\n{story}", world.stored.operations);
    assert!(world.stored.drains.is_empty(), "{what}: no drain is left: {:?}\n{story}", world.stored.drains);
    assert!(world.excluded.is_empty(), "{what}: no exclude entry is left: {:?}\n{story}", world.excluded);
    let cordoned = world.nodes.values().filter(|node| node.state == NodeState::Running && node.cordoned).count();
    assert_eq!(cordoned, 0, "{what}: no node is left cordoned\n{story}");
}

#[test]
fn grows_with_demand_shrinks_without_and_stays_at_the_minimum() {
    let world = wave().share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "after the wave");
    assert!(world.borrow().made > 5, "it has grown\n{}", story(&world));
    let orders = world.borrow().orders.len();
    assert_eq!(run(&world, &policy(), 4.0 * 3600.0), Some(Ok(())));
    assert_eq!(world.borrow().orders.len(), orders, "an idle cluster at its minimum is left alone\n{}", story(&world));
    let settled = world.borrow().journal.iter().filter(|told| told.settled_until.is_some()).count();
    assert!(
        world.borrow().journal.last().is_some_and(|told| told.settled_until.is_some()) && settled > 3000,
        "{settled} are settled"
    );
}

#[test]
fn unchanging_demand_stops_changing() {
    let mut world = World::with_workers(2);
    world.plan(60.0, |world| world.ask(11, 4096, 1e6));
    let world = world.share();
    assert_eq!(run(&world, &policy(), 1800.0), Some(Ok(())));
    let (size, orders) = (world.borrow().size(), world.borrow().orders.len());
    assert_eq!(size, 6, "eleven containers, two a worker\n{}", story(&world));
    assert_eq!(run(&world, &policy(), 7200.0), Some(Ok(())));
    assert_eq!(world.borrow().orders.len(), orders, "{}", story(&world));
}

#[test]
fn killed_at_any_place_nothing_is_doubled_or_forgotten() {
    dies_everywhere("a wave", wave);
}

#[test]
fn killed_at_any_place_beside_a_lagging_list_nothing_is_doubled_or_forgotten() {
    dies_everywhere("a wave at a provider whose list lags behind", lagging);
}

#[test]
fn killed_at_any_place_while_demand_returns_nothing_is_doubled_or_forgotten() {
    dies_everywhere("demand returns while a node drains", returning);
}

/// The wave, at a provider whose list shows new machines late: an order forgotten would be given twice.
fn lagging() -> World {
    let mut world = wave();
    world.shows_late = true;
    world
}

/// A node drains; when demand returns at 150 s, it is taken back.
fn returning() -> World {
    let mut world = draining();
    world.plan(150.0, |world| world.ask(3, 7000, 100.0));
    world
}

fn dies_everywhere(what: &str, scene: fn() -> World) {
    let dry = scene().share();
    assert_eq!(run(&dry, &policy(), 2400.0), Some(Ok(())));
    let (places, most) = (dry.borrow().boundaries, dry.borrow().most_at_once);
    assert!(places > 30, "there are places to die at: {places}");
    for place in 1..=places {
        let mut world = scene();
        world.crash_at = Some(place);
        let world = world.share();
        let died = run(&world, &policy(), 2400.0);
        assert!(!matches!(died, Some(Ok(()))), "{what}: place {place} of {places}");
        // Another process, two seconds later, at the same world and the same store.
        let now = world.borrow().now;
        world.borrow_mut().advance(now + secs(2));
        assert_eq!(run(&world, &policy(), 3000.0), Some(Ok(())), "{what}: place {place}");
        assert_at_rest(&world, 2, &format!("{what}: killed at place {place} of {places}"));
        assert!(world.borrow().most_at_once <= most, "{what}: place {place}: more machines than without a crash");
    }
}

/// The wave with these faults for its orders, run to its end; orders by second after noon.
fn orders_with(faults: impl IntoIterator<Item = Fault>) -> (Shared, Vec<i64>) {
    let mut world = wave();
    world.faults.extend(faults);
    let world = world.share();
    assert_eq!(run(&world, &policy(), 5400.0), Some(Ok(())));
    let seconds = world.borrow().orders.iter().map(|(when, _)| (*when - at(0.0)).num_seconds()).collect();
    (world, seconds)
}

#[test]
fn a_lost_answer_is_asked_for_again_under_the_same_request_id() {
    let (world, _) = orders_with([Fault::AnswerLost]);
    assert_at_rest(&world, 2, "answer lost");
    let world = world.borrow();
    let id = |index: usize| world.orders[index].1.split(':').next().map(str::to_owned);
    assert_eq!(id(0), id(1), "{:?}", world.orders);
    assert_ne!(id(1), id(2), "{:?}", world.orders);
}

#[test]
fn a_lost_answer_followed_by_a_refusal_of_the_second_request_is_not_forgotten() {
    let throttled = ErrorKind::Throttled { retry_after: Some(secs(20)) };
    let (world, seconds) = orders_with([Fault::AnswerLost, Fault::Refused(throttled)]);
    assert_at_rest(&world, 2, "answer lost, then throttled");
    let world = world.borrow();
    let ids: Vec<_> = world.orders.iter().take(3).map(|(_, order)| order.split(':').next()).collect();
    assert!(ids[0] == ids[1] && ids[1] == ids[2], "{:?}", world.orders);
    assert!(seconds[2] - seconds[1] >= 20, "{seconds:?}");
}

#[test]
fn a_stock_out_is_waited_out_longer_each_time_and_is_not_for_ever() {
    let (world, seconds) = orders_with([Fault::Refused(ErrorKind::StockOut); 3]);
    let waits: Vec<_> = seconds.windows(2).take(3).map(|pair| pair[1] - pair[0]).collect();
    assert!((60..=65).contains(&waits[0]) && (120..=125).contains(&waits[1]), "{waits:?}\n{}", story(&world));
    assert!((240..=245).contains(&waits[2]), "{waits:?}");
    assert_at_rest(&world, 2, "stock-out");
}

#[test]
fn a_quota_is_asked_again_after_two_minutes() {
    let (world, seconds) = orders_with([Fault::Refused(ErrorKind::Quota)]);
    assert!((120..=125).contains(&(seconds[1] - seconds[0])), "{seconds:?}");
    assert_at_rest(&world, 2, "quota");
}

#[test]
fn a_throttled_order_waits_as_long_as_it_was_told() {
    let throttled = ErrorKind::Throttled { retry_after: Some(secs(42)) };
    let (world, seconds) = orders_with([Fault::Refused(throttled)]);
    assert!((42..=45).contains(&(seconds[1] - seconds[0])), "{seconds:?}");
    assert_at_rest(&world, 2, "throttled");
}

#[test]
fn an_operation_that_ends_badly_is_told_and_tried_again() {
    let (world, _) = orders_with([Fault::Fails(ErrorKind::StockOut)]);
    assert_at_rest(&world, 2, "operation failed");
    assert!(story(&world).contains("failed: create"), "{}", story(&world));
}

#[test]
fn an_order_that_nobody_acknowledges_is_given_up() {
    let (world, _) = orders_with([Fault::Refused(ErrorKind::Transient); 12]);
    assert!(story(&world).contains("gave up on an order that was never acknowledged"), "{}", story(&world));
    assert_at_rest(&world, 2, "unacknowledged");
}

#[test]
fn an_operation_that_never_ends_is_not_waited_for_for_ever() {
    for polls_fail in [false, true] {
        let mut world = wave();
        (world.never_done, world.polls_fail) = (!polls_fail, polls_fail);
        world.plan(4400.0, |world| {
            world.never_done = false;
            let now = world.now;
            world.taken.values_mut().for_each(|order| order.done_at = order.done_at.min(now));
        });
        world.plan(4500.0, |world| world.polls_fail = false);
        let world = world.share();
        assert_eq!(run(&world, &policy(), 7200.0), Some(Ok(())));
        assert!(story(&world).contains("runs for too long"), "polls fail: {polls_fail}\n{}", story(&world));
        assert_at_rest(&world, 2, "an operation without end");
    }
}

#[test]
fn another_controller_s_change_ends_this_one() {
    let mut world = wave();
    world.plan(30.0, |world| world.generation += 1);
    let world = world.share();
    let halt = run(&world, &policy(), 3600.0);
    assert_eq!(halt, Some(Err(Halt::Conflict("changed by pid 4711 on m-0".into()))));
    assert!(world.borrow().orders.is_empty(), "nothing is ordered after that");
}

#[test]
fn nothing_is_ordered_that_could_not_be_saved() {
    let mut world = wave();
    world.plan(1.0, |world| world.save_faults.extend([ErrorKind::Transient; 200]));
    let world = world.share();
    assert_eq!(run(&world, &policy(), 180.0), Some(Ok(())));
    assert!(world.borrow().orders.is_empty(), "{:?}", world.borrow().orders);
    assert!(story(&world).contains("the state could not be saved: no space left on device"));
    world.borrow_mut().save_faults.clear();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "after the disk was full");
}

/// Three workers, one of which is idle after a minute and another half idle: one can go.
fn shrinking(runs_s: f64) -> World {
    let mut world = World::with_workers(3);
    world.ask(6, 4096, runs_s);
    world.plan(60.0, |world| {
        world.nodes.get_mut("w-0").into_iter().for_each(|node| node.containers.clear());
        world.nodes.get_mut("w-1").into_iter().for_each(|node| node.containers.truncate(1));
    });
    world
}

#[test]
fn a_restarted_resource_manager_forgets_a_cordon_and_it_is_made_again() {
    let world = shrinking(600.0).share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    let cordoned = first(&world, |action| matches!(action, Action::Cordon { .. }));
    let mut world = shrinking(600.0);
    world.plan(cordoned + 1.0, World::restart_resource_manager);
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    let cordons = count(&world, |action| matches!(action, Action::Cordon { .. }));
    assert_eq!(cordons, 2, "{}", story(&world));
    assert_at_rest(&world, 2, "restart while cordoned");
    let cordoned_again = last(&world, |action| matches!(action, Action::Cordon { .. }));
    let decommissioned = first(&world, |action| matches!(action, Action::Decommission { .. }));
    assert!(decommissioned >= cordoned_again + 3.0, "{}", story(&world));
    assert!(decommissioned >= cordoned + 60.0, "not while applications register anew\n{}", story(&world));
}

/// The seconds at which an action of this kind was decided.
fn seconds_of(world: &Shared, is: impl Fn(&Action) -> bool) -> Vec<f64> {
    let world = world.borrow();
    let told = world.journal.iter().filter(|told| told.decision.actions.iter().any(&is));
    told.map(|told| (told.at - at(0.0)).as_seconds_f64()).collect()
}

fn first(world: &Shared, is: impl Fn(&Action) -> bool) -> f64 {
    *seconds_of(world, is).first().unwrap_or_else(|| panic!("never decided\n{}", story(world)))
}

fn last(world: &Shared, is: impl Fn(&Action) -> bool) -> f64 {
    *seconds_of(world, is).last().unwrap_or_else(|| panic!("never decided\n{}", story(world)))
}

fn count(world: &Shared, is: impl Fn(&Action) -> bool) -> usize {
    seconds_of(world, is).len()
}

#[test]
fn a_resource_manager_that_restarts_while_a_node_drains_loses_its_containers_and_that_is_told() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 400.0), Some(Ok(())));
    assert_eq!(count(&world, |action| matches!(action, Action::Decommission { .. })), 1, "{}", story(&world));
    world.borrow_mut().restart_resource_manager();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert!(story(&world).contains("containers lost"), "{}", story(&world));
    let world = world.borrow();
    assert!(world.killed > 0 && world.machines.len() == 2 && world.excluded.is_empty(), "its machine is deleted");
}

/// Three workers, each with one small container, of which two would do: one drains while its container runs.
fn draining() -> World {
    let mut world = World::with_workers(3);
    world.ask(3, 5000, 700.0);
    world.plan(1.0, |world| {
        for node in world.nodes.values_mut() {
            node.containers.iter_mut().for_each(|container| container.memory_mb = 1024);
        }
    });
    world
}

#[test]
fn nothing_running_is_killed_by_a_drain_before_its_time_out() {
    let mut policy = policy();
    basic(&mut policy).graceful_decommission_timeout = secs(3600);
    let world = draining().share();
    assert_eq!(run(&world, &policy, 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "a patient drain");
}

#[test]
fn a_drain_that_outlives_its_time_out_is_told() {
    let mut policy = policy();
    basic(&mut policy).graceful_decommission_timeout = secs(60);
    let world = draining().share();
    assert_eq!(run(&world, &policy, 3600.0), Some(Ok(())));
    assert!(story(&world).contains("reached its graceful decommission time-out after"), "{}", story(&world));
    assert_eq!((world.borrow().killed, world.borrow().machines.len()), (1, 2));
}

#[test]
fn demand_that_returns_while_a_node_drains_takes_it_back() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 300.0), Some(Ok(())));
    assert_eq!(count(&world, |action| matches!(action, Action::Decommission { .. })), 1, "{}", story(&world));
    world.borrow_mut().ask(3, 7000, 100.0);
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert!(count(&world, |action| matches!(action, Action::Recommission { .. })) >= 1, "{}", story(&world));
    assert_eq!(world.borrow().made, 3, "no machine was made\n{}", story(&world));
    assert_at_rest(&world, 2, "demand has returned");
}

#[test]
fn a_node_given_a_container_right_before_the_cordon_keeps_it_for_three_seconds_at_least() {
    let world = shrinking(600.0).share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    let cordoned = first(&world, |action| matches!(action, Action::Cordon { .. }));
    let decommissioned = first(&world, |action| matches!(action, Action::Decommission { .. }));
    assert!(decommissioned >= cordoned + 3.0, "cordoned at {cordoned}, decommissioned at {decommissioned}");
}

#[test]
fn a_worker_that_never_registers_is_replaced() {
    let mut world = wave();
    world.boot_fails = true;
    world.plan(900.0, |world| world.boot_fails = false);
    world.plan(900.0, |world| world.ask(12, 4096, 1200.0));
    let world = world.share();
    assert_eq!(run(&world, &policy(), 6.0 * 3600.0), Some(Ok(())));
    assert!(story(&world).contains("Replace") || story(&world).contains("replace w-"), "{}", story(&world));
    assert_at_rest(&world, 2, "workers that never came");
}

#[test]
fn a_machine_that_dies_while_it_drains_holds_nobody_up() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 300.0), Some(Ok(())));
    let host = world.borrow().stored.drains.keys().next().cloned().expect("a drain");
    // Its NodeManager is gone, its machine hangs, and the new ResourceManager has never heard of it.
    world.borrow_mut().nodes.remove(&host);
    world.borrow_mut().started_on_ms += 1;
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_eq!(world.borrow().machines.len(), 2, "{}", story(&world));
    assert!(world.borrow().stored.drains.is_empty(), "{}", story(&world));
}

#[test]
fn a_drained_node_that_somebody_puts_back_keeps_its_containers() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 300.0), Some(Ok(())));
    let host = world.borrow().stored.drains.keys().next().cloned().expect("a drain");
    {
        // YARN lets it go while the provider asks to wait; before that is over, somebody takes it off the file.
        let mut world = world.borrow_mut();
        world.stored.provider_retry_at = Some(at(500.0));
        world.nodes.get_mut(&host).expect("its node").containers.clear();
        world.plan(450.0, move |world| {
            world.excluded.remove(&host);
            let node = world.nodes.get_mut(&host).expect("its node");
            (node.state, node.cordoned) = (NodeState::Running, false);
            world.ask(1, 5000, 60.0);
        });
    }
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "put back");
}

#[test]
fn an_invalid_policy_is_told_a_valid_one_is_taken_and_evaluation_goes_on() {
    let mut world = wave();
    world.plan(1000.0, |world| world.policies.push_back(PolicyChange::Invalid("line 3: max < min".into())));
    let mut larger = policy();
    larger.primary = fixtures::group(4, 10, 1);
    world.plan(1500.0, move |world| world.policies.push_back(PolicyChange::New(larger)));
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert!(story(&world).contains("the old one stays in force: line 3: max < min"), "{}", story(&world));
    assert!(story(&world).contains("the new one is in force"), "{}", story(&world));
    assert_at_rest(&world, 4, "the new minimum");
    let last = world.borrow().journal.last().map(|told| told.at);
    assert!(last >= Some(at(3590.0)), "evaluation goes on");
}

#[test]
fn an_outage_of_yarn_changes_nothing() {
    let mut world = World::with_workers(5);
    world.plan(20.0, |world| world.yarn_fault = Some(ErrorKind::Transient));
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_eq!((world.borrow().size(), world.borrow().orders.len()), (5, 0));
    let held = world.borrow().journal.last().map(|told| told.decision.reasons.clone());
    assert!(matches!(held.as_deref(), Some([Reason::NoObservation { .. }])), "{held:?}");
}

#[test]
fn a_clock_set_back_delays_scaling_by_a_cooldown_not_by_the_step() {
    let world = wave().share();
    assert_eq!(run(&world, &policy(), 150.0), Some(Ok(())));
    assert!(world.borrow().stored.operations.is_empty(), "no operation is under way whose end would set it right");
    world.borrow_mut().stored.last_operation_ended_at = Some(at(86_400.0));
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "clock set back by a day");
}

#[test]
fn a_spot_worker_that_vanishes_while_it_drains_is_forgotten() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 300.0), Some(Ok(())));
    let host = world.borrow().stored.drains.keys().next().cloned().expect("a drain");
    world.borrow_mut().lose_machine(&host);
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert!(world.borrow().stored.drains.is_empty() && world.borrow().excluded.is_empty(), "{}", story(&world));
    assert!(world.borrow().machines.values().all(|machine| machine.state == InstanceState::Running));
}

#[test]
fn a_new_worker_with_the_name_of_a_lost_one_boots() {
    let mut world = World::with_workers(1);
    world.lose_machine("w-0");
    world.made = 0;
    let world = world.share();
    let mut policy = policy();
    policy.primary = fixtures::group(0, 10, 1);
    assert_eq!(run(&world, &policy, 60.0), Some(Ok(())));
    assert_eq!(world.borrow().nodes["w-0"].state, NodeState::Lost, "YARN remembers the one that had the name before");
    world.borrow_mut().ask(1, 4096, 600.0);
    assert_eq!(run(&world, &policy, 75.0), Some(Ok(())));
    let record = world.borrow().stored.workers.get("w-0").copied();
    assert!(record.is_some_and(|record| record.ready_at.is_none()), "{record:?}\n{}", story(&world));
}

#[test]
fn a_node_that_is_open_again_at_the_last_look_is_not_decommissioned() {
    let mut world = shrinking(600.0);
    world.meddled_with = true;
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    let decommissions = seconds_of(&world, |action| matches!(action, Action::Decommission { .. }));
    let cordons = seconds_of(&world, |action| matches!(action, Action::Cordon { .. }));
    assert_eq!((cordons.len(), decommissions.len()), (2, 2), "{}", story(&world));
    assert!(decommissions[0] < cordons[1] && cordons[1] + 3.0 <= decommissions[1], "{}", story(&world));
    assert!(!world.borrow().meddled_with, "there was a look before the drain");
    assert_at_rest(&world, 2, "meddled with");
}
