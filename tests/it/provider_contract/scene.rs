//! A provider with two workers in its cloud, and what can be made to go wrong there.

use std::time::Duration;

use yarn_autoscaler::{
    model::{GroupName, Instance, InstanceState},
    ports::{ErrorKind, OperationState, Provider},
};

/// The group that every scene has.
pub const GROUP: GroupName = GroupName::Primary;

/// How often something is looked for that must come: some ten seconds of wall clock, or an hour of simulated time.
pub const LOOKS: usize = 1000;

/// What goes wrong from the first order on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// There is a quota, of as many machines as there are.
    Quota,
    /// There are no machines to be had.
    StockOut,
    /// Orders are refused, with seven seconds to wait.
    Throttled,
    /// Orders are forbidden.
    Denied,
    /// The first order is taken, and its answer lost.
    LostAnswer,
    /// Nothing is answered.
    Hangs,
}

impl Trouble {
    /// The kind of failure that it is to be told as.
    pub fn kind(self) -> ErrorKind {
        match self {
            Self::Quota => ErrorKind::Quota,
            Self::StockOut => ErrorKind::StockOut,
            Self::Throttled => ErrorKind::Throttled { retry_after: Some(Duration::from_secs(7)) },
            Self::Denied => ErrorKind::Denied,
            Self::LostAnswer | Self::Hangs => ErrorKind::Transient,
        }
    }
}

/// A provider over a cloud of its own, in which two workers of [`GROUP`] run.
pub trait Scene: Sized {
    /// What is held against the promises.
    type Provider: Provider;

    /// `None`: this cannot go wrong here.
    async fn open(trouble: Option<Trouble>) -> Option<Self>;

    /// The provider.
    fn provider(&self) -> &Self::Provider;

    /// Lets a little time pass.
    async fn pass(&self);

    /// The trouble ends.
    async fn heal(&mut self);

    /// Another provider over the same cloud, which knows nothing of what the first one did.
    async fn restart(&mut self);

    /// Where nothing goes wrong.
    async fn sound() -> Self {
        Self::open(None).await.expect("a scene without trouble")
    }

    /// What an operation comes to.
    async fn end(&self, operation: &str) -> OperationState {
        for _ in 0..LOOKS {
            match self.provider().poll(operation).await.unwrap() {
                OperationState::Running => self.pass().await,
                ended => return ended,
            }
        }
        panic!("{operation} does not end");
    }

    /// The workers of the group, as soon as so many are there, all run, and none is leaving any more.
    async fn workers(&self, count: usize) -> Vec<Instance> {
        let mut instances = Vec::new();
        for _ in 0..LOOKS {
            instances = self.provider().describe().await.unwrap().groups[&GROUP].instances.clone();
            if instances.len() == count && instances.iter().all(|one| one.state == InstanceState::Running) {
                return instances;
            }
            self.pass().await;
        }
        panic!("there are not {count} workers: {instances:?}");
    }
}
