//! The energy model of a frequency domain as the scheduler has it (`struct perf_domain`), and which capacity belongs
//! to which frequency.

use crate::mech::slots::Slot;
use crate::state::short_ways::{self, ShortWay};
use risetime_kernel::energy_model::{EmPerfDomain, EmPerfState, em_cpu_energy};
use risetime_kernel::units::{Capacity, KHz, Util};
use risetime_kernel::{KernelRev, features};
use std::cell::Cell;

/// The mechanism.
pub(crate) struct Own;

impl Slot for Own {
    type OfMachine = Switches;
    type OfDomain = PerfDomain;
    type OfCpu = ();
    type OfTask = ();
}

/// Switches of how the energy model is used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    /// Energy models keep the pair of capacity and frequency with which they were made.
    pub(crate) coherent: bool,
    /// Placement does without energy while a governor wants a boost OPP.
    pub(crate) off_in_boost: bool,
}

/// Cost that has not been looked up yet.
const UNKNOWN: u64 = u64::MAX;

/// Power model that the scheduler has of a domain; no states where it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct PerfDomain {
    pub(crate) states: Vec<EmPerfState>,
    /// Cost of the state that serves each util, from 6.9 (`em_pd_get_efficient_state`), up to the
    /// capacity of its CPUs; [`UNKNOWN`] before it was asked for.
    pub(crate) cost: Vec<Cell<u64>>,
    /// Some of its states are inefficient, and cpufreq skips them.
    pub(crate) skips: bool,
    /// True if costs are no powers (`EM_PERF_DOMAIN_ARTIFICIAL`).
    pub(crate) artificial: bool,
    /// The pair that the estimate takes to belong together.
    pub(crate) capacity: Capacity,
    pub(crate) freq_ref: KHz,
    /// OPPs that cpufreq is told are inefficient.
    pub(crate) inefficient: Vec<bool>,
}

impl PerfDomain {
    /// The model without limits, as [`EmPerfDomain::new`] makes it.
    #[inline]
    pub(crate) fn em_perf_domain(&self) -> EmPerfDomain<'_> {
        EmPerfDomain {
            states: &self.states,
            skip_inefficiencies: self.skips,
            min_perf_state: 0,
            max_perf_state: self.states.len().saturating_sub(1),
            freq_ref: self.freq_ref,
        }
    }

    /// `em_cpu_energy`: the energy of CPUs that are busy for `sum` in all, in the model's own unit,
    /// where the most demanding one asks for `max`, and limits leave a CPU `actual` of its
    /// capacity.
    #[inline]
    pub(crate) fn energy(&self, rev: KernelRev, max: Util, sum: Util, actual: Capacity) -> u64 {
        let Some(known) = self.cost.get(max.0.min(actual.0) as usize) else {
            return self.energy_by_states(rev, max, sum, actual);
        };
        short_ways::take(ShortWay::EmCost);
        let mut cost = known.get();
        if cost == UNKNOWN {
            cost = self.energy_by_states(rev, max.min(Util(actual.0)), Util(1), self.capacity);
            known.set(cost);
        }
        let energy = cost.wrapping_mul(sum.0);
        debug_assert_eq!(energy, self.energy_by_states(rev, max, sum, actual));
        energy
    }

    /// Returns what [`PerfDomain::energy`] does, by a look at the states.
    fn energy_by_states(&self, rev: KernelRev, max: Util, sum: Util, actual: Capacity) -> u64 {
        em_cpu_energy(rev, &self.em_perf_domain(), max, sum, actual, self.capacity)
    }

    /// Returns the domain with room for the cost of each util.
    pub(crate) fn tabulated(mut self, rev: KernelRev) -> PerfDomain {
        self.cost.clear();
        if rev.has(features::EM_PERFORMANCE) && !self.states.is_empty() {
            self.cost = vec![Cell::new(UNKNOWN); self.capacity.0 as usize + 1];
        }
        self
    }
}

/// Scale of a domain: the frequency that its capacity belongs to, and the capacity at the others.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// The capacity of its CPUs at the highest OPP that is no boost: what they are, whatever the scheduler thinks.
    pub(crate) capacity: Capacity,
    /// Frequency of that OPP.
    pub(crate) nominal: KHz,
    /// `policy->cpuinfo.max_freq`.
    pub(crate) cpuinfo_max: KHz,
    /// `arch_scale_freq_ref`; before 6.8 `cpuinfo.max_freq`.
    pub(crate) freq_ref: KHz,
    /// `freq_ref` before it was limited for good.
    pub(crate) freq_ref_at_first: KHz,
    /// Capacity of each OPP, by frequency, where the scheduler keeps it (`opp_capacity`).
    pub(crate) of_opp: Vec<(KHz, Capacity)>,
}

impl Scale {
    /// The capacity that a limit of `max` takes of `capacity`, which belongs to `freq_ref`.
    /// Rounding: see [`cpufreq_update_pressure`](risetime_kernel::opp::cpufreq_update_pressure).
    pub(crate) fn pressure(&self, capacity: Capacity, max: KHz) -> Capacity {
        match self.kept(max) {
            Some(left) => Capacity(capacity.0.saturating_sub(left.0)),
            None => risetime_kernel::opp::cpufreq_update_pressure(capacity, max, self.freq_ref),
        }
    }
    /// The capacity kept for the frequency that the capacity belongs to.
    pub(crate) fn kept_at_ref(&self) -> Capacity {
        self.kept(self.freq_ref).unwrap_or(self.capacity)
    }
    /// The capacity kept for the OPP of `freq`.
    pub(crate) fn kept(&self, freq: KHz) -> Option<Capacity> {
        let at = self.of_opp.iter().find(|(own, _)| *own >= freq).or(self.of_opp.last());
        at.map(|(_, capacity)| *capacity)
    }
}
