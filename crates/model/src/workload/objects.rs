//! What the tasks of a workload share, and who may do what with it.
//!
//! ```text
//! mutex       lock, unlock; wait and sync name one     every task begins without
//! cond        wait, sync, signal, broad
//! suspend     a mutex and a cond of that name
//! barrier     its users are the events that name it: rt-app counts them in the file, not by instance
//! ```
//!
//! A task's events are a straight line with loops, so whether it holds a mutex is known of each
//! event: walking each loop twice meets every case. Unlocking what it does not hold (undefined in
//! pthread), and waiting with such a mutex, is an error; locking twice is a deadlock of its own
//! making, and allowed.

use super::{Event, Phase, Repeat, TaskSpec};
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
}

/// A barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Barrier {
    /// Its name.
    pub name: String,
    /// So many tasks have to come.
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

/// An event that needs a mutex which its task does not hold: phase, event, mutex.
pub(super) struct NotHeld {
    pub(super) phase: usize,
    pub(super) mutex: u32,
    pub(super) waits: bool,
}

/// The first event of `task` that needs a mutex which it does not hold then.
pub(super) fn not_held(task: &TaskSpec) -> Option<NotHeld> {
    let mut held = BTreeSet::new();
    for _ in 0..rounds(task.repeat) {
        for (index, phase) in task.phases.iter().enumerate() {
            for _ in 0..rounds(phase.repeat) {
                if let Some((mutex, waits)) = walk(phase, &mut held) {
                    return Some(NotHeld { phase: index, mutex, waits });
                }
            }
            if phase.repeat == Repeat::Forever {
                return None;
            }
        }
    }
    None
}

/// A third round begins as the second did: an event sets or clears, whatever was before.
fn rounds(repeat: Repeat) -> u32 {
    match repeat {
        Repeat::Times(n) => n.min(2),
        Repeat::Forever => 2,
    }
}

fn walk(phase: &Phase, held: &mut BTreeSet<u32>) -> Option<(u32, bool)> {
    for event in &phase.events {
        match *event {
            Event::Lock(m) => drop(held.insert(m)),
            Event::Unlock(m) if !held.remove(&m) => return Some((m, false)),
            Event::Wait { mutex, .. } if !held.contains(&mutex) => return Some((mutex, true)),
            _ => {}
        }
    }
    None
}
