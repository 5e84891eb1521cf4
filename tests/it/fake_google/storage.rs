//! Cloud Storage's JSON API: buckets, objects, their generations and preconditions.

use std::collections::BTreeMap;

use axum::body::Bytes;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use chrono::Utc;
use serde_json::{Value, json};

use super::{
    bytes_sums::{crc32c, md5},
    cloud::{Cloud, unrouted},
    dataproc::paged,
    http::{Answer, Request, encoded, plain_refusal},
    misbehave::precondition_failed,
    storage_upload::Upload,
};

pub use super::storage_upload::upload;

/// A bucket.
#[derive(Clone, Debug, Default)]
pub struct Bucket {
    pub objects: BTreeMap<String, Object>,
    /// By upload id.
    pub uploads: BTreeMap<String, Upload>,
    /// What was answered to a write that was done, by its idempotency token.
    pub answered: BTreeMap<String, Answer>,
    latest_generation: i64,
}

/// An object.
#[derive(Clone, Debug)]
pub struct Object {
    pub data: Bytes,
    pub generation: i64,
    pub metageneration: i64,
    pub content_type: String,
    /// The writer's own.
    pub metadata: Value,
    pub created: String,
    pub updated: String,
}

impl Bucket {
    /// Writes an object, whatever was there.
    pub fn put(&mut self, name: &str, data: Bytes, content_type: &str, metadata: Value, now: String) -> &Object {
        // Generations are microseconds, as the service's are, and never the same twice.
        self.latest_generation = Utc::now().timestamp_micros().max(self.latest_generation + 1);
        let object = Object {
            data,
            generation: self.latest_generation,
            metageneration: 1,
            content_type: content_type.into(),
            metadata,
            created: now.clone(),
            updated: now,
        };
        self.objects.insert(name.into(), object);
        &self.objects[name]
    }
}

fn no_object(bucket: &str, name: &str) -> Answer {
    plain_refusal(404, "notFound", &format!("No such object: {bucket}/{name}"))
}

pub fn bucket_mut<'a>(cloud: &'a mut Cloud, bucket: &str) -> Result<&'a mut Bucket, Answer> {
    let missing = || plain_refusal(404, "notFound", "The specified bucket does not exist.");
    cloud.buckets.get_mut(bucket).ok_or_else(missing)
}

/// What is under `storage/v1/`.
pub fn answer(cloud: &mut Cloud, request: &Request, rest: &[&str]) -> Result<Answer, Answer> {
    match (request.method.as_str(), rest) {
        ("GET", ["b", bucket]) => {
            bucket_mut(cloud, bucket)?;
            Ok(Answer::json(&bucket_json(cloud, bucket)))
        }
        ("POST", ["b"]) => {
            let name = request.json()?["name"].as_str().unwrap_or_default().to_owned();
            if cloud.buckets.contains_key(&name) {
                return Err(plain_refusal(409, "conflict", "Your previous request to create the bucket succeeded."));
            }
            cloud.buckets.insert(name.clone(), Bucket::default());
            Ok(Answer::json(&bucket_json(cloud, &name)))
        }
        ("GET", ["b", bucket, "o"]) => list(cloud, request, bucket),
        (method, ["b", bucket, "o", name @ ..]) => {
            let name = name.join("/");
            match method {
                "GET" => read(cloud, request, bucket, &name),
                "DELETE" => once(cloud, request, bucket, |cloud| delete(cloud, request, bucket, &name)),
                "PATCH" => once(cloud, request, bucket, |cloud| patch(cloud, request, bucket, &name)),
                _ => Err(unrouted(request)),
            }
        }
        _ => Err(unrouted(request)),
    }
}

/// A write with a token that was answered before gets that answer, and is not done again.
pub fn once(
    cloud: &mut Cloud,
    request: &Request,
    bucket: &str,
    write: impl FnOnce(&mut Cloud) -> Result<Answer, Answer>,
) -> Result<Answer, Answer> {
    let token = request.header("x-goog-gcs-idempotency-token");
    let key = token.map(|token| format!("{} {}?{} {token}", request.method, request.path, request.raw_query));
    let answered = &bucket_mut(cloud, bucket)?.answered;
    if let Some(answer) = key.as_ref().and_then(|key| answered.get(key)) {
        return Ok(answer.clone());
    }
    let answer = write(cloud)?;
    if let Some(key) = key {
        bucket_mut(cloud, bucket)?.answered.insert(key, answer.clone());
    }
    Ok(answer)
}

