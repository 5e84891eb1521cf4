//! Dataproc's autoscaling policies: kept whole, with the defaults that the service fills in.

use serde_json::{Value, json};

use super::{
    cloud::{Cloud, unrouted},
    dataproc::paged,
    http::{Answer, Request, failed_precondition, invalid, not_found, refusal, without_zeros},
};

/// `autoscalingPolicies`, `autoscalingPolicies/ID`.
pub fn answer(cloud: &mut Cloud, request: &Request, rest: &[&str]) -> Result<Value, Answer> {
    let missing = |id: &str| not_found(&format!("Not found: Autoscaling Policy {}", name(cloud, id)));
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let all: Vec<_> = cloud.policies.values().cloned().collect();
            let (page, next) = paged(&all, request.query("pageSize"), request.query("pageToken"), 100)?;
            Ok(without_zeros(&json!({"policies": page, "nextPageToken": next})))
        }
        ("POST", []) => {
            let body = request.json()?;
            let id = body["id"].as_str().unwrap_or_default().to_owned();
            if cloud.policies.contains_key(&id) {
                let text = format!("Already exists: Autoscaling Policy {}", name(cloud, &id));
                return Err(refusal(409, "ALREADY_EXISTS", "alreadyExists", &text));
            }
            keep(cloud, &id, body)
        }
        ("GET", [id]) => cloud.policies.get(*id).cloned().ok_or_else(|| missing(id)),
        ("PUT", [id]) if cloud.policies.contains_key(*id) => keep(cloud, id, request.json()?),
        ("DELETE", [id]) if cloud.policies.contains_key(*id) => {
            let uses = |config: &Value| {
                config["autoscalingConfig"]["policyUri"].as_str().is_some_and(|uri| uri.rsplit('/').next() == Some(id))
            };
            if cloud.clusters.values().any(|cluster| uses(&cluster.config)) {
                return Err(failed_precondition(&format!("Autoscaling policy {id} is in use by a cluster.")));
            }
            cloud.policies.remove(*id);
            Ok(json!({}))
        }
        ("PUT" | "DELETE", [id]) => Err(missing(id)),
        _ => Err(unrouted(request)),
    }
}

/// The full name, which always says `regions`.
fn name(cloud: &Cloud, id: &str) -> String {
    format!("projects/{}/regions/{}/autoscalingPolicies/{id}", cloud.options.project, cloud.options.region)
}

fn keep(cloud: &mut Cloud, id: &str, mut body: Value) -> Result<Value, Answer> {
    let is_letter = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    if !(3..=50).contains(&id.len()) || !id.bytes().all(is_letter) || id.trim_matches(['_', '-']) != id {
        return Err(invalid(&format!("Invalid autoscaling policy id '{id}'.")));
    }
    check(&body)?;
    body["id"] = json!(id);
    body["name"] = json!(name(cloud, id));
    let algorithm = &mut body["basicAlgorithm"];
    if algorithm["cooldownPeriod"].is_null() {
        algorithm["cooldownPeriod"] = json!("120s");
    }
    if body["workerConfig"]["minInstances"].is_null() {
        body["workerConfig"]["minInstances"] = json!(2);
    }
    let pools = ["workerConfig", "secondaryWorkerConfig"];
    if pools.iter().all(|pool| body[pool]["weight"].is_null()) {
        for pool in pools.iter().filter(|pool| body[**pool].is_object()).copied().collect::<Vec<_>>() {
            body[pool]["weight"] = json!(1);
        }
    }
    let body = without_zeros(&body);
    cloud.policies.insert(id.into(), body.clone());
    Ok(body)
}

/// What the service refuses.
fn check(body: &Value) -> Result<(), Answer> {
    let algorithm = &body["basicAlgorithm"];
    let seconds = |value: &Value| value.as_str()?.strip_suffix('s')?.parse::<f64>().ok();
    let bounded = |field: &str, value: &Value, low: f64, is_needed: bool| match (value.is_null(), seconds(value)) {
        (true, _) if !is_needed => Ok(()),
        (false, Some(seconds)) if (low..=86_400.0).contains(&seconds) => Ok(()),
        _ => Err(invalid(&format!("Invalid value for {field}: {value}. It must be between {low}s and 86400s."))),
    };
    bounded("cooldown_period", &algorithm["cooldownPeriod"], 120.0, false)?;
    let yarn = &algorithm["yarnConfig"];
    bounded("graceful_decommission_timeout", &yarn["gracefulDecommissionTimeout"], 0.0, true)?;
    for field in ["scaleUpFactor", "scaleDownFactor", "scaleUpMinWorkerFraction", "scaleDownMinWorkerFraction"] {
        if yarn[field].as_f64().is_some_and(|factor| !(0.0..=1.0).contains(&factor)) {
            return Err(invalid(&format!("Invalid value for {field}: {}. It must be between 0 and 1.", yarn[field])));
        }
    }
    for pool in ["workerConfig", "secondaryWorkerConfig"] {
        let (low, high) = (body[pool]["minInstances"].as_u64(), body[pool]["maxInstances"].as_u64());
        if low.unwrap_or(0) > high.unwrap_or(0) {
            return Err(invalid(&format!("minInstances of {pool} must not be greater than maxInstances.")));
        }
    }
    Ok(())
}
