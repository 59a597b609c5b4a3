//! The state of the simulated machine, and the questions one can ask it.
//!
//! Everything that decides (governors, placement, balancing) reads this through a shared
//! borrow; only the engine's operations ([`crate::kernel::core`], [`crate::kernel::fair`], [`crate::kernel::cpufreq`],
//! [`crate::kernel::balance`]) change it.
//!
//! ```text
//! Machine ── cpus[] ── Cpu      runqueue: clocks, EEVDF queue, PELT sums, uclamp, idle
//!         ├─ domains[] ─ FreqDomain   current, wanted and hardware frequency
//!         ├─ tasks[] ── Task    program, PELT, util_est, clamps
//!         └─ root domain: overutilized, nohz
//! ```

use crate::mech::perf_domain::state::Scale;
use crate::mech::slots::{CpuSlots, DomainSlots, Slots, TaskSlots};
use crate::state::class::Stopper;
use crate::state::class::{Class, ClassTimer, Classes, Sched};
use crate::state::class::{DlFrequency, DlRules};
use crate::state::costs::{Costs, Drawn, Names};
use crate::state::cpuset::CpuSet;
use crate::state::dice::Dice;
use crate::state::effects::Timer;
use crate::state::group::Groups;
use crate::state::hooks::{Busy, Hooks};
use crate::state::idle_governor::IdleGovernor;
use crate::state::idle_time::IdleTime;
use crate::state::needs::Kept;
pub(crate) use crate::state::start::{NohzKick, Start};
use crate::state::tally::Tally;
use crate::state::ticks::Ticks;
use crate::state::timers::{Timers, Wakees};
use crate::state::topology::{Place, RootDomain, SchedDomain};
use crate::state::tracker::Tracker;
use crate::state::wake_list::Wakee;
use risetime_kernel::cfs_rq::CfsRq;
use risetime_kernel::clock_pelt::{RqClock, freq_scale};
use risetime_kernel::cpu_util::CfsUtil;
use risetime_kernel::cpuidle::{IdleState, Limits};
use risetime_kernel::deadline::{BW_UNIT, DlEntity, DlRq};
use risetime_kernel::eevdf::Entity;
use risetime_kernel::fits::{CpuCapacities, Fit, util_fits_cpu, util_fits_cpu_from};
use risetime_kernel::opp::FreqTableEntry;
use risetime_kernel::pelt::{Decay, SchedAvg};
use risetime_kernel::pelt_cfs::CfsRqAvg;
use risetime_kernel::rt::{RtQueue, RtThrottle};
use risetime_kernel::uclamp::{Uclamp, UclampLimits, UclampRq, UclampTask, uclamp_eff};
use risetime_kernel::units::{
    Capacity, ClockPelt, CpuId, GroupId, Instant, KHz, SCHED_CAPACITY_SCALE, Span, TaskId, Util,
    Weight,
};
use risetime_kernel::util_est::UtilEst;
use risetime_kernel::{KernelRev, features};
use risetime_model::Platform;
use risetime_trace::{Event, Name, PressureClass};
use std::cell::Cell;
use std::sync::Arc;

/// Speeds are per ns in units of 2^-30 of full speed (capacity 1024, top frequency).
pub(crate) const SPEED_SHIFT: u32 = 30;

/// Time that the runqueues' clocks show at time 0, a multiple of a PELT period: the system has been
/// up for a while. (A `last_update_time` of 0 means "not attached" to the kernel.)
pub(crate) const UPTIME: Span = Span(1 << 40);

/// No speed is so high.
const NO_CLAMP: Util = Util(u64::MAX);

/// Returns the clamp, where 1024 is none: it forbids no boost OPP.
fn no_clamp_or(uclamp_max: Util) -> Util {
    if uclamp_max.0 >= SCHED_CAPACITY_SCALE { NO_CLAMP } else { uclamp_max }
}

/// The time at which a signal was last updated, as a trace has it: from the run's time 0.
pub(crate) fn from_time_0(avg: &SchedAvg) -> ClockPelt {
    ClockPelt(avg.last_update_time.0.wrapping_sub(UPTIME.0))
}

/// The event that tells of a CPU's `irq`, `rt` or `dl` signal as it is now.
pub(crate) fn pelt_pressure(cpu: CpuId, class: PressureClass, avg: &SchedAvg) -> Event {
    Event::PeltPressure {
        cpu,
        class,
        util_avg: avg.util_avg,
        util_sum: u64::from(avg.util_sum),
        period_contrib: avg.period_contrib,
        last_update_time: from_time_0(avg),
    }
}

