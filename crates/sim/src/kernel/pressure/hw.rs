//! Hardware that slows down by itself: `min(asked for, cap)`, whatever is asked for, and it says so.
//!
//! The kernel scales PELT with the frequency that it asked for, so under a hardware cap a CPU looks
//! faster than it is. Thermal zones decide in
//! [`thermal`](super::thermal).
//!
//! Source: drivers/base/arch_topology.c:topology_update_hw_pressure; kernel/sched/pelt.c:update_hw_load_avg.

use crate::kernel::Kernel;
use crate::kernel::policy::Policy;
use crate::kernel::pressure::{MOST_KHZ, OfPolicy, Source};
use crate::kernel::rq::Rq;
use crate::state::machine::from_time_0;
use crate::state::pressure::CpuPressure;
use crate::time::queue::Ev;
use risetime_kernel::KernelRev;
use risetime_kernel::opp::{cpufreq_set_policy, cpufreq_update_pressure};
use risetime_kernel::pelt::update_hw_load_avg;
use risetime_kernel::units::{Instant, KHz, Span, Util};
use risetime_model::settings::{Default, Home, Neutral, Param, Range};
use risetime_trace::Event;

const HW_CAPPED: &str = "hw_capped_khz";
const HW_CAPPED_FROM: &str = "hw_capped_from_ms";

/// A cap on one frequency domain, from some time on.
pub(crate) struct Hardware;

impl Source for Hardware {
    fn params(&self) -> &'static [Param] {
        &[
            Param {
                name: HW_CAPPED,
                doc: "the hardware goes no faster than the highest OPP up to here, whatever it is asked for, and reports it (of one policy: hw_capped_khz.policyN)",
                unit: "kHz",
                range: Range::Int(0, MOST_KHZ),
                default: Default::Unset,
                home: Home::Simulator(Neutral::None),
            },
            Param {
                name: HW_CAPPED_FROM,
                doc: "from when on it is capped",
                unit: "ms",
                range: Range::Int(0, 1_000_000_000),
                default: Default::Unset,
                home: Home::Simulator(Neutral::None),
            },
        ]
    }

    fn per_policy(&self) -> &'static [&'static str] {
        &[HW_CAPPED]
    }

    fn on_cpu(&self, own: OfPolicy, _: KernelRev, _: &mut CpuPressure) -> bool {
        own.int(HW_CAPPED).is_some()
    }

    fn plan(&self, k: &mut Kernel, own: OfPolicy, source: u8) {
        let Some(khz) = own.int(HW_CAPPED) else { return };
        let at = Instant(0) + Span::from_ms(own.of_all(HW_CAPPED_FROM).unwrap_or(0));
        // The setting's range is 32 bits.
        k.q.push(at, Ev::Pressure { source, domain: own.index as u32, value: khz as u32 });
    }

    fn changes(&self, policy: &mut Policy, khz: u32) {
        policy.hw_cap(KHz(khz.into()));
    }
}

impl Policy<'_, '_> {
    /// The hardware is slower from now on, and says so (`topology_update_hw_pressure`).
    pub(crate) fn hw_cap(&mut self, asked: KHz) {
        let d = self.d();
        let cap = cpufreq_set_policy(&d.table, KHz(0), asked).map_or(asked, |(_, max)| max);
        d.hw_cap = Some(cap);
        let (max, hw, related) = (d.freq_max(), d.hw, d.related.clone());
        for cpu in related {
            let mut rq = self.rq(cpu);
            let c = rq.c();
            if let Some(p) = &mut c.pressure {
                p.hw_pressure = cpufreq_update_pressure(c.capacity, cap, max);
            }
            rq.update_actual();
        }
        if hw > cap {
            self.set_hw_to(hw);
        }
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
