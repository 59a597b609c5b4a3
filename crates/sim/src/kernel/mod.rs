//! The kernel: what every one does, and policies, one file and one registry line each. What a machine may have or lack: [`crate::mech`].
//!
//! ```text
//! core    creation, wakeup, switch     tick        class/    which class runs: stop, deadline, rt, fair
//! fair    fair class, PELT ── hierarchy, bandwidth, cfs, util_est
//! cpufreq governor ─> frequency                   placement/, balance/   on which CPU
//! idle    idle state, stopped tick                clockevents when a CPU's timer interrupts
//! ```
//!
//! Who changes one thing has a handle on it, behind which the rest of the machine can only be read:
//!
//! ```text
//! rq        a runqueue, locked       what happens on one CPU
//! policy    a frequency domain       from a governor's decision to the hardware
//! syscalls  the running task         what user space can ask for
//! Kernel    all of it                who looks at several CPUs, or moves tasks between them
//! ```
//!
//! User space calls it ([`crate::user`]); it never calls user space: [`Rq::schedule`] says who goes on, and
//! whoever drives the simulation lets that task go on.

pub(crate) mod balance;
pub(crate) mod bandwidth;
pub(crate) mod cfs;
pub(crate) mod class;
pub(crate) mod clock;
pub(crate) mod clockevents;
pub(crate) mod core;
pub(crate) mod cpufreq;
pub mod cpuidle;
pub(crate) mod fair;
pub(crate) mod fork;
pub mod governor;
pub(crate) mod hierarchy;
pub(crate) mod hotplug;
pub(crate) mod idle;
pub(crate) mod init;
pub(crate) mod interrupt;
pub(crate) mod migrate;
pub mod placement;
pub(crate) mod policy;
pub(crate) mod pre_6_8;
pub(crate) mod rq;
pub(crate) mod syscalls;
pub(crate) mod tick;
pub(crate) mod topology;
pub mod tracker;
pub(crate) mod tunables;
pub(crate) mod util_est;
mod wake_list;

use crate::kernel::governor::Governor;
use crate::kernel::placement::Placement;
use crate::kernel::rq::Parts;
use crate::kernel::rq::Rq;
use crate::mech::thermal::state::Thermal;
use crate::state::effects::Effects;
use crate::state::machine::{Machine, State, Task};
use crate::time::queue::{Ev, Queue};
use crate::time::work;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId, Util};
use risetime_model::InputError;
use risetime_trace::{Event, Hears, TraceSink};

/// The machine with what the kernel decides by, and what it tells.
pub(crate) struct Kernel<'a> {
    pub(crate) m: Machine,
    pub(crate) q: Queue,
    pub(crate) governors: Vec<Box<dyn Governor>>,
    pub(crate) placement: Box<dyn Placement>,
    /// Wishes of a policy that is asked just now.
    pub(crate) effects: Effects,
    /// Driver of the start, and perhaps of more.
    pub(crate) driver: Option<Box<dyn Driver>>,
    pub(crate) sink: &'a mut dyn TraceSink,
    /// Events that a sink wants.
    pub(crate) listens: Hears,
    pub(crate) events: u64,
    /// CPU time that a frequency change costs the sugov kthread, at full speed.
    pub(crate) sugov_work: Span,
    /// Costs that another trace gives instead.
    pub(crate) kthread: Option<Kthread>,
    /// CPU on which the workload's first task is created, if that was said.
    pub(crate) first_cpu: Option<CpuId>,
    pub(crate) created_any: bool,
    /// Running number behind [`Task::listed`](crate::state::machine::Task::listed).
    pub(crate) listed: u64,
    /// CPU on which the first task was created; the others are its siblings.
    pub(crate) parent_cpu: CpuId,
    /// `uclamp_min` and `uclamp_max` that hold for every task, whatever the workload says.
    pub(crate) forced_clamps: (Option<Util>, Option<Util>),
    /// A reservation that the machine cannot give.
    pub(crate) refused: Option<InputError>,
}

/// Cost of a frequency change for the sugov kthread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kthread {
    /// Time from when the governor wants a change until the kthread wakes.
    pub wakes: Span,
    /// Time from when the governor wants a change until the kthread has the CPU.
    pub waits: Span,
    /// Time from then until the frequency is another.
    pub until_change: Span,
    /// Time for which the kthread has the CPU.
    pub runs: Span,
}

