//! Governors that do not look: `performance`, `powersave`, `userspace`.
//!
//! ```text
//! performance   highest OPP       powersave   lowest OPP       userspace   scaling_setspeed
//! ```
//!
//! `userspace` takes the lowest OPP at or above `scaling_setspeed` (`CPUFREQ_RELATION_L`), the
//! highest where there is none. Source: drivers/cpufreq/cpufreq_{performance,powersave,userspace}.c.

use super::{Descriptor, FreqRequest, GoesBy, Governor, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::Effects;
use risetime_kernel::units::{KHz, Util};
use risetime_model::settings::{Default, Group, Home, Int, Param, Range, keys};
use risetime_trace::Why;

pub(super) const PERFORMANCE: Descriptor = Descriptor {
    name: keys::governor::PERFORMANCE,
    doc: "always the highest frequency",
    settings: Group::of(&[]),
    rate_limit: None,
    works: Works::WhereSlow,
    make: |platform, domain, _| {
        Box::new(Fixed(GoesBy::Highest, platform.domains[domain].freq_boost()))
    },
};

pub(super) const POWERSAVE: Descriptor = Descriptor {
    name: keys::governor::POWERSAVE,
    doc: "always the lowest frequency",
    settings: Group::of(&[]),
    rate_limit: None,
    works: Works::WhereSlow,
    make: |platform, domain, _| {
        Box::new(Fixed(GoesBy::Fixed, platform.domains[domain].opps[0].freq))
    },
};

pub(crate) const SCALING_SETSPEED: Int = Int::new(Param {
    name: "scaling_setspeed",
    doc: "frequency of every domain, raised to the next OPP",
    unit: "kHz",
    range: Range::Int(0, u32::MAX as i64),
    default: Default::Int(0),
    home: Home::Policy("scaling_setspeed"),
});

pub(super) const USERSPACE: Descriptor = Descriptor {
    name: keys::governor::USERSPACE,
    doc: "the frequency that scaling_setspeed says",
    settings: Group::of(&[SCALING_SETSPEED.0]),
    rate_limit: None,
    works: Works::WhereSlow,
    make: |platform, domain, settings| {
        let wanted = KHz(settings.get(&SCALING_SETSPEED).unwrap_or(0).max(0) as u64);
        let domain = &platform.domains[domain];
        Box::new(Fixed(
            GoesBy::Fixed,
            domain
                .opps
                .iter()
                .map(|o| o.freq)
                .find(|f| *f >= wanted)
                .unwrap_or(domain.freq_boost()),
        ))
    },
};

/// One frequency for ever.
struct Fixed(GoesBy, KHz);

impl Governor for Fixed {
    fn goes_by(&self) -> GoesBy {
        self.0
    }
    fn start(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        Some(FreqRequest { util: Util(0), freq: self.1, why: Why::Fixed })
    }
    fn limits(&mut self, domain: &DomainView<'_>) -> Option<KHz> {
        Some(domain.within_limits(self.1))
    }
}
