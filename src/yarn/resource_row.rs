//! YARN's `ResourceInfo`, the piece of JSON of which every answer is full.
//! Must not know whose resources they are.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::lenient::{Num, Text};
use crate::model::Resources;

/// A figure (MB, cores, GPUs) at most: an exabyte of memory. Keeps sums over garbage from overflowing.
const MAX_FIGURE: u64 = 1 << 40;
/// The name of GPUs among YARN's resource types.
pub(super) const GPU: &str = "yarn.io/gpu";

/// A figure of YARN's as ours: never negative, never so large that sums overflow.
pub(super) fn figure(number: Num) -> u64 {
    number.or_zero().min(MAX_FIGURE)
}

/// YARN's `ResourceInfo`. The code writes `vCores`, its documentation `virtualCores`.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ResourceRow {
    memory: Num,
    v_cores: Num,
    virtual_cores: Num,
    resource_informations: Gpus,
}

impl ResourceRow {
    /// Memory and cores as a node's own fields tell them.
    pub fn of(memory: Num, v_cores: Num) -> Self {
        Self { memory, v_cores, ..Self::default() }
    }

    /// In the vocabulary: never negative.
    pub fn amounts(&self) -> Resources {
        let cores = if self.v_cores.0.is_some() { self.v_cores } else { self.virtual_cores };
        Resources::new(figure(self.memory), figure(cores), figure(self.resource_informations.0))
    }

    /// The sum with signs kept: 512 used and -511 free is 1 in all.
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Num, b: Num| Num(Some(a.0.unwrap_or(0).saturating_add(b.0.unwrap_or(0))));
        Self {
            memory: sum(self.memory, other.memory),
            v_cores: sum(self.v_cores, other.v_cores),
            virtual_cores: sum(self.virtual_cores, other.virtual_cores),
            resource_informations: Gpus(sum(self.resource_informations.0, other.resource_informations.0)),
        }
    }
}

/// The GPUs among `resourceInformations`, picked out while reading: this list is the bulk of every answer, and all
/// else in it is known already.
#[derive(Clone, Copy, Default)]
struct Gpus(Num);

impl<'de> Deserialize<'de> for Gpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GpusVisitor)
    }
}

/// Visits the wrapper object, the list within it, and (where there is no list) its only element.
struct GpusVisitor;

impl<'de> Visitor<'de> for GpusVisitor {
    type Value = Gpus;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("resourceInformations")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Gpus, A::Error> {
        let (mut gpus, mut is_gpu, mut value) = (Gpus::default(), false, Num::default());
        while let Some(Text(key)) = object.next_key()? {
            match key.as_ref() {
                "resourceInformation" => gpus = object.next_value()?,
                "name" => is_gpu = object.next_value::<Text<'de>>()?.0 == GPU,
                "value" => value = object.next_value()?,
                _ => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(if is_gpu { Gpus(value) } else { gpus })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Gpus, A::Error> {
        let mut gpus = Gpus::default();
        while let Some(element) = list.next_element::<Gpus>()? {
            gpus = if element.0.0.is_some() { element } else { gpus };
        }
        Ok(gpus)
    }

    fn visit_unit<E: Error>(self) -> Result<Gpus, E> {
        Ok(Gpus::default())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Gpus, E> {
        Ok(Gpus::default())
    }
}
