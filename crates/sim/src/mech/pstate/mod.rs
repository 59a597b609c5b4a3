//! Drivers that hand performance levels to the hardware: intel_pstate and amd-pstate.
//!
//! ```text
//! passive   a governor asks; schedutil hands over util (adjust_perf), not a frequency     desired = the level asked for
//! guided    the same, of amd-pstate                                                       least = that level, desired = 0
//! active    intel_pstate without HWP: its own algorithm, every 10 ms                      desired = its level
//!           with HWP, amd-pstate (EPP): the hardware alone, between the limits            desired = 0
//! ```
//!
//! Up to the request all is the drivers' arithmetic ([`risetime_kernel::intel_pstate`], [`risetime_kernel::amd_pstate`]). What the
//! hardware makes of it is a model: a level that it is told it takes up soon (at the slow end at the next of its own
//! times), and where it chooses it looks at how busy the CPU is and climbs ([`table`], by what was measured). Each
//! figure so has two ends, `hardware_ramp=fast` and `slow`.
//!
//! The kernel learns of the speed by counters, at ticks ([`risetime_kernel::aperfmperf`]), not by what was asked for.
//!
//! `DEVIATES(pstate-hardware)`: the speed that answers a request is a model with two ends, never held to hardware. Left out of
//! it: power and temperature limits, the number of busy cores on which turbo depends, `min_perf_pct`, `max_perf_pct`, HWP's
//! activity window, `hwp_dynamic_boost`, amd-pstate's `dynamic_epp` and floor.
//!
//! `DEVIATES(pstate-threads)`: hardware threads of a core each have the speed that is asked for them; really they share a
//! clock, and the faster request holds for both.
//!
//! `DEVIATES(pstate-mmio)`: amd-pstate is taken to write its requests by MSR, and preferred cores are not ranked.
//!
//! Source: drivers/cpufreq/intel_pstate.c, amd-pstate.c, Kconfig.x86; kernel/sched/cpufreq_schedutil.c:sugov_update_single_perf.

mod active;
pub(crate) mod hardware;
pub(crate) mod state;
mod table;

use crate::kernel::governor::{self, Descriptor, GOVERNOR, GoesBy, SCHEDUTIL};
use crate::mech::mechanism::Mechanism;
use crate::mech::pressure::limits::MIN_FREQ;
use crate::mech::pstate::state::{Autonomy, Cycles, Mode, Perf, is_hybrid};
use crate::mech::pstate::table::{End, grid, manner};
use crate::state::machine::Machine;
use risetime_kernel::units::CpuId;
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::Driver;
use risetime_model::settings::keys::governor::{PERFORMANCE, POWERSAVE};
use risetime_model::settings::{
    Default, Group, Home, IntOrName, Name, Neutral, Param, Range, Settings, Value,
};
use risetime_model::{Experiment, InputError, Platform};

const ACTIVE: &str = "active";
const PASSIVE: &str = "passive";
const GUIDED: &str = "guided";
const NO_HWP: &str = "no_hwp";

/// Mode of intel_pstate.
pub(crate) const INTEL_PSTATE: Name = Name::new(Param {
    name: "intel_pstate",
    doc: "mode of the driver: active = HWP decides, or without HWP the driver; passive = a governor asks; no_hwp = passive, without HWP",
    unit: "",
    range: Range::OneOf(&[ACTIVE, PASSIVE, NO_HWP]),
    default: Default::Derived(
        "active with HWP, passive without (active up to 5.7) or for a governor that active has not; not set on other machines",
        |platform, policy| default_mode(platform, policy, Driver::IntelPstate),
    ),
    home: Home::Boot("intel_pstate="),
});

/// Mode of amd-pstate.
pub(crate) const AMD_PSTATE: Name = Name::new(Param {
    name: "amd_pstate",
    doc: "mode of the driver: active = the hardware decides (since 6.3), passive = a governor asks (since 5.17), guided = a governor says the least (since 6.4)",
    unit: "",
    range: Range::OneOf(&[ACTIVE, PASSIVE, GUIDED]),
    default: Default::Derived(
        "active (up to 6.4 passive), passive for a governor that active has not; not set on other machines",
        |platform, policy| default_mode(platform, policy, Driver::AmdPstate),
    ),
    home: Home::Boot("amd_pstate="),
});

