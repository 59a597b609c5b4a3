//! Way from rows and facts to events with tasks, for either pass.

use crate::beside::{Beside, Mark};
use crate::events::{Fields, Row, States, readable};
use crate::summary::ReadSummary;
use crate::survey::{MAX_CPUS, Survey};
use crate::take::{Fact, Stamp, Take};
use risetime_kernel::units::{ClockPelt, CpuId, Instant, KHz, TaskId, Util};
use risetime_trace::{Event, Header, Hears, Name, Role, Threads, TraceSink, Why};
use std::collections::{BTreeMap, BTreeSet};

/// Length of a thread's name in the kernel, its NUL counted.
const COMM: usize = 16;
/// Priority that stands for none.
const NO_PRIO: i16 = i16::MIN;
/// The speed that any task may get, of 1024.
const MAX_SPEED: Util = Util(1024);

/// Receiver of what comes out of a pass.
enum Out<'a> {
    Survey(&'a mut Survey),
    Pour(Box<Pour<'a>>),
}

/// The second pass.
struct Pour<'a> {
    survey: &'a Survey,
    sink: &'a mut dyn TraceSink,
    beside: &'a mut dyn Beside,
    hears: Hears,
    base: u64,
    begun: bool,
    /// Losses that are still to come.
    gaps: &'a [(u64, u32)],
    cpus: u32,
    /// Place of each CPU's frequency domain.
    domain_of: Vec<usize>,
    /// First CPU, frequency and limits of each domain, as they were told last.
    domains: Vec<Domain>,
    pushed: u64,
    records: u64,
}

/// A frequency domain.
struct Domain {
    first: CpuId,
    freq: Option<KHz>,
    limits: Option<(KHz, KHz)>,
}

/// State that is kept of a task.
#[derive(Clone, Copy)]
struct Known {
    /// True once a new task was told.
    told: bool,
    prio: i16,
    /// Name that an event gave last, in the first pass.
    comm: [u8; COMM],
}

/// A pass over a trace.
pub(crate) struct Story<'a> {
    out: Out<'a>,
    now: u64,
    backwards: u64,
    base: u64,
    threads: Threads,
    known: Vec<Known>,
    processes: Vec<i32>,
    /// Threads that are about to end, and that were forked and not woken yet.
    exiting: BTreeSet<i32>,
    forked: BTreeSet<i32>,
    /// Processes and names told apart from events.
    named: BTreeMap<i32, (i32, Option<Name>)>,
    states: States,
    /// Handlers in which each CPU is, one in another.
    handlers: Vec<u32>,
    /// True if nothing tells of a wakeup but its begin.
    waking_wakes: bool,
}

impl<'a> Story<'a> {
    /// Returns the first pass, which fills `survey`.
    pub(crate) fn survey(survey: &'a mut Survey) -> Story<'a> {
        Story::new(Out::Survey(survey), 0, States::default())
    }

    /// Returns the second pass, which pushes into `sink` and `beside`.
    pub(crate) fn pour(
        survey: &'a Survey,
        header: &Header,
        sink: &'a mut dyn TraceSink,
        beside: &'a mut dyn Beside,
    ) -> Story<'a> {
        let platform = &header.machine.platform;
        let domain_of =
            platform.cpus().map(|cpu| platform.domain_of(cpu).unwrap_or(0)).collect::<Vec<_>>();
        let domain = |d: &risetime_model::platform::Domain| Domain {
            first: d.cpus.first().copied().unwrap_or_default(),
            freq: None,
            limits: None,
        };
        let base = survey.base();
        let pour = Pour {
            survey,
            hears: sink.listens(),
            sink,
            beside,
            base,
            begun: false,
            gaps: survey.gaps(),
            cpus: domain_of.len() as u32,
            domain_of,
            domains: platform.domains.iter().map(domain).collect(),
            pushed: 0,
            records: 0,
        };
        let story = Story::new(Out::Pour(Box::new(pour)), base, survey.states);
        Story { waking_wakes: !survey.has_signal("sched_wakeup"), ..story }
    }

