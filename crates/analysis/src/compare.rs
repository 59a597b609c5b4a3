//! Figures over many start states: medians, their intervals, and differences of pairs.
//!
//! ```text
//! start state   where the workload starts in tick and PELT period, with which util, from which seed
//! estimate      median of n values, between the order statistics x(k) and x(n + 1 − k)
//!               with the largest k for which  2 · P(B < k) ≤ α,  B ~ Binomial(n, 1/2)
//! difference    the same of the n differences at the same start state
//! α             5 % of a median by itself; of differences 5 % of all m on a page together, 5 % / m each (Bonferroni)
//! sure          the interval lies on one side of 0: a sign test at α
//! ```
//!
//! Such an interval needs no assumption about how the values are distributed. It takes so many pairs that 2^(1 − n) ≤ α; below
//! that it is the least and the largest difference, and nothing is sure. Exchanged sides give the same with the other sign,
//! exactly; equal sides give 0.
//!
//! Of what the end of the run cuts off only a lower bound is known: such a pair gives a difference only if both are bounds.

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Number of values.
    pub n: u32,
    /// The median; the mean of the two middle values where n is even.
    pub median: f64,
    /// The interval of 95 %; `None` below 6 values.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// The median and interval of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let x = sorted(values);
        let rank = rank(x.len() as u32, ALPHA) as usize;
        Some(Estimate {
            n: x.len() as u32,
            median: median(&x)?,
            interval: (rank > 0).then(|| (x[rank - 1], x[x.len() - rank])),
        })
    }

    /// Whether the interval lies on one side of 0.
    pub fn differs(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Probability at most that something is called sure that is not.
const ALPHA: f64 = 0.05;

fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut x: Vec<f64> = values.into_iter().collect();
    x.sort_by(f64::total_cmp);
    x
}

fn median(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let middle = (*sorted.get(n.checked_sub(1)? / 2)?, sorted[n / 2]);
    Some((middle.0 + middle.1) / 2.0)
}

/// The largest k with 2 · P(B < k) ≤ `alpha`, B ~ Binomial(n, 1/2); 0 if there is none.
fn rank(n: u32, alpha: f64) -> u32 {
    // In logarithms: 2^-n is no number for large n.
    let (mut log, mut below, mut k) = (-f64::from(n) * std::f64::consts::LN_2, 0.0, 0);
    loop {
        below += log.exp();
        if 2.0 * below > alpha || k >= n {
            return k;
        }
        log += (f64::from(n - k) / f64::from(k + 1)).ln();
        k += 1;
    }
}

/// Number of differences that are told together, and hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Family(pub usize);

impl Family {
    /// A difference that is told by itself.
    pub const ONE: Family = Family(1);

    fn alpha(self) -> f64 {
        ALPHA / self.0.max(1) as f64
    }

    /// The number of pairs from which on one difference of the family can be sure.
    pub fn pairs(self) -> u32 {
        (1..=u32::MAX).find(|n| rank(*n, self.alpha()) > 0).unwrap_or(u32::MAX)
    }
}

/// Figures are told to a thousandth (µs, µJ): less than half of that is none, but the order in which numbers were added up.
const UNTOLD: f64 = 0.0005;

/// Difference of one side to another, at the same start states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Number of pairs.
    pub n: u32,
    /// The median of their differences.
    pub median: f64,
    /// The interval; where there are too few pairs for one, the least and the largest difference.
    pub interval: (f64, f64),
    /// Whether it is an interval that holds together with all others of its family.
    pub holds: bool,
    /// Pairs that cannot be compared: of one of them only a lower bound is known, or nothing.
    pub left_out: u32,
}

impl Difference {
    /// The difference that these differences of pairs make; `None`: there are none.
    pub fn of(
        differences: impl IntoIterator<Item = f64>,
        left_out: u32,
        family: Family,
    ) -> Option<Difference> {
        let told = |d: f64| if d.abs() < UNTOLD { 0.0 } else { d };
        let x = sorted(differences.into_iter().map(told));
        let rank = rank(x.len() as u32, family.alpha()) as usize;
        Some(Difference {
            n: x.len() as u32,
            median: median(&x)?,
            interval: (x[rank.max(1) - 1], x[x.len() - rank.max(1)]),
            holds: rank > 0,
            left_out,
        })
    }

