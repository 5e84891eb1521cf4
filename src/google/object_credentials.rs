//! The same tokens for Google's own storage client, which has a trait for who asks.

use std::sync::{Arc, Mutex, PoisonError};

use google_cloud_auth::credentials::{CacheableResource, Credentials, CredentialsProvider, EntityTag, anonymous};
use google_cloud_gax::error::CredentialsError;
use http::{Extensions, HeaderMap, HeaderValue, header::AUTHORIZATION};

use super::Tokens;
use crate::ports::ErrorKind;

/// Tokens as that client takes them. A tag tells it whether the header is the one that it has.
#[derive(Debug)]
struct Bridge {
    tokens: Arc<Tokens>,
    last: Mutex<Option<(HeaderValue, EntityTag)>>,
}

/// These tokens for `google-cloud-storage`.
pub fn credentials(tokens: Arc<Tokens>) -> Credentials {
    if tokens.is_anonymous() {
        return anonymous::Builder::new().build();
    }
    Bridge { tokens, last: Mutex::new(None) }.into()
}

impl Bridge {
    fn tag(&self, header: &HeaderValue) -> EntityTag {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, tag)) if known == header => tag.clone(),
            _ => {
                let tag = EntityTag::new();
                *last = Some((header.clone(), tag.clone()));
                tag
            }
        }
    }
}

impl CredentialsProvider for Bridge {
    async fn headers(&self, extensions: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        let header = self.tokens.header().await.map_err(|error| {
            let may_pass = matches!(error.kind, ErrorKind::Transient | ErrorKind::Throttled { .. });
            CredentialsError::from_source(may_pass, error)
        })?;
        let mut headers = HeaderMap::new();
        let entity_tag = header.as_ref().map_or_else(EntityTag::new, |header| self.tag(header));
        if extensions.get::<EntityTag>() == Some(&entity_tag) {
            return Ok(CacheableResource::NotModified);
        }
        if let Some(header) = header {
            headers.insert(AUTHORIZATION, header);
        }
        Ok(CacheableResource::New { entity_tag, data: headers })
    }

    async fn universe_domain(&self) -> Option<String> {
        None
    }
}
