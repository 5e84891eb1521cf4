//! Managed instance groups as Compute Engine tells them: the group, its machines, its errors.

use serde_json::{Value, json};

use super::{
    cloud::{Cloud, unrouted},
    compute::{missing, status},
    compute_orders,
    dataproc::paged,
    dataproc_body::{last_part, number},
    groups::{Group, GroupKey, Shape},
    http::{Answer, Request, plain_refusal},
    machines::{Instance, Stage},
};

/// What is under `instanceGroupManagers` of a zone or region.
pub fn answer(cloud: &mut Cloud, request: &Request, scope: &str, rest: &[&str]) -> Result<Value, Answer> {
    let key = |name: &str| GroupKey { scope: scope.into(), name: name.into() };
    match (request.method.as_str(), rest) {
        ("GET", []) => list(cloud, request, scope),
        ("POST", []) => insert(cloud, request, scope),
        (method, [name, rest @ ..]) => {
            let key = key(name);
            if !cloud.groups.contains_key(&key) {
                return Err(missing(cloud, &key.to_string()));
            }
            match (method, rest) {
                ("GET", []) => Ok(group_json(cloud, &key, &cloud.groups[&key])),
                ("POST", ["listManagedInstances"]) => members(cloud, request, &key),
                ("GET", ["listErrors"]) => errors(cloud, request, &key),
                ("POST" | "DELETE" | "PATCH", rest) => compute_orders::answer(cloud, request, &key, rest),
                _ => Err(unrouted(request)),
            }
        }
        _ => Err(unrouted(request)),
    }
}

fn list(cloud: &Cloud, request: &Request, scope: &str) -> Result<Value, Answer> {
    let groups = cloud.groups.iter().filter(|(key, _)| key.scope == scope);
    let bodies: Vec<_> = groups.map(|(key, group)| group_json(cloud, key, group)).collect();
    let (page, next) = paged(&bodies, request.query("maxResults"), request.query("pageToken"), 500)?;
    Ok(with_token(json!({"kind": "compute#instanceGroupManagerList", "items": page}), next))
}

fn with_token(mut body: Value, next: String) -> Value {
    if !next.is_empty() {
        body["nextPageToken"] = json!(next);
    }
    body
}

/// What the group is doing to a machine.
fn action(instance: &Instance) -> &'static str {
    match instance.stage {
        Stage::Wanted { .. } | Stage::Booting { .. } => "CREATING",
        Stage::Running => "NONE",
        Stage::Deleting { .. } => "DELETING",
    }
}

fn group_json(cloud: &Cloud, key: &GroupKey, group: &Group) -> Value {
    let members = cloud.members(key);
    let count = |wanted: &str| members.iter().filter(|member| action(member) == wanted).count();
    let is_stable = count("NONE") == members.len() && members.len() == group.target_size as usize;
    let link = |path: &str| cloud.compute_url(path);
    let template = link(&format!("global/instanceTemplates/{}", group.template));
    let mut body = group.order.clone();
    let fields = json!({
        "kind": "compute#instanceGroupManager",
        "id": group.id.to_string(),
        "name": key.name,
        "baseInstanceName": group.base_name,
        "instanceTemplate": template,
        "versions": [{"instanceTemplate": template, "targetSize": {"calculated": group.target_size}}],
        "instanceGroup": link(&format!("{}/instanceGroups/{}", key.scope, key.name)),
        "targetSize": group.target_size,
        "listManagedInstancesResults": if group.is_paginated { "PAGINATED" } else { "PAGELESS" },
        "fingerprint": "abc=",
        "currentActions": {
            "none": count("NONE"), "creating": count("CREATING"), "creatingWithoutRetries": 0, "recreating": 0,
            "deleting": count("DELETING"), "abandoning": 0, "restarting": 0, "refreshing": 0, "verifying": 0,
        },
        "status": {"isStable": is_stable, "versionTarget": {"isReached": true}, "stateful": {
            "hasStatefulConfig": false, "perInstanceConfigs": {"allEffective": true}}},
        "selfLink": link(&key.to_string()),
    });
    for (field, value) in fields.as_object().into_iter().flatten() {
        body[field] = value.clone();
    }
    let scope = key.scope.split('/').next().unwrap_or_default().trim_end_matches('s');
    body[scope] = json!(link(&key.scope));
    if scope == "region" {
        let zones = group.zones.iter().map(|zone| json!({"zone": link(&format!("zones/{zone}"))}));
        body["distributionPolicy"] = json!({"zones": zones.collect::<Vec<_>>(), "targetShape": "EVEN"});
    }
    body
}

