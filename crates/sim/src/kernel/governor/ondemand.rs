//! `ondemand`: the highest frequency above a load, below it one that is in proportion.
//!
//! ```text
//! load > up_threshold    policy->max, and the next sample sampling_down_factor times as late
//! else                   min + load · (max - min) / 100, to the closest OPP
//!                        (up to 3.16 load · max / 100, to the next OPP)
//! powersave_bias         of that so many thousandths less, as time at the OPP above and at the one below
//! ```
//!
//! When it samples and what a load is: [`super::sampling`]. Source: drivers/cpufreq/cpufreq_ondemand.c.

use super::sampling::{self, PolicyDbs, number};
use super::{Descriptor, FreqRequest, GoesBy, Governor, Occasion, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::Effects;
use risetime_kernel::dbs::{
    freq_hi_delay_us, od_freq_next, od_freq_next_pre_3_17, powersave_bias_avg,
};
use risetime_kernel::features;
use risetime_kernel::opp::Relation;
use risetime_kernel::units::{CpuId, KHz, Util};
use risetime_model::settings::{Default, Group, Home, Int, Param, Range, keys};
use risetime_trace::Why;

/// Shortest time between two samples, in µs.
pub const SAMPLING_RATE: Int =
    sampling::sampling_rate("ondemand/sampling_rate", |platform, policy| {
        sampling::default_rate(platform, policy, LEAST_RATE)
    });
/// `min_sampling_rate`, up to 4.13, in µs (`MICRO_FREQUENCY_MIN_SAMPLE_RATE`).
const LEAST_RATE: fn(i64) -> i64 = |_| 10_000;

/// Load above which a policy goes up, in %.
pub const UP_THRESHOLD: Int = Int::new(Param {
    name: "up_threshold",
    doc: "above this load of its busiest CPU a policy gets its highest frequency",
    unit: "%",
    range: Range::Int(1, 100),
    default: Default::Int(95),
    home: Home::Tunable("ondemand/up_threshold"),
});

/// Factor by which samples are rarer at the highest frequency.
pub const SAMPLING_DOWN_FACTOR: Int = Int::new(Param {
    name: "sampling_down_factor",
    doc: "factor by which samples are rarer at the highest frequency",
    unit: "samples",
    range: Range::Int(1, 100_000),
    default: Default::Int(1),
    home: Home::Tunable("ondemand/sampling_down_factor"),
});

pub(crate) const POWERSAVE_BIAS: Int = Int::new(Param {
    name: "powersave_bias",
    doc: "mean reduction of every frequency; more than 1000 is 1000",
    unit: "‰",
    range: Range::Int(0, sampling::UINT_MAX),
    default: Default::Int(0),
    home: Home::Tunable("ondemand/powersave_bias"),
});

pub(crate) const IO_IS_BUSY: Int = Int::new(Param {
    name: "io_is_busy",
    doc: "count waiting for devices as busy; more than 1 is 1",
    unit: "",
    range: Range::Int(0, sampling::UINT_MAX),
    default: Default::Int(0),
    home: Home::Tunable("ondemand/io_is_busy"),
});

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: keys::governor::ONDEMAND,
    doc: "the highest frequency above a load, below it in proportion; samples idle time",
    settings: Group::of(&[
        SAMPLING_RATE.0,
        UP_THRESHOLD.0,
        SAMPLING_DOWN_FACTOR.0,
        POWERSAVE_BIAS.0,
        sampling::ignore_nice_load("ondemand/ignore_nice_load").0,
        IO_IS_BUSY.0,
        sampling::AFTER_IDLE.0,
        sampling::SAMPLING.0,
    ])
    .checked(sampling::check_rate)
    .completed(|platform, policy, settings| {
        let most = [(IO_IS_BUSY, 1), (POWERSAVE_BIAS, 1000)];
        sampling::round(platform, policy, settings, LEAST_RATE, &most);
    }),
    rate_limit: Some(SAMPLING_RATE),
    works: Works::Kworker,
    make: |platform, domain, settings| {
        Box::new(Ondemand {
            policy: PolicyDbs::new(platform, domain, settings),
            up_threshold: number(settings, &UP_THRESHOLD),
            sampling_down_factor: number(settings, &SAMPLING_DOWN_FACTOR),
            powersave_bias: number(settings, &POWERSAVE_BIAS),
            lower: None,
            sub_sample: false,
        })
    },
};

