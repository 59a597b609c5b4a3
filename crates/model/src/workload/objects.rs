//! Objects that the tasks of a workload share, and which task may do what with them.
//!
//! ```text
//! mutex       lock, unlock; wait and sync name one     every task begins without
//! cond        wait, sync, signal, broad
//! suspend     a mutex and a cond of that name
//! barrier     its users are the events that name it, once for each instance of their task
//! ```
//!
//! A task's events are a straight line with loops, so whether it holds a mutex is known of each
//! event: walking each loop twice meets every case. Unlocking what it does not hold (undefined in
//! pthread), and waiting with such a mutex, is an error. So is locking what it holds: rt-app's mutexes
//! are pthread's default ones, also with `pi_enabled`, and such a task waits for itself for ever.

use super::{Event, Phase, Policy, Repeat, TaskSpec};
use std::collections::{BTreeMap, BTreeSet};

/// The objects by number, with their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Mutexes.
    pub mutexes: Vec<String>,
    /// Conditions.
    pub conds: Vec<String>,
    /// Barriers.
    pub barriers: Vec<Barrier>,
    /// Semaphores; all begin at 0.
    pub semaphores: Vec<String>,
    /// Timers that more than one task uses.
    pub timers: Vec<String>,
    /// Kinds of work, as the platform's tables name them.
    pub kinds: Vec<String>,
    /// True if mutexes pass on the priority of those that wait, and are handed over (`pi_enabled`).
    pub pi: bool,
}

/// A barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Name of the barrier.
    pub name: String,
    /// Number of tasks that have to come before it opens.
    pub users: u32,
}

/// Names while they are read: each gets a number when it is first seen.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, u32>);

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_string()).or_insert(next)
    }

    /// The names in the order of their numbers.
    pub(super) fn into_list(self) -> Vec<String> {
        let mut list: Vec<(u32, String)> = self.0.into_iter().map(|(name, n)| (n, name)).collect();
        list.sort_unstable();
        list.into_iter().map(|(_, name)| name).collect()
    }
}

/// An event that its task may not carry out as it stands then: in which phase, with which mutex.
pub(super) struct Misuse {
    pub(super) phase: usize,
    pub(super) mutex: u32,
    pub(super) kind: MisuseKind,
}

/// A misuse of a mutex by a task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MisuseKind {
    /// The task unlocks a mutex that it does not hold.
    Unlocks,
    /// The task waits for a condition with a mutex that it does not hold.
    Waits,
    /// The task locks a mutex that it holds.
    LocksTwice,
}

/// The first event of `task` that needs a mutex which it does not hold then, or locks one that it does.
pub(super) fn misuse(task: &TaskSpec) -> Option<Misuse> {
    let mut held = BTreeSet::new();
    for _ in 0..rounds(task.repeat) {
        for (index, phase) in task.phases.iter().enumerate() {
            for _ in 0..rounds(phase.repeat) {
                if let Some((mutex, kind)) = walk(phase, &mut held) {
                    return Some(Misuse { phase: index, mutex, kind });
                }
            }
            if phase.repeat == Repeat::Forever {
                return None;
            }
        }
    }
    None
}

/// The first phase in which `task` forks as a deadline task, which the kernel does not let create
/// another.
pub(super) fn forks_as_deadline_task(task: &TaskSpec) -> Option<usize> {
    let is_deadline = |policy: &Policy| matches!(policy, Policy::Deadline { .. });
    let mut deadline = task.attr.policy.as_ref().is_some_and(is_deadline);
    for _ in 0..rounds(task.repeat) {
        for (index, phase) in task.phases.iter().enumerate() {
            deadline = phase.attr.policy.as_ref().map_or(deadline, is_deadline);
            if deadline && phase.events.iter().any(|e| matches!(e, Event::Fork(_))) {
                return Some(index);
            }
            if phase.repeat == Repeat::Forever {
                return None;
            }
        }
    }
    None
}

/// The number of times that `task` forks each task, in loops that end, as (task's number, times).
/// Of what an endless loop forks, only a run can say how much it is.
pub(super) fn forks(task: &TaskSpec) -> impl Iterator<Item = (u32, u64)> + '_ {
    let times = |repeat| match repeat {
        Repeat::Times(n) => u64::from(n),
        Repeat::Forever => 0,
    };
    task.phases.iter().flat_map(move |phase| {
        let n = times(task.repeat).saturating_mul(times(phase.repeat));
        phase.events.iter().filter_map(move |event| match event {
            Event::Fork(of) => Some((*of, n)),
            _ => None,
        })
    })
}

/// Returns the number of rounds to look at: a third begins as the second did, since an event sets
/// or clears whatever was before.
fn rounds(repeat: Repeat) -> u32 {
    match repeat {
        Repeat::Times(n) => n.min(2),
        Repeat::Forever => 2,
    }
}

fn walk(phase: &Phase, held: &mut BTreeSet<u32>) -> Option<(u32, MisuseKind)> {
    for event in &phase.events {
        match *event {
            Event::Lock(m) if !held.insert(m) => return Some((m, MisuseKind::LocksTwice)),
            Event::Unlock(m) if !held.remove(&m) => return Some((m, MisuseKind::Unlocks)),
            Event::Wait { mutex, .. } if !held.contains(&mutex) => {
                return Some((mutex, MisuseKind::Waits));
            }
            _ => {}
        }
    }
    None
}
