//! What a user can change, and what that does to one metric and to energy.
//!
//! ```text
//! change       of an option's n differences to the baseline, phase by phase, the median; 95 % interval
//! sure         the interval lies on one side of 0 (of 8 phases: all of them agree)
//! cost         (1 + the interval's end with the smaller gain) · (1 + change of mJ), both relative; 1: the baseline
//! first line   of the sure options that gain at least 10 %, the one of least cost; if none does, of all sure ones
//! ```
//!
//! The product of delay and energy is the usual measure where one is bought with the other. It is taken with the end of
//! the interval, not with the median, so that of two options the one that helps from every start phase comes first.

use crate::compare::Estimate;
use crate::measured::Measured;
use crate::metric::{Metric, Unit};
use risetime_model::settings::{Home, Value};
use risetime_model::workload::Change;
use std::cmp::Ordering;

/// What the first line gains at least, if anything does: less is soon lost among what a model leaves out.
pub const WORTH: f64 = 0.1;

/// One thing that a user changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A key of a task or of a task group.
    Workload(Change),
    /// A setting, and where a real system has it.
    Setting {
        /// Its name.
        name: String,
        /// Its value.
        value: Value,
        /// Where it lives.
        home: Home,
    },
}

/// Something to try: one or several steps.
pub type Steps = Vec<Step>;

/// Steps that were tried to the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// What is changed.
    pub steps: Steps,
    /// The metric (0) and energy (1) with it.
    pub measured: Measured,
    /// The metric's differences to the baseline.
    pub metric: Estimate,
    /// Those of energy; `None`: it is not known.
    pub energy: Option<Estimate>,
    /// Nobody gains more for less energy.
    pub efficient: bool,
}

/// One round of trying.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// How many candidates it had.
    pub candidates: usize,
    /// From how many start phases each was run, and the baseline.
    pub phases: u32,
    /// How long.
    pub seconds: f64,
}

/// What helps.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The metric that is to become better, and what it counts.
    pub metric: Metric,
    /// Its unit.
    pub unit: Unit,
    /// Seed.
    pub seed: u64,
    /// Metric (0) and energy (1) as it is.
    pub base: Measured,
    /// What surely makes the metric better: the first line, then by what it gains.
    pub tried: Vec<Tried>,
    /// How it was found, round by round.
    pub rounds: Vec<Round>,
    /// How many simulations that took.
    pub runs: u32,
    /// Candidates for which the budget did not suffice.
    pub untried: usize,
    /// Candidates of the last round that make no sure difference, or a worse one.
    pub unsure: usize,
    /// What was not tried because this kernel has it not.
    pub left_out: Vec<&'static str>,
}

/// How much an option changes metric and energy, in shares of the baseline; less is better in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The metric's median difference.
    pub metric: f64,
    /// The end of its interval with the smaller gain; the median where there is no interval.
    pub least: f64,
    /// Median difference of energy; 0 where it is not known.
    pub energy: f64,
}

impl Gain {
    /// Of `measured`, metric (0) and energy (1), against `base`; `None`: there is nothing to compare.
    pub fn of(metric: &Metric, measured: &Measured, base: &Measured) -> Option<Gain> {
        let less = if metric.less_is_better() == Some(false) { -1.0 } else { 1.0 };
        let whole = |m| base.estimate(m).map(|e| e.median.abs()).filter(|x| *x > 0.0);
        let of_metric = measured.difference(base, 0)?;
        let scale = less / whole(0)?;
        let (low, high) = of_metric.interval.unwrap_or((of_metric.median, of_metric.median));
        let energy = measured.difference(base, 1).zip(whole(1)).map_or(0.0, |(d, e)| d.median / e);
        let least = (low * scale).max(high * scale);
        Some(Gain { metric: of_metric.median * scale, least, energy })
    }

    /// What time and energy come to together, as a share of the baseline's.
    pub fn cost(&self) -> f64 {
        (1.0 + self.least).max(0.0) * (1.0 + self.energy)
    }

    /// Better in one, and no worse in the other.
    pub fn beats(&self, other: &Gain) -> bool {
        let (a, b) = (self, other);
        a.metric <= b.metric && a.energy <= b.energy && (a.metric < b.metric || a.energy < b.energy)
    }
}

/// The numbers of `gains` in the order in which to go on with them: those that make the metric better by their Pareto
/// rank (0: nobody beats it; 1: only those of rank 0 do, …) and by [`Gain::cost`], then all others.
pub fn ranked(gains: &[Option<Gain>]) -> Vec<usize> {
    /// A gain below this is none.
    const NONE: f64 = -0.01;
    let good: Vec<(usize, Gain)> = gains
        .iter()
        .enumerate()
        .filter_map(|(i, gain)| gain.filter(|g| g.metric < NONE).map(|g| (i, g)))
        .collect();
    let mut left: Vec<(usize, Gain)> = good;
    let by_cost = |a: &(usize, Gain), b: &(usize, Gain)| {
        a.1.cost().total_cmp(&b.1.cost()).then(a.0.cmp(&b.0))
    };
    let mut order = Vec::with_capacity(gains.len());
    while !left.is_empty() {
        let (mut front, behind): (Vec<_>, Vec<_>) = (left.iter().copied())
            .partition(|(_, g)| !left.iter().any(|(_, other)| other.beats(g)));
        front.sort_by(by_cost);
        order.extend(front.iter().map(|(i, _)| *i));
        left = behind;
    }
    let rest: Vec<usize> = (0..gains.len()).filter(|i| !order.contains(i)).collect();
    order.extend(rest);
    order
}

