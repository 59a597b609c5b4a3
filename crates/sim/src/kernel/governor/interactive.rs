//! `interactive`: Android's governor from 3.0 to 4.4, here in its form of 3.18 and 4.4.
//!
//! ```text
//! timer of each CPU ── look: what does it want? ── cfinteractive: the policy gets what its most demanding CPU wants
//!   timer_rate after it was set, deferrable: at a tick, or when the CPU leaves its idle state
//!   timer_slack later one that does wake the CPU, while it wants more than the lowest frequency
//! ```
//!
//! What a look comes to: [`risetime_kernel::interactive`]. Source: drivers/cpufreq/cpufreq_interactive.c of Android's common
//! kernels.
//!
//! `DEVIATES(cfinteractive)`: one real-time kthread changes the frequencies of all policies in turn; here each policy
//! has one, bound to its CPUs. Where two policies change at once, the second need not wait for the first one's driver.

use super::{Descriptor, FreqRequest, GoesBy, Governor, Occasion, Works};
use crate::kernel::governor::DomainView;
use crate::kernel::governor::sampling::number;
use crate::state::effects::{Effects, Timer};
use risetime_kernel::interactive::{Cpu, Look, Policy, Tunables, policy_info};
use risetime_kernel::opp::Relation;
use risetime_kernel::units::{CpuId, KHz, Util};
use risetime_model::settings::{
    ByFreq, Default, Group, Home, Int, Neutral, Param, Range, Settings,
};
use risetime_trace::Why;

/// A tunable, in Android's kernels only.
const fn tunable(
    name: &'static str,
    home: &'static str,
    doc: &'static str,
    unit: &'static str,
    range: Range,
    default: Default,
) -> Param {
    Param { name, doc, unit, range, default, home: Home::Patched(Some(home), Neutral::None) }
}

const MOST_US: i64 = 1_000_000_000;

/// Time after which each CPU looks again, in µs.
pub const TIMER_RATE: Int = Int::new(tunable(
    "timer_rate",
    "cpufreq/interactive/timer_rate",
    "how often each CPU looks, rounded up to ticks",
    "µs",
    Range::Int(1, MOST_US),
    Default::Int(20_000),
));

pub(crate) const TIMER_SLACK: Int = Int::new(tunable(
    "timer_slack",
    "cpufreq/interactive/timer_slack",
    "how much later an idle CPU is woken to look, unless it wants the lowest frequency; -1: never",
    "µs",
    Range::Int(-1, MOST_US),
    Default::Int(80_000),
));

pub(crate) const HISPEED_FREQ: Int = Int::new(tunable(
    "hispeed_freq",
    "cpufreq/interactive/hispeed_freq",
    "what a full CPU jumps to at first",
    "kHz",
    Range::Int(0, u32::MAX as i64),
    Default::Derived("each policy's highest frequency within its limits", |_, _| None),
));

/// Load from which on a CPU counts as full, in %.
pub const GO_HISPEED_LOAD: Int = Int::new(tunable(
    "go_hispeed_load",
    "cpufreq/interactive/go_hispeed_load",
    "from this load on a CPU counts as full",
    "%",
    Range::Int(1, 100),
    Default::Int(99),
));

/// Load of a CPU at the frequency that is chosen, in %.
pub const TARGET_LOADS: ByFreq = ByFreq::new(tunable(
    "target_loads",
    "cpufreq/interactive/target_loads",
    "how busy a CPU may be at the frequency that is chosen; by the frequency: 85 1000000:90 is 90 % from 1 GHz on",
    "%",
    Range::ByFreq(1, 100),
    Default::Int(90),
));

pub(crate) const ABOVE_HISPEED_DELAY: ByFreq = ByFreq::new(tunable(
    "above_hispeed_delay",
    "cpufreq/interactive/above_hispeed_delay",
    "from hispeed_freq on, how long until the next rise; may go by the frequency: 20000 1000000:80000",
    "µs",
    Range::ByFreq(0, MOST_US),
    Default::Int(20_000),
));

/// Time for which a frequency is kept before it falls, in µs.
pub const MIN_SAMPLE_TIME: Int = Int::new(tunable(
    "min_sample_time",
    "cpufreq/interactive/min_sample_time",
    "how long a frequency is kept before it falls",
    "µs",
    Range::Int(0, MOST_US),
    Default::Int(80_000),
));

pub(crate) const BOOST: Int = Int::new(tunable(
    "boost",
    "cpufreq/interactive/boost",
    "no less than hispeed_freq, all the time",
    "",
    Range::Int(0, 1),
    Default::Int(0),
));

pub(crate) const BOOSTPULSE: Int = Int::new(tunable(
    "boostpulse",
    "cpufreq/interactive/boostpulse",
    "when somebody asks for no less than hispeed_freq for boostpulse_duration, so long after the workload's start",
    "µs",
    Range::Int(0, MOST_US),
    Default::Unset,
));

