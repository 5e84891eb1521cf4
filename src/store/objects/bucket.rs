//! Objects in Cloud Storage: bytes through Google's client library, which resumes what was broken off; lists and
//! deletions through its JSON API, since the library speaks gRPC alone for those.

use std::{convert::Infallible, error::Error as _, fmt, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use google_cloud_gax::{exponential_backoff::ExponentialBackoffBuilder, retry_policy::RetryPolicyExt};
use google_cloud_storage::{
    client::Storage,
    retry_policy::RetryableErrors,
    streaming_source::{Seek, SizeHint, StreamingSource},
};
use reqwest::Url;
use serde::Deserialize;
use tokio::time::timeout;

use super::{Generation, Object, ObjectInfo, Objects, Precondition, Sent, Upload, crc32c, named, too_long};
use crate::{
    google::{Api, ApiError, Tokens, credentials, path_part},
    ports::{ErrorKind, PortError},
};

/// Most attempts of one call: the library's own answer to 408, 429, 5xx and lost connections.
const ATTEMPTS_MAX: u32 = 4;

/// The slowest line that an upload is given time for, in bytes a second: one megabit.
const SLOWEST_LINE: u64 = 125_000;

/// Bytes that are handed to the network at a time; progress is told as often.
const CHUNK_BYTES: usize = 256 << 10;

/// Objects on a page of a listing, and pages.
const PAGE: &str = "1000";
const PAGES_MAX: usize = 100;

/// The objects of a bucket.
#[derive(Clone)]
pub struct BucketObjects {
    bucket: String,
    bytes: Storage,
    api: Api,
    time_limit: Duration,
}

impl fmt::Debug for BucketObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BucketObjects(gs://{})", self.bucket)
    }
}

impl BucketObjects {
    /// The objects of this bucket, of Cloud Storage at this address. A call may take `time_limit`, with its retries;
    /// an upload takes longer by the time that its bytes need on a slow line. Nothing is asked yet.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: this machine can make no requests.
    pub async fn new(
        bucket: impl Into<String>,
        endpoint: &Url,
        tokens: Arc<Tokens>,
        time_limit: Duration,
    ) -> Result<Self, PortError> {
        let backoff = ExponentialBackoffBuilder::new()
            .with_initial_delay(Duration::from_millis(250))
            .with_maximum_delay(Duration::from_secs(2))
            .clamp();
        let bytes = Storage::builder()
            .with_endpoint(endpoint.as_str().trim_end_matches('/'))
            .with_credentials(credentials(Arc::clone(&tokens)))
            .with_retry_policy(RetryableErrors.with_time_limit(time_limit).with_attempt_limit(ATTEMPTS_MAX))
            .with_backoff_policy(backoff)
            .build()
            .await
            .map_err(|error| PortError::new(ErrorKind::Permanent, format!("no Cloud Storage client: {error}")))?;
        Ok(Self { bucket: bucket.into(), bytes, api: Api::new(endpoint.clone(), tokens, time_limit)?, time_limit })
    }

    /// As the library wants it.
    fn parent(&self) -> String {
        format!("projects/_/buckets/{}", self.bucket)
    }

    /// A path of the JSON API.
    fn path(&self, name: Option<&str>) -> String {
        let name = name.map(|name| format!("/{}", path_part(name))).unwrap_or_default();
        format!("storage/v1/b/{}/o{name}", path_part(&self.bucket))
    }

