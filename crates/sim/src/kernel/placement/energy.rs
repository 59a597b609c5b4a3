//! Energy-aware placement: the CPU on which a waking task costs least
//! (`find_energy_efficient_cpu`).
//!
//! ```text
//! per performance domain: candidates = previous CPU, and the CPU with most spare capacity
//! cost of a candidate    = em_cpu_energy(with the task there) − em_cpu_energy(without it)
//! ```
//!
//! What that energy is: [`crate::mech::perf_domain::estimate`].
//!
//! The previous CPU wins ties, and against all that save less than a margin (`eas_margin`; none since
//! 6.0). A candidate that cannot give `uclamp_min` is taken only if none can, the biggest first.
//! Source: kernel/sched/fair.c.

use super::{Effects, Placed};
use crate::mech::perf_domain::estimate::{EnergyEnv, Without};
use crate::state::cpuset::CpuSet;
use crate::state::machine::{FreqDomain, Machine};
use risetime_kernel::energy_model::feec_saves;
use risetime_kernel::fits::{Fit, fits_capacity};
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{Capacity, CpuId, TaskId, Util};
use risetime_trace::Why;

/// The rank of how well a CPU fits, in the kernel's order: fits, does not, only its boost does not.
fn rank(fit: Fit) -> i32 {
    match fit {
        Fit::Fits => 1,
        Fit::DoesNotFit => 0,
        Fit::BoostDoesNotFit => -1,
    }
}

/// The best so far over all domains.
#[derive(Clone, Copy)]
struct Best {
    cpu: CpuId,
    delta: u64,
    fits: i32,
    capacity: Capacity,
}

/// A domain's candidates.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidates {
    prev: Option<(u64, i32)>,
    most_spare: Option<(CpuId, u64, i32)>,
}

pub(super) fn find_energy_efficient_cpu(
    m: &Machine,
    task: TaskId,
    this: CpuId,
    effects: &mut Effects,
) -> Option<Placed> {
    let prev = m.task(task).cpu;
    // The lowest domain from the waker's asymmetric one on that holds the previous CPU.
    let c = m.cpu(this);
    let domains = c.place.asym.map_or(&[][..], |level| &c.sched_domains[level..]);
    let span = &domains.iter().find(|d| d.span.contains(prev))?.span;
    if m.task_util_est(task) == Util(0) && m.task(task).clamps().min == Util(0) {
        return Some(Placed { cpu: prev, why: Why::PrevCpu });
    }
    let asked = EnergyEnv::new(m, task, std::mem::take(effects));
    let placed = asked.cheapest(span);
    *effects = asked.into_effects();
    Some(placed)
}

