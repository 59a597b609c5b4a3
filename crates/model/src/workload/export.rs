//! A workload as a file for rt-app, which runs there as it does here; and what that rt-app cannot carry.
//!
//! ```text
//! run            µs on the CPU of the calibration, the largest one of the platform
//! suspend, sync  lock, wait, unlock: no name is left to rt-app
//! keys           each once in its object: run1, run2
//! memory, calls  `mem`, so many bytes as are written in that time here
//! 1.0            knows no fork, no semaphores, one policy a task, no clamps, no task groups
//! ```
//!
//! Written is what the tasks do, not the file that said so: instances that are alike become one task again.

use super::change::json;
use super::{
    Attr, BYTES_PER_US, Event, FOR_EVER, Phase, Policy, Repeat, RtApp, TaskSpec, Timer, Workload,
};
use crate::Platform;
use risetime_kernel::units::{Capacity, CpuId, SCHED_CAPACITY_SCALE, Span};
use std::collections::{BTreeMap, BTreeSet};

/// A workload for rt-app.
#[derive(Clone, Debug)]
pub struct Exported {
    /// JSON, each key once in its object.
    pub text: String,
    /// Notes on what that rt-app cannot carry, or does otherwise.
    pub notes: Vec<String>,
}

/// Longest time and largest number that rt-app reads: an `int`.
const MAX_INT: u64 = i32::MAX as u64;
/// Longest name that a thread can have.
const MAX_COMM: usize = 15;
/// Number of threads from which on rt-app was seen to end with a fault of its own.
const MANY_THREADS: usize = 200;
/// Length of a run of a workload that says none, in s.
const DURATION_S: u64 = 3;

impl Workload {
    /// Writes the workload for `to`. `platform`: the machine that it is to run on, whose largest CPU `run` is calibrated on.
    pub fn exported(&self, to: RtApp, platform: Option<&Platform>) -> Exported {
        let mut export = Export { to, of: self, notes: Vec::new(), said: BTreeSet::new() };
        let (workload, cpu) = export.calibrated(platform);
        export.of = &workload;
        export.whole();
        let mut tasks = Vec::new();
        let mut index = 0;
        for (spec, name, instances) in instances(&workload.tasks) {
            export.comm(&name, index, instances);
            index += instances;
            tasks.push(export.task(spec, &name, instances));
        }
        if to != RtApp::V1_0 {
            for spec in &workload.forked {
                tasks.push(export.task(spec, &spec.comm, 0));
            }
        }
        if index > MANY_THREADS {
            export.say(format!(
                "{index} threads: rt-app reads past the end of its lists of CPUs, which may end it; `MALLOC_TOP_PAD_=33554432 rt-app FILE` helps"
            ));
        }
        let text = format!(
            "{{\n  \"tasks\": {{\n{}\n  }},\n  \"global\": {{\n{}\n  }}\n}}\n",
            tasks.join(",\n"),
            export.global(cpu).join(",\n")
        );
        Exported { text, notes: export.notes }
    }
}

/// Tasks with the number of instances that each stands for, and its name without their numbers.
fn instances(tasks: &[TaskSpec]) -> Vec<(&TaskSpec, String, usize)> {
    let mut all: Vec<(&TaskSpec, String, usize)> = Vec::new();
    let mut at = 0;
    while let Some(first) = tasks.get(at) {
        let base = first.comm.strip_suffix("-0");
        let alike = |(n, t): &(usize, &TaskSpec)| {
            let named = base.is_some_and(|base| t.comm == format!("{base}-{n}"));
            named && TaskSpec { comm: first.comm.clone(), ..(*t).clone() } == *first
        };
        let n = tasks[at..].iter().enumerate().take_while(alike).count();
        match base {
            Some(base) if n > 1 => all.push((first, base.to_string(), n)),
            _ => all.push((first, first.comm.clone(), 1)),
        }
        at += n.max(1);
    }
    all
}

