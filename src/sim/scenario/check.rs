//! From a scenario as written to one as meant: defaults, bounds, and what hangs together across fields.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeZone, Utc};

use super::{
    CloudModel, ClusterModel, Delay, GangGranting, Placement, Scenario,
    cloud_check::cloud,
    event_check::events,
    expect,
    queue_check::queues,
    shapes::{DelaySpec, InstantSpec, TailSpec},
    spec::{ClusterSpec, ScenarioSpec},
};
use crate::{
    controller::Settings,
    model::{GroupName, Resources},
    policy::{checker::Checker, duration::DAY, field::Field, spans::Path, spec::DurationSpec},
    sim::workload::{
        self,
        check::{LONGEST, Surroundings, container, time},
        draw_check::tail,
    },
};

/// How long a scenario goes on after its last job: long enough for a cooldown, a drain and a deletion to be seen.
const SETTLE: Duration = Duration::from_secs(30 * 60);

/// What the file means; `None` where an error says why not.
pub fn check(c: &mut Checker<'_>, spec: &ScenarioSpec) -> Option<Scenario> {
    let root = Path::default();
    let name = c.read(&root.key("name"), &spec.name).unwrap_or_else(|| "scenario".into());
    let description = c.read(&root.key("description"), &spec.description).unwrap_or_default();
    let seed = seed(c, &root.key("seed"), &spec.seed);
    let start = match c.read(&root.key("start"), &spec.start) {
        Some(InstantSpec(start)) => Some(start),
        None => monday(),
    };
    let duration = duration(c, &root.key("duration"), &spec.duration);
    let settle = time(c, &root.key("settle"), &spec.settle, SETTLE);
    let settings = settings(c, spec);
    let policy = c.read(&root.key("policy"), &spec.policy);
    let cluster_spec = c.read(&root.key("cluster"), &spec.cluster).unwrap_or_default();
    let cluster = cluster(c, &root.key("cluster"), &cluster_spec);
    let cloud_spec = c.require(&root.key("cloud"), &spec.cloud);
    let cloud = cloud_spec.and_then(|spec| cloud(c, &root.key("cloud"), &spec));
    let groups = cloud.as_ref().map(|cloud| &cloud.groups);
    let around = Surroundings {
        queues: cluster.as_ref().map_or(&[], |cluster| &cluster.queues),
        workers: &groups.map_or(Vec::new(), |groups| groups.values().map(|group| group.worker).collect()),
        primary: groups.and_then(|groups| groups.get(&GroupName::Primary)).map(|group| group.worker),
        most: cloud.as_ref().and_then(most),
        end: duration,
    };
    let workload = c.require(&root.key("workload"), &spec.workload);
    let workload = workload.and_then(|spec| workload::check::check(c, &root.key("workload"), &spec, &around));
    let events = events(c, &root.key("events"), &spec.events, groups, duration);
    let expect = expect::check(c, &root.key("expect"), &spec.expect);
    Some(Scenario {
        name,
        description,
        seed: seed?,
        start: start?,
        duration,
        settle: settle?,
        settings: settings?,
        policy,
        cluster: cluster?,
        cloud: cloud?,
        workload: workload?,
        events,
        expect,
    })
}

/// What all workers that the quotas allow offer; `None` where a group has no limit.
fn most(cloud: &CloudModel) -> Option<Resources> {
    let groups = cloud.groups.values().map(|group| {
        let limits = [group.quota, cloud.quota].into_iter().flatten();
        limits.min().map(|most| group.worker.times(most.into()))
    });
    groups.sum()
}

fn seed(c: &mut Checker<'_>, path: &Path, field: &Field<i64>) -> Option<u64> {
    let Some(seed) = c.read(path, field) else { return Some(1) };
    let found = u64::try_from(seed);
    if found.is_err() {
        c.out_of_range(path, "0 or more", seed);
    }
    found.ok()
}

/// A Monday, so that weeks are whole.
fn monday() -> Option<DateTime<Utc>> {
    Utc.with_ymd_and_hms(2026, 1, 5, 0, 0, 0).single()
}

fn duration(c: &mut Checker<'_>, path: &Path, field: &Field<DurationSpec>) -> Option<Duration> {
    c.duration(path, field, Duration::from_secs(1)..=LONGEST)
}

