//! The scheduler modules of Google's Pixel phones: what ships of the response-time series, and
//! around it.
//!
//! ```text
//!  at          what the modules do instead of the kernel, or beside it          here
//!  frequency   util of groups, response time, headroom, efficient OPPs          `sched_pixel`
//!  util_est    climbs with the time a task runs since it woke, multiplied       tasks.rs
//!  a new task  util 0; without automatic headroom half a CPU where nobody is    tasks.rs
//!  fits        a threshold by time, or a margin; no boost out of reach          state.rs
//!  clamps      those of the task's vendor group                                 limits_of
//!  wakeup      sync, previous CPU, prefer_idle, importance, packing, energy     `pixel`
//!  real-time   the least important CPU that fits, the least busy, the smallest   rt.rs
//!  newly idle  pulls a thread of a hint session that waits                       rt.rs
//! ```
//!
//! Groups are in [`groups`], arithmetic in [`risetime_kernel::pixel`]. None of this could be held
//! to a running kernel: the modules need a phone. A run says so at its head.
//!
//! Leaves out: iowait boosts of tasks (no workload waits for IO), limits by performance counters
//! (`pmu_limit_enable`; no public script switches their poll on), hrtick, idle injection,
//! `teo_util_threshold`, the filters of clamps (`uclamp_min_filter_*`, `uclamp_max_filter_*`),
//! clamps by nice values, `thermal_cap_margin` (of later branches: where it acts could not be
//! read), what binder hands on, tasks known by their libraries or names, preemption by ADPF tasks
//! (a hook that looks at groups as if they were tasks), and `latency_ns` and its neighbours.
//!
//! `DEVIATES(pixel-adpf)`: a thread of a session counts as one from the start, on a phone from when
//! its session has been made.
//!
//! Source: see [`risetime_kernel::pixel`].

mod groups;
mod rt;
pub(crate) mod state;
mod tasks;
pub(crate) mod tunables;
pub(crate) mod util;

use crate::mech::mechanism::Mechanism;
use crate::mech::pixel::state::{Fits, Form, UtilGroup, VENDOR_SCHED, Vendor, VendorCpu, form};
use crate::mech::series;
use crate::state::class::POWER_HAL;
use crate::state::machine::Machine;
use risetime_kernel::approximate::{Margin, fits_capacity_threshold, tick_usec};
use risetime_kernel::pixel::{DEF_UTIL_THRESHOLD, PixelOpp};
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{
    Default, Group, Home, Int, Name, Neutral, Param, Range, Setting, Settings,
};
use risetime_model::{Experiment, InputError, Platform, Policy};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP, OF_GROUPS]
    }
    fn of_machine(e: &Experiment, m: &Machine) -> Option<Box<Vendor>> {
        form(&e.settings).map(|_| Box::new(vendor(e, m)))
    }
    fn of_domain(e: &Experiment, index: usize) -> Vec<PixelOpp> {
        match in_use(&e.settings) {
            true => tunables::em_of(&e.platform.domains[index]),
            false => Vec::new(),
        }
    }
    fn of_cpu(e: &Experiment, m: &Machine, cpu: CpuId) -> VendorCpu {
        match in_use(&e.settings) {
            true => of_cpu(e, &e.platform.domains[m.cpu(cpu).domain]),
            false => VendorCpu::default(),
        }
    }
    fn bends(m: &Machine) -> bool {
        m.slots.pixel.is_some()
    }
    fn notes(e: &Experiment) -> Vec<String> {
        notes(e)
    }
}

/// Whether the modules or their governor are there.
fn in_use(settings: &Settings) -> bool {
    form(settings).is_some() || tunables::in_force(settings)
}

macro_rules! setting {
    ($const:ident, $name:literal, $doc:literal, $unit:literal, $range:expr, $neutral:expr) => {
        const $const: Int = Int::new(Param {
            name: $name,
            doc: $doc,
            unit: $unit,
            range: Range::Int($range.0, $range.1),
            default: Default::Unset,
            home: Home::Patched(Some(concat!("/proc/vendor_sched/", $name)), $neutral),
        });
    };
}

