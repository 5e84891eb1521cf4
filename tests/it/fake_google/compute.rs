//! Compute Engine: operations, machines, templates and machine types; groups are handed on.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    cloud::{Cloud, unrouted},
    compute_groups,
    compute_orders::ComputeOrder,
    dataproc::paged,
    dataproc_body::last_part,
    groups::GroupKey,
    http::{Answer, Request, plain_refusal},
    machines::{Instance, Stage},
    operations::terms,
};

/// An operation.
#[derive(Clone, Debug)]
pub struct ComputeOperation {
    pub name: String,
    pub id: u64,
    /// `createInstances` …
    pub kind: String,
    /// `zones/Z`, `regions/R` or `global`.
    pub scope: String,
    /// The path of what it is done to, from the project on.
    pub target: String,
    pub target_id: u64,
    pub request_id: Option<String>,
    pub order: ComputeOrder,
    pub begin: Instant,
    pub takes: Duration,
    pub inserted: String,
    pub ended: Option<String>,
}

/// What is under `compute/v1/projects/P/`.
pub fn answer(cloud: &mut Cloud, request: &Request, rest: &[&str]) -> Result<Value, Answer> {
    let method = request.method.as_str();
    match rest {
        [scope @ ("zones" | "regions"), place, "instanceGroupManagers", rest @ ..] => {
            compute_groups::answer(cloud, request, &format!("{scope}/{place}"), rest)
        }
        [_, _, "operations", name] | ["global", "operations", name] if method == "GET" => {
            operation(cloud, request, name)
        }
        [_, _, "operations", name, "wait"] | ["global", "operations", name, "wait"] if method == "POST" => {
            operation(cloud, request, name)
        }
        _ if method != "GET" => Err(unrouted(request)),
        ["global", "instanceTemplates", name] | ["regions", _, "instanceTemplates", name] => template(cloud, name),
        ["zones", zone, "instances"] => instances(cloud, request, zone),
        ["zones", zone, "instances", name] => {
            let found = cloud.instances.get(*name).filter(|instance| instance.exists() && instance.zone == *zone);
            let path = format!("zones/{zone}/instances/{name}");
            found.map(|instance| instance_json(cloud, instance)).ok_or_else(|| missing(cloud, &path))
        }
        ["zones", zone, "machineTypes", name] => machine_type(cloud, zone, name),
        ["regions", region] => Ok(region_json(cloud, region)),
        _ => Err(unrouted(request)),
    }
}

/// As Compute Engine says it.
pub fn missing(cloud: &Cloud, path: &str) -> Answer {
    let text = format!("The resource 'projects/{}/{path}' was not found", cloud.options.project);
    plain_refusal(404, "notFound", &text)
}

fn operation(cloud: &Cloud, request: &Request, name: &str) -> Result<Value, Answer> {
    let found = cloud.compute_operations.get(name).filter(|operation| {
        // An operation is found in its own zone or region only.
        request.path.contains(&format!("/{}/operations/", operation.scope))
    });
    let path = request.segments[4..].join("/").replace("/wait", "");
    found.map(|operation| operation_json(cloud, operation)).ok_or_else(|| missing(cloud, &path))
}

pub fn operation_json(cloud: &Cloud, operation: &ComputeOperation) -> Value {
    let link = |path: &str| cloud.compute_url(path);
    let is_done = operation.ended.is_some();
    let mut body = json!({
        "kind": "compute#operation",
        "id": operation.id.to_string(),
        "name": operation.name,
        "operationType": operation.kind,
        "targetLink": link(&operation.target),
        "targetId": operation.target_id.to_string(),
        "status": if is_done { "DONE" } else { "RUNNING" },
        "progress": if is_done { 100 } else { 0 },
        "insertTime": operation.inserted,
        "startTime": operation.inserted,
        "selfLink": link(&format!("{}/operations/{}", operation.scope, operation.name)),
    });
    if let Some((scope, _)) = operation.scope.split_once('/') {
        body[scope.trim_end_matches('s')] = json!(link(&operation.scope));
    }
    if let Some(ended) = &operation.ended {
        body["endTime"] = json!(ended);
    }
    body
}

