//! Job of the agent: one experiment, as lines of text.
//!
//! ```text
//! risetime-job 1
//! duration_ns 3000000000            fields of `Job`, one a line, in any order
//! cpu 459 2064000 0                 capacity, top frequency in kHz, first CPU of its policy
//! idle 0 1000 40000 2900000         of the CPUs in order: ns into and out of each idle state, by the kernel's number
//! set PATH VALUE                    in order; each is read back into the answer
//! task rampup 0 1 * * * *           name delay_ns loop cpus nice util_min util_max
//! phase nap 100 * * * *             of the last task: name loop cpus nice util_min util_max
//! policy fifo 10                    of the last task or phase, if it sets one: `other SLICE` (0: the base
//!                                   slice), `batch SLICE`, `idle`, `fifo PRIORITY`, `rr PRIORITY`,
//!                                   `deadline RUNTIME DEADLINE PERIOD RECLAIM` (the last: 0 or 1)
//! stage cond 3 - 0                  of the last task: what it waits in for the one before it in a chain of jobs, what it
//!                                   gives the one behind (`cond`, `semaphore`, `barrier`, `sleep`, `yield`)
//! logs                              of the last task: it writes a log as rt-app does
//! taskgroup 1                       of the last phase, or before any of the last task: which cgroup
//! run 1000                          of the last phase
//! sleep 10000000
//! cgroup /a 100 -1 100000000 0 0 1024 0
//!                                   path weight quota period burst uclamp_min uclamp_max idle
//! partition 1,2                     CPUs of an exclusive cpuset
//! hotplug 500000000 3 0             at this time of the run CPU 3 goes offline; 1: comes back
//! forked cc 0 1 * * * *             like `task`, and created only by `fork`
//! end                               so that a file cut short is no job
//! ```
//!
//! Events: `run NS`, `runtime NS PIECE`, `sleep NS`, `busy NS`, `duty PERCENT`, `timer N NS [shared|absolute|both]`,
//! `yield`, `lock M`, `unlock M`, `wait C M`, `signal C`, `broad C`, `barrier B`, `sem_wait S`, `sem_post S`,
//! `fork F`. Of the objects there are as many as `mutexes N`, `conds N`, `semaphores N`, `timers N`
//! say, and a barrier for each `users N`.
//!
//! A word never holds a space: `%`, white space and control characters are written `%XX`, an
//! empty word is `%`. `*` is "unchanged" (at creation: the default), a loop of `-1` is for
//! ever, CPU lists are `0,1,4`. All times are ns, all work is time at capacity 1024 and top
//! frequency.

use crate::mark::{Link, Stage};
use crate::{Event, Hotplug, Name, Policy, Repeat, TaskGroup, Timer};
use risetime_kernel::units::{CpuId, Span, Util};
use std::fmt::{self, Write as _};
use std::str::FromStr;

/// First line of every job.
const MAGIC: &str = "risetime-job 1";

