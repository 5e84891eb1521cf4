//! A file with credentials: which kind is in it, said before anything is asked for; and the tokens that a service
//! account's key is good for.

use std::{fs, path::Path, sync::Arc};

use gcp_auth::{CustomServiceAccount, Token, TokenProvider};
use serde::Deserialize;

use super::{credentials::SCOPE, endpoint, error::causes};
use crate::ports::{ErrorKind, PortError};

/// What a key must have; everything is read as text or not at all.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct KeyFile {
    r#type: String,
    client_email: String,
    private_key: String,
    token_uri: String,
}

/// The kind that a credentials file says it holds (`service_account`, `authorized_user` …).
pub(super) fn kind(path: &Path) -> Result<String, PortError> {
    parse(path).map(|(_, key)| key.r#type)
}

fn parse(path: &Path) -> Result<(String, KeyFile), PortError> {
    let shown = path.display();
    let text = fs::read_to_string(path)
        .map_err(|error| permanent(format!("cannot read the Google credentials {shown}: {error}")))?;
    // Only where it is wrong: the parser's own words could quote a secret.
    let key: KeyFile = serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        permanent(format!("the Google credentials {shown} are no JSON of the right form: line {line}, column {column}"))
    })?;
    if key.r#type.is_empty() {
        return Err(permanent(format!(
            "the Google credentials {shown} do not say their `type`: is that the right file?"
        )));
    }
    Ok((text, key))
}

/// A new token by the key in this file. Read anew each time, so that a key that was replaced counts.
pub(super) async fn token(path: &Path) -> Result<Arc<Token>, PortError> {
    let (text, key) = complete(path)?;
    let account = account(path, &text)?;
    let asked = format!("{} for {} ({})", key.token_uri, key.client_email, path.display());
    account.token(&[SCOPE]).await.map_err(|error| refused(&asked, &error))
}

/// Whether there is a service account's key, complete and of the right form, in this file.
pub(super) fn check(path: &Path) -> Result<(), PortError> {
    complete(path).and_then(|(text, _)| account(path, &text)).map(drop)
}

fn account(path: &Path, text: &str) -> Result<CustomServiceAccount, PortError> {
    CustomServiceAccount::from_json(text).map_err(|error| unusable(path, &error))
}

/// The key as text for gcp_auth, and what is told of it.
fn complete(path: &Path) -> Result<(String, KeyFile), PortError> {
    let (text, key) = parse(path)?;
    if key.r#type != "service_account" {
        return Err(not_read(path, &key.r#type));
    }
    let shown = path.display();
    let must = [("client_email", &key.client_email), ("private_key", &key.private_key), ("token_uri", &key.token_uri)];
    if let Some((name, _)) = must.iter().find(|(_, value)| value.is_empty()) {
        return Err(permanent(format!("the service account's key {shown} has no `{name}`: create it anew")));
    }
    let told = |why| permanent(format!("the service account's key {shown} has a wrong `token_uri`: {why}"));
    endpoint(&key.token_uri).map_err(told)?;
    Ok((text, key))
}

fn not_read(path: &Path, kind: &str) -> PortError {
    let instead = match kind {
        "authorized_user" => {
            "a person's credentials are read from gcloud's own place only: unset GOOGLE_APPLICATION_CREDENTIALS and run \
             `gcloud auth application-default login`"
        }
        "impersonated_service_account" => {
            "give the credentials to start from, and name the account by --impersonate-service-account"
        }
        _ => "use a service account's key file, or the machine's own service account (--google-credentials metadata)",
    };
    let shown = path.display();
    permanent(format!("the Google credentials {shown} are of the kind `{kind}`, which is not read: {instead}"))
}

fn unusable(path: &Path, error: &gcp_auth::Error) -> PortError {
    let shown = path.display();
    let what = "its private_key must be an RSA key in PEM form (PKCS#8), as Google hands it out";
    match error {
        // Of this machine, not of the key: certificates.
        gcp_auth::Error::Io(..) => permanent(format!("no HTTPS client for the key {shown}: {}", causes(error))),
        _ => permanent(format!("the service account's key {shown} cannot be used: {what}")),
    }
}

/// gcp_auth does not tell status and body in its error; its own log line does.
fn refused(asked: &str, error: &gcp_auth::Error) -> PortError {
    match error {
        gcp_auth::Error::Str(_) => {
            let check = "check that the key has not been deleted, disabled or expired, and this machine's clock; what \
                         was answered is in the log, from gcp_auth";
            PortError::new(ErrorKind::Denied, format!("no token from {asked}: it refused five times: {check}"))
        }
        // It could quote the answer.
        gcp_auth::Error::Json(..) => PortError::transient(format!("no token from {asked}: its answer holds none")),
        _ => PortError::transient(format!("no token from {asked}: {}", causes(error))),
    }
}

fn permanent(text: String) -> PortError {
    PortError::new(ErrorKind::Permanent, text)
}
