//! Outcomes for the report: one to fill by hand, and days of a little cluster that is played through minute by minute.

use std::{collections::BTreeMap, sync::Arc};

use yarn_autoscaler::{
    model::{Action, GroupName, NodeId, Reason, Resources, Workers},
    policy::MetricType,
    sim::{
        Ms,
        outcome::{Account, Counts, GroupFacts, JobOutcome, Machines, Outcome, Step, Told},
        workload::{Job, OnLoss, TaskGroup, Work, Workload},
    },
};

use crate::fixtures::noon;

pub const SECOND: Ms = 1000;
pub const MINUTE: Ms = 60_000;
pub const HOUR: Ms = 3_600_000;

/// A worker with 4 GPUs.
pub const WORKER: Resources = Resources::new(64_000, 16, 4);

/// What one GPU of it is good for.
pub const SLICE: Resources = Resources::new(16_000, 4, 1);

/// One hour of nothing: one group of workers with 4 GPUs at 2.0 an hour that boot in 5 minutes; 0 to 10 of them.
pub fn outcome(policy: &str) -> Outcome {
    let facts = GroupFacts { worker: WORKER, price_per_hour: 2.0, boot_ms: 5 * MINUTE, minimum_billed_ms: MINUTE };
    Outcome {
        scenario: "by hand".into(),
        policy: policy.into(),
        seed: 7,
        start: noon(),
        end_ms: HOUR,
        groups: BTreeMap::from([(GroupName::Primary, facts)]),
        min_workers: 0,
        max_workers: 10,
        jobs: Vec::new(),
        steps: vec![Step::default()],
        accounts: BTreeMap::from([(GroupName::Primary, Account { units_per_machine: 4, ..Account::default() })]),
        decisions: Vec::new(),
        reasons: BTreeMap::new(),
        counts: Counts::default(),
        violations: Vec::new(),
        remarks: Vec::new(),
    }
}

/// A job of so many GPUs, times in seconds.
pub fn job_outcome(name: &str, gpus: u32, submit_s: Ms, start_s: Option<Ms>, end_s: Option<Ms>) -> JobOutcome {
    let worked = end_s.zip(start_s).map_or(0, |(end, start)| end.saturating_sub(start));
    JobOutcome {
        name: name.into(),
        application_type: "TONY".into(),
        queue: "default".into(),
        is_gang: gpus > 1,
        size: SLICE.times(gpus.into()),
        containers: gpus,
        submit_ms: submit_s * SECOND,
        start_ms: start_s.map(|s| s * SECOND),
        end_ms: end_s.map(|s| s * SECOND),
        succeeded: end_s.is_some(),
        restarts: 0,
        containers_lost: 0,
        work: u128::from(worked) * u128::from(SECOND) * u128::from(gpus),
    }
}

/// What `job_outcome` came of: a gang of containers with one GPU each.
pub fn gang(name: &str, gpus: u32, submit_ms: Ms, duration_ms: Ms) -> Job {
    Job {
        name: name.into(),
        application_type: "TONY".into(),
        queue: "default".into(),
        submit_ms,
        master: None,
        work: Work::Gang {
            groups: vec![TaskGroup { name: "worker".into(), containers: gpus, resources: SLICE }],
            duration_ms,
        },
        on_loss: OnLoss::Restart,
    }
}

/// Ready workers and demand since a time in seconds.
pub fn step(at_s: Ms, demand_workers: u32, ready: u32) -> Step {
    let machines = Machines { ready, ..Machines::default() };
    Step { at_ms: at_s * SECOND, demand_workers, machines, ..Step::default() }
}

/// Numbers at random, the same for the same seed.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 0 to `below` - 1.
    pub fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// How the little cluster is played.
#[derive(Clone, Copy)]
pub struct Play {
    pub policy: &'static str,
    pub days: u64,
    /// A machine goes when it has been idle for so long.
    pub idle: Ms,
    /// Machines are cordoned when there are more than enough.
    pub cordons: bool,
    /// Minutes between looks.
    pub look: u64,
    pub boot: Ms,
    pub jobs_a_day: u64,
}

