//! Axes: where a value stands between 0 and 1, and which values are marked.

use chrono::{DateTime, Datelike, Months, NaiveTime, TimeDelta, Utc};

use super::words::grouped;
use crate::sim::Ms;

/// A mark on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// Where, 0 to 1.
    pub at: f64,
    /// What it says.
    pub label: String,
    /// Whether it is shown where there is little room.
    pub is_major: bool,
}

/// Calendar time along a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeAxis {
    /// The calendar time at 0.
    pub start: DateTime<Utc>,
    /// The run's length.
    pub end_ms: Ms,
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Distances between ticks, in ms; longer ones are months.
const STEPS: &[i64] = &[
    1000,
    5000,
    10_000,
    30_000,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
];

/// Most ticks on a time axis.
const TICKS_MAX: i64 = 9;

impl TimeAxis {
    /// Where an instant stands.
    pub fn place(&self, at_ms: Ms) -> f64 {
        at_ms as f64 / self.end_ms.max(1) as f64
    }

    /// An instant for people, to the second; with the day where the run has several.
    pub fn clock(&self, at_ms: Ms) -> String {
        let form = if self.end_ms > DAY.unsigned_abs() { "%a %d %b %H:%M:%S" } else { "%H:%M:%S" };
        self.at(at_ms).format(form).to_string()
    }

    fn at(&self, at_ms: Ms) -> DateTime<Utc> {
        let offset = TimeDelta::milliseconds(i64::try_from(at_ms).unwrap_or(i64::MAX));
        self.start.checked_add_signed(offset).unwrap_or(self.start)
    }

    /// Round instants of the calendar; every second one is major, or all where there are few.
    pub fn ticks(&self) -> Vec<Tick> {
        let length = i64::try_from(self.end_ms).unwrap_or(i64::MAX);
        let instants = match STEPS.iter().find(|step| length / **step < TICKS_MAX) {
            Some(step) => self.round_instants(*step, length),
            None => self.months(length),
        };
        let every = if instants.len() > 5 { 2 } else { 1 };
        let tick = |(index, (at_ms, label)): (usize, (Ms, String))| Tick {
            at: self.place(at_ms),
            label,
            is_major: index.is_multiple_of(every),
        };
        instants.into_iter().enumerate().map(tick).collect()
    }

    fn round_instants(&self, step: i64, length: i64) -> Vec<(Ms, String)> {
        let midnight = self.start.date_naive().and_time(NaiveTime::MIN).and_utc();
        let since = (self.start - midnight).num_milliseconds();
        let first = (step - since.rem_euclid(step)).rem_euclid(step);
        let mut instants = Vec::new();
        let mut at = first;
        while at <= length && instants.len() < 20 {
            let at_ms = at.unsigned_abs();
            let instant = self.at(at_ms);
            let is_midnight = instant.time() == NaiveTime::MIN;
            let form = match step {
                step if step < MINUTE => "%H:%M:%S",
                step if step < DAY && !is_midnight => "%H:%M",
                step if step < DAY => "%a %d",
                _ => "%d %b",
            };
            instants.push((at_ms, instant.format(form).to_string()));
            at += step;
        }
        instants
    }

    fn months(&self, length: i64) -> Vec<(Ms, String)> {
        let every = u32::try_from((length / (30 * DAY) / TICKS_MAX + 1).clamp(1, 1200)).unwrap_or(1);
        let Some(mut month) = self.start.date_naive().with_day(1) else { return Vec::new() };
        let mut instants = Vec::new();
        while instants.len() < 20 {
            let Some(next) = month.checked_add_months(Months::new(every)) else { break };
            month = next;
            let at = (month.and_time(NaiveTime::MIN).and_utc() - self.start).num_milliseconds();
            if at > length {
                break;
            }
            let form = if month.month() == 1 || every >= 12 { "%Y" } else { "%b" };
            instants.push((at.unsigned_abs(), month.format(form).to_string()));
        }
        instants
    }
}

/// Round numbers from 0 to at most `top`, about four of them.
pub fn round_ticks(top: f64) -> Vec<f64> {
    if top <= 0.0 {
        return vec![0.0];
    }
    let mut size = 1.0;
    while size * 10.0 <= top {
        size *= 10.0;
    }
    while size > top {
        size /= 10.0;
    }
    let step = [0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0].iter().map(|part| part * size).find(|step| top / step <= 5.0);
    let step = step.unwrap_or(size);
    let mut ticks = vec![0.0];
    let mut count = 1.0;
    while count * step <= top * 1.000_001 {
        ticks.push(count * step);
        count += 1.0;
    }
    ticks
}

