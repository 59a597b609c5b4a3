//! Load balancing: who pulls which task, and when it looks.
//!
//! ```text
//! tick ─ trigger_load_balance ─┬─ jiffies ≥ rq.next_balance ─> sched_balance_domains (busy)
//!                              └─ nohz_balancer_kick ─> an idle CPU: for every idle CPU
//!                                   (misfit, ≥ 2 tasks, stale load)    sched_balance_domains (idle)
//! going idle ── newidle_balance ─> every domain, until something was pulled
//!
//! sched_balance_rq: should_we_balance → busiest group → busiest CPU → detach queued tasks,
//!                   or push the running one (active balance)
//! ```
//!
//! A domain is looked at when `balance_interval` ms (× 16 while busy) have passed since its
//! `last_balance`; failing to find work doubles the interval up to twice its minimum. A kick
//! to look is refused before `nohz.next_balance`. These gates are what delays a misfit pull.
//!
//! What a look does: [`pull`]; how groups compare: [`group`]; what caches have to do with it:
//! [`crate::mech::cache`].
//!
//! Which release brought which form, here and in `placement/` (read: 6.1.176, 6.1.192, 6.6.0, 6.8.0, 6.12.117,
//! 7.2.13, 7.3.4; with a *: also in the stable series of long-term releases; with **: in 6.1 only
//! after 6.1.176; the rows are in `risetime_kernel::features`):
//!
//! ```text
//! 6.5    tasks spread if the busiest group says so; before, if the own domain below does
//!        of several full groups the last is the busiest; before, the first
//! 6.6    two busy threads of a core are a kind of group (smt_balance); excess tasks count per core, and
//!        only idle CPUs even them out (sibling_imbalance); a CPU of an idle core is in charge first
//! 6.7    wakeups know who shares an L2; EAS has no limit of complexity (EM_MAX_COMPLEXITY)
//! 6.9    of groups whose misfit tasks weigh the same the first is the busiest; before, the last
//! 6.10   misfit is only who may use a bigger CPU; before, its CPU asked for a bigger one at each kick
//!        (check_misfit_status), and whom nobody could help counted as a failure and doubled the interval
//! 6.11 * who looks at 32 pinned tasks gives up; before, not until one might come
//! 6.14   tasks whose dequeue is delayed do not count as queued
//! 6.19 * newidle balancing throws dice (NI_RANDOM)
//!     ** a fork counts only CPUs that the task may use
//! 7.2 ** no misfit task for a thread beside a busy one (dst_core_idle); full groups of bigger CPUs are
//!        left alone before their kind is compared
//! 7.2    dice with NI_RATE; with EAS only an overutilized group is overloaded; wakeups prefer idle cores
//!        on unequal CPUs; who has waited too little stays (task_is_ineligible_on_dst_cpu)
//!        tasks of a process gather under one cache (SCHED_CACHE)
//! 7.3    siblings are preferred also below unequal capacities; misfit only where the looking CPU is
//!        bigger; an idle core is kicked first; busy threads and like CPUs give their only task
//! ```
//!
//! Leaves out: NUMA balancing (page faults: `numa_preferred_nid`), asym packing, `LBF_NEED_BREAK` (only who holds a
//! lock how long).
//! DEVIATES(balance_free): looking for tasks to pull, and moving them, takes no CPU time, and
//! `max_newidle_lb_cost` is 0 with that: however soon a CPU expects to wake (`avg_idle`), it looks, and
//! ages the load of idle CPUs. Balancing is faster by microseconds.
//! Source: kernel/sched/fair.c.

pub(crate) mod env;
mod group;
mod newidle;
mod pull;
#[cfg(test)]
mod tests;

use crate::kernel::balance::env::When;
use crate::kernel::rq::Rq;
use crate::state::hooks::Point;
use group::{fair_queued, reduced_capacity};

use crate::kernel::Kernel;
use crate::kernel::placement::idle_sibling::{is_core_idle, sched_idle_rq};
use crate::state::machine::{Machine, NohzKick};
use crate::time::queue::Ev;
use risetime_kernel::features;
use risetime_kernel::fits::{check_misfit_status, check_misfit_status_pre_6_10};
use risetime_kernel::units::{CpuId, Span};
use risetime_model::settings::{Default, Home, Int, Param, Range, keys};
use risetime_trace::Why;

pub(crate) const NI_RANDOM: Int = Int::new(Param {
    name: keys::NI_RANDOM.name(),
    doc: "newly idle CPUs look for work as often as it pays off, by dice (on in kernels from 6.19 on and in long-term ones; here off, and in the vm, so that runs can be compared; the dice follow the seed)",
    unit: "",
    range: Range::Int(0, 1),
    default: Default::Int(0),
    home: Home::Feature("NI_RANDOM"),
});

