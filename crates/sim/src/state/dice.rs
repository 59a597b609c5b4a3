//! NI_RANDOM: a CPU that goes idle looks for work as often as that has paid off so far.
//!
//! ```text
//! ratio   of the last 512 to 1024 looks at this domain: how many brought a task, of 1024, and more
//!         the rarer looks are (NI_RATE, since 7.2: 256 a second that they lasted)
//! dice    0 … 1023 > 1 + ratio: not this time
//! stats   a look that the dice let through counts for all that they did not: 1024 / (1 + ratio)
//! ```
//!
//! 6.19 brought it, and the stable series of long-term kernels: `features::NI_RANDOM`. Off unless the
//! setting `ni_random` asks for it, also in the virtual machine: with it, every run is another, and a run's
//! notes say that it is off.
//! DEVIATES(ni_random_dice): with `ni_random=1` the dice of newidle balancing come from one generator,
//! seeded by the experiment's seed, not from one for each CPU seeded at boot. The same distribution,
//! other runs.
//! Source: kernel/sched/fair.c:`sched_balance_newidle`, `update_newidle_stats`.

use crate::state::draw::{GAMMA, mix};
use risetime_kernel::units::Instant;

/// Results of a domain's looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewidleStats {
    call: u32,
    success: u32,
    pub(crate) ratio: u32,
    stamp: Instant,
}

impl Default for NewidleStats {
    fn default() -> NewidleStats {
        NewidleStats { call: 512, success: 256, ratio: 512, stamp: Instant(0) }
    }
}

impl NewidleStats {
    /// `update_newidle_stats`; `ni_rate`: the switch of that name.
    pub(crate) fn update(&mut self, success: u32, now: Instant, ni_rate: bool) {
        self.call += 1;
        self.success += success;
        if self.call >= 1024 {
            let passed = if ni_rate { now.since(self.stamp).0 >> 22 } else { 0 };
            self.stamp = now;
            self.ratio = (passed + u64::from(self.success)).min(1024) as u32;
            self.call /= 2;
            self.success /= 2;
        }
    }
}

/// The dice: SplitMix64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Draws a number from 0 to 1023.
    pub(crate) fn throw(&mut self) -> u32 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(GAMMA);
        (drawn % 1024) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_in_vain_become_rare_and_good_ones_are_always_let_through() {
        let (mut vain, mut good) = (NewidleStats::default(), NewidleStats::default());
        // So often that NI_RATE adds nothing.
        for i in 0..20_000 {
            vain.update(0, Instant(i), true);
            good.update(1, Instant(i), true);
        }
        assert_eq!(vain.ratio, 0);
        assert!(good.ratio > 1000, "{good:?}");
        // 512 looks in 2 s: half of what is thrown.
        let rare = |ni_rate| {
            let mut rare = NewidleStats::default();
            for i in 0..20_000 {
                rare.update(0, Instant(i * (2 << 30) / 512), ni_rate);
            }
            rare.ratio
        };
        assert_eq!(rare(true), 512);
        assert_eq!(rare(false), 0, "no NI_RATE");
    }

    #[test]
    fn the_dice_are_fair_and_the_seed_decides() {
        let mut dice = Dice::new(1);
        let below = (0..100_000).filter(|_| dice.throw() <= 512).count();
        assert!((49_500..50_800).contains(&below), "{below}");
        let of = |seed| {
            let mut dice = Dice::new(seed);
            (0..8).map(|_| dice.throw()).collect::<Vec<_>>()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }
}
