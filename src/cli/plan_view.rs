//! What a plan shows: as text for people, as JSON for programs. Reads nothing, decides nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::live_view::printable;
use crate::{
    decide::{Standing, Survey},
    model::{Action, ClusterMetrics, Decision, GroupName, NodeState, Reason, Resources, Situation},
    policy::Policy,
};

/// Most workers that the text lists: more than a screen's height is not read.
const WORKERS_SHOWN: usize = 30;

/// Instead of a zero, which would look like a figure.
const NOTHING: &str = "-";

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
    pub fn of(policy: &Policy, situation: &'a Situation, survey: Option<&'a Survey>, decision: &'a Decision) -> Self {
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
        if let Some(survey) = survey {
            plan.see(policy, survey);
        }
        plan
    }

    fn see(&mut self, policy: &Policy, survey: &'a Survey) {
        let observation = survey.matching().observation();
        let running = observation.applications.iter().filter(|application| application.running).count();
        self.hadoop_version = &observation.version;
        self.metrics = observation.metrics;
        self.applications = Applications { running, accepted: observation.applications.len() - running };
        self.groups =
            survey.sizes().iter().map(|(name, size)| (name, group_view(policy, survey, name, size))).collect();
        self.workers = survey
            .workers()
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
        let actions = paragraph("It would:", self.actions.iter().map(ToString::to_string), "do nothing");
        let reasons = paragraph("Because:", self.because.iter().cloned(), "");
        // Of what nobody answered there is nothing to show: not even zeros.
        let seen = if self.hadoop_version.is_empty() { String::new() } else { self.what_is_seen() };
        let text = format!("{seen}{actions}\n{reasons}");
        // Host names and health reports are YARN's: nothing in them may steer the terminal.
        text.lines().map(|line| printable(line) + "\n").collect()
    }

    fn what_is_seen(&self) -> String {
        let Applications { running, accepted } = self.applications;
        let (at, version) = (self.at.format("%H:%M:%S UTC"), self.hadoop_version);
        let running = if running == 1 { "1 application".to_owned() } else { format!("{running} applications") };
        let tables = [self.cluster_table(), self.groups_table(), self.workers_table()].join("\n");
        format!("At {at} on Hadoop {version}, {running} running, {accepted} more accepted:\n\n{tables}\n")
    }

    fn cluster_table(&self) -> String {
        let ClusterMetrics { pending, available, allocated, reserved, .. } = self.metrics;
        let (waiting, placed) = (self.metrics.containers_pending, self.metrics.containers_allocated);
        let row = |name: &str, amount: Resources, containers: String| {
            let Resources { memory_mb, vcores, gpus } = amount;
            vec![name.to_owned(), figure(memory_mb), figure(vcores), figure(gpus), containers]
        };
        let mut rows = vec![
            row("pending", pending, figure(waiting)),
            row("allocated", allocated, figure(placed)),
            row("available", available, String::new()),
        ];
        if reserved != Resources::default() {
            rows.push(row("reserved", reserved, String::new()));
        }
        columns(&["", "MB", "cores", "GPUs", "containers"], 1, rows)
    }

    fn groups_table(&self) -> String {
        let header = ["group", "workers", "ready", "booting", "not ready", "leaving", "min", "max"];
        let rows = self.groups.iter().map(|(name, group)| group.row(*name)).collect();
        columns(&header, 1, rows)
    }

    /// Of many workers those that are not simply ready, and as many of the others as there is room for.
    fn workers_table(&self) -> String {
        let mut shown: Vec<_> = self.workers.iter().enumerate().collect();
        shown.sort_by_key(|(_, worker)| worker.standing == word(Standing::Ready));
        shown.truncate(WORKERS_SHOWN);
        shown.sort_by_key(|(index, _)| *index);
        let header = ["worker", "host", "group", "standing", "containers", "masters", "MB used", "cores", "GPUs"];
        let table = columns(&header, 4, shown.iter().map(|(_, worker)| worker.row()).collect());
        match self.workers.len() - shown.len() {
            0 => table,
            more => format!("{table}  and {more} more; --json has them all\n"),
        }
    }
}

impl WorkerView<'_> {
    fn row(&self) -> Vec<String> {
        let of = |used: u64, total: u64| if total == 0 { NOTHING.to_owned() } else { format!("{used}/{total}") };
        let masters = u64::try_from(self.application_masters).unwrap_or(u64::MAX);
        vec![
            self.instance.to_owned(),
            self.host.to_owned(),
            self.group.to_string(),
            self.standing.to_owned(),
            figure(self.containers.into()),
            figure(masters),
            of(self.used.memory_mb, self.total.memory_mb),
            of(self.used.vcores, self.total.vcores),
            of(self.used.gpus, self.total.gpus),
        ]
    }
}

impl GroupView {
    fn row(&self, name: GroupName) -> Vec<String> {
        let standings = [self.ready, self.booting, self.not_ready, self.leaving];
        let standings = standings.map(|count| figure(u64::try_from(count).unwrap_or(u64::MAX)));
        let mut row = vec![name.to_string(), figure(self.size.into())];
        row.extend(standings);
        row.extend([self.min_instances.to_string(), self.max_instances.to_string()]);
        row
    }
}

/// Aligned columns without trailing blanks; those from the `words`-th on are figures, to the right.
fn columns(header: &[&str], words: usize, rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.force_no_tty();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

/// A heading, and its lines indented.
fn paragraph(heading: &str, lines: impl Iterator<Item = String>, otherwise: &str) -> String {
    let lines: Vec<_> = lines.map(|line| format!("  {line}\n")).collect();
    let body = if lines.is_empty() { format!("  {otherwise}\n") } else { lines.concat() };
    format!("{heading}\n{body}")
}

fn figure(amount: u64) -> String {
    if amount == 0 { NOTHING.to_owned() } else { amount.to_string() }
}

fn group_view(policy: &Policy, survey: &Survey, name: GroupName, size: u32) -> GroupView {
    let count = |standing| survey.with(standing).filter(|worker| worker.group == name).count();
    let bounds = policy.group(name);
    GroupView {
        size,
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
