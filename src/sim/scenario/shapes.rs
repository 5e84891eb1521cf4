//! Values of a scenario file that are more than a number or a word: instants, steps in time, delays.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize,
    de::{MapAccess, SeqAccess},
};

use crate::policy::{
    duration,
    field::{Field, Scalar, Shape, Wrong, mapping_shapes},
    spec::DurationSpec,
};

/// How long something takes, as written.
#[derive(Clone, Debug)]
pub enum DelaySpec {
    /// Always the same.
    Fixed(DurationSpec),
    /// Log-normal.
    Tail(TailSpec),
    /// One of these.
    List(Vec<Field<DurationSpec>>),
}

/// A log-normal length of time.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase")]
#[schemars(deny_unknown_fields, extend("required" = ["median", "p95"]))]
pub struct TailSpec {
    /// Half are faster.
    pub median: Field<DurationSpec>,
    /// One in twenty is slower.
    pub p95: Field<DurationSpec>,
}

mapping_shapes!(TailSpec);

/// An instant, as RFC 3339 writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstantSpec(pub DateTime<Utc>);

impl Shape for InstantSpec {
    const EXPECTED: &'static str = "an instant such as `2026-01-05T08:00:00Z`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        let Scalar::Text(text) = value else { return Err(Wrong::found::<Self>(value)) };
        let instant = DateTime::parse_from_rfc3339(text.trim());
        instant.map(|instant| Self(instant.to_utc())).map_err(|_| Wrong::found::<Self>(value))
    }
}

impl JsonSchema for InstantSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Instant".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }
}

/// A step in time with its sign, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSpec(pub i64);

impl Shape for StepSpec {
    const EXPECTED: &'static str = "a duration, with a minus where it goes back";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        let text = match value {
            Scalar::Text(text) => text.trim().to_string(),
            Scalar::Integer(seconds) => seconds.to_string(),
            Scalar::Bool(_) | Scalar::Float(_) => return Err(Wrong::found::<Self>(value)),
        };
        let (sign, length) = match text.strip_prefix('-') {
            Some(length) => (-1, length),
            None => (1, text.strip_prefix('+').unwrap_or(&text)),
        };
        let length = duration::parse(length).map_err(|message| Wrong {
            message,
            code: "invalid-duration",
            help: Some(duration::FORMS),
        })?;
        Ok(Self(sign * i64::try_from(length.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl JsonSchema for StepSpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Step".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"] })
    }
}

impl Shape for DelaySpec {
    const EXPECTED: &'static str = "a duration, `{median: …, p95: …}` or a list of durations";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        DurationSpec::scalar(value).map(Self::Fixed)
    }

    fn mapping<'de, A: MapAccess<'de>>(map: A) -> Result<Result<Self, Wrong>, A::Error> {
        TailSpec::mapping(map).map(|tail| tail.map(Self::Tail))
    }

    fn list<'de, A: SeqAccess<'de>>(seq: A) -> Result<Result<Self, Wrong>, A::Error> {
        Vec::list(seq).map(|list| list.map(Self::List))
    }
}

impl JsonSchema for DelaySpec {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let duration = DurationSpec::json_schema(generator);
        let tail = TailSpec::json_schema(generator);
        json_schema!({ "anyOf": [duration, tail, { "type": "array", "items": duration, "minItems": 1 }] })
    }
}
