//! Jobs and the scheduler in the simulated world: who is served when and where; how TonY, Spark and MapReduce ask, work
//! and end.

use yarn_autoscaler::{
    model::Resources,
    sim::{
        Ms,
        scenario::{GangGranting, Placement, QueueOrdering, Scenario},
        workload::{Job, Work},
        world::{Closed, World},
    },
};

use crate::sim_build::{GPU, HOUR, MINUTE, SECOND, SMALL, WORKER, bare, cluster, gang, mapreduce, queue, spark, world};

/// Lets time pass; the books are right afterwards.
fn pass(world: &mut World, until: Ms) {
    while world.step(until) {
        assert_eq!(world.audit(), [""; 0], "at {}", world.now());
    }
    world.advance(until);
}

fn ended(scenario: Scenario, jobs: Vec<Job>) -> Closed {
    let mut world = world(scenario, jobs);
    pass(&mut world, 24 * HOUR);
    assert!(world.is_done());
    world.close()
}

/// When each job began, in whole seconds.
fn starts(closed: &Closed) -> Vec<(&str, u64)> {
    closed.jobs.iter().map(|job| (&*job.name, job.start_ms.unwrap() / SECOND)).collect()
}

/// Containers of each application: those that run, and those that are asked for, by priority.
fn shown(world: &mut World) -> Vec<(u32, Vec<(i32, u32)>)> {
    let asks = |app: &yarn_autoscaler::model::Application| {
        app.asks.iter().map(|ask| (ask.priority, ask.containers)).collect::<Vec<_>>()
    };
    world.observation().applications.iter().map(|app| (app.running_containers.unwrap(), asks(app))).collect()
}

#[test]
fn sim_two_half_served_gangs_wait_for_each_other_for_ever() {
    // As on the real YARN: a blocker holds all five GPUs, two gangs of four wait; where the one that holds least is
    // served first, they get three and two.
    let mut scenario = cluster(5, WORKER);
    scenario.cluster.queues[0].ordering = QueueOrdering::Fair;
    let jobs = || {
        vec![
            bare("blocker", 0, 5, GPU, 5 * MINUTE),
            bare("a", MINUTE, 4, GPU, MINUTE),
            bare("b", MINUTE, 4, GPU, MINUTE),
        ]
    };
    let mut stuck = world(scenario.clone(), jobs());
    pass(&mut stuck, 24 * HOUR);
    assert_eq!(shown(&mut stuck), [(3, vec![(0, 1)]), (2, vec![(0, 2)])]);
    assert_eq!(stuck.next_at(), None, "nothing will ever happen");
    // One more worker may go to the wrong one; two free one of them, and that one the other.
    let account = |world: World| world.close().accounts.values().next().copied().unwrap();
    stuck.create("two", yarn_autoscaler::model::GroupName::Primary, 2).unwrap();
    pass(&mut stuck, 25 * HOUR);
    assert!(stuck.is_done());
    let account_of_stuck = account(stuck);
    assert!(account_of_stuck.held > u128::from(5 * 23 * HOUR), "{account_of_stuck:?}");
    scenario.cluster.gang_granting = GangGranting::Atomic;
    let closed = ended(scenario, jobs());
    assert!(closed.jobs.iter().all(|job| job.succeeded));
}

#[test]
fn sim_what_does_not_fit_lets_others_pass_in_the_order_of_their_coming() {
    let large = Resources::new(12_288, 8, 1);
    let jobs = vec![
        bare("first", 0, 2, GPU, 10 * MINUTE),
        bare("large", MINUTE, 1, large, MINUTE),
        bare("small", 2 * MINUTE, 1, SMALL, MINUTE),
        bare("later", 3 * MINUTE, 1, GPU, MINUTE),
    ];
    let closed = ended(cluster(2, WORKER), jobs);
    let starts = starts(&closed);
    assert!(starts[2].1 < 125, "it fits beside what runs: {starts:?}");
    assert!(starts[1].1 < starts[3].1 + 2 && starts[1].1 > 600, "{starts:?}");
}

#[test]
fn sim_a_queue_holds_no_more_than_its_maximum_and_the_hungriest_comes_first() {
    let mut scenario = cluster(4, WORKER);
    scenario.cluster.queues = vec![queue("default", 0.75, 1.0), queue("capped", 0.25, 0.5)];
    let of = |queue: &str, job: Job| Job { queue: queue.into(), ..job };
    let many =
        |name: &str, at| (0..4).map(|n| bare(&format!("{name}-{n}"), at, 1, GPU, 10 * MINUTE)).collect::<Vec<_>>();
    let mut capped = world(scenario.clone(), many("capped", 0).into_iter().map(|job| of("capped", job)).collect());
    pass(&mut capped, MINUTE);
    assert_eq!(capped.observation().metrics.allocated.gpus, 2, "half of the cluster");
    // The cap is a share: of a larger cluster it is more.
    capped.create("more", yarn_autoscaler::model::GroupName::Primary, 4).unwrap();
    pass(&mut capped, 3 * MINUTE);
    assert_eq!(capped.observation().metrics.allocated.gpus, 4);
    let both = many("capped", 0).into_iter().map(|job| of("capped", job)).chain(many("default", 0)).collect();
    let mut both = world(scenario, both);
    pass(&mut both, MINUTE);
    let running = both.observation();
    let of_default = running.applications.iter().filter(|app| app.queue == "default" && app.asks.is_empty()).count();
    assert_eq!(of_default, 3, "by shares of three to one");
}

