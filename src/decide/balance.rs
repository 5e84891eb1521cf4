//! How a change is split over the worker groups: by weight, within bounds.

use std::cmp::Ordering;

use crate::{
    model::GroupName,
    policy::{GroupPolicy, Policy},
};

/// Sizes, or changes of sizes, by group: of both groups, of one, or of none. Made and thrown away at every tick, so no
/// map on the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes([Option<u32>; 2]);

impl Sizes {
    /// The size of one group; `None` where it is not among these.
    pub fn get(&self, group: GroupName) -> Option<u32> {
        self.0[group as usize]
    }

    /// Sets the size of one group.
    pub fn set(&mut self, group: GroupName, size: u32) {
        self.0[group as usize] = Some(size);
    }

    /// Adds so many to one group, which is of size 0 where it is not among these.
    pub fn add(&mut self, group: GroupName, count: u32) {
        self.set(group, self.get(group).unwrap_or(0) + count);
    }

    /// Leaves only the groups of which this holds.
    pub fn retain(&mut self, keep: impl Fn(GroupName) -> bool) {
        GroupName::ALL.into_iter().filter(|group| !keep(*group)).for_each(|group| self.0[group as usize] = None);
    }

    /// Each group with its size, primary first.
    pub fn iter(&self) -> impl Iterator<Item = (GroupName, u32)> {
        GroupName::ALL.into_iter().zip(self.0).filter_map(|(group, size)| size.map(|size| (group, size)))
    }

    /// All groups together.
    pub fn total(&self) -> u32 {
        self.0[0].unwrap_or(0) + self.0[1].unwrap_or(0)
    }

    /// Whether no group is among these.
    pub fn is_empty(&self) -> bool {
        self.0 == [None, None]
    }
}

impl FromIterator<(GroupName, u32)> for Sizes {
    fn from_iter<I: IntoIterator<Item = (GroupName, u32)>>(of: I) -> Self {
        let mut sizes = Self::default();
        of.into_iter().for_each(|(group, size)| sizes.set(group, size));
        sizes
    }
}

/// Where `count` more workers go: one after the other to the group that is furthest below its share and below its
/// maximum. A group of weight 0 gets none. Returns fewer where the groups are full.
pub fn grow(policy: &Policy, sizes: &Sizes, count: u32) -> Sizes {
    spread(policy, sizes, count, |group, size| group.weight > 0 && size < group.max_instances, 1)
}

/// Where `count` workers are taken from: one after the other from the group that is furthest above its share and
/// above its minimum. Returns fewer where the groups are at their minimum.
pub fn shrink(policy: &Policy, sizes: &Sizes, count: u32) -> Sizes {
    spread(policy, sizes, count, |group, size| size > group.min_instances, -1)
}

fn spread(policy: &Policy, sizes: &Sizes, count: u32, open: impl Fn(GroupPolicy, u32) -> bool, step: i32) -> Sizes {
    let mut sizes = *sizes;
    let mut changes = Sizes::default();
    for _ in 0..count {
        let candidates = sizes.iter().filter(|(name, size)| open(policy.group(*name), *size));
        let fullness = |name: GroupName, size: u32| Fullness { size, weight: policy.group(name).weight };
        let chosen = if step > 0 {
            // `min_by` takes the first of equals: primary.
            candidates.min_by(|a, b| fullness(a.0, a.1 + 1).cmp(&fullness(b.0, b.1 + 1)))
        } else {
            // `max_by` takes the last of equals: secondary, which holds no HDFS blocks.
            candidates.max_by(|a, b| fullness(a.0, a.1).cmp(&fullness(b.0, b.1)))
        };
        let Some((name, size)) = chosen else { break };
        sizes.set(name, size.saturating_add_signed(step));
        changes.add(name, 1);
    }
    changes
}

/// Size over weight, compared without division. Weight 0 is fuller than any other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Fullness {
    size: u32,
    weight: u32,
}

impl Fullness {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.weight, other.weight) {
            (0, 0) => self.size.cmp(&other.size),
            (0, _) => Ordering::Greater,
            (_, 0) => Ordering::Less,
            _ => {
                (u64::from(self.size) * u64::from(other.weight)).cmp(&(u64::from(other.size) * u64::from(self.weight)))
            }
        }
    }
}
