//! Warnings: the policy is valid, but it will hurt, or not do what its writer wants. Few, and each with its why.
//!
//! A lint speaks only of what follows from the policy itself by the algorithm's formulas, or of what the product's
//! documentation advises; it never guesses at workloads.

use super::{
    BasicAlgorithm, Diagnostic, GroupPolicy, LoadOptions, Policy, Severity, duration,
    spans::{Path, Spans},
};
use crate::model::GroupName;

/// Workers that a cluster may stay away from its bound, as a share of the largest cluster, before a lint speaks: small
/// fractions are meant to spare small changes, and a rest of one or two workers is no trap.
const TOLERATED_SHARE: f64 = 0.1;

/// Scale events that a lint plays through at most; a policy that needs more does get there, only slowly.
const MAX_STEPS: usize = 100_000;

/// Slack for products of decimal fractions (0.1 × 30 is a hair above 3).
const EPSILON: f64 = 1e-9;

/// Everything that will probably hurt, in no order.
pub fn lint(policy: &Policy, spans: &Spans, options: LoadOptions) -> Vec<Diagnostic> {
    let context = Context { policy, basic: policy.basic(), spans, options };
    if !context.scales() {
        return context.never_scales().into_iter().chain(context.weights()).collect();
    }
    let once = [
        context.never_scales_up(),
        context.growth_stalls(),
        context.shrink_stalls(),
        context.scale_down_kills(),
        context.primary_workers_scale(),
    ];
    let each = GroupName::ALL.into_iter().flat_map(|name| [context.cooldown(name), context.gang(name)]);
    once.into_iter().chain(each).flatten().chain(context.weights()).collect()
}

struct Context<'a> {
    policy: &'a Policy,
    basic: &'a BasicAlgorithm,
    spans: &'a Spans,
    options: LoadOptions,
}

