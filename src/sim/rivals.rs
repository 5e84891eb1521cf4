//! Two controllers on one cluster: the one that acts first goes on, the other notices it as soon as it would save
//! anything, and ends.

use std::{cell::RefCell, sync::Arc};

use super::{
    Ms, Unwatched,
    checker::Checker,
    outcome::Outcome,
    ports::{Port, Stage},
    run::{Run, close, poll_once},
    world::World,
};
use crate::{
    controller::{Controller, Halt},
    ports::{Clock, Wake},
};

/// Runs a scenario to its end under two controllers, of which the second one joins at this instant; returns why which of
/// them ended, too: 0 is the first one.
pub fn rivals(run: &Run, joins_at: Ms, checker: Checker) -> (Outcome, Vec<(usize, Halt)>) {
    let world = World::new(Arc::clone(&run.scenario), Arc::clone(&run.workload), run.seed);
    let mut watch = Unwatched;
    let mut stage = Stage::new(world, run, false, &mut watch);
    stage.check(checker);
    let stage = RefCell::new(stage);
    let halts = contend(run, &stage, joins_at);
    (close(run, stage.into_inner(), Vec::new()), halts)
}

/// Lets the two take turns, each at its own pace, until the run ends or none is left.
fn contend(run: &Run, stage: &RefCell<Stage<'_>>, joins_at: Ms) -> Vec<(usize, Halt)> {
    let clock = Port::new(stage);
    let mut live: Vec<(usize, Ms, Option<_>)> = vec![(0, 0, None), (1, joins_at, None)];
    let mut halts = Vec::new();
    while let Some(index) = (0..live.len()).min_by_key(|index| live[*index].1) {
        let (number, at, controller) = &mut live[index];
        if stage.borrow_mut().pass(*at) == Wake::Stop {
            break;
        }
        let start = || {
            let port = || Port::new(stage);
            let ports = (port(), port(), port(), port(), port());
            Controller::new(ports, run.policy.clone(), run.scenario.settings)
        };
        let ticked = poll_once(async {
            let mut started = match controller.take() {
                Some(started) => started,
                None => start().await?,
            };
            let ticked = started.tick(clock.now()).await;
            *controller = Some(started);
            ticked
        });
        match ticked {
            Some(Ok(decision)) => *at = stage.borrow().world_time(decision.next_at),
            Some(Err(halt)) => {
                halts.push((*number, halt));
                live.remove(index);
            }
            // Killed by a fault: it does not come back.
            None => drop(live.remove(index)),
        }
    }
    halts
}
