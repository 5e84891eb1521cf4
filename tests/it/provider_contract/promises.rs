//! What every provider promises, each promise a function over any scene.

use std::{collections::BTreeSet, time::Duration};

use tokio::time::timeout;
use yarn_autoscaler::{
    model::{Instance, InstanceState, Readiness},
    ports::{ErrorKind, OperationState, PortError, Provider},
};

use super::scene::{GROUP, LOOKS, Scene, Trouble};

/// Longer than any time limit of a scene.
const AT_LAST: Duration = Duration::from_secs(60);

fn names(workers: &[Instance]) -> BTreeSet<&str> {
    workers.iter().map(|worker| worker.name.as_str()).collect()
}

/// What an order comes to that goes wrong, sooner or later.
async fn failure<S: Scene>(scene: &S, answer: Result<String, PortError>) -> PortError {
    match answer {
        Err(error) => error,
        Ok(operation) => match scene.end(&operation).await {
            OperationState::Failed(error) => error,
            other => panic!("{other:?}"),
        },
    }
}

/// `describe` shows each worker once, with a state and a host; the same `Arc` or an equal one where nothing has changed.
pub async fn shows_what_is_there<S: Scene>() {
    let scene = S::sound().await;
    let capacity = scene.provider().describe().await.unwrap();
    let workers = &capacity.groups[&GROUP].instances;
    assert_eq!((workers.len(), names(workers).len()), (2, 2), "{workers:?}");
    assert!(workers.iter().all(|worker| worker.state == InstanceState::Running && !worker.host.is_empty()));
    assert_eq!(workers.iter().map(|worker| &worker.host).collect::<BTreeSet<_>>().len(), 2);
    assert!(capacity.readiness.is_ready());
    assert_eq!(capacity, scene.provider().describe().await.unwrap());
}

/// An order comes to its end, and what it made is described.
pub async fn makes_what_is_ordered<S: Scene>() {
    let scene = S::sound().await;
    let before = scene.workers(2).await;
    let operation = scene.provider().create("c-1", GROUP, 2).await.unwrap();
    assert_eq!(scene.end(&operation).await, OperationState::Done);
    let after = scene.workers(4).await;
    assert!(names(&after).is_superset(&names(&before)));
    assert_eq!(scene.provider().poll(&operation).await.unwrap(), OperationState::Done, "it stays so");
}

/// The same request id twice has one effect, at once, afterwards, and from another process.
pub async fn takes_an_order_once<S: Scene>() {
    let mut scene = S::sound().await;
    let first = scene.provider().create("c-1", GROUP, 2).await.unwrap();
    let again = scene.provider().create("c-1", GROUP, 2).await.unwrap();
    assert_eq!(scene.end(&first).await, OperationState::Done);
    assert_eq!(scene.end(&again).await, OperationState::Done);
    scene.workers(4).await;
    scene.restart().await;
    let later = scene.provider().create("c-1", GROUP, 2).await.unwrap();
    assert_eq!(scene.end(&later).await, OperationState::Done);
    scene.workers(4).await;
}

/// Exactly those that are named are deleted; one that is gone, or never was, is no error.
pub async fn deletes_exactly_the_named<S: Scene>() {
    let scene = S::sound().await;
    if !scene.provider().describe().await.unwrap().capabilities.deletes_named {
        return;
    }
    let operation = scene.provider().create("c-1", GROUP, 2).await.unwrap();
    scene.end(&operation).await;
    let before = scene.workers(4).await;
    // Neither the first one nor the last.
    let named = vec![before[2].name.clone()];
    let operation = scene.provider().delete("d-1", GROUP, &named).await.unwrap();
    let again = scene.provider().delete("d-1", GROUP, &named).await.unwrap();
    assert_eq!(scene.end(&operation).await, OperationState::Done);
    assert_eq!(scene.end(&again).await, OperationState::Done);
    let after = scene.workers(3).await;
    let mut expected = names(&before);
    expected.remove(named[0].as_str());
    assert_eq!(names(&after), expected);
    let gone = [named[0].clone(), "never-was".to_owned()];
    let operation = scene.provider().delete("d-2", GROUP, &gone).await.unwrap();
    assert_eq!(scene.end(&operation).await, OperationState::Done);
    assert_eq!(names(&scene.workers(3).await), expected);
}

/// Of an operation that nobody knows it is said so.
pub async fn knows_its_operations<S: Scene>() {
    let scene = S::sound().await;
    for operation in ["operation-999999", "nonsense"] {
        assert_eq!(scene.provider().poll(operation).await.unwrap_err().kind, ErrorKind::NotFound, "{operation}");
    }
}

