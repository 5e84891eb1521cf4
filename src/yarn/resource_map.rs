//! The maps from a resource's name to an amount in which YARN tells `resourceSecondsMap` and `allocatedResources`.
//! Must not know what the amounts are of.
//!
//! Seen: `{}`, `{"entry":{"key":…,"value":"7"},"entry":{…}}` with the key `entry` repeated (3.3, 3.4), and
//! `{"entry":[{"key":…,"value":7},…]}` (containers everywhere, all of 3.5). Memory and cores are told beside them as
//! plain figures too, so only the GPUs are picked out.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    lenient::{Num, Text},
    resource_row::GPU,
};

/// The amount of GPUs in such a map; no number where none is named.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct GpuEntry(pub Num);

impl<'de> Deserialize<'de> for GpuEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GpuEntryVisitor)
    }
}

/// Visits the map, a list of entries in it, and each entry.
struct GpuEntryVisitor;

impl<'de> Visitor<'de> for GpuEntryVisitor {
    type Value = GpuEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of resources")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<GpuEntry, A::Error> {
        let (mut gpus, mut is_gpu, mut value) = (GpuEntry::default(), false, Num::default());
        while let Some(Text(key)) = object.next_key()? {
            match key.as_ref() {
                "entry" => {
                    let entry: GpuEntry = object.next_value()?;
                    gpus = if entry.0.0.is_some() { entry } else { gpus };
                }
                "key" => is_gpu = object.next_value::<Text<'de>>()?.0 == GPU,
                "value" => value = object.next_value()?,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(if is_gpu { GpuEntry(value) } else { gpus })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<GpuEntry, A::Error> {
        let mut gpus = GpuEntry::default();
        while let Some(entry) = list.next_element::<GpuEntry>()? {
            gpus = if entry.0.0.is_some() { entry } else { gpus };
        }
        Ok(gpus)
    }

    fn visit_unit<E: Error>(self) -> Result<GpuEntry, E> {
        Ok(GpuEntry::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<GpuEntry, E> {
        Ok(GpuEntry::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let table = [
            ("{}", None),
            ("null", None),
            (r#""""#, None),
            (r#"{"entry":{"key":"vcores","value":"3"}}"#, None),
            (
                r#"{"entry":{"key":"memory-mb","value":"9"},"entry":{"key":"yarn.io/gpu","value":"7"},"entry":{"key":"vcores","value":"3"}}"#,
                Some(7),
            ),
            (
                r#"{"entry":[{"key":"memory-mb","value":9},{"key":"yarn.io/gpu","value":7},{"key":"vcores","value":3}]}"#,
                Some(7),
            ),
            (r#"{"entry":[{"value":"0","key":"yarn.io/gpu"}]}"#, Some(0)),
        ];
        for (text, gpus) in table {
            assert_eq!(serde_json::from_str::<GpuEntry>(text).unwrap().0.0, gpus, "{text}");
        }
    }
}
