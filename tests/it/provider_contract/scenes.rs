//! The providers, each over a cloud of its own: a script, the simulator, the stand-in for Google's services.

use std::{sync::Arc, time::Duration};

use tempfile::TempDir;
use yarn_autoscaler::{
    cloud::{
        CommandProvider, DataprocProvider, WorkerNames,
        dataproc::{ScaleDown, Target},
    },
    google::{Api, Tokens, endpoint},
    sim::{lone_provider::LoneProvider, scenario::Fault},
};

use super::scene::{GROUP, Scene, Trouble};
use crate::{
    fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule},
    sim_build::{WORKER, cluster, fault, plan, tony},
};

/// How long a call may take where nothing is answered.
const SHORT: Duration = Duration::from_millis(300);

/// The provider `command` over a script. `OVERLAPS`: it takes an order beside another one.
pub struct Scripted<const OVERLAPS: bool> {
    folder: TempDir,
    provider: CommandProvider,
}

impl<const OVERLAPS: bool> Scripted<OVERLAPS> {
    fn provider_in(folder: &TempDir, trouble: Option<Trouble>) -> CommandProvider {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/provider_contract/scripted.py");
        let trouble = trouble.map_or_else(String::new, |trouble| format!("{trouble:?}"));
        let overlaps = if OVERLAPS { "overlaps" } else { "" };
        let folder = folder.path().to_str().unwrap();
        let argv = ["python3", script, folder, &trouble, overlaps].map(str::to_owned);
        let limit = if argv[3] == "Hangs" { SHORT } else { Duration::from_secs(60) };
        CommandProvider::new(argv.to_vec(), limit)
    }
}

impl<const OVERLAPS: bool> Scene for Scripted<OVERLAPS> {
    type Provider = CommandProvider;

    async fn open(trouble: Option<Trouble>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let provider = Self::provider_in(&folder, trouble);
        Some(Self { folder, provider })
    }

    fn provider(&self) -> &CommandProvider {
        &self.provider
    }

    /// The script's time goes on as it is polled.
    async fn pass(&self) {}

    async fn heal(&mut self) {
        self.restart().await;
    }

    async fn restart(&mut self) {
        self.provider = Self::provider_in(&self.folder, None);
    }
}

/// The simulator's provider. `OVERLAPS`: it takes an order beside another one.
pub struct Simulated<const OVERLAPS: bool> {
    provider: LoneProvider,
}

impl<const OVERLAPS: bool> Scene for Simulated<OVERLAPS> {
    type Provider = LoneProvider;

    async fn open(trouble: Option<Trouble>) -> Option<Self> {
        let mut scenario = cluster(2, WORKER);
        scenario.cloud.overlaps = OVERLAPS;
        let of_a_minute = |what| vec![fault(0, 60, what)];
        match trouble {
            None => {}
            Some(Trouble::Quota) => scenario.cloud.quota = Some(2),
            Some(Trouble::StockOut) => scenario.events = of_a_minute(Fault::StockOut(GROUP)),
            Some(Trouble::Throttled) => {
                scenario.events = of_a_minute(Fault::Throttled(Some(Duration::from_secs(7))));
            }
            Some(Trouble::LostAnswer) => scenario.events = of_a_minute(Fault::LostAcknowledgements),
            // Nobody may not there, and it waits for nothing.
            Some(Trouble::Denied | Trouble::Hangs) => return None,
        }
        let provider = LoneProvider::new(&plan(scenario, Vec::new(), tony()));
        provider.pass(Duration::from_secs(1));
        Some(Self { provider })
    }

    fn provider(&self) -> &LoneProvider {
        &self.provider
    }

    async fn pass(&self) {
        self.provider.pass(Duration::from_secs(5));
    }

    async fn heal(&mut self) {
        self.provider.pass(Duration::from_secs(120));
    }

    /// It remembers nothing but its cloud.
    async fn restart(&mut self) {}
}

/// The stand-in, with what goes wrong in it with these orders: method and part of the path.
fn google(trouble: Option<Trouble>, options: FakeOptions, orders: [(&'static str, &str); 2]) -> FakeGoogle {
    let google = FakeGoogle::start(options);
    let what = match trouble {
        Some(Trouble::Throttled) => Misbehaviour::Throttled(7),
        Some(Trouble::Denied) => Misbehaviour::Denied("resource.update"),
        Some(Trouble::LostAnswer) => Misbehaviour::DroppedAfter,
        Some(Trouble::Hangs) => {
            let any = Rule { method: None, path: "*".into(), times: usize::MAX, what: Misbehaviour::Silence };
            google.misbehave(any);
            return google;
        }
        _ => return google,
    };
    for (method, path) in orders {
        google.misbehave(Rule::once(method, path, what.clone()));
    }
    google
}

fn api(google: &FakeGoogle, trouble: Option<Trouble>) -> Api {
    let limit = if trouble == Some(Trouble::Hangs) { SHORT } else { Duration::from_secs(60) };
    Api::new(endpoint(&google.url()).unwrap(), Arc::new(Tokens::anonymous()), limit).unwrap()
}

/// Options with this trouble, where it is one of the cloud's.
fn options(trouble: Option<Trouble>) -> FakeOptions {
    let mut options = FakeOptions::default();
    match trouble {
        Some(Trouble::Quota) => drop(options.quotas.insert("NVIDIA_T4_GPUS".into(), 2)),
        Some(Trouble::StockOut) => drop(options.stock_outs.insert(options.zone.clone())),
        _ => {}
    }
    options
}

async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

/// The provider `dataproc`, which deletes workers by name.
pub struct Dataproc {
    google: FakeGoogle,
    provider: DataprocProvider,
}

fn dataproc(google: &FakeGoogle, trouble: Option<Trouble>) -> DataprocProvider {
    let target = Target { project: "p".into(), region: "us-central1".into(), cluster: "gpu1".into() };
    DataprocProvider::new(api(google, trouble), target, ScaleDown::Repair, WorkerNames::default())
}

impl Scene for Dataproc {
    type Provider = DataprocProvider;

    async fn open(trouble: Option<Trouble>) -> Option<Self> {
        let google = google(trouble, options(trouble), [("PATCH", "clusters/gpu1"), ("POST", ":repair")]);
        let provider = dataproc(&google, trouble);
        Some(Self { google, provider })
    }

    fn provider(&self) -> &DataprocProvider {
        &self.provider
    }

    async fn pass(&self) {
        a_moment().await;
    }

    async fn heal(&mut self) {
        self.google.alter(|options| options.stock_outs.clear());
    }

    async fn restart(&mut self) {
        self.provider = dataproc(&self.google, None);
    }
}
