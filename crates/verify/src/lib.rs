//! The simulator held against another backend's trace.
//!
//! ```text
//! reference trace ─> reference.rs ─> Image (once, at the start)  ─> simulator ─> trace ─┐
//!        │                     └───> Given (mode given only)                            ├─> six checks
//!        └──────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The start is the wakeup of the first task into its start phase (`rampup`: busy), or its
//! creation. Both traces count from their own start; nothing is copied after it.

mod cases;
mod mutants;
mod recording;
mod reference;
mod set;
mod shrink;
mod spread;
mod step;
mod wide;

pub use cases::{OUTSIDE, outside, set};
pub use mutants::catch;
pub use recording::MadeWith;
pub use set::{Case, Recorded, SET_PHASES, SET_SEED, record_set, set_holds};
pub use shrink::{Shrunk, Wrong, shrink};
pub use spread::{SPREAD_PHASES, spread_all, spread_twins};
pub use step::{step, step_all};
pub use wide::{Can, WIDE_ON, wide, wide_named};

use reference::{Start, beginnings, creator, given, hotplug, image, kthread, periods};
use risetime_analysis::verify::{Comparison, Curve, Mode, Phase, Phased, compare};
use risetime_kernel::units::{Instant, Span, TaskId};
use risetime_lab::{as_in_vm, phase_span, record};
use risetime_model::settings::keys::IDLE_TIMES;
use risetime_model::{Experiment, Workload};
use risetime_sim::Replay;
use risetime_sim::mutant::Mutant;
use risetime_trace::{Backend, BackendKind, Header, Memory, RunError};
use std::sync::Arc;

/// The simulation has been idle for so long before the workload begins: longer than any rate
/// limit, as a frequency that the reference begins with has been in force.
const LONG: Span = Span::from_ms(20_000);

/// The simulator held against a reference.
#[derive(Clone, Debug)]
pub struct Verification {
    /// The checks.
    pub comparison: Comparison,
    /// The first task's curve in the reference.
    pub reference: Curve,
    /// Course in the simulation.
    pub simulated: Curve,
    /// The simulation's trace, and how much later than there its start is in the reference's.
    pub trace: Memory,
    /// Parts of the start state that could not be read from the reference.
    pub unread: Vec<String>,
}

/// Simulates `experiment` from the start state of `reference` and holds the two together.
///
/// Errors: the simulator's; a reference in which the workload never started.
pub fn verify(
    experiment: &Experiment,
    reference: &Memory,
    mode: Mode,
) -> Result<Verification, RunError> {
    verify_with(experiment, reference, mode, None)
}

/// Runs `experiment` from `n` start phases on `reference` and on the simulator, and holds each pair
/// together. `progress` hears of each.
///
/// Errors: as [`verify`]; the reference's own.
pub fn verify_phases(
    reference: &dyn Backend,
    experiment: &Experiment,
    n: u32,
    mode: Mode,
    wanted: usize,
    mut progress: impl FnMut(u32),
) -> Result<(Phased, String), RunError> {
    let mut phased = Phased { phases: Vec::new(), wanted };
    let (mut tick, mut release) = (experiment.platform.tick(), String::new());
    for k in 0..n {
        let one = experiment.later(phase_span(tick, k));
        let trace = record(reference, &one)?;
        let found = verify(&one, &trace, mode)?;
        if let Some(header) = trace.header() {
            tick = header.machine.platform.tick();
            release.clone_from(&header.run.kernel_release);
        }
        phased.phases.push(Phase {
            phase: one.phase,
            reference: found.reference.top_opp(&one.platform),
            candidate: found.simulated.top_opp(&one.platform),
            comparison: found.comparison,
        });
        progress(k + 1);
    }
    Ok((phased, release))
}

/// [`verify`], with a simulator that has one mechanism broken.
///
/// Errors: as [`verify`].
fn verify_with(
    experiment: &Experiment,
    reference: &Memory,
    mode: Mode,
    mutant: Option<Mutant>,
) -> Result<Verification, RunError> {
    let start = Start::of_experiment(reference, experiment)?;
    let side = simulated(experiment, reference, &start, mode, mutant)?;
    Ok(together(reference, &start, side, mode))
}

/// Holds `reference` and another run of the same kernel together, which started a moment later: what the checks can
/// give at best, since after a microsecond's difference all later decisions differ.
///
/// Errors: a run in which the workload never started.
pub fn verify_twin(
    experiment: &Experiment,
    reference: &Memory,
    twin: &Memory,
) -> Result<Verification, RunError> {
    let start = Start::of_experiment(reference, experiment)?;
    let own = Start::of_experiment(twin, experiment)?;
    let (image, unread) = image(twin, &experiment.platform, &own);
    let side = Candidate {
        experiment: beside(experiment, twin),
        trace: twin.clone(),
        t0: own.t0,
        first_tick: image.first_tick.unwrap_or(experiment.platform.tick()),
        unread,
    };
    Ok(together(reference, &start, side, Mode::Free))
}

