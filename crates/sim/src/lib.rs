//! A deterministic simulator of the kernel's scheduler and frequency governors.
//!
//! Discrete events on virtual time: nothing here reads a clock, a file, the environment or
//! a random number, so the same experiment gives the same bytes. The arithmetic is
//! [`risetime_kernel`]'s; this crate is what happens between: who wakes where, when the tick
//! comes, how long a frequency change takes. Start at [`engine`](self), `core` and `fair`.
#![deny(clippy::float_arithmetic)]

#[cfg(test)]
#[path = "../../../tests/draws.rs"]
mod draws;
mod kernel;
mod mech;
mod run;
pub mod settings;
mod state;
#[cfg(test)]
mod tests;
mod time;
mod user;

pub use kernel::class::about as classes;
pub use kernel::governor::DomainView;
pub use kernel::{cpuidle, governor, placement, tracker};
pub use mech::pressure::sources as pressure_sources;
pub use run::settings::{catalogue, resolve};
pub use run::{bounds, cause, follow, mutant, replay};
pub use state::hooks;
pub use state::machine::Machine;
pub use time::noise::{NAMES as NOISE_PROFILES, NOISE};
pub use user::power_hal;

use mutant::Mutant;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_model::{Catalogue, Experiment, InputError, Workload};
use risetime_trace::{Backend, BackendKind, Event, Outcome, RunError, TraceSink};
use run::engine::Simulation;
use run::{both_ways, setup};
use state::hooks::{Chain, Hooks};
use state::short_ways::SHORT_WAYS;

/// Checks `workload` for what the simulator refuses whatever the machine; a run checks it as well.
///
/// Errors: what it cannot do yet.
pub fn supported(workload: &Workload) -> Result<(), InputError> {
    kernel::hotplug::supported(workload)
}

/// The simulator as a backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

/// The simulator started from another trace's state, and perhaps held to its decisions.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// The state to start from; `None`: its own.
    pub image: Option<replay::Image>,
    /// Decisions that are fed in (mode *given*); `None`: it decides itself (*free*).
    pub given: Option<replay::Given>,
    /// Leaving an idle state takes no time, as on a virtual SoC; its latency still counts where
    /// CPUs are compared by it.
    pub free_idle_exit: bool,
    /// Cost of a frequency change for the sugov kthread there; `None`: what the settings say.
    pub kthread: Option<replay::Kthread>,
    /// One mechanism is broken on purpose.
    pub mutant: Option<mutant::Mutant>,
}

/// The simulator with plug-ins that are in no registry, in place of those that the settings name.
#[derive(Clone, Copy, Default)]
pub struct Custom {
    /// The governor of every domain.
    pub governor: Option<&'static governor::Descriptor>,
    /// Load tracker; `None`: the one that settings name.
    pub tracker: Option<&'static tracker::Descriptor>,
    /// Idle governor; `None`: the one that settings name.
    pub idle_governor: Option<&'static cpuidle::Descriptor>,
    /// Placement of fair tasks; `None`: the one that settings name.
    pub placement: Option<&'static placement::Descriptor>,
    /// Makes who observes the machine, or bends it.
    pub hooks: Option<fn() -> Box<dyn Hooks>>,
}

/// The simulator without some of what costs time ([`cause`]).
#[derive(Clone, Copy, Debug, Default)]
pub struct Counterfactual {
    /// Causes that are absent.
    pub without: cause::Causes,
    /// The task that is explained: it never waits for another one where queueing is absent, and its
    /// [`Step`](risetime_trace::Event::Step)s are in the trace. `None`: the one that is created
    /// first, without its steps.
    pub task: Option<TaskId>,
}

impl Backend for Simulator {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }

    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        simulate(experiment, sink, Replay::default(), Counterfactual::default())
    }
}

impl Backend for Replay {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }

    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        simulate(experiment, sink, self.clone(), Counterfactual::default())
    }
}

impl Backend for Counterfactual {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }

    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        simulate(experiment, sink, Replay::default(), *self)
    }
}

