//! One thing to say about a policy file, and how it is shown: for people as a compiler does, for machines as data.
//!
//! Knows no policy. A diagnostic points into a text that the caller keeps.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Element, Level, Renderer, Snippet, normalize_untrusted_str};
use serde::Serialize;

use super::spans::{Issue, Path};

/// Whether a diagnostic makes the file invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The file is not a policy.
    Error,
    /// The file is a policy, but it will probably not do what its writer wants.
    Warning,
}

/// One thing to say about a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// Its kind, in kebab-case; stable, for machines and search engines.
    pub code: &'static str,
    /// What is wrong: a lowercase fragment that names the field.
    pub message: String,
    /// The field concerned; the root where none is.
    pub path: Path,
    /// Where, in bytes of the text.
    pub span: Range<usize>,
    /// What to write beside the caret; may be empty.
    pub label: String,
    /// Other places that matter, and why.
    pub also: Vec<(Range<usize>, String)>,
    /// What to do about it.
    pub help: Option<String>,
}

/// A diagnostic for machines. Lines and columns count from 1; columns count characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiagnosticJson {
    /// The file, as it was named on the command line.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The first column.
    pub column: usize,
    /// The column after the last; on a value of several lines, that of its first line.
    pub end_column: usize,
    /// The field, `basicAlgorithm.yarnConfig.metrics[1]`; empty where none is concerned.
    pub field: String,
    /// Error or warning.
    pub severity: Severity,
    /// Its kind, in kebab-case.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, path: Path, span: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            severity: Severity::Error,
            code,
            message,
            path,
            span,
            label: String::new(),
            also: Vec::new(),
            help: None,
        }
    }

    /// The same with words beside its caret.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }

    /// The same with another place that matters.
    #[must_use]
    pub fn also(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.also.push((span, label.into()));
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// As a compiler shows it: title, file, line, column, the line itself, caret and advice.
    pub fn render(&self, file: &str, text: &str, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let annotation = AnnotationKind::Primary.span(clip(&self.span, text));
        let annotation = if self.label.is_empty() { annotation } else { annotation.label(&self.label) };
        let also = self.also.iter();
        let also = also.map(|(at, label)| AnnotationKind::Context.span(clip(at, text)).label(label));
        let snippet = Snippet::source(text).path(file).annotation(annotation).annotations(also);
        let help = self.help.iter().map(|help| Element::from(Level::HELP.message(normalize_untrusted_str(help))));
        let title = level.primary_title(&self.message).id(self.code);
        renderer.render(&[title.element(snippet).elements(help)])
    }

    /// For machines.
    pub fn to_json(&self, file: &str, text: &str) -> DiagnosticJson {
        let span = clip(&self.span, text);
        let line_start = text[..span.start].rfind('\n').map_or(0, |newline| newline + 1);
        // A byte order mark is no column that an editor would show.
        let line = text[line_start..].strip_prefix('\u{feff}').unwrap_or(&text[line_start..]);
        let line_start = text.len() - line.len();
        let column = text[line_start.min(span.start)..span.start].chars().count() + 1;
        let marked = text[span.clone()].lines().next().unwrap_or("").trim_end();
        DiagnosticJson {
            file: file.into(),
            line: text[..span.start].matches('\n').count() + 1,
            column,
            end_column: column + marked.chars().count(),
            field: self.path.to_string(),
            severity: self.severity,
            code: self.code,
            message: self.message.clone(),
            help: self.help.clone(),
        }
    }
}

impl From<Issue> for Diagnostic {
    fn from(issue: Issue) -> Self {
        let diagnostic = Self::error(issue.code, issue.path, issue.at, issue.message).label(issue.label);
        match issue.also {
            Some((at, label)) => diagnostic.also(at, label),
            None => diagnostic,
        }
    }
}

/// Reads a file's bytes as UTF-8.
///
/// # Errors
/// A diagnostic, and a text that it can be shown with: the file up to the first bad byte, which is replaced.
pub fn decode(bytes: &[u8]) -> Result<&str, Box<(String, Diagnostic)>> {
    str::from_utf8(bytes).map_err(|error| {
        let start = error.valid_up_to();
        let text = String::from_utf8_lossy(&bytes[..=start]);
        let message = format!("the file is not UTF-8 text: byte {} cannot be read", start + 1);
        Box::new((text.into_owned(), Diagnostic::error("not-utf8", Path::default(), start..start, message)))
    })
}

/// A span that lies within the text, on character boundaries, and without the blank end of a block.
fn clip(span: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.floor_char_boundary(span.end.clamp(start, text.len()));
    start..start + text[start..end].trim_end().len()
}
