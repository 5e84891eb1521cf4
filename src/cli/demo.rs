//! `demo`: the conference scene on the embedded cluster, with the daemon's own loop, so fast that a person can follow it
//! in about a minute. No cluster, no cloud, no Java.

use std::{
    io::{self, Stdout},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use super::{
    connect::Failure,
    exit,
    live::Live,
    sim_input::{self, NamedPolicy},
    sim_report::{self, Drawn, Origin},
    terminal,
};
use crate::{
    policy::{self, LoadOptions},
    ports::{Journal, Tick},
    report::{self, Figures},
    sim::{
        Ms, Watch,
        outcome::Outcome,
        run::{Run, run as simulate, run_every_look},
        scenario::Scenario,
    },
};

/// The scene that is played where no other is named, and its policy.
const SCENE: &str = include_str!("../../examples/scenarios/conference.yaml");
const SCENE_POLICY: &str = include_str!("../../policies/autoscale_tony.yaml");

/// The conference scene on an embedded cluster.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Another scenario than the conference scene
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// Another policy than the scenario's
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// How many times faster than the clock; 0: as fast as the machine can
    #[arg(long, value_name = "N", default_value_t = 30.0, value_parser = speed)]
    pub speed: f64,
    /// Where the report goes; one that is there is replaced
    #[arg(long, value_name = "FILE", default_value = "yarn-autoscaler-demo.html")]
    pub report: PathBuf,
}

fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "must be a number")?;
    if speed.is_finite() && speed >= 0.0 { Ok(speed) } else { Err("must be 0 or more".into()) }
}

/// Plays the scene.
pub fn run(args: &Args) -> ExitCode {
    exit::of(play(args))
}

fn play(args: &Args) -> Result<(), Failure> {
    let (scenario, policy) = scene(args)?;
    let home = args.scenario.as_deref().map(sim_input::home).unwrap_or_default();
    let (workload, notes) = sim_input::workload(&scenario, &home, scenario.seed)?;
    sim_input::tell(&notes, &mut io::stderr())?;
    introduce(&scenario, args)?;
    let scene = Run {
        workload: Arc::new(workload),
        policy: policy.policy,
        policy_name: policy.name,
        seed: scenario.seed,
        scenario: Arc::new(scenario),
    };
    let mut show = Show { live: Live::stdout(), speed: args.speed };
    // For those who watch, each look is made, and shown.
    let outcome = if args.speed > 0.0 { run_every_look(&scene, &mut show) } else { simulate(&scene, &mut show) };
    let figures = report::figures(&outcome, &scene.workload);
    let drawn = [Drawn { outcome: &outcome, figures: &figures }];
    let description = scene.scenario.description.clone();
    let files = args.scenario.iter().chain(&args.policy).cloned().collect();
    let address = sim_report::write(&args.report, &drawn, &Origin { description, command: command(args), files })?;
    conclude(&outcome, &figures, &address)?;
    match figures.violations.len() {
        0 => Ok(()),
        broken => Err(Failure::new(exit::EXPECTATION_FAILED, anyhow::anyhow!("{broken} promises were broken"))),
    }
}

fn scene(args: &Args) -> Result<(Scenario, NamedPolicy), Failure> {
    let scenario = match &args.scenario {
        Some(file) => sim_input::scenario(file)?,
        None => sim_input::of_text("the conference scene", SCENE)?,
    };
    let policy = match (&args.policy, &args.scenario, &scenario.policy) {
        (Some(file), ..) => sim_input::policy(file)?,
        (None, Some(file), Some(named)) => sim_input::policy(&sim_input::home(file).join(named))?,
        (None, Some(_), None) => {
            return Err(anyhow::anyhow!("the scenario names no policy: name one with --policy").into());
        }
        (None, None, _) => own_policy()?,
    };
    Ok((scenario, policy))
}

fn own_policy() -> Result<NamedPolicy, Failure> {
    let loaded = policy::load(SCENE_POLICY, &LoadOptions::default());
    let policy = loaded.map_err(|_| anyhow::anyhow!("the policy inside this program is not valid"))?.policy;
    Ok(NamedPolicy { name: policy.id.clone().unwrap_or_default(), policy })
}

fn introduce(scenario: &Scenario, args: &Args) -> io::Result<()> {
    let pace = match args.speed {
        0.0 => "as fast as this machine can".into(),
        speed => format!("{speed} times as fast as the clock"),
    };
    let Scenario { name, description, .. } = scenario;
    terminal::tell(&format!("{name}: {description}\nThe daemon's own loop over a simulated cluster, {pace}.\n\n"))
}

fn conclude(outcome: &Outcome, figures: &Figures, address: &str) -> io::Result<()> {
    let (jobs, counts, minutes) = (&figures.jobs, &figures.counts, outcome.end_ms / 60_000);
    let violations: String = figures.violations.iter().map(|broken| format!("BROKEN: {broken}\n")).collect();
    terminal::tell(&format!(
        "\n{minutes} minutes of the cluster's time: {} of {} jobs succeeded,\nat most {} workers, {} at the end, {} \
         containers killed. Gangs waited {:.0} s on average.\n{violations}The report: {address}\n",
        jobs.succeeded,
        jobs.total,
        counts.peak_workers,
        counts.final_workers,
        counts.containers_killed,
        figures.gang_waiting.mean_s.unwrap_or(0.0),
    ))
}

/// The command that plays the same scene.
fn command(args: &Args) -> String {
    let mut command = "yarn-autoscaler demo".to_owned();
    for (option, file) in [("--scenario", &args.scenario), ("--policy", &args.policy)] {
        if let Some(file) = file {
            command += &format!(" {option} {}", quoted(file));
        }
    }
    command
}

fn quoted(file: &Path) -> String {
    let text = file.display().to_string();
    shlex::try_quote(&text).map_or(text.clone(), std::borrow::Cow::into_owned)
}

/// A live display, and a pace that a person can follow.
struct Show {
    live: Live<Stdout>,
    speed: f64,
}

impl Watch for Show {
    fn tick(&mut self, _: Ms, tick: &Tick<'_>) {
        self.live.tick(tick);
    }

    #[expect(clippy::disallowed_methods, reason = "the scene is slowed down for those who watch; nothing waits for it")]
    fn slept(&mut self, from: Ms, to: Ms) {
        if self.speed > 0.0 {
            std::thread::sleep(Duration::from_secs_f64((to - from) as f64 / 1000.0 / self.speed));
        }
    }
}
