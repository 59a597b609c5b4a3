//! SCHED_FIFO and SCHED_RR in groups of their own: each group has a deadline server on each CPU (HCBS).
//!
//! ```text
//!  first task of the group queued on a CPU ─> its server starts (CBS) ─> queued among the deadlines
//!     the earliest: a server ─> the highest priority of its group ─> runs, the server's budget shrinks
//!           └ nobody there: pulls one of its group from another CPU, else it stops
//!  budget used up ─> throttled until its deadline; its tasks are pushed where a server of the group has budget
//!  tasks of the root ─> [super::rt], as if there were no groups
//! ```
//!
//! To the CPU a server is one more deadline, and a group's tasks come when it does: before those of the root group, whatever their
//! priorities, and one group against another by deadline. A group of one task is a constant-bandwidth server for a FIFO task.
//!
//! Budgets are wall-clock time, as the fair server's: at half the frequency, or on a CPU of half the capacity, a group gets half the
//! work. They are looked at where the kernel looks, at ticks among others, so that a server overruns by up to a tick, and has so much
//! less in its next period.
//!
//! Within its group a task that cannot run is pushed to the CPU where the group's queue is lowest, and pulled when another one leaves;
//! at wakeup it stays where it was. CPUs whose server is throttled are left out.
//!
//! DEVIATES(hcbs-root): the root's own `cpu.rt.max`, which the series wants written before any group may have time, is taken to be what the
//! groups below it ask for. Who reserves more there leaves less to deadline tasks than here.
//!
//! DEVIATES(hcbs-count): in `nr_running` a group's tasks count while its server is not throttled; the series counts the server, too, and in
//! its sixth version takes off one less than it adds. Load balancing of fair tasks sees one task less.
//!
//! DEVIATES(hcbs-before-pick): a server is charged for who runs before the next one is picked. As the series reads, that comes after the pick
//! where another task of the same group is picked, and one that is used up by it is noticed at its next period only: its task would
//! run on until then for nothing.
//!
//! Leaves out: changing a group's runtime while it runs, CPUs that go offline, the older RT_GROUP_SCHED, under which a group's queue is
//! throttled by a runtime of its own and stands among the priorities.
//!
//! Source: Y. Andriaccio, L. Abeni, A. Balsini, A. Parri, "[RFC PATCH v6 00/25] Hierarchical Constant Bandwidth Server", June 2026
//! (20260608121546.69910-1-yurand2000@gmail.com), on kernel/sched/rt.c and deadline.c; it is in no kernel yet.

pub(crate) mod state;

