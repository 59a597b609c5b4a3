//! Activity of the CPUs: frequency, busy, idle, and the power that goes with it.
//!
//! ```text
//!   speed  = capacity · freq / freq_max / 1024, rounded to nearest in 2⁻³²; freq ≤ freq_max
//!            of a kind of work: its table; of work that is bound by memory: as the setting says; beside busy threads of its
//!            core: as the setting says; while an interrupt's handler has the CPU: 0
//!   energy = Σ busy ns · P(freq)  +  Σ idle ns · P(idle state)      in µW · ns = 10⁻¹⁵ J
//!            of a core with several threads: P is the core's, shared by those that are busy; by all where all idle
//! ```
//!
//! A frequency that is not an OPP (a host may report one) has its own speed and the power of
//! the next OPP above. Until a domain's first frequency event it counts as being at its
//! lowest OPP. A CPU that is idle in no recorded state counts at the power of its shallowest, one
//! that handles an interrupt as busy. A CPU that spent time where the power is unknown has an
//! unknown energy, and so have all of them together.
//! Left out: the power of a transition, of waking from idle, and of anything but the CPUs.

mod domain;

use crate::lost::{ONE, Place, State, UNIT, snap};
use crate::result::{CpuResult, NO_STATE};
use domain::lowest_cap;
use risetime_kernel::units::{CpuId, KHz, MicroWatts, TaskId, Util};
use risetime_model::Platform;
use risetime_model::platform::{Domain as PlatformDomain, MAX_THREADS, SMT_SPEED, thread_speed};
use risetime_model::settings::{Int, Key, Settings, keys};
use risetime_trace::tracker::{Domain as DomainState, Tracker};
use risetime_trace::{Limit, Signal, Why};
use std::collections::HashMap;

/// Most frequencies of one domain that are told apart; further ones count as the nearest.
const FREQS: usize = 1024;
/// Most CPUs that are told apart in what a task did; on larger machines the first CPU, and the first domain,
/// stands for all of the same capacity and OPPs.
pub const TOLD_APART: usize = 32;

/// One frequency of a domain, and one kind of work.
pub(crate) struct Slot {
    pub(crate) freq: KHz,
    /// Work: a CPU of capacity 1024 at its highest ordinary frequency does [`ONE`].
    pub(crate) speed: u64,
    /// Speed if no other thread of the core were busy, and no interrupt were handled.
    alone: u64,
    /// Share of full speed, on the scale of [`ONE`], at most that.
    pub(crate) share: u64,
    power_uw: u64,
    how: How,
    /// Number of OPPs at or below the frequency.
    opps: usize,
    /// Time for which the domain was here, in ns.
    ns: u64,
}

/// A way of running: all that speed and power depend on beside the frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct How {
    /// The kind of work, 0 the plain one.
    kind: u32,
    /// Threads of its core that have a task, itself counted in.
    threads: u8,
    /// Threads of the core that are busy, and share its power.
    busy: u8,
    /// An interrupt's handler has it.
    irq: bool,
}

/// Plain work, nobody else on the core.
const PLAIN: How = How { kind: 0, threads: 1, busy: 1, irq: false };

/// Settings that determine the speed of all work.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Share of work that does not follow the frequency, of 1024.
    memory_bound: u64,
    /// Speed of a thread, of 1024, by how many threads of a core have a task, from 1. Empty:
    /// threads take nothing from each other.
    beside: [u64; MAX_THREADS + 1],
}

/// A frequency domain.
pub(crate) struct Domain {
    of: PlatformDomain,
    /// The domain that stands for it in what a task did.
    told: usize,
    pub(crate) cpus: Vec<CpuId>,
    pub(crate) capacity: u64,
    /// The domain's OPPs, ascending, then other frequencies, and other kinds of work than the plain
    /// one, in the order of their appearance.
    pub(crate) slots: Vec<Slot>,
    /// Index of each slot.
    places: HashMap<(KHz, How), usize>,
    work: Work,
    pub(crate) nr_opps: usize,
    pub(crate) now: usize,
    since: u64,
    /// Reason of the last frequency that the governor decided on.
    chosen: Option<Why>,
    /// Time of the governor's last look; whether it has looked since no CPU ran anything for a tick.
    looked: u64,
    asked: bool,
    /// Boost OPPs may be used.
    boosts: bool,
    /// Full speed, and what of it a CPU makes at its highest frequency.
    full: u64,
    highest: u64,
    freq_state: State,
    /// State to charge where caps leave no CPU that is bigger than this domain's; `None`: there is
    /// one, or never was.
    none_bigger: Option<State>,
    /// The trace says what was asked for.
    tells_requests: bool,
}

