//! Requests as the services of the fake see them, and their answers in Google's forms.

use std::{collections::BTreeMap, fmt::Write as _};

use axum::{body::Bytes, http};
use serde_json::{Value, json};

/// Longest body that is taken.
pub const BODY_MAX: usize = 64 << 20;

/// A request, decoded.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// As sent, percent signs and all.
    pub path: String,
    /// Of the path, decoded, without the first slash.
    pub segments: Vec<String>,
    /// As sent.
    pub raw_query: String,
    pub query: Vec<(String, String)>,
    /// By small names.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

/// What was requested, for a test to look at. Holds no token.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    pub method: String,
    /// As sent, percent signs and all.
    pub path: String,
    /// As sent.
    pub query: String,
    /// By small names; a token is replaced by `<token>`.
    pub headers: BTreeMap<String, String>,
    /// JSON; other text as a string, no body as null.
    pub body: Value,
}

impl Request {
    pub fn new(head: &http::request::Parts, body: Bytes) -> Self {
        let path = head.uri.path().to_owned();
        let raw_query = head.uri.query().unwrap_or_default().to_owned();
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        };
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Self {
            method: head.method.to_string(),
            segments: path.trim_start_matches('/').split('/').map(decoded).collect(),
            query: raw_query.split('&').filter(|part| !part.is_empty()).map(pair).collect(),
            headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
            path,
            raw_query,
            body,
        }
    }

    /// The first value of this name.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// The body as JSON; an empty one is an empty object.
    pub fn json(&self) -> Result<Value, Answer> {
        if self.body.is_empty() {
            return Ok(json!({}));
        }
        serde_json::from_slice(&self.body).map_err(|error| invalid(&format!("Invalid JSON payload received. {error}")))
    }

    /// Names and values of a form (`application/x-www-form-urlencoded`).
    pub fn form(&self) -> BTreeMap<String, String> {
        let text = String::from_utf8_lossy(&self.body).into_owned();
        let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))).collect()
    }

    pub fn recorded(&self) -> Recorded {
        let mut headers = self.headers.clone();
        if let Some(value) = headers.get_mut("authorization") {
            *value = value.split_once(' ').map_or_else(String::new, |(scheme, _)| format!("{scheme} <token>"));
        }
        let text = || Value::String(String::from_utf8_lossy(&self.body).into_owned());
        let body = match self.body.is_empty() {
            true => Value::Null,
            false => serde_json::from_slice(&self.body).unwrap_or_else(|_| text()),
        };
        Recorded { method: self.method.clone(), path: self.path.clone(), query: self.raw_query.clone(), headers, body }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(body: &Value) -> Self {
        Self {
            status: 200,
            headers: vec![("content-type", "application/json; charset=UTF-8".into())],
            body: body.to_string().into_bytes(),
        }
    }

    pub fn text(body: &str) -> Self {
        Self { status: 200, headers: vec![("content-type", "application/text".into())], body: body.as_bytes().to_vec() }
    }

    pub fn empty(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

/// A refusal: status, canonical code, the reason of the first entry, and a sentence.
pub fn refusal(status: u16, code: &str, reason: &str, message: &str) -> Answer {
    let errors = json!([{"message": message, "domain": "global", "reason": reason}]);
    let body = json!({"error": {"code": status, "message": message, "status": code, "errors": errors}});
    Answer { status, ..Answer::json(&body) }
}

/// A refusal as Cloud Storage and Compute Engine write it: without the canonical code.
pub fn plain_refusal(status: u16, reason: &str, message: &str) -> Answer {
    let errors = json!([{"message": message, "domain": "global", "reason": reason}]);
    Answer { status, ..Answer::json(&json!({"error": {"code": status, "message": message, "errors": errors}})) }
}

pub fn invalid(message: &str) -> Answer {
    refusal(400, "INVALID_ARGUMENT", "badRequest", message)
}

pub fn failed_precondition(message: &str) -> Answer {
    refusal(400, "FAILED_PRECONDITION", "failedPrecondition", message)
}

pub fn not_found(message: &str) -> Answer {
    refusal(404, "NOT_FOUND", "notFound", message)
}

/// Percent signs resolved.
pub fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

/// Everything but letters, digits and `-._~` as percent signs.
pub fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// As Dataproc writes: what is zero, false or empty is left out.
pub fn without_zeros(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| (name.clone(), without_zeros(value)));
            Value::Object(kept.filter(|(_, value)| !is_zero(value)).collect())
        }
        Value::Array(entries) => Value::Array(entries.iter().map(without_zeros).collect()),
        other => other.clone(),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Bool(true) | Value::Object(_) => false,
    }
}
