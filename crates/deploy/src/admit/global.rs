//! Global EDF: the earliest deadlines on as many CPUs as there are. None of these tests is exact.
//!
//! What they suppose of the scheduler is what SCHED_DEADLINE keeps to on CPUs of any speeds, and no more: while a job waits, every CPU
//! has a job that is due no later. Which of them is on which CPU is left open: a job may stay on the slowest one to its end.
//!
//! ```text
//! s₁ ≥ … ≥ sₘ speeds, S their sum, F(j) that of the j fastest        C runtime, on a CPU of speed 1
//!
//! edf_speeds        Σ share ≤ S − (S − sₘ)/sₘ · largest share          on equal CPUs m − (m − 1) · largest:
//!                   jobs due at their periods' ends                   Goossens, Funk and Baruah 2003
//! edf_density       the same of C / deadline                           Bertogna, Cirinei and Lipari 2005
//! edf_interference  for each task, with the time X = D − C/sₘ that it may wait, and the others' work W in its window D:
//!                   for some j < m   F(j)·X + Σ W of all but the j largest ≤ S·X        on equal CPUs Σ min(W, X) ≤ m·X:
//!                   W = N·Cᵢ + min(Cᵢ, s₁·(D − N·Tᵢ)),  N = ⌊(D − Dᵢ) / Tᵢ⌋ + 1         Bertogna, Cirinei and Lipari 2009
//! ```
//!
//! On CPUs of several speeds they are the papers' arguments with what is left of them there; written out in docs/admission.md. Funk,
//! Goossens and Baruah (2001) have a test with (S − s₁)/s₁ and the like for unequal CPUs, which supposes that the earliest deadline
//! is on the fastest CPU at every moment. No Linux moves a running job there, and it is not among these.

use super::{Scheduler, Test, Verdict, percent};
use crate::{Load, Share};
use risetime_kernel::units::Capacity;

pub(super) const EDF_SPEEDS: Test = Test {
    name: "edf_speeds",
    doc: "the CPUs have what all tasks take, and as much more as the largest may be kept waiting by the others",
    source: "Goossens, Funk and Baruah 2003; on unequal CPUs docs/admission.md",
    of: &[Scheduler::GlobalEdf],
    exact: false,
    ask: |tasks, speeds, _| match tasks.iter().position(|t| t.deadline < t.period) {
        Some(task) => impossible(tasks, speeds)
            .unwrap_or_else(|| Verdict::unknown(Some(task), "a job is due before its period ends")),
        None => speeds_hold(tasks, speeds, Load::share),
    },
};

pub(super) const EDF_DENSITY: Test = Test {
    name: "edf_density",
    doc: "the same of what tasks take up to their deadlines",
    source: "Bertogna, Cirinei and Lipari 2005; on unequal CPUs docs/admission.md",
    of: &[Scheduler::GlobalEdf],
    exact: false,
    ask: |tasks, speeds, _| speeds_hold(tasks, speeds, Load::density),
};

pub(super) const EDF_INTERFERENCE: Test = Test {
    name: "edf_interference",
    doc: "no task can be kept waiting by the others for as long as it may wait",
    source: "Bertogna, Cirinei and Lipari 2009; on unequal CPUs docs/admission.md",
    of: &[Scheduler::GlobalEdf],
    exact: false,
    ask: interference,
};

/// Refuses what no scheduler can do: tasks that take more than all CPUs, or some tasks more than as
/// many of the fastest, since a task has one CPU at a time.
fn impossible(tasks: &[Load], speeds: &[Capacity]) -> Option<Verdict> {
    let fast = fastest_first(speeds);
    let all = Share::sum(tasks.iter().map(Load::share));
    let there = Share::of(fast.iter().sum(), 1024);
    if all > there {
        let reason = format!("they take {} of {}", percent(all), percent(there));
        return Some(Verdict::refused(None, reason));
    }
    let fastest = Share::of(fast.first().copied().unwrap_or(0), 1024);
    if let Some(task) = tasks.iter().position(|t| t.density() > fastest) {
        let takes = percent(tasks[task].density());
        let reason = format!("it takes {takes} up to its deadline, and has one CPU at a time");
        return Some(Verdict::refused(Some(task), reason));
    }
    let mut shares: Vec<Share> = tasks.iter().map(Load::share).collect();
    shares.sort_unstable_by(|a, b| b.cmp(a));
    let (mut taken, mut there) = (Share::NONE, 0);
    for (n, (share, speed)) in shares.iter().zip(&fast).enumerate() {
        (taken, there) = (taken.plus(*share), there + speed);
        let room = Share::of(there, 1024);
        if taken > room {
            let (n, takes) = (n + 1, percent(taken));
            let reason = format!("{n} of them take {takes}, and {n} CPUs have {}", percent(room));
            return Some(Verdict::refused(None, reason));
        }
    }
    None
}

