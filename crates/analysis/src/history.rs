//! One experiment under one kernel release after another: which of them changed what.
//!
//! ```text
//! figure       of one run; over start phases a median, and what they have in common
//! step         what a release has more than the one before, start phase by start phase, with its interval: those of all
//!              steps of a figure hold together with 95 %
//! changed      the interval of its step lies on one side of 0 (sure); or one of the two is "never"
//! bistable     the start phases fall into two groups that lie further apart than either is wide, three times, and than 2 %
//! disagrees    kernel and simulator: two medians further apart than the wider of the two spreads' middle half, and than 1 %;
//!              or one of them is "never"
//! ```
//!
//! Left out: what in a release changed it. A stable release has taken changes back from later ones, and is
//! built by somebody: [`Build`] says what is known of that.

use crate::compare::{Difference, Family};
use crate::metric::Metric;
use crate::result::{EndedBy, RunResult, Spread};
use risetime_kernel::KernelRev;
use risetime_model::InputError;
use std::collections::BTreeMap;

/// Medians that are closer than so many percent do not differ.
const FLOOR_PERCENT: f64 = 1.0;

/// Difference that is next to nothing: a twentieth of a ms, a mJ, a move.
const LEAST: f64 = 0.05;

/// A kernel's build options as far as they are known; `None`: the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Build {
    /// Ticks a second (CONFIG_HZ).
    pub hz: Option<u32>,
    /// Preemption as the banner says: `PREEMPT`, `PREEMPT_DYNAMIC`, …; empty: tasks are not
    /// preempted in the kernel (CONFIG_PREEMPT_VOLUNTARY or _NONE).
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
    /// Meaning of the figure, for a reader.
    pub about: String,
}

/// One release.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// Name by which the kernel calls itself; without a kernel the policy's name.
    pub name: String,
    /// The release's generation: what is simulated.
    pub rev: KernelRev,
    /// Build options, where there is a kernel.
    pub build: Build,
    /// The real kernel's figures, in the order of [`History::figures`]; `None`: none was run.
    pub real: Option<Vec<Taken>>,
    /// The simulator's.
    pub simulated: Vec<Taken>,
}

/// A figure under one release.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// Values from each start phase; `None`: never.
    pub values: Vec<Option<f64>>,
    /// Median and spread of the values.
    pub spread: Spread,
}

/// Values in two groups: the median of each, and how many there are.
pub type Groups = [(f64, usize); 2];

impl Taken {
    /// The figure of these values, one for each start phase.
    pub fn of(values: Vec<Option<f64>>) -> Taken {
        Taken { spread: Spread::of(values.iter().copied()), values }
    }

    /// The two groups into which the values fall, if they do: a median says little then.
    pub fn groups(&self) -> Option<Groups> {
        /// Gap that keeps two groups apart: so many times the wider group, and so much of their
        /// values.
        const APART: (f64, f64) = (3.0, 0.02);
        let mut x: Vec<f64> = self.values.iter().flatten().copied().collect();
        x.sort_by(f64::total_cmp);
        let gap = |i: &usize| x[*i] - x[*i - 1];
        // A few that are off by themselves are no group.
        let few = 2.max(x.len() / 10);
        let splits = few..(x.len() + 1).saturating_sub(few);
        let at = splits.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
        let (low, high) = x.split_at(at);
        let wide = |g: &[f64]| g[g.len() - 1] - g[0];
        let median = |g: &[f64]| Spread::of(g.iter().copied().map(Some)).median;
        let apart = gap(&at) > APART.0 * wide(low).max(wide(high))
            && gap(&at) > APART.1 * x[x.len() - 1].abs().max(x[0].abs())
            && gap(&at) > LEAST;
        apart.then_some([(median(low)?, low.len()), (median(high)?, high.len())])
    }

    /// The difference of this release to the one `before`, told with all other steps of the figure.
    fn less(&self, before: &Taken, steps: Family) -> Option<Difference> {
        let pair = |(is, was): (&Option<f64>, &Option<f64>)| Some((*is)? - (*was)?);
        let all: Vec<Option<f64>> = self.values.iter().zip(&before.values).map(pair).collect();
        let left_out = all.iter().filter(|d| d.is_none()).count() as u32;
        Difference::of(all.into_iter().flatten(), left_out, steps)
    }

    /// Whether it is sure that it is another than `before`; `step`: how much more it is.
    fn is_another(&self, before: &Taken, step: Option<&Difference>) -> bool {
        let never = |t: &Taken| t.spread.median.is_none();
        never(self) != never(before) || step.is_some_and(Difference::is_sure)
    }
}

