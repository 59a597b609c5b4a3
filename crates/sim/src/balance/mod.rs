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
//! Leaves out: NUMA, SMT, imbalanced groups (pinned tasks), a second target for pinned tasks,
//! `avg_idle` (a CPU that expects to wake soon does not look), NI_RANDOM.
//! DEVIATES(balance_free): looking and moving take no CPU time.
//! Source: kernel/sched/fair.c.

mod group;

use group::{
    Group, busier, fair_queued, group_stats, imbalance, pickable, reduced_capacity,
    sibling_imbalance,
};

use crate::cpuset::CpuSet;
use crate::engine::Engine;
use crate::machine::{NohzKick, State};
use crate::mutant::Mutant;
use crate::placement::fork::GroupType;
use crate::queue::Ev;
use crate::topology::sd;
use risetime_kernel::KernelRev;
use risetime_kernel::cpu_util::capacity_of;
use risetime_kernel::fits::{Fit, capacity_greater};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_trace::{Event, Why};

/// `busy_factor`: a busy CPU looks that much less often.
const BUSY_FACTOR: u64 = 16;
/// `LOAD_AVG_PERIOD` in ms: how often idle CPUs' blocked load is aged.
const BLOCKED_PERIOD_MS: u64 = 32;
/// `sysctl_sched_nr_migrate`: tasks looked at in one go.
const NR_MIGRATE: usize = 32;
/// `sysctl_sched_migration_cost`: a task that ran so recently is cache-hot.
const MIGRATION_COST: Span = Span(500_000);
/// `cache_nice_tries` of every domain here: so often, hot tasks are left alone.
const CACHE_NICE_TRIES: u32 = 1;
/// `MAX_PINNED_INTERVAL`, in ms.
const MAX_PINNED_INTERVAL: u64 = 512;

/// In which situation a CPU balances (`enum cpu_idle_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    Busy,
    Idle,
    NewlyIdle,
}

/// What is to be moved (`enum migration_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Migrate {
    Load,
    Util,
    Task,
    Misfit,
}

/// One look at one domain (`struct lb_env`).
#[derive(Clone, Copy)]
struct Env {
    dst: CpuId,
    level: usize,
    idle: When,
    /// The CPUs to pull from or count; without those whose tasks may all not come.
    cpus: CpuSet,
}

/// What [`Engine::detach_tasks`] came back with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detached {
    Some,
    None,
    /// Affinity forbids every task it has looked at (`LBF_ALL_PINNED`).
    AllPinned,
}

