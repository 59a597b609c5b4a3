//! Utilisation of a CPU, by the fair class and by all classes together, and the capacity that is
//! left.
//!
//! ```text
//!  cpu_util           = min(max(util_avg, [runnable_avg,] util_est), capacity)      fair class
//!  effective_cpu_util = irq + (cfs + rt + dl) · (capacity - irq) / capacity         all classes
//!                       capacity if that is full, or if interrupts alone fill it
//!  min  = max(irq + dl bandwidth, uclamp_min)     max = min(capacity, uclamp_max)
//!  capacity_of        = (capacity - pressure - rt - dl) · (capacity - irq) / capacity
//! ```
//!
//! RT, deadline and interrupts are PELT signals; fair tasks see a clock without interrupt time, so
//! their util is scaled down by it. Left out: sched_ext's own target.
//!
//! Source: kernel/sched/fair.c, kernel/sched/sched.h.

use crate::units::{Capacity, CpuId, Util};
use crate::{KernelRev, features};

/// The fair-class signals of one runqueue that [`cpu_util`] reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CfsUtil {
    /// `cfs_rq->avg.util_avg`.
    pub util_avg: Util,
    /// `cfs_rq->avg.runnable_avg`.
    pub runnable_avg: Util,
    /// `cfs_rq->avg.util_est`: the sum over queued tasks.
    pub util_est: Util,
}

/// The signals of a task whose placement is being considered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskUtil {
    /// The CPU it is on, or was on last.
    pub cpu: CpuId,
    /// The task's `util_avg`.
    pub util_avg: Util,
    /// The task's `runnable_avg`.
    pub runnable_avg: Util,
    /// The task's `util_est` without the flag ([`crate::util_est::UtilEst::value`]).
    pub util_est: Util,
    /// Whether it is queued, or current: then the runqueue's `util_est` contains it.
    pub queued: bool,
}

/// The fair class's use of `cpu` if task `p` were on `dst_cpu` (`None`: nowhere).
///
/// Without `p` it is the use as it stands. `boost` also counts contention (`runnable_avg`), as
/// schedutil asks since 6.5. At most the CPU's capacity. Source: fair.c:cpu_util.
#[inline]
pub fn cpu_util(
    cpu: CpuId,
    cfs: &CfsUtil,
    p: Option<&TaskUtil>,
    dst_cpu: Option<CpuId>,
    boost: bool,
    capacity: Capacity,
) -> Util {
    let here = dst_cpu == Some(cpu);
    let (mut util, mut runnable) = (cfs.util_avg, cfs.runnable_avg);
    match p {
        Some(p) if p.cpu == cpu && !here => {
            util = util.saturating_sub(p.util_avg);
            runnable = runnable.saturating_sub(p.runnable_avg);
        }
        Some(p) if p.cpu != cpu && here => {
            util = Util(util.0.wrapping_add(p.util_avg.0));
            runnable = Util(runnable.0.wrapping_add(p.runnable_avg.0));
        }
        _ => {}
    }
    if boost {
        util = util.max(runnable);
    }
    let util_est = match p {
        // A waking task is not queued yet, wherever it was before.
        Some(p) if here => Util(cfs.util_est.0.wrapping_add(p.util_est.0)),
        Some(p) if p.queued => cfs.util_est.saturating_sub(p.util_est),
        _ => cfs.util_est,
    };
    Util(util.max(util_est).0.min(capacity.0))
}

/// [`cpu_util`] that counts contention, as it was from 6.5 to 6.11 (in stable 6.12, too, at first):
/// the larger of util and contention came first, and the task's *util* was added to that or taken off.
/// A waking task so takes too little off the CPU it leaves where the contention there was its own, and
/// brings none of its own along. Source: fair.c:cpu_util.
pub fn cpu_util_boost_pre_6_12(
    cpu: CpuId,
    cfs: &CfsUtil,
    p: Option<&TaskUtil>,
    dst_cpu: Option<CpuId>,
    capacity: Capacity,
) -> Util {
    let contended = CfsUtil { util_avg: cfs.util_avg.max(cfs.runnable_avg), ..*cfs };
    cpu_util(cpu, &contended, p, dst_cpu, false, capacity)
}

