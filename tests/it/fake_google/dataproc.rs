//! Dataproc's clusters: get, list, create, patch, repair, delete; the rest of its paths is handed on.

use serde_json::{Value, json};

use super::{
    cloud::{Cloud, unrouted},
    dataproc_orders::{count, find, patch, repair, request_id, verb},
    http::{Answer, Request, failed_precondition, invalid, refusal, without_zeros},
    operations::{self, Order, terms},
    policies,
};

/// What is under `v1/projects/P/{regions,locations}/R/`.
pub fn answer(cloud: &mut Cloud, request: &Request, place: &str, rest: &[&str]) -> Result<Value, Answer> {
    match (place, rest) {
        (_, ["autoscalingPolicies", rest @ ..]) => policies::answer(cloud, request, rest),
        ("regions", ["operations", rest @ ..]) => operations::answer(cloud, request, rest),
        ("regions", ["clusters"]) => match request.method.as_str() {
            "GET" => list(cloud, request),
            "POST" => create(cloud, request),
            _ => Err(unrouted(request)),
        },
        ("regions", ["clusters", cluster]) => match (request.method.as_str(), verb(cluster)) {
            ("GET", (name, "")) => find(cloud, name).map(|cluster| cloud.cluster_json(cluster)),
            ("PATCH", (name, "")) => patch(cloud, request, name),
            ("DELETE", (name, "")) => delete(cloud, request, name),
            ("POST", (name, "repair")) => repair(cloud, request, name),
            _ => Err(unrouted(request)),
        },
        _ => Err(unrouted(request)),
    }
}

fn list(cloud: &Cloud, request: &Request) -> Result<Value, Answer> {
    let filter = request.query("filter").unwrap_or_default();
    let matches = |body: &Value| {
        terms(filter).into_iter().all(|(field, wanted)| {
            let state = body["status"]["state"].as_str().unwrap_or_default();
            match field {
                "clusterName" => body["clusterName"] == wanted,
                "status.state" if wanted == "ACTIVE" => ["CREATING", "UPDATING", "RUNNING"].contains(&state),
                "status.state" if wanted == "INACTIVE" => ["DELETING", "ERROR"].contains(&state),
                "status.state" => state == wanted,
                label => label.strip_prefix("labels.").is_some_and(|label| body["labels"][label] == wanted),
            }
        })
    };
    let bodies: Vec<_> = cloud.clusters.values().map(|cluster| cloud.cluster_json(cluster)).filter(matches).collect();
    let (page, next) = paged(&bodies, request.query("pageSize"), request.query("pageToken"), 200)?;
    Ok(without_zeros(&json!({"clusters": page, "nextPageToken": next})))
}

/// A page of a list and the token of the next one; empty on the last.
pub fn paged<'a, T>(
    all: &'a [T],
    size: Option<&str>,
    token: Option<&str>,
    default: usize,
) -> Result<(&'a [T], String), Answer> {
    let size = size.and_then(|size| size.parse().ok()).filter(|size| *size > 0).unwrap_or(default);
    let token = token.filter(|token| !token.is_empty());
    let first: usize = token.map_or(Ok(0), |token| {
        token.trim_start_matches("page-").parse().map_err(|_| invalid("The page token is not valid."))
    })?;
    let (first, end) = (first.min(all.len()), (first + size).min(all.len()));
    let next = if end < all.len() { format!("page-{end}") } else { String::new() };
    Ok((&all[first..end], next))
}

fn create(cloud: &mut Cloud, request: &Request) -> Result<Value, Answer> {
    let body = request.json()?;
    let request_id = request_id(request.query("requestId"))?;
    if let Some(operation) = request_id.and_then(|id| cloud.begun_with(id)) {
        return Ok(cloud.operation_json(operation));
    }
    count(cloud)?;
    let Some(name) = body["clusterName"].as_str().filter(|name| !name.is_empty()) else {
        return Err(invalid("The cluster name must be specified."));
    };
    if cloud.clusters.contains_key(name) {
        let text = format!(
            "Already exists: Failed to create cluster: Cluster projects/{}/regions/{}/clusters/{name}",
            cloud.options.project, cloud.options.region
        );
        return Err(refusal(409, "ALREADY_EXISTS", "alreadyExists", &text));
    }
    cloud.add_cluster(&body, false);
    Ok(cloud.begin(name, Order::Create, request_id, cloud.options.operation_takes))
}

fn delete(cloud: &mut Cloud, request: &Request, name: &str) -> Result<Value, Answer> {
    let request_id = request_id(request.query("requestId"))?;
    if let Some(operation) = request_id.and_then(|id| cloud.begun_with(id)) {
        return Ok(cloud.operation_json(operation));
    }
    find(cloud, name)?;
    count(cloud)?;
    if cloud.under_way(name).is_some() {
        return Err(failed_precondition(&format!("An operation is under way on cluster '{name}'.")));
    }
    let now = cloud.timestamp();
    let answer = cloud.begin(name, Order::Delete, request_id, cloud.options.operation_takes);
    cloud.clusters.get_mut(name).expect("it is there").enter("DELETING", "", now);
    Ok(answer)
}
