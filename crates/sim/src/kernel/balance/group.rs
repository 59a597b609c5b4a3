//! Load of a group of CPUs, and how much should move between two groups.
//!
//! ```text
//! overloaded    more tasks than CPUs, and util or runnable above what they have
//! llc balance   it has tasks that prefer the cache of who looks
//! imbalanced    affinity has kept tasks there that should have left
//! smt balance   a core of which several threads are busy, seen from an idle CPU
//! misfit        a task that needs a bigger CPU (or a CPU that other classes use)
//! fully busy    no capacity left           has spare    capacity left
//! ```
//!
//! Source: kernel/sched/fair.c.

use crate::kernel::balance::env::{Env, Migrate, When};
use crate::kernel::placement::fork::{
    GroupLoad, GroupType, adjust_numa_imbalance, classify, may_overload,
};
use crate::kernel::placement::idle_sibling::is_core_idle;
use crate::state::machine::Machine;
use crate::state::topology::{SchedDomain, SchedGroup, sd};
use risetime_kernel::fits::capacity_greater;
use risetime_kernel::sched_cache::LlcStats;
use risetime_kernel::units::{Capacity, CpuId};
use risetime_kernel::{KernelRev, features};

/// A group's load (`struct sg_lb_stats`).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// Place of the group among the domain's groups.
    pub(super) at: usize,
    pub(super) weight: usize,
    pub(super) cores: usize,
    /// Flags of the domain that it is.
    pub(super) flags: u32,
    pub(super) two_on_a_cpu: bool,
    pub(super) overutilized: bool,
    pub(super) kind: GroupType,
    pub(super) load: u64,
    pub(super) util: u64,
    pub(super) capacity: u64,
    pub(super) running: usize,
    pub(super) fair_queued: usize,
    pub(super) idle_cpus: usize,
    /// The biggest misfit task's, if this CPU can help.
    pub(super) misfit_load: u64,
    /// True if there is a misfit task at all.
    pub(super) misfit_anywhere: bool,
    pub(super) avg_load: u64,
    pub(super) max_capacity: u64,
    pub(super) min_capacity: u64,
    /// Number of tasks, of an llc_balance group, that prefer the cache of the CPU that looks
    /// (`nr_pref_dst_llc`).
    pub(super) prefers_here: u64,
}

impl Group {
    /// The LLC statistics of the group, for one that is an LLC.
    pub(super) fn llc_stats(&self) -> LlcStats {
        LlcStats { util_avg: self.util, capacity: self.capacity }
    }
}

/// Sums over all groups of a domain (`struct sd_lb_stats`).
#[derive(Default)]
pub(super) struct Sums {
    pub(super) load: u64,
    pub(super) util: u64,
    pub(super) capacity: u64,
    pub(super) overutilized: bool,
    /// Two tasks on a CPU, or a misfit one; not the own group's, which cannot pull from itself.
    pub(super) overloaded: bool,
}

impl Sums {
    pub(super) fn add(&mut self, g: &Group) {
        self.load += g.load;
        self.util += g.util;
        self.capacity += g.capacity;
        self.overutilized |= g.overutilized;
        self.overloaded |= g.two_on_a_cpu || g.misfit_anywhere;
    }
}

/// `check_cpu_capacity`: other classes take noticeably much of `cpu`.
pub(super) fn reduced_capacity(m: &Machine, cpu: CpuId, imbalance_pct: u64) -> bool {
    let c = m.cpu(cpu);
    c.cpu_capacity.0 * imbalance_pct < c.capacity.0 * 100
}

/// The number of fair tasks that load balancing counts: until 6.13 also those whose dequeue is
/// delayed (`h_nr_running`, then `h_nr_runnable`).
pub(super) fn fair_queued(m: &Machine, cpu: CpuId) -> usize {
    m.cpu(cpu).fair_queued(m.rev)
}

