//! One field of a file as written: absent, of the right shape, or wrong. Knows no field by name.
//!
//! serde stops at the first wrong type; a person wants all of them. So a [`Field`] never fails to deserialize: it
//! keeps what is wrong with it as a sentence, and `check` reports it where the value stands.

use std::{borrow::Cow, fmt, marker::PhantomData};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};

/// What stands at one field. `null` is absent, as in Dataproc's JSON.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// Not written.
    #[default]
    Absent,
    /// Written, and of the right shape.
    Value(T),
    /// Written, but no `T`.
    Wrong(Wrong),
}

/// Why a value is not what its field takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrong {
    /// What is allowed and what was found, as a fragment.
    pub message: String,
    /// Its kind, as a diagnostic's code.
    pub code: &'static str,
    /// What to write instead, where the message does not say it.
    pub help: Option<&'static str>,
}

impl<T> Field<T> {
    /// The value, where there is a right one.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Wrong(_) => None,
        }
    }
}

/// A single value of a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number; may be infinite or not a number.
    Float(f64),
    /// Text, quoted or not.
    Text(&'a str),
}

impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "`{value}`"),
            Self::Integer(value) => write!(f, "`{value}`"),
            Self::Float(value) => write!(f, "`{value}`"),
            Self::Text(value) => write!(f, "the text `{}`", shorten(value)),
        }
    }
}

/// Enough of a text to recognise it in a message.
pub fn shorten(text: &str) -> Cow<'_, str> {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => text.into(),
        Some((end, _)) => format!("{}…", &text[..end]).into(),
    }
}

/// What a [`Field`] can hold: it overrides the one reader that fits it, and the others say what was found instead.
pub trait Shape: Sized {
    /// What is allowed, as in "expected {a number}".
    const EXPECTED: &'static str;

    /// Reads a single value.
    ///
    /// # Errors
    /// What is wrong with it.
    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        Err(Wrong::found::<Self>(value))
    }

    /// Reads a mapping. The outer error is the parser's, the inner one is a value of the wrong shape.
    ///
    /// # Errors
    /// What the parser says.
    fn mapping<'de, A: MapAccess<'de>>(mut map: A) -> Result<Result<Self, Wrong>, A::Error> {
        while map.next_entry::<Anything, Anything>()?.is_some() {}
        Ok(Err(Wrong::found::<Self>("a mapping")))
    }

    /// Reads a list, as [`Shape::mapping`] does.
    ///
    /// # Errors
    /// What the parser says.
    fn list<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Result<Self, Wrong>, A::Error> {
        while seq.next_element::<Anything>()?.is_some() {}
        Ok(Err(Wrong::found::<Self>("a list")))
    }
}

impl Wrong {
    /// A value of the wrong type.
    pub fn found<T: Shape>(found: impl fmt::Display) -> Self {
        Self { message: format!("expected {}, found {found}", T::EXPECTED), code: "wrong-type", help: None }
    }
}

/// The number, where it is whole and a float holds it exactly (below 2^53).
fn whole(value: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
    let number = || value as i64;
    (value.fract() == 0.0 && value.abs() < 9.0e15).then(number)
}

/// A whole number. A quoted one and `2.0` are taken too, as protobuf's JSON does.
impl Shape for i64 {
    const EXPECTED: &'static str = "a whole number";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        let whole = match value {
            Scalar::Integer(value) => Self::try_from(value).ok(),
            Scalar::Float(value) => whole(value),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Bool(_) => None,
        };
        whole.ok_or_else(|| Wrong::found::<Self>(value))
    }
}

/// A finite number; a whole one and a quoted one are taken too, as protobuf's JSON does.
impl Shape for f64 {
    const EXPECTED: &'static str = "a number";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        let number = match value {
            Scalar::Integer(value) => Some(value as Self),
            Scalar::Float(value) => Some(value),
            Scalar::Text(text) => text.trim().parse().ok(),
            Scalar::Bool(_) => None,
        };
        match number {
            Some(number) if number.is_finite() => Ok(number),
            Some(_) => {
                Err(Wrong { message: format!("expected a finite number, found {value}"), ..Wrong::found::<Self>(0) })
            }
            None => Err(Wrong::found::<Self>(value)),
        }
    }
}

