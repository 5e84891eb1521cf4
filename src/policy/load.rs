//! From the text of a policy file to a [`Policy`], or to everything that is wrong with it at once.
//!
//! In order: size, then [`Spans`] (syntax, depth, duplicate keys), then serde through `serde_ignored` (which tells
//! every unknown field, not only the first), then `check`, then `lint`. Reads no file.
//!
//! # Where we are stricter than Dataproc
//! * Unknown fields are errors; gcloud's importer drops them silently.
//! * Duplicate keys, merge keys, tags and a second document are errors.
//! * A primary `minInstances` of 0 is an error; on the wire it is the same as none, and the service fills in 2.
//! * `sparkStandaloneConfig` is an error: nothing here could obey it.
//! * Durations: `P15M` (months, by ISO 8601) and a number with decimals but no unit are errors.

use schemars::Schema;

use super::{
    Policy, check,
    diagnostic::Diagnostic,
    field::Field,
    lint,
    schema::{fields_at, homes_of, schema},
    spans::{Path, Seg, Spans},
    spec::PolicySpec,
};

/// Longest policy file, in bytes: a hundred times the longest that anybody writes, and small enough that no trick of
/// YAML can cost much time.
pub const MAX_BYTES: usize = 1 << 20;

/// Most diagnostics of one file: nobody reads more, and each is worth a look at the whole text.
pub const MAX_DIAGNOSTICS: usize = 100;

/// What some editors put before UTF-8 text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What is known beside the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The cluster keeps Spark's shuffle data on primary workers (`dataproc:efm.spark.shuffle=primary-worker`).
    /// Dataproc then refuses every graceful decommission time-out but 0 (SPARK-30873), and so do we.
    pub primary_worker_shuffle: bool,
}

/// A valid policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The policy.
    pub policy: Policy,
    /// What will probably not do what its writer wants, in the order of the file.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a policy file's text.
///
/// # Errors
/// All errors of the file (the first hundred), in its order. Where the text is no YAML that we read, only those of its syntax.
pub fn load(text: &str, options: &LoadOptions) -> Result<Loaded, Vec<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let message = "the file is larger than 1 MiB";
        return Err(vec![Diagnostic::error("too-large", Path::default(), 0..0, message)]);
    }
    let spans = Spans::read(text).map_err(|issues| in_order(issues.into_iter().map(Diagnostic::from)))?;
    let mut errors = Vec::new();
    let spec = read_spec(text, &spans, &mut errors);
    let checked = spec.as_ref().map(|spec| check::check(spec, &spans, *options));
    let policy = checked.and_then(|checked| checked.map_err(|found| errors.extend(found)).ok());
    match policy {
        Some(policy) if errors.is_empty() => {
            let zero = spec.as_ref().and_then(|spec| check::zero_minimum(spec, &policy, &spans));
            let warnings = in_order(lint::lint(&policy, &spans, *options).into_iter().chain(zero));
            Ok(Loaded { policy, warnings })
        }
        _ => Err(in_order(errors)),
    }
}

fn in_order(diagnostics: impl IntoIterator<Item = Diagnostic>) -> Vec<Diagnostic> {
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
fn read_spec(text: &str, spans: &Spans, errors: &mut Vec<Diagnostic>) -> Option<PolicySpec> {
    let mut unknown = Vec::new();
    // libyaml takes a byte order mark for a document of its own.
    let deserializer = serde_yaml::Deserializer::from_str(text.trim_start_matches(BYTE_ORDER_MARK));
    let spec = serde_ignored::deserialize(deserializer, |path| unknown.push(path_of(&path)));
    let schema = schema();
    let unknown = unknown.iter().filter_map(|path| unknown_field(path, spans, &schema));
    errors.extend(unknown.take(MAX_DIAGNOSTICS + 1));
    match spec {
        // A text of comments only: libyaml says so by an error, granit by giving no value.
        _ if spans.is_empty() => errors.push(empty()),
        Ok(Field::Value(spec)) => return Some(spec),
        Ok(Field::Absent) => errors.push(empty()),
        Ok(Field::Wrong(wrong)) => {
            let place = spans.place(&Path::default());
            errors.push(Diagnostic::error(wrong.code, Path::default(), place.value, wrong.message));
        }
        Err(error) => errors.push(yaml_error(&error, text, spans)),
    }
    None
}

fn empty() -> Diagnostic {
    let message = "the file holds no policy";
    Diagnostic::error("empty", Path::default(), 0..0, message).help("it needs `basicAlgorithm` and `workerConfig`")
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
fn unknown_field(path: &Path, spans: &Spans, schema: &Schema) -> Option<Diagnostic> {
    let (parent, Seg::Key(name)) = path.split_last()? else { return None };
    let fields = fields_at(schema, &parent)?;
    let span = spans.place(path).key;
    if let Some((message, help)) = known_elsewhere(name) {
        return Some(Diagnostic::error("unsupported", path.clone(), span, message).help(help));
    }
    let message = format!("unknown field `{path}`");
    let error = Diagnostic::error("unknown-field", path.clone(), span, message).label("no such field here");
    Some(error.help(advice(name, &fields, schema)))
}

/// Fields that are no mistake of spelling, but that this program does not serve.
fn known_elsewhere(name: &str) -> Option<(&'static str, &'static str)> {
    match name {
        "gangAlgorithm" => Some((
            "`gangAlgorithm` is not supported by this version",
            "use `basicAlgorithm`; with `scaleUpFactor: 1.0` it adds all that is pending at once",
        )),
        "sparkStandaloneConfig" => Some((
            "`sparkStandaloneConfig` is for the serverless side of Dataproc, not for YARN clusters",
            "write `yarnConfig` instead",
        )),
        _ => None,
    }
}

fn advice(name: &str, fields: &[String], schema: &Schema) -> String {
    let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
    let wanted = plain(name);
    if let Some(field) = fields.iter().find(|field| plain(field) == wanted) {
        return format!("did you mean `{field}`?");
    }
    let homes = homes_of(schema, name).into_iter().map(|home| match home.segments() {
        [] => "at the top level".into(),
        _ => format!("in `{home}`"),
    });
    let homes: Vec<_> = homes.collect();
    if !homes.is_empty() {
        return format!("`{name}` belongs {}", homes.join(" or "));
    }
    let distances = fields.iter().map(|field| (strsim::damerau_levenshtein(&plain(field), &wanted), field));
    match distances.min() {
        // A third of the letters wrong is still a slip of the fingers; more is another word.
        Some((distance, field)) if distance <= (wanted.chars().count() / 3).max(1) => {
            format!("did you mean `{field}`?")
        }
        _ => format!("allowed here: {}", quoted(fields)),
    }
}

fn quoted(fields: &[String]) -> String {
    fields.iter().map(|field| format!("`{field}`")).collect::<Vec<_>>().join(", ")
}