/// The fair class's use of a CPU as it stands. Source: fair.c:cpu_util_cfs.
#[inline]
pub fn cpu_util_cfs(cfs: &CfsUtil, capacity: Capacity) -> Util {
    cpu_util(CpuId(0), cfs, None, None, false, capacity)
}

/// The fair class's use of a CPU, or its contention (`runnable_avg`) if that is more: what schedutil asks
/// since 6.5. Source: fair.c:cpu_util_cfs_boost.
#[inline]
pub fn cpu_util_cfs_boost(cfs: &CfsUtil, capacity: Capacity) -> Util {
    cpu_util(CpuId(0), cfs, None, None, true, capacity)
}

/// The fair class's use of `cpu` without task `p`, which counts as absent when it is elsewhere or
/// new (`attached` false: `last_update_time` is 0). Source: fair.c:cpu_util_without.
pub fn cpu_util_without(
    cpu: CpuId,
    cfs: &CfsUtil,
    p: &TaskUtil,
    attached: bool,
    capacity: Capacity,
) -> Util {
    let p = (p.cpu == cpu && attached).then_some(p);
    cpu_util(cpu, cfs, p, None, false, capacity)
}

/// The signals of one CPU beside the fair class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RqUtil {
    /// `avg_rt.util_avg`.
    pub rt: Util,
    /// `avg_dl.util_avg`.
    pub dl: Util,
    /// `avg_irq.util_avg`.
    pub irq: Util,
    /// `rq->dl.running_bw`: deadline bandwidth, 2²⁰ = the whole CPU.
    pub dl_running_bw: u64,
    /// The runqueue's `uclamp_min`.
    pub uclamp_min: Util,
    /// The runqueue's `uclamp_max`.
    pub uclamp_max: Util,
    /// Whether anybody ever used uclamp (`sched_uclamp_used`).
    pub uclamp_is_used: bool,
    /// Whether an RT task is runnable.
    pub rt_runnable: bool,
}

impl Default for RqUtil {
    /// A CPU on which only the fair class runs, without clamps.
    fn default() -> RqUtil {
        RqUtil {
            rt: Util(0),
            dl: Util(0),
            irq: Util(0),
            dl_running_bw: 0,
            uclamp_min: Util(0),
            uclamp_max: Util(1024),
            uclamp_is_used: false,
            rt_runnable: false,
        }
    }
}

impl RqUtil {
    /// The bandwidth promised to deadline tasks. Rounding: down. Source: sched.h:cpu_bw_dl.
    #[inline]
    pub const fn cpu_bw_dl(&self) -> Util {
        Util(self.dl_running_bw.wrapping_mul(1024) >> 20)
    }

    /// The use of the CPU by all classes, the first of what [`effective_cpu_util`] answers.
    #[inline]
    pub fn effective_util(&self, util_cfs: Util, capacity: Capacity) -> Util {
        let scale = Util(capacity.0);
        let sum = Util(util_cfs.0.wrapping_add(self.rt.0).wrapping_add(self.dl.0));
        if self.irq >= scale || sum >= scale {
            return scale;
        }
        if self.irq == Util(0) && scale.0 <= u32::MAX as u64 {
            // What [`scale_irq_capacity`] gives then.
            return sum;
        }
        let scaled = scale_irq_capacity(sum.0, self.irq.0, scale.0);
        Util(scaled.wrapping_add(self.irq.0)).min(scale)
    }
}

/// Answer of [`effective_cpu_util`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectiveUtil {
    /// The use of the CPU by all classes.
    pub util: Util,
    /// The performance that must be there at least.
    pub min: Util,
    /// The performance that is enough. May be below `util` and even below `min`.
    pub max: Util,
}