/// Preference between speed and energy of hardware that decides.
pub const EPP: IntOrName = IntOrName::new(Param {
    name: "energy_performance_preference",
    doc: "preference of hardware that decides: 0 = speed, 255 = energy; balance_performance is 128, balance_power 192 (AMD 191); under the governor performance it is 0 (unset: default, taken for 128)",
    unit: "of 255",
    range: Range::IntOr(
        0,
        255,
        &["default", "performance", "balance_performance", "balance_power", "power"],
    ),
    default: Default::Unset,
    home: Home::Policy("energy_performance_preference"),
});

/// End of what is known of the hardware.
pub const HARDWARE_RAMP: Name = Name::new(Param {
    name: "hardware_ramp",
    doc: "end of what was measured of hardware that answers requests, or decides: fast = the quickest, slow = the slowest (unset: slow)",
    unit: "",
    range: Range::OneOf(&["fast", "slow"]),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Any),
});

const GROUP: Group = Group::of(&[INTEL_PSTATE.0, AMD_PSTATE.0, EPP.0, HARDWARE_RAMP.0])
    .titled("Drivers that hand levels to the hardware (x86)")
    .checked(check)
    .completed(complete);

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_domain(e: &Experiment, domain: usize) -> Option<Box<Perf>> {
        perf(e, domain).map(Box::new)
    }
    fn of_cpu(e: &Experiment, _: &Machine, cpu: CpuId) -> Option<Box<Cycles>> {
        let d = e.platform.domain_of(cpu)?;
        perf(e, d).map(|_| Box::default())
    }
    fn notes(e: &Experiment) -> Vec<String> {
        notes(e)
    }
}

/// The setting of a driver's mode.
fn setting(driver: Driver) -> Name {
    match driver {
        Driver::IntelPstate => INTEL_PSTATE,
        Driver::AmdPstate => AMD_PSTATE,
    }
}

/// The mode that a kernel starts with.
fn default_mode(platform: &Platform, policy: &risetime_model::Policy, of: Driver) -> Option<Value> {
    let (driver, hwp) = platform.scaling_driver().filter(|(driver, _)| *driver == of)?;
    let rev = policy.kernel;
    let governor = policy.said(&GOVERNOR).map(Value::to_string);
    let has = |name: &String| [SCHEDUTIL, PERFORMANCE, POWERSAVE].contains(&name.as_str());
    let active = match driver {
        Driver::IntelPstate => hwp || !rev.has(features::INTEL_PSTATE_NO_HWP_PASSIVE),
        Driver::AmdPstate => rev.has(features::AMD_PSTATE_ACTIVE),
    };
    if driver == Driver::AmdPstate && !rev.has(features::AMD_PSTATE) {
        return None;
    }
    let active = active && governor.as_ref().is_none_or(has);
    Some(Value::Name(if active { ACTIVE } else { PASSIVE }.into()))
}

/// The driver of these settings with its mode, and whether its requests go by HWP or CPPC; `None`: it has no driver of this
/// kind, or the kernel is older than that.
pub(crate) fn mode(platform: &Platform, settings: &Settings) -> Option<(Driver, Mode, bool)> {
    let (driver, hwp) = platform.scaling_driver()?;
    let mode = match settings.get(&setting(driver))? {
        ACTIVE => Mode::Active,
        GUIDED => Mode::Guided,
        _ => Mode::Passive,
    };
    let without = settings.get(&INTEL_PSTATE) == Some(NO_HWP);
    Some((driver, mode, hwp && !without))
}

/// The governor in force: in active mode the driver is its own.
pub(crate) fn governor_in_force(platform: &Platform, settings: &Settings) -> &'static Descriptor {
    let name = settings.get(&GOVERNOR).unwrap_or(SCHEDUTIL);
    match mode(platform, settings) {
        Some((_, Mode::Active, true)) => &active::HARDWARE,
        Some((_, Mode::Active, false)) if name != PERFORMANCE => &active::INTEL_PSTATE,
        _ => governor::find(name),
    }
}

/// The facts that its frequency goes by.
pub(crate) fn goes_by(platform: &Platform, settings: &Settings) -> GoesBy {
    (governor_in_force(platform, settings).make)(platform, 0, settings).goes_by()
}

/// Whether the driver is in active mode.
pub fn is_active(platform: &Platform, settings: &Settings) -> bool {
    matches!(mode(platform, settings), Some((_, Mode::Active, _)))
}