/// One experiment for the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Length of the run, from time 0 (the `start` mark) to the `end` mark.
    pub duration_ns: u64,
    /// The first task is created this long after time 0 (tasks add their own delay).
    pub phase_ns: u64,
    /// The tick: time 0 is a multiple of it on CLOCK_MONOTONIC. 0: not aligned.
    pub tick_ns: u64,
    /// CPU on which the first task is created; the rest are created from there by the
    /// kernel's own placement.
    pub first_cpu: u32,
    /// Time before the workload for which the CPUs are visited in turn, in all (ns of the guest's
    /// clock), so that the boot's utilisation estimates decay. 0: not at all.
    pub settle_ns: u64,
    /// Trace buffer for each CPU, in KiB.
    pub buffer_kb: u32,
    /// Wait for this long at the end of the run before tracing stops (0 unless debugging).
    pub linger_ns: u64,
    /// Timer slack of the tasks: how late the end of a sleep may come. At most 1: none that counts.
    pub timer_slack_ns: u64,
    /// Every CPU, by number.
    pub cpus: Vec<Cpu>,
    /// Time in ns that each CPU takes into and out of each of its idle states, by the number that the kernel has for it;
    /// empty: it takes what the machine takes.
    pub idle: Vec<Vec<[u64; 2]>>,
    /// Kernel modules to load, in order: paths in the guest. One that is missing is an error.
    pub modules: Vec<String>,
    /// Values to write before the workload, in this order: path and value. Each is read back
    /// afterwards. A failure is recorded in the answer, and the run goes on.
    pub set: Vec<(String, String)>,
    /// Paths to read at the end of the run (after tracing has stopped).
    pub read: Vec<String>,
    /// Dynamic events, lines of tracefs `dynamic_events`; `{STRUCT.FIELD-STRUCT.FIELD}` (and
    /// `{STRUCT.FIELD}`) stand for byte offsets and their difference, which the agent takes
    /// from the kernel's own types (BTF). All are enabled. One that this kernel does not
    /// accept is recorded in the answer (`probe NAME` = the reason) and left out.
    pub probes: Vec<String>,
    /// Whether a probe that this kernel does not accept is made of kprobes, and may name several forms
    /// of what it reads (`guest`'s `probe.rs`).
    pub kprobes: bool,
    /// Static events to enable, `sched/sched_switch`. One that is missing is recorded likewise.
    pub events: Vec<String>,
    /// The tasks, in order of creation.
    pub tasks: Vec<Task>,
    /// The tasks that others create, by number; so often each may be in a run: [`MAX_FORKS`](crate::MAX_FORKS).
    pub forked: Vec<Task>,
    /// Objects that tasks share.
    pub objects: Objects,
    /// Task groups, each behind the one above it; [`Attr::group`] counts from 1.
    pub groups: Vec<TaskGroup>,
    /// CPUs of exclusive cpusets, each a root domain of its own; the others are left to the root's.
    pub partitions: Vec<Vec<u32>>,
    /// CPUs that go offline and come back, by time.
    pub hotplug: Vec<Hotplug>,
}

/// Numbers of the objects that tasks share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Mutexes.
    pub mutexes: u32,
    /// Conditions.
    pub conds: u32,
    /// Semaphores, which begin at 0.
    pub semaphores: u32,
    /// Timers.
    pub timers: u32,
    /// True if mutexes pass on the priority of those that wait.
    pub pi: bool,
    /// Barriers: for how many tasks each.
    pub barriers: Vec<u32>,
}

/// A CPU, as far as it is needed to account for work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// Capacity at the top frequency, of 1024.
    pub capacity: u64,
    /// Top frequency.
    pub freq_max_khz: u64,
    /// The CPU's cpufreq policy: the number in `policyN`.
    pub policy: u32,
}

/// Attributes that may change at creation and with each phase; `None` leaves an attribute as it
/// was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// Affinity.
    pub cpus: Option<Vec<u32>>,
    /// Policy.
    pub policy: Option<Policy>,
    /// Nice value.
    pub nice: Option<i32>,
    /// `sched_util_min`.
    pub uclamp_min: Option<u32>,
    /// `sched_util_max`.
    pub uclamp_max: Option<u32>,
    /// Task group: 0 the root, else the n-th of [`Job::groups`].
    pub group: Option<u32>,
}

/// A thread of the agent's.
pub type Task = crate::Task<Attr>;

/// A named run of its events.
pub type Phase = crate::Phase<Attr>;

/// An event as its line has it.
pub fn event_text(event: &Event) -> String {
    match *event {
        // Nobody asks an agent for a kind of work: `risetime-vm` refuses it.
        Event::Run(s) | Event::RunOf { work: s, .. } => format!("run {}", s.0),
        Event::Runtime { time, piece } => format!("runtime {} {}", time.0, piece.0),
        Event::Sleep(s) => format!("sleep {}", s.0),
        Event::Timer { timer: Timer { index, shared, absolute }, period } => {
            let how = match (shared, absolute) {
                (false, false) => "",
                (true, false) => " shared",
                (false, true) => " absolute",
                (true, true) => " both",
            };
            format!("timer {index} {}{how}", period.0)
        }
        Event::Busy(s) => format!("busy {}", s.0),
        Event::Duty(percent) => format!("duty {percent}"),
        Event::Yield => "yield".into(),
        Event::Lock(m) => format!("lock {m}"),
        Event::Unlock(m) => format!("unlock {m}"),
        Event::Wait { cond, mutex } => format!("wait {cond} {mutex}"),
        Event::Signal(c) => format!("signal {c}"),
        Event::Broadcast(c) => format!("broad {c}"),
        Event::Barrier(b) => format!("barrier {b}"),
        Event::SemWait(s) => format!("sem_wait {s}"),
        Event::SemPost(s) => format!("sem_post {s}"),
        Event::Fork(f) => format!("fork {f}"),
    }
}

