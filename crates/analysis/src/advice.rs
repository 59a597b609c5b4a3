//! Changes that a user can make, and the effect of each on one metric and on energy.
//!
//! ```text
//! change       of an option's n differences to the baseline, phase by phase, the median; 95 % interval
//! sure         the interval lies on one side of 0 (of 8 phases: all of them agree)
//! cost         (1 + the interval's end with the smaller gain) · (1 + change of energy), both relative; 1: the baseline;
//!              of n different changes at once · 1.1^(n − 1)
//! first line   of the sure options that gain at least 10 % and leave the tasks at least 90 % of the work that they do now,
//!              the one of least cost; if there is none, of those that leave so much; else of all
//! ```
//!
//! The product of delay and energy is the usual measure where one is bought with the other. It is taken with the end of
//! the interval, not with the median, so that of two options the one that helps from every start phase comes first. Whoever
//! holds the others down saves energy by work that is not done: so much of it that it would be missed is no advice. A
//! second change has to be worth its trouble.

use crate::compare::Difference;
use crate::measured::Measured;
use crate::metric::{Metric, Unit};
use risetime_model::settings::{Home, Value};
use risetime_model::workload::KeyOf;
use std::collections::BTreeSet;

/// Least gain of the first line, if anything gains: less is soon lost among what a model leaves
/// out.
const WORTH: f64 = 0.1;

/// Share of all work that may be left undone under the first line.
const MISSED: f64 = 0.1;
/// Least factor that each further change has to gain.
const TROUBLE: f64 = 1.1;
/// Options that differ by less are the same.
const SAME: f64 = 0.03;

/// One thing that a user changes.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A key of a task or of a task group.
    Workload(KeyOf),
    /// A setting, and where a real system has it.
    Setting {
        /// Name of the setting.
        name: String,
        /// Value of the setting.
        value: Value,
        /// Home of the setting.
        home: Home,
    },
}

/// Something to try: one or several steps.
pub type Steps = Vec<Step>;

/// Steps that were tried to the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// Changes that were tried.
    pub steps: Steps,
    /// The metric (0), energy (1) and work (2) with it, and where the metric is a job's what one takes: the CPUs while its
    /// tasks ran (3), all CPUs (4).
    pub measured: Measured,
    /// The metric's differences to the baseline.
    pub metric: Difference,
    /// Differences of the [energy](comparable_energy) by which options are compared; `None`: it is
    /// not known.
    pub energy: Option<Difference>,
    /// Differences of the work that all tasks do.
    pub work: Option<Difference>,
    /// True if no other option gains more for less energy, with as much work done.
    pub efficient: bool,
}

/// One round of trying.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Round {
    /// Number of candidates.
    pub candidates: usize,
    /// Number of start phases from which each candidate, and the baseline, was run.
    pub phases: u32,
    /// Length of the runs, in s.
    pub seconds: f64,
}

/// Advice: the changes that make a metric better.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The metric that is to become better, and what it counts.
    pub metric: Metric,
    /// Unit of the metric.
    pub unit: Unit,
    /// Seed.
    pub seed: u64,
    /// Measurements of the experiment as it is.
    pub base: Measured,
    /// Changes that surely make the metric better: the first line, then by their gain.
    pub tried: Vec<Tried>,
    /// Rounds of the search.
    pub rounds: Vec<Round>,
    /// Number of simulations.
    pub runs: u32,
    /// Candidates for which the budget did not suffice.
    pub untried: usize,
    /// Candidates of the last round that make no sure difference, or a worse one.
    pub unsure: usize,
    /// The best of those, if nothing surely makes the metric better.
    pub nearest: Vec<Tried>,
    /// Options that were not tried because this kernel lacks them.
    pub left_out: Vec<&'static str>,
}

/// Index of the energy of all CPUs over the run among what is measured.
pub const ENERGY: usize = 1;
/// Index of the energy of the CPUs while a job's tasks ran among what is measured, by jobs done.
pub const EACH: usize = 3;
/// Index of the energy of all CPUs over the run among what is measured, by jobs done.
pub const PER_JOB: usize = 4;

/// The index, among the metrics measured, of the energy that options are compared by: of all CPUs,
/// for one job where the metric is a job's. Not that of its own tasks: beside tasks that are busy
/// anyway, these pay for the bigger CPU that they take from others, who then pay less.
pub fn comparable_energy(base: &Measured) -> usize {
    if base.metrics.len() > PER_JOB { PER_JOB } else { ENERGY }
}

/// Counts the different changes: the same value of the same key of several tasks is one.
fn changes(steps: &Steps) -> usize {
    let what = |step: &Step| match step {
        Step::Workload(change) => (change.key.clone(), change.value.clone()),
        Step::Setting { name, value, .. } => (name.clone(), value.to_string()),
    };
    steps.iter().map(what).collect::<BTreeSet<_>>().len()
}

/// Change of metric and energy by an option, in shares of the baseline; less is better in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The metric's median difference.
    pub metric: f64,
    /// The end of its interval with the smaller gain; the median where there is no interval.
    pub least: f64,
    /// Median difference of energy; 0 where it is not known.
    pub energy: f64,
    /// Median difference of work.
    pub work: f64,
}