pub const CORDONING: Play = Play {
    policy: "cordon-first",
    days: 2,
    idle: 5 * MINUTE,
    cordons: true,
    look: 1,
    boot: 5 * MINUTE,
    jobs_a_day: 40,
};
pub const IDLING: Play = Play { policy: "idle-timeout", idle: 10 * MINUTE, cordons: false, ..CORDONING };
pub const SLUGGISH: Play = Play { policy: "dataproc-memory", idle: HOUR, look: 20, ..IDLING };

struct Machine {
    name: usize,
    up_at: Ms,
    used: u32,
    idle_since: Ms,
    cordoned: bool,
}

struct Running {
    job: usize,
    until: Ms,
    on: Vec<(usize, u32)>,
}

/// The jobs of some days: more by day than by night, mostly small, a few long.
pub fn some_jobs(play: &Play) -> Workload {
    let mut dice = Dice::new(42);
    let mut jobs = Vec::new();
    for minute in 0..play.days * 1440 {
        let hour = minute / 60 % 24;
        let busy = if (2..11).contains(&hour) { 3 } else { 1 };
        if dice.roll(1440 * 2) >= play.jobs_a_day * busy {
            continue;
        }
        for _ in 0..=dice.roll(3) {
            let gpus = [1, 1, 1, 2, 4, 4, 8][usize::try_from(dice.roll(7)).unwrap()];
            let long = if dice.roll(8) == 0 { 9 } else { 1 };
            let duration = (5 + dice.roll(80)) * MINUTE * long;
            jobs.push(gang(&format!("train-{:03}", jobs.len()), gpus, minute * MINUTE, duration));
        }
    }
    Workload { jobs }
}

/// A played run, again and again, so many times: long, and soon made.
pub fn again_and_again(how: Play, times: u64) -> (Outcome, Workload) {
    let (mut out, mut workload) = play(how);
    let (length, once, jobs) = (out.end_ms, out.clone(), workload.jobs.clone());
    for shift in (1..times).map(|time| time * length) {
        out.steps.extend(once.steps.iter().map(|step| Step { at_ms: step.at_ms + shift, ..*step }));
        out.decisions.extend(once.decisions.iter().cloned().map(|told| Told {
            from_ms: told.from_ms + shift,
            to_ms: told.to_ms + shift,
            ..told
        }));
        out.jobs.extend(once.jobs.iter().cloned().map(|job| JobOutcome {
            submit_ms: job.submit_ms + shift,
            start_ms: job.start_ms.map(|at| at + shift),
            end_ms: job.end_ms.map(|at| at + shift),
            ..job
        }));
        workload.jobs.extend(jobs.iter().cloned().map(|job| Job { submit_ms: job.submit_ms + shift, ..job }));
    }
    out.end_ms = times * length;
    let account = out.accounts.get_mut(&GroupName::Primary).unwrap();
    for part in
        [&mut account.billed, &mut account.useful, &mut account.boot, &mut account.idle, &mut account.fragmentation]
    {
        *part *= u128::from(times);
    }
    (out, workload)
}

/// Plays some days.
pub fn play(play: Play) -> (Outcome, Workload) {
    let workload = some_jobs(&play);
    let mut little = Little { out: outcome(play.policy), play, machines: Vec::new(), running: Vec::new(), made: 0 };
    little.out.scenario = "two busy days".into();
    little.out.end_ms = play.days * 24 * HOUR;
    little.out.groups.values_mut().for_each(|facts| facts.boot_ms = play.boot);
    little.out.min_workers = 1;
    little.out.max_workers = 24;
    let describe = |job: &Job| {
        let Work::Gang { groups, duration_ms } = &job.work else { unreachable!("only gangs are made") };
        let mut out = job_outcome(&job.name, groups[0].containers, job.submit_ms / SECOND, None, None);
        out.work = u128::from(groups[0].containers) * u128::from(*duration_ms);
        out
    };
    little.out.jobs = workload.jobs.iter().map(describe).collect();
    little.order(0, 1);
    for now in (0..little.out.end_ms).step_by(usize::try_from(MINUTE).unwrap()) {
        little.minute(now, &workload);
    }
    (little.out, workload)
}

struct Little {
    out: Outcome,
    play: Play,
    machines: Vec<Machine>,
    running: Vec<Running>,
    made: usize,
}

