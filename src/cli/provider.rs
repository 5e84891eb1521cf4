//! Where machines come from: the options that say so, and the adapter that they name.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context, anyhow};
use clap::ValueEnum;

use super::connect::Failure;
use crate::{
    cloud::{
        self, CommandProvider,
        dataproc::{self, DataprocProvider},
        instance_group::{GroupAddress, InstanceGroupProvider},
    },
    model::{Capacity, GroupName, SizeChange},
    policy::duration,
    ports::{OperationState, PortError, Provider},
};

/// Which provider, and what it must know.
#[derive(Debug, clap::Args)]
#[group(id = "machines")]
pub struct Args {
    /// Where machines come from
    #[arg(long, value_enum, env = "YARN_AUTOSCALER_PROVIDER", default_value_t = ProviderKind::Command)]
    pub provider: ProviderKind,
    /// The program of --provider command, with its arguments (docs/provider-command.md)
    #[arg(
        long,
        value_name = "COMMAND",
        env = "YARN_AUTOSCALER_PROVIDER_COMMAND",
        hide_env_values = true,
        required_if_eq("provider", "command")
    )]
    pub provider_command: Option<String>,
    /// How long one call of the provider may take [default: 30s of a program, 10s of Google's services]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub provider_time_limit: Option<Duration>,
    /// How a Dataproc cluster gets smaller
    #[arg(long, value_enum, env = "YARN_AUTOSCALER_SCALE_DOWN_BY", default_value_t = ScaleDownBy::Repair)]
    pub scale_down_by: ScaleDownBy,
    /// The managed instance group of the primary workers, for --provider instance-group: ZONE/NAME, or
    /// regions/REGION/instanceGroupManagers/NAME
    #[arg(
        long,
        value_name = "GROUP",
        env = "YARN_AUTOSCALER_PRIMARY_GROUP",
        value_parser = group_address,
        required_if_eq("provider", "instance-group")
    )]
    pub primary_group: Option<GroupAddress>,
    /// The managed instance group of the secondary workers, where there is one
    #[arg(long, value_name = "GROUP", env = "YARN_AUTOSCALER_SECONDARY_GROUP", value_parser = group_address)]
    pub secondary_group: Option<GroupAddress>,
}

fn group_address(text: &str) -> Result<GroupAddress, String> {
    GroupAddress::parse(text).map_err(|error| error.text)
}

/// Where machines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProviderKind {
    /// A program of the operator's.
    Command,
    /// A Dataproc cluster.
    Dataproc,
    /// Managed instance groups of Compute Engine.
    InstanceGroup,
}

/// How a Dataproc cluster gets smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScaleDownBy {
    /// We drain the workers that cost least and have just these deleted: it can grow meanwhile.
    Repair,
    /// Dataproc chooses, drains and deletes: it takes no other order until that is done.
    Update,
}

/// One of the adapters.
#[derive(Debug)]
pub enum AnyProvider {
    /// See [`ProviderKind::Command`].
    Command(CommandProvider),
    /// See [`ProviderKind::Dataproc`].
    Dataproc(Box<DataprocProvider>),
    /// See [`ProviderKind::InstanceGroup`].
    InstanceGroup(Box<InstanceGroupProvider>),
}

impl Args {
    /// Whether it is one of Google's.
    pub fn is_google(&self) -> bool {
        self.provider != ProviderKind::Command
    }

    /// The program that makes machines.
    pub(super) fn command(&self) -> Result<CommandProvider, Failure> {
        let command = self.provider_command.as_deref();
        let command =
            command.context("--provider command needs --provider-command: the program that makes machines")?;
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| anyhow!("--provider-command is empty, or a quote in it is not closed"))?;
        Ok(CommandProvider::new(words, self.provider_time_limit.unwrap_or(cloud::TIME_LIMIT_DEFAULT)))
    }

    pub(super) fn scale_down(&self) -> dataproc::ScaleDown {
        match self.scale_down_by {
            ScaleDownBy::Repair => dataproc::ScaleDown::Repair,
            ScaleDownBy::Update => dataproc::ScaleDown::Update,
        }
    }

    pub(super) fn groups(&self) -> BTreeMap<GroupName, GroupAddress> {
        let groups = [(GroupName::Primary, &self.primary_group), (GroupName::Secondary, &self.secondary_group)];
        groups.into_iter().filter_map(|(name, group)| Some((name, group.clone()?))).collect()
    }
}

impl AnyProvider {
    /// The same for a look that changes nothing: nobody's autoscaler is in the way of that.
    #[must_use]
    pub fn for_a_look(self) -> Self {
        match self {
            Self::Dataproc(provider) => Self::Dataproc(Box::new(provider.beside_a_policy())),
            other => other,
        }
    }
}

impl Provider for AnyProvider {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        match self {
            Self::Command(provider) => provider.describe().await,
            Self::Dataproc(provider) => provider.describe().await,
            Self::InstanceGroup(provider) => provider.describe().await,
        }
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        match self {
            Self::Command(provider) => provider.create(request_id, group, count).await,
            Self::Dataproc(provider) => provider.create(request_id, group, count).await,
            Self::InstanceGroup(provider) => provider.create(request_id, group, count).await,
        }
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        match self {
            Self::Command(provider) => provider.delete(request_id, group, instances).await,
            Self::Dataproc(provider) => provider.delete(request_id, group, instances).await,
            Self::InstanceGroup(provider) => provider.delete(request_id, group, instances).await,
        }
    }

    async fn resize(&self, request_id: &str, change: SizeChange, timeout: Duration) -> Result<String, PortError> {
        match self {
            Self::Command(provider) => provider.resize(request_id, change, timeout).await,
            Self::Dataproc(provider) => provider.resize(request_id, change, timeout).await,
            Self::InstanceGroup(provider) => provider.resize(request_id, change, timeout).await,
        }
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        match self {
            Self::Command(provider) => provider.poll(operation_id).await,
            Self::Dataproc(provider) => provider.poll(operation_id).await,
            Self::InstanceGroup(provider) => provider.poll(operation_id).await,
        }
    }
}
