//! Fair util by utilization groups, and what a CPU asks for with it.
//!
//! ```text
//!  fair util of a CPU    min(util, throttle · capacity, uclamp_max) of each of two utilization
//!                        groups, added up; the same of estimates; the larger of the two
//! ```

use crate::mech::pixel::state::{Ug, Vendor, VendorGroup};
use crate::state::machine::Machine;
use risetime_kernel::cpu_util::{CpuUtilType, RqUtil};
use risetime_kernel::pelt::cap_scale;
use risetime_kernel::pixel::{Ask, map_util_freq, opp_for, schedutil_cpu_util};
use risetime_kernel::uclamp::{Uclamp, uclamp_rq_util_with};
use risetime_kernel::units::{Capacity, CpuId, KHz, TaskId, Util};

/// Util and estimates of the background and the foreground group of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Split {
    util: [u64; 2],
    est: [u64; 2],
}

/// Change that a question makes to what a CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Adds,
    Takes,
}

impl Machine {
    /// The modules, if the machine has them.
    #[inline]
    pub(crate) fn vendor(&self) -> Option<&Vendor> {
        self.slots.pixel.as_deref()
    }

    /// The vendor group of a task.
    pub(crate) fn vendor_group<'v>(&self, vendor: &'v Vendor, task: TaskId) -> &'v VendorGroup {
        vendor.group(self.task(task).group)
    }

    /// The multiplier of a task's estimate.
    pub(crate) fn vendor_multiplier(&self, vendor: &Vendor, task: TaskId) -> u32 {
        match vendor.is_adpf(task) {
            true => vendor.adpf_rampup_multiplier,
            false => self.vendor_group(vendor, task).rampup_multiplier,
        }
    }

    /// `get_utilization_group`: 0 background, 1 foreground.
    fn utilization_group(&self, vendor: &Vendor, task: TaskId) -> usize {
        match self.vendor_group(vendor, task).ug {
            Ug::Background => 0,
            Ug::Foreground => 1,
            Ug::Auto => usize::from(self.prio(task) < vendor.bg_auto_prio),
        }
    }

    /// The fair util of a CPU, by utilization groups.
    ///
    /// `DEVIATES(pixel-group-util)`: the background group's util is that of its queued tasks; the
    /// modules average it on each CPU by itself, so that what sleeping tasks have left there counts
    /// with it. Effect: where background is throttled, a CPU that it has just left asks for more.
    pub(crate) fn vendor_split(&self, vendor: &Vendor, cpu: CpuId) -> Split {
        let cfs = self.cfs_util(self.cpu(cpu));
        let mut split = Split { util: [0, cfs.util_avg.0], est: [0, cfs.util_est.0] };
        if vendor.throttles {
            for (task, _) in self.fair_queued(cpu) {
                if self.utilization_group(vendor, task) == 0 {
                    let t = self.task(task);
                    split.util[0] += t.avg.util_avg.0;
                    split.est[0] += t.util_est.value().0;
                }
            }
            split.util[1] = split.util[1].saturating_sub(split.util[0]);
            split.est[1] = split.est[1].saturating_sub(split.est[0]);
        }
        split
    }

    /// The split with a task's util, and where it is queued there its estimate, added or taken.
    pub(crate) fn vendor_changed(
        &self,
        vendor: &Vendor,
        mut split: Split,
        task: TaskId,
        util: Option<Change>,
        est: Option<Change>,
    ) -> Split {
        let p = self.task_util(task);
        let own = if vendor.throttles { self.utilization_group(vendor, task) } else { 1 };
        let apply = |sum: &mut u64, change: Option<Change>, value: u64| match change {
            Some(Change::Adds) => *sum += value,
            Some(Change::Takes) => *sum = sum.saturating_sub(value),
            None => {}
        };
        // What a sleeping task has left behind counts with the foreground.
        let left = if util == Some(Change::Takes) && !p.queued { 1 } else { own };
        apply(&mut split.util[left], util, p.util_avg.0);
        apply(&mut split.est[own], est, p.util_est.0);
        split
    }

    /// `cpu_util_cfs_group_mod` of such a split.
    pub(crate) fn vendor_joined(&self, vendor: &Vendor, cpu: CpuId, split: Split) -> Util {
        let capacity = self.cpu(cpu).capacity;
        let held = |sums: [u64; 2]| -> u64 {
            let of = |i: usize| {
                let ug = vendor.ug[i];
                sums[i].min(cap_scale(ug.throttle, capacity.0)).min(ug.uclamp_max.0)
            };
            of(0) + of(1)
        };
        match vendor.throttles {
            true => Util(held(split.util).max(held(split.est))),
            false => Util(split.util[1].max(split.est[1])),
        }
    }

    /// `cpu_util_cfs_group_mod`.
    pub(crate) fn vendor_util_cfs(&self, vendor: &Vendor, cpu: CpuId) -> Util {
        self.vendor_joined(vendor, cpu, self.vendor_split(vendor, cpu))
    }

    /// The util that `cpu` asks for with that fair one (`schedutil_cpu_util_pixel_mod`); `clamp`: what
    /// becomes of it once it has its headroom.
    pub(crate) fn vendor_cpu_util(
        &self,
        cpu: CpuId,
        util_cfs: Util,
        rq: &RqUtil,
        kind: CpuUtilType,
        clamp: impl FnOnce(Util) -> Util,
    ) -> Util {
        let c = self.cpu(cpu);
        let own = &c.slots.pixel;
        let ask = Ask {
            decay: self.decay,
            response_time_mult: own.response_time_mult,
            room: own.room,
            capacity: c.capacity,
        };
        schedutil_cpu_util(&ask, util_cfs, rq, kind, clamp)
    }

    /// `uclamp_rq_util_with`: util within the clamps of a CPU, as if a task with `clamps` were
    /// there, too.
    pub(crate) fn vendor_clamped(&self, cpu: CpuId, util: Util, clamps: Option<Uclamp>) -> Util {
        match self.classes.uclamp_used {
            true => uclamp_rq_util_with(&self.cpu(cpu).uclamp, util, clamps),
            false => util,
        }
    }

    /// `map_util_freq_pixel_mod`: the frequency of `cpu` for `util`, an efficient OPP where others
    /// are skipped.
    pub(crate) fn vendor_freq(&self, cpu: CpuId, util: Util, max: KHz) -> KHz {
        let c = self.cpu(cpu);
        let margin = c.slots.pixel.margin;
        let freq = map_util_freq(util, max, c.capacity, margin);
        let opps = &self.domains[c.domain].slots.pixel;
        match opp_for(opps, freq, true) {
            Some(opp) if c.slots.pixel.skip_inefficient => opp.freq,
            _ => freq,
        }
    }

    /// The energy of a cluster whose most demanding CPU asks for `most`, and whose CPUs are busy
    /// for `sum` in all.
    pub(crate) fn vendor_energy(&self, cpu: CpuId, most: Util, sum: Util) -> u64 {
        let opps = &self.domains[self.cpu(cpu).domain].slots.pixel;
        let Some(top) = opps.last() else { return 0 };
        let freq = self.vendor_freq(cpu, most, top.freq);
        opp_for(opps, freq, false).map_or(0, |opp| opp.cost.wrapping_mul(sum.0))
    }

    /// `cpu_importance`: the clamps of a CPU's queue, added up.
    pub(crate) fn cpu_importance(&self, cpu: CpuId) -> u64 {
        let clamps = self.cpu(cpu).uclamp.clamps();
        clamps.min.0 + clamps.max.0
    }

    /// `task_fits_capacity` of a task with such clamps: on the biggest cluster every task fits.
    pub(crate) fn vendor_task_fits(
        &self,
        vendor: &Vendor,
        task: TaskId,
        cpu: CpuId,
        clamps: Uclamp,
    ) -> bool {
        if vendor.cluster_starts.get(2).is_some_and(|biggest| cpu >= *biggest) {
            return true;
        }
        let c = self.cpu(cpu);
        let limit = cap_scale(self.group_throttle(vendor, task), c.capacity.0);
        let util = self.task_util_est(task).min(Util(limit));
        c.slots.pixel.fits(util, clamps, c.capacities()).unwrap_or(true)
    }

    /// `get_task_group_throttle`, of 1024 of each CPU.
    pub(crate) fn group_throttle(&self, vendor: &Vendor, task: TaskId) -> u64 {
        vendor.ug[self.utilization_group(vendor, task)].throttle
    }

    /// Whether the group's part of a CPU, its throttle counted, is full (`get_group_util`,
    /// `group_overutilized`), and what of it is left.
    pub(crate) fn group_room(
        &self,
        vendor: &Vendor,
        task: TaskId,
        cpu: CpuId,
        split: &Split,
    ) -> (bool, u64) {
        let (own, c) = (self.utilization_group(vendor, task), self.cpu(cpu));
        let capacity = cap_scale(vendor.ug[own].throttle, c.capacity.0);
        let own = if vendor.throttles { own } else { 1 };
        let util = split.util[own].max(split.est[own]).min(capacity);
        let fits = c.slots.pixel.by_margin(Util(util), Capacity(capacity));
        (fits == Some(false), capacity - util)
    }
}
