//! Partitioned fixed priorities: RM, DM or FIFO on each CPU, with a CPU for good (`dl_as` with `dl_placement=partitioned-…`).
//!
//! ```text
//! asks for runtime, deadline, period ─> SCHED_FIFO with a priority by period, by deadline, or the same as all (dl_as)
//!      └─> the CPUs it may run on on which all are in time with it ─> first fit: the smallest, then the first
//!              └ none: refused                                       worst fit: the one with most room
//! ```
//!
//! In time: by response times, on the CPU's whole capacity, beside the servers that go before real-time tasks there
//! ([`risetime_kernel::supply`]). A job of `runtime` takes so much longer on a smaller CPU. Those that share a priority count as before each
//! other, which is more than first come first served can take: at any time what waits before a job is at most one job of each other. Up to
//! 6.11 all of a CPU's jobs in a period of `sched_rt_period_us` must fit `sched_rt_runtime_us`, too, so that nobody is throttled.
//!
//! A task is bound by its affinity, as `sched_setaffinity` would, until it is no real-time task any more.
//!
//! Leaves out: SCHED_FIFO and SCHED_RR tasks of the workload's own, of which nothing is declared; what interrupts, idle states and changes of
//! frequency take. Other placements with `dl_as` are refused but `gedf`, under which priorities are global.
//!
//! Source: M. Joseph, P. Pandya, "Finding response times in a real-time system", The Computer Journal 29(5), 1986; C. Liu, J. Layland, 1973;
//! J. Leung, J. Whitehead, 1982.

use crate::kernel::rq::Rq;
use crate::mech::dl_rules::state::Bound;
use crate::state::class::Fit;
use crate::state::machine::{Machine, State};
use risetime_kernel::deadline::DlParams;
use risetime_kernel::rt::RtPriority;
use risetime_kernel::supply::{FpTask, Supply, fixed_priorities_hold};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::InputError;
use risetime_model::workload::Policy;

/// Load of a server that goes before all tasks, or of a task, with its priority.
type Ranked = (u8, FpTask);

impl Rq<'_, '_> {
    /// Binds a task that asks for `asked`, in place of which it gets `policy`, to a CPU, if
    /// priorities are partitioned. False: there is none.
    pub(crate) fn bind_fixed(&mut self, task: TaskId, asked: Policy, policy: Policy) -> bool {
        let bound = self.t(task).slots.dl_rules.bound.take();
        if let Some(bound) = bound {
            self.set_allowed(task, bound.allowed);
        }
        let (Policy::Deadline { runtime, deadline, period, reclaim }, Policy::Fifo { priority }) =
            (asked, policy)
        else {
            return true;
        };
        let Some(fit) = self.m().rules.placement.fit() else { return true };
        let asked = DlParams { runtime, deadline, period, reclaim };
        let Some(cpu) = self.m().fixed_cpu(task, asked, priority, fit) else {
            let (m, us) = (self.m(), |s: Span| s.0 / 1000);
            let what = format!(
                "{} of {} µs under a fixed priority is refused: dl_placement={} finds no CPU that it may run on on which all are in time with it",
                us(runtime),
                us(period),
                m.rules.placement.about().0
            );
            let why = InputError::of_task(&m.task(task).comm, what);
            self.refuse(why.hint(
                "the fair class's server counts, too: fair_server_runtime_ns=0 takes it out",
            ));
            return false;
        };
        let allowed = self.m().task(task).allowed;
        self.t(task).slots.dl_rules.bound = Some(Box::new(Bound { asked, priority, cpu, allowed }));
        self.t(task).slots.dl_rules.binds = Some(std::iter::once(cpu).collect());
        true
    }
}

impl Machine {
    fn fixed_cpu(
        &self,
        task: TaskId,
        asked: DlParams,
        priority: RtPriority,
        fit: Fit,
    ) -> Option<CpuId> {
        let holds = |cpu: &CpuId| {
            let mut all = self.ranked(*cpu, task);
            all.push((priority, self.on_cpu(*cpu, asked)));
            self.in_time(all)
        };
        let mut fitting = self.dl_smallest_first(task).into_iter().filter(holds);
        match fit {
            Fit::First => fitting.next(),
            Fit::Worst => fitting.rev().max_by_key(|cpu| self.fixed_room(*cpu, task)),
        }
    }

    /// The task that a reservation is on a CPU of that capacity. Rounding: its runtime up.
    fn on_cpu(&self, cpu: CpuId, asked: DlParams) -> FpTask {
        let DlParams { runtime, deadline, period, .. } = asked;
        let runtime = Span((runtime.0 * 1024).div_ceil(self.cpu(cpu).capacity.0.max(1)));
        FpTask { runtime, deadline, period }
    }

    /// Lists the tasks that are bound to a CPU, without `but`, and its servers.
    fn ranked(&self, cpu: CpuId, but: TaskId) -> Vec<Ranked> {
        let c = self.cpu(cpu);
        let servers =
            c.fair_server.as_deref().into_iter().chain(c.slots.rt_groups.iter().map(|g| &g.server));
        let servers = servers.filter(|s| s.params.runtime > Span(0) && !self.rules.rt_first);
        let servers = servers.map(|server| {
            let DlParams { runtime, period, .. } = server.params;
            (u8::MAX, FpTask { runtime, deadline: period, period })
        });
        let tasks = self.tasks.iter().enumerate().filter(|(i, t)| {
            *i != but.index() && t.state != State::Exited && t.sched.class().is_real_time()
        });
        let tasks =
            tasks.filter_map(|(_, t)| t.slots.dl_rules.bound.as_deref().filter(|b| b.cpu == cpu));
        servers.chain(tasks.map(|b| (b.priority, self.on_cpu(cpu, b.asked)))).collect()
    }

    /// Whether all meet their deadlines; servers are not asked: EDF's admission has let them in.
    fn in_time(&self, mut all: Vec<Ranked>) -> bool {
        all.sort_by_key(|(priority, _)| std::cmp::Reverse(*priority));
        let tasks: Vec<FpTask> = all.iter().map(|(_, task)| *task).collect();
        let equal = |a: usize, b: usize| all[a].0 == all[b].0;
        let servers = all.iter().take_while(|(priority, _)| *priority == u8::MAX).count();
        let slow = fixed_priorities_hold(Supply::WHOLE, &tasks, servers, equal).is_err();
        !slow && !self.may_throttle(&tasks)
    }

    /// Whether jobs of these tasks in a period may take more than real-time tasks have of it, up to
    /// 6.11.
    fn may_throttle(&self, tasks: &[FpTask]) -> bool {
        let Some(runtime) = self.slots.sysctls.rt.runtime.filter(|_| self.rt_throttles()) else {
            return false;
        };
        let period = self.slots.sysctls.rt.period;
        let jobs = |t: &FpTask| (period.0 + t.deadline.0).div_ceil(t.period.0.max(1)) * t.runtime.0;
        runtime < period && tasks.iter().map(jobs).sum::<u64>() > runtime.0
    }

    /// The bandwidth left of a CPU, of 2²⁰ · 1024 of the biggest.
    fn fixed_room(&self, cpu: CpuId, but: TaskId) -> u64 {
        let share = |t: &FpTask| (t.runtime.0 << 20) / t.period.0.max(1);
        let taken: u64 = self.ranked(cpu, but).iter().map(|(_, t)| share(t)).sum();
        (1u64 << 20).saturating_sub(taken) * self.cpu(cpu).capacity.0
    }
}
