//! Where the cluster is and who makes its machines: the options that `run` and `plan` share, and the adapters that
//! they name.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, anyhow};
use chrono::{DateTime, Utc};
use clap::ValueEnum;
use reqwest::Url;

use super::{exit, validate::SparkShuffle};
use crate::{
    cloud::command::CommandProvider,
    controller::Settings,
    policy::{Algorithm, LoadOptions, Policy, duration, load},
    ports::{PolicyChange, PolicySource},
    yarn::{
        Yarn,
        admin::Admin,
        admin_rpc::{self, AdminRpc},
        exclude_file::ExcludeFile,
        rest::{Options, ResourceManager},
        rmadmin::{self, RmAdmin},
    },
};

/// Where the ResourceManager answers: all that a command needs which only reads.
#[derive(Debug, clap::Args)]
#[group(id = "web")]
pub struct Web {
    /// The ResourceManager's web address; name both of a high-availability pair
    #[arg(
        long,
        value_name = "URL",
        env = "YARN_AUTOSCALER_RESOURCE_MANAGER",
        hide_env_values = true,
        value_delimiter = ',',
        default_value = "http://localhost:8088"
    )]
    pub resource_manager: Vec<Url>,
}

impl Web {
    /// A client of it.
    pub fn rest(&self) -> Result<ResourceManager, Failure> {
        Ok(ResourceManager::new(self.resource_manager.clone(), Options::default())?)
    }
}

/// Options of the commands that decide about a real cluster.
#[derive(Debug, clap::Args)]
#[group(id = "connect")]
pub struct Args {
    /// The autoscaling policy
    #[arg(long, value_name = "FILE", env = "YARN_AUTOSCALER_POLICY")]
    pub policy: PathBuf,
    /// Where the cluster keeps Spark's shuffle data, as in `dataproc:efm.spark.shuffle`; with primary-worker, only a
    /// graceful decommission time-out of 0s is allowed
    #[arg(long, value_name = "WHERE", env = "YARN_AUTOSCALER_SPARK_SHUFFLE")]
    pub spark_shuffle: Option<SparkShuffle>,
    /// Where the ResourceManager is.
    #[command(flatten)]
    pub web: Web,
    /// The ResourceManager's admin address (host:port) [default: port 8033 of each ResourceManager]
    #[arg(long, value_name = "ADDRESS", env = "YARN_AUTOSCALER_ADMIN_ADDRESS", value_delimiter = ',')]
    pub admin_address: Vec<String>,
    /// How orders reach YARN: Hadoop's own RPC, or the `yarn rmadmin` command (where the cluster is Kerberised)
    #[arg(long, value_enum, env = "YARN_AUTOSCALER_ADMIN", default_value_t = AdminBy::Rpc)]
    pub admin: AdminBy,
    /// The command of --admin rmadmin
    #[arg(long, value_name = "COMMAND", env = "YARN_AUTOSCALER_RMADMIN_COMMAND", default_value = rmadmin::DEFAULT_COMMAND)]
    pub rmadmin_command: String,
    /// The user that orders are given as; must be in yarn.admin.acl
    #[arg(long, value_name = "USER", env = "HADOOP_USER_NAME", default_value = "yarn")]
    pub user: String,
    /// YARN's exclude file (yarn.resourcemanager.nodes.exclude-path), through which workers are drained; `run` needs it
    #[arg(long, value_name = "FILE", env = "YARN_AUTOSCALER_EXCLUDE_FILE")]
    pub exclude_file: Option<PathBuf>,
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
    /// How long one call of the provider may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration::parse)]
    pub provider_time_limit: Duration,
    /// The longest time from a change in YARN to the decision on it; YARN is looked at twice in it
    #[arg(long, value_name = "DURATION", env = "YARN_AUTOSCALER_POLL_INTERVAL", default_value = "5s", value_parser = poll_interval)]
    pub poll_interval: Duration,
    /// How long to hold after the ResourceManager has restarted or failed over
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pub restart_hold: Duration,
    /// How long a worker may be not ready (booting, lost, unhealthy) before it is replaced
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration::parse)]
    pub ready_deadline: Duration,
    /// For trials and tests: this cooldown instead of the policy's; may be shorter than the 2m that a policy must have
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, help_heading = "Trials")]
    pub trial_cooldown: Option<Duration>,
}

/// How orders reach YARN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AdminBy {
    /// Hadoop's own RPC.
    Rpc,
    /// `yarn rmadmin`.
    Rmadmin,
}

