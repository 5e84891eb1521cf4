//! YARN as an adapter of the [`crate::ports::Cluster`] port: reads over REST, orders over Hadoop's RPC (or
//! `yarn rmadmin`), drains by the exclude file. Must not know the decision nor the controller.
//!
//! # Drains and the exclude file
//! A drain is two steps: the file says what is meant, a refresh makes YARN read it. They cannot be one. Should the
//! refresh fail, the file stays as it is meant, because a refresh whose answer was lost may have been carried out, and
//! a file that says less would then put the node back to work at anybody's next refresh. The error is the caller's to
//! see; giving the same order again changes nothing in the file and refreshes again. The price: a ResourceManager that
//! *starts* in between reads the file and drops the host without a drain.
//!
//! Every refresh is a graceful one. A plain refresh, which also puts hosts back to work, kills every node that drains.
//!
//! # Time-outs
//! In an XML file every host has its own, so a new drain changes no other's. The command's time-out then touches only
//! hosts that somebody else excluded without one; over RPC it is left to the ResourceManager's configuration
//! (`yarn rmadmin` cannot leave it out: there it is the longest of ours). A time-out of 0 ends the drain of the hosts
//! named, and of no other.
//!
//! A plain file has no room for it: the command's time-out is everybody's, those that drain already included. There
//! the longest of our drains is sent, so that none of ours ends early; one that is meant to be shorter lasts longer.
//! A time-out of 0 is refused while somebody else's hosts are in the file: it would end their drains, too.

pub mod admin;
pub mod admin_rpc;
pub mod applications;
pub mod exclude_file;
mod exclude_plain;
mod exclude_xml;
mod http;
mod lenient;
pub mod observation;
pub mod proto;
mod queues;
mod resource_map;
mod resource_row;
pub mod rest;
pub mod rmadmin;
pub mod wire;

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};

use self::{
    admin::Admin,
    exclude_file::{Change, ExcludeFile},
    rest::ResourceManager,
};
use crate::{
    model::{Node, NodeId, Observation, Resources},
    ports::{Cluster, ErrorKind, PortError},
};

/// The least that a cordoned node may hand out. YARN refuses zero; no container is as small as this
/// (no application asks for 1 MB, even where `yarn.scheduler.minimum-allocation-mb` allows it). For idle nodes only: see
/// [`Node::cordon_leaves`].
pub const CORDONED: Resources = Resources::new(1, 1, 0);

/// Hadoop's own default of `yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs`. Never 0 in its
/// place: that would end others' drains at once.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3600);

/// A YARN cluster.
#[derive(Debug)]
pub struct Yarn {
    rest: ResourceManager,
    admin: Option<Admin>,
    exclude: Option<ExcludeFile>,
}

impl Yarn {
    /// Reads from `rest`. Orders need `admin`, drains `exclude` as well: without them the cluster can only be looked
    /// at, and orders fail with [`ErrorKind::Permanent`].
    pub fn new(rest: ResourceManager, admin: Option<Admin>, exclude: Option<ExcludeFile>) -> Self {
        Self { rest, admin, exclude }
    }

    fn admin(&self) -> Result<&Admin, PortError> {
        let text = "this cluster can only be looked at: no admin address or rmadmin command of YARN is configured";
        self.admin.as_ref().ok_or_else(|| PortError::new(ErrorKind::Permanent, text))
    }

    fn exclude(&self) -> Result<&ExcludeFile, PortError> {
        let text = "nodes of this cluster cannot be drained: YARN's exclude file is not configured";
        self.exclude.as_ref().ok_or_else(|| PortError::new(ErrorKind::Permanent, text))
    }

    /// Has YARN read the file again, which has just been brought to what is meant. `otherwise` is the time-out where
    /// no entry of ours says one.
    async fn refresh(&self, change: &Change, otherwise: Option<Duration>) -> Result<(), PortError> {
        for host in &change.foreign {
            tracing::warn!(host, "the exclude file names this host already, and not by us: its entry stays");
        }
        let admin = self.admin()?;
        let is_per_host = self.exclude()?.has_timeouts() && matches!(admin, Admin::Rpc(_));
        let longest = change.longest.or(otherwise).filter(|_| !is_per_host);
        let seconds = longest.map(|longest| i32::try_from(exclude_file::seconds(longest)).unwrap_or(i32::MAX));
        admin.refresh_nodes(seconds).await
    }

    /// A time-out of 0 that would be everybody's.
    fn would_force_others(&self, timeout: Duration) -> Result<bool, PortError> {
        let exclude = self.exclude()?;
        Ok(timeout.is_zero() && !exclude.has_timeouts() && exclude.entries()?.iter().any(|entry| !entry.ours))
    }
}

impl Cluster for Yarn {
    async fn observe(&self, _now: DateTime<Utc>) -> Result<Arc<Observation>, PortError> {
        self.rest.observe().await.map(Arc::new)
    }

    async fn nodes(&self) -> Result<Vec<Arc<Node>>, PortError> {
        self.rest.nodes().await
    }

    async fn cordon(&self, node: &NodeId, leave: Resources) -> Result<(), PortError> {
        let Resources { memory_mb, vcores, gpus } = leave;
        let least = Resources::new(memory_mb.max(CORDONED.memory_mb), vcores.max(CORDONED.vcores), gpus);
        self.admin()?.update_node_resource(node, least).await
    }

    async fn uncordon(&self, node: &NodeId, full: Resources) -> Result<(), PortError> {
        self.admin()?.update_node_resource(node, full).await
    }

    async fn decommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError> {
        self.admin()?;
        if self.would_force_others(timeout)? {
            let text = "a time-out of 0 would end the drains of hosts that others put into the plain exclude file, too: \
                        use an XML file";
            return Err(PortError::new(ErrorKind::Permanent, text));
        }
        let hosts: Vec<_> = hosts.iter().map(|host| (host.as_str(), timeout)).collect();
        let change = self.exclude()?.set(&hosts)?;
        self.refresh(&change, Some(timeout)).await
    }

    /// The time-out is for others' drains that have none in the file, and only where the command is used: left out,
    /// it sends -1, and they would never end. (Every drain of ours that goes on has one in the file.)
    async fn recommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError> {
        let by_command = matches!(self.admin()?, Admin::Command(_));
        let otherwise = by_command.then_some(if timeout.is_zero() { DEFAULT_TIMEOUT } else { timeout });
        let hosts: Vec<_> = hosts.iter().map(String::as_str).collect();
        let change = self.exclude()?.remove(&hosts)?;
        self.refresh(&change, otherwise).await
    }
}
