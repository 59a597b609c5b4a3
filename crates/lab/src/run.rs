//! One experiment on one backend, analysed.

use risetime_analysis::caution::{cautions, shown};
use risetime_analysis::{Analyzer, Lists, Options, RunResult, Timeline, group_name};
use risetime_model::Experiment;
use risetime_sim::settings::SHORT_WAYS;
use risetime_trace::{Backend, Memory, Outcome, RunError, Tee, TraceSink, beside};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run with its analysis.
#[derive(Clone, Debug)]
pub struct Run {
    /// The numbers.
    pub result: RunResult,
    /// The curves, if asked for.
    pub timeline: Option<Timeline>,
}

/// Runs `experiment` on `backend` and analyses its trace, which also goes into `also`.
///
/// Errors: the backend's.
pub fn run(
    backend: &dyn Backend,
    experiment: &Experiment,
    options: Options,
    also: Option<&mut dyn TraceSink>,
) -> Result<Run, RunError> {
    let mut analyzer = Analyzer::new(options);
    let outcome = match also {
        Some(sink) => backend.run(experiment, &mut Tee(&mut analyzer, sink))?,
        None => backend.run(experiment, &mut analyzer)?,
    };
    Ok(done(experiment, analyzer, outcome))
}

/// Runs like [`run`] for a caller who waits for this one run: the analysis, and `also`, are on a
/// core of their own, if there is one. `lists` receives each burst and change of CPU.
///
/// Errors: the backend's.
pub fn run_beside(
    backend: &dyn Backend,
    experiment: &Experiment,
    options: Options,
    lists: Option<&mut dyn Lists>,
    also: Option<&mut (dyn TraceSink + Send)>,
) -> Result<Run, RunError> {
    let mut analyzer = Analyzer::listing(options, lists);
    let run = |sink: &mut (dyn TraceSink + Send)| match crate::parallel::cores() {
        1 => backend.run(experiment, sink),
        _ => beside(sink, |sink| backend.run(experiment, sink)),
    };
    let outcome = match also {
        Some(also) => run(&mut Tee(&mut analyzer, also))?,
        None => run(&mut analyzer)?,
    };
    Ok(done(experiment, analyzer, outcome))
}

/// Runs like [`run`]; `lists` receives each burst and change of CPU.
pub(crate) fn run_listing(
    backend: &dyn Backend,
    experiment: &Experiment,
    options: Options,
    lists: Option<&mut dyn Lists>,
) -> Result<Run, RunError> {
    let mut analyzer = Analyzer::listing(options, lists);
    let outcome = backend.run(experiment, &mut analyzer)?;
    Ok(done(experiment, analyzer, outcome))
}

/// Simulations that were made both ways so far in this process (setting `short_ways` is 0), and the events that were the same.
static BOTH_WAYS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// The number of simulations that were made with all short ways of the simulator and with none, and
/// of events that were held against each other: all were the same, or the run would have failed.
pub fn both_ways() -> (u64, u64) {
    let [runs, events] = BOTH_WAYS.each_ref().map(|n| n.load(Ordering::Relaxed));
    (runs, events)
}

/// Counts a simulation that was made both ways; nothing else tells how many interrupts of timers there were.
fn count(experiment: &Experiment, outcome: &Outcome) {
    if experiment.settings.get(&SHORT_WAYS) == Some(0) && outcome.timer_interrupts.is_some() {
        BOTH_WAYS[0].fetch_add(1, Ordering::Relaxed);
        BOTH_WAYS[1].fetch_add(outcome.events, Ordering::Relaxed);
    }
}

fn done(experiment: &Experiment, analyzer: Analyzer<'_>, outcome: Outcome) -> Run {
    count(experiment, &outcome);
    let (mut result, timeline) = analyzer.finish();
    result.wakes.timer_interrupts = outcome.timer_interrupts.map(|n| result.a_second(n));
    result.notes.extend(outcome.notes);
    let tasks = || experiment.workload.tasks.iter().chain(&experiment.workload.forked);
    let endless: BTreeSet<&str> =
        tasks().filter(|t| t.is_endless()).map(|t| group_name(&t.comm)).collect();
    for task in &mut result.tasks {
        task.endless = endless.contains(group_name(&task.comm));
    }
    // What a real kernel did is what it did.
    if result.backend.is_simulated() {
        result.cautions = cautions(experiment, &shown(&result));
    }
    Run { result, timeline }
}

/// Runs `experiment` on `backend` and keeps its trace.
///
/// Errors: the backend's.
pub fn record(backend: &dyn Backend, experiment: &Experiment) -> Result<Memory, RunError> {
    let mut memory = Memory::new();
    let outcome = backend.run(experiment, &mut memory)?;
    count(experiment, &outcome);
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use risetime_sim::Simulator;

    /// A second core changes when things are done, and nothing else.
    #[test]
    fn an_analysis_beside_the_simulation_gives_the_same() {
        let request = Request {
            seconds: Some(1.5),
            noise: Some("machine"),
            ..Request::new("phone", "pixel6")
        };
        let e = request.experiments().expect("built in").remove(0);
        let options = Options { timeline: true, ..Options::default() };
        let alone = run(&Simulator, &e, options.clone(), None).expect("it runs");
        let mut trace = Memory::new();
        let beside = run_beside(&Simulator, &e, options, None, Some(&mut trace)).expect("it runs");
        assert!(alone.result == beside.result && alone.timeline == beside.timeline);
        let own = record(&Simulator, &e).expect("it runs");
        assert!(own.events().len() > 10_000 && own.events() == trace.events());
    }
}
