//! A Hadoop RPC server that answers every request with the same bytes.

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use yarn_autoscaler::yarn::proto::Writer;

/// Bytes from hexadecimal digits; white space is for the eye.
pub fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16).expect("hex")).collect()
}

/// A server that reads one request and answers with these bytes; remembers what it read.
pub async fn server(reply: Vec<u8>) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let remembered = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = vec![0; 4096];
            let read = stream.read(&mut request).await.unwrap_or(0);
            remembered.lock().expect("lock").extend_from_slice(&request[..read]);
            let _ = stream.write_all(&reply).await;
            // Open until the client hangs up: a server that says nothing must be told from one that is gone.
            let _ = stream.read(&mut request).await;
        }
    });
    (address, seen)
}

/// One frame of these length-delimited messages.
pub fn framed(messages: &[Vec<u8>]) -> Vec<u8> {
    let body = messages.concat();
    [u32::try_from(body.len()).expect("small").to_be_bytes().to_vec(), body].concat()
}

/// A reply with this length-delimited body.
pub fn success(body: &[u8]) -> Vec<u8> {
    framed(&[bytes("1a 0800 1000 1809 3a10 000102030405060708090a0b0c0d0e0f 4000"), body.to_vec()])
}

/// A reply with this exception.
pub fn exception(status: u64, class: &str, message: &str) -> Vec<u8> {
    framed(&[Writer::new().varint(1, 0).varint(2, status).bytes(4, class).bytes(5, message).delimited()])
}

/// An address where nobody listens.
pub async fn dead() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("an address").to_string()
}
