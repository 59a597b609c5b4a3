//! Results of an analysis of one run. Times are in ms, and count from the start of the run unless
//! they say "after".

use crate::jobs::Jobs;
use crate::known::Known;
use crate::latency::{Distributions, Latency, WaitsBy};
use crate::stretch::Stretch;
use crate::weak::Caution;
use risetime_kernel::units::{CpuId, KHz, Span, TaskId};
use risetime_model::Settings;
use risetime_model::workload::Policy;
use risetime_trace::BackendKind;

/// The result of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Policy name.
    pub policy: String,
    /// Things that are known of machine and experiment.
    pub known: Known,
    /// Kind of the backend that made the trace.
    pub backend: BackendKind,
    /// Platform name.
    pub platform: String,
    /// Workload name.
    pub workload: String,
    /// Kernel release.
    pub kernel_release: String,
    /// Seed.
    pub seed: u64,
    /// Start phase.
    pub phase: Span,
    /// Every resolved setting.
    pub settings: Settings,
    /// Length of the run.
    pub end_ms: f64,
    /// The workload's tasks, in order of creation (system threads are left out).
    pub tasks: Vec<TaskResult>,
    /// Task that a reader is told of first, by its place: the one that was asked for, else the one
    /// that begins the first declared job, else the first of those of a name that did most work
    /// together.
    pub lead: usize,
    /// All CPUs, ascending.
    pub cpus: Vec<CpuResult>,
    /// Times of activations, by name of the tasks.
    pub latency: Vec<Latency>,
    /// Waits of wakeups for a CPU, by what tasks have in common, where that differs.
    pub waits: Vec<WaitsBy>,
    /// Wakeups of what slept.
    pub wakes: Wakes,
    /// Number of changes of frequency, of all domains together.
    pub freq_changes: u64,
    /// Work done by the workload's tasks, in ms of full speed.
    pub work_ms: f64,
    /// Number of tasks that have exited, and of all.
    pub exited: (u64, u64),
    /// Time from the first creation to the last exit, in ms; `None`: not all have exited.
    pub makespan_ms: Option<f64>,
    /// Jobs by name, in the order of the workload: what was due when.
    pub jobs: Vec<Jobs>,
    /// Outcomes of the quotas of task groups, those that were told.
    pub quotas: Vec<Quota>,
    /// Heat of thermal zones, of those that were told.
    pub heat: Vec<Heat>,
    /// Losses to cooling, by frequency domain, where temperatures were told.
    pub cooling: Vec<Cooling>,
    /// The [pieces](crate::Pieces) that were asked for: which, and how many ms it took.
    pub pieces: Vec<(Piece, f64)>,
    /// Energy of all CPUs over the whole run; `None`: of one that took some, the power is unknown.
    pub energy_mj: Option<f64>,
    /// Notes for the reader, and what was lost in the trace.
    pub notes: Vec<String>,
    /// Cautions about these figures.
    pub cautions: Vec<Caution>,
}

impl RunResult {
    /// The result of a trace without a header.
    pub(crate) fn empty() -> RunResult {
        RunResult {
            policy: String::new(),
            known: Known { machine: false, experiment: false, idle: false, frequencies: false },
            backend: BackendKind::Sim,
            platform: String::new(),
            workload: String::new(),
            kernel_release: String::new(),
            seed: 0,
            phase: Span(0),
            settings: Default::default(),
            end_ms: 0.0,
            tasks: Vec::new(),
            lead: 0,
            cpus: Vec::new(),
            latency: Vec::new(),
            waits: Vec::new(),
            wakes: Wakes::default(),
            freq_changes: 0,
            work_ms: 0.0,
            exited: (0, 0),
            makespan_ms: None,
            jobs: Vec::new(),
            quotas: Vec::new(),
            heat: Vec::new(),
            cooling: Vec::new(),
            pieces: Vec::new(),
            energy_mj: None,
            notes: vec!["the trace has no header".to_owned()],
            cautions: Vec::new(),
        }
    }

    /// The task that a reader is told of first; `None`: none ever ran.
    pub fn leading(&self) -> Option<&TaskResult> {
        self.tasks.get(self.lead)
    }
}