/// Whether tasks should rather be in the groups beside the busiest one: as that one says
/// (`sds->prefer_sibling`).
pub(super) fn prefer_sibling(env: &Env, m: &Machine, busiest: &Group) -> bool {
    match m.lb_rev().has(features::PREFER_SIBLING_BUSIEST) {
        true => busiest.flags & sd::PREFER_SIBLING != 0,
        false => prefer_sibling_pre_6_5(env, m),
    }
}

/// Whether siblings are preferred, as the own domain below says.
fn prefer_sibling_pre_6_5(env: &Env, m: &Machine) -> bool {
    let below = env.level.checked_sub(1);
    below.is_some_and(|l| m.cpu(env.this).sched_domains[l].has(sd::PREFER_SIBLING))
}

/// The number of tasks that the busiest group has more: since 6.6 per core (`sibling_imbalance`).
pub(super) fn sibling_imbalance(
    rev: KernelRev,
    idle: When,
    busiest: &Group,
    local: &Group,
) -> usize {
    if !rev.has(features::SIBLING_IMBALANCE) {
        // A busy CPU pulls, too.
        return busiest.running.saturating_sub(local.running);
    }
    if idle == When::Busy || busiest.running == 0 {
        return 0;
    }
    if busiest.cores == local.cores {
        return busiest.running.saturating_sub(local.running);
    }
    let cores = local.cores + busiest.cores;
    let excess = (local.cores * busiest.running).saturating_sub(busiest.cores * local.running);
    let imbalance = (2 * excess + cores) / cores;
    if imbalance <= 1 && local.running == 0 && busiest.running > 1 { 2 } else { imbalance }
}

/// `update_sg_lb_stats`.
#[inline]
pub(super) fn group_stats(
    m: &Machine,
    env: &Env,
    domain: &SchedDomain,
    group: &SchedGroup,
    at: usize,
) -> Group {
    let Some(sum) = m.tallied(group, (!env.whole).then_some(&env.cpus)) else {
        return group_stats_one_by_one(m, env, domain, group, at);
    };
    let mut g = Group {
        two_on_a_cpu: sum.crowded > 0,
        load: sum.load,
        util: sum.util,
        capacity: sum.capacity,
        running: sum.running as usize,
        fair_queued: sum.fair_queued as usize,
        idle_cpus: sum.idle_cpus as usize,
        // The group's CPUs are all alike.
        max_capacity: sum.capacity / u64::from(group.weight.max(1)),
        min_capacity: sum.capacity / u64::from(group.weight.max(1)),
        ..Group::empty(group, at)
    };
    g.classify(m, env, domain, group, sum.runnable);
    debug_assert_eq!(g, group_stats_one_by_one(m, env, domain, group, at));
    g
}

/// [`group_stats`] by a look at every CPU.
fn group_stats_one_by_one(
    m: &Machine,
    env: &Env,
    domain: &SchedDomain,
    group: &SchedGroup,
    at: usize,
) -> Group {
    let local = at == 0;
    let mut g = Group::empty(group, at);
    let asym = domain.has(sd::ASYM_CPUCAPACITY);
    let mut runnable = 0;
    for cpu in group.span.iter() {
        let c = m.cpu(cpu);
        let capacity = c.cpu_capacity.0;
        g.capacity += capacity;
        g.max_capacity = g.max_capacity.max(capacity);
        g.min_capacity = g.min_capacity.min(capacity);
        if !env.cpus.contains(cpu) {
            continue;
        }
        let (util, running) = (m.cpu_util_cfs(cpu), c.nr_running());
        g.load += c.cfs_avg.avg.load_avg;
        g.util += util.0;
        runnable += c.cfs_avg.avg.runnable_avg.0;
        g.running += running;
        g.fair_queued += c.fair_queued(m.rev);
        g.overutilized |= m.root.energy_aware && m.overutilized_by(c, util);
        if c.is_idle() {
            g.idle_cpus += 1;
            continue;
        }
        g.two_on_a_cpu |= running > 1;
        if local {
            continue;
        }
        if asym {
            g.misfit_anywhere |= c.misfit_task_load != 0;
            g.misfit_load = g.misfit_load.max(c.misfit_task_load);
        } else if env.idle != When::Busy
            && c.fair_queued(m.rev) == 1
            && reduced_capacity(m, cpu, domain.imbalance_pct)
        {
            g.misfit_load = g.misfit_load.max(c.cfs_avg.avg.load_avg);
        }
    }
    g.classify(m, env, domain, group, runnable);
    g
}

