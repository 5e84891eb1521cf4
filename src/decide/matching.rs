//! Which NodeManager is which machine: by host, and by nothing else. Found once for as long as the hosts stay the same.

use std::sync::Arc;

use crate::model::{Capacity, GroupName, Instance, Node, Observation};

/// The machines of the provider beside their NodeManagers, of one look at both.
#[derive(Clone, Debug)]
pub struct Matching {
    observation: Arc<Observation>,
    capacity: Arc<Capacity>,
    /// For each instance, in the provider's order, where its node is.
    nodes: Vec<Option<usize>>,
    /// Where the nodes are whose host is no instance's.
    others: Vec<usize>,
    /// How many different hosts the instances have.
    hosts: usize,
}

impl Matching {
    /// Matches what was seen.
    pub fn of(observation: &Arc<Observation>, capacity: &Arc<Capacity>) -> Self {
        // Sorted once: looked up one by one, a thousand nodes cost a million comparisons. YARN's port sorts them.
        let mut by_host: Vec<_> = observation.nodes.iter().map(|node| node.id.host.as_str()).zip(0..).collect();
        by_host.sort_by_key(|(host, _)| *host);
        let node_of = |instance: &Instance| {
            let after = by_host.partition_point(|(host, _)| *host <= instance.host.as_str());
            // Of several nodes of one host the last one counts.
            by_host[..after].last().filter(|(host, _)| *host == instance.host).map(|(_, index)| *index)
        };
        let nodes = capacity.instances().map(|(_, instance)| node_of(instance)).collect();
        let mut hosts: Vec<_> = capacity.instances().map(|(_, instance)| instance.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let is_other = |index: &usize| hosts.binary_search(&observation.nodes[*index].id.host.as_str()).is_err();
        let others = (0..observation.nodes.len()).filter(is_other).collect();
        let hosts = hosts.len();
        Self { observation: Arc::clone(observation), capacity: Arc::clone(capacity), nodes, others, hosts }
    }

    /// The same of a later look. Where all hosts are where they were, so is who is who.
    pub fn of_later(&self, observation: &Arc<Observation>, capacity: &Arc<Capacity>) -> Self {
        if !self.same_nodes(observation) || !self.same_instances(capacity) {
            return Self::of(observation, capacity);
        }
        let (nodes, others) = (self.nodes.clone(), self.others.clone());
        Self { observation: Arc::clone(observation), capacity: Arc::clone(capacity), nodes, others, hosts: self.hosts }
    }

    fn same_nodes(&self, observation: &Arc<Observation>) -> bool {
        let (ours, theirs) = (&self.observation.nodes, &observation.nodes);
        let same = |(our, their): (&Arc<Node>, &Arc<Node>)| Arc::ptr_eq(our, their) || our.id.host == their.id.host;
        Arc::ptr_eq(&self.observation, observation) || (ours.len() == theirs.len() && ours.iter().zip(theirs).all(same))
    }

    fn same_instances(&self, capacity: &Arc<Capacity>) -> bool {
        Arc::ptr_eq(&self.capacity, capacity) || {
            fn host((_, instance): (GroupName, &Instance)) -> &str {
                &instance.host
            }
            self.capacity.instances().map(host).eq(capacity.instances().map(host))
        }
    }

    /// What YARN said.
    pub fn observation(&self) -> &Arc<Observation> {
        &self.observation
    }

    /// What the provider said.
    pub fn capacity(&self) -> &Arc<Capacity> {
        &self.capacity
    }

    /// How many machines there are.
    pub fn instances(&self) -> usize {
        self.nodes.len()
    }

    /// How many different hosts they have.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Each machine with its group and its NodeManager, in the provider's order.
    pub fn pairs(&self) -> impl Iterator<Item = (GroupName, &Instance, Option<&Node>)> {
        let node = |at: &Option<usize>| at.map(|at| self.observation.nodes[at].as_ref());
        self.capacity.instances().zip(&self.nodes).map(move |((group, instance), at)| (group, instance, node(at)))
    }

    /// The nodes whose host is no machine's.
    pub fn others(&self) -> impl Iterator<Item = &Node> {
        self.others.iter().map(|at| self.observation.nodes[*at].as_ref())
    }
}
