//! Questions that one can ask of a task, a frequency domain and a CPU by themselves.

use super::*;

impl Task {
    /// Sets its affinity, and with it the highest capacity it may run on.
    pub(crate) fn set_allowed(&mut self, cpus: &[Cpu], allowed: CpuSet) {
        let capacity = allowed.iter().map(|c| cpus[c.index()].capacity).max().unwrap_or_default();
        (self.nr_cpus_allowed, self.allowed, self.max_allowed_capacity) =
            (allowed.len() as u32, allowed, capacity);
    }
    /// Whether it is a kthread that changes frequencies.
    pub(crate) fn is_kthread(&self) -> bool {
        matches!(self.role, Role::Sugov(_))
    }
    /// The task's effective clamps (`uclamp_eff_value`): what its group leaves of its request.
    #[inline]
    pub(crate) fn clamps(&self) -> Uclamp {
        self.uclamp.uclamp_eff_value(&self.limits)
    }
}

impl FreqDomain {
    /// The speed, of 1024, of a task clamped to `uclamp_max` on one of its CPUs, within the limits with which the machine
    /// starts (`platform::max_speed`).
    pub(crate) fn max_speed(&self, uclamp_max: Util) -> Util {
        self.max_speed_within(self.limit_at_start, no_clamp_or(uclamp_max))
    }
    /// The highest speed at no more than `limit`, as far as `uclamp_max` asks for it.
    pub(super) fn max_speed_within(&self, limit: KHz, uclamp_max: Util) -> Util {
        let of = |(_, speed): &(KHz, u64)| Util((speed * SCHED_CAPACITY_SCALE) >> SPEED_SHIFT);
        let within = || self.speeds.iter().filter(|(freq, _)| *freq <= limit).map(of);
        let enough = within().find(|s| *s >= uclamp_max);
        enough.or(within().next_back()).unwrap_or(Util(0))
    }
    /// The work per ns of a CPU at `freq`: at the OPP, or at the next one above.
    pub(crate) fn speed_at(&self, freq: KHz) -> u64 {
        let at = self.speeds.iter().find(|(own, _)| *own >= freq).or(self.speeds.last());
        at.map_or(1, |(_, speed)| *speed)
    }
    /// The factor by which PELT's clock is scaled at a frequency, of 1024.
    pub(crate) fn freq_scale(&self, freq: KHz) -> u64 {
        match self.scale.kept(freq) {
            _ if !self.freq_invariant => SCHED_CAPACITY_SCALE,
            Some(own) => own.0 * SCHED_CAPACITY_SCALE / self.scale.kept_at_ref().0.max(1),
            None => freq_scale(freq, self.scale.freq_ref),
        }
    }
    /// `policy->cpuinfo.max_freq`.
    pub(crate) fn freq_max(&self) -> KHz {
        self.scale.cpuinfo_max
    }
}

impl Cpu {
    /// The capacities a fit is judged by.
    #[inline]
    pub(crate) fn capacities(&self) -> CpuCapacities {
        CpuCapacities {
            capacity_of: self.cpu_capacity,
            original: self.capacity,
            actual: self.actual,
        }
    }
    /// `util_fits_cpu`.
    #[inline]
    pub(crate) fn util_fits(&self, util: Util, min: Util, max: Util) -> Fit {
        match self.series.fits(util, self.cpu_capacity) {
            Some(fits) => util_fits_cpu_from(fits, util, min, max, self.capacities(), true),
            None => util_fits_cpu(util, min, max, self.capacities(), true),
        }
    }
    /// `idle_cpu`: nothing runs, nothing is queued and nothing is about to be.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.curr.is_none() && self.nr_running() == 0 && self.ttwu_pending == 0
    }
    /// Whether it has one of the workload's tasks to run. One that is just being enqueued
    /// counts (its clamps do already), and so does one that is just being dequeued.
    pub(crate) fn has_work(&self) -> bool {
        let muqss = self.muqss.as_ref().is_some_and(|rq| rq.nr_running() > 0);
        self.h_nr_runnable() > 0 || !self.uclamp.uclamp_rq_is_idle() || muqss
    }
    /// The number of fair tasks that want to run, those of groups counted (`cfs.h_nr_runnable`).
    #[inline]
    pub(crate) fn h_nr_runnable(&self) -> usize {
        self.h_nr.map_or_else(|| self.cfs.nr_runnable(), |(_, runnable)| runnable as usize)
    }
    /// The number of fair tasks that are queued, those whose dequeue is delayed counted, too
    /// (`cfs.h_nr_queued`).
    #[inline]
    pub(crate) fn h_nr_queued(&self) -> usize {
        self.h_nr.map_or_else(|| self.cfs.nr_queued(), |(queued, _)| queued as usize)
    }
    /// The number of fair tasks that load balancing counts: until 6.13 also those whose dequeue is
    /// delayed (`h_nr_running`, then `h_nr_runnable`).
    #[inline]
    pub(crate) fn fair_queued(&self, rev: KernelRev) -> usize {
        if rev >= KernelRev::new(6, 14) { self.h_nr_runnable() } else { self.h_nr_queued() }
    }
    /// Whether a fair task that could run does not.
    #[inline]
    pub(crate) fn fair_waits(&self) -> bool {
        self.h_nr_runnable() > 0
    }

    /// `rq->nr_running`: fair tasks, also those asleep whose dequeue is delayed, RT tasks unless they
    /// are throttled or their group's server is, deadline tasks that are not, the stopper, those of SCHED_HIGH, and those of SCHED_OVERCOMMIT whose time has come.
    #[inline]
    pub(crate) fn nr_running(&self) -> usize {
        let rt = if self.rt_throttle.throttled { 0 } else { self.rt.len() };
        let stop = self.stopper.as_ref().is_some_and(|s| s.queued());
        let muqss = self.muqss.as_ref().map_or(0, |rq| rq.nr_running());
        let high = self.high.as_ref().map_or(0, |high| high.nr_queued());
        let overcommit = self.overcommit.as_ref().map_or(0, |queue| queue.class.eligible());
        self.h_nr_queued()
            + rt
            + self.rt_groups.nr_served()
            + muqss
            + self.dl.tasks()
            + usize::from(stop)
            + high
            + overcommit
    }
    /// The bandwidth that deadline tasks and those of SCHED_OVERCOMMIT are promised, 2²⁰ = a CPU of
    /// capacity 1024.
    #[inline]
    pub(crate) fn promised_bw(&self, by: Option<DlFrequency>) -> u64 {
        let asked = self.overcommit.as_ref().map_or(0, |queue| queue.class.asked_now());
        self.promised_to_deadline(by) + asked.min(BW_UNIT)
    }
}
