//! CFS bandwidth: a group's quota per period, handed to its CPUs in slices.
//!
//! ```text
//!  period timer ─> pool.runtime += quota, at most quota + burst
//!                    │  a slice (5 ms), or what makes a throttled CPU's account positive
//!                    v
//!  CPU: runtime_remaining −= what ran;   ≤ 0 and the pool is empty: throttled until the next
//!                    │                   distribution pays the debt plus 1 ns
//!                    └─ the last task leaves: all but 1 ms goes back; the slack timer, 5 ms later,
//!                       gives it to CPUs that are throttled
//! ```
//!
//! Time that ran beyond the account (up to a tick) is owed: the next slice pays it first, so that
//! over many periods a group gets its quota exactly. Left out: `hierarchical_quota` (a child's
//! larger quota is allowed in cgroup v2), the growing of periods that a slow timer cannot keep.
//!
//! Source: kernel/sched/fair.c, symbols named at each function.

use crate::units::Span;

/// Runtime that an emptied CPU keeps, in ns (`min_cfs_rq_runtime`).
const MIN_CFS_RQ_RUNTIME: i64 = 1_000_000;
/// Slack is not given out so close to the end of a period (`min_bandwidth_expiration`).
pub const MIN_BANDWIDTH_EXPIRATION: Span = Span(2_000_000);
/// Time for which slack gathers before it is given out (`cfs_bandwidth_slack_period`).
pub const CFS_BANDWIDTH_SLACK_PERIOD: Span = Span(5_000_000);

/// A group's pool of running time (`struct cfs_bandwidth`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CfsBandwidth {
    quota: u64,
    burst: u64,
    runtime: u64,
    /// True if no CPU has asked since the last refill.
    idle: bool,
}

impl CfsBandwidth {
    /// A pool of `quota` per period with its first filling (`tg_set_cfs_bandwidth`).
    pub fn new(quota: Span, burst: Span) -> CfsBandwidth {
        let mut pool = CfsBandwidth { quota: quota.0, burst: burst.0, runtime: 0, idle: false };
        pool.refill();
        pool
    }

    /// The runtime that the pool has left to give to CPUs in this period.
    pub const fn runtime(&self) -> Span {
        Span(self.runtime)
    }

    /// A new period. Source: fair.c:__refill_cfs_bandwidth_runtime.
    pub fn refill(&mut self) {
        let full = self.quota.saturating_add(self.burst);
        self.runtime = self.runtime.saturating_add(self.quota).min(full);
    }

    /// The period timer: refills, and says whether it goes on (`throttled`: some CPU waits).
    /// Source: fair.c:do_sched_cfs_period_timer, without the distribution.
    pub fn period(&mut self, throttled: bool) -> bool {
        self.refill();
        if self.idle && !throttled {
            return false;
        }
        self.idle = !throttled;
        true
    }

    /// Whether slack is worth giving out: more than a `slice` (`sysctl_sched_cfs_bandwidth_slice`), which is
    /// what a running CPU takes at a time. Source: fair.c:do_sched_cfs_slack_timer.
    pub const fn has_slack(&self, slice: Span) -> bool {
        self.runtime > slice.0
    }
}

/// One CPU's account with its group's pool (`cfs_rq->runtime_remaining`), in ns; negative: owed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runtime(i64);

impl Default for Runtime {
    /// A runtime of 1 ns, as `tg_set_cfs_bandwidth` leaves it.
    fn default() -> Runtime {
        Runtime(1)
    }
}

impl Runtime {
    /// The runtime left on this CPU, in ns; negative: overdrawn.
    pub const fn remaining(&self) -> i64 {
        self.0
    }

    /// Books running time; true if nothing is left. Source: fair.c:__account_cfs_rq_runtime.
    pub fn account(&mut self, ran: Span) -> bool {
        self.0 = self.0.wrapping_sub(ran.0 as i64);
        self.0 <= 0
    }

    /// Takes from the pool up to `target`, debts on top; true if something is left then.
    /// Source: fair.c:__assign_cfs_rq_runtime.
    pub fn assign(&mut self, pool: &mut CfsBandwidth, target: Span) -> bool {
        let wanted = (target.0 as i64).wrapping_sub(self.0).max(0) as u64;
        if pool.runtime > 0 {
            let amount = pool.runtime.min(wanted);
            pool.runtime -= amount;
            pool.idle = false;
            self.0 = self.0.wrapping_add(amount as i64);
        }
        self.0 > 0
    }

