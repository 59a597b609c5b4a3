//! Balancing for caches (SCHED_CACHE, since 7.2): tasks go to the last-level cache (LLC) that their
//! process prefers ([`super`]), and are not taken away from it.
//!
//! ```text
//! group        one with tasks that prefer the LLC of who looks is llc_balance, next to overloaded: an idle CPU, or
//!              where siblings are preferred also a busy one, pulls one of them (migrate_llc_task)
//! task         does not go where its preference forbids it (migrate_degrades_llc), until balancing has failed often;
//!              that does not count as a failure (LBF_LLC_PINNED)
//! stopper      does not push a CPU's only task, or where all prefer to be there, out of its LLC (alb_break_llc)
//! asked by     util and capacity of both LLCs as looks that were not newly idle have last seen them
//! ```
//!
//! 7.2 and 7.3 do the same here, but for asym packing, which nobody has here.
//! Source: kernel/sched/fair.c, symbols named at each function.

use crate::kernel::balance::env::{Env, Migrate, When};
use crate::mech::cache::state::SchedCache;
use crate::state::machine::Machine;
use crate::state::topology::{SchedDomain, SchedGroup, sd};
use risetime_kernel::fits::Fit;
use risetime_kernel::sched_cache::{LlcMig, LlcStats};
use risetime_kernel::units::{CpuId, TaskId};

impl Machine {
    /// Counts the tasks in `group` that prefer the LLC of `env.dst` and are not there
    /// (`nr_pref_dst_llc`).
    pub(crate) fn nr_pref_dst_llc(&self, cache: &SchedCache, env: &Env, group: &SchedGroup) -> u64 {
        let llc = cache.llc_id[env.dst.index()];
        let elsewhere = |c: &CpuId| cache.llc_id[c.index()] != llc && env.cpus.contains(*c);
        group.span.iter().filter(elsewhere).map(|c| self.llc_counts(cache, c, llc)).sum()
    }

    /// The number of tasks that a group should give to the LLC that they prefer, if it should; the
    /// group has `running` tasks, among them a `misfit` one.
    pub(crate) fn llc_balance(
        &self,
        env: &Env,
        domain: &SchedDomain,
        group: &SchedGroup,
        (misfit, running): (bool, usize),
    ) -> Option<u64> {
        let cache = self.sched_cache()?;
        if cache.preferring[cache.llc_id[env.dst.index()] as usize] == 0 {
            return None;
        }
        let misfit = domain.has(sd::ASYM_CPUCAPACITY) && misfit;
        if domain.has(sd::SHARE_LLC)
            || misfit
            || domain.nr_balance_failed > domain.cache_nice_tries
            // The idle task prefers nothing.
            || running == 0
        {
            return None;
        }
        let nr = self.nr_pref_dst_llc(cache, env, group);
        let first = group.span.lowest()?;
        let wanted = || cache.can_migrate_llc(first, env.dst, 0, true) == LlcMig::Llc;
        (nr > 0 && wanted()).then_some(nr)
    }

    /// Counts the tasks of `cpu` that prefer the LLC of `dst`.
    pub(crate) fn prefers_llc_of(&self, cpu: CpuId, dst: CpuId) -> u64 {
        let of = |cache: &SchedCache| self.llc_counts(cache, cpu, cache.llc_id[dst.index()]);
        self.sched_cache().map_or(0, of)
    }

    /// `record_sg_llc_stats`: what a look has found of a group that is an LLC.
    pub(crate) fn record_sg_llc_stats(&self, env: &Env, group: &SchedGroup, found: LlcStats) {
        let Some(cache) = self.sched_cache().filter(|_| env.idle != When::NewlyIdle) else {
            return;
        };
        if env.level.checked_sub(1) != self.cpu(env.dst).place.llc {
            return;
        }
        if let Some(first) = group.span.lowest() {
            cache.llcs[cache.llc_id[first.index()] as usize].stats.set(found);
        }
    }

