//! The clocks of a runqueue: wall time, task time, and the time PELT counts in.
//!
//! ```text
//!  clock       += delta                                  wall time
//!  clock_task  += delta - irq                            without interrupt time
//!  clock_pelt  += ((delta - irq) · capacity >> 10) · freq_scale >> 10        while busy
//!  clock_pelt   = clock_task                                                 while idle
//!  rq_clock_pelt = clock_pelt - lost_idle_time
//!
//!  wall          | 1| 2| 3| 4| 5| 6| 7| 8| 9|10|11|12|13|14|
//!  full speed    ------******---------------******----------
//!  half speed    ------************---------************----
//!  clock_pelt    | 1| 2|    3|    4| 7| 8| 9|   10|   11|14|     (half speed)
//! ```
//!
//! A slow CPU stretches its own time: the same work counts the same everywhere. The time it fell
//! behind is made up when it goes idle, as idle time, unless there never would have been any
//! (`lost_idle_time`).
//!
//! The scale read at an update applies to all the time since the update before. Left out: steal
//! time, CFS bandwidth throttling.
//!
//! Source: kernel/sched/pelt.h, kernel/sched/core.c:update_rq_clock_task.

use crate::pelt::{Decay, cap_scale};
use crate::units::{Capacity, ClockPelt, Instant, KHz, Span};

/// The clocks of one runqueue, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RqClock {
    /// `rq->clock`: wall time.
    pub clock: Instant,
    /// `rq->clock_task`: wall time without interrupts.
    pub clock_task: Instant,
    /// `rq->clock_pelt`: time scaled by speed; what PELT reads is [`RqClock::rq_clock_pelt`].
    pub clock_pelt: u64,
    /// Idle time there would not have been at full speed, left out of PELT's time.
    pub lost_idle_time: u64,
    /// `rq->clock_idle`: the clock at the last update while idle.
    pub clock_idle: Instant,
    /// `rq->clock_pelt_idle`: PELT's time at that update.
    pub clock_pelt_idle: ClockPelt,
}

impl RqClock {
    /// A runqueue's clocks, all at `start`.
    pub const fn new(start: Instant) -> RqClock {
        RqClock {
            clock: start,
            clock_task: start,
            clock_pelt: start.0,
            lost_idle_time: 0,
            clock_idle: start,
            clock_pelt_idle: ClockPelt(start.0),
        }
    }

    /// Moves all clocks on by `wall_delta`, `irq_delta` of which were interrupts (at most all).
    ///
    /// Source: core.c:update_rq_clock, update_rq_clock_task.
    pub fn update_rq_clock(
        &mut self,
        wall_delta: Span,
        irq_delta: Span,
        curr_is_idle: bool,
        cpu_capacity: Capacity,
        freq_scale: u64,
    ) {
        self.clock.0 = self.clock.0.wrapping_add(wall_delta.0);
        let delta = wall_delta.0 - irq_delta.0.min(wall_delta.0);
        self.update_rq_clock_pelt(delta, curr_is_idle, cpu_capacity, freq_scale);
    }

    /// Moves the task clock and PELT's clock on by `delta_ns` without interrupts; `clock` stays.
    ///
    /// Rounding: down after the capacity and down after the frequency. `freq_scale` is
    /// [`freq_scale`] of the current frequency. Source: pelt.h:update_rq_clock_pelt.
    #[inline]
    pub fn update_rq_clock_pelt(
        &mut self,
        delta_ns: u64,
        curr_is_idle: bool,
        cpu_capacity: Capacity,
        freq_scale: u64,
    ) {
        self.clock_task.0 = self.clock_task.0.wrapping_add(delta_ns);
        if curr_is_idle {
            self.sync_idle();
            return;
        }
        let scaled = cap_scale(cap_scale(delta_ns, cpu_capacity.0), freq_scale);
        self.clock_pelt = self.clock_pelt.wrapping_add(scaled);
    }

    /// Catches up with the task clock as the CPU goes idle, and decides whether the time it fell
    /// behind counts as idle time or is lost.
    ///
    /// It is lost when `util_sum`, the sum over the fair, RT and deadline signals (32 bits,
    /// wrapping), says the CPU had been busy all along. Source: pelt.h:update_idle_rq_clock_pelt.
    pub fn update_idle_rq_clock_pelt(&mut self, decay: &Decay, util_sum: u32) {
        let always_busy = (decay.pelt_min_divider() << 10) - decay.load_avg_max();
        if util_sum >= always_busy {
            let behind = self.clock_task.0.wrapping_sub(self.clock_pelt);
            self.lost_idle_time = self.lost_idle_time.wrapping_add(behind);
        }
        self.sync_idle();
    }