/// A CPU.
struct Cpu {
    domain: usize,
    /// The task, by its index, that waits for it to leave its idle state.
    awaited: Option<usize>,
    /// Time until which the CPU is accounted.
    since: u64,
    /// Busy time by slot, in ns.
    busy: Vec<u64>,
    /// Idle time by the state that was asked for, in ns; one more for idle in no recorded state.
    idle: Vec<u64>,
    /// The CPUs that go into an idle state together with this one, if there are such states.
    sleepers: Vec<CpuId>,
    /// Idle state in which it is now, by what the others have asked for, and its idle time by such states;
    /// empty where it is always in the one that it has asked for.
    asleep_in: usize,
    asleep: Vec<u64>,
    /// Part of the idle time in which another thread of the core was busy, by the state in which it was; empty where the CPU has
    /// a core of its own.
    idle_beside: Vec<u64>,
    /// The threads of its core, if there are several.
    core: Vec<CpuId>,
    /// Way of running now, while the CPU runs; and if that is not [`PLAIN`], the slot of that.
    how: How,
    slot: usize,
    /// Was busy while its frequency was unknown.
    guessed: bool,
    /// Time for which nothing was known of it, in ns.
    unseen: u64,
    /// The CPU that stands for it in what a task did.
    told: CpuId,
    /// Numbers of (`told`, slot) among [`Machine::keys`], by slot; [`NO_KEY`]: none yet.
    keys: Vec<u32>,
}

const NO_KEY: u32 = u32::MAX;

/// The CPUs and domains of a run.
pub(crate) struct Machine {
    cpus: Vec<Cpu>,
    pub(crate) domains: Vec<Domain>,
    /// Last answer of [`snap`](Machine::snap), while there is no new frequency: most tasks have the
    /// same s_max.
    snapped: Option<(Util, u64)>,
    /// Places where tasks have run: (CPU, slot of its domain), in the order of first use.
    keys: Vec<(CpuId, usize)>,
    /// Capacities of CPUs, ascending, each once.
    pub(crate) capacities: Vec<u64>,
    /// The trace says which tasks are marked misfit.
    tells_misfit: bool,
    /// The platform, where CPUs sleep together.
    together: Option<Box<Platform>>,
    /// The length of a tick, ns.
    tick: u64,
    /// The speed that is full speed: more than [`ONE`] where boost is on.
    full: u64,
}

impl Machine {
    /// `signals`: what the trace tells; `settings`: those of the run.
    pub(crate) fn new(platform: &Platform, signals: &[Signal], settings: &Settings) -> Machine {
        let tells = |name| signals.iter().any(|s| s.name == name);
        let fold = platform.cpus().count() > TOLD_APART;
        let kind = kinds(platform);
        let work = Work::of_settings(settings);
        let boosts = settings.get(&keys::CPUFREQ_BOOST) == Some(1);
        let highest = |d: &PlatformDomain| {
            speed(d, if boosts { d.freq_boost() } else { d.freq_max() }).max(d.capacity.0 * UNIT)
        };
        let full = platform.domains.iter().map(highest).max().unwrap_or(ONE).max(ONE);
        let of = |d: &PlatformDomain| Domain::new(d, work, (full, highest(d), boosts));
        let mut domains: Vec<_> = platform.domains.iter().map(of).collect();
        for (i, domain) in domains.iter_mut().enumerate() {
            domain.told = if fold { kind[i] } else { i };
            domain.tells_requests = tells("freq_request");
            domain.freq_state = domain.freq_state(&DomainState::default());
        }
        let mut capacities: Vec<u64> = domains.iter().map(|d| d.capacity).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let cpu = |id: CpuId| {
            let domain = platform.domain_of(id).unwrap_or(0);
            let core = Some(platform.smt_mask(id)).filter(|core| core.len() > 1);
            let states = platform.domains[domain].idle.len() + 1;
            let sleepers = platform.sleepers(id);
            Cpu {
                domain,
                awaited: None,
                since: 0,
                busy: vec![0; domains[domain].slots.len()],
                idle: vec![0; states],
                asleep_in: states - 1,
                asleep: vec![0; if sleepers.is_empty() { 0 } else { states }],
                sleepers,
                idle_beside: vec![0; core.as_ref().map_or(0, |_| states)],
                how: core.as_ref().map_or(PLAIN, |_| How { threads: 0, busy: 0, ..PLAIN }),
                core: core.unwrap_or_default(),
                slot: 0,
                guessed: false,
                unseen: 0,
                told: if fold { domains[kind[domain]].cpus[0] } else { id },
                keys: Vec::new(),
            }
        };
        let cpus: Vec<Cpu> = platform.cpus().map(cpu).collect();
        let together = cpus.iter().any(|c| !c.sleepers.is_empty());
        let tells_misfit = tells("misfit");
        Machine {
            cpus,
            domains,
            snapped: None,
            keys: Vec::new(),
            capacities,
            tells_misfit,
            together: together.then(|| Box::new(platform.clone())),
            tick: platform.tick().0,
            full,
        }
    }