impl Group {
    /// A group before anything of it is counted.
    pub(super) fn empty(group: &SchedGroup, at: usize) -> Group {
        Group {
            at,
            weight: group.weight as usize,
            cores: group.cores as usize,
            misfit_anywhere: false,
            flags: group.flags,
            two_on_a_cpu: false,
            overutilized: false,
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
            prefers_here: 0,
        }
    }

    /// Classifies the group, all of which has been counted.
    #[inline]
    fn classify(
        &mut self,
        m: &Machine,
        env: &Env,
        domain: &SchedDomain,
        group: &SchedGroup,
        runnable: u64,
    ) {
        // Until 7.2 a misfit task counts also where it cannot be helped.
        let helps = !m.rev.has(features::MISFIT_HELPED)
            || capacity_greater(m.capacity_of(env.dst), Capacity(self.max_capacity));
        if domain.has(sd::ASYM_CPUCAPACITY) && !helps {
            self.misfit_load = 0;
        }
        let shared = group.flags & sd::SHARE_CPUCAPACITY != 0;
        let load = GroupLoad {
            capacity: self.capacity,
            util: self.util,
            runnable,
            running: self.running,
            weight: self.weight,
            may_overload: may_overload(m, self.overutilized),
        };
        let local = self.at == 0;
        let counted = (self.misfit_load != 0, self.running);
        let asked = if local { None } else { m.llc_balance(env, domain, group, counted) };
        self.prefers_here = asked.unwrap_or(0);
        let strain = if asked.is_some() {
            Some(GroupType::LlcBalance)
        } else if m.root.group_imbalance[group.id] {
            Some(GroupType::Imbalanced)
        } else if m.lb_rev().has(features::SMT_BALANCE)
            && !local
            && env.idle != When::Busy
            && shared
            && self.fair_queued > 1
        {
            // `smt_balance`
            Some(GroupType::SmtBalance)
        } else {
            (self.misfit_load != 0).then_some(GroupType::Misfit)
        };
        self.kind = classify(&load, domain.imbalance_pct, strain);
        if self.kind == GroupType::Overloaded {
            self.avg_load = self.load * 1024 / self.capacity.max(1);
        }
    }
}

/// `update_sd_pick_busiest`: whether `g` is busier than the busiest so far, and can be helped.
pub(super) fn busier(
    m: &Machine,
    env: &Env,
    asym: bool,
    local: &Group,
    g: &Group,
    busiest: Option<&Group>,
) -> bool {
    let here = m.capacity_of(env.dst);
    // A busy sibling takes away what a bigger core would give.
    let core_idle = || !m.rev.has(features::DST_CORE_IDLE) || is_core_idle(m, env.dst);
    let misfit_elsewhere = asym
        && g.kind == GroupType::Misfit
        && (!core_idle()
            || !capacity_greater(here, Capacity(g.max_capacity))
            || local.kind != GroupType::HasSpare);
    if g.fair_queued == 0 || misfit_elsewhere {
        return false;
    }
    let kind = busiest.map_or(GroupType::HasSpare, |b| b.kind);
    // In 6.1, 6.8 and 6.11 a group of a busier kind is taken whatever its CPUs are.
    let by_kind_alone = !m.rev.has(features::BIGGER_GROUP_FULL) && g.kind > kind;
    let too_big = asym
        && g.kind <= GroupType::FullyBusy
        && !by_kind_alone
        && capacity_greater(Capacity(g.min_capacity), here);
    !too_big
        && match busiest {
            Some(b) if g.kind == b.kind => busier_of_its_kind(m.lb_rev(), g, b),
            _ => g.kind >= kind,
        }
}