/// `util` as seen by the wall clock, when `irq` of `max` goes to interrupts. Rounding: down.
///
/// `max` 0, which the kernel would divide by, gives 0. Source: sched.h:scale_irq_capacity.
pub const fn scale_irq_capacity(util: u64, irq: u64, max: u64) -> u64 {
    // The common case, without a division: util · max / max, where the product does not wrap.
    if irq == 0 && max != 0 && util <= u32::MAX as u64 && max <= u32::MAX as u64 {
        return util;
    }
    match util.wrapping_mul(max.wrapping_sub(irq)).checked_div(max) {
        Some(scaled) => scaled,
        None => 0,
    }
}

/// The use of a CPU by all classes, and the limits on the performance to choose for it.
/// Source: fair.c:effective_cpu_util (since 6.8).
#[inline]
pub fn effective_cpu_util(util_cfs: Util, rq: &RqUtil, capacity: Capacity) -> EffectiveUtil {
    let scale = Util(capacity.0);
    if rq.irq >= scale {
        return EffectiveUtil { util: scale, min: scale, max: scale };
    }
    let mut min = Util(rq.irq.0.wrapping_add(rq.cpu_bw_dl().0)).max(rq.uclamp_min);
    if !rq.uclamp_is_used && rq.rt_runnable {
        min = min.max(scale);
    }
    let max = scale.min(rq.uclamp_max);
    EffectiveUtil { util: rq.effective_util(util_cfs, capacity), min, max }
}

/// Kind of util that [`effective_cpu_util_pre_6_8`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuUtilType {
    /// Util by which a frequency is chosen: clamped, deadline by bandwidth.
    Frequency,
    /// Util by which energy is estimated: unclamped, deadline by util.
    Energy,
}

/// The form before 6.8: one number, with the clamps applied to fair and RT util inside.
///
/// `clamp` is [`crate::uclamp::uclamp_rq_util_with`] on this runqueue (and on the task considered,
/// if any). Source: Linux 6.1 core.c:effective_cpu_util.
pub fn effective_cpu_util_pre_6_8(
    util_cfs: Util,
    rq: &RqUtil,
    capacity: Capacity,
    kind: CpuUtilType,
    clamp: impl FnOnce(Util) -> Util,
) -> Util {
    let max = capacity.0;
    let frequency = kind == CpuUtilType::Frequency;
    let rt_wants_all = !rq.uclamp_is_used && frequency && rq.rt_runnable;
    if rt_wants_all || rq.irq.0 >= max {
        return Util(max);
    }
    let mut util = Util(util_cfs.0.wrapping_add(rq.rt.0));
    if frequency {
        util = clamp(util);
    }
    let with_dl = util.0.wrapping_add(rq.dl.0);
    if with_dl >= max {
        return Util(max);
    }
    let tasks = if frequency { util.0 } else { with_dl };
    let mut total = scale_irq_capacity(tasks, rq.irq.0, max).wrapping_add(rq.irq.0);
    if frequency {
        total = total.wrapping_add(rq.cpu_bw_dl().0);
    }
    Util(total.min(max))
}

/// The CPU's capacity less what hardware or cpufreq limits take away; wraps if that is more.
/// Source: fair.c:get_actual_cpu_capacity (since 6.10).
pub const fn get_actual_cpu_capacity(
    capacity: Capacity,
    hw_load_avg: u64,
    cpufreq_pressure: u64,
) -> Capacity {
    let pressure = if hw_load_avg > cpufreq_pressure { hw_load_avg } else { cpufreq_pressure };
    Capacity(capacity.0.wrapping_sub(pressure))
}

