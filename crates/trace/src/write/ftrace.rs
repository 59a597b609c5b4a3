//! ftrace text: the file `trace` of tracefs, as the kernel prints it, which trace-cmd's readers, ui.perfetto.dev and systrace's viewers take.
//!
//! ```text
//!   event                      written as
//!   Switch                     sched_switch (sched_process_exit before it at an exit)
//!   Wakeup                     sched_waking, sched_wakeup
//!   TaskNew                    task_newtask, sched_wakeup_new
//!   Migrate                    sched_migrate_task
//!   Prio, Policy               the priority in what is written from then on
//!   Freq                       cpu_frequency for each CPU of the domain
//!   CpuFrequencyLimits         cpu_frequency_limits
//!   Idle                       cpu_idle
//!   Irq                        irq_handler_entry, irq_handler_exit: of interrupt 0, for the trace does not say which
//!   Temperature                thermal_temperature
//!   PeltTask                   sched_pelt_se with sum, period and last update
//!   PeltCfs, PeltPressure      sched_pelt_cfs, sched_pelt_rt, sched_pelt_dl, sched_pelt_irq, sched_pelt_hw, likewise
//!   UtilEst                    sched_util_est_se
//!   CpuCapacity, Overutilized  sched_cpu_capacity, sched_overutilized
//!   Clamps, CpuClamps          uclamp_util_se, uclamp_util_cfs
//!   Unseen                     CPU:n [LOST EVENTS]
//!   Phase                      tracing_mark_write: I|999|NAME
//!   Job                        tracing_mark_write: B|999|NAME and E|999, on the thread, from each beginning to where it is done
//! ```
//!
//! Times are in µs, rounded to the nearest as the kernel does; its flags (interrupts off, need-resched and so on) are nowhere in a
//! trace and stand as dots. Names of threads and numbers are those of the Perfetto writer: task n is thread 1000 + n of process
//! 999, one of the system its own. The waker of a wakeup is not told: the line is that of the CPU on which the task was queued.
//!
//! Left out: reasons, requests of governors, caps, and the other events that tell from what a kernel decided.
//! Source: kernel/trace/trace.c:`print_func_help_header_irq`, trace_output.c:`trace_print_context`, include/trace/events/.

