//! The figures of a run against values worked out by hand, their table and machine forms, and what scenarios expect.

use yarn_autoscaler::{
    model::{Action, GroupName, Resources},
    report::{self, Figures, bounds, elasticity, waiting},
    sim::{
        outcome::{Account, Machines, Outcome, Step, Told, Violation},
        scenario::Expectation,
        workload::{Executors, Stage, Work, Workload},
    },
};

use crate::outcomes::{
    CORDONING, HOUR, IDLING, MINUTE, SECOND, SLICE, WORKER, gang, job_outcome, nasty, outcome, play, step,
};

fn figures_of(outcome: &Outcome) -> Figures {
    report::figures(outcome, &Workload::default())
}

#[test]
fn waits_are_counted_and_ranked() {
    let mut out = outcome("p");
    // 100 jobs of one GPU wait 1 to 100 s, a gang of 4 that never starts the last 1000 s.
    out.jobs = (1..=100).map(|s| job_outcome("one", 1, 100, Some(100 + s), Some(300))).collect();
    out.jobs.push(job_outcome("gang", 4, 2600, None, None));
    let figures = figures_of(&out);
    let expected = [
        ("jobs", 101.0),
        ("jobsSucceeded", 100.0),
        ("jobsUnfinished", 1.0),
        ("jobsNeverStarted", 1.0),
        ("waitMean", ((5050.0_f64 + 1000.0) / 101.0 * 1e6).round() / 1e6),
        ("waitP50", 51.0),
        ("waitP95", 96.0),
        ("waitP99", 100.0),
        ("waitMax", 1000.0),
        ("gangWaitMean", 1000.0),
        ("gangWaitP95", 1000.0),
        ("waitGpuMean", ((5050.0_f64 + 4000.0) / 104.0 * 1e6).round() / 1e6),
        ("makespan", 3500.0),
    ];
    for (name, value) in expected {
        assert_eq!(figures.figure(name), Some(value), "{name}");
    }
    let none = figures_of(&outcome("p"));
    assert_eq!((none.figure("waitMean"), none.figure("makespan")), (None, None));
    assert_eq!(none.figure("noSuchFigure"), None);
}

#[test]
fn percentiles_are_waits_that_some_job_had() {
    assert_eq!(waiting::percentile(&[], 50), None);
    assert_eq!(waiting::percentile(&[7], 50), Some(7));
    assert_eq!(waiting::percentile(&[1, 2, 3, 4], 50), Some(2));
    assert_eq!(waiting::percentile(&[1, 2, 3, 4], 51), Some(3));
    assert_eq!(waiting::distribution(&[1, 1, 2, 5]), [(1, 0.5), (2, 0.75), (5, 1.0)]);
}

#[test]
fn costs_are_split_up_and_an_account_that_does_not_add_up_is_told() {
    let mut out = outcome("p");
    let hour = u128::from(HOUR);
    let account = Account {
        units_per_machine: 4,
        billed: 40 * hour,
        useful: 20 * hour,
        lost: 4 * hour,
        held: 2 * hour,
        boot: 4 * hour,
        idle: 6 * hour,
        fragmentation: 4 * hour,
    };
    out.accounts.insert(GroupName::Primary, account);
    let figures = figures_of(&out);
    let expected = [
        ("cost", 20.0),
        ("machineHours", 10.0),
        ("gpuHours", 40.0),
        ("gpuHoursLost", 4.0),
        ("usefulShare", 0.5),
        ("usefulHours", 5.0),
        ("idleHours", 1.5),
        ("violations", 0.0),
    ];
    for (name, value) in expected {
        assert_eq!(figures.figure(name), Some(value), "{name}");
    }
    out.accounts.insert(GroupName::Primary, Account { idle: 0, ..account });
    let figures = figures_of(&out);
    assert_eq!(figures.figure("violations"), Some(1.0));
    assert!(figures.violations[0].contains("primary group was billed"), "{:?}", figures.violations);
}

