//! One look at one domain: is there a group busier than the own one, and which task comes over?
//!
//! ```text
//! sched_balance_rq   should_we_balance → busiest group → busiest CPU of it → detach queued tasks
//!    a task may not come here, but to another CPU of the group       → pulled for that one (DST_PINNED)
//!    some may not come, and too much is left                         → the level above hears of it
//!                                                                      (SOME_PINNED: group imbalanced)
//!    none of the CPU's tasks may come                                → the next busiest CPU
//!    nothing moved though it should                                  → push the running one
//!                                                                      (need_active_balance)
//! ```
//!
//! Source: kernel/sched/fair.c.

use super::group::{
    Group, Sums, busier, fair_queued, group_stats, imbalance, prefer_sibling, reduced_capacity,
    sibling_imbalance, smt_vs_nonsmt_groups,
};
use crate::kernel::Kernel;
use crate::kernel::balance::env::{Env, Migrate, When};
use crate::kernel::placement::fork::GroupType;
use crate::kernel::placement::idle_sibling::is_core_idle;
use crate::kernel::rq::Rq;
use crate::state::class::StopWork;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::Point;
use crate::state::machine::{Machine, State};
use crate::state::short_ways;
use crate::state::short_ways::ShortWay;
use crate::state::topology::sd;
use risetime_kernel::features;
use risetime_kernel::fits::{Fit, capacity_greater, fits_capacity};
use risetime_kernel::switches::Switch;
use risetime_kernel::units::{CpuId, TaskId};
use risetime_model::workload::Policy;
use risetime_trace::Why;

/// `MAX_PINNED_INTERVAL`, in ms.
const MAX_PINNED_INTERVAL: u64 = 512;

