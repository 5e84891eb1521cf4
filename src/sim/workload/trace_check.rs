//! A trace of a workload, from as written to as meant.

use std::time::Duration;

use super::{
    TraceFormat, TraceSource,
    check::{Surroundings, container, fits_somewhere, on_loss, queue, room, time},
    spec::TraceSpec,
};
use crate::{
    model::Resources,
    policy::{checker::Checker, field::Field, spans::Path},
    sim::ms,
};

/// A trace: which file, how it is read, what its jobs are like.
pub fn trace(c: &mut Checker<'_>, path: &Path, spec: &TraceSpec, around: &Surroundings<'_>) -> Option<TraceSource> {
    let format = c.require(&path.key("format"), &spec.format);
    let file = c.require(&path.key("file"), &spec.file);
    let cluster = c.read(&path.key("cluster"), &spec.cluster);
    let skip = time(c, &path.key("skip"), &spec.skip, Duration::ZERO);
    let queue = queue(c, &path.key("queue"), &spec.queue, around);
    let on_loss = on_loss(c, &path.key("onLoss"), &spec.on_loss);
    let written = container(c, &path.key("container"), &spec.container);
    let format = format?;
    let mut takes_no = |name: &str, is_written: bool| {
        if is_written {
            let message = format!("`{}` has no meaning in a trace of this format", path.key(name));
            c.error("not-of-this-kind", &path.key(name), message, |error| error.help("remove it"));
        }
    };
    takes_no("cluster", format != TraceFormat::Philly && cluster.is_some());
    takes_no("container", format == TraceFormat::Rows && written.is_some());
    takes_no("queue", format == TraceFormat::Rows && !matches!(spec.queue, Field::Absent));
    let container = match &spec.container {
        Field::Absent => usual_container(format, around.primary?),
        _ => written?,
    };
    let asks = match format {
        TraceFormat::Philly => Resources { gpus: 1, ..container },
        TraceFormat::Gaia | TraceFormat::Swim | TraceFormat::Rows => container,
    };
    if format != TraceFormat::Rows && !fits_somewhere(asks, around) {
        let message = format!("no worker has room for a container of `{path}`: its jobs would wait for ever");
        c.warn("never-fits", &path.key("file"), message, |warning| warning.help(room(asks, around)));
    }
    Some(TraceSource {
        format,
        file: file?,
        cluster,
        skip_ms: ms(skip?),
        queue: queue?,
        container: asks,
        on_loss: on_loss?,
    })
}

/// The size of a container that a trace does not know: of one GPU, of one core, of one map or reduce.
fn usual_container(format: TraceFormat, worker: Resources) -> Resources {
    let share = |n: u64| Resources::new(worker.memory_mb / n.max(1), (worker.vcores / n.max(1)).max(1), 0);
    match format {
        TraceFormat::Philly => share(worker.gpus),
        TraceFormat::Gaia => share(worker.vcores),
        // Hadoop's defaults: `mapreduce.{map,reduce}.memory.mb` and `.cpu.vcores`.
        TraceFormat::Swim | TraceFormat::Rows => Resources::new(1024, 1, 0),
    }
}
