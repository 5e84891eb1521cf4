//! What every check of a file needs: fields that are absent, wrong or out of bounds, told where they stand.

use std::{
    fmt::Display,
    ops::{Range, RangeInclusive},
    time::Duration,
};

use super::{
    diagnostic::{Diagnostic, Severity},
    document::MAX_DIAGNOSTICS,
    duration,
    field::Field,
    spans::{Path, Spans},
    spec::DurationSpec,
};

/// Largest count: the proto's `int32`, and Hadoop's too.
pub const MAX_COUNT: u32 = i32::MAX as u32;

/// Collects what is wrong with a file's fields, so that one look tells all.
pub struct Checker<'a> {
    /// Where the values stand.
    pub spans: &'a Spans,
    /// What is wrong, in no order.
    pub errors: Vec<Diagnostic>,
    /// What is doubtful, in no order.
    pub warnings: Vec<Diagnostic>,
}

impl<'a> Checker<'a> {
    /// Nothing found yet.
    pub fn new(spans: &'a Spans) -> Self {
        Self { spans, errors: Vec::new(), warnings: Vec::new() }
    }

    /// The value of a field; a wrong one is reported.
    pub fn read<T: Clone>(&mut self, path: &Path, field: &Field<T>) -> Option<T> {
        if let Field::Wrong(wrong) = field {
            let message = format!("`{path}`: {}", wrong.message);
            let help = wrong.help.map(String::from);
            self.error(wrong.code, path, message, |error| Diagnostic { help, ..error });
        }
        field.value().cloned()
    }

    /// The value of a field that must be there.
    pub fn require<T: Clone>(&mut self, path: &Path, field: &Field<T>) -> Option<T> {
        self.missing(path, field);
        self.read(path, field)
    }

    /// Reports a field that must be there and is not, at the key of the mapping that lacks it.
    pub fn missing<T>(&mut self, path: &Path, field: &Field<T>) {
        if matches!(field, Field::Absent) {
            self.lacks(path, format!("`{path}` is missing"), |error| error);
        }
    }

    /// Reports something that must be there and is not, at the key of the mapping that lacks it.
    pub fn lacks(&mut self, path: &Path, message: String, more: impl FnOnce(Diagnostic) -> Diagnostic) {
        let Some((parent, _)) = path.split_last() else { return };
        let (span, label) = match parent.segments() {
            [] => (self.top(), "required at the top level"),
            _ => (self.place_of(&parent), "required in here"),
        };
        let error = Diagnostic::error("missing-field", path.clone(), span, message);
        self.errors.push(more(error.label(label)));
    }

    /// A duration within bounds.
    pub fn duration(
        &mut self,
        path: &Path,
        field: &Field<DurationSpec>,
        bounds: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let DurationSpec(value) = self.read(path, field)?;
        if !bounds.contains(&value) {
            let (least, most) = (duration::format(*bounds.start()), duration::format(*bounds.end()));
            self.out_of_range(path, &format!("between {least} and {most}"), duration::format(value));
        }
        Some(value)
    }

    /// A whole number, not below `least`.
    pub fn count(&mut self, path: &Path, field: &Field<i64>, least: u32) -> Option<u32> {
        let value = self.read(path, field)?;
        let count = u32::try_from(value).ok().filter(|count| (least..=MAX_COUNT).contains(count));
        if count.is_some() {
            return count;
        }
        let most = if value > i64::from(MAX_COUNT) { format!(" and at most {MAX_COUNT}") } else { String::new() };
        self.out_of_range(path, &format!("{least} or more{most}"), value);
        None
    }

    /// A number within bounds.
    pub fn number(&mut self, path: &Path, field: &Field<f64>, bounds: RangeInclusive<f64>) -> Option<f64> {
        let value = self.read(path, field)?;
        if !bounds.contains(&value) {
            self.out_of_range(path, &format!("between {} and {}", bounds.start(), bounds.end()), value);
            return None;
        }
        // Minus zero is zero, also when it is printed.
        Some(value + 0.0)
    }

    /// Reports a value out of its bounds.
    pub fn out_of_range(&mut self, path: &Path, allowed: &str, found: impl Display) {
        let message = format!("`{path}` must be {allowed}, found {found}");
        self.error("out-of-range", path, message, |error| error.label(format!("must be {allowed}")));
    }

    /// Reports an error at a field's value.
    pub fn error(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let span = self.spans.place(path).value;
        self.errors.push(more(Diagnostic::error(code, path.clone(), span, message)));
    }

    /// Reports a doubt at a field's value.
    pub fn warn(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        more: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let warning = Diagnostic::error(code, path.clone(), self.spans.place(path).value, message);
        self.warnings.push(more(Diagnostic { severity: Severity::Warning, ..warning }));
    }

    /// What stands for a mapping as a whole: its key; in a list, its first key, which takes a look at the whole text,
    /// and is not worth it where there are more errors than are shown.
    fn place_of(&self, path: &Path) -> Range<usize> {
        let place = self.spans.place(path);
        let is_item = place.key == place.value && self.errors.len() <= MAX_DIAGNOSTICS;
        if is_item { self.spans.token(place.value.start) } else { place.key }
    }

    /// The first key stands for the whole file.
    fn top(&self) -> Range<usize> {
        self.spans.token(self.spans.place(&Path::default()).value.start)
    }
}
