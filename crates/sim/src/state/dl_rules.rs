//! Rules for deadline tasks that a kernel may have in place of the stock one's: where they go, what frequencies
//! follow, which class comes first, and priorities in place of deadlines. Which there are: `kernel/class/dl_placement/`.
//!
//! ```text
//! EDF's test on a CPU     Σ runtime / period ≤ max_bw · capacity / 1024       of those that count there
//!                         max_bw: sched_rt_runtime_us / sched_rt_period_us, 2²⁰ = 1
//! ```
//!
//! Which reservations count is the placement's: those that belong to the CPU (`this_bw`), or those that are active
//! there (`running_bw`). The fair server's counts like any other, as it does in the kernel's own admission.
//! Source of the sums: [`risetime_kernel::deadline`].

use crate::state::class::Class;
use crate::state::effects::Effects;
use crate::state::hooks::Placed;
use crate::state::machine::{Cpu, Machine, State};
use risetime_kernel::deadline::{BW_UNIT, dl_overflow};
use risetime_kernel::units::{CpuId, Span, TaskId};
use risetime_model::Experiment;
use risetime_model::workload::Policy;

/// Where deadline tasks go. What is not said here is as under global EDF.
pub(crate) trait DlPlacement: Sync {
    /// Its name in the setting `dl_placement`, and what it is, in a sentence.
    fn about(&self) -> (&'static str, &'static str);
    /// A task takes on the class, or another reservation, of bandwidth `bw` (2²⁰ = 1), which the machine as a whole
    /// has room for: the CPU that it belongs to from now on. `None`: there is none, and the request is refused.
    fn enter(&self, m: &Machine, task: TaskId, _bw: u64) -> Option<CpuId> {
        Some(m.task(task).cpu)
    }
    /// Where a waking task goes that may run on several CPUs.
    fn wake(&self, m: &Machine, task: TaskId, this_cpu: CpuId, effects: &mut Effects) -> Placed;
    /// Whether a task that waits, or is about to be placed as under global EDF, may go to `to`.
    fn moves(&self, _: &Machine, _: TaskId, _to: CpuId) -> bool {
        true
    }
}

/// What frequencies know of deadline tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DlFrequency {
    /// `running_bw`: of those that are active (GRUB-PA).
    GrubPa,
    /// `this_bw`: of all that belong to the CPU, and nothing of what they use: as long as nobody comes or goes, it stays.
    Admitted,
    /// All of it while one is active.
    Max,
}

/// By what the tool gives priorities to tasks that ask for a runtime and a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FixedBy {
    /// The shorter period is higher (RM).
    Period,
    /// The shorter relative deadline is higher (DM).
    Deadline,
    /// All are the same.
    Nothing,
}

/// SCHED_FIFO in place of SCHED_DEADLINE.
pub(crate) struct Fixed {
    by: FixedBy,
    /// What there is, ascending.
    keys: Vec<Span>,
}

/// The highest priority that is given; 99 is left to the kernel's own threads.
const HIGHEST: usize = 98;

impl Fixed {
    /// For the reservations of a workload.
    pub(crate) fn of(e: &Experiment, by: FixedBy) -> Fixed {
        let tasks = e.workload.tasks.iter().chain(&e.workload.forked);
        let attrs = tasks
            .flat_map(|t| std::iter::once(&t.attr).chain(t.phases.iter().map(|phase| &phase.attr)));
        let mut keys: Vec<Span> = attrs.filter_map(|attr| key(by, attr.policy?)).collect();
        keys.sort();
        keys.dedup();
        Fixed { by, keys }
    }

    /// What stands in for `policy`. Where there are more periods than priorities, neighbours share one.
    pub(crate) fn instead_of(&self, policy: Policy) -> Policy {
        let Some(key) = key(self.by, policy) else { return policy };
        let (at, all) = (self.keys.partition_point(|k| *k < key), self.keys.len());
        let below = if all <= HIGHEST { at } else { at * (HIGHEST - 1) / (all - 1) };
        Policy::Fifo { priority: (HIGHEST - below.min(HIGHEST - 1)) as u8 }
    }
}

fn key(by: FixedBy, policy: Policy) -> Option<Span> {
    let Policy::Deadline { deadline, period, .. } = policy else { return None };
    Some(match by {
        FixedBy::Period => period,
        FixedBy::Deadline => deadline,
        FixedBy::Nothing => Span(0),
    })
}

