//! Fixed priorities under a server: what a server gives within some time, and how long a job then takes at most.
//!
//! ```text
//! given at least   ─┐        ┌───── …      sbf(t) = ⌊t' / Π⌋ · Θ + max(0, t' mod Π − (Π − Θ))       t' = t − (Π − Θ)
//!                   │   ┌────┘             for 2 · (Π − Θ) nothing at all: a job comes when the budget has just
//!                   └───┘                  been used, as early as it can be, and the next is given as late as it can
//!       0       2(Π−Θ)                     Θ = Π: the whole CPU, sbf(t) = t
//!
//! demand           C + Σ ⌈t / Tⱼ⌉ · Cⱼ     over those of higher priority, of equal priority too
//! response         the least t with demand(t) ≤ sbf(t − late) − lost; in time if it is at most D ≤ T
//! ```
//!
//! On the whole CPU this is M. Joseph's and P. Pandya's response-time analysis (The Computer Journal 29(5), 1986), exact for deadlines up
//! to the period. `late` and `lost` are for what a server is kept from by others that overrun, and for what it has had before.
//!
//! Source: I. Shin, I. Lee, "Periodic resource model for compositional real-time guarantees", RTSS 2003, definition 4 and lemma 4.1;
//! G. Lipari, E. Bini, "Resource partitioning among real-time applications", ECRTS 2003.

use crate::units::Span;

/// A server of `budget` in each `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Supply {
    /// Π, not 0.
    pub period: Span,
    /// Θ, at most the period.
    pub budget: Span,
    /// Delay of the supply beyond that of a periodic server, at most.
    pub late: Span,
    /// Loss of supply in all, beyond that, at most.
    pub lost: Span,
}

/// A task that comes at least a period apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FpTask {
    /// Running time of a job.
    pub runtime: Span,
    /// Period; not 0.
    pub period: Span,
    /// Relative deadline, from when a job comes; at most the period.
    pub deadline: Span,
}

impl Supply {
    /// A CPU of its own.
    pub const WHOLE: Supply =
        Supply { period: Span(1), budget: Span(1), late: Span(0), lost: Span(0) };

    /// The least that is given within any time of length `t`.
    #[cfg(test)]
    const fn sbf(self, t: Span) -> Span {
        let (period, budget) = (self.period.0, self.budget.0);
        let gap = period - budget;
        let after = t.0.saturating_sub(self.late.0).saturating_sub(gap);
        let given = after / period * budget + (after % period).saturating_sub(gap);
        Span(given.saturating_sub(self.lost.0))
    }

    /// The least time within which `work` is given for certain. `None`: never, or after more than 500 years.
    pub fn time_for(self, work: Span) -> Option<Span> {
        if work == Span(0) {
            return Some(work);
        }
        let (period, budget) = (u128::from(self.period.0), u128::from(self.budget.0));
        let gap = period - budget;
        let work = u128::from(work.0) + u128::from(self.lost.0);
        let whole = (work - 1).checked_div(budget)?;
        let t = 2 * gap + whole * period + (work - whole * budget) + u128::from(self.late.0);
        u64::try_from(t).ok().map(Span)
    }
}

/// The longest time that a job of `own` takes under `supply` beside `others` that go before it, each of which is as long as its
/// period or less apart. `None`: it may take longer than its deadline.
pub fn response_under(supply: Supply, own: FpTask, others: &[FpTask]) -> Option<Span> {
    let mut window = supply.time_for(own.runtime)?;
    loop {
        if window > own.deadline {
            return None;
        }
        let taken = others.iter().map(|t| {
            let jobs = u128::from(window.0).div_ceil(u128::from(t.period.0.max(1)));
            jobs * u128::from(t.runtime.0)
        });
        let demand = u128::from(own.runtime.0) + taken.sum::<u128>();
        let next = supply.time_for(Span(u64::try_from(demand).ok()?))?;
        if next == window {
            return Some(window);
        }
        window = next;
    }
}

/// Whether all of `tasks` from `first` on, the highest priority first, are in time under `supply`; two for which `equal` holds share a
/// priority, and each of them counts as before the other. Else the first that may be late.
pub fn fixed_priorities_hold(
    supply: Supply,
    tasks: &[FpTask],
    first: usize,
    equal: impl Fn(usize, usize) -> bool,
) -> Result<(), usize> {
    for (i, own) in tasks.iter().enumerate().skip(first) {
        let before = |j: &usize| *j != i && (*j < i || equal(*j, i));
        let others: alloc::vec::Vec<FpTask> =
            (0..tasks.len()).filter(before).map(|j| tasks[j]).collect();
        response_under(supply, *own, &others).ok_or(i)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(runtime: u64, period: u64, deadline: u64) -> FpTask {
        FpTask { runtime: Span(runtime), period: Span(period), deadline: Span(deadline) }
    }

    fn server(period: u64, budget: u64) -> Supply {
        Supply { period: Span(period), budget: Span(budget), ..Supply::WHOLE }
    }

    /// Counted out, step by step: budgets at the very beginning of the first period, and at the end of all others.
    #[test]
    fn the_bound_is_what_the_worst_server_gives() {
        for (period, budget) in [(5, 2), (7, 7), (10, 1), (4, 3), (9, 0)] {
            let gives = |at: u64| at % period >= period - budget;
            for t in 0..60 {
                // From the end of a budget that came first in its period.
                let given = (budget..budget + t).filter(|at| *at >= period && gives(*at)).count();
                assert_eq!(
                    server(period, budget).sbf(Span(t)).0,
                    given as u64,
                    "{period} {budget} {t}"
                );
            }
        }
    }

    #[test]
    fn the_time_for_some_work_is_the_inverse() {
        for (period, budget, late, lost) in
            [(5, 2, 0, 0), (1, 1, 0, 0), (10, 3, 2, 1), (7, 7, 3, 0)]
        {
            let of = Supply { late: Span(late), lost: Span(lost), ..server(period, budget) };
            for work in 1..40 {
                let t = of.time_for(Span(work)).expect("some day");
                assert!(
                    of.sbf(t) >= Span(work) && of.sbf(Span(t.0 - 1)) < Span(work),
                    "{of:?} {work}"
                );
            }
        }
        assert_eq!(server(10, 0).time_for(Span(1)), None);
        assert_eq!(server(10, 0).time_for(Span(0)), Some(Span(0)));
        assert_eq!(server(u64::MAX, 1).time_for(Span(9)), None);
    }

    /// By hand: the last one from 1 over 5, 6, 7 and 9 to 10.
    #[test]
    fn on_a_whole_cpu_it_is_response_time_analysis() {
        let tasks = [task(1, 4, 3), task(1, 5, 4), task(2, 6, 5), task(1, 11, 10)];
        let response = |i: usize| response_under(Supply::WHOLE, tasks[i], &tasks[..i]).map(|s| s.0);
        assert_eq!([0, 1, 2, 3].map(response), [Some(1), Some(2), Some(4), Some(10)]);
        assert_eq!(fixed_priorities_hold(Supply::WHOLE, &tasks, 0, |_, _| false), Ok(()));
        // The last two as equals: the third may come after the fourth.
        assert_eq!(fixed_priorities_hold(Supply::WHOLE, &tasks, 0, |a, b| a + b == 5), Err(2));
        assert_eq!(fixed_priorities_hold(server(4, 3), &tasks, 0, |_, _| false), Err(2));
    }
}
