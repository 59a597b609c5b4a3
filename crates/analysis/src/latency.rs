//! Times of activations: from a wakeup (or the creation) to the next sleep (or the exit), with all
//! that lies between, running or waiting for a CPU; and how long a wakeup (or the creation) waits
//! for a CPU.
//!
//! ```text
//! wakeup       from where it is queued to running
//! wu_lat       from where its timer was due, or another task woke it, to running: also timer slack, the interrupt, the way
//!              out of an idle state. A trace without the signal `due` (of a real kernel) does not tell: as `wakeup`
//! group        the tasks of one name: worker-0, worker-1, … are "worker"
//! quantile p   the shortest time that at least p of all activations took at most (nearest rank)
//! ```
//!
//! Times are counted in a [`Histogram`], so that memory does not grow with the run. An activation that the run's end cuts off is counted for itself: how long it would have taken
//! is not known.

use crate::histogram::{Histogram, Percentiles};
use risetime_kernel::units::CpuId;
use risetime_model::Platform;
use risetime_model::workload::Policy;
use std::collections::BTreeMap;

/// Times of the activations of some tasks, and of their waits for a CPU when they woke.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// The name that these tasks share.
    pub tasks: String,
    /// The policy that one of them took last; `None`: SCHED_OTHER all the time.
    pub policy: Option<Policy>,
    /// Number of activations.
    pub activations: u64,
    /// Half of them took at most so long; and so on.
    pub p50_ms: f64,
    /// 90 %.
    pub p90_ms: f64,
    /// 99 %.
    pub p99_ms: f64,
    /// 99.9 %.
    pub p99_9_ms: f64,
    /// The longest.
    pub max_ms: f64,
    /// Number of activations that the run's end cut off; they are in none of the other figures.
    pub unfinished: u64,
    /// Time that the longest of those had taken by then, in ms; 0 if there is none.
    pub unfinished_ms: f64,
    /// Time by which activations took longer than the same work at full speed.
    pub longer: Option<Percentiles>,
    /// Waits from each wakeup, and the creation, to first running.
    pub wakeup: Waits,
    /// Waits from where each of these was due.
    pub wu_lat: Waits,
}

/// Waits of tasks for a CPU when they became runnable by a wakeup or the creation. Waits after a
/// preemption do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// Number of waits.
    pub n: u64,
    /// Percentiles of the waits; `None`: there were none.
    pub took: Option<Percentiles>,
}

/// Waits of all tasks that have something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitsBy {
    /// The kind of what they have in common.
    pub by: By,
    /// Name of the kind: `SCHED_FIFO`, `/ui`, `1024`.
    pub name: String,
    /// Waits of these tasks.
    pub wakeup: Waits,
}

/// Distributions of the times of some tasks: (ms, share of all that took at most so long), both
/// ascending to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Distributions {
    /// The name that these tasks share.
    pub tasks: String,
    /// Activations, from wakeup to sleep.
    pub took: Vec<(f64, f64)>,
    /// Waits from wakeup to first running.
    pub waited: Vec<(f64, f64)>,
}

/// Property that the tasks of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum By {
    /// The scheduling policy of tasks when they woke.
    Policy,
    /// The task group in which they were created; "" is the root.
    Group,
    /// The capacity of the CPU on which they ran then.
    Capacity,
}

impl By {
    /// The word that JSON uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            By::Policy => "sched_policy",
            By::Group => "taskgroup",
            By::Capacity => "capacity",
        }
    }
}

/// The groups of a run.
#[derive(Default)]
pub(crate) struct Groups {
    names: BTreeMap<String, usize>,
    groups: Vec<Group>,
    /// Cells, one for each combination of name, policy and task group.
    cells: Vec<Cell>,
    /// Capacities by CPU.
    capacity: Vec<u64>,
    /// Capacities, ascending, each once.
    kinds: Vec<u64>,
}

struct Group {
    name: String,
    took: Histogram,
    longer: Histogram,
    late: Histogram,
    policy: Option<Policy>,
    /// Activations that the run's end cut off, and the longest of them.
    cut_off: (u64, u64),
}

struct Cell {
    group: usize,
    policy: &'static str,
    taskgroup: String,
    /// Waits by the place of the CPU's capacity among all.
    waits: Vec<Histogram>,
}

impl Groups {
    /// Groups of a run on the CPUs of this platform.
    pub(crate) fn new(platform: &Platform) -> Groups {
        let of = |cpu| platform.domain_of(cpu).map_or(0, |d| platform.domains[d].capacity.0);
        let capacity: Vec<u64> = platform.cpus().map(of).collect();
        let mut kinds = capacity.clone();
        kinds.sort_unstable();
        kinds.dedup();
        Groups { capacity, kinds, ..Groups::default() }
    }

