//! Governors of active mode: the hardware, which is asked nothing, and intel_pstate's own algorithm without HWP.
//!
//! `DEVIATES(pstate-remote)`: intel_pstate's algorithm hears of every update of util; in the kernel not of those that another
//! CPU makes. It samples every 10 ms, at a tick mostly, which is the CPU's own.
//!
//! Source: drivers/cpufreq/intel_pstate.c:intel_pstate_update_util, intel_pstate_sample, intel_pstate_adjust_pstate.

use crate::kernel::governor::{
    Descriptor, DomainView, FreqRequest, GOVERNOR, GoesBy, Governor, Works,
};
use crate::mech::pstate::state::{Perf, physical};
use crate::state::effects::Effects;
use risetime_kernel::intel_pstate::{
    SAMPLING_INTERVAL, Sample, get_target_pstate, intel_pstate_iowait_boost,
    intel_pstate_prepare_request,
};
use risetime_kernel::units::{CpuId, Instant, KHz, Util};
use risetime_model::platform::Driver;
use risetime_model::settings::Group;
use risetime_model::settings::keys::governor::{PERFORMANCE, POWERSAVE};
use risetime_trace::Why;

pub(super) const HARDWARE: Descriptor = Descriptor {
    name: POWERSAVE,
    doc: "the hardware decides",
    settings: Group::of(&[]),
    rate_limit: None,
    works: Works::WhereSlow,
    make: |platform, domain, settings| {
        let intel =
            platform.domains[domain].levels.is_some_and(|l| l.driver == Driver::IntelPstate);
        let highest = intel && settings.get(&GOVERNOR) == Some(PERFORMANCE);
        Box::new(Hardware { highest })
    },
};

pub(super) const INTEL_PSTATE: Descriptor = Descriptor {
    name: POWERSAVE,
    doc: "intel_pstate's own algorithm, without HWP",
    settings: Group::of(&[]),
    rate_limit: None,
    works: Works::WhereSlow,
    make: |_, _, _| Box::new(IntelPstate::default()),
};

/// The hardware decides: no request but that of limits.
struct Hardware {
    /// True if the least is the most.
    highest: bool,
}

impl Governor for Hardware {
    fn start(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        let max = domain.limits().1;
        self.highest.then_some(FreqRequest { util: Util(0), freq: max, why: Why::Fixed })
    }
    fn goes_by(&self) -> GoesBy {
        if self.highest { GoesBy::Highest } else { GoesBy::Samples }
    }
    fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        _: bool,
        _: &mut Effects,
    ) -> Option<FreqRequest> {
        let all = domain.wanted(cpu, Util(0)) > Util(0);
        all.then(|| FreqRequest {
            util: domain.wanted(cpu, Util(0)),
            freq: domain.limits().1,
            why: Why::Util,
        })
    }
    fn limits(&mut self, domain: &DomainView<'_>) -> Option<KHz> {
        self.highest.then(|| domain.limits().1)
    }
}

/// `struct cpudata` of a CPU.
#[derive(Default)]
struct IntelPstate {
    iowait_boost: u64,
    last_update: Instant,
    /// Time of the last sample, and the counters then; `None`: there was none.
    sample: Option<(Instant, u64, u64)>,
    current: KHz,
}

impl IntelPstate {
    /// `intel_pstate_sample`: what was counted since the last one; `None`: nothing, or it is the first.
    fn sample(&mut self, domain: &DomainView<'_>, cpu: CpuId, perf: &Perf) -> Option<Sample> {
        let now = domain.now();
        let (aperf, mperf) = domain.registers(cpu, perf.levels.base_freq);
        let Some((at, aperf_then, mperf_then)) = self.sample else {
            self.sample = Some((now, aperf, mperf));
            return None;
        };
        if mperf == mperf_then {
            return None;
        }
        self.sample = Some((now, aperf, mperf));
        let tsc = super::state::cycles(now.since(at), perf.levels.base_freq);
        Some(Sample { aperf: aperf - aperf_then, mperf: mperf - mperf_then, tsc })
    }
}

impl Governor for IntelPstate {
    fn start(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        self.current = domain.limits().0;
        None
    }
    fn goes_by(&self) -> GoesBy {
        GoesBy::Samples
    }
    fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        iowait: bool,
        _: &mut Effects,
    ) -> Option<FreqRequest> {
        let (now, perf) = (domain.now(), domain.perf()?);
        let since = now.since(self.last_update);
        self.iowait_boost =
            intel_pstate_iowait_boost(self.iowait_boost, since, domain.tick(), iowait);
        self.last_update = now;
        let all = domain.wanted(cpu, Util(0));
        if all > Util(0) {
            self.current = domain.limits().1;
            return Some(FreqRequest { util: all, freq: self.current, why: Why::Util });
        }
        let early = self.sample.is_some_and(|(at, ..)| now.since(at) < SAMPLING_INTERVAL);
        if early {
            return None;
        }
        let sample = self.sample(domain, cpu, perf)?;
        let levels = domain.intel_levels()?;
        let pstate = get_target_pstate(&levels, physical(&perf.levels), sample, self.iowait_boost);
        let pstate = intel_pstate_prepare_request(&levels, pstate);
        let busy = Util(sample.mperf.min(sample.tsc) * 1024 / sample.tsc.max(1));
        let freq = perf.levels.freq(pstate.min(perf.levels.highest));
        let why = if freq == self.current { Why::Unchanged } else { Why::Util };
        self.current = freq;
        Some(FreqRequest { util: busy, freq, why })
    }
    fn limits(&mut self, domain: &DomainView<'_>) -> Option<KHz> {
        Some(domain.within_limits(self.current))
    }
}