    /// Records the groups' LLC statistics where the look computed nothing else
    /// ([`Machine::glance`]).
    pub(crate) fn record_llc_stats_only(&self, env: &Env) {
        if self.sched_cache().is_none() || env.idle == When::NewlyIdle {
            return;
        }
        for group in self.cpu(env.this).sched_domains[env.level].groups() {
            let capacity = group.span.iter().map(|c| self.cpu(c).cpu_capacity.0).sum();
            let seen = group.span.and(&env.cpus);
            let util_avg = seen.iter().map(|c| self.cpu_util_cfs(c).0).sum();
            self.record_sg_llc_stats(env, group, LlcStats { util_avg, capacity });
        }
    }

    /// Whether, on unequal CPUs, the task fits where it is and would not where it would go.
    fn task_misfits_asym_cpu(&self, env: &Env, src: CpuId, task: TaskId) -> bool {
        self.cpu(env.this).sched_domains[env.level].has(sd::ASYM_CPUCAPACITY)
            && self.task_fits(task, env.dst) != Fit::Fits
            && self.task_fits(task, src) == Fit::Fits
    }

    fn can_migrate_llc_task(
        &self,
        cache: &SchedCache,
        env: &Env,
        src: CpuId,
        task: TaskId,
    ) -> LlcMig {
        if self.task_misfits_asym_cpu(env, src, task) {
            return LlcMig::Forbid;
        }
        let preferred = cache.pref_llc().filter(|_| self.has_cache_group(cache, task));
        let [from, to] = [src, env.dst].map(|c| Some(cache.llc_id[c.index()]));
        if preferred.is_none() || from == to {
            return LlcMig::Unrestricted;
        }
        if cache.invalid_llc_nr(cache.llc_size(env.dst)) {
            cache.process.cpu.set(None);
            return LlcMig::Unrestricted;
        }
        if preferred != to && preferred != from {
            return LlcMig::Unrestricted;
        }
        cache.can_migrate_llc(src, env.dst, self.task(task).avg.util_avg.0, preferred == to)
    }

    /// Whether the stopper should leave the tasks of `src` where they are: all of them are where they belong.
    pub(crate) fn alb_break_llc(&self, env: &Env, src: CpuId, kind: Migrate) -> bool {
        let Some(cache) = self.sched_cache() else { return false };
        if cache.llc_id[src.index()] == cache.llc_id[env.dst.index()] || kind == Migrate::Misfit {
            return false;
        }
        let (c, at_home) = (self.cpu(src), self.nr_pref_llc_running(cache, src));
        if at_home == 0 || at_home != c.h_nr_runnable() {
            return false;
        }
        if c.nr_running() <= 1 {
            return true;
        }
        let curr = c.curr;
        let util = curr.filter(|t| self.is_fair(*t)).map_or(0, |t| self.task(t).avg.util_avg.0);
        curr.is_some_and(|t| self.task_misfits_asym_cpu(env, src, t))
            || cache.can_migrate_llc(src, env.dst, util, false) == LlcMig::Forbid
    }

    /// Tasks are moved to the LLC that they prefer, and this one does not prefer that of `dst`.
    pub(crate) fn migrate_llc_task_wrong_dst(&self, task: TaskId, dst: CpuId) -> bool {
        let cache = self.sched_cache();
        cache.is_some_and(|c| c.preferred_llc(task) != Some(c.llc_id[dst.index()]))
    }

    /// Whether it would leave the LLC that its process prefers, or is none of those that are looked for.
    pub(crate) fn migrate_degrades_llc(&self, env: &Env, src: CpuId, task: TaskId) -> bool {
        let Some(cache) = self.sched_cache() else { return false };
        let domain = &self.cpu(env.this).sched_domains[env.level];
        if domain.nr_balance_failed > domain.cache_nice_tries {
            return false;
        }
        (env.kind == Some(Migrate::Llc) && self.migrate_llc_task_wrong_dst(task, env.dst))
            || self.can_migrate_llc_task(cache, env, src, task) == LlcMig::Forbid
    }
}

impl SchedCache {
    /// Judges a move from one LLC to another, by what is known of both.
    fn can_migrate_llc(&self, src: CpuId, dst: CpuId, util: u64, to_pref: bool) -> LlcMig {
        match (self.stats(src), self.stats(dst)) {
            (Some(from), Some(to)) => self.knobs.can_migrate_llc(from, to, util, to_pref),
            _ => LlcMig::Unrestricted,
        }
    }
}
