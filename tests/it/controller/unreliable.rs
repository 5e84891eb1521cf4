//! What YARN and the provider show late, wrongly or only in part, and what they refuse: nothing is lost by it.

use yarn_autoscaler::model::{Action, NodeState};

use super::{assert_at_rest, draining, first, policy, run, story};
use crate::world::World;

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