/// Range of an unsigned int of the kernel.
const UINT: (i64, i64) = (0, 4_294_967_295);
const OF_1024: (i64, i64) = (0, 1024);
const SWITCH: (i64, i64) = (0, 1);

setting!(
    AUTO_MARGINS,
    "auto_migration_margins_enable",
    "1: what a CPU fills in a tick less than its time to fill is its margin; with automatic headroom as in patch 4 of RFC 00/16, without as in the tick column of its earlier posting (unset: 0)",
    "",
    SWITCH,
    Neutral::Int(0)
);
setting!(
    UTIL_THRESHOLD,
    "util_threshold",
    "margin without automatic ones: util times so much must be within the capacity (unset: 1280); in the form of 5.10 also the headroom; of one policy: util_threshold.policyN",
    "of 1024",
    (1024, UINT.1),
    Neutral::Int(1280)
);
setting!(
    AUTO_UCLAMP_MAX,
    "auto_uclamp_max",
    "most performance on this CPU of tasks whose group has it automatic, its most efficient point (unset: 1024); of one policy: auto_uclamp_max.policyN",
    "of 1024",
    OF_1024,
    Neutral::Int(1024)
);
setting!(
    NPI_PACKING,
    "npi_packing",
    "1: a task that needs no idle CPU goes to a busy one whose present frequency serves it (unset: 1)",
    "",
    SWITCH,
    Neutral::Int(1)
);
setting!(
    REDUCE_PREFER_IDLE,
    "reduce_prefer_idle",
    "1: tasks of a prefer_idle group with a nice value above 0, or with a most performance, need no idle CPU (unset: 1)",
    "",
    SWITCH,
    Neutral::Int(1)
);
setting!(
    PREFER_PREV_CPU,
    "prefer_prev_cpu",
    "1: a task stays on its CPU if that is idle no deeper than its first state (unset: 1)",
    "",
    SWITCH,
    Neutral::Int(1)
);
setting!(
    ADPF_RAMPUP_MULTIPLIER,
    "adpf_rampup_multiplier",
    "rampup multiplier of the threads of hint sessions (unset: 1)",
    "times",
    UINT,
    Neutral::Int(1)
);
setting!(
    BOOST_ADPF_PRIO,
    "boost_adpf_prio",
    "1: threads of hint sessions have nice -20 (unset: 1)",
    "",
    SWITCH,
    Neutral::Int(1)
);
setting!(
    UTIL_POST_INIT_SCALE,
    "util_post_init_scale",
    "util of a new task on a CPU without fair ones, without automatic headroom (unset: 512)",
    "of 1024",
    OF_1024,
    Neutral::Int(512)
);
setting!(
    BG_AUTO_PRIO,
    "ug_bg_auto_prio",
    "priority from which on tasks of groups with ug 2 count as background, 120 = nice 0 (unset: 130)",
    "priority",
    (100, 139),
    Neutral::Int(130)
);
setting!(
    BG_THROTTLE,
    "ug_bg_group_throttle",
    "share of each CPU that background tasks together count for at most (unset: 1024)",
    "of 1024",
    UINT,
    Neutral::Int(1024)
);
setting!(
    BG_UCLAMP_MAX,
    "ug_bg_uclamp_max",
    "performance that background tasks together count for at most on a CPU (unset: 1024)",
    "of 1024",
    OF_1024,
    Neutral::Int(1024)
);
setting!(
    FG_THROTTLE,
    "ug_fg_group_throttle",
    "share of each CPU that all others together count for at most (unset: 1024)",
    "of 1024",
    UINT,
    Neutral::Int(1024)
);
setting!(
    FG_UCLAMP_MAX,
    "ug_fg_uclamp_max",
    "performance that all others together count for at most on a CPU (unset: 1024)",
    "of 1024",
    OF_1024,
    Neutral::Int(1024)
);

/// Vendor group of tasks in no task group of a vendor group's name.
const VENDOR_GROUP: Name = Name::new(Param {
    name: "vendor_group",
    doc: "vendor group of tasks that are in no task group called system, top-app, foreground, background, system-background, rt or dex2oat (unset: sys, as of every new task)",
    unit: "",
    range: Range::OneOf(groups::NAMES),
    default: Default::Unset,
    home: Home::Patched(
        Some("/proc/vendor_sched/groups/NAME/set_task_group"),
        Neutral::Name("sys"),
    ),
});

