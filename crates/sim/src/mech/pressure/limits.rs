//! `scaling_min_freq` and `scaling_max_freq`: a policy's limits from the beginning on (later ones:
//! `caps`), and `boost`: whether it has its boost OPPs.
//!
//! Source: drivers/cpufreq/cpufreq.c:cpufreq_set_policy, freq_table.c:cpufreq_frequency_table_cpuinfo. Left out: boost that
//! changes during a run, boost of single policies (since 6.11).

use crate::mech::pressure::state::{Caps, Input};
use crate::mech::pressure::{MOST_KHZ, OfPolicy, Source};
use risetime_kernel::units::KHz;
use risetime_model::settings::{Default, Home, Int, Param, Range, keys};
use risetime_model::{InputError, Platform};

pub(crate) const MAX_FREQ: Int = Int::new(Param {
    name: keys::SCALING_MAX_FREQ.name(),
    doc: "no governor gets more than the highest OPP up to here (of one policy: scaling_max_freq.policyN)",
    unit: "kHz",
    range: Range::Int(0, MOST_KHZ),
    default: Default::Unset,
    home: Home::Policy("scaling_max_freq"),
});
pub(crate) const MIN_FREQ: Int = Int::new(Param {
    name: keys::SCALING_MIN_FREQ.name(),
    doc: "no governor gets less than the lowest OPP from here on (of one policy: scaling_min_freq.policyN)",
    unit: "kHz",
    range: Range::Int(0, MOST_KHZ),
    default: Default::Unset,
    home: Home::Policy("scaling_min_freq"),
});
pub(crate) const BOOST: Int = Int::new(Param {
    name: "cpufreq_boost",
    doc: "whether boost OPPs may be used (unset: no)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::CpuSysfs("cpufreq/boost"),
});

/// Limits of user space.
pub(crate) struct Limits;

impl Source for Limits {
    fn title(&self) -> Option<(&'static str, &'static str)> {
        Some(("limits", "scaling_min_freq, scaling_max_freq; boost OPPs (cpufreq_boost)"))
    }

    fn heading(&self) -> &'static str {
        "Limits on the frequency"
    }

    fn params(&self) -> &'static [Param] {
        &[MAX_FREQ.0, MIN_FREQ.0, BOOST.0]
    }

    fn per_policy(&self) -> &'static [Param] {
        &[MAX_FREQ.0, MIN_FREQ.0]
    }

    /// Errors: a minimum above the maximum; boost where there is none.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        let boosts = |p: &Platform| p.domains.iter().any(|d| d.opps.iter().any(|o| o.turbo));
        if let Some(value) = own.of_all(&BOOST).filter(|_| !boosts(own.platform)) {
            let what = format!("has no effect: {} has no boost OPPs", own.platform.name);
            return Err(InputError::of_setting(BOOST, value, what));
        }
        match (own.int(&MIN_FREQ), own.int(&MAX_FREQ)) {
            (Some(min), Some(max)) if min > max => {
                let cpu = own.policy();
                let what = format!("{MIN_FREQ} of policy{cpu} is {min}, above {MAX_FREQ}, {max}");
                Err(InputError::new("settings", what).of_settings(&[&MIN_FREQ, &MAX_FREQ]))
            }
            _ => Ok(()),
        }
    }

    fn plan_caps(&self, own: OfPolicy, caps: &mut Caps) {
        let of = |of: &Int| own.int(of).map(KHz);
        caps.min = of(&MIN_FREQ).unwrap_or(KHz(0));
        if let Some(max) = of(&MAX_FREQ) {
            caps.of_mut(Input::User).khz = max;
        }
    }
}
