//! Where each value of a YAML text is written. Knows nothing of policies or of serde.
//!
//! A second look at the text, beside the one that reads values: it gives byte ranges by path, and refuses what no
//! reader of ours could make sense of (syntax, depth, duplicate keys, a second document) before libyaml sees it,
//! which is quadratic on deep nesting.

use std::{collections::BTreeMap, fmt, ops::Range, sync::Arc};

use granit_parser::{Event, Parser};

/// Deepest nesting that is read. A policy is four deep; each level lengthens every path below it.
const MAX_DEPTH: usize = 16;

/// Longest key that is read, in bytes; no field and no label comes near.
const MAX_KEY: usize = 256;

/// One step from a value to a value within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seg {
    /// The field of a mapping; shared, since every value below it has it in its path.
    Key(Arc<str>),
    /// The item of a sequence, from 0.
    Index(usize),
}

/// The way from the root of a document to one value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path(Vec<Seg>);

impl Path {
    /// The path through these fields.
    pub fn of(keys: &[&str]) -> Self {
        Self(keys.iter().map(|key| Seg::Key((*key).into())).collect())
    }

    /// This path and one field more.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.then(Seg::Key(key.into()))
    }

    /// This path and one item more.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.then(Seg::Index(index))
    }

    /// The steps from the root.
    pub fn segments(&self) -> &[Seg] {
        &self.0
    }

    /// The path without its last step, and that step; `None` at the root.
    pub fn split_last(&self) -> Option<(Self, &Seg)> {
        let (last, parent) = self.0.split_last()?;
        Some((Self(parent.to_vec()), last))
    }

    fn then(&self, seg: Seg) -> Self {
        Self(self.0.iter().cloned().chain([seg]).collect())
    }
}

/// As people write it: `basicAlgorithm.yarnConfig.metrics[1]`; empty at the root.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, seg) in self.0.iter().enumerate() {
            match seg {
                Seg::Key(key) if n == 0 => write!(f, "{key}")?,
                Seg::Key(key) => write!(f, ".{key}")?,
                Seg::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Where one value stands, in bytes of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its key; the value itself in a sequence and at the root.
    pub key: Range<usize>,
    /// The value.
    pub value: Range<usize>,
}

/// What makes a text unreadable whatever its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// Which kind of trouble, in kebab-case.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// Where, in bytes.
    pub at: Range<usize>,
    /// What to write beside the caret; may be empty.
    pub label: &'static str,
    /// Another place that matters, and why.
    pub also: Option<(Range<usize>, &'static str)>,
    /// The key concerned, where there is one.
    pub path: Path,
}

/// The place of every value of one document.
#[derive(Debug, Default)]
pub struct Spans {
    places: BTreeMap<Path, Place>,
}

impl Spans {
    /// Reads the places of a document; a text of comments only has none.
    ///
    /// # Errors
    /// All duplicate and merge keys; or the first error of syntax, nesting deeper than 16, key that is no scalar or
    /// longer than 256 bytes, or second document, which end the reading.
    pub fn read(text: &str) -> Result<Self, Vec<Issue>> {
        let mut reader = Reader::default();
        for item in Parser::new_from_str(text) {
            let step = match item {
                Ok((event, span)) => reader.take(event, span.byte_range().unwrap_or(0..0)),
                Err(error) => {
                    let at = error.marker().byte_offset().unwrap_or(0).min(text.len());
                    Err(Issue::fatal("syntax", error.info(), at..at, ""))
                }
            };
            if let Err(fatal) = step {
                reader.issues.push(*fatal);
                return Err(reader.issues);
            }
        }
        if reader.issues.is_empty() { Ok(reader.spans) } else { Err(reader.issues) }
    }

    /// Whether the text has no value at all.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The place of exactly this path, if the text writes it out.
    pub fn get(&self, path: &Path) -> Option<&Place> {
        self.places.get(path)
    }

    /// The place of this path, or of its nearest ancestor (a missing field, a value behind an alias).
    pub fn place(&self, path: &Path) -> Place {
        (0..=path.0.len()).rev().find_map(|n| self.get(&Path(path.0[..n].to_vec()))).cloned().unwrap_or_default()
    }

    /// The shortest key or value that starts at this byte; empty if none does.
    pub fn token(&self, start: usize) -> Range<usize> {
        let ranges = self.places.values().flat_map(|place| [&place.key, &place.value]);
        let starting = ranges.filter(|range| range.start == start && !range.is_empty());
        starting.min_by_key(|range| range.end).cloned().unwrap_or(start..start)
    }
}