/// The same for things that are counted: no halves.
pub fn count_ticks(top: f64) -> Vec<f64> {
    round_ticks(top).into_iter().filter(|tick| tick.fract() == 0.0).collect()
}

/// A count on an axis.
pub fn count_label(value: f64) -> String {
    grouped(value, 0)
}

/// Lengths of time on a logarithmic axis, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogTimeAxis {
    from: f64,
    to: f64,
}

/// Lengths of time that people think in, with their names.
const ROUND_TIMES: &[(f64, &str, bool)] = &[
    (1.0, "1 s", true),
    (10.0, "10 s", true),
    (60.0, "1 min", true),
    (600.0, "10 min", true),
    (3600.0, "1 h", true),
    (21_600.0, "6 h", false),
    (86_400.0, "1 d", true),
    (604_800.0, "7 d", true),
    (2_592_000.0, "30 d", false),
];

impl LogTimeAxis {
    /// From the last round time below `shortest` seconds, one second at the least (all that is shorter stands there),
    /// to a bit more than `longest` seconds.
    pub fn new(shortest: f64, longest: f64) -> Self {
        let below = ROUND_TIMES.iter().map(|(seconds, ..)| *seconds).filter(|seconds| *seconds <= shortest);
        let from = below.fold(1.0, f64::max);
        Self { from, to: longest.max(from * 60.0) * 1.3 }
    }

    /// Where a length of time in seconds stands.
    pub fn place(&self, seconds: f64) -> f64 {
        let seconds = seconds.clamp(self.from, self.to);
        libm::log(seconds / self.from) / libm::log(self.to / self.from)
    }

    /// Round lengths of time.
    pub fn ticks(&self) -> Vec<Tick> {
        let inside = ROUND_TIMES.iter().filter(|(seconds, ..)| (self.from..=self.to).contains(seconds));
        let tick = |(seconds, label, is_major): &(f64, &str, bool)| Tick {
            at: self.place(*seconds),
            label: if *seconds == self.from { format!("≤ {label}") } else { (*label).into() },
            is_major: *is_major,
        };
        inside.map(tick).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(hours: u64) -> TimeAxis {
        let start = "2026-03-14T09:20:00Z".parse().unwrap();
        TimeAxis { start, end_ms: hours * HOUR.unsigned_abs() }
    }

    fn labels(hours: u64) -> String {
        axis(hours).ticks().iter().map(|tick| tick.label.clone()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn time_is_marked_at_round_instants_of_the_calendar() {
        assert_eq!(labels(1), "09:20 09:30 09:40 09:50 10:00 10:10 10:20");
        assert_eq!(labels(24), "12:00 15:00 18:00 21:00 Sun 15 03:00 06:00 09:00");
        assert_eq!(labels(24 * 7), "15 Mar 16 Mar 17 Mar 18 Mar 19 Mar 20 Mar 21 Mar");
        assert_eq!(labels(24 * 365), "May Jul Sep Nov 2027 Mar");
        assert!(axis(24 * 365 * 40).ticks().len() <= 20);
        assert_eq!(axis(0).ticks().len(), 1);
        assert!(axis(30).ticks().iter().all(|tick| (0.0..=1.0).contains(&tick.at)));
    }

    #[test]
    fn numbers_are_marked_at_round_values() {
        assert_eq!(round_ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(count_ticks(3.2), [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(count_ticks(1.0), [0.0, 1.0]);
        assert_eq!(count_ticks(130.0), [0.0, 50.0, 100.0]);
        assert_eq!(count_ticks(0.0), [0.0]);
    }

    #[test]
    fn waits_are_placed_by_their_logarithm() {
        let axis = LogTimeAxis::new(0.0, 10_000.0 / 1.3);
        assert!((axis.place(100.0) - 0.5).abs() < 1e-12);
        assert_eq!((axis.place(0.0), axis.place(1e9)), (0.0, 1.0));
        assert_eq!(axis.ticks().len(), 5);
        let labels: Vec<_> = LogTimeAxis::new(90.0, 4000.0).ticks().into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["≤ 1 min", "10 min", "1 h"]);
    }
}
