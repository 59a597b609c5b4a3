//! Perfetto: a file that opens in ui.perfetto.dev.
//!
//! ```text
//!   event                          written as
//!   Switch                         ftrace sched_switch (sched_process_exit at an exit)
//!   Wakeup                         ftrace sched_waking, sched_wakeup
//!   TaskNew                        thread in the process tree; sched_waking, sched_wakeup_new
//!   Migrate                        ftrace sched_migrate_task; instant on the thread, with the reason
//!   Freq                           ftrace cpu_frequency for each CPU of the domain
//!   Idle                           ftrace cpu_idle
//!   PeltTask, UtilEst, WaitingAvg  counters of the thread
//!   PeltCfs, PeltPressure,
//!   CpuCapacity                    counters of the CPU
//!   FreqRequest                    counters and an instant of the domain's governor, with the reason
//!   Misfit, Overutilized           instants; overutilized also as a counter
//!   Phase                          instant on the thread
//!   Job                            once it is over, a slice under the thread that releases it: from release to done;
//!                                  number, due, lateness, what became of it
//!   Prio, Policy                   the priority in what is written from then on
//!   Clamps                         uclamp_min, uclamp_max: counters of the thread, where it has any
//!   CpuClamps, FreqLook            the same of the CPU
//!   Temperature                    a counter of the thermal zone
//!   Cooling                        a counter of the domain's governor, and an instant with the zone
//!   CpuFrequencyLimits             the same counter
//!   Capped                         an instant there: who caps, and at what
//!   Switch, Idle, Irq, Freq        power: a counter of the frequency domain, where the platform has its power
//! ```
//!
//! Task n is thread 1000 + n; the workload's threads belong to process 999, each of the
//! system's to itself. Idle is thread 0, `swapper/CPU`. The header stands as an instant at
//! the start of the track "risetime".
//!
//! Perfetto takes a thread's life from `sched_waking` and `sched_switch`, so a new task is
//! given a `sched_waking` that a kernel would not trace. Timestamps are ns since the run's
//! start, on Perfetto's default clock. A counter is written when its value changes, and of
//! several requests in a row that leave the frequency unchanged only the first is an instant.
//!
//! Priorities are the kernel's: -1 of deadline tasks, 0 to 98 of real-time ones, 120 + nice of fair ones (120 where a
//! trace, as an old recording, does not tell).
//!
//! Slices of a track must not overlap, jobs do: a stream of them has as many tracks of the same name as jobs overlap at
//! once, up to 16. Beyond that a slice begins where a track becomes free; its release is among its notes. Several jobs
//! in a row for which no work was done (*merged*, or never begun by the end) are one slice.
//!
//! Left out: `util_sum`, `period_contrib`, waker of a wakeup (mostly not in the trace), and the other events that tell
//! from what a kernel decided.

mod cpus;
mod field;
mod lanes;
mod message;
mod power;
mod sink;
mod tasks;
mod track;

use super::{Numbers, PROCESS};
use crate::jobs::{Chains, Fate, Over};
use crate::tracker::Tracker;
use crate::{Asked, Event, Header, Hears, PressureClass, SwitchOut, TraceSink, Why};
use field::*;
use lanes::Lanes;
use message::Message;
use power::Power;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, Instant, KHz, TaskId};
use risetime_model::workload::{JobMark, Policy};
use risetime_model::{Value, micros};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use track::{Counter, Track};

/// Events of a CPU are gathered into bundles of about this many bytes.
const BUNDLE: usize = 32 * 1024;
/// The priority of the idle task, and of a task of which nothing is known.
const PRIO: i64 = 120;
/// All packets are one sequence.
const SEQUENCE: u64 = 1;

/// A stream of jobs.
struct Jobs {
    name: String,
    /// Task that releases the jobs.
    task: TaskId,
    lanes: Lanes,
}

/// Writes a trace as it comes, in bounded memory. Errors are kept: the first one is reported
/// by [`finish`](Writer::finish), and nothing is written after it. The bytes so far are then
/// no complete trace; whoever gave the output removes it.
pub struct Writer<W: io::Write> {
    out: W,
    error: Option<io::Error>,
    numbers: Numbers,
    /// The packet that is being written.
    packet: Message,
    /// Events of each CPU that are not written yet.
    bundles: Vec<Message>,
    /// The CPUs of each domain, by its first CPU.
    domains: BTreeMap<u32, Vec<CpuId>>,
    state: Tracker,
    /// The idle task's name on each CPU.
    swappers: Vec<Arc<str>>,
    /// The tracks that have been described; of counters with their last value.
    tracks: BTreeMap<u64, Option<i64>>,
    /// A task that is new on that CPU: its wakeup is written once its priority is known.
    new: Option<(Instant, TaskId, CpuId)>,
    chains: Chains,
    jobs: Vec<Jobs>,
    power: Option<Power>,
    /// The names of the thermal zones.
    zones: Vec<Arc<str>>,
}

