//! A web server that answers as told and remembers what it was asked, to the byte.

use std::{
    fmt::Write,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{Method, StatusCode, Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};
use yarn_autoscaler::google::{Api, TIME_LIMIT_DEFAULT, Tokens, endpoint};

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    /// As it came, sorted, one parameter a line.
    pub query: Vec<String>,
    pub body: Option<Value>,
}

impl Asked {
    /// For golden files: method and path, parameters, body.
    pub fn golden(&self) -> String {
        let mut text = format!("{} {}\n", self.method, self.path);
        self.query.iter().for_each(|parameter| writeln!(text, "  {parameter}").expect("a line"));
        if let Some(body) = &self.body {
            writeln!(text, "{}", serde_json::to_string_pretty(body).expect("JSON")).expect("a body");
        }
        text
    }

    /// Whether this is an order, not a look.
    pub fn is_order(&self) -> bool {
        self.method != "GET"
    }
}

type Answer = Arc<dyn Fn(&Asked) -> (u16, Value) + Send + Sync>;

#[derive(Clone)]
struct Shared {
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<Mutex<Answer>>,
}

/// A running server; ends when dropped.
pub struct Server {
    address: SocketAddr,
    shared: Shared,
    task: JoinHandle<()>,
}

impl Server {
    pub async fn start(answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Shared { asked: Arc::default(), answer: Arc::new(Mutex::new(Arc::new(answer))) };
        let router = Router::new().fallback(serve).with_state(shared.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("a server") });
        Self { address, shared, task }
    }

    /// From now on it answers so.
    pub fn answers(&self, answer: impl Fn(&Asked) -> (u16, Value) + Send + Sync + 'static) {
        *self.shared.answer.lock().expect("lock") = Arc::new(answer);
    }

    /// The service at its address.
    pub fn api(&self) -> Api {
        let base = endpoint(&format!("http://{}", self.address)).expect("an address");
        Api::new(base, Arc::new(Tokens::anonymous()), TIME_LIMIT_DEFAULT).expect("a client")
    }

    /// Every request so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().expect("lock").clone()
    }

    /// Every request so far that was no look.
    pub fn orders(&self) -> Vec<Asked> {
        self.asked().into_iter().filter(Asked::is_order).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(shared): State<Shared>, method: Method, uri: Uri, body: Bytes) -> Response {
    let mut query: Vec<_> = uri.query().unwrap_or_default().split('&').map(str::to_owned).collect();
    query.retain(|parameter| !parameter.is_empty());
    query.sort();
    let body = (!body.is_empty()).then(|| serde_json::from_slice(&body).expect("JSON"));
    let asked = Asked { method: method.to_string(), path: uri.path().to_owned(), query, body };
    shared.asked.lock().expect("lock").push(asked.clone());
    let answer = shared.answer.lock().expect("lock").clone();
    let (status, body) = answer(&asked);
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// What the service says when it refuses.
pub fn refusal(status: u16, code: &str, message: &str) -> (u16, Value) {
    (status, json!({ "error": { "code": status, "status": code, "message": message } }))
}
