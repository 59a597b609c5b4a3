//! `schedutil-2016`: schedutil as it was posted and measured on 2 and 3 March 2016, before v4 (16 March) gave it the
//! form in which it was merged.
//!
//! ```text
//! next freq = min + util · (max - min) / capacity     to the closest OPP; util: the fair tasks', nothing else
//!             max where a real-time or deadline task runs
//! ```
//!
//! Once per `sampling_rate` after the last look that decided. Of the other CPUs of a policy counts what they needed when
//! they were looked at last, of those only that have been since the last decision. Where the driver cannot switch fast,
//! a worker of the CPU that gave rise to it does, and nothing is looked at until it is done. Without
//! `freq_invariance` util falls where the frequency rises: a steady task makes it toggle. Source: "[PATCH 6/6] cpufreq:
//! schedutil: New governor based on scheduler utilization data", drivers/cpufreq/cpufreq_schedutil.c there.

use super::{Descriptor, FreqRequest, Governor, Resumed, Works};
use crate::kernel::governor::DomainView;
use crate::kernel::governor::sampling::number;
use crate::state::effects::Effects;
use risetime_kernel::KernelRev;
use risetime_kernel::opp::Relation;
use risetime_kernel::schedutil::sugov_rate_limit_passed;
use risetime_kernel::schedutil::{cpufreq_policy_transition_delay_us, sugov_next_freq_pre_v4};
use risetime_kernel::units::{Capacity, CpuId, Instant, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range, Value};
use risetime_trace::Why;

/// Shortest time between two samples, in µs.
pub const SAMPLING_RATE: Int = Int::new(Param {
    name: "sampling_rate",
    doc: "shortest time between two decisions",
    unit: "µs",
    range: Range::Int(0, 1_000_000_000),
    default: Default::Derived(
        "1000 times the transition latency of the first domain, at least 1000",
        |platform, _| platform.domains.first().map(default_rate),
    ),
    home: Home::Patched(Some("cpufreq/schedutil/sampling_rate"), Neutral::None),
});

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "schedutil-2016",
    doc: "schedutil as first posted, in March 2016: in proportion between the lowest and the highest frequency",
    settings: Group::of(&[SAMPLING_RATE.0]),
    rate_limit: Some(SAMPLING_RATE),
    works: Works::KworkerWhereSlow,
    make: |platform, domain, settings| {
        let domain = &platform.domains[domain];
        Box::new(Schedutil {
            sampling_rate: number(settings, &SAMPLING_RATE),
            fast_switch: domain.fast_switch,
            last_sample: Instant(0),
            next: None,
            work_in_progress: false,
            cpus: vec![PerCpu::default(); domain.cpus.len()],
        })
    },
};

/// The default `sampling_rate`, in µs. Source: cpufreq_governor.c:cpufreq_governor_init (LATENCY_MULTIPLIER).
fn default_rate(domain: &Domain) -> Value {
    let latency = u32::try_from(domain.transition_latency().0).unwrap_or(u32::MAX);
    Value::Int(cpufreq_policy_transition_delay_us(KernelRev::OLDEST, latency, 0).into())
}

/// `struct sugov_cpu`.
#[derive(Clone, Copy, std::default::Default)]
struct PerCpu {
    need: Need,
    last_update: Instant,
}

#[derive(Clone, Copy, std::default::Default)]
struct Need {
    util: Util,
    max: Capacity,
    why: Option<Why>,
}

impl Need {
    /// Whether this is more than `other`.
    fn exceeds(self, other: Need) -> bool {
        self.util.0 > self.max.0 || self.util.0 * other.max.0 > self.max.0 * other.util.0
    }
}

struct Schedutil {
    sampling_rate: u32,
    fast_switch: bool,
    last_sample: Instant,
    /// `next_freq` once something has been decided, for what util, and why.
    next: Option<FreqRequest>,
    work_in_progress: bool,
    cpus: Vec<PerCpu>,
}

impl Schedutil {
    /// The need of `cpu` as the fair class says it; with a class above it running, everything.
    fn need_of(domain: &DomainView<'_>, cpu: CpuId) -> Need {
        let max = domain.capacity();
        if domain.runs_above_fair(cpu) {
            return Need { util: Util(u64::MAX), max: Capacity(0), why: Some(Why::RealTime) };
        }
        let own = domain.util_avg(cpu).min(Util(max.0));
        Need { util: domain.wanted(cpu, own), max, why: Some(Why::Util) }
    }

    /// `sugov_next_freq`: who of the policy needs most, of `cpu` and those that were looked at since the last decision.
    fn most(&self, domain: &DomainView<'_>, cpu: CpuId) -> Need {
        let own = self.cpus[domain.place_in_policy(cpu)].need;
        let others = domain.cpus().iter().filter(|c| **c != cpu);
        others.fold(own, |most, other| {
            let c = &self.cpus[domain.place_in_policy(*other)];
            let counts = c.last_update >= self.last_sample && c.last_update > Instant(0);
            if counts && most.util.0 <= most.max.0 && c.need.exceeds(most) { c.need } else { most }
        })
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
        _: bool,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        let now = domain.now();
        let place = domain.place_in_policy(cpu);
        self.cpus[place] = PerCpu { need: Schedutil::need_of(domain, cpu), last_update: now };
        let passed = sugov_rate_limit_passed(now, self.last_sample, self.sampling_rate);
        if self.work_in_progress || !domain.rate_limit_passed(self.next.is_none() || passed) {
            return None;
        }
        let need = self.most(domain, cpu);
        let raw = sugov_next_freq_pre_v4(need.util, need.max, domain.limits());
        self.last_sample = now;
        let relation = if self.fast_switch { Relation::Low } else { Relation::Close };
        let freq = domain.resolve_by(relation, raw);
        let util = need.util.min(Util(domain.capacity().0));
        let same = self.next.is_some_and(|next| next.freq == freq);
        let why = if same { Why::Unchanged } else { need.why.unwrap_or(Why::Util) };
        let request = FreqRequest { util, freq, why };
        self.next = Some(request);
        if same || self.fast_switch {
            return Some(request);
        }
        self.work_in_progress = true;
        effects.defer_work_to(cpu);
        None
    }

    /// `sugov_set_freq`.
    fn work(&mut self, _: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        self.work_in_progress = false;
        self.next
    }

    fn resume(&mut self, at: &Resumed) {
        self.next = Some(FreqRequest { util: Util(0), freq: at.freq, why: Why::Util });
        self.last_sample = at.since;
    }
}