/// A failure is told as what it is, to the order or to a poll, and leaves nothing behind.
pub async fn tells_failures_by_their_kinds<S: Scene>() {
    for trouble in [Trouble::Quota, Trouble::StockOut, Trouble::Throttled, Trouble::Denied] {
        let Some(scene) = S::open(Some(trouble)).await else { continue };
        let answer = scene.provider().create("c-1", GROUP, 2).await;
        let error = failure(&scene, answer).await;
        assert_eq!(error.kind, trouble.kind(), "{error}");
        assert!(!error.text.is_empty() && !error.text.contains(char::is_control), "{error:?}");
        scene.workers(2).await;
    }
}

/// What was refused for a while is taken afterwards, under another request id; unless somebody must see to it first, and
/// then that is said.
pub async fn goes_on_after_failures<S: Scene>() {
    for trouble in [Trouble::StockOut, Trouble::Throttled] {
        let Some(mut scene) = S::open(Some(trouble)).await else { continue };
        let answer = scene.provider().create("c-1", GROUP, 1).await;
        failure(&scene, answer).await;
        scene.heal().await;
        scene.workers(2).await;
        if let Readiness::Held { why } = &scene.provider().describe().await.unwrap().readiness {
            assert!(!why.is_empty());
            continue;
        }
        let operation = scene.provider().create("c-2", GROUP, 1).await.unwrap();
        assert_eq!(scene.end(&operation).await, OperationState::Done, "{trouble:?}");
        scene.workers(3).await;
    }
}

/// An order whose answer was lost, given again, has one effect.
pub async fn survives_a_lost_answer<S: Scene>() {
    for restarts in [false, true] {
        let Some(mut scene) = S::open(Some(Trouble::LostAnswer)).await else { return };
        let error = scene.provider().create("c-1", GROUP, 2).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Transient, "{error}");
        scene.heal().await;
        if restarts {
            scene.restart().await;
        }
        let operation = again(&scene, "c-1").await;
        assert_eq!(scene.end(&operation).await, OperationState::Done);
        scene.workers(4).await;
    }
}

/// The order given again as the controller does, which waits where it is told that something is under way.
async fn again<S: Scene>(scene: &S, request_id: &str) -> String {
    for _ in 0..LOOKS {
        match scene.provider().create(request_id, GROUP, 2).await {
            Err(error) if error.kind == ErrorKind::Conflict => scene.pass().await,
            answer => return answer.unwrap(),
        }
    }
    panic!("it was never acknowledged");
}

/// Where nothing is answered, every call ends within its time limit.
pub async fn never_hangs<S: Scene>() {
    let Some(scene) = S::open(Some(Trouble::Hangs)).await else { return };
    let provider = scene.provider();
    let named = ["worker-1".to_owned()];
    let errors = [
        timeout(AT_LAST, provider.describe()).await.unwrap().map(drop).unwrap_err(),
        timeout(AT_LAST, provider.create("c-1", GROUP, 1)).await.unwrap().map(drop).unwrap_err(),
        timeout(AT_LAST, provider.delete("d-1", GROUP, &named)).await.unwrap().map(drop).unwrap_err(),
    ];
    assert!(errors.iter().all(|error| error.kind == ErrorKind::Transient), "{errors:?}");
}

/// A second order beside the first is taken where the capabilities say so, else refused as what passes by itself.
pub async fn overlaps_as_it_says<S: Scene>() {
    let scene = S::sound().await;
    let overlaps = scene.provider().describe().await.unwrap().capabilities.overlaps;
    let first = scene.provider().create("c-1", GROUP, 1).await.unwrap();
    let second = scene.provider().create("c-2", GROUP, 1).await;
    match second {
        Ok(second) => {
            assert_eq!(scene.end(&first).await, OperationState::Done);
            assert_eq!(scene.end(&second).await, OperationState::Done);
            scene.workers(4).await;
        }
        Err(error) => {
            assert_eq!((overlaps, error.kind), (false, ErrorKind::Conflict), "{error}");
            assert_eq!(scene.end(&first).await, OperationState::Done);
            scene.workers(3).await;
            // A refusal is no promise: the order may be given again, and then has its effect.
            let operation = scene.provider().create("c-2", GROUP, 1).await.unwrap();
            assert_eq!(scene.end(&operation).await, OperationState::Done);
            scene.workers(4).await;
        }
    }
}