    /// One call of the library, which does not bound an attempt that hangs: so it is done here.
    async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        call: impl Future<Output = Result<T, google_cloud_storage::Error>>,
    ) -> Result<T, ApiError> {
        let too_late = |_| ApiError::unanswered(what, format!("no answer within {} s", limit.as_secs_f64()));
        timeout(limit, call).await.map_err(too_late)?.map_err(|error| refusal(what, &error))
    }

    async fn read(&self, name: &str, limit: u64) -> Result<Option<Object>, google_cloud_storage::Error> {
        let mut answer = self.bytes.read_object(self.parent(), name).send().await?;
        let generation = Generation(answer.object().generation);
        let mut bytes = BytesMut::new();
        while let Some(chunk) = answer.next().await {
            bytes.extend_from_slice(&chunk?);
            if bytes.len() as u64 > limit {
                return Ok(None);
            }
        }
        Ok(Some(Object { bytes: bytes.freeze(), generation }))
    }

    /// What a refusal means for people: with the right that is missing.
    fn told(&self, error: &ApiError) -> PortError {
        let kind = error.kind();
        let hint = match (kind, error.status) {
            (ErrorKind::Denied, Some(403)) => {
                format!(" (roles/storage.objectUser on gs://{} lets objects be read, listed and written)", self.bucket)
            }
            (ErrorKind::NotFound, _) => format!(" (is there a bucket gs://{}?)", self.bucket),
            _ => String::new(),
        };
        PortError::new(kind, format!("{error}{hint}"))
    }
}

impl Objects for BucketObjects {
    fn address(&self, name: &str) -> String {
        format!("gs://{}/{name}", self.bucket)
    }

    async fn get(&self, name: &str, limit: u64) -> Result<Option<Object>, PortError> {
        named(name)?;
        let what = format!("reading {}", self.address(name));
        match self.within(self.time_limit, &what, self.read(name, limit)).await {
            Ok(Some(object)) => Ok(Some(object)),
            Ok(None) => Err(too_long(&self.address(name), limit)),
            Err(error) if error.status == Some(404) && !is_about_the_bucket(&error) => Ok(None),
            Err(error) => Err(self.told(&error)),
        }
    }

    async fn put(&self, name: &str, upload: Upload, when: Precondition) -> Result<Generation, PortError> {
        named(name)?;
        let what = format!("writing {}", self.address(name));
        let size = upload.bytes.len() as u64;
        let limit = self.time_limit + Duration::from_secs(size / SLOWEST_LINE);
        let source = Source { bytes: upload.bytes, at: 0, sent: upload.sent };
        let write = self
            .bytes
            .write_object(self.parent(), name, source)
            .set_content_type(upload.content_type)
            .with_retry_policy(RetryableErrors.with_time_limit(limit).with_attempt_limit(ATTEMPTS_MAX));
        let write = match when {
            Precondition::None => write,
            Precondition::Absent => write.set_if_generation_match(0),
            Precondition::Generation(Generation(generation)) => write.set_if_generation_match(generation),
        };
        let written = self.within(limit, &what, write.send_unbuffered()).await.map_err(|error| self.told(&error))?;
        match written.generation {
            0 => Err(PortError::transient(format!("{what}: the answer names no generation"))),
            generation => Ok(Generation(generation)),
        }
    }

    async fn list(&self, prefix: &str) -> Result<Vec<ObjectInfo>, PortError> {
        let mut found = Vec::new();
        let mut page = String::new();
        for _ in 0..PAGES_MAX {
            let mut query = vec![("prefix", prefix), ("maxResults", PAGE), ("fields", LISTED_FIELDS)];
            if !page.is_empty() {
                query.push(("pageToken", &page));
            }
            let listing: Listing = self.api.get(&self.path(None), &query).await.map_err(|error| self.told(&error))?;
            for item in listing.items {
                found.push(
                    item.info()
                        .map_err(|what| PortError::transient(format!("listing {}: {what}", self.address(prefix))))?,
                );
            }
            page = listing.next_page_token;
            if page.is_empty() {
                return Ok(found);
            }
        }
        let text = format!("{} holds more than {PAGES_MAX} pages of {PAGE} objects", self.address(prefix));
        Err(PortError::new(ErrorKind::Permanent, text))
    }

