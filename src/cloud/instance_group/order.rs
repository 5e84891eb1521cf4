//! What follows from an order's request id: the names of its machines, the ids of its requests, and the id under which
//! it is polled. All of it can be worked out again from that id alone, so that an order given twice is one.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};
use uuid::Builder;

use crate::model::GroupName;

/// Letters after the base name. The group itself takes four; eight keep two orders from ever drawing the same name.
const SUFFIX: usize = 8;

/// Longest name of a machine.
const NAME_MAX: usize = 63;

/// The names of an order's machines: `BASE-` and letters that follow from the request id.
pub(super) fn names(request_id: &str, base: &str, count: u32) -> Vec<String> {
    let base: String = base.chars().take(NAME_MAX - 1 - SUFFIX).collect();
    let mut names = BTreeSet::new();
    let mut draw = 0_u32;
    while names.len() < usize::try_from(count).unwrap_or(usize::MAX) {
        let suffix: String = digest(&[request_id, &draw.to_string()]).take(SUFFIX).map(letter).collect();
        names.insert(format!("{base}-{suffix}"));
        draw += 1;
    }
    names.into_iter().collect()
}

/// The request id as Compute Engine wants it, a UUID: of the order itself, or of something done for it.
pub(super) fn request_uuid(request_id: &str, what_for: &str) -> String {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest(&[request_id, what_for])).for_each(|(to, from)| *to = from);
    Builder::from_sha1_bytes(bytes).into_uuid().to_string()
}

fn digest(parts: &[&str]) -> impl Iterator<Item = u8> {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
        hash.update([0]);
    }
    hash.finalize().into_iter()
}

fn letter(byte: u8) -> char {
    char::from(b'a' + byte % 26)
}

/// What is remembered of an order, as text in its operation's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// `create:GROUP:BASE:COUNT:REQUEST:PATH`. Without a path: its machines were there when it was given again.
    Create { group: GroupName, base: String, count: u32, request_id: String, operation: Option<String> },
    /// `delete:GROUP:PATH`. Without a path: there was nothing to delete.
    Delete { group: GroupName, operation: Option<String> },
}

impl Order {
    pub(super) fn to_id(&self) -> String {
        match self {
            Self::Create { group, base, count, request_id, operation } => {
                let operation = operation.as_deref().unwrap_or_default();
                format!("create:{group}:{base}:{count}:{request_id}:{operation}")
            }
            Self::Delete { group, operation } => format!("delete:{group}:{}", operation.as_deref().unwrap_or_default()),
        }
    }

    /// `None`: no operation of ours is called so.
    pub(super) fn of_id(id: &str) -> Option<Self> {
        let (kind, rest) = id.split_once(':')?;
        let (group, rest) = rest.split_once(':')?;
        let group = GroupName::ALL.into_iter().find(|known| known.to_string() == group)?;
        match kind {
            "create" => {
                let (base, rest) = rest.split_once(':')?;
                let (count, rest) = rest.split_once(':')?;
                let (request_id, path) = rest.rsplit_once(':')?;
                let (base, request_id, count) = (base.to_owned(), request_id.to_owned(), count.parse().ok()?);
                Some(Self::Create { group, base, count, request_id, operation: path_of_operation(path)? })
            }
            "delete" => Some(Self::Delete { group, operation: path_of_operation(rest)? }),
            _ => None,
        }
    }

    pub(super) fn group(&self) -> GroupName {
        match self {
            Self::Create { group, .. } | Self::Delete { group, .. } => *group,
        }
    }

    /// Where the operation is asked for: `zones/Z/operations/O`.
    pub(super) fn operation(&self) -> Option<&str> {
        match self {
            Self::Create { operation, .. } | Self::Delete { operation, .. } => operation.as_deref(),
        }
    }
}

/// `zones/Z/operations/O`, `regions/R/operations/O` or nothing; `None` where it is something else.
fn path_of_operation(path: &str) -> Option<Option<String>> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match path.split('/').collect::<Vec<_>>()[..] {
        [""] => Some(None),
        ["zones" | "regions", place, "operations", name] if is_word(place) && is_word(name) => {
            Some(Some(path.to_owned()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_ids_of_an_order_never_change() {
        assert_eq!(names("ya-19a-7", "gpu", 2), ["gpu-aslrtfgr", "gpu-uzrzrkye"]);
        assert_eq!(request_uuid("ya-19a-7", "create"), "b2046ce3-c879-51f8-9ea3-d2e53650d22b");
        assert_ne!(request_uuid("ya-1-1", "create"), request_uuid("ya-1-1", "withdraw"));
    }

    proptest! {
        #[test]
        fn names_are_good_and_of_one_order(base in "[a-z]([-a-z0-9]{0,56}[a-z0-9])?", id in "\\PC{1,40}", count in 0..50_u32) {
            let names = names(&id, &base, count);
            prop_assert_eq!(names.len(), usize::try_from(count).unwrap());
            prop_assert!(names.iter().all(|name| name.len() <= NAME_MAX && name.is_ascii()));
        }

        #[test]
        fn an_id_says_what_the_order_was(id in "[-a-z0-9:]{1,40}", count in any::<u32>(), path in "(zones/us-central1-a/operations/operation-[0-9]{1,9})?") {
            let operation = Some(path).filter(|path| !path.is_empty());
            let (group, base) = (GroupName::Secondary, "gpu".to_owned());
            let create = Order::Create { group, base, count, request_id: id, operation: operation.clone() };
            for order in [create, Order::Delete { group, operation }] {
                prop_assert_eq!(Order::of_id(&order.to_id()), Some(order));
            }
        }

        #[test]
        fn no_id_is_too_odd(id in "\\PC*") {
            let path = Order::of_id(&id).and_then(|order| order.operation().map(str::to_owned));
            prop_assert!(path.is_none_or(|path| !path.contains("..")));
        }
    }
}
