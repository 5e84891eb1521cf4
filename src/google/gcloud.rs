//! Tokens of a person: from gcloud's file of application-default credentials, or from the `gcloud` command.

use std::{path::Path, sync::Arc};

use gcp_auth::{ConfigDefaultCredentials, GCloudAuthorizedUser, Token, TokenProvider};
use tokio::{
    runtime::Handle,
    sync::Mutex,
    task::{JoinHandle, spawn_blocking},
};

use super::{credentials::SCOPE, error::causes, key_file};
use crate::ports::{ErrorKind, PortError};

/// A new token by gcloud's file, which stands at this place (gcp_auth knows no other).
pub(super) async fn file_token(path: &Path) -> Result<Arc<Token>, PortError> {
    let (shown, kind) = (path.display(), key_file::kind(path)?);
    if kind != "authorized_user" {
        let text = format!(
            "gcloud's application-default credentials {shown} are of the kind `{kind}`, which is not read from there: \
             name a service account's key by --google-credentials"
        );
        return Err(PortError::new(ErrorKind::Permanent, text));
    }
    let told = |error: gcp_auth::Error| {
        let (kind, why) = match &error {
            gcp_auth::Error::Str(_) => (ErrorKind::Denied, "it refused".to_owned()),
            gcp_auth::Error::Json(..) => (ErrorKind::Transient, "its answer, or the file, is not complete".to_owned()),
            _ => (ErrorKind::Transient, causes(&error)),
        };
        let text = format!(
            "no token from accounts.google.com for {shown}: {why}; `gcloud auth application-default login` renews it"
        );
        PortError::new(kind, text)
    };
    ConfigDefaultCredentials::new().await.map_err(told)?.token(&[SCOPE]).await.map_err(told)
}

/// A run of the command.
type Run = JoinHandle<Result<Arc<Token>, gcp_auth::Error>>;

/// The `gcloud` command. It blocks its thread and cannot be called off, so it runs on a thread of its own, one at a
/// time: a run that was not waited for to its end is the next caller's.
#[derive(Debug, Default)]
pub(super) struct GcloudCommand(Mutex<Option<Run>>);

impl GcloudCommand {
    /// A new token of whoever is logged in.
    pub async fn token(&self) -> Result<Arc<Token>, PortError> {
        let mut slot = self.0.lock().await;
        let run = slot.get_or_insert_with(|| {
            let runtime = Handle::current();
            spawn_blocking(move || runtime.block_on(async { GCloudAuthorizedUser::new().await?.token(&[SCOPE]).await }))
        });
        let ended = run.await;
        *slot = None;
        let told = |why: String| {
            let text = format!("no token from `gcloud auth print-access-token`: {why}");
            PortError::new(ErrorKind::Denied, text)
        };
        ended.map_err(|error| told(error.to_string()))?.map_err(|error| told(causes(&error)))
    }
}
