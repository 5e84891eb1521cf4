//! The conference scene in the simulator: the daemon's own loop over the simulated cluster.

use yarn_autoscaler::sim::{Unwatched, outcome::Outcome, run::run};

use crate::sim_build::{MINUTE, gang, plan, scenario, tony};

pub fn conference() -> Outcome {
    let mut jobs: Vec<_> = (0..10).map(|n| gang(&format!("tensorflow-{n}"), 30_000, 2, 1, 4 * MINUTE)).collect();
    jobs.push(gang("pytorch", 30_000, 2, 0, 4 * MINUTE));
    run(&plan(scenario(), jobs, tony()), &mut Unwatched)
}

#[test]
fn the_conference_scene_grows_to_ten_workers_ends_every_job_and_goes_back_to_two() {
    let outcome = conference();
    assert_eq!(outcome.jobs.iter().filter(|job| job.succeeded).count(), 11, "{outcome:?}");
    assert_eq!(outcome.counts.peak_machines, 10);
    assert_eq!(outcome.counts.killed_by_drain, 0);
    assert_eq!(outcome.steps.last().unwrap().machines.ready, 2);
    for account in outcome.accounts.values() {
        let parts = account.useful + account.lost + account.held + account.boot + account.idle + account.fragmentation;
        assert_eq!(parts, account.billed);
    }
}
