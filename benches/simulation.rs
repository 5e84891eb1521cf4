//! How long simulated time takes: an idle year, a quarter of a large GPU cluster, a year of 100,000 jobs, and a sweep on
//! one core and on all. `cargo bench --bench simulation`. YARN is looked at every 30 s. Budgets (release, one core):
//! 0.5 s, 0.3 s and 2 s.

use std::{hint::black_box, sync::Arc, thread, time::Duration};

use criterion::{Criterion, criterion_group, criterion_main};
use yarn_autoscaler::{
    policy::{self, LoadOptions, Policy},
    sim::{
        Unwatched,
        run::{Run, run, run_every_look},
        scenario,
        workload::build,
    },
};

const POLICY: &str = "{id: bench, workerConfig: {minInstances: 2, maxInstances: 40}, basicAlgorithm: {cooldownPeriod: 2m, \
                      yarnConfig: {scaleUpFactor: 1.0, scaleDownFactor: 1.0, gracefulDecommissionTimeout: 1d}}}";

fn policy() -> Policy {
    policy::load(POLICY, &LoadOptions::default()).unwrap_or_else(|errors| panic!("{errors:?}")).policy
}

/// Four-GPU workers that boot in five minutes, and this load.
fn plan(name: &str, rest: &str) -> Run {
    let text = format!(
        "name: {name}\npollInterval: 60s\ncloud: {{primary: {{worker: {{memoryMb: 65536, vcores: 32, gpus: 4}}, initial: 2, \
         bootTime: 5m}}}}\n{rest}"
    );
    let (scenario, _) = scenario::load(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
    let built = build(&scenario.workload, &scenario.cluster.queues, scenario.start, 1, None, &Default::default());
    let (workload, _) = built.unwrap_or_else(|error| panic!("{error}"));
    let (scenario, workload) = (Arc::new(scenario), Arc::new(workload));
    Run { scenario, workload, policy: policy(), policy_name: "bench".into(), seed: 1 }
}

/// Jobs of one GPU and more.
fn jobs(days: u32, per_day: f64, duration: &str, burst: u32) -> String {
    format!(
        "workload: {{generate: [{{name: j, type: TONY, until: {days}d, jobsPerDay: {per_day}, burst: {burst}, burstSpread: 10m, \
         duration: {duration}, sizes: {{1: 0.9, 2: 0.08, 8: 0.02}}, gang: {{groups: [{{name: worker, containers: 1, \
         memoryMb: 8192, vcores: 4, gpus: 1}}]}}}}]}}"
    )
}

fn simulation(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulation");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(5));
    let one_job = "workload: {jobs: [{name: j, type: TONY, gang: {duration: 1s, groups: [{name: worker, containers: 1, \
                   memoryMb: 1024, vcores: 1}]}}]}";
    let idle = plan("idle", &format!("duration: 365d\n{one_job}"));
    group.bench_function("idle year", |b| b.iter(|| black_box(run(&idle, &mut Unwatched))));
    group.bench_function("idle year, every look made", |b| b.iter(|| black_box(run_every_look(&idle, &mut Unwatched))));
    // As many jobs as the largest virtual cluster of the Philly trace has, in as many days, as short, in bursts.
    let quarter = plan("quarter", &jobs(90, 180.0, "{median: 70s, p95: 3h}", 12));
    group.bench_function("16,000 jobs in 90 days", |b| b.iter(|| black_box(run(&quarter, &mut Unwatched))));
    let year = plan("year", &jobs(365, 274.0, "{exponential: 20m}", 1));
    group.bench_function("100,000 jobs in a year", |b| b.iter(|| black_box(run(&year, &mut Unwatched))));
    let cores = thread::available_parallelism().map_or(1, usize::from);
    group.bench_function("a sweep of 8 seeds, one core", |b| b.iter(|| sweep(&quarter, 1)));
    group.bench_function(format!("a sweep of 8 seeds, {cores} cores"), |b| b.iter(|| sweep(&quarter, cores)));
    group.finish();
}

fn sweep(of: &Run, threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let runs = || {
        use rayon::prelude::*;
        (0..8_u64)
            .into_par_iter()
            .map(|seed| run(&Run { seed, ..of.clone() }, &mut Unwatched).counts.looks)
            .sum::<u64>()
    };
    black_box(pool.map_or(0, |pool| pool.install(runs)));
}

criterion_group!(benches, simulation);
criterion_main!(benches);
