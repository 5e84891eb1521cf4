//! How many workers a set of containers fills: first fit, largest first. Pure arithmetic.

use crate::model::Resources;

/// Containers of one size, largest first by GPUs, memory, cores.
pub(super) type SizeKey = (u64, u64, u64);

/// The key of a size.
pub(super) fn key(size: Resources) -> SizeKey {
    (size.gpus, size.memory_mb, size.vcores)
}

/// How many containers of this size fit into the room.
pub(super) fn fit(size: Resources, room: Resources) -> u64 {
    let by = |size: u64, room: u64| room.checked_div(size).unwrap_or(u64::MAX);
    by(size.gpus, room.gpus).min(by(size.memory_mb, room.memory_mb)).min(by(size.vcores, room.vcores))
}

/// Empty workers that these containers fill, packed first fit in the order given (largest first). Containers that fit no
/// empty worker are left out.
pub(super) fn workers_needed(sizes: impl Iterator<Item = (SizeKey, u32)>, worker: Resources) -> u32 {
    // Workers with the same room are one entry: there are never more entries than sizes, times a few.
    let mut open: Vec<(Resources, u64)> = Vec::new();
    let mut workers = 0;
    for ((gpus, memory_mb, vcores), count) in sizes {
        let size = Resources::new(memory_mb, vcores, gpus);
        let each = fit(size, worker);
        let mut left = u64::from(count);
        if each == 0 {
            continue;
        }
        let mut next = Vec::with_capacity(open.len() + 2);
        for (room, number) in open {
            left -= fill((room, number), size, left, &mut next);
        }
        if left > 0 {
            let fresh = left.div_ceil(each);
            workers += fresh;
            fill((worker, fresh), size, left, &mut next);
        }
        open = next;
    }
    u32::try_from(workers).unwrap_or(u32::MAX)
}

/// Puts up to `left` containers on `number` workers with this room; returns how many, and pushes what room remains.
fn fill((room, number): (Resources, u64), size: Resources, left: u64, remains: &mut Vec<(Resources, u64)>) -> u64 {
    let each = fit(size, room);
    if each == 0 || left == 0 {
        remains.push((room, number));
        return 0;
    }
    let full = (left / each).min(number);
    let rest = if full < number { left - full * each } else { 0 };
    let mut push = |taken: u64, number: u64| {
        if number > 0 {
            remains.push((room.saturating_sub(size.times(taken)), number));
        }
    };
    push(each, full);
    if rest > 0 {
        push(rest, 1);
    }
    push(0, number - full - u64::from(rest > 0));
    full * each + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: Resources = Resources::new(16, 8, 4);

    fn needed(sizes: &[(Resources, u32)]) -> u32 {
        workers_needed(sizes.iter().map(|(size, count)| (key(*size), *count)), WORKER)
    }

    #[test]
    fn containers_are_packed_first_fit() {
        assert_eq!(needed(&[]), 0);
        assert_eq!(needed(&[(Resources::new(4, 1, 1), 9)]), 3);
        // Three GPUs each: one a worker; what is left takes a single GPU each.
        assert_eq!(needed(&[(Resources::new(4, 1, 3), 2), (Resources::new(4, 1, 1), 2)]), 2);
        // Memory is what is short: two fill a worker, the third stands beside seven small ones, which take the last core.
        assert_eq!(needed(&[(Resources::new(8, 1, 0), 3), (Resources::new(1, 1, 0), 7)]), 2);
        assert_eq!(needed(&[(Resources::new(8, 1, 0), 3), (Resources::new(1, 1, 0), 8)]), 3);
        assert_eq!(needed(&[(Resources::new(17, 1, 0), 3)]), 0, "fits no worker");
    }
}
