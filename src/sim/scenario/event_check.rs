//! What goes wrong in a scenario, from as written to as meant: each kind takes its own fields, and no others.

use std::time::Duration;

use super::{
    Fault, FaultEvent,
    check::Groups,
    shapes::StepSpec,
    spec::{EventKind, EventSpec},
};
use crate::{
    model::GroupName,
    policy::{checker::Checker, duration, field::Field, spans::Path},
    sim::workload::check::{LONGEST, each},
};

/// What goes wrong, in the order of time.
pub fn events(
    c: &mut Checker<'_>,
    path: &Path,
    field: &Field<Vec<Field<EventSpec>>>,
    groups: Option<&Groups>,
    end: Option<Duration>,
) -> Vec<FaultEvent> {
    let mut events = each(c, path, field, |c, path, spec: &EventSpec| {
        let at = time(c, &path.key("at"), &spec.at);
        let kind = c.require(&path.key("kind"), &spec.kind)?;
        strangers(c, path, spec, kind);
        let lasts = match kind {
            EventKind::MachinesDie | EventKind::ClockStep => Some(Duration::ZERO),
            _ => time(c, &path.key("lasts"), &spec.lasts),
        };
        let fault = fault(c, path, spec, kind, groups);
        let at = at?;
        if let Some(end) = end.filter(|end| at >= *end) {
            let message = format!("`{path}` comes after the end of the scenario ({})", duration::format(end));
            c.warn("after-the-end", &path.key("at"), message, |warning| warning.help("see `duration`"));
        }
        Some(FaultEvent { at, lasts: lasts?, fault: fault? })
    });
    events.sort_by_key(|event| event.at);
    events
}

/// The field that a kind takes beside `at` and `lasts`.
fn own_field(kind: EventKind) -> Option<&'static str> {
    match kind {
        EventKind::SlowBoots => Some("factor"),
        EventKind::DriverFailure | EventKind::BootFailure => Some("share"),
        EventKind::StockOut => Some("group"),
        EventKind::Throttled => Some("retryAfter"),
        EventKind::MachinesDie | EventKind::NodesUnhealthy => Some("count"),
        EventKind::ClockStep => Some("by"),
        EventKind::ControllerCrash => Some("step"),
        EventKind::ResourceManagerTimeout
        | EventKind::ResourceManagerStale
        | EventKind::ResourceManagerPartial
        | EventKind::ResourceManagerRestart
        | EventKind::CloudErrors
        | EventKind::LostAcknowledgements => None,
    }
}

/// Reports fields of other kinds: they would do nothing.
fn strangers(c: &mut Checker<'_>, path: &Path, spec: &EventSpec, kind: EventKind) {
    let is_instant = matches!(kind, EventKind::MachinesDie | EventKind::ClockStep);
    let written = [
        ("lasts", !matches!(spec.lasts, Field::Absent), !is_instant),
        ("factor", !matches!(spec.factor, Field::Absent), false),
        ("share", !matches!(spec.share, Field::Absent), false),
        ("group", !matches!(spec.group, Field::Absent), false),
        ("retryAfter", !matches!(spec.retry_after, Field::Absent), false),
        ("count", !matches!(spec.count, Field::Absent), false),
        ("by", !matches!(spec.by, Field::Absent), false),
        ("step", !matches!(spec.step, Field::Absent), false),
    ];
    for (name, is_written, is_taken) in written {
        if is_written && !is_taken && own_field(kind) != Some(name) {
            let message = match name {
                "lasts" => format!("`{path}` is an instant and takes no `lasts`"),
                _ => format!("`{path}` is of a kind that takes no `{name}`"),
            };
            c.error("not-of-this-kind", &path.key(name), message, |error| error.help("remove it"));
        }
    }
}

fn fault(
    c: &mut Checker<'_>,
    path: &Path,
    spec: &EventSpec,
    kind: EventKind,
    groups: Option<&Groups>,
) -> Option<Fault> {
    Some(match kind {
        EventKind::ResourceManagerTimeout => Fault::ResourceManagerTimeout,
        EventKind::ResourceManagerStale => Fault::ResourceManagerStale,
        EventKind::ResourceManagerPartial => Fault::ResourceManagerPartial,
        EventKind::ResourceManagerRestart => Fault::ResourceManagerRestart,
        EventKind::CloudErrors => Fault::CloudErrors,
        EventKind::LostAcknowledgements => Fault::LostAcknowledgements,
        EventKind::SlowBoots => {
            c.missing(&path.key("factor"), &spec.factor);
            Fault::SlowBoots(c.number(&path.key("factor"), &spec.factor, 0.01..=1000.0)?)
        }
        EventKind::DriverFailure => Fault::DriverFailure(share(c, path, &spec.share)?),
        EventKind::BootFailure => Fault::BootFailure(share(c, path, &spec.share)?),
        EventKind::StockOut => Fault::StockOut(group(c, &path.key("group"), &spec.group, groups)?),
        EventKind::Throttled => Fault::Throttled(match spec.retry_after {
            Field::Absent => None,
            _ => Some(time(c, &path.key("retryAfter"), &spec.retry_after)?),
        }),
        EventKind::MachinesDie => Fault::MachinesDie(count(c, path, spec)?),
        EventKind::NodesUnhealthy => Fault::NodesUnhealthy(count(c, path, spec)?),
        EventKind::ClockStep => {
            let StepSpec(by) = c.require(&path.key("by"), &spec.by)?;
            Fault::ClockStep(by)
        }
        EventKind::ControllerCrash => Fault::ControllerCrash(match spec.step {
            Field::Absent => 1,
            _ => c.count(&path.key("step"), &spec.step, 1)?,
        }),
    })
}

fn count(c: &mut Checker<'_>, path: &Path, spec: &EventSpec) -> Option<u32> {
    c.missing(&path.key("count"), &spec.count);
    c.count(&path.key("count"), &spec.count, 1)
}

fn share(c: &mut Checker<'_>, path: &Path, field: &Field<f64>) -> Option<f64> {
    match field {
        Field::Absent => Some(1.0),
        _ => c.number(&path.key("share"), field, 0.0..=1.0),
    }
}

fn group(c: &mut Checker<'_>, path: &Path, field: &Field<GroupName>, groups: Option<&Groups>) -> Option<GroupName> {
    let group = match field {
        Field::Absent => GroupName::Primary,
        _ => c.read(path, field)?,
    };
    if groups.is_some_and(|groups| !groups.contains_key(&group)) {
        let message = format!("`{path}`: `cloud` has no {group} workers");
        c.error("unknown-group", path, message, |error| error);
    }
    Some(group)
}

fn time(c: &mut Checker<'_>, path: &Path, field: &Field<crate::policy::spec::DurationSpec>) -> Option<Duration> {
    c.missing(path, field);
    c.duration(path, field, Duration::ZERO..=LONGEST)
}
