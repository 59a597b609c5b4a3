//! A workload meets a machine: do its CPUs exist, and how much work is `run`?

use super::read::{CALIBRATION, kind_place};
use super::{Attr, Event, FOR_EVER, Policy, Repeat, TaskSpec, Workload};
use crate::input::{meant, one_line};
use crate::platform::cpu_ranges;
use crate::{InputError, Platform};
use risetime_kernel::units::{Capacity, CpuId, SCHED_CAPACITY_SCALE, Span};

impl Workload {
    /// Binds this workload to `platform`, with `run` in time at capacity 1024:
    ///
    /// ```text
    /// run' = run · capacity(calibration CPU) / 1024        to the nearest ns; of another kind of work by its speed_ppm there
    /// ```
    ///
    /// And a phase without `cpus` behind one with others than its task's has the task's again, else all
    /// (Source: rt-app, `src/rt-app.c:set_thread_affinity`).
    ///
    /// The result has no `calibration` left, so binding again changes nothing.
    ///
    /// Errors: an affinity mask or the calibration names a CPU that the platform lacks; a deadline
    /// task may not run everywhere.
    pub fn bind(&self, platform: &Platform) -> Result<Workload, InputError> {
        let mut bound = self.clone();
        for task in bound.tasks.iter_mut().chain(&mut bound.forked) {
            self.check_cpus(task, platform)?;
            self.check_partitions(task, platform)?;
            take_back_cpus(task, platform);
            self.check_deadline(task, platform)?;
        }
        if let Some(h) = self.hotplug.iter().find(|h| platform.domain_of(h.cpu).is_none()) {
            return Err(no_such_cpu(h.error_place(self.place()), h.cpu, platform));
        }
        self.bind_kinds(&mut bound, platform)?;
        let Some(cpu) = bound.calibration.take() else { return Ok(bound) };
        let Some(domain) = platform.domain_of(cpu) else {
            let place = self.place_of(CALIBRATION, CALIBRATION);
            return Err(no_such_cpu(place, cpu, platform));
        };
        let capacity = platform.domains[domain].capacity;
        let tasks = bound.tasks.iter_mut().chain(&mut bound.forked);
        let events = tasks.flat_map(|t| &mut t.phases).flat_map(|p| &mut p.events);
        for event in events {
            match event {
                Event::Run(FOR_EVER) => {}
                Event::Run(work) => *work = rescale(*work, capacity),
                Event::Runtime { piece, .. } => *piece = rescale(*piece, capacity).max(Span(1)),
                Event::RunOf { work, kind } => {
                    let of = &platform.domains[domain].work[*kind as usize];
                    *work = rescale_by(*work, of.speed_ppm.last().copied().unwrap_or(PPM), PPM);
                }
                _ => {}
            }
        }
        Ok(bound)
    }

    /// Kinds of work get the numbers that they have on the platform.
    fn bind_kinds(&self, bound: &mut Workload, platform: &Platform) -> Result<(), InputError> {
        let known: Vec<&str> = platform.kinds().collect();
        let number = |kind: &String| match known.iter().position(|k| k == kind) {
            Some(number) => Ok(number as u32),
            None => {
                let shown = one_line(kind);
                let what = format!("{} has no table of work \"{shown}\"", platform.name);
                let e = InputError::new(self.place_of(&kind_place(kind), "`kind`"), what);
                Err(e.hint(match known.is_empty() {
                    true => "it knows plain work alone: leave `kind` out, or give the platform a \
                             [[domain.work]]: docs/task-sets.md"
                        .to_string(),
                    false => meant(kind, &known, &format!("known: {}", known.join(", "))),
                }))
            }
        };
        let numbers: Vec<u32> = self.objects.kinds.iter().map(number).collect::<Result<_, _>>()?;
        if numbers.is_empty() {
            return Ok(());
        }
        let tasks = bound.tasks.iter_mut().chain(&mut bound.forked);
        for event in tasks.flat_map(|t| &mut t.phases).flat_map(|p| &mut p.events) {
            if let Event::RunOf { kind, .. } = event {
                *kind = numbers[*kind as usize];
            }
        }
        bound.objects.kinds = known.iter().map(|k| k.to_string()).collect();
        Ok(())
    }

    fn check_cpus(&self, task: &TaskSpec, platform: &Platform) -> Result<(), InputError> {
        let masks = std::iter::once(&task.attr).chain(task.phases.iter().map(|p| &p.attr));
        let missing = masks
            .filter_map(|a| a.cpus.as_deref())
            .flatten()
            .find(|cpu| platform.domain_of(**cpu).is_none());
        match missing {
            None => Ok(()),
            Some(cpu) => {
                let place = self.place_of(&task.comm, &format!("task `{}`: cpus", task.comm));
                Err(no_such_cpu(place, *cpu, platform))
            }
        }
    }

