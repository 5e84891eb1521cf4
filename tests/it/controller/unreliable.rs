//! What YARN and the provider show late, wrongly or only in part, and what they refuse: nothing is lost by it.

use chrono::TimeDelta;
use yarn_autoscaler::{
    model::{Action, DrainPhase, NodeState},
    ports::ErrorKind,
};

use super::{assert_at_rest, count, draining, first, last, policy, run, story, wave};
use crate::{
    fixtures::at,
    world::{Shared, Told, World},
};

#[test]
fn a_draining_node_whose_state_is_not_understood_for_one_look_is_not_deleted() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 300.0), Some(Ok(())));
    let host = world.borrow().stored.drains.keys().next().cloned().expect("a drain");
    let set = |host: String, state| {
        move |world: &mut World| world.nodes.get_mut(&host).into_iter().for_each(|node| node.state = state)
    };
    world.borrow_mut().plan(310.0, set(host.clone(), NodeState::Unknown));
    world.borrow_mut().plan(313.0, set(host, NodeState::Decommissioning));
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert!(!story(&world).contains("went from YARN"), "{}", story(&world));
    assert_at_rest(&world, 2, "a word that we do not know");
}

/// One worker, where the policy asks for two.
fn below_minimum() -> World {
    let mut world = World::with_workers(1);
    world.made = 1;
    world
}

#[test]
fn the_minimum_is_ordered_once_although_the_list_lags_behind_the_operation() {
    let mut world = below_minimum();
    world.shows_late = true;
    let world = world.share();
    assert_eq!(run(&world, &policy(), 600.0), Some(Ok(())));
    assert_eq!(world.borrow().orders.len(), 1, "{}", story(&world));
    assert_at_rest(&world, 2, "a list that lags behind");
}

#[test]
fn a_list_that_is_short_once_orders_nothing() {
    for short_at in [0.0, 100.0] {
        let mut world = World::with_workers(2);
        world.list_is_short_by = usize::from(short_at == 0.0);
        world.plan(100.0, |world| world.list_is_short_by = 1);
        let world = world.share();
        assert_eq!(run(&world, &policy(), 600.0), Some(Ok(())));
        assert_eq!(world.borrow().orders.len(), 0, "{}", story(&world));
        assert_at_rest(&world, 2, "a list that is short once");
    }
}

#[test]
fn a_worker_that_is_gone_at_the_second_look_too_is_made_anew() {
    let mut world = World::with_workers(2);
    world.plan(100.0, |world| world.lose_machine("w-1"));
    let world = world.share();
    assert_eq!(run(&world, &policy(), 600.0), Some(Ok(())));
    let made = first(&world, |action| matches!(action, Action::Create { .. }));
    assert!((102.0..106.0).contains(&made), "made at {made}\n{}", story(&world));
    assert_at_rest(&world, 2, "a worker is gone");
}

#[test]
fn a_node_on_which_something_changes_when_it_is_let_go_settles_anew() {
    let mut world = draining();
    world.swaps_when_let_go = 1;
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_eq!(world.borrow().swaps_when_let_go, 0, "there was a change\n{}", story(&world));
    let is_decommission = |action: &Action| matches!(action, Action::Decommission { .. });
    assert_eq!(count(&world, is_decommission), 2, "{}", story(&world));
    let (once, again) = (first(&world, is_decommission), last(&world, is_decommission));
    assert!(once + 3.0 <= again && again < once + 10.0, "at {once} and {again}\n{}", story(&world));
    assert_at_rest(&world, 2, "a change at the last moment");
}

#[test]
fn a_cordoned_node_on_which_more_runs_than_before_settles_anew() {
    let cordoned = |world: &Shared| first(world, |action| matches!(action, Action::Cordon { .. }));
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    let at = cordoned(&world);
    let mut world = draining();
    world.plan(at + 4.0, |world| {
        let cordoned = world.nodes.values_mut().filter(|node| node.cordoned);
        cordoned.for_each(|node| node.containers[0].memory_mb += 256);
    });
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    let decommissioned = first(&world, |action| matches!(action, Action::Decommission { .. }));
    assert!(decommissioned >= at + 8.0, "cordoned at {at}, decommissioned at {decommissioned}\n{}", story(&world));
    assert_at_rest(&world, 2, "more than before");
}

