//! What the options of `run` and `plan` come to on this machine: what they leave open is found out, once, and the adapters
//! that they name are put together.

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use anyhow::{Context, anyhow};
use chrono::{DateTime, Utc};
use reqwest::Url;

use super::{
    connect::{self, Failure, LOCALHOST},
    exit,
    google::Whereabouts,
    place::{ObjectName, PolicyPlace, StatePlace},
    policy_file::PolicyFile,
    policy_source::AnyPolicy,
    provider::{AnyProvider, ProviderKind},
    state::AnyStore,
};
use crate::{
    cloud::{
        WorkerNames,
        dataproc::{DataprocProvider, Target, policy::DataprocPolicy},
        instance_group::InstanceGroupProvider,
    },
    google::{Api, ClusterPlacement, Endpoints, Placement, TIME_LIMIT_DEFAULT, Tokens},
    model::{GroupName, State},
    policy::Policy,
    ports::{ErrorKind, PolicyChange, PolicySource, PortError, Provider},
    store::{FileStore, ObjectPolicy, ObjectStateStore, autoscaler_log::ClusterLabels, objects::BucketObjects},
    yarn::{
        Yarn,
        exclude_file::ExcludeFile,
        rest::{Options, ResourceManager},
    },
};

/// Where YARN says which workers it is to let go.
const EXCLUDE_PATH: &str = "yarn.resourcemanager.nodes.exclude-path";

/// The options, and what was found out.
#[derive(Debug)]
pub struct Site<'a> {
    args: &'a connect::Args,
    /// Where this machine is in Google's cloud; `None`: nothing of what was asked for is there.
    google: Option<Google>,
    resource_managers: Vec<Url>,
}

/// Google's services, asked by somebody from somewhere.
#[derive(Debug)]
struct Google {
    endpoints: Endpoints,
    tokens: Arc<Tokens>,
    whereabouts: Whereabouts,
}

impl Google {
    fn api(&self, of: impl Fn(&Endpoints) -> &Url, limit: Option<Duration>) -> Result<Api, Failure> {
        let limit = limit.unwrap_or(TIME_LIMIT_DEFAULT);
        Ok(Api::new(of(&self.endpoints).clone(), Arc::clone(&self.tokens), limit)?)
    }

    fn target(&self) -> Result<Target, Failure> {
        let at = &self.whereabouts;
        Ok(Target { project: at.project()?.into(), region: at.region()?.into(), cluster: at.cluster()?.into() })
    }

    async fn bucket(&self, bucket: &str) -> Result<BucketObjects, Failure> {
        let tokens = Arc::clone(&self.tokens);
        Ok(BucketObjects::new(bucket, &self.endpoints.storage, tokens, TIME_LIMIT_DEFAULT).await?)
    }
}

impl<'a> Site<'a> {
    /// Finds out where this machine is, where that matters; `state` is where the state is kept.
    pub async fn find(args: &'a connect::Args, state: &StatePlace) -> Result<Self, Failure> {
        let is_in_google = args.machines.is_google()
            || !matches!(args.policy, PolicyPlace::File(_))
            || matches!(state, StatePlace::Object(_));
        let google = if is_in_google {
            let (endpoints, tokens) = (args.google.endpoints()?, args.google.tokens()?);
            Some(Google { endpoints, tokens, whereabouts: args.google.whereabouts().await? })
        } else {
            None
        };
        let mut site = Self { args, google, resource_managers: Vec::new() };
        let is_master = |placement: &&Placement| placement.cluster.as_ref().is_some_and(ClusterPlacement::is_master);
        let master = site.placement().filter(is_master);
        site.resource_managers = args.web.addresses(master.map_or(LOCALHOST, |master| &master.hostname))?;
        Ok(site)
    }

    /// That this machine's part in the cluster is known, where it has one.
    ///
    /// # Errors
    /// It may have one, and cannot find out just now: a standby that acts would hold the state in the dark.
    pub fn knows_its_part(&self) -> Result<(), Failure> {
        match &self.google {
            Some(google) if self.args.machines.provider == ProviderKind::Dataproc => google.whereabouts.must_be_known(),
            _ => Ok(()),
        }
    }

    /// Where this machine is, where it is a node of the very cluster that is to be resized.
    pub fn placement(&self) -> Option<&Placement> {
        let at = &self.google.as_ref()?.whereabouts;
        let of_this = |placement: &&Placement| {
            let cluster = placement.cluster.as_ref();
            cluster.is_some_and(|cluster| at.cluster().is_ok_and(|name| name == cluster.name))
        };
        at.placement.as_ref().filter(|_| self.args.machines.provider == ProviderKind::Dataproc).filter(of_this)
    }

