//! Traces: what a row becomes, what is said of bad ones, and when a file is refused. All rows are made up.

use std::collections::BTreeMap;

use yarn_autoscaler::{
    model::Resources,
    sim::{
        scenario::Scenario,
        workload::{self, Job, OnLoss, TraceError, TraceNote, Work, philly},
    },
};

use crate::scenario::valid;

const FILE: &str = "trace.csv";

/// A scenario whose only load is this trace of the file.
fn scenario(trace: &str, more: &str) -> Scenario {
    valid(&format!(
        "cloud: {{primary: {{worker: {{memoryMb: 98304, vcores: 32, gpus: 4}}}}}}\n\
         workload: {{traces: [{{file: {FILE}, {trace}}}]}}\n{more}"
    ))
}

fn build(trace: &str, more: &str, text: &str) -> Result<(Vec<Job>, TraceNote), TraceError> {
    let Scenario { workload, cluster, start, duration, .. } = scenario(trace, more);
    let texts = BTreeMap::from([(FILE.to_string(), text.to_string())]);
    let end = duration.map(|end| u64::try_from(end.as_millis()).unwrap());
    let (built, mut notes) = workload::build(&workload, &cluster.queues, start, 1, end, &texts)?;
    Ok((built.jobs, notes.pop().unwrap()))
}

