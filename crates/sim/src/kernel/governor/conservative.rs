//! `conservative`: a step up above a load, a step down below another.
//!
//! ```text
//! load > up_threshold     freq_step % of policy->max more
//! load < down_threshold   as much less, at one sample in sampling_down_factor
//! slept through n samples first n steps down (from 4.10 on; from 6.12.y and 7.3.y on only where the sample itself is below)
//! ```
//!
//! When it samples and what a load is: [`super::sampling`]. Source: drivers/cpufreq/cpufreq_conservative.c.

use super::sampling::{self, PolicyDbs, number};
use super::{Descriptor, FreqRequest, GoesBy, Governor, Occasion, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::Effects;
use risetime_kernel::dbs::{Conservative as State, Sample, Step, Steps};
use risetime_kernel::opp::Relation;
use risetime_kernel::units::CpuId;
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{Default, Group, Home, Int, Param, Range, Settings, keys};
use risetime_model::{InputError, Platform, Policy};

/// Shortest time between two samples, in µs.
pub const SAMPLING_RATE: Int =
    sampling::sampling_rate("conservative/sampling_rate", |platform, policy| {
        sampling::default_rate(platform, policy, LEAST_RATE)
    });
/// `min_sampling_rate` for a tick of so many µs, up to 4.13 (`MIN_SAMPLING_RATE_RATIO` times ten).
const LEAST_RATE: fn(i64) -> i64 = |tick_us| 20 * tick_us;

/// Load above which a policy goes up, in %.
pub const UP_THRESHOLD: Int = Int::new(Param {
    name: "up_threshold",
    doc: "above this load of its busiest CPU a policy steps up",
    unit: "%",
    range: Range::Int(2, 100),
    default: Default::Int(80),
    home: Home::Tunable("conservative/up_threshold"),
});

pub(crate) const DOWN_THRESHOLD: Int = Int::new(Param {
    name: "down_threshold",
    doc: "below this load a policy steps down; less than up_threshold, and up to 4.11 at least 11",
    unit: "%",
    range: Range::Int(1, 99),
    default: Default::Int(20),
    home: Home::Tunable("conservative/down_threshold"),
});

/// Size of a step, in % of the highest frequency.
pub const FREQ_STEP: Int = Int::new(Param {
    name: "freq_step",
    doc: "a step, of the highest frequency within the limits; 0: none; more than 100 is 100",
    unit: "%",
    range: Range::Int(0, sampling::UINT_MAX),
    default: Default::Int(5),
    home: Home::Tunable("conservative/freq_step"),
});

pub(crate) const SAMPLING_DOWN_FACTOR: Int = Int::new(Param {
    name: "sampling_down_factor",
    doc: "a policy steps down only at every sample of so many",
    unit: "samples",
    range: Range::Int(1, 10),
    default: Default::Int(1),
    home: Home::Tunable("conservative/sampling_down_factor"),
});

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: keys::governor::CONSERVATIVE,
    doc: "a step up above a load, a step down below another; samples idle time",
    settings: Group::of(&[
        SAMPLING_RATE.0,
        UP_THRESHOLD.0,
        DOWN_THRESHOLD.0,
        FREQ_STEP.0,
        SAMPLING_DOWN_FACTOR.0,
        sampling::ignore_nice_load("conservative/ignore_nice_load").0,
        sampling::AFTER_IDLE.0,
        sampling::SAMPLING.0,
    ])
    .checked(check)
    .completed(|platform, policy, settings| {
        sampling::round(platform, policy, settings, LEAST_RATE, &[(FREQ_STEP, 100)]);
    }),
    rate_limit: Some(SAMPLING_RATE),
    works: Works::Kworker,
    make: |platform, domain, settings| {
        Box::new(Conservative {
            policy: PolicyDbs::new(platform, domain, settings),
            up_threshold: number(settings, &UP_THRESHOLD),
            down_threshold: number(settings, &DOWN_THRESHOLD),
            freq_step: number(settings, &FREQ_STEP),
            sampling_down_factor: number(settings, &SAMPLING_DOWN_FACTOR),
            state: State::default(),
        })
    },
};

/// Errors: a `down_threshold` that is not below `up_threshold`, or that older kernels refuse, a
/// `sampling_rate` below its least.
fn check(platform: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    sampling::check_rate(platform, policy, settings)?;
    let (Some(down), Some(up)) = (settings.get(&DOWN_THRESHOLD), settings.get(&UP_THRESHOLD))
    else {
        return Ok(());
    };
    if down < 11 && !policy.kernel.has(features::CS_LOW_DOWN_THRESHOLD) {
        let what = format!(
            "`{DOWN_THRESHOLD}` is {down} %, less than 11 %: kernels take that {}, and this is {}",
            features::CS_LOW_DOWN_THRESHOLD,
            policy.kernel
        );
        return Err(InputError::new(policy.place_of(DOWN_THRESHOLD.name), what));
    }
    if down < up {
        return Ok(());
    }
    let said = [DOWN_THRESHOLD, UP_THRESHOLD].into_iter().find(|of| policy.said(of).is_some());
    let what = format!("`{DOWN_THRESHOLD}` is {down} %, not less than `{UP_THRESHOLD}`, {up} %");
    Err(InputError::new(policy.place_of(said.unwrap_or(DOWN_THRESHOLD).name), what))
}

struct Conservative {
    policy: PolicyDbs,
    up_threshold: u32,
    down_threshold: u32,
    freq_step: u32,
    sampling_down_factor: u32,
    state: State,
}

/// Whether steps that a sleep put off are made up for only where the sample itself is below
/// `down_threshold`: in 6.12.117 and 7.3.4, not in 6.1.192 and 7.2.13.
fn makes_up_only_below(rev: KernelRev) -> bool {
    rev.has(features::CS_DEFERRED_ONLY_BELOW)
}

impl Governor for Conservative {
    fn goes_by(&self) -> GoesBy {
        GoesBy::Samples
    }
    fn start(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        self.policy.start(domain);
        self.state.requested_freq = domain.cur();
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

    fn work(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        let mut sample = self.policy.sample(domain);
        // Commit 00bfe05889e9: "cpufreq: conservative: Decrease frequency faster for deferred updates".
        if !domain.rev().has(features::CS_DEFERRED) {
            sample.idle_periods = Sample::NONE.idle_periods;
        }
        let by = Steps {
            up_threshold: self.up_threshold,
            down_threshold: self.down_threshold,
            freq_step: self.freq_step,
            sampling_down_factor: self.sampling_down_factor,
            only_below: makes_up_only_below(domain.rev()),
        };
        if self.policy.wants_all {
            let (_, max) = domain.limits();
            self.state.requested_freq = max;
            self.policy.done(domain, self.policy.sampling_rate);
            return Some(sampling::request(domain, sample.load, max));
        }
        let step = self.state.cs_dbs_update(sample, &by, domain.limits(), domain.cur());
        self.policy.done(domain, self.policy.sampling_rate);
        let wanted = self.state.requested_freq;
        let freq = match step {
            Step::Stay => return None,
            Step::Up => domain.resolve_by(Relation::High, wanted),
            Step::Down => domain.resolve_by(Relation::Low, wanted),
        };
        Some(sampling::request(domain, sample.load, freq))
    }
}
