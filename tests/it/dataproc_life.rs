//! The provider `dataproc` over the stand-in for Google's services: orders from their beginning to their end, failures,
//! and what a controller that starts anew finds.

use std::{sync::Arc, time::Duration};

use yarn_autoscaler::{
    cloud::{
        WorkerNames,
        dataproc::{DataprocProvider, ScaleDown, Target, policy::policy_yaml},
    },
    google::{Api, TIME_LIMIT_DEFAULT, Tokens, endpoint},
    model::{Capacity, GroupName, InstanceState, Readiness, SizeChange},
    ports::{ErrorKind, OperationState, Provider},
};

use crate::fake_google::{FakeGoogle, FakeOptions, Misbehaviour, Rule, until};

/// Longer than a test takes: what comes after it never comes.
const NEVER: Duration = Duration::from_secs(3_600);

fn api(fake: &FakeGoogle) -> Api {
    Api::new(endpoint(&fake.url()).unwrap(), Arc::new(Tokens::anonymous()), TIME_LIMIT_DEFAULT).unwrap()
}

fn provider(fake: &FakeGoogle, scale_down: ScaleDown) -> DataprocProvider {
    let target = Target { project: "p".into(), region: "us-central1".into(), cluster: "gpu1".into() };
    DataprocProvider::new(api(fake), target, scale_down, WorkerNames::default())
}

/// How the operation ends.
async fn end(provider: &DataprocProvider, operation: &str) -> OperationState {
    let look = async || Some(provider.poll(operation).await.unwrap()).filter(|state| *state != OperationState::Running);
    until("the operation's end", look).await
}

/// The states of a group's workers.
fn states(capacity: &Capacity, group: GroupName) -> Vec<InstanceState> {
    capacity.groups[&group].instances.iter().map(|instance| instance.state).collect()
}

fn names(capacity: &Capacity, group: GroupName) -> Vec<String> {
    capacity.groups[&group].instances.iter().map(|instance| instance.name.clone()).collect()
}

/// How many requests with this method were made.
fn asked(fake: &FakeGoogle, method: &str) -> usize {
    fake.requests().iter().filter(|request| request.method == method).count()
}

#[tokio::test]
async fn workers_are_promised_come_and_go_by_name() {
    let options = FakeOptions { secondaries_take: Duration::from_millis(400), ..FakeOptions::default() };
    let fake = FakeGoogle::start(options);
    let provider = provider(&fake, ScaleDown::Repair);
    let before = provider.describe().await.unwrap();
    assert_eq!(before.groups[&GroupName::Secondary].size(), 0, "a group that can grow from nothing");
    let operation = provider.create("ya-1", GroupName::Secondary, 3).await.unwrap();
    assert_eq!(end(&provider, &operation).await, OperationState::Done);
    let promised = provider.describe().await.unwrap();
    assert_eq!((promised.groups[&GroupName::Secondary].size(), &promised.readiness), (3, &Readiness::Ready));
    let all_run = async || {
        let capacity = provider.describe().await.unwrap();
        let run = states(&capacity, GroupName::Secondary) == [InstanceState::Running; 3];
        assert_eq!(capacity.groups[&GroupName::Secondary].size(), 3, "never more or fewer than ordered");
        run.then_some(capacity)
    };
    let grown = until("the workers", all_run).await;
    let going = names(&grown, GroupName::Secondary).split_off(1);
    let operation = provider.delete("ya-2", GroupName::Secondary, &going).await.unwrap();
    assert_eq!(end(&provider, &operation).await, OperationState::Done);
    let gone = async || {
        let left = names(&provider.describe().await.unwrap(), GroupName::Secondary);
        (left == names(&grown, GroupName::Secondary)[..1]).then_some(())
    };
    until("the end of those workers, and of no other", gone).await;
    let again = provider.delete("ya-3", GroupName::Secondary, &going).await.unwrap();
    assert_eq!(provider.poll(&again).await, Ok(OperationState::Done));
}

#[tokio::test]
async fn a_cluster_is_busy_while_an_operation_runs() {
    let fake = FakeGoogle::start(FakeOptions { operation_takes: NEVER, ..FakeOptions::default() });
    let provider = provider(&fake, ScaleDown::Update);
    let operation = provider.resize("ya-1", SizeChange { primary: 1, secondary: 2 }, NEVER).await.unwrap();
    assert_eq!(provider.poll(&operation).await, Ok(OperationState::Running));
    let busy = Readiness::Busy { what: "cluster gpu1 is UPDATING".into() };
    assert_eq!(provider.describe().await.unwrap().readiness, busy);
    let refused = provider.create("ya-2", GroupName::Primary, 1).await.unwrap_err();
    assert_eq!((refused.kind, asked(&fake, "PATCH")), (ErrorKind::Conflict, 1), "{refused}");
}

