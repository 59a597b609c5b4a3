//! Averages of what pressure takes from a CPU, and the capacity that they leave it.
//!
//! Sources say what is taken ([`super`]); classes, balancing and the tick age it here.
//! Source: kernel/sched/pelt.c:update_hw_load_avg; kernel/sched/fair.c:get_actual_cpu_capacity,
//! update_cpu_capacity.

use crate::kernel::rq::Rq;
use crate::state::machine::{Cpu, from_time_0};
use risetime_kernel::cpu_util::{capacity_of, get_actual_cpu_capacity};
use risetime_kernel::pelt::update_hw_load_avg;
use risetime_kernel::units::{Capacity, Span, Util};
use risetime_kernel::{KernelRev, features};
use risetime_trace::{Event, PressureClass};

impl Cpu {
    /// `get_actual_cpu_capacity`, when something that it depends on has changed; `limit`: the cpufreq
    /// pressure of its domain.
    pub(crate) fn update_actual(&mut self, rev: KernelRev, limit: Capacity) {
        let (average, now) = self
            .slots
            .pressure
            .as_ref()
            .map_or((0, Capacity(0)), |p| (p.hw_load_avg(), p.hw_pressure));
        // Before 6.10 EAS takes the number of the moment, and no release has a limit there.
        let averaged = rev.has(features::GET_ACTUAL_CPU_CAPACITY);
        let average = if averaged { average } else { now.0 };
        self.actual = get_actual_cpu_capacity(self.capacity, average, limit.0);
    }
}

impl Rq<'_, '_> {
    /// `sched_tick`'s part.
    pub(crate) fn pressure_tick(&mut self) {
        let cpu = self.cpu;
        if self.m().cpu(cpu).slots.pressure.is_some() {
            self.update_hw();
            self.update_cpu_capacity();
        }
    }

    /// `update_hw_load_avg`; true if the average changed.
    pub(crate) fn update_hw(&mut self) -> bool {
        let cpu = self.cpu;
        let decay = self.m().decay;
        let c = self.c();
        let now = c.clock.clock_task;
        let Some(p) = &mut c.slots.pressure else { return false };
        let avg = &mut p.hw_avg;
        let before = avg.load_avg;
        let changed = update_hw_load_avg(decay, now, avg, p.hw_pressure);
        if changed && (before, avg.load_avg) != (0, 0) {
            let event = Event::PeltPressure {
                cpu,
                class: PressureClass::Hw,
                util_avg: Util(avg.load_avg),
                util_sum: avg.load_sum,
                period_contrib: avg.period_contrib,
                last_update_time: from_time_0(avg),
            };
            self.update_actual();
            self.emit(event);
        }
        changed
    }

    /// Updates the averages of pressure, their part of `update_other_load_avgs`; true if an average
    /// changed.
    pub(crate) fn update_pressure(&mut self) -> bool {
        let cpu = self.cpu;
        if self.m().cpu(cpu).slots.pressure.is_none() {
            return false;
        }
        // All of them, whatever the first one says.
        let hw = self.update_hw();
        self.update_irq(Span(0)) || hw
    }

    /// `update_cpu_capacity`: what rt, dl and irq leave of the CPU.
    pub(crate) fn update_cpu_capacity(&mut self) {
        let cpu = self.cpu;
        let (c, limit) = (self.m().cpu(cpu), self.m().domain_of(cpu).slots.pressure.taken);
        let hw = c.slots.pressure.as_ref().map_or(0, |p| p.hw_load_avg());
        // No release before 6.10 has both.
        let both = self.m().rev.has(features::CPUFREQ_PRESSURE);
        let hw = if both { hw } else { hw.max(limit.0) };
        let others = self.m().hook(self.m().rq_util(cpu), |h, own| h.rq_util(cpu, true, own));
        let capacity = capacity_of(self.m().rev, c.capacity, &others, hw, limit.0);
        let capacity = self.capacity_pre_4_19().unwrap_or(capacity);
        let before = std::mem::replace(&mut self.c().cpu_capacity, capacity);
        if before != capacity {
            self.emit(Event::CpuCapacity { cpu, capacity });
        }
    }
}
