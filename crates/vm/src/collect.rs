//! Collecting: from the agent's answer to a trace.
//!
//! ```text
//! time 0       the mark `rt start`; what came before gives the state the run starts from
//! order        time, then CPU, then the CPU's own order
//! tasks        the workload's by the agent's word, numbered as in the workload; every other
//!              thread of the system by its pid, numbered after them as it appears
//! ```
//!
//! The kernel does not say why it placed a task or chose a frequency: [`Why::Unknown`], except
//! for the first task, which is put where it is.
//! Signals that were updated before time 0 are told of at time 0, the last update of each.
//! Left out: signals of groups, events of CPUs in a frequency domain that
//! only repeat its first CPU's.

use crate::decisions::{self, Choice, Decisions, Due, Few, Told, due, of_css};
use crate::menu::{Asked, CfsLeft, Follower, Position, Probed};
use crate::plan::Limits;
use crate::plug::{Plug, Step};
use crate::ring::{Format, PageLayout, Record, records};
use risetime_job::answer::Answer;
use risetime_job::job::{Job, Task};
use risetime_job::mark::{JobMark, MARK_NUMBERS};
use risetime_kernel::KernelRev;
use risetime_kernel::units::{Capacity, ClockPelt, CpuId, Instant, KHz, Span, TaskId, Util};
use risetime_model::Platform;
use risetime_model::platform::Domain;
use risetime_trace::{
    BalanceMemory, Event, Hears, IdleMemory, Name, PeriodMemory, PressureClass, Role, RqMemory,
    SwitchOut, Threads, TraceSink, Why,
};
use std::collections::{BTreeMap, VecDeque};

/// `UTIL_AVG_UNCHANGED`: the flag bit in a task's `util_est`.
const UTIL_EST_FLAG: i64 = 1 << 31;
/// `prev_state` bits of a task that is no more: `EXIT_DEAD`, `EXIT_ZOMBIE`.
const EXITED: i64 = 0x30;
/// `prev_state` bits of a task that does not run on: all reported states.
const NOT_RUNNING: i64 = 0xff;
/// `cpu_idle`: the CPU has left idle.
const IDLE_EXIT: i64 = 0xffff_ffff;

/// Facts that a trace is told besides its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Collected {
    /// The end of the run.
    pub(crate) end: Instant,
    /// Number of events that went into the sink.
    pub(crate) events: u64,
}

/// The answer's events by time, and what else it says, ready to be poured into a sink.
#[derive(Debug)]
pub(crate) struct Trace<'a> {
    events: Vec<(u64, u32, Raw<'a>)>,
    /// `lost`, one line each.
    pub(crate) lost: Vec<String>,
    start: u64,
    end: u64,
    /// A tick, from the start.
    pub(crate) tick: Option<Instant>,
}

/// One event of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Raw<'a> {
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
struct Thread<'a> {
    pid: i32,
    comm: &'a str,
    prio: i64,
}

/// Decoder of an event's record; `None`: the event is of no interest here.
type Decode = for<'a> fn(&Format, &Record<'a>) -> Option<Raw<'a>>;

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