pub(crate) const BOOSTPULSE_DURATION: Int = Int::new(tunable(
    "boostpulse_duration",
    "cpufreq/interactive/boostpulse_duration",
    "how long that lasts",
    "µs",
    Range::Int(0, MOST_US),
    Default::Int(80_000),
));

pub(crate) const IO_IS_BUSY: Int = Int::new(tunable(
    "io_is_busy",
    "cpufreq/interactive/io_is_busy",
    "count waiting for devices as busy",
    "",
    Range::Int(0, 1),
    Default::Int(0),
));

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "interactive",
    doc: "as in Android up to 4.4: jumps when a CPU is full, falls after a while; samples idle time",
    settings: Group::of(&[
        TIMER_RATE.0,
        TIMER_SLACK.0,
        HISPEED_FREQ.0,
        GO_HISPEED_LOAD.0,
        TARGET_LOADS.0,
        ABOVE_HISPEED_DELAY.0,
        MIN_SAMPLE_TIME.0,
        BOOST.0,
        BOOSTPULSE.0,
        BOOSTPULSE_DURATION.0,
        IO_IS_BUSY.0,
    ]),
    rate_limit: Some(TIMER_RATE),
    works: Works::Fifo { name: "cfinteractive", priority: 99, where_slow: false },
    make: |platform, domain, settings| {
        let by_freq = |of: &ByFreq| {
            let all = settings.get(of).unwrap_or_default().into_iter();
            all.map(|(freq, value)| (KHz(freq), u32::try_from(value).unwrap_or(0))).collect()
        };
        let jiffies = |us: i64| (us.max(0) as u64 * u64::from(platform.hz)).div_ceil(1_000_000);
        let us = |of: &Int| u64::from(number(settings, of));
        let slack = settings.get(&TIMER_SLACK).filter(|us| *us >= 0);
        Box::new(Interactive {
            cpus: vec![Cpu::default(); platform.domains[domain].cpus.len()],
            expires: vec![0; platform.domains[domain].cpus.len()],
            timer_rate: jiffies(settings.get(&TIMER_RATE).unwrap_or(1)).max(1),
            timer_slack: slack.map(jiffies),
            hispeed_freq: settings.get(&HISPEED_FREQ).map(|khz| KHz(khz.max(0) as u64)),
            go_hispeed_load: number(settings, &GO_HISPEED_LOAD),
            target_loads: by_freq(&TARGET_LOADS),
            above_hispeed_delay: by_freq(&ABOVE_HISPEED_DELAY),
            min_sample_time: us(&MIN_SAMPLE_TIME),
            boost: settings.get(&BOOST) == Some(1),
            pulse: pulse(settings),
            pulse_begun: false,
            asked: KHz(0),
            why: Why::Util,
        })
    },
};

/// The begin and end of a pulse after the workload's start, in µs.
fn pulse(settings: &Settings) -> Option<(u64, u64)> {
    let from = settings.get(&BOOSTPULSE)?.max(0) as u64;
    Some((from, from + u64::from(number(settings, &BOOSTPULSE_DURATION))))
}

struct Interactive {
    /// State of the CPUs, by place in the policy.
    cpus: Vec<Cpu>,
    /// Jiffy in which each CPU's timer expires, by place in the policy.
    expires: Vec<u64>,
    /// Rate of the timer, in jiffies.
    timer_rate: u64,
    timer_slack: Option<u64>,
    hispeed_freq: Option<KHz>,
    go_hispeed_load: u32,
    target_loads: Vec<(KHz, u32)>,
    above_hispeed_delay: Vec<(KHz, u32)>,
    min_sample_time: u64,
    boost: bool,
    pulse: Option<(u64, u64)>,
    pulse_begun: bool,
    /// Frequency that the policy was asked for last, and the reason of the CPU that asked for
    /// another one.
    asked: KHz,
    why: Why,
}

/// The time that the workload has run, in µs; 0 before its start.
fn since_start_us(domain: &DomainView<'_>) -> u64 {
    domain.now().0.saturating_sub(domain.workload_start().0) / 1000
}

fn now_us(domain: &DomainView<'_>) -> u64 {
    domain.now().0 / 1000
}

fn idle_us(domain: &DomainView<'_>, cpu: CpuId) -> u64 {
    domain.idle_time(cpu).0 / 1000
}

impl Interactive {
    fn hispeed(&self, domain: &DomainView<'_>) -> KHz {
        self.hispeed_freq.unwrap_or(domain.limits().1)
    }

    /// `cpufreq_interactive_timer_resched`.
    fn restart(&mut self, domain: &DomainView<'_>, cpu: CpuId, effects: &mut Effects) {
        let place = domain.place_in_policy(cpu);
        self.cpus[place].restart(now_us(domain), idle_us(domain, cpu));
        self.expires[place] = domain.jiffies() + self.timer_rate;
        let wants_more = self.cpus[place].target_freq > domain.limits().0;
        if let Some(slack) = self.timer_slack.filter(|_| wants_more) {
            let at = domain.at_jiffy(self.expires[place] + slack);
            effects.set_timer_on(cpu, Timer { at, deferrable: false });
        }
    }

