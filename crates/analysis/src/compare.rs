//! Policies over many start states: medians, intervals, paired differences.
//!
//! ```text
//! start state   where the burst starts in tick and PELT period, and the task's util then
//! estimate      median of n values, between the order statistics x(k) and x(n + 1 − k)
//!               with the largest k for which  2 · P(B < k) ≤ 5 %,  B ~ Binomial(n, 1/2)
//! difference    the same of the n differences at the same start state
//! ```
//!
//! Such an interval needs no assumption about how the values are distributed (95 % at least; below 6
//! values there is none). That of a difference lies on one side of 0 exactly where a sign test at
//! 5 % says that the policies differ. The start states are a grid and no sample: the interval says
//! how far the median depends on which of them were chosen.
//!
//! Energy is that of all CPUs over the run. A task that is still busy when the run ends has done
//! more work under a faster policy; `same_work_mj` adds what it takes, on the biggest CPU at its
//! highest OPP, to make up for the work lost, so that it is the price of the same work.
//!
//! All debts of a start state are about the same burst: the first policy's longest one, looked for in
//! the other runs by where it lies in the task's program ([`Stretch`](crate::Stretch)).
//!
//! Debts that the end of the run cut off are lower bounds: such a pair gives a difference only if
//! both are.

use crate::result::{EndedBy, RunResult};
use risetime_kernel::units::Span;
use risetime_model::Settings;

/// A median and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// How many values there were.
    pub n: u32,
    /// The median; the mean of the two middle values where n is even.
    pub median: f64,
    /// The interval of 95 %; `None` below 6 values.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    /// Median and interval of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let mut x: Vec<f64> = values.into_iter().collect();
        x.sort_by(f64::total_cmp);
        let n = x.len();
        let middle = (*x.get(n.checked_sub(1)? / 2)?, x[n / 2]);
        let rank = rank(n as u32) as usize;
        Some(Estimate {
            n: n as u32,
            median: (middle.0 + middle.1) / 2.0,
            interval: (rank > 0).then(|| (x[rank - 1], x[n - rank])),
        })
    }

    /// Whether the interval lies on one side of 0.
    pub fn differs(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The largest k with 2 · P(B < k) ≤ 5 %, B ~ Binomial(n, 1/2); 0 if there is none.
fn rank(n: u32) -> u32 {
    // In logarithms: 2^-n is no number for large n.
    let (mut log, mut below, mut k) = (-f64::from(n) * std::f64::consts::LN_2, 0.0, 0);
    loop {
        below += log.exp();
        if 2.0 * below > 0.05 || k >= n {
            return k;
        }
        log += (f64::from(n - k) / f64::from(k + 1)).ln();
        k += 1;
    }
}

/// Where a run starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartState {
    /// The workload starts this much later.
    pub phase: Span,
    /// The first task's util when it begins; `None`: what it is.
    pub util: Option<u64>,
}

/// One run of one policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Work lost by the first task's burst.
    pub debt_ms: f64,
    /// It is the burst that was asked for.
    pub same_burst: bool,
    /// How that burst's time to full speed ended.
    pub ended_by: EndedBy,
    /// Time to full speed.
    pub full_speed_ms: Option<f64>,
    /// Energy of all CPUs over the run; `None`: unknown, and so is the next one.
    pub energy_mj: Option<f64>,
    /// Energy of all CPUs, and for a task that is still busy at the end what the work it lost would take.
    pub same_work_mj: Option<f64>,
}

impl Sample {
    /// The figures of a run; `top_mw`: power of the biggest CPU at its highest OPP. `looked`: about the burst that
    /// was [looked for](crate::Options::stretch), if it is found, else about the reported one. `None`:
    /// its first task never ran.
    pub fn of(run: &RunResult, top_mw: f64, looked: bool) -> Option<Sample> {
        let task = run.tasks.first()?;
        let found = task.looked_for.filter(|_| looked);
        let burst = found.or(task.burst)?;
        let busy_at_end = burst.end_ms >= run.end_ms;
        let missing = if busy_at_end { burst.debt_ms * top_mw / 1000.0 } else { 0.0 };
        Some(Sample {
            debt_ms: burst.debt_ms,
            same_burst: found.is_some() || !looked,
            ended_by: burst.ended_by,
            full_speed_ms: (burst.ended_by == EndedBy::FullSpeed)
                .then_some(burst.t1_ms - burst.t0_ms),
            energy_mj: run.energy_mj,
            same_work_mj: run.energy_mj.map(|mj| mj + missing),
        })
    }

    fn is_bound(&self) -> bool {
        self.ended_by == EndedBy::RunEnd
    }
}

/// What one policy has that another has not, at the same start states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Difference of work lost, ms; `None`: no pair can be compared.
    pub debt_ms: Option<Estimate>,
    /// Difference of the energies for the same work, mJ.
    pub same_work_mj: Option<Estimate>,
    /// Pairs whose debts cannot be compared.
    pub left_out: u32,
}

impl Difference {
    /// `samples` less `other`, pair by pair.
    pub fn between(samples: &[Sample], other: &[Sample]) -> Difference {
        let pairs = || samples.iter().zip(other);
        let alike = |(a, b): &(&Sample, &Sample)| {
            a.is_bound() == b.is_bound() && a.same_burst && b.same_burst
        };
        let debts = pairs().filter(alike).map(|(a, b)| a.debt_ms - b.debt_ms);
        Difference {
            debt_ms: Estimate::of(debts),
            same_work_mj: Estimate::of(
                pairs().filter_map(|(a, b)| Some(a.same_work_mj? - b.same_work_mj?)),
            ),
            left_out: pairs().filter(|pair| !alike(pair)).count() as u32,
        }
    }
}