/// A piece of what a task does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// Instance of the task that begins the job, where there are several: from 0, in the workload's
    /// order.
    pub instance: u32,
    /// A job's number among its instance's, or where in its program an activation begins; both ascend.
    pub number: u64,
}

/// Wakeups of what slept, each in a second of the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wakes {
    /// Tasks, the system's threads among them.
    pub tasks: f64,
    /// CPUs, out of an idle state; that a tick ends one that goes on is such a time.
    pub cpus: f64,
    /// Interrupts of the CPUs' timers, ticks among them; `None`: nobody counted them.
    pub timer_interrupts: Option<f64>,
}

impl RunResult {
    /// Converts a count to so many in a second of the run.
    pub fn a_second(&self, n: u64) -> f64 {
        if self.end_ms > 0.0 { n as f64 * 1000.0 / self.end_ms } else { 0.0 }
    }

    /// The time that the CPUs were in the deepest idle state of theirs that any of them was in, in
    /// ms.
    pub fn deep_idle_ms(&self) -> f64 {
        let deepest = self.cpus.iter().filter_map(|c| c.idle.last());
        deepest.filter(|(state, _)| state != NO_STATE).map(|(_, ms)| ms).sum()
    }
}

/// One task. The reported burst is the one with most running time (the first on ties). What is told of the
/// burst counts from t0 to its end, its debt to t1; `whole` is told of the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskResult {
    /// The task.
    pub task: TaskId,
    /// The task's name.
    pub comm: String,
    /// True if the task ends up busy for ever by its program: how fast it becomes fast is what
    /// there is to say of it ([`Burst::debt_ms`]). All other work is finite, and takes some time
    /// ([`Spent::longer_ms`]).
    pub endless: bool,
    /// The scheduling policies that it ran under, with their parameters, each once, in the order of first
    /// use; empty: SCHED_OTHER all the time.
    pub policies: Vec<Policy>,
    /// Number of bursts.
    pub bursts: u32,
    /// The burst the figures are about; `None` if the task never became runnable.
    pub burst: Option<Burst>,
    /// Times at which the burst reached each level.
    pub reach: Vec<Reach>,
    /// Time from 10 to 90 % of the way from the first speed to s_max, speed averaged over a tick,
    /// in the burst.
    pub perf_10_90_ms: Option<f64>,
    /// Time and energy that the burst took.
    pub spent: Spent,
    /// Running time at each util value in the burst, in the order of first occurrence.
    pub util_residency: Vec<UtilResidency>,
    /// The first changes of CPU in the burst.
    pub migrations: Vec<Migration>,
    /// Debt by state, largest first; sums up to `burst.debt_ms`.
    pub lost: Vec<Lost>,
    /// Time and energy that the whole run took.
    pub whole: Spent,
    /// Use of the task's reservation; `None`: it is no deadline task at the run's end.
    pub reservation: Option<Reservation>,
    /// Stretch of the task's program in which the reported burst lies, if the trace has its steps.
    pub stretch: Stretch,
    /// The stretch that was [looked for](crate::Options::stretch); `None`: it never came there.
    pub looked_for: Option<Burst>,
}

/// Time and energy that a task took, in a burst or a whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spent {
    /// Running.
    pub running_ms: f64,
    /// Runnable but not running.
    pub wait_ms: f64,
    /// Work done, in ms of full speed: how long the same takes at full speed. Not a number where speeds are
    /// [unknown](RunResult::known), as all that follows from it.
    pub work_ms: f64,
    /// Time by which running and waiting took longer, in ms: ∫(1 − s) dt, `running_ms` + `wait_ms`
    /// − `work_ms`.
    pub longer_ms: f64,
    /// Parts of `longer_ms` by state, largest first; they sum up to it.
    pub longer: Vec<Lost>,
    /// Energy of the CPUs while it ran; `None`: it ran where the power is unknown.
    pub energy_mj: Option<f64>,
    /// Running time at each frequency of each CPU, by (cpu, freq). On a machine of more than
    /// [`TOLD_APART`](crate::TOLD_APART) CPUs the first one stands for all of the same capacity and OPPs.
    pub running: Vec<RunningAt>,
    /// Changes of CPU, most frequent first.
    pub migrations: Vec<Moves>,
}

impl Spent {
    /// The time that it was awake, in ms.
    pub fn took_ms(&self) -> f64 {
        self.running_ms + self.wait_ms
    }

