//! An autoscaler for shared YARN clusters with GPUs.
//!
//! # Map
//! A lower layer never names a higher one (`tests/it/tidy.rs` holds this table).
//!
//! | layer | folder | what it is |
//! |---|---|---|
//! | 0 vocabulary | [`policy`], [`model`] | the policy file; what is observed, described, remembered, decided and why |
//! | 1 decision | [`decide`] | from a situation to actions and reasons: pure |
//! | 2 ports | [`ports`] | the traits through which the controller meets the world |
//! | 3 controller | [`controller`] | the loop: look, reconcile, decide, act |
//! | 4 adapters | [`yarn`], [`cloud`], [`store`] | the ports over real things (`process_group` is shared by those that run commands, [`google`] by those that ask Google's services) |
//! | 5 simulator | [`sim`] | the ports over a simulated cluster, cloud and clock; workloads and scenarios |
//! | 6 report | [`report`] | what a simulated run comes to: figures, bounds, tables, one page; text comes out, no file is written |
//! | 6 shell | [`cli`] | commands; the only place where adapters meet |
#![warn(missing_docs)]
#![forbid(unsafe_code)]

pub mod cli;
pub mod cloud;
pub mod controller;
pub mod decide;
pub mod google;
pub mod model;
pub mod policy;
pub mod ports;
mod process_group;
pub mod report;
pub mod sim;
pub mod store;
pub mod yarn;