/// Pages only where the group says so; else all of them, whatever is asked.
fn members(cloud: &Cloud, request: &Request, key: &GroupKey) -> Result<Value, Answer> {
    let group = &cloud.groups[key];
    let all: Vec<_> = cloud.members(key).into_iter().map(|member| member_json(cloud, group, member)).collect();
    if !group.is_paginated {
        return Ok(json!({"managedInstances": all}));
    }
    let (page, next) = paged(&all, request.query("maxResults"), request.query("pageToken"), 500)?;
    Ok(with_token(json!({"managedInstances": page}), next))
}

fn member_json(cloud: &Cloud, group: &Group, instance: &Instance) -> Value {
    let template = cloud.compute_url(&format!("global/instanceTemplates/{}", group.template));
    let mut body = json!({
        "name": instance.name,
        "instance": cloud.instance_url(&instance.name),
        "currentAction": action(instance),
        "version": {"instanceTemplate": template},
    });
    if let Some(status) = status(instance) {
        body["instanceStatus"] = json!(status);
        body["id"] = json!(instance.id.to_string());
    }
    if let Some(shortage) = &instance.shortage {
        let error = json!({"code": shortage.code, "message": shortage.message});
        body["lastAttempt"] = json!({"errors": {"errors": [error]}});
    }
    body
}

/// The latest first.
fn errors(cloud: &Cloud, request: &Request, key: &GroupKey) -> Result<Value, Answer> {
    let all: Vec<_> = cloud.groups[key].errors.iter().rev().cloned().collect();
    let (page, next) = paged(&all, request.query("maxResults"), request.query("pageToken"), 500)?;
    Ok(with_token(json!({"items": page}), next))
}

fn insert(cloud: &mut Cloud, request: &Request, scope: &str) -> Result<Value, Answer> {
    if let Some(answer) = cloud.answered_before(request)? {
        return Ok(answer);
    }
    let body = request.json()?;
    let name = body["name"].as_str().unwrap_or_default().to_owned();
    let key = GroupKey { scope: scope.into(), name: name.clone() };
    if cloud.groups.contains_key(&key) {
        let text = format!("The resource 'projects/{}/{key}' already exists", cloud.options.project);
        return Err(plain_refusal(409, "alreadyExists", &text));
    }
    let template = body["instanceTemplate"].as_str().or_else(|| body["versions"][0]["instanceTemplate"].as_str());
    let template = template.map(last_part).unwrap_or_default().to_owned();
    if template.is_empty() || name.is_empty() {
        return Err(plain_refusal(400, "required", "Required field 'name' or 'instanceTemplate' not specified"));
    }
    let shape = cloud.templates.get(&template).map(|template| template.shape.clone());
    let shape = shape.unwrap_or(Shape { machine_type: "n1-standard-4".into(), gpus: None, is_preemptible: false });
    let place = last_part(scope).to_owned();
    let zones = match scope.starts_with("zones/") {
        true => vec![place],
        false => vec![format!("{place}-a"), format!("{place}-b")],
    };
    let base = body["baseInstanceName"].as_str().unwrap_or(&name).to_owned();
    cloud.add_group(key.clone(), &base, shape, zones);
    let group = cloud.groups.get_mut(&key).expect("just made");
    group.is_paginated = body["listManagedInstancesResults"] == "PAGINATED";
    group.order = without_nothing(&body);
    let (id, size) = (group.id, number(&body["targetSize"]));
    cloud.resize(&key, size, cloud.now);
    Ok(cloud.begin_compute(request, "insert", (&key, id), compute_orders::ComputeOrder::Nothing))
}

/// As it is told later: without nulls and empty objects.
fn without_nothing(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().map(|(name, value)| (name.clone(), without_nothing(value)));
            Value::Object(kept.filter(|(_, value)| !value.is_null() && *value != json!({})).collect())
        }
        other => other.clone(),
    }
}
