//! Whole task sets by seed: what [`generate`](crate::generate) draws, with deadlines, graphs, and what is shared.
//!
//! ```text
//! tasks of a sum of utilisations ──┬── a task each
//!                                  └── a graph each: its work split over nodes (UUniFast), edges by its shape
//! deadlines   the period, or evenly between what it needs at least and the period
//! resources   mutexes; a task holds one for a part of its work
//! ```

use crate::dice::Dice;
use crate::generate::uunifast;
use crate::graph::{self, Shape};
use crate::{Drawn, Task, draw};
use risetime_kernel::units::Span;
use risetime_model::taskset::{Resource, ResourceKind, RtTask, Step, TaskSet};

/// Parameters by which a set is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct SetDrawn {
    /// The tasks to draw, and their utilisation together.
    pub tasks: Drawn,
    /// Deadlines may be before the period's end.
    pub constrained: bool,
    /// Each task is a graph of so many nodes.
    pub graph: Option<(usize, Shape)>,
    /// Number of mutexes.
    pub resources: usize,
    /// The kinds of work, one of which each task does; empty: plain work.
    pub kinds: Vec<String>,
}

/// A graph whose longest path is longer than its deadline is drawn again so often.
const TRIES: u32 = 1000;

/// A set by that seed, in whole µs: work to the nearest one, at least 1. `None`: there is none, or none was found.
pub fn draw_set(what: &SetDrawn, seed: u64) -> Option<TaskSet> {
    let tasks = draw(&what.tasks, seed)?;
    // Further draws leave those of utilisations and periods what they are.
    let mut dice = Dice::new(seed ^ 0x5e75);
    let mutex = |i| Resource { name: format!("m{i}"), kind: ResourceKind::Mutex };
    let mut set = TaskSet {
        name: format!("drawn-{seed}"),
        resources: (0..what.resources).map(mutex).collect(),
        ..TaskSet::default()
    };
    for task in tasks {
        let kind = match what.kinds.len() {
            0 => None,
            n => Some(what.kinds[dice.below(n as u64) as usize].clone()),
        };
        match what.graph {
            None => set.tasks.push(single(&task, what, kind, &mut dice)),
            Some((nodes, shape)) => {
                nodes_of(&task, what, (nodes, shape), kind, &mut dice, &mut set)?
            }
        }
    }
    Some(set)
}

fn whole_us(ns: f64) -> Span {
    Span(((ns / 1000.0).round() as u64).max(1) * 1000)
}

fn single(task: &Task, what: &SetDrawn, kind: Option<String>, dice: &mut Dice) -> RtTask {
    let work = whole_us(task.work.0 as f64);
    let deadline = deadline(what, work, task.period, dice);
    let code = code(work, what, kind, dice);
    RtTask { name: task.name.clone(), period: task.period, deadline, code, ..RtTask::default() }
}

fn deadline(what: &SetDrawn, least: Span, period: Span, dice: &mut Dice) -> Span {
    if !what.constrained {
        return period;
    }
    let room = period.0.saturating_sub(least.0) as f64;
    Span((least.0 + (room * dice.unit()) as u64) / 1000 * 1000).max(least)
}

/// The steps of a job: where there are mutexes, half of the tasks hold one for up to a fifth of
/// `work`.
fn code(work: Span, what: &SetDrawn, kind: Option<String>, dice: &mut Dice) -> Vec<Step> {
    if what.resources == 0 || dice.unit() < 0.5 || work.0 < 10_000 {
        return vec![Step::Run(work, kind)];
    }
    let mutex = dice.below(what.resources as u64) as usize;
    let held = whole_us(work.0 as f64 * 0.2 * dice.unit()).0.min(work.0 - 2000);
    let before = Span((work.0 - held) / 2000 * 1000);
    let behind = Span(work.0 - held - before.0);
    let run = |work| Step::Run(work, kind.clone());
    vec![run(before), Step::Lock(mutex), run(Span(held)), Step::Unlock(mutex), run(behind)]
}

