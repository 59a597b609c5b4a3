//! One runqueue, locked (`struct rq` under `rq->lock`).
//!
//! ```text
//! Kernel ── rq(cpu) ──> Rq    changes   its CPU, the tasks and groups there, its own flags and timers
//!                             reads     all of the machine
//!                             tells     the trace, the event queue
//!                             calls up  cpufreq_update_util, and the few that say so here
//! ```
//!
//! What happens on one CPU is a method of this and cannot reach another CPU: the field is private to this file. Who moves
//! tasks between CPUs has the whole [`Kernel`].

use crate::kernel::Kernel;
use crate::state::bandwidth::{Pool, RqBandwidth};
use crate::state::class::ClassTimer;
use crate::state::group::{GroupRq, Groups};
use crate::state::hooks::Hooks;
use crate::state::machine::{Cpu, FreqDomain, Machine, State, Task};
use crate::state::preempt::Preempt;
use crate::state::series::Series;
use crate::state::tally::Tally;
use crate::state::tracker::Heard;
use crate::time::queue::Ev;
use risetime_kernel::KernelRev;
use risetime_kernel::cfs_rq::CfsRq;
use risetime_kernel::deadline::DlEntity;
use risetime_kernel::pelt::Decay;
use risetime_kernel::units::{CpuId, GroupId, Instant, TaskId};
use risetime_trace::Event;

/// A runqueue, and what may be changed with it.
pub(crate) struct Rq<'k, 'a> {
    k: &'k mut Kernel<'a>,
    pub(crate) cpu: CpuId,
}

/// Parts of a runqueue side by side.
pub(crate) struct Parts<'m> {
    pub(crate) c: &'m mut Cpu,
    pub(crate) tasks: &'m mut [Task],
    pub(crate) groups: &'m mut Groups,
    pub(crate) domain: &'m FreqDomain,
    pub(crate) tally: Option<&'m mut Tally>,
    pub(crate) series: &'m Series,
    pub(crate) hooks: Option<&'m dyn Hooks>,
    pub(crate) decay: &'static Decay,
    pub(crate) rev: KernelRev,
    pub(crate) now: Instant,
}

impl<'a> Kernel<'a> {
    /// Locks a runqueue.
    #[inline]
    pub(crate) fn rq(&mut self, cpu: CpuId) -> Rq<'_, 'a> {
        Rq { k: self, cpu }
    }
}

