//! The controller's ports over the little world: thin, and with the places where a controller can die.

use std::{future::pending, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use yarn_autoscaler::{
    model::{Capacity, GroupName, Intent, Node, NodeId, NodeState, Observation, Resources, SizeChange, State},
    ports::{
        Clock, Cluster, ErrorKind, Journal, OperationState, PolicyChange, PolicySource, PortError, Provider,
        StateStore, Tick, Wake,
    },
};

use crate::world::{FULL, Shared, Told, World, look};

/// All ports: each is a handle on the same world. `generation` is the store's: what it has seen last.
pub struct Port {
    world: Shared,
    generation: u64,
}

impl Port {
    pub fn new(world: &Shared) -> Self {
        Self { world: world.clone(), generation: 0 }
    }

    /// A place where the controller may die: a future that never comes back.
    async fn boundary(&self) {
        let dies = self.world.borrow_mut().dies_here();
        if dies {
            pending::<()>().await;
        }
    }

    async fn order(&self, request_id: &str, intent: Intent) -> Result<String, PortError> {
        self.boundary().await;
        let answer = self.world.borrow_mut().order(request_id, intent);
        self.boundary().await;
        answer
    }

    /// Does something to YARN.
    async fn told(&self, act: impl FnOnce(&mut World) -> Result<(), PortError>) -> Result<(), PortError> {
        self.boundary().await;
        let now = self.world.borrow().now;
        self.world.borrow_mut().admin_calls.push(now);
        let fault = self.world.borrow().yarn_fault.or(self.world.borrow().admin_fault);
        let answer = match fault {
            Some(kind) => Err(PortError::new(kind, "YARN is not to be had")),
            None => act(&mut self.world.borrow_mut()),
        };
        self.boundary().await;
        answer
    }
}

impl Clock for Port {
    fn now(&self) -> DateTime<Utc> {
        self.world.borrow().now
    }

    async fn sleep_until(&self, at: DateTime<Utc>) -> Wake {
        let mut world = self.world.borrow_mut();
        world.advance(at);
        if world.now >= world.end { Wake::Stop } else { Wake::Tick }
    }
}

impl Cluster for Port {
    async fn observe(&self, _now: DateTime<Utc>) -> Result<Arc<Observation>, PortError> {
        let world = &mut *self.world.borrow_mut();
        let observation = world.observation()?;
        Ok(look(world.same_looks, &mut world.last_observation, observation))
    }

    async fn nodes(&self) -> Result<Vec<Arc<Node>>, PortError> {
        let mut world = self.world.borrow_mut();
        if std::mem::take(&mut world.meddled_with) {
            world.nodes.values_mut().for_each(|node| node.cordoned = false);
        }
        Ok(world.observation()?.nodes)
    }

    async fn cordon(&self, node: &NodeId, leave: Resources) -> Result<(), PortError> {
        let set = |world: &mut World| match world.nodes.get_mut(&node.host) {
            Some(shown) if shown.cordoned && world.never_let_go.as_ref() == Some(&node.host) => {
                Err(PortError::new(ErrorKind::Denied, "not this one"))
            }
            Some(node) if node.state.is_active() => {
                if node.cordoned && !node.containers.is_empty() && world.swaps_when_let_go > 0 {
                    world.swaps_when_let_go -= 1;
                    node.containers[0].memory_mb += 256;
                }
                (node.cordoned, node.left) = (true, leave);
                Ok(())
            }
            _ => Err(PortError::new(ErrorKind::NotFound, format!("no such node: {node}"))),
        };
        self.told(set).await
    }

    async fn uncordon(&self, node: &NodeId, full: Resources) -> Result<(), PortError> {
        assert_eq!(full, FULL, "a node gets back what it had");
        let set = |world: &mut World| match world.nodes.get_mut(&node.host) {
            Some(node) if node.state == NodeState::Running => {
                node.cordoned = false;
                Ok(())
            }
            _ => Err(PortError::new(ErrorKind::NotFound, format!("no such node: {node}"))),
        };
        self.told(set).await
    }

    async fn decommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError> {
        self.told(|world| {
            let deadline = world.now + timeout;
            for host in hosts {
                world.excluded.insert(host.clone());
                world.nodes.get_mut(host).into_iter().for_each(|node| node.exclude(deadline));
            }
            Ok(())
        })
        .await
    }

    async fn recommission(&self, hosts: &[String], _timeout: Duration) -> Result<(), PortError> {
        self.told(|world| {
            for host in hosts {
                world.excluded.remove(host);
                let node = world.nodes.get_mut(host).filter(|node| node.state == NodeState::Decommissioning);
                node.into_iter().for_each(|node| node.state = NodeState::Running);
            }
            Ok(())
        })
        .await
    }
}

impl Provider for Port {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        let answers_at = self.world.borrow().now + self.world.borrow().describe_takes;
        self.world.borrow_mut().advance(answers_at);
        let mut capacity = self.world.borrow().capacity();
        let missing = std::mem::take(&mut self.world.borrow_mut().list_is_short_by);
        for group in capacity.groups.values_mut() {
            group.instances.truncate(group.instances.len().saturating_sub(missing));
        }
        let world = &mut *self.world.borrow_mut();
        Ok(look(world.same_looks, &mut world.last_capacity, capacity))
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        self.order(request_id, Intent::Create { group, count }).await
    }

    async fn resize(&self, request_id: &str, change: SizeChange, timeout: Duration) -> Result<String, PortError> {
        self.order(request_id, Intent::Resize { change, timeout }).await
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        self.order(request_id, Intent::Delete { group, instances: instances.to_vec() }).await
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        let world = self.world.borrow();
        if world.polls_fail {
            return Err(PortError::new(ErrorKind::Denied, "operations.get is not allowed"));
        }
        let gone = || PortError::new(ErrorKind::NotFound, "no such operation");
        let taken = world.taken.get(operation_id).ok_or_else(gone)?;
        Ok(match taken.fails.filter(|_| taken.ended) {
            Some(kind) => OperationState::Failed(PortError::new(kind, "ended badly")),
            None if taken.ended => OperationState::Done,
            None => OperationState::Running,
        })
    }
}

