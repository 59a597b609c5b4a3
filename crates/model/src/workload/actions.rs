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
use super::{BYTES_PER_US, Event, FOR_EVER, PIECE, TaskSpec, Timer, WRITE_CALL_NS};
use crate::InputError;
use crate::input::one_line;
use jsonc_parser::ast::{ObjectProp, Value};
use jsonc_parser::common::{Range, Ranged};
use risetime_kernel::units::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a `mem` or `iorun`.
const MAX_BYTES: i64 = 1 << 50;
/// Kinds of `memrun`, and the time in ns of one of its accesses: a load that waits for the one before it from memory, a byte
/// read, a byte written, each in a loop of its own. Estimates.
const MEMRUN: [(&str, u64); 3] = [("chase", 100), ("read", 1), ("write", 1)];
/// Devices that copy nothing of what is written to them (drivers/char/mem.c:write_null, write_zero).
const SINKS: [&str; 2] = ["/dev/null", "/dev/zero"];
/// rt-app's `mem_buffer_size` where the file says nothing.
const BUFFER: u64 = 4 << 20;

/// Names that all tasks of a file share.
#[derive(Default)]
pub(super) struct Shared {
    mutexes: Names,
    conds: Names,
    semaphores: Names,
    barriers: Names,
    /// Users of each barrier: the events that name it, once for each instance of their task.
    barrier_users: Vec<u32>,
    forks: Names,
    kinds: Names,
    /// Places where each kind is first named.
    pub(super) kinds_at: Vec<String>,
    /// Places where each task is first forked.
    forked_at: Vec<Range>,
    /// `mem_buffer_size`, in bytes.
    pub(super) buffer: Option<u64>,
    /// `pi_enabled`.
    pub(super) pi: bool,
    /// `io_device` is a device whose writes are copied.
    pub(super) copies: bool,
}

/// The names that the task that is being read has used so far.
#[derive(Default)]
pub(super) struct TaskNames {
    /// The task's own name, which `suspend` means where it says nothing.
    task: String,
    /// True if `suspend` waits under the task's own name, whatever it says.
    pub(super) own_suspend: bool,
    /// Names that a `suspend` says in vain.
    pub(super) passed_over: BTreeSet<String>,
    /// The task's timers by `ref`.
    timers: BTreeMap<String, u32>,
    /// Timers in absolute mode: one event that says so is enough.
    absolute: BTreeSet<u32>,
    held: BTreeSet<u32>,
    /// Number of the task's instances, each of which comes to its barriers.
    instances: u32,
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
                let work = self.work(prop, what)?;
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
            Kind::Runtime => Event::Runtime { time: self.us(prop, what)?, piece: PIECE },
            Kind::Sleep => Event::Sleep(self.us(prop, what)?),
            Kind::Timer => self.timer(prop, what, names)?,
            Kind::Mem => Event::Busy(writing(self.bytes(prop, what)?)),
            Kind::Memrun => Event::Busy(self.memrun(prop, what)?),
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
                    said if kind == Kind::Suspend && (said.is_empty() || names.own_suspend) => {
                        if said != names.task && !said.is_empty() {
                            names.passed_over.insert(said.to_string());
                        }
                        names.task.as_str()
                    }
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
                Event::Barrier(shared.barrier(self.string(prop, what)?, names.instances))
            }
            Kind::SemWait => Event::SemWait(shared.semaphores.number(self.string(prop, what)?)),
            Kind::SemPost => Event::SemPost(shared.semaphores.number(self.string(prop, what)?)),
        };
        events.push(event);
        Ok(())
    }

    /// The work of a `run`: -1 is work that never ends (rt-app counts its µs without a sign).
    fn work(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Span, InputError> {
        let us = self.whole(&prop.value, prop.name.as_str(), what, -1..=MAX_US, " µs")?;
        Ok(u64::try_from(us).map_or(FOR_EVER, Span::from_us))
    }

    /// The time that a `memrun` takes, at whatever frequency: an estimate, as that of `mem`.
    fn memrun(&self, prop: &ObjectProp<'a>, what: &str) -> Result<Span, InputError> {
        let what = format!("{what}: `{}`", one_line(prop.name.as_str()));
        let object = self.object(&prop.value, &what)?;
        self.once(object, &what, |_| true)?;
        let (mut kind, mut size, mut count) = (None, None, None);
        for p in &object.properties {
            let whole = || self.whole(&p.value, p.name.as_str(), &what, 0..=MAX_BYTES, "");
            match p.name.as_str() {
                "type" => {
                    let found = self.string(p, &what)?;
                    let known = MEMRUN.iter().find(|(name, _)| *name == found);
                    kind = Some(known.map(|(_, ns)| *ns).ok_or_else(|| {
                        let text = format!(
                            "{what}: `type` is \"{}\", wanted \"chase\", \"read\" or \"write\"",
                            one_line(found)
                        );
                        self.error(&p.value, text)
                    })?);
                }
                "size" => size = Some(whole()?),
                "count" => count = Some(whole()?),
                "stride" => drop(whole()?),
                "pattern" | "ref" => drop(self.string(p, &what)?),
                other => {
                    let known = ["count", "pattern", "ref", "size", "stride", "type"];
                    return Err(self.unknown(p, &format!("{what}: "), other, &known));
                }
            }
        }
        match (kind, size, count) {
            (Some(ns), Some(_), Some(count)) => Ok(bounded((count as u64).saturating_mul(ns))),
            (None, ..) => Err(self.error(object, format!("{what} has no `type`"))),
            (_, None, _) => Err(self.error(object, format!("{what} has no `size`"))),
            (_, _, None) => Err(self.error(object, format!("{what} has no `count`"))),
        }
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
            "io_device" => {
                shared.copies = !SINKS.contains(&self.string(prop, "`global`")?);
            }
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
            pi: shared.pi,
        };
        Ok((forked.collect(), objects))
    }
}

impl TaskNames {
    /// Names for the objects of the task with this name and so many instances.
    pub(super) fn of(task: &str, instances: usize) -> TaskNames {
        TaskNames { task: task.to_string(), instances: instances as u32, ..TaskNames::default() }
    }
}

impl Shared {
    pub(super) fn mutex_names(self) -> Vec<String> {
        self.mutexes.into_list()
    }

    fn barrier(&mut self, name: &str, users: u32) -> u32 {
        let barrier = self.barriers.number(name);
        self.barrier_users.resize(self.barrier_users.len().max(barrier as usize + 1), 0);
        self.barrier_users[barrier as usize] += users;
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