/// Whether the hardware chooses by itself, so that one figure would say too much.
pub fn hardware_decides(platform: &Platform, settings: &Settings) -> bool {
    matches!(mode(platform, settings), Some((_, Mode::Active | Mode::Guided, true)))
}

/// Whether what a request leads to is a model.
pub(crate) fn is_a_model(platform: &Platform, settings: &Settings) -> bool {
    mode(platform, settings).is_some()
}

fn end(settings: &Settings) -> End {
    if settings.get(&HARDWARE_RAMP) == Some("fast") { End::Fast } else { End::Slow }
}

/// The preference as a number.
fn epp(driver: Driver, settings: &Settings) -> u64 {
    let by_name = |name: &str| match (name, driver) {
        ("performance", _) => 0,
        ("balance_power", Driver::IntelPstate) => 192,
        ("balance_power", Driver::AmdPstate) => 191,
        ("power", _) => 255,
        _ => 128,
    };
    match settings.by_name(EPP.0.name) {
        _ if settings.get(&GOVERNOR) == Some(PERFORMANCE) => 0,
        Some(Value::Int(n)) => (*n).clamp(0, 255) as u64,
        Some(Value::Name(name)) => by_name(name),
        None => 128,
    }
}

/// The policy of a domain's driver.
fn perf(e: &Experiment, domain: usize) -> Option<Perf> {
    let levels = e.platform.domains[domain].levels?;
    let (driver, mode, hwp) = mode(&e.platform, &e.settings)?;
    let passive_hwp = e.policy.kernel.has(features::INTEL_PSTATE_PASSIVE_HWP);
    let hwp = hwp && (driver == Driver::AmdPstate || mode == Mode::Active || passive_hwp);
    let mut perf = Perf::new(levels, mode, hwp);
    let end = end(&e.settings);
    perf.grid = grid(driver, end);
    let chooses = match mode {
        Mode::Active => hwp,
        // The slow end of guided is what it is told, and no more.
        Mode::Guided => end == End::Fast,
        Mode::Passive => false,
    };
    if chooses {
        let mut own = Autonomy::at(manner(driver, epp(driver, &e.settings), end), levels.lowest);
        if mode == Mode::Active && e.settings.get(&GOVERNOR) == Some(PERFORMANCE) {
            own.floor = match driver {
                Driver::IntelPstate => levels.highest,
                Driver::AmdPstate => levels.nominal,
            };
        }
        perf.own = Some(own);
    }
    Some(perf)
}

/// Errors: a driver's setting on a machine with another one, a mode that the release has not, HWP off on hybrid processors, a
/// governor that the mode has not, a preference where nothing goes by it.
fn check(
    platform: &Platform,
    policy: &risetime_model::Policy,
    settings: &Settings,
) -> Result<(), InputError> {
    let driver = platform.scaling_driver();
    let name = &platform.name;
    for of in [Driver::IntelPstate, Driver::AmdPstate] {
        let setting = setting(of);
        if policy.said(&setting).is_some() && driver.is_none_or(|(own, _)| own != of) {
            let own = driver.map_or("has no driver of that kind".to_string(), |(own, _)| {
                format!("has {}", own.name())
            });
            let what = format!("`{setting}` is a parameter of {}: {name} {own}", of.name());
            return Err(InputError::new(policy.place_of(setting.0.name), what)
                .hint("platforms with such a driver have `levels` in their file (docs/x86.md)"));
        }
    }
    check_release(policy, settings)?;
    let mode = mode(platform, settings);
    let hybrid = || platform.domains.iter().filter_map(|d| d.levels).any(|l| is_hybrid(&l));
    if settings.get(&INTEL_PSTATE) == Some(NO_HWP) && hybrid() {
        let what = format!(
            "`{INTEL_PSTATE}={NO_HWP}`: {name} has hybrid processors, whose levels are those of HWP"
        );
        return Err(InputError::new(policy.place_of(INTEL_PSTATE.0.name), what));
    }
    let active = matches!(mode, Some((_, Mode::Active, _)));
    let governor = settings.get(&GOVERNOR).unwrap_or(SCHEDUTIL);
    if active && ![SCHEDUTIL, PERFORMANCE, POWERSAVE].contains(&governor) {
        let what = format!(
            "`{GOVERNOR}` is {governor}: in active mode {} has {PERFORMANCE} and {POWERSAVE}",
            driver.map_or("the driver", |(own, _)| own.name())
        );
        return Err(InputError::new(policy.place_of(GOVERNOR.0.name), what)
            .hint("the mode `passive` has all governors"));
    }
    if policy.said(&EPP).is_none() {
        return Ok(());
    }
    let refused = if !matches!(mode, Some((_, Mode::Active, true))) {
        format!("`{EPP}` is for hardware that decides: not on {name} in this mode")
    } else if governor == PERFORMANCE && epp_said(policy) {
        format!("`{EPP}` is 0 under the governor {PERFORMANCE}: the kernel refuses another")
    } else {
        return Ok(());
    };
    Err(InputError::new(policy.place_of(EPP.0.name), refused))
}

