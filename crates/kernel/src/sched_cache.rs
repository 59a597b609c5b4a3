//! Cache-aware scheduling (SCHED_CACHE, since 7.2): under which last-level cache a process has run most, and
//! whether its tasks should be gathered there.
//!
//! ```text
//!  epoch      llc_epoch_period jiffies; when one is over, what a CPU and a process on it have run is halved
//!  occupancy  of a process on a CPU, 2²⁰ = all that ran there: runtime · 2²⁰ / (cpu_runtime + 1)
//!  the LLC    with the largest sum of occupancies, if that is more than twice the preferred one's
//!  too many   nr_running_avg · threads · 1280 ≥ scale · CPUs of the LLC · 1024: no preference
//!  fits       util · 100 < capacity · llc_overaggr_pct, · 3/2 where a core has one thread
//! ```
//!
//! The same in 7.2 and 7.3. Source: kernel/sched/fair.c, symbols named at each item.

use crate::fits::fits_capacity;
use crate::units::{Capacity, Util};
use crate::weight::NICE_0_LOAD;

/// Tunables of what it takes to gather tasks, and to leave them alone
/// (`/sys/kernel/debug/sched/llc_balancing`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knobs {
    /// `aggr_tolerance`: 0 = nobody is gathered, 1 = as many threads as an LLC has CPUs, to 100 = any number.
    pub aggr_tolerance: u32,
    /// `epoch_period`, in jiffies.
    pub epoch_period: u64,
    /// `epoch_affinity_timeout`, in epochs: of a process of which no task has seen a tick for longer, nobody
    /// knows where it belongs.
    pub epoch_affinity_timeout: u64,
    /// `overaggr_pct`: up to which util, in percent of its capacity, an LLC takes in more.
    pub overaggr_pct: u64,
    /// `imb_pct`: by how many percent one LLC may be busier than the other.
    pub imb_pct: u64,
    /// `cpu_smt_num_threads`: threads of a core.
    pub smt_threads: u64,
}

impl Knobs {
    /// The kernel's own on a machine with `hz` ticks a second and so many threads a core.
    pub const fn of(hz: u32, smt_threads: u64) -> Knobs {
        Knobs {
            aggr_tolerance: 1,
            // EPOCH_PERIOD, written for 10 ms and rounded down: 8 ms at 250 Hz, 0 below 100 Hz.
            epoch_period: hz as u64 / 100,
            epoch_affinity_timeout: 5,
            overaggr_pct: 50,
            imb_pct: 20,
            smt_threads,
        }
    }

    /// The length of an epoch in jiffies, at least one.
    pub fn period(&self) -> u64 {
        self.epoch_period.max(1)
    }

    /// The factor by which the size of an LLC is multiplied before a process is held against it;
    /// `None`: without limit (`get_sched_cache_scale`).
    pub const fn scale(&self, mul: u64) -> Option<u64> {
        match self.aggr_tolerance {
            0 => Some(0),
            1..100 => Some(1 + (self.aggr_tolerance as u64 - 1) * mul),
            _ => None,
        }
    }

    /// Whether a process of several threads, `nr_running_avg` of which run, is too big for an LLC of so many CPUs
    /// (`invalid_llc_nr`).
    pub fn invalid_llc_nr(&self, nr_running_avg: u64, llc_size: u64) -> bool {
        let Some(scale) = self.scale(1) else { return false };
        let threads = Util(nr_running_avg.wrapping_mul(self.smt_threads));
        !fits_capacity(threads, Capacity(scale * llc_size))
    }

    /// Whether an LLC of this util takes in more (`fits_llc_capacity`).
    pub const fn fits_llc_capacity(&self, util: u64, capacity: u64) -> bool {
        let pct = self.overaggr_pct;
        let pct = if self.smt_threads == 1 { pct * 3 / 2 } else { pct };
        util * 100 < capacity * pct
    }

    /// Whether `a` is noticeably more than `b` (`util_greater`).
    const fn util_greater(&self, a: u64, b: u64) -> bool {
        a * 100 > b * (100 + self.imb_pct)
    }

    /// Whether a task of `util` may go from one LLC to another, of which one is what it prefers: with `to_pref` where
    /// it goes. (`can_migrate_llc`)
    pub const fn can_migrate_llc(
        &self,
        src: LlcStats,
        dst: LlcStats,
        util: u64,
        to_pref: bool,
    ) -> LlcMig {
        let (from, to) = (src.util_avg.saturating_sub(util), dst.util_avg + util);
        let fits = self.fits_llc_capacity(to, dst.capacity);
        let left_fits = self.fits_llc_capacity(from, src.capacity);
        if !fits && !left_fits {
            return LlcMig::Unrestricted;
        }
        let forbidden = if to_pref {
            !fits && self.util_greater(to, from)
        } else {
            left_fits || !self.util_greater(from, to)
        };
        if forbidden { LlcMig::Forbid } else { LlcMig::Llc }
    }
}