    /// Which cluster this is, for logs; what is not known is empty.
    pub fn labels(&self) -> ClusterLabels {
        let options = &self.args.google;
        let said = |option: &Option<String>| option.clone().unwrap_or_default();
        let known = |found: Option<Result<&str, Failure>>, option| {
            found.and_then(Result::ok).map_or_else(|| said(option), str::to_owned)
        };
        let at = self.google.as_ref().map(|google| &google.whereabouts);
        let uuid =
            self.placement().and_then(|placement| placement.cluster.as_ref()).map(|cluster| cluster.uuid.clone());
        ClusterLabels {
            project: known(at.map(Whereabouts::project), &options.project),
            region: known(at.map(Whereabouts::region), &options.region),
            cluster: known(at.map(Whereabouts::cluster), &options.cluster),
            uuid: uuid.unwrap_or_default(),
        }
    }

    fn google(&self) -> Result<&Google, Failure> {
        self.google.as_ref().ok_or_else(|| Failure::new(exit::BUG, anyhow!("Google's services were not looked for")))
    }

    /// The ResourceManager.
    pub fn rest(&self) -> Result<ResourceManager, Failure> {
        Ok(ResourceManager::new(self.resource_managers.clone(), Options::default())?)
    }

    /// The ResourceManager of this very node, where it is a master: of several that are named the one of its name.
    pub fn local_rest(&self) -> Result<ResourceManager, Failure> {
        let Some(placement) = self.placement() else { return self.rest() };
        let short = placement.hostname.split('.').next();
        let is_local =
            |url: &&Url| url.host_str().is_some_and(|host| host == placement.hostname || Some(host) == short);
        let given = &self.resource_managers;
        let local = match given.iter().find(is_local) {
            Some(local) => local.clone(),
            None if given.len() == 1 => given[0].clone(),
            None => connect::resource_manager_on(&placement.hostname)?,
        };
        Ok(ResourceManager::new(vec![local], Options::default())?)
    }

    /// YARN behind its adapter, with this exclude file.
    pub fn yarn(&self, exclude_file: Option<PathBuf>) -> Result<Yarn, Failure> {
        let administration = self.args.administration(&self.resource_managers)?;
        Ok(Yarn::new(self.rest()?, Some(administration), exclude_file.map(ExcludeFile::new)))
    }

    /// The exclude file: the one that is said, or the one that the ResourceManager reads, where it is on this machine.
    pub async fn exclude_file(&self) -> Result<PathBuf, Failure> {
        if let Some(path) = &self.args.exclude_file {
            return Ok(path.clone());
        }
        let needed = "run needs --exclude-file: workers are drained through YARN's exclude file";
        let property = self.rest()?.property(EXCLUDE_PATH).await;
        // At the start of a master the ResourceManager comes up later than this program: that is no wrong command line.
        let property = property.map_err(|error| {
            let code = unreadable_code(&error);
            Failure::new(code, anyhow!("{needed}. The ResourceManager does not say which: {error}"))
        })?;
        let path = property.filter(|path| !path.is_empty());
        let path = path.with_context(|| format!("{needed}, and the ResourceManager has none: set {EXCLUDE_PATH}"))?;
        if !std::path::Path::new(&path).is_file() {
            return Err(anyhow!("{needed}. The ResourceManager's is {path}, which is no file on this machine").into());
        }
        tracing::info!(exclude_file = path, "found in the ResourceManager's configuration");
        Ok(path.into())
    }

    /// Where machines come from. `policy` may say what a worker holds.
    pub async fn provider(&self, policy: &Policy) -> Result<AnyProvider, Failure> {
        let machines = &self.args.machines;
        if machines.provider == ProviderKind::Command {
            return Ok(AnyProvider::Command(machines.command()?));
        }
        let domain = match &self.google()?.whereabouts.worker_domain {
            Some(domain) => Some(domain.clone()),
            None => self.domain_by_yarn(&self.google_provider(policy, WorkerNames::default())?).await,
        };
        self.google_provider(policy, WorkerNames::new(domain.as_deref())?)
    }

    fn google_provider(&self, policy: &Policy, names: WorkerNames) -> Result<AnyProvider, Failure> {
        let (google, machines) = (self.google()?, &self.args.machines);
        if machines.provider == ProviderKind::Dataproc {
            let api = google.api(|endpoints| &endpoints.dataproc, machines.provider_time_limit)?;
            let provider = DataprocProvider::new(api, google.target()?, machines.scale_down(), names);
            return Ok(AnyProvider::Dataproc(Box::new(provider)));
        }
        let (api, project) = (
            google.api(|endpoints| &endpoints.compute, machines.provider_time_limit)?,
            google.whereabouts.project()?.to_owned(),
        );
        let declared = GroupName::ALL.into_iter().filter_map(|group| Some((group, policy.template(group)?.clone())));
        let provider = InstanceGroupProvider::new(api, project, machines.groups(), names);
        Ok(AnyProvider::InstanceGroup(Box::new(provider.declaring(declared.collect()))))
    }

