//! Google Cloud on the command line: who asks, where the services answer, and where this machine is.

use std::{path::PathBuf, sync::Arc};

use anyhow::anyhow;
use reqwest::Url;

use super::{connect::Failure, exit};
use crate::{
    cloud::worker_names::WorkerNames,
    google::{
        Credentials, Defaults, Endpoints, METADATA_HOST, METADATA_TIME_LIMIT, Metadata, MetadataError, Placement,
        Timing, Tokens, endpoint, is_loopback,
    },
};

/// Options of Google Cloud.
#[derive(Clone, Debug, clap::Args)]
#[group(id = "google")]
#[command(next_help_heading = "Google Cloud")]
pub struct Args {
    /// The project's id [default: this machine's]
    #[arg(long, value_name = "PROJECT", env = "YARN_AUTOSCALER_PROJECT")]
    pub project: Option<String>,
    /// The cluster's region [default: this machine's]
    #[arg(long, value_name = "REGION", env = "YARN_AUTOSCALER_REGION")]
    pub region: Option<String>,
    /// The Dataproc cluster [default: the one that this machine is the master of]
    #[arg(long, value_name = "CLUSTER", env = "YARN_AUTOSCALER_CLUSTER")]
    pub cluster: Option<String>,
    /// A service account's key file; or `metadata`, the machine's own service account; or `none`, for emulators on this
    /// machine [default: application-default credentials]
    #[arg(long, value_name = "FILE|metadata|none", env = "YARN_AUTOSCALER_GOOGLE_CREDENTIALS", value_parser = Chosen::parse)]
    pub google_credentials: Option<Chosen>,
    /// Act as this service account, which may do less
    #[arg(long, value_name = "EMAIL", env = "YARN_AUTOSCALER_IMPERSONATE_SERVICE_ACCOUNT")]
    pub impersonate_service_account: Option<String>,
    /// Where the machine's metadata server answers (host or host:port)
    #[arg(long, value_name = "HOST", env = "GCE_METADATA_HOST", default_value = METADATA_HOST)]
    pub metadata_host: String,
    /// Where Dataproc answers [default: dataproc.googleapis.com]
    #[arg(long, value_name = "URL", env = "YARN_AUTOSCALER_DATAPROC_ENDPOINT", value_parser = endpoint)]
    pub dataproc_endpoint: Option<Url>,
    /// Where Compute Engine answers [default: compute.googleapis.com]
    #[arg(long, value_name = "URL", env = "YARN_AUTOSCALER_COMPUTE_ENDPOINT", value_parser = endpoint)]
    pub compute_endpoint: Option<Url>,
    /// Where Cloud Storage answers [default: storage.googleapis.com]
    #[arg(long, value_name = "URL", env = "YARN_AUTOSCALER_STORAGE_ENDPOINT", value_parser = endpoint)]
    pub storage_endpoint: Option<Url>,
    /// Where IAM Service Account Credentials answers [default: iamcredentials.googleapis.com]
    #[arg(long, value_name = "URL", env = "YARN_AUTOSCALER_IAM_ENDPOINT", value_parser = endpoint)]
    pub iam_endpoint: Option<Url>,
    /// The domain of the workers' host names, where `{zone}` stands for the worker's zone [default: this machine's]
    #[arg(long, value_name = "DOMAIN", env = "YARN_AUTOSCALER_WORKER_DOMAIN")]
    pub worker_domain: Option<String>,
}

/// What --google-credentials says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// This key file.
    File(PathBuf),
    /// The machine's own service account.
    Metadata,
    /// Nobody.
    Anonymous,
}

impl Chosen {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "" => return Err("names nothing: a key file, `metadata` or `none`".into()),
            "metadata" => Self::Metadata,
            "none" => Self::Anonymous,
            file => Self::File(file.into()),
        })
    }
}

/// Where we are: by the flags, and where they say nothing by the metadata server.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    project: Option<String>,
    region: Option<String>,
    cluster: Option<String>,
    /// The domain of the workers' names, `{zone}` in it; `None`: they are called by their short names.
    pub worker_domain: Option<String>,
    /// What the metadata server told; `None`: nothing.
    pub placement: Option<Placement>,
    /// Why it told nothing, and the exit code that this means where it is needed.
    silence: Option<(String, u8)>,
}

impl Args {
    /// Where the services answer.
    pub fn endpoints(&self) -> Result<Endpoints, Failure> {
        let public = Endpoints::public().map_err(|text| Failure::new(exit::BUG, anyhow!(text)))?;
        let named = |url: &Option<Url>, public: Url| url.clone().unwrap_or(public);
        Ok(Endpoints {
            dataproc: named(&self.dataproc_endpoint, public.dataproc),
            compute: named(&self.compute_endpoint, public.compute),
            storage: named(&self.storage_endpoint, public.storage),
            iam_credentials: named(&self.iam_endpoint, public.iam_credentials),
        })
    }

    /// Who asks. Nobody is asked yet; a key file is looked at.
    pub fn tokens(&self) -> Result<Arc<Tokens>, Failure> {
        let endpoints = self.endpoints()?;
        let credentials = self.credentials()?;
        if matches!(credentials, Credentials::Anonymous) {
            only_here(&endpoints)?;
        }
        credentials.check()?;
        let tokens = Tokens::new(credentials, Timing::default());
        let tokens = match &self.impersonate_service_account {
            Some(email) => tokens.impersonating(email, endpoints.iam_credentials)?,
            None => tokens,
        };
        Ok(Arc::new(tokens))
    }

