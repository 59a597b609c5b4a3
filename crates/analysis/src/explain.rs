//! Shares out what one burst lost (its debt) among its causes.
//!
//! ```text
//! debt(S)  = what the same burst loses in a run without the causes in S
//! debt     = debt(∅)
//! share(c) = Σ over S without c of  |S|!·(n − |S| − 1)!/n! · (debt(S) − debt(S + c))
//! affinity + unexplained = debt(all)   debt = Σ share(c) + affinity + unexplained
//! gain(c)  = debt(∅) − debt({c})       what its absence alone saves
//! alone(c) = debt(all but c)           what is lost if it alone is left
//! ```
//!
//! The shares are Shapley values: what the debt falls by when a cause goes, averaged over all
//! orders in which the causes can go. In one fixed order, which of two causes that act only
//! together (a ramp, and a margin that waits for it) got everything would be up to the order.
//! A cause that never makes a difference gets exactly 0; one that saves time is below 0.
//!
//! Each debt counts until full speed in its own run, and full speed is the real run's s_max in all
//! of them, so that also without clamps the same way is measured.
//!
//! Of many activations or jobs, debt(S) is the mean time that the same ones take without the causes in S; what no cause
//! explains is then their work at full speed, too.
//!
//! n causes have 2ⁿ subsets. Where so many runs are too many, the sum is taken over m orders drawn by the seed, each with its
//! reverse: a share is the mean of the pairs' means, and its standard error theirs divided by √m.
//! gain and alone need 2n + 2 runs and are exact.

use crate::result::Burst;
use risetime_kernel::units::Span;
use std::collections::BTreeSet;

/// One burst, explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Policy name.
    pub policy: String,
    /// Platform name.
    pub platform: String,
    /// Workload name.
    pub workload: String,
    /// Every resolved setting.
    pub settings: risetime_model::Settings,
    /// Start phase.
    pub phase: Span,
    /// Seed.
    pub seed: u64,
    /// The task.
    pub comm: String,
    /// The time that is explained.
    pub about: About,
    /// The causes, in their order.
    pub causes: Vec<CauseShare>,
    /// Time lost to the task's affinity although every cause is gone, in ms. Of activations and
    /// jobs: 0.
    pub affinity_ms: f64,
    /// Debt that is left although every cause is gone, in ms.
    pub unexplained_ms: f64,
    /// Number of simulations that this took.
    pub runs: u32,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Cautions about these figures.
    pub cautions: Vec<crate::caution::Caution>,
}

/// The time that an explanation shares out.
#[derive(Clone, Debug, PartialEq)]
pub enum About {
    /// Loss of a burst.
    Burst(Burst),
    /// The time that activations or jobs took.
    Pieces {
        /// Jobs of this name; `None`: activations.
        job: Option<String>,
        /// Choice among them.
        over: Over,
        /// Number of chosen pieces.
        chosen: u32,
        /// Number of all pieces.
        of: u32,
        /// Mean time of the chosen pieces, in ms.
        ms: f64,
    },
}

impl About {
    /// The time that is shared out, in ms.
    pub fn ms(&self) -> f64 {
        match self {
            About::Burst(burst) => burst.debt_ms,
            About::Pieces { ms, .. } => *ms,
        }
    }
}

/// Choice of activations or jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Over {
    /// All of them.
    All,
    /// The longest, this share of them (0 to 1), one at least.
    Worst(f64),
    /// A single one by its number, from 0.
    One(u64),
}

/// A cause and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseShare {
    /// Name of the cause.
    pub cause: &'static str,
    /// Name that a person uses.
    pub label: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// False: it cannot act in this experiment, and was not looked at.
    pub acts: bool,
    /// Share of the debt, in ms.
    pub ms: f64,
    /// The share's standard error; `None`: it is exact.
    pub error_ms: Option<f64>,
    /// Debt that the absence of the cause alone would save, in ms.
    pub gain_ms: f64,
    /// Debt that there would be if it were the only cause, in ms.
    pub alone_ms: f64,
}

/// Subsets of `n` causes that are to be looked at, by their bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Subsets {
    n: u32,
    sets: Vec<usize>,
    /// The orders in which causes go, where not all subsets are looked at.
    orders: Vec<Vec<u32>>,
}

