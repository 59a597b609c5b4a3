//! Hooks: where the kernel decides, and the few values that all of it hangs on. Each can be observed and
//! overridden, from outside the mechanisms.
//!
//! ```text
//!            instead(point) ── Some ──────────────────────────────┐
//! mechanism ─┤                                                    ├─> decided(point, answer) ──> carried out
//!            └ None ── its own decision ── answer ────────────────┘
//! ```
//!
//! Mechanisms know nothing of who listens: `verify`'s wrong simulators (`run/mutant.rs`), the counterfactuals of `explain`
//! (`run/cause.rs`) and given decisions (`run/replay.rs`) are each a [`Hooks`] of their own. A machine without hooks asks one
//! pointer whether it is there.

use crate::state::machine::{Cpu, Machine, Task};
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::{CfsUtil, RqUtil};
use risetime_kernel::fits::Fit;
use risetime_kernel::uclamp::{Uclamp, UclampLimits};
use risetime_kernel::units::{Capacity, CpuId, GroupId, Instant, KHz, TaskId, Util};
use risetime_kernel::util_est::UtilEst;
use risetime_trace::Why;

/// Place of a task, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The CPU; always one that the task's affinity allows.
    pub cpu: CpuId,
    /// Reason for that CPU.
    pub why: Why,
}

/// Source of a wakeup (`smp_processor_id()` and `WF_SYNC` of `try_to_wake_up`). Who wakes is what
/// runs there (`current`): also for an interrupt it is the task that is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The CPU on which the wakeup happens: the interrupt's, or the waking task's.
    pub cpu: CpuId,
    /// The waking task is about to sleep (`WF_SYNC`).
    pub sync: bool,
    /// True if an interrupt wakes, a timer's, and not the task that runs there.
    pub irq: bool,
}

impl Waker {
    /// A timer that expires on `cpu`.
    pub fn timer(cpu: CpuId) -> Waker {
        Waker { cpu, sync: false, irq: true }
    }
}

/// Frequency that a governor wants, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreqRequest {
    /// The effective util of the decisive CPU, headroom included.
    pub util: Util,
    /// The frequency that shall be in force; an OPP of the domain.
    pub freq: KHz,
    /// Reason of this frequency, or of no change.
    pub why: Why,
}

/// A point at which the kernel decides. The comment names the kind of [`Answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// `select_task_rq` of a waking task, whatever its class: [`Answer::Cpu`].
    Wakeup {
        /// The task that wakes.
        task: TaskId,
        /// Source of the wakeup.
        waker: Waker,
    },
    /// `select_task_rq_fair`, where the fair class's own placement is asked: [`Answer::Cpu`].
    WakeupFair {
        /// The task that wakes.
        task: TaskId,
        /// Source of the wakeup.
        waker: Waker,
    },
    /// `select_idle_sibling` around `target`: [`Answer::Cpu`].
    IdleSibling {
        /// The task that wakes.
        task: TaskId,
        /// CPU where the search begins.
        target: CpuId,
    },
    /// `select_task_rq` of a new task: [`Answer::Cpu`].
    Fork {
        /// The new task.
        task: TaskId,
    },
    /// Place of a task whose CPU goes offline: [`Answer::Cpu`].
    Push {
        /// The task that has to leave.
        task: TaskId,
    },
    /// A governor looked at the policy of `cpu`: [`Answer::Freq`].
    Frequency {
        /// The CPU whose utilisation changed.
        cpu: CpuId,
    },
    /// `__pick_next_task`, of the fair class: [`Answer::Task`].
    Pick {
        /// The CPU that reschedules.
        cpu: CpuId,
    },
    /// Does a woken task preempt: [`Answer::Yes`].
    WakeupPreempt {
        /// CPU on which the woken task is queued.
        cpu: CpuId,
        /// The task that runs there.
        curr: TaskId,
        /// The task that has woken.
        woken: TaskId,
    },
    /// Does the running task's turn end, now that a tick or another look at its time has found it over: [`Answer::Yes`].
    TickPreempt {
        /// The CPU of the tick.
        cpu: CpuId,
        /// The task that runs there.
        curr: TaskId,
    },
    /// Does a CPU look at one of its domains (`sched_balance_rq`): [`Answer::Yes`].
    Balance {
        /// The CPU that looks.
        cpu: CpuId,
        /// Level of the look.
        level: usize,
    },
    /// May balancing move this task (`can_migrate_task`): [`Answer::Yes`].
    Move {
        /// The task to move.
        task: TaskId,
        /// CPU that the task leaves.
        from: CpuId,
        /// CPU that the task goes to.
        to: CpuId,
    },
    /// Balancing is about to move this task; not carried out, it goes on as if it had: [`Answer::Yes`].
    Pull {
        /// The task to pull.
        task: TaskId,
        /// CPU that tasks are pulled from.
        from: CpuId,
        /// CPU that tasks are pulled to.
        to: CpuId,
    },
    /// Is an idle CPU kicked to balance (`nohz_balancer_kick`): [`Answer::Yes`].
    Kick {
        /// The CPU whose tick asks.
        cpu: CpuId,
    },
    /// `cpuidle_select`: [`Answer::Idle`].
    Idle {
        /// The CPU that has nothing to run.
        cpu: CpuId,
    },
    /// Is that part of a mechanism gone through: [`Answer::Yes`].
    Step(Step),
}

