//! Events: from a record to what it says.
//!
//! ```text
//! switches, wakeups, migrations       who runs where
//! frequency, idle states, hotplug     what the CPUs do
//! rt/…                                signals and memories that probes tell of (`asked`)
//! ftrace/print                        marks that somebody wrote into `trace_marker`
//! ```
//!
//! Times are in ns, by the trace's clock; sums and averages as the kernel has them.
//! Source: include/trace/events/sched.h, power.h, cpuhp.h.

use crate::decisions::{Due, Told, due};
use crate::page::{Format, Record};
use crate::plug::Step;
use risetime_job::mark::JobMark;
use risetime_kernel::units::CpuId;
use risetime_trace::{PressureClass, RqMemory};

/// `UTIL_AVG_UNCHANGED`: the flag bit in a task's `util_est`.
const UTIL_EST_FLAG: i64 = 1 << 31;
/// `prev_state` bits of a task that is no more: `EXIT_DEAD`, `EXIT_ZOMBIE`.
pub const EXITED: i64 = 0x30;
/// `prev_state` bits of a task that does not run on: all reported states.
pub const NOT_RUNNING: i64 = 0xff;
/// `state` of `cpu_idle` when the CPU has left idle.
pub const IDLE_EXIT: i64 = 0xffff_ffff;

/// One event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw<'a> {
    /// `sched_switch`: a CPU goes from one thread to another.
    Switch {
        /// Thread that leaves.
        prev: Thread<'a>,
        /// State in which it leaves, as the kernel writes it.
        prev_state: i64,
        /// Thread that comes.
        next: Thread<'a>,
    },
    /// `sched_wakeup`, `sched_wakeup_new`.
    Wakeup {
        /// Thread that is woken.
        thread: Thread<'a>,
        /// CPU on which it is queued.
        cpu: u32,
        /// True if it has just been created.
        new: bool,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// Number of the thread.
        pid: i32,
        /// CPU that it leaves.
        from: u32,
        /// CPU that it goes to.
        to: u32,
    },
    /// `cpu_frequency`: the frequency of a CPU.
    Freq {
        /// Number of the CPU.
        cpu: u32,
        /// Frequency in kHz.
        khz: u64,
    },
    /// `cpu_idle`: the idle state that a CPU enters, or [`IDLE_EXIT`].
    Idle {
        /// Number of the CPU.
        cpu: u32,
        /// Number of the state.
        state: i64,
    },
    /// A thread's signals as they are updated.
    PeltTask {
        /// Number of the thread.
        pid: i32,
        /// `util_avg`, of 1024.
        util: u64,
        /// `runnable_avg`, of 1024.
        runnable: u64,
        /// Position of `util_avg`.
        position: Position,
    },
    /// A thread's `util_est`.
    UtilEst {
        /// Number of the thread.
        pid: i32,
        /// Estimate, of 1024.
        est: u64,
    },
    /// A CPU's signals of fair tasks as they are updated.
    PeltCfs {
        /// Number of the CPU.
        cpu: u32,
        /// `util_avg`, of 1024.
        util: u64,
        /// `runnable_avg`, of 1024.
        runnable: u64,
        /// `util_est`, of 1024.
        est: u64,
        /// Position of `util_avg`.
        position: Position,
        /// Whether the root domain is overutilised; `None`: this kernel does not say it here.
        over: Option<bool>,
    },
    /// A CPU's signal of another class, or of interrupts.
    Pressure {
        /// Class.
        class: PressureClass,
        /// Number of the CPU.
        cpu: u32,
        /// `util_avg`, of 1024.
        util: u64,
        /// Position of `util_avg`.
        position: Position,
    },
    /// Whether the root domain is overutilised.
    Overutilized(bool),
    /// Capacity that is left for fair tasks.
    Capacity {
        /// Number of the CPU.
        cpu: u32,
        /// Capacity, of 1024.
        capacity: u64,
        /// Times at which the CPU balances next.
        due: Due,
    },
    /// `menu` begins to choose an idle state.
    Menu(Probed),
    /// A group's quota is refilled.
    Period {
        /// Place of the group in the hierarchy's list of them.
        css: u32,
    },
    /// A step of a CPU that goes offline or comes back.
    Plug(Step),
    /// A mark that somebody wrote.
    Mark(&'a str),
    /// A mark of a workload's task, which its agent has noted and put among the events.
    Job {
        /// Place of the task in the workload.
        task: u32,
        /// Mark of the job.
        mark: JobMark,
    },
    /// State from which the kernel decides.
    Told(Told),
}

/// A thread, as switches and wakeups tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread<'a> {
    /// Number of the thread; 0: an idle task.
    pub pid: i32,
    /// Name of the thread.
    pub comm: &'a str,
    /// Priority as the kernel counts: below 0 a deadline, below 100 real-time, 120 is nice 0.
    pub prio: i64,
}

/// Position of a signal: `util_sum`, `period_contrib`, `last_update_time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// `util_sum`.
    pub sum: u64,
    /// `period_contrib`, in µs of 1024 ns.
    pub contrib: u32,
    /// `last_update_time`, in ns of the scheduler's clock.
    pub at: u64,
}