impl Custom {
    /// Lists every setting of this backend, and those of the plug-ins, which are always available.
    pub fn catalogue(&self) -> Catalogue {
        let mut all = catalogue();
        all.groups.extend(self.governor.map(|d| d.settings));
        all.groups.extend(self.tracker.map(|d| d.settings));
        all.groups.extend(self.placement.map(|d| d.settings));
        all
    }
}

impl Backend for Custom {
    fn kind(&self) -> BackendKind {
        BackendKind::Sim
    }

    fn run(&self, experiment: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
        sink.header(&setup::header(experiment));
        let other = Counterfactual::default();
        let mut simulation = setup::simulation_with(experiment, sink, other, *self)?;
        simulation.k.m.hooks = self.hooks.map(|make| make());
        finish(simulation, experiment, None)
    }
}

fn simulate(
    experiment: &Experiment,
    sink: &mut dyn TraceSink,
    replay: Replay,
    other: Counterfactual,
) -> Result<Outcome, RunError> {
    let mut experiment = experiment.clone();
    if let Some(mutant) = replay.mutant {
        mutant.change(&mut experiment);
    }
    other.without.change(&mut experiment);
    let experiment = &experiment;
    match experiment.settings.get(&both_ways::SHORT_WAYS) {
        Some(0) => both_ways::both_ways(sink, |sink, closed| {
            prepared(experiment, sink, replay.clone(), other, closed)
        }),
        _ => prepared(experiment, sink, replay, other, false),
    }
}

/// Simulates an experiment whose settings are what causes and mutants make of them. `closed`: by the long ways.
fn prepared(
    experiment: &Experiment,
    sink: &mut dyn TraceSink,
    replay: Replay,
    other: Counterfactual,
    closed: bool,
) -> Result<Outcome, RunError> {
    sink.header(&setup::header(experiment));
    let mut simulation = setup::simulation(experiment, sink, other)?;
    if closed {
        SHORT_WAYS.iter().for_each(|way| both_ways::close(&mut simulation.k.m, *way));
    }
    let Replay { image, given, free_idle_exit, kthread, mutant } = replay;
    if let Some(mutant) = mutant {
        mutant.prepare(&mut simulation.k.m);
    }
    simulation.k.kthread = kthread.filter(|_| mutant != Some(Mutant::SlowKthread));
    simulation.k.m.free_idle_exit |= free_idle_exit;
    simulation.k.m.slots.hrtimers.given = given.is_some();
    let delays = experiment.workload.tasks.iter().map(|t| t.delay).collect();
    let start = Instant(experiment.phase.0);
    let steering = replay::impose(&mut simulation, image, given, start, delays);
    let mutant = mutant.map(|mutant| Box::new(mutant) as Box<dyn Hooks>);
    let causes = simulation.k.m.hooks.take();
    let mut hooks: Vec<_> = [steering, mutant, causes].into_iter().flatten().collect();
    simulation.k.m.hooks = match hooks.len() {
        0 | 1 => hooks.pop(),
        _ => Some(Box::new(Chain(hooks))),
    };
    finish(simulation, experiment, other.without.note())
}

/// Runs to the end of the experiment.
fn finish(
    mut simulation: Simulation<'_>,
    experiment: &Experiment,
    note: Option<String>,
) -> Result<Outcome, RunError> {
    let ran = simulation.run(Instant(experiment.duration.0));
    let end = ran.map_err(|stopped| stopped.located(&experiment.workload))?;
    for cpu in (0..experiment.platform.nr_cpus() as u32).map(CpuId) {
        simulation.k.rq(cpu).tell_progress();
    }
    for (group, stat) in simulation.k.m.quotas() {
        simulation.k.emit(Event::Quota { group, stat });
    }
    let (events, interrupts) = (simulation.k.events, simulation.k.m.slots.hrtimers.interrupts);
    let stuck = simulation.user.waits_for_ever(&simulation.k.m, &experiment.workload);
    simulation.k.sink.end(end);
    let notes = setup::notes(experiment).into_iter().chain(stuck).chain(note);
    let notes = notes.collect();
    Ok(Outcome { end, events, notes, timer_interrupts: Some(interrupts) })
}
