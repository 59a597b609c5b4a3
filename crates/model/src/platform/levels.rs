//! Performance levels: of CPUs whose driver hands levels to the hardware, which then clocks as it will.
//!
//! ```text
//! amd-pstate     a level of CPPC                      frequency ⌈nominal_khz · level / nominal⌉
//! intel_pstate   a level of HWP, or a P-state         frequency level · nominal_khz / nominal, a whole number
//! ```
//!
//! The operating points of such a domain are its levels, from the lowest to the highest.
//!
//! Source: drivers/cpufreq/amd-pstate.c:perf_to_freq; drivers/cpufreq/intel_pstate.c (`pstate.scaling`).

use super::bounds::{MAX_KHZ, MAX_LATENCY_NS};
use super::{Domain, Opp, Platform, keys};
use crate::InputError;
use crate::toml_in::Table;
use risetime_kernel::units::{KHz, MicroWatts, Span};
use std::fmt::Write;

/// Drivers that hand levels to the hardware, by their kernel names.
pub(super) const DRIVERS: [&str; 2] = ["amd-pstate", "intel_pstate"];
/// The highest level that their registers hold.
pub(super) const MAX_LEVEL: u64 = 255;

/// A driver that hands levels to the hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// `amd-pstate`, by CPPC.
    AmdPstate,
    /// `intel_pstate`, by HWP or PERF_CTL.
    IntelPstate,
}

impl Driver {
    /// Returns the kernel's name of the driver.
    pub fn name(self) -> &'static str {
        match self {
            Driver::AmdPstate => DRIVERS[0],
            Driver::IntelPstate => DRIVERS[1],
        }
    }
}

/// Levels of the CPUs of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The driver.
    pub driver: Driver,
    /// True if the hardware can choose by itself: always with amd-pstate, with HWP of intel_pstate.
    pub hwp: bool,
    /// The highest level, with boost or turbo.
    pub highest: u64,
    /// The highest level that can be kept up (nominal, guaranteed).
    pub nominal: u64,
    /// The lowest level below which a lower frequency saves nothing.
    pub lowest_nonlinear: u64,
    /// The lowest level.
    pub lowest: u64,
    /// Frequency of the nominal level.
    pub nominal_freq: KHz,
    /// Frequency at which MPERF counts.
    pub base_freq: KHz,
}

impl Levels {
    /// The frequency of `level`. Rounding: up.
    pub fn freq(&self, level: u64) -> KHz {
        KHz((self.nominal_freq.0 * level).div_ceil(self.nominal))
    }
    /// The level of one of the domain's frequencies: the lowest that is no slower.
    pub fn of_freq(&self, freq: KHz) -> u64 {
        let own = freq.0 * self.nominal / self.nominal_freq.0;
        let level = if self.freq(own) >= freq { own } else { own + 1 };
        level.clamp(self.lowest, self.highest)
    }
}

/// Reads `levels`, and the operating points that they are.
///
/// Errors: levels out of order, an intel_pstate whose level is no whole number of kHz.
pub(super) fn read(t: &Table<'_>) -> Result<Option<(Levels, Vec<Opp>)>, InputError> {
    let Some(t) = t.opt_table("levels")? else { return Ok(None) };
    t.only(&keys::names("domain.levels"))?;
    let driver = match t.str("scaling_driver")? {
        "amd-pstate" => Driver::AmdPstate,
        "intel_pstate" => Driver::IntelPstate,
        other => {
            let what = format!("is \"{other}\", wanted {}", DRIVERS.join(" or "));
            return Err(t.error_of("scaling_driver", what));
        }
    };
    let hwp = t.opt_bool("hwp")?.unwrap_or(true);
    if !hwp && driver == Driver::AmdPstate {
        return Err(t.error_of("hwp", "is of intel_pstate: amd-pstate goes by CPPC"));
    }
    let lowest = t.int("lowest", 1, MAX_LEVEL)?;
    let nominal = t.int("nominal", lowest, MAX_LEVEL)?;
    let lowest_nonlinear = t.opt_int("lowest_nonlinear", lowest, nominal)?.unwrap_or(lowest);
    let highest = t.int("highest", nominal, MAX_LEVEL)?;
    let nominal_freq = KHz(t.int("nominal_khz", 1, MAX_KHZ)?);
    if driver == Driver::IntelPstate && !nominal_freq.0.is_multiple_of(nominal) {
        let what = format!(
            "is {}, which {nominal} levels do not divide: intel_pstate's levels are whole numbers of kHz",
            nominal_freq.0
        );
        return Err(t.error_of("nominal_khz", what));
    }
    let base_freq = KHz(t.opt_int("base_khz", 1, MAX_KHZ)?.unwrap_or(nominal_freq.0));
    let latency = Span(t.opt_int("latency_ns", 0, MAX_LATENCY_NS)?.unwrap_or(0));
    let levels =
        Levels { driver, hwp, highest, nominal, lowest_nonlinear, lowest, nominal_freq, base_freq };
    let opp = |level| Opp::new(levels.freq(level), MicroWatts(0), latency);
    Ok(Some((levels, (lowest..=highest).map(opp).collect())))
}