impl Subsets {
    /// The subsets of `n` causes to look at: all, or if these are more than `most`, those of orders
    /// drawn by the seed: as many orders as there is room for, two and their reverses at least,
    /// since the error of a single pair is not known.
    pub fn new(n: u32, most: usize, seed: u64) -> Subsets {
        let all = 1 << n;
        if all <= most.max(2) || n < 3 {
            return Subsets { n, sets: (0..all).collect(), orders: Vec::new() };
        }
        let ends = (0..n).flat_map(|bit| [1 << bit, (all - 1) & !(1 << bit)]);
        let mut sets: BTreeSet<usize> = ends.chain([0, all - 1]).collect();
        let mut orders: Vec<Vec<u32>> = Vec::new();
        let mut draw = Draw(seed);
        // A pair of orders takes at most 2 · (n − 3) more; of small n all are drawn before the room is used up.
        const PAIRS: usize = 4096;
        while orders.len() < 2 * PAIRS {
            let order = draw.order(n);
            let back: Vec<u32> = order.iter().rev().copied().collect();
            let more: BTreeSet<usize> =
                [&order, &back].into_iter().flat_map(|o| prefixes(o)).collect();
            if orders.len() >= 4 && sets.union(&more).count() > most {
                break;
            }
            sets.extend(more);
            orders.extend([order, back]);
        }
        Subsets { n, sets: sets.into_iter().collect(), orders }
    }

    /// The subsets, in the order in which [`Debts`] wants what was found.
    pub fn sets(&self) -> &[usize] {
        &self.sets
    }
}

/// The subsets through which an order goes, the first and the last left out.
fn prefixes(order: &[u32]) -> impl Iterator<Item = usize> {
    let mut set = 0;
    order[..order.len() - 1].iter().map(move |bit| {
        set |= 1 << bit;
        set
    })
}

/// splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Draws an order of `n` causes (Fisher and Yates).
    fn order(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, (self.next() % (i as u64 + 1)) as usize);
        }
        order
    }
}

/// The debts without the causes of each of these subsets.
#[derive(Clone, Debug, PartialEq)]
pub struct Debts {
    of: Subsets,
    ms: Vec<f64>,
}

impl Debts {
    /// `ms`: one a subset, in their order. `None`: there are not as many.
    pub fn new(of: Subsets, ms: Vec<f64>) -> Option<Debts> {
        (of.sets.len() == ms.len()).then_some(Debts { of, ms })
    }

    /// The debt without the causes of a set that was looked at.
    fn without(&self, set: usize) -> f64 {
        self.of.sets.binary_search(&set).map_or(f64::NAN, |i| self.ms[i])
    }

    fn all(&self) -> usize {
        (1 << self.of.n) - 1
    }

    /// The share of the cause of this bit, and its standard error; `None`: it is exact.
    pub fn share(&self, bit: u32) -> (f64, Option<f64>) {
        if self.of.orders.is_empty() {
            return (self.exact(bit), None);
        }
        let falls = |order: &Vec<u32>| {
            let before = order.iter().take_while(|b| **b != bit).fold(0, |set, b| set | 1 << b);
            self.without(before) - self.without(before | 1 << bit)
        };
        let pairs: Vec<f64> = (self.of.orders.chunks_exact(2))
            .map(|pair| (falls(&pair[0]) + falls(&pair[1])) / 2.0)
            .collect();
        let m = pairs.len() as f64;
        let mean = pairs.iter().sum::<f64>() / m;
        let squares: f64 = pairs.iter().map(|x| (x - mean) * (x - mean)).sum();
        (mean, Some((squares / (m - 1.0) / m).sqrt()))
    }

    fn exact(&self, bit: u32) -> f64 {
        let mut sum = 0.0;
        let without = (0..self.ms.len()).filter(|set| set & (1 << bit) == 0);
        for set in without {
            let falls = self.ms[set] - self.ms[set | 1 << bit];
            sum += falls * weight(self.of.n, set.count_ones());
        }
        sum
    }

    /// The debt that the absence of the cause of this bit alone saves.
    pub fn gain(&self, bit: u32) -> f64 {
        self.without(0) - self.without(1 << bit)
    }

    /// The debt if the cause of this bit alone is left.
    pub fn alone(&self, bit: u32) -> f64 {
        self.without(self.all() & !(1 << bit))
    }

    /// The debt without any of them.
    pub fn unexplained(&self) -> f64 {
        self.without(self.all())
    }
}

