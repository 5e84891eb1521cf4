//! The same orders through Hadoop's own command, `yarn rmadmin`, for clusters whose RPC wants Kerberos.
//! Must not know why an order is given.
//!
//! It starts a JVM: one to three seconds and 80 MB an order.

use std::{process::Stdio, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::{Child, Command},
    time::timeout,
};

use crate::{
    model::{NodeId, Resources},
    ports::{ErrorKind, PortError},
    process_group::GroupGuard,
};

/// The command where none is configured.
pub const DEFAULT_COMMAND: &str = "yarn rmadmin";
/// How long a command may run. It takes up to three seconds on an idle machine, more on a busy master.
pub const DEFAULT_LIMIT: Duration = Duration::from_secs(30);
/// Bytes kept of the end of what the command prints: the reason, and the stack trace after it.
const MAX_TAIL: usize = 16 << 10;
/// Lines of it that are shown: the last ones that are neither log nor stack trace.
const MAX_LINES: usize = 3;
/// Characters of each of them.
const MAX_LINE: usize = 300;

/// A command that takes `yarn rmadmin`'s arguments.
#[derive(Clone, Debug)]
pub struct RmAdmin {
    program: String,
    arguments: Vec<String>,
    limit: Duration,
}

impl RmAdmin {
    /// Runs `command`, split at white space (there is no quoting: what needs it belongs into a script); kills it after
    /// `limit`.
    ///
    /// # Errors
    /// The command is empty.
    pub fn new(command: &str, limit: Duration) -> Result<Self, PortError> {
        let mut words = command.split_whitespace().map(str::to_owned);
        let program = words.next().ok_or_else(|| permanent("the rmadmin command is empty"))?;
        Ok(Self { program, arguments: words.collect(), limit })
    }

    /// Has YARN read the exclude file again. Without a time-out a graceful refresh would never end a drain (the
    /// command sends -1 then), so `None` is that, too.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`] where the command is not there or fails, [`ErrorKind::Denied`] where YARN says so,
    /// [`ErrorKind::Transient`] where it takes too long or no ResourceManager is active or to be reached.
    pub async fn refresh_nodes(&self, timeout_s: Option<i32>) -> Result<(), PortError> {
        self.run(&refresh_arguments(timeout_s)).await
    }

    /// Sets what a node may hand out.
    ///
    /// # Errors
    /// As [`Self::refresh_nodes`].
    pub async fn update_node_resource(&self, node: &NodeId, total: Resources) -> Result<(), PortError> {
        self.run(&update_arguments(node, total)).await
    }

    async fn run(&self, arguments: &[String]) -> Result<(), PortError> {
        let shown = format!("`{} {}`", self.program, [&self.arguments[..], arguments].concat().join(" "));
        let mut child = self.start(arguments).map_err(|error| permanent(format!("{shown} cannot be run: {error}")))?;
        let mut group = GroupGuard::of(&child);
        let ended = timeout(self.limit, finish(&mut child)).await;
        if ended.is_ok() {
            group.release();
        }
        match ended {
            Ok(Ok((true, _))) => Ok(()),
            Ok(Ok((false, tail))) => Err(PortError::new(kind(&tail), format!("{shown} failed: {}", reason(&tail)))),
            Ok(Err(error)) => Err(PortError::transient(format!("{shown}: {error}"))),
            Err(_) => Err(PortError::transient(format!("{shown} did not end within {:?} and was killed", self.limit))),
        }
    }

    fn start(&self, arguments: &[String]) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(arguments);
        // A group of its own: `yarn` is a shell script, and it is the JVM under it that must end with it.
        command.process_group(0).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }
}

/// Whether the command succeeded, and the end of what it printed.
async fn finish(child: &mut Child) -> std::io::Result<(bool, String)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (out, err, status) = tokio::join!(tail(stdout), tail(stderr), child.wait());
    let text = if err.trim().is_empty() { out } else { err };
    Ok((status?.success(), text.trim().to_owned()))
}

/// Reads to the end and keeps the last bytes.
async fn tail(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut kept = Vec::new();
    let Some(mut stream) = stream else { return String::new() };
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..read]);
        let surplus = kept.len().saturating_sub(MAX_TAIL);
        kept.drain(..surplus);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

fn permanent(text: impl Into<String>) -> PortError {
    PortError::new(ErrorKind::Permanent, text)
}

/// What people need of it. Hadoop writes its log to the same place, and a stack trace after every reason.
fn reason(printed: &str) -> String {
    let is_noise = |line: &str| line.starts_with("at ") || line.contains(" INFO ") || line.contains(" WARN ");
    let lines: Vec<&str> = printed.lines().map(str::trim).filter(|line| !line.is_empty() && !is_noise(line)).collect();
    let last = lines[lines.len().saturating_sub(MAX_LINES)..].iter();
    let last: Vec<String> = last.map(|line| line.chars().take(MAX_LINE).collect()).collect();
    if last.is_empty() { "it says nothing".into() } else { last.join(" / ") }
}

/// The command has no other way to tell than what it prints.
fn kind(printed: &str) -> ErrorKind {
    let says = |words: &[&str]| words.iter().any(|word| printed.contains(word));
    if says(&["AccessControlException", "doesn't have permission"]) {
        ErrorKind::Denied
    } else if says(&["StandbyException", "ConnectException", "SocketTimeoutException", "Connection refused"]) {
        ErrorKind::Transient
    } else if says(&["unrecognized node"]) {
        ErrorKind::NotFound
    } else {
        ErrorKind::Permanent
    }
}

/// The arguments of a refresh.
pub fn refresh_arguments(timeout_s: Option<i32>) -> Vec<String> {
    // `-server`: the command returns at once. (`-client` would wait, and then force all draining nodes out.)
    // A negative number is no number to it: left out, it sends -1.
    let seconds = timeout_s.filter(|seconds| *seconds >= 0).map(|seconds| seconds.to_string());
    let words = ["-refreshNodes".to_owned(), "-g".to_owned()].into_iter().chain(seconds);
    words.chain(["-server".to_owned()]).collect()
}

/// The arguments of a resource update. Memory needs its unit (without one the command reads bytes), and GPUs are left
/// out where there are none, since the command refuses a resource type that the cluster does not have.
pub fn update_arguments(node: &NodeId, total: Resources) -> Vec<String> {
    let mut resources = format!("memory-mb={}Mi,vcores={}", total.memory_mb, total.vcores);
    if total.gpus > 0 {
        resources.push_str(&format!(",yarn.io/gpu={}", total.gpus));
    }
    vec!["-updateNodeResource".into(), node.to_string(), resources]
}
