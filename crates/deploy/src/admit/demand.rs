//! Processor demand under EDF: whatever must be done within t fits into t.
//!
//! ```text
//! demand(t) = Σ ⌊(t + period − deadline) / period⌋ · runtime ≤ t      for all t up to L: exact, if jobs come all at once
//! L         = the shorter one of: the first time when everything is done;
//!             max(deadlines, Σ (period − deadline) · share / (1 − Σ share))
//! ```
//!
//! Looked at from the end, from one time that can matter to the next: F. Zhang, A. Burns, "Schedulability Analysis for
//! Real-Time Systems with EDF Scheduling", IEEE Trans. Computers 58(9), 2009 (QPA). The test: S. Baruah, L. Rosier,
//! R. Howell, "Algorithms and complexity concerning the preemptive scheduling of periodic, real-time tasks on one
//! processor", Real-Time Systems 2, 1990.

use super::{Scheduler, Test, Verdict, on_one, percent};
use crate::{Load, Share};
use risetime_kernel::units::Capacity;

pub(super) const EDF_DEMAND: Test = Test {
    name: "edf_demand",
    doc: "whatever is due within some time fits into it, for every time (processor demand)",
    source: "Baruah, Rosier and Howell 1990; Zhang and Burns 2009",
    of: &[Scheduler::Edf],
    exact: true,
    ask,
};

/// Largest number of times that are looked at.
const MOST: u32 = 10_000_000;

fn ask(tasks: &[Load], speeds: &[Capacity], _: Scheduler) -> Verdict {
    let tasks = on_one(tasks, speeds);
    let share = Share::sum(tasks.iter().map(Load::share));
    if share > Share::whole(1) {
        return Verdict::refused(None, format!("they take {} of the CPU", percent(share)));
    }
    let Some(first) = tasks.iter().map(|t| u128::from(t.deadline)).min() else {
        return Verdict::admitted("there are none");
    };
    let Some(end) = horizon(&tasks, share) else {
        return Verdict::unknown(None, "it takes too long to see the end of their demand");
    };
    let fits =
        || Verdict::admitted(format!("what is due within any time fits; {}", percent(share)));
    let Some(mut t) = before(&tasks, end + 1) else { return fits() };
    for _ in 0..MOST {
        let needed = demand(&tasks, t);
        if needed > t {
            let reason = format!("within {t} ns {needed} ns are due");
            let due = |task: &Load| {
                (t.saturating_sub(task.deadline.into())) % u128::from(task.period) == 0
            };
            let task = tasks.iter().position(|task| t >= task.deadline.into() && due(task));
            return Verdict::refused(task, reason);
        }
        if needed <= first {
            return fits();
        }
        t = match needed < t {
            true => needed,
            false => match before(&tasks, t) {
                Some(earlier) => earlier,
                None => return fits(),
            },
        };
    }
    Verdict::unknown(None, "it takes too long to see the end of their demand")
}

/// The work that is due within `t` ns, in ns, if all tasks release a job together at 0.
pub fn demand(tasks: &[Load], t: u128) -> u128 {
    let of = |task: &Load| match t.checked_sub(task.deadline.into()) {
        Some(after) => (after / u128::from(task.period) + 1) * u128::from(task.runtime),
        None => 0,
    };
    tasks.iter().map(of).sum()
}

/// The last deadline before `t`.
fn before(tasks: &[Load], t: u128) -> Option<u128> {
    let of = |task: &Load| {
        let (deadline, period) = (u128::from(task.deadline), u128::from(task.period));
        let after = t.checked_sub(deadline + 1)?;
        Some(deadline + after / period * period)
    };
    tasks.iter().filter_map(of).max()
}

/// The time beyond which no deadline can be the first that is missed. `None`: not found in time.
fn horizon(tasks: &[Load], share: Share) -> Option<u128> {
    let late = tasks.iter().map(|t| u128::from(t.deadline)).max().unwrap_or(0);
    let left = 1.0 - share.as_f64();
    // Rounded generously: a longer look costs time alone.
    let slack: f64 = tasks
        .iter()
        .map(|t| t.period.saturating_sub(t.deadline) as f64 * t.runtime as f64 / t.period as f64)
        .sum();
    let by_slack = (left > 1e-9).then(|| late.max((slack / left * 1.000_001) as u128 + 1));
    let busy = busy_period(tasks);
    match (by_slack, busy) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The first time when all that has come is done, if all tasks begin together.
fn busy_period(tasks: &[Load]) -> Option<u128> {
    let mut length: u128 = tasks.iter().map(|t| u128::from(t.runtime)).sum();
    for _ in 0..100_000 {
        let jobs = |t: &Load| length.div_ceil(t.period.into()) * u128::from(t.runtime);
        let next: u128 = tasks.iter().map(jobs).sum();
        if next == length {
            return Some(length);
        }
        length = next;
    }
    None
}
