//! `sched_pixel`: the governor of Google's Pixel phones, schedutil with a response time, another
//! headroom and two rate limits.
//!
//! ```text
//!  util(cpu)   = clamps(headroom((cfs + rt) · response_time_ms_nom / response_time_ms)) …    6.1
//!                clamps(cfs + rt) …, a margin on the frequency                              5.10
//!  frequency   = highest · most util / capacity, to an OPP; an efficient one where they are asked
//!  up, down    no change to a higher frequency before up_rate_limit_us, to a lower one before
//!              down_rate_limit_us · (next / now)^down_rate_limit_scale_pow
//! ```
//!
//! A CPU's fair util is that of its utilization groups ([`crate::mech::pixel`]), without the
//! modules mainline's. A policy of one CPU does not hold its frequency while that is busy, but in
//! the form of 5.10: the switch for it is off in 6.1.
//!
//! Leaves out: limits by performance counters (`pmu_limit_enable`, `spc_threshold`,
//! `lcpi_threshold`, `limit_frequency`): there is no model of the counters, and the phones' public
//! scripts leave `pmu_poll_enable` at 0. Source: cpufreq_gov.c of the modules; arithmetic:
//! [`risetime_kernel::pixel`].

use super::{Descriptor, FreqRequest, Governor, Resumed, Works, schedutil};
use crate::kernel::governor::DomainView;
use crate::mech::pixel::tunables::{
    AUTO_HEADROOM, DOWN_RATE_LIMIT_SCALE_POW, DOWN_RATE_LIMIT_US, HEADROOM, IOWAIT_MOST, NAME,
    RESPONSE_TIME_MS, SKIP_INEFFICIENT, TAPERED_HEADROOM, UP_RATE_LIMIT_US, of,
};
use crate::state::effects::Effects;
use risetime_kernel::pixel::{IowaitBoost, RateLimits};
use risetime_kernel::schedutil::sugov_hold_freq;
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{Group, Int, Settings};
use risetime_model::{Platform, Policy};
use risetime_trace::Why;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: NAME,
    doc: "that of Google's Pixel phones: a response time, headroom by time, rate limits for up and down",
    settings: Group::of(&[
        UP_RATE_LIMIT_US.0,
        DOWN_RATE_LIMIT_US.0,
        DOWN_RATE_LIMIT_SCALE_POW.0,
        RESPONSE_TIME_MS.0,
        AUTO_HEADROOM.0,
        TAPERED_HEADROOM.0,
        HEADROOM.0,
        IOWAIT_MOST.0,
        SKIP_INEFFICIENT.0,
    ])
    .per_policy(&[
        UP_RATE_LIMIT_US.0,
        DOWN_RATE_LIMIT_US.0,
        DOWN_RATE_LIMIT_SCALE_POW.0,
        RESPONSE_TIME_MS.0,
        HEADROOM.0,
        IOWAIT_MOST.0,
    ])
    .completed(add_delays),
    rate_limit: Some(UP_RATE_LIMIT_US),
    works: Works::WhereSlow,
    make: |platform, domain, settings| {
        Box::new(SchedPixel::new(platform, &platform.domains[domain], settings))
    },
};

/// Adds the limits of domains whose default differs from the first domain's: the phones' driver
/// keeps tunables per policy.
fn add_delays(platform: &Platform, policy: &Policy, settings: &mut Settings) {
    for item in [UP_RATE_LIMIT_US, DOWN_RATE_LIMIT_US] {
        if policy.said(&item).is_some() {
            continue;
        }
        let first = settings.get(&item);
        for domain in &platform.domains {
            let own = schedutil::rate_limit_us(policy.kernel, domain);
            if settings.own(&item, domain.cpus[0]).is_none() && Some(own) != first {
                settings.set_own(&item, domain.cpus[0], own);
            }
        }
    }
}

#[derive(Clone, Copy, std::default::Default)]
struct PerCpu {
    iowait: IowaitBoost,
    saved_idle_calls: u64,
    /// Deadline bandwidth at the last look.
    bw_dl: Util,
}

/// Need of the policy's CPUs together.
#[derive(Clone, Copy)]
struct Need {
    cpu: CpuId,
    util: Util,
    why: Why,
}

struct SchedPixel {
    limits: RateLimits,
    last_freq_update: Instant,
    need_freq_update: bool,
    /// 0 until the first decision.
    next_freq: KHz,
    cached_raw_freq: KHz,
    cpus: Vec<PerCpu>,
    tick: Span,
}

impl SchedPixel {
    fn new(platform: &Platform, domain: &Domain, settings: &Settings) -> SchedPixel {
        let ns = |item: &Int| of(settings, item, domain, 0) * 1000;
        SchedPixel {
            limits: RateLimits {
                up_ns: ns(&UP_RATE_LIMIT_US),
                down_ns: ns(&DOWN_RATE_LIMIT_US),
                scale_pow: of(settings, &DOWN_RATE_LIMIT_SCALE_POW, domain, 1) as u32,
            },
            last_freq_update: Instant(0),
            need_freq_update: true,
            next_freq: KHz(0),
            cached_raw_freq: KHz(0),
            cpus: vec![PerCpu::default(); domain.cpus.len()],
            tick: platform.tick(),
        }
    }

