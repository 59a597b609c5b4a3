//! The energy model: what running at each performance level costs, and what a placement would.
//!
//! ```text
//!  performance = capacity · freq / freq_max
//!  cost        = power · 10 / performance            per unit of work (before 6.9: power · f_max / f)
//!  inefficient = cost not below that of the next higher efficient state
//!  energy      = cost of the state for max_util · Σ util     (before 6.9: / capacity)
//! ```
//!
//! Energies are in the model's own unit (power · 10 · util / performance) and only compare with
//! each other. Artificial models have costs and no powers. Left out: idle power (the kernel has none either), updates
//! at run time other than of the capacity.
//!
//! Source: kernel/power/energy_model.c, include/linux/energy_model.h.

use crate::units::{Capacity, KHz, MicroWatts, SCHED_CAPACITY_SCALE, Util};
use crate::{KernelRev, features};

/// Whether EAS stays off because the estimate would take too long, up to 6.6: performance domains
/// times their states and CPUs. Source: kernel/sched/topology.c:build_perf_domains,
/// `EM_MAX_COMPLEXITY`.
pub const fn is_too_complex_pre_6_7(nr_pd: usize, nr_ps: usize, nr_cpus: usize) -> bool {
    const EM_MAX_COMPLEXITY: usize = 2048;
    nr_pd * (nr_ps + nr_cpus) > EM_MAX_COMPLEXITY
}

/// One performance state (`struct em_perf_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmPerfState {
    /// The frequency of this state.
    pub frequency: KHz,
    /// Power of one CPU fully busy at it.
    pub power: MicroWatts,
    /// Capacity at it, as a util it can serve.
    pub performance: Util,
    /// Energy per unit of work, in the model's unit.
    pub cost: u64,
    /// `EM_PERF_STATE_INEFFICIENT`: a higher state costs no more per unit of work.
    pub inefficient: bool,
}

/// A performance domain (`struct em_perf_domain`) over its states, in ascending order.
#[derive(Clone, Copy, Debug)]
pub struct EmPerfDomain<'a> {
    /// The states.
    pub states: &'a [EmPerfState],
    /// `EM_PERF_DOMAIN_SKIP_INEFFICIENCIES`: cpufreq skips inefficient states, so the model does.
    pub skip_inefficiencies: bool,
    /// Lowest allowed state (7.2; 0 before).
    pub min_perf_state: usize,
    /// Highest allowed state (7.2; the last before).
    pub max_perf_state: usize,
    /// The frequency that the capacity is taken to belong to, before 6.9: the highest state's; in 6.8
    /// `arch_scale_freq_ref`.
    pub freq_ref: KHz,
}

