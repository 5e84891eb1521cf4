//! Reads the text of one case (`tests/cases/*.txt`) into the policy and the situation that `decide` gets.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use yarn_autoscaler::{
    decide,
    model::{
        Application, Capabilities, Capacity, ClusterMetrics, Drain, DrainPhase, Group, GroupName, History, Instance,
        InstanceState, Intent, Node, NodeId, NodeState, Observation, Operation, Outage, Readiness, Resources, Sample,
        SeenResourceManager, Situation, SizeChange, State, WorkerRecord, WorkerTemplate,
    },
    policy::{MetricType, Policy},
};

use crate::fixtures::{self, at, noon, secs};

/// What the lines of a case have said so far.
struct Reader {
    policy: Policy,
    capacity: Capacity,
    nodes: Vec<Node>,
    applications: Vec<Application>,
    metrics: ClusterMetrics,
    samples: Vec<Sample>,
    state: State,
    outage: Option<(String, String)>,
}

/// One line: its bare words in order, and its `key=value` words.
struct Line<'a> {
    words: Vec<&'a str>,
    values: BTreeMap<&'a str, &'a str>,
}

impl<'a> Line<'a> {
    fn parse(rest: &'a str) -> Self {
        let (pairs, words) = rest.split_whitespace().partition::<Vec<_>, _>(|word| word.contains('='));
        Self { words, values: pairs.into_iter().filter_map(|pair| pair.split_once('=')).collect() }
    }

    fn set<T>(&self, key: &str, target: &mut T, read: impl Fn(&str) -> T) {
        if let Some(value) = self.values.get(key) {
            *target = read(value);
        }
    }

    fn get<T>(&self, key: &str, read: impl Fn(&str) -> T) -> Option<T> {
        self.values.get(key).map(|value| read(value))
    }
}

/// The policy and the situation that a case describes.
pub fn read(case: &str) -> (Policy, Situation) {
    let mut reader = Reader::new();
    for line in case.lines().filter(|line| !line.starts_with('#')) {
        let (key, rest) = line.split_once(' ').unwrap_or((line, ""));
        let line = Line::parse(rest);
        match key {
            "policy" => reader.policy(&line),
            "template" => reader.template(&line),
            "provider" => reader.provider(&line),
            "workers" => reader.workers(&line),
            "worker" => reader.worker(&line),
            "machine" => reader.machine(&line),
            "foreign" => line.words.iter().for_each(|host| reader.nodes.push(node(host, amount("8192MB/4c")))),
            "window" => reader.window(&line),
            "past" => reader.past(&line),
            "order" => reader.order(&line),
            "leaving" => reader.leaving(&line),
            "outage" => reader.outage = Some((line.words[0].to_owned(), line.words[1..].join(" "))),
            "show" | "then" | "because" | "sample" | "" => {}
            other => panic!("no such word: {other}\n{case}"),
        }
    }
    reader.situation()
}

impl Reader {
    fn new() -> Self {
        let capabilities = Capabilities { deletes_named: true, overlaps: false, resizes: false };
        Self {
            policy: fixtures::policy(),
            capacity: Capacity { capabilities, groups: BTreeMap::new(), identity: None, readiness: Readiness::Ready },
            nodes: Vec::new(),
            applications: Vec::new(),
            metrics: ClusterMetrics::default(),
            samples: Vec::new(),
            state: State::default(),
            outage: None,
        }
    }

    fn policy(&mut self, line: &Line<'_>) {
        let basic = fixtures::basic(&mut self.policy);
        line.set("up", &mut basic.scale_up_factor, number);
        line.set("down", &mut basic.scale_down_factor, number);
        line.set("up-min", &mut basic.scale_up_min_worker_fraction, number);
        line.set("down-min", &mut basic.scale_down_min_worker_fraction, number);
        line.set("count", &mut basic.metrics, |text| match text {
            "cores" => vec![MetricType::YarnCores],
            "memory+cores" => vec![MetricType::YarnMemory, MetricType::YarnCores],
            _ => vec![MetricType::YarnMemory],
        });
        // `2..10` or, with a weight, `2..10*3`.
        let bounds = |text: &str| {
            let (range, weight) = text.split_once('*').unwrap_or((text, "1"));
            let (min, max) = range.split_once("..").expect("min..max");
            fixtures::group(number(min), number(max), number(weight))
        };
        line.set("primary", &mut self.policy.primary, bounds);
        line.set("secondary", &mut self.policy.secondary, |text| Some(bounds(text)));
    }

    fn template(&mut self, line: &Line<'_>) {
        let template = line
            .get("primary", amount)
            .map(|resources| WorkerTemplate { resources, boot_time: line.get("boot", duration) });
        self.policy.primary_template = template;
    }

