//! The system calls the agent makes, and its line to the host outside the virtual machine.
//!
//! Whatever rustix has is taken from there. Three things it has not, and they hold all the unsafe
//! code of this crate: `sched_setattr`, `bpf`, and semihosting, where a trap instruction in the guest
//! (`hlt #0xf000`) makes QEMU carry out a file operation on the host. Semihosting needs no
//! device, driver or interrupt, so nothing of it shows in the experiment.
#![allow(unsafe_code)]

use risetime_job::Policy;
use risetime_kernel::units::Span;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, clock_nanosleep_absolute, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const NSEC: u64 = 1_000_000_000;

fn ns(t: Timespec) -> u64 {
    t.tv_sec as u64 * NSEC + t.tv_nsec as u64
}

/// CLOCK_MONOTONIC in ns. No system call where there is a vDSO.
pub(crate) fn mono() -> u64 {
    ns(clock_gettime(ClockId::Monotonic))
}

/// The CPU time of the calling thread in ns. The kernel brings the task's statistics up to date for
/// it (`update_curr`), so a slice that is over is noticed here and not at the tick: to be called
/// where that cannot matter.
pub(crate) fn thread_cpu() -> u64 {
    ns(clock_gettime(ClockId::ThreadCPUTime))
}

/// The length of a tick in ns: the resolution of the coarse clock.
pub(crate) fn tick() -> u64 {
    ns(clock_getres(ClockId::MonotonicCoarse)).max(1)
}

/// CLOCK_MONOTONIC at some tick of the last seconds: the coarse clock is set by ticks, and by CPUs that leave idle, so it
/// is looked at as this thread keeps its CPU busy. `None`: its steps are no whole ticks apart, by more than 20 µs.
pub(crate) fn a_tick() -> Option<u64> {
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
pub(crate) fn may_open(files: usize) -> io::Result<()> {
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
pub(crate) fn sleep_until(at: u64) {
    let t = Timespec { tv_sec: (at / NSEC) as i64, tv_nsec: (at % NSEC) as _ };
    // An interrupted sleep goes on; no other error can occur with a valid time.
    while clock_nanosleep_absolute(ClockId::Monotonic, &t).is_err() {}
}

/// The CPU on which the caller runs.
pub(crate) fn current_cpu() -> usize {
    rustix::thread::sched_getcpu()
}

/// Restricts the calling thread to `cpus`.
pub(crate) fn set_affinity(cpus: impl IntoIterator<Item = u32>) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        if cpu as usize >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(cpu as usize);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// Scheduling attributes of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sched {
    /// Policy.
    pub(crate) policy: Policy,
    /// Nice value.
    pub(crate) nice: i32,
    /// Utilisation clamps; `None`: the default.
    pub(crate) clamp: (Option<u32>, Option<u32>),
}

/// `struct sched_attr` of `include/uapi/linux/sched/types.h`, in its size of Linux 5.3.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
    util_min: u32,
    util_max: u32,
}

const UTIL_CLAMP: u64 = 0x60;
const RECLAIM: u64 = 0x02;
const CLAMP_RESET: u32 = u32::MAX;

unsafe extern "C" {
    fn syscall(number: std::ffi::c_long, ...) -> std::ffi::c_long;
}

#[cfg(target_arch = "aarch64")]
const SYS_SCHED_SETATTR: std::ffi::c_long = 274;
#[cfg(target_arch = "x86_64")]
const SYS_SCHED_SETATTR: std::ffi::c_long = 314;
#[cfg(target_arch = "aarch64")]
const SYS_BPF: std::ffi::c_long = 280;
#[cfg(target_arch = "x86_64")]
const SYS_BPF: std::ffi::c_long = 321;

