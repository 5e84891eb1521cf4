//! The controller's decisions as they come, looks that say the same as one.

use std::{collections::BTreeMap, mem::discriminant};

use super::{Ms, outcome::Told};
use crate::ports::Tick;

/// Most decisions without any order that are kept: the rest is counted by its reasons alone.
const QUIET_MAX: usize = 20_000;

/// What the controller has decided so far.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    told: Vec<Told>,
    latest: Option<Told>,
    quiet: usize,
    left_out: u64,
    reasons: BTreeMap<&'static str, u64>,
    pub(super) looks: u64,
}

impl Decisions {
    /// A look at `now`.
    pub(super) fn add(&mut self, now: Ms, tick: &Tick<'_>) {
        self.looks += 1;
        if let Some(latest) = self.latest.as_mut().filter(|latest| says_the_same(latest, tick)) {
            (latest.to_ms, latest.looks) = (now, latest.looks + 1);
            return;
        }
        self.close_latest();
        self.latest = Some(Told {
            from_ms: now,
            to_ms: now,
            looks: 1,
            actions: tick.decision.actions.clone(),
            reasons: tick.decision.reasons.clone(),
            notes: tick.notes.to_vec(),
            workers: tick.workers,
        });
    }

    /// Whether the latest look ordered nothing and told of nothing.
    pub(super) fn is_quiet(&self) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.actions.is_empty() && latest.notes.is_empty())
    }

    /// So many looks were skipped because each would have said what the last one did.
    pub(super) fn repeat(&mut self, looks: u64, until: Ms) {
        self.looks += looks;
        if let Some(latest) = &mut self.latest {
            (latest.to_ms, latest.looks) = (until, latest.looks + looks);
        }
    }

    fn close_latest(&mut self) {
        let Some(told) = self.latest.take() else { return };
        for reason in &told.reasons {
            *self.reasons.entry(reason.code()).or_insert(0) += told.looks;
        }
        let is_quiet = told.actions.is_empty();
        if is_quiet && self.quiet >= QUIET_MAX {
            self.left_out += 1;
            return;
        }
        self.quiet += usize::from(is_quiet);
        self.told.push(told);
    }

    /// All decisions, how often each reason was given, and how many decisions were left out.
    pub(super) fn close(mut self) -> (Vec<Told>, BTreeMap<&'static str, u64>, u64) {
        self.close_latest();
        (self.told, self.reasons, self.left_out)
    }
}

/// Whether a look orders nothing and gives the same reasons as the one before; their figures move with every look.
fn says_the_same(told: &Told, tick: &Tick<'_>) -> bool {
    let decision = tick.decision;
    told.actions.is_empty()
        && decision.actions.is_empty()
        && told.workers == tick.workers
        && told.notes == tick.notes
        && told.reasons.len() == decision.reasons.len()
        && told.reasons.iter().zip(&decision.reasons).all(|(a, b)| discriminant(a) == discriminant(b))
}
