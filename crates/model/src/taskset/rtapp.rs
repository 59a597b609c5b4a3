//! Task sets as rt-app JSON: written under a policy, and found in a workload.
//!
//! ```text
//! { "policy": …,  "dl-runtime": …,  "cpus": [0],  "delay": OFFSET,  "job": { "deadline": D },  "loop": -1,
//!   "sem_wait": …,  "kind": "encrypt",  "run": C,  "lock": …,  "unlock": …,  "sem_post": …,
//!   "timer": { "ref": "unique", "period": T, "mode": "absolute" } }
//! ```
//!
//! Semaphores of rt-app JSON begin at 0. Where one has a unit at first, the first job of the task that takes it is a phase of
//! its own, which does not. With a *lead* the first jobs of all tasks come together, so long after the start: a timer counts
//! from when its task first ran, which for all but the first on a CPU is later than when it was created.

use super::{Resource, ResourceKind, RtTask, Server, Step, TaskSet};
use crate::InputError;
use crate::workload::{Event, Phase, Policy, Repeat, TaskSpec, Workload};
use risetime_kernel::units::Span;
use std::fmt::Write;

/// Under which policy a set is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_DEADLINE: each task's server, or what it needs.
    Deadline,
    /// SCHED_FIFO, the shortest period first.
    Rm,
    /// SCHED_FIFO, the shortest deadline first.
    Dm,
    /// SCHED_FIFO, one priority for all.
    Fifo,
    /// SCHED_RR, one priority for all.
    Rr,
}

/// The highest priority written: 99 is the stopper's and the watchdog's neighbourhood.
const HIGHEST: u64 = 98;
/// The priority of all tasks under a scheduling that tells none apart (rt-app's default).
const ONE_FOR_ALL: u64 = 10;
/// `1 << DL_SCALE` ns, in whole µs: the shortest runtime that the kernel takes.
const MIN_DL_RUNTIME_US: u64 = 2;

impl TaskSet {
    /// Writes the set as rt-app JSON under `how`; `lead`: first jobs come together so long after
    /// the start. Rounding: work up, periods and deadlines down to whole µs.
    ///
    /// Errors: a semaphore with more than one unit at first, or that several tasks take then.
    pub fn to_rtapp(&self, how: Scheduling, lead: Option<Span>) -> Result<String, InputError> {
        let mut out = format!("// {}: {} tasks", printable(&self.name), self.tasks.len());
        let _ = writeln!(out, ", {}", how.doc());
        if how == Scheduling::Deadline && self.tasks.iter().any(|t| t.cpus.is_some()) {
            let _ = writeln!(
                out,
                "// Without CPU masks: SCHED_DEADLINE takes none. `risetime deploy plan` makes root domains."
            );
        }
        self.notes.iter().for_each(|n| _ = writeln!(out, "// {}", printable(n)));
        out.push_str("{\n  \"tasks\": {\n");
        for (i, task) in self.tasks.iter().enumerate() {
            let end = if i + 1 < self.tasks.len() { ",\n" } else { "\n" };
            let _ = write!(out, "    {}: {}{end}", quoted(&task.name), self.task(task, how, lead)?);
        }
        out.push_str("  }\n}\n");
        Ok(out)
    }

    fn task(&self, t: &RtTask, how: Scheduling, lead: Option<Span>) -> Result<String, InputError> {
        let us = |span: Span| (span.0 / 1000).max(1);
        let mut keys = Vec::new();
        match how {
            Scheduling::Deadline => {
                let s = t.server.unwrap_or(own_server(t));
                keys.push("\"policy\": \"SCHED_DEADLINE\"".to_string());
                keys.push(format!(
                    "\"dl-runtime\": {}, \"dl-deadline\": {}, \"dl-period\": {}",
                    s.runtime.0.div_ceil(1000).max(MIN_DL_RUNTIME_US),
                    us(s.deadline),
                    us(s.period)
                ));
            }
            Scheduling::Rr => {
                keys.push(format!("\"policy\": \"SCHED_RR\", \"priority\": {ONE_FOR_ALL}"))
            }
            _ => keys.push(format!(
                "\"policy\": \"SCHED_FIFO\", \"priority\": {}",
                self.priority(t, how)
            )),
        }
        if let Some(cpus) = t.cpus.as_ref().filter(|_| how != Scheduling::Deadline) {
            let list: Vec<String> = cpus.iter().map(|c| c.0.to_string()).collect();
            keys.push(format!("\"cpus\": [{}]", list.join(", ")));
        }
        keys.push(format!("\"job\": {{ \"deadline\": {} }}", us(t.deadline)));
        let timer = |span: Span| {
            let us = us(span);
            format!(
                "\"timer\": {{ \"ref\": \"unique\", \"period\": {us}, \"mode\": \"absolute\" }}"
            )
        };
        let first = self.first_job(t)?;
        let body = |code: &[Step]| {
            let mut all = self.events(code);
            all.push(timer(t.period));
            all.join(", ")
        };
        let mut phases = Vec::new();
        match lead {
            Some(lead) => {
                phases.push(format!("\"lead\": {{ {} }}", timer(Span(lead.0 + t.offset.0))))
            }
            None if t.offset.0 > 0 => keys.push(format!("\"delay\": {}", us(t.offset))),
            None => {}
        }
        if let Some(first) = &first {
            phases.push(format!("\"first\": {{ {} }}", body(first)));
        }
        if phases.is_empty() {
            keys.push(format!("\"loop\": -1, {}", body(&t.code)));
        } else {
            phases.push(format!("\"job\": {{ \"loop\": -1, {} }}", body(&t.code)));
            let phases = phases.join(",\n                    ");
            keys.push(format!("\"loop\": 1,\n      \"phases\": {{ {phases} }}"));
        }
        Ok(format!("{{ {} }}", keys.join(", ")))
    }

