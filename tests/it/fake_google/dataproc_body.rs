//! A cluster as Dataproc knows it, and as it tells it.

use serde_json::{Map, Value, json};

use super::{
    cloud::Cloud,
    groups::{GroupKey, Shape},
    http::without_zeros,
    machines::{Instance, Stage},
    options::Gpus,
};

/// A cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub name: String,
    pub uuid: String,
    /// `RUNNING`, `UPDATING` …
    pub state: String,
    /// When it began.
    pub since: String,
    /// For people, where something went wrong.
    pub detail: String,
    pub history: Vec<Value>,
    /// Without what follows.
    pub config: Value,
    pub labels: Value,
    /// Names in the order of their numbers.
    pub primaries: Vec<String>,
    /// Of the secondaries; its target size is their number.
    pub group: GroupKey,
    /// YARN's figures; `None`: of the machines that run.
    pub yarn_metrics: Option<Value>,
    /// With what text the next operation fails.
    pub fail_next: Option<String>,
}

impl Cluster {
    /// Another state begins; the one before becomes history.
    pub fn enter(&mut self, state: &str, detail: &str, now: String) {
        let mut past = json!({"state": self.state, "stateStartTime": self.since});
        if !self.detail.is_empty() {
            past["detail"] = json!(self.detail);
        }
        self.history.push(past);
        (self.state, self.detail, self.since) = (state.into(), detail.into(), now);
    }

    /// What machines of this pool (`workerConfig`, `secondaryWorkerConfig`) are like.
    pub fn shape(&self, pool: &str) -> Shape {
        let config = &self.config[pool];
        let accelerator = config["accelerators"].get(0).filter(|entry| number(&entry["acceleratorCount"]) > 0);
        let gpus = accelerator.map(|entry| Gpus {
            kind: last_part(entry["acceleratorTypeUri"].as_str().unwrap_or_default()).into(),
            count: number(&entry["acceleratorCount"]),
        });
        let machine_type = config["machineTypeUri"].as_str().map_or("n1-standard-4", last_part).to_owned();
        let is_preemptible = pool == "secondaryWorkerConfig" && preemptibility(config) != "NON_PREEMPTIBLE";
        Shape { machine_type, gpus, is_preemptible }
    }
}

/// A count as clients write it: a number, or its text; absent is zero.
pub fn number(value: &Value) -> u32 {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0)
}