fn read(trace: &str, text: &str) -> (Vec<Job>, TraceNote) {
    build(trace, "", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Name, submission and length in seconds, containers of the first group, its size.
fn gang(job: &Job) -> (String, f64, f64, u32, Resources) {
    let Work::Gang { groups, duration_ms } = &job.work else { panic!("{job:?}") };
    let [submit, length] = [job.submit_ms, *duration_ms].map(|ms| ms as f64 / 1000.0);
    (job.name.to_string(), submit, length, groups[0].containers, groups[0].resources)
}

const PHILLY: &str = "timestamp,duration,num_gpus,gpu_time,cluster\n\
                      2020-02-28 23:59:50,60.5,2,121.0,vc1\n\
                      2020-02-29 00:00:00,30,1,30,vc2\n\
                      2020-02-28 23:59:00,100,8,800,vc1\n\
                      2020-03-01 00:00:00,10,0,0,vc1\n\
                      2020-03-01 00:00:00,0,4,0,vc1\n\
                      2020-03-01 00:00:01,7,4,28,vc1\n";

#[test]
fn a_philly_row_is_a_gang_of_gpus() {
    let (jobs, note) = read("format: PHILLY, cluster: vc1", PHILLY);
    let share = Resources::new(24_576, 8, 1);
    // By time, from the first one; a leap day is a day; named after their lines.
    let rows = [
        ("vc1-4".into(), 0.0, 100.0, 8, share),
        ("vc1-2".into(), 50.0, 60.5, 2, share),
        ("vc1-7".into(), 60.0 + 86_400.0 + 1.0, 7.0, 4, share),
    ];
    assert_eq!(jobs.iter().map(gang).collect::<Vec<_>>(), rows);
    assert!(jobs.iter().all(|job| job.master.is_none() && job.is_gang() && &*job.queue == "default"));
    assert_eq!(
        note.to_string(),
        "trace.csv: 3 jobs; 1 left out that asked for no GPU; 1 left out that worked for no time"
    );
}

#[test]
fn a_virtual_cluster_is_chosen_by_name() {
    let clusters = philly::clusters(FILE, PHILLY).unwrap();
    assert_eq!(clusters.into_iter().collect::<Vec<_>>(), [("vc1".into(), 5), ("vc2".into(), 1)]);
    assert_eq!(read("format: PHILLY, cluster: vc2", PHILLY).0.len(), 1);
    let error = |trace: &str| build(trace, "", PHILLY).unwrap_err().to_string();
    assert_eq!(
        error("format: PHILLY, cluster: cv1"),
        "trace.csv: there is no virtual cluster `cv1`, did you mean `vc1`?; choose one with `cluster`: vc1 (5 rows), vc2 (1 rows)"
    );
    assert!(error("format: PHILLY").contains("there are several virtual clusters"));
    // The only one needs no choice.
    let (jobs, _) = read("format: PHILLY", "cluster,num_gpus,duration,timestamp\r\nx,1,5,2020-01-01 00:00:00\r\n");
    assert_eq!(jobs.len(), 1);
}

#[test]
fn a_part_of_a_trace_can_be_played() {
    let (jobs, note) = build(
        "format: PHILLY, cluster: vc1, skip: 50s, queue: b",
        "duration: 1h\ncluster: {queues: [{name: a}, {name: b}]}\n",
        PHILLY,
    )
    .unwrap();
    assert_eq!(jobs.iter().map(gang).map(|row| (row.0, row.1)).collect::<Vec<_>>(), [("vc1-2".into(), 0.0)]);
    assert_eq!(&*jobs[0].queue, "b");
    let left_out: Vec<_> = note.left_out.iter().map(|(count, why)| (*count, why.as_str())).collect();
    assert!(left_out.contains(&(1, "came before the part that is played")), "{left_out:?}");
    assert!(left_out.contains(&(1, "would come after the end of the scenario")), "{left_out:?}");
}

#[test]
fn a_gaia_row_is_a_gang_of_cores() {
    let text = "arrival_time,length,cpus\n10.0,60.0,2\n12.5,5,15.5\n13,0,1\n14,5,0\n";
    let (jobs, note) = read("format: GAIA, onLoss: CONTINUE", text);
    let core = Resources::new(3072, 1, 0);
    let rows = [("pai-2".into(), 0.0, 60.0, 2, core), ("pai-3".into(), 2.5, 5.0, 16, core)];
    assert_eq!(jobs.iter().map(gang).collect::<Vec<_>>(), rows);
    assert_eq!(jobs[0].on_loss, OnLoss::Continue);
    assert_eq!((note.left_out.len(), note.changed.len()), (2, 1));
}

#[test]
fn swims_bytes_become_tasks_by_the_stated_rule() {
    let mb = 1_048_576_u64;
    let rows = [
        // 1000 MB read: 8 maps; 2049 MB shuffled: 3 reduces.
        format!("j0\t5\t5\t{}\t{}\t{}", 1000 * mb, 2049 * mb, 300 * mb),
        // No shuffle: maps only, which write.
        format!("j1\t6\t1\t{}\t0\t{}", 256 * mb, 30 * mb),
        // Nothing at all: one map.
        "j2\t8\t2\t0\t0\t0".into(),
    ];
    let (jobs, _) = read("format: SWIM", &rows.join("\n"));
    let stages = |job: &Job| {
        let Work::Stages(stages) = &job.work else { panic!("{job:?}") };
        stages.iter().map(|stage| (stage.name.to_string(), stage.tasks, stage.task_ms)).collect::<Vec<_>>()
    };
    // 125 MB at 20 MB/s, 256.125 MB at 20 MB/s and 2 s; 683 MB at 15 MB/s, 100 MB at 7.5 MB/s and 2 s.
    assert_eq!(stages(&jobs[0]), [("map".into(), 8, 21_056), ("reduce".into(), 3, 60_867)]);
    assert_eq!(stages(&jobs[1]), [("map".into(), 2, 10_400)]);
    assert_eq!(stages(&jobs[2]), [("map".into(), 1, 2_000)]);
    assert_eq!(jobs.iter().map(|job| job.submit_ms).collect::<Vec<_>>(), [0, 1000, 3000]);
    assert_eq!(jobs[0].master, Some(Resources::new(1536, 1, 0)));
    // A petabyte has larger tasks, not ten million of them.
    let (jobs, note) = read("format: SWIM", "j\t0\t0\t1e15\t0\t0\n");
    assert_eq!(stages(&jobs[0])[0].1, 100_000);
    assert_eq!(note.changed.len(), 1);
}

const HEADER: &str = "job,submit_s,type,queue,group,containers,memory_mb,vcores,gpus,duration_s,shape\n";

#[test]
fn our_own_rows_say_it_all() {
    let text = format!(
        "{HEADER}a,100.5,TONY,default,master,1,2048,1,0,0,GANG\na,100.5,TONY,default,worker,2,4096,1,1,240,GANG\n\
         a,100.5,TONY,default,ps,1,2048,1,0,200,GANG\nb,90,MAPREDUCE,root.old,map,40,1024,1,0,60,TASKS\n\
         b,90,MAPREDUCE,root.old,reduce,4,2048,1,0,30,TASKS\n\"c, d\",95,SPARK,root.default,x,1,512,1,0,0,TASKS\n"
    );
    let (jobs, note) = read("format: ROWS", &text);
    assert_eq!(jobs.iter().map(|job| (&*job.name, job.submit_ms)).collect::<Vec<_>>(), [("b", 0), ("a", 10_500)]);
    assert_eq!(gang(&jobs[1]).2, 240.0);
    assert_eq!((jobs[1].master, jobs[0].master), (Some(Resources::new(2048, 1, 0)), None));
    assert_eq!((jobs[1].full_size(), &*jobs[1].application_type), (Resources::new(10_240, 3, 2), "TONY"));
    let Work::Stages(stages) = &jobs[0].work else { panic!() };
    assert_eq!((stages[1].tasks, stages[1].task_ms, stages[1].starts_after), (4, 30_000, 1.0));
    assert_eq!(
        note.to_string(),
        "trace.csv: 2 jobs; 1 left out that worked for no time; \
         1 jobs of queues that the scenario does not have are in `default`"
    );
}

/// Good rows enough that some bad ones are not too many.
fn rows(good: usize, bad: &str) -> String {
    let good = (0..good).map(|n| format!("j{n},{n},TONY,default,worker,1,512,1,0,9,GANG\n"));
    format!("{HEADER}{}{bad}", good.collect::<String>())
}

#[test]
fn bad_rows_are_named_counted_and_left_out() {
    let bad = "x1,soon,TONY,default,worker,1,512,1,0,9,GANG\nx2,1,TONY,default,worker,1.5,512,1,0,9,GANG\n\
               x3,1,TONY,default,worker,1,512,1,0,9,GNAG\nx4,1,TONY,default,worker,1,512,1,0\n\
               x5,-1,TONY,default,worker,1,512,1,0,9,GANG\nx6,1,TONY,default,worker,1,many,1,0,9,GANG\n\
               j0,0,TONY,default,worker,1,512,1,0,9,GANG\nx7,1,TONY,default,a,1,512,1,0,9,GANG\n\
               x7,2,TONY,default,b,1,512,1,0,9,GANG\n,1,TONY,default,a,1,512,1,0,9,GANG\n\
               x8,NaN,TONY,default,a,1,512,1,0,9,GANG\nx9,1,TONY,default,a,1,512,1,-1,9,GANG\n";
    let (jobs, note) = read("format: ROWS", &rows(2000, bad));
    assert_eq!(jobs.len(), 2000);
    assert_eq!(note.bad, 11);
    insta::assert_snapshot!(format!("{note}\n{}", note.bad_rows.join("\n")));
}

#[test]
fn too_many_bad_rows_are_an_error() {
    let bad = |n: usize| "x,soon,T,q,g,1,1,1,0,9,GANG\n".repeat(n);
    let error = |text: &str| build("format: ROWS", "", text).unwrap_err().to_string();
    assert_eq!(read("format: ROWS", &rows(99, &bad(1))).1.bad, 1);
    assert!(error(&rows(98, &bad(1))).starts_with("trace.csv: 1 of 99 rows are bad, more than one in a hundred:\n"));
    assert!(error(&rows(0, &bad(1))).starts_with("trace.csv: 1 of 1 rows are bad"));
    assert_eq!(error(HEADER), "trace.csv has no rows");
    assert_eq!(error(""), format!("trace.csv: the first line must name the fields {}, found ``", HEADER.trim()));
    // A quote that is not closed takes the rest of the file: its lines are bad rows.
    let swallowed = rows(200, "\"x,1,T,q,g,1,1,1,0,9,GANG\n") + &rows(20, "")[HEADER.len()..];
    assert!(error(&swallowed).starts_with("trace.csv: 21 of 221 rows are bad"), "{}", error(&swallowed));
    let Scenario { workload, cluster, start, .. } = scenario("format: ROWS", "");
    let unread = workload::build(&workload, &cluster.queues, start, 1, None, &BTreeMap::new()).unwrap_err();
    assert_eq!(unread.to_string(), "trace.csv has not been read");
}
