//! A web service that reads bodies, keeps connections and answers as told.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderMap, Response},
};
use reqwest::Url;
use tokio::{net::TcpListener, task::JoinHandle};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Heard {
    pub method: String,
    /// With its query.
    pub path: String,
    pub headers: HeaderMap,
    pub body: String,
}

/// What is answered: status, body; `None`: nothing, for ever.
pub type Said = Option<(u16, String)>;

/// A running service; ends when dropped.
pub struct FakeService {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    task: JoinHandle<()>,
}

impl FakeService {
    /// Answers each request by this function, which is told how many came before it. Every answer says that it comes
    /// from a metadata server.
    pub async fn start(reply: impl Fn(&Heard, usize) -> Said + Clone + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
        let seen = heard.clone();
        let answer = move |request: Request| {
            let (seen, reply) = (seen.clone(), reply.clone());
            async move {
                let (head, body) = request.into_parts();
                let body = String::from_utf8(to_bytes(body, 1 << 20).await.unwrap().into()).unwrap();
                let (method, path) = (head.method.to_string(), head.uri.to_string());
                let heard = Heard { method, path, headers: head.headers, body };
                let before = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(heard.clone());
                    seen.len() - 1
                };
                let Some((status, body)) = reply(&heard, before) else { return std::future::pending().await };
                let answer = Response::builder().status(status).header("Metadata-Flavor", "Google");
                answer.body(Body::from(body)).unwrap()
            }
        };
        let router = Router::new().fallback(answer);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, heard, task }
    }

    /// Its address, with a slash at its end.
    pub fn url(&self) -> Url {
        format!("http://{}/", self.address).parse().unwrap()
    }

    /// `host:port`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Every request so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

impl Drop for FakeService {
    fn drop(&mut self) {
        self.task.abort();
    }
}
