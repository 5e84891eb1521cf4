//! `record`: writes the load of a running cluster as a workload CSV, one look or many. Changes nothing in YARN.
//!
//! A look (`recorder::Look`) is read whole and then taken in (`recorder`), application by application (`track`; `guess`
//! where only totals are known); each application that is over becomes rows of the file (`sheet`). `docs/record.md`
//! says for operators what is exact and what is guessed.

pub mod guess;
pub mod recorder;
pub mod sheet;
pub mod summary;
pub mod track;

use std::{collections::BTreeMap, io::Write, path::PathBuf, process::ExitCode, time::Duration};

use anyhow::anyhow;
use chrono::{DateTime, Utc};
use tokio::signal::unix::{SignalKind, signal};

use self::{
    guess::Assumed,
    recorder::{Look, Recorder, Rules},
    sheet::{IfThere, Sheet},
    track::Seen,
};
use super::{
    connect::{Failure, Web},
    exit,
    wall_clock::WallClock,
};
use crate::{
    model::{Resources, WorkloadRow},
    policy::duration,
    ports::{Clock, ErrorKind, PortError, Wake},
    yarn::{
        applications::{AppRecord, Attempt, Reader},
        rest::ResourceManager,
    },
};

/// What ended so long before the first look is not asked for; our clock and the ResourceManager's may differ by less.
const CLOCKS_DIFFER: Duration = Duration::from_secs(3600);
/// How far back ends are asked for again: an end may be told late, or by a ResourceManager with another clock.
const TOLD_LATE: Duration = Duration::from_secs(600);

/// Record the cluster's load as a workload CSV, to be replayed in the simulator. Changes nothing.
///
/// Without --follow: once, from what the ResourceManager still remembers. Of applications that are over it tells only
/// totals, so their containers, sizes and durations are guessed: the GPU seconds, or the memory seconds over the
/// assumed size, held by as few containers as can have done so within the run time. With --follow: looks at the running
/// containers again and again, which makes them exact. docs/record.md says more.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the ResourceManager is.
    #[command(flatten)]
    pub web: Web,
    /// The file to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Overwrite the file if it is there
    #[arg(long, conflicts_with = "append")]
    pub force: bool,
    /// Add to the file if it is there; applications already in it are left out
    #[arg(long)]
    pub append: bool,
    /// Leave out applications that are not over in the end, so that a later --append finds them whole
    #[arg(long)]
    pub ended_only: bool,
    /// Only applications submitted in this time before now, such as 7d [default: all that the ResourceManager still
    /// remembers; with --follow: all that are not over]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub since: Option<Duration>,
    /// Go on looking, and write each application when it is over; Ctrl-C ends it and writes what is still running
    #[arg(long)]
    pub follow: bool,
    /// The time between two looks; tasks shorter than this may go unseen
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = interval, requires = "follow")]
    pub interval: Duration,
    /// End after this time [default: never]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, requires = "follow")]
    pub duration: Option<Duration>,
    /// The application types that are gangs: all containers work together, and only once all are there. All other
    /// types are tasks
    #[arg(long, value_name = "TYPES", value_delimiter = ',', default_value = "TONY")]
    pub gang_types: Vec<String>,
    /// Where only totals are known: the memory of an application master, in MB
    #[arg(long, value_name = "MB", default_value_t = 2048)]
    pub master_memory_mb: u64,
    /// Where only totals are known: the memory of a container without a GPU, in MB
    #[arg(long, value_name = "MB", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..))]
    pub container_memory_mb: u64,
}

/// Records.
pub fn run(args: &Args) -> ExitCode {
    exit::of(start(args))
}

fn start(args: &Args) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(record(args));
    // A name that is being looked up sits on a thread of its own and must not hold up the end.
    runtime.shutdown_background();
    result
}

async fn record(args: &Args) -> Result<(), Failure> {
    let mut recording = Recording::new(args, &WallClock::default())?;
    let result = tokio::select! {
        result = recording.record() => result,
        result = told_to_stop() => result,
    };
    recording.end(result)
}