    /// Pays a throttled CPU's debt plus 1 ns, if the pool has it; returns whether the CPU may run.
    /// Source: fair.c:distribute_cfs_runtime.
    pub fn distribute(&mut self, pool: &mut CfsBandwidth) -> bool {
        let wanted = 1i64.wrapping_sub(self.0).max(0) as u64;
        let amount = wanted.min(pool.runtime);
        pool.runtime -= amount;
        self.0 = self.0.wrapping_add(amount as i64);
        self.0 > 0
    }

    /// Gives all but a little of the runtime back once the CPU's last task has left; returns
    /// whether anything was given back. Source: fair.c:__return_cfs_rq_runtime.
    pub fn give_back(&mut self, pool: &mut CfsBandwidth) -> bool {
        let slack = self.0 - MIN_CFS_RQ_RUNTIME;
        if slack <= 0 {
            return false;
        }
        pool.runtime = pool.runtime.saturating_add(slack as u64);
        self.0 -= slack;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    /// `sysctl_sched_cfs_bandwidth_slice` unless it is written.
    const SLICE: Span = Span(5 * MS);

    /// Running in ticks of 4 ms against 10 ms per 50 ms: over many periods exactly the quota,
    /// though no single one is.
    #[test]
    fn what_ran_too_long_is_owed() {
        let mut pool = CfsBandwidth::new(Span(10 * MS), Span(0));
        let mut cpu = Runtime::default();
        let (mut ran, mut throttled, mut most) = (0u64, false, 0);
        for tick in 0..10_000u64 {
            if tick % 12 == 0 && tick > 0 {
                pool.period(throttled);
                throttled = throttled && !cpu.distribute(&mut pool);
            }
            if !throttled {
                ran += 4 * MS;
                if cpu.account(Span(4 * MS)) {
                    throttled = !cpu.assign(&mut pool, SLICE);
                }
            }
            most = most.max(ran as i64 - (10 * MS * (tick / 12 + 1)) as i64);
        }
        assert!(most <= 4 * MS as i64, "never more than a tick ahead: {most}");
        let quota = 10 * MS * (10_000 / 12);
        assert!(ran.abs_diff(quota) <= 14 * MS, "{ran} of {quota}");
    }

    #[test]
    fn bursts_save_up_to_their_limit() {
        let mut pool = CfsBandwidth::new(Span(10 * MS), Span(5 * MS));
        for _ in 0..3 {
            pool.period(false);
        }
        assert_eq!(pool.runtime(), Span(15 * MS));
        let mut plain = CfsBandwidth::new(Span(10 * MS), Span(0));
        plain.period(false);
        assert_eq!(plain.runtime(), Span(10 * MS), "what is unused is lost");
    }

    #[test]
    fn the_timer_stops_after_a_period_in_which_nobody_asked() {
        let mut pool = CfsBandwidth::new(Span(10 * MS), Span(0));
        assert!(pool.period(false) && !pool.period(false));
        let mut cpu = Runtime::default();
        cpu.account(Span(MS));
        assert!(pool.period(true), "a throttled CPU keeps it going");
        assert!(pool.period(false) && cpu.assign(&mut pool, SLICE));
        assert!(pool.period(false), "somebody has asked");
    }

    #[test]
    fn an_emptied_cpu_returns_all_but_a_millisecond() {
        let mut pool = CfsBandwidth::new(Span(10 * MS), Span(0));
        let mut cpu = Runtime::default();
        assert!(cpu.account(Span(1)) && cpu.assign(&mut pool, SLICE));
        assert_eq!((cpu.remaining(), pool.runtime()), (5_000_000, Span(5 * MS)));
        assert!(!pool.has_slack(SLICE) && cpu.give_back(&mut pool) && !cpu.give_back(&mut pool));
        assert_eq!((cpu.remaining(), pool.runtime()), (1_000_000, Span(9 * MS)));
        assert!(pool.has_slack(SLICE));
    }

    #[test]
    fn a_pool_that_runs_dry_leaves_the_debt() {
        let mut pool = CfsBandwidth::new(Span(MS), Span(0));
        let mut cpu = Runtime::default();
        assert!(cpu.account(Span(3 * MS)));
        assert!(!cpu.assign(&mut pool, SLICE));
        assert_eq!((cpu.remaining(), pool.runtime()), (1 - 2 * MS as i64, Span(0)));
        pool.refill();
        assert!(!cpu.distribute(&mut pool));
        pool.refill();
        assert!(cpu.distribute(&mut pool));
        assert_eq!((cpu.remaining(), pool.runtime()), (1, Span(0)));
    }
}
