//! The events of a trace, each with the reason of the decision where there was one.

use risetime_kernel::eevdf::Place;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, GroupId, KHz, Span, TaskId, Util};
use risetime_model::workload::{JobMark, Policy};

/// One thing that happened. Names follow the kernel's tracepoints where there is one.
///
/// `last_update_time` of a signal counts from the run's time 0 as the trace does (modulo 2^64: it
/// may lie before), in the clock of its CPU: `clock_pelt`, for irq the plain one. An event of time
/// 0 may tell of an update before it, which is then the last one there was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A task was created on `cpu` and became runnable (`sched_wakeup_new`).
    TaskNew {
        /// The task.
        task: TaskId,
        /// Its name.
        comm: &'a str,
        /// Whether the workload asked for it (else it is the system's: a `sugov` kthread).
        user: bool,
        /// Where.
        cpu: CpuId,
        /// Why there.
        why: Why,
        /// The largest speed this task may ever get by affinity, `uclamp_max` (rounded up
        /// to an OPP) and frequency limits, of 1024: s_max. May be renewed by `MaxSpeed`.
        max_speed: Util,
    },
    /// What the task may get at most has changed (affinity, clamp or limit).
    MaxSpeed {
        /// The task.
        task: TaskId,
        /// The most speed that it may ever have, of 1024.
        max_speed: Util,
    },
    /// What its affinity alone leaves the task, and affinity and `uclamp_max` together: what is below that in its most
    /// speed is user space's limit on the frequency. Not told where neither takes anything.
    SpeedLimits {
        /// The task.
        task: TaskId,
        /// By its affinity, of 1024; more where boost OPPs are allowed.
        affinity: Util,
        /// By its affinity and `uclamp_max`, likewise.
        clamped: Util,
    },
    /// The task is under another policy than SCHED_OTHER from its creation, or under another one
    /// than before from now on.
    Policy {
        /// The task.
        task: TaskId,
        /// Its policy.
        policy: Policy,
    },
    /// A sleeping task became runnable on `cpu` (`sched_wakeup`).
    Wakeup {
        /// The task.
        task: TaskId,
        /// Where it was queued.
        cpu: CpuId,
        /// Why there.
        why: Why,
    },
    /// The next wakeup of the task was due so long ago: its timer expired then, or another task woke it. Told before that
    /// wakeup where some time lies between (the way out of an idle state, timer slack, an interrupt); no kernel tells.
    Due {
        /// The task.
        task: TaskId,
        /// How long ago.
        ago: Span,
    },
    /// The task that runs on `cpu` has had the CPU for so long without getting on, since it came or this was last told: the switch to
    /// it, a tick, waking others, caches that it had to fill. Handlers that are told of ([`Event::Irq`]) are not in it; no kernel
    /// tells.
    Stolen {
        /// The CPU.
        cpu: CpuId,
        /// How long.
        span: Span,
    },
    /// `cpu` went from `prev` to `next`; `None` is the idle task (`sched_switch`).
    Switch {
        /// The CPU.
        cpu: CpuId,
        /// Who ran, and how it left.
        prev: Option<(TaskId, SwitchOut)>,
        /// Who runs now.
        next: Option<TaskId>,
    },
    /// A task that is runnable (or wakes) changed CPU (`sched_migrate_task`).
    Migrate {
        /// The task.
        task: TaskId,
        /// From where.
        from: CpuId,
        /// To where.
        to: CpuId,
        /// Why.
        why: Why,
    },
    /// A task entered a phase of its workload.
    Phase {
        /// The task.
        task: TaskId,
        /// Its index.
        index: u32,
        /// Its name.
        name: &'a str,
    },
    /// The task begins an event of its program, or has come to its end (only where that was asked
    /// for). What comes between two of them is the same at any speed.
    Step {
        /// The task.
        task: TaskId,
        /// Events begun so far, those that took no time counted.
        number: u64,
    },
    /// The task begins a job, is done with it, or hands it on.
    Job {
        /// The task.
        task: TaskId,
        /// What.
        mark: JobMark,
    },
    /// The hardware of `cpu`'s frequency domain now runs at `freq` (`cpu_frequency`; one event
    /// per domain, `cpu` is its first).
    Freq {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The frequency.
        freq: KHz,
    },
    /// The governor evaluated the domain of `cpu`: what it saw and what it decided.
    FreqRequest {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The effective util (headroom included) of the decisive CPU.
        util: Util,
        /// The frequency it wants after the decision (an OPP).
        freq: KHz,
        /// Why this one, or why no change.
        why: Why,
    },
    /// `cpu` entered idle state `state` (index into the platform's list), or left idle
    /// (`cpu_idle`).
    Idle {
        /// The CPU.
        cpu: CpuId,
        /// The state; `None`: left.
        state: Option<u32>,
    },
    /// The task's PELT signals were updated (`pelt_se_tp`).
    PeltTask {
        /// The task.
        task: TaskId,
        /// Where it is attached.
        cpu: CpuId,
        /// `se->avg.util_avg`.
        util_avg: Util,
        /// `se->avg.runnable_avg`.
        runnable_avg: Util,
        /// `se->avg.util_sum`.
        util_sum: u64,
        /// `se->avg.period_contrib`.
        period_contrib: u32,
        /// `se->avg.last_update_time`.
        last_update_time: ClockPelt,
    },
    /// The task's `util_est` changed (`sched_util_est_se_tp`).
    UtilEst {
        /// The task.
        task: TaskId,
        /// `se->avg.util_est` without its flag bit.
        util_est: Util,
    },
    /// How long the task waits, recently, has changed (RFC 00/16's `waiting_avg`; only where that
    /// is switched on).
    WaitingAvg {
        /// The task.
        task: TaskId,
        /// `se->avg.waiting_avg`.
        waiting_avg: Util,
    },
    /// The CPU's cfs signals were updated (`pelt_cfs_tp` of its own runqueue, no group's).
    PeltCfs {
        /// The CPU.
        cpu: CpuId,
        /// `cfs_rq->avg.util_avg`.
        util_avg: Util,
        /// `cfs_rq->avg.runnable_avg`.
        runnable_avg: Util,
        /// `cfs_rq->avg.util_est`.
        util_est: Util,
        /// `cfs_rq->avg.util_sum`.
        util_sum: u64,
        /// `cfs_rq->avg.period_contrib`.
        period_contrib: u32,
        /// `cfs_rq->avg.last_update_time`.
        last_update_time: ClockPelt,
    },
    /// The CPU's real-time, deadline or irq signal was updated (`pelt_rt_tp` and siblings).
    PeltPressure {
        /// The CPU.
        cpu: CpuId,
        /// `rt`, `dl`, `irq`, `hw`.
        class: &'static str,
        /// Its `util_avg`.
        util_avg: Util,
        /// Its `util_sum`.
        util_sum: u64,
        /// Its `period_contrib`.
        period_contrib: u32,
        /// Its `last_update_time`.
        last_update_time: ClockPelt,
    },
    /// What is left of the CPU after irq, rt and dl (`sched_cpu_capacity_tp`).
    CpuCapacity {
        /// The CPU.
        cpu: CpuId,
        /// `rq->cpu_capacity`.
        capacity: Capacity,
    },
    /// The root domain's overutilized flag changed (`sched_overutilized_tp`).
    Overutilized {
        /// Its new value.
        on: bool,
    },
    /// A CPU comes online or goes offline.
    Hotplug {
        /// The CPU.
        cpu: CpuId,
        /// Whether it comes.
        online: bool,
    },
    /// A deadline task's runtime is used up, or that of the server of a real-time task's group; or the next period's has come
    /// (`dl_throttled`).
    Throttled {
        /// The task.
        task: TaskId,
        /// Whether it is used up.
        on: bool,
    },
    /// An interrupt's handler begins to keep `cpu` from its task, or from idling, or is done
    /// (`irq_handler_entry`, `irq_handler_exit`).
    Irq {
        /// The CPU.
        cpu: CpuId,
        /// Whether it begins.
        enters: bool,
    },
    /// What `cpu` runs is another kind of work from now on than that with which a task comes to a CPU, which is the plain one;
    /// no kernel tells.
    Work {
        /// The CPU.
        cpu: CpuId,
        /// By its number on the platform, from 1; 0: plain work.
        kind: u32,
    },
    /// `rq->misfit_task_load` became non-zero (`task` given) or zero.
    Misfit {
        /// The CPU.
        cpu: CpuId,
        /// The task that does not fit.
        task: Option<TaskId>,
    },
    /// A thermal zone's sensor was read (`thermal_temperature`).
    Temperature {
        /// The zone, by its place in the platform.
        zone: u32,
        /// What it read.
        millicelsius: u32,
    },
    /// Cooling changed the highest frequency of `cpu`'s domain (`cdev_update`).
    Cooling {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The highest frequency that is left (`policy->max`).
        max: KHz,
        /// The zone that was looked at.
        zone: u32,
    },
    /// The limits of `cpu`'s policy have changed (`cpu_frequency_limits`).
    CpuFrequencyLimits {
        /// First CPU of the domain.
        cpu: CpuId,
        /// `policy->min`.
        min: KHz,
        /// `policy->max`.
        max: KHz,
    },
    /// Somebody lets `cpu`'s domain go no faster than this from now on.
    Capped {
        /// First CPU of the domain.
        cpu: CpuId,
        /// Who.
        by: Limit,
        /// The highest OPP that is left; `None`: all, from now on.
        max: Option<KHz>,
    },
    // What tasks are, told where somebody wants to see it ([`Hears::Attributes`](crate::Hears)).
    /// The task's priority, when it is first heard of and whenever it has changed (`p->prio`); also told with a
    /// kernel's decisions.
    Prio {
        /// The task.
        task: TaskId,
        /// -1 of the deadline class, 0 to 99 of the real-time class, 100 to 139 of the fair one
        /// (120 + nice).
        prio: i32,
    },
    /// The task's clamps, as its group leaves them (`uclamp_eff_value`): likewise, where clamps are used.
    Clamps {
        /// The task.
        task: TaskId,
        /// Those in force.
        clamps: Uclamp,
    },
    /// The clamps of a CPU have changed: the largest of its runnable tasks (`rq->uclamp`).
    CpuClamps {
        /// The CPU.
        cpu: CpuId,
        /// Those in force.
        clamps: Uclamp,
    },
    // A kernel's decisions, and the state behind them: told where that was asked for.
    /// `try_to_wake_up` begins for the task, before a CPU is chosen (`sched_waking`). Not told of a
    /// task's first wakeup, which it becomes known by.
    Waking {
        /// The task.
        task: TaskId,
        /// The CPU that wakes it.
        by: CpuId,
    },
    /// Where the task stands in its runqueue (`p->se`): with each [`PeltTask`](Event::PeltTask), when
    /// it has been queued, and when it begins or ends to run. 6.1 has `vruntime` and a weight only.
    Entity {
        /// The task.
        task: TaskId,
        /// There.
        place: Place,
    },
    /// Where a task group stands in the queue of the group above, where groups have queues of their own (before 7.3):
    /// with each change of its signals, and when one of its tasks has been queued, begins or ends to run.
    GroupEntity {
        /// The CPU.
        cpu: CpuId,
        /// The group, by its place in the workload.
        group: GroupId,
        /// There (`tg->se[cpu]`).
        place: Place,
    },
    /// Where a task group's own queue counts from, with each change of its signals.
    GroupQueue {
        /// The CPU.
        cpu: CpuId,
        /// The group, by its place in the workload.
        group: GroupId,
        /// `tg->cfs_rq[cpu]->zero_vruntime`, which was `min_vruntime` before.
        min_vruntime: u64,
    },
    /// A group's quota is used up on a CPU, or has been refilled there; the groups inside are told with it, behind it and
    /// before it (`tg_throttle_down`, `tg_unthrottle_up`). Where that takes the group from its queue (before 6.18).
    GroupThrottled {
        /// The CPU.
        cpu: CpuId,
        /// The group, by its place in the workload.
        group: GroupId,
        /// Whether it is used up.
        on: bool,
    },
    /// What a group's quota came to, at the run's end (`cpu.stat`).
    Quota {
        /// The group, by its place in the workload.
        group: GroupId,
        /// There.
        stat: QuotaStat,
    },
    /// The load of a task, with each [`PeltTask`](Event::PeltTask).
    TaskLoad {
        /// The task.
        task: TaskId,
        /// `se->avg.load_avg`: weight by share of time.
        load_avg: u64,
        /// `se->avg.load_sum`: without the weight.
        load_sum: u64,
    },
    /// The load of a CPU's fair tasks (`rq->cfs`), with each [`PeltCfs`](Event::PeltCfs).
    CfsLoad {
        /// The CPU.
        cpu: CpuId,
        /// `cfs_rq->avg.load_avg`.
        load_avg: u64,
        /// `cfs_rq->avg.load_sum`.
        load_sum: u64,
    },
    /// Where the fair runqueue of the CPU stands (`rq->cfs`, no group's): with each
    /// [`PeltCfs`](Event::PeltCfs), and when a task has been queued or begins to run.
    CfsQueue {
        /// The CPU.
        cpu: CpuId,
        /// `zero_vruntime`, which was `min_vruntime` before.
        min_vruntime: u64,
        /// `sum_w_vruntime` (before: `avg_vruntime`) of the entities that wait, relative to it;
        /// 0: the release has none.
        sum_w_vruntime: i64,
        /// `sum_weight` (before: `avg_load`) of these; 0: the release has none.
        sum_weight: u64,
        /// `nr_queued`, whoever runs counted.
        nr_queued: u32,
    },
    /// A task's estimate joins its CPU's, or leaves it: its dequeue or enqueue begins (`sched_util_est_cfs_tp`).
    CfsUtilEst {
        /// The CPU.
        cpu: CpuId,
        /// `cfs_rq->avg.util_est`, with that.
        util_est: Util,
    },
    /// A governor looks at a CPU (`sugov_update_single_freq`, `sugov_update_shared`).
    FreqLook {
        /// The CPU.
        cpu: CpuId,
        /// From what, and what comes of it.
        look: FreqLook,
    },
    /// What a deadline task has left, when it begins or ends to run (`p->dl`).
    Deadline {
        /// The task.
        task: TaskId,
        /// `dl_se->runtime`, in ns.
        runtime: i64,
        /// Until its deadline, in ns.
        left: i64,
    },
    /// The CPU's tick begins (`sched_tick`).
    Tick {
        /// The CPU.
        cpu: CpuId,
    },
    /// Somebody asks that the CPU's task gives way: `need_resched` is set (`resched_curr`).
    Resched {
        /// The CPU.
        cpu: CpuId,
        /// Not before its next tick, or its return to user space (`TIF_NEED_RESCHED_LAZY`).
        lazy: bool,
    },
    /// When the CPU balances next, told at each look at one of its domains, before that is noted.
    BalanceDue {
        /// The CPU.
        cpu: CpuId,
        /// `jiffies` now.
        jiffies: u64,
        /// `rq->next_balance`, in jiffies.
        next_balance: u64,
        /// The two lowest domains: `last_balance` in jiffies, `balance_interval` in ms; an interval of
        /// 0: there is no such domain.
        domains: [(u64, u64); 2],
    },
    /// A look for tasks to pull to the CPU begins, in one of its domains (`sched_balance_rq`).
    BalanceLook {
        /// The CPU.
        cpu: CpuId,
        /// `sd->level`; the lowest is 0.
        level: u32,
        /// What it does.
        idle: IdleType,
        /// `sd->nr_balance_failed`: looks in a row that have moved nothing.
        failed: u32,
    },
    /// The idle governor `menu` chose a state (`menu_select`).
    IdleSelect {
        /// The CPU.
        cpu: CpuId,
        /// From what, and which.
        select: &'a MenuSelect,
    },
}