fn together(reference: &Memory, start: &Start, side: Candidate, mode: Mode) -> Verification {
    let length = side.length(reference, start);
    let Candidate { experiment, trace: simulated, t0, first_tick, unread } = side;
    let tasks = experiment.workload.tasks.iter().enumerate();
    let curves: Vec<(&str, Curve, Curve)> = tasks
        .map(|(i, spec)| {
            let task = TaskId(i as u32);
            let was = Curve::of(reference, task, start.t0, length);
            (spec.comm.as_str(), was, Curve::of(&simulated, task, t0, length))
        })
        .collect();
    let each = curves
        .iter()
        .map(|(comm, was, is)| (*comm, compare(&experiment.platform, was, is, first_tick, mode)))
        .collect();
    let comparison = Comparison::worst(mode, each);
    let curves = curves.into_iter().next();
    let (was, is) = curves.map(|(_, was, is)| (was, is)).unwrap_or_default();
    Verification { comparison, reference: was, simulated: is, trace: simulated, unread }
}

/// A simulation that is held against a reference.
struct Candidate {
    /// Experiment as it was run.
    experiment: Experiment,
    trace: Memory,
    /// Time of the start.
    t0: Instant,
    /// Time from the start to the first tick.
    first_tick: Span,
    /// Parts of the start state that could not be read from the reference.
    unread: Vec<String>,
}

impl Candidate {
    /// The time that both traces have after their starts.
    fn length(&self, reference: &Memory, start: &Start) -> Span {
        reference.end().since(start.t0).min(self.trace.end().since(self.t0))
    }
}

/// Simulates `experiment` from the start state of `reference`, which starts there.
///
/// Errors: the simulator's.
fn simulated(
    experiment: &Experiment,
    reference: &Memory,
    start: &Start,
    mode: Mode,
    mutant: Option<Mutant>,
) -> Result<Candidate, RunError> {
    let tasks = experiment.workload.tasks.len();
    let given = (mode == Mode::Given).then(|| given(reference, &experiment.platform, tasks, start));
    let mut experiment = beside(experiment, reference).later(LONG);
    let (mut image, unread) = image(reference, &experiment.platform, start);
    if !experiment.workload.hotplug.is_empty() {
        image.hotplug = hotplug(reference, start.enqueued(reference));
        let workload = Workload { hotplug: Vec::new(), ..(*experiment.workload).clone() };
        experiment.workload = Arc::new(workload);
    }
    image.periods = periods(reference, &experiment.workload, start.enqueued(reference));
    if start.created {
        let begin = beginnings(reference, tasks, start.t0);
        let mut workload = (*experiment.workload).clone();
        for (task, begin) in workload.tasks.iter_mut().zip(&begin) {
            task.delay = begin.created;
        }
        experiment.workload = Arc::new(workload);
        image.begins = begin.iter().map(|b| b.ran).collect();
        // Elsewhere that is how long the way out of an idle state takes, which is simulated.
        let waited = begin.iter().filter(|_| has_free_exits(reference)).map(|b| b.waited);
        image.waits = waited.collect();
        image.timers_from = begin.iter().map(|b| b.phase).collect();
        image.creator = creator(reference, start);
        image.idle = reference.header().map(|h| h.image.idle.clone()).unwrap_or_default();
        let known = reference.header().map(|h| h.image.balance.as_slice()).unwrap_or_default();
        let (tick, first) = (experiment.platform.tick(), image.first_tick);
        let ticks = |after: Span| {
            let first = first.unwrap_or(tick);
            if after < first { 0 } else { 1 + (after.0 - first.0) / tick.0 }
        };
        image.balance = known.iter().map(|m| (m.clone(), ticks(m.after))).collect();
    }
    let first_tick = image.first_tick.unwrap_or(experiment.platform.tick());
    let free_idle_exit = has_free_exits(reference);
    let kthread = kthread(reference, &experiment.platform).filter(|_| is_virtual(reference));
    let replay = Replay { image: Some(image), given, free_idle_exit, kthread, mutant };
    let trace = record(&replay, &experiment)?;
    let own = Start::of(&trace, &experiment.workload).ok_or_else(|| {
        RunError::Failed(format!(
            "the simulation never came to the start of {}",
            experiment.workload.name
        ))
    })?;
    Ok(Candidate { experiment, trace, t0: own.t0, first_tick, unread })
}

/// `experiment` as the simulator has to run it beside a reference from the virtual machine
/// ([`as_in_vm`]). A reference of the simulator changes nothing.
pub fn beside(experiment: &Experiment, reference: &Memory) -> Experiment {
    match reference.header().filter(|_| is_virtual(reference)) {
        Some(header) => as_in_vm(experiment, &header.run.kernel_release, &header.machine.settings),
        None => experiment.clone(),
    }
}

/// Whether leaving an idle state took no time where a trace comes from.
fn has_free_exits(trace: &Memory) -> bool {
    let takes = |h: &Header| h.machine.settings.get(&IDLE_TIMES) == Some(1);
    is_virtual(trace) && !trace.header().is_some_and(takes)
}

/// Whether a trace comes from the virtual machine.
fn is_virtual(trace: &Memory) -> bool {
    trace.header().is_some_and(|h| h.run.backend == BackendKind::Vm)
}
