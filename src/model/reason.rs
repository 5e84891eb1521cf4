//! Why something was, or was not, decided: data, from which the sentence is derived.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::GroupName;
use crate::policy::MetricType;

/// One explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "reason")]
pub enum Reason {
    /// Workers are added.
    ScaleUp {
        /// Workers before.
        from: u32,
        /// Workers after.
        to: u32,
        /// The resource that wanted most.
        metric: MetricType,
        /// Its average pending, in MB or cores.
        pending: u64,
        /// What the formula estimates before factor and bounds.
        estimated: u32,
    },
    /// Workers are taken away.
    ScaleDown {
        /// Workers before.
        from: u32,
        /// Workers after.
        to: u32,
        /// The resource that keeps most.
        metric: MetricType,
        /// Its average use, in MB or cores.
        allocated: u64,
        /// What the formula estimates before factor and bounds.
        estimated: u32,
    },
    /// Draining workers are taken back instead of new ones being made.
    Recommission {
        /// Which hosts.
        hosts: Vec<String>,
    },
    /// What is there is what is needed.
    Steady {
        /// Workers.
        workers: u32,
        /// Average pending memory in MB.
        pending_mb: u64,
        /// Average memory in use, in MB.
        allocated_mb: u64,
    },
    /// A group is below its minimum.
    BelowMinimum {
        /// Which.
        group: GroupName,
        /// Its size.
        size: u32,
        /// Its minimum.
        min: u32,
    },
    /// A group is above its maximum.
    AboveMaximum {
        /// Which.
        group: GroupName,
        /// Its size.
        size: u32,
        /// Its maximum.
        max: u32,
    },
    /// More was wanted, but the groups are full.
    ReachedMaximum {
        /// What would have been wanted.
        wanted: u32,
        /// What the groups may have.
        max: u32,
    },
    /// Less was wanted, but the groups may not be smaller.
    ReachedMinimum {
        /// What would have been wanted.
        wanted: u32,
        /// What the groups must have.
        min: u32,
    },
    /// The change is smaller than the policy's fraction of the cluster.
    BelowThreshold {
        /// Workers to add (or to take away, below zero).
        delta: i64,
        /// The least number of workers that the fraction asks for.
        threshold: f64,
    },
    /// The factor left nothing of the change.
    FactorRoundedToZero {
        /// Workers that the formula would add (or take away, below zero).
        delta: i64,
        /// The factor.
        factor: f64,
    },
    /// Too early after the last scaling.
    Cooldown {
        /// When it is over.
        until: DateTime<Utc>,
    },
    /// Pending has been seen once only.
    Unconfirmed {
        /// What was seen, in MB.
        pending_mb: u64,
        /// Cores.
        pending_vcores: u64,
    },
    /// There was demand in the window, but there is none now.
    DemandGone {
        /// Average pending memory over the window in MB.
        pending_mb: u64,
    },
    /// An order to the provider is under way.
    OperationUnderWay {
        /// What it does.
        what: String,
    },
    /// Workers drain: nothing more is taken away meanwhile.
    Draining {
        /// Which hosts.
        hosts: Vec<String>,
    },
    /// A worker is let go once nothing new can come to it.
    Decommission {
        /// Which hosts.
        hosts: Vec<String>,
        /// How long they may take, in seconds.
        timeout_s: u64,
    },
    /// YARN has let a worker go: its machine is deleted.
    Delete {
        /// Which instances.
        instances: Vec<String>,
    },
    /// A machine is gone, and with it its exclude entry.
    Release {
        /// Which hosts.
        hosts: Vec<String>,
    },
    /// A worker is not of use for too long and is replaced.
    Replace {
        /// Its host.
        host: String,
        /// What is wrong.
        why: String,
    },
    /// Workers that the provider has and YARN cannot use (yet).
    NotReady {
        /// Which hosts.
        hosts: Vec<String>,
    },
    /// The window of samples is not full: nothing is taken away on half knowledge.
    WindowNotFull {
        /// How long it must reach back, in seconds.
        window_s: u64,
    },
    /// YARN did not answer.
    NoObservation {
        /// Why.
        error: String,
    },
    /// The provider did not answer.
    NoCapacity {
        /// Why.
        error: String,
    },
    /// Another ResourceManager has taken over: applications ask anew for a while.
    ResourceManagerRestarted {
        /// When the hold ends.
        until: DateTime<Utc>,
    },
    /// Too many workers are not ready: something is wrong that more or fewer machines will not mend.
    UnhealthyCluster {
        /// How many are not ready.
        not_ready: u32,
        /// Of how many.
        workers: u32,
    },
    /// The provider asked to wait, or a failed order is being waited out.
    ProviderWait {
        /// Until when.
        until: DateTime<Utc>,
    },
    /// What a worker is, is not known: no worker runs, and the provider does not say.
    UnknownTemplate {
        /// Of which group.
        group: GroupName,
    },
    /// Workers that YARN has and that belong to no group: they are not ours to count or to take away.
    ForeignNodes {
        /// Which hosts.
        hosts: Vec<String>,
    },
    /// The provider cannot delete named workers, which this way of shrinking needs.
    CannotDeleteNamed,
    /// A group that is to grow does not exist at the provider.
    NoSuchGroup {
        /// Which.
        group: GroupName,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ScaleUp { from, to, metric, pending, estimated } => write!(
                f,
                "scale up from {from} to {to} workers: {} pending on average, which estimates {estimated} workers",
                amount(*metric, *pending)
            ),
            Self::ScaleDown { from, to, metric, allocated, estimated } => write!(
                f,
                "scale down from {from} to {to} workers: nothing pending and {} in use on average, which estimates {estimated} workers",
                amount(*metric, *allocated)
            ),
            Self::Recommission { hosts } => {
                write!(f, "take back {} instead of making new workers: demand has returned", hosts.join(", "))
            }
            Self::Steady { workers, pending_mb, allocated_mb } => write!(
                f,
                "{workers} workers are what is needed: {pending_mb} MB pending and {allocated_mb} MB in use on average"
            ),
            _ => self.fmt_limit(f),
        }
    }
}

