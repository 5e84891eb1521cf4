//! From looks at applications to rows of a workload.
//! Must not know how a look is made, nor where rows go.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    guess::{Assumed, Guess, Like, float, guess},
    summary::{Doubt, Skip, Summary},
    track::{GroupKey, Seen, Tasks, Track, scaled},
};
use crate::{
    model::{JobShape, MASTER_GROUP, Resources, WorkloadRow},
    yarn::applications::{AppRecord, Launch},
};

/// Looks in a row at which an application is not there before it is taken for gone: a ResourceManager that has just
/// restarted may not know all of them yet.
const ABSENT_MAX: u32 = 2;
/// The name of the group of which only totals are known.
const GUESSED_GROUP: &str = "containers";
/// The name of the group of a master that had no other containers: it did the work, and a job needs a group that does.
const ALONE_GROUP: &str = "alone";

/// How looks become rows.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The application types that are gangs.
    pub gang_types: Vec<String>,
    /// What is assumed where only totals are known.
    pub assumed: Assumed,
    /// Whether applications that are not over in the end are left out.
    pub ended_only: bool,
}

/// What was seen, and what has become of it.
#[derive(Debug)]
pub struct Recorder {
    rules: Rules,
    tracks: BTreeMap<String, Track>,
    done: BTreeSet<String>,
    /// What was written, left out and guessed so far.
    pub summary: Summary,
}

/// One look at all applications.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// Those that are not over, with their containers where those could be seen.
    pub alive: Vec<(AppRecord, Option<Seen>)>,
    /// Those that are.
    pub over: Vec<AppRecord>,
}

/// The rows of an application and what is doubtful in them.
type Rows = Result<(Vec<WorkloadRow>, Vec<Doubt>), Skip>;

/// A group of containers about to become a row.
struct Part {
    name: String,
    containers: u64,
    size: Resources,
    duration_s: f64,
}

impl Recorder {
    /// Begins; the jobs that are `done` are written already and are left alone.
    pub fn new(rules: Rules, done: BTreeSet<String>) -> Self {
        Self { rules, tracks: BTreeMap::new(), done, summary: Summary::default() }
    }

    /// Whether anything more is to be known of this application.
    pub fn wants(&self, app: &str) -> bool {
        !self.done.contains(app)
    }

    /// Has applications that are over left out: they were before the recording began.
    pub fn ignore(&mut self, over: Vec<AppRecord>) {
        self.done.extend(over.into_iter().map(|app| app.id));
    }

    /// Takes a look in; the rows of the applications that are over, an application each.
    pub fn take(&mut self, look: Look) -> Vec<Vec<WorkloadRow>> {
        self.tracks.values_mut().for_each(|track| track.absent += 1);
        for (app, seen) in look.alive {
            if self.wants(&app.id) {
                let track = self.tracks.entry(app.id.clone()).or_insert_with(|| Track::new(app.clone()));
                track.look(app, seen);
            }
        }
        let mut written = Vec::new();
        for app in look.over {
            if self.wants(&app.id) {
                let mut track = self.tracks.remove(&app.id).unwrap_or_else(|| Track::new(app.clone()));
                track.close(app);
                written.extend(self.write(&track, &[]));
            }
        }
        let gone: Vec<_> =
            self.tracks.iter().filter(|(_, track)| track.absent >= ABSENT_MAX).map(|(id, _)| id.clone()).collect();
        for mut track in gone.iter().filter_map(|id| self.tracks.remove(id)).collect::<Vec<_>>() {
            track.cut();
            written.extend(self.write(&track, &[Doubt::Vanished]));
        }
        written
    }

    /// The rows of the applications that are not over, as far as they got.
    pub fn finish(&mut self) -> Vec<Vec<WorkloadRow>> {
        let tracks = std::mem::take(&mut self.tracks);
        let mut written = Vec::new();
        for mut track in tracks.into_values() {
            if self.rules.ended_only {
                self.summary.skipped(Skip::NotOver);
                continue;
            }
            track.cut();
            written.extend(self.write(&track, &[Doubt::Unfinished]));
        }
        written
    }

    fn write(&mut self, track: &Track, doubts: &[Doubt]) -> Option<Vec<WorkloadRow>> {
        self.done.insert(track.app.id.clone());
        match rows(track, &self.rules) {
            Err(skip) => {
                self.summary.skipped(skip);
                None
            }
            Ok((rows, mut more)) => {
                more.extend_from_slice(doubts);
                self.summary.written(&track.app, rows.len(), &more);
                Some(rows)
            }
        }
    }
}

fn rows(track: &Track, rules: &Rules) -> Rows {
    let app = &track.app;
    if app.used_seconds.memory_mb == 0 && track.master.is_none() {
        return Err(if app.is_over() { Skip::NeverStarted } else { Skip::NotYetStarted });
    }
    let run_s = track.run_s().filter(|run_s| *run_s > 0.0).ok_or(Skip::NoRunTime)?;
    let is_gang = rules.gang_types.iter().any(|gang| gang.eq_ignore_ascii_case(&app.application_type));
    let (mut parts, doubts) = if is_gang { gang(track, run_s, rules)? } else { tasks(track, run_s, rules)? };
    parts.retain(|part| part.containers > 0);
    if let [only] = parts.as_mut_slice() {
        only.name = ALONE_GROUP.into();
    }
    let shape = if is_gang { JobShape::Gang } else { JobShape::Tasks };
    Ok((parts.into_iter().map(|part| row(app, shape, part)).collect(), doubts))
}

