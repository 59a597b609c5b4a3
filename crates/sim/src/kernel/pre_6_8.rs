//! Conversion of util to a frequency before 6.8, when one number carried clamps and deadlines
//! along.
//!
//! ```text
//!  up to 6.7   util = clamp(cfs + rt), + dl bandwidth       freq = max · 1.25 · util / capacity
//!  from 6.8    util, min, max side by side                  perf = max(min, min(1.25 · util, max))
//! ```
//!
//! So the headroom came on top of the clamps: under `uclamp_max` 800 a busy CPU asks for 1000. The
//! energy estimate adds it likewise. Until 5.17
//! the clamps held neither the iowait boost back, nor did a capped CPU lower its frequency at once.
//! Source: Linux 6.1 kernel/sched/core.c:effective_cpu_util, cpufreq_schedutil.c:sugov_get_util,
//! sugov_iowait_apply.

use crate::kernel::governor::DomainView;
use crate::state::machine::Machine;
use risetime_kernel::cpu_util::{CpuUtilType, effective_cpu_util_pre_6_8};
use risetime_kernel::uclamp::{Uclamp, uclamp_rq_util_with};
use risetime_kernel::units::{CpuId, Util};
use risetime_kernel::{KernelRev, features};

/// Whether the clamps reach the iowait boost and the hold of a busy CPU's frequency.
fn clamps_reach_schedutil(rev: KernelRev) -> bool {
    rev.has(features::UCLAMP_BOOST)
}

impl Machine {
    /// `uclamp_rq_util_with`: as if a task with `clamps` were there, too.
    fn clamped_pre_6_8(&self, cpu: CpuId, util: Util, clamps: Option<Uclamp>) -> Util {
        if !self.classes.uclamp_used {
            return util;
        }
        uclamp_rq_util_with(&self.cpu(cpu).uclamp, util, clamps)
    }

    /// `effective_cpu_util(FREQUENCY_UTIL)` of a cfs util, as if a task with `clamps` were there.
    pub(crate) fn frequency_util_pre_6_8(
        &self,
        cpu: CpuId,
        util_cfs: Util,
        clamps: Option<Uclamp>,
    ) -> Util {
        let clamp = |util| self.clamped_pre_6_8(cpu, util, clamps);
        let (rq, capacity) = (self.rq_util(cpu), self.cpu(cpu).capacity);
        effective_cpu_util_pre_6_8(util_cfs, &rq, capacity, CpuUtilType::Frequency, clamp)
    }
}

impl DomainView<'_> {
    /// The util that schedutil multiplied by 1.25: that of `cpu` and its iowait `boost`, clamped.
    pub(crate) fn sugov_util_pre_6_8(&self, cpu: CpuId, boost: Util) -> Util {
        let m = self.machine;
        let util = m.frequency_util_pre_6_8(cpu, m.cpu_util_freq(cpu), None);
        let held = clamps_reach_schedutil(m.rev) && boost > Util(0);
        util.max(if held { m.clamped_pre_6_8(cpu, boost, None) } else { boost })
    }

    /// The most that a CPU can ask for: all of it, with headroom.
    pub(crate) fn most_pre_6_8(&self) -> Util {
        self.machine.slots.series.room_pre_6_8(Util(self.capacity().0))
    }

    /// Whether a busy CPU lowers its frequency all the same, because a clamp holds it down.
    pub(crate) fn lowers_while_busy(&self, cpu: CpuId) -> bool {
        clamps_reach_schedutil(self.rev()) && self.uclamp_rq_is_capped(cpu)
    }
}
