//! How a change is split over the worker groups: by weight, within bounds.

use std::{cmp::Ordering, collections::BTreeMap};

use crate::{
    model::GroupName,
    policy::{GroupPolicy, Policy},
};

/// Sizes, or changes of sizes, by group.
pub type Sizes = BTreeMap<GroupName, u32>;

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
    let mut sizes = sizes.clone();
    let mut changes = Sizes::new();
    for _ in 0..count {
        let candidates = sizes.iter().filter(|(name, size)| open(policy.group(**name), **size));
        let fullness = |name: GroupName, size: u32| Fullness { size, weight: policy.group(name).weight };
        let chosen = if step > 0 {
            // `min_by` takes the first of equals: primary.
            candidates.min_by(|a, b| fullness(*a.0, *a.1 + 1).cmp(&fullness(*b.0, *b.1 + 1)))
        } else {
            // `max_by` takes the last of equals: secondary, which holds no HDFS blocks.
            candidates.max_by(|a, b| fullness(*a.0, *a.1).cmp(&fullness(*b.0, *b.1)))
        };
        let Some(name) = chosen.map(|(name, _)| *name) else { break };
        sizes.entry(name).and_modify(|size| *size = size.saturating_add_signed(step));
        *changes.entry(name).or_insert(0) += 1;
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