    /// The number of times that it changed CPU.
    pub fn moves(&self) -> u64 {
        self.migrations.iter().map(|m| m.n).sum()
    }
}

/// Changes of CPU of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Capacity of the CPU that it left.
    pub from: u64,
    /// Capacity of the one that it went to.
    pub to: u64,
    /// Reason of the moves.
    pub why: &'static str,
    /// Number of moves.
    pub n: u64,
}

/// Use of a deadline task's reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reservation {
    /// Time for which the task has been awake at the run's end, in ms; `None`: it sleeps.
    pub unfinished_ms: Option<f64>,
    /// Number of further periods that have begun since: activations that were due, and began late
    /// or not yet.
    pub due: u64,
    /// Times at which the runtime was used up before the task slept; `None`: the trace does not
    /// say.
    pub throttled: Option<Throttled>,
}

/// A runtime that is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throttled {
    /// Number of times.
    pub n: u32,
    /// Time of waiting for the next period's runtime, in ms.
    pub ms: f64,
    /// The longest of these times.
    pub longest_ms: f64,
    /// Number of times that the next period's runtime came.
    pub replenished: u32,
}

/// Heat of a thermal zone, in °C as its sensor was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Name of the zone.
    pub zone: String,
    /// Temperature at the first look.
    pub start_celsius: f64,
    /// Highest temperature.
    pub max_celsius: f64,
    /// Time at which that was first read, in ms.
    pub max_at_ms: f64,
    /// Temperature at the last look.
    pub end_celsius: f64,
    /// Time at which a critical trip was reached, in ms; `None`: never.
    pub critical_at_ms: Option<f64>,
}

/// Loss of a frequency domain to cooling.
#[derive(Clone, Debug, PartialEq)]
pub struct Cooling {
    /// First CPU of the policy.
    pub policy: CpuId,
    /// Time for which the highest frequency was lowered, in ms.
    pub capped_ms: f64,
    /// The lowest that its highest frequency was; `None`: never lowered.
    pub lowest_max: Option<KHz>,
    /// Number of times that it changed.
    pub changes: u64,
}

/// Outcome of a task group's quota.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quota {
    /// Path of the group.
    pub group: String,
    /// Periods that ended while the group used its quota.
    pub periods: u64,
    /// Number of those periods at whose end the quota was used up on some CPU.
    pub throttled: u64,
    /// Time for which it was used up, on all CPUs together, in ms.
    pub throttled_ms: f64,
    /// The longest of these times; `None`: not told.
    pub longest_ms: Option<f64>,
}

/// One burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Time at which the task became runnable, in ms.
    pub t0_ms: f64,
    /// Time of full speed, or of the burst's end, in ms; not a number where speeds are [unknown](RunResult::known), as all that
    /// was lost.
    pub t1_ms: f64,
    /// The burst's end.
    pub end_ms: f64,
    /// Event that ended [t0, t1].
    pub ended_by: EndedBy,
    /// Running time.
    pub running_ms: f64,
    /// Running and waiting, to its end.
    pub took_ms: f64,
    /// Time by which `took_ms` is longer than the same work at full speed, in ms.
    pub longer_ms: f64,
    /// ∫(1 − s) dt over [t0, t1]: ms of full-speed work lost.
    pub debt_ms: f64,
    /// ∫(s_max − s) dt over [t0, t1].
    pub debt_capped_ms: f64,
    /// Part of `debt_ms` that the affinity alone causes.
    pub debt_affinity_ms: f64,
}

impl Burst {
    /// Returns the event that ended [t0, t1]; `None`: nobody knows when full speed was reached.
    pub fn ended(&self) -> Option<EndedBy> {
        Some(self.ended_by).filter(|_| self.t1_ms.is_finite())
    }
}

/// The event that ended the time to full speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// Full speed.
    FullSpeed,
    /// A sleep of at least 4.5 ms.
    Sleep,
    /// The task's exit.
    Exit,
    /// The run's end: the debt is a lower bound.
    RunEnd,
}

impl EndedBy {
    /// The word that JSON uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            EndedBy::FullSpeed => "full_speed",
            EndedBy::Sleep => "sleep",
            EndedBy::Exit => "exit",
            EndedBy::RunEnd => "run_end",
        }
    }
}

