//! Heat: the settings of a platform's thermal zones ([`crate::mech::thermal`]).

use crate::mech::pressure::state::{Caps, CpuPressure, Input, Interface};
use crate::mech::pressure::{OfPolicy, Source};
use risetime_model::settings::{Default, Home, Int, Neutral, Param, Range, Settings, keys};
use risetime_model::{InputError, Platform};

pub(crate) const THERMAL: Int = Int::new(Param {
    name: keys::THERMAL.name(),
    doc: "whether the platform's thermal zones heat up and cap frequencies (unset: where it has any)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Int(0)),
});
pub(crate) const START_TEMP: Int = Int::new(Param {
    name: "start_temp",
    doc: "temperature of every thermal zone at the start (unset: that of its surroundings)",
    unit: "m°C",
    range: Range::Int(0, 300_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});

/// Thermal zones of a platform.
pub(crate) struct Zones;

impl Source for Zones {
    fn title(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "thermal",
            "the platform's thermal zones cap frequencies (step_wise, power_allocator)",
        ))
    }

    fn heading(&self) -> &'static str {
        "Heat"
    }

    fn params(&self) -> &'static [Param] {
        &[THERMAL.0, START_TEMP.0]
    }

    fn per_policy(&self) -> &'static [Param] {
        &[]
    }

    /// Errors: heat where there are no zones.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        let zones = !own.platform.thermal.is_empty();
        let asked = own.settings.get(&THERMAL) == Some(1);
        let off = own.settings.get(&THERMAL) == Some(0) || !zones;
        let refused = |name: &Int, what: String| {
            let value = own.settings.get(name).unwrap_or(0);
            Err(InputError::of_setting(name, value, what))
        };
        if asked && !zones {
            let what = format!("{} has no thermal zones", own.platform.name);
            return refused(&THERMAL, what)
                .map_err(|e: InputError| e.hint("docs/thermal.md shows how a platform gets some"));
        }
        if off && own.settings.get(&START_TEMP).is_some() {
            return refused(
                &START_TEMP,
                "has no effect: there are no thermal zones in force".into(),
            );
        }
        Ok(())
    }

    /// True where a thermal zone may later report pressure as a PELT average to this CPU.
    fn on_cpu(&self, own: OfPolicy, caps: &Caps, _: &mut CpuPressure) -> bool {
        let cooled = own.platform.thermal.iter().any(|z| z.cools.contains(&own.domain.cpus[0]));
        cooled
            && is_on(own.platform, own.settings)
            && caps.of(Input::Thermal).interface == Interface::Average
    }
}

/// Whether thermal zones are in force.
pub(crate) fn is_on(platform: &Platform, settings: &Settings) -> bool {
    !platform.thermal.is_empty() && settings.get(&THERMAL) != Some(0)
}
