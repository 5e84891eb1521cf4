//! The autoscaler log: what is recommended and done, one JSON object a line, in the shape of the log that Dataproc's own
//! autoscaler writes (`dataproc.googleapis.com/autoscaler`), so that what reads the one can read the other.

use std::{collections::BTreeMap, io, path::PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::{
    autoscaler_entry::{ClusterSize, Entry, Inputs, Outputs, Phase, Recommendation, Status},
    decision_log::Verdict,
    line_file::LineFile,
};
use crate::{
    model::{Action, GroupName, InstanceState, Reason, Situation},
    policy::{GroupPolicy, MetricType},
    ports::{Journal, Tick},
};

/// When the log is rotated, in bytes: entries are about 1 KB.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Most secondary workers that Dataproc takes away in one request.
const REMOVED_MAX: i64 = 1_000;

/// Which cluster the entries are of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClusterLabels {
    /// The project's id.
    #[serde(rename = "project_id")]
    pub project: String,
    /// The region's name.
    pub region: String,
    /// The cluster's name.
    #[serde(rename = "cluster_name")]
    pub cluster: String,
    /// What tells it from another cluster of the same name; empty where it is not known.
    #[serde(rename = "cluster_uuid", skip_serializing_if = "String::is_empty")]
    pub uuid: String,
}

/// Appends an entry when something is recommended, once a scaling period where nothing is to be done, and when the
/// autoscaler's state changes. A log that cannot be written is reported once and does not stop the loop.
#[derive(Debug)]
pub struct AutoscalerLog {
    file: LineFile,
    labels: ClusterLabels,
    /// The state and the operation of the last entry.
    last: Option<(Phase, Option<String>)>,
    recommended_at: Option<DateTime<Utc>>,
    entries: u64,
}

impl AutoscalerLog {
    /// Opens the log for appending; makes it where there is none.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: impl Into<PathBuf>, labels: ClusterLabels) -> io::Result<Self> {
        let file = LineFile::open(path.into(), LOG_BYTES_MAX)?;
        Ok(Self { file, labels, last: None, recommended_at: None, entries: 0 })
    }

    fn record(&mut self, tick: &Tick<'_>) -> io::Result<bool> {
        let now = tick.situation.now;
        let (status, decided) = (self.status(tick), is_decision(tick));
        let state = (status.state, status.update_cluster_operation_id.clone());
        // Dataproc's autoscaler recommends once a scaling period, also where nothing is to be done.
        let is_due = status.state == Phase::Recommending && self.period_is_over(tick);
        if !decided && !is_due && self.last.as_ref() == Some(&state) {
            return Ok(false);
        }
        self.entries += 1;
        let id = format!("ya-{:x}-{}", now.timestamp_millis(), self.entries);
        let recommendation = (status.state == Phase::Recommending).then(|| recommendation(tick, &id));
        let is_recommendation = recommendation.is_some();
        let entry = Entry::new(&self.labels, now, id, status, recommendation);
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.file.append(&line)?;
        self.last = Some(state);
        if is_recommendation {
            self.recommended_at = Some(now);
        }
        Ok(true)
    }

    fn period_is_over(&self, tick: &Tick<'_>) -> bool {
        let period = tick.policy.basic().cooldown_period;
        // A clock set back ends it, too.
        let ends = |last: DateTime<Utc>| tick.situation.now >= last + period || tick.situation.now < last;
        self.recommended_at.is_none_or(ends)
    }

    /// The autoscaler's state in Dataproc's words. First what keeps it from working, then what it does.
    fn status(&self, tick: &Tick<'_>) -> Status {
        let (state, reasons) = (&tick.situation.state, &tick.decision.reasons);
        let failure = reasons.iter().find(|reason| is_failure(reason));
        if let Some(reason) = failure {
            return Status { error: Some(reason.to_string()), ..Status::new(Phase::Failed, reason.to_string()) };
        }
        if is_decision(tick) {
            return Status::new(Phase::Recommending, summary(tick));
        }
        if let Some(reason) = reasons.iter().find(|reason| reason.is_alarm()) {
            return Status::new(Phase::Stopped, reason.to_string());
        }
        if let Some(operation) = state.operations.first() {
            let id = operation.operation_id.as_deref().map(|id| id.rsplit('/').next().unwrap_or(id).to_owned());
            let status = Status::new(Phase::Scaling, operation.intent.to_string());
            return Status { update_cluster_operation_id: id, ..status };
        }
        if !state.drains.is_empty() {
            let hosts = state.drains.keys().cloned().collect();
            return Status::new(Phase::Scaling, Reason::Draining { hosts }.to_string());
        }
        if let Some(until) = cooldown_until(tick) {
            return Status::new(Phase::Cooldown, Reason::Cooldown { until }.to_string());
        }
        let window_fills = reasons.iter().find(|reason| matches!(reason, Reason::WindowNotFull { .. }));
        match window_fills.filter(|_| self.recommended_at.is_none()) {
            Some(reason) => Status::new(Phase::Initializing, reason.to_string()),
            None => Status::new(Phase::Recommending, summary(tick)),
        }
    }
}

