//! Does this fit on that CPU? The capacity margin, the clamps, and misfit.
//!
//! ```text
//!  fits_capacity: util · 1280 < capacity · 1024                     (20 % are kept free)
//!  uclamp_max ≤ capacity forces a fit, except 1024 on the biggest CPUs
//!  uclamp_min > actual capacity of a CPU that fits otherwise: it fits, but not the boost
//! ```
//!
//! `capacity_of` is what interrupts, RT and deadline leave ([`crate::cpu_util::capacity_of`]); the
//! clamps are compared with the original capacity. Left out: `select_idle_sibling` (policy).
//!
//! Source: kernel/sched/fair.c, symbols named at each function.

use crate::units::{Capacity, SCHED_CAPACITY_SCALE, Util};
use crate::{KernelRev, features};

/// Whether `util` leaves a fifth of `capacity` free. Source: fair.c:fits_capacity.
pub const fn fits_capacity(util: Util, capacity: Capacity) -> bool {
    util.0.wrapping_mul(1280) < capacity.0.wrapping_mul(1024)
}

/// Whether `util` takes less than `percent` of `capacity`: mainline's margin with another share. 80 is
/// mainline's, to the last bit.
pub const fn fits_capacity_percent(util: Util, capacity: Capacity, percent: u64) -> bool {
    util.0.wrapping_mul(100) < capacity.0.wrapping_mul(percent)
}

/// Whether capacity `a` is noticeably (5 %) greater than `b`. Source: fair.c:capacity_greater.
pub const fn capacity_greater(a: Capacity, b: Capacity) -> bool {
    a.0.wrapping_mul(1024) > b.0.wrapping_mul(1078)
}

/// Verdict on how something fits on a CPU (the kernel's 1, 0 and -1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The task fits.
    Fits,
    /// The task does not fit.
    DoesNotFit,
    /// The task's util fits, but the CPU cannot give the performance its `uclamp_min` asks for.
    BoostDoesNotFit,
}

/// The capacities of a CPU that a fit is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCapacities {
    /// The capacity left for fair tasks: `capacity_of()`.
    pub capacity_of: Capacity,
    /// The capacity at the highest OPP: `arch_scale_cpu_capacity()`.
    pub original: Capacity,
    /// Capacity less hardware and cpufreq pressure: `get_actual_cpu_capacity()`; before 6.10 the
    /// original less thermal pressure.
    pub actual: Capacity,
}

/// Whether `util` with these clamps fits on a CPU. Source: fair.c:util_fits_cpu.
#[inline]
pub fn util_fits_cpu(
    util: Util,
    uclamp_min: Util,
    uclamp_max: Util,
    cpu: CpuCapacities,
    uclamp_is_used: bool,
) -> Fit {
    let fits = fits_capacity(util, cpu.capacity_of);
    util_fits_cpu_from(fits, util, uclamp_min, uclamp_max, cpu, uclamp_is_used)
}

/// [`util_fits_cpu`], where another margin has said whether the util itself `fits`
/// ([`fits_capacity_percent`], [`crate::approximate::fits_capacity_threshold`]).
#[inline]
pub fn util_fits_cpu_from(
    mut fits: bool,
    util: Util,
    uclamp_min: Util,
    uclamp_max: Util,
    cpu: CpuCapacities,
    uclamp_is_used: bool,
) -> Fit {
    let open = uclamp_min.0 == 0 && uclamp_max.0 == SCHED_CAPACITY_SCALE;
    // Open clamps decide nothing where no CPU is bigger than the scale.
    if uclamp_is_used && !(open && cpu.original.0 <= SCHED_CAPACITY_SCALE) {
        let unlimited =
            cpu.original.0 == SCHED_CAPACITY_SCALE && uclamp_max.0 == SCHED_CAPACITY_SCALE;
        fits |= !unlimited && uclamp_max.0 <= cpu.original.0;
        let uclamp_min = uclamp_min.min(uclamp_max);
        if fits && util < uclamp_min && uclamp_min.0 > cpu.actual.0 {
            return Fit::BoostDoesNotFit;
        }
    }
    if fits { Fit::Fits } else { Fit::DoesNotFit }
}