fn bucket_json(cloud: &Cloud, name: &str) -> Value {
    json!({
        "kind": "storage#bucket",
        "id": name,
        "name": name,
        "selfLink": format!("{}/storage/v1/b/{name}", cloud.url),
        "projectNumber": "123456789",
        "metageneration": "1",
        "location": "US",
        "storageClass": "STANDARD",
    })
}

pub fn object_json(url: &str, bucket: &str, name: &str, object: &Object) -> Value {
    let link = format!("{url}/storage/v1/b/{bucket}/o/{}", encoded(name));
    let mut body = json!({
        "kind": "storage#object",
        "id": format!("{bucket}/{name}/{}", object.generation),
        "selfLink": link,
        "mediaLink": link.replacen("/storage/", "/download/storage/", 1) + &format!("?generation={}&alt=media", object.generation),
        "name": name,
        "bucket": bucket,
        "generation": object.generation.to_string(),
        "metageneration": object.metageneration.to_string(),
        "contentType": object.content_type,
        "storageClass": "STANDARD",
        "size": object.data.len().to_string(),
        "md5Hash": BASE64.encode(md5(&object.data)),
        "crc32c": BASE64.encode(crc32c(&object.data).to_be_bytes()),
        "etag": etag(object),
        "timeCreated": object.created,
        "updated": object.updated,
    });
    if !object.metadata.is_null() {
        body["metadata"] = object.metadata.clone();
    }
    body
}

fn etag(object: &Object) -> String {
    BASE64.encode(format!("{}/{}", object.generation, object.metageneration))
}

/// What is asked of an object before anything is done to it.
#[derive(Clone, Debug, Default)]
pub struct Preconditions {
    generation: (Option<i64>, Option<i64>),
    metageneration: (Option<i64>, Option<i64>),
}

impl Preconditions {
    pub fn of(request: &Request) -> Result<Self, Answer> {
        let number = |name: &str| match request.query(name).map(str::parse) {
            None => Ok(None),
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(plain_refusal(400, "invalid", &format!("Invalid value for {name}."))),
        };
        Ok(Self {
            generation: (number("ifGenerationMatch")?, number("ifGenerationNotMatch")?),
            metageneration: (number("ifMetagenerationMatch")?, number("ifMetagenerationNotMatch")?),
        })
    }

    /// An object that is not there has the generation 0.
    pub fn check(&self, object: Option<&Object>) -> Result<(), Answer> {
        let is = [
            (self.generation, object.map_or(0, |object| object.generation)),
            (self.metageneration, object.map_or(0, |object| object.metageneration)),
        ];
        let fails = is.iter().any(|((wanted, unwanted), is)| {
            wanted.is_some_and(|wanted| wanted != *is) || unwanted.is_some_and(|unwanted| unwanted == *is)
        });
        if fails { Err(precondition_failed()) } else { Ok(()) }
    }

    /// Reading what is known already: 304 instead of 412.
    fn check_read(&self, object: &Object) -> Result<(), Answer> {
        let known = self.generation.1 == Some(object.generation);
        if known { Err(Answer::empty(304)) } else { self.check(Some(object)) }
    }
}

fn read(cloud: &mut Cloud, request: &Request, bucket: &str, name: &str) -> Result<Answer, Answer> {
    let url = cloud.url.clone();
    let objects = &bucket_mut(cloud, bucket)?.objects;
    let wanted: Option<i64> = request.query("generation").and_then(|text| text.parse().ok());
    let object = objects.get(name).filter(|object| wanted.is_none_or(|wanted| wanted == object.generation));
    let object = object.ok_or_else(|| no_object(bucket, name))?;
    Preconditions::of(request)?.check_read(object)?;
    if request.query("alt") != Some("media") {
        return Ok(Answer::json(&object_json(&url, bucket, name, object)));
    }
    media(request, object)
}

