//! Partitioned placement: the largest task first, each where a test still admits all that are
//! there.
//!
//! Source: D. Johnson's heuristics of bin packing, in the order of J. López, J. Díaz and D. García, "Utilization bounds for
//! EDF scheduling on real-time multiprocessor systems", 2004. CPUs may be of different speeds: a task's share is that of the
//! CPU looked at.

use crate::admit::{Answer, Scheduler, Test, admit};
use crate::{Load, Share};
use risetime_kernel::units::{Capacity, CpuId};

/// Choice among the CPUs that a task fits on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The first one.
    First,
    /// The CPU with the least left behind the task.
    Best,
    /// The CPU with the most left: load is spread, frequencies stay low.
    Worst,
}

/// Place of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// CPU of the task; `None`: it fits nowhere.
    pub cpu: Option<CpuId>,
}

/// Places of all tasks, and the proof that they hold.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Place of each task.
    pub places: Vec<Place>,
    /// Test that admits each CPU's tasks, and what it found; `None`: the CPU has none.
    pub verdicts: Vec<Option<(&'static Test, String)>>,
}

impl Partition {
    /// True if every task has a CPU.
    pub fn complete(&self) -> bool {
        self.places.iter().all(|place| place.cpu.is_some())
    }
}

/// `tasks` as a CPU of capacity 1024 sees them, on CPUs of these speeds under `scheduler`, which is of one CPU.
pub fn partition(tasks: &[Load], speeds: &[Capacity], fit: Fit, scheduler: Scheduler) -> Partition {
    partition_where(tasks, &|task, _| tasks[task], speeds, fit, scheduler, &|_, _| true)
}

/// Partitions like [`partition`] where a task's load depends on the CPU, and `also` has to hold of
/// the tasks of a CPU, too. `on_cpu`: a task (by its place) on a CPU, as one of capacity 1024 would
/// see it; `tasks`: on the CPU that is best at it.
pub(crate) fn partition_where(
    tasks: &[Load],
    on_cpu: &dyn Fn(usize, usize) -> Load,
    speeds: &[Capacity],
    fit: Fit,
    scheduler: Scheduler,
    also: &dyn Fn(&[Load], Capacity) -> bool,
) -> Partition {
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by(|a, b| tasks[*b].density().cmp(&tasks[*a].density()).then(a.cmp(b)));
    let mut on: Vec<Vec<Load>> = vec![Vec::new(); speeds.len()];
    let mut verdicts: Vec<Option<(&'static Test, String)>> = vec![None; speeds.len()];
    let mut places = vec![Place { cpu: None }; tasks.len()];
    for task in order {
        let fits = |cpu: &usize| {
            let own = on_cpu(task, *cpu);
            let with: Vec<Load> = on[*cpu].iter().copied().chain([own]).collect();
            if !also(&with, speeds[*cpu]) {
                return None;
            }
            match admit(&with, &speeds[*cpu..=*cpu], scheduler) {
                (Some(test), verdict) if verdict.answer == Answer::Admitted => {
                    Some((*cpu, test, verdict.reason))
                }
                _ => None,
            }
        };
        // What is left in units of the fastest CPU: what a task of any size can still have.
        let left = |cpu: usize| {
            let own = on_cpu(task, cpu);
            let used = Share::sum(on[cpu].iter().chain([&own]).map(Load::share)).as_f64();
            speeds[cpu].0 as f64 / 1024.0 - used
        };
        let mut found: Option<(usize, &'static Test, String)> = None;
        for cpu in 0..speeds.len() {
            let better = match (&found, fit) {
                (None, _) => true,
                (Some(_), Fit::First) => break,
                (Some((best, ..)), Fit::Best) => left(cpu) < left(*best),
                (Some((best, ..)), Fit::Worst) => left(cpu) > left(*best),
            };
            if better && let Some(fitting) = fits(&cpu) {
                found = Some(fitting);
            }
        }
        if let Some((cpu, test, reason)) = found {
            on[cpu].push(on_cpu(task, cpu));
            verdicts[cpu] = Some((test, reason));
            places[task].cpu = Some(CpuId(cpu as u32));
        }
    }
    Partition { places, verdicts }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn load(runtime: u64, period: u64) -> Load {
        Load { runtime: runtime * MS, period: period * MS, deadline: period * MS }
    }

    fn cpus(p: &Partition) -> Vec<Option<u32>> {
        p.places.iter().map(|p| p.cpu.map(|c| c.0)).collect()
    }

    const EQUAL: [Capacity; 3] = [Capacity(1024); 3];

    #[test]
    fn first_fills_worst_spreads() {
        let tasks = [load(3, 10), load(3, 10), load(3, 10)];
        let go = |fit| cpus(&partition(&tasks, &EQUAL, fit, Scheduler::Edf));
        assert_eq!(go(Fit::First), [Some(0), Some(0), Some(0)]);
        assert_eq!(go(Fit::Best), [Some(0), Some(0), Some(0)]);
        assert_eq!(go(Fit::Worst), [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn a_task_goes_where_it_is_fast_enough_and_nowhere_else() {
        let speeds = [Capacity(200), Capacity(1024)];
        let tasks = [load(3, 10), load(1, 10), load(9, 10)];
        let p = partition(&tasks, &speeds, Fit::First, Scheduler::Edf);
        // 90 % first, on the big one; 10 % fits the small one, 30 % neither.
        assert_eq!(cpus(&p), [None, Some(0), Some(1)]);
        assert!(!p.complete() && p.verdicts.iter().all(Option::is_some));
    }

    /// EDF fills a CPU, RM does not: 1/2 and 1/2 of periods that do not divide.
    #[test]
    fn the_scheduler_decides_how_full_a_cpu_gets() {
        let tasks = [load(5, 10), load(7, 14)];
        let go = |s| cpus(&partition(&tasks, &EQUAL, Fit::First, s));
        assert_eq!(go(Scheduler::Edf), [Some(0), Some(0)]);
        assert_eq!(go(Scheduler::Rm), [Some(0), Some(1)]);
    }
}
