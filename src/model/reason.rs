//! Why something was, or was not, decided: data, from which the sentence is derived.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::GroupName;
use crate::policy::MetricType;

/// One explanation. Amounts are in the metric's unit: MB of memory or virtual cores, on average over the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, strum::IntoStaticStr)]
#[strum(serialize_all = "camelCase")]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "reason")]
#[expect(missing_docs, reason = "the fields are told with each variant, and their sentence says the rest")]
pub enum Reason {
    /// Workers are added: sizes before and after, what the estimate was before factor and bounds.
    ScaleUp { from: u32, to: u32, metric: MetricType, pending: u64, estimated: u32 },
    /// Workers are taken away: sizes before and after, what the estimate was before factor and bounds.
    ScaleDown { from: u32, to: u32, metric: MetricType, allocated: u64, estimated: u32 },
    /// Leaving workers are taken back instead of new ones being made.
    Recommission { hosts: Vec<String> },
    /// What is there is what is needed.
    Steady { workers: u32, metric: MetricType, pending: u64, allocated: u64 },
    /// A group is below its minimum.
    BelowMinimum { group: GroupName, size: u32, min: u32 },
    /// The names of machines that are gone are still on the exclude file: new ones may get them.
    NameNotFree { hosts: Vec<String> },
    /// An operation has just ended: the provider's list may not show yet what came of it.
    ListMayLag { until: DateTime<Utc> },
    /// The provider's list shows a group so small for the first time.
    SizeUnconfirmed { group: GroupName },
    /// A group is above its maximum.
    AboveMaximum { group: GroupName, size: u32, max: u32 },
    /// The provider has promised workers of a group for long, and makes none: more of them are not ordered.
    Owed { group: GroupName, workers: u32 },
    /// More workers were wanted than the groups may have.
    ReachedMaximum { wanted: u32, max: u32 },
    /// Fewer workers would do than the groups must have.
    ReachedMinimum { wanted: u32, min: u32 },
    /// The change (below zero: down) is smaller than the policy's fraction of the cluster, in workers.
    BelowThreshold { delta: i64, threshold: f64 },
    /// The factor left nothing of the change (below zero: down).
    FactorRoundedToZero { delta: i64, factor: f64 },
    /// Too early after the last scaling.
    Cooldown { until: DateTime<Utc> },
    /// Pending that one look alone has shown.
    Unconfirmed { pending_mb: u64, pending_vcores: u64 },
    /// There was demand in the window, but there is none now.
    DemandGone { metric: MetricType, pending: u64 },
    /// An order to the provider is under way.
    OperationUnderWay { what: String },
    /// Workers leave: no others are chosen meanwhile.
    Draining { hosts: Vec<String> },
    /// New workers have not registered yet: none is taken away meanwhile.
    Booting { hosts: Vec<String> },
    /// The samples do not reach back over the whole window.
    WindowNotFull { window_s: u64 },
    /// Leaving workers are handed to YARN's graceful decommission.
    Decommission { hosts: Vec<String>, timeout_s: u64 },
    /// Machines that YARN has let go of, or lost, are deleted.
    Delete { instances: Vec<String> },
    /// Machines are gone, and with them their exclude entries.
    Release { hosts: Vec<String> },
    /// A worker is of no use for too long and makes room for another.
    Replace { host: String, why: String },
    /// Workers that YARN cannot use.
    NotReady { hosts: Vec<String> },
    /// YARN did not answer. Missing data is not zero.
    NoObservation { error: String },
    /// The provider did not answer.
    NoCapacity { error: String },
    /// Another ResourceManager has taken over; its figures are not whole yet.
    ResourceManagerRestarted { until: DateTime<Utc> },
    /// So many workers are not ready that the fault lies elsewhere.
    UnhealthyCluster { not_ready: u32, workers: u32 },
    /// The provider asked to wait, or a failed order is being waited out.
    ProviderWait { until: DateTime<Utc> },
    /// The provider is at work and takes no orders meanwhile.
    ProviderBusy { what: String },
    /// The provider takes no orders until somebody has seen to it.
    ProviderHeld { why: String },
    /// No worker runs that would show what one holds, and the provider does not say.
    UnknownTemplate { group: GroupName },
    /// Nodes that belong to no worker group.
    ForeignNodes { hosts: Vec<String> },
    /// Workers that YARN knows under no such name, beside as many nodes of no group: most likely they are the same.
    NamesDiffer { hosts: Vec<String>, nodes: u32 },
    /// Shrinking needs a provider that deletes the workers that we name, or chooses and drains them itself.
    CannotDeleteNamed,
    /// The policy names a group that the provider does not have.
    NoSuchGroup { group: GroupName },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

impl Reason {
    /// Whether it tells of something that is done, rather than of what is not done or is worth a remark.
    pub fn is_of_action(&self) -> bool {
        matches!(
            self,
            Self::ScaleUp { .. }
                | Self::ScaleDown { .. }
                | Self::Recommission { .. }
                | Self::Decommission { .. }
                | Self::Delete { .. }
                | Self::Release { .. }
        )
    }

    /// Whether somebody has to see to it: nothing goes on by itself.
    pub fn is_alarm(&self) -> bool {
        matches!(self, Self::ProviderHeld { .. } | Self::UnhealthyCluster { .. })
    }

