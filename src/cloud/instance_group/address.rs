//! Where a managed instance group is: its project's zone or region, and its name.

use std::fmt;

use crate::ports::{ErrorKind, PortError};

/// The forms in which a group may be named, for people.
const FORMS: &str = "`zones/us-central1-a/instanceGroupManagers/workers`, \
                     `regions/us-central1/instanceGroupManagers/workers`, `us-central1-a/workers`, or the group's URL";

/// A managed instance group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupAddress {
    /// The project, where the text named one.
    project: Option<String>,
    /// `zones/Z` or `regions/R`.
    scope: String,
    name: String,
}

impl GroupAddress {
    /// The group that this text names: `zones/Z/instanceGroupManagers/G`, `regions/R/instanceGroupManagers/G`, either
    /// with `projects/P/` or as a URL, or for short `Z/G` or `R/G` (a zone ends with a letter of its own).
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: it names none; the text says what would be right.
    pub fn parse(text: &str) -> Result<Self, PortError> {
        let wrong = || {
            PortError::new(ErrorKind::Permanent, format!("`{text}` is no managed instance group: it is named {FORMS}"))
        };
        let path = text.split_once("/projects/").map_or(text, |(_, path)| path);
        let path = path.strip_prefix("projects/").unwrap_or(path);
        let parts: Vec<_> = path.split('/').collect();
        let is_url = text.contains("://");
        let (project, scope, name) = match parts[..] {
            [project, scope @ ("zones" | "regions"), place, "instanceGroupManagers", name] => {
                (Some(project.to_owned()), format!("{scope}/{place}"), name)
            }
            [scope @ ("zones" | "regions"), place, "instanceGroupManagers", name] if !is_url => {
                (None, format!("{scope}/{place}"), name)
            }
            [place, name] if !is_url => {
                let scope = if is_zone(place) { "zones" } else { "regions" };
                (None, format!("{scope}/{place}"), name)
            }
            _ => return Err(wrong()),
        };
        let place = scope.rsplit('/').next().unwrap_or_default();
        let fits = is_zone(place) == scope.starts_with("zones/");
        let is_right = fits && is_name(name) && is_name(place) && project.as_deref().is_none_or(is_project);
        if is_right { Ok(Self { project, scope, name: name.to_owned() }) } else { Err(wrong()) }
    }

    /// `compute/v1/projects/P/zones/Z/instanceGroupManagers/G`, in this project unless the group names its own.
    pub(super) fn path(&self, project: &str) -> String {
        format!("compute/v1/projects/{}/{self}", self.project(project))
    }

    /// Where an operation on the group is asked for: `zones/Z/operations/O`.
    pub(super) fn operation(&self, name: &str) -> String {
        format!("{}/operations/{name}", self.scope)
    }

    /// The project that the group is in, where others are in this one.
    pub(super) fn project<'a>(&'a self, project: &'a str) -> &'a str {
        self.project.as_deref().unwrap_or(project)
    }

    /// The zone of a group that is in one zone.
    pub(super) fn zone(&self) -> Option<&str> {
        self.scope.strip_prefix("zones/")
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As `gcloud` takes it: `NAME --zone Z` or `NAME --region R`.
    pub(super) fn for_gcloud(&self) -> String {
        let flag = self.scope.replacen("zones/", "--zone ", 1).replacen("regions/", "--region ", 1);
        format!("{} {flag}", self.name)
    }
}

impl fmt::Display for GroupAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/instanceGroupManagers/{}", self.scope, self.name)
    }
}

/// `us-central1-a` and not `us-central1`: a zone is its region with one part more.
fn is_zone(place: &str) -> bool {
    place.matches('-').count() >= 2
}

/// A name of Compute Engine's: nothing that changes a path.
fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// A project, also of an organisation's domain (`example.com:p`).
fn is_project(project: &str) -> bool {
    !project.is_empty() && project.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.:".contains(&b)) && project != ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_named_in_many_ways() {
        let zonal = "compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers/workers";
        let regional = "compute/v1/projects/p/regions/us-central1/instanceGroupManagers/workers";
        let other = "compute/v1/projects/other/zones/us-central1-a/instanceGroupManagers/workers";
        for (text, path) in [
            ("zones/us-central1-a/instanceGroupManagers/workers", zonal),
            ("us-central1-a/workers", zonal),
            ("regions/us-central1/instanceGroupManagers/workers", regional),
            ("us-central1/workers", regional),
            ("projects/other/zones/us-central1-a/instanceGroupManagers/workers", other),
            (
                "https://www.googleapis.com/compute/v1/projects/other/zones/us-central1-a/instanceGroupManagers/workers",
                other,
            ),
        ] {
            assert_eq!(GroupAddress::parse(text).unwrap().path("p"), path, "{text}");
        }
    }

    #[test]
    fn what_names_no_group_is_told_with_what_would() {
        for text in [
            "",
            "workers",
            "us-central1-a/",
            "us-central1-a/../x",
            "us-central1-a/Workers",
            "zones/us-central1/instanceGroupManagers/workers",
            "regions/us-central1-a/instanceGroupManagers/workers",
            "zones/us-central1-a/instanceGroups/workers",
            "https://elsewhere/workers",
            "zones/us-central1-a/instanceGroupManagers/workers?x",
        ] {
            let error = GroupAddress::parse(text).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Permanent);
            assert!(error.text.contains("`us-central1-a/workers`"), "{error}");
        }
    }
}
