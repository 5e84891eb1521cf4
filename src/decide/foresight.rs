//! How many of the looks to come would say what this one has said: a simulator need not make them.

use chrono::{DateTime, TimeDelta, Utc};

use super::{Standing, Survey, basic, gates, keep_samples, leave, scale};
use crate::{
    model::{Decision, DrainPhase, Resources, Situation, Window},
    policy::{MetricType, Policy},
};

/// What can be told of the looks after one, as long as YARN, the provider and the policy have nothing new to say.
#[derive(Clone, Copy, Debug)]
pub struct Foresight<'a> {
    /// The policy in force.
    pub policy: &'a Policy,
    /// All that the decision saw. The next look finds the same state.
    pub situation: &'a Situation,
    /// Its survey, which still holds.
    pub survey: &'a Survey,
    /// What was decided.
    pub decision: &'a Decision,
    /// When the loop itself does something else; `None`: at no time.
    pub until: Option<DateTime<Utc>>,
}

/// All that a decision takes from the history, but for averages that it only tells.
#[derive(PartialEq, Eq)]
struct Mood {
    /// What is pending, confirmed.
    confirmed: Resources,
    /// The metric that asks for most workers, how many, and whether anything was pending.
    estimate: Option<(MetricType, u32, bool)>,
}

impl Foresight<'_> {
    /// How many of the next looks, `most` at most, order nothing, for reasons of the same kinds: only averages in them
    /// may differ. Looks are as far apart as the decision says. There may be more of them than are found.
    ///
    /// Such a look differs from this one in the time of day and in the history alone. Of the time, no instant on which
    /// a decision depends is passed (see `dates`; whoever makes a decision depend on another one adds it there). Of the
    /// history, all comes out the same that decides anything (see `Mood`).
    pub fn looks_alike(&self, most: u64) -> u64 {
        let pace = self.decision.next_at - self.situation.now;
        if most == 0 || pace <= TimeDelta::zero() || !self.decision.actions.is_empty() {
            return 0;
        }
        let Some(fills) = self.fills() else { return 0 };
        let now = self.situation.now;
        let next = self.dates().chain(fills.into_iter().flatten()).filter(|date| *date > now).min();
        let most = next.map_or(most, |next| most.min(looks_before(next - now, pace)));
        if most == 0 { 0 } else { self.looks_in_the_same_mood(most, pace) }
    }

    /// Each instant at which a decision may turn, except for those that the window of the history has.
    fn dates(&self) -> impl Iterator<Item = DateTime<Utc>> {
        let (situation, state) = (self.situation, &self.situation.state);
        let of_state = [
            state.cooldown_from().map(|from| from + self.policy.basic().cooldown_period),
            state.last_operation_ended_at.map(|ended| ended + scale::LIST_LAG),
            state.provider_retry_at,
            gates::restart_over(situation),
            self.survey.holds_until(),
            self.until,
        ];
        let of_drains = state.drains.values().flat_map(|drain| match drain.phase {
            DrainPhase::Cordoned { seen_at } => [seen_at.map(|seen| seen + leave::SETTLE), None],
            // Right after it began is not the same as just when it began.
            DrainPhase::Decommissioning { since, deadline, .. } => {
                [Some(since + TimeDelta::nanoseconds(1)), Some(deadline + leave::FORCE_AFTER)]
            }
            DrainPhase::Decommissioned { .. } => [None, None],
        });
        let some_not_ready =
            [Standing::NotReady, Standing::Leaving].into_iter().any(|standing| self.survey.count_of(standing) > 0);
        let records = some_not_ready.then(|| state.workers.values()).into_iter().flatten();
        let since = records.flat_map(|record| [record.not_ready_since, record.unlisted_since]);
        let of_workers = since.map(|since| since.map(|since| since + situation.ready_deadline));
        of_state.into_iter().chain(of_drains).chain(of_workers).flatten()
    }

    /// When the window may be full, where it is not yet: one that is full stays so while looks go on. `None` where that
    /// is not known.
    fn fills(&self) -> Option<[Option<DateTime<Utc>>; 2]> {
        let (policy, situation) = (self.policy, self.situation);
        if scale::window_is_full(policy, situation, scale::window_from(policy, situation)) {
            return Some([None, None]);
        }
        let cooldown = policy.basic().cooldown_period;
        let begun = scale::period_begun(situation).map(|begun| begun + cooldown);
        let oldest = situation.history.oldest().map(|oldest| oldest.at + cooldown);
        let reached = oldest.map(|reached| reached - scale::tolerated(situation.poll_interval));
        let is_ahead = |date: &DateTime<Utc>| *date > situation.now;
        let ahead = [begun.filter(is_ahead), reached.filter(is_ahead)];
        (ahead != [None, None]).then_some(ahead)
    }

    /// How many looks pass until the history has another say.
    fn looks_in_the_same_mood(&self, most: u64, pace: TimeDelta) -> u64 {
        let (policy, situation, history) = (self.policy, self.situation, &self.situation.history);
        let keep = keep_samples(policy, situation.poll_interval);
        let as_shown = history.latest() == Some(&self.survey.sample(situation.now)) && history.is_confirmed();
        let pace = pace.to_std().ok().filter(|_| as_shown);
        let (window, begun) = (policy.basic().cooldown_period, scale::period_begun(situation));
        let Some(mut ahead) = pace.and_then(|pace| history.ahead(pace, keep, window, begun)) else { return 0 };
        let mood = self.mood(&history.window(scale::window_from(policy, situation)));
        for look in 1..=most {
            if ahead.look().is_none_or(|window| self.mood(&window) != mood) {
                return look - 1;
            }
            if ahead.is_steady() {
                return most;
            }
        }
        most
    }

    fn mood(&self, window: &Window) -> Mood {
        let per_worker = self.survey.per_worker();
        let estimate = per_worker.and_then(|per_worker| basic::estimate(self.policy.basic(), window, per_worker));
        let asks = estimate.map(|estimate| (estimate.metric, estimate.workers, estimate.pending > 0));
        Mood { confirmed: window.latest, estimate: asks }
    }
}

/// How many looks there are at this pace that come before so much time has passed.
fn looks_before(time: TimeDelta, pace: TimeDelta) -> u64 {
    let nanos = |time: TimeDelta| time.to_std().map_or(0, |time| time.as_nanos());
    u64::try_from(nanos(time).saturating_sub(1) / nanos(pace).max(1)).unwrap_or(u64::MAX)
}
