//! What stands before a real ResourceManager and misbehaves for a while.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// What the proxy does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Hands it on, and the answer back.
    Honest,
    /// 500, as a servlet that failed says it.
    Error,
    /// 200 and something that is no JSON, and no text either.
    Garbage,
    /// The true answer's head, and the first half of its body.
    Truncated,
    /// A redirect to where it came from.
    RedirectLoop,
    /// A standby's words: `/info` that says so, and plain text with status 200 for the rest.
    Standby,
    /// Takes the request and never answers.
    Silent,
    /// Lets nobody connect for long: hangs up without a word.
    HangsUp,
    /// JSON of the right shape that knows of nothing at all.
    Empty,
}

/// A running proxy. Its threads end with the test's process; what they hold is a connection each.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
}

impl Proxy {
    /// Before this ResourceManager (`http://host:port`), honest at first.
    pub fn before(url: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { address: listener.local_addr().unwrap(), mood: Arc::new(Mutex::new(Mood::Honest)) };
        let (mood, to) = (proxy.mood.clone(), url.trim_start_matches("http://").to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (mood, to) = (mood.clone(), to.clone());
                std::thread::spawn(move || serve(client, *mood.lock().unwrap_or_else(PoisonError::into_inner), &to));
            }
        });
        proxy
    }

    /// Its address, in place of the ResourceManager's.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From the next connection on.
    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }
}

/// One request, one answer; either side may hang up at any time.
fn serve(mut client: TcpStream, mood: Mood, to: &str) {
    let Some(path) = request_path(&mut client) else { return };
    let answer = match mood {
        Mood::Honest => ask(to, &path),
        Mood::Truncated => ask(to, &path).map(|answer| truncated(&answer)),
        Mood::Error => {
            Some(response("500 Internal Server Error", "text/html", b"<html>java.lang.NullPointerException"))
        }
        Mood::Garbage => Some(response("200 OK", "application/json", b"\x00\xff}{nonsense\xc3")),
        Mood::RedirectLoop => Some(redirect(&path)),
        Mood::Standby => Some(standby(&path)),
        Mood::Empty => Some(empty(&path, to)),
        Mood::HangsUp => None,
        Mood::Silent => return wait_for_end(&mut client),
    };
    let _ = client.write_all(&answer.unwrap_or_default());
}

fn request_path(client: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    String::from_utf8(head).ok()?.split(' ').nth(1).map(str::to_owned)
}

/// The true answer. 1.0, so that it is not chunked and ends with the connection.
fn ask(to: &str, path: &str) -> Option<Vec<u8>> {
    let mut server = TcpStream::connect(to).ok()?;
    server.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    write!(server, "GET {path} HTTP/1.0\r\nHost: {to}\r\nAccept: application/json\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).ok()?;
    Some(answer)
}

fn body_of(answer: &[u8]) -> &[u8] {
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
    &answer[head..]
}

/// Half the JSON, of a length that the head agrees with: only the JSON itself can tell.
fn truncated(answer: &[u8]) -> Vec<u8> {
    let body = body_of(answer);
    response("200 OK", "application/json;charset=utf-8", &body[..body.len() / 2])
}

fn redirect(path: &str) -> Vec<u8> {
    format!("HTTP/1.1 307 Temporary Redirect\r\nConnection: close\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n")
        .into()
}

fn standby(path: &str) -> Vec<u8> {
    let info = br#"{"clusterInfo":{"id":1,"startedOn":1,"state":"STARTED","haState":"STANDBY","resourceManagerVersion":"3.3.6"}}"#;
    if path.contains("/info") {
        response("200 OK", "application/json", info)
    } else {
        response("200 OK", "text/plain", b"There is no active RM right now.")
    }
}

/// `/info` is true, so that the rest is believed if anything of it can be.
fn empty(path: &str, to: &str) -> Vec<u8> {
    let body: &[u8] = match path {
        _ if path.contains("/info") => return ask(to, path).unwrap_or_default(),
        _ if path.contains("/nodes") => br#"{"nodes":{}}"#,
        _ if path.contains("/apps") => br#"{"apps":{}}"#,
        _ if path.contains("/metrics") => br#"{"clusterMetrics":{}}"#,
        _ => b"{}",
    };
    response("200 OK", "application/json", body)
}

fn response(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn wait_for_end(client: &mut TcpStream) {
    let mut byte = [0];
    while matches!(client.read(&mut byte), Ok(1)) {}
}
