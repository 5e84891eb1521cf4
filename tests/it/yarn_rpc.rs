//! Hadoop's RPC to the byte, and against a server that misbehaves; and the command that stands in for it.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use yarn_autoscaler::{
    model::{NodeId, Resources},
    ports::ErrorKind,
    yarn::{
        admin_rpc::{AdminRpc, refresh_body, request, update_body},
        proto::Reader,
        rmadmin::{RmAdmin, refresh_arguments, update_arguments},
    },
};

use crate::fake_rpc::{bytes, dead, exception, framed, server, success};

const PROTOCOL: &str = "org.apache.hadoop.yarn.server.api.ResourceManagerAdministrationProtocolPB";
/// The limit where one is to be met.
const LIMIT: Duration = Duration::from_millis(800);
/// The limit elsewhere, so that a busy machine spoils no test.
const PATIENCE: Duration = Duration::from_secs(20);

fn client_id() -> [u8; 16] {
    *b"\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
}

fn node() -> NodeId {
    NodeId { host: "127.0.1.11".into(), port: 8041 }
}

/// What Hadoop 3.4.1's own command sends for `-refreshNodes -g 600 -server` as user `yarn`, and what ResourceManagers
/// of 3.3.6, 3.4.3 and 3.5.0 accepted.
#[test]
fn a_graceful_refresh_is_251_known_bytes() {
    let sent = request("yarn", client_id(), "refreshNodes", &refresh_body(Some(600)));
    let known = [
        bytes("68727063090000 0000006f 1a 0802 1000 1805 2210000102030405060708090a0b0c0d0e0f 2801"),
        bytes("53 12060a047961726e 1a49"),
        PROTOCOL.into(),
        bytes("0000007d 1a 0802 1000 1800 2210000102030405060708090a0b0c0d0e0f 2800 5b 0a0c"),
        b"refreshNodes".to_vec(),
        bytes("1249"),
        PROTOCOL.into(),
        bytes("1801 05 0802 10d804"),
    ];
    assert_eq!(sent, known.concat());
    assert_eq!(sent.len(), 251);
}

#[test]
fn the_other_refreshes_are_as_captured() {
    assert_eq!(refresh_body(None).delimited(), bytes("02 0802"));
    assert_eq!(refresh_body(Some(-1)).delimited(), bytes("0d 0802 10ffffffffffffffffff01"));
    let whole = |refresh| request("yarn", client_id(), "refreshNodes", &refresh_body(refresh)).len();
    let lengths = [None, Some(-1)].map(whole);
    assert_eq!(lengths, [248, 259]);
}

/// What Hadoop 3.3.6's own command sends for `memory-mb=1Mi,vcores=1,yarn.io/gpu=0`.
#[test]
fn a_resource_update_is_as_captured() {
    let known = "60 0a5e 0a0f0a0a3132372e302e312e313110e93e 124b 0a3e08011001
        1a130a096d656d6f72792d6d6210011a024d692000 1a0e0a0676636f72657310011a002000
        1a130a0b7961726e2e696f2f67707510001a002000 10ffffffffffffffffff01";
    assert_eq!(update_body(&node(), Resources::new(1, 1, 0)).delimited(), bytes(known));
}

proptest! {
    #[test]
    fn foreign_bytes_never_panic_the_reader(bytes: Vec<u8>) {
        let mut reader = Reader::new(&bytes);
        while let Ok(Some(_)) = reader.field() {}
        let _ = Reader::new(&bytes).delimited();
    }
}

fn hasty(addresses: &[&str]) -> AdminRpc {
    AdminRpc::new(addresses.iter().map(|&address| address.into()).collect(), "yarn", LIMIT).expect("client")
}

fn client(addresses: &[&str]) -> AdminRpc {
    AdminRpc::new(addresses.iter().map(|&address| address.into()).collect(), "yarn", PATIENCE).expect("client")
}

#[tokio::test]
async fn an_order_is_one_request_and_an_empty_reply() {
    let (address, seen) = server(success(&[0])).await;
    client(&[&address]).refresh_nodes(Some(600)).await.expect("success");
    let seen = seen.lock().expect("lock").clone();
    assert_eq!(seen.len(), 251);
    let (address, _) = server(success(&[0])).await;
    client(&[&address]).update_node_resource(&node(), Resources::new(8192, 8, 2)).await.expect("success");
}

