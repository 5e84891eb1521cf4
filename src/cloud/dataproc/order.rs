//! Orders as they are sent: which request, with which query and body. Pure.

use std::{collections::VecDeque, time::Duration};

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{Target, cluster::Cluster};
use crate::{
    model::{GroupName, SizeChange},
    ports::{ErrorKind, PortError},
};

/// How long Dataproc may take to decommission primary workers that YARN runs nothing on any more.
const HDFS_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// Most secondary workers that Dataproc takes away in one request, and most names that one order has.
pub(super) const REMOVED_MAX: u32 = 1_000;

/// Longest graceful decommission that Dataproc grants.
const TIMEOUT_MAX: Duration = Duration::from_secs(86_400);

/// How many orders are remembered, so that the same one can be sent again.
const REMEMBERED_MAX: usize = 64;

/// Dataproc's quota of cluster operations, a project and region, and the time in which it counts them.
const OPERATIONS_MAX: usize = 200;
const OPERATIONS_WINDOW: Duration = Duration::from_secs(60);

/// One order, ready to be sent, and to be sent again just as it was.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Order {
    /// `clusters.patch`: other sizes.
    Patch {
        /// `updateMask`.
        mask: String,
        /// `gracefulDecommissionTimeout`, where workers go.
        timeout: Option<String>,
        /// Absolute sizes.
        body: Value,
    },
    /// `clusters.repair`: named workers deleted.
    Repair {
        /// Without `requestId`.
        body: Value,
    },
}

impl Order {
    /// Groups of other sizes. Sizes are absolute on the wire: what was asked for last, and the change.
    ///
    /// # Errors
    /// `Conflict`: a group has not so many workers, or not as many as it lists. `Permanent`: nothing changes.
    pub(super) fn resize(
        described: &Cluster,
        Target { project, cluster, .. }: &Target,
        change: SizeChange,
        timeout: Duration,
    ) -> Result<Self, PortError> {
        let (mut masks, mut config) = (Vec::new(), Map::new());
        for (group, change) in change.iter() {
            let size = described.size(group);
            let change = capped(group, change);
            let listed = described.group(group).map_or(0, |group| group.names.len());
            let listed = u32::try_from(listed).unwrap_or(u32::MAX);
            // Fewer are taken of all that are listed, as the decision saw them: some of these are to go already.
            let from = if change < 0 { size.max(listed) } else { size };
            let new = from.checked_add_signed(change).ok_or_else(|| {
                let fewer = change.unsigned_abs();
                conflict(format!("cluster {cluster} has {from} {group} workers now: {fewer} cannot be taken away"))
            })?;
            let text =
                || format!("cluster {cluster} lists {listed} {group} workers and counts {size}: an order of {new}");
            if change > 0 && new < listed {
                return Err(conflict(format!("{} is meant to add some and would take some away", text())));
            }
            if change < 0 && new >= size {
                return Err(conflict(format!("{} is meant to take some away, and these go already", text())));
            }
            let (mask, field) = fields(group);
            masks.push(format!("config.{mask}.num_instances"));
            config.insert(field.into(), json!({ "numInstances": new }));
        }
        if masks.is_empty() {
            return Err(PortError::new(ErrorKind::Permanent, "an order of other sizes changes none"));
        }
        let shrinks = GroupName::ALL.into_iter().any(|group| change.shrinks(group));
        let body = json!({ "projectId": project, "clusterName": cluster, "config": config });
        Ok(Self::Patch { mask: masks.join(","), timeout: shrinks.then(|| seconds(timeout)), body })
    }

    /// These workers of one group deleted. YARN has let them go already: secondary workers go at once, and primary ones,
    /// which hold blocks of HDFS, are given the time to hand them on.
    pub(super) fn delete(cluster: &Cluster, group: GroupName, names: &[&str]) -> Self {
        let (id, timeout) = match group {
            GroupName::Primary => ("PRIMARY_WORKER_POOL", HDFS_TIMEOUT),
            GroupName::Secondary => ("SECONDARY_WORKER_POOL", Duration::ZERO),
        };
        let mut body = Map::new();
        if !cluster.uuid.is_empty() {
            // A cluster made anew under the same name has other workers under the same names.
            body.insert("clusterUuid".into(), json!(cluster.uuid));
        }
        body.insert("gracefulDecommissionTimeout".into(), json!(seconds(timeout)));
        body.insert("nodePools".into(), json!([{ "id": id, "instanceNames": names, "repairAction": "DELETE" }]));
        Self::Repair { body: Value::Object(body) }
    }
}

fn conflict(why: String) -> PortError {
    PortError::new(ErrorKind::Conflict, format!("nothing was sent: {why}"))
}

/// The words for a group in a mask and in a body.
fn fields(group: GroupName) -> (&'static str, &'static str) {
    match group {
        GroupName::Primary => ("worker_config", "workerConfig"),
        GroupName::Secondary => ("secondary_worker_config", "secondaryWorkerConfig"),
    }
}