/// The idle task's name.
fn swapper(cpu: u32) -> Arc<str> {
    format!("swapper/{cpu}").into()
}

impl<W: io::Write> Writer<W> {
    /// A writer to `out`, which should be buffered.
    pub fn new(out: W) -> Writer<W> {
        Writer::of(out, Numbers::default())
    }

    /// A writer to `out` of a trace that has these numbers.
    pub fn of(out: W, numbers: Numbers) -> Writer<W> {
        Writer {
            out,
            error: None,
            numbers,
            packet: Message::default(),
            bundles: Vec::new(),
            domains: BTreeMap::new(),
            state: Tracker::default(),
            swappers: Vec::new(),
            tracks: BTreeMap::new(),
            new: None,
            chains: Chains::default(),
            jobs: Vec::new(),
            power: None,
            zones: Vec::new(),
        }
    }

    /// Writes what is left and flushes. Errors: the first one of the whole trace.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush_bundles();
        match self.error {
            Some(e) => Err(e),
            None => self.out.flush(),
        }
    }

    /// Writes one packet.
    fn packet(&mut self, at: Option<Instant>, fill: impl FnOnce(&mut Message)) {
        if self.error.is_some() {
            return;
        }
        let base = self.numbers.base;
        self.packet.0.clear();
        self.packet.nested(trace::PACKET, |m| {
            if let Some(at) = at {
                m.uint(packet::TIMESTAMP, base.saturating_add(at.0));
            }
            m.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            fill(m);
        });
        self.error = self.out.write_all(&self.packet.0).err();
    }

    /// Adds an event of `cpu`.
    fn ftrace(
        &mut self,
        at: Instant,
        cpu: CpuId,
        pid: i64,
        kind: u32,
        fill: impl FnOnce(&mut Message),
    ) {
        // A CPU that the platform does not have gets no lane.
        let index = cpu.index();
        let base = self.numbers.base;
        let Some(bundle) = self.bundles.get_mut(index) else {
            return;
        };
        bundle.nested(bundle::EVENT, |m| {
            m.uint(ftrace::TIMESTAMP, base.saturating_add(at.0))
                .int(ftrace::PID, pid)
                .nested(kind, fill);
        });
        if bundle.0.len() >= BUNDLE {
            self.flush_bundle(index);
        }
    }

    /// Writes a line that a program wrote into the trace, on the CPU of its task, if it is known.
    pub fn print(&mut self, at: Instant, task: Option<TaskId>, text: &str) {
        let cpu = task.and_then(|task| self.state.task(task)).map_or(CpuId(0), |t| t.cpu);
        let pid = task.map_or(0, |task| self.numbers.tid(task));
        self.ftrace(at, cpu, pid, ftrace::PRINT, |m| {
            m.string(print::BUF, text);
        });
    }

    fn flush_bundle(&mut self, cpu: usize) {
        let mut events = std::mem::take(&mut self.bundles[cpu]);
        if !events.0.is_empty() {
            self.packet(None, |m| {
                m.nested(packet::FTRACE_EVENTS, |m| {
                    m.uint(bundle::CPU, cpu as u64);
                    m.0.extend_from_slice(&events.0);
                });
            });
        }
        events.0.clear();
        self.bundles[cpu] = events;
    }

    fn flush_bundles(&mut self) {
        (0..self.bundles.len()).for_each(|cpu| self.flush_bundle(cpu));
    }

    /// Describes a track, once.
    fn describe(
        &mut self,
        uuid: u64,
        parent: Option<u64>,
        name: &str,
        fill: impl FnOnce(&mut Message),
    ) {
        if self.tracks.contains_key(&uuid) {
            return;
        }
        self.tracks.insert(uuid, None);
        self.packet(None, |m| {
            m.nested(packet::TRACK_DESCRIPTOR, |m| {
                m.uint(descriptor::UUID, uuid).string(descriptor::NAME, name);
                if let Some(parent) = parent {
                    m.uint(descriptor::PARENT_UUID, parent);
                }
                fill(m);
            });
        });
    }

    /// The track of a thread; its task may be one that was never announced.
    fn thread(&mut self, task: TaskId) -> u64 {
        let uuid = Track::Thread.of(task.0);
        if !self.tracks.contains_key(&uuid) {
            let (tid, tgid, comm) = (self.numbers.tid(task), self.tgid(task), self.comm(task));
            self.describe(uuid, None, &comm, |m| {
                m.nested(descriptor::THREAD, |m| {
                    m.int(descriptor::THREAD_PID, tgid)
                        .int(descriptor::THREAD_TID, tid)
                        .string(descriptor::THREAD_NAME, &comm);
                });
            });
        }
        uuid
    }

    fn cpu(&mut self, cpu: CpuId) -> u64 {
        let uuid = Track::Cpu.of(cpu.0);
        if !self.tracks.contains_key(&uuid) {
            self.describe(Track::Cpus.of(0), None, "CPU signals", |_| {});
            self.describe(uuid, Some(Track::Cpus.of(0)), &format!("CPU{}", cpu.0), |_| {});
        }
        uuid
    }

    fn governor(&mut self, cpu: CpuId) -> u64 {
        let uuid = Track::Governor.of(cpu.0);
        if !self.tracks.contains_key(&uuid) {
            let name = match self.domains.get(&cpu.0).and_then(|cpus| cpus.last()) {
                Some(last) if *last != cpu => format!("policy{} (CPU{}-{})", cpu.0, cpu.0, last.0),
                _ => format!("policy{}", cpu.0),
            };
            self.describe(Track::Governors.of(0), None, "Frequency requests", |_| {});
            self.describe(uuid, Some(Track::Governors.of(0)), &name, |_| {});
        }
        uuid
    }

    /// A track of the jobs that `task` releases.
    fn lane(&mut self, task: TaskId, name: &str, lane: u32) -> u64 {
        let uuid = Track::Jobs.nth(task.0, lane);
        if !self.tracks.contains_key(&uuid) {
            let thread = self.thread(task);
            self.describe(uuid, Some(thread), name, |_| {});
        }
        uuid
    }

    /// Writes a counter if its value is new. `parent` describes the track that it is under.
    fn counter(
        &mut self,
        at: Instant,
        kind: Track,
        index: u32,
        value: u64,
        parent: impl FnOnce(&mut Self) -> Option<u64>,
    ) {
        let uuid = kind.of(index);
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let known = self.tracks.get_mut(&uuid);
        if let Some(last) = known {
            if last.replace(value) == Some(value) {
                return;
            }
        } else {
            let parent = parent(self);
            let Counter { name, unit, .. } = kind.counter().unwrap_or_default();
            // In a list of all tracks the name must say whose counter it is.
            let name = match parent {
                Some(p) if p >> 32 == Track::Cpu as u64 => format!("CPU{index} {name}"),
                Some(p) if [Track::Governor.of(index), Track::Powers.of(0)].contains(&p) => {
                    format!("policy{index} {name}")
                }
                Some(p) if p == Track::Zones.of(0) => format!("{} {name}", self.zone(index)),
                Some(_) => format!("{} {name}", self.comm(TaskId(index))),
                None => name.to_owned(),
            };
            self.describe(uuid, parent, &name, |m| {
                m.nested(descriptor::COUNTER, |m| {
                    if !unit.is_empty() {
                        m.string(descriptor::COUNTER_UNIT_NAME, unit);
                    }
                });
            });
            self.tracks.insert(uuid, Some(value));
        }
        self.packet(Some(at), |m| {
            m.nested(packet::TRACK_EVENT, |m| {
                m.uint(track_event::TYPE, track_event::COUNTER).uint(track_event::TRACK_UUID, uuid);
                if kind.counter().is_some_and(|c| c.thousandths) {
                    m.double(track_event::DOUBLE_COUNTER_VALUE, value as f64 / 1e3);
                } else {
                    m.int(track_event::COUNTER_VALUE, value);
                }
            });
        });
    }

    /// Writes a moment on a track, with what is known about it.
    fn instant(
        &mut self,
        at: Instant,
        uuid: u64,
        category: &str,
        name: &str,
        notes: &[(&str, Note<'_>)],
    ) {
        self.track_event(track_event::INSTANT, at, uuid, category, name, notes);
    }

    fn track_event(
        &mut self,
        kind: u64,
        at: Instant,
        uuid: u64,
        category: &str,
        name: &str,
        notes: &[(&str, Note<'_>)],
    ) {
        self.packet(Some(at), |m| {
            m.nested(packet::TRACK_EVENT, |m| {
                m.uint(track_event::TYPE, kind)
                    .uint(track_event::TRACK_UUID, uuid)
                    .string(track_event::CATEGORIES, category)
                    .string(track_event::NAME, name);
                for (key, value) in notes {
                    m.nested(track_event::DEBUG_ANNOTATIONS, |m| {
                        m.string(annotation::NAME, key);
                        match value {
                            Note::Number(n) => m.uint(annotation::UINT_VALUE, *n),
                            Note::Millis(ns) => {
                                m.double(annotation::DOUBLE_VALUE, *ns as f64 / 1e6)
                            }
                            Note::Text(s) => m.string(annotation::STRING_VALUE, s),
                        };
                    });
                }
            });
        });
    }
}

/// A value shown beside an instant.
enum Note<'a> {
    Number(u64),
    /// A time in ns, shown in ms.
    Millis(i64),
    Text(&'a str),
}
