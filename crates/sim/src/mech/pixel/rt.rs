//! Places of real-time tasks under the Pixel modules, and the task of a hint session that an idle
//! CPU pulls.
//!
//! ```text
//!  a synchronous real-time waker   its own CPU, if the task fits and no thread of a session waits there
//!  else                            of the CPUs of the lowest priority those that fit and are not too full, else
//!                                  those that fit, else by their capacity alone; of these the least important,
//!                                  the least busy (an idle one is 0), the shallowest, the smallest one
//!  an idle CPU                     from a CPU with two threads of sessions or more the oldest that waits, first
//!                                  one that does not fit there
//! ```
//!
//! `DEVIATES(pixel-rt-util)`: the modules track a util of each real-time task, which is 0 here.
//! Effect: a busy real-time task without `uclamp_min` fits a small CPU, where a phone would take a
//! bigger one.
//!
//! Leaves out: CPUs whose cluster is powered down, `cpu_skip_mask_rt`, softirqs, the tick's look
//! for a CPU on which the task fits. Source: rt.c, fair.c:sched_newidle_balance_pixel_mod of the
//! modules.

use crate::kernel::placement::idle_sibling::sched_idle_rq;
use crate::mech::pixel::state::Vendor;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::{Placed, Waker};
use crate::state::machine::Machine;
use risetime_kernel::rt::CpuPri;
use risetime_kernel::uclamp::Uclamp;
use risetime_kernel::units::{CpuId, TaskId, Util};
use risetime_trace::Why;

/// Facts about a CPU for a real-time task.
struct Seen {
    cpu: CpuId,
    fits: bool,
    fits_by_capacity: bool,
    full: bool,
    importance: u64,
    util: u64,
    exit_us: u64,
    capacity: u64,
}

/// Importance of a CPU without clamps (`DEFAULT_IMPRATANCE_THRESHOLD`).
const UNIMPORTANT: u64 = 1024;

impl Machine {
    /// Returns the CPUs of the lowest priority level below the task's, fitting or not
    /// (`cpupri_find_fitness` without a rule of fitness).
    fn lowest_cpus(&self, task: TaskId) -> CpuSet {
        let own = CpuPri::Rt(self.rt_rank(task));
        let allowed = self.task(task).allowed.and(&self.root.online);
        let below = || allowed.iter().filter(|cpu| self.cpupri(*cpu) < own);
        let lowest = below().map(|cpu| self.cpupri(cpu)).min();
        below().filter(|cpu| Some(self.cpupri(*cpu)) == lowest).collect()
    }

    fn seen_by_rt(&self, vendor: &Vendor, cpu: CpuId, clamps: Uclamp) -> Seen {
        let c = self.cpu(cpu);
        let (idle, gives_way) = (self.idle_cpu(cpu), sched_idle_rq(self, cpu));
        let states = &self.platform.domains[c.domain].idle;
        let state = c.idle.and_then(|idle| idle.state).and_then(|i| states.get(i as usize));
        let exit = state.filter(|_| idle && !gives_way).map_or(1, |s| s.exit_latency.0 / 1000);
        let cfs = self.vendor_util_cfs(vendor, cpu).0.min(self.capacity_of(cpu).0);
        let util = Util(cfs + self.rq_util(cpu).rt.0);
        let biggest = vendor.cluster_starts.get(2).is_some_and(|start| cpu >= *start);
        let queued = c.uclamp.clamps();
        let fits = |util, clamps| c.slots.pixel.fits(util, clamps, c.capacities()).unwrap_or(true);
        Seen {
            cpu,
            fits: fits(Util(0), clamps),
            fits_by_capacity: c.capacity.0 >= clamps.min.0.min(clamps.max.0) || biggest,
            full: !fits(util, queued),
            importance: if gives_way { 0 } else { queued.min.0 + queued.max.0 },
            util: if idle { 0 } else { util.0 },
            exit_us: exit,
            capacity: c.capacity.0,
        }
    }

