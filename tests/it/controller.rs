//! The real loop in the little world: growth and shrinking, crashes at every place, lost answers, refusals, restarts.

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
    let mut controller = match Controller::new(ports, policy.clone(), Settings::default()) {
        Ok(controller) => controller,
        Err(halt) => return Some(Err(halt)),
    };
    poll_once(controller.run(&Port::new(world)))
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
    let dry = wave().share();
    assert_eq!(run(&dry, &policy(), 3600.0), Some(Ok(())));
    let (places, most) = (dry.borrow().boundaries, dry.borrow().most_at_once);
    assert!(places > 30, "there are places to die at: {places}");
    for place in 1..=places {
        let mut world = wave();
        world.crash_at = Some(place);
        let world = world.share();
        let died = run(&world, &policy(), 3600.0);
        assert!(!matches!(died, Some(Ok(()))), "place {place} of {places}");
        // Another process, ten seconds later, at the same world and the same store.
        let now = world.borrow().now;
        world.borrow_mut().advance(now + secs(10));
        assert_eq!(run(&world, &policy(), 5400.0), Some(Ok(())), "place {place}");
        assert_at_rest(&world, 2, &format!("killed at place {place} of {places}"));
        assert!(world.borrow().most_at_once <= most, "place {place}: never more machines than without a crash");
    }
}
