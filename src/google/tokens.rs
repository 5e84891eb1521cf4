//! Who asks: tokens for Google's services, kept until shortly before their end.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Url, header::HeaderValue};
use tokio::{
    sync::{Mutex as Turn, MutexGuard as TurnGuard},
    time::{Instant, timeout},
};

use super::{
    Api,
    credentials::{Credentials, Fresh, Source},
};
use crate::ports::{ErrorKind, PortError};

/// A token is not used in its last moments: a request takes time, and clocks differ.
const SPARE: Duration = Duration::from_secs(20);

/// How much longer a token of a narrower account may take than the token that it begins with.
const IMPERSONATION_MORE: Duration = Duration::from_secs(3);

/// When tokens are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long asking may take.
    pub limit: Duration,
    /// How long before its end a token is renewed. The metadata server hands out the same one until 5 minutes before.
    pub early: Duration,
    /// How long nobody is asked after a failure, and after an early renewal however it ended.
    pub pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { limit: seconds(5), early: seconds(240), pause: seconds(15) }
    }
}

/// Where tokens come from, and the one that is good now. Shows no token.
pub struct Tokens {
    /// `None`: none are sent.
    source: Option<Source>,
    timing: Timing,
    /// The last one that came; looked at for moments only.
    held: Mutex<Option<Held>>,
    /// Whoever asks has the turn; all others wait for what comes of it.
    turn: Turn<Attempts>,
}

struct Held {
    header: HeaderValue,
    since: Instant,
    ends: Instant,
}

#[derive(Default)]
struct Attempts {
    /// Until then the failure is the answer.
    not_before: Option<Instant>,
    failure: Option<PortError>,
    /// Whether it was said that early renewals fail.
    told: bool,
}

/// What is held, by its age.
enum Standing {
    Good(HeaderValue),
    /// Good, and to be renewed.
    Aging(HeaderValue),
    None,
}

impl Tokens {
    /// None is sent: for emulators.
    pub fn anonymous() -> Self {
        Self::new(Credentials::Anonymous, Timing::default())
    }

    /// Tokens by these credentials. Nothing is asked for yet: what is wrong with them shows at the first token.
    pub fn new(credentials: Credentials, timing: Timing) -> Self {
        Self::by(Source::of(credentials), timing)
    }

