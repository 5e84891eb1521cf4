//! A line of a workload CSV: one group of like containers of one job.
//! Must not know who wrote the file, nor what replays it.

use serde::{Deserialize, Serialize};

/// The group that is the application master.
pub const MASTER_GROUP: &str = "master";

/// How the containers of a job belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum JobShape {
    /// They start together, are useless until all are there, and end together.
    Gang,
    /// Each works by itself.
    Tasks,
}

/// One group of containers of a job. Rows of the same job stand together; the fields are the columns, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkloadRow {
    /// The job: YARN's application id, or anything unique.
    pub job: String,
    /// When the job was submitted, in seconds since any origin that all rows share.
    pub submit_s: f64,
    /// YARN's application type (`TONY`, `SPARK`, …).
    #[serde(rename = "type")]
    pub application_type: String,
    /// The queue: its name, or its path.
    pub queue: String,
    /// The group's name; [`MASTER_GROUP`] is the application master.
    pub group: String,
    /// How many containers.
    pub containers: u64,
    /// Memory of each, in MB.
    pub memory_mb: u64,
    /// Virtual cores of each.
    pub vcores: u64,
    /// GPUs of each.
    pub gpus: u64,
    /// How long one works, in seconds, waiting left out; for a gang: from when all are there to the end.
    pub duration_s: f64,
    /// How the containers of the job belong together: the same in all its rows.
    pub shape: JobShape,
}

impl WorkloadRow {
    /// The columns, as the header line names them.
    pub const COLUMNS: [&str; 11] = [
        "job",
        "submit_s",
        "type",
        "queue",
        "group",
        "containers",
        "memory_mb",
        "vcores",
        "gpus",
        "duration_s",
        "shape",
    ];
}