/// A level and when it was reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// The level.
    pub what: Level,
    /// Time from t0; `None`: never.
    pub after_ms: Option<f64>,
}

/// A level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The task's util_avg ≥ this.
    Util(u64),
    /// First run in the domain of `cpu` (its first CPU) at this frequency or above.
    Freq {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The frequency.
        freq: KHz,
    },
    /// First run on a CPU of at least this capacity.
    Capacity(u64),
}

/// Running time at a frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningAt {
    /// The CPU.
    pub cpu: CpuId,
    /// The frequency; 0: not known.
    pub freq: KHz,
    /// Time, in ms.
    pub ms: f64,
}

/// Running time at a util value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UtilResidency {
    /// util_avg.
    pub util: u64,
    /// Time, in ms.
    pub ms: f64,
}

/// A change of CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Migration {
    /// Time from t0.
    pub at_ms: f64,
    /// CPU that the task left.
    pub from: CpuId,
    /// CPU that it went to.
    pub to: CpuId,
    /// Reason of the migration.
    pub why: &'static str,
}

/// A part of the debt, by the recorded state it was lost in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lost {
    /// Name of the state (`lowest_opp`, `opp_climb`, `rate_limited`, `waiting_for_misfit`, …).
    pub state: &'static str,
    /// ms of full-speed work.
    pub ms: f64,
}

/// Name in the place of an idle state where a CPU idled in none, or in none that was told.
pub const NO_STATE: &str = "none";

/// One CPU over the whole run.
#[derive(Clone, Debug, PartialEq)]
pub struct CpuResult {
    /// The CPU.
    pub cpu: CpuId,
    /// First CPU of its frequency domain.
    pub domain: CpuId,
    /// The CPU that stands for it in what a task did ([`TOLD_APART`](crate::TOLD_APART)); mostly itself.
    pub told: CpuId,
    /// The CPU's capacity.
    pub capacity: u64,
    /// Energy; `None`: it was in a state whose power is unknown.
    pub energy_mj: Option<f64>,
    /// Time at each frequency, busy or not, ascending; all OPPs that were used.
    pub freq: Vec<(KHz, f64)>,
    /// Time in each idle state by name, the shallowest first; before it [`NO_STATE`]. With `busy_ms` it is the whole run.
    pub idle: Vec<(String, f64)>,
    /// Time busy.
    pub busy_ms: f64,
}

/// Bounded curves for plots: what the [leading](RunResult::lead) task and its CPUs did from the reported
/// burst's t0 to the run's end. Times count from the start of the run. Of a long run each
/// stretch keeps its first, last, lowest and highest point; the last point is the run's end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// (time in ms, util_avg) at each change.
    pub util: Vec<(f64, u64)>,
    /// (time in ms, speed of 1024) at each change; 0 while not running.
    pub speed: Vec<(f64, f64)>,
    /// Per CPU that it ran on: (time in ms, freq) at each change.
    pub freq: Vec<(CpuId, Vec<(f64, KHz)>)>,
    /// (time in ms, cpu) at each change of the CPU the task runs on; `None`: not running.
    pub cpu: Vec<(f64, Option<CpuId>)>,
    /// Distributions of activations and of waits of wakeups in the whole run, by name of the tasks.
    pub latency: Vec<Distributions>,
    /// Distributions of declared jobs, by name: (ms, share that took at most so long).
    pub jobs: Vec<(String, Vec<(f64, f64)>)>,
}

/// A figure over start phases; see [`phases`](crate::phases()) for the quantiles. `None` is
/// "never": the figure does not exist in the run that this quantile falls on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Number of runs.
    pub n: u32,
    /// Number of runs in which it never happened.
    pub never: u32,
    /// Smallest.
    pub min: Option<f64>,
    /// First quartile.
    pub q1: Option<f64>,
    /// Median; the mean of the two middle values for an even number of runs.
    pub median: Option<f64>,
    /// Third quartile.
    pub q3: Option<f64>,
    /// Largest.
    pub max: Option<f64>,
}

