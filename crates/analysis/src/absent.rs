//! Figures that are absent from a result, because what they need is not known of the run.
//!
//! [`FIGURES`](crate::named::FIGURES) says of each what it [needs](Need), [`RunResult::lacks`] what of that is not there, and
//! [`unknown`] lists both for those who write results. Nothing is computed in its place: [`forget`] takes what the
//! analysis of an unknown machine assumed out of the result.

use crate::known::{
    Known, NO_EXPERIMENT, NO_FREQUENCIES, NO_IDLE, NO_IDLE_STATES, NO_INTERRUPTS, NO_POWERS,
    NO_SPEEDS, NO_TEMPERATURES, NO_THROTTLING, NOBODYS_POWERS, Need,
};
use crate::latency::By;
use crate::named::{FIGURES, Figure};
use crate::result::{Burst, Level, RunResult, Timeline};
use risetime_kernel::units::KHz;

impl RunResult {
    /// Returns the reason for which figures that need this are absent; `None`: the run has it.
    pub fn lacks(&self, need: Need) -> Option<&'static str> {
        let Known { machine, experiment, idle, frequencies } = self.known;
        let (lacks, why) = match need {
            Need::Speeds if !machine => (true, NO_SPEEDS),
            Need::Speeds => (!frequencies, NO_FREQUENCIES),
            Need::Powers if !machine => (true, NOBODYS_POWERS),
            Need::Powers if !frequencies => (true, NO_FREQUENCIES),
            Need::Powers if !idle => (true, NO_IDLE),
            Need::Powers => (self.energy_mj.is_none(), NO_POWERS),
            Need::IdleStates => (!machine, NO_IDLE_STATES),
            Need::Idle => (!idle, NO_IDLE),
            Need::Experiment => (!experiment, NO_EXPERIMENT),
            Need::TimerInterrupts => (self.wakes.timer_interrupts.is_none(), NO_INTERRUPTS),
            Need::Temperatures => (self.heat.is_empty(), NO_TEMPERATURES),
            Need::Throttling => {
                let mut reservations = self.tasks.iter().filter_map(|t| t.reservation.as_ref());
                (!reservations.all(|r| r.throttled.is_some()), NO_THROTTLING)
            }
        };
        lacks.then_some(why)
    }

    /// Returns the value of `figure`, which is there only if the run has what the figure needs.
    pub fn known(&self, figure: &Figure, value: Option<f64>) -> Option<f64> {
        value.filter(|value| value.is_finite() && !self.hides(figure))
    }

    /// Whether the run cannot have `figure`: whatever is computed of it would be assumed.
    pub fn hides(&self, figure: &Figure) -> bool {
        let never = |need: &Need| match need {
            Need::Speeds | Need::IdleStates | Need::Idle | Need::Experiment => {
                self.lacks(*need).is_some()
            }
            // Of one part of the machine it may be known.
            Need::Powers => !self.known.powers(),
            Need::TimerInterrupts | Need::Temperatures | Need::Throttling => false,
        };
        figure.needs.iter().any(never)
    }

    /// Returns the reason for which the run has no value of `figure`; `None`: it may have one, or nothing of the kind happened.
    pub fn absent(&self, figure: &Figure) -> Option<&'static str> {
        figure.needs.iter().find_map(|need| self.lacks(*need))
    }
}

/// A thing that is not known of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The thing.
    pub need: Need,
    /// Reason of the lack, in words.
    pub why: &'static str,
    /// Figures that need it, `job.longer`: owner and name.
    pub figures: Vec<String>,
}

/// Lists what is not known of a run as a whole, and which figures it therefore has not.
pub fn unknown(run: &RunResult) -> Vec<Unknown> {
    let one = |need: Need| {
        let why = run.lacks(need)?;
        let of = FIGURES.iter().filter(|figure| figure.needs.contains(&need));
        let name =
            |f: &Figure| f.of().word().map_or(f.name.into(), |of| format!("{of}.{}", f.name));
        let mut figures: Vec<String> = of.map(name).collect();
        // The energy of a job, and that of each.
        figures.dedup();
        Some(Unknown { need, why, figures })
    };
    Need::OF_A_RUN.into_iter().filter_map(one).collect()
}

/// Takes out of the result what was assumed of a machine that no platform file describes, or whose frequencies and idle times
/// the trace does not tell: all that follows from speeds, powers and idle states. Numbers that are always there become not-a-numbers, which no page, JSON or CSV shows.
pub(crate) fn forget(run: &mut RunResult) {
    if !run.known.frequencies {
        run.cpus.iter_mut().for_each(|cpu| cpu.freq.clear());
        for task in &mut run.tasks {
            task.reach.retain(|reach| !matches!(reach.what, Level::Freq { .. }));
            let spent = [&mut task.spent, &mut task.whole].into_iter();
            spent.flat_map(|spent| &mut spent.running).for_each(|at| at.freq = KHz(0));
        }
    }
    if !run.known.machine {
        run.waits.retain(|waits| waits.by != By::Capacity);
        run.tasks.iter_mut().for_each(|task| {
            task.reach.retain(|reach| !matches!(reach.what, Level::Capacity(_)));
        });
    }
    if !run.known.speeds() {
        forget_speeds(run);
    }
    if !run.known.powers() {
        forget_powers(run);
    }
}

fn forget_speeds(run: &mut RunResult) {
    run.work_ms = f64::NAN;
    run.latency.iter_mut().for_each(|latency| latency.longer = None);
    run.jobs.iter_mut().for_each(|jobs| jobs.longer = None);
    for task in &mut run.tasks {
        task.burst.iter_mut().chain(&mut task.looked_for).for_each(forget_burst);
        task.perf_10_90_ms = None;
        task.lost.clear();
        for spent in [&mut task.spent, &mut task.whole] {
            (spent.work_ms, spent.longer_ms) = (f64::NAN, f64::NAN);
            spent.longer.clear();
        }
    }
}

fn forget_powers(run: &mut RunResult) {
    run.energy_mj = None;
    run.cpus.iter_mut().for_each(|cpu| cpu.energy_mj = None);
    run.jobs.iter_mut().for_each(|jobs| (jobs.energy, jobs.mj_per_job) = (None, None));
    for task in &mut run.tasks {
        (task.spent.energy_mj, task.whole.energy_mj) = (None, None);
    }
}

/// Takes out of the curves what was assumed.
pub(crate) fn forget_curves(known: Known, curves: &mut Timeline) {
    if !known.speeds() {
        curves.speed.clear();
    }
    if !known.frequencies {
        curves.freq.clear();
    }
}

/// Takes out of a burst what speeds say: when it was at full speed, and what it lost.
pub(crate) fn forget_burst(burst: &mut Burst) {
    let Burst { t1_ms, longer_ms, debt_ms, debt_capped_ms, debt_affinity_ms, .. } = burst;
    for figure in [t1_ms, longer_ms, debt_ms, debt_capped_ms, debt_affinity_ms] {
        *figure = f64::NAN;
    }
}
