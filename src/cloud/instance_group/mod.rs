//! The provider `instance-group`: managed instance groups of Compute Engine, zonal or regional, for a YARN that somebody
//! runs by himself. Knows nothing of YARN, of what is decided, or of when to try again.
//!
//! # What becomes of an order
//! * Machines get names of ours, which follow from the request id (`order`): an order that is given again after its
//!   answer was lost asks for the same machines, and makes none twice, whether or not Compute Engine remembers it.
//! * Compute Engine's operation ends as soon as the group has taken the order; the machines come later, or do not. So an
//!   order to create runs until each machine has been made or cannot be had. A group never gives up by itself: it tries
//!   again for ever, and its size says that the machine is there. A machine that cannot be had (no stock, no quota, a
//!   template that is wrong) is therefore withdrawn by [`poll`](Provider::poll), deleted by its name before it exists,
//!   and the order ends as failed, of the kind that the group was told. Nothing is left behind, the controller waits as
//!   it does after any order of that kind, and the group is asked again for as long as there is demand.
//! * What passes by itself (Compute Engine's own hiccups, too many requests) is left to the group.
//! * `createInstances` has no form without retries: only a resize of the whole group has, in beta, and it takes no names.

mod address;
mod failure;
mod order;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Serialize, de::DeserializeOwned};
use tokio::time::timeout;

pub use address::GroupAddress;
use order::Order;
use wire::{Managed, WireCreate, WireDelete, WireGroup, WireNewInstance, WireOperation, WirePage, WireTemplate};

use super::WorkerNames;
use crate::{
    google::{Api, ApiError},
    model::{Capabilities, Capacity, Group, GroupName, Instance, InstanceState, Readiness, SizeChange, WorkerTemplate},
    ports::{ErrorKind, OperationState, PortError, Provider},
};

/// How long one call of the port may take, with all its requests.
const CALL_MAX: Duration = Duration::from_secs(30);

/// Machines a page of the list; the most that Compute Engine gives.
const PAGE: &str = "500";

/// Most pages of a group's list: a group has some thousand machines at most.
const PAGES_MAX: usize = 40;

/// Most machines an order, as Compute Engine has it. The rest is ordered at a later tick.
const ORDER_MAX: usize = 1000;

/// Managed instance groups as the worker groups of a cluster.
#[derive(Debug)]
pub struct InstanceGroupProvider {
    api: Api,
    project: String,
    groups: BTreeMap<GroupName, GroupAddress>,
    names: WorkerNames,
    declared: BTreeMap<GroupName, WorkerTemplate>,
    seen: Mutex<Seen>,
}

/// What is kept from one look to the next.
#[derive(Debug, Default)]
struct Seen {
    /// By their addresses: a template never changes.
    templates: BTreeMap<String, Option<WorkerTemplate>>,
    capacity: Option<Arc<Capacity>>,
}

impl InstanceGroupProvider {
    /// These groups of this project, by Compute Engine's API. Nothing is asked yet.
    pub fn new(api: Api, project: String, groups: BTreeMap<GroupName, GroupAddress>, names: WorkerNames) -> Self {
        Self { api, project, groups, names, declared: BTreeMap::new(), seen: Mutex::default() }
    }

    /// What the operator says that workers of these groups declare to YARN. It is taken at its word: the machine's
    /// template is not read then. Of other groups the machine type tells cores and GPUs, and 80 percent of its memory
    /// stands for what its NodeManager declares.
    #[must_use]
    pub fn declaring(mut self, declared: BTreeMap<GroupName, WorkerTemplate>) -> Self {
        self.declared = declared;
        self
    }

