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
//! A domain is looked at when `balance_interval` jiffies (× 16 while busy) have passed since
//! its `last_balance`; failing to find work doubles the interval up to twice its minimum. A
//! kick is refused before `nohz.next_balance`. These gates are what delays a misfit pull.
//!
//! Leaves out: NUMA, SMT, imbalanced groups (pinned tasks), cache-hot tasks, NI_RANDOM, the
//! newidle cost limit. DEVIATES(balance_free): looking and moving take no CPU time.
//! Source: kernel/sched/fair.c.

use crate::cpuset::CpuSet;
use crate::engine::Engine;
use crate::machine::{Machine, State};
use crate::placement::fork::{GroupLoad, GroupType, classify};
use crate::queue::Ev;
use crate::topology::SchedDomain;
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

/// In which situation a CPU balances (`enum cpu_idle_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Idle {
    Not,
    Idle,
    NewIdle,
}

/// What is to be moved (`enum migration_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Migrate {
    Load,
    Util,
    Task,
    Misfit,
}

/// A group's load (`struct sg_lb_stats`).
struct Group {
    cpus: CpuSet,
    kind: GroupType,
    load: u64,
    util: u64,
    capacity: u64,
    running: usize,
    fair_queued: usize,
    idle_cpus: usize,
    misfit_load: u64,
    avg_load: u64,
    max_capacity: u64,
    min_capacity: u64,
}