#[test]
fn sim_application_masters_are_let_in_one_by_one_where_their_share_is_small() {
    let mut scenario = cluster(2, WORKER);
    scenario.cluster.queues[0].max_master_share = 0.25;
    let jobs = (0..6).map(|n| gang(&format!("gang-{n}"), 0, 1, 0, 10 * MINUTE)).collect();
    let mut world = world(scenario, jobs);
    pass(&mut world, MINUTE);
    let shown = shown(&mut world);
    let masters = shown.iter().filter(|(running, _)| *running > 0).count();
    assert_eq!(masters, 3, "2 GB each of a quarter of 24 GB: {shown:?}");
    assert!(world.observation().metrics.pending.memory_mb >= 3 * 2048, "those that wait are pending");
}

#[test]
fn sim_containers_spread_with_heartbeats_or_are_packed() {
    let on_nodes = |placement| {
        let mut scenario = cluster(4, WORKER);
        scenario.cluster.placement = placement;
        let mut world = world(scenario, vec![bare("four", 0, 4, SMALL, HOUR)]);
        pass(&mut world, 10 * SECOND);
        world.observation().nodes.iter().map(|node| node.containers).collect::<Vec<_>>()
    };
    assert_eq!(on_nodes(Placement::Spread), [1, 1, 1, 1]);
    assert_eq!(on_nodes(Placement::Pack), [4, 0, 0, 0]);
}

#[test]
fn sim_tony_asks_for_all_at_once_a_priority_for_each_type_and_ends_as_a_whole() {
    let mut world = world(cluster(3, WORKER), vec![gang("tony", 0, 4, 1, MINUTE)]);
    pass(&mut world, 5 * SECOND);
    assert_eq!(shown(&mut world), [(1, vec![])], "its master starts");
    pass(&mut world, 30 * SECOND);
    assert_eq!(shown(&mut world), [(5, vec![(1, 1)])], "the master, the ps and three workers hold what they have");
    assert_eq!(world.observation().metrics.pending, GPU);
    world.create("one", yarn_autoscaler::model::GroupName::Primary, 1).unwrap();
    pass(&mut world, HOUR);
    let closed = world.close();
    let job = &closed.jobs[0];
    assert!(job.succeeded);
    let started = job.start_ms.unwrap();
    assert!((121 * SECOND..123 * SECOND).contains(&started), "a heartbeat and a start after the boot: {started}");
    assert_eq!(job.end_ms.unwrap() - started, MINUTE);
    let account = closed.accounts.values().next().unwrap();
    assert_eq!(account.useful, u128::from(4 * MINUTE), "four GPUs for a minute");
    assert!(account.held > u128::from(3 * 80 * SECOND), "three GPUs that waited for the fourth");
}

/// Executors that run or are asked for, at each second.
fn executors(world: &mut World, seconds: u64) -> Vec<u32> {
    let mut counts = Vec::new();
    for _ in 0..seconds {
        let next = world.now() + SECOND;
        pass(world, next);
        let shown = shown(world);
        counts.push(shown.first().map_or(0, |(running, asks)| running + asks.iter().map(|ask| ask.1).sum::<u32>()));
    }
    counts
}

#[test]
fn sim_spark_asks_for_twice_as_many_executors_each_second_and_gives_idle_ones_back() {
    let mut job = spark("spark", 0, 100, (2, 30), MINUTE);
    job.master = None;
    let mut world = world(cluster(10, Resources::new(24_576, 12, 0)), vec![job.clone()]);
    // Two at the start, then 1, 2, 4, 8, … more each second, up to the most.
    assert_eq!(executors(&mut world, 7), [3, 5, 9, 17, 30, 30, 30]);
    // A hundred tasks, two at once each: sixty in the first minute, forty in the second.
    pass(&mut world, 90 * SECOND);
    assert_eq!(shown(&mut world)[0].0, 30, "ten have been idle for less than a minute");
    pass(&mut world, 132 * SECOND);
    assert!(world.is_done());
    // Ends with the last task; those that idle for a minute would have been given back by then.
    let mut long = job;
    if let Work::Executors(executors) = &mut long.work {
        (executors.tasks, executors.idle_timeout_ms) = (62, 20 * SECOND);
    }
    let mut world = crate::sim_build::world(cluster(10, Resources::new(24_576, 12, 0)), vec![long]);
    pass(&mut world, 100 * SECOND);
    assert_eq!(shown(&mut world), [(2, vec![])], "two are kept; one of them works on the last tasks");
}