    /// `cpufreq_interactive_timer`, if it is due.
    fn look(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        let place = domain.place_in_policy(cpu);
        let no_delay = domain.rate_limit_passed(false);
        if domain.jiffies() < self.expires[place] && !no_delay {
            return None;
        }
        let (now, (min, max), cur) = (now_us(domain), domain.limits(), domain.cur());
        let in_pulse =
            self.pulse.is_some_and(|(from, to)| (from..to).contains(&since_start_us(domain)));
        let free = [(KHz(0), 0)];
        let by = Tunables {
            hispeed_freq: self.hispeed(domain),
            go_hispeed_load: self.go_hispeed_load,
            target_loads: &self.target_loads,
            above_hispeed_delay: if no_delay { &free } else { &self.above_hispeed_delay },
            min_sample_time: self.min_sample_time,
            boosted: self.boost || in_pulse,
        };
        let c = &mut self.cpus[place];
        c.update_load(now, idle_us(domain, cpu), cur);
        let done = u64::from(c.cpu_load(now, cur)) * cur.0 / domain.freq_max().0.max(1);
        let own = Util(done * domain.capacity().0 / 100);
        let all = domain.wanted(cpu, own) > own;
        let look = if all {
            c.target_freq = max;
            Look::Target
        } else {
            let table = domain.table();
            c.look(now, &Policy { table, min, max, cur }, &by)
        };
        let kept = match look {
            Look::NotYetHigher => Some(Why::RateLimited),
            Look::NotYetLower => Some(Why::MinSampleTime),
            Look::Already => Some(Why::Unchanged),
            Look::Target | Look::Hispeed => None,
        };
        if kept.is_none() {
            self.why = if look == Look::Hispeed { Why::Hispeed } else { Why::Util };
            effects.defer_work();
        }
        self.restart(domain, cpu, effects);
        kept.map(|why| FreqRequest { util: own, freq: self.asked, why })
    }

    /// The moment at which a pulse begins, found out by the first tick after it.
    fn pulse_begins(&mut self, domain: &DomainView<'_>, effects: &mut Effects) {
        if self.pulse_begun || self.pulse.is_none_or(|(from, _)| since_start_us(domain) < from) {
            return;
        }
        self.pulse_begun = true;
        self.raise(domain, effects);
    }

    /// `cpufreq_interactive_boost`.
    fn raise(&mut self, domain: &DomainView<'_>, effects: &mut Effects) {
        let (now, hispeed) = (now_us(domain), self.hispeed(domain));
        let mut raised = false;
        for c in &mut self.cpus {
            raised |= c.boost(now, hispeed);
        }
        if raised {
            self.why = Why::Hispeed;
            effects.defer_work();
        }
    }
}

impl Governor for Interactive {
    fn goes_by(&self) -> GoesBy {
        GoesBy::Samples
    }
    fn start(&mut self, domain: &DomainView<'_>, effects: &mut Effects) -> Option<FreqRequest> {
        self.asked = domain.cur();
        for &cpu in domain.cpus() {
            let place = domain.place_in_policy(cpu);
            self.cpus[place] = Cpu::start(now_us(domain), idle_us(domain, cpu), domain.cur());
            self.restart(domain, cpu, effects);
        }
        if self.boost {
            self.raise(domain, effects);
        }
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
            Occasion::Tick | Occasion::IdleEnd => {
                self.pulse_begins(domain, effects);
                self.look(domain, cpu, effects)
            }
            // `cpufreq_interactive_notifier`: what was done until now was done at the old one.
            Occasion::Frequency => {
                for &cpu in domain.cpus() {
                    let c = &mut self.cpus[domain.place_in_policy(cpu)];
                    c.update_load(now_us(domain), idle_us(domain, cpu), domain.cur());
                }
                None
            }
            // No look of the kernel's: only what `explain` is told without its waiting.
            Occasion::Enqueue if domain.rate_limit_passed(false) => self.look(domain, cpu, effects),
            Occasion::Enqueue | Occasion::Dequeue | Occasion::NoRealTime => None,
        }
    }

    /// Looks at the CPU that the slack timer has woken, and does what is due.
    fn timer(
        &mut self,
        domain: &DomainView<'_>,
        cpu: CpuId,
        effects: &mut Effects,
    ) -> Option<FreqRequest> {
        self.look(domain, cpu, effects)
    }

    /// `cpufreq_interactive_speedchange_task`.
    fn work(&mut self, domain: &DomainView<'_>, _: &mut Effects) -> Option<FreqRequest> {
        let (wanted, hispeed) = policy_info(&mut self.cpus);
        let freq = domain.resolve_by(Relation::High, wanted);
        if freq == self.asked {
            return None;
        }
        self.cpus.iter_mut().for_each(|c| c.pol_hispeed_val_time = hispeed);
        self.asked = freq;
        let util = Util(domain.capacity().0 * freq.0 / domain.freq_max().0.max(1));
        Some(FreqRequest { util, freq, why: self.why })
    }
}