/// From what a governor decides (`sugov_policy`, `sugov_cpu`), as it is before, and what it asks for then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreqLook {
    /// `next_freq`: what it asked for last.
    pub next_freq: KHz,
    /// `cached_raw_freq`.
    pub cached_raw_freq: KHz,
    /// So long ago (`last_freq_update_time`), in ns.
    pub since_ns: u64,
    /// It decides whatever the rate limit says (`limits_changed`, `need_freq_update`).
    pub forced: bool,
    /// What the last decision guaranteed the CPU (`bw_min`; before 6.8 `bw_dl`).
    pub bw_min: Util,
    /// The CPU has not been idle since the last look (`saved_idle_calls`).
    pub busy: bool,
    /// `rq->dl.running_bw`: deadline bandwidth, 2²⁰ = the whole CPU.
    pub running_bw: u64,
    /// `cfs_rq->avg.util_avg`. A task that joins or leaves is in it before it is told of.
    pub util_avg: Util,
    /// `cfs_rq->avg.runnable_avg`.
    pub runnable_avg: Util,
    /// `cfs_rq->avg.util_est`.
    pub util_est: Util,
    /// Real-time tasks are runnable there (`rq->rt.rt_nr_running`). `None`: not told.
    pub rt_runnable: Option<bool>,
    /// The CPU's clamps (`rq->uclamp`), least and most. `None`: not told, or the kernel has none.
    pub uclamp: Option<[Util; 2]>,
    /// `next_freq` after it. `None`: not known, of the last look of a policy.
    pub chosen: Option<KHz>,
}

