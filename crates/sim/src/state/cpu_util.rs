//! Utilisation of CPUs and tasks, as placement, balancing and governors ask: `cpu_util_cfs`,
//! `task_util_est`, `rq_util`, `cpu_overutilized`.
//!
//! ```text
//! cfs_util       of a CPU: util_avg, runnable_avg, util_est        by PELT, or by the tracker in force
//! rq_util        what the classes above take, interrupts, clamps
//! effective      both together, at most the capacity               (effective_cpu_util)
//! ```
//!
//! Each may be seen otherwise by who stands in between (`hook`). Source: kernel/sched/fair.c, syscalls.c.

use crate::state::class::DlFrequency;
use crate::state::hooks::TaskSignals;
use crate::state::machine::{Cpu, Machine, State};
use risetime_kernel::cpu_util::{
    self, CfsUtil, EffectiveUtil, RqUtil, TaskUtil, effective_cpu_util,
};
use risetime_kernel::fits::Fit;
use risetime_kernel::neighbours::task_util_est_boost;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_kernel::util_est::{UtilEst, task_util_est};

impl Machine {
    /// The fair class's signals of a CPU.
    #[inline]
    pub(crate) fn cfs_util(&self, c: &Cpu) -> CfsUtil {
        self.hook(self.tracked_cfs(c), |h, own| h.cfs_util(c.has_work(), own))
    }
    #[inline]
    pub(crate) fn task_util(&self, task: TaskId) -> TaskUtil {
        let t = self.task(task);
        let TaskSignals { util_avg, runnable_avg, util_est } = self.task_signals(task);
        let queued = t.state == State::Runnable;
        TaskUtil { cpu: t.cpu, util_avg, runnable_avg, util_est, queued }
    }
    #[inline]
    fn task_signals(&self, task: TaskId) -> TaskSignals {
        let t = self.task(task);
        let own = match &self.tracker {
            None => TaskSignals {
                util_avg: t.avg.util_avg,
                runnable_avg: t.avg.runnable_avg,
                util_est: t.util_est.value(),
            },
            Some(tracker) => {
                let (util_avg, util_est) = (tracker.task_util(task), tracker.task_util_est(task));
                TaskSignals { util_avg, runnable_avg: util_avg, util_est }
            }
        };
        self.hook(own, |h, own| h.task_util(own))
    }
    /// `cpu_util_cfs`.
    #[inline]
    pub(crate) fn cpu_util_cfs(&self, cpu: CpuId) -> Util {
        let c = self.cpu(cpu);
        let asked = || cpu_util::cpu_util_cfs(&self.cfs_util_faster(cpu), c.capacity);
        if !self.is_plain() {
            return asked();
        }
        let util = c.plain_util_cfs();
        debug_assert_eq!(util, asked());
        util
    }
    /// `cpu_util_cfs_boost`: the runnable boost, unless it is switched off.
    #[inline]
    pub(crate) fn cpu_util_cfs_boost(&self, cpu: CpuId) -> Util {
        if !self.slots.series.runnable_boost {
            return self.cpu_util_cfs(cpu);
        }
        cpu_util::cpu_util_cfs_boost(&self.cfs_util_faster(cpu), self.cpu(cpu).capacity)
    }
    /// The util of the fair class that counts for a CPU's frequency.
    #[inline]
    pub(crate) fn cpu_util_freq(&self, cpu: CpuId) -> Util {
        let Some(tracker) = &self.tracker else { return self.cpu_util_cfs_boost(cpu) };
        self.tracked_util(cpu, tracker.cpu_util_freq(cpu))
    }
    /// A tracker's util of a CPU with what other tasks add, at most the capacity.
    fn tracked_util(&self, cpu: CpuId, util: Util) -> Util {
        let c = self.cpu(cpu);
        let util = util + c.background_util;
        let own = CfsUtil { util_avg: util, runnable_avg: util, util_est: Util(0) };
        let cfs = self.hook(own, |h, own| h.cfs_util(c.has_work(), own));
        cpu_util::cpu_util_cfs(&cfs, c.capacity)
    }
    #[inline]
    fn cfs_util_faster(&self, cpu: CpuId) -> CfsUtil {
        let cfs = self.cfs_util(self.cpu(cpu));
        if !self.slots.series.util_est_faster {
            return cfs;
        }
        let faster = self.util_est_faster(cpu).unwrap_or_default();
        CfsUtil { util_avg: cfs.util_avg.max(faster), ..cfs }
    }
    /// `cpu_util_without`: as if `p` were nowhere.
    pub(crate) fn cpu_util_without(&self, cpu: CpuId, task: TaskId) -> Util {
        if let Some(tracker) = &self.tracker {
            return self.tracked_util(cpu, tracker.cpu_util_without(cpu, task));
        }
        let attached = self.task(task).avg.last_update_time.0 != 0;
        cpu_util::cpu_util_without(
            cpu,
            &self.cfs_util(self.cpu(cpu)),
            &self.task_util(task),
            attached,
            self.cpu(cpu).capacity,
        )
    }
    /// The util that the classes above the fair one have of a CPU, and its clamps.
    pub(crate) fn rq_util(&self, cpu: CpuId) -> RqUtil {
        self.rq_util_of(cpu, self.cpu(cpu))
    }
    #[inline]
    pub(crate) fn rq_util_of(&self, cpu: CpuId, c: &Cpu) -> RqUtil {
        let clamps = if self.classes.uclamp_used { c.uclamp.clamps() } else { Uclamp::default() };
        let pelt = self.slots.before.sched_avg_period.is_none();
        let known = |util: Util| if pelt { util } else { Util(0) };
        let own = RqUtil {
            rt: known(c.rt_avg.util_avg),
            dl: known(c.dl_avg.util_avg),
            irq: known(c.slots.pressure.as_ref().map_or(Util(0), |p| p.irq_util())),
            dl_running_bw: if self.knows_deadline_bandwidth() {
                c.promised_bw(self.rules.frequency)
            } else {
                0
            },
            uclamp_min: clamps.min,
            uclamp_max: clamps.max,
            uclamp_is_used: self.classes.uclamp_used,
            rt_runnable: !c.rt.is_empty(),
        };
        self.hook(own, |h, own| h.rq_util(cpu, false, own))
    }
    /// [`Machine::rq_util`] for schedutil. With `dl_frequency=admitted` the deadline class's
    /// running utilisation is left out, since its admitted bandwidth is counted.
    #[inline]
    pub(crate) fn rq_util_for_freq(&self, cpu: CpuId) -> RqUtil {
        let own = self.rq_util(cpu);
        let dl = if self.rules.frequency == Some(DlFrequency::Admitted) { Util(0) } else { own.dl };
        RqUtil { dl, ..own }
    }
    /// `effective_cpu_util` of a cfs util.
    #[inline]
    pub(crate) fn effective(&self, cpu: CpuId, util_cfs: Util) -> EffectiveUtil {
        effective_cpu_util(util_cfs, &self.rq_util(cpu), self.cpu(cpu).capacity)
    }
    /// `teo_cpu_is_utilized`: more than a 64th of the CPU's capacity (`sched_cpu_util`).
    pub(crate) fn is_utilized(&self, cpu: CpuId) -> bool {
        let util = self.effective(cpu, self.cpu_util_cfs(cpu)).util;
        util > Util(self.cpu(cpu).capacity.0 >> 6)
    }
    /// `cpu_overutilized`; never without EAS.
    #[inline]
    pub(crate) fn cpu_overutilized(&self, cpu: CpuId) -> bool {
        self.root.energy_aware && self.overutilized_by(self.cpu(cpu), self.cpu_util_cfs(cpu))
    }
    /// Whether that util, the CPU's own, is too much for it.
    #[inline]
    pub(crate) fn overutilized_by(&self, c: &Cpu, util: Util) -> bool {
        if self.is_plain() {
            return c.plain_fits(util) == Fit::DoesNotFit;
        }
        let clamps = if self.classes.uclamp_used { c.uclamp.clamps() } else { Uclamp::default() };
        c.util_fits(util, clamps.min, clamps.max) == Fit::DoesNotFit
    }
    /// `task_util_est(p)`.
    #[inline]
    pub(crate) fn task_util_est(&self, task: TaskId) -> Util {
        let TaskSignals { util_avg, util_est, .. } = self.task_signals(task);
        let util_est = UtilEst(util_est.0 as u32);
        match self.slots.series.util_est_boost {
            true => task_util_est_boost(util_avg, util_est),
            false => task_util_est(util_avg, util_est),
        }
    }
    /// `util_fits_cpu` of a task.
    #[inline]
    pub(crate) fn task_fits(&self, task: TaskId, cpu: CpuId) -> Fit {
        let (c, clamps, util) = (self.cpu(cpu), self.task(task).clamps(), self.task_util_est(task));
        let own = || c.util_fits(util, clamps.min, clamps.max);
        if self.is_plain() && clamps == Uclamp::default() {
            return c.plain_fits(util);
        }
        self.hook(own(), |h, own| h.task_fits(self, task, cpu, own))
    }

    /// The fair class's signals of a CPU, by the tracker in force.
    #[inline]
    pub(crate) fn tracked_cfs(&self, c: &Cpu) -> CfsUtil {
        let util = match (&self.tracker, &c.slots.muqss) {
            (None, None) => return c.plain_cfs(),
            (Some(tracker), _) => tracker.cpu_util(self.id_of(c)),
            (None, Some(rq)) => rq.util(c.capacity),
        } + c.background_util;
        CfsUtil { util_avg: util, runnable_avg: util, util_est: Util(0) }
    }
}