impl Kernel<'_> {
    /// `sched_balance_rq`: one domain, for `this`. Returns whether tasks came, and whether wider
    /// domains should be looked at (not where another CPU of the group is in charge).
    pub(crate) fn sched_balance_rq(
        &mut self,
        this: CpuId,
        level: usize,
        idle: When,
    ) -> (bool, bool) {
        if !self.m.yes(Point::Balance { cpu: this, level }, true) {
            return (false, false);
        }
        let mut env = Env::new(this, level, idle, &self.m.cpu(this).sched_domains[level]);
        loop {
            if !self.m.should_we_balance(&env) {
                return (self.rq(this).balanced(&env, None), false);
            }
            if level == 0 {
                self.rq(this).update_group_capacity(&env);
            }
            let Some((group, kind, left)) = self.rq(this).find_src_group(&env) else {
                return (self.rq(this).balanced(&env, None), true);
            };
            let Some(src) = self.m.find_src_rq(&env, &group, kind, left) else {
                return (self.rq(this).balanced(&env, Some(kind)), true);
            };
            (env.all_pinned, env.kind) = (true, Some(kind));
            if self.m.cpu(src).nr_running() > 1 {
                let moved = self.pull(&mut env, src, kind, left);
                if env.all_pinned {
                    // On to the next busiest, if any is left outside the own group.
                    env.leave_out(src);
                    let own = &self.m.cpu(this).sched_domains[level].local().mask;
                    if !env.cpus.is_within(own) {
                        continue;
                    }
                    self.m.cpu_mut(this).sched_domains[level].nr_balance_failed = 0;
                    self.rq(this).back_off(&env, Some(kind));
                    return (false, true);
                }
                if moved {
                    self.m.cpu_mut(this).sched_domains[level].nr_balance_failed = 0;
                    self.rq(this).unbalanced(&env);
                    return (true, true);
                }
            }
            return (self.not_moved(&mut env, src, kind), true);
        }
    }

    /// Moves tasks from `src`: to the CPU that looks, then, where affinity keeps some from there, to
    /// others of its group. Whether any moved.
    pub(super) fn pull(
        &mut self,
        env: &mut Env,
        src: CpuId,
        kind: Migrate,
        imbalance: u64,
    ) -> bool {
        let (mut left, mut moved) = (imbalance as i64, false);
        loop {
            moved |= self.detach_tasks(env, src, kind, &mut left);
            match env.new_dst.take().filter(|_| left > 0) {
                Some(other) => {
                    env.leave_out(env.dst);
                    env.dst = other;
                }
                None => break,
            }
        }
        if env.some_pinned && left > 0 {
            self.rq(env.this).set_group_imbalance(env, true);
        }
        moved
    }

    /// Reacts to a look that found something to move but moved nothing: the running task may have
    /// to move. Always false.
    fn not_moved(&mut self, env: &mut Env, src: CpuId, kind: Migrate) -> bool {
        if env.idle != When::NewlyIdle && !self.m.forgives(Some(kind)) && !env.llc_pinned {
            self.m.cpu_mut(env.this).sched_domains[env.level].nr_balance_failed += 1;
        }
        if self.m.need_active_balance(env, src, kind) && !self.active_balance(env, src, kind) {
            self.rq(env.this).back_off(env, Some(kind));
        } else {
            self.rq(env.this).unbalanced(env);
        }
        false
    }

    /// `detach_tasks` and `attach_tasks`: moves queued tasks, those that waited longest first,
    /// until the imbalance is gone; what left last comes first. Whether any moved.
    ///
    /// A CPU that goes idle takes one, if the kernel can be preempted while it looks (CONFIG_PREEMPTION).
    fn detach_tasks(&mut self, env: &mut Env, src: CpuId, kind: Migrate, left: &mut i64) -> bool {
        self.rq(src).update_rq_clock();
        let failed = self.m.cpu(env.this).sched_domains[env.level].nr_balance_failed.min(63);
        let mut waiting: Vec<TaskId> = self.m.fair_queued(src).map(|(task, _)| task).collect();
        waiting.sort_by_key(|t| self.m.task(*t).listed);
        let loop_max = self.m.slots.sysctls.nr_migrate.min(self.m.cpu(src).nr_running());
        let one = env.idle == When::NewlyIdle && !self.m.slots.preempt.voluntary;
        // What comes, and how many of it stay where they are, as somebody else says.
        let (mut moved, mut stay, mut detached) = (false, 0, Vec::new());
        for (tried, task) in waiting.into_iter().enumerate() {
            if tried >= loop_max && !(self.m.tries_all_pinned() && env.all_pinned) {
                break;
            }
            if env.idle != When::Busy && self.m.cpu(src).nr_running() <= 1 + stay {
                break;
            }
            self.rq(src).list(task);
            if !self.m.can_migrate_task(env, src, task, failed) {
                continue;
            }
            let share = match kind {
                Migrate::Load => self.m.task_h_load(task).max(1),
                Migrate::Util => self.m.task_util_est(task).0,
                Migrate::Task | Migrate::Llc => 1,
                Migrate::Misfit if self.m.task_fits(task, src) == Fit::Fits => continue,
                Migrate::Misfit => *left as u64,
            };
            let light = kind == Migrate::Load && share < 16 && failed == 0;
            if light && self.m.slots.switches.on(Switch::LbMin) {
                continue;
            }
            if matches!(kind, Migrate::Load | Migrate::Util) && (share >> failed) as i64 > *left {
                continue;
            }
            *left -= share as i64;
            moved = true;
            if self.m.yes(Point::Pull { task, from: src, to: env.dst }, true) {
                self.rq(src).detach(task, env.dst, why(kind, env.idle));
                detached.push(task);
            } else {
                stay += 1;
            }
            if one || *left <= 0 {
                break;
            }
        }
        for task in detached.into_iter().rev() {
            self.rq(env.dst).attach(task, src);
        }
        moved
    }

    /// Asks the stopper of `src` to give a task to the CPU that looks. False: the running task may
    /// not come.
    fn active_balance(&mut self, env: &Env, src: CpuId, kind: Migrate) -> bool {
        if self.m.stops(src) {
            return self.rq(src).ask_stopper(env, kind);
        }
        let Some(curr) = self
            .m
            .cpu(src)
            .curr
            .filter(|t| self.m.is_fair(*t) && self.m.task(*t).state == State::Runnable)
        else {
            return true;
        };
        if !self.m.task(curr).allowed.contains(env.this) {
            return false;
        }
        self.active_load_balance_cpu_stop(src, env.this, why(kind, When::Idle));
        true
    }

    /// `active_load_balance_cpu_stop`: moves a task of `src` to `to`, of those that may go there the one
    /// that was picked longest ago; to a cache (`LBF_ACTIVE_LB_LLC`) only one that prefers it.
    pub(crate) fn active_load_balance_cpu_stop(&mut self, src: CpuId, to: CpuId, why: Why) {
        let domains = &self.m.cpu(to).sched_domains;
        let online = self.m.root.online.contains(src) && self.m.root.online.contains(to);
        let Some(level) = domains.iter().position(|d| online && d.span.contains(src)) else {
            return;
        };
        let env = Env::new(to, level, When::Idle, &domains[level]);
        self.rq(src).update_rq_clock();
        let failed = self.m.cpu(to).sched_domains[level].nr_balance_failed;
        let mut queued: Vec<TaskId> = self.m.fair_queued(src).map(|(task, _)| task).collect();
        queued.sort_by_key(|t| self.m.task(*t).listed);
        let found = queued.into_iter().find(|&task| {
            let t = self.m.task(task);
            self.m.is_movable(&env, src, task)
                && t.allowed.contains(to)
                && !(why == Why::Llc && self.m.migrate_llc_task_wrong_dst(task, to))
                && !self.m.ineligible_on_dst(&env, src, task, failed)
        });
        if let Some(task) = found {
            self.m.cpu_mut(to).sched_domains[level].nr_balance_failed = 0;
            if self.m.yes(Point::Pull { task, from: src, to }, true) {
                self.move_queued(task, src, to, why);
            }
        }
    }
}