fn policy_text(policy: &Policy) -> String {
    let or_0 = |slice: Option<Span>| slice.map_or(0, |s| s.0);
    match *policy {
        Policy::Other { slice } => format!("other {}", or_0(slice)),
        Policy::Batch { slice } => format!("batch {}", or_0(slice)),
        Policy::Idle => "idle".into(),
        Policy::Fifo { priority } => format!("fifo {priority}"),
        Policy::Rr { priority } => format!("rr {priority}"),
        Policy::High { slice } => format!("high {}", or_0(slice)),
        Policy::Overcommit { runtime, period } => format!("overcommit {} {}", runtime.0, period.0),
        Policy::Deadline { runtime, deadline, period, reclaim } => {
            let reclaim = u8::from(reclaim);
            format!("deadline {} {} {} {reclaim}", runtime.0, deadline.0, period.0)
        }
    }
}

/// Reason for which a text is no job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobError {
    /// Line, from 1.
    pub line: usize,
    /// Fault of the line.
    pub what: String,
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job: line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for JobError {}

impl Job {
    /// The part of the job in which runs of one prepared machine may differ, start phase and end,
    /// as a job of nothing else.
    pub fn late(&self) -> Job {
        Job { duration_ns: self.duration_ns, phase_ns: self.phase_ns, ..Job::default() }
    }

    /// Takes over what [`Job::late`] has.
    pub fn take_late(&mut self, late: &Job) {
        (self.duration_ns, self.phase_ns) = (late.duration_ns, late.phase_ns);
    }

    /// The job as text; [`Job::parse`] reads it back unchanged.
    pub fn to_text(&self) -> String {
        let mut s = format!("{MAGIC}\n");
        for (key, value) in [
            ("duration_ns", self.duration_ns),
            ("phase_ns", self.phase_ns),
            ("tick_ns", self.tick_ns),
            ("first_cpu", self.first_cpu.into()),
            ("settle_ns", self.settle_ns),
            ("buffer_kb", self.buffer_kb.into()),
            ("linger_ns", self.linger_ns),
            ("timer_slack_ns", self.timer_slack_ns),
        ] {
            line(&mut s, format_args!("{key} {value}"));
        }
        if self.kprobes {
            line(&mut s, format_args!("kprobes 1"));
        }
        for c in &self.cpus {
            line(&mut s, format_args!("cpu {} {} {}", c.capacity, c.freq_max_khz, c.policy));
        }
        for states in &self.idle {
            let times = states.iter().flatten().map(|ns| format!(" {ns}"));
            line(&mut s, format_args!("idle{}", times.collect::<String>()));
        }
        for (key, words) in [
            ("module", &self.modules),
            ("read", &self.read),
            ("probe", &self.probes),
            ("event", &self.events),
        ] {
            words.iter().for_each(|w| line(&mut s, format_args!("{key} {}", escape(w))));
        }
        for (path, value) in &self.set {
            line(&mut s, format_args!("set {} {}", escape(path), escape(value)));
        }
        let o = &self.objects;
        for (key, value) in [
            ("mutexes", o.mutexes),
            ("conds", o.conds),
            ("semaphores", o.semaphores),
            ("timers", o.timers),
            ("pi", u32::from(o.pi)),
        ] {
            if value > 0 {
                line(&mut s, format_args!("{key} {value}"));
            }
        }
        o.barriers.iter().for_each(|users| line(&mut s, format_args!("users {users}")));
        for g in &self.groups {
            let quota = g.quota.map_or("-1".into(), |ns| ns.0.to_string());
            let (path, idle) = (escape(&g.path), u8::from(g.idle));
            line(
                &mut s,
                format_args!(
                    "cgroup {path} {} {quota} {} {} {} {} {idle}",
                    g.weight, g.period.0, g.burst.0, g.uclamp_min, g.uclamp_max
                ),
            );
        }
        for cpus in &self.partitions {
            line(&mut s, format_args!("partition {}", cpus_text(cpus)));
        }
        for h in &self.hotplug {
            line(&mut s, format_args!("hotplug {} {} {}", h.at.0, h.cpu.0, u8::from(h.online)));
        }
        for (key, tasks) in [("task", &self.tasks), ("forked", &self.forked)] {
            tasks.iter().for_each(|t| task_lines(&mut s, key, t));
        }
        s + "end\n"
    }

