//! The three ways to write an object: its bytes alone, bytes with metadata in one request, and in parts that can be
//! resumed.

use axum::body::Bytes;
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use super::{
    bytes_sums::{crc32c, md5},
    cloud::{Cloud, unrouted},
    http::{Answer, Request, encoded, plain_refusal},
    storage::{Preconditions, bucket_mut, object_json, once},
};

/// A part that is not the last one has a multiple of this many bytes.
const PART: usize = 256 << 10;

/// A resumable upload.
#[derive(Clone, Debug)]
pub struct Upload {
    name: String,
    preconditions: Preconditions,
    metadata: Value,
    content_type: String,
    data: Vec<u8>,
    /// What was answered when it was complete.
    done: Option<Answer>,
}

/// What is written.
struct Write {
    name: String,
    preconditions: Preconditions,
    /// The object's fields as the writer sent them.
    metadata: Value,
    content_type: String,
    data: Bytes,
}

/// `upload/storage/v1/b/B/o`.
pub fn upload(cloud: &mut Cloud, request: &Request, bucket: &str) -> Result<Answer, Answer> {
    let kind = request.query("uploadType").unwrap_or_default();
    match (request.method.as_str(), kind, request.query("upload_id")) {
        ("PUT" | "POST", "resumable", Some(id)) => go_on(cloud, request, bucket, id),
        ("DELETE", _, Some(id)) => {
            bucket_mut(cloud, bucket)?.uploads.remove(id);
            Err(plain_refusal(499, "clientClosedRequest", "Client Closed Request"))
        }
        ("POST", "resumable", None) => begin(cloud, request, bucket),
        ("POST", "multipart", None) => once(cloud, request, bucket, |cloud| {
            let write = multipart(request)?;
            store(cloud, bucket, write)
        }),
        ("POST", "media", None) => once(cloud, request, bucket, |cloud| {
            let content_type = request.header("content-type").unwrap_or("application/octet-stream").to_owned();
            let metadata = json!({});
            let name = name(request, &metadata)?;
            let preconditions = Preconditions::of(request)?;
            store(cloud, bucket, Write { name, preconditions, metadata, content_type, data: request.body.clone() })
        }),
        _ => Err(unrouted(request)),
    }
}

fn name(request: &Request, metadata: &Value) -> Result<String, Answer> {
    let name = request.query("name").or_else(|| metadata["name"].as_str()).filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| plain_refusal(400, "required", "Required"))
}

/// Writes, if what was asked of the object holds.
fn store(cloud: &mut Cloud, bucket: &str, write: Write) -> Result<Answer, Answer> {
    let (url, now) = (cloud.url.clone(), cloud.timestamp());
    let Write { name, preconditions, metadata, content_type, data } = write;
    let place = bucket_mut(cloud, bucket)?;
    preconditions.check(place.objects.get(&name))?;
    let sums = [("crc32c", BASE64.encode(crc32c(&data).to_be_bytes())), ("md5Hash", BASE64.encode(md5(&data)))];
    for (field, sum) in sums {
        if metadata[field].as_str().is_some_and(|sent| sent != sum) {
            let text = format!("Provided {field} \"{}\" doesn't match calculated {field} \"{sum}\".", metadata[field]);
            return Err(plain_refusal(400, "invalid", &text));
        }
    }
    let content_type = metadata["contentType"].as_str().unwrap_or(&content_type).to_owned();
    let object = place.put(&name, data, &content_type, metadata["metadata"].clone(), now);
    Ok(Answer::json(&object_json(&url, bucket, &name, object)))
}

/// Metadata and bytes in one body (`multipart/related`).
fn multipart(request: &Request) -> Result<Write, Answer> {
    let bad = || plain_refusal(400, "badRequest", "Malformed multipart body.");
    let kind = request.header("content-type").unwrap_or_default();
    let boundary = kind.split(';').find_map(|part| part.trim().strip_prefix("boundary=")).ok_or_else(bad)?;
    let boundary = format!("--{}", boundary.trim_matches(['"', '\'']));
    let mut parts = Vec::new();
    let mut rest = &request.body[..];
    let at = find(rest, boundary.as_bytes()).ok_or_else(bad)?;
    rest = &rest[at + boundary.len()..];
    let line_and_boundary = format!("\r\n{boundary}");
    while let Some(end) = find(rest, line_and_boundary.as_bytes()) {
        parts.push(part(&rest[..end]).ok_or_else(bad)?);
        rest = &rest[end + line_and_boundary.len()..];
    }
    let [(_, metadata), (content_type, data)] = parts.as_slice() else { return Err(bad()) };
    let metadata: Value = serde_json::from_slice(metadata).map_err(|_| bad())?;
    Ok(Write {
        name: name(request, &metadata)?,
        preconditions: Preconditions::of(request)?,
        content_type: content_type.clone().unwrap_or_else(|| "application/octet-stream".into()),
        data: Bytes::copy_from_slice(data),
        metadata,
    })
}