/// One experiment under several releases, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// The workload.
    pub workload: String,
    /// The platform.
    pub platform: String,
    /// Task whose times are figures.
    pub task: String,
    /// Start phases of each release, on each side.
    pub phases: u32,
    /// Figures that were measured.
    pub figures: Vec<Figure>,
    /// The releases.
    pub releases: Vec<Release>,
    /// Generations of which no kernel is here.
    pub missing: Vec<KernelRev>,
    /// Notes for the reader on the runs.
    pub notes: Vec<String>,
}

/// The side that ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// A kernel.
    Real,
    /// The simulator.
    Simulated,
}

impl Release {
    /// The figures of one side; `None`: it was not run.
    pub fn on(&self, side: Side) -> Option<&[Taken]> {
        match side {
            Side::Real => self.real.as_deref(),
            Side::Simulated => Some(&self.simulated),
        }
    }
}

impl History {
    /// The difference of the release of this number to the one before, in the figure of this
    /// number; `None` for the first, and where a side was not run or is never there.
    pub fn step(&self, release: usize, figure: usize, side: Side) -> Option<Difference> {
        let (was, is) = self.both(release, figure, side)?;
        is.less(was, Family(self.releases.len().saturating_sub(1)))
    }

    fn both(&self, release: usize, figure: usize, side: Side) -> Option<(&Taken, &Taken)> {
        let of = |i: usize| self.releases.get(i)?.on(side)?.get(figure);
        release.checked_sub(1).and_then(of).zip(of(release))
    }

    /// Whether it is sure that the figure of this number is another in the release of this number than in the release before
    /// it; `false` for the first, and where a side was not run.
    pub fn changed(&self, release: usize, figure: usize, side: Side) -> bool {
        let both = self.both(release, figure, side);
        let step = self.step(release, figure, side);
        both.is_some_and(|(was, is)| is.is_another(was, step.as_ref()))
    }

    /// The release with the largest step of a figure, of the sure ones if there are any; `None`: there is none.
    pub fn largest(&self, figure: usize, side: Side) -> Option<usize> {
        let of = |i| self.step(i, figure, side);
        largest((0..self.releases.len()).map(of))
    }

    /// Whether simulator and kernel differ in this figure of this release.
    pub fn disagrees(&self, release: usize, figure: usize) -> bool {
        let r = &self.releases[release];
        let real = r.real.as_ref().and_then(|r| r.get(figure));
        real.is_some_and(|real| differs(&real.spread, &r.simulated[figure].spread))
    }

    /// Whether a real kernel was run at all.
    pub fn has_real(&self) -> bool {
        self.releases.iter().any(|r| r.real.is_some())
    }