use super::{Numbers, PROCESS};
use crate::tracker::Tracker;
use crate::{Event, Header, Hears, PressureClass, SwitchOut, TraceSink, Why};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_model::workload::{JobMark, JobSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;

/// The priority of the idle task.
const PRIO: i32 = 120;
/// `state` of `cpu_idle` when the CPU leaves idle.
const NOT_IDLE: u32 = u32::MAX;

/// Head of the file, as the kernel prints it where it records processes.
const HEAD: &str = "\
# tracer: nop
#
#                                        _-----=> irqs-off/BH-disabled
#                                       / _----=> need-resched
#                                      | / _---=> hardirq/softirq
#                                      || / _--=> preempt-depth
#                                      ||| / _-=> migrate-disable
#                                      |||| /     delay
#           TASK-PID       TGID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |           |        |   |||||     |         |
";

/// Writes a trace as it comes, in bounded memory. Errors are kept: the first one is reported by [`finish`](Writer::finish), and
/// nothing is written after it. The bytes so far are then no complete trace; whoever gave the output removes it.
pub struct Writer<W: io::Write> {
    out: W,
    error: Option<io::Error>,
    numbers: Numbers,
    line: String,
    state: Tracker,
    /// The CPUs of each domain, by its first CPU.
    domains: BTreeMap<u32, Vec<CpuId>>,
    zones: Vec<(String, u32)>,
    jobs: Vec<JobSpec>,
    /// Tasks whose job has begun and is not done.
    at_work: BTreeSet<u32>,
    /// A task that is new on that CPU: its wakeup is written once its priority is known.
    new: Option<(Instant, TaskId, CpuId)>,
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
            line: String::new(),
            state: Tracker::default(),
            domains: BTreeMap::new(),
            zones: Vec::new(),
            jobs: Vec::new(),
            at_work: BTreeSet::new(),
            new: None,
        }
    }

    /// Flushes. Errors: the first one of the whole trace.
    pub fn finish(mut self) -> io::Result<()> {
        match self.error {
            Some(e) => Err(e),
            None => self.out.flush(),
        }
    }

    /// Writes a line of `cpu`, whose task it was. No CPU that the platform lacks has lines.
    fn line(&mut self, at: Instant, cpu: CpuId, event: std::fmt::Arguments<'_>) {
        if self.state.has(cpu) {
            let current = self.state.cpu(cpu).current();
            self.line_of(at, cpu, current, event);
        }
    }

    /// Writes a line of this task.
    fn line_of(
        &mut self,
        at: Instant,
        cpu: CpuId,
        task: Option<TaskId>,
        event: std::fmt::Arguments<'_>,
    ) {
        if self.error.is_some() {
            return;
        }
        self.line.clear();
        let us = at.0.saturating_add(self.numbers.base).saturating_add(500) / 1000;
        let (comm, pid) = match task {
            Some(task) => (self.comm(task), self.numbers.tid(task)),
            None => ("<idle>".into(), 0),
        };
        let tgid = task.map(|task| self.tgid(task));
        // Writing to a string cannot fail.
        _ = match tgid {
            Some(tgid) => write!(self.line, "{comm:>16}-{pid:<7} ({tgid:>7}) "),
            None => write!(self.line, "{comm:>16}-{pid:<7} (-------) "),
        };
        let (s, us) = (us / 1_000_000, us % 1_000_000);
        _ = writeln!(self.line, "[{:03}] ..... {s:>5}.{us:06}: {event}", cpu.0);
        self.error = self.out.write_all(self.line.as_bytes()).err();
    }

    fn comm(&self, task: TaskId) -> String {
        self.state.task(task).map_or_else(|| format!("{task}"), |t| t.comm.as_str().to_owned())
    }
    fn prio(&self, task: TaskId) -> i32 {
        self.state.task(task).map_or(PRIO, |t| t.prio)
    }
    fn tgid(&self, task: TaskId) -> i64 {
        self.numbers.tgid(task, self.state.task(task).is_some_and(|t| t.user))
    }
    /// The CPU on which a task is, or was last.
    fn cpu_of(&self, task: TaskId) -> CpuId {
        self.state.task(task).map_or(CpuId(0), |t| t.cpu)
    }

    /// The new task that is waited for has all that it is created with.
    fn wakes_new(&mut self) {
        if let Some((at, task, cpu)) = self.new.take() {
            let (comm, pid) = (self.comm(task), self.numbers.tid(task));
            // CLONE_VM and so on of a thread of the workload; a thread of the kernel has others.
            let flags = if self.tgid(task) == PROCESS { 0x3d0f00 } else { 0x800700 };
            let what = format_args!(
                "task_newtask: pid={pid} comm={comm} clone_flags={flags:x} oom_score_adj=0"
            );
            self.line(at, cpu, what);
            self.wakeup(at, task, cpu, &["sched_wakeup_new"]);
        }
    }

    fn wakeup(&mut self, at: Instant, task: TaskId, cpu: CpuId, names: &[&str]) {
        let (comm, pid, prio, to) =
            (self.comm(task), self.numbers.tid(task), self.prio(task), cpu.0);
        for name in names {
            let what = format_args!("{name}: comm={comm} pid={pid} prio={prio} target_cpu={to:03}");
            self.line(at, cpu, what);
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
            Some(task) => (w.comm(task), w.numbers.tid(task), w.prio(task)),
            None => (format!("swapper/{}", cpu.0), 0, PRIO),
        };
        let (comm, pid, prio) = who(self, prev.map(|(task, _)| task));
        let (next_comm, next_pid, next_prio) = who(self, next);
        let state = match prev.map(|(_, how)| how) {
            None | Some(SwitchOut::Preempted) => "R",
            Some(SwitchOut::Sleeping) => "S",
            Some(SwitchOut::Exited) => "X",
        };
        let prev_task = prev.map(|(task, _)| task);
        if let Some((_, SwitchOut::Exited)) = prev {
            let what = format_args!("sched_process_exit: comm={comm} pid={pid} prio={prio}");
            self.line_of(at, cpu, prev_task, what);
        }
        let what = format_args!(
            "sched_switch: prev_comm={comm} prev_pid={pid} prev_prio={prio} prev_state={state} ==> \
             next_comm={next_comm} next_pid={next_pid} next_prio={next_prio}"
        );
        self.line_of(at, cpu, prev_task, what);
    }

    fn job(&mut self, at: Instant, task: TaskId, mark: JobMark) {
        let of = self.jobs.iter().find(|job| job.tasks.contains(&task.0));
        let Some(name) = of.map(|job| job.name.clone()) else { return };
        let cpu = self.cpu_of(task);
        match mark {
            JobMark::Begins { .. } if self.at_work.insert(task.0) => {
                let what = format_args!("tracing_mark_write: B|{PROCESS}|{name}");
                self.line_of(at, cpu, Some(task), what);
            }
            JobMark::Timer { .. } | JobMark::Waits | JobMark::Over { .. }
                if self.at_work.remove(&task.0) =>
            {
                let what = format_args!("tracing_mark_write: E|{PROCESS}");
                self.line_of(at, cpu, Some(task), what);
            }
            _ => {}
        }
    }

    /// Writes an event of who runs where.
    fn of_tasks(&mut self, at: Instant, event: &Event) {
        match *event {
            // A task that was there before has not been created here.
            Event::TaskNew { why: Why::Earlier, .. } => {}
            Event::TaskNew { task, cpu, .. } => self.new = Some((at, task, cpu)),
            Event::Wakeup { task, cpu, .. } => {
                self.wakeup(at, task, cpu, &["sched_waking", "sched_wakeup"]);
            }
            Event::Switch { cpu, prev, next } => self.switch(at, cpu, prev, next),
            Event::Migrate { task, from, to, .. } => {
                let (comm, pid, prio) = (self.comm(task), self.numbers.tid(task), self.prio(task));
                let (from, on) = (from.0, to.0);
                let what = format_args!(
                    "sched_migrate_task: comm={comm} pid={pid} prio={prio} orig_cpu={from} dest_cpu={on}"
                );
                self.line(at, to, what);
            }
            Event::Phase { task, name, .. } => {
                let what = format_args!("tracing_mark_write: I|{PROCESS}|{name}");
                self.line_of(at, self.cpu_of(task), Some(task), what);
            }
            Event::Job { task, mark } => self.job(at, task, mark),
            _ => self.of_cpus(at, event),
        }
    }

    /// Writes a line that a program wrote into the trace, on the CPU of its task, if it is known.
    pub fn print(&mut self, at: Instant, task: Option<TaskId>, text: &str) {
        let cpu = task.map_or(CpuId(0), |task| self.cpu_of(task));
        self.line_of(at, cpu, task, format_args!("tracing_mark_write: {}", text.trim_end()));
    }

    /// Writes that events of `cpu` are missing.
    fn lost(&mut self, cpu: CpuId) {
        if self.error.is_none() {
            self.error = writeln!(self.out, "CPU:{} [LOST EVENTS]", cpu.0).err();
        }
    }

    /// Writes an event of what CPUs do.
    fn of_cpus(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::Freq { cpu, freq } => {
                let cpus = self.domains.get(&cpu.0).cloned().unwrap_or_else(|| vec![cpu]);
                for of in cpus {
                    let what = format_args!("cpu_frequency: state={} cpu_id={}", freq.0, of.0);
                    self.line(at, cpu, what);
                }
            }
            Event::CpuFrequencyLimits { cpu, min, max } => {
                let (min, max) = (min.0, max.0);
                let what =
                    format_args!("cpu_frequency_limits: min={min} max={max} cpu_id={}", cpu.0);
                self.line(at, cpu, what);
            }
            Event::Idle { cpu, state } => {
                let state = state.unwrap_or(NOT_IDLE);
                self.line(at, cpu, format_args!("cpu_idle: state={state} cpu_id={}", cpu.0));
            }
            Event::Unseen { cpu } => self.lost(cpu),
            Event::Irq { cpu, enters: true } => {
                self.line(at, cpu, format_args!("irq_handler_entry: irq=0 name=unknown"));
            }
            Event::Irq { cpu, enters: false } => {
                self.line(at, cpu, format_args!("irq_handler_exit: irq=0 ret=handled"));
            }
            Event::Temperature { zone, millicelsius } => {
                let place = zone as usize;
                if self.zones.len() <= place && place < 1024 {
                    self.zones.resize_with(place + 1, Default::default);
                }
                let Some((name, last)) = self.zones.get_mut(place) else { return };
                if name.is_empty() {
                    *name = format!("zone{zone}");
                }
                let (name, prev) = (name.clone(), std::mem::replace(last, millicelsius));
                let what = format_args!(
                    "thermal_temperature: thermal_zone={name} id={zone} temp_prev={prev} temp={millicelsius}"
                );
                self.line(at, CpuId(0), what);
            }
            _ => self.signal(at, event),
        }
    }

    /// Writes an event that tells of a signal or of clamps; of others nothing.
    fn signal(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::PeltTask {
                task,
                cpu,
                util_avg,
                runnable_avg,
                util_sum,
                period_contrib,
                last_update_time: update,
            } => {
                let (comm, pid, of) = (self.comm(task), self.numbers.tid(task), cpu.0);
                let (util, runnable, update) = (util_avg.0, runnable_avg.0, update.0);
                let what = format_args!(
                    "sched_pelt_se: comm={comm} pid={pid} cpu={of} util_avg={util} runnable_avg={runnable} \
                     util_sum={util_sum} period_contrib={period_contrib} last_update_time={update}"
                );
                self.line(at, cpu, what);
            }
            Event::PeltCfs {
                cpu,
                util_avg,
                runnable_avg,
                util_est,
                util_sum,
                period_contrib,
                last_update_time: update,
            } => {
                let (of, util, runnable) = (cpu.0, util_avg.0, runnable_avg.0);
                let (est, update) = (util_est.0, update.0);
                let what = format_args!(
                    "sched_pelt_cfs: cpu={of} util_avg={util} runnable_avg={runnable} util_est={est} \
                     util_sum={util_sum} period_contrib={period_contrib} last_update_time={update}"
                );
                self.line(at, cpu, what);
            }
            Event::PeltPressure {
                cpu,
                class,
                util_avg,
                util_sum,
                period_contrib,
                last_update_time: update,
            } => {
                let (of, util, update) = (cpu.0, util_avg.0, update.0);
                let name = match class {
                    PressureClass::Rt => "rt",
                    PressureClass::Dl => "dl",
                    PressureClass::Irq => "irq",
                    PressureClass::Hw => "hw",
                };
                let what = format_args!(
                    "sched_pelt_{name}: cpu={of} util_avg={util} util_sum={util_sum} \
                     period_contrib={period_contrib} last_update_time={update}"
                );
                self.line(at, cpu, what);
            }
            Event::UtilEst { task, util_est } => {
                let (comm, pid, est) = (self.comm(task), self.numbers.tid(task), util_est.0);
                let cpu = self.cpu_of(task);
                let what = format_args!(
                    "sched_util_est_se: comm={comm} pid={pid} cpu={} util_est={est}",
                    cpu.0
                );
                self.line(at, cpu, what);
            }
            _ => self.limit(at, event),
        }
    }

    /// Writes an event of capacity or clamps; of others nothing.
    fn limit(&mut self, at: Instant, event: &Event) {
        match *event {
            Event::CpuCapacity { cpu, capacity } => {
                let what =
                    format_args!("sched_cpu_capacity: cpu={} capacity={}", cpu.0, capacity.0);
                self.line(at, cpu, what);
            }
            Event::Overutilized { on } => {
                let what = format_args!("sched_overutilized: overutilized={}", u8::from(on));
                self.line(at, CpuId(0), what);
            }
            Event::Clamps { task, clamps: Uclamp { min, max } } => {
                let (comm, pid) = (self.comm(task), self.numbers.tid(task));
                let what = format_args!(
                    "uclamp_util_se: comm={comm} pid={pid} uclamp_min={} uclamp_max={}",
                    min.0, max.0
                );
                self.line(at, self.cpu_of(task), what);
            }
            Event::CpuClamps { cpu, clamps: Uclamp { min, max } } => {
                let what = format_args!(
                    "uclamp_util_cfs: cpu={} uclamp_min={} uclamp_max={}",
                    cpu.0, min.0, max.0
                );
                self.line(at, cpu, what);
            }
            _ => {}
        }
    }
}

impl<W: io::Write> TraceSink for Writer<W> {
    fn header(&mut self, header: &Header) {
        let platform = &header.machine.platform;
        self.domains = platform.domains.iter().map(|d| (d.cpus[0].0, d.cpus.clone())).collect();
        self.state = Tracker::of(header);
        self.zones = platform.thermal.iter().map(|z| (z.name.clone(), 0)).collect();
        self.jobs = header.asked.as_ref().map(|asked| asked.jobs.clone()).unwrap_or_default();
        self.error = self.out.write_all(HEAD.as_bytes()).err();
    }

    fn event(&mut self, at: Instant, event: &Event) {
        // What may stand between a task and its priority.
        if !matches!(event, Event::Prio { .. } | Event::Policy { .. } | Event::Entity { .. }) {
            self.wakes_new();
        }
        // A task is known by its name from its creation on; everything else is written by the state before it.
        let created = matches!(event, Event::TaskNew { .. });
        if created {
            self.state.event(at, event);
        }
        self.of_tasks(at, event);
        if !created {
            self.state.event(at, event);
        }
    }

    fn end(&mut self, _: Instant) {
        self.wakes_new();
    }

    fn listens(&self) -> Hears {
        Hears::Attributes
    }
}