/// Who caps a domain's frequency while the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The hardware itself, whatever it is asked for.
    Hardware,
    /// A thermal zone, by its cooling device.
    Heat,
    /// Firmware, by a request of its driver.
    Firmware,
    /// A power budget.
    Budget,
    /// User space, by `scaling_max_freq`.
    User,
}

impl Limit {
    /// All of them, in their order.
    pub const ALL: [Limit; 5] =
        [Limit::Hardware, Limit::Heat, Limit::Firmware, Limit::Budget, Limit::User];
}

/// What a CPU does for which tasks are looked for (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleType {
    /// It runs something.
    NotIdle,
    /// It idles.
    Idle,
    /// Its last task is about to leave it.
    NewlyIdle,
}

/// A choice of `menu`: everything that it is made from, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MenuSelect {
    /// Its memory before (`struct menu_device`): `next_timer_ns` of the sleep before.
    pub next_timer_ns: u64,
    /// `bucket`.
    pub bucket: u32,
    /// `correction_factor`.
    pub correction_factor: [u32; 6],
    /// `intervals`, in µs.
    pub intervals_us: [u32; 8],
    /// `interval_ptr`.
    pub interval_ptr: u32,
    /// The sleep before, if it is still to be taken in (`needs_update`).
    pub last: Option<LastSleep>,
    /// The next timer as it was told (`tick_nohz_get_sleep_length`), in ns; `None`: it did not ask for it.
    pub sleep_length_ns: Option<u64>,
    /// To the next event of the CPU's clock, the tick's included, in ns: the length that it was told
    /// beside.
    pub delta_next_ns: i64,
    /// Whether the tick is stopped already.
    pub tick_stopped: bool,
    /// The state that it chose; `None`: not known.
    pub state: Option<u32>,
    /// Whether it stops the tick; `None`: not known.
    pub stop_tick: Option<bool>,
}