/// Draws the nodes of a graph, tasks of one period released together, and adds them to `set`.
fn nodes_of(
    task: &Task,
    what: &SetDrawn,
    (nodes, shape): (usize, Shape),
    kind: Option<String>,
    dice: &mut Dice,
    set: &mut TaskSet,
) -> Option<()> {
    let nodes = nodes.max(1);
    for _ in 0..TRIES {
        let parts = uunifast(nodes, task.work.0 as f64, dice);
        let work: Vec<Span> = parts.into_iter().map(whole_us).collect();
        let edges = graph::edges(nodes, shape, dice);
        let longest = graph::longest_paths(&work, &edges).into_iter().max()?;
        if longest > task.period {
            continue;
        }
        let deadline = deadline(what, longest, task.period, dice);
        let first = set.resources.len();
        let name = |(from, to): &(usize, usize)| format!("{}.{from}-{to}", task.name);
        set.resources.extend(
            edges.iter().map(|e| Resource { name: name(e), kind: ResourceKind::Semaphore(0) }),
        );
        for (i, work) in work.iter().enumerate() {
            let mut steps: Vec<Step> = Vec::new();
            let at = |(e, _): (usize, &(usize, usize))| first + e;
            steps
                .extend(edges.iter().enumerate().filter(|(_, e)| e.1 == i).map(at).map(Step::Take));
            steps.extend(code(*work, what, kind.clone(), dice));
            steps
                .extend(edges.iter().enumerate().filter(|(_, e)| e.0 == i).map(at).map(Step::Give));
            set.tasks.push(RtTask {
                name: format!("{}.{i}", task.name),
                period: task.period,
                deadline,
                code: steps,
                ..RtTask::default()
            });
        }
        return Some(());
    }
    None
}

/// Gives each node of a graph its own slice of the graph's deadline ([`slices`](graph::slices)):
/// the node is released when its slice begins. Whoever waits for nobody and gives nobody anything
/// stays as it is.
pub fn sliced(set: &TaskSet) -> TaskSet {
    let edges = set.edges();
    let mut found = set.clone();
    let mut group: Vec<usize> = (0..set.tasks.len()).collect();
    // Nodes that hang together have the number of the first of them.
    for _ in 0..set.tasks.len() {
        let before = group.clone();
        for (a, b) in &edges {
            let least = group[*a].min(group[*b]);
            (group[*a], group[*b]) = (least, least);
        }
        if group == before {
            break;
        }
    }
    for first in 0..set.tasks.len() {
        let nodes: Vec<usize> = (0..set.tasks.len()).filter(|i| group[*i] == first).collect();
        let Some(order) = sorted(&nodes, &edges).filter(|order| order.len() > 1) else { continue };
        let place = |i: usize| order.iter().position(|o| *o == i);
        let own: Vec<(usize, usize)> =
            edges.iter().filter_map(|(a, b)| Some((place(*a)?, place(*b)?))).collect();
        let work: Vec<Span> = order.iter().map(|i| set.tasks[*i].work()).collect();
        let deadline = order.iter().map(|i| set.tasks[*i].deadline).min().unwrap_or_default();
        for (i, (begins, slice)) in order.iter().zip(graph::slices(&work, &own, deadline)) {
            let task = &mut found.tasks[*i];
            (task.offset, task.deadline) = (Span(task.offset.0 + begins.0), slice);
        }
    }
    found
}

