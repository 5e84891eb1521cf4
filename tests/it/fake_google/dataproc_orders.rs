//! Orders to a cluster: what Dataproc refuses, and what is done in the end.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    cloud::Cloud,
    dataproc_body::{Cluster, last_part, number},
    http::{Answer, Request, failed_precondition, invalid, not_found, refusal},
    machines::quota_name,
    operations::{Order, state_during, takes_orders},
};

/// Secondary workers that one order may remove.
const REMOVED_MAX: usize = 1000;
/// Fewest primary workers of a cluster that has any.
const PRIMARIES_MIN: u32 = 2;
const DAY: f64 = 86_400.0;

/// Fields that an update may name, as they are written with underscores.
const MASKS: &[&str] = &[
    "labels",
    "config.worker_config.num_instances",
    "config.secondary_worker_config.num_instances",
    "config.secondary_worker_config.startup_config.required_registration_fraction",
    "config.autoscaling_config.policy_uri",
    "config.lifecycle_config.auto_delete_ttl",
    "config.lifecycle_config.auto_delete_time",
    "config.lifecycle_config.idle_delete_ttl",
];

/// `PATCH clusters/NAME`.
pub fn patch(cloud: &mut Cloud, request: &Request, name: &str) -> Result<Value, Answer> {
    let body = request.json()?;
    let request_id = request_id(request.query("requestId"))?;
    let graceful = graceful(request.query("gracefulDecommissionTimeout"))?;
    let masks = masks(request.query("updateMask").or_else(|| request.query("update_mask")).unwrap_or_default())?;
    let (mut primaries, mut secondaries, mut fields) = (None, None, Vec::new());
    for mask in masks {
        let path: Vec<_> = mask.split('.').map(camel).collect();
        let value = path.iter().fold(&body, |value, field| &value[field]);
        match mask.as_str() {
            // A number that is masked and absent is zero.
            "config.worker_config.num_instances" => primaries = Some(number(value)),
            "config.secondary_worker_config.num_instances" => secondaries = Some(number(value)),
            _ => fields.push((format!("/{}", path.join("/")), value.clone())),
        }
    }
    if primaries.is_some_and(|count| count < PRIMARIES_MIN) {
        return Err(invalid(&format!("A cluster needs at least {PRIMARIES_MIN} primary workers.")));
    }
    give(cloud, name, Order::Update { primaries, secondaries, fields }, request_id, graceful)
}

