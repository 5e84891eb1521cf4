//! How long one look at a large cluster takes: its JSON into an observation. 1,000 nodes, 10,000 pending containers;
//! the bar is 100 ms.

#![expect(clippy::print_stderr, reason = "the size belongs to the figure")]

#[path = "support/big_cluster.rs"]
mod big_cluster;

use big_cluster::BIG;
use criterion::{Criterion, criterion_group, criterion_main};
use yarn_autoscaler::yarn::{
    observation::{Answers, observation},
    wire,
};

fn reading(criterion: &mut Criterion) {
    let (info, metrics) = (big_cluster::info(), big_cluster::metrics(BIG));
    let (nodes, apps) = (big_cluster::nodes(BIG), big_cluster::apps(BIG));
    eprintln!("{} kB of JSON", (info.len() + metrics.len() + nodes.len() + apps.len()) / 1024);
    criterion.bench_function("read 1,000 nodes and 10,000 pending containers", |bencher| {
        bencher.iter(|| {
            let answers = Answers {
                info: wire::info(info.as_bytes()).expect("info"),
                metrics: wire::metrics(metrics.as_bytes()).expect("metrics"),
                nodes: wire::nodes(nodes.as_bytes()).expect("nodes"),
                applications: wire::applications(apps.as_bytes()).expect("apps"),
                scheduler_pending: None,
            };
            observation(answers).expect("observation")
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = reading
}
criterion_main!(benches);