    /// The figures that say something: not never, and not next to nothing, in every release.
    pub fn telling(&self) -> impl Iterator<Item = (usize, &Figure)> {
        let says = |t: &Taken| t.spread.median.is_some_and(|m| m.abs() >= LEAST);
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

/// The number of the largest of these steps, the first on ties: of those that are sure, else of all that are steps.
fn largest(steps: impl Iterator<Item = Option<Difference>>) -> Option<usize> {
    let all = steps.enumerate().filter_map(|(i, d)| Some((i, d.filter(|d| d.median != 0.0)?)));
    let mut best: Option<(usize, (bool, f64))> = None;
    for (i, d) in all {
        let size = (d.is_sure(), d.median.abs());
        if best.is_none_or(|(_, most)| size > most) {
            best = Some((i, size));
        }
    }
    best.map(|(i, _)| i)
}

/// Result of a bisection: where a figure makes its largest step.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisected {
    /// The release of the largest step, of the sure ones if there are any, or of the one that was named; `None`: none is another
    /// than the one before.
    pub first: Option<usize>,
    /// The releases that were asked, oldest first, with what each gave and how much more that is than under the one before.
    pub asked: Vec<(usize, Taken, Option<Difference>)>,
}

impl Bisected {
    /// The bisection of what the releases of these numbers gave, oldest first.
    pub fn of(taken: Vec<(usize, Taken)>) -> Bisected {
        let steps = Family(taken.len().saturating_sub(1));
        let less = |i: usize| taken[i].1.less(&taken[i.checked_sub(1)?].1, steps);
        let all: Vec<Option<Difference>> = (0..taken.len()).map(less).collect();
        let first = largest(all.iter().copied()).map(|i| taken[i].0);
        let asked = taken.into_iter().zip(all).map(|((i, taken), step)| (i, taken, step));
        Bisected { first, asked: asked.collect() }
    }
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

/// The figures of `runs` from several start phases, and what they are: these metrics, if any is named, else those of
/// [`figures`].
///
/// Errors: a metric that a run does not have.
pub fn taken(
    runs: &[RunResult],
    task: &str,
    metrics: &[Metric],
) -> Result<(Vec<Figure>, Vec<Taken>), InputError> {
    let named = |run: &RunResult, metric: &Metric| {
        let (value, unit) = metric.of(run)?;
        let about = format!("in{}", unit.as_str());
        let about = if about == "in" { "how many".into() } else { about };
        Ok::<_, InputError>((Figure { name: metric.name.clone(), about }, value))
    };
    let of = |run: &RunResult| match metrics {
        [] => Ok(figures(run, task)),
        some => some.iter().map(|metric| named(run, metric)).collect(),
    };
    let each: Vec<Vec<(Figure, Option<f64>)>> = runs.iter().map(of).collect::<Result<_, _>>()?;
    let Some(first) = each.first() else { return Ok((Vec::new(), Vec::new())) };
    let of = |i: usize| Taken::of(each.iter().map(|run| run.get(i).and_then(|f| f.1)).collect());
    Ok((first.iter().map(|f| f.0.clone()).collect(), (0..first.len()).map(of).collect()))
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

    fn taken(values: &[f64]) -> Taken {
        Taken::of(values.iter().copied().map(Some).collect())
    }

    /// Values of nine start phases that are about `x`.
    fn about(x: f64) -> Taken {
        taken(&[0.0, 0.3, 0.1, 0.2, 0.0, 0.25, 0.1, 0.05, 0.2].map(|by| x + by))
    }

    #[test]
    fn the_largest_step_is_found_and_not_the_first() {
        let of = |all: &[f64]| Bisected::of(all.iter().map(|x| about(*x)).enumerate().collect());
        let found = of(&[1450.0, 1470.0, 1470.0, 2180.0, 2180.0, 2100.0]);
        assert_eq!(found.first, Some(3));
        let step = found.asked[3].2.unwrap();
        assert!(step.is_sure() && (step.median - 710.0).abs() < 1e-9);
        assert!(found.asked[1].2.unwrap().is_sure() && !found.asked[2].2.unwrap().is_sure());
        // One that went back is a step as well.
        assert_eq!(of(&[5.0, 90.0, 5.0]).first, Some(1));
        assert_eq!(of(&[5.0, 5.0, 5.0]).first, None);
        // The largest is named also where nothing is sure.
        let two_stay = [0.0, 700.0, 710.0, 0.1, 700.0, 720.0, 705.0, 700.0, 710.0];
        let moved = taken(&two_stay.map(|by| 1450.0 + by));
        let found = Bisected::of(vec![(0, about(1440.0)), (1, about(1450.0)), (2, moved)]);
        assert_eq!(found.first, Some(1), "ten are sure");
        let unsure = Bisected { first: None, asked: found.asked.into_iter().skip(1).collect() };
        let again = Bisected::of(unsure.asked.into_iter().map(|(i, t, _)| (i, t)).collect());
        assert!(again.first == Some(2) && !again.asked[1].2.unwrap().is_sure());
        // Half of the phases one way, half the other: the median moves, and nothing is sure.
        let both = |few: f64, many: f64| taken(&[few, many, few, many, few, many, few, many, many]);
        let found = Bisected::of(vec![(0, both(1.0, 9.0)), (1, both(9.0, 1.0))]);
        assert!(!found.asked[1].2.unwrap().is_sure());
    }

    #[test]
    fn two_groups_are_told_from_a_spread() {
        let low_high = taken(&[1480.0, 2180.0, 1478.0, 2181.0, 2179.0, 1479.0, 2180.0]);
        assert_eq!(low_high.groups(), Some([(1479.0, 3), (2180.0, 4)]));
        assert_eq!(taken(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).groups(), None);
        assert_eq!(taken(&[1.0, 1.0, 1.0, 1.0, 1.0, 9.0]).groups(), None, "one by itself");
        assert_eq!(taken(&[100.0, 100.0, 101.0, 101.0]).groups(), None, "next to nothing");
        assert_eq!(taken(&[1.0, 2.0]).groups(), None);
        assert_eq!(Taken::default().groups(), None);
    }

    #[test]
    fn changes_count_from_the_release_before() {
        let release = |real: f64, simulated: f64| Release {
            name: "6.1".into(),
            rev: KernelRev::V6_1,
            build: Build::default(),
            real: Some(vec![about(real), taken(&[0.0; 9])]),
            simulated: vec![about(simulated), taken(&[0.0; 9])],
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
        assert_eq!(history.largest(0, Side::Real), Some(1));
        assert_eq!(history.largest(1, Side::Real), None);
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