/// `POST clusters/NAME:repair`.
pub fn repair(cloud: &mut Cloud, request: &Request, name: &str) -> Result<Value, Answer> {
    let body = request.json()?;
    let known =
        ["clusterUuid", "requestId", "parentOperationId", "gracefulDecommissionTimeout", "nodePools", "cluster"];
    let unknown = body.as_object().and_then(|fields| fields.keys().find(|key| !known.contains(&key.as_str())));
    if let Some(unknown) = unknown {
        return Err(invalid(&format!("Invalid JSON payload received. Unknown name \"{unknown}\": Cannot find field.")));
    }
    let request_id = request_id(body["requestId"].as_str())?;
    let graceful = graceful(body["gracefulDecommissionTimeout"].as_str())?;
    let cluster = find(cloud, name)?;
    if body["clusterUuid"].as_str().is_some_and(|uuid| uuid != cluster.uuid) {
        return Err(not_found(&format!("Not found: Cluster with UUID {}", body["clusterUuid"])));
    }
    if body["cluster"]["clusterRepairAction"] == "REPAIR_ERROR_DUE_TO_UPDATE_CLUSTER" {
        return repair_cluster(cloud, name, request_id);
    }
    let pools = body["nodePools"].as_array().filter(|pools| !pools.is_empty());
    let pools = pools.ok_or_else(|| invalid("At least one node pool must be specified."))?;
    let (mut primaries, mut secondaries) = (Vec::new(), Vec::new());
    for pool in pools {
        if !(pool["repairAction"] == "DELETE" || pool["repairAction"] == 1) {
            return Err(invalid("The repair action of a node pool must be DELETE."));
        }
        let names = pool["instanceNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let named: Vec<_> = names.map(str::to_owned).collect();
        match pool["id"].as_str() {
            Some("PRIMARY_WORKER_POOL") if primaries.is_empty() => primaries = named,
            Some("SECONDARY_WORKER_POOL") if secondaries.is_empty() => secondaries = named,
            id => return Err(invalid(&format!("Invalid or repeated node pool id {}.", id.unwrap_or_default()))),
        }
    }
    give(cloud, name, Order::Repair { primaries, secondaries }, request_id, graceful)
}

/// A cluster that an update broke takes orders again.
fn repair_cluster(cloud: &mut Cloud, name: &str, request_id: Option<&str>) -> Result<Value, Answer> {
    if cloud.clusters[name].state != "ERROR_DUE_TO_UPDATE" {
        return Err(failed_precondition("The cluster is not in state ERROR_DUE_TO_UPDATE."));
    }
    let now = cloud.timestamp();
    cloud.clusters.get_mut(name).expect("it is there").enter("RUNNING", "", now);
    let order = Order::Repair { primaries: Vec::new(), secondaries: Vec::new() };
    give(cloud, name, order, request_id, None)
}

/// The order, unless it was given before, or there is something against it.
fn give(
    cloud: &mut Cloud,
    name: &str,
    order: Order,
    request_id: Option<&str>,
    graceful: Option<Duration>,
) -> Result<Value, Answer> {
    find(cloud, name)?;
    if let Some(operation) = request_id.and_then(|id| cloud.begun_with(id)) {
        return Ok(cloud.operation_json(operation));
    }
    count(cloud)?;
    let cluster = &cloud.clusters[name];
    if !takes_orders(cluster) {
        let text = format!(
            "Cluster '{name}' must be in state RUNNING to be updated or repaired; its state is {}.",
            cluster.state
        );
        return Err(failed_precondition(&text));
    }
    check_removals(cloud, cluster, &order)?;
    check_quotas(cloud, cluster, &order)?;
    let drain = graceful
        .filter(|_| removes(cloud, cluster, &order))
        .map_or(Duration::ZERO, |limit| limit.min(cloud.options.drain_takes));
    let takes = cloud.options.operation_takes + drain;
    let answer = cloud.begin(name, order.clone(), request_id, takes);
    let now = cloud.timestamp();
    cloud.clusters.get_mut(name).expect("it is there").enter(state_during(&order), "", now);
    Ok(answer)
}

/// Counts an order to a cluster against the quota of a minute.
pub fn count(cloud: &mut Cloud) -> Result<(), Answer> {
    let minute = Duration::from_secs(60);
    while cloud.orders.front().is_some_and(|at| cloud.now.saturating_duration_since(*at) >= minute) {
        cloud.orders.pop_front();
    }
    if cloud.orders.len() >= cloud.options.cluster_orders_per_minute {
        let text = "Quota exceeded for quota metric 'Cluster operation requests' and limit 'Cluster operation \
                    requests per minute per region' of service 'dataproc.googleapis.com'.";
        return Err(refusal(429, "RESOURCE_EXHAUSTED", "rateLimitExceeded", text));
    }
    cloud.orders.push_back(cloud.now);
    Ok(())
}

pub fn find<'a>(cloud: &'a Cloud, name: &str) -> Result<&'a Cluster, Answer> {
    cloud.clusters.get(name).ok_or_else(|| {
        let (project, region) = (&cloud.options.project, &cloud.options.region);
        not_found(&format!("Not found: Cluster projects/{project}/regions/{region}/clusters/{name}"))
    })
}

fn removes(cloud: &Cloud, cluster: &Cluster, order: &Order) -> bool {
    match order {
        Order::Update { primaries, secondaries, .. } => {
            primaries.is_some_and(|count| (count as usize) < cluster.primaries.len())
                || secondaries.is_some_and(|count| count < cloud.groups[&cluster.group].target_size)
        }
        Order::Repair { .. } => true,
        Order::Create | Order::Delete => false,
    }
}

