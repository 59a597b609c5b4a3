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
use super::{Descriptor, FreqRequest, Governor, Occasion, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::Effects;
use risetime_kernel::dbs::{Conservative as State, Sample, Step, Steps};
use risetime_kernel::opp::Relation;
use risetime_kernel::units::CpuId;
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{Default, Home, Param, Range, Settings};
use risetime_model::{InputError, Policy};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "conservative",
    doc: "a step up above a load, a step down below another; samples idle time",
    params: &[
        sampling::sampling_rate("conservative/sampling_rate"),
        Param {
            name: "up_threshold",
            doc: "above this load of its busiest CPU a policy steps up",
            unit: "%",
            range: Range::Int(2, 100),
            default: Default::Int(80),
            home: Home::Tunable("conservative/up_threshold"),
        },
        Param {
            name: "down_threshold",
            doc: "below this load a policy steps down; less than up_threshold",
            unit: "%",
            range: Range::Int(1, 99),
            default: Default::Int(20),
            home: Home::Tunable("conservative/down_threshold"),
        },
        Param {
            name: "freq_step",
            doc: "a step, of the highest frequency within the limits; 0: none",
            unit: "%",
            range: Range::Int(0, 100),
            default: Default::Int(5),
            home: Home::Tunable("conservative/freq_step"),
        },
        Param {
            name: "sampling_down_factor",
            doc: "a policy steps down only at every sample of so many",
            unit: "samples",
            range: Range::Int(1, 10),
            default: Default::Int(1),
            home: Home::Tunable("conservative/sampling_down_factor"),
        },
        sampling::ignore_nice_load("conservative/ignore_nice_load"),
        sampling::AFTER_IDLE,
        sampling::SAMPLING,
    ],
    works: Works::Kworker,
    make: |platform, domain, settings| {
        Box::new(Conservative {
            policy: PolicyDbs::new(platform, domain, settings),
            up_threshold: number(settings, "up_threshold"),
            down_threshold: number(settings, "down_threshold"),
            freq_step: number(settings, "freq_step"),
            sampling_down_factor: number(settings, "sampling_down_factor"),
            state: State::default(),
        })
    },
};

/// Errors: a `down_threshold` that is not below `up_threshold`.
pub(super) fn check(policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    let (Some(down), Some(up)) = (settings.int("down_threshold"), settings.int("up_threshold"))
    else {
        return Ok(());
    };
    if down < up {
        return Ok(());
    }
    let said = ["down_threshold", "up_threshold"].into_iter().find(|n| policy.set.contains_key(*n));
    let what = format!("`down_threshold` is {down} %, not less than `up_threshold`, {up} %");
    Err(InputError::new(policy.place_of(said.unwrap_or("down_threshold")), what))
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
