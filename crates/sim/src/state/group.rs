//! Task groups: what a group has on each CPU, and what one can ask about it.
//!
//! ```text
//!  CPU's cfs_rq ──┬─ task                       level: one group's cfs_rq on one CPU
//!                 └─ ge(/a) = cfs_rq(/a) ──┬─ task
//!                                          └─ ge(/a/b) = cfs_rq(/a/b) ── task …
//! ```
//!
//! What happens to them: [`crate::kernel::hierarchy`]; quota: [`crate::kernel::bandwidth`].
//!
//! Two generations. Up to 7.2 every level has an EEVDF queue of its own, a pick walks down them, and
//! a group's entity may leave late like a task's. From 7.3 all tasks of a CPU are in one queue, each
//! with its part of its groups' weights (`h_load`, renewed at enqueue, pick and tick), and only load
//! tracking and counting is done per level.
//!
//! A workload without groups has none of this: [`Groups::on`] is false and nothing here runs.
//!
//! Leaves out: `autogroup` (there is no terminal), group statistics, changing a group's properties
//! while it runs.
//! Source: kernel/sched/fair.c, symbols named at each function.

use crate::mech::rt_groups::state::{Promised, RtGroupRqs};
use crate::state::bandwidth::{Pool, RqBandwidth};
use crate::state::machine::{Cpu, Machine, UPTIME};
use risetime_kernel::cfs_rq::{CfsRq, Tunables};
use risetime_kernel::eevdf::{Entity, FairPolicy, LoadWeight};
use risetime_kernel::group::{
    Contribution, IDLE_SHARES, TgLoad, calc_prop_weight, h_load_of, shares_of_cgroup_weight,
};
use risetime_kernel::pelt::Decay;
use risetime_kernel::pelt::{SchedAvg, get_pelt_divider};
use risetime_kernel::pelt_cfs::CfsRqAvg;
use risetime_kernel::rt_group::internal_runtime;
use risetime_kernel::uclamp::{Uclamp, UclampLimits, cpu_util_update_eff};
use risetime_kernel::units::{ClockPelt, CpuId, GroupId, TaskId};
use risetime_kernel::weight::NICE_0_LOAD;
use risetime_kernel::{KernelRev, features};
use risetime_model::workload;
use std::cell::Cell;

/// The groups of a run; the root first, and parents before their children.
#[derive(Default)]
pub(crate) struct Groups {
    pub(crate) list: Vec<TaskGroup>,
    /// Every level has a queue of its own (up to 7.2).
    pub(crate) nested: bool,
    /// Some group has a quota.
    pub(crate) limited: bool,
    paths: Vec<String>,
}

/// A group (`struct task_group`).
pub(crate) struct TaskGroup {
    pub(crate) parent: GroupId,
    /// `tg->shares`, with its fixed-point bits.
    pub(crate) shares: u64,
    /// `tg->idle`.
    idle: bool,
    /// The clamps that hold for its tasks (`tg->uclamp`).
    uclamp: Uclamp,
    pub(crate) load: TgLoad,
    pub(crate) pool: Option<Pool>,
    /// CPU time that the group's real-time tasks have of each CPU, if it says so itself
    /// ([`crate::mech::rt_groups::state`]).
    pub(crate) promised: Option<Promised>,
    /// Queues by CPU.
    pub(crate) rq: Vec<GroupRq>,
}

/// A group on one CPU: its runqueue and its entity. Of the root, only the counts are used: the
/// queue and its averages are the CPU's own.
pub(crate) struct GroupRq {
    /// The queue; empty from 7.3.
    pub(crate) cfs: CfsRq,
    pub(crate) avg: CfsRqAvg,
    /// `cfs_rq->load`: the weight of all that is queued, with its fixed-point bits.
    pub(crate) load: u64,
    pub(crate) nr_queued: u32,
    pub(crate) h_nr_queued: u32,
    pub(crate) h_nr_runnable: u32,
    /// Something of it is the CPU's (`cfs_rq->curr`, from 7.3 `h_curr`).
    pub(crate) running: bool,
    /// The group's entity.
    pub(crate) se: GroupSe,
    pub(crate) told: Contribution,
    h_load: Cell<u64>,
    /// Time at which `h_load` was found, in jiffies.
    h_load_at: Cell<u64>,
    pub(crate) bandwidth: RqBandwidth,
}

/// A group's entity on one CPU (`tg->se[cpu]`).
pub(crate) struct GroupSe {
    pub(crate) avg: SchedAvg,
    /// Weight of the entity, with its fixed-point bits.
    pub(crate) load: u64,
    /// `runnable_weight`: how many of its tasks were runnable when that was last looked at.
    pub(crate) runnable: u64,
    pub(crate) on_rq: bool,
    /// While it is off its queue, and queues are nested.
    pub(crate) entity: Option<Entity>,
}

