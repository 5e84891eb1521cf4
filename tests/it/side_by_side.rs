//! One scene as it was played, on a real YARN or in the simulator, and where two plays of it differ.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use yarn_autoscaler::{
    model::Reason,
    sim::{
        Ms,
        outcome::{Outcome, Step},
    },
};

/// Jobs that start within so many seconds of each other have no order: half a look of the daemon decides it.
const TIE_S: f64 = 3.0;
/// A job's start and end may be so far apart, or so far for each second since its submission. Three decisions come before
/// the last start, and each may fall one look, two seconds, earlier or later.
const TIME_S: f64 = 6.0;
const TIME_SHARE: f64 = 0.15;
/// So far apart may be what adds up over the scene: its length, and the time of all nodes together.
const SUM_SHARE: f64 = 0.12;

/// A scene as it was played. Times are seconds since the first submission.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Played {
    /// In the order of submission.
    pub jobs: Vec<PlayedJob>,
    pub resizes: Vec<Resize>,
    /// How many nodes were RUNNING in YARN, since when; the last one holds to the end.
    pub nodes: Vec<(f64, u32)>,
    /// Containers that others ended.
    pub killed: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PlayedJob {
    pub name: String,
    pub submit: f64,
    /// All its containers are there, and work.
    pub start: f64,
    pub end: f64,
    pub succeeded: bool,
}

/// A decision on another size.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Resize {
    pub at: f64,
    pub from: u32,
    pub to: u32,
}

impl Played {
    /// What the simulator played; `zero` is when the real one's first job was submitted.
    pub fn of(outcome: &Outcome, zero: f64) -> Self {
        let since = |at: Ms| (at as f64 - zero) / 1000.0;
        let time = |at: Option<Ms>| at.map_or(f64::INFINITY, since);
        let jobs = outcome.jobs.iter().map(|job| PlayedJob {
            name: job.name.to_string(),
            submit: since(job.submit_ms),
            start: time(job.start_ms),
            end: time(job.end_ms),
            succeeded: job.succeeded,
        });
        let told = outcome.decisions.iter().flat_map(|told| told.reasons.iter().map(|reason| (told.from_ms, reason)));
        let resizes = told.filter_map(|(at, reason)| match *reason {
            Reason::ScaleUp { from, to, .. } | Reason::ScaleDown { from, to, .. } => {
                Some(Resize { at: since(at), from, to })
            }
            _ => None,
        });
        // YARN calls a cordoned node RUNNING, too.
        let running = |step: &Step| (since(step.at_ms), step.machines.ready + step.machines.cordoned);
        let mut nodes: Vec<_> = outcome.steps.iter().map(running).collect();
        nodes.dedup_by_key(|(_, count)| *count);
        Self {
            jobs: jobs.collect(),
            resizes: resizes.collect(),
            nodes,
            killed: outcome.counts.killed_by_drain + outcome.counts.killed_by_fault,
        }
    }

    /// From the first submission to the last end.
    pub fn makespan(&self) -> f64 {
        self.jobs.iter().map(|job| job.end).fold(0.0, f64::max)
    }

    pub fn peak(&self) -> u32 {
        self.nodes.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }

    pub fn last(&self) -> u32 {
        self.nodes.last().map_or(0, |(_, count)| *count)
    }

    /// Seconds of all RUNNING nodes together, from the first submission to an instant at which nothing changes any more.
    pub fn node_seconds(&self, end: f64) -> f64 {
        let ends = self.nodes.iter().skip(1).map(|(at, _)| *at).chain([end]);
        let spans = self.nodes.iter().zip(ends).map(|((from, count), to)| (from.max(0.0), to.clamp(0.0, end), *count));
        spans.map(|(from, to, count)| (to - from).max(0.0) * f64::from(count)).sum()
    }

    /// To which sizes it grew, one after the other.
    pub fn growth(&self) -> Vec<u32> {
        self.resizes.iter().filter(|resize| resize.to > resize.from).map(|resize| resize.to).collect()
    }

    /// For each growth: when it was ordered, and after how long all of it was there.
    pub fn boots(&self) -> Vec<(f64, f64)> {
        let grows = self.resizes.iter().filter(|resize| resize.to > resize.from);
        let came = |resize: &Resize| self.nodes.iter().find(|(at, count)| *at > resize.at && *count >= resize.to);
        grows.filter_map(|resize| Some((resize.at, came(resize)?.0 - resize.at))).collect()
    }

