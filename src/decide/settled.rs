//! Whether a decision stays as it is for as long as nothing new is seen: then there is no need to look on.

use chrono::{DateTime, Utc};

use super::{Standing, Survey, decide_on, gates, scale};
use crate::{
    model::{Decision, Situation},
    policy::Policy,
};

/// The instant before which every later tick decides the same as this one, for the same reasons, as long as observation,
/// capacity and policy stay the same and ticks go on at the pace of before: often the end of time. `None`: the next one
/// may decide otherwise.
///
/// Each instant that a decision depends on must have passed, or is the one that is returned. Whoever makes a decision
/// depend on another instant adds it here. They are:
///
/// * in the state: the end of the last scaling or operation (cooldown, and how long the provider's list may lag), since
///   when another ResourceManager answers (the hold, and where the window begins), the provider's wait, the dates of
///   operations, and those of drains, of which those that wait for YARN have one: when YARN is told again;
/// * of workers: when one that boots becomes late, when one that is not ready is replaced. The dates of one that is
///   ready are not looked at;
/// * in the history: which samples lie in the window, whether they confirm each other and fill it. Where all that are
///   kept are alike and fill it, so do and are all later ones;
/// * what a decision does: actions change the state;
/// * what a second look confirms: that a worker that was there is there no more.
pub fn settled_until(policy: &Policy, situation: &Situation) -> Option<DateTime<Utc>> {
    let survey = Survey::of(policy, situation)?;
    // What may go on for long is asked before what has to be worked out.
    rests(policy, situation, &survey)?;
    settled_until_on(policy, situation, &survey, &decide_on(policy, situation, &survey))
}

/// The same, of a situation of which this is a survey that still holds and in which this was decided.
pub fn settled_until_on(
    policy: &Policy,
    situation: &Situation,
    survey: &Survey,
    decision: &Decision,
) -> Option<DateTime<Utc>> {
    if decision.actions.is_empty() { rests(policy, situation, survey) } else { None }
}

fn rests(policy: &Policy, situation: &Situation, survey: &Survey) -> Option<DateTime<Utc>> {
    let (now, state, history) = (situation.now, &situation.state, &situation.history);
    let count = |standing| survey.count_of(standing) as usize;
    // The cheap ones first: most ticks that are not settled are not by these.
    let rests = history.is_uniform()
        && state.operations.is_empty()
        && count(Standing::Booting) == 0
        && count(Standing::NotReady) == 0
        && count(Standing::Leaving) == state.drains.len()
        && survey.drains_wait(now)
        && state.provider_retry_at.is_none_or(|until| until <= now)
        && state.last_operation_ended_at.is_none_or(|ended| ended + scale::LIST_LAG <= now)
        && gates::restart_over(situation).is_none_or(|over| over <= now)
        && scale::window_is_full(policy, situation, scale::window_from(policy, situation))
        && history.is_confirmed()
        && history.latest() == Some(&survey.sample(now))
        && survey.remembers_what_is_there();
    if rests { survey.drains_wait_until() } else { None }
}
