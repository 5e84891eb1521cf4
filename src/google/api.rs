//! One of Google's REST services: JSON there, JSON back, within limits of time and size.
//!
//! Nothing is tried again here, as the controller looks again at the next tick, with one exception: a GET whose
//! connection broke is sent once more at once. The other side may close a kept connection in the very moment of its
//! reuse, and that says nothing about the service.

use std::{fmt::Write, sync::Arc, time::Duration};

use reqwest::{
    Client, Method, Response, Url,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::{
    ApiError, Tokens,
    error::{self, causes},
    exchange::{self, retry_after},
};
use crate::ports::{ErrorKind, PortError};

/// How long one request may take, its token included.
pub const TIME_LIMIT_DEFAULT: Duration = Duration::from_secs(10);

/// Most bytes of an answer: a cluster of thousands of workers fits.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A service at its address, asked by somebody.
#[derive(Clone, Debug)]
pub struct Api {
    base: Url,
    client: Client,
    tokens: Arc<Tokens>,
    time_limit: Duration,
}

/// A request as it is sent.
struct Call<'a> {
    method: Method,
    url: Url,
    body: Option<Vec<u8>>,
    /// For people.
    shown: &'a str,
}

/// A name of somebody else's as one part of a path: all but letters, digits and `-._~` as `%XX`.
pub fn path_part(text: &str) -> String {
    let mut part = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            part.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}

impl Api {
    /// The service at this address (see [`endpoint`](super::endpoint())).
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: this machine can make no requests.
    pub fn new(base: Url, tokens: Arc<Tokens>, time_limit: Duration) -> Result<Self, PortError> {
        let client = exchange::client(&base, time_limit)?;
        Ok(Self { base, client, tokens, time_limit })
    }

    /// Reads. The path is relative to the service's address, and what is in it of others' names went through
    /// [`path_part`].
    ///
    /// # Errors
    /// What the service, or the lack of it, said.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, &str)]) -> Result<T, ApiError> {
        self.call(Method::GET, path, query, None).await
    }

    /// Creates, or calls a method (`…/clusters/c:repair`).
    ///
    /// # Errors
    /// What the service, or the lack of it, said.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        self.send(Method::POST, path, query, body).await
    }

    /// Changes some fields.
    ///
    /// # Errors
    /// What the service, or the lack of it, said.
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        self.send(Method::PATCH, path, query, body).await
    }

    /// Calls a method that takes no body (`…/listManagedInstances`).
    ///
    /// # Errors
    /// What the service, or the lack of it, said.
    pub async fn post_without_body<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, ApiError> {
        self.call(Method::POST, path, query, None).await
    }

    /// Deletes; what is answered is not looked at.
    ///
    /// # Errors
    /// What the service, or the lack of it, said.
    pub async fn delete(&self, path: &str, query: &[(&str, &str)]) -> Result<(), ApiError> {
        self.bytes(Method::DELETE, path, query, None).await.map(drop)
    }

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let body = serde_json::to_vec(body);
        let body = body.map_err(|error| unsent(path, format!("what was to be sent is no JSON: {error}")))?;
        self.call(method, path, query, Some(body)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let shown = format!("{method} {}{path}", self.base);
        let answer = self.bytes(method, path, query, body).await?;
        // The parser quotes what it does not understand, whatever its length.
        let strange = |error: serde_json::Error| error::printable(&format!("its answer is not understood: {error}"));
        serde_json::from_slice(&answer).map_err(|error| ApiError::unanswered(&shown, strange(error)))
    }

    async fn bytes(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, ApiError> {
        let mut url = self.address(path)?;
        let shown = format!("{method} {url}");
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let exchange = self.exchange(Call { method, url, body, shown: &shown });
        let limit = self.time_limit;
        let too_late = |_| ApiError::unanswered(&shown, format!("no answer within {} s", limit.as_secs_f64()));
        timeout(limit, exchange).await.map_err(too_late)?
    }

    /// The address under the service's own: a token is sent there.
    fn address(&self, path: &str) -> Result<Url, ApiError> {
        let climbs = |part: &str| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
        let url = self.base.join(path).ok().filter(|url| url.as_str().starts_with(self.base.as_str()));
        let url = url.filter(|url| url.query().is_none() && url.fragment().is_none() && !path.split('/').any(climbs));
        url.ok_or_else(|| unsent(path, format!("`{path}` is no path under {}", self.base)))
    }

    async fn exchange(&self, call: Call<'_>) -> Result<Vec<u8>, ApiError> {
        let token = self.tokens.header().await.map_err(|error| ApiError::without_token(call.shown, &error))?;
        let broken = |error: reqwest::Error| ApiError::unanswered(call.shown, causes(&error.without_url()));
        let mut answer = match self.answer(&call, token.as_ref()).await {
            Err(error) if may_be_reuse(&call.method, &error) => self.answer(&call, token.as_ref()).await,
            other => other,
        }
        .map_err(broken)?;
        let status = answer.status();
        if status.is_success() {
            let body = exchange::body(&mut answer, ANSWER_BYTES_MAX).await;
            return body.map_err(|why| ApiError::unanswered(call.shown, why));
        }
        if let (401, Some(token)) = (status.as_u16(), &token) {
            self.tokens.was_refused(token);
        }
        let retry_after = retry_after(answer.headers());
        let words = without(token.as_ref(), exchange::words(&mut answer).await);
        Err(ApiError::refused(call.shown, status.as_u16(), retry_after, &words))
    }

    async fn answer(&self, call: &Call<'_>, token: Option<&HeaderValue>) -> Result<Response, reqwest::Error> {
        let mut request = self.client.request(call.method.clone(), call.url.clone());
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        request = match &call.body {
            Some(body) => request.header(CONTENT_TYPE, "application/json").body(body.clone()),
            // Google's front ends refuse a POST that does not say how long its body is.
            None if call.method == Method::POST => request.header(CONTENT_LENGTH, "0"),
            None => request,
        };
        request.send().await
    }
}

/// A request that would fail the same way again.
fn unsent(request: &str, why: String) -> ApiError {
    ApiError::unsent(request, &PortError::new(ErrorKind::Permanent, why))
}

/// Whether the connection broke before an answer came, where asking once more does no harm.
fn may_be_reuse(method: &Method, error: &reqwest::Error) -> bool {
    *method == Method::GET && error.is_request() && !error.is_timeout() && !error.is_connect()
}

/// A refusal's words without the token, should they repeat it.
fn without(token: Option<&HeaderValue>, words: Vec<u8>) -> Vec<u8> {
    let token = token.and_then(|token| token.to_str().ok());
    let Some(token) = token.map(|token| token.trim_start_matches("Bearer ")).filter(|token| !token.is_empty()) else {
        return words;
    };
    String::from_utf8_lossy(&words).replace(token, "(token)").into_bytes()
}
