//! What the CPUs do: frequency, busy, idle, and the power that goes with it.
//!
//! ```text
//!   speed  = capacity · freq / freq_max / 1024, rounded to nearest in 2⁻³²; freq ≤ freq_max
//!   energy = Σ busy ns · P(freq)  +  Σ idle ns · P(idle state)      in µW · ns = 10⁻¹⁵ J
//! ```
//!
//! A frequency that is not an OPP (a host may report one) has its own speed and the power of
//! the next OPP above. Until a domain's first frequency event it counts as being at its
//! lowest OPP. A CPU that is idle in no recorded state counts at the power of its shallowest, one
//! that handles an interrupt as busy. A CPU that spent time where the power is unknown has an
//! unknown energy, and so have all of them together.
//! Left out: the power of a transition, of waking from idle, and of anything but the CPUs.

use crate::lost::{Place, State, UNIT, snap};
use crate::result::CpuResult;
use risetime_kernel::units::{CpuId, KHz, MicroWatts, TaskId, Util};
use risetime_model::Platform;
use risetime_model::platform::Domain as PlatformDomain;
use risetime_trace::{CpuUse, Signal, Why};
use std::collections::HashMap;

/// Most frequencies of one domain that are told apart; further ones count as the nearest.
const FREQS: usize = 1024;
/// Most CPUs that are told apart in what a task did; on larger machines the first CPU, and the first domain,
/// stands for all of the same capacity and OPPs.
pub const TOLD_APART: usize = 32;

/// One frequency of a domain, and one kind of work.
pub(crate) struct Slot {
    pub(crate) freq: KHz,
    /// On the scale of [`ONE`](crate::lost::ONE).
    pub(crate) speed: u64,
    power_uw: u64,
    /// The kind of work, 0 the plain one.
    kind: usize,
    /// How many OPPs are at or below it.
    opps: usize,
    /// How long the domain was here, ns.
    ns: u64,
}

/// A frequency domain.
pub(crate) struct Domain {
    of: PlatformDomain,
    /// The domain that stands for it in what a task did.
    told: usize,
    pub(crate) cpus: Vec<CpuId>,
    pub(crate) capacity: u64,
    /// Its OPPs, ascending, then other frequencies, and other kinds of work than the plain one, in the order of their
    /// appearance.
    pub(crate) slots: Vec<Slot>,
    pub(crate) nr_opps: usize,
    pub(crate) now: usize,
    since: u64,
    /// Whether a frequency event has been seen.
    known: bool,
    /// What the governor last wanted, and why.
    request: Option<(KHz, Util, Why)>,
    /// Why it wanted the last frequency that it decided on.
    chosen: Option<Why>,
    /// What cooling leaves of its highest frequency.
    capped_to: Option<KHz>,
    freq_state: State,
    /// The trace says what was asked for.
    tells_requests: bool,
}

/// A CPU.
struct Cpu {
    domain: usize,
    does: CpuUse,
    misfit: Option<TaskId>,
    /// It does that since.
    since: u64,
    /// By slot, ns.
    busy: Vec<u64>,
    /// By state, ns; one more for idle in no recorded state.
    idle: Vec<u64>,
    /// While it does other than plain work: the slot of that.
    slot: usize,
    /// Was busy while its frequency was unknown.
    guessed: bool,
    /// The CPU that stands for it in what a task did.
    told: CpuId,
    /// By slot, the number of (`told`, slot) among [`Machine::keys`]; [`NO_KEY`]: none yet.
    keys: Vec<u32>,
}

const NO_KEY: u32 = u32::MAX;

/// The CPUs and domains of a run.
pub(crate) struct Machine {
    cpus: Vec<Cpu>,
    pub(crate) domains: Vec<Domain>,
    /// What [`snap`](Machine::snap) said last, while there is no new frequency: most tasks have the same s_max.
    snapped: Option<(Util, u64)>,
    /// Where tasks have run: (CPU, slot of its domain), in the order of first use.
    keys: Vec<(CpuId, usize)>,
    /// Capacities of CPUs, ascending, each once.
    pub(crate) capacities: Vec<u64>,
    /// The trace says which tasks are marked misfit.
    tells_misfit: bool,
}