/// State of an LLC as load balancing has last seen it (`sched_domain_shared`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlcStats {
    /// The util of its CPUs.
    pub util_avg: u64,
    /// Summed capacity of the CPUs.
    pub capacity: u64,
}

/// Verdict of a process's preference on a move (`enum llc_mig`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlcMig {
    /// The move goes against the preference, and is not to happen.
    Forbid,
    /// The preference asks for the move.
    Llc,
    /// Both LLCs are busy, or the move is about something else: balancing goes on as without caches.
    Unrestricted,
}

/// Time that fair tasks ran on a CPU (`rq->cpu_runtime`, `cpu_epoch`, `cpu_epoch_next`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuEpoch {
    /// Running time in ns, halved each epoch.
    pub runtime: u64,
    /// Number of the epoch.
    pub epoch: u64,
    /// End of the epoch, in jiffies.
    pub next: u64,
}

/// Time that threads of a process ran on a CPU (`struct sched_cache_time`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheTime {
    /// Running time in ns, halved each epoch.
    pub runtime: u64,
    /// Epoch up to which it is halved.
    pub epoch: u64,
}

/// `__shr_u64`
const fn shr(value: u64, n: u64) -> u64 {
    if n >= 64 { 0 } else { value >> n }
}

impl CpuEpoch {
    /// Brings both up to now: one epoch for each `period` begun since `next` (`__update_mm_sched`).
    pub fn update(&mut self, process: &mut CacheTime, jiffies: u64, period: u64) {
        if jiffies > self.next {
            let n = (jiffies - self.next).div_ceil(period);
            self.epoch += n;
            self.next += n * period;
            self.runtime = shr(self.runtime, n);
        }
        let n = self.epoch.wrapping_sub(process.epoch);
        process.epoch = self.epoch;
        process.runtime = shr(process.runtime, n);
    }

    /// Adds `delta` ns that a task of the process has run.
    pub fn account(&mut self, process: &mut CacheTime, delta: u64) {
        process.runtime += delta;
        self.runtime += delta;
    }

    /// The process's share of what ran here, of 2²⁰. Rounding: down (`fraction_mm_sched`).
    pub fn fraction(&self, process: &CacheTime) -> u64 {
        NICE_0_LOAD.wrapping_mul(process.runtime) / (self.runtime + 1)
    }
}