#[tokio::test]
async fn both_groups_change_and_shrink_in_one_order() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let provider = provider(&fake, ScaleDown::Update);
    let operation = provider.resize("ya-1", SizeChange { primary: 1, secondary: 2 }, NEVER).await.unwrap();
    assert_eq!(end(&provider, &operation).await, OperationState::Done);
    let (cluster, wanted) = (fake.cluster("gpu1"), fake.cluster("gpu1").secondaries_wanted());
    assert_eq!((cluster.primaries().len(), wanted), (3, 2));
    let operation = provider.resize("ya-2", SizeChange { primary: -1, secondary: -2 }, Duration::ZERO).await.unwrap();
    assert_eq!(end(&provider, &operation).await, OperationState::Done);
    assert_eq!((cluster.primaries(), cluster.secondaries_wanted()), (names_of_primaries(2), 0));
}

fn names_of_primaries(count: u32) -> Vec<String> {
    (0..count).map(|number| format!("gpu1-w-{number}")).collect()
}

#[tokio::test]
async fn a_lost_answer_doubles_nothing_even_for_a_controller_that_starts_anew() {
    let fake = FakeGoogle::start(FakeOptions { operation_takes: Duration::from_millis(100), ..FakeOptions::default() });
    fake.misbehave(Rule::once("PATCH", "clusters/gpu1", Misbehaviour::UnavailableAfter));
    let first = provider(&fake, ScaleDown::Repair);
    assert_eq!(first.create("ya-1", GroupName::Secondary, 2).await.unwrap_err().kind, ErrorKind::Transient);
    let operation = first.create("ya-1", GroupName::Secondary, 2).await.unwrap();
    assert_eq!(end(&first, &operation).await, OperationState::Done);
    // It knows the request id from the state, and nothing else.
    let second = provider(&fake, ScaleDown::Repair);
    let ready = async || second.describe().await.unwrap().readiness.is_ready().then_some(());
    until("the cluster", ready).await;
    assert_eq!(second.create("ya-1", GroupName::Secondary, 2).await.unwrap(), operation, "the first one");
    assert_eq!(fake.cluster("gpu1").secondaries_wanted(), 2);
}

#[tokio::test]
async fn an_update_that_failed_holds_until_somebody_repairs_the_cluster() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let provider = provider(&fake, ScaleDown::Repair);
    fake.cluster("gpu1").fail_next("Insufficient 'NVIDIA_T4_GPUS' quota. Requested 1.0, available 0.0.");
    let operation = provider.create("ya-1", GroupName::Primary, 1).await.unwrap();
    let OperationState::Failed(error) = end(&provider, &operation).await else { panic!("it fails") };
    assert_eq!(error.kind, ErrorKind::Quota, "{error}");
    let Readiness::Held { why } = &provider.describe().await.unwrap().readiness else { panic!("it is held") };
    assert!(why.contains("--cluster-repair-action=REPAIR_ERROR_DUE_TO_UPDATE_CLUSTER"), "{why}");
    let refused = provider.create("ya-2", GroupName::Primary, 1).await.unwrap_err();
    assert_eq!((refused.kind, asked(&fake, "PATCH")), (ErrorKind::Conflict, 1), "{refused}");
}

#[tokio::test]
async fn silence_and_nonsense_are_errors_that_may_pass() {
    let fake = FakeGoogle::start(FakeOptions::default());
    let provider = provider(&fake, ScaleDown::Repair);
    for what in [
        Misbehaviour::Malformed,
        Misbehaviour::Truncated,
        Misbehaviour::Unavailable,
        Misbehaviour::Instead("{}".into()),
        Misbehaviour::Instead("[]".into()),
    ] {
        // A GET whose connection breaks is asked once more, at once.
        let times = if what == Misbehaviour::DroppedBefore { 2 } else { 1 };
        fake.misbehave(Rule::once("GET", "clusters/gpu1", what.clone()).times(times));
        let error = provider.describe().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Transient, "{what:?}: {error}");
    }
    // A look whose connection breaks is made once more, at once.
    fake.misbehave(Rule::once("GET", "clusters/gpu1", Misbehaviour::DroppedBefore));
    provider.describe().await.unwrap();
    fake.misbehave(Rule::once("GET", "clusters/gpu1", Misbehaviour::DroppedBefore).times(2));
    assert_eq!(provider.describe().await.unwrap_err().kind, ErrorKind::Transient);
    assert_eq!(policy_yaml(&api(&fake), "p", "us-central1", "none").await.unwrap_err().kind, ErrorKind::NotFound);
}
