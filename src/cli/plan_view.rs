//! What a plan shows: as text for people, as JSON for programs. Reads nothing, decides nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    decide::roster::{Roster, Standing},
    model::{Action, ClusterMetrics, Decision, GroupName, NodeState, Reason, Resources, Situation},
    policy::Policy,
};

/// One plan.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan<'a> {
    at: DateTime<Utc>,
    hadoop_version: &'a str,
    metrics: ClusterMetrics,
    applications: Applications,
    groups: BTreeMap<GroupName, GroupView>,
    workers: Vec<WorkerView<'a>>,
    actions: &'a [Action],
    reasons: &'a [Reason],
    /// The reasons as sentences.
    because: Vec<String>,
}

#[derive(Debug, Default, Serialize)]
struct Applications {
    running: usize,
    accepted: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GroupView {
    size: u32,
    min_instances: u32,
    max_instances: u32,
    ready: usize,
    booting: usize,
    not_ready: usize,
    leaving: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkerView<'a> {
    instance: &'a str,
    host: &'a str,
    group: GroupName,
    standing: &'static str,
    node_state: Option<NodeState>,
    containers: u32,
    application_masters: usize,
    used: Resources,
    total: Resources,
}

impl<'a> Plan<'a> {
    /// What there is to show; a situation without observation or capacity shows its reasons only.
    pub fn of(policy: &Policy, situation: &'a Situation, decision: &'a Decision) -> Self {
        let mut plan = Self {
            at: situation.now,
            hadoop_version: "",
            metrics: ClusterMetrics::default(),
            applications: Applications::default(),
            groups: BTreeMap::new(),
            workers: Vec::new(),
            actions: &decision.actions,
            reasons: &decision.reasons,
            because: decision.reasons.iter().map(ToString::to_string).collect(),
        };
        plan.see(policy, situation);
        plan
    }

    fn see(&mut self, policy: &Policy, situation: &'a Situation) {
        let (Ok(observation), Ok(capacity)) = (&situation.observation, &situation.capacity) else { return };
        let roster = Roster::of(observation, capacity, &situation.state, situation.now, situation.ready_deadline);
        let running = observation.applications.iter().filter(|application| application.running).count();
        self.hadoop_version = &observation.version;
        self.metrics = observation.metrics;
        self.applications = Applications { running, accepted: observation.applications.len() - running };
        self.groups = capacity.groups.keys().map(|name| (*name, group_view(policy, &roster, *name))).collect();
        self.workers = roster
            .workers
            .iter()
            .map(|worker| WorkerView {
                instance: &worker.instance.name,
                host: &worker.instance.host,
                group: worker.group,
                standing: word(worker.standing),
                node_state: worker.node.map(|node| node.state),
                containers: worker.node.map_or(0, |node| node.containers),
                application_masters: observation.application_masters(&worker.instance.host),
                used: worker.node.map(|node| node.used).unwrap_or_default(),
                total: worker.node.map(|node| node.total).unwrap_or_default(),
            })
            .collect();
    }

    /// The document for programs.
    ///
    /// # Errors
    /// None that data like this can cause.
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The text for people.
    pub fn text(&self) -> String {
        let mut lines = vec![
            format!("At {} on Hadoop {}:", self.at.format("%H:%M:%S UTC"), self.hadoop_version),
            format!("  pending    {} in {} containers", amounts(self.metrics.pending), self.metrics.containers_pending),
            format!(
                "  allocated  {} in {} containers",
                amounts(self.metrics.allocated),
                self.metrics.containers_allocated
            ),
            format!("  available  {}", amounts(self.metrics.available)),
            format!(
                "  running    {} applications, {} more accepted",
                self.applications.running, self.applications.accepted
            ),
        ];
        lines.extend(self.groups.iter().map(|(name, group)| group.line(*name)));
        lines.push(self.workers_table());
        lines.push("It would:".into());
        lines.extend(self.actions.iter().map(|action| format!("  {action}")));
        if self.actions.is_empty() {
            lines.push("  do nothing".into());
        }
        lines.push("Because:".into());
        lines.extend(self.because.iter().map(|reason| format!("  {reason}")));
        lines.join("\n") + "\n"
    }

    fn workers_table(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        table.set_header(["  worker", "host", "group", "standing", "containers", "masters", "used", "of"]);
        for worker in &self.workers {
            table.add_row([
                format!("  {}", worker.instance),
                worker.host.to_owned(),
                worker.group.to_string(),
                worker.standing.to_owned(),
                worker.containers.to_string(),
                worker.application_masters.to_string(),
                amounts(worker.used),
                amounts(worker.total),
            ]);
        }
        table.to_string()
    }
}

impl GroupView {
    fn line(&self, name: GroupName) -> String {
        format!(
            "  {name}: {} workers ({} ready, {} booting, {} not ready, {} leaving), policy {} to {}",
            self.size, self.ready, self.booting, self.not_ready, self.leaving, self.min_instances, self.max_instances
        )
    }
}

fn group_view(policy: &Policy, roster: &Roster<'_>, name: GroupName) -> GroupView {
    let count = |standing| roster.with(standing).filter(|worker| worker.group == name).count();
    let bounds = policy.group(name);
    GroupView {
        size: roster.size(name),
        min_instances: bounds.min_instances,
        max_instances: bounds.max_instances,
        ready: count(Standing::Ready),
        booting: count(Standing::Booting),
        not_ready: count(Standing::NotReady),
        leaving: count(Standing::Leaving),
    }
}

fn word(standing: Standing) -> &'static str {
    match standing {
        Standing::Ready => "ready",
        Standing::Booting => "booting",
        Standing::NotReady => "not ready",
        Standing::Leaving => "leaving",
    }
}

fn amounts(resources: Resources) -> String {
    format!("{} MB, {} cores, {} GPUs", resources.memory_mb, resources.vcores, resources.gpus)
}
