//! One experiment from several start phases.
//!
//! Where a burst starts between two ticks, and between two PELT periods, decides which sample
//! first passes a threshold. Phase k starts k · 7.618 ticks later, which walks through tick and
//! period independently; medians over phases are what a figure should be judged by.

use crate::parallel::parallel;
use crate::run::{Run, run, run_listing};
use risetime_analysis::{Lists, Options, PhaseSummary, RunResult};
use risetime_kernel::units::Span;
use risetime_model::Experiment;
use risetime_model::settings::keys::HZ;
use risetime_trace::{Backend, RunError};
use std::sync::Mutex;

/// The start phase `k` for ticks of `tick`: k · 7.618 ticks, rounded down to ns.
pub fn phase_span(tick: Span, k: u32) -> Span {
    Span(u64::from(k) * tick.0 * 7618 / 1000)
}

/// Iterates over the start phases `0..n` for ticks of `tick`.
pub fn phase_spans(tick: Span, n: u32) -> impl Iterator<Item = Span> {
    (0..n).map(move |k| phase_span(tick, k))
}

/// All start phases of one policy.
#[derive(Clone, Debug)]
pub struct PhaseRuns {
    /// One result a phase, in the order of the phases.
    pub runs: Vec<RunResult>,
    /// Medians and spread.
    pub summary: PhaseSummary,
}

/// `e` from start phase `k`, for ticks of `tick`, with what chance does drawn from a seed of its own: one draw for all phases
/// would be one experiment, however many phases there are. Whoever is compared from phase `k` has the same seed there.
pub(crate) fn from_phase(e: &Experiment, tick: Span, k: u32) -> Experiment {
    Experiment { seed: seed_of(e.seed, k), ..e.later(phase_span(tick, k)) }
}

/// The seed of start state `k` of an experiment with `seed`, which is that of state 0. No two of them are the same but by chance
/// (2⁻⁵³), whatever the seeds are. Source of the mixing: SplitMix64 (Steele, Lea, Flood 2014).
pub fn seed_of(seed: u64, k: u32) -> u64 {
    if k == 0 {
        return seed;
    }
    let mix = |x: u64| {
        let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    // Every reader of JSON keeps 53 bits.
    mix(mix(seed) ^ u64::from(k)) >> 11
}

/// Runs `experiment` from `n` start phases, counted from its own, in ticks of the kernel that ran
/// it: simulations on all cores, machines one after another. `progress` hears of each.
///
/// Errors: the backend's.
pub fn run_phases(
    backend: &dyn Backend,
    experiment: &Experiment,
    n: u32,
    options: &Options,
    mut progress: impl FnMut(u32),
) -> Result<PhaseRuns, RunError> {
    let mut tick = experiment.platform.tick();
    let one = |e: &Experiment| run(backend, e, options.clone(), None).map(|run| run.result);
    if backend.kind().is_simulated() {
        let one = |k: usize| one(&from_phase(experiment, tick, k as u32));
        let runs = parallel(n as usize, |done| progress(done as u32), one)?;
        return Ok(PhaseRuns::of(runs));
    }
    let mut runs = Vec::with_capacity(n as usize);
    for k in 0..n {
        // A kernel draws nothing from a seed.
        let result = one(&experiment.later(phase_span(tick, k)))?;
        // A real kernel's tick is not the platform's; the first phase is 0 with any tick.
        if let Some(hz) = result.settings.get(&HZ).filter(|hz| *hz > 0) {
            tick = Span(1_000_000_000 / hz as u64);
        }
        runs.push(result);
        progress(k + 1);
    }
    Ok(PhaseRuns::of(runs))
}

/// Runs `experiment` `n` times as it is. `progress` hears of each.
///
/// Errors: the backend's.
pub fn run_again(
    backend: &dyn Backend,
    experiment: &Experiment,
    n: u32,
    options: &Options,
    mut progress: impl FnMut(u32),
) -> Result<PhaseRuns, RunError> {
    let mut runs = Vec::with_capacity(n as usize);
    for k in 0..n {
        runs.push(run(backend, experiment, options.clone(), None)?.result);
        progress(k + 1);
    }
    Ok(PhaseRuns::of(runs))
}

/// Runs each of `experiments` once, simulations on all cores; the one of `lists` in its place hears of each burst and
/// change of CPU. `progress` hears how many are done.
///
/// Errors: the backend's.
pub fn run_each<L: Lists>(
    backend: &dyn Backend,
    experiments: &[Experiment],
    options: &Options,
    lists: Vec<Option<L>>,
    mut progress: impl FnMut(u32),
) -> Result<Vec<(Run, Option<L>)>, RunError> {
    let lists: Vec<Mutex<Option<L>>> = lists.into_iter().map(Mutex::new).collect();
    let one = |i: usize| {
        let mut lists = lists[i].lock().ok().and_then(|mut lists| lists.take());
        let heard = lists.as_mut().map(|lists| lists as &mut dyn Lists);
        let run = run_listing(backend, &experiments[i], options.clone(), heard)?;
        Ok((run, lists))
    };
    match backend.kind().is_simulated() {
        true => parallel(experiments.len(), |done| progress(done as u32), one),
        false => {
            (0..experiments.len()).map(|i| one(i).inspect(|_| progress(i as u32 + 1))).collect()
        }
    }
}

impl PhaseRuns {
    pub(crate) fn of(runs: Vec<RunResult>) -> PhaseRuns {
        PhaseRuns { summary: risetime_analysis::phases(&runs), runs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Request;
    use risetime_kernel::units::Instant;
    use risetime_model::settings::Value;
    use risetime_trace::{BackendKind, Clock, Header, Outcome, Run, TraceSink};

    /// A backend that only says which phases it ran, under a kernel of HZ=250.
    struct Kernel250;

    impl Backend for Kernel250 {
        fn kind(&self) -> BackendKind {
            BackendKind::Vm
        }
        fn run(&self, e: &Experiment, sink: &mut dyn TraceSink) -> Result<Outcome, RunError> {
            let run = Run {
                backend: BackendKind::Vm,
                kernel_release: String::new(),
                clock: Clock::Local,
                signals: Vec::new(),
                lost: Vec::new(),
            };
            let mut header = Header::of(e, run);
            header.machine.settings.insert("hz", Value::Int(250));
            sink.header(&header);
            let end = Instant(e.duration.0);
            sink.end(end);
            Ok(Outcome { end, events: 0, notes: Vec::new(), timer_interrupts: None })
        }
    }

    #[test]
    fn phases_count_in_ticks_of_the_kernel_that_ran() {
        let request = Request {
            seconds: Some(1.0),
            phase: Span::from_us(100),
            ..Request::new("rampup", "m1")
        };
        let e = request.experiments().unwrap().remove(0);
        let mut heard = Vec::new();
        let done = run_phases(&Kernel250, &e, 3, &Options::default(), |k| heard.push(k)).unwrap();
        assert_eq!(
            done.summary.phases,
            [100, 100 + 30_472, 100 + 60_944].map(Span::from_us),
            "7.618 · 4 ms"
        );
        assert_eq!(heard, [1, 2, 3]);
        let done = run_again(&Kernel250, &e, 2, &Options::default(), |_| ()).unwrap();
        assert_eq!(done.summary.phases, [Span::from_us(100); 2]);
    }

    #[test]
    fn phases_walk_through_the_tick() {
        let at: Vec<u64> = phase_spans(Span(1_000_000), 4).map(|s| s.0).collect();
        assert_eq!(at, [0, 7_618_000, 15_236_000, 22_854_000]);
    }
}