#[test]
fn groups_of_other_machines_are_weighed_by_their_price() {
    let mut out = outcome("p");
    let hour = u128::from(HOUR);
    let mut secondary = out.groups[&GroupName::Primary];
    (secondary.worker, secondary.price_per_hour) = (Resources::new(32_000, 8, 0), 0.5);
    out.groups.insert(GroupName::Secondary, secondary);
    let primary = Account { units_per_machine: 4, billed: 4 * hour, useful: 4 * hour, ..Account::default() };
    let cheap = Account { units_per_machine: 32_000, billed: 64_000 * hour, idle: 64_000 * hour, ..Account::default() };
    out.accounts = [(GroupName::Primary, primary), (GroupName::Secondary, cheap)].into();
    let figures = figures_of(&out);
    assert_eq!(figures.figure("cost"), Some(3.0));
    assert_eq!(figures.figure("machineHours"), Some(3.0));
    assert_eq!(figures.figure("gpuHours"), Some(4.0));
    assert_eq!(figures.figure("usefulShare"), Some(0.666_667));
    // Without a price, machine-hours weigh.
    out.groups.get_mut(&GroupName::Secondary).unwrap().price_per_hour = 0.0;
    let figures = figures_of(&out);
    assert_eq!((figures.figure("cost"), figures.figure("usefulShare")), (None, Some(0.333_333)));
}

#[test]
fn elasticity_is_integrated_exactly() {
    let mut out = outcome("p");
    out.end_ms = 1000 * SECOND;
    // 0-100: nothing; 100-300: 4 wanted, 1 there; 300-500: 4 of 4; 500-900: 1 wanted, 4 there; then 20 wanted, 4 there.
    out.steps = vec![step(0, 0, 1), step(100, 4, 1), step(300, 4, 4), step(500, 1, 4), step(900, 20, 4)];
    let figures = figures_of(&out).elasticity;
    let capped = figures.capped;
    assert_eq!(capped.idle_demand_time_s, 100.0);
    assert_eq!(capped.under_workers, (3.0 * 200.0 + 6.0 * 100.0) / 1000.0);
    assert_eq!(capped.over_workers, (1.0 * 100.0 + 3.0 * 400.0) / 1000.0);
    assert_eq!(capped.accuracy_under, Some(0.12));
    assert_eq!(capped.accuracy_over, Some(0.13));
    assert_eq!(capped.theta_under, Some(((0.75_f64 * 200.0 + 0.6 * 100.0) / 9.0 * 1e6).round() / 1e6));
    assert_eq!(capped.theta_over, Some(((3.0_f64 * 400.0) / 9.0 * 1e6).round() / 1e6));
    assert_eq!((capped.tau_under, capped.tau_over), (30.0, 50.0));
    // Supply rose relative to demand at 300 (after 200 s) and at 500 (after 200 s); demand at 100 and 900.
    assert_eq!((capped.instability_supply, capped.instability_demand), (40.0, 50.0));
    assert_eq!(capped.jitter_per_minute, ((3.0_f64 - 4.0 - 3.0 - 9.0) / (1000.0 / 60.0) * 1e6).round() / 1e6);
    assert_eq!(figures.uncapped.under_workers, (3.0 * 200.0 + 16.0 * 100.0) / 1000.0);
}

#[test]
fn what_still_serves_is_no_lack_and_what_is_paid_for_is_too_much() {
    let mut out = outcome("p");
    let machines = Machines { ordered: 5, booting: 1, ready: 1, cordoned: 1, draining: 1, leaving: 1, broken: 1 };
    out.steps = vec![Step { demand_workers: 3, machines, ..Step::default() }];
    let capped = figures_of(&out).elasticity.capped;
    assert_eq!((capped.under_workers, capped.over_workers), (0.0, 3.0));
    let none = figures_of(&outcome("p")).elasticity.capped;
    assert_eq!((none.theta_under, none.idle_demand_time_s), (None, 3600.0));
}

#[test]
fn speedup_is_never_infinite() {
    let good = elasticity::Measures { tau_over: 10.0, theta_over: Some(20.0), ..elasticity::Measures::default() };
    let bad = elasticity::Measures { tau_under: 40.0, tau_over: 40.0, theta_over: Some(20.0), ..good };
    let speedup = elasticity::speedup(&good, &bad);
    assert_eq!((speedup.theta_under, speedup.theta_over, speedup.tau_over), (1.0, 1.0, 4.0));
    assert_eq!(speedup.tau_under, 40.0 / elasticity::EPSILON_0);
    assert!(speedup.clamped && speedup.epsilon.is_finite());
    assert_eq!(elasticity::speedup(&bad, &bad).epsilon, 1.0);
}

