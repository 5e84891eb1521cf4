//! One run: the daemon's own loop over the simulated world, from the first instant to the end.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use super::{
    Ms, Watch,
    checker::{ACCOUNTS, Checker},
    outcome::{Account, Outcome, Violation},
    ports::{Port, Stage},
    scenario::Scenario,
    workload::Workload,
    world::World,
};
use crate::{
    controller::{Controller, Halt},
    model::GroupName,
    policy::{GroupPolicy, Policy},
    ports::Wake,
};

/// Most violations that are kept of one run: the first ones tell.
const VIOLATIONS_MAX: usize = 20;

/// The remark of a checked run at whose end not enough time had passed since the last change to tell whether it came to
/// rest.
pub const NOT_JUDGED: &str = "the run ended before it could be told whether the cluster had come to rest";

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
    play(run, None, true, watch)
}

/// The same, with every look made, even where nothing can have changed since the last one: slow, and there to show
/// that it makes no difference.
pub fn run_every_look(run: &Run, watch: &mut dyn Watch) -> Outcome {
    play(run, None, false, watch)
}

/// The same, with somebody who watches over the promises ([`checker`](super::checker)) and ends the run as soon as
/// there is nothing more to be seen. What is broken is in the outcome's violations.
pub fn checked(run: &Run, checker: Checker, watch: &mut dyn Watch) -> Outcome {
    play(run, Some(checker), true, watch)
}

fn play(run: &Run, checker: Option<Checker>, skips: bool, watch: &mut dyn Watch) -> Outcome {
    let world = World::new(Arc::clone(&run.scenario), Arc::clone(&run.workload), run.seed);
    let mut stage = Stage::new(world, run, skips, watch);
    if let Some(checker) = checker {
        stage.check(checker);
    }
    let stage = RefCell::new(stage);
    let ended = live(run, &stage);
    let stage = stage.into_inner();
    let at_ms = stage.world.now();
    let ended = ended.map(|why| Violation { at_ms, promise: "the controller goes on", text: why.to_string() });
    close(run, stage, ended.into_iter().collect())
}

/// Why a controller has come to an end that it should not have come to.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("it halted: {0}")]
    Halted(#[from] Halt),
    #[error("it waits for something that never comes")]
    Hangs,
}

/// The controller's lives, one after the other, until the run ends; why the last one ended, if by itself.
fn live(run: &Run, stage: &RefCell<Stage<'_>>) -> Option<Ended> {
    loop {
        let port = || Port::new(stage);
        let ports = (port(), port(), port(), port(), port());
        let ended = poll_once(async {
            let mut controller = Controller::new(ports, run.policy.clone(), run.scenario.settings).await?;
            controller.run(&port()).await
        });
        let dead_until: Option<Ms> = stage.borrow_mut().dead_until.take();
        match (dead_until, ended) {
            (Some(until), _) => {
                if stage.borrow_mut().pass(until) == Wake::Stop {
                    return None;
                }
            }
            (None, Some(Err(halt))) => return Some(halt.into()),
            (None, None) => return Some(Ended::Hangs),
            (None, Some(Ok(()))) => return None,
        }
    }
}

/// The futures of the simulated ports are ready at once, or never.
pub(super) fn poll_once<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

pub(super) fn close(run: &Run, stage: Stage<'_>, mut violations: Vec<Violation>) -> Outcome {
    let end_ms = stage.world.now();
    let left = stage.left();
    let mut remarks: Vec<_> = stage.cut_short().map(str::to_owned).into_iter().collect();
    if let Some((found, is_judged)) = stage.checker.map(|checker| checker.close(end_ms, &left)) {
        violations.extend(found);
        if !is_judged {
            remarks.push(NOT_JUDGED.to_owned());
        }
    }
    let looks = stage.decisions.looks;
    let (decisions, reasons, left_out) = stage.decisions.close();
    let closed = stage.world.close();
    if left_out > 0 {
        remarks.push(format!("{left_out} decisions without any order are not listed, only counted"));
    }
    if closed.rejected > 0 {
        remarks.push(format!("{} jobs failed because YARN refused an ask larger than any node", closed.rejected));
    }
    violations.extend(unbalanced(end_ms, &closed.accounts));
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

/// The accounts of groups that do not add up.
fn unbalanced(at_ms: Ms, accounts: &BTreeMap<GroupName, Account>) -> Vec<Violation> {
    let wrong = accounts.iter().filter_map(|(group, account)| {
        let Account { billed, useful, lost, held, boot, idle, fragmentation, .. } = *account;
        let parts = useful + lost + held + boot + idle + fragmentation;
        let text = format!("{group}: the parts are {parts}, {billed} was billed: {account:?}");
        (parts != billed).then_some(Violation { at_ms, promise: ACCOUNTS, text })
    });
    wrong.collect()
}
