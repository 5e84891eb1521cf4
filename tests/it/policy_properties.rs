//! Properties of every policy and of every text.

use std::{fmt::Write as _, time::Duration};

use proptest::prelude::*;
use yarn_autoscaler::policy::{self, LoadOptions, Policy, duration};

use crate::policy::valid;

/// A policy as its writer thinks of it.
#[derive(Clone, Debug)]
struct Written {
    cooldown: u64,
    numbers: [f64; 4],
    timeout: u64,
    primary: (u32, u32, u32),
    secondary: Option<(u32, u32, u32)>,
}

prop_compose! {
    fn written()(
        cooldown in 120_u64..=86_400,
        numbers in prop::array::uniform4((0_u32..=1000).prop_map(|n| f64::from(n) / 1000.0)),
        timeout in 0_u64..=86_400,
        primary in (2_u32..100, 0_u32..100, 1_u32..9),
        secondary in prop::option::of((0_u32..100, 0_u32..100, 1_u32..9)),
    ) -> Written {
        let group = |(min, more, weight): (u32, u32, u32)| (min, min + more, weight);
        Written { cooldown, numbers, timeout, primary: group(primary), secondary: secondary.map(group) }
    }
}

impl Written {
    /// By hand: everything written out, durations with units.
    fn by_hand(&self) -> String {
        let names = ["scaleUpFactor", "scaleDownFactor", "scaleUpMinWorkerFraction", "scaleDownMinWorkerFraction"];
        let time = |seconds| duration::format(Duration::from_secs(seconds));
        let group = |name: &str, (min, max, weight): (u32, u32, u32)| {
            format!("{name}:\n  minInstances: {min}\n  maxInstances: {max}\n  weight: {weight}\n")
        };
        let mut text = group("workerConfig", self.primary);
        text += &self.secondary.map(|bounds| group("secondaryWorkerConfig", bounds)).unwrap_or_default();
        write!(text, "basicAlgorithm:\n  cooldownPeriod: {}\n  yarnConfig:\n", time(self.cooldown)).unwrap();
        for (name, number) in names.iter().zip(self.numbers) {
            writeln!(text, "    {name}: {number}").unwrap();
        }
        text + &format!("    gracefulDecommissionTimeout: {}\n", time(self.timeout))
    }

    /// As the service answers: JSON, no zeros, durations in seconds, with its own name.
    fn exported(&self) -> String {
        let group = |(min, max, weight): (u32, u32, u32)| serde_json::json!({ "minInstances": min, "maxInstances": max, "weight": weight });
        let [up, down, up_min, down_min] = self.numbers;
        let mut json = serde_json::json!({
            "name": "projects/p/regions/r/autoscalingPolicies/none",
            "basicAlgorithm": {
                "cooldownPeriod": format!("{}s", self.cooldown),
                "yarnConfig": {
                    "scaleUpFactor": up,
                    "scaleDownFactor": down,
                    "scaleUpMinWorkerFraction": up_min,
                    "scaleDownMinWorkerFraction": down_min,
                    "gracefulDecommissionTimeout": format!("{}s", self.timeout),
                },
            },
            "workerConfig": group(self.primary),
        });
        if let Some(secondary) = self.secondary {
            json["secondaryWorkerConfig"] = group(secondary);
        }
        drop_zeros(&mut json);
        serde_json::to_string_pretty(&json).unwrap()
    }
}

fn drop_zeros(json: &mut serde_json::Value) {
    if let serde_json::Value::Object(fields) = json {
        fields.retain(|_, value| value.as_f64() != Some(0.0) && *value != "0s");
        fields.values_mut().for_each(drop_zeros);
    }
}

proptest! {
    #[test]
    fn hand_written_and_exported_mean_the_same(written in written()) {
        let policy = valid(&written.by_hand());
        prop_assert_eq!(&policy, &valid(&written.exported()));
        // And it is what was written, not just twice the same.
        let basic = policy.basic();
        prop_assert_eq!(basic.cooldown_period.as_secs(), written.cooldown);
        prop_assert_eq!(basic.graceful_decommission_timeout.as_secs(), written.timeout);
        prop_assert_eq!(basic.scale_down_factor, written.numbers[1]);
        prop_assert_eq!((policy.primary.min_instances, policy.primary.max_instances), (written.primary.0, written.primary.1));
        // A policy goes into the decision log and comes back.
        let logged = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(policy, serde_json::from_str::<Policy>(&logged).unwrap());
    }

    #[test]
    fn a_printed_duration_is_read_again(nanos in 0_u64..=3_153_600_000_000_000_000) {
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(duration::parse(&duration::format(duration)), Ok(duration));
        let whole = Duration::from_secs(nanos / 1_000_000_000);
        prop_assert_eq!(duration::parse(&duration::format(whole)), Ok(whole));
    }

    #[test]
    fn no_text_panics(text in ".*") {
        show(&text);
        let _ = duration::parse(&text);
    }

    #[test]
    fn no_yaml_like_text_panics(words in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        show(&words.concat());
    }

    #[test]
    fn no_damaged_policy_panics(written in written(), at in any::<prop::sample::Index>(), word in prop::sample::select(WORDS)) {
        let mut text = written.by_hand();
        let at = at.index(text.len());
        text.replace_range(at..=at, word);
        show(&text);
    }
}

/// Bits of YAML that combine into something that looks like a policy, or like an attack.
const WORDS: &[&str] = &[
    "workerConfig:",
    "basicAlgorithm:",
    "yarnConfig:",
    "maxInstances:",
    "labels:",
    "metrics:",
    "\n",
    "\n  ",
    "\n    ",
    " ",
    "\t",
    "- ",
    "? ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "&a ",
    "*a",
    "<<: ",
    "!t ",
    "!!str ",
    "---",
    "...",
    "\"",
    "'",
    "#",
    "|",
    ">",
    "5",
    "-1",
    "1.5",
    ".nan",
    "null",
    "é",
    "\u{feff}",
    "\r\n",
    "%YAML 1.1\n",
    "0x1F",
    "1h",
    "\u{0}",
    "\u{1b}[31m",
];

/// Loads, and renders whatever is said, in both ways.
fn show(text: &str) {
    for diagnostic in policy::load(text, &LoadOptions::default()).map_or_else(|errors| errors, |loaded| loaded.warnings)
    {
        assert!(!diagnostic.render("policy.yaml", text, false).is_empty());
        let json = diagnostic.to_json("policy.yaml", text);
        assert!(json.line >= 1 && json.column >= 1 && json.end_column >= json.column);
    }
}
