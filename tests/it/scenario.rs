//! What a scenario file means.

use std::{collections::BTreeMap, fs};

use yarn_autoscaler::sim::{scenario, workload};

#[test]
fn the_conference_is_eleven_jobs() {
    let text = fs::read_to_string("examples/scenarios/conference.yaml").unwrap();
    let (scenario, warnings) = scenario::load(&text).unwrap();
    assert_eq!(warnings, []);
    let queues = &scenario.cluster.queues;
    let texts = BTreeMap::new();
    let built = workload::build(&scenario.workload, queues, scenario.start, scenario.seed, None, &texts);
    let (built, notes) = built.unwrap();
    assert_eq!((built.jobs.len(), notes.len()), (11, 0));
}