use crate::kernel::Kernel;
use crate::kernel::class::nearest::nearest_of;
use crate::kernel::class::sched_class::{Preempts, SchedClass};
use crate::kernel::placement::Placement;
use crate::kernel::rq::Rq;
use crate::mech::mechanism::Mechanism;
use crate::mech::rt_groups::state::{RT_GROUP_SCHED, RtGroupRq};
use crate::state::class::{Class, ClassTimer};
use crate::state::cpuset::CpuSet;
use crate::state::effects::Effects;
use crate::state::hooks::{Placed, Step, Waker};
use crate::state::machine::{Machine, State};
use risetime_kernel::deadline::{BW_SHIFT, DlEntity, DlId};
use risetime_kernel::eevdf::{DequeueKind, EnqueueKind};
use risetime_kernel::rt_group::{cap_scale, dl_check_tg};
use risetime_kernel::units::{CpuId, GroupId, Instant, Span, TaskId};
use risetime_kernel::{KernelRev, features};
use risetime_model::settings::{Group, Settings};
use risetime_model::workload::Policy as SchedPolicy;
use risetime_model::{Experiment, InputError, Platform, Policy};
use risetime_trace::{Event, Why};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    /// Gives each CPU the servers of the workload's groups (`dl_init_tg`), and counts them.
    ///
    /// Errors: `tg_rt_schedulable`: groups below one have more than it, or all together more than is left.
    fn begin(k: &mut Kernel, e: &Experiment) -> Result<bool, InputError> {
        let m = &mut k.m;
        let Some((first, _)) = m.groups.promised().next() else { return Ok(false) };
        let place = |g: GroupId, m: &Machine| {
            format!("{}: task group `{}`", e.workload.name, m.groups.path(g))
        };
        if !m.rev.has(features::FAIR_SERVER) {
            return Err(too_old(place(first, m), m.rev));
        }
        let percent = |bw: u64| {
            let tenths = ((bw * 1000) + (1 << (BW_SHIFT - 1))) >> BW_SHIFT;
            format!("{}.{} %", tenths / 10, tenths % 10)
        };
        for (g, promised) in m.groups.promised() {
            let below = m.groups.promised_below(g);
            if below > promised.bw() {
                let what = format!(
                    "the groups below it have {} of each CPU for real-time tasks, and it has {}",
                    percent(below),
                    percent(promised.bw())
                );
                return Err(InputError::new(place(g, m), what)
                    .hint("what a group has includes what those below it have"));
            }
        }
        let all = m.groups.promised_below(GroupId::ROOT);
        let (limit, capacity) = (m.cpus[0].dl.max_bw, m.classes.total_capacity);
        let limited = m.slots.sysctls.rt.runtime.is_some();
        if limited && !dl_check_tg(limit, capacity, m.classes.total_bw, all) {
            let room = cap_scale(limit, capacity).saturating_sub(m.classes.total_bw);
            let what = format!(
                "`rt_runtime_us` is refused: groups ask for {} of each CPU, and {} is left to them beside the fair class's servers",
                percent(all),
                percent((room << 10) / capacity.max(1))
            );
            return Err(InputError::new(place(first, m), what)
                .hint("sched_rt_runtime_us says how much may be reserved in all"));
        }
        m.classes.groups_bw = all;
        for cpu in 0..m.cpus.len() {
            let servers = m.groups.servers();
            let c = &mut m.cpus[cpu];
            c.dl.this_bw += servers.bw();
            c.slots.rt_groups = servers;
        }
        Ok(false)
    }
}

const GROUP: Group = Group::of(&[RT_GROUP_SCHED.0])
    .titled("Real-time groups under servers, which no kernel has")
    .checked(check);

/// SCHED_FIFO and SCHED_RR of groups with servers.
pub(crate) struct RtGroups;