    /// The domain of the workers' names, where YARN knows a machine of this provider by its short name and a domain.
    async fn domain_by_yarn(&self, provider: &AnyProvider) -> Option<String> {
        let rest = self.rest().ok()?;
        let told = async { Ok::<_, PortError>((provider.describe().await?, rest.nodes().await?)) };
        let unknown = |error| {
            tracing::warn!("the domain of the workers' names is not known; --worker-domain would say it: {error}");
        };
        let (capacity, nodes) = told.await.map_err(unknown).ok()?;
        let domain_of = |host: &str| {
            let (name, _) = host.split_once('.')?;
            capacity.instance_of_host(name).and_then(|_| WorkerNames::of_node(host))
        };
        let domain = nodes.iter().find_map(|node| domain_of(&node.id.host))?;
        tracing::info!(domain, "found out from YARN's nodes; --worker-domain says it otherwise");
        Some(domain)
    }

    /// Where the policy comes from, and the policy in force at the start; one that is not valid ends the command. While
    /// `force` is true, the next look reads it however unchanged it seems.
    pub async fn policy(
        &self,
        force: Arc<AtomicBool>,
        now: DateTime<Utc>,
    ) -> Result<(AnyPolicy<impl Fn(&str, &str) -> Result<Policy, String> + use<>>, Policy), Failure> {
        let parse = self.args.parser();
        let mut source = match &self.args.policy {
            PolicyPlace::File(path) => {
                is_a_file(path)?;
                AnyPolicy::File(PolicyFile::new(path, force, parse))
            }
            PolicyPlace::Object(ObjectName { bucket, name }) => {
                let source = ObjectPolicy::new(self.google()?.bucket(bucket).await?, name, force, parse);
                source.probe().await.map_err(unreadable)?;
                AnyPolicy::Object(Box::new(source))
            }
            PolicyPlace::Dataproc(id) => {
                let google = self.google()?;
                let (api, target) = (google.api(|endpoints| &endpoints.dataproc, None)?, google.target()?);
                let source = DataprocPolicy::new(api, target, id.clone(), force, parse);
                source.probe().await.map_err(unreadable)?;
                AnyPolicy::Dataproc(Box::new(source))
            }
        };
        match source.check(now).await {
            PolicyChange::New(policy) => Ok((source, policy)),
            PolicyChange::Invalid(text) => Err(Failure::new(exit::INVALID_POLICY, anyhow!(text))),
            PolicyChange::Unchanged => Err(Failure::new(exit::BUG, anyhow!("the policy was not read"))),
        }
    }

    /// Takes hold of the state; in a bucket that happens when it is loaded.
    pub async fn store(&self, place: &StatePlace, now: DateTime<Utc>) -> Result<AnyStore, Failure> {
        match place {
            StatePlace::File(path) => FileStore::open(path, now).map(AnyStore::File).map_err(|error| {
                let code = if error.kind == ErrorKind::Conflict { exit::STATE_HELD } else { exit::USAGE };
                Failure::new(code, error)
            }),
            StatePlace::Object(ObjectName { bucket, name }) => {
                let store = ObjectStateStore::new(self.google()?.bucket(bucket).await?, name, now);
                Ok(AnyStore::Object(Box::new(store)))
            }
        }
    }

    /// The state as it was last saved, without taking hold of it.
    pub async fn peek(&self, place: &StatePlace) -> Result<State, Failure> {
        match place {
            StatePlace::File(path) => Ok(FileStore::peek(path)?),
            StatePlace::Object(ObjectName { bucket, name }) => {
                let objects = self.google()?.bucket(bucket).await?;
                ObjectStateStore::peek(&objects, name).await.map_err(unreadable)
            }
        }
    }
}

fn is_a_file(path: &std::path::Path) -> Result<(), Failure> {
    let about = std::fs::metadata(path).with_context(|| format!("cannot read the policy {}", path.display()))?;
    if about.is_file() { Ok(()) } else { Err(anyhow!("the policy {} is not a file", path.display()).into()) }
}

fn unreadable(error: PortError) -> Failure {
    Failure::new(unreadable_code(&error), error)
}

/// What may pass by itself is no fault of the command line.
fn unreadable_code(error: &PortError) -> u8 {
    let passes = matches!(error.kind, ErrorKind::Transient | ErrorKind::Throttled { .. });
    if passes { exit::UNREACHABLE } else { exit::USAGE }
}
