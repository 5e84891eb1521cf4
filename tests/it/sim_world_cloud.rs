//! The simulated cloud: orders and operations, quotas, stock-outs, bills, and a list that lags behind.

use std::time::Duration;

use yarn_autoscaler::{
    model::{GroupName, InstanceState},
    sim::{
        Ms,
        outcome::Account,
        scenario::{CloudModel, Fault},
        world::{Refusal, World},
    },
};

use crate::sim_build::{GPU, HOUR, MINUTE, SECOND, WORKER, bare, cluster, fault, world};

const PRIMARY: GroupName = GroupName::Primary;

fn empty(change: impl FnOnce(&mut CloudModel)) -> World {
    let mut scenario = cluster(1, WORKER);
    change(&mut scenario.cloud);
    world(scenario, Vec::new())
}

fn pass(world: &mut World, until: Ms) {
    while world.step(until) {
        assert_eq!(world.audit(), [""; 0], "at {}", world.now());
    }
    world.advance(until);
}

fn bill(world: World) -> Account {
    world.close().accounts[&PRIMARY]
}

/// Instances that the list shows, and how many of them run.
fn listed(world: &mut World) -> (usize, usize) {
    let instances = &world.capacity().groups[&PRIMARY].instances;
    (instances.len(), instances.iter().filter(|instance| instance.state == InstanceState::Running).count())
}

#[test]
fn sim_an_order_is_taken_once_goes_on_until_its_machines_serve_and_is_forgotten_after_a_day() {
    let mut world = empty(|_| ());
    let operation = world.create("a", PRIMARY, 2).unwrap();
    assert_eq!(world.create("a", PRIMARY, 2), Ok(operation), "the same order again is the same operation");
    assert_eq!(world.machines_of(None), 3);
    assert_eq!(world.create("b", PRIMARY, 1), Err(Refusal::Busy), "one at a time");
    assert_eq!(world.delete("c", &["w-0".into()]), Err(Refusal::Busy));
    pass(&mut world, 89 * SECOND);
    assert_eq!((world.operation(operation), listed(&mut world)), (Ok(None), (3, 3)), "they boot");
    pass(&mut world, 90 * SECOND);
    assert_eq!((world.operation(operation), world.orders_under_way()), (Ok(Some(())), 0));
    world.delete("d", &["w-1".into(), "nobody".into()]).unwrap();
    pass(&mut world, 25 * HOUR);
    world.create("e", PRIMARY, 1).unwrap();
    assert_eq!(world.operation(operation), Err(None), "it is forgotten");
}

#[test]
fn sim_quotas_count_what_exists_and_stock_outs_end_in_failure() {
    let mut world = empty(|cloud| {
        cloud.overlaps = true;
        cloud.quota = Some(3);
    });
    assert_eq!(world.create("a", PRIMARY, 3), Err(Refusal::Quota));
    world.create("b", PRIMARY, 2).unwrap();
    pass(&mut world, 2 * MINUTE);
    world.delete("c", &["w-0".into()]).unwrap();
    assert_eq!(world.create("d", PRIMARY, 1), Err(Refusal::Quota), "what is being deleted is still there");
    pass(&mut world, 2 * MINUTE + 30 * SECOND);
    world.create("e", PRIMARY, 1).unwrap();
    assert_eq!(world.create("f", GroupName::Secondary, 1), Err(Refusal::NoGroup));
    let mut scenario = cluster(1, WORKER);
    scenario.events = vec![fault(0, 60, Fault::StockOut(PRIMARY))];
    let mut world = crate::sim_build::world(scenario, Vec::new());
    pass(&mut world, SECOND);
    let operation = world.create("a", PRIMARY, 1).unwrap();
    pass(&mut world, MINUTE);
    assert_eq!(world.operation(operation), Err(Some(Refusal::StockOut)));
    assert_eq!((world.machines_of(None), world.counts().orders_failed), (1, 1));
}