/// The machine.
pub struct Machine {
    pub(crate) platform: Arc<Platform>,
    pub(crate) rev: KernelRev,
    pub(crate) now: Instant,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) domains: Vec<FreqDomain>,
    pub(crate) tasks: Vec<Task>,
    /// Number of tasks by name.
    pub(crate) names: Names,
    pub(crate) decay: &'static Decay,
    pub(crate) root: RootDomain,
    /// State that the classes above the fair one share.
    pub(crate) classes: Classes,
    pub(crate) tick: Span,
    /// The grid of ticks.
    pub(crate) ticks: Ticks,
    /// The task groups; none unless the workload has some.
    pub(crate) groups: Groups,
    /// The thread that creates tasks, if it is one of `tasks`; else it takes no time.
    pub(crate) creator: Option<TaskId>,
    /// A service's task, if there is one: a process of its own, of one thread.
    pub(crate) service: Option<TaskId>,
    /// The slice of a task that did not ask for another.
    pub(crate) base_slice: Span,
    /// Costs of what is not free.
    pub(crate) costs: Costs,
    /// Rules of deadline tasks: where they go, and what else may be ruled for them.
    pub(crate) rules: DlRules,
    /// NI_RANDOM, where it is on.
    pub(crate) ni_random: Option<Dice>,
    /// Counts of balancing, where they can be kept.
    pub(crate) tally: Option<Tally>,
    /// True if nothing in the experiment bends what a CPU needs ([`crate::state::plain`]).
    pub(crate) plain: bool,
    /// Balancing may see at a glance that there is nothing to move: always, but for a test.
    pub(crate) glances: bool,
    /// No reason is found for what nobody hears of: always, but for a test.
    pub(crate) unheard: bool,
    /// A util between two that led to the same OPP is known to lead there: always, but for a test.
    pub(crate) keeps_opp: bool,
    /// CPUs with `need_resched` set that are awake.
    pub(crate) need_resched: CpuSet,
    /// CPUs whose task is in a throttled group and has not left yet (`kernel/bandwidth.rs`).
    pub(crate) throttle_work: CpuSet,
    /// Start of the experiment.
    pub(crate) start: Start,
    /// The first task that a task of the workload created; all above it are forked, too.
    pub(crate) first_fork: Option<TaskId>,
    /// The first tick after the grid was moved.
    pub(crate) grid_first: Option<Instant>,
    /// Leaving an idle state takes no time, as on a virtual SoC.
    pub(crate) free_idle_exit: bool,
    /// Hooks that observe the machine, or bend it.
    pub(crate) hooks: Option<Box<dyn Hooks>>,
    /// Load tracker; `None`: PELT.
    pub(crate) tracker: Option<Box<dyn Tracker>>,
    /// State of the mechanisms ([`crate::mech`]).
    pub(crate) slots: Slots,
}

