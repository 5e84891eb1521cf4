//! By how much worker groups are to grow or shrink.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::GroupName;

/// Workers to be added (above zero) or taken away (below zero), by group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SizeChange {
    /// Of the primary workers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub primary: i32,
    /// Of the secondary workers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub secondary: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(change: &i32) -> bool {
    *change == 0
}

impl SizeChange {
    /// So many more of each of these groups.
    pub fn growth(additions: impl IntoIterator<Item = (GroupName, u32)>) -> Self {
        Self::summed(additions, 1)
    }

    /// So many fewer of each of these groups.
    pub fn shrinkage(removals: impl IntoIterator<Item = (GroupName, u32)>) -> Self {
        Self::summed(removals, -1)
    }

    fn summed(counts: impl IntoIterator<Item = (GroupName, u32)>, sign: i32) -> Self {
        let mut change = Self::default();
        for (group, count) in counts {
            let count = sign * i32::try_from(count).unwrap_or(i32::MAX);
            let of = match group {
                GroupName::Primary => &mut change.primary,
                GroupName::Secondary => &mut change.secondary,
            };
            *of = of.saturating_add(count);
        }
        change
    }

    /// The change of one group.
    pub fn of(self, group: GroupName) -> i32 {
        match group {
            GroupName::Primary => self.primary,
            GroupName::Secondary => self.secondary,
        }
    }

    /// How many workers of this group are added.
    pub fn added(self, group: GroupName) -> u32 {
        u32::try_from(self.of(group)).unwrap_or(0)
    }

    /// Whether workers of this group are taken away.
    pub fn shrinks(self, group: GroupName) -> bool {
        self.of(group) < 0
    }

    /// The groups that change, with their changes; primary first.
    pub fn iter(self) -> impl Iterator<Item = (GroupName, i32)> {
        GroupName::ALL.into_iter().map(move |group| (group, self.of(group))).filter(|(_, change)| *change != 0)
    }
}

impl fmt::Display for SizeChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let changes: Vec<_> = self.iter().map(|(group, change)| format!("{change:+} {group}")).collect();
        let one = matches!(self.primary.saturating_add(self.secondary), 1 | -1) && changes.len() == 1;
        write!(f, "{} {}", changes.join(" and "), if one { "worker" } else { "workers" })
    }
}
