//! What the queues of `/scheduler` have pending, GPUs included: the only place that tells where asks are hidden.
//! Must not know when it is asked.

use serde::{Deserialize, Deserializer};

use super::{
    lenient::{List, Maybe, Text},
    resource_row::ResourceRow,
    wire::{WireError, parse},
};
use crate::model::Resources;

/// Reads `/scheduler`: what all leaf queues together have pending. Nothing where the scheduler is not the
/// CapacityScheduler: the others do not tell it by resource type.
pub fn scheduler_pending(body: &[u8]) -> Result<Resources, WireError> {
    let answer: SchedulerAnswer = parse("/scheduler", body)?;
    let info = answer.scheduler.get().and_then(|scheduler| scheduler.scheduler_info.get());
    info.map(|root| root.pending()).ok_or_else(|| WireError("/scheduler without schedulerInfo".into()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SchedulerAnswer {
    scheduler: Maybe<SchedulerRow>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SchedulerRow {
    scheduler_info: Maybe<QueueRow>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct QueueRow {
    queues: Maybe<QueueRows>,
    resources: Maybe<UsageRows>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct QueueRows {
    queue: List<QueueRow>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UsageRows {
    resource_usages_by_partition: List<UsageRow>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct UsageRow {
    partition_name: PartitionName,
    pending: Maybe<ResourceRow>,
}

impl QueueRow {
    /// What this queue's leaves have pending; a parent's own figure is the sum of theirs.
    fn pending(&self) -> Resources {
        match &self.queues {
            Maybe::There(children) if !children.queue.0.is_empty() => children.queue.0.iter().map(Self::pending).sum(),
            _ => self.own_pending(),
        }
    }

    fn own_pending(&self) -> Resources {
        let Maybe::There(resources) = &self.resources else { return Resources::default() };
        let rows = resources.resource_usages_by_partition.0.iter().filter(|row| !row.partition_name.is_all);
        rows.filter_map(|row| if let Maybe::There(pending) = &row.pending { Some(pending.amounts()) } else { None })
            .sum()
    }
}

/// A row named `*` repeats the others: it must not be added to them.
#[derive(Default)]
struct PartitionName {
    is_all: bool,
}

impl<'de> Deserialize<'de> for PartitionName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Text::deserialize(deserializer).map(|name| Self { is_all: name.0 == "*" })
    }
}