/// One CPU with its runqueue (`struct rq`).
///
/// In memory in this order: first what placement, balancing and governors read of one CPU after the
/// other, then what every event changes, last what few look at. On big machines, whose CPUs do not fit
/// into a cache, that halves what has to be fetched.
#[repr(C, align(64))]
pub(crate) struct Cpu {
    /// `arch_scale_cpu_capacity`.
    pub(crate) capacity: Capacity,
    /// `rq->cpu_capacity`: what rt, dl and irq leave of it.
    pub(crate) cpu_capacity: Capacity,
    /// `get_actual_cpu_capacity`: what limits of the frequency leave of it.
    pub(crate) actual: Capacity,
    /// `cfs_rq->avg.util_est`: the sum over queued tasks.
    pub(crate) util_est: Util,
    /// Util that other tasks add.
    /// DEVIATES(background_util): the tasks behind the setting take no CPU time and never wait. They
    /// raise frequencies and fill CPUs, but delay nobody.
    pub(crate) background_util: Util,
    /// `rq->misfit_task_load`; 0: none.
    pub(crate) misfit_task_load: u64,
    /// `rq->curr`; `None`: the idle task.
    pub(crate) curr: Option<TaskId>,
    /// Time since which `curr`'s progress has not been booked; until then it makes none, if that is
    /// to come.
    pub(crate) run_since: Instant,
    /// Time since which it is not told what was stolen from `curr`, and what `curr` has got on
    /// since.
    pub(crate) told: Instant,
    pub(crate) worked: Span,
    pub(crate) clock: RqClock,
    pub(crate) domain: usize,
    /// Place of the CPU among those of that domain, online or not.
    pub(crate) in_domain: usize,
    pub(crate) cfs_avg: CfsRqAvg,
    /// Counts changes of what it makes schedutil ask for ([`Cpu::needs_changed`]).
    pub(crate) needs_gen: u32,
    /// Needs by the short way, of one of these generations.
    pub(crate) kept: Cell<Kept>,
    pub(crate) idle: Option<Idle>,
    /// `rq->idle_stamp`: when it last had nothing to run, in its clock. Interrupts since then do not count.
    pub(crate) idle_stamp: Instant,
    /// `h_nr_queued` and `h_nr_runnable` of all levels, where queues are nested ([`crate::state::group`]);
    /// `None`: those of `cfs`.
    pub(crate) h_nr: Option<(u32, u32)>,
    /// Generation of the pending `WorkDone`.
    pub(crate) work_gen: u32,
    pub(crate) tick_gen: u32,
    /// A `Resched` or `TimerAwake` is on its way to this idle CPU.
    pub(crate) waking: bool,
    /// Number of threads of the core that have a task ([`crate::time::cost`]), where that matters.
    pub(crate) core_threads: u8,
    /// `rq->wake_list`: tasks that other CPUs have woken, and that this one is yet to queue.
    pub(crate) wake_list: Vec<Wakee>,
    /// True if the CPU wanted to reschedule before `irq_work_until`.
    pub(crate) resched_held: bool,
    /// The idle tick is off (`TS_FLAG_STOPPED`).
    pub(crate) tick_stopped: bool,
    pub(crate) cfs: CfsRq,
    pub(crate) rt_avg: SchedAvg,
    pub(crate) dl_avg: SchedAvg,
    /// Real-time tasks, and how much of their runtime they have used (before 6.12).
    pub(crate) rt: RtQueue,
    pub(crate) rt_throttle: RtThrottle,
    /// Deadline tasks, the sugov kthreads among them.
    pub(crate) dl: DlRq,
    /// Stopper of the CPU (`migration/N`), where that takes time.
    pub(crate) stopper: Option<Box<Stopper>>,
    /// The fair class's deadline server, since 6.12.
    pub(crate) fair_server: Option<Box<DlEntity>>,
    /// State of the mechanisms ([`crate::mech`]).
    pub(crate) slots: CpuSlots,
    /// Time up to which the current task is accounted for, where that is not the fair class's.
    pub(crate) exec_start: u64,
    /// Time until which the CPU handles the interrupt in which the governor wanted another
    /// frequency, and the irq work that wakes the kthread: only then does it reschedule.
    pub(crate) irq_work_until: Instant,
    /// Time at which an irq work that takes no time is yet to wake its kthread.
    pub(crate) irq_work_at: Option<Instant>,
    pub(crate) drawn: Drawn,
    /// `tick_nohz_get_idle_calls_cpu`.
    pub(crate) idle_calls: u64,
    /// Timers of the classes.
    pub(crate) class_timers: Timers<ClassTimer>,
    /// The timers of the tasks that sleep here.
    pub(crate) timers: Timers<TaskId>,
    pub(crate) sched_domains: Vec<SchedDomain>,
    /// Core and cache of the CPU.
    pub(crate) place: Place,
    /// `rq->next_balance`, in jiffies.
    pub(crate) next_balance: u64,
    /// Work that the CPU was kicked to do for the idle CPUs (`nohz_flags`).
    pub(crate) nohz_kick: NohzKick,
    /// `rq->has_blocked_load`, and the jiffy in which that was last aged.
    pub(crate) has_blocked_load: bool,
    pub(crate) last_blocked_update: u64,
    /// Tasks that the CPU's interrupts wake while it is idle.
    pub(crate) idle_wakees: Wakees,
    /// Whether the tick ended the last sleep since the CPU became idle.
    pub(crate) got_idle_tick: bool,
    /// Memory of cpuidle of this CPU's sleeps.
    pub(crate) idle_governor: Box<dyn IdleGovernor>,
    pub(crate) uclamp: UclampRq,
    pub(crate) idle_time: IdleTime,
    /// `CPUTIME_NICE`: ticks that found a task of a nice value above 0.
    pub(crate) nice_time: Span,
}

/// An idle CPU.
#[derive(Clone, Copy)]
pub(crate) struct Idle {
    /// Index into the platform's idle states; `None`: it has none.
    pub(crate) state: Option<u32>,
    pub(crate) since: Instant,
}