impl SchedClass for RtGroups {
    fn about(&self) -> (&'static str, &'static str) {
        (
            "rt_runtime_us of groups",
            "SCHED_FIFO, SCHED_RR under a deadline server of their group on each CPU: at its turn the highest priority first (HCBS; no kernel has it)",
        )
    }
    fn enqueue(&self, rq: &mut Rq<'_, '_>, task: TaskId, _: EnqueueKind, _: bool) {
        rq.enqueue_task_rt_group(task, false);
    }
    fn dequeue(&self, rq: &mut Rq<'_, '_>, task: TaskId, _: DequeueKind) {
        rq.dequeue_task_rt_group(task);
    }
    fn serve(&self, rq: &mut Rq<'_, '_>, server: DlId) -> Option<TaskId> {
        let DlId::GroupServer(g) = server else { return None };
        let task = rq.pick_task_rt_group(g);
        if task.is_none() {
            rq.stop_group_server(g);
        }
        task
    }
    /// Picks nothing: tasks of real-time groups are picked through their servers, which are
    /// deadlines.
    fn pick(&self, _: &mut Rq<'_, '_>) -> Option<TaskId> {
        None
    }
    fn wakeup_preempt(&self, rq: &mut Rq<'_, '_>, curr: TaskId, task: TaskId, _: bool) -> Preempts {
        let (m, cpu) = (rq.m(), rq.cpu);
        let (woken, own) = (m.rt_group(cpu, task), m.rt_group(cpu, curr));
        let preempts = match woken.group == own.group {
            true => m.rt_rank(task) > m.rt_rank(curr),
            false => woken.server.preempts(&own.server),
        };
        if preempts { Preempts::Now } else { Preempts::No }
    }
    fn put_prev(&self, rq: &mut Rq<'_, '_>, prev: TaskId, _: Option<TaskId>) {
        rq.update_curr_rt_group();
        rq.update_rt(true);
        if rq.m().rt_group(rq.cpu, prev).server.throttled {
            rq.rt_group_mut(prev).pushes = true;
            rq.set_push_groups(true);
        }
    }
    fn set_next(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        rq.update_rt(false);
        let g = rq.m().task(task).sched.served;
        rq.push_rt_group(g);
    }
    fn tick(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.update_curr_rt_group();
        if rq.slice_is_over(curr) && rq.m().rt_group(rq.cpu, curr).queue.has_equal(curr) {
            rq.rt_group_mut(curr).queue.requeue(curr, false);
            rq.resched_curr();
        }
    }
    fn yield_task(&self, rq: &mut Rq<'_, '_>, curr: TaskId) {
        rq.rt_group_mut(curr).queue.requeue(curr, false);
    }
    /// `task_woken_rt`: it does not get this CPU soon, so another one is looked for.
    fn woken(&self, rq: &mut Rq<'_, '_>, task: TaskId) {
        let (m, cpu) = (rq.m(), rq.cpu);
        let Some(curr) = m.cpu(cpu).curr.filter(|curr| *curr != task) else { return };
        let (own, woken) = (m.rt_rank(curr), m.rt_rank(task));
        let waits = own != 0 && (m.task(curr).nr_cpus_allowed < 2 || own >= woken);
        if waits && m.task(task).nr_cpus_allowed > 1 && !m.need_resched.contains(cpu) {
            let g = m.task(task).sched.served;
            rq.push_rt_group(g);
        }
    }
    /// Charges what ran up to now; and lets a CPU whose task leaves pull another one of its group.
    fn balance(&self, rq: &mut Rq<'_, '_>, prev: TaskId) {
        rq.update_curr_rt_group();
        let (m, cpu) = (rq.m(), rq.cpu);
        let own = m.rt_group(cpu, prev);
        let left = m.task(prev).state != State::Runnable || m.task(prev).cpu != cpu;
        if left && own.highest() < m.rt_rank(prev) && own.has_budget() {
            let g = own.group;
            rq.pull_rt_group(g);
        }
    }
    /// Keeps the task where it is: its group looks for a better CPU when it does not run.
    fn select_task_rq(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: Waker,
        _: &mut Effects,
    ) -> Placed {
        m.within_allowed(task, Placed { cpu: m.task(task).cpu, why: Why::PrevCpu })
    }
    fn select_task_rq_fork(
        &self,
        m: &Machine,
        _: &mut dyn Placement,
        task: TaskId,
        _: &mut Effects,
    ) -> Placed {
        m.within_allowed(task, Placed { cpu: m.task(task).cpu, why: Why::PrevCpu })
    }
}

impl Machine {
    /// The server of a real-time task's group on a CPU, and its queue. Only tasks of such groups are asked.
    fn rt_group(&self, cpu: CpuId, task: TaskId) -> &RtGroupRq {
        let of = self.cpu(cpu).slots.rt_groups.get(self.task(task).sched.served);
        of.expect("a served group has a server on each CPU")
    }
}

impl Rq<'_, '_> {
    /// A group's part of this CPU.
    fn group_rq(&mut self, g: GroupId) -> Option<&mut RtGroupRq> {
        self.c().slots.rt_groups.get_mut(g)
    }

    /// The queue of the group of a task that is served here.
    fn rt_group_mut(&mut self, task: TaskId) -> &mut RtGroupRq {
        let g = self.m().task(task).sched.served;
        self.group_rq(g).expect("a served group has a server on each CPU")
    }

    /// Changes a server of this CPU, and arms its timers as it then says.
    fn with_group_server<R>(
        &mut self,
        g: GroupId,
        change: impl FnOnce(&mut DlEntity, Instant) -> R,
    ) -> Option<R> {
        let cpu = self.cpu;
        let now = self.m().rq_clock(cpu);
        let server = &mut self.group_rq(g)?.server;
        let before = (server.timer, server.inactive_timer);
        let result = change(server, now);
        let after = (server.timer, server.inactive_timer);
        self.arm_changed(ClassTimer::GroupServer(cpu, g), before.0, after.0);
        self.arm_changed(ClassTimer::GroupInactive(cpu, g), before.1, after.1);
        Some(result)
    }

