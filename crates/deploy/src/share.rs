//! Parts of a CPU, added up exactly as long as that is possible, and rounded up from then on.

use std::cmp::Ordering;

/// A part of a CPU, or more than one: `num / den`.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    num: u128,
    den: u128,
}

/// The largest denominator of an exact sum: its square fits.
const LARGEST: u128 = 1 << 63;
/// The denominator of a sum that is rounded up. Each addend adds less than 2⁻⁶² to what is exact.
const ROUNDED: u128 = 1 << 62;

impl Share {
    /// Share of nothing.
    pub const NONE: Share = Share { num: 0, den: 1 };

    /// `runtime / period`; of a period of 0: no share.
    pub fn of(runtime: u64, period: u64) -> Share {
        match period {
            0 => Share::NONE,
            _ => Share { num: runtime.into(), den: period.into() }.reduced(),
        }
    }

    /// The share of so many whole CPUs.
    pub fn whole(cpus: u64) -> Share {
        Share { num: cpus.into(), den: 1 }
    }

    fn reduced(self) -> Share {
        let by = gcd(self.num, self.den).max(1);
        Share { num: self.num / by, den: self.den / by }
    }

    fn rounded_up(self) -> Share {
        let whole = self.num / self.den;
        let part = ((self.num % self.den) << 62).div_ceil(self.den);
        Share { num: whole * ROUNDED + part, den: ROUNDED }
    }

    /// The sum of two shares. Rounding: up, where the exact sum has too large a denominator.
    pub fn plus(self, other: Share) -> Share {
        let den = self.den / gcd(self.den, other.den) * other.den;
        if den <= LARGEST {
            let num = self.num * (den / self.den) + other.num * (den / other.den);
            return Share { num, den }.reduced();
        }
        let (a, b) = (self.rounded_up(), other.rounded_up());
        Share { num: a.num + b.num, den: ROUNDED }
    }

    /// The sum of all shares.
    pub fn sum(all: impl IntoIterator<Item = Share>) -> Share {
        all.into_iter().fold(Share::NONE, Share::plus)
    }

    /// The share in millionths of a CPU. Rounding: up.
    pub fn per_million(self) -> u64 {
        let whole = self.num / self.den * 1_000_000;
        let part = (self.num % self.den * 1_000_000).div_ceil(self.den);
        (whole + part).try_into().unwrap_or(u64::MAX)
    }

    /// The share as a number, for a reader and for bounds that are no fractions.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Share) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Share {}
impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Share) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Share {
    fn cmp(&self, other: &Share) -> Ordering {
        // Denominators are at most 2⁶⁴, parts below 1 below that: products fit.
        let whole = (self.num / self.den).cmp(&(other.num / other.den));
        let part = |a: &Share, b: &Share| (a.num % a.den).checked_mul(b.den);
        whole.then_with(|| match (part(self, other), part(other, self)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.rounded_up().num.cmp(&other.rounded_up().num),
        })
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    #[test]
    fn thirds_make_a_whole_and_a_ns_more_does_not() {
        let third = Share::of(10, 30);
        assert_eq!(Share::sum([third; 3]), Share::whole(1));
        assert!(
            Share::sum([third, third, Share::of(1_000_000_001, 3_000_000_000)]) > Share::whole(1)
        );
        assert!(Share::of(3, 0) == Share::NONE);
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        /// Periods with nothing in common: what is rounded is rounded up, and hardly.
        #[test]
        fn a_sum_is_never_too_small(all in prop::collection::vec((1u64..1 << 40, 1u64..1 << 40), 1..60)) {
            let sum = Share::sum(all.iter().map(|(r, p)| Share::of(*r, *p)));
            let near: f64 = all.iter().map(|(r, p)| *r as f64 / *p as f64).sum();
            prop_assert!((sum.as_f64() / near - 1.0).abs() < 1e-12, "{} {near}", sum.as_f64());
            let more = sum.plus(Share::of(1, 1 << 40));
            prop_assert!(more > sum);
        }
    }
}