    /// The domain of `cpu`, which exists.
    pub(crate) fn domain_of(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].domain
    }
    /// [`snap`] to the speeds of this machine, of full speed.
    pub(crate) fn snap(&mut self, util: Util) -> u64 {
        if let Some((of, speed)) = self.snapped
            && of == util
        {
            return speed;
        }
        let plain = |d: &Domain| {
            let slots = d.slots.iter().filter(|s| s.how == PLAIN);
            slots.map(|s| s.speed).collect::<Vec<_>>()
        };
        let speed = snap(util, self.full, self.domains.iter().flat_map(plain));
        let speed = of_full(speed, self.full);
        self.snapped = Some((util, speed));
        speed
    }

    /// Describes what running `task` on `cpu` means now.
    #[inline]
    pub(crate) fn place(&mut self, state: &Tracker, cpu: CpuId, task: TaskId) -> Place {
        let key = self.key(cpu);
        let c = &self.cpus[cpu.index()];
        let d = &self.domains[c.domain];
        let slot = &d.slots[d.slot_of(c)];
        Place {
            cpu: cpu.index(),
            domain: d.told,
            key,
            opps: slot.opps,
            capacity: d.capacity,
            // In a task's sums it is that of the CPU which stands for it.
            power_uw: if c.told == cpu { slot.power_uw } else { self.at(key).3 },
            highest: d.highest,
            speed: slot.share,
            alone: of_full(slot.alone, self.full),
            beside_state: if c.how.irq { State::Interrupted } else { State::Sibling },
            cpu_state: match (d.none_bigger, state.cpu(cpu).misfit()) {
                (Some(capped), _) => capped,
                _ if !self.tells_misfit => State::SmallCpu,
                (_, Some(misfit)) if misfit == task => State::WaitingForMisfit,
                _ => State::LittleCpu,
            },
            freq_state: d.freq_state,
        }
    }

    /// Returns the number of where `cpu` is now, and of full speed what it makes there ([`Place`]).
    #[inline]
    pub(crate) fn runs_at(&mut self, cpu: CpuId) -> (u32, u64) {
        let key = self.key(cpu);
        let c = &self.cpus[cpu.index()];
        let d = &self.domains[c.domain];
        (key, d.slots[d.slot_of(c)].share)
    }

    /// The number of where `cpu` is now: its CPU, or the one that stands for it, and its frequency.
    #[inline]
    fn key(&mut self, cpu: CpuId) -> u32 {
        let c = &self.cpus[cpu.index()];
        let now = self.domains[c.domain].slot_of(c);
        match c.keys.get(now) {
            Some(key) if *key != NO_KEY => *key,
            _ => self.new_key(cpu, now),
        }
    }

    #[cold]
    fn new_key(&mut self, cpu: CpuId, now: usize) -> u32 {
        let told = self.cpus[cpu.index()].told;
        // Two domains of a kind may number a frequency that is no OPP differently.
        let of = self.domain_of(cpu);
        let (freq, how) = (self.domains[of].slots[now].freq, self.domains[of].slots[now].how);
        let slot = if told == cpu {
            now
        } else {
            let of = self.domain_of(told);
            self.domains[of].slot(freq, how)
        };
        let known = self.keys.iter().position(|key| *key == (told, slot));
        let key = known.unwrap_or_else(|| {
            self.keys.push((told, slot));
            self.keys.len() - 1
        });
        let keys = &mut self.cpus[cpu.index()].keys;
        keys.resize(keys.len().max(now + 1), NO_KEY);
        keys[now] = key as u32;
        key as u32
    }

    /// Resolves a key to its CPU and frequency, and what running there means: speed on the scale of
    /// [`ONE`], and power in µW (0: unknown).
    pub(crate) fn at(&self, key: u32) -> (CpuId, KHz, u64, u64) {
        let (cpu, slot) = self.keys[key as usize];
        let slot = &self.domains[self.domain_of(cpu)].slots[slot];
        (cpu, slot.freq, slot.speed, slot.power_uw)
    }

    /// The place of a CPU's capacity among [`Machine::capacities`]; 0 for a CPU that is not there.
    pub(crate) fn kind(&self, cpu: CpuId) -> usize {
        let cpu = self.cpus.get(cpu.index());
        let capacity = cpu.map(|c| self.domains[c.domain].capacity);
        capacity.and_then(|c| self.capacities.binary_search(&c).ok()).unwrap_or(0)
    }

    /// Accounts what `cpu` has done until now: it is about to do something else.
    pub(crate) fn before(&mut self, state: &Tracker, cpu: CpuId) {
        self.account(state, cpu, state.now());
    }

    /// Notes that `cpu`, which was accounted and ran a task or not (`ran`), has gone over to what it runs now.
    pub(crate) fn switched(&mut self, state: &Tracker, cpu: CpuId, ran: bool) {
        let runs = state.cpu(cpu).current().is_some();
        let d = self.cpus[cpu.index()].domain;
        let of = state.domain(d);
        if !ran && runs && of.running() == 1 {
            // Nobody has run there who could be charged.
            let (domain, idle_since) = (&mut self.domains[d], of.idle_since());
            domain.asked &= state.now() - idle_since < self.tick || domain.looked >= idle_since;
            domain.freq_state = domain.freq_state(of);
        }
        self.after(state, cpu);
    }

    /// Notes that `cpu`, which was accounted, does something else now.
    pub(crate) fn after(&mut self, state: &Tracker, cpu: CpuId) {
        self.works(state, cpu);
        self.sleeps(state, cpu);
    }

    /// Sets which task, by its index, waits for `cpu` to leave its idle state; returns which did
    /// before.
    pub(crate) fn set_awaited(&mut self, cpu: CpuId, task: Option<usize>) -> Option<usize> {
        let c = self.cpus.get_mut(cpu.index())?;
        std::mem::replace(&mut c.awaited, task)
    }

    /// Updates the idle states in which `cpu` is, and those that hang on it, now that what `cpu` does has changed.
    pub(crate) fn sleeps(&mut self, state: &Tracker, cpu: CpuId) {
        for i in 0..self.cpus[cpu.index()].sleepers.len() {
            let sleeper = self.cpus[cpu.index()].sleepers[i];
            self.account(state, sleeper, state.now());
            let untold = self.cpus[sleeper.index()].asleep.len().saturating_sub(1);
            let asked = state.cpu(sleeper).idle_state().filter(|asked| *asked < untold);
            let platform = self.together.as_ref().filter(|_| asked.is_some());
            let asleep_in = platform.and_then(|platform| state.idle_in(platform, sleeper));
            self.cpus[sleeper.index()].asleep_in = asleep_in.unwrap_or(untold);
        }
    }

    /// The next of the other threads of its core from this place on, and the place behind it.
    #[inline]
    pub(crate) fn beside(&self, cpu: CpuId, from: usize) -> Option<(CpuId, usize)> {
        let threads = self.cpus[cpu.index()].core.iter().copied().enumerate().skip(from);
        threads.map(|(i, thread)| (thread, i + 1)).find(|(thread, _)| *thread != cpu)
    }

    /// Updates how `cpu` and the other threads of its core work, now that what `cpu` does has
    /// changed.
    pub(crate) fn works(&mut self, state: &Tracker, cpu: CpuId) {
        if self.cpus[cpu.index()].core.is_empty() {
            let does = state.cpu(cpu);
            let how = How { kind: does.kind(), irq: does.in_irq(), ..PLAIN };
            return self.set_how(cpu, how, does.is_busy());
        }
        let core = &self.cpus[cpu.index()].core;
        let threads = core.iter().filter(|c| state.cpu(**c).current().is_some()).count() as u8;
        let busy = core.iter().filter(|c| state.cpu(**c).is_busy()).count() as u8;
        for i in 0..core.len() {
            let thread = self.cpus[cpu.index()].core[i];
            self.account(state, thread, state.now());
            let does = state.cpu(thread);
            let how = How { kind: does.kind(), threads, busy, irq: does.in_irq() };
            self.set_how(thread, how, does.is_busy());
        }
    }

    fn set_how(&mut self, cpu: CpuId, how: How, busy: bool) {
        let c = &mut self.cpus[cpu.index()];
        if how != std::mem::replace(&mut c.how, how) && busy {
            let d = &mut self.domains[c.domain];
            c.slot = d.slot(d.slots[d.now].freq, how);
        }
    }

    /// Notes that domain `d`, which was accounted, runs at another frequency now.
    pub(crate) fn freq_changed(&mut self, state: &Tracker, d: usize, freq: KHz) {
        let (domain, of) = (&mut self.domains[d], state.domain(d));
        let known = domain.slots.len();
        domain.now = domain.slot(freq, PLAIN);
        if domain.slots.len() != known {
            self.snapped = None;
        }
        domain.freq_state = domain.freq_state(of);
        for i in 0..domain.cpus.len() {
            let cpu = domain.cpus[i];
            let c = &mut self.cpus[cpu.index()];
            if c.how != PLAIN && state.cpu(cpu).is_busy() {
                c.slot = domain.slot(freq, c.how);
            }
        }
    }

    /// The state in which running at the present frequency is lost after the request that was made last; `None`: as before.
    pub(crate) fn requested(&mut self, state: &Tracker, d: usize, why: Why) -> Option<State> {
        let (domain, of) = (&mut self.domains[d], state.domain(d));
        (domain.asked, domain.looked) = (true, state.now());
        let undecided =
            [Why::Unchanged, Why::RateLimited, Why::InProgress, Why::HoldBusy, Why::MinSampleTime];
        if !undecided.contains(&why) {
            domain.chosen = Some(why);
        }
        let lost_in = domain.freq_state(of);
        (lost_in != domain.freq_state).then_some(lost_in)
    }
    /// The state in which running is lost after the caps of domain `d` have changed; `None`: as before.
    pub(crate) fn capped(&mut self, state: &Tracker, d: usize) -> Option<State> {
        for of in 0..self.domains.len() {
            self.domains[of].none_bigger = self.none_bigger(state, of);
        }
        let domain = &self.domains[d];
        let lost_in = domain.freq_state(state.domain(d));
        (lost_in != domain.freq_state).then_some(lost_in)
    }
    /// The state to charge if caps have left no CPU bigger than those of domain `d`, although there
    /// are some; `None`: not so.
    fn none_bigger(&self, state: &Tracker, d: usize) -> Option<State> {
        let own = self.domains[d].highest;
        // `capacity_greater`: by more than 5 %.
        let greater = |share: u64| u128::from(share) * 1024 > u128::from(own) * 1078;
        let all = self.domains.iter().enumerate();
        let bigger = all.filter(|(_, d)| greater(d.highest));
        let capped = |(i, d): (usize, &Domain)| {
            let (max, by) = lowest_cap(state.domain(i))?;
            (!greater(of_full(speed(&d.of, max), d.full))).then_some(by)
        };
        let by: Option<Vec<State>> = bigger.map(capped).collect();
        by?.first().copied()
    }
    pub(crate) fn set_freq_state(&mut self, d: usize, state: State) {
        self.domains[d].freq_state = state;
    }

    /// Accounts what the CPUs of domain `d` have done until `now`.
    pub(crate) fn account_domain(&mut self, state: &Tracker, d: usize, now: u64) {
        for i in 0..self.domains[d].cpus.len() {
            let cpu = self.domains[d].cpus[i];
            self.account(state, cpu, now);
        }
        let domain = &mut self.domains[d];
        domain.slots[domain.now].ns += now - domain.since;
        domain.since = now;
    }

    fn account(&mut self, state: &Tracker, cpu: CpuId, now: u64) {
        let c = &mut self.cpus[cpu.index()];
        let d = &self.domains[c.domain];
        let dt = now - c.since;
        if dt == 0 {
            return;
        }
        c.since = now;
        let does = state.cpu(cpu);
        if !does.is_busy() {
            if !does.is_known() {
                c.unseen += dt;
                return;
            }
            let unknown = c.idle.len() - 1;
            let state = does.idle_state().unwrap_or(unknown).min(unknown);
            c.idle[state] += dt;
            let state = if c.asleep.is_empty() { state } else { c.asleep_in };
            if let Some(asleep) = c.asleep.get_mut(state) {
                *asleep += dt;
            }
            if c.how.busy > 0
                && let Some(beside) = c.idle_beside.get_mut(state)
            {
                *beside += dt;
            }
            return;
        }
        let slot = d.slot_of(c);
        if c.busy.len() <= slot {
            c.busy.resize(d.slots.len(), 0);
        }
        c.busy[slot] += dt;
        c.guessed |= state.domain(c.domain).freq().is_none();
    }

    fn energy(&self, d: usize, busy: &[u64]) -> Option<u128> {
        let slots = busy.iter().zip(&self.domains[d].slots).filter(|(ns, _)| **ns > 0);
        slots.map(|(ns, s)| energy(*ns, s.power_uw)).sum()
    }

    /// The energy of a CPU while it was idle, without time beside a busy thread of its core;
    /// `None`: unknown.
    fn idle_energy(&self, c: &Cpu) -> Option<u128> {
        let idle = if c.asleep.is_empty() { &c.idle } else { &c.asleep };
        let idle = idle.iter().enumerate().filter(|(_, ns)| **ns > 0);
        let power = |i| self.domains[c.domain].of.idle_power(Some(i));
        let beside = |i| c.idle_beside.get(i).copied().unwrap_or(0);
        let own = |i, ns: u64| Some(u128::from(ns - beside(i)) * u128::from(power(i)?.0));
        let all: Option<u128> = idle.map(|(i, ns)| own(i, *ns)).sum();
        all.map(|energy| energy / c.core.len().max(1) as u128)
    }

    /// Closes the run at `end`: the CPUs, their energy in mJ, and what a reader should know.
    pub(crate) fn finish(
        &mut self,
        state: &Tracker,
        platform: &Platform,
        end: u64,
    ) -> (Vec<CpuResult>, Option<f64>, Vec<String>) {
        let mut notes = Vec::new();
        for d in 0..self.domains.len() {
            self.account_domain(state, d, end);
            let domain = &self.domains[d];
            if domain.cpus.iter().any(|c| self.cpus[c.index()].guessed) {
                notes.push(format!(
                    "{}: no frequency recorded before it was first used; counted as {}",
                    domain.cpus[0], domain.slots[0].freq
                ));
            }
        }
        let mut total = Some(0);
        let results = (0..self.cpus.len())
            .map(|i| {
                let (result, energy) = self.cpu_result(i, platform);
                total = total.zip(energy).map(|(a, b): (u128, u128)| a + b);
                result
            })
            .collect();
        (results, total.map(femto_to_milli), notes)
    }

    /// The note for the reader on time of which nothing is known; `None`: there was none.
    pub(crate) fn unseen(&self) -> Option<String> {
        let all = self.cpus.iter().enumerate().filter(|(_, c)| c.unseen > 0);
        let (most, _) = all.clone().max_by_key(|(i, c)| (c.unseen, std::cmp::Reverse(*i)))?;
        let sum: u64 = all.clone().map(|(_, c)| c.unseen).sum();
        let (own, most) = (ms(self.cpus[most].unseen), CpuId(most as u32));
        let of = match all.count() {
            1 => format!("{most} did for {own:.1} ms"),
            n => format!("{n} CPUs did for {:.1} ms in all, {own:.1} ms of that {most}", ms(sum)),
        };
        Some(format!(
            "nothing is known of what {of}: it counts neither as busy nor as idle, and takes no energy"
        ))
    }

    fn cpu_result(&self, i: usize, platform: &Platform) -> (CpuResult, Option<u128>) {
        let c = &self.cpus[i];
        let domain = &self.domains[c.domain];
        let states = &platform.domains[c.domain].idle;
        let idle_energy = self.idle_energy(c);
        let energy = self.energy(c.domain, &c.busy).zip(idle_energy).map(|(a, b)| a + b);
        let mut freq: Vec<_> =
            domain.slots.iter().filter(|s| s.ns > 0).map(|s| (s.freq, ms(s.ns))).collect();
        freq.sort_by_key(|f| f.0);
        let untold = c.idle.last().map(|ns| (NO_STATE, *ns));
        let told = states.iter().zip(&c.idle).map(|(s, ns)| (s.name.as_str(), *ns));
        let idle = untold.into_iter().chain(told).filter(|(_, ns)| *ns > 0);
        let idle = idle.map(|(name, ns)| (name.to_string(), ms(ns))).collect();
        let result = CpuResult {
            cpu: CpuId(i as u32),
            domain: domain.cpus[0],
            told: c.told,
            capacity: domain.capacity,
            energy_mj: energy.map(femto_to_milli),
            freq,
            idle,
            busy_ms: ms(c.busy.iter().sum()),
        };
        (result, energy)
    }
}

