//! The kinds of credentials, and one new token by each.

use std::{path::PathBuf, pin::Pin, time::Duration};

use chrono::{DateTime, Utc};
use gcp_auth::Token;
use serde::Deserialize;
use serde_json::json;

use super::{
    Api, Metadata, MetadataError,
    api::path_part,
    gcloud::{self, GcloudCommand},
    key_file,
};
use crate::ports::{ErrorKind, PortError};

/// All that the machine's or the account's roles allow: what is allowed is said by roles, not by scopes.
pub(super) const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// How long a token of a narrower account is asked for: the most without a policy of the organisation's.
const IMPERSONATED_LIFE: Duration = Duration::from_secs(3600);

/// What tokens are made from.
#[derive(Clone, Debug)]
pub enum Credentials {
    /// The first of several that is there.
    ApplicationDefault(Defaults),
    /// A service account's key.
    ServiceAccountFile(PathBuf),
    /// The machine's own service account.
    Metadata(Metadata),
    /// None: for emulators on this machine.
    Anonymous,
}

/// Where application-default credentials may be, in this order; `gcloud auth print-access-token` comes last.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// The file that `GOOGLE_APPLICATION_CREDENTIALS` names: where one is named, nothing else is tried.
    pub named: Option<PathBuf>,
    /// gcloud's own file, `~/.config/gcloud/application_default_credentials.json`: where it is there, nothing after it
    /// is tried.
    pub gcloud_file: Option<PathBuf>,
    /// The machine's own service account.
    pub metadata: Metadata,
}

impl Credentials {
    /// Looks at the file, where one is named, without asking anybody: what is wrong with it is said at the start.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: it cannot be read, or is of a kind that is not read; the text says what to use instead.
    pub fn check(&self) -> Result<(), PortError> {
        match self {
            Self::ServiceAccountFile(path) | Self::ApplicationDefault(Defaults { named: Some(path), .. }) => {
                key_file::check(path)
            }
            Self::ApplicationDefault(_) | Self::Metadata(_) | Self::Anonymous => Ok(()),
        }
    }
}

/// A token that was just made. Never shown.
pub(super) struct Fresh {
    pub token: String,
    /// From the moment when it was asked for.
    pub life: Duration,
}

/// Who is asked for tokens.
#[derive(Debug)]
pub(super) enum Source {
    Default(Defaults, GcloudCommand),
    KeyFile(PathBuf),
    Metadata(Metadata),
    Impersonated { iam: Box<Api>, email: String },
}

/// `{"accessToken":"…","expireTime":"2026-11-21T12:00:00Z"}`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Generated {
    access_token: String,
    #[serde(rename = "expireTime")]
    _expire_time: DateTime<Utc>,
}

impl Source {
    /// `None` for anonymous.
    pub fn of(credentials: Credentials) -> Option<Self> {
        match credentials {
            Credentials::ApplicationDefault(defaults) => Some(Self::Default(defaults, GcloudCommand::default())),
            Credentials::ServiceAccountFile(path) => Some(Self::KeyFile(path)),
            Credentials::Metadata(metadata) => Some(Self::Metadata(metadata)),
            Credentials::Anonymous => None,
        }
    }

    /// For people.
    pub fn shown(&self) -> String {
        match self {
            Self::Default(defaults, _) => match &defaults.named {
                Some(path) => format!("the key {} (GOOGLE_APPLICATION_CREDENTIALS)", path.display()),
                None => "application-default credentials".into(),
            },
            Self::KeyFile(path) => format!("the key {}", path.display()),
            Self::Metadata(metadata) => metadata.shown(),
            Self::Impersonated { email, .. } => format!("the service account {email}"),
        }
    }

    /// One new token.
    pub async fn fetch(&self) -> Result<Fresh, PortError> {
        match self {
            Self::Default(defaults, command) => by_default(defaults, command).await,
            Self::KeyFile(path) => key_file::token(path).await.map(|token| fresh(&token)),
            Self::Metadata(metadata) => metadata.token().await.map_err(MetadataError::port_error),
            Self::Impersonated { iam, email } => narrower(iam, email).await,
        }
    }
}

async fn by_default(defaults: &Defaults, command: &GcloudCommand) -> Result<Fresh, PortError> {
    if let Some(path) = &defaults.named {
        return key_file::token(path).await.map(|token| fresh(&token));
    }
    if let Some(path) = defaults.gcloud_file.as_ref().filter(|path| path.exists()) {
        return gcloud::file_token(path).await.map(|token| fresh(&token));
    }
    let absent = match defaults.metadata.token().await {
        Err(MetadataError::Absent(text)) => text,
        other => return other.map_err(MetadataError::port_error),
    };
    command.token().await.map(|token| fresh(&token)).map_err(|error| {
        let file = defaults.gcloud_file.as_ref().map_or_else(String::new, |path| format!(" no {};", path.display()));
        let text = format!(
            "no Google credentials: GOOGLE_APPLICATION_CREDENTIALS is not set;{file} {absent}; {}. Any one of them would \
             do, or a service account's key by --google-credentials",
            error.text
        );
        PortError::new(error.kind, text)
    })
}

/// gcp_auth tells a token's end, not how long it lasts.
fn fresh(token: &Token) -> Fresh {
    #[expect(
        clippy::disallowed_methods,
        reason = "gcp_auth tells a token's end by the wall clock; no decision sees it"
    )]
    let now = Utc::now();
    Fresh { token: token.as_str().to_owned(), life: (token.expires_at() - now).to_std().unwrap_or_default() }
}

/// Asks for a token of the account to start from, by the very steps that lead here: boxed, so that the type ends.
fn narrower<'a>(iam: &'a Api, email: &'a str) -> Pin<Box<dyn Future<Output = Result<Fresh, PortError>> + Send + 'a>> {
    Box::pin(impersonated(iam, email))
}

/// IAM's `generateAccessToken`. The life is what was asked for: the answer's end would need a clock that is right.
async fn impersonated(iam: &Api, email: &str) -> Result<Fresh, PortError> {
    let path = format!("v1/projects/-/serviceAccounts/{}:generateAccessToken", path_part(email));
    let lifetime = format!("{}s", IMPERSONATED_LIFE.as_secs());
    let answer = iam.post::<Generated>(&path, &[], &json!({"scope": [SCOPE], "lifetime": lifetime})).await;
    let answer = answer.map_err(|error| {
        let mut failed = error.of_kind(error.kind());
        if matches!(failed.kind, ErrorKind::Denied | ErrorKind::NotFound) && error.status.is_some() {
            failed.kind = ErrorKind::Denied;
            failed.text += &format!(
                "; whoever asks needs roles/iam.serviceAccountTokenCreator on {email}, and the IAM Service Account \
                 Credentials API must be enabled"
            );
        }
        failed
    })?;
    Ok(Fresh { token: answer.access_token, life: IMPERSONATED_LIFE })
}
