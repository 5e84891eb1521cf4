//! The two ways to give the ResourceManager an order, as one.
//! Must not know why an order is given.

use super::{
    admin_rpc::{AdminRpc, Refresh},
    rmadmin::RmAdmin,
};
use crate::{
    model::{NodeId, Resources},
    ports::{ErrorKind, PortError},
};

/// How orders reach the ResourceManager.
#[derive(Debug)]
pub enum Admin {
    /// Hadoop's RPC: milliseconds, no JVM, no Kerberos.
    Rpc(AdminRpc),
    /// `yarn rmadmin`: seconds, a JVM, whatever security the cluster has.
    Command(RmAdmin),
}

impl Admin {
    /// Has YARN read the exclude file again.
    ///
    /// # Errors
    /// As [`AdminRpc::refresh_nodes`].
    pub async fn refresh_nodes(&self, refresh: Refresh) -> Result<(), PortError> {
        match self {
            Self::Rpc(rpc) => rpc.refresh_nodes(refresh).await,
            Self::Command(command) => command.refresh_nodes(refresh).await,
        }
    }

    /// Sets what a node may hand out.
    ///
    /// # Errors
    /// As [`AdminRpc::update_node_resource`].
    pub async fn update_node_resource(&self, node: &NodeId, total: Resources) -> Result<(), PortError> {
        match self {
            Self::Rpc(rpc) => rpc.update_node_resource(node, total).await,
            Self::Command(command) => command.update_node_resource(node, total).await,
        }
    }

    /// The nodes that are draining.
    ///
    /// # Errors
    /// As [`AdminRpc::refresh_nodes`]; [`ErrorKind::Permanent`] with the command, which cannot tell.
    pub async fn check_for_decommissioning_nodes(&self) -> Result<Vec<NodeId>, PortError> {
        match self {
            Self::Rpc(rpc) => rpc.check_for_decommissioning_nodes().await,
            Self::Command(_) => {
                Err(PortError::new(ErrorKind::Permanent, "the rmadmin command does not tell which nodes are draining"))
            }
        }
    }
}