    /// Whether there surely is one.
    pub fn is_sure(&self) -> bool {
        self.holds && (self.interval.0 > 0.0 || self.interval.1 < 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    /// Ranks from tables of the sign test, two-sided at 5 %.
    #[test]
    fn ranks_are_those_of_the_sign_test() {
        let rank = |n| rank(n, ALPHA);
        for (n, k) in [(0, 0), (1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (16, 4), (20, 6)] {
            assert_eq!(rank(n), k, "n = {n}");
        }
        for (n, k) in [(25, 8), (50, 18), (64, 24), (100, 40)] {
            assert_eq!(rank(n), k, "n = {n}");
        }
        // About n/2 − 0.98 √n, and no underflow on the way.
        let (n, wanted) = (4096, 2048.0 - 0.98 * 64.0);
        assert!((f64::from(rank(n)) - wanted).abs() < 2.0, "{}", rank(n));
    }

    #[test]
    fn the_median_lies_between_order_statistics() {
        let e = Estimate::of((1..=16).map(f64::from)).unwrap();
        assert_eq!((e.n, e.median, e.interval), (16, 8.5, Some((4.0, 13.0))));
        assert!(e.differs());
        let e = Estimate::of([3.0, -1.0, 2.0]).unwrap();
        assert_eq!((e.median, e.interval, e.differs()), (2.0, None, false));
        assert_eq!(Estimate::of([]), None);
    }

    #[test]
    fn the_more_is_told_together_the_more_pairs_it_takes() {
        let of = |n: u32, m: usize| {
            Difference::of((1..=n).map(f64::from), 0, Family(m)).unwrap().is_sure()
        };
        for (m, pairs) in [(1, 6), (2, 7), (3, 7), (6, 8), (7, 9), (12, 9), (100, 12)] {
            assert_eq!(Family(m).pairs(), pairs, "{m}");
            assert_eq!((of(pairs - 1, m), of(pairs, m)), (false, true), "{m}");
        }
        let dust = Difference::of([1e-12; 20], 0, Family::ONE).unwrap();
        assert!(dust.median == 0.0 && !dust.is_sure(), "{dust:?}");
        let few = Difference::of([1.0, 2.0, 4.0], 2, Family::ONE).unwrap();
        assert_eq!((few.interval, few.holds, few.left_out), ((1.0, 4.0), false, 2));
        assert_eq!(Difference::of([], 3, Family::ONE), None);
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn an_interval_holds_its_median(x in prop::collection::vec(-1e6..1e6_f64, 6..200)) {
            let e = Estimate::of(x.iter().copied()).unwrap();
            let (low, high) = e.interval.unwrap();
            prop_assert!(low <= e.median && e.median <= high);
            // Shifting the values shifts the estimate: a difference of pairs is a pair of differences.
            let shifted = Estimate::of(x.iter().map(|v| v + 1.0)).unwrap();
            prop_assert!((shifted.median - e.median - 1.0).abs() < 1e-6);
        }

        #[test]
        fn exchanged_sides_differ_by_the_opposite(
            x in prop::collection::vec((-1e6..1e6_f64, -1e6..1e6_f64), 1..64),
            m in 1..40usize,
        ) {
            let of = |turn: bool| {
                let pairs = x.iter().map(|(a, b)| if turn { b - a } else { a - b });
                Difference::of(pairs, 0, Family(m)).unwrap()
            };
            let (there, back) = (of(false), of(true));
            let (low, high) = back.interval;
            prop_assert_eq!((there.median, there.interval), (-back.median, (-high, -low)));
            prop_assert_eq!(there.is_sure(), back.is_sure());
            let same = Difference::of(x.iter().map(|(a, _)| a - a), 0, Family(m)).unwrap();
            prop_assert!(same.median == 0.0 && same.interval == (0.0, 0.0) && !same.is_sure());
        }
    }
}
