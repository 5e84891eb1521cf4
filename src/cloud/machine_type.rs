//! What a machine type of Compute Engine is, by its name: cores, memory, GPUs that it comes with.

/// A machine type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineType {
    /// Virtual cores.
    pub vcpus: u64,
    /// Memory of the machine, in MB. A NodeManager declares less.
    pub memory_mb: u64,
    /// GPUs that belong to the type; those that a template adds are not among them.
    pub gpus: u64,
}

/// Memory a core, in MB, of the types `FAMILY-SHAPE-CORES` whose memory grows with their cores.
const BY_CORES: &[(&str, u64)] = &[
    ("n1-standard", 3840),
    ("n1-highmem", 6656),
    ("n1-highcpu", 922),
    ("n2-standard", 4096),
    ("n2-highmem", 8192),
    ("n2-highcpu", 1024),
    ("n2d-standard", 4096),
    ("n2d-highmem", 8192),
    ("n2d-highcpu", 1024),
    ("n4-standard", 4096),
    ("n4-highmem", 8192),
    ("n4-highcpu", 2048),
    ("e2-standard", 4096),
    ("e2-highmem", 8192),
    ("e2-highcpu", 1024),
    ("c2-standard", 4096),
    ("c2d-standard", 4096),
    ("c2d-highmem", 8192),
    ("c2d-highcpu", 2048),
    ("c3-standard", 4096),
    ("c3-highmem", 8192),
    ("c3-highcpu", 2048),
];

/// Types that follow no rule: name, cores, memory in GB, GPUs.
const BY_NAME: &[(&str, u64, u64, u64)] = &[
    ("a2-highgpu-1g", 12, 85, 1),
    ("a2-highgpu-2g", 24, 170, 2),
    ("a2-highgpu-4g", 48, 340, 4),
    ("a2-highgpu-8g", 96, 680, 8),
    ("a2-megagpu-16g", 96, 1360, 16),
    ("a2-ultragpu-1g", 12, 170, 1),
    ("a2-ultragpu-2g", 24, 340, 2),
    ("a2-ultragpu-4g", 48, 680, 4),
    ("a2-ultragpu-8g", 96, 1360, 8),
    ("a3-highgpu-1g", 26, 234, 1),
    ("a3-highgpu-2g", 52, 468, 2),
    ("a3-highgpu-4g", 104, 936, 4),
    ("a3-highgpu-8g", 208, 1872, 8),
    ("a3-edgegpu-8g", 208, 1872, 8),
    ("a3-megagpu-8g", 208, 1872, 8),
    ("a3-ultragpu-8g", 224, 2952, 8),
    ("g2-standard-4", 4, 16, 1),
    ("g2-standard-8", 8, 32, 1),
    ("g2-standard-12", 12, 48, 1),
    ("g2-standard-16", 16, 64, 1),
    ("g2-standard-24", 24, 96, 2),
    ("g2-standard-32", 32, 128, 1),
    ("g2-standard-48", 48, 192, 4),
    ("g2-standard-96", 96, 384, 8),
];

/// Most cores and memory in MB that a custom type's name may claim: sums of such workers do not overflow.
const VCPUS_MAX: u64 = 1000;
const MEMORY_MB_MAX: u64 = 64 << 20;

impl MachineType {
    /// The type of this name, or of an address that ends with it; `None`: not known here.
    ///
    /// # Example
    /// ```
    /// use yarn_autoscaler::cloud::MachineType;
    ///
    /// let known = MachineType::of("zones/us-central1-a/machineTypes/n1-standard-8");
    /// assert_eq!(known, Some(MachineType { vcpus: 8, memory_mb: 30_720, gpus: 0 }));
    /// ```
    pub fn of(name: &str) -> Option<Self> {
        let name = name.rsplit('/').next()?;
        let listed = BY_NAME.iter().find(|(known, ..)| *known == name);
        if let Some((_, vcpus, memory_gb, gpus)) = listed {
            return Some(Self { vcpus: *vcpus, memory_mb: memory_gb * 1024, gpus: *gpus });
        }
        Self::custom(name).or_else(|| Self::by_cores(name))
    }

    /// `n2-custom-CORES-MB[-ext]`, `custom-CORES-MB`.
    fn custom(name: &str) -> Option<Self> {
        let name = name.strip_suffix("-ext").unwrap_or(name);
        let (family, figures) = match name.strip_prefix("custom-") {
            Some(figures) => ("n1", figures),
            None => name.split_once("-custom-")?,
        };
        let (vcpus, memory_mb) = figures.split_once('-')?;
        let vcpus: u64 = vcpus.parse().ok().filter(|vcpus| (1..=VCPUS_MAX).contains(vcpus))?;
        let memory_mb: u64 = memory_mb.parse().ok().filter(|mb| (1..=MEMORY_MB_MAX).contains(mb))?;
        // As many as the listed type of so many cores has.
        let listed = format!("g2-standard-{vcpus}");
        let gpus = match family {
            "g2" => BY_NAME.iter().find(|(known, ..)| *known == listed)?.3,
            _ => 0,
        };
        Some(Self { vcpus, memory_mb, gpus })
    }

    fn by_cores(name: &str) -> Option<Self> {
        let (shape, vcpus) = name.rsplit_once('-')?;
        let vcpus: u64 = vcpus.parse().ok().filter(|vcpus| (1..=VCPUS_MAX).contains(vcpus))?;
        let (_, memory_mb) = BY_CORES.iter().find(|(known, _)| *known == shape)?;
        Some(Self { vcpus, memory_mb: memory_mb * vcpus, gpus: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_known_by_their_names() {
        for (name, known) in [
            ("n1-standard-4", Some((4, 15_360, 0))),
            ("n1-highmem-16", Some((16, 106_496, 0))),
            ("n2d-highcpu-8", Some((8, 8192, 0))),
            ("c2-standard-60", Some((60, 245_760, 0))),
            ("c3-standard-22", Some((22, 90_112, 0))),
            ("e2-standard-2", Some((2, 8192, 0))),
            (
                "https://compute.googleapis.com/compute/v1/projects/p/zones/z/machineTypes/a2-highgpu-4g",
                Some((48, 348_160, 4)),
            ),
            ("a3-megagpu-8g", Some((208, 1_916_928, 8))),
            ("g2-standard-24", Some((24, 98_304, 2))),
            ("g2-standard-32", Some((32, 131_072, 1))),
            ("custom-6-20480", Some((6, 20_480, 0))),
            ("n2-custom-8-131072-ext", Some((8, 131_072, 0))),
            ("g2-custom-48-200704", Some((48, 200_704, 4))),
            ("n1-standard-0", None),
            ("n2-custom-8", None),
            ("n2-custom-8-18446744073709551615", None),
            ("x9-standard-4", None),
            ("standard", None),
            ("", None),
        ] {
            let found = MachineType::of(name).map(|found| (found.vcpus, found.memory_mb, found.gpus));
            assert_eq!(found, known, "{name}");
        }
    }
}
