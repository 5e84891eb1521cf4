//! One of Google's REST services: JSON there, JSON back, within limits of time and size.

use std::{sync::Arc, time::Duration};

use reqwest::{
    Client, Method, Url,
    header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, RETRY_AFTER},
    redirect,
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

use super::{ApiError, Tokens};
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

impl Api {
    /// The service at this address (see [`endpoint`](super::endpoint())).
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: this machine can make no requests.
    pub fn new(base: Url, tokens: Arc<Tokens>, time_limit: Duration) -> Result<Self, PortError> {
        let agent = concat!("yarn-autoscaler/", env!("CARGO_PKG_VERSION"));
        // A redirect would carry the token elsewhere.
        let client = Client::builder().user_agent(agent).redirect(redirect::Policy::none()).connect_timeout(time_limit);
        let client = client.build().map_err(|error| PortError::new(ErrorKind::Permanent, format!("{error}")))?;
        Ok(Self { base, client, tokens, time_limit })
    }

    /// Reads.
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

    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: &impl Serialize,
    ) -> Result<T, ApiError> {
        let body = serde_json::to_vec(body).map_err(|error| ApiError::unanswered(path, error))?;
        self.call(method, path, query, Some(body)).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Result<T, ApiError> {
        let mut url = self.base.join(path).map_err(|error| ApiError::unanswered(path, error))?;
        let request = format!("{method} {url}");
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let exchange = self.exchange(method, url, body, &request);
        let limit = self.time_limit;
        let too_late = |_| ApiError::unanswered(&request, format!("no answer within {} s", limit.as_secs_f64()));
        let answer = timeout(limit, exchange).await.map_err(too_late)??;
        serde_json::from_slice(&answer)
            .map_err(|error| ApiError::unanswered(&request, format!("its answer is not understood: {error}")))
    }

    async fn exchange(
        &self,
        method: Method,
        url: Url,
        body: Option<Vec<u8>>,
        request: &str,
    ) -> Result<Vec<u8>, ApiError> {
        let failed = |error: reqwest::Error| ApiError::unanswered(request, causes(&error.without_url()));
        let token = self.tokens.header().await.map_err(|error| ApiError::unanswered(request, error))?;
        let mut call = self.client.request(method.clone(), url);
        if let Some(token) = token {
            call = call.header(AUTHORIZATION, token);
        }
        call = match body {
            Some(body) => call.header(CONTENT_TYPE, "application/json").body(body),
            // Google's front ends refuse a POST that does not say how long its body is.
            None if method == Method::POST => call.header(CONTENT_LENGTH, "0"),
            None => call,
        };
        let mut answer = call.send().await.map_err(failed)?;
        let (status, retry_after) = (answer.status(), retry_after(answer.headers()));
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(ApiError::unanswered(
                    request,
                    format!("its answer is longer than {ANSWER_BYTES_MAX} bytes"),
                ));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(bytes);
        }
        Err(ApiError::refused(request, status.as_u16(), retry_after, &bytes))
    }
}

/// Seconds; a date is not read, as Google's services send none.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The error with all that lies under it: reqwest's own text stops at "error sending request".
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(under) = cause {
        text = format!("{text}: {under}");
        cause = under.source();
    }
    text
}