/// Memory of the idle governor `menu` as the probe shows it, when it begins to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probed {
    /// `next_timer_ns` of the choice before.
    pub next_timer_ns: u64,
    /// Bucket of the choice before.
    pub bucket: usize,
    /// `correction_factor` by bucket.
    pub factors: [u32; 6],
    /// Lengths of the last sleeps, in µs.
    pub intervals: [u32; 8],
    /// Place in `intervals` of the next one.
    pub ptr: usize,
    /// State of the runqueue then, which has nothing to do with the governor.
    pub rq: Option<RqMemory>,
    /// `rq->idle_stamp`, in the trace's clock.
    pub idle_stamp: Option<u64>,
    /// Sums that fair tasks have left on the CPU: no other event tells of them where signals are
    /// not traced, or have stood still.
    pub cfs: Option<CfsLeft>,
    /// The sleep that is still to be taken in: its state, its length in ns, and whether the tick ended it.
    pub last: Option<(usize, u64, bool)>,
    /// Prediction that `menu` asked for, if the probe shows it.
    pub asked: Option<Asked>,
}

/// `cfs_rq->avg` of a CPU that goes idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfsLeft {
    /// `util_avg`, of 1024.
    pub util: u64,
    /// `runnable_avg`, of 1024.
    pub runnable: u64,
    /// Position of `util_avg`.
    pub position: Position,
}

/// Values that `menu` is told, but for the next timer, which it asks for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Time from the beginning of the CPU's idling to the next event of its clock.
    pub delta_next_ns: i64,
    /// True if the tick is stopped.
    pub tick_stopped: bool,
}

/// Decoder of an event's record; `None`: the event is of no interest here.
pub type Decode = for<'a> fn(&Format, &Record<'a>) -> Option<Raw<'a>>;

fn n(f: &Format, r: &Record<'_>, field: &str) -> Option<i64> {
    r.number(*f.fields.get(field)?)
}
fn u(f: &Format, r: &Record<'_>, field: &str) -> Option<u64> {
    n(f, r, field).map(|v| v as u64)
}
fn text<'a>(f: &Format, r: &Record<'a>, field: &str) -> Option<&'a str> {
    Some(r.text(*f.fields.get(field)?).unwrap_or("?"))
}
fn position(f: &Format, r: &Record<'_>) -> Option<Position> {
    let contrib = n(f, r, "contrib")? as u32;
    Some(Position { sum: u(f, r, "sum")?, contrib, at: u(f, r, "at")? })
}
/// Entities of groups carry the group's runqueue; kernels without groups have no such field.
fn is_task(f: &Format, r: &Record<'_>) -> bool {
    n(f, r, "my_q").unwrap_or(0) == 0
}

/// Decoders by the event's `SYSTEM/NAME`.
pub const DECODERS: &[(&str, Decode)] = &[
    ("sched/sched_switch", |f, r| {
        Some(Raw::Switch {
            prev: thread(f, r, ["prev_pid", "prev_comm", "prev_prio"])?,
            prev_state: n(f, r, "prev_state")?,
            next: thread(f, r, ["next_pid", "next_comm", "next_prio"])?,
        })
    }),
    ("sched/sched_wakeup", |f, r| wakeup(f, r, false)),
    ("sched/sched_wakeup_new", |f, r| wakeup(f, r, true)),
    ("sched/sched_migrate_task", |f, r| {
        let (from, to) = (n(f, r, "orig_cpu")? as u32, n(f, r, "dest_cpu")? as u32);
        Some(Raw::Migrate { pid: n(f, r, "pid")? as i32, from, to })
    }),
    ("power/cpu_frequency", |f, r| {
        Some(Raw::Freq { cpu: n(f, r, "cpu_id")? as u32, khz: u(f, r, "state")? })
    }),
    ("power/cpu_idle", |f, r| {
        Some(Raw::Idle { cpu: n(f, r, "cpu_id")? as u32, state: n(f, r, "state")? & 0xffff_ffff })
    }),
    ("rt/pelt_se", |f, r| {
        is_task(f, r).then_some(())?;
        Some(Raw::PeltTask {
            pid: n(f, r, "pid")? as i32,
            util: u(f, r, "util")?,
            runnable: u(f, r, "runnable")?,
            position: position(f, r)?,
        })
    }),
    ("rt/uest_se", |f, r| {
        is_task(f, r).then_some(())?;
        Some(Raw::UtilEst { pid: n(f, r, "pid")? as i32, est: util_est(f, r)? })
    }),
    ("rt/pelt_cfs", |f, r| {
        // A group's runqueue is none of the CPU's own: only the root group has no parent.
        (n(f, r, "parent").unwrap_or(0) == 0).then_some(())?;
        Some(Raw::PeltCfs {
            cpu: n(f, r, "cpu")? as u32,
            util: u(f, r, "util")?,
            runnable: u(f, r, "runnable")?,
            est: u(f, r, "est")? & 0xffff_ffff,
            position: position(f, r)?,
            over: n(f, r, "ov").map(|ov| ov != 0),
        })
    }),
    ("rt/pelt_rt", |f, r| pressure(f, r, PressureClass::Rt)),
    ("rt/pelt_dl", |f, r| pressure(f, r, PressureClass::Dl)),
    ("rt/pelt_irq", |f, r| pressure(f, r, PressureClass::Irq)),
    ("rt/ovu", |f, r| Some(Raw::Overutilized(n(f, r, "ov")? != 0))),
    ("rt/cap", capacity),
    ("rt_rare/cap", capacity),
    ("rt_before/menu", |f, r| Some(Raw::Menu(probed(f, r)?))),
    ("rt/menu", |f, r| Some(Raw::Menu(probed(f, r)?))),
    ("rt/cfs_period", |f, r| Some(Raw::Period { css: n(f, r, "css")? as u32 })),
    ("cpuhp/cpuhp_enter", |f, r| {
        let (step, target) = (n(f, r, "idx")?, n(f, r, "target")?);
        Some(Raw::Plug(Step::Enter { cpu: n(f, r, "cpu")? as u32, step, target }))
    }),
    ("cpuhp/cpuhp_exit", |f, r| {
        Some(Raw::Plug(Step::Exit { cpu: n(f, r, "cpu")? as u32, step: n(f, r, "idx")? }))
    }),
    ("ftrace/print", |f, r| Some(Raw::Mark(text(f, r, "buf")?.trim_end()))),
];

