//! `simulate`: a scenario or a trace through the daemon's own loop, under one policy or several; what came of it as a
//! table, as data, as a page.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, anyhow};

use super::{
    connect::Failure,
    exit, sim_faults,
    sim_input::{self, NamedPolicy, TraceKind},
    sim_report::{self, Drawn, Origin},
    sim_runs::{self, Ran},
    terminal,
};
use crate::{
    model::GroupName,
    policy::duration,
    report::{self, Figures},
    sim::{
        run::Run,
        scenario::{Delay, Expectation, Scenario},
        workload::Workload,
    },
};

/// Most expectations that were not met which are told one by one.
const FAILURES_SHOWN: usize = 20;

/// A scenario or a trace through the daemon's own loop.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The scenario file
    #[arg(value_name = "SCENARIO", required_unless_present_any = ["trace", "faults"], conflicts_with = "trace")]
    pub scenario: Option<PathBuf>,
    /// A policy to try; several are held side by side [default: the one that the scenario names]
    #[arg(long, value_name = "FILE", conflicts_with = "faults")]
    pub policy: Vec<PathBuf>,
    /// A trace instead of a scenario: Philly or GAIA CSV, SWIM TSV, or what `record` wrote
    #[arg(long, value_name = "FILE", requires = "policy", help_heading = "Trace")]
    pub trace: Option<PathBuf>,
    /// How the trace is written [default: known by its first line]
    #[arg(long, value_enum, requires = "trace", help_heading = "Trace")]
    pub trace_format: Option<TraceKind>,
    /// The virtual cluster of a Philly trace, or `each` for one after the other
    #[arg(long, value_name = "NAME", requires = "trace", help_heading = "Trace")]
    pub trace_cluster: Option<String>,
    /// The cluster, instead of what the scenario says.
    #[command(flatten)]
    pub shape: Shape,
    /// Where all chance begins [default: the scenario's, or 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Run so many times, with as many seeds from the first one on, on all cores; figures are means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub seeds: u64,
    /// Random clusters, loads and faults instead of a scenario, watched for broken promises; a seed that breaks one is
    /// shown with the command that replays it
    #[arg(
        long,
        conflicts_with_all = ["scenario", "trace", "report", "json", "csv", "all", "timings", "Shape"],
        help_heading = "Faults"
    )]
    pub faults: bool,
    /// Threads [default: one a core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Write one self-contained HTML page
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Print all figures with all their digits as one JSON document
    #[arg(long, conflicts_with = "csv", help_heading = "Output")]
    pub json: bool,
    /// Print all figures as CSV, a row for each run
    #[arg(long, help_heading = "Output")]
    pub csv: bool,
    /// Print all figures in the table, not the main ones alone
    #[arg(long, help_heading = "Output")]
    pub all: bool,
    /// Tell on stderr how long each run took, and what it did in that time
    #[arg(long, help_heading = "Output")]
    pub timings: bool,
}

/// Overrides of the cluster's shape.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct Shape {
    /// Memory of a worker for containers, in MB [trace: 65536]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub worker_memory_mb: Option<u32>,
    /// Cores of a worker [trace: 32]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub worker_vcores: Option<u32>,
    /// GPUs of a worker [trace: 4]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub worker_gpus: Option<u32>,
    /// From the order of a worker to its registration with YARN [trace: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    pub boot_time: Option<Duration>,
    /// Workers at the start [default: the scenario's; of a trace the smallest minimum of the policies]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=20_000))]
    pub initial_workers: Option<u32>,
    /// Price of a worker for an hour, in any currency
    #[arg(long, value_name = "PRICE", value_parser = price)]
    pub price_per_hour: Option<f64>,
    /// How often the daemon decides, as `run --poll-interval`; it looks twice in that time [trace: 60s]
    #[arg(long, value_name = "DURATION", value_parser = super::connect::poll_interval)]
    pub poll_interval: Option<Duration>,
    /// How long to simulate [default: until all jobs have ended, and half an hour more]
    #[arg(long, value_name = "DURATION", value_parser = length)]
    pub duration: Option<Duration>,
}

/// As in a scenario file.
fn length(text: &str) -> Result<Duration, String> {
    let length = duration::parse(text)?;
    let allowed = Duration::from_secs(1)..=Duration::from_secs(3650 * 86_400);
    if allowed.contains(&length) { Ok(length) } else { Err("must be between 1s and 3650d".into()) }
}

fn price(text: &str) -> Result<f64, String> {
    let price: f64 = text.parse().map_err(|_| "must be a number")?;
    if (0.0..=1e9).contains(&price) { Ok(price) } else { Err("must be between 0 and 1000000000".into()) }
}

