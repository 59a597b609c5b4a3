//! Reading events: one key of the file becomes one or more [`Event`]s, names become numbers.
//!
//! Forks and timers can only be settled when every task has been read: a task may be forked before
//! it is described, and a timer is shared if a second task uses it.
//!
//! Source: rt-app, doc/tutorial.txt; `src/rt-app_parse_config.c:parse_task_event_data`.

use super::events::Kind;
use super::job;
use super::json::{MAX_US, Reader};
use super::objects::{Barrier, Names, Objects};
use super::{BYTES_PER_US, Event, TaskSpec, Timer, WRITE_CALL_NS};
use crate::InputError;
use crate::input::one_line;
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use risetime_kernel::units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a `mem` or `iorun`.
const MAX_BYTES: i64 = 1 << 50;
/// rt-app's `mem_buffer_size` where the file says nothing.
const BUFFER: u64 = 4 << 20;

/// Names that all tasks of a file share.
#[derive(Default)]
pub(super) struct Shared {
    mutexes: Names,
    conds: Names,
    semaphores: Names,
    barriers: Names,
    /// Events that name each barrier.
    barrier_users: Vec<u32>,
    forks: Names,
    kinds: Names,
    /// Places where each kind is first named.
    pub(super) kinds_at: Vec<String>,
    /// Places where each task is first forked.
    forked_at: Vec<Range>,
    /// `mem_buffer_size`, in bytes.
    pub(super) buffer: Option<u64>,
    /// `io_device` is a device whose writes are copied.
    pub(super) copies: bool,
}

/// The names that the task that is being read has used so far.
#[derive(Default)]
pub(super) struct TaskNames {
    /// The task's own name, which `suspend` means where it says nothing.
    task: String,
    /// The task's timers by `ref`.
    timers: BTreeMap<String, u32>,
    /// Timers in absolute mode: one event that says so is enough.
    absolute: BTreeSet<u32>,
    held: BTreeSet<u32>,
    /// The kind of what it runs from here on; `None`: plain work.
    pub(super) kind: Option<u32>,
    /// A barrier that it waits at, for an error if it is forked.
    barrier_at: Option<Range>,
}

/// A task as it stands in the file.
pub(super) struct Parsed<'v, 'a> {
    pub(super) spec: TaskSpec,
    pub(super) name: String,
    pub(super) instances: usize,
    pub(super) names: TaskNames,
    pub(super) prop: &'v ObjectProp<'a>,
    pub(super) job: Option<job::Said>,
}

impl<'a> Reader<'a> {
    /// Appends what `prop` does to `events`.
    pub(super) fn event(
        &self,
        kind: Kind,
        prop: &ObjectProp<'a>,
        what: &str,
        names: &mut TaskNames,
        shared: &mut Shared,
        events: &mut Vec<Event>,
    ) -> Result<(), InputError> {
        let event = match kind {
            Kind::Run => {
                let work = self.us(prop, what)?;
                names.kind.map_or(Event::Run(work), |kind| Event::RunOf { work, kind })
            }
            Kind::Work => {
                let name = self.string(prop, what)?;
                names.kind = (!name.is_empty()).then(|| shared.kinds.number(name));
                if names.kind == Some(shared.kinds_at.len() as u32) {
                    shared.kinds_at.push(self.place(&prop.value));
                }
                return Ok(());
            }
            Kind::Runtime => Event::Runtime(self.us(prop, what)?),
            Kind::Sleep => Event::Sleep(self.us(prop, what)?),
            Kind::Timer => self.timer(prop, what, names)?,
            Kind::Mem => Event::Busy(writing(self.bytes(prop, what)?)),
            Kind::Iorun => Event::Busy(shared.iorun(self.bytes(prop, what)?)),
            Kind::Duty => {
                let key = prop.name.as_str();
                Event::Duty(self.whole(&prop.value, key, what, 1..=99, " %")? as u32)
            }
            Kind::Yield => Event::Yield,
            Kind::Fork => Event::Fork(shared.fork(self.string(prop, what)?, prop)),
            Kind::Lock => {
                let mutex = shared.mutexes.number(self.string(prop, what)?);
                names.held.insert(mutex);
                Event::Lock(mutex)
            }
            Kind::Unlock => {
                let mutex = shared.mutexes.number(self.string(prop, what)?);
                names.held.remove(&mutex);
                Event::Unlock(mutex)
            }
            Kind::Signal => Event::Signal(shared.conds.number(self.string(prop, what)?)),
            Kind::Broad => Event::Broadcast(shared.conds.number(self.string(prop, what)?)),
            Kind::Wait => {
                let (cond, mutex) = self.cond_and_mutex(prop, what, shared)?;
                Event::Wait { cond, mutex }
            }
            Kind::Sync => {
                let (cond, mutex) = self.cond_and_mutex(prop, what, shared)?;
                let both = [Event::Signal(cond), Event::Wait { cond, mutex }];
                if names.held.contains(&mutex) {
                    events.extend(both);
                } else {
                    events.push(Event::Lock(mutex));
                    events.extend(both);
                    events.push(Event::Unlock(mutex));
                }
                return Ok(());
            }
            Kind::Suspend | Kind::Resume => {
                let name = match self.string(prop, what)? {
                    "" if kind == Kind::Suspend => names.task.as_str(),
                    name => name,
                };
                let (mutex, cond) = (shared.mutexes.number(name), shared.conds.number(name));
                let inner = match kind {
                    Kind::Suspend => Event::Wait { cond, mutex },
                    _ => Event::Broadcast(cond),
                };
                events.extend([Event::Lock(mutex), inner, Event::Unlock(mutex)]);
                return Ok(());
            }
            Kind::Barrier => {
                names.barrier_at = Some(prop.range);
                Event::Barrier(shared.barrier(self.string(prop, what)?))
            }
            Kind::SemWait => Event::SemWait(shared.semaphores.number(self.string(prop, what)?)),
            Kind::SemPost => Event::SemPost(shared.semaphores.number(self.string(prop, what)?)),
        };
        events.push(event);
        Ok(())
    }

