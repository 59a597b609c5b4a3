//! A machine: CPUs, frequency domains, operating points, idle states.
//!
//! The file form is TOML, strict: unknown fields are errors, numbers are whole, power is that
//! of one CPU at full load. Where no power is written but voltages are, it comes from
//!
//! ```text
//! power [µW] = C [µW/MHz/V²] · f [MHz] · V² [V²]
//!            = ⌊C · ⌊uV/1000⌋² · ⌊kHz/1000⌋ / 10⁶⌋        as the kernel rounds it
//! ```
//!
//! Many CPUs alike take one `[[domain]]` with `cpus_per_policy`; where the hardware takes any
//! frequency, `opp_range` gives the steps of its driver in place of a list. Who shares a core, a
//! cache and a node: [`Topology`]. How hot it gets, and what is done then: [`thermal`].
//!
//! Left out: shared rails and cluster power, sizes of caches, OPPs that come and go with
//! temperature or with the number of busy cores.

mod bounds;
mod check;
mod idle;
pub mod keys;
mod levels;
mod partsim;
mod read;
mod text;
pub mod thermal;
mod topology;
mod work;
mod write;

pub use bounds::MAX_CPUS;
pub use idle::{IdleState, Together};
pub use levels::{Driver, Levels};
pub use partsim::ReadTable;
pub use text::cpu_ranges;
pub(crate) use text::{checked_name, checked_word};
pub use topology::{MAX_THREADS, SMT_SPEED, SMT_SPEED_DEFAULT, Topology, thread_speed};

use crate::InputError;
use risetime_kernel::units::{Capacity, CpuId, KHz, MicroWatts, Span, Util};
use std::collections::BTreeMap;

/// `CONFIG_HZ` of real kernels lies between 24 and 1200; a tick must stay far above a µs.
pub const HZ: (u32, u32) = (24, 10_000);

/// A machine, validated: at least one domain, every CPU number from 0 to n−1 in exactly one
/// domain, every domain with at least one OPP, capacities 1..=1024.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Name for `--platform`.
    pub name: String,
    /// One line for a reader.
    pub about: String,
    /// Ticks per second (`CONFIG_HZ`).
    pub hz: u32,
    /// Frequency domains, in the order of their lowest CPU numbers (a file may have them in
    /// any order).
    pub domains: Vec<Domain>,
    /// Groups of CPUs that share cores, closer caches and nodes.
    pub topology: Topology,
    /// Thermal zones; empty: heat is nobody's concern.
    pub thermal: Vec<thermal::Zone>,
    /// Sources of each kind of figure; at least `capacity` and `opp`.
    pub sources: BTreeMap<String, String>,
    /// Values that are allowed and likely meant otherwise, each at its place: MHz for kHz.
    pub doubts: Vec<InputError>,
}

/// One frequency domain = one cpufreq policy = one performance domain of the energy model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Domain {
    /// The domain's CPUs, ascending.
    pub cpus: Vec<CpuId>,
    /// Number of the last-level-cache cluster of the CPUs.
    pub cluster: u32,
    /// Capacity of each CPU at the highest OPP that is no boost, of 1024.
    pub capacity: Capacity,
    /// Whether the driver can switch in the governor's context (`fast_switch_possible`).
    pub fast_switch: bool,
    /// The driver's own `transition_delay_us`, if it sets one (it replaces the default
    /// schedutil rate limit).
    pub transition_delay_us: Option<u32>,
    /// Whether the kernel is told the OPPs' power (`dynamic-power-coefficient`, `opp-microwatt`), if it is known. Else that is for the account of
    /// energy alone: no OPP is inefficient, and nothing is placed by it.
    pub energy_model: bool,
    /// Operating points, frequency strictly ascending; boosts at the end, and at least one that is none.
    pub opps: Vec<Opp>,
    /// Performance levels, where the driver hands such to the hardware; the OPPs are these.
    pub levels: Option<Levels>,
    /// Idle states, shallow to deep; may be empty (then idle power is taken as 0).
    pub idle: Vec<IdleState>,
    /// Speeds of other kinds of work than the plain one here, by name; every domain has the same
    /// kinds.
    pub work: Vec<Work>,
}

/// Speed of one kind of work on a CPU of a domain, OPP by OPP. The plain work of a workload's `run`
/// gets on with capacity and frequency; what waits for memory, or is done by special instructions,
/// does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Name in a workload's `kind`.
    pub kind: String,
    /// Work per time at each OPP, in millionths of what the fastest CPU of the machine does of it.
    pub speed_ppm: Vec<u64>,
    /// Power of one CPU that does nothing else, at each OPP; empty: that of plain work.
    pub power: Vec<MicroWatts>,
}

/// An operating performance point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opp {
    /// Frequency.
    pub freq: KHz,
    /// Power of one CPU at full load here; 0 on every OPP of a domain whose power is unknown.
    pub power: MicroWatts,
    /// Time a change *to* this OPP takes.
    pub latency: Span,
    /// True for an OPP that is there only while `boost` is on (`turbo-mode` of a device tree,
    /// `CPUFREQ_BOOST_FREQ`).
    pub turbo: bool,
    /// Capacity of a CPU at this OPP, of 1024, where it is not in proportion to the frequency.
    pub capacity: Option<Capacity>,
}