/// `busy_factor`: a busy CPU looks that much less often.
const BUSY_FACTOR: u64 = 16;

impl Rq<'_, '_> {
    /// `sched_balance_update_blocked_averages` of a CPU that is looked at by itself. While a real-time task keeps it, nothing
    /// else ages what fair tasks wait with, and makes the governor look.
    fn update_blocked_averages(&mut self) {
        self.update_blocked_groups();
        if self.update_cfs_rq() {
            self.trace_cfs();
            self.cpufreq_update_util();
        }
    }

    /// `update_nohz_stats`: ages what sleeping tasks left behind, once a jiffy. True while
    /// something is left.
    fn update_nohz_stats(&mut self) -> bool {
        let cpu = self.cpu;
        let now = self.m().jiffies();
        if !self.m().cpu(cpu).has_blocked_load {
            return false;
        }
        if now <= self.m().cpu(cpu).last_blocked_update {
            return true;
        }
        self.c().last_blocked_update = now;
        self.update_rq_clock();
        let others = self.m().cpu(cpu).rt_avg.util_avg.0 != 0 && self.update_rt(false);
        self.update_dl(false);
        let others = self.update_pressure() || others;
        self.update_blocked_groups();
        if self.update_cfs_rq() || others {
            self.trace_cfs();
            self.cpufreq_update_util();
        }
        let c = self.c();
        let left = c.cfs_avg.avg.load_avg != 0
            || c.cfs_avg.avg.util_avg.0 != 0
            || c.dl_avg.util_avg.0 != 0
            || c.rt_avg.util_avg.0 != 0
            || c.slots.pressure.as_ref().is_some_and(|p| p.is_left());
        c.has_blocked_load = left;
        left
    }

    /// Kicks an idle CPU: it leaves its idle state and does what `kick` asks.
    fn kick_ilb(&mut self, kick: NohzKick) {
        let ilb = self.cpu;
        let flags = &mut self.c().nohz_kick;
        let pending = *flags != NohzKick::default();
        *flags = NohzKick {
            stats: flags.stats | kick.stats,
            balance: flags.balance | kick.balance,
            next: flags.next | kick.next,
        };
        if pending {
            return;
        }
        let m = self.m();
        let latency = m.cpu(ilb).idle.map_or(Span(0), |idle| m.exit_latency(ilb, idle, m.now));
        self.push(self.m().now + latency, Ev::NohzBalance { cpu: ilb });
    }
}

