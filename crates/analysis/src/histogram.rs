//! Times of which only the distribution is kept.
//!
//! Times are counted in buckets, 128 to each power of two of ns (an *octave*), so that memory does not
//! grow with the run: a quantile is the middle of its bucket, within 0.4 % of the true one. Minimum,
//! maximum and sum are exact.

/// Buckets of an octave, as a power of two.
const BITS: u32 = 7;
/// Number of buckets of an octave.
const ROOM: usize = 1 << BITS;

/// Steps of a distribution, without those of its upper tail.
const STEPS: u64 = 100;

/// Percentiles of a time in ms, or an energy in mJ.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Percentiles {
    /// Half of them are at most that.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 95 %.
    pub p95: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p99_9: f64,
    /// The largest.
    pub max: f64,
    /// The smallest.
    pub min: f64,
    /// Mean: the sum divided by the number.
    pub mean: f64,
}

impl Percentiles {
    /// Lists each figure with its name in CSV and `--expect`.
    pub fn named(&self) -> [(&'static str, f64); 8] {
        [
            ("min", self.min),
            ("mean", self.mean),
            ("p50", self.p50),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99_9", self.p99_9),
            ("max", self.max),
        ]
    }
}

/// Times in buckets.
#[derive(Clone, Default)]
pub(crate) struct Histogram {
    /// Octaves by number, from that of 0 ns.
    octaves: Vec<Octave>,
    total: u64,
    /// Sum of all times, exactly.
    sum: u128,
    min: u64,
    max: u64,
}

/// Counts of one octave's buckets; without a time there are none.
#[derive(Clone, Default)]
struct Octave {
    total: u64,
    counts: Option<Box<[u64; ROOM]>>,
}

impl Histogram {
    /// The number of times counted.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The longest time, in ns; 0 if there is none.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Counts one more time.
    pub(crate) fn add(&mut self, ns: u64) {
        let bucket = bucket(ns);
        let (total, counts) = self.octave(bucket / ROOM);
        *total += 1;
        counts[bucket % ROOM] += 1;
        self.min = if self.total == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.sum += u128::from(ns);
        self.total += 1;
    }

    /// The number of times and the counts of the octave of this number, made if they are not there.
    #[inline]
    fn octave(&mut self, number: usize) -> (&mut u64, &mut [u64; ROOM]) {
        if number >= self.octaves.len() {
            self.octaves.resize(number + 1, Octave::default());
        }
        let Octave { total, counts } = &mut self.octaves[number];
        (total, counts.get_or_insert_with(|| Box::new([0; ROOM])))
    }

    /// Iterates over the octaves with times: each one's first bucket, number of times, and counts.
    fn octaves(&self) -> impl Iterator<Item = (usize, u64, &[u64; ROOM])> {
        let all = self.octaves.iter().enumerate();
        all.filter_map(|(number, o)| Some((number * ROOM, o.total, o.counts.as_deref()?)))
    }

    /// Adds all counts of another histogram.
    pub(crate) fn join(&mut self, other: &Histogram) {
        if other.total == 0 {
            return;
        }
        for (first, times, more) in other.octaves() {
            let (total, own) = self.octave(first / ROOM);
            *total += times;
            own.iter_mut().zip(more).for_each(|(own, more)| *own += more);
        }
        self.min = if self.total == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.total += other.total;
    }

    /// Percentiles of the times, in ms; `None`: there are no times.
    pub(crate) fn percentiles(&self) -> Option<Percentiles> {
        let ms = |ns: u64| ns as f64 / 1e6;
        let [p50, p90, p95, p99, p99_9] = self.quantiles([500, 900, 950, 990, 999]);
        (self.total > 0).then(|| Percentiles {
            p50: ms(p50),
            p90: ms(p90),
            p95: ms(p95),
            p99: ms(p99),
            p99_9: ms(p99_9),
            max: ms(self.max),
            min: ms(self.min),
            mean: self.sum as f64 / self.total as f64 / 1e6,
        })
    }

    /// The time of this rank, from 1: so many took at most that.
    pub(crate) fn ranked(&self, rank: u64) -> u64 {
        let mut below = 0;
        for (first, total, counts) in self.octaves() {
            if below + total < rank {
                below += total;
                continue;
            }
            for (count, bucket) in counts.iter().zip(first..) {
                below += count;
                if below >= rank {
                    return middle(bucket).min(self.max);
                }
            }
        }
        self.max
    }

    /// (ms, share that took at most so long) where a share of 1/[`STEPS`] more did, or a tenth of those that took longer;
    /// ends with the longest.
    pub(crate) fn steps(&self) -> Vec<(f64, f64)> {
        let all = self.total as f64;
        let (mut below, mut told) = (0, 0);
        let mut steps = Vec::new();
        let buckets = self.octaves().flat_map(|(first, _, counts)| counts.iter().zip(first..));
        for (count, bucket) in buckets.filter(|(n, _)| **n > 0) {
            below += count;
            let (more, longer) = (below - told, self.total - told);
            if below == self.total || more * STEPS >= self.total || more * 10 >= longer {
                steps.push((
                    middle(bucket).clamp(self.min, self.max) as f64 / 1e6,
                    below as f64 / all,
                ));
                told = below;
            }
        }
        steps
    }

    /// The times that so many of a thousand took at most.
    pub(crate) fn quantiles<const N: usize>(&self, permille: [u64; N]) -> [u64; N] {
        let rank = |of: u64| (u128::from(self.total) * u128::from(of)).div_ceil(1000).max(1) as u64;
        permille.map(|of| self.ranked(rank(of)))
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

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn a_distribution_is_short_and_passes_near_every_time(
            times in proptest::collection::vec(1..10_000_000_000u64, 1..4000),
        ) {
            let mut h = Histogram::default();
            times.iter().for_each(|t| h.add(*t));
            let steps = h.steps();
            prop_assert!(steps.len() <= 200, "{}", steps.len());
            prop_assert!(steps.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1));
            prop_assert_eq!(steps.last().map(|s| s.1), Some(1.0));
            for (ms, share) in steps {
                let most = times.iter().filter(|t| **t as f64 <= ms * 1e6 * 1.01 + 1.0).count();
                prop_assert!(most as f64 >= share * times.len() as f64 - 1e-6, "{ms}: {share}");
            }
        }

        #[test]
        fn joined_times_are_as_if_counted_together(
            parts in proptest::collection::vec(proptest::collection::vec(0..10_000_000_000u64, 0..50), 1..5),
        ) {
            let (mut joined, mut all) = (Histogram::default(), Histogram::default());
            for part in &parts {
                let mut own = Histogram::default();
                part.iter().for_each(|ns| own.add(*ns));
                part.iter().for_each(|ns| all.add(*ns));
                joined.join(&own);
            }
            prop_assert_eq!(joined.percentiles(), all.percentiles());
        }

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