    /// Tokens of this narrower service account, which `self` may stand in for; `iam` is where IAM Service Account
    /// Credentials answers.
    ///
    /// # Errors
    /// [`ErrorKind::Permanent`]: that is no service account, or `self` is nobody.
    pub fn impersonating(self, email: &str, iam: Url) -> Result<Self, PortError> {
        let permanent = |text: String| Err(PortError::new(ErrorKind::Permanent, text));
        if self.is_anonymous() {
            return permanent(format!("nobody in particular cannot stand in for {email}: credentials are needed"));
        }
        let is_word = |text: &str| !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || "/:@".contains(c));
        if !email.split_once('@').is_some_and(|(name, domain)| is_word(name) && is_word(domain)) {
            return permanent(format!("`{email}` is no service account: NAME@PROJECT.iam.gserviceaccount.com"));
        }
        let timing = self.timing;
        let api = Api::new(iam, Arc::new(self), timing.limit + IMPERSONATION_MORE)?;
        let limit = timing.limit + 2 * IMPERSONATION_MORE;
        let source = Source::Impersonated { iam: Box::new(api), email: email.to_owned() };
        Ok(Self::by(Some(source), Timing { limit, ..timing }))
    }

    fn by(source: Option<Source>, timing: Timing) -> Self {
        Self { source, timing, held: Mutex::new(None), turn: Turn::new(Attempts::default()) }
    }

    /// Whether none are sent.
    pub fn is_anonymous(&self) -> bool {
        self.source.is_none()
    }

    /// The value of the `Authorization` header, marked as a secret; `None` where none is to be sent.
    ///
    /// # Errors
    /// No token is to be had; the kind says whether it is worth while to try again.
    pub async fn header(&self) -> Result<Option<HeaderValue>, PortError> {
        let Some(source) = &self.source else { return Ok(None) };
        match self.standing() {
            Standing::Good(header) => Ok(Some(header)),
            Standing::Aging(header) => Ok(Some(self.renewed(source, header).await)),
            Standing::None => self.first(source).await.map(Some),
        }
    }

    /// A service has refused this token as nobody's: it is not used again. One that has just come is kept, so that a
    /// service that refuses all of them has no new one made for each request.
    pub fn was_refused(&self, header: &HeaderValue) {
        let mut held = self.held();
        let is_that = |held: &Held| held.header == *header && held.since.elapsed() >= self.timing.pause;
        if held.as_ref().is_some_and(is_that) {
            tracing::warn!("a service refused the token in use as invalid: another one is asked for");
            *held = None;
        }
    }

    /// A token where none is good. Whoever waited for another's turn takes what came of it, a failure too.
    async fn first(&self, source: &Source) -> Result<HeaderValue, PortError> {
        let attempts = self.turn.lock().await;
        if let Standing::Good(header) | Standing::Aging(header) = self.standing() {
            return Ok(header);
        }
        if let Some(failure) = attempts.failure.as_ref().filter(|_| attempts.must_wait()) {
            return Err(failure.clone());
        }
        self.ask(source, attempts).await
    }

    /// A token before the old one ends; the old one where that fails, or where somebody else is at it.
    async fn renewed(&self, source: &Source, old: HeaderValue) -> HeaderValue {
        let attempts = self.turn.try_lock().ok().filter(|attempts| !attempts.must_wait());
        match attempts {
            Some(attempts) => self.ask(source, attempts).await.unwrap_or(old),
            None => old,
        }
    }

    async fn ask(&self, source: &Source, mut attempts: TurnGuard<'_, Attempts>) -> Result<HeaderValue, PortError> {
        let asked = Instant::now();
        let limit = self.timing.limit;
        let too_late = |_| {
            let text = format!("no token from {} within {} s", source.shown(), limit.as_secs_f64());
            Err(PortError::transient(text))
        };
        let fresh = timeout(limit, source.fetch()).await.unwrap_or_else(too_late);
        attempts.not_before = Some(Instant::now() + self.timing.pause);
        match fresh.and_then(|fresh| self.keep(source, fresh, asked)) {
            Ok(header) => {
                attempts.failure = None;
                attempts.told = false;
                Ok(header)
            }
            Err(failure) => {
                self.warn_once(&mut attempts, &failure);
                attempts.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    fn keep(&self, source: &Source, fresh: Fresh, asked: Instant) -> Result<HeaderValue, PortError> {
        let wrong = || PortError::transient(format!("what came from {} is no token", source.shown()));
        let value = Some(format!("Bearer {}", fresh.token)).filter(|_| !fresh.token.is_empty());
        let mut header = HeaderValue::try_from(value.ok_or_else(wrong)?).map_err(|_| wrong())?;
        header.set_sensitive(true);
        tracing::debug!(life = ?fresh.life, "a new token from {}", source.shown());
        let ends = asked.checked_add(fresh.life).ok_or_else(wrong)?;
        *self.held() = Some(Held { header: header.clone(), since: asked, ends });
        Ok(header)
    }

    /// A failure that nobody sees otherwise, as the old token is good.
    fn warn_once(&self, attempts: &mut Attempts, failure: &PortError) {
        if !attempts.told && !matches!(self.standing(), Standing::None) {
            tracing::warn!("the token in use cannot be renewed, and is used until its end: {failure}");
            attempts.told = true;
        }
    }

    fn standing(&self) -> Standing {
        let held = self.held();
        let Some(held) = &*held else { return Standing::None };
        let left = held.ends.saturating_duration_since(Instant::now());
        if left <= SPARE {
            Standing::None
        } else if left <= self.timing.early {
            Standing::Aging(held.header.clone())
        } else {
            Standing::Good(held.header.clone())
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Option<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Attempts {
    fn must_wait(&self) -> bool {
        self.not_before.is_some_and(|not_before| Instant::now() < not_before)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.as_ref().map_or_else(|| "nobody".to_owned(), Source::shown);
        f.debug_struct("Tokens").field("source", &source).field("timing", &self.timing).finish_non_exhaustive()
    }
}
