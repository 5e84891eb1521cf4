//! What the ResourceManager tells of applications, those that are over included, and of their containers.
//! Must not know what is made of it.
//!
//! The containers of an application are told only while they live; afterwards there are totals and nothing else.

use std::fmt::Write as _;

use serde::Deserialize;

use super::{
    lenient::{List, Maybe, Num, Text},
    resource_map::GpuEntry,
    resource_row::figure,
    rest::{Active, ResourceManager},
    wire::{AskRow, WireError, app_rows, parse},
};
use crate::{
    model::{Ask, Resources},
    ports::{ErrorKind, PortError},
};

/// Long fields that are not read here.
const DESELECTED: &str = "deSelects=resourceInfo,timeouts,appNodeLabelExpression,amNodeLabelExpression";
const ALIVE: &str = "NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING";
const OVER: &str = "FINISHED,FAILED,KILLED";

/// When an application's first master was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launch {
    /// In ms since 1970.
    At(i64),
    /// Not yet, or never.
    Never,
    /// This ResourceManager does not tell (before 3.3).
    NotTold,
}

/// An application, alive or over. Times are the ResourceManager's, in ms since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppRecord {
    /// Its id.
    pub id: String,
    /// Its type (`TONY`, `SPARK`, …).
    pub application_type: String,
    /// Its queue: the name, or (from 3.4 on) the path.
    pub queue: String,
    /// YARN's word.
    pub state: String,
    /// YARN's word for how it ended; `UNDEFINED` before.
    pub final_status: String,
    /// When it was submitted.
    pub submitted_ms: i64,
    /// When its first master was launched.
    pub launched: Launch,
    /// When it ended.
    pub finished_ms: Option<i64>,
    /// When this was told.
    pub heard_ms: i64,
    /// Memory, cores and GPUs that its containers held, times the seconds that they did (`memory_mb`: MB seconds).
    pub used_seconds: Resources,
    /// What it asks for and has not got.
    pub asks: Vec<Ask>,
    /// Where its master logs: another place, another attempt.
    pub master_log: String,
}

impl AppRecord {
    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        OVER.split(',').any(|state| state == self.state)
    }
}

/// One attempt to run an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its id.
    pub id: String,
    /// The container of the application master; empty while there is none.
    pub master: String,
}

/// A container that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerRecord {
    /// Its id.
    pub id: String,
    /// The priority it was asked with.
    pub priority: i32,
    /// Its size.
    pub resources: Resources,
    /// When it was handed out, in ms since 1970.
    pub started_ms: i64,
}

/// One ResourceManager that was active a moment ago. A failover makes its reads fail; then another one is needed.
pub struct Reader<'a> {
    manager: &'a ResourceManager,
    active: Active,
}

impl ResourceManager {
    /// Finds the active one, for a series of reads of which each has the whole time limit.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn reader(&self) -> Result<Reader<'_>, PortError> {
        let active = self.in_time(self.active()).await?;
        Ok(Reader { manager: self, active })
    }
}

impl Reader<'_> {
    /// The applications that are not over, with what they ask for; those submitted since then, where it is given.
    ///
    /// # Errors
    /// As [`ResourceManager::observe`].
    pub async fn alive(&self, submitted_since_ms: Option<i64>) -> Result<Vec<AppRecord>, PortError> {
        let mut path = format!("apps?states={ALIVE}&{DESELECTED}");
        since(&mut path, "startedTimeBegin", submitted_since_ms);
        let mut alive = self.get(&path, applications).await?;
        alive.retain(|app| !app.is_over());
        Ok(alive)
    }

    /// The applications that are over and that the ResourceManager still remembers, in the order of their ends; those
    /// submitted, or ended, since then, where it is given.
    ///
    /// # Errors
    /// As [`ResourceManager::observe`].
    pub async fn over(
        &self,
        submitted_since_ms: Option<i64>,
        ended_since_ms: Option<i64>,
    ) -> Result<Vec<AppRecord>, PortError> {
        let mut path = format!("apps?states={OVER}&{DESELECTED},resourceRequests");
        since(&mut path, "startedTimeBegin", submitted_since_ms);
        since(&mut path, "finishedTimeBegin", ended_since_ms);
        let mut over = self.get(&path, applications).await?;
        over.retain(AppRecord::is_over);
        over.sort_by(|a, b| (a.finished_ms, &a.id).cmp(&(b.finished_ms, &b.id)));
        Ok(over)
    }

    /// The newest attempt of an application; `None` where there is none yet.
    ///
    /// # Errors
    /// As [`ResourceManager::observe`]; [`ErrorKind::NotFound`] where the application is not known any more.
    pub async fn attempt(&self, application: &str) -> Result<Option<Attempt>, PortError> {
        let path = format!("apps/{}/appattempts", id(application)?);
        self.get(&path, |body| newest_attempt(application, body)).await
    }

    /// The containers of an attempt that live, that of the master included.
    ///
    /// # Errors
    /// As [`Self::attempt`].
    pub async fn containers(&self, application: &str, attempt: &str) -> Result<Vec<ContainerRecord>, PortError> {
        let path = format!("apps/{}/appattempts/{}/containers", id(application)?, id(attempt)?);
        self.get(&path, containers).await
    }

    async fn get<T>(&self, path: &str, read: impl Fn(&[u8]) -> Result<T, WireError>) -> Result<T, PortError> {
        self.manager.in_time(self.manager.read(&self.active, path, read)).await
    }
}

