//! What YARN calls a machine that Google calls by a short name: a NodeManager registers with its host's full name.

use crate::ports::{ErrorKind, PortError};

/// Stands for the machine's zone in a domain.
const ZONE: &str = "{zone}";

/// The domain of the workers' host names, which differs from project to project (global or zonal DNS).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerNames {
    /// With `{zone}` where the zone stands; `None`: hosts are called by their short names.
    domain: Option<String>,
}

impl WorkerNames {
    /// Hosts in this domain, `us-central1-a.c.PROJECT.internal`, `{zone}.c.PROJECT.internal` or
    /// `c.PROJECT.internal`; without a domain the short name is the host.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: that is no domain.
    pub fn new(domain: Option<&str>) -> Result<Self, PortError> {
        let is_label = |label: &str| !label.is_empty() && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let is_domain = |domain: &str| domain.replace(ZONE, "z").split('.').all(is_label);
        match domain {
            Some(domain) if !is_domain(domain) => {
                let text = format!("`{domain}` is no domain: `us-central1-a.c.PROJECT.internal`, or with {{zone}}");
                Err(PortError::new(ErrorKind::Permanent, text))
            }
            _ => Ok(Self { domain: domain.map(str::to_owned) }),
        }
    }

    /// The domain of a host by its full name and its zone: what follows the first dot, whichever zone another host is in.
    pub fn of_host(full_name: &str, zone: &str) -> Option<String> {
        let (_, domain) = full_name.split_once('.')?;
        let rest = domain.strip_prefix(zone).filter(|_| !zone.is_empty());
        Some(
            rest.filter(|rest| rest.starts_with('.')).map_or_else(|| domain.to_owned(), |rest| format!("{ZONE}{rest}")),
        )
    }

    /// The same by a full name alone: what stands where Compute Engine writes the zone, `us-central1-a.c.PROJECT.internal`,
    /// is taken for one. Workers in other zones would else be looked for under names that nobody has.
    pub fn of_node(full_name: &str) -> Option<String> {
        let (_, domain) = full_name.split_once('.')?;
        let (first, rest) = domain.split_once('.').unwrap_or((domain, ""));
        let is_zone = first.rsplit_once('-').is_some_and(|(region, letter)| {
            letter.len() == 1 && region.contains('-') && region.ends_with(|c: char| c.is_ascii_digit())
        });
        Self::of_host(full_name, if is_zone && rest.starts_with("c.") { first } else { "" })
    }

    /// What YARN calls the machine of this name in this zone.
    pub fn host(&self, name: &str, zone: &str) -> String {
        match &self.domain {
            Some(domain) => format!("{name}.{}", domain.replace(ZONE, zone)),
            None => name.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_masters_own_name_tells_what_workers_are_called_in_any_zone() {
        for (full_name, zone, other_zone, host) in [
            ("gpu1-m.us-central1-a.c.p.internal", "us-central1-a", "us-central1-b", "w-1.us-central1-b.c.p.internal"),
            ("gpu1-m.c.p.internal", "us-central1-a", "us-central1-b", "w-1.c.p.internal"),
            ("gpu1-m.corp.example", "", "z", "w-1.corp.example"),
            ("gpu1-m", "us-central1-a", "us-central1-b", "w-1"),
        ] {
            let names = WorkerNames::new(WorkerNames::of_host(full_name, zone).as_deref()).unwrap();
            assert_eq!(names.host("w-1", other_zone), host);
        }
    }

    #[test]
    fn a_workers_name_tells_what_workers_in_other_zones_are_called() {
        for (full_name, host) in [
            ("w-0.us-central1-a.c.p.internal", "w-1.europe-west4-b.c.p.internal"),
            ("w-0.us-central1-a.c.example.com.p.internal", "w-1.europe-west4-b.c.example.com.p.internal"),
            ("w-0.c.p.internal", "w-1.c.p.internal"),
            ("w-0.rack1-a.corp.example", "w-1.rack1-a.corp.example"),
            ("w-0.us-central1-a.corp.example", "w-1.us-central1-a.corp.example"),
            ("w-0", "w-1"),
        ] {
            let names = WorkerNames::new(WorkerNames::of_node(full_name).as_deref()).unwrap();
            assert_eq!(names.host("w-1", "europe-west4-b"), host);
        }
    }

    #[test]
    fn what_is_no_domain_is_refused() {
        for domain in ["", "c.p.internal.", "c p", "{region}.c.p"] {
            assert_eq!(WorkerNames::new(Some(domain)).unwrap_err().kind, ErrorKind::Permanent, "{domain}");
        }
    }
}
