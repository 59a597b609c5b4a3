//! System calls: clocks, sleeping, affinity, scheduling attributes.
//!
//! Whatever rustix has is taken from there. Three it has not, and they hold all the unsafe
//! code of this crate: `sched_setattr` and `sched_getattr` here, `bpf` in [`crate::bpf`].
#![allow(unsafe_code)]

use risetime_job::Policy;
use risetime_kernel::units::Span;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, Pid, clock_nanosleep_absolute, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use std::io;

const NSEC: u64 = 1_000_000_000;

fn ns(t: Timespec) -> u64 {
    t.tv_sec as u64 * NSEC + t.tv_nsec as u64
}

/// CLOCK_MONOTONIC in ns. No system call where there is a vDSO.
pub fn mono() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// The CPU time of the calling thread in ns. The kernel brings the task's statistics up to date for
/// it (`update_curr`), so a slice that is over is noticed here and not at the tick: to be called
/// where that cannot matter.
pub fn thread_cpu() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// The length of a tick in ns: the resolution of the coarse clock.
pub fn tick() -> u64 {
    ns(clock_getres(ClockId::MonotonicCoarse)).max(1)
}

/// CLOCK_MONOTONIC at some tick of the last seconds: the coarse clock is set by ticks, and by CPUs that leave idle, so it
/// is looked at as this thread keeps its CPU busy. `None`: its steps are no whole ticks apart, by more than 20 µs.
pub fn a_tick() -> Option<u64> {
    const STEPS: usize = 4;
    const NEAR: u64 = 20_000;
    let coarse = || ns(clock_gettime(ClockId::MonotonicCoarse));
    let (tick, until) = (tick(), mono() + 100 * tick());
    let mut steps = vec![coarse()];
    while steps.len() <= STEPS && mono() < until {
        let now = coarse();
        if steps.last() != Some(&now) {
            steps.push(now);
        }
    }
    // The first may be of an idle CPU.
    let [_, first, others @ ..] = &steps[..] else { return None };
    let apart = |at: &u64| (at - first) % tick;
    let whole = others.iter().map(apart).all(|rest| rest.min(tick - rest) < NEAR);
    (whole && steps.len() > STEPS).then_some(*first)
}

/// Lets this process have so many files open.
///
/// Errors: it may not.
pub fn may_open(files: usize) -> io::Result<()> {
    let (own, wanted) = (getrlimit(Resource::Nofile), files as u64);
    if own.current.is_none_or(|n| n >= wanted) {
        return Ok(());
    }
    let maximum = own.maximum.map(|n| n.max(wanted));
    let asked = Rlimit { current: Some(wanted), maximum };
    setrlimit(Resource::Nofile, asked)
        .map_err(|e| io::Error::new(e.kind(), format!("{files} open files: {e}")))
}

/// Sleeps until CLOCK_MONOTONIC reads `at`; returns at once if it does already.
pub fn sleep_until(at: u64) {
    let t = Timespec { tv_sec: (at / NSEC) as i64, tv_nsec: (at % NSEC) as _ };
    // An interrupted sleep goes on; no other error can occur with a valid time.
    while clock_nanosleep_absolute(ClockId::Monotonic, &t).is_err() {}
}

/// The CPU on which the caller runs.
pub fn current_cpu() -> usize {
    rustix::thread::sched_getcpu()
}

/// Restricts the calling thread to `cpus`.
///
/// Errors: the system's; a CPU that no kernel has.
pub fn set_affinity(cpus: impl IntoIterator<Item = u32>) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Restricts thread `tid`, 0 the calling one, to `cpus`.
///
/// Errors: the system's; a CPU that no kernel has.
pub fn set_affinity_of(tid: i32, cpus: impl IntoIterator<Item = u32>) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(Pid::from_raw(tid), &set)?)
}