/// Traces that a look leaves at the CPU that looks.
impl Rq<'_, '_> {
    /// `sgc->imbalance` of the group, in the level above, that this domain is.
    fn set_group_imbalance(&mut self, env: &Env, imbalanced: bool) {
        let parent = self.m().cpu(env.this).sched_domains.get(env.level + 1);
        if let Some(group) = parent.map(|d| d.local().id) {
            self.set_imbalanced(group, imbalanced);
        }
    }

    /// Shortens the balance interval, since there is work to move.
    fn unbalanced(&mut self, env: &Env) {
        let d = &mut self.c().sched_domains[env.level];
        d.balance_interval = d.min_interval();
    }

    /// Reacts to a look that found nothing to move: backs off. Always false.
    fn balanced(&mut self, env: &Env, kind: Option<Migrate>) -> bool {
        if !env.all_pinned {
            self.set_group_imbalance(env, false);
        }
        self.c().sched_domains[env.level].nr_balance_failed = 0;
        self.back_off(env, kind);
        false
    }

    /// Doubles the interval until the domain's next look, up to a limit.
    fn back_off(&mut self, env: &Env, kind: Option<Migrate>) {
        if env.idle == When::NewlyIdle || self.m().forgives(kind) {
            return;
        }
        let d = &mut self.c().sched_domains[env.level];
        let pinned = env.all_pinned && d.balance_interval < MAX_PINNED_INTERVAL;
        if pinned || d.balance_interval < 2 * d.min_interval() {
            d.balance_interval *= 2;
        }
    }