    /// `enqueue_task_rt` of a group's task; the first one starts the server.
    pub(crate) fn enqueue_task_rt_group(&mut self, task: TaskId, head: bool) {
        let priority = self.m().task(task).sched.rt_priority();
        let own = self.rt_group_mut(task);
        let (g, first) = (own.group, own.queue.is_empty());
        if first {
            self.start_group_server(g);
        }
        self.rt_group_mut(task).queue.enqueue(priority, task, head);
        self.tell_served(task);
        self.cpufreq_update_util();
    }

    /// `dequeue_task_rt`. The server goes on: it stops at its next turn, if nobody is there by then.
    fn dequeue_task_rt_group(&mut self, task: TaskId) {
        self.update_curr_rt_group();
        self.rt_group_mut(task).queue.dequeue(task);
        self.tell_served(task);
        self.cpufreq_update_util();
    }

    /// Whether a task waits for its group's next period goes into the trace, if that has changed.
    fn tell_served(&mut self, task: TaskId) {
        let own = self.m().rt_group(self.cpu, task);
        let on = own.server.throttled && own.queue.iter().any(|(_, queued)| queued == task);
        if std::mem::replace(&mut self.t(task).sched.told_throttled, on) != on {
            self.emit(Event::Throttled { task, on });
        }
    }

    /// Tells [`Rq::tell_served`] of all tasks of the group that are queued here.
    fn tell_group(&mut self, g: GroupId) {
        let queue = self.m().cpu(self.cpu).slots.rt_groups.get(g).map(|own| &own.queue);
        let queued: Vec<TaskId> = queue.into_iter().flat_map(|q| q.iter().map(|q| q.1)).collect();
        queued.into_iter().for_each(|task| self.tell_served(task));
    }

    /// `dl_server_start`.
    fn start_group_server(&mut self, g: GroupId) {
        // What runs here has used its time up to now.
        self.update_curr_dl();
        self.update_curr_rt_group();
        let Some(own) = self.group_rq(g) else { return };
        if own.active || own.server.params.runtime == Span(0) {
            return;
        }
        own.active = true;
        let bw = own.server.bw;
        let counted = self.with_group_server(g, |server, now| {
            let counted = std::mem::replace(&mut server.non_contending, false);
            server.inactive_timer = None;
            server.update_at_wakeup(now);
            counted
        });
        if counted == Some(false) {
            self.add_running_bw(bw, false);
        }
        self.queue_group_server(g);
    }

    /// `dl_server_stop`.
    fn stop_group_server(&mut self, g: GroupId) {
        self.c().dl.remove(DlId::GroupServer(g));
        let Some(own) = self.group_rq(g).filter(|own| own.active) else { return };
        own.active = false;
        let past = self.with_group_server(g, |server, now| {
            let at = server.zero_lag(now).filter(|_| server.inactive_timer.is_none());
            if at.is_some() {
                (server.non_contending, server.inactive_timer) = (true, at);
            }
            (server.timer, server.throttled) = (None, false);
            (at.is_none(), server.bw)
        });
        if let Some((true, bw)) = past {
            self.sub_running_bw(bw, false);
        }
    }

    /// Queues the group's server among the deadlines; it may preempt the running task.
    fn queue_group_server(&mut self, g: GroupId) {
        let cpu = self.cpu;
        let Some(server) = self.m().cpu(cpu).slots.rt_groups.get(g).map(|own| own.server) else {
            return;
        };
        self.c().dl.insert(server.deadline, DlId::GroupServer(g));
        let preempts = match self.m().cpu(cpu).curr {
            Some(curr) if self.m().class_of(curr) == Class::Deadline => {
                server.preempts(self.m().dl(curr))
            }
            _ => true,
        };
        if preempts {
            self.resched_curr();
        }
    }

