//! The answer to `clusters.get`, read leniently: what it may leave out is zero or none, what it must say is asked for.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::{Deserialize, Deserializer, de};

use crate::{google::printable, model::GroupName, ports::PortError};

/// Most workers of a group that are believed; a figure beyond it is a mistake, and would be as many made-up names.
const WORKERS_MAX: u32 = 100_000;

/// A cluster as it is described, as far as it matters here. Equal ones describe the same capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    /// Changes when a cluster is made anew under the same name.
    pub(super) uuid: String,
    /// `RUNNING`, `UPDATING`, …: Dataproc's word, also one that is not known here.
    pub(super) state: String,
    /// What Dataproc says beside it, for people.
    pub(super) detail: String,
    /// The short name; empty while none is chosen.
    pub(super) zone: String,
    /// The autoscaling policy of Dataproc's own that is attached.
    pub(super) policy_uri: Option<String>,
    /// `softwareConfig.properties` that say what a NodeManager declares.
    pub(super) memory_mb: Option<u64>,
    pub(super) vcores: Option<u64>,
    /// Whether it has secondary workers alone (`clusterType`).
    pub(super) is_zero_scale: bool,
    /// `None`: the answer has no such group.
    pub(super) primary: Option<WorkerGroup>,
    pub(super) secondary: Option<WorkerGroup>,
}

/// `workerConfig` or `secondaryWorkerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WorkerGroup {
    /// `numInstances`: what was asked for.
    pub(super) size: u32,
    /// The machines that are there, by name.
    pub(super) names: Vec<String>,
    /// The short name of the machine type; empty where it is not said.
    pub(super) machine_type: String,
    /// Whether a machine may be of one type or of another (`instanceFlexibilityPolicy`).
    pub(super) is_mixed: bool,
    /// Of `accelerators`, added up; `None` where none are listed.
    pub(super) gpus: Option<u64>,
    /// `NON_PREEMPTIBLE`, `PREEMPTIBLE`, `SPOT`; empty where it is not said.
    pub(super) preemptibility: String,
}

impl fmt::Display for WorkerGroup {
    /// What its workers are, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |word: &str| if word.is_empty() { "not said".to_owned() } else { word.to_owned() };
        let mixed = if self.is_mixed { " and others" } else { "" };
        let (machine_type, preemptibility) = (said(&self.machine_type), said(&self.preemptibility));
        write!(f, "machine type {machine_type}{mixed}, preemptibility {preemptibility}")?;
        self.gpus.map_or(Ok(()), |gpus| write!(f, ", GPUs attached to each: {gpus}"))
    }
}

impl Cluster {
    pub(super) fn group(&self, name: GroupName) -> Option<&WorkerGroup> {
        match name {
            GroupName::Primary => self.primary.as_ref(),
            GroupName::Secondary => self.secondary.as_ref(),
        }
    }

    /// The size that was asked for last; 0 of a group that the answer does not have.
    pub(super) fn size(&self, name: GroupName) -> u32 {
        self.group(name).map_or(0, |group| group.size)
    }

    /// What the service said about the cluster of this name.
    ///
    /// # Errors
    /// It is about another one, or lacks what must be there: missing is not zero.
    pub(super) fn read(wire: WireCluster, name: &str) -> Result<Self, PortError> {
        let WireCluster { cluster_name, cluster_uuid, status, config } = wire;
        let lacks = |what: &str| PortError::transient(format!("what Dataproc says of cluster `{name}` lacks {what}"));
        match cluster_name {
            Some(said) if said == name => {}
            Some(said) => {
                let text = format!("Dataproc was asked for cluster `{name}` and spoke of `{}`", printable(&said));
                return Err(PortError::transient(text));
            }
            None => return Err(lacks("`clusterName`")),
        }
        let WireStatus { state, detail } = status.unwrap_or_default();
        let state = state.filter(|state| !state.is_empty()).ok_or_else(|| lacks("`status.state`"))?;
        let config = config.ok_or_else(|| lacks("`config`"))?;
        let group = |field: &str, group: Option<WireGroup>| {
            group.map(WireGroup::read).transpose().map_err(|why| {
                PortError::transient(format!("what Dataproc says of cluster `{name}`: config.{field}{why}"))
            })
        };
        let property =
            |name: &str| config.software_config.as_ref()?.properties.as_ref()?.get(name)?.trim().parse().ok();
        let (memory_mb, vcores) = (
            property("yarn:yarn.nodemanager.resource.memory-mb"),
            property("yarn:yarn.nodemanager.resource.cpu-vcores"),
        );
        Ok(Self {
            uuid: cluster_uuid.unwrap_or_default(),
            state: printable(&state),
            detail: printable(&detail.unwrap_or_default()),
            zone: config.gce_cluster_config.and_then(|gce| gce.zone_uri).map(|uri| short(&uri)).unwrap_or_default(),
            policy_uri: config.autoscaling_config.and_then(|auto| auto.policy_uri).filter(|uri| !uri.is_empty()),
            memory_mb,
            vcores,
            is_zero_scale: config.cluster_type.as_deref() == Some("ZERO_SCALE"),
            primary: group("workerConfig", config.worker_config)?,
            secondary: group("secondaryWorkerConfig", config.secondary_worker_config)?,
        })
    }
}