    /// The job that `text` describes.
    ///
    /// Errors: the first line that is not understood, or a text that ends early.
    pub fn parse(text: &str) -> Result<Job, JobError> {
        let mut job = Job::default();
        let mut lines = text.lines().zip(1..);
        match lines.next() {
            Some((MAGIC, _)) => {}
            found => {
                let what = format!("found {:?}, wanted {MAGIC:?}", found.map_or("", |f| f.0));
                return Err(JobError { line: 1, what });
            }
        }
        let mut last = 1;
        for (text, number) in lines {
            last = number;
            if text == "end" {
                return Ok(job);
            }
            job.line(text)
                .map_err(|what| JobError { line: number, what: format!("{what} in {text:?}") })?;
        }
        Err(JobError { line: last, what: "the text ends here, wanted more lines and `end`".into() })
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        let mut w = Words(text.split(' '));
        let key = w.next()?;
        match key {
            "duration_ns" => self.duration_ns = w.number()?,
            "phase_ns" => self.phase_ns = w.number()?,
            "tick_ns" => self.tick_ns = w.number()?,
            "first_cpu" => self.first_cpu = w.number()?,
            "settle_ns" => self.settle_ns = w.number()?,
            "buffer_kb" => self.buffer_kb = w.number()?,
            "kprobes" => self.kprobes = w.number::<u8>()? != 0,
            "linger_ns" => self.linger_ns = w.number()?,
            "timer_slack_ns" => self.timer_slack_ns = w.number()?,
            "cpu" => self.cpus.push(Cpu {
                capacity: w.number()?,
                freq_max_khz: w.number()?,
                policy: w.number()?,
            }),
            "idle" => self.idle.push(w.idle()?),
            "module" => self.modules.push(w.word()?),
            "read" => self.read.push(w.word()?),
            "probe" => self.probes.push(w.word()?),
            "event" => self.events.push(w.word()?),
            "set" => self.set.push((w.word()?, w.word()?)),
            "mutexes" => self.objects.mutexes = w.count()?,
            "conds" => self.objects.conds = w.count()?,
            "pi" => self.objects.pi = w.number::<u8>()? != 0,
            "semaphores" => self.objects.semaphores = w.count()?,
            "timers" => self.objects.timers = w.count()?,
            "cgroup" => self.groups.push(w.cgroup()?),
            "partition" => {
                self.partitions.push(w.cpus()?.ok_or("a partition without CPUs")?);
            }
            "taskgroup" => {
                let group = w.number::<u32>()?;
                if group as usize > self.groups.len() {
                    return Err(format!("there is no task group {group}"));
                }
                let task = self.last_task().ok_or("a task group before any task")?;
                let attr = task.phases.last_mut().map_or(&mut task.attr, |p| &mut p.attr);
                attr.group = Some(group);
            }
            "stage" => {
                let stage = Stage { input: w.link()?, output: w.link()? };
                self.last_task().ok_or("a stage before any task")?.stage = stage;
            }
            "logs" => self.last_task().ok_or("a log before any task")?.logs = true,
            "hotplug" => self.hotplug.push(Hotplug {
                at: w.span()?,
                cpu: CpuId(w.number()?),
                online: w.number::<u8>()? != 0,
                place: (0, 0),
            }),
            "users" => self.objects.barriers.push(w.number()?),
            "task" | "forked" => {
                let task = Task {
                    comm: w.word()?,
                    delay: w.span()?,
                    repeat: w.repeat()?,
                    attr: w.attr()?,
                    phases: Vec::new(),
                    stage: Stage::default(),
                    logs: false,
                };
                match key {
                    "task" if self.forked.is_empty() => self.tasks.push(task),
                    "task" => return Err("a task behind those that are forked".into()),
                    _ => self.forked.push(task),
                }
            }
            "phase" => {
                let phase = Phase {
                    name: Name::new(&w.word()?),
                    repeat: w.repeat()?,
                    attr: w.attr()?,
                    events: Vec::new(),
                };
                self.last_task().ok_or("a phase before any task")?.phases.push(phase);
            }
            "policy" => {
                let policy = w.policy()?;
                let task = self.last_task().ok_or("a policy before any task")?;
                let attr = task.phases.last_mut().map_or(&mut task.attr, |p| &mut p.attr);
                attr.policy = Some(policy);
            }
            _ => {
                let event = w.event(key)?;
                let event = event.ok_or_else(|| format!("unknown key `{key}`"))?;
                let phase = self.last_task().and_then(|t| t.phases.last_mut());
                phase.ok_or("an event before any phase")?.events.push(event);
            }
        }
        w.done()
    }
}

