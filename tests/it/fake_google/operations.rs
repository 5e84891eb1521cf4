//! Dataproc's operations: orders to clusters that take their time, one at a time for each cluster.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    cloud::{Cloud, unrouted},
    dataproc_body::Cluster,
    http::{Answer, Request, failed_precondition, not_found, without_zeros},
};

/// What an operation does when its time is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    Create,
    Delete,
    /// New sizes of the pools, and other fields by their paths in the body.
    Update {
        primaries: Option<u32>,
        secondaries: Option<u32>,
        fields: Vec<(String, Value)>,
    },
    /// Named workers go.
    Repair {
        primaries: Vec<String>,
        secondaries: Vec<String>,
    },
}

/// How an operation ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    Succeeded,
    /// Canonical number, text.
    Failed(u16, String),
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The last part of its name.
    pub id: String,
    pub cluster: String,
    pub cluster_uuid: String,
    pub order: Order,
    pub description: String,
    pub request_id: Option<String>,
    pub begin: Instant,
    pub takes: Duration,
    /// When it was ordered, began to run and ended, as told.
    pub times: Vec<String>,
    pub end: Option<End>,
}

impl Operation {
    fn kind(&self) -> &'static str {
        match self.order {
            Order::Create => "CREATE",
            Order::Delete => "DELETE",
            Order::Update { .. } => "UPDATE",
            Order::Repair { .. } => "REPAIR",
        }
    }

    fn state(&self) -> &'static str {
        match (&self.end, self.times.len()) {
            (Some(_), _) => "DONE",
            (None, 1) => "PENDING",
            (None, _) => "RUNNING",
        }
    }
}

impl Cloud {
    /// Begins an operation and says what a client gets.
    pub fn begin(&mut self, cluster: &str, order: Order, request_id: Option<&str>, takes: Duration) -> Value {
        let description = self.description(cluster, &order);
        let times = vec![self.timestamp()];
        let begun = Operation {
            id: self.random.uuid(),
            cluster: cluster.into(),
            cluster_uuid: self.clusters[cluster].uuid.clone(),
            order,
            description,
            request_id: request_id.map(str::to_owned),
            begin: self.now,
            takes,
            times,
            end: None,
        };
        let body = self.operation_json(&begun);
        self.operations.insert(begun.id.clone(), begun);
        body
    }

    fn description(&self, cluster: &str, order: &Order) -> String {
        let cluster = &self.clusters[cluster];
        match order {
            Order::Create => format!("Create cluster with {} workers", cluster.primaries.len()),
            Order::Delete => "Delete cluster".into(),
            Order::Update { primaries, secondaries, .. } => {
                let target = self.groups[&cluster.group].target_size;
                let before = u32::try_from(cluster.primaries.len()).expect("few") + target;
                let primaries = primaries.map_or(cluster.primaries.len(), |count| count as usize);
                let after = u32::try_from(primaries).expect("few") + secondaries.unwrap_or(target);
                match after.checked_sub(before) {
                    Some(0) => "Update cluster".into(),
                    Some(more) => format!("Add {more} workers."),
                    None => format!("Remove {} workers.", before - after),
                }
            }
            Order::Repair { primaries, secondaries } => {
                format!("Repair cluster: delete {} workers.", primaries.len() + secondaries.len())
            }
        }
    }

    /// The operation under way on a cluster.
    pub fn under_way(&self, cluster: &str) -> Option<&Operation> {
        self.operations.values().find(|operation| operation.end.is_none() && operation.cluster == cluster)
    }

    /// The operation that was begun with this request id.
    pub fn begun_with(&self, request_id: &str) -> Option<&Operation> {
        self.operations.values().find(|operation| operation.request_id.as_deref() == Some(request_id))
    }

    /// Operations get one state further, where it is time.
    pub fn advance_operations(&mut self) {
        let open = self.operations.values().filter(|operation| operation.end.is_none());
        let open: Vec<_> = open.map(|operation| operation.id.clone()).collect();
        for id in open {
            let now = self.timestamp();
            let operation = self.operations.get_mut(&id).expect("it is there");
            let age = self.now.saturating_duration_since(operation.begin);
            if operation.times.len() == 1 && age >= operation.takes / 4 {
                operation.times.push(now);
            }
            if age >= operation.takes {
                self.finish(&id);
            }
        }
    }

    fn finish(&mut self, id: &str) {
        let operation = self.operations[id].clone();
        let failure = match self.clusters.get_mut(&operation.cluster) {
            Some(cluster) => cluster.fail_next.take(),
            None => Some("The cluster is gone.".into()),
        };
        let end = match failure.map_or_else(|| self.apply(&operation), Err) {
            Ok(()) => End::Succeeded,
            Err(text) => End::Failed(13, text),
        };
        let state = match (&end, &operation.order) {
            (End::Succeeded, _) => "RUNNING",
            (End::Failed(..), Order::Create) => "ERROR",
            (End::Failed(..), _) => "ERROR_DUE_TO_UPDATE",
        };
        self.end(id, end, state);
    }

    /// Writes down how an operation ended, and the cluster's state after it.
    fn end(&mut self, id: &str, end: End, state: &str) {
        let now = self.timestamp();
        let operation = self.operations.get_mut(id).expect("it is there");
        operation.times.push(now.clone());
        let detail = match &end {
            End::Failed(1, _) | End::Succeeded => String::new(),
            End::Failed(_, text) => text.clone(),
        };
        operation.end = Some(end);
        if let Some(cluster) = self.clusters.get_mut(&operation.cluster) {
            cluster.enter(state, &detail, now);
        }
    }