    fn new(out: Out<'a>, base: u64, states: States) -> Story<'a> {
        Story {
            out,
            now: 0,
            backwards: 0,
            base,
            threads: Threads::default(),
            known: Vec::new(),
            processes: Vec::new(),
            exiting: BTreeSet::new(),
            forked: BTreeSet::new(),
            named: BTreeMap::new(),
            states,
            handlers: Vec::new(),
            waking_wakes: false,
        }
    }

    /// Ends the pass.
    pub(crate) fn finish(self) -> ReadSummary {
        let mut threads = self.threads;
        let mut summary = ReadSummary {
            format: "",
            base: self.base,
            end: Instant(0),
            events: 0,
            records: 0,
            threads: Vec::new(),
            processes: self.processes,
            notes: Vec::new(),
        };
        match self.out {
            Out::Survey(survey) => {
                survey.went_back(self.backwards);
                for (id, known) in (0..).zip(&self.known) {
                    let name = readable(&known.comm);
                    if !name.is_empty() {
                        threads.rename(TaskId(id), Name::new(&name));
                    }
                }
                survey.threads = threads;
                survey.states = self.states;
                survey.finish();
            }
            Out::Pour(mut pour) => {
                let end = pour.survey.end();
                pour.begin();
                pour.lose_until(u64::MAX);
                let end = Instant(end - self.base);
                pour.sink.end(end);
                (summary.end, summary.events, summary.records) = (end, pour.pushed, pour.records);
                let last = |(id, thread): (u32, &risetime_trace::Thread)| {
                    let named = pour.survey.threads.thread(TaskId(id));
                    let since = Instant(thread.since.0.saturating_sub(self.base));
                    risetime_trace::Thread {
                        comm: named.map_or(thread.comm, |named| named.comm),
                        since,
                        ..*thread
                    }
                };
                summary.threads = (0..).zip(threads.all()).map(last).collect();
            }
        }
        summary
    }

    /// The place and time of a record; one that lies before the last one is taken to be of its time.
    #[inline]
    fn later<'s>(&mut self, stamp: &Stamp<'s>) -> Stamp<'s> {
        self.backwards += u64::from(stamp.at < self.now);
        self.now = self.now.max(stamp.at);
        Stamp { at: self.now, ..*stamp }
    }

    /// Pushes an event.
    #[inline]
    pub(crate) fn emit(&mut self, at: u64, event: &Event) {
        let at = at.max(self.now);
        match &mut self.out {
            Out::Survey(survey) => survey.event(at, event),
            Out::Pour(pour) => pour.push(at, event),
        }
    }

    /// Returns the evidence on the numbers of task states.
    pub(crate) fn states(&self) -> States {
        self.states
    }

    /// Returns the evidence on the numbers of task states, to add to.
    pub(crate) fn states_mut(&mut self) -> &mut States {
        &mut self.states
    }

    /// Whether `sched_process_exit` was seen of thread `pid`.
    pub(crate) fn is_exiting(&self, pid: i32) -> bool {
        self.exiting.contains(&pid)
    }

    /// Notes that thread `pid` is about to end.
    pub(crate) fn exits(&mut self, pid: i32) {
        self.exiting.insert(pid);
    }

    /// Notes that thread `pid` has ended: whoever has the number next is another one.
    pub(crate) fn gone(&mut self, pid: i32) {
        self.exiting.remove(&pid);
        self.threads.gone(pid);
    }

    /// Notes that thread `pid` was created.
    pub(crate) fn forked(&mut self, stamp: &Stamp<'_>, pid: i32, comm: Option<&[u8]>) {
        if pid > 0 {
            self.gone(pid);
            self.forked.insert(pid);
            self.identify(stamp.at, pid, comm);
        }
    }

    /// Tells that thread `pid`, new, becomes runnable on `cpu`.
    pub(crate) fn born(
        &mut self,
        stamp: &Stamp<'_>,
        pid: i32,
        comm: Option<&[u8]>,
        cpu: CpuId,
        prio: Option<i64>,
    ) {
        if pid <= 0 {
            return;
        }
        if !self.forked.remove(&pid) {
            self.gone(pid);
        }
        let task = self.identify(stamp.at, pid, comm);
        self.tell_new(stamp, task, cpu, Why::Unknown);
        self.prio(stamp.at, task, prio);
    }

    /// Notes that thread `pid` is called `comm` from now on.
    pub(crate) fn renamed(&mut self, stamp: &Stamp<'_>, pid: i32, comm: &[u8]) {
        if pid > 0 {
            self.identify(stamp.at, pid, Some(comm));
        }
    }

    /// Returns the task of thread `pid`, which was met on the CPU of the record; `None`: the idle task.
    #[inline]
    pub(crate) fn seen(
        &mut self,
        stamp: &Stamp<'_>,
        pid: i32,
        comm: Option<&[u8]>,
        prio: Option<i64>,
    ) -> Option<TaskId> {
        self.seen_on(stamp, pid, comm, CpuId(stamp.cpu), prio)
    }

    /// A thread's name in the field of this place, in the pass that takes names in.
    #[inline]
    pub(crate) fn comm<'f>(&self, fields: &'f dyn Fields, place: usize) -> Option<&'f [u8]> {
        match self.out {
            Out::Survey(_) => fields.text(place),
            Out::Pour(_) => None,
        }
    }

    /// A thread's priority in the field of this place, in the pass that tells of them.
    #[inline]
    pub(crate) fn prio_of(&self, fields: &dyn Fields, place: usize) -> Option<i64> {
        match &self.out {
            Out::Pour(pour) if pour.hears >= Hears::All => fields.number(place),
            _ => None,
        }
    }

    /// Returns the task of thread `pid`, which was met on `cpu`, told of as one that was there earlier at first sight; `None`: the
    /// idle task.
    pub(crate) fn seen_on(
        &mut self,
        stamp: &Stamp<'_>,
        pid: i32,
        comm: Option<&[u8]>,
        cpu: CpuId,
        prio: Option<i64>,
    ) -> Option<TaskId> {
        if pid <= 0 {
            return None;
        }
        let task = self.identify(stamp.at, pid, comm);
        if stamp.at >= self.base && !self.known[task.index()].told {
            self.tell_new(stamp, task, cpu, Why::Earlier);
        }
        self.prio(stamp.at, task, prio);
        Some(task)
    }

    /// The task of a thread, the next one at first sight.
    #[inline]
    fn identify(&mut self, at: u64, pid: i32, comm: Option<&[u8]>) -> TaskId {
        let task = match self.threads.get(pid) {
            Some(task) => task,
            None => self.first(at, pid, comm),
        };
        if let (Out::Survey(_), Some(comm)) = (&self.out, comm) {
            let known = &mut self.known[task.index()].comm;
            if !same(known, comm) && !matches!(comm, b"<...>" | b"<unknown>" | b"") {
                *known = short(comm);
            }
        }
        task
    }

    #[cold]
    fn first(&mut self, at: u64, pid: i32, comm: Option<&[u8]>) -> TaskId {
        let (process, named) = self.named.get(&pid).copied().unwrap_or_default();
        let told = comm.map(readable).filter(|c| !matches!(&**c, "<...>" | "<unknown>" | ""));
        let name = match (&self.out, told, named) {
            // Names are whole in the second pass.
            (Out::Pour(pour), ..) => {
                let next = TaskId(self.known.len() as u32);
                pour.survey.threads.thread(next).map(|thread| thread.comm).unwrap_or_default()
            }
            (_, Some(told), _) => Name::new(told.trim_end()),
            (_, None, Some(named)) => named,
            (_, None, None) => Name::new(&format!("pid {pid}")),
        };
        let task = self.threads.seen(pid, Instant(at), &name, Role::System);
        self.known.push(Known { told: false, prio: NO_PRIO, comm: [0; COMM] });
        self.processes.push(process);
        task
    }

    fn tell_new(&mut self, stamp: &Stamp<'_>, task: TaskId, cpu: CpuId, why: Why) {
        let Out::Pour(pour) = &mut self.out else { return };
        if stamp.at < self.base {
            return;
        }
        self.known[task.index()].told = true;
        let comm = self.threads.thread(task).map(|thread| thread.comm).unwrap_or_default();
        let cpu = if cpu.0 < pour.cpus { cpu } else { CpuId(stamp.cpu) };
        let new = Event::TaskNew { task, comm, user: true, cpu, why, max_speed: MAX_SPEED };
        pour.push(stamp.at.max(self.now), &new);
    }

    #[inline]
    fn prio(&mut self, at: u64, task: TaskId, prio: Option<i64>) {
        let (Out::Pour(pour), Some(prio)) = (&mut self.out, prio) else { return };
        let known = &mut self.known[task.index()];
        let prio = prio.clamp(-1, 139) as i16;
        if known.prio != prio && known.told {
            known.prio = prio;
            pour.push(at.max(self.now), &Event::Prio { task, prio: prio.into() });
        }
    }

    /// Tells that `cpu` runs at `khz`.
    pub(crate) fn runs_at(&mut self, at: u64, cpu: u32, khz: u64) {
        let freq = KHz(khz);
        match &mut self.out {
            Out::Survey(survey) => survey.event(at, &Event::Freq { cpu: CpuId(cpu), freq }),
            Out::Pour(pour) => {
                let Some(domain) = pour.domain(cpu) else { return };
                let first = domain.first;
                if domain.freq.replace(freq) != Some(freq) {
                    pour.push(at.max(self.now), &Event::Freq { cpu: first, freq });
                }
            }
        }
    }

    /// Tells the limits of the policy of `cpu`.
    pub(crate) fn limited(&mut self, at: u64, cpu: u32, min: KHz, max: KHz) {
        match &mut self.out {
            Out::Survey(survey) => {
                survey.event(at, &Event::CpuFrequencyLimits { cpu: CpuId(cpu), min, max });
            }
            Out::Pour(pour) => {
                let Some(domain) = pour.domain(cpu) else { return };
                let first = domain.first;
                if domain.limits.replace((min, max)) != Some((min, max)) {
                    let event = Event::CpuFrequencyLimits { cpu: first, min, max };
                    pour.push(at.max(self.now), &event);
                }
            }
        }
    }

    /// Notes the capacity that a CPU has of its own.
    pub(crate) fn capacity(&mut self, cpu: u32, capacity: u64) {
        if let Out::Survey(survey) = &mut self.out {
            survey.capacity(cpu, capacity);
        }
    }

    /// Whether nothing tells of a wakeup but its begin: Android's traces have `sched_waking` alone.
    pub(crate) fn waking_wakes(&self) -> bool {
        self.waking_wakes
    }

    /// Notes that the trace has a signal.
    pub(crate) fn signal(&mut self, name: &'static str) {
        if let Out::Survey(survey) = &mut self.out {
            survey.signal(name);
        }
    }

    /// A time of the scheduler's clock, from time 0 of the trace; 0 where nobody told.
    pub(crate) fn pelt_time(&self, at: ClockPelt) -> ClockPelt {
        if at.0 == 0 { at } else { ClockPelt(at.0.wrapping_sub(self.base)) }
    }

    /// Tells that the CPU of a record enters a handler, or leaves it.
    pub(crate) fn handler(&mut self, stamp: &Stamp<'_>, enters: bool) {
        let cpu = stamp.cpu as usize;
        if self.handlers.len() <= cpu {
            self.handlers.resize(cpu + 1, 0);
        }
        let depth = &mut self.handlers[cpu];
        let before = *depth > 0;
        *depth = if enters { *depth + 1 } else { depth.saturating_sub(1) };
        let after = *depth > 0;
        if before != after {
            self.emit(stamp.at, &Event::Irq { cpu: CpuId(stamp.cpu), enters });
        }
    }

    /// Tells that the CPU of a record is in no handler: it switches tasks.
    #[inline]
    pub(crate) fn no_handler(&mut self, stamp: &Stamp<'_>) {
        let depth = self.handlers.get_mut(stamp.cpu as usize);
        if depth.is_some_and(|depth| std::mem::take(depth) > 0) {
            self.emit(stamp.at, &Event::Irq { cpu: CpuId(stamp.cpu), enters: false });
        }
    }

    /// Tells the value of a counter.
    pub(crate) fn counter(&mut self, stamp: &Stamp<'_>, name: &str, value: i64) {
        self.mark(stamp, 0, &Mark::Counter { name, value });
    }

    /// Tells a mark.
    pub(crate) fn mark(&mut self, stamp: &Stamp<'_>, process: i32, mark: &Mark<'_>) {
        let task = self.seen(stamp, stamp.pid, stamp.comm, None);
        let known = task.and_then(|task| self.processes.get(task.index()).copied());
        let (now, base) = (self.now, self.base);
        let Out::Pour(pour) = &mut self.out else { return };
        if stamp.at >= base {
            let process = if process > 0 { process } else { known.unwrap_or(0) };
            let since = |at: Instant| Instant(at.0.saturating_sub(base));
            let mark = mark.with_times(since);
            pour.beside.mark(Instant(stamp.at.max(now) - base), task, process, &mark);
        }
    }
}

