//! The promise to steady tasks: what the util_est patches leave as it was, and what the others buy.
//!
//! ```text
//! grid          one task each: run µs of full-speed work every period µs, under two policies
//! u, e          util_avg and util_est at the dequeue that ends an activation (activations.rs)
//! steady        its 16 dequeues, itself the last, are, by the list's reading,
//!   letter        none of util_avg above the one before            (the promise's own words)
//!   patch         no activation that util_est rises in, or that ends without a sample of util_avg
//!                 (patch 9 saw no rise: each of its rises also keeps the dequeue from sampling)
//!   margin        all of util_avg within 10 of each other         (UTIL_EST_MARGIN, both ways)
//!   both          the last two
//! steady_util   max |u − u of the figure's policy, same activation|         over steady ones
//! steady_est    max |e − u|                                                  over steady ones
//! steady_util_of_16, steady_est_of_16     the same, how far from the range that u of the figure's
//!               policy and u itself have at the 16 dequeues
//! steady_share  steady ones of all activations, in %
//! steady_freq   mean frequency that they run at above the figure's policy's, in %: median of the grid
//! steady_energy energy above the figure's policy's, in %: median of the tasks that are always steady
//! rest_est      max (e − e of the figure's policy)                           over all others
//! grid_freq     frequency that the task runs at, on average, above the figure's policy's, in %
//! grid_energy   energy above the figure's policy's, in %                     each: median of the grid
//! slack         period − (end − wakeup), less the figure's policy's: difference of the medians
//! slack_least   the same of the smallest ones
//! ```
//!
//! all of activations that end later than 1 s after the start: until then the util of the fork falls,
//! and util_est after it, in mainline, too. From all start phases: the largest, or one number a phase.
//!
//! Left out: tasks whose period is not their own (`sleep` in place of a timer), and other tasks.

use super::activations::{Activation, Activations, SETTLED, mean_khz};
use risetime_analysis::Options;
use risetime_analysis::study::{TradeOff, median};
use risetime_kernel::units::Span;
use risetime_lab::parallel;
use risetime_lab::phase_spans;
use risetime_lab::run;
use risetime_model::study::{Quantity, Reading};
use risetime_model::{Experiment, InputError, Workload};
use risetime_sim::Simulator;
use risetime_trace::RunError;
use std::sync::Arc;

/// Dequeues of a steady activation that are looked at, its own the last.
const PERIODS: usize = 16;
/// `UTIL_EST_MARGIN`: 1 % of 1024.
const MARGIN: u64 = 10;

/// One task of the grid from one start phase.
#[derive(Clone, Debug, Default)]
struct Seen {
    all: Vec<Activation>,
    period_ms: f64,
    mj: Option<f64>,
}

/// The whole grid under one policy: phase by phase, task by task.
#[derive(Clone, Debug, Default)]
pub(super) struct Grid {
    phases: Vec<Vec<Seen>>,
}

impl Seen {
    fn settled(&self) -> impl Iterator<Item = &Activation> {
        self.all.iter().filter(|a| a.ended >= SETTLED)
    }
    fn khz(&self) -> Option<f64> {
        mean_khz(self.settled())
    }
}

/// Figures of steady activations, by one reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Held {
    steady: u32,
    util: u64,
    est: u64,
    /// Distance by which util and est are outside of the range of the 16 dequeues.
    util_of_16: u64,
    est_of_16: u64,
    /// util_est of all other activations above the figure's policy's, at most.
    rest: i64,
    all: u32,
    /// Frequency of the steady ones above the figure's policy's, in %.
    freq: Option<f64>,
    /// Energy above the figure's policy's, in %, where all are steady.
    energy: Option<f64>,
}