impl Issue {
    fn new(code: &'static str, message: impl Into<String>, at: Range<usize>, label: &'static str) -> Self {
        Self { code, message: message.into(), at, label, also: None, path: Path::default() }
    }

    /// One that ends the reading.
    fn fatal(code: &'static str, message: impl Into<String>, at: Range<usize>, label: &'static str) -> Box<Self> {
        Box::new(Self::new(code, message, at, label))
    }
}

/// A collection that is not closed yet.
enum Open {
    Map { path: Path, start: usize, next: Option<(String, Range<usize>)> },
    Seq { path: Path, start: usize, count: usize },
}

#[derive(Default)]
struct Reader {
    spans: Spans,
    open: Vec<Open>,
    documents: usize,
    issues: Vec<Issue>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, at: Range<usize>) -> Result<(), Box<Issue>> {
        match event {
            Event::DocumentStart(..) => self.document(at)?,
            Event::Scalar(text, ..) if self.awaits_key() && text.len() > MAX_KEY => {
                let message = format!("a key is longer than {MAX_KEY} bytes");
                return Err(Issue::fatal("unsupported-key", message, at.start..at.start, "keys are field names"));
            }
            Event::Scalar(text, ..) if self.awaits_key() => self.key(&text, at),
            Event::Scalar(..) => drop(self.put(at)),
            _ if self.awaits_key() && begins_value(&event) => {
                return Err(Issue::fatal(
                    "unsupported-key",
                    "a key that is not plain text",
                    at,
                    "keys are field names",
                ));
            }
            Event::Alias(..) => drop(self.put(at)),
            _ if self.open.len() >= MAX_DEPTH && begins_value(&event) => {
                let message = format!("nested more than {MAX_DEPTH} deep");
                return Err(Issue::fatal("too-deep", message, at.start..at.start, ""));
            }
            Event::MappingStart(..) => {
                let path = self.put(at.clone());
                self.open.push(Open::Map { path, start: at.start, next: None });
            }
            Event::SequenceStart(..) => {
                let path = self.put(at.clone());
                self.open.push(Open::Seq { path, start: at.start, count: 0 });
            }
            Event::MappingEnd | Event::SequenceEnd => self.close(at.end),
            _ => {}
        }
        Ok(())
    }

    fn document(&mut self, at: Range<usize>) -> Result<(), Box<Issue>> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        Err(Issue::fatal("second-document", "more than one document", at, "a second one starts here"))
    }

    fn awaits_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Map { next: None, .. }))
    }

    fn key(&mut self, text: &str, at: Range<usize>) {
        let Some(Open::Map { path, next, .. }) = self.open.last_mut() else { return };
        let child = path.key(text);
        *next = Some((text.into(), at.clone()));
        if let Some(first) = self.spans.places.get(&child) {
            // What is under it the second time is no duplicate of what was under it the first time.
            *next = Some((format!("{text} at {}", at.start), at.clone()));
            let also = Some((first.key.clone(), "first written here"));
            let message = format!("duplicate key `{text}`");
            let issue = Issue::new("duplicate-key", message, at, "written again here");
            self.issues.push(Issue { also, path: child, ..issue });
        } else if text == "<<" {
            let issue = Issue::new("merge-key", "merge keys are not supported", at, "write the fields out");
            self.issues.push(Issue { path: child, ..issue });
        }
    }

    /// Notes a value that begins here, and says what its path is.
    fn put(&mut self, value: Range<usize>) -> Path {
        let (path, key) = match self.open.last_mut() {
            None => (Path::default(), value.clone()),
            Some(Open::Seq { path, count, .. }) => {
                *count += 1;
                (path.index(*count - 1), value.clone())
            }
            Some(Open::Map { path, next, .. }) => {
                let (text, key) = next.take().unwrap_or_default();
                (path.key(&text), key)
            }
        };
        self.spans.places.insert(path.clone(), Place { key, value });
        path
    }

    fn close(&mut self, end: usize) {
        let Some(Open::Map { path, start, .. } | Open::Seq { path, start, .. }) = self.open.pop() else { return };
        if let Some(place) = self.spans.places.get_mut(&path) {
            place.value = start..end.max(start);
        }
    }
}

fn begins_value(event: &Event<'_>) -> bool {
    matches!(event, Event::Alias(..) | Event::MappingStart(..) | Event::SequenceStart(..))
}
