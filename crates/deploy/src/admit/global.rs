//! Global EDF: the earliest deadlines on as many CPUs as there are. None of these tests is exact.
//!
//! ```text
//! edf_speeds        Σ speed ≥ Σ share + λ · largest share       λ = max over k of (Σ speeds behind k) / speed k, the fastest first:
//!                   m − 1 on equal CPUs                          Funk, Goossens and Baruah 2001; Goossens, Funk and Baruah 2003
//! edf_density       the same of runtime / deadline: jobs may be due before their periods end
//! edf_interference  for each task: what others can take of the time that it does not need is less than m CPUs' worth
//!                   Σ min(W, D − C + 1) < m · (D − C + 1),  W = N·Cᵢ + min(Cᵢ, D − N·Tᵢ),  N = ⌊(D − Dᵢ) / Tᵢ⌋ + 1
//!                   equal CPUs alone                             Bertogna, Cirinei and Lipari 2009
//! ```

use super::{Answer, Scheduler, Test, Verdict, on, percent};
use crate::{Load, Share};
use risetime_kernel::units::Capacity;

pub(super) const EDF_SPEEDS: Test = Test {
    name: "edf_speeds",
    doc: "the CPUs have what all tasks take, and as much more as the largest may be kept waiting by the others",
    source: "Funk, Goossens and Baruah 2001; Goossens, Funk and Baruah 2003",
    of: &[Scheduler::GlobalEdf],
    exact: false,
    ask: |tasks, speeds, _| match tasks.iter().position(|t| t.deadline < t.period) {
        Some(task) => {
            let too_much = impossible(tasks, speeds);
            too_much.unwrap_or_else(|| {
                Verdict::unknown(Some(task), "a job is due before its period ends")
            })
        }
        None => speeds_hold(tasks, speeds, Load::share),
    },
};

pub(super) const EDF_DENSITY: Test = Test {
    name: "edf_density",
    doc: "the same of what tasks take up to their deadlines",
    source: "Goossens, Funk and Baruah 2003, of densities: Bertogna, Cirinei and Lipari 2005",
    of: &[Scheduler::GlobalEdf],
    exact: false,
    ask: |tasks, speeds, _| speeds_hold(tasks, speeds, Load::density),
};

pub(super) const EDF_INTERFERENCE: Test = Test {
    name: "edf_interference",
    doc: "no task can be kept waiting by the others for as long as it may wait",
    source: "Bertogna, Cirinei and Lipari 2009",
    of: &[Scheduler::GlobalEdf],
    exact: false,
    ask: interference,
};

/// More than all CPUs, or than the fastest: no scheduler does it.
fn impossible(tasks: &[Load], speeds: &[Capacity]) -> Option<Verdict> {
    let all = Share::sum(tasks.iter().map(Load::share));
    let speed = speeds.iter().map(|s| s.0).sum::<u64>();
    if all > Share::of(speed, 1024) {
        let there = percent(Share::of(speed, 1024));
        return Some(Verdict::refused(None, format!("they take {} of {there}", percent(all))));
    }
    let fastest = speeds.iter().map(|s| s.0).max().unwrap_or(0);
    let large = |t: &Load| t.density() > Share::of(fastest, 1024);
    let task = tasks.iter().position(large)?;
    let reason = format!(
        "it takes {} up to its deadline, and has one CPU at a time",
        percent(tasks[task].density())
    );
    Some(Verdict::refused(Some(task), reason))
}

fn speeds_hold(tasks: &[Load], speeds: &[Capacity], of: fn(&Load) -> Share) -> Verdict {
    if let Some(verdict) = impossible(tasks, speeds) {
        return verdict;
    }
    let mut fast: Vec<u64> = speeds.iter().map(|s| s.0).collect();
    fast.sort_unstable_by(|a, b| b.cmp(a));
    let behind = |k: usize| fast[k + 1..].iter().sum::<u64>();
    let lambda = (0..fast.len())
        .filter(|k| fast[*k] > 0)
        .map(|k| behind(k) as f64 / fast[k] as f64)
        .fold(0.0, f64::max);
    let largest = tasks.iter().map(of).max().unwrap_or(Share::NONE).as_f64();
    let all = Share::sum(tasks.iter().map(of)).as_f64();
    let there = fast.iter().sum::<u64>() as f64 / 1024.0;
    let bound = there - lambda * largest;
    let reason = format!("they take {:.2} %, the bound is {:.2} %", 100.0 * all, 100.0 * bound);
    if all <= bound - 1e-12 { Verdict::admitted(reason) } else { Verdict::unknown(None, reason) }
}

fn interference(tasks: &[Load], speeds: &[Capacity], _: Scheduler) -> Verdict {
    if let Some(verdict) = impossible(tasks, speeds) {
        return verdict;
    }
    let Some(speed) = speeds.first().filter(|first| speeds.iter().all(|s| s == *first)) else {
        return Verdict::unknown(None, "the CPUs are not alike");
    };
    let (tasks, m) = (on(tasks, *speed), speeds.len() as u128);
    if let Some(task) = tasks.iter().position(|t| t.deadline > t.period) {
        return Verdict::unknown(Some(task), "a job is due after its period ends");
    }
    for (k, own) in tasks.iter().enumerate() {
        let window = u128::from(own.deadline);
        let free = window - u128::from(own.runtime) + 1;
        let others = tasks.iter().enumerate().filter(|(i, _)| *i != k);
        let taken: u128 = others.map(|(_, t)| work_within(t, window).min(free)).sum();
        if taken >= m * free {
            let reason =
                format!("the others may take {taken} ns of the {} that it can wait", m * free);
            return Verdict { answer: Answer::Unknown, task: Some(k), reason };
        }
    }
    Verdict::admitted("no task can be kept waiting for too long")
}

/// The most that a task does in a window at whose end one of its jobs is due, in ns.
fn work_within(task: &Load, window: u128) -> u128 {
    let (runtime, period) = (u128::from(task.runtime), u128::from(task.period));
    let jobs = window.checked_sub(task.deadline.into()).map_or(0, |after| after / period + 1);
    jobs * runtime + runtime.min(window.saturating_sub(jobs * period))
}
