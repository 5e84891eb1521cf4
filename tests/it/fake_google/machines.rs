//! Machines of the simulated cloud: wanted, booting, running, being deleted; and what keeps them from existing.

use std::time::Instant;

use super::{MachineEvent, cloud::Cloud, groups::GroupKey, options::Gpus};

/// How far a machine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Ordered, and not there yet; tried from this moment on.
    Wanted {
        from: Instant,
    },
    /// There, and not running yet.
    Booting {
        until: Instant,
    },
    Running,
    /// Going.
    Deleting {
        until: Instant,
    },
}

/// Why a machine could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// `ZONE_RESOURCE_POOL_EXHAUSTED` or `QUOTA_EXCEEDED`.
    pub code: &'static str,
    pub message: String,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Instance {
    pub name: String,
    pub id: u64,
    pub zone: String,
    pub machine_type: String,
    pub gpus: Option<Gpus>,
    /// The group that keeps it; `None`: a cluster's primary worker or master.
    pub group: Option<GroupKey>,
    pub stage: Stage,
    /// Of the last attempt to make it.
    pub shortage: Option<Shortage>,
    pub is_preemptible: bool,
}

impl Instance {
    /// Whether there is a machine.
    pub fn exists(&self) -> bool {
        !matches!(self.stage, Stage::Wanted { .. })
    }

    /// Whether it is being deleted.
    pub fn is_going(&self) -> bool {
        matches!(self.stage, Stage::Deleting { .. })
    }

    /// The quota that its GPUs count against.
    pub fn quota(&self) -> Option<(String, u32)> {
        self.gpus.as_ref().map(|gpus| (quota_name(&gpus.kind, self.is_preemptible), gpus.count))
    }
}

/// `NVIDIA_T4_GPUS` for `nvidia-tesla-t4`; those of Spot machines have one of their own.
pub fn quota_name(kind: &str, is_preemptible: bool) -> String {
    let model = kind.trim_start_matches("nvidia-").trim_start_matches("tesla-");
    let prefix = if is_preemptible { "PREEMPTIBLE_" } else { "" };
    format!("{prefix}NVIDIA_{}_GPUS", model.replace('-', "_").to_uppercase())
}

impl Cloud {
    /// GPUs of existing machines that count against this quota.
    pub fn quota_used(&self, name: &str) -> u32 {
        let counted = self.instances.values().filter(|instance| instance.exists()).filter_map(Instance::quota);
        counted.filter(|(quota, _)| quota == name).map(|(_, count)| count).sum()
    }

    /// What keeps a machine like this from being made now.
    pub fn shortage(&self, instance: &Instance) -> Option<Shortage> {
        if self.options.stock_outs.contains(&instance.zone) {
            let message = format!(
                "The zone '{}' does not have enough resources available to fulfill the request. Try a different zone, \
                 or try again later.",
                self.zone_name(&instance.zone)
            );
            return Some(Shortage { code: "ZONE_RESOURCE_POOL_EXHAUSTED", message });
        }
        let (quota, count) = instance.quota()?;
        let limit = *self.options.quotas.get(&quota)?;
        let message = format!("Quota '{quota}' exceeded. Limit: {limit}.0 in region {}.", self.options.region);
        (self.quota_used(&quota) + count > limit).then_some(Shortage { code: "QUOTA_EXCEEDED", message })
    }

    fn zone_name(&self, zone: &str) -> String {
        format!("projects/{}/zones/{zone}", self.options.project)
    }

    /// Machines get one stage further, where it is time.
    pub fn advance_machines(&mut self) {
        let names: Vec<_> = self.instances.keys().cloned().collect();
        let mut started = Vec::new();
        for name in names {
            let instance = &self.instances[&name];
            match instance.stage {
                Stage::Wanted { from } if from <= self.now => self.attempt(&name),
                Stage::Booting { until } if until <= self.now => {
                    self.instances.get_mut(&name).expect("it is there").stage = Stage::Running;
                    started.push(name);
                }
                Stage::Deleting { until } if until <= self.now => {
                    drop(self.instances.remove(&name));
                }
                _ => {}
            }
        }
        let stopped = std::mem::take(&mut self.leaving);
        self.tell(MachineEvent::Stop(stopped));
        self.tell(MachineEvent::Start(started));
    }

    fn attempt(&mut self, name: &str) {
        let boot_takes = self.options.boot_takes;
        let shortage = self.shortage(&self.instances[name]);
        let now = self.now;
        let instance = self.instances.get_mut(name).expect("it is there");
        if shortage.is_none() {
            instance.stage = Stage::Booting { until: now + boot_takes };
        }
        // Each cause is told once: the group tries all the time.
        let fresh = shortage.as_ref().filter(|shortage| instance.shortage.as_ref() != Some(*shortage)).cloned();
        instance.shortage = shortage;
        if let (Some(shortage), Some(key)) = (fresh, instance.group.clone()) {
            self.record_shortage(&key, name, &shortage);
        }
    }

    /// A machine begins to go, or is gone at once where nobody had made it.
    pub fn delete_machine(&mut self, name: &str, until: Instant) {
        let Some(instance) = self.instances.get_mut(name) else { return };
        if !instance.exists() {
            drop(self.instances.remove(name));
            return;
        }
        if instance.stage == Stage::Running {
            self.leaving.push(name.to_owned());
        }
        instance.stage = Stage::Deleting { until };
    }

    fn tell(&mut self, event: MachineEvent) {
        match &event {
            MachineEvent::Start(names) | MachineEvent::Stop(names) if names.is_empty() => {}
            _ => self.events.push(event),
        }
    }
}
