//! What Compute Engine says of a managed instance group, its machines and their template, and what of that counts here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    address::GroupAddress,
    failure::{self, WireErrors},
};
use crate::{
    cloud::{WorkerNames, machine_type},
    model::{Instance, InstanceState, Readiness, Resources, WorkerTemplate},
    ports::PortError,
};

/// `GET …/instanceGroupManagers/G`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireGroup {
    pub(super) base_instance_name: String,
    pub(super) target_size: Option<u32>,
    instance_template: Option<String>,
    #[serde(default)]
    versions: Vec<WireVersion>,
    #[serde(default)]
    status: WireStatus,
    #[serde(default)]
    update_policy: WireUpdatePolicy,
    #[serde(default)]
    instance_flexibility_policy: WireFlexibility,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireVersion {
    instance_template: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct WireStatus {
    autoscaler: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireUpdatePolicy {
    instance_redistribution_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireFlexibility {
    instance_selections: BTreeMap<String, serde_json::Value>,
}

impl WireGroup {
    /// The template of its machines; `None` where they may be of several kinds.
    pub(super) fn template(&self) -> Option<&str> {
        if !self.instance_flexibility_policy.instance_selections.is_empty() || self.versions.len() > 1 {
            return None;
        }
        let of_version = || self.versions.first()?.instance_template.as_deref();
        self.instance_template.as_deref().or_else(of_version)
    }

    /// Whether somebody else changes the group's size or takes workers that nobody has drained.
    pub(super) fn readiness(&self, address: &GroupAddress) -> Readiness {
        let of = address.for_gcloud();
        if let Some(autoscaler) = &self.status.autoscaler {
            let autoscaler = autoscaler.rsplit('/').next().unwrap_or_default();
            let why = format!(
                "the instance group {address} has an autoscaler of its own, `{autoscaler}`, which would undo every \
                 order: `gcloud compute instance-groups managed stop-autoscaling {of}`"
            );
            return Readiness::Held { why };
        }
        if self.update_policy.instance_redistribution_type == "PROACTIVE" {
            let why = format!(
                "the instance group {address} moves machines between zones by itself, and ends what runs on them: \
                 `gcloud compute instance-groups managed update {of} --instance-redistribution-type none`"
            );
            return Readiness::Held { why };
        }
        Readiness::Ready
    }
}

/// A page of `POST …/listManagedInstances`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WirePage {
    #[serde(default)]
    pub(super) managed_instances: Vec<WireManaged>,
    pub(super) next_page_token: Option<String>,
}

/// One machine of a group.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireManaged {
    instance: Option<String>,
    name: Option<String>,
    #[serde(default)]
    instance_status: String,
    current_action: Option<String>,
    #[serde(default)]
    last_attempt: WireAttempt,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireAttempt {
    errors: WireErrors,
}

/// One machine of a group, as meant.
#[derive(Debug)]
pub(super) struct Managed {
    pub(super) name: String,
    /// `None`: the group has not chosen one yet.
    zone: Option<String>,
    state: InstanceState,
    /// The group is still trying to make it, for the first time.
    pub(super) is_being_made: bool,
    /// Why the last attempt to do something with it failed.
    pub(super) failure: Option<PortError>,
}

impl Managed {
    /// # Errors
    /// [`PortError::transient`]: what must be there is not.
    pub(super) fn of(wire: WireManaged, address: &GroupAddress) -> Result<Self, PortError> {
        let WireManaged { instance, name, instance_status, current_action, last_attempt } = wire;
        let place = instance.as_deref().and_then(place_of).unzip();
        let lacks =
            |what: &str| PortError::transient(format!("a machine of the instance group {address} has no {what}"));
        let name = name.filter(|name| !name.is_empty()).or(place.1).ok_or_else(|| lacks("name"))?;
        let action = current_action.ok_or_else(|| lacks(&format!("currentAction (`{name}`)")))?;
        let is_being_made = action.starts_with("CREATING");
        let failure = last_attempt.errors.failure();
        let zone = place.0.or_else(|| address.zone().map(str::to_owned));
        let state = if zone.is_none() { InstanceState::Promised } else { state(&action, &instance_status) };
        Ok(Self { name, zone, state, is_being_made, failure })
    }

    /// As `deleteInstances` takes it; `None`: it cannot be deleted yet.
    pub(super) fn relative_url(&self) -> Option<String> {
        self.zone.as_deref().map(|zone| format!("zones/{zone}/instances/{}", self.name))
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.state == InstanceState::Stopping
    }

    /// Why it is not coming soon: the group tries to make it, in vain, or has given it up.
    pub(super) fn given_up(&self) -> Option<&PortError> {
        let failure = self.failure.as_ref().filter(|_| self.is_being_made || self.is_leaving())?;
        (!failure::passes_soon(failure.kind)).then_some(failure)
    }

    pub(super) fn into_instance(self, names: &WorkerNames) -> Instance {
        let host = names.host(&self.name, self.zone.as_deref().unwrap_or_default());
        Instance { host, name: self.name, state: self.state }
    }
}

/// Zone and name by `…/zones/Z/instances/N`.
fn place_of(url: &str) -> Option<(String, String)> {
    let (_, place) = url.split_once("zones/")?;
    let (zone, name) = place.split_once("/instances/")?;
    (!zone.is_empty() && !name.is_empty()).then(|| (zone.to_owned(), name.to_owned()))
}

/// What a machine is worth by what its group does with it, and by its own state.
fn state(action: &str, status: &str) -> InstanceState {
    match action {
        // Also in vain, so far: the order that asked for it withdraws it, and a worker that is late is replaced.
        "CREATING" | "CREATING_WITHOUT_RETRIES" | "CREATING_ATOMICALLY" => InstanceState::Provisioning,
        // Another machine comes, or the same one boots anew, under the same name.
        "RECREATING" | "RESTARTING" | "RESUMING" | "STARTING" => InstanceState::Provisioning,
        "DELETING" | "ABANDONING" => InstanceState::Stopping,
        "STOPPING" | "SUSPENDING" => InstanceState::Failed,
        // NONE, VERIFYING, REFRESHING, and what Compute Engine may yet invent.
        _ => match status {
            "RUNNING" => InstanceState::Running,
            "PENDING" | "PROVISIONING" | "STAGING" => InstanceState::Provisioning,
            "DEPROVISIONING" => InstanceState::Stopping,
            // STOPPING, STOPPED, SUSPENDED, TERMINATED, REPAIRING, or no machine at all.
            _ => InstanceState::Failed,
        },
    }
}

/// `GET …/instanceTemplates/T`
#[derive(Debug, Deserialize)]
pub(super) struct WireTemplate {
    properties: WireProperties,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireProperties {
    machine_type: String,
    #[serde(default)]
    guest_accelerators: Vec<WireAccelerator>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAccelerator {
    accelerator_count: u32,
}

/// Of a machine's memory, so much is what its NodeManager declares, unless somebody says otherwise: what YARN itself
/// takes where it detects the hardware, and what Dataproc gives it, about.
const YARN_MEMORY_PERCENT: u64 = 80;

impl WireTemplate {
    /// What a NodeManager on such a machine declares, as far as the machine tells; `None`: the type is not known here.
    pub(super) fn as_meant(&self) -> Option<WorkerTemplate> {
        let machine = machine_type::machine(&self.properties.machine_type)?;
        // A type that has GPUs of its own may name them again in its template.
        let added = self.properties.guest_accelerators.iter().map(|added| u64::from(added.accelerator_count)).sum();
        let gpus = if machine.gpus > 0 { machine.gpus } else { added };
        let resources = Resources::new(machine.memory_mb * YARN_MEMORY_PERCENT / 100, machine.vcores, gpus);
        Some(WorkerTemplate { resources, boot_time: None })
    }
}

/// An operation, as an order's answer or when it is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct WireOperation {
    pub(super) name: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) error: WireErrors,
}

/// The body of `createInstances`.
#[derive(Debug, Serialize)]
pub(super) struct WireCreate<'a> {
    pub(super) instances: Vec<WireNewInstance<'a>>,
}

/// A machine to be made.
#[derive(Debug, Serialize)]
pub(super) struct WireNewInstance<'a> {
    pub(super) name: &'a str,
}

/// The body of `deleteInstances`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireDelete {
    pub(super) instances: Vec<String>,
    /// Those that are gone meanwhile are no reason to keep the others.
    pub(super) skip_instances_on_validation_error: bool,
}