/// The average number of running threads of a process, after one more sample: a step of the
/// difference, halved on LLCs of up to eleven CPUs, and by up to eight on larger ones. Rounding:
/// towards what it was, so that a difference of one moves nothing. (`update_avg_scale`)
pub fn update_avg_scale(avg: u64, sample: u64, llc_size: u64) -> u64 {
    let divisor = (llc_size >> 2).clamp(2, 8) as i64;
    let step = sample.wrapping_sub(avg) as i64 / divisor;
    avg.wrapping_add_signed(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOBS: Knobs = Knobs::of(250, 1);

    #[test]
    fn an_epoch_has_ten_ms_as_far_as_jiffies_go() {
        let period = |hz| Knobs::of(hz, 1).period();
        assert_eq!([1000, 300, 250, 100, 64].map(period), [10, 3, 2, 1, 1]);
    }

    #[test]
    fn runtime_is_halved_with_each_epoch_begun() {
        let (mut rq, mut p) = (CpuEpoch { next: 10, ..Default::default() }, CacheTime::default());
        rq.update(&mut p, 10, 2);
        rq.account(&mut p, 4_000_000);
        assert_eq!((rq.epoch, rq.next, p.runtime), (0, 10, 4_000_000), "not over yet");
        rq.update(&mut p, 11, 2);
        assert_eq!((rq.epoch, rq.next, p.runtime), (1, 12, 2_000_000), "a period begun is one");
        rq.update(&mut p, 17, 2);
        assert_eq!((rq.epoch, rq.next, p.runtime, rq.runtime), (4, 18, 250_000, 250_000));
        // Another process finds the epoch gone on, and falls behind by all of them.
        let mut other = CacheTime { runtime: 1000, epoch: 1 };
        rq.update(&mut other, 17, 2);
        assert_eq!((other.runtime, other.epoch), (125, 4));
        rq.update(&mut p, 500, 2);
        assert_eq!((rq.epoch, p.runtime, rq.runtime), (245, 0, 0));
    }

    #[test]
    fn whoever_ran_alone_has_all_of_a_cpu_however_little_that_was() {
        let of = |own: u64, all: u64| {
            CpuEpoch { runtime: all, ..Default::default() }
                .fraction(&CacheTime { runtime: own, epoch: 0 })
        };
        // 2²⁰ · r / (r + 1)
        assert_eq!(of(0, 0), 0);
        assert_eq!(of(1, 1), 524_288);
        assert_eq!(of(3, 3), 786_432);
        assert_eq!(of(1_000_000, 1_000_000), 1_048_574);
        assert_eq!(of(1_000_000, 4_000_000), 262_143);
    }

    #[test]
    fn as_many_threads_as_an_llc_has_room_for() {
        let too_many = |knobs: Knobs, avg, size| knobs.invalid_llc_nr(avg, size);
        // avg · 1280 < size · 1024: 3 on 4 CPUs, 1 on 2, 6 on 8.
        for (size, most) in [(1, 0), (2, 1), (4, 3), (8, 6), (16, 12)] {
            assert!(!too_many(KNOBS, most, size) && too_many(KNOBS, most + 1, size), "{size}");
        }
        // Threads of a core count for each other, and the tolerance multiplies the CPUs: 1 + 2.
        assert!(too_many(Knobs { smt_threads: 2, ..KNOBS }, 2, 4));
        let tolerant = Knobs { aggr_tolerance: 3, ..KNOBS };
        assert!(!too_many(tolerant, 9, 4) && too_many(tolerant, 10, 4));
        assert!(too_many(Knobs { aggr_tolerance: 0, ..KNOBS }, 0, 4), "nobody");
        assert!(!too_many(Knobs { aggr_tolerance: 100, ..KNOBS }, 1000, 4), "anybody");
        assert_eq!(Knobs { aggr_tolerance: 99, ..KNOBS }.scale(256), Some(25_089));
    }

    #[test]
    fn the_average_of_threads_moves_by_half_a_difference_towards_what_it_was() {
        let after = |samples: &[u64], size| {
            samples.iter().fold(0, |avg, sample| update_avg_scale(avg, *sample, size))
        };
        assert_eq!(after(&[1, 1, 1], 4), 0);
        assert_eq!(after(&[2, 2, 2], 4), 1);
        assert_eq!(after(&[4, 4, 4], 4), 3);
        assert_eq!(after(&[4, 4, 1, 1, 1], 4), 2, "3, less 2 / 2, and a difference of 1 is none");
        assert_eq!(after(&[16, 16], 16), 7, "a quarter: 4, and 12 / 4 more");
        assert_eq!(after(&[16], 64), 2, "an eighth at least");
    }

    /// As in the two tables of a comment there, for cores of several threads, 50 %. Those count 50 % as taking in more,
    /// and 40 % beside 60 as alike; this is the code.
    #[test]
    fn what_may_move_by_how_busy_both_are() {
        let knobs = Knobs { smt_threads: 2, ..KNOBS };
        let at = |percent: u64| LlcStats { util_avg: percent * 10, capacity: 1000 };
        let row = |src, to_pref| {
            let of = |dst| match knobs.can_migrate_llc(at(src), at(dst), 0, to_pref) {
                LlcMig::Forbid => 'N',
                LlcMig::Llc => 'Y',
                LlcMig::Unrestricted => 'G',
            };
            [30, 40, 50, 60].map(of).iter().collect::<alloc::string::String>()
        };
        let to = [30, 40, 50, 60].map(|src| row(src, true));
        assert_eq!(to, ["YYNN", "YYNN", "YYGG", "YYGG"]);
        let away = [30, 40, 50, 60].map(|src| row(src, false));
        assert_eq!(away, ["NNNN", "NNNN", "YYGG", "YYGG"]);
    }

    #[test]
    fn a_core_of_one_thread_takes_half_as_much_again() {
        let fits = |knobs: Knobs, util| knobs.fits_llc_capacity(util, 1000);
        assert!(fits(KNOBS, 749) && !fits(KNOBS, 750));
        let two = Knobs { smt_threads: 2, ..KNOBS };
        assert!(fits(two, 499) && !fits(two, 500));
        // The task counts where it goes, not where it was.
        let of = |util| LlcStats { util_avg: util, capacity: 1000 };
        assert_eq!(KNOBS.can_migrate_llc(of(700), of(600), 100, true), LlcMig::Llc);
        assert_eq!(KNOBS.can_migrate_llc(of(700), of(600), 200, true), LlcMig::Forbid);
        assert_eq!(KNOBS.can_migrate_llc(of(950), of(800), 100, true), LlcMig::Unrestricted);
    }
}