#[test]
fn sim_an_executor_that_has_worked_meanwhile_is_idle_from_anew() {
    let mut job = spark("spark", 0, 5, (0, 3), 50 * SECOND);
    job.master = None;
    if let Work::Executors(executors) = &mut job.work {
        (executors.slots, executors.idle_timeout_ms) = (1, 70 * SECOND);
    }
    let mut scenario = cluster(5, Resources::new(2048, 1, 0));
    scenario.cluster.placement = Placement::Pack;
    let mut world = world(scenario, vec![job]);
    let drain = |world: &mut World, at, host: &str| {
        pass(world, at);
        world.exclude(&[host.into()], std::time::Duration::ZERO);
    };
    // Two take the last two tasks, the third is idle from 54 s on. It takes over the task of the first, which is lost;
    // as it is idle again, after 110 s, another executor works on the task of the second, lost too.
    drain(&mut world, 60 * SECOND, "w-0");
    drain(&mut world, 100 * SECOND, "w-1");
    pass(&mut world, 140 * SECOND);
    assert_eq!(shown(&mut world), [(2, vec![])], "it has been idle for half a minute only");
    pass(&mut world, 160 * SECOND);
    assert!(world.is_done());
}

#[test]
fn sim_spark_takes_back_what_it_needs_no_more() {
    // Room for two executors only; the others stay asked for, as many as the tasks that are left would fill.
    let mut job = spark("spark", 0, 12, (1, 10), 30 * SECOND);
    job.master = None;
    let mut world = world(cluster(1, Resources::new(4096, 2, 0)), vec![job]);
    pass(&mut world, 20 * SECOND);
    assert_eq!(shown(&mut world), [(2, vec![(0, 4)])]);
    pass(&mut world, 40 * SECOND);
    assert_eq!(shown(&mut world), [(2, vec![(0, 2)])], "eight tasks are left");
    pass(&mut world, 70 * SECOND);
    assert_eq!(shown(&mut world), [(2, vec![])]);
    pass(&mut world, 3 * MINUTE);
    assert!(world.is_done());
}

#[test]
fn sim_mapreduce_asks_for_reducers_early_and_they_hold_containers_while_maps_run() {
    let mut job = mapreduce("mr", 0, 6, 2, 0.5, MINUTE);
    job.master = None;
    // Four containers at once.
    let mut world = world(cluster(1, Resources::new(8192, 4, 0)), vec![job]);
    pass(&mut world, 50 * SECOND);
    assert_eq!(shown(&mut world), [(4, vec![(0, 2)])], "no reducer is asked for yet");
    pass(&mut world, 90 * SECOND);
    assert_eq!(shown(&mut world), [(4, vec![])], "two maps, and two reducers that wait for them");
    pass(&mut world, 4 * MINUTE);
    assert!(world.is_done());
    let closed = world.close();
    let account = closed.accounts.values().next().unwrap();
    assert_eq!(account.useful, u128::from(8 * MINUTE) * 2048);
    // Each container a second for its start; the reducers wait for the second wave of maps.
    assert!(account.held > u128::from(2 * 55 * SECOND) * 2048, "{account:?}");
}

#[test]
fn sim_a_lost_task_is_done_again_and_a_lost_master_begins_anew() {
    let mut scenario = cluster(2, Resources::new(8192, 4, 0));
    scenario.cluster.placement = Placement::Pack;
    let job = mapreduce("mr", 0, 3, 1, 1.0, 10 * MINUTE);
    let mut world = world(scenario, vec![job]);
    pass(&mut world, 5 * MINUTE);
    let holds = |world: &mut World| {
        let app = world.observation().applications[0].clone();
        (app.master_host.clone().unwrap(), app.running_containers.unwrap())
    };
    let (host, running) = holds(&mut world);
    assert_eq!(running, 4, "all beside the master");
    world.exclude(&[host], std::time::Duration::ZERO);
    pass(&mut world, 6 * MINUTE);
    let (other, running) = holds(&mut world);
    assert_eq!((other.as_str(), running), ("w-1", 4), "another attempt on the other node, with all maps anew");
    pass(&mut world, HOUR);
    let closed = world.close();
    let job = &closed.jobs[0];
    assert!(job.succeeded && job.restarts == 1 && job.containers_lost == 1, "{job:?}");
    let account = closed.accounts.values().next().unwrap();
    // Three maps and a reducer, and the second master, who was there for two of them in a row and a few starts.
    let useful = u64::try_from(account.useful / 2048).unwrap();
    assert!((60 * MINUTE + 6 * SECOND..60 * MINUTE + 12 * SECOND).contains(&useful), "{useful}");
    assert!(account.lost / 2048 > u128::from(3 * 4 * MINUTE), "{account:?}");
}

#[test]
fn sim_a_job_of_nothing_ends_at_once() {
    let nothing = Work::Gang { groups: Vec::new(), duration_ms: MINUTE };
    let closed = ended(cluster(1, WORKER), vec![Job { work: nothing, ..bare("none", 0, 1, GPU, 0) }]);
    assert_eq!((closed.jobs[0].end_ms, closed.jobs[0].succeeded), (Some(MINUTE), true));
}