/// Maps each domain to the first one with the same capacity and OPPs.
pub(crate) fn kinds(platform: &Platform) -> Vec<usize> {
    let mut known: HashMap<(u64, Vec<KHz>), usize> = HashMap::new();
    let opps = |d: &PlatformDomain| d.opps.iter().map(|o| o.freq).collect();
    let own = platform.domains.iter().enumerate();
    own.map(|(i, d)| *known.entry((d.capacity.0, opps(d))).or_insert(i)).collect()
}

/// The share of `full` that a speed is, on the scale of [`ONE`], at most that. Rounding: to
/// nearest.
fn of_full(speed: u64, full: u64) -> u64 {
    if full == ONE {
        return speed.min(ONE);
    }
    let (speed, full) = (u128::from(speed), u128::from(full));
    ((speed * u128::from(ONE) + full / 2) / full).min(u128::from(ONE)) as u64
}

impl Work {
    fn of_settings(settings: &Settings) -> Work {
        let of =
            |of: &Key<Int>, unset: u64| settings.get(of).map_or(unset, |v| v.clamp(0, 1024) as u64);
        let smt = of(&SMT_SPEED, 1024);
        let beside = std::array::from_fn(|threads| thread_speed(smt, threads));
        Work { memory_bound: of(&keys::MEMORY_BOUND, 0), beside }
    }

