//! The provider `command`: an executable of the operator's makes and deletes the machines. One process a request, one
//! JSON object on its stdin, one on its stdout; `command_wire` knows what is in them. Knows nothing of YARN, of what is
//! decided, or of when to try again.
//!
//! # The protocol, version 1
//! | request | reply |
//! |---|---|
//! | `{"version":1,"method":"describe"}` | `{"capabilities":{"deletesNamed":true,"overlaps":true},"groups":{"primary":{"template":{"memoryMb":12288,"vcores":8,"gpus":1,"bootTime":"10s"},"instances":[{"name":"worker-0","host":"10.0.0.2","state":"RUNNING"}]}}}` |
//! | `{"version":1,"method":"create","requestId":"…","group":"primary","count":3}` | `{"operationId":"…"}` |
//! | `{"version":1,"method":"delete","requestId":"…","group":"primary","instances":["worker-3"]}` | `{"operationId":"…"}` |
//! | `{"version":1,"method":"poll","operationId":"…"}` | `{"state":"RUNNING"}`, `{"state":"DONE"}` or `{"state":"FAILED","error":{…}}` |
//! | any | `{"error":{"kind":"STOCK_OUT","message":"…","retryAfter":"30s"}}` |
//!
//! * `template`, its `gpus` and `bootTime`, an instance's `host` (default: its name) and `capabilities` (default: deletes
//!   named workers, takes one order at a time) are optional. A group is `primary` or `secondary`.
//! * States of an instance: `PROVISIONING`, `RUNNING`, `STOPPING`, `FAILED`.
//! * Error kinds: `STOCK_OUT`, `QUOTA`, `THROTTLED` (with `retryAfter`), `NOT_FOUND`, `DENIED`, `CONFLICT`, `TRANSIENT`,
//!   `PERMANENT`.
//! * The same `requestId` again names the same operation. `poll` of an operation that was forgotten: `NOT_FOUND`.
//! * A field that is not in this table is an error, so that a typing mistake is told and not obeyed.
//! * The exit status is 0, also with an `error`; anything else is a crash. Lines on stderr go to the log.
//! * A request that is not answered within the time limit is ended by SIGKILL, together with every process that it has
//!   started and that is still in its process group. What is to outlive the request (a machine's own processes) must
//!   leave the group (`setsid`) and let go of stdout and stderr.

use std::{io, pin::pin, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    time::timeout,
};

use super::command_wire::{self as wire, Request, printable};
use crate::{
    model::{Capacity, GroupName, SizeChange},
    ports::{ErrorKind, OperationState, PortError, Provider},
    process_group::GroupGuard,
};

/// How long a request may take unless the operator says otherwise: cloud command-line tools need seconds to start.
pub const TIME_LIMIT_DEFAULT: Duration = Duration::from_secs(30);

/// Most bytes of a reply: 100,000 instances fit, and a command gone wild does not fill the memory.
const REPLY_BYTES_MAX: usize = 16 << 20;

/// How long stdout and stderr may stay open after the command has ended: what it wrote is there at once, but a process
/// that it left behind may hold them for ever.
const LINGER: Duration = Duration::from_millis(500);

/// Most lines of stderr that one request may put into the log.
const LOG_LINES_MAX: usize = 100;

/// Most bytes of stderr that one request may put into the log.
const LOG_BYTES_MAX: usize = 16 << 10;

/// Longest line of stderr that is kept whole: the last one is shown in error texts.
const LOG_LINE_MAX: usize = 500;

/// Machines by an executable of the operator's.
#[derive(Clone, Debug)]
pub struct CommandProvider {
    argv: Vec<String>,
    time_limit: Duration,
}

impl CommandProvider {
    /// The executable with its arguments, and how long one request may take. Nothing is started yet; that the
    /// executable exists shows at the first request.
    pub fn new(argv: Vec<String>, time_limit: Duration) -> Self {
        Self { argv, time_limit }
    }

    /// One request, one process; the text of an error begins with the command and the method.
    async fn call(&self, request: &Request<'_>) -> Result<Vec<u8>, PortError> {
        self.converse(request).await.map_err(|error| self.in_context(request, error))
    }

    fn in_context(&self, request: &Request<'_>, error: PortError) -> PortError {
        let command = self.argv.first().map_or("(no command)", String::as_str);
        PortError::new(error.kind, format!("provider command `{command}`, {}: {}", request.method, error.text))
    }

    /// Starts the command, feeds it and collects its reply. Left or dropped before the command has ended, it takes the
    /// whole group along.
    async fn converse(&self, request: &Request<'_>) -> Result<Vec<u8>, PortError> {
        let line = request.to_line()?;
        let mut child = self.start()?;
        let mut group = GroupGuard::of(&child);
        let (mut reply, mut log) = (Vec::new(), StderrLog::new(request.method));
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let status = {
            let mut talk =
                pin!(async { tokio::try_join!(feed(stdin, line), collect(stdout, &mut reply), log.follow(stderr)) });
            let mut silent = false;
            let ended = timeout(self.time_limit, async {
                tokio::select! {
                    status = child.wait() => Ok(status),
                    talked = &mut talk => {
                        talked?;
                        silent = true;
                        Ok(child.wait().await)
                    }
                }
            });
            let status = ended.await.map_err(|_| self.too_slow())??;
            // Whoever is left in the group is not ours to end: the command ended in time.
            group.release();
            if !silent && let Ok(talked) = timeout(LINGER, talk).await {
                talked?;
            }
            status.map_err(|error| PortError::transient(format!("cannot wait for it: {error}")))?
        };
        log.end();
        if status.success() { Ok(reply) } else { Err(crash(&status.to_string(), &log.last)) }
    }

