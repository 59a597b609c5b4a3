//! Periods that are found in the times at which a task wakes.
//!
//! ```text
//! begins      b₀ < b₁ < b₂ …        wakeups after a sleep
//! a job       k activations in a row: from bᵢ on, to the sleep that ends the last of them
//! period      median of b₍ᵢ₊ₖ₎ − bᵢ, for the least k of 1 to 4 of which enough lie near it
//! near        within 3 % and no less than 0.1 ms; a distance of two or three periods is that of jobs left out
//! how sure    share of all distances that are near 1, 2 or 3 periods
//! ```
//!
//! No period is shorter than 1 ms or seen fewer than 8 times; a share below 70 % is none.

use crate::histogram::{Histogram, Percentiles};

/// Activations of a job, at most.
const MOST: usize = 4;
/// Distances that are seen, at least.
const LEAST: usize = 8;
/// Share that is near, in percent: below it there is no period; from the other one on it is sure.
const LIKELY: usize = 70;
/// Share, in percent, from which on a period is sure.
pub const SURE: f64 = 90.0;
/// The shortest period, in ns.
const SHORTEST: u64 = 1_000_000;

/// Source of a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The wakeups' own distances.
    Found,
    /// The person who asks.
    Given,
}

/// Jobs that a task does again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Jobs {
    /// Source of the period.
    pub whose: Whose,
    /// The period, in ms.
    pub period_ms: f64,
    /// Activations of a job.
    pub activations: usize,
    /// Share of distances between jobs that are near 1, 2 or 3 periods, in percent.
    pub near: f64,
    /// Number of jobs.
    pub n: u64,
    /// Number of jobs that were done after a whole period.
    pub late: u64,
    /// Times from a job's first wakeup to the end of its last activation; `None`: there was no job.
    pub took: Option<Percentiles>,
}

/// The period of activations, which are given with begin and end in ns; `None`: they have none.
pub(super) fn found(all: &[(u64, u64)]) -> Option<Jobs> {
    (1..=MOST).find_map(|k| {
        let mut distances: Vec<u64> = all.windows(k + 1).map(|w| w[k].0 - w[0].0).collect();
        if distances.len() < LEAST {
            return None;
        }
        let middle = distances.len() / 2;
        let (_, median, _) = distances.select_nth_unstable(middle);
        let period = *median;
        let near = near(&distances, period);
        let enough = period >= SHORTEST && near * 100 >= LIKELY * distances.len();
        enough.then(|| jobs(all, Whose::Found, period, k, share(near, distances.len())))
    })
}

/// The jobs of activations whose period a person says, in ns.
pub(super) fn given(all: &[(u64, u64)], period: u64) -> Jobs {
    let distances: Vec<u64> = all.windows(2).map(|w| w[1].0 - w[0].0).collect();
    let near = near(&distances, period);
    jobs(all, Whose::Given, period, 1, share(near, distances.len()))
}

fn share(near: usize, all: usize) -> f64 {
    if all > 0 { 100.0 * near as f64 / all as f64 } else { 0.0 }
}

/// The number of the distances that are near a period, or two, or three.
fn near(distances: &[u64], period: u64) -> usize {
    let within = (period / 32).max(100_000);
    let is_near = |ns: &&u64| (1..=3).any(|n| ns.abs_diff(n * period) <= within * n);
    distances.iter().filter(is_near).count()
}

fn jobs(all: &[(u64, u64)], whose: Whose, period: u64, k: usize, near: f64) -> Jobs {
    let (mut took, mut late) = (Histogram::default(), 0);
    // A job that the trace's end cuts is none.
    for job in first_of_each(all, period, k).windows(2) {
        let (first, next) = (job[0], job[1]);
        let last = all[first..next].iter().map(|(_, to)| *to).max().unwrap_or(0);
        let ns = last.saturating_sub(all[first].0);
        took.add(ns);
        late += u64::from(ns > period);
    }
    Jobs {
        whose,
        period_ms: period as f64 / 1e6,
        activations: k,
        near,
        n: took.total(),
        late,
        took: took.percentiles(),
    }
}

/// Places of the activations with which jobs begin: each the first that comes half a period or more after the last begin.
fn first_of_each(all: &[(u64, u64)], period: u64, k: usize) -> Vec<usize> {
    if k == 1 {
        return (0..all.len()).collect();
    }
    let mut firsts: Vec<usize> = Vec::new();
    for (place, (from, _)) in all.iter().enumerate() {
        // The longest rest of a period is the one between two jobs.
        let due = firsts.last().is_none_or(|last| from - all[*last].0 >= period - period / 8);
        if due {
            firsts.push(place);
        }
    }
    firsts
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_frame_every_16_6_ms_is_found_with_its_late_ones() {
        let frame = |n: u64| {
            let from = 16_600_000 * n + (n % 3) * 50_000;
            let took = if n % 10 == 9 { 18 * MS } else { 5 * MS };
            (from, from + took)
        };
        // A frame that is late is left out where the next one begins.
        let all: Vec<_> = (0..101).filter(|n| n % 10 != 0).map(frame).collect();
        let jobs = found(&all).expect("a period");
        assert!((jobs.period_ms - 16.6).abs() < 0.1, "{jobs:?}");
        assert_eq!((jobs.activations, jobs.late, jobs.n), (1, 9, 89), "{jobs:?}");
        assert!(jobs.near >= SURE, "{jobs:?}");
    }

    #[test]
    fn two_wakeups_a_frame_are_one_job() {
        let of = |n: u64| {
            [(10 * MS * n, 10 * MS * n + MS), (10 * MS * n + 3 * MS, 10 * MS * n + 6 * MS)]
        };
        let all: Vec<_> = (0..50).flat_map(of).collect();
        let jobs = found(&all).expect("a period");
        assert_eq!((jobs.period_ms, jobs.activations, jobs.n), (10.0, 2, 49));
        assert!(jobs.took.is_some_and(|took| took.max == 6.0), "{jobs:?}");
    }

    #[test]
    fn wakeups_at_any_time_have_no_period() {
        let mut at = 0;
        let mut x = 9u64;
        let next = |_| {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            at += MS + (x >> 33) % (40 * MS);
            (at, at + MS / 2)
        };
        let all: Vec<_> = (0..400).map(next).collect();
        assert_eq!(found(&all), None);
        assert_eq!(found(&all[..5]), None, "too few to tell");
    }
}