impl Machine {
    /// `signals`: what the trace tells.
    pub(crate) fn new(platform: &Platform, signals: &[Signal]) -> Machine {
        let tells = |name| signals.iter().any(|s| s.name == name);
        let fold = platform.cpus().count() > TOLD_APART;
        let kind = kinds(platform);
        let mut domains: Vec<_> = platform.domains.iter().map(Domain::new).collect();
        for (i, domain) in domains.iter_mut().enumerate() {
            domain.told = if fold { kind[i] } else { i };
            domain.tells_requests = tells("freq_request");
            domain.freq_state = domain.freq_state();
        }
        let mut capacities: Vec<u64> = domains.iter().map(|d| d.capacity).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let cpu = |id: CpuId| {
            let domain = platform.domain_of(id).unwrap_or(0);
            Cpu {
                domain,
                does: CpuUse::default(),
                misfit: None,
                since: 0,
                busy: vec![0; domains[domain].slots.len()],
                idle: vec![0; platform.domains[domain].idle.len() + 1],
                slot: 0,
                guessed: false,
                told: if fold { domains[kind[domain]].cpus[0] } else { id },
                keys: Vec::new(),
            }
        };
        let cpus = platform.cpus().map(cpu).collect();
        let tells_misfit = tells("misfit");
        Machine { cpus, domains, snapped: None, keys: Vec::new(), capacities, tells_misfit }
    }

