//! The XML exclude file: `<hosts><host><name>a,b</name><timeout>60</timeout></host></hosts>` (`HostsFileReader`).
//! Pure: text in, text out. Must not know of disks, nor of the other format.
//!
//! The file is never written anew: it is read for where things stand, and our elements are cut out of and put into
//! the text. So everything else stays byte for byte, however it is laid out. An entry of ours holds one host and a
//! comment, `<!-- yarn-autoscaler -->`, which Hadoop skips.

use std::ops::Range;

use quick_xml::{Reader, events::Event};

use super::exclude_file::{Edit, Entry, MARK, Malformed};

/// What stands in a new file, or in one that is empty.
const EMPTY: &str = "<?xml version=\"1.0\"?>\n<hosts>\n</hosts>\n";

/// One `<host>` element.
#[derive(Debug, Default)]
struct Host {
    /// Where it stands, tags included.
    span: Range<usize>,
    names: Vec<String>,
    timeout: Option<i64>,
    marked: bool,
}

impl Host {
    fn is_ours(&self) -> bool {
        self.marked && self.names.len() == 1
    }
}

/// Where things stand in the text.
#[derive(Debug, Default)]
struct Layout {
    hosts: Vec<Host>,
    /// The root's end tag; the whole root where it is one empty tag.
    root_end: Range<usize>,
    root_name: String,
    root_is_empty_tag: bool,
}

/// Every host of the file.
pub(super) fn entries(text: &str) -> Result<Vec<Entry>, Malformed> {
    let layout = layout(or_new(text).1)?;
    let entries = layout.hosts.iter().flat_map(|host| {
        let entry = |name: &String| Entry { host: name.clone(), ours: host.is_ours(), timeout: host.timeout };
        host.names.iter().map(entry)
    });
    Ok(entries.collect())
}

/// The file after the change.
pub(super) fn edit(text: &str, edit: &Edit<'_>) -> Result<String, Malformed> {
    let (mark, text) = or_new(text);
    let layout = layout(text)?;
    // From the end to the front, so that the places of what is yet to be changed stay right.
    let mut out = text.to_owned();
    put_in(&mut out, &layout, edit);
    for host in layout.hosts.iter().rev().filter(|host| host.is_ours()) {
        let name = host.names[0].as_str();
        let wanted = edit.set.iter().find(|(host, _)| *host == name).map(|(_, seconds)| *seconds);
        if edit.remove.contains(&name) {
            out.replace_range(with_its_line(text, host.span.clone()), "");
        } else if let Some(seconds) = wanted.filter(|seconds| Some(*seconds) != host.timeout) {
            out.replace_range(host.span.clone(), &element(name, seconds));
        }
    }
    Ok(format!("{mark}{out}"))
}

fn put_in(out: &mut String, layout: &Layout, edit: &Edit<'_>) {
    let is_known = |name: &str| layout.hosts.iter().any(|host| host.names.iter().any(|known| known == name));
    let new = edit.set.iter().filter(|(host, _)| !is_known(host));
    let lines: String = new.map(|(host, seconds)| format!("  {}\n", element(host, *seconds))).collect();
    if lines.is_empty() {
        return;
    }
    if layout.root_is_empty_tag {
        let name = &layout.root_name;
        out.replace_range(layout.root_end.clone(), &format!("<{name}>\n{lines}</{name}>"));
        return;
    }
    // On lines of their own before the line of the end tag, where it has one.
    let line_start = out[..layout.root_end.start].rfind('\n').map_or(0, |newline| newline + 1);
    if line_start > 0 && out[line_start..layout.root_end.start].trim().is_empty() {
        out.insert_str(line_start, &lines);
    } else {
        out.insert_str(layout.root_end.start, &format!("\n{lines}"));
    }
}

/// The byte order mark, if there is one, and the document: the reader skips the mark without counting it.
fn or_new(text: &str) -> (&str, &str) {
    let (mark, document) = text.split_at(if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 });
    (mark, if document.trim().is_empty() { EMPTY } else { document })
}

fn element(host: &str, seconds: i64) -> String {
    format!("<host><!-- {MARK} --><name>{host}</name><timeout>{seconds}</timeout></host>")
}

/// An element's place, and its line's if there is nothing else on it.
fn with_its_line(text: &str, span: Range<usize>) -> Range<usize> {
    let start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[span.end..].find('\n').map_or(text.len(), |newline| span.end + newline + 1);
    let is_alone = text[start..span.start].trim().is_empty() && text[span.end..end].trim().is_empty();
    if is_alone { start..end } else { span }
}

