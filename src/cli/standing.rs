//! Which node of a Dataproc cluster acts: the master; with high availability the one whose ResourceManager is active.

use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use sd_notify::NotifyState;

use super::{connect::Failure, exit};
use crate::{
    google::{ClusterPlacement, Placement},
    yarn::rest::ResourceManager,
};

/// How often a ResourceManager in waiting is asked.
const PACE: Duration = Duration::from_secs(5);

/// Options of who acts.
#[derive(Clone, Copy, Debug, clap::Args)]
#[group(id = "standing")]
pub struct Args {
    /// On a master whose ResourceManager is not the active one: end, or wait until it is
    #[arg(long, value_enum, env = "YARN_AUTOSCALER_STANDBY", default_value_t = Standby::Wait)]
    pub standby: Standby,
}

/// What a master in waiting does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Standby {
    /// Ends with code 0.
    Exit,
    /// Waits.
    Wait,
}

/// Whether this node is the one that acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is.
    Acts,
    /// It is not, and for this reason ends well.
    Rests(String),
}

/// By the node's part in its cluster; `None`: the ResourceManager beside it has to be asked. Outside a Dataproc cluster
/// whoever is started acts.
pub fn by_part(placement: Option<&Placement>) -> Option<Standing> {
    let cluster = placement.and_then(|placement| placement.cluster.as_ref());
    match cluster {
        Some(cluster) if !cluster.is_master() => Some(Standing::Rests(elsewhere(cluster))),
        Some(cluster) if cluster.is_highly_available() => None,
        _ => Some(Standing::Acts),
    }
}

fn elsewhere(cluster: &ClusterPlacement) -> String {
    let ClusterPlacement { name, role, masters, .. } = cluster;
    let masters = masters.join(", ");
    format!("nothing to do here: this node's role in the cluster {name} is {role}; the autoscaler runs on {masters}")
}

/// Whether this node acts. With `wait` it may take for ever; the caller ends it by dropping it. `local` is the
/// ResourceManager of this very node: another one's being active is not ours.
///
/// # Errors
/// With [`Standby::Exit`]: the ResourceManager does not say what it is (code 6).
pub async fn standing(
    placement: Option<&Placement>,
    local: &ResourceManager,
    standby: Standby,
) -> Result<Standing, Failure> {
    match by_part(placement) {
        Some(standing) => Ok(standing),
        None => leads(local, standby, PACE).await,
    }
}

/// One that waits, or has nothing to do, is up: systemd would else end it for not having started.
pub fn tell_systemd(status: &str) {
    // Without systemd there is nobody to tell.
    let _ = sd_notify::notify(&[NotifyState::Ready, NotifyState::Watchdog, NotifyState::Status(status)]);
}

/// How many looks in a row must find that this master is in waiting before it steps back: a ResourceManager that restarts
/// is a standby for a moment.
const LOOKS: u32 = 2;

/// So many looks in a row without an answer, a minute of them at least, say that it is down. Another one is active then,
/// and its master cannot act while this one holds the state.
const SILENT_LOOKS: u32 = 12;

/// Returns when the ResourceManager beside this master has become a standby, or is down; never where there is but one
/// master.
pub async fn is_lost(placement: Option<&Placement>, local: &ResourceManager) {
    if is_the_only_one(placement) {
        std::future::pending::<()>().await;
    }
    stands_back(local, PACE).await;
}

/// Whether no other node of the cluster may come to act.
pub fn is_the_only_one(placement: Option<&Placement>) -> bool {
    by_part(placement).is_some()
}

/// Returns when this ResourceManager is active no more, by looks at this pace.
pub async fn stands_back(local: &ResourceManager, pace: Duration) {
    let (mut standby, mut silent) = (0, 0);
    while standby < LOOKS && silent < SILENT_LOOKS {
        #[expect(clippy::disallowed_methods, reason = "the shell's own wait, beside the loop")]
        tokio::time::sleep(pace).await;
        (standby, silent) = match local.ha_state().await {
            Ok(state) if state == "STANDBY" => (standby + 1, 0),
            Ok(_) => (0, 0),
            Err(_) => (0, silent + 1),
        };
    }
    let is = if standby == LOOKS { "is a standby now" } else { "does not answer" };
    tracing::warn!("the ResourceManager of this master {is}: another master acts");
}

/// How soon a state is tried for again that another master still holds.
const HELD_PACE: Duration = PACE;

/// Waits for the master that acted before to step back, or for its hold of the state to run out.
pub async fn wait_for_state(why: &str) {
    tracing::warn!("waiting for the state: {why}");
    tell_systemd("waiting for the state, which another master holds");
    #[expect(clippy::disallowed_methods, reason = "the shell's own wait, before there is a loop with a clock")]
    tokio::time::sleep(HELD_PACE).await;
}

/// Whether this ResourceManager is the active one, asked again at this pace while it is not and `standby` says to wait.
///
/// # Errors
/// As [`standing`].
pub async fn leads(local: &ResourceManager, standby: Standby, pace: Duration) -> Result<Standing, Failure> {
    let mut told = String::new();
    loop {
        let (is_standby, why) = match local.ha_state().await {
            Ok(state) if state.is_empty() || state == "ACTIVE" => return Ok(Standing::Acts),
            Ok(state) => (state == "STANDBY", format!("the ResourceManager of this master is {state}")),
            Err(error) => (false, error.text),
        };
        match standby {
            Standby::Exit if is_standby => return Ok(Standing::Rests(format!("{why}: another master acts"))),
            Standby::Exit => return Err(Failure::new(exit::UNREACHABLE, anyhow!("whether this master acts: {why}"))),
            Standby::Wait if told != why => tracing::info!("waiting until this master is the active one: {why}"),
            Standby::Wait => {}
        }
        tell_systemd(&why);
        told = why;
        #[expect(clippy::disallowed_methods, reason = "the shell's own wait, before there is a loop with a clock")]
        tokio::time::sleep(pace).await;
    }
}
