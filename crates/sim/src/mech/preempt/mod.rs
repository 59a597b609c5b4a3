//! Time at which a CPU that should reschedule does so.
//!
//! ```text
//! resched_curr        TIF_NEED_RESCHED       on its own CPU: at the end of the interrupt or system call;
//!                                            on another one: the same, after an interrupt sent there
//! resched_curr_lazy   ..._LAZY, preempt=lazy on its own CPU: the same;
//!                                            on another one: nobody tells it. Its next tick, timer,
//!                                            interrupt or system call is when it looks
//! ```
//!
//! The fair class asks lazily (a turn is over; a woken task preempts), the others do not. So a woken task
//! waits for up to a tick on a CPU that runs a busy loop, if who wakes it is on another CPU and the two share
//! a cache: else the wakeup itself is an interrupt there (`ttwu_queue_wakelist`). A CPU without a task is
//! always told at once. From 7.0 on lazy is the kernel's default where the architecture has it; before, what
//! distributions had told other CPUs (voluntary, full): no task is ever inside the kernel for longer than a moment.
//!
//! A kernel that is not preemptible (no CONFIG_PREEMPTION) lets a CPU that goes idle pull until the imbalance is gone,
//! another one but one task. Debian's 6.1 and 6.12 for arm64 are of that kind, its 6.18 is not; nor are those of
//! Chromebooks and Android (CONFIG_PREEMPT in ChromeOS' base.config, in gki_defconfig) and distributions' for x86
//! (PREEMPT_DYNAMIC, whichever model is chosen at boot).
//!
//! What an interrupt of the CPU's own does not reach: the work of a memory-bound or busy task has no system
//! calls of its own, so only events of the workload count as such.
//! Source: kernel/sched/core.c:__resched_curr, ttwu_queue_cond, sched_tick; kernel/Kconfig.preempt.

pub(crate) mod state;

use crate::kernel::rq::Rq;
use crate::mech::mechanism::Mechanism;
use crate::mech::preempt::state::Preempt;
use crate::state::cpuset::CpuSet;
use crate::state::hooks::Step;
use crate::state::machine::Machine;
use crate::time::queue::Ev;
use risetime_kernel::switches::Switch;
use risetime_kernel::units::CpuId;
use risetime_kernel::{KernelRev, features};
use risetime_model::Experiment;
use risetime_model::settings::{Default, Group, Home, Name, Param, Range, Settings, Value};

impl Mechanism for state::Own {
    fn groups() -> Vec<Group> {
        vec![GROUP]
    }
    fn of_machine(e: &Experiment, _: &Machine) -> Preempt {
        of_settings(&e.settings)
    }
}

/// The preemption model.
pub const PREEMPT: Name = Name::new(Param {
    name: "preempt",
    doc: "when a CPU hears that a task woken from another CPU preempts its own: full = at once, lazy = at its next tick or \
          interrupt; voluntary = at once, and one that goes idle may pull several tasks, as nobody waits for it to be done",
    unit: "",
    range: Range::OneOf(&[FULL, LAZY, VOLUNTARY]),
    default: Default::Derived("lazy from 7.0 on, full before", |_, policy| {
        Some(preempt_of(policy.kernel))
    }),
    home: Home::Boot("preempt="),
});
const LAZY: &str = "lazy";
const VOLUNTARY: &str = "voluntary";
const FULL: &str = "full";

const GROUP: Group = Group::of(&[PREEMPT.0]).titled("Preemption");

/// The model of a kernel that nobody has told otherwise.
fn preempt_of(rev: KernelRev) -> Value {
    Value::Name(if rev.has(features::PREEMPT_LAZY) { LAZY } else { FULL }.into())
}

/// The preemption model that settings ask for, with nothing pending on any CPU.
pub(crate) fn of_settings(settings: &Settings) -> Preempt {
    let is = |model| settings.get(&PREEMPT) == Some(model);
    let (lazy, voluntary) = (is(LAZY), is(VOLUNTARY));
    Preempt { lazy, voluntary, waking_on: None, flagged: CpuSet::EMPTY }
}

impl Rq<'_, '_> {
    /// `resched_curr`: at once where the CPU is awake, after its exit latency where idle.
    pub(crate) fn resched_curr(&mut self) {
        let cpu = self.cpu;
        let now = self.m().now;
        match self.m().cpu(cpu).idle {
            None => {
                self.preempt().flagged.remove(cpu);
                self.set_need_resched();
            }
            Some(_) if self.m().cpu(cpu).waking => {}
            Some(idle) => {
                self.c().waking = true;
                let latency = self.m().exit_latency(cpu, idle, now);
                self.push(now + latency, Ev::Resched { cpu });
            }
        }
    }

    /// `resched_curr_lazy`, which the fair class asks for.
    pub(crate) fn resched_curr_lazy(&mut self) {
        let cpu = self.cpu;
        if !self.m().slots.preempt.lazy || self.m().cpu(cpu).curr.is_none() {
            return self.resched_curr();
        }
        if self.m().need_resched.contains(cpu) {
            return;
        }
        self.preempt().flagged.insert(cpu);
        if self.m().slots.preempt.waking_on.is_none_or(|by| by == cpu) {
            self.set_need_resched();
        }
    }

    /// Sees a request to reschedule as the CPU goes back to its task from an interrupt or a system
    /// call, or is at its tick.
    pub(crate) fn hears(&mut self) {
        let cpu = self.cpu;
        if self.m().slots.preempt.flagged.contains(cpu) {
            self.set_need_resched();
        }
    }

    /// Sees a request to reschedule at the CPU's tick, from which on the flag is no longer lazy.
    pub(crate) fn hears_at_tick(&mut self) {
        let cpu = self.cpu;
        self.hears();
        self.preempt().flagged.remove(cpu);
    }

    /// Marks rescheduling as due, for code that asks, without doing it: no
    /// [`Step::TurnEndsAtWakeup`].
    pub(crate) fn forget_resched(&mut self) {
        let cpu = self.cpu;
        self.preempt().flagged.remove(cpu);
        self.unset_need_resched();
        self.c().resched_held = true;
    }

    /// `clear_tsk_need_resched`: what the look that has just ended has itself asked for is done. (It
    /// accounts for whoever runs, on each level of groups, and that may end his turn: by the queue's own
    /// account too, which nobody else asks before the next wakeup.)
    pub(crate) fn clear_need_resched(&mut self) {
        let cpu = self.cpu;
        self.preempt().flagged.remove(cpu);
        self.c().cfs.clear_need_resched();
        if self.m().need_resched.contains(cpu) && !self.m().does(Step::ClearNeedResched) {
            self.preempt().flagged.insert(cpu);
        }
        self.unset_need_resched();
    }
}

/// The CPU from which things on other CPUs happen until the wakeup is over: `by`, or `to`, where
/// the task is queued, if that does it itself since the two share no cache. `None`: not with this
/// preemption model.
#[inline]
pub(crate) fn wakes_from(m: &Machine, by: CpuId, to: CpuId) -> Option<CpuId> {
    let alone = m.cpus_share_cache(by, to) || !m.slots.switches.on(Switch::TtwuQueue);
    let by = if alone { by } else { to };
    Some(by).filter(|_| m.slots.preempt.lazy)
}

impl Machine {
    /// `test_tsk_need_resched`: the flag that is not lazy.
    pub(crate) fn is_resched_due(&self, cpu: CpuId) -> bool {
        let flag = self.need_resched.contains(cpu) && !self.slots.preempt.flagged.contains(cpu);
        flag || self.cpu(cpu).resched_held
    }
}
