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

mod field;
mod lanes;
mod message;
mod power;
mod track;

use crate::jobs::{Chains, Fate, Over};
use crate::{Event, Header, Hears, PressureClass, SwitchOut, TraceSink, Why};
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
/// The process of the workload's threads.
const PROCESS: i64 = 999;
/// The priority of a fair task of nice 0.
const PRIO: i64 = 120;
/// All packets are one sequence.
const SEQUENCE: u64 = 1;

/// A task as far as it is known.
struct Task {
    comm: Arc<str>,
    user: bool,
    prio: i64,
    /// Priority in the fair class that `prio` is.
    fair: i64,
}

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
    /// The packet that is being written.
    packet: Message,
    /// Events of each CPU that are not written yet.
    bundles: Vec<Message>,
    /// The CPUs of each domain, by its first CPU.
    domains: BTreeMap<u32, Vec<CpuId>>,
    tasks: BTreeMap<u32, Task>,
    /// The idle task's name on each CPU.
    swappers: Vec<Arc<str>>,
    /// The last request of each domain.
    requests: BTreeMap<u32, (KHz, Why)>,
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
        Writer {
            out,
            error: None,
            packet: Message::default(),
            bundles: Vec::new(),
            domains: BTreeMap::new(),
            tasks: BTreeMap::new(),
            swappers: Vec::new(),
            requests: BTreeMap::new(),
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
        self.packet.0.clear();
        self.packet.nested(trace::PACKET, |m| {
            if let Some(at) = at {
                m.uint(packet::TIMESTAMP, at.0);
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
        let Some(bundle) = self.bundles.get_mut(index) else {
            return;
        };
        bundle.nested(bundle::EVENT, |m| {
            m.uint(ftrace::TIMESTAMP, at.0).int(ftrace::PID, pid).nested(kind, fill);
        });
        if bundle.0.len() >= BUNDLE {
            self.flush_bundle(index);
        }
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
            let (tid, tgid, comm) = (tid(task), self.tgid(task), self.comm(task));
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

    fn comm(&self, task: TaskId) -> Arc<str> {
        self.tasks.get(&task.0).map_or_else(|| format!("{task}").into(), |t| t.comm.clone())
    }
    fn prio(&self, task: TaskId) -> i64 {
        self.tasks.get(&task.0).map_or(PRIO, |t| t.prio)
    }
    fn tgid(&self, task: TaskId) -> i64 {
        match self.tasks.get(&task.0) {
            Some(Task { user: true, .. }) => PROCESS,
            _ => tid(task),
        }
    }

    fn task_new(
        &mut self,
        at: Instant,
        task: TaskId,
        comm: &str,
        user: bool,
        cpu: CpuId,
        why: Why,
    ) {
        self.tasks.insert(task.0, Task { comm: comm.into(), user, prio: PRIO, fair: PRIO });
        let (tid, tgid) = (tid(task), self.tgid(task));
        self.packet(Some(at), |m| {
            m.nested(packet::PROCESS_TREE, |m| {
                if !user {
                    m.nested(process_tree::PROCESSES, |m| {
                        m.int(process_tree::PROCESS_PID, tid)
                            .int(process_tree::PROCESS_PPID, 2)
                            .string(process_tree::PROCESS_CMDLINE, comm)
                            .uint(process_tree::PROCESS_IS_KTHREAD, 1);
                    });
                }
                m.nested(process_tree::THREADS, |m| {
                    m.int(process_tree::THREAD_TID, tid)
                        .string(process_tree::THREAD_NAME, comm)
                        .int(process_tree::THREAD_TGID, tgid);
                });
            });
        });
        self.new = Some((at, task, cpu));
        let thread = self.thread(task);
        let notes = [("cpu", Note::Number(cpu.0.into())), ("why", Note::Text(why.as_str()))];
        self.instant(at, thread, "placement", &format!("created on {cpu}: {why}"), &notes);
    }

    fn policy(&mut self, at: Instant, task: TaskId, policy: Policy) {
        if let Some(t) = self.tasks.get_mut(&task.0) {
            t.prio = match policy {
                Policy::Deadline { .. } => -1,
                Policy::Fifo { priority } | Policy::Rr { priority } => 99 - i64::from(priority),
                Policy::Overcommit { .. } | Policy::High { .. } => 99,
                _ => t.fair,
            };
        }
        let thread = self.thread(task);
        self.instant(at, thread, "policy", &policy.to_string(), &[]);
    }

    fn set_prio(&mut self, task: TaskId, prio: i64) {
        if let Some(t) = self.tasks.get_mut(&task.0) {
            t.prio = prio;
            // The real-time ones are below.
            t.fair = if prio >= 100 { prio } else { t.fair };
        }
    }

    /// The new task that is waited for has all that it is created with.
    fn wakes_new(&mut self) {
        if let Some((at, task, cpu)) = self.new.take() {
            self.wakeup(at, task, cpu, [ftrace::SCHED_WAKING, ftrace::SCHED_WAKEUP_NEW]);
        }
    }

    /// Writes both clamps, once there are any.
    fn clamps(
        &mut self,
        at: Instant,
        kinds: [Track; 2],
        index: u32,
        clamps: Uclamp,
        parent: impl FnOnce(&mut Self) -> u64,
    ) {
        if clamps == Uclamp::default() && !self.tracks.contains_key(&kinds[0].of(index)) {
            return;
        }
        let parent = parent(self);
        self.counter(at, kinds[0], index, clamps.min.0, |_| Some(parent));
        self.counter(at, kinds[1], index, clamps.max.0, |_| Some(parent));
    }

    fn cpu_clamps(&mut self, at: Instant, cpu: CpuId, clamps: Uclamp) {
        let kinds = [Track::CpuClampMin, Track::CpuClampMax];
        self.clamps(at, kinds, cpu.0, clamps, |w| w.cpu(cpu));
    }

    /// Writes the power that has changed before `at`.
    fn power(&mut self, at: Instant) {
        let past = self.power.as_mut().filter(|power| power.is_past(at));
        let Some((at, changed)) = past.map(Power::take) else { return };
        for (cpu, uw) in changed {
            self.counter(at, Track::Power, cpu.0, uw, |w| {
                w.describe(Track::Powers.of(0), None, "Power", |_| {});
                Some(Track::Powers.of(0))
            });
        }
    }

    fn job(&mut self, at: Instant, task: TaskId, mark: JobMark) {
        let mut chains = std::mem::take(&mut self.chains);
        chains.mark(task, at, mark, &mut |over| self.slice(over));
        self.chains = chains;
    }

    /// Writes a job that is over.
    fn slice(&mut self, over: &Over) {
        let Over { job, at, .. } = *over;
        let jobs = &mut self.jobs[over.stream];
        let (task, name) = (jobs.task, jobs.name.clone());
        let (lane, start) = jobs.lanes.lay(job.release, at);
        let track = self.lane(task, &name, lane);
        let outcome = match over.fate {
            Fate::Done if job.due.is_some_and(|due| at > due) => "late",
            Fate::Done => "done",
            Fate::Merged => "merged",
            Fate::Dropped => "dropped",
            Fate::Unfinished if over.due_by_then() > 0 => "overdue",
            Fate::Unfinished => "unfinished",
        };
        let mut notes = vec![
            ("outcome", Note::Text(outcome)),
            ("job", Note::Number(job.number)),
            ("released_ms", Note::Millis(job.release.0 as i64)),
        ];
        let title = if over.n > 1 {
            notes.push(("jobs", Note::Number(over.n)));
            format!("{name} {}…{}", job.number, job.number + over.n - 1)
        } else {
            format!("{name} {}", job.number)
        };
        if let Some(due) = job.due {
            notes.push(("due_ms", Note::Millis(due.0 as i64)));
            if over.fate == Fate::Done {
                notes.push(("lateness_ms", Note::Millis(at.0 as i64 - due.0 as i64)));
            }
        }
        self.track_event(track_event::SLICE_BEGIN, start, track, "job", &title, &notes);
        self.packet(Some(at), |m| {
            m.nested(packet::TRACK_EVENT, |m| {
                m.uint(track_event::TYPE, track_event::SLICE_END)
                    .uint(track_event::TRACK_UUID, track);
            });
        });
    }

    fn wakeup(&mut self, at: Instant, task: TaskId, cpu: CpuId, kinds: [u32; 2]) {
        let (comm, prio) = (self.comm(task), self.prio(task));
        for kind in kinds {
            self.ftrace(at, cpu, 0, kind, |m| {
                m.string(sched_wakeup::COMM, &comm)
                    .int(sched_wakeup::PID, tid(task))
                    .int(sched_wakeup::PRIO, prio)
                    .int(sched_wakeup::SUCCESS, 1)
                    .int(sched_wakeup::TARGET_CPU, cpu.0.into());
            });
        }
    }

    fn switch(
        &mut self,
        at: Instant,
        cpu: CpuId,
        prev: Option<(TaskId, SwitchOut)>,
        next: Option<TaskId>,
    ) {
        let who = |w: &Self, task: Option<TaskId>| match task {
            Some(t) => (tid(t), w.comm(t)),
            None => {
                let known = w.swappers.get(cpu.index()).cloned();
                (0, known.unwrap_or_else(|| swapper(cpu.0)))
            }
        };
        let (prev_pid, prev_comm) = who(self, prev.map(|p| p.0));
        let (next_pid, next_comm) = who(self, next);
        let prio = |w: &Self, task: Option<TaskId>| task.map_or(PRIO, |t| w.prio(t));
        let (prev_prio, next_prio) = (prio(self, prev.map(|p| p.0)), prio(self, next));
        // The kernel's state bits: R, S, X.
        let state = match prev.map(|p| p.1) {
            None | Some(SwitchOut::Preempted) => 0,
            Some(SwitchOut::Sleeping) => 1,
            Some(SwitchOut::Exited) => 16,
        };
        if let Some((task, SwitchOut::Exited)) = prev {
            let tgid = self.tgid(task);
            self.ftrace(at, cpu, prev_pid, ftrace::SCHED_PROCESS_EXIT, |m| {
                m.string(sched_process_exit::COMM, &prev_comm)
                    .int(sched_process_exit::PID, prev_pid)
                    .int(sched_process_exit::TGID, tgid)
                    .int(sched_process_exit::PRIO, prev_prio);
            });
        }
        self.ftrace(at, cpu, prev_pid, ftrace::SCHED_SWITCH, |m| {
            m.string(sched_switch::PREV_COMM, &prev_comm)
                .int(sched_switch::PREV_PID, prev_pid)
                .int(sched_switch::PREV_PRIO, prev_prio)
                .int(sched_switch::PREV_STATE, state)
                .string(sched_switch::NEXT_COMM, &next_comm)
                .int(sched_switch::NEXT_PID, next_pid)
                .int(sched_switch::NEXT_PRIO, next_prio);
        });
    }

    fn migrate(&mut self, at: Instant, task: TaskId, from: CpuId, to: CpuId, why: Why) {
        let (comm, prio) = (self.comm(task), self.prio(task));
        self.ftrace(at, to, 0, ftrace::SCHED_MIGRATE_TASK, |m| {
            m.string(sched_wakeup::COMM, &comm)
                .int(sched_wakeup::PID, tid(task))
                .int(sched_wakeup::PRIO, prio)
                .int(sched_migrate_task::ORIG_CPU, from.0.into())
                .int(sched_migrate_task::DEST_CPU, to.0.into());
        });
        let thread = self.thread(task);
        let notes = [
            ("from", Note::Number(from.0.into())),
            ("to", Note::Number(to.0.into())),
            ("why", Note::Text(why.as_str())),
        ];
        self.instant(at, thread, "placement", &format!("{from} → {to}: {why}"), &notes);
    }

    fn freq(&mut self, at: Instant, cpu: CpuId, freq: KHz) {
        let cpus = self.domains.get(&cpu.0).cloned().unwrap_or_else(|| vec![cpu]);
        for cpu in cpus {
            self.ftrace(at, cpu, 0, ftrace::CPU_FREQUENCY, |m| {
                m.uint(cpu_power::STATE, freq.0).uint(cpu_power::CPU_ID, cpu.0.into());
            });
        }
    }

    fn request(&mut self, at: Instant, cpu: CpuId, util: u64, freq: KHz, why: Why) {
        let track = self.governor(cpu);
        let again = self.requests.insert(cpu.0, (freq, why)) == Some((freq, Why::Unchanged));
        self.counter(at, Track::RequestFreq, cpu.0, freq.0, |_| Some(track));
        self.counter(at, Track::RequestUtil, cpu.0, util, |_| Some(track));
        if again && why == Why::Unchanged {
            return;
        }
        let notes = [
            ("util", Note::Number(util)),
            ("freq_khz", Note::Number(freq.0)),
            ("why", Note::Text(why.as_str())),
        ];
        self.instant(at, track, "frequency", why.as_str(), &notes);
    }

    fn cooling(&mut self, at: Instant, cpu: CpuId, max: KHz, zone: u32) {
        let track = self.governor(cpu);
        let name = self.zone(zone);
        self.counter(at, Track::MaxFreq, cpu.0, max.0, |_| Some(track));
        let notes = [("max_khz", Note::Number(max.0)), ("zone", Note::Text(&name))];
        let what = format!("cooling of {name}: at most {} kHz", max.0);
        self.instant(at, track, "thermal", &what, &notes);
    }

    /// The name of a thermal zone.
    fn zone(&self, zone: u32) -> Arc<str> {
        let known = self.zones.get(zone as usize).cloned();
        known.unwrap_or_else(|| format!("zone {zone}").into())
    }

    fn misfit(&mut self, at: Instant, cpu: CpuId, task: Option<TaskId>) {
        let track = self.cpu(cpu);
        match task {
            Some(task) => {
                let comm = self.comm(task);
                let notes = [("task", Note::Text(&comm)), ("tid", Note::Number(tid(task) as u64))];
                self.instant(at, track, "misfit", &format!("misfit: {comm}"), &notes);
            }
            None => self.instant(at, track, "misfit", "misfit cleared", &[]),
        }
    }

    fn about(&mut self, header: &Header) {
        let mut notes = vec![
            ("backend".to_owned(), header.backend.to_owned()),
            ("platform".to_owned(), header.platform.name.clone()),
            ("workload".to_owned(), header.workload.clone()),
            ("policy".to_owned(), header.policy.clone()),
            ("kernel".to_owned(), header.kernel_release.clone()),
            ("clock".to_owned(), header.clock.to_owned()),
            ("seed".to_owned(), header.seed.to_string()),
            ("phase_us".to_owned(), micros(header.phase)),
        ];
        for (name, value) in &header.settings.0 {
            let value = match value {
                Value::Int(n) => n.to_string(),
                Value::Name(s) => s.clone(),
            };
            notes.push((format!("set.{name}"), value));
        }
        for signal in &header.signals {
            notes.push((
                format!("signal.{}", signal.name),
                format!("{:?}", signal.origin).to_lowercase(),
            ));
        }
        notes.extend(header.lost.iter().enumerate().map(|(i, l)| (format!("lost.{i}"), l.clone())));
        let notes: Vec<_> = notes.iter().map(|(k, v)| (k.as_str(), Note::Text(v))).collect();
        self.describe(Track::Run.of(0), None, "risetime", |_| {});
        let name = format!("{} on {}, {}", header.workload, header.platform.name, header.policy);
        self.instant(Instant(0), Track::Run.of(0), "run", &name, &notes);
    }
}

impl<W: io::Write> TraceSink for Writer<W> {
    fn header(&mut self, header: &Header) {
        let platform = &header.platform;
        self.bundles.resize_with(platform.nr_cpus(), Message::default);
        self.swappers = (0..platform.nr_cpus() as u32).map(swapper).collect();
        self.domains = platform.domains.iter().map(|d| (d.cpus[0].0, d.cpus.clone())).collect();
        self.power = Some(Power::new(Arc::clone(platform)));
        self.zones = platform.thermal.iter().map(|z| z.name.as_str().into()).collect();
        self.chains = Chains::new(&header.jobs);
        let jobs = header.jobs.iter().map(|spec| Jobs {
            name: spec.name.clone(),
            task: TaskId(spec.tasks.first().copied().unwrap_or_default()),
            lanes: Lanes::default(),
        });
        self.jobs = jobs.collect();
        self.packet(Some(Instant(0)), |m| {
            m.uint(packet::SEQUENCE_FLAGS, packet::SEQ_INCREMENTAL_STATE_CLEARED)
                .uint(packet::FIRST_PACKET_ON_SEQUENCE, 1)
                .nested(packet::SYSTEM_INFO, |m| {
                    m.nested(system_info::UTSNAME, |m| {
                        m.string(system_info::UTSNAME_SYSNAME, "Linux")
                            .string(system_info::UTSNAME_RELEASE, &header.kernel_release);
                    });
                    m.int(system_info::HZ, platform.hz.into());
                });
        });
        self.packet(Some(Instant(0)), |m| {
            m.nested(packet::PROCESS_TREE, |m| {
                m.nested(process_tree::PROCESSES, |m| {
                    m.int(process_tree::PROCESS_PID, PROCESS)
                        .int(process_tree::PROCESS_PPID, 1)
                        .string(process_tree::PROCESS_CMDLINE, &header.workload);
                });
            });
        });
        self.about(header);
    }

    fn event(&mut self, at: Instant, event: &Event) {
        self.power(at);
        if let Some(power) = &mut self.power {
            power.event(at, event);
        }
        // What may stand between a task and its priority.
        if !matches!(event, Event::Prio { .. } | Event::Policy { .. } | Event::Entity { .. }) {
            self.wakes_new();
        }
        match *event {
            Event::TaskNew { task, comm, user, cpu, why, .. } => {
                self.task_new(at, task, &comm, user, cpu, why);
            }
            Event::MaxSpeed { task, max_speed } => {
                let thread = self.thread(task);
                let notes = [("max_speed", Note::Number(max_speed.0))];
                self.instant(
                    at,
                    thread,
                    "placement",
                    &format!("at most {max_speed} of 1024"),
                    &notes,
                );
            }
            Event::Policy { task, policy } => self.policy(at, task, policy),
            Event::Wakeup { task, cpu, .. } => {
                self.wakeup(at, task, cpu, [ftrace::SCHED_WAKING, ftrace::SCHED_WAKEUP]);
            }
            Event::Switch { cpu, prev, next } => self.switch(at, cpu, prev, next),
            Event::Migrate { task, from, to, why } => self.migrate(at, task, from, to, why),
            Event::Phase { task, index, name } => {
                let thread = self.thread(task);
                let notes = [("phase", Note::Number(index.into()))];
                self.instant(at, thread, "phase", &name, &notes);
            }
            Event::Freq { cpu, freq } => self.freq(at, cpu, freq),
            Event::FreqRequest { cpu, util, freq, why } => self.request(at, cpu, util.0, freq, why),
            Event::Idle { cpu, state } => {
                self.ftrace(at, cpu, 0, ftrace::CPU_IDLE, |m| {
                    m.uint(cpu_power::STATE, state.map_or(cpu_power::NOT_IDLE, u64::from))
                        .uint(cpu_power::CPU_ID, cpu.0.into());
                });
            }
            Event::PeltTask { task, util_avg, runnable_avg, .. } => {
                let thread = |w: &mut Self| Some(w.thread(task));
                self.counter(at, Track::TaskUtil, task.0, util_avg.0, thread);
                self.counter(at, Track::TaskRunnable, task.0, runnable_avg.0, thread);
            }
            Event::UtilEst { task, util_est } => {
                self.counter(at, Track::TaskUtilEst, task.0, util_est.0, |w| Some(w.thread(task)));
            }
            Event::WaitingAvg { task, waiting_avg } => {
                let thread = |w: &mut Self| Some(w.thread(task));
                self.counter(at, Track::TaskWaiting, task.0, waiting_avg.0, thread);
            }
            Event::PeltCfs { cpu, util_avg, runnable_avg, util_est, .. } => {
                let track = |w: &mut Self| Some(w.cpu(cpu));
                self.counter(at, Track::CfsUtil, cpu.0, util_avg.0, track);
                self.counter(at, Track::CfsRunnable, cpu.0, runnable_avg.0, track);
                self.counter(at, Track::CfsUtilEst, cpu.0, util_est.0, track);
            }
            Event::PeltPressure { cpu, class, util_avg, .. } => {
                let kind = match class {
                    PressureClass::Rt => Track::RtUtil,
                    PressureClass::Dl => Track::DlUtil,
                    PressureClass::Irq => Track::IrqUtil,
                    PressureClass::Hw => Track::OtherUtil,
                };
                self.counter(at, kind, cpu.0, util_avg.0, |w| Some(w.cpu(cpu)));
            }
            Event::CpuCapacity { cpu, capacity } => {
                self.counter(at, Track::Capacity, cpu.0, capacity.0, |w| Some(w.cpu(cpu)));
            }
            Event::Overutilized { on } => {
                self.counter(at, Track::Overutilized, 0, on.into(), |_| None);
                let name = if on { "overutilized" } else { "no longer overutilized" };
                self.instant(at, Track::Run.of(0), "overutilized", name, &[]);
            }
            Event::Hotplug { cpu, online } => {
                let name = format!("CPU {} {}", cpu.0, if online { "online" } else { "offline" });
                self.instant(at, Track::Run.of(0), "hotplug", &name, &[]);
            }
            Event::Misfit { cpu, task } => self.misfit(at, cpu, task),
            Event::Temperature { zone, millicelsius } => {
                self.counter(at, Track::Temperature, zone, millicelsius.into(), |w| {
                    w.describe(Track::Zones.of(0), None, "Thermal zones", |_| {});
                    Some(Track::Zones.of(0))
                });
            }
            Event::Cooling { cpu, max, zone } => self.cooling(at, cpu, max, zone),
            Event::CpuFrequencyLimits { cpu, max, .. } => {
                let track = self.governor(cpu);
                self.counter(at, Track::MaxFreq, cpu.0, max.0, |_| Some(track));
            }
            Event::Capped { cpu, by, max } => {
                let track = self.governor(cpu);
                let who = format!("{by:?}").to_lowercase();
                let name = match max {
                    Some(max) => format!("{who}: at most {max}"),
                    None => format!("{who}: no cap"),
                };
                self.instant(at, track, "cap", &name, &[]);
            }
            Event::Job { task, mark } => self.job(at, task, mark),
            Event::Prio { task, prio } => self.set_prio(task, prio.into()),
            Event::Clamps { task, clamps } => {
                let kinds = [Track::TaskClampMin, Track::TaskClampMax];
                self.clamps(at, kinds, task.0, clamps, |w| w.thread(task));
            }
            Event::CpuClamps { cpu, clamps } => self.cpu_clamps(at, cpu, clamps),
            Event::FreqLook { cpu, look } => {
                if let Some([min, max]) = look.uclamp {
                    self.cpu_clamps(at, cpu, Uclamp { min, max });
                }
            }
            Event::Throttled { task, on } => {
                let thread = self.thread(task);
                let name = if on { "runtime used up" } else { "runtime replenished" };
                self.instant(at, thread, "deadline", name, &[]);
            }
            // Only an explanation asks for the rest, or it is what a decision was made from, for who makes it again; a kind of
            // work shows in the power.
            _ => {}
        }
    }

    fn end(&mut self, at: Instant) {
        self.wakes_new();
        self.power(Instant(u64::MAX));
        let mut chains = std::mem::take(&mut self.chains);
        chains.cut_off(at, &mut |over| self.slice(over));
        self.flush_bundles();
    }

    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}

/// A value shown beside an instant.
enum Note<'a> {
    Number(u64),
    /// A time in ns, shown in ms.
    Millis(i64),
    Text(&'a str),
}

/// The thread id of a task; what does not fit a thread id is the largest one.
fn tid(task: TaskId) -> i64 {
    (i64::from(task.0) + 1000).min(i32::MAX.into())
}