/// Where machines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProviderKind {
    /// A program of the operator's.
    Command,
}

/// A failure with the exit code that it means.
#[derive(Debug)]
pub struct Failure {
    /// See [`exit`].
    pub code: u8,
    /// For people.
    pub error: anyhow::Error,
}

impl Failure {
    /// This failure under this exit code.
    pub fn new(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::new(exit::USAGE, error)
    }
}

impl Args {
    /// The loop's settings.
    pub fn settings(&self) -> Settings {
        let Self { poll_interval, restart_hold, ready_deadline, .. } = *self;
        Settings { poll_interval, restart_hold, ready_deadline }
    }

    /// YARN behind its adapter.
    pub fn yarn(&self) -> Result<Yarn, Failure> {
        Ok(Yarn::new(self.web.rest()?, Some(self.administration()?), self.exclude_file.as_ref().map(ExcludeFile::new)))
    }

    fn administration(&self) -> Result<Admin, Failure> {
        match self.admin {
            AdminBy::Rmadmin => Ok(Admin::Command(RmAdmin::new(&self.rmadmin_command, rmadmin::DEFAULT_LIMIT)?)),
            AdminBy::Rpc => {
                let addresses =
                    if self.admin_address.is_empty() { self.default_addresses()? } else { self.admin_address.clone() };
                Ok(Admin::Rpc(AdminRpc::new(addresses, self.user.as_str(), admin_rpc::DEFAULT_LIMIT)?))
            }
        }
    }

    fn default_addresses(&self) -> Result<Vec<String>, Failure> {
        let address = |url: &Url| {
            let host = url.host_str().context("an address of --resource-manager names no host")?;
            Ok(format!("{host}:8033"))
        };
        self.web.resource_manager.iter().map(address).collect::<anyhow::Result<_>>().map_err(Failure::from)
    }

    /// The provider behind its adapter.
    pub fn provider(&self) -> Result<CommandProvider, Failure> {
        let command = self.provider_command.as_deref();
        let command =
            command.context("--provider command needs --provider-command: the program that makes machines")?;
        let words = shlex::split(command).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| anyhow!("--provider-command is empty, or a quote in it is not closed"))?;
        Ok(CommandProvider::new(words, self.provider_time_limit))
    }

    /// The policy in force at the start, from its source; one that is not valid ends the command.
    pub async fn first_policy(&self, source: &mut impl PolicySource, now: DateTime<Utc>) -> Result<Policy, Failure> {
        let about = std::fs::metadata(&self.policy);
        let about = about.with_context(|| format!("cannot read the policy {}", self.policy.display()))?;
        if !about.is_file() {
            return Err(anyhow!("the policy {} is not a file", self.policy.display()).into());
        }
        match source.check(now).await {
            PolicyChange::New(policy) => Ok(policy),
            PolicyChange::Invalid(text) => Err(Failure::new(exit::INVALID_POLICY, anyhow!(text))),
            PolicyChange::Unchanged => Err(Failure::new(exit::BUG, anyhow!("the policy was not read"))),
        }
    }

    /// How the text of the policy file becomes a policy: with the trial options put in. Warnings go to the log.
    pub fn parser(&self) -> impl Fn(&str, &str) -> Result<Policy, String> + use<> {
        let trial_cooldown = self.trial_cooldown;
        let options = LoadOptions { primary_worker_shuffle: self.spark_shuffle == Some(SparkShuffle::PrimaryWorker) };
        move |text, file| {
            let render = |diagnostics: Vec<crate::policy::Diagnostic>| {
                let rendered = diagnostics.iter().map(|diagnostic| diagnostic.render(file, text, false));
                format!("{file} is not a valid policy\n{}", rendered.collect::<Vec<_>>().join("\n"))
            };
            let loaded = load(text, &options).map_err(render)?;
            for warning in &loaded.warnings {
                tracing::warn!("{}", warning.render(file, text, false));
            }
            let mut policy = loaded.policy;
            let Algorithm::Basic(basic) = &mut policy.algorithm;
            basic.cooldown_period = trial_cooldown.unwrap_or(basic.cooldown_period);
            Ok(policy)
        }
    }
}

/// A pending figure is confirmed by a second look at least 2 s after the first, within one interval.
pub(super) fn poll_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    let allowed = Duration::from_secs(4)..=Duration::from_secs(60);
    if allowed.contains(&interval) { Ok(interval) } else { Err("must be between 4s and 60s".into()) }
}