/// Four workers, each with one small container, of which two would do.
fn two_draining() -> World {
    let mut world = World::with_workers(4);
    world.ask(4, 5000, 700.0);
    world.plan(1.0, |world| {
        for node in world.nodes.values_mut() {
            node.containers.iter_mut().for_each(|container| container.memory_mb = 1024);
        }
    });
    world
}

#[test]
fn a_node_that_is_refused_keeps_no_other_from_leaving() {
    let mut world = two_draining();
    world.never_let_go = Some("w-3".into());
    world.plan(300.0, |world| {
        assert!(world.excluded.contains("w-2") && !world.excluded.contains("w-3"), "{:?}", world.excluded);
        world.never_let_go = None;
    });
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert!(story(&world).contains("cannot give w-3:8041 what it uses"), "{}", story(&world));
    assert_at_rest(&world, 2, "one was refused");
}

#[test]
fn an_admin_port_that_hangs_is_waited_for_once_a_tick() {
    let mut world = World::with_workers(6);
    world.admin_fault = Some(ErrorKind::Transient);
    world.plan(300.0, |world| {
        let mut calls = std::mem::take(&mut world.admin_calls);
        let all = calls.len();
        calls.dedup();
        assert!(all > 10 && calls.len() == all, "{all} calls at {} instants", calls.len());
        world.admin_fault = None;
    });
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "the admin port hung");
}

#[test]
fn a_drain_of_the_future_ends_after_its_time_out_not_after_the_step_of_the_clock() {
    let world = draining().share();
    assert_eq!(run(&world, &policy(), 300.0), Some(Ok(())));
    {
        let mut world = world.borrow_mut();
        let drain = world.stored.drains.values_mut().next().expect("a drain");
        drain.since = at(86_400.0);
        drain.phase = DrainPhase::Decommissioning { since: at(86_400.0), deadline: at(87_000.0), containers: 1 };
    }
    assert_eq!(run(&world, &policy(), 305.0), Some(Ok(())));
    let drain = world.borrow().stored.drains.values().next().cloned().expect("a drain");
    let DrainPhase::Decommissioning { since, deadline, .. } = drain.phase else { panic!("{drain:?}") };
    assert!(drain.since <= at(305.0) && since <= at(305.0) && deadline <= at(905.0), "{drain:?}");
}

#[test]
fn a_provider_that_is_slow_to_show_its_list_keeps_no_cluster_from_shrinking() {
    let mut world = World::with_workers(4);
    world.describe_takes = TimeDelta::seconds(12);
    let world = world.share();
    assert_eq!(run(&world, &policy(), 3600.0), Some(Ok(())));
    assert_at_rest(&world, 2, "a slow provider");
}

#[test]
fn time_in_which_nobody_looked_does_not_count_against_a_worker_that_boots() {
    let mut world = wave();
    world.boot_fails = true;
    // A machine that slept, or a clock set forward: two hours between two looks.
    world.plan(300.0, |world| world.now += TimeDelta::hours(2));
    let world = world.share();
    let deletions = |world: &Shared| {
        let world = world.borrow();
        let deletes = |told: &&Told| told.decision.actions.iter().any(|action| matches!(action, Action::Delete { .. }));
        world.journal.iter().filter(deletes).map(|told| (told.at - at(0.0)).num_seconds()).collect::<Vec<_>>()
    };
    assert_eq!(run(&world, &policy(), 7200.0 + 2400.0), Some(Ok(())));
    let forgave =
        world.borrow().journal.iter().any(|told| told.notes.iter().any(|note| note.contains("nobody looked")));
    assert!(forgave, "{}", story(&world));
    let first = deletions(&world).first().copied();
    // Ordered soon after 60 s, late 15 min later, of which all but the two hours count.
    assert!(first.is_some_and(|second| second > 7200 + 900 && second < 7200 + 1200), "{first:?}\n{}", story(&world));
}
