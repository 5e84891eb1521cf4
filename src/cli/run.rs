//! `run`: the daemon. The composition root: the only place where the controller meets its adapters.

use std::{
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, anyhow};
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    connect::{self, Failure},
    exit,
    journals::{self, Journals},
    place::StatePlace,
    provider::AnyProvider,
    site::Site,
    standing::{self, Standby, Standing},
    terminal,
    wall_clock::WallClock,
};
use crate::{
    controller::{Controller, Halt},
    google::Placement,
    ports::Clock,
};

/// Where the state is kept unless the operator says otherwise: systemd's `StateDirectory`.
pub const DEFAULT_STATE: &str = "/var/lib/yarn-autoscaler/state.json";

/// How long a tick may still take after SIGTERM before it is dropped. That is safe at any point: it is what a crash
/// would do, and the state knows what was begun.
const GRACE: Duration = Duration::from_millis(700);

/// The same where the state is in a bucket, which is then let go of.
const GRACE_OBJECT: Duration = Duration::from_secs(3);

/// The daemon: watches YARN and resizes the cluster by the policy.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the cluster is.
    #[command(flatten)]
    pub connect: connect::Args,
    /// Where the controller remembers its orders and drains, a file or gs://BUCKET/OBJECT; another controller on the same
    /// one ends with code 5
    #[arg(long, value_name = "FILE|gs://…", env = "YARN_AUTOSCALER_STATE", default_value = DEFAULT_STATE)]
    pub state: StatePlace,
    /// What is written down.
    #[command(flatten)]
    pub journals: journals::Args,
    /// Who acts, of several masters.
    #[command(flatten)]
    pub standing: standing::Args,
}

/// Runs until it is told to stop.
pub fn run(args: &Args) -> ExitCode {
    exit::of(start(args))
}

fn start(args: &Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(serve(args));
    // A name that is being looked up sits on a thread of its own and must not hold up the end.
    runtime.shutdown_background();
    result
}

async fn serve(args: &Args) -> Result<(), Failure> {
    // First of all: a signal that comes before anybody listens would end the process in its own way.
    let signals = Signals::listen().context("cannot listen for signals")?;
    let (clock, reload) = (WallClock::default(), Arc::new(AtomicBool::new(false)));
    let grace = if matches!(args.state, StatePlace::File(_)) { GRACE } else { GRACE_OBJECT };
    tokio::select! {
        result = act(args, &clock, &reload) => result,
        result = obey_signals(signals, &clock, &reload, grace) => result,
    }
}

/// Runs the loop while this node is the one that acts; where it is one of several, again and again.
async fn act(args: &Args, clock: &WallClock, reload: &Arc<AtomicBool>) -> Result<(), Failure> {
    let site = Site::find(&args.connect, &args.state).await?;
    site.knows_its_part()?;
    let (placement, local) = (site.placement(), site.local_rest()?);
    refuse_a_state_of_its_own(args, placement)?;
    loop {
        match standing::standing(placement, &local, args.standing.standby).await? {
            Standing::Acts => {}
            Standing::Rests(why) => {
                standing::tell_systemd(&why);
                tracing::info!("{why}");
                return Ok(());
            }
        }
        match control(args, &site, clock, reload).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(Failure { code: exit::STATE_HELD, error }) if shares_state(args, placement) => {
                standing::wait_for_state(&format!("{error:#}")).await;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Masters that take over from one another must share what is remembered: a worker that one has cordoned would be lost to
/// the next.
fn refuse_a_state_of_its_own(args: &Args, placement: Option<&Placement>) -> Result<(), Failure> {
    let StatePlace::File(path) = &args.state else { return Ok(()) };
    if standing::is_the_only_one(placement) {
        return Ok(());
    }
    let path = path.display();
    Err(anyhow!("the state {path} is this master's alone, and the cluster has several: --state gs://BUCKET/OBJECT")
        .into())
}

/// Whether the state that is held may be another master's of this cluster, which lets go of it when it steps back: with
/// an end at each failover nobody would act.
fn shares_state(args: &Args, placement: Option<&Placement>) -> bool {
    args.standing.standby == Standby::Wait
        && matches!(args.state, StatePlace::Object(_))
        && !standing::is_the_only_one(placement)
}

/// Runs the loop; whether it ended because another node acts now.
async fn control(args: &Args, site: &Site<'_>, clock: &WallClock, reload: &Arc<AtomicBool>) -> Result<bool, Failure> {
    let (placement, local) = (site.placement(), site.local_rest()?);
    let (policies, policy) = site.policy(Arc::clone(reload), clock.now()).await?;
    let provider = site.provider(&policy).await?;
    refuse_a_second_autoscaler(&provider).await?;
    let yarn = site.yarn(Some(site.exclude_file().await?))?;
    let store = site.store(&args.state, clock.now()).await?;
    let journals = Journals::open(&args.journals, site.labels())?;
    let ports = (yarn, provider, store, journals, policies);
    let mut controller = Controller::new(ports, policy, args.connect.settings()).await.map_err(halted)?;
    tracing::info!(policy = %args.connect.policy, state = %args.state, "started");
    let is_over = tokio::select! {
        result = controller.run(clock) => result.map(|()| false),
        () = standing::is_lost(placement, &local) => Ok(true),
    };
    if !matches!(is_over, Err(Halt::Conflict(_)))
        && let Err(error) = controller.let_go_of_state().await
    {
        tracing::warn!("the state stays held for a while: {error}");
    }
    is_over.map_err(halted)
}

/// Two autoscalers would undo what the other did.
async fn refuse_a_second_autoscaler(provider: &AnyProvider) -> Result<(), Failure> {
    let AnyProvider::Dataproc(dataproc) = provider else { return Ok(()) };
    match dataproc.attached_policy().await {
        Ok(Some(policy)) => Err(anyhow!("{}", dataproc.detach_first(&policy)).into()),
        Ok(None) => Ok(()),
        // It may pass: the loop looks at each tick, and holds.
        Err(error) => {
            tracing::warn!("whether a policy of Dataproc's own is attached is not known yet: {error}");
            Ok(())
        }
    }
}

fn halted(halt: Halt) -> Failure {
    let code = match halt {
        Halt::Conflict(_) => exit::STATE_HELD,
        Halt::State(_) => exit::USAGE,
        Halt::Unreachable(_) => exit::UNREACHABLE,
    };
    Failure::new(code, halt)
}

/// The signals that mean something to the daemon.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}

/// SIGHUP reads the policy again; SIGTERM and SIGINT end the loop after the tick, or in the middle of it when it takes
/// too long.
async fn obey_signals(
    mut signals: Signals,
    clock: &WallClock,
    reload: &AtomicBool,
    grace: Duration,
) -> Result<(), Failure> {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hang_up.recv() => {
                tracing::info!("SIGHUP: reading the policy again");
                reload.store(true, Ordering::SeqCst);
                clock.wake();
            }
        }
    }
    tracing::info!("stopping");
    // Without systemd there is nobody to tell.
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
    clock.stop();
    #[expect(clippy::disallowed_methods, reason = "the shell's own limit; the loop's time is the clock's")]
    tokio::time::sleep(grace).await;
    Ok(())
}

/// Log lines to stderr; plain where it is no terminal.
pub(super) fn start_log(json: bool, off: bool) {
    let chosen = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = if off { "off".into() } else { chosen.unwrap_or_else(|_| "info".into()) };
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if json {
        log.json().init();
    } else {
        log.with_ansi(terminal::wants_colour(&std::io::stderr())).with_target(false).init();
    }
}