impl Opp {
    /// An ordinary operating point.
    pub const fn new(freq: KHz, power: MicroWatts, latency: Span) -> Opp {
        Opp { freq, power, latency, turbo: false, capacity: None }
    }
}

impl Domain {
    /// The highest frequency that is no boost: the one that the capacity belongs to.
    pub fn freq_max(&self) -> KHz {
        let own = self.opps.iter().rev().find(|o| !o.turbo).or(self.opps.last());
        own.expect("validated: a domain has OPPs").freq
    }
    /// The highest frequency with `boost` on.
    pub fn freq_boost(&self) -> KHz {
        self.opps.last().expect("validated: a domain has OPPs").freq
    }
    /// The speed of a CPU at `freq`, as a fraction of 1024: capacity · freq / freq_max, unless the
    /// OPP (the next one above, else the highest) says otherwise.
    pub fn capacity_at(&self, freq: KHz) -> (Capacity, KHz, KHz) {
        let opp = self.opps.iter().find(|o| o.freq >= freq).or(self.opps.last());
        match opp.and_then(|o| o.capacity) {
            Some(own) => (own, KHz(1), KHz(1)),
            None => (self.capacity, freq, self.freq_max()),
        }
    }
    /// The power of a CPU that runs something at `freq`: that of the OPP, or of the next one above. `None`: unknown.
    pub fn busy_power(&self, freq: KHz) -> Option<MicroWatts> {
        let opp = self.opps.iter().find(|o| o.freq >= freq).or(self.opps.last());
        opp.map(|o| o.power).filter(|power| power.0 > 0)
    }
    /// The power of a CPU at `freq` that does the work of this number (0: the plain one), like
    /// [`Domain::busy_power`].
    pub fn power_of_work(&self, freq: KHz, work: usize) -> Option<MicroWatts> {
        let own = work.checked_sub(1).and_then(|i| self.work.get(i)).map(|w| &w.power);
        let at = self.opps.iter().position(|o| o.freq >= freq).unwrap_or(self.opps.len() - 1);
        own.and_then(|power| power.get(at).copied()).or_else(|| self.busy_power(freq))
    }
    /// The power of a CPU that idles in the state of this number; in none that is known: in the shallowest. `None`:
    /// unknown. A state of power 0 takes none where the power of the OPPs is known, and is unknown where it is not.
    pub fn idle_power(&self, state: Option<usize>) -> Option<MicroWatts> {
        let state = state.and_then(|i| self.idle.get(i)).or(self.idle.first());
        let power = state.map_or(MicroWatts(0), |s| s.power);
        (power.0 > 0 || self.opps[0].power.0 > 0).then_some(power)
    }
    /// The largest transition latency of its OPPs (`cpuinfo.transition_latency`).
    pub fn transition_latency(&self) -> Span {
        self.opps.iter().map(|o| o.latency).max().unwrap_or_default()
    }
}

/// The largest speed, of 1024, that a task gets on a CPU of this capacity: at the first of its
/// frequencies, ascending and at most `limit`, which reaches the task's clamp `uclamp_max`; where none
/// does, at `limit`.
pub fn max_speed(
    capacity: Capacity,
    freq_max: KHz,
    freqs: impl Iterator<Item = KHz>,
    limit: KHz,
    uclamp_max: Util,
) -> Util {
    let speed = |freq: KHz| Util(capacity.0 * freq.0 / freq_max.0);
    let within = freqs.filter(|f| *f <= limit).map(speed);
    within.into_iter().find(|s| *s >= uclamp_max).unwrap_or(speed(limit))
}

impl Platform {
    /// The kinds of work that its tables know, in the order of their numbers.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.domains.iter().take(1).flat_map(|d| &d.work).map(|w| w.kind.as_str())
    }
    /// Counts the CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.domains.iter().map(|d| d.cpus.len()).sum()
    }
    /// The index of the domain that holds `cpu`; `None` if there is no such CPU.
    pub fn domain_of(&self, cpu: CpuId) -> Option<usize> {
        self.domains.iter().position(|d| d.cpus.contains(&cpu))
    }
    /// Iterates over all CPUs, ascending.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0..self.nr_cpus() as u32).map(CpuId)
    }
    /// The same machine with a kernel of another HZ, which its name then says: `m1+hz=1000`.
    #[must_use]
    pub fn with_hz(self, hz: u32) -> Platform {
        if hz == self.hz {
            return self;
        }
        Platform { name: format!("{}+hz={hz}", self.name), hz, ..self }
    }
    /// The length of a tick in ns (`TICK_NSEC`), rounded to nearest as the kernel does.
    pub fn tick(&self) -> Span {
        Span((1_000_000_000 + u64::from(self.hz) / 2) / u64::from(self.hz))
    }
}
