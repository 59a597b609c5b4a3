//! The timers of the classes: replenishment, 0-lag times, the server, the RT period; those of quotas
//! only as something that a CPU which falls asleep knows of.
//!
//! An entity says in a field when its timer expires. An event is queued at that time; if the field
//! says something else by then, the event is stale. On an idle CPU the timer first ends the idle
//! state, like a task's own timer ([`crate::kernel::core`]).

use crate::kernel::Kernel;
use crate::state::class::ClassTimer;
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, TaskId};

impl Kernel<'_> {
    /// The CPU on which a timer expires, and when (in the clock of its CPU).
    fn timer_is_due(&self, timer: ClassTimer) -> Option<(CpuId, Instant)> {
        let of_task = |task: TaskId| (self.m.task(task).cpu, self.m.task(task).sched.dl.as_deref());
        let (cpu, at) = match timer {
            ClassTimer::Replenish(task) => {
                let (cpu, dl) = of_task(task);
                (cpu, dl?.timer)
            }
            ClassTimer::Inactive(task) => {
                let (cpu, dl) = of_task(task);
                (cpu, dl?.inactive_timer)
            }
            ClassTimer::Server(cpu) => (cpu, self.m.cpu(cpu).fair_server.as_ref()?.timer),
            ClassTimer::ServerInactive(cpu) => {
                (cpu, self.m.cpu(cpu).fair_server.as_ref()?.inactive_timer)
            }
            ClassTimer::RtPeriod => (CpuId(0), self.m.classes.rt_period),
            // They have events of their own.
            ClassTimer::CfsPeriod(_) | ClassTimer::CfsSlack(_) | ClassTimer::Governor(_) => {
                return None;
            }
        };
        at.map(|at| (cpu, at))
    }

    /// Queues a timer at `at`, in the simulation's time.
    pub(super) fn arm(&mut self, timer: ClassTimer, at: Instant) {
        self.q.push(at, Ev::ClassTimer { timer, awake: false });
    }

    /// An entity's timer field went from `before` to `after`, in the CPU's clock.
    pub(super) fn arm_changed(
        &mut self,
        timer: ClassTimer,
        before: Option<Instant>,
        after: Option<Instant>,
    ) {
        if before == after {
            return;
        }
        let cpu = match timer {
            ClassTimer::Replenish(task) | ClassTimer::Inactive(task) => self.m.task(task).cpu,
            ClassTimer::Server(cpu) | ClassTimer::ServerInactive(cpu) => cpu,
            _ => return,
        };
        let past = self.m.sched_clock().0 - self.m.now.0;
        let own = |at: Instant| Instant(at.0.saturating_sub(past).max(self.m.now.0));
        let (before, after) = (before.map(own), after.map(own));
        let timers = &mut self.m.cpus[cpu.index()].class_timers;
        if let Some(at) = before {
            timers.remove(&(at, timer));
        }
        if let Some(at) = after {
            timers.insert((at, timer));
            self.arm(timer, at);
        }
    }

    /// A timer expires; `awake`: its CPU has left its idle state for it.
    pub(crate) fn class_timer(&mut self, timer: ClassTimer, awake: bool) {
        let Some((cpu, at)) = self.timer_is_due(timer) else { return };
        if timer == ClassTimer::RtPeriod {
            if at == self.m.now {
                self.rt_period_timer();
            }
            return;
        }
        if at > self.m.sched_clock() {
            return;
        }
        let idle = self.m.cpu(cpu).idle;
        if let Some(idle) = idle.filter(|_| !awake) {
            let latency = self.exit_latency(cpu, idle);
            self.q.push(self.m.now + latency, Ev::ClassTimer { timer, awake: true });
            return;
        }
        self.hears(cpu);
        let now = self.m.now;
        self.m.cpu_mut(cpu).class_timers.retain(|(at, t)| *t != timer || *at > now);
        if idle.is_some() {
            self.leave_idle(cpu);
        }
        self.update_rq_clock(cpu);
        match timer {
            ClassTimer::Replenish(task) => self.dl_task_timer(task),
            ClassTimer::Inactive(task) => self.inactive_task_timer(task),
            ClassTimer::Server(cpu) => self.dl_server_timer(cpu),
            ClassTimer::ServerInactive(cpu) => self.server_inactive_timer(cpu),
            _ => {}
        }
        self.run_soft_expired(cpu);
        self.idle_loop(cpu);
    }
}