    /// `sched_balance_find_src_group`: the busiest group, what to move of it and how much.
    fn find_src_group(&mut self, env: &Env) -> Option<(CpuSet, Migrate, u64)> {
        let domains = &self.m().cpu(env.this).sched_domains;
        let top = env.level + 1 == domains.len();
        if let Some(sums) = self.m().glance(env) {
            self.m().record_llc_stats_only(env);
            self.update_idle_cpu_scan(env, sums.util);
            self.update_root(&sums, top);
            return None;
        }
        self.refresh_tally(env.level);
        let domain = &self.m().cpu(env.this).sched_domains[env.level];
        let asym = domain.has(sd::ASYM_CPUCAPACITY);
        let (mut sums, mut busiest) = (Sums::default(), None::<Group>);
        let mut groups = domain.groups().enumerate();
        let own = groups.next()?.1;
        let local = group_stats(self.m(), env, domain, own, 0);
        sums.add(&local);
        self.m().record_sg_llc_stats(env, own, local.llc_stats());
        for (at, group) in groups {
            let g = group_stats(self.m(), env, domain, group, at);
            sums.add(&g);
            self.m().record_sg_llc_stats(env, group, g.llc_stats());
            if busier(self.m(), env, asym, &local, &g, busiest.as_ref()) {
                busiest = Some(g);
            }
        }
        let energy_aware = |e: &Self| e.m().root.energy_aware && !e.m().root.overutilized;
        let found = busiest.and_then(|b| {
            let (kind, imbalance) = worth_it(self.m(), env, &sums, &local, &b)?;
            let cpus = domain.groups().nth(b.at)?.span.and(&env.cpus);
            Some((b.kind, cpus, kind, imbalance))
        });
        self.update_idle_cpu_scan(env, sums.util);
        self.update_root(&sums, top);
        let (what, cpus, kind, imbalance) = found?;
        // While EAS places tasks, only those that fit nowhere near are moved.
        let moves = imbalance > 0 && (what == GroupType::Misfit || !energy_aware(self));
        moves.then_some((cpus, kind, imbalance))
    }

    /// `update_idle_cpu_scan` (SIS_UTIL): the busier a cache, the fewer of its CPUs a wakeup looks at;
    /// at 85 % none.
    fn update_idle_cpu_scan(&mut self, env: &Env, util: u64) {
        let c = self.m().cpu(env.this);
        let (place, level) = (&c.place, Some(env.level));
        let shared = match (place.llc == level, place.asym == level) {
            (true, false) => place.llc_shared,
            (_, true) if place.balance_shared != place.llc_shared || place.llc == level => {
                place.balance_shared
            }
            _ => None,
        };
        let Some(shared) = shared.filter(|_| env.idle != When::NewlyIdle) else { return };
        let d = &c.sched_domains[env.level];
        let weight = u64::from(d.weight);
        let x = util / weight;
        let y = 1024u64.saturating_sub((x * d.imbalance_pct).pow(2) / (10_000 * 1024));
        let scan = (y * weight / 1024) as u32;
        self.set_nr_idle_scan(shared, scan);
    }

    /// The flags of the root domain: both refreshed when its widest domain is looked at, by a
    /// smaller one overutilized only set.
    fn update_root(&mut self, sums: &Sums, top: bool) {
        if top {
            self.set_overloaded(sums.overloaded);
            self.set_overutilized(sums.overutilized);
        } else if sums.overutilized {
            self.set_overutilized(true);
        }
    }

    /// [`Kernel::active_balance`] where the stopper, this CPU's, takes time, so that it moves what it then finds.
    fn ask_stopper(&mut self, env: &Env, kind: Migrate) -> bool {
        // The idle task, as the stopper itself, may run nowhere else.
        let Some(curr) = self.m().cpu(self.cpu).curr else { return false };
        let curr = self.m().task(curr);
        let (may_come, stays) = (curr.allowed.contains(env.this), curr.state == State::Runnable);
        if may_come && stays {
            let why = why(kind, When::Idle);
            self.stop_one_cpu_nowait(StopWork::ActiveBalance { to: env.this, why });
        }
        may_come
    }