/// Ctrl-C in a terminal, or what ends a service.
async fn told_to_stop() -> Result<(), Failure> {
    let mut signals =
        [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
    let [interrupt, terminate, hang_up] = &mut signals;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

/// A recording under way.
struct Recording<'a> {
    args: &'a Args,
    clock: WallClock,
    manager: ResourceManager,
    recorder: Recorder,
    /// Opened with the first look, so that a ResourceManager that cannot be reached leaves no file behind.
    sheet: Option<Sheet>,
    began: DateTime<Utc>,
    /// The end of the application that ended last, by the ResourceManager's clock.
    last_end_ms: i64,
    onlooker: Onlooker,
}

impl<'a> Recording<'a> {
    fn new(args: &'a Args, clock: &WallClock) -> Result<Self, Failure> {
        let is_stdout = args.output.as_os_str() == "-";
        if is_stdout && args.append {
            return Err(anyhow!("--append needs a file: standard output cannot be read").into());
        }
        let done = if args.append { sheet::jobs(&args.output)? } else { Default::default() };
        if !is_stdout && !args.append && !args.force && args.output.exists() {
            let text = "is there already: --append adds to it, --force overwrites it";
            return Err(anyhow!("{} {text}", args.output.display()).into());
        }
        let assumed = Assumed {
            master: Resources::new(args.master_memory_mb, 1, 0),
            container_memory_mb: args.container_memory_mb,
        };
        let rules = Rules { gang_types: args.gang_types.clone(), assumed, ended_only: args.ended_only };
        let began = clock.now();
        Ok(Self {
            args,
            clock: clock.clone(),
            manager: args.web.rest()?,
            recorder: Recorder::new(rules, done),
            sheet: None,
            began,
            last_end_ms: ms_before(began, CLOCKS_DIFFER),
            onlooker: Onlooker::default(),
        })
    }

    /// Looks once, or until the time is over. Only the first look must succeed.
    async fn record(&mut self) -> Result<(), Failure> {
        let look = self.look().await.map_err(|error| Failure::new(exit::UNREACHABLE, anyhow!("{error}")))?;
        self.take(look)?;
        while self.args.follow && self.rest().await {
            match self.look().await {
                Ok(look) => self.take(look)?,
                Err(error) => {
                    tracing::warn!("this look failed, the next one comes in {:?}: {error}", self.args.interval);
                    self.recorder.summary.failed_looks += 1;
                }
            }
        }
        Ok(())
    }

    /// Waits for the next look; whether there is one.
    async fn rest(&self) -> bool {
        let next = self.clock.now() + self.args.interval;
        let end = self.args.duration.map(|duration| self.began + duration);
        if end.is_some_and(|end| self.clock.now() >= end) {
            return false;
        }
        let next = end.map_or(next, |end| next.min(end));
        while self.clock.now() < next {
            if self.clock.sleep_until(next).await == Wake::Stop {
                return false;
            }
        }
        true
    }

    fn is_first(&self) -> bool {
        self.sheet.is_none()
    }

    /// Reads all of a look, and remembers nothing of it but which attempts there are.
    async fn look(&mut self) -> Result<Look, PortError> {
        self.onlooker.failures = 0;
        let reader = self.manager.reader().await?;
        let since_ms = self.args.since.map(|since| ms_before(self.began, since));
        let mut alive = Vec::new();
        // First those that are not over, then those that are: one that ends in between is in both lists, and not in none.
        for app in reader.alive(since_ms).await? {
            if self.recorder.wants(&app.id) {
                let seen = self.onlooker.see(&reader, &app).await?;
                alive.push((app, seen));
            }
        }
        let all = self.is_first() && (!self.args.follow || self.args.since.is_some());
        let ended_since_ms = (!all).then_some(self.last_end_ms - ms(TOLD_LATE));
        let over = reader.over(since_ms, ended_since_ms).await?;
        Ok(Look { alive, over })
    }

    /// Writes the applications of a look that are over.
    fn take(&mut self, mut look: Look) -> Result<(), Failure> {
        let is_first = self.is_first();
        if is_first {
            let if_there = match (self.args.append, self.args.force) {
                (true, _) => IfThere::Append,
                (false, true) => IfThere::Overwrite,
                (false, false) => IfThere::Refuse,
            };
            self.sheet = Some(Sheet::open(&self.args.output, if_there)?);
        }
        let ends = look.over.iter().filter_map(|app| app.finished_ms);
        self.last_end_ms = ends.max().unwrap_or(i64::MIN).max(self.last_end_ms);
        self.onlooker.attempts.retain(|id, _| look.alive.iter().any(|(app, _)| app.id == *id));
        if is_first && self.args.follow && self.args.since.is_none() {
            let alive = |app: &AppRecord| look.alive.iter().any(|(other, _)| other.id == app.id);
            let before: Vec<_> = look.over.extract_if(.., |app| !alive(app)).collect();
            self.recorder.ignore(before);
        }
        let jobs = self.recorder.take(look);
        self.write(&jobs)
    }

    fn write(&mut self, jobs: &[Vec<WorkloadRow>]) -> Result<(), Failure> {
        if let Some(sheet) = &mut self.sheet {
            jobs.iter().try_for_each(|job| sheet.write(job))?;
        }
        Ok(())
    }

    /// Writes what is left, and says what there is, also where something went wrong.
    fn end(mut self, mut result: Result<(), Failure>) -> Result<(), Failure> {
        if result.is_ok() {
            let jobs = self.recorder.finish();
            result = self.write(&jobs).and_then(|()| Ok(self.sheet.as_ref().map_or(Ok(()), Sheet::sync)?));
        }
        if self.sheet.is_some() {
            self.recorder.summary.unseen = self.onlooker.unseen;
            // A reader that went away changes nothing about the end.
            let _ = write!(std::io::stderr(), "{}", self.recorder.summary);
        }
        match result {
            Err(failure) if sheet::is_closed(&failure.error) => Ok(()),
            result => result,
        }
    }
}

/// Reads containers, and remembers where: the newest attempt of each application, and where its master logs.
#[derive(Debug, Default)]
struct Onlooker {
    attempts: BTreeMap<String, (String, Attempt)>,
    /// Failures since one was read.
    failures: u32,
    /// How often containers could not be seen.
    unseen: u64,
}

impl Onlooker {
    /// The containers of an application; none where it has ended meanwhile, or where they cannot be seen.
    async fn see(&mut self, reader: &Reader<'_>, app: &AppRecord) -> Result<Option<Seen>, PortError> {
        if app.state != "RUNNING" && app.state != "ACCEPTED" {
            return Ok(None);
        }
        match self.read(reader, app).await {
            Ok(seen) => {
                self.failures = 0;
                Ok(seen)
            }
            Err(PortError { kind: ErrorKind::NotFound, .. }) => Ok(None),
            // One that cannot be read must not end the look for all others, a ResourceManager that is gone must.
            Err(error) if error.kind != ErrorKind::Denied && self.failures > 0 => Err(error),
            Err(error) => {
                if self.unseen == 0 {
                    tracing::warn!("containers that cannot be seen (said once, counted in the end): {error}");
                }
                self.failures += u32::from(error.kind != ErrorKind::Denied);
                self.unseen += 1;
                Ok(None)
            }
        }
    }

    async fn read(&mut self, reader: &Reader<'_>, app: &AppRecord) -> Result<Option<Seen>, PortError> {
        let known = self.attempts.get(&app.id);
        let known = known.filter(|(log, attempt)| *log == app.master_log && !attempt.master.is_empty());
        let attempt = match known {
            Some((_, attempt)) => Some(attempt.clone()),
            None => reader.attempt(&app.id).await?,
        };
        let Some(attempt) = attempt else { return Ok(None) };
        let containers = reader.containers(&app.id, &attempt.id).await?;
        let master = attempt.master.clone();
        self.attempts.insert(app.id.clone(), (app.master_log.clone(), attempt));
        Ok(Some(Seen { master, containers }))
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn ms_before(at: DateTime<Utc>, duration: Duration) -> i64 {
    at.timestamp_millis().saturating_sub(ms(duration))
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3600);
    if allowed.contains(&interval) { Ok(interval) } else { Err("must be between 1s and 1h".into()) }
}