/// Reads the text from front to back.
struct Scan<'a> {
    text: &'a str,
    layout: Layout,
    /// The elements that are open.
    open: Vec<String>,
    /// The `<host>` that is open, and how deep it lies.
    host: Option<(usize, Host)>,
    /// The text of the `<name>` or `<timeout>` that is open.
    words: String,
    has_root: bool,
}

fn layout(text: &str) -> Result<Layout, Malformed> {
    let mut scan =
        Scan { text, layout: Layout::default(), open: Vec::new(), host: None, words: String::new(), has_root: false };
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_comments = true;
    loop {
        let start = place(reader.buffer_position());
        let event = reader.read_event();
        let at = place(reader.error_position()).max(start);
        let event = event.map_err(|error| malformed(text, at, error.to_string()))?;
        if matches!(event, Event::Eof) {
            return scan.end();
        }
        scan.event(&event, start..place(reader.buffer_position()))?;
    }
}

fn place(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

fn malformed(text: &str, at: usize, what: impl Into<String>) -> Malformed {
    let before = &text.as_bytes()[..at.min(text.len())];
    Malformed { line: 1 + before.iter().filter(|byte| **byte == b'\n').count(), text: what.into() }
}

impl Scan<'_> {
    fn event(&mut self, event: &Event<'_>, span: Range<usize>) -> Result<(), Malformed> {
        match event {
            Event::Start(tag) => self.start(tag.name().as_ref(), span),
            Event::End(_) => self.close(span),
            Event::Empty(tag) => self.empty(tag.name().as_ref(), span),
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => self.words(span),
            Event::Comment(comment) => {
                let is_mark = comment.as_ref().trim() == MARK;
                if let Some((_, host)) = &mut self.host {
                    host.marked |= is_mark;
                }
                Ok(())
            }
            Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::Eof => Ok(()),
        }
    }

    fn start(&mut self, name: &str, span: Range<usize>) -> Result<(), Malformed> {
        let name = name.to_owned();
        if self.open.is_empty() && self.has_root {
            return Err(malformed(self.text, span.start, format!("<{name}> after the end")));
        }
        self.has_root = true;
        self.words.clear();
        self.open.push(name);
        if self.host.is_none() && self.open.last().is_some_and(|name| name == "host") && self.open.len() > 1 {
            self.host = Some((self.open.len(), Host { span, ..Host::default() }));
        }
        Ok(())
    }

    fn empty(&mut self, name: &str, span: Range<usize>) -> Result<(), Malformed> {
        let is_root = self.open.is_empty();
        self.start(name, span.clone())?;
        self.close(span)?;
        self.layout.root_is_empty_tag |= is_root;
        Ok(())
    }

    fn close(&mut self, span: Range<usize>) -> Result<(), Malformed> {
        let depth = self.open.len();
        let Some(name) = self.open.pop() else { return Ok(()) };
        if let Some((host_depth, host)) = &mut self.host {
            match name.as_str() {
                "name" if host.names.is_empty() => host.names = names(&self.words),
                "timeout" if host.timeout.is_none() => {
                    host.timeout = Some(timeout(self.text, &self.words, span.start)?);
                }
                _ if depth == *host_depth => host.span.end = span.end,
                _ => {}
            }
        }
        if let Some((_, host)) = self.host.take_if(|(host_depth, _)| depth == *host_depth) {
            self.layout.hosts.push(host);
        }
        if self.open.is_empty() {
            (self.layout.root_end, self.layout.root_name) = (span, name);
        }
        Ok(())
    }

    fn words(&mut self, span: Range<usize>) -> Result<(), Malformed> {
        let words = &self.text[span.clone()];
        if self.open.is_empty() && !words.trim().is_empty() {
            return Err(malformed(self.text, span.start, "text outside of the root element"));
        }
        self.words.push_str(words.strip_prefix("<![CDATA[").and_then(|w| w.strip_suffix("]]>")).unwrap_or(words));
        Ok(())
    }

    fn end(self) -> Result<Layout, Malformed> {
        if let Some(name) = self.open.last() {
            return Err(malformed(self.text, self.text.len(), format!("<{name}> is not closed")));
        }
        if !self.has_root {
            return Err(malformed(self.text, self.text.len(), "no root element"));
        }
        Ok(self.layout)
    }
}

/// Java reads it without forgiving anything, and refuses the whole file for one that is no number.
fn timeout(text: &str, words: &str, at: usize) -> Result<i64, Malformed> {
    let seconds: Result<i32, _> = words.parse();
    seconds.map(i64::from).map_err(|_| malformed(text, at, format!("{words:?} is no time-out")))
}

/// One host, or several between commas or line ends.
fn names(words: &str) -> Vec<String> {
    words.split([',', '\n']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}
