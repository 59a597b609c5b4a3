//! Times of a workload that are allowed, and of another unit in all likelihood.
//!
//! ```text
//! ms for µs    a task sleeps, and nothing in it takes 100 µs: a frame of 16 µs
//! ns for µs    a sleep or a period of 10 s and more, in a workload that is not said to be longer
//! ms for s     a duration of 1000 s and more
//! too slow     the work of a period takes longer than that, even alone on the fastest CPU it may use
//! too little   the work between two waits takes more than the runtime that the task reserves for a period; both count at
//!              the speed of capacity 1024 at top frequency, whichever CPU it has (kernel/sched/deadline.c:dl_scaled_delta_exec)
//! ```

use super::events::{self, Key, Kind};
use super::json::Reader;
use super::{Event, Link, Policy, TaskSpec, Workload};
use crate::input::one_line;
use crate::platform::Domain;
use crate::{InputError, Platform};
use jsonc_parser::ast::{Object, ObjectProp, Value};
use risetime_kernel::units::{Capacity, CpuId, SCHED_CAPACITY_SCALE, Span};

/// Below this, in µs, no task does all that it does: the kernel's own slack of timers is 50 µs.
const SHORT_US: u64 = 100;
/// Time in µs beyond which nobody waits in an experiment about response: 10 ms in ns.
const LONG_US: u64 = 10_000_000;
/// Time in s beyond which nobody simulates by default.
const LONG_S: u64 = 1000;

/// A time in the file: where it is written, what for, and how long it is in µs.
struct Time<'v, 'a> {
    prop: &'v ObjectProp<'a>,
    kind: Kind,
    us: u64,
}

impl<'a> Reader<'a> {
    /// Looks for doubtful values in the file, which has been read without a fault.
    pub(super) fn doubts(&self, tree: &Value<'a>, duration: Option<Span>) -> Vec<InputError> {
        let mut all = Vec::new();
        if let Some(duration) = duration.filter(|d| d.0 >= LONG_S * 1_000_000_000)
            && let Some(at) = member(tree, "global").and_then(|g| member(&g.value, "duration"))
        {
            let s = duration.0 / 1_000_000_000;
            let what = format!("`global`: `duration` is {s} s, {} min: ms for s?", s / 60);
            all.push(self.error(at, what));
        }
        let Some(Value::Object(tasks)) = member(tree, "tasks").map(|t| &t.value) else {
            return all;
        };
        for task in &tasks.properties {
            let Value::Object(body) = &task.value else { continue };
            let mut times = Vec::new();
            times_of(body, &mut times);
            let what = format!("task `{}`", one_line(task.name.as_str()));
            all.extend(self.doubt_of(&what, &times, duration.unwrap_or_default()));
        }
        all
    }

    fn doubt_of(&self, what: &str, times: &[Time<'_, 'a>], duration: Span) -> Option<InputError> {
        let waits = |t: &&Time<'_, 'a>| matches!(t.kind, Kind::Sleep | Kind::Timer);
        let said = |t: &Time<'_, 'a>, rest: String| {
            let name = one_line(t.prop.name.as_str());
            let text = format!("{what}: `{name}` is {} µs{rest}", t.us);
            self.error(t.prop, text)
        };
        let longest = times.iter().map(|t| t.us).max()?;
        let first = times.iter().filter(waits).find(|t| t.us > 0)?;
        if longest < SHORT_US {
            let (us, ms) = (first.us, first.us * 1000);
            let rest = format!(", and nothing in it is longer: ms for µs? {us} ms are {ms}");
            return Some(said(first, rest));
        }
        let long = LONG_US.max(duration.0 / 1000);
        let long = times.iter().filter(waits).find(|t| t.us >= long)?;
        let s = long.us / 1_000_000;
        let rest = format!(", {s} s: ns for µs? {s} ms are {s}000");
        Some(said(long, rest))
    }
}

/// The property `key` of an object.
fn member<'v, 'a>(of: &'v Value<'a>, key: &str) -> Option<&'v ObjectProp<'a>> {
    let Value::Object(object) = of else { return None };
    object.properties.iter().find(|p| p.name.as_str() == key)
}

/// The times in a task's or phase's own body, and in its phases.
fn times_of<'v, 'a>(body: &'v Object<'a>, all: &mut Vec<Time<'v, 'a>>) {
    for prop in &body.properties {
        let number = |value: &Value<'a>| match value {
            Value::NumberLit(n) => n.value.parse().ok(),
            _ => None,
        };
        let (kind, us) = match (events::classify(prop.name.as_str()), &prop.value) {
            (Key::Property("phases"), Value::Object(phases)) => {
                let bodies = phases.properties.iter().filter_map(|p| match &p.value {
                    Value::Object(body) => Some(body),
                    _ => None,
                });
                bodies.for_each(|body| times_of(body, all));
                continue;
            }
            (Key::Event(Kind::Timer), Value::Object(timer)) => {
                let period = timer.properties.iter().find(|p| p.name.as_str() == "period");
                (Kind::Timer, period.and_then(|p| number(&p.value)))
            }
            (Key::Event(kind @ (Kind::Run | Kind::Runtime | Kind::Sleep)), value) => {
                (kind, number(value))
            }
            _ => continue,
        };
        all.extend(us.map(|us| Time { prop, kind, us }));
    }
}

