//! What a machine type of Compute Engine has, by its name: cores, memory, GPUs that come with it. Knows no cluster.
//!
//! Cores and memory are those of Compute Engine's pages on machine families; a type that is not here is not guessed at.

use crate::model::Resources;

/// Families whose names say how much memory a core has, in MB: `n2-standard-4`. A class with 0 does not exist.
/// Family, standard, highmem, highcpu.
const FAMILIES: &[(&str, u64, u64, u64)] = &[
    ("n1", 3_840, 6_656, 922),
    ("n2", 4_096, 8_192, 1_024),
    ("n2d", 4_096, 8_192, 1_024),
    ("n4", 4_096, 8_192, 2_048),
    ("e2", 4_096, 8_192, 1_024),
    ("c2", 4_096, 0, 0),
    ("c2d", 4_096, 8_192, 2_048),
    ("c3", 4_096, 8_192, 2_048),
    ("c3d", 4_096, 8_192, 2_048),
    ("c4", 3_840, 7_936, 2_048),
    ("c4a", 4_096, 8_192, 2_048),
    ("t2d", 4_096, 0, 0),
];

/// Types whose names do not say it all: cores, memory in GB, GPUs.
const TYPES: &[(&str, u64, u64, u64)] = &[
    ("e2-micro", 2, 1, 0),
    ("e2-small", 2, 2, 0),
    ("e2-medium", 2, 4, 0),
    ("a2-highgpu-1g", 12, 85, 1),
    ("a2-highgpu-2g", 24, 170, 2),
    ("a2-highgpu-4g", 48, 340, 4),
    ("a2-highgpu-8g", 96, 680, 8),
    ("a2-megagpu-16g", 96, 1_360, 16),
    ("a2-ultragpu-1g", 12, 170, 1),
    ("a2-ultragpu-2g", 24, 340, 2),
    ("a2-ultragpu-4g", 48, 680, 4),
    ("a2-ultragpu-8g", 96, 1_360, 8),
    ("a3-highgpu-1g", 26, 234, 1),
    ("a3-highgpu-2g", 52, 468, 2),
    ("a3-highgpu-4g", 104, 936, 4),
    ("a3-highgpu-8g", 208, 1_872, 8),
    ("a3-megagpu-8g", 208, 1_872, 8),
    ("a3-edgegpu-8g", 208, 1_872, 8),
    ("a3-ultragpu-8g", 224, 2_952, 8),
    ("a4-highgpu-8g", 224, 3_968, 8),
    ("g2-standard-4", 4, 16, 1),
    ("g2-standard-8", 8, 32, 1),
    ("g2-standard-12", 12, 48, 1),
    ("g2-standard-16", 16, 64, 1),
    ("g2-standard-24", 24, 96, 2),
    ("g2-standard-32", 32, 128, 1),
    ("g2-standard-48", 48, 192, 4),
    ("g2-standard-96", 96, 384, 8),
];

/// Most cores and memory in MB that a name may claim: sums of such workers cannot overflow.
const CORES_MAX: u64 = 1_000;
const MEMORY_MB_MAX: u64 = 64 << 20;

/// Cores, memory and GPUs of this machine type, given by its name or an address that ends in it; `None` where it is not
/// known. A NodeManager declares less memory. GPUs that a template adds are not among these.
pub(super) fn machine(machine_type: &str) -> Option<Resources> {
    let name = machine_type.rsplit('/').next()?;
    let name = name.strip_suffix("-lssd").unwrap_or(name);
    let listed = TYPES.iter().find(|(listed, ..)| *listed == name);
    let found = match listed {
        Some((_, cores, memory_gb, gpus)) => Resources::new(memory_gb * 1_024, *cores, *gpus),
        None => custom(name).or_else(|| by_family(name))?,
    };
    let is_sane = (1..=CORES_MAX).contains(&found.vcores) && (1..=MEMORY_MB_MAX).contains(&found.memory_mb);
    is_sane.then_some(found)
}

