//! Limits of the machine of an experiment, its most and its promised least, for proofs of
//! deadlines.
//!
//! ```text
//! admission    deadline tasks of a CPU reserve up to   max_bw · capacity / 1024 − the fair server's        (sched_dl_overflow)
//! costs        the largest that a noise profile draws, or what a setting says
//! frequency    between floor and ceiling; one that a deadline task's bandwidth asks for is there `change` later
//! ```

use crate::kernel::clock::FREQ_INVARIANCE;
use crate::kernel::governor::fixed::SCALING_SETSPEED;
use crate::kernel::governor::{GOVERNOR, SCHEDUTIL};
use crate::mech::pressure;
use crate::mech::pstate::{is_a_model, is_active};
use crate::mech::{perf_domain, sysctls};
use crate::state::costs::Kind;
use crate::time::cost;
use risetime_kernel::deadline::DlRq;
use risetime_kernel::features;
use risetime_kernel::opp::FreqTableEntry;
use risetime_kernel::rt::RtBandwidth;
use risetime_kernel::units::{Capacity, KHz, Span};
use risetime_model::Experiment;
use risetime_model::settings::keys::governor::{PERFORMANCE, POWERSAVE, USERSPACE};

/// Bounds of one experiment.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Bandwidth that deadline tasks may reserve of a CPU of capacity 1024, 2²⁰ = all of it;
    /// `None`: no limit.
    pub max_bw: Option<u64>,
    /// Runtime and period of each CPU's fair server, which counts as reserved; from 6.12 on.
    pub fair_server: Option<(Span, Span)>,
    /// Time that real-time tasks of a CPU may have (the first) in each of the second, up to 6.11.
    pub rt_limit: Option<(Span, Span)>,
    /// Time from a timer's expiry to the wakeup of its task.
    pub timer: Span,
    /// Time of a switch to a task.
    pub switch: Span,
    /// Time that an interrupt of a timer, the tick too, takes from the running task.
    pub interrupt: Span,
    /// Between two ticks.
    pub tick: Span,
    /// Speeds of each frequency domain.
    pub domains: Vec<Speeds>,
}

/// Speeds of a domain's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Speeds {
    /// The frequencies of the domain within its limits and its speed at each, of 1024, ascending; not empty.
    pub speeds: Vec<(KHz, Capacity)>,
    /// Time from a decision to the frequency, with one decision before it under way.
    pub change: Span,
    /// True if the speed is at least what the bandwidth of active deadline tasks needs. False where
    /// a kthread changes frequencies: woken with a deadline task it has the later deadline of both,
    /// and waits until that has slept or used up its runtime (asked of 7.3.4).
    pub follows_deadlines: bool,
    /// Runtimes are charged by frequency.
    pub invariant: bool,
    /// Runtime and period that a CPU's root domain counts for the kthread that changes frequencies and may be there, once root domains
    /// were made anew: up to 6.14 ("Ignore special tasks when rebuilding domains"; asked of 6.12.117).
    pub kthread: Option<(Span, Span)>,
}

/// The bounds of `e`.
pub fn bounds(e: &Experiment) -> Bounds {
    let costs = cost::of_experiment(e);
    let most = |kind: Kind| costs.amounts[kind as usize].most();
    let limits = sysctls::of_experiment(e).rt;
    let throttles = |RtBandwidth { period, runtime }: RtBandwidth| {
        let runtime = runtime.filter(|r| *r < period && *r > Span(0))?;
        e.policy.kernel.has(features::RT_BANDWIDTH).then_some((runtime, period))
    };
    Bounds {
        max_bw: limits.runtime.map(|_| DlRq::new(limits).max_bw),
        fair_server: sysctls::fair_server(e).filter(|(runtime, _)| *runtime > Span(0)),
        rt_limit: throttles(limits),
        timer: Span(most(Kind::Timer).0 + most(Kind::Resched).0),
        switch: most(Kind::Switch),
        interrupt: Span(most(Kind::Tick).0 + most(Kind::Irq).0),
        tick: e.platform.tick(),
        domains: (0..e.platform.domains.len()).map(|index| speeds(e, index)).collect(),
    }
}

fn speeds(e: &Experiment, index: usize) -> Speeds {
    let d = &e.platform.domains[index];
    let scale = perf_domain::scale(e, d, pressure::has_boost(&e.settings));
    let table: Vec<FreqTableEntry> =
        d.opps.iter().map(|o| FreqTableEntry { freq: o.freq, inefficient: false }).collect();
    let (min, max) = pressure::limits_of(&table, &pressure::caps(e, index), scale.cpuinfo_max);
    let governor = e.settings.get(&GOVERNOR).unwrap_or_default();
    let (low, high) = match governor {
        PERFORMANCE if !is_active(&e.platform, &e.settings) => (max, max),
        POWERSAVE if !is_active(&e.platform, &e.settings) => (min, min),
        USERSPACE => {
            let asked = e.settings.get(&SCALING_SETSPEED).map_or(max, |khz| KHz(khz.max(0) as u64));
            let own = asked.clamp(min, max);
            (own, own)
        }
        _ => (min, max),
    };
    let at = |freq: KHz| {
        let (capacity, freq, whole) = d.capacity_at(freq);
        (freq, Capacity(capacity.0 * freq.0 / whole.0.max(1)))
    };
    let latency = d.opps.iter().map(|o| o.latency).max().unwrap_or_default();
    let within = table.iter().map(|e| e.freq).filter(|f| *f > low && *f < high);
    let mut speeds: Vec<(KHz, Capacity)> = within.chain([low, high]).map(at).collect();
    speeds.sort_unstable();
    speeds.dedup_by_key(|(_, speed)| *speed);
    Speeds {
        speeds,
        change: if low == high { Span(0) } else { Span(2 * latency.0) },
        follows_deadlines: governor == SCHEDUTIL
            && e.policy.kernel.has(features::SUGOV_NEXT_FREQ_SHARED)
            && d.fast_switch
            // What hardware makes of a request is a model, which promises nothing.
            && !is_a_model(&e.platform, &e.settings),
        invariant: e.settings.get(&FREQ_INVARIANCE) != Some("no"),
        kthread: (governor == SCHEDUTIL
            && !d.fast_switch
            && !e.policy.kernel.has(features::DL_REBUILD_RIGHT))
        .then_some((Span::from_ms(1), Span::from_ms(10))),
    }
}