impl Shape for bool {
    const EXPECTED: &'static str = "`true` or `false`";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        match value {
            Scalar::Bool(value) => Ok(value),
            _ => Err(Wrong::found::<Self>(value)),
        }
    }
}

impl Shape for String {
    const EXPECTED: &'static str = "text";

    fn scalar(value: Scalar<'_>) -> Result<Self, Wrong> {
        match value {
            Scalar::Text(text) => Ok(text.into()),
            _ => Err(Wrong::found::<Self>(format_args!("{value} (put it in quotes)"))),
        }
    }
}

impl<T: for<'de> Deserialize<'de>> Shape for Vec<T> {
    const EXPECTED: &'static str = "a list";

    fn list<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Result<Self, Wrong>, A::Error> {
        let mut items = Self::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Ok(items))
    }
}

impl<'de, T: Shape> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor(PhantomData))
    }
}

/// An editor is told of the right shape only.
impl<T: JsonSchema> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

impl<T> From<Result<T, Wrong>> for Field<T> {
    fn from(result: Result<T, Wrong>) -> Self {
        result.map_or_else(Self::Wrong, Self::Value)
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Shape> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: Error>(self) -> Result<Field<T>, E> {
        Ok(Field::Absent)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Bool(value)).into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Integer(value.into())).into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Integer(value.into())).into())
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Integer(value)).into())
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Integer(i128::try_from(value).unwrap_or(i128::MAX))).into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Float(value)).into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Field<T>, E> {
        Ok(T::scalar(Scalar::Text(value)).into())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Field<T>, A::Error> {
        T::mapping(map).map(Field::from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Field<T>, A::Error> {
        T::list(seq).map(Field::from)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Field<T>, A::Error> {
        Err(A::Error::custom("tags are not supported"))
    }
}

/// A value that is read and forgotten. Not serde's `IgnoredAny`, which the collector of unknown fields would report.
struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Field::<Self>::deserialize(deserializer).map(|_| Self)
    }
}

impl Shape for Anything {
    const EXPECTED: &'static str = "anything";
}

/// Makes shapes of structs of fields, which derive [`Deserialize`].
macro_rules! mapping_shapes {
    ($($spec:ty),+ $(,)?) => {$(
        impl $crate::policy::field::Shape for $spec {
            const EXPECTED: &'static str = "a mapping of fields";

            fn mapping<'de, A: serde::de::MapAccess<'de>>(
                map: A,
            ) -> Result<Result<Self, $crate::policy::field::Wrong>, A::Error> {
                serde::Deserialize::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Ok)
            }
        }
    )+};
}

/// Makes a shape, with its schema, of a type that is written as one of some words.
macro_rules! words {
    ($type:ty, $first:literal => $one:expr $(, $word:literal => $value:expr)* $(,)?) => {
        impl $crate::policy::field::Shape for $type {
            const EXPECTED: &'static str = concat!("one of `", $first, "`" $(, ", `", $word, "`")*);

            fn scalar(
                value: $crate::policy::field::Scalar<'_>,
            ) -> Result<Self, $crate::policy::field::Wrong> {
                use $crate::policy::field::{Scalar, Wrong};
                let wrong = Wrong::found::<Self>(value);
                match value {
                    Scalar::Text($first) => Ok($one),
                    $(Scalar::Text($word) => Ok($value),)*
                    Scalar::Text(text) => {
                        let help = match $crate::policy::spelling::meant(text, &[$first $(, $word)*]) {
                            Some($first) => Some(concat!("did you mean `", $first, "`?")),
                            $(Some($word) => Some(concat!("did you mean `", $word, "`?")),)*
                            _ => None,
                        };
                        Err(Wrong { help, ..wrong })
                    }
                    Scalar::Bool(_) | Scalar::Integer(_) | Scalar::Float(_) => Err(wrong),
                }
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "enum": [$first $(, $word)*] })
            }
        }
    };
}

pub(crate) use {mapping_shapes, words};
