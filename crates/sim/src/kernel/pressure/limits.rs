//! `scaling_min_freq` and `scaling_max_freq`: a policy's limits, from the beginning to the end.
//!
//! Source: drivers/cpufreq/cpufreq.c:cpufreq_set_policy. Left out: limits that change during a run.

use crate::kernel::pressure::{MOST_KHZ, OfPolicy, Source};
use risetime_kernel::units::KHz;
use risetime_model::InputError;
use risetime_model::settings::{Default, Home, Param, Range};

const MAX_FREQ: &str = "scaling_max_freq";
const MIN_FREQ: &str = "scaling_min_freq";

/// What user space allows.
pub(crate) struct Limits;

impl Source for Limits {
    fn params(&self) -> &'static [Param] {
        &[
            Param {
                name: MAX_FREQ,
                doc: "no governor gets more than the highest OPP up to here (of one policy: scaling_max_freq.policyN)",
                unit: "kHz",
                range: Range::Int(0, MOST_KHZ),
                default: Default::Unset,
                home: Home::Policy(MAX_FREQ),
            },
            Param {
                name: MIN_FREQ,
                doc: "no governor gets less than the lowest OPP from here on (of one policy: scaling_min_freq.policyN)",
                unit: "kHz",
                range: Range::Int(0, MOST_KHZ),
                default: Default::Unset,
                home: Home::Policy(MIN_FREQ),
            },
        ]
    }

    fn per_policy(&self) -> &'static [&'static str] {
        &[MAX_FREQ, MIN_FREQ]
    }

    /// Errors: a minimum above the maximum.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        match (own.int(MIN_FREQ), own.int(MAX_FREQ)) {
            (Some(min), Some(max)) if min > max => {
                let cpu = own.policy();
                let what = format!("{MIN_FREQ} of policy{cpu} is {min}, above {MAX_FREQ}, {max}");
                Err(InputError::new("settings", what))
            }
            _ => Ok(()),
        }
    }

    fn limits(&self, own: OfPolicy) -> (KHz, KHz) {
        let of = |name| own.int(name).map(KHz);
        (of(MIN_FREQ).unwrap_or(KHz(0)), of(MAX_FREQ).unwrap_or(KHz(u64::MAX)))
    }
}