/// The rules in force.
pub(crate) struct DlRules {
    pub(crate) placement: &'static dyn DlPlacement,
    /// `None`: as the release has it.
    pub(crate) frequency: Option<DlFrequency>,
    /// SCHED_FIFO and SCHED_RR come before SCHED_DEADLINE.
    pub(crate) rt_first: bool,
    /// Reservations are priorities.
    pub(crate) fixed: Option<Fixed>,
}

impl DlRules {
    /// Whether frequencies follow what a stock kernel's do.
    pub(crate) fn stock_frequency(&self) -> bool {
        matches!(self.frequency, None | Some(DlFrequency::GrubPa))
    }
}

impl Cpu {
    /// What deadline tasks are promised here, as far as frequencies know, 2²⁰ = a CPU of capacity 1024.
    ///
    /// Rounding: that of the admitted up to what a unit of util is, so that its frequency is not below what EDF's test
    /// supposes; that of GRUB-PA is the kernel's, down.
    #[inline]
    pub(crate) fn promised_to_deadline(&self, by: Option<DlFrequency>) -> u64 {
        match by {
            None | Some(DlFrequency::GrubPa) => self.dl.running_bw,
            Some(DlFrequency::Admitted) => self.dl.this_bw.next_multiple_of(BW_UNIT >> 10),
            Some(DlFrequency::Max) => {
                let server = self.fair_server.as_deref();
                let server = server.filter(|s| s.server_active() || s.non_contending);
                let server = server.map_or(0, |s| s.bw);
                if self.dl.running_bw > server { self.capacity.0 << 10 } else { 0 }
            }
        }
    }
}

impl Machine {
    /// EDF's utilisation test on one CPU: `sum` there already, and `bw` more.
    pub(crate) fn dl_fits(&self, cpu: CpuId, sum: u64, bw: u64) -> bool {
        let c = self.cpu(cpu);
        !dl_overflow(c.dl.max_bw, c.capacity.0, sum, 0, bw)
    }
    /// What EDF's test leaves free on a CPU where reservations of `sum` count.
    pub(crate) fn dl_room(&self, cpu: CpuId, sum: u64) -> u64 {
        let c = self.cpu(cpu);
        ((c.dl.max_bw * c.capacity.0) >> 10).saturating_sub(sum)
    }
    /// The CPUs that a task may run on, those of the smallest capacity first, then by number: whoever fits a small CPU
    /// leaves the big ones to those that need them.
    pub(crate) fn dl_smallest_first(&self, task: TaskId) -> Vec<CpuId> {
        let mut all: Vec<CpuId> = self.task(task).allowed.and(&self.root.online).iter().collect();
        all.sort_by_key(|cpu| (self.cpu(*cpu).capacity, *cpu));
        all
    }
    /// Bandwidth of the reservations that belong to `cpu` wherever their tasks are just now, without that of `but`:
    /// like the kernel's sum of all, one that leaves counts until its 0-lag time.
    pub(crate) fn dl_homed(&self, cpu: CpuId, but: TaskId) -> u64 {
        let server = self.cpu(cpu).fair_server.as_ref().map_or(0, |s| s.bw);
        let own = self.tasks.iter().enumerate().filter(|(i, t)| {
            *i != but.index() && t.sched.dl_home == Some(cpu) && t.state != State::New
        });
        let bw = own.filter_map(|(_, t)| {
            let dl = t.sched.dl.as_deref()?;
            let member = t.sched.class() == Class::Deadline && t.state != State::Exited;
            let demoted = t.sched.demoted.as_ref().is_some_and(|d| d.was.is_some());
            (member || demoted || dl.inactive_timer.is_some()).then_some(dl.bw)
        });
        server + bw.sum::<u64>()
    }
    /// Whether a reservation of the task counts on its CPU.
    pub(crate) fn dl_counts(&self, task: TaskId) -> bool {
        let t = self.task(task);
        t.sched.class() == Class::Deadline && t.sched.dl.is_some() && t.state != State::New
    }
    /// What a task that asks for `policy` runs under.
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
            Class::Deadline => Class::Rt,
            Class::Rt => Class::Deadline,
            other => other,
        };
        if self.rules.rt_first { swapped(a) < swapped(b) } else { a < b }
    }
}