impl Job {
    fn last_task(&mut self) -> Option<&mut Task> {
        self.forked.last_mut().or(self.tasks.last_mut())
    }

    /// An event of an object or a task that there is not.
    pub fn lacks_object(&self) -> Option<Event> {
        let o = &self.objects;
        let events = self.tasks.iter().chain(&self.forked).flat_map(|t| &t.phases);
        events.flat_map(|p| &p.events).copied().find(|e| match *e {
            Event::Lock(m) | Event::Unlock(m) => m >= o.mutexes,
            Event::Wait { cond, mutex } => cond >= o.conds || mutex >= o.mutexes,
            Event::Signal(c) | Event::Broadcast(c) => c >= o.conds,
            Event::Barrier(b) => b as usize >= o.barriers.len(),
            Event::SemWait(s) | Event::SemPost(s) => s >= o.semaphores,
            Event::Timer { timer, .. } => timer.shared && timer.index >= o.timers,
            Event::Fork(f) => f as usize >= self.forked.len(),
            Event::Run(_)
            | Event::RunOf { .. }
            | Event::Runtime { .. }
            | Event::Sleep(_)
            | Event::Busy(_)
            | Event::Duty(_)
            | Event::Yield => false,
        })
    }
}

fn line(s: &mut String, text: fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(s, "{text}");
}

fn link_text(link: Option<Link>) -> String {
    match link {
        None => "- 0".into(),
        Some(Link::Cond(n)) => format!("cond {n}"),
        Some(Link::Semaphore(n)) => format!("semaphore {n}"),
        Some(Link::Barrier(n)) => format!("barrier {n}"),
        Some(Link::Sleep) => "sleep 0".into(),
        Some(Link::Yield) => "yield 0".into(),
    }
}

fn repeat_text(repeat: Repeat) -> String {
    match repeat {
        Repeat::Times(n) => n.to_string(),
        Repeat::Forever => "-1".into(),
    }
}

/// Adds the lines of a task, which begin with `key`, and those of its phases.
fn task_lines(s: &mut String, key: &str, t: &Task) {
    let (comm, repeat, attr) = (escape(&t.comm), repeat_text(t.repeat), attr_text(&t.attr));
    line(s, format_args!("{key} {comm} {} {repeat} {attr}", t.delay.0));
    attr_lines(s, &t.attr);
    if t.stage != Stage::default() {
        let (input, output) = (link_text(t.stage.input), link_text(t.stage.output));
        line(s, format_args!("stage {input} {output}"));
    }
    if t.logs {
        line(s, format_args!("logs"));
    }
    for p in &t.phases {
        let (name, repeat, attr) = (escape(&p.name), repeat_text(p.repeat), attr_text(&p.attr));
        line(s, format_args!("phase {name} {repeat} {attr}"));
        attr_lines(s, &p.attr);
        p.events.iter().for_each(|e| line(s, format_args!("{}", event_text(e))));
    }
}

