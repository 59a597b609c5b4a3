//! Distributions of times of jobs, or of their energies.

use crate::histogram::{Histogram, Percentiles};

/// Times that may be negative, in ns.
#[derive(Default)]
pub(super) struct Signed {
    pub(super) above: Histogram,
    below: Histogram,
    sum: i128,
    min: i64,
    max: i64,
}

impl Signed {
    pub(super) fn add(&mut self, ns: i64) {
        let first = self.above.total() + self.below.total() == 0;
        (self.min, self.max) = if first { (ns, ns) } else { (self.min.min(ns), self.max.max(ns)) };
        self.sum += i128::from(ns);
        let of = if ns < 0 { &mut self.below } else { &mut self.above };
        of.add(ns.unsigned_abs());
    }

    /// The time that so many of a thousand take at most.
    pub(super) fn quantile(&self, permille: u64) -> i64 {
        let (below, above) = (self.below.total(), self.above.total());
        let all = u128::from(below + above);
        let rank = (all * u128::from(permille)).div_ceil(1000).max(1) as u64;
        let found = if rank <= below {
            // The rank-th smallest is the one of that rank from the end, by size.
            -(self.below.ranked(below - rank + 1) as i64)
        } else {
            self.above.ranked(rank - below) as i64
        };
        found.clamp(self.min, self.max)
    }

    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let n = self.above.total() + self.below.total();
        if n == 0 {
            return None;
        }
        let ms = |ns: i64| ns as f64 / 1e6;
        let at = |permille| ms(self.quantile(permille));
        Some(Percentiles {
            p50: at(500),
            p90: at(900),
            p95: at(950),
            p99: at(990),
            p99_9: at(999),
            max: ms(self.max),
            min: ms(self.min),
            mean: self.sum as f64 / n as f64 / 1e6,
        })
    }
}
