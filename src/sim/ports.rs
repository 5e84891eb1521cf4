//! The controller's ports over the simulated world. While the controller sleeps, the world goes on: no future of these
//! ever waits, so that the daemon's own loop runs to its end in a single poll; unless it is killed, which is a future
//! that never comes back.

use std::{cell::RefCell, future::pending, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Ms, Watch,
    checker::{
        Checker,
        orders::Order,
        rest::{Demand, Left},
    },
    journal::Decisions,
    ms,
    run::Run,
    scenario::{Fault, Scenario},
    world::{Refusal, World},
};
use crate::{
    model::{Capacity, GroupName, Intent, Node, NodeId, Observation, Resources, SizeChange, State},
    ports::{
        Clock, Cluster, ErrorKind, Journal, OperationState, PolicyChange, PolicySource, PortError, Provider,
        StateStore, Tick, Wake,
    },
};

/// A run in which no job ends any more is cut off so long after the last submission, or after so many times the time of
/// the last submission, whichever is later.
const PATIENCE: Duration = Duration::from_secs(30 * 86_400);
const PATIENCE_FACTOR: Ms = 10;

/// What all ports share.
pub(super) struct Stage<'a> {
    pub(super) world: World,
    scenario: Arc<Scenario>,
    pub(super) decisions: Decisions,
    stored: State,
    generation: u64,
    watch: &'a mut dyn Watch,
    /// The last look said that those before this instant decide the same.
    settled_until: Option<DateTime<Utc>>,
    /// … and so many, of which this is the first, say the same before anything happens.
    foreseen: (DateTime<Utc>, u64),
    /// Looks that would say the same as the last one are left out.
    skips: bool,
    /// The run ends here; `None`: not known before the last job has ended.
    pub(super) ends_at: Option<Ms>,
    cut_off_at: Ms,
    /// The run has ended because nothing would ever have happened any more.
    pub(super) stands_still: bool,
    /// Which fault kills the controller, and how many places where it may die have passed since that began.
    dying: Option<(usize, u32)>,
    /// The controller has been killed: until when.
    pub(super) dead_until: Option<Ms>,
    killed_by: Vec<usize>,
    /// Whoever watches over the promises; `None`: nobody does.
    pub(super) checker: Option<Checker>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(world: World, run: &Run, skips: bool, watch: &'a mut dyn Watch) -> Self {
        let scenario = Arc::clone(&run.scenario);
        let last_submit = run.workload.jobs.last().map_or(0, |job| job.submit_ms);
        let cut_off_at = (last_submit * PATIENCE_FACTOR).max(last_submit + ms(PATIENCE));
        Self {
            world,
            decisions: Decisions::default(),
            stored: State::default(),
            generation: 0,
            watch,
            settled_until: None,
            foreseen: Default::default(),
            skips,
            ends_at: scenario.duration.map(ms),
            cut_off_at,
            stands_still: false,
            dying: None,
            dead_until: None,
            killed_by: Vec::new(),
            checker: None,
            scenario,
        }
    }

    /// From here on somebody watches over the promises.
    pub(super) fn check(&mut self, checker: Checker) {
        self.world.write_kills_down();
        self.checker = Some(checker);
        self.count_sizes();
    }

    fn count_sizes(&mut self) {
        if let Some(checker) = &mut self.checker {
            checker.sizes(self.world.now(), &self.world.staying(&self.stored.drains));
        }
    }

    /// What has happened since is looked at.
    fn look_after(&mut self) {
        let demand = self.demand();
        let Some(checker) = &mut self.checker else { return };
        let now = self.world.now();
        checker.killed(self.world.take_kills());
        checker.passed(now, demand);
        if checker.is_satisfied(now) {
            self.ends_at = Some(now);
        }
    }

    fn demand(&self) -> Demand {
        let (pending, running) = self.world.demand();
        Demand { pending, running, is_done: self.world.is_done(), orders: self.world.orders_under_way() }
    }

    /// What is there now.
    pub(super) fn left(&self) -> Left {
        Left {
            demand: self.demand(),
            sizes: self.world.staying(&self.stored.drains),
            odd: self.world.odd_machines(),
            excluded: self.world.excluded(),
            state: self.stored.clone(),
        }
    }

    /// Why the run has ended before all jobs had, where it was not told when to end.
    pub(super) fn cut_short(&self) -> Option<&'static str> {
        if self.scenario.duration.is_some() || self.world.is_done() {
            None
        } else if self.stands_still {
            Some(
                "the run ended before all jobs had: nothing would ever have happened any more, the rest waits for ever \
                  (gangs of which each holds a part, or asks that no worker can serve)",
            )
        } else {
            Some(
                "the run was cut off before all jobs had ended: 30 days after the last one was submitted, or ten times \
                  as long as jobs came",
            )
        }
    }

    /// The controller's clock.
    fn clock(&self) -> DateTime<Utc> {
        let now = i64::try_from(self.world.now()).unwrap_or(i64::MAX);
        self.scenario.start + TimeDelta::milliseconds(now + self.world.clock_offset_ms())
    }

    /// The world's time at this reading of the controller's clock.
    pub(super) fn world_time(&self, at: DateTime<Utc>) -> Ms {
        let since = (at - self.scenario.start).num_milliseconds() - self.world.clock_offset_ms();
        Ms::try_from(since).unwrap_or(0)
    }

    /// The controller sleeps until `at`.
    fn sleep(&mut self, at: DateTime<Utc>) -> Wake {
        let from = self.world.now();
        let until = self.world_time(at).max(from);
        // What was ordered or told will not be so again.
        let settled_until = self.settled_until.filter(|_| self.decisions.is_quiet());
        if settled_until == Some(DateTime::<Utc>::MAX_UTC) && self.world.next_at().is_none() && self.ends_at.is_none() {
            // Nothing will ever happen: what waits now waits for ever.
            self.ends_at = Some(until);
            self.stands_still = true;
        }
        let pace = until - from;
        let skipped = match settled_until {
            _ if !self.skips => 0,
            Some(settled) => self.looks_in_vain(until, pace, settled),
            None if self.foreseen.0 == at => self.foreseen.1,
            None => 0,
        };
        if skipped > 0 {
            self.decisions.repeat(skipped, until + (skipped - 1) * pace);
        }
        match self.pass(until + skipped * pace) {
            Wake::Tick if skipped > 0 => Wake::Skipped { looks: skipped, pace: Duration::from_millis(pace) },
            wake => wake,
        }
    }

    /// How many looks after this one say the same, before anything happens.
    fn foresee(&self, tick: &Tick<'_>) -> u64 {
        let Some(foresight) = tick.foresight.filter(|_| self.skips && self.decisions.is_quiet()) else { return 0 };
        let (from, next_at) = (self.world.now(), tick.decision.next_at);
        let until = self.world_time(next_at).max(from);
        // Where the pace is no whole number of milliseconds, the looks would be at other times than are foreseen.
        let pace = TimeDelta::milliseconds((until - from).cast_signed());
        let is_whole = self.clock() == tick.situation.now && next_at - tick.situation.now == pace;
        if is_whole { foresight.0(self.looks_in_vain(until, until - from, DateTime::<Utc>::MAX_UTC)) } else { 0 }
    }

    /// How many looks, from `until` on, come before anything happens and before this instant: each of them would say what
    /// the last one did.
    fn looks_in_vain(&self, until: Ms, pace: Ms, settled_until: DateTime<Utc>) -> u64 {
        let happens = self.world.next_at().unwrap_or(Ms::MAX);
        let first = happens.min(self.ends_at.unwrap_or(self.cut_off_at)).min(self.world_time(settled_until));
        first.saturating_sub(until).div_ceil(pace.max(1))
    }

    /// The world goes on until then, or to its end.
    pub(super) fn pass(&mut self, until: Ms) -> Wake {
        let from = self.world.now();
        self.world.advance(until.min(self.ends_at.unwrap_or(Ms::MAX)));
        if self.ends_at.is_none() && self.world.is_done() {
            self.ends_at = Some(self.world.last_end() + ms(self.scenario.settle));
        }
        self.look_after();
        let now = self.world.now();
        self.watch.slept(from, now);
        if now >= self.ends_at.unwrap_or(self.cut_off_at) { Wake::Stop } else { Wake::Tick }
    }

    /// The store has taken this.
    fn saved(&mut self, state: &State) {
        let (now, clock) = (self.world.now(), self.clock());
        if let Some(checker) = &mut self.checker {
            checker.saved(now, clock, state, |number| self.world.operation(number) == Ok(None));
        }
    }

    /// A place where the controller may die; whether it dies here.
    fn dies_here(&mut self) -> bool {
        let crash = self.world.active_faults().find_map(|(index, fault)| match fault {
            Fault::ControllerCrash(at) if !self.killed_by.contains(&index) => Some((index, *at)),
            _ => None,
        });
        let Some((index, at)) = crash else { return false };
        let passed = self.dying.filter(|(of, _)| *of == index).map_or(0, |(_, passed)| passed) + 1;
        self.dying = Some((index, passed));
        if passed < at {
            return false;
        }
        self.killed_by.push(index);
        if let Some(checker) = &mut self.checker {
            checker.died();
        }
        self.world.counts().controller_crashes += 1;
        let event = &self.scenario.events[index];
        self.dead_until = Some(ms(event.at + event.lasts).max(self.world.now()));
        true
    }

    fn yarn(&mut self) -> Result<&mut World, PortError> {
        if self.world.yarn_is_silent() {
            return Err(PortError::transient("GET /ws/v1/cluster: no answer within 10 s"));
        }
        Ok(&mut self.world)
    }

    fn cloud(&mut self) -> Result<&mut World, PortError> {
        if self.world.faults().any(|fault| *fault == Fault::CloudErrors) {
            return Err(PortError::transient("503 Service Unavailable"));
        }
        Ok(&mut self.world)
    }

    /// Gives the cloud an order.
    fn order(
        &mut self,
        (request_id, intent): (&str, Intent),
        order: impl FnOnce(&mut World) -> Result<usize, Refusal>,
    ) -> Result<String, PortError> {
        let (clock, made_before) = (self.clock(), self.world.counts().ordered);
        let lies = |fault: &Fault| matches!(fault, Fault::ResourceManagerStale | Fault::ResourceManagerPartial);
        if let Some(checker) = self.checker.as_mut().filter(|_| self.world.faults().any(lies)) {
            checker.misled(&intent, &self.stored, clock);
        }
        let answer = self.order_unseen(order);
        let machines = self.world.counts().ordered - made_before;
        let (at_ms, operation) = (self.world.now(), answer.as_ref().ok().copied());
        if let Some(checker) = &mut self.checker {
            checker.order(&Order { at_ms, request_id, intent: &intent, machines, operation }, &self.stored);
            checker.killed(self.world.take_kills());
        }
        self.count_sizes();
        let number = answer?;
        if self.world.faults().any(|fault| *fault == Fault::LostAcknowledgements) {
            return Err(PortError::transient("connection reset before the answer came"));
        }
        Ok(format!("operation-{number}"))
    }

    fn order_unseen(&mut self, order: impl FnOnce(&mut World) -> Result<usize, Refusal>) -> Result<usize, PortError> {
        let throttled = self.world.throttled();
        let answer = match throttled {
            Some(retry_after) => Err(PortError::new(ErrorKind::Throttled { retry_after }, "429 Too Many Requests")),
            None => self.cloud().and_then(|world| order(world).map_err(refused)),
        };
        if answer.is_err() {
            self.world.counts().orders_failed += 1;
        }
        answer
    }
}

