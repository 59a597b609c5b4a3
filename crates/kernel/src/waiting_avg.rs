//! waiting_avg: how long a task was runnable without running, recently.
//!
//! ```text
//!  PELT of the state "queued, runnable, not running", beside util_avg and on the same clock:
//!    util_avg 300, waiting_avg 200     it ran 30 % and waited 20 % of the time
//!  a CPU's is the sum over the tasks queued on it
//! ```
//!
//! It tells waiting from work, where `runnable_avg` holds both and the estimate of either. The
//! clock is `clock_pelt`, as posted; the series says that plain time would be better. Left out:
//! groups.
//!
//! `DEVIATES(waiting_avg-sum)`: a CPU's `waiting_avg` is the sum over its queued tasks at any time. The
//! series adds and subtracts where tasks are queued, dequeued and updated; its review doubts that the
//! balance stays right, and not all of its text is known here.
//!
//! Source: RFC 00/16 "Better manage system response time" (August 2024), patch 12.

use crate::pelt::{Decay, SchedAvg, get_pelt_divider, update_load_avg, update_load_sum};
use crate::units::{ClockPelt, Util};

/// A task's waiting time, averaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingAvg {
    /// PELT's sums, with waiting in the place of running.
    avg: SchedAvg,
}

impl WaitingAvg {
    /// `waiting_avg`: 1024 × share of time waiting.
    pub const fn value(&self) -> Util {
        self.avg.util_avg
    }

    /// Brings it up to `now`; `waiting`: it waited during the time that passed. True if a period
    /// boundary was crossed and the average is new.
    pub fn update(&mut self, decay: &Decay, now: ClockPelt, waiting: bool) -> bool {
        let state = waiting as u64;
        let crossed = update_load_sum(decay, now, &mut self.avg, state, state, waiting);
        if crossed {
            update_load_avg(decay, &mut self.avg, 1);
        }
        crossed
    }

    /// Ages it to where `se` has been aged meanwhile, asleep. True if the average is new.
    pub fn catch_up(&mut self, decay: &Decay, se: &SchedAvg) -> bool {
        let behind = self.avg.last_update_time != se.last_update_time;
        behind && self.update(decay, se.last_update_time, false)
    }

    /// Sets the average to the place in the period that `se` has taken in the runqueue which the
    /// task joins.
    pub fn attach(&mut self, decay: &Decay, se: &SchedAvg) {
        let avg = &mut self.avg;
        (avg.last_update_time, avg.period_contrib) = (se.last_update_time, se.period_contrib);
        avg.util_sum = (avg.util_avg.0 * u64::from(get_pelt_divider(decay, avg))) as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pelt::update_load_avg_se;
    use crate::units::Weight;

    /// Running, waiting and sleeping in turns: what is runnable is one or the other.
    #[test]
    fn running_and_waiting_together_are_runnable() {
        let decay = &Decay::MS32;
        let (mut se, mut waiting) = (SchedAvg::default(), WaitingAvg::default());
        let mut now = ClockPelt(1 << 30);
        se.last_update_time = now;
        waiting.attach(decay, &se);
        let (mut most, mut least) = (0, u64::MAX);
        for step in 0..900u64 {
            now.0 += 100_000 + (step * 7919) % 3_000_000;
            let (on_rq, running) = (step % 5 != 0, step % 3 == 0);
            let crossed = update_load_avg_se(
                decay,
                now,
                &mut se,
                Weight(1024),
                on_rq,
                u64::from(on_rq),
                on_rq && running,
            );
            assert_eq!(waiting.update(decay, now, on_rq && !running), crossed, "step {step}");
            let sum = se.util_avg.0 + waiting.value().0;
            // Two sums are rounded down where one is.
            assert!(sum <= se.runnable_avg.0 && se.runnable_avg.0 <= sum + 2, "step {step}");
            if step > 100 {
                most = most.max(waiting.value().0);
                least = least.min(waiting.value().0);
            }
        }
        assert!(least > 100 && most > least + 100 && most < 1000, "{least} to {most}");
    }

    #[test]
    fn it_moves_with_its_task() {
        let decay = &Decay::MS32;
        let mut waiting = WaitingAvg::default();
        let at = |us: u64, contrib| SchedAvg {
            last_update_time: ClockPelt(us << 10),
            period_contrib: contrib,
            ..SchedAvg::default()
        };
        waiting.attach(decay, &at(1000, 0));
        waiting.update(decay, ClockPelt(40_000 << 10), true);
        let before = waiting.value();
        assert!(before > Util(400));
        // On another CPU's clock, elsewhere in the period.
        waiting.attach(decay, &at(7_000_000, 900));
        assert_eq!(waiting.value(), before);
        assert!(!waiting.update(decay, ClockPelt(7_000_123 << 10), false), "no boundary yet");
        assert!(waiting.update(decay, ClockPelt(7_000_124 << 10), false));
        assert!(waiting.value() < before && waiting.value().0 + 12 > before.0);
    }
}
