//! Experiments measured from the same start states, on all cores: what comparisons, sweeps and advice are made of.
//!
//! ```text
//! start state k    start phase and util of the grid, and a seed of its own: the same on all sides
//! ```

use crate::executor::{Executor, Figure, Threads};
use crate::phases::{phase_spans, seed_of};
use risetime_analysis::caution::{cautions, of_metric};
use risetime_analysis::metric::Metric;
use risetime_analysis::{Measured, StartState};
use risetime_kernel::units::Span;
use risetime_model::Experiment;
use risetime_model::settings::Value;
use risetime_trace::{Backend, RunError};

/// Start states of runs.
#[derive(Clone, Debug)]
pub struct Grid {
    /// Number of start phases, k · 7.618 ticks apart.
    pub phases: u32,
    /// The first task's util at its start, each with every phase; empty: what it is.
    pub start_utils: Vec<u64>,
}

impl Grid {
    /// A grid of so many start phases, with the start util as it is.
    pub fn of_phases(phases: u32) -> Grid {
        Grid { phases, start_utils: Vec::new() }
    }

    /// The start states of experiments like `e`, each with a seed of its own.
    pub fn starts(&self, e: &Experiment) -> Vec<StartState> {
        let utils: Vec<Option<u64>> = match self.start_utils.as_slice() {
            [] => vec![None],
            some => some.iter().copied().map(Some).collect(),
        };
        let phases = phase_spans(e.platform.tick(), self.phases.max(1));
        let all = phases.flat_map(|phase| utils.iter().map(move |util| (phase, *util)));
        let state = |(k, (phase, util)): (usize, (Span, Option<u64>))| StartState {
            phase: e.phase + phase,
            util,
            seed: seed_of(e.seed, k as u32),
        };
        all.enumerate().map(state).collect()
    }
}

/// `e` from there.
fn started(e: &Experiment, at: &StartState) -> Experiment {
    let by = Span(at.phase.0.saturating_sub(e.phase.0));
    let mut e = Experiment { seed: at.seed, ..e.later(by) };
    if let Some(util) = at.util {
        e.settings.0.insert("start_util".into(), Value::Int(util as i64));
    }
    e
}

/// Measures each experiment from start phases 0 to `phases` − 1, counted in its own ticks: the
/// metrics of each run. `progress` is told how many runs are done.
///
/// Errors: a metric that a run does not have; the backend's. The first in the order of the experiments.
pub fn measure(
    backend: &dyn Backend,
    experiments: &[Experiment],
    phases: u32,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<Vec<Measured>, RunError> {
    measure_from(backend, experiments, &Grid::of_phases(phases), metrics, progress)
}

/// Measures each experiment from every start state of the grid, as [`measure`] does.
///
/// Errors: as there.
pub fn measure_from(
    backend: &dyn Backend,
    experiments: &[Experiment],
    grid: &Grid,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<Vec<Measured>, RunError> {
    measure_on(&Threads(backend), experiments, grid, metrics, progress)
}

/// Measures like [`measure_from`], wherever `executor` runs experiments.
///
/// Errors: as there; a worker that is gone.
pub fn measure_on(
    executor: &dyn Executor,
    experiments: &[Experiment],
    grid: &Grid,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<Vec<Measured>, RunError> {
    measure_each(executor, experiments, grid, metrics, progress).map_err(|(_, e)| e)
}

/// Measures like [`measure_from`]. Errors: with the place of the experiment in which each was
/// found.
pub fn measure_each(
    executor: &dyn Executor,
    experiments: &[Experiment],
    grid: &Grid,
    metrics: &[Metric],
    mut progress: impl FnMut(usize),
) -> Result<Vec<Measured>, (usize, RunError)> {
    let starts: Vec<Vec<StartState>> = experiments.iter().map(|e| grid.starts(e)).collect();
    let n = starts.first().map_or(1, Vec::len);
    let one = |i: usize| started(&experiments[i / n], &starts[i / n][i % n]);
    let values = executor
        .figures(experiments.len() * n, &one, metrics, &mut progress)
        .map_err(|(i, e)| (i / n, e))?;
    let measured =
        |((e, starts), runs): ((&Experiment, &Vec<StartState>), &[Vec<Figure>])| Measured {
            workload: e.workload.name.clone(),
            platform: e.platform.name.clone(),
            policy: e.policy.name.clone(),
            settings: e.settings.clone(),
            seed: e.seed,
            starts: starts.clone(),
            metrics: (metrics.iter().enumerate())
                .map(|(m, metric)| {
                    (metric.clone(), runs[0][m].unit, runs.iter().map(|run| run[m].value).collect())
                })
                .collect(),
            bounds: (0..metrics.len())
                .map(|m| runs.iter().map(|run| run[m].at_least).collect())
                .collect(),
            cautions: match executor.kind().is_simulated() {
                true => cautions(e, &metrics.iter().map(of_metric).collect::<Vec<_>>()),
                false => Vec::new(),
            },
        };
    Ok(experiments.iter().zip(&starts).zip(values.chunks(n)).map(measured).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, run_phases};
    use risetime_analysis::Options;
    use risetime_sim::Simulator;

    #[test]
    fn metrics_are_those_of_each_phase() {
        let request = Request {
            policies: vec!["linux-6.8".into(), "linux-7.2".into()],
            seconds: Some(1.2),
            ..Request::new("rampup", "m1")
        };
        let all = request.experiments().expect("built in");
        let metrics = [Metric::new("rampup.debt"), Metric::new("energy")];
        let measured = measure(&Simulator, &all, 3, &metrics, |_| ()).expect("they run");
        for (e, m) in all.iter().zip(&measured) {
            let phases =
                run_phases(&Simulator, e, 3, &Options::default(), |_| ()).expect("it runs");
            let debts: Vec<_> =
                phases.runs.iter().map(|r| r.tasks[0].burst.map(|b| b.debt_ms)).collect();
            assert_eq!((&m.policy, &m.metrics[0].2), (&e.policy.name, &debts));
        }
        assert!(measured[0].metrics != measured[1].metrics);
        let wrong = measure(&Simulator, &all, 1, &[Metric::new("ux.debt")], |_| ());
        assert!(wrong.unwrap_err().to_string().contains("rampup.…"));
    }
}