impl Groups {
    /// The groups of a workload on a machine of `cpus` CPUs; none if it names none. `served`: what they say of real-time tasks holds.
    pub(crate) fn new(
        groups: &[workload::TaskGroup],
        rev: KernelRev,
        cpus: usize,
        tunables: Tunables,
        served: bool,
    ) -> Groups {
        if groups.is_empty() {
            return Groups::default();
        }
        let root = Uclamp { min: Uclamp::default().max, max: Uclamp::default().max };
        let new = |id: GroupId, parent, shares, idle, uclamp, pool| TaskGroup {
            parent,
            shares,
            idle,
            uclamp,
            load: TgLoad::default(),
            pool,
            promised: None,
            rq: (0..cpus).map(|_| GroupRq::new(id, rev, tunables, idle)).collect(),
        };
        let mut list = vec![new(GroupId::ROOT, GroupId::ROOT, NICE_0_LOAD, false, root, None)];
        let mut paths = vec![String::new()];
        for (i, g) in groups.iter().enumerate() {
            let above = g.parent().unwrap_or("");
            let parent = paths.iter().position(|p| p == above).unwrap_or(0);
            let shares = if g.idle { IDLE_SHARES } else { shares_of_cgroup_weight(g.weight) };
            let request = Uclamp { min: g.uclamp_min, max: g.uclamp_max };
            let uclamp = cpu_util_update_eff(request, Some(list[parent].uclamp));
            let id = GroupId(i as u32 + 1);
            let pool = g.quota.map(|quota| Pool::new(quota, g.period, g.burst));
            let promised = g.rt_runtime.map(|runtime| Promised { runtime, period: g.rt_period });
            let group = new(id, GroupId(parent as u32), shares, g.idle, uclamp, pool);
            list.push(TaskGroup { promised: promised.filter(|_| served), ..group });
            paths.push(g.path.clone());
        }
        let limited = list.iter().any(|g| g.pool.is_some());
        Groups { list, nested: !rev.has(features::FLAT_QUEUE), limited, paths }
    }

    /// Whether the workload has groups.
    #[inline]
    pub(crate) fn on(&self) -> bool {
        !self.list.is_empty()
    }

    /// The group of that path; the workload was checked: there is one.
    pub(crate) fn find(&self, path: &str) -> GroupId {
        GroupId(self.paths.iter().position(|p| p == path).unwrap_or(0) as u32)
    }

    /// The group's path; "" is the root.
    pub(crate) fn path(&self, g: GroupId) -> &str {
        &self.paths[g.index()]
    }

    pub(crate) fn rq(&self, cpu: CpuId, g: GroupId) -> &GroupRq {
        &self.list[g.index()].rq[cpu.index()]
    }

    pub(crate) fn rq_mut(&mut self, cpu: CpuId, g: GroupId) -> &mut GroupRq {
        &mut self.list[g.index()].rq[cpu.index()]
    }

    pub(crate) fn parent(&self, g: GroupId) -> GroupId {
        self.list[g.index()].parent
    }

    /// Whether `g` is `inner` or stands above it.
    pub(crate) fn holds(&self, g: GroupId, inner: GroupId) -> bool {
        let mut at = inner;
        while at != g && at != GroupId::ROOT {
            at = self.parent(at);
        }
        at == g
    }

    /// Whether `g` or a group above it is idle (`cpu.idle`).
    pub(crate) fn is_idle(&self, g: GroupId) -> bool {
        let mut at = g;
        while at != GroupId::ROOT && !self.list[at.index()].idle {
            at = self.parent(at);
        }
        at != GroupId::ROOT
    }

    /// `active_context`: the group whose servers serve real-time tasks of `g`; the root: none does.
    pub(crate) fn served_by(&self, g: GroupId) -> GroupId {
        let mut at = g;
        while at != GroupId::ROOT && self.list[at.index()].promised.is_none() {
            at = self.parent(at);
        }
        at
    }