    /// `update_group_capacity` of the lowest level: a CPU finds out what is left of it when it looks
    /// for work, which it does rarely while it is busy.
    fn update_group_capacity(&mut self, env: &Env) {
        let jiffies = self.m().jiffies();
        let domain = &self.m().cpu(env.this).sched_domains[0];
        if env.idle == When::NewlyIdle && jiffies < domain.next_update {
            return;
        }
        let next = jiffies + self.m().balance_interval(env.this, 0, false);
        self.c().sched_domains[0].next_update = next;
        self.update_rq_clock();
        self.update_others();
        self.update_cpu_capacity();
    }
}

impl Machine {
    /// A misfit task that could not be moved says nothing of the balance: until 6.9 it counted like
    /// any other failure.
    fn forgives(&self, kind: Option<Migrate>) -> bool {
        self.lb_rev().has(features::MIGRATE_MISFIT_FORGIVEN) && kind == Some(Migrate::Misfit)
    }

    /// Whether this CPU balances for its group: only one does, the first idle one, since 6.6 of an
    /// idle core where there is one, else the first.
    pub(super) fn should_we_balance(&self, env: &Env) -> bool {
        let m = self;
        if !env.cpus.contains(env.dst) {
            return false;
        }
        if env.idle == When::NewlyIdle {
            return m.cpu(env.dst).nr_running() == 0;
        }
        let domain = &m.cpu(env.this).sched_domains[env.level];
        let mask = &domain.local().mask;
        let by_core = m.lb_rev().has(features::SHOULD_WE_BALANCE_CORE)
            && m.root.smt
            && !domain.has(sd::SHARE_CPUCAPACITY);
        let mut idle = mask.iter().filter(|c| env.cpus.contains(*c) && m.idle_cpu(*c));
        let in_charge = match by_core {
            false => idle.next(),
            true => {
                let first = idle.next();
                let mut all = first.into_iter().chain(idle);
                all.find(|c| is_core_idle(m, *c)).or(first)
            }
        };
        in_charge.or(mask.lowest()) == Some(env.dst)
    }

    /// Glances at the CPUs instead of a full look. While EAS places tasks, only misfit ones are
    /// moved; where no CPU has one, a look moves nothing, and these sums are all that it finds out.
    /// `None`: compute full group statistics.
    fn glance(&self, env: &Env) -> Option<Sums> {
        let m = self;
        if !m.glances {
            return None;
        }
        let domain = &m.cpu(env.this).sched_domains[env.level];
        let unequal = domain.has(sd::ASYM_CPUCAPACITY) && !domain.has(sd::NUMA);
        if !m.root.energy_aware || m.root.overutilized || !unequal {
            return None;
        }
        let (mut sums, plain) = (Sums::default(), m.is_plain());
        for cpu in env.cpus.iter() {
            let (c, util) = (m.cpu(cpu), m.cpu_util_cfs(cpu));
            let running = c.nr_running();
            let overutilized = match plain {
                true => !fits_capacity(util, c.cpu_capacity),
                false => m.overutilized_by(c, util),
            };
            if c.misfit_task_load != 0 || overutilized {
                return None;
            }
            sums.util += util.0;
            sums.overloaded |= running > 1;
        }
        debug_assert!({
            let mut close = Sums::default();
            let groups = domain.groups().enumerate();
            let mut groups = groups.map(|(at, g)| group_stats(m, env, domain, g, at));
            groups.all(|g| {
                close.add(&g);
                g.kind != GroupType::Misfit
            }) && (close.util, close.overloaded, close.overutilized)
                == (sums.util, sums.overloaded, false)
        });
        short_ways::take(ShortWay::Glance);
        Some(sums)
    }