    fn too_slow(&self) -> PortError {
        let limit_s = self.time_limit.as_secs_f64();
        PortError::transient(format!("no answer within {limit_s} s; it was ended with all its processes"))
    }

    fn start(&self) -> Result<Child, PortError> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(PortError::new(ErrorKind::Permanent, "no command is given"));
        };
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| PortError::new(start_kind(&error), format!("cannot be started: {error}")))
    }
}

impl Provider for CommandProvider {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        let request = Request::describe();
        let capacity = wire::capacity(&self.call(&request).await?);
        capacity.map(Arc::new).map_err(|error| self.in_context(&request, error))
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        let request = Request::create(request_id, group, count);
        wire::operation_id(&self.call(&request).await?).map_err(|error| self.in_context(&request, error))
    }

    async fn resize(&self, _: &str, _: SizeChange, _: Duration) -> Result<String, PortError> {
        Err(PortError::new(ErrorKind::Permanent, "a provider command creates and deletes; it takes no sizes"))
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        let request = Request::delete(request_id, group, instances);
        wire::operation_id(&self.call(&request).await?).map_err(|error| self.in_context(&request, error))
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        let request = Request::poll(operation_id);
        wire::operation_state(&self.call(&request).await?).map_err(|error| self.in_context(&request, error))
    }
}

fn start_kind(error: &io::Error) -> ErrorKind {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorKind::Permanent,
        io::ErrorKind::PermissionDenied => ErrorKind::Denied,
        _ => ErrorKind::Transient,
    }
}

fn crash(status: &str, last_line: &str) -> PortError {
    let said = if last_line.is_empty() { "nothing on stderr".into() } else { format!("stderr: {last_line}") };
    PortError::transient(format!("it ended with {status}; {said}"))
}

/// A command that does not read its request is not at fault: its reply tells.
async fn feed(stdin: Option<impl tokio::io::AsyncWrite + Unpin>, line: String) -> Result<(), PortError> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(line.as_bytes()).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}

async fn collect(stdout: Option<impl AsyncRead + Unpin>, reply: &mut Vec<u8>) -> Result<(), PortError> {
    let Some(mut stdout) = stdout else { return Ok(()) };
    loop {
        match stdout.read_buf(reply).await {
            Ok(0) => return Ok(()),
            Ok(_) if reply.len() > REPLY_BYTES_MAX => {
                return Err(PortError::transient(format!("its reply is longer than {} MiB", REPLY_BYTES_MAX >> 20)));
            }
            Ok(_) => {}
            Err(error) => return Err(PortError::transient(format!("cannot read its reply: {error}"))),
        }
    }
}

/// Lines of stderr on their way to the log: bounded, without control characters, the last one kept.
struct StderrLog {
    method: &'static str,
    line: Vec<u8>,
    last: String,
    lines: usize,
    bytes: usize,
}

impl StderrLog {
    fn new(method: &'static str) -> Self {
        Self { method, line: Vec::new(), last: String::new(), lines: 0, bytes: 0 }
    }

    /// Reads to the end, past the limits too: a command whose stderr nobody reads would hang.
    async fn follow(&mut self, stderr: Option<impl AsyncRead + Unpin>) -> Result<(), PortError> {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let mut chunk = vec![0; 8 << 10];
        while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
            self.take(&chunk[..read]);
        }
        Ok(())
    }

    fn take(&mut self, chunk: &[u8]) {
        for byte in chunk {
            if *byte == b'\n' {
                self.end_line();
            } else if self.line.len() < LOG_LINE_MAX {
                self.line.push(*byte);
            }
        }
    }

    fn end_line(&mut self) {
        let line = printable(&String::from_utf8_lossy(&self.line)).trim().to_owned();
        self.line.clear();
        if line.is_empty() {
            return;
        }
        self.lines += 1;
        self.bytes += line.len();
        if self.shown() {
            tracing::info!(method = self.method, "provider command: {line}");
        }
        self.last = line;
    }

    fn shown(&self) -> bool {
        self.lines <= LOG_LINES_MAX && self.bytes <= LOG_BYTES_MAX
    }

    fn end(&mut self) {
        self.end_line();
        if !self.shown() {
            tracing::warn!(
                method = self.method,
                "provider command: wrote {} lines to stderr; only the first are in the log",
                self.lines
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_cut_into_bounded_printable_lines() {
        let mut log = StderrLog::new("describe");
        log.take(b"one\ntw");
        log.take(b"o \x1b[31mred\n\n");
        assert_eq!((log.lines, log.last.as_str()), (2, "two [31mred"));
        log.take(&vec![b'x'; 10_000]);
        log.end();
        assert_eq!((log.lines, log.last.len()), (3, LOG_LINE_MAX));
    }

    #[test]
    fn a_flood_on_stderr_is_counted_and_not_shown() {
        let mut log = StderrLog::new("describe");
        log.take("line\n".repeat(LOG_LINES_MAX + 1).as_bytes());
        assert!(!log.shown());
        assert_eq!(log.lines, LOG_LINES_MAX + 1);
    }
}
