//! Google's own clients drive the stand-in for Google's services: so that it is believed when our adapters do. What
//! each client sends for the same order is looked at, too.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::Value;

use crate::fake_google::{FakeGoogle, FakeOptions, GroupSpec};

/// Where `tests/official-clients/install` puts Google's clients.
const PYTHON: &str = "build/google-clients/bin/python";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Runs a script of `tests/official-clients`; it fails with what the script says.
fn python(script: &str, fake: &FakeGoogle) {
    let python = root().join(PYTHON);
    assert!(python.exists(), "Google's clients are missing: install them with: tests/official-clients/install");
    let script = root().join("tests/official-clients").join(script);
    let run = Command::new(python).arg("-B").arg(&script).arg(fake.url()).current_dir(root()).output();
    let run = run.expect("Python starts");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert!(run.status.success(), "{}\n{out}\n{err}", script.display());
}

/// Requests of this method whose path ends so: their queries.
fn queries(fake: &FakeGoogle, method: &str, end: &str) -> Vec<String> {
    let all = fake.requests().into_iter();
    all.filter(|seen| seen.method == method && seen.path.ends_with(end)).map(|seen| seen.query).collect()
}

#[test]
fn dataproc_client_for_python() {
    let fake = FakeGoogle::start(FakeOptions { drain_takes: Duration::from_secs(3600), ..FakeOptions::default() });
    python("dataproc.py", &fake);
    let patches = queries(&fake, "PATCH", "/v1/projects/p/regions/us-central1/clusters/gpu1");
    assert!(patches[0].contains("updateMask=config.secondaryWorkerConfig.numInstances"), "{patches:?}");
    assert!(patches[0].contains("gracefulDecommissionTimeout=900s"), "{patches:?}");
    assert!(patches[2].contains("config.workerConfig.numInstances%2Cconfig.secondaryWorkerConfig"), "{patches:?}");
}

#[test]
fn compute_client_for_python() {
    let regional = GroupSpec { is_regional: true, is_paginated: true, ..GroupSpec::new("m2", 0) };
    let groups = vec![GroupSpec::new("m1", 2), regional];
    let mut options = FakeOptions { groups, ..FakeOptions::default() };
    options.stock_outs.insert("us-central1-b".into());
    python("compute.py", &FakeGoogle::start(options));
}

#[test]
fn storage_client_for_python() {
    python("storage.py", &FakeGoogle::start(FakeOptions::default()));
}

/// `gcloud` with a configuration of its own, every service at the stand-in; `None`, said aloud, where it is not
/// installed: it is in no package registry, and the clients for Python make the same calls.
struct Gcloud {
    folder: tempfile::TempDir,
    url: String,
}

impl Gcloud {
    fn at(fake: &FakeGoogle) -> Option<Self> {
        if Command::new("gcloud").arg("--version").output().is_err() {
            println!("NOT RUN: gcloud is not installed here; the clients for Python cover its calls");
            // Straight to the terminal, as a test that passes is not heard otherwise.
            drop(std::fs::write("/dev/stderr", "\nNOT RUN: gcloud is not installed here: its tests say nothing\n"));
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("token"), fake.token()).expect("a file");
        Some(Self { folder, url: fake.url() })
    }

    /// What the command prints; it fails with what it says.
    fn run(&self, command: &str) -> String {
        let services = [("DATAPROC", ""), ("COMPUTE", "compute/v1/"), ("STORAGE", "storage/v1/")];
        let endpoint = |(service, path): (&str, &str)| {
            (format!("CLOUDSDK_API_ENDPOINT_OVERRIDES_{service}"), format!("{}{path}", self.url))
        };
        let words = shlex::split(command).expect("words");
        let run = Command::new("gcloud")
            .args(words)
            .current_dir(self.folder.path())
            .envs(services.map(endpoint))
            .env("CLOUDSDK_CONFIG", self.folder.path())
            .env("CLOUDSDK_AUTH_ACCESS_TOKEN_FILE", self.folder.path().join("token"))
            .env("CLOUDSDK_CORE_PROJECT", "p")
            .env("CLOUDSDK_CORE_DISABLE_PROMPTS", "1")
            .env("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "true")
            .env("CLOUDSDK_DATAPROC_REGION", "us-central1")
            .env("CLOUDSDK_COMPUTE_ZONE", "us-central1-a")
            .output()
            .expect("gcloud starts");
        let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "gcloud {command}\n{out}\n{err}");
        out.into_owned()
    }

