//! Keys of settings: of those that belong to every experiment, and of those that a backend declares and
//! others look at. Each of these is held against the simulator's catalogue.

use super::{Int, Key, Name, Range, Setting};

/// The setting of an experiment that says how many ms of the workload's start its figures leave
/// out, of jobs, activations and wakeups.
pub const SKIP_MS: Key<Int> = Key::new("skip_ms");
/// Ticks a second of the kernel that ran, or has to run.
pub const HZ: Key<Int> = Key::new("hz");
/// The driver that changes frequencies, as a real kernel calls it.
pub const SCALING_DRIVER: Key<Name> = Key::new("scaling_driver");
/// Whether idle states of the virtual machine take the time that its platform says; without it they take none.
pub const IDLE_TIMES: Key<Int> = Key::new("idle_times");
/// Highest lower clamp that tasks may ask for, as a real kernel reads back.
pub const UTIL_CLAMP_MIN: Key<Int> = Key::new("sched_util_clamp_min");
/// Highest upper clamp that tasks may ask for, as a real kernel reads back.
pub const UTIL_CLAMP_MAX: Key<Int> = Key::new("sched_util_clamp_max");

/// The name of a key, and which ranges are of its kind.
pub type Named = (&'static str, fn(Range) -> bool);

macro_rules! of_catalogue {
    ($($(#[$doc:meta])* $KEY:ident: $Kind:ty = $name:literal;)*) => {
        $($(#[$doc])* pub const $KEY: Key<$Kind> = Key::new($name);)*

        /// The keys that a backend's catalogue has to have.
        pub const OF_CATALOGUE: &[Named] = &[$(($name, <$Kind as Setting>::fits)),*];
    };
}

of_catalogue! {
    /// Lower clamp of every task of the run (`uclampset -m`).
    UCLAMP_MIN: Int = "uclamp_min";
    /// Upper clamp of every task of the run (`uclampset -M`).
    UCLAMP_MAX: Int = "uclamp_max";
    /// Lower clamp of real-time tasks that ask for none.
    RT_UCLAMP_MIN: Int = "sched_util_clamp_min_rt_default";
    /// The cpufreq governor.
    GOVERNOR: Name = "governor";
    /// Mode of the driver intel_pstate.
    INTEL_PSTATE: Name = "intel_pstate";
    /// Mode of the driver amd-pstate.
    AMD_PSTATE: Name = "amd_pstate";
    /// `schedutil`'s shortest time between two changes.
    RATE_LIMIT_US: Int = "rate_limit_us";
    /// Highest frequency of a policy.
    SCALING_MAX_FREQ: Int = "scaling_max_freq";
    /// Lowest frequency of a policy.
    SCALING_MIN_FREQ: Int = "scaling_min_freq";
    /// Dice about looking for work.
    NI_RANDOM: Int = "ni_random";
    /// Whether a task's util is remembered while it sleeps.
    UTIL_EST: Int = "util_est";
    /// Cache-aware scheduling.
    SCHED_CACHE: Int = "sched_cache";
    /// Whether thermal zones heat up.
    THERMAL: Int = "thermal";
    /// First CPU of the workload's first task.
    FIRST_CPU: Int = "first_cpu";
    /// Slack of every task's timers.
    TIMER_SLACK_NS: Int = "timer_slack_ns";
    /// Whether timers have a resolution of their own.
    HIGHRES: Name = "highres";
    /// Profile of what a real machine adds.
    NOISE: Name = "noise";
    /// Whether boost OPPs may be used.
    CPUFREQ_BOOST: Int = "cpufreq_boost";
    /// Share of all work that is bound by memory.
    MEMORY_BOUND: Int = "memory_bound";
}

/// Names of mainline's cpufreq governors, the values of [`GOVERNOR`].
pub mod governor {
    /// Name of the one that follows the scheduler's signals, the default.
    pub const SCHEDUTIL: &str = "schedutil";
    /// Name of the one that has the highest frequency.
    pub const PERFORMANCE: &str = "performance";
    /// Name of the one that has the lowest frequency.
    pub const POWERSAVE: &str = "powersave";
    /// Name of the one whose frequency somebody writes.
    pub const USERSPACE: &str = "userspace";
    /// Name of the one that samples idle time and jumps up.
    pub const ONDEMAND: &str = "ondemand";
    /// Name of the one that samples idle time and steps.
    pub const CONSERVATIVE: &str = "conservative";
    /// Names of all, by the alphabet.
    pub const MAINLINE: [&str; 6] =
        [CONSERVATIVE, ONDEMAND, PERFORMANCE, POWERSAVE, SCHEDUTIL, USERSPACE];
    /// Names of those whose frequency follows nothing.
    pub const FIXED: [&str; 3] = [PERFORMANCE, POWERSAVE, USERSPACE];
}