    /// Groups with servers, parents first, each with what it was promised.
    pub(crate) fn promised(&self) -> impl Iterator<Item = (GroupId, Promised)> + '_ {
        let all = (0..).map(GroupId).zip(&self.list);
        all.filter_map(|(g, group)| Some((g, group.promised?)))
    }

    /// `tg_compute_children_bw`: what the groups next below `g` that have servers were promised of each CPU.
    pub(crate) fn promised_below(&self, g: GroupId) -> u64 {
        let below = |of: &(GroupId, Promised)| of.0 != g && self.served_by(self.parent(of.0)) == g;
        self.promised().filter(below).map(|(_, promised)| promised.bw()).sum()
    }

    /// The servers of one CPU.
    pub(crate) fn servers(&self) -> RtGroupRqs {
        RtGroupRqs::new(self.promised().map(|(g, Promised { runtime, period })| {
            let runtime = internal_runtime(period, runtime, self.promised_below(g));
            (g, Promised { runtime, period })
        }))
    }

    /// The clamps that a task of `g` may ask for (`uclamp_tg_restrict`).
    pub(crate) fn limits(&self, g: GroupId) -> UclampLimits {
        let group = (g != GroupId::ROOT).then(|| self.list[g.index()].uclamp);
        UclampLimits { group, ..UclampLimits::default() }
    }
}

impl GroupRq {
    fn new(id: GroupId, rev: KernelRev, tunables: Tunables, idle: bool) -> GroupRq {
        let avg = SchedAvg { last_update_time: ClockPelt(UPTIME.0), ..SchedAvg::default() };
        let mut entity = Entity::new(id, LoadWeight::of_scaled(NICE_0_LOAD));
        if idle {
            entity.policy = FairPolicy::Idle;
        }
        GroupRq {
            cfs: CfsRq::new(rev, tunables),
            avg: CfsRqAvg { avg, ..CfsRqAvg::default() },
            load: 0,
            nr_queued: 0,
            h_nr_queued: 0,
            h_nr_runnable: 0,
            running: false,
            se: GroupSe { avg, load: NICE_0_LOAD, runnable: 0, on_rq: false, entity: Some(entity) },
            told: Contribution::default(),
            h_load: Cell::new(0),
            h_load_at: Cell::new(u64::MAX),
            bandwidth: RqBandwidth::default(),
        }
    }
}

impl Groups {
    /// The queue that tasks of `g` are in on `cpu`, to change, with its clock at the CPU's.
    #[inline]
    pub(crate) fn queue_mut<'a>(
        &'a mut self,
        c: &'a mut Cpu,
        cpu: CpuId,
        g: GroupId,
    ) -> &'a mut CfsRq {
        if g == GroupId::ROOT || !self.nested {
            return &mut c.cfs;
        }
        let queue = &mut self.list[g.index()].rq[cpu.index()].cfs;
        queue.update_clock(c.clock.clock_task.0);
        queue
    }

    /// The periods of the groups of `cpu` begin with its own: each counts from time 0 of PELT's clock, as
    /// long as none has been throttled. What has signals already is up to date, and keeps its averages.
    pub(crate) fn in_step(&mut self, decay: &Decay, c: &Cpu, cpu: CpuId) {
        let own = c.cfs_avg.avg;
        for group in &mut self.list {
            let rq = &mut group.rq[cpu.index()];
            for avg in [&mut rq.avg.avg, &mut rq.se.avg] {
                avg.period_contrib = own.period_contrib;
                if avg.load_sum == 0 {
                    avg.last_update_time = own.last_update_time;
                    continue;
                }
                let divider = u64::from(get_pelt_divider(decay, avg));
                avg.util_sum = (avg.util_avg.0 * divider) as u32;
                avg.runnable_sum = avg.runnable_avg.0 * divider;
            }
        }
    }

    /// Counts tasks in or out of a level of `cpu` (`h_nr_queued`, `h_nr_runnable`).
    pub(crate) fn count(&mut self, c: &mut Cpu, cpu: CpuId, g: GroupId, by: (i32, i32)) {
        let rq = self.rq_mut(cpu, g);
        rq.h_nr_queued = rq.h_nr_queued.wrapping_add_signed(by.0);
        rq.h_nr_runnable = rq.h_nr_runnable.wrapping_add_signed(by.1);
        if g == GroupId::ROOT && self.nested {
            let rq = self.rq(cpu, g);
            c.h_nr = Some((rq.h_nr_queued, rq.h_nr_runnable));
        }
    }
}

/// The load-tracking side of a level, its group's or the CPU's own.
pub(crate) fn level_avg<'a>(
    c: &'a mut Cpu,
    groups: &'a mut Groups,
    cpu: CpuId,
    g: GroupId,
) -> &'a mut CfsRqAvg {
    if g == GroupId::ROOT {
        c.needs_changed();
        &mut c.cfs_avg
    } else {
        &mut groups.list[g.index()].rq[cpu.index()].avg
    }
}

