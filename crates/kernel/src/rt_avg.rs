//! Average of the time that classes above the fair one took of a CPU, as kernels before 4.19 kept
//! it.
//!
//! ```text
//!  rt_avg      += time of RT and deadline tasks and of interrupts · frequency scale
//!  rt_avg      /= 2          once in each half of sched_time_avg_ms (500 ms of 1 s)
//!  scale_rt_capacity = 1024 - rt_avg / (half + time since it was last halved), at least 1
//! ```
//!
//! A mean over half a second and more: it neither sees a burst while it is there, nor forgets one soon. Since 4.19
//! it is a PELT signal instead ([`crate::pelt::update_rt_rq_load_avg`]), which counts for the frequency, too.
//!
//! Source: Linux 4.18 kernel/sched/core.c:sched_avg_update, sched.h:sched_rt_avg_update,
//! fair.c:scale_rt_capacity.

use crate::pelt::cap_scale;
use crate::units::{Capacity, Instant, Span};

/// `rq->rt_avg` and `rq->age_stamp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RtAvg {
    rt_avg: u64,
    age_stamp: Instant,
}

impl RtAvg {
    /// An average of a CPU on which no RT task ran up to `clock`.
    pub const fn new(clock: Instant) -> RtAvg {
        RtAvg { rt_avg: 0, age_stamp: clock }
    }

    /// Halves it for each `period` (`sched_avg_period`) that has passed at `clock`.
    pub fn sched_avg_update(&mut self, clock: Instant, period: Span) {
        while clock.since(self.age_stamp) > period {
            self.age_stamp += period;
            self.rt_avg /= 2;
        }
    }

    /// Adds `delta` of running time that ended at `clock`, at this frequency scale.
    pub fn sched_rt_avg_update(
        &mut self,
        clock: Instant,
        period: Span,
        delta: Span,
        freq_scale: u64,
    ) {
        self.rt_avg += delta.0 * freq_scale;
        self.sched_avg_update(clock, period);
    }

    /// The share of the CPU that RT tasks have used, at most 1024. Rounding: down. Source: rt.c:sched_rt_update_capacity_req
    /// of schedfreq.
    pub fn used(&self, clock: Instant, period: Span) -> u64 {
        let total = period.0 + clock.since(self.age_stamp).0;
        (self.rt_avg / total).min(1024)
    }

    /// The share of the CPU that RT tasks leave, of 1024. Rounding: what is used, down.
    pub fn scale_rt_capacity(&self, clock: Instant, period: Span) -> u64 {
        (1024 - self.used(clock, period)).max(1)
    }
}

/// The part `scale` of a CPU's capacity, at least 1. Source: Linux 4.18 fair.c:update_cpu_capacity.
pub const fn capacity_of_pre_4_19(capacity: Capacity, scale: u64) -> Capacity {
    let left = cap_scale(capacity.0, scale);
    Capacity(if left == 0 { 1 } else { left })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const HALF: Span = Span(500 * MS);

    #[test]
    fn a_burst_is_averaged_over_the_period_and_halved() {
        let mut avg = RtAvg::new(Instant(0));
        let scale = |avg: &RtAvg, ms: u64| avg.scale_rt_capacity(Instant(ms * MS), HALF);
        assert_eq!(scale(&avg, 0), 1024);
        // 100 ms at full speed, of 600: 170 of 1024.
        avg.sched_rt_avg_update(Instant(100 * MS), HALF, Span(100 * MS), 1024);
        assert_eq!(scale(&avg, 100), 1024 - 170);
        // At the period's end of a whole second, a tenth; then halved, of half a second again.
        assert_eq!(scale(&avg, 500), 1024 - 102);
        avg.sched_avg_update(Instant(500 * MS), HALF);
        assert_eq!(scale(&avg, 500), 1024 - 102, "not before it is over");
        avg.sched_avg_update(Instant(501 * MS), HALF);
        assert_eq!(scale(&avg, 501), 1024 - 102);
        avg.sched_avg_update(Instant(2001 * MS), HALF);
        assert_eq!(scale(&avg, 2001), 1024 - 12, "a sixteenth of 204");
    }

    #[test]
    fn at_half_the_frequency_half_the_time_counts() {
        let mut avg = RtAvg::new(Instant(0));
        avg.sched_rt_avg_update(Instant(100 * MS), HALF, Span(100 * MS), 512);
        assert_eq!(avg.scale_rt_capacity(Instant(100 * MS), HALF), 1024 - 85);
    }

    #[test]
    fn something_is_always_left() {
        let mut avg = RtAvg::new(Instant(0));
        for ms in 1..10_000 {
            avg.sched_rt_avg_update(Instant(ms * MS), HALF, Span(MS), 1024);
        }
        let scale = avg.scale_rt_capacity(Instant(9_999 * MS), HALF);
        assert!(scale <= 3, "{scale}");
        assert_eq!(capacity_of_pre_4_19(Capacity(400), 1), Capacity(1));
        assert_eq!(capacity_of_pre_4_19(Capacity(400), 512), Capacity(200));
    }
}