/// What a group's quota came to in a run (`struct cfs_bandwidth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaStat {
    /// Periods that ended while the group used its quota (`nr_periods`).
    pub periods: u64,
    /// Of those, at whose end it was used up on some CPU (`nr_throttled`).
    pub throttled: u64,
    /// How long it was so until it was refilled, on all CPUs together (`throttled_time`).
    pub time: Span,
    /// The longest of these times. `None`: not told.
    pub longest: Option<Span>,
}

/// A sleep that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastSleep {
    /// `last_state_idx`.
    pub state: u32,
    /// `last_residency_ns`.
    pub slept_ns: u64,
    /// Whether the tick ended it (`tick_wakeup`).
    pub by_tick: bool,
}

/// How a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOut {
    /// Still runnable: preempted or its slice is over.
    Preempted,
    /// It sleeps.
    Sleeping,
    /// It has ended.
    Exited,
}

/// Why a decision was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Why {
    // Placement.
    /// A workload's first task: `first_cpu`, or the smallest CPU allowed.
    FirstCpu,
    /// Fork balancing found the idlest CPU.
    ForkIdlest,
    /// The previous CPU was good enough.
    PrevCpu,
    /// `find_energy_efficient_cpu` found a cheaper CPU.
    Energy,
    /// `select_idle_sibling` found an idle CPU.
    IdleSibling,
    /// `wake_affine` chose the waker's CPU.
    WakeAffine,
    /// Affinity left no other choice, or moved it.
    Affinity,
    /// The task did not fit: misfit active balance.
    Misfit,
    /// An idle CPU pulled it (`newidle`).
    NewIdle,
    /// Periodic or nohz balance pulled it.
    Balance,
    /// Balancing brought it to the last-level cache that its process prefers (SCHED_CACHE).
    Llc,
    /// The CPU whose tasks matter least to a real-time task (`find_lowest_rq`).
    LowestRq,
    /// The CPU with the latest deadlines, or none (`find_later_rq`).
    LaterRq,
    /// A CPU on which EDF's test holds with it (`dl_placement`).
    DlFits,
    /// A real-time task waited where it was (`push_rt_task`).
    RtPush,
    /// A task of SCHED_HIGH waited where it was.
    HighPush,
    /// It goes to a CPU of which tasks of SCHED_OVERCOMMIT ask for less.
    OvercommitPush,
    /// A deadline task waited where it was (`push_dl_task`).
    DlPush,
    /// A CPU whose deadline task left took it (`pull_dl_task`).
    DlPull,
    /// The runqueue with the least load (MuQSS).
    LeastLoad,
    /// A CPU that looked for who is to run found the earliest deadline elsewhere (MuQSS).
    EarliestDeadline,
    /// Its CPU went offline.
    Hotplug,
    /// Another trace said so (`verify`'s mode *given*).
    Given,
    // Frequency.
    /// The util asks for this frequency.
    Util,
    /// Same frequency as before: nothing to do.
    Unchanged,
    /// Inside `rate_limit_us` of the last change: put off.
    RateLimited,
    /// A decrease was refused because the CPU has not been idle (`sugov_hold_freq`).
    HoldBusy,
    /// The last request is still being carried out by the kthread (`work_in_progress`).
    InProgress,
    /// Raised by `uclamp_min`.
    UclampMin,
    /// Held down by `uclamp_max`.
    UclampMax,
    /// Raised to the bandwidth that deadline tasks, or servers, are promised.
    DlBandwidth,
    /// As far as it goes in one step from the frequency of the moment, which util is taken to be a share of: it is not
    /// frequency-invariant.
    NotInvariant,
    /// Raised by the iowait boost.
    IowaitBoost,
    /// Raised because tasks wait (RFC 00/16, patch 13).
    Waiting,
    /// Util falls, so that no headroom is added (RFC 00/16, patch 14).
    Decaying,
    /// A task of a class above the fair one runs: the highest frequency (schedutil up to 4.16).
    RealTime,
    /// A CPU is full, or boosted: no less than `hispeed_freq` (`interactive`).
    Hispeed,
    /// Not lower yet: `min_sample_time` is not over (`interactive`).
    MinSampleTime,
    /// A fixed choice of the governor (`performance`, `powersave`, `userspace`).
    Fixed,
    /// A real kernel decided, and does not say why.
    Unknown,
}