impl Engine<'_> {
    // ------------------------------------------------------------------ when

    /// After each tick of a busy CPU.
    pub(crate) fn trigger_load_balance(&mut self, cpu: CpuId) {
        if self.m.cpu(cpu).sched_domains.is_empty() {
            return;
        }
        if self.m.jiffies() >= self.m.cpu(cpu).next_balance {
            self.sched_balance_domains(cpu, Idle::Not);
        }
        self.nohz_balancer_kick(cpu);
    }

    /// Wakes an idle CPU to balance for all idle ones, if there is reason to.
    fn nohz_balancer_kick(&mut self, cpu: CpuId) {
        let now = self.m.jiffies();
        self.m.root.idle_cpus.remove(cpu);
        let root = &self.m.root;
        let stats = root.has_blocked && now > root.next_blocked;
        if root.idle_cpus.is_empty() {
            return;
        }
        let due = now >= root.next_balance;
        let c = self.m.cpu(cpu);
        let asym = c.sched_domains.iter().any(|d| d.asym_full);
        let balance = due
            && (c.nr_running() >= 2
                || (c.cfs.nr_runnable() >= 1 && self.reduced_capacity(cpu))
                || (asym && c.misfit_task_load != 0)
                || (!asym && self.busy_cpus_of_cache(cpu) > 1));
        if stats || balance {
            self.kick_ilb(balance);
        }
    }

    /// `check_cpu_capacity`: other classes take noticeably much of the CPU.
    fn reduced_capacity(&self, cpu: CpuId) -> bool {
        let c = self.m.cpu(cpu);
        c.sched_domains.first().is_some_and(|d| c.cpu_capacity.0 * d.imbalance_pct() < c.capacity.0 * 100)
    }

    /// `nr_busy_cpus` of the cache that `cpu` belongs to.
    fn busy_cpus_of_cache(&self, cpu: CpuId) -> usize {
        let cache = self.m.cpu(cpu).sched_domains.iter().rev().find(|d| d.share_llc);
        cache.map_or(0, |d| d.span.iter().filter(|c| !self.m.root.idle_cpus.contains(*c)).count())
    }

    /// The first idle CPU leaves its idle state and balances (`NOHZ_BALANCE_KICK`; without
    /// `balance` only the load of idle CPUs is aged, `NOHZ_STATS_KICK`).
    fn kick_ilb(&mut self, balance: bool) {
        let Some(ilb) = self.m.root.idle_cpus.iter().find(|c| self.m.idle_cpu(*c)) else { return };
        if std::mem::replace(&mut self.m.cpu_mut(ilb).nohz_kicked, true) {
            return;
        }
        self.m.cpu_mut(ilb).nohz_balance_kick = balance;
        let latency = self.m.cpu(ilb).idle.map_or(Span(0), |idle| self.exit_latency(ilb, idle));
        self.q.push(self.m.now + latency, Ev::NohzBalance { cpu: ilb });
    }

    /// `nohz_idle_balance` on the kicked CPU.
    pub(crate) fn nohz_balance(&mut self, ilb: CpuId) {
        let c = self.m.cpu_mut(ilb);
        c.nohz_kicked = false;
        let balance = c.nohz_balance_kick;
        if self.m.idle_cpu(ilb) {
            self.balance_idle_cpus(ilb, balance);
        }
    }

    /// `_nohz_idle_balance`: ages the load of every idle CPU, and balances for those that are due.
    fn balance_idle_cpus(&mut self, this_cpu: CpuId, balance: bool) {
        let now = self.m.jiffies();
        let mut next_balance = None;
        let mut has_blocked = false;
        self.m.root.has_blocked = false;
        for cpu in self.m.root.idle_cpus.iter_wrap(CpuId(this_cpu.0 + 1)) {
            if !self.m.idle_cpu(cpu) {
                continue;
            }
            if !self.m.idle_cpu(this_cpu) || self.need_resched.contains(this_cpu) {
                // It has got work itself: the next kick goes on.
                self.m.root.has_blocked = true;
                return;
            }
            has_blocked |= self.update_blocked_averages(cpu);
            if now >= self.m.cpu(cpu).next_balance {
                self.update_rq_clock(cpu);
                if balance {
                    self.sched_balance_domains(cpu, Idle::Idle);
                }
            }
            let own = self.m.cpu(cpu).next_balance;
            next_balance = Some(next_balance.map_or(own, |n: u64| n.min(own)));
        }
        let latest = now + 60 * u64::from(self.m.platform.hz);
        if let Some(next) = next_balance.filter(|n| *n < latest) {
            self.m.root.next_balance = next;
        }
        self.m.root.next_blocked = now + self.m.msecs_to_jiffies(BLOCKED_PERIOD_MS);
        self.m.root.has_blocked |= has_blocked;
    }

    /// `sched_balance_update_blocked_averages`: ages what sleeping tasks left behind. True while
    /// something is left.
    fn update_blocked_averages(&mut self, cpu: CpuId) -> bool {
        if !self.m.cpu(cpu).has_blocked_load {
            return false;
        }
        self.update_rq_clock(cpu);
        self.update_dl(cpu, false);
        if self.update_cfs_rq(cpu) {
            self.trace_cfs(cpu);
            self.cpufreq_update_util(cpu, false);
        }
        let c = self.m.cpu_mut(cpu);
        let left = c.cfs_avg.avg.load_avg != 0 || c.cfs_avg.avg.util_avg.0 != 0 || c.dl_avg.util_avg.0 != 0;
        c.has_blocked_load = left;
        left
    }

    /// The CPU's tick has stopped: it takes part in nohz balancing.
    pub(crate) fn nohz_balance_enter_idle(&mut self, cpu: CpuId) {
        self.m.cpu_mut(cpu).has_blocked_load = true;
        self.m.root.idle_cpus.insert(cpu);
        self.m.root.has_blocked = true;
    }

    /// `sched_balance_domains`: balances every domain that is due.
    fn sched_balance_domains(&mut self, cpu: CpuId, idle: Idle) {
        let mut idle = idle;
        let mut next_balance = u64::MAX;
        for level in 0..self.m.cpu(cpu).sched_domains.len() {
            let now = self.m.jiffies();
            let due = |e: &Self, idle| {
                let d = &e.m.cpu(cpu).sched_domains[level];
                let factor = if idle == Idle::Not { BUSY_FACTOR } else { 1 };
                // A busy CPU looks one jiffy early, so that levels do not look together.
                d.last_balance + (d.balance_interval * factor - u64::from(idle == Idle::Not)).max(1)
            };
            if now >= due(self, idle) {
                let (moved, go_on) = self.sched_balance_rq(cpu, level, idle);
                if moved {
                    idle = if self.m.idle_cpu(cpu) { Idle::Idle } else { Idle::Not };
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
        let levels = self.m.cpu(cpu).sched_domains.len();
        if self.m.root.overloaded {
            for level in 0..levels {
                let (moved, go_on) = self.sched_balance_rq(cpu, level, Idle::NewIdle);
                if moved || !go_on || self.m.cpu(cpu).nr_running() > 0 {
                    break;
                }
            }
        }
        let pulled = self.m.cpu(cpu).nr_running() > 0;
        let now = self.m.jiffies();
        let root = &self.m.root;
        if !pulled && root.has_blocked && now > root.next_blocked {
            // `nohz_newidle_balance`: on its way to idle it ages the others' load.
            self.balance_idle_cpus(cpu, false);
        }
        pulled
    }

    // ------------------------------------------------------------------ what

    /// `sched_balance_rq`: one domain, for `dst`. Returns whether tasks came, and whether wider
    /// domains should be looked at (not where another CPU of the group is in charge).
    fn sched_balance_rq(&mut self, dst: CpuId, level: usize, idle: Idle) -> (bool, bool) {
        if !self.should_we_balance(dst, level, idle) {
            return (self.balanced(dst, level, idle, None), false);
        }
        let Some((group, kind, imbalance)) = self.find_src_group(dst, level, idle) else {
            return (self.balanced(dst, level, idle, None), true);
        };
        let Some(src) = self.find_src_rq(dst, level, &group, kind, imbalance) else {
            return (self.balanced(dst, level, idle, None), true);
        };
        let moved = self.detach_tasks(src, dst, level, idle, kind, imbalance);
        let d = &mut self.m.cpu_mut(dst).sched_domains[level];
        if moved {
            d.nr_balance_failed = 0;
        } else {
            if idle != Idle::NewIdle && kind != Migrate::Misfit {
                d.nr_balance_failed += 1;
            }
            if self.need_active_balance(src, dst, level, idle, kind) && !self.active_balance(src, dst, kind) {
                return (self.balanced(dst, level, idle, Some(kind)), true);
            }
        }
        let d = &mut self.m.cpu_mut(dst).sched_domains[level];
        d.balance_interval = d.min_interval();
        (moved, true)
    }

    /// Nothing to move: the next look comes later. Always false.
    fn balanced(&mut self, dst: CpuId, level: usize, idle: Idle, kind: Option<Migrate>) -> bool {
        let d = &mut self.m.cpu_mut(dst).sched_domains[level];
        d.nr_balance_failed = 0;
        if idle != Idle::NewIdle && kind != Some(Migrate::Misfit) && d.balance_interval < 2 * d.min_interval() {
            d.balance_interval *= 2;
        }
        false
    }

    /// Only one CPU of a group balances it: the first idle one, else the first.
    fn should_we_balance(&self, dst: CpuId, level: usize, idle: Idle) -> bool {
        if idle == Idle::NewIdle {
            return self.m.cpu(dst).nr_running() == 0;
        }
        let local = &self.m.cpu(dst).sched_domains[level].groups[0];
        let in_charge = local.iter().find(|c| self.m.idle_cpu(*c)).or(local.lowest());
        in_charge == Some(dst)
    }

    /// `sched_balance_find_src_group` and `calculate_imbalance`.
    fn find_src_group(&mut self, dst: CpuId, level: usize, idle: Idle) -> Option<(CpuSet, Migrate, u64)> {
        let domain = &self.m.cpu(dst).sched_domains[level];
        let groups: Vec<Group> = domain.groups.iter().enumerate().map(|(i, g)| group_stats(&self.m, domain, g, i == 0)).collect();
        let (top, asym, share_llc, pct) = (level + 1 == self.m.cpu(dst).sched_domains.len(), domain.asym, domain.share_llc, domain.imbalance_pct());
        if top {
            let all = domain.span;
            self.update_root(&all);
        }
        let (local, others) = groups.split_first()?;
        let mut busiest: Option<&Group> = None;
        for g in others {
            if pickable(&self.m, dst, asym, local, g) && busiest.is_none_or(|b| busier(g, b)) {
                busiest = Some(g);
            }
        }
        let busiest = busiest?;
        if busiest.kind == GroupType::Misfit {
            return Some((busiest.cpus, Migrate::Misfit, 1));
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
            && (local.avg_load >= busiest.avg_load || local.avg_load >= domain_avg || 100 * busiest.avg_load <= pct * local.avg_load)
        {
            return None;
        }
        let prefer_sibling = !asym && !share_llc;
        let forced = prefer_sibling && local.kind == GroupType::HasSpare && busiest.running > local.running + 1;
        if !forced && busiest.kind != GroupType::Overloaded {
            let one_cpu = busiest.cpus.len() == 1;
            if idle == Idle::Not || (!one_cpu && local.idle_cpus <= busiest.idle_cpus + 1) || busiest.fair_queued == 1 {
                return None;
            }
        }
        let (kind, imbalance) = imbalance(local, busiest, idle, share_llc, prefer_sibling, domain_avg);
        (imbalance > 0).then_some((busiest.cpus, kind, imbalance))
    }

    /// The flags of the root domain, refreshed when its widest domain is looked at.
    fn update_root(&mut self, all: &CpuSet) {
        let m = &self.m;
        let overloaded = all.iter().any(|c| m.cpu(c).nr_running() > 1 || m.cpu(c).misfit_task_load != 0);
        let overutilized = all.iter().any(|c| m.cpu_overutilized(c));
        self.m.root.overloaded = overloaded;
        self.set_overutilized(overutilized);
    }

    /// `sched_balance_find_src_rq`.
    fn find_src_rq(&self, dst: CpuId, level: usize, group: &CpuSet, kind: Migrate, imbalance: u64) -> Option<CpuId> {
        let m = &self.m;
        let asym = m.cpu(dst).sched_domains[level].asym;
        // (value, per what) of the best so far: compared as fractions where it is a load.
        let mut best: Option<(u64, u64, CpuId)> = None;
        for cpu in group.iter() {
            let (c, queued) = (m.cpu(cpu), m.cpu(cpu).cfs.nr_queued());
            let bigger = capacity_greater(m.capacity_of(dst), m.capacity_of(cpu));
            if queued == 0 || (asym && !bigger && queued == 1) {
                continue;
            }
            let load = c.cfs_avg.avg.load_avg;
            let (value, per) = match kind {
                Migrate::Load if queued == 1 && load > imbalance && !self.reduced_capacity(cpu) => continue,
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

    /// `detach_tasks` and `attach_tasks`: moves queued tasks until the imbalance is gone.
    fn detach_tasks(&mut self, src: CpuId, dst: CpuId, level: usize, idle: Idle, kind: Migrate, imbalance: u64) -> bool {
        if self.m.cpu(src).nr_running() <= 1 {
            return false;
        }
        let failed = self.m.cpu(dst).sched_domains[level].nr_balance_failed.min(63);
        let waiting: Vec<TaskId> = self.m.cpu(src).cfs.iter().map(|e| e.id).filter(|t| self.m.cpu(src).curr != Some(*t)).collect();
        let mut left = imbalance as i64;
        let mut moved = false;
        for task in waiting.into_iter().rev().take(NR_MIGRATE) {
            if left <= 0 || (idle != Idle::Not && self.m.cpu(src).nr_running() <= 1) {
                break;
            }
            let t = self.m.task(task);
            if !t.allowed.contains(dst) || t.state != State::Runnable {
                continue;
            }
            let share = match kind {
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
            moved = true;
            self.move_queued(task, src, dst, why(kind, idle));
            if idle == Idle::NewIdle {
                break;
            }
        }
        moved
    }

    /// `need_active_balance`: shall the running task be pushed?
    fn need_active_balance(&self, src: CpuId, dst: CpuId, level: usize, idle: Idle, kind: Migrate) -> bool {
        let d = &self.m.cpu(dst).sched_domains[level];
        let stubborn = matches!(kind, Migrate::Task | Migrate::Misfit) && d.nr_balance_failed > 2 + 2;
        let relief = idle != Idle::Not
            && self.m.cpu(src).cfs.nr_runnable() == 1
            && self.reduced_capacity(src)
            && self.m.capacity_of(src).0 * d.imbalance_pct() < self.m.capacity_of(dst).0 * 100;
        stubborn || relief || kind == Migrate::Misfit
    }

    /// `active_load_balance_cpu_stop`: the stopper takes the CPU from the running task and moves
    /// it. False if its affinity forbids that.
    fn active_balance(&mut self, src: CpuId, dst: CpuId, kind: Migrate) -> bool {
        let Some(task) = self.m.cpu(src).curr.filter(|t| self.is_user(*t)) else { return true };
        if !self.m.task(task).allowed.contains(dst) {
            return false;
        }
        self.move_queued(task, src, dst, why(kind, Idle::Idle));
        true
    }

    /// `update_cpu_capacity`: what rt, dl and irq leave of the CPU.
    pub(crate) fn update_cpu_capacity(&mut self, cpu: CpuId) {
        let capacity = capacity_of(self.m.rev, self.m.cpu(cpu).capacity, &self.m.rq_util(cpu), 0, 0);
        let before = std::mem::replace(&mut self.m.cpu_mut(cpu).cpu_capacity, capacity);
        if before != capacity {
            self.emit(Event::CpuCapacity { cpu, capacity });
        }
    }
}

fn why(kind: Migrate, idle: Idle) -> Why {
    match (kind, idle) {
        (Migrate::Misfit, _) => Why::Misfit,
        (_, Idle::NewIdle) => Why::NewIdle,
        _ => Why::Balance,
    }
}

/// `update_sg_lb_stats`.
fn group_stats(m: &Machine, domain: &SchedDomain, cpus: &CpuSet, local: bool) -> Group {
    let mut g = Group {
        cpus: *cpus,
        kind: GroupType::HasSpare,
        load: 0,
        util: 0,
        capacity: 0,
        running: 0,
        fair_queued: 0,
        idle_cpus: 0,
        misfit_load: 0,
        avg_load: 0,
        max_capacity: 0,
        min_capacity: u64::MAX,
    };
    let mut runnable = 0;
    for cpu in cpus.iter() {
        let c = m.cpu(cpu);
        g.load += c.cfs_avg.avg.load_avg;
        g.util += m.cpu_util_cfs(cpu).0;
        runnable += c.cfs_avg.avg.runnable_avg.0;
        g.running += c.nr_running();
        g.fair_queued += c.cfs.nr_queued();
        g.capacity += c.cpu_capacity.0;
        g.max_capacity = g.max_capacity.max(c.cpu_capacity.0);
        g.min_capacity = g.min_capacity.min(c.cpu_capacity.0);
        g.idle_cpus += usize::from(m.idle_cpu(cpu));
        if !local && domain.asym {
            g.misfit_load = g.misfit_load.max(c.misfit_task_load);
        }
    }
    let load = GroupLoad { capacity: g.capacity, util: g.util, runnable, running: g.running, weight: cpus.len() };
    g.kind = classify(&load, domain.imbalance_pct(), g.misfit_load != 0);
    if matches!(g.kind, GroupType::Overloaded | GroupType::FullyBusy) {
        g.avg_load = g.load * 1024 / g.capacity.max(1);
    }
    g
}

/// Whether `g` may be chosen as the busiest group at all (`update_sd_pick_busiest`, first part).
fn pickable(m: &Machine, dst: CpuId, asym: bool, local: &Group, g: &Group) -> bool {
    use risetime_kernel::units::Capacity;
    let here = m.capacity_of(dst);
    let misfit_elsewhere = asym
        && g.kind == GroupType::Misfit
        && (!capacity_greater(here, Capacity(g.max_capacity)) || local.kind != GroupType::HasSpare);
    let too_big = asym && g.kind <= GroupType::FullyBusy && capacity_greater(Capacity(g.min_capacity), here);
    g.fair_queued > 0 && !misfit_elsewhere && !too_big
}

/// Whether `g` is busier than the busiest so far (`update_sd_pick_busiest`, second part).
fn busier(g: &Group, busiest: &Group) -> bool {
    if g.kind != busiest.kind {
        return g.kind > busiest.kind;
    }
    match g.kind {
        GroupType::Overloaded => g.avg_load > busiest.avg_load,
        GroupType::Misfit => g.misfit_load > busiest.misfit_load,
        GroupType::FullyBusy => g.avg_load >= busiest.avg_load,
        GroupType::HasSpare => {
            g.idle_cpus < busiest.idle_cpus || (g.idle_cpus == busiest.idle_cpus && g.running > busiest.running)
        }
    }
}

/// `calculate_imbalance`: what to move, and how much of it.
fn imbalance(local: &Group, busiest: &Group, idle: Idle, share_llc: bool, prefer_sibling: bool, domain_avg: u64) -> (Migrate, u64) {
    if local.kind == GroupType::HasSpare {
        if busiest.kind > GroupType::FullyBusy && !share_llc {
            let room = local.capacity.saturating_sub(local.util);
            return if idle != Idle::Not && room == 0 { (Migrate::Task, 1) } else { (Migrate::Util, room) };
        }
        let tasks = if busiest.cpus.len() == 1 || prefer_sibling {
            busiest.running.saturating_sub(local.running)
        } else {
            local.idle_cpus.saturating_sub(busiest.idle_cpus)
        };
        return (Migrate::Task, tasks as u64 / 2);
    }
    let local_avg = local.load * 1024 / local.capacity.max(1);
    if local.kind < GroupType::Overloaded && (local_avg >= busiest.avg_load || local_avg >= domain_avg) {
        return (Migrate::Load, 0);
    }
    let from = busiest.avg_load.saturating_sub(domain_avg) * busiest.capacity;
    let to = domain_avg.saturating_sub(local_avg) * local.capacity;
    (Migrate::Load, from.min(to) / 1024)
}