/// `t4` of `…/acceleratorTypes/t4`.
pub fn last_part(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

/// By name, however it was ordered.
fn preemptibility(config: &Value) -> &str {
    match (config["preemptibility"].as_u64(), config["preemptibility"].as_str()) {
        (Some(1), _) => "NON_PREEMPTIBLE",
        (Some(3), _) => "SPOT",
        (None, Some(name)) if name != "PREEMPTIBILITY_UNSPECIFIED" => name,
        _ => "PREEMPTIBLE",
    }
}

impl Cloud {
    /// A cluster of this order, with its primaries; the secondaries exist at once, or are made later.
    pub fn add_cluster(&mut self, order: &Value, is_ready: bool) {
        let name = order["clusterName"].as_str().unwrap_or_default().to_owned();
        let uuid = self.random.uuid();
        let zone = order["config"]["gceClusterConfig"]["zoneUri"]
            .as_str()
            .map_or_else(String::new, |uri| last_part(uri).into());
        let zone = if zone.is_empty() { self.options.zone.clone() } else { zone };
        let key = GroupKey { scope: format!("zones/{zone}"), name: format!("dataproc-{uuid}-sw") };
        let mut config = order["config"].clone();
        let wanted = |pool: &str| config[pool]["numInstances"].clone();
        let (primaries, secondaries) = (wanted("workerConfig"), wanted("secondaryWorkerConfig"));
        let primaries = if primaries.is_null() { 2 } else { number(&primaries) };
        let secondaries = number(&secondaries);
        if config.get("secondaryWorkerConfig").is_none() {
            config["secondaryWorkerConfig"] = json!({"machineTypeUri": config["workerConfig"]["machineTypeUri"]});
        }
        let since = self.timestamp();
        let cluster = Cluster {
            state: if is_ready { "RUNNING" } else { "CREATING" }.into(),
            name: name.clone(),
            uuid,
            since,
            detail: String::new(),
            history: Vec::new(),
            config,
            labels: order["labels"].clone(),
            primaries: Vec::new(),
            group: key.clone(),
            yarn_metrics: None,
            fail_next: None,
        };
        let shape = cluster.shape("secondaryWorkerConfig");
        self.add_group(key, &format!("{name}-sw"), shape, vec![zone]);
        self.clusters.insert(name.clone(), cluster);
        self.add_primaries(&name, primaries);
        let delay = if is_ready { std::time::Duration::ZERO } else { self.options.secondaries_take };
        self.set_secondaries(&name, secondaries, delay);
    }

    /// More primaries, with the numbers after the highest; they exist at once and boot.
    pub fn add_primaries(&mut self, name: &str, count: u32) {
        let cluster = &self.clusters[name];
        let shape = cluster.shape("workerConfig");
        let numbers = cluster.primaries.iter().filter_map(|name| name.rsplit('-').next()?.parse::<u32>().ok());
        let first = numbers.max().map_or(0, |highest| highest + 1);
        let zone = self.groups[&cluster.group].zones[0].clone();
        for number in first..first + count {
            let instance = Instance {
                name: format!("{name}-w-{number}"),
                id: self.random.number(),
                zone: zone.clone(),
                machine_type: shape.machine_type.clone(),
                gpus: shape.gpus.clone(),
                group: None,
                // The operation ends when they have booted.
                stage: Stage::Booting { until: self.now },
                shortage: None,
                is_preemptible: false,
            };
            self.clusters.get_mut(name).expect("it is there").primaries.push(instance.name.clone());
            self.instances.insert(instance.name.clone(), instance);
        }
    }

    /// The cluster as `clusters.get` tells it.
    pub fn cluster_json(&self, cluster: &Cluster) -> Value {
        let mut status = json!({"state": cluster.state, "stateStartTime": cluster.since});
        status["detail"] = json!(cluster.detail);
        let mut labels = cluster.labels.as_object().cloned().unwrap_or_default();
        labels.insert("goog-dataproc-cluster-name".into(), json!(cluster.name));
        labels.insert("goog-dataproc-cluster-uuid".into(), json!(cluster.uuid));
        let mut body = json!({
            "projectId": self.options.project,
            "clusterName": cluster.name,
            "clusterUuid": cluster.uuid,
            "labels": labels,
            "config": self.config_json(cluster),
            "status": status,
            "statusHistory": cluster.history,
            "metrics": {"yarnMetrics": self.yarn_metrics(cluster)},
        });
        if cluster.state == "CREATING" {
            drop(body["metrics"].take());
        }
        without_zeros(&body)
    }

    fn config_json(&self, cluster: &Cluster) -> Value {
        let mut config = cluster.config.clone();
        let zone = &self.groups[&cluster.group].zones[0];
        config["gceClusterConfig"]["zoneUri"] = json!(google_url(&self.options.project, &format!("zones/{zone}")));
        config["configBucket"] = json!("dataproc-staging-x");
        config["masterConfig"]["instanceNames"] = json!([format!("{}-m", cluster.name)]);
        let group = &self.groups[&cluster.group];
        let secondaries: Vec<_> = self.members(&cluster.group).into_iter().filter(|member| member.exists()).collect();
        let primaries: Vec<_> = cluster.primaries.iter().filter_map(|name| self.instances.get(name)).collect();
        self.fill_pool(&mut config["workerConfig"], zone, primaries.len(), &primaries);
        let target = usize::try_from(group.target_size).expect("a small number");
        self.fill_pool(&mut config["secondaryWorkerConfig"], zone, target, &secondaries);
        let pool = &mut config["secondaryWorkerConfig"];
        let kind = preemptibility(pool).to_owned();
        pool["isPreemptible"] = json!(kind != "NON_PREEMPTIBLE");
        pool["preemptibility"] = json!(kind);
        pool["managedGroupConfig"] = json!({
            "instanceTemplateName": group.template,
            "instanceGroupManagerName": cluster.group.name,
            "instanceGroupManagerUri": google_url(&self.options.project, &cluster.group.to_string()),
        });
        config
    }

    fn fill_pool(&self, pool: &mut Value, zone: &str, count: usize, members: &[&Instance]) {
        let full = |kind: &str, name: &str| google_url(&self.options.project, &format!("zones/{zone}/{kind}/{name}"));
        pool["numInstances"] = json!(count);
        pool["instanceNames"] = members.iter().map(|member| json!(member.name)).collect();
        let reference = |member: &&Instance| json!({"instanceName": member.name, "instanceId": member.id.to_string()});
        pool["instanceReferences"] = members.iter().map(reference).collect();
        let machine_type = pool["machineTypeUri"].as_str().map_or("n1-standard-4", last_part).to_owned();
        pool["machineTypeUri"] = json!(full("machineTypes", &machine_type));
        for accelerator in pool["accelerators"].as_array_mut().into_iter().flatten() {
            let kind = accelerator["acceleratorTypeUri"].as_str().map_or("", last_part).to_owned();
            accelerator["acceleratorTypeUri"] = json!(full("acceleratorTypes", &kind));
        }
    }

    /// YARN's figures as text, as far as the number of machines tells them.
    fn yarn_metrics(&self, cluster: &Cluster) -> Value {
        if let Some(metrics) = &cluster.yarn_metrics {
            return metrics.clone();
        }
        let runs = |instance: &&Instance| instance.stage == Stage::Running;
        let primaries = cluster.primaries.iter().filter_map(|name| self.instances.get(name)).filter(runs).count();
        let nodes = primaries + self.members(&cluster.group).into_iter().filter(runs).count();
        let mut metrics = Map::new();
        for (name, each) in [("memory-mb-total", 24_576), ("memory-mb-available", 24_576), ("vcores-total", 8)] {
            metrics.insert(format!("yarn-{name}"), json!((nodes * each).to_string()));
        }
        metrics.insert("yarn-memory-mb-pending".into(), json!("0"));
        metrics.insert("yarn-nodes-active".into(), json!(nodes.to_string()));
        Value::Object(metrics)
    }
}

/// The full name of a thing of Compute Engine, as Dataproc writes it.
fn google_url(project: &str, path: &str) -> String {
    format!("https://www.googleapis.com/compute/v1/projects/{project}/{path}")
}