#[test]
fn a_machine_that_is_wanted_back_within_a_boot_is_a_flap() {
    let mut out = outcome("p");
    let told = |at, action| Told {
        from_ms: at,
        to_ms: at,
        looks: 1,
        actions: vec![action],
        reasons: Vec::new(),
        notes: Vec::new(),
        workers: None,
    };
    let delete = |names: &[&str]| Action::Delete {
        group: GroupName::Primary,
        instances: names.iter().map(ToString::to_string).collect(),
    };
    let create = |group, count| Action::Create { group, count };
    out.decisions = vec![
        told(0, delete(&["a", "b", "c"])),
        told(MINUTE, create(GroupName::Secondary, 1)),
        told(2 * MINUTE, create(GroupName::Primary, 2)),
        told(6 * MINUTE, create(GroupName::Primary, 1)),
        told(7 * MINUTE, delete(&["d"])),
        told(8 * MINUTE, create(GroupName::Primary, 5)),
    ];
    let figures = figures_of(&out);
    assert_eq!(figures.figure("flaps"), Some(3.0));
    assert_eq!(figures.figure("decisions"), Some(6.0));
}

#[test]
fn the_bounds_of_a_few_jobs() {
    let mut out = outcome("p");
    // Two jobs of 4 GPUs, a gap of 2 minutes, and one of 2 GPUs beside the second: levels 1 and 2.
    let jobs = vec![
        gang("a", 4, 0, 10 * MINUTE),
        gang("b", 4, 12 * MINUTE, 10 * MINUTE),
        gang("c", 2, 12 * MINUTE, 5 * MINUTE),
    ];
    let workload = Workload { jobs };
    let minutes = |units: u128| units / u128::from(MINUTE) / 4;
    let found = bounds::bounds(&out, &workload);
    assert_eq!(found.units_per_machine, 4);
    assert_eq!(found.work, u128::from(MINUTE) * (40 + 40 + 10));
    // Level 1: 20 minutes on, one boot, the gap bridged; level 2: 5 minutes and a boot.
    assert_eq!(minutes(found.opt0), 20 + 5 + 2 + 5 + 5);
    // One that is always there has no gap, and is paid for to the end.
    out.min_workers = 1;
    assert_eq!(minutes(bounds::bounds(&out, &workload).opt0_with_minimum), 60 + 5 + 5 + 5);
    // Machines that were up at the start boot for nothing; a long gap is a second boot; the run's end cuts off.
    out.steps = vec![step(0, 0, 2)];
    assert_eq!(minutes(bounds::bounds(&out, &workload).opt0), 20 + 2 + 5 + 5);
    out.end_ms = 13 * MINUTE;
    assert_eq!(minutes(bounds::bounds(&out, &workload).opt0), 10 + 2 + 1 + 5 + 1);
}

#[test]
fn the_bounds_know_what_jobs_are_made_of() {
    let out = outcome("p");
    let at = bounds::Yardstick::of(&out);
    let mut job = gang("stages", 1, MINUTE, MINUTE);
    let stage = |tasks, gpus| Stage {
        name: "map".into(),
        tasks,
        resources: Resources::new(16_000, 4, gpus),
        task_ms: MINUTE,
        starts_after: 0.0,
    };
    // 10 machines hold 40 at once: 100 tasks are two waves and a half; a stage without GPUs needs machines, too.
    job.work = Work::Stages(vec![stage(100, 0)]);
    let hold = |from, until, tasks| bounds::Hold {
        from_ms: from * MINUTE,
        until_ms: until * MINUTE,
        size: Resources::new(16_000, 4, 0).times(tasks),
    };
    assert_eq!(bounds::holds(&job, &at), [hold(1, 3, 40), hold(3, 4, 20)]);
    let found = bounds::bounds_of(&bounds::holds(&job, &at), &at);
    assert_eq!(found.work, u128::from(MINUTE) * 100);
    let executors =
        Executors { resources: SLICE, slots: 2, tasks: 9, task_ms: MINUTE, min: 0, max: 3, idle_timeout_ms: MINUTE };
    job.work = Work::Executors(executors);
    let sizes: Vec<_> = bounds::holds(&job, &at).iter().map(|hold| (hold.until_ms, hold.size.gpus)).collect();
    assert_eq!(sizes, [(2 * MINUTE, 3), (3 * MINUTE, 2)]);
    // What fits nowhere is left out, and said to be.
    let mut huge = gang("huge", 1, 0, MINUTE);
    huge.work = Work::Stages(vec![Stage { resources: WORKER.times(2), ..stage(1, 1) }]);
    let found = bounds::bounds(&out, &Workload { jobs: vec![huge, gang("wide", 41, 0, MINUTE)] });
    assert_eq!((found.left_out, found.opt0, found.work), (2, 0, 0));
}

