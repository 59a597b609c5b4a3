//! "Scheduler-driven cpu frequency selection" (cpufreq_sched) in two forms: `schedfreq`, as posted in RFC v7 of 22
//! February 2016, and `sched`, as Android's kernels 3.18 and 4.4 have it.
//!
//! ```text
//!                                       schedfreq                            sched
//! a fair task joins or leaves a queue   the CPU asks for its util and a quarter; of an empty one nothing, but that
//!                                       alone changes no frequency
//! tick, where that quarter is no        it asks for all of its capacity      for its util and a quarter
//! longer free
//! the policy                            gets what its most demanding CPU asks for, to the next OPP
//! after a change the next one waits     throttle_nsec                        up_throttle_nsec, down_throttle_nsec
//! where the driver changes at once      as well                              nothing waits
//! ```
//!
//! Real-time tasks ask for what they have used of late, deadline tasks for their bandwidth. What real-time tasks have used
//! is looked at when their class is asked for a task and has none, which it is whenever something else than a fair task goes,
//! idleness as well, and at their ticks. A CPU that slept asks anew by that, if it has come to be another number: the
//! kthread's own time counts in it.
//!
//! The waiting is that of the kthread (`kschedfreq`), for the direction in which it is to change when it begins to wait; it
//! takes what is wanted when that is over, so that with `sched` who has to go up may wait for 50 ms behind who wanted to go
//! down. Arithmetic: [`risetime_kernel::schedfreq`]. Source: kernel/sched/cpufreq_sched.c, triggers in core.c, fair.c and
//! rt.c there; Android: common 4.4, the same files.
//!
//! `DEVIATES(schedfreq-rt)`: where `rt_avg` is kept, up to 4.18, the time of deadline tasks is in it; schedfreq's patches
//! take it out. Later kernels have no `rt_avg`, and PELT's `avg_rt` is taken.

use super::{Descriptor, FreqRequest, Governor, Occasion, Works};
use crate::kernel::governor::DomainView;
use crate::state::effects::{Effects, Timer};
use risetime_kernel::opp::Relation;
use risetime_kernel::schedfreq::{
    SchedCapacityReqs, freq_of, of_own, tick_asks_for_all, tick_asks_for_more,
};
use risetime_kernel::units::{CpuId, Instant, KHz, Span, Util};
use risetime_model::platform::Domain;
use risetime_model::settings::{Default, Group, Home, Int, Neutral, Param, Range, Value};
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

/// Shortest time before a change to a higher frequency, in ns.
pub const UP_THROTTLE_NSEC: Int = Int::new(Param {
    name: "up_throttle_nsec",
    doc: "after a change of frequency one to a higher frequency waits for so long",
    unit: "ns",
    range: Range::Int(0, 4_294_967_295),
    default: Default::Derived(
        "the first policy's transition latency, 500000 if it has none",
        |platform, _| {
            let latency = platform.domains.first().map_or(0, |d| d.transition_latency().0);
            i64::try_from(if latency == 0 { 500_000 } else { latency }).ok().map(Value::Int)
        },
    ),
    home: Home::Patched(Some("cpufreq/policyN/sched/up_throttle_nsec"), Neutral::None),
});

/// Shortest time before a change to a lower frequency, in ns.
pub const DOWN_THROTTLE_NSEC: Int = Int::new(Param {
    name: "down_throttle_nsec",
    doc: "after a change of frequency one to a lower frequency waits for so long",
    unit: "ns",
    range: Range::Int(0, 4_294_967_295),
    default: Default::Int(50_000_000),
    home: Home::Patched(Some("cpufreq/policyN/sched/down_throttle_nsec"), Neutral::None),
});

/// The governor of Android's kernels.
pub(super) const ANDROID: Descriptor = Descriptor {
    name: "sched",
    doc: "the form of schedfreq in Android's kernels 3.18 and 4.4: its tick goes up by a step, and going up and down wait for times of their own",
    settings: Group::of(&[UP_THROTTLE_NSEC.0, DOWN_THROTTLE_NSEC.0]),
    rate_limit: Some(UP_THROTTLE_NSEC),
    works: Works::Fifo { name: "kschedfreq", priority: 50, where_slow: true },
    make: |platform, domain, settings| {
        let of = |setting| Span(settings.get(setting).unwrap_or(0).max(0) as u64);
        let (up, down) = (of(&UP_THROTTLE_NSEC), of(&DOWN_THROTTLE_NSEC));
        Box::new(SchedFreq { android: true, up, down, ..SchedFreq::new(&platform.domains[domain]) })
    },
};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "schedfreq",
    doc: "the alternative over which schedutil was chosen: capacity requests of the scheduler, throttled",
    settings: Group::of(&[THROTTLE_NSEC.0]),
    rate_limit: Some(THROTTLE_NSEC),
    works: Works::Fifo { name: "kschedfreq", priority: 50, where_slow: true },
    make: |platform, domain, settings| {
        let throttle = Span(settings.get(&THROTTLE_NSEC).unwrap_or(0).max(0) as u64);
        let domain = &platform.domains[domain];
        Box::new(SchedFreq { up: throttle, down: throttle, ..SchedFreq::new(domain) })
    },
};