impl Kernel<'_> {
    // ------------------------------------------------------------------ when

    /// Balances after each tick of a busy CPU.
    pub(crate) fn trigger_load_balance(&mut self, cpu: CpuId) {
        if self.m.cpu(cpu).sched_domains.is_empty() || self.m.slots.muqss.is_some() {
            return;
        }
        self.nohz_balancer_kick(cpu);
        if self.m.jiffies() >= self.m.cpu(cpu).next_balance {
            self.rq(cpu).update_blocked_averages();
            self.sched_balance_domains(cpu, When::Busy);
        }
    }

    /// Balances after a tick of an idle CPU.
    pub(crate) fn balance_on_own_tick(&mut self, cpu: CpuId) {
        let due = self.m.jiffies() >= self.m.cpu(cpu).next_balance && self.m.slots.muqss.is_none();
        if due && !self.m.cpu(cpu).sched_domains.is_empty() {
            self.rq(cpu).update_blocked_averages();
            self.sched_balance_domains(cpu, When::Idle);
        }
    }

    /// Wakes an idle CPU to balance for all idle ones, if there is reason to.
    fn nohz_balancer_kick(&mut self, cpu: CpuId) {
        if !self.m.yes(Point::Kick { cpu }, true) {
            return;
        }
        let now = self.m.jiffies();
        self.m.root.idle_cpus.remove(cpu);
        let root = &self.m.root;
        if root.idle_cpus.is_empty() {
            return;
        }
        let ages = root.has_blocked && self.m.slots.before.nohz_stats;
        let (stats, next) = (ages && now > root.next_blocked, root.needs_update);
        let due = now >= root.next_balance;
        let c = self.m.cpu(cpu);
        let asym = c.place.asym.is_some();
        let pct = c.sched_domains.first().map_or(117, |d| d.imbalance_pct);
        let balance = due
            && (c.nr_running() >= 2
                || (fair_queued(&self.m, cpu) >= 1 && reduced_capacity(&self.m, cpu, pct))
                || (asym && self.m.has_misfit(cpu))
                || (!asym && self.m.busy_cpus_of_cache(cpu) > 1));
        if balance {
            self.m.root.next_balance = now + 1;
        }
        let stats = stats || (balance && self.m.slots.before.nohz_stats);
        let kick = NohzKick { stats, balance, next };
        if kick != NohzKick::default()
            && let Some(ilb) = self.m.find_new_ilb()
        {
            self.rq(ilb).kick_ilb(kick);
        }
    }

    /// `nohz_idle_balance` on the kicked CPU.
    pub(crate) fn nohz_balance(&mut self, ilb: CpuId) {
        let kick = std::mem::take(&mut self.m.cpu_mut(ilb).nohz_kick);
        // DEVIATES(ilb_asleep): a CPU kicked to balance for the idle ones stays in its idle state in the
        // trace, and pays its exit latency again for a task that it pulls to itself. The kernel's is
        // awake by then: some 10 µs.
        if self.m.idle_cpu(ilb) && self.m.root.online.contains(ilb) {
            self.balance_idle_cpus(ilb, kick);
        }
    }

    /// `nohz_run_idle_balance`: on its way to idle a CPU ages what the idle ones hold.
    pub(crate) fn nohz_run_idle_balance(&mut self, cpu: CpuId) {
        let root = &self.m.root;
        let ages =
            root.has_blocked && self.m.slots.before.nohz_stats && self.m.slots.muqss.is_none();
        let due = ages && self.m.jiffies() >= root.next_blocked;
        if due
            && self.m.cpu(cpu).nohz_kick == NohzKick::default()
            && !self.m.cpu(cpu).sched_domains.is_empty()
        {
            self.balance_idle_cpus(cpu, NohzKick { stats: true, ..NohzKick::default() });
        }
    }

    /// `_nohz_idle_balance`: ages the load of every idle CPU, and balances for those that are due.
    fn balance_idle_cpus(&mut self, this_cpu: CpuId, kick: NohzKick) {
        let now = self.m.jiffies();
        let mut next_balance = None;
        let mut has_blocked = false;
        self.m.root.has_blocked &= !kick.stats;
        self.m.root.needs_update &= !kick.next;
        let all = self.m.root.idle_cpus;
        for cpu in all.iter_wrap(CpuId(this_cpu.0 + 1)) {
            if !self.m.idle_cpu(cpu) {
                continue;
            }
            if !self.m.idle_cpu(this_cpu) || self.m.need_resched.contains(this_cpu) {
                // The CPU that balances has got work itself: the next kick goes on.
                self.m.root.has_blocked |= kick.stats;
                self.m.root.needs_update |= kick.next;
                return;
            }
            if kick.stats {
                has_blocked |= self.rq(cpu).update_nohz_stats();
            }
            if now >= self.m.cpu(cpu).next_balance {
                self.rq(cpu).update_rq_clock();
                if kick.balance {
                    if !self.m.slots.before.nohz_stats {
                        self.rq(cpu).update_nohz_stats();
                    }
                    self.sched_balance_domains(cpu, When::Idle);
                }
            }
            let own = self.m.cpu(cpu).next_balance;
            next_balance = Some(next_balance.map_or(own, |n: u64| n.min(own)));
        }
        let latest = now + 60 * u64::from(self.m.platform.hz);
        if let Some(next) = next_balance.filter(|n| *n < latest) {
            self.m.root.next_balance = next;
        }
        if kick.stats {
            // `LOAD_AVG_PERIOD`, taken for ms.
            let period_ms = u64::from(self.m.decay.half_life());
            self.m.root.next_blocked = now + self.m.msecs_to_jiffies(period_ms);
        }
        self.m.root.has_blocked |= has_blocked;
    }

    /// `sched_balance_domains`: balances every domain that is due.
    fn sched_balance_domains(&mut self, cpu: CpuId, idle: When) {
        let mut idle = idle;
        // A CPU that runs nothing but SCHED_IDLE tasks looks as often as an idle one.
        let busy = |e: &Self, idle| idle == When::Busy && !sched_idle_rq(&e.m, cpu);
        let mut is_busy = busy(self, idle);
        let mut next_balance = u64::MAX;
        for level in 0..self.m.cpu(cpu).sched_domains.len() {
            let now = self.m.jiffies();
            let due = |e: &Self, busy| {
                e.m.cpu(cpu).sched_domains[level].last_balance
                    + e.m.balance_interval(cpu, level, busy)
            };
            if now >= due(self, is_busy) {
                let (moved, go_on) = self.sched_balance_rq(cpu, level, idle);
                if moved {
                    idle = if self.m.idle_cpu(cpu) { When::Idle } else { When::Busy };
                    is_busy = busy(self, idle);
                }
                self.m.cpu_mut(cpu).sched_domains[level].last_balance = now;
                next_balance = next_balance.min(due(self, is_busy));
                if !go_on {
                    break;
                }
            } else {
                next_balance = next_balance.min(due(self, is_busy));
            }
        }
        if next_balance != u64::MAX {
            self.m.cpu_mut(cpu).next_balance = next_balance;
        }
    }

    /// Looks for work as the CPU is about to go idle; returns whether it got some
    /// (`sched_balance_newidle`).
    pub(crate) fn newidle_balance(&mut self, cpu: CpuId) -> bool {
        if self.m.slots.muqss.is_some() {
            // MuQSS's pick has looked everywhere.
            return false;
        }
        self.rq(cpu).update_misfit_status(None);
        let c = self.m.cpu_mut(cpu);
        if !c.wake_list.is_empty() {
            // There is somebody already.
            return false;
        }
        c.idle_stamp = c.clock.clock;
        if let Some((task, from)) = self.m.vendor_pulls(cpu) {
            self.move_queued(task, from, cpu, Why::NewIdle);
            return true;
        }
        let overloaded = self.m.root.overloaded;
        if overloaded {
            self.rq(cpu).update_blocked_groups();
        }
        let levels = self.m.cpu(cpu).sched_domains.len();
        // From now on its looks are those of an idle CPU: more often.
        for level in 0..if overloaded { levels } else { levels.min(1) } {
            let next = self.m.cpu(cpu).sched_domains[level].last_balance
                + self.m.balance_interval(cpu, level, false);
            let c = self.m.cpu_mut(cpu);
            c.next_balance = c.next_balance.min(next);
            if overloaded && let Some(weight) = self.rq(cpu).newidle_dice(level) {
                let (moved, go_on) = self.sched_balance_rq(cpu, level, When::NewlyIdle);
                self.rq(cpu).newidle_looked(level, if moved { weight } else { 0 });
                if moved || !go_on || self.m.cpu(cpu).nr_running() > 0 {
                    break;
                }
            }
        }
        self.m.cpu(cpu).nr_running() > 0
    }
}

