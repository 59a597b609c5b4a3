//! An experiment from many start phases on both sides, and which of its figures are the same.
//!
//! ```text
//! phase k ─> reference ─> trace ─> start state, costs ─> simulator ─> trace
//!                           │                                           │
//!                           └─> figures from the start on ── pair ── figures from the start on
//! ```
//!
//! Each simulation begins in the state that its reference began in, as in the mode *free*: signals, frequencies, tick, when
//! CPUs balance, what `menu` remembers, how long the agent took to create each thread. Nothing after the start is copied;
//! what a frequency change costs a kthread is the reference's median. Without the start state the first 100 ms of
//! a run of one second, which hang on what the boot left, would be held against those of a machine that never booted. It
//! also makes pairs: the two runs of a phase differ by what happens after the start alone.
//!
//! Figures are of what both runs have after the start.

use super::reference::Start;
use super::step::about;
use super::{Mode, simulated};
use risetime_analysis::verify::Equivalence;
use risetime_analysis::{Reading, Readings};
use risetime_kernel::units::{Instant, Span};
use risetime_lab::parallel;
use risetime_lab::phase_span;
use risetime_lab::record;
use risetime_model::Experiment;
use risetime_trace::{Backend, Memory, RunError};

/// Number of start phases from which figures are held against each other, unless asked for
/// otherwise.
pub const SPREAD_PHASES: u32 = 16;

/// Runs each of `experiments` from `n` start phases on `reference` and on the simulator, and holds the figures of both
/// sides together. Also the release of the kernel that ran. `progress` hears how many phases of all are done.
///
/// Errors: the reference's and the simulator's; a reference in which the workload never started.
pub fn spread_all(
    reference: &(dyn Backend + Sync),
    experiments: &[(String, Experiment)],
    n: u32,
    progress: impl FnMut(usize),
) -> Result<(Vec<Equivalence>, String), RunError> {
    spread(reference, experiments, n, pair, progress)
}

/// Holds `reference` and itself together, started 1 µs later: what can be decided from so many phases at all.
///
/// Errors: the reference's; one in which the workload never started.
pub fn spread_twins(
    reference: &(dyn Backend + Sync),
    experiments: &[(String, Experiment)],
    n: u32,
    progress: impl FnMut(usize),
) -> Result<(Vec<Equivalence>, String), RunError> {
    let twins = |experiment: &Experiment, first: &Memory| {
        let twin = record(reference, &experiment.later(Span::from_us(1)))?;
        let starts =
            [Start::of_experiment(first, experiment)?, Start::of_experiment(&twin, experiment)?];
        let length = first.end().since(starts[0].t0).min(twin.end().since(starts[1].t0));
        Ok((readings(first, starts[0].t0, length), readings(&twin, starts[1].t0, length)))
    };
    spread(reference, experiments, n, twins, progress)
}

/// The figures of both sides, from one start phase.
type Pair = (Vec<Reading>, Vec<Reading>);

fn spread(
    reference: &(dyn Backend + Sync),
    experiments: &[(String, Experiment)],
    n: u32,
    pair: impl Fn(&Experiment, &Memory) -> Result<Pair, RunError> + Sync,
    mut progress: impl FnMut(usize),
) -> Result<(Vec<Equivalence>, String), RunError> {
    // Phases count in ticks of the kernel that runs; the first is 0 with any tick, and tells it.
    let first = parallel(experiments.len(), &mut progress, |i| {
        let (name, e) = &experiments[i];
        let trace = record(reference, e).map_err(|error| about(name, error))?;
        let header = trace.header();
        let tick = header.map_or(e.platform.tick(), |h| h.machine.platform.tick());
        let release = header.map_or(String::new(), |h| h.run.kernel_release.clone());
        Ok::<_, RunError>((pair(e, &trace).map_err(|error| about(name, error))?, tick, release))
    })?;
    let others = n.saturating_sub(1) as usize;
    let done = experiments.len();
    let later = parallel(
        experiments.len() * others,
        |k| progress(done + k),
        |i| {
            let (of, k) = (i / others, i % others + 1);
            let (name, e) = &experiments[of];
            let one = e.later(phase_span(first[of].1, k as u32));
            let found = record(reference, &one).and_then(|trace| pair(&one, &trace));
            found.map_err(|error| about(name, error))
        },
    )?;
    let release = first.last().map_or(String::new(), |(_, _, release)| release.clone());
    let mut later = later.into_iter();
    let judged = first.into_iter().zip(experiments).map(|((pair, ..), (name, _))| {
        let runs: Vec<_> = std::iter::once(pair).chain(later.by_ref().take(others)).collect();
        Equivalence::of(name.clone(), &runs)
    });
    Ok((judged.collect(), release))
}

/// The figures of a reference, and of a simulation that begins as it did.
fn pair(experiment: &Experiment, reference: &Memory) -> Result<Pair, RunError> {
    let start = Start::of_experiment(reference, experiment)?;
    let side = simulated(experiment, reference, &start, Mode::Free, None)?;
    let length = side.length(reference, &start);
    Ok((readings(reference, start.t0, length), readings(&side.trace, side.t0, length)))
}

fn readings(trace: &Memory, from: Instant, length: Span) -> Vec<Reading> {
    let mut readings = Readings::new(from, length);
    trace.replay(&mut readings);
    readings.finish()
}