fn refused(refusal: Refusal) -> PortError {
    let (kind, text) = match refusal {
        Refusal::Quota => (ErrorKind::Quota, "Insufficient quota: more machines than the quota allows"),
        Refusal::StockOut => (ErrorKind::StockOut, "ZONE_RESOURCE_POOL_EXHAUSTED: no such machines just now"),
        Refusal::Busy => (ErrorKind::Conflict, "FAILED_PRECONDITION: another operation is under way"),
        Refusal::NoGroup => (ErrorKind::NotFound, "there is no such worker group"),
        Refusal::CannotName => (ErrorKind::Denied, "workers cannot be deleted by name"),
    };
    PortError::new(kind, text)
}

/// All ports: each is a handle on the same stage.
pub(super) struct Port<'s, 'a> {
    stage: &'s RefCell<Stage<'a>>,
    /// The store's generation that this handle has seen last.
    generation: u64,
}

impl<'s, 'a> Port<'s, 'a> {
    pub(super) fn new(stage: &'s RefCell<Stage<'a>>) -> Self {
        Self { stage, generation: 0 }
    }

    /// A place where the controller may die.
    async fn boundary(&self) {
        let dies = self.stage.borrow_mut().dies_here();
        if dies {
            pending::<()>().await;
        }
    }

    async fn order(
        &self,
        named: (&str, Intent),
        order: impl FnOnce(&mut World) -> Result<usize, Refusal>,
    ) -> Result<String, PortError> {
        self.boundary().await;
        let answer = self.stage.borrow_mut().order(named, order);
        self.boundary().await;
        answer
    }

