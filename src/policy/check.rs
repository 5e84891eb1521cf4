//! From the file as written to the file as meant: defaults, bounds, and what hangs together across fields.
//!
//! Rules and defaults are Dataproc's (`autoscaling_policies.proto`, recorded answers of the service). Dataproc leaves
//! zeros out of what it exports, so an absent number is 0 wherever 0 is allowed, even where the proto says "required".

use std::time::Duration;

use super::{
    Algorithm, BasicAlgorithm, GroupPolicy, LoadOptions, MetricType, Policy,
    checker::Checker,
    diagnostic::{Diagnostic, Severity},
    duration,
    field::{Field, shorten},
    spans::{Path, Spans},
    spec::{BasicAlgorithmSpec, ClusterType, GroupSpec, LabelsSpec, PolicySpec, TemplateSpec, YarnSpec},
};
use crate::model::{Resources, WorkerTemplate};

/// `cooldownPeriod` where the file gives none.
pub const DEFAULT_COOLDOWN: Duration = Duration::from_secs(120);

/// Fewest primary workers of a standard cluster, and their number where the file gives none.
pub const PRIMARY_MINIMUM: u32 = 2;

/// Most labels of a policy.
const MAX_LABELS: usize = 32;

/// What the file means.
///
/// # Errors
/// Everything that does not hold, in no order.
pub fn check(spec: &PolicySpec, spans: &Spans, options: LoadOptions) -> Result<Policy, Vec<Diagnostic>> {
    let mut checker = Checker::new(spans);
    let policy = checker.policy(spec, options);
    match policy {
        Some(policy) if checker.errors.is_empty() => Ok(policy),
        _ => Err(checker.errors),
    }
}

/// A warning where the primary workers' minimum is written as 0 and means 2: a writer plainly wants none.
pub fn zero_minimum(spec: &PolicySpec, policy: &Policy, spans: &Spans) -> Option<Diagnostic> {
    let group = spec.worker_config.value()?;
    if group.min_instances.value() != Some(&0) || policy.primary.min_instances == 0 {
        return None;
    }
    let path = Path::of(&["workerConfig", "minInstances"]);
    let least = policy.primary.min_instances;
    let message = format!("`{path}` is 0, which Dataproc takes for not given: it means {least}");
    let warning = Diagnostic::error("zero-means-default", path.clone(), spans.place(&path).value, message);
    let help = format!("write {least}, or `clusterType: ZERO_SCALE` for none at all");
    Some(Diagnostic { severity: Severity::Warning, ..warning }.help(help))
}

/// Bounds of a group as far as they could be read.
#[derive(Default)]
struct Bounds {
    min: Option<u32>,
    max: Option<u32>,
    weight: Option<u32>,
    template: Option<WorkerTemplate>,
}