impl<'a> EmPerfDomain<'a> {
    /// A domain without limits; inefficient states are skipped if there are any.
    pub fn new(states: &'a [EmPerfState]) -> EmPerfDomain<'a> {
        EmPerfDomain {
            states,
            skip_inefficiencies: states.iter().any(|s| s.inefficient),
            min_perf_state: 0,
            max_perf_state: states.len().saturating_sub(1),
            freq_ref: states.last().map_or(KHz(0), |s| s.frequency),
        }
    }
}

/// Fills in `performance`, `cost` and `inefficient` of states in ascending order, from their
/// frequency and power. A kernel takes it that the capacity is that of the highest of them, boosts included; where
/// the capacity belongs to another frequency: [`em_compute_costs_at`].
///
/// Rounding: down. A state of performance (before 6.9: frequency) 0, which the kernel would divide
/// by, costs `u64::MAX` and is inefficient. Source: energy_model.c:em_init_performance,
/// em_compute_costs; before 6.9 em_create_perf_table.
pub fn em_compute_costs(rev: KernelRev, states: &mut [EmPerfState], capacity: Capacity) {
    let fmax = states.last().map_or(KHz(0), |s| s.frequency);
    em_compute_costs_at(rev, states, capacity, fmax);
}

/// Computes costs like [`em_compute_costs`] from a coherent pair: `capacity` is that of `fmax`,
/// whichever of the frequencies that is.
pub fn em_compute_costs_at(
    rev: KernelRev,
    states: &mut [EmPerfState],
    capacity: Capacity,
    fmax: KHz,
) {
    em_init_performance(states, capacity, fmax);
    em_recalc_costs(rev, states, fmax);
}

/// `performance` of each state: its share of `capacity`, which is that of `fmax`. Rounding: down.
pub fn em_init_performance(states: &mut [EmPerfState], capacity: Capacity, KHz(fmax): KHz) {
    for state in states {
        let scaled = capacity.0.wrapping_mul(state.frequency.0);
        state.performance = Util(scaled.checked_div(fmax).unwrap_or(0));
    }
}

/// `cost` and `inefficient` from power and performance (before 6.9: frequency).
pub fn em_recalc_costs(rev: KernelRev, states: &mut [EmPerfState], KHz(fmax): KHz) {
    let mut prev_cost = u64::MAX;
    for state in states.iter_mut().rev() {
        let cost = if rev.has(features::EM_PERFORMANCE) {
            state.power.0.wrapping_mul(10).checked_div(state.performance.0)
        } else {
            fmax.wrapping_mul(state.power.0).checked_div(state.frequency.0)
        };
        state.cost = cost.unwrap_or(u64::MAX);
        state.inefficient = state.cost >= prev_cost;
        if !state.inefficient {
            prev_cost = state.cost;
        }
    }
}

/// Capacity from one state of cppc_cpufreq's artificial model to the next.
const CPPC_EM_CAP_STEP: u64 = 20;
/// Cost added for a class of less efficient CPUs: as much as four CPUs' worth of states.
const CPPC_EM_COST_GAP: u64 = 4 * SCHED_CAPACITY_SCALE / CPPC_EM_CAP_STEP;

/// The states of cppc_cpufreq's artificial model, for CPUs that know no powers: one for each step of 20 of capacity that
/// lies between the lowest and the highest frequency, the highest whole. `efficiency_class`: 0 for the most efficient CPUs,
/// and so on without gaps.
///
/// Rounding: capacities and frequencies down. Left out: performance levels of firmware coarser than kHz, which shift
/// frequencies by less than one level. Source: drivers/cpufreq/cppc_cpufreq.c:cppc_get_cpu_power, compute_cost.
pub fn cppc_states(
    capacity: Capacity,
    KHz(lowest): KHz,
    KHz(highest): KHz,
    efficiency_class: u64,
) -> impl Iterator<Item = EmPerfState> {
    let first = capacity.0 * lowest / highest.max(1) / CPPC_EM_CAP_STEP;
    let last = capacity.0 / CPPC_EM_CAP_STEP;
    let state = move |step: u64| {
        let at = match step {
            _ if step == last => highest,
            _ if step == first => lowest,
            _ => step * (CPPC_EM_CAP_STEP * highest / capacity.0.max(1)),
        };
        let cost = CPPC_EM_COST_GAP * efficiency_class + step;
        EmPerfState {
            frequency: KHz(at),
            power: MicroWatts(cost),
            performance: Util(capacity.0 * at / highest.max(1)),
            cost,
            inefficient: false,
        }
    };
    (first..=last).map(state)
}

/// The four states of intel_pstate's artificial model for hybrid CPUs: 40, 60, 80 and 100 % of the capacity, as
/// "frequencies" 2 to 5. `kind`: 0 for E-cores without an L3, 1 for E-cores, 2 for P-cores, which a rise above 60 % makes
/// as dear as the next kind. Rounding: down. Source: drivers/cpufreq/intel_pstate.c:hybrid_active_power, hybrid_get_cost.
pub fn hybrid_states(capacity: Capacity, kind: u64) -> impl Iterator<Item = EmPerfState> {
    let state = move |level: u64| EmPerfState {
        frequency: KHz(level),
        power: MicroWatts(0),
        performance: Util(capacity.0 * level / 5),
        cost: level + kind,
        inefficient: false,
    };
    (2..=5).map(state)
}

/// The index of the state that serves `max_util`: the lowest allowed one that is fast enough and
/// not skipped, else the highest allowed. Source: energy_model.h:em_pd_get_efficient_state.
#[inline]
pub fn em_pd_get_efficient_state(pd: &EmPerfDomain<'_>, max_util: Util) -> usize {
    let fast_enough = |s: &EmPerfState| s.performance >= max_util;
    efficient_state(pd, fast_enough).unwrap_or(pd.max_perf_state)
}

#[inline]
fn efficient_state(
    pd: &EmPerfDomain<'_>,
    fast_enough: impl Fn(&EmPerfState) -> bool,
) -> Option<usize> {
    let above = pd.max_perf_state.saturating_add(1).min(pd.states.len());
    let allowed = pd.states.get(pd.min_perf_state..above)?;
    let first = allowed.partition_point(|s| !fast_enough(s));
    let serves = |s: &EmPerfState| !(pd.skip_inefficiencies && s.inefficient);
    allowed[first..].iter().position(serves).map(|i| i + first + pd.min_perf_state)
}

/// The energy a domain's CPUs would use together, in the model's unit: the busiest one has
/// `max_util` (with schedutil's headroom, clamped), all together `sum_util`.
///
/// Before 6.8 the kernel adds the headroom in here; here the caller does, whatever the release.
/// `allowed_cpu_cap` is the capacity a thermal or cpufreq limit leaves one CPU, `capacity` all of
/// it (used before 6.9 only). The product wraps at 64 bits. A domain without states costs nothing.
/// Source: energy_model.h:em_cpu_energy.
#[inline]
pub fn em_cpu_energy(
    rev: KernelRev,
    pd: &EmPerfDomain<'_>,
    max_util: Util,
    sum_util: Util,
    allowed_cpu_cap: Capacity,
    capacity: Capacity,
) -> u64 {
    if sum_util.0 == 0 {
        return 0;
    }
    if !rev.has(features::EM_PERFORMANCE) {
        return em_cpu_energy_pre_6_9(pd, max_util, sum_util, allowed_cpu_cap, capacity);
    }
    let max_util = Util(max_util.0.min(allowed_cpu_cap.0));
    let state = pd.states.get(em_pd_get_efficient_state(pd, max_util));
    state.map_or(0, |s| s.cost.wrapping_mul(sum_util.0))
}

/// Whether a move saves enough: more than `margin` of 1024 of what the previous CPU costs, `prev_delta` on
/// top of what its candidates' domains cost without the task (`base_energy`). 0: anything at all, as since
/// 6.0 (fair.c:find_energy_efficient_cpu); 64, a sixteenth, before ([`feec_margin`]).
pub const fn feec_saves(prev_delta: u64, delta: u64, base_energy: u64, margin: u64) -> bool {
    let all = prev_delta.saturating_add(base_energy) as u128;
    prev_delta.saturating_sub(delta) as u128 > (all * margin as u128) >> 10
}

/// The margin of a release, of 1024.
pub fn feec_margin(rev: KernelRev) -> u64 {
    if rev.has(features::FEEC_ANY_SAVING) { 0 } else { 64 }
}

/// The form before 6.9: the state is found by frequency, and the capacity divides at the end.
/// Source: Linux 6.1 energy_model.h:em_cpu_energy.
fn em_cpu_energy_pre_6_9(
    pd: &EmPerfDomain<'_>,
    max_util: Util,
    sum_util: Util,
    allowed_cpu_cap: Capacity,
    capacity: Capacity,
) -> u64 {
    let Some(last) = pd.states.last() else {
        return 0;
    };
    let max_util = max_util.0.min(allowed_cpu_cap.0);
    let wanted = pd.freq_ref.0.wrapping_mul(max_util).checked_div(capacity.0).unwrap_or(0);
    let state = efficient_state(pd, |s| s.frequency.0 >= wanted).map_or(last, |i| &pd.states[i]);
    state.cost.wrapping_mul(sum_util.0).checked_div(capacity.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The little cluster of the M1, the powers µW; equal voltages at the two top OPPs.
    fn states(rev: KernelRev) -> [EmPerfState; 4] {
        let mut states =
            [(600_000, 47_296), (972_000, 99_715), (1_704_000, 281_000), (2_064_000, 339_155)].map(
                |(khz, uw)| EmPerfState {
                    frequency: KHz(khz),
                    power: MicroWatts(uw),
                    ..EmPerfState::default()
                },
            );
        em_compute_costs(rev, &mut states, Capacity(459));
        states
    }

    #[test]
    fn an_opp_that_saves_nothing_is_inefficient() {
        for rev in [KernelRev::V6_8, KernelRev::V7_2] {
            let flags = states(rev).map(|s| s.inefficient);
            assert_eq!(flags, [false, false, true, false], "{rev}");
        }
    }

    #[test]
    fn energy_of_a_domain() {
        let states = states(KernelRev::V7_2);
        let pd = EmPerfDomain::new(&states);
        assert!(pd.skip_inefficiencies);
        let energy = |max, sum, allowed| {
            let (max, sum) = (Util(max), Util(sum));
            em_cpu_energy(KernelRev::V7_2, &pd, max, sum, Capacity(allowed), Capacity(459))
        };
        assert_eq!(energy(100, 150, 459), 150 * states[0].cost);
        assert_eq!(energy(300, 150, 459), 150 * states[3].cost, "past the inefficient state");
        assert_eq!(energy(300, 150, 200), 150 * states[1].cost, "as far as it is allowed");
        assert_eq!(energy(9999, 150, 9999), 150 * states[3].cost);
        assert_eq!(energy(300, 0, 459), 0);
        let limited = EmPerfDomain { min_perf_state: 1, max_perf_state: 1, ..pd };
        assert_eq!(em_pd_get_efficient_state(&limited, Util(0)), 1);
        assert_eq!(em_pd_get_efficient_state(&limited, Util(459)), 1);
    }

    #[test]
    fn before_6_9_the_same_state_by_frequency() {
        let rev = KernelRev::V6_8;
        let states = states(rev);
        let pd = EmPerfDomain::new(&states);
        let energy =
            |max| em_cpu_energy(rev, &pd, Util(max), Util(459), Capacity(459), Capacity(459));
        assert_eq!(energy(133), states[0].cost);
        assert_eq!(energy(134), states[1].cost);
    }

    #[test]
    fn a_move_has_to_save_a_sixteenth_before_6_0() {
        let [old, new] = [KernelRev::new(5, 19), KernelRev::V6_1].map(feec_margin);
        for (prev, base) in [(0u64, 0u64), (1, 0), (16, 0), (100, 1500), (1 << 40, 7 << 40)] {
            let least = (prev + base) >> 4;
            for best in [0, prev / 2, prev.saturating_sub(least), prev, prev + 1] {
                let saved = prev.saturating_sub(best);
                assert_eq!(
                    feec_saves(prev, best, base, old),
                    saved > least,
                    "{prev} {base} {best}"
                );
                assert_eq!(feec_saves(prev, best, base, new), best < prev, "{prev} {base} {best}");
            }
        }
        assert!(feec_saves(u64::MAX, 5, 5, 1023), "the previous CPU is no candidate");
        assert!(!feec_saves(100, 0, 0, 1024), "nobody saves more than all");
    }

    /// By hand from the driver's arithmetic: capacity 100 at 1000 MHz, from 250 MHz on. Steps of 20 make levels of
    /// 200 MHz; 25 of capacity lie in step 1.
    #[test]
    fn an_artificial_model_has_a_state_each_20_of_capacity() {
        let of = |class| cppc_states(Capacity(100), KHz(250_000), KHz(1_000_000), class);
        let rows = [
            (250_000, 25, 1),
            (400_000, 40, 2),
            (600_000, 60, 3),
            (800_000, 80, 4),
            (1_000_000, 100, 5),
        ];
        assert!(of(0).map(|s| (s.frequency.0, s.performance.0, s.cost)).eq(rows));
        // Four CPUs' worth of 1024 / 20 steps.
        assert!(of(2).map(|s| s.cost).eq([1, 2, 3, 4, 5].map(|step| 2 * 204 + step)));
        // Every CPU of the lower class is cheaper than any of the next.
        let dearest = cppc_states(Capacity(1024), KHz(1), KHz(9), 0).map(|s| s.cost).max();
        assert!(dearest < cppc_states(Capacity(1024), KHz(1), KHz(9), 1).map(|s| s.cost).min());
        assert_eq!(cppc_states(Capacity(10), KHz(1), KHz(9), 0).count(), 1, "smaller than a step");
    }

    #[test]
    fn hybrid_cores_fill_up_to_60_percent_before_the_next_kind() {
        let of = |kind| hybrid_states(Capacity(1000), kind);
        assert!(of(1).map(|s| (s.performance.0, s.cost)).eq([
            (400, 3),
            (600, 4),
            (800, 5),
            (1000, 6)
        ]));
        let cost = |kind, util| {
            let states: [EmPerfState; 4] = core::array::from_fn(|i| of(kind).nth(i).unwrap());
            states[em_pd_get_efficient_state(&EmPerfDomain::new(&states), Util(util))].cost
        };
        assert!(cost(1, 600) == cost(2, 400) && cost(1, 601) > cost(2, 400));
    }

    #[test]
    fn degenerate_tables_do_not_divide_by_zero() {
        for rev in [KernelRev::V6_8, KernelRev::V7_2] {
            let mut zero = [EmPerfState::default(); 2];
            em_compute_costs(rev, &mut zero, Capacity(0));
            assert!(zero.iter().all(|s| s.inefficient && s.cost == u64::MAX));
            for states in [&zero[..], &[]] {
                let pd = EmPerfDomain::new(states);
                em_cpu_energy(rev, &pd, Util(1), Util(1), Capacity(0), Capacity(0));
            }
        }
    }
}