impl Machine {
    /// `check_misfit_status`, where capacities differ.
    fn has_misfit(&self, cpu: CpuId) -> bool {
        let (m, c) = (self, self.cpu(cpu));
        if m.lb_rev().has(features::CHECK_MISFIT_STATUS) {
            return check_misfit_status(c.misfit_task_load);
        }
        let biggest = m.root.online.iter().map(|c| m.cpu(c).capacity).max();
        let domain = c.place.asym.map(|level| &c.sched_domains[level]);
        let reduced = domain.is_some_and(|d| reduced_capacity(m, cpu, d.imbalance_pct));
        let biggest = biggest.unwrap_or(c.capacity);
        check_misfit_status_pre_6_10(c.misfit_task_load, c.capacity, biggest, reduced)
    }

    /// `nr_busy_cpus` of the cache that `cpu` belongs to.
    fn busy_cpus_of_cache(&self, cpu: CpuId) -> usize {
        let c = self.cpu(cpu);
        let cache = c.place.llc.map(|l| &c.sched_domains[l]);
        cache.map_or(0, |d| d.span.iter().filter(|c| !self.root.idle_cpus.contains(*c)).count())
    }

    /// `find_new_ilb`: the first idle CPU; since 7.3 of an idle core, where there is one.
    fn find_new_ilb(&self) -> Option<CpuId> {
        let m = self;
        let mut idle = m.root.idle_cpus.iter().filter(|c| m.idle_cpu(*c));
        let first = idle.next();
        if !m.rev.has(features::FIND_NEW_ILB_CORE) || !m.root.smt {
            return first;
        }
        let mut all = first.into_iter().chain(idle);
        all.find(|c| is_core_idle(m, *c)).or(first)
    }

    /// `get_sd_balance_interval`, in jiffies; a busy CPU looks one jiffy early, so that levels
    /// do not look together.
    pub(crate) fn balance_interval(&self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        let ms = self.cpu(cpu).sched_domains[level].balance_interval
            * if busy { BUSY_FACTOR } else { 1 };
        let longest = u64::from(self.platform.hz) * self.root.online.len() as u64 / 10;
        (self.msecs_to_jiffies(ms) - u64::from(busy)).min(longest).max(1)
    }
}