    /// `update_curr_rt` of a group's task, `update_curr_dl_se` of its server.
    fn update_curr_rt_group(&mut self) {
        let cpu = self.cpu;
        let Some(curr) = self.m().cpu(cpu).curr else { return };
        if self.m().class_of(curr) != Class::RtGroup {
            return;
        }
        let g = self.m().task(curr).sched.served;
        let delta = self.delta_exec().0;
        if delta == 0 || self.m().rt_group(cpu, curr).server.throttled {
            return;
        }
        let over = self.with_group_server(g, |server, now| {
            let over = server.consume(delta);
            server.throttled |= over;
            over.then(|| server.start_timer(now))
        });
        let Some(Some(waits)) = over else { return };
        self.c().dl.remove(DlId::GroupServer(g));
        if waits {
            self.tell_group(g);
        } else {
            // The server's next period has come already.
            self.with_group_server(g, DlEntity::replenish);
            self.queue_group_server(g);
        }
        if self.m().cpu(cpu).dl.first() != Some(DlId::GroupServer(g)) {
            self.resched_curr();
        }
    }

    /// `dl_server_timer`: a throttled server gets its runtime back.
    pub(crate) fn group_server_timer(&mut self, g: GroupId) {
        let due = self.with_group_server(g, |server, _| {
            server.timer = None;
            server.throttled
        });
        if due != Some(true) {
            return;
        }
        self.update_curr_dl();
        self.update_curr_rt_group();
        self.with_group_server(g, DlEntity::replenish);
        self.tell_group(g);
        self.queue_group_server(g);
        self.push_dl_task();
    }

    /// Takes a group server's bandwidth off the running ones at its 0-lag time.
    pub(crate) fn group_inactive_timer(&mut self, g: GroupId) {
        let counts = self.with_group_server(g, |server, _| {
            server.inactive_timer = None;
            (std::mem::replace(&mut server.non_contending, false), server.bw)
        });
        if let Some((true, bw)) = counts {
            self.sub_running_bw(bw, false);
        }
    }

    /// `rt_server_pick`: whom the server lets in.
    fn pick_task_rt_group(&mut self, g: GroupId) -> Option<TaskId> {
        let cpu = self.cpu;
        let first =
            |m: &Machine| m.cpu(cpu).slots.rt_groups.get(g)?.queue.first().map(|(_, task)| task);
        first(self.m()).or_else(|| {
            self.pull_rt_group(g);
            first(self.m())
        })
    }
}

// ---------------------------------------------------------------------- within a group, from CPU to CPU

impl Machine {
    /// `pick_highest_pushable_task` of a group: the first that is queued on `cpu`, does not run, and may move; `to`: there.
    fn pushable_of_group(&self, cpu: CpuId, g: GroupId, to: Option<CpuId>) -> Option<TaskId> {
        let own = self.cpu(cpu).slots.rt_groups.get(g)?;
        let moves = |task: &TaskId| {
            let t = self.task(*task);
            self.cpu(cpu).curr != Some(*task)
                && t.nr_cpus_allowed > 1
                && to.is_none_or(|to| t.allowed.contains(to))
        };
        own.queue.iter().map(|(_, task)| task).find(moves)
    }

    /// `find_lowest_rt_rq` within a group: the CPUs whose server has budget, which fit the task, and on which the highest
    /// priority of the group is the lowest, and below its own.
    fn lowest_of_group(&self, task: TaskId, g: GroupId) -> Option<CpuSet> {
        let mut lowest = (self.rt_rank(task), CpuSet::EMPTY);
        for cpu in self.task(task).allowed.and(&self.root.online).iter() {
            let Some(own) = self.cpu(cpu).slots.rt_groups.get(g).filter(|own| own.has_budget())
            else {
                continue;
            };
            if !self.rt_fits(task, cpu) || own.highest() > lowest.0 {
                continue;
            }
            if own.highest() < lowest.0 {
                lowest = (own.highest(), CpuSet::EMPTY);
            }
            if own.highest() < self.rt_rank(task) {
                lowest.1.insert(cpu);
            }
        }
        (!lowest.1.is_empty()).then_some(lowest.1)
    }

    /// The task of `from` that should rather run on `cpu`, of those that wait or whose server is
    /// throttled there.
    fn pulled_of_group(&self, from: CpuId, cpu: CpuId, g: GroupId) -> Option<TaskId> {
        let (own, other) =
            (self.cpu(cpu).slots.rt_groups.get(g)?, self.cpu(from).slots.rt_groups.get(g)?);
        if other.queue.len() <= 1 && !other.server.throttled {
            return None;
        }
        let task = self.pushable_of_group(from, g, Some(cpu))?;
        let rank = self.rt_rank(task);
        let about_to_run = self.cpu(from).curr.is_some_and(|curr| {
            let same = self.class_of(curr) == Class::RtGroup && self.task(curr).sched.served == g;
            same && rank > self.rt_rank(curr)
        });
        (rank > own.highest() && !about_to_run).then_some(task)
    }

