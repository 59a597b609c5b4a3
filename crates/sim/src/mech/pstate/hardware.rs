//! The hardware below the driver: what it makes of requests, what it chooses by itself, and its counters.
//!
//! Its own times are changes of frequency of a number that no change has ([`LOOKS`]).

use crate::kernel::policy::Policy;
use crate::mech::pstate::state::Mode;
use crate::time::queue::Ev;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};

/// Number of a change of frequency by which the hardware looks at its CPU instead.
pub(crate) const LOOKS: u32 = u32::MAX;

impl Policy<'_, '_> {
    /// Counts cycles of `cpu` up to now; from now on it is busy, or not.
    pub(crate) fn counts_cycles(&mut self, cpu: CpuId, busy: bool) {
        let (now, hw) = (self.m().now, self.d().hw);
        if let Some(cycles) = &mut self.rq(cpu).c().slots.pstate {
            cycles.count(now, hw, busy);
        }
        if busy {
            self.hardware_wakes(cpu);
        }
    }

    /// Counts cycles at the frequency in force, which is about to be another.
    pub(crate) fn counts_before_change(&mut self) {
        if self.d().slots.pstate.is_none() {
            return;
        }
        let (now, hw, cpu) = (self.m().now, self.d().hw, self.d().related[0]);
        if let Some(cycles) = &mut self.rq(cpu).c().slots.pstate {
            cycles.count_on(now, hw);
        }
    }

    /// `arch_scale_freq_tick`: the kernel learns at what speed `cpu` has run since its last tick.
    pub(crate) fn scale_freq_tick(&mut self, cpu: CpuId) {
        let (now, hw) = (self.m().now, self.d().hw);
        let invariant = self.d().freq_invariant;
        let Some(perf) = self.d().slots.pstate.take() else { return };
        let mut rq = self.rq(cpu);
        let cycles = &mut rq.c().slots.pstate;
        let scale = cycles.as_mut().and_then(|cycles| cycles.tick(now, hw, &perf));
        self.d().slots.pstate = Some(perf);
        if let Some(scale) = scale.filter(|_| invariant) {
            self.d().freq_scale = scale;
        }
    }

    /// Returns the frequency that the hardware goes to for a request, and the time that it takes, where the driver says `latency`.
    pub(crate) fn answers(&mut self, freq: KHz, latency: Span) -> (KHz, Span) {
        let now = self.m().now;
        let Some(perf) = &mut self.d().slots.pstate else { return (freq, latency) };
        perf.asked = freq;
        let own = perf.own.map_or(freq, |own| perf.levels.freq(own.level()));
        let waits = match perf.grid.0 {
            0 => Span(0),
            // Whoever takes no time to change does not wait for it either.
            _ if latency == Span(0) => Span(0),
            grid => Span(grid - now.0 % grid),
        };
        (freq.max(own), latency + waits)
    }

    /// Returns the limits of the policy, as levels.
    fn levels_allowed(&mut self) -> Option<(u64, u64)> {
        let (rev, min, max) = (self.m().rev, self.d().min, self.d().max);
        let perf = self.d().slots.pstate.as_ref()?;
        let (least, most) = perf.limits(rev, (min, max));
        let floor = match perf.mode {
            Mode::Guided => perf.levels.of_freq(perf.asked),
            _ => least,
        };
        Some((floor.clamp(least, most), most))
    }

    /// Begins to look, where hardware chooses: the CPU has become busy.
    fn hardware_wakes(&mut self, cpu: CpuId) {
        let Some(allowed) = self.levels_allowed() else { return };
        let now = self.m().now;
        let busy = self.busy_time(cpu);
        let all = self.wants_all(cpu);
        let Some(own) = self.d().slots.pstate.as_mut().and_then(|perf| perf.own.as_mut()) else {
            return;
        };
        if own.planned {
            return;
        }
        own.planned = true;
        match all {
            true => own.jump(now, busy, allowed.1),
            false => own.wakes(now, busy, allowed),
        }
        let at = now + own.manner.interval;
        self.plan_look(at);
        self.follow_hardware();
    }

    /// Looks at the CPU, as hardware that chooses does; goes on to look while that is busy.
    pub(crate) fn hardware_looks(&mut self) {
        let Some(allowed) = self.levels_allowed() else { return };
        let (now, cpu) = (self.m().now, self.d().related[0]);
        let busy = self.busy_time(cpu);
        let all = self.wants_all(cpu);
        let runs = self.m().cpu(cpu).slots.pstate.as_ref().is_some_and(|c| c.is_busy());
        let Some(own) = self.d().slots.pstate.as_mut().and_then(|perf| perf.own.as_mut()) else {
            return;
        };
        match all {
            true => own.jump(now, busy, allowed.1),
            false => own.look(now, busy, allowed),
        }
        own.planned = runs;
        let at = now + own.manner.interval;
        if runs {
            self.plan_look(at);
        }
        self.follow_hardware();
    }

    /// Whether `explain` has `cpu` want everything, in place of what its hardware aims at.
    fn wants_all(&self, cpu: CpuId) -> bool {
        let m = self.m();
        let capacity = m.cpu(cpu).capacity;
        m.hooked() && m.hook(Util(0), |h, own| h.dvfs_util(m.busy(cpu), capacity, own)) > Util(0)
    }

    /// Plans the hardware's next look.
    fn plan_look(&mut self, at: Instant) {
        let domain = self.domain as u32;
        self.push(at, Ev::FreqDone { domain, generation: LOOKS });
    }

    /// Returns the time that `cpu` has been busy.
    fn busy_time(&mut self, cpu: CpuId) -> Span {
        let (now, hw) = (self.m().now, self.d().hw);
        let cycles = self.m().cpu(cpu).slots.pstate.as_ref();
        cycles.map_or(Span(0), |c| c.until(now, hw).1)
    }

    /// Starts a change of the clock to the level that the hardware has chosen.
    fn follow_hardware(&mut self) {
        let Some(perf) = &self.d().slots.pstate else { return };
        let Some(own) = perf.own else { return };
        let chosen = perf.levels.freq(own.level());
        let freq = if perf.mode == Mode::Guided { chosen.max(perf.asked) } else { chosen };
        if freq != self.d().target {
            self.change_to(freq, Span(0));
        }
    }
}
