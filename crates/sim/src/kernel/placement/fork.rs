//! Placement of a new task: the idlest CPU of the idlest group, level by level
//! (`sched_balance_find_dst_cpu`).
//!
//! ```text
//! from the widest domain of the parent's CPU downwards:
//!   group   idlest of the others, if it beats the local one  (has_spare: most idle CPUs)
//!   CPU     one that only SCHED_IDLE tasks use; else idle with the shortest exit latency, latest
//!           idle first; else least loaded
//!   go on below that CPU, in smaller domains only
//! ```
//!
//! The parent is rt-app's main thread, which is awake on the first CPU of the workload.
//! Source: kernel/sched/fair.c.

use super::idle_sibling::choose_sched_idle_rq;
use super::{Placed, within_affinity};
use crate::state::cpuset::CpuSet;
use crate::state::machine::Machine;
use crate::state::topology::{SchedDomain, SchedGroup, sd};
use risetime_kernel::features;
use risetime_kernel::fits::Fit;
use risetime_kernel::units::{CpuId, Instant, TaskId};
use risetime_trace::Why;

/// Load of a group, idlest first (`enum group_type`, as far as forks use it).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupType {
    /// The group has capacity to spare.
    HasSpare,
    /// Just full.
    FullyBusy,
    /// No CPU of it fits the task, or one has a task that does not fit.
    Misfit,
    /// Several threads of a core are busy.
    SmtBalance,
    /// Affinity has kept tasks there.
    Imbalanced,
    /// The group has tasks that prefer the cache of the CPU that looks for some.
    LlcBalance,
    /// The group is more than full.
    Overloaded,
}

struct Stats {
    kind: GroupType,
    running: usize,
    idle_cpus: usize,
    util: u64,
    avg_load: u64,
    max_capacity: u64,
}

pub(super) fn idlest_cpu(m: &Machine, task: TaskId) -> Placed {
    let mut cpu = m.task(task).cpu;
    let mut below = u32::MAX;
    loop {
        // Nodes too far apart do not share their forks.
        let levels = m.cpu(cpu).sched_domains.iter().take_while(|d| d.has(sd::BALANCE_FORK));
        let level = levels.filter(|d| d.weight < below).last();
        let Some(domain) = level else { break };
        below = domain.weight;
        if let Some(group) = idlest_group(m, task, domain) {
            cpu = idlest_of_group(m, task, &group, cpu);
        }
    }
    within_affinity(m, task, Placed { cpu, why: Why::ForkIdlest })
}

/// `sched_balance_find_dst_group`; `None`: the local group is as good.
fn idlest_group(m: &Machine, task: TaskId, domain: &SchedDomain) -> Option<CpuSet> {
    let allowed = &m.task(task).allowed;
    let usable = |g: &&SchedGroup| g.span.intersects(allowed);
    let pct = domain.imbalance_pct;
    let local = Some(domain.local()).filter(usable).map(|g| stats(m, task, domain, g));
    let mut idlest: Option<(CpuSet, Stats)> = None;
    for group in domain.groups().skip(1).filter(usable) {
        let s = stats(m, task, domain, group);
        if idlest.as_ref().is_none_or(|(_, best)| idler(&s, best)) {
            idlest = Some((group.span, s));
        }
    }
    let (group, best) = idlest?;
    let Some(local) = local else { return Some(group) };
    let imbalance = 1024 * (pct - 100) / 100;
    let push = match local.kind.cmp(&best.kind) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => match local.kind {
            GroupType::HasSpare => {
                let w = domain.local().span.and(allowed).len() as u64;
                let differ = local.idle_cpus.abs_diff(best.idle_cpus) as u64;
                let few = u64::from(domain.imb_numa_nr).min(w);
                let stays = domain.has(sd::NUMA)
                    && adjust_numa_imbalance(differ, local.running as u64 + 1, few) == 0;
                !stays && local.idle_cpus < best.idle_cpus
            }
            GroupType::SmtBalance | GroupType::Imbalanced | GroupType::LlcBalance => false,
            GroupType::Misfit => local.max_capacity < best.max_capacity,
            GroupType::FullyBusy | GroupType::Overloaded => {
                let near = domain.has(sd::NUMA) && best.avg_load + imbalance >= local.avg_load;
                !near
                    && best.avg_load < local.avg_load + imbalance
                    && 100 * local.avg_load > pct * best.avg_load
            }
        },
    };
    push.then_some(group)
}