    pub(crate) fn has(&self, cpu: CpuId) -> bool {
        cpu.index() < self.cpus.len()
    }
    /// The domain of `cpu`, which exists.
    pub(crate) fn domain_of(&self, cpu: CpuId) -> usize {
        self.cpus[cpu.index()].domain
    }
    pub(crate) fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu.index()].does.current()
    }
    /// [`snap`] to the speeds of this machine.
    pub(crate) fn snap(&mut self, util: Util) -> u64 {
        if let Some((of, speed)) = self.snapped
            && of == util
        {
            return speed;
        }
        let plain = |d: &Domain| {
            let slots = d.slots.iter().filter(|s| s.kind == 0);
            slots.map(|s| s.speed).collect::<Vec<_>>()
        };
        let speed = snap(util, self.domains.iter().flat_map(plain));
        self.snapped = Some((util, speed));
        speed
    }

    /// What running `task` on `cpu` means now.
    #[inline]
    pub(crate) fn place(&mut self, cpu: CpuId, task: TaskId) -> Place {
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
            speed: slot.speed,
            cpu_state: match c.misfit {
                _ if !self.tells_misfit => State::SmallCpu,
                Some(misfit) if misfit == task => State::WaitingForMisfit,
                _ => State::LittleCpu,
            },
            freq_state: d.freq_state,
        }
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
        let (freq, kind) = (self.domains[of].slots[now].freq, self.domains[of].slots[now].kind);
        let slot = if told == cpu {
            now
        } else {
            let of = self.domain_of(told);
            self.domains[of].slot(freq, kind)
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

    /// Where the key is, and what running there means: speed on the scale of [`ONE`](crate::lost::ONE), and power
    /// in µW (0: unknown).
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

    /// `cpu` now runs `next`.
    pub(crate) fn switch(&mut self, cpu: CpuId, next: Option<TaskId>, now: u64) {
        self.account(cpu, now);
        self.cpus[cpu.index()].does.switch(next);
    }

    pub(crate) fn set_idle(&mut self, cpu: CpuId, state: Option<u32>, now: u64) {
        self.account(cpu, now);
        self.cpus[cpu.index()].does.idle(state);
    }

    /// An interrupt's handler begins or is done: it runs, whoever else does.
    pub(crate) fn set_irq(&mut self, cpu: CpuId, enters: bool, now: u64) {
        self.account(cpu, now);
        self.cpus[cpu.index()].does.irq(enters);
    }

    /// What it runs is of that kind from now on; its task was accounted.
    pub(crate) fn set_work(&mut self, cpu: CpuId, kind: u32, now: u64) {
        self.account(cpu, now);
        let c = &mut self.cpus[cpu.index()];
        c.does.work(kind);
        let d = &mut self.domains[c.domain];
        c.slot = d.slot(d.slots[d.now].freq, c.does.kind());
    }

    pub(crate) fn set_misfit(&mut self, cpu: CpuId, task: Option<TaskId>) {
        self.cpus[cpu.index()].misfit = task;
    }

    /// Domain `d` now runs at `freq`.
    pub(crate) fn set_freq(&mut self, d: usize, freq: KHz, now: u64) {
        self.account_domain(d, now);
        let domain = &mut self.domains[d];
        let known = domain.slots.len();
        domain.now = domain.slot(freq, 0);
        if domain.slots.len() != known {
            self.snapped = None;
        }
        domain.known = true;
        domain.freq_state = domain.freq_state();
        for i in 0..domain.cpus.len() {
            let c = &mut self.cpus[domain.cpus[i].index()];
            if c.does.kind() > 0 {
                c.slot = domain.slot(freq, c.does.kind());
            }
        }
    }

    /// The state in which running at the present frequency would be lost after this request;
    /// `None`: as before.
    pub(crate) fn request_changes(&mut self, d: usize, request: (KHz, Util, Why)) -> Option<State> {
        let domain = &mut self.domains[d];
        domain.request = Some(request);
        let undecided =
            [Why::Unchanged, Why::RateLimited, Why::InProgress, Why::HoldBusy, Why::MinSampleTime];
        if !undecided.contains(&request.2) {
            domain.chosen = Some(request.2);
        }
        let state = domain.freq_state();
        (state != domain.freq_state).then_some(state)
    }
    /// The same after a cap has set the highest frequency of domain `d`.
    pub(crate) fn limits_change(&mut self, d: usize, max: KHz) -> Option<State> {
        let domain = &mut self.domains[d];
        domain.capped_to = Some(max).filter(|max| *max < domain.of.freq_max());
        let state = domain.freq_state();
        (state != domain.freq_state).then_some(state)
    }
    pub(crate) fn set_freq_state(&mut self, d: usize, state: State) {
        self.domains[d].freq_state = state;
    }

    fn account_domain(&mut self, d: usize, now: u64) {
        for i in 0..self.domains[d].cpus.len() {
            let cpu = self.domains[d].cpus[i];
            self.account(cpu, now);
        }
        let domain = &mut self.domains[d];
        domain.slots[domain.now].ns += now - domain.since;
        domain.since = now;
    }

    fn account(&mut self, cpu: CpuId, now: u64) {
        let c = &mut self.cpus[cpu.index()];
        let d = &self.domains[c.domain];
        let dt = now - c.since;
        if dt == 0 {
            return;
        }
        c.since = now;
        if !c.does.is_busy() {
            let unknown = c.idle.len() - 1;
            c.idle[c.does.idle_state().unwrap_or(unknown).min(unknown)] += dt;
            return;
        }
        let slot = d.slot_of(c);
        if c.busy.len() <= slot {
            c.busy.resize(d.slots.len(), 0);
        }
        c.busy[slot] += dt;
        c.guessed |= !d.known;
    }

    fn energy(&self, d: usize, busy: &[u64]) -> Option<u128> {
        let slots = busy.iter().zip(&self.domains[d].slots).filter(|(ns, _)| **ns > 0);
        slots.map(|(ns, s)| energy(*ns, s.power_uw)).sum()
    }

    /// Energy of a CPU of domain `d` that was idle for so many ns in each state; `None`: unknown.
    fn idle_energy(&self, d: usize, idle: &[u64]) -> Option<u128> {
        let idle = idle.iter().enumerate().filter(|(_, ns)| **ns > 0);
        let power = |i| self.domains[d].of.idle_power(Some(i));
        idle.map(|(i, ns)| Some(u128::from(*ns) * u128::from(power(i)?.0))).sum()
    }

    /// Closes the run at `end`: the CPUs, their energy in mJ, and what a reader should know.
    pub(crate) fn finish(
        &mut self,
        platform: &Platform,
        end: u64,
    ) -> (Vec<CpuResult>, Option<f64>, Vec<String>) {
        let mut notes = Vec::new();
        for d in 0..self.domains.len() {
            self.account_domain(d, end);
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

    fn cpu_result(&self, i: usize, platform: &Platform) -> (CpuResult, Option<u128>) {
        let c = &self.cpus[i];
        let domain = &self.domains[c.domain];
        let states = &platform.domains[c.domain].idle;
        let idle_energy = self.idle_energy(c.domain, &c.idle);
        let energy = self.energy(c.domain, &c.busy).zip(idle_energy).map(|(a, b)| a + b);
        let mut freq: Vec<_> =
            domain.slots.iter().filter(|s| s.ns > 0).map(|s| (s.freq, ms(s.ns))).collect();
        freq.sort_by_key(|f| f.0);
        let idle = states
            .iter()
            .zip(&c.idle)
            .filter(|(_, ns)| **ns > 0)
            .map(|(s, ns)| (s.name.clone(), ms(*ns)))
            .collect();
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

/// For each domain, the first one with the same capacity and OPPs.
pub(crate) fn kinds(platform: &Platform) -> Vec<usize> {
    let mut known: HashMap<(u64, Vec<KHz>), usize> = HashMap::new();
    let opps = |d: &PlatformDomain| d.opps.iter().map(|o| o.freq).collect();
    let own = platform.domains.iter().enumerate();
    own.map(|(i, d)| *known.entry((d.capacity.0, opps(d))).or_insert(i)).collect()
}

impl Domain {
    fn new(d: &PlatformDomain) -> Domain {
        let slots = d.opps.iter().enumerate().map(|(i, opp)| Slot {
            freq: opp.freq,
            kind: 0,
            speed: speed(d, opp.freq),
            power_uw: uw(d.busy_power(opp.freq)),
            opps: i + 1,
            ns: 0,
        });
        Domain {
            of: d.clone(),
            told: 0,
            cpus: d.cpus.clone(),
            capacity: d.capacity.0,
            slots: slots.collect(),
            nr_opps: d.opps.len(),
            now: 0,
            since: 0,
            known: false,
            request: None,
            chosen: None,
            tells_requests: false,
            capped_to: None,
            freq_state: State::LowFrequency,
        }
    }

    /// Where a CPU of it is now.
    #[inline]
    fn slot_of(&self, c: &Cpu) -> usize {
        if c.does.kind() == 0 { self.now } else { c.slot }
    }

    /// The slot of `freq` and a kind of work, made if it is new.
    fn slot(&mut self, freq: KHz, kind: usize) -> usize {
        if let Some(i) = self.slots.iter().position(|s| s.freq == freq && s.kind == kind) {
            return i;
        }
        if self.slots.len() >= FREQS {
            let nearest = (0..FREQS).min_by_key(|&i| self.slots[i].freq.0.abs_diff(freq.0));
            return nearest.unwrap_or(0);
        }
        let opps = &self.slots[..self.nr_opps];
        let below = opps.partition_point(|s| s.freq <= freq);
        let plain = speed(&self.of, freq);
        let own = kind.checked_sub(1).and_then(|i| self.of.work.get(i));
        // As in the simulator: the OPP, or the next one above.
        let at = opps.partition_point(|s| s.freq < freq).min(self.nr_opps - 1);
        let slot = Slot {
            freq,
            kind,
            speed: own.map_or(plain, |w| share(1024, KHz(w.speed_ppm[at]), KHz(1_000_000))),
            power_uw: uw(self.of.power_of_work(freq, kind)),
            opps: below,
            ns: 0,
        };
        self.slots.push(slot);
        self.slots.len() - 1
    }

    /// What running below the highest frequency is to be charged to: the last request
    /// explains the present frequency, unless it wants a higher one that is still to come.
    ///
    /// A refusal by the rate limit is the cause only if more was wanted: the recorded util
    /// (headroom included) exceeds what the present frequency gives. A governor that refuses
    /// before it looks at the util records 0 there; that counts as the rate limit, too.
    /// "Unchanged" leaves the reason of the frequency it does not change.
    fn freq_state(&self) -> State {
        if !self.tells_requests {
            return State::LowFrequency;
        }
        let now = &self.slots[self.now];
        let at_lowest = now.freq <= self.slots[0].freq;
        let settled = match self.chosen {
            Some(Why::UclampMax | Why::Fixed) => State::HeldDown,
            _ if at_lowest => State::LowestOpp,
            _ => State::OppClimb,
        };
        let Some((freq, util, why)) = self.request else {
            return settled;
        };
        let wants_more = util.0 == 0 || util.0.saturating_mul(UNIT) > now.speed;
        let capped = self.capped_to.is_some_and(|max| now.freq >= max);
        match why {
            _ if freq > now.freq => State::Transition,
            Why::InProgress => State::Transition,
            _ if capped && wants_more => State::Cooled,
            Why::RateLimited if wants_more => State::RateLimited,
            _ => settled,
        }
    }
}

fn speed(d: &PlatformDomain, freq: KHz) -> u64 {
    let (capacity, freq, max) = d.capacity_at(freq.min(d.freq_boost()));
    share(capacity.0, freq, max)
}

/// `capacity · freq / max`, in units of a speed. Rounding: to nearest.
fn share(capacity: u64, freq: KHz, max: KHz) -> u64 {
    let (freq, max) = (u128::from(freq.0), u128::from(max.0.max(1)));
    ((u128::from(capacity * UNIT) * freq + max / 2) / max) as u64
}

/// As a number; 0: unknown.
fn uw(power: Option<MicroWatts>) -> u64 {
    power.map_or(0, |power| power.0)
}

/// In µW · ns. `None`: the power is unknown, which is written as 0.
pub(crate) fn energy(ns: u64, power_uw: u64) -> Option<u128> {
    (power_uw > 0).then(|| u128::from(ns) * u128::from(power_uw))
}

pub(crate) fn femto_to_milli(fj: u128) -> f64 {
    fj as f64 / 1e12
}

pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}
