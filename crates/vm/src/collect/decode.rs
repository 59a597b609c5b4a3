//! The records of a trace's ring buffer: what each of them says.

use super::*;

/// One event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Raw<'a> {
    Switch {
        prev: Thread<'a>,
        prev_state: i64,
        next: Thread<'a>,
    },
    Wakeup {
        thread: Thread<'a>,
        cpu: u32,
        new: bool,
    },
    Migrate {
        pid: i32,
        from: u32,
        to: u32,
    },
    Freq {
        cpu: u32,
        khz: u64,
    },
    Idle {
        cpu: u32,
        state: i64,
    },
    PeltTask {
        pid: i32,
        util: u64,
        runnable: u64,
        position: Position,
    },
    UtilEst {
        pid: i32,
        est: u64,
    },
    PeltCfs {
        cpu: u32,
        util: u64,
        runnable: u64,
        est: u64,
        position: Position,
        over: Option<bool>,
    },
    Pressure {
        class: PressureClass,
        cpu: u32,
        util: u64,
        position: Position,
    },
    Overutilized(bool),
    Capacity {
        cpu: u32,
        capacity: u64,
        due: Due,
    },
    Menu(Probed),
    Period {
        css: u32,
    },
    Plug(Step),
    Mark(&'a str),
    /// A mark of the workload's task of this number.
    Job {
        task: u32,
        mark: JobMark,
    },
    /// State from which the kernel decides.
    Told(Told),
}

/// A thread, as switches and wakeups tell of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Thread<'a> {
    pub(super) pid: i32,
    pub(super) comm: &'a str,
    pub(super) prio: i64,
}

/// Decoder of an event's record; `None`: the event is of no interest here.
pub(super) type Decode = for<'a> fn(&Format, &Record<'a>) -> Option<Raw<'a>>;

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

pub(super) const DECODERS: &[(&str, Decode)] = &[
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