/// The capacity that a CPU has left for fair tasks: the kernel's `capacity_of()`, at least 1.
///
/// `hw_load_avg` is the PELT average of hardware (before 6.10 thermal) pressure, which up to 6.9
/// counted like RT time; `cpufreq_pressure` is what a lowered frequency limit takes (since 6.10).
/// Source: fair.c:scale_rt_capacity, update_cpu_capacity.
pub fn capacity_of(
    rev: KernelRev,
    capacity: Capacity,
    rq: &RqUtil,
    hw_load_avg: u64,
    cpufreq_pressure: u64,
) -> Capacity {
    let since_6_10 = rev.has(features::GET_ACTUAL_CPU_CAPACITY);
    let (max, pressure) = if since_6_10 {
        (get_actual_cpu_capacity(capacity, hw_load_avg, cpufreq_pressure).0, 0)
    } else {
        (capacity.0, hw_load_avg)
    };
    let used = rq.rt.0.wrapping_add(rq.dl.0).wrapping_add(pressure);
    if rq.irq.0 >= max || used >= max {
        return Capacity(1);
    }
    Capacity(scale_irq_capacity(max - used, rq.irq.0, max).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: Capacity = Capacity(1024);

    fn cfs(util_avg: u64, runnable_avg: u64, util_est: u64) -> CfsUtil {
        CfsUtil {
            util_avg: Util(util_avg),
            runnable_avg: Util(runnable_avg),
            util_est: Util(util_est),
        }
    }

    fn task(cpu: u32, util: u64, est: u64, queued: bool) -> TaskUtil {
        TaskUtil {
            cpu: CpuId(cpu),
            util_avg: Util(util),
            runnable_avg: Util(util + 10),
            util_est: Util(est),
            queued,
        }
    }

    #[test]
    fn largest_of_util_contention_and_estimate() {
        assert_eq!(cpu_util_cfs(&cfs(100, 300, 50), BIG), Util(100));
        assert_eq!(cpu_util_cfs_boost(&cfs(100, 300, 50), BIG), Util(300));
        assert_eq!(cpu_util_cfs_boost(&cfs(100, 300, 400), BIG), Util(400));
        assert_eq!(cpu_util_cfs(&cfs(2000, 0, 0), Capacity(459)), Util(459));
    }

    #[test]
    fn a_waking_task_moves_its_util_and_adds_its_estimate() {
        let (cpu0, cpu1) = (CpuId(0), CpuId(1));
        let p = task(0, 100, 250, false);
        // It slept on CPU 0: its util is still there, its estimate nowhere.
        let on = |cpu, cfs: &CfsUtil, dst| cpu_util(cpu, cfs, Some(&p), dst, false, BIG);
        assert_eq!(on(cpu0, &cfs(130, 0, 0), Some(cpu1)), Util(30));
        assert_eq!(on(cpu1, &cfs(130, 0, 0), Some(cpu1)), Util(250));
        assert_eq!(on(cpu1, &cfs(200, 0, 0), Some(cpu1)), Util(300));
        assert_eq!(on(cpu0, &cfs(130, 0, 0), Some(cpu0)), Util(250), "it stays");
        assert_eq!(on(CpuId(2), &cfs(130, 0, 90), Some(cpu1)), Util(130), "not concerned");
        let boosted = cpu_util(cpu1, &cfs(0, 400, 0), Some(&p), Some(cpu1), true, BIG);
        assert_eq!(boosted, Util(510), "contention moves with it");
    }

    #[test]
    fn until_6_11_contention_came_before_the_task_was_moved() {
        let (cpu0, cpu1) = (CpuId(0), CpuId(1));
        let p = task(0, 100, 0, false);
        let both = |cpu, cfs: &CfsUtil, dst| {
            (
                cpu_util_boost_pre_6_12(cpu, cfs, Some(&p), dst, BIG).0,
                cpu_util(cpu, cfs, Some(&p), dst, true, BIG).0,
            )
        };
        // Its contention is 110, its util 100.
        assert_eq!(both(cpu0, &cfs(130, 400, 0), Some(cpu1)), (300, 290), "it leaves");
        assert_eq!(both(cpu1, &cfs(130, 400, 0), Some(cpu1)), (500, 510), "it comes");
        assert_eq!(both(cpu1, &cfs(300, 200, 0), Some(cpu1)), (400, 400));
        assert_eq!(both(cpu1, &cfs(300, 295, 0), Some(cpu1)), (400, 405));
        assert_eq!(both(cpu1, &cfs(130, 400, 0), Some(cpu0)), (400, 400), "not concerned");
    }

    #[test]
    fn without_a_task() {
        let at = |cpu, cfs: &CfsUtil, p: &TaskUtil, attached| {
            cpu_util_without(CpuId(cpu), cfs, p, attached, BIG)
        };
        let queued = task(0, 100, 250, true);
        assert_eq!(at(0, &cfs(130, 0, 270), &queued, true), Util(30));
        assert_eq!(at(0, &cfs(130, 0, 270), &queued, false), Util(270), "new: nothing of it there");
        assert_eq!(at(1, &cfs(130, 0, 270), &queued, true), Util(270), "it is elsewhere");
        let asleep = task(0, 100, 250, false);
        assert_eq!(at(0, &cfs(130, 0, 20), &asleep, true), Util(30), "its estimate is not in");
    }

    #[test]
    fn interrupts_that_fill_the_cpu_ask_for_all_of_it() {
        let rq = RqUtil { irq: Util(459), uclamp_max: Util(10), ..RqUtil::default() };
        let all = effective_cpu_util(Util(0), &rq, Capacity(459));
        assert_eq!((all.util, all.min, all.max), (Util(459), Util(459), Util(459)));
        let none = effective_cpu_util(Util(0), &rq, Capacity(0));
        assert_eq!(none.util, Util(0), "a capacity of 0 divides nothing");
    }

    #[test]
    fn rt_asks_for_everything_only_while_nobody_uses_uclamp() {
        let mut rq = RqUtil { rt: Util(20), rt_runnable: true, ..RqUtil::default() };
        assert_eq!(effective_cpu_util(Util(10), &rq, BIG).min, Util(1024));
        rq.uclamp_is_used = true;
        let used = effective_cpu_util(Util(10), &rq, BIG);
        assert_eq!((used.util, used.min), (Util(30), Util(0)));
        // Before 6.8 the answer itself said so.
        let old = |rq: &RqUtil, kind| effective_cpu_util_pre_6_8(Util(10), rq, BIG, kind, |u| u);
        assert_eq!(old(&rq, CpuUtilType::Frequency), Util(30));
        rq.uclamp_is_used = false;
        assert_eq!(old(&rq, CpuUtilType::Frequency), Util(1024));
        assert_eq!(old(&rq, CpuUtilType::Energy), Util(30));
    }

    #[test]
    fn before_6_8_deadline_counts_by_bandwidth_for_frequency_and_by_util_for_energy() {
        let rq = RqUtil { dl: Util(100), dl_running_bw: 1 << 18, ..RqUtil::default() };
        let old = |kind, clamp: u64| {
            effective_cpu_util_pre_6_8(Util(50), &rq, BIG, kind, |_| Util(clamp))
        };
        assert_eq!(old(CpuUtilType::Frequency, 200), Util(200 + 256));
        assert_eq!(old(CpuUtilType::Energy, 200), Util(150), "unclamped");
        assert_eq!(old(CpuUtilType::Frequency, 924), Util(1024), "no idle time left");
    }

    #[test]
    fn what_is_left_for_fair_tasks() {
        let rq = RqUtil { rt: Util(100), dl: Util(24), irq: Util(256), ..RqUtil::default() };
        let left = |rev, hw, freq| capacity_of(rev, BIG, &rq, hw, freq).0;
        assert_eq!(left(KernelRev::V7_2, 0, 0), 900 * 768 / 1024);
        assert_eq!(left(KernelRev::V7_2, 100, 300), (724 - 124) * (724 - 256) / 724);
        assert_eq!(left(KernelRev::V6_8, 100, 300), 800 * 768 / 1024, "no cpufreq pressure yet");
        let full = RqUtil { rt: Util(1024), ..RqUtil::default() };
        assert_eq!(capacity_of(KernelRev::V7_2, BIG, &full, 0, 0), Capacity(1), "never 0");
    }
}