/// Adds what of attributes has lines of its own: a policy and a group.
fn attr_lines(s: &mut String, a: &Attr) {
    a.policy.iter().for_each(|policy| line(s, format_args!("policy {}", policy_text(policy))));
    a.group.iter().for_each(|g| line(s, format_args!("taskgroup {g}")));
}

fn attr_text(a: &Attr) -> String {
    fn or_star(v: Option<impl fmt::Display>) -> String {
        v.map_or("*".into(), |v| v.to_string())
    }
    format!(
        "{} {} {} {}",
        or_star(a.cpus.as_deref().map(cpus_text)),
        or_star(a.nice),
        or_star(a.uclamp_min),
        or_star(a.uclamp_max)
    )
}

/// The cgroup of the partition of this number.
pub fn partition_path(number: usize) -> String {
    format!("/risetime-partition-{}", number + 1)
}

/// A list of CPUs, `0,1,4`: as a line has it, and as the kernel's files take it.
pub fn cpus_text(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// `text` as one word: without spaces, line ends and control characters, never empty.
pub fn escape(text: &str) -> String {
    if text.is_empty() {
        return "%".into();
    }
    let mut s = String::with_capacity(text.len());
    for c in text.chars() {
        if c == '%' || c == ' ' || c.is_ascii_control() {
            let _ = write!(s, "%{:02X}", c as u32);
        } else if c.is_whitespace() || c.is_control() {
            c.encode_utf8(&mut [0; 4]).bytes().for_each(|b| {
                let _ = write!(s, "%{b:02X}");
            });
        } else {
            s.push(c);
        }
    }
    s
}

/// The text that [`escape`] made `word` of; `None`: no such word.
pub fn unescape(word: &str) -> Option<String> {
    if word == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.bytes();
    while let Some(b) = rest.next() {
        if b == b'%' {
            let digit = |b: Option<u8>| (b? as char).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push((high * 16 + low) as u8);
        } else {
            bytes.push(b);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The words of a line, in order.
struct Words<'a>(std::str::Split<'a, char>);

impl<'a> Words<'a> {
    fn next(&mut self) -> Result<&'a str, String> {
        self.0.next().filter(|w| !w.is_empty()).ok_or_else(|| "a word is missing".into())
    }
    fn word(&mut self) -> Result<String, String> {
        let w = self.next()?;
        unescape(w).ok_or_else(|| format!("bad escape in `{w}`"))
    }
    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let w = self.next()?;
        w.parse().map_err(|_| format!("`{w}` is no such number"))
    }
    /// Reads a number of objects, at most 2²⁰: each takes some bytes.
    fn count(&mut self) -> Result<u32, String> {
        match self.number()? {
            n if n <= 1 << 20 => Ok(n),
            n => Err(format!("{n} are too many")),
        }
    }
    fn optional<T>(&mut self, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, String> {
        match self.next()? {
            "*" => Ok(None),
            w => parse(w).map(Some).ok_or_else(|| format!("`{w}` is out of place")),
        }
    }
    fn link(&mut self) -> Result<Option<Link>, String> {
        let kind = self.next()?;
        let number = self.number()?;
        Ok(match kind {
            "-" => None,
            "cond" => Some(Link::Cond(number)),
            "semaphore" => Some(Link::Semaphore(number)),
            "barrier" => Some(Link::Barrier(number)),
            "sleep" => Some(Link::Sleep),
            "yield" => Some(Link::Yield),
            other => return Err(format!("`{other}` is nothing to wait in")),
        })
    }
    fn span(&mut self) -> Result<Span, String> {
        self.number().map(Span)
    }
    /// Reads times in pairs, up to the end of the line.
    fn idle(&mut self) -> Result<Vec<[u64; 2]>, String> {
        let mut states = Vec::new();
        while let Some(enter) = self.0.next() {
            let enter = enter.parse().map_err(|_| format!("`{enter}` is no time"))?;
            states.push([enter, self.number()?]);
        }
        Ok(states)
    }
    fn cgroup(&mut self) -> Result<TaskGroup, String> {
        let mut group = TaskGroup::new(self.word()?);
        group.weight = self.number()?;
        group.quota = u64::try_from(self.number::<i64>()?).ok().map(Span);
        (group.period, group.burst) = (self.span()?, self.span()?);
        (group.uclamp_min, group.uclamp_max) = (Util(self.number()?), Util(self.number()?));
        group.idle = self.number::<u8>()? != 0;
        Ok(group)
    }
    /// Reads the work of a piece, which takes some time.
    fn piece(&mut self) -> Result<Span, String> {
        match self.span()? {
            Span(0) => Err("a piece of no work".into()),
            piece => Ok(piece),
        }
    }
    fn repeat(&mut self) -> Result<Repeat, String> {
        match self.next()? {
            "-1" => Ok(Repeat::Forever),
            w => w.parse().map(Repeat::Times).map_err(|_| format!("`{w}` is no loop count")),
        }
    }
    fn policy(&mut self) -> Result<Policy, String> {
        let slice = |ns: u64| (ns > 0).then_some(Span(ns));
        Ok(match self.next()? {
            "other" => Policy::Other { slice: slice(self.number()?) },
            "batch" => Policy::Batch { slice: slice(self.number()?) },
            "idle" => Policy::Idle,
            "fifo" => Policy::Fifo { priority: self.number()? },
            "rr" => Policy::Rr { priority: self.number()? },
            "high" => Policy::High { slice: slice(self.number()?) },
            "overcommit" => Policy::Overcommit { runtime: self.span()?, period: self.span()? },
            "deadline" => Policy::Deadline {
                runtime: self.span()?,
                deadline: self.span()?,
                period: self.span()?,
                reclaim: self.number::<u8>()? != 0,
            },
            w => return Err(format!("`{w}` is no policy")),
        })
    }
    /// `None`: no such event.
    fn event(&mut self, key: &str) -> Result<Option<Event>, String> {
        Ok(Some(match key {
            "run" => Event::Run(self.span()?),
            "runtime" => Event::Runtime { time: self.span()?, piece: self.piece()? },
            "sleep" => Event::Sleep(self.span()?),
            "timer" => {
                let (index, period) = (self.number()?, self.span()?);
                let (shared, absolute) = match self.0.next() {
                    None => (false, false),
                    Some("shared") => (true, false),
                    Some("absolute") => (false, true),
                    Some("both") => (true, true),
                    Some(other) => return Err(format!("`{other}` is no kind of timer")),
                };
                Event::Timer { timer: Timer { index, shared, absolute }, period }
            }
            "busy" => Event::Busy(self.span()?),
            "duty" => Event::Duty(self.number()?),
            "yield" => Event::Yield,
            "lock" => Event::Lock(self.number()?),
            "unlock" => Event::Unlock(self.number()?),
            "wait" => Event::Wait { cond: self.number()?, mutex: self.number()? },
            "signal" => Event::Signal(self.number()?),
            "broad" => Event::Broadcast(self.number()?),
            "barrier" => Event::Barrier(self.number()?),
            "sem_wait" => Event::SemWait(self.number()?),
            "sem_post" => Event::SemPost(self.number()?),
            "fork" => Event::Fork(self.number()?),
            _ => return Ok(None),
        }))
    }
    fn cpus(&mut self) -> Result<Option<Vec<u32>>, String> {
        self.optional(|w| w.split(',').map(|n| n.parse().ok()).collect())
    }
    fn attr(&mut self) -> Result<Attr, String> {
        Ok(Attr {
            cpus: self.cpus()?,
            policy: None,
            nice: self.optional(|w| w.parse().ok())?,
            uclamp_min: self.optional(|w| w.parse().ok())?,
            uclamp_max: self.optional(|w| w.parse().ok())?,
            group: None,
        })
    }
    fn done(&mut self) -> Result<(), String> {
        match self.0.next() {
            None => Ok(()),
            Some(w) => Err(format!("`{w}` is one word too many")),
        }
    }
}

#[cfg(test)]
mod tests;
