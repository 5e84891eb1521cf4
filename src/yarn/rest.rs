//! Reads the active ResourceManager of one, or of a pair.
//! Must not know what an observation is used for; writes nothing.
//!
//! What makes an answer worth believing:
//! * `/info` is asked of every address at once, since a standby answers that one itself and tells that it is standby
//!   (everything else it redirects, or answers with a plain text). The first to say `ACTIVE` is taken.
//! * All answers of one observation must come from where that `/info` came from, redirects followed.
//! * `/info` is read again at the end: `startedOn` changes with every start and every change to active, so the same
//!   value before and after means that one and the same ResourceManager gave all that lies between.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use reqwest::Url;
use tokio::{time::timeout, try_join};

pub use super::http::Options;
use super::{
    http::{Answer, Http, shown},
    observation::{Answers, asks_are_hidden, observation, one_node_a_host},
    wire::{self, Info, WireError},
};
use crate::{
    model::{Node, Observation},
    ports::{ErrorKind, PortError},
};

/// Applications that can ask for something, without the fields that are long and not read. (The spellings are
/// `DeSelectFields.java`'s; the documentation's example is wrong.)
const APPS: &str = "apps?states=ACCEPTED,RUNNING&deSelects=resourceInfo,timeouts,appNodeLabelExpression,\
                    amNodeLabelExpression";

/// A client of the web port of one ResourceManager, or of several of which one is active.
#[derive(Debug)]
pub struct ResourceManager {
    bases: Vec<Url>,
    http: Http,
    options: Options,
    /// Where the active one was last time: it is asked first, and taken should two claim to be active.
    preferred: AtomicUsize,
}

/// The ResourceManager that said it is active.
pub(super) struct Active {
    base: Url,
    /// Who answered, after redirects.
    from: String,
    info: Info,
}

impl ResourceManager {
    /// Reads from these addresses (`http://host:8088`, `https://gateway/path/`): one, or all of a high-availability
    /// pair, in any order.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: no address, or one that is not `http` or `https`.
    pub fn new(urls: Vec<Url>, options: Options) -> Result<Self, PortError> {
        let permanent = |text: String| PortError::new(ErrorKind::Permanent, text);
        if urls.is_empty() {
            return Err(permanent("no address of a ResourceManager is given".into()));
        }
        if let Some(url) = urls.iter().find(|url| !matches!(url.scheme(), "http" | "https") || !url.has_host()) {
            return Err(permanent(format!("{} is no address of a ResourceManager", shown(url))));
        }
        let bases = urls.into_iter().map(base).collect();
        Ok(Self { bases, http: Http::new(&options)?, options, preferred: AtomicUsize::new(0) })
    }

    /// One look at all of it, or nothing: answers of two ResourceManagers are never mixed.
    ///
    /// # Errors
    /// [`ErrorKind::Transient`]: no active ResourceManager, no answer in time, one that makes no sense, a failover in
    /// the middle. [`ErrorKind::Denied`], [`ErrorKind::NotFound`], [`ErrorKind::Throttled`],
    /// [`ErrorKind::Permanent`]: as the HTTP status says.
    pub async fn observe(&self) -> Result<Observation, PortError> {
        self.in_time(self.read_all()).await
    }

