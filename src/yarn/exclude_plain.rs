//! The plain exclude file: hosts between white space, comments from a word that begins with `#` to the end of the line
//! (`HostsFileReader`). Pure: text in, text out. Must not know of disks, nor of the other format.
//!
//! An entry of ours is a line of its own, `w-3 # yarn-autoscaler 3600s`. The time-out in the comment is for us: YARN
//! has none per host in this format.

use super::exclude_file::{Edit, Entry, MARK};

/// Every host of the file.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    text.lines().flat_map(line_entries).collect()
}

fn line_entries(line: &str) -> Vec<Entry> {
    if let Some(entry) = our_entry(line) {
        return vec![entry];
    }
    let hosts = words(line).take_while(|word| !word.starts_with('#'));
    hosts.map(|host| Entry { host: host.to_owned(), ours: false, timeout: None }).collect()
}

/// What stands between what Hadoop takes for white space.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '\t', '\n', '\x0c', '\r']).filter(|word| !word.is_empty())
}

/// The entry of a line as we write it. A line that somebody added a host or a word to is theirs.
fn our_entry(line: &str) -> Option<Entry> {
    let words: Vec<&str> = words(line).collect();
    let [host, "#", MARK, timeout] = words[..] else { return None };
    let timeout = timeout.strip_suffix('s')?.parse().ok()?;
    (!host.starts_with('#')).then(|| Entry { host: host.to_owned(), ours: true, timeout: Some(timeout) })
}

/// The file after the change: every line that is not ours byte for byte as it was.
pub(super) fn edit(text: &str, edit: &Edit<'_>) -> String {
    let before = entries(text);
    let mut out = String::with_capacity(text.len());
    let mut written = Vec::new();
    for line in text.split_inclusive('\n') {
        match our_entry(line) {
            None => out.push_str(line),
            Some(entry) if edit.remove.contains(&entry.host.as_str()) => {}
            Some(entry) => {
                let wanted = edit.set.iter().find(|(host, _)| *host == entry.host).map(|(_, seconds)| *seconds);
                match wanted {
                    Some(seconds) if Some(seconds) != entry.timeout => out.push_str(&our_line(&entry.host, seconds)),
                    _ => out.push_str(line),
                }
                written.push(entry.host);
            }
        }
    }
    let is_known = |host: &str| written.iter().any(|w| w == host) || before.iter().any(|e| !e.ours && e.host == host);
    for (host, seconds) in edit.set.iter().filter(|(host, _)| !is_known(host)) {
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        out.push_str(&our_line(host, *seconds));
    }
    out
}

fn our_line(host: &str, seconds: i64) -> String {
    format!("{host} # {MARK} {seconds}s\n")
}