/// Figures of one experiment at several start phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseSummary {
    /// The start phases, in the order of the runs.
    pub phases: Vec<Span>,
    /// The tasks, aligned by order of creation.
    pub tasks: Vec<TaskPhases>,
    /// The CPUs, ascending.
    pub cpus: Vec<CpuPhases>,
    /// Jobs by name, in the order of the workload.
    pub jobs: Vec<JobsPhases>,
    /// Energy of all CPUs over the whole run.
    pub energy_mj: Spread,
}

/// The jobs of one name over start phases: each figure as in [`Jobs`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobsPhases {
    /// Name of the jobs.
    pub name: String,
    /// The workload says more of them than that there is a timer.
    pub declared: bool,
    /// Numbers of jobs, by kind: those of [`Jobs::counts`].
    pub counts: Vec<(&'static str, Spread)>,
    /// Times from release to done, by quantile: those of [`Percentiles`](crate::Percentiles).
    pub response: Vec<(&'static str, Spread)>,
    /// Times from due to done.
    pub lateness: Vec<(&'static str, Spread)>,
    /// Times by which jobs took longer than at full speed.
    pub longer: Vec<(&'static str, Spread)>,
    /// While its tasks ran, by jobs done.
    pub mj_per_job: Spread,
    /// Energy of each job that was done.
    pub energy: Vec<(&'static str, Spread)>,
}

/// One task over start phases: each figure as in [`TaskResult`] and [`Burst`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskPhases {
    /// The task's name.
    pub comm: String,
    /// True if the task's work has no end.
    pub endless: bool,
    /// Number of bursts.
    pub bursts: Spread,
    /// Endings of [t0, t1], and in how many runs; endings that did not happen are left out. What
    /// ended the burst, and in how many runs. With `RunEnd` among them, work lost is a lower bound.
    pub ended_by: Vec<(EndedBy, u32)>,
    /// Start of the reported burst.
    pub t0_ms: Spread,
    /// Running time of the reported burst.
    pub running_ms: Spread,
    /// Time awake.
    pub took_ms: Spread,
    /// Time by which that is longer than the same work at full speed.
    pub longer_ms: Spread,
    /// Work lost, in ms of full speed.
    pub debt_ms: Spread,
    /// Work lost against s_max, in ms of full speed.
    pub debt_capped_ms: Spread,
    /// Rise time.
    pub perf_10_90_ms: Spread,
    /// Runnable but not running.
    pub wait_ms: Spread,
    /// Energy while it ran.
    pub energy_mj: Spread,
    /// Number of changes of CPU.
    pub migrations: Spread,
    /// Times at which each level was reached.
    pub reach: Vec<ReachPhases>,
    /// Running time at each frequency of each CPU, by (cpu, freq).
    pub running: Vec<RunningPhases>,
    /// Running time at each frequency of each domain, its CPUs taken together; `cpu` is its first CPU.
    pub domain_running: Vec<RunningPhases>,
    /// Running time on each CPU.
    pub on_cpu: Vec<(CpuId, Spread)>,
    /// Running time on each frequency domain, by its first CPU.
    pub on_domain: Vec<(CpuId, Spread)>,
    /// Debt by state, by descending median. Medians do not add up to the median debt.
    pub lost: Vec<LostPhases>,
    /// Time by which the burst took longer, by state, by descending median.
    pub longer: Vec<LostPhases>,
}

/// Times at which a level was reached, over start phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReachPhases {
    /// The level.
    pub what: Level,
    /// Time from t0.
    pub after_ms: Spread,
}

/// Running time at a frequency, over start phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunningPhases {
    /// The CPU.
    pub cpu: CpuId,
    /// The frequency.
    pub freq: KHz,
    /// Time, over start phases.
    pub ms: Spread,
}

/// A part of the debt, over start phases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostPhases {
    /// Name of the state.
    pub state: &'static str,
    /// ms of full-speed work.
    pub ms: Spread,
}

/// One CPU over start phases: each figure as in [`CpuResult`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuPhases {
    /// The CPU.
    pub cpu: CpuId,
    /// First CPU of its frequency domain.
    pub domain: CpuId,
    /// The CPU's capacity.
    pub capacity: u64,
    /// Energy.
    pub energy_mj: Spread,
    /// Time busy.
    pub busy_ms: Spread,
    /// Time at each frequency, ascending.
    pub freq: Vec<(KHz, Spread)>,
    /// Time in each idle state, by name.
    pub idle: Vec<(String, Spread)>,
}
