//! The main figures of a task as rows with a label, the same for one run and for the medians
//! over start phases, so that tables can put any of them side by side.

use crate::words;
use risetime_analysis::metric::Metric;
use risetime_analysis::{
    CpuResult, EndedBy, Jobs, Level, PhaseSummary, RunResult, Spread, TaskResult,
};
use risetime_kernel::units::CpuId;
use risetime_model::platform::cpu_ranges;

/// Condition under which two values of a figure may be subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// Comparable with all others.
    Any,
    /// Comparable if both counted until the same ending: a debt until the run's end is a lower
    /// bound, one until full speed is not.
    Ended(EndedBy),
    /// Never comparable: runs with different endings are in it; with a lower bound among them or
    /// not.
    Mixed {
        /// Whether one of them is a lower bound.
        bound: bool,
    },
}

/// Times at which the reported burst of a run began, and the run ended.
type Times = (Option<f64>, f64);

/// The first row of a task whose work has no end.
pub(super) const FIRST: &str = "to full speed ms";
/// The first row of another one.
const TOOK: &str = "longest burst took ms";

/// One row.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) label: String,
    pub(super) spread: Spread,
    pub(super) basis: Basis,
    /// Whether less is better; `None`: neither.
    pub(super) less_is_better: Option<bool>,
    /// Whether a run that does not list it has none of it, rather than not knowing it.
    pub(super) part: bool,
    /// Text where there is no value.
    pub(super) none: &'static str,
    /// True if the figure may be small, and is shown to three digits.
    pub(super) fine: bool,
    /// Time that the figure is about.
    pub(super) time: Time,
    /// Times of each run.
    pub(super) times: Vec<Times>,
}

/// Time that a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// The burst's.
    Burst,
    /// The whole run's.
    Run,
}

impl Figure {
    fn new(label: impl Into<String>, spread: Spread) -> Figure {
        let label = label.into();
        Figure {
            label,
            spread,
            basis: Basis::Any,
            less_is_better: Some(true),
            part: false,
            none: "never",
            fine: false,
            time: Time::Burst,
            times: Vec::new(),
        }
    }
    fn of_run(self) -> Figure {
        Figure { time: Time::Run, ..self }
    }
    /// The time at which the figure begins, if it is about one run's burst.
    pub(super) fn begins(&self) -> Option<f64> {
        match self.times.as_slice() {
            [(t0, _)] => *t0,
            _ => None,
        }
    }
    fn energy(label: &str, spread: Spread) -> Figure {
        Figure { none: words::UNKNOWN, ..Figure::new(label, spread) }
    }
    fn on(self, basis: Basis) -> Figure {
        Figure { basis, ..self }
    }
    fn part(self) -> Figure {
        Figure { part: true, ..self }
    }
    fn neutral(self) -> Figure {
        Figure { less_is_better: None, ..self }
    }

    /// Whether it ever happened; what is unknown is said to be.
    pub(super) fn is_there(&self) -> bool {
        self.spread.never < self.spread.n || self.none == words::UNKNOWN
    }

    /// The value for a reader; `at` picks it from the spread.
    pub(super) fn text(&self, at: impl Fn(&Spread) -> Option<f64>) -> String {
        let bound = match self.basis {
            Basis::Ended(EndedBy::RunEnd) | Basis::Mixed { bound: true } => "≥ ",
            _ => "",
        };
        match at(&self.spread) {
            Some(x) if self.fine => words::digits3(x),
            Some(x) => format!("{bound}{}", words::one(x)),
            None => self.none.into(),
        }
    }

    /// Whether both are about the same time: a burst that begins at about the same time, or all from
    /// the same time on.
    pub(super) fn same_time(&self, other: &Figure) -> bool {
        let t0 = |pair: (Option<f64>, Option<f64>)| match pair {
            (Some(a), Some(b)) => (a - b).abs() < BURSTS_APART_MS,
            (a, b) => a.is_none() && b.is_none(),
        };
        let mut pairs = self.times.iter().zip(&other.times);
        let same = |(a, b): (&Times, &Times)| {
            (self.time == Time::Run || t0((a.0, b.0))) && (a.1 - b.1).abs() < SHOWN_MS
        };
        self.times.len() == other.times.len() && pairs.all(same)
    }

    /// The difference of this median to the other's; `None` where there is none or it would
    /// mislead.
    pub(super) fn less(&self, other: &Figure) -> Option<f64> {
        if self.basis != other.basis || matches!(self.basis, Basis::Mixed { .. }) {
            return None;
        }
        if !self.same_time(other) {
            return None;
        }
        Some(self.spread.median? - other.spread.median?)
    }
}

/// Two bursts of a task are at least so far apart.
const BURSTS_APART_MS: f64 = 4.5;
/// Least time that a reader sees, in ms.
const SHOWN_MS: f64 = 0.1;

