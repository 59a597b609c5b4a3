//! The thread that changes a policy's frequency, as a trace shows it at work.

use super::*;

/// The kernel's threads as they run: who changes a frequency is one of them.
#[derive(Default)]
pub(super) struct KernelThreads {
    /// The thread of the policy of a first CPU, `sugov:CPU`; since 7.0 it runs anywhere.
    sugov: BTreeMap<CpuId, TaskId>,
    known: BTreeSet<TaskId>,
    woken: BTreeMap<TaskId, Instant>,
    /// Kernel thread on each CPU: the task, when it woke, and since when it runs.
    running: BTreeMap<CpuId, (TaskId, Instant, Instant)>,
    /// Times at which the signals of other tasks there were updated, not long ago.
    updated: BTreeMap<CpuId, VecDeque<Instant>>,
}

impl KernelThreads {
    pub(super) fn of(trace: &Memory) -> KernelThreads {
        let first = |name: &str| name.strip_prefix("sugov:")?.parse().ok().map(CpuId);
        let sugov = trace.tasks().filter_map(|(task, name)| Some((first(&name)?, task))).collect();
        KernelThreads { sugov, ..KernelThreads::default() }
    }

    /// Takes in an event; returns the thread that it takes the CPU from, and when that woke and got
    /// it.
    pub(super) fn hear(
        &mut self,
        at: Instant,
        event: &Event,
    ) -> Option<(TaskId, Instant, Instant)> {
        match *event {
            Event::TaskNew { task, user: false, .. } => {
                self.known.insert(task);
                self.woken.insert(task, at);
            }
            Event::Wakeup { task, .. } if self.known.contains(&task) => {
                self.woken.insert(task, at);
            }
            Event::PeltTask { cpu, task, .. } if !self.known.contains(&task) => {
                let of = self.updated.entry(cpu).or_default();
                of.retain(|before| at.since(*before) < PART_OF_REQUEST);
                of.push_back(at);
            }
            Event::Switch { cpu, next, .. } => {
                let before = self.running.remove(&cpu);
                if let Some(task) = next
                    && let Some(woke) = self.woken.remove(&task)
                {
                    self.running.insert(cpu, (task, woke, at));
                }
                return before;
            }
            _ => {}
        }
        None
    }

    /// The time at which the governor wanted what the thread on `on` changes for the policy of
    /// `first`: at the update, of a tick or a wakeup, just before that thread woke.
    pub(super) fn wanted(&self, platform: &Platform, first: CpuId, on: CpuId) -> Instant {
        let woke = self.running.get(&on).map_or(Instant(0), |(_, woke, _)| *woke);
        let domain = platform.domains.iter().find(|d| d.cpus.contains(&first));
        let elsewhere = domain.filter(|d| !d.cpus.contains(&on)).map(|d| &*d.cpus);
        let there = elsewhere.unwrap_or(std::slice::from_ref(&on));
        let before = there.iter().filter_map(|cpu| self.updated.get(cpu)).flatten().copied();
        let part = |of: &Instant| *of <= woke && woke.since(*of) < PART_OF_WAKEUP;
        before.filter(part).min().unwrap_or(woke)
    }

    /// The thread that changes a frequency of `domain`, and its CPU; in traces without names, the
    /// thread that got a CPU there last.
    pub(super) fn changer(&self, platform: &Platform, first: CpuId) -> Option<(CpuId, TaskId)> {
        let domain = platform.domains.iter().find(|d| d.cpus.contains(&first))?;
        let own = self.sugov.get(&first);
        let there = self.running.iter().filter(|(cpu, (task, ..))| match own {
            Some(own) => task == own,
            None => domain.cpus.contains(cpu),
        });
        there.max_by_key(|(_, (.., since))| *since).map(|(cpu, (task, ..))| (*cpu, *task))
    }
}

/// The costs of a frequency change by a kthread: the medians.
pub(crate) fn kthread(trace: &Memory, platform: &Platform) -> Option<Kthread> {
    let mut threads = KernelThreads::of(trace);
    let mut changed: BTreeMap<TaskId, (Instant, Instant)> = BTreeMap::new();
    let mut found: Vec<[Span; 4]> = Vec::new();
    for &(at, event) in trace.events() {
        if let Event::Freq { cpu, .. } = event
            && let Some((on, task)) = threads.changer(platform, cpu)
        {
            changed.insert(task, (threads.wanted(platform, cpu, on), at));
        }
        if let Some((task, woke, since)) = threads.hear(at, &event)
            && let Some((wanted, changed)) = changed.remove(&task)
        {
            let ([woke, had], [changed, left]) =
                ([woke, since].map(|at| at.since(wanted)), [changed, at].map(|at| at.since(since)));
            found.push([woke, had, changed, left]);
        }
    }
    let middle = |i: usize| {
        let mut spans: Vec<Span> = found.iter().map(|f| f[i]).collect();
        spans.sort();
        spans.get(spans.len() / 2).copied()
    };
    Some(Kthread {
        wakes: middle(0)?,
        waits: middle(1)?,
        until_change: middle(2)?,
        runs: middle(3)?,
    })
}

/// The CPU on which each domain's kthread, by the domain's first CPU, ran when it first changed a
/// frequency: where it slept before.
pub(super) fn kthread_cpus(trace: &Memory, platform: &Platform) -> BTreeMap<CpuId, CpuId> {
    let mut threads = KernelThreads::of(trace);
    let mut found = BTreeMap::new();
    for &(at, event) in trace.events() {
        if let Event::Freq { cpu: first, .. } = event
            && let Some((cpu, _)) = threads.changer(platform, first)
        {
            found.entry(first).or_insert(cpu);
        }
        threads.hear(at, &event);
    }
    found
}
