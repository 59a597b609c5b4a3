//! Power that each CPU takes, by its state.

use super::Tracker;
use crate::Event;
use risetime_kernel::units::{CpuId, Instant, MicroWatts};
use risetime_model::Platform;
use std::sync::Arc;

/// Power that each CPU of a platform takes, event by event; where that is unknown, nothing. A domain whose frequency is unknown
/// counts as being at its lowest OPP.
pub struct CpuPowers {
    platform: Arc<Platform>,
    cpus: Vec<CpuPower>,
}

struct CpuPower {
    /// The threads of its core, if there are several, which share its power: those that are busy, or all.
    core: Vec<CpuId>,
    /// The CPUs that go into an idle state together with this one, if there are such states.
    sleepers: Vec<CpuId>,
    uw: u64,
}

/// A CPU takes more or less than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerChange {
    /// The CPU.
    pub cpu: CpuId,
    /// Domain of the CPU.
    pub domain: usize,
    /// Power before, in µW.
    pub before: u64,
    /// Power from now on, in µW.
    pub now: u64,
}

impl CpuPowers {
    /// Returns the powers in this state.
    pub fn new(platform: Arc<Platform>, state: &Tracker) -> CpuPowers {
        let core = |cpu| Some(platform.smt_mask(cpu)).filter(|core| core.len() > 1);
        let cpu = |cpu| CpuPower {
            core: core(cpu).unwrap_or_default(),
            sleepers: platform.sleepers(cpu),
            uw: 0,
        };
        let cpus = platform.cpus().map(cpu).collect();
        let mut powers = CpuPowers { platform, cpus };
        (0..powers.cpus.len()).for_each(|cpu| _ = powers.renew(state, cpu));
        powers
    }

    /// The power of that CPU, in µW.
    pub fn uw(&self, cpu: CpuId) -> u64 {
        self.cpus.get(cpu.index()).map_or(0, |c| c.uw)
    }

    /// The CPU whose power, or whose domain's, may be another by `event`.
    #[inline]
    pub fn concerned(event: &Event) -> Option<CpuId> {
        match *event {
            Event::Switch { cpu, .. }
            | Event::Idle { cpu, .. }
            | Event::Irq { cpu, .. }
            | Event::Work { cpu, .. }
            | Event::Unseen { cpu }
            | Event::Freq { cpu, .. } => Some(cpu),
            _ => None,
        }
    }

    /// Feeds `state` with an event, and tells of each CPU whose power is another by it.
    #[inline]
    pub fn event(
        &mut self,
        state: &mut Tracker,
        at: Instant,
        event: &Event,
        mut changed: impl FnMut(PowerChange),
    ) {
        let Some(cpu) = CpuPowers::concerned(event).filter(|cpu| state.has(*cpu)) else {
            return state.event(at, event);
        };
        let (was, slept) = (state.cpu(cpu).is_busy(), state.cpu(cpu).asleep());
        state.event(at, event);
        let domain = state.cpu(cpu).domain();
        if let Event::Freq { .. } = event {
            for i in 0..self.platform.domains[domain].cpus.len() {
                let cpu = self.platform.domains[domain].cpus[i].index();
                self.renew(state, cpu).into_iter().for_each(&mut changed);
            }
            return;
        }
        let (does, c) = (state.cpu(cpu), &self.cpus[cpu.index()]);
        let together = slept != does.asleep() && !c.sleepers.is_empty();
        let others = was != does.is_busy() && !c.core.is_empty();
        self.renew(state, cpu.index()).into_iter().for_each(&mut changed);
        for i in 0..if others { self.cpus[cpu.index()].core.len() } else { 0 } {
            let thread = self.cpus[cpu.index()].core[i].index();
            self.renew(state, thread).into_iter().for_each(&mut changed);
        }
        for i in 0..if together { self.cpus[cpu.index()].sleepers.len() } else { 0 } {
            let sleeper = self.cpus[cpu.index()].sleepers[i].index();
            self.renew(state, sleeper).into_iter().for_each(&mut changed);
        }
    }

    /// The part of a core's power that one of its threads counts for. Rounding: down.
    fn share(&self, state: &Tracker, cpu: usize, uw: u64) -> u64 {
        let core = &self.cpus[cpu].core;
        let is_busy = |cpu: &&CpuId| state.cpu(**cpu).is_busy();
        match core.iter().filter(is_busy).count() as u64 {
            0 => uw / (core.len() as u64).max(1),
            busy if state.cpus()[cpu].is_busy() => uw / busy,
            _ => 0,
        }
    }

    fn renew(&mut self, state: &Tracker, cpu: usize) -> Option<PowerChange> {
        let (does, id) = (&state.cpus()[cpu], CpuId(cpu as u32));
        let domain = does.domain();
        let of = &self.platform.domains[domain];
        let idle = match self.cpus[cpu].sleepers.is_empty() {
            true => does.idle_state(),
            false => state.idle_in(&self.platform, id),
        };
        let freq = state.domain(domain).freq().unwrap_or(of.opps[0].freq);
        let now = does.power(of, freq, idle).unwrap_or(MicroWatts(0)).0;
        let now = self.share(state, cpu, now);
        let before = std::mem::replace(&mut self.cpus[cpu].uw, now);
        (before != now).then_some(PowerChange { cpu: id, domain, before, now })
    }
}