/// The times at which the reported burst begins, and the run ends.
fn times(run: &RunResult, t: &TaskResult) -> Times {
    (t.burst.map(|b| b.t0_ms), run.end_ms)
}

/// The figures of one task of one run.
pub(super) fn of_run(run: &RunResult, t: &TaskResult) -> Vec<Figure> {
    let one = |x: Option<f64>| Spread::of([x]);
    let burst = t.burst.as_ref();
    let basis = burst.map_or(Basis::Any, |b| Basis::Ended(b.ended_by));
    let mut rows = if t.endless {
        vec![
            Figure::new(FIRST, one(burst.and_then(words::to_full_speed))),
            Figure::new("lost ms", one(burst.map(|b| b.debt_ms))).on(basis),
            Figure::new("10-90 % rise ms", one(t.perf_10_90_ms)),
        ]
    } else {
        let took = burst.map(|b| b.took_ms);
        finite(one(took), one(burst.map(|b| b.longer_ms)), basis)
    };
    rows.extend(reach(t.reach.iter().map(|r| (r.what, one(r.after_ms)))));
    for (domain, ms) in on_domains(run, t) {
        rows.push(
            Figure::new(format!("on {} ms", cpus_of(run, domain)), one(Some(ms))).neutral().part(),
        );
    }
    rows.push(Figure::new("waiting ms", one(Some(t.whole.wait_ms))).of_run());
    rows.push(Figure::energy("energy, task mJ", one(t.whole.energy_mj)).of_run());
    rows.extend(of_whole_runs(std::slice::from_ref(run), t));
    let parts = if t.endless { &t.lost } else { &t.spent.longer };
    rows.extend(parts.iter().map(|l| lost(l.state, one(Some(l.ms)), basis)));
    at_times(&mut rows, vec![times(run, t)], one(run.energy_mj));
    rows
}

/// The first rows of finite work. Whether a burst has had full speed on its way is no matter: only the run's end cuts it off.
fn finite(took: Spread, longer: Spread, basis: Basis) -> Vec<Figure> {
    let basis = match basis {
        Basis::Ended(EndedBy::RunEnd) | Basis::Mixed { bound: true } => basis,
        _ => Basis::Any,
    };
    vec![
        Figure::new(TOOK, took).on(basis),
        Figure::new("longer than at full speed", longer).on(basis),
    ]
}

/// Sets the times of all `rows`, and puts the whole run's energy before the parts of what was lost.
fn at_times(rows: &mut Vec<Figure>, times: Vec<Times>, energy: Spread) {
    let parts = rows.iter().rposition(|row| row.label == "energy, task mJ").map_or(0, |i| i + 1);
    rows.insert(parts, Figure::energy("energy, all CPUs mJ", energy).of_run());
    rows.iter_mut().for_each(|row| row.times.clone_from(&times));
}

/// The figures of one task over start phases. `runs` are the phases' runs, in any order.
pub(super) fn of_phases(runs: &[RunResult], s: &PhaseSummary, index: usize) -> Vec<Figure> {
    let Some(t) = s.tasks.get(index) else {
        return Vec::new();
    };
    let bound = t.ended_by.iter().any(|e| e.0 == EndedBy::RunEnd);
    let basis = match t.ended_by.as_slice() {
        [] => Basis::Any,
        [(only, _)] => Basis::Ended(*only),
        _ => Basis::Mixed { bound },
    };
    let bursts = runs.iter().filter_map(|r| r.tasks.get(index)).map(|t| t.burst.as_ref());
    let full = Spread::of(bursts.map(|b| b.and_then(words::to_full_speed)));
    let mut rows = if t.endless {
        vec![
            Figure::new(FIRST, full),
            Figure::new("lost ms", t.debt_ms).on(basis),
            Figure::new("10-90 % rise ms", t.perf_10_90_ms),
        ]
    } else {
        finite(t.took_ms, t.longer_ms, basis)
    };
    rows.extend(reach(t.reach.iter().map(|r| (r.what, r.after_ms))));
    let name = |domain| match runs.first() {
        Some(run) => cpus_of(run, domain),
        None => domain.to_string(),
    };
    for (domain, ms) in &t.on_domain {
        rows.push(Figure::new(format!("on {} ms", name(*domain)), *ms).neutral().part());
    }
    rows.push(Figure::new("waiting ms", t.wait_ms).of_run());
    rows.push(Figure::energy("energy, task mJ", t.energy_mj).of_run());
    let task = runs.first().and_then(|run| run.tasks.get(index));
    rows.extend(task.into_iter().flat_map(|t| of_whole_runs(runs, t)));
    let parts = if t.endless { &t.lost } else { &t.longer };
    rows.extend(parts.iter().map(|l| lost(l.state, l.ms, basis)));
    let tasks = runs.iter().filter_map(|r| Some(times(r, r.tasks.get(index)?)));
    at_times(&mut rows, tasks.collect(), s.energy_mj);
    rows
}

