//! A stand-in for Compute Engine that answers by a function and writes down every request.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use yarn_autoscaler::google::{Api, Tokens, endpoint};

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `GET`, `POST` …
    pub method: String,
    /// Without its query.
    pub path: String,
    /// As it was sent; empty where there was none.
    pub query: String,
    /// `null` where there was none.
    pub body: Value,
    /// The header `Content-Length`; empty where there was none.
    pub length: String,
}

impl Request {
    /// For golden files: method, path, query and body.
    pub fn golden(&self) -> String {
        let lines = json!({"method": self.method, "path": self.path, "query": self.query, "body": self.body});
        format!("{lines:#}\n")
    }

    /// The last word of the path: `listManagedInstances`, `createInstances`, an operation's name …
    pub fn last(&self) -> &str {
        self.path.rsplit('/').next().unwrap()
    }
}

type Reply = dyn Fn(&Request) -> (u16, Value) + Send + Sync;

#[derive(Clone)]
struct Script {
    seen: Arc<Mutex<Vec<Request>>>,
    reply: Arc<Reply>,
}

/// A running stand-in; ends when dropped.
pub struct ComputeScript {
    /// Asks it.
    pub api: Api,
    /// Where it answers.
    pub address: String,
    seen: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl ComputeScript {
    /// Answers each request by this function: a status and JSON.
    pub async fn start(reply: impl Fn(&Request) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Script { seen: Arc::default(), reply: Arc::new(reply) };
        let seen = script.seen.clone();
        let router = Router::new().fallback(answer).with_state(script);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let base = endpoint(&format!("http://{address}/")).unwrap();
        let api = Api::new(base, Arc::new(Tokens::anonymous()), yarn_autoscaler::google::TIME_LIMIT_DEFAULT).unwrap();
        Self { api, address: format!("http://{address}/"), seen, task }
    }

    /// Every request so far, and none of them the next time.
    pub fn take(&self) -> Vec<Request> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

impl Drop for ComputeScript {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(script): State<Script>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, String) {
    let request = Request {
        method: method.to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
        length: headers.get("content-length").map(|length| length.to_str().unwrap().to_owned()).unwrap_or_default(),
    };
    script.seen.lock().unwrap().push(request.clone());
    let (status, body) = (script.reply)(&request);
    (StatusCode::from_u16(status).unwrap(), body.to_string())
}
