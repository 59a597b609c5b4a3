//! `schedutil`: frequency follows utilisation.
//!
//! ```text
//! perf(cpu)  = max(min, min(1.25 · util, max))       util, min, max: effective_cpu_util()
//!              (in place of 1.25 what the response-time series says: [`crate::mech::series`])
//! raw freq   = freq_max · max over the domain's CPUs of perf / capacity
//! next freq  = lowest OPP ≥ raw freq
//! ```
//!
//! Not more often than every `rate_limit_us` after the last *change*. A domain of one CPU
//! refuses a decrease while that CPU has not been idle since the last look
//! (`sugov_hold_freq`). Neither holds back what a CPU's deadline tasks have been promised beyond what
//! the last decision saw (`ignore_dl_rate_limit`). Before 6.8 the clamps came first:
//! [`crate::kernel::pre_6_8`].
//!
//! Without frequency invariance (`freq_invariance=no`) the current frequency stands in place of the highest one. Such a
//! machine is taken to know no `arch_scale_freq_ref` either (x86 is one, an arm64 machine may know it).
//!
//! Up to 4.16 a CPU's need is what it was at its own last look, of another CPU of the policy for no longer than a tick;
//! it is everything while a real-time or deadline task runs there. A busy CPU's decrease is not held up to 4.11.
//! Source: kernel/sched/cpufreq_schedutil.c.
//!
//! With a driver that takes util (`adjust_perf`: intel_pstate with HWP in passive mode, amd-pstate) there is no raw frequency:
//! least and desired go to the driver at every look, from the last of which the rate limit counts, and a busy CPU's util is
//! held in place of its frequency (`sugov_update_single_perf`).

use super::{Descriptor, FreqRequest, Governor, Resumed, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::Effects;
use crate::state::needs::Needs;
use crate::state::short_ways;
use crate::state::short_ways::ShortWay;
use risetime_kernel::headroom::Decided;
use risetime_kernel::pelt::Decay;
use risetime_kernel::response_time::sugov_calc_freq_response_ms;
use risetime_kernel::schedutil::{
    FreqRef, IowaitBoost, cpufreq_policy_transition_delay_us, get_capacity_ref_freq, get_next_freq,
    map_util_perf, perf_within, sugov_hold_freq, sugov_rate_limit_passed,
};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};
use risetime_kernel::{KernelRev, features};
use risetime_model::platform::Domain;
use risetime_model::settings::{
    Default, Group, Home, Int, IntOrName, Neutral, Param, Range, Settings, Value, keys,
};
use risetime_model::{Platform, Policy};
use risetime_trace::Why;

/// Shortest time between two changes of frequency, in µs.
pub const RATE_LIMIT_US: Int = Int::new(Param {
    name: keys::RATE_LIMIT_US.name(),
    doc: "shortest time between two changes of frequency; of one policy: rate_limit_us.policyN",
    unit: "µs",
    range: Range::Int(0, u32::MAX as i64),
    default: Default::Derived(
        "from the domains' transition latency, by kernel generation",
        |platform, policy| {
            Some(Value::Int(rate_limit_us(policy.kernel, platform.domains.first()?)))
        },
    ),
    home: Home::Tunable("schedutil/rate_limit_us"),
});

pub(crate) const RESPONSE_TIME_MS: Int = Int::new(Param {
    name: "response_time_ms",
    doc: "time from the lowest to the highest frequency, 0 = the policy's own (patch 6 of RFC 00/16); of one policy: response_time_ms.policyN",
    unit: "ms",
    range: Range::Int(0, 1_000_000),
    default: Default::Unset,
    home: Home::Patched(Some("cpufreq/schedutil/response_time_ms"), Neutral::None),
});

pub(crate) const DVFS_HEADROOM: IntOrName = IntOrName::new(Param {
    name: "dvfs_headroom",
    doc: "room above util, in percent of it, rounded down: mainline = 25; update_delay = what it grows until the frequency can change again (patch 5 of RFC 00/16)",
    unit: "%",
    range: Range::IntOr(0, 400, &["mainline", "update_delay"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Both(25, "mainline")),
});

pub(crate) const WAITING_HEADROOM: Int = Int::new(Param {
    name: "waiting_headroom",
    doc: "room above util is at least what the CPU's tasks wait, waiting_avg (patch 13 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(crate) const NO_DECAYING_HEADROOM: Int = Int::new(Param {
    name: "no_decaying_headroom",
    doc: "no room above a util that is less than at the last look (patch 14 of RFC 00/16)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Int(0)),
});

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: keys::governor::SCHEDUTIL,
    doc: "frequency follows the scheduler's utilisation signals",
    settings: Group::of(&[
        RATE_LIMIT_US.0,
        RESPONSE_TIME_MS.0,
        DVFS_HEADROOM.0,
        WAITING_HEADROOM.0,
        NO_DECAYING_HEADROOM.0,
    ])
    .per_policy(&[RATE_LIMIT_US.0, RESPONSE_TIME_MS.0])
    .completed(add_rate_limits),
    rate_limit: Some(RATE_LIMIT_US),
    works: Works::WhereSlow,
    make: |platform, domain, settings| Box::new(Schedutil::new(platform, domain, settings)),
};