impl Engine<'_> {
    // ------------------------------------------------------------------ when

    /// After each tick of a busy CPU.
    pub(crate) fn trigger_load_balance(&mut self, cpu: CpuId) {
        if self.m.cpu(cpu).sched_domains.is_empty() {
            return;
        }
        self.nohz_balancer_kick(cpu);
        if self.m.jiffies() >= self.m.cpu(cpu).next_balance {
            self.sched_balance_domains(cpu, When::Busy);
        }
    }

    /// After a tick of an idle CPU.
    pub(crate) fn balance_on_own_tick(&mut self, cpu: CpuId) {
        let due = self.m.jiffies() >= self.m.cpu(cpu).next_balance;
        if due && !self.m.cpu(cpu).sched_domains.is_empty() {
            // `sched_balance_update_blocked_averages`
            if self.update_cfs_rq(cpu) {
                self.trace_cfs(cpu);
                self.cpufreq_update_util(cpu, false);
            }
            self.sched_balance_domains(cpu, When::Idle);
        }
    }

    /// Wakes an idle CPU to balance for all idle ones, if there is reason to.
    fn nohz_balancer_kick(&mut self, cpu: CpuId) {
        if self.m.is(Mutant::NoNohzKick) {
            return;
        }
        let now = self.m.jiffies();
        self.m.root.idle_cpus.remove(cpu);
        let root = &self.m.root;
        if root.idle_cpus.is_empty() {
            return;
        }
        let (stats, next) = (root.has_blocked && now > root.next_blocked, root.needs_update);
        let due = now >= root.next_balance;
        let c = self.m.cpu(cpu);
        let asym = c.place.asym.is_some();
        let pct = c.sched_domains.first().map_or(117, |d| d.imbalance_pct);
        let balance = due
            && (c.nr_running() >= 2
                || (c.cfs.nr_runnable() >= 1 && reduced_capacity(&self.m, cpu, pct))
                || (asym && c.misfit_task_load != 0)
                || (!asym && self.busy_cpus_of_cache(cpu) > 1));
        if balance {
            self.m.root.next_balance = now + 1;
        }
        let kick = NohzKick { stats: stats || balance, balance, next };
        if kick != NohzKick::default() {
            self.kick_ilb(kick);
        }
    }

    /// `nr_busy_cpus` of the cache that `cpu` belongs to.
    fn busy_cpus_of_cache(&self, cpu: CpuId) -> usize {
        let c = self.m.cpu(cpu);
        let cache = c.place.llc.map(|l| &c.sched_domains[l]);
        cache.map_or(0, |d| d.span.iter().filter(|c| !self.m.root.idle_cpus.contains(*c)).count())
    }

    /// The first idle CPU leaves its idle state and does what it is kicked for.
    fn kick_ilb(&mut self, kick: NohzKick) {
        let Some(ilb) = self.m.root.idle_cpus.iter().find(|c| self.m.idle_cpu(*c)) else { return };
        let flags = &mut self.m.cpu_mut(ilb).nohz_kick;
        let pending = *flags != NohzKick::default();
        *flags = NohzKick {
            stats: flags.stats | kick.stats,
            balance: flags.balance | kick.balance,
            next: flags.next | kick.next,
        };
        if pending {
            return;
        }
        let latency = self.m.cpu(ilb).idle.map_or(Span(0), |idle| self.exit_latency(ilb, idle));
        self.q.push(self.m.now + latency, Ev::NohzBalance { cpu: ilb });
    }

    /// `nohz_idle_balance` on the kicked CPU.
    pub(crate) fn nohz_balance(&mut self, ilb: CpuId) {
        let kick = std::mem::take(&mut self.m.cpu_mut(ilb).nohz_kick);
        // DEVIATES(ilb_asleep): the CPU stays in its idle state meanwhile, and what it pulls to
        // itself pays the exit latency like what it pulls for others. The kernel's is awake then,
        // so that the number of the CPU decides over some 10 µs.
        if self.m.idle_cpu(ilb) {
            self.balance_idle_cpus(ilb, kick);
        }
    }

    /// `nohz_run_idle_balance`: on its way to idle a CPU ages what the idle ones hold.
    pub(crate) fn nohz_run_idle_balance(&mut self, cpu: CpuId) {
        let root = &self.m.root;
        let due = root.has_blocked && self.m.jiffies() >= root.next_blocked;
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
        for cpu in self.m.root.idle_cpus.iter_wrap(CpuId(this_cpu.0 + 1)) {
            if !self.m.idle_cpu(cpu) {
                continue;
            }
            if !self.m.idle_cpu(this_cpu) || self.need_resched.contains(this_cpu) {
                // It has got work itself: the next kick goes on.
                self.m.root.has_blocked |= kick.stats;
                self.m.root.needs_update |= kick.next;
                return;
            }
            if kick.stats {
                has_blocked |= self.update_nohz_stats(cpu);
            }
            if now >= self.m.cpu(cpu).next_balance {
                self.update_rq_clock(cpu);
                if kick.balance {
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
            self.m.root.next_blocked = now + self.m.msecs_to_jiffies(BLOCKED_PERIOD_MS);
        }
        self.m.root.has_blocked |= has_blocked;
    }

    /// `update_nohz_stats`: ages what sleeping tasks left behind, once a jiffy. True while
    /// something is left.
    fn update_nohz_stats(&mut self, cpu: CpuId) -> bool {
        let now = self.m.jiffies();
        if !self.m.cpu(cpu).has_blocked_load {
            return false;
        }
        if now <= self.m.cpu(cpu).last_blocked_update {
            return true;
        }
        self.m.cpu_mut(cpu).last_blocked_update = now;
        self.update_rq_clock(cpu);
        self.update_dl(cpu, false);
        if self.update_cfs_rq(cpu) {
            self.trace_cfs(cpu);
            self.cpufreq_update_util(cpu, false);
        }
        let c = self.m.cpu_mut(cpu);
        let left = c.cfs_avg.avg.load_avg != 0
            || c.cfs_avg.avg.util_avg.0 != 0
            || c.dl_avg.util_avg.0 != 0;
        c.has_blocked_load = left;
        left
    }

    /// The CPU's tick has stopped: it takes part in nohz balancing.
    pub(crate) fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        self.m.cpu_mut(cpu).has_blocked_load = true;
        if !self.m.cpu(cpu).sched_domains.is_empty() {
            self.m.root.needs_update |= !self.m.root.idle_cpus.contains(cpu);
            self.m.root.idle_cpus.insert(cpu);
        }
        self.m.root.has_blocked = true;
    }

    /// `get_sd_balance_interval`, in jiffies; a busy CPU looks one jiffy early, so that levels
    /// do not look together.
    fn balance_interval(&self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        let ms = self.m.cpu(cpu).sched_domains[level].balance_interval
            * if busy { BUSY_FACTOR } else { 1 };
        let longest = u64::from(self.m.platform.hz) * self.m.cpus.len() as u64 / 10;
        (self.m.msecs_to_jiffies(ms) - u64::from(busy)).min(longest).max(1)
    }

    /// `sched_balance_domains`: balances every domain that is due.
    fn sched_balance_domains(&mut self, cpu: CpuId, idle: When) {
        let mut idle = idle;
        let mut next_balance = u64::MAX;
        for level in 0..self.m.cpu(cpu).sched_domains.len() {
            let now = self.m.jiffies();
            let due = |e: &Self, idle| {
                e.m.cpu(cpu).sched_domains[level].last_balance
                    + e.balance_interval(cpu, level, idle == When::Busy)
            };
            if now >= due(self, idle) {
                let (moved, go_on) = self.sched_balance_rq(cpu, level, idle);
                if moved {
                    idle = if self.m.idle_cpu(cpu) { When::Idle } else { When::Busy };
                }
                self.m.cpu_mut(cpu).sched_domains[level].last_balance = now;
                next_balance = next_balance.min(due(self, idle));
                if !go_on {
                    break;
                }
            } else {
                next_balance = next_balance.min(due(self, idle));
            }
        }
        if next_balance != u64::MAX {
            self.m.cpu_mut(cpu).next_balance = next_balance;
        }
    }

    /// A CPU is about to go idle and looks for work; true if it got some (`sched_balance_newidle`).
    pub(crate) fn newidle_balance(&mut self, cpu: CpuId) -> bool {
        self.update_misfit_status(cpu, None);
        let overloaded = self.m.root.overloaded;
        let levels = self.m.cpu(cpu).sched_domains.len();
        // From now on its looks are those of an idle CPU: more often.
        for level in 0..if overloaded { levels } else { levels.min(1) } {
            let next = self.m.cpu(cpu).sched_domains[level].last_balance
                + self.balance_interval(cpu, level, false);
            let c = self.m.cpu_mut(cpu);
            c.next_balance = c.next_balance.min(next);
            if overloaded {
                let (moved, go_on) = self.sched_balance_rq(cpu, level, When::NewlyIdle);
                if moved || !go_on || self.m.cpu(cpu).nr_running() > 0 {
                    break;
                }
            }
        }
        self.m.cpu(cpu).nr_running() > 0
    }

    // ------------------------------------------------------------------ what

    /// `sched_balance_rq`: one domain, for `dst`. Returns whether tasks came, and whether wider
    /// domains should be looked at (not where another CPU of the group is in charge).
    fn sched_balance_rq(&mut self, dst: CpuId, level: usize, idle: When) -> (bool, bool) {
        if self.is_given() {
            return (false, false);
        }
        let mut env = Env { dst, level, idle, cpus: self.m.cpu(dst).sched_domains[level].span };
        if !self.should_we_balance(&env) {
            self.balanced(&env, None, false);
            return (false, false);
        }
        let moved = loop {
            let Some((group, kind, imbalance)) = self.find_src_group(&env) else {
                break self.balanced(&env, None, false);
            };
            let Some(src) = self.find_src_rq(&env, &group, kind, imbalance) else {
                break self.balanced(&env, Some(kind), false);
            };
            match self.detach_tasks(&env, src, kind, imbalance) {
                Detached::Some => {
                    self.m.cpu_mut(dst).sched_domains[level].nr_balance_failed = 0;
                    self.unbalanced(&env);
                    break true;
                }
                Detached::None => break self.not_moved(&env, src, kind),
                Detached::AllPinned => {
                    // On to the next busiest, if any is left outside the own group.
                    env.cpus.remove(src);
                    let own = self.m.cpu(dst).sched_domains[level].local().span;
                    if env.cpus.iter().all(|c| own.contains(c)) {
                        break self.balanced(&env, Some(kind), true);
                    }
                }
            }
        };
        (moved, true)
    }

    /// There was something to move, but it did not move: the running task may have to. Always
    /// false.
    fn not_moved(&mut self, env: &Env, src: CpuId, kind: Migrate) -> bool {
        if env.idle != When::NewlyIdle && kind != Migrate::Misfit {
            self.m.cpu_mut(env.dst).sched_domains[env.level].nr_balance_failed += 1;
        }
        if self.need_active_balance(env, src, kind) && !self.active_balance(env, src, kind) {
            self.back_off(env, Some(kind), false);
        } else {
            self.unbalanced(env);
        }
        false
    }

    /// There is work to move: look again soon.
    fn unbalanced(&mut self, env: &Env) {
        let d = &mut self.m.cpu_mut(env.dst).sched_domains[env.level];
        d.balance_interval = d.min_interval();
    }

    /// Nothing to move. Always false.
    fn balanced(&mut self, env: &Env, kind: Option<Migrate>, all_pinned: bool) -> bool {
        self.m.cpu_mut(env.dst).sched_domains[env.level].nr_balance_failed = 0;
        self.back_off(env, kind, all_pinned);
        false
    }

    /// The next look comes later.
    fn back_off(&mut self, env: &Env, kind: Option<Migrate>, all_pinned: bool) {
        if env.idle == When::NewlyIdle || kind == Some(Migrate::Misfit) {
            return;
        }
        let d = &mut self.m.cpu_mut(env.dst).sched_domains[env.level];
        if d.balance_interval < if all_pinned { MAX_PINNED_INTERVAL } else { 2 * d.min_interval() }
        {
            d.balance_interval *= 2;
        }
    }

    /// Only one CPU of a group balances it: the first idle one, else the first.
    fn should_we_balance(&self, env: &Env) -> bool {
        if env.idle == When::NewlyIdle {
            return self.m.cpu(env.dst).nr_running() == 0;
        }
        let local = &self.m.cpu(env.dst).sched_domains[env.level].local().mask;
        let in_charge = local.iter().find(|c| self.m.idle_cpu(*c)).or(local.lowest());
        in_charge == Some(env.dst)
    }

    /// `sched_balance_find_src_group` and `calculate_imbalance`.
    fn find_src_group(&mut self, env: &Env) -> Option<(CpuSet, Migrate, u64)> {
        let domain = &self.m.cpu(env.dst).sched_domains[env.level];
        let groups: Vec<Group> = domain
            .groups()
            .enumerate()
            .map(|(i, g)| group_stats(&self.m, env, domain, g, i == 0))
            .collect();
        let (top, asym, share_llc, pct) = (
            env.level + 1 == self.m.cpu(env.dst).sched_domains.len(),
            domain.has(sd::ASYM_CPUCAPACITY),
            domain.has(sd::SHARE_LLC),
            domain.imbalance_pct,
        );
        self.update_root(&groups, top);
        let (local, others) = groups.split_first()?;
        let mut busiest: Option<&Group> = None;
        for g in others {
            if pickable(&self.m, env.dst, asym, local, g) && busiest.is_none_or(|b| busier(g, b)) {
                busiest = Some(g);
            }
        }
        let busiest = busiest?;
        if busiest.kind == GroupType::Misfit {
            // On CPUs alike it is a CPU of which other classes take a part.
            return Some(if asym {
                (busiest.cpus, Migrate::Misfit, 1)
            } else {
                (busiest.cpus, Migrate::Load, busiest.misfit_load)
            });
        }
        if self.m.root.energy_aware && !self.m.root.overutilized {
            return None;
        }
        if local.kind > busiest.kind {
            return None;
        }
        let total_load: u64 = groups.iter().map(|g| g.load).sum();
        let total_capacity: u64 = groups.iter().map(|g| g.capacity).sum();
        let domain_avg = total_load * 1024 / total_capacity.max(1);
        if local.kind == GroupType::Overloaded
            && (local.avg_load >= busiest.avg_load
                || local.avg_load >= domain_avg
                || 100 * busiest.avg_load <= pct * local.avg_load)
        {
            return None;
        }
        let prefer_sibling = busiest.flags & sd::PREFER_SIBLING != 0;
        let forced = prefer_sibling
            && local.kind == GroupType::HasSpare
            && sibling_imbalance(env.idle, busiest, local) > 1;
        if !forced && busiest.kind != GroupType::Overloaded {
            let one_cpu = busiest.weight == 1;
            if env.idle == When::Busy
                || (!one_cpu && local.idle_cpus <= busiest.idle_cpus + 1)
                || busiest.fair_queued == 1
            {
                return None;
            }
        }
        let (kind, imbalance) =
            imbalance(local, busiest, env.idle, share_llc, prefer_sibling, domain_avg);
        (imbalance > 0).then_some((busiest.cpus, kind, imbalance))
    }

    /// The flags of the root domain: both refreshed when its widest domain is looked at, by a
    /// smaller one overutilized only set.
    fn update_root(&mut self, groups: &[Group], top: bool) {
        let overutilized = groups.iter().any(|g| g.overutilized);
        if top {
            // The own group's misfit tasks do not count: it cannot pull from itself.
            self.m.root.overloaded = groups.iter().any(|g| g.two_on_a_cpu || g.misfit_load != 0);
            self.set_overutilized(overutilized);
        } else if overutilized {
            self.set_overutilized(true);
        }
    }

    /// `sched_balance_find_src_rq`.
    fn find_src_rq(
        &self,
        env: &Env,
        group: &CpuSet,
        kind: Migrate,
        imbalance: u64,
    ) -> Option<CpuId> {
        let m = &self.m;
        let asym = m.cpu(env.dst).sched_domains[env.level].has(sd::ASYM_CPUCAPACITY);
        let pct = m.cpu(env.dst).sched_domains[env.level].imbalance_pct;
        // (value, per what) of the best so far: compared as fractions where it is a load.
        let mut best: Option<(u64, u64, CpuId)> = None;
        for cpu in group.iter() {
            let (c, queued) = (m.cpu(cpu), fair_queued(m, cpu));
            let bigger = capacity_greater(m.capacity_of(env.dst), m.capacity_of(cpu));
            if queued == 0 || (asym && !bigger && queued == 1) {
                continue;
            }
            let load = c.cfs_avg.avg.load_avg;
            let (value, per) = match kind {
                Migrate::Load
                    if queued == 1 && load > imbalance && !reduced_capacity(m, cpu, pct) =>
                {
                    continue;
                }
                Migrate::Load => (load, c.cpu_capacity.0),
                Migrate::Util if queued <= 1 => continue,
                Migrate::Util => (m.cpu_util_cfs_boost(cpu).0, 1),
                Migrate::Task => (queued as u64, 1),
                Migrate::Misfit => (c.misfit_task_load, 1),
            };
            if best.map_or(value > 0, |(v, p, _)| value * p > v * per) {
                best = Some((value, per, cpu));
            }
        }
        best.map(|(_, _, cpu)| cpu)
    }

    /// `detach_tasks` and `attach_tasks`: moves queued tasks, those that waited longest first,
    /// until the imbalance is gone.
    fn detach_tasks(&mut self, env: &Env, src: CpuId, kind: Migrate, imbalance: u64) -> Detached {
        if self.m.cpu(src).nr_running() <= 1 {
            return Detached::None;
        }
        self.update_rq_clock(src);
        let failed = self.m.cpu(env.dst).sched_domains[env.level].nr_balance_failed.min(63);
        let mut waiting: Vec<TaskId> = self.m.cpu(src).cfs.iter().map(|e| e.id).collect();
        waiting.sort_by_key(|t| self.m.task(*t).listed);
        waiting.truncate(NR_MIGRATE.min(self.m.cpu(src).nr_running()));
        let mut left = imbalance as i64;
        let mut result = Detached::AllPinned;
        for task in waiting {
            if env.idle != When::Busy && self.m.cpu(src).nr_running() <= 1 {
                break;
            }
            self.list(task);
            let migrates = self.can_migrate(env, src, task, failed);
            if migrates.is_some() && result == Detached::AllPinned {
                result = Detached::None;
            }
            let t = self.m.task(task);
            let share = match kind {
                _ if migrates != Some(true) => continue,
                Migrate::Load => t.avg.load_avg.max(1),
                Migrate::Util => self.m.task_util_est(task).0,
                Migrate::Task => 1,
                Migrate::Misfit if self.m.task_fits(task, src) == Fit::Fits => continue,
                Migrate::Misfit => imbalance,
            };
            if matches!(kind, Migrate::Load | Migrate::Util) && (share >> failed) as i64 > left {
                continue;
            }
            left -= share as i64;
            result = Detached::Some;
            self.move_queued(task, src, env.dst, why(kind, env.idle));
            if env.idle == When::NewlyIdle || left <= 0 {
                break;
            }
        }
        result
    }

    /// `can_migrate_task`; `None`: its affinity forbids it.
    fn can_migrate(&self, env: &Env, src: CpuId, task: TaskId, failed: u32) -> Option<bool> {
        let (t, from) = (self.m.task(task), self.m.cpu(src));
        // DEVIATES(lb_delayed): the kernel may move a task asleep with its dequeue delayed along
        // with its load; here it stays until it wakes or leaves.
        if t.state != State::Runnable {
            return None;
        }
        let prefers_eligible = self.m.rev >= KernelRev::V7_2;
        if prefers_eligible
            && failed == 0
            && self.m.cpu(env.dst).cfs.nr_queued() > 0
            && !from.cfs.entity_eligible(task)
        {
            return None;
        }
        if !t.allowed.contains(env.dst) {
            return None;
        }
        let entity = from.cfs.get(task)?;
        let ran = from.clock.clock_task.0.wrapping_sub(entity.exec_start);
        let hot = ran < MIGRATION_COST.0 && failed <= CACHE_NICE_TRIES;
        Some(from.curr != Some(task) && !hot && !self.stays(task))
    }

    /// `need_active_balance`: shall the running task be pushed?
    fn need_active_balance(&self, env: &Env, src: CpuId, kind: Migrate) -> bool {
        let d = &self.m.cpu(env.dst).sched_domains[env.level];
        let stubborn = kind == Migrate::Task && d.nr_balance_failed > CACHE_NICE_TRIES + 2;
        let relief = env.idle != When::Busy
            && fair_queued(&self.m, src) == 1
            && reduced_capacity(&self.m, src, d.imbalance_pct)
            && self.m.capacity_of(src).0 * d.imbalance_pct < self.m.capacity_of(env.dst).0 * 100;
        stubborn || relief || kind == Migrate::Misfit
    }

    /// `active_load_balance_cpu_stop`: the stopper takes the CPU from the running task and moves
    /// it. False if its affinity forbids that.
    fn active_balance(&mut self, env: &Env, src: CpuId, kind: Migrate) -> bool {
        let Some(task) = self
            .m
            .cpu(src)
            .curr
            .filter(|t| self.is_fair(*t) && self.m.task(*t).state == State::Runnable)
        else {
            return true;
        };
        if !self.m.task(task).allowed.contains(env.dst) {
            return false;
        }
        self.m.cpu_mut(env.dst).sched_domains[env.level].nr_balance_failed = 0;
        self.move_queued(task, src, env.dst, why(kind, When::Idle));
        true
    }

    /// The task becomes the head of its runqueue's list (`rq->cfs_tasks`).
    pub(crate) fn list(&mut self, task: TaskId) {
        self.listed += 1;
        self.m.task_mut(task).listed = self.listed;
    }

    /// `update_cpu_capacity`: what rt, dl and irq leave of the CPU.
    pub(crate) fn update_cpu_capacity(&mut self, cpu: CpuId) {
        let capacity =
            capacity_of(self.m.rev, self.m.cpu(cpu).capacity, &self.m.rq_util(cpu), 0, 0);
        let before = std::mem::replace(&mut self.m.cpu_mut(cpu).cpu_capacity, capacity);
        if before != capacity {
            self.emit(Event::CpuCapacity { cpu, capacity });
        }
    }
}

fn why(kind: Migrate, idle: When) -> Why {
    match (kind, idle) {
        (Migrate::Misfit, _) => Why::Misfit,
        (_, When::NewlyIdle) => Why::NewIdle,
        _ => Why::Balance,
    }
}