    fn bytes(&self, prop: &ObjectProp<'a>, what: &str) -> Result<u64, InputError> {
        Ok(self.whole(&prop.value, prop.name.as_str(), what, 0..=MAX_BYTES, " bytes")? as u64)
    }

    /// `{ "ref": cond, "mutex": mutex }`, as numbers.
    fn cond_and_mutex(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
        shared: &mut Shared,
    ) -> Result<(u32, u32), InputError> {
        let what = format!("{what}: `{}`", one_line(prop.name.as_str()));
        let object = self.object(&prop.value, &what)?;
        self.once(object, &what, |_| true)?;
        let (mut cond, mut mutex) = (None, None);
        for p in &object.properties {
            match p.name.as_str() {
                "ref" => cond = Some(self.string(p, &what)?),
                "mutex" => mutex = Some(self.string(p, &what)?),
                other => {
                    return Err(self.unknown(p, &format!("{what}: "), other, &["mutex", "ref"]));
                }
            }
        }
        match (cond, mutex) {
            (Some(cond), Some(mutex)) => {
                Ok((shared.conds.number(cond), shared.mutexes.number(mutex)))
            }
            (None, _) => Err(self.error(object, format!("{what} has no `ref`"))),
            (_, None) => Err(self.error(object, format!("{what} has no `mutex`"))),
        }
    }

    fn timer(
        &self,
        prop: &ObjectProp<'a>,
        what: &str,
        names: &mut TaskNames,
    ) -> Result<Event, InputError> {
        let what = format!("{what}: `{}`", one_line(prop.name.as_str()));
        let object = self.object(&prop.value, &what)?;
        self.once(object, &what, |_| true)?;
        // Without a `ref`, rt-app gives all such timers this one name.
        let mut name = "unknown".to_string();
        let (mut period, mut absolute) = (None, false);
        for p in &object.properties {
            match p.name.as_str() {
                "ref" => name = self.string(p, &what)?.to_string(),
                "period" => period = Some(self.us(p, &what)?),
                "mode" => match self.string(p, &what)? {
                    "relative" => {}
                    "absolute" => absolute = true,
                    mode => {
                        let what = format!(
                            "{what}: mode \"{}\", wanted \"relative\" or \"absolute\"",
                            one_line(mode)
                        );
                        return Err(self.error(&p.value, what));
                    }
                },
                other => {
                    let known = ["mode", "period", "ref"];
                    return Err(self.unknown(p, &format!("{what}: "), other, &known));
                }
            }
        }
        let Some(period) = period else {
            return Err(self.error(object, format!("{what} has no `period`")));
        };
        let next = names.timers.len() as u32;
        let index = *names.timers.entry(name).or_insert(next);
        if absolute {
            names.absolute.insert(index);
        }
        Ok(Event::Timer { timer: Timer::own(index), period })
    }

    /// `nodes_membind`: the nodes are read, memory has no place here.
    pub(super) fn membind(&self, prop: &ObjectProp<'a>, what: &str) -> Result<(), InputError> {
        let Value::Array(list) = &prop.value else {
            let wanted = "a list of node numbers such as [0, 1]";
            return Err(self.wrong(prop, what, &prop.value, wanted));
        };
        let key = prop.name.as_str();
        list.elements.iter().try_for_each(|v| self.whole(v, key, what, 0..=1023, "").map(drop))
    }

    /// `global.io_device` and `global.mem_buffer_size`.
    pub(super) fn io(&self, prop: &ObjectProp<'a>, shared: &mut Shared) -> Result<(), InputError> {
        match prop.name.as_str() {
            "io_device" => shared.copies = self.string(prop, "`global`")? != "/dev/null",
            key => {
                let size = self.whole(&prop.value, key, "`global`", 1..=MAX_BYTES, " bytes")?;
                shared.buffer = Some(size as u64);
            }
        }
        Ok(())
    }

