//! big.LITTLE CBS: at each wakeup a server goes where it costs least power and fits.
//!
//! ```text
//! candidates   the CPU it woke on; of each island the one of which the least is active
//!              it must be in time there beside all that belong there: EDF's test, of those that sleep, too
//! cost         power of the island with it there − without it:
//!              Σ u of what is active · power at the lowest OPP that serves the island's busiest CPU
//! asks, and no candidate holds      refused
//! wakes, and none holds (a cap)     as under global EDF; so are those that wait on a CPU whose test fails
//! ```
//!
//! A server belongs to the CPU on which it woke last, and keeps its room there while it sleeps: so each has one that it can come back to,
//! and what is admitted misses nothing. By what is active alone, of which a server that sleeps has given up its part, one that wakes may
//! find no room. An OPP that has to rise costs all CPUs of the island, and that is in the difference. A server
//! that wakes before its 0-lag time stays if it fits, as its part still counts there. The power is the energy model's (`em_cpu_energy`), of the
//! OPP that schedutil would choose; of equals the CPU it woke on wins, then its island.
//!
//! On m equal CPUs every set is taken, wherever its servers have gone, of Σ u ≤ m - (m - 1)·u_max, all of what a CPU may reserve: where a server of
//! u fits nowhere, each CPU has more than 1 - u (J. López, J. Díaz, D. García, Real-Time Systems 28, 2004: reasonable allocations).
//!
//! Source: A. Mascitti, T. Cucinotta, M. Marinoni, "An adaptive, utilization-based approach to schedule real-time tasks for ARM
//! big.LITTLE architectures" (SIGBED Review 17(1), 2020); A. Mascitti, T. Cucinotta, M. Marinoni, L. Abeni, "Dynamic partitioned scheduling
//! of real-time tasks on ARM big.LITTLE architectures" (JSS 173, 2021); their simulator's `EnergyMRTKernel` (PARTSim), read, not taken from.
//!
//! DEVIATES(bl-cbs-details): theirs goes by what is active, and may be late; here those that sleep keep their room, and what has none is refused. Theirs moves servers that wait when a CPU becomes idle, too; here nobody moves between wakeups
//! where all fit, as OSPM 2023's report says. Theirs holds the sums of cores against a limit of each island at the kinds of work
//! that it measured; here the limit is the capacity. It may use more energy than theirs.

use crate::kernel::class::dl_push::select_task_rq_dl;
use crate::state::class::DlPlacement;
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::{FreqDomain, Machine};
use risetime_kernel::cpu_util::effective_cpu_util;
use risetime_kernel::deadline::DlEntity;
use risetime_kernel::features;
use risetime_kernel::schedutil::perf_within;
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_trace::Why;

pub(crate) struct BigLittleCbs;

impl DlPlacement for BigLittleCbs {
    fn about(&self) -> (&'static str, &'static str) {
        ("bl-cbs", "big.LITTLE CBS: at each wakeup where it costs least power and fits")
    }
    fn enter(&self, m: &Machine, task: TaskId, asked: &DlEntity) -> Option<CpuId> {
        // The task runs; its old reservation, if it has one, counts on its CPU.
        let had = if m.dl_counts(task) { m.dl(task).bw } else { 0 };
        Asked { m, task, prev: m.task(task).cpu, asked, had, stays: false }.cheapest()
    }
    fn adapts(&self) -> bool {
        true
    }
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed {
        let dl = m.dl(task);
        let had = if dl.non_contending { dl.bw } else { 0 };
        let stays = dl.non_contending;
        let asked = Asked { m, task, prev: m.task(task).cpu, asked: dl, had, stays };
        match asked.cheapest() {
            Some(cpu) if cpu == asked.prev => Placed { cpu, why: Why::PrevCpu },
            Some(cpu) => Placed { cpu, why: Why::Energy },
            None => select_task_rq_dl(m, task, this_cpu, effects),
        }
    }
    fn moves(&self, m: &Machine, task: TaskId, _: CpuId) -> bool {
        let own = m.task(task).cpu;
        !m.dl_fits(own, m.cpu(own).dl.this_bw, 0)
    }
}