/// The default `rate_limit_us` of a domain: what its driver says, else by kernel generation from
/// the largest transition latency of its OPPs.
pub(crate) fn rate_limit_us(kernel: KernelRev, domain: &Domain) -> i64 {
    let latency = u32::try_from(domain.transition_latency().0).unwrap_or(u32::MAX);
    i64::from(cpufreq_policy_transition_delay_us(
        kernel,
        latency,
        domain.transition_delay_us.unwrap_or(0),
    ))
}

/// The limit in force in a domain, in µs.
pub(crate) fn rate_limit_in_force(settings: &Settings, domain: &Domain) -> u64 {
    let us = settings.of_policy(&RATE_LIMIT_US, domain.cpus[0]).unwrap_or(0);
    us.clamp(0, i64::from(u32::MAX)) as u64
}

/// The default `response_time_ms` of a domain's policy (RFC 00/16, patch 6).
pub(crate) fn response_time_ms(decay: &Decay, domain: &Domain) -> u64 {
    let max = domain.freq_max();
    let second = domain.opps.iter().rev().map(|o| o.freq).find(|f| *f < max).unwrap_or(max);
    sugov_calc_freq_response_ms(decay, domain.capacity, max, second)
}

/// Adds the limits of domains whose default differs from the first domain's, which is
/// `rate_limit_us`.
///
/// Drivers that switch fast keep tunables per policy; under cpufreq-dt one tunable serves all
/// policies and starts with the first policy's value.
fn add_rate_limits(platform: &Platform, policy: &Policy, settings: &mut Settings) {
    let first = settings.get(&RATE_LIMIT_US);
    if policy.said(&RATE_LIMIT_US).is_some() {
        return;
    }
    for domain in platform.domains.iter().filter(|d| d.fast_switch) {
        let own = rate_limit_us(policy.kernel, domain);
        let said = settings.own(&RATE_LIMIT_US, domain.cpus[0]);
        if said.is_none() && Some(own) != first {
            settings.set_own(&RATE_LIMIT_US, domain.cpus[0], own);
        }
    }
}

/// One sugov policy.
struct Schedutil {
    rate_limit_us: u32,
    /// `last_freq_update_time`.
    last_freq_update: Instant,
    /// `need_freq_update`: set when the governor starts (`sugov_limits`) and when deadline bandwidth
    /// rises, so that the next look decides whatever the rate limit and the cached frequency say.
    need_freq_update: bool,
    /// 0 until the first decision.
    next_freq: KHz,
    cached_raw_freq: KHz,
    /// Util of the last look that a driver took in place of a frequency (`sg_cpu->util`).
    held_util: Util,
    /// The least and the most util that have led to `next_freq` since the limits last changed, and with them all between.
    same_opp: Option<(Util, Util)>,
    /// State by the CPU's place in the domain.
    cpus: Vec<PerCpu>,
    /// True if one of the CPUs may have an iowait boost.
    boosts: bool,
    tick: Span,
}

#[derive(Clone, Copy, std::default::Default)]
struct PerCpu {
    iowait: IowaitBoost,
    saved_idle_calls: u64,
    /// Need at the CPU's last look, up to 4.16, and when that was.
    seen: Option<(Instant, Need)>,
    /// Util that the last decision guaranteed the CPU: deadline bandwidth, or its lower clamp
    /// (`bw_min`).
    bw_min: Util,
}

/// Need of the domain as a whole, and the CPU that has it.
#[derive(Clone, Copy)]
struct Need {
    util: Util,
    why: Why,
    /// `effective_cpu_util`'s minimum, before 6.8 the deadline bandwidth.
    min: Util,
}

/// The need of no CPU.
const NO_NEED: Need = Need { util: Util(0), why: Why::Util, min: Util(0) };