/// Stands above the kernel and brings a machine to a state at its start (`run/replay.rs`).
/// Everything has a default: nothing.
pub(crate) trait Driver {
    /// Prepares the start, before the task that starts is queued.
    fn before_start(&mut self, _: &mut Kernel<'_>) {}
    /// The task that starts is queued there. False: the start settings decide its signals.
    fn apply_start(&mut self, _: &mut Rq<'_, '_>, _: TaskId) -> bool {
        false
    }
    /// Receives the first task, created with its first signals and not queued yet.
    fn created_first(&mut self, _: &mut Task) {}
    /// Receives a task that has been created and is not queued yet. Returns how long its CPU, if
    /// idle, will take to look for a task to run.
    fn created(&mut self, _now: Instant, _: TaskId, _: &mut Task) -> Span {
        Span(0)
    }
    /// Hears that the thread `_creator` is about to create a task, which has no CPU yet.
    fn creates(&mut self, _: &mut Rq<'_, '_>, _creator: TaskId) {}
    /// The tick of a busy CPU: until when its interrupt lasts, if that takes any time.
    fn tick(&mut self, _: &Machine, _: CpuId) -> Option<Instant> {
        None
    }
}

impl Rq<'_, '_> {
    /// Whether `cpu` is still in the interrupt that wakes a kthread of its own; it then reschedules
    /// once for both. (A task that gives up the CPU, also to its quota, is in no interrupt.)
    pub(crate) fn is_in_irq_work(&mut self) -> bool {
        let cpu = self.cpu;
        let (c, now) = (self.m().cpu(cpu), self.m().now);
        let gives_up = |t: &Task| t.state != State::Runnable || t.throttled;
        let (until, at_once) = (c.irq_work_until, c.irq_work_at == Some(now));
        if until < now
            || (until == now && !at_once)
            || c.curr.is_some_and(|t| gives_up(self.m().task(t)))
        {
            return false;
        }
        let c = self.c();
        (c.resched_held, c.irq_work_at) = (true, None);
        self.push(until, Ev::Resched { cpu });
        true
    }

    /// Books what the running task of `cpu` has done since the last time.
    pub(crate) fn book_progress(&mut self) {
        let cpu = self.cpu;
        let speed = self.m().speed_of(cpu);
        let Parts { c, tasks, now, .. } = self.parts();
        let todo = c.curr.map(|curr| &mut tasks[curr.index()].todo);
        work::book_progress(c, todo, speed, now);
    }

    /// Books progress and tells what was stolen from the task meanwhile: its speed changes from now
    /// on, or it leaves.
    pub(crate) fn tell_progress(&mut self) {
        self.book_progress();
        let (cpu, now) = (self.cpu, self.m().now);
        let in_irq = self.m().cpu(cpu).slots.pressure.as_ref().is_some_and(|p| p.in_irq());
        let c = self.c();
        let span = Span(now.since(c.told).0.saturating_sub(c.worked.0));
        (c.told, c.worked) = (now, Span(0));
        if span > Span(0) && !in_irq && c.curr.is_some() {
            self.emit(Event::Stolen { cpu, span });
        }
    }

    /// Queues the moment at which the running task of `cpu` is done with its step.
    pub(crate) fn arm_work(&mut self) {
        let cpu = self.cpu;
        let speed = self.m().speed_of(cpu);
        let Parts { c, tasks, now, .. } = self.parts();
        c.work_gen = c.work_gen.wrapping_add(1);
        let (generation, since) = (c.work_gen, now.max(c.run_since));
        let Some(curr) = c.curr else { return };
        let at = work::done_at(tasks[curr.index()].todo, since, speed);
        self.push(at, Ev::WorkDone { cpu, generation });
    }
}

impl<'a> Kernel<'a> {
    /// Lets the driver act, if there is one.
    #[inline]
    pub(crate) fn drive<R: Default>(
        &mut self,
        act: impl FnOnce(&mut dyn Driver, &mut Kernel<'a>) -> R,
    ) -> R {
        let Some(mut driver) = self.driver.take() else { return R::default() };
        let result = act(driver.as_mut(), self);
        self.driver = Some(driver);
        result
    }

    /// Whether anybody hears what happens, or has a say in it.
    #[inline(always)]
    pub(crate) fn is_heard(&self) -> bool {
        self.listens > Hears::Nothing || self.m.slots.thermal.is_some() || self.m.hooks.is_some()
    }

    /// Emits an event into the trace, and to the heat account.
    #[inline(always)]
    pub(crate) fn emit(&mut self, event: Event) {
        self.events += 1;
        if let Some(thermal) = self.m.slots.thermal.as_deref_mut() {
            heats(thermal, self.m.now, &event);
        }
        // Known where this is inlined: the kind of event is.
        if self.listens.to(&event) {
            self.sink.event(self.m.now, &event);
        }
    }
}

/// Tells the heat account of an event: where there is one, which most often there is not.
#[cold]
#[inline(never)]
fn heats(thermal: &mut Thermal, now: Instant, event: &Event) {
    thermal.heaters.hears(now, event);
}