    /// The speed of work that is bound by memory, as in the simulator. Rounding: down.
    fn bound(&self, speed: u64, highest: u64) -> u64 {
        if self.memory_bound == 0 {
            return speed;
        }
        let (m, speed, highest) =
            (u128::from(self.memory_bound), u128::from(speed), u128::from(highest));
        (1024 * speed * highest / ((1024 - m) * highest + m * speed).max(1)) as u64
    }

    /// The speed of a thread where so many of its core have a task. Rounding: down.
    fn beside(&self, alone: u64, threads: u8) -> u64 {
        let of = self.beside[usize::from(threads).min(MAX_THREADS)];
        (u128::from(alone) * u128::from(of) / 1024) as u64
    }
}

/// The speed of plain work in this domain at `freq`, on the scale of [`ONE`]. Rounding: to nearest.
pub(crate) fn speed(d: &PlatformDomain, freq: KHz) -> u64 {
    let (capacity, freq, max) = d.capacity_at(freq.min(d.freq_boost()));
    share(capacity.0, freq, max)
}

/// `capacity · freq / max`, in units of a speed. Rounding: to nearest.
fn share(capacity: u64, freq: KHz, max: KHz) -> u64 {
    let (freq, max) = (u128::from(freq.0), u128::from(max.0.max(1)));
    ((u128::from(capacity * UNIT) * freq + max / 2) / max) as u64
}

/// The power as a number of µW; 0: unknown.
fn uw(power: Option<MicroWatts>) -> u64 {
    power.map_or(0, |power| power.0)
}

/// The energy in µW · ns. `None`: the power is unknown, which is written as 0.
pub(crate) fn energy(ns: u64, power_uw: u64) -> Option<u128> {
    (power_uw > 0).then(|| u128::from(ns) * u128::from(power_uw))
}

pub(crate) fn femto_to_milli(fj: u128) -> f64 {
    fj as f64 / 1e12
}

pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