    fn json(&self, command: &str) -> Value {
        let out = self.run(&format!("{command} --format=json"));
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("gcloud {command}: {error}: {out}"))
    }
}

/// Tokens are demanded: what `gcloud` sends is the token of its file.
fn demanding() -> FakeOptions {
    FakeOptions { tokens_demanded: true, groups: vec![GroupSpec::new("m1", 1)], ..FakeOptions::default() }
}

#[test]
fn gcloud_drives_clusters_and_policies() {
    let fake = FakeGoogle::start(demanding());
    let Some(gcloud) = Gcloud::at(&fake) else { return };
    gcloud.run("dataproc clusters update gpu1 --num-secondary-workers=3 --graceful-decommission-timeout=15m");
    let cluster = gcloud.json("dataproc clusters describe gpu1");
    assert_eq!(cluster["config"]["secondaryWorkerConfig"]["numInstances"], 3);
    let names = fake.cluster("gpu1").secondaries();
    let pool = format!("id=SECONDARY_WORKER_POOL,repair-action=delete,instance-names={};{}", names[0], names[2]);
    gcloud.run(&format!("dataproc clusters repair gpu1 --node-pool='{pool}' --graceful-decommission-timeout=0s"));
    assert_eq!(fake.cluster("gpu1").secondaries_wanted(), 1);
    std::fs::write(gcloud.folder.path().join("policy.yaml"), POLICY).expect("a file");
    gcloud.run("dataproc autoscaling-policies import pol1 --source=policy.yaml");
    gcloud.run("dataproc autoscaling-policies import pol1 --source=policy.yaml");
    let exported = gcloud.run("dataproc autoscaling-policies export pol1");
    assert!(exported.contains("cooldownPeriod: 240s") && !exported.contains("MinWorkerFraction"), "{exported}");
    gcloud.run("dataproc clusters update gpu1 --autoscaling-policy=pol1");
    let policy = gcloud.json("dataproc clusters describe gpu1")["config"]["autoscalingConfig"]["policyUri"].clone();
    assert_eq!(policy, "projects/p/regions/us-central1/autoscalingPolicies/pol1");
    gcloud.run("dataproc clusters update gpu1 --disable-autoscaling");
    gcloud.run("dataproc autoscaling-policies delete pol1");
    let patch = &queries(&fake, "PATCH", "/clusters/gpu1")[0];
    assert!(patch.contains("updateMask=config.secondary_worker_config.num_instances"), "{patch}");
}

const POLICY: &str = "\
workerConfig: {minInstances: 2, maxInstances: 10}
secondaryWorkerConfig: {minInstances: 0, maxInstances: 50}
basicAlgorithm:
  cooldownPeriod: 4m
  yarnConfig: {scaleUpFactor: 0.05, scaleDownFactor: 1.0, gracefulDecommissionTimeout: 1h}
";