fn row(app: &AppRecord, shape: JobShape, part: Part) -> WorkloadRow {
    let of_ms = |ms: f64| ms.round() / 1000.0;
    WorkloadRow {
        job: app.id.clone(),
        submit_s: float(u64::try_from(app.submitted_ms).unwrap_or(0)) / 1000.0,
        application_type: app.application_type.clone(),
        queue: app.queue.clone(),
        group: part.name,
        containers: part.containers,
        memory_mb: part.size.memory_mb,
        vcores: part.size.vcores,
        gpus: part.size.gpus,
        duration_s: of_ms(part.duration_s * 1000.0),
        shape,
    }
}

fn master(size: Resources, duration_s: f64) -> Part {
    Part { name: MASTER_GROUP.into(), containers: 1, size, duration_s }
}

/// Each group by its priority; a second size of the same priority gets a number.
fn named(groups: impl IntoIterator<Item = (GroupKey, u64, f64)>) -> Vec<Part> {
    let mut names: BTreeMap<i32, usize> = BTreeMap::new();
    let part = |(key, containers, duration_s): (GroupKey, u64, f64)| {
        let sizes = names.entry(key.priority).or_default();
        *sizes += 1;
        let name = if *sizes == 1 { format!("p{}", key.priority) } else { format!("p{}.{sizes}", key.priority) };
        Part { name, containers, size: key.size(), duration_s }
    };
    groups.into_iter().map(part).collect()
}

/// A gang works from when its last member came. One that was never complete has done no work that could be told,
/// unless it succeeded: then it was complete between two looks.
fn gang(track: &Track, run_s: f64, rules: &Rules) -> Result<(Vec<Part>, Vec<Doubt>), Skip> {
    let known = track.master.as_ref().map(|master| master.resources);
    if let (Some((complete, is_sure)), Some(size)) = (track.gang(), known) {
        let duration_s = super::track::seconds(complete.since_ms, track.end_ms());
        let mut parts = vec![master(size, duration_s)];
        parts.extend(named(complete.sizes.iter().map(|(key, count)| (*key, *count, duration_s))));
        let doubts = if is_sure { Vec::new() } else { vec![Doubt::SeenOnce] };
        return Ok((parts, doubts));
    }
    if !track.peak.is_empty() && track.app.final_status != "SUCCEEDED" {
        return Err(Skip::NeverComplete);
    }
    Ok(from_totals(track, run_s, rules, true))
}

fn tasks(track: &Track, run_s: f64, rules: &Rules) -> Result<(Vec<Part>, Vec<Doubt>), Skip> {
    let (mut tasks, known) = (track.tasks(), track.master.as_ref());
    let Some(known) = known.filter(|_| tasks.iter().any(|one: &Tasks| one.duration_s > 0.0)) else {
        return Ok(from_totals(track, run_s, rules, false));
    };
    let lived_s = super::track::seconds(known.started_ms, track.end_ms());
    let used_mb_s = float(track.app.used_seconds.memory_mb) - float(known.resources.memory_mb) * lived_s;
    let doubts = if scaled(&mut tasks, used_mb_s) { vec![Doubt::Unseen] } else { Vec::new() };
    // What is still asked for will work as long as the others.
    for one in tasks.iter_mut().filter(|_| !track.app.is_over()) {
        one.containers += track
            .app
            .asks
            .iter()
            .filter(|ask| one.key == GroupKey::of(ask))
            .map(|ask| u64::from(ask.containers))
            .sum::<u64>();
    }
    let waited_s = super::track::seconds(0, track.waited_ms);
    let mut parts = vec![master(known.resources, (lived_s - waited_s).max(0.0))];
    parts.extend(named(tasks.into_iter().map(|one| (one.key, one.containers, one.duration_s))));
    Ok((parts, doubts))
}

/// The rule of [`super::guess`], with what is known of the master.
fn from_totals(track: &Track, run_s: f64, rules: &Rules, is_gang: bool) -> (Vec<Part>, Vec<Doubt>) {
    let known = track.master.as_ref().map(|master| master.resources);
    let Guess { master: size, others } = guess(track.app.used_seconds, run_s, known, &rules.assumed);
    let together_s = others.filter(|_| is_gang).map_or(run_s, |like| like.duration_s);
    let mut parts = vec![master(size, together_s)];
    let is_exact = others.is_none() && known.is_some();
    parts.extend(others.map(|Like { containers, size, duration_s }| Part {
        name: GUESSED_GROUP.into(),
        containers,
        size,
        duration_s,
    }));
    let mut doubts = if is_exact { Vec::new() } else { vec![Doubt::FromTotals] };
    if track.app.launched == Launch::NotTold {
        doubts.push(Doubt::LaunchNotTold);
    }
    (parts, doubts)
}
