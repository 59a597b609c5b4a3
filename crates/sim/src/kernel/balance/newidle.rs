//! Whether a CPU that goes idle looks at a domain: NI_RANDOM's dice ([`crate::state::dice`]).
//!
//! Source: kernel/sched/fair.c:`sched_balance_newidle`.

use crate::kernel::rq::Rq;
use risetime_kernel::switches::Switch;

impl Rq<'_, '_> {
    /// Whether `cpu` looks at its domain of that level now, and for how many looks that counts.
    pub(super) fn newidle_dice(&mut self, level: usize) -> Option<u32> {
        let cpu = self.cpu;
        let (now, rate) = (self.m().sched_clock(), self.m().slots.switches.on(Switch::NiRate));
        let ratio = self.m().cpu(cpu).sched_domains[level].newidle.ratio;
        if self.m().ni_random.is_none() || ratio >= 1024 {
            return Some(1);
        }
        let weight = 1 + ratio;
        if self.dice() > weight {
            self.c().sched_domains[level].newidle.update(0, now, rate);
            return None;
        }
        Some((1024 + weight / 2) / weight)
    }

    /// Accounts a newidle look at this level: `weight` if it got a task, else 0.
    pub(super) fn newidle_looked(&mut self, level: usize, weight: u32) {
        let (now, rate) = (self.m().sched_clock(), self.m().slots.switches.on(Switch::NiRate));
        if self.m().ni_random.is_some() {
            self.c().sched_domains[level].newidle.update(weight, now, rate);
        }
    }
}