/// What comes back, the kind, and what people are told.
#[tokio::test]
async fn every_failure_is_an_error_that_says_so() {
    let yarn = "org.apache.hadoop.yarn.exceptions.YarnException";
    let denied = "org.apache.hadoop.security.AccessControlException: User mallory doesn't have permission to call \
                  'refreshNodes'\n\tat org.apache.hadoop";
    let missing = "java.nio.file.NoSuchFileException: /etc/exclude.xml\n\tat java";
    let xml = "org.xml.sax.SAXParseException; lineNumber: 3";
    let cases = [
        (exception(1, yarn, denied), ErrorKind::Denied, "mallory"),
        (exception(2, "org.apache.hadoop.security.AccessControlException", "SIMPLE"), ErrorKind::Denied, "SIMPLE"),
        (exception(1, "org.apache.hadoop.ipc.StandbyException", "rm1 is not Active!"), ErrorKind::Transient, "Active"),
        (exception(1, yarn, missing), ErrorKind::Permanent, "NoSuchFileException: /etc/exclude.xml"),
        (exception(1, "java.lang.RuntimeException", xml), ErrorKind::Permanent, "lineNumber: 3"),
        (framed(&[b"garbage that is no message".to_vec()]), ErrorKind::Transient, "makes no sense"),
        (framed(&[vec![]]), ErrorKind::Transient, "makes no sense"),
        (framed(&[vec![0]]), ErrorKind::Transient, "has no status"),
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), ErrorKind::Transient, "are read"),
        (vec![0, 0, 0, 9, 1], ErrorKind::Transient, "no answer within"),
        (vec![], ErrorKind::Transient, "no answer within"),
    ];
    for (reply, kind, told) in cases {
        let (address, _) = server(reply).await;
        let began = Instant::now();
        let error = hasty(&[&address]).refresh_nodes(None).await.expect_err(told);
        assert!(began.elapsed() < LIMIT * 5, "{told}: in time");
        assert_eq!(error.kind, kind, "{told}: {error}");
        assert!(error.text.contains(told) && error.text.contains(&address), "{told}: {error}");
        assert!(!error.text.contains("\tat "), "no stack trace: {error}");
    }
}

#[tokio::test]
async fn the_active_one_is_found() {
    let (standby, _) = server(exception(1, "org.apache.hadoop.ipc.StandbyException", "not Active!")).await;
    let (active, _) = server(success(&[0])).await;
    for first in [standby, dead().await] {
        client(&[&first, &active]).refresh_nodes(None).await.expect("the second one");
    }
    let (silent, _) = server(vec![]).await;
    let client = hasty(&[&silent, &active]);
    client.refresh_nodes(None).await.expect_err("the first one takes all the time");
    client.refresh_nodes(None).await.expect("the next order begins with the second one");
}

#[tokio::test]
async fn nobody_there_is_transient() {
    let error = client(&[&dead().await, &dead().await]).refresh_nodes(None).await.expect_err("dead");
    assert_eq!(error.kind, ErrorKind::Transient);
    assert_eq!(error.text.matches("cannot connect").count(), 2, "{error}");
    assert_eq!(AdminRpc::new(vec![], "yarn", LIMIT).expect_err("no address").kind, ErrorKind::Permanent);
}

#[test]
fn the_command_gets_what_hadoop_understands() {
    assert_eq!(refresh_arguments(Some(60)), ["-refreshNodes", "-g", "60", "-server"]);
    assert_eq!(refresh_arguments(None), ["-refreshNodes", "-g", "-server"]);
    assert_eq!(
        update_arguments(&node(), Resources::new(1, 1, 0)),
        ["-updateNodeResource", "127.0.1.11:8041", "memory-mb=1Mi,vcores=1"]
    );
    let full = update_arguments(&node(), Resources::new(8192, 8, 2));
    assert_eq!(full[2], "memory-mb=8192Mi,vcores=8,yarn.io/gpu=2");
}

async fn run(command: &str, limit: Duration) -> Result<(), (ErrorKind, String)> {
    let command = RmAdmin::new(command, limit).expect("a command");
    command.refresh_nodes(Some(60)).await.map_err(|error| (error.kind, error.text))
}

fn script(body: &str) -> tempfile::TempPath {
    use std::{io::Write, os::unix::fs::PermissionsExt};
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "#!/bin/sh\n{body}\n").expect("a script");
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o755)).expect("a mode");
    file.into_temp_path()
}

#[tokio::test]
async fn a_command_that_fails_is_quoted() {
    assert_eq!(run("true", PATIENCE).await, Ok(()));
    let path = script(
        "echo noise; { echo '2026-01-01 INFO Configuration: x'; echo 'refreshNodes: \
         AccessControlException: User mallory'; echo '\tat java.base'; } >&2; exit 255",
    );
    let (kind, text) = run(&format!("sh {}", path.display()), PATIENCE).await.expect_err("it fails");
    assert_eq!(kind, ErrorKind::Denied);
    assert!(
        text.contains("-refreshNodes -g 60 -server` failed: refreshNodes: AccessControlException: User mallory"),
        "{text}"
    );
    assert!(!text.contains("INFO") && !text.contains("at java"), "{text}");
    let (kind, text) = run("/no/such/command rmadmin", PATIENCE).await.expect_err("it is not there");
    assert_eq!(kind, ErrorKind::Permanent);
    assert!(text.contains("cannot be run"), "{text}");
    let (_, text) = run("false", PATIENCE).await.expect_err("it fails");
    assert!(text.ends_with("failed: it says nothing"), "{text}");
    assert!(RmAdmin::new("  ", LIMIT).is_err());
}

#[tokio::test]
async fn a_command_that_hangs_is_killed_with_its_children() {
    let mark = tempfile::tempdir().expect("a directory");
    let file = mark.path().join("survived");
    let path = script(&format!("(sleep 3; touch {}) & wait", file.display()));
    let (kind, text) = run(&format!("sh {}", path.display()), LIMIT).await.expect_err("it hangs");
    assert_eq!(kind, ErrorKind::Transient);
    assert!(text.contains("was killed"), "{text}");
    tokio::time::sleep(Duration::from_millis(3500)).await;
    assert!(!file.exists(), "its child lives on");
}
