//! Where this machine is, as its metadata server tells: project, zone, and its part in a Dataproc cluster.

use tokio::try_join;

use super::{Metadata, MetadataError};

/// Where a machine of Compute Engine is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The project's id (not its number).
    pub project: String,
    /// `us-central1`: the cluster's on a node of Dataproc, else the zone's.
    pub region: String,
    /// `us-central1-a`.
    pub zone: String,
    /// The full name, `gpu1-m.us-central1-a.c.PROJECT.internal`.
    pub hostname: String,
    /// The Dataproc cluster that it is a node of.
    pub cluster: Option<ClusterPlacement>,
}

/// A node's part in its Dataproc cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPlacement {
    /// The cluster's name.
    pub name: String,
    /// Tells it from a later one of the same name; empty where it is not told.
    pub uuid: String,
    /// `Master` or `Worker`.
    pub role: String,
    /// The first master's short host name.
    pub master: String,
    /// All masters' short host names, the first one first: three with high availability.
    pub masters: Vec<String>,
}

impl ClusterPlacement {
    /// Whether this node is a master.
    pub fn is_master(&self) -> bool {
        self.role.eq_ignore_ascii_case("Master")
    }

    /// Whether another master may be the active one.
    pub fn is_highly_available(&self) -> bool {
        self.masters.len() > 1
    }
}

impl Metadata {
    /// Where this machine is.
    ///
    /// # Errors
    /// See [`MetadataError`]; something that must be there and is not: [`MetadataError::Silent`].
    pub async fn placement(&self) -> Result<Placement, MetadataError> {
        let (project, hostname, zone, region, cluster) = try_join!(
            self.must("project/project-id"),
            self.must("instance/hostname"),
            self.must("instance/zone"),
            self.attribute("region"),
            self.cluster(),
        )?;
        // `projects/123456/zones/us-central1-a`
        let zone = zone.rsplit('/').next().unwrap_or_default().to_owned();
        let of_zone = zone.rsplit_once('-').map(|(region, _)| region.to_owned());
        let region = region.or(of_zone).filter(|region| !region.is_empty());
        let region = region.ok_or_else(|| self.silent("instance/zone", &format!("`{zone}` is no zone")))?;
        Ok(Placement { project, region, zone, hostname, cluster })
    }

    async fn cluster(&self) -> Result<Option<ClusterPlacement>, MetadataError> {
        let Some(name) = self.attribute("cluster-name").await? else { return Ok(None) };
        let (uuid, role, master, others) = try_join!(
            self.attribute("cluster-uuid"),
            self.must("instance/attributes/dataproc-role"),
            self.must("instance/attributes/dataproc-master"),
            self.attribute("master-additional"),
        )?;
        let others = others.unwrap_or_default();
        let others = others.split(',').map(str::trim).filter(|other| !other.is_empty());
        let masters = std::iter::once(master.as_str()).chain(others).map(str::to_owned).collect();
        Ok(Some(ClusterPlacement { name, uuid: uuid.unwrap_or_default(), role, masters, master }))
    }

    /// One of Dataproc's attributes of the machine; `None`: there is none, or it is empty.
    async fn attribute(&self, name: &str) -> Result<Option<String>, MetadataError> {
        let value = self.get(&format!("instance/attributes/dataproc-{name}")).await?;
        Ok(value.filter(|value| !value.is_empty()))
    }

    async fn must(&self, path: &str) -> Result<String, MetadataError> {
        let value = self.get(path).await?.filter(|value| !value.is_empty());
        value.ok_or_else(|| self.silent(path, "has no value, and must have one"))
    }
}