fn check_removals(cloud: &Cloud, cluster: &Cluster, order: &Order) -> Result<(), Answer> {
    let target = cloud.groups[&cluster.group].target_size as usize;
    let removed = match order {
        Order::Update { secondaries: Some(count), .. } => target.saturating_sub(*count as usize),
        Order::Repair { secondaries, .. } => secondaries.len(),
        _ => 0,
    };
    if removed > REMOVED_MAX {
        return Err(invalid(&format!("At most {REMOVED_MAX} secondary workers can be removed in one request.")));
    }
    let Order::Repair { primaries, secondaries } = order else { return Ok(()) };
    let foreign = |pool: &str, name: &String| {
        invalid(&format!("Instance '{name}' does not belong to node pool {pool} of cluster '{}'.", cluster.name))
    };
    if let Some(name) = primaries.iter().find(|name| !cluster.primaries.contains(name)) {
        return Err(foreign("PRIMARY_WORKER_POOL", name));
    }
    let members = cloud.members(&cluster.group);
    if let Some(name) = secondaries.iter().find(|name| members.iter().all(|member| member.name != **name)) {
        return Err(foreign("SECONDARY_WORKER_POOL", name));
    }
    let left = cluster.primaries.len() - primaries.len();
    if !primaries.is_empty() && left < PRIMARIES_MIN as usize {
        return Err(invalid(&format!("A cluster needs at least {PRIMARIES_MIN} primary workers.")));
    }
    Ok(())
}

/// More GPUs than the quota has left are refused at once.
fn check_quotas(cloud: &Cloud, cluster: &Cluster, order: &Order) -> Result<(), Answer> {
    let Order::Update { primaries, secondaries, .. } = order else { return Ok(()) };
    let pools = [
        ("workerConfig", *primaries, cluster.primaries.len()),
        ("secondaryWorkerConfig", *secondaries, cloud.groups[&cluster.group].target_size as usize),
    ];
    for (pool, wanted, before) in pools {
        let more = wanted.map_or(0, |wanted| (wanted as usize).saturating_sub(before));
        let shape = cluster.shape(pool);
        let Some(gpus) = shape.gpus.filter(|_| more > 0) else { continue };
        let quota = quota_name(&gpus.kind, shape.is_preemptible);
        let Some(limit) = cloud.options.quotas.get(&quota) else { continue };
        let (requested, available) = (more * gpus.count as usize, limit.saturating_sub(cloud.quota_used(&quota)));
        if requested > available as usize {
            let text = format!("Insufficient '{quota}' quota. Requested {requested}.0, available {available}.0.");
            return Err(invalid(&text));
        }
    }
    Ok(())
}

impl Cloud {
    /// Carries an operation's order out.
    pub fn apply(&mut self, operation: &super::operations::Operation) -> Result<(), String> {
        let name = &operation.cluster;
        match &operation.order {
            Order::Create => {}
            Order::Delete => self.remove_cluster(name),
            Order::Update { primaries, secondaries, fields } => {
                if let Some(count) = primaries {
                    self.set_primaries(name, *count)?;
                }
                if let Some(count) = secondaries {
                    self.set_secondaries(name, *count, self.options.secondaries_take);
                }
                for (path, value) in fields {
                    self.set_field(name, path, value);
                }
            }
            Order::Repair { primaries, secondaries } => self.remove_workers(name, primaries, secondaries),
        }
        Ok(())
    }

    fn set_primaries(&mut self, name: &str, count: u32) -> Result<(), String> {
        let before = self.clusters[name].primaries.len();
        let Some(more) = (count as usize).checked_sub(before) else {
            // The highest numbers go first.
            let surplus = self.clusters[name].primaries[count as usize..].to_vec();
            self.remove_workers(name, &surplus, &[]);
            return Ok(());
        };
        let first = self.clusters[name].primaries.first().and_then(|name| self.instances.get(name));
        if let Some(shortage) = first.filter(|_| more > 0).and_then(|like| self.shortage(like)) {
            return Err(format!("{}: {}", shortage.code, shortage.message));
        }
        self.add_primaries(name, u32::try_from(more).expect("it was a u32"));
        Ok(())
    }

