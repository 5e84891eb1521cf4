//! Where the cluster is and who makes its machines: the options that `run` and `plan` share. What they come to is
//! `site`'s.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use clap::ValueEnum;
use reqwest::Url;

use super::{exit, google, place::PolicyPlace, provider, validate::SparkShuffle};
use crate::{
    controller::Settings,
    policy::{Algorithm, LoadOptions, Policy, duration, load},
    yarn::{
        admin::Admin,
        admin_rpc::{self, AdminRpc},
        rest::{Options, ResourceManager},
        rmadmin::{self, RmAdmin},
    },
};

/// Where the ResourceManager answers: all that a command needs which only reads.
#[derive(Debug, clap::Args)]
#[group(id = "web")]
pub struct Web {
    /// The ResourceManager's web address; name both of a high-availability pair [default: http://localhost:8088, on a
    /// Dataproc master port 8088 of its own name]
    #[arg(
        long,
        value_name = "URL",
        env = "YARN_AUTOSCALER_RESOURCE_MANAGER",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub resource_manager: Vec<Url>,
}

impl Web {
    /// Its addresses; on a host of this name, where none is given.
    pub fn addresses(&self, host: &str) -> Result<Vec<Url>, Failure> {
        if !self.resource_manager.is_empty() {
            return Ok(self.resource_manager.clone());
        }
        resource_manager_on(host).map(|url| vec![url])
    }

    /// A client of it.
    pub fn rest(&self) -> Result<ResourceManager, Failure> {
        Ok(ResourceManager::new(self.addresses(LOCALHOST)?, Options::default())?)
    }
}

/// The web address of a ResourceManager on this host.
pub fn resource_manager_on(host: &str) -> Result<Url, Failure> {
    let address = format!("http://{host}:8088");
    Ok(address.parse().with_context(|| format!("{address} is no address: say --resource-manager"))?)
}

/// Where the ResourceManager is, unless something else is known.
pub const LOCALHOST: &str = "localhost";

/// Options of the commands that decide about a real cluster.
#[derive(Debug, clap::Args)]
#[group(id = "connect")]
pub struct Args {
    /// The autoscaling policy: a file, gs://BUCKET/OBJECT, dataproc:ID for one of Dataproc's, or `dataproc:` for the one
    /// that is attached to the cluster
    #[arg(long, value_name = "POLICY", env = "YARN_AUTOSCALER_POLICY")]
    pub policy: PolicyPlace,
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
    /// YARN's exclude file, through which workers are drained [default: the ResourceManager's
    /// yarn.resourcemanager.nodes.exclude-path, where it is a file on this machine]
    #[arg(long, value_name = "FILE", env = "YARN_AUTOSCALER_EXCLUDE_FILE")]
    pub exclude_file: Option<PathBuf>,
    /// Where machines come from.
    #[command(flatten)]
    pub machines: provider::Args,
    /// The longest time from a change in YARN to the decision on it; YARN is looked at twice in it
    #[arg(long, value_name = "DURATION", env = "YARN_AUTOSCALER_POLL_INTERVAL", default_value = "5s", value_parser = poll_interval)]
    pub poll_interval: Duration,
    /// How long to hold after the ResourceManager has restarted or failed over
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration::parse)]
    pub restart_hold: Duration,
    /// How long a worker may be not ready (booting, lost, unhealthy) before it is replaced
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration::parse)]
    pub ready_deadline: Duration,
    /// Google Cloud.
    #[command(flatten)]
    pub google: google::Args,
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

    /// What gives YARN its orders, at these web addresses.
    pub fn administration(&self, resource_managers: &[Url]) -> Result<Admin, Failure> {
        match self.admin {
            AdminBy::Rmadmin => Ok(Admin::Command(RmAdmin::new(&self.rmadmin_command, rmadmin::DEFAULT_LIMIT)?)),
            AdminBy::Rpc => {
                let given = self.admin_address.clone();
                let addresses = if given.is_empty() { default_addresses(resource_managers)? } else { given };
                Ok(Admin::Rpc(AdminRpc::new(addresses, self.user.as_str(), admin_rpc::DEFAULT_LIMIT)?))
            }
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

fn default_addresses(resource_managers: &[Url]) -> Result<Vec<String>, Failure> {
    let address = |url: &Url| {
        let host = url.host_str().context("an address of --resource-manager names no host")?;
        Ok(format!("{host}:8033"))
    };
    resource_managers.iter().map(address).collect::<anyhow::Result<_>>().map_err(Failure::from)
}

/// A pending figure is confirmed by a second look at least 2 s after the first, within one interval.
pub(super) fn poll_interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    let allowed = Duration::from_secs(4)..=Duration::from_secs(60);
    if allowed.contains(&interval) { Ok(interval) } else { Err("must be between 4s and 60s".into()) }
}
