//! The provider `dataproc`: a cluster of Dataproc's gets other sizes, or loses named workers, by Dataproc's own API.
//! Knows nothing of YARN, of what is decided, or of when to try again.
//!
//! | request | call |
//! |---|---|
//! | describe | `GET …/clusters/C` |
//! | create, resize | `PATCH …/clusters/C` with absolute sizes, right after a `GET` that says `RUNNING` |
//! | delete | `POST …/clusters/C:repair` with the workers' names |
//! | poll | `GET …/operations/O` |

mod cluster;
mod describe;
mod failure;
mod operation;
mod order;
pub mod policy;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;

use super::WorkerNames;
use crate::{
    google::{Api, ApiError},
    model::{Capabilities, Capacity, GroupName, Readiness, SizeChange},
    ports::{ErrorKind, OperationState, PortError, Provider},
};
use cluster::{Cluster, WireCluster};
use operation::WireOperation;
use order::{Order, REMOVED_MAX, Sent};

/// Stands before the request id in the name of an operation for which nothing had to be sent.
const NOTHING_SENT: &str = "nothing-to-delete/";

/// Longest request id that Dataproc takes.
const REQUEST_ID_MAX: usize = 40;

/// Which cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The project's id.
    pub project: String,
    /// The region's name.
    pub region: String,
    /// The cluster's name.
    pub cluster: String,
}

impl Target {
    fn path(&self) -> String {
        let Self { project, region, cluster } = self;
        format!("v1/projects/{project}/regions/{region}/clusters/{cluster}")
    }
}

/// How a cluster gets smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleDown {
    /// We choose and drain the workers, Dataproc deletes them by name (`clusters.repair`): the cluster takes other
    /// orders while they drain.
    Repair,
    /// Dataproc is given sizes, chooses the workers, drains and deletes them (`clusters.patch`): the cluster takes no
    /// other order until they are gone.
    Update,
}

/// Workers by Dataproc.
#[derive(Debug)]
pub struct DataprocProvider {
    api: Api,
    target: Target,
    scale_down: ScaleDown,
    names: WorkerNames,
    /// Whether a policy of Dataproc's own may be attached.
    beside_a_policy: bool,
    /// What was described last.
    described: Mutex<Option<(Cluster, Arc<Capacity>)>>,
    /// Held while an order is given: there is never a second one beside it.
    sent: tokio::sync::Mutex<Sent>,
}

impl DataprocProvider {
    /// The workers of this cluster, by the API `dataproc.googleapis.com`. Nothing is sent yet.
    pub fn new(api: Api, target: Target, scale_down: ScaleDown, names: WorkerNames) -> Self {
        let beside_a_policy = false;
        Self {
            api,
            target,
            scale_down,
            names,
            beside_a_policy,
            described: Mutex::default(),
            sent: tokio::sync::Mutex::default(),
        }
    }

    /// For a look that changes nothing: a policy of Dataproc's own that is attached is no reason to hold.
    #[must_use]
    pub fn beside_a_policy(self) -> Self {
        Self { beside_a_policy: true, ..self }
    }

    /// What to do about a policy of Dataproc's own that is attached.
    pub fn detach_first(&self, policy: &str) -> String {
        describe::rival(policy, &self.target)
    }

    /// The autoscaling policy of Dataproc's own that is attached to the cluster, by its resource name. With one, two
    /// autoscalers would undo what the other did.
    ///
    /// # Errors
    /// The cluster cannot be read.
    pub async fn attached_policy(&self) -> Result<Option<String>, PortError> {
        attached_policy(&self.api, &self.target).await
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { deletes_named: self.scale_down == ScaleDown::Repair, resizes: true, overlaps: false }
    }

    /// Gives an order, or gives it again just as it was. `plan` says what is to be sent, `None`: nothing.
    async fn order(
        &self,
        request_id: &str,
        plan: impl FnOnce(&Cluster) -> Result<Option<Order>, PortError>,
    ) -> Result<String, PortError> {
        check_request_id(request_id)?;
        let busy = |_| PortError::new(ErrorKind::Conflict, "another order is being given: nothing was sent");
        let mut sent = self.sent.try_lock().map_err(busy)?;
        let order = match sent.before(request_id) {
            // The service answers a request id that it knows with the first operation, whatever the cluster does now.
            Some(order) => {
                sent.count(Instant::now())?;
                order
            }
            None => {
                self.see_the_last_one_end(&mut sent).await?;
                let cluster = read_cluster(&self.api, &self.target).await?;
                let Some(order) = plan(&cluster)? else { return Ok(format!("{NOTHING_SENT}{request_id}")) };
                self.takes_orders(&cluster)?;
                sent.count(Instant::now())?;
                sent.remember(request_id, &order);
                order
            }
        };
        let operation = self.send(request_id, order).await?.into_name()?;
        sent.under_way = Some(operation.clone());
        Ok(operation)
    }

    /// A cluster may say for a moment that it is `RUNNING` when an operation on it has just begun.
    async fn see_the_last_one_end(&self, sent: &mut Sent) -> Result<(), PortError> {
        let Some(name) = &sent.under_way else { return Ok(()) };
        match self.look_at(name).await {
            Ok(OperationState::Running) => {
                let text = format!("nothing was sent: Dataproc's operation {name} is under way");
                Err(PortError::new(ErrorKind::Conflict, text))
            }
            Err(error) if error.kind != ErrorKind::NotFound => Err(error),
            _ => {
                sent.under_way = None;
                Ok(())
            }
        }
    }

