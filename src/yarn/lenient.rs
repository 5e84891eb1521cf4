//! Readers that forgive what Hadoop's JSON does with numbers, texts, lists and objects.
//! Must not know what any field means.
//!
//! Across Hadoop's lines one and the same field comes as a number or as that number in quotes; an empty list comes
//! as `[]`, `{}`, `null` or not at all; one element may stand where a list is meant. A shape that is not understood
//! reads as "not there": whether that is acceptable is for the reader of the field to say, not for the parser.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// A whole number, in quotes or not, with a fraction (cut off) or not; `None` where there is no number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Num(pub Option<i64>);

impl Num {
    /// The number, nothing and everything below zero being zero.
    pub fn or_zero(self) -> u64 {
        self.0.map_or(0, |number| u64::try_from(number).unwrap_or(0))
    }
}

/// A text, borrowed from the answer where it holds no escapes; empty where there is none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

/// A list, or the one element that stands for it; empty where there is neither.
#[derive(Debug)]
pub(super) struct List<T>(pub Vec<T>);

/// An object that may be missing or stand as `null`, `""` or `[]`.
#[derive(Debug, Default)]
pub(super) enum Maybe<T> {
    /// The key is not there.
    #[default]
    Missing,
    /// The key is there, the object is not.
    Empty,
    /// The object.
    There(T),
}

impl<T> Maybe<T> {
    /// The object, if there is one.
    pub fn get(self) -> Option<T> {
        match self {
            Self::There(value) => Some(value),
            Self::Missing | Self::Empty => None,
        }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Reads on through a list or an object that nobody wants.
fn skip_list<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

fn skip_object<'de, A: MapAccess<'de>>(mut object: A) -> Result<(), A::Error> {
    while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumVisitor)
    }
}

struct NumVisitor;

impl<'de> Visitor<'de> for NumVisitor {
    type Value = Num;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<Num, E> {
        Ok(Num(Some(number)))
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<Num, E> {
        Ok(Num(Some(i64::try_from(number).unwrap_or(i64::MAX))))
    }
    #[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what is meant")]
    fn visit_f64<E: Error>(self, number: f64) -> Result<Num, E> {
        Ok(Num(number.is_finite().then_some(number as i64)))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Num, E> {
        match text.trim().parse::<i64>() {
            Ok(number) => self.visit_i64(number),
            Err(_) => text.trim().parse().map_or(Ok(Num(None)), |number| self.visit_f64(number)),
        }
    }
    fn visit_bool<E: Error>(self, _: bool) -> Result<Num, E> {
        Ok(Num(None))
    }
    fn visit_unit<E: Error>(self) -> Result<Num, E> {
        Ok(Num(None))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Num, A::Error> {
        skip_list(list).map(|()| Num(None))
    }
    /// The documentation writes `"priority":{"priority":0}` where the code writes `"priority":0`.
    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Num, A::Error> {
        let first = object.next_entry::<IgnoredAny, Num>()?.map_or(Num(None), |(_, number)| number);
        skip_object(object).map(|()| first)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
    fn visit_i64<E: Error>(self, number: i64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }
    fn visit_u64<E: Error>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }
    fn visit_f64<E: Error>(self, number: f64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }
    fn visit_bool<E: Error>(self, word: bool) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(if word { "true" } else { "false" })))
    }
    fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Text<'de>, A::Error> {
        skip_list(list).map(|()| Text::default())
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Text<'de>, A::Error> {
        skip_object(object).map(|()| Text::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(List(elements))
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<List<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|element| List(vec![element]))
    }
    fn visit_unit<E: Error>(self) -> Result<List<T>, E> {
        Ok(List::default())
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<List<T>, E> {
        Ok(List::default())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Maybe<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(MaybeVisitor(PhantomData))
    }
}

struct MaybeVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for MaybeVisitor<T> {
    type Value = Maybe<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Maybe<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(Maybe::There)
    }
    fn visit_unit<E: Error>(self) -> Result<Maybe<T>, E> {
        Ok(Maybe::Empty)
    }
    fn visit_str<E: Error>(self, _: &str) -> Result<Maybe<T>, E> {
        Ok(Maybe::Empty)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Maybe<T>, A::Error> {
        skip_list(list).map(|()| Maybe::Empty)
    }
}