/// The OPP for the rest of a sampling period, and how long that is.
#[derive(Clone, Copy)]
struct Lower {
    freq: KHz,
    delay_us: u32,
}

struct Ondemand {
    policy: PolicyDbs,
    up_threshold: u32,
    sampling_down_factor: u32,
    powersave_bias: u32,
    lower: Option<Lower>,
    /// `OD_SUB_SAMPLE`: next comes the lower OPP.
    sub_sample: bool,
}

impl Ondemand {
    /// `od_update`: the frequency, and how long until the next sample, µs.
    fn od_update(&mut self, domain: &DomainView<'_>) -> (KHz, u32, u32) {
        let load = self.policy.sample(domain).load;
        let (_, max) = domain.limits();
        self.lower = None;
        let hi = |o: &Self| o.policy.sampling_rate.wrapping_mul(o.policy.rate_mult);
        if self.policy.wants_all {
            return (max, hi(self), load);
        }
        if load > self.up_threshold {
            if domain.cur() < max {
                self.policy.rate_mult = self.sampling_down_factor;
            }
            let (freq, delay) = match self.powersave_bias {
                0 => (domain.resolve_by(Relation::High, max), hi(self)),
                _ => self.biased(domain, max, Relation::High, Relation::Low),
            };
            return (freq, delay, load);
        }
        let lowest = domain.freqs().next().unwrap_or(max);
        // Commit 6393d6a10238: "cpufreq: ondemand: Eliminate the deadband effect".
        let (next, relation) = if domain.rev().has(features::OD_CLOSEST) {
            (od_freq_next(load, lowest, domain.freq_max()), Relation::Close)
        } else {
            (od_freq_next_pre_3_17(load, domain.freq_max()), Relation::Low)
        };
        self.policy.rate_mult = 1;
        let (freq, delay) = match self.powersave_bias {
            0 => (domain.resolve_by(relation, next), hi(self)),
            _ => self.biased(domain, next, Relation::Low, relation),
        };
        (freq, delay, load)
    }

    /// `generic_powersave_bias_target` of `freq`, then the driver's choice by `last`.
    fn biased(
        &mut self,
        domain: &DomainView<'_>,
        freq: KHz,
        relation: Relation,
        last: Relation,
    ) -> (KHz, u32) {
        let avg = powersave_bias_avg(domain.resolve_by(relation, freq), self.powersave_bias);
        let lo = domain.resolve_by(Relation::High, avg);
        let hi = domain.resolve_by(Relation::Low, avg);
        let rate = self.policy.sampling_rate;
        if hi == lo {
            return (domain.resolve_by(last, lo), rate.wrapping_mul(self.policy.rate_mult));
        }
        let delay = freq_hi_delay_us(avg, lo, hi, rate);
        self.lower = Some(Lower { freq: lo, delay_us: rate.wrapping_sub(delay) });
        (domain.resolve_by(last, hi), delay)
    }
}

impl Governor for Ondemand {
    fn goes_by(&self) -> GoesBy {
        GoesBy::Samples
    }
    fn start(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        self.policy.start(domain);
        None
    }

    fn update_util(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        _: bool,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        self.policy.update_util(domain, cpu, effects);
        None
    }

    fn attends(&self) -> bool {
        self.policy.attends()
    }

    fn occasion(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        occasion: Occasion,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        if occasion == Occasion::Tick {
            self.policy.tick(domain, cpu, effects);
        }
        None
    }

    /// `od_dbs_update`.
    fn work(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        if std::mem::take(&mut self.sub_sample)
            && let Some(lower) = self.lower
        {
            self.policy.done(domain, lower.delay_us);
            let freq = domain.resolve_by(Relation::High, lower.freq);
            return Some(FreqRequest { util: Util(0), freq, why: Why::Util });
        }
        let (freq, delay, load) = self.od_update(domain);
        self.sub_sample = self.lower.is_some();
        self.policy.done(domain, delay);
        Some(sampling::request(domain, load, freq))
    }
}