    async fn delete(&self, name: &str, when: Precondition) -> Result<(), PortError> {
        named(name)?;
        let generation = match when {
            Precondition::None => None,
            // Nothing is to be there: then there is nothing to delete.
            Precondition::Absent => Some(0),
            Precondition::Generation(Generation(generation)) => Some(generation),
        }
        .map(|generation| generation.to_string());
        let query: Vec<_> = generation.iter().map(|text| ("ifGenerationMatch", text.as_str())).collect();
        match self.api.delete(&self.path(Some(name)), &query).await {
            Ok(()) => Ok(()),
            Err(error) if error.status == Some(404) && !is_about_the_bucket(&error) => match when {
                Precondition::Generation(_) => Err(error.of_kind(ErrorKind::Conflict)),
                Precondition::None | Precondition::Absent => Ok(()),
            },
            Err(error) => Err(self.told(&error)),
        }
    }
}

/// What is wanted of a listing. Its kind is there in every answer that is one.
const LISTED_FIELDS: &str = "kind,nextPageToken,items(name,size,crc32c,generation)";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    /// Demanded: an answer that is something else is not an empty list.
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(default)]
    next_page_token: String,
    /// Left out where there is none.
    #[serde(default)]
    items: Vec<Item>,
}

/// Numbers of 64 bits are strings there.
#[derive(Deserialize)]
struct Item {
    name: String,
    size: String,
    generation: String,
    crc32c: Option<String>,
}

impl Item {
    fn info(self) -> Result<ObjectInfo, String> {
        let odd = || format!("the size or the generation of {} is no number", self.name);
        let size = self.size.parse().map_err(|_| odd())?;
        let generation = Generation(self.generation.parse().map_err(|_| odd())?);
        Ok(ObjectInfo { crc32c: self.crc32c.as_deref().and_then(crc32c::parse), name: self.name, size, generation })
    }
}

/// The bytes of an upload, in pieces.
struct Source {
    bytes: Bytes,
    at: usize,
    sent: Option<Sent>,
}

impl StreamingSource for Source {
    type Error = Infallible;

    async fn next(&mut self) -> Option<Result<Bytes, Infallible>> {
        let end = self.bytes.len().min(self.at + CHUNK_BYTES);
        let chunk = self.bytes.slice(self.at..end);
        self.at = end;
        if let Some(sent) = &self.sent {
            sent(end as u64);
        }
        (!chunk.is_empty()).then_some(Ok(chunk))
    }

    async fn size_hint(&self) -> Result<SizeHint, Infallible> {
        Ok(SizeHint::with_exact(self.bytes.len() as u64))
    }
}

impl Seek for Source {
    type Error = Infallible;

    async fn seek(&mut self, offset: u64) -> Result<(), Infallible> {
        self.at = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        Ok(())
    }
}

/// The library's error as ours. An answer may lie under the error that says that it was the last one tried for.
fn refusal(what: &str, error: &google_cloud_storage::Error) -> ApiError {
    let mut inner = error;
    loop {
        if let Some(status) = inner.http_status_code() {
            return ApiError::refused(what, status, None, inner.http_payload().map_or(&[], |body| &**body));
        }
        match inner.source().and_then(|under| under.downcast_ref::<google_cloud_storage::Error>()) {
            Some(under) => inner = under,
            None => return ApiError::unanswered(what, causes(error)),
        }
    }
}

/// The error with all that lies under it.
fn causes(error: &google_cloud_storage::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(under) = cause {
        let told = under.to_string();
        // Some texts repeat what lies under them.
        if !text.contains(&told) {
            text = format!("{text}: {told}");
        }
        cause = under.source();
    }
    text
}

/// "No such object: bucket/name" is about the object; "The specified bucket does not exist." is not.
fn is_about_the_bucket(error: &ApiError) -> bool {
    let text = error.message.to_lowercase();
    text.contains("bucket") && !text.contains("no such object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_bucket_is_not_a_missing_object() {
        for (message, is) in [
            ("No such object: my-bucket/state.json", false),
            ("Not Found", false),
            ("The specified bucket does not exist.", true),
        ] {
            assert_eq!(is_about_the_bucket(&ApiError::refused("x", 404, None, message.as_bytes())), is, "{message}");
        }
    }
}
