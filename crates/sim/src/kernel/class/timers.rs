//! The timers of the classes: replenishment, 0-lag times, the server, the RT period; those of quotas
//! only as something that a CPU which falls asleep knows of.
//!
//! An entity says in a field when its timer expires. An event is queued at that time; if the field
//! says something else by then, the event is stale. On an idle CPU the timer first ends the idle
//! state, like a task's own timer ([`crate::kernel::core`]).

use crate::kernel::rq::Rq;
use crate::mech::demotion::state::Demoted;
use crate::state::class::ClassTimer;
use crate::state::machine::Machine;
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, TaskId};

impl Rq<'_, '_> {
    /// An entity's timer field went from `before` to `after`, in the CPU's clock.
    #[inline]
    pub(crate) fn arm_changed(
        &mut self,
        timer: ClassTimer,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        if before != after {
            self.arm(timer, before, after);
        }
    }

    fn arm(&mut self, timer: ClassTimer, before: Option<Instant>, after: Option<Instant>) {
        let now = self.m().now;
        let past = self.m().sched_clock().0 - now.0;
        let own = |at: Instant| Instant(at.0.saturating_sub(past).max(now.0));
        let (before, after) = (before.map(own), after.map(own));
        let timers = &mut self.c().class_timers;
        if let Some(at) = before {
            timers.remove_at(at, timer);
        }
        if let Some(at) = after {
            timers.insert((at, timer));
            if !self.m().slots.hrtimers.at_ticks() {
                return self.push(at, Ev::ClassTimer { timer, awake: false });
            }
        }
        self.program_event();
    }

    /// Notes that a throttled task is to be demoted once this event is over.
    pub(crate) fn demote_later(&mut self, task: TaskId) {
        let t = self.t(task);
        if t.sched.stop || t.slots.demotion.is_some() {
            return;
        }
        t.slots.demotion = Some(Box::new(Demoted { was: None, due: false }));
        self.push_demotion(task, self.m().now);
    }

    /// Notes that all real-time tasks that are queued here are to be demoted.
    pub(crate) fn demote_queue_rt(&mut self) {
        if self.m().slots.sysctls.demotion {
            let queued: Vec<TaskId> =
                self.m().cpu(self.cpu).rt.iter().map(|(_, task)| task).collect();
            queued.into_iter().for_each(|task| self.demote_later(task));
        }
    }

    /// Promotes a waking task now if it was meant to be promoted in its sleep.
    pub(crate) fn wakes_demoted(&mut self, task: TaskId) {
        if self.m().task(task).slots.demotion.as_ref().is_some_and(|demoted| demoted.due) {
            self.push_demotion(task, self.m().now);
        }
    }

    pub(crate) fn push_demotion(&mut self, task: TaskId, at: Instant) {
        self.push(at, Ev::ClassTimer { timer: ClassTimer::Demotion(task), awake: true });
    }
}

impl Machine {
    /// The CPU on which a timer expires, and when (in the clock of its CPU).
    pub(crate) fn timer_is_due(&self, timer: ClassTimer) -> Option<(CpuId, Instant)> {
        let of_task = |task: TaskId| (self.task(task).cpu, self.task(task).sched.dl.as_deref());
        let (cpu, at) = match timer {
            ClassTimer::Replenish(task) => {
                let (cpu, dl) = of_task(task);
                (cpu, dl?.timer)
            }
            ClassTimer::Inactive(task) => {
                let (cpu, dl) = of_task(task);
                (cpu, dl?.inactive_timer)
            }
            ClassTimer::Server(cpu) => (cpu, self.cpu(cpu).fair_server.as_ref()?.timer),
            ClassTimer::ServerInactive(cpu) => {
                (cpu, self.cpu(cpu).fair_server.as_ref()?.inactive_timer)
            }
            ClassTimer::GroupServer(cpu, g) => {
                (cpu, self.cpu(cpu).slots.rt_groups.get(g)?.server.timer)
            }
            ClassTimer::GroupInactive(cpu, g) => {
                (cpu, self.cpu(cpu).slots.rt_groups.get(g)?.server.inactive_timer)
            }
            ClassTimer::Overcommit(cpu) => (cpu, self.cpu(cpu).slots.overcommit.as_ref()?.expires),
            ClassTimer::SliceOver(cpu) => (cpu, self.cpu(cpu).slots.muqss.as_ref()?.expires),
            ClassTimer::RtPeriod => (CpuId(0), self.classes.rt_period),
            // Timers that have events of their own.
            ClassTimer::Demotion(_)
            | ClassTimer::CfsPeriod(_)
            | ClassTimer::CfsSlack(_)
            | ClassTimer::Governor(_) => {
                return None;
            }
        };
        at.map(|at| (cpu, at))
    }
}
