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

mod pour;

use crate::menu::Follower;
use crate::plan::Limits;
use risetime_ftrace::decisions::{Decisions, Told};
use risetime_ftrace::event::{
    CfsLeft, EXITED, IDLE_EXIT, NOT_RUNNING, Position, Probed, Raw, Thread,
};
use risetime_ftrace::plug::Plug;
use risetime_ftrace::reader::{Reader, Seen, in_order};
use risetime_job::answer::Answer;
use risetime_job::job::{Job, Task};
use risetime_job::mark::{JobMark, MARK_NUMBERS};
use risetime_kernel::KernelRev;
use risetime_kernel::units::{
    Capacity, ClockPelt, CpuId, GroupId, Instant, KHz, Span, TaskId, Util,
};
use risetime_model::Platform;
use risetime_model::platform::Domain;
use risetime_trace::{
    BalanceMemory, Event, Hears, IdleMemory, Name, PeriodMemory, Role, SwitchOut, Threads,
    TraceSink, Why,
};
use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

pub(crate) use pour::pour;

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
    events: Vec<Seen<'a>>,
    /// `lost`, one line each.
    pub(crate) lost: Vec<String>,
    start: u64,
    end: u64,
    /// A tick, from the start.
    pub(crate) tick: Option<Instant>,
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
        let format = |name: &str| string(&format!("format {name}")).ok().map(Cow::into_owned);
        let reader = Reader::new(&string("header_page")?, format)?;
        let mut events = Vec::new();
        let mut lost = Vec::new();
        for (name, pages) in &answer.sections {
            let Some(cpu) = name.strip_prefix("pages ").and_then(|c| c.parse::<u32>().ok()) else {
                continue;
            };
            if reader.cpu(cpu, pages, &mut events)? {
                lost.push(format!("CPU {cpu}: events were overwritten"));
            }
        }
        let ahead = ahead_of_mono(&events);
        let noted = ahead.map_or(Ok(Vec::new()), |ahead| job_marks(answer, ahead))?;
        events.extend(noted);
        let values = answer.values();
        let number = |name: &str| {
            let value = values.iter().find(|(key, _)| key == name);
            value.and_then(|(_, n)| n.parse::<u64>().ok())
        };
        in_order(&mut events, number("hz"));
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
fn ahead_of_mono(events: &[Seen<'_>]) -> Option<i64> {
    let between = |(at, _, raw): &Seen<'_>| match raw {
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
fn job_marks<'a>(answer: &Answer<'a>, ahead: i64) -> Result<Vec<Seen<'a>>, String> {
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

/// The workload's group of that place in the hierarchy's list: the root is the first, then they come in order.
fn of_css(css: u32) -> Option<GroupId> {
    css.checked_sub(1).map(GroupId).filter(|group| *group != GroupId::ROOT)
}

/// The time at which the first of `pids` is created.
fn created(trace: &Trace<'_>, pids: &[i32]) -> u64 {
    let first = |e: &&Seen<'_>| matches!(e.2, Raw::Wakeup { thread, new: true, .. } if pids.first() == Some(&thread.pid));
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