    /// Tells YARN something.
    async fn tell(&self, tell: impl FnOnce(&mut World) -> Result<(), String>) -> Result<(), PortError> {
        self.boundary().await;
        let not_found = |text| PortError::new(ErrorKind::NotFound, text);
        let answer = self.stage.borrow_mut().yarn().and_then(|world| tell(world).map_err(not_found));
        self.boundary().await;
        answer
    }
}

impl Clock for Port<'_, '_> {
    fn now(&self) -> DateTime<Utc> {
        self.stage.borrow().clock()
    }

    async fn sleep_until(&self, at: DateTime<Utc>) -> Wake {
        self.stage.borrow_mut().sleep(at)
    }
}

impl Cluster for Port<'_, '_> {
    async fn observe(&self, _: DateTime<Utc>) -> Result<Arc<Observation>, PortError> {
        Ok(self.stage.borrow_mut().yarn()?.observation())
    }

    async fn nodes(&self) -> Result<Vec<Arc<Node>>, PortError> {
        Ok(self.stage.borrow_mut().yarn()?.observation().nodes.clone())
    }

    async fn cordon(&self, node: &NodeId, leave: Resources) -> Result<(), PortError> {
        self.tell(|world| world.set_total(&node.host, leave)).await
    }

    async fn uncordon(&self, node: &NodeId, full: Resources) -> Result<(), PortError> {
        self.tell(|world| {
            world.counts().recommissions += 1;
            world.set_total(&node.host, full)
        })
        .await
    }