/// Lists the CPUs on which thread `tid`, 0 the calling one, may run.
///
/// Errors: the system's.
pub fn affinity_of(tid: i32) -> io::Result<Vec<u32>> {
    let set = sched_getaffinity(Pid::from_raw(tid))?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).map(|cpu| cpu as u32).collect())
}

/// Scheduling attributes of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sched {
    /// Policy.
    pub policy: Policy,
    /// Nice value.
    pub nice: i32,
    /// Utilisation clamps; `None`: the default.
    pub clamp: (Option<u32>, Option<u32>),
}

/// `struct sched_attr` of `include/uapi/linux/sched/types.h`, in its size of Linux 5.3: a thread's attributes as the
/// kernel has them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAttr {
    size: u32,
    /// `SCHED_OTHER` and so on, by number.
    pub policy: u32,
    /// `SCHED_FLAG_…`: when read, those that are attributes; when set, also what is to be set.
    pub flags: u64,
    /// Nice value.
    pub nice: i32,
    /// Real-time priority, 1 to 99; 0 of other threads.
    pub priority: u32,
    /// Runtime in ns of a deadline; of a fair thread its slice, 0: the usual one.
    pub runtime: u64,
    /// Relative deadline in ns.
    pub deadline: u64,
    /// Period in ns.
    pub period: u64,
    /// Utilisation clamp from below, of 1024; `u32::MAX`: the default.
    pub util_min: u32,
    /// Utilisation clamp from above, of 1024; `u32::MAX`: the default.
    pub util_max: u32,
}

/// Both flags that set a utilisation clamp.
const UTIL_CLAMP: u64 = 0x60;
const RECLAIM: u64 = 0x02;
const CLAMP_RESET: u32 = u32::MAX;

unsafe extern "C" {
    pub(crate) fn syscall(number: std::ffi::c_long, ...) -> std::ffi::c_long;
}

#[cfg(target_arch = "aarch64")]
const SYS_SCHED_SETATTR: std::ffi::c_long = 274;
#[cfg(target_arch = "aarch64")]
const SYS_SCHED_GETATTR: std::ffi::c_long = 275;
#[cfg(target_arch = "x86_64")]
const SYS_SCHED_SETATTR: std::ffi::c_long = 314;
#[cfg(target_arch = "x86_64")]
const SYS_SCHED_GETATTR: std::ffi::c_long = 315;

