//! What one burst lost (its debt), shared out among its causes.
//!
//! ```text
//! debt(S)  = what the same burst loses in a run without the causes in S
//! debt     = debt(∅)
//! share(c) = Σ over S without c of  |S|!·(n − |S| − 1)!/n! · (debt(S) − debt(S + c))
//! unexplained = debt(all)              debt = Σ share(c) + unexplained
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

use crate::result::Burst;
use risetime_kernel::units::Span;

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
    /// The burst as it was.
    pub burst: Burst,
    /// The causes, in their order.
    pub causes: Vec<CauseShare>,
    /// What is lost although every cause is gone.
    pub unexplained_ms: f64,
    /// How many simulations this took.
    pub runs: u32,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// A cause and what it costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseShare {
    /// Its name.
    pub cause: &'static str,
    /// What a person calls it.
    pub label: &'static str,
    /// One sentence.
    pub about: &'static str,
    /// False: it cannot act in this experiment, and was not looked at.
    pub acts: bool,
    /// Its share of the debt.
    pub ms: f64,
    /// What its absence alone would save.
    pub gain_ms: f64,
    /// What would be lost if it were the only cause.
    pub alone_ms: f64,
}

/// The debts without every subset of `n` causes, by the subset's bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Subsets {
    n: u32,
    debt_ms: Vec<f64>,
}

impl Subsets {
    /// `debt_ms[S]`: the debt without the causes whose bits are set in `S`. `None`: there are not
    /// 2ⁿ of them.
    pub fn new(debt_ms: Vec<f64>) -> Option<Subsets> {
        let n = debt_ms.len().checked_ilog2()?;
        (debt_ms.len() == 1 << n).then_some(Subsets { n, debt_ms })
    }

    /// The share of the cause of this bit.
    pub fn share(&self, bit: u32) -> f64 {
        let mut sum = 0.0;
        let without = (0..self.debt_ms.len()).filter(|set| set & (1 << bit) == 0);
        for set in without {
            let falls = self.debt_ms[set] - self.debt_ms[set | 1 << bit];
            sum += falls * weight(self.n, set.count_ones());
        }
        sum
    }

    /// What the absence of the cause of this bit alone saves.
    pub fn gain(&self, bit: u32) -> f64 {
        self.debt_ms[0] - self.debt_ms[1 << bit]
    }

    /// The debt if the cause of this bit alone is left.
    pub fn alone(&self, bit: u32) -> f64 {
        self.debt_ms[(self.debt_ms.len() - 1) & !(1 << bit)]
    }

    /// The debt without any of them.
    pub fn unexplained(&self) -> f64 {
        self.debt_ms[self.debt_ms.len() - 1]
    }
}

/// |S|!·(n − |S| − 1)!/n!
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
        let s = Subsets::new((0..8).map(debt).collect()).unwrap();
        let shares = [0, 1, 2].map(|bit| s.share(bit));
        for (share, wanted) in shares.iter().zip([5.0, 5.0, 4.0]) {
            assert!((share - wanted).abs() < 1e-12, "{shares:?}");
        }
        assert_eq!([0, 1, 2].map(|bit| s.gain(bit)), [10.0, 10.0, 4.0]);
        assert_eq!([0, 1, 2].map(|bit| s.alone(bit)), [0.0, 0.0, 4.0]);
        assert_eq!(s.unexplained(), 0.0);
        // Without any cause to look at, nothing is explained.
        assert_eq!(Subsets::new(vec![7.0]).unwrap().unexplained(), 7.0);
        assert_eq!(Subsets::new(vec![7.0; 3]), None);
        assert_eq!(Subsets::new(Vec::new()), None);
    }

    proptest! {
        #![proptest_config(draws::config(256))]

        #[test]
        fn shares_and_the_unexplained_add_up(debt in prop::collection::vec(-50.0..500.0_f64, 32)) {
            let s = Subsets::new(debt.clone()).unwrap();
            let sum = (0..5).map(|bit| s.share(bit)).sum::<f64>() + s.unexplained();
            prop_assert!((sum - debt[0]).abs() < 1e-9, "{sum} of {}", debt[0]);
        }

        #[test]
        fn a_cause_without_effect_gets_nothing(half in prop::collection::vec(0.0..500.0_f64, 16)) {
            let debt: Vec<f64> = half.iter().chain(&half).copied().collect();
            prop_assert_eq!(Subsets::new(debt).unwrap().share(4), 0.0);
        }
    }
}