    fn provider(&mut self, line: &Line<'_>) {
        line.set("overlaps", &mut self.capacity.capabilities.overlaps, |text| text == "yes");
        line.set("deletes-named", &mut self.capacity.capabilities.deletes_named, |text| text == "yes");
        line.set("resizes", &mut self.capacity.capabilities.resizes, |text| text == "yes");
        line.set("is", &mut self.capacity.readiness, |text| match text {
            "busy" => Readiness::Busy { what: "cluster gpu1 is UPDATING".into() },
            "held" => Readiness::Held { why: "cluster gpu1 is ERROR_DUE_TO_UPDATE".into() },
            _ => Readiness::Ready,
        });
        for group in GroupName::ALL {
            if let Some(resources) = line.get(&group.to_string(), amount) {
                self.group(group).template = Some(WorkerTemplate { resources, boot_time: line.get("boot", duration) });
            }
        }
    }

    fn group(&mut self, name: GroupName) -> &mut Group {
        self.capacity.groups.entry(name).or_insert(Group { template: None, instances: Vec::new() })
    }

    /// So many idle workers of a group: `p-0`, `p-1`, … and `s-0`, `s-1`, …
    fn workers(&mut self, line: &Line<'_>) {
        let each = line.get("each", amount).unwrap_or(amount("8192MB/4c"));
        for group in GroupName::ALL {
            let Some(count) = line.get(&group.to_string(), number::<u32>) else { continue };
            self.group(group);
            for index in 0..count {
                let host = format!("{}-{index}", &group.to_string()[..1]);
                self.nodes.push(node(&host, each));
                self.machine(&Line::parse(&host));
                let ready = WorkerRecord {
                    first_seen_at: at(-7200.0),
                    ready_at: Some(at(-7000.0)),
                    not_ready_since: None,
                    unlisted_since: None,
                };
                self.state.workers.insert(host, ready);
            }
        }
    }

    /// What is particular about one of them.
    fn worker(&mut self, line: &Line<'_>) {
        for host in &line.words {
            let node = self.nodes.iter_mut().find(|node| node.id.host == *host).expect("a worker");
            line.set("state", &mut node.state, word);
            line.set("total", &mut node.total, amount);
            line.set("used", &mut node.used, amount);
            line.set("containers", &mut node.containers, number);
            line.set("report", &mut node.health_report, str::to_owned);
            if line.values.contains_key("unknown-to-yarn") {
                self.nodes.retain(|node| node.id.host != *host);
            }
            let record = self.state.workers.get_mut(*host).expect("a worker");
            if line.values.contains_key("never-ready") {
                record.ready_at = None;
            }
            line.set("not-ready-since", &mut record.not_ready_since, |text| Some(at(seconds(text))));
            if line.values.contains_key("unknown-to-yarn") {
                record.unlisted_since = record.not_ready_since;
            }
            line.set("unlisted-since", &mut record.unlisted_since, |text| Some(at(seconds(text))));
            for _ in 0..line.get("masters", number::<u32>).unwrap_or(0) {
                self.applications.push(application_with_master_on(host));
            }
        }
    }

    /// A machine of the provider that YARN may not know.
    fn machine(&mut self, line: &Line<'_>) {
        for host in &line.words {
            let state = line.get("state", word).unwrap_or(InstanceState::Running);
            let instances = &mut self.group(group_of(host)).instances;
            instances.retain(|instance| instance.host != *host);
            instances.push(Instance { name: (*host).into(), host: (*host).into(), state });
            if let Some(first_seen_at) = line.get("seen", |text| at(seconds(text))) {
                let since = Some(first_seen_at);
                let record =
                    WorkerRecord { first_seen_at, ready_at: None, not_ready_since: since, unlisted_since: since };
                self.state.workers.insert((*host).into(), record);
            }
            if line.values.contains_key("gone") {
                self.group(group_of(host)).instances.retain(|instance| instance.host != *host);
            }
        }
    }

    /// Samples every 2.5 s, over the whole cooldown unless `from` and `to` say otherwise. What is in use and what the
    /// workers hold are those of the workers now, unless said otherwise.
    fn window(&mut self, line: &Line<'_>) {
        let (from, to) = (line.get("from", seconds).unwrap_or(-125.0), line.get("to", seconds).unwrap_or(0.0));
        line.set("reserved", &mut self.metrics.reserved, amount);
        let now = decide::sample(&self.policy, &self.situation_with(History::default()));
        let mut sample = now.unwrap_or(Sample {
            at: noon(),
            pending: Resources::default(),
            capacity: Resources::default(),
            allocated: Resources::default(),
        });
        line.set("pending", &mut sample.pending, amount);
        line.set("allocated", &mut sample.allocated, amount);
        line.set("capacity", &mut sample.capacity, amount);
        let mut second = from;
        while second <= to {
            self.samples.push(Sample { at: at(second), ..sample });
            second += 2.5;
        }
        if to >= 0.0 {
            self.metrics.pending = sample.pending;
        }
    }

    fn past(&mut self, line: &Line<'_>) {
        let instant = |text: &str| at(seconds(text));
        self.state.last_scaling_at = line.get("scaling", instant);
        self.state.last_operation_ended_at = line.get("operation-ended", instant);
        self.state.provider_failures = line.get("failures", number).unwrap_or(0);
        self.state.provider_retry_at = line.get("retry", instant);
        self.state.resource_manager = line.get("restart", instant).map(|since| SeenResourceManager {
            started_on_ms: 1,
            since,
            replaced_another: true,
        });
    }