impl Shape {
    /// Writes the overrides into a scenario's first group.
    ///
    /// # Errors
    /// More workers at the start than the cloud's quota allows.
    fn apply(&self, scenario: &mut Scenario) -> Result<(), Failure> {
        if let Some(interval) = self.poll_interval {
            scenario.settings.poll_interval = interval;
        }
        scenario.duration = self.duration.or(scenario.duration);
        let of_cloud = scenario.cloud.quota;
        let Some(group) = scenario.cloud.groups.values_mut().next() else { return Ok(()) };
        let worker = &mut group.worker;
        worker.memory_mb = self.worker_memory_mb.map_or(worker.memory_mb, u64::from);
        worker.vcores = self.worker_vcores.map_or(worker.vcores, u64::from);
        worker.gpus = self.worker_gpus.map_or(worker.gpus, u64::from);
        if let Some(time) = self.boot_time {
            group.boot = Delay::Fixed(time);
        }
        group.initial = self.initial_workers.unwrap_or(group.initial);
        group.price_per_hour = self.price_per_hour.unwrap_or(group.price_per_hour);
        match group.quota.into_iter().chain(of_cloud).min() {
            Some(quota) if group.initial > quota => {
                Err(anyhow!("--initial-workers {}: the scenario's quota is {quota}", group.initial).into())
            }
            _ => Ok(()),
        }
    }
}

/// What is simulated: one cluster with one load.
struct Subject {
    scenario: Scenario,
    /// One for each seed where jobs are drawn, else one for all.
    workloads: Vec<Arc<Workload>>,
}

impl Subject {
    /// What is submitted with the `n`-th seed.
    fn workload(&self, n: u64) -> Arc<Workload> {
        let index = usize::try_from(n).unwrap_or(0) % self.workloads.len().max(1);
        self.workloads.get(index).cloned().unwrap_or_default()
    }
}

/// Simulates.
pub fn run(args: &Args) -> ExitCode {
    exit::of(simulate(args))
}

fn simulate(args: &Args) -> Result<(), Failure> {
    if args.faults {
        return sim_faults::run(args.seed.unwrap_or(1), args.seeds, args.threads);
    }
    let policies = args.policy.iter().map(|file| sim_input::policy(file)).collect::<Result<Vec<_>, _>>()?;
    let policies = told_apart(policies, &args.policy);
    let subjects = subjects(args, &policies)?;
    let policies = if policies.is_empty() { vec![own_policy(args, &subjects)?] } else { policies };
    warn_of_missing_groups(&subjects, &policies);
    refuse_to_overwrite(args)?;
    let runs = runs(args, &subjects, &policies);
    // Of each policy the first seed is drawn.
    let keep = args.report.as_ref().and(usize::try_from(args.seeds).ok());
    let ran = sim_runs::all(&runs, args.threads, keep)?;
    if args.timings {
        sim_runs::tell_timings(&ran, &mut io::stderr())?;
    }
    if args.seeds > 1 && !args.json && !args.csv {
        print_means(args, &ran)?;
    } else {
        let figures: Vec<_> = ran.iter().map(|ran| ran.figures.clone()).collect();
        print(args, &figures, figures.len() / subjects.len().max(1))?;
    }
    if let Some(file) = &args.report {
        write_reports(args, file, &subjects, &ran)?;
    }
    judge(&subjects, &ran)
}

/// Policies of the same name go by their files as well.
fn told_apart(mut policies: Vec<NamedPolicy>, files: &[PathBuf]) -> Vec<NamedPolicy> {
    let names: Vec<_> = policies.iter().map(|policy| policy.name.clone()).collect();
    for (policy, file) in policies.iter_mut().zip(files) {
        if names.iter().filter(|name| **name == policy.name).count() > 1 {
            policy.name = format!("{} ({})", policy.name, file.display());
        }
    }
    policies
}

/// A policy's bounds for a group that the scenario does not have do nothing.
fn warn_of_missing_groups(subjects: &[Subject], policies: &[NamedPolicy]) {
    for subject in subjects {
        for NamedPolicy { name, policy } in policies {
            let missing = GroupName::ALL.into_iter().filter(|group| !subject.scenario.cloud.groups.contains_key(group));
            for group in missing.filter(|group| policy.group(*group).max_instances > 0) {
                tracing::warn!("{name} has {group} workers, {} has none", subject.scenario.name);
            }
        }
    }
}

