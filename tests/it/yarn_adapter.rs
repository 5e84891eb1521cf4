//! Drains and cordons: what is written, and what YARN is told.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use yarn_autoscaler::{
    model::{NodeId, Resources},
    ports::{Cluster, ErrorKind},
    yarn::{
        CORDONED, Yarn,
        admin::Admin,
        admin_rpc::{AdminRpc, refresh_body, update_body},
        exclude_file::ExcludeFile,
        rest::{Options, ResourceManager},
        rmadmin::RmAdmin,
    },
};

use crate::fake_rpc::{dead, server, success};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

fn yarn(admin: Option<Admin>, exclude: Option<&Path>) -> Yarn {
    let nowhere = vec!["http://127.0.0.1:9".parse().expect("URL")];
    let rest = ResourceManager::new(nowhere, Options::default()).expect("client");
    Yarn::new(rest, admin, exclude.map(ExcludeFile::new))
}

fn rpc(address: String) -> Option<Admin> {
    Some(Admin::Rpc(AdminRpc::new(vec![address], "yarn", Duration::from_secs(2)).expect("client")))
}

fn hosts(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.into()).collect()
}

/// The refreshes that the server saw, in order.
fn refreshes(seen: &Arc<Mutex<Vec<u8>>>) -> Vec<Option<i32>> {
    let seen = seen.lock().expect("lock").clone();
    let requests: Vec<_> = seen.windows(4).enumerate().filter(|(_, at)| at == b"hrpc").map(|(at, _)| at).collect();
    let ends = requests.iter().skip(1).copied().chain([seen.len()]);
    let known = [None, Some(0), Some(60), Some(3600)];
    let which = |request: &[u8]| known.into_iter().find(|r| request.ends_with(&refresh_body(*r).delimited()));
    requests.iter().zip(ends).map(|(&start, end)| which(&seen[start..end]).expect("a known refresh")).collect()
}

/// Each host has its own time-out, so the command carries none; and never is it a plain refresh, which kills.
#[tokio::test]
async fn with_an_xml_file_each_drain_has_its_own_time_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("exclude.xml");
    let (address, seen) = server(success(&[0])).await;
    let yarn = yarn(rpc(address), Some(&path));
    yarn.decommission(&hosts(&["w-1", "w-2"]), HOUR).await.expect("drained");
    yarn.decommission(&hosts(&["w-2"]), Duration::ZERO).await.expect("forced");
    let entries = ExcludeFile::new(&path).entries().expect("entries");
    assert_eq!(
        entries.iter().map(|e| (e.host.as_str(), e.timeout)).collect::<Vec<_>>(),
        [("w-1", Some(3600)), ("w-2", Some(0))]
    );
    yarn.recommission(&hosts(&["w-1", "w-2"]), HOUR).await.expect("back");
    assert_eq!(ExcludeFile::new(&path).entries().expect("entries"), []);
    assert_eq!(refreshes(&seen), [None; 3]);
}

/// The command's time-out is everybody's: a short drain must not cut a long one short.
#[tokio::test]
async fn with_a_plain_file_the_longest_of_our_drains_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("exclude");
    let (address, seen) = server(success(&[0])).await;
    let yarn = yarn(rpc(address), Some(&path));
    yarn.decommission(&hosts(&["w-1"]), MINUTE).await.expect("drained");
    yarn.decommission(&hosts(&["w-2"]), HOUR).await.expect("drained");
    yarn.decommission(&hosts(&["w-3"]), Duration::ZERO).await.expect("drained");
    yarn.recommission(&hosts(&["w-2"]), MINUTE).await.expect("back");
    yarn.recommission(&hosts(&["w-1", "w-3"]), Duration::ZERO).await.expect("back");
    let sent = [Some(60), Some(3600), Some(3600), Some(60), None];
    assert_eq!(refreshes(&seen), sent, "with none of ours left: what YARN is configured for");
}

#[tokio::test]
async fn with_a_plain_file_nobody_elses_drain_is_forced() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("exclude");
    fs::write(&path, "ops-1\n").expect("a file");
    let (address, seen) = server(success(&[0])).await;
    let yarn = yarn(rpc(address), Some(&path));
    let error = yarn.decommission(&hosts(&["w-1"]), Duration::ZERO).await.expect_err("it would force ops-1");
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert_eq!((fs::read_to_string(&path).expect("the file"), seen.lock().expect("lock").len()), ("ops-1\n".into(), 0));
}

