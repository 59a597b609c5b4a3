//! DVFS headroom: how much more than its util a CPU is given, so that it can grow until the next
//! chance to change the frequency.
//!
//! ```text
//!  mainline       util + util/4                                  ([`crate::schedutil::map_util_perf`])
//!  percent        util + util · percent/100                      mainline's with another share
//!  update_delay   A(util, delay)                                            RFC 00/16, patch 5
//!                 delay = max(rate_limit_us, tick; or the slice, if shorter and somebody waits)
//!  waiting_avg    at least util + waiting_avg                               patch 13
//!  decaying       util itself if it is below what it was at the last look   patch 14
//! ```
//!
//! A(u, d) is [`crate::approximate::approximate_util_avg`]. The time is that of full speed: on a slow
//! CPU util grows less. Left out: other governors, which would have to say their own delay.
//!
//! Source: RFC 00/16 "Better manage system response time" (August 2024), sugov_apply_dvfs_headroom.

use crate::approximate::approximate_util_avg;
use crate::pelt::Decay;
use crate::schedutil::map_util_perf;
use crate::units::Util;

/// The longest time until util or frequency can next change, in µs.
///
/// `nr_running`: fair tasks runnable on the CPU; `slice_ns`: of its current task. A context switch
/// comes after a slice at the latest only if there is somebody to switch to.
/// Source: RFC 00/16, patch 5, sugov_apply_dvfs_headroom.
pub fn dvfs_delay_us(
    nr_running: usize,
    slice_ns: u64,
    tick_us: u64,
    dvfs_update_delay_us: u64,
) -> u64 {
    let update = if nr_running > 1 { tick_us.min(slice_ns / 1000) } else { tick_us };
    update.max(dvfs_update_delay_us)
}

/// Adds `percent` of `util` to it; 25 is mainline's quarter, to the last bit. Rounding: down.
pub const fn map_util_perf_percent(util: Util, percent: u64) -> Util {
    Util(util.0.wrapping_add(util.0.wrapping_mul(percent) / 100))
}

/// Room that a CPU is given to grow into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Mainline's.
    Quarter,
    /// Headroom of so many percent of util.
    Percent(u64),
    /// Headroom of what util grows in so many µs ([`dvfs_delay_us`]).
    DelayUs(u64),
}

/// Parts that a CPU's headroom is made of.
#[derive(Clone, Copy, Debug)]
pub struct Headroom<'a> {
    /// PELT's decay.
    pub decay: &'a Decay,
    /// Room unless the other two say otherwise.
    pub growth: Growth,
    /// The runqueue's `waiting_avg`; `None`: it does not count.
    pub waiting_avg: Option<Util>,
    /// The util of the last look at this CPU (`last_update_util`); `None`: it does not count.
    pub last_update_util: Option<Util>,
}

/// The rule that decided about a headroom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// [`Growth`].
    Growth,
    /// Tasks that wait.
    Waiting,
    /// Util falls: none at all.
    Decaying,
}

impl Headroom<'_> {
    /// `util` with its headroom, and what decided. Rounding: down. Wraps at 64 bits.
    /// Source: RFC 00/16, patches 5, 13 and 14, sugov_apply_dvfs_headroom.
    pub fn sugov_apply_dvfs_headroom(&self, util: Util) -> (Util, Decided) {
        if self.last_update_util.is_some_and(|last| util < last) {
            return (util, Decided::Decaying);
        }
        let grown = match self.growth {
            Growth::Quarter => map_util_perf(util),
            Growth::Percent(percent) => map_util_perf_percent(util, percent),
            Growth::DelayUs(us) => approximate_util_avg(self.decay, util, us),
        };
        match self.waiting_avg.map(|waiting| Util(util.0.wrapping_add(waiting.0))) {
            Some(waited) if waited > grown => (waited, Decided::Waiting),
            _ => (grown, Decided::Growth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Headroom<'_> = Headroom {
        decay: &Decay::MS32,
        growth: Growth::Quarter,
        waiting_avg: None,
        last_update_util: None,
    };

    fn apply(headroom: Headroom<'_>, util: u64) -> (u64, Decided) {
        let (util, decided) = headroom.sugov_apply_dvfs_headroom(Util(util));
        (util.0, decided)
    }

    #[test]
    fn the_longest_delay_counts() {
        assert_eq!(dvfs_delay_us(1, 700_000, 1000, 0), 1000);
        assert_eq!(dvfs_delay_us(2, 700_000, 1000, 0), 700, "somebody waits");
        assert_eq!(dvfs_delay_us(2, 2_800_000, 1000, 0), 1000);
        assert_eq!(dvfs_delay_us(0, 0, 4000, 2000), 4000);
        assert_eq!(dvfs_delay_us(2, 0, 4000, 10_000), 10_000);
    }

    #[test]
    fn headroom_shrinks_as_util_grows_and_mainlines_does_not() {
        let delay = |us| Headroom { growth: Growth::DelayUs(us), ..NONE };
        let table = [
            // util, a tick of 1 ms, of 4 ms, a rate limit of 10 ms, mainline
            (0, 21, 83, 195, 0),
            (100, 119, 174, 276, 125),
            (459, 470, 504, 566, 573),
            (1000, 1000, 1001, 1004, 1250),
        ];
        for (util, ms, ms4, ms10, mainline) in table {
            let found = [1000, 4000, 10_000].map(|us| apply(delay(us), util).0);
            assert_eq!(found, [ms, ms4, ms10], "{util}");
            assert_eq!(apply(NONE, util), (mainline, Decided::Growth), "{util}");
        }
    }

    #[test]
    fn a_quarter_is_25_percent() {
        for util in (0..=4096).chain([u64::from(u32::MAX)]).map(Util) {
            assert_eq!(map_util_perf_percent(util, 25), map_util_perf(util), "{util}");
            assert_eq!(map_util_perf_percent(util, 0), util);
        }
        let percent = |p| apply(Headroom { growth: Growth::Percent(p), ..NONE }, 105).0;
        assert_eq!([9, 10, 100, 400].map(percent), [114, 115, 210, 525], "rounded down");
    }

    #[test]
    fn waiting_counts_if_it_is_more() {
        let waiting = |w| Headroom { waiting_avg: Some(Util(w)), ..NONE };
        assert_eq!(apply(waiting(25), 100), (125, Decided::Growth));
        assert_eq!(apply(waiting(26), 100), (126, Decided::Waiting));
    }

    #[test]
    fn a_falling_util_gets_none_and_an_equal_one_does() {
        let last =
            |u| Headroom { last_update_util: Some(Util(u)), waiting_avg: Some(Util(900)), ..NONE };
        assert_eq!(apply(last(101), 100), (100, Decided::Decaying));
        assert_eq!(apply(last(100), 100), (1000, Decided::Waiting));
    }
}
