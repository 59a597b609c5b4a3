//! State of the Pixel modules: of the machine, its clusters, CPUs and tasks, and questions about
//! one of these alone.

use crate::mech::slots::Slot;
use risetime_kernel::fits::CpuCapacities;
use risetime_kernel::pixel::{Estimate, PixelOpp, RampUp, Room, fits_by_margin, util_fits_cpu};
use risetime_kernel::uclamp::{Uclamp, UclampLimits};
use risetime_kernel::units::{Capacity, CpuId, GroupId, TaskId, Util};
use risetime_model::settings::{Default, Home, Name, Neutral, Param, Range, Settings};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Option<Box<Vendor>>;
    type OfDomain = Vec<PixelOpp>;
    type OfCpu = VendorCpu;
    type OfTask = VendorTask;
}

/// Modules of which phones.
pub(crate) const VENDOR_SCHED: Name = Name::new(Param {
    name: "vendor_sched",
    doc: "scheduler modules of Google's Pixel phones: pixel-5.10 = those of gs101 and gs201 for 5.10, pixel-6.1 = those of zuma and zumapro for 6.1; none was held to a running kernel",
    unit: "",
    range: Range::OneOf(&["none", "pixel-5.10", "pixel-6.1"]),
    default: Default::Unset,
    home: Home::Patched(Some("/proc/vendor_sched"), Neutral::Name("none")),
});

/// The modules that settings ask for.
pub(crate) fn form(settings: &Settings) -> Option<Form> {
    match settings.get(&VENDOR_SCHED) {
        Some("pixel-5.10") => Some(Form::V5_10),
        Some("pixel-6.1") => Some(Form::V6_1),
        _ => None,
    }
}

/// Form of the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The modules of gs101 and gs201, for 5.10.
    V5_10,
    /// The modules of zuma and zumapro, for 6.1.
    V6_1,
}

/// Properties of a vendor group (`/proc/vendor_sched/groups/NAME`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VendorGroup {
    pub(crate) uclamp: Uclamp,
    pub(crate) prefer_idle: bool,
    pub(crate) prefer_high_cap: bool,
    pub(crate) rampup_multiplier: u32,
    pub(crate) disable_util_est: bool,
    /// `uclamp_max` is that of the CPU (`auto_uclamp_max`).
    pub(crate) auto_uclamp_max: bool,
    pub(crate) ug: Ug,
    /// CPUs that its fair tasks shun, a bit each (`group_cfs_skip_mask`).
    pub(crate) skip_mask: u64,
}

/// Utilization group (`ug`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ug {
    /// 0: background.
    Background,
    /// 1: foreground.
    Foreground,
    /// 2: by priority, from `ug_bg_auto_prio` on background.
    Auto,
}

/// Limits of what a utilization group counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UtilGroup {
    /// `group_throttle`, of 1024 of each CPU.
    pub(crate) throttle: u64,
    pub(crate) uclamp_max: Util,
}

/// The modules of a machine that has them.
pub(crate) struct Vendor {
    /// `auto_dvfs_headroom_enable`.
    pub(crate) auto_headroom: bool,
    pub(crate) npi_packing: bool,
    pub(crate) reduce_prefer_idle: bool,
    pub(crate) prefer_prev_cpu: bool,
    pub(crate) boost_adpf_prio: bool,
    pub(crate) adpf_rampup_multiplier: u32,
    pub(crate) util_post_init_scale: u64,
    /// `ug_bg_auto_prio`, of 100 to 139.
    pub(crate) bg_auto_prio: i32,
    pub(crate) groups: Vec<VendorGroup>,
    /// Number of the vendor group of each task group.
    pub(crate) group_of: Vec<usize>,
    /// Background and foreground.
    pub(crate) ug: [UtilGroup; 2],
    /// Some utilization group is held down.
    pub(crate) throttles: bool,
    /// Tasks of sessions that a power HAL hears of (`uclamp_fork_reset`), ascending.
    pub(crate) adpf: Vec<TaskId>,
    /// First CPU of each cluster (`pixel_cluster_start_cpu`).
    pub(crate) cluster_starts: Vec<CpuId>,
    /// Capacity of the smallest CPUs.
    pub(crate) smallest: Capacity,
}

impl Vendor {
    /// The vendor group of the tasks of a task group.
    pub(crate) fn group(&self, group: GroupId) -> &VendorGroup {
        let number = self.group_of.get(group.index()).copied().unwrap_or(0);
        &self.groups[number]
    }
    /// The limits of a task's clamps with those of its vendor group in them.
    /// Source: fair.c:uclamp_tg_restrict_pixel_mod.
    pub(crate) fn limits(&self, own: UclampLimits, group: GroupId) -> UclampLimits {
        let (tg, vendor) = (own.group.unwrap_or_default(), self.group(group));
        let mut min = tg.min.max(vendor.uclamp.min);
        if vendor.prefer_high_cap {
            min = min.max(Util(self.smallest.0 + 1));
        }
        let max = tg.max.min(vendor.uclamp.max);
        UclampLimits { group: Some(Uclamp { min, max }), ..own }
    }
    /// Whether the task is of a session (`get_uclamp_fork_reset`).
    pub(crate) fn is_adpf(&self, task: TaskId) -> bool {
        self.adpf.binary_search(&task).is_ok()
    }
}

/// State of a CPU.
#[derive(Clone, Debug, std::default::Default)]
pub(crate) struct VendorCpu {
    /// Margin by which tasks fit; `None`: mainline's.
    pub(crate) fits: Option<Fits>,
    /// `sched_auto_uclamp_max`.
    pub(crate) auto_uclamp_max: Util,
    /// `per_cpu_iowait_boost_max_value`.
    pub(crate) iowait_most: u32,
    /// `response_time_mult`.
    pub(crate) response_time_mult: u64,
    /// Headroom of `sched_pixel`.
    pub(crate) room: Option<Room>,
    /// `sched_capacity_margin`, of 1024.
    pub(crate) threshold: u64,
    /// Margin that the form of 5.10 adds to the frequency, of 1024.
    pub(crate) margin: u64,
    /// `skip_inefficient_opps`.
    pub(crate) skip_inefficient: bool,
    /// True in the form of 5.10.
    pub(crate) old: bool,
}

/// Margins of the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fits {
    /// `sched_auto_fits_capacity`: below it fits.
    Auto(Util),
    /// `sched_capacity_margin`, of 1024.
    Margin(u64),
}

/// State of a task.
#[derive(Clone, Copy, Debug, std::default::Default)]
pub(crate) struct VendorTask {
    pub(crate) est: Estimate,
    pub(crate) ramp: RampUp,
}

impl VendorCpu {
    /// Whether `util` fits into `capacity` by the modules' margin; `None`: mainline's holds.
    pub(crate) fn by_margin(&self, util: Util, capacity: Capacity) -> Option<bool> {
        Some(match self.fits? {
            Fits::Auto(threshold) => util < threshold,
            Fits::Margin(margin) => fits_by_margin(util, capacity, margin),
        })
    }
    /// `util_fits_cpu` of the modules, on a CPU of these capacities; `None`: mainline's holds.
    #[inline]
    pub(crate) fn fits(&self, util: Util, clamps: Uclamp, cpu: CpuCapacities) -> Option<bool> {
        let fits = self.by_margin(util, cpu.capacity_of)?;
        let clamps = (clamps.min, clamps.max);
        Some(util_fits_cpu(fits, util, clamps, cpu.original, cpu.actual))
    }
}