#[derive(Clone, Copy, std::default::Default)]
struct PerCpu {
    reqs: SchedCapacityReqs,
    total: u64,
}

struct SchedFreq {
    /// Whether it is Android's form.
    android: bool,
    /// `up_throttle_nsec` and `down_throttle_nsec`; of the RFC `throttle_nsec` both.
    up: Span,
    down: Span,
    /// The last change; `gd->up_throttle` and `gd->down_throttle` are that much later.
    changed: Option<Instant>,
    /// Time until which the kthread sleeps, whatever is wanted meanwhile.
    sleeps_until: Option<Instant>,
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
    fn new(domain: &Domain) -> SchedFreq {
        SchedFreq {
            android: false,
            up: Span(0),
            down: Span(0),
            changed: None,
            sleeps_until: None,
            fast_switch: domain.fast_switch,
            requested: KHz(0),
            asked: None,
            told: KHz(0),
            cpus: vec![PerCpu::default(); domain.cpus.len()],
        }
    }

    /// The capacity that the fair class needs of `cpu`, of its own (`cpu_util`).
    fn cfs(domain: &DomainView<'_>, cpu: CpuId) -> u64 {
        let capacity = domain.capacity();
        let util = domain.util_avg(cpu).min(Util(capacity.0));
        of_own(domain.wanted(cpu, util), capacity)
    }

    /// The requests that the classes of `cpu` have made last; deadline tasks make theirs at once.
    fn reqs(&self, domain: &DomainView<'_>, cpu: CpuId) -> SchedCapacityReqs {
        let dl = of_own(domain.bandwidth(cpu), domain.capacity());
        SchedCapacityReqs { dl, ..self.cpus[domain.place_in_policy(cpu)].reqs }
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
        let throttle = if request.freq < domain.cur() { self.down } else { self.up };
        let until = self.sleeps_until.or(self.changed.map(|at| at + throttle));
        let waits = !(self.android && self.fast_switch);
        if let Some(at) = until.filter(|at| waits && !domain.rate_limit_passed(now >= *at)) {
            if self.sleeps_until.replace(at).is_none() {
                effects.set_timer(Timer { at, deferrable: false });
            }
            return Some(FreqRequest { freq: self.told, why: Why::RateLimited, ..request });
        }
        self.sleeps_until = None;
        if !self.fast_switch {
            effects.defer_work();
            return None;
        }
        self.switch(now)
    }

    /// `task_tick_rt` of a real-time task, and `sched_freq_tick`.
    fn tick(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        mut reqs: SchedCapacityReqs,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        let (cur, max) = (domain.cur(), domain.freq_max());
        if domain.runs_real_time(cpu) {
            reqs.rt = domain.used_by_rt(cpu);
        }
        let now = SchedCapacityReqs { cfs: SchedFreq::cfs(domain, cpu), ..reqs };
        if self.android && tick_asks_for_more(&now, cur, max) {
            return self.update(domain, cpu, now, true, effects);
        }
        if !self.android && tick_asks_for_all(&now, cur, max) {
            return self.update(domain, cpu, SchedCapacityReqs { cfs: 1024, ..now }, true, effects);
        }
        self.update(domain, cpu, reqs, true, effects)
    }

    /// `cpufreq_sched_try_driver_target`.
    fn switch(&mut self, now: Instant) -> Option<FreqRequest> {
        let request = self.asked.take()?;
        (self.told, self.changed) = (request.freq, Some(now));
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
        let reqs = self.reqs(domain, cpu);
        match occasion {
            Occasion::Enqueue | Occasion::Dequeue => {
                let busy = domain.nr_fair(cpu) > 0;
                let cfs = if busy { SchedFreq::cfs(domain, cpu) } else { 0 };
                self.update(domain, cpu, SchedCapacityReqs { cfs, ..reqs }, busy, effects)
            }
            Occasion::NoRealTime => {
                let rt = domain.used_by_rt(cpu);
                self.update(domain, cpu, SchedCapacityReqs { rt, ..reqs }, true, effects)
            }
            Occasion::Tick if domain.runs(cpu) => self.tick(domain, cpu, reqs, effects),
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
        self.sleeps_until = None;
        self.tell(domain, effects)
    }

    fn work(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        self.switch(domain.now())
    }
}