impl Journal for AutoscalerLog {
    fn tick(&mut self, tick: &Tick<'_>) {
        let written = self.record(tick);
        self.file.report("autoscaler log", written);
    }
}

fn is_failure(reason: &Reason) -> bool {
    matches!(reason, Reason::NoObservation { .. } | Reason::NoCapacity { .. })
}

/// Whether this tick decides on a size. Later steps of a drain carry out what was decided before.
fn is_decision(tick: &Tick<'_>) -> bool {
    tick.decision.actions.iter().any(|action| is_choice(action, tick.situation))
}

fn is_choice(action: &Action, situation: &Situation) -> bool {
    match action {
        Action::Create { .. } | Action::Resize { .. } | Action::Uncordon { .. } | Action::Recommission { .. } => true,
        // One that is made again chooses nobody anew.
        Action::Cordon { node, .. } => !situation.state.drains.contains_key(&node.host),
        Action::Decommission { .. } | Action::Delete { .. } | Action::Release { .. } => false,
    }
}

fn cooldown_until(tick: &Tick<'_>) -> Option<DateTime<Utc>> {
    let until = tick.situation.state.cooldown_from()? + tick.policy.basic().cooldown_period;
    (tick.situation.now < until).then_some(until)
}

fn decision(tick: &Tick<'_>) -> Verdict {
    let choices: Vec<_> =
        tick.decision.actions.iter().filter(|action| is_choice(action, tick.situation)).cloned().collect();
    let both = |action: &Action| match action {
        Action::Resize { change, .. } => {
            change.iter().any(|(_, change)| change > 0) && change.iter().any(|(_, change)| change < 0)
        }
        _ => false,
    };
    if choices.iter().any(both) { Verdict::Mixed } else { Verdict::of(&choices) }
}

fn summary(tick: &Tick<'_>) -> String {
    let (from, to) = (current(tick.situation), recommended(tick));
    match decision(tick) {
        Verdict::NoScale => format!("Recommending NO_SCALE at {} workers", from.total()),
        verdict => format!("Recommending {} from {} to {} workers", verdict.word(), from.total(), to.total()),
    }
}

/// Machines that exist or are being made and are not on their way out.
fn current(situation: &Situation) -> ClusterSize {
    let mut size = ClusterSize::default();
    let Ok(capacity) = &situation.capacity else { return size };
    for (group, instance) in capacity.instances() {
        let leaves = instance.state == InstanceState::Stopping || situation.state.drains.contains_key(&instance.host);
        size.add(group, i64::from(!leaves));
    }
    size
}

fn recommended(tick: &Tick<'_>) -> ClusterSize {
    let mut size = current(tick.situation);
    let drains = &tick.situation.state.drains;
    for action in tick.decision.actions.iter().filter(|action| is_choice(action, tick.situation)) {
        match action {
            Action::Create { group, count } => size.add(*group, i64::from(*count)),
            Action::Resize { change, .. } => {
                change.iter().for_each(|(group, change)| size.add(group, i64::from(change)));
            }
            Action::Cordon { group, .. } => size.add(*group, -1),
            Action::Uncordon { node, .. } => drains.get(&node.host).iter().for_each(|drain| size.add(drain.group, 1)),
            Action::Recommission { hosts } => {
                hosts.iter().filter_map(|host| drains.get(host)).for_each(|drain| size.add(drain.group, 1));
            }
            Action::Decommission { .. } | Action::Delete { .. } | Action::Release { .. } => {}
        }
    }
    size
}

