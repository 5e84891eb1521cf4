//! A small writer of SVG and HTML: every text is escaped, every number has at most one decimal.
//!
//! Charts have no outer `viewBox`: they are as wide as the page, places along the width are in percent, heights in
//! pixels, so that text is never scaled. Paths, which know no percent, stand in an inner `svg` that is stretched.

use std::fmt::{self, Display, Write};

/// Markup that grows.
#[derive(Clone, Debug, Default)]
pub struct Markup {
    text: String,
}

/// An attribute's name and value.
pub type Attribute<'a> = (&'a str, &'a dyn Display);

impl Markup {
    /// An element's beginning.
    pub fn open(&mut self, tag: &str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.begin(tag, attributes);
        self.raw(">")
    }

    /// An element's end.
    pub fn close(&mut self, tag: &str) -> &mut Self {
        self.raw("</").raw(tag).raw(">")
    }

    /// An element without content.
    pub fn empty(&mut self, tag: &str, attributes: &[Attribute<'_>]) -> &mut Self {
        self.begin(tag, attributes);
        self.raw("/>")
    }

    /// An element with nothing but text.
    pub fn leaf(&mut self, tag: &str, attributes: &[Attribute<'_>], text: &str) -> &mut Self {
        self.open(tag, attributes).text(text).close(tag)
    }

    /// Text, escaped.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.text += &escaped(text);
        self
    }

    /// Markup as it is.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.text += markup;
        self
    }

    /// The markup.
    pub fn finish(self) -> String {
        self.text
    }

    fn begin(&mut self, tag: &str, attributes: &[Attribute<'_>]) {
        self.raw("<").raw(tag);
        for (name, value) in attributes {
            let value = escaped(&value.to_string());
            self.raw(" ").raw(name).raw("=\"").raw(&value).raw("\"");
        }
    }
}

/// Text that means nothing but itself in HTML and SVG, inside quotes, too.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A number with at most one decimal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number(pub f64);

impl Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.1}", self.0);
        let text = text.trim_end_matches(".0");
        f.write_str(if text == "-0" { "0" } else { text })
    }
}

/// A share of the width, 0 to 1, in percent with two decimals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(pub f64);

impl Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}%", self.0 * 100.0)
    }
}

/// The width of the stretched inner `svg`: its `x` runs from 0 to this.
pub const STRETCHED: f64 = 1000.0;

/// Begins the inner `svg` in which `x` is 0 to [`STRETCHED`] and `y` is in pixels.
pub fn open_stretched(markup: &mut Markup, height: f64) {
    let height = Number(height);
    let (view, full) = (format!("0 0 {} {height}", Number(STRETCHED)), "100%");
    markup.open(
        "svg",
        &[
            ("viewBox", &view),
            ("preserveAspectRatio", &"none"),
            ("width", &full),
            ("height", &height),
            ("aria-hidden", &"true"),
        ],
    );
}

/// A line in steps through these places: each height holds until the next one, the last until `end`.
pub fn steps(points: &[(f64, f64)], end: f64) -> String {
    let mut path = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = match index {
            0 => write!(path, "M{} {}", Number(*x), Number(*y)),
            _ => write!(path, "H{}V{}", Number(*x), Number(*y)),
        };
    }
    path + &format!("H{}", Number(end))
}

/// The area between such a line and the height `base`.
pub fn area(points: &[(f64, f64)], end: f64, base: f64) -> String {
    let start = points.first().map_or(0.0, |point| point.0);
    format!("{}V{}H{}Z", steps(points, end), Number(base), Number(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        let mut markup = Markup::default();
        markup.leaf("p", &[("title", &"a\"b'<c>")], "<script>&\u{1b}[31m");
        assert_eq!(markup.finish(), "<p title=\"a&quot;b&#39;&lt;c&gt;\">&lt;script&gt;&amp; [31m</p>");
    }

    #[test]
    fn numbers_are_short_and_steps_are_rectangular() {
        let numbers: Vec<_> = [0.04, -0.04, 12.0, 12.35, 1e6].iter().map(|n| Number(*n).to_string()).collect();
        assert_eq!(numbers, ["0", "0", "12", "12.3", "1000000"]);
        assert_eq!(Percent(0.123_456).to_string(), "12.35%");
        assert_eq!(area(&[(0.0, 5.0), (10.0, 2.5)], 20.0, 9.0), "M0 5H10V2.5H20V9H0Z");
    }
}