impl Why {
    /// The word that reports and JSON use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Why::FirstCpu => "first_cpu",
            Why::ForkIdlest => "fork_idlest",
            Why::PrevCpu => "prev_cpu",
            Why::Energy => "energy",
            Why::IdleSibling => "idle_sibling",
            Why::WakeAffine => "wake_affine",
            Why::Affinity => "affinity",
            Why::Misfit => "misfit",
            Why::NewIdle => "newidle",
            Why::Balance => "balance",
            Why::Llc => "llc",
            Why::LowestRq => "lowest_rq",
            Why::LaterRq => "later_rq",
            Why::DlFits => "dl_fits",
            Why::RtPush => "rt_push",
            Why::HighPush => "high_push",
            Why::OvercommitPush => "overcommit_push",
            Why::DlPush => "dl_push",
            Why::DlPull => "dl_pull",
            Why::LeastLoad => "least_load",
            Why::EarliestDeadline => "earliest_deadline",
            Why::Hotplug => "hotplug",
            Why::Given => "given",
            Why::Util => "util",
            Why::Unchanged => "unchanged",
            Why::RateLimited => "rate_limited",
            Why::HoldBusy => "hold_busy",
            Why::InProgress => "in_progress",
            Why::UclampMin => "uclamp_min",
            Why::UclampMax => "uclamp_max",
            Why::DlBandwidth => "dl_bandwidth",
            Why::NotInvariant => "not_invariant",
            Why::IowaitBoost => "iowait_boost",
            Why::Waiting => "waiting",
            Why::Decaying => "decaying",
            Why::RealTime => "real_time",
            Why::Hispeed => "hispeed",
            Why::MinSampleTime => "min_sample_time",
            Why::Fixed => "fixed",
            Why::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
