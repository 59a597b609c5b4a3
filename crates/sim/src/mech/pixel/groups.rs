//! Vendor groups: what `/proc/vendor_sched/groups/NAME` says of the tasks that Android's task
//! profiles put there.
//!
//! A task is in the vendor group of its task group's last name, as the modules took it from cgroups
//! before profiles wrote it (`rvh_cpu_cgroup_online_pixel_mod`); a task in the root, or in a group
//! of another name, is in `vendor_group`.

use crate::mech::pixel::state::{Ug, VendorGroup};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::Util;
use risetime_model::settings::{
    Default, Home, Int, IntOrName, Neutral, Param, Range, Settings, Value,
};

/// A vendor group's settings.
pub(super) struct Items {
    /// Name of the group, as the modules call it.
    pub(super) name: &'static str,
    /// Name of the cgroup.
    pub(super) cgroup: &'static str,
    uclamp_min: Int,
    uclamp_max: IntOrName,
    prefer_idle: Int,
    prefer_high_cap: Int,
    rampup_multiplier: Int,
    disable_util_est: Int,
    ug: Int,
    skip_mask: Int,
}

macro_rules! items {
    ($name:literal, $cgroup:literal) => {{
        const fn int(
            name: &'static str,
            home: &'static str,
            doc: &'static str,
            unit: &'static str,
            most: i64,
            neutral: i64,
        ) -> Int {
            Int::new(Param {
                name,
                doc,
                unit,
                range: Range::Int(0, most),
                default: Default::Unset,
                home: Home::Patched(Some(home), Neutral::Int(neutral)),
            })
        }
        macro_rules! named {
            ($file:literal, $doc:literal, $unit:literal, $most:expr, $neutral:expr) => {
                int(
                    concat!($name, "_", $file),
                    concat!("/proc/vendor_sched/groups/", $name, "/", $file),
                    concat!($doc, " of ", $cgroup),
                    $unit,
                    $most,
                    $neutral,
                )
            };
        }
        Items {
            name: $name,
            cgroup: $cgroup,
            uclamp_min: named!("uclamp_min", "least performance of tasks", "of 1024", 1024, 0),
            uclamp_max: IntOrName::new(Param {
                name: concat!($name, "_uclamp_max"),
                doc: concat!(
                    "most performance of tasks of ",
                    $cgroup,
                    "; auto (-2 on a phone) = auto_uclamp_max of their CPU"
                ),
                unit: "of 1024",
                range: Range::IntOr(0, 1024, &["auto"]),
                default: Default::Unset,
                home: Home::Patched(
                    Some(concat!("/proc/vendor_sched/groups/", $name, "/uclamp_max")),
                    Neutral::Int(1024),
                ),
            }),
            prefer_idle: named!("prefer_idle", "1: an idle CPU before a cheap one for tasks", "", 1, 0),
            prefer_high_cap: named!(
                "prefer_high_cap",
                "1: at least a bit more than a CPU of the smallest cluster for tasks",
                "",
                1,
                0
            ),
            rampup_multiplier: named!(
                "rampup_multiplier",
                "rise of util_est, times the time run, with automatic headroom; 0 = none; unset: 1, for tasks",
                "times",
                4_294_967_295,
                1
            ),
            disable_util_est: named!(
                "disable_util_est",
                "1: no util_est, with automatic headroom, for tasks",
                "",
                1,
                0
            ),
            ug: named!(
                "ug",
                "utilization group, 0 = background, 1 = foreground, 2 = by priority (unset), of tasks",
                "number",
                2,
                2
            ),
            skip_mask: named!(
                "group_cfs_skip_mask",
                "CPUs, a bit each, that placement leaves out where there are others, for tasks",
                "CPUs",
                0xffff_ffff,
                0
            ),
        }
    }};
}

/// The groups, the first one that of tasks in no group.
pub(super) const ALL: [Items; 7] = [
    items!("sys", "system"),
    items!("ta", "top-app"),
    items!("fg", "foreground"),
    items!("bg", "background"),
    items!("sys_bg", "system-background"),
    items!("rt", "rt"),
    items!("dex2oat", "dex2oat"),
];

/// Names of the groups, for the setting `vendor_group`.
pub(super) const NAMES: &[&str] = &{
    let (mut names, mut i) = ([""; ALL.len()], 0);
    while i < names.len() {
        names[i] = ALL[i].name;
        i += 1;
    }
    names
};

/// Number of a group's settings.
const EACH: usize = 8;

/// All settings of groups.
pub(super) const PARAMS: [Param; EACH * ALL.len()] = {
    let (mut all, mut i) = ([ALL[0].ug.0; EACH * ALL.len()], 0);
    while i < ALL.len() {
        let g = &ALL[i];
        all[EACH * i] = g.uclamp_min.0;
        all[EACH * i + 1] = g.uclamp_max.0;
        all[EACH * i + 2] = g.prefer_idle.0;
        all[EACH * i + 3] = g.prefer_high_cap.0;
        all[EACH * i + 4] = g.rampup_multiplier.0;
        all[EACH * i + 5] = g.disable_util_est.0;
        all[EACH * i + 6] = g.ug.0;
        all[EACH * i + 7] = g.skip_mask.0;
        i += 1;
    }
    all
};

/// Returns the number of the group of a cgroup's path; `None`: its last name is no group's.
pub(super) fn of_cgroup(path: &str) -> Option<usize> {
    let last = path.rsplit('/').next()?;
    ALL.iter().position(|g| g.cgroup == last)
}

/// The properties of every group.
pub(super) fn of_settings(settings: &Settings) -> Vec<VendorGroup> {
    ALL.iter().map(|g| group(settings, g)).collect()
}

fn group(settings: &Settings, g: &Items) -> VendorGroup {
    let int = |of: &Int, unset: i64| settings.get(of).unwrap_or(unset).max(0) as u64;
    let (max, auto) = match settings.get(&g.uclamp_max) {
        Some(Value::Int(max)) => (Util((*max).max(0) as u64), false),
        Some(Value::Name(_)) => (Util(1024), true),
        None => (Util(1024), false),
    };
    VendorGroup {
        uclamp: Uclamp { min: Util(int(&g.uclamp_min, 0)), max },
        prefer_idle: int(&g.prefer_idle, 0) != 0,
        prefer_high_cap: int(&g.prefer_high_cap, 0) != 0,
        rampup_multiplier: int(&g.rampup_multiplier, 1) as u32,
        disable_util_est: int(&g.disable_util_est, 0) != 0,
        auto_uclamp_max: auto,
        ug: match int(&g.ug, 2) {
            0 => Ug::Background,
            1 => Ug::Foreground,
            _ => Ug::Auto,
        },
        skip_mask: int(&g.skip_mask, 0),
    }
}