impl Reason {
    /// Sentences of what held a decision back, or of housekeeping.
    fn fmt_limit(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BelowMinimum { group, size, min } => {
                write!(f, "the {group} group has {size} workers, its minimum is {min}")
            }
            Self::AboveMaximum { group, size, max } => {
                write!(f, "the {group} group has {size} workers, its maximum is {max}")
            }
            Self::ReachedMaximum { wanted, max } => {
                write!(f, "{wanted} workers were wanted, but maxInstances allows {max}")
            }
            Self::ReachedMinimum { wanted, min } => {
                write!(f, "{wanted} workers would do, but minInstances asks for {min}")
            }
            Self::BelowThreshold { delta, threshold } => write!(
                f,
                "a change of {delta:+} workers is less than the policy's fraction of the cluster ({threshold} workers)"
            ),
            Self::FactorRoundedToZero { delta, factor } => {
                write!(f, "a change of {delta:+} workers times the factor {factor} rounds to none")
            }
            Self::Cooldown { until } => write!(f, "cooldown until {}", until.format("%H:%M:%S")),
            Self::Unconfirmed { pending_mb, pending_vcores } => write!(
                f,
                "{pending_mb} MB and {pending_vcores} cores pending, seen once: the next look must show it too"
            ),
            Self::DemandGone { pending_mb } => {
                write!(f, "{pending_mb} MB pending on average over the window, but nothing is pending now")
            }
            Self::OperationUnderWay { what } => write!(f, "an operation is under way: {what}"),
            Self::Draining { hosts } => write!(f, "draining {}", hosts.join(", ")),
            Self::WindowNotFull { window_s } => {
                write!(
                    f,
                    "no {window_s} s of samples yet since the last scaling: nothing is taken away on half knowledge"
                )
            }
            Self::ResourceManagerRestarted { until } => write!(
                f,
                "another ResourceManager has taken over; holding until {} while applications ask anew",
                until.format("%H:%M:%S")
            ),
            Self::ProviderWait { until } => {
                write!(f, "no order to the provider before {}: the last one failed", until.format("%H:%M:%S"))
            }
            _ => self.fmt_housekeeping(f),
        }
    }

    fn fmt_housekeeping(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decommission { hosts, timeout_s } => {
                write!(f, "decommission {} gracefully, {timeout_s} s at most", hosts.join(", "))
            }
            Self::Delete { instances } => write!(f, "delete {}: YARN has let go of it", instances.join(", ")),
            Self::Release { hosts } => write!(f, "{} is gone: take it off the exclude file", hosts.join(", ")),
            Self::Replace { host, why } => write!(f, "replace {host}: {why}"),
            Self::NotReady { hosts } => write!(f, "not ready: {}", hosts.join(", ")),
            Self::NoObservation { error } => write!(f, "YARN does not answer, so nothing is changed: {error}"),
            Self::NoCapacity { error } => write!(f, "the provider does not answer, so nothing is changed: {error}"),
            Self::UnhealthyCluster { not_ready, workers } => write!(
                f,
                "{not_ready} of {workers} workers are not ready: nothing is changed until somebody has looked"
            ),
            Self::UnknownTemplate { group } => {
                write!(f, "what a {group} worker can hold is not known: no worker runs, and the provider does not say")
            }
            Self::ForeignNodes { hosts } => {
                write!(f, "nodes of no worker group, neither counted nor touched: {}", hosts.join(", "))
            }
            Self::CannotDeleteNamed => write!(f, "the provider cannot delete named workers, so nothing is taken away"),
            Self::NoSuchGroup { group } => write!(f, "the provider has no {group} group"),
            _ => unreachable!("every reason has a sentence in one of the three lists"),
        }
    }
}

fn amount(metric: MetricType, amount: u64) -> String {
    match metric {
        MetricType::YarnMemory => format!("{amount} MB"),
        MetricType::YarnCores => format!("{amount} cores"),
    }
}