/// A server that wakes, or is asked for.
struct Asked<'a> {
    m: &'a Machine,
    task: TaskId,
    prev: CpuId,
    /// The task's reservation, or the one that it asks for.
    asked: &'a DlEntity,
    /// Bandwidth of the task that is active on `prev` already.
    had: u64,
    /// True if the task stays on `prev` if it fits.
    stays: bool,
}

impl Asked<'_> {
    fn cheapest(&self) -> Option<CpuId> {
        let m = self.m;
        let usable = |cpu: CpuId| m.is_cpu_allowed(self.task, cpu) && self.fits(cpu);
        if usable(self.prev) && self.stays {
            return Some(self.prev);
        }
        let own = m.cpu(self.prev).domain;
        let islands = std::iter::once(own).chain((0..m.domains.len()).filter(|d| *d != own));
        let least = islands.filter_map(|domain| {
            let cpus = m.domains[domain].cpus.iter().copied();
            cpus.filter(|cpu| *cpu != self.prev && usable(*cpu)).min_by_key(|cpu| self.active(*cpu))
        });
        let all = std::iter::once(self.prev).filter(|cpu| usable(*cpu)).chain(least);
        // Of equals the first.
        all.min_by_key(|cpu| self.costs(*cpu))
    }

    /// The bandwidth that is active on `cpu` without the task.
    fn active(&self, cpu: CpuId) -> u64 {
        let own = if cpu == self.prev { self.had } else { 0 };
        self.m.cpu(cpu).dl.running_bw.saturating_sub(own)
    }

    fn fits(&self, cpu: CpuId) -> bool {
        self.m.dl_holds(cpu, self.task, self.asked)
    }

    /// The additional power of the island of `cpu` with the task there.
    fn costs(&self, cpu: CpuId) -> u64 {
        let domain = &self.m.domains[self.m.cpu(cpu).domain];
        self.power(domain, Some(cpu)).saturating_sub(self.power(domain, None))
    }

    /// The power of an island with the task on `dst` (`None`: on none of its CPUs), in units of
    /// `em_cpu_energy`.
    fn power(&self, domain: &FreqDomain, dst: Option<CpuId>) -> u64 {
        let (m, first) = (self.m, self.m.cpu(domain.cpus[0]));
        let (mut sum, mut most) = (Util(0), Util(0));
        for &cpu in &domain.cpus {
            let c = m.cpu(cpu);
            let here = if dst == Some(cpu) { self.asked.bw } else { 0 };
            let active = self.active(cpu) + here;
            let fair = m.cpu_util_cfs(cpu);
            let busy = Util(fair.0 + (active >> 10)).min(Util(c.capacity.0));
            sum += busy;
            // What frequencies know of it, from which it may be gone, or where it may come.
            let mut rq = m.rq_util_for_freq(cpu);
            let (own, counted) = (m.cpu(cpu).dl.running_bw, rq.dl_running_bw);
            rq.dl_running_bw = (counted + active).saturating_sub(own);
            let perf = if m.rev.has(features::SUGOV_EFFECTIVE_CPU_PERF) {
                let eff = effective_cpu_util(fair, &rq, c.capacity);
                let (wanted, _) = m.dvfs_util(cpu, eff.util, None);
                perf_within(wanted, eff.min, eff.max)
            } else {
                m.slots.series.room_pre_6_8(busy)
            };
            most = most.max(perf);
        }
        let total = Util(first.actual.0 * domain.cpus.len() as u64);
        let most = most.min(Util(first.capacity.0));
        domain.slots.perf_domain.energy(m.rev, most, sum.min(total), first.actual)
    }
}
