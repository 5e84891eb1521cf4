//! Figures as people write them: few digits, a unit, always the same for the same value.

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Seconds, shown as a length of time.
    Seconds,
    /// Machine-hours, GPU-hours.
    Hours,
    /// In the scenario's currency.
    Money,
    /// 0 to 1, shown in percent.
    Share,
    /// Percent.
    Percent,
    /// One amount by another.
    Ratio,
    /// An amount with decimals.
    Amount,
}

impl Unit {
    /// For machines: the unit of the bare number.
    pub fn word(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Seconds => "s",
            Self::Hours => "h",
            Self::Money => "currency",
            Self::Share | Self::Ratio => "1",
            Self::Percent => "%",
            Self::Amount => "amount",
        }
    }

    /// A value for people.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Count => grouped(value, 0),
            Self::Seconds => length_of_time(value),
            Self::Hours => format!("{} h", amount(value)),
            Self::Money => grouped(value, if value.abs() < 10_000.0 { 2 } else { 0 }),
            Self::Share => format!("{:.1} %", value * 100.0),
            Self::Percent => format!("{value:.1} %"),
            Self::Ratio => format!("{value:.3}"),
            Self::Amount => amount(value),
        }
    }
}

/// What is shown where there is no figure.
pub const NONE: &str = "-";

/// Three or four digits that count.
fn amount(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    grouped(value, decimals)
}

/// With a narrow gap between thousands, as `12 345.6` is written: no comma or point that could be read as another.
pub fn grouped(value: f64, decimals: usize) -> String {
    let plain = format!("{:.decimals$}", value.abs());
    let (whole, rest) = plain.find('.').map_or((plain.as_str(), ""), |at| plain.split_at(at));
    let mut text = String::new();
    let is_zero = plain.chars().all(|c| c == '0' || c == '.');
    if value < 0.0 && !is_zero {
        text.push('-');
    }
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text + rest
}

/// A length of time in its two largest units: `850 ms`, `12.5 s`, `4 min 10 s`, `2 h 05 min`, `3 d 4 h`.
pub fn length_of_time(seconds: f64) -> String {
    if seconds < 0.0 {
        return format!("-{}", length_of_time(-seconds));
    }
    let tenths = (seconds * 10.0).round();
    if tenths == 0.0 {
        return if seconds > 0.0 { "< 0.1 s".into() } else { "0 s".into() };
    }
    if tenths < 600.0 {
        let text = format!("{:.1}", tenths / 10.0);
        return format!("{} s", text.trim_end_matches(".0"));
    }
    let whole = seconds.round();
    let (minutes, hours, days) = ((whole / 60.0).floor(), (whole / 3600.0).floor(), (whole / 86_400.0).floor());
    if minutes < 60.0 {
        let rest = whole - minutes * 60.0;
        return if rest == 0.0 { format!("{minutes} min") } else { format!("{minutes} min {rest:02} s") };
    }
    if hours < 48.0 {
        let rest = minutes - hours * 60.0;
        return if rest == 0.0 { format!("{hours} h") } else { format!("{hours} h {rest:02} min") };
    }
    let rest = hours - days * 24.0;
    if rest == 0.0 { format!("{} d", grouped(days, 0)) } else { format!("{} d {rest} h", grouped(days, 0)) }
}

/// `1 job`, `2 jobs`.
pub fn count(n: usize, what: &str) -> String {
    format!("{} {what}{}", grouped(n as f64, 0), if n == 1 { "" } else { "s" })
}

/// A code as words: `scaleUp`, `SCALE_UP` and `scale-up` are `scale up`.
pub fn spaced(code: &str) -> String {
    let (mut text, mut after_small) = (String::new(), false);
    for c in code.chars() {
        match c {
            '-' | '_' => text.push(' '),
            c => {
                if c.is_uppercase() && after_small {
                    text.push(' ');
                }
                text.extend(c.to_lowercase());
            }
        }
        after_small = c.is_lowercase() || c.is_ascii_digit();
    }
    text
}

/// Names and sentences of others: nothing in them may steer a terminal or break a line.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_have_two_units_at_most() {
        let table = [
            (0.0, "0 s"),
            (0.04, "< 0.1 s"),
            (0.5, "0.5 s"),
            (12.0, "12 s"),
            (59.96, "1 min"),
            (61.0, "1 min 01 s"),
            (3599.7, "1 h"),
            (7500.0, "2 h 05 min"),
            (172_800.0, "2 d"),
            (100_000_000.0, "1\u{202f}157 d 9 h"),
            (-61.0, "-1 min 01 s"),
        ];
        for (seconds, text) in table {
            assert_eq!(length_of_time(seconds), text);
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(grouped(1_234_567.891, 1), "1\u{202f}234\u{202f}567.9");
        assert_eq!(grouped(-0.001, 2), "0.00");
        assert_eq!(grouped(-1000.0, 0), "-1\u{202f}000");
    }

    #[test]
    fn codes_are_read_as_words() {
        for code in ["scaleUp", "SCALE_UP", "scale-up"] {
            assert_eq!(spaced(code), "scale up");
        }
    }
}