/// The last word of a URL, of a resource's name or of a short name.
pub(super) fn short(uri: &str) -> String {
    uri.rsplit('/').next().unwrap_or_default().to_owned()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireCluster {
    cluster_name: Option<String>,
    cluster_uuid: Option<String>,
    status: Option<WireStatus>,
    config: Option<WireConfig>,
}

#[derive(Default, Deserialize)]
struct WireStatus {
    state: Option<String>,
    detail: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireConfig {
    cluster_type: Option<String>,
    gce_cluster_config: Option<WireGce>,
    autoscaling_config: Option<WireAutoscaling>,
    software_config: Option<WireSoftware>,
    worker_config: Option<WireGroup>,
    secondary_worker_config: Option<WireGroup>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGce {
    zone_uri: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAutoscaling {
    policy_uri: Option<String>,
}

#[derive(Deserialize)]
struct WireSoftware {
    properties: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireGroup {
    num_instances: Option<Count>,
    instance_names: Option<Vec<String>>,
    instance_references: Option<Vec<WireReference>>,
    machine_type_uri: Option<String>,
    accelerators: Option<Vec<WireAccelerator>>,
    preemptibility: Option<String>,
    is_preemptible: Option<bool>,
    instance_flexibility_policy: Option<WireFlexibility>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireFlexibility {
    instance_selection_list: Option<Vec<WireSelection>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireSelection {
    machine_types: Option<Vec<String>>,
}

impl WireFlexibility {
    /// The short names of all machine types that may be chosen.
    fn types(self) -> BTreeSet<String> {
        let selections = self.instance_selection_list.into_iter().flatten();
        selections.filter_map(|selection| selection.machine_types).flatten().map(|uri| short(&uri)).collect()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireReference {
    instance_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireAccelerator {
    accelerator_count: Option<Count>,
}

impl WireGroup {
    fn read(self) -> Result<WorkerGroup, String> {
        let size = self.num_instances.map_or(0, |Count(count)| count);
        let size = u32::try_from(size).ok().filter(|size| *size <= WORKERS_MAX);
        let size = size.ok_or(".numInstances is more than a cluster can have")?;
        let mut names = self.instance_names.unwrap_or_default();
        if names.is_empty() {
            let references = self.instance_references.unwrap_or_default();
            names = references.into_iter().filter_map(|reference| reference.instance_name).collect();
        }
        let mut seen = BTreeSet::new();
        for name in &names {
            // A worker's name ends up in YARN's exclude file.
            let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_".contains(&b));
            if !is_name || !seen.insert(name) {
                return Err(format!(".instanceNames has `{}`, which is no name, or has it twice", printable(name)));
            }
        }
        // Dataproc attaches nothing but GPUs this way.
        let accelerators = self.accelerators.filter(|accelerators| !accelerators.is_empty());
        let count = |of: &WireAccelerator| of.accelerator_count.as_ref().map_or(0, |Count(count)| *count);
        let gpus = accelerators.map(|listed| listed.iter().map(count).fold(0, u64::saturating_add));
        let mut types = self.instance_flexibility_policy.map(WireFlexibility::types).unwrap_or_default();
        let is_mixed = types.len() > 1;
        let machine_type = types.pop_first().or_else(|| self.machine_type_uri.map(|uri| short(&uri)));
        let preemptible = self.is_preemptible.filter(|preemptible| *preemptible).map(|_| "PREEMPTIBLE".to_owned());
        let preemptibility = self.preemptibility.map(|word| printable(&word)).or(preemptible).unwrap_or_default();
        let machine_type = machine_type.unwrap_or_default();
        Ok(WorkerGroup { size, names, machine_type, is_mixed, gpus, preemptibility })
    }
}

/// A whole number, also as a text: JSON of protocol buffers has both.
#[derive(Clone, Copy, Debug)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CountVisitor)
    }
}

struct CountVisitor;

impl de::Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, as it is or as a text")
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<Count, E> {
        Ok(Count(count))
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Count, E> {
        u64::try_from(count).map(Count).map_err(|_| E::invalid_value(de::Unexpected::Signed(count), &self))
    }

    fn visit_f64<E: de::Error>(self, count: f64) -> Result<Count, E> {
        // 3.0 is a whole number, too.
        self.visit_str(&count.to_string())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Count, E> {
        text.trim().parse().map(Count).map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_workers_are_is_told_in_words() {
        for (wire, words) in [
            (
                r#"{"machineTypeUri":"zones/z/machineTypes/n1-standard-8","preemptibility":"SPOT","accelerators":[{"acceleratorCount":2}]}"#,
                "machine type n1-standard-8, preemptibility SPOT, GPUs attached to each: 2",
            ),
            (
                r#"{"machineTypeUri":"n2-standard-4","isPreemptible":true}"#,
                "machine type n2-standard-4, preemptibility PREEMPTIBLE",
            ),
            (r#"{"isPreemptible":false}"#, "machine type not said, preemptibility not said"),
        ] {
            let group: WireGroup = serde_json::from_str(wire).unwrap();
            assert_eq!(group.read().unwrap().to_string(), words);
        }
    }
}