/// Gives the calling thread these attributes. `clamps`: whether to touch the utilisation clamps
/// at all (a kernel without them refuses them).
///
/// Errors: the system's; a policy that no stock kernel has.
pub fn set_sched(sched: Sched, clamps: bool) -> io::Result<()> {
    // A slice of its own stands where a deadline's runtime does.
    let own = |slice: Option<Span>| [slice.map_or(0, |s| s.0), 0, 0];
    // SCHED_OTHER, _FIFO, _RR, _BATCH, _IDLE, _DEADLINE of include/uapi/linux/sched.h.
    let (policy, priority, [runtime, deadline, period], reclaim) = match sched.policy {
        Policy::Other { slice } => (0, 0, own(slice), false),
        Policy::Fifo { priority } => (1, priority, [0; 3], false),
        Policy::Rr { priority } => (2, priority, [0; 3], false),
        Policy::Batch { slice } => (3, 0, own(slice), false),
        Policy::Idle => (5, 0, [0; 3], false),
        // Backends refuse it before (`no_stock_kernel`).
        Policy::Overcommit { .. } | Policy::High { .. } => {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Policy::Deadline { runtime, deadline, period, reclaim } => {
            (6, 0, [runtime.0, deadline.0, period.0], reclaim)
        }
    };
    let attr = SchedAttr {
        policy,
        flags: if clamps { UTIL_CLAMP } else { 0 } | if reclaim { RECLAIM } else { 0 },
        nice: sched.nice,
        priority: priority.into(),
        runtime,
        deadline,
        period,
        util_min: sched.clamp.0.unwrap_or(CLAMP_RESET),
        util_max: sched.clamp.1.unwrap_or(CLAMP_RESET),
        ..SchedAttr::default()
    };
    set_attr(0, attr)
}

/// Gives thread `tid`, 0 the calling one, these attributes.
///
/// Errors: the system's.
pub fn set_attr(tid: i32, attr: SchedAttr) -> io::Result<()> {
    let attr = SchedAttr { size: size_of::<SchedAttr>() as u32, ..attr };
    // SAFETY: sched_setattr(tid, &attr, 0) reads `size` bytes from `attr`, which lives through the
    // call and is as large as it says.
    match unsafe { syscall(SYS_SCHED_SETATTR, tid, &raw const attr, 0_u64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The attributes of thread `tid`, 0 the calling one.
///
/// Errors: the system's.
pub fn attr_of(tid: i32) -> io::Result<SchedAttr> {
    let mut attr = SchedAttr::default();
    let size = size_of::<SchedAttr>();
    // SAFETY: sched_getattr(tid, &attr, size, 0) writes at most `size` bytes to `attr`, which is as large as that
    // says and lives through the call; any bytes are such a structure.
    match unsafe { syscall(SYS_SCHED_GETATTR, tid, &raw mut attr, size as u64, 0_u64) } {
        0 => Ok(attr),
        _ => Err(io::Error::last_os_error()),
    }
}

impl SchedAttr {
    /// Returns the attributes in the form in which a thread is given them back. Clamps that nobody has set, and a
    /// fair slice that is `usual`, go back to what the kernel gives by itself.
    pub fn again(self, usual: u64) -> SchedAttr {
        const FAIR: [u32; 2] = [0, 3];
        let kept = self.flags & !UTIL_CLAMP;
        // A kernel without clamps says 0, and takes none.
        let clamps = self.util_max > 0;
        let own = |clamp: u32, none: u32| if clamp == none { CLAMP_RESET } else { clamp };
        let fair = FAIR.contains(&self.policy) && self.runtime == usual;
        SchedAttr {
            flags: if clamps { kept | UTIL_CLAMP } else { kept },
            runtime: if fair { 0 } else { self.runtime },
            util_min: own(self.util_min, 0),
            util_max: own(self.util_max, 1024),
            ..self
        }
    }

    /// The attributes as numbers, a blank between: policy, flags, nice, priority, runtime, deadline, period, clamps.
    pub fn to_text(self) -> String {
        let SchedAttr { policy, flags, nice, priority, runtime, deadline, period, .. } = self;
        let (min, max) = (self.util_min, self.util_max);
        format!("{policy} {flags} {nice} {priority} {runtime} {deadline} {period} {min} {max}")
    }

    /// Reads what [`to_text`](SchedAttr::to_text) wrote; `None`: these are no such numbers.
    pub fn parse(text: &str) -> Option<SchedAttr> {
        let words: Vec<&str> = text.split(' ').collect();
        let [policy, flags, nice, priority, runtime, deadline, period, min, max] = words[..] else {
            return None;
        };
        Some(SchedAttr {
            size: 0,
            policy: policy.parse().ok()?,
            flags: flags.parse().ok()?,
            nice: nice.parse().ok()?,
            priority: priority.parse().ok()?,
            runtime: runtime.parse().ok()?,
            deadline: deadline.parse().ok()?,
            period: period.parse().ok()?,
            util_min: min.parse().ok()?,
            util_max: max.parse().ok()?,
        })
    }
}

/// Lets QEMU run another vCPU, if one has something to do; elsewhere a hint without effect.
///
/// With one thread for all vCPUs, each runs up to the next timer divided by their number, half a
/// millisecond at HZ=250; to the others that looks like a CPU that stands still.
pub fn give_turn() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint instruction without operands; registers, flags and memory stay as they are.
    unsafe {
        std::arch::asm!("yield", options(nomem, nostack, preserves_flags));
    }
}