#[test]
fn sim_a_machine_is_billed_from_its_start_to_its_end_and_for_no_less_than_the_least() {
    let mut world = empty(|cloud| {
        cloud.minimum_billed = Duration::from_secs(600);
        cloud.groups.values_mut().for_each(|group| group.initial = 0);
    });
    world.create("a", PRIMARY, 1).unwrap();
    pass(&mut world, 100 * SECOND);
    world.delete("b", &["w-0".into()]).unwrap();
    pass(&mut world, HOUR);
    // Up at 20 s, serving at 90 s, ordered away at 100 s, gone at 130 s.
    let account = bill(world);
    assert_eq!((account.billed, account.boot), (600_000, 70_000));
    assert_eq!(account.idle, 530_000, "forty seconds, and the rounding up");
    let mut world = empty(|cloud| cloud.minimum_billed = Duration::ZERO);
    world.create("a", PRIMARY, 1).unwrap();
    world.delete("b", &["w-1".into()]).unwrap_err();
    pass(&mut world, 100 * SECOND);
    world.delete("b", &["w-1".into()]).unwrap();
    pass(&mut world, HOUR);
    assert_eq!(bill(world).billed, u128::from(HOUR) + 110_000);
}

#[test]
fn sim_the_list_lags_by_just_so_much_whoever_looks_and_however_often() {
    for pace in [1, 7, 45] {
        let mut world = empty(|cloud| cloud.list_lag = Duration::from_secs(20));
        pass(&mut world, 100 * SECOND);
        world.create("a", PRIMARY, 1).unwrap();
        let mut at = 100;
        while at < 300 {
            pass(&mut world, at * SECOND);
            let expected = match at {
                ..120 => (1, 1),
                // Ordered at 100 s, up at 120 s.
                120..140 => (2, 1),
                _ => (2, 2),
            };
            assert_eq!(listed(&mut world), expected, "at {at} s, looking every {pace} s");
            at += pace;
        }
    }
}

#[test]
fn sim_a_machine_that_the_cloud_takes_away_ends_what_ran_on_it() {
    let mut scenario = cluster(2, WORKER);
    scenario.cloud.groups.values_mut().for_each(|group| group.mean_lifetime = Some(Duration::from_secs(1800)));
    let mut world = world(scenario, vec![bare("long", 0, 1, GPU, 1000 * HOUR)]);
    pass(&mut world, 24 * HOUR);
    assert_eq!((world.machines_of(None), world.observation().metrics.containers_pending), (0, 1));
    assert!(world.counts().killed_by_fault >= 1);
    let account = bill(world);
    assert!(account.billed < 24 * u128::from(HOUR) && account.useful == 0 && account.lost > 0, "{account:?}");
}

#[test]
fn sim_machines_without_their_gpus_and_machines_that_never_come_are_paid_for_as_boots() {
    for (broken, registers) in [(Fault::DriverFailure(1.0), true), (Fault::BootFailure(1.0), false)] {
        let mut scenario = cluster(0, WORKER);
        scenario.events = vec![fault(0, 60, broken)];
        let mut world = world(scenario, vec![bare("cpu", 0, 1, crate::sim_build::SMALL, MINUTE)]);
        pass(&mut world, SECOND);
        let operation = world.create("a", PRIMARY, 1).unwrap();
        pass(&mut world, 5 * MINUTE);
        let nodes = world.observation().nodes.clone();
        assert_eq!(nodes.first().map(|node| node.total.gpus), registers.then_some(0));
        assert_eq!(world.operation(operation), Ok(registers.then_some(())));
        pass(&mut world, 30 * MINUTE);
        assert_eq!(world.operation(operation), Ok(Some(())), "it waits no longer");
        let account = bill(world);
        assert_eq!((account.boot, account.billed), (account.billed, u128::from(30 * MINUTE - 21 * SECOND)));
    }
}