/// `custom-4-5120`, `n2-custom-4-5120`, `n2-custom-4-50000-ext`: cores and memory in MB.
fn custom(name: &str) -> Option<Resources> {
    let (family, sizes) = name.split_once("custom-")?;
    let (cores, memory_mb) = sizes.strip_suffix("-ext").unwrap_or(sizes).split_once('-')?;
    // As many GPUs as the listed type of so many cores has.
    let listed = format!("g2-standard-{cores}");
    let gpus = match family {
        "g2-" => TYPES.iter().find(|(known, ..)| *known == listed)?.3,
        "" => 0,
        _ => FAMILIES.iter().any(|(known, ..)| family == format!("{known}-")).then_some(0)?,
    };
    Some(Resources::new(memory_mb.parse().ok()?, cores.parse().ok()?, gpus))
}

fn by_family(name: &str) -> Option<Resources> {
    let mut words = name.split('-');
    let (family, class, cores) = (words.next()?, words.next()?, words.next()?.parse::<u64>().ok()?);
    let (_, standard, highmem, highcpu) = FAMILIES.iter().find(|(known, ..)| *known == family)?;
    let memory_mb = match class {
        "standard" => *standard,
        "highmem" => *highmem,
        "highcpu" => *highcpu,
        _ => 0,
    };
    let is_whole = words.next().is_none() && memory_mb > 0;
    is_whole.then(|| Resources::new(memory_mb.saturating_mul(cores), cores, 0))
}

/// Memory that Dataproc hands to YARN on a machine with so much, both in MB. The share has no published formula: 3278
/// of 4096 MB were seen on an e2-medium and 13544 of 16384 MB on an n2-standard-4, and each holds here from its size
/// on (and the first one below it). An estimate, then: used only where no worker runs and no property says it.
pub(super) fn yarn_memory_mb(memory_mb: u64) -> u64 {
    let (seen, of) = if memory_mb < 16_384 { (3_278, 4_096) } else { (13_544, 16_384) };
    memory_mb.saturating_mul(seen) / of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_a_machine_has() {
        for (name, expected) in [
            ("n1-standard-4", Some((15_360, 4, 0))),
            ("n1-highmem-8", Some((53_248, 8, 0))),
            ("n2-standard-4", Some((16_384, 4, 0))),
            ("n2-highcpu-16", Some((16_384, 16, 0))),
            ("n2d-highmem-2", Some((16_384, 2, 0))),
            ("e2-medium", Some((4_096, 2, 0))),
            ("c2-standard-60", Some((245_760, 60, 0))),
            ("c3-standard-8-lssd", Some((32_768, 8, 0))),
            ("custom-6-20480", Some((20_480, 6, 0))),
            ("n2-custom-4-50000-ext", Some((50_000, 4, 0))),
            ("a2-highgpu-1g", Some((87_040, 12, 1))),
            ("g2-standard-24", Some((98_304, 24, 2))),
            ("g2-custom-48-200704", Some((200_704, 48, 4))),
            (
                "https://compute.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/a2-highgpu-4g",
                Some((348_160, 48, 4)),
            ),
            ("a3-megagpu-8g", Some((1_916_928, 208, 8))),
            ("c2-highmem-4", None),
            ("z9-standard-4", None),
            ("x-custom-4-5120", None),
            ("n1-standard-99999999999999999999", None),
            ("n1-standard-18446744073709551615", None),
            ("n1-standard-0", None),
            ("n1-standard-4-4", None),
            ("custom-", None),
            ("", None),
        ] {
            let expected = expected.map(|(memory_mb, vcores, gpus)| Resources::new(memory_mb, vcores, gpus));
            assert_eq!(machine(name), expected, "{name}");
        }
    }

    #[test]
    fn the_share_of_yarn_is_exact_where_it_was_seen() {
        assert_eq!([4_096, 16_384, 15_360].map(yarn_memory_mb), [3_278, 13_544, 12_292]);
    }
}