/// A frequency domain (`struct cpufreq_policy`).
pub(crate) struct FreqDomain {
    /// Online CPUs of the domain (`policy->cpus`); the last one stays when it goes.
    pub(crate) cpus: Vec<CpuId>,
    /// All of them (`policy->related_cpus`).
    pub(crate) related: Vec<CpuId>,
    /// The frequency table, ascending, with the inefficient OPPs marked.
    pub(crate) table: Vec<FreqTableEntry>,
    /// Scale of the domain: which capacity belongs to which frequency.
    pub(crate) scale: Scale,
    /// Work per ns of a CPU at each OPP, by frequency: see [`SPEED_SHIFT`].
    pub(crate) speeds: Vec<(KHz, u64)>,
    /// `policy->cur`: what the kernel believes and scales PELT with.
    pub(crate) cur: KHz,
    /// Frequency of the hardware.
    pub(crate) hw: KHz,
    /// `policy->min`, `policy->max`.
    pub(crate) min: KHz,
    pub(crate) max: KHz,
    /// Frequency that the hardware was asked for.
    pub(crate) hw_asked: KHz,
    /// The speed, of 1024, that a task without a clamp gets within the limits with which the machine starts: the highest
    /// frequency of these.
    pub(crate) max_speed: Util,
    pub(crate) limit_at_start: KHz,
    /// Frequency that the governor wants (`sg_policy->next_freq`).
    pub(crate) wanted: KHz,
    /// `arch_scale_freq_invariant`.
    pub(crate) freq_invariant: bool,
    /// `arch_freq_scale`: cur · 1024 / freq_max, rounded down; 1024 without invariance.
    pub(crate) freq_scale: u64,
    /// Full-capacity speed of `hw`, see [`SPEED_SHIFT`].
    pub(crate) speed: u64,
    /// Work per ns of each kind of work at each OPP; empty: the platform knows no kinds.
    pub(crate) kinds: Vec<Vec<u64>>,
    /// Work per ns at `hw`, by kind.
    pub(crate) kind_speed: Vec<u64>,
    pub(crate) fast_switch: bool,
    /// Frequency that the hardware (or the kthread) is changing to.
    pub(crate) target: KHz,
    pub(crate) change_gen: u32,
    /// Idle states, the shallowest first.
    pub(crate) idle: Vec<IdleState>,
    /// Limits on the idle states that may be taken.
    pub(crate) idle_limits: Limits,
    /// Thread that changes frequencies where the driver cannot do it at once: the sugov kthread, or
    /// of the workers the one that is at it.
    pub(crate) kthread: Option<TaskId>,
    /// Time before which the kthread's CPU does not look for the next task, once the kthread has
    /// woken.
    pub(crate) kthread_due: Instant,
    /// Workers of governors whose work goes to those of the CPUs (`kworker`), by place in the
    /// policy.
    pub(crate) workers: Vec<TaskId>,
    /// `sg_policy->work_in_progress`.
    pub(crate) work_in_progress: bool,
    /// The kthread has taken up `target` and goes to the driver next.
    pub(crate) driver_due: bool,
    /// The kthread waits in the driver.
    pub(crate) in_driver: bool,
    /// The governor's timers, by place in the policy.
    pub(crate) timers: Vec<GovernorTimer>,
    /// True if the governor hears of more than util (`Governor::attends`).
    pub(crate) attends: bool,
    /// The governor wants its kthread to ask it; the kthread is at that.
    pub(crate) work_asked: bool,
    pub(crate) works: bool,
    /// State of the mechanisms ([`crate::mech`]).
    pub(crate) slots: DomainSlots,
}

/// A governor's timer on one CPU.
#[derive(Clone, Copy, Default)]
pub(crate) struct GovernorTimer {
    pub(crate) set: Option<Timer>,
    /// Number of times that the timer was set.
    pub(crate) generation: u32,
    /// True if the timer has expired while its CPU was idle, and is deferrable.
    pub(crate) deferred: bool,
}

/// State of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// The task is not created yet.
    New,
    /// Runnable: queued or running.
    Runnable,
    /// Asleep (its entity may still be queued as `sched_delayed`).
    Sleeping,
    /// Woken, and on the wake list of its CPU (`TASK_WAKING`).
    Waking,
    /// Gone.
    Exited,
}

/// Work that a runnable task still has in its current step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Todo {
    /// The task has nothing to do: the program is asked.
    Nothing,
    /// This much work, in full-speed ns << [`SPEED_SHIFT`].
    Work(u128),
    /// Run pieces of work until one ends then or later.
    Pieces {
        /// Time that has to have come.
        until: Instant,
        /// Work of a piece, in full-speed ns << [`SPEED_SHIFT`].
        piece: u64,
        /// Work that is left of the piece under way, at least 1.
        left: u64,
    },
    /// Run for this long, at whatever speed.
    Time(Span),
}

