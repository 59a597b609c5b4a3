//! The fair class as core sees it; what it does is in `kernel/fair.rs`, `hierarchy.rs`, `cfs.rs`.

use super::sched_class::{Preempts, SchedClass};
use crate::kernel::Rq;
use crate::kernel::fair::Join;
use crate::kernel::governor::Occasion;
use crate::kernel::placement::{Placement, PlacementView};
use crate::state::class::fair_policy;
use crate::state::effects::Effects;
use crate::state::hooks::{Answer, Placed, Point, Step, Waker};
use crate::state::machine::Machine;
use crate::state::tracker::Heard;
use risetime_kernel::cfs_rq::is_cfs;
use risetime_kernel::deadline::DlId;
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind, EntityId, FairPolicy, Wakeup};
use risetime_kernel::units::{GroupId, TaskId};

/// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
pub(crate) struct Fair;

impl SchedClass for Fair {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "SCHED_OTHER, SCHED_BATCH, SCHED_IDLE",
            "CFS up to 6.5, EEVDF from 6.6, with groups, bandwidth and a deadline server",
        )
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: EnqueueKind, waking: bool) {
        let cpu = rq.cpu;
        rq.track(Heard::Enqueue { cpu, task, new: kind == EnqueueKind::Initial });
        let starved = rq.m().cpu(cpu).h_nr_queued() == 0;
        rq.enqueue_task_fair(task, kind, waking);
        if starved {
            rq.dl_server_start();
        }
        rq.governor_attends(Occasion::Enqueue);
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, kind: DequeueKind) {
        let cpu = rq.cpu;
        let sleeps = matches!(kind, DequeueKind::Sleep | DequeueKind::SleepSpecial);
        rq.track(Heard::Dequeue { cpu, task, sleeps });
        rq.dequeue_task_fair(task, kind);
        rq.governor_attends(Occasion::Dequeue);
    }
    fn pick(&self, rq: &mut Rq<'_, '_>) -> Option<TaskId> {
        rq.pick_task_fair()
    }
    /// `fair_server_pick_task`; the server may serve SCHED_HIGH, too.
    fn serve(&self, rq: &mut Rq<'_, '_>, _: DlId) -> Option<TaskId> {
        let high = if rq.high_is_served() { rq.pick_task_high() } else { None };
        let task = high.or_else(|| rq.pick_task_fair());
        if task.is_none() {
            rq.dl_server_stop();
        }
        task
    }
    fn wakeup_preempt(
        &self,
        rq: &mut Rq<'_, '_>,
        curr: TaskId,
        task: TaskId,
        fork: bool,
    ) -> Preempts {
        if rq.wakeup_preempt_fair(curr, task, fork) { Preempts::Lazily } else { Preempts::No }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, prev: TaskId, next: Option<TaskId>) {
        if next == Some(prev) {
            return;
        }
        let group = rq.m().task(prev).group;
        if rq.m().queue(rq.cpu, group).curr().is_some_and(|e| e.id == prev) {
            rq.update_curr(group);
            rq.check_cfs_rq_runtime(group);
            rq.update_load_avg(prev, Join::Stay);
            rq.queue_mut(group).put_prev();
        } else if rq.m().groups.limited {
            rq.check_runtime_of_sleeper(group);
        }
        if rq.m().groups.on() {
            let next = next.filter(|next| rq.m().is_fair(*next));
            rq.put_prev_parents(group, next.map(|next| rq.m().task(next).group));
        }
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        // Until now it was queued, not running (`set_next_entity`).
        rq.update_load_avg(task, Join::Stay);
        rq.set_next_task_fair(task);
        rq.account_from_now(task);
        rq.list(task);
        rq.update_misfit_status(Some(task));
    }
    fn tick(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.dl_server_update();
        rq.task_tick_fair(curr);
    }
    /// Gives up the request of `curr`.
    fn yield_task(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        if rq.m().cpu(rq.cpu).nr_running() <= 1 {
            return;
        }
        rq.account_anew();
        let group = rq.m().task(curr).group;
        if rq.m().groups.nested && is_cfs(rq.m().rev) {
            rq.yield_grouped(curr);
        } else {
            rq.clear_buddies(group, curr.into());
            rq.queue_mut(group).yield_task();
            rq.turn_over_by_then(group);
        }
    }
    fn select_task_rq(
        &self,
        m: &Machine,
        placement: &mut dyn Placement,
        task: TaskId,
        waker: Waker,
        effects: &mut Effects,
    ) -> Placed {
        placement.wake(&PlacementView { machine: m }, task, waker, effects)
    }
}

impl Rq<'_, '_> {
    /// Decides whether `task`, woken, preempts `curr`: among fair tasks the policies, the slices
    /// and what each has had decide, where the two compete.
    fn wakeup_preempt_fair(&mut self, curr: TaskId, task: TaskId, fork: bool) -> bool {
        let cpu = self.cpu;
        let due = self.m().is_resched_due(cpu);
        let policy = |task: TaskId| match self.m().does(Step::TaskPolicyPreempts) {
            true => fair_policy(self.m().task(task).sched.policy),
            false => FairPolicy::Normal,
        };
        let wakeup = Wakeup { fork, due, woken: policy(task), running: policy(curr) };
        if self.m().groups.nested {
            return self.preempts_nested(curr, task, &wakeup);
        }
        let preempts = self.c().cfs.wakeup_preempt_by(task, &wakeup);
        self.after_wakeup_check(GroupId::ROOT, preempts);
        preempts
    }

    pub(crate) fn pick_task_fair(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        let picked = self.pick_task_fair_itself();
        match self.m().decided(Point::Pick { cpu }, Answer::Task(picked)) {
            Answer::Task(picked) => picked,
            _ => picked,
        }
    }

    fn pick_task_fair_itself(&mut self) -> Option<TaskId> {
        let cpu = self.cpu;
        let instead = |k: &Self| match k.m().instead(Point::Pick { cpu }) {
            Some(Answer::Task(first)) => first,
            _ => None,
        };
        if let Some(first) = instead(self) {
            let group = self.m().task(first).group;
            self.update_curr(group);
            self.check_all_runtime(group);
            if instead(self) == Some(first) {
                return Some(first);
            }
        }
        if self.m().groups.nested {
            return self.pick_nested();
        }
        let picked = self.c().cfs.pick();
        self.take_departed();
        picked.and_then(EntityId::as_task)
    }
}