    fn address(&self, group: GroupName) -> Result<&GroupAddress, PortError> {
        let none =
            || PortError::new(ErrorKind::NotFound, format!("no instance group is given for the {group} workers"));
        self.groups.get(&group).ok_or_else(none)
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, PortError> {
        self.api.get(path, &[]).await.map_err(|error| failure::refusal(&error))
    }

    async fn group(&self, address: &GroupAddress) -> Result<WireGroup, PortError> {
        let answer: Result<_, ApiError> = self.api.get(&address.path(&self.project), &[]).await;
        answer.map_err(|error| match failure::refusal(&error) {
            PortError { kind: ErrorKind::NotFound, text } => {
                let text = format!(
                    "{text}; `gcloud compute instance-groups managed list --project {}` shows those that exist",
                    address.project(&self.project)
                );
                PortError::new(ErrorKind::NotFound, text)
            }
            error => error,
        })
    }

    /// Every machine of a group, to the last page.
    async fn managed(&self, address: &GroupAddress) -> Result<Vec<Managed>, PortError> {
        let path = format!("{}/listManagedInstances", address.path(&self.project));
        let (mut machines, mut token) = (Vec::new(), String::new());
        for _ in 0..PAGES_MAX {
            let mut query = vec![("maxResults", PAGE)];
            query.extend((!token.is_empty()).then_some(("pageToken", token.as_str())));
            let answer = self.api.post_without_body(&path, &query).await;
            let WirePage { managed_instances, next_page_token } = answer.map_err(|error| failure::refusal(&error))?;
            for machine in managed_instances {
                machines.push(Managed::of(machine, address)?);
            }
            match next_page_token.filter(|next| !next.is_empty()) {
                None => {
                    machines.sort_by(|a, b| a.name.cmp(&b.name));
                    return Ok(machines);
                }
                Some(next) => token = next,
            }
        }
        let text = format!("the list of {address} has no end: {PAGES_MAX} pages were read");
        Err(PortError::transient(text))
    }

    async fn describe_group(&self, name: GroupName, address: &GroupAddress) -> Result<(Group, Readiness), PortError> {
        let group = self.group(address).await?;
        let machines = self.managed(address).await?;
        let target = group.target_size.unwrap_or(0);
        if machines.is_empty() && target > 0 {
            let text = format!("{address} is to have {target} machines, and its list is empty: no list is believed");
            return Err(PortError::transient(text));
        }
        let template = self.template(name, address, &group).await?;
        let mut instances: Vec<_> = machines.into_iter().map(|machine| machine.into_instance(&self.names)).collect();
        promise(&mut instances, name, target);
        Ok((Group { template, instances }, group.readiness(address)))
    }

    /// What a worker of the group declares, where that is known.
    async fn template(
        &self,
        name: GroupName,
        address: &GroupAddress,
        group: &WireGroup,
    ) -> Result<Option<WorkerTemplate>, PortError> {
        if let Some(declared) = self.declared.get(&name) {
            return Ok(Some(declared.clone()));
        }
        let Some(url) = group.template() else { return Ok(None) };
        if let Some(known) = self.with_seen(|seen| seen.templates.get(url).cloned()) {
            return Ok(known);
        }
        let path = match url.split_once("projects/") {
            Some((_, path)) => format!("compute/v1/projects/{path}"),
            None => format!("compute/v1/projects/{}/{url}", address.project(&self.project)),
        };
        let template = self.get::<WireTemplate>(&path).await?.as_meant();
        self.with_seen(|seen| seen.templates.insert(url.to_owned(), template.clone()));
        Ok(template)
    }

    fn with_seen<T>(&self, of: impl FnOnce(&mut Seen) -> T) -> T {
        of(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same `Arc` as before, where nothing has changed.
    fn share(&self, capacity: Capacity) -> Arc<Capacity> {
        self.with_seen(|seen| match &seen.capacity {
            Some(last) if **last == capacity => Arc::clone(last),
            _ => Arc::clone(seen.capacity.insert(Arc::new(capacity))),
        })
    }

    async fn look(&self) -> Result<Arc<Capacity>, PortError> {
        let capabilities = Capabilities { deletes_named: true, overlaps: true, resizes: false };
        let (mut groups, mut readiness) = (BTreeMap::new(), Readiness::Ready);
        for (name, address) in &self.groups {
            let (group, ready) = self.describe_group(*name, address).await?;
            groups.insert(*name, group);
            if readiness.is_ready() {
                readiness = ready;
            }
        }
        Ok(self.share(Capacity { capabilities, groups, identity: None, readiness }))
    }

    /// Gives an order to a group; returns where its operation is asked for.
    async fn order(
        &self,
        address: &GroupAddress,
        method: &str,
        uuid: &str,
        body: &impl Serialize,
    ) -> Result<String, PortError> {
        let path = format!("{}/{method}", address.path(&self.project));
        let answer = self.api.post(&path, &[("requestId", uuid)], body).await;
        let WireOperation { name, .. } = answer.map_err(|error| failure::refusal(&error))?;
        Ok(address.operation(&name))
    }

    async fn give_create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        let address = self.address(group)?;
        let base = self.group(address).await?.base_instance_name;
        let count = count.min(u32::try_from(ORDER_MAX).unwrap_or(u32::MAX));
        let names = order::names(request_id, &base, count);
        let instances = names.iter().map(|name| WireNewInstance { name }).collect();
        let uuid = order::request_uuid(request_id, "create");
        let operation = match self.order(address, "createInstances", &uuid, &WireCreate { instances }).await {
            Ok(operation) => Some(operation),
            // Names are refused that are taken: by this very order, where Compute Engine has forgotten its request id.
            Err(refusal) if matches!(refusal.kind, ErrorKind::Conflict | ErrorKind::Permanent) => {
                let listed = self.managed(address).await?;
                let was_taken = listed.iter().any(|machine| names.contains(&machine.name));
                if was_taken { None } else { return Err(refusal) }
            }
            Err(error) => return Err(error),
        };
        Ok(Order::Create { group, base, count, request_id: request_id.to_owned(), operation }.to_id())
    }

    async fn give_delete(&self, request_id: &str, group: GroupName, named: &[String]) -> Result<String, PortError> {
        let address = self.address(group)?;
        let named: BTreeSet<_> = named.iter().collect();
        // Only what the group itself shows is deleted, and a regional group alone knows in which zone it is.
        let listed = self.managed(address).await?;
        let there = listed.iter().filter(|machine| named.contains(&machine.name) && !machine.is_leaving());
        let operation = self.delete_these(address, there, &order::request_uuid(request_id, "delete")).await?;
        Ok(Order::Delete { group, operation }.to_id())
    }

    /// Deletes these; `None` where there is nothing to delete.
    async fn delete_these(
        &self,
        address: &GroupAddress,
        machines: impl Iterator<Item = &Managed>,
        uuid: &str,
    ) -> Result<Option<String>, PortError> {
        let instances: Vec<_> = machines.filter_map(Managed::relative_url).take(ORDER_MAX).collect();
        if instances.is_empty() {
            return Ok(None);
        }
        let body = WireDelete { instances, skip_instances_on_validation_error: true };
        self.order(address, "deleteInstances", uuid, &body).await.map(Some)
    }

    async fn look_at(&self, operation_id: &str) -> Result<OperationState, PortError> {
        let unknown = || PortError::new(ErrorKind::NotFound, format!("there is no operation `{operation_id}`"));
        let order = Order::of_id(operation_id).ok_or_else(unknown)?;
        let address = self.address(order.group())?;
        let mut failure = None;
        if let Some(operation) = order.operation() {
            let path = format!("compute/v1/projects/{}/{operation}", address.project(&self.project));
            let operation: WireOperation = self.get(&path).await?;
            if operation.status != "DONE" {
                return Ok(OperationState::Running);
            }
            failure = operation.error.failure();
        }
        match order {
            Order::Create { base, count, request_id, .. } => {
                self.follow(address, &request_id, &order::names(&request_id, &base, count), failure).await
            }
            Order::Delete { .. } => Ok(failure.map_or(OperationState::Done, OperationState::Failed)),
        }
    }

    /// What has become of the machines of an order that the group has taken, or has `refused`. Those that cannot be had
    /// are withdrawn.
    async fn follow(
        &self,
        address: &GroupAddress,
        request_id: &str,
        names: &[String],
        refused: Option<PortError>,
    ) -> Result<OperationState, PortError> {
        let mut machines = self.managed(address).await?;
        machines.retain(|machine| names.contains(&machine.name));
        let may_come = |machine: &&Managed| machine.is_being_made && machine.given_up().is_none();
        if refused.is_none() && machines.iter().any(|machine| may_come(&machine)) {
            return Ok(OperationState::Running);
        }
        let in_vain = machines.iter().filter(|machine| machine.is_being_made);
        self.delete_these(address, in_vain, &order::request_uuid(request_id, "withdraw")).await?;
        let failures = machines.iter().filter_map(|machine| machine.given_up().cloned());
        let there = machines.iter().filter(|machine| !machine.is_being_made && !machine.is_leaving()).count();
        let missing = names.len().saturating_sub(there);
        Ok(match failure::worst(failures.chain(refused)) {
            Some(PortError { kind, text }) => {
                let text = format!("{missing} of {} machines of {address} could not be had: {text}", names.len());
                OperationState::Failed(PortError::new(kind, text))
            }
            None if missing > 0 => {
                let text = format!("{missing} of {} machines are not in {address} any more", names.len());
                OperationState::Failed(PortError::transient(text))
            }
            None => OperationState::Done,
        })
    }
}

/// Adds what a group is to have and does not list yet.
fn promise(instances: &mut Vec<Instance>, group: GroupName, target: u32) {
    let kept = instances.iter().filter(|instance| instance.state != InstanceState::Stopping).count();
    let missing = usize::try_from(target).unwrap_or(usize::MAX).saturating_sub(kept);
    for number in 1..=missing {
        let name = format!("({group}, promised {number})");
        instances.push(Instance { host: name.clone(), name, state: InstanceState::Promised });
    }
}

/// However many requests it takes, a call ends.
async fn in_time<T>(call: impl Future<Output = Result<T, PortError>>) -> Result<T, PortError> {
    let too_late = |_| PortError::transient(format!("Compute Engine did not answer within {} s", CALL_MAX.as_secs()));
    timeout(CALL_MAX, call).await.map_err(too_late)?
}

impl Provider for InstanceGroupProvider {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        in_time(self.look()).await
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        in_time(self.give_create(request_id, group, count)).await
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        in_time(self.give_delete(request_id, group, instances)).await
    }

    async fn resize(&self, _: &str, _: SizeChange, _: Duration) -> Result<String, PortError> {
        let text = "an instance group that is made smaller chooses its machines by itself: they are deleted by name";
        Err(PortError::new(ErrorKind::Permanent, text))
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        in_time(self.look_at(operation_id)).await
    }
}