/// Whether a preference other than `performance` is asked for.
fn epp_said(policy: &risetime_model::Policy) -> bool {
    let said = policy.said(&EPP);
    said.is_some_and(|v| *v != Value::Int(0) && *v != Value::Name(PERFORMANCE.into()))
}

/// Errors: a mode of amd-pstate that the release has not, HWP in passive mode before 5.9.
fn check_release(policy: &risetime_model::Policy, settings: &Settings) -> Result<(), InputError> {
    let rev: KernelRev = policy.kernel;
    let since = match (policy.said(&AMD_PSTATE), settings.get(&AMD_PSTATE)) {
        (Some(_), Some(ACTIVE)) => features::AMD_PSTATE_EPP,
        (Some(_), Some(GUIDED)) => features::AMD_PSTATE_GUIDED,
        (Some(_), _) => features::AMD_PSTATE,
        (None, _) => return Ok(()),
    };
    if rev.has(since) {
        return Ok(());
    }
    let mode = settings.get(&AMD_PSTATE).unwrap_or(PASSIVE);
    let what = format!("`{AMD_PSTATE}={mode}`: kernels have it {since}, and this is {rev}");
    Err(InputError::new(policy.place_of(AMD_PSTATE.0.name), what))
}

/// Fills in what a driver makes of the others: the governor that active mode falls back to, and amd-pstate's lower limit.
fn complete(platform: &Platform, policy: &risetime_model::Policy, settings: &mut Settings) {
    let Some((driver, mode, _)) = mode(platform, settings) else { return };
    // `policy->policy` is powersave where the default governor is neither of the two.
    if mode == Mode::Active && settings.get(&GOVERNOR) != Some(PERFORMANCE) {
        settings.set(&GOVERNOR, POWERSAVE);
    }
    let nonlinear =
        driver == Driver::AmdPstate && policy.kernel.has(features::AMD_PSTATE_MIN_NONLINEAR);
    if nonlinear && !settings.is_set_anywhere(&MIN_FREQ) {
        for d in &platform.domains {
            let Some(levels) = d.levels else { continue };
            let khz = i64::try_from(levels.freq(levels.lowest_nonlinear).0).unwrap_or(0);
            let most = settings.of_policy(&crate::mech::pressure::limits::MAX_FREQ, d.cpus[0]);
            settings.set_own(&MIN_FREQ, d.cpus[0], most.map_or(khz, |most| khz.min(most)));
        }
    }
}

/// Notes for the reader of a result of such a machine.
fn notes(e: &Experiment) -> Vec<String> {
    let Some((driver, mode, hwp)) = mode(&e.platform, &e.settings) else { return Vec::new() };
    let (name, end) = (driver.name(), e.settings.get(&HARDWARE_RAMP).unwrap_or("slow"));
    let own = match (mode, hwp) {
        (Mode::Active, true) => format!(
            "{name} in active mode: the hardware decides the frequency, no governor of the kernel is asked; how it climbs is a model"
        ),
        (Mode::Active, false) => {
            format!(
                "{name} in active mode without HWP: its algorithm is the driver's own, the answer of the hardware a model"
            )
        }
        (Mode::Guided, _) => {
            format!(
                "{name} in guided mode: the governor says the least, above it the hardware decides; how it climbs is a model"
            )
        }
        (Mode::Passive, _) => {
            format!(
                "{name} in passive mode: requests are the driver's, how soon the hardware follows is a model"
            )
        }
    };
    vec![format!(
        "{own}, at its {end} end here (hardware_ramp); no such hardware was there to hold it to (docs/x86.md)"
    )]
}