/// A part of a mechanism that can be left out, or forced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `sync_entity_load_avg` of a task that wakes.
    SyncEntityLoadAvg,
    /// `update_misfit_status` at the tick.
    MisfitAtTick,
    /// A task that is moved keeps its signals.
    SignalsMigrate,
    /// A turn that a wakeup's accounting has found over ends.
    TurnEndsAtWakeup,
    /// `clear_tsk_need_resched` once the next task is picked.
    ClearNeedResched,
    /// The task's own policy decides who preempts whom, not its group's.
    TaskPolicyPreempts,
    /// `set_next_buddy` of a group of which a task falls asleep.
    NextBuddyOfGroup,
    /// `propagate_entity_load_avg`.
    Propagate,
    /// `throttle_cfs_rq`.
    ThrottleCfsRq,
    /// A deadline task whose runtime is used up is throttled.
    ThrottleDl,
    /// Real-time tasks that have used up their time are throttled (up to 6.11).
    ThrottleRt,
    /// `grub_reclaim`.
    GrubReclaim,
    /// `dl_server_start`.
    FairServer,
    /// `push_rt_task`, `pull_rt_task`.
    PushRt,
    /// Pushing and pulling of real-time and deadline tasks, balancing: all that moves tasks by itself.
    PushOrPull,
    /// Work of a stopper takes its time.
    StopperTakesTime,
    /// A CPU goes offline or comes back.
    Hotplug,
    /// cpuidle's governor learns from a sleep.
    IdleLearns,
    /// A tick that ends a sleep is none of the events that cpuidle's governor learns from (`tick_wakeup`).
    TickWakeup,
    /// `sugov_hold_freq`.
    HoldFreq,
    /// The rate limit has passed (`sugov_should_update_freq`).
    RateLimitPassed,
    /// The governor looks when a task joins, whether a PELT period has ended or not.
    LooksAtOnce,
    /// The governor looks when a deadline task joins, whether that is promised more or not.
    LooksAtDeadline,
    /// Util is taken for a share of the present frequency where it is not frequency-invariant
    /// (`get_capacity_ref_freq`).
    GoesByPresentFreq,
    /// A governor's work, and the driver's after it, waits for a thread.
    WorkWaits,
}

/// The decision at a [`Point`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A CPU for a task.
    Cpu(Placed),
    /// A task; `None`: none is there to run.
    Task(Option<TaskId>),
    /// A frequency; `None`: nothing is asked for.
    Freq(Option<FreqRequest>),
    /// A decision between yes and no.
    Yes(bool),
    /// An idle state by its number, and whether the tick stops.
    Idle {
        /// Index of the state among the platform's.
        state: usize,
        /// `tick_nohz_idle_stop_tick`.
        stop_tick: bool,
    },
}

/// Tasks of the workload that a CPU has, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Fair or real-time tasks to run.
    pub work: bool,
    /// Deadline tasks, awake or asleep.
    pub deadline: bool,
}

/// Need that a task is taken to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSignals {
    /// `util_avg`.
    pub util_avg: Util,
    /// `runnable_avg`.
    pub runnable_avg: Util,
    /// `util_est`.
    pub util_est: Util,
}

