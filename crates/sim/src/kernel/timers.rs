//! The timers of tasks that sleep (hrtimers): where they expire, what slack allows.
//!
//! Source: kernel/time/hrtimer.c.

use crate::kernel::Kernel;
use crate::state::hooks::Waker;
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};

impl Kernel<'_> {
    /// A task's timer expires on the CPU it slept on, which may have to wake up for it.
    pub(crate) fn timer(&mut self, task: TaskId, generation: u32) {
        if self.m.task(task).timer_gen != generation {
            return;
        }
        let Some(cpu) = self.timer_cpu(task) else { return };
        match self.m.cpu(cpu).idle {
            Some(idle) => {
                let latency = self.exit_latency(cpu, idle);
                self.q.push(self.m.now + latency, Ev::TimerAwake { task, generation });
            }
            None => self.timer_awake(task, generation),
        }
    }

    pub(crate) fn timer_awake(&mut self, task: TaskId, generation: u32) {
        if self.m.task(task).timer_gen != generation {
            return;
        }
        let Some(cpu) = self.timer_cpu(task) else { return };
        self.m.task_mut(task).timer_cpu = None;
        // The timers of a kthread's wakeup are none: there it is an interrupt.
        self.m.cpu_mut(cpu).timers.remove(task);
        self.leave_idle(cpu);
        self.wake_up(task, Waker::timer(cpu));
        self.hears(cpu);
        self.run_soft_expired(cpu);
        self.idle_loop(cpu);
    }

    /// The CPU on which a task's timer expires; `None`: a kthread whose policy has no CPU left.
    pub(crate) fn timer_cpu(&self, task: TaskId) -> Option<CpuId> {
        let t = self.m.task(task);
        let cpu = t.timer_cpu.unwrap_or(t.cpu);
        (self.m.root.online.contains(cpu)).then_some(cpu)
    }

    /// When the timer of a task that falls asleep until `at` expires at the latest.
    pub(crate) fn hard_expiry(&mut self, task: TaskId, at: Instant) -> Instant {
        let slack = if self.is_fair(task) { self.m.costs.slack } else { Span(0) };
        self.m.task_mut(task).soft_expiry = at;
        Instant(at.0.saturating_add(slack.0))
    }

    /// A timer interrupt on `cpu`: who is past the soft expiry need not wait for the hard one
    /// (`__hrtimer_run_queues`).
    pub(crate) fn run_soft_expired(&mut self, cpu: CpuId) {
        if self.m.costs.slack == Span(0) {
            return;
        }
        let now = self.m.now;
        while let Some((_, task)) = self.m.cpu(cpu).timers.first() {
            if self.m.task(task).soft_expiry > now {
                break;
            }
            self.m.cpu_mut(cpu).timers.remove(task);
            let t = self.m.task_mut(task);
            // Its own event comes too late.
            t.timer_gen = t.timer_gen.wrapping_add(1);
            t.timer_cpu = None;
            self.wake_up(task, Waker::timer(cpu));
        }
    }
}
