//! `plan`: one look at the real cluster: what would the daemon do now, and why. Changes nothing.
//!
//! The look is two looks, since pending that one look alone shows is not demand. The averages that the daemon has are
//! not there; the plan takes the present for the whole window: what would be done if it stayed like this.

use std::{io::Write, process::ExitCode, sync::Arc};

use anyhow::anyhow;
use chrono::{DateTime, Utc};

use super::{
    connect::{self, Failure},
    exit,
    place::StatePlace,
    plan_view, run,
    site::Site,
    wall_clock::WallClock,
};
use crate::{
    controller,
    decide::{self, Matching, Survey},
    model::{CONFIRM_AFTER, History, Outage, Sample, Situation},
    policy::Policy,
    ports::{Clock, Cluster, Provider},
};

/// Look once at the cluster: what would be done now, and why. Changes nothing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the cluster is.
    #[command(flatten)]
    pub connect: connect::Args,
    /// The daemon's state file, to know its cooldown and drains; it is read, never locked or written, and need not be
    /// there
    #[arg(long, value_name = "FILE|gs://…", env = "YARN_AUTOSCALER_STATE", default_value = run::DEFAULT_STATE)]
    pub state: StatePlace,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// End with code 2 where something would be done, with 0 where nothing would be (and with 1, not 2, where a file
    /// cannot be used)
    #[arg(long)]
    pub detailed_exitcode: bool,
}

/// What `--detailed-exitcode` says when something would be done, as Terraform does.
const WOULD_ACT: u8 = 2;

/// Plans.
pub fn run(args: &Args) -> ExitCode {
    match plan(args) {
        Ok(acts) if acts && args.detailed_exitcode => exit::code(WOULD_ACT),
        // Here 2 means that something would be done, so what cannot be used is 1, as with Terraform.
        Err(failure) if args.detailed_exitcode && failure.code == exit::USAGE => {
            exit::of(Err(Failure { code: exit::BUG, ..failure }))
        }
        result => exit::of(result.map(drop)),
    }
}

/// Prints the plan; whether something would be done.
fn plan(args: &Args) -> Result<bool, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (policy, situation) = runtime.block_on(look(args))?;
    // A name that is being looked up sits on a thread of its own and must not hold up the end.
    runtime.shutdown_background();
    let (survey, decision) = (Survey::of(&policy, &situation), decide::decide(&policy, &situation));
    let plan = plan_view::Plan::of(&policy, &situation, survey.as_ref(), &decision);
    let text = if args.json { plan.json()? } else { plan.text() };
    // A reader that went away changes no verdict.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(!decision.actions.is_empty())
}

/// Two looks, far enough apart; the second one counts, with the pending that both have seen.
async fn look(args: &Args) -> Result<(Policy, Situation), Failure> {
    let clock = WallClock::default();
    let site = Site::find(&args.connect, &args.state).await?;
    let (_, policy) = site.policy(Arc::default(), clock.now()).await?;
    let mut state = Arc::new(site.peek(&args.state).await?);
    let (yarn, provider) = (site.yarn(args.connect.exclude_file.clone())?, site.provider(&policy).await?);
    let provider = provider.for_a_look();
    let unreachable = |error| Failure::new(exit::UNREACHABLE, anyhow!("{error}"));
    let begun_at = clock.now();
    let first = yarn.observe(begun_at).await.map_err(unreachable)?;
    let _ = clock.sleep_until(begun_at + CONFIRM_AFTER).await;
    let capacity = provider.describe().await.map_err(unreachable)?;
    let now = clock.now();
    let observation = yarn.observe(now).await.map_err(unreachable)?;
    let timeout = policy.basic().graceful_decommission_timeout;
    let matching = Matching::of(&observation, &capacity);
    controller::reconcile(&mut state, Some(&observation), Some(&matching), now, timeout);
    let controller::Settings { poll_interval, restart_hold, ready_deadline } = args.connect.settings();
    let mut situation = Situation {
        now,
        poll_interval,
        observation: Ok::<_, Outage>(observation),
        capacity: Ok(capacity),
        history: History::default(),
        state,
        restart_hold,
        ready_deadline,
    };
    if let Some(sample) = decide::sample(&policy, &situation) {
        let seen_twice = Sample { pending: sample.pending.min(first.metrics.pending), ..sample };
        situation.history = as_if_always(seen_twice, &policy, now);
    }
    Ok((policy, situation))
}

/// A history in which the present has lasted for a whole window.
fn as_if_always(sample: Sample, policy: &Policy, now: DateTime<Utc>) -> History {
    let window = policy.basic().cooldown_period;
    let mut history = History::default();
    let mut at = now - window - CONFIRM_AFTER;
    while at < now {
        history.push(Sample { at, ..sample }, window * 2);
        at += CONFIRM_AFTER;
    }
    history.push(Sample { at: now, ..sample }, window * 2);
    history
}