fn since(path: &mut String, name: &str, ms: Option<i64>) {
    if let Some(ms) = ms {
        // Writing to a text does not fail.
        let _ = write!(path, "&{name}={}", ms.max(0));
    }
}

/// An id as it may stand in a path.
fn id(id: &str) -> Result<&str, PortError> {
    let is_plain = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let odd = || PortError::new(ErrorKind::Permanent, format!("{id:?} is no id of YARN's"));
    is_plain.then_some(id).ok_or_else(odd)
}

/// Reads `/apps`, whatever their states.
pub fn applications(body: &[u8]) -> Result<Vec<AppRecord>, WireError> {
    Ok(app_rows::<AppRow>(body)?.into_iter().filter(|row| !row.id.0.is_empty()).map(AppRow::into_record).collect())
}

/// Reads `/apps/{id}/appattempts`.
pub fn newest_attempt(application: &str, body: &[u8]) -> Result<Option<Attempt>, WireError> {
    let answer: AttemptsAnswer = parse("/appattempts", body)?;
    let rows = answer.app_attempts.get().map_or_else(Vec::new, |attempts| attempts.app_attempt.0);
    let newest = rows.into_iter().max_by_key(|row| row.id.or_zero());
    Ok(newest.map(|row| {
        // Hadoop 2 gives the number alone.
        let tail = application.trim_start_matches("application_");
        let made = || format!("appattempt_{tail}_{:06}", row.id.or_zero());
        let id = if row.app_attempt_id.0.is_empty() { made() } else { row.app_attempt_id.0.into_owned() };
        Attempt { id, master: row.container_id.0.into_owned() }
    }))
}

/// Reads `/apps/{id}/appattempts/{attempt}/containers`: `{"container":[…]}`, `{"container":{…}}` for a single one, `{}`
/// for none.
pub fn containers(body: &[u8]) -> Result<Vec<ContainerRecord>, WireError> {
    let answer: ContainersAnswer = parse("/containers", body)?;
    Ok(answer.container.0.iter().filter_map(ContainerRow::record).collect())
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AppRow<'a> {
    #[serde(borrow)]
    id: Text<'a>,
    application_type: Text<'a>,
    queue: Text<'a>,
    state: Text<'a>,
    final_status: Text<'a>,
    started_time: Num,
    launch_time: Num,
    finished_time: Num,
    elapsed_time: Num,
    memory_seconds: Num,
    vcore_seconds: Num,
    resource_seconds_map: GpuEntry,
    am_container_logs: Text<'a>,
    resource_requests: List<AskRow<'a>>,
}

impl AppRow<'_> {
    fn into_record(self) -> AppRecord {
        let submitted_ms = self.started_time.0.unwrap_or(0);
        let launched = match self.launch_time.0 {
            None => Launch::NotTold,
            Some(at) if at > 0 => Launch::At(at),
            Some(_) => Launch::Never,
        };
        AppRecord {
            id: self.id.0.into_owned(),
            application_type: self.application_type.0.into_owned(),
            queue: self.queue.0.into_owned(),
            state: self.state.0.into_owned(),
            final_status: self.final_status.0.into_owned(),
            submitted_ms,
            launched,
            finished_ms: self.finished_time.0.filter(|at| *at > 0),
            heard_ms: submitted_ms.saturating_add(self.elapsed_time.0.unwrap_or(0)),
            used_seconds: Resources::new(
                figure(self.memory_seconds),
                figure(self.vcore_seconds),
                figure(self.resource_seconds_map.0),
            ),
            asks: self.resource_requests.0.iter().filter_map(AskRow::ask).collect(),
            master_log: self.am_container_logs.0.into_owned(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttemptsAnswer<'a> {
    #[serde(borrow)]
    app_attempts: Maybe<AttemptRows<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttemptRows<'a> {
    #[serde(borrow)]
    app_attempt: List<AttemptRow<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttemptRow<'a> {
    id: Num,
    #[serde(borrow)]
    app_attempt_id: Text<'a>,
    container_id: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ContainersAnswer<'a> {
    #[serde(borrow)]
    container: List<ContainerRow<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerRow<'a> {
    #[serde(borrow)]
    container_id: Text<'a>,
    #[serde(rename = "allocatedMB")]
    allocated_mb: Num,
    #[serde(rename = "allocatedVCores")]
    allocated_v_cores: Num,
    allocated_resources: GpuEntry,
    priority: Num,
    started_time: Num,
}

impl ContainerRow<'_> {
    fn record(&self) -> Option<ContainerRecord> {
        let gpus = figure(self.allocated_resources.0);
        Some(ContainerRecord {
            id: self.container_id.0.to_string(),
            priority: self.priority.0.and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
            resources: Resources::new(figure(self.allocated_mb), figure(self.allocated_v_cores), gpus),
            started_ms: self.started_time.0.filter(|at| *at > 0)?,
        })
    }
}