/// Under one policy, against the figure's.
#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    /// Figures by phase, task by task, in the order of [`Reading::ALL`].
    held: Vec<Vec<[Held; Reading::ALL.len()]>>,
    /// Frequency by phase, each the median of the grid, in %.
    freq: Vec<Option<f64>>,
    energy: Vec<Option<f64>>,
    slack: Vec<Option<f64>>,
    slack_least: Vec<Option<f64>>,
}

impl Grid {
    /// The grid of `(run, period)` in µs under `experiment`'s policy, from `phases` start phases.
    ///
    /// Errors: a pair that is no workload; the simulator's.
    pub(super) fn run(
        experiment: &Experiment,
        grid: &[(u64, u64)],
        phases: u32,
    ) -> Result<Grid, RunError> {
        let starts: Vec<Span> = phase_spans(experiment.platform.tick(), phases).collect();
        let one = |i: usize| {
            let (run_us, period_us) = grid[i % grid.len()];
            let workload = Arc::new(periodic(run_us, period_us)?);
            let phase = experiment.phase + starts[i / grid.len()];
            let e = Experiment { workload, phase, ..experiment.clone() };
            let mut seen = Activations::default();
            let whole = run(&Simulator, &e, Options::default(), Some(&mut seen))?.result;
            // The run until then is the same, event by event: the difference is the energy since.
            let e = Experiment { duration: e.duration.min(Span(SETTLED.0)), ..e };
            let begun = run(&Simulator, &e, Options::default(), None)?.result;
            let period_ms = period_us as f64 / 1000.0;
            let mj = whole.energy_mj.zip(begun.energy_mj).map(|(whole, begun)| whole - begun);
            Ok::<_, RunError>(Seen { all: seen.all, period_ms, mj })
        };
        let mut all = parallel(grid.len() * starts.len(), |_| (), one)?;
        let phases = starts.iter().map(|_| all.drain(..grid.len()).collect()).collect();
        Ok(Grid { phases })
    }

    /// The slack, frequency and energy under `policy`.
    pub(super) fn trade_off(&self, policy: &str) -> TradeOff {
        let all = |of: &dyn Fn(&[Seen]) -> Option<f64>| {
            middle(self.phases.iter().filter_map(|p| of(p)).collect())
        };
        TradeOff {
            policy: policy.to_string(),
            slack_ms: all(&|p| median(&slacks(p))),
            slack_least_ms: all(&|p| slacks(p).first().copied()),
            mean_ghz: all(&|p| {
                middle(p.iter().filter_map(Seen::khz).collect()).map(|khz| khz / 1e6)
            }),
            energy_mj: all(&|p| {
                let sum: Option<f64> = p.iter().map(|s| s.mj).sum();
                sum.map(|sum| sum / p.len() as f64)
            }),
        }
    }
}

impl Steady {
    /// `ours` against the figure's own policy's.
    pub(super) fn of(ours: &Grid, base: &Grid) -> Steady {
        let mut steady = Steady::default();
        for (ours, base) in ours.phases.iter().zip(&base.phases) {
            let pairs = || ours.iter().zip(base);
            let energy = |(o, b): (&Seen, &Seen)| Some(percent(o.mj?, b.mj?));
            let held = |(o, b): (&Seen, &Seen)| {
                Reading::ALL.map(|r| {
                    let held = held(r, &o.all, &b.all);
                    let always = held.steady == held.all && held.all > 0;
                    Held { energy: energy((o, b)).filter(|_| always), ..held }
                })
            };
            steady.held.push(pairs().map(held).collect());
            steady.energy.push(middle(pairs().filter_map(energy).collect()));
            let freq = |(o, b): (&Seen, &Seen)| Some(percent(o.khz()?, b.khz()?));
            steady.freq.push(middle(pairs().filter_map(freq).collect()));
            let gain =
                |of: fn(&[f64]) -> Option<f64>| Some(of(&slacks(ours))? - of(&slacks(base))?);
            steady.slack.push(gain(median));
            steady.slack_least.push(gain(|all| all.first().copied()));
        }
        steady
    }

