//! Parts of events: choices of a kernel with all that they were made from, and words of their own.

use risetime_kernel::units::{KHz, Span, Util};

/// A PELT signal of a CPU that is no fair one (`struct rq`: `avg_rt`, `avg_dl`, `avg_irq`, `avg_hw`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PressureClass {
    /// Real-time tasks.
    Rt,
    /// Deadline tasks.
    Dl,
    /// Interrupts.
    Irq,
    /// Capacity that hardware or firmware takes away.
    Hw,
}

impl PressureClass {
    /// All of them, in the order of their numbers in a recording.
    pub const ALL: [PressureClass; 4] =
        [PressureClass::Rt, PressureClass::Dl, PressureClass::Irq, PressureClass::Hw];

    /// Returns its word in the kernel's tracepoints.
    pub const fn as_str(self) -> &'static str {
        match self {
            PressureClass::Rt => "rt",
            PressureClass::Dl => "dl",
            PressureClass::Irq => "irq",
            PressureClass::Hw => "hw",
        }
    }
}

/// The class's word.
impl std::fmt::Debug for PressureClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// State from which a governor decides (`sugov_policy`, `sugov_cpu`), as it is before, and what it
/// asks for then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreqLook {
    /// `next_freq`: what it asked for last.
    pub next_freq: KHz,
    /// `cached_raw_freq`.
    pub cached_raw_freq: KHz,
    /// Time since that request (`last_freq_update_time`), in ns.
    pub since_ns: u64,
    /// True if the governor decides whatever the rate limit says (`limits_changed`,
    /// `need_freq_update`).
    pub forced: bool,
    /// Util that the last decision guaranteed the CPU (`bw_min`; before 6.8 `bw_dl`).
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

/// The party that caps a domain's frequency while the machine runs.
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

/// Occasion on which a CPU looks for tasks (`enum cpu_idle_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleType {
    /// The CPU runs something.
    NotIdle,
    /// The CPU idles.
    Idle,
    /// The CPU's last task is about to leave it.
    NewlyIdle,
}

impl IdleType {
    /// All of them, in the order of their numbers in a recording.
    pub const ALL: [IdleType; 3] = [IdleType::NotIdle, IdleType::Idle, IdleType::NewlyIdle];
}

/// A choice of `menu`: everything that it is made from, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MenuSelect {
    /// The governor's memory before (`struct menu_device`): `next_timer_ns` of the sleep before.
    pub next_timer_ns: u64,
    /// `bucket`.
    pub bucket: u8,
    /// `correction_factor`.
    pub correction_factor: [u32; 6],
    /// `intervals`, in µs.
    pub intervals_us: [u32; 8],
    /// `interval_ptr`.
    pub interval_ptr: u8,
    /// The sleep before, if it is still to be taken in (`needs_update`).
    pub last: Option<LastSleep>,
    /// The next timer as it was told (`tick_nohz_get_sleep_length`), in ns; `None`: it did not ask for it.
    pub sleep_length_ns: Option<u64>,
    /// Time to the next event of the CPU's clock, the tick's included, in ns: the length that it
    /// was told beside.
    pub delta_next_ns: i64,
    /// Whether the tick is stopped already.
    pub tick_stopped: bool,
    /// The state that it chose; `None`: not known.
    pub state: Option<u8>,
    /// Whether it stops the tick; `None`: not known.
    pub stop_tick: Option<bool>,
}

/// Outcome of a group's quota in a run (`struct cfs_bandwidth`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaStat {
    /// Periods that ended while the group used its quota (`nr_periods`).
    pub periods: u64,
    /// Number of those periods at whose end the quota was used up on some CPU (`nr_throttled`).
    pub throttled: u64,
    /// Time for which it was used up until it was refilled, on all CPUs together
    /// (`throttled_time`).
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

/// Way in which a task left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchOut {
    /// Still runnable: preempted or its slice is over.
    Preempted,
    /// The task sleeps.
    Sleeping,
    /// The task has ended.
    Exited,
}
