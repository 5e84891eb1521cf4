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
//! In an XML file every host has its own, so a new drain changes no other's; the command's time-out is left to the
//! ResourceManager's configuration and touches only hosts that somebody else excluded without one. A time-out of 0
//! ends the drain of the hosts named, and of no other.
//!
//! A plain file has no room for it: the command's time-out is everybody's, those that drain already included. There
//! the longest of our drains is sent, so that none ends early; one that is meant to be shorter may last longer.

pub mod admin;
pub mod admin_rpc;
pub mod exclude_file;
mod exclude_plain;
mod exclude_xml;
mod http;
mod lenient;
pub mod observation;
pub mod proto;
pub mod rest;
pub mod rmadmin;
pub mod wire;

use std::time::Duration;

use chrono::{DateTime, Utc};

use self::{
    admin::Admin,
    admin_rpc::Refresh,
    exclude_file::{Change, ExcludeFile},
    rest::ResourceManager,
};
use crate::{
    model::{Node, NodeId, Observation, Resources},
    ports::{Cluster, ErrorKind, PortError},
};

/// What a cordoned node may hand out. YARN refuses zero; no container is as small as this
/// (`yarn.scheduler.minimum-allocation-mb` is 1024 by default, and nobody sets 1).
pub const CORDONED: Resources = Resources::new(1, 1, 0);

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

    /// Has YARN read the file again, which has just been brought to what is meant.
    async fn refresh(&self, change: &Change, timeout: Duration) -> Result<(), PortError> {
        for host in &change.foreign {
            tracing::warn!(host, "the exclude file names this host already, and not by us: its entry stays");
        }
        let admin = self.admin()?;
        let is_per_host = self.exclude()?.has_timeouts() && matches!(admin, Admin::Rpc(_));
        let seconds = exclude_file::seconds(change.longest.map_or(timeout, |longest| longest.max(timeout)));
        let seconds = (!is_per_host).then(|| i32::try_from(seconds).unwrap_or(i32::MAX));
        admin.refresh_nodes(Refresh::Graceful(seconds)).await
    }
}

impl Cluster for Yarn {
    async fn observe(&self, now: DateTime<Utc>) -> Result<Observation, PortError> {
        self.rest.observe(now).await
    }

    async fn nodes(&self) -> Result<Vec<Node>, PortError> {
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
        let hosts: Vec<_> = hosts.iter().map(|host| (host.as_str(), timeout)).collect();
        let change = self.exclude()?.set(&hosts)?;
        self.refresh(&change, timeout).await
    }

    async fn recommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError> {
        self.admin()?;
        let hosts: Vec<_> = hosts.iter().map(String::as_str).collect();
        let change = self.exclude()?.remove(&hosts)?;
        self.refresh(&change, timeout).await
    }
}
