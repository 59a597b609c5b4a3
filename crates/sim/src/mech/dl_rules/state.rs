//! Rules for deadline tasks that a kernel may have in place of the stock one's: where they go, what frequencies
//! follow, which class comes first, and priorities in place of deadlines. Which there are: [`super`].
//!
//! ```text
//! EDF's test on a CPU     Σ runtime / period ≤ max_bw · capacity / 1024       of those that belong there
//!                         max_bw: sched_rt_runtime_us / sched_rt_period_us, 2²⁰ = 1
//!                         capacity: what policy->max, and the hardware where it is heard of, leave of the CPU's
//! ```
//!
//! Deadlines before ends of periods: what is due within any time fits, too ([`risetime_kernel::demand`], where partitioned)
//!
//! A reservation belongs to the CPU that its placement gave it last, also while its task is on the way there or sleeps. The fair server's,
//! and those of groups, count like any other, as they do in the kernel's own admission.
//! Source of the sums: [`risetime_kernel::deadline`].

use crate::mech::pressure::state::{Input, Interface};
use crate::mech::slots::Slot;
use crate::state::class::Class;
use crate::state::cpuset::CpuSet;
use crate::state::machine::{Machine, State};
use risetime_kernel::deadline::{DlEntity, DlParams, dl_overflow};
use risetime_kernel::demand::edf_demand_holds;
use risetime_kernel::rt::RtPriority;
use risetime_kernel::supply::FpTask;
use risetime_kernel::units::{Capacity, CpuId, TaskId};
use risetime_model::workload::Policy;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = ();
    type OfDomain = ();
    type OfCpu = ();
    type OfTask = TaskRules;
}

/// State of a task under these rules.
#[derive(Default)]
pub(crate) struct TaskRules {
    /// The CPU that it belongs to, if it belongs to one.
    pub(crate) home: Option<CpuId>,
    /// The task's CPU, where priorities stand in for deadlines and are partitioned.
    pub(crate) bound: Option<Box<Bound>>,
    /// The affinity that this makes of its own, until it is set.
    pub(crate) binds: Option<CpuSet>,
}

/// A task with a fixed priority in place of a deadline, bound to a CPU.
pub(crate) struct Bound {
    /// Reservation that the task asked for.
    pub(crate) asked: DlParams,
    /// The priority that it has for it.
    pub(crate) priority: RtPriority,
    pub(crate) cpu: CpuId,
    /// CPUs where it might run before.
    pub(crate) allowed: CpuSet,
}

