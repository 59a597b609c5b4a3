//! The short way to what a CPU needs, on machines where nothing bends it: most of them.
//!
//! ```text
//! cfs    max(util_avg, util_est, runnable_avg where contention counts)      at most the capacity
//! util   cfs + rt + dl                                                      at most the capacity
//! perf   max(min(1.25 · util, capacity), min)
//! min    bandwidth promised to deadline tasks; all of it while an RT task is runnable
//! ```
//!
//! That is [`Machine::effective`] and [`Machine::dvfs_util`] with everything left out that is not
//! there: clamps, interrupts, caps, the switches of the response-time series, causes that are absent,
//! kernels before 6.12. Placement and schedutil ask for it hundreds of thousands of times in a minute
//! of a phone; debug builds compare each answer with the long way's.

use crate::state::machine::{Cpu, Machine};
use crate::state::needs::{Kept, Needs};
use risetime_kernel::features;
use risetime_kernel::fits::{Fit, fits_capacity};
use risetime_kernel::schedutil::{map_util_perf, sugov_effective_cpu_perf};
use risetime_kernel::units::Util;

/// Whether the short way is open, but for mechanisms that bend it (`Mechanism::bends`): no clamps, and a kernel in which all
/// has the form of 6.12, as what is boosted got it last.
/// Hooks may come later ([`Machine::is_plain`]).
pub(crate) fn is_plain(m: &Machine) -> bool {
    m.rev.has(features::CPU_UTIL_BOOST) && !m.classes.uclamp_used && m.rules.stock_frequency()
}

impl Machine {
    /// Whether the short way leads to the same.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain && self.hooks.is_none()
    }
}

impl Cpu {
    /// `cpu_util_cfs`.
    #[inline]
    pub(crate) fn plain_util_cfs(&self) -> Util {
        let cfs = self.plain_cfs();
        cfs.util_avg.max(cfs.util_est).min(Util(self.capacity.0))
    }

    /// `util_fits_cpu` without clamps.
    #[inline]
    pub(crate) fn plain_fits(&self, util: Util) -> Fit {
        let fits = match fits_capacity(util, self.cpu_capacity) {
            true => Fit::Fits,
            false => Fit::DoesNotFit,
        };
        debug_assert_eq!(fits, self.util_fits(util, Util(0), Util(1024)));
        fits
    }

    /// Returns what the CPU needs as it is.
    #[inline]
    pub(crate) fn plain_kept(&self) -> Kept {
        let mut kept = self.kept.get();
        if kept.generation != self.needs_gen {
            let (cfs, capacity) = (self.plain_cfs(), Util(self.capacity.0));
            let util = cfs.util_avg.max(cfs.util_est).min(capacity);
            let boosted = util.max(cfs.runnable_avg.min(capacity));
            let (needs, busy) = (self.plain_needs(boosted, capacity), self.plain_util(util));
            kept = Kept { generation: self.needs_gen, needs, busy };
            self.kept.set(kept);
        }
        kept
    }

    /// `cfs`, which is at most the capacity, with what the other classes use: the same.
    #[inline]
    pub(crate) fn plain_util(&self, cfs: Util) -> Util {
        (cfs + self.rt_avg.util_avg + self.dl_avg.util_avg).min(Util(self.capacity.0))
    }

    /// `cpu_bw_dl`.
    #[inline]
    pub(crate) fn plain_bw_dl(&self) -> Util {
        Util(self.dl.running_bw.wrapping_mul(1024) >> 20)
    }

    /// The needs that this util of the fair class makes schedutil ask for; `max`: no more than
    /// this.
    #[inline]
    pub(crate) fn plain_needs(&self, cfs: Util, max: Util) -> Needs {
        let util = self.plain_util(cfs);
        let mut min = self.plain_bw_dl();
        if !self.rt.is_empty() {
            min = min.max(Util(self.capacity.0));
        }
        Needs { wanted: map_util_perf(util), perf: sugov_effective_cpu_perf(util, min, max), min }
    }
}
