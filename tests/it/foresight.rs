//! Looks that are foreseen to say the same do so: no date is forgotten, and nothing that the history has a say in.

use std::sync::Arc;

use chrono::TimeDelta;
use proptest::{collection::vec, prelude::*, sample::select};
use yarn_autoscaler::{
    decide::{self, Foresight, Survey},
    model::{Decision, History, Reason, Resources, Sample, Situation},
    policy::Policy,
};

use crate::{
    fixtures::{at, noon, secs},
    settled::{at_rest, look, policy, push, situation},
};

/// What the cluster showed before it was as it is: how many looks, what was pending and in use, in MB.
fn past() -> impl Strategy<Value = Vec<(u32, u64, u64)>> {
    let amounts = || select(vec![0_u64, 0, 0, 512, 8192, 40_000]);
    vec((select(vec![1_u32, 2, 5, 20, 60]), amounts(), amounts()), 0..8)
}

/// Looks of the past at this pace, up to the present, which so many looks have shown.
fn has_been(policy: &Policy, situation: &mut Situation, past: &[(u32, u64, u64)], lasted: u32, pace: TimeDelta) {
    let present = decide::sample(policy, situation).expect("both have answered");
    let shown = past.iter().flat_map(|(looks, pending, used)| {
        let pending = Resources::new(*pending, pending / 1024, 0);
        let allocated = Resources::new(*used, used / 1024, 0).min(present.capacity);
        std::iter::repeat_n(Sample { pending, allocated, ..present }, *looks as usize)
    });
    let shown: Vec<_> = shown.chain(std::iter::repeat_n(present, lasted as usize)).collect();
    for (looks_ago, sample) in (1..=i32::try_from(shown.len()).unwrap()).rev().zip(shown) {
        push(policy, situation, Sample { at: noon() - pace * looks_ago, ..sample });
    }
    look(policy, situation);
}

fn codes(decision: &Decision) -> Vec<&'static str> {
    decision.reasons.iter().map(Reason::code).collect()
}

/// How many looks are foreseen to say the same, `most` at most; they do.
fn alike(policy: &Policy, situation: &Situation, most: u64) -> u64 {
    let mut situation = situation.clone();
    let survey = Survey::of(policy, &situation).expect("both have answered");
    let decision = decide::decide(policy, &situation);
    let foresight = Foresight { policy, situation: &situation, survey: &survey, decision: &decision, until: None };
    let alike = foresight.looks_alike(most);
    let pace = decision.next_at - situation.now;
    let (observation, capacity) = (survey.matching().observation(), survey.matching().capacity());
    for number in 1..=alike {
        situation.now += pace;
        look(policy, &mut situation);
        let later = decide::decide(policy, &situation);
        assert!(later.actions.is_empty(), "look {number} of {alike}: {later:?}");
        assert_eq!(codes(&later), codes(&decision), "look {number} of {alike}");
        assert!(survey.still_holds(observation, capacity, &situation.state, situation.now));
    }
    alike
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn looks_that_are_foreseen_say_the_same(
        policy in policy(),
        (mut situation, _) in situation(),
        past in past(),
        lasted in select(vec![0_u32, 1, 2, 3, 10, 50]),
        most in select(vec![1_u64, 7, 100, 500]),
    ) {
        let pace = TimeDelta::from_std(situation.poll_interval)? / 2;
        has_been(&policy, &mut situation, &past, lasted, pace);
        prop_assert!(alike(&policy, &situation, most) <= most);
    }
}

/// One second before `until`, looks are 2.5 s apart.
#[test]
fn a_cooldown_is_foreseen_up_to_its_end() {
    let (policy, mut situation) = at_rest(3600.0);
    Arc::make_mut(&mut situation.state).last_scaling_at = Some(at(-100.0));
    // 20 s are left: the looks after 2.5 s, … 17.5 s.
    assert_eq!(alike(&policy, &situation, 1000), 7);
    assert_eq!(alike(&policy, &situation, 4), 4);
    Arc::make_mut(&mut situation.state).last_scaling_at = Some(at(-3600.0));
    assert_eq!(alike(&policy, &situation, 1000), 1000, "nothing lies ahead");
}

#[test]
fn what_moves_through_the_window_is_foreseen_up_to_the_look_that_says_something_else() {
    let (policy, mut situation) = at_rest(3600.0);
    situation.poll_interval = secs(10);
    situation.history = History::default();
    // From 80 s to 40 s ago something waited, too little for a worker. The window reaches back for 120 s: all of it has
    // left the window after 80 s more, at the seventeenth look.
    has_been(&policy, &mut situation, &[(60, 0, 0), (9, 1, 0)], 7, TimeDelta::seconds(5));
    let now = decide::decide(&policy, &situation);
    assert_eq!(alike(&policy, &situation, 1000), 16, "{:?}", now.reasons);
}