/// One policy over all start states.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Its name.
    pub policy: String,
    /// Its settings, resolved, without the start state's.
    pub settings: Settings,
    /// One a start state, in their order.
    pub samples: Vec<Sample>,
    /// Work lost, in ms of full speed.
    pub debt_ms: Estimate,
    /// In how many runs it is a lower bound.
    pub bounds: u32,
    /// Time to full speed, over the runs that have it.
    pub full_speed_ms: Option<Estimate>,
    /// Energy over the run; `None`: of one of them it is unknown.
    pub energy_mj: Option<Estimate>,
    /// Energy for the same work.
    pub same_work_mj: Option<Estimate>,
    /// No other policy has both less debt and less energy for the same work (by their medians; where
    /// energies are unknown, by their debts alone).
    pub efficient: bool,
    /// What it has more than the first policy; `None`: it is the first.
    pub against_first: Option<Difference>,
}

/// Policies over the same start states.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Workload name.
    pub workload: String,
    /// Platform name.
    pub platform: String,
    /// The task whose debts these are.
    pub comm: String,
    /// Seed.
    pub seed: u64,
    /// Whether the platform says what power its CPUs take.
    pub power_known: bool,
    /// The start states.
    pub states: Vec<StartState>,
    /// The policies; of an ablation its base, the whole of it, then each patch's two.
    pub policies: Vec<Compared>,
    /// The patches, if these policies take one apart.
    pub patches: Vec<Patch>,
    /// Which of these figures are known to be weak.
    pub cautions: Vec<crate::caution::Caution>,
}

/// A switch that a preset sets, and what it buys.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// `key=value`.
    pub setting: String,
    /// Whether any run is another with it than without it.
    pub acts: bool,
    /// The whole preset less the preset without it: negative debts are what it buys.
    pub last: Difference,
    /// It alone less the base.
    pub alone: Difference,
}

impl Compared {
    /// The figures of one policy's runs; `None` if there is no run.
    pub fn of(policy: String, settings: Settings, samples: Vec<Sample>) -> Option<Compared> {
        let over = |f: fn(&Sample) -> f64| Estimate::of(samples.iter().map(f));
        let known = |f: fn(&Sample) -> Option<f64>| {
            samples.iter().map(f).collect::<Option<Vec<f64>>>().and_then(Estimate::of)
        };
        Some(Compared {
            policy,
            settings,
            debt_ms: over(|s| s.debt_ms)?,
            bounds: samples.iter().filter(|s| s.is_bound()).count() as u32,
            full_speed_ms: Estimate::of(samples.iter().filter_map(|s| s.full_speed_ms)),
            energy_mj: known(|s| s.energy_mj),
            same_work_mj: known(|s| s.same_work_mj),
            efficient: false,
            against_first: None,
            samples,
        })
    }
}

/// Fills in what each policy has more than the first, and which are efficient.
pub fn relate(policies: &mut [Compared]) {
    let known = policies.iter().all(|p| p.same_work_mj.is_some());
    let energy = |p: &Compared| p.same_work_mj.filter(|_| known).map_or(0.0, |mj| mj.median);
    let medians: Vec<(f64, f64)> = policies.iter().map(|p| (p.debt_ms.median, energy(p))).collect();
    let Some(first) = policies.first().map(|p| p.samples.clone()) else { return };
    for (i, p) in policies.iter_mut().enumerate() {
        let (debt, energy) = medians[i];
        let beats = |m: &(f64, f64)| m.0 <= debt && m.1 <= energy && (m.0 < debt || m.1 < energy);
        p.efficient = !medians.iter().any(beats);
        p.against_first = (i > 0).then(|| Difference::between(&p.samples, &first));
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

    fn sample(debt_ms: f64, ended_by: EndedBy, mj: f64) -> Sample {
        let full_speed_ms = None;
        Sample {
            debt_ms,
            same_burst: true,
            ended_by,
            full_speed_ms,
            energy_mj: Some(mj),
            same_work_mj: Some(mj),
        }
    }

    #[test]
    fn a_lower_bound_is_compared_with_lower_bounds_only() {
        let (full, end) = (EndedBy::FullSpeed, EndedBy::RunEnd);
        let a = [sample(10.0, full, 1.0), sample(90.0, end, 1.0), sample(80.0, end, 1.0)];
        let b = [sample(14.0, full, 2.0), sample(20.0, full, 2.0), sample(90.0, end, 2.0)];
        let d = Difference::between(&a, &b);
        assert_eq!((d.left_out, d.debt_ms.unwrap().n, d.debt_ms.unwrap().median), (1, 2, -7.0));
        assert_eq!(d.same_work_mj.unwrap().median, -1.0);
    }

    #[test]
    fn efficient_is_what_nobody_beats() {
        let policy = |debt, mj| {
            let samples = vec![sample(debt, EndedBy::FullSpeed, mj)];
            Compared::of(String::new(), Settings::default(), samples).unwrap()
        };
        let mut all =
            [policy(90.0, 10.0), policy(50.0, 20.0), policy(60.0, 20.0), policy(5.0, 90.0)];
        relate(&mut all);
        assert_eq!(all.each_ref().map(|p| p.efficient), [true, true, false, true]);
        let against: Vec<_> = all.iter().map(|p| p.against_first.is_some()).collect();
        assert_eq!(against, [false, true, true, true]);
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
    }
}
