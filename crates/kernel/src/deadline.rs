//! The deadline class: the constant bandwidth server of a task, and the bandwidth of a CPU.
//!
//! ```text
//!  wakeup     deadline past, or runtime / (deadline - now) > dl_runtime / dl_deadline:
//!               deadline = now + dl_deadline, runtime = dl_runtime                     (CBS)
//!               before a constrained deadline: runtime = density · (deadline - now)    (revised CBS)
//!  running    runtime -= Δ · frequency · capacity      or  Δ · what GRUB says
//!  runtime ≤ 0, or yield:  throttled until  deadline - dl_deadline + dl_period
//!  replenish  until runtime > 0:  deadline += dl_period, runtime += dl_runtime
//!
//!  bandwidth  this_bw     of all deadline tasks that belong to the CPU
//!             running_bw  of those that are not asleep, or whose 0-lag time has not come:
//!                         0-lag = deadline - runtime · dl_period / dl_runtime
//!  GRUB       Δ · max(u, Umax - (this_bw - running_bw) - extra_bw) / Umax
//!             up to 6.4: Δ · max(u / Umax, 1 - (this_bw - running_bw) - extra_bw)
//! ```
//!
//! Bandwidths are fractions of a CPU, 2²⁰ = all of it. Runtime is wall-clock time of a CPU of
//! capacity 1024 at its top frequency. Left out: priority inheritance, overrun signals, the
//! cpuset accounting.
//!
//! Source: kernel/sched/deadline.c; the deferred server of the fair class: [`crate::dl_server`].

use crate::rt::RtBandwidth;
use crate::units::{Capacity, GroupId, Instant, Span, TaskId};
use crate::{KernelRev, features};
use alloc::vec::Vec;

/// `BW_SHIFT`: a bandwidth of 1.
pub const BW_SHIFT: u32 = 20;
/// `BW_UNIT`.
pub const BW_UNIT: u64 = 1 << BW_SHIFT;
/// `RATIO_SHIFT`.
const RATIO_SHIFT: u32 = 8;
/// `DL_SCALE`: products of times are taken in units of 1024 ns.
const DL_SCALE: u32 = 10;

/// `to_ratio`: runtime / period, 2²⁰ = 1. Rounding: down. A period of 0 gives 0.
pub const fn to_ratio(period: Span, runtime: Span) -> u64 {
    match (runtime.0 << BW_SHIFT).checked_div(period.0) {
        Some(ratio) => ratio,
        None => 0,
    }
}

/// The parameters of a reservation (`struct sched_attr`): runtime ≤ deadline ≤ period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlParams {
    /// Time in each period.
    pub runtime: Span,
    /// Relative deadline.
    pub deadline: Span,
    /// Shortest time between activations.
    pub period: Span,
    /// `SCHED_FLAG_RECLAIM`.
    pub reclaim: bool,
}

/// `struct sched_dl_entity`: a reservation and where it stands.
///
/// Its timers are fields: whoever changes the entity arms what the fields say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlEntity {
    /// `dl_runtime`, `dl_deadline`, `dl_period`, and whether it reclaims.
    pub params: DlParams,
    /// `dl_bw`: runtime / period.
    pub bw: u64,
    /// `dl_density`: runtime / deadline.
    pub density: u64,
    /// The runtime left of the current instance, in ns.
    pub runtime: i64,
    /// The absolute deadline of the current instance.
    pub deadline: Instant,
    /// `dl_throttled`: not queued until the timer replenishes it.
    pub throttled: bool,
    /// `dl_yielded`: done with this instance.
    pub yielded: bool,
    /// `dl_non_contending`: asleep before its 0-lag time, its bandwidth still counts.
    pub non_contending: bool,
    /// `SCHED_FLAG_SUGOV`: runs before all others, has no budget and no bandwidth.
    pub special: bool,
    /// `dl_timer`: when it is replenished (or a deferred server begins).
    pub timer: Option<Instant>,
    /// `inactive_timer`: its 0-lag time.
    pub inactive_timer: Option<Instant>,
    /// `dl_defer` and what belongs to it, of a server.
    pub server: Option<crate::dl_server::Defer>,
}

impl DlEntity {
    /// A reservation that has not begun. Source: deadline.c:__setparam_dl.
    pub const fn new(params: DlParams) -> DlEntity {
        DlEntity {
            params,
            bw: to_ratio(params.period, params.runtime),
            density: to_ratio(params.deadline, params.runtime),
            runtime: 0,
            deadline: Instant(0),
            throttled: false,
            yielded: false,
            non_contending: false,
            special: false,
            timer: None,
            inactive_timer: None,
            server: None,
        }
    }

