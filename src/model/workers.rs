//! How many workers there are, by what they are worth: for people who watch.

use serde::{Deserialize, Serialize};

/// Workers by what they are worth just now. The four parts add up to `size`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workers {
    /// Take containers.
    pub ready: u32,
    /// Not registered with YARN yet, and not late.
    pub booting: u32,
    /// There, but of no use: failed, unhealthy, lost, late.
    #[serde(default)]
    pub not_ready: u32,
    /// On their way out.
    pub leaving: u32,
    /// Machines that exist or are being made, less those that are being deleted.
    pub size: u32,
}