fn wakeup<'a>(f: &Format, r: &Record<'a>, new: bool) -> Option<Raw<'a>> {
    let thread = thread(f, r, ["pid", "comm", "prio"])?;
    Some(Raw::Wakeup { thread, cpu: n(f, r, "target_cpu")? as u32, new })
}
fn thread<'a>(f: &Format, r: &Record<'a>, [pid, comm, prio]: [&str; 3]) -> Option<Thread<'a>> {
    // Nobody asks for the priority of an ordinary run.
    let prio = n(f, r, prio).unwrap_or(0);
    Some(Thread { pid: n(f, r, pid)? as i32, comm: text(f, r, comm)?, prio })
}
/// The util_est of a record; up to 6.7 it is the larger one of two numbers.
fn util_est(f: &Format, r: &Record<'_>) -> Option<u64> {
    let est = (n(f, r, "est")? & 0xffff_ffff & !UTIL_EST_FLAG) as u64;
    Some(est.max(u(f, r, "ewma").unwrap_or(0)))
}
fn probed(f: &Format, r: &Record<'_>) -> Option<Probed> {
    let halves = |x: u64| [x as u32, (x >> 32) as u32];
    let ([a, b], [c, d], [e, g]) =
        (halves(u(f, r, "f0")?), halves(u(f, r, "f1")?), halves(u(f, r, "f2")?));
    let mut intervals = [0; 8];
    for (pair, name) in intervals.chunks_mut(2).zip(["i0", "i1", "i2", "i3"]) {
        pair.copy_from_slice(&halves(u(f, r, name)?));
    }
    let (last, slept) = (n(f, r, "last")?, n(f, r, "slept")?);
    let pending = n(f, r, "needs")? != 0 && last >= 0 && slept >= 0;
    let asked = |now: i64| {
        let delta_next_ns = n(f, r, "event")?.saturating_sub(now);
        Some(Asked { delta_next_ns, tick_stopped: n(f, r, "stopped")? != 0 })
    };
    Some(Probed {
        next_timer_ns: u(f, r, "next")?,
        bucket: u(f, r, "bucket")? as usize,
        factors: [a, b, c, d, e, g],
        intervals,
        ptr: u(f, r, "ptr")? as usize,
        rq: rq_memory(f, r),
        idle_stamp: u(f, r, "stamp"),
        cfs: cfs_of(f, r),
        last: pending.then_some((last as usize, slept as u64, n(f, r, "tick")? != 0)),
        asked: n(f, r, "now").and_then(asked),
    })
}
/// The signals that fair tasks have left on a CPU.
fn cfs_of(f: &Format, r: &Record<'_>) -> Option<CfsLeft> {
    let (util, runnable) = (u(f, r, "util")?, u(f, r, "runnable")?);
    Some(CfsLeft { util, runnable, position: position(f, r)? })
}
fn rq_memory(f: &Format, r: &Record<'_>) -> Option<RqMemory> {
    Some(RqMemory {
        distribute: CpuId(u(f, r, "distribute")? as u32),
        extra_bw: u(f, r, "extra")?,
        total_bw: u(f, r, "total")?,
        idled: None,
    })
}
fn capacity<'a>(f: &Format, r: &Record<'a>) -> Option<Raw<'a>> {
    let (cpu, capacity) = (n(f, r, "cpu")? as u32, u(f, r, "cap")?);
    Some(Raw::Capacity { cpu, capacity, due: due(f, r)? })
}
fn pressure(f: &Format, r: &Record<'_>, class: PressureClass) -> Option<Raw<'static>> {
    let (cpu, util) = (n(f, r, "cpu")? as u32, u(f, r, "util")?);
    Some(Raw::Pressure { class, cpu, util, position: position(f, r)? })
}
