//! From a text to a file as written, with everything that is no field of it: for every kind of file that we read.
//!
//! In order: size, then [`Spans`] (syntax, depth, duplicate keys), then serde through `serde_ignored` (which tells
//! every unknown field, not only the first). What the values mean is the business of each kind's own `check`.

use schemars::Schema;

use super::{
    diagnostic::Diagnostic,
    field::{Field, Shape},
    schema::{fields_at, homes_of},
    spans::{Path, Seg, Spans},
    spelling,
};

/// Longest file, in bytes: a hundred times the longest that anybody writes, and small enough that no trick of YAML can
/// cost much time.
pub const MAX_BYTES: usize = 1 << 20;

/// Most diagnostics of one file: nobody reads more, and each is worth a look at the whole text.
pub const MAX_DIAGNOSTICS: usize = 100;

/// Most places that are named for a field that belongs elsewhere; more would say nothing.
const MAX_HOMES: usize = 3;

/// What some editors put before UTF-8 text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// A kind of file.
pub struct Kind {
    /// What is said of a file without any value.
    pub empty: &'static str,
    /// What such a file needs.
    pub needs: &'static str,
    /// Its JSON Schema: which fields there are.
    pub schema: fn() -> Schema,
    /// Fields that are no mistake of spelling, but that this program does not serve: what to say, and advice.
    pub known_elsewhere: fn(&str) -> Option<(&'static str, &'static str)>,
}

/// Where the values of a text stand.
///
/// # Errors
/// Too large a text, or all that is wrong with its syntax, in the text's order.
pub fn spans(text: &str) -> Result<Spans, Vec<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let message = "the file is larger than 1 MiB";
        return Err(vec![Diagnostic::error("too-large", Path::default(), 0..0, message)]);
    }
    Spans::read(text).map_err(|issues| in_order(issues.into_iter().map(Diagnostic::from)))
}

/// In the order of the text; the first hundred.
pub fn in_order(diagnostics: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
    let mut diagnostics: Vec<_> = diagnostics.into_iter().collect();
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
    if let Some(next) = diagnostics.get(MAX_DIAGNOSTICS) {
        let message = format!("there is more: only the first {MAX_DIAGNOSTICS} problems are shown");
        let more = Diagnostic {
            severity: next.severity,
            ..Diagnostic::error("more", Path::default(), next.span.clone(), message)
        };
        diagnostics.splice(MAX_DIAGNOSTICS.., [more]);
    }
    diagnostics
}

/// The file as written; `None` where there is none, with the reason among the errors.
pub fn read<T: Shape>(text: &str, spans: &Spans, kind: &Kind, errors: &mut Vec<Diagnostic>) -> Option<T> {
    let mut unknown = Vec::new();
    // libyaml takes a byte order mark for a document of its own.
    let deserializer = serde_yaml::Deserializer::from_str(text.trim_start_matches(BYTE_ORDER_MARK));
    let spec = serde_ignored::deserialize(deserializer, |path| unknown.push(path_of(&path)));
    if !unknown.is_empty() {
        let schema = (kind.schema)();
        let unknown = unknown.iter().filter_map(|path| unknown_field(path, spans, &schema, kind));
        errors.extend(unknown.take(MAX_DIAGNOSTICS + 1));
    }
    match spec {
        // A text of comments only: libyaml says so by an error, granit by giving no value.
        _ if spans.is_empty() => errors.push(empty(kind)),
        Ok(Field::Value(spec)) => return Some(spec),
        Ok(Field::Absent) => errors.push(empty(kind)),
        Ok(Field::Wrong(wrong)) => {
            let place = spans.place(&Path::default());
            errors.push(Diagnostic::error(wrong.code, Path::default(), place.value, wrong.message));
        }
        Err(error) => errors.push(yaml_error(&error, text, spans)),
    }
    None
}

fn empty(kind: &Kind) -> Diagnostic {
    Diagnostic::error("empty", Path::default(), 0..0, kind.empty).help(kind.needs)
}

/// What libyaml or serde could not read at all; rare, since shapes are `check`'s business.
fn yaml_error(error: &serde_yaml::Error, text: &str, spans: &Spans) -> Diagnostic {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let skipped = text.len() - text.trim_start_matches(BYTE_ORDER_MARK).len();
    let span = error.location().map_or(0..0, |location| spans.token(location.index() + skipped));
    Diagnostic::error("syntax", Path::default(), span, message)
}

fn path_of(path: &serde_ignored::Path<'_>) -> Path {
    use serde_ignored::Path as Ignored;
    match path {
        Ignored::Root => Path::default(),
        Ignored::Seq { parent, index } => path_of(parent).index(*index),
        Ignored::Map { parent, key } => path_of(parent).key(key),
        Ignored::Some { parent } | Ignored::NewtypeStruct { parent } | Ignored::NewtypeVariant { parent } => {
            path_of(parent)
        }
    }
}

/// `None` for a field of something that is no mapping of fields: that is the error to report, and `check` does.
fn unknown_field(path: &Path, spans: &Spans, schema: &Schema, kind: &Kind) -> Option<Diagnostic> {
    let (parent, Seg::Key(name)) = path.split_last()? else { return None };
    let fields = fields_at(schema, &parent)?;
    let span = spans.place(path).key;
    if let Some((message, help)) = (kind.known_elsewhere)(name) {
        return Some(Diagnostic::error("unsupported", path.clone(), span, message).help(help));
    }
    let message = format!("unknown field `{path}`");
    let error = Diagnostic::error("unknown-field", path.clone(), span, message).label("no such field here");
    Some(error.help(advice(name, &fields, schema)))
}

fn advice(name: &str, fields: &[String], schema: &Schema) -> String {
    let known = || fields.iter().map(String::as_str);
    if let Some(field) = spelling::same(name, known()) {
        return format!("did you mean `{field}`?");
    }
    let homes = homes_of(schema, name).into_iter().map(|home| match home.segments() {
        [] => "at the top level".into(),
        // Whichever item of a list it is.
        _ => format!("in `{}`", home.to_string().replace("[0]", "[]")),
    });
    let homes: Vec<_> = homes.collect();
    if (1..=MAX_HOMES).contains(&homes.len()) {
        return format!("`{name}` belongs {}", homes.join(" or "));
    }
    match spelling::similar(name, known()) {
        Some(field) => format!("did you mean `{field}`?"),
        None => format!("allowed here: {}", spelling::quoted(fields)),
    }
}
