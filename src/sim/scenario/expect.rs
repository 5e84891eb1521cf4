//! The figures of a report, by name, and what a scenario expects of them.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, de::MapAccess};

use super::Expectation;
use crate::policy::{
    checker::Checker,
    duration,
    field::{Field, Scalar, Shape, Wrong, mapping_shapes},
    spans::Path,
    spec::DurationSpec,
    spelling,
};

/// What a figure is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// So many.
    Count,
    /// Seconds; a scenario may write a duration.
    Seconds,
    /// Hours of a machine or of a GPU.
    Hours,
    /// A share, 0 to 1.
    Share,
    /// So many times as much.
    Ratio,
    /// The currency of the prices.
    Money,
}

/// The figures of a run that a scenario may expect something of: name, unit, what it is. A report gives all of them,
/// by these names; one that has no value in a run (a wait where no job started) meets no expectation.
pub const FIGURES: &[(&str, Unit, &str)] = &[
    ("jobs", Unit::Count, "Jobs that were submitted."),
    ("jobsSucceeded", Unit::Count, "Jobs that ended well."),
    ("jobsUnfinished", Unit::Count, "Jobs that still waited or ran at the end."),
    ("cost", Unit::Money, "What all machines cost, at the prices of the scenario."),
    ("machineHours", Unit::Hours, "Hours of machines that were paid for."),
    ("gpuHours", Unit::Hours, "Hours of GPUs that were paid for."),
    ("usefulShare", Unit::Share, "The share of what was paid for that did work which counted, 0 to 1."),
    ("ratioToOpt0", Unit::Ratio, "Cost, as a multiple of the least for which every job starts at once."),
    ("ratioToWork", Unit::Ratio, "Cost, as a multiple of the least for which the work can be done at all."),
    ("waitMean", Unit::Seconds, "Mean wait from a job's submission to its work."),
    ("waitP50", Unit::Seconds, "The wait that half of the jobs do not exceed."),
    ("waitP95", Unit::Seconds, "The wait that 95 % of the jobs do not exceed."),
    ("waitP99", Unit::Seconds, "The wait that 99 % of the jobs do not exceed."),
    ("gangWaitMean", Unit::Seconds, "Mean wait of the jobs that need all of their containers at once."),
    ("gangWaitP95", Unit::Seconds, "The wait that 95 % of the jobs that need all of their containers do not exceed."),
    ("makespan", Unit::Seconds, "From the first submission to the last job's end."),
    ("containersKilled", Unit::Count, "Containers that scaling down ended."),
    ("containersLost", Unit::Count, "Containers that faults ended: dead machines, machines taken away."),
    ("gpuHoursLost", Unit::Hours, "Hours of GPUs whose work was thrown away."),
    ("restarts", Unit::Count, "How often jobs had to start over."),
    ("boots", Unit::Count, "Machines that registered with YARN after an order."),
    ("machinesDeleted", Unit::Count, "Machines that were deleted by order."),
    ("recommissions", Unit::Count, "Nodes that were taken back instead of others being made."),
    ("peakWorkers", Unit::Count, "Most machines at once, ordered ones included."),
    ("finalWorkers", Unit::Count, "Machines at the end, ordered ones included."),
    ("violations", Unit::Count, "Promises that were broken: anything but 0 is a bug."),
    ("looks", Unit::Count, "Looks of the controller."),
];

mapping_shapes!(ExpectSpec, BoundsSpec);

/// Figures by name, and what they must be.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct ExpectSpec(pub BTreeMap<String, Field<FigureSpec>>);

impl JsonSchema for ExpectSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Expect".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let figure = |what: &str, schema: &Schema| {
            let mut schema = schema.clone();
            schema.insert("description".into(), what.into());
            schema.to_value()
        };
        let schema = FigureSpec::json_schema(generator);
        let figures = FIGURES.iter().map(|(name, _, what)| ((*name).to_string(), figure(what, &schema)));
        let properties: serde_json::Map<_, _> = figures.collect();
        json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

/// What a figure must be.
#[derive(Clone, Debug)]
pub enum FigureSpec {
    /// Exactly this.
    Exactly(AmountSpec),
    /// Within bounds.
    Within(BoundsSpec),
}

/// Bounds of a figure.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields)]
pub struct BoundsSpec {
    /// Not less.
    pub min: Field<AmountSpec>,
    /// Not more.
    pub max: Field<AmountSpec>,
}