    /// The time of PELT on this runqueue. Source: pelt.h:rq_clock_pelt.
    #[inline]
    pub const fn rq_clock_pelt(&self) -> ClockPelt {
        ClockPelt(self.clock_pelt.wrapping_sub(self.lost_idle_time))
    }

    /// Sets PELT's clock to the task clock and notes both as those of the idle CPU. Source:
    /// pelt.h:_update_idle_rq_clock_pelt.
    fn sync_idle(&mut self) {
        self.clock_pelt = self.clock_task.0;
        self.clock_idle = self.clock;
        self.clock_pelt_idle = self.rq_clock_pelt();
    }
}

/// The frequency scale of a CPU at `cur`: cur · 1024 / max, rounded down; 1024 if `max` is 0.
///
/// Source: drivers/base/arch_topology.c:topology_set_freq_scale.
pub const fn freq_scale(cur: KHz, max: KHz) -> u64 {
    if max.0 == 0 {
        return 1024;
    }
    (cur.0 << 10) / max.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn busy(clock: &mut RqClock, ms: u64, capacity: u64, freq: u64) {
        clock.update_rq_clock(Span(ms * MS), Span(0), false, Capacity(capacity), freq);
    }

    #[test]
    fn a_period_takes_as_long_as_the_design_says() {
        // At 459/1024 and 600/2064 MHz one PELT period of 1.048576 ms lasts 8.07 ms.
        let scale = freq_scale(KHz(600_000), KHz(2_064_000));
        assert_eq!(scale, 297);
        let mut clock = RqClock::default();
        clock.update_rq_clock_pelt(8_070_000, false, Capacity(459), scale);
        assert!(clock.clock_pelt.abs_diff(1 << 20) < 1500, "{}", clock.clock_pelt);
        assert_eq!(freq_scale(KHz(5), KHz(0)), 1024, "no maximum known");
    }

    #[test]
    fn idle_makes_up_for_slowness_unless_there_was_no_idle_time() {
        let mut clock = RqClock::new(Instant(5 * MS));
        busy(&mut clock, 8, 512, 1024);
        assert_eq!(clock.rq_clock_pelt(), ClockPelt(9 * MS));
        let mut lost = clock;
        clock.update_idle_rq_clock_pelt(&Decay::MS32, 100);
        assert_eq!(clock.rq_clock_pelt(), ClockPelt(13 * MS), "caught up");
        assert_eq!(clock.lost_idle_time, 0);

        let full = (Decay::MS32.pelt_min_divider() << 10) - Decay::MS32.load_avg_max();
        lost.update_idle_rq_clock_pelt(&Decay::MS32, full);
        assert_eq!(lost.rq_clock_pelt(), ClockPelt(9 * MS), "goes on from where it was");
        assert_eq!(lost.lost_idle_time, 4 * MS);
        assert_eq!(lost.clock_pelt_idle, lost.rq_clock_pelt());
        lost.update_rq_clock(Span(MS), Span(0), true, Capacity(512), 1024);
        assert_eq!(lost.rq_clock_pelt(), ClockPelt(10 * MS), "idle time passes at full speed");
    }

    #[test]
    fn interrupts_take_at_most_the_time_there_was() {
        let mut clock = RqClock::default();
        clock.update_rq_clock(Span(10), Span(3), false, Capacity(1024), 1024);
        assert_eq!((clock.clock.0, clock.clock_task.0, clock.clock_pelt), (10, 7, 7));
        clock.update_rq_clock(Span(10), Span(30), false, Capacity(1024), 1024);
        assert_eq!((clock.clock.0, clock.clock_task.0, clock.clock_pelt), (20, 7, 7));
    }

    #[test]
    fn each_step_of_scaling_rounds_down() {
        let mut clock = RqClock::default();
        clock.update_rq_clock_pelt(1023, false, Capacity(1023), 1023);
        assert_eq!(clock.clock_pelt, 1021, "1023 · 1023 / 1024 = 1022.0…, then 1021.0…");
    }
}