    /// `sched_balance_find_src_rq`, of the CPUs of the group that are not left out.
    fn find_src_rq(
        &self,
        env: &Env,
        group: &CpuSet,
        kind: Migrate,
        imbalance: u64,
    ) -> Option<CpuId> {
        let m = self;
        let domain = &m.cpu(env.this).sched_domains[env.level];
        let (asym, pct) = (domain.has(sd::ASYM_CPUCAPACITY), domain.imbalance_pct);
        // (value, per what) of the best so far: compared as fractions where it is a load.
        let mut best: Option<(u64, u64, CpuId)> = None;
        for cpu in group.iter() {
            let (c, queued) = (m.cpu(cpu), fair_queued(m, cpu));
            let bigger = || capacity_greater(m.capacity_of(env.dst), m.capacity_of(cpu));
            // Since 7.3 a thread beside a busy one, or a like CPU around another L2, gives, too.
            let gives = || {
                m.rev.has(features::ONLY_TASK_GIVEN)
                    && ((m.root.smt && !is_core_idle(m, cpu))
                        || (m.root.cluster && m.cpu(env.dst).capacity == c.capacity))
            };
            if queued == 0 || (asym && queued == 1 && !bigger() && !gives()) {
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
                Migrate::Llc => (m.prefers_llc_of(cpu, env.dst), 1),
            };
            if best.map_or(value > 0, |(v, p, _)| value * p > v * per) {
                best = Some((value, per, cpu));
            }
        }
        best.map(|(_, _, cpu)| cpu)
    }

    /// Whether a look goes on where all tasks so far are pinned. Up to 6.10 `detach_tasks` went on
    /// beyond `loop_max` until a task might come; the long-term kernels have that taken back.
    fn tries_all_pinned(&self) -> bool {
        !self.rev.has(features::DETACH_LOOP_MAX)
    }

    /// `can_migrate_task`: also notes which of the tasks affinity keeps away.
    pub(super) fn can_migrate_task(
        &self,
        env: &mut Env,
        src: CpuId,
        task: TaskId,
        failed: u32,
    ) -> bool {
        let (t, from) = (self.task(task), self.cpu(src));
        let domain = &self.cpu(env.this).sched_domains[env.level];
        if !self.is_movable(env, src, task) || self.ineligible_on_dst(env, src, task, failed) {
            return false;
        }
        if !t.allowed.contains(env.dst) {
            env.some_pinned = true;
            if env.idle != When::NewlyIdle && env.new_dst.is_none() {
                let mut others = domain.local().mask.iter();
                env.new_dst = others.find(|c| env.cpus.contains(*c) && t.allowed.contains(*c));
            }
            return false;
        }
        let Some(entity) = self.fair_entity(src, task) else { return false };
        env.all_pinned = false;
        // Threads of a core share its caches; and what gives way to all others anyway is never hot.
        let ran = from.clock.clock_task.0.wrapping_sub(entity.exec_start);
        let hot = self.slots.sysctls.is_hot(ran) || self.cache_hot_buddy(src, task, env.dst);
        let hot = hot && !domain.has(sd::SHARE_CPUCAPACITY) && t.sched.policy != Policy::Idle;
        let hot = hot && failed <= domain.cache_nice_tries;
        let runs = from.curr == Some(task);
        let degrades = !runs && self.migrate_degrades_llc(env, src, task);
        env.llc_pinned |= degrades && env.kind != Some(Migrate::Llc);
        let may = !runs && !degrades && !hot;
        self.yes(Point::Move { task, from: src, to: env.dst }, may)
    }

    /// Whether a task of `src` is awake, or asleep with its dequeue delayed and may be moved all the same: until 6.13
    /// for whatever reason, since then as load (also by the stopper, whose `migration_type` is 0).
    fn is_movable(&self, env: &Env, src: CpuId, task: TaskId) -> bool {
        let delayed = || self.fair_entity(src, task).is_some_and(|e| e.sched_delayed);
        let for_load = env.kind.is_none_or(|kind| kind == Migrate::Load);
        match self.task(task).state {
            State::Runnable => true,
            State::Sleeping if for_load => delayed(),
            State::Sleeping => !self.rev.has(features::DELAYED_MOVES_AS_LOAD) && delayed(),
            _ => false,
        }
    }

