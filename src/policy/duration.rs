//! Durations as Dataproc's tools write them: `120s`, `2m`, `1h30m`, `0.5d`, `PT15M`, or a bare number of seconds.
//!
//! The grammar is that of gcloud's importer: ISO 8601 with or without its `P` and `T`, in any case, with decimals;
//! `M` is minutes. Exact to the nanosecond; finer digits are dropped.

use std::time::Duration;

/// Units in the order in which they must be written, with their length in seconds.
const UNITS: [(char, u64); 5] = [('W', 604_800), ('D', 86_400), ('H', 3_600), ('M', 60), ('S', 1)];

/// Longest duration that is read at all, so that no sum below overflows: far above every bound of a policy.
const MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// One day, the upper bound of both durations of a policy.
pub const DAY: Duration = Duration::from_secs(86_400);

/// What a duration may look like, for messages.
pub const FORMS: &str = "write a duration as `120s`, `2m`, `1h30m`, `0.5d`, `PT15M`, or a whole number of seconds";

/// Reads a duration.
///
/// # Errors
/// A fragment that says what is wrong with the text: a sign, an unknown unit, a number without a unit, a unit out of
/// order or given twice, more than 100 years.
pub fn parse(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a duration must not be empty".into());
    }
    if text.starts_with(['-', '+']) {
        return Err(format!("a duration has no sign, found `{text}`"));
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().and_then(from_seconds).ok_or_else(|| too_long(text));
    }
    Scan::new(text)?.total()
}

/// A whole number of seconds, if it is not more than 100 years.
pub fn from_seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds)).filter(|duration| *duration <= MAX)
}

/// The shortest text that [`parse`] reads as this duration: `2m`, `1h30m`, `0.5s`.
pub fn format(duration: Duration) -> String {
    let mut rest = duration.as_secs();
    let mut text = String::new();
    for (unit, seconds) in UNITS[1..4].iter().copied() {
        if rest >= seconds {
            text += &format!("{}{}", rest / seconds, unit.to_ascii_lowercase());
            rest %= seconds;
        }
    }
    let nanos = format!("{:09}", duration.subsec_nanos());
    match nanos.trim_end_matches('0') {
        "" if rest == 0 && !text.is_empty() => text,
        "" => format!("{text}{rest}s"),
        fraction => format!("{text}{rest}.{fraction}s"),
    }
}

fn too_long(text: &str) -> String {
    format!("`{text}` is longer than 100 years")
}

/// The text of a duration with units, and how far it has been read.
struct Scan<'a> {
    text: &'a str,
    rest: &'a str,
    /// `P` stands first and `T` has not come yet: there an `M` would be months.
    in_date: bool,
    seen_time: bool,
    /// Units before this one may not follow any more.
    next_unit: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Result<Self, String> {
        let rest = text.strip_prefix(['p', 'P']).unwrap_or(text);
        let scan = Self { text, rest, in_date: rest.len() < text.len(), seen_time: false, next_unit: 0 };
        if rest.contains(|c: char| c.is_ascii_digit()) { Ok(scan) } else { Err(scan.unreadable()) }
    }

    fn total(mut self) -> Result<Duration, String> {
        let mut sum = 0_u128;
        while !self.rest.is_empty() {
            self.skip_time_mark()?;
            let (whole, fraction) = self.number()?;
            let seconds = self.unit()?;
            sum = sum.saturating_add(nanos(whole, fraction, seconds));
        }
        let nanos = u64::try_from(sum).ok().map(Duration::from_nanos);
        nanos.filter(|duration| *duration <= MAX).ok_or_else(|| too_long(self.text))
    }

    fn skip_time_mark(&mut self) -> Result<(), String> {
        let Some(rest) = self.rest.strip_prefix(['t', 'T']) else { return Ok(()) };
        if self.seen_time || rest.is_empty() {
            return Err(self.unreadable());
        }
        (self.rest, self.seen_time, self.in_date) = (rest, true, false);
        // After `T` only hours, minutes and seconds may follow.
        self.next_unit = self.next_unit.max(2);
        Ok(())
    }

    /// The digits before and after the decimal point.
    fn number(&mut self) -> Result<(&'a str, &'a str), String> {
        let (whole, mut rest) = split_digits(self.rest);
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            (fraction, rest) = split_digits(after);
            if fraction.is_empty() {
                return Err(self.unreadable());
            }
        }
        if whole.is_empty() {
            return Err(self.unreadable());
        }
        self.rest = rest;
        Ok((whole, fraction))
    }

    /// The seconds of the unit that stands here.
    fn unit(&mut self) -> Result<u64, String> {
        let Some(letter) = self.rest.chars().next() else {
            return Err(format!("the last number of `{}` has no unit", self.text));
        };
        let found = UNITS.iter().position(|(unit, _)| *unit == letter.to_ascii_uppercase());
        let Some(position) = found else {
            return Err(format!("unknown unit `{letter}` in `{}`", self.text));
        };
        if position < self.next_unit {
            return Err(format!("unit `{letter}` of `{}` is out of order or given twice", self.text));
        }
        if self.in_date && position >= 2 {
            return Err(format!("`{}` lacks a `T` before its hours, minutes and seconds", self.text));
        }
        self.next_unit = position + 1;
        self.rest = &self.rest[1..];
        Ok(UNITS[position].1)
    }

    fn unreadable(&self) -> String {
        format!("`{}` is not a duration", self.text)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// `whole.fraction` units of so many seconds, in nanoseconds; saturates, since [`MAX`] is checked on the sum.
fn nanos(whole: &str, fraction: &str, seconds: u64) -> u128 {
    const SECOND: u128 = 1_000_000_000;
    let unit = u128::from(seconds) * SECOND;
    let whole = whole.parse::<u128>().unwrap_or(u128::MAX).saturating_mul(unit);
    // 18 digits of a week are still finer than a nanosecond, and cannot overflow.
    let digits = &fraction[..fraction.len().min(18)];
    let divisor = 10_u128.pow(u32::try_from(digits.len()).unwrap_or(0));
    whole.saturating_add(digits.parse::<u128>().unwrap_or(0) * unit / divisor)
}