    /// Deadlines are guaranteed on all CPUs together: the kernel refuses SCHED_DEADLINE to a task
    /// whose affinity leaves one out (kernel/sched/syscalls.c, EPERM), and such an affinity to a
    /// deadline task (dl_task_check_affinity, EBUSY). A phase changes one before the other, so that
    /// what it finds counts, too. The second round is the loop coming round again.
    fn check_deadline(&self, task: &TaskSpec, platform: &Platform) -> Result<(), InputError> {
        let (mut all, mut deadline) = (true, false);
        let phases = || task.phases.iter().map(|p| (&p.attr, Some(&p.name)));
        let attrs = std::iter::once((&task.attr, None)).chain(phases()).chain(phases());
        for (Attr { cpus, policy, .. }, phase) in attrs {
            let (all_before, before) = (all, deadline);
            let whole =
                |c: &Vec<CpuId>| c.len() == platform.nr_cpus() || self.partitions.contains(c);
            all = cpus.as_ref().map_or(all, whole);
            deadline = policy.map_or(deadline, |p| matches!(p, Policy::Deadline { .. }));
            if (deadline && !(all && all_before)) || (before && !all) {
                let place = phase.map_or(String::new(), |name| format!(", phase `{name}`"));
                return Err(InputError::new(
                    self.place_of(&task.comm, &format!("task `{}`{place}", task.comm)),
                    "SCHED_DEADLINE with `cpus` that leave some out: the kernel guarantees \
                     deadlines on all CPUs together and refuses this",
                )
                .hint("CPUs of an exclusive cpuset are guaranteed apart: `global.partitions`"));
            }
        }
        Ok(())
    }
}

/// Spells out the CPUs of phases that leave them unsaid, where a phase would find others than its
/// task's.
fn take_back_cpus(task: &mut TaskSpec, platform: &Platform) {
    if task.phases.iter().all(|p| p.attr.cpus.is_none()) {
        return;
    }
    let own = task.attr.cpus.clone().unwrap_or_else(|| platform.cpus().collect());
    // The first phase finds what creation left; if it comes round again, what the last one left.
    let last = task.phases.last().and_then(|p| p.attr.cpus.clone());
    let mut found = last.filter(|_| task.repeat != Repeat::Times(1)).unwrap_or_else(|| own.clone());
    for phase in &mut task.phases {
        match &mut phase.attr.cpus {
            Some(cpus) => found.clone_from(cpus),
            none if found != own => {
                *none = Some(own.clone());
                found.clone_from(&own);
            }
            _ => {}
        }
    }
}

fn no_such_cpu(place: String, cpu: CpuId, platform: &Platform) -> InputError {
    let all: Vec<CpuId> = platform.cpus().collect();
    let what = format!("there is no {cpu} on {}: it has CPUs {}", platform.name, cpu_ranges(&all));
    InputError::new(place, what)
}

/// `work` done at `capacity`, as time at capacity 1024, to the nearest ns (halves up). Work is
/// never rounded to nothing: a loop that takes time keeps taking time.
fn rescale(work: Span, capacity: Capacity) -> Span {
    rescale_by(work, capacity.0, SCHED_CAPACITY_SCALE)
}

/// `work · by / of` likewise.
fn rescale_by(work: Span, by: u64, of: u64) -> Span {
    let scaled = u128::from(work.0) * u128::from(by) + u128::from(of / 2);
    Span(u64::try_from(scaled / u128::from(of)).unwrap_or(u64::MAX))
}

/// Speeds of kinds of work are of so many.
const PPM: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescaling_rounds_to_the_nearest_ns_and_never_to_nothing() {
        // The smallest work of a file is 1 µs, the smallest capacity 1: 0.98 ns.
        assert_eq!(rescale(Span(1000), Capacity(1)), Span(1));
        // 1 µs at 459: 448.24 ns; 3 µs: 1344.7 ns; half a ns goes up.
        assert_eq!(rescale(Span(1000), Capacity(459)), Span(448));
        assert_eq!(rescale(Span(3000), Capacity(459)), Span(1345));
        assert_eq!(rescale(Span(1), Capacity(512)), Span(1));
        assert_eq!(rescale(Span(0), Capacity(459)), Span(0));
        assert_eq!(rescale(Span(u64::MAX), Capacity(1024)), Span(u64::MAX));
    }
}