    /// When the number of nodes changed last.
    fn at_rest(&self) -> f64 {
        self.nodes.last().map_or(0.0, |(at, _)| *at)
    }
}

/// Where two plays of a scene differ by more than is allowed; nothing: they are alike.
pub fn differences(real: &Played, simulated: &Played) -> Vec<String> {
    let mut found = Vec::new();
    let mut same = |what: &str, a: String, b: String| {
        if a != b {
            found.push(format!("{what}: {a} on the real YARN, {b} in the simulator"));
        }
    };
    let done = |played: &Played| played.jobs.iter().filter(|job| job.succeeded).count().to_string();
    same("jobs that succeeded", done(real), done(simulated));
    let (grown, simulated_growth) = (real.growth(), simulated.growth());
    let alike = |pair: (&u32, &u32)| pair.0.abs_diff(*pair.1) <= 1;
    if grown.len() != simulated_growth.len() || !grown.iter().zip(&simulated_growth).all(alike) {
        same("sizes that it grew to", format!("{grown:?}"), format!("{simulated_growth:?}"));
    }
    same("most nodes", real.peak().to_string(), simulated.peak().to_string());
    same("nodes at the end", real.last().to_string(), simulated.last().to_string());
    same("containers killed", real.killed.to_string(), simulated.killed.to_string());
    let end = real.at_rest().max(simulated.at_rest());
    let mut near = |what: String, a: f64, b: f64, tolerance: f64| {
        // What never came is infinite: then nothing is near, not even the other that never came.
        let is_near = (a - b).abs() <= tolerance;
        if !is_near {
            found.push(format!(
                "{what}: {a:.1} s on the real YARN, {b:.1} s in the simulator, {tolerance:.1} s allowed"
            ));
        }
    };
    for (a, b) in real.jobs.iter().zip(&simulated.jobs) {
        let tolerance = |at: f64| TIME_S.max(TIME_SHARE * (at - a.submit));
        near(format!("{} starts", a.name), a.start, b.start, tolerance(a.start));
        near(format!("{} ends", a.name), a.end, b.end, tolerance(a.end));
    }
    near("the last end".into(), real.makespan(), simulated.makespan(), SUM_SHARE * real.makespan());
    let (a, b) = (real.node_seconds(end), simulated.node_seconds(end));
    near("all nodes together".into(), a, b, SUM_SHARE * a);
    found.extend(out_of_order(real, simulated));
    found
}

/// Pairs of jobs that start in one order here and in the other there, and in neither at about the same time.
fn out_of_order(real: &Played, simulated: &Played) -> Vec<String> {
    let mut found = Vec::new();
    for (index, (a, b)) in real.jobs.iter().zip(&simulated.jobs).enumerate() {
        for (other, another) in real.jobs.iter().zip(&simulated.jobs).skip(index + 1) {
            let (here, there) = (other.start - a.start, another.start - b.start);
            if here * there < 0.0 && here.abs().max(there.abs()) > TIE_S {
                found.push(format!("{} and {}: the other order of starts", a.name, other.name));
            }
        }
    }
    found
}

/// Both plays as a table.
pub fn table(real: &Played, simulated: &Played) -> String {
    let mut text =
        String::from("job        submitted   starts: real  simulated   diff     ends: real  simulated   diff\n");
    for (a, b) in real.jobs.iter().zip(&simulated.jobs) {
        let _ = writeln!(
            text,
            "{:10} {:9.1}  {:12.1} {:10.1} {:+6.1}  {:12.1} {:10.1} {:+6.1}",
            a.name,
            a.submit,
            a.start,
            b.start,
            b.start - a.start,
            a.end,
            b.end,
            b.end - a.end
        );
    }
    let _ = writeln!(text, "decision   real            simulated");
    for index in 0..real.resizes.len().max(simulated.resizes.len()) {
        let show = |played: &Played| {
            let resize = played.resizes.get(index);
            resize.map_or("-".into(), |resize| format!("{:5.1} s {} -> {}", resize.at, resize.from, resize.to))
        };
        let _ = writeln!(text, "{:10} {:15} {}", index + 1, show(real), show(simulated));
    }
    let end = real.at_rest().max(simulated.at_rest());
    let sums = |played: &Played| {
        format!(
            "{:.1} s to the last end, {:.1} s to rest, {} to {} nodes, {:.0} s of nodes",
            played.makespan(),
            played.at_rest(),
            played.peak(),
            played.last(),
            played.node_seconds(end)
        )
    };
    let _ = write!(text, "real:      {}\nsimulated: {}", sums(real), sums(simulated));
    text
}