    /// Another number of secondaries; more of them are made after this delay.
    pub fn set_secondaries(&mut self, name: &str, count: u32, delay: Duration) {
        let key = self.clusters[name].group.clone();
        self.resize(&key, count, self.now + delay);
    }

    /// Named workers go, and are not replaced.
    fn remove_workers(&mut self, name: &str, primaries: &[String], secondaries: &[String]) {
        let cluster = self.clusters.get_mut(name).expect("it is there");
        cluster.primaries.retain(|name| !primaries.contains(name));
        let key = cluster.group.clone();
        for worker in primaries.iter().chain(secondaries) {
            self.delete_machine(worker, self.now);
        }
        let group = self.groups.get_mut(&key).expect("a cluster's group");
        group.target_size = group.target_size.saturating_sub(u32::try_from(secondaries.len()).expect("few"));
    }

    fn remove_cluster(&mut self, name: &str) {
        let Some(cluster) = self.clusters.remove(name) else { return };
        let secondaries = self.members(&cluster.group).into_iter().map(|member| member.name.clone());
        let names: Vec<_> = secondaries.chain(cluster.primaries).collect();
        for name in names {
            self.delete_machine(&name, self.now);
        }
        self.groups.remove(&cluster.group);
    }

    /// A field of the body by its path, `/config/autoscalingConfig/policyUri`; null clears it.
    fn set_field(&mut self, name: &str, path: &str, value: &Value) {
        let cluster = self.clusters.get_mut(name).expect("it is there");
        let (target, path) = match path.strip_prefix("/config/") {
            Some(path) => (&mut cluster.config, path),
            None => return cluster.labels = value.clone(),
        };
        let place = path.split('/').fold(target, |place, field| {
            if !place.is_object() {
                *place = json!({});
            }
            &mut place[field]
        });
        *place = value.clone();
    }
}

/// Letters, digits, `_` and `-`, 40 at most.
pub fn request_id(id: Option<&str>) -> Result<Option<&str>, Answer> {
    let is_right = |id: &&str| id.len() <= 40 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    match id.filter(|id| !id.is_empty()) {
        Some(id) if !is_right(&id) => {
            let rule = "must contain only letters, numbers, underscores and hyphens, 40 characters at most";
            Err(invalid(&format!("Invalid request ID '{id}': it {rule}.")))
        }
        id => Ok(id),
    }
}

/// `900s`, `0.5s`; from nothing to a day.
fn graceful(text: Option<&str>) -> Result<Option<Duration>, Answer> {
    let Some(text) = text else { return Ok(None) };
    let seconds = text.strip_suffix('s').and_then(|seconds| seconds.parse::<f64>().ok());
    match seconds {
        Some(seconds) if (0.0..=DAY).contains(&seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
        Some(_) => Err(invalid(&format!("Graceful decommission timeout {text} is not between 0s and 86400s."))),
        None => Err(invalid(&format!("Invalid duration '{text}' in gracefulDecommissionTimeout."))),
    }
}

/// Masks with underscores, whatever their spelling was.
fn masks(text: &str) -> Result<Vec<String>, Answer> {
    if text.is_empty() {
        return Err(invalid("An update mask must be specified."));
    }
    let masks: Vec<_> = text.split(',').map(|mask| snake(mask.trim())).collect();
    match masks.iter().find(|mask| !MASKS.contains(&mask.as_str())) {
        Some(unknown) => Err(invalid(&format!("Field '{unknown}' of the update mask cannot be updated."))),
        None => Ok(masks),
    }
}

fn snake(text: &str) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
        out
    })
}

fn camel(text: &str) -> String {
    let mut upper = false;
    text.chars().fold(String::new(), |mut out, c| {
        match c {
            '_' => upper = true,
            c => out.push(if std::mem::take(&mut upper) { c.to_ascii_uppercase() } else { c }),
        }
        out
    })
}

/// The verb after a colon: `gpu1:repair`.
pub fn verb(segment: &str) -> (&str, &str) {
    last_part(segment).split_once(':').unwrap_or((segment, ""))
}
