//! One experiment under one kernel release after another: which of them changed what.
//!
//! ```text
//! figure       of one run; over start phases a Spread, with its median
//! differs      two medians are further apart than the wider of the two spreads' middle half, and than 1 %;
//!              or one of them is "never"
//! changed      a release's figure differs from that of the release before
//! bisected     the first release that differs from the oldest, if the newest does: by halves
//! ```
//!
//! Left out: what in a release changed it. A stable release has taken changes back from later ones, and is
//! built by somebody: [`Build`] says what is known of that.

use crate::result::{EndedBy, RunResult, Spread};
use risetime_kernel::KernelRev;
use std::collections::BTreeMap;

/// Medians that are closer than so many percent do not differ.
const FLOOR_PERCENT: f64 = 1.0;

/// Less than this is next to nothing: a twentieth of a ms, a mJ, a move.
const LEAST: f64 = 0.05;

/// What is known of how a kernel was built; `None`: it does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Ticks a second (CONFIG_HZ).
    pub hz: Option<u32>,
    /// As its banner says: `PREEMPT`, `PREEMPT_DYNAMIC`, …; empty: tasks are not preempted in the kernel
    /// (CONFIG_PREEMPT_VOLUNTARY or _NONE).
    pub preemption: Option<String>,
    /// CONFIG_UCLAMP_TASK.
    pub uclamp: Option<bool>,
    /// CONFIG_ENERGY_MODEL, without which nothing is energy-aware.
    pub energy_model: Option<bool>,
}

/// A figure of a history.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// `energy_mj`, `busy_ms.policy4`: ends in the unit before the dot.
    pub name: String,
    /// What it is, for a reader.
    pub about: String,
}

/// One release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// As the kernel calls itself; without a kernel the policy's name.
    pub name: String,
    /// Its generation: what is simulated.
    pub rev: KernelRev,
    /// How it was built, where there is a kernel.
    pub build: Build,
    /// The real kernel's figures, in the order of [`History::figures`]; `None`: none was run.
    pub real: Option<Vec<Spread>>,
    /// The simulator's.
    pub simulated: Vec<Spread>,
}

/// One experiment under several releases, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The workload.
    pub workload: String,
    /// The platform.
    pub platform: String,
    /// Whose times are figures.
    pub task: String,
    /// Start phases of each release, on each side.
    pub phases: u32,
    /// What was measured.
    pub figures: Vec<Figure>,
    /// The releases.
    pub releases: Vec<Release>,
    /// Generations of which no kernel is here.
    pub missing: Vec<KernelRev>,
    /// What a reader should know of the runs.
    pub notes: Vec<String>,
}

/// Who ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A kernel.
    Real,
    /// The simulator.
    Simulated,
}

impl Release {
    /// The figures of one side; `None`: it was not run.
    pub fn on(&self, side: Side) -> Option<&[Spread]> {
        match side {
            Side::Real => self.real.as_deref(),
            Side::Simulated => Some(&self.simulated),
        }
    }
}

impl History {
    /// Whether the figure of this number is another in the release of this number than in the release before
    /// it; `false` for the first, and where a side was not run.
    pub fn changed(&self, release: usize, figure: usize, side: Side) -> bool {
        let of = |i: usize| self.releases.get(i)?.on(side)?.get(figure);
        let before = release.checked_sub(1).and_then(of);
        before.zip(of(release)).is_some_and(|(was, is)| differs(was, is))
    }

    /// Whether simulator and kernel differ in this figure of this release.
    pub fn disagrees(&self, release: usize, figure: usize) -> bool {
        let r = &self.releases[release];
        let real = r.real.as_ref().and_then(|r| r.get(figure));
        real.is_some_and(|real| differs(real, &r.simulated[figure]))
    }

    /// Whether a real kernel was run at all.
    pub fn has_real(&self) -> bool {
        self.releases.iter().any(|r| r.real.is_some())
    }

    /// The figures that say something: not never, and not next to nothing, in every release.
    pub fn telling(&self) -> impl Iterator<Item = (usize, &Figure)> {
        let says = |s: &Spread| s.median.is_some_and(|m| m.abs() >= LEAST);
        self.figures.iter().enumerate().filter(move |(i, _)| {
            let sides = |r: &Release| {
                r.simulated.get(*i).is_some_and(says)
                    || r.real.as_ref().and_then(|r| r.get(*i)).is_some_and(says)
            };
            self.releases.iter().any(sides)
        })
    }
}

