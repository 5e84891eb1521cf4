//! What the simulated cloud is like at its start.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};

/// GPUs of one machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpus {
    /// `nvidia-tesla-t4` …
    pub kind: String,
    /// How many in each machine.
    pub count: u32,
}

/// A cluster that is there from the start.
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    pub name: String,
    pub primaries: u32,
    pub secondaries: u32,
    pub machine_type: String,
    /// Of the primaries.
    pub primary_gpus: Option<Gpus>,
    /// Of the secondaries.
    pub secondary_gpus: Option<Gpus>,
    /// `NON_PREEMPTIBLE`, `PREEMPTIBLE` or `SPOT`.
    pub preemptibility: String,
}

impl ClusterSpec {
    /// Two primaries, no secondaries, a T4 in each machine.
    pub fn new(name: &str) -> Self {
        let gpus = Some(Gpus { kind: "nvidia-tesla-t4".into(), count: 1 });
        Self {
            name: name.into(),
            primaries: 2,
            secondaries: 0,
            machine_type: "n1-standard-8".into(),
            primary_gpus: gpus.clone(),
            secondary_gpus: gpus,
            preemptibility: "SPOT".into(),
        }
    }

    /// As a client would order it.
    pub fn order(&self, zone: &str) -> Value {
        let accelerators = |gpus: &Option<Gpus>| {
            let entry = |gpus: &Gpus| json!({"acceleratorTypeUri": gpus.kind, "acceleratorCount": gpus.count});
            gpus.iter().map(entry).collect::<Vec<_>>()
        };
        json!({
            "clusterName": self.name,
            "config": {
                "gceClusterConfig": {"zoneUri": zone},
                "masterConfig": {"numInstances": 1, "machineTypeUri": "n2-standard-4"},
                "workerConfig": {
                    "numInstances": self.primaries,
                    "machineTypeUri": self.machine_type,
                    "accelerators": accelerators(&self.primary_gpus),
                },
                "secondaryWorkerConfig": {
                    "numInstances": self.secondaries,
                    "machineTypeUri": self.machine_type,
                    "accelerators": accelerators(&self.secondary_gpus),
                    "preemptibility": self.preemptibility,
                },
                "softwareConfig": {"imageVersion": "2.2.63-debian12"},
            },
        })
    }
}

/// A managed instance group that is there from the start.
#[derive(Clone, Debug)]
pub struct GroupSpec {
    pub name: String,
    /// Of the region, with machines in two of its zones; else of the zone.
    pub is_regional: bool,
    pub size: u32,
    pub base_name: String,
    pub machine_type: String,
    pub gpus: Option<Gpus>,
    pub is_preemptible: bool,
    /// `listManagedInstances` keeps to `maxResults`.
    pub is_paginated: bool,
}

impl GroupSpec {
    /// A group of the zone with so many machines, a T4 in each; named machines begin with `w`.
    pub fn new(name: &str, size: u32) -> Self {
        Self {
            name: name.into(),
            is_regional: false,
            size,
            base_name: "w".into(),
            machine_type: "n1-standard-8".into(),
            gpus: Some(Gpus { kind: "nvidia-tesla-t4".into(), count: 1 }),
            is_preemptible: false,
            is_paginated: false,
        }
    }
}

/// The cloud at its start. Everything in it happens within one project, one region, one zone.
#[derive(Clone, Debug)]
pub struct FakeOptions {
    pub project: String,
    pub region: String,
    pub zone: String,
    pub clusters: Vec<ClusterSpec>,
    pub groups: Vec<GroupSpec>,
    /// Buckets that exist.
    pub buckets: Vec<String>,
    /// From an order to the operation's end.
    pub operation_takes: Duration,
    /// From the end of an operation that adds secondaries to the machines' existence.
    pub secondaries_take: Duration,
    /// From a machine's existence to the moment at which it runs.
    pub boot_takes: Duration,
    /// Added to an operation that removes workers with a graceful decommission timeout, and cut at that.
    pub drain_takes: Duration,
    /// Limits by metric, `NVIDIA_T4_GPUS` …; what is not named is not limited.
    pub quotas: BTreeMap<String, u32>,
    /// Zones that have no machines to give.
    pub stock_outs: BTreeSet<String>,
    /// Whether a request without a token that this fake has handed out is refused.
    pub tokens_demanded: bool,
    /// Orders to clusters within 60 s; more are refused by 429.
    pub cluster_orders_per_minute: usize,
    /// Where names that look random come from.
    pub seed: u64,
    /// The cluster on whose master the metadata server is asked; `None`: a machine of no cluster.
    pub metadata_cluster: Option<String>,
    /// The masters beside the first one, as the metadata server lists them; empty where there is but one.
    pub other_masters: String,
}

impl Default for FakeOptions {
    fn default() -> Self {
        Self {
            project: "p".into(),
            region: "us-central1".into(),
            zone: "us-central1-a".into(),
            clusters: vec![ClusterSpec::new("gpu1")],
            groups: Vec::new(),
            buckets: vec!["b".into()],
            operation_takes: Duration::from_millis(20),
            secondaries_take: Duration::from_millis(20),
            boot_takes: Duration::from_millis(20),
            drain_takes: Duration::ZERO,
            quotas: BTreeMap::new(),
            stock_outs: BTreeSet::new(),
            tokens_demanded: false,
            cluster_orders_per_minute: 200,
            seed: 1,
            metadata_cluster: Some("gpu1".into()),
            other_masters: String::new(),
        }
    }
}