    /// The numbers of a row: one a phase, or one for all; `None`: nothing to measure.
    pub(super) fn numbers(&self, quantity: Quantity, reading: Reading) -> Vec<Option<f64>> {
        let held = || self.held.iter().flatten().map(|h| h[reading as usize]);
        let each = |of: fn(&Held) -> Option<f64>| -> Vec<Option<f64>> {
            let of = |h: &[Held; Reading::ALL.len()]| of(&h[reading as usize]);
            self.held.iter().map(|p| middle(p.iter().filter_map(of).collect())).collect()
        };
        let steady: u32 = held().map(|h| h.steady).sum();
        let all: u32 = held().map(|h| h.all).sum();
        let some = |x: Option<f64>| vec![x];
        match quantity {
            Quantity::SteadyUtil => {
                some(held().map(|h| h.util as f64).reduce(f64::max).filter(|_| steady > 0))
            }
            Quantity::SteadyEst => {
                some(held().map(|h| h.est as f64).reduce(f64::max).filter(|_| steady > 0))
            }
            Quantity::SteadyUtilOf16 => {
                some(held().map(|h| h.util_of_16 as f64).reduce(f64::max).filter(|_| steady > 0))
            }
            Quantity::SteadyEstOf16 => {
                some(held().map(|h| h.est_of_16 as f64).reduce(f64::max).filter(|_| steady > 0))
            }
            Quantity::SteadyShare => {
                some((all > 0).then(|| 100.0 * f64::from(steady) / f64::from(all)))
            }
            Quantity::RestEst => {
                some(held().map(|h| h.rest as f64).reduce(f64::max).filter(|_| all > steady))
            }
            Quantity::SteadyFreq => each(|h| h.freq),
            Quantity::SteadyEnergy => each(|h| h.energy),
            Quantity::GridFreq => self.freq.clone(),
            Quantity::GridEnergy => self.energy.clone(),
            Quantity::Slack => self.slack.clone(),
            Quantity::SlackLeast => self.slack_least.clone(),
            _ => Vec::new(),
        }
    }
}

fn percent(x: f64, of: f64) -> f64 {
    100.0 * (x / of - 1.0)
}

fn middle(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    median(&all)
}

