//! From a wanted frequency to one that the hardware has.
//!
//! ```text
//!  target = clamp(wanted, min, max)
//!  the lowest OPP ≥ target (CPUFREQ_RELATION_L), else the highest
//!  RELATION_E: OPPs marked inefficient are skipped, unless the choice then breaks min or max
//!
//! policy limits: max = the highest OPP ≤ scaling_max_freq (RELATION_H), min = the lowest ≥ scaling_min_freq
//! cpufreq pressure = capacity - capacity · max / freq_max
//! ```
//!
//! Left out: descending and unsorted tables (same results), relation C (not used by the governors
//! modelled), drivers without a table.
//!
//! Source: drivers/cpufreq/cpufreq.c:__resolve_freq, cpufreq_set_policy, include/linux/cpufreq.h.

use crate::units::{Capacity, KHz};

/// One entry of a frequency table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreqTableEntry {
    /// Its frequency.
    pub freq: KHz,
    /// Whether a higher OPP costs no more energy per work (`CPUFREQ_INEFFICIENT_FREQ`).
    pub inefficient: bool,
}

/// Index of the lowest entry at or above `target`, else of the highest; inefficient ones skipped
/// if `efficiencies`. `None` if nothing is left to choose from.
/// Source: cpufreq.h:cpufreq_table_find_index_al.
pub fn cpufreq_table_find_index_l(
    table: &[FreqTableEntry],
    target: KHz,
    efficiencies: bool,
) -> Option<usize> {
    let mut best = None;
    for (idx, entry) in table.iter().enumerate() {
        if efficiencies && entry.inefficient {
            continue;
        }
        best = Some(idx);
        if entry.freq >= target {
            break;
        }
    }
    best
}

/// Index of the OPP that a request for `target` resolves to, in a table in ascending order.
///
/// A `min` above `max` gives way to `max`. Inefficient OPPs are skipped if any are marked.
/// `None` only for an empty table. Source: cpufreq.c:cpufreq_driver_resolve_freq.
pub fn cpufreq_driver_resolve_freq(
    table: &[FreqTableEntry],
    target: KHz,
    min: KHz,
    max: KHz,
) -> Option<usize> {
    let min = min.min(max);
    let target = target.clamp(min, max);
    let efficient = cpufreq_table_find_index_l(table, target, true);
    match efficient {
        Some(idx) if (min..=max).contains(&table[idx].freq) => efficient,
        _ => cpufreq_table_find_index_l(table, target, false),
    }
}

/// `policy->min` and `policy->max` of a policy whose users ask for no less than `min` and no more than
/// `max`, in a table in ascending order: OPPs, inefficient ones too. Where no OPP is that low, the
/// limit is the lowest; `min` gives way to `max`. `None` only for an empty table.
/// Source: cpufreq.c:cpufreq_set_policy, freq_table.c:cpufreq_frequency_table_verify.
pub fn cpufreq_set_policy(table: &[FreqTableEntry], min: KHz, max: KHz) -> Option<(KHz, KHz)> {
    let first = table.first()?.freq;
    let max = table.iter().rev().map(|e| e.freq).find(|f| *f <= max).unwrap_or(first);
    let min = table.iter().map(|e| e.freq).find(|f| *f >= min).unwrap_or(max);
    Some((min.min(max), max))
}

/// What a lowered limit takes of a CPU's capacity; 0 where it is no limit. The capacity that is left
/// is rounded down. Source: cpufreq.c:cpufreq_update_pressure (since 6.10); as hardware pressure
/// arch_topology.c:topology_update_hw_pressure.
pub const fn cpufreq_update_pressure(capacity: Capacity, capped: KHz, max: KHz) -> Capacity {
    if max.0 <= capped.0 {
        return Capacity(0);
    }
    Capacity(capacity.0 - (capacity.0 as u128 * capped.0 as u128 / max.0 as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 600, 972 (inefficient), 1332, 1704 (inefficient) MHz.
    fn table() -> [FreqTableEntry; 4] {
        [(600, false), (972, true), (1332, false), (1704, true)]
            .map(|(freq, inefficient)| FreqTableEntry { freq: KHz(freq), inefficient })
    }

    #[track_caller]
    fn check(target: u64, min: u64, max: u64, expected: u64) {
        let table = table();
        let idx = cpufreq_driver_resolve_freq(&table, KHz(target), KHz(min), KHz(max));
        assert_eq!(idx.map(|i| table[i].freq), Some(KHz(expected)), "{target} in {min}..{max}");
    }

    #[test]
    fn lowest_efficient_opp_that_is_enough() {
        check(0, 0, 9999, 600);
        check(600, 0, 9999, 600);
        check(601, 0, 9999, 1332);
        check(1333, 0, 9999, 1332);
        check(9999, 0, 9999, 1332);
    }

    #[test]
    fn limits_are_honoured_with_inefficient_opps_if_they_must_be() {
        check(0, 601, 1000, 972);
        check(9999, 1400, 1704, 1704);
        check(9999, 0, 972, 972);
        check(2000, 1332, 600, 600);
    }

    #[test]
    fn policy_limits_are_opps() {
        let limits = |min, max| cpufreq_set_policy(&table(), KHz(min), KHz(max)).unwrap();
        assert_eq!(limits(0, 9999), (KHz(600), KHz(1704)));
        assert_eq!(limits(601, 1700), (KHz(972), KHz(1332)), "inwards");
        assert_eq!(limits(0, 100), (KHz(600), KHz(600)), "nothing is that low");
        assert_eq!(limits(1400, 1000), (KHz(972), KHz(972)), "min gives way");
        assert_eq!(limits(9999, 9999), (KHz(1704), KHz(1704)));
        assert_eq!(cpufreq_set_policy(&[], KHz(0), KHz(1)), None);
    }

    #[test]
    fn pressure_is_what_the_limit_takes() {
        let of = |capped| cpufreq_update_pressure(Capacity(459), KHz(capped), KHz(2_064_000)).0;
        // 459 · 600 / 2064 = 133.4
        assert_eq!((of(600_000), of(2_064_000), of(u64::MAX), of(0)), (326, 0, 0, 459));
    }

    #[test]
    fn all_inefficient_or_none_at_all() {
        let all = table().map(|e| FreqTableEntry { inefficient: true, ..e });
        assert_eq!(cpufreq_driver_resolve_freq(&all, KHz(1000), KHz(0), KHz(9999)), Some(2));
        assert_eq!(cpufreq_driver_resolve_freq(&[], KHz(1000), KHz(0), KHz(9999)), None);
        assert_eq!(cpufreq_table_find_index_l(&all, KHz(0), true), None);
    }
}
