//! What a test reads and alters in the simulated cloud, past the services.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{
    FakeGoogle,
    cloud::Cloud,
    dataproc_body::Cluster,
    groups::GroupKey,
    machines::{Instance, Stage},
    options::FakeOptions,
};

/// Far longer than anything takes here, on the slowest machine.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Waits for what is bound to come of the stand-in.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{what} did not come within 30 s");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

impl FakeGoogle {
    /// Alters delays, quotas, stock-outs and the like, from now on.
    pub fn alter(&self, change: impl FnOnce(&mut FakeOptions)) {
        change(&mut self.cloud().options);
    }

    /// A token that the services take.
    pub fn token(&self) -> String {
        self.cloud().new_token()
    }

    /// The bytes of an object.
    pub fn object(&self, bucket: &str, name: &str) -> Option<Vec<u8>> {
        self.cloud().buckets.get(bucket)?.objects.get(name).map(|object| object.data.to_vec())
    }

    /// The generation of an object.
    pub fn generation(&self, bucket: &str, name: &str) -> Option<i64> {
        self.cloud().buckets.get(bucket)?.objects.get(name).map(|object| object.generation)
    }

    /// Writes an object, whatever was there.
    pub fn put_object(&self, bucket: &str, name: &str, text: &str) {
        let mut cloud = self.cloud();
        let now = cloud.timestamp();
        let bucket = cloud.buckets.entry(bucket.into()).or_default();
        bucket.put(name, text.to_owned().into(), "application/json", Value::Null, now);
    }

    /// Names of the machines that run, in order.
    pub fn running(&self) -> Vec<String> {
        let cloud = self.cloud();
        let running = cloud.instances.values().filter(|instance| instance.stage == Stage::Running);
        running.map(|instance| instance.name.clone()).collect()
    }

    /// Waits, on this thread, for what is bound to come.
    pub fn wait_until(&self, what: &str, look: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !look(self) {
            assert!(begin.elapsed() < WAIT_MAX, "{what} did not come within {} s", WAIT_MAX.as_secs());
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Takes a machine away, as a preemption does. A group makes it anew; a cluster's count is not told.
    pub fn preempt(&self, name: &str) {
        let mut cloud = self.cloud();
        let (now, delay) = (cloud.now, cloud.options.secondaries_take);
        let kept = cloud.instances.get(name).is_some_and(|instance| instance.group.is_some());
        cloud.delete_machine(name, now);
        if let Some(instance) = cloud.instances.get_mut(name).filter(|_| kept) {
            instance.stage = Stage::Wanted { from: now + delay };
        }
    }
}

impl FakeGoogle {
    /// A managed instance group, to read.
    pub fn group(&self, name: &str) -> GroupHandle<'_> {
        GroupHandle { fake: self, name: name.into() }
    }
}

/// A managed instance group, by its name.
pub struct GroupHandle<'a> {
    fake: &'a FakeGoogle,
    name: String,
}

impl GroupHandle<'_> {
    fn with<T>(&self, read: impl FnOnce(&Cloud, &GroupKey) -> T) -> T {
        let cloud = self.fake.cloud();
        let key = cloud.groups.keys().find(|key| key.name == self.name);
        read(&cloud, key.unwrap_or_else(|| panic!("no group {}", self.name)))
    }

    /// How many machines there are to be.
    pub fn target_size(&self) -> u32 {
        self.with(|cloud, key| cloud.groups[key].target_size)
    }

    /// Names of its machines, those that are only wanted included, in order.
    pub fn members(&self) -> Vec<String> {
        self.with(|cloud, key| cloud.members(key).iter().map(|member| member.name.clone()).collect())
    }

    /// Names of its machines that run, in order.
    pub fn running(&self) -> Vec<String> {
        let runs = |member: &&&Instance| member.stage == Stage::Running;
        self.with(|cloud, key| cloud.members(key).iter().filter(runs).map(|member| member.name.clone()).collect())
    }
}

/// A cluster, by its name.
pub struct ClusterHandle<'a> {
    fake: &'a FakeGoogle,
    name: String,
}

impl<'a> ClusterHandle<'a> {
    pub(super) fn new(fake: &'a FakeGoogle, name: &str) -> Self {
        Self { fake, name: name.into() }
    }

    fn with<T>(&self, read: impl FnOnce(&mut Cluster) -> T) -> T {
        let mut cloud = self.fake.cloud();
        read(cloud.clusters.get_mut(&self.name).unwrap_or_else(|| panic!("no cluster {}", self.name)))
    }

    /// `RUNNING`, `UPDATING` …
    pub fn state(&self) -> String {
        self.with(|cluster| cluster.state.clone())
    }

    pub fn uuid(&self) -> String {
        self.with(|cluster| cluster.uuid.clone())
    }

    /// Puts the cluster into a state.
    pub fn enter(&self, state: &str, detail: &str) {
        let now = self.fake.cloud().timestamp();
        self.with(|cluster| cluster.enter(state, detail, now));
    }

    /// The next operation fails with this text, and leaves the cluster in `ERROR_DUE_TO_UPDATE`.
    pub fn fail_next(&self, text: &str) {
        self.with(|cluster| cluster.fail_next = Some(text.into()));
    }

    /// Puts these fields into its configuration.
    pub fn set_config(&self, fields: &Value) {
        let fields = fields.as_object().expect("fields").clone();
        self.with(|cluster| fields.into_iter().for_each(|(field, value)| cluster.config[field] = value));
    }

    /// What `metrics.yarnMetrics` says from now on.
    pub fn set_yarn_metrics(&self, metrics: Value) {
        self.with(|cluster| cluster.yarn_metrics = Some(metrics));
    }

    /// Names of the primaries, in the order of their numbers.
    pub fn primaries(&self) -> Vec<String> {
        self.with(|cluster| cluster.primaries.clone())
    }

    /// Names of the secondaries that exist, in order.
    pub fn secondaries(&self) -> Vec<String> {
        let key = self.with(|cluster| cluster.group.clone());
        let cloud = self.fake.cloud();
        let members = cloud.members(&key).into_iter().filter(|member| member.exists());
        members.map(|member| member.name.clone()).collect()
    }

    /// How many secondaries there are to be.
    pub fn secondaries_wanted(&self) -> u32 {
        let key = self.with(|cluster| cluster.group.clone());
        self.fake.cloud().groups[&key].target_size
    }

    /// The cluster as `clusters.get` tells it.
    pub fn json(&self) -> Value {
        let cluster = self.with(|cluster| cluster.clone());
        self.fake.cloud().cluster_json(&cluster)
    }
}