    /// The nodes alone, one a host.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn nodes(&self) -> Result<Vec<Arc<Node>>, PortError> {
        let look = async {
            let active = self.active().await?;
            self.read(&active, "nodes", wire::nodes).await
        };
        self.in_time(look).await.map(one_node_a_host)
    }

    /// What the active ResourceManager says of itself.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn info(&self) -> Result<Info, PortError> {
        self.in_time(self.active()).await.map(|active| active.info)
    }

    /// The value of a property in the active ResourceManager's configuration; `None` where it has none.
    ///
    /// # Errors
    /// As [`Self::observe`].
    pub async fn property(&self, name: &str) -> Result<Option<String>, PortError> {
        let look = async {
            let active = self.active().await?;
            let mut url =
                active.base.join("conf").map_err(|error| PortError::new(ErrorKind::Permanent, error.to_string()))?;
            url.query_pairs_mut().append_pair("name", name);
            match self.http.get(url).await {
                Ok(answer) => parsed(&answer, wire::property).map(Some),
                Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.in_time(look).await
    }

    /// What the ResourceManager at the first address says of itself, standby or not: `ACTIVE`, `STANDBY`,
    /// `INITIALIZING` …; empty where there is no high availability.
    ///
    /// # Errors
    /// As [`Self::observe`], but for a standby.
    pub async fn ha_state(&self) -> Result<String, PortError> {
        self.in_time(self.info_at(0)).await.map(|(_, info)| info.ha_state)
    }

    async fn read_all(&self) -> Result<Observation, PortError> {
        let active = self.active().await?;
        let (metrics, nodes, applications) = try_join!(
            self.read(&active, "metrics", wire::metrics),
            self.read(&active, "nodes", wire::nodes),
            self.read(&active, APPS, wire::applications),
        )?;
        let scheduler_pending = if asks_are_hidden(&metrics, &applications) {
            Some(self.read(&active, "scheduler", wire::scheduler_pending).await?)
        } else {
            None
        };
        let after = self.read(&active, "info", wire::info).await?;
        if !after.is_active() || after.started_on_ms != active.info.started_on_ms {
            return Err(PortError::transient(format!("{} restarted or failed over while being read", active.from)));
        }
        let answers = Answers { info: active.info, metrics, nodes, applications, scheduler_pending };
        observation(answers).map_err(|error| PortError::transient(format!("{}: {error}", active.from)))
    }

    /// Reads one document from the active ResourceManager.
    pub(super) async fn read<T>(
        &self,
        active: &Active,
        path: &str,
        parse: impl Fn(&[u8]) -> Result<T, WireError>,
    ) -> Result<T, PortError> {
        let answer = self.http.get(document(&active.base, path)?).await?;
        if answer.from != active.from {
            let text = format!("GET {}: redirected here from {}, which is active no more", answer.shown, active.from);
            return Err(PortError::transient(text));
        }
        parsed(&answer, parse)
    }

    /// The first of all addresses that says it is active.
    pub(super) async fn active(&self) -> Result<Active, PortError> {
        let first = self.preferred.load(Ordering::Relaxed);
        let order = (0..self.bases.len()).map(|n| (first + n) % self.bases.len());
        let (index, active) = first_success(order.map(|index| self.ask(index)).collect()).await?;
        self.preferred.store(index, Ordering::Relaxed);
        Ok(active)
    }

    async fn ask(&self, index: usize) -> Result<(usize, Active), PortError> {
        let (from, info) = self.info_at(index).await?;
        if !info.is_active() {
            return Err(PortError::transient(format!("{from} is {}, not ACTIVE", info.ha_state)));
        }
        Ok((index, Active { base: self.bases[index].clone(), from, info }))
    }

    /// Who answers at this address, and what it says of itself.
    async fn info_at(&self, index: usize) -> Result<(String, Info), PortError> {
        let answer = self.http.get(document(&self.bases[index], "info")?).await?;
        let info = parsed(&answer, wire::info)?;
        Ok((answer.from, info))
    }

    pub(super) async fn in_time<T>(&self, work: impl Future<Output = Result<T, PortError>>) -> Result<T, PortError> {
        let limit = self.options.total;
        timeout(limit, work).await.unwrap_or_else(|_| {
            let at = self.bases.iter().map(shown).collect::<Vec<_>>().join(", ");
            Err(PortError::transient(format!("{at}: not read to the end within {limit:?}")))
        })
    }
}

/// The address with room for a path after it, and nothing after that.
fn base(mut url: Url) -> Url {
    url.set_query(None);
    url.set_fragment(None);
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    url
}

fn document(base: &Url, path: &str) -> Result<Url, PortError> {
    let url = base.join(&format!("ws/v1/cluster/{path}"));
    url.map_err(|error| PortError::new(ErrorKind::Permanent, format!("{}: {error}", shown(base))))
}

fn parsed<T>(answer: &Answer, parse: impl Fn(&[u8]) -> Result<T, WireError>) -> Result<T, PortError> {
    parse(&answer.body).map_err(|error| PortError::transient(format!("GET {}: {error}", answer.shown)))
}

/// Runs all side by side and takes the first that succeeds, so that an address that hangs costs nothing. Where all
/// fail: their error if they agree on its kind, else a transient one.
async fn first_success<T>(work: Vec<impl Future<Output = Result<T, PortError>>>) -> Result<T, PortError> {
    let mut waiting: Vec<Pin<Box<_>>> = work.into_iter().map(Box::pin).collect();
    let mut failures: Vec<PortError> = Vec::new();
    poll_fn(|context| {
        let mut index = 0;
        while index < waiting.len() {
            match waiting[index].as_mut().poll(context) {
                Poll::Ready(Ok(value)) => return Poll::Ready(Ok(value)),
                Poll::Ready(Err(error)) => {
                    failures.push(error);
                    drop(waiting.remove(index));
                }
                Poll::Pending => index += 1,
            }
        }
        if waiting.is_empty() { Poll::Ready(Err(all_failed(&failures))) } else { Poll::Pending }
    })
    .await
}

fn all_failed(failures: &[PortError]) -> PortError {
    let agree = failures.windows(2).all(|pair| pair[0].kind == pair[1].kind);
    let kind = failures.first().filter(|_| agree).map_or(ErrorKind::Transient, |first| first.kind);
    PortError::new(kind, failures.iter().map(|error| error.text.as_str()).collect::<Vec<_>>().join("; "))
}
