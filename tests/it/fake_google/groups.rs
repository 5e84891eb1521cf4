//! Managed instance groups of the simulated cloud. A cluster's secondary workers are one, too.

use std::{fmt, time::Instant};

use serde_json::{Value, json};

use super::{
    cloud::Cloud,
    machines::{Instance, Shortage, Stage},
    options::{Gpus, GroupSpec},
};

/// Where a group is, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupKey {
    /// `zones/us-central1-a` or `regions/us-central1`.
    pub scope: String,
    pub name: String,
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/instanceGroupManagers/{}", self.scope, self.name)
    }
}

/// A group. Its machines are those that name it.
#[derive(Clone, Debug)]
pub struct Group {
    pub id: u64,
    pub base_name: String,
    pub template: String,
    pub target_size: u32,
    /// In which its machines are made, one after the other.
    pub zones: Vec<String>,
    /// `listManagedInstancesResults` is `PAGINATED`.
    pub is_paginated: bool,
    /// As `listErrors` tells them, the latest last.
    pub errors: Vec<Value>,
    /// What was said when it was made.
    pub order: Value,
}

/// An instance template.
#[derive(Clone, Debug)]
pub struct Template {
    pub id: u64,
    pub shape: Shape,
}

/// What a group's machines are like.
#[derive(Clone, Debug)]
pub struct Shape {
    pub machine_type: String,
    pub gpus: Option<Gpus>,
    pub is_preemptible: bool,
}

impl Cloud {
    /// A group and its template, without machines.
    pub fn add_group(&mut self, key: GroupKey, base_name: &str, shape: Shape, zones: Vec<String>) {
        let template = format!("{}-template", key.name);
        let made = Template { id: self.random.number(), shape };
        self.templates.insert(template.clone(), made);
        let group = Group {
            id: self.random.number(),
            base_name: base_name.into(),
            template,
            target_size: 0,
            zones,
            is_paginated: false,
            errors: Vec::new(),
            order: json!({}),
        };
        self.groups.insert(key, group);
    }

    /// A group that is there from the start, with its machines.
    pub fn add_group_of(&mut self, spec: &GroupSpec) {
        let (region, zone) = (self.options.region.clone(), self.options.zone.clone());
        let (scope, zones) = match spec.is_regional {
            true => (format!("regions/{region}"), vec![format!("{region}-a"), format!("{region}-b")]),
            false => (format!("zones/{zone}"), vec![zone]),
        };
        let key = GroupKey { scope, name: spec.name.clone() };
        let (machine_type, gpus) = (spec.machine_type.clone(), spec.gpus.clone());
        let shape = Shape { machine_type, gpus, is_preemptible: spec.is_preemptible };
        self.add_group(key.clone(), &spec.base_name, shape, zones);
        self.groups.get_mut(&key).expect("just made").is_paginated = spec.is_paginated;
        self.resize(&key, spec.size, self.now);
    }

    /// Another number of machines; more of them are made from this moment on.
    pub fn resize(&mut self, key: &GroupKey, size: u32, from: Instant) {
        let group = self.groups.get_mut(key).expect("it is there");
        group.target_size = size;
        let base = group.base_name.clone();
        let mut members: Vec<_> = self.members(key).into_iter().filter(|member| !member.is_going()).cloned().collect();
        if let Some(more) = (size as usize).checked_sub(members.len()) {
            for _ in 0..more {
                let fresh = self.random_name(&base);
                self.add_members(key, &[fresh], from);
            }
            return;
        }
        // The group chooses: first what is not there yet, then as it happens.
        members.sort_by_key(|member| (member.exists(), member.stage == Stage::Running, member.id));
        let surplus = members.len() - size as usize;
        for member in &members[..surplus] {
            self.delete_machine(&member.name, self.now);
        }
    }

    /// Machines of a group, by name.
    pub fn members(&self, key: &GroupKey) -> Vec<&Instance> {
        self.instances.values().filter(|instance| instance.group.as_ref() == Some(key)).collect()
    }

    /// A name that looks random: the base and four letters or digits.
    pub fn random_name(&mut self, base: &str) -> String {
        loop {
            let letters = b"0123456789bcdfghjklmnpqrstvwxz";
            let suffix: String = (0..4).map(|_| char::from(letters[self.random.below(letters.len())])).collect();
            let name = format!("{base}-{suffix}");
            if !self.instances.contains_key(&name) {
                return name;
            }
        }
    }

    /// Adds machines of these names to a group; they are made from this moment on.
    pub fn add_members(&mut self, key: &GroupKey, names: &[String], from: Instant) {
        let shape = self.groups.get(key).and_then(|group| self.templates.get(&group.template));
        let shape = shape.expect("every group has a template").shape.clone();
        let zones = self.groups.get(key).map(|group| group.zones.clone()).unwrap_or_default();
        let before = self.members(key).len();
        for (index, name) in names.iter().enumerate() {
            let instance = Instance {
                name: name.clone(),
                id: self.random.number(),
                zone: zones[(before + index) % zones.len()].clone(),
                machine_type: shape.machine_type.clone(),
                gpus: shape.gpus.clone(),
                group: Some(key.clone()),
                stage: Stage::Wanted { from },
                shortage: None,
                is_preemptible: shape.is_preemptible,
            };
            self.instances.insert(name.clone(), instance);
        }
    }

    /// What `listErrors` will tell of an attempt that failed.
    pub fn record_shortage(&mut self, key: &GroupKey, name: &str, shortage: &Shortage) {
        let timestamp = self.timestamp();
        let instance = self.instance_url(name);
        let group = self.groups.get_mut(key).expect("its machines name it");
        group.errors.push(json!({
            "error": {"code": shortage.code, "message": shortage.message},
            "instanceActionDetails": {"action": "CREATING", "instance": instance},
            "timestamp": timestamp,
        }));
    }

    /// The full address of a machine.
    pub fn instance_url(&self, name: &str) -> String {
        let zone = self.instances.get(name).map_or(self.options.zone.as_str(), |instance| instance.zone.as_str());
        self.compute_url(&format!("zones/{zone}/instances/{name}"))
    }

    /// The full address of a thing of Compute Engine.
    pub fn compute_url(&self, path: &str) -> String {
        format!("{}/compute/v1/projects/{}/{path}", self.url, self.options.project)
    }
}
