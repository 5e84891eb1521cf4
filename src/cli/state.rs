//! Where the state is kept: the adapter for the place that the command line names.

use chrono::{DateTime, Utc};

use crate::{
    model::State,
    ports::{PortError, StateStore},
    store::{FileStore, ObjectStateStore, objects::BucketObjects},
};

/// A file, or an object in a bucket.
#[derive(Debug)]
pub enum AnyStore {
    /// On this machine.
    File(FileStore),
    /// For all masters of a cluster.
    Object(Box<ObjectStateStore<BucketObjects>>),
}

impl StateStore for AnyStore {
    async fn load(&mut self) -> Result<State, PortError> {
        match self {
            Self::File(store) => store.load().await,
            Self::Object(store) => store.load().await,
        }
    }

    async fn save(&mut self, state: &State) -> Result<(), PortError> {
        match self {
            Self::File(store) => store.save(state).await,
            Self::Object(store) => store.save(state).await,
        }
    }

    async fn keep(&mut self, state: &State, now: DateTime<Utc>) -> Result<(), PortError> {
        match self {
            Self::File(store) => store.keep(state, now).await,
            Self::Object(store) => store.keep(state, now).await,
        }
    }

    async fn release(&mut self) -> Result<(), PortError> {
        match self {
            Self::File(store) => store.release().await,
            Self::Object(store) => store.release().await,
        }
    }
}
