//! Experiments measured from the same start phases, on all cores: what comparisons, sweeps and advice are made of.

use crate::parallel::parallel;
use crate::phases::phase_span;
use crate::run::run;
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::{Measured, Options};
use risetime_model::Experiment;
use risetime_trace::{Backend, RunError};

/// The metrics of one run, each with what it counts.
type Values = Vec<(Option<f64>, Unit)>;

/// Each experiment from start phases 0 to `phases` − 1, counted in its own ticks: the metrics of each run.
/// `progress` hears how many runs are done.
///
/// Errors: a metric that a run does not have; the backend's. The first in the order of the experiments.
pub fn measure(
    backend: &dyn Backend,
    experiments: &[Experiment],
    phases: u32,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<Vec<Measured>, RunError> {
    let n = phases.max(1) as usize;
    let one = |i: usize| {
        let e = &experiments[i / n];
        let e = e.later(phase_span(e.platform.tick(), (i % n) as u32));
        let result = run(backend, &e, Options::default(), None)?.result;
        metrics
            .iter()
            .map(|m| m.of(&result).map_err(RunError::Input))
            .collect::<Result<Vec<_>, _>>()
    };
    let values = parallel(experiments.len() * n, progress, one)?;
    let measured = |(e, runs): (&Experiment, &[Values])| Measured {
        workload: e.workload.name.clone(),
        platform: e.platform.name.clone(),
        policy: e.policy.name.clone(),
        settings: e.settings.clone(),
        metrics: (metrics.iter().enumerate())
            .map(|(m, metric)| {
                (metric.clone(), runs[0][m].1, runs.iter().map(|run| run[m].0).collect())
            })
            .collect(),
    };
    Ok(experiments.iter().zip(values.chunks(n)).map(measured).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Request, run_phases};
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