/// No more at once than Dataproc takes away; the rest is decided anew.
fn capped(group: GroupName, change: i32) -> i32 {
    match group {
        GroupName::Secondary => change.max(-i32::try_from(REMOVED_MAX).unwrap_or(i32::MAX)),
        GroupName::Primary => change,
    }
}

fn seconds(timeout: Duration) -> String {
    format!("{}s", timeout.min(TIMEOUT_MAX).as_secs())
}

/// What was sent, as far as it is remembered.
#[derive(Debug, Default)]
pub(super) struct Sent {
    orders: VecDeque<(String, Order)>,
    /// The operation of the last order, until it is known to have ended: one at a time.
    pub(super) under_way: Option<String>,
    /// When orders were sent within the last minute.
    instants: VecDeque<Instant>,
}

impl Sent {
    /// The order with this request id, if it was sent before: its first answer may have been lost.
    pub(super) fn before(&self, request_id: &str) -> Option<Order> {
        self.orders.iter().find(|(id, _)| id == request_id).map(|(_, order)| order.clone())
    }

    /// Remembers an order that is about to be sent.
    pub(super) fn remember(&mut self, request_id: &str, order: &Order) {
        if self.orders.len() >= REMEMBERED_MAX {
            self.orders.pop_front();
        }
        self.orders.push_back((request_id.to_owned(), order.clone()));
    }

    /// Counts an order against the quota.
    ///
    /// # Errors
    /// `Throttled`: so many were sent within the last minute that this one would be refused.
    pub(super) fn count(&mut self, now: Instant) -> Result<(), PortError> {
        while self.instants.front().is_some_and(|first| now.duration_since(*first) >= OPERATIONS_WINDOW) {
            self.instants.pop_front();
        }
        match self.instants.front() {
            Some(first) if self.instants.len() >= OPERATIONS_MAX => {
                let retry_after = Some(OPERATIONS_WINDOW.saturating_sub(now.duration_since(*first)));
                let text =
                    format!("not sent: Dataproc takes {OPERATIONS_MAX} cluster operations a minute, and so many were");
                Err(PortError::new(ErrorKind::Throttled { retry_after }, text))
            }
            _ => {
                self.instants.push_back(now);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(number: usize) -> Order {
        Order::Repair { body: json!(number) }
    }

    #[test]
    fn workers_that_go_already_are_not_taken_twice() {
        let target = Target { project: "p".into(), region: "r".into(), cluster: "c".into() };
        // Counted, listed, asked to go, and what is sent; `None`: nothing.
        for (size, listed, fewer, sent) in [
            (8, 8, 3, Some(5)),
            (8, 10, 3, Some(7)),
            (8, 10, 2, None),
            (8, 10, 1, None),
            (8, 5, 3, Some(5)),
            (2, 2, 3, None),
        ] {
            let names: Vec<_> = (0..listed).map(|number| format!("c-sw-{number}")).collect();
            let described = json!({"clusterName": "c", "status": {"state": "RUNNING"},
                "config": {"secondaryWorkerConfig": {"numInstances": size, "instanceNames": names}}});
            let described = Cluster::read(serde_json::from_value(described).unwrap(), "c").unwrap();
            let change = SizeChange::shrinkage([(GroupName::Secondary, fewer)]);
            let order = Order::resize(&described, &target, change, Duration::ZERO);
            let body = order.map(|order| if let Order::Patch { body, .. } = order { body } else { Value::Null });
            match sent {
                Some(sent) => {
                    assert_eq!(
                        body.unwrap()["config"]["secondaryWorkerConfig"]["numInstances"],
                        json!(sent),
                        "{size} {listed}"
                    );
                }
                None => assert_eq!(body.unwrap_err().kind, ErrorKind::Conflict, "{size} {listed}"),
            }
        }
    }

    #[test]
    fn the_last_orders_are_remembered() {
        let mut sent = Sent::default();
        (0..=REMEMBERED_MAX).for_each(|number| sent.remember(&format!("r-{number}"), &order(number)));
        assert_eq!(sent.before("r-0"), None, "bounded");
        assert_eq!(sent.before("r-1"), Some(order(1)));
        assert_eq!(sent.before("r-64"), Some(order(64)));
    }

    #[test]
    fn no_more_orders_are_sent_than_the_quota_has_room_for() {
        let (mut sent, begin) = (Sent::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        (0..100).for_each(|_| sent.count(at(0)).unwrap());
        (0..100).for_each(|_| sent.count(at(20)).unwrap());
        let refused = sent.count(at(50)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Throttled { retry_after: Some(Duration::from_secs(10)) });
        (0..100).for_each(|_| sent.count(at(60)).unwrap());
        assert!(sent.count(at(79)).is_err());
        sent.count(at(80)).unwrap();
    }
}