impl Little {
    fn minute(&mut self, now: Ms, workload: &Workload) {
        self.end_jobs(now);
        for job in 0..workload.jobs.len() {
            if workload.jobs[job].submit_ms <= now && self.out.jobs[job].start_ms.is_none() {
                self.start(job, now, &workload.jobs[job]);
            }
        }
        let waiting = self.waiting(now);
        if (now / MINUTE).is_multiple_of(self.play.look) {
            self.look(now, waiting);
        }
        self.account(now);
        self.step(now, waiting);
    }

    fn waiting(&self, now: Ms) -> u32 {
        let jobs = self.out.jobs.iter().filter(|job| job.submit_ms <= now && job.start_ms.is_none());
        jobs.map(|job| job.containers).sum()
    }

    fn end_jobs(&mut self, now: Ms) {
        let (ended, running) = std::mem::take(&mut self.running).into_iter().partition(|job| job.until <= now);
        self.running = running;
        for job in ended {
            (self.out.jobs[job.job].end_ms, self.out.jobs[job.job].succeeded) = (Some(job.until), true);
            for (name, gpus) in job.on {
                let machine = self.machines.iter_mut().find(|machine| machine.name == name).unwrap();
                machine.used -= gpus;
                machine.idle_since = now;
            }
        }
    }

    fn start(&mut self, job: usize, now: Ms, what: &Job) {
        let Work::Gang { duration_ms, .. } = &what.work else { return };
        let mut lacks = self.out.jobs[job].containers;
        let open = |machine: &&mut Machine| machine.up_at + 5 * MINUTE <= now && !machine.cordoned;
        if self.machines.iter_mut().filter(open).map(|machine| 4 - machine.used).sum::<u32>() < lacks {
            return;
        }
        let mut on = Vec::new();
        for machine in self.machines.iter_mut().filter(open) {
            let taken = lacks.min(4 - machine.used);
            if taken > 0 {
                machine.used += taken;
                lacks -= taken;
                on.push((machine.name, taken));
            }
        }
        self.out.jobs[job].start_ms = Some(now);
        self.running.push(Running { job, until: now + duration_ms, on });
    }

    fn look(&mut self, now: Ms, waiting: u32) {
        self.out.counts.looks += 1;
        let used: u32 = self.machines.iter().map(|machine| machine.used).sum();
        let free: u32 = self.machines.iter().filter(|machine| !machine.cordoned).map(|machine| 4 - machine.used).sum();
        let (size, wanted) = (self.machines.len(), (used + waiting).div_ceil(4));
        let size = u32::try_from(size).unwrap();
        if waiting > free {
            let hosts: Vec<_> = self.machines.iter().filter(|machine| machine.cordoned).map(host).collect();
            self.machines.iter_mut().for_each(|machine| machine.cordoned = false);
            if !hosts.is_empty() {
                self.out.counts.recommissions += hosts.len() as u64;
                let reasons = vec![Reason::Recommission { hosts: hosts.clone() }];
                self.tell(now, vec![Action::Recommission { hosts }], reasons);
                return;
            }
            let count = (waiting - free).div_ceil(4).min(24 - size);
            self.order(now, count);
            let (pending, metric) = (u64::from(waiting) * 16_000, MetricType::YarnMemory);
            let reason = Reason::ScaleUp { from: size, to: size + count, metric, pending, estimated: wanted };
            let actions = vec![Action::Create { group: GroupName::Primary, count }];
            self.tell(now, if count > 0 { actions } else { Vec::new() }, vec![reason]);
            return;
        }
        self.shrink(now, free, size, wanted);
    }

    fn shrink(&mut self, now: Ms, free: u32, size: u32, wanted: u32) {
        let idle = |machine: &Machine| machine.used == 0 && machine.idle_since + self.play.idle <= now;
        let gone: Vec<_> = self.machines.iter().skip(1).filter(|machine| idle(machine)).map(host).collect();
        if !gone.is_empty() {
            self.machines.retain(|machine| !gone.contains(&host(machine)));
            self.out.counts.deleted += gone.len() as u64;
            let reasons = vec![Reason::Delete { instances: gone.clone() }, Reason::Draining { hosts: gone.clone() }];
            self.tell(now, vec![Action::Delete { group: GroupName::Primary, instances: gone }], reasons);
        } else if let (true, Some(machine)) = (
            self.play.cordons && free >= 8,
            self.machines.iter_mut().rev().find(|m| !m.cordoned && m.used < 4 && m.up_at + 10 * MINUTE < now),
        ) {
            machine.cordoned = true;
            let instance = host(machine);
            let node = NodeId { host: instance.clone(), port: 8041 };
            let action = Action::Cordon { node, group: GroupName::Primary, instance, full: WORKER };
            let metric = MetricType::YarnMemory;
            let reason = Reason::ScaleDown { from: size, to: size - 1, metric, allocated: 0, estimated: wanted };
            self.tell(now, vec![action], vec![reason]);
        } else {
            let reason = Reason::Steady { workers: size, metric: MetricType::YarnMemory, pending: 0, allocated: 0 };
            self.tell(now, Vec::new(), vec![reason]);
        }
    }

