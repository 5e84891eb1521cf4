//! The leaf queues of a scenario, from as written to as meant.

use super::{Queue, QueueOrdering, spec::QueueSpec};
use crate::{
    policy::{checker::Checker, field::Field, spans::Path},
    sim::workload::check::each,
};

/// YARN's `maximum-am-resource-percent` where nothing is configured.
const MASTER_SHARE: f64 = 0.1;

/// How far from 100 percentages may add up: YARN's own tolerance (`AbstractCSQueue`, 0.0005 of 1).
const TOLERANCE: f64 = 0.05;

/// A queue whose capacity may not be written.
struct Leaf {
    name: String,
    capacity: Option<f64>,
    max_capacity: f64,
    max_master_share: f64,
    ordering: QueueOrdering,
}

/// The leaf queues; one, `default`, where none is written.
pub fn queues(c: &mut Checker<'_>, path: &Path, field: &Field<Vec<Field<QueueSpec>>>) -> Option<Vec<Queue>> {
    if matches!(field, Field::Absent) {
        return Some(vec![Queue {
            name: "default".into(),
            capacity: 1.0,
            max_capacity: 1.0,
            max_master_share: MASTER_SHARE,
            ordering: QueueOrdering::Fifo,
        }]);
    }
    if matches!(field, Field::Value(queues) if queues.is_empty()) {
        c.out_of_range(path, "a list of at least one queue", "none");
    }
    let written = field.value().map_or(0, Vec::len);
    let leaves = each(c, path, field, leaf);
    // One that is wrong itself has been told of; what the others add up to is not known.
    if leaves.len() != written || leaves.is_empty() {
        return None;
    }
    for (index, leaf) in leaves.iter().enumerate() {
        if leaves[..index].iter().any(|other| other.name == leaf.name) {
            let path = path.index(index).key("name");
            c.error("duplicate-name", &path, format!("`{path}`: there are two queues `{}`", leaf.name), |error| error);
        }
    }
    capacities(c, path, &leaves)
}

fn leaf(c: &mut Checker<'_>, path: &Path, spec: &QueueSpec) -> Option<Leaf> {
    let name = c.require(&path.key("name"), &spec.name);
    if let Some(name) = name.as_deref().filter(|name| name.is_empty() || name.contains('.')) {
        let message = format!("`{path}.name` is no name of a leaf queue, found `{name}`");
        c.error("invalid-name", &path.key("name"), message, |error| error.help("write it without `root.`"));
    }
    let mut percent = |name: &str, field: &Field<f64>| match field {
        Field::Absent => Some(None),
        _ => c.number(&path.key(name), field, 0.0..=100.0).map(Some),
    };
    let capacity = percent("capacity", &spec.capacity);
    let max_capacity = percent("maximumCapacity", &spec.maximum_capacity);
    let share = share(c, &path.key("maximumAmResourcePercent"), &spec.maximum_am_resource_percent);
    let ordering = c.read(&path.key("orderingPolicy"), &spec.ordering_policy).unwrap_or(QueueOrdering::Fifo);
    let (capacity, max_capacity) = (capacity?, max_capacity?.unwrap_or(100.0));
    if let Some(capacity) = capacity.filter(|capacity| *capacity > max_capacity) {
        let span = c.spans.place(&path.key("maximumCapacity")).value;
        let message = format!("`{path}.capacity` ({capacity}) is greater than `maximumCapacity` ({max_capacity})");
        c.error("min-above-max", &path.key("capacity"), message, |error| error.also(span, "the maximum is set here"));
    }
    Some(Leaf { name: name?, capacity, max_capacity, max_master_share: share?, ordering })
}

fn share(c: &mut Checker<'_>, path: &Path, field: &Field<f64>) -> Option<f64> {
    let Some(share) = c.read(path, field) else { return Some(MASTER_SHARE) };
    if !(0.0..=1.0).contains(&share) {
        let message = format!("`{path}` must be between 0 and 1, found {share}");
        c.error("out-of-range", path, message, |error| {
            error.label("must be between 0 and 1").help("YARN writes it as a fraction: 0.1 is 10 %")
        });
        return None;
    }
    Some(share)
}

/// What is not written shares what the others leave; all of them make 100.
fn capacities(c: &mut Checker<'_>, path: &Path, leaves: &[Leaf]) -> Option<Vec<Queue>> {
    let written: f64 = leaves.iter().filter_map(|leaf| leaf.capacity).sum();
    let open = leaves.iter().filter(|leaf| leaf.capacity.is_none()).count();
    let is_whole = (written - 100.0).abs() <= TOLERANCE;
    if (open == 0 && !is_whole) || written > 100.0 + TOLERANCE {
        let message = format!("the capacities of `{path}` add up to {written}, not to 100");
        let span = c.spans.place(path).key;
        c.error("capacities", path, message, |error| crate::policy::Diagnostic { span, ..error });
        return None;
    }
    let rest = (100.0 - written).max(0.0) / f64::from(u32::try_from(open.max(1)).unwrap_or(1));
    let queues = leaves.iter().map(|leaf| Queue {
        name: leaf.name.clone(),
        capacity: leaf.capacity.unwrap_or(rest) / 100.0,
        max_capacity: leaf.max_capacity / 100.0,
        max_master_share: leaf.max_master_share,
        ordering: leaf.ordering,
    });
    Some(queues.collect())
}