    /// Numbers what the tasks share, and finds those that are forked.
    ///
    /// Errors: a fork of a task that there is not, or of one with a barrier.
    pub(super) fn share(
        &self,
        tasks: &mut [Parsed<'_, 'a>],
        shared: Shared,
        without_effect: &mut Vec<String>,
    ) -> Result<(Vec<TaskSpec>, Objects), InputError> {
        let forks: Vec<(String, Range)> =
            shared.forks.into_list().into_iter().zip(shared.forked_at).collect();
        let mut originals = Vec::new();
        for (name, at) in &forks {
            let Some(index) = tasks.iter().position(|t| t.name == *name) else {
                let mut known: Vec<&str> = tasks.iter().map(|t| t.name.as_str()).collect();
                known.dedup();
                let what = format!(
                    "`fork`: there is no task \"{}\"; known: {}",
                    one_line(name),
                    known.join(", ")
                );
                return Err(self.error(at, what));
            };
            if let Some(barrier) = tasks[index].names.barrier_at {
                let what = format!(
                    "task `{name}` is forked, so it can use no `barrier`: how many come would not be known"
                );
                return Err(self.error(&barrier, what));
            }
            originals.push(index);
        }
        let timers = share_timers(tasks, &originals);
        for t in tasks.iter().filter(|t| t.instances > 1 && t.names.barrier_at.is_some()) {
            without_effect.push(format!(
                "task `{}`: `instance` on the number of tasks that a barrier waits for: as in rt-app, it is how often the file names the barrier",
                t.name
            ));
        }
        let forked = originals
            .iter()
            .map(|i| TaskSpec { comm: tasks[*i].name.clone(), ..tasks[*i].spec.clone() });
        let barriers = shared.barriers.into_list().into_iter().zip(shared.barrier_users);
        let objects = Objects {
            mutexes: shared.mutexes.into_list(),
            conds: shared.conds.into_list(),
            barriers: barriers.map(|(name, users)| Barrier { name, users }).collect(),
            semaphores: shared.semaphores.into_list(),
            timers,
            kinds: shared.kinds.into_list(),
        };
        Ok((forked.collect(), objects))
    }
}

impl TaskNames {
    /// Names for the objects of the task with this name.
    pub(super) fn of(task: &str) -> TaskNames {
        TaskNames { task: task.to_string(), ..TaskNames::default() }
    }
}

impl Shared {
    pub(super) fn mutex_names(self) -> Vec<String> {
        self.mutexes.into_list()
    }

    fn barrier(&mut self, name: &str) -> u32 {
        let barrier = self.barriers.number(name);
        self.barrier_users.resize(self.barrier_users.len().max(barrier as usize + 1), 0);
        self.barrier_users[barrier as usize] += 1;
        barrier
    }

    fn fork(&mut self, name: &str, prop: &ObjectProp<'_>) -> u32 {
        let fork = self.forks.number(name);
        if self.forked_at.len() == fork as usize {
            self.forked_at.push(prop.value.range());
        }
        fork
    }

    /// `write` in pieces of the buffer's size. To a file, it copies; to /dev/null, it only returns.
    fn iorun(&self, bytes: u64) -> Span {
        let calls = bytes.div_ceil(self.buffer.unwrap_or(BUFFER));
        let copied = if self.copies { writing(bytes) } else { Span(0) };
        bounded(copied.0.saturating_add(calls.saturating_mul(WRITE_CALL_NS)))
    }
}

/// The time that it takes to write so many bytes to memory, rounded up to the next ns.
fn writing(bytes: u64) -> Span {
    bounded(bytes.saturating_mul(1000).div_ceil(BYTES_PER_US))
}

fn bounded(ns: u64) -> Span {
    Span(ns.min(MAX_US as u64 * 1000))
}

/// A timer whose `ref` does not begin with "unique" is one for all threads that name it; gives the
/// names of those that more than one does.
fn share_timers(tasks: &mut [Parsed<'_, '_>], forked: &[usize]) -> Vec<String> {
    let mut users: BTreeMap<String, (usize, bool)> = BTreeMap::new();
    for (i, t) in tasks.iter().enumerate() {
        let threads = if forked.contains(&i) { 2 } else { t.instances };
        for (name, index) in t.names.timers.iter().filter(|(name, _)| !name.starts_with("unique")) {
            let user = users.entry(name.clone()).or_default();
            user.0 += threads;
            user.1 |= t.names.absolute.contains(index);
        }
    }
    users.retain(|_, (threads, _)| *threads > 1);
    let names: Vec<String> = users.keys().cloned().collect();
    for t in tasks {
        let own = |index: u32| {
            let absolute = t.names.absolute.contains(&index);
            let name = t.names.timers.iter().find(|(_, i)| **i == index).map(|(name, _)| name);
            match name.and_then(|name| Some((names.binary_search(name).ok()?, users.get(name)?))) {
                Some((at, user)) => Timer { index: at as u32, shared: true, absolute: user.1 },
                None => Timer { index, shared: false, absolute },
            }
        };
        let settled: Vec<Timer> = (0..t.names.timers.len() as u32).map(own).collect();
        for event in t.spec.phases.iter_mut().flat_map(|p| &mut p.events) {
            if let Event::Timer { timer, .. } = event {
                *timer = settled[timer.index as usize];
            }
        }
    }
    names
}
