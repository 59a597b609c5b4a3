//! Demotion: who has used up its runtime goes on as a normal task, until it has some again.
//!
//! ```text
//!               runtime used up                 what it has meanwhile       when it is what it was again
//!  deadline     its own, of this period         its nice value              when it would be replenished
//!  FIFO, RR     the CPU's, of sched_rt_period_us (up to 6.11)   its nice value   when that period ends
//! ```
//!
//! Without it such a task is throttled: it waits, whether anybody else wants the CPU or not. With it neither starves: it
//! shares the CPU with fair tasks. A deadline task keeps its reservation meanwhile, but counts for frequencies as what it is.
//!
//! Told of at OSPM 2023: SCHED_DEADLINE once did so (J. Lelli), "a patch to make the tasks downgrade to SCHED_OTHER when they run
//! out of their time slice" (P. Zijlstra), and for real-time throttling (J. Fernandes). No stock kernel has it. The change is made at
//! the instant of throttling, between two switches; what changing class costs is not modelled.

pub(crate) mod state;

use crate::kernel::rq::Rq;
use crate::mech::demotion::state::Demoted;
use crate::mech::mechanism::Mechanism;
use crate::state::class::Class;
use crate::state::machine::State;
use risetime_kernel::units::{Instant, TaskId};
use risetime_model::settings::{Default, Group, Home, Name, Neutral, Param, Range};
use risetime_model::workload::Policy;

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
}

const GROUP: Group = Group::of(&[DEMOTION.0]).titled("Demotion, which no kernel has");

/// Name of the setting.
pub(crate) const DEMOTION: Name = Name::new(Param {
    name: "sched_demotion",
    doc: "a deadline task that has used up its runtime, and a real-time one that is throttled (up to 6.11), goes on as SCHED_OTHER until it has runtime again (unset: off, it waits)",
    unit: "",
    range: Range::OneOf(&["off", "on"]),
    default: Default::Unset,
    home: Home::Simulator(Neutral::Name("off")),
});

impl Rq<'_, '_> {
    /// Demotes `task` now, or promotes it, as it has runtime again.
    pub(crate) fn demotion(&mut self, task: TaskId) {
        let Some(demoted) = self.t(task).slots.demotion.take() else { return };
        match demoted.was {
            Some(policy) => self.promote(task, policy),
            None => self.demote(task),
        }
    }

    fn demote(&mut self, task: TaskId) {
        let (cpu, now) = (self.cpu, self.m().now);
        let t = self.m().task(task);
        if t.state != State::Runnable {
            return;
        }
        let policy = t.sched.policy;
        let until = match t.sched.class() {
            Class::Rt if self.m().cpu(cpu).rt_throttle.throttled => self.m().classes.rt_period,
            // The timer's time is of the CPU's clock.
            Class::Deadline if self.m().dl(task).throttled => {
                let past = self.m().sched_clock().0 - now.0;
                self.m().dl(task).timer.map(|at| Instant(at.0.saturating_sub(past).max(now.0)))
            }
            _ => None,
        };
        let Some(until) = until else { return };
        // A timer that waits for its tick has not given it runtime yet.
        let until = if until > now { until } else { self.m().next_tick() };
        self.change_class(task, Policy::Other { slice: None });
        if matches!(policy, Policy::Deadline { .. }) {
            self.reserve_bw(self.m().dl(task).bw);
        }
        self.t(task).slots.demotion = Some(Box::new(Demoted { was: Some(policy), due: false }));
        self.push_demotion(task, until);
        self.emit_policy(task);
    }

    fn promote(&mut self, task: TaskId, policy: Policy) {
        let state = self.m().task(task).state;
        if state != State::Runnable && state != State::Exited {
            let later = Demoted { was: Some(policy), due: true };
            self.t(task).slots.demotion = Some(Box::new(later));
            return;
        }
        if self.m().task(task).throttled && state == State::Runnable {
            // The task's group has used up its quota: the task is looked at again.
            self.t(task).slots.demotion = Some(Box::new(Demoted { was: Some(policy), due: false }));
            return self.push_demotion(task, self.m().next_tick());
        }
        self.update_rq_clock();
        if matches!(policy, Policy::Deadline { .. }) {
            let now = self.m().rq_clock(self.cpu);
            let dl = self.dl_mut(task);
            dl.replenish(now);
            // What it had at its demotion counts no more, what was reserved for its return does.
            let (bw, counts_twice) = (dl.bw, dl.inactive_timer.is_some());
            if counts_twice || state == State::Exited {
                self.release_bw(bw);
            }
        }
        if state == State::Runnable {
            self.change_class(task, policy);
            self.emit_policy(task);
        }
    }

    /// Ends a demotion, whatever comes next: the task changes its policy itself.
    pub(crate) fn end_demotion(&mut self, task: TaskId) {
        if self.m().task(task).slots.demotion.as_ref().is_some_and(|d| d.was.is_some()) {
            self.demotion(task);
        }
    }
}