/// Whether two figures differ by more than their spread over start phases.
pub fn differs(a: &Spread, b: &Spread) -> bool {
    let (Some(x), Some(y)) = (a.median, b.median) else {
        return a.median.is_some() != b.median.is_some();
    };
    let middle = |s: &Spread| s.q1.zip(s.q3).map_or(f64::INFINITY, |(q1, q3)| q3 - q1);
    let apart = (x - y).abs();
    apart > middle(a).max(middle(b)) && apart > FLOOR_PERCENT / 100.0 * x.abs().max(y.abs())
}

/// The first release whose figure differs from the oldest's.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisected {
    /// Its number; `None`: the newest does not differ from the oldest.
    pub first: Option<usize>,
    /// Those that were asked, with what they gave, in the order of asking.
    pub asked: Vec<(usize, Spread)>,
}

/// Looks among `n` releases, at least two, for the first that differs from the first, by halves: exact where
/// a figure changes once and stays. `ask` gives a release's figure.
///
/// Errors: those of `ask`.
pub fn bisect<E>(n: usize, ask: &mut dyn FnMut(usize) -> Result<Spread, E>) -> Result<Bisected, E> {
    let mut asked = Vec::new();
    let mut figure = |i: usize| -> Result<Spread, E> {
        let spread = ask(i)?;
        asked.push((i, spread));
        Ok(spread)
    };
    let oldest = figure(0)?;
    let (mut same, mut other) = (0, n.saturating_sub(1));
    if !differs(&oldest, &figure(other)?) {
        return Ok(Bisected { first: None, asked });
    }
    while other - same > 1 {
        let middle = same + (other - same) / 2;
        if differs(&oldest, &figure(middle)?) { other = middle } else { same = middle }
    }
    Ok(Bisected { first: Some(other), asked })
}

/// The figures of one run, the times of tasks called `task`; the same names for every run on a platform.
///
/// ```text
/// energy_mj            all CPUs, whole run             full_speed_ms, lost_ms   of the task's reported burst
/// p50_ms, p90_ms       its activations                 wait_ms                  all tasks, runnable without a CPU
/// moves_per_s          changes of CPU, all tasks       busy_ms.policyN          of a policy's CPUs
/// mean_mhz.policyN     while a task of the workload ran on them
/// ```
pub fn figures(run: &RunResult, task: &str) -> Vec<(Figure, Option<f64>)> {
    let mut all: Vec<(Figure, Option<f64>)> = Vec::new();
    let mut add = |name: String, about: String, value| all.push((Figure { name, about }, value));
    let of = run.tasks.iter().find(|t| t.comm == task);
    let burst = of.and_then(|t| t.burst);
    let full = burst.filter(|b| b.ended_by == EndedBy::FullSpeed).map(|b| b.t1_ms - b.t0_ms);
    let latency = run.latency.iter().find(|l| l.tasks == task).filter(|l| l.activations > 0);
    let wait: f64 = run.tasks.iter().map(|t| t.whole.wait_ms).sum();
    let moves: u64 = run.tasks.iter().map(|t| t.whole.moves()).sum();
    add("energy_mj".into(), "energy of all CPUs".into(), run.energy_mj);
    add("full_speed_ms".into(), format!("until {task} ran at full speed"), full);
    add("lost_ms".into(), format!("full-speed work that {task} lost"), burst.map(|b| b.debt_ms));
    add("p50_ms".into(), format!("activations of {task}, p50"), latency.map(|l| l.p50_ms));
    add("p90_ms".into(), format!("activations of {task}, p90"), latency.map(|l| l.p90_ms));
    add("wait_ms".into(), "all tasks, waiting for a CPU".into(), Some(wait));
    let per_s = moves as f64 * 1000.0 / run.end_ms.max(1.0);
    add("moves_per_s".into(), "all tasks, changes of CPU a second".into(), Some(per_s));
    // By policy, in the order of its first CPU: time busy, and time and cycles of the tasks.
    let mut policies: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for cpu in &run.cpus {
        policies.entry(cpu.domain.0).or_default().0 += cpu.busy_ms;
        for at in run.tasks.iter().flat_map(|t| &t.whole.running).filter(|at| at.cpu == cpu.cpu) {
            let policy = policies.entry(cpu.domain.0).or_default();
            policy.1 += at.ms;
            policy.2 += at.ms * at.freq.0 as f64 / 1000.0;
        }
    }
    for (policy, (busy, ..)) in &policies {
        let about = format!("policy {policy}: its CPUs were busy");
        add(format!("busy_ms.policy{policy}"), about, Some(*busy));
    }
    for (policy, (_, ms, cycles)) in policies {
        let mean = (ms > 0.0).then(|| cycles / ms);
        let about = format!("policy {policy}: mean frequency while tasks ran");
        add(format!("mean_mhz.policy{policy}"), about, mean);
    }
    all
}