impl Context<'_> {
    fn never_scales(&self) -> Option<Diagnostic> {
        let message = "the policy never scales: `minInstances` equals `maxInstances` in every group";
        let path = match self.policy.secondary {
            Some(group) if group.max_instances > 0 => "secondaryWorkerConfig",
            _ => "workerConfig",
        };
        let warning = self.warn("never-scales", &Path::of(&[path]), message);
        Some(warning.help("raise `maxInstances` of the group that is to grow"))
    }

    fn never_scales_up(&self) -> Option<Diagnostic> {
        if self.basic.scale_up_factor > 0.0 {
            return None;
        }
        let path = yarn("scaleUpFactor");
        let absent = if self.spans.get(&path).is_some() { "" } else { " (absent means 0)" };
        let message = format!("the cluster never scales up: `scaleUpFactor` is 0{absent}");
        let warning = self.warn("never-scales-up", &path, message);
        Some(warning.help("1.0 adds all that is pending at once; 0.05 is a calm start for Spark and MapReduce"))
    }

    /// Demand for the largest cluster, and yet the steps become too small for the fraction.
    fn growth_stalls(&self) -> Option<Diagnostic> {
        let (least, most) = self.sizes();
        let stall = growth_stall(self.basic, least, most)?;
        if self.basic.scale_up_factor == 0.0 || most - stall <= TOLERATED_SHARE * most {
            return None;
        }
        let message = format!(
            "growth stalls at {stall} of {most} workers: `scaleUpMinWorkerFraction` ({}) asks for a larger step than \
             `scaleUpFactor` ({}) gives",
            self.basic.scale_up_min_worker_fraction, self.basic.scale_up_factor
        );
        let warning = self.warn("growth-stalls", &yarn("scaleUpMinWorkerFraction"), message);
        let help = "demand for all workers does not bring the last ones; lower the fraction or raise the factor";
        Some(self.beside(warning, &yarn("scaleUpFactor"), "the factor is set here").help(help))
    }

    /// No demand at all, and yet the cluster stays well above its minimum.
    fn shrink_stalls(&self) -> Option<Diagnostic> {
        let (least, most) = self.sizes();
        let stall = shrink_stall(self.basic, least, most)?;
        if self.basic.scale_down_factor == 0.0 || stall - least <= TOLERATED_SHARE * most {
            return None;
        }
        let fraction = match self.basic.scale_down_min_worker_fraction {
            0.0 => String::new(),
            fraction => format!(", and must reach `scaleDownMinWorkerFraction` ({fraction})"),
        };
        let message = format!(
            "an idle cluster stops shrinking at {stall} workers, the minimum is {least}: steps are rounded down{fraction}"
        );
        let warning = self.warn("shrink-stalls", &yarn("scaleDownFactor"), message);
        let help = "raise `scaleDownFactor` (1.0 removes the whole surplus) or lower `scaleDownMinWorkerFraction`";
        Some(warning.help(help))
    }

    fn scale_down_kills(&self) -> Option<Diagnostic> {
        let basic = self.basic;
        let kills = basic.scale_down_factor > 0.0 && basic.graceful_decommission_timeout.is_zero();
        // Where the shuffle mode forbids every other time-out, the advice would be an error.
        if !kills || self.options.primary_worker_shuffle {
            return None;
        }
        let path = yarn("gracefulDecommissionTimeout");
        let absent = if self.spans.get(&path).is_some() { "" } else { " (absent means 0s)" };
        let message = format!("scale down kills running containers: `gracefulDecommissionTimeout` is 0s{absent}");
        let warning = self.warn("scale-down-kills", &path, message);
        Some(warning.help(
            "give a time-out longer than the longest job, or `scaleDownFactor: 0.0`; if 0s is right because Spark's \
             shuffle data lives on primary workers, validate with `--spark-shuffle primary-worker`",
        ))
    }

    fn primary_workers_scale(&self) -> Option<Diagnostic> {
        if !GroupName::ALL.into_iter().all(|name| grows(self.policy.group(name))) {
            return None;
        }
        let message = "primary workers scale although there are secondary workers that do";
        let warning = self.warn("primary-workers-scale", &Path::of(&["workerConfig", "maxInstances"]), message);
        Some(warning.help(
            "primary workers hold HDFS blocks, which must be moved before a worker can go; give them the same \
             `minInstances` and `maxInstances`, and let the secondary workers scale",
        ))
    }

    fn cooldown(&self, name: GroupName) -> Option<Diagnostic> {
        let boot_time = self.policy.template(name)?.boot_time?;
        let cooldown = self.basic.cooldown_period;
        if cooldown >= boot_time || !grows(self.policy.group(name)) {
            return None;
        }
        let (cooldown, boot_time) = (duration::format(cooldown), duration::format(boot_time));
        let message =
            format!("`cooldownPeriod` ({cooldown}) is shorter than the {name} workers' boot time ({boot_time})");
        let warning =
            self.warn("cooldown-shorter-than-boot", &Path::of(&["basicAlgorithm", "cooldownPeriod"]), message);
        let help = format!(
            "the next decision comes while the workers of the last one still boot, on a time in which they could \
             not serve yet; use {boot_time} or more"
        );
        Some(self.beside(warning, &group_path(name).key("template").key("bootTime"), "boots this long").help(help))
    }

    fn gang(&self, name: GroupName) -> Option<Diagnostic> {
        let gpus = self.policy.template(name)?.resources.gpus;
        let factor = self.basic.scale_up_factor;
        if gpus == 0 || factor >= 1.0 || factor == 0.0 || !grows(self.policy.group(name)) {
            return None;
        }
        let message = format!("GPU jobs may get part of their workers: `scaleUpFactor` ({factor}) is less than 1");
        let warning = self.warn("gang-gets-part", &yarn("scaleUpFactor"), message);
        let help = "a distributed training job that gets part of its GPUs holds them and waits; use 1.0";
        Some(self.beside(warning, &group_path(name).key("template").key("gpus"), "workers with GPUs").help(help))
    }

    /// A weight that does nothing, or that silently takes the other group's away.
    fn weights(&self) -> Option<Diagnostic> {
        let written = |name| self.spans.get(&group_path(name).key("weight")).is_some();
        let idle = GroupName::ALL.into_iter().find(|name| {
            let group = self.policy.group(*name);
            let other = self.policy.group(other(*name));
            // Both 1 is what Dataproc fills in and exports, and does no harm.
            group.max_instances == 0 && written(*name) && group.weight > 0 && other.weight != group.weight
        });
        if let Some(name) = idle {
            let path = group_path(name).key("weight");
            let warning =
                self.warn("weight-without-workers", &path, format!("`{path}` weighs a group without workers"));
            return Some(warning.help("raise the group's `maxInstances`, or drop the weight"));
        }
        let name = GroupName::ALL.into_iter().find(|name| {
            let group = self.policy.group(*name);
            group.weight == 0 && group.max_instances > 0 && grows(group) && !written(*name)
        })?;
        let path = group_path(other(name)).key("weight");
        let message = format!("the {name} workers count as weight 0, because only the other group has a weight");
        let help =
            format!("write `{}` too; without any weight both groups count the same", group_path(name).key("weight"));
        Some(self.warn("one-sided-weight", &path, message).help(help))
    }

    fn scales(&self) -> bool {
        GroupName::ALL.into_iter().any(|name| grows(self.policy.group(name)))
    }

    /// Fewest and most workers of the whole cluster.
    fn sizes(&self) -> (f64, f64) {
        let groups = GroupName::ALL.map(|name| self.policy.group(name));
        let sum = |size: fn(&GroupPolicy) -> u32| groups.iter().map(|group| f64::from(size(group))).sum();
        (sum(|group| group.min_instances), sum(|group| group.max_instances))
    }

    /// A warning at a value; where the file does not give it, at the key of the mapping that could.
    fn warn(&self, code: &'static str, path: &Path, message: impl Into<String>) -> Diagnostic {
        let place = self.spans.place(path);
        let scalar = path.segments().len() > 1 && self.spans.get(path).is_some();
        let span = if scalar { place.value } else { place.key };
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, path.clone(), span, message) }
    }

    fn beside(&self, warning: Diagnostic, path: &Path, label: &str) -> Diagnostic {
        match self.spans.get(path) {
            Some(place) => warning.also(place.value.clone(), label),
            None => warning,
        }
    }
}