impl Take for Story<'_> {
    #[inline]
    fn event(&mut self, stamp: &Stamp<'_>, row: &'static Row, fields: &dyn Fields) {
        match &mut self.out {
            Out::Survey(survey) => {
                if !survey.record(stamp.at.max(self.now), stamp.cpu, row) {
                    return;
                }
                if !row.surveyed {
                    self.later(stamp);
                    return;
                }
            }
            Out::Pour(pour) => {
                if stamp.cpu >= MAX_CPUS {
                    return;
                }
                pour.records += 1;
            }
        }
        let stamp = &self.later(stamp);
        // An exit gives the thread's number back.
        let before = stamp.tgid.and_then(|_| self.threads.get(stamp.pid));
        (row.take)(self, stamp, fields);
        if let Some(tgid) = stamp.tgid {
            let task = before.or_else(|| self.threads.get(stamp.pid));
            if let Some(process) = task.and_then(|task| self.processes.get_mut(task.index())) {
                *process = tgid;
            }
        }
    }

    fn fact(&mut self, fact: &Fact<'_>) {
        if let Fact::Thread { pid, tgid, comm } = *fact {
            let comm = comm.map(|comm| Name::new(&readable(&comm[..comm.len().min(COMM)])));
            let named = self.named.entry(pid).or_default();
            named.0 = tgid.unwrap_or(named.0);
            named.1 = comm.or(named.1);
            let task = self.threads.get(pid);
            let process = task.and_then(|task| self.processes.get_mut(task.index()));
            if let (Some(process), Some(tgid)) = (process, tgid) {
                *process = tgid;
            }
        }
        if let Fact::States { new } = *fact {
            self.states.set(new);
        }
        if let Fact::Lost { cpu, .. } = *fact
            && let Some(depth) = self.handlers.get_mut(cpu as usize)
        {
            *depth = 0;
        }
        if let Out::Survey(survey) = &mut self.out {
            survey.fact(fact);
        }
    }

    fn task(&mut self, stamp: &Stamp<'_>, pid: i32, comm: Option<&[u8]>) -> Option<TaskId> {
        let stamp = &self.later(stamp);
        self.seen(stamp, pid, comm, None)
    }

    fn typed(&mut self, at: u64, event: &Event) {
        self.now = self.now.max(at);
        self.emit(at, event);
    }

    fn mark(&mut self, stamp: &Stamp<'_>, process: i32, mark: &Mark<'_>) {
        let stamp = &self.later(stamp);
        Story::mark(self, stamp, process, mark);
    }
}