/// Writes `levels` of a domain, which stand for its operating points. True: it has some.
pub(super) fn write(out: &mut String, d: &Domain) -> bool {
    let Some(l) = d.levels else { return false };
    let _ = write!(out, "levels = {{ scaling_driver = \"{}\"", l.driver.name());
    if !l.hwp {
        out.push_str(", hwp = false");
    }
    let _ = writeln!(
        out,
        ", highest = {}, nominal = {}, lowest_nonlinear = {}, lowest = {}, nominal_khz = {}, base_khz = {}, latency_ns = {} }}",
        l.highest,
        l.nominal,
        l.lowest_nonlinear,
        l.lowest,
        l.nominal_freq.0,
        l.base_freq.0,
        d.transition_latency().0
    );
    true
}

impl Platform {
    /// Checks that one driver has all domains: a kernel has one.
    ///
    /// Errors: two drivers, or domains with levels beside some without.
    pub(super) fn check_levels(&self) -> Result<(), String> {
        let of = |d: &Domain| d.levels.map(|l| (l.driver, l.hwp));
        let differs = self.domains.iter().any(|d| of(d) != of(&self.domains[0]));
        if differs {
            let what =
                "the domains have different drivers, by their `levels`: a kernel has one for all";
            return Err(what.to_string());
        }
        match self.domains.iter().find(|d| d.levels.is_some() && d.cpus.len() > 1) {
            Some(d) => Err(format!(
                "CPUs {} have `levels` and one policy: such drivers have one for each CPU (cpus_per_policy = 1)",
                super::cpu_ranges(&d.cpus)
            )),
            None => Ok(()),
        }
    }
    /// The driver that hands levels to the hardware, if there is one, and whether that can choose by itself.
    pub fn scaling_driver(&self) -> Option<(Driver, bool)> {
        self.domains.first().and_then(|d| d.levels).map(|l| (l.driver, l.hwp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
schema = 1
name = "x"
hz = 1000
[[domain]]
cpus = "0-1"
cpus_per_policy = 1
capacity = 1024
levels = { scaling_driver = "amd-pstate", highest = 196, nominal = 126, lowest_nonlinear = 42, lowest = 16, nominal_khz = 3301000, latency_ns = 20000 }
[[domain]]
cpus = "2"
capacity = 1024
levels = { scaling_driver = "amd-pstate", highest = 196, nominal = 126, lowest = 16, nominal_khz = 3301000 }
[sources]
capacity = "estimate"
opp = "estimate"
"#;

    /// ⌈3301000 · level / 126⌉: what an 8840U's lscpu shows, 419 and 5134 MHz.
    #[test]
    fn levels_are_the_operating_points_and_survive_writing_and_reading() {
        let p = Platform::parse(GOOD, "x.toml").expect("a platform");
        let d = &p.domains[0];
        assert_eq!(
            (d.opps.len(), d.opps[0].freq, d.freq_max()),
            (181, KHz(419_175), KHz(5_134_889))
        );
        let levels = d.levels.expect("levels");
        for level in 16..=196 {
            assert_eq!(levels.of_freq(levels.freq(level)), level);
        }
        assert_eq!(levels.of_freq(KHz(1)), 16);
        assert_eq!(Platform::parse(&p.to_toml(), "again.toml").expect("its text"), p);
    }

    #[test]
    fn levels_that_cannot_be_are_refused_with_their_place() {
        for (good, bad, words) in [
            (
                "highest = 196",
                "highest = 125",
                "`highest` is 125, wanted a whole number from 126 to 255",
            ),
            ("lowest = 16", "lowest = 0", "`lowest` is 0, wanted"),
            ("lowest_nonlinear = 42", "lowest_nonlinear = 127", "from 16 to 126"),
            ("\"amd-pstate\"", "\"acpi-cpufreq\"", "wanted amd-pstate or intel_pstate"),
            ("\"amd-pstate\"", "\"intel_pstate\"", "which 126 levels do not divide"),
            ("highest = 196", "hwp = false, highest = 196", "`hwp` is of intel_pstate"),
            ("cpus_per_policy = 1\n", "", "CPUs 0-1 have `levels` and one policy"),
            (
                "levels = {",
                "opp = [{ freq_khz = 1000 }]\nlevels = {",
                "and frequencies are both there",
            ),
        ] {
            let text = GOOD.replacen(good, bad, 1);
            assert_ne!(text, GOOD, "{bad}");
            let error = Platform::parse(&text, "x.toml").expect_err(bad).to_string();
            assert!(error.contains(words) && error.starts_with("x.toml"), "{bad}: {error}");
        }
        let other = GOOD.rsplit_once("levels = {").expect("two");
        let text = format!(
            "{}opp = [{{ freq_khz = 1000 }}]\n[sources]\ncapacity = \"e\"\nopp = \"e\"\n",
            other.0
        );
        let error = Platform::parse(&text, "x.toml").expect_err("two drivers").to_string();
        assert!(error.contains("different drivers"), "{error}");
    }
}
