//! The controller's ports over the simulated world. While the controller sleeps, the world goes on: no future of these
//! ever waits, so that the daemon's own loop runs to its end in a single poll; unless it is killed, which is a future
//! that never comes back.

use std::{cell::RefCell, future::pending, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    Ms, Watch,
    journal::Decisions,
    scenario::{Fault, Scenario},
    world::{Refusal, World, ms},
};
use crate::{
    decide,
    model::{Capacity, GroupName, History, Node, NodeId, Observation, Resources, State},
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
    /// Whether looks are left out that would say the same as the last one.
    skips: bool,
    /// Whether the last look said that later ones decide the same, and over which time samples must be alike for that.
    settled: Option<Ms>,
    /// After a stretch that was skipped: until then looks fill the window again, and would have said the same as the last
    /// one before it.
    refills_until: Ms,
    /// The run ends here; `None`: not known before the last job has ended.
    pub(super) ends_at: Option<Ms>,
    cut_off_at: Ms,
    /// Which fault kills the controller, and how many places where it may die have passed since that began.
    dying: Option<(usize, u32)>,
    /// The controller has been killed: until when.
    pub(super) dead_until: Option<Ms>,
    killed_by: Vec<usize>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        world: World,
        scenario: Arc<Scenario>,
        last_submit: Ms,
        skips: bool,
        watch: &'a mut dyn Watch,
    ) -> Self {
        let cut_off_at = (last_submit * PATIENCE_FACTOR).max(last_submit + ms(PATIENCE));
        Self {
            world,
            decisions: Decisions::default(),
            stored: State::default(),
            generation: 0,
            watch,
            skips,
            settled: None,
            refills_until: 0,
            ends_at: scenario.duration.map(ms),
            cut_off_at,
            dying: None,
            dead_until: None,
            killed_by: Vec::new(),
            scenario,
        }
    }

    /// The controller's clock.
    fn clock(&self) -> DateTime<Utc> {
        let now = i64::try_from(self.world.now()).unwrap_or(i64::MAX);
        self.scenario.start + TimeDelta::milliseconds(now + self.world.clock_offset_ms())
    }

    /// The world's time at this reading of the controller's clock.
    fn world_time(&self, at: DateTime<Utc>) -> Ms {
        let since = (at - self.scenario.start).num_milliseconds() - self.world.clock_offset_ms();
        Ms::try_from(since).unwrap_or(0)
    }

    /// The controller sleeps until `at`.
    fn sleep(&mut self, at: DateTime<Utc>) -> Wake {
        let from = self.world.now();
        let mut until = self.world_time(at).max(from);
        if let Some(window) = self.settled {
            until = self.skip(from, until, window);
        }
        self.pass(until)
    }

    /// The world goes on until then, or to its end.
    pub(super) fn pass(&mut self, until: Ms) -> Wake {
        let from = self.world.now();
        self.world.advance(until.min(self.ends_at.unwrap_or(Ms::MAX)));
        if self.ends_at.is_none() && self.world.is_done() {
            self.ends_at = Some(self.world.last_end() + ms(self.scenario.settle));
        }
        let now = self.world.now();
        self.watch.slept(from, now);
        if now >= self.ends_at.unwrap_or(self.cut_off_at) { Wake::Stop } else { Wake::Tick }
    }

    /// Looks that would all say the same until something happens are not made, but for those that fill the window again
    /// before it happens: what is decided then is the same, bit for bit. Returns when to wake.
    fn skip(&mut self, from: Ms, until: Ms, window: Ms) -> Ms {
        let pace = (until - from).max(1);
        let happens = self.world.next_at().unwrap_or(Ms::MAX);
        let ends = self.ends_at.unwrap_or(if self.world.is_done() { Ms::MAX } else { self.cut_off_at });
        let free = happens.min(ends).saturating_sub(until).saturating_sub(window + 2 * pace);
        if happens == Ms::MAX && self.ends_at.is_none() && !self.world.is_done() {
            // Nothing will ever happen: what waits now waits for ever.
            self.ends_at = Some(until);
            return until;
        }
        // What was ordered or told will not be so again, and of a window that is thinned other samples would be kept.
        let thins = History::thins(Duration::from_millis(window), Duration::from_millis(pace));
        if !self.skips || thins || !self.decisions.is_quiet() {
            return until;
        }
        let looks = free / pace;
        let until = until + looks * pace;
        if looks > 0 {
            self.decisions.repeat(looks, until - pace);
            self.refills_until = happens.min(ends);
        }
        until
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
    fn order(&mut self, order: impl FnOnce(&mut World) -> Result<usize, Refusal>) -> Result<String, PortError> {
        let throttled = self.world.throttled();
        let answer = match throttled {
            Some(retry_after) => Err(PortError::new(ErrorKind::Throttled { retry_after }, "429 Too Many Requests")),
            None => self.cloud().and_then(|world| order(world).map_err(refused)),
        };
        if answer.is_err() {
            self.world.counts().orders_failed += 1;
        }
        let number = answer?;
        if self.world.faults().any(|fault| *fault == Fault::LostAcknowledgements) {
            return Err(PortError::transient("connection reset before the answer came"));
        }
        Ok(format!("operation-{number}"))
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

    async fn order(&self, order: impl FnOnce(&mut World) -> Result<usize, Refusal>) -> Result<String, PortError> {
        self.boundary().await;
        let answer = self.stage.borrow_mut().order(order);
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
        self.order(|world| world.create(request_id, group, count)).await
    }

    async fn delete(&self, request_id: &str, _: GroupName, instances: &[String]) -> Result<String, PortError> {
        self.order(|world| world.delete(request_id, instances)).await
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
    fn load(&mut self) -> Result<State, PortError> {
        let stage = self.stage.borrow();
        self.generation = stage.generation;
        Ok(stage.stored.clone())
    }

    /// Dies before or after the document is written: both look like a conflict, which ends the controller at once.
    fn save(&mut self, state: &State) -> Result<(), PortError> {
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
        if stage.dies_here() { killed() } else { Ok(()) }
    }
}

impl Journal for Port<'_, '_> {
    fn tick(&mut self, tick: &Tick<'_>) {
        let mut stage = self.stage.borrow_mut();
        let now = stage.world.now();
        stage.settled = tick.settled.then(|| ms(decide::keep_samples(tick.policy, tick.situation.poll_interval)));
        if now < stage.refills_until {
            return stage.decisions.repeat(1, now);
        }
        stage.decisions.add(now, tick);
        stage.watch.tick(now, tick);
    }
}

impl PolicySource for Port<'_, '_> {
    fn check(&mut self) -> PolicyChange {
        PolicyChange::Unchanged
    }
}
