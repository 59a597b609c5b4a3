//! SCHED_HIGH: a fair class between real-time and SCHED_OTHER, in which tasks have priorities and slices, and which
//! starves nobody.
//!
//! ```text
//!  queue      one a CPU, of the kernel's own fair class: CFS up to 6.5, EEVDF from 6.6; nice values are its priorities
//!  pick       one of it, unless fair tasks wait whose turn it is (the account)
//!  account    s % of what the two classes run together is the fair one's, in turns; what runs above is nobody's
//!  wakeup     an idle CPU, else one where a fair task runs, else its own
//!  push       whoever waits goes where it runs at once: at wakeups, at ticks, and when a CPU tells that it is free
//! ```
//!
//! A proof of concept of OSPM 2023 (S. Rostedt's talk on Chromebooks), of which only the idea is public, the name
//! being made up for the talk; no kernel has it. What we chose: the queue (that prototype stood on CFS, and its author
//! would take EEVDF now), the guarantee, and that the class has no groups. P. Zijlstra objected that such a class has
//! to know of the hard real-time tasks that interrupt it. Here the account is settled at each switch by who ran, not by how
//! much time went by, so that real-time tasks take from both classes alike. He would have it under a deadline server:
//! `sched_high_server` makes the one that fair tasks have serve both.
//!
//! Its time counts where that of real-time tasks does (`rt_avg`): in what schedutil asks for, and in what is left to fair
//! tasks. From 6.12 on these have their deadline server as well, up to 5 % of the wall time beside what the account gives.
//! Leaves out: groups, a util of its own for each task (so util_est, and a CPU chosen by it), load balancing
//! between CPUs that all have tasks of the class.
//! Arithmetic: [`risetime_kernel::sched_high`].

pub(crate) mod state;

use crate::kernel::class::nearest::nearest_of;
use crate::kernel::class::sched_class::{Preempts, SchedClass};
use crate::kernel::placement::Placement;
use crate::kernel::rq::Rq;
use crate::kernel::tunables;
use crate::mech::high::state::HighRq;
use crate::mech::mechanism::Mechanism;
use crate::state::class::Class;
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Waker};
use crate::state::machine::Machine;
use crate::state::machine::UPTIME;
use risetime_kernel::cfs_rq::CfsRq;
use risetime_kernel::eevdf::{
    DequeueKind, Dequeued, EnqueueKind, Entity, EntityId, FairPolicy, LoadWeight, Wakeup,
};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::Experiment;
use risetime_model::settings::Group;
use risetime_model::workload::Policy;
use risetime_trace::Why;

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![state::GROUP]
    }
    fn of_cpu(e: &Experiment, m: &Machine, _: CpuId) -> Option<Box<HighRq>> {
        state::used(e).then(|| HighRq::of(e, m.rev, tunables::of_experiment(e), UPTIME.0)).flatten()
    }
}

/// SCHED_HIGH.
pub(crate) struct High;

impl SchedClass for High {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "SCHED_HIGH",
            "a fair class above the fair one that starves nobody (OSPM 2023; no kernel has it)",
        )
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: EnqueueKind, _: bool) {
        let load = LoadWeight::of_nice(i32::from(rq.m().task(task).nice));
        let t = rq.t(task);
        let slice = match t.sched.policy {
            Policy::High { slice } => slice.map(|s| s.0),
            _ => None,
        };
        let entity = t.slots.high.take();
        let mut entity = entity.map_or_else(|| Entity::new(task, load), |entity| *entity);
        entity.request_slice(slice);
        let nobody = rq.m().cpu(rq.cpu).slots.high.as_ref().is_some_and(|h| h.nr_queued() == 0);
        rq.high_queue(|queue| queue.enqueue(entity, kind));
        if nobody && rq.high_is_served() {
            rq.dl_server_start();
        }
        rq.cpufreq_update_util();
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: DequeueKind) {
        if let Some(Dequeued::Yes(entity)) = rq.high_queue(|queue| queue.dequeue(task, kind)) {
            rq.t(task).slots.high = Some(Box::new(entity));
        }
        rq.cpufreq_update_util();
    }
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        rq.pick_task_high()
    }
    fn wakeup_preempt(&self, rq: &mut Rq<'_, '_>, _: TaskId, task: TaskId, fork: bool) -> Preempts {
        let due = rq.m().is_resched_due(rq.cpu);
        let [woken, running] = [FairPolicy::Normal; 2];
        let wakeup = Wakeup { fork, due, woken, running };
        match rq.high_queue(|queue| queue.wakeup_preempt_by(task, &wakeup)) {
            Some(true) => Preempts::Lazily,
            _ => Preempts::No,
        }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, prev: TaskId, next: Option<TaskId>) {
        if next == Some(prev) {
            return;
        }
        rq.update_rt(true);
        rq.high_queue(|queue| {
            if queue.curr().is_some_and(|e| e.id == prev) {
                queue.update_curr();
                queue.put_prev();
            }
        });
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        rq.set_next_task_high(task);
    }
    fn tick(&self, rq: &mut Rq<'_, '_>, _: TaskId) {
        if rq.high_is_served() {
            rq.dl_server_update();
        }
        if rq.high_queue(CfsRq::tick) == Some(true) {
            rq.high_queue(CfsRq::clear_need_resched);
            rq.resched_curr();
        }
        // Nobody else does while it runs: as `update_curr` of a fair task and, up to 4.16, of a real-time one.
        rq.update_rt(true);
        rq.cpufreq_update_util();
    }
    /// Gives up the request of the current task.
    fn yield_task(&self, rq: &mut Rq<'_, '_>, _: TaskId) {
        rq.high_queue(CfsRq::yield_task);
    }
    fn woken(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        if !rq.m().need_resched.contains(rq.cpu) && rq.m().cpu(rq.cpu).curr != Some(task) {
            rq.push_high_task();
        }
    }
    fn select_task_rq(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed {
        select_task_rq_high(m, task, waker.cpu, effects)
    }
    fn select_task_rq_fork(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        effects: &mut Effects,
    ) -> Placed {
        select_task_rq_high(m, task, m.task(task).cpu, effects)
    }
}

