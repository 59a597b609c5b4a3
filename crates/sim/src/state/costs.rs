//! What is not free, where a setting says so (`time/cost.rs`).

use crate::state::machine::Machine;
use risetime_kernel::units::{CpuId, Span};

/// What things cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Some switch costs something.
    pub(crate) switches: bool,
    pub(crate) switch: Span,
    pub(crate) cold: Span,
    pub(crate) slack: Span,
    pub(crate) memory_bound: u64,
    /// [`FULL`]: threads take nothing from each other.
    pub(crate) smt_speed: u64,
}

pub(crate) const FULL: u64 = 1024;

impl Costs {
    /// The speed of work, part of which waits for memory, on a CPU whose clock makes it `speed`, at most
    /// `highest`. Rounding: down.
    pub(crate) fn bound(&self, speed: u64, highest: u64) -> u64 {
        if self.memory_bound == 0 {
            return speed;
        }
        // 1024 / ((1024 - m) / speed + m / highest)
        let (speed, highest) = (u128::from(speed), u128::from(highest));
        let (m, full) = (u128::from(self.memory_bound), u128::from(FULL));
        let slowed = full * speed * highest / ((full - m) * highest + m * speed).max(1);
        (slowed as u64).max(1)
    }
}

impl Machine {
    /// Work per ns on `cpu`, see [`SPEED_SHIFT`](crate::state::machine::SPEED_SHIFT).
    pub(crate) fn speed_of(&self, cpu: CpuId) -> u64 {
        let speed = self.domain_of(cpu).speed;
        if self.cpu(cpu).shares_core {
            return ((u128::from(speed) * u128::from(self.costs.smt_speed)) / u128::from(FULL))
                .max(1) as u64;
        }
        speed
    }
}
