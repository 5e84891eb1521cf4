//! What somebody would look at, and do, beside the daemon on a real cluster: YARN's own answers, small applications, the
//! provider's requests, the decision log.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    daemon::decisions,
    lab::{Lab, eventually},
};

/// Longer than anything takes on a busy machine.
pub const SOON: Duration = Duration::from_secs(60);

/// The host of the lab's worker `n`.
pub fn host(lab: &Lab, n: u32) -> String {
    format!("{}.{}", lab.subnet, 11 + n)
}

/// One request to a ResourceManager's REST; the answer's status and JSON.
pub fn rest(url: &str, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let authority = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    // 1.0, so that the answer is not chunked and ends with the connection.
    let head = format!("{method} {path} HTTP/1.0\r\nHost: {authority}\r\nAccept: application/json\r\n");
    write!(stream, "{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// An application that is nothing but a master of this size, which sleeps: demand in milliseconds and without a JVM.
/// YARN counts it as failed at its end, because it never registers.
pub fn submit_sleeper(lab: &Lab, memory_mb: u64, seconds: u64) -> String {
    let (_, new) = rest(&lab.rm_url, "POST", "/ws/v1/cluster/apps/new-application?user.name=yarn", &Value::Null);
    let id = new["application-id"].as_str().unwrap().to_owned();
    let application = json!({
        "application-id": id, "application-name": "sleeper", "application-type": "YARN", "max-app-attempts": 1,
        "am-container-spec": {"commands": {"command": format!("exec sleep {seconds}")}},
        "resource": {"memory": memory_mb, "vCores": 1},
    });
    let (status, answer) = rest(&lab.rm_url, "POST", "/ws/v1/cluster/apps?user.name=yarn", &application);
    assert_eq!(status, 202, "{answer}");
    id
}

/// Ends an application.
pub fn end(lab: &Lab, id: &str) {
    let path = format!("/ws/v1/cluster/apps/{id}/state?user.name=yarn");
    rest(&lab.rm_url, "PUT", &path, &json!({"state": "KILLED"}));
}

/// An application as YARN lists it.
pub fn application(lab: &Lab, id: &str) -> Value {
    lab.get(&format!("/ws/v1/cluster/apps/{id}"))["app"].clone()
}

/// The host on which an application's master runs; `None` while none does.
pub fn master_host(lab: &Lab, id: &str) -> Option<String> {
    let address = application(lab, id)["amHostHttpAddress"].as_str()?.to_owned();
    address.split(':').next().map(str::to_owned).filter(|host| !host.is_empty())
}

/// A node as YARN lists it; null where it does not.
pub fn node(lab: &Lab, host: &str) -> Value {
    lab.nodes().into_iter().find(|node| node["nodeHostName"] == host).unwrap_or(Value::Null)
}

/// What a node may hand out: memory in MB, cores, GPUs.
pub fn total(node: &Value) -> (u64, u64, u64) {
    let of = |name: &str| {
        let kinds = node["totalResource"]["resourceInformations"]["resourceInformation"].as_array()?;
        kinds.iter().find(|kind| kind["name"] == name)?["value"].as_u64()
    };
    (of("memory-mb").unwrap_or(0), of("vcores").unwrap_or(0), of("yarn.io/gpu").unwrap_or(0))
}

/// Whether YARN gives this node nothing new.
pub fn is_cordoned(node: &Value) -> bool {
    node["state"] == "RUNNING" && total(node).0 <= 1
}

/// What the masters of gangs have recorded: all events of this kind.
pub fn events(lab: &Lab, kind: &str) -> Vec<Value> {
    let files = std::fs::read_dir(lab.dir.join("launcher")).unwrap().map(|entry| entry.unwrap().path());
    let records = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    let lines: String = records.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == kind).collect()
}

/// Waits until so many gangs have all their members.
#[track_caller]
pub fn await_working(lab: &Lab, gangs: usize) {
    eventually("the gangs work", SOON, || events(lab, "working").len() >= gangs);
}

/// All actions of this kind that were decided so far, oldest first.
pub fn actions(lab: &Lab, kind: &str) -> Vec<Value> {
    let all = decisions(lab).into_iter().flat_map(|decision| decision["actions"].as_array().unwrap().clone());
    all.filter(|action| action["action"] == kind).collect()
}

/// Whether this reason has ever been given.
pub fn was_said(lab: &Lab, reason: &str) -> bool {
    decisions(lab).iter().any(|decision| has_reason(decision, reason))
}

/// Whether this decision gives this reason.
pub fn has_reason(decision: &Value, reason: &str) -> bool {
    decision["reasons"].as_array().unwrap().iter().any(|one| one["reason"] == reason)
}

/// All that went wrong or was noticed so far, in the log's words.
pub fn notes(lab: &Lab) -> Vec<String> {
    let notes =
        decisions(lab).into_iter().flat_map(|decision| decision["notes"].as_array().cloned().unwrap_or_default());
    notes.map(|note| note.as_str().unwrap().to_owned()).collect()
}

/// The exclude file's text.
pub fn excluded(lab: &Lab) -> String {
    std::fs::read_to_string(&lab.exclude_file).unwrap()
}

/// The lab's provider behind a script that writes every request down, with the time at which it came.
pub struct Recorder {
    log: PathBuf,
    command: String,
}

impl Recorder {
    pub fn of(lab: &Lab) -> Self {
        let (log, script) = (lab.dir.join("requests.log"), lab.dir.join("recorder"));
        let provider = lab.provider_command();
        let text = format!(
            "request=$(cat)\nprintf '%s %s\\n' \"$(date +%s%3N)\" \"$request\" >>'{}'\nprintf '%s' \"$request\" | {provider}\n",
            log.display()
        );
        std::fs::write(&script, text).unwrap();
        Self { log, command: format!("sh {}", script.display()) }
    }

    /// The words for `--provider-command`.
    pub fn command(&self) -> Option<String> {
        Some(self.command.clone())
    }

    /// All requests of this method so far: when, in ms since 1970, and which.
    pub fn requests(&self, method: &str) -> Vec<(u64, Value)> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let parse = |line: &str| {
            let (at, request) = line.split_once(' ')?;
            Some((at.parse().ok()?, serde_json::from_str::<Value>(request).ok()?))
        };
        text.lines().filter_map(parse).filter(|(_, request)| request["method"] == method).collect()
    }

    /// How many different orders of this method were given, however often each.
    pub fn orders(&self, method: &str) -> usize {
        let requests = self.requests(method);
        let ids: std::collections::BTreeSet<_> = requests.iter().map(|(_, one)| one["requestId"].to_string()).collect();
        ids.len()
    }

    /// Waits for so many more ticks: each of them describes.
    #[track_caller]
    pub fn await_ticks(&self, more: usize) {
        let before = self.requests("describe").len();
        eventually("the ticks go on", SOON, || self.requests("describe").len() >= before + more);
    }
}