/// Observes a machine, or bends it. Everything has a default: nothing is changed.
pub trait Hooks {
    /// Replaces the kernel's decision at `point` before it is made.
    fn instead(&self, _: &Machine, _: Point) -> Option<Answer> {
        None
    }
    /// Returns the answer to take at `point`, where the kernel has decided `own`: that, or another
    /// one.
    fn decided(&self, _: &Machine, _: Point, own: Answer) -> Answer {
        own
    }
    /// `arch_scale_cpu_capacity`, `arch_scale_freq_capacity`: how fast PELT's clock runs.
    fn scale(&self, own: (Capacity, u64)) -> (Capacity, u64) {
        own
    }
    /// `cfs_rq->avg` as `cpu_util` reads it; `busy`: a task of the workload wants to run there.
    fn cfs_util(&self, _busy: bool, own: CfsUtil) -> CfsUtil {
        own
    }
    /// `task_util`, `task_util_est` as placement reads them.
    fn task_util(&self, own: TaskSignals) -> TaskSignals {
        own
    }
    /// Bends what other classes take of a CPU; `capacity`: for `scale_rt_capacity`, else for its
    /// util.
    fn rq_util(&self, _: CpuId, _capacity: bool, own: RqUtil) -> RqUtil {
        own
    }
    /// `effective_cpu_util` as schedutil reads it.
    fn effective_util(&self, own: Util) -> Util {
        own
    }
    /// Bends what schedutil wants of a CPU, headroom included, before the clamps.
    fn dvfs_util(&self, _: Busy, _capacity: Capacity, own: Util) -> Util {
        own
    }
    /// The frequency that a policy begins with.
    fn start_freq(&self, _max: KHz, own: KHz) -> KHz {
        own
    }
    /// `util_fits_cpu` of a task, which has these clamps.
    fn task_fits(&self, _: &Machine, _: TaskId, _: CpuId, own: Fit) -> Fit {
        own
    }
    /// `cpufreq_driver_resolve_freq` in the domain of this number.
    fn resolve_freq(&self, _: &Machine, _domain: usize, _wanted: KHz, own: KHz) -> KHz {
        own
    }
    /// `util_est` of a task that falls asleep; `None`: as the kernel samples it.
    fn util_est(&self) -> Option<UtilEst> {
        None
    }
    /// Bends when the first tick after idle comes.
    fn first_tick(&self, _: &Machine, own: Instant) -> Instant {
        own
    }
    /// Bends of which release the forms of balancing are.
    fn balance_rev(&self, own: KernelRev) -> KernelRev {
        own
    }
    /// Bends what a task of a group may ask for.
    fn uclamp_limits(&self, _: GroupId, own: UclampLimits) -> UclampLimits {
        own
    }
    /// Bends what a task asks for, by its own request and its class's default.
    fn uclamp_request(&self, _real_time: bool, own: Uclamp) -> Uclamp {
        own
    }
}

/// Several of them, each asked in turn; of [`Hooks::instead`] the first answer counts.
pub(crate) struct Chain(pub(crate) Vec<Box<dyn Hooks>>);

macro_rules! each {
    ($self:ident, $own:ident, |$hook:ident, $value:ident| $call:expr) => {
        $self.0.iter().fold($own, |$value, $hook| $call)
    };
}

impl Hooks for Chain {
    fn instead(&self, m: &Machine, point: Point) -> Option<Answer> {
        self.0.iter().find_map(|h| h.instead(m, point))
    }
    fn decided(&self, m: &Machine, point: Point, own: Answer) -> Answer {
        each!(self, own, |h, v| h.decided(m, point, v))
    }
    fn scale(&self, own: (Capacity, u64)) -> (Capacity, u64) {
        each!(self, own, |h, v| h.scale(v))
    }
    fn cfs_util(&self, busy: bool, own: CfsUtil) -> CfsUtil {
        each!(self, own, |h, v| h.cfs_util(busy, v))
    }
    fn task_util(&self, own: TaskSignals) -> TaskSignals {
        each!(self, own, |h, v| h.task_util(v))
    }
    fn rq_util(&self, cpu: CpuId, capacity: bool, own: RqUtil) -> RqUtil {
        each!(self, own, |h, v| h.rq_util(cpu, capacity, v))
    }
    fn effective_util(&self, own: Util) -> Util {
        each!(self, own, |h, v| h.effective_util(v))
    }
    fn dvfs_util(&self, has: Busy, capacity: Capacity, own: Util) -> Util {
        each!(self, own, |h, v| h.dvfs_util(has, capacity, v))
    }
    fn start_freq(&self, max: KHz, own: KHz) -> KHz {
        each!(self, own, |h, v| h.start_freq(max, v))
    }
    fn task_fits(&self, m: &Machine, task: TaskId, cpu: CpuId, own: Fit) -> Fit {
        each!(self, own, |h, v| h.task_fits(m, task, cpu, v))
    }
    fn resolve_freq(&self, m: &Machine, domain: usize, wanted: KHz, own: KHz) -> KHz {
        each!(self, own, |h, v| h.resolve_freq(m, domain, wanted, v))
    }
    fn util_est(&self) -> Option<UtilEst> {
        self.0.iter().find_map(|h| h.util_est())
    }
    fn first_tick(&self, m: &Machine, own: Instant) -> Instant {
        each!(self, own, |h, v| h.first_tick(m, v))
    }
    fn balance_rev(&self, own: KernelRev) -> KernelRev {
        each!(self, own, |h, v| h.balance_rev(v))
    }
    fn uclamp_limits(&self, group: GroupId, own: UclampLimits) -> UclampLimits {
        each!(self, own, |h, v| h.uclamp_limits(group, v))
    }
    fn uclamp_request(&self, real_time: bool, own: Uclamp) -> Uclamp {
        each!(self, own, |h, v| h.uclamp_request(real_time, v))
    }
}