const GROUP: Group = Group::of(&[
    VENDOR_SCHED.0,
    AUTO_MARGINS.0,
    UTIL_THRESHOLD.0,
    AUTO_UCLAMP_MAX.0,
    NPI_PACKING.0,
    REDUCE_PREFER_IDLE.0,
    PREFER_PREV_CPU.0,
    ADPF_RAMPUP_MULTIPLIER.0,
    BOOST_ADPF_PRIO.0,
    UTIL_POST_INIT_SCALE.0,
    BG_AUTO_PRIO.0,
    BG_THROTTLE.0,
    BG_UCLAMP_MAX.0,
    FG_THROTTLE.0,
    FG_UCLAMP_MAX.0,
    VENDOR_GROUP.0,
])
.titled("Scheduler modules of Pixel phones")
.per_policy(&[UTIL_THRESHOLD.0, AUTO_UCLAMP_MAX.0])
.checked(check);

const OF_GROUPS: Group =
    Group::of(&groups::PARAMS).titled("Vendor groups of Pixel phones").checked(check_groups);

/// Refuses settings of the modules where there are none, and the modules where they cannot be.
///
/// Errors: those.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let own = &[AUTO_MARGINS, UTIL_THRESHOLD, AUTO_UCLAMP_MAX, NPI_PACKING, REDUCE_PREFER_IDLE];
    let more = &[PREFER_PREV_CPU, ADPF_RAMPUP_MULTIPLIER, BOOST_ADPF_PRIO, UTIL_POST_INIT_SCALE];
    let ugs = &[BG_AUTO_PRIO, BG_THROTTLE, BG_UCLAMP_MAX, FG_THROTTLE, FG_UCLAMP_MAX];
    if form(settings).is_none() {
        let set = own.iter().chain(more).chain(ugs).find(|s| settings.is_set_anywhere(*s));
        let set = set.map(Setting::key);
        let set = set.or(settings.is_set(&VENDOR_GROUP).then_some(VENDOR_GROUP.name));
        return set.map_or(Ok(()), |name| Err(without(policy, name)));
    }
    if settings.get(&tunables::RESPONSE_TIME_MS).is_some_and(|ms| ms > 0)
        && settings.get(&tunables::AUTO_HEADROOM) != Some(1)
        && policy.said(&tunables::RESPONSE_TIME_MS).is_some()
    {
        let name = tunables::RESPONSE_TIME_MS.name;
        let what = format!("`{name}` has no effect without automatic headroom");
        let hint = format!("{}=1", tunables::AUTO_HEADROOM.name);
        return Err(InputError::new(policy.place_of(name), what).hint(hint));
    }
    Ok(())
}

fn check_groups(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let set = groups::PARAMS.iter().find(|p| settings.by_name(p.name).is_some());
    match set.filter(|_| form(settings).is_none()) {
        Some(param) => Err(without(policy, param.name)),
        None => Ok(()),
    }
}

fn without(policy: &Policy, name: &str) -> InputError {
    let what = format!("`{name}` is a setting of the modules that Pixel phones run");
    InputError::new(policy.place_of(name), what)
        .hint(format!("{}=pixel-6.1, or --policy pixel-6.1", VENDOR_SCHED.name))
}

fn int(settings: &Settings, of: &Int, unset: i64) -> u64 {
    settings.get(of).unwrap_or(unset).max(0) as u64
}