/// Delay of a task of SCHED_HIGH on a CPU: the lowest is the best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Delay {
    /// The CPU has no task.
    Idle,
    /// The CPU has only fair tasks.
    Fair,
    /// Fair tasks have their turn, or others of the class are there.
    Shared,
    /// Real-time or deadline tasks are.
    Above,
}

impl Machine {
    /// The delay that `task` would have on `cpu`, `task` itself left out.
    fn delay_of_high(&self, cpu: CpuId, task: TaskId) -> Delay {
        let c = self.cpu(cpu);
        let Some(high) = c.slots.high.as_deref() else { return Delay::Above };
        let others = high.nr_queued() - usize::from(high.queue.get(task).is_some());
        if !c.rt.is_empty() || c.dl.tasks() > 0 {
            Delay::Above
        } else if others > 0 || high.account.fair_turn() {
            Delay::Shared
        } else if c.h_nr_queued() > 0 {
            Delay::Fair
        } else {
            Delay::Idle
        }
    }

    /// The CPUs where `task` would wait least, of those that it may use; of them those as big as its clamps ask
    /// for, if there are any.
    fn least_delay(&self, task: TaskId) -> (Option<Delay>, CpuSet) {
        let mut best = (None, CpuSet::first(0));
        let allowed = self.task(task).allowed.and(&self.root.online);
        let fits = allowed.iter().any(|cpu| self.rt_fits(task, cpu));
        for cpu in allowed.iter().filter(|cpu| !fits || self.rt_fits(task, *cpu)) {
            let delay = self.delay_of_high(cpu, task);
            if best.0.is_none_or(|least| delay < least) {
                best = (Some(delay), CpuSet::first(0));
            }
            if best.0 == Some(delay) {
                best.1.insert(cpu);
            }
        }
        best
    }

    /// A task of SCHED_HIGH that waits on `cpu` and may leave it.
    pub(crate) fn waiting_high(&self, cpu: CpuId) -> Option<TaskId> {
        let waiting = self.cpu(cpu).slots.high.as_deref()?.waiting();
        waiting
            .into_iter()
            .find(|t| self.cpu(cpu).curr != Some(*t) && self.task(*t).nr_cpus_allowed > 1)
    }
}

fn select_task_rq_high(
    m: &Machine,
    task: TaskId,
    this_cpu: CpuId,
    effects: &mut Effects,
) -> Placed {
    let prev = m.task(task).cpu;
    let (_, least) = m.least_delay(task);
    if least.contains(prev) || !least.iter().any(|_| true) {
        return m.within_allowed(task, Placed { cpu: prev, why: Why::PrevCpu });
    }
    Placed { cpu: nearest_of(m, &least, prev, this_cpu, effects), why: Why::LowestRq }
}

impl Rq<'_, '_> {
    /// Changes the class's queue here after setting its clock. `None`: no task is ever of the
    /// class.
    fn high_queue<R>(&mut self, change: impl FnOnce(&mut CfsRq) -> R) -> Option<R> {
        let c = self.c();
        let now = c.clock.clock_task.0;
        let high = c.slots.high.as_deref_mut()?;
        high.queue.update_clock(now);
        Some(change(&mut high.queue))
    }