impl Shape for FigureSpec {
    const EXPECTED: &'static str = "a number, a duration or `{min: …, max: …}`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        AmountSpec::scalar(value).map(Self::Exactly)
    }

    fn mapping<'de, A: MapAccess<'de>>(map: A) -> Result<Result<Self, Wrong>, A::Error> {
        BoundsSpec::mapping(map).map(|bounds| bounds.map(Self::Within))
    }
}

impl JsonSchema for FigureSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Figure".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let amount = AmountSpec::json_schema(generator);
        json_schema!({ "anyOf": [amount, BoundsSpec::json_schema(generator)] })
    }
}

/// A figure's value: a number, or a duration.
#[derive(Clone, Debug, PartialEq)]
pub enum AmountSpec {
    /// A number.
    Number(f64),
    /// A length of time.
    Time(DurationSpec),
}

impl Shape for AmountSpec {
    const EXPECTED: &'static str = "a number or a duration";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        match f64::scalar(value) {
            Ok(number) => Ok(Self::Number(number)),
            // What has no digit was not meant to be a duration.
            Err(_) if matches!(value, Scalar::Text(text) if text.contains(|c: char| c.is_ascii_digit())) => {
                DurationSpec::scalar(value).map(Self::Time)
            }
            Err(_) => Err(Wrong::found::<Self>(value)),
        }
    }
}

impl JsonSchema for AmountSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"] })
    }
}

/// What must have come of a run, in the order of [`FIGURES`].
pub fn check(checker: &mut Checker<'_>, path: &Path, field: &Field<ExpectSpec>) -> Vec<Expectation> {
    let Some(ExpectSpec(written)) = checker.read(path, field) else { return Vec::new() };
    let names: Vec<_> = FIGURES.iter().map(|(name, ..)| *name).collect();
    for name in written.keys().filter(|name| !names.contains(&name.as_str())) {
        let path = path.key(name);
        let advice = match spelling::meant(name, &names) {
            Some(figure) => format!("did you mean `{figure}`?"),
            None => format!("figures are {}", spelling::quoted(&names)),
        };
        let span = checker.spans.place(&path).key;
        checker.error("unknown-figure", &path, format!("`{path}` is no figure of a report"), |error| {
            crate::policy::Diagnostic { span, ..error }.help(advice)
        });
    }
    let figures = FIGURES.iter().filter_map(|(name, unit, _)| {
        let figure = checker.read(&path.key(name), written.get(*name)?)?;
        let (min, max) = bounds(checker, &path.key(name), &figure, *unit);
        Some(Expectation { figure: (*name).to_string(), min, max })
    });
    figures.collect()
}

fn bounds(checker: &mut Checker<'_>, path: &Path, figure: &FigureSpec, unit: Unit) -> (Option<f64>, Option<f64>) {
    let within = match figure {
        FigureSpec::Exactly(value) => {
            let value = amount(checker, path, value, unit);
            return (value, value);
        }
        FigureSpec::Within(within) => within,
    };
    let mut bound = |name: &str, field: &Field<AmountSpec>| {
        let path = path.key(name);
        let written = checker.read(&path, field)?;
        amount(checker, &path, &written, unit)
    };
    let (min, max) = (bound("min", &within.min), bound("max", &within.max));
    match (min, max) {
        (Some(min), Some(max)) if min > max => {
            let span = checker.spans.place(&path.key("max")).value;
            let message = format!("`{path}.min` ({min}) is greater than `{path}.max` ({max})");
            checker.error("min-above-max", &path.key("min"), message, |error| error.also(span, "the maximum is here"));
        }
        (None, None) if matches!((&within.min, &within.max), (Field::Absent, Field::Absent)) => {
            checker.error("missing-field", path, format!("`{path}` has neither `min` nor `max`"), |error| error);
        }
        _ => {}
    }
    (min, max)
}

/// A figure's value in its unit.
fn amount(checker: &mut Checker<'_>, path: &Path, written: &AmountSpec, unit: Unit) -> Option<f64> {
    match *written {
        AmountSpec::Number(number) if number < 0.0 => {
            checker.out_of_range(path, "0 or more", number);
            None
        }
        AmountSpec::Number(number) => Some(number),
        AmountSpec::Time(DurationSpec(time)) if unit == Unit::Seconds => Some(time.as_secs_f64()),
        AmountSpec::Time(DurationSpec(time)) => {
            let message = format!("`{path}`: expected a number, found the duration {}", duration::format(time));
            checker.error("wrong-type", path, message, |error| error);
            None
        }
    }
}
