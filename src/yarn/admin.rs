//! The two ways to give the ResourceManager an order, as one.
//! Must not know why an order is given.

use super::{admin_rpc::AdminRpc, rmadmin::RmAdmin};
use crate::{
    model::{NodeId, Resources},
    ports::PortError,
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
    /// Has YARN read the exclude file again, gracefully; `timeout_s` as [`AdminRpc::refresh_nodes`] takes it.
    ///
    /// # Errors
    /// As [`AdminRpc::refresh_nodes`].
    pub async fn refresh_nodes(&self, timeout_s: Option<i32>) -> Result<(), PortError> {
        match self {
            Self::Rpc(rpc) => rpc.refresh_nodes(timeout_s).await,
            Self::Command(command) => command.refresh_nodes(timeout_s).await,
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
}