impl Cloud {
    /// Begins an operation, unless its request was made before, and says what a client gets.
    pub fn begin_compute(
        &mut self,
        request: &Request,
        kind: &str,
        (key, target_id): (&GroupKey, u64),
        order: ComputeOrder,
    ) -> Value {
        let begun = ComputeOperation {
            name: format!("operation-{}", self.random.uuid()),
            id: self.random.number(),
            kind: kind.into(),
            scope: key.scope.clone(),
            target: key.to_string(),
            target_id,
            request_id: request.query("requestId").map(str::to_owned),
            order,
            begin: self.now,
            takes: self.options.operation_takes,
            inserted: self.timestamp(),
            ended: None,
        };
        let body = operation_json(self, &begun);
        self.compute_operations.insert(begun.name.clone(), begun);
        body
    }

    /// What was answered to a request of this id; the refusal of an id that is no UUID.
    pub fn answered_before(&self, request: &Request) -> Result<Option<Value>, Answer> {
        let Some(id) = request.query("requestId") else { return Ok(None) };
        let dashes = [8, 13, 18, 23];
        let is_right = |(at, b): (usize, u8)| if dashes.contains(&at) { b == b'-' } else { b.is_ascii_hexdigit() };
        let is_zero = id.bytes().all(|b| b == b'0' || b == b'-');
        if id.len() != 36 || !id.bytes().enumerate().all(is_right) || is_zero {
            let text = format!("Invalid value for field 'requestId': '{id}'. The request ID must be a valid UUID.");
            return Err(plain_refusal(400, "invalid", &text));
        }
        let mut all = self.compute_operations.values();
        let known = all.find(|operation| operation.request_id.as_deref() == Some(id));
        Ok(known.map(|operation| operation_json(self, operation)))
    }

    /// Operations end, where it is time.
    pub fn advance_compute(&mut self) {
        let is_due = |operation: &ComputeOperation| {
            operation.ended.is_none() && self.now.saturating_duration_since(operation.begin) >= operation.takes
        };
        let due: Vec<_> = self.compute_operations.values().filter(|one| is_due(one)).cloned().collect();
        for operation in due {
            let now = self.timestamp();
            self.carry_out(&operation.order);
            self.compute_operations.get_mut(&operation.name).expect("it is there").ended = Some(now);
        }
    }
}

fn template(cloud: &Cloud, wanted: &str) -> Result<Value, Answer> {
    let mut all = cloud.templates.iter();
    let found = all.find(|(name, template)| *name == wanted || template.id.to_string() == wanted);
    let (name, template) = found.ok_or_else(|| missing(cloud, &format!("global/instanceTemplates/{wanted}")))?;
    let shape = &template.shape;
    let gpus = shape.gpus.iter().map(|gpus| json!({"acceleratorType": gpus.kind, "acceleratorCount": gpus.count}));
    let model = if shape.is_preemptible { "SPOT" } else { "STANDARD" };
    let mut properties = json!({
        "machineType": shape.machine_type,
        "scheduling": {"onHostMaintenance": "TERMINATE", "provisioningModel": model},
    });
    if shape.gpus.is_some() {
        properties["guestAccelerators"] = gpus.collect();
    }
    Ok(json!({
        "kind": "compute#instanceTemplate",
        "id": template.id.to_string(),
        "name": name,
        "selfLink": cloud.compute_url(&format!("global/instanceTemplates/{name}")),
        "properties": properties,
    }))
}

/// `PROVISIONING`, `RUNNING`, `STOPPING`; `None`: there is no machine.
pub fn status(instance: &Instance) -> Option<&'static str> {
    match instance.stage {
        Stage::Wanted { .. } => None,
        Stage::Booting { .. } => Some("STAGING"),
        Stage::Running => Some("RUNNING"),
        Stage::Deleting { .. } => Some("STOPPING"),
    }
}

fn cluster_of<'a>(cloud: &'a Cloud, instance: &Instance) -> Option<&'a str> {
    let mut clusters = cloud.clusters.values();
    let found = clusters
        .find(|cluster| instance.group.as_ref() == Some(&cluster.group) || cluster.primaries.contains(&instance.name));
    found.map(|cluster| cluster.name.as_str())
}