    fn order(&mut self, line: &Line<'_>) {
        let group = group_of(line.words[1]);
        let intent = match line.words[0] {
            "create" => Intent::Create { group, count: number(line.words[2]) },
            "shrink" => Intent::Resize {
                change: SizeChange::shrinkage([(group, number(line.words[2]))]),
                timeout: Duration::from_secs(600),
            },
            _ => Intent::Delete { group, instances: line.words[1..].iter().map(|name| (*name).into()).collect() },
        };
        let request_id = format!("ya-{}", self.state.operations.len());
        let operation = Operation { request_id, intent, at: at(-10.0), operation_id: Some("op".into()) };
        self.state.operations.push(operation);
    }

    /// `leaving p-4 cordoned`, `… settled=-3s`, `… decommissioning`, `… decommissioned`: and YARN shows it so.
    fn leaving(&mut self, line: &Line<'_>) {
        let since = line.get("since", |text| at(seconds(text))).unwrap_or(at(-300.0));
        let (host, phase) = (line.words[0], line.words[1]);
        let (phase, state) = match phase {
            "cordoned" => {
                let seen_at = line.get("settled", |text| at(seconds(text)));
                (DrainPhase::Cordoned { seen_at }, NodeState::Running)
            }
            "decommissioning" => {
                let deadline = line.get("deadline", |text| at(seconds(text))).unwrap_or(at(300.0));
                (DrainPhase::Decommissioning { since, deadline, containers: 1 }, NodeState::Decommissioning)
            }
            _ => (DrainPhase::Decommissioned { since }, NodeState::Decommissioned),
        };
        let full = amount("8192MB/4c");
        if let Some(node) = self.nodes.iter_mut().find(|node| node.id.host == host) {
            (node.state, node.total) = (state, node.used);
        }
        let id = NodeId { host: host.into(), port: 8041 };
        let drain = Drain { node: id, group: group_of(host), instance: host.into(), full, phase, since };
        self.state.drains.insert(host.into(), drain);
    }

    fn situation(self) -> (Policy, Situation) {
        let mut history = History::default();
        let mut samples = self.samples.clone();
        samples.sort_by_key(|sample| sample.at);
        samples.into_iter().for_each(|sample| history.push(sample, secs(86_400)));
        (self.policy.clone(), self.situation_with(history))
    }

    fn situation_with(&self, history: History) -> Situation {
        let observation = Observation {
            started_on_ms: 1,
            version: "3.3.6".into(),
            metrics: self.metrics,
            nodes: self.nodes.iter().cloned().map(Arc::new).collect(),
            applications: self.applications.iter().cloned().map(Arc::new).collect(),
        };
        let outage = |of: &str| {
            self.outage.as_ref().filter(|(what, _)| what == of).map(|(_, text)| Outage { text: text.clone() })
        };
        Situation {
            now: noon(),
            poll_interval: secs(5),
            observation: outage("yarn").map_or(Ok(Arc::new(observation)), Err),
            capacity: outage("provider").map_or(Ok(Arc::new(self.capacity.clone())), Err),
            history,
            state: Arc::new(self.state.clone()),
            restart_hold: secs(60),
            ready_deadline: secs(900),
        }
    }
}

fn node(host: &str, total: Resources) -> Node {
    let id = NodeId { host: host.into(), port: 8041 };
    let (state, used) = (NodeState::Running, Resources::default());
    Node { id, state, total, used, containers: 0, health_report: String::new() }
}

fn application_with_master_on(host: &str) -> Application {
    Application {
        id: "application_1_0001".into(),
        name: String::new(),
        application_type: "SPARK".into(),
        queue: "default".into(),
        running: true,
        master_host: Some(host.into()),
        running_containers: Some(1),
        asks: Vec::new(),
    }
}

/// `8192MB/4c/1g`; what is left out is zero.
fn amount(text: &str) -> Resources {
    let figure = |unit: &str| text.split('/').find_map(|part| part.strip_suffix(unit)).map_or(0, number);
    Resources::new(figure("MB"), figure("c"), figure("g"))
}

/// Seconds: `90s`, `-2m`, `1h`.
fn seconds(text: &str) -> f64 {
    let (figure, unit) = text.split_at(text.len() - 1);
    let seconds = [("s", 1.0), ("m", 60.0), ("h", 3600.0)].into_iter().find(|(name, _)| *name == unit);
    number::<f64>(figure) * seconds.unwrap_or_else(|| panic!("a duration: {text}")).1
}

fn duration(text: &str) -> Duration {
    Duration::from_secs_f64(seconds(text))
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("a number: {text}"))
}

/// A word of the model as it is serialised.
fn word<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_value(text.into()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// By the first letter: `p-0` and `primary`, `s-0` and `secondary`.
fn group_of(name: &str) -> GroupName {
    if name.starts_with('s') { GroupName::Secondary } else { GroupName::Primary }
}