    /// `task_is_ineligible_on_dst_cpu`, while balancing has not failed: it has had its share. Also
    /// a task whose group waits for its quota.
    fn ineligible_on_dst(&self, env: &Env, src: CpuId, task: TaskId, failed: u32) -> bool {
        let g = self.task(task).group;
        let had_its_share = self.rev.has(features::TASK_IS_INELIGIBLE)
            && failed == 0
            && self.queue(env.dst, g).nr_queued() > 0
            && !self.queue(src, g).entity_eligible(task);
        had_its_share || self.lb_throttled(env.dst, src, g)
    }

    /// `need_active_balance`: shall the running task be pushed?
    fn need_active_balance(&self, env: &Env, src: CpuId, kind: Migrate) -> bool {
        if self.alb_break_llc(env, src, kind) {
            return false;
        }
        let d = &self.cpu(env.this).sched_domains[env.level];
        let stubborn = kind == Migrate::Task && d.nr_balance_failed > d.cache_nice_tries + 2;
        let relief = env.idle != When::Busy
            && fair_queued(self, src) == 1
            && reduced_capacity(self, src, d.imbalance_pct)
            && self.capacity_of(src).0 * d.imbalance_pct < self.capacity_of(env.dst).0 * 100;
        stubborn || relief || matches!(kind, Migrate::Misfit | Migrate::Llc)
    }
}

/// The second half of `sched_balance_find_src_group`: whether the difference between the two groups is
/// worth anything, and what to move.
fn worth_it(
    m: &Machine,
    env: &Env,
    sums: &Sums,
    local: &Group,
    busiest: &Group,
) -> Option<(Migrate, u64)> {
    let (domain, rev) = (&m.cpu(env.this).sched_domains[env.level], m.lb_rev());
    let forced = match busiest.kind {
        GroupType::Misfit if domain.has(sd::ASYM_CPUCAPACITY) => return Some((Migrate::Misfit, 1)),
        // On CPUs alike it is a CPU of which other classes take a part.
        GroupType::Misfit => return Some((Migrate::Load, busiest.misfit_load)),
        GroupType::Imbalanced => true,
        _ if local.kind > busiest.kind => return None,
        _ => false,
    };
    let domain_avg = sums.load * 1024 / sums.capacity.max(1);
    if !forced
        && local.kind == GroupType::Overloaded
        && (local.avg_load >= busiest.avg_load
            || local.avg_load >= domain_avg
            || 100 * busiest.avg_load <= domain.imbalance_pct * local.avg_load)
    {
        return None;
    }
    let prefer_sibling = prefer_sibling(env, m, busiest);
    let spreads = prefer_sibling
        && local.kind == GroupType::HasSpare
        && (busiest.kind == GroupType::LlcBalance
            || sibling_imbalance(rev, env.idle, busiest, local) > 1);
    if !forced && !spreads && busiest.kind != GroupType::Overloaded {
        if env.idle == When::Busy {
            return None;
        }
        // A whole core may relieve threads that share one.
        let relieves =
            busiest.kind == GroupType::SmtBalance && smt_vs_nonsmt_groups(local, busiest);
        let even = busiest.weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1;
        if !relieves && (even || busiest.fair_queued == 1) {
            return None;
        }
    }
    Some(imbalance(rev, local, busiest, env.idle, domain, prefer_sibling, domain_avg))
}

fn why(kind: Migrate, idle: When) -> Why {
    match (kind, idle) {
        (Migrate::Misfit, _) => Why::Misfit,
        (Migrate::Llc, _) => Why::Llc,
        (_, When::NewlyIdle) => Why::NewIdle,
        _ => Why::Balance,
    }
}