/// A report never takes the place of a file that it is made of.
fn refuse_to_overwrite(args: &Args) -> Result<(), Failure> {
    let Some(report) = args.report.as_ref().and_then(|report| report.canonicalize().ok()) else { return Ok(()) };
    let inputs = args.scenario.iter().chain(&args.trace).chain(&args.policy);
    match inputs.filter_map(|input| input.canonicalize().ok()).find(|input| *input == report) {
        Some(input) => Err(anyhow!("--report would overwrite {}, which it is made of", input.display()).into()),
        None => Ok(()),
    }
}

/// The clusters with their loads: the scenario, the trace, or each of its virtual clusters.
fn subjects(args: &Args, policies: &[NamedPolicy]) -> Result<Vec<Subject>, Failure> {
    let Some(trace) = &args.trace else {
        let Some(file) = &args.scenario else { return Err(anyhow!("name a scenario file, or a --trace").into()) };
        let mut scenario = sim_input::scenario(file)?;
        args.shape.apply(&mut scenario)?;
        return Ok(vec![subject(args, scenario, &sim_input::home(file))?]);
    };
    let kind = args.trace_format.map_or_else(|| sim_input::trace_kind(trace), Ok)?;
    if args.trace_cluster.is_some() && kind != TraceKind::Philly {
        return Err(anyhow!("--trace-cluster: only Philly traces have virtual clusters").into());
    }
    let clusters = match args.trace_cluster.as_deref() {
        None if kind == TraceKind::Philly && sim_input::clusters(trace)?.len() > 1 => {
            let named = sim_input::clusters(trace)?.join(", ");
            return Err(anyhow!(
                "{} has several virtual clusters: say --trace-cluster each, or one of {named}",
                trace.display()
            )
            .into());
        }
        Some("each") if kind == TraceKind::Philly => sim_input::clusters(trace)?.into_iter().map(Some).collect(),
        chosen => vec![chosen.map(str::to_owned)],
    };
    let of_cluster = |cluster: &Option<String>| {
        let text = trace_scenario(args, trace, kind, cluster.as_deref(), policies);
        let mut scenario = sim_input::of_text("the scenario made of the options", &text)?;
        args.shape.apply(&mut scenario)?;
        subject(args, scenario, Path::new(""))
    };
    clusters.iter().map(of_cluster).collect()
}

fn subject(args: &Args, mut scenario: Scenario, home: &Path) -> Result<Subject, Failure> {
    scenario.seed = args.seed.unwrap_or(scenario.seed);
    let (first, notes) = sim_input::workload(&scenario, home, scenario.seed)?;
    sim_input::tell(&notes, &mut io::stderr())?;
    let mut workloads = vec![Arc::new(first)];
    let is_drawn = !scenario.workload.generators.is_empty();
    for n in 1..if is_drawn { args.seeds } else { 1 } {
        workloads.push(Arc::new(sim_input::workload(&scenario, home, scenario.seed.wrapping_add(n))?.0));
    }
    Ok(Subject { scenario, workloads })
}

/// The scenario file that would do the same as `--trace`: so that there is one way to read it.
fn trace_scenario(
    args: &Args,
    trace: &Path,
    kind: TraceKind,
    cluster: Option<&str>,
    policies: &[NamedPolicy],
) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let stem = trace.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = cluster.map_or_else(|| stem.clone(), |cluster| format!("{stem} {cluster}"));
    let Shape { worker_memory_mb, worker_vcores, worker_gpus, .. } = args.shape;
    // The smallest minimum, so that all policies begin with what they keep.
    let initial = policies.iter().map(|policy| policy.policy.primary.min_instances).min().unwrap_or(0);
    let cluster = cluster.map(|cluster| format!(", cluster: {}", quoted(cluster))).unwrap_or_default();
    format!(
        "name: {}\npollInterval: 60s\ncloud:\n  primary:\n    worker: {{memoryMb: {}, vcores: {}, gpus: {}}}\n    \
         initial: {initial}\n    bootTime: 5m\n    pricePerHour: 1\nworkload:\n  traces:\n    \
         - {{format: {}, file: {}{cluster}}}\n",
        quoted(&name),
        worker_memory_mb.unwrap_or(65_536),
        worker_vcores.unwrap_or(32),
        worker_gpus.unwrap_or(4),
        kind.word(),
        quoted(&trace.display().to_string()),
    )
}

/// The policy that the scenario names.
fn own_policy(args: &Args, subjects: &[Subject]) -> Result<NamedPolicy, Failure> {
    let named = subjects.first().and_then(|subject| subject.scenario.policy.as_deref());
    let (Some(named), Some(file)) = (named, &args.scenario) else {
        return Err(anyhow!("the scenario names no policy: name one with --policy").into());
    };
    sim_input::policy(&sim_input::home(file).join(named))
}

