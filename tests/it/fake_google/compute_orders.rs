//! Orders to managed instance groups: named machines made and deleted, sizes changed.

use serde_json::Value;

use super::{
    cloud::{Cloud, unrouted},
    dataproc_body::{last_part, number},
    groups::GroupKey,
    http::{Answer, Request, plain_refusal},
};

/// Machines that one request may name.
const NAMED_MAX: usize = 1000;

/// What an operation does at its end.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputeOrder {
    Nothing,
    Create(GroupKey, Vec<String>),
    Delete(GroupKey, Vec<String>),
    Abandon(GroupKey, Vec<String>),
    Resize(GroupKey, u32),
    DeleteGroup(GroupKey),
}

/// What is posted to a group.
pub fn answer(cloud: &mut Cloud, request: &Request, key: &GroupKey, rest: &[&str]) -> Result<Value, Answer> {
    if let Some(answer) = cloud.answered_before(request)? {
        return Ok(answer);
    }
    let key = key.clone();
    let (kind, order) = match (request.method.as_str(), rest) {
        ("DELETE", []) => ("delete", ComputeOrder::DeleteGroup(key.clone())),
        ("PATCH", []) => match &request.json()?["targetSize"] {
            Value::Null => ("patch", ComputeOrder::Nothing),
            size => ("patch", ComputeOrder::Resize(key.clone(), number(size))),
        },
        ("POST", ["resize"]) => {
            let size = request.query("size").and_then(|size| size.parse().ok());
            let text = "Required field 'size' not specified, or it is no number of machines";
            let size = size.ok_or_else(|| plain_refusal(400, "required", text))?;
            ("resize", ComputeOrder::Resize(key.clone(), size))
        }
        ("POST", ["createInstances"]) => {
            ("createInstances", ComputeOrder::Create(key.clone(), created(cloud, &request.json()?)?))
        }
        ("POST", ["deleteInstances"]) => {
            ("deleteInstances", ComputeOrder::Delete(key.clone(), named(cloud, &request.json()?, &key)?))
        }
        ("POST", ["abandonInstances"]) => {
            ("abandonInstances", ComputeOrder::Abandon(key.clone(), named(cloud, &request.json()?, &key)?))
        }
        _ => return Err(unrouted(request)),
    };
    let id = cloud.groups[&key].id;
    Ok(cloud.begin_compute(request, &format!("compute.instanceGroupManagers.{kind}"), (&key, id), order))
}

fn entries<'a>(body: &'a Value, field: &str) -> Result<&'a [Value], Answer> {
    let entries = body[field].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        return Err(plain_refusal(400, "required", &format!("Required field '{field}' not specified")));
    }
    if entries.len() > NAMED_MAX {
        let text = format!("Invalid value for field '{field}': at most {NAMED_MAX} instances can be named");
        return Err(plain_refusal(400, "invalid", &text));
    }
    Ok(entries)
}

/// Names of machines to be made.
fn created(cloud: &Cloud, body: &Value) -> Result<Vec<String>, Answer> {
    let mut names: Vec<String> = Vec::new();
    for entry in entries(body, "instances")? {
        let name = entry["name"].as_str().unwrap_or_default();
        let is_letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let begins = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if !begins || name.len() > 63 || !name.bytes().all(is_letter) || name.ends_with('-') {
            let text = format!("Invalid value for field 'instances[].name': '{name}'. Must be a match of RFC 1035");
            return Err(plain_refusal(400, "invalid", &text));
        }
        if cloud.instances.contains_key(name) || names.iter().any(|other| other == name) {
            let text = format!("Invalid value for field 'instances[].name': '{name}'. The instance already exists");
            return Err(plain_refusal(400, "invalid", &text));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Machines of the group by addresses, or by names; those that are none are refused, or left out where told.
fn named(cloud: &Cloud, body: &Value, key: &GroupKey) -> Result<Vec<String>, Answer> {
    let given: Vec<_> = entries(body, "instances")?.iter().filter_map(Value::as_str).collect();
    let addresses = given.iter().filter(|text| text.contains('/')).count();
    if addresses > 0 && addresses < given.len() {
        return Err(plain_refusal(400, "invalid", "Instances are given by URLs or by names, not by both"));
    }
    let members = cloud.members(key);
    let mut names = Vec::new();
    for text in given {
        let name = last_part(text);
        let is_member = members.iter().any(|member| {
            // An address says the zone, too.
            member.name == name && (!text.contains('/') || text.contains(&format!("zones/{}/", member.zone)))
        });
        if is_member {
            names.push(name.to_owned());
        } else if body["skipInstancesOnValidationError"] != true {
            let text = format!("Invalid value for field 'instances': '{text}'. It is no member of {}", key.name);
            return Err(plain_refusal(400, "invalid", &text));
        }
    }
    Ok(names)
}

impl Cloud {
    /// An operation's end: the group's sizes and machines are as ordered.
    pub fn carry_out(&mut self, order: &ComputeOrder) {
        match order {
            ComputeOrder::Nothing => {}
            ComputeOrder::Create(key, names) => {
                let names: Vec<_> = names.iter().filter(|name| !self.instances.contains_key(*name)).cloned().collect();
                self.add_members(key, &names, self.now);
                self.change_target(key, |size| size + count(&names));
            }
            ComputeOrder::Delete(key, names) => {
                let goes = |name: &&String| self.instances.get(*name).is_some_and(|instance| !instance.is_going());
                let names: Vec<_> = names.iter().filter(goes).cloned().collect();
                self.change_target(key, |size| size.saturating_sub(count(&names)));
                let until = self.now + self.options.operation_takes;
                for name in &names {
                    self.delete_machine(name, until);
                }
            }
            ComputeOrder::Abandon(key, names) => {
                self.change_target(key, |size| size.saturating_sub(count(names)));
                for name in names {
                    if let Some(instance) = self.instances.get_mut(name) {
                        instance.group = None;
                    }
                }
            }
            ComputeOrder::Resize(key, size) => {
                if self.groups.contains_key(key) {
                    self.resize(key, *size, self.now);
                }
            }
            ComputeOrder::DeleteGroup(key) => {
                if self.groups.contains_key(key) {
                    self.resize(key, 0, self.now);
                    self.groups.remove(key);
                }
            }
        }
    }

    fn change_target(&mut self, key: &GroupKey, change: impl FnOnce(u32) -> u32) {
        if let Some(group) = self.groups.get_mut(key) {
            group.target_size = change(group.target_size);
        }
    }
}

fn count(names: &[String]) -> u32 {
    u32::try_from(names.len()).expect("few")
}