    async fn decommission(&self, hosts: &[String], timeout: Duration) -> Result<(), PortError> {
        self.tell(|world| {
            world.exclude(hosts, timeout);
            Ok(())
        })
        .await
    }

    async fn recommission(&self, hosts: &[String], _: Duration) -> Result<(), PortError> {
        self.tell(|world| {
            world.include(hosts);
            Ok(())
        })
        .await
    }
}

impl Provider for Port<'_, '_> {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        Ok(self.stage.borrow_mut().cloud()?.capacity())
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        let intent = Intent::Create { group, count };
        self.order((request_id, intent), |world| world.create(request_id, group, count)).await
    }

    async fn resize(&self, _: &str, _: SizeChange, _: Duration) -> Result<String, PortError> {
        Err(PortError::new(ErrorKind::Permanent, "the simulated provider takes no sizes"))
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        let intent = Intent::Delete { group, instances: instances.to_vec() };
        self.order((request_id, intent), |world| world.delete(request_id, instances)).await
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        let mut stage = self.stage.borrow_mut();
        let number = operation_id.strip_prefix("operation-").and_then(|number| number.parse().ok());
        Ok(match stage.cloud()?.operation(number.unwrap_or(usize::MAX)) {
            Ok(None) => OperationState::Running,
            Ok(Some(())) => OperationState::Done,
            Err(Some(refusal)) => OperationState::Failed(refused(refusal)),
            Err(None) => return Err(PortError::new(ErrorKind::NotFound, "no such operation")),
        })
    }
}

impl StateStore for Port<'_, '_> {
    async fn load(&mut self) -> Result<State, PortError> {
        let stage = self.stage.borrow();
        self.generation = stage.generation;
        Ok(stage.stored.clone())
    }

    /// Dies before or after the document is written: both look like a conflict, which ends the controller at once.
    async fn save(&mut self, state: &State) -> Result<(), PortError> {
        let mut stage = self.stage.borrow_mut();
        let killed = || Err(PortError::new(ErrorKind::Conflict, "killed"));
        if stage.dies_here() {
            return killed();
        }
        if stage.generation != self.generation {
            return Err(PortError::new(ErrorKind::Conflict, "another controller has changed the state"));
        }
        stage.stored = state.clone();
        stage.generation += 1;
        self.generation = stage.generation;
        stage.saved(state);
        if stage.dies_here() { killed() } else { Ok(()) }
    }
}

impl Journal for Port<'_, '_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        let mut stage = self.stage.borrow_mut();
        let now = stage.world.now();
        if let Some(checker) = &mut stage.checker {
            checker.tick(now, tick);
        }
        stage.count_sizes();
        stage.decisions.add(now, tick);
        stage.settled_until = tick.settled_until;
        stage.foreseen = (tick.decision.next_at, if tick.settled_until.is_some() { 0 } else { stage.foresee(tick) });
        stage.watch.tick(now, tick);
    }
}

impl PolicySource for Port<'_, '_> {
    async fn check(&mut self, _now: DateTime<Utc>) -> PolicyChange {
        PolicyChange::Unchanged
    }
}