impl EnergyEnv<'_> {
    fn cheapest(&self, span: &CpuSet) -> Placed {
        let stay = Placed { cpu: self.prev, why: Why::PrevCpu };
        let (mut best, mut best_delta) = (None::<Best>, u64::MAX);
        let (mut prev_delta, mut prev_fits, mut prev_capacity) = (u64::MAX, -1, Capacity(0));
        let mut base_energy = 0u64;
        // The list of performance domains begins with the one found last (`build_perf_domains`).
        for domain in self.m.domains.iter().rev() {
            let mut without = Without::nothing(self, domain);
            let found = match self.plain {
                true => self.survey(span, &mut without),
                false => self.candidates(domain, span),
            };
            if found.prev.is_none() && found.most_spare.is_none() {
                continue;
            }
            if !self.plain {
                without.count_all();
            }
            let (without, capacity) = (without, self.m.cpu(domain.cpus[0]).actual);
            let base = without.energy(None);
            base_energy = base_energy.wrapping_add(base);
            if let Some((_, fits)) = found.prev {
                let Some(delta) = without.energy(Some(self.prev)).checked_sub(base) else {
                    return stay;
                };
                (prev_delta, prev_fits, prev_capacity) = (delta, fits, capacity);
                best_delta = best_delta.min(delta);
            }
            let Some((cpu, spare, fits)) = found.most_spare else { continue };
            if found.prev.is_some_and(|(prev_spare, _)| spare <= prev_spare) {
                continue;
            }
            let (best_fits, best_capacity) =
                best.map_or((-1, Capacity(0)), |b| (b.fits, b.capacity));
            if fits < best_fits || (fits < 0 && capacity <= best_capacity) {
                continue;
            }
            let Some(delta) = without.energy(Some(cpu)).checked_sub(base) else { return stay };
            if fits > 0 && best_fits > 0 && delta >= best_delta {
                continue;
            }
            best_delta = delta;
            best = Some(Best { cpu, delta, fits, capacity });
        }
        let saves =
            |b: &Best| feec_saves(prev_delta, b.delta, base_energy, self.m.slots.series.eas_margin);
        match best {
            Some(b)
                if b.fits > prev_fits
                    || (b.fits > 0 && saves(&b))
                    || (b.fits < 0 && b.capacity > prev_capacity) =>
            {
                Placed { cpu: b.cpu, why: Why::Energy }
            }
            _ => stay,
        }
    }

    /// The previous CPU (if it is in this domain) and the one with most spare capacity, each with
    /// its spare capacity and how it fits; CPUs that do not fit are none.
    fn candidates(&self, domain: &FreqDomain, span: &CpuSet) -> Candidates {
        let m = self.m;
        let Uclamp { min: mut util_min, max: mut util_max } = self.clamps;
        let mut found = Candidates { prev: None, most_spare: None };
        for &cpu in &domain.cpus {
            let usable = span.contains(cpu) && self.task.allowed.contains(cpu);
            let fits = || m.hook(Fit::Fits, |h, own| h.task_fits(m, self.id, cpu, own));
            if !usable || fits() == Fit::DoesNotFit {
                continue;
            }
            let c = m.cpu(cpu);
            let util = self.cpu_util(cpu, Some(cpu), false);
            if !c.uclamp.uclamp_rq_is_idle() {
                let queued = c.uclamp.clamps();
                util_min = queued.min.max(self.clamps.min);
                util_max = queued.max.max(self.clamps.max);
            }
            let fits = rank(c.util_fits(util, util_min, util_max));
            if fits == 0 {
                continue;
            }
            let spare = c.cpu_capacity.0.saturating_sub(util.0);
            if cpu == self.prev {
                found.prev = Some((spare, fits));
            } else if found
                .most_spare
                .is_none_or(|(_, most, best)| fits > best || (fits == best && spare > most))
            {
                found.most_spare = Some((cpu, spare, fits));
            }
        }
        found
    }

    /// [`EnergyEnv::candidates`] and [`Without::count_all`] in one go, by the short way.
    #[inline]
    fn survey(&self, span: &CpuSet, w: &mut Without<'_>) -> Candidates {
        let (m, p, domain) = (self.m, &self.p, w.domain);
        let mut found = Candidates { prev: None, most_spare: None };
        let capacity = Util(w.capacity.0);
        for &cpu in &domain.cpus {
            let (c, own) = (m.cpu(cpu), cpu == self.prev);
            let cfs = c.plain_cfs();
            // The task nowhere: its own CPU without it.
            let (busy, perf) = match own {
                true => {
                    let left = cfs.util_avg.saturating_sub(p.util_avg);
                    let runnable = cfs.runnable_avg.saturating_sub(p.runnable_avg).min(capacity);
                    let plain = left.max(cfs.util_est).min(capacity);
                    (c.plain_util(plain), c.plain_needs(plain.max(runnable), capacity).perf)
                }
                false => {
                    let kept = c.plain_kept();
                    (kept.busy, kept.needs.perf)
                }
            };
            w.busy += busy;
            w.count(cpu, perf);
            // The task there.
            if !(span.contains(cpu) && self.task.allowed.contains(cpu)) {
                continue;
            }
            let util = self.plain_joined(&cfs, own).min(capacity);
            if !fits_capacity(util, c.cpu_capacity) {
                continue;
            }
            let spare = c.cpu_capacity.0.saturating_sub(util.0);
            if own {
                found.prev = Some((spare, 1));
            } else if found.most_spare.is_none_or(|(_, most, _)| spare > most) {
                found.most_spare = Some((cpu, spare, 1));
            }
        }
        debug_assert_eq!(found, self.candidates(domain, span));
        debug_assert_eq!(w.sums(), {
            let mut by_the_long_way = Without::nothing(self, domain);
            by_the_long_way.count_all();
            by_the_long_way.sums()
        });
        found
    }
}