fn recommendation(tick: &Tick<'_>, id: &str) -> Recommendation {
    let Averages { metric, metrics } = averages(tick);
    let bounds = |bound: fn(GroupPolicy) -> u32| {
        let mut size = ClusterSize::default();
        GroupName::ALL.into_iter().for_each(|group| size.add(group, i64::from(bound(tick.policy.group(group)))));
        size
    };
    let inputs = Inputs {
        cluster_metrics: metrics,
        current_cluster_size: current(tick.situation),
        min_worker_counts: bounds(|group| group.min_instances),
        max_worker_counts: bounds(|group| group.max_instances),
    };
    let timeout = tick.policy.basic().graceful_decommission_timeout;
    let outputs = Outputs {
        decision: decision(tick),
        recommended_cluster_size: recommended(tick),
        graceful_decommission_timeout: format!("{}s", timeout.as_secs()),
        constraints_reached: constraints(tick),
        additional_recommendation_details: tick.decision.reasons.iter().map(ToString::to_string).collect(),
        decision_metric: metric,
        recommendation_id: id.to_owned(),
    };
    Recommendation { inputs, outputs }
}

fn constraints(tick: &Tick<'_>) -> Vec<&'static str> {
    let reasons = &tick.decision.reasons;
    let mut reached = Vec::new();
    if reasons.iter().any(|reason| matches!(reason, Reason::ReachedMaximum { .. })) {
        reached.push("REACHED_MAXIMUM_CLUSTER_SIZE");
    }
    if reasons.iter().any(|reason| matches!(reason, Reason::ReachedMinimum { .. })) {
        reached.push("REACHED_MINIMUM_CLUSTER_SIZE");
    }
    let exceeds =
        |action: &Action| matches!(action, Action::Resize { change, .. } if i64::from(change.secondary) < -REMOVED_MAX);
    if tick.decision.actions.iter().any(exceeds) {
        reached.push("SECONDARY_SCALEDOWN_SINGLE_REQUEST_LIMIT_REACHED");
    }
    reached
}

/// What the decision was made of.
struct Averages {
    metric: MetricType,
    metrics: BTreeMap<&'static str, String>,
}

/// Pending as the decision's reason has it; what it does not say, from the samples of the same window, and where there
/// is none yet, from the last look.
fn averages(tick: &Tick<'_>) -> Averages {
    let Situation { now, observation, history, state, .. } = tick.situation;
    let policy = tick.policy.basic();
    let period = TimeDelta::from_std(policy.cooldown_period).unwrap_or(TimeDelta::MAX);
    let from = now.checked_sub_signed(period).unwrap_or(*now);
    let window = history.window(state.cooldown_from().map_or(from, |begun| begun.max(from)));
    let look = observation.as_ref().map(|observation| observation.metrics).unwrap_or_default();
    let average = |sum: u128, look: u64| {
        u128::try_from(window.samples).ok().and_then(|n| sum.checked_div(n)).unwrap_or(look.into())
    };
    let free_mb = window.capacity.memory_mb.saturating_sub(window.allocated.memory_mb);
    let free_vcores = window.capacity.vcores.saturating_sub(window.allocated.vcores);
    let said = tick.decision.reasons.iter().find_map(pending);
    let pending_of =
        |metric, average: u128| said.filter(|(of, _)| *of == metric).map_or(average, |(_, pending)| pending.into());
    let memory = pending_of(MetricType::YarnMemory, average(window.pending.memory_mb, look.pending.memory_mb));
    let mut metrics = BTreeMap::from([
        ("avg-yarn-pending-memory", format!("{memory} MB")),
        ("avg-yarn-available-memory", format!("{} MB", average(free_mb, look.available.memory_mb))),
    ]);
    if policy.metrics.contains(&MetricType::YarnCores) {
        let cores = pending_of(MetricType::YarnCores, average(window.pending.vcores, look.pending.vcores));
        metrics.insert("avg-yarn-pending-cores", cores.to_string());
        metrics.insert("avg-yarn-available-cores", average(free_vcores, look.available.vcores).to_string());
    }
    let metric = said.map(|(metric, _)| metric).or_else(|| policy.metrics.first().copied());
    Averages { metric: metric.unwrap_or(MetricType::YarnMemory), metrics }
}

/// What decided, and how much of it was pending on average.
fn pending(reason: &Reason) -> Option<(MetricType, u64)> {
    match reason {
        Reason::ScaleUp { metric, pending, .. }
        | Reason::Steady { metric, pending, .. }
        | Reason::DemandGone { metric, pending } => Some((*metric, *pending)),
        // Workers go only while nothing is pending.
        Reason::ScaleDown { metric, .. } => Some((*metric, 0)),
        _ => None,
    }
}
