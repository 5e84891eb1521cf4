//! A stand-in for Google's services, over one simulated cloud: Dataproc, Compute Engine, Cloud Storage, the metadata
//! server and what hands out tokens, all under one address on this machine.
//!
//! It keeps state, and the services' rules: what one request orders, the next ones see. It runs on a thread of its own,
//! so that tests with and without a runtime, and other processes, can talk to it. Dropping it ends it.
#![expect(dead_code, reason = "each test uses a part of it")]

mod bytes_sums;
mod cloud;
mod compute;
mod compute_groups;
mod compute_orders;
mod cut_connection;
mod dataproc;
mod dataproc_body;
mod dataproc_orders;
mod groups;
mod handles;
mod http;
mod identity;
mod machines;
mod misbehave;
mod operations;
mod options;
mod policies;
mod server;
mod storage;
mod storage_upload;

use std::{
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, mpsc},
    thread::{self, JoinHandle},
};

use tokio::sync::oneshot;

use cloud::Cloud;
use server::Shared;

pub use self::{
    handles::{ClusterHandle, GroupHandle, until},
    http::Recorded,
    misbehave::{Misbehaviour, Rule},
    options::{ClusterSpec, FakeOptions, Gpus, GroupSpec},
};

/// Machines that come and go as the cloud orders: for tests that start a real NodeManager on each.
pub trait Machines: Send {
    /// These have booted.
    fn start(&mut self, names: &[String]);
    /// These are being deleted, or were taken away.
    fn stop(&mut self, names: &[String]);
}

/// No machines behind the names.
struct NoMachines;

impl Machines for NoMachines {
    fn start(&mut self, _: &[String]) {}
    fn stop(&mut self, _: &[String]) {}
}

/// What machines are told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MachineEvent {
    Start(Vec<String>),
    Stop(Vec<String>),
}

/// The running fake; ends when dropped.
pub struct FakeGoogle {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl FakeGoogle {
    /// Starts with clusters, groups and buckets as said, and no machines behind the names.
    pub fn start(options: FakeOptions) -> Self {
        Self::start_with(options, NoMachines)
    }

    /// The same, with machines. They are told in order, on a thread of their own; those that are there from the start
    /// are started, too.
    pub fn start_with(options: FakeOptions, mut machines: impl Machines + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (events, told) = mpsc::channel();
        let shared = Arc::new(Shared::new(Cloud::new(options, &format!("http://{address}")), events));
        let (stop, stopped) = oneshot::channel();
        let served = shared.clone();
        let serving = thread::spawn(move || server::run(listener, served, stopped));
        let telling = thread::spawn(move || {
            for event in told {
                match event {
                    MachineEvent::Start(names) => machines.start(&names),
                    MachineEvent::Stop(names) => machines.stop(&names),
                }
            }
        });
        Self { address, shared, stop: Some(stop), threads: vec![serving, telling] }
    }

    /// The one address of all services, `http://127.0.0.1:PORT/`: Dataproc under `v1/`, Compute Engine under
    /// `compute/v1/`, Cloud Storage under `storage/v1/` and `upload/storage/v1/`, the metadata server under
    /// `computeMetadata/v1/`, tokens at `token`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Host and port, as `GCE_METADATA_HOST` wants them.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// From now on; of several rules that match, the first counts.
    pub fn misbehave(&self, rule: Rule) {
        self.shared.rules.lock().expect("lock").push(rule);
    }

    /// Everything requested so far, in order.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.recorded.lock().expect("lock").clone()
    }

    /// A cluster, to read and to alter.
    pub fn cluster(&self, name: &str) -> ClusterHandle<'_> {
        ClusterHandle::new(self, name)
    }

    /// The simulated cloud, brought to this moment.
    fn cloud(&self) -> MutexGuard<'_, Cloud> {
        self.shared.cloud_now()
    }
}

impl Drop for FakeGoogle {
    fn drop(&mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.shared.close();
        for thread in self.threads.drain(..) {
            // What a thread died of was printed by it.
            drop(thread.join());
        }
    }
}

/// Serialises a test's own look at shared state.
type Guarded<T> = Mutex<T>;