/// The figures of all activations of a task, and of the jobs that it begins. Several instances are
/// pooled: the figures stand with the first one, and say of how many they are.
fn of_whole_runs(runs: &[RunResult], task: &TaskResult) -> Vec<Figure> {
    let Some(first) = runs.first() else { return Vec::new() };
    let (comm, name) = (task.comm.as_str(), risetime_analysis::group_name(&task.comm));
    let alike = || first.tasks.iter().filter(|t| risetime_analysis::group_name(&t.comm) == name);
    if alike().next().is_some_and(|t| t.task != task.task) {
        return Vec::new();
    }
    let pooled = match alike().count() {
        0 | 1 => String::new(),
        n => format!(", all {n} together"),
    };
    let begins = |j: &&Jobs| j.tasks.first().is_some_and(|t| t == comm || t == name);
    let job = first.jobs.iter().find(begins).map(|j| &j.name);
    let of_job = [("response_p50", "ms"), ("response_p99", "ms"), ("missed", "")];
    let of_task = [("activation_p50", "ms"), ("activation_p99", "ms"), ("wakeup_p99", "ms")];
    let jobs = job.into_iter().flat_map(|job| of_job.map(|figure| (job.as_str(), figure)));
    // Of a few activations a percentile is the largest one.
    let many = |r: &RunResult| r.latency.iter().any(|l| l.tasks == name && l.activations >= 20);
    let tasks = many(first).then(|| of_task.map(|figure| (name, figure)));
    let row = |(whose, (figure, unit)): (&str, (&str, &str))| {
        let metric = Metric::new(format!("{whose}.{figure}"));
        let values = runs.iter().map(|run| metric.of(run).ok().and_then(|(value, _)| value));
        let whose =
            if Some(whose) == job.map(String::as_str) && whose != name { whose } else { "" };
        let label = format!("{whose} {} {unit}", figure.replace('_', " "));
        let label = format!("{}{pooled}", label.trim());
        let fine = !unit.is_empty();
        Figure { none: "–", fine, ..Figure::new(label, Spread::of(values)).of_run() }
    };
    jobs.chain(tasks.into_iter().flatten()).map(row).collect()
}

/// Levels that belong into every table: the util levels and the biggest CPU. (Every OPP is in
/// the list of the single run.)
fn reach(levels: impl Iterator<Item = (Level, Spread)> + Clone) -> Vec<Figure> {
    let capacity = |l: &(Level, Spread)| match l.0 {
        Level::Capacity(c) => Some((c, l.1)),
        _ => None,
    };
    let util = levels.clone().filter_map(|(what, after)| match what {
        Level::Util(u) => Some(Figure::new(format!("util {u} after ms"), after)),
        _ => None,
    });
    let biggest = levels.filter_map(|l| capacity(&l)).max_by_key(|c| c.0);
    let biggest = biggest.map(|(_, after)| Figure::new("biggest CPU after ms", after));
    util.chain(biggest).collect()
}

fn lost(state: &str, ms: Spread, basis: Basis) -> Figure {
    Figure::new(format!("· {}", words::lost_state(state)), ms).on(basis).part()
}

/// The running time by domain, named by its first CPU.
fn on_domains(run: &RunResult, t: &TaskResult) -> Vec<(CpuId, f64)> {
    let mut sums: Vec<(CpuId, f64)> = Vec::new();
    for r in &t.spent.running {
        let domain = domain_of(run, r.cpu);
        match sums.iter_mut().find(|s| s.0 == domain) {
            Some(s) => s.1 += r.ms,
            None => sums.push((domain, r.ms)),
        }
    }
    sums.sort_by_key(|s| s.0);
    sums
}

fn domain_of(run: &RunResult, cpu: CpuId) -> CpuId {
    run.cpus.iter().find(|c| c.cpu == cpu).map_or(cpu, |c| c.domain)
}

/// The CPUs that a task's figures mean by a domain, of which this is the first CPU: `CPU0-3`. On a large machine they
/// are those of all domains that are told as this one.
pub(super) fn cpus_of(run: &RunResult, domain: CpuId) -> String {
    range(domain, run.cpus.iter().filter(|c| domain_of(run, c.told) == domain))
}

/// The CPUs that a task's figures mean by this one: on a large machine, all that are told as it.
pub(super) fn told_as(run: &RunResult, cpu: CpuId) -> String {
    range(cpu, run.cpus.iter().filter(|c| c.told == cpu))
}

fn range<'a>(first: CpuId, cpus: impl Iterator<Item = &'a CpuResult>) -> String {
    let cpus: Vec<CpuId> = cpus.map(|c| c.cpu).collect();
    if cpus.is_empty() { first.to_string() } else { format!("CPU{}", cpu_ranges(&cpus)) }
}