    /// The cell of a new task of this name.
    pub(crate) fn of(&mut self, comm: &str, taskgroup: &str) -> usize {
        let name = group_name(comm);
        let group = match self.names.get(name) {
            Some(group) => *group,
            None => {
                self.names.insert(name.to_string(), self.groups.len());
                let name = name.to_string();
                let (took, longer, late) = Default::default();
                let policy = None;
                self.groups.push(Group { name, took, longer, late, policy, cut_off: (0, 0) });
                self.groups.len() - 1
            }
        };
        self.cell(group, Policy::default().name(), taskgroup.to_string())
    }

    fn cell(&mut self, group: usize, policy: &'static str, taskgroup: String) -> usize {
        let same = |c: &Cell| (c.group, c.policy, &c.taskgroup) == (group, policy, &taskgroup);
        if let Some(known) = self.cells.iter().position(same) {
            return known;
        }
        let waits = vec![Histogram::default(); self.kinds.len()];
        self.cells.push(Cell { group, policy, taskgroup, waits });
        self.cells.len() - 1
    }

    /// Puts a task of this cell under `policy` from now on, and returns its new cell.
    pub(crate) fn policy(&mut self, cell: usize, policy: Policy) -> usize {
        let Some(Cell { group, taskgroup, .. }) = self.cells.get(cell) else { return cell };
        let (group, taskgroup) = (*group, taskgroup.clone());
        self.groups[group].policy = Some(policy);
        self.cell(group, policy.name(), taskgroup)
    }

    fn group(&mut self, cell: usize) -> Option<&mut Group> {
        self.groups.get_mut(self.cells.get(cell)?.group)
    }

    /// An activation of this cell took `ns`, of which `longer` is more than at full speed.
    pub(crate) fn took(&mut self, cell: usize, ns: u64, longer: u64) {
        if let Some(group) = self.group(cell) {
            group.took.add(ns);
            group.longer.add(longer);
        }
    }

    /// Adds the `ns` that a task of this cell has waited from its wakeup until it runs on `cpu`.
    pub(crate) fn waited(&mut self, cell: usize, cpu: CpuId, ns: u64) {
        let capacity = self.capacity.get(cpu.index());
        let kind = capacity.and_then(|capacity| self.kinds.binary_search(capacity).ok());
        if let (Some(kind), Some(cell)) = (kind, self.cells.get_mut(cell)) {
            cell.waits[kind].add(ns);
        }
    }

    /// Adds the delay of a task of this cell: the ns from when it was due until it runs.
    pub(crate) fn late(&mut self, cell: usize, ns: u64) {
        self.group(cell).into_iter().for_each(|group| group.late.add(ns));
    }

    /// The run's end cuts off an activation of this cell, after `ns`.
    pub(crate) fn cut_off(&mut self, cell: usize, ns: u64) {
        if let Some(Group { cut_off: (n, longest), .. }) = self.group(cell) {
            (*n, *longest) = (*n + 1, ns.max(*longest));
        }
    }

    /// The distributions of times, in the order in which groups were first seen, without groups
    /// that have no activation.
    pub(crate) fn distributions(&self) -> Vec<Distributions> {
        let groups = self.groups.iter().enumerate().filter(|(_, g)| g.took.total() > 0);
        let of = |(i, g): (usize, &Group)| {
            let mut waits = Histogram::default();
            let cells = self.cells.iter().filter(|c| c.group == i);
            cells.flat_map(|c| &c.waits).for_each(|h| waits.join(h));
            Distributions { tasks: g.name.clone(), took: g.took.steps(), waited: waits.steps() }
        };
        groups.map(of).collect()
    }

    /// The latencies of each group, in the order in which groups were first seen; those without an
    /// activation are left out. And the waits by what tasks have in common, where that differs.
    pub(crate) fn finish(self) -> (Vec<Latency>, Vec<WaitsBy>) {
        let by = self.by();
        let ms = |ns: u64| ns as f64 / 1e6;
        let cells = self.cells;
        let groups = self.groups.into_iter().enumerate().filter(|(_, g)| g.took.total() > 0);
        let latencies = groups.map(|(i, g)| {
            let of = cells.iter().filter(|c| c.group == i).flat_map(|c| &c.waits);
            let [p50, p90, p99, p99_9] = g.took.quantiles([500, 900, 990, 999]);
            Latency {
                tasks: g.name,
                policy: g.policy,
                activations: g.took.total(),
                p50_ms: ms(p50),
                p90_ms: ms(p90),
                p99_ms: ms(p99),
                p99_9_ms: ms(p99_9),
                max_ms: ms(g.took.max()),
                unfinished: g.cut_off.0,
                unfinished_ms: ms(g.cut_off.1),
                longer: g.longer.percentiles(),
                wakeup: Waits::of(of),
                wu_lat: Waits::of([&g.late]),
            }
        });
        (latencies.collect(), by)
    }

