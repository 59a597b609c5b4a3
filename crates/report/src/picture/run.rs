//! Runs of one workload over each other: how long the jobs took that it declares, what its leading task and its CPU did
//! around its burst, and how long activations and wakeups took.

use crate::chart::{Axis, AxisKind, Chart, Colour, Panel, Series, Shape, Size};
use crate::text::{running_intervals, sentence, sentence_of_jobs, window};
use crate::words;
use risetime_analysis::{RunResult, Timeline};
use risetime_kernel::units::CpuId;

/// Distributions of at most so many groups of tasks.
const GROUPS: usize = 6;
/// Number of activations below which there is no distribution to draw.
const ACTIVATIONS: u64 = 5;

/// A run, and the curves of its leading task.
pub type Followed<'a> = (&'a RunResult, &'a Timeline);

/// The picture of several runs: a colour a policy.
pub fn runs(runs: &[Followed<'_>]) -> Chart {
    let Some((first, _)) = runs.first() else { return Chart::default() };
    let task = first.leading().map_or("nothing ran", |t| t.comm.as_str());
    let declared = first.jobs.iter().find(|j| j.declared);
    let said = |r: &RunResult| {
        let said = sentence_of_jobs(r).or_else(|| r.leading().map(sentence));
        said.map(|text| format!("{}: {text}", r.policy))
    };
    let mut lines: Vec<String> = runs.iter().filter_map(|(r, _)| said(r)).collect();
    let whose =
        declared.map_or("its longest burst".into(), |_| format!("the longest burst of {task}"));
    lines.insert(0, format!("{}; time counts from the start of {whose}", words::backend(first)));
    let mut panels = responses(runs);
    panels.extend(strips(runs));
    panels.extend(distributions(runs));
    let about = declared.map_or(task, |j| j.name.as_str());
    Chart {
        title: format!("{} on {}: {about}", first.workload, first.platform),
        subtitle: lines.join("\n"),
        panels,
        ..Chart::default()
    }
}

/// The distributions of the responses of declared jobs, a panel for each of their names.
fn responses(runs: &[Followed<'_>]) -> Vec<Panel> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in runs.iter().flat_map(|(_, t)| &t.jobs) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let panel = |name: &&str| {
        let of = |t: &Timeline| t.jobs.iter().find(|(n, _)| n == name).map(|(_, s)| steps(s));
        let series = runs
            .iter()
            .enumerate()
            .filter_map(|(i, (r, t))| Some(Series::new(&r.policy, Colour::Nth(i), of(t)?)));
        Panel {
            title: format!("{name}: from release to done"),
            x: Axis::new("took at most", "ms"),
            y: Axis::new("share of jobs", "%").range(0.0, 100.0),
            series: series.collect(),
            ..Panel::default()
        }
    };
    names.iter().take(GROUPS).map(panel).collect()
}

/// A distribution as it is drawn, in %.
fn steps(steps: &[(f64, f64)]) -> Shape {
    let from = steps.first().map(|s| (s.0, 0.0));
    Shape::Step(from.into_iter().chain(steps.iter().map(|s| (s.0, 100.0 * s.1))).collect())
}

/// The panels of util, frequency, capacity and speed over the same time.
fn strips(runs: &[Followed<'_>]) -> Vec<Panel> {
    let tasks = runs.iter().filter_map(|(r, _)| r.leading());
    let end = tasks.map(|t| window(t).1).fold(1.0, f64::max);
    let panel = |title: &str, y: Axis, curve: &dyn Fn(&Followed<'_>) -> Vec<(f64, f64)>| {
        let one = |(i, run): (usize, &Followed<'_>)| {
            Series::new(&run.0.policy, Colour::Nth(i), Shape::Step(curve(run)))
        };
        Panel {
            title: title.into(),
            x: Axis::new("", "ms").range(0.0, end),
            y,
            series: runs.iter().enumerate().map(one).collect(),
            ..Panel::default()
        }
    };
    vec![
        panel("util_avg of the task", Axis::new("", "of 1024"), &|(r, t)| {
            since(r, t.util.iter().map(|p| (p.0, p.1 as f64)))
        }),
        panel("Frequency of the CPU it runs on", Axis::new("", "MHz"), &|(r, t)| frequency(r, t)),
        panel("Capacity of the CPU it runs on", Axis::new("", "of 1024"), &|(r, t)| capacity(r, t)),
        panel("Speed", Axis::new("", "% of the fastest CPU; 0: it does not run"), &|(r, t)| {
            since(r, t.speed.iter().map(|p| (p.0, p.1 / 10.24)))
        }),
    ]
}

fn t0(r: &RunResult) -> f64 {
    r.leading().and_then(|t| t.burst).map_or(0.0, |b| b.t0_ms)
}

fn since(r: &RunResult, points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    points.map(|(at, value)| (at - t0(r), value)).collect()
}

const GAP: (f64, f64) = (f64::NAN, f64::NAN);

fn capacity(r: &RunResult, t: &Timeline) -> Vec<(f64, f64)> {
    if !r.known.machine {
        return Vec::new();
    }
    let of =
        |cpu: CpuId| r.cpus.iter().find(|c| c.cpu == cpu).map_or(f64::NAN, |c| c.capacity as f64);
    let on = running_intervals(t, t0(r)).into_iter();
    on.flat_map(|(from, to, cpu)| [(from, of(cpu)), (to, of(cpu)), GAP]).collect()
}

fn frequency(r: &RunResult, t: &Timeline) -> Vec<(f64, f64)> {
    let mut points = Vec::new();
    for (from, to, cpu) in running_intervals(t, t0(r)) {
        let Some((_, curve)) = t.freq.iter().find(|f| f.0 == cpu) else { continue };
        let mhz = |i: usize| curve[i].1.0 as f64 / 1000.0;
        let at = |i: usize| curve[i].0 - t0(r);
        let after = (0..curve.len()).collect::<Vec<_>>().partition_point(|i| at(*i) <= from);
        let Some(in_force) = after.checked_sub(1) else { continue };
        points.push((from, mhz(in_force)));
        points.extend((after..curve.len()).take_while(|i| at(*i) < to).map(|i| (at(i), mhz(i))));
        points.extend(points.last().map(|last| (to, last.1)));
        points.push(GAP);
    }
    points
}

/// A panel a group of tasks, those with most activations first.
fn distributions(runs: &[Followed<'_>]) -> Vec<Panel> {
    let mut groups: Vec<(u64, &str)> = Vec::new();
    for latency in runs.iter().flat_map(|(r, _)| &r.latency) {
        match groups.iter_mut().find(|g| g.1 == latency.tasks) {
            Some(group) => group.0 = group.0.max(latency.activations),
            None => groups.push((latency.activations, &latency.tasks)),
        }
    }
    groups.retain(|g| g.0 >= ACTIVATIONS);
    groups.sort_by_key(|g| std::cmp::Reverse(g.0));
    let more = groups.len().saturating_sub(GROUPS);
    groups.truncate(GROUPS);
    let mut panels: Vec<Panel> =
        groups.into_iter().map(|(_, tasks)| distribution(runs, tasks)).collect();
    if let Some(last) = panels.last_mut() {
        let note = "Solid: activations, from wakeup to sleep. Dashed: from wakeup to running.";
        last.notes.push(note.into());
        if more > 0 {
            last.notes.push(format!("{more} more groups of tasks are not drawn."));
        }
    }
    panels
}

fn distribution(runs: &[Followed<'_>], tasks: &str) -> Panel {
    let mut series = Vec::new();
    for (i, (r, t)) in runs.iter().enumerate() {
        let Some(found) = t.latency.iter().find(|l| l.tasks == tasks) else { continue };
        series.push(Series::new(&r.policy, Colour::Nth(i), steps(&found.took)));
        series.push(Series::new("", Colour::Nth(i), steps(&found.waited)).dashed());
    }
    Panel {
        title: tasks.into(),
        x: Axis::new("took at most", "ms").kind(AxisKind::Log),
        y: Axis::new("share", "%").range(0.0, 100.0),
        series,
        size: Size::Half,
        ..Panel::default()
    }
}