/// A task.
///
/// In memory in this order, as [`Cpu`]: first what every wakeup reads and writes.
#[repr(C, align(64))]
pub(crate) struct Task {
    pub(crate) state: State,
    pub(crate) nice: i8,
    /// Runnable, but off every queue until its group gets new quota (`p->throttled`).
    pub(crate) throttled: bool,
    /// `task_cpu(p)`.
    pub(crate) cpu: CpuId,
    pub(crate) timer_gen: u32,
    /// The group that it is in, and the clamps that this allows.
    pub(crate) group: GroupId,
    pub(crate) util_est: UtilEst,
    pub(crate) nr_cpus_allowed: u32,
    /// CPU that the last search for an idle CPU found.
    pub(crate) recent_used_cpu: CpuId,
    pub(crate) weight: Weight,
    /// Running number of when the task last was queued or picked: the order of `rq->cfs_tasks`.
    pub(crate) listed: u64,
    /// `sum_exec_runtime` when it last fell asleep.
    pub(crate) slept_at: u64,
    /// `p->max_allowed_capacity`.
    pub(crate) max_allowed_capacity: Capacity,
    pub(crate) avg: SchedAvg,
    /// Time from which on any timer interrupt wakes the task.
    pub(crate) soft_expiry: Instant,
    /// A wakeup that is under way was due then.
    pub(crate) due: Option<Instant>,
    pub(crate) todo: Todo,
    /// Kind of that work (`RunOf`), 0 the plain work.
    pub(crate) kind: u16,
    pub(crate) drawn: Drawn,
    pub(crate) wakees: Wakees,
    pub(crate) role: Role,
    /// Policy and class of the task.
    pub(crate) sched: Sched,
    /// Entity of the task while it is off every queue.
    pub(crate) entity: Option<Entity>,
    pub(crate) uclamp: UclampTask,
    pub(crate) limits: UclampLimits,
    pub(crate) allowed: CpuSet,
    pub(crate) comm: Name,
    /// The clamps that it asked for, in force or not (`Cause::Clamps`).
    pub(crate) asked: Uclamp,
    /// The group to which it moves as its first act.
    pub(crate) moves_to: Option<GroupId>,
    /// State of the mechanisms ([`crate::mech`]).
    pub(crate) slots: TaskSlots,
    /// The cache that it last ran under, and how long it still has to wait for that of its CPU.
    pub(crate) ran_under: Option<CpuId>,
    pub(crate) cold: Span,
    /// CPU to which the timer went when the CPU that the task sleeps on went offline.
    pub(crate) timer_cpu: Option<CpuId>,
    pub(crate) max_speed: Util,
    /// [`Machine::speed_limits`] as it was told; `None`: nothing is taken from it.
    pub(crate) speed_limits: Option<(Util, Util)>,
    /// Time from which the timers count, where that is not when the task first runs.
    pub(crate) timers_from: Option<Instant>,
    /// Time after it has taken its policy at which the program begins; 0: as long as a call takes.
    pub(crate) begins_in: Span,
    /// The CPUs to which it binds itself when it first runs.
    pub(crate) binds_itself: Option<Box<CpuSet>>,
}

/// Kind of a task.
pub(crate) enum Role {
    /// A task of the workload: its program is in user space.
    User,
    /// The kthread that changes this domain's frequency.
    Sugov(usize),
    /// A CPU's `migration/N` (`kernel/class/stop.rs`).
    Stopper,
    /// The thread that creates the tasks, where another trace is replayed.
    Creator,
}