impl Gain {
    /// The gain of `measured` over `base` in metric (0), energy and work (2); `None`: there is
    /// nothing to compare.
    pub fn of(metric: &Metric, measured: &Measured, base: &Measured) -> Option<Gain> {
        let less = if metric.less_is_better() == Some(false) { -1.0 } else { 1.0 };
        let whole = |m| base.estimate(m).map(|e| e.median.abs()).filter(|x| *x > 0.0);
        // Where the run's end cut the baseline off, what is done gains at least what is seen.
        let of_metric = measured.difference_to_bounds(base, 0)?;
        let scale = less / whole(0)?;
        let middle = (of_metric.median, of_metric.median);
        let (low, high) = if of_metric.holds { of_metric.interval } else { middle };
        let of = |m| measured.difference(base, m).zip(whole(m)).map_or(0.0, |(d, e)| d.median / e);
        let least = (low * scale).max(high * scale);
        let energy = of(comparable_energy(base));
        Some(Gain { metric: of_metric.median * scale, least, energy, work: of(2) })
    }

    /// The cost in time and energy together, as a share of the baseline's.
    pub fn cost(&self) -> f64 {
        (1.0 + self.least).max(0.0) * (1.0 + self.energy)
    }

    /// Whether the tasks still do what they did.
    fn keeps_work(&self) -> bool {
        self.work >= -MISSED
    }

    /// Whether it may be the first line by right.
    pub fn is_worth(&self) -> bool {
        self.metric <= -WORTH && self.keeps_work()
    }

    fn is_as(&self, other: &Gain) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() < SAME;
        near(self.metric, other.metric) && near(self.energy, other.energy)
    }

    /// Whether this is better in metric or energy, no worse in the other, and with as much work
    /// done.
    pub fn beats(&self, other: &Gain) -> bool {
        let (a, b) = (self, other);
        let works = a.work > b.work - SAME;
        a.metric <= b.metric
            && a.energy <= b.energy
            && (a.metric < b.metric || a.energy < b.energy)
            && works
    }
}

/// The numbers of `gains` in the order in which to go on with them: those that make the metric better, by their Pareto
/// rank (0: nobody beats it; 1: only those of rank 0 do, …) and by [`Gain::cost`]; first those under which work is not
/// left undone. Then all others.
pub fn ranked(gains: &[Option<Gain>]) -> Vec<usize> {
    /// A gain below this is none.
    const NONE: f64 = -0.01;
    let good = |keeps: bool| {
        let all = gains.iter().enumerate().filter_map(|(i, gain)| Some((i, (*gain)?)));
        all.filter(move |(_, g)| g.metric < NONE && g.keeps_work() == keeps).collect::<Vec<_>>()
    };
    let by_cost = |a: &(usize, Gain), b: &(usize, Gain)| {
        a.1.cost().total_cmp(&b.1.cost()).then(a.0.cmp(&b.0))
    };
    let mut order = Vec::with_capacity(gains.len());
    for mut left in [good(true), good(false)] {
        while !left.is_empty() {
            let unbeaten = |(_, g): &(usize, Gain)| !left.iter().any(|(_, other)| other.beats(g));
            let (mut front, behind): (Vec<_>, Vec<_>) = left.iter().copied().partition(unbeaten);
            front.sort_by(by_cost);
            order.extend(front.iter().map(|(i, _)| *i));
            left = behind;
        }
    }
    let rest: Vec<usize> = (0..gains.len()).filter(|i| !order.contains(i)).collect();
    order.extend(rest);
    order
}

/// The last round, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Changes that surely make the metric better, the first line first, the others by their gain.
    pub tried: Vec<Tried>,
    /// Number of options that do not.
    pub unsure: usize,
    /// The best options by the median if none surely helps, so many that one sees where it stands.
    pub nearest: Vec<Tried>,
}

