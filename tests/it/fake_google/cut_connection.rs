//! Connections that can end in the middle of an answer: hyper itself would not send half a body.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::serve::Listener;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// In an answer's head: how many bytes of its body are sent before the connection ends.
pub const CUT_AFTER: &str = "x-fake-cut-after";

/// Accepts connections that can be cut.
pub struct CutListener(pub TcpListener);

/// A connection.
pub struct CutStream {
    stream: TcpStream,
    /// Bytes that may still be sent; `None`: any number.
    left: Option<usize>,
}

impl Listener for CutListener {
    type Io = CutStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (CutStream, SocketAddr) {
        loop {
            if let Ok((stream, address)) = self.0.accept().await {
                return (CutStream { stream, left: None }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// How many of these bytes go out, where their head tells of a cut.
fn cut_at(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    let (_, rest) = text.split_once(&format!("{CUT_AFTER}: "))?;
    let kept: usize = rest.split("\r\n").next()?.parse().ok()?;
    Some(bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4 + kept)
}

impl AsyncWrite for CutStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let left = self.left.or_else(|| cut_at(bytes));
        self.left = left;
        if left == Some(0) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let part = &bytes[..left.map_or(bytes.len(), |left| left.min(bytes.len()))];
        let written = Pin::new(&mut self.stream).poll_write(context, part);
        if let Poll::Ready(Ok(written)) = written {
            self.left = left.map(|left| left - written);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl AsyncRead for CutStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}
