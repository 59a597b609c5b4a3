//! The events of a trace: one table, from which the type, its text form, who hears of it and the page of events come.

use crate::parts::{FreqLook, IdleType, Limit, MenuSelect, PressureClass, QuotaStat, SwitchOut};
use crate::recording::{Fields, Number, Numbers};
use crate::{Hears, Why};
use risetime_kernel::eevdf::Place;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, GroupId, KHz, Span, TaskId, Util};
use risetime_model::workload::{JobMark, Policy};
use risetime_model::{InputError, Name};

/// A kind of event, as its page tells of it.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// The variant's name.
    pub name: &'static str,
    /// The letter with which its lines begin in a recording. A letter is never used for another kind.
    pub letter: char,
    /// The least attentive sink that takes it in.
    pub hears: Hears,
    /// Meaning of the event.
    pub about: &'static str,
    /// Name, type and meaning of each field. The first one says whose the event is: a task's, a CPU's, a group's, a zone's.
    pub fields: &'static [(&'static str, &'static str, &'static str)],
}

/// Makes [`Event`] and everything that follows from its variants.
///
/// A row: the letter of its lines in a recording, its name, the least attentive sink that takes it in, its fields. What a field
/// becomes in a recording follows from its type ([`Number`]).
macro_rules! events {
    ($(
        $(#[doc = $doc:literal])*
        $letter:literal $name:ident: $hears:ident {
            $($(#[doc = $field_doc:literal])* $field:ident: $type:ty,)*
        },
    )*) => {
        /// One thing that happened. Names follow the kernel's tracepoints where there is one.
        ///
        /// `last_update_time` of a signal counts from the run's time 0 as the trace does (modulo 2^64: it
        /// may lie before), in the clock of its CPU: `clock_pelt`, for irq the plain one. An event of time
        /// 0 may tell of an update before it, which is then the last one there was.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event {
            $($(#[doc = $doc])* $name { $($(#[doc = $field_doc])* $field: $type,)* },)*
        }

        impl Event {
            /// Every kind, in the order of the table.
            pub const KINDS: &'static [Kind] = &[$(Kind {
                name: stringify!($name),
                letter: $letter,
                hears: Hears::$hears,
                about: concat!($($doc, "\n"),*),
                fields: &[$((stringify!($field), stringify!($type), concat!($($field_doc, "\n"),*)),)*],
            },)*];

            /// Returns the least attentive sink that takes the event in.
            #[inline(always)]
            pub const fn hears(&self) -> Hears {
                match self {
                    $(Event::$name { .. } => Hears::$hears,)*
                }
            }

            /// Returns the CPU that the event is about: the last one that it names, which for a migration is where the task goes.
            #[inline(always)]
            pub fn cpu(&self) -> Option<CpuId> {
                match *self {
                    $(Event::$name { $($field,)* } => {
                        let mut cpu = None;
                        $(cpu = $field.cpu().or(cpu);)*
                        cpu
                    })*
                }
            }

            /// Appends the numbers and the name of the event, and returns its letter.
            pub(crate) fn write(&self, line: &mut Numbers) -> char {
                match *self {
                    $(Event::$name { $($field,)* } => {
                        $($field.put(line);)*
                        $letter
                    })*
                }
            }

            /// Returns the event of a line with this letter; `None`: no kind has it.
            ///
            /// Errors: too few numbers, or one that the field cannot have.
            pub(crate) fn read(letter: char, line: &mut Fields<'_, '_>) -> Result<Option<Event>, InputError> {
                Ok(Some(match letter {
                    $($letter => Event::$name { $($field: <$type as Number>::take(line)?,)* },)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

events! {
    /// A task was created on `cpu` and became runnable (`sched_wakeup_new`).
    'n' TaskNew: Figures {
        /// The task.
        task: TaskId,
        /// Name of the task.
        comm: Name,
        /// Whether the workload asked for it (else it is the system's: a `sugov` kthread).
        user: bool,
        /// The CPU on which it starts.
        cpu: CpuId,
        /// Reason for that CPU.
        why: Why,
        /// The largest speed this task may ever get by affinity, `uclamp_max` (rounded up
        /// to an OPP) and frequency limits, of 1024: s_max. May be renewed by `MaxSpeed`.
        max_speed: Util,
    },
    /// The highest speed that the task may get has changed (affinity, clamp or limit).
    'm' MaxSpeed: Figures {
        /// The task.
        task: TaskId,
        /// The most speed that it may ever have, of 1024.
        max_speed: Util,
    },
    /// The highest speed that a task's affinity leaves it, and its affinity and `uclamp_max`
    /// together. What is taken from its most speed beyond that is user space's limit on the
    /// frequency. Not told where neither takes anything.
    'N' SpeedLimits: Figures {
        /// The task.
        task: TaskId,
        /// Highest speed by the affinity, of 1024; more where boost OPPs are allowed.
        affinity: Util,
        /// Highest speed by the affinity and `uclamp_max`, of 1024.
        clamped: Util,
    },
    /// The task is under another policy than SCHED_OTHER from its creation, or under another one
    /// than before from now on.
    'y' Policy: Figures {
        /// The task.
        task: TaskId,
        /// The task's policy.
        policy: Policy,
    },
    /// A sleeping task became runnable on `cpu` (`sched_wakeup`).
    'w' Wakeup: Figures {
        /// The task.
        task: TaskId,
        /// The CPU on which it was queued.
        cpu: CpuId,
        /// Reason for that CPU.
        why: Why,
    },
    /// The next wakeup of the task was due so long ago: its timer expired then, or another task woke it. Told before that
    /// wakeup where some time lies between (the way out of an idle state, timer slack, an interrupt); no kernel tells.
    'Y' Due: Figures {
        /// The task.
        task: TaskId,
        /// Time since it was due.
        ago: Span,
    },
    /// The task that runs on `cpu` has had the CPU for so long without getting on, since it came or this was last told: the switch to
    /// it, a tick, waking others, caches that it had to fill. Handlers that are told of ([`Event::Irq`]) are not in it; no kernel
    /// tells.
    'Z' Stolen: Figures {
        /// The CPU.
        cpu: CpuId,
        /// The time stolen.
        span: Span,
    },
    /// `cpu` went from `prev` to `next`; `None` is the idle task (`sched_switch`).
    's' Switch: Figures {
        /// The CPU.
        cpu: CpuId,
        /// The task that ran, and how it left.
        prev: Option<(TaskId, SwitchOut)>,
        /// The task that runs now.
        next: Option<TaskId>,
    },
    /// A task that is runnable (or wakes) changed CPU (`sched_migrate_task`).
    'g' Migrate: Figures {
        /// The task.
        task: TaskId,
        /// The CPU that it leaves.
        from: CpuId,
        /// The CPU that it goes to.
        to: CpuId,
        /// Reason of the move.
        why: Why,
    },
    /// A task entered a phase of its workload.
    'f' Phase: All {
        /// The task.
        task: TaskId,
        /// Index of the phase.
        index: u32,
        /// Name of the phase.
        name: Name,
    },
    /// The task begins an event of its program, or has come to its end (only where that was asked
    /// for). What comes between two of them is the same at any speed.
    'e' Step: Figures {
        /// The task.
        task: TaskId,
        /// Events begun so far, those that took no time counted.
        number: u64,
    },
    /// The task begins a job, is done with it, or hands it on.
    'J' Job: Figures {
        /// The task.
        task: TaskId,
        /// The mark: what has come up.
        mark: JobMark,
    },
    /// The hardware of `cpu`'s frequency domain now runs at `freq` (`cpu_frequency`; one event
    /// per domain, `cpu` is its first).
    'q' Freq: Figures {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The frequency.
        freq: KHz,
    },
    /// The governor evaluated the domain of `cpu`: what it saw and what it decided.
    'r' FreqRequest: Figures {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The effective util (headroom included) of the decisive CPU.
        util: Util,
        /// The frequency it wants after the decision (an OPP).
        freq: KHz,
        /// Reason of this request, or of no change.
        why: Why,
    },
    /// `cpu` entered idle state `state` (index into the platform's list), or left idle
    /// (`cpu_idle`).
    'i' Idle: Figures {
        /// The CPU.
        cpu: CpuId,
        /// The state; `None`: left.
        state: Option<u32>,
    },
    /// The task's PELT signals were updated (`pelt_se_tp`).
    't' PeltTask: Figures {
        /// The task.
        task: TaskId,
        /// The CPU to which it is attached.
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
    'u' UtilEst: All {
        /// The task.
        task: TaskId,
        /// `se->avg.util_est` without its flag bit.
        util_est: Util,
    },
    /// The task's recent waiting time has changed (RFC 00/16's `waiting_avg`; only where that is
    /// switched on).
    'a' WaitingAvg: All {
        /// The task.
        task: TaskId,
        /// `se->avg.waiting_avg`.
        waiting_avg: Util,
    },
    /// The CPU's cfs signals were updated (`pelt_cfs_tp` of its own runqueue, no group's).
    'c' PeltCfs: All {
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
    'p' PeltPressure: All {
        /// The CPU.
        cpu: CpuId,
        /// `rt`, `dl`, `irq`, `hw`.
        class: PressureClass,
        /// `util_avg` of the signal.
        util_avg: Util,
        /// `util_sum` of the signal.
        util_sum: u64,
        /// `period_contrib` of the signal.
        period_contrib: u32,
        /// `last_update_time` of the signal.
        last_update_time: ClockPelt,
    },
    /// The capacity that irq, rt and dl leave of the CPU (`sched_cpu_capacity_tp`).
    'k' CpuCapacity: All {
        /// The CPU.
        cpu: CpuId,
        /// `rq->cpu_capacity`.
        capacity: Capacity,
    },
    /// The root domain's overutilized flag changed (`sched_overutilized_tp`).
    'o' Overutilized: All {
        /// The new value of the flag.
        on: bool,
    },
    /// Nothing is known of `cpu` from here on, until its next `Switch` or `Idle`: its buffer has not begun, or events of it were
    /// lost. Nor of any task that does not run on another CPU, until its next event.
    'S' Unseen: Figures {
        /// The CPU.
        cpu: CpuId,
    },
    /// A CPU comes online or goes offline.
    'h' Hotplug: Figures {
        /// The CPU.
        cpu: CpuId,
        /// Whether it comes.
        online: bool,
    },
    /// A deadline task's runtime is used up, or that of the server of a real-time task's group; or the next period's has come
    /// (`dl_throttled`).
    'x' Throttled: Figures {
        /// The task.
        task: TaskId,
        /// Whether it is used up.
        on: bool,
    },
    /// An interrupt's handler begins to keep `cpu` from its task, or from idling, or is done
    /// (`irq_handler_entry`, `irq_handler_exit`).
    'j' Irq: Figures {
        /// The CPU.
        cpu: CpuId,
        /// Whether it begins.
        enters: bool,
    },
    /// The work that `cpu` runs is of another kind from now on than that with which a task comes to
    /// a CPU, which is the plain one; no kernel tells.
    'K' Work: Figures {
        /// The CPU.
        cpu: CpuId,
        /// Number of the kind on the platform, from 1; 0: plain work.
        kind: u32,
    },
    /// `rq->misfit_task_load` became non-zero (`task` given) or zero.
    'z' Misfit: Figures {
        /// The CPU.
        cpu: CpuId,
        /// The task that does not fit.
        task: Option<TaskId>,
    },
    /// A thermal zone's sensor was read (`thermal_temperature`).
    'C' Temperature: Figures {
        /// The zone, by its place in the platform.
        zone: u32,
        /// Temperature that the sensor read, in m°C.
        millicelsius: u32,
    },
    /// Cooling changed the highest frequency of `cpu`'s domain (`cdev_update`).
    'X' Cooling: Figures {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The highest frequency that is left (`policy->max`).
        max: KHz,
        /// The zone that was looked at.
        zone: u32,
    },
    /// The limits of `cpu`'s policy have changed (`cpu_frequency_limits`).
    'M' CpuFrequencyLimits: Figures {
        /// First CPU of the domain.
        cpu: CpuId,
        /// `policy->min`.
        min: KHz,
        /// `policy->max`.
        max: KHz,
    },
    /// A party lets `cpu`'s domain go no faster than this from now on.
    'A' Capped: Figures {
        /// First CPU of the domain.
        cpu: CpuId,
        /// The party that caps.
        by: Limit,
        /// The highest OPP that is left; `None`: all, from now on.
        max: Option<KHz>,
    },
    // What tasks are, told where somebody wants to see it ([`Hears::Attributes`](crate::Hears)).
    /// The task's priority, when it is first heard of and whenever it has changed (`p->prio`); also told with a
    /// kernel's decisions.
    'P' Prio: All {
        /// The task.
        task: TaskId,
        /// -1 of the deadline class, 0 to 99 of the real-time class, 100 to 139 of the fair one
        /// (120 + nice).
        prio: i32,
    },
    /// The task's clamps, as its group leaves them (`uclamp_eff_value`): likewise, where clamps are used.
    'v' Clamps: All {
        /// The task.
        task: TaskId,
        /// Clamps in force.
        clamps: Uclamp,
    },
    /// The clamps of a CPU have changed: the largest of its runnable tasks (`rq->uclamp`).
    'V' CpuClamps: All {
        /// The CPU.
        cpu: CpuId,
        /// Clamps in force.
        clamps: Uclamp,
    },
    // A kernel's decisions, and the state behind them: told where that was asked for.
    /// `try_to_wake_up` begins for the task, before a CPU is chosen (`sched_waking`). Not told of a
    /// task's first wakeup, which it becomes known by.
    'W' Waking: All {
        /// The task.
        task: TaskId,
        /// The CPU that wakes it.
        by: CpuId,
    },
    /// The task's place in its runqueue (`p->se`). Told with each [`PeltTask`](Event::PeltTask),
    /// when it has been queued, and when it begins or ends to run. 6.1 has `vruntime` and a weight
    /// only.
    'E' Entity: All {
        /// The task.
        task: TaskId,
        /// Place of the task in the queue.
        place: Place,
    },
    /// A task group's place in the queue of the group above, where groups have queues of their own
    /// (before 7.3). Told with each change of its signals, and when one of its tasks has been
    /// queued, begins or ends to run.
    'F' GroupEntity: All {
        /// The CPU.
        cpu: CpuId,
        /// The group, by its place in the workload.
        group: GroupId,
        /// Place of the group's entity (`tg->se[cpu]`).
        place: Place,
    },
    /// The vruntime from which a task group's own queue counts, told with each change of its
    /// signals.
    'H' GroupQueue: All {
        /// The CPU.
        cpu: CpuId,
        /// The group, by its place in the workload.
        group: GroupId,
        /// `tg->cfs_rq[cpu]->zero_vruntime`, which was `min_vruntime` before.
        min_vruntime: u64,
    },
    /// A group's quota is used up on a CPU, or has been refilled there; the groups inside are told with it, behind it and
    /// before it (`tg_throttle_down`, `tg_unthrottle_up`). Where that takes the group from its queue (before 6.18).
    'O' GroupThrottled: All {
        /// The CPU.
        cpu: CpuId,
        /// The group, by its place in the workload.
        group: GroupId,
        /// Whether it is used up.
        on: bool,
    },
    /// Outcome of a group's quota, at the run's end (`cpu.stat`).
    'b' Quota: Figures {
        /// The group, by its place in the workload.
        group: GroupId,
        /// The counts of the group's quota.
        stat: QuotaStat,
    },
    /// The load of a task, with each [`PeltTask`](Event::PeltTask).
    'l' TaskLoad: All {
        /// The task.
        task: TaskId,
        /// `se->avg.load_avg`: weight by share of time.
        load_avg: u64,
        /// `se->avg.load_sum`: without the weight.
        load_sum: u64,
    },
    /// The load of a CPU's fair tasks (`rq->cfs`), with each [`PeltCfs`](Event::PeltCfs).
    'B' CfsLoad: All {
        /// The CPU.
        cpu: CpuId,
        /// `cfs_rq->avg.load_avg`.
        load_avg: u64,
        /// `cfs_rq->avg.load_sum`.
        load_sum: u64,
    },
    /// The position of the CPU's fair runqueue (`rq->cfs`, no group's). Told with each
    /// [`PeltCfs`](Event::PeltCfs), and when a task has been queued or begins to run.
    'Q' CfsQueue: All {
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
    'U' CfsUtilEst: All {
        /// The CPU.
        cpu: CpuId,
        /// `cfs_rq->avg.util_est`, with that.
        util_est: Util,
    },
    /// A governor looks at a CPU (`sugov_update_single_freq`, `sugov_update_shared`).
    'G' FreqLook: All {
        /// The CPU.
        cpu: CpuId,
        /// The state that the governor decides from, and what comes of it.
        look: FreqLook,
    },
    /// Runtime that a deadline task has left, when it begins or ends to run (`p->dl`).
    'd' Deadline: All {
        /// The task.
        task: TaskId,
        /// `dl_se->runtime`, in ns.
        runtime: i64,
        /// Time until the task's deadline, in ns.
        left: i64,
    },
    /// The CPU's tick begins (`sched_tick`).
    'T' Tick: All {
        /// The CPU.
        cpu: CpuId,
    },
    /// The CPU's task is asked to give way: `need_resched` is set (`resched_curr`).
    'R' Resched: All {
        /// The CPU.
        cpu: CpuId,
        /// True if the task need not go before its next tick, or its return to user space
        /// (`TIF_NEED_RESCHED_LAZY`).
        lazy: bool,
    },
    /// The times at which the CPU balances next, told at each look at one of its domains, before
    /// that is noted.
    'D' BalanceDue: All {
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
    'L' BalanceLook: All {
        /// The CPU.
        cpu: CpuId,
        /// `sd->level`; the lowest is 0.
        level: u32,
        /// State of the CPU that looks.
        idle: IdleType,
        /// `sd->nr_balance_failed`: looks in a row that have moved nothing.
        failed: u32,
    },
    /// The idle governor `menu` chose a state (`menu_select`).
    'I' IdleSelect: All {
        /// The CPU.
        cpu: CpuId,
        /// The state that the choice is made from, and the choice.
        select: MenuSelect,
    },
}