impl Machine {
    #[inline]
    pub(crate) fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu.index()]
    }
    #[inline]
    pub(crate) fn cpu_mut(&mut self, cpu: CpuId) -> &mut Cpu {
        if let Some(tally) = &mut self.tally {
            tally.touch(cpu);
        }
        let c = &mut self.cpus[cpu.index()];
        c.needs_changed();
        c
    }
    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }
    #[inline]
    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }
    #[inline]
    pub(crate) fn domain_of(&self, cpu: CpuId) -> &FreqDomain {
        &self.domains[self.cpu(cpu).domain]
    }
    /// `sched_clock()`: what a runqueue's clock shows when it is brought up to now.
    #[inline]
    pub(crate) fn sched_clock(&self) -> Instant {
        self.now + UPTIME
    }
    /// The current jiffy: ticks since the grid's start.
    #[inline]
    pub(crate) fn jiffies(&self) -> u64 {
        self.ticks.jiffy(self.now, self.tick).1
    }
    /// The first tick of the grid after now.
    #[inline]
    pub(crate) fn next_tick(&self) -> Instant {
        Instant(self.ticks.jiffy(self.now, self.tick).0.wrapping_add(self.tick.0))
    }
    /// Converts `ms` to jiffies, rounded up (`msecs_to_jiffies`).
    pub(crate) fn msecs_to_jiffies(&self, ms: u64) -> u64 {
        (ms * u64::from(self.platform.hz)).div_ceil(1000)
    }
    /// `is_cpu_allowed`: it is online, and the task's affinity names it.
    pub(crate) fn is_cpu_allowed(&self, task: TaskId, cpu: CpuId) -> bool {
        self.task(task).allowed.contains(cpu) && self.root.online.contains(cpu)
    }
    /// `idle_cpu`
    #[inline]
    pub(crate) fn idle_cpu(&self, cpu: CpuId) -> bool {
        self.cpu(cpu).is_idle()
    }
    /// `cpus_share_cache`.
    pub(crate) fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool {
        self.cpu(a).place.llc_id == self.cpu(b).place.llc_id
    }
    /// The factors by which load tracking scales a CPU's time, or what it adds: capacity, and
    /// frequency of 1024.
    pub(crate) fn scale_of(&self, cpu: CpuId) -> (Capacity, u64) {
        let own = (self.cpu(cpu).capacity, self.domain_of(cpu).freq_scale);
        self.hook(own, |h, own| h.scale(own))
    }
    /// `capacity_of`.
    #[inline]
    pub(crate) fn capacity_of(&self, cpu: CpuId) -> Capacity {
        self.cpu(cpu).cpu_capacity
    }
    /// s_max of a task, of 1024: the best it may get by affinity, by `uclamp_max` (rounded up to
    /// an OPP) and by the limits with which the machine starts.
    pub(crate) fn max_speed(&self, task: TaskId) -> Util {
        let t = self.task(task);
        let most = uclamp_eff(t.asked, &self.groups.limits(t.group)).max;
        let best = |cpu: CpuId| {
            let d = self.domain_of(cpu);
            if most.0 == SCHED_CAPACITY_SCALE { d.max_speed } else { d.max_speed(most) }
        };
        t.allowed.iter().map(best).max().unwrap_or(Util(0))
    }
    /// The most speed, of 1024, that its affinity leaves a task, and its affinity and `uclamp_max` together; `None` where
    /// they take nothing from it.
    pub(crate) fn speed_limits(&self, task: TaskId) -> Option<(Util, Util)> {
        let t = self.task(task);
        let most = no_clamp_or(uclamp_eff(t.asked, &self.groups.limits(t.group)).max);
        if most == NO_CLAMP && t.allowed.len() == self.cpus.len() {
            return None;
        }
        let best = |clamp: Util| {
            let of = |cpu: CpuId| {
                let d = self.domain_of(cpu);
                d.max_speed_within(d.freq_max(), clamp)
            };
            t.allowed.iter().map(of).max().unwrap_or(Util(0))
        };
        let (limits, full) = ((best(NO_CLAMP), best(most)), self.full_speed());
        Some(limits).filter(|limits| *limits != (full, full))
    }
    /// The most speed, of 1024, that any task may have here.
    pub(crate) fn full_speed(&self) -> Util {
        let best = |d: &FreqDomain| d.max_speed_within(d.freq_max(), NO_CLAMP);
        self.domains.iter().map(best).max().unwrap_or(Util(0))
    }
    /// Tells what a CPU has of the workload's tasks: to run, those that are just being enqueued or
    /// dequeued counted; of deadline tasks also those that sleep there.
    pub(crate) fn busy(&self, cpu: CpuId) -> Busy {
        let c = self.cpu(cpu);
        let deadline = |t: &Task| {
            t.cpu == cpu
                && t.sched.class() == Class::Deadline
                && !t.is_kthread()
                && !matches!(t.state, State::New | State::Exited)
        };
        let work = c.has_work() || !c.rt.is_empty();
        Busy { work, deadline: self.tasks.iter().any(deadline) }
    }
    /// Whether a task of the workload created this one.
    pub(crate) fn is_fork(&self, task: TaskId) -> bool {
        self.first_fork.is_some_and(|first| task >= first)
    }
    /// The time from a wakeup of `cpu` at `at` until it has left its idle state: the rest of the way in, and the way out.
    ///
    /// DEVIATES(idle-abort): where a part of an entry can be given up (`wakeup_latency_us` is less than entry and exit), a wakeup
    /// within it takes that longest time; how soon such an entry is over, no source says. A wakeup in the first µs of an entry
    /// comes later than on such hardware.
    ///
    /// DEVIATES(idle-cluster): the firmware decides by what all CPUs have asked for, as in PSCI's platform-coordinated mode; in
    /// OS-initiated mode (`domain-idle-states` of a power domain) Linux's own governor decides for the cluster, by the next timer
    /// of all its CPUs. Here a cluster goes into its state also for a sleep that is too short for it.
    ///
    /// DEVIATES(idle-cluster-up): a CPU that is woken while another one of its cluster is on its way out waits for the whole way
    /// out of the cluster's state, not for the rest. It is late by up to the difference, where two wakeups fall into one exit.
    pub(crate) fn exit_latency(&self, cpu: CpuId, idle: Idle, at: Instant) -> Span {
        let domain = self.cpu(cpu).domain;
        let states = &self.platform.domains[domain].idle;
        let Some(asked) = idle.state.map(|i| i as usize).filter(|i| *i < states.len()) else {
            return Span(0);
        };
        if self.free_idle_exit {
            return Span(0);
        }
        if states[asked].together.is_none() {
            return states[asked].way_out(at.since(idle.since));
        }
        // An offline CPU is in its deepest state.
        let of = |cpu: CpuId| match self.cpu(cpu).idle {
            _ if !self.root.online.contains(cpu) => Some(usize::MAX),
            other => other.and_then(|idle| idle.state).map(|i| i as usize),
        };
        let state = self.platform.idle_in(domain, asked, of);
        // The last one takes all of them there.
        let others = self.platform.asleep_together(domain, state);
        let entered = others.filter_map(|cpu| Some(self.cpu(cpu).idle?.since)).max();
        let entered = entered.unwrap_or(idle.since).max(idle.since);
        states[state].way_out(at.since(entered))
    }
    /// The release whose forms of balancing this machine has.
    #[inline]
    pub(crate) fn lb_rev(&self) -> KernelRev {
        self.hook(self.rev, |h, own| h.balance_rev(own))
    }
    /// The CPU on which a task's timer expires; `None`: a kthread whose policy has no CPU left.
    pub(crate) fn timer_cpu(&self, task: TaskId) -> Option<CpuId> {
        let t = self.task(task);
        let cpu = t.timer_cpu.unwrap_or(t.cpu);
        (self.root.online.contains(cpu)).then_some(cpu)
    }
    /// The number of a CPU of this machine.
    pub(crate) fn id_of(&self, c: &Cpu) -> CpuId {
        self.domains[c.domain].related[c.in_domain]
    }
}

