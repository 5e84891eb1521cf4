//! Google's own clients drive the stand-in for Google's services: so that it is believed when our adapters do. What
//! each client sends for the same order is looked at, too.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

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
    let fake = FakeGoogle::start(FakeOptions { operation_takes: Duration::from_millis(200), ..FakeOptions::default() });
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
