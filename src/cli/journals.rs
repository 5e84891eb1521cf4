//! Who is told of a tick: the log, the decision log, the autoscaler log, the live display, and systemd's watchdog. None of them can stop
//! the loop.

use std::{io::Stdout, path::PathBuf};

use anyhow::Context;
use sd_notify::NotifyState;

use super::live::Live;
use crate::{
    model::Reason,
    ports::{Journal, Tick},
    store::{
        AutoscalerLog,
        autoscaler_log::ClusterLabels,
        decision_log::{DecisionLog, Headline, Record},
    },
};

/// What `run` writes down of its decisions.
#[derive(Debug, clap::Args)]
#[group(id = "journals")]
pub struct Args {
    /// Appends each decision with its reasons as a JSON line; `explain` reads it
    #[arg(long, value_name = "FILE", env = "YARN_AUTOSCALER_DECISION_LOG")]
    pub decision_log: Option<PathBuf>,
    /// Appends what Dataproc's autoscaler would log, in its own form, a LogEntry as a JSON line
    #[arg(long, value_name = "FILE", env = "YARN_AUTOSCALER_AUTOSCALER_LOG")]
    pub autoscaler_log: Option<PathBuf>,
    /// Show the loop live in this terminal, on stdout
    #[arg(long)]
    pub live: bool,
}

/// All of them.
#[derive(Debug)]
pub struct Journals {
    decisions: Option<DecisionLog>,
    autoscaler_log: Option<AutoscalerLog>,
    live: Option<Live<Stdout>>,
    /// What was logged last: a line a tick would drown the news.
    told: Option<Headline>,
    /// The notes that were logged last.
    noted: Vec<String>,
    ready: bool,
}

impl Journals {
    /// Opens what is asked for; `labels` say which cluster it is of.
    ///
    /// # Errors
    /// A log cannot be opened.
    pub fn open(args: &Args, labels: ClusterLabels) -> anyhow::Result<Self> {
        let decisions = args.decision_log.as_ref().map(|path| {
            DecisionLog::open(path).with_context(|| format!("cannot open the decision log {}", path.display()))
        });
        let autoscaler_log = args.autoscaler_log.as_ref().map(|path| {
            AutoscalerLog::open(path, labels)
                .with_context(|| format!("cannot open the autoscaler log {}", path.display()))
        });
        Ok(Self {
            decisions: decisions.transpose()?,
            autoscaler_log: autoscaler_log.transpose()?,
            live: args.live.then(Live::stdout),
            told: None,
            noted: Vec::new(),
            ready: false,
        })
    }

    fn log(&mut self, tick: &Tick<'_>) {
        for note in tick.notes.iter().filter(|note| !self.noted.contains(note)) {
            tracing::warn!("{note}");
        }
        self.noted = tick.notes.to_vec();
        let headline = Record::of(tick).headline();
        if !tick.decision.actions.is_empty() || self.told.as_ref() != Some(&headline) {
            let reasons: Vec<_> = tick.decision.reasons.iter().map(ToString::to_string).collect();
            let (actions, reasons) = (tick.decision.actions.len(), reasons.join("; "));
            if tick.decision.reasons.iter().any(Reason::is_alarm) {
                tracing::error!(actions, "{reasons}");
            } else {
                tracing::info!(actions, "{reasons}");
            }
        }
        self.told = Some(headline);
    }

    fn tell_systemd(&mut self, tick: &Tick<'_>) {
        let headline = tick.decision.reasons.first().map(ToString::to_string).unwrap_or_default();
        let mut states = vec![NotifyState::Watchdog, NotifyState::Status(&headline)];
        if !self.ready {
            states.push(NotifyState::Ready);
        }
        self.ready = true;
        // Without systemd there is nobody to tell; a socket that fails is systemd's to notice.
        let _ = sd_notify::notify(&states);
    }
}

impl Journal for Journals {
    fn tick(&mut self, tick: &Tick<'_>) {
        self.log(tick);
        if let Some(decisions) = &mut self.decisions {
            decisions.tick(tick);
        }
        if let Some(log) = &mut self.autoscaler_log {
            log.tick(tick);
        }
        if let Some(live) = &mut self.live {
            live.tick(tick);
        }
        self.tell_systemd(tick);
    }
}
