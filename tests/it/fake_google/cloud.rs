//! The simulated cloud: all that the services know, and how it goes on with time.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Instant,
};

use chrono::{SecondsFormat, Utc};
use serde_json::Value;

use super::{
    MachineEvent,
    compute::{self, ComputeOperation},
    dataproc,
    dataproc_body::Cluster,
    groups::{Group, GroupKey, Template},
    http::{Answer, Request, not_found, refusal},
    identity,
    machines::{Instance, Stage},
    operations::Operation,
    options::FakeOptions,
    storage::{self, Bucket},
};

/// Everything there is.
pub struct Cloud {
    pub options: FakeOptions,
    /// Where the fake answers, without a slash at the end.
    pub url: String,
    /// This moment.
    pub now: Instant,
    pub random: Random,
    pub clusters: BTreeMap<String, Cluster>,
    /// Dataproc's, by the last part of the name.
    pub operations: BTreeMap<String, Operation>,
    /// Dataproc's, by id.
    pub policies: BTreeMap<String, Value>,
    /// When clusters were given orders within the last minute.
    pub orders: VecDeque<Instant>,
    pub instances: BTreeMap<String, Instance>,
    pub groups: BTreeMap<GroupKey, Group>,
    pub templates: BTreeMap<String, Template>,
    /// Compute Engine's, by name.
    pub compute_operations: BTreeMap<String, ComputeOperation>,
    pub buckets: BTreeMap<String, Bucket>,
    /// Handed out.
    pub tokens: BTreeSet<String>,
    /// Machines that stopped running, and that nobody was told of yet.
    pub leaving: Vec<String>,
    /// What machines are to be told.
    pub events: Vec<MachineEvent>,
}

impl Cloud {
    pub fn new(options: FakeOptions, url: &str) -> Self {
        let mut cloud = Self {
            url: url.into(),
            now: Instant::now(),
            random: Random(options.seed),
            clusters: BTreeMap::new(),
            operations: BTreeMap::new(),
            policies: BTreeMap::new(),
            orders: VecDeque::new(),
            instances: BTreeMap::new(),
            groups: BTreeMap::new(),
            templates: BTreeMap::new(),
            compute_operations: BTreeMap::new(),
            buckets: options.buckets.iter().map(|name| (name.clone(), Bucket::default())).collect(),
            tokens: BTreeSet::new(),
            leaving: Vec::new(),
            events: Vec::new(),
            options,
        };
        for spec in cloud.options.clusters.clone() {
            let order = spec.order(&cloud.options.zone);
            cloud.add_cluster(&order, true);
        }
        for spec in cloud.options.groups.clone() {
            cloud.add_group_of(&spec);
        }
        // Machines that are there from the start need no boot.
        for instance in cloud.instances.values_mut() {
            instance.stage = Stage::Booting { until: cloud.now };
        }
        cloud
    }

    /// Brings everything to this moment.
    pub fn advance(&mut self, now: Instant) {
        self.now = now;
        self.advance_operations();
        self.advance_compute();
        self.advance_machines();
    }

    /// What the service at this path says.
    pub fn answer(&mut self, request: &Request) -> Answer {
        let segments: Vec<_> = request.segments.iter().map(String::as_str).collect();
        if let Some(refusal) = self.token_missing(&segments, request) {
            return refusal;
        }
        match segments.as_slice() {
            ["" | "computeMetadata", ..] => identity::metadata(self, request),
            ["token"] => identity::token(self, request),
            ["v1", "projects", "-", "serviceAccounts", call] => identity::impersonated(self, request, call),
            ["v1", "projects", project, place @ ("regions" | "locations"), region, rest @ ..] => {
                self.in_project(project, region).unwrap_or_else(|| {
                    let answer = dataproc::answer(self, request, place, rest);
                    answer.map_or_else(|refusal| refusal, |body| Answer::json(&body))
                })
            }
            ["compute", "v1", "projects", project, rest @ ..] => self.in_project(project, "").unwrap_or_else(|| {
                let answer = compute::answer(self, request, rest);
                answer.map_or_else(|refusal| refusal, |body| Answer::json(&body))
            }),
            ["storage", "v1", rest @ ..] | ["download", "storage", "v1", rest @ ..] => {
                storage::answer(self, request, rest).unwrap_or_else(|refusal| refusal)
            }
            ["upload", "storage", "v1", "b", bucket, "o"] => {
                storage::upload(self, request, bucket).unwrap_or_else(|refusal| refusal)
            }
            _ => unrouted(request),
        }
    }

    fn token_missing(&self, segments: &[&str], request: &Request) -> Option<Answer> {
        let is_open = matches!(segments.first(), None | Some(&("" | "computeMetadata" | "token")));
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let is_known = token.is_some_and(|token| self.tokens.contains(token));
        let text = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or \
                    other valid authentication credential.";
        (self.options.tokens_demanded && !is_open && !is_known)
            .then(|| refusal(401, "UNAUTHENTICATED", "authError", text))
    }

    /// The refusal for a project or region that is not ours; an empty region is any.
    fn in_project(&self, project: &str, region: &str) -> Option<Answer> {
        if project != self.options.project {
            let text = format!("Permission denied on resource project {project}.");
            return Some(refusal(403, "PERMISSION_DENIED", "forbidden", &text));
        }
        let text = format!("Region '{region}' is invalid.");
        (!region.is_empty() && region != self.options.region)
            .then(|| refusal(400, "INVALID_ARGUMENT", "badRequest", &text))
    }

    /// The time of day, as services write it.
    pub fn timestamp(&self) -> String {
        Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true)
    }
}

/// What is said where this fake has nothing.
pub fn unrouted(request: &Request) -> Answer {
    not_found(&format!("the fake does not know {} {}", request.method, request.path))
}

/// Numbers that look random, the same for the same seed (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        // Positive for every reader of 64 bits.
        (z ^ (z >> 31)) >> 1
    }

    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.number() % limit as u64).expect("it is below a usize")
    }

    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.number(), self.number());
        let text = format!("{high:016x}{low:016x}");
        format!("{}-{}-4{}-8{}-{}", &text[..8], &text[8..12], &text[13..16], &text[17..20], &text[20..])
    }
}
