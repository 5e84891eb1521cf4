//! The cloud of a scenario, from as written to as meant.

use std::time::Duration;

use super::{
    CloudGroup, CloudModel, Delay,
    check::{Groups, delay},
    spec::{CloudGroupSpec, CloudSpec},
};
use crate::{
    model::GroupName,
    policy::{checker::Checker, duration, field::Field, spans::Path, spec::DurationSpec},
    sim::workload::check::{LONGEST, container, time},
};

/// From an order to a machine that is up, where nothing is written: what public clouds need for one without GPUs.
const MACHINE_START: Duration = Duration::from_secs(20);

/// From an order to a worker's registration, where nothing is written: a machine, its image's start, GPU drivers.
const BOOT: Duration = Duration::from_secs(180);

/// Most workers of a group at the start: each is a node that the simulator keeps.
const MANY: u32 = 100_000;

/// Where machines come from.
pub fn cloud(c: &mut Checker<'_>, path: &Path, spec: &CloudSpec) -> Option<CloudModel> {
    let overlaps = c.read(&path.key("overlappingOperations"), &spec.overlapping_operations).unwrap_or(false);
    let deletes_named = c.read(&path.key("deletesNamed"), &spec.deletes_named).unwrap_or(true);
    let create_time = optional(c, &path.key("createTime"), &spec.create_time);
    let delete_time = time(c, &path.key("deleteTime"), &spec.delete_time, Duration::from_secs(30));
    let list_lag = time(c, &path.key("listLag"), &spec.list_lag, Duration::ZERO);
    let minimum_billed = time(c, &path.key("minimumBilled"), &spec.minimum_billed, Duration::from_secs(60));
    let quota = quota(c, &path.key("quota"), &spec.quota);
    let primary = c.require(&path.key("primary"), &spec.primary);
    let primary = primary.map(|spec| group(c, &path.key("primary"), &spec, 2));
    let secondary = c.read(&path.key("secondary"), &spec.secondary);
    let secondary = secondary.map(|spec| group(c, &path.key("secondary"), &spec, 0));
    let mut groups = Groups::from([(GroupName::Primary, primary??)]);
    if let Some(secondary) = secondary {
        groups.insert(GroupName::Secondary, secondary?);
    }
    within_quota(c, path, quota?, &groups);
    let machine_start = machine_start(c, &path.key("machineStart"), &spec.machine_start, &groups);
    Some(CloudModel {
        overlaps,
        deletes_named,
        machine_start: machine_start?,
        create_time: create_time?,
        delete_time: delete_time?,
        list_lag: list_lag?,
        minimum_billed: minimum_billed?,
        quota: quota?,
        groups,
    })
}

fn group(c: &mut Checker<'_>, path: &Path, spec: &CloudGroupSpec, usual: u32) -> Option<CloudGroup> {
    c.missing(&path.key("worker"), &spec.worker);
    let worker = container(c, &path.key("worker"), &spec.worker);
    let quota = quota(c, &path.key("quota"), &spec.quota);
    let initial = match spec.initial {
        Field::Absent => Some(usual.min(quota.flatten().unwrap_or(usual))),
        _ => c.count(&path.key("initial"), &spec.initial, 0),
    };
    if let Some(initial) = initial.filter(|initial| *initial > MANY) {
        c.out_of_range(&path.key("initial"), &format!("at most {MANY}"), initial);
    }
    if let (Some(initial), Some(Some(quota))) = (initial, quota)
        && initial > quota
    {
        let span = c.spans.place(&path.key("quota")).value;
        let message = format!("`{path}.initial` ({initial}) is more than `{path}.quota` ({quota})");
        c.error("above-quota", &path.key("initial"), message, |error| error.also(span, "the quota is set here"));
    }
    let boot = match spec.boot_time {
        Field::Absent => Some(Delay::Fixed(BOOT)),
        _ => delay(c, &path.key("bootTime"), &spec.boot_time),
    };
    let price = match spec.price_per_hour {
        Field::Absent => Some(1.0),
        _ => c.number(&path.key("pricePerHour"), &spec.price_per_hour, 0.0..=1e9),
    };
    let lifetime = match spec.mean_lifetime {
        Field::Absent => Some(None),
        _ => c.duration(&path.key("meanLifetime"), &spec.mean_lifetime, Duration::from_secs(1)..=LONGEST).map(Some),
    };
    Some(CloudGroup {
        worker: worker?,
        initial: initial?,
        boot: boot?,
        price_per_hour: price?,
        quota: quota?,
        mean_lifetime: lifetime?,
    })
}

fn within_quota(c: &mut Checker<'_>, path: &Path, quota: Option<u32>, groups: &Groups) {
    let initial: u64 = groups.values().map(|group| u64::from(group.initial)).sum();
    if let Some(quota) = quota.filter(|quota| u64::from(*quota) < initial) {
        let path = path.key("quota");
        let message = format!("`{path}` ({quota}) is less than the workers at the start ({initial})");
        c.error("above-quota", &path, message, |error| error);
    }
}

/// The time until a machine is billed is part of its boot.
fn machine_start(c: &mut Checker<'_>, path: &Path, field: &Field<DurationSpec>, groups: &Groups) -> Option<Duration> {
    let shortest = groups.values().filter_map(|group| match &group.boot {
        Delay::Fixed(time) => Some(*time),
        Delay::List(times) => times.iter().min().copied(),
        // A tail can be as short as it likes; its median is a fair bound.
        Delay::Tail { median, .. } => Some(*median),
    });
    let shortest = shortest.min().unwrap_or(BOOT);
    let start = time(c, path, field, MACHINE_START.min(shortest))?;
    if start > shortest {
        let message = format!(
            "`{path}` ({}) is longer than the shortest boot time ({})",
            duration::format(start),
            duration::format(shortest)
        );
        c.error("longer-than-boot", path, message, |error| error.help("it is the first part of the boot time"));
    }
    Some(start)
}

fn quota(c: &mut Checker<'_>, path: &Path, field: &Field<i64>) -> Option<Option<u32>> {
    match field {
        Field::Absent => Some(None),
        _ => c.count(path, field, 0).map(Some),
    }
}

fn optional(c: &mut Checker<'_>, path: &Path, field: &Field<DurationSpec>) -> Option<Option<Duration>> {
    match field {
        Field::Absent => Some(None),
        _ => time(c, path, field, Duration::ZERO).map(Some),
    }
}