impl Need {
    /// The part of the need that counts beside another CPU's `most`: the reason only if it is more.
    fn of_note(self, most: Util) -> (Util, Util, Option<Why>) {
        (self.util, self.min, (self.util > most).then_some(self.why))
    }
}

/// The reason for which more is asked for than util: deadline bandwidth, or a lower clamp.
#[inline]
fn why_raised(domain: &DomainView<'_>, cpu: CpuId, perf: Util) -> Why {
    if domain.cpu_bw_dl(cpu) >= perf { Why::DlBandwidth } else { Why::UclampMin }
}

/// The need of `cpu` by the short way, with its reason.
#[inline]
fn plain_need_of(domain: &DomainView<'_>, cpu: CpuId, needs: Needs) -> Need {
    let Needs { wanted, perf, min } = needs;
    let why = if perf > wanted { why_raised(domain, cpu, perf) } else { Why::Util };
    Need { util: perf, why, min }
}

impl Schedutil {
    fn new(platform: &Platform, domain: usize, settings: &Settings) -> Schedutil {
        let domain = &platform.domains[domain];
        Schedutil {
            rate_limit_us: rate_limit_in_force(settings, domain) as u32,
            last_freq_update: Instant(0),
            need_freq_update: true,
            next_freq: KHz(0),
            cached_raw_freq: KHz(0),
            held_util: Util(0),
            same_opp: None,
            cpus: vec![PerCpu::default(); domain.cpus.len()],
            boosts: false,
            tick: platform.tick(),
        }
    }

    /// `sugov_get_util` for one CPU, with the reason for the result if that is above `most`.
    #[inline]
    fn need_of(
        domain: &DomainView<'_>,
        cpu: CpuId,
        boost: Util,
        effects: Option<&mut Effects>,
        most: Util,
    ) -> Need {
        let mut eff = domain.effective_cpu_util(cpu);
        let mut util = eff.util.max(boost);
        let clamped_first = !domain.rev().has(features::SUGOV_EFFECTIVE_CPU_PERF);
        let unclamped = util;
        if clamped_first {
            util = domain.sugov_util_pre_6_8(cpu, boost);
            (eff.min, eff.max) = (Util(0), domain.most_pre_6_8());
        }
        let (wanted, decided) = domain.dvfs_util(cpu, util, effects);
        let wanted = domain.wanted(cpu, wanted);
        let perf = perf_within(wanted, eff.min, eff.max);
        let why = if perf <= most {
            Why::Util
        } else if perf > wanted {
            why_raised(domain, cpu, perf)
        } else if clamped_first && util > unclamped {
            Why::UclampMin
        } else if (perf < wanted && perf < Util(domain.capacity().0))
            || (clamped_first && util < unclamped)
        {
            Why::UclampMax
        } else if boost > eff.util {
            Why::IowaitBoost
        } else {
            match decided {
                Decided::Growth => Why::Util,
                Decided::Waiting => Why::Waiting,
                Decided::Decaying => Why::Decaying,
            }
        };
        // `bw_dl` where there was no minimum yet.
        let min = if clamped_first { domain.cpu_bw_dl(cpu) } else { eff.min };
        Need { util: perf, why, min }
    }

    /// `sugov_next_freq_shared` up to the frequency; `effects`: count the iowait boosts down
    /// as the kernel does when it looks (a look for the trace alone must not).
    #[inline]
    fn need(&mut self, domain: &DomainView<'_>, mut effects: Option<&mut Effects>) -> Need {
        let consume = effects.is_some();
        if domain.is_plain() && !self.boosts {
            return self.plain_need(domain, consume);
        }
        let mut most = NO_NEED;
        for &cpu in domain.cpus() {
            let own = &mut self.cpus[domain.place_in_policy(cpu)];
            let mut iowait = own.iowait;
            let boost = iowait.sugov_iowait_apply(domain.now(), self.tick, domain.capacity());
            let need = Schedutil::need_of(domain, cpu, boost, effects.as_deref_mut(), most.util);
            if consume {
                own.iowait = iowait;
                own.bw_min = need.min;
            }
            if need.util > most.util {
                most = need;
            }
        }
        self.boosts = self.cpus.iter().any(|c| c.iowait.iowait_boost != 0);
        most
    }