/// The bytes, or the part of them that is asked for.
fn media(request: &Request, object: &Object) -> Result<Answer, Answer> {
    let size = object.data.len();
    let part = request.header("range").and_then(|range| asked_part(range, size));
    let hash = format!(
        "crc32c={},md5={}",
        BASE64.encode(crc32c(&object.data).to_be_bytes()),
        BASE64.encode(md5(&object.data))
    );
    let (first, end) = part.unwrap_or((0, size));
    if first > 0 && first >= size {
        let refusal = plain_refusal(416, "requestedRangeNotSatisfiable", "The requested range cannot be satisfied.");
        return Err(refusal.with("content-range", format!("bytes */{size}")));
    }
    let answer = Answer {
        status: if part.is_some() && size > 0 { 206 } else { 200 },
        headers: vec![("content-type", object.content_type.clone())],
        body: object.data[first..end].to_vec(),
    };
    let answer = match answer.status {
        206 => answer.with("content-range", format!("bytes {first}-{}/{size}", end - 1)),
        _ => answer,
    };
    Ok(answer
        .with("x-goog-generation", object.generation)
        .with("x-goog-metageneration", object.metageneration)
        .with("x-goog-stored-content-length", size)
        .with("x-goog-stored-content-encoding", "identity")
        .with("x-goog-storage-class", "STANDARD")
        .with("x-goog-hash", hash)
        .with("etag", etag(object)))
}

/// First byte and end of `bytes=0-99`, `bytes=100-`, `bytes=-5`.
fn asked_part(range: &str, size: usize) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => Some((first, size.min(last + 1))),
        (Ok(first), Err(_)) => Some((first, size)),
        (Err(_), Ok(last)) => Some((size.saturating_sub(last), size)),
        _ => None,
    }
}

fn delete(cloud: &mut Cloud, request: &Request, bucket: &str, name: &str) -> Result<Answer, Answer> {
    let objects = &mut bucket_mut(cloud, bucket)?.objects;
    let object = objects.get(name).ok_or_else(|| no_object(bucket, name))?;
    Preconditions::of(request)?.check(Some(object))?;
    objects.remove(name);
    Ok(Answer::empty(204))
}

/// Content type and the writer's own metadata.
fn patch(cloud: &mut Cloud, request: &Request, bucket: &str, name: &str) -> Result<Answer, Answer> {
    let (url, now, body) = (cloud.url.clone(), cloud.timestamp(), request.json()?);
    let object = bucket_mut(cloud, bucket)?.objects.get_mut(name).ok_or_else(|| no_object(bucket, name))?;
    Preconditions::of(request)?.check(Some(object))?;
    if let Some(kind) = body["contentType"].as_str() {
        object.content_type = kind.into();
    }
    if body.get("metadata").is_some() {
        object.metadata = body["metadata"].clone();
    }
    object.metageneration += 1;
    object.updated = now;
    Ok(Answer::json(&object_json(&url, bucket, name, object)))
}

fn list(cloud: &mut Cloud, request: &Request, bucket: &str) -> Result<Answer, Answer> {
    let url = cloud.url.clone();
    let objects = &bucket_mut(cloud, bucket)?.objects;
    let prefix = request.query("prefix").unwrap_or_default();
    let delimiter = request.query("delimiter").filter(|delimiter| !delimiter.is_empty());
    let (from, to) = (request.query("startOffset").unwrap_or_default(), request.query("endOffset"));
    // An object, or the folder that hides it.
    let mut entries: Vec<(String, bool)> = Vec::new();
    for name in objects.keys().filter(|name| name.starts_with(prefix) && name.as_str() >= from) {
        if to.is_some_and(|to| !to.is_empty() && name.as_str() >= to) {
            continue;
        }
        let cut = delimiter.and_then(|d| name[prefix.len()..].find(d).map(|at| prefix.len() + at + d.len()));
        let entry = cut.map_or_else(|| (name.clone(), false), |end| (name[..end].to_owned(), true));
        if entries.last() != Some(&entry) {
            entries.push(entry);
        }
    }
    let (page, next) = paged(&entries, request.query("maxResults"), request.query("pageToken"), 1000)?;
    let items: Vec<_> = page.iter().filter(|(_, is_folder)| !is_folder).collect();
    let items = items.iter().map(|(name, _)| object_json(&url, bucket, name, &objects[name])).collect::<Vec<_>>();
    let folders = page.iter().filter(|(_, is_folder)| *is_folder).map(|(name, _)| json!(name)).collect::<Vec<_>>();
    let mut body = json!({"kind": "storage#objects"});
    for (field, entries) in [("items", items), ("prefixes", folders)] {
        if !entries.is_empty() {
            body[field] = Value::Array(entries);
        }
    }
    if !next.is_empty() {
        body["nextPageToken"] = json!(next);
    }
    Ok(Answer::json(&body))
}