impl Task {
    /// Sets its affinity, and with it the highest capacity it may run on.
    pub(crate) fn set_allowed(&mut self, cpus: &[Cpu], allowed: CpuSet) {
        let capacity = allowed.iter().map(|c| cpus[c.index()].capacity).max().unwrap_or_default();
        (self.nr_cpus_allowed, self.allowed, self.max_allowed_capacity) =
            (allowed.len() as u32, allowed, capacity);
    }
    /// Whether it is a kthread that changes frequencies.
    pub(crate) fn is_kthread(&self) -> bool {
        matches!(self.role, Role::Sugov(_))
    }
    /// The task's effective clamps (`uclamp_eff_value`): what its group leaves of its request.
    #[inline]
    pub(crate) fn clamps(&self) -> Uclamp {
        self.uclamp.uclamp_eff_value(&self.limits)
    }
}

impl FreqDomain {
    /// The speed, of 1024, of a task clamped to `uclamp_max` on one of its CPUs, within the limits with which the machine
    /// starts (`platform::max_speed`).
    pub(crate) fn max_speed(&self, uclamp_max: Util) -> Util {
        self.max_speed_within(self.limit_at_start, no_clamp_or(uclamp_max))
    }
    /// The highest speed at no more than `limit`, as far as `uclamp_max` asks for it.
    fn max_speed_within(&self, limit: KHz, uclamp_max: Util) -> Util {
        let of = |(_, speed): &(KHz, u64)| Util((speed * SCHED_CAPACITY_SCALE) >> SPEED_SHIFT);
        let within = || self.speeds.iter().filter(|(freq, _)| *freq <= limit).map(of);
        let enough = within().find(|s| *s >= uclamp_max);
        enough.or(within().next_back()).unwrap_or(Util(0))
    }
    /// The work per ns of a CPU at `freq`: at the OPP, or at the next one above.
    pub(crate) fn speed_at(&self, freq: KHz) -> u64 {
        let at = self.speeds.iter().find(|(own, _)| *own >= freq).or(self.speeds.last());
        at.map_or(1, |(_, speed)| *speed)
    }
    /// The factor by which PELT's clock is scaled at a frequency, of 1024.
    pub(crate) fn freq_scale(&self, freq: KHz) -> u64 {
        // Known by counters, at ticks; at the start the CPU has been at this frequency for long.
        if let Some(perf) = self.slots.pstate.as_ref().filter(|_| self.freq_invariant) {
            let long = perf.scale_at(freq).unwrap_or(SCHED_CAPACITY_SCALE);
            return if self.freq_scale == 0 { long } else { self.freq_scale };
        }
        match self.scale.kept(freq) {
            _ if !self.freq_invariant => SCHED_CAPACITY_SCALE,
            Some(own) => own.0 * SCHED_CAPACITY_SCALE / self.scale.kept_at_ref().0.max(1),
            None => freq_scale(freq, self.scale.freq_ref),
        }
    }
    /// `policy->cpuinfo.max_freq`.
    pub(crate) fn freq_max(&self) -> KHz {
        self.scale.cpuinfo_max
    }
}