impl Machine {
    /// True if hooks observe or bend this machine.
    #[inline]
    pub(crate) fn hooked(&self) -> bool {
        self.hooks.is_some()
    }
    /// An answer in place of the kernel's own.
    #[inline]
    pub(crate) fn instead(&self, point: Point) -> Option<Answer> {
        self.hooks.as_ref()?.instead(self, point)
    }
    /// A CPU in place of the one that the kernel would choose.
    #[inline]
    pub(crate) fn cpu_instead(&self, point: Point) -> Option<Placed> {
        match self.instead(point)? {
            Answer::Cpu(placed) => Some(placed),
            _ => None,
        }
    }
    /// The CPU where the task goes in the end, after hooks have seen the kernel's answer.
    #[inline]
    pub(crate) fn cpu_decided(&self, point: Point, own: Placed) -> Placed {
        match self.decided(point, Answer::Cpu(own)) {
            Answer::Cpu(placed) => placed,
            _ => own,
        }
    }
    /// Whether, where the kernel says `own` and its saying so changes nothing.
    #[inline]
    pub(crate) fn yes(&self, point: Point, own: bool) -> bool {
        match &self.hooks {
            None => own,
            Some(_) => self.ask_yes(point, own),
        }
    }
    /// Whether that part of a mechanism is gone through, which it is unless somebody minds.
    #[inline]
    pub(crate) fn does(&self, step: Step) -> bool {
        self.yes(Point::Step(step), true)
    }
    #[cold]
    fn ask_yes(&self, point: Point, own: bool) -> bool {
        let answer = self.instead(point).unwrap_or(Answer::Yes(own));
        matches!(self.decided(point, answer), Answer::Yes(true))
    }
    /// Lets hooks see the kernel's answer; returns it, or theirs.
    #[inline]
    pub(crate) fn decided(&self, point: Point, own: Answer) -> Answer {
        match &self.hooks {
            None => own,
            Some(hooks) => hooks.decided(self, point, own),
        }
    }
    /// Lets hooks see a value; returns it, or theirs.
    #[inline]
    pub(crate) fn hook<T>(&self, own: T, by: impl FnOnce(&dyn Hooks, T) -> T) -> T {
        match &self.hooks {
            None => own,
            Some(hooks) => by(hooks.as_ref(), own),
        }
    }
}

impl Machine {
    /// The time of the run.
    pub fn time(&self) -> Instant {
        self.now
    }
    /// The CPU that a task is on, or slept on (`task_cpu`).
    pub fn task_cpu(&self, task: TaskId) -> CpuId {
        self.task(task).cpu
    }
    /// The task that runs on a CPU; `None`: its idle task.
    pub fn running(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpu(cpu).curr
    }
    /// `nr_running` of a CPU.
    pub fn queued(&self, cpu: CpuId) -> usize {
        self.cpu(cpu).nr_running()
    }
    /// A task's name.
    pub fn comm(&self, task: TaskId) -> &str {
        let t: &Task = self.task(task);
        &t.comm
    }
    /// `arch_scale_cpu_capacity`.
    pub fn capacity(&self, cpu: CpuId) -> Capacity {
        let c: &Cpu = self.cpu(cpu);
        c.capacity
    }
    /// `policy->cur` of a CPU's policy.
    pub fn freq(&self, cpu: CpuId) -> KHz {
        self.domain_of(cpu).cur
    }
}