/// Whether `g` is busier than `busiest`, which is of its kind.
pub(super) fn busier_of_its_kind(rev: KernelRev, g: &Group, busiest: &Group) -> bool {
    match g.kind {
        GroupType::Overloaded => g.avg_load > busiest.avg_load,
        GroupType::Misfit if rev.has(features::MISFIT_FIRST) => g.misfit_load > busiest.misfit_load,
        GroupType::Misfit => g.misfit_load >= busiest.misfit_load,
        // The first one is as good as any.
        GroupType::Imbalanced => false,
        GroupType::LlcBalance => g.prefers_here > busiest.prefers_here,
        GroupType::SmtBalance if g.idle_cpus != 0 || busiest.idle_cpus != 0 => {
            has_less_spare(g, busiest)
        }
        // Nobody has counted their `avg_load`: it is 0, and up to 6.4 the first one stays.
        GroupType::FullyBusy if !rev.has(features::FULLY_BUSY_LAST) => {
            g.avg_load > busiest.avg_load
        }
        GroupType::SmtBalance | GroupType::FullyBusy => {
            g.avg_load > busiest.avg_load || (g.avg_load == busiest.avg_load && !is_core(busiest))
        }
        // No task should leave a core of its own, whose threads would then both be idle.
        GroupType::HasSpare
            if rev.has(features::SMT_VS_NONSMT_GROUPS) && smt_vs_nonsmt_groups(g, busiest) =>
        {
            !is_core(g) || g.fair_queued > 1
        }
        GroupType::HasSpare => has_less_spare(g, busiest),
    }
}

fn has_less_spare(g: &Group, busiest: &Group) -> bool {
    g.idle_cpus < busiest.idle_cpus
        || (g.idle_cpus == busiest.idle_cpus && g.running > busiest.running)
}

/// Whether the group is one core of several threads.
fn is_core(g: &Group) -> bool {
    g.flags & sd::SHARE_CPUCAPACITY != 0
}

/// Whether one group is a core of several threads, and the other is not.
pub(super) fn smt_vs_nonsmt_groups(a: &Group, b: &Group) -> bool {
    is_core(a) != is_core(b)
}

/// `calculate_imbalance`: what to move, and how much of it.
pub(super) fn imbalance(
    rev: KernelRev,
    local: &Group,
    busiest: &Group,
    idle: When,
    domain: &SchedDomain,
    prefer_sibling: bool,
    domain_avg: u64,
) -> (Migrate, u64) {
    if matches!(busiest.kind, GroupType::SmtBalance | GroupType::Imbalanced) {
        return (Migrate::Task, 1);
    }
    if busiest.kind == GroupType::LlcBalance {
        return (Migrate::Llc, 1);
    }
    if local.kind == GroupType::HasSpare {
        if busiest.kind > GroupType::FullyBusy && !domain.has(sd::SHARE_LLC) {
            let room = local.capacity.saturating_sub(local.util);
            return if idle != When::Busy && room == 0 {
                (Migrate::Task, 1)
            } else {
                (Migrate::Util, room)
            };
        }
        let tasks = if busiest.weight == 1 || prefer_sibling {
            sibling_imbalance(rev, idle, busiest, local)
        } else {
            local.idle_cpus.saturating_sub(busiest.idle_cpus)
        };
        let mut tasks = tasks as u64;
        if domain.has(sd::NUMA) {
            let running = local.running as u64 + 1;
            tasks = adjust_numa_imbalance(tasks, running, u64::from(domain.imb_numa_nr));
        }
        return (Migrate::Task, tasks / 2);
    }
    let local_avg = local.load * 1024 / local.capacity.max(1);
    if local.kind < GroupType::Overloaded
        && (local_avg >= busiest.avg_load || local_avg >= domain_avg)
    {
        return (Migrate::Load, 0);
    }
    let from = busiest.avg_load.saturating_sub(domain_avg) * busiest.capacity;
    let to = domain_avg.saturating_sub(local_avg) * local.capacity;
    (Migrate::Load, from.min(to) / 1024)
}
