//! One run: the daemon's own loop over the simulated world, from the first instant to the end.

use std::{
    cell::RefCell,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    Ms, Watch,
    outcome::{Outcome, Violation},
    ports::{Port, Stage},
    scenario::Scenario,
    workload::Workload,
    world::World,
};
use crate::{
    controller::{Controller, Halt},
    policy::{GroupPolicy, Policy},
    ports::Wake,
};

/// Most violations that are kept of one run: the first ones tell.
const VIOLATIONS_MAX: usize = 20;

/// What is run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Cluster, cloud, faults.
    pub scenario: Arc<Scenario>,
    /// The jobs.
    pub workload: Arc<Workload>,
    /// The policy.
    pub policy: Policy,
    /// What the policy is called in tables and titles.
    pub policy_name: String,
    /// Where all chance begins.
    pub seed: u64,
}

/// Runs to the end. The same run gives the same outcome.
pub fn run(run: &Run, watch: &mut dyn Watch) -> Outcome {
    run_to_end(run, true, watch)
}

/// The same, with every look made, even where nothing can have changed since the last one: slow, and there to show
/// that it makes no difference.
pub fn run_every_look(run: &Run, watch: &mut dyn Watch) -> Outcome {
    run_to_end(run, false, watch)
}

fn run_to_end(run: &Run, skips: bool, watch: &mut dyn Watch) -> Outcome {
    let world = World::new(Arc::clone(&run.scenario), Arc::clone(&run.workload), run.seed);
    let last_submit = run.workload.jobs.last().map_or(0, |job| job.submit_ms);
    let stage = RefCell::new(Stage::new(world, Arc::clone(&run.scenario), last_submit, skips, watch));
    let mut violations = Vec::new();
    while let Some(halt) = live(run, &stage) {
        violations.push(Violation {
            at_ms: stage.borrow().world.now(),
            promise: "the controller goes on",
            text: format!("the controller ended by itself: {halt}"),
        });
        break;
    }
    close(run, stage.into_inner(), violations)
}

/// The controller's lives, one after the other, until the run ends; why the last one ended, if by itself.
fn live(run: &Run, stage: &RefCell<Stage<'_>>) -> Option<Halt> {
    loop {
        let port = || Port::new(stage);
        let ports = (port(), port(), port(), port(), port());
        let ended = match Controller::new(ports, run.policy.clone(), run.scenario.settings) {
            Ok(mut controller) => poll_once(controller.run(&port())),
            Err(halt) => Some(Err(halt)),
        };
        let dead_until: Option<Ms> = stage.borrow_mut().dead_until.take();
        match (dead_until, ended) {
            (Some(until), _) => {
                if stage.borrow_mut().pass(until) == Wake::Stop {
                    return None;
                }
            }
            (None, Some(Err(halt))) => return Some(halt),
            (None, Some(Ok(())) | None) => return None,
        }
    }
}

/// The futures of the simulated ports are ready at once, or never.
fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn close(run: &Run, stage: Stage<'_>, mut violations: Vec<Violation>) -> Outcome {
    let end_ms = stage.world.now();
    let looks = stage.decisions.looks;
    let (decisions, reasons, left_out) = stage.decisions.close();
    let closed = stage.world.close();
    let mut remarks = Vec::new();
    if left_out > 0 {
        remarks.push(format!("{left_out} decisions without any order are not listed, only counted"));
    }
    if closed.rejected > 0 {
        remarks.push(format!("{} jobs failed because YARN refused an ask larger than any node", closed.rejected));
    }
    violations.truncate(VIOLATIONS_MAX);
    let bounds = |bound: fn(GroupPolicy) -> u32| {
        closed.groups.keys().map(|group| bound(run.policy.group(*group))).fold(0, u32::saturating_add)
    };
    let (min_workers, max_workers) = (bounds(|group| group.min_instances), bounds(|group| group.max_instances));
    let mut counts = closed.counts;
    counts.looks = looks;
    Outcome {
        scenario: run.scenario.name.clone(),
        policy: run.policy_name.clone(),
        seed: run.seed,
        start: run.scenario.start,
        end_ms,
        min_workers,
        max_workers,
        groups: closed.groups,
        jobs: closed.jobs,
        steps: closed.steps,
        accounts: closed.accounts,
        decisions,
        reasons,
        counts,
        violations,
        remarks,
    }
}