#[test]
fn expectations_that_are_not_met_are_told_in_sentences() {
    let mut out = outcome("basic");
    out.jobs = vec![job_outcome("one", 1, 0, Some(90), Some(200))];
    let expect = |figure: &str, min, max| Expectation { figure: figure.into(), min, max };
    let expectations = [
        expect("jobs", Some(1.0), Some(1.0)),
        expect("waitP95", None, Some(60.0)),
        expect("jobsSucceeded", Some(2.0), None),
        expect("waitp95", None, Some(60.0)),
        expect("gangWaitMean", None, Some(1.0)),
    ];
    let failures = report::check_expectations(&expectations, &figures_of(&out));
    let texts: Vec<_> = failures.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn scenarios_can_count_on_these_names() {
    let promised = "jobs jobsSucceeded jobsUnfinished cost machineHours gpuHours usefulShare ratioToOpt0 ratioToWork \
                    waitMean waitP50 waitP95 waitP99 gangWaitMean gangWaitP95 makespan containersKilled containersLost \
                    gpuHoursLost restarts boots machinesDeleted recommissions peakWorkers finalWorkers violations looks";
    let mut names: Vec<_> = report::names::all().map(|named| named.name).collect();
    for name in promised.split_whitespace() {
        assert!(names.contains(&name), "{name}");
    }
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name stands for one figure: {names:?}");
}

fn small() -> Figures {
    let mut out = outcome("cordon-first");
    out.scenario = "by hand, \"quoted\"".into();
    out.jobs = vec![job_outcome("one", 1, 0, Some(90), Some(200)), job_outcome("gang", 4, 60, Some(90), None)];
    out.steps = vec![step(0, 0, 1), step(60, 2, 1), step(360, 2, 2)];
    out.reasons = [("steady", 3), ("scaleUp", 1)].into();
    out.violations = vec![Violation { at_ms: 0, promise: "whole gangs", text: "half a gang".into() }];
    out.remarks = vec!["1 job could never run".into()];
    report::figures(&out, &Workload { jobs: vec![gang("one", 1, 0, 110 * SECOND), gang("gang", 4, 60_000, HOUR)] })
}

#[test]
fn the_json_has_everything() {
    insta::assert_snapshot!(report::json(&[small()]).unwrap());
}

#[test]
fn the_csv_has_a_row_for_each_run() {
    let text = report::csv(&[small(), small()]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("scenario,policy,seed,jobs,jobsSucceeded"), "{text}");
    assert!(lines[1].starts_with("\"by hand, \"\"quoted\"\"\",cordon-first,7,2,1,"), "{text}");
    let fields = |line: &str| line.matches(',').count();
    assert_eq!(fields(lines[0]) + 1, fields(lines[1]), "one comma is inside quotes");
}

#[test]
fn three_policies_fit_eighty_columns() {
    let [a, b] = [CORDONING, IDLING].map(|how| {
        let (out, workload) = play(how);
        report::figures(&out, &workload)
    });
    let mut long = b.clone();
    long.policy = "a policy with a very long name".into();
    let text = report::table(&[a, b, long], Some(80), true);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}\n{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn many_policies_stand_below_each_other_and_none_is_no_error() {
    let runs = vec![small(); 5];
    let text = report::table(&runs, Some(80), false);
    assert_eq!(text.lines().filter(|line| line.contains("cordon-first") && line.contains('│')).count(), 2, "{text}");
    assert!(text.contains("BROKEN: cordon-first: whole gangs: half a gang"), "{text}");
    assert!(text.contains("remark: cordon-first: 1 job could never run"), "{text}");
    assert!(report::table(&[], None, false).starts_with("* "));
    let mut run = small();
    run.policy = nasty().to_string();
    let text = report::table(&[run], None, true);
    assert!(!text.contains('\u{1b}'), "{text:?}");
}