/// The slacks of all activations of these tasks after [`SETTLED`], in ms, smallest first.
fn slacks(tasks: &[Seen]) -> Vec<f64> {
    let one = |s: &Seen| {
        let period = s.period_ms;
        let late = move |a: &Activation| period - (a.ended.as_ms() - a.woken.as_ms());
        s.settled().map(late).collect::<Vec<_>>()
    };
    let mut all: Vec<f64> = tasks.iter().flat_map(one).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn periodic(run_us: u64, period_us: u64) -> Result<Workload, InputError> {
    let text = format!(
        "{{\"tasks\": {{\"t\": {{\"loop\": -1, \"run\": {run_us}, \
         \"timer\": {{\"ref\": \"unique\", \"period\": {period_us}}}}}}}}}"
    );
    Workload::parse(&text, &format!("{run_us} in {period_us}.json"))
}

fn held(reading: Reading, ours: &[Activation], theirs: &[Activation]) -> Held {
    let mut held = Held::default();
    let mut calm = 0;
    let mut steady: Vec<(&Activation, &Activation)> = Vec::new();
    for (k, (a, b)) in ours.iter().zip(theirs).enumerate() {
        let before = k.checked_sub(1).map(|k| &ours[k]);
        let stays = match reading {
            Reading::Letter => before.is_some_and(|before| a.util <= before.util),
            Reading::Patch | Reading::Both => !a.rose && before.is_some_and(|b| sampled(b, a)),
            Reading::Margin => true,
        };
        calm = if stays { calm + 1 } else { 0 };
        if k < PERIODS || a.ended < SETTLED {
            continue;
        }
        held.all += 1;
        let any = matches!(reading, Reading::Letter | Reading::Patch);
        let last_16 = k + 1 - PERIODS..=k;
        let (low, high) = range(&ours[last_16.clone()]);
        if calm >= PERIODS && (any || high - low <= MARGIN) {
            held.steady += 1;
            steady.push((a, b));
            held.util = held.util.max(a.util.abs_diff(b.util));
            held.est = held.est.max(a.est.abs_diff(a.util));
            held.util_of_16 = held.util_of_16.max(outside(a.util, range(&theirs[last_16])));
            held.est_of_16 = held.est_of_16.max(outside(a.est, (low, high)));
        } else {
            held.rest = held.rest.max(a.est as i64 - b.est as i64);
        }
    }
    let khz =
        mean_khz(steady.iter().map(|(a, _)| *a)).zip(mean_khz(steady.iter().map(|(_, b)| *b)));
    held.freq = khz.map(|(ours, theirs)| percent(ours, theirs));
    held
}

/// Whether the dequeue took a sample: else util_est stays where it is, however far above util_avg.
/// (At the upper end of its climb a rise is none, but keeps from sampling all the same.)
fn sampled(before: &Activation, a: &Activation) -> bool {
    a.est != before.est || a.est < a.util + MARGIN
}

/// The smallest and largest util_avg of these dequeues.
fn range(all: &[Activation]) -> (u64, u64) {
    let utils = all.iter().map(|a| a.util);
    utils.fold((u64::MAX, 0), |(low, high), u| (low.min(u), high.max(u)))
}

fn outside(x: u64, (low, high): (u64, u64)) -> u64 {
    low.saturating_sub(x).max(x.saturating_sub(high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use risetime_kernel::units::Instant;

    fn activations(utils: impl Iterator<Item = u64>, est: u64, rose: &[usize]) -> Vec<Activation> {
        let one = |(k, util)| Activation {
            woken: SETTLED,
            ended: Instant(SETTLED.0 + 6_000_000),
            util,
            est,
            rose: rose.contains(&k),
            cycles: 0,
            ran: 0,
        };
        utils.enumerate().map(one).collect()
    }

    #[test]
    fn each_reading_takes_what_it_says_for_steady() {
        let utils = |k: usize| match k {
            20 => 201,
            30.. => 185,
            _ => 200,
        };
        let ours = activations((0..40).map(utils), 209, &[25]);
        let theirs = activations((0..40).map(|_| 195), 195, &[]);
        let of = |reading| held(reading, &ours, &theirs);
        // 16 to 19, and again from the 16th dequeue after the one that rose; the fall is none.
        let letter = Held {
            steady: 4 + 4,
            util: 10,
            est: 24,
            util_of_16: 10,
            est_of_16: 9,
            rest: 14,
            all: 24,
            ..Held::default()
        };
        assert_eq!(of(Reading::Letter), letter);
        assert_eq!(of(Reading::Patch).steady, 9, "16 to 24; 25 was a rise, and 41 is not there");
        assert_eq!(of(Reading::Margin).steady, 14, "16 to 29: then 16 less than the highest");
        assert_eq!((of(Reading::Margin).util, of(Reading::Margin).est), (6, 9));
        assert_eq!(of(Reading::Both).steady, 9, "by both");
        let stuck = activations((0..40).map(|_| 200), 977, &[]);
        assert_eq!(
            held(Reading::Patch, &stuck, &theirs).steady,
            0,
            "no sample: patch 9 saw a rise"
        );
    }

    #[test]
    fn slack_is_what_is_left_of_the_period_and_may_be_less_than_nothing() {
        let all = activations([5, 5].into_iter(), 5, &[]);
        let of = |period_ms| slacks(&[Seen { all: all.clone(), period_ms, ..Seen::default() }]);
        assert_eq!(of(8.0), [2.0, 2.0]);
        assert_eq!(of(4.0), [-2.0, -2.0]);
    }
}