/// Gives the calling thread these attributes. `clamps`: whether to touch the utilisation clamps
/// at all (a kernel without them refuses them).
pub(crate) fn set_sched(sched: Sched, clamps: bool) -> io::Result<()> {
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
        size: size_of::<SchedAttr>() as u32,
        policy,
        flags: if clamps { UTIL_CLAMP } else { 0 } | if reclaim { RECLAIM } else { 0 },
        nice: sched.nice,
        priority: priority.into(),
        runtime,
        deadline,
        period,
        util_min: sched.clamp.0.unwrap_or(CLAMP_RESET),
        util_max: sched.clamp.1.unwrap_or(CLAMP_RESET),
    };
    // SAFETY: sched_setattr(0, &attr, 0) reads `size` bytes from `attr`, which lives through the
    // call and is as large as it says.
    match unsafe { syscall(SYS_SCHED_SETATTR, 0_u64, &raw const attr, 0_u64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `union bpf_attr` of `include/uapi/linux/bpf.h` for BPF_PROG_LOAD, as far as it is needed here.
#[repr(C)]
struct BpfProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: *const [u8; 8],
    license: *const std::ffi::c_char,
}

/// Arguments of BPF_RAW_TRACEPOINT_OPEN.
#[repr(C)]
struct BpfRawTracepoint {
    name: *const std::ffi::c_char,
    prog_fd: u32,
    unused: u32,
}

const BPF_PROG_LOAD: u64 = 5;
const BPF_RAW_TRACEPOINT_OPEN: u64 = 17;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
/// `r0 = 0; exit`.
const DO_NOTHING: [[u8; 8]; 2] = [[0xb7, 0, 0, 0, 0, 0, 0, 0], [0x95, 0, 0, 0, 0, 0, 0, 0]];

/// Switches the kernel's tracepoint `name` on, for as long as what is returned lives: a program that
/// does nothing is called there.
pub(crate) fn switch_on(name: &str) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    let load = BpfProgLoad {
        prog_type: BPF_PROG_TYPE_RAW_TRACEPOINT,
        insn_cnt: DO_NOTHING.len() as u32,
        insns: DO_NOTHING.as_ptr(),
        license: c"GPL".as_ptr(),
    };
    let program = bpf(BPF_PROG_LOAD, &load)?;
    let open =
        BpfRawTracepoint { name: name.as_ptr(), prog_fd: program.as_raw_fd() as u32, unused: 0 };
    bpf(BPF_RAW_TRACEPOINT_OPEN, &open)
}