/// The size at which demand for `most` workers no longer grows the cluster; `None` where it grows to the end.
/// Dataproc's rule: the share of the missing workers, rounded up, at least the fraction of the present ones.
fn growth_stall(basic: &BasicAlgorithm, least: f64, most: f64) -> Option<f64> {
    let mut size = least;
    for _ in 0..MAX_STEPS {
        if size >= most {
            return None;
        }
        let step = ((most - size) * basic.scale_up_factor - EPSILON).ceil();
        if step < 1.0 || step + EPSILON < basic.scale_up_min_worker_fraction * size {
            return Some(size);
        }
        size += step;
    }
    None
}

/// The size at which a cluster without any work no longer shrinks; `None` where it shrinks to `least`.
/// Dataproc's rule: the share of the surplus workers, rounded down, at least the fraction of the present ones.
fn shrink_stall(basic: &BasicAlgorithm, least: f64, most: f64) -> Option<f64> {
    let mut size = most;
    for _ in 0..MAX_STEPS {
        if size <= least {
            return None;
        }
        let step = (size * basic.scale_down_factor + EPSILON).floor();
        if step < 1.0 || step + EPSILON < basic.scale_down_min_worker_fraction * size {
            return Some(size);
        }
        size = (size - step).max(least);
    }
    None
}

fn grows(group: GroupPolicy) -> bool {
    group.min_instances < group.max_instances
}

fn other(name: GroupName) -> GroupName {
    match name {
        GroupName::Primary => GroupName::Secondary,
        GroupName::Secondary => GroupName::Primary,
    }
}

fn group_path(name: GroupName) -> Path {
    Path::of(&[match name {
        GroupName::Primary => "workerConfig",
        GroupName::Secondary => "secondaryWorkerConfig",
    }])
}

fn yarn(field: &str) -> Path {
    Path::of(&["basicAlgorithm", "yarnConfig", field])
}
