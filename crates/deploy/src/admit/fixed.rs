//! Fixed priorities on one CPU: rate monotonic (the shortest period first) and deadline monotonic.
//!
//! ```text
//! rm_share       Σ share ≤ n · (2^(1/n) − 1)                             Liu and Layland 1973, theorem 5
//! rm_product     Π (share + 1) ≤ 2                                       Bini, Buttazzo and Buttazzo 2003
//! response_time  w = (q + 1) · runtime + Σ ⌈w / period⌉ · runtime        of those before it; for q = 0, 1, … until w ends in
//!                response = max (w − q · period) ≤ deadline              the period of job q: exact   (Lehoczky 1990)
//! ```
//!
//! The last one is M. Joseph's and P. Pandya's of 1986 where jobs are due before their periods end.

use super::{Scheduler, Test, Verdict, on_one, percent};
use crate::{Load, Share};
use risetime_kernel::units::Capacity;

pub(super) const RM_SHARE: Test = Test {
    name: "rm_share",
    doc: "n tasks take no more than n · (2^(1/n) − 1) of the CPU",
    source: "Liu and Layland 1973, theorem 5",
    of: &[Scheduler::Rm],
    exact: false,
    ask: |tasks, speeds, _| {
        let tasks = on_one(tasks, speeds);
        let n = tasks.len().max(1) as f64;
        let bound = n * ((1.0 / n).exp2() - 1.0);
        let share = Share::sum(tasks.iter().map(Load::share));
        bounded(&tasks, share, share.as_f64() <= bound - MARGIN, format!("{:.2} %", 100.0 * bound))
    },
};

pub(super) const RM_PRODUCT: Test = Test {
    name: "rm_product",
    doc: "the product of all (share + 1) is at most 2 (hyperbolic bound)",
    source: "Bini, Buttazzo and Buttazzo 2003",
    of: &[Scheduler::Rm],
    exact: false,
    ask: |tasks, speeds, _| {
        let tasks = on_one(tasks, speeds);
        let share = Share::sum(tasks.iter().map(Load::share));
        let product: f64 = tasks.iter().map(|t| 1.0 + t.share().as_f64()).product();
        bounded(
            &tasks,
            share,
            product <= 2.0 - MARGIN,
            format!("a product of 2, this is {product:.3}"),
        )
    },
};

pub(super) const RESPONSE_TIME: Test = Test {
    name: "response_time",
    doc: "the longest response of each task, beside all that go before it, is before its deadline",
    source: "Joseph and Pandya 1986; Lehoczky 1990",
    of: &[Scheduler::Rm, Scheduler::Dm],
    exact: true,
    ask: by_response,
};

/// Margin for sums of floating-point numbers: what they lose is less.
const MARGIN: f64 = 1e-12;
/// Largest number of jobs of a task that are looked at.
const JOBS: u128 = 100_000;

/// The order of priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The shortest period.
    Rate,
    /// The shortest deadline.
    Deadline,
}

impl Order {
    /// The lower, the earlier.
    pub fn key(self, task: &Load) -> u64 {
        match self {
            Order::Rate => task.period,
            Order::Deadline => task.deadline,
        }
    }
}

fn bounded(tasks: &[Load], share: Share, within: bool, bound: String) -> Verdict {
    if share > Share::whole(1) {
        return Verdict::refused(None, format!("they take {} of the CPU", percent(share)));
    }
    if let Some(task) = tasks.iter().position(|t| t.deadline < t.period) {
        return Verdict::unknown(Some(task), "a job is due before its period ends");
    }
    let reason = format!("they take {}, the bound is {bound}", percent(share));
    if within { Verdict::admitted(reason) } else { Verdict::unknown(None, reason) }
}

fn by_response(tasks: &[Load], speeds: &[Capacity], of: Scheduler) -> Verdict {
    let tasks = on_one(tasks, speeds);
    let order = if of == Scheduler::Dm { Order::Deadline } else { Order::Rate };
    let share = Share::sum(tasks.iter().map(Load::share));
    if share > Share::whole(1) {
        return Verdict::refused(None, format!("they take {} of the CPU", percent(share)));
    }
    for (i, task) in tasks.iter().enumerate() {
        match response_time(&tasks, i, order) {
            Some(response) if response <= task.deadline.into() => {}
            Some(response) => {
                let reason = format!("it may take {response} ns, and is due in {}", task.deadline);
                return Verdict::refused(Some(i), reason);
            }
            None => {
                return Verdict::unknown(Some(i), "it takes too long to see the end of its jobs");
            }
        }
    }
    Verdict::admitted(format!("every response is in time; {}", percent(share)))
}

/// The longest time from when a job of `task` comes to when it is done, in ns, under fixed priorities; of equal ones the
/// others go first. `None`: not found in time, or there is none.
pub fn response_time(tasks: &[Load], task: usize, order: Order) -> Option<u128> {
    let own = tasks[task];
    let before: Vec<Load> = tasks
        .iter()
        .enumerate()
        .filter(|(i, t)| *i != task && order.key(t) <= order.key(&own))
        .map(|(_, t)| *t)
        .collect();
    response_among(own, &before, 0)
}

/// The response time, in ns, of a task of which `before` go first, each of whose jobs may come so
/// many ns late (Audsley and others 1993).
pub(crate) fn response_among(own: Load, before: &[Load], jitter: u64) -> Option<u128> {
    let all = Share::sum(before.iter().map(|t| t.share())).plus(own.share());
    if all > Share::whole(1) {
        return None;
    }
    let mut longest = 0;
    let mut window: u128 = 0;
    for q in 0..JOBS {
        let least = (q + 1) * u128::from(own.runtime);
        window = window.max(least);
        loop {
            let jobs = |t: &Load| (window + u128::from(jitter)).div_ceil(t.period.into());
            let others = before.iter().map(|t| jobs(t) * u128::from(t.runtime));
            let next = least + others.sum::<u128>();
            if next == window {
                break;
            }
            window = next;
            // Whoever is that late is late: how late does not matter.
            if window.saturating_sub(q * u128::from(own.period))
                > 1000 * u128::from(own.deadline.max(own.period))
            {
                return Some(window - q * u128::from(own.period));
            }
        }
        longest = longest.max(window - q * u128::from(own.period));
        if window <= (q + 1) * u128::from(own.period) {
            return Some(longest);
        }
    }
    None
}