fn instance_json(cloud: &Cloud, instance: &Instance) -> Value {
    let zone = &instance.zone;
    let link = |path: &str| cloud.compute_url(&format!("zones/{zone}/{path}"));
    let gpus = instance.gpus.iter().map(|gpus| {
        json!({"acceleratorType": link(&format!("acceleratorTypes/{}", gpus.kind)), "acceleratorCount": gpus.count})
    });
    let mut body = json!({
        "kind": "compute#instance",
        "id": instance.id.to_string(),
        "name": instance.name,
        "status": status(instance),
        "zone": cloud.compute_url(&format!("zones/{zone}")),
        "machineType": link(&format!("machineTypes/{}", instance.machine_type)),
        "guestAccelerators": gpus.collect::<Vec<_>>(),
        "selfLink": link(&format!("instances/{}", instance.name)),
    });
    if let Some(cluster) = cluster_of(cloud, instance) {
        body["labels"] = json!({"goog-dataproc-cluster-name": cluster});
    }
    body
}

fn instances(cloud: &Cloud, request: &Request, zone: &str) -> Result<Value, Answer> {
    let filter = request.query("filter").unwrap_or_default();
    let matches = |body: &Value| {
        terms(filter).into_iter().all(|(field, wanted)| match field.strip_prefix("labels.") {
            Some(label) => body["labels"][label] == wanted,
            None => body[field] == wanted,
        })
    };
    let all = cloud.instances.values().filter(|instance| instance.exists() && instance.zone == zone);
    let bodies: Vec<_> = all.map(|instance| instance_json(cloud, instance)).filter(matches).collect();
    let (page, next) = paged(&bodies, request.query("maxResults"), request.query("pageToken"), 500)?;
    let mut body = json!({"kind": "compute#instanceList", "items": page});
    if !next.is_empty() {
        body["nextPageToken"] = json!(next);
    }
    Ok(body)
}

fn machine_type(cloud: &Cloud, zone: &str, name: &str) -> Result<Value, Answer> {
    let path = format!("zones/{zone}/machineTypes/{name}");
    let (cpus, memory_mb, gpus) = figures(name).ok_or_else(|| missing(cloud, &path))?;
    let mut body = json!({
        "kind": "compute#machineType",
        "name": name,
        "guestCpus": cpus,
        "memoryMb": memory_mb,
        "zone": last_part(zone),
        "selfLink": cloud.compute_url(&path),
    });
    if let Some((kind, count)) = gpus {
        body["accelerators"] = json!([{"guestAcceleratorType": kind, "guestAcceleratorCount": count}]);
    }
    Ok(body)
}

/// Cores, memory in MB and the GPUs that a machine type comes with.
type Figures = (u64, u64, Option<(&'static str, u64)>);

fn figures(name: &str) -> Option<Figures> {
    let size = |prefix: &str| name.strip_prefix(prefix)?.parse::<u64>().ok();
    if let Some((_, custom)) = name.split_once("custom-") {
        let (cpus, memory) = custom.split_once('-')?;
        return Some((cpus.parse().ok()?, memory.parse().ok()?, None));
    }
    for (family, mb_per_core) in [
        ("n1-standard-", 3840),
        ("n2-standard-", 4096),
        ("e2-standard-", 4096),
        ("n1-highmem-", 6656),
        ("n2-highmem-", 8192),
    ] {
        if let Some(cores) = size(family) {
            return Some((cores, cores * mb_per_core, None));
        }
    }
    if let Some(cores) = size("g2-standard-") {
        let gpus = match cores {
            24 => 2,
            48 => 4,
            96 => 8,
            _ => 1,
        };
        return Some((cores, cores * 4096, Some(("nvidia-l4", gpus))));
    }
    let gpus: u64 = name.strip_prefix("a2-highgpu-")?.strip_suffix('g')?.parse().ok()?;
    Some((gpus * 12, gpus * 87_040, Some(("nvidia-tesla-a100", gpus))))
}

fn region_json(cloud: &Cloud, region: &str) -> Value {
    let quota = |(metric, limit): (&String, &u32)| json!({"metric": metric, "limit": f64::from(*limit), "usage": f64::from(cloud.quota_used(metric))});
    json!({
        "kind": "compute#region",
        "name": region,
        "status": "UP",
        "quotas": cloud.options.quotas.iter().map(quota).collect::<Vec<_>>(),
        "selfLink": cloud.compute_url(&format!("regions/{region}")),
    })
}