    /// The deadline server of the fair class serves this one, too.
    pub(crate) fn high_is_served(&self) -> bool {
        self.m().cpu(self.cpu).slots.high.as_ref().is_some_and(|high| high.served)
    }

    pub(crate) fn pick_task_high(&mut self) -> Option<TaskId> {
        let c = self.m().cpu(self.cpu);
        let high = c.slots.high.as_deref()?;
        if high.nr_queued() == 0 || (high.account.fair_turn() && c.fair_waits()) {
            return None;
        }
        self.high_queue(|queue| {
            queue.update_curr();
            queue.clear_need_resched();
            queue.pick().and_then(EntityId::as_task)
        })?
    }

    pub(crate) fn set_next_task_high(&mut self, task: TaskId) {
        self.update_rt(false);
        self.high_queue(|queue| queue.set_next(task, true));
    }

    /// Settles the account by who has run since the last time; who goes first may have changed by it.
    pub(crate) fn account_high(&mut self) {
        if self.m().cpu(self.cpu).slots.high.is_none() {
            return;
        }
        let curr = self.m().cpu(self.cpu).curr.map(|curr| self.m().class_of(curr));
        let c = self.c();
        let (now, waits) = (c.clock.clock_task.0, c.fair_waits());
        let Some(high) = c.slots.high.as_deref_mut() else { return };
        let ran = Span(now.saturating_sub(std::mem::replace(&mut high.accounted, now)));
        let before = high.account.fair_turn();
        match curr {
            Some(Class::High) if waits => high.account.high_ran(ran),
            Some(Class::Fair) => {
                let waits = high.nr_queued() > 0;
                high.account.fair_ran(ran, waits);
            }
            _ => {}
        }
        let other = before != high.account.fair_turn();
        if other && curr.is_some_and(|class| class >= Class::High) {
            self.resched_curr();
        }
    }

    /// Accounts the class at each tick, whichever task runs.
    pub(crate) fn tick_high(&mut self) {
        let Some(high) = self.m().cpu(self.cpu).slots.high.as_deref() else { return };
        let (queued, turn) = (high.nr_queued() > 0, high.account.fair_turn());
        self.account_high();
        let c = self.m().cpu(self.cpu);
        let high_runs = c.curr.is_some_and(|curr| self.m().class_of(curr) == Class::High);
        if turn && high_runs && c.fair_waits() {
            // Fair tasks came back in their turn.
            self.resched_curr();
        }
        if queued {
            self.push_high_task();
        }
    }

    /// A new priority.
    pub(crate) fn renice_high(&mut self, task: TaskId, load: LoadWeight) {
        let rev = self.m().rev;
        if let Some(entity) = self.t(task).slots.high.as_deref_mut() {
            entity.reweight(rev, load);
        }
        self.high_queue(|queue| {
            queue.update_curr();
            queue.renice(task, load)
        });
    }
}

impl Rq<'_, '_> {
    /// Tells CPUs where tasks of the class wait to push, since this CPU may keep none of the class
    /// waiting any more, once they have switched (as `tell_cpu_to_push`).
    pub(crate) fn pull_high_task(&mut self) {
        let (cpu, m) = (self.cpu, self.m());
        let c = m.cpu(cpu);
        if c.slots
            .high
            .as_deref()
            .is_none_or(|high| high.nr_queued() > 0 || high.account.fair_turn())
        {
            return;
        }
        if !c.rt.is_empty() || c.dl.tasks() > 0 || !m.root.online.contains(cpu) {
            return;
        }
        let comes = |other: CpuId| {
            m.waiting_high(other).is_some_and(|task| {
                let (least, cpus) = m.least_delay(task);
                least.is_some_and(|delay| delay <= Delay::Fair) && !cpus.contains(other)
            })
        };
        if m.platform.cpus().any(|other| other != cpu && comes(other)) {
            self.set_push_rt(true);
        }
    }

    /// Moves a task of the class that waits here to where it runs at once.
    pub(crate) fn push_high_task(&mut self) {
        let cpu = self.cpu;
        let Some(task) = self.m().waiting_high(cpu) else { return };
        let (least, cpus) = self.m().least_delay(task);
        let at_once = least.is_some_and(|delay| delay <= Delay::Fair) && !cpus.contains(cpu);
        if let Some(to) = cpus.lowest().filter(|_| at_once) {
            self.move_queued(task, to, Why::HighPush);
        }
    }
}