/// A CPU's current fair task, as far as it decides whether it is a misfit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MisfitTask {
    /// Number of CPUs its affinity allows.
    pub nr_cpus_allowed: u32,
    /// The largest capacity among those (looked at since 6.10).
    pub max_allowed_capacity: Capacity,
    /// [`util_fits_cpu`] says [`Fit::Fits`] of it on this CPU (`task_fits_cpu`).
    pub fits: bool,
}

/// The new `rq->misfit_task_load`: 0, or the load (at least 1) of a task that needs a bigger CPU.
///
/// `None` as task when the CPU runs no fair task. `None` as answer, leave it as it is, on a machine
/// whose CPUs are all alike. `task_h_load`: the task's load, in the root group its `load_avg`, asked of one that
/// needs a bigger CPU alone: asking renews what the groups above are worth. Source: fair.c:update_misfit_status.
pub fn update_misfit_status(
    rev: KernelRev,
    sched_asym_cpucap_active: bool,
    task: Option<MisfitTask>,
    cpu_capacity: Capacity,
    task_h_load: impl FnOnce() -> u64,
) -> Option<u64> {
    if !sched_asym_cpucap_active {
        return None;
    }
    let settled = |t: &MisfitTask| {
        let biggest =
            rev.has(features::MAX_ALLOWED_CAPACITY) && cpu_capacity == t.max_allowed_capacity;
        t.nr_cpus_allowed == 1 || biggest || t.fits
    };
    Some(task.filter(|t| !settled(t)).map_or(0, |_| task_h_load().max(1)))
}

/// Whether a CPU's misfit task is reason to wake an idle CPU: since 6.10 always, as only a task that may
/// use a bigger CPU is one. Source: fair.c:check_misfit_status.
pub fn check_misfit_status(misfit_task_load: u64) -> bool {
    misfit_task_load != 0
}