impl Rq<'_, '_> {
    /// The machine, to read.
    #[inline]
    pub(crate) fn m(&self) -> &Machine {
        &self.k.m
    }
    /// The CPU.
    #[inline]
    pub(crate) fn c(&mut self) -> &mut Cpu {
        &mut self.k.m.cpus[self.cpu.index()]
    }
    /// A task that is here, comes or goes.
    #[inline]
    pub(crate) fn t(&mut self, task: TaskId) -> &mut Task {
        &mut self.k.m.tasks[task.index()]
    }
    /// A group's part of this CPU.
    #[inline]
    pub(crate) fn level(&mut self, g: GroupId) -> &mut GroupRq {
        self.k.m.groups.rq_mut(self.cpu, g)
    }
    /// The queue that tasks of `g` are in, its clock at the CPU's.
    #[inline]
    pub(crate) fn queue_mut(&mut self, g: GroupId) -> &mut CfsRq {
        self.k.m.queue_mut(self.cpu, g)
    }
    /// A deadline task's reservation.
    pub(crate) fn dl_mut(&mut self, task: TaskId) -> &mut DlEntity {
        self.k.m.dl_mut(task)
    }
    /// Several of these at once.
    #[inline]
    pub(crate) fn parts(&mut self) -> Parts<'_> {
        let m = &mut self.k.m;
        let c = &mut m.cpus[self.cpu.index()];
        Parts {
            domain: &m.domains[c.domain],
            c,
            tasks: &mut m.tasks,
            groups: &mut m.groups,
            tally: m.tally.as_mut(),
            series: &m.series,
            hooks: m.hooks.as_deref(),
            decay: m.decay,
            rev: m.rev,
            now: m.now,
        }
    }

    // ------------------------------------------------------------------ what the machine keeps of a CPU

    /// `set_tsk_need_resched`.
    #[inline]
    pub(crate) fn set_need_resched(&mut self) {
        self.k.m.need_resched.insert(self.cpu);
    }
    /// Its bit is cleared.
    #[inline]
    pub(crate) fn unset_need_resched(&mut self) {
        self.k.m.need_resched.remove(self.cpu);
    }
    /// How CPUs hear that they should reschedule.
    #[inline]
    pub(crate) fn preempt(&mut self) -> &mut Preempt {
        &mut self.k.m.preempt
    }
    /// The running task leaves before it is back in user mode, as its group is throttled; or not, after all.
    pub(crate) fn set_throttle_work(&mut self, on: bool) {
        let work = &mut self.k.m.throttle_work;
        if on { work.insert(self.cpu) } else { work.remove(self.cpu) }
    }
    /// `rd->overloaded`.
    #[inline]
    pub(crate) fn set_overloaded(&mut self) {
        self.k.m.root.overloaded = true;
    }
    /// It takes part in nohz balancing, and has load that fades.
    pub(crate) fn joins_nohz(&mut self) {
        let root = &mut self.k.m.root;
        root.needs_update |= !root.idle_cpus.contains(self.cpu);
        root.idle_cpus.insert(self.cpu);
    }
    /// `nohz.has_blocked`.
    pub(crate) fn set_has_blocked(&mut self) {
        self.k.m.root.has_blocked = true;
    }
    /// Around it there is an idle core.
    pub(crate) fn set_idle_core(&mut self) {
        self.k.m.set_idle_cores(self.cpu, true);
    }
    /// Counts tasks in or out of a level ([`Machine::count`]).
    pub(crate) fn count(&mut self, g: GroupId, queued: i32, runnable: i32) {
        self.k.m.count(self.cpu, g, queued, runnable);
    }
    /// One that is queued is no longer, or again, runnable ([`Machine::count_runnable`]).
    pub(crate) fn count_runnable(&mut self, g: GroupId, by: i32) {
        self.k.m.count_runnable(self.cpu, g, by);
    }
    /// A throw of NI_RANDOM's dice; 0: there are none.
    pub(crate) fn dice(&mut self) -> u32 {
        self.k.m.ni_random.as_mut().map_or(0, |dice| dice.throw())
    }
    /// Its frequency policy.
    pub(crate) fn policy(&mut self) -> &mut FreqDomain {
        let domain = self.c().domain;
        &mut self.k.m.domains[domain]
    }
    /// `get_actual_cpu_capacity` is another ([`Machine::update_actual`]).
    pub(crate) fn update_actual(&mut self) {
        self.k.m.update_actual(self.cpu);
    }
    /// Periods of its groups begin with its own ([`Machine::groups_in_step`]).
    pub(crate) fn groups_in_step(&mut self) {
        self.k.m.groups_in_step(self.cpu);
    }
    /// A quota's pool, with its account on this CPU.
    pub(crate) fn pool(&mut self, g: GroupId) -> Option<(&mut Pool, &mut RqBandwidth)> {
        let group = &mut self.k.m.groups.list[g.index()];
        Some((group.pool.as_mut()?, &mut group.rq[self.cpu.index()].bandwidth))
    }

    // ------------------------------------------------------------------ upcalls

    /// Into the trace.
    #[inline]
    pub(crate) fn emit(&mut self, event: Event<'_>) {
        self.k.emit(event);
    }
    /// Into the event queue.
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, ev: Ev) {
        self.k.q.push(at, ev);
    }
    /// The tracker hears.
    #[inline]
    pub(crate) fn track(&mut self, heard: Heard) {
        self.k.m.track(heard);
    }
    /// `cpufreq_update_util`: the governor looks, at once.
    #[inline]
    pub(crate) fn cpufreq_update_util(&mut self) {
        self.k.cpufreq_update_util(self.cpu, false);
    }
    /// The root domain's flag.
    pub(crate) fn set_overutilized(&mut self, on: bool) {
        self.k.set_overutilized(on);
    }
    /// The period timer of all CPUs' RT runtime.
    pub(crate) fn start_rt_bandwidth(&mut self) {
        self.k.start_rt_bandwidth();
    }
    /// Bandwidth that is free for other reservations.
    pub(crate) fn release_bw(&mut self, bw: u64) {
        self.k.release_bw(bw);
    }
    /// A class's timer was at `before` and is at `after` now ([`Kernel::arm_changed`]).
    pub(crate) fn arm_changed(
        &mut self,
        timer: ClassTimer,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        self.k.arm_changed(timer, before, after);
    }
    /// The task becomes the head of its runqueue's list (`rq->cfs_tasks`).
    pub(crate) fn list(&mut self, task: TaskId) {
        self.k.listed += 1;
        self.k.m.task_mut(task).listed = self.k.listed;
    }
    /// Sets the state; nothing else may.
    pub(crate) fn set_state(&mut self, task: TaskId, state: State) {
        self.k.m.task_mut(task).state = state;
    }
}