/// Sorts the last round into what surely makes the metric better and what does not.
pub fn judged(metric: &Metric, base: &Measured, last: Vec<(Steps, Measured)>) -> Judged {
    const NEAREST: usize = 3;
    let n = last.len();
    let (mut sure, mut others): (Vec<(Gain, Tried)>, Vec<_>) = (Vec::new(), Vec::new());
    for (steps, measured) in last {
        let difference = |m| measured.difference(base, m);
        let of_metric = measured.difference_to_bounds(base, 0);
        let (Some(gain), Some(of_metric)) = (Gain::of(metric, &measured, base), of_metric) else {
            continue;
        };
        let (energy, work) = (difference(comparable_energy(base)), difference(2));
        let efficient = false;
        let tried = Tried { steps, measured, metric: of_metric, energy, work, efficient };
        let is_sure = gain.least < 0.0 && of_metric.is_sure();
        if is_sure { &mut sure } else { &mut others }.push((gain, tried));
    }
    let unsure = n - sure.len();
    others.retain(|_| sure.is_empty());
    others.sort_by(|(a, _), (b, _)| a.metric.total_cmp(&b.metric));
    let nearest = others.into_iter().map(|(_, tried)| tried).take(NEAREST).collect();
    // Of those that come to the same, the simplest.
    sure.sort_by_key(|(_, tried)| changes(&tried.steps));
    let mut kept: Vec<(Gain, Tried)> = Vec::new();
    for one in sure {
        if !kept.iter().any(|(gain, _)| gain.is_as(&one.0)) {
            kept.push(one);
        }
    }
    let gains: Vec<Gain> = kept.iter().map(|(gain, _)| *gain).collect();
    for (gain, tried) in &mut kept {
        tried.efficient = !gains.iter().any(|other| other.beats(gain));
    }
    let cost = |(gain, tried): &(Gain, Tried)| {
        gain.cost() * TROUBLE.powi(changes(&tried.steps).saturating_sub(1) as i32)
    };
    let class = |gain: &Gain| (!gain.is_worth(), !gain.keeps_work());
    kept.sort_by(|a, b| class(&a.0).cmp(&class(&b.0)).then(cost(a).total_cmp(&cost(b))));
    if let Some(rest) = kept.get_mut(1..) {
        rest.sort_by(|(a, _), (b, _)| a.metric.total_cmp(&b.metric));
    }
    Judged { tried: kept.into_iter().map(|(_, tried)| tried).collect(), unsure, nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ms: [f64; 6], mj: f64) -> Measured {
        working(ms, mj, 50.0)
    }

    fn working(ms: [f64; 6], mj: f64, work: f64) -> Measured {
        let some = |values: [f64; 6]| values.map(Some).to_vec();
        Measured {
            metrics: vec![
                (Metric::new("ui.debt"), Unit::Time, some(ms)),
                (Metric::new("energy"), Unit::Energy, some([mj; 6])),
                (Metric::new("work"), Unit::Time, some([work; 6])),
            ],
            ..Measured::default()
        }
    }

    fn named(key: &str, m: Measured) -> (Steps, Measured) {
        (vec![Step::Workload(KeyOf::new("ui", key, 1))], m)
    }

    fn all_of(key: &str) -> Steps {
        named(key, measured([0.0; 6], 0.0)).0
    }

    #[test]
    fn the_first_line_helps_from_every_phase_and_is_worth_its_energy() {
        let base = measured([100.0; 6], 10.0);
        let all = vec![
            named("dear", measured([40.0; 6], 30.0)),
            named("knee", measured([50.0; 6], 12.0)),
            named("once", measured([1.0, 1.0, 1.0, 1.0, 1.0, 110.0], 10.0)),
            ([all_of("knee"), all_of("more")].concat(), measured([46.5; 6], 12.0)),
            named("little", measured([95.0; 6], 5.0)),
            named("beaten", measured([60.0; 6], 12.0)),
            named("worse", measured([130.0; 6], 1.0)),
            named("idle", working([45.0; 6], 5.0, 20.0)),
            ([all_of("knee"), all_of("idle")].concat(), measured([50.4; 6], 12.05)),
        ];
        let Judged { tried, unsure, nearest } = judged(&Metric::new("ui.debt"), &base, all);
        assert!(nearest.is_empty(), "there is better");
        let key = |t: &Tried| match &t.steps[0] {
            Step::Workload(change) => (change.key.clone(), t.efficient),
            Step::Setting { .. } => unreachable!("none here"),
        };
        let keys: Vec<_> = tried.iter().map(key).collect();
        let of = |key: &str, efficient| (key.to_string(), efficient);
        let wanted = [
            of("knee", false),
            of("dear", true),
            of("idle", true),
            // With something more, which does not pay its trouble.
            of("knee", true),
            of("beaten", false),
            of("little", true),
        ];
        assert_eq!(keys, wanted);
        assert_eq!(unsure, 2);
    }

    #[test]
    fn where_nothing_is_sure_the_best_medians_are_kept() {
        let base = measured([100.0; 6], 10.0);
        let once = |least| measured([least, least, least, least, least, 110.0], 10.0);
        let all = [90.0, 70.0, 105.0, 80.0].map(|ms| named(&ms.to_string(), once(ms)));
        let found = judged(&Metric::new("ui.debt"), &base, all.into());
        let medians: Vec<f64> = found.nearest.iter().map(|t| t.metric.median).collect();
        assert_eq!((found.tried.len(), found.unsure), (0, 4));
        assert_eq!(medians, [-30.0, -20.0, -10.0]);
    }

    #[test]
    fn ranks_go_front_by_front_and_what_does_not_help_comes_last() {
        let gain = |metric, energy| Some(Gain { metric, least: metric, energy, work: 0.0 });
        let undone = Some(Gain { metric: -0.9, least: -0.9, energy: -0.9, work: -0.5 });
        let all = [
            undone,
            gain(0.2, -0.5),
            gain(-0.3, 0.5),
            gain(-0.5, 0.4),
            None,
            gain(-0.2, 0.0),
            gain(-0.1, 0.1),
        ];
        assert_eq!(ranked(&all), [3, 5, 6, 2, 0, 1, 4]);
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