    fn order(&mut self, now: Ms, count: u32) {
        for _ in 0..count {
            let up_at = now + self.play.boot - 5 * MINUTE;
            self.machines.push(Machine {
                name: self.made,
                up_at,
                used: 0,
                idle_since: now + self.play.boot,
                cordoned: false,
            });
            self.made += 1;
            self.out.counts.ordered += 1;
            self.out.counts.boots += 1;
        }
    }

    fn tell(&mut self, now: Ms, actions: Vec<Action>, reasons: Vec<Reason>) {
        for reason in &reasons {
            let value = serde_json::to_value(reason).unwrap();
            let code: &'static str = Box::leak(value["reason"].as_str().unwrap().to_owned().into_boxed_str());
            *self.out.reasons.entry(code).or_default() += 1;
        }
        let size = u32::try_from(self.machines.len()).unwrap();
        let workers = Some(Workers { ready: size, size, ..Workers::default() });
        let said_the_same = |last: &&mut Told| last.actions.is_empty() && actions.is_empty() && last.reasons == reasons;
        if let Some(last) = self.out.decisions.last_mut().filter(said_the_same) {
            (last.to_ms, last.looks) = (now, last.looks + 1);
            return;
        }
        self.out.decisions.push(Told {
            from_ms: now,
            to_ms: now,
            looks: 1,
            actions,
            reasons,
            notes: Vec::new(),
            workers,
        });
    }

    fn account(&mut self, now: Ms) {
        let account = self.out.accounts.get_mut(&GroupName::Primary).unwrap();
        let minute = u128::from(MINUTE);
        for machine in self.machines.iter().filter(|machine| machine.up_at <= now) {
            account.billed += 4 * minute;
            let (used, free) = (u128::from(machine.used) * minute, u128::from(4 - machine.used) * minute);
            account.useful += used;
            match machine.used {
                0 if machine.up_at + 5 * MINUTE > now => account.boot += free,
                0 => account.idle += free,
                _ => account.fragmentation += free,
            }
        }
    }

    fn step(&mut self, now: Ms, waiting: u32) {
        let used: u32 = self.machines.iter().map(|machine| machine.used).sum();
        let mut machines = Machines::default();
        for machine in &self.machines {
            let part = match machine {
                m if m.up_at > now => &mut machines.ordered,
                m if m.up_at + 5 * MINUTE > now => &mut machines.booting,
                m if m.cordoned && m.used > 0 => &mut machines.draining,
                m if m.cordoned => &mut machines.cordoned,
                _ => &mut machines.ready,
            };
            *part += 1;
        }
        self.out.counts.peak_machines = self.out.counts.peak_machines.max(machines.total());
        let step = Step {
            at_ms: now,
            pending: SLICE.times(waiting.into()),
            demand_workers: (used + waiting).div_ceil(4),
            machines,
            jobs_waiting: u32::try_from(
                self.out.jobs.iter().filter(|j| j.submit_ms <= now && j.start_ms.is_none()).count(),
            )
            .unwrap(),
            jobs_running: u32::try_from(self.running.len()).unwrap(),
        };
        let news = |last: &Step| Step { at_ms: 0, ..*last } != Step { at_ms: 0, ..step };
        if now == 0 {
            self.out.steps = vec![step];
        } else if self.out.steps.last().is_some_and(news) {
            self.out.steps.push(step);
        }
    }
}

fn host(machine: &Machine) -> String {
    format!("w-{}", machine.name)
}

/// A name that would break a page or a table that does not mind what it prints.
pub fn nasty() -> Arc<str> {
    "<script>alert(1)</script> & \"'\u{1b}[31m".into()
}
