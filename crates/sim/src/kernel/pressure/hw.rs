//! Hardware that slows down by itself: `min(asked for, cap)`, whatever is asked for, and it says so.
//!
//! ```text
//! by the clock   hw_capped_from_ms, …_until_ms, …_period_us          caps.rs
//! by heat        looks each ms: at hw_capped_above_millicelsius the cap comes, below the other it goes again
//! ```
//!
//! The kernel scales PELT with the frequency that it asked for, so under a hardware cap a CPU looks
//! faster than it is. An emergency of this kind is faster than thermal zones and their governors
//! ([`thermal`](super::thermal)), which look each polling delay. Its sensor is that of the zone that the policy's first CPU
//! heats.
//!
//! Source: drivers/base/arch_topology.c:topology_update_hw_pressure; kernel/sched/pelt.c:update_hw_load_avg;
//! drivers/thermal/qcom/lmh.c (arm, low and high threshold).

use crate::kernel::Kernel;
use crate::kernel::pressure::thermal::is_on;
use crate::kernel::pressure::{OfPolicy, Source};
use crate::kernel::rq::Rq;
use crate::state::machine::from_time_0;
use crate::state::pressure::{Caps, Input};
use crate::time::queue::Ev;
use risetime_kernel::pelt::update_hw_load_avg;
use risetime_kernel::units::{Instant, Span, Util};
use risetime_model::InputError;
use risetime_model::settings::{Default, Home, Neutral, Param, Range};
use risetime_trace::Event;

const ABOVE: &str = "hw_capped_above_millicelsius";
const BELOW: &str = "hw_capped_below_millicelsius";
/// How often the hardware looks.
const LOOK: Span = Span(1_000_000);
/// How much cooler it has to be, in m°C.
const HYSTERESIS: i64 = 5000;

/// A cap that comes with heat.
pub(crate) struct Emergency;

/// At which temperatures it comes and goes.
pub(super) fn heat(own: OfPolicy) -> Option<(i64, i64)> {
    let above = own.settings.int(ABOVE)?;
    Some((above, own.settings.int(BELOW).unwrap_or(above - HYSTERESIS)))
}

impl Source for Emergency {
    fn params(&self) -> &'static [Param] {
        &[
            Param {
                name: ABOVE,
                doc: "the hardware caps itself (hw_capped_khz) only once the thermal zone that its CPUs heat is so hot",
                unit: "m°C",
                range: Range::Int(1, 300_000),
                default: Default::Unset,
                home: Home::Simulator(Neutral::None),
            },
            Param {
                name: BELOW,
                doc: "until it is cooler than that (unset: 5 °C less)",
                unit: "m°C",
                range: Range::Int(0, 300_000),
                default: Default::Unset,
                home: Home::Simulator(Neutral::None),
            },
        ]
    }

    fn per_policy(&self) -> &'static [&'static str] {
        &[]
    }

    /// Errors: heat where there is none, or that would come and go at once.
    fn check(&self, own: OfPolicy) -> Result<(), InputError> {
        let err = |name: &str, what: String| {
            let value = own.settings.int(name).unwrap_or(0);
            Err(InputError::new(format!("setting {name}={value}"), what))
        };
        let Some((above, below)) = heat(own) else {
            return match own.settings.int(BELOW) {
                Some(_) => err(BELOW, format!("has no effect: {ABOVE} is not set")),
                None => Ok(()),
            };
        };
        if !is_on(own.platform, own.settings) {
            return err(ABOVE, "has no effect: there are no thermal zones in force".into());
        }
        if below >= above {
            return err(BELOW, format!("is not below {ABOVE}, {above}"));
        }
        Ok(())
    }

    fn plan_caps(&self, own: OfPolicy, caps: &mut Caps) {
        if let Some(plan) = &mut caps.of_mut(Input::Hardware).plan {
            plan.heat = heat(own);
        }
    }

    fn plan(&self, k: &mut Kernel, own: OfPolicy, source: u8) {
        let plan = k.m.domains[own.index].caps.of(Input::Hardware).plan;
        if plan.is_some_and(|p| p.heat.is_some()) {
            let domain = own.index as u32;
            k.q.push(Instant(0) + LOOK, Ev::Pressure { source, domain, value: 0 });
        }
    }

    fn changes(&self, k: &mut Kernel, domain: usize, source: u8, value: u32) {
        let d = &k.m.domains[domain];
        let (cap, cpu) = (*d.caps.of(Input::Hardware), d.related[0]);
        let Some((plan, (above, below))) = cap.plan.and_then(|p| Some((p, p.heat?))) else {
            return;
        };
        if let Some(now) = k.temperature(cpu) {
            let on = cap.khz == plan.khz;
            if now >= above && !on {
                k.policy(domain).cap(Input::Hardware, plan.khz);
            } else if now < below && on {
                k.policy(domain).cap(Input::Hardware, plan.otherwise);
            }
        }
        k.q.push(k.m.now + LOOK, Ev::Pressure { source, domain: domain as u32, value });
    }
}

impl Rq<'_, '_> {
    /// `update_hw_load_avg`; true if the average changed.
    pub(crate) fn update_hw(&mut self) -> bool {
        let cpu = self.cpu;
        let decay = self.m().decay;
        let c = self.c();
        let now = c.clock.clock_task;
        let Some(p) = &mut c.pressure else { return false };
        let avg = &mut p.hw_avg;
        let before = avg.load_avg;
        let changed = update_hw_load_avg(decay, now, avg, p.hw_pressure);
        if changed && (before, avg.load_avg) != (0, 0) {
            let event = Event::PeltPressure {
                cpu,
                class: "hw",
                util_avg: Util(avg.load_avg),
                util_sum: avg.load_sum,
                period_contrib: avg.period_contrib,
                last_update_time: from_time_0(avg),
            };
            self.update_actual();
            self.emit(event);
        }
        changed
    }
}