struct Export<'w> {
    to: RtApp,
    of: &'w Workload,
    notes: Vec<String>,
    /// Notes of which one is enough.
    said: BTreeSet<&'static str>,
}

/// The members of an object, each with a key of its own.
#[derive(Default)]
struct Members {
    lines: Vec<String>,
    taken: BTreeMap<String, u32>,
}

impl Members {
    fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.lines.push(format!("{}: {value}", json(key, true)));
    }

    /// An event: its key gets a number if it is there already.
    fn event(&mut self, key: &str, value: impl std::fmt::Display) {
        let n = self.taken.entry(key.to_string()).or_default();
        *n += 1;
        match *n {
            1 => self.add(key, value),
            n => self.add(&format!("{key}{n}"), value),
        }
    }

    fn object(&self, indent: usize) -> String {
        let inner: Vec<String> =
            self.lines.iter().map(|line| format!("{:indent$}  {line}", "")).collect();
        format!("{{\n{}\n{:indent$}}}", inner.join(",\n"), "")
    }
}

impl Export<'_> {
    fn say(&mut self, what: String) {
        self.notes.push(what);
    }

    /// Says it once for all tasks.
    fn say_once(&mut self, what: &'static str) {
        if self.said.insert(what) {
            self.notes.push(what.to_string());
        }
    }

    /// The workload with `run` in time on the CPU of this number.
    fn calibrated(&mut self, platform: Option<&Platform>) -> (Workload, CpuId) {
        let own = self.of.calibration;
        let Some(platform) = platform else {
            if own.is_none() {
                self.say(
                    "`run` is work of a CPU of capacity 1024, and rt-app measures it on CPU0: name the platform (-p), or write the number of a \
                     largest CPU to `calibration`"
                        .into(),
                );
            }
            return (self.of.clone(), own.unwrap_or(CpuId(0)));
        };
        let largest =
            platform.domains.iter().max_by_key(|d| (d.capacity, std::cmp::Reverse(d.cpus[0])));
        let (Some(domain), Ok(bound)) = (largest, self.of.bind(platform)) else {
            return (self.of.clone(), own.unwrap_or(CpuId(0)));
        };
        // Affinities stay as the file has them: a phase without has its task's.
        let mut workload = Workload { calibration: None, ..self.of.clone() };
        let to = workload.tasks.iter_mut().chain(&mut workload.forked);
        let from = bound.tasks.iter().chain(&bound.forked);
        for (to, from) in to.zip(from) {
            for (to, from) in to.phases.iter_mut().zip(&from.phases) {
                to.events = from.events.iter().map(|event| on(*event, domain.capacity)).collect();
            }
        }
        (workload, domain.cpus[0])
    }

    /// Says what of the workload belongs to no task, and is lost.
    fn whole(&mut self) {
        let w = self.of;
        if !w.hotplug.is_empty() {
            self.say("`hotplug`: no rt-app takes CPUs offline".into());
        }
        if !w.partitions.is_empty() {
            self.say("`partitions`: no rt-app makes cpusets".into());
        }
        if !w.sessions.is_empty() {
            self.say("`hint_session`: no rt-app tells a power HAL".into());
        }
        if !w.groups.is_empty() {
            self.say(match self.to {
                RtApp::V1_0 => "`taskgroup`: rt-app 1.0 knows no task groups".into(),
                RtApp::V2026 => "`taskgroups`: rt-app makes the groups (of cgroup v1), and gives them no weight, quota or clamp".into(),
            });
        }
        if self.to == RtApp::V1_0 && !w.forked.is_empty() {
            let names: Vec<&str> = w.forked.iter().map(|t| t.comm.as_str()).collect();
            self.say(format!(
                "`fork`: rt-app 1.0 has none, so these never start: {}",
                names.join(", ")
            ));
        }
    }

    fn global(&mut self, cpu: CpuId) -> Vec<String> {
        let w = self.of;
        let mut all = Members::default();
        let seconds = w.duration.map_or(DURATION_S, |d| d.0.div_ceil(1_000_000_000));
        all.add("duration", seconds);
        all.add("default_policy", "\"SCHED_OTHER\"");
        all.add("calibration", format!("\"CPU{}\"", cpu.0));
        all.add("lock_pages", false);
        if w.objects.pi {
            all.add("pi_enabled", true);
        }
        all.add("gnuplot", false);
        all.add("ftrace", if self.to == RtApp::V1_0 { "false" } else { "\"none\"" });
        all.add("log_basename", json(&w.name, true));
        let mut tasks = w.tasks.iter().chain(&w.forked);
        if tasks.any(|task| task.contends() && !task.logs) {
            // 1.0 compares the wrong way round.
            all.add("log_size", if self.to == RtApp::V1_0 { "\"file\"" } else { "\"disable\"" });
        }
        all.lines.iter().map(|line| format!("    {line}")).collect()
    }

    /// Says what a thread will be called, where its name is too long for the kernel.
    fn comm(&mut self, name: &str, index: usize, instances: usize) {
        let last = index + instances.max(1) - 1;
        let comm = match self.to {
            RtApp::V1_0 => name.to_string(),
            RtApp::V2026 => format!("{name}-{last}"),
        };
        if comm.len() > MAX_COMM {
            self.say(format!(
                "task `{name}`: \"{comm}\" is longer than a thread's name may be ({MAX_COMM} characters): its thread is called \"rt-app\""
            ));
        }
    }

    fn task(&mut self, spec: &TaskSpec, name: &str, instances: usize) -> String {
        let mut all = Members::default();
        if instances != 1 {
            all.add("instance", instances);
        }
        if spec.delay > Span(0) {
            let what = format!("task `{name}`: `delay`");
            all.add("delay", self.us(spec.delay, &what));
        }
        all.add("loop", loops(spec.repeat));
        let what = format!("task `{name}`");
        self.attributes(&spec.attr, true, &what, &mut all);
        let mut phases = Members::default();
        for phase in &spec.phases {
            let what = format!("{what}: phase `{}`", phase.name);
            let body = self.phase(phase, &what);
            phases.event(&phase.name, body.object(8));
        }
        all.add("phases", phases.object(6));
        format!("    {}: {}", json(name, true), all.object(4))
    }

    fn phase(&mut self, phase: &Phase, what: &str) -> Members {
        let mut all = Members::default();
        all.add("loop", loops(phase.repeat));
        if self.to == RtApp::V1_0 {
            let kept = Attr { cpus: phase.attr.cpus.clone(), ..Attr::default() };
            if kept != phase.attr {
                self.say(format!(
                    "{what}: rt-app 1.0 has one policy, and one priority, for each task"
                ));
            }
            self.attributes(&kept, false, what, &mut all);
        } else {
            self.attributes(&phase.attr, false, what, &mut all);
        }
        let before = all.lines.len();
        phase.events.iter().for_each(|event| self.event(event, what, &mut all));
        if all.lines.len() == before {
            // Of a phase without events, no rt-app knows what to do.
            all.event("run", 0);
        }
        all
    }

    fn attributes(&mut self, attr: &Attr, of_task: bool, what: &str, all: &mut Members) {
        let Attr { cpus, policy, nice, uclamp_min, uclamp_max, latency_nice, qos, taskgroup } =
            attr;
        if let Some(cpus) = cpus {
            let cpus: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
            all.add("cpus", format!("[{}]", cpus.join(", ")));
        }
        let mut nice = *nice;
        if let Some(policy) = policy {
            let (name, priority) = self.policy(policy, what);
            all.add("policy", format!("\"{name}\""));
            match priority {
                Some(Said::Priority(n)) => all.add("priority", n),
                Some(Said::Nice(n)) => nice = Some(n),
                None => {}
            }
            self.reservation(policy, what, all);
        }
        if let Some(nice) = nice
            && policy.is_none_or(|p| {
                !matches!(p, Policy::Fifo { .. } | Policy::Rr { .. } | Policy::Deadline { .. })
            })
            && (!of_task || nice != 0)
        {
            all.add("priority", nice);
        }
        if self.to == RtApp::V1_0 && (uclamp_min.is_some() || uclamp_max.is_some()) {
            self.say(format!("{what}: `util_min`, `util_max`: rt-app 1.0 knows no clamps"));
        } else {
            uclamp_min.iter().for_each(|min| all.add("util_min", min.0));
            uclamp_max.iter().for_each(|max| all.add("util_max", max.0));
        }
        if let (Some(group), RtApp::V2026) = (taskgroup, self.to)
            && !group.is_empty()
        {
            all.add("taskgroup", json(group, true));
        }
        if latency_nice.is_some() {
            self.say(format!("{what}: `latency_nice`: no rt-app knows it"));
        }
        if !qos.is_empty() {
            self.say(format!("{what}: `sched_qos`: no rt-app knows it"));
        }
    }

    /// The policy's name, and the priority that belongs to it.
    fn policy(&mut self, policy: &Policy, what: &str) -> (&'static str, Option<Said>) {
        match (policy, self.to) {
            (Policy::Fifo { priority } | Policy::Rr { priority }, _) => {
                (policy.name(), Some(Said::Priority(*priority)))
            }
            (Policy::Idle, RtApp::V1_0) => {
                self.say(format!("{what}: rt-app 1.0 knows no SCHED_IDLE: nice 19 instead"));
                ("SCHED_OTHER", Some(Said::Nice(19)))
            }
            (Policy::Batch { .. }, RtApp::V1_0) => {
                self.say(format!("{what}: rt-app 1.0 knows no SCHED_BATCH: SCHED_OTHER instead"));
                ("SCHED_OTHER", None)
            }
            (Policy::High { .. } | Policy::Overcommit { .. }, _) => {
                self.say(format!("{what}: no rt-app knows {}: SCHED_OTHER instead", policy.name()));
                ("SCHED_OTHER", None)
            }
            _ => (policy.name(), None),
        }
    }

    /// The parameters of a reservation, or a slice.
    fn reservation(&mut self, policy: &Policy, what: &str, all: &mut Members) {
        match *policy {
            Policy::Deadline { runtime, deadline, period, reclaim } => {
                for (key, span) in
                    [("dl-runtime", runtime), ("dl-period", period), ("dl-deadline", deadline)]
                {
                    let us = self.us(span, what);
                    all.add(key, us);
                }
                if reclaim {
                    self.say(format!("{what}: `dl-reclaim`: no rt-app asks for it"));
                }
            }
            Policy::Other { slice: Some(slice) } | Policy::Batch { slice: Some(slice) } => {
                match self.to {
                    RtApp::V1_0 => self.say(format!("{what}: rt-app 1.0 asks for no slice")),
                    RtApp::V2026 => {
                        let us = self.us(slice, what);
                        all.add("dl-runtime", us);
                    }
                }
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, what: &str, all: &mut Members) {
        let o = &self.of.objects;
        let name = |list: &[String], n: u32| {
            json(list.get(n as usize).map_or("", |name| name.as_str()), true)
        };
        match *event {
            Event::Run(FOR_EVER) => all.event("run", -1),
            Event::Run(work) => {
                let us = self.us(work, what);
                all.event("run", us);
            }
            Event::RunOf { work, .. } => {
                self.say_once("`kind`: rt-app runs one kind of work");
                let us = self.us(work, what);
                all.event("run", us);
            }
            Event::Runtime { time, .. } => {
                let us = self.us(time, what);
                all.event("runtime", us);
            }
            Event::Sleep(span) => {
                let us = self.us(span, what);
                all.event("sleep", us);
            }
            Event::Busy(span) => {
                let mut bytes = span.0.saturating_mul(BYTES_PER_US) / 1000;
                self.say_once("`mem`, `memrun`, `iorun`: as `mem`, of so many bytes as are written in that time here");
                loop {
                    all.event("mem", bytes.min(MAX_INT));
                    bytes -= bytes.min(MAX_INT);
                    if bytes == 0 {
                        break;
                    }
                }
            }
            Event::Timer { timer, period } => {
                let us = self.us(period, what);
                all.event("timer", self.timer(timer, us));
            }
            Event::Duty(_) => {
                self.say(format!("{what}: `duty`: no rt-app knows it, and it is left out"))
            }
            Event::Yield => all.event("yield", "\"\""),
            Event::Lock(m) => all.event("lock", name(&o.mutexes, m)),
            Event::Unlock(m) => all.event("unlock", name(&o.mutexes, m)),
            Event::Wait { cond, mutex } => {
                let (cond, mutex) = (name(&o.conds, cond), name(&o.mutexes, mutex));
                all.event("wait", format!("{{\"ref\": {cond}, \"mutex\": {mutex}}}"));
            }
            Event::Signal(c) => all.event("signal", name(&o.conds, c)),
            Event::Broadcast(c) => all.event("broad", name(&o.conds, c)),
            Event::Barrier(b) => {
                let barrier = o.barriers.get(b as usize).map_or("", |b| b.name.as_str());
                all.event("barrier", json(barrier, true));
            }
            Event::SemWait(s) | Event::SemPost(s) => {
                let waits = matches!(event, Event::SemWait(_));
                self.semaphore(name(&o.semaphores, s), waits, all);
            }
            Event::Fork(f) => match self.to {
                RtApp::V1_0 => {}
                RtApp::V2026 => {
                    let of = self.of.forked.get(f as usize).map_or("", |t| t.comm.as_str());
                    all.event("fork", json(of, true));
                }
            },
        }
    }

    /// A semaphore: of 1.0 a condition, which remembers nothing.
    fn semaphore(&mut self, name: String, waits: bool, all: &mut Members) {
        if self.to == RtApp::V2026 {
            return all.event(if waits { "sem_wait" } else { "sem_post" }, name);
        }
        self.say_once("semaphores: rt-app 1.0 has none; signals stand for them, and one that comes before the wait is lost");
        let name = format!("\"sem {}", &name[1..]);
        all.event("lock", &name);
        match waits {
            true => all.event("wait", format!("{{\"ref\": {name}, \"mutex\": {name}}}")),
            false => all.event("signal", &name),
        }
        all.event("unlock", &name);
    }

    fn timer(&self, timer: Timer, us: u64) -> String {
        let reference = match timer.shared {
            true => self.of.objects.timers.get(timer.index as usize).cloned().unwrap_or_default(),
            false => format!("unique{}", timer.index),
        };
        let mode = if timer.absolute { ", \"mode\": \"absolute\"" } else { "" };
        format!("{{\"ref\": {}, \"period\": {us}{mode}}}", json(&reference, true))
    }

    /// A time in whole µs. Rounding: to the nearest.
    fn us(&mut self, span: Span, what: &str) -> u64 {
        let us = (span.0 + 500) / 1000;
        if us > MAX_INT {
            self.say(format!("{what}: {us} µs are more than rt-app reads: {MAX_INT}"));
        }
        us.min(MAX_INT)
    }
}

/// Priority that belongs to a policy.
enum Said {
    Priority(u8),
    Nice(i8),
}

fn loops(repeat: Repeat) -> i64 {
    match repeat {
        Repeat::Times(n) => n.into(),
        Repeat::Forever => -1,
    }
}

/// `event` with its work in time on a CPU of this capacity.
fn on(event: Event, capacity: Capacity) -> Event {
    let time = |work: Span| {
        let ns = u128::from(work.0) * u128::from(SCHED_CAPACITY_SCALE) / u128::from(capacity.0);
        Span(u64::try_from(ns).unwrap_or(u64::MAX))
    };
    match event {
        Event::Run(work) if work != FOR_EVER => Event::Run(time(work)),
        other => other,
    }
}