    fn credentials(&self) -> Result<Credentials, Failure> {
        Ok(match &self.google_credentials {
            Some(Chosen::File(path)) => Credentials::ServiceAccountFile(path.clone()),
            Some(Chosen::Metadata) => Credentials::Metadata(self.metadata()?),
            Some(Chosen::Anonymous) => Credentials::Anonymous,
            None => Credentials::ApplicationDefault(self.defaults()?),
        })
    }

    fn defaults(&self) -> Result<Defaults, Failure> {
        #[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
        let named = std::env::var_os("GOOGLE_APPLICATION_CREDENTIALS").filter(|path| !path.is_empty());
        let gcloud_file =
            std::env::home_dir().map(|home| home.join(".config/gcloud/application_default_credentials.json"));
        Ok(Defaults { named: named.map(PathBuf::from), gcloud_file, metadata: self.metadata()? })
    }

    fn metadata(&self) -> Result<Metadata, Failure> {
        // An empty variable is as good as none.
        let host = if self.metadata_host.is_empty() { METADATA_HOST } else { &self.metadata_host };
        Ok(Metadata::new(host, METADATA_TIME_LIMIT)?)
    }

    /// Where we are. That something is not known is no failure yet: see [`Whereabouts`].
    pub async fn whereabouts(&self) -> Result<Whereabouts, Failure> {
        let (placement, silence) = match self.placement().await? {
            Ok(placement) => (placement, None),
            Err(MetadataError::Absent(text)) => (None, Some((text, exit::USAGE))),
            Err(error) => {
                tracing::warn!("where this machine is, and its part in a cluster, is not known: {error}");
                (None, Some((error.to_string(), exit::UNREACHABLE)))
            }
        };
        let told = placement.as_ref();
        let of_cluster = told.and_then(|told| told.cluster.as_ref());
        let domain = || told.and_then(|told| WorkerNames::of_host(&told.hostname, &told.zone));
        Ok(Whereabouts {
            project: named(&self.project).or_else(|| told.map(|told| told.project.clone())),
            region: named(&self.region).or_else(|| told.map(|told| told.region.clone())),
            cluster: named(&self.cluster).or_else(|| of_cluster.map(|cluster| cluster.name.clone())),
            worker_domain: named(&self.worker_domain).or_else(domain),
            placement,
            silence,
        })
    }

    /// What the metadata server tells. It is left alone where emulators are asked, unless one is named.
    async fn placement(&self) -> Result<Result<Option<Placement>, MetadataError>, Failure> {
        if self.google_credentials == Some(Chosen::Anonymous) && self.metadata_host == METADATA_HOST {
            return Ok(Ok(None));
        }
        Ok(self.metadata()?.placement().await.map(Some))
    }
}

/// What a flag says; an empty variable is as good as none.
fn named(flag: &Option<String>) -> Option<String> {
    flag.clone().filter(|value| !value.is_empty())
}

/// Nobody in particular is heard by emulators only; a real service would refuse each request.
fn only_here(endpoints: &Endpoints) -> Result<(), Failure> {
    let Endpoints { dataproc, compute, storage, iam_credentials: _ } = endpoints;
    let named = [("--dataproc-endpoint", dataproc), ("--compute-endpoint", compute), ("--storage-endpoint", storage)];
    let elsewhere: Vec<_> = named.iter().filter(|(_, url)| !is_loopback(url)).map(|(flag, _)| *flag).collect();
    if elsewhere.is_empty() {
        return Ok(());
    }
    let flags = elsewhere.join(", ");
    Err(anyhow!(
        "--google-credentials none is for emulators on this machine: name them by {flags} (http://127.0.0.1:PORT/)"
    )
    .into())
}

impl Whereabouts {
    /// That there may be a metadata server which has not told whether this machine is a node that acts.
    pub fn must_be_known(&self) -> Result<(), Failure> {
        match &self.silence {
            Some((why, exit::UNREACHABLE)) => {
                let text = format!("whether this machine is the master that acts is not known: {why}");
                Err(Failure::new(exit::UNREACHABLE, anyhow!(text)))
            }
            _ => Ok(()),
        }
    }

    /// The project's id.
    pub fn project(&self) -> Result<&str, Failure> {
        self.must(self.project.as_deref(), "--project")
    }

    /// The region.
    pub fn region(&self) -> Result<&str, Failure> {
        self.must(self.region.as_deref(), "--region")
    }

    /// The Dataproc cluster.
    pub fn cluster(&self) -> Result<&str, Failure> {
        self.must(self.cluster.as_deref(), "--cluster")
    }

    fn must<'a>(&self, value: Option<&'a str>, flag: &str) -> Result<&'a str, Failure> {
        if let Some(value) = value {
            return Ok(value);
        }
        let (why, code) = match &self.silence {
            Some((text, code)) => (text.as_str(), *code),
            None if self.placement.is_some() => ("this machine is not a node of a Dataproc cluster", exit::USAGE),
            None => (
                "with --google-credentials none the metadata server is not asked unless --metadata-host names it",
                exit::USAGE,
            ),
        };
        Err(Failure::new(code, anyhow!("{flag} is needed: it cannot be found out, as {why}")))
    }
}
