//! Hotplug: from the steps in which a CPU goes offline or comes back to the moment that counts.
//!
//! ```text
//! goes    ── CPUHP_AP_ACTIVE begins: no task may be there any more ── … some ms … ── CPUHP_OFFLINE
//! comes   CPUHP_OFFLINE ── … some ms … ── CPUHP_AP_ACTIVE ends: domains are rebuilt, tasks may come
//! ```
//!
//! That step is the last one before CPUHP_ONLINE, which is the highest number in the trace, whatever it
//! is in this kernel: a CPU goes from there, or it is where one comes to. Source: include/linux/cpuhotplug.h; kernel/sched/core.c:sched_cpu_deactivate,
//! sched_cpu_activate.

use std::collections::BTreeSet;

/// A step of a CPU that goes offline or comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The step begins.
    Enter {
        /// Number of the CPU.
        cpu: u32,
        /// Number of the step (`enum cpuhp_state`).
        step: i64,
        /// Number of the step that the CPU is on its way to.
        target: i64,
    },
    /// The step has ended.
    Exit {
        /// Number of the CPU.
        cpu: u32,
        /// Number of the step.
        step: i64,
    },
}

/// Set of the CPUs that are offline, as steps are heard of.
#[derive(Debug, Default)]
pub struct Plug {
    /// CPUHP_AP_ACTIVE.
    active: i64,
    /// CPUs on which no task may be.
    pub offline: BTreeSet<u32>,
    /// CPUs on their last step back.
    coming: BTreeSet<u32>,
}

impl Plug {
    /// A plug for a trace with these steps; at first every CPU is online.
    pub fn new(steps: impl Iterator<Item = Step>) -> Plug {
        let highest = |s: Step| match s {
            Step::Enter { step, target, .. } => step.max(target),
            Step::Exit { step, .. } => step,
        };
        Plug { active: steps.map(highest).max().unwrap_or(0) - 1, ..Plug::default() }
    }

    /// The CPU that goes (`false`) or comes with this step, if one does.
    pub fn step(&mut self, step: Step) -> Option<(u32, bool)> {
        match step {
            Step::Enter { cpu, step, target } if step == self.active => {
                if target >= step {
                    self.coming.insert(cpu);
                    return None;
                }
                self.offline.insert(cpu).then_some((cpu, false))
            }
            Step::Exit { cpu, step } if step == self.active && self.coming.remove(&cpu) => {
                self.offline.remove(&cpu).then_some((cpu, true))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_goes_when_its_highest_step_begins_and_comes_when_it_has_ended() {
        let enter = |step, target| Step::Enter { cpu: 3, step, target };
        let exit = |step| Step::Exit { cpu: 3, step };
        let down = [enter(235, 142), enter(234, 142), exit(234), exit(235), enter(142, 0)];
        let up = [enter(142, 235), exit(142), enter(234, 235), exit(234)];
        let all: Vec<Step> = down.into_iter().chain(up).collect();
        let mut plug = Plug::new(all.iter().copied());
        let said: Vec<_> = all.iter().map(|s| plug.step(*s)).collect();
        let moments = [(1, (3, false)), (8, (3, true))];
        let wanted: Vec<_> =
            (0..9).map(|i| moments.iter().find(|m| m.0 == i).map(|m| m.1)).collect();
        assert_eq!(said, wanted);
        assert!(plug.offline.is_empty());
    }
}
