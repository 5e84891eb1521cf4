//! Amounts of what YARN schedules.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Memory, cores and GPUs of a container, a node or a whole cluster. Never negative: what YARN reports below zero
/// (a cordoned node's available memory) is clamped where it is read, node by node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// Memory in MB (YARN's `memory-mb`, MiB in truth).
    pub memory_mb: u64,
    /// Virtual cores.
    pub vcores: u64,
    /// GPUs (`yarn.io/gpu`).
    #[serde(default)]
    pub gpus: u64,
}

impl Resources {
    /// Memory in MB, virtual cores, GPUs.
    pub const fn new(memory_mb: u64, vcores: u64, gpus: u64) -> Self {
        Self { memory_mb, vcores, gpus }
    }

    /// Whether `self` fits into `room`, resource by resource.
    pub fn fits(self, room: Self) -> bool {
        self.memory_mb <= room.memory_mb && self.vcores <= room.vcores && self.gpus <= room.gpus
    }

    /// The smaller of the two, resource by resource.
    pub fn min(self, other: Self) -> Self {
        Self::new(self.memory_mb.min(other.memory_mb), self.vcores.min(other.vcores), self.gpus.min(other.gpus))
    }

    /// `self` less `other`, never below zero.
    pub fn saturating_sub(self, other: Self) -> Self {
        Self::new(
            self.memory_mb.saturating_sub(other.memory_mb),
            self.vcores.saturating_sub(other.vcores),
            self.gpus.saturating_sub(other.gpus),
        )
    }

    /// `self`, `n` times, never beyond what a figure holds.
    pub fn times(self, n: u64) -> Self {
        Self::new(self.memory_mb.saturating_mul(n), self.vcores.saturating_mul(n), self.gpus.saturating_mul(n))
    }
}

impl Add for Resources {
    type Output = Self;
    /// Never beyond what a figure holds: a ResourceManager that tells nonsense must not end us.
    fn add(self, other: Self) -> Self {
        Self::new(
            self.memory_mb.saturating_add(other.memory_mb),
            self.vcores.saturating_add(other.vcores),
            self.gpus.saturating_add(other.gpus),
        )
    }
}

impl AddAssign for Resources {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Resources {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}