impl Cpu {
    /// The fair class's signals with what other tasks add ([`Machine::cfs_util`]).
    #[inline]
    pub(crate) fn plain_cfs(&self) -> CfsUtil {
        CfsUtil {
            util_avg: self.cfs_avg.avg.util_avg + self.background_util,
            runnable_avg: self.cfs_avg.avg.runnable_avg + self.background_util,
            util_est: self.util_est,
        }
    }
    /// Notes that what goes into [`Cpu::plain_needs`] may be another from now on: code that keeps
    /// them asks again.
    #[inline]
    pub(crate) fn needs_changed(&mut self) {
        self.needs_gen = self.needs_gen.wrapping_add(1);
    }
    /// The capacities a fit is judged by.
    #[inline]
    pub(crate) fn capacities(&self) -> CpuCapacities {
        CpuCapacities {
            capacity_of: self.cpu_capacity,
            original: self.capacity,
            actual: self.actual,
        }
    }
    /// `util_fits_cpu`.
    #[inline]
    pub(crate) fn util_fits(&self, util: Util, min: Util, max: Util) -> Fit {
        let vendor = self.slots.pixel.fits(util, Uclamp { min, max }, self.capacities());
        if let Some(fits) = vendor {
            return if fits { Fit::Fits } else { Fit::DoesNotFit };
        }
        match self.slots.series.fits(util, self.cpu_capacity) {
            Some(fits) => util_fits_cpu_from(fits, util, min, max, self.capacities(), true),
            None => util_fits_cpu(util, min, max, self.capacities(), true),
        }
    }
    /// `idle_cpu`: nothing runs, nothing is queued and nothing is about to be.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.curr.is_none() && self.nr_running() == 0 && self.wake_list.is_empty()
    }
    /// Whether it has one of the workload's tasks to run. One that is just being enqueued
    /// counts (its clamps do already), and so does one that is just being dequeued.
    pub(crate) fn has_work(&self) -> bool {
        let muqss = self.slots.muqss.as_ref().is_some_and(|rq| rq.nr_running() > 0);
        self.h_nr_runnable() > 0 || !self.uclamp.uclamp_rq_is_idle() || muqss
    }
    /// The number of fair tasks that want to run, those of groups counted (`cfs.h_nr_runnable`).
    #[inline]
    pub(crate) fn h_nr_runnable(&self) -> usize {
        self.h_nr.map_or_else(|| self.cfs.nr_runnable(), |(_, runnable)| runnable as usize)
    }
    /// The number of fair tasks that are queued, those whose dequeue is delayed counted, too
    /// (`cfs.h_nr_queued`).
    #[inline]
    pub(crate) fn h_nr_queued(&self) -> usize {
        self.h_nr.map_or_else(|| self.cfs.nr_queued(), |(queued, _)| queued as usize)
    }
    /// The number of fair tasks that load balancing counts: until 6.13 also those whose dequeue is
    /// delayed (`h_nr_running`, then `h_nr_runnable`).
    #[inline]
    pub(crate) fn fair_queued(&self, rev: KernelRev) -> usize {
        if rev.has(features::H_NR_RUNNABLE) { self.h_nr_runnable() } else { self.h_nr_queued() }
    }
    /// Whether tasks of classes between real-time and fair may come here.
    pub(crate) fn serves_between(&self) -> bool {
        self.slots.high.is_some() || self.slots.overcommit.is_some()
    }
    /// Whether a fair task that could run does not.
    #[inline]
    pub(crate) fn fair_waits(&self) -> bool {
        self.h_nr_runnable() > 0
    }

    /// `rq->nr_running`: fair tasks, also those asleep whose dequeue is delayed, RT tasks unless they
    /// are throttled or their group's server is, deadline tasks that are not, the stopper, those of SCHED_HIGH, and those of SCHED_OVERCOMMIT whose time has come.
    #[inline]
    pub(crate) fn nr_running(&self) -> usize {
        let rt = if self.rt_throttle.throttled { 0 } else { self.rt.len() };
        let stop = self.stopper.as_ref().is_some_and(|s| s.queued());
        let muqss = self.slots.muqss.as_ref().map_or(0, |rq| rq.nr_running());
        let high = self.slots.high.as_ref().map_or(0, |high| high.nr_queued());
        let overcommit = self.slots.overcommit.as_ref().map_or(0, |queue| queue.class.eligible());
        self.h_nr_queued()
            + rt
            + self.slots.rt_groups.nr_served()
            + muqss
            + self.dl.tasks()
            + usize::from(stop)
            + high
            + overcommit
    }
    /// The bandwidth that deadline tasks and those of SCHED_OVERCOMMIT are promised, 2²⁰ = a CPU of
    /// capacity 1024.
    #[inline]
    pub(crate) fn promised_bw(&self, by: Option<DlFrequency>) -> u64 {
        let asked = self.slots.overcommit.as_ref().map_or(0, |queue| queue.class.asked_now());
        self.promised_to_deadline(by) + asked.min(BW_UNIT)
    }
}
