//! A port may say that nothing has changed by handing out the same look again: that spares work, and changes nothing.
//! The loop lives through made-up histories of the little world twice, once with ports that do and once with ports that
//! do not, and tells and saves the same; here and there the clock is set back.

use std::fmt::Write as _;

use proptest::prelude::*;
use yarn_autoscaler::{
    controller::{Controller, Settings},
    model::{InstanceState, NodeState},
    ports::{ErrorKind, PolicyChange},
};

use crate::{
    fake_ports::Port,
    fixtures::{self, at, basic, group, secs},
    world::{Fault, Told, World, poll_once},
};

/// Something that happens before a tick.
#[derive(Clone, Copy, Debug)]
enum Event {
    Asks(usize, u64, u32),
    Restarts,
    LosesMachine(usize),
    YarnHangs(bool),
    Fails(u8),
    BootsFail(bool),
    ListIsShort,
    DiskIsFull,
    PolicyChanges(u32),
    NodeIs(usize, NodeState),
    MachineIs(usize, InstanceState),
    Stranger,
    ClockIsSet(f64),
}

fn event() -> impl Strategy<Value = Event> {
    let states = vec![NodeState::Running, NodeState::Unhealthy, NodeState::Lost, NodeState::Decommissioning];
    prop_oneof![
        8 => (1..12_usize, prop::sample::select(vec![512_u64, 4096]), 1..400_u32).prop_map(|(n, mb, s)| Event::Asks(n, mb, s)),
        1 => Just(Event::Restarts),
        1 => (0..6_usize).prop_map(Event::LosesMachine),
        2 => any::<bool>().prop_map(Event::YarnHangs),
        2 => (0..4_u8).prop_map(Event::Fails),
        1 => any::<bool>().prop_map(Event::BootsFail),
        1 => Just(Event::ListIsShort),
        1 => Just(Event::DiskIsFull),
        1 => (1..9_u32).prop_map(Event::PolicyChanges),
        2 => (0..6_usize, prop::sample::select(states)).prop_map(|(n, state)| Event::NodeIs(n, state)),
        1 => (0..6_usize, prop::sample::select(vec![InstanceState::Running, InstanceState::Failed])).prop_map(|(n, s)| Event::MachineIs(n, s)),
        1 => Just(Event::Stranger),
        1 => prop_oneof![-400.0..1000.0_f64, -20.0..20.0_f64].prop_map(Event::ClockIsSet),
    ]
}

fn happens(event: Event, world: &mut World) {
    match event {
        Event::Asks(count, memory_mb, runs_s) => world.ask(count, memory_mb, f64::from(runs_s)),
        Event::Restarts => world.restart_resource_manager(),
        Event::LosesMachine(n) => {
            if let Some(host) = world.machines.keys().nth(n).cloned() {
                world.lose_machine(&host);
            }
        }
        Event::YarnHangs(hangs) => world.yarn_fault = hangs.then_some(ErrorKind::Transient),
        Event::Fails(kind) => world.faults.push_back(match kind {
            0 => Fault::AnswerLost,
            1 => Fault::Refused(ErrorKind::StockOut),
            2 => Fault::Refused(ErrorKind::Transient),
            _ => Fault::Fails(ErrorKind::Quota),
        }),
        Event::BootsFail(fails) => world.boot_fails = fails,
        Event::ListIsShort => world.list_is_short_by = 1,
        Event::DiskIsFull => world.save_faults.push_back(ErrorKind::Transient),
        Event::PolicyChanges(max) => {
            let mut policy = fixtures::policy();
            policy.primary = group(max.min(2), max, 1);
            basic(&mut policy).graceful_decommission_timeout = secs(u64::from(max) * 30);
            world.policies.push_back(PolicyChange::New(policy));
        }
        Event::NodeIs(n, state) => world.nodes.values_mut().nth(n).into_iter().for_each(|node| node.state = state),
        Event::MachineIs(n, state) => {
            world.machines.values_mut().nth(n).into_iter().for_each(|machine| machine.state = state);
        }
        Event::Stranger => {
            if let Some(node) = world.nodes.values().next().cloned() {
                world.nodes.insert("stranger".into(), node);
            }
        }
        Event::ClockIsSet(_) => {}
    }
}

/// Everything that was told and saved.
fn lives_through(events: &[(u32, Event)], same_looks: bool) -> String {
    let mut world = World::with_workers(3);
    world.same_looks = same_looks;
    let world = world.share();
    let ports = || Port::new(&world);
    let ports = (ports(), ports(), ports(), ports(), ports());
    let started = poll_once(Controller::new(ports, fixtures::policy(), Settings::default()));
    let Some(Ok(mut controller)) = started else { return "".into() };
    let (mut story, mut second, mut clock_is_off) = (String::new(), 0.0, 0.0);
    for (ticks, event) in events {
        for _ in 0..*ticks {
            second += 2.5;
            world.borrow_mut().advance(at(second));
            let decided = poll_once(controller.tick(at(second + clock_is_off)));
            let world = world.borrow();
            let Some(told) = world.journal.last() else { continue };
            let told = (&told.decision, &told.notes, told.settled_until);
            let _ = writeln!(story, "{second} {decided:?}\n   {told:?}\n   {:?}", world.stored);
        }
        let told = world.borrow().journal.iter().rev().take(*ticks as usize).rev().cloned().collect::<Vec<_>>();
        told.windows(2).for_each(|told| assert_stays_settled(&told[0], &told[1]));
        match event {
            Event::ClockIsSet(by) => clock_is_off += by,
            event => happens(*event, &mut world.borrow_mut()),
        }
    }
    story
}

/// Nothing has happened between these two but what they have seen.
fn assert_stays_settled(told: &Told, next: &Told) {
    if told.settled_until.is_some_and(|until| next.at < until) && told.seen == next.seen {
        assert_eq!(next.settled_until, told.settled_until, "{told:?}\n{next:?}");
        assert_eq!((&told.decision.actions, &told.decision.reasons), (&next.decision.actions, &next.decision.reasons));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_look_again_is_as_good_as_an_equal_one(events in prop::collection::vec((1..120_u32, event()), 1..25)) {
        let (fresh, same) = (lives_through(&events, false), lives_through(&events, true));
        for (fresh, same) in fresh.lines().zip(same.lines()) {
            prop_assert_eq!(fresh, same);
        }
        prop_assert_eq!(fresh.len(), same.len());
    }
}