    /// The kthread that changes frequencies: 1 ms in 10, before everybody.
    /// Source: cpufreq_schedutil.c:sugov_kthread_create.
    pub const fn sugov() -> DlEntity {
        let params = DlParams {
            runtime: Span(1_000_000),
            deadline: Span(10_000_000),
            period: Span(10_000_000),
            reclaim: false,
        };
        DlEntity { special: true, ..DlEntity::new(params) }
    }

    /// `dl_is_implicit`: deadline and period are the same.
    pub fn is_implicit(&self) -> bool {
        self.params.deadline == self.params.period
    }

    /// `dl_entity_preempt`: does this one run before `other`?
    pub fn preempts(&self, other: &DlEntity) -> bool {
        self.special || self.deadline < other.deadline
    }

    /// `dl_next_period`: when the next instance may begin.
    pub fn next_period(&self) -> Instant {
        Instant(self.deadline.0 + self.params.period.0 - self.params.deadline.0)
    }

    /// `replenish_dl_new_period`: a new instance begins now.
    pub fn replenish_new_period(&mut self, now: Instant) {
        self.deadline = now + self.params.deadline;
        self.runtime = self.params.runtime.0 as i64;
        if let Some(defer) = self.server.as_mut().filter(|d| !d.running) {
            (self.throttled, defer.armed) = (true, true);
        }
    }

    /// `setup_new_dl_entity`: a task takes on the class; one that is throttled waits for its timer.
    pub fn setup_new(&mut self, now: Instant) {
        if !self.throttled {
            self.replenish_new_period(now);
        }
    }

    /// `replenish_dl_entity`: a throttled reservation gets its runtime back.
    pub fn replenish(&mut self, now: Instant) {
        let armed = self.server.is_some_and(|d| d.armed);
        if self.deadline == Instant(0) || (armed && self.overflows(now)) {
            self.deadline = now + self.params.deadline;
            self.runtime = self.params.runtime.0 as i64;
        }
        if self.yielded {
            self.runtime = self.runtime.min(0);
        }
        if self.runtime <= 0 {
            // As often as it takes to have some: one step each in the kernel.
            let each = self.params.runtime.0.max(1);
            let times = self.runtime.unsigned_abs() / each + 1;
            self.deadline.0 += self.params.period.0.saturating_mul(times);
            self.runtime += (each * times) as i64;
        }
        if self.deadline < now {
            self.replenish_new_period(now);
        }
        (self.yielded, self.throttled) = (false, false);
        let Some(defer) = self.server.as_mut() else { return };
        if core::mem::replace(&mut defer.armed, false) {
            return;
        }
        let waits = !defer.running && now.0 < self.deadline.0.saturating_sub(self.runtime as u64);
        if waits {
            (defer.armed, self.throttled) = (true, true);
            if !self.start_timer(now) {
                self.timer = None;
                self.throttled = false;
                if let Some(defer) = self.server.as_mut() {
                    defer.armed = false;
                }
            }
        }
    }

    /// `dl_entity_overflow`: would what is left, used until the deadline, exceed the bandwidth?
    /// The deadline must not be past.
    pub fn overflows(&self, now: Instant) -> bool {
        let left =
            (self.params.deadline.0 >> DL_SCALE).wrapping_mul((self.runtime >> DL_SCALE) as u64);
        let right = (self.deadline.0.wrapping_sub(now.0) >> DL_SCALE)
            .wrapping_mul(self.params.runtime.0 >> DL_SCALE);
        (right.wrapping_sub(left) as i64) < 0
    }

    /// `update_dl_entity`: a wakeup keeps the instance if it fits the bandwidth, else begins a new
    /// one; one with a constrained deadline gets less runtime instead.
    pub fn update_at_wakeup(&mut self, now: Instant) {
        let past = self.deadline < now;
        let running = self.server.is_some_and(|d| d.running);
        if past || self.overflows(now) {
            if (!self.is_implicit() || running) && !past {
                // `update_dl_revised_wakeup`
                let laxity = self.deadline.0 - now.0;
                self.runtime = (self.density.wrapping_mul(laxity) >> BW_SHIFT) as i64;
                return;
            }
            if let Some(defer) = self.server.as_mut() {
                defer.running = false;
            }
            self.replenish_new_period(now);
        } else if let Some(defer) = self.server.as_mut().filter(|d| !d.running) {
            (defer.armed, self.throttled) = (true, true);
        }
    }