impl StateStore for Port {
    async fn load(&mut self) -> Result<State, PortError> {
        let world = self.world.borrow();
        self.generation = world.generation;
        Ok(world.stored.clone())
    }

    /// Dies before or after the document is written: both look like a conflict, which ends the controller at once.
    async fn save(&mut self, state: &State) -> Result<(), PortError> {
        let mut world = self.world.borrow_mut();
        let dead = || Err(PortError::new(ErrorKind::Conflict, "killed"));
        if world.dies_here() {
            return dead();
        }
        if world.generation != self.generation {
            return Err(PortError::new(ErrorKind::Conflict, "changed by pid 4711 on m-0"));
        }
        if let Some(kind) = world.save_faults.pop_front() {
            return Err(PortError::new(kind, "no space left on device"));
        }
        // As a file would hold it.
        let json = serde_json::to_string(state).map_err(|error| PortError::transient(error.to_string()))?;
        world.stored = serde_json::from_str(&json).map_err(|error| PortError::transient(error.to_string()))?;
        world.generation += 1;
        self.generation = world.generation;
        if world.dies_here() { dead() } else { Ok(()) }
    }
}

impl Journal for Port {
    fn tick(&mut self, tick: &Tick<'_>) {
        let at = tick.situation.now;
        let (decision, notes) = (tick.decision.clone(), tick.notes.to_vec());
        let seen = (tick.situation.observation.clone().ok()).zip(tick.situation.capacity.clone().ok());
        self.world.borrow_mut().journal.push(Told { at, decision, notes, settled_until: tick.settled_until, seen });
    }
}

impl PolicySource for Port {
    async fn check(&mut self, _now: DateTime<Utc>) -> PolicyChange {
        self.world.borrow_mut().policies.pop_front().unwrap_or(PolicyChange::Unchanged)
    }
}
