//! Activity of a CPU, as its events tell: runs something, or idles.

use crate::Event;
use risetime_kernel::units::{CpuId, KHz, MicroWatts, TaskId};
use risetime_model::Platform;
use risetime_model::platform::Domain;
use std::sync::Arc;

/// Activity of a CPU. One that idles in no state that was told is in the shallowest; one that
/// handles an interrupt is busy.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuUse {
    current: Option<TaskId>,
    /// An interrupt's handler keeps it from idling, or its task from running.
    in_irq: bool,
    state: Option<u32>,
    /// The kind of its work, 0 the plain one.
    kind: u32,
}

impl CpuUse {
    /// Notes that the CPU runs `next` ([`Event::Switch`](crate::Event)).
    pub fn switch(&mut self, next: Option<TaskId>) {
        self.current = next;
        self.kind = 0;
        if next.is_some() {
            self.state = None;
        }
    }
    /// Notes that the CPU is in that idle state ([`Event::Idle`](crate::Event)).
    pub fn idle(&mut self, state: Option<u32>) {
        self.state = state;
    }
    /// Notes that a handler begins (`enters`) or is done ([`Event::Irq`](crate::Event)).
    pub fn irq(&mut self, enters: bool) {
        self.in_irq = enters;
    }
    /// Notes the kind of work that the CPU does ([`Event::Work`](crate::Event)).
    pub fn work(&mut self, kind: u32) {
        self.kind = kind;
    }
    /// The kind of what it runs, 0 the plain one.
    pub fn kind(&self) -> usize {
        self.kind as usize
    }
    /// The task that the CPU runs.
    pub fn current(&self) -> Option<TaskId> {
        self.current
    }
    /// Whether an interrupt's handler has it.
    pub fn in_irq(&self) -> bool {
        self.in_irq
    }
    /// Whether it runs anything.
    pub fn is_busy(&self) -> bool {
        self.current.is_some() || self.in_irq
    }
    /// The idle state that was told of last.
    pub fn idle_state(&self) -> Option<usize> {
        self.state.map(|s| s as usize)
    }
    /// The idle state that the CPU has asked for; `None`: it is awake.
    pub fn asleep(&self) -> Option<usize> {
        self.idle_state().filter(|_| !self.is_busy())
    }
    /// The power of the CPU, in `domain` at `freq`, which idles in the state of this number. `None`: unknown.
    pub fn power(&self, domain: &Domain, freq: KHz, idle: Option<usize>) -> Option<MicroWatts> {
        match self.is_busy() {
            true if self.kind > 0 => domain.power_of_work(freq, self.kind()),
            true => domain.busy_power(freq),
            false => domain.idle_power(idle),
        }
    }
}

/// Power that each CPU of a platform takes, event by event; where that is unknown, nothing. As long
/// as nothing is told every CPU idles, and every domain is at its lowest OPP.
pub struct CpuPowers {
    platform: Arc<Platform>,
    cpus: Vec<CpuPower>,
    /// Frequencies by domain.
    freqs: Vec<KHz>,
}

struct CpuPower {
    domain: usize,
    does: CpuUse,
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
    /// The powers before the first event: every CPU idles, every domain is at its lowest OPP.
    pub fn new(platform: Arc<Platform>) -> CpuPowers {
        let domain = |cpu| platform.domain_of(cpu).unwrap_or(0);
        let core = |cpu| Some(platform.smt_mask(cpu)).filter(|core| core.len() > 1);
        let cpu = |cpu| CpuPower {
            domain: domain(cpu),
            does: CpuUse::default(),
            core: core(cpu).unwrap_or_default(),
            sleepers: platform.sleepers(cpu),
            uw: 0,
        };
        let cpus = platform.cpus().map(cpu).collect();
        let freqs = platform.domains.iter().map(|d| d.opps[0].freq).collect();
        let mut powers = CpuPowers { platform, cpus, freqs };
        (0..powers.cpus.len()).for_each(|cpu| _ = powers.renew(cpu));
        powers
    }

    /// The power of that CPU, in µW.
    pub fn uw(&self, cpu: CpuId) -> u64 {
        self.cpus.get(cpu.index()).map_or(0, |c| c.uw)
    }

    /// Takes in an event, and tells of each CPU whose power is another by it.
    #[inline]
    pub fn event(&mut self, event: &Event, mut changed: impl FnMut(PowerChange)) {
        match *event {
            Event::Switch { cpu, next, .. } => self.does(cpu, |does| does.switch(next), changed),
            Event::Idle { cpu, state } => self.does(cpu, |does| does.idle(state), changed),
            Event::Irq { cpu, enters } => self.does(cpu, |does| does.irq(enters), changed),
            Event::Work { cpu, kind } => self.does(cpu, |does| does.work(kind), changed),
            Event::Freq { cpu, freq } => {
                let Some(domain) = self.cpus.get(cpu.index()).map(|c| c.domain) else { return };
                self.freqs[domain] = freq;
                for i in 0..self.platform.domains[domain].cpus.len() {
                    let cpu = self.platform.domains[domain].cpus[i].index();
                    self.renew(cpu).into_iter().for_each(&mut changed);
                }
            }
            _ => {}
        }
    }

    fn does(
        &mut self,
        cpu: CpuId,
        change: impl FnOnce(&mut CpuUse),
        mut changed: impl FnMut(PowerChange),
    ) {
        let Some(c) = self.cpus.get_mut(cpu.index()) else { return };
        let (was, slept) = (c.does.is_busy(), c.does.asleep());
        change(&mut c.does);
        let together = slept != c.does.asleep() && !c.sleepers.is_empty();
        let others = was != c.does.is_busy() && !c.core.is_empty();
        self.renew(cpu.index()).into_iter().for_each(&mut changed);
        for i in 0..if others { self.cpus[cpu.index()].core.len() } else { 0 } {
            let thread = self.cpus[cpu.index()].core[i].index();
            self.renew(thread).into_iter().for_each(&mut changed);
        }
        for i in 0..if together { self.cpus[cpu.index()].sleepers.len() } else { 0 } {
            let sleeper = self.cpus[cpu.index()].sleepers[i].index();
            self.renew(sleeper).into_iter().for_each(&mut changed);
        }
    }

    /// The idle state in which the CPU is, by what others have asked for.
    fn idle_in(&self, c: &CpuPower) -> Option<usize> {
        let asked = c.does.idle_state();
        if c.sleepers.is_empty() {
            return asked;
        }
        let of = |cpu: CpuId| self.cpus[cpu.index()].does.asleep();
        asked.map(|asked| self.platform.idle_in(c.domain, asked, of))
    }

    /// The part of a core's power that one of its threads counts for. Rounding: down.
    fn share(&self, c: &CpuPower, uw: u64) -> u64 {
        let is_busy = |cpu: &&CpuId| self.cpus[cpu.index()].does.is_busy();
        match c.core.iter().filter(is_busy).count() as u64 {
            0 => uw / (c.core.len() as u64).max(1),
            busy if c.does.is_busy() => uw / busy,
            _ => 0,
        }
    }

    fn renew(&mut self, cpu: usize) -> Option<PowerChange> {
        let c = &self.cpus[cpu];
        let of = &self.platform.domains[c.domain];
        let idle = self.idle_in(c);
        let now = c.does.power(of, self.freqs[c.domain], idle).unwrap_or(MicroWatts(0)).0;
        let now = self.share(c, now);
        let c = &mut self.cpus[cpu];
        let before = std::mem::replace(&mut c.uw, now);
        let change = PowerChange { cpu: CpuId(cpu as u32), domain: c.domain, before, now };
        (before != now).then_some(change)
    }
}