/// One run for each cluster, policy and seed, in this order.
fn runs(args: &Args, subjects: &[Subject], policies: &[NamedPolicy]) -> Vec<Run> {
    let mut runs = Vec::new();
    for subject in subjects {
        let scenario = Arc::new(subject.scenario.clone());
        for NamedPolicy { name, policy } in policies {
            for seed in 0..args.seeds {
                runs.push(Run {
                    scenario: Arc::clone(&scenario),
                    workload: subject.workload(seed),
                    policy: policy.clone(),
                    policy_name: name.clone(),
                    seed: scenario.seed.wrapping_add(seed),
                });
            }
        }
    }
    runs
}

/// `each` runs belong to one cluster.
fn print(args: &Args, figures: &[Figures], each: usize) -> Result<(), Failure> {
    let text = match (args.json, args.csv) {
        (true, _) => report::json(figures).context("figures that are no JSON")?,
        (_, true) => report::csv(figures),
        _ => report::tables(&figures.chunks(each.max(1)).collect::<Vec<_>>(), terminal::columns(), args.all),
    };
    Ok(terminal::tell(&format!("{}\n", text.trim_end()))?)
}

/// One page for all policies on a cluster, the first seed alone; where there are several clusters, a page for each, with
/// its name in the file's.
fn write_reports(args: &Args, file: &Path, subjects: &[Subject], ran: &[Ran]) -> Result<(), Failure> {
    let seeds = usize::try_from(args.seeds).unwrap_or(usize::MAX);
    let each = ran.len() / subjects.len().max(1);
    for (subject, ran) in subjects.iter().zip(ran.chunks(each.max(1))) {
        let file = if subjects.len() > 1 { with_name(file, &subject.scenario.name) } else { file.to_path_buf() };
        let drawn: Vec<_> = ran
            .iter()
            .step_by(seeds)
            .filter_map(|ran| Some(Drawn { outcome: ran.outcome.as_ref()?, figures: &ran.figures }))
            .collect();
        let origin = Origin {
            description: subject.scenario.description.clone(),
            command: command_line(),
            files: args.scenario.iter().chain(&args.trace).chain(&args.policy).cloned().collect(),
        };
        let address = sim_report::write(&file, &drawn, &origin)?;
        let _ = writeln!(io::stderr(), "report: {address}");
    }
    Ok(())
}

/// `out.html` with a name in it: `out-philly-6c71a0.html`.
fn with_name(file: &Path, name: &str) -> PathBuf {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let plain: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let extension = file.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    file.with_file_name(format!("{}-{plain}{extension}", part(file.file_stem())))
}

/// The command as it was given.
fn command_line() -> String {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let words = shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "));
    format!("yarn-autoscaler {words}")
}

/// Means where there are several seeds.
fn print_means(args: &Args, ran: &[Ran]) -> Result<(), Failure> {
    let seeds = usize::try_from(args.seeds).unwrap_or(usize::MAX);
    let policies: Vec<Vec<Figures>> =
        ran.chunks(seeds).map(|runs| runs.iter().map(|ran| ran.figures.clone()).collect()).collect();
    Ok(terminal::tell(&format!("{}\n", report::seeds::table_of_means(&policies)))?)
}

/// Holds what came of it against what the scenario expects; disagreement is exit code 4.
fn judge(subjects: &[Subject], ran: &[Ran]) -> Result<(), Failure> {
    let none: &[Expectation] = &[];
    let mut failures = Vec::new();
    let runs_each = ran.len() / subjects.len().max(1);
    for (index, Ran { figures, .. }) in ran.iter().enumerate() {
        let expected = subjects.get(index / runs_each.max(1)).map_or(none, |subject| &subject.scenario.expect);
        let not_met = report::check_expectations(expected, figures);
        failures.extend(not_met.iter().map(|failure| format!("{}, seed {}: {failure}", figures.policy, figures.seed)));
        failures.extend(figures.violations.iter().map(|broken| format!("{}: BROKEN: {broken}", figures.policy)));
    }
    if failures.is_empty() {
        return Ok(());
    }
    let more = failures.len().saturating_sub(FAILURES_SHOWN);
    failures.truncate(FAILURES_SHOWN);
    if more > 0 {
        failures.push(format!("and {more} more"));
    }
    Err(Failure::new(exit::EXPECTATION_FAILED, anyhow!("not as expected:\n  {}", failures.join("\n  "))))
}