const DECODERS: &[(&str, Decode)] = &[
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

impl<'a> Trace<'a> {
    /// The events of `answer`, those from which the kernel decides with them.
    ///
    /// Errors: formats or pages that are not understood, no start or end mark.
    pub(crate) fn read(answer: &Answer<'a>) -> Result<Trace<'a>, String> {
        let string = |name: &str| {
            answer
                .section(name)
                .map(String::from_utf8_lossy)
                .ok_or_else(|| format!("the answer has no section `{name}`"))
        };
        let layout = PageLayout::parse(&string("header_page")?)?;
        let mut decoders: BTreeMap<u16, (Format, Decode)> = BTreeMap::new();
        for (name, decode) in DECODERS {
            if let Ok(text) = string(&format!("format {name}")) {
                let format = Format::parse(&text)
                    .ok_or_else(|| format!("the format of {name} is not understood"))?;
                decoders.insert(format.id, (format, *decode));
            }
        }
        let mut more: BTreeMap<u16, (Format, decisions::Decode)> = BTreeMap::new();
        for (name, decode) in decisions::DECODERS {
            let format = string(&format!("format {name}")).ok().and_then(|t| Format::parse(&t));
            more.extend(format.map(|format| (format.id, (format, *decode))));
        }
        let mut events = Vec::new();
        let mut lost = Vec::new();
        for (name, pages) in &answer.sections {
            let Some(cpu) = name.strip_prefix("pages ").and_then(|c| c.parse::<u32>().ok()) else {
                continue;
            };
            let (found, missing) = records(layout, pages).map_err(|e| format!("CPU {cpu}: {e}"))?;
            if missing {
                lost.push(format!("CPU {cpu}: events were overwritten"));
            }
            for r in found {
                let decoded =
                    r.id().and_then(|id| decoders.get(&id)).and_then(|(f, decode)| decode(f, &r));
                events.extend(decoded.map(|raw| (r.at, cpu, raw)));
                let told = r.id().and_then(|id| more.get(&id)).map(|(f, decode)| decode(f, &r));
                let told: Few = told.unwrap_or_default();
                events.extend(told.into_iter().flatten().map(|told| (r.at, cpu, Raw::Told(told))));
            }
        }
        let ahead = ahead_of_mono(&events);
        let noted = ahead.map_or(Ok(Vec::new()), |ahead| job_marks(answer, ahead))?;
        events.extend(noted);
        // Stable: events of one CPU at one time stay in their order.
        events.sort_by_key(|(at, cpu, _)| (*at, *cpu));
        decisions::fill_in(events.iter_mut().rev().filter_map(|(_, cpu, raw)| match raw {
            Raw::Menu(probed) => Some((*cpu, Choice::Begins(probed))),
            Raw::Told(told) => Some((*cpu, Choice::Told(told))),
            _ => None,
        }));
        let values = answer.values();
        let number = |name: &str| {
            let value = values.iter().find(|(key, _)| key == name);
            value.and_then(|(_, n)| n.parse::<u64>().ok())
        };
        if let Some(hz) = number("hz").filter(|hz| *hz > 0) {
            let looks = events.iter_mut().filter_map(|(at, _, raw)| match raw {
                Raw::Capacity { due, .. } | Raw::Told(Told::Look { due, .. }) => Some((*at, due)),
                _ => None,
            });
            decisions::count_jiffies(looks, 1_000_000_000 / hz);
        }
        let mark = |text: &str| {
            events
                .iter()
                .find(|e| e.2 == Raw::Mark(text))
                .map(|e| e.0)
                .ok_or_else(|| format!("the trace has no mark `{text}`"))
        };
        let (start, end) = (mark("rt start")?, mark("rt end")?);
        let tick = number("a_tick").zip(ahead).map(|(mono, ahead)| mono.wrapping_add_signed(ahead));
        let tick = tick.and_then(|at| at.checked_sub(start)).map(Instant);
        Ok(Trace { events, lost, start, end, tick })
    }
}

/// The time by which the trace's clock is ahead of CLOCK_MONOTONIC: marks in the trace say what
/// that was just before.
fn ahead_of_mono(events: &[(u64, u32, Raw<'_>)]) -> Option<i64> {
    let between = |(at, _, raw): &(u64, u32, Raw<'_>)| match raw {
        Raw::Mark(text) => {
            let mono: i64 = text.strip_prefix("rt mono ")?.parse().ok()?;
            Some(*at as i64 - mono)
        }
        _ => None,
    };
    events.iter().filter_map(between).min()
}

/// Reads what tasks noted of their jobs, by the trace's clock, which is `ahead` of CLOCK_MONOTONIC.
///
/// Errors: a section that is not understood.
fn job_marks<'a>(answer: &Answer<'a>, ahead: i64) -> Result<Vec<(u64, u32, Raw<'a>)>, String> {
    let by_trace = |mono: u64| mono.wrapping_add_signed(ahead);
    let mut found = Vec::new();
    for (name, text) in &answer.sections {
        let Some(task) = name.strip_prefix("marks ").and_then(|n| n.parse().ok()) else { continue };
        for line in String::from_utf8_lossy(text).lines() {
            let wrong = || format!("`{name}`: found {line:?}, wanted a mark of a job");
            let mut numbers = [0; MARK_NUMBERS + 1];
            let mut words = line.split(' ');
            for n in &mut numbers {
                *n = words.next().and_then(|w| w.parse().ok()).ok_or_else(wrong)?;
            }
            let [at, numbers @ ..] = numbers;
            let mark = JobMark::from_numbers(numbers).ok_or_else(wrong)?;
            let mark = mark.with_times(|t| Instant(by_trace(t.0)));
            found.push((by_trace(at), u32::MAX, Raw::Job { task, mark }));
        }
    }
    Ok(found)
}

/// The times at which each CPU balances next, as they were when the first of `pids` was created:
/// the first look of each CPU after that tells them before it changes them.
pub(crate) fn balance_memory(trace: &Trace<'_>, pids: &[i32]) -> Vec<BalanceMemory> {
    let created = created(trace, pids);
    let mut found: BTreeMap<u32, BalanceMemory> = BTreeMap::new();
    for (at, _, raw) in trace.events.iter().filter(|e| e.0 >= created) {
        if let Raw::Capacity { cpu, due, .. } = raw {
            let relative = |jiffies: u64| jiffies.wrapping_sub(due.jiffies) as i64;
            let known = due.domains.iter().take_while(|(_, interval)| *interval != 0);
            found.entry(*cpu).or_insert_with(|| BalanceMemory {
                cpu: CpuId(*cpu),
                after: Span(at - created),
                next_balance: relative(due.next),
                domains: known.map(|(last, ms)| (relative(*last), *ms)).collect(),
            });
        }
    }
    found.into_values().collect()
}

/// A moment at which the quota of each group is refilled: the first one after time 0.
pub(crate) fn period_memory(trace: &Trace<'_>) -> Vec<PeriodMemory> {
    let mut found: BTreeMap<u32, PeriodMemory> = BTreeMap::new();
    for (at, _, raw) in trace.events.iter().filter(|e| e.0 >= trace.start) {
        if let Raw::Period { css } = raw
            && let Some(group) = of_css(*css)
        {
            let ends = Instant(at - trace.start);
            found.entry(*css).or_insert(PeriodMemory { group, ends });
        }
    }
    found.into_values().collect()
}

/// The time at which the first of `pids` is created.
fn created(trace: &Trace<'_>, pids: &[i32]) -> u64 {
    let first = |e: &&(u64, u32, Raw<'_>)| matches!(e.2, Raw::Wakeup { thread, new: true, .. } if pids.first() == Some(&thread.pid));
    trace.events.iter().find(first).map_or(trace.start, |e| e.0)
}

/// The memory of `menu` when the first of `pids` is created, of each CPU of which that is known.
pub(crate) fn idle_memory(
    trace: &Trace<'_>,
    platform: &Platform,
    rev: KernelRev,
    job: &Job,
    pids: &[i32],
) -> Vec<IdleMemory> {
    let created = created(trace, pids);
    let of = |cpu: CpuId| Follower::new(platform, rev, cpu, cpu.0 == job.first_cpu);
    let mut followers: Vec<Follower> = platform.cpus().map(of).collect();
    for (at, cpu, raw) in trace.events.iter().take_while(|e| e.0 < created) {
        let at_cpu = if let Raw::Idle { cpu, .. } = raw { *cpu } else { *cpu };
        let Some(follower) = followers.get_mut(at_cpu as usize) else { continue };
        match raw {
            Raw::Menu(probed) => follower.probed(probed),
            Raw::Idle { state: IDLE_EXIT, .. } => follower.leaves(*at),
            Raw::Idle { state, .. } => follower.enters(*state as u32, *at),
            Raw::Switch { next: Thread { pid: 0, .. }, .. } => follower.goes_idle(*at),
            _ => {}
        }
    }
    followers.into_iter().filter_map(|f| f.at(created)).collect()
}

/// Pours `trace` into `sink`, from time 0 to the end mark. `pids` are the workload's threads: the
/// job's tasks and then those of them that were forked, each of which copies the task that `forks`
/// has of it. `decisions`: the kernel, if it is also to tell from what it decides.
pub(crate) fn pour(
    trace: &Trace<'_>,
    platform: &Platform,
    job: &Job,
    pids: &[i32],
    forks: &[usize],
    decisions: Option<KernelRev>,
    sink: &mut dyn TraceSink,
) -> Collected {
    let looks = || trace.events.iter().any(|e| matches!(e.2, Raw::Told(Told::Look { .. })));
    let threads = threads(job, forks);
    let names = threads.iter().map(|(comm, _)| comm.clone()).collect::<Vec<_>>();
    let names = names.iter().map(String::as_str).chain(std::iter::repeat(""));
    let mut p = Pour {
        platform,
        limits: threads.iter().map(|t| Limits::new(platform, job, &t.1.attr)).collect(),
        threads,
        tells_prios: decisions.is_some() || sink.listens() == Hears::Attributes,
        prios: BTreeMap::new(),
        sink,
        events: 0,
        now: Instant(0),
        start: trace.start,
        who: Threads::of_workload(
            pids.iter().map(|pid| Some(*pid).filter(|pid| *pid > 0)).zip(names),
        ),
        known: BTreeMap::new(),
        running: vec![None; platform.nr_cpus()],
        idle: platform.cpus().map(|c| deepest(platform, c)).collect(),
        freq: BTreeMap::new(),
        signals: BTreeMap::new(),
        overutilized: None,
        decisions: decisions.map(|rev| Decisions::new(rev, looks())),
        plug: Plug::new(trace.events.iter().filter_map(|(.., raw)| match raw {
            Raw::Plug(step) => Some(*step),
            _ => None,
        })),
    };
    let (before, run) = trace.events.split_at(trace.events.partition_point(|e| e.0 < trace.start));
    before.iter().for_each(|(_, cpu, raw)| p.before(*cpu, raw));
    p.snapshot();
    for (at, cpu, raw) in run.iter().take_while(|e| e.0 <= trace.end) {
        p.now = Instant(at - trace.start);
        p.event(*cpu, raw);
    }
    Collected { end: Instant(trace.end - trace.start), events: p.events }
}

/// Lists every frequency that a domain gets in the run, by the domain's place.
pub(crate) fn changes(trace: &Trace<'_>, platform: &Platform) -> Vec<VecDeque<(Instant, KHz)>> {
    let mut all = vec![VecDeque::new(); platform.domains.len()];
    for (at, _, raw) in trace.events.iter().filter(|e| e.0 >= trace.start) {
        // Each of its CPUs tells of it.
        if let Raw::Freq { cpu, khz } = *raw
            && let Some(of) = platform.domain_of(CpuId(cpu)).map(|d| &mut all[d])
            && of.back().is_none_or(|(_, last)| *last != KHz(khz))
        {
            of.push_back((Instant(at - trace.start), KHz(khz)));
        }
    }
    all
}

/// The workload's threads by number, with their names.
pub(crate) fn threads<'a>(job: &'a Job, forks: &[usize]) -> Vec<(String, &'a Task)> {
    let mut threads: Vec<_> = job.tasks.iter().map(|t| (t.comm.clone(), t)).collect();
    let mut count = vec![0; job.forked.len()];
    for of in forks {
        if let Some(task) = job.forked.get(*of) {
            threads.push((format!("{}-{:04}", task.comm, count[*of]), task));
            count[*of] += 1;
        }
    }
    threads
}

/// The state of a CPU that has been idle for long.
fn deepest(platform: &Platform, cpu: CpuId) -> Option<u32> {
    let d = &platform.domains[platform.domain_of(cpu)?];
    (d.idle.len() as u32).checked_sub(1)
}

struct Pour<'a> {
    platform: &'a Platform,
    /// The workload's.
    threads: Vec<(String, &'a Task)>,
    sink: &'a mut dyn TraceSink,
    events: u64,
    now: Instant,
    /// Time 0 in the kernel's clock.
    start: u64,
    who: Threads,
    /// Tasks the sink has been told of, with the CPU they were last seen on.
    known: BTreeMap<TaskId, CpuId>,
    /// Limits of the workload's tasks.
    limits: Vec<Limits>,
    // What was before time 0.
    running: Vec<Option<(i32, String, i64)>>,
    idle: Vec<Option<u32>>,
    freq: BTreeMap<u32, u64>,
    /// The last update of each CPU's signals, by class.
    signals: BTreeMap<(u32, &'static str), Event>,
    overutilized: Option<bool>,
    /// Decisions, where it is wanted from what the kernel decides.
    decisions: Option<Decisions>,
    /// The priority of each task that is known, told where somebody wants it.
    prios: BTreeMap<TaskId, i64>,
    tells_prios: bool,
    plug: Plug,
}

impl Pour<'_> {
    fn emit(&mut self, event: Event) {
        self.sink.event(self.now, &event);
        self.events += 1;
    }

    /// An event before time 0: only the state it leaves matters.
    fn before(&mut self, cpu: u32, raw: &Raw<'_>) {
        match *raw {
            Raw::Switch { next: Thread { pid, comm, prio }, .. } => {
                if let Some(r) = self.running.get_mut(cpu as usize) {
                    *r = (pid != 0).then(|| (pid, comm.to_string(), prio));
                }
            }
            Raw::Idle { cpu, state } => {
                if let Some(i) = self.idle.get_mut(cpu as usize) {
                    *i = (state != IDLE_EXIT).then_some(state as u32);
                }
            }
            Raw::Freq { cpu, khz } => drop(self.freq.insert(cpu, khz)),
            Raw::PeltCfs { cpu, over, .. } => {
                self.signals.extend(self.signal(raw).map(|e| ((cpu, "cfs"), e)));
                self.overutilized = over.or(self.overutilized);
            }
            Raw::Pressure { class, cpu, .. } => {
                self.signals.extend(self.signal(raw).map(|e| ((cpu, class.as_str()), e)));
            }
            Raw::Capacity { cpu, .. } => {
                self.signals.extend(self.signal(raw).map(|e| ((cpu, "capacity"), e)));
            }
            Raw::Overutilized(on) => self.overutilized = Some(on),
            Raw::Menu(Probed { cfs: Some(CfsLeft { util, runnable, position }), .. }) => {
                let left = Raw::PeltCfs { cpu, util, runnable, est: 0, position, over: None };
                self.signals.extend(self.signal(&left).map(|e| ((cpu, "cfs"), e)));
            }
            Raw::Told(told) => {
                if let Told::Queue { cpu, .. } = told {
                    let queue = told.queue().filter(|_| self.decisions.is_some());
                    self.signals.extend(queue.map(|e| ((cpu, "queue"), e)));
                } else if let Some(d) = &mut self.decisions
                    && let Told::Entity { .. } = told
                {
                    // Nobody is known yet: it is kept.
                    d.told(cpu, &told, |_| None, |_| {});
                }
            }
            Raw::Mark(text) => {
                let words: Vec<&str> = text.split(' ').collect();
                if let ["rt", "freq", cpu, khz] = words[..]
                    && let (Ok(cpu), Ok(khz)) = (cpu.parse(), khz.parse())
                {
                    self.freq.insert(cpu, khz);
                }
            }
            _ => {}
        }
    }

    /// Emits where everything stands at time 0.
    fn snapshot(&mut self) {
        for d in &self.platform.domains {
            let cpu = d.cpus[0];
            let freq = self.freq.get(&cpu.0).copied().map_or(d.opps[0].freq, KHz);
            self.emit(Event::Freq { cpu, freq });
        }
        for cpu in self.platform.cpus() {
            match self.running[cpu.index()].clone() {
                Some((pid, comm, prio)) => {
                    let task = self.task(Thread { pid, comm: &comm, prio }, cpu);
                    self.emit(Event::Switch { cpu, prev: None, next: Some(task) });
                }
                None => {
                    if let Some(state) = self.idle_state(cpu, self.idle[cpu.index()]) {
                        self.emit(Event::Idle { cpu, state: Some(state) });
                    }
                }
            }
        }
        for event in std::mem::take(&mut self.signals).into_values() {
            self.emit(event);
        }
        if let Some(on) = self.overutilized {
            self.emit(Event::Overutilized { on });
        }
    }

    /// An event about a CPU's signals; `None`: it is about something else.
    fn signal(&self, raw: &Raw<'_>) -> Option<Event> {
        Some(match *raw {
            Raw::PeltCfs { cpu, util, runnable, est, position, .. } => Event::PeltCfs {
                cpu: CpuId(cpu),
                util_avg: Util(util),
                runnable_avg: Util(runnable),
                util_est: Util(est),
                util_sum: position.sum,
                period_contrib: position.contrib,
                last_update_time: self.clock(position),
            },
            Raw::Pressure { class, cpu, util, position } => Event::PeltPressure {
                cpu: CpuId(cpu),
                class,
                util_avg: Util(util),
                util_sum: position.sum,
                period_contrib: position.contrib,
                last_update_time: self.clock(position),
            },
            Raw::Capacity { cpu, capacity, .. } => {
                Event::CpuCapacity { cpu: CpuId(cpu), capacity: Capacity(capacity) }
            }
            _ => return None,
        })
    }

    /// `last_update_time` counted from time 0.
    fn clock(&self, position: Position) -> ClockPelt {
        ClockPelt(position.at.wrapping_sub(self.start))
    }

    /// A kernel's idle state as the platform's; `None`: the platform has none.
    fn idle_state(&self, cpu: CpuId, state: Option<u32>) -> Option<u32> {
        Some(state?.min(deepest(self.platform, cpu)?))
    }

    /// A thread's task, which the sink is told of if it has not been.
    fn task(&mut self, thread: Thread<'_>, cpu: CpuId) -> TaskId {
        let Thread { pid, comm, prio } = thread;
        let task = self.who.seen(pid, self.now, comm, Role::System);
        if self.known.insert(task, cpu).is_none() {
            let user = self.threads.get(task.index()).map(|(comm, _)| comm.clone());
            let max_speed =
                self.limits.get(task.index()).map_or(Util(1024), |l| l.max_speed(self.platform));
            let first = user.is_some()
                && self.known.keys().filter(|t| t.index() < self.threads.len()).count() == 1;
            let why = if first { Why::FirstCpu } else { Why::Unknown };
            let known = user.is_some();
            let comm = Name::new(user.as_deref().unwrap_or(comm));
            self.emit(Event::TaskNew { task, comm, user: known, cpu, why, max_speed });
            self.tell_limits(task, false);
            let entity = self.decisions.as_mut().and_then(|d| d.known(pid, task));
            entity.into_iter().for_each(|event| self.emit(event));
        }
        if self.prios.insert(task, prio) != Some(prio) && self.tells_prios {
            self.emit(Event::Prio { task, prio: prio as i32 });
        }
        task
    }

    /// Passes on what the kernel tells of its decisions.
    fn told(&mut self, cpu: u32, told: &Told) {
        let Some(mut d) = self.decisions.take() else { return };
        // Every task has a deadline's fields: they mean something in that class.
        let other = |task: TaskId| self.prios.get(&task).is_none_or(|prio| *prio >= 0);
        let of_deadline = matches!(told, Told::Deadline { .. });
        let known = |pid| {
            let task = self.who.get(pid)?;
            (self.known.contains_key(&task) && !(of_deadline && other(task))).then_some(task)
        };
        let (sink, now, events) = (&mut *self.sink, self.now, &mut self.events);
        d.told(cpu, told, known, |event| {
            sink.event(now, &event);
            *events += 1;
        });
        self.decisions = Some(d);
    }

    fn known_task(&self, pid: i32) -> Option<(TaskId, CpuId)> {
        let task = self.who.get(pid)?;
        Some((task, *self.known.get(&task)?))
    }

    fn event(&mut self, cpu: u32, raw: &Raw<'_>) {
        let here = CpuId(cpu);
        match *raw {
            Raw::Switch { prev, prev_state, next } => self.switch(here, prev, prev_state, next),
            Raw::Wakeup { thread, cpu, new } => {
                let cpu = CpuId(cpu);
                let fresh = self.known_task(thread.pid).is_none();
                let task = self.task(thread, cpu);
                self.known.insert(task, cpu);
                // Becoming known says that it is runnable.
                if !new && !fresh {
                    self.emit(Event::Wakeup { task, cpu, why: Why::Unknown });
                }
            }
            Raw::Migrate { pid, from, to } => {
                let (from, to) = (CpuId(from), CpuId(to));
                // A thread that sleeps and is not known yet will be told of when it wakes.
                if let Some((task, _)) = self.known_task(pid) {
                    self.known.insert(task, to);
                    self.emit(Event::Migrate { task, from, to, why: Why::Unknown });
                }
            }
            Raw::Freq { cpu, khz } => {
                // Each of its CPUs that is online tells of it.
                let plug = &self.plug;
                let first = |d: &&Domain| {
                    let mut online = d.cpus.iter().filter(|c| !plug.offline.contains(&c.0));
                    online.next().is_some_and(|c| c.0 == cpu)
                };
                if let Some(d) = self.platform.domains.iter().find(first) {
                    self.emit(Event::Freq { cpu: d.cpus[0], freq: KHz(khz) });
                }
            }
            Raw::Idle { cpu, state } => {
                let cpu = CpuId(cpu);
                let left = state == IDLE_EXIT;
                let state = self.idle_state(cpu, (!left).then_some(state as u32));
                if left || state.is_some() {
                    self.emit(Event::Idle { cpu, state });
                }
            }
            Raw::PeltTask { pid, util, runnable, position } => {
                if let Some((task, cpu)) = self.known_task(pid) {
                    self.emit(Event::PeltTask {
                        task,
                        cpu,
                        util_avg: Util(util),
                        runnable_avg: Util(runnable),
                        util_sum: position.sum,
                        period_contrib: position.contrib,
                        last_update_time: self.clock(position),
                    });
                }
            }
            Raw::UtilEst { pid, est } => {
                if let Some((task, _)) = self.known_task(pid) {
                    self.emit(Event::UtilEst { task, util_est: Util(est) });
                }
            }
            Raw::PeltCfs { .. } | Raw::Pressure { .. } | Raw::Capacity { .. } => {
                if let Some(event) = self.signal(raw) {
                    self.emit(event);
                }
                if let Raw::Capacity { cpu, due, .. } = *raw {
                    let due = self.decisions.as_ref().and_then(|d| d.due(cpu, due));
                    due.into_iter().for_each(|event| self.emit(event));
                }
            }
            Raw::Overutilized(on) => self.emit(Event::Overutilized { on }),
            Raw::Plug(step) => {
                if let Some((cpu, online)) = self.plug.step(step) {
                    self.emit(Event::Hotplug { cpu: CpuId(cpu), online });
                }
            }
            Raw::Menu(ref probed) => {
                self.decisions.iter_mut().for_each(|d| d.menu(cpu, probed));
            }
            Raw::Period { .. } => {}
            Raw::Told(ref told) => self.told(cpu, told),
            Raw::Mark(text) => self.mark(text),
            Raw::Job { task, mark } => {
                let task = TaskId(task);
                if self.known.contains_key(&task) {
                    let start = self.start;
                    let mark = mark.with_times(|at| Instant(at.0.saturating_sub(start)));
                    self.emit(Event::Job { task, mark });
                }
            }
        }
    }

    fn switch(&mut self, cpu: CpuId, prev: Thread<'_>, prev_state: i64, next: Thread<'_>) {
        let left = match prev_state {
            s if s & EXITED != 0 => SwitchOut::Exited,
            s if s & NOT_RUNNING != 0 => SwitchOut::Sleeping,
            _ => SwitchOut::Preempted,
        };
        let leaves = prev.pid;
        let prev = (leaves != 0).then(|| (self.task(prev, cpu), left));
        let next = (next.pid != 0).then(|| self.task(next, cpu));
        if let Some((task, SwitchOut::Exited)) = prev {
            self.who.gone(leaves);
            self.prios.remove(&task);
        }
        self.emit(Event::Switch { cpu, prev, next });
    }

    fn mark(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let ["rt", "phase", task, index] = words[..] else { return };
        let (Ok(task), Ok(index)) = (task.parse::<usize>(), index.parse::<usize>()) else { return };
        let Some(phase) = self.threads.get(task).and_then(|(_, t)| t.phases.get(index)) else {
            return;
        };
        let id = TaskId(task as u32);
        self.emit(Event::Phase { task: id, index: index as u32, name: phase.name });
        let before = self.limits[task].clone();
        self.limits[task].take(&phase.attr);
        let max_speed = self.limits[task].max_speed(self.platform);
        if max_speed != before.max_speed(self.platform) {
            self.emit(Event::MaxSpeed { task: id, max_speed });
        }
        let told = before.speed_limits(self.platform);
        if told != self.limits[task].speed_limits(self.platform) {
            self.tell_limits(id, true);
        }
    }

    /// Emits what takes speed from a task; `anew`: even if nothing does.
    fn tell_limits(&mut self, task: TaskId, anew: bool) {
        let Some(limits) = self.limits.get(task.index()) else { return };
        let (affinity, clamped) = limits.speed_limits(self.platform);
        if anew || (affinity, clamped) != (Util(1024), Util(1024)) {
            self.emit(Event::SpeedLimits { task, affinity, clamped });
        }
    }
}
