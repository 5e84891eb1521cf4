//! The metadata server of Google Compute Engine: what a machine may ask about itself, and tokens of its service account.

use std::time::Duration;

use reqwest::{Client, Response, Url};
use serde::Deserialize;
use tokio::time::timeout;

use super::{
    credentials::Fresh,
    error::{causes, printable},
    exchange,
};
use crate::ports::{ErrorKind, PortError};

/// Where it answers on every machine of Compute Engine.
pub const METADATA_HOST: &str = "metadata.google.internal";

/// How long one question may take: it is answered by the machine's own host.
pub const METADATA_TIME_LIMIT: Duration = Duration::from_secs(3);

/// The header that asks for, and proves, the real one.
const FLAVOR: &str = "Metadata-Flavor";

/// Most bytes of an answer: the service allows a quarter of this for one attribute.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A client of the metadata server.
#[derive(Clone, Debug)]
pub struct Metadata {
    base: Url,
    client: Client,
    limit: Duration,
}

/// Why the metadata server told nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// There is none: this machine is not one of Compute Engine's.
    #[error("{0}")]
    Absent(String),
    /// There may be one; it did not answer, or not to the end.
    #[error("{0}")]
    Silent(String),
    /// It answered, and not with what was asked for.
    #[error("{}", .0.text)]
    Refused(PortError),
}

impl MetadataError {
    /// The same for the controller.
    pub fn port_error(self) -> PortError {
        match self {
            Self::Absent(text) => PortError::new(ErrorKind::Permanent, text),
            Self::Silent(text) => PortError::transient(text),
            Self::Refused(error) => error,
        }
    }
}

/// `{"access_token":"…","expires_in":3599,"token_type":"Bearer"}`
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: u64,
}

impl Metadata {
    /// The one at this host (`host` or `host:port`; see [`METADATA_HOST`]), with a limit for each question.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: that is no host.
    pub fn new(host: &str, limit: Duration) -> Result<Self, PortError> {
        let wrong = || {
            let text = format!("`{host}` is no metadata host: `{METADATA_HOST}` or `host:port`, without http://");
            PortError::new(ErrorKind::Permanent, text)
        };
        let url: Url = format!("http://{host}/computeMetadata/v1/").parse().map_err(|_| wrong())?;
        if host.is_empty() || host.contains(['/', '@', '?', '#']) || !url.has_host() {
            return Err(wrong());
        }
        Ok(Self { client: exchange::client(&url, limit)?, base: url, limit })
    }

    /// Its address, for people.
    pub fn shown(&self) -> String {
        format!("the metadata server http://{}", self.base.authority())
    }

    /// One value, without space around it; `None`: there is no such value.
    ///
    /// # Errors
    /// See [`MetadataError`].
    pub async fn get(&self, path: &str) -> Result<Option<String>, MetadataError> {
        let too_late = |_| self.silent(path, &format!("no answer within {} s", self.limit.as_secs_f64()));
        let bytes = timeout(self.limit, self.exchange(path)).await.map_err(too_late)??;
        let Some(bytes) = bytes else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|_| self.silent(path, "its answer is no text"))?;
        Ok(Some(text.trim().to_owned()))
    }

    async fn exchange(&self, path: &str) -> Result<Option<Vec<u8>>, MetadataError> {
        let url = self.base.join(path).map_err(|error| self.silent(path, &error.to_string()))?;
        let answer = self.client.get(url).header(FLAVOR, "Google").send().await;
        let mut answer = answer.map_err(|error| self.unreached(path, error))?;
        if answer.headers().get(FLAVOR).is_none_or(|flavor| flavor != "Google") {
            let what = "what answers there is no metadata server (no `Metadata-Flavor: Google`)";
            return Err(MetadataError::Absent(format!("{}: {what}", self.shown())));
        }
        match answer.status().as_u16() {
            404 => Ok(None),
            200 => exchange::body(&mut answer, ANSWER_BYTES_MAX).await.map(Some).map_err(|why| self.silent(path, &why)),
            _ => Err(self.refused(path, &mut answer).await),
        }
    }

    /// No machine of that name, or nobody who listens there: no Compute Engine. All else may pass.
    fn unreached(&self, path: &str, error: reqwest::Error) -> MetadataError {
        let is_absent = error.is_connect() && !error.is_timeout() && !self.must_be_there();
        let why = causes(&error.without_url());
        if is_absent {
            return MetadataError::Absent(format!(
                "this machine is not on Google Compute Engine: {} is not there ({why})",
                self.shown()
            ));
        }
        self.silent(path, &why)
    }

    /// Whether this machine says itself that it is Google's: then its network is only not up yet.
    fn must_be_there(&self) -> bool {
        let product = || std::fs::read_to_string("/sys/class/dmi/id/product_name");
        self.base.host_str() == Some(METADATA_HOST)
            && product().is_ok_and(|name| name.contains("Google Compute Engine"))
    }

    async fn refused(&self, path: &str, answer: &mut Response) -> MetadataError {
        let status = answer.status();
        let kind = match status.as_u16() {
            401 | 403 => ErrorKind::Denied,
            429 => ErrorKind::Throttled { retry_after: exchange::retry_after(answer.headers()) },
            400..=499 => ErrorKind::Permanent,
            _ => ErrorKind::Transient,
        };
        let words = exchange::words(answer).await;
        let words = printable(&String::from_utf8_lossy(&words));
        MetadataError::Refused(PortError::new(kind, format!("{}: {path}: {status} {words}", self.shown())))
    }

    pub(super) fn silent(&self, path: &str, why: &str) -> MetadataError {
        MetadataError::Silent(format!("{}: {path}: {why}", self.shown()))
    }

    /// A token of the machine's own service account.
    pub(super) async fn token(&self) -> Result<Fresh, MetadataError> {
        const PATH: &str = "instance/service-accounts/default/token";
        let Some(answer) = self.get(PATH).await? else {
            let text = format!("{}: this machine has no service account: give it one", self.shown());
            return Err(MetadataError::Refused(PortError::new(ErrorKind::Denied, text)));
        };
        // The parser's own words could quote the token.
        let answer: TokenAnswer =
            serde_json::from_str(&answer).map_err(|_| self.silent(PATH, "its answer is no token"))?;
        Ok(Fresh { token: answer.access_token, life: Duration::from_secs(answer.expires_in) })
    }
}