/// `adjust_numa_imbalance`: a node that runs few tasks may differ by two from another, so that tasks
/// that talk stay together.
pub(crate) fn adjust_numa_imbalance(imbalance: u64, running: u64, imb_numa_nr: u64) -> u64 {
    const NUMA_IMBALANCE_MIN: u64 = 2;
    let allowed = running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN;
    if allowed { 0 } else { imbalance }
}

/// `update_pick_idlest`: is `s` idler than the best so far?
fn idler(s: &Stats, best: &Stats) -> bool {
    if s.kind != best.kind {
        return s.kind < best.kind;
    }
    match s.kind {
        GroupType::HasSpare => {
            s.idle_cpus > best.idle_cpus || (s.idle_cpus == best.idle_cpus && s.util < best.util)
        }
        GroupType::SmtBalance | GroupType::Imbalanced | GroupType::LlcBalance => false,
        GroupType::Misfit => s.max_capacity > best.max_capacity,
        GroupType::FullyBusy | GroupType::Overloaded => s.avg_load < best.avg_load,
    }
}

/// `update_sg_wakeup_stats`.
fn stats(m: &Machine, task: TaskId, domain: &SchedDomain, group: &SchedGroup) -> Stats {
    // Before 6.19 only the later long-term ones leave out what the task may not use.
    let counted = match m.rev.has(features::FORK_ALLOWED) {
        true => group.span.and(&m.task(task).allowed),
        false => group.span,
    };
    let (mut load, mut util, mut runnable, mut running, mut idle_cpus) = (0, 0, 0, 0, 0);
    let mut fits = !domain.has(sd::ASYM_CPUCAPACITY);
    for cpu in counted.iter() {
        let c = m.cpu(cpu);
        load += c.cfs_avg.avg.load_avg;
        util += m.cpu_util_without(cpu, task).0;
        runnable += c.cfs_avg.avg.runnable_avg.0;
        let parent = parent_on(m, task, cpu);
        running += c.nr_running() + usize::from(parent);
        idle_cpus += usize::from(m.idle_cpu(cpu) && !parent);
        fits = fits || m.task_fits(task, cpu) == Fit::Fits;
    }
    let (mut capacity, mut max_capacity) = (0, 0);
    for cpu in group.span.iter() {
        let own = m.capacity_of(cpu).0;
        (capacity, max_capacity) = (capacity + own, own.max(max_capacity));
    }
    let kind = classify(
        &GroupLoad {
            capacity,
            util,
            runnable,
            running,
            weight: group.weight as usize,
            // `group_overutilized` is not counted here, so that it is never set.
            may_overload: may_overload(m, false),
        },
        domain.imbalance_pct,
        match m.root.group_imbalance[group.id] {
            true => Some(GroupType::Imbalanced),
            false => (!fits).then_some(GroupType::Misfit),
        },
    );
    let avg_load = if kind >= GroupType::FullyBusy { load * 1024 / capacity.max(1) } else { 0 };
    Stats { kind, running, idle_cpus, util, avg_load, max_capacity }
}

/// Whether a parent that is no task of this machine runs on `cpu` while it creates `task`.
fn parent_on(m: &Machine, task: TaskId, cpu: CpuId) -> bool {
    m.creator.is_none() && m.task(task).cpu == cpu
}

/// Figures by which a group is classified.
pub(crate) struct GroupLoad {
    pub(crate) capacity: u64,
    pub(crate) util: u64,
    pub(crate) runnable: u64,
    pub(crate) running: usize,
    pub(crate) weight: usize,
    /// [`may_overload`]
    pub(crate) may_overload: bool,
}

