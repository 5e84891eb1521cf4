//! The real clock, which signals can wake: the one place that reads the time and sleeps.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::Notify;

use crate::ports::{Clock, Wake};

/// Longest sleep: a clock set back must not put the loop to sleep for days.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// The wall clock. Clones wake and stop the same sleeper.
#[derive(Clone, Debug, Default)]
pub struct WallClock {
    stopping: Arc<AtomicBool>,
    woken: Arc<Notify>,
}

impl WallClock {
    /// Has the sleeper look now.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// Has the sleeper, or the next one, stop.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }
}

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    #[expect(clippy::disallowed_methods, reason = "the one place where the loop sleeps")]
    async fn sleep_until(&self, at: DateTime<Utc>) -> Wake {
        let pause = (at - self.now()).to_std().unwrap_or_default().min(SLEEP_MAX);
        if !self.stopping.load(Ordering::SeqCst) {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.woken.notified() => {}
            }
        }
        if self.stopping.load(Ordering::SeqCst) { Wake::Stop } else { Wake::Tick }
    }
}