/// Whether a misfit is acted upon, up to 6.9: only where there is a bigger CPU at all, or where
/// other classes take much of this one (`reduced`: `check_cpu_capacity`). Source:
/// fair.c:check_misfit_status of 6.1 and 6.8.
pub fn check_misfit_status_pre_6_10(
    misfit_task_load: u64,
    cpu_capacity: Capacity,
    max_cpu_capacity: Capacity,
    reduced: bool,
) -> bool {
    misfit_task_load != 0 && (cpu_capacity < max_cpu_capacity || reduced)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: CpuCapacities = CpuCapacities {
        capacity_of: Capacity(459),
        original: Capacity(459),
        actual: Capacity(459),
    };
    const BIG: CpuCapacities = CpuCapacities {
        capacity_of: Capacity(1024),
        original: Capacity(1024),
        actual: Capacity(1024),
    };

    fn fit(util: u64, min: u64, max: u64, cpu: CpuCapacities) -> Fit {
        util_fits_cpu(Util(util), Util(min), Util(max), cpu, true)
    }

    #[test]
    fn a_fifth_is_kept_free() {
        assert!(fits_capacity(Util(367), Capacity(459)));
        assert!(!fits_capacity(Util(368), Capacity(459)));
        assert!(!fits_capacity(Util(0), Capacity(0)));
        assert!(!capacity_greater(Capacity(1078), Capacity(1024)));
        assert!(capacity_greater(Capacity(1079), Capacity(1024)));
    }

    #[test]
    fn a_fifth_kept_free_is_80_percent_taken() {
        for (util, capacity) in (0..=1100).flat_map(|u| (0..=1024).map(move |c| (u, c))) {
            let (util, capacity) = (Util(util), Capacity(capacity));
            let own = fits_capacity_percent(util, capacity, 80);
            assert_eq!(own, fits_capacity(util, capacity), "{util} of {capacity}");
            assert_eq!(fits_capacity_percent(util, capacity, 100), util.0 < capacity.0);
        }
        assert!(fits_capacity_percent(Util(458), Capacity(459), 100));
        assert!(!fits_capacity_percent(Util(230), Capacity(460), 50));
        assert!(fits_capacity_percent(Util(229), Capacity(460), 50));
    }

    #[test]
    fn a_capped_task_fits_where_its_cap_fits() {
        assert_eq!(fit(450, 0, 1024, LITTLE), Fit::DoesNotFit);
        assert_eq!(fit(450, 0, 459, LITTLE), Fit::Fits);
        assert_eq!(fit(450, 0, 460, LITTLE), Fit::DoesNotFit);
        assert_eq!(fit(1000, 0, 1024, BIG), Fit::DoesNotFit, "no cap at the top");
        assert_eq!(fit(1000, 0, 1023, BIG), Fit::Fits);
        let unused = util_fits_cpu(Util(450), Util(0), Util(459), LITTLE, false);
        assert_eq!(unused, Fit::DoesNotFit, "clamps do not count while nobody uses them");
    }

    #[test]
    fn a_boost_needs_the_capacity_but_no_margin() {
        assert_eq!(fit(100, 459, 1024, LITTLE), Fit::Fits);
        assert_eq!(fit(100, 460, 1024, LITTLE), Fit::BoostDoesNotFit);
        assert_eq!(fit(100, 1024, 400, LITTLE), Fit::Fits, "the maximum caps the boost");
        let throttled = CpuCapacities { actual: Capacity(400), ..LITTLE };
        assert_eq!(fit(100, 459, 1024, throttled), Fit::BoostDoesNotFit);
        let busy = CpuCapacities { capacity_of: Capacity(200), ..LITTLE };
        assert_eq!(fit(100, 459, 1024, busy), Fit::Fits, "RT does not lower the performance");
        assert_ne!(util_fits_cpu(Util(100), Util(460), Util(1024), LITTLE, true), Fit::Fits);
    }

    #[test]
    fn a_misfit_task_on_the_biggest_cpu_is_no_reason_to_balance() {
        let (little, big) = (Capacity(459), Capacity(1024));
        assert!(check_misfit_status(1) && !check_misfit_status(0));
        assert!(check_misfit_status_pre_6_10(1, little, big, false));
        assert!(!check_misfit_status_pre_6_10(1, big, big, false));
        assert!(check_misfit_status_pre_6_10(1, big, big, true), "interrupts take their part");
        assert!(!check_misfit_status_pre_6_10(0, little, big, true));
    }

    #[test]
    fn misfit_is_for_tasks_that_could_go_somewhere_bigger() {
        let task =
            MisfitTask { nr_cpus_allowed: 8, max_allowed_capacity: Capacity(1024), fits: false };
        let of = |rev, task, load| update_misfit_status(rev, true, task, Capacity(459), || load);
        assert_eq!(of(KernelRev::V7_2, Some(task), 0), Some(1), "never 0");
        assert_eq!(of(KernelRev::V7_2, Some(task), 700), Some(700));
        let on_little = MisfitTask { max_allowed_capacity: Capacity(459), ..task };
        assert_eq!(of(KernelRev::V6_8, Some(on_little), 0), Some(1), "not looked at yet");
        let settled = |task| {
            let unasked = || unreachable!("its load is not asked for");
            update_misfit_status(KernelRev::V7_2, true, task, Capacity(459), unasked)
        };
        assert_eq!(settled(Some(MisfitTask { fits: true, ..task })), Some(0));
        assert_eq!(settled(Some(MisfitTask { nr_cpus_allowed: 1, ..task })), Some(0));
        assert_eq!(settled(Some(on_little)), Some(0));
        assert_eq!(settled(None), Some(0));
        let alike = update_misfit_status(KernelRev::V7_2, false, Some(task), Capacity(459), || 0);
        assert_eq!(alike, None);
    }
}
