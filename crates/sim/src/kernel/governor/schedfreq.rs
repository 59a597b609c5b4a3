//! `schedfreq`: "scheduler-driven cpu frequency selection" (cpufreq_sched), as posted in RFC v7 of 22 February 2016.
//!
//! ```text
//! a fair task joins or leaves a queue   the CPU asks for its util and a quarter; of an empty one nothing, but that
//!                                       alone changes no frequency
//! tick                                  for all of its capacity, where that quarter is no longer free
//! the policy                            gets what its most demanding CPU asks for, to the next OPP
//! throttle_nsec                         after each change the next one waits for so long
//! ```
//!
//! Real-time tasks ask for what they have used of late, deadline tasks for their bandwidth. The waiting is that of the
//! kthread (`kschedfreq`): it takes what is wanted when it is over. Arithmetic: [`risetime_kernel::schedfreq`]. Source:
//! kernel/sched/cpufreq_sched.c, triggers in core.c and fair.c there. In Android's kernels the tick asks for the util and
//! its quarter alone.
//!
//! `DEVIATES(schedfreq-rt)`: what real-time tasks have used is PELT's `avg_rt`; it was `rt_avg`, an average of its own.

use super::{Descriptor, FreqRequest, Governor, Occasion, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::{Effects, Timer};
use risetime_kernel::opp::Relation;
use risetime_kernel::schedfreq::{SchedCapacityReqs, freq_of, of_own, tick_asks_for_all};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range};
use risetime_trace::Why;

/// Shortest time between two changes of frequency, in ns.
pub const THROTTLE_NSEC: Int = Int::new(Param {
    name: "throttle_nsec",
    doc: "after a change of frequency the next one waits for so long (in postings before v7 for the transition latency, or 50 ms)",
    unit: "ns",
    range: Range::Int(0, 10_000_000_000),
    default: Default::Int(0),
    home: Home::Patched(Some("cpufreq/policyN/sched_freq/throttle_nsec"), Neutral::None),
});

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "schedfreq",
    doc: "the alternative over which schedutil was chosen: capacity requests of the scheduler, throttled",
    settings: Group::of(&[THROTTLE_NSEC.0]),
    rate_limit: Some(THROTTLE_NSEC),
    works: Works::Fifo { name: "kschedfreq", priority: 50, where_slow: true },
    make: |platform, domain, settings| {
        let domain = &platform.domains[domain];
        Box::new(SchedFreq {
            throttle: Span(settings.get(&THROTTLE_NSEC).unwrap_or(0).max(0) as u64),
            throttled_until: Instant(0),
            fast_switch: domain.fast_switch,
            requested: KHz(0),
            asked: None,
            told: KHz(0),
            cpus: vec![PerCpu::default(); domain.cpus.len()],
        })
    },
};

#[derive(Clone, Copy, std::default::Default)]
struct PerCpu {
    reqs: SchedCapacityReqs,
    total: u64,
}

struct SchedFreq {
    throttle: Span,
    /// `gd->throttle`.
    throttled_until: Instant,
    fast_switch: bool,
    /// `gd->requested_freq`.
    requested: KHz,
    /// Request as it was made, if the driver has not been told yet.
    asked: Option<FreqRequest>,
    /// Frequency that the driver was told last.
    told: KHz,
    /// State by place in the policy.
    cpus: Vec<PerCpu>,
}

impl SchedFreq {
    /// The capacity that the classes above the fair one need of `cpu`, and the fair one where it is
    /// asked (`fair`).
    fn reqs(domain: &DomainView<'_>, cpu: CpuId, fair: bool) -> SchedCapacityReqs {
        let capacity = domain.capacity();
        let util = domain.util_avg(cpu).min(Util(capacity.0));
        let wanted = domain.wanted(cpu, util);
        let (rt, dl) = domain.util_above_fair(cpu);
        SchedCapacityReqs {
            cfs: if fair { of_own(wanted, capacity) } else { 0 },
            rt: of_own(rt, capacity),
            dl: of_own(dl, capacity),
        }
    }

    /// `update_cpu_capacity_request`, and with `request` `update_fdomain_capacity_request`.
    fn update(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        reqs: SchedCapacityReqs,
        request: bool,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        let own = &mut self.cpus[domain.place_in_policy(cpu)];
        let same = own.total == reqs.total();
        *own = PerCpu { reqs, total: reqs.total() };
        if same || !request {
            return None;
        }
        let most = domain.cpus().iter().map(|c| self.cpus[domain.place_in_policy(*c)].total).max();
        let most = most.unwrap_or(0);
        let freq = domain.resolve_by(Relation::Low, freq_of(most, domain.limits().1));
        let util = Util((most * domain.capacity().0 / 1024).min(domain.capacity().0));
        if freq == self.requested {
            return Some(FreqRequest { util, freq: self.told, why: Why::Unchanged });
        }
        self.requested = freq;
        self.asked = Some(FreqRequest { util, freq, why: Why::Util });
        self.tell(domain, effects)
    }

    /// Takes what is wanted to the driver, or has somebody do so when it may be.
    fn tell(&mut self, domain: &DomainView<'_>, effects: &mut Effects) -> Option<FreqRequest> {
        let request = self.asked?;
        let now = domain.now();
        if !domain.rate_limit_passed(now >= self.throttled_until) {
            let at = self.throttled_until;
            effects.set_timer(Timer { at, deferrable: false });
            return Some(FreqRequest { freq: self.told, why: Why::RateLimited, ..request });
        }
        if !self.fast_switch {
            effects.defer_work();
            return None;
        }
        self.switch(now)
    }

    /// `cpufreq_sched_try_driver_target`.
    fn switch(&mut self, now: Instant) -> Option<FreqRequest> {
        let request = self.asked.take()?;
        (self.told, self.throttled_until) = (request.freq, now + self.throttle);
        Some(request)
    }
}

impl Governor for SchedFreq {
    fn start(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        (self.requested, self.told) = (domain.cur(), domain.cur());
        None
    }

    fn attends(&self) -> bool {
        true
    }

    fn occasion(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        occasion: Occasion,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        match occasion {
            Occasion::Enqueue | Occasion::Dequeue => {
                let busy = domain.nr_fair(cpu) > 0;
                self.update(domain, cpu, SchedFreq::reqs(domain, cpu, busy), busy, effects)
            }
            Occasion::Tick if domain.runs(cpu) => {
                let mut reqs = SchedFreq::reqs(domain, cpu, true);
                if tick_asks_for_all(&reqs, domain.cur(), domain.freq_max()) {
                    reqs.cfs = 1024;
                    return self.update(domain, cpu, reqs, true, effects);
                }
                // Real-time tasks ask at each of their ticks.
                let cfs = self.cpus[domain.place_in_policy(cpu)].reqs.cfs;
                self.update(domain, cpu, SchedCapacityReqs { cfs, ..reqs }, true, effects)
            }
            Occasion::Tick | Occasion::IdleEnd | Occasion::Frequency => None,
        }
    }

    /// Wakes the kthread, which has slept until it may change the frequency again.
    fn timer(
        &mut self,
        domain: &DomainView<'_>,
        _: CpuId,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        self.tell(domain, effects)
    }

    fn work(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        self.switch(domain.now())
    }
}