    /// `sugov_next_freq_shared` up to the frequency; `looks`: boosts are counted down, as when the
    /// kernel looks.
    fn need(&mut self, domain: &DomainView<'_>, looks: bool) -> Need {
        let mut most = Need { cpu: domain.cpus()[0], util: Util(0), why: Why::Util };
        for &cpu in domain.cpus() {
            let own = &mut self.cpus[domain.place_in_policy(cpu)];
            let mut iowait = own.iowait;
            let boost = domain.iowait_applies(&mut iowait, self.tick);
            if looks {
                (own.iowait, own.bw_dl) = (iowait, domain.cpu_bw_dl(cpu));
            }
            let (util, why) = domain.pixel_util(cpu, boost);
            if util > most.util {
                most = Need { cpu, util, why };
            }
        }
        most
    }

    fn unchanged(&self, util: Util) -> FreqRequest {
        FreqRequest { util, freq: self.next_freq, why: Why::Unchanged }
    }

    /// `get_next_freq`, and `sugov_update_next_freq`.
    fn decide(&mut self, domain: &DomainView<'_>, cpu: CpuId, need: Need) -> FreqRequest {
        let forced = std::mem::take(&mut self.need_freq_update);
        let cached = self.cached_raw_freq;
        let raw = domain.pixel_freq(need.cpu, need.util);
        let mut next = match raw == cached && !forced {
            true => self.next_freq,
            false => domain.resolve_freq(raw),
        };
        self.cached_raw_freq = raw;
        if self.holds(domain, cpu, next, forced) {
            next = self.next_freq;
            self.cached_raw_freq = cached;
            return FreqRequest { util: need.util, freq: next, why: Why::HoldBusy };
        }
        if next == self.next_freq {
            return self.unchanged(need.util);
        }
        let delta = domain.now().0.wrapping_sub(self.last_freq_update.0);
        let early = !forced && self.limits.sugov_up_down_rate_limit(delta, self.next_freq, next);
        if early && !domain.rate_limit_passed(false) {
            self.cached_raw_freq = cached;
            return FreqRequest { util: need.util, freq: self.next_freq, why: Why::RateLimited };
        }
        (self.next_freq, self.last_freq_update) = (next, domain.now());
        FreqRequest { util: need.util, freq: next, why: need.why }
    }

    /// Whether a policy of one CPU keeps its frequency because that is busy, in the form of 5.10.
    fn holds(&mut self, domain: &DomainView<'_>, cpu: CpuId, next: KHz, forced: bool) -> bool {
        if self.cpus.len() > 1 || !domain.pixel_holds_busy() {
            return false;
        }
        let (calls, saved) = (domain.idle_calls(cpu), &mut self.cpus[0].saved_idle_calls);
        let busy = std::mem::replace(saved, calls) == calls;
        domain.holds(sugov_hold_freq(next, self.next_freq, busy, false, forced))
    }
}

impl Governor for SchedPixel {
    fn start(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        None
    }

    fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        iowait: bool,
        _: &mut Effects,
    ) -> Option<FreqRequest> {
        let now = domain.now();
        let most = domain.pixel_iowait_most(cpu);
        let own = &mut self.cpus[domain.place_in_policy(cpu)];
        own.iowait.asks(now, self.tick, iowait, most);
        // `ignore_dl_rate_limit`, by way of `limits_changed`.
        self.need_freq_update |= domain.cpu_bw_dl(cpu) > own.bw_dl;
        let delta = now.0.wrapping_sub(self.last_freq_update.0);
        let early = !self.need_freq_update && self.limits.holds_all(delta);
        if early && !domain.rate_limit_passed(false) {
            let util = if domain.is_told() { self.need(domain, false).util } else { Util(0) };
            return Some(FreqRequest { why: Why::RateLimited, ..self.unchanged(util) });
        }
        let need = self.need(domain, true);
        Some(self.decide(domain, cpu, need))
    }

    fn limits(&mut self, domain: &DomainView<'_>) -> Option<KHz> {
        self.need_freq_update = true;
        (!domain.fast_switch()).then(|| domain.within_limits(domain.cur()))
    }

    fn resume(&mut self, at: &Resumed) {
        (self.next_freq, self.last_freq_update) = (at.freq, at.since);
        (self.cached_raw_freq, self.need_freq_update) = (at.cached_raw_freq, at.forced);
        if let Some(at) = at.of_cpu {
            let c = &mut self.cpus[at.place];
            (c.bw_dl, c.saved_idle_calls) = (at.bw_min, at.saved_idle_calls);
        }
    }
}
