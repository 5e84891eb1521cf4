//! Nodes in the simulated world, as they were measured on a real YARN: drains, cordons, restarts, losses, refusals.

use std::{slice::from_ref, sync::Arc, time::Duration};

use yarn_autoscaler::{
    model::{GroupName, Node, NodeState, Resources},
    sim::{
        Ms,
        scenario::Fault,
        workload::{Job, OnLoss},
        world::World,
    },
};

use crate::sim_build::{GPU, HOUR, MINUTE, SECOND, SMALL, WORKER, bare, cluster, fault, group, mapreduce, world};

/// The node of a host; `None` where YARN does not list it.
fn seen(world: &mut World, host: &str) -> Option<Arc<Node>> {
    world.observation().nodes.iter().find(|node| node.id.host == host).cloned()
}

fn state(world: &mut World, host: &str) -> NodeState {
    seen(world, host).map_or(NodeState::Unknown, |node| node.state)
}

fn hosts(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Lets time pass; the books are right afterwards.
fn pass(world: &mut World, until: Ms) {
    while world.step(until) {
        assert_eq!(world.audit(), [""; 0], "at {}", world.now());
    }
    world.advance(until);
}

/// Until so many containers run.
fn until_containers(world: &mut World, count: u64) {
    while world.observation().metrics.containers_allocated != count {
        let next = world.next_at().expect("something happens");
        pass(world, next);
    }
}

/// One job of one GPU container that works for an hour.
fn hour() -> Vec<Job> {
    vec![bare("hour", 0, 1, GPU, HOUR)]
}

#[test]
fn sim_an_idle_node_is_decommissioned_with_its_next_heartbeat_and_its_manager_is_gone() {
    let mut world = world(cluster(2, WORKER), vec![bare("late", MINUTE, 2, GPU, MINUTE)]);
    world.exclude(&hosts(&["w-1"]), secs(300));
    assert_eq!(state(&mut world, "w-1"), NodeState::Decommissioning);
    pass(&mut world, SECOND);
    assert_eq!(state(&mut world, "w-1"), NodeState::Decommissioned);
    world.include(&hosts(&["w-1"]));
    pass(&mut world, HOUR);
    assert_eq!(state(&mut world, "w-1"), NodeState::Decommissioned, "off the file: it stays as it is");
    assert_eq!(world.observation().metrics.containers_pending, 1, "nothing was placed on it");
}

#[test]
fn sim_a_draining_node_waits_for_applications_that_ran_on_it() {
    let mut job = mapreduce("mr", 0, 2, 1, 1.0, MINUTE);
    job.master = None;
    if let yarn_autoscaler::sim::workload::Work::Stages(stages) = &mut job.work {
        stages[0].resources = GPU;
        stages[1].task_ms = 10 * MINUTE;
    }
    let mut world = world(cluster(2, WORKER), vec![job]);
    pass(&mut world, 90 * SECOND);
    let idle = if seen(&mut world, "w-0").unwrap().containers == 0 { "w-0" } else { "w-1" };
    world.exclude(&hosts(&[idle]), secs(3600));
    pass(&mut world, 5 * MINUTE);
    let node = seen(&mut world, idle).unwrap();
    assert_eq!((node.state, node.total, node.containers), (NodeState::Decommissioning, Resources::default(), 0));
    while !world.is_done() {
        let next = world.next_at().unwrap();
        pass(&mut world, next);
    }
    let end = world.now();
    pass(&mut world, end + SECOND);
    assert_eq!(state(&mut world, idle), NodeState::Decommissioned, "within a heartbeat of the application's end");
}

#[test]
fn sim_what_came_with_the_last_heartbeat_is_killed_by_a_decommission() {
    for (later, killed) in [(0, 1), (1, 1), (999, 1), (1000, 0), (3000, 0)] {
        let mut world = world(cluster(2, WORKER), hour());
        until_containers(&mut world, 1);
        let granted = world.now();
        pass(&mut world, granted + later);
        let busy = if seen(&mut world, "w-0").unwrap().containers == 1 { "w-0" } else { "w-1" };
        world.exclude(&hosts(&[busy]), secs(300));
        pass(&mut world, granted + later + SECOND);
        let stays = if killed == 1 { NodeState::Decommissioned } else { NodeState::Decommissioning };
        assert_eq!((world.counts().killed_by_drain, state(&mut world, busy)), (killed, stays), "{later} ms later");
    }
}

#[test]
fn sim_a_drain_ends_at_its_timeout_and_another_timeout_does_not_set_the_clock_back() {
    let mut world = world(cluster(1, WORKER), hour());
    pass(&mut world, MINUTE);
    world.exclude(&hosts(&["w-0"]), secs(8));
    pass(&mut world, MINUTE + 4 * SECOND);
    world.exclude(&hosts(&["w-0"]), secs(20));
    pass(&mut world, MINUTE + 19 * SECOND);
    assert_eq!(state(&mut world, "w-0"), NodeState::Decommissioning, "the longer time-out counts");
    pass(&mut world, MINUTE + 21 * SECOND);
    assert_eq!(state(&mut world, "w-0"), NodeState::Decommissioned, "from the beginning of the drain");
    assert_eq!(world.counts().killed_by_drain, 1);
    let closed = world.close();
    assert_eq!(closed.jobs[0].restarts, 1);
}

#[test]
fn sim_a_node_taken_back_has_what_it_had_when_its_drain_began_and_kills_what_does_not_fit() {
    // Cut down to less than it holds, to just that, or not at all, before it drains.
    for (cut, killed) in [(Some(Resources::new(1, 1, 0)), 1), (Some(GPU), 0), (None, 0)] {
        let mut world = world(cluster(1, WORKER), hour());
        pass(&mut world, MINUTE);
        if let Some(cut) = cut {
            world.set_total("w-0", cut).unwrap();
        }
        world.exclude(&hosts(&["w-0"]), secs(300));
        pass(&mut world, 2 * MINUTE);
        let node = seen(&mut world, "w-0").unwrap();
        assert_eq!((node.state, node.total), (NodeState::Decommissioning, GPU), "it offers just what is in use");
        world.include(&hosts(&["w-0"]));
        let node = seen(&mut world, "w-0").unwrap();
        assert_eq!((node.state, node.total), (NodeState::Running, cut.unwrap_or(WORKER)));
        assert_eq!(world.counts().killed_by_drain, killed, "{cut:?}");
        assert_eq!(world.audit(), [""; 0]);
    }
}

#[test]
fn sim_a_cordoned_node_keeps_what_runs_and_is_given_nothing() {
    let mut world = world(cluster(1, WORKER), vec![hour().remove(0), bare("next", MINUTE, 1, SMALL, MINUTE)]);
    pass(&mut world, 30 * SECOND);
    world.set_total("w-0", Resources::default()).unwrap();
    assert_eq!(seen(&mut world, "w-0").unwrap().total, Resources::new(1, 1, 0), "YARN takes no less");
    pass(&mut world, 2 * MINUTE);
    let figures = world.observation().metrics;
    // Larger than the largest registered node: refused, not pending.
    assert_eq!((figures.containers_allocated, figures.containers_pending), (1, 0));
    world.set_total("w-0", WORKER).unwrap();
    assert_eq!(state(&mut world, "w-0"), NodeState::Running);
    pass(&mut world, 2 * HOUR);
    let closed = world.close();
    assert_eq!((closed.rejected, closed.jobs[0].succeeded, closed.jobs[0].containers_lost), (1, true, 0));
}

#[test]
fn sim_a_new_resource_manager_turns_away_what_drains_and_what_is_cut_too_small() {
    let mut scenario = cluster(5, WORKER);
    scenario.events = vec![fault(120, 30, Fault::ResourceManagerRestart)];
    let mut world = world(scenario, vec![bare("five", 0, 4, GPU, HOUR), bare("late", 145_000, 1, SMALL, MINUTE)]);
    pass(&mut world, MINUTE);
    let idle = (0..5).map(|n| format!("w-{n}")).find(|host| seen(&mut world, host).unwrap().containers == 0).unwrap();
    let busy: Vec<_> = (0..5).map(|n| format!("w-{n}")).filter(|host| *host != idle).collect();
    let before = world.observation().started_on_ms;
    world.exclude(from_ref(&idle), secs(300));
    world.exclude(&busy[..1], secs(300));
    world.set_total(&busy[1], Resources::default()).unwrap();
    world.set_total(&busy[2], Resources::new(1024, 1, 0)).unwrap();
    pass(&mut world, 119 * SECOND);
    assert_eq!(state(&mut world, &idle), NodeState::Decommissioned);
    world.include(from_ref(&idle));
    pass(&mut world, 149 * SECOND);
    assert!(world.yarn_is_silent());
    pass(&mut world, 151 * SECOND);
    assert!(!world.yarn_is_silent());
    assert_ne!(world.observation().started_on_ms, before);
    assert_eq!(seen(&mut world, &idle), None, "it was gone, and is on no list");
    assert_eq!(state(&mut world, &busy[0]), NodeState::Decommissioned, "it drained");
    assert_eq!(state(&mut world, &busy[1]), NodeState::Shutdown, "it was cut below the smallest container");
    let kept = seen(&mut world, &busy[2]).unwrap();
    assert_eq!((kept.state, kept.total), (NodeState::Running, Resources::new(1024, 1, 0)), "its manager keeps the cut");
    assert_eq!(world.counts().killed_by_fault, 1, "the first loss ends the gang as a whole");
    pass(&mut world, 159 * SECOND);
    assert_eq!(world.observation().metrics.containers_allocated, 0, "nothing is handed out for ten seconds");
    pass(&mut world, 163 * SECOND);
    assert!(world.observation().metrics.containers_allocated > 0);
}

#[test]
fn sim_a_manager_that_comes_while_the_resource_manager_is_down_registers_once_it_is_up() {
    let mut scenario = cluster(0, WORKER);
    scenario.events = vec![fault(60, 120, Fault::ResourceManagerRestart)];
    let mut world = world(scenario, Vec::new());
    world.create("one", GroupName::Primary, 1).unwrap();
    pass(&mut world, 179 * SECOND);
    assert_eq!(world.counts().boots, 0);
    pass(&mut world, 181 * SECOND);
    assert_eq!((world.counts().boots, state(&mut world, "w-0")), (1, NodeState::Running));
}

#[test]
fn sim_a_machine_that_dies_is_lost_after_the_expiry_and_its_gang_starts_over() {
    for on_loss in [OnLoss::Restart, OnLoss::Checkpoint { every_ms: MINUTE }, OnLoss::Continue] {
        let mut scenario = cluster(3, WORKER);
        scenario.events = vec![fault(600, 0, Fault::MachinesDie(1))];
        let job = Job { on_loss, ..bare("gang", 0, 2, GPU, 15 * MINUTE) };
        let mut world = world(scenario, vec![job]);
        pass(&mut world, 1199 * SECOND);
        assert_eq!(world.observation().metrics.containers_allocated, if on_loss == OnLoss::Continue { 0 } else { 2 });
        assert!(world.observation().nodes.iter().all(|node| node.state == NodeState::Running), "nobody knows");
        pass(&mut world, 1201 * SECOND);
        assert_eq!(world.observation().nodes.iter().filter(|node| node.state == NodeState::Lost).count(), 1);
        pass(&mut world, 3 * HOUR);
        let job = &world.close().jobs[0];
        let worked = match on_loss {
            OnLoss::Restart => 15 * MINUTE,
            // Nine whole minutes were written down before the machine died.
            OnLoss::Checkpoint { .. } => 6 * MINUTE,
            OnLoss::Continue => 15 * MINUTE,
        };
        assert_eq!(job.end_ms.unwrap() - job.start_ms.unwrap(), worked, "{on_loss:?}");
        assert_eq!(job.restarts, u32::from(on_loss != OnLoss::Continue));
    }
}

#[test]
fn sim_a_dead_machine_that_is_deleted_stays_on_yarns_list_until_the_expiry() {
    let mut scenario = cluster(2, WORKER);
    scenario.events = vec![fault(60, 0, Fault::MachinesDie(1))];
    let mut world = world(scenario, hour());
    pass(&mut world, 2 * MINUTE);
    let dead = world.observation().nodes.iter().find(|node| node.containers == 1).unwrap().id.host.clone();
    world.delete("gone", from_ref(&dead)).unwrap();
    pass(&mut world, 3 * MINUTE);
    assert_eq!(world.machines_of(None), 1);
    assert_eq!((state(&mut world, &dead), world.counts().killed_by_drain), (NodeState::Running, 0));
    // Another machine gets its name, and registers: YARN hears that the containers are not there.
    world.create("again", GroupName::Primary, 1).unwrap();
    pass(&mut world, 270 * SECOND + 1);
    let node = seen(&mut world, &dead).unwrap();
    assert_eq!((node.state, world.counts().killed_by_fault), (NodeState::Running, 1));
    pass(&mut world, 11 * MINUTE);
    assert_eq!(state(&mut world, &dead), NodeState::Running, "the expiry was of the one before");
}

#[test]
fn sim_an_unhealthy_node_loses_its_containers_and_takes_none_until_it_is_well() {
    let mut scenario = cluster(1, WORKER);
    scenario.events = vec![fault(60, 60, Fault::NodesUnhealthy(1))];
    let mut world = world(scenario, hour());
    pass(&mut world, 90 * SECOND);
    let node = seen(&mut world, "w-0").unwrap();
    assert_eq!((node.state, node.containers), (NodeState::Unhealthy, 0));
    assert!(!node.health_report.is_empty());
    assert_eq!(world.observation().metrics.containers_pending, 1);
    world.exclude(&hosts(&["w-0"]), secs(300));
    world.include(&hosts(&["w-0"]));
    assert_eq!(state(&mut world, "w-0"), NodeState::Unhealthy, "taking it back does not heal it");
    pass(&mut world, 130 * SECOND);
    assert_eq!((state(&mut world, "w-0"), world.observation().metrics.containers_allocated), (NodeState::Running, 1));
}

#[test]
fn sim_an_excluded_host_that_registers_is_sent_away() {
    let mut world = world(cluster(1, WORKER), Vec::new());
    world.delete("old", &hosts(&["w-0"])).unwrap();
    world.exclude(&hosts(&["w-0"]), secs(0));
    pass(&mut world, MINUTE);
    world.create("new", GroupName::Primary, 1).unwrap();
    pass(&mut world, 5 * MINUTE);
    let node = seen(&mut world, "w-0").unwrap();
    assert_eq!((node.state, node.total), (NodeState::Decommissioned, Resources::default()));
    assert_eq!(world.counts().boots, 0, "it was never taken");
    let account = world.close().accounts[&GroupName::Primary];
    assert_eq!(account.boot, 220_000, "up for 220 s, and of no use");
}

#[test]
fn sim_an_ask_larger_than_the_largest_registered_node_is_refused() {
    let jobs = |at| vec![bare("two", at, 1, Resources::new(4096, 1, 2), MINUTE)];
    let mut small = world(cluster(2, WORKER), jobs(0));
    pass(&mut small, SECOND);
    let closed = small.close();
    assert_eq!((closed.rejected, closed.jobs[0].end_ms, closed.jobs[0].succeeded), (1, Some(0), false));
    let mut none = world(cluster(0, WORKER), jobs(0));
    pass(&mut none, MINUTE);
    assert_eq!(none.observation().metrics.pending.gpus, 2, "without any node the configured maximum holds");
    let mut scenario = cluster(2, WORKER);
    scenario.events = vec![fault(0, 10, Fault::ResourceManagerRestart)];
    let mut young = world(scenario, jobs(15 * SECOND));
    pass(&mut young, MINUTE);
    assert_eq!(young.observation().metrics.pending.gpus, 2, "and right after a start");
    // One large node is enough for all to wait for another.
    let mut scenario = cluster(2, WORKER);
    scenario.cloud.groups.insert(GroupName::Secondary, group(Resources::new(8192, 4, 2), 1));
    let mut large = world(scenario, [jobs(0), jobs(0)].concat());
    pass(&mut large, 30 * SECOND);
    assert_eq!(large.observation().metrics.pending.gpus, 2);
}