/// Those of the last round that surely make the metric better, the first line first, the others by what they gain;
/// and how many do not.
pub fn judged(
    metric: &Metric,
    base: &Measured,
    last: Vec<(Steps, Measured)>,
) -> (Vec<Tried>, usize) {
    let n = last.len();
    let mut sure: Vec<(Gain, Tried)> = Vec::new();
    for (steps, measured) in last {
        let (Some(gain), Some(difference)) =
            (Gain::of(metric, &measured, base), measured.difference(base, 0))
        else {
            continue;
        };
        if gain.least < 0.0 && difference.differs() {
            let energy = measured.difference(base, 1);
            sure.push((
                gain,
                Tried { steps, measured, metric: difference, energy, efficient: false },
            ));
        }
    }
    let gains: Vec<Gain> = sure.iter().map(|(gain, _)| *gain).collect();
    for (gain, tried) in &mut sure {
        tried.efficient = !gains.iter().any(|other| other.beats(gain));
    }
    let unsure = n - sure.len();
    let worth = |g: &Gain| g.metric <= -WORTH;
    let first = |a: &(Gain, Tried), b: &(Gain, Tried)| -> Ordering {
        worth(&b.0).cmp(&worth(&a.0)).then(a.0.cost().total_cmp(&b.0.cost()))
    };
    sure.sort_by(first);
    if let Some(rest) = sure.get_mut(1..) {
        rest.sort_by(|a, b| a.0.metric.total_cmp(&b.0.metric));
    }
    (sure.into_iter().map(|(_, tried)| tried).collect(), unsure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_model::Settings;

    fn measured(ms: [f64; 6], mj: f64) -> Measured {
        let some = |values: [f64; 6]| values.map(Some).to_vec();
        Measured {
            workload: "w".into(),
            platform: "p".into(),
            policy: "q".into(),
            settings: Settings::default(),
            metrics: vec![
                (Metric::new("ui.debt"), Unit::Time, some(ms)),
                (Metric::new("energy"), Unit::Energy, some([mj; 6])),
            ],
        }
    }

    fn named(key: &str, m: Measured) -> (Steps, Measured) {
        (vec![Step::Workload(Change::new("ui", key, 1))], m)
    }

    #[test]
    fn the_first_line_helps_from_every_phase_and_is_worth_its_energy() {
        let base = measured([100.0; 6], 10.0);
        let all = vec![
            named("dear", measured([40.0; 6], 30.0)),
            named("knee", measured([50.0; 6], 12.0)),
            named("once", measured([1.0, 1.0, 1.0, 1.0, 1.0, 110.0], 10.0)),
            named("little", measured([95.0; 6], 5.0)),
            named("beaten", measured([60.0; 6], 12.0)),
            named("worse", measured([130.0; 6], 1.0)),
        ];
        let (tried, unsure) = judged(&Metric::new("ui.debt"), &base, all);
        let key = |t: &Tried| match &t.steps[0] {
            Step::Workload(change) => (change.key.clone(), t.efficient),
            Step::Setting { .. } => unreachable!("none here"),
        };
        let keys: Vec<_> = tried.iter().map(key).collect();
        let of = |key: &str, efficient| (key.to_string(), efficient);
        assert_eq!(
            keys,
            [of("knee", true), of("dear", true), of("beaten", false), of("little", true)]
        );
        assert_eq!(unsure, 2);
    }

    #[test]
    fn ranks_go_front_by_front_and_what_does_not_help_comes_last() {
        let gain = |metric, energy| Some(Gain { metric, least: metric, energy });
        let all = [
            gain(0.2, -0.5),
            gain(-0.3, 0.5),
            gain(-0.5, 0.4),
            None,
            gain(-0.2, 0.0),
            gain(-0.1, 0.1),
        ];
        assert_eq!(ranked(&all), [2, 4, 5, 1, 0, 3]);
    }

    #[test]
    fn of_some_figures_more_is_better() {
        let base = measured([100.0; 6], 10.0);
        let more = measured([110.0, 120.0, 130.0, 140.0, 150.0, 160.0], 10.0);
        let percent = |name: &str| {
            let gain = Gain::of(&Metric::new(name), &more, &base).unwrap();
            [gain.metric, gain.least].map(|share| (share * 100.0).round())
        };
        assert_eq!(percent("a.work"), [-35.0, -10.0]);
        assert_eq!(percent("a.wait"), [35.0, 60.0]);
    }
}
