//! Experiments measured from the same start phases, on all cores: what comparisons, sweeps and advice are made of.

use crate::parallel::parallel;
use crate::phases::{phase_span, phase_spans};
use crate::run::run;
use risetime_analysis::caution::{cautions, of_metric};
use risetime_analysis::metric::{Metric, Unit};
use risetime_analysis::{Measured, Options, RunResult, group_name};
use risetime_model::Experiment;
use risetime_trace::{Backend, RunError};

/// The metrics of a run.
type Figures = Vec<(Option<f64>, Unit)>;

/// The task that is created first.
pub(crate) fn first_task(e: &Experiment) -> &str {
    e.workload.tasks.get(e.workload.first_created()).map_or("", |t| &t.comm)
}

/// What somebody who does not say what would ask of the task or job `whose` (`None`: of the first job that the workload
/// declares, else of its first task): `response_p99` of its jobs, else `activation_p99` if it has many and is not busy to the
/// end most of the time, else `debt`. `probe`: a run of it.
pub fn usual_metric(e: &Experiment, whose: Option<&str>, probe: &RunResult) -> Metric {
    /// So many activations have a 99th percentile that says something.
    const ENOUGH: u64 = 20;
    let declared = || probe.jobs.iter().find(|job| job.declared).map(|job| job.name.as_str());
    let whose = whose.or_else(declared).unwrap_or_else(|| first_task(e));
    let job = probe.jobs.iter().find(|job| job.name == whose);
    let latency = probe.latency.iter().find(|l| l.tasks == group_name(whose));
    let ran = probe.tasks.iter().find(|t| t.comm == whose).map_or(0.0, |t| t.whole.running_ms);
    let often = latency.is_some_and(|l| l.activations >= ENOUGH && 2.0 * l.unfinished_ms < ran);
    Metric::new(match job.is_some_and(|job| job.response.is_some()) {
        true => format!("{whose}.response_p99"),
        false if often => format!("{whose}.activation_p99"),
        false => format!("{whose}.debt"),
    })
}

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
    measure_each(backend, experiments, phases, metrics, progress).map_err(|(_, e)| e)
}

/// The same. Errors: with the place of the experiment in which each was found.
pub(crate) fn measure_each(
    backend: &dyn Backend,
    experiments: &[Experiment],
    phases: u32,
    metrics: &[Metric],
    progress: impl FnMut(usize),
) -> Result<Vec<Measured>, (usize, RunError)> {
    let n = phases.max(1) as usize;
    let one = |i: usize| {
        let e = &experiments[i / n];
        let e = e.later(phase_span(e.platform.tick(), (i % n) as u32));
        let result = run(backend, &e, Options::default(), None).map_err(|e| (i / n, e))?.result;
        metrics
            .iter()
            .map(|m| m.of(&result).map_err(|e| (i / n, RunError::Input(e))))
            .collect::<Result<Figures, _>>()
    };
    let values = parallel(experiments.len() * n, progress, one)?;
    let measured = |(e, runs): (&Experiment, &[Figures])| Measured {
        workload: e.workload.name.clone(),
        platform: e.platform.name.clone(),
        policy: e.policy.name.clone(),
        settings: e.settings.clone(),
        seed: e.seed,
        phases: phase_spans(e.platform.tick(), n as u32).map(|by| e.phase + by).collect(),
        metrics: (metrics.iter().enumerate())
            .map(|(m, metric)| {
                (metric.clone(), runs[0][m].1, runs.iter().map(|run| run[m].0).collect())
            })
            .collect(),
        cautions: match backend.name() {
            "sim" => cautions(e, &metrics.iter().map(of_metric).collect::<Vec<_>>()),
            _ => Vec::new(),
        },
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