    fn by(&self) -> Vec<WaitsBy> {
        let mut all: BTreeMap<(By, String), Histogram> = BTreeMap::new();
        for cell in &self.cells {
            for (capacity, waits) in
                self.kinds.iter().zip(&cell.waits).filter(|(_, w)| w.total() > 0)
            {
                let names = [
                    (By::Policy, cell.policy.to_string()),
                    (By::Group, cell.taskgroup.clone()),
                    (By::Capacity, format!("{capacity:4}")),
                ];
                names.into_iter().for_each(|key| all.entry(key).or_default().join(waits));
            }
        }
        let several = |by: By| all.keys().filter(|(b, _)| *b == by).count() > 1;
        let shown = all.iter().filter(|((by, _), _)| several(*by));
        let waits = |((by, name), waits): (&(By, String), &Histogram)| WaitsBy {
            by: *by,
            name: name.trim_start().to_string(),
            wakeup: Waits::of([waits]),
        };
        shown.map(waits).collect()
    }
}

impl Waits {
    fn of<'a>(all: impl IntoIterator<Item = &'a Histogram>) -> Waits {
        let mut all = all.into_iter().filter(|h| h.total() > 0);
        let of = |h: &Histogram| Waits { n: h.total(), took: h.percentiles() };
        let Some(first) = all.next() else { return Waits::default() };
        let Some(second) = all.next() else { return of(first) };
        let mut together = first.clone();
        std::iter::once(second).chain(all).for_each(|h| together.join(h));
        of(&together)
    }
}

/// The name that a task shares with its like: of `worker-3` it is `worker`.
pub fn group_name(comm: &str) -> &str {
    comm.rsplit_once('-').map_or(comm, |(name, number)| {
        let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        if numbered { name } else { comm }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_and_forks_of_a_task_are_one_group() {
        let mut groups = Groups::default();
        let of: Vec<usize> = ["w-0", "w-1", "w-0003", "w", "w-x", "w-", "net-rx", "net-rx-2"]
            .iter()
            .map(|n| groups.of(n, ""))
            .collect();
        assert_eq!(of, [0, 0, 0, 0, 1, 2, 3, 3]);
        assert_eq!(groups.finish(), (vec![], vec![]), "nothing took any time");
    }

    #[test]
    fn waits_are_told_by_what_tasks_have_in_common_where_that_differs() {
        let platform = Platform::load("pixel6").unwrap();
        let mut groups = Groups::new(&platform);
        let (ui, bg) = (groups.of("ui-0", "/ui"), groups.of("bg", ""));
        for (cell, cpu, us) in [(ui, 0, 100), (ui, 7, 300), (bg, 1, 200)] {
            groups.waited(cell, CpuId(cpu), 1_000 * us);
            groups.took(cell, 5_000_000, 1_000_000);
        }
        let fifo = groups.policy(ui, Policy::Fifo { priority: 3 });
        groups.waited(fifo, CpuId(7), 400_000);
        // Of another machine.
        groups.waited(fifo, CpuId(99), 9);
        let (tasks, by) = groups.finish();
        let waits = |w: &Waits| (w.n, w.took.map(|p| (p.min, p.max)));
        assert_eq!(waits(&tasks[0].wakeup), (3, Some((0.1, 0.4))));
        assert_eq!(tasks[0].policy, Some(Policy::Fifo { priority: 3 }));
        let told: Vec<_> = by.iter().map(|w| (w.by, &*w.name, waits(&w.wakeup))).collect();
        assert_eq!(
            told,
            [
                (By::Policy, "SCHED_FIFO", (1, Some((0.4, 0.4)))),
                (By::Policy, "SCHED_OTHER", (3, Some((0.1, 0.3)))),
                (By::Group, "", (1, Some((0.2, 0.2)))),
                (By::Group, "/ui", (3, Some((0.1, 0.4)))),
                (By::Capacity, "160", (2, Some((0.1, 0.2)))),
                (By::Capacity, "1024", (2, Some((0.3, 0.4)))),
            ]
        );
    }
}
