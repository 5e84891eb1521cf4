//! Our tokens, as Google's own client library wants them.

use std::sync::{Arc, Mutex, PoisonError};

use google_cloud_auth::credentials::{CacheableResource, Credentials, CredentialsProvider, EntityTag};
use google_cloud_auth::errors::CredentialsError;
use http::{Extensions, HeaderMap, HeaderValue, header::AUTHORIZATION};

use crate::google::Tokens;

/// The library's view of our tokens. The tag stays the same for as long as the header does.
#[derive(Debug)]
struct Bridge {
    tokens: Arc<Tokens>,
    last: Mutex<Option<(HeaderMap, EntityTag)>>,
}

/// These tokens, for Google's client library.
pub(super) fn credentials(tokens: Arc<Tokens>) -> Credentials {
    Bridge { tokens, last: Mutex::default() }.into()
}

impl CredentialsProvider for Bridge {
    async fn headers(&self, known: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        let header = self.tokens.header().await.map_err(|error| CredentialsError::from_source(true, error))?;
        let (headers, tag) = self.tagged(header);
        if known.get::<EntityTag>() == Some(&tag) {
            return Ok(CacheableResource::NotModified);
        }
        Ok(CacheableResource::New { entity_tag: tag, data: headers })
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}

impl Bridge {
    fn tagged(&self, header: Option<HeaderValue>) -> (HeaderMap, EntityTag) {
        let headers: HeaderMap = header.into_iter().map(|value| (AUTHORIZATION, value)).collect();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, tag)) if *known == headers => (headers, tag.clone()),
            _ => {
                let tag = EntityTag::new();
                *last = Some((headers.clone(), tag.clone()));
                (headers, tag)
            }
        }
    }
}
