//! A web server that misbehaves as told. One answer a connection.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// What the server does with a request.
#[derive(Clone, Debug)]
pub enum Reply {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// Nothing, for ever.
    Silence,
    /// These bytes first, then one byte every ten milliseconds, for ever.
    Drip(Vec<u8>),
}

impl Reply {
    /// Any answer with a length and a body.
    pub fn new(status: &str, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::Bytes(
            format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
                .into_bytes(),
        )
    }

    /// JSON.
    pub fn json(body: &str) -> Self {
        Self::new("200 OK", "Content-Type: application/json;charset=utf-8\r\n", body)
    }

    /// A redirect.
    pub fn redirect(to: &str) -> Self {
        Self::new("307 Temporary Redirect", &format!("Content-Type: text/plain\r\nLocation: {to}\r\n"), "elsewhere")
    }
}

/// A running server; ends when dropped.
pub struct FakeHttp {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl FakeHttp {
    /// Answers each path by this function.
    pub async fn start(reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (seen, reply) = (requests.clone(), Arc::new(reply));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, seen.clone(), reply.clone()));
            }
        });
        Self { address, requests, task }
    }

    /// Its address.
    pub fn url(&self) -> Url {
        format!("http://{}", self.address).parse().expect("a URL")
    }

    /// The head of every request so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("lock").clone()
    }
}

impl Drop for FakeHttp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, reply: Arc<impl Fn(&str) -> Reply>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split_whitespace().nth(1).unwrap_or_default().to_owned();
    seen.lock().expect("lock").push(head);
    // The client may hang up at any time: that is its right.
    match reply(&path) {
        Reply::Bytes(bytes) => drop(stream.write_all(&bytes).await),
        Reply::Silence => std::future::pending().await,
        Reply::Drip(bytes) => {
            let _ = stream.write_all(&bytes).await;
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}
