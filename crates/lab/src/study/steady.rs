//! The promise to steady tasks: what the util_est patches leave as it was.
//!
//! ```text
//! grid         one task each: run µs of full-speed work every period µs, under two policies
//! activation   from a wakeup to the dequeue that ends it; u, e: util_avg and util_est there
//! steady       the dequeue's u did not exceed the one before, nor did those of the 15 before it
//! steady_util  max |u − u of the figure's policy, same activation|         over steady ones
//! steady_est   max |e − u|                                                  over steady ones
//! steady_share steady ones of all activations, in %
//! rest_est     max (e − e of the figure's policy)                           over all others
//! grid_energy  median over the grid of energy / energy under the figure's policy − 1, in %
//! ```
//!
//! all of activations that end later than 1 s after the start: until then the util of the fork falls,
//! and util_est after it, in mainline, too
//!
//! Left out: tasks whose period is not their own (`sleep` in place of a timer), and other tasks.

use crate::parallel::parallel;
use crate::phases::phase_spans;
use crate::run::run;
use risetime_analysis::Options;
use risetime_analysis::study::median;
use risetime_kernel::units::{Instant, TaskId};
use risetime_model::study::Quantity;
use risetime_model::{Experiment, InputError, Workload};
use risetime_sim::Simulator;
use risetime_trace::{Event, Header, RunError, SwitchOut, TraceSink};
use std::sync::Arc;

/// Dequeues before a steady one, itself counted, in which util must not rise.
const PERIODS: usize = 16;

/// What the activations of one task of the grid came to, under both policies.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    steady: u32,
    all: u32,
    util: u64,
    est: u64,
    rest: i64,
    energy: f64,
}

/// Under one policy, against the figure's.
#[derive(Clone, Debug, Default)]
pub(super) struct Steady {
    cells: Vec<Cell>,
}

impl Steady {
    /// The number of a row; `None`: nothing to measure.
    pub(super) fn number(&self, quantity: Quantity) -> Option<f64> {
        let cells = || self.cells.iter();
        let all: u32 = cells().map(|c| c.all).sum();
        let steady: u32 = cells().map(|c| c.steady).sum();
        match quantity {
            Quantity::SteadyUtil if steady > 0 => cells().map(|c| c.util as f64).reduce(f64::max),
            Quantity::SteadyEst if steady > 0 => cells().map(|c| c.est as f64).reduce(f64::max),
            Quantity::SteadyShare if all > 0 => Some(100.0 * f64::from(steady) / f64::from(all)),
            Quantity::RestEst => cells().map(|c| c.rest as f64).reduce(f64::max),
            Quantity::GridEnergy => {
                let mut all: Vec<f64> = cells().map(|c| c.energy).collect();
                all.sort_by(f64::total_cmp);
                median(&all)
            }
            _ => None,
        }
    }
}

/// The grid of `(run, period)` in µs under `experiment`'s policy and under `base`'s, from `phases`
/// start phases.
///
/// Errors: a pair that is no workload; the simulator's.
pub(super) fn steady(
    experiment: &Experiment,
    base: &Experiment,
    grid: &[(u64, u64)],
    phases: u32,
) -> Result<Steady, RunError> {
    let starts: Vec<_> = phase_spans(experiment.platform.tick(), phases).collect();
    let cell = |i: usize| {
        let (run_us, period_us) = grid[i / starts.len()];
        let workload = Arc::new(periodic(run_us, period_us)?);
        let one = |e: &Experiment| {
            let phase = e.phase + starts[i % starts.len()];
            let e = Experiment { workload: workload.clone(), phase, ..e.clone() };
            let mut seen = Activations::default();
            let result = run(&Simulator, &e, Options::default(), Some(&mut seen))?.result;
            Ok::<_, RunError>((seen.all, result.energy_mj))
        };
        let ((ours, mj), (theirs, base_mj)) = (one(experiment)?, one(base)?);
        Ok::<_, RunError>(Cell { energy: 100.0 * (mj / base_mj - 1.0), ..against(&ours, &theirs) })
    };
    Ok(Steady { cells: parallel(grid.len() * starts.len(), |_| (), cell)? })
}

fn periodic(run_us: u64, period_us: u64) -> Result<Workload, InputError> {
    let text = format!(
        "{{\"tasks\": {{\"t\": {{\"loop\": -1, \"run\": {run_us}, \
         \"timer\": {{\"ref\": \"unique\", \"period\": {period_us}}}}}}}}}"
    );
    Workload::parse(&text, &format!("{run_us} in {period_us}.json"))
}

/// Until then a task is as it was forked, and its util_est falls after its util, in mainline, too.
const SETTLED: Instant = Instant(1_000_000_000);

/// util_avg and util_est at each dequeue, and when.
type Dequeues = Vec<(u64, u64, Instant)>;

fn against(ours: &Dequeues, theirs: &Dequeues) -> Cell {
    let mut cell = Cell::default();
    let mut flat = 0;
    for (k, ((util, est, at), (their_util, their_est, _))) in ours.iter().zip(theirs).enumerate() {
        flat = if k > 0 && *util <= ours[k - 1].0 { flat + 1 } else { 0 };
        if k < PERIODS || *at < SETTLED {
            continue;
        }
        cell.all += 1;
        if flat >= PERIODS {
            cell.steady += 1;
            cell.util = cell.util.max(util.abs_diff(*their_util));
            cell.est = cell.est.max(est.abs_diff(*util));
        } else {
            cell.rest = cell.rest.max(*est as i64 - *their_est as i64);
        }
    }
    cell
}

/// The first task's dequeues.
#[derive(Default)]
struct Activations {
    first: Option<TaskId>,
    util: u64,
    est: u64,
    all: Dequeues,
}

impl TraceSink for Activations {
    fn header(&mut self, _: &Header) {}
    fn event(&mut self, at: Instant, event: &Event<'_>) {
        let ours = |task: &TaskId| self.first == Some(*task);
        match event {
            Event::TaskNew { task, user: true, .. } => self.first = self.first.or(Some(*task)),
            Event::PeltTask { task, util_avg, .. } if ours(task) => self.util = util_avg.0,
            Event::UtilEst { task, util_est } if ours(task) => self.est = util_est.0,
            Event::Switch { prev: Some((task, SwitchOut::Sleeping)), .. } if ours(task) => {
                self.all.push((self.util, self.est, at));
            }
            _ => {}
        }
    }
    fn end(&mut self, _: Instant) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_not_risen_for_16_periods_is_steady() {
        let ours: Dequeues =
            (0..40).map(|k| (if k == 20 { 201 } else { 200 }, 210, SETTLED)).collect();
        let theirs: Dequeues = (0..40).map(|_| (195, 195, SETTLED)).collect();
        let cell = against(&ours, &theirs);
        // 16 to 19, and again from the 16th dequeue after the one that rose; the fall is none.
        assert_eq!((cell.all, cell.steady), (24, 4 + 4));
        assert_eq!((cell.util, cell.est, cell.rest), (5, 10, 15));
    }
}