/// The figures of `runs` from several start phases, and what they are.
pub fn spreads(runs: &[RunResult], task: &str) -> (Vec<Figure>, Vec<Spread>) {
    let each: Vec<_> = runs.iter().map(|run| figures(run, task)).collect();
    let Some(first) = each.first() else { return (Vec::new(), Vec::new()) };
    let of = |i: usize| Spread::of(each.iter().map(|run| run.get(i).and_then(|f| f.1)));
    (first.iter().map(|f| f.0.clone()).collect(), (0..first.len()).map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: &[f64]) -> Spread {
        Spread::of(values.iter().copied().map(Some))
    }

    #[test]
    fn a_difference_is_more_than_the_spread_and_more_than_a_percent() {
        let (low, high) = (spread(&[10.0, 10.0, 11.0]), spread(&[12.0, 12.0, 12.2]));
        assert!(differs(&low, &high));
        let wide = spread(&[5.0, 12.0, 19.0]);
        assert!(!differs(&low, &wide) && !differs(&wide, &low), "within its middle half");
        assert!(!differs(&spread(&[100.0]), &spread(&[100.9])), "less than a percent");
        assert!(differs(&spread(&[100.0]), &spread(&[101.1])));
        let never = Spread::of([None, None]);
        assert!(differs(&low, &never) && !differs(&never, &never));
    }

    #[test]
    fn the_first_that_differs_is_found_by_halves() {
        for n in 2..40_usize {
            for first in 1..n {
                let mut ask = |i: usize| Ok::<_, ()>(spread(&[if i < first { 1.0 } else { 3.0 }]));
                let found = bisect(n, &mut ask).unwrap();
                assert_eq!(found.first, Some(first));
                assert!(
                    found.asked.len() <= 2 + n.ilog2() as usize + 1,
                    "{n}: {}",
                    found.asked.len()
                );
            }
            let mut none = |_| Ok::<_, ()>(spread(&[1.0]));
            let found = bisect(n, &mut none).unwrap();
            assert_eq!((found.first, found.asked.len()), (None, 2));
        }
        let mut fails = |i: usize| if i == 0 { Ok(spread(&[1.0])) } else { Err("no boot") };
        assert_eq!(bisect(3, &mut fails), Err("no boot"));
    }

    #[test]
    fn changes_count_from_the_release_before() {
        let release = |real: f64, simulated: f64| Release {
            name: "6.1".into(),
            rev: KernelRev::V6_1,
            build: Build::default(),
            real: Some(vec![spread(&[real]), spread(&[0.0])]),
            simulated: vec![spread(&[simulated]), spread(&[0.0])],
        };
        let figure = |name: &str| Figure { name: name.into(), about: String::new() };
        let mut history = History {
            workload: String::new(),
            platform: String::new(),
            task: String::new(),
            phases: 1,
            figures: vec![figure("energy_mj"), figure("wait_ms")],
            releases: vec![release(1.0, 1.0), release(2.0, 1.0), release(2.0, 2.0)],
            missing: Vec::new(),
            notes: Vec::new(),
        };
        let changed = |h: &History, side| (0..3).map(|r| h.changed(r, 0, side)).collect::<Vec<_>>();
        assert_eq!(changed(&history, Side::Real), [false, true, false]);
        assert_eq!(changed(&history, Side::Simulated), [false, false, true]);
        assert_eq!(
            (0..3).map(|r| history.disagrees(r, 0)).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert_eq!(
            history.telling().map(|(i, _)| i).collect::<Vec<_>>(),
            [0],
            "nobody ever waited"
        );
        history.releases[1].real = None;
        assert_eq!(changed(&history, Side::Real), [false; 3]);
        assert!(history.has_real());
    }
}