    /// The steps of the task's first job, where that waits for less than the others, because a
    /// semaphore has its units at first.
    fn first_job(&self, t: &RtTask) -> Result<Option<Vec<Step>>, InputError> {
        let there = |r: usize| match self.resources[r].kind {
            ResourceKind::Semaphore(n) => n,
            ResourceKind::Mutex => 0,
        };
        for step in &t.code {
            let Step::Take(r) = step else { continue };
            let takers = self.tasks.iter().flat_map(|t| &t.code).filter(|s| *s == step).count();
            if there(*r) > 1 || (there(*r) == 1 && takers > 1) {
                let what = format!(
                    "resource `{}` has {} at first, and is taken in {takers} places: rt-app's semaphores begin at 0",
                    self.resources[*r].name,
                    there(*r)
                );
                return Err(InputError::new(&self.name, what));
            }
        }
        let less = |s: &&Step| !matches!(s, Step::Take(r) if there(*r) == 1);
        let first: Vec<Step> = t.code.iter().filter(less).cloned().collect();
        Ok((first.len() < t.code.len()).then_some(first))
    }

    fn events(&self, code: &[Step]) -> Vec<String> {
        let (mut all, mut kind) = (Vec::new(), &None);
        for step in code {
            let name = |r: &usize| quoted(&self.resources[*r].name);
            let event = match step {
                Step::Run(work, of) => {
                    if of != kind {
                        all.push(format!("\"kind\": {}", quoted(of.as_deref().unwrap_or(""))));
                        kind = of;
                    }
                    format!("\"run\": {}", work.0.div_ceil(1000).max(1))
                }
                Step::Time(time) => format!("\"runtime\": {}", time.0.div_ceil(1000).max(1)),
                Step::Lock(r) => format!("\"lock\": {}", name(r)),
                Step::Unlock(r) => format!("\"unlock\": {}", name(r)),
                Step::Take(r) => format!("\"sem_wait\": {}", name(r)),
                Step::Give(r) => format!("\"sem_post\": {}", name(r)),
            };
            all.push(event);
        }
        all
    }

    /// The real-time priority of a task: equal keys have equal priorities; of more keys than there
    /// are priorities, neighbours share one.
    fn priority(&self, task: &RtTask, how: Scheduling) -> u64 {
        let key = |t: &RtTask| match how {
            Scheduling::Rm => t.period,
            Scheduling::Dm => t.deadline,
            _ => Span(0),
        };
        if !matches!(how, Scheduling::Rm | Scheduling::Dm) {
            return ONE_FOR_ALL;
        }
        let mut keys: Vec<Span> = self.tasks.iter().map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        let rank = keys.partition_point(|k| *k < key(task)) as u64;
        match keys.len() as u64 {
            n if n <= HIGHEST => HIGHEST - rank,
            n => HIGHEST - rank * HIGHEST / n,
        }
    }

    /// The periodic tasks that `workload` is made of.
    ///
    /// Errors: a task that is none: its jobs are not the rounds of one endless loop with one timer at its end, or they do
    /// something else than work, mutexes and semaphores.
    pub fn of_workload(workload: &Workload) -> Result<TaskSet, InputError> {
        let objects = &workload.objects;
        let mut resources: Vec<Resource> = Vec::new();
        resources.extend(
            objects
                .mutexes
                .iter()
                .map(|name| Resource { name: name.clone(), kind: ResourceKind::Mutex }),
        );
        resources.extend(
            objects
                .semaphores
                .iter()
                .map(|name| Resource { name: name.clone(), kind: ResourceKind::Semaphore(0) }),
        );
        let mut tasks = Vec::new();
        for (i, spec) in workload.tasks.iter().enumerate() {
            let job = workload.jobs.iter().find(|j| j.tasks == [i as u32]);
            let found = task_of(spec, workload, &mut resources);
            let found = found.map_err(|what| {
                let place = workload.place_of(&spec.comm, &format!("task `{}`", spec.comm));
                InputError::new(place, what).hint(PERIODIC)
            })?;
            let deadline = job.and_then(|j| j.deadline).unwrap_or(found.deadline);
            let server =
                found.server.filter(|s| *s != own_server(&RtTask { deadline, ..found.clone() }));
            tasks.push(RtTask { deadline, server, ..found });
        }
        Ok(TaskSet { name: workload.name.clone(), tasks, resources, notes: Vec::new() })
    }
}

