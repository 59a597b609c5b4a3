//! The quantities of the scheduler, one type each, so that they cannot be mixed up.
//!
//! A utilisation and a capacity share the scale 0..1024 but answer different questions
//! ("how much is wanted" and "how much is there"); adding one to the other is a bug, and
//! here it does not compile:
//!
//! ```compile_fail
//! use risetime_kernel::units::{Capacity, Util};
//! let nonsense = Util(200) + Capacity(459);
//! ```
//!
//! The inner value is public: conversions between quantities are written out where they
//! happen, with `.0`, and are easy to see in review.

use core::fmt;

/// Capacity of the biggest CPU at its highest frequency, and the top of the util scale
/// (`SCHED_CAPACITY_SCALE`).
pub const SCHED_CAPACITY_SCALE: u64 = 1024;

/// A quantity on the utilisation scale: 1024 = one biggest CPU, busy all the time.
/// Sums over tasks may exceed 1024.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Util(pub u64);

/// Computing power that a CPU can deliver, 1024 = the biggest CPU at its highest frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capacity(pub u64);

/// A frequency in kHz (cpufreq's unit).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KHz(pub u64);

/// A point on the wall clock of a run, in ns since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A length of wall-clock time in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// A point on a runqueue's `clock_pelt`: time scaled by capacity and frequency, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClockPelt(pub u64);

/// Power in µW.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroWatts(pub u64);

/// Energy in µJ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroJoules(pub u64);

/// A load weight (`scale_load_down`ed: nice 0 = 1024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(pub u64);

/// A logical CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuId(pub u32);

/// A task (thread) of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub u32);

/// A task group of a run; 0 is the root group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

impl CpuId {
    /// Returns this CPU as an index into a per-CPU table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl GroupId {
    /// The group that all others are in.
    pub const ROOT: GroupId = GroupId(0);
    /// Returns this group as an index into a per-group table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TaskId {
    /// Returns this task as an index into a per-task table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Instant {
    /// The time since `earlier`; 0 if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Instant) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
    /// Returns this instant in ms, for reports only.
    #[expect(clippy::float_arithmetic, reason = "for reports only")]
    #[inline]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Span {
    /// `us` microseconds.
    #[inline]
    pub const fn from_us(us: u64) -> Span {
        Span(us * 1000)
    }
    /// `ms` milliseconds.
    #[inline]
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * 1_000_000)
    }
    /// Returns this span in ms, for reports only.
    #[expect(clippy::float_arithmetic, reason = "for reports only")]
    #[inline]
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl core::ops::Add<Span> for Instant {
    type Output = Instant;
    fn add(self, d: Span) -> Instant {
        Instant(self.0 + d.0)
    }
}

impl core::ops::AddAssign<Span> for Instant {
    fn add_assign(&mut self, d: Span) {
        self.0 += d.0;
    }
}

/// Addition, subtraction (panics below zero in debug builds) and their assigning forms for
/// quantities that add up among themselves.
macro_rules! additive {
    ($($t:ident)*) => {$(
        impl core::ops::Add for $t {
            type Output = $t;
            fn add(self, o: $t) -> $t { $t(self.0 + o.0) }
        }
        impl core::ops::AddAssign for $t {
            fn add_assign(&mut self, o: $t) { self.0 += o.0; }
        }
        impl core::ops::Sub for $t {
            type Output = $t;
            fn sub(self, o: $t) -> $t { $t(self.0 - o.0) }
        }
        impl $t {
            /// The difference, 0 where it would be negative (the kernel's `lsub_positive`).
            #[inline]
            pub const fn saturating_sub(self, o: $t) -> $t { $t(self.0.saturating_sub(o.0)) }
        }
    )*};
}
additive!(Util Capacity Span MicroWatts MicroJoules Weight);

macro_rules! display {
    ($($t:ident => $fmt:literal)*) => {$(
        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $fmt, self.0)
            }
        }
    )*};
}
display!(Util => "{}" Capacity => "{}" KHz => "{} kHz" Instant => "{} ns" Span => "{} ns"
         MicroWatts => "{} µW" MicroJoules => "{} µJ" Weight => "{}" CpuId => "CPU{}" TaskId => "T{}" GroupId => "G{}");