fn vendor(e: &Experiment, m: &Machine) -> Vendor {
    let settings = &e.settings;
    let on = |of: &Int, unset: i64| int(settings, of, unset) != 0;
    let bg = UtilGroup {
        throttle: int(settings, &BG_THROTTLE, 1024),
        uclamp_max: Util(int(settings, &BG_UCLAMP_MAX, 1024)),
    };
    let fg = UtilGroup {
        throttle: int(settings, &FG_THROTTLE, 1024),
        uclamp_max: Util(int(settings, &FG_UCLAMP_MAX, 1024)),
    };
    let open = UtilGroup { throttle: 1024, uclamp_max: Util(1024) };
    let own = settings.get(&VENDOR_GROUP);
    let own = own.and_then(|name| groups::NAMES.iter().position(|n| *n == name)).unwrap_or(0);
    let of_group = |path: String| groups::of_cgroup(&path).unwrap_or(own);
    let hears = settings.get(&POWER_HAL).is_some_and(|name| name != "none");
    let threads = e.workload.sessions.iter().flat_map(|s| &s.tasks).filter(|_| hears);
    let mut adpf: Vec<TaskId> = threads.map(|i| TaskId(*i)).collect();
    adpf.sort_unstable();
    adpf.dedup();
    let mut cluster_starts: Vec<CpuId> =
        m.domains.iter().filter_map(|d| d.related.first().copied()).collect();
    cluster_starts.sort_unstable();
    Vendor {
        auto_headroom: tunables::auto_headroom(settings),
        npi_packing: on(&NPI_PACKING, 1),
        reduce_prefer_idle: on(&REDUCE_PREFER_IDLE, 1),
        prefer_prev_cpu: on(&PREFER_PREV_CPU, 1),
        boost_adpf_prio: on(&BOOST_ADPF_PRIO, 1),
        adpf_rampup_multiplier: int(settings, &ADPF_RAMPUP_MULTIPLIER, 1) as u32,
        util_post_init_scale: int(settings, &UTIL_POST_INIT_SCALE, 512),
        bg_auto_prio: settings.get(&BG_AUTO_PRIO).unwrap_or(130) as i32,
        groups: groups::of_settings(settings),
        group_of: e.workload.group_paths().into_iter().map(of_group).collect(),
        ug: [bg, fg],
        throttles: [bg, fg] != [open, open],
        adpf,
        cluster_starts,
        smallest: m.cpus.iter().map(|c| c.capacity).min().unwrap_or_default(),
    }
}

fn of_cpu(e: &Experiment, domain: &Domain) -> VendorCpu {
    let form = form(&e.settings);
    let (settings, decay) = (&e.settings, series::decay(e.policy.kernel, &e.settings));
    let of = |item: &Int, unset: u64| {
        settings.of_policy(item, domain.cpus[0]).map_or(unset, |value| value.max(0) as u64)
    };
    let auto = tunables::auto_headroom(settings);
    let margin = of(&UTIL_THRESHOLD, DEF_UTIL_THRESHOLD);
    let by_time = if auto { Margin::Rfc } else { Margin::ThresholdTick };
    let tick = tick_usec(e.platform.hz);
    let threshold = || fits_capacity_threshold(decay, by_time, domain.capacity, tick);
    let fits = match settings.get(&AUTO_MARGINS) == Some(1) {
        _ if form.is_none() => None,
        true => threshold().map(Fits::Auto),
        false => Some(Fits::Margin(margin)),
    };
    let old = form == Some(Form::V5_10);
    let nominal = tunables::nominal_ms(decay, domain);
    VendorCpu {
        fits,
        auto_uclamp_max: Util(of(&AUTO_UCLAMP_MAX, 1024)),
        iowait_most: of(&tunables::IOWAIT_MOST, 1024) as u32,
        response_time_mult: tunables::response_time_mult(settings, domain, nominal),
        room: (!old).then(|| tunables::room(settings, domain)),
        threshold: margin,
        margin: if old { margin } else { 1024 },
        skip_inefficient: settings.get(&tunables::SKIP_INEFFICIENT) == Some(1),
        old,
    }
}

/// The notes on a run with the modules: what nobody could check, and the nominal response times.
fn notes(e: &Experiment) -> Vec<String> {
    if form(&e.settings).is_none() {
        return Vec::new();
    }
    let decay = series::decay(e.policy.kernel, &e.settings);
    let of = |d: &Domain| format!("{} ms (cpu{})", tunables::nominal_ms(decay, d), d.cpus[0].0);
    let nominal: Vec<String> = e.platform.domains.iter().map(of).collect();
    vec![
        "The Pixel modules are read from their source; none of this policy could be held to a running kernel."
            .into(),
        format!(
            "Nominal response times (response_time_ms_nom): {}; computed, not read on a device.",
            nominal.join(", ")
        ),
    ]
}