#[test]
fn gcloud_drives_instance_groups() {
    let fake = FakeGoogle::start(demanding());
    let Some(gcloud) = Gcloud::at(&fake) else { return };
    let group = "compute instance-groups managed";
    gcloud.run(&format!("{group} create-instance m1 --instance=w-7"));
    let listed = gcloud.json(&format!("{group} list-instances m1"));
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    gcloud.run(&format!("{group} delete-instances m1 --instances=w-7"));
    assert_eq!(fake.group("m1").target_size(), 1);
    fake.alter(|options| options.stock_outs.extend(["us-central1-a".to_owned()]));
    gcloud.run(&format!("{group} resize m1 --size=2"));
    fake.wait_until("an attempt to make the second machine", |fake| fake.group("m1").members().len() == 2);
    let shown = gcloud.run(&format!("{group} list-instances m1"));
    assert!(shown.contains("ZONE_RESOURCE_POOL_EXHAUSTED"), "{shown}");
    let errors = gcloud.json(&format!("{group} list-errors m1"));
    assert_eq!(errors[0]["error"]["code"], "ZONE_RESOURCE_POOL_EXHAUSTED");
}

#[test]
fn gcloud_writes_and_reads_objects() {
    let fake = FakeGoogle::start(demanding());
    let Some(gcloud) = Gcloud::at(&fake) else { return };
    std::fs::write(gcloud.folder.path().join("state.json"), "{\"n\": 1}").expect("a file");
    gcloud.run("storage cp state.json 'gs://b/state/gpu 1.json' --if-generation-match=0");
    assert_eq!(gcloud.run("storage cat 'gs://b/state/gpu 1.json'"), "{\"n\": 1}");
    assert_eq!(gcloud.run("storage ls gs://b/state/").trim(), "gs://b/state/gpu 1.json");
    gcloud.run("storage rm 'gs://b/state/gpu 1.json'");
    assert_eq!(fake.object("b", "state/gpu 1.json"), None);
}

/// The same orders as each client spells them: each is taken, and means the same.
#[test]
fn the_spelling_of_every_client_is_taken() {
    let file = root().join("tests/fixtures/google/spellings.json");
    let rows: Vec<Value> = serde_json::from_slice(&std::fs::read(file).expect("a fixture")).expect("JSON");
    assert!(rows.len() > 20);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    for row in &rows {
        let mut options = FakeOptions { groups: vec![GroupSpec::new("m1", 3)], ..FakeOptions::default() };
        options.clusters[0].secondaries = 3;
        let fake = FakeGoogle::start(options);
        let text = |field: &str| row[field].as_str().expect("a text");
        let method = reqwest::Method::from_bytes(text("method").as_bytes()).expect("a method");
        let url = format!("{}{}?{}", fake.url(), text("path").trim_start_matches('/'), text("query"));
        let mut request = reqwest::Client::new().request(method, url);
        if !row["body"].is_null() {
            request = request.header("content-type", "application/json").body(with_names(&row["body"], &fake));
        }
        let said = runtime.block_on(async {
            let answer = request.send().await.expect("an answer");
            (answer.status().as_u16(), answer.text().await.expect("a body"))
        });
        assert_eq!(said.0, 200, "{row}: {}", said.1);
        for (what, wanted) in row["then"].as_object().into_iter().flatten() {
            let size = |fake: &FakeGoogle| match what.as_str() {
                "primaries" => fake.cluster("gpu1").primaries().len() as u64,
                "secondaries" => fake.cluster("gpu1").secondaries_wanted().into(),
                group => fake.group(group).target_size().into(),
            };
            fake.wait_until(&format!("{row}"), |fake| {
                size(fake) == wanted.as_u64().expect("a number") && fake.cluster("gpu1").state() == "RUNNING"
            });
        }
    }
}

/// `{gpu1-sw 0}` is the first secondary, `{m1 0}` the first machine of the group.
fn with_names(body: &Value, fake: &FakeGoogle) -> String {
    let pools = [("gpu1-sw", fake.cluster("gpu1").secondaries()), ("m1", fake.group("m1").members())];
    let names = pools.iter().flat_map(|(pool, names)| names.iter().enumerate().map(move |(at, name)| (pool, at, name)));
    names.fold(body.to_string(), |text, (pool, at, name)| text.replace(&format!("{{{pool} {at}}}"), name))
}
