//! The exclude file, plain and XML: foreign entries survive everything.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    time::Duration,
};

use proptest::prelude::*;
use tempfile::TempDir;
use yarn_autoscaler::{
    ports::ErrorKind,
    yarn::exclude_file::{Change, ExcludeFile},
};

const HOUR: Duration = Duration::from_secs(3600);

/// A file of this name with this text in a directory of its own.
fn file(name: &str, text: &str) -> (TempDir, PathBuf, ExcludeFile) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(name);
    fs::write(&path, text).expect("a file");
    (directory, path.clone(), ExcludeFile::new(path))
}

fn text(path: &PathBuf) -> String {
    fs::read_to_string(path).expect("the file")
}

/// `w-1:ours:60 w-2:foreign:-`
fn entries(file: &ExcludeFile) -> String {
    let entries = file.entries().expect("entries");
    let shown = entries.iter().map(|entry| {
        let whose = if entry.ours { "ours" } else { "foreign" };
        format!("{}:{whose}:{}", entry.host, entry.timeout.map_or("-".into(), |seconds| seconds.to_string()))
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn plain_entries_of_ours_come_and_go_and_nothing_else_changes() {
    let foreign = "# kept by ops\nold-1 old-2\t# broken disk\r\n\n  old-3";
    let (_directory, path, file) = file("exclude", foreign);
    let change = file.set(&[("w-1", HOUR), ("w-2", Duration::from_millis(1500))]).expect("set");
    assert_eq!(change, Change { changed: true, foreign: vec![], longest: Some(HOUR) });
    let ours = "\nw-1 # yarn-autoscaler 3600s\nw-2 # yarn-autoscaler 2s\n";
    assert_eq!(text(&path), format!("{foreign}{ours}"));
    assert_eq!(entries(&file), "old-1:foreign:- old-2:foreign:- old-3:foreign:- w-1:ours:3600 w-2:ours:2");

    assert!(!file.set(&[("w-1", HOUR)]).expect("set").changed, "the same again");
    assert!(file.set(&[("w-1", Duration::ZERO)]).expect("set").changed, "another time-out");
    let change = file.remove(&["w-1", "w-9"]).expect("remove");
    assert_eq!(change, Change { changed: true, foreign: vec![], longest: Some(Duration::from_secs(2)) });
    file.remove(&["w-2"]).expect("remove");
    assert_eq!(text(&path), format!("{foreign}\n"));
}

#[test]
fn xml_entries_of_ours_come_and_go_and_nothing_else_changes() {
    let foreign = "<?xml version=\"1.0\"?>\n<!-- kept by ops -->\n<hosts>\n  <host><name>old-1, old-2</name>\
                   <timeout>-1</timeout></host>\n\t<host>\n  <name>old-3</name></host>\n</hosts>\n";
    let (_directory, path, file) = file("exclude.xml", foreign);
    let change = file.set(&[("w-1", HOUR), ("w-2", Duration::ZERO)]).expect("set");
    assert_eq!(change, Change { changed: true, foreign: vec![], longest: Some(HOUR) });
    let mine = |host, seconds| {
        format!("  <host><!-- yarn-autoscaler --><name>{host}</name><timeout>{seconds}</timeout></host>\n")
    };
    let with = |lines: &str| foreign.replace("</hosts>", &format!("{lines}</hosts>"));
    assert_eq!(text(&path), with(&[mine("w-1", 3600), mine("w-2", 0)].concat()));
    assert_eq!(entries(&file), "old-1:foreign:-1 old-2:foreign:-1 old-3:foreign:- w-1:ours:3600 w-2:ours:0");

    assert!(!file.set(&[("w-1", HOUR)]).expect("set").changed, "the same again");
    file.set(&[("w-1", Duration::from_secs(60)), ("w-3", HOUR)]).expect("set");
    assert_eq!(text(&path), with(&[mine("w-1", 60), mine("w-2", 0), mine("w-3", 3600)].concat()));
    file.remove(&["w-1", "w-2", "w-3"]).expect("remove");
    assert_eq!(text(&path), foreign);
}

#[test]
fn what_somebody_else_excluded_stays_theirs() {
    for (name, foreign) in [
        ("exclude", "w-1 # broken\nw-2 # yarn-autoscaler 60s and then a word of somebody's\n"),
        ("exclude.xml", "<hosts><host><name>w-1,w-2</name><!-- yarn-autoscaler --></host></hosts>"),
    ] {
        let (_directory, path, file) = file(name, foreign);
        for host in ["w-1", "w-2"] {
            let change = file.set(&[(host, HOUR)]).expect("set");
            assert_eq!(change, Change { changed: false, foreign: vec![host.into()], longest: None });
            assert_eq!(file.remove(&[host]).expect("remove").foreign, [host]);
        }
        assert_eq!(text(&path), foreign);
    }
}

/// As `HostsFileReader` reads them: commas and line ends part names, the file's name is matched in any case.
#[test]
fn hosts_are_told_apart_as_hadoop_does() {
    let (_directory, _, xml) = file("EXCLUDE.XML", "<hosts><host><name>a,b\n c </name></host></hosts>");
    assert_eq!(entries(&xml), "a:foreign:- b:foreign:- c:foreign:-");
    let (_directory, _, plain) = file("exclude.xml.txt", "a\tb\x0cc d#not-a-comment # e\n#f\n");
    assert_eq!(entries(&plain), "a:foreign:- b:foreign:- c:foreign:- d#not-a-comment:foreign:-");
}

#[test]
fn xml_is_read_in_every_layout() {
    for (before, after) in [
        ("", "<?xml version=\"1.0\"?>\n<hosts>\nOURS</hosts>\n"),
        ("<hosts/>", "<hosts>\nOURS</hosts>"),
        ("<?xml version=\"1.0\"?><hosts></hosts>", "<?xml version=\"1.0\"?><hosts>\nOURS</hosts>"),
        ("<hosts>\n\t<!-- a -->\n\t</hosts>", "<hosts>\n\t<!-- a -->\nOURS\t</hosts>"),
        ("\u{feff}<hosts>\n</hosts>", "\u{feff}<hosts>\nOURS</hosts>"),
        (
            "<hosts><host><name><![CDATA[a]]></name></host>\n</hosts>",
            "<hosts><host><name><![CDATA[a]]></name></host>\nOURS</hosts>",
        ),
    ] {
        let (_directory, path, file) = file("exclude.xml", before);
        file.set(&[("w-1", HOUR)]).expect(before);
        let ours = "  <host><!-- yarn-autoscaler --><name>w-1</name><timeout>3600</timeout></host>\n";
        assert_eq!(text(&path), after.replace("OURS", ours));
        assert!(entries(&file).ends_with("w-1:ours:3600"));
    }
}

#[test]
fn a_malformed_file_is_named_with_its_line_and_left_alone() {
    for (name, text, line) in [
        ("exclude.xml", &b"<hosts>\n<host><name>a</nam></host>\n</hosts>"[..], 2),
        ("exclude.xml", b"<hosts>\n<host>\n<name>a</name>", 3),
        ("exclude.xml", b"<hosts>\n<host><name>a</name><timeout>soon</timeout></host></hosts>", 2),
        ("exclude.xml", b"<hosts>\n</hosts>\n<hosts></hosts>", 3),
        ("exclude.xml", b"w-1\nw-2\n", 1),
        ("exclude.xml", b"<!-- nothing -->\n", 2),
        ("exclude.xml", b"<hosts>\n<!-- a -- b --></hosts>", 2),
        ("exclude", b"w-1\n\xff\xfe\n", 2),
    ] {
        let shown = String::from_utf8_lossy(text).into_owned();
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(name);
        fs::write(&path, text).expect("a file");
        let file = ExcludeFile::new(&path);
        for result in [file.set(&[("w-1", HOUR)]), file.remove(&["w-1"])] {
            let error = result.expect_err(&shown);
            assert_eq!(error.kind, ErrorKind::Permanent, "{shown}");
            assert!(error.text.contains(&format!("{}:{line}: ", path.display())), "{shown}: {error}");
        }
        assert_eq!(fs::read(&path).expect("the file"), text, "{shown}");
    }
}

#[test]
fn a_missing_file_is_made_and_a_missing_directory_is_not() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, empty) in [("new", ""), ("new.xml", "<?xml version=\"1.0\"?>\n<hosts>\n</hosts>\n")] {
        let path = directory.path().join(name);
        let file = ExcludeFile::new(&path);
        assert_eq!(file.entries().expect("none"), []);
        assert!(file.remove(&["w-1"]).expect("made").changed);
        assert_eq!(text(&path), empty);
        assert_eq!(fs::metadata(&path).expect("made").permissions().mode() & 0o777, 0o644, "YARN must read it");
        assert!(!file.remove(&["w-1"]).expect("there").changed);
    }
    let error =
        ExcludeFile::new(directory.path().join("no/such/exclude")).set(&[("w-1", HOUR)]).expect_err("no directory");
    assert!(error.text.contains("there is no directory") && error.text.contains("no/such"), "{error}");
}

#[test]
fn mode_and_links_are_kept_and_nothing_is_left_behind() {
    let (directory, path, _) = file("real", "old-1\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
    let link = directory.path().join("link");
    symlink(&path, &link).expect("a link");
    ExcludeFile::new(&link).set(&[("w-1", HOUR)]).expect("set");
    assert!(fs::symlink_metadata(&link).expect("the link").is_symlink());
    assert!(text(&path).contains("w-1"));
    assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o640);
    assert_eq!(fs::read_dir(directory.path()).expect("the directory").count(), 2);
}

#[test]
fn only_host_names_are_written() {
    for (name, host) in
        [("exclude", "a b"), ("exclude.xml", "a</name>"), ("exclude", ""), ("exclude", "#a"), ("exclude.xml", "a,b")]
    {
        let (_directory, path, file) = file(name, "");
        assert!(file.set(&[(host, HOUR)]).is_err(), "{host}");
        assert_eq!(text(&path), "");
    }
}

/// One step: set (with a time-out) or remove one of a few hosts, some of which are foreign.
fn steps() -> impl Strategy<Value = Vec<(bool, usize, u64)>> {
    prop::collection::vec((any::<bool>(), 0usize..5, 0u64..4000), 0..12)
}

fn apply(file: &ExcludeFile, steps: &[(bool, usize, u64)]) {
    let hosts = ["w-0", "w-1", "w-2", "old-0", "old-1"];
    for (is_set, host, seconds) in steps {
        let host = hosts[*host];
        if *is_set {
            file.set(&[(host, Duration::from_secs(*seconds))]).expect("set");
        } else {
            file.remove(&[host]).expect("remove");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever we do and undo, the lines of others are there, byte for byte, in their order.
    #[test]
    fn plain_foreign_lines_survive(
        lines in prop::collection::vec("(old-[01]|[a-z]{1,5})?[ \t]{0,3}(#[ a-z<]{0,9})?\r?", 0..6),
        ends in any::<bool>(),
        steps in steps(),
    ) {
        let foreign = lines.join("\n") + if ends { "\n" } else { "" };
        let (_directory, path, file) = file("exclude", &foreign);
        apply(&file, &steps);
        file.remove(&["w-0", "w-1", "w-2", "old-0", "old-1"]).expect("remove");
        let after: String = text(&path);
        // Ours may be there where "old-…" was not foreign after all: all are gone by now.
        prop_assert_eq!(after.trim_end_matches('\n'), foreign.trim_end_matches('\n'));
        prop_assert!(after.starts_with(&foreign));
    }

    /// The same for XML, in which foreign elements, comments and white space may stand anywhere.
    #[test]
    fn xml_foreign_elements_survive(
        parts in prop::collection::vec(prop::sample::select(vec![
            "<host><name>old-0</name></host>", "<host>\n<name> old-1 , other </name>\n<timeout>-1</timeout></host>",
            "<!-- a comment -->", "\n", "  ", "<host><name>z</name><timeout>60</timeout><!-- why --></host>\n", "<host/>",
        ]), 0..6),
        steps in steps(),
    ) {
        let foreign = format!("<?xml version=\"1.0\"?>\n<hosts>{}\n</hosts>\n", parts.concat());
        let (_directory, path, file) = file("exclude.xml", &foreign);
        apply(&file, &steps);
        file.remove(&["w-0", "w-1", "w-2", "old-0", "old-1"]).expect("remove");
        prop_assert_eq!(text(&path), foreign);
    }
}