    fn takes_orders(&self, cluster: &Cluster) -> Result<(), PortError> {
        let why = match describe::readiness(cluster, &self.target) {
            Readiness::Ready => return Ok(()),
            Readiness::Busy { what: why } | Readiness::Held { why } => why,
        };
        Err(PortError::new(ErrorKind::Conflict, format!("nothing was sent: {why}")))
    }

    async fn send(&self, request_id: &str, order: Order) -> Result<WireOperation, PortError> {
        let path = self.target.path();
        let answer = match order {
            Order::Patch { mask, timeout, body } => {
                let mut query = vec![("requestId", request_id), ("updateMask", mask.as_str())];
                query.extend(timeout.as_deref().map(|timeout| ("gracefulDecommissionTimeout", timeout)));
                query.sort_unstable();
                self.api.patch(&path, &query, &body).await
            }
            Order::Repair { mut body } => {
                body["requestId"] = json!(request_id);
                self.api.post(&format!("{path}:repair"), &[], &body).await
            }
        };
        answer.map_err(|error| meant(&error))
    }

    async fn look_at(&self, operation: &str) -> Result<OperationState, PortError> {
        if !operation::is_name(operation) {
            let text = format!("`{operation}` is no operation of Dataproc's: projects/…/regions/…/operations/…");
            return Err(PortError::new(ErrorKind::NotFound, text));
        }
        let answer: WireOperation =
            self.api.get(&format!("v1/{operation}"), &[]).await.map_err(|error| meant(&error))?;
        Ok(answer.state(operation))
    }
}

impl Provider for DataprocProvider {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        let mut cluster = read_cluster(&self.api, &self.target).await?;
        if self.beside_a_policy {
            cluster.policy_uri = None;
        }
        let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, capacity)) = described.as_ref()
            && *before == cluster
        {
            return Ok(Arc::clone(capacity));
        }
        let capacity = describe::capacity(&cluster, &self.target, &self.names, self.capabilities())?;
        let capacity = Arc::new(capacity);
        tell_kinds(described.as_ref().map(|(before, _)| before), &cluster);
        *described = Some((cluster, Arc::clone(&capacity)));
        Ok(capacity)
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        self.resize(request_id, SizeChange::growth([(group, count)]), Duration::ZERO).await
    }

    async fn resize(&self, request_id: &str, change: SizeChange, timeout: Duration) -> Result<String, PortError> {
        self.order(request_id, |cluster| Order::resize(cluster, &self.target, change, timeout).map(Some)).await
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        if self.scale_down == ScaleDown::Update {
            let text = "with scale down by update Dataproc chooses the workers that go: it deletes none by name";
            return Err(PortError::new(ErrorKind::Permanent, text));
        }
        if let Some(name) = instances.iter().find(|name| describe::is_promised(name, &self.target)) {
            let text = format!("`{name}` stands for a worker that Dataproc has not made yet: it cannot be deleted");
            return Err(PortError::new(ErrorKind::Permanent, text));
        }
        self.order(request_id, |cluster| {
            let is_there =
                |name: &&str| cluster.group(group).is_some_and(|group| group.names.iter().any(|n| n == name));
            let most = usize::try_from(REMOVED_MAX).unwrap_or(usize::MAX);
            // The rest still exists afterwards, and is ordered deleted anew.
            let there: Vec<_> = instances.iter().map(String::as_str).filter(is_there).take(most).collect();
            Ok((!there.is_empty()).then(|| Order::delete(cluster, group, &there)))
        })
        .await
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        if operation_id.starts_with(NOTHING_SENT) {
            return Ok(OperationState::Done);
        }
        let state = self.look_at(operation_id).await;
        let is_over = match &state {
            Ok(state) => *state != OperationState::Running,
            Err(error) => error.kind == ErrorKind::NotFound,
        };
        if is_over && let Ok(mut sent) = self.sent.try_lock() {
            sent.under_way.take_if(|name| name == operation_id);
        }
        state
    }
}

/// What the workers of each group are goes to the log, at first and when it changes: what a worker costs, and whether it may
/// be taken away at any time, is seen nowhere else.
fn tell_kinds(before: Option<&Cluster>, cluster: &Cluster) {
    for name in GroupName::ALL {
        let kind = |cluster: &Cluster| cluster.group(name).map(ToString::to_string);
        let (was, is) = (before.and_then(kind), kind(cluster));
        if let Some(is) = is.filter(|is| was.as_ref() != Some(is)) {
            tracing::info!("{name} workers: {is}");
        }
    }
}

async fn read_cluster(api: &Api, target: &Target) -> Result<Cluster, PortError> {
    let wire: WireCluster = api.get(&target.path(), &[]).await.map_err(|error| meant(&error))?;
    Cluster::read(wire, &target.cluster)
}

async fn attached_policy(api: &Api, target: &Target) -> Result<Option<String>, PortError> {
    Ok(read_cluster(api, target).await?.policy_uri)
}

/// A refusal as the controller takes it.
fn meant(error: &ApiError) -> PortError {
    error.of_kind(failure::kind(error))
}

fn check_request_id(request_id: &str) -> Result<(), PortError> {
    let is_right = (1..=REQUEST_ID_MAX).contains(&request_id.len())
        && request_id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if is_right {
        return Ok(());
    }
    let text =
        format!("`{request_id}` is no request id of Dataproc's: letters, digits, _ and -, {REQUEST_ID_MAX} at most");
    Err(PortError::new(ErrorKind::Permanent, text))
}
