//! From Dataproc's description of a cluster to capacity: groups, workers, what one of them is, and whether orders are
//! taken. Pure.

use std::collections::BTreeMap;

use super::{
    Target,
    cluster::{Cluster, WorkerGroup},
};
use crate::{
    cloud::{WorkerNames, machine_type},
    google::printable,
    model::{Capabilities, Capacity, Group, GroupName, Instance, InstanceState, Readiness, Resources, WorkerTemplate},
    ports::PortError,
};

/// What exists, by what Dataproc says of the cluster.
///
/// # Errors
/// YARN's names for the workers need a zone, and none is said.
pub(super) fn capacity(
    cluster: &Cluster,
    target: &Target,
    names: &WorkerNames,
    capabilities: Capabilities,
) -> Result<Capacity, PortError> {
    let mut groups = BTreeMap::new();
    for name in GroupName::ALL.into_iter().filter(|name| exists(cluster, *name)) {
        let instances = instances(cluster, name, target, names)?;
        groups.insert(name, Group { template: template(cluster, name), instances });
    }
    let identity = (!cluster.uuid.is_empty()).then(|| cluster.uuid.clone());
    Ok(Capacity { capabilities, groups, identity, readiness: readiness(cluster, target) })
}

/// Whether a group can have workers. Dataproc leaves `secondaryWorkerConfig` out, or its `numInstances`, where there
/// are no secondary workers, and takes an order for some all the same; so they can grow from nothing. A cluster of one
/// node has no primary workers and takes no orders for any; one of secondary workers alone says so.
fn exists(cluster: &Cluster, name: GroupName) -> bool {
    let has_workers = |name| cluster.group(name).is_some_and(|group| group.size > 0 || !group.names.is_empty());
    match name {
        GroupName::Primary => has_workers(name),
        GroupName::Secondary => cluster.is_zero_scale || has_workers(GroupName::Primary) || has_workers(name),
    }
}

/// The workers that are listed, and as many more as were asked for: the order for secondary workers ends before they
/// exist, and those that are not counted would be ordered again.
///
/// Where fewer were asked for than are listed, some are about to go, and nobody says which: all are shown.
fn instances(
    cluster: &Cluster,
    name: GroupName,
    target: &Target,
    names: &WorkerNames,
) -> Result<Vec<Instance>, PortError> {
    let Some(WorkerGroup { size, names: listed, .. }) = cluster.group(name) else { return Ok(Vec::new()) };
    let state = state_of_workers(&cluster.state);
    let mut instances = Vec::new();
    for worker in listed {
        let host = names.host(worker, &cluster.zone);
        if host.contains("..") || host.ends_with('.') {
            let text =
                format!("Dataproc does not say the zone of `{}`, and YARN's names have it in them", target.cluster);
            return Err(PortError::transient(text));
        }
        instances.push(Instance { name: worker.clone(), host, state });
    }
    let missing = usize::try_from(*size).unwrap_or(usize::MAX).saturating_sub(listed.len());
    for number in 1..=missing {
        let made_up = format!("{}{number}", promised(name, target));
        instances.push(Instance { host: made_up.clone(), name: made_up, state: InstanceState::Promised });
    }
    Ok(instances)
}

/// How the made-up names begin of workers that are promised; Dataproc's own are `C-w-0` and `C-sw-abcd`.
fn promised(group: GroupName, target: &Target) -> String {
    let infix = if group == GroupName::Primary { "w" } else { "sw" };
    format!("{}-{infix}-promised-", target.cluster)
}

/// Whether this name was made up for a worker that is promised.
pub(super) fn is_promised(name: &str, target: &Target) -> bool {
    GroupName::ALL.into_iter().any(|group| name.starts_with(&promised(group, target)))
}

/// What a worker is worth while its cluster is in this state; YARN tells what it is worth in truth.
fn state_of_workers(state: &str) -> InstanceState {
    match state {
        "CREATING" | "STARTING" | "SCHEDULED" => InstanceState::Provisioning,
        "DELETING" | "STOPPING" => InstanceState::Stopping,
        "STOPPED" => InstanceState::Failed,
        _ => InstanceState::Running,
    }
}

/// Whether the cluster takes orders. `RUNNING` does, also where its substate is `UNHEALTHY` or `STALE_STATUS`: those
/// speak of what runs on it.
pub(super) fn readiness(cluster: &Cluster, target: &Target) -> Readiness {
    let Target { region, cluster: name, .. } = target;
    let detail = if cluster.detail.is_empty() { String::new() } else { format!(" ({})", cluster.detail) };
    let is = format!("cluster {name} is {}{detail}", cluster.state);
    let held = match cluster.state.as_str() {
        "RUNNING" | "UPDATING" | "REPAIRING" | "CREATING" | "STARTING" | "STOPPING" => None,
        "ERROR_DUE_TO_UPDATE" => Some(format!(
            "{is}; it runs jobs and takes no more updates until it is repaired (by a gcloud newer than 528.0.0): gcloud dataproc clusters repair {name} \
             --region={region} --cluster-repair-action=REPAIR_ERROR_DUE_TO_UPDATE_CLUSTER"
        )),
        _ => Some(is.clone()),
    };
    let rival = cluster.policy_uri.as_ref().map(|uri| rival(uri, target));
    match (held, rival) {
        (Some(why), _) | (None, Some(why)) => Readiness::Held { why },
        _ if cluster.state == "RUNNING" => Readiness::Ready,
        _ => Readiness::Busy { what: is },
    }
}

/// Two autoscalers on one cluster undo what the other did.
pub(super) fn rival(policy_uri: &str, Target { region, cluster, .. }: &Target) -> String {
    format!(
        "Dataproc scales cluster {cluster} itself, by its policy {}; detach it: gcloud dataproc clusters update {cluster} \
         --region {region} --disable-autoscaling",
        printable(policy_uri)
    )
}

/// What one worker of a group is, also of one without workers; `None` where the type is not known, or one of several.
fn template(cluster: &Cluster, name: GroupName) -> Option<WorkerTemplate> {
    let (own, primary) = (cluster.group(name), cluster.primary.as_ref());
    if own.is_some_and(|own| own.is_mixed) {
        return None;
    }
    let is_said = |machine_type: &&str| !machine_type.is_empty();
    let of_primary = primary.map(|primary| primary.machine_type.as_str()).filter(is_said);
    // Secondary workers are as the primary ones unless said otherwise.
    let machine_type = own.map(|own| own.machine_type.as_str()).filter(is_said).or(of_primary);
    let machine = machine_type.and_then(machine_type::machine);
    let like_primary = machine_type == of_primary;
    let attached = own.and_then(|own| own.gpus).or_else(|| primary.filter(|_| like_primary)?.gpus);
    let built_in = machine.map(|machine| machine.gpus).filter(|gpus| *gpus > 0);
    let memory_mb =
        cluster.memory_mb.or_else(|| machine.map(|machine| machine_type::yarn_memory_mb(machine.memory_mb)))?;
    let vcores = cluster.vcores.or_else(|| machine.map(|machine| machine.vcores))?;
    let resources = Resources::new(memory_mb, vcores, built_in.or(attached).unwrap_or(0));
    // Dataproc says nothing of how long a worker takes to come.
    Some(WorkerTemplate { resources, boot_time: None })
}
