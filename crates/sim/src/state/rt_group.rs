//! Real-time groups (HCBS): what each group is promised, and its server and queue on each CPU.
//!
//! ```text
//! group          rt_runtime_us, rt_period_us   `served`: the nearest one from it upwards that says so; root: none does
//! CPU ─ RtGroupRq  server: among the deadlines of the CPU        queue: by priority, first come first served
//! ```
//!
//! What happens to them: `kernel/class/rt_group.rs`; arithmetic: [`risetime_kernel::rt_group`].

use crate::state::group::Groups;
use crate::state::machine::{Cpu, Machine};
use risetime_kernel::deadline::{DlEntity, DlParams, to_ratio};
use risetime_kernel::rt::{RtPriority, RtQueue};
use risetime_kernel::rt_group::internal_runtime;
use risetime_kernel::units::{CpuId, GroupId, Span, TaskId};
use risetime_model::settings::{Default, Home, Neutral, Param, Range};

/// Whether groups have servers.
pub(crate) const RT_GROUP_SCHED: &str = "rt_group_sched";

pub(crate) const PARAMS: &[Param] = &[Param {
    name: RT_GROUP_SCHED,
    doc: "real-time tasks of groups with rt_runtime_us: hcbs = under a deadline server of their group on each CPU (from 6.12 on); off = as if no group said so (unset: hcbs where a workload asks for it)",
    unit: "",
    range: Range::OneOf(&["hcbs", "off"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Name("off")),
}];

/// `cpu.rt.max` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) runtime: Span,
    pub(crate) period: Span,
}

impl Promised {
    /// Of each CPU, 2²⁰ = all of it.
    pub(crate) fn bw(self) -> u64 {
        to_ratio(self.period, self.runtime)
    }
}

/// A group with servers, on one CPU (`tg->dl_se[cpu]` and `tg->rt_rq[cpu]`).
pub(crate) struct RtGroupRq {
    pub(crate) group: GroupId,
    pub(crate) server: DlEntity,
    /// `dl_server_active`.
    pub(crate) active: bool,
    pub(crate) queue: RtQueue,
    /// Its tasks are pushed once the CPU has switched, as its server has just been throttled.
    pub(crate) pushes: bool,
}

impl RtGroupRq {
    fn new(group: GroupId, runtime: Span, period: Span) -> RtGroupRq {
        let params = DlParams { runtime, deadline: period, period, reclaim: false };
        let (server, queue) = (DlEntity::new(params), RtQueue::default());
        RtGroupRq { group, server, active: false, queue, pushes: false }
    }

    /// Whether its tasks may run when its turn comes.
    pub(crate) fn has_budget(&self) -> bool {
        !self.server.throttled && self.server.params.runtime > Span(0)
    }

    /// `rt_rq->highest_prio.curr`; 0: nobody is there.
    pub(crate) fn highest(&self) -> RtPriority {
        self.queue.first().map_or(0, |(priority, _)| priority)
    }
}

impl Groups {
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
    pub(crate) fn servers(&self) -> Vec<RtGroupRq> {
        let of = |(g, Promised { runtime, period }): (GroupId, Promised)| {
            RtGroupRq::new(g, internal_runtime(period, runtime, self.promised_below(g)), period)
        };
        self.promised().map(of).collect()
    }
}

impl Cpu {
    /// A group's part of it, if the group has servers.
    pub(crate) fn rt_group(&self, g: GroupId) -> Option<&RtGroupRq> {
        self.rt_groups.iter().find(|own| own.group == g)
    }

    /// Tasks of groups whose servers are not throttled.
    #[inline]
    pub(crate) fn nr_served(&self) -> usize {
        self.rt_groups.iter().filter(|g| !g.server.throttled).map(|g| g.queue.len()).sum()
    }

    /// What the servers of groups have of it, 2²⁰ = all.
    pub(crate) fn group_servers_bw(&self) -> u64 {
        self.rt_groups.iter().map(|g| g.server.bw).sum()
    }
}

impl Machine {
    /// The server of a real-time task's group on a CPU, and its queue. Only tasks of such groups are asked.
    pub(crate) fn rt_group(&self, cpu: CpuId, task: TaskId) -> &RtGroupRq {
        let of = self.cpu(cpu).rt_group(self.task(task).sched.served);
        of.expect("a served group has a server on each CPU")
    }
}