    /// The full name.
    fn operation_name(&self, id: &str) -> String {
        format!("projects/{}/regions/{}/operations/{id}", self.options.project, self.options.region)
    }

    pub fn operation_json(&self, operation: &Operation) -> Value {
        let states = ["PENDING", "RUNNING", "DONE"];
        let state = operation.state();
        let status =
            |state: &str, since: &String| json!({"state": state, "innerState": state, "stateStartTime": since});
        let past = operation.times.len() - 1;
        let history: Vec<_> = operation.times[..past].iter().zip(states).map(|(at, state)| status(state, at)).collect();
        let mut body = json!({
            "name": self.operation_name(&operation.id),
            "metadata": {
                "@type": "type.googleapis.com/google.cloud.dataproc.v1.ClusterOperationMetadata",
                "clusterName": operation.cluster,
                "clusterUuid": operation.cluster_uuid,
                "description": operation.description,
                "operationType": operation.kind(),
                "status": status(state, &operation.times[past]),
                "statusHistory": history,
            },
            "done": operation.end.is_some(),
        });
        match &operation.end {
            Some(End::Failed(code, message)) => body["error"] = json!({"code": code, "message": message}),
            Some(End::Succeeded) => body["response"] = self.response(operation),
            None => {}
        }
        without_zeros(&body)
    }

    /// What an operation made: the cluster without its status and its machines' names, or nothing.
    fn response(&self, operation: &Operation) -> Value {
        let Some(cluster) = self.clusters.get(&operation.cluster).filter(|_| operation.order != Order::Delete) else {
            return json!({"@type": "type.googleapis.com/google.protobuf.Empty"});
        };
        without_state(self.cluster_json(cluster))
    }
}

fn without_state(mut body: Value) -> Value {
    body["@type"] = json!("type.googleapis.com/google.cloud.dataproc.v1.Cluster");
    for field in ["status", "statusHistory", "metrics"] {
        drop(body.as_object_mut().and_then(|fields| fields.remove(field)));
    }
    for pool in ["masterConfig", "workerConfig", "secondaryWorkerConfig"] {
        for field in ["instanceNames", "instanceReferences"] {
            drop(body["config"][pool].as_object_mut().and_then(|fields| fields.remove(field)));
        }
    }
    body
}

/// `operations`, `operations/ID`, `operations/ID:cancel`.
pub fn answer(cloud: &mut Cloud, request: &Request, rest: &[&str]) -> Result<Value, Answer> {
    let missing = |id: &str| not_found(&format!("Not found: Operation {}", cloud.operation_name(id)));
    match (request.method.as_str(), rest) {
        ("GET", []) => {
            let wanted = request.query("filter").unwrap_or_default();
            let all = cloud.operations.values();
            let is_wanted = |body: &Value| operation_matches(body, wanted);
            let bodies: Vec<_> = all.map(|operation| cloud.operation_json(operation)).filter(is_wanted).collect();
            Ok(without_zeros(&json!({"operations": bodies})))
        }
        ("GET", [id]) => {
            cloud.operations.get(*id).map(|operation| cloud.operation_json(operation)).ok_or_else(|| missing(id))
        }
        ("POST", [call]) if call.ends_with(":cancel") => {
            let id = call.trim_end_matches(":cancel");
            let operation = cloud.operations.get(id).ok_or_else(|| missing(id))?;
            if operation.end.is_some() {
                return Err(failed_precondition("The operation has already finished."));
            }
            cloud.end(id, End::Failed(1, "Operation was cancelled.".into()), "RUNNING");
            Ok(json!({}))
        }
        _ => Err(unrouted(request)),
    }
}

/// `clusterName = NAME` and `status.state = ACTIVE|NON_ACTIVE|RUNNING…`, joined by AND.
fn operation_matches(body: &Value, filter: &str) -> bool {
    let metadata = &body["metadata"];
    terms(filter).into_iter().all(|(field, wanted)| match field {
        "clusterName" | "cluster_name" => metadata["clusterName"] == wanted,
        "operationType" | "operation_type" => metadata["operationType"] == wanted,
        "status.state" => {
            let state = metadata["status"]["state"].as_str().unwrap_or_default();
            wanted == state || (wanted == "ACTIVE") == (state != "DONE") && wanted.ends_with("ACTIVE")
        }
        _ => false,
    })
}

/// Fields and values of a filter.
pub fn terms(filter: &str) -> Vec<(&str, &str)> {
    let terms = filter.split(" AND ").filter_map(|term| term.split_once('='));
    terms.map(|(field, value)| (field.trim(), value.trim().trim_matches('"'))).collect()
}

/// The state that a cluster is in while an order is carried out.
pub fn state_during(order: &Order) -> &'static str {
    match order {
        Order::Create => "CREATING",
        Order::Delete => "DELETING",
        Order::Update { .. } => "UPDATING",
        Order::Repair { .. } => "REPAIRING",
    }
}

/// Whether a cluster takes orders.
pub fn takes_orders(cluster: &Cluster) -> bool {
    cluster.state == "RUNNING"
}