/// The nodes, each behind those before it; `None`: they wait for each other in a circle.
fn sorted(nodes: &[usize], edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < nodes.len() {
        let free = |i: &&usize| {
            !order.contains(i) && edges.iter().all(|(a, b)| b != *i || order.contains(a))
        };
        order.push(*nodes.iter().find(free)?);
    }
    Some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Periods, Utilisations, draws};
    use proptest::prelude::*;

    fn drawn(tasks: usize, utilisation: f64) -> SetDrawn {
        let periods =
            Periods { from: Span::from_ms(10), to: Span::from_ms(100), step: Span::from_ms(1) };
        let by = Utilisations::Randfixedsum;
        SetDrawn {
            tasks: Drawn { tasks, utilisation, by, periods },
            constrained: false,
            graph: None,
            resources: 0,
            kinds: Vec::new(),
        }
    }

    #[test]
    fn what_is_further_drawn_changes_no_utilisation() {
        let plain = draw_set(&drawn(5, 2.0), 7).expect("there is one");
        let more = SetDrawn { constrained: true, resources: 2, ..drawn(5, 2.0) };
        let more = draw_set(&more, 7).expect("there is one");
        let of = |set: &TaskSet| set.tasks.iter().map(|t| (t.work(), t.period)).collect::<Vec<_>>();
        assert_eq!(of(&plain), of(&more));
        assert!(more.tasks.iter().all(|t| t.deadline <= t.period && t.deadline >= t.work()));
        assert!(more.tasks.iter().any(|t| t.code.len() == 5));
    }

    /// Held: whoever names a seed gets this set, also next year.
    #[test]
    fn a_seed_is_a_set() {
        let periods = Periods { to: Span::from_ms(1000), ..drawn(1, 1.0).tasks.periods };
        let of = |by| {
            let tasks = Drawn { by, periods, ..drawn(4, 1.6).tasks };
            let set = draw_set(&SetDrawn { tasks, ..drawn(4, 1.6) }, 7).expect("there is one");
            let us = |t: &RtTask| (t.work().0 / 1000, t.period.0 / 1000);
            set.tasks.iter().map(us).collect::<Vec<_>>()
        };
        assert_eq!(
            of(Utilisations::Randfixedsum),
            [(31927, 67000), (7936, 16000), (247584, 832000), (226294, 686000)]
        );
        let sum: f64 =
            of(Utilisations::UunifastDiscard).iter().map(|(c, t)| *c as f64 / *t as f64).sum();
        assert!((sum - 1.6).abs() < 1e-3, "{sum}");
    }

    #[test]
    fn a_graph_of_two_in_a_row_is_sliced() {
        let what = SetDrawn {
            graph: Some((4, Shape::Layered { layers: 2, edges: 0.5 })),
            ..drawn(1, 0.5)
        };
        let set = draw_set(&what, 3).expect("there is one");
        let sliced = sliced(&set);
        for (a, b) in set.edges() {
            let (a, b) = (&sliced.tasks[a], &sliced.tasks[b]);
            assert!(a.offset.0 + a.deadline.0 <= b.offset.0, "{a:?} {b:?}");
        }
        assert!(sliced.tasks.iter().all(|t| t.offset.0 + t.deadline.0 <= t.period.0));
    }

    proptest! {
        #![proptest_config(draws::config(200))]

        /// The parts of a graph come to the whole, its longest path is in time, and the seed says everything.
        #[test]
        fn graphs_do_the_work_of_their_task(seed: u64, n in 1usize..6, nodes in 1usize..12, u in 0.2f64..0.9) {
            let shape = Shape::ErdosRenyi { edges: 0.3 };
            let what = SetDrawn { graph: Some((nodes, shape)), ..drawn(n, u * n as f64) };
            let Some(set) = draw_set(&what, seed) else { return Ok(()) };
            prop_assert_eq!(set.tasks.len(), n * nodes);
            prop_assert_eq!(draw_set(&what, seed), Some(set.clone()));
            let share: f64 = set.tasks.iter().map(|t| t.work().0 as f64 / t.period.0 as f64).sum();
            // Each node is rounded to a µs of at least 10 ms.
            prop_assert!((share - u * n as f64).abs() < 1e-4 * (n * nodes) as f64, "{share}");
            prop_assert!(set.edges().iter().all(|(a, b)| a < b));
        }
    }
}