/// A command of `bpf` that gives a file; `T` is its part of `union bpf_attr`.
fn bpf<T>(command: u64, attr: &T) -> io::Result<OwnedFd> {
    // SAFETY: bpf(command, attr, size) reads `size` bytes from `attr`, which lives through the call and
    // is as large as that says, and what it points to, which does, too; it writes nothing there.
    let fd = unsafe { syscall(SYS_BPF, command, std::ptr::from_ref(attr), size_of::<T>() as u64) };
    match i32::try_from(fd) {
        // SAFETY: these commands return a new file, which nobody else has.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets QEMU run another vCPU, if one has something to do; elsewhere a hint without effect.
///
/// With one thread for all vCPUs, each runs up to the next timer divided by their number, half a
/// millisecond at HZ=250; to the others that looks like a CPU that stands still.
pub(crate) fn give_turn() {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint instruction without operands; registers, flags and memory stay as they are.
    unsafe {
        std::arch::asm!("yield", options(nomem, nostack, preserves_flags));
    }
}

/// A file on the host, written or read through semihosting.
#[derive(Debug)]
pub(crate) struct HostFile {
    handle: u64,
}

const SYS_OPEN: u64 = 0x01;
const SYS_CLOSE: u64 = 0x02;
const SYS_WRITE: u64 = 0x05;
const SYS_READ: u64 = 0x06;
const SYS_EXIT: u64 = 0x18;
const MODE_READ_BINARY: u64 = 1;
const MODE_WRITE_BINARY: u64 = 5;
/// No file that is read is longer.
const MAX_READ: usize = 4096;
const STOPPED_APPLICATION_EXIT: u64 = 0x20026;
const FAILED: u64 = u64::MAX;

/// Carries out one semihosting operation. `args` holds what "Semihosting for AArch32 and AArch64"
/// says for it: numbers, and addresses of memory that is present (QEMU does not fault pages in).
#[cfg(target_arch = "aarch64")]
fn semihost(operation: u64, args: &[u64; 3]) -> u64 {
    let result: u64;
    // SAFETY: with `-semihosting-config enable=on,userspace=on` QEMU carries out the operation and
    // goes on behind the instruction; it reads memory, writes to none but the buffer of `read`, which is
    // as long as `args` says, and changes no register but x0. Without it the instruction is an
    // illegal one and the process dies by signal.
    unsafe {
        std::arch::asm!("hlt #0xf000", inlateout("x0") operation => result, in("x1") args.as_ptr(), options(nostack));
    }
    result
}

/// Fails: there is no host behind this machine.
#[cfg(not(target_arch = "aarch64"))]
fn semihost(_operation: u64, _args: &[u64; 3]) -> u64 {
    FAILED
}

impl HostFile {
    /// Creates the file `path` on the host, relative to QEMU's working directory.
    pub(crate) fn create(path: &str) -> io::Result<HostFile> {
        HostFile::open(path, MODE_WRITE_BINARY)
            .ok_or_else(|| io::Error::other(format!("the host cannot create {path}")))
    }

    /// Returns when the file `path` on the host is open; a pipe: when somebody has opened its other end.
    pub(crate) fn wait(path: &str) -> io::Result<()> {
        let fail = || io::Error::other(format!("the host cannot open {path}"));
        HostFile::open(path, MODE_READ_BINARY).map(drop).ok_or_else(fail)
    }

    /// Reads the file `path` on the host.
    pub(crate) fn read(path: &str) -> io::Result<Vec<u8>> {
        let fail = || io::Error::other(format!("the host cannot read {path}"));
        let file = HostFile::open(path, MODE_READ_BINARY).ok_or_else(fail)?;
        // Written to, so that its pages are present.
        let mut buffer = std::hint::black_box(vec![1_u8; MAX_READ]);
        let free = semihost(SYS_READ, &[file.handle, buffer.as_mut_ptr() as u64, MAX_READ as u64]);
        let read = MAX_READ.checked_sub(free as usize).ok_or_else(fail)?;
        buffer.truncate(read);
        Ok(buffer)
    }

    fn open(path: &str, mode: u64) -> Option<HostFile> {
        // A copy, so that the page is present: the original may be in a file not yet read in.
        let mut name = path.as_bytes().to_vec();
        name.push(0);
        match semihost(SYS_OPEN, &[name.as_ptr() as u64, mode, path.len() as u64]) {
            FAILED => None,
            handle => Some(HostFile { handle }),
        }
    }
}

impl io::Write for HostFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let not_written =
            semihost(SYS_WRITE, &[self.handle, bytes.as_ptr() as u64, bytes.len() as u64]);
        match bytes.len().checked_sub(not_written as usize) {
            Some(0) | None if !bytes.is_empty() => {
                Err(io::Error::other("the host cannot write: its disk may be full"))
            }
            written => Ok(written.unwrap_or(0)),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for HostFile {
    fn drop(&mut self) {
        semihost(SYS_CLOSE, &[self.handle, 0, 0]);
    }
}

/// Ends the virtual machine, with this exit code of QEMU, through semihosting.
pub(crate) fn end_machine(code: u64) -> ! {
    semihost(SYS_EXIT, &[STOPPED_APPLICATION_EXIT, code, 0]);
    switch_off()
}

/// Switches the machine off.
pub(crate) fn switch_off() -> ! {
    loop {
        let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
        sleep_until(mono() + NSEC);
    }
}
