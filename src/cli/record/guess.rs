//! Containers and sizes of an application of which only totals are known.
//! Must not know where the totals come from.
//!
//! YARN keeps of an application that is over: when its master was launched, when it ended, and the memory, cores and
//! GPUs of its containers, each times the seconds that they were held. The rule, in this order:
//!
//! 1. The master had the assumed size for the whole run time, or that of all containers on average where that is less:
//!    no master is taken to be larger than the others.
//! 2. What remains was held by like containers for so many container seconds in all: the GPU seconds, of one GPU each;
//!    without GPUs, the memory seconds over the assumed size. Never more than the core seconds, since a container has
//!    a core at least: where those are fewer, the containers were larger.
//! 3. They were as few as can have done that within the run time (none can have lived longer), and each had an equal
//!    part. So the product of number, size and duration is what was used, and what the application waited for in
//!    the meantime is no work.

use crate::model::Resources;

/// Below this many core seconds, or this part of the run time, nothing but the master ran: YARN's totals and its times
/// differ by as much.
const NOISE_S: f64 = 2.0;
const NOISE_PART: f64 = 0.02;
/// By this part of one a count may exceed a whole number and still be that number.
const SLACK: f64 = 0.02;

/// What is assumed where only totals are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The application master's size.
    pub master: Resources,
    /// Memory of any other container without a GPU, in MB.
    pub container_memory_mb: u64,
}

/// What the totals come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Guess {
    /// The master's size.
    pub master: Resources,
    /// The other containers, where there were any.
    pub others: Option<Like>,
}

/// Containers that are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Like {
    /// How many.
    pub containers: u64,
    /// Of which size each.
    pub size: Resources,
    /// How long each works, in seconds.
    pub duration_s: f64,
}

/// Takes totals (amounts times seconds) apart; `run_s` is the run time and above zero. `master` is its size where that
/// is known.
pub fn guess(used: Resources, run_s: f64, master: Option<Resources>, assumed: &Assumed) -> Guess {
    let [memory, vcores, gpus] = [used.memory_mb, used.vcores, used.gpus].map(float);
    let of_master = master.unwrap_or(assumed.master);
    let rest_vcores = vcores - float(of_master.vcores) * run_s;
    let rest_gpus = (gpus - float(of_master.gpus) * run_s).max(0.0);
    // With GPUs it is known for how many container seconds the others were there; else they had a core each at most.
    let others_s = if rest_gpus > 0.0 { rest_gpus.min(rest_vcores) } else { rest_vcores };
    let master_memory = match master {
        Some(known) => float(known.memory_mb),
        None => float(of_master.memory_mb).min(memory / (run_s + others_s.max(0.0))),
    };
    let rest_memory = (memory - master_memory * run_s).max(0.0);
    let container_s =
        if rest_gpus > 0.0 { others_s } else { others_s.min(rest_memory / float(assumed.container_memory_mb.max(1))) };
    if rest_vcores < NOISE_S.max(NOISE_PART * run_s) || container_s <= 0.0 {
        let held = Resources::new(whole(memory / run_s), whole(vcores / run_s).max(1), whole(gpus / run_s));
        return Guess { master: master.unwrap_or(held), others: None };
    }
    let containers = (container_s / run_s - SLACK).ceil().max(1.0);
    let each = [rest_memory, rest_vcores, rest_gpus].map(|amount| whole(amount / container_s));
    let [memory_mb, vcores, gpus] = each;
    Guess {
        master: Resources { memory_mb: whole(master_memory), ..of_master },
        others: Some(Like {
            containers: whole(containers),
            size: Resources::new(memory_mb.max(1), vcores.max(1), gpus),
            duration_s: container_s / containers,
        }),
    }
}

/// A figure to reckon with.
#[expect(clippy::cast_precision_loss, reason = "figures are bounded far below 2^52 where they are read")]
pub fn float(figure: u64) -> f64 {
    figure as f64
}

/// The nearest whole number, nothing below zero.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates, which is what is meant")]
pub fn whole(figure: f64) -> u64 {
    figure.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASSUMED: Assumed = Assumed { master: Resources::new(2048, 1, 0), container_memory_mb: 2048 };

    /// Totals of a master and of `n` containers of this size, for so many seconds.
    fn used(master_mb: u64, run_s: u64, n: u64, each: Resources, work_s: u64) -> Resources {
        Resources::new(master_mb, 1, 0).times(run_s) + each.times(n * work_s)
    }

    #[track_caller]
    fn others(used: Resources, run_s: u64) -> (u64, Resources, u64) {
        let like = guess(used, float(run_s), None, &ASSUMED).others.unwrap();
        (like.containers, like.size, whole(like.duration_s))
    }

    #[test]
    fn gangs_are_found_although_they_waited_within_the_run_time() {
        for (gpus, vcores) in [(1, 1), (1, 4), (4, 1)] {
            let each = Resources::new(8192, vcores, gpus);
            assert_eq!(others(used(2048, 1000, 8, each, 990), 1000), (8, each, 990));
        }
        let each = Resources::new(4096, 1, 1);
        assert_eq!(others(used(2048, 20, 2, each, 14), 20), (2, each, 14), "1.4 GPUs on average are two containers");
    }

    #[test]
    fn a_master_is_never_taken_to_be_larger_than_the_others() {
        let each = Resources::new(512, 1, 1);
        let used = used(256, 100, 2, each, 90);
        let Guess { master, others } = guess(used, 100.0, None, &ASSUMED);
        assert_eq!((master.memory_mb, others.unwrap().size.memory_mb), (421, 421));
        let known = guess(used, 100.0, Some(Resources::new(256, 1, 0)), &ASSUMED);
        assert_eq!(known.others.unwrap().size, each);
    }

    #[test]
    fn without_gpus_the_assumed_size_says_how_many() {
        let each = Resources::new(2048, 1, 0);
        assert_eq!(others(used(2048, 100, 10, each, 60), 100), (6, each, 100), "the same load, on the fewest");
        let each = Resources::new(8192, 1, 0);
        assert_eq!(others(used(2048, 100, 3, each, 100), 100), (3, each, 100), "a container has a core at least");
        let each = Resources::new(8192, 4, 0);
        assert_eq!(others(used(2048, 100, 3, each, 100), 100), (12, Resources::new(2048, 1, 0), 100));
    }

    #[test]
    fn a_master_alone_has_all() {
        let alone = |used, run_s| {
            let guess = guess(used, run_s, None, &ASSUMED);
            assert_eq!(guess.others, None);
            guess.master
        };
        assert_eq!(alone(Resources::new(6144, 1, 0).times(100), 100.0), Resources::new(6144, 1, 0));
        assert_eq!(
            alone(Resources::new(1536, 1, 0).times(9), 8.5),
            Resources::new(1626, 1, 0),
            "within what YARN rounds"
        );
        assert_eq!(alone(Resources::default(), 1.0), Resources::new(0, 1, 0));
    }

    #[test]
    fn the_product_is_what_was_used() {
        for (n, each, work_s) in [(3, Resources::new(3000, 2, 1), 77), (50, Resources::new(1024, 1, 0), 13)] {
            let used = used(2048, 100, n, each, work_s);
            let Guess { master, others } = guess(used, 100.0, None, &ASSUMED);
            let like = others.unwrap();
            let memory =
                float(like.size.memory_mb * like.containers) * like.duration_s + float(master.memory_mb) * 100.0;
            assert!((memory / float(used.memory_mb) - 1.0).abs() < 0.01, "{memory} of {}", used.memory_mb);
        }
    }
}