/// Whether a group can be overloaded at all: since 7.2, with EAS on, only if one of its CPUs is
/// overutilized.
pub(crate) fn may_overload(m: &Machine, overutilized: bool) -> bool {
    !m.rev.has(features::GROUP_OVERUTILIZED) || !m.root.energy_aware || overutilized
}

/// `group_classify`: the first that holds of overloaded, what else strains it, has spare, fully busy.
pub(crate) fn classify(g: &GroupLoad, imbalance_pct: u64, strain: Option<GroupType>) -> GroupType {
    let full_util = g.capacity * 100 < g.util * imbalance_pct;
    let full_runnable = g.capacity * imbalance_pct < g.runnable * 100;
    if g.may_overload && g.running > g.weight && (full_util || full_runnable) {
        GroupType::Overloaded
    } else if let Some(strain) = strain {
        strain
    } else if g.running < g.weight || (!full_runnable && g.capacity * 100 > g.util * imbalance_pct)
    {
        GroupType::HasSpare
    } else {
        GroupType::FullyBusy
    }
}

/// `sched_balance_find_dst_group_cpu`.
pub(crate) fn idlest_of_group(m: &Machine, task: TaskId, group: &CpuSet, this_cpu: CpuId) -> CpuId {
    if group.len() == 1 {
        return group.lowest().unwrap_or(this_cpu);
    }
    // The least exit latency so far, if any idle CPU's state is known; the CPU, and since when.
    let mut least_latency = None;
    let mut idle: Option<(Instant, CpuId)> = None;
    let mut loaded: Option<(u64, CpuId)> = None;
    for cpu in group.and(&m.task(task).allowed).iter() {
        let c = m.cpu(cpu);
        if choose_sched_idle_rq(m, cpu, task) && !parent_on(m, task, cpu) {
            return cpu;
        }
        if m.idle_cpu(cpu) && !parent_on(m, task, cpu) {
            let states = &m.platform.domains[c.domain].idle;
            let state = c.idle.and_then(|i| i.state);
            let latency = state.and_then(|i| Some(states.get(i as usize)?.longest_wakeup()));
            let since = c.idle_stamp;
            let shallower = latency.is_some_and(|l| least_latency.is_none_or(|least| l < least));
            let alike = latency.is_none() || latency == least_latency;
            if shallower {
                least_latency = latency;
            }
            if shallower || (alike && idle.is_none_or(|(latest, _)| since > latest)) {
                idle = Some((since, cpu));
            }
        } else if idle.is_none() {
            let load = c.cfs_avg.avg.load_avg;
            if loaded.is_none_or(|(least, _)| load < least) {
                loaded = Some((load, cpu));
            }
        }
    }
    idle.map(|(_, cpu)| cpu).or(loaded.map(|(_, cpu)| cpu)).unwrap_or(this_cpu)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::experiment;
    use crate::tests::spread::platform;
    use crate::{Counterfactual, setup};
    use risetime_kernel::units::Span;
    use risetime_model::{Platform, Workload};

    /// The CPU on which a new task is placed that may use CPUs 0 and 4, from CPU 0, in a machine of
    /// two caches whose CPUs 5 to 7 are busy.
    fn placed(kernel: &str, prepare: impl FnOnce(&mut Machine)) -> CpuId {
        let p = platform("0-7", r#"llc = ["0-3", "4-7"]"#);
        let text =
            r#"{"tasks": {"new": {"instance": 4, "cpus": [0, 4], "loop": -1, "run": 1000}}}"#;
        let workload = Workload::parse(text, "made").expect("a workload");
        let policy = format!("linux-{kernel}");
        let e = experiment(p, workload, &policy, &[], Span::from_ms(1));
        let mut nobody = ();
        let mut e =
            setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("an engine");
        (5..8).for_each(|c| e.k.m.cpu_mut(CpuId(c)).curr = Some(TaskId(c - 4)));
        prepare(&mut e.k.m);
        let task = TaskId(0);
        e.k.m.task_mut(task).cpu = CpuId(0);
        let top = e.k.m.cpu(CpuId(0)).sched_domains.last().expect("two levels");
        idlest_group(&e.k.m, task, top)
            .map_or(CpuId(0), |group| idlest_of_group(&e.k.m, task, &group, CpuId(0)))
    }

    #[test]
    fn cpus_that_a_task_may_not_use_count_up_to_6_11() {
        for kernel in ["6.1", "6.8", "6.11"] {
            assert_eq!(placed(kernel, |_| {}), CpuId(0), "{kernel}: three idle ones beside it");
        }
        for kernel in ["6.6", "6.12", "7.2", "7.3"] {
            assert_eq!(placed(kernel, |_| {}), CpuId(4), "{kernel}");
        }
    }

    #[test]
    fn nothing_is_added_where_affinity_holds_tasks_back() {
        let imbalanced = |m: &mut Machine| {
            let top = m.cpu(CpuId(0)).sched_domains.last().expect("two levels");
            let other = top.groups().nth(1).expect("two groups").id;
            m.root.group_imbalance[other] = true;
        };
        for kernel in ["6.1", "6.12", "7.2"] {
            assert_eq!(placed(kernel, imbalanced), CpuId(0), "{kernel}");
        }
    }

    #[test]
    fn since_7_2_eas_knows_no_overload_without_an_overutilized_cpu() {
        let kind = |kernel: &str, overutilized| {
            let m1 = Platform::load("m1").expect("built in");
            let text = r#"{"tasks": {"t": {"run": 1000}}}"#;
            let workload = Workload::parse(text, "made").expect("a workload");
            let policy = format!("linux-{kernel}");
            let e = experiment(m1, workload, &policy, &[], Span::from_ms(1));
            let mut nobody = ();
            let e =
                setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("an engine");
            let may_overload = may_overload(&e.k.m, overutilized);
            let full = GroupLoad {
                capacity: 100,
                util: 99,
                runnable: 200,
                running: 2,
                weight: 1,
                may_overload,
            };
            classify(&full, 117, None)
        };
        assert_eq!(kind("6.12", false), GroupType::Overloaded);
        for kernel in ["7.2", "7.3"] {
            assert_eq!(kind(kernel, true), GroupType::Overloaded, "{kernel}");
            assert_eq!(kind(kernel, false), GroupType::FullyBusy, "{kernel}");
        }
    }

    /// An interrupt ends an idle state and another one begins: the CPU went idle when its last task left (`rq->idle_stamp`).
    #[test]
    fn of_idle_cpus_alike_the_one_that_a_task_left_last_is_taken() {
        let text = r#"{"tasks": {
            "new":   {"loop": -1, "run": 1000},
            "left":  {"cpus": [2], "loop": 1, "delay": 1000, "run": 500},
            "ticks": {"cpus": [1], "loop": -1, "delay": 5000, "run": 10, "sleep": 30000}}}"#;
        let workload = Workload::parse(text, "made").expect("a workload");
        let p = platform("0-3", "");
        let e = experiment(p, workload, "linux-6.1", &[], Span::from_ms(9));
        let mut nobody = ();
        let mut e =
            setup::simulation(&e, &mut nobody, Counterfactual::default()).expect("an engine");
        e.run(Instant(9_000_000)).expect("runs");
        let m = &mut e.k.m;
        let all: CpuSet = [1, 2, 3].into_iter().map(CpuId).collect();
        let taken = |m: &Machine| idlest_of_group(m, TaskId(0), &all, CpuId(0));
        assert_eq!(taken(m), CpuId(1), "left at 5 ms");
        // Its interrupt is over: no task has left.
        let now = m.now;
        m.cpu_mut(CpuId(2)).idle.as_mut().expect("it is idle").since = now;
        assert_eq!(taken(m), CpuId(1));
        assert!(m.cpu(CpuId(2)).idle_stamp > m.cpu(CpuId(3)).idle_stamp);
        m.cpu_mut(CpuId(1)).curr = Some(TaskId(2));
        assert_eq!(taken(m), CpuId(2), "left at 2 ms");
    }
}