/// As the command line of the daemon bounds them.
fn settings(c: &mut Checker<'_>, spec: &ScenarioSpec) -> Option<Settings> {
    let root = Path::default();
    let usual = Settings::default();
    let mut or = |name: &str, field: &Field<DurationSpec>, least: Duration, default: Duration| match field {
        Field::Absent => Some(default),
        _ => c.duration(&root.key(name), field, least..=DAY),
    };
    let poll_interval = or("pollInterval", &spec.poll_interval, Duration::from_secs(1), usual.poll_interval);
    let restart_hold = or("restartHold", &spec.restart_hold, Duration::ZERO, usual.restart_hold);
    let ready_deadline = or("readyDeadline", &spec.ready_deadline, Duration::from_secs(1), usual.ready_deadline);
    Some(Settings { poll_interval: poll_interval?, restart_hold: restart_hold?, ready_deadline: ready_deadline? })
}

/// From a master's start to its first ask. Measured on Hadoop 3.3.6, from the grant, so with the start of its container:
/// 1.6 to 2.3 s for a bare Java master, 2.5 to 4 s for TonY's; this and [`CONTAINER_START`] make 3 s.
const MASTER_START: Duration = Duration::from_secs(2);

/// From a grant to work. Measured on Hadoop 3.3.6: a shell script works 0.2 to 0.8 s after the last grant of its gang,
/// TonY's executors, each a JVM that registers with its master, after 2 s.
const CONTAINER_START: Duration = Duration::from_secs(1);

/// Defaults are YARN's, but for the smallest container: 1024 MB would round up what most GPU jobs ask for. That a
/// heartbeat, each second, hands out one container a node was seen on Hadoop 3.3.6: of 38 grants no two on one node were
/// less than 0.87 s apart. A drain of an idle node ends with its next heartbeat (measured: 0.01 to 0.9 s), as here.
fn cluster(c: &mut Checker<'_>, path: &Path, spec: &ClusterSpec) -> Option<ClusterModel> {
    let seconds = Duration::from_secs;
    let heartbeat = match spec.heartbeat {
        Field::Absent => Some(seconds(1)),
        _ => c.duration(&path.key("heartbeat"), &spec.heartbeat, Duration::from_millis(10)..=seconds(3600)),
    };
    let containers_per_heartbeat = match spec.containers_per_heartbeat {
        Field::Absent => Some(1),
        _ => c.count(&path.key("containersPerHeartbeat"), &spec.containers_per_heartbeat, 1),
    };
    let placement = c.read(&path.key("placement"), &spec.placement).unwrap_or(Placement::Spread);
    let gang_granting = c.read(&path.key("gangGranting"), &spec.gang_granting);
    let master_start = time(c, &path.key("masterStart"), &spec.master_start, MASTER_START);
    let container_start = time(c, &path.key("containerStart"), &spec.container_start, CONTAINER_START);
    let minimum_allocation = match spec.minimum_allocation {
        Field::Absent => Some(Resources::new(128, 1, 0)),
        _ => container(c, &path.key("minimumAllocation"), &spec.minimum_allocation),
    };
    let node_expiry = match spec.node_expiry {
        Field::Absent => Some(seconds(600)),
        _ => c.duration(&path.key("nodeExpiry"), &spec.node_expiry, seconds(1)..=DAY),
    };
    let queues = queues(c, &path.key("queues"), &spec.queues);
    Some(ClusterModel {
        heartbeat: heartbeat?,
        containers_per_heartbeat: containers_per_heartbeat?,
        placement,
        gang_granting: gang_granting.unwrap_or(GangGranting::ContainerByContainer),
        master_start: master_start?,
        container_start: container_start?,
        minimum_allocation: minimum_allocation?,
        node_expiry: node_expiry?,
        queues: queues?,
    })
}

/// How long something takes; `None` also where it is not written.
pub fn delay(c: &mut Checker<'_>, path: &Path, field: &Field<DelaySpec>) -> Option<Delay> {
    match c.read(path, field)? {
        DelaySpec::Fixed(time) => c.duration(path, &Field::Value(time), Duration::ZERO..=LONGEST).map(Delay::Fixed),
        DelaySpec::Tail(TailSpec { median, p95 }) => {
            let (median, p95) = tail(c, path, &median, &p95)?;
            Some(Delay::Tail { median: Duration::from_millis(median), p95: Duration::from_millis(p95) })
        }
        DelaySpec::List(items) => {
            if items.is_empty() {
                c.out_of_range(path, "a list of at least one duration", "none");
                return None;
            }
            let times = items.iter().enumerate().map(|(index, item)| {
                let path = path.index(index);
                if matches!(item, Field::Absent) {
                    c.error("wrong-type", &path, format!("`{path}` is empty"), |error| error);
                }
                c.duration(&path, item, Duration::ZERO..=LONGEST)
            });
            times.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Delay::List)
        }
    }
}

/// Worker groups by name.
pub type Groups = BTreeMap<GroupName, super::CloudGroup>;
