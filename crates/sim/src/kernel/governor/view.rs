//! Questions that a governor may ask about its domain.

use crate::mech::pstate::state::Perf;
use crate::state::effects::Effects;
use crate::state::hooks::Point;
use crate::state::hooks::Step;
use crate::state::machine::{FreqDomain, Machine};
use crate::state::needs::Needs;
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::{CpuUtilType, EffectiveUtil, effective_cpu_util};
use risetime_kernel::headroom::Decided;
use risetime_kernel::intel_pstate;
use risetime_kernel::opp::{
    FreqTableEntry, Relation, cpufreq_driver_resolve_freq, cpufreq_frequency_table_target,
};
use risetime_kernel::pixel::IowaitBoost;
use risetime_kernel::schedfreq::of_own;
use risetime_kernel::uclamp::uclamp_rq_is_capped;
use risetime_kernel::units::{Capacity, CpuId, Instant, KHz, Span, Util};
use risetime_trace::Why;
use std::cmp::Ordering;

/// A governor's view of its domain.
pub struct DomainView<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) index: usize,
    /// True if a look that decided nothing is told, too.
    pub(crate) told: bool,
}

impl DomainView<'_> {
    #[inline]
    fn domain(&self) -> &FreqDomain {
        &self.machine.domains[self.index]
    }
    /// The time.
    #[inline]
    pub fn now(&self) -> Instant {
        self.machine.now
    }
    /// The time at which the workload starts, from which settings count what they say of later.
    pub fn workload_start(&self) -> Instant {
        self.machine.start.planned
    }
    /// The kernel meant.
    #[inline]
    pub fn rev(&self) -> KernelRev {
        self.machine.rev
    }
    /// Returns the policy's CPUs, ascending.
    #[inline]
    pub fn cpus(&self) -> &[CpuId] {
        &self.domain().cpus
    }
    /// The place of `cpu` among all CPUs of the policy, online or not.
    #[inline]
    pub fn place_in_policy(&self, cpu: CpuId) -> usize {
        self.machine.cpu(cpu).in_domain
    }
    /// The capacity of the policy's CPUs.
    #[inline]
    pub fn capacity(&self) -> Capacity {
        self.machine.cpu(self.domain().cpus[0]).capacity
    }
    /// The highest frequency.
    #[inline]
    pub fn freq_max(&self) -> KHz {
        self.domain().freq_max()
    }
    /// The frequency that the capacity belongs to (`arch_scale_freq_ref`).
    #[inline]
    pub fn freq_ref(&self) -> KHz {
        self.domain().scale.freq_ref
    }
    /// The first OPP with that much capacity, else the highest, where the scheduler keeps the
    /// capacity of each OPP; `None` where it does not.
    pub fn freq_of_capacity(&self, util: Util) -> Option<KHz> {
        let of_opp = &self.domain().scale.of_opp;
        let enough = of_opp.iter().find(|(_, capacity)| capacity.0 >= util.0);
        enough.or(of_opp.last()).map(|(freq, _)| *freq)
    }
    /// The OPP that the driver would choose for `freq` (`cpufreq_driver_resolve_freq`).
    pub fn resolve_freq(&self, freq: KHz) -> KHz {
        let table = &self.domain().table;
        let all = (self.domain().min, self.domain().max);
        let own = match self.perf() {
            Some(perf) => perf.resolve(self.rev(), all, self.within_limits(freq)),
            None => cpufreq_driver_resolve_freq(table, freq, all.0, all.1)
                .map_or(all.1, |i| table[i].freq),
        };
        self.machine.hook(own, |h, own| h.resolve_freq(self.machine, self.index, freq, own))
    }
    /// The policy of a driver that hands levels to the hardware, if it has one.
    pub(crate) fn perf(&self) -> Option<&Perf> {
        self.domain().slots.pstate.as_deref()
    }
    /// Whether the driver takes util in place of a frequency (`cpufreq_driver_has_adjust_perf`).
    #[inline]
    pub(crate) fn adjusts_perf(&self) -> bool {
        let invariant = || self.freq_invariant() && self.fast_switch();
        self.perf().is_some_and(|perf| perf.adjusts_perf(self.rev()) && invariant())
    }
    /// The frequency that the driver asks for with these utils, at least, desired and at most
    /// (`cpufreq_driver_adjust_perf`).
    pub(crate) fn adjust_perf(&self, utils: (Util, Util, Util)) -> Option<KHz> {
        let perf = self.perf()?;
        let request = perf.adjust(self.rev(), self.limits(), utils, self.capacity());
        Some(perf.desired(request))
    }
    /// The levels of intel_pstate, within the policy's limits.
    pub(crate) fn intel_levels(&self) -> Option<intel_pstate::Levels> {
        let perf = self.perf()?;
        let (min_limit, max_limit) = perf.limits(self.rev(), self.limits());
        Some(intel_pstate::Levels { min_limit, max_limit, ..perf.intel_unlimited() })
    }
    /// Returns APERF and MPERF of `cpu`, where the second counts at `base`.
    pub(crate) fn registers(&self, cpu: CpuId, base: KHz) -> (u64, u64) {
        let cycles = self.machine.cpu(cpu).slots.pstate.as_ref();
        cycles.map_or((0, 0), |c| c.registers(self.now(), self.domain().hw, base))
    }
    /// The OPP that the driver would choose for `freq` by `relation` (`cpufreq_frequency_table_target`, with
    /// `CPUFREQ_RELATION_E`).
    pub fn resolve_by(&self, relation: Relation, freq: KHz) -> KHz {
        let (min, max) = self.limits();
        let table = &self.domain().table;
        cpufreq_frequency_table_target(table, freq, min, max, relation)
            .map_or(max, |i| table[i].freq)
    }
    /// `effective_cpu_util` of `cpu` with its runnable boost, as schedutil asks for it.
    #[inline]
    pub fn effective_cpu_util(&self, cpu: CpuId) -> EffectiveUtil {
        let m = self.machine;
        let rq = m.rq_util_for_freq(cpu);
        let mut effective = effective_cpu_util(m.cpu_util_freq(cpu), &rq, m.cpu(cpu).capacity);
        effective.util = m.hook(effective.util, |h, util| h.effective_util(util));
        effective
    }
    /// `cfs_rq->avg.util_avg` of `cpu`: what its fair tasks need, and nothing else; of another tracker what it has for
    /// frequencies (`boosted_cpu_util` of Android's 4.4 takes `cpu_util_freq`).
    pub fn util_avg(&self, cpu: CpuId) -> Util {
        let m = self.machine;
        match m.tracker {
            None => m.cfs_util(m.cpu(cpu)).util_avg,
            Some(_) => m.cpu_util_freq(cpu),
        }
    }
    /// Whether a task of a class above the fair one runs on `cpu`.
    pub fn runs_above_fair(&self, cpu: CpuId) -> bool {
        let m = self.machine;
        m.cpu(cpu).curr.is_some_and(|task| m.class_of(task).is_above_fair())
    }
    /// The part of 1024 that real-time tasks have used of `cpu` of late: by `rt_avg` up to 4.18, where
    /// deadline tasks and interrupts count as well.
    pub fn used_by_rt(&self, cpu: CpuId) -> u64 {
        let c = self.machine.cpu(cpu);
        let Some(period) = self.machine.slots.before.sched_avg_period else {
            return of_own(self.machine.rq_util(cpu).rt, c.capacity);
        };
        let (mut avg, clock) = (c.slots.before.avg, c.clock.clock);
        avg.sched_avg_update(clock, period);
        avg.used(clock, period)
    }
    /// The bandwidth that deadline tasks of `cpu` have been promised.
    pub fn bandwidth(&self, cpu: CpuId) -> Util {
        self.cpu_bw_dl(cpu)
    }
    /// Whether a real-time task runs on `cpu`.
    pub fn runs_real_time(&self, cpu: CpuId) -> bool {
        let m = self.machine;
        m.cpu(cpu).curr.is_some_and(|task| m.class_of(task).is_real_time())
    }
    /// The number of fair tasks that `cpu` has to run.
    pub fn nr_fair(&self, cpu: CpuId) -> usize {
        let c = self.machine.cpu(cpu);
        c.h_nr_runnable() + c.slots.muqss.as_ref().map_or(0, |rq| rq.nr_running())
    }
    /// Whether a task runs on `cpu`.
    pub fn runs(&self, cpu: CpuId) -> bool {
        self.machine.cpu(cpu).curr.is_some()
    }
    /// Whether util is frequency-invariant (`arch_scale_freq_invariant`), or seen as if it were.
    #[inline]
    pub fn freq_invariant(&self) -> bool {
        self.domain().freq_invariant || !self.machine.does(Step::GoesByPresentFreq)
    }
    /// Whether the short way leads to what its CPUs need.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.machine.is_plain()
    }
    /// Whether what led to a frequency leads there again: nothing but util has a say in it.
    #[inline]
    pub(crate) fn keeps_opp(&self) -> bool {
        self.is_plain() && self.freq_invariant() && self.machine.keeps_opp
    }
    /// The needs of `cpu` by the short way.
    #[inline]
    pub(crate) fn plain_needs(&self, cpu: CpuId) -> Needs {
        self.machine.cpu(cpu).plain_kept().needs
    }
    /// `util` of `cpu` with what the governor adds to it before the clamps; `effects`: it is not
    /// only looked at.
    #[inline]
    pub(crate) fn dvfs_util(
        &self,
        cpu: CpuId,
        util: Util,
        effects: Option<&mut Effects>,
    ) -> (Util, Decided) {
        self.machine.dvfs_util(cpu, util, effects)
    }
    /// The util that `sched_pixel` asks for on `cpu`, with this iowait boost, and the reason.
    pub(crate) fn pixel_util(&self, cpu: CpuId, boost: Util) -> (Util, Why) {
        let m = self.machine;
        let cfs = match m.vendor() {
            Some(vendor) => m.vendor_util_cfs(vendor, cpu),
            None => m.cpu_util_freq(cpu),
        };
        let cfs = m.hook(cfs, |h, util| h.effective_util(util));
        let (rq, kind) = (m.rq_util_for_freq(cpu), CpuUtilType::Frequency);
        let open = m.vendor_cpu_util(cpu, cfs, &rq, kind, |util| self.wanted(cpu, util));
        let clamp = |util| m.vendor_clamped(cpu, self.wanted(cpu, util), None);
        let mut util = m.vendor_cpu_util(cpu, cfs, &rq, kind, clamp);
        let mut why = match util.cmp(&open) {
            Ordering::Greater => Why::UclampMin,
            Ordering::Less => Why::UclampMax,
            Ordering::Equal => Why::Util,
        };
        if boost > util {
            // The form of 5.10 does not clamp the boost.
            let old = m.cpu(cpu).slots.pixel.old;
            let boosted = if old { boost } else { m.vendor_clamped(cpu, boost, None) };
            (util, why) = (boosted, Why::IowaitBoost);
        }
        (util, why)
    }
    /// The frequency for `util` of `cpu`, before the driver resolves it (`map_util_freq_pixel_mod`).
    pub(crate) fn pixel_freq(&self, cpu: CpuId, util: Util) -> KHz {
        self.within_limits(self.machine.vendor_freq(cpu, util, self.freq_max()))
    }
    /// Whether a busy CPU keeps its frequency (the form of 5.10).
    pub(crate) fn pixel_holds_busy(&self) -> bool {
        self.machine.cpu(self.domain().cpus[0]).slots.pixel.old
    }
    /// `per_cpu_iowait_boost_max_value`.
    pub(crate) fn pixel_iowait_most(&self, cpu: CpuId) -> u32 {
        self.machine.cpu(cpu).slots.pixel.iowait_most
    }
    /// The iowait boost of a CPU of the policy, now.
    pub(crate) fn iowait_applies(&self, iowait: &mut IowaitBoost, tick: Span) -> Util {
        iowait.applies(self.now(), tick, self.capacity(), !self.pixel_holds_busy())
    }
    /// `uclamp_rq_is_capped`: rt + cfs util is above the clamp.
    pub fn uclamp_rq_is_capped(&self, cpu: CpuId) -> bool {
        let c = self.machine.cpu(cpu);
        self.machine.classes.uclamp_used
            && uclamp_rq_is_capped(&c.uclamp, c.cfs_avg.avg.util_avg + c.rt_avg.util_avg)
    }
    /// Whether a look that decided nothing is to be told, too.
    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.told || !self.machine.unheard
    }
    /// Whether the rate limit has passed, which somebody may see otherwise.
    #[inline]
    pub(crate) fn rate_limit_passed(&self, own: bool) -> bool {
        self.machine.yes(Point::Step(Step::RateLimitPassed), own)
    }
    /// Whether a CPU that has not been idle keeps its frequency, which somebody may see otherwise.
    pub(crate) fn holds(&self, own: bool) -> bool {
        own && self.machine.does(Step::HoldFreq)
    }
    /// `own`: what the governor is about to want of `cpu`, of 1024, before clamps. What it is to want instead:
    /// without the cause `opp` (`explain`) a CPU with work wants everything. A governor that does not ask has
    /// `explain` say that climbing the frequencies costs nothing.
    #[inline]
    pub fn wanted(&self, cpu: CpuId, own: Util) -> Util {
        let c = self.machine.cpu(cpu);
        self.machine.hook(own, |h, own| h.dvfs_util(self.machine.busy(cpu), c.capacity, own))
    }
    /// The frequency that the kernel believes in (`policy->cur`).
    pub fn cur(&self) -> KHz {
        self.domain().cur
    }
    /// `policy->min` and `policy->max`.
    pub fn limits(&self) -> (KHz, KHz) {
        (self.domain().min, self.domain().max)
    }
    /// The nearest to `freq` that they allow.
    pub fn within_limits(&self, freq: KHz) -> KHz {
        let (min, max) = self.limits();
        freq.max(min).min(max)
    }
    /// Whether the driver changes frequencies at once.
    pub fn fast_switch(&self) -> bool {
        self.domain().fast_switch
    }
    /// Iterates over the policy's frequencies, ascending.
    pub fn freqs(&self) -> impl Iterator<Item = KHz> + '_ {
        self.domain().table.iter().map(|entry| entry.freq)
    }
    /// `get_cpu_idle_time`: for how long `cpu` has been idle since the start, as the kernel counts it, what leaving an idle
    /// state takes included. Where it counts whole ticks, more may be added than time has passed.
    pub fn idle_time(&self, cpu: CpuId) -> Span {
        self.machine.cpu(cpu).idle_time.until(self.machine.now)
    }
    /// `CPUTIME_NICE`: the ticks that found a task of a nice value above 0 on `cpu`.
    pub fn nice_time(&self, cpu: CpuId) -> Span {
        self.machine.cpu(cpu).nice_time
    }
    /// Ticks since the grid's start.
    pub fn jiffies(&self) -> u64 {
        self.machine.jiffies()
    }
    /// The time at which that tick comes, or came.
    pub(crate) fn at_jiffy(&self, jiffy: u64) -> Instant {
        let ticks = jiffy.saturating_sub(self.jiffies() + 1);
        self.machine.next_tick() + Span(self.machine.tick.0 * ticks)
    }
    /// Returns the policy's frequency table.
    pub(crate) fn table(&self) -> &[FreqTableEntry] {
        &self.domain().table
    }
    /// Whether more than one CPU is online.
    pub fn several_cpus(&self) -> bool {
        self.machine.root.online.len() > 1
    }
    /// The length of a tick.
    pub fn tick(&self) -> Span {
        self.machine.tick
    }
    /// Counts how often `cpu` has entered idle.
    #[inline]
    pub fn idle_calls(&self, cpu: CpuId) -> u64 {
        self.machine.cpu(cpu).idle_calls
    }
    /// `cpu_bw_dl`: what the CPU's active deadline tasks have been promised, of 1024.
    #[inline]
    pub fn cpu_bw_dl(&self, cpu: CpuId) -> Util {
        let m = self.machine;
        match m.is_plain() {
            true => m.cpu(cpu).plain_bw_dl(),
            false => m.rq_util(cpu).cpu_bw_dl(),
        }
    }
}