/// The weight |S|!·(n − |S| − 1)!/n!
fn weight(n: u32, size: u32) -> f64 {
    let factorial = |k: u32| (1..=k).map(f64::from).product::<f64>();
    factorial(size) * factorial(n - size - 1) / factorial(n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws;
    use proptest::prelude::*;

    #[test]
    fn causes_that_act_only_together_share_alike() {
        // 10 ms are lost while both a and b are there, 4 ms more while c is.
        let debt = |set: usize| {
            let there = |bit: usize| set & (1 << bit) == 0;
            f64::from(10 * u8::from(there(0) && there(1)) + 4 * u8::from(there(2)))
        };
        let s = all((0..8).map(debt).collect());
        let shares = [0, 1, 2].map(|bit| s.share(bit).0);
        for (share, wanted) in shares.iter().zip([5.0, 5.0, 4.0]) {
            assert!((share - wanted).abs() < 1e-12, "{shares:?}");
        }
        assert_eq!([0, 1, 2].map(|bit| s.gain(bit)), [10.0, 10.0, 4.0]);
        assert_eq!([0, 1, 2].map(|bit| s.alone(bit)), [0.0, 0.0, 4.0]);
        assert_eq!(s.unexplained(), 0.0);
        // Without any cause to look at, nothing is explained.
        assert_eq!(all(vec![7.0]).unexplained(), 7.0);
        assert_eq!(Debts::new(Subsets::new(2, 4, 1), vec![7.0; 3]), None);
    }

    fn all(ms: Vec<f64>) -> Debts {
        let n = ms.len().ilog2();
        Debts::new(Subsets::new(n, ms.len(), 1), ms).unwrap()
    }

    /// The debts that drawn subsets tell, of `ms` for all subsets.
    fn some(ms: &[f64], most: usize, seed: u64) -> Debts {
        let of = Subsets::new(ms.len().ilog2(), most, seed);
        let found = of.sets().iter().map(|set| ms[*set]).collect();
        Debts::new(of, found).unwrap()
    }

    /// Drawn orders are about the whole, add up exactly, and come closer the more there are.
    #[test]
    fn drawn_orders_are_near_all_orders() {
        // Each cause alone, and some more for each pair of neighbours.
        let debt = |set: usize| {
            let there: Vec<bool> = (0..9).map(|bit| set & (1 << bit) == 0).collect();
            let own: f64 =
                there.iter().enumerate().map(|(i, t)| f64::from(i as u8 * u8::from(*t))).sum();
            let pairs = there.windows(2).filter(|w| w[0] && w[1]).count();
            own + 4.0 * pairs as f64 + if there.iter().all(|t| *t) { 7.0 } else { 0.0 }
        };
        let ms: Vec<f64> = (0..512).map(debt).collect();
        let exact = all(ms.clone());
        let mut errors = Vec::new();
        for (most, allowed) in [(60, 4.0), (250, 2.0)] {
            let drawn = some(&ms, most, 5);
            assert!(drawn.of.sets().len() <= most, "{}", drawn.of.sets().len());
            let (mut sum, mut all_errors) = (drawn.unexplained(), 0.0);
            for bit in 0..9 {
                let ((share, error), (wanted, none)) = (drawn.share(bit), exact.share(bit));
                assert!(none.is_none() && (share - wanted).abs() < allowed, "{share} {wanted}");
                let exact = (exact.gain(bit), exact.alone(bit));
                assert_eq!((drawn.gain(bit), drawn.alone(bit)), exact);
                all_errors += error.expect("drawn");
                sum += share;
            }
            assert!((sum - ms[0]).abs() < 1e-9, "{sum}");
            errors.push(all_errors);
        }
        assert!(0.0 < errors[1] && errors[1] < errors[0], "{errors:?}");
        assert_eq!(some(&ms, 60, 5), some(&ms, 60, 5));
        assert!(some(&ms, 60, 5) != some(&ms, 60, 6));
        assert_eq!(some(&ms, 512, 5), exact);
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn shares_and_the_unexplained_add_up(debt in prop::collection::vec(-50.0..500.0_f64, 32)) {
            let s = all(debt.clone());
            let sum = (0..5).map(|bit| s.share(bit).0).sum::<f64>() + s.unexplained();
            prop_assert!((sum - debt[0]).abs() < 1e-9, "{sum} of {}", debt[0]);
        }

        #[test]
        fn a_cause_without_effect_gets_nothing(half in prop::collection::vec(0.0..500.0_f64, 16)) {
            let debt: Vec<f64> = half.iter().chain(&half).copied().collect();
            prop_assert_eq!(all(debt).share(4), (0.0, None));
        }
    }
}
