//! ResourceManager administration over Hadoop's own RPC, without a JVM: one short connection an order.
//! Must not know why an order is given, nor of the exclude file that a refresh makes YARN read.
//!
//! IPC version 9, authentication SIMPLE, protobuf engine: `RpcHeader.proto`, `IpcConnectionContext.proto`,
//! `yarn_server_resourcemanager_service_protos.proto` of Apache Hadoop. A Kerberised cluster refuses SIMPLE: there
//! [`super::rmadmin`] is the way.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::proto::{Malformed, Reader, Value, Writer};
use crate::{
    model::{NodeId, Resources},
    ports::{ErrorKind, PortError},
};

/// How long an order may take, all addresses together. It takes milliseconds where all is well.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(10);
/// How long one address may take to connect, so that a dead machine leaves time for the other ResourceManager.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// The largest reply that is read. Replies are 32 bytes; the largest is a Java stack trace.
const MAX_REPLY: usize = 1 << 20;
/// Characters of a remote error's first line that are kept.
const MAX_MESSAGE: usize = 500;

const PROTOCOL: &str = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB";
/// `"hrpc"`, version 9, service class 0, authentication 0 (SIMPLE).
const PREAMBLE: [u8; 7] = *b"hrpc\x09\x00\x00";
/// The call id of the connection context, which gets no reply.
const CONTEXT_CALL: i64 = -3;
/// The call id of the only call on a connection.
const OUR_CALL: i64 = 0;

/// A client of the administration port of one ResourceManager, or of a pair of which one is active.
#[derive(Debug)]
pub struct AdminRpc {
    addresses: Vec<String>,
    user: String,
    limit: Duration,
    /// Where the active one was last time.
    preferred: AtomicUsize,
}

/// Why one address did not do it, and whether another one may.
struct Refused {
    error: PortError,
    try_next: bool,
}

impl AdminRpc {
    /// Speaks to `addresses` (`host:port`, usually port 8033) as `user` (what `HADOOP_USER_NAME` would name; must be
    /// in `yarn.admin.acl`); an order fails after `limit`.
    ///
    /// # Errors
    /// No address is given.
    pub fn new(addresses: Vec<String>, user: impl Into<String>, limit: Duration) -> Result<Self, PortError> {
        if addresses.is_empty() {
            return Err(PortError::new(ErrorKind::Permanent, "no admin address of a ResourceManager is given"));
        }
        Ok(Self { addresses, user: user.into(), limit, preferred: AtomicUsize::new(0) })
    }

    /// Has YARN read the exclude file again, gracefully: excluded nodes drain, those no longer excluded serve again.
    /// `timeout_s` holds for hosts without one of their own in the file; negative: none; `None`: the ResourceManager's
    /// configured default. (There is no other refresh here: a plain one kills what runs on every draining node.)
    ///
    /// # Errors
    /// As of all orders: [`ErrorKind::Denied`] where the user may not; [`ErrorKind::Transient`] where nobody answers
    /// in time or no ResourceManager is active; else [`ErrorKind::Permanent`], with the remote exception.
    pub async fn refresh_nodes(&self, timeout_s: Option<i32>) -> Result<(), PortError> {
        self.call("refreshNodes", &refresh_body(timeout_s)).await.map(drop)
    }

    /// Sets what a node may hand out; containers that run are never pre-empted by it. Forgotten when the
    /// ResourceManager restarts, but not by the NodeManager: once told, with its next heartbeat, it registers with that.
    ///
    /// # Errors
    /// As [`Self::refresh_nodes`]; [`ErrorKind::NotFound`] where YARN does not know the node.
    pub async fn update_node_resource(&self, node: &NodeId, total: Resources) -> Result<(), PortError> {
        self.call("updateNodeResource", &update_body(node, total)).await.map(drop)
    }

    /// Gives the order to the active ResourceManager; returns the reply's body.
    async fn call(&self, method: &str, body: &Writer) -> Result<Vec<u8>, PortError> {
        let first = self.preferred.load(Ordering::Relaxed);
        timeout(self.limit, self.try_all(first, method, body)).await.unwrap_or_else(|_| {
            // The address that hangs must not take the whole time of the next order as well.
            self.preferred.store((first + 1) % self.addresses.len(), Ordering::Relaxed);
            let (at, limit) = (&self.addresses[first], self.limit);
            Err(PortError::transient(format!("{method} at {at}: no answer within {limit:?}")))
        })
    }

    async fn try_all(&self, first: usize, method: &str, body: &Writer) -> Result<Vec<u8>, PortError> {
        let mut failures = Vec::new();
        for index in (0..self.addresses.len()).map(|n| (first + n) % self.addresses.len()) {
            let address = &self.addresses[index];
            match call_one(address, &request(&self.user, new_client_id(), method, body)).await {
                Ok(reply) => {
                    self.preferred.store(index, Ordering::Relaxed);
                    return Ok(reply);
                }
                Err(refused) => {
                    let text = format!("{method} at {address}: {}", refused.error.text);
                    if !refused.try_next {
                        return Err(PortError::new(refused.error.kind, text));
                    }
                    failures.push(text);
                }
            }
        }
        Err(PortError::transient(failures.join("; ")))
    }
}

fn new_client_id() -> [u8; 16] {
    uuid::Uuid::new_v4().into_bytes()
}

