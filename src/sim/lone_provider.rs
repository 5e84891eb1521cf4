//! The simulated provider by itself, with nobody at the controls: for whoever holds it against what is promised of every
//! provider.

use std::{cell::RefCell, fmt, sync::Arc, time::Duration};

use super::{
    Unwatched, ms,
    ports::{Port, Stage},
    run::Run,
    world::World,
};
use crate::{
    model::{Capacity, GroupName, SizeChange},
    ports::{OperationState, PortError, Provider},
};

/// A run's provider. Its time stands still until it is told to pass.
pub struct LoneProvider {
    stage: RefCell<Stage<'static>>,
}

impl fmt::Debug for LoneProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoneProvider")
    }
}

impl LoneProvider {
    /// The provider of this run, at its first instant.
    pub fn new(run: &Run) -> Self {
        let world = World::new(Arc::clone(&run.scenario), Arc::clone(&run.workload), run.seed);
        // Of no size: nothing is leaked.
        let watch = Box::leak(Box::new(Unwatched));
        Self { stage: RefCell::new(Stage::new(world, run, false, watch)) }
    }

    /// Lets so much time pass.
    pub fn pass(&self, time: Duration) {
        let world = &mut self.stage.borrow_mut().world;
        world.advance(world.now() + ms(time));
    }

    fn port(&self) -> Port<'_, 'static> {
        Port::new(&self.stage)
    }
}

impl Provider for LoneProvider {
    async fn describe(&self) -> Result<Arc<Capacity>, PortError> {
        self.port().describe().await
    }

    async fn create(&self, request_id: &str, group: GroupName, count: u32) -> Result<String, PortError> {
        self.port().create(request_id, group, count).await
    }

    async fn delete(&self, request_id: &str, group: GroupName, instances: &[String]) -> Result<String, PortError> {
        self.port().delete(request_id, group, instances).await
    }

    async fn resize(&self, request_id: &str, change: SizeChange, timeout: Duration) -> Result<String, PortError> {
        self.port().resize(request_id, change, timeout).await
    }

    async fn poll(&self, operation_id: &str) -> Result<OperationState, PortError> {
        self.port().poll(operation_id).await
    }
}
