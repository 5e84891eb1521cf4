//! Hosts, their machines and NodeManagers as they are. Data and its plain arithmetic; what happens to them is told
//! elsewhere.

use std::sync::Arc;

use super::events::{AppId, ContainerId};
use crate::{
    model::{GroupName, Node, NodeState, Resources},
    sim::{Ms, outcome::Account, outcome::Machines},
};

/// A host name, with the machine that has it now and the node that the ResourceManager lists under it.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) host: String,
    pub(super) group: GroupName,
    /// Counts the machines that had this name: an event of an earlier one is void.
    pub(super) generation: u32,
    pub(super) machine: Option<Machine>,
    /// The node may outlive its machine: YARN gives up on one that went without a word only after a while.
    pub(super) node: Option<RmNode>,
    /// A heartbeat is on its way.
    pub(super) armed: bool,
    /// What it was counted as last.
    pub(super) counted: Option<Standing>,
}

/// A machine of the cloud.
#[derive(Debug)]
pub(super) struct Machine {
    /// Billed from here; `None`: not up yet.
    pub(super) up_at: Option<Ms>,
    /// When its NodeManager registered with all its GPUs.
    pub(super) registered_at: Option<Ms>,
    /// Its NodeManager has come to the ResourceManager: it was taken, with or without its GPUs, or sent away.
    pub(super) has_come: bool,
    /// It will never register.
    pub(super) never_registers: bool,
    /// It registers without its GPUs.
    pub(super) without_gpus: bool,
    /// When it died: the cloud says so.
    pub(super) dead_at: Option<Ms>,
    /// Its NodeManager runs.
    pub(super) manager_up: bool,
    /// It is being deleted.
    pub(super) stopping: bool,
    /// The sum of times with containers, up to the last change.
    pub(super) busy_ms: Ms,
    pub(super) busy_since: Option<Ms>,
    /// What its containers held, in units times ms.
    pub(super) container_units: u128,
}

impl Machine {
    pub(super) fn ordered() -> Self {
        Self {
            up_at: None,
            registered_at: None,
            has_come: false,
            never_registers: false,
            without_gpus: false,
            dead_at: None,
            manager_up: false,
            stopping: false,
            busy_ms: 0,
            busy_since: None,
            container_units: 0,
        }
    }

    /// Closes its account at `now`.
    pub(super) fn settle(&self, now: Ms, minimum_billed: Ms, account: &mut Account) {
        let Some(up_at) = self.up_at else { return };
        let units = u128::from(account.units_per_machine);
        let alive = now - up_at;
        let billed = alive.max(minimum_billed);
        let booted = self.registered_at.map_or(alive, |registered| registered - up_at);
        let busy = self.busy_ms + self.busy_since.map_or(0, |since| now - since);
        // A machine without its GPUs is of no use to those who pay for them, whatever runs on it.
        let (busy, containers) = if self.registered_at.is_some() { (busy, self.container_units) } else { (0, 0) };
        account.billed += u128::from(billed) * units;
        account.boot += u128::from(booted) * units;
        account.idle += u128::from(billed - booted - busy) * units;
        account.fragmentation += u128::from(busy) * units - containers;
    }
}

/// A node as the ResourceManager lists it.
#[derive(Debug)]
pub(super) struct RmNode {
    /// Which of the slot's machines it belongs to.
    pub(super) generation: u32,
    /// When its NodeManager reported first; it goes on from there.
    pub(super) beats_from: Ms,
    pub(super) state: NodeState,
    /// What its NodeManager declares: what it may hand out now.
    pub(super) total: Resources,
    pub(super) used: Resources,
    pub(super) containers: Vec<ContainerId>,
    /// Applications that have had a container here and have not ended, with the time of the first grant.
    pub(super) apps: Vec<(AppId, Ms)>,
    /// What it declared when its drain began: a recommission gives it back.
    pub(super) before_drain: Resources,
    /// When its drain began.
    pub(super) drains_since: Ms,
    /// When its drain ends, whatever runs.
    pub(super) deadline: Option<Ms>,
    pub(super) health_report: &'static str,
    /// As it was shown last; `None` once it has changed.
    pub(super) view: Option<Arc<Node>>,
}

impl RmNode {
    pub(super) fn running(generation: u32, total: Resources, beats_from: Ms) -> Self {
        Self {
            generation,
            beats_from,
            state: NodeState::Running,
            total,
            used: Resources::default(),
            containers: Vec::new(),
            apps: Vec::new(),
            before_drain: total,
            drains_since: 0,
            deadline: None,
            health_report: "",
            view: None,
        }
    }

    /// What may still be given away here.
    pub(super) fn free(&self) -> Resources {
        self.total.saturating_sub(self.used)
    }

    /// What the scheduler counts of it: nothing of a node that it does not have (unhealthy, gone), of a draining node
    /// just what is in use.
    pub(super) fn registered(&self) -> Option<Resources> {
        match self.state {
            NodeState::Running | NodeState::New => Some(self.total),
            NodeState::Decommissioning => Some(self.used),
            _ => None,
        }
    }

    /// What it takes containers with.
    pub(super) fn offers(&self) -> Resources {
        if self.state == NodeState::Running { self.total } else { Resources::default() }
    }
}

/// What a machine is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Ordered,
    Booting,
    Ready,
    Broken,
    Cordoned,
    Draining,
    Leaving,
}

impl Slot {
    pub(super) fn new(host: String, group: GroupName) -> Self {
        Self { host, group, generation: 0, machine: None, node: None, armed: false, counted: None }
    }

    /// The node that its present machine is to YARN.
    pub(super) fn own_node(&self) -> Option<&RmNode> {
        self.node.as_ref().filter(|node| node.generation == self.generation)
    }

    /// Whether a NodeManager that lives runs there.
    pub(super) fn is_alive(&self) -> bool {
        self.machine.as_ref().is_some_and(|machine| machine.manager_up && machine.dead_at.is_none())
    }

    /// What its machine is worth to YARN just now; `full` is what its group's workers offer.
    pub(super) fn standing(&self, full: Resources) -> Option<Standing> {
        let machine = self.machine.as_ref()?;
        if machine.stopping {
            return Some(Standing::Leaving);
        }
        if machine.up_at.is_none() {
            return Some(Standing::Ordered);
        }
        if machine.dead_at.is_some() || machine.never_registers {
            return Some(Standing::Broken);
        }
        if !machine.has_come {
            return Some(Standing::Booting);
        }
        // Forgotten by a ResourceManager that started after its NodeManager had gone.
        let Some(node) = self.node.as_ref() else { return Some(Standing::Broken) };
        Some(match node.state {
            NodeState::Running if machine.without_gpus => Standing::Broken,
            NodeState::Running if node.total != full => Standing::Cordoned,
            NodeState::Running | NodeState::New => Standing::Ready,
            NodeState::Decommissioning => Standing::Draining,
            NodeState::Decommissioned | NodeState::Shutdown => Standing::Leaving,
            NodeState::Unhealthy | NodeState::Lost | NodeState::Rebooted | NodeState::Unknown => Standing::Broken,
        })
    }
}

/// The counter of a standing.
pub(super) fn counter(machines: &mut Machines, standing: Standing) -> &mut u32 {
    match standing {
        Standing::Ordered => &mut machines.ordered,
        Standing::Booting => &mut machines.booting,
        Standing::Ready => &mut machines.ready,
        Standing::Broken => &mut machines.broken,
        Standing::Cordoned => &mut machines.cordoned,
        Standing::Draining => &mut machines.draining,
        Standing::Leaving => &mut machines.leaving,
    }
}
