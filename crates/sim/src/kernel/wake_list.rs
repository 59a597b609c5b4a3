//! Wake lists: tasks that other CPUs have woken, until their CPU has heard of it.
//!
//! Source: kernel/sched/core.c:ttwu_queue_cond, ttwu_queue_wakelist.

use crate::kernel::placement::Waker;
use crate::kernel::rq::Rq;
use crate::state::costs::Kind;
use crate::state::machine::{Machine, State};
use crate::state::wake_list::Wakee;
use crate::time::queue::Ev;
use risetime_kernel::features;
use risetime_kernel::switches::Switch;
use risetime_kernel::units::{CpuId, Instant, Span, TaskId};
use risetime_trace::Why;

impl Rq<'_, '_> {
    /// The times at which this CPU, if it were awake, and at which it does hear of `task`, where it is an idle one or of another
    /// cache; `None`: the waker queues the task itself, as always where the interrupt and the way out of the idle state take no time.
    ///
    /// ```text
    /// waker   chooses the CPU ── IPI ── goes on
    /// cpu     idle                └── Remote ── exit latency ── queues, wakes ── switches
    /// ```
    ///
    /// So a task that an idle CPU is woken for is not runnable while the CPU leaves its idle state. Since 6.0; before, under
    /// the same cache, the waker queued it, and it waited in the queue ([`features::TTWU_QUEUE_IDLE`]).
    /// DEVIATES(ttwu-on-cpu): a task that is woken while it is still leaving its CPU waits until it has left, and then a CPU is
    /// chosen for it; from 5.8 on a kernel may put it on that CPU's wake list at once (`WF_ON_CPU`), for which it looks at no other CPU.
    /// Some tasks that are woken in the moment in which they fall asleep move here and stay there.
    pub(crate) fn wake_list_times(
        &mut self,
        task: TaskId,
        waker: Waker,
    ) -> Option<(Instant, Instant)> {
        let (cpu, m) = (self.cpu, self.m());
        let leaves =
            |m: &Machine, at| m.cpu(cpu).idle.map_or(Span(0), |idle| m.exit_latency(cpu, idle, at));
        let costs = !m.costs.is_free(Kind::Remote);
        let free = !costs && leaves(m, m.now) == Span(0);
        if waker.cpu == cpu || free || !self.ttwu_queue_cond(waker.cpu) {
            return None;
        }
        let remote = if costs { self.takes(Kind::Remote, task) } else { Span(0) };
        let heard = self.m().now + remote;
        let leaves = leaves(self.m(), heard);
        Some((heard, heard + leaves)).filter(|(_, at)| *at > self.m().now)
    }

    /// `ttwu_queue_wakelist`: puts `task` on the wake list, to be queued at the second of [these times](Self::wake_list_times).
    pub(crate) fn ttwu_queue_wakelist(
        &mut self,
        task: TaskId,
        (heard, at): (Instant, Instant),
        migrated: bool,
        why: Why,
    ) {
        let cpu = self.cpu;
        self.set_state(task, State::Waking);
        let c = self.c();
        c.waking |= c.idle.is_some();
        c.wake_list.push(Wakee { task, heard, migrated, why });
        self.push(at, Ev::TtwuPending { cpu });
    }

    /// `TTWU_QUEUE` and `ttwu_queue_cond`: whether `by` leaves it to this CPU to queue whom it wakes.
    pub(crate) fn ttwu_queue_cond(&self, by: CpuId) -> bool {
        let (cpu, m) = (self.cpu, self.m());
        if !m.root.online.contains(cpu) || !m.slots.switches.on(Switch::TtwuQueue) {
            return false;
        }
        let idle = m.rev.has(features::TTWU_QUEUE_IDLE) && m.cpu(cpu).nr_running() == 0;
        idle || !m.cpus_share_cache(by, cpu)
    }

    /// Whether an interrupt for a task on the wake list has come.
    pub(crate) fn is_wake_list_due(&self) -> bool {
        let now = self.m().now;
        self.m().cpu(self.cpu).wake_list.iter().any(|wakee| wakee.heard <= now)
    }
}
