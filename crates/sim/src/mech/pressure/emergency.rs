//! Hardware that caps itself when it is too hot: it looks each ms, at `hw_capped_above_millicelsius` the cap of
//! `caps` comes, below the other temperature it goes again.
//!
//! An emergency of this kind is faster than thermal zones and their governors
//! ([`thermal`](super::thermal)), which look each polling delay. Its sensor is that of the zone that the policy's first CPU
//! heats.
//!
//! Source: drivers/thermal/qcom/lmh.c (arm, low and high threshold).

use crate::kernel::policy::Policy;
use crate::mech::pressure::caps::HARDWARE;
use crate::mech::pressure::state::{Caps, Input};
use crate::mech::pressure::thermal::THERMAL;
use crate::mech::pressure::{OfPolicy, Source, Told, change};
use risetime_kernel::units::{Instant, Span};
use risetime_model::InputError;
use risetime_model::settings::{Default, Home, Int, Neutral, Param, Range};

pub(crate) const ABOVE: Int = Int::new(Param {
    name: "hw_capped_above_millicelsius",
    doc: "the hardware caps itself (hw_capped_khz) only once the thermal zone that its CPUs heat is so hot",
    unit: "m°C",
    range: Range::Int(1, 300_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});
pub(crate) const BELOW: Int = Int::new(Param {
    name: "hw_capped_below_millicelsius",
    doc: "temperature below which the hardware no longer caps itself (unset: 5 °C less than it began to)",
    unit: "m°C",
    range: Range::Int(0, 300_000),
    default: Default::Unset,
    home: Home::Simulator(Neutral::None),
});
/// Time between two looks of the hardware.
const LOOK: Span = Span(1_000_000);
/// Temperature by which it has to be cooler, in m°C.
const HYSTERESIS: i64 = 5000;

/// A cap that comes with heat.
pub(crate) struct Emergency;

/// The temperatures at which the cap comes and goes; `None`: it is off.
fn heat(own: OfPolicy) -> Option<(i64, i64)> {
    let above = own.settings.get(&ABOVE)?;
    Some((above, own.settings.get(&BELOW).unwrap_or(above - HYSTERESIS)))
}

impl Source for Emergency {
    fn title(&self) -> Option<(&'static str, &'static str)> {
        Some((
            "emergency",
            "hardware that caps itself when it is hot, looking each ms (hw_capped_above_millicelsius)",
        ))
    }

    fn heading(&self) -> &'static str {
        "Hardware that gets too hot"
    }

    fn params(&self) -> &'static [Param] {
        &[ABOVE.0, BELOW.0]
    }

    fn per_policy(&self) -> &'static [Param] {
        &[]
    }

    /// Errors: heat where there is none, or that would come and go at once.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        let err = |name: &Int, what: String| {
            let value = own.settings.get(name).unwrap_or(0);
            Err(InputError::of_setting(name, value, what))
        };
        let Some((above, below)) = heat(own) else {
            return match own.settings.get(&BELOW) {
                Some(_) => err(&BELOW, format!("has no effect: {ABOVE} is not set")),
                None => Ok(()),
            };
        };
        let capped = &HARDWARE.settings;
        if !own.settings.is_set_anywhere(&capped.most) {
            return err(&ABOVE, format!("has no effect: {} is not set", capped.most));
        }
        if own.platform.thermal.is_empty() || own.settings.get(&THERMAL) == Some(0) {
            return err(&ABOVE, "has no effect: there are no thermal zones in force".into());
        }
        let times = [capped.from, capped.until, capped.period];
        if let Some(time) = times.into_iter().find(|t| own.settings.is_set(t)) {
            return err(&time, "has no effect: this cap comes and goes with heat".into());
        }
        if below >= above {
            return err(&BELOW, format!("is not below {ABOVE}, {above}"));
        }
        Ok(())
    }

    fn plan_caps(&self, own: OfPolicy, caps: &mut Caps) {
        if let Some(plan) = &mut caps.of_mut(Input::Hardware).plan {
            plan.heat = heat(own);
        }
    }

    fn plan(&self, policy: &mut Policy, own: OfPolicy, source: u8) {
        let plan = policy.d().slots.pressure.caps.of(Input::Hardware).plan;
        if plan.is_some_and(|p| p.heat.is_some()) {
            policy.push(Instant(0) + LOOK, change(source, own.index, 0));
        }
    }

    fn changes(&self, policy: &mut Policy, told: Told) {
        let cap = *policy.d().slots.pressure.caps.of(Input::Hardware);
        let Some((plan, (above, below))) = cap.plan.and_then(|p| Some((p, p.heat?))) else {
            return;
        };
        if let Some(now) = told.millicelsius {
            let on = cap.khz == plan.khz;
            if now >= above && !on {
                policy.cap(Input::Hardware, plan.khz);
            } else if now < below && on {
                policy.cap(Input::Hardware, plan.otherwise);
            }
        }
        policy.push(policy.m().now + LOOK, told.again(policy, told.value));
    }
}