impl Checker<'_> {
    fn policy(&mut self, spec: &PolicySpec, options: LoadOptions) -> Option<Policy> {
        let root = Path::default();
        let id = self.read(&root.key("id"), &spec.id);
        self.id(id.as_deref());
        self.read(&root.key("name"), &spec.name);
        self.labels(&root.key("labels"), &spec.labels);
        let cluster_type = self.read(&root.key("clusterType"), &spec.cluster_type).unwrap_or_default();
        let basic = self.basic(&spec.basic_algorithm, options);
        let primary = self.primary(&spec.worker_config, cluster_type);
        let secondary = self.secondary(&spec.secondary_worker_config);
        let weights = weights(primary.weight, secondary.as_ref().and_then(|bounds| bounds.weight));
        let secondary_template = secondary.as_ref().and_then(|bounds| bounds.template.clone());
        Some(Policy {
            id,
            algorithm: Algorithm::Basic(basic?),
            primary: primary.group(weights.0)?,
            secondary: match secondary {
                Some(bounds) => Some(bounds.group(weights.1)?),
                None => None,
            },
            primary_template: primary.template,
            secondary_template,
        })
    }

    fn id(&mut self, id: Option<&str>) {
        let Some(id) = id else { return };
        let letters = id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let ends =
            id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.ends_with(|c: char| c.is_ascii_alphanumeric());
        if letters && ends && (3..=50).contains(&id.len()) {
            return;
        }
        let message = format!("`id` is not a policy name, found `{}`", shorten(id));
        let help = "use 3 to 50 letters, digits, `_` and `-`, with a letter or digit at both ends";
        self.error("invalid-id", &Path::of(&["id"]), message, |error| error.help(help));
    }

    fn labels(&mut self, path: &Path, labels: &Field<LabelsSpec>) {
        let Some(LabelsSpec(labels)) = self.read(path, labels) else { return };
        if labels.len() > MAX_LABELS {
            let message = format!("`labels` has {} entries, at most {MAX_LABELS} are allowed", labels.len());
            self.errors.push(Diagnostic::error("invalid-label", path.clone(), self.spans.place(path).key, message));
        }
        for (key, value) in &labels {
            let path = path.key(key);
            let value = self.read(&path, value).unwrap_or_default();
            let place = self.spans.place(&path);
            let help = "labels have letters, digits, `_` and `-`, at most 63; a key begins with a letter";
            if !(key.starts_with(|c: char| c.is_alphabetic()) && is_label(key)) {
                let message = format!("`labels` has the key `{}`, which is no label key", shorten(key));
                self.errors.push(Diagnostic::error("invalid-label", path.clone(), place.key, message).help(help));
            }
            if !is_label(&value) {
                let message = format!("`{}` is no label value, found `{}`", path, shorten(&value));
                self.errors.push(Diagnostic::error("invalid-label", path.clone(), place.value, message).help(help));
            }
        }
    }

    fn basic(&mut self, field: &Field<BasicAlgorithmSpec>, options: LoadOptions) -> Option<BasicAlgorithm> {
        let path = Path::of(&["basicAlgorithm"]);
        let spec = self.require(&path, field)?;
        let cooldown_bounds = DEFAULT_COOLDOWN..=duration::DAY;
        let cooldown = self.duration(&path.key("cooldownPeriod"), &spec.cooldown_period, cooldown_bounds);
        let path = path.key("yarnConfig");
        let yarn = self.require(&path, &spec.yarn_config)?;
        let timeout = self.timeout(&path.key("gracefulDecommissionTimeout"), &yarn, options);
        Some(BasicAlgorithm {
            cooldown_period: cooldown.unwrap_or(DEFAULT_COOLDOWN),
            scale_up_factor: self.fraction(&path.key("scaleUpFactor"), &yarn.scale_up_factor),
            scale_down_factor: self.fraction(&path.key("scaleDownFactor"), &yarn.scale_down_factor),
            scale_up_min_worker_fraction: self
                .fraction(&path.key("scaleUpMinWorkerFraction"), &yarn.scale_up_min_worker_fraction),
            scale_down_min_worker_fraction: self
                .fraction(&path.key("scaleDownMinWorkerFraction"), &yarn.scale_down_min_worker_fraction),
            graceful_decommission_timeout: timeout,
            metrics: self.metrics(&path.key("metrics"), &yarn.metrics),
        })
    }

    fn timeout(&mut self, path: &Path, yarn: &YarnSpec, options: LoadOptions) -> Duration {
        let timeout = self.duration(path, &yarn.graceful_decommission_timeout, Duration::ZERO..=duration::DAY);
        let timeout = timeout.unwrap_or(Duration::ZERO);
        if options.primary_worker_shuffle && !timeout.is_zero() {
            let message = format!(
                "`{path}` must be 0s where Spark's shuffle data lives on primary workers, found {}",
                duration::format(timeout)
            );
            let help = "write `0s`, or leave `dataproc:efm.spark.shuffle=primary-worker` off (see SPARK-30873)";
            self.error("shuffle-needs-zero-timeout", path, message, |error| error.label("must be 0s").help(help));
        }
        timeout
    }

    fn metrics(&mut self, path: &Path, field: &Field<Vec<Field<MetricType>>>) -> Vec<MetricType> {
        let Some(items) = self.read(path, field) else { return vec![MetricType::YarnMemory] };
        if items.is_empty() {
            self.error("out-of-range", path, format!("`{path}` must name at least one metric"), |error| error);
        }
        let mut metrics = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = path.index(index);
            let Some(metric) = self.read(&path, item) else { continue };
            if metrics.contains(&metric) {
                self.error("duplicate-metric", &path, format!("`{path}` is listed twice"), |error| error);
            }
            metrics.push(metric);
        }
        metrics
    }

    fn primary(&mut self, field: &Field<GroupSpec>, cluster_type: ClusterType) -> Bounds {
        let path = Path::of(&["workerConfig"]);
        let least = match cluster_type {
            ClusterType::Standard => PRIMARY_MINIMUM,
            ClusterType::ZeroScale => 0,
        };
        let spec = match (self.read(&path, field), cluster_type) {
            (Some(spec), _) => spec,
            (None, ClusterType::ZeroScale) => GroupSpec::default(),
            (None, ClusterType::Standard) => {
                self.missing(&path, field);
                return Bounds::default();
            }
        };
        // On the wire a written 0 is no value at all: Dataproc fills in 2, and so do we (with a warning, see `lint`).
        let is_zero = cluster_type == ClusterType::Standard && spec.min_instances.value() == Some(&0);
        let spec = if is_zero { GroupSpec { min_instances: Field::Absent, ..spec } } else { spec };
        let bounds = self.bounds(&path, &spec, least);
        if cluster_type == ClusterType::ZeroScale {
            return Bounds { max: bounds.max.or(Some(0)), ..bounds };
        }
        self.missing(&path.key("maxInstances"), &spec.max_instances);
        bounds
    }

    fn secondary(&mut self, field: &Field<GroupSpec>) -> Option<Bounds> {
        let path = Path::of(&["secondaryWorkerConfig"]);
        let spec = self.read(&path, field)?;
        let bounds = self.bounds(&path, &spec, 0);
        if bounds.min.is_some_and(|min| min > 0) {
            self.missing(&path.key("maxInstances"), &spec.max_instances);
        }
        Some(Bounds { max: bounds.max.or(Some(0)), ..bounds })
    }

    fn bounds(&mut self, path: &Path, spec: &GroupSpec, least: u32) -> Bounds {
        let (min_path, max_path) = (path.key("minInstances"), path.key("maxInstances"));
        let min = match spec.min_instances {
            Field::Absent => Some(least),
            _ => self.count(&min_path, &spec.min_instances, least),
        };
        let max = self.count(&max_path, &spec.max_instances, 0);
        let bounds = Bounds {
            min,
            max,
            weight: self.count(&path.key("weight"), &spec.weight, 0),
            template: self.template(&path.key("template"), &spec.template),
        };
        if let (Some(min), Some(max)) = (min, max) {
            self.order(&min_path, min, &max_path, max);
        }
        bounds
    }

    fn order(&mut self, min_path: &Path, min: u32, max_path: &Path, max: u32) {
        if min <= max {
            return;
        }
        let max_span = self.spans.place(max_path).value;
        let written = self.spans.get(min_path).is_some();
        let default = if written { "" } else { ", the default" };
        let message = format!("`{min_path}` ({min}{default}) is greater than `{max_path}` ({max})");
        if written {
            let label = "must not be greater than the maximum";
            self.error("min-above-max", min_path, message, |error| {
                error.label(label).also(max_span, "the maximum is set here")
            });
        } else {
            let label = format!("must be {min} or more");
            self.error("min-above-max", max_path, message, |error| error.label(label));
        }
    }

    fn template(&mut self, path: &Path, field: &Field<TemplateSpec>) -> Option<WorkerTemplate> {
        let spec = self.read(path, field)?;
        let (memory, vcores) = (path.key("memoryMb"), path.key("vcores"));
        self.missing(&memory, &spec.memory_mb);
        self.missing(&vcores, &spec.vcores);
        let memory_mb = self.count(&memory, &spec.memory_mb, 1);
        let vcores = self.count(&vcores, &spec.vcores, 1);
        let gpus = self.count(&path.key("gpus"), &spec.gpus, 0).unwrap_or(0);
        let boot_time = self.duration(&path.key("bootTime"), &spec.boot_time, Duration::ZERO..=duration::DAY);
        Some(WorkerTemplate { resources: Resources::new(memory_mb?.into(), vcores?.into(), gpus.into()), boot_time })
    }

    fn fraction(&mut self, path: &Path, field: &Field<f64>) -> f64 {
        let Some(value) = self.read(path, field) else { return 0.0 };
        if !(0.0..=1.0).contains(&value) {
            self.out_of_range(path, "between 0 and 1", value);
        }
        // Minus zero is zero, also when it is printed.
        value.abs()
    }
}

impl Bounds {
    fn group(&self, weight: u32) -> Option<GroupPolicy> {
        Some(GroupPolicy { min_instances: self.min?, max_instances: self.max?, weight })
    }
}

/// Weights as meant. Neither given: both 1. One given: the other is 0. A zero is as good as none, since the wire does
/// not tell them apart.
fn weights(primary: Option<u32>, secondary: Option<u32>) -> (u32, u32) {
    match (primary.unwrap_or(0), secondary.unwrap_or(0)) {
        (0, 0) => (1, 1),
        given => given,
    }
}

fn is_label(text: &str) -> bool {
    text.chars().count() <= 63 && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
}