    /// `start_dl_timer`: false if that time is past already (by a µs or more).
    pub fn start_timer(&mut self, now: Instant) -> bool {
        let armed = self.server.is_some_and(|d| d.armed);
        let at =
            if armed { self.deadline.0 as i64 - self.runtime } else { self.next_period().0 as i64 };
        if (at - now.0 as i64) / 1000 < 0 {
            return false;
        }
        self.timer.get_or_insert(Instant(at as u64));
        true
    }

    /// `dl_check_constrained_dl`: activated between its deadline and the next period, it has to
    /// wait for that one.
    pub fn check_constrained(&mut self, now: Instant) {
        if !self.throttled
            && !self.is_implicit()
            && self.deadline < now
            && now < self.next_period()
            && self.start_timer(now)
        {
            self.throttled = true;
            self.runtime = self.runtime.min(0);
        }
    }

    /// The 0-lag time; `None`: it is past. Source: deadline.c:task_non_contending.
    pub fn zero_lag(&self, now: Instant) -> Option<Instant> {
        let left = i128::from(self.runtime) * i128::from(self.params.period.0);
        let at = i128::from(self.deadline.0) - left / i128::from(self.params.runtime.0.max(1));
        (at >= i128::from(now.0)).then_some(Instant(at as u64))
    }

    /// The task ran for `delta`; true: the instance is over (`dl_runtime_exceeded`, or a yield).
    /// Source: deadline.c:update_curr_dl_se.
    pub fn consume(&mut self, delta: u64) -> bool {
        if self.special {
            return false;
        }
        self.runtime -= delta as i64;
        self.runtime <= 0 || self.yielded
    }

    /// `dl_task_fits_capacity`.
    pub fn fits_capacity(&self, capacity: Capacity) -> bool {
        capacity.0 >= self.density >> (BW_SHIFT - 10)
    }
}

/// An entity that the deadline class queues: a task, or a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DlId {
    /// A task.
    Task(TaskId),
    /// `rq->fair_server`.
    FairServer,
    /// The server of a real-time group ([`crate::rt_group`]).
    GroupServer(GroupId),
}

/// The deadline runqueue of one CPU (`struct dl_rq`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DlRq {
    /// Queue by deadline, first come first served among equals; the current one stays in it.
    queue: Vec<(Instant, DlId)>,
    tasks: usize,
    /// `running_bw`: of what is active.
    pub running_bw: u64,
    /// `this_bw`: of all that belong here.
    pub this_bw: u64,
    /// `extra_bw`: this CPU's part of what nobody has reserved. Up to 6.14 rebuilds of the sched domains only take from
    /// it, until it wraps: it is as much as can be then, and who reclaims is charged the least.
    pub extra_bw: u64,
    /// `max_bw`: what may be reserved.
    pub max_bw: u64,
    /// `bw_ratio`: 1 / max_bw, 2⁸ = 1.
    pub bw_ratio: u64,
}

