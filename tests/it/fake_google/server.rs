//! The web server: takes requests, misbehaves as told, and asks the simulated cloud for the answer.

use std::{
    net::TcpListener,
    panic::resume_unwind,
    sync::{Arc, MutexGuard, mpsc},
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{self, Response},
};
use tokio::{
    net,
    sync::oneshot,
    time::{interval, sleep},
};

use super::{
    Guarded, MachineEvent,
    cloud::Cloud,
    cut_connection::{CUT_AFTER, CutListener},
    http::{Answer, BODY_MAX, Recorded, Request},
    misbehave::{Misbehaviour, Rule, taken, unavailable},
};

/// How often the cloud goes on where nobody asks.
const PACE: Duration = Duration::from_millis(5);
/// How long `…/operations/o/wait` waits at most (the service's: two minutes).
const WAIT_MAX: Duration = Duration::from_secs(10);

/// What the server's thread and the test share.
pub struct Shared {
    cloud: Guarded<Cloud>,
    pub recorded: Guarded<Vec<Recorded>>,
    pub rules: Guarded<Vec<Rule>>,
    events: Guarded<Option<mpsc::Sender<MachineEvent>>>,
}

impl Shared {
    pub fn new(cloud: Cloud, events: mpsc::Sender<MachineEvent>) -> Self {
        Self {
            cloud: Guarded::new(cloud),
            recorded: Guarded::default(),
            rules: Guarded::default(),
            events: Guarded::new(Some(events)),
        }
    }

    /// The cloud, brought to this moment; the machines are told.
    pub fn cloud_now(&self) -> MutexGuard<'_, Cloud> {
        let mut cloud = self.cloud.lock().expect("lock");
        cloud.advance(Instant::now());
        if let Some(events) = self.events.lock().expect("lock").as_ref() {
            for event in cloud.events.drain(..) {
                // Nobody is told any more once the test is over.
                drop(events.send(event));
            }
        }
        cloud
    }

    /// The machines hear no more.
    pub fn close(&self) {
        self.events.lock().expect("lock").take();
    }

    fn answer(&self, request: &Request) -> Answer {
        self.cloud_now().answer(request)
    }
}

/// Serves until told to stop; whatever is unanswered then stays so.
pub fn run(listener: TcpListener, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        listener.set_nonblocking(true).expect("a socket of ours");
        let listener = net::TcpListener::from_std(listener).expect("a socket of ours");
        let router = Router::new().fallback(handle).with_state(shared.clone());
        let mut pace = interval(PACE);
        let going_on = async {
            loop {
                pace.tick().await;
                drop(shared.cloud_now());
            }
        };
        tokio::select! {
            served = axum::serve(CutListener(listener), router) => served.expect("the fake serves"),
            () = going_on => {}
            _ = stopped => {}
        }
    });
}

async fn handle(State(shared): State<Arc<Shared>>, request: http::Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_MAX).await else { hang_up() };
    let request = Request::new(&head, body);
    shared.recorded.lock().expect("lock").push(request.recorded());
    let Some(what) = taken(&mut shared.rules.lock().expect("lock"), &request) else {
        return whole(answered(&shared, &request).await);
    };
    if let Some(instead) = what.instead() {
        return whole(instead);
    }
    match what {
        Misbehaviour::DroppedBefore => hang_up(),
        Misbehaviour::Silence => std::future::pending::<()>().await,
        Misbehaviour::Delayed(by) => sleep(by).await,
        _ => {}
    }
    let answer = answered(&shared, &request).await;
    match what {
        Misbehaviour::DroppedAfter => hang_up(),
        Misbehaviour::SilenceAfter => std::future::pending().await,
        Misbehaviour::UnavailableAfter => whole(unavailable()),
        Misbehaviour::Truncated => half(answer),
        _ => whole(answer),
    }
}

/// The cloud's answer; `…/wait` waits for the operation's end.
async fn answered(shared: &Shared, request: &Request) -> Answer {
    let mut answer = shared.answer(request);
    let waits = request.segments.last().is_some_and(|last| last == "wait");
    let begin = Instant::now();
    let done = b"\"status\":\"DONE\"";
    let is_open = |answer: &Answer| answer.status == 200 && !answer.body.windows(done.len()).any(|part| part == done);
    while waits && is_open(&answer) && begin.elapsed() < WAIT_MAX {
        sleep(PACE).await;
        answer = shared.answer(request);
    }
    answer
}

/// Ends the connection without a word: the connection's task ends, and nothing is printed.
fn hang_up() -> ! {
    resume_unwind(Box::new("the fake hangs up, as told"))
}

fn whole(answer: Answer) -> Response<Body> {
    let builder = Response::builder().status(answer.status);
    let builder = answer.headers.iter().fold(builder, |builder, (name, value)| builder.header(*name, value));
    builder.body(Body::from(answer.body)).expect("a response")
}

/// Says the length of the whole, sends half of it.
fn half(answer: Answer) -> Response<Body> {
    let kept = answer.body.len() / 2;
    whole(answer.with(CUT_AFTER, kept))
}
