//! Interrupts of a CPU's clock event device: for each hrtimer, or, without high resolution, at a
//! tick.
//!
//! Source: kernel/time/clockevents.c:clockevents_program_event; tick-sched.c:tick_nohz_stop_tick, tick_nohz_next_event; which of the two
//! it is, and what such a tick does: [`crate::mech::hrtimers`].

use crate::kernel::rq::Rq;
use crate::state::class::ClassTimer;
use crate::state::machine::{Machine, Role};
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};

impl Machine {
    /// The first tick at which a timer that expires at `at` is run.
    fn tick_at(&self, at: Instant) -> Instant {
        let next = self.next_tick();
        let ticks = at.0.saturating_sub(next.0).div_ceil(self.tick.0);
        Instant(next.0.saturating_add(ticks.saturating_mul(self.tick.0)))
    }

    /// The time at which the interrupt of a timer comes that expires at `at`, as cpuidle counts it.
    pub(crate) fn event_of(&self, at: Instant) -> Instant {
        if self.slots.hrtimers.low_res { self.tick_at(at) } else { at }
    }

    /// The earliest time at which the RT period's timer is run; `None`: now.
    pub(crate) fn waits_for_tick(&self) -> Option<Instant> {
        let on_grid = self.next_tick() == self.now + self.tick;
        (self.slots.hrtimers.at_ticks() && !on_grid).then(|| self.next_tick())
    }

    /// The first hrtimer of a CPU, by hard expiry.
    fn first_hrtimer(&self, cpu: CpuId) -> Option<Instant> {
        let c = self.cpu(cpu);
        let class = c.class_timers.iter().find(|(_, t)| !matches!(t, ClassTimer::Governor(_)));
        let (task, class) = (c.timers.first().map(|t| t.0), class.map(|t| t.0));
        task.into_iter().chain(class).min()
    }
}

impl Rq<'_, '_> {
    /// An interrupt of the CPU's timer; several expiries at one time are one.
    #[inline]
    pub(crate) fn counts_interrupt(&mut self) {
        let now = self.m().now;
        if self.c().slots.hrtimers.interrupt.replace(now) != Some(now) {
            *self.timer_interrupts() += 1;
        }
    }

    /// Sets the tick of a CPU whose tick is stopped to its first timer, after a timer was set or
    /// the CPU goes on sleeping.
    pub(crate) fn program_event(&mut self) {
        let (cpu, m) = (self.cpu, self.m());
        let c = m.cpu(cpu);
        if !m.slots.hrtimers.at_ticks() || !c.tick_stopped || c.idle.is_none() {
            return;
        }
        let at = m.first_hrtimer(cpu).map(|at| m.tick_at(at));
        let c = self.c();
        c.tick_gen = c.tick_gen.wrapping_add(1);
        let generation = c.tick_gen;
        if let Some(at) = at {
            self.push(at, Ev::Tick { cpu, generation });
        }
    }
}

impl Rq<'_, '_> {
    /// The latest time at which the timer of a task expires that falls asleep until `at`.
    pub(crate) fn hard_expiry(&mut self, task: TaskId, at: Instant) -> Instant {
        // The thread that creates the tasks has none, either.
        let has = !self.m().class_of(task).is_above_fair()
            && matches!(self.m().task(task).role, Role::User);
        let slack = if has { self.m().costs.slack } else { Span(0) };
        self.t(task).soft_expiry = at;
        Instant(at.0.saturating_add(slack.0))
    }
}
