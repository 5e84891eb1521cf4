//! A child process and all that it starts, ended together. Shared by the adapters that run commands.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Ends a command's process group when dropped before [`GroupGuard::release`].
#[derive(Debug)]
pub struct GroupGuard(Option<Pid>);

impl GroupGuard {
    /// The group of a command that was started with `process_group(0)`: it leads the group, which has its process id.
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Must follow the leader's end at once: after that its number may belong to somebody else.
    pub fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for GroupGuard {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // A group that has just ended by itself is no error.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