const PERIODIC: &str = "a task of a set runs (`run`, `runtime`), and sleeps at the end of each round in one `timer`; \
     beside these `lock`, `unlock`, `sem_wait` and `sem_post`: docs/task-sets.md";

impl Scheduling {
    fn doc(self) -> &'static str {
        match self {
            Scheduling::Deadline => "each with its server under SCHED_DEADLINE",
            Scheduling::Rm => "SCHED_FIFO, the shortest period first",
            Scheduling::Dm => "SCHED_FIFO, the shortest deadline first",
            Scheduling::Fifo => "SCHED_FIFO, of one priority",
            Scheduling::Rr => "SCHED_RR, of one priority",
        }
    }
}

/// The server that gives a task what it needs, as it is written.
fn own_server(t: &RtTask) -> Server {
    let whole = |span: Span| Span(span.0 / 1000 * 1000);
    let runtime = Span(t.work().0.div_ceil(1000).max(MIN_DL_RUNTIME_US) * 1000);
    Server { runtime, deadline: whole(t.deadline.min(t.period)), period: whole(t.period) }
}

fn task_of(
    spec: &TaskSpec,
    workload: &Workload,
    resources: &mut [Resource],
) -> Result<RtTask, String> {
    let mutexes = workload.objects.mutexes.len();
    let step = |event: &Event| -> Result<Step, String> {
        Ok(match *event {
            Event::Run(work) => Step::Run(work, None),
            Event::RunOf { work, kind } => {
                Step::Run(work, workload.objects.kinds.get(kind as usize).cloned())
            }
            Event::Runtime { time, .. } => Step::Time(time),
            Event::Lock(m) => Step::Lock(m as usize),
            Event::Unlock(m) => Step::Unlock(m as usize),
            Event::SemWait(s) => Step::Take(mutexes + s as usize),
            Event::SemPost(s) => Step::Give(mutexes + s as usize),
            _ => return Err("does something whose time is not known beforehand".into()),
        })
    };
    // The steps of a phase, and the timer at its end.
    let round = |phase: &Phase| -> Result<(Vec<Step>, Span), String> {
        let Some((Event::Timer { timer, period }, code)) = phase.events.split_last() else {
            return Err("has no `timer` at the end of a round, so it has no period".into());
        };
        if timer.shared {
            return Err("has a `timer` that other tasks use".into());
        }
        if code.iter().any(|e| matches!(e, Event::Timer { .. })) {
            return Err("has two timers in a round".into());
        }
        Ok((code.iter().map(step).collect::<Result<_, _>>()?, *period))
    };
    let Some((last, before)) = spec.phases.split_last() else { return Err("is empty".into()) };
    let endless = match before {
        [] => spec.repeat == Repeat::Forever || last.repeat == Repeat::Forever,
        _ => last.repeat == Repeat::Forever,
    };
    if !endless {
        return Err("ends, or has phases that take turns".into());
    }
    if spec.phases.iter().any(|p| !p.attr.is_empty()) {
        return Err("changes its attributes from phase to phase".into());
    }
    let (code, period) = round(last)?;
    let mut offset = spec.delay;
    for phase in before {
        let (first, waits) = round(phase)?;
        let kept: Vec<Step> = code
            .iter()
            .filter(|s| !matches!(s, Step::Take(_)) || first.contains(s))
            .cloned()
            .collect();
        if phase.repeat != Repeat::Times(1) {
            return Err("has phases that take turns".into());
        }
        if first.is_empty() {
            offset = Span(offset.0 + waits.0);
        } else if first == kept && waits == period {
            for s in code.iter().filter(|s| !first.contains(s)) {
                let Step::Take(r) = s else { continue };
                resources[*r].kind = ResourceKind::Semaphore(1);
            }
        } else {
            return Err("has a first job that does other things than the rest".into());
        }
    }
    if code.is_empty() {
        return Err("does nothing".into());
    }
    let server = match spec.attr.policy {
        Some(Policy::Deadline { runtime, deadline, period, .. }) => {
            Some(Server { runtime, deadline, period })
        }
        _ => None,
    };
    let at = workload.places.get(&spec.comm).cloned().unwrap_or_default();
    let cpus = spec.attr.cpus.clone();
    let name = spec.comm.clone();
    Ok(RtTask { name, at, period, deadline: period, offset, code, server, cpus })
}

/// Writes `text` as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => _ = write!(out, "\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn printable(text: &str) -> String {
    crate::input::printable(text)
}
