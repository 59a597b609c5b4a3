//! Real-time groups (HCBS): what each group is promised, and its server and queue on each CPU.
//!
//! ```text
//! group          rt_runtime_us, rt_period_us   `served`: the nearest one from it upwards that says so; root: none does
//! CPU ─ RtGroupRq  server: among the deadlines of the CPU        queue: by priority, first come first served
//! ```
//!
//! What happens to them: [`super`]; arithmetic: [`risetime_kernel::rt_group`].

use crate::mech::slots::Slot;
use risetime_kernel::deadline::{DlEntity, DlParams, to_ratio};
use risetime_kernel::rt::{RtPriority, RtQueue};
use risetime_kernel::units::{GroupId, Span};
use risetime_model::settings::{Default, Home, Name, Neutral, Param, Range};

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = ();
    type OfCpu = RtGroupRqs;
    type OfTask = ();
}

/// Whether groups have servers.
pub(crate) const RT_GROUP_SCHED: Name = Name::new(Param {
    name: "rt_group_sched",
    doc: "real-time tasks of groups with rt_runtime_us: hcbs = under a deadline server of their group on each CPU (from 6.12 on); off = as if no group said so (unset: hcbs where a workload asks for it)",
    unit: "",
    range: Range::OneOf(&["hcbs", "off"]),
    default: Default::Unset,
    home: Home::Patched(None, Neutral::Name("off")),
});

/// `cpu.rt.max` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) runtime: Span,
    pub(crate) period: Span,
}

impl Promised {
    /// The bandwidth of each CPU, 2²⁰ = all of it.
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
    /// True if the group's tasks are pushed once the CPU has switched, as its server has just been
    /// throttled.
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

/// All of one CPU; hardly ever any.
#[derive(Default)]
pub(crate) struct RtGroupRqs(Vec<RtGroupRq>);

impl RtGroupRqs {
    /// Queues with servers that have so much of each period.
    pub(crate) fn new(all: impl Iterator<Item = (GroupId, Promised)>) -> RtGroupRqs {
        RtGroupRqs(all.map(|(g, p)| RtGroupRq::new(g, p.runtime, p.period)).collect())
    }
    /// A group's, if it has a server.
    pub(crate) fn get(&self, g: GroupId) -> Option<&RtGroupRq> {
        self.0.iter().find(|own| own.group == g)
    }
    pub(crate) fn get_mut(&mut self, g: GroupId) -> Option<&mut RtGroupRq> {
        self.0.iter_mut().find(|own| own.group == g)
    }
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, RtGroupRq> {
        self.0.iter()
    }
    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, RtGroupRq> {
        self.0.iter_mut()
    }
    /// Tasks whose servers are not throttled.
    #[inline]
    pub(crate) fn nr_served(&self) -> usize {
        self.0.iter().filter(|g| !g.server.throttled).map(|g| g.queue.len()).sum()
    }
    /// The bandwidth that the servers have of the CPU, 2²⁰ = all.
    pub(crate) fn bw(&self) -> u64 {
        self.0.iter().map(|g| g.server.bw).sum()
    }
}