fn fastest_first(speeds: &[Capacity]) -> Vec<u64> {
    let mut fast: Vec<u64> = speeds.iter().map(|s| s.0).collect();
    fast.sort_unstable_by(|a, b| b.cmp(a));
    fast
}

/// Refuses to judge what no test of this file can: a job may wait for the one before it, or a task
/// is not in time even alone on the slowest CPU. `None`: neither.
fn doubtful(tasks: &[Load], slowest: u64) -> Option<Verdict> {
    if let Some(task) = tasks.iter().position(|t| t.deadline > t.period) {
        return Some(Verdict::unknown(Some(task), "a job is due after its period ends"));
    }
    let room = Share::of(slowest, 1024);
    let task = tasks.iter().position(|t| slowest == 0 || t.density() > room)?;
    let takes = percent(tasks[task].density());
    let reason = format!(
        "it takes {takes} up to its deadline, and may have to stay on a CPU that has {}",
        percent(room)
    );
    Some(Verdict::unknown(Some(task), reason))
}

fn speeds_hold(tasks: &[Load], speeds: &[Capacity], of: fn(&Load) -> Share) -> Verdict {
    let fast = fastest_first(speeds);
    let slowest = fast.last().copied().unwrap_or(0);
    if let Some(verdict) = impossible(tasks, speeds).or_else(|| doubtful(tasks, slowest)) {
        return verdict;
    }
    let whole = fast.iter().sum::<u64>() as f64;
    let largest = tasks.iter().map(of).max().unwrap_or(Share::NONE).as_f64();
    let all = Share::sum(tasks.iter().map(of)).as_f64();
    let behind = (whole - slowest as f64) / slowest.max(1) as f64;
    let bound = whole / 1024.0 - behind * largest;
    let reason = format!("they take {:.2} %, the bound is {:.2} %", 100.0 * all, 100.0 * bound);
    if all <= bound - 1e-12 { Verdict::admitted(reason) } else { Verdict::unknown(None, reason) }
}

fn interference(tasks: &[Load], speeds: &[Capacity], _: Scheduler) -> Verdict {
    let fast = fastest_first(speeds);
    let slowest = fast.last().copied().unwrap_or(0);
    if let Some(verdict) = impossible(tasks, speeds).or_else(|| doubtful(tasks, slowest)) {
        return verdict;
    }
    // On faster CPUs no job is done later than on as many of the slowest: what holds there holds.
    match kept_waiting(tasks, &fast)
        .map(|own| (own, kept_waiting(tasks, &vec![slowest; fast.len()])))
    {
        Some((own, Some(_))) => own,
        _ => Verdict::admitted("no task can be kept waiting for too long"),
    }
}

/// The first task that might be.
fn kept_waiting(tasks: &[Load], fast: &[u64]) -> Option<Verdict> {
    let fastest = u128::from(fast.first().copied().unwrap_or(0));
    let whole: u128 = fast.iter().map(|s| u128::from(*s)).sum();
    let slowest = u128::from(fast.last().copied().unwrap_or(0));
    for (k, own) in tasks.iter().enumerate() {
        let window = u128::from(own.deadline);
        // X in 1/slowest ns, work in 1/1024 ns of a CPU of capacity 1024: sₘ·X, and W · 1024.
        let wait = (window * slowest).saturating_sub(u128::from(own.runtime) * 1024);
        let others = tasks.iter().enumerate().filter(|(i, _)| *i != k);
        let mut work: Vec<u128> =
            others.map(|(_, t)| work_within(t, window, fastest) * slowest).collect();
        work.sort_unstable_by(|a, b| b.cmp(a));
        let mut rest: u128 = work.iter().sum();
        let (mut beside, mut least) = (0, rest);
        for (speed, work) in fast.iter().take(fast.len().saturating_sub(1)).zip(&work) {
            beside += u128::from(*speed) * wait;
            rest -= work;
            least = least.min(beside + rest);
        }
        if least > whole * wait {
            let ns = |of: u128| of / (1024 * slowest);
            let (taken, there) = (ns(least), ns(whole * wait));
            let reason =
                format!("while it waits, the others may take {taken} ns of the CPUs' {there}");
            return Some(Verdict::unknown(Some(k), reason));
        }
    }
    None
}

/// The most that a task does in a window at whose end one of its jobs is due: in 1/1024 ns of a CPU of capacity 1024. Of the job
/// that comes before the window no more than the fastest CPU does until it is due.
fn work_within(task: &Load, window: u128, fastest: u128) -> u128 {
    let (work, period) = (u128::from(task.runtime) * 1024, u128::from(task.period));
    let jobs = window.checked_sub(task.deadline.into()).map_or(0, |after| after / period + 1);
    jobs * work + work.min(fastest * window.saturating_sub(jobs * period))
}
