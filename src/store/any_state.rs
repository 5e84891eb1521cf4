//! A state store of either kind, for whoever has been told which only at run time.

use chrono::{DateTime, Utc};

use super::{FileStore, ObjectStateStore, objects::AnyObjects};
use crate::{
    model::State,
    ports::{PortError, StateStore},
};

/// The state in a file of this machine's, or in an object.
#[derive(Debug)]
pub enum AnyStateStore {
    /// In a file.
    File(FileStore),
    /// In an object.
    Object(Box<ObjectStateStore<AnyObjects>>),
}

impl AnyStateStore {
    /// Lets go of the state at a clean end, where somebody on another machine would have to wait otherwise: see
    /// [`ObjectStateStore::release`]. A file is let go of when its store is dropped.
    ///
    /// # Errors
    /// As [`ObjectStateStore::release`].
    pub async fn release(&mut self) -> Result<(), PortError> {
        match self {
            Self::File(_) => Ok(()),
            Self::Object(store) => store.release().await,
        }
    }
}

impl StateStore for AnyStateStore {
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
}
