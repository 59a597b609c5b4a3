//! EDF on one CPU where deadlines come before the ends of periods: whatever is due within some time must fit into it.
//!
//! ```text
//! demand(t) = Σ (⌊(t − D) / T⌋ + 1) · C ≤ t · speed       for all t up to L; speed, 2²⁰ = a CPU of capacity 1024, all of it
//! L         = the shorter one of: the first time when all is done if all begin together;
//!             max(D, Σ (T − D) · C / T / (speed − Σ C / T))
//!
//!  h(t) = demand(t) / speed      from L down: t ← h(t), or, where h(t) = t, the last deadline before t
//!  0 ──d_min──────────────── h(t) ◄──── t ── L         holds once h(t) ≤ d_min; h(t) > t: it does not
//! ```
//!
//! Where all deadlines are at the ends of periods it says what the sum of utilisations says. Exact, if jobs come all at once; where
//! it cannot see the end of the demand in `MOST` steps, it does not hold.
//!
//! Source: S. Baruah, L. Rosier, R. Howell, Real-Time Systems 2, 1990; F. Zhang, A. Burns, "Schedulability analysis for real-time
//! systems with EDF scheduling", IEEE Trans. Computers 58(9), 2009 (QPA).

use crate::deadline::BW_SHIFT;
use crate::supply::FpTask;
use crate::units::Span;

/// Largest number of steps that are taken.
const MOST: u32 = 100_000;

/// The time that `work` takes at `speed` (not 0). Rounding: up.
const fn time(work: u128, speed: u128) -> u128 {
    (work << BW_SHIFT).div_ceil(speed)
}

/// The work that is due within `t` if all tasks release a job together at 0.
fn demand(tasks: &[FpTask], t: u128) -> u128 {
    let of = |task: &FpTask| match t.checked_sub(task.deadline.0.into()) {
        Some(after) => (after / u128::from(task.period.0) + 1) * u128::from(task.runtime.0),
        None => 0,
    };
    tasks.iter().map(of).sum()
}

/// The last deadline before `t`.
fn before(tasks: &[FpTask], t: u128) -> Option<u128> {
    let of = |task: &FpTask| {
        let (deadline, period) = (u128::from(task.deadline.0), u128::from(task.period.0));
        Some(deadline + t.checked_sub(deadline + 1)? / period * period)
    };
    tasks.iter().filter_map(of).max()
}

/// The time beyond which no deadline can be the first that is missed: from the slack bound or the
/// busy period, whichever is shorter. `None`: not found in time, or the tasks need more than
/// `speed`.
fn horizon(tasks: &[FpTask], speed: u128) -> Option<u128> {
    let share = |t: &FpTask| (u128::from(t.runtime.0) << BW_SHIFT).div_ceil(t.period.0.into());
    let late = tasks.iter().map(|t| u128::from(t.deadline.0)).max()?;
    let left = speed.checked_sub(tasks.iter().map(share).sum()).filter(|left| *left > 0);
    let slack: u128 =
        tasks.iter().map(|t| u128::from(t.period.0.saturating_sub(t.deadline.0)) * share(t)).sum();
    let by_slack = left.map(|left| late.max(slack / left + 1));
    let mut busy = time(tasks.iter().map(|t| u128::from(t.runtime.0)).sum(), speed);
    for _ in 0..MOST {
        if by_slack.is_some_and(|slack| slack <= busy) {
            return by_slack;
        }
        let jobs = |t: &FpTask| busy.div_ceil(t.period.0.into()) * u128::from(t.runtime.0);
        let next = time(tasks.iter().map(jobs).sum(), speed);
        if next == busy {
            return Some(busy);
        }
        busy = next;
    }
    by_slack
}

/// Whether EDF keeps all deadlines of `tasks` on a CPU of `speed` (2²⁰ = one of capacity 1024). Periods are not 0.
pub fn edf_demand_holds(tasks: &[FpTask], speed: u64) -> bool {
    let tasks: alloc::vec::Vec<FpTask> =
        tasks.iter().copied().filter(|t| t.runtime > Span(0)).collect();
    let Some(first) = tasks.iter().map(|t| u128::from(t.deadline.0)).min() else { return true };
    let speed = u128::from(speed);
    if speed == 0 {
        return false;
    }
    let Some(end) = horizon(&tasks, speed) else { return false };
    // All is done before anything is due.
    let Some(mut t) = before(&tasks, end + 1) else { return true };
    for _ in 0..MOST {
        let needed = time(demand(&tasks, t), speed);
        if needed > t {
            return false;
        }
        if needed <= first {
            return true;
        }
        t = match needed < t {
            true => needed,
            false => match before(&tasks, t) {
                Some(earlier) => earlier,
                None => return true,
            },
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::BW_UNIT;

    fn task(runtime: u64, deadline: u64, period: u64) -> FpTask {
        FpTask { runtime: Span(runtime), period: Span(period), deadline: Span(deadline) }
    }

    /// Whether every time up to a multiple of the hyperperiod fits, looked at one by one.
    fn by_looking(tasks: &[FpTask], speed: u64) -> bool {
        let fits = |t: u128| demand(tasks, t) << BW_SHIFT <= t * u128::from(speed);
        (1..2 * 60 * 7 + 60).all(fits)
    }

    #[test]
    fn it_says_what_looking_at_every_time_says() {
        let (mut yes, mut no) = (0, 0);
        let mut state = 7u64;
        let mut dice = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..800 {
            let tasks: alloc::vec::Vec<FpTask> = (0..1 + dice(4))
                .map(|_| {
                    let period = [5, 6, 7, 10, 12, 15, 20, 30][dice(8) as usize];
                    let deadline = 1 + dice(period);
                    task(1 + dice(deadline.min(4)), deadline, period)
                })
                .collect();
            let speed = BW_UNIT * (40 + dice(61)) / 100;
            let holds = edf_demand_holds(&tasks, speed);
            // A share of exactly the speed is not told from more, as shares are rounded up.
            let wanted = by_looking(&tasks, speed);
            assert!(holds == wanted || !holds, "{tasks:?} at {speed}");
            let shares: u64 = tasks.iter().map(|t| (t.runtime.0 << 20).div_ceil(t.period.0)).sum();
            assert!(holds == wanted || shares >= speed, "{tasks:?} at {speed}");
            (yes, no) = (yes + u32::from(holds), no + u32::from(!holds));
        }
        assert!(yes > 100 && no > 100, "{yes} {no}");
    }

    #[test]
    fn early_deadlines_count_where_shares_do_not() {
        // 20 % each: six of them cannot be done within 1 of 10.
        let urgent = [task(2, 10, 10); 4];
        assert!(edf_demand_holds(&urgent, BW_UNIT));
        assert!(!edf_demand_holds(&[task(2, 3, 10); 4], BW_UNIT));
        assert!(edf_demand_holds(&[task(2, 8, 10); 4], BW_UNIT));
        assert!(edf_demand_holds(&[], 0) && !edf_demand_holds(&urgent, 0));
        assert!(edf_demand_holds(&[task(0, 1, 1)], 1));
    }
}