    /// `sugov_next_freq_shared` up to 4.16: every CPU's need as of its own last look.
    fn need_pre_4_17(&mut self, domain: &DomainView<'_>, cpu: CpuId) -> Need {
        let now = domain.now();
        let mut need = Schedutil::need_of(domain, cpu, Util(0), None, Util(0));
        if domain.runs_above_fair(cpu) {
            need = Need { util: Util(domain.capacity().0), why: Why::RealTime, ..need };
        }
        self.cpus[domain.place_in_policy(cpu)].seen = Some((now, need));
        let seen = domain.cpus().iter().filter_map(|&c| self.cpus[domain.place_in_policy(c)].seen);
        let fresh = seen.filter(|(at, _)| now.since(*at) <= self.tick).map(|(_, need)| need);
        fresh.fold(NO_NEED, |most, need| if need.util > most.util { need } else { most })
    }

    /// The need of the policy's CPUs by the short way: for where no task waits for IO.
    #[inline]
    fn plain_need(&mut self, domain: &DomainView<'_>, consume: bool) -> Need {
        short_ways::take(ShortWay::Plain);
        let (mut most, mut most_of) = (Needs::default(), domain.cpus()[0]);
        for &cpu in domain.cpus() {
            let needs = domain.plain_needs(cpu);
            debug_assert_eq!(plain_need_of(domain, cpu, needs).of_note(most.perf), {
                Schedutil::need_of(domain, cpu, Util(0), None, most.perf).of_note(most.perf)
            });
            if consume {
                self.cpus[domain.place_in_policy(cpu)].bw_min = needs.min;
            }
            if needs.perf > most.perf {
                (most, most_of) = (needs, cpu);
            }
        }
        plain_need_of(domain, most_of, most)
    }

    /// Whether that util leads to the frequency that there is, as such utils have before. (A policy of one CPU may hold it,
    /// and without invariance what util means depends on the frequency.)
    #[inline]
    fn keeps_opp(&self, domain: &DomainView<'_>, util: Util) -> bool {
        let known = self.same_opp.is_some_and(|(least, most)| (least..=most).contains(&util));
        let keeps = known && domain.keeps_opp() && domain.cpus().len() > 1;
        if keeps {
            short_ways::take(ShortWay::SameOpp);
        }
        keeps
    }

    /// [`sugov_hold_freq`] of a policy of one CPU, which remembers how often that has been idle; not
    /// while the CPU is capped.
    fn hold(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        next: KHz,
        last: KHz,
        forced: bool,
    ) -> bool {
        if !domain.rev().has(features::SUGOV_HOLD_FREQ) {
            return false;
        }
        let capped = domain.lowers_while_busy(cpu);
        let calls = domain.idle_calls(cpu);
        let saved = &mut self.cpus[0].saved_idle_calls;
        let unchanged = !capped && std::mem::replace(saved, calls) == calls;
        domain.holds(sugov_hold_freq(next, last, unchanged, capped, forced))
    }

    /// `sugov_update_shared` from what is needed on; `update`: the rate limit does not hold the look back.
    #[inline(never)]
    fn decide(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        need: Need,
        update: bool,
    ) -> FreqRequest {
        let invariant = domain.freq_invariant();
        if domain.adjusts_perf() {
            return self.adjust_perf(domain, cpu, need, update);
        }
        let known = FreqRef {
            arch_scale_freq_ref: if invariant { domain.freq_ref() } else { KHz(0) },
            freq_invariant: invariant,
            cpuinfo_max_freq: domain.freq_ref(),
            cur: domain.cur(),
        };
        let ref_freq = get_capacity_ref_freq(domain.rev(), &known);
        // The headroom is in the util: before 6.8 the kernel adds it here, after the clamps.
        let rev = domain.rev().max(features::SUGOV_EFFECTIVE_CPU_PERF.first);
        let linear = get_next_freq(rev, need.util, domain.capacity(), ref_freq);
        let raw = domain.freq_of_capacity(need.util).unwrap_or(linear);
        if !update {
            let freq = domain.resolve_freq(raw);
            let why = if freq == self.next_freq { Why::Unchanged } else { Why::RateLimited };
            return FreqRequest { util: need.util, freq: self.next_freq, why };
        }
        let cached = self.cached_raw_freq;
        let forced = std::mem::take(&mut self.need_freq_update);
        let mut next =
            if raw == cached && !forced { self.next_freq } else { domain.resolve_freq(raw) };
        self.cached_raw_freq = raw;
        let mut why = need.why;
        if domain.cpus().len() == 1 && self.hold(domain, cpu, next, self.next_freq, forced) {
            (next, why) = (self.next_freq, Why::HoldBusy);
            self.cached_raw_freq = cached;
        }
        if why == Why::HoldBusy {
            return FreqRequest { util: need.util, freq: next, why };
        }
        let same = self.same_opp.filter(|_| next == self.next_freq);
        let (least, most) = same.unwrap_or((need.util, need.util));
        self.same_opp = Some((least.min(need.util), most.max(need.util)));
        if next == self.next_freq {
            return self.unchanged(need.util);
        }
        (self.next_freq, self.last_freq_update) = (next, domain.now());
        if !invariant && why == Why::Util {
            let of_all = get_next_freq(rev, need.util, domain.capacity(), domain.freq_ref());
            why = if domain.resolve_freq(of_all) > next { Why::NotInvariant } else { why };
        }
        FreqRequest { util: need.util, freq: next, why }
    }