    /// `find_lowest_rq`: the best CPU, and those as unimportant behind it.
    pub(crate) fn vendor_lowest_rqs(
        &self,
        vendor: &Vendor,
        task: TaskId,
        clamps: Uclamp,
    ) -> Vec<CpuId> {
        let seen: Vec<Seen> =
            self.lowest_cpus(task).iter().map(|cpu| self.seen_by_rt(vendor, cpu, clamps)).collect();
        let rules: [fn(&Seen) -> bool; 4] = [
            |s| s.fits && !s.full,
            |s| s.fits,
            |s| s.fits_by_capacity && !s.full,
            |s| s.fits_by_capacity,
        ];
        let Some(rule) = rules.iter().find(|rule| seen.iter().any(rule)) else {
            return seen.last().map(|s| s.cpu).into_iter().collect();
        };
        let mut best: Vec<&Seen> = seen.iter().filter(|s| rule(s)).collect();
        let prev = self.task(task).cpu;
        // At a full tie a later CPU wins, but not over the previous one.
        let order = |s: &&Seen| {
            let last = if s.cpu == prev { 0 } else { u64::from(u32::MAX - s.cpu.0) };
            (s.importance, s.util, s.exit_us, s.capacity, last)
        };
        best.sort_by_key(order);
        let least = best.first().map_or(0, |s| s.importance);
        best.iter().filter(|s| s.importance == least).map(|s| s.cpu).collect()
    }

    /// `rvh_select_task_rq_rt_pixel_mod`.
    pub(crate) fn vendor_select_rt(&self, vendor: &Vendor, task: TaskId, waker: Waker) -> Placed {
        let (this, prev) = (waker.cpu, self.task(task).cpu);
        let mut clamps = self.task(task).clamps();
        let rank = self.rt_rank(task);
        let below = |cpu: CpuId| self.cpu(cpu).rt.first().is_none_or(|(rt, _)| rank > rt);
        let honours = waker.sync
            && self.cpu(this).curr.is_some_and(|curr| self.class_of(curr).is_real_time())
            && self.cpu(this).rt.len() <= 2
            && self.cpu(this).rt.iter().nth(1).is_none_or(|(next, _)| rank >= next);
        let allowed = self.is_cpu_allowed(task, this);
        if honours && allowed && self.waiting_adpf(vendor, this) == 0 {
            let seen = self.seen_by_rt(vendor, this, clamps);
            if seen.fits_by_capacity {
                return Placed { cpu: this, why: Why::WakeAffine };
            }
        }
        if waker.sync && vendor.cluster_starts.get(1).is_some_and(|start| this >= *start) {
            clamps.min = clamps.min.max(Util(vendor.smallest.0 + 1));
        }
        let target = self.vendor_lowest_rqs(vendor, task, clamps).into_iter().find(|c| below(*c));
        match target {
            Some(cpu) if cpu != prev => Placed { cpu, why: Why::LowestRq },
            _ => self.within_allowed(task, Placed { cpu: prev, why: Why::PrevCpu }),
        }
    }

    /// `num_adpf_tasks`: the queued fair threads of sessions, running or not.
    fn waiting_adpf(&self, vendor: &Vendor, cpu: CpuId) -> usize {
        if vendor.adpf.is_empty() {
            return 0;
        }
        self.fair_queued(cpu).filter(|(task, _)| vendor.is_adpf(*task)).count()
    }

    /// `sched_newidle_balance_pixel_mod`: the thread of a session that `this` pulls as it goes
    /// idle, and from where.
    pub(crate) fn vendor_pulls(&self, this: CpuId) -> Option<(TaskId, CpuId)> {
        let vendor = self.vendor().filter(|v| !v.adpf.is_empty())?;
        let others = self.root.online.iter().filter(|cpu| *cpu != this);
        others.filter_map(|cpu| Some((self.detaches(vendor, cpu, this)?, cpu))).next()
    }

    /// `detach_important_task`.
    fn detaches(&self, vendor: &Vendor, from: CpuId, to: CpuId) -> Option<TaskId> {
        let curr = self.cpu(from).curr?;
        let busy = self.waiting_adpf(vendor, from) > 1 && !sched_idle_rq(self, from);
        if !busy || self.prio(curr) < 100 || self.cpu_importance(from) <= UNIMPORTANT {
            return None;
        }
        let waits = |task: &TaskId| {
            vendor.is_adpf(*task) && *task != curr && self.is_cpu_allowed(*task, to)
        };
        let mut queued: Vec<TaskId> = self.fair_queued(from).map(|(task, _)| task).collect();
        queued.retain(waits);
        queued.sort_by_key(|task| self.task(*task).listed);
        let fits =
            |task: TaskId, cpu| self.vendor_task_fits(vendor, task, cpu, self.task(task).clamps());
        queued.retain(|task| fits(*task, to));
        queued.iter().find(|task| !fits(**task, from)).or(queued.last()).copied()
    }
}