#[tokio::test]
async fn a_refresh_that_fails_leaves_the_file_as_it_is_meant_and_may_be_repeated() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("exclude.xml");
    let broken = yarn(rpc(dead().await), Some(&path));
    let error = broken.decommission(&hosts(&["w-1"]), HOUR).await.expect_err("nobody there");
    assert_eq!(error.kind, ErrorKind::Transient);
    let written = fs::read(&path).expect("the file");
    assert_eq!(ExcludeFile::new(&path).entries().expect("entries").len(), 1);

    let (address, seen) = server(success(&[0])).await;
    yarn(rpc(address), Some(&path)).decommission(&hosts(&["w-1"]), HOUR).await.expect("repeated");
    assert_eq!(fs::read(&path).expect("the file"), written);
    assert_eq!(refreshes(&seen).len(), 1, "nothing to write is no reason not to refresh");
}

#[tokio::test]
async fn a_host_that_somebody_else_excluded_is_not_brought_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("exclude");
    fs::write(&path, "w-1 # broken fan\n").expect("a file");
    let (address, _) = server(success(&[0])).await;
    let yarn = yarn(rpc(address), Some(&path));
    yarn.decommission(&hosts(&["w-1"]), HOUR).await.expect("drained");
    yarn.recommission(&hosts(&["w-1"]), HOUR).await.expect("not ours");
    assert_eq!(fs::read_to_string(&path).expect("the file"), "w-1 # broken fan\n");
}

#[tokio::test]
async fn without_a_way_to_give_orders_nothing_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("exclude");
    let node = NodeId { host: "w-1".into(), port: 8041 };
    let blind = yarn(None, Some(&path));
    let errors = [
        blind.cordon(&node, Resources::default()).await,
        blind.uncordon(&node, CORDONED).await,
        blind.decommission(&hosts(&["w-1"]), HOUR).await,
        blind.recommission(&hosts(&["w-1"]), HOUR).await,
    ];
    for error in errors.map(|result| result.expect_err("read-only")) {
        assert_eq!(error.kind, ErrorKind::Permanent);
        assert!(error.text.contains("can only be looked at"), "{error}");
    }
    assert!(!path.exists());
    let error = yarn(rpc(dead().await), None).decommission(&hosts(&["w-1"]), HOUR).await.expect_err("no file");
    assert_eq!(error.kind, ErrorKind::Permanent);
    assert!(error.text.contains("exclude file is not configured"), "{error}");
}

#[tokio::test]
async fn a_cordon_leaves_one_megabyte_and_an_uncordon_gives_all_back() {
    let node = NodeId { host: "w-1".into(), port: 8041 };
    let full = Resources::new(8192, 8, 2);
    let (address, seen) = server(success(&[0])).await;
    let yarn = yarn(rpc(address), None);
    yarn.cordon(&node, Resources::default()).await.expect("cordoned");
    assert!(seen.lock().expect("lock").ends_with(&update_body(&node, Resources::new(1, 1, 0)).delimited()));
    yarn.uncordon(&node, full).await.expect("uncordoned");
    assert!(seen.lock().expect("lock").ends_with(&update_body(&node, full).delimited()));
}

/// The command cannot leave the time-out out: without a number it means "never".
#[tokio::test]
async fn the_command_is_given_the_longest_time_out() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let (path, told) = (directory.path().join("exclude.xml"), directory.path().join("told"));
    let script = directory.path().join("rmadmin");
    fs::write(&script, format!("#!/bin/sh\necho \"$@\" >> {}\n", told.display())).expect("a script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
    let command = RmAdmin::new(&format!("sh {}", script.display()), MINUTE).expect("a command");
    let yarn = yarn(Some(Admin::Command(command)), Some(&path));
    yarn.decommission(&hosts(&["w-1"]), HOUR).await.expect("drained");
    yarn.decommission(&hosts(&["w-2"]), MINUTE).await.expect("drained");
    let told = fs::read_to_string(&told).expect("what was told");
    assert_eq!(told, "-refreshNodes -g 3600 -server\n-refreshNodes -g 3600 -server\n");
}
