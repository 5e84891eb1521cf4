//! YARN as an adapter of the [`crate::ports::Cluster`] port.