impl Pour<'_> {
    /// The frequency domain of `cpu`; `None`: there is no such CPU.
    fn domain(&mut self, cpu: u32) -> Option<&mut Domain> {
        let domain = *self.domain_of.get(cpu as usize)?;
        self.domains.get_mut(domain)
    }

    /// Pushes an event of `at`, with the losses that lie before it.
    #[inline]
    fn push(&mut self, at: u64, event: &Event) {
        if at < self.base {
            return;
        }
        if !self.begun {
            self.begin();
        }
        if self.gaps.first().is_some_and(|gap| gap.0 < at) {
            self.lose_until(at);
        }
        if self.hears.to(event) && event.cpu().is_none_or(|cpu| cpu.0 < self.cpus) {
            self.pushed += 1;
            self.sink.event(Instant(at - self.base), event);
        }
    }

    /// Tells what is known at the begin: frequencies and limits that were told before.
    #[cold]
    fn begin(&mut self) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let base = self.base;
        self.gaps = &self.gaps[self.gaps.partition_point(|gap| gap.0 < base)..];
        for i in 0..self.domains.len() {
            let Domain { first: cpu, freq, limits } = self.domains[i];
            if let Some(freq) = freq {
                self.push(base, &Event::Freq { cpu, freq });
            }
            if let Some((min, max)) = limits {
                self.push(base, &Event::CpuFrequencyLimits { cpu, min, max });
            }
        }
    }

    /// Tells the losses that begin before `at`.
    #[cold]
    fn lose_until(&mut self, at: u64) {
        while let Some(((since, cpu), rest)) = self.gaps.split_first()
            && *since < at
        {
            self.gaps = rest;
            if *cpu < self.cpus && self.hears >= Hears::Figures {
                self.pushed += 1;
                let unseen = Event::Unseen { cpu: CpuId(*cpu) };
                self.sink.event(Instant(since - self.base), &unseen);
            }
        }
    }
}

/// Whether a kept name is `comm`.
#[inline]
fn same(known: &[u8; COMM], comm: &[u8]) -> bool {
    if comm.len() == COMM {
        return known[..] == *comm;
    }
    let n = comm.len().min(COMM - 1);
    known[..n] == comm[..n] && known[n] == 0
}

/// A name as it is kept.
fn short(comm: &[u8]) -> [u8; COMM] {
    let mut kept = [0; COMM];
    let end = comm.iter().position(|b| *b == 0).unwrap_or(comm.len());
    let n = end.min(COMM);
    kept[..n].copy_from_slice(&comm[..n]);
    kept
}