/// Content type and content of a part: headers, an empty line, bytes.
fn part(bytes: &[u8]) -> Option<(Option<String>, &[u8])> {
    let bytes = bytes.strip_prefix(b"\r\n")?;
    let (headers, content) = match bytes.strip_prefix(b"\r\n") {
        Some(content) => (&b""[..], content),
        None => {
            let end = find(bytes, b"\r\n\r\n")?;
            (&bytes[..end], &bytes[end + 4..])
        }
    };
    let headers = String::from_utf8_lossy(headers).into_owned();
    let kind = headers.lines().filter_map(|line| line.split_once(':'));
    let kind = kind.into_iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    Some((kind.map(|(_, value)| value.trim().to_owned()), content))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// A session is opened; where it is, is said by the address that the server knows of itself, not by `Host`.
fn begin(cloud: &mut Cloud, request: &Request, bucket: &str) -> Result<Answer, Answer> {
    let metadata = request.json()?;
    let name = name(request, &metadata)?;
    let preconditions = Preconditions::of(request)?;
    let id = cloud.random.uuid();
    let url = cloud.url.clone();
    let place = bucket_mut(cloud, bucket)?;
    preconditions.check(place.objects.get(&name))?;
    let content_type = request.header("x-upload-content-type").unwrap_or("application/octet-stream").to_owned();
    let query = format!("uploadType=resumable&name={}&upload_id={id}", encoded(&name));
    place.uploads.insert(id, Upload { name, preconditions, metadata, content_type, data: Vec::new(), done: None });
    Ok(Answer::empty(200).with("location", format!("{url}/upload/storage/v1/b/{bucket}/o?{query}")))
}

/// Another part, or the question how much has arrived.
fn go_on(cloud: &mut Cloud, request: &Request, bucket: &str, id: &str) -> Result<Answer, Answer> {
    let gone = || plain_refusal(404, "notFound", "The upload session was not found.");
    let upload = bucket_mut(cloud, bucket)?.uploads.get_mut(id).ok_or_else(gone)?;
    if let Some(answer) = &upload.done {
        return Ok(answer.clone());
    }
    let (first, total) = content_range(request)?;
    if let Some(first) = first {
        let body = &request.body[..];
        let arrived = upload.data.len();
        if first > arrived {
            return Err(plain_refusal(503, "backendError", "A part before this one has not arrived."));
        }
        // A part that was sent again, as its answer was lost.
        upload.data.extend_from_slice(body.get(arrived - first..).unwrap_or_default());
        let is_last = total == Some(upload.data.len());
        if !is_last && !body.len().is_multiple_of(PART) {
            upload.data.truncate(arrived);
            return Err(plain_refusal(400, "badRequest", "Parts before the last one are multiples of 256 KiB."));
        }
    }
    if total != Some(upload.data.len()) {
        let range = upload.data.len().checked_sub(1).map(|last| format!("bytes=0-{last}"));
        let answer = Answer::empty(308);
        return Ok(range.into_iter().fold(answer, |answer, range| answer.with("range", range)));
    }
    let Upload { name, preconditions, metadata, content_type, data, .. } = upload.clone();
    let answer = store(cloud, bucket, Write { name, preconditions, metadata, content_type, data: data.into() })?;
    if let Some(upload) = bucket_mut(cloud, bucket)?.uploads.get_mut(id) {
        upload.done = Some(answer.clone());
    }
    Ok(answer)
}

/// The first byte of this part (`None`: there is none, a question) and the whole length where it is known, of
/// `bytes 0-99/200`, `bytes 0-99/*`, `bytes */200`, `bytes */*`; without a header the body is the whole.
fn content_range(request: &Request) -> Result<(Option<usize>, Option<usize>), Answer> {
    let Some(range) = request.header("content-range") else { return Ok((Some(0), Some(request.body.len()))) };
    let bad = || plain_refusal(400, "badRequest", "Failed to parse Content-Range header.");
    let (part, total) = range.trim_start_matches("bytes").trim().split_once('/').ok_or_else(bad)?;
    let total = if total == "*" { None } else { Some(total.parse().map_err(|_| bad())?) };
    if part == "*" {
        return Ok((None, total));
    }
    let (first, _) = part.split_once('-').ok_or_else(bad)?;
    Ok((Some(first.parse().map_err(|_| bad())?), total))
}