impl DlRq {
    /// A runqueue of a CPU whose deadline tasks may use `runtime` of `period`; without a limit all
    /// of it. Source: deadline.c:init_dl_rq_bw_ratio.
    pub fn new(RtBandwidth { period, runtime }: RtBandwidth) -> DlRq {
        let runtime = runtime.unwrap_or(period);
        let max_bw = to_ratio(period, runtime);
        let bw_ratio = to_ratio(runtime, period) >> (BW_SHIFT - RATIO_SHIFT);
        DlRq { max_bw, extra_bw: max_bw, bw_ratio, ..DlRq::default() }
    }
    /// `__enqueue_dl_entity`.
    pub fn insert(&mut self, deadline: Instant, id: DlId) {
        let at = self.queue.partition_point(|(d, _)| *d <= deadline);
        self.queue.insert(at, (deadline, id));
        self.tasks += usize::from(matches!(id, DlId::Task(_)));
    }
    /// `__dequeue_dl_entity`; false: it was not queued.
    pub fn remove(&mut self, id: DlId) -> bool {
        let Some(at) = self.queue.iter().position(|(_, i)| *i == id) else { return false };
        self.queue.remove(at);
        self.tasks -= usize::from(matches!(id, DlId::Task(_)));
        true
    }
    /// `on_dl_rq`.
    pub fn contains(&self, id: DlId) -> bool {
        self.queue.iter().any(|(_, i)| *i == id)
    }
    /// `pick_next_dl_entity`.
    pub fn first(&self) -> Option<DlId> {
        self.queue.first().map(|(_, id)| *id)
    }
    /// `earliest_dl.curr`.
    pub fn earliest(&self) -> Option<Instant> {
        self.queue.first().map(|(deadline, _)| *deadline)
    }
    /// `dl_nr_running`: servers count.
    pub fn len(&self) -> usize {
        self.queue.len()
    }
    /// True if no entity is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// Tasks queued; a server is none.
    pub fn tasks(&self) -> usize {
        self.tasks
    }
    /// Iterates over all queued entities, by deadline.
    pub fn iter(&self) -> impl Iterator<Item = (Instant, DlId)> + '_ {
        self.queue.iter().copied()
    }

    /// `grub_reclaim`: what a task of bandwidth `bw` is charged for `delta`.
    ///
    /// Up to 6.4 what may not be reserved, 5 % of a CPU, was charged to who reclaims: a task of 30 %
    /// alone on its CPU got 86 % of it, since 6.5 it gets 95 %. Rounding: down, twice.
    pub fn grub_reclaim(&self, rev: KernelRev, delta: u64, bw: u64) -> u64 {
        if rev.has(features::GRUB_RECLAIM) {
            self.grub_reclaim_since_6_5(delta, bw)
        } else {
            self.grub_reclaim_pre_6_5(delta, bw)
        }
    }

    /// The bandwidth that is not reclaimed (GRUB): that of inactive tasks, and the extra bandwidth.
    fn unavailable(&self) -> u64 {
        self.this_bw.wrapping_sub(self.running_bw).wrapping_add(self.extra_bw)
    }

    fn grub_reclaim_pre_6_5(&self, delta: u64, bw: u64) -> u64 {
        let least = bw.wrapping_mul(self.bw_ratio) >> RATIO_SHIFT;
        let active = if self.unavailable() > BW_UNIT.wrapping_sub(least) {
            least
        } else {
            BW_UNIT.wrapping_sub(self.unavailable())
        };
        delta.wrapping_mul(active) >> BW_SHIFT
    }

    fn grub_reclaim_since_6_5(&self, delta: u64, bw: u64) -> u64 {
        let active = if self.unavailable() > self.max_bw.wrapping_sub(bw) {
            bw
        } else {
            self.max_bw.wrapping_sub(self.unavailable())
        };
        let active = active.wrapping_mul(self.bw_ratio) >> RATIO_SHIFT;
        delta.wrapping_mul(active) >> BW_SHIFT
    }
}

/// The ns that a task is charged for `delta` ns at this frequency and capacity (1024 each: the
/// highest frequency of the biggest CPU). Rounding: down, twice. Source:
/// deadline.c:dl_scaled_delta_exec.
pub const fn dl_scaled_delta(delta: u64, freq_scale: u64, capacity: Capacity) -> u64 {
    ((delta.wrapping_mul(freq_scale) >> 10).wrapping_mul(capacity.0)) >> 10
}

/// `__dl_overflow`: would `new_bw` in place of `old_bw` exceed what CPUs of that capacity in all
/// may reserve? `limit` is [`DlRq::max_bw`].
pub fn dl_overflow(limit: u64, capacity: u64, total_bw: u64, old_bw: u64, new_bw: u64) -> bool {
    (limit.wrapping_mul(capacity) >> 10) < total_bw.saturating_sub(old_bw).saturating_add(new_bw)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a virtual machine with Linux 6.1.0-50 showed: after so many rebuilds under schedutil that `extra_bw` had wrapped, a task of 4
    /// of 20 ms is charged the least, 0.21 of what it runs; after those of `performance` 0.57 of it.
    #[test]
    fn who_reclaims_is_charged_the_least_once_extra_bw_has_wrapped() {
        let limits = RtBandwidth { period: Span(1_000_000), runtime: Some(Span(950_000)) };
        let bw = to_ratio(Span(20_000), Span(4_000));
        let charged = |rev, extra_bw| {
            let own = DlRq { extra_bw, this_bw: bw, running_bw: bw, ..DlRq::new(limits) };
            own.grub_reclaim(rev, 1000, bw)
        };
        let least = DlRq::new(limits).max_bw - bw / 4;
        for rev in [KernelRev::V6_1, KernelRev::V7_3] {
            assert_eq!(charged(rev, least), 210, "{rev}");
            assert_eq!(charged(rev, 78_627_u64.wrapping_neg()), 210, "{rev}");
        }
        assert_eq!(charged(KernelRev::V6_1, 498_081 - bw / 4), 574);
    }
}