impl Machine {
    /// The clamps that a task of `group` may ask for.
    pub(crate) fn limits_of(&self, group: GroupId) -> UclampLimits {
        let own = self.groups.limits(group);
        let own = match self.slots.pixel.as_deref() {
            Some(vendor) => vendor.limits(own, group),
            None => own,
        };
        self.hook(own, |h, own| h.uclamp_limits(group, own))
    }

    /// The queue that tasks of `g` are in on `cpu`.
    pub(crate) fn queue(&self, cpu: CpuId, g: GroupId) -> &CfsRq {
        if g == GroupId::ROOT || !self.groups.nested {
            &self.cpus[cpu.index()].cfs
        } else {
            &self.groups.rq(cpu, g).cfs
        }
    }

    /// The entity of `task` if it is queued on `cpu` (`p->se.on_rq`).
    pub(crate) fn fair_entity(&self, cpu: CpuId, task: TaskId) -> Option<&Entity> {
        self.queue(cpu, self.task(task).group).get(task)
    }

    /// The entity of the fair task that runs on `cpu`.
    pub(crate) fn fair_curr(&self, cpu: CpuId) -> Option<&Entity> {
        let mut curr = self.cpus[cpu.index()].cfs.curr()?;
        while let Some(g) = curr.id.as_group() {
            curr = self.groups.rq(cpu, g).cfs.curr()?;
        }
        Some(curr)
    }

    /// Iterates over all queued fair tasks of `cpu` with their entities, by queue.
    pub(crate) fn fair_queued(&self, cpu: CpuId) -> impl Iterator<Item = (TaskId, &Entity)> {
        let own = self.cpus[cpu.index()].cfs.iter();
        let of_groups = self.groups.list.iter().flat_map(move |g| g.rq[cpu.index()].cfs.iter());
        own.chain(of_groups).filter_map(|e| Some((e.id.as_task()?, e)))
    }

    /// The PELT averages of the level that a task of `g` is (to be) attached to on `cpu`.
    pub(crate) fn cfs_avg_of(&self, cpu: CpuId, g: GroupId) -> &CfsRqAvg {
        if g == GroupId::ROOT {
            &self.cpus[cpu.index()].cfs_avg
        } else {
            &self.groups.rq(cpu, g).avg
        }
    }

    /// The PELT clock of a level: the CPU's, less the time for which it was throttled
    /// (`cfs_rq_clock_pelt`).
    pub(crate) fn cfs_rq_clock_pelt(&self, cpu: CpuId, g: GroupId) -> ClockPelt {
        let now = self.cpus[cpu.index()].clock.rq_clock_pelt();
        if g == GroupId::ROOT || !self.groups.limited {
            return now;
        }
        self.groups.rq(cpu, g).bandwidth.clock_pelt(now)
    }

    /// The weight of `task` in the flat queue: its part of its groups' (`__calc_prop_weight` over
    /// all levels, from 7.3).
    pub(crate) fn h_weight(&self, cpu: CpuId, task: TaskId) -> LoadWeight {
        let t = self.task(task);
        let (mut g, mut entity, mut weight) = (t.group, t.weight.0 << 10, NICE_0_LOAD);
        loop {
            let level = self.groups.rq(cpu, g);
            weight = calc_prop_weight(weight, entity, level.load, g == GroupId::ROOT);
            if g == GroupId::ROOT {
                return LoadWeight::of_scaled(weight);
            }
            (entity, g) = (level.se.load, self.groups.parent(g));
        }
    }

    /// `task_h_load`: what of its CPU's load moves with it.
    pub(crate) fn task_h_load(&self, task: TaskId) -> u64 {
        let t = self.task(task);
        let (cpu, g, load) = (t.cpu, t.group, t.avg.load_avg);
        if g == GroupId::ROOT {
            return load;
        }
        let h_load = self.h_load(cpu, g);
        h_load_of(h_load, self.cfs_avg_of(cpu, g).avg.load_avg, load)
    }

    /// `update_cfs_rq_h_load`, once a jiffy.
    fn h_load(&self, cpu: CpuId, g: GroupId) -> u64 {
        let now = self.jiffies();
        if g == GroupId::ROOT {
            return self.cpu(cpu).cfs_avg.avg.load_avg;
        }
        let rq = self.groups.rq(cpu, g);
        if rq.h_load_at.get() == now {
            return rq.h_load.get();
        }
        let (parent, load) = (self.groups.parent(g), rq.se.avg.load_avg);
        let above = self.h_load(cpu, parent);
        let h_load = h_load_of(above, self.cfs_avg_of(cpu, parent).avg.load_avg, load);
        rq.h_load.set(h_load);
        rq.h_load_at.set(now);
        h_load
    }
}
