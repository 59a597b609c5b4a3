//! How long activations take: from a wakeup (or the creation) to the next sleep (or the exit), with
//! all that lies between, running or waiting for a CPU.
//!
//! ```text
//! group        the tasks of one name: worker-0, worker-1, … are "worker"
//! quantile p   the shortest time that at least p of all activations took at most (nearest rank)
//! ```
//!
//! Times are counted in buckets, 128 to each power of two of ns, so that memory does not grow with
//! the run: a quantile is the middle of its bucket, within 0.4 % of the true one. The maximum is
//! exact. An activation that the run's end cuts off is counted for itself: how long it would have taken
//! is not known.

use risetime_model::workload::Policy;
use std::collections::BTreeMap;

/// Buckets of one power of two, as a power of two.
const BITS: u32 = 7;

/// How long the activations of some tasks took.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// The name that these tasks share.
    pub tasks: String,
    /// The policy that one of them took last; `None`: SCHED_OTHER all the time.
    pub policy: Option<Policy>,
    /// How many there were.
    pub activations: u64,
    /// Half of them took at most so long; and so on.
    pub p50_ms: f64,
    /// 90 %.
    pub p90_ms: f64,
    /// 99 %.
    pub p99_ms: f64,
    /// 99.9 %.
    pub p99_9_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// How many the run's end cut off; they are in none of the other figures.
    pub unfinished: u64,
    /// How long the longest of those had taken by then; 0 if there is none.
    pub unfinished_ms: f64,
}

/// The groups of a run.
#[derive(Default)]
pub(crate) struct Groups {
    names: BTreeMap<String, usize>,
    groups: Vec<(String, Histogram)>,
    policies: BTreeMap<usize, Policy>,
}

/// Times in buckets.
#[derive(Default)]
pub(crate) struct Histogram {
    /// From the bucket of this number on: most activations are of like length.
    first: usize,
    counts: Vec<u64>,
    total: u64,
    max: u64,
    /// Activations that the run's end cut off, and the longest of them.
    cut_off: (u64, u64),
}

impl Groups {
    /// The group of a task of this name.
    pub(crate) fn of(&mut self, comm: &str) -> usize {
        let name = group_name(comm);
        if let Some(group) = self.names.get(name) {
            return *group;
        }
        self.names.insert(name.to_string(), self.groups.len());
        self.groups.push((name.to_string(), Histogram::default()));
        self.groups.len() - 1
    }

    /// A task of this group is under `policy` from now on.
    pub(crate) fn policy(&mut self, group: usize, policy: Policy) {
        self.policies.insert(group, policy);
    }

    /// An activation of this group took `ns`.
    pub(crate) fn took(&mut self, group: usize, ns: u64) {
        if let Some((_, histogram)) = self.groups.get_mut(group) {
            histogram.add(ns);
        }
    }

    /// The run's end cuts off an activation of this group, after `ns`.
    pub(crate) fn cut_off(&mut self, group: usize, ns: u64) {
        if let Some((_, Histogram { cut_off: (n, longest), .. })) = self.groups.get_mut(group) {
            (*n, *longest) = (*n + 1, ns.max(*longest));
        }
    }

    /// What came of it, in the order in which groups were first seen; those without an activation
    /// are left out.
    pub(crate) fn finish(self) -> Vec<Latency> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let policies = self.policies;
        let groups = self.groups.into_iter().enumerate().filter(|(_, (_, h))| h.total > 0);
        groups
            .map(|(i, (tasks, h))| (i, tasks, h.quantiles([500, 900, 990, 999]), h))
            .map(|(i, tasks, [p50, p90, p99, p99_9], h)| Latency {
                tasks,
                policy: policies.get(&i).copied(),
                activations: h.total,
                p50_ms: ms(p50),
                p90_ms: ms(p90),
                p99_ms: ms(p99),
                p99_9_ms: ms(p99_9),
                max_ms: ms(h.max),
                unfinished: h.cut_off.0,
                unfinished_ms: ms(h.cut_off.1),
            })
            .collect()
    }
}

/// The name that a task shares with its like: of `worker-3` it is `worker`.
pub(crate) fn group_name(comm: &str) -> &str {
    comm.rsplit_once('-').map_or(comm, |(name, number)| {
        let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if numbered { name } else { comm }
    })
}

impl Histogram {
    /// How many there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// One more.
    pub(crate) fn add(&mut self, ns: u64) {
        let bucket = bucket(ns);
        if self.total == 0 {
            self.first = bucket;
        } else if bucket < self.first {
            let more = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let at = bucket - self.first;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        self.total += 1;
        self.max = self.max.max(ns);
    }

    /// The time of this rank, from 1: so many took at most that.
    pub(crate) fn ranked(&self, rank: u64) -> u64 {
        let mut below = 0;
        let found = self.counts.iter().zip(self.first..).find(|(count, _)| {
            below += **count;
            below >= rank
        });
        found.map_or(self.max, |(_, bucket)| middle(bucket).min(self.max))
    }

    /// The times that so many of a thousand took at most; `permille` ascends.
    pub(crate) fn quantiles<const N: usize>(&self, permille: [u64; N]) -> [u64; N] {
        let mut counts = self.counts.iter().zip(self.first..);
        let (mut below, mut last) = (0, self.first);
        permille.map(|permille| {
            let rank = (u128::from(self.total) * u128::from(permille)).div_ceil(1000).max(1) as u64;
            while below < rank {
                let Some((count, bucket)) = counts.next() else { return self.max };
                (below, last) = (below + count, bucket);
            }
            middle(last).min(self.max)
        })
    }
}

/// The bucket of a time: exact below 128 ns.
fn bucket(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    ((u64::from(shift) << BITS) + (ns >> shift)) as usize
}

/// The middle of a bucket.
fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket >> BITS).saturating_sub(1);
    let low = (bucket - (shift << BITS)) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    #[test]
    fn instances_and_forks_of_a_task_are_one_group() {
        let mut groups = Groups::default();
        let of: Vec<usize> = ["w-0", "w-1", "w-0003", "w", "w-x", "w-", "net-rx", "net-rx-2"]
            .iter()
            .map(|n| groups.of(n))
            .collect();
        assert_eq!(of, [0, 0, 0, 0, 1, 2, 3, 3]);
        assert_eq!(groups.finish(), [], "nothing took any time");
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn a_bucket_holds_what_is_near_its_middle(ns in 0..u64::MAX >> 2) {
            let m = middle(bucket(ns));
            prop_assert!(m.abs_diff(ns) <= ns / 256 + 1, "{ns}: {m}");
            prop_assert!(bucket(ns) <= bucket(ns + 1));
        }

        #[test]
        fn quantiles_are_those_of_the_sorted_list(
            mut times in proptest::collection::vec(0..10_000_000_000u64, 1..400),
        ) {
            let mut h = Histogram::default();
            times.iter().for_each(|t| h.add(*t));
            times.sort_unstable();
            let all = [500, 900, 990, 999];
            for (permille, got) in all.into_iter().zip(h.quantiles(all)) {
                let rank = (times.len() * permille as usize).div_ceil(1000);
                let want = times[rank - 1];
                prop_assert!(got.abs_diff(want) <= want / 256 + 1, "{permille}: {got} {want}");
            }
            prop_assert_eq!(h.max, times[times.len() - 1]);
        }
    }
}