/// All bytes of one call: preamble, connection context, call.
pub fn request(user: &str, client_id: [u8; 16], method: &str, body: &Writer) -> Vec<u8> {
    let context = Writer::new().message(2, &Writer::new().bytes(1, user)).bytes(3, PROTOCOL);
    let call = Writer::new().bytes(1, method).bytes(2, PROTOCOL).varint(3, 1);
    let mut out = PREAMBLE.to_vec();
    frame(&mut out, &[&header(CONTEXT_CALL, client_id, -1), &context]);
    frame(&mut out, &[&header(OUR_CALL, client_id, 0), &call, body]);
    out
}

/// `RpcRequestHeaderProto`: protobuf engine, final packet, call, client, retry count.
fn header(call: i64, client_id: [u8; 16], retry: i64) -> Writer {
    Writer::new().varint(1, 2).varint(2, 0).sint(3, call).bytes(4, client_id).sint(5, retry)
}

fn frame(out: &mut Vec<u8>, messages: &[&Writer]) {
    let body: Vec<u8> = messages.iter().flat_map(|message| message.delimited()).collect();
    out.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(&body);
}

/// `RefreshNodesRequestProto` of type GRACEFUL.
pub fn refresh_body(timeout_s: Option<i32>) -> Writer {
    let graceful = Writer::new().varint(1, 2);
    match timeout_s {
        None => graceful,
        Some(seconds) => graceful.int(2, seconds.into()),
    }
}

/// `UpdateNodeResourceRequestProto`: memory and cores come twice, in fields of their own and by name.
pub fn update_body(node: &NodeId, total: Resources) -> Writer {
    let named = |name: &str, value: u64, units: &str| {
        Writer::new().bytes(1, name).varint(2, value).bytes(3, units).varint(4, 0)
    };
    let resource = Writer::new()
        .varint(1, total.memory_mb)
        .varint(2, total.vcores)
        .message(3, &named("memory-mb", total.memory_mb, "Mi"))
        .message(3, &named("vcores", total.vcores, ""))
        .message(3, &named("yarn.io/gpu", total.gpus, ""));
    // An over-commit time-out of -1: what runs is never pre-empted, however little the node may hand out.
    let option = Writer::new().message(1, &resource).int(2, -1);
    let id = Writer::new().bytes(1, &node.host).int(2, node.port.into());
    Writer::new().message(1, &Writer::new().message(1, &id).message(2, &option))
}

async fn call_one(address: &str, request: &[u8]) -> Result<Vec<u8>, Refused> {
    let elsewhere = |text: String| Refused { error: PortError::transient(text), try_next: true };
    let mut stream = match timeout(CONNECT_LIMIT, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(elsewhere(format!("cannot connect: {error}"))),
        Err(_) => return Err(elsewhere(format!("cannot connect within {CONNECT_LIMIT:?}"))),
    };
    // After a connection that broke the order may have been carried out; all orders may be repeated, so the caller's
    // next attempt is safe, but the other ResourceManager would not know more.
    let reply = exchange(&mut stream, request).await;
    let reply = reply.map_err(|error| here(PortError::transient(format!("the connection broke: {error}"))))?;
    read_reply(&reply)
}

async fn exchange(stream: &mut TcpStream, request: &[u8]) -> std::io::Result<Vec<u8>> {
    stream.write_all(request).await?;
    let length = stream.read_u32().await? as usize;
    if length > MAX_REPLY {
        return Err(std::io::Error::other(format!(
            "a reply of {length} bytes is announced; at most {MAX_REPLY} are read"
        )));
    }
    let mut reply = vec![0; length];
    stream.read_exact(&mut reply).await?;
    Ok(reply)
}

fn here(error: PortError) -> Refused {
    Refused { error, try_next: false }
}

/// What `RpcResponseHeaderProto` tells.
#[derive(Default)]
struct ReplyHeader {
    status: Option<u64>,
    exception: String,
    message: String,
}

fn read_reply(reply: &[u8]) -> Result<Vec<u8>, Refused> {
    let mut reader = Reader::new(reply);
    let header = reader.delimited().and_then(reply_header);
    let header = header.map_err(|Malformed| here(PortError::transient("the reply makes no sense")))?;
    match header.status {
        Some(0) => {
            let body = if reader.is_empty() { Ok(&[][..]) } else { reader.delimited() };
            body.map(<[u8]>::to_vec).map_err(|Malformed| here(PortError::transient("the reply is cut short")))
        }
        Some(_) => Err(remote_error(&header)),
        None => Err(here(PortError::transient("the reply has no status"))),
    }
}

fn reply_header(bytes: &[u8]) -> Result<ReplyHeader, Malformed> {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let (mut reader, mut header) = (Reader::new(bytes), ReplyHeader::default());
    while let Some(field) = reader.field()? {
        match field {
            (2, Value::Varint(status)) => header.status = Some(status),
            (4, Value::Bytes(exception)) => header.exception = text(exception),
            (5, Value::Bytes(message)) => header.message = text(message),
            _ => {}
        }
    }
    Ok(header)
}

/// Hadoop wraps exceptions in exceptions: the cause may be named by the class or by the first line of the message.
fn remote_error(header: &ReplyHeader) -> Refused {
    let first_line: String = header.message.lines().next().unwrap_or_default().chars().take(MAX_MESSAGE).collect();
    let is = |name: &str| header.exception.ends_with(name) || first_line.contains(name);
    let standby = is("StandbyException");
    let kind = if is("AccessControlException") {
        ErrorKind::Denied
    } else if standby || is("RetriableException") || is("ServerNotRunningYetException") {
        ErrorKind::Transient
    } else if first_line.contains("unrecognized node") {
        ErrorKind::NotFound
    } else {
        ErrorKind::Permanent
    };
    Refused { error: PortError::new(kind, format!("{}: {first_line}", header.exception)), try_next: standby }
}
