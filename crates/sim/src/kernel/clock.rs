//! A runqueue's clocks (`update_rq_clock`), and time that passes for nobody.
//!
//! Arithmetic: [`risetime_kernel::clock_pelt`]. Source: kernel/sched/core.c, pelt.h.

use crate::kernel::rq::Parts;
use crate::kernel::rq::Rq;
use crate::state::machine::pelt_pressure;
use risetime_kernel::pelt::update_irq_load_avg;
use risetime_kernel::switches::Switch;
use risetime_kernel::units::{Capacity, Instant, SCHED_CAPACITY_SCALE, Span};
use risetime_model::Experiment;
use risetime_model::settings::{Default, Home, Name, Neutral, Param, Range};
use risetime_trace::PressureClass;

pub(crate) const FREQ_INVARIANCE: Name = Name::new(Param {
    name: "freq_invariance",
    doc: "whether PELT's clock, and deadline tasks' time, follow the frequency; no = they know of the CPUs' capacities alone, schedutil goes by the frequency in force, and from 5.11 on there is no energy-aware placement (unset: yes)",
    unit: "",
    range: Range::OneOf(&["yes", "no"]),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("yes")),
});

/// `arch_scale_freq_invariant`: that of the machine.
pub(crate) fn is_freq_invariant(e: &Experiment) -> bool {
    e.settings.get(&FREQ_INVARIANCE) != Some("no")
}

impl Rq<'_, '_> {
    /// `update_rq_clock`: brings all clocks of the CPU to now, at its current speed.
    #[inline]
    pub(crate) fn update_rq_clock(&mut self) {
        let clock = self.m().sched_clock();
        if self.m().cpu(self.cpu).clock.clock != clock {
            self.advance_rq_clock(clock);
        }
    }

    #[inline(never)]
    fn advance_rq_clock(&mut self, clock: Instant) {
        let contribution = self.m().slots.before.contribution;
        let Parts { c, domain, hooks, .. } = self.parts();
        let delta = clock.since(c.clock.clock);
        let (mut capacity, mut scale) = (c.capacity, domain.freq_scale);
        if contribution {
            // PELT's clock is the task clock; what is added is scaled instead.
            (capacity, scale) = (Capacity(SCHED_CAPACITY_SCALE), SCHED_CAPACITY_SCALE);
        } else if let Some(hooks) = hooks {
            (capacity, scale) = hooks.scale((capacity, scale));
        }
        let irq = c.slots.pressure.as_mut().map_or(Span(0), |p| p.take_irq_time(delta));
        c.clock.update_rq_clock(delta, irq, c.curr.is_none(), capacity, scale);
        c.cfs.update_clock(c.clock.clock_task.0);
        if irq > Span(0) {
            self.rt_avg_interrupt(irq);
            self.update_irq(irq);
        }
    }

    /// The time that the current task of another class than fair (or the idle task) has run since
    /// it was last accounted for (`update_se`).
    pub(crate) fn delta_exec(&mut self) -> Span {
        let c = self.c();
        let now = c.clock.clock_task.0;
        let delta = now.saturating_sub(c.exec_start);
        c.exec_start = now;
        Span(delta)
    }

    /// `update_irq_load_avg` with interrupt time that the task clock has just been told of.
    pub(crate) fn update_irq(&mut self, running: Span) -> bool {
        let cpu = self.cpu;
        if !self.m().slots.switches.on(Switch::NontaskCapacity) {
            return false;
        }
        let Parts { c, domain, decay, .. } = self.parts();
        let scale = domain.freq_scale;
        let (clock, capacity) = (c.clock.clock, c.capacity);
        let Some(p) = &mut c.slots.pressure else { return false };
        let avg = &mut p.irq_avg;
        let changed = update_irq_load_avg(decay, clock, avg, running.0, capacity, scale) != 0;
        if changed {
            let event = pelt_pressure(cpu, PressureClass::Irq, avg);
            self.emit(event);
        }
        changed
    }

    /// Keeps the CPU from its task for `span` more, after what already keeps it.
    pub(crate) fn steal(&mut self, span: Span) {
        self.book_progress();
        let now = self.m().now;
        let c = self.c();
        c.run_since = c.run_since.max(now) + span;
        if c.curr.is_some() {
            self.arm_work();
        }
    }
}
