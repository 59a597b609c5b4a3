//! Whether a CPU that goes idle looks at a domain: NI_RANDOM's dice ([`crate::state::dice`]).
//!
//! Source: kernel/sched/fair.c:`sched_balance_newidle`.

use crate::kernel::Kernel;
use risetime_kernel::units::CpuId;

impl Kernel<'_> {
    /// Whether `cpu` looks at its domain of that level now, and for how many looks that counts.
    pub(super) fn newidle_dice(&mut self, cpu: CpuId, level: usize) -> Option<u32> {
        let (now, rev) = (self.m.sched_clock(), self.m.rev);
        let Some(dice) = &mut self.m.ni_random else { return Some(1) };
        let stats = &mut self.m.cpus[cpu.index()].sched_domains[level].newidle;
        if stats.ratio >= 1024 {
            return Some(1);
        }
        let weight = 1 + stats.ratio;
        if dice.throw() > weight {
            stats.update(0, now, rev);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    /// It has looked: `weight` if it got a task, else 0.
    pub(super) fn newidle_looked(&mut self, cpu: CpuId, level: usize, weight: u32) {
        let (now, rev) = (self.m.sched_clock(), self.m.rev);
        if self.m.ni_random.is_some() {
            self.m.cpus[cpu.index()].sched_domains[level].newidle.update(weight, now, rev);
        }
    }
}