impl Workload {
    /// Tasks with a phase whose work takes longer than the period that it keeps, at the top speed of the fastest CPU
    /// that it may use: of `platform`, else of one at 1024.
    pub fn too_slow(&self, platform: Option<&Platform>) -> Vec<InputError> {
        let bound = self.of(platform);
        let tasks = bound.iter().flat_map(|w| &w.tasks);
        tasks.filter_map(|task| self.too_slow_task(task, platform)).collect()
    }

    /// Finds deadline tasks whose reservation does not suffice for the work of one of their phases:
    /// they will be throttled, which may be what somebody wants to see.
    pub fn too_little_runtime(&self, platform: Option<&Platform>) -> Vec<InputError> {
        let bound = self.of(platform);
        let tasks = bound.iter().flat_map(|w| &w.tasks);
        tasks.filter_map(|task| self.too_little_runtime_of(task)).collect()
    }

    /// The workload as bound to `platform`, or as it is without one; `None`: the meaning of `run`
    /// in it is known only of a machine, or not even there.
    fn of(&self, platform: Option<&Platform>) -> Option<Workload> {
        match platform {
            Some(platform) => self.bind(platform).ok(),
            None => Some(self.clone()).filter(|w| w.calibration.is_none()),
        }
    }

    /// The doubt about one task, if its reservation does not suffice for a phase with a single
    /// wait; several waits in a phase would each have to be looked at with what is between them.
    fn too_little_runtime_of(&self, task: &TaskSpec) -> Option<InputError> {
        let mut policy = task.attr.policy;
        task.phases.iter().find_map(|phase| {
            policy = phase.attr.policy.or(policy);
            let Some(Policy::Deadline { runtime, period, reclaim: false, .. }) = policy else { return None };
            let waits = phase.events.iter().filter(|event| waits(event)).count();
            let work = |event: &Event| match event {
                Event::Run(work) | Event::RunOf { work, .. } => u128::from(work.0),
                _ => 0,
            };
            let work: u128 = phase.events.iter().map(work).sum();
            if waits != 1 || work <= u128::from(runtime.0) {
                return None;
            }
            let [work, runtime] = [work, u128::from(runtime.0)].map(|ns| ns / 1000);
            let what = format!(
                "its work takes {work} µs at the full speed of capacity 1024, more than its `dl-runtime` of {runtime} µs: \
                 it is throttled until its next period of {} µs begins",
                period.0 / 1000
            );
            Some(InputError::new(self.place_of(&task.comm, &format!("task `{}`", task.comm)), what))
        })
    }

    fn too_slow_task(&self, task: &TaskSpec, platform: Option<&Platform>) -> Option<InputError> {
        task.phases.iter().find_map(|phase| {
            // A task that asks for a share of what there is may ask for too much: that is what the
            // class is for.
            if matches!(phase.attr.policy.or(task.attr.policy), Some(Policy::Overcommit { .. })) {
                return None;
            }
            let cpus = phase.attr.cpus.as_ref().or(task.attr.cpus.as_ref());
            let capacity = platform.and_then(|p| fastest(p, cpus)).unwrap_or(Capacity(SCALE));
            let mut periods = phase.events.iter().filter_map(|event| match event {
                Event::Timer { period, .. } => Some(*period),
                _ => None,
            });
            // Of several timers each would have to be looked at with what is between them.
            let (Some(period), None) = (periods.next(), periods.next()) else { return None };
            let busy: u128 = phase.events.iter().map(|event| takes(event, capacity)).sum();
            if busy <= u128::from(period.0) {
                return None;
            }
            let may = if platform.and(cpus).is_some() { " that it may use" } else { "" };
            let (busy, period) = (busy / 1000, period.0 / 1000);
            let what = format!(
                "its work takes {busy} µs at full speed on the fastest CPU{may}, longer than its period of {period} µs"
            );
            let place = self.place_of(&task.comm, &format!("task `{}`", task.comm));
            Some(InputError::new(place, what))
        })
    }
}

/// Whether the task sleeps there until something comes.
fn waits(event: &Event) -> bool {
    matches!(event, Event::Sleep(_) | Event::Timer { .. }) || Link::input(event).is_some()
}

const SCALE: u64 = SCHED_CAPACITY_SCALE;

/// The largest capacity among `cpus`; of all without any.
fn fastest(platform: &Platform, cpus: Option<&Vec<CpuId>>) -> Option<Capacity> {
    let may = |d: &&Domain| cpus.is_none_or(|cpus| d.cpus.iter().any(|cpu| cpus.contains(cpu)));
    platform.domains.iter().filter(may).map(|d| d.capacity).max()
}

/// The time for which an event has a CPU of `capacity` at full speed, in ns.
fn takes(event: &Event, capacity: Capacity) -> u128 {
    match event {
        Event::Run(work) | Event::RunOf { work, .. } => {
            u128::from(work.0) * u128::from(SCALE) / u128::from(capacity.0)
        }
        Event::Runtime { time, .. } | Event::Busy(time) => u128::from(time.0),
        _ => 0,
    }
}