impl Machine {
    /// The capacity that limits of the frequency leave of a CPU at this moment, of 1024.
    pub(crate) fn dl_capacity(&self, cpu: CpuId) -> Capacity {
        let (c, d) = (self.cpu(cpu), self.domain_of(cpu));
        let hardware = d.slots.pressure.caps.of(Input::Hardware);
        let heard = hardware.interface != Interface::None;
        let max = if heard { d.max.min(hardware.khz) } else { d.max };
        Capacity(c.capacity.0.saturating_sub(d.scale.pressure(c.capacity, max).0))
    }
    /// Whether a CPU passes EDF's utilisation test with `sum` there already, and `bw` more.
    pub(crate) fn dl_fits(&self, cpu: CpuId, sum: u64, bw: u64) -> bool {
        !dl_overflow(self.cpu(cpu).dl.max_bw, self.dl_capacity(cpu).0, sum, 0, bw)
    }
    /// Whether a reservation is in time on a CPU beside all that belong there: by their sum, and by what is due within any time.
    pub(crate) fn dl_holds(&self, cpu: CpuId, task: TaskId, asked: &DlEntity) -> bool {
        self.dl_fits(cpu, self.dl_homed(cpu, task), asked.bw)
            && self.dl_demand_holds(cpu, task, asked)
    }
    /// The bandwidth that EDF's test leaves free on a CPU where reservations of `sum` count.
    pub(crate) fn dl_room(&self, cpu: CpuId, sum: u64) -> u64 {
        ((self.cpu(cpu).dl.max_bw * self.dl_capacity(cpu).0) >> 10).saturating_sub(sum)
    }
    /// The CPUs that a task may run on, those of the smallest capacity first, then by number: whoever fits a small CPU
    /// leaves the big ones to those that need them.
    pub(crate) fn dl_smallest_first(&self, task: TaskId) -> Vec<CpuId> {
        let mut all: Vec<CpuId> = self.task(task).allowed.and(&self.root.online).iter().collect();
        all.sort_by_key(|cpu| (self.cpu(*cpu).capacity, *cpu));
        all
    }
    /// The bandwidth of the reservations that belong to `cpu` wherever their tasks are just now,
    /// without that of `but`: like the kernel's sum of all, one that leaves counts until its 0-lag
    /// time.
    pub(crate) fn dl_homed(&self, cpu: CpuId, but: TaskId) -> u64 {
        let c = self.cpu(cpu);
        let servers = c.fair_server.as_ref().map_or(0, |s| s.bw) + c.slots.rt_groups.bw();
        servers + self.homed(cpu, but).map(|dl| dl.bw).sum::<u64>()
    }
    /// Iterates over the reservations of tasks that belong to `cpu`, without that of `but`.
    fn homed(&self, cpu: CpuId, but: TaskId) -> impl Iterator<Item = &DlEntity> {
        let own = self.tasks.iter().enumerate().filter(move |(i, t)| {
            *i != but.index() && t.slots.dl_rules.home == Some(cpu) && t.state != State::New
        });
        own.filter_map(|(_, t)| {
            let dl = t.sched.dl.as_deref()?;
            let member = t.sched.class() == Class::Deadline && t.state != State::Exited;
            let demoted = t.slots.demotion.as_ref().is_some_and(|d| d.was.is_some());
            (member || demoted || dl.inactive_timer.is_some()).then_some(dl)
        })
    }
    /// Whether a CPU passes EDF's demand test, for `asked` and what belongs to it without `but`;
    /// with deadlines at the ends of all periods there is nothing to it beside
    /// [`Machine::dl_fits`].
    pub(crate) fn dl_demand_holds(&self, cpu: CpuId, but: TaskId, asked: &DlEntity) -> bool {
        let c = self.cpu(cpu);
        let servers =
            c.fair_server.as_deref().into_iter().chain(c.slots.rt_groups.iter().map(|g| &g.server));
        let all: Vec<&DlEntity> = servers.chain(self.homed(cpu, but)).chain([asked]).collect();
        if all.iter().all(|dl| dl.is_implicit()) {
            return true;
        }
        let of = |dl: &&DlEntity| {
            let DlParams { runtime, deadline, period, .. } = dl.params;
            FpTask { runtime, deadline, period }
        };
        let tasks: Vec<FpTask> = all.iter().map(of).collect();
        edf_demand_holds(&tasks, (c.dl.max_bw * self.dl_capacity(cpu).0) >> 10)
    }
    /// Whether a reservation of the task counts on its CPU.
    pub(crate) fn dl_counts(&self, task: TaskId) -> bool {
        let t = self.task(task);
        t.sched.class() == Class::Deadline && t.sched.dl.is_some() && t.state != State::New
    }
    /// The policy under which a task runs that asks for `policy`.
    pub(crate) fn stands_in_for(&self, policy: Policy) -> Policy {
        self.rules.fixed.as_ref().map_or(policy, |fixed| fixed.instead_of(policy))
    }
    /// Whether it is a deadline task that a placement is asked about: not a thread that changes frequencies.
    pub(crate) fn dl_is_placed(&self, task: TaskId) -> bool {
        !self.dl(task).special
    }
    /// Whether a deadline task that waits may go to `to`, as far as the placement is concerned.
    pub(crate) fn dl_moves(&self, task: TaskId, to: CpuId) -> bool {
        !self.dl_is_placed(task) || self.rules.placement.moves(self, task, to)
    }
    /// Whether a task of class `a` takes the CPU from one of class `b`, another one.
    #[inline]
    pub(crate) fn class_before(&self, a: Class, b: Class) -> bool {
        let swapped = |class| match class {
            Class::Deadline => Class::RtGroup,
            Class::RtGroup => Class::Rt,
            Class::Rt => Class::Deadline,
            other => other,
        };
        if self.rules.rt_first { swapped(a) < swapped(b) } else { a < b }
    }
}
