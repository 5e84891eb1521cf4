//! A stand-in for a ResourceManager's web port: as many nodes and as much pending as a test says. Orders reach nobody.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use serde_json::{Value, json};

use crate::fake_google::Machines;

/// What a node holds.
pub const NODE_MB: u64 = 24_000;

/// What it answers.
#[derive(Debug)]
pub struct Told {
    pub ha_state: &'static str,
    /// Memory in use, by host.
    pub nodes: BTreeMap<String, u64>,
    pub pending_mb: u64,
    /// The property that names the exclude file.
    pub exclude_path: String,
    /// Every connection is closed without an answer.
    pub is_down: bool,
}

/// The running stand-in. Its thread ends with the process.
#[derive(Clone, Debug)]
pub struct FakeYarn {
    address: SocketAddr,
    told: Arc<Mutex<Told>>,
}

/// Workers of the cloud, each with a NodeManager, and what YARN calls them.
impl Machines for FakeYarn {
    fn start(&mut self, names: &[String]) {
        let mut told = self.told();
        for name in names.iter().filter(|name| name.contains("w-")) {
            told.nodes.insert(host_of(name), 0);
        }
    }

    fn stop(&mut self, names: &[String]) {
        let mut told = self.told();
        for name in names {
            told.nodes.remove(&host_of(name));
        }
    }
}

/// What YARN calls a machine of the stand-in for Google's services.
pub fn host_of(name: &str) -> String {
    format!("{name}.us-central1-a.c.p.internal")
}

impl FakeYarn {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let told = Told {
            ha_state: "ACTIVE",
            nodes: BTreeMap::new(),
            pending_mb: 0,
            exclude_path: String::new(),
            is_down: false,
        };
        let told = Arc::new(Mutex::new(told));
        let of_thread = Arc::clone(&told);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Whoever asked may hang up at any time.
                drop(answer(stream, &of_thread));
            }
        });
        Self { address, told }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// To read and to alter.
    pub fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().expect("lock")
    }
}

fn answer(mut stream: TcpStream, told: &Mutex<Told>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let told = told.lock().expect("lock");
    if told.is_down {
        return Ok(());
    }
    let path = first.split(' ').nth(1).unwrap_or_default();
    let body = told.document(path).to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {length}\r\n\r\n{body}")
}

impl Told {
    fn document(&self, path: &str) -> Value {
        let used: u64 = self.nodes.values().sum();
        match path.split('?').next().unwrap_or_default() {
            "/ws/v1/cluster/info" => {
                json!({"clusterInfo": {"startedOn": 5, "haState": self.ha_state, "resourceManagerVersion": "3.3.6"}})
            }
            "/ws/v1/cluster/metrics" => json!({"clusterMetrics": {
                "pendingMB": self.pending_mb, "pendingVirtualCores": self.pending_mb / 4096, "reservedMB": 0,
                "reservedVirtualCores": 0, "allocatedMB": used, "allocatedVirtualCores": used / 4096,
                "containersPending": self.pending_mb / 4096, "containersAllocated": used / 4096,
                "activeNodes": self.nodes.len(),
            }}),
            "/ws/v1/cluster/nodes" => {
                json!({"nodes": {"node": self.nodes.iter().map(node).collect::<Vec<_>>()}})
            }
            "/ws/v1/cluster/apps" => json!({"apps": {"app": self.application()}}),
            "/conf" => json!({"property": {
                "key": "yarn.resourcemanager.nodes.exclude-path", "value": self.exclude_path, "isFinal": false
            }}),
            _ => json!({}),
        }
    }

    /// All that is pending is one application's.
    fn application(&self) -> Vec<Value> {
        let containers = self.pending_mb / 4096;
        let ask = json!({
            "priority": 1, "resourceName": "*", "numContainers": containers, "capability": {"memory": 4096, "vCores": 1}
        });
        let application = json!({
            "id": "application_5_0001", "name": "a", "applicationType": "TONY", "queue": "default", "state": "RUNNING",
            "runningContainers": 1, "resourceRequests": [ask],
        });
        (containers > 0).then_some(application).into_iter().collect()
    }
}

fn node((host, used): (&String, &u64)) -> Value {
    json!({
        "id": format!("{host}:8041"), "nodeHostName": host, "state": "RUNNING", "healthReport": "",
        "numContainers": used / 4096, "usedMemoryMB": used, "availMemoryMB": NODE_MB - used,
        "usedVirtualCores": used / 4096, "availableVirtualCores": 8 - used / 4096,
    })
}