    /// `sched_rt_can_attach`: whether `task` may be of `policy` in group `g`.
    ///
    /// Errors: a real-time task where none may be.
    pub(crate) fn rt_can_attach(
        &self,
        task: TaskId,
        policy: SchedPolicy,
        g: GroupId,
    ) -> Result<(), InputError> {
        let real_time = matches!(policy, SchedPolicy::Fifo { .. } | SchedPolicy::Rr { .. });
        let server = self.groups.served_by(g);
        let none = |g: GroupId| {
            self.groups.promised().any(|(own, promised)| own == g && promised.runtime == Span(0))
        };
        if !real_time || server == GroupId::ROOT || !none(server) {
            return Ok(());
        }
        let what = format!(
            "{} is refused: its group `{}` has `rt_runtime_us` 0",
            policy.name(),
            self.groups.path(server)
        );
        Err(InputError::of_task(&self.task(task).comm, what))
    }
}

impl Rq<'_, '_> {
    /// `push_group_rt_tasks`.
    pub(crate) fn push_rt_group(&mut self, g: GroupId) {
        if self.m().does(Step::PushOrPull) {
            while self.push_task_of_group(g) {}
        }
    }

    /// Pushes tasks away once the CPU has switched, of groups whose server has been throttled
    /// (`put_prev_task_rt`).
    pub(crate) fn push_throttled_groups(&mut self) {
        self.set_push_groups(false);
        let all = self.c().slots.rt_groups.iter_mut();
        let due = all.filter_map(|own| {
            (std::mem::take(&mut own.pushes) && own.server.throttled).then_some(own.group)
        });
        due.collect::<Vec<_>>().into_iter().for_each(|g| self.push_rt_group(g));
    }

    /// `push_rt_rq_task` of a group; false: nothing moved.
    fn push_task_of_group(&mut self, g: GroupId) -> bool {
        let (m, cpu) = (self.m(), self.cpu);
        let Some(next) = m.pushable_of_group(cpu, g, None) else { return false };
        let Some(lowest) = m.lowest_of_group(next, g) else { return false };
        let mut effects = Effects::default();
        let to = nearest_of(m, &lowest, cpu, cpu, &mut effects);
        self.take_distribute(&mut effects);
        if to == cpu {
            return false;
        }
        self.move_queued(next, to, Why::RtPush);
        self.resched_cpu(to);
        true
    }

    /// `pull_rt_rq_task` of a group: what should rather run here.
    pub(crate) fn pull_rt_group(&mut self, g: GroupId) {
        if !self.m().does(Step::PushOrPull) {
            return;
        }
        let (online, cpu) = (self.m().root.online, self.cpu);
        for from in online.iter().filter(|from| *from != cpu) {
            let Some(task) = self.m().pulled_of_group(from, cpu, g) else { continue };
            self.take_queued(task, from, Why::RtPush);
            self.resched_curr();
        }
    }
}

// ---------------------------------------------------------------------- settings, and what a workload asks for

/// Errors: a kernel without deadline servers.
fn check(_: &Platform, policy: &Policy, settings: &Settings) -> Result<(), InputError> {
    if settings.get(&RT_GROUP_SCHED) == Some("hcbs") && !policy.kernel.has(features::FAIR_SERVER) {
        return Err(too_old(policy.place_of(RT_GROUP_SCHED.name).into(), policy.kernel));
    }
    Ok(())
}

fn too_old(place: String, kernel: KernelRev) -> InputError {
    let what = format!(
        "real-time groups are for kernels with deadline servers, from {} on, and this is {kernel}",
        features::FAIR_SERVER.first
    );
    InputError::new(place, what)
        .hint(format!("{RT_GROUP_SCHED}=off runs it as if no group had `rt_runtime_us`"))
}