    /// `sugov_update_single_perf` from what is needed on.
    fn adjust_perf(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        need: Need,
        update: bool,
    ) -> FreqRequest {
        let rev = domain.rev();
        // With the headroom in it: up to 6.7 the kernel adds it here, to the bandwidth, too.
        let effective = rev.has(features::SUGOV_EFFECTIVE_CPU_PERF);
        let min = if effective { need.min } else { map_util_perf(need.min) };
        let max = domain.effective_cpu_util(cpu).max;
        let freq = |util| domain.adjust_perf((min, util, max)).unwrap_or(domain.cur());
        if !update {
            let why = match freq(need.util) == self.next_freq {
                true => Why::Unchanged,
                false => Why::RateLimited,
            };
            return FreqRequest { util: need.util, freq: self.next_freq, why };
        }
        self.need_freq_update = false;
        let held = self.hold(domain, cpu, KHz(need.util.0), KHz(self.held_util.0), false);
        let util = if held { self.held_util } else { need.util };
        self.held_util = util;
        let next = freq(util);
        self.last_freq_update = domain.now();
        let why = match () {
            () if next == self.next_freq => Why::Unchanged,
            () if util > need.util => Why::HoldBusy,
            () => need.why,
        };
        self.next_freq = next;
        FreqRequest { util, freq: next, why }
    }

    /// A look that leads to the frequency that there is.
    fn unchanged(&self, util: Util) -> FreqRequest {
        FreqRequest { util, freq: self.next_freq, why: Why::Unchanged }
    }
}

impl Governor for Schedutil {
    fn start(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        None
    }

    fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        iowait: bool,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        let now = domain.now();
        let c = &mut self.cpus[domain.place_in_policy(cpu)];
        if iowait || self.boosts {
            self.boosts = true;
            c.iowait.sugov_iowait_boost(now, self.tick, iowait);
        }
        c.iowait.last_update = now;
        // `ignore_dl_rate_limit`: up to 7.1 by way of `limits_changed`, to the same effect. Where the
        // clamp or interrupts guarantee more, it is compared with that.
        self.need_freq_update |= domain.cpu_bw_dl(cpu) > c.bw_min;
        let forced = self.need_freq_update;
        let old = !domain.rev().has(features::SUGOV_NEXT_FREQ_SHARED);
        let needs_of_last_look = old.then(|| self.need_pre_4_17(domain, cpu));
        let update = forced
            || domain.rate_limit_passed(sugov_rate_limit_passed(
                now,
                self.last_freq_update,
                self.rate_limit_us,
            ));
        if !update && !domain.is_told() {
            short_ways::take(ShortWay::Unheard);
            return Some(FreqRequest { why: Why::RateLimited, ..self.unchanged(Util(0)) });
        }
        let need = match needs_of_last_look {
            Some(need) => need,
            None => self.need(domain, update.then_some(effects)),
        };
        if update && self.keeps_opp(domain, need.util) {
            self.need_freq_update = false;
            return Some(self.unchanged(need.util));
        }
        Some(self.decide(domain, cpu, need, update))
    }

    fn limits(&mut self, domain: &DomainView<'_>) -> Option<KHz> {
        (self.need_freq_update, self.same_opp) = (true, None);
        (!domain.fast_switch()).then(|| domain.within_limits(domain.cur()))
    }

    fn resume(&mut self, at: &Resumed) {
        (self.next_freq, self.last_freq_update) = (at.freq, at.since);
        (self.cached_raw_freq, self.need_freq_update) = (at.cached_raw_freq, at.forced);
        self.same_opp = None;
        if let Some(at) = at.of_cpu {
            let c = &mut self.cpus[at.place];
            (c.bw_min, c.saved_idle_calls) = (at.bw_min, at.saved_idle_calls);
        }
    }
}