    /// Its kind, as in the decision log's JSON: `scaleUp`, `cooldown`, …
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// The sentence for people.
    #[rustfmt::skip] // One arm a reason: a table.
    fn sentence(&self) -> String {
        match self {
            Self::ScaleUp { from, to, metric, pending, estimated } =>
                format!("scale up from {from} to {}: {} pending on average, {} estimated", workers(*to), amount(*metric, *pending), workers(*estimated)),
            Self::ScaleDown { from, to, metric, allocated, estimated } =>
                format!("scale down from {from} to {}: nothing pending, {} in use on average, {} estimated", workers(*to), amount(*metric, *allocated), workers(*estimated)),
            Self::Recommission { hosts } => format!("take back {}, on the way out until now, rather than make new workers", listed(hosts)),
            Self::Steady { workers: count, metric, pending, allocated } =>
                format!("{} what is needed: {} pending and {} in use on average", are(*count), amount(*metric, *pending), amount(*metric, *allocated)),
            Self::BelowMinimum { group, size, min } => format!("the {group} group has {}, minInstances asks for {min}", workers(*size)),
            Self::NameNotFree { hosts } => format!("a new machine may get a name that is on its way off the exclude file: none is made before {} {} forgotten", listed(hosts), if hosts.len() == 1 { "is" } else { "are" }),
            Self::ListMayLag { until } => format!("the last operation has just ended and the provider's list may lag behind it: nothing is made for the minimum before {}", until.format("%H:%M:%S")),
            Self::SizeUnconfirmed { group } => format!("the provider's list shows the {group} group so small for the first time: the next look must show it too"),
            Self::AboveMaximum { group, size, max } => format!("the {group} group has {}, maxInstances allows {max}", workers(*size)),
            Self::Owed { group, workers: count } => format!("the provider has long owed {} of the {group} group: no more are ordered until they come", workers(*count)),
            Self::ReachedMaximum { wanted, max } => format!("{} wanted, maxInstances allows {max}", match wanted { 1 => "1 worker was".into(), n => format!("{n} workers were") }),
            Self::ReachedMinimum { wanted, min } => format!("{} would do, minInstances asks for {min}", workers(*wanted)),
            Self::BelowThreshold { delta, threshold } => format!("a change of {delta:+} is less than the policy's fraction of the cluster, {} workers", (threshold * 100.0).round() / 100.0),
            Self::FactorRoundedToZero { delta, factor } => format!("a change of {delta:+} times the factor {factor} rounds to none"),
            Self::Cooldown { until } => format!("cooldown until {}", until.format("%H:%M:%S")),
            Self::Unconfirmed { pending_mb, pending_vcores } => format!("{pending_mb} MB and {pending_vcores} cores pending, seen once: the next look must show it too"),
            Self::DemandGone { metric, pending } => format!("{} pending on average, but nothing is pending now", amount(*metric, *pending)),
            Self::OperationUnderWay { what } => format!("an operation is under way: {what}"),
            Self::Draining { hosts } => format!("workers are leaving: {}", listed(hosts)),
            Self::Booting { hosts } => format!("workers are booting: {}", listed(hosts)),
            Self::WindowNotFull { window_s } => format!("fewer than {window_s} s of samples since the last scaling or restart: nothing is taken away on half knowledge"),
            Self::Decommission { hosts, timeout_s } => match timeout_s {
                0 => format!("decommission {} at once", listed(hosts)),
                _ => format!("decommission {} gracefully, within {timeout_s} s", listed(hosts)),
            },
            Self::Delete { instances } => format!("delete {}: YARN runs nothing there", listed(instances)),
            Self::Release { hosts } => format!("forget {}: the machine is gone", listed(hosts)),
            Self::Replace { host, why } => format!("replace {host}: {why}"),
            Self::NotReady { hosts } => format!("not ready: {}", listed(hosts)),
            Self::NoObservation { error } => format!("YARN does not answer, so nothing is changed: {error}"),
            Self::NoCapacity { error } => format!("the provider does not answer, so nothing is changed: {error}"),
            Self::ResourceManagerRestarted { until } => format!("another ResourceManager has taken over: holding until {} while applications ask anew", until.format("%H:%M:%S")),
            Self::UnhealthyCluster { not_ready, workers } => format!("{not_ready} of {workers} workers are not ready: nothing is changed until somebody has looked"),
            Self::ProviderWait { until } => format!("no order to the provider before {}: the last one failed", until.format("%H:%M:%S")),
            Self::ProviderBusy { what } => format!("the provider takes no orders just now: {what}"),
            Self::ProviderHeld { why } => format!("the provider takes no orders until somebody has seen to it: {why}"),
            Self::UnknownTemplate { group } => format!("what a {group} worker holds is not known: none runs, and the provider does not say"),
            Self::ForeignNodes { hosts } => format!("nodes of no worker group, neither counted nor touched: {}", listed(hosts)),
            Self::NamesDiffer { hosts, nodes } => format!("YARN knows none of {} under these host names, but has {} of no group: does the provider's `host` say what YARN calls them?", listed(hosts), match nodes { 1 => "1 node".into(), n => format!("{n} nodes") }),
            Self::CannotDeleteNamed => "the provider can neither delete named workers nor choose and drain some, so none is taken away".into(),
            Self::NoSuchGroup { group } => format!("the policy has a {group} group, the provider has none"),
        }
    }
}

/// Names for a sentence: of many the first ones. The data has them all.
pub(super) fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len().saturating_sub(SHOWN) {
        // One more takes no more room than its number.
        0 | 1 => names.join(", "),
        more => format!("{} and {more} more", names[..SHOWN].join(", ")),
    }
}

fn workers(count: u32) -> String {
    if count == 1 { "1 worker".into() } else { format!("{count} workers") }
}

fn are(count: u32) -> String {
    format!("{} {}", workers(count), if count == 1 { "is" } else { "are" })
}

fn amount(metric: MetricType, amount: u64) -> String {
    match metric {
        MetricType::YarnMemory => format!("{amount} MB"),
        MetricType::YarnCores => format!("{amount} cores"),
    }
}
